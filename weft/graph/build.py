"""From a patch to its render graph: checks every statement, and finds what every strand reads and remembers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import floor, isfinite
from typing import TypeVar

from weft.contexts import AUDIO, ContextSpec, ContextTable
from weft.errors import Diagnostic, Report, Span, WeftError, error
from weft.graph.budget import Budget
from weft.graph.calls import text_as_number
from weft.graph.components import components, reachable
from weft.graph.domain import OWN, PLACES, PLANE, Shape, SlotKey
from weft.graph.evaluation import Owner
from weft.graph.kept_shapes import GraphBasis, GraphCut, KeptShapes
from weft.graph.nodes import Edge, GraphNode, Image, RenderGraph, Sink, Strand, Subgraph
from weft.graph.partition import Fact, partition, tag
from weft.graph.patch import Broadcast, FromCache, FromParameter, FromSource, Instance, Patch, SinkStatement
from weft.graph.resolve import Resolver
from weft.graph.scope import (
    Closure, HeardStrand, Local, Member, Opaque, PoisonedError, Scope, StrandGroup, pick_hint, strands
)
from weft.names import StrandRef
from weft.sources import FILM, SOURCES, owner_of
from weft.syntax.ast import (
    Argument, BodyStatement, Bundle, Call, Expression, Number, SpindleDefinition, Text, Walkable, walk
)

# Of more layouts than this, messages name only the ends.
_MOST_NAMED = 8

# --- errors in the bodies of spindles, and the calls that lead there ---


def at_the_call(found: Diagnostic, patch: Patch, within: Walkable | None) -> Diagnostic:
    """A diagnostic in the body of a spindle, with the call that led there. The call is looked for `within` an
    expression or statement; if there are several, all of `within` is marked. A diagnostic in a library is moved to the
    call, and its place in the library is shown as a further one. A diagnostic that is in no body, or for which there is
    no call, stays unchanged."""
    if found.span is None or within is None or _holds(within.span, found.span):
        return found
    blamed = next((s for s in patch.spindles.values() if _holds(s.span, found.span)), None)
    if blamed is None:
        return found
    calls = list(_calls(within, patch))
    suspects = [(call, called) for call, called in calls if called is blamed]
    suspects = suspects or [(call, called) for call, called in calls if blamed in _reached(called, patch)]
    if not suspects:
        return found
    span = suspects[0][0].span if len(suspects) == 1 else within.span
    if not found.span.source.library:
        return replace(found, related=(*found.related, (span, "this call leads there")))
    names = dict.fromkeys(spindle.name.name for _, spindle in suspects)
    words = f"{' or '.join(names)} cannot be called like this: {found.message}"
    return replace(
        found, message=words, span=span, hint=f"weft help {next(iter(names))} says what it takes",
        related=((found.span, "it is found here"), *found.related),
    )  # fmt: skip


def _holds(outer: Span, inner: Span) -> bool:
    return outer.source is inner.source and outer.start <= inner.start and inner.end <= outer.end


def _calls(within: Walkable, patch: Patch) -> Iterator[tuple[Call, SpindleDefinition]]:
    """The calls of spindles in an expression or statement."""
    for node in walk(within):
        if isinstance(node, Call) and (spindle := patch.spindles.get(node.name)) is not None:
            yield node, spindle


def _reached(spindle: SpindleDefinition, patch: Patch) -> set[SpindleDefinition]:
    """The spindles that a call of one leads to."""
    found: set[SpindleDefinition] = set()
    waiting = [spindle]
    while waiting:
        each = waiting.pop()
        if each not in found:
            found.add(each)
            waiting += (callee for statement in each.body for _, callee in _calls(statement, patch))
    return found


# --- what an output statement consumes: one strand for each place of its context ---


@dataclass(frozen=True, slots=True, eq=False)
class SinkPart:
    """One strand that an output statement consumes. `label` is its unique name, such as `display.r`."""

    label: str
    value: Expression
    scope: Scope


def sink_parts(sink: SinkStatement, resolver: Resolver) -> list[SinkPart]:
    """The strands of an output statement, in the order of its context's places. Raises WeftError for arguments that it
    cannot take."""
    args = [a for a in sink.statement.args if not (a.label == "to" and sink.spec.targets)]
    args = args[1:] if sink.spec.addressed else args
    for arg in args:
        if isinstance(arg.value, Text):
            raise text_as_number(arg.value)
    if not args:
        raise error("missing-argument", f"{sink.statement.name} needs at least one strand", sink.statement.span,
                    f"for example {sink.spec.example}")  # fmt: skip
    bare = next((arg for arg in args if arg.label is None), None)
    if sink.spec.labelled and bare is not None:
        raise error("missing-label", f"{sink.statement.name} needs to know what this is", bare.span,
                    f"for example {sink.spec.example}")  # fmt: skip
    places = _laid_out(sink, args, resolver) if sink.spec.layouts else _free_places(sink, args, resolver)
    return [SinkPart(f"{sink.label}.{name}", value, _scope(sink, name, broadcast)) for name, value, broadcast in places]


def mixed_channels(sink: SinkStatement, parts: Sequence[SinkPart], resolver: Resolver) -> Diagnostic | None:
    """A warning where the outputs of one source are taken as the channels of a picture or a sound, although they are of
    different kinds: the note, velocity, gate and age of `midi_note()`."""
    value = parts[0].value
    if not sink.spec.layouts or len(parts) < 2 or any(part.value is not value for part in parts):
        return None
    shape = resolver.several(value, _scope(sink, "", None))
    names = () if shape is None else shape.names
    mixed = (spec for spec in SOURCES.values() if spec.is_mixed)
    source = next((spec for spec in mixed if names and set(names) <= {*spec.outputs, *spec.further}), None)
    if source is None:
        return None
    listed = f"{', '.join(names[:-1])} and {names[-1]}"
    return Diagnostic(
        "warning", "outputs-as-channels", f"this takes {listed} of {source.name} as {len(names)} channels", value.span,
        f"one of them is meant: {source.name}(…)@{names[0]}",
    )  # fmt: skip


def beyond_ranges(
    sink: SinkStatement, parts: Sequence[SinkPart], constant: Callable[[SinkPart], float | None]
) -> Iterator[Diagnostic]:
    """Warnings of constants that an output statement does not take. `constant` gives the number of a part, if it has
    one."""
    spec, name, ranges = sink.spec, sink.statement.name, sink.spec.ranges
    if not ranges:
        return
    by_label = {part.label.removeprefix(f"{sink.label}."): part for part in parts}
    count = len(by_label.keys() - ranges.keys())
    for label, (least, most) in ranges.items():
        part = by_label.get(label)
        number = least if part is None else constant(part)
        if number is None:
            continue
        rounded = floor(number + 0.5) if isfinite(number) else least - 1
        place, last = sink.statement.span if part is None else part.value.span, rounded + count - 1
        if not least <= rounded <= most:
            words = f"{label} is {number:g}, and {name} takes {least} to {most}"
            yield Diagnostic.of("number-out-of-range", words, place, f"for example {spec.example}")
        elif label == spec.first and last > most:
            words = f"the last of these {count} values would be number {last} of {most}"
            room = f"{label}: {most - count + 1} has room for {count}"
            yield Diagnostic.of("number-out-of-range", words, place, room if count <= most else "use two statements")


def _scope(sink: SinkStatement, name: str, broadcast: Broadcast | None) -> Scope:
    return Scope(f"{sink.label}@{name}", broadcast=broadcast)


_Place = tuple[str, Expression, "Broadcast | None"]


def _free_places(sink: SinkStatement, args: list[Argument], resolver: Resolver) -> list[_Place]:
    """Any number of strands; a group gives one for each of its members."""
    hint = "join(…) makes one bundle of several, or " if sink.spec.addressed else "give it a label, or "
    _check_alone(sink, args, resolver, hint)
    places: list[_Place] = []
    for arg in args:
        shape = resolver.several(arg.value, _scope(sink, "", None))
        if shape is None:
            places.append((arg.label or str(len(places)), arg.value, None))
            continue
        names = tuple(n or str(i) for i, n in enumerate(shape.names))
        prefix = f"{arg.label}@" if arg.label else ""
        places += [(prefix + name, arg.value, Broadcast(names, i)) for i, name in enumerate(names)]
    return places


def _check_alone(sink: SinkStatement, args: Sequence[Argument], resolver: Resolver, hint: str = "") -> None:
    """Raises WeftError for a bundle that does not stand alone among the arguments without labels."""
    unlabelled = [arg for arg in args if arg.label is None]
    for arg in unlabelled if len(unlabelled) > 1 else ():
        shape = resolver.several(arg.value, _scope(sink, "", None))
        if shape is not None:
            raise error("several-strands", f"this is {strands(shape)}, and next to other arguments, one is needed",
                        arg.span, hint + pick_hint(arg.value.span, shape))  # fmt: skip


def _laid_out(sink: SinkStatement, args: list[Argument], resolver: Resolver) -> list[_Place]:
    """The places of one of the context's layouts. The name of the statement may label its only argument, too."""
    if len(args) == 1 and args[0].label in (None, sink.spec.statements[0]):
        return _single(sink, args[0], resolver)
    _check_alone(sink, args, resolver)
    filled: dict[str, _Place] = {}
    positional = () if sink.spec.labelled else _layout_of(sink, sum(a.label is None for a in args), args)
    for position, arg in enumerate(args):
        names = (positional[position],) if arg.label is None else _labelled(sink.spec, arg)
        for i, name in enumerate(names):
            if name in filled and [a.label for a in args].count(arg.label) > 1:
                continue  # the parser has reported it
            if name in filled:
                raise error("duplicate-argument", f'"{name}" is given twice', arg.span)
            filled[name] = (name, arg.value, Broadcast(names, i) if len(names) > 1 else None)
    more = [name for name in sink.spec.optional if name in filled]
    for layout in sink.spec.layouts:
        if {*layout, *more} == set(filled):
            return [filled[name] for name in (*layout, *more)]
    if sink.spec.merge == "sum" and all(arg.label is not None for arg in args):
        # Some sides of a sound by their labels: the others are silent.
        silence = Number(0.0, sink.statement.span)
        for layout in sorted(sink.spec.layouts, key=len):
            if set(filled) <= set(layout):
                return [filled.get(name, (name, silence, None)) for name in layout]
    raise error("wrong-arguments", f"{sink.statement.name} takes {_layouts(sink.spec)}", sink.statement.span,
                f"for example {sink.spec.example}")  # fmt: skip


def _single(sink: SinkStatement, arg: Argument, resolver: Resolver) -> list[_Place]:
    """One argument may be several strands: a bundle, an instance, or an expression over one."""
    spec = sink.spec
    shape = resolver.several(arg.value, _scope(sink, "", None))
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
        hint = "sum(…) makes one strand of all of them" if spec.merge == "sum" else "@rgb or [0] takes some of them"
        raise error("wrong-arguments", f"{what} {len(shape)} strands, and {sink.statement.name} takes {_layouts(spec)}",
                    arg.span, hint)  # fmt: skip
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
    places = dict.fromkeys(name for layout in (*spec.layouts, spec.optional) for name in layout)
    names = (spec.label_groups or {}).get(label) or ((label,) if label in places else None)
    if names is None:
        known = [*places, *(spec.label_groups or {})]
        if len(known) > 2 * _MOST_NAMED:
            known = [*known[: _MOST_NAMED + 2], "…", known[-1]]
        raise error("unknown-argument", f'{spec.statements[0]} has no argument "{label}"', arg.label_span or arg.span,
                    f"it has {', '.join(known)}")  # fmt: skip
    return names


def _layouts(spec: ContextSpec) -> str:
    if spec.labelled:
        found = [" ".join(f"{name}:" for name in layout) for layout in spec.layouts]
        return f"{', '.join(found[:-1])} or {found[-1]}"
    lengths = [len(layout) for layout in spec.layouts]
    if len(lengths) > _MOST_NAMED and lengths == [*range(lengths[0], lengths[-1] + 1)]:
        return f"{lengths[0]} to {lengths[-1]} strands"
    counts = list(map(str, lengths))
    return f"{', '.join(counts[:-1])} or {counts[-1]} strands" if len(counts) > 1 else f"{counts[0]} strands"


# --- the graph ---

T = TypeVar("T")


def build_graph(
    patch: Patch, contexts: ContextTable, report: Report, budget: Budget | None = None, known: KeptShapes | None = None
) -> RenderGraph:
    """Checks all of a patch and builds its render graph. Parts with errors are reported and left out. What is `known`
    is not evaluated again."""
    return checked(patch, report, budget, known).graph(contexts)


def checked(
    patch: Patch, report: Report, budget: Budget | None = None, known: KeptShapes | None = None
) -> CheckedPatch:
    """Checks all of a patch. Parts with errors are reported and left out. What is `known` is not evaluated again."""
    budget = budget or Budget()
    shapes = known or KeptShapes.of(patch, budget)
    builder = _GraphBuilder(patch, report, budget, shapes)
    if not shapes.is_same:
        builder.elaborate()
        if builder.settle_state() and known is not None:  # the next patch is compared with what was forgotten
            builder.evaluate()
        shapes.is_whole = not report.errors
    report.add(shapes.warnings)
    return CheckedPatch(builder, shapes)


class CheckedPatch:
    """A patch that was checked. Its graph can be made until the next patch is checked with what is known of this one:
    nothing is wrong with a patch that only its graph shows."""

    def __init__(self, builder: _GraphBuilder, known: KeptShapes) -> None:
        self._builder = builder
        self._known = known

    def graph(self, contexts: ContextTable) -> RenderGraph:
        """The render graph of all that has no errors."""
        if not self._known.is_cut or self._known.cut is None:
            self._known.cut = _cut_again(self._builder, contexts, self._known.cut)
            self._known.is_cut = True
        return _placed(self._known.cut.graph, self._builder.patch)


def _cut_again(builder: _GraphBuilder, contexts: ContextTable, last: GraphCut | None) -> GraphCut:
    """The graph that was found. It has the subgraphs of the `last` one if what determines them is the same."""
    basis = builder.basis()
    if last is not None and last.basis == basis:
        return last
    used = builder.used()
    follows = basis.of(used)
    if last is not None and last.used == follows:
        return GraphCut(basis, follows, builder.with_unused(last.graph, used))
    return GraphCut(basis, follows, _cut(builder, contexts))


def _placed(graph: RenderGraph, patch: Patch) -> RenderGraph:
    """A graph with the places of the output statements of a patch."""
    sinks = zip(graph.sinks, patch.sinks, strict=True)
    return replace(graph, sinks=tuple([replace(sink, place=str(now.statement.head)) for sink, now in sinks]))


def _cut(builder: _GraphBuilder, contexts: ContextTable) -> RenderGraph:
    """The graph that was found, with its subgraphs."""
    graph, facts = builder.untagged()
    cut = partition(tag(graph, facts, contexts), contexts)
    if not cut.images:
        return cut
    planes = {spec.name for spec in contexts if spec.sweeps_plane}
    elsewhere = {sink.label for sink in cut.sinks if sink.context not in planes}
    cut = replace(cut, images=tuple(image for image in cut.images if image.of not in elsewhere))
    subgraphs = tuple(_with_images(s, cut) if s.context in planes else s for s in cut.subgraphs)
    return replace(cut, subgraphs=subgraphs)


def _with_images(subgraph: Subgraph, graph: RenderGraph) -> Subgraph:
    """A subgraph of a picture, with the images that its instances and its output statements ask for."""
    asking = {*(ref.instance for ref in subgraph.strands), *subgraph.sinks}
    owners = ((image.key, image.of.instance if isinstance(image.of, StrandRef) else image.of) for image in graph.images)
    return replace(subgraph, images=tuple(key for key, owner in owners if owner in asking))


_KINDS: Mapping[type, str] = {FromSource: "source", FromCache: "cache", FromParameter: "parameter"}
"""The kinds of instances by the definition of an output; those of all others are `strands`."""

_HEARD = "heard"
"""The kind of what an analysis hears."""


def _kind(instance: Instance) -> str:
    return _KINDS.get(type(next(iter(instance.outputs.values())).definition), "strands")



def _way_round(first: StrandRef, reads: Mapping[StrandRef, Collection[StrandRef]]) -> list[StrandRef]:
    """The shortest path from a strand back to itself, with both ends."""
    came_from: dict[StrandRef, StrandRef] = {}
    waiting = deque([first])
    while first not in came_from:
        at = waiting.popleft()
        for ref in reads.get(at, ()):
            if ref not in came_from:
                came_from[ref] = at
                waiting.append(ref)
    way = [first, came_from[first]]
    while way[-1] != first:
        way.append(came_from[way[-1]])
    return way[::-1]


# After this many strands and statements with mistakes, no more are looked for, since a long text can have any number.
_MOST_FAILURES = 2000

# The prefix of the paths of spindles that are checked without being called.
_CHECK = "(check "


def _is_check(owner: Owner) -> bool:
    path = owner.path if isinstance(owner, SlotKey) else owner
    return isinstance(path, str) and path.startswith(_CHECK)


# The scope of names in a patch, outside of spindles.
_PATCH = Scope("")


class _GraphBuilder:
    """Elaborates all of a patch over shapes, and reports the errors of each strand and statement."""

    def __init__(self, patch: Patch, report: Report, budget: Budget, known: KeptShapes) -> None:
        self.patch = patch
        self.report = report
        self.budget = budget
        self.domain = known.domain
        self.elaborator = known.elaborator
        self._checked = known.checked
        self._planar_before = len(known.domain.planar)
        self._labels = known.labels
        self._warnings = known.warnings
        self._failures = 0
        self._of_calls: dict[Diagnostic, Diagnostic] = {}
        """Diagnostics in bodies, each without and with the first call that led there."""

    def attempt(
        self, work: Callable[[], T], within: Walkable | None = None, scope: Scope = _PATCH
    ) -> T | None:
        """The result of some work on an expression or statement in a scope; None if it failed, or if the budget is
        spent, which is reported only once. If it failed, all unknown names in it are reported. After many errors,
        nothing more is attempted."""
        if self.budget.is_spent or self._failures >= _MOST_FAILURES:
            return None
        try:
            return work()
        except WeftError as failure:
            self._failures += 1
            if self._failures == _MOST_FAILURES:
                hint = "fix those above first: the rest was not checked"
                self.report.tell("too-many-errors", "there are too many mistakes", failure.diagnostics[0].span, hint)
            for found in failure.diagnostics:
                at_call = at_the_call(found, self.patch, within)
                if at_call.span is not found.span or at_call is found:
                    self.report.add([at_call])
                else:
                    self._of_calls.setdefault(found, at_call)
            if within is not None:
                self.report.add(self.elaborator.resolver.unknown_names(within, scope))
        except PoisonedError:
            pass
        return None

    def elaborate(self) -> None:
        """Evaluates every strand and statement, and checks the spindles that are not called."""
        elaborator = self.elaborator
        self.evaluate()
        for sink in self.patch.sinks:
            with self.budget.within(sink.statement.span, "statement"):
                parts = self.attempt(partial(sink_parts, sink, elaborator.resolver))
            if parts is None:
                for value in (argument.value for argument in sink.statement.args):
                    self.report.add(elaborator.resolver.unknown_names(value, _PATCH))
            elif (found := mixed_channels(sink, parts, elaborator.resolver)) is not None:
                self._warnings.append(found)
            self._labels[sink.label] = tuple([part.label for part in parts or ()])
            shapes = dict[SinkPart, Shape | None]()
            for part in parts or ():
                expression = partial(elaborator.expression, part.value, part.scope, sink.label, OWN)
                shapes[part] = self.attempt(expression, part.value)
            self._warnings += beyond_ranges(sink, parts or (), partial(self._constant, shapes))
        for spindle in self.patch.spindles.values():
            if not spindle.span.source.library and spindle not in self._checked:
                self._check_body(spindle)
                self._checked.add(spindle)
        self._advance_slots()
        self._hear()
        self._check_cycles()
        # Mistakes that do not depend on the arguments of a spindle were reported without a call.
        self.report.add(at_call for found, at_call in self._of_calls.items() if found not in self.report)

    def _constant(self, shapes: Mapping[SinkPart, Shape | None], part: SinkPart) -> float | None:
        shape = shapes[part]
        return None if shape is None else self.domain.constant(shape)

    def evaluate(self) -> None:
        """Evaluates every strand that is not known."""
        elaborator = self.elaborator
        for instance in self.patch.instances.values():
            for name, output in instance.outputs.items():
                if not elaborator.knows(ref := StrandRef(instance.name, name)):
                    self.attempt(partial(elaborator.strand, ref, OWN), output.value)

    def _advance_slots(self) -> None:
        while self.elaborator.has_pending and not self.budget.is_spent:
            advanced = self.attempt(self.elaborator.advance)
            if advanced is not None and advanced[1].over & PLANE:
                self.domain.planar.add(advanced[0])

    def _hear(self) -> None:
        """Evaluates what analyses hear, which may contain further analyses and state."""
        known: set[StrandRef] = set()
        while waiting := [ref for ref in self.elaborator.heard if ref not in known]:
            for ref in waiting:
                known.add(ref)
                self.attempt(partial(self.elaborator.strand, ref, OWN), self.elaborator.heard[ref].value)
            self._advance_slots()

    def _check_cycles(self) -> None:
        """Reports circles of strands that read one another, if no evaluation has found them. That happens if a strand
        of the circle is kept from another text, or was first evaluated at coordinates where it reads less."""
        references = self.elaborator.references
        reads = {ref: found.strands for ref, found in references.items() if isinstance(ref, StrandRef)}
        for circle in components(sorted(reads, key=self._rank.__getitem__), reads):
            first = min(circle, key=self._rank.__getitem__)
            is_told = any(map(self.elaborator.is_poisoned, circle))
            if not is_told and (len(circle) > 1 or first in reads.get(first, ())):
                self.report.add(self.elaborator.cycle(_way_round(first, reads)).diagnostics)

    def settle_state(self) -> bool:
        """Finds the planar slots, and returns whether values were forgotten for it. A slot may depend on other slots
        and on itself, so each planar slot can make others planar. State is therefore evaluated until no more are found;
        nothing else has to be. Each round has the opposite order, since a slot may come before or after those that it
        reads."""
        known, last_first = self._planar_before, False
        while known < len(self.domain.planar) and not self.budget.is_spent:
            known = len(self.domain.planar)
            self.elaborator.restart(last_first)
            last_first = not last_first
            self._advance_slots()
        return known > self._planar_before

    def _check_body(self, spindle: SpindleDefinition) -> None:
        """Checks every statement of a spindle, called or not, with arguments about which nothing is known."""
        elaborator, path = self.elaborator, f"{_CHECK}{spindle.name.name})"
        outputs = {output.name for output in spindle.outputs}
        arguments = [Opaque(takes) for takes in elaborator.resolver.ordinals.takes_bundles(spindle)]
        steps: list[tuple[BodyStatement, Scope]] = []

        def seen(statement: BodyStatement, after: Scope) -> None:
            steps.append((statement, after))

        with self.budget.within(spindle.name.span, "strand"):
            enter = elaborator.resolver.enter
            self.attempt(partial(enter, spindle, arguments, Scope(path), path, spindle.name.span, seen))
        for statement, after in steps:
            for name in elaborator.resolver.ordinals.assigned([statement]):
                members = partial(self._members, after.get(name), name not in outputs or len(outputs) == 1)
                for member in self.attempt(members, statement, after) or ():
                    evaluation = partial(elaborator.member, member, OWN, statement.span)
                    self.attempt(partial(elaborator.evaluate, evaluation, path, statement.span), statement, after)

    def _members(self, local: Local | None, several: bool) -> Sequence[Member]:
        """The strands of a local of a body. A local may be a bundle, unless it is one of several outputs."""
        group = local if isinstance(local, StrandGroup) else None
        if several and isinstance(local, Closure):
            group = self.elaborator.resolver.group(local.value, local.scope)
        if group is not None:
            return group.members
        return () if local is None or isinstance(local, StrandGroup) else (local,)

    # --- what was found -------------------------------------------------------------------------------------------

    def basis(self) -> GraphBasis:
        elaborator = self.elaborator
        instances = self.patch.instances.values()
        references = {owner: found.all for owner, found in elaborator.references.items() if not _is_check(owner)}
        over = {ref: found for ref in references if isinstance(ref, StrandRef) and (found := self._over(ref))}
        return GraphBasis(
            [(instance.name, _kind(instance), list(instance.outputs)) for instance in instances],
            [(s.label, s.spec.name, s.target, self._labels[s.label]) for s in self.patch.sinks],
            references,
            over,
            {key for key in self.domain.planar if not _is_check(key)},
            dict(elaborator.heard),
            [(image.key, image.of) for image in self._images],
        )  # fmt: skip

    def used(self) -> set[Owner]:
        """Everything on which subgraphs may depend: what output statements need, and what shares state with that. The
        other strands remember nothing, and none of these reads them."""
        references = self.elaborator.references
        found: set[Owner] = set()
        waiting: list[Owner] = [sink.label for sink in self.patch.sinks]
        waiting += [owner for owner, each in references.items() if each.slots or each.images or each.heard]
        while waiting:
            owner = waiting.pop()
            if owner not in found:
                found.add(owner)
                if (each := references.get(owner)) is not None:
                    waiting += (*each.strands, *each.slots, *each.images, *each.heard, *each.asked_by)
        return found

    def with_unused(self, cut: RenderGraph, used: Container[Owner]) -> RenderGraph:
        """The graph, with the subgraphs of `cut`. The two graphs differ only in strands that are not used."""
        known = {strand.ref: strand for node in cut.nodes for strand in node.strands}
        nodes = []
        for instance in self.patch.instances.values():
            strands = []
            for output in instance.outputs.values():
                ref = StrandRef(instance.name, output.name)
                if ref in used:
                    strands.append(known[ref])
                else:
                    strands.append(self._strand(ref, output.span)[0])
            nodes.append(GraphNode(instance.name, _kind(instance), tuple(strands)))
        heard = [node for node in cut.nodes if node.kind == _HEARD]
        return replace(cut, nodes=(*nodes, *heard))

    def untagged(self) -> tuple[RenderGraph, dict[StrandRef, Fact]]:
        """The graph without contexts and subgraphs, and what ties each strand to a context."""
        facts: dict[StrandRef, Fact] = {}
        nodes = []
        for instance in self.patch.instances.values():
            strands = []
            for output in instance.outputs.values():
                ref = StrandRef(instance.name, output.name)
                strand, slots = self._strand(ref, output.span)
                strands.append(strand)
                owner = next((owner for name in strand.sources if (owner := owner_of(name))), None)
                facts[ref] = Fact(slots, not slots.isdisjoint(self.domain.planar), owner)
            nodes.append(GraphNode(instance.name, _kind(instance), tuple(strands)))
        sinks = [
            Sink(s.label, s.spec.name, str(s.statement.head), self._labels[s.label], self._found(s.label)[0], s.target,
                 self._maps(s.label))
            for s in self.patch.sinks
        ]  # fmt: skip
        facts = self._with_films(nodes, facts)
        heard: dict[StrandRef, HeardStrand] = {}
        edges = [edge for node in nodes for strand in node.strands for edge in strand.reads]
        edges += [edge for sink in sinks for edge in sink.reads]
        while edges:
            ref = edges.pop(0).source
            if ref not in self.elaborator.heard or ref in heard:
                continue
            heard[ref] = self.elaborator.heard[ref]
            strand, slots = self._strand(ref, heard[ref].value.span)
            edges += strand.reads
            facts[ref] = Fact(slots, not slots.isdisjoint(self.domain.planar), AUDIO.name, is_heard=True)
            nodes.append(GraphNode(ref.instance, _HEARD, (strand,)))
        return RenderGraph(tuple(nodes), tuple(sinks), (), self._images, heard), facts

    def _with_films(self, nodes: Sequence[GraphNode], facts: Mapping[StrandRef, Fact]) -> dict[StrandRef, Fact]:
        """The facts about strands. A strand that reads a film at another time is tied to the owner of films, since no
        other context can read one so."""
        strands = {strand.ref: strand for node in nodes for strand in node.strands}
        films = {ref for ref, strand in strands.items() if FILM.name in strand.sources}
        if not films:
            return dict(facts)
        reads: dict[object, list[StrandRef]] = {ref: [edge.source for edge in s.reads] for ref, s in strands.items()}
        mapping = {ref for ref in facts if ref in self.elaborator.references}
        mapping = {ref for ref in mapping if self.elaborator.references[ref].maps_time}
        tied = {ref for ref in mapping if not films.isdisjoint(reachable([ref], reads))}
        return {ref: replace(fact, owner=FILM.owner) if ref in tied else fact for ref, fact in facts.items()}

    @cached_property
    def _images(self) -> tuple[Image, ...]:
        """The images that vary over the picture, in the order of the strands and sinks that first ask for them."""
        asking: dict[SlotKey, set[Owner]] = {}
        for owner, found in self.elaborator.references.items():
            for key in self.domain.planar.intersection(found.images):
                asking.setdefault(key, set()).add(owner)
        first: list[tuple[int, SlotKey, StrandRef | str]] = []
        for key, owners in asking.items():
            roots = (each for each in reachable(owners, self._askers) if not isinstance(each, SlotKey))
            ranked = [(self._rank[each], each) for each in roots if each in self._rank]
            if ranked:
                rank, of = min(ranked, key=lambda each: each[0])
                first.append((rank, key, of))
        slots = self.elaborator.slots
        return tuple(Image(str(key), str(slots[key].span), of) for _, key, of in sorted(first, key=lambda f: f[:2]))

    @cached_property
    def _rank(self) -> Mapping[StrandRef | str, int]:
        """The place of each strand and sink in the order of the text; then what is heard, which has no name there."""
        strands = (StrandRef(i.name, output) for i in self.patch.instances.values() for output in i.outputs)
        sinks = (sink.label for sink in self.patch.sinks)
        owners: list[StrandRef | str] = [*strands, *sinks, *sorted(self.elaborator.heard)]
        return {owner: place for place, owner in enumerate(owners)}

    @cached_property
    def _askers(self) -> Mapping[Owner, Collection[Owner]]:
        """The owners that have asked for each slot."""
        return {key: found.asked_by for key, found in self.elaborator.references.items() if isinstance(key, SlotKey)}

    def _strand(self, ref: StrandRef, span: Span) -> tuple[Strand, frozenset[SlotKey]]:
        """A strand, without what partitioning finds, and its slots."""
        reads, sources, slots = self._found(ref)
        axes = tuple(sorted(self._axes.get(ref, ())))
        made = Strand(ref, str(span), reads, sources=sources, axes=axes, maps=self._maps(ref), over=self._over(ref))
        return made, slots

    def _over(self, ref: StrandRef) -> tuple[str, ...]:
        """The base coordinates on which a strand depends, apart from the time, if it may be tied to a context."""
        found = self.elaborator.references.get(ref)
        if found is None or not (found.slots or found.sources):
            return ()
        try:
            shape = self.elaborator.strand(ref, OWN)
        except (WeftError, PoisonedError):
            return ()
        return tuple([name for name, bit in PLACES.items() if shape.over & bit])

    @cached_property
    def _axes(self) -> Mapping[StrandRef, Collection[StrandRef]]:
        """The axes of caches and the like on which strands depend, directly or through what they read. What memory
        keeps does not count: it is evaluated at its own coordinates."""
        found = {ref: each for ref, each in self.elaborator.references.items() if isinstance(ref, StrandRef)}
        reading: dict[StrandRef, list[StrandRef]] = {}
        for ref, each in found.items():
            for axis in each.axes:
                if axis.instance in self.patch.instances:  # those within a spindle cannot be mapped from elsewhere
                    reading.setdefault(axis, []).append(ref)
        users: dict[StrandRef, list[StrandRef]] = {}
        for ref, each in found.items() if reading else ():
            for read in each.strands:
                users.setdefault(read, []).append(ref)
        made: dict[StrandRef, list[StrandRef]] = {}
        for axis, refs in reading.items():
            for user in reachable(refs, users):
                made.setdefault(user, []).append(axis)
        return made

    def _maps(self, owner: Owner) -> tuple[StrandRef, ...]:
        """The axes of caches and the like that a strand or sink maps, or its slots do."""
        references = self.elaborator.references
        owners = reachable([owner], self._needs) if owner in references else ()
        return tuple(sorted({axis for each in owners for axis in references[each].maps}))

    def _found(self, owner: Owner) -> tuple[tuple[Edge, ...], tuple[str, ...], frozenset[SlotKey]]:
        """The reads and sources of a strand or sink, including those that its slots need to advance; and all of these
        slots. Reads of this tick come first, then those of the next tick, each in the order of the text."""
        references = self.elaborator.references
        own = references.get(owner)
        if own is None:
            return (), (), frozenset()
        edges, sources = {ref: Edge(ref) for ref in own.strands}, set(own.sources)
        # What an analysis hears is in the past: its rows belong to hops that are complete.
        edges |= {ref: Edge(ref, weak=True) for ref in own.heard}
        for each in reachable([owner], self._needs) - {owner} if own.slots else ():
            for ref in (*references[each].strands, *references[each].heard):
                edges.setdefault(ref, Edge(ref, weak=True))
            sources.update(references[each].sources)
        in_order = sorted(edges.values(), key=lambda edge: (edge.weak, self._rank[edge.source]))
        return tuple(in_order), tuple(sorted(sources)), frozenset(reachable(own.slots, self._slots_of_slots))

    @cached_property
    def _needs(self) -> dict[Owner, tuple[Owner, ...]]:
        """The slots of every strand, sink and slot, and the calls that asked for it."""
        return {key: (*found.slots, *found.asked_by) for key, found in self.elaborator.references.items()}

    @cached_property
    def _slots_of_slots(self) -> dict[SlotKey, Collection[SlotKey]]:
        return {key: found.slots for key, found in self.elaborator.references.items() if isinstance(key, SlotKey)}
