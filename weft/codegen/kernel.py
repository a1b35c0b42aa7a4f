"""Kernels, the programs that code generation hands to backends: their form, their JSON and their hashes."""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import astuple, dataclass, fields, replace
from typing import Any, Literal, TypeAlias

from weft.codegen.values import Line, Node, Note, Rows, Scalar, Section, numbered, read_rows
from weft.errors import Span
from weft.graph.nodes import Subgraph
from weft.ir.expr import LoopShape, LoopValue, PicturePlane, SlotPlane, StateSlot
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
    tick: Literal["launch", "element"]
    """When state advances: at the end of a launch (a frame), or after every element (a sample)."""
    sections: tuple[Section, ...]
    outputs: tuple[str, ...]
    coords: tuple[tuple[str, Rate], ...]
    """The base coordinates that it reads, and the rate of each."""
    uniforms: tuple[str, ...]
    strands: tuple[StrandRef, ...]
    pictures: tuple[str, ...]
    slots: tuple[StateSlot, ...]
    locals: tuple[Allocation, ...]

    def section(self, rate: Rate) -> Section:
        """The section of a rate; an empty one if the kernel has none."""
        return next((s for s in self.sections if s.rate == rate), Section(rate))

    def slot(self, key: str) -> StateSlot:
        """The state slot of a key. Raises KeyError if the kernel has no such slot."""
        for slot in self.slots:
            if slot.key == key:
                return slot
        raise KeyError(key)

    def walk(self) -> Iterator[tuple[Rate, Node]]:
        """Every value, with the rate of its section."""
        for section in self.sections:
            for node in section.walk():
                yield section.rate, node


# Kernels as JSON, without loss in both directions, and their hashes.

Json: TypeAlias = Any


def to_json(kernel: Kernel) -> Json:
    """The kernel as JSON, for `from_json`: its fields, with rates as numbers and each section as rows."""
    sections = []
    for section in kernel.sections:
        rows, notes = numbered(section)
        attrs = [number_to_json(attr) if isinstance(attr, float) else attr for attr in rows.attrs]
        sections.append([section.rate, [*rows._replace(attrs=tuple(attrs))], notes])
    listed = {"slots": list(map(astuple, kernel.slots)), "locals": list(map(astuple, kernel.locals))}
    return {**{field.name: getattr(kernel, field.name) for field in fields(kernel)}, "sections": sections, **listed}


def from_json(data: Json) -> Kernel:
    """The kernel that `to_json` wrote."""
    made = {
        "sections": [_section_from_json(*section) for section in data["sections"]],
        "coords": [(name, Rate(rate)) for name, rate in data["coords"]],
        "strands": [StrandRef(*names) for names in data["strands"]],
        "slots": [StateSlot(*slot) for slot in data["slots"]],
        "locals": [Allocation(name, Rate(rate), kind) for name, rate, kind in data["locals"]],
    }
    lists = {name: tuple(value) for name, value in {**data, **made}.items() if not isinstance(value, str)}
    return Kernel(**{**data, **lists})


def content_hash(kernel: Kernel) -> str:
    """16 hexadecimal digits, equal for kernels that compute the same. The names of the kernel and of its values do not
    matter."""
    head = (
        kernel.context, kernel.sweep, kernel.tick, kernel.outputs, kernel.uniforms, kernel.strands, kernel.pictures,
        kernel.slots, [(name, int(rate)) for name, rate in kernel.coords],
        [(int(local.rate), local.type) for local in kernel.locals],
    )  # fmt: skip
    digest = hashlib.sha256(repr(head).encode())
    for section in kernel.sections:
        rows, _ = numbered(section)
        # Numbers are compared by their bits. The rows show which of them they belong to.
        numbers = [attr for attr in rows.attrs if isinstance(attr, float)]
        words = rows._replace(attrs=tuple([None if isinstance(attr, float) else attr for attr in rows.attrs]))
        digest.update(f"\n{int(section.rate)} {tuple(words)!r}".encode())
        digest.update(struct.pack(f"<{len(numbers)}d", *numbers))
    return digest.hexdigest()[:16]


_ATTRIBUTES: Mapping[str, Callable[..., Any]] = {
    "scalar": Scalar, "line": lambda source, key, rate, kind: Line(source, key, Rate(rate), kind), "state": SlotPlane,
    "sample": SlotPlane, "picture": PicturePlane, "strand": StrandRef, "loop": LoopShape, "loop_value": LoopValue,
}  # fmt: skip


def _section_from_json(rate: int, rows: Json, notes: Json) -> Section:
    ops, args, attrs, outputs, stores, locals_ = rows
    read = Rows(
        tuple(ops), tuple(map(tuple, args)), tuple(map(_attribute_from_json, ops, attrs)), tuple(outputs),
        tuple((SlotPlane(*place), number) for place, number in stores), tuple(map(tuple, locals_)),
    )  # fmt: skip
    return read_rows(Rate(rate), read, [(number, Note(*note)) for number, note in notes])


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


# Units: compiled subgraphs, as they pass from process to process. `compilation` makes them.


@dataclass(frozen=True)
class Unit:
    """One compiled subgraph: the kernel over its context's sweep, and one for each strand that others read. Equal
    hashes mean that nothing has to be built again. `feeds` computes, once a frame, the values that other contexts feed
    to a streaming one. `code` is the code that the backend named `code_of` has translated beforehand, if any."""

    subgraph: Subgraph
    kernel: Kernel
    points: Mapping[StrandRef, Kernel]
    hash: str
    feeds: Kernel | None = None
    code: object = None
    code_of: str = ""
    loops: tuple[Span, ...] = ()
    """The places of the loops that may be stopped by their limit of steps."""

    def coded_for(self, name: str) -> Unit:
        """The unit without code of any other backend than the one of this name."""
        return self if self.code_of in ("", name) else replace(self, code=None, code_of="")

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """All of them."""
        return (self.kernel, *self.points.values(), *([self.feeds] if self.feeds is not None else ()))

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
