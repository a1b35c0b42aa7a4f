"""From the IR of a subgraph to its kernels: the place where each value is computed, and the sections."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import groupby
from math import inf
from typing import Literal, TypeAlias

from weft.codegen.kernel import Allocation, Kernel
from weft.codegen.values import Node, Note, Scalar, Section, SectionBuilder, Store
from weft.contexts import COMPUTE, ContextSpec
from weft.errors import error
from weft.ir.expr import (
    Expr, LoopShape, LoopValue, Lowered, MalformedError, PicturePlane, Pool, SlotPlane, StrandRef, Update,
    depending_on_loop, depth_first, rewrite, topological
)
from weft.ir.rates import Rate, RateAnalysis
from weft.ir.tunable import Tunable
from weft.names import is_sound
from weft.ops.spec import ValueType

# Placement: in which section each expression is computed, and inside or before which loop.

# Operations that take no computing, and need no place.
LEAVES = frozenset({"const", "u32", "coord", "uniform", "loop_index", "loop_value"})


@dataclass(eq=False, slots=True)
class Region:
    """A block of code: a section, or the body of a loop within `parent`. `places` are those in it, users first."""

    rate: Rate
    parent: Region | None = None
    level: int = -1
    depth: int = 0
    places: list[Place] = field(default_factory=list)

    def outwards(self) -> Iterator[Region]:
        """This region and those around it, the innermost first."""
        region: Region | None = self
        while region is not None:
            yield region
            region = region.parent


@dataclass(eq=False, slots=True)
class Place:
    """The one place where an expression is computed for all its users in and below `region`. A loop has one place for
    all its results: `outs` are the numbers of those that are used, `kept` of those that it carries, and `body` is the
    region of its steps."""

    node: Expr
    region: Region
    outs: tuple[int, ...] = (0,)
    kept: tuple[int, ...] = (0,)
    body: Region | None = None


# A use of an expression: the region, and the number of its result, if it is a loop.
_Use: TypeAlias = tuple[Region, int]


class Placement:
    """The place of each expression that the roots need.

    With `hoist`, this is the rarest section that its rate allows, outside every loop whose variables it does not
    mention. Without, it is the innermost region around all its users in a section.
    """

    def __init__(
        self, roots: Iterable[tuple[Expr, Rate]], nodes: Sequence[Expr], rate: Mapping[Expr, Rate], hoist: bool
    ) -> None:
        """The roots are what each section has to compute. `nodes` are all expressions that they need, and perhaps
        others, operands first. The sections are in the order in which they run."""
        self.sections = {r: Region(r) for r in Rate}
        self._crossing: dict[Rate, set[Place]] = {r: set() for r in Rate}
        self._hoist = hoist
        self._values: dict[Expr, Place] = {}
        self._others: dict[Expr, list[Place]] = {}
        """The places after the first of expressions that have several."""
        self._uses: defaultdict[Expr, list[_Use]] = defaultdict(list)
        for root, section in roots:
            self._use((root,), self.sections[section])
        for node in reversed(nodes):
            uses = self._uses.pop(node, None)
            if uses is None:
                continue
            if hoist and not node.free:
                self._place(node, self.sections[rate[node]], uses)
            else:
                for home, group in self._homes(node, uses).items():
                    self._place(node, home, group)

    def crossing(self, rate: Rate) -> list[Place]:
        """The values of a section that other sections use, operands first."""
        crossing = self._crossing[rate]
        return [place for place in reversed(self.sections[rate].places) if place in crossing]

    def is_alone(self, node: Expr) -> bool:
        """Whether an expression has only one place."""
        return node not in self._others

    def value(self, node: Expr, region: Region) -> Place:
        """The place of an expression for its users in `region`."""
        first = self._values[node]
        if node not in self._others:
            return first
        return next(v for v in (first, *self._others[node]) if v.region in region.outwards())

    def _use(self, nodes: Iterable[Expr], region: Region) -> None:
        uses, use = self._uses, (region, 0)
        for node in nodes:
            if node.op == "loop_out":
                uses[node.args[0]].append((region, node.attr if isinstance(node.attr, int) else 0))
            elif node.op not in LEAVES:
                uses[node].append(use)

    def _homes(self, node: Expr, uses: list[_Use]) -> Mapping[Region, list[_Use]]:
        """The outermost regions in which the expression may be computed, with the uses that each serves."""
        homes: dict[Region, list[_Use]] = {}
        level = node.free.bit_length() - 1  # -1, that of a section, without loop variables
        for used_in, out in uses:
            home = next(region for region in used_in.outwards() if region.level == level)
            homes.setdefault(home, []).append((used_in, out))
        return homes

    def _place(self, node: Expr, home: Region, uses: list[_Use]) -> None:
        region = home if self._hoist else _innermost(node, [used_in for used_in, _ in uses])
        place = Place(node, region)
        region.places.append(place)
        if node in self._values:
            self._others.setdefault(node, []).append(place)
        else:
            self._values[node] = place
        for used_in, _ in uses:
            if used_in.rate != region.rate:
                self._crossing[region.rate].add(place)
                break
        if not isinstance(node.attr, LoopShape):
            self._use(node.args, region)
            return
        bounds, starts, nexts = loop_parts(node)
        place.outs = tuple(sorted({out for _, out in uses}))
        place.kept = _kept(node.attr.level, nexts, place.outs)
        place.body = Region(region.rate, region, node.attr.level, region.depth + 1)
        self._use((*bounds, *(starts[k] for k in place.kept)), region)
        self._use([nexts[k] for k in place.kept], place.body)


def loop_parts(loop: Expr) -> tuple[tuple[Expr, ...], tuple[Expr, ...], tuple[Expr, ...]]:
    """The bounds of a loop, its carried values before the first step, and their new values in each step."""
    count = (len(loop.args) - 2) // 2
    return loop.args[:2], loop.args[2 : 2 + count], loop.args[2 + count :]


def _kept(level: int, nexts: Sequence[Expr], outs: Sequence[int]) -> tuple[int, ...]:
    """The numbers of the carried values that the results `outs` need. Those that no result needs are left out."""
    if len(outs) == len(nexts):
        return tuple(range(len(nexts)))
    reads = _carried_below(level, nexts)
    kept, todo = set[int](), list(outs)
    while todo:
        k = todo.pop()
        if k not in kept:
            kept.add(k)
            todo += reads[k]
    return tuple(sorted(kept))


def _carried_below(level: int, nexts: Sequence[Expr]) -> list[frozenset[int]]:
    """For each of these expressions, the numbers of the carried values of a loop that it depends on."""
    found: dict[Expr, frozenset[int]] = {}
    nothing: frozenset[int] = frozenset()
    for node in depending_on_loop(level, nexts):
        if isinstance(node.attr, LoopValue) and node.attr.level == level:
            found[node] = frozenset((node.attr.k,))
        else:
            found[node] = nothing.union(*(found.get(arg, nothing) for arg in node.args))
    return [found.get(node, nothing) for node in nexts]


def _innermost(node: Expr, regions: list[Region]) -> Region:
    """The innermost region around all of these where an expression may be. A loop needs a region of a lower level."""
    around = reduce(_common, regions).outwards()
    level = node.attr.level if isinstance(node.attr, LoopShape) else inf
    return next(region for region in around if region.parent is None or region.level < level)


def _common(a: Region, b: Region) -> Region:
    """The innermost region around both, which are in one section."""
    while a is not b:
        if a.depth < b.depth:
            a, b = b, a
        assert a.parent is not None
        a = a.parent
    return a


# Kernels: each expression becomes a value of the section where it is computed.


def compile_kernel(
    lowered: Lowered, spec: ContextSpec, optimise: bool = True, pool: Pool | None = None,
    rate: Mapping[Expr, Rate] | None = None, built: BuiltKernels | None = None,
) -> Kernel:  # fmt: skip
    """The kernel that computes the outputs over the sweep of a context and advances the state.

    Without `optimise`, everything is computed at every element (or once a tick, for state that is one number), at its
    place in the text. The `pool` of the expressions has their names; `rate` has their rates, if these are known. The
    kernels of its stages, and then that of the rest, are added to those that are `built`.

    Raises MalformedError if state that is one number would have to change within a tick.
    """
    by_element = {slot.key for slot in lowered.slots if slot.image or spec.ticks == "element"}
    rate = RateAnalysis(spec, lowered.slots).of(lowered.nodes) if rate is None else rate
    updates = [(Rate.ELEMENT if update.slot in by_element else Rate.FRAME, update) for update in lowered.updates]
    for section, update in updates:
        if rate[update.value] > section:
            raise MalformedError(f"{update.slot} is one number, but its value is a {rate[update.value].title}'s")
    if any(not slot.outlives for slot in lowered.slots):
        return _staged(lowered, spec, optimise, pool, rate, built or BuiltKernels())
    builder = KernelBuilder(lowered, rate, pool, points=False)
    sections = builder.sections(lowered.ordered, [output.value for output in lowered.outputs], updates, optimise)
    labels = tuple(output.label for output in lowered.outputs)
    made = builder.kernel(lowered.name, "element" if spec.ticks == "element" else "launch", sections, labels)
    return _added(made, builder, built)


# Every driver can draw this many images at once, and a mark for a loop that is stopped. The images of three colours
# stay together.
_IMAGES_OF_A_STAGE = 6


def _staged(
    lowered: Lowered, spec: ContextSpec, optimise: bool, pool: Pool | None, rate: Mapping[Expr, Rate],
    built: BuiltKernels,
) -> Kernel:  # fmt: skip
    """The kernel of a picture that reads images of its own tick. They are computed by its stages, each of which has the
    images of one size that need those of earlier stages only."""
    images = {slot.key: slot.level for slot in lowered.slots if not slot.outlives}
    values = {update.slot: update for update in lowered.updates if update.slot in images}
    below = {key: _slots_read(update.value) & images.keys() for key, update in values.items()}
    steps: list[list[str]] = []
    done: set[str] = set()
    while len(done) < len(values):
        ready = [key for key in values if key not in done and below[key] <= done]
        if not ready:
            raise MalformedError(f"{lowered.name}: images of one tick need one another")
        ready.sort(key=lambda key: (images[key], values[key].value.key, key))
        for _, alike in groupby(ready, images.__getitem__):
            keys = list(alike)
            steps += [keys[at : at + _IMAGES_OF_A_STAGE] for at in range(0, len(keys), _IMAGES_OF_A_STAGE)]
        done.update(ready)
    known: dict[Expr, Expr] = {}
    stages: list[Kernel] = []
    for number, step in enumerate(steps, 1):
        part = replace(lowered, outputs=(), exposed=(), films=(), updates=tuple(values[key] for key in step))
        name = f"{lowered.name}: images {number}"
        level = images[step[0]]
        made = _part_of_picture(part, spec, optimise, pool, {} if level else known, name, built)
        stages.append(replace(made, level=level))
        if pool is not None and optimise and not level:
            # The value of an image is not computed again where it is needed at the pixel itself. It is computed again
            # for values that are computed more rarely: read from an image, a coordinate would vary from pixel to pixel.
            now = pool.const(0.0)
            held = {values[key].value: key for key in step if rate[values[key].value] == Rate.ELEMENT}
            known |= {value: pool.make("state", (now,), SlotPlane(key, 0)) for value, key in held.items()}
    rest = replace(lowered, exposed=(), films=(), updates=tuple(u for u in lowered.updates if u.slot not in images))
    last = _part_of_picture(rest, spec, optimise, pool, known, None, built)
    parts = (*stages, last)
    return replace(
        last,
        coords=tuple(sorted({each for part in parts for each in part.coords})),
        uniforms=tuple(sorted({each for part in parts for each in part.uniforms})),
        reaches=tuple(sorted({each for part in parts for each in part.reaches})),
        strands=tuple(sorted({each for part in parts for each in part.strands})),
        pictures=tuple(sorted({each for part in parts for each in part.pictures})),
        stages=tuple(stages),
    )


def _slots_read(value: Expr) -> set[str]:
    return {node.attr.slot for node in topological([value]) if isinstance(node.attr, SlotPlane)}


def _part_of_picture(
    part: Lowered, spec: ContextSpec, optimise: bool, pool: Pool | None, known: Mapping[Expr, Expr], stage: str | None,
    built: BuiltKernels,
) -> Kernel:  # fmt: skip
    """The kernel of a part of a picture: of the `stage` of this name, or the last one. Expressions that are `known`
    are read instead."""
    used = {node: known[node] for node in part.nodes if node in known} if known else {}
    key = stage, part, frozenset(used.items())
    return built.find(key) or built.add(key, *_built_part(part, spec, optimise, pool, used, stage))


def _built_part(
    part: Lowered, spec: ContextSpec, optimise: bool, pool: Pool | None, known: Mapping[Expr, Expr], stage: str | None
) -> tuple[Kernel, KernelBuilder]:  # fmt: skip
    if pool is not None and known:
        own = pool  # not None in the function

        def read(node: Expr, args: tuple[Expr, ...]) -> Expr:
            return known.get(node) or own.with_args(node, args)

        part = rewrite(part, own, {value.op for value in known}, read)
    rate = RateAnalysis(spec, part.slots).of(part.nodes)
    images = {slot.key for slot in part.slots if slot.image}
    updates = [(Rate.ELEMENT if update.slot in images else Rate.FRAME, update) for update in part.updates]
    builder = KernelBuilder(part, rate, pool, points=False)
    sections = builder.sections(part.ordered, [output.value for output in part.outputs], updates, optimise)
    if stage is None:
        labels = tuple(output.label for output in part.outputs)
        return builder.kernel(part.name, "launch", sections, labels), builder
    made = builder.kernel(stage, "never", sections, ())
    return replace(made, slots=tuple(slot for slot in made.slots if slot.key in builder.slots)), builder


def _added(kernel: Kernel, builder: KernelBuilder, built: BuiltKernels | None, key: Hashable = None) -> Kernel:
    return kernel if built is None else built.add(key, kernel, builder)


def compile_points(
    lowered: Lowered, strand: StrandRef, spec: ContextSpec, pool: Pool | None = None,
    rate: Mapping[Expr, Rate] | None = None, built: BuiltKernels | None = None,
) -> Kernel:  # fmt: skip
    """The kernel that computes one exposed strand at any list of points, each with all coordinates of its own.

    Raises KeyError if the strand is not exposed.
    """
    value = dict(lowered.exposed)[strand]
    key = strand, value, lowered.name, lowered.slots
    if built is not None and (known := built.find(key)) is not None:
        return known
    nodes = depth_first([value])
    rate = RateAnalysis(spec, lowered.slots, points=True).of(nodes) if rate is None else rate
    builder = KernelBuilder(lowered, rate, pool, points=True)
    sections = builder.sections(nodes, [value], [], optimise=True)
    made = builder.kernel(f"{lowered.name}: {strand}", "launch", sections, (str(strand),))
    return _added(made, builder, built, key)


def compile_feeds(
    lowered: Lowered, optimise: bool = True, pool: Pool | None = None, built: BuiltKernels | None = None
) -> Kernel:
    """The kernel that computes, once a frame, the values that other contexts feed to a streaming one. Its outputs have
    the names of the coordinates that these become."""
    alone = Lowered(f"{lowered.name}: feeds", COMPUTE.name, lowered.feeds, (), (), ())
    return compile_kernel(alone, COMPUTE, optimise, pool, None, built)


def compile_films(
    lowered: Lowered, spec: ContextSpec, optimise: bool = True, pool: Pool | None = None,
    rate: Mapping[Expr, Rate] | None = None, built: BuiltKernels | None = None,
) -> Kernel:  # fmt: skip
    """The kernel that computes the times of films before a tick, from the state after the last one. Its outputs have
    the names of their pictures. Raises WeftError for a time that is read from an image."""
    images = {slot.key for slot in lowered.slots if slot.image}
    alone = replace(lowered, name=f"{lowered.name}: films", outputs=lowered.films, exposed=(), updates=(), films=())
    for node in alone.nodes:
        if isinstance(node.attr, SlotPlane) and node.attr.slot in images:
            raise error("film-time-varies", "the time of a film cannot be read from an image", node.span,
                        "what is not remembered for every pixel may be its time")  # fmt: skip
    rate = RateAnalysis(spec, lowered.slots).of(alone.nodes) if rate is None else rate
    builder = KernelBuilder(alone, rate, pool, points=False)
    sections = builder.sections(alone.ordered, [output.value for output in alone.outputs], [], optimise)
    made = builder.kernel(alone.name, "never", sections, tuple(output.label for output in alone.outputs))
    return _added(replace(made, slots=tuple(slot for slot in made.slots if slot.key in builder.slots)), builder, built)


# Longer names are cut, since they only have to be recognisable in a listing.
_LENGTH = 24

# An expression, or one result of a loop.
_Result: TypeAlias = "Expr | tuple[Expr, int]"


class BuiltKernels:
    """The kernels of a subgraph, in the order in which they were built. The kernel of a stage, or of a strand that
    others read, is that of the text before if its expressions are the same."""

    def __init__(self, before: BuiltKernels | None = None) -> None:
        self.numbers: list[tuple[Tunable, ...]] = []
        """The constants that are the numbers of each."""
        self._kept: dict[Hashable, tuple[Kernel, tuple[Tunable, ...]]] = {}
        self._before = {} if before is None else before._kept

    def find(self, key: Hashable) -> Kernel | None:
        """The kernel that the text before has of these expressions, with the numbers of now."""
        if key not in self._before:
            return None
        kernel, numbers = self._before[key]
        self._kept[key] = self._before[key]
        self.numbers.append(numbers)
        return replace(kernel, numbers=tuple([each.current for each in numbers]))

    def add(self, key: Hashable, kernel: Kernel, builder: KernelBuilder) -> Kernel:
        """Adds a kernel. One that is built of all that a text has needs no key."""
        self.numbers.append(tuple(builder.numbers))
        if key is not None:
            self._kept[key] = kernel, self.numbers[-1]
        return kernel


class KernelBuilder:
    """Builds one kernel, and collects what its values refer to."""

    def __init__(self, lowered: Lowered, rate: Mapping[Expr, Rate], pool: Pool | None, points: bool) -> None:
        self._lowered = lowered
        self.rate = rate
        self.points = points
        self._has_names = pool is None or pool.has_names
        self.names: dict[_Result, str] = {}
        """The names that the patch has for expressions."""
        for node, name in pool.named() if pool is not None else ():
            if node.op == "loop_out" and isinstance(node.attr, int):
                self.names[node.args[0], node.attr] = name
            elif node.op not in LEAVES:
                self.names[node] = name
        self.images = {slot.key for slot in lowered.slots if slot.image}
        self.locals: list[Allocation] = []
        self.crossing: dict[tuple[Place, int], int] = {}
        """The locals for values that sections read of one another, by place and number of the result."""
        self.coords: dict[str, Rate] = {}
        self.uniforms: set[str] = set()
        self.strands: set[StrandRef] = set()
        self.pictures: set[str] = set()
        self.slots: set[str] = set()
        self.numbers: dict[Tunable, int] = {}
        """The numbers of the text that are inputs, by their places."""

    def sections(
        self, nodes: Sequence[Expr], outputs: list[Expr], updates: list[tuple[Rate, Update]], optimise: bool
    ) -> tuple[Section, ...]:
        """Every section that has something to compute. `nodes` are all expressions that are needed, operands first."""
        roots = [(update.value, rate) for rate, update in updates]
        roots += [(value, Rate.ELEMENT) for value in outputs]
        placement = Placement(roots, nodes, self.rate, hoist=optimise)
        for tunable in _tunables(placement):
            self.numbers.setdefault(tunable, len(self.numbers))
        made = []
        for section, region in placement.sections.items():
            own = [update for rate, update in updates if rate == section]
            shown = outputs if section == Rate.ELEMENT else []
            crossing = placement.crossing(section)
            if section == Rate.ELEMENT or own or crossing:
                made.append(SectionWriter(self, placement, region).section(crossing, own, shown))
        return tuple(made)

    def kernel(
        self, name: str, tick: Literal["launch", "element", "never"], sections: tuple[Section, ...],
        outputs: tuple[str, ...],
    ) -> Kernel:  # fmt: skip
        """The kernel of these sections."""
        lowered = self._lowered
        return Kernel(
            name=name,
            context=lowered.context,
            sweep="points" if self.points else "grid",
            tick=tick,
            sections=sections,
            outputs=outputs,
            coords=tuple(sorted(self.coords.items())),
            uniforms=tuple(sorted(self.uniforms)),
            strands=tuple(sorted(self.strands)),
            pictures=tuple(sorted(self.pictures)),
            slots=tuple(slot for slot in lowered.slots if slot.key in self.slots) if self.points else lowered.slots,
            locals=tuple(self.locals),
            numbers=tuple([each.current for each in self.numbers]),
            reaches=tuple(sorted(each for each in lowered.reaches if each[0] in self.uniforms)),
        )

    def allocate(self, place: Place, out: int, kind: ValueType) -> int:
        """A new local for an expression, or for a result of a loop. It is named after the strand of the patch, or else
        after the text, or its number."""
        node = place.node
        name = self.names.get(node if place.body is None else (node, out))
        if name is None and not self._has_names:
            name = f"t{len(self.locals)}"
        elif name is None:
            text = " ".join(node.span.text.split()) if node.span is not None else f"t{node.index}"
            name = text if len(text) <= _LENGTH else text[: _LENGTH - 1] + "…"
            if len(place.outs) > 1:
                name += f".{out}"
        self.locals.append(Allocation(name, place.region.rate, kind))
        self.crossing[place, out] = len(self.locals) - 1
        return len(self.locals) - 1


def _tunables(placement: Placement) -> Iterator[Tunable]:
    """The constants that are operands: those of elements first, so that code for these does not change if another
    section has more or fewer."""
    waiting = list(placement.sections.values())
    while waiting:
        region = waiting.pop()
        for place in reversed(region.places):
            yield from (arg.attr for arg in place.node.args if isinstance(arg.attr, Tunable))
            if place.body is not None:
                waiting.append(place.body)


class SectionWriter:
    """Builds one section."""

    def __init__(self, program: KernelBuilder, placement: Placement, region: Region) -> None:
        self._program = program
        self._placement = placement
        self._region = region
        self._builder = SectionBuilder()
        self._known: dict[Expr, Node] = {}
        """The values of expressions that have only one value in this section."""
        self._made: dict[tuple[Place, int], Node] = {}
        """The values of the other expressions that are built, by the numbers of their results."""
        self._carried: dict[int, tuple[int, ...]] = {}
        """The numbers of the values that open loops carry, by their levels."""
        self._notes: dict[Node, Note] = {}

    def section(self, crossing: list[Place], updates: list[Update], outputs: list[Expr]) -> Section:
        """The section that computes all these."""
        region = self._region
        self._write(region)
        stores = []
        for update in updates:
            value = self._builder.converted(self._value(update.value, region), "float")
            stores.append(Store(SlotPlane(update.slot, update.plane), value))
        self._program.slots.update(update.slot for update in updates)
        shown = tuple([self._value(value, region) for value in outputs])
        read: dict[int, Node] = {}
        for place in crossing:
            for out in place.outs:
                made = self._made[place, out] if place.body is not None else self._value(place.node, region)
                read[self._program.allocate(place, out, made.kind)] = made
        return Section(self._region.rate, tuple(self._builder.nodes), shown, tuple(stores), read, self._notes)

    def _write(self, region: Region) -> None:
        """Builds what a region computes, operands first."""
        known, placement, names = self._known, self._placement, self._program.names
        for place in reversed(region.places):
            node = place.node
            if place.body is not None:
                self._loop(place, place.body)
                continue
            made = self._operation(node, [known.get(arg) or self._value(arg, region) for arg in node.args])
            if placement.is_alone(node):
                known[node] = made
            else:
                self._made[place, 0] = made
            if node in names:
                self._note(names[node], node, made)

    def _loop(self, place: Place, body: Region) -> None:
        bounds, starts, nexts = loop_parts(place.node)
        before = [self._value(each, place.region) for each in (*bounds, *(starts[k] for k in place.kept))]
        self._builder.begin_loop(body.level, before)
        self._carried[body.level] = place.kept
        self._write(body)
        loop = self._builder.end_loop([self._value(nexts[k], body) for k in place.kept])
        for out in place.outs:
            made = self._made[place, out] = self._builder.result(loop, place.kept.index(out))
            name = self._program.names.get((place.node, out))
            if name is not None:
                self._note(name, place.node, made)

    def _note(self, name: str, node: Expr, made: Node) -> None:
        """Notes the name that the patch has for a value, and the line that computes it."""
        if node.span is None:
            self._notes[made] = Note(name, "", 0, "")
        else:
            source = node.span.source
            line, _ = source.position(node.span.start)
            self._notes[made] = Note(name, source.name, line, source.line(line).strip())

    def _value(self, node: Expr, region: Region) -> Node:
        """The value of an expression for its users in `region`."""
        found = self._known.get(node)
        if found is not None:
            return found
        if node.op in LEAVES:
            return self._leaf(node)
        out = 0
        if node.op == "loop_out" and isinstance(node.attr, int):
            out, (node,) = node.attr, node.args
        place = self._placement.value(node, region)
        result = place, out
        if result not in self._made:
            number = self._program.crossing[result]
            self._made[result] = self._builder.given(
                "local", number, place.region.rate, self._program.locals[number].type
            )
        return self._made[result]

    def _operation(self, node: Expr, args: list[Node]) -> Node:
        """Appends the operation that computes an expression from its operands."""
        builder, program = self._builder, self._program
        op, attr = node.op, node.attr
        match attr:
            case None:
                return builder.add(op, args)
            case SlotPlane(slot, _):
                program.slots.add(slot)
                if program.points and len(args) == 1 and slot in program.images:
                    args = [*args, self._coord("x", Rate.ELEMENT), self._coord("y", Rate.ELEMENT)]
                return builder.add("sample" if len(args) > 1 else "state", args, attr)
            case PicturePlane(picture, _):
                program.pictures.add(picture)
            case StrandRef():
                program.strands.add(attr)
            case _:
                raise MalformedError(f"{node}: nothing computes this")
        return builder.add(op, args, attr)

    def _leaf(self, node: Expr) -> Node:
        builder = self._builder
        match node.op, node.attr:
            case "loop_index", int(level):
                return builder.index(level)
            case "loop_value", LoopValue(level, k):
                return builder.carried(level, self._carried[level].index(k))
            case "coord", str(name):
                made = self._coord(name, self._program.rate[node])
            case "uniform", str(name):
                self._program.uniforms.add(name)
                if is_sound(name):
                    self._program.pictures.add(name)  # the number of its samples
                made = builder.leaf("scalar", Scalar("uniform", name, "float"))
            case "const", Tunable():
                place = self._program.numbers.setdefault(node.attr, len(self._program.numbers))
                made = builder.leaf("scalar", Scalar("number", place, "float"))
            case _:
                made = builder.leaf(node.op, node.attr)
        self._known[node] = made
        return made

    def _coord(self, name: str, rate: Rate) -> Node:
        self._program.coords[name] = rate
        return self._builder.given("coord", name, rate)
