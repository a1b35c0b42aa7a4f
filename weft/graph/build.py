"""The render graph of a patch: every statement is checked, every strand learns what it reads and remembers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from weft.contexts import ContextTable
from weft.errors import Report, Span, WeftError
from weft.graph.blame import at_the_call, value_of
from weft.graph.budget import Budget
from weft.graph.elaborate import Elaborator
from weft.graph.fields import Environment
from weft.graph.nodes import Edge, Node, RenderGraph, Sink, Strand
from weft.graph.order import reachable
from weft.graph.partition import partition
from weft.graph.patch import FromCache, FromParameter, FromSource, Instance, OutputDefinition, Patch
from weft.graph.resolve import Resolver
from weft.graph.scope import Closure, Group, Local, Member, Opaque, PoisonedError, Scope
from weft.graph.shape import OWN, PLANE, Shape, ShapeDomain
from weft.graph.sinks import SinkPart, sink_parts
from weft.graph.tag import Fact, tag
from weft.names import StrandRef
from weft.sources import SOURCES
from weft.syntax.ast import BodyStatement, SpindleDefinition
from weft.syntax.walk import Walkable

T = TypeVar("T")


@dataclass(frozen=True)
class _Attempt:
    """Does one piece of work after another, and reports what is wrong with each."""

    patch: Patch
    report: Report
    budget: Budget

    def __call__(self, work: Callable[[], T], within: Walkable | None = None) -> T | None:
        """The result of some work on an expression or statement; None where it failed, or nothing is left to do it
        with, which has been told once then."""
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
    """What elaboration found out about every strand and sink."""

    elaborator: Elaborator[Shape]
    parts: dict[str, list[SinkPart]] = field(default_factory=dict)


def build_graph(patch: Patch, contexts: ContextTable, report: Report, budget: Budget | None = None) -> RenderGraph:
    """Checks all of a patch and builds its render graph. What is wrong is reported; the graph then lacks it."""
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
    """Finds the planar slots: what a slot keeps may depend on other slots and on itself, so that those found planar can
    make others so. Nothing else that elaboration finds out depends on this, so only the state is evaluated again:
    forwards and backwards in turn, since slots may stand before or behind those that they read."""

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
    """Every statement of every spindle is checked, called or not, with arguments about which nothing is known."""
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
        attempt(partial(enter, lambda statement, behind: steps.append((statement, behind))))
    for statement, behind in steps:
        for name in elaborator.resolver.ordinals.assigned([statement]):
            members = partial(_members, behind.locals.get(name), name not in outputs, elaborator.resolver)
            for member in attempt(members, statement) or ():
                attempt(partial(elaborator.evaluate, member, scope.path, OWN, statement.span), statement)


def _members(local: Local | None, several: bool, resolver: Resolver) -> Sequence[Member]:
    """The strands that a local of a body is: a name that is no output may stand for several."""
    group = local if isinstance(local, Group) else None
    if several and isinstance(local, Closure):
        group = resolver.group(local.value, local.scope)
    if group is not None:
        return group.members
    return () if local is None or isinstance(local, Group) else (local,)


def _all_slots(elaborator: Elaborator[Shape], owner: object) -> set[str]:
    """The slots of an owner, and those that these need to advance."""
    return {str(key) for key in reachable(elaborator.slots_of.get(owner, ()), elaborator.slots_of)}


def _behind(elaborator: Elaborator[Shape], owner: object) -> list[object]:
    """The other owners whose evaluation shows what the slots of this one need to advance: these slots, and where an
    instance shares them among its outputs, the output that was evaluated first."""
    return sorted(reachable([owner], elaborator.behind) - {owner}, key=str)


def _reads(elaborator: Elaborator[Shape], owner: object) -> tuple[Edge, ...]:
    strong = elaborator.references.get(owner, {})
    edges = {ref: Edge(ref) for ref in strong}
    for behind in _behind(elaborator, owner):
        for ref in elaborator.references.get(behind, {}):
            edges.setdefault(ref, Edge(ref, weak=True))
    return tuple(edges.values())


def _sources(elaborator: Elaborator[Shape], owner: object) -> dict[str, Span]:
    found = dict(elaborator.sources_of.get(owner, {}))
    for behind in _behind(elaborator, owner):
        found.update(elaborator.sources_of.get(behind, {}))
    return found


def _fact(ref: StrandRef, elaborator: Elaborator[Shape], planar: set[str]) -> Fact:
    keys = _all_slots(elaborator, ref)
    owners = [SOURCES[name].owner for name in _sources(elaborator, ref)]
    return Fact(
        slots=frozenset(keys),
        planar=not planar.isdisjoint(keys),
        owner=next((owner for owner in owners if owner), None),
    )


def _untagged(patch: Patch, findings: _Findings) -> RenderGraph:
    e = findings.elaborator
    nodes = tuple(
        Node(instance.name, _kind(instance), tuple(
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
