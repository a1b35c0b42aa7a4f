"""From lowered IR to kernels: each expression becomes a value of the section where it is computed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypedDict

from weft.codegen.base import Allocation, Kernel
from weft.codegen.names import Namer
from weft.codegen.placement import LEAVES, Place, Placement, Region, Root, loop_parts
from weft.codegen.values import Node, Note, Scalar, Section, SectionBuilder, Store
from weft.contexts import COMPUTE, ContextSpec
from weft.ir.expr import Expr, LoopValue, Lowered, PicturePlane, Pool, SlotPlane, StateSlot, StrandRef
from weft.ir.rates import Rate, rates
from weft.ir.verify import MalformedError, type_of


def compile_kernel(lowered: Lowered, spec: ContextSpec, optimise: bool = True, pool: Pool | None = None) -> Kernel:
    """The kernel that computes the outputs over the sweep of a context and advances the state.

    Without `optimise`, everything is computed at every element (state that is one number: once a tick), where the
    text has it. The `pool` of its expressions knows what the text calls them.

    Raises MalformedError if state that is one number would have to change within a tick.
    """
    ticks_by_element = spec.ticks == "element"
    slots = {slot.key: slot for slot in lowered.slots}
    rate = rates(lowered.swept, spec, slots)
    coords = {name: _coordinate_rate(spec, name) for name in _coordinates(rate)}
    program = _KernelBuilder(slots, coords, points=False, namer=Namer(pool))
    updates: list[_Update] = []
    for update in lowered.updates:
        by_element = ticks_by_element or slots[update.slot].image
        section = Rate.ELEMENT if by_element else Rate.FRAME
        if rate[update.value] > section:
            raise MalformedError(f"{update.slot} is one number, but its value is a {rate[update.value].title}'s")
        updates.append(_Update(section, SlotPlane(update.slot, update.plane), update.value))
    outputs = [output.value for output in lowered.outputs]
    return Kernel(
        name=lowered.name,
        context=lowered.context,
        sweep="grid",
        tick="element" if ticks_by_element else "launch",
        sections=program.sections(outputs, updates, rate, optimise),
        outputs=tuple(output.label for output in lowered.outputs),
        slots=lowered.slots,
        **program.inputs(),
    )


def compile_points(lowered: Lowered, strand: StrandRef, spec: ContextSpec, pool: Pool | None = None) -> Kernel:
    """The kernel that computes one exposed strand at any list of points, each with all coordinates of its own.

    Raises KeyError if the strand is not exposed.
    """
    value = dict(lowered.exposed)[strand]
    slots = {slot.key: slot for slot in lowered.slots}
    rate = rates([value], spec, slots, points=True)
    coords = {**dict.fromkeys(_coordinates(rate), Rate.ELEMENT), "x": Rate.ELEMENT, "y": Rate.ELEMENT}
    program = _KernelBuilder(slots, coords, points=True, namer=Namer(pool))
    sections = program.sections([value], [], rate, optimise=True)
    return Kernel(
        name=f"{lowered.name}: {strand}",
        context=lowered.context,
        sweep="points",
        tick="launch",
        sections=sections,
        outputs=(str(strand),),
        slots=tuple(slot for slot in lowered.slots if slot.key in program.used_slots),
        **program.inputs(),
    )


def compile_feeds(lowered: Lowered, optimise: bool = True, pool: Pool | None = None) -> Kernel:
    """The kernel that computes, once a frame, what a context that streams is given by others; its outputs bear the
    names of the coordinates that these become."""
    alone = Lowered(f"{lowered.name}: feeds", COMPUTE.name, lowered.feeds, (), (), ())
    return compile_kernel(alone, COMPUTE, optimise, pool)


def _coordinate_rate(spec: ContextSpec, name: str) -> Rate:
    sweep = spec.sweep_of(name)
    return Rate.CONSTANT if sweep == "once" else Rate[sweep.upper()]


def _coordinates(nodes: Iterable[Expr]) -> set[str]:
    return {str(node.attr) for node in nodes if node.op == "coord"}


@dataclass(frozen=True, slots=True)
class _Update:
    """What becomes a plane of a slot, in the section of a rate."""

    rate: Rate
    slot: SlotPlane
    value: Expr


class _KernelInputs(TypedDict):
    coords: tuple[tuple[str, Rate], ...]
    uniforms: tuple[str, ...]
    strands: tuple[StrandRef, ...]
    pictures: tuple[str, ...]
    locals: tuple[Allocation, ...]


@dataclass
class _KernelBuilder:
    """Builds the sections of one kernel, and collects what they refer to. `coords` says how often each coordinate
    changes."""

    slots: Mapping[str, StateSlot]
    coords: Mapping[str, Rate]
    points: bool
    namer: Namer
    locals: list[Allocation] = field(default_factory=list)
    crossing: dict[tuple[Place, int], int] = field(default_factory=dict)
    """The locals of what sections read of one another, each with its number among the values of a loop."""
    used_coords: set[str] = field(default_factory=set)
    uniforms: set[str] = field(default_factory=set)
    strands: set[StrandRef] = field(default_factory=set)
    pictures: set[str] = field(default_factory=set)
    used_slots: set[str] = field(default_factory=set)

    def sections(
        self, outputs: list[Expr], updates: list[_Update], rate: dict[Expr, Rate], optimise: bool
    ) -> tuple[Section, ...]:
        """Every section that has something to do."""
        roots = [Root(update.value, update.rate) for update in updates]
        roots += [Root(value, Rate.ELEMENT) for value in outputs]
        placement = Placement(roots, rate, hoist=optimise)
        made = []
        for section, region in placement.sections.items():
            own = [update for update in updates if update.rate == section]
            shown = outputs if section == Rate.ELEMENT else []
            crossing = placement.crossing(section)
            if section == Rate.ELEMENT or own or crossing:
                made.append(_SectionWriter(self, placement, region).section(crossing, own, shown))
        return tuple(made)

    def inputs(self) -> _KernelInputs:
        """The fields of a kernel that say what its values refer to."""
        return {
            "coords": tuple((name, self.coords[name]) for name in sorted(self.used_coords)),
            "uniforms": tuple(sorted(self.uniforms)),
            "strands": tuple(sorted(self.strands)),
            "pictures": tuple(sorted(self.pictures)),
            "locals": tuple(self.locals),
        }

    def allocate(self, place: Place, out: int) -> int:
        """A new local for an expression, or for one of the values of a loop."""
        name = self.namer.title(place.node, out, len(place.outs) > 1)
        self.locals.append(Allocation(name, place.region.rate, type_of(place.node)))
        self.crossing[place, out] = len(self.locals) - 1
        return len(self.locals) - 1


class _SectionWriter:
    """Builds one section. What is to do is kept in a list, not on Python's stack: expressions are deep."""

    def __init__(self, program: _KernelBuilder, placement: Placement, region: Region) -> None:
        self._program = program
        self._placement = placement
        self._region = region
        self._builder = SectionBuilder()
        self._leaves: dict[Expr, Node] = {}
        self._made: dict[Place, dict[int, Node]] = {}
        """The values of what is done, by their numbers among those of a loop (0 for what is no loop)."""
        self._begun: set[Place] = set()
        """Loops whose bodies are being built, or have been."""
        self._carried: dict[int, tuple[int, ...]] = {}
        """Which values the loops that are being built carry, by their levels."""
        self._notes: dict[Node, Note] = {}

    def section(self, crossing: list[Place], updates: list[_Update], outputs: list[Expr]) -> Section:
        """The section that computes all these."""
        self._compute(crossing)
        stores = [Store(update.slot, self._real_root(update.value)) for update in updates]
        self._program.used_slots.update(store.place.slot for store in stores)
        shown = [self._root(value) for value in outputs]
        read = {self._program.allocate(place, out): self._made[place][out] for place in crossing for out in place.outs}
        return Section(
            self._region.rate, tuple(self._builder.nodes), tuple(shown), tuple(stores), read, self._notes
        )

    def _real_root(self, value: Expr) -> Node:
        return self._builder.converted(self._root(value), "real")

    def _root(self, value: Expr) -> Node:
        self._compute(self._needed((value,), self._region))
        return self._operand(value, self._region)

    def _compute(self, places: list[Place]) -> None:
        """Builds values, and before each what it is made of, in the order of its operands."""
        made, region = self._made, self._region
        todo = [(place, False) for place in reversed(places)]
        while todo:
            place, ready = todo.pop()
            if place in made or place.region.rate != region.rate:
                continue
            if place.body is not None:
                self._loop(place, place.body, ready, todo)
            elif ready:
                made[place] = {0: self._noted(place, 0, self._operation(place))}
            else:
                needed = self._needed(place.node.args, place.region)
                if needed:
                    todo.append((place, True))
                    todo += [(each, False) for each in reversed(needed)]
                else:
                    made[place] = {0: self._noted(place, 0, self._operation(place))}

    def _loop(self, place: Place, body: Region, ready: bool, todo: list[tuple[Place, bool]]) -> None:
        bounds, starts, nexts = loop_parts(place.node)
        if not ready:
            before = sorted(body.needs, key=lambda needed: needed.node.index)
            before += self._needed((*bounds, *(starts[k] for k in place.kept)), place.region)
            todo.append((place, True))
            todo += [(each, False) for each in reversed(before)]
        elif place not in self._begun:
            self._begun.add(place)
            args = [self._operand(arg, place.region) for arg in (*bounds, *(starts[k] for k in place.kept))]
            self._builder.begin_loop(body.level, args)
            self._carried[body.level] = place.kept
            todo.append((place, True))
            todo += [(each, False) for each in reversed(self._needed([nexts[k] for k in place.kept], body))]
        else:
            following = [self._operand(nexts[k], body) for k in place.kept]
            loop = self._builder.end_loop(following)
            self._made[place] = {
                out: self._noted(place, out, self._builder.result(loop, place.kept.index(out))) for out in place.outs
            }

    def _noted(self, place: Place, out: int, made: Node) -> Node:
        note = self._program.namer.note(place.node, out)
        if note is not None:
            self._notes[made] = note
        return made

    def _needed(self, nodes: Iterable[Expr], region: Region) -> list[Place]:
        """What has to be computed before some expressions are used."""
        value = self._placement.value
        return [
            value(node.args[0] if node.op == "loop_out" else node, region) for node in nodes if node.op not in LEAVES
        ]

    def _operation(self, place: Place) -> Node:
        """Appends what computes an expression from its operands."""
        node, builder, program = place.node, self._builder, self._program
        op, attr = node.op, node.attr
        args = [self._operand(arg, place.region) for arg in node.args]
        match attr:
            case None:
                return builder.add(op, args)
            case SlotPlane(slot, _):
                program.used_slots.add(slot)
                if program.points and len(args) == 1 and program.slots[slot].image:
                    args += [self._coord("x"), self._coord("y")]
                return builder.add("sample" if len(args) > 1 else "state", args, attr)
            case PicturePlane(picture, _):
                program.pictures.add(picture)
            case StrandRef():
                program.strands.add(attr)
            case _:
                raise MalformedError(f"{node}: nothing computes this")
        return builder.add(op, args, attr)

    def _operand(self, node: Expr, region: Region) -> Node:
        """The value that stands for an expression where `region` uses it; it has been computed."""
        if node.op in LEAVES:
            return self._leaf(node)
        out = 0
        if node.op == "loop_out" and isinstance(node.attr, int):
            out, node = node.attr, node.args[0]
        place = self._placement.value(node, region)
        if place.region.rate == self._region.rate:
            return self._made[place][out]
        number = self._program.crossing[place, out]
        return self._builder.local(number, place.region.rate, type_of(node))

    def _leaf(self, node: Expr) -> Node:
        match node.op, node.attr:
            case "loop_index", int(level):
                return self._builder.index(level)
            case "loop_value", LoopValue(level, k):
                return self._builder.carried(level, self._carried[level].index(k))
        made = self._leaves.get(node)
        if made is None:
            made = self._leaves[node] = self._given(node)
        return made

    def _given(self, node: Expr) -> Node:
        match node.op, node.attr:
            case "coord", str(name):
                return self._coord(name)
            case "uniform", str(name):
                self._program.uniforms.add(name)
                return self._builder.leaf("scalar", Scalar("uniform", name, "real"))
        return self._builder.leaf(node.op, node.attr)

    def _coord(self, name: str) -> Node:
        self._program.used_coords.add(name)
        return self._builder.coord(name, self._program.coords[name])
