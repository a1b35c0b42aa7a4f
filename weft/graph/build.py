"""From a patch to its render graph: checks every statement, and finds what every strand reads and remembers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from weft.contexts import ContextSpec, ContextTable
from weft.errors import Diagnostic, Report, Span, WeftError, error
from weft.graph.budget import Budget
from weft.graph.domain import OWN, PLANE, Environment, Shape, ShapeDomain
from weft.graph.elaborate import Elaborator
from weft.graph.nodes import (
    Broadcast, BundlePart, Edge, Expanded, FromCache, FromParameter, FromSource, GraphNode, Instance, OutputDefinition,
    Patch, RenderGraph, Sink, SinkStatement, Strand
)
from weft.graph.partition import Fact, partition, reachable, tag
from weft.graph.resolve import Resolver
from weft.graph.scope import Closure, Local, Member, Opaque, PoisonedError, Scope, StrandGroup
from weft.names import StrandRef
from weft.sources import SOURCES
from weft.syntax.ast import (
    Argument, BodyStatement, Bundle, Call, Expression, Name, SpindleDefinition, Text, Walkable, walk
)

# --- errors in a library, reported at the call that caused them: users cannot change the library ---


def at_the_call(found: Diagnostic, patch: Patch, within: Walkable | None) -> Diagnostic:
    """A diagnostic inside a library, moved to the call that led there. The call is looked for `within` an expression or
    statement; if it may be one of several, the diagnostic is at all of `within`. It stays unchanged if it is not inside
    a library, or no call is found."""
    if found.span is None or not found.span.source.library or within is None:
        return found
    blamed = _around(found.span, patch)
    calls = [
        (node, spindle)
        for node in walk(within)
        if isinstance(node, Call) and isinstance(node.callee, Name)
        if (spindle := patch.spindles.get(node.callee.id)) is not None and spindle.span.source.library
    ]
    suspects = [(call, spindle) for call, spindle in calls if spindle is blamed] or calls
    if not suspects:
        return found
    span = suspects[0][0].span if len(suspects) == 1 else within.span
    names = dict.fromkeys(spindle.name.name for _, spindle in suspects)
    words = f"{' or '.join(names)} cannot be called like this: {found.message}"
    return replace(found, message=words, span=span, hint=f"weft help {next(iter(names))} says what it takes")


def value_of(output: OutputDefinition) -> Walkable | None:
    """The expression that an output is defined by; None for a parameter."""
    match output.definition:
        case Expanded(value=value) | BundlePart(value=value) | FromSource(call=value) | FromCache(call=value):
            return value
    return None


def _around(span: Span, patch: Patch) -> SpindleDefinition | None:
    """The spindle whose definition contains a place."""
    for spindle in patch.spindles.values():
        whole = spindle.span
        if whole.source is span.source and whole.start <= span.start and span.end <= whole.end:
            return spindle
    return None


# --- what an output statement consumes: one strand for each place of its context ---


@dataclass(frozen=True, slots=True, eq=False)
class SinkPart:
    """One strand that an output statement consumes. `label` names it among all of them: `display.r`."""

    label: str
    value: Expression
    scope: Scope

    @property
    def span(self) -> Span:
        return self.value.span


def sink_parts(sink: SinkStatement, resolver: Resolver) -> list[SinkPart]:
    """The strands of an output statement, in the order of its context's places. Raises WeftError for arguments that it
    cannot take."""
    args = [a for a in sink.statement.args if not (a.label == "to" and sink.spec.targets)]
    for arg in args:
        if isinstance(arg.value, Text):
            raise error("text-as-number", "text cannot be used as a number", arg.value.span)
    if not args:
        raise error("missing-argument", f"{sink.statement.name} needs at least one strand", sink.statement.span,
                    f"for example {sink.spec.example}")  # fmt: skip
    spec = sink.spec
    places = _free_places(sink, args, resolver) if not spec.layouts else _laid_out(sink, args, resolver)
    return [SinkPart(f"{sink.label}.{name}", value, _scope(sink, name, broadcast)) for name, value, broadcast in places]


def _scope(sink: SinkStatement, name: str, broadcast: Broadcast | None) -> Scope:
    return Scope(f"{sink.label}@{name}", broadcast=broadcast)


_Place = tuple[str, Expression, "Broadcast | None"]


def _free_places(sink: SinkStatement, args: list[Argument], resolver: Resolver) -> list[_Place]:
    """Any number of strands; a group gives one for each of its members."""
    places: list[_Place] = []
    for arg in args:
        shape = resolver.spread_shape(arg.value, _scope(sink, "", None))
        if shape is None:
            places.append((arg.label or str(len(places)), arg.value, None))
            continue
        names = tuple(n or str(i) for i, n in enumerate(shape.names))
        prefix = f"{arg.label}." if arg.label else ""
        places += [(prefix + name, arg.value, Broadcast(names, i)) for i, name in enumerate(names)]
    return places


def _laid_out(sink: SinkStatement, args: list[Argument], resolver: Resolver) -> list[_Place]:
    """The places of one of the context's layouts."""
    if len(args) == 1 and args[0].label is None:
        return _single(sink, args[0], resolver)
    filled: dict[str, _Place] = {}
    positional = _layout_of(sink, sum(a.label is None for a in args), args)
    for position, arg in enumerate(args):
        names = (positional[position],) if arg.label is None else _labelled(sink.spec, arg)
        for i, name in enumerate(names):
            if name in filled and [a.label for a in args].count(arg.label) > 1:
                continue  # the parser has reported it
            if name in filled:
                raise error("duplicate-argument", f'"{name}" is given twice', arg.span)
            filled[name] = (name, arg.value, Broadcast(names, i) if len(names) > 1 else None)
    for layout in sink.spec.layouts:
        if set(layout) == set(filled):
            return [filled[name] for name in layout]
    raise error("wrong-arguments", f"{sink.statement.name} takes {_layouts(sink.spec)}", sink.statement.span,
                f"for example {sink.spec.example}")  # fmt: skip


def _single(sink: SinkStatement, arg: Argument, resolver: Resolver) -> list[_Place]:
    """One argument may be several strands: a bundle, an instance, or an expression over one."""
    spec = sink.spec
    shape = resolver.spread_shape(arg.value, _scope(sink, "", None))
    if shape is None:
        name = next((layout[0] for layout in spec.layouts if len(layout) == 1), None)
        if name is None:
            raise error("wrong-arguments", f"{sink.statement.name} takes {_layouts(spec)}", arg.span)
        return [(name, arg.value, None)]
    longest_first = sorted(spec.layouts, key=len, reverse=True)
    named = next((lay for lay in longest_first if len(lay) > 1 and set(lay) <= set(shape.names)
                  and set(lay) <= set(spec.spread)), None)  # fmt: skip
    layout = named or next((lay for lay in spec.layouts if len(lay) == len(shape)), None)
    if layout is None:
        what = "this bundle has" if isinstance(arg.value, Bundle) else "this is"
        raise error("wrong-arguments", f"{what} {len(shape)} strands, and {sink.statement.name} takes {_layouts(spec)}",
                    arg.span)  # fmt: skip
    return [(name, arg.value, Broadcast(layout, i)) for i, name in enumerate(layout)]


def _layout_of(sink: SinkStatement, count: int, args: list[Argument]) -> tuple[str, ...]:
    """The places that positional arguments fill: those of the layout with as many places as there are strands."""
    labelled = sum(len(_labelled(sink.spec, a)) for a in args if a.label is not None)
    layout = next((lay for lay in sink.spec.layouts if len(lay) == count + labelled), None)
    if layout is None:
        longest = max(len(lay) for lay in sink.spec.layouts)
        span = args[longest].span if len(args) > longest else sink.statement.span
        raise error("wrong-arguments", f"{sink.statement.name} takes {_layouts(sink.spec)}, and this is "
                    f"{count + labelled}", span, f"for example {sink.spec.example}")  # fmt: skip
    return layout


def _labelled(spec: ContextSpec, arg: Argument) -> tuple[str, ...]:
    label = arg.label or ""
    names = (spec.label_groups or {}).get(label) or ((label,) if any(label in lay for lay in spec.layouts) else None)
    if names is None:
        known = [*dict.fromkeys(n for lay in spec.layouts for n in lay), *(spec.label_groups or {})]
        raise error("unknown-argument", f'{spec.statements[0]} has no argument "{label}"', arg.label_span or arg.span,
                    f"it has {', '.join(known)}")  # fmt: skip
    return names


def _layouts(spec: ContextSpec) -> str:
    counts = [str(len(layout)) for layout in spec.layouts]
    return f"{', '.join(counts[:-1])} or {counts[-1]} strands" if len(counts) > 1 else f"{counts[0]} strands"


# --- the graph ---

T = TypeVar("T")


@dataclass(frozen=True)
class _Attempt:
    """Does one piece of work after another, and reports the errors of each."""

    patch: Patch
    report: Report
    budget: Budget

    def __call__(self, work: Callable[[], T], within: Walkable | None = None) -> T | None:
        """The result of some work on an expression or statement; None if it failed, or if the budget is spent, which is
        reported only once."""
        if self.budget.is_spent:
            return None
        try:
            return work()
        except WeftError as failure:
            self.report.add(at_the_call(d, self.patch, within) for d in failure.diagnostics)
        except PoisonedError:
            pass
        return None


@dataclass
class _Findings:
    """The results of elaborating every strand and sink."""

    elaborator: Elaborator[Shape]
    parts: dict[str, list[SinkPart]] = field(default_factory=dict)


def build_graph(patch: Patch, contexts: ContextTable, report: Report, budget: Budget | None = None) -> RenderGraph:
    """Checks all of a patch and builds its render graph. Parts with errors are reported and left out."""
    budget = budget or Budget()
    domain = ShapeDomain()
    attempt = _Attempt(patch, report, budget)
    findings = _elaborate(patch, domain, attempt, budget)
    _settle_state(findings.elaborator, domain, attempt)
    graph = _untagged(patch, findings)
    facts = {ref: _fact(ref, findings.elaborator, domain.planar) for ref in graph.strands()}
    return partition(tag(graph, facts, contexts))


def _elaborate(patch: Patch, domain: ShapeDomain, attempt: _Attempt, budget: Budget) -> _Findings:
    env = Environment(domain, patch.settings, ("absframe",), OWN)
    elaborator: Elaborator[Shape] = Elaborator(patch, domain, env, budget)
    findings = _Findings(elaborator)
    for instance in patch.instances.values():
        for name, output in instance.outputs.items():
            attempt(partial(elaborator.strand, StrandRef(instance.name, name), OWN), value_of(output))
    for sink in patch.sinks:
        with budget.within(sink.statement.span, "statement"):
            parts = attempt(partial(sink_parts, sink, elaborator.resolver)) or []
        findings.parts[sink.label] = parts
        for part in parts:
            attempt(partial(elaborator.expression, part.value, part.scope, sink.label, OWN), part.value)
    _check_uncalled(patch, elaborator, attempt)
    _finish(elaborator, attempt)
    return findings


def _finish(
    elaborator: Elaborator[Shape], attempt: _Attempt, found: Callable[[str, Shape], None] | None = None
) -> None:
    while elaborator.has_pending and not attempt.budget.is_spent:
        attempt(partial(elaborator.finish, found))


def _settle_state(elaborator: Elaborator[Shape], domain: ShapeDomain, attempt: _Attempt) -> None:
    """Finds the planar slots. A slot may depend on other slots and on itself, so a slot found planar can make others
    planar, and the state is evaluated until no more are found. Nothing else depends on this. The order is reversed
    each time, since a slot may come before or after those that it reads."""

    def see(key: str, shape: Shape) -> None:
        if shape.over & PLANE:
            domain.planar.add(key)

    for (key, _), shape in elaborator.updates.items():
        see(key, shape)
    known, last_first = 0, False
    while known < len(domain.planar) and not attempt.budget.is_spent:
        known = len(domain.planar)
        elaborator.restart(last_first)
        last_first = not last_first
        _finish(elaborator, attempt, see)


def _check_uncalled(patch: Patch, elaborator: Elaborator[Shape], attempt: _Attempt) -> None:
    """Checks every statement of every spindle, called or not, with arguments about which nothing is known."""
    for spindle in patch.spindles.values():
        if not spindle.span.source.library:
            _check_body(spindle, elaborator, attempt)


def _check_body(spindle: SpindleDefinition, elaborator: Elaborator[Shape], attempt: _Attempt) -> None:
    scope = Scope(f"(check {spindle.name.name})")
    arguments = [Opaque() for _ in spindle.parameters]
    outputs = {output.name for output in spindle.outputs}

    steps: list[tuple[BodyStatement, Scope]] = []
    enter = partial(elaborator.resolver.enter, spindle, arguments, scope, scope.path, spindle.name.span)
    with elaborator.budget.within(spindle.name.span, "strand"):
        attempt(partial(enter, lambda statement, after: steps.append((statement, after))))
    for statement, after in steps:
        for name in elaborator.resolver.ordinals.assigned([statement]):
            members = partial(_members, after.locals.get(name), name not in outputs, elaborator.resolver)
            for member in attempt(members, statement) or ():
                attempt(partial(elaborator.evaluate, member, scope.path, OWN, statement.span), statement)


def _members(local: Local | None, several: bool, resolver: Resolver) -> Sequence[Member]:
    """The strands of a local of a body: a name that is not an output may stand for several."""
    group = local if isinstance(local, StrandGroup) else None
    if several and isinstance(local, Closure):
        group = resolver.group(local.value, local.scope)
    if group is not None:
        return group.members
    return () if local is None or isinstance(local, StrandGroup) else (local,)


def _dependencies(elaborator: Elaborator[Shape], owner: object) -> list[object]:
    """The other owners whose evaluation shows what the slots of this one need to advance: the slots, and the output
    that was evaluated first if several outputs of an instance share them."""
    return sorted(reachable([owner], elaborator.dependencies) - {owner}, key=str)


def _reads(elaborator: Elaborator[Shape], owner: object) -> tuple[Edge, ...]:
    strong = elaborator.references.get(owner, {})
    edges = {ref: Edge(ref) for ref in strong}
    for dependency in _dependencies(elaborator, owner):
        for ref in elaborator.references.get(dependency, {}):
            edges.setdefault(ref, Edge(ref, weak=True))
    return tuple(edges.values())


def _sources(elaborator: Elaborator[Shape], owner: object) -> dict[str, Span]:
    found = dict(elaborator.sources_of.get(owner, {}))
    for dependency in _dependencies(elaborator, owner):
        found.update(elaborator.sources_of.get(dependency, {}))
    return found


def _fact(ref: StrandRef, elaborator: Elaborator[Shape], planar: set[str]) -> Fact:
    # The slots of the strand, and those that these need to advance.
    keys = {str(key) for key in reachable(elaborator.slots_of.get(ref, ()), elaborator.slots_of)}
    owners = [SOURCES[name].owner for name in _sources(elaborator, ref)]
    return Fact(
        slots=frozenset(keys),
        planar=not planar.isdisjoint(keys),
        owner=next((owner for owner in owners if owner), None),
    )


def _untagged(patch: Patch, findings: _Findings) -> RenderGraph:
    e = findings.elaborator
    nodes = tuple(
        GraphNode(instance.name, _kind(instance), tuple(
            _strand(e, output) for output in instance.outputs.values()
        ))
        for instance in patch.instances.values()
    )  # fmt: skip
    sinks = tuple(
        Sink(s.label, s.spec.name, str(s.statement.head), tuple(p.label for p in findings.parts[s.label]),
             _reads(e, s.label), s.target)
        for s in patch.sinks
    )  # fmt: skip
    return RenderGraph(nodes, sinks, ())


def _strand(elaborator: Elaborator[Shape], output: OutputDefinition) -> Strand:
    ref = StrandRef(output.instance, output.name)
    return Strand(ref, str(output.span), _reads(elaborator, ref), sources=tuple(_sources(elaborator, ref)))


def _kind(instance: Instance) -> str:
    match next(iter(instance.outputs.values())).definition:
        case FromSource():
            return "source"
        case FromCache():
            return "cache"
        case FromParameter():
            return "parameter"
        case _:
            return "strands"
