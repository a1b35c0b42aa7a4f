"""Kernels, the programs that code generation hands to backends: their form, their JSON, their hashes and checks."""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass, field, fields, replace
from typing import Any, Literal, TypeAlias

from weft.codegen.values import (
    IMPLIED, LEAVES, SIGNATURES, Line, LoopBody, Node, Note, Rows, Scalar, Section, Store, kind_of
)
from weft.errors import Span
from weft.graph.nodes import Subgraph
from weft.ir.expr import LoopShape, LoopValue, MalformedError, PicturePlane, SlotPlane, StateSlot
from weft.ir.rates import Rate
from weft.names import StrandRef
from weft.ops.spec import ValueType

# A loop stops after LOOP_STEPS, and a nest of loops after NEST_STEPS in all its loops together: for each element, on
# every backend, with a warning. No patch may hang the performance.
LOOP_STEPS = 4096
NEST_STEPS = 65_536


@dataclass(frozen=True, slots=True)
class Allocation:
    """A local: a value of one section (`rate`) that others read. It takes one number a frame, a column, a row or an
    element. `name` is that of its strand, for people."""

    name: str
    rate: Rate
    type: ValueType

    @property
    def itemsize(self) -> int:
        """The bytes of one value, with floats in single precision."""
        return 1 if self.type == "bool" else 4

    def __reduce__(self) -> tuple[Callable[..., Allocation], tuple[Any, ...]]:
        # Kernels have many. The methods that dataclasses with slots generate take four times as long.
        return Allocation, (self.name, self.rate, self.type)

    def count(self, shape: tuple[int, int]) -> int:
        """The number of values for a picture of this shape (height, width)."""
        height, width = shape
        return {Rate.COLUMN: width, Rate.ROW: height, Rate.ELEMENT: height * width}.get(self.rate, 1)


@dataclass(frozen=True, slots=True)
class Kernel:
    """One program over the sweep of a context.

    `grid` kernels compute `outputs` at every element and advance `slots`; `points` kernels compute one exposed strand
    at any list of coordinates, and only read state, as it was after the last tick.
    """

    name: str
    context: str
    sweep: Literal["grid", "points"]
    tick: Literal["launch", "element", "never"]
    """When state advances: at the end of a launch (a frame), after every element (a sample), or never, in a stage."""
    sections: tuple[Section, ...]
    outputs: tuple[str, ...]
    coords: tuple[tuple[str, Rate], ...]
    """The base coordinates that it reads, and the rate of each."""
    uniforms: tuple[str, ...]
    strands: tuple[StrandRef, ...]
    pictures: tuple[str, ...]
    slots: tuple[StateSlot, ...]
    locals: tuple[Allocation, ...]
    stages: tuple[Kernel, ...] = ()
    """The kernels that run before it, in this order. Each computes images of this tick, which are slots of depth 0,
    over the pixels of its level. The inputs of a kernel include those of its stages."""
    level: int = 0
    """How often the sides of its sweep are halved: that of the images that it computes."""
    numbers: tuple[float, ...] = ()
    """The numbers of the text that are inputs. Kernels that differ in these only have one structure."""
    reaches: tuple[tuple[str, float], ...] = ()
    """How large some of its uniforms may be (`Patch.reaches`)."""

    @property
    def alone(self) -> Kernel:
        """The kernel without its stages."""
        return replace(self, stages=()) if self.stages else self

    @property
    def remembers(self) -> bool:
        """Whether anything that it computes depends on earlier ticks."""
        return any(slot.outlives for slot in self.slots)

    def section(self, rate: Rate) -> Section:
        """The section of a rate; an empty one if the kernel has none."""
        return next((s for s in self.sections if s.rate == rate), Section(rate))

    def slot(self, key: str) -> StateSlot:
        """The state slot of a key. Raises KeyError if the kernel has no such slot."""
        for slot in self.slots:
            if slot.key == key:
                return slot
        raise KeyError(key)

    def unmoved(self, sample: Node) -> tuple[bool, bool]:
        """Whether an image slot is sampled in the column, and in the row, of the element itself: no remap moves the
        place along x, or along y. The rounded coordinate need not be exactly at the centre of that pixel."""
        _, x, y = sample.args
        is_here = self.sweep == "grid" and self.slot(sample.attr.slot).level == self.level

        def is_own(coordinate: Node, name: str) -> bool:
            return is_here and coordinate.op == "line" and coordinate.attr[:2] == ("coord", name)

        return is_own(x, "x"), is_own(y, "y")

    def walk(self) -> Iterator[tuple[Rate, Node]]:
        """Every value, with the rate of its section."""
        for section in self.sections:
            for node in section.walk():
                yield section.rate, node


    def stores(self) -> Iterator[tuple[Rate, Store]]:
        """Every new value of a slot, with the rate of its section."""
        for section in self.sections:
            for store in section.stores:
                yield section.rate, store


# Kernels as JSON, without loss in both directions, and their hashes.

Json: TypeAlias = Any


def to_json(kernel: Kernel) -> Json:
    """The kernel as JSON, for `from_json`: its fields, with rates as numbers and each section as rows."""
    sections = []
    for section in kernel.sections:
        rows, notes = section.numbered
        attrs = [number_to_json(attr) if isinstance(attr, float) else attr for attr in rows.attrs]
        sections.append([section.rate, [*rows._replace(attrs=tuple(attrs))], notes])
    listed = {"slots": list(map(astuple, kernel.slots)), "locals": list(map(astuple, kernel.locals))}
    listed["stages"] = list(map(to_json, kernel.stages))
    listed["numbers"] = list(map(number_to_json, kernel.numbers))
    return {**{each.name: getattr(kernel, each.name) for each in fields(kernel)}, "sections": sections, **listed}


def from_json(data: Json) -> Kernel:
    """The kernel that `to_json` wrote."""
    made = {
        "sections": [_section_from_json(*section) for section in data["sections"]],
        "coords": [(name, Rate(rate)) for name, rate in data["coords"]],
        "reaches": [tuple(each) for each in data.get("reaches", ())],
        "strands": [StrandRef(*names) for names in data["strands"]],
        "slots": [StateSlot(*slot) for slot in data["slots"]],
        "locals": [Allocation(name, Rate(rate), kind) for name, rate, kind in data["locals"]],
        "stages": list(map(from_json, data.get("stages", ()))),
        "numbers": list(map(number_from_json, data.get("numbers", ()))),
    }
    lists = {name: tuple(value) for name, value in {**data, **made}.items() if not isinstance(value, (str, int))}
    return Kernel(**{**data, **lists})


def content_hash(kernel: Kernel) -> str:
    """16 hexadecimal digits, equal for kernels that compute the same. Names do not count."""
    return _digest(kernel, has_numbers=True)


def structure_hash(kernel: Kernel) -> str:
    """16 hexadecimal digits, equal for kernels that differ in the values of their numbers only."""
    return _digest(kernel, has_numbers=False)


def _digest(kernel: Kernel, has_numbers: bool) -> str:
    head = (
        kernel.context, kernel.sweep, kernel.tick, kernel.outputs, kernel.uniforms, kernel.strands, kernel.pictures,
        kernel.slots, kernel.level, [(name, int(rate)) for name, rate in kernel.coords],
        [(int(local.rate), local.type) for local in kernel.locals], len(kernel.numbers), *kernel.reaches,
    )  # fmt: skip
    found = hashlib.sha256(repr(head).encode())
    for section in kernel.sections:
        found.update(bytes([section.rate]) + section.digest)
    if has_numbers:
        # They are compared by their bits.
        found.update(struct.pack(f"<{len(kernel.numbers)}d", *kernel.numbers))
    for stage in kernel.stages:
        found.update(f"\nstage {_digest(stage, has_numbers)}".encode())
    return found.hexdigest()[:16]


_ATTRIBUTES: Mapping[str, Callable[..., Any]] = {
    "scalar": Scalar, "line": lambda source, key, rate, kind: Line(source, key, Rate(rate), kind), "state": SlotPlane,
    "sample": SlotPlane, "picture": PicturePlane, "fetch": PicturePlane, "strand": StrandRef, "loop": LoopShape,
    "loop_value": LoopValue,
}  # fmt: skip


def _section_from_json(rate: int, rows: Json, notes: Json) -> Section:
    ops, args, attrs, outputs, stores, locals_ = rows
    read = Rows(
        tuple(ops), tuple(map(tuple, args)), tuple(map(_attribute_from_json, ops, attrs)), tuple(outputs),
        tuple((SlotPlane(*place), number) for place, number in stores), tuple(map(tuple, locals_)),
    )  # fmt: skip
    return Section.of_rows(Rate(rate), read, [(number, Note(*note)) for number, note in notes])


def number_to_json(value: float) -> Json:
    """A double as JSON, to the bit. JSON has no infinities and NaN: these are strings, a NaN with its bits."""
    if math.isfinite(value):
        return value
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return f"nan:{struct.pack('>d', value).hex()}"


def number_from_json(data: Json) -> float:
    if isinstance(data, str) and data.startswith("nan:"):
        value: float = struct.unpack(">d", bytes.fromhex(data[4:]))[0]
        return value
    return float(data)


def _attribute_from_json(op: str, data: Any) -> Any:
    if op == "const":
        return number_from_json(data)
    return _ATTRIBUTES[op](*data) if op in _ATTRIBUTES else data


# Checks of kernels, such as those that another machine sends.

VISIBLE: Mapping[Rate, frozenset[Rate]] = {
    rate: frozenset(r for r in Rate if r in (Rate.CONSTANT, Rate.FRAME, rate) and r <= rate) for rate in Rate
} | {Rate.ELEMENT: frozenset(Rate)}
"""The sections whose locals and coordinates a section may read."""

# The number of operands of each structural operation (None: any), and the type of its attribute.
_STRUCTURE: Mapping[str, tuple[int | None, type]] = {
    "state": (1, SlotPlane), "sample": (3, SlotPlane), "picture": (2, PicturePlane), "fetch": (1, PicturePlane),
    "strand": (None, StrandRef), "loop": (None, LoopBody), "loop_out": (1, int),
}  # fmt: skip


def verify(kernel: Kernel) -> None:
    """Raises MalformedError, with the section and the value, if the values of a kernel are malformed."""
    order = [section.rate for section in kernel.sections]
    if order != sorted(set(order)) or Rate.ELEMENT not in order:
        raise MalformedError(f"{kernel.name}: sections {[r.title for r in order]}")
    known: set[int] = set()
    for section in kernel.sections:
        _ValueCheck(kernel, section, known).run()
        known |= section.locals.keys()
    check_updates(kernel, [store.place for _, store in kernel.stores()])
    for stage in kernel.stages:
        verify(stage)


def check_updates(kernel: Kernel, updated: list[SlotPlane]) -> None:
    slots = kernel.slots if kernel.sweep == "grid" else ()
    if kernel.tick == "never":
        # A stage computes some of its images, and reads others.
        keys = {place.slot for place in updated}
        slots = tuple(slot for slot in slots if slot.key in keys and not slot.outlives)
    else:
        staged = {store.place.slot for stage in kernel.stages for _, store in stage.stores()}
        slots = tuple(slot for slot in slots if slot.outlives or slot.key not in staged)
    wanted = {SlotPlane(slot.key, plane) for slot in slots for plane in range(slot.planes)}
    if len(updated) != len(set(updated)) or set(updated) != wanted:
        raise MalformedError(f"{kernel.name}: updates {sorted(updated)} instead of {sorted(wanted)}")


@dataclass
class _ValueCheck:
    """Checks one section from front to back."""

    kernel: Kernel
    section: Section
    known: set[int]
    """The locals of the sections before."""
    defined: set[Node] = field(default_factory=set)
    """The values that may be used: of the section so far, of loops around this place, and checked leaves."""

    def run(self) -> None:
        section = self.section
        self._check_nodes(section.nodes, level=-1)
        for number, node in section.locals.items():
            self._require(0 <= number < len(self.kernel.locals), node, f"no local {number}")
            local = self.kernel.locals[number]
            self._require(local.rate == section.rate, node, f"local {number} belongs to the {local.rate.title} section")
            self._require(local.type == node.kind, node, f"local {number} is {local.type}")
            self._check_use(node, node)
        for store in section.stores:
            self._check_store(store.place, store.value)
        if section.outputs or section.rate == Rate.ELEMENT:
            at_end = section.rate == Rate.ELEMENT and len(section.outputs) == len(self.kernel.outputs)
            self._require(at_end, "outputs", f"{len(section.outputs)} values as {len(self.kernel.outputs)} outputs")
        for node in section.outputs:
            self._check_use(node, node)
            self._require(node.kind != "u32", node, "bits cannot leave the program")

    def _require(self, condition: bool, what: object, message: str) -> None:
        if not condition:
            raise MalformedError(f"{self.kernel.name}, {self.section.rate.title} section, {what}: {message}")

    def _check_nodes(self, nodes: Iterable[Node], level: int) -> None:
        for node in nodes:
            for arg in node.args:
                self._check_use(node, arg)
            signature = SIGNATURES.get(node.op)
            if signature is not None:
                self._check_kinds(node, [arg.kind for arg in node.args], signature[0])
                self._require(node.attr in (None, IMPLIED), node, "an operation has no attribute")
            else:
                self._check_structural(node, level)
            self._require(node.kind == kind_of(node.op, node.attr), node, "has another type")
            self.defined.add(node)

    def _check_kinds(self, node: Node, given: list[str], wanted: Iterable[str]) -> None:
        self._require(given == list(wanted), node, f"is given {given} as {list(wanted)}")

    def _check_use(self, node: Node, arg: Node) -> None:
        if arg in self.defined:
            return
        self._require(arg.op in LEAVES, node, f"uses {arg} before it is computed")
        self._check_leaf(arg)
        self.defined.add(arg)

    def _check_leaf(self, leaf: Node) -> None:
        visible = VISIBLE[self.section.rate]
        match leaf.op, leaf.attr:
            case ("const", float()) | ("u32", int()):
                return
            case "scalar", Scalar("number", int(at), "float"):
                self._require(0 <= at < len(self.kernel.numbers), leaf, f"the kernel has no number {at}")
            case "scalar", Scalar("uniform", name):
                self._require(name in self.kernel.uniforms, leaf, f"{name} is no uniform of the kernel")
            case ("scalar" | "line"), Scalar("coord", name) | Line("coord", name):
                rate = dict(self.kernel.coords).get(str(name))
                self._require(rate in visible, leaf, f"{name} is not there in this section ({rate})")
                self._check_form(leaf, rate)
            case ("scalar" | "line"), Scalar("local", int(number)) | Line("local", int(number)):
                self._require(0 <= number < len(self.kernel.locals), leaf, f"no local {number}")
                local = self.kernel.locals[number]
                self._require(local.rate in visible, leaf, f"local {number} is a {local.rate.title}'s")
                self._require(number in self.known, leaf, f"local {number} is read before it is computed")
                self._require(local.type == leaf.kind, leaf, f"local {number} is {local.type}")
                self._check_form(leaf, local.rate)
            case _:
                self._require(False, leaf, f"cannot be given as {leaf.attr}")

    def _check_form(self, leaf: Node, rate: Rate | None) -> None:
        is_line = rate not in (Rate.CONSTANT, Rate.FRAME)
        self._require((leaf.op == "line") == is_line, leaf, f"a {rate!r} is no {leaf.op}")
        self._require(not is_line or leaf.attr.rate == rate, leaf, f"changes with {rate!r}")

    def _check_structural(self, node: Node, level: int) -> None:
        self._require(node.op in _STRUCTURE, node, "unknown operation")
        count, attribute = _STRUCTURE[node.op]
        self._require(isinstance(node.attr, attribute), node, f"its attribute is no {attribute.__name__}")
        self._require(count is None or len(node.args) == count, node, f"takes {count} operands")
        self._check_kinds(node, [arg.kind for arg in node.args], ["float"] * len(node.args))
        match node.op:
            case "state":
                image = self._check_plane(node, node.attr)
                here = self.section.rate == Rate.ELEMENT and self.kernel.sweep == "grid"
                here = here and self.kernel.slot(node.attr.slot).level == self.kernel.level
                self._require(not image or here, node, "has no element here to be read at")
            case "sample":
                self._require(self._check_plane(node, node.attr), node, "is no image")
            case "picture" | "fetch":
                path, plane = node.attr
                is_known = path in self.kernel.pictures and 0 <= plane < (4 if node.op == "picture" else 2)
                self._require(is_known, node, f"is no plane of its {'pictures' if node.op == 'picture' else 'sounds'}")
            case "strand":
                self._require(node.attr in self.kernel.strands, node, "is no strand of the kernel")
            case "loop":
                self._check_loop(node, node.attr, level)
            case "loop_out":
                loop: Any = node.args[0]
                inside = loop.op == "loop" and 0 <= node.attr < len(loop.attr.carried)
                self._require(inside, node, "reads what no loop carries")
        for arg in node.args:
            self._require(arg.op != "loop" or node.op == "loop_out", node, "a loop is read by `loop_out` only")

    def _check_loop(self, node: Node, body: LoopBody, level: int) -> None:
        self._require(body.level > level, node, "its level is not the deepest")
        count = len(body.carried)
        self._require(count == len(body.following) == len(node.args) - 2, node, "carries more or fewer values")
        for k, carried in enumerate(body.carried):
            is_own = (carried.op, carried.attr) == ("loop_value", LoopValue(body.level, k))
            self._require(is_own, node, "carries values of another loop")
        outside = set(self.defined)
        self.defined.update(body.carried)
        if body.index is not None:
            self._require((body.index.op, body.index.attr) == ("loop_index", body.level), node, "its index")
            self.defined.add(body.index)
        self._check_nodes(body.nodes, body.level)
        for following in body.following:
            self._check_use(node, following)
            self._check_kinds(node, [following.kind], ["float"])
        # The loop may have had no step, so its values are not defined after it.
        self.defined = outside

    def _check_plane(self, node: Node, place: SlotPlane) -> bool:
        """Whether the slot is an image."""
        slot = next((s for s in self.kernel.slots if s.key == place.slot), None)
        if slot is None or not 0 <= place.plane < slot.planes:
            raise MalformedError(f"{self.kernel.name}, {node}: no such plane of a slot: {place}")
        return slot.image


    def _check_store(self, place: SlotPlane, value: Node) -> None:
        self._check_use(value, value)
        by_element = self._check_plane(value, place) or self.kernel.tick == "element"
        level = self.kernel.slot(place.slot).level
        self._require(not by_element or level == self.kernel.level, value, f"is an image of level {level}")
        rate = Rate.ELEMENT if by_element else Rate.FRAME
        self._require(self.section.rate == rate, value, "is stored at the wrong rate")
        self._check_kinds(value, [value.kind], ["float"])


# Units: compiled subgraphs, as they pass from process to process. `compilation` makes them.


@dataclass(frozen=True)
class Unit:
    """One compiled subgraph: the kernel over its context's sweep, and one for each strand that others read. Units with
    equal hashes are the same, so that nothing has to be built again. `feeds` computes, once a frame, the values that
    other contexts feed to a streaming one. `code` is code that was translated beforehand, for the backend named
    `code_of`."""

    subgraph: Subgraph
    kernel: Kernel
    points: Mapping[StrandRef, Kernel]
    hash: str
    feeds: Kernel | None = None
    code: object = None
    code_of: str = ""
    loops: tuple[Span, ...] = ()
    """The places of the loops that may be stopped by their limit of steps."""
    films: Kernel | None = None
    """Computes the times of the films that it shows, before each tick."""
    borrowed: frozenset[str] = frozenset()
    """The keys of the slots that another unit advances."""
    bridges: bool = False
    """Whether the code is for the CPU, which runs it until the proper device is ready."""

    def coded_for(self, name: str) -> Unit:
        """The unit without code of any other backend than the one of this name."""
        return self if self.code_of in ("", name) else replace(self, code=None, code_of="")

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """All of them."""
        aside = [kernel for kernel in (self.feeds, self.films) if kernel is not None]
        return (*self.kernel.stages, self.kernel, *self.points.values(), *aside)

    @property
    def pictures(self) -> frozenset[str]:
        """What its kernels sample."""
        return frozenset(name for kernel in self.kernels for name in kernel.pictures)

    @property
    def feeding(self) -> Unit | None:
        """The kernel of the feeds, as a unit of the context that computes numbers."""
        if self.feeds is None:
            return None
        name = f"{self.subgraph.name}: feeds"
        subgraph = replace(
            self.subgraph, name=name, context=self.feeds.context, tied=(), sinks=(), exposes=(), depends_on=()
        )
        return Unit(subgraph, self.feeds, {}, content_hash(self.feeds))
