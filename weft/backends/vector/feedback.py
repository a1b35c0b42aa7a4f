"""Sounds with state on the vector machine: numpy computes rows of samples, and loops of feedback become generated
Python functions that go sample by sample."""

from __future__ import annotations

import math
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from weft.backends.launch import (
    Array, Floats, Launch, StateMemory, fetch, fetch_all, gather, locate, located_arrays, sample, ticks_back
)
from weft.backends.vm import Machine, RunningLoop
from weft.codegen.kernel import NEST_STEPS, Kernel
from weft.codegen.values import Line, LoopBody, Node, Scalar
from weft.codes.rows import InternalError
from weft.ir.expr import PicturePlane, SlotPlane
from weft.media.frames import floats
from weft.ops import OPS, ieee
from weft.ops.spec import OpSpec, ValueType

# Computes graphs of values with numpy, each value for many elements at once, in double precision.

TYPES: Mapping[ValueType, type[np.generic]] = {"float": np.float64, "bool": np.bool_, "u32": np.uint32}
"""The numpy types of values."""


class OneByOneError(InternalError):
    """A part of a kernel has to be computed one element at a time."""


class ComputedValues(dict[Node, Any]):
    """The values computed so far, each a number or an array with one for each element. Constants and the inputs of the
    launch are added when they are first read."""

    def __init__(self, machine: Machine, lines: Mapping[str, Array], known: Mapping[Node, Any] | None = None) -> None:
        """`machine` has run the launch prologue; `lines` are the coordinates that change, by their names."""
        super().__init__(known or {})
        self.machine = machine
        self._lines = lines

    def __missing__(self, node: Node) -> Any:
        value: Any
        match node.op, node.attr:
            case ("const" | "u32"), number:
                value = _as(number, node.kind)
            case "scalar", Scalar(source, key):
                value = _as(self.machine.value_of(source, key), node.kind)
            case "line", Line("coord", str(name)):
                value = self._lines[name]
            case "loop_out", int(k):
                value = self[node.args[0]][k]
            case _:
                raise KeyError(f"{node.op} is used before it is computed")
        self[node] = value
        return value


def _as(number: float, kind: ValueType) -> Any:
    """A number as a value of numpy. A u32 is an integer."""
    return TYPES[kind](int(number) if kind == "u32" else number)


Call: TypeAlias = Callable[[ComputedValues], Any]
"""Computes a node from the values before it."""

Reads: TypeAlias = Callable[[Node], Call]
"""Gives the call that computes a read of state."""


class Calls:
    """Nodes in topological order, ready to be computed repeatedly."""

    def __init__(self, nodes: Iterable[Node], masked: Set[LoopBody] = frozenset(), reads: Reads | None = None) -> None:
        """`reads` gives the calls that read state. Raises OneByOneError for a read of state without it, and for the
        `masked` loops, which elements leave at different steps."""
        self._masked = masked
        self._reads = reads
        self._calls = [(node, self._call(node)) for node in nodes]

    def run(self, values: ComputedValues) -> None:
        """Adds the values of the nodes to `values`. The caller has to make numpy ignore floating-point errors."""
        for node, call in self._calls:
            values[node] = call(values)

    def _call(self, node: Node) -> Call:
        args, attr = node.args, node.attr
        match node.op:
            case "state" if self._reads is not None:
                return self._reads(node)
            case "picture":
                return lambda values: _sampled(values.machine.launch, attr, *(values[arg] for arg in args))
            case "fetch":
                return lambda values: fetch_all(
                    values.machine.launch.pictures[attr.picture][0, :, attr.plane], values[args[0]]
                ).astype(np.float64)
            case "strand":
                return lambda values: np.asarray(
                    values.machine.launch.strands[attr](*(values[arg] for arg in args)), np.float64
                )
            case "loop" if attr not in self._masked:
                return _loop(attr, args, Calls(attr.nodes, self._masked, self._reads))
            case "loop_out":
                return lambda values: values[args[0]][attr]
        row = OPS.get(node.op)
        if row is None:
            raise OneByOneError(node.op)
        function = _function(row)
        match args:
            case [x]:
                return lambda values: function(values[x])
            case [a, b]:
                return lambda values: function(values[a], values[b])
        return lambda values: function(*[values[arg] for arg in args])


def _function(row: OpSpec) -> Callable[..., Any]:
    """A row of the table of operators and builtins as a function of numbers and arrays."""
    form = row.vector
    if form is None:
        raise TypeError(f"{row.name} has no vector form")
    if isinstance(form, str):
        ufunc: Callable[..., Any] = getattr(np, form)
        return ufunc
    fill, kind, temps = form, TYPES[row.gives], row.temps

    def function(*args: Any) -> Array:
        shape = np.broadcast(*args).shape
        out = np.empty(shape, kind)
        fill(np, out, *args, *(np.empty(shape) for _ in range(temps)))
        return out

    return function


def _loop(body: LoopBody, args: Sequence[Node], calls: Calls) -> Call:
    """A loop with the same steps for all elements; its value is the list of carried values at the end."""
    first, last, *starts = args

    def run(values: ComputedValues) -> list[Any]:
        machine = values.machine
        if body.outermost:
            machine.steps_left = NEST_STEPS
        loop = RunningLoop(_number(values[first]), _number(values[last]), [values[start] for start in starts])
        while machine.make_step(loop):
            if body.index is not None:
                values[body.index] = np.float64(loop.index)
            values.update(zip(body.carried, loop.values, strict=True))
            calls.run(values)
            loop.values = [values[node] for node in body.following]
            loop.count += 1
        return loop.values

    return run


def _number(value: Any) -> float:
    """A value that is the same at all elements, as a Python number."""
    return float(np.asarray(value).reshape(-1)[0])


def _sampled(launch: Launch, place: PicturePlane, x: Any, y: Any) -> Array:
    """A channel of a picture at many places."""
    picture = floats(launch.pictures[place.picture])
    height, width, channels = picture.shape
    shape = np.broadcast(x, y).shape
    columns, rows = located_arrays(shape), located_arrays(shape)
    locate(x, width, channels, place.plane, columns)
    locate(y, height, width * channels, 0, rows)
    out = np.empty(shape)
    flat = np.ascontiguousarray(picture).reshape(-1)
    gather(flat, columns, rows, out, (np.empty(shape, np.intp), np.empty(shape), np.empty(shape)))
    return out


# State as rows of samples, read and stored for a whole block at once.


class PastBlock(ComputedValues):
    """The values of `count` samples, and the state of slots before them."""

    def __init__(
        self, machine: Machine, lines: Mapping[str, Array], known: Mapping[Node, Any], kept: Iterable[str], count: int
    ) -> None:
        """Copies the slots in `kept`; the others do not change before the end of the block."""
        super().__init__(machine, lines, known)
        self.count = count
        self._rings = {key: machine.memory.ring(key).copy() for key in kept}

    def past(self, place: SlotPlane, samples: Any) -> Any:
        """A number of a slot at earlier samples, counted from the beginning of the block: all below 0."""
        memory = self.machine.memory
        ring = self._rings[place.slot] if place.slot in self._rings else memory.ring(place.slot)
        return ring[memory.cell(place.slot, -samples), place.plane]

    def row(self, node: Node) -> Floats:
        """A value at all samples."""
        return np.broadcast_to(self[node], (self.count,))


def reads_of(kernel: Kernel, stored: Mapping[SlotPlane, Node]) -> Reads:
    """Rows of state, from the state before the block and from the rows of `stored` values."""

    def call(state: Node) -> Call:
        (ticks,), place = state.args, state.attr
        depth, source = kernel.slot(place.slot).depth, stored[place]

        def read(values: ComputedValues) -> Floats:
            assert isinstance(values, PastBlock)
            k = values[ticks]
            if np.ndim(k) == 0:
                return _shifted(values, place, source, ticks_back(float(k), depth))
            # The comparison is false for NaN, as in `ticks_back`.
            back = np.where(k >= 1, np.minimum(k, depth), 1).astype(np.intp)
            at = np.arange(values.count) - back
            past, row = values.past(place, np.minimum(at, -1)), values.row(source)
            return np.asarray(np.where(at < 0, past, row[np.maximum(at, 0)]))

        return read

    return call


def _shifted(values: PastBlock, place: SlotPlane, source: Node, back: int) -> Floats:
    before = min(back, values.count)
    row = np.empty(values.count)
    row[:before] = values.past(place, np.arange(before) - back)
    if before < values.count:
        row[before:] = values.row(source)[: values.count - before]
    return row


def store(memory: StateMemory, place: SlotPlane, row: Floats) -> None:
    """Stores a row of samples, beginning with the cell that this tick writes."""
    ring, count = memory.ring(place.slot), len(row)
    last = np.arange(max(0, count - len(ring)), count)
    ring[memory.cell(place.slot, -last), place.plane] = row[last]


# Writes loops of feedback as Python functions.
#
# A function computes a block of samples. Its inputs and outputs are rows of Python numbers. A number of a slot with a
# depth of one tick becomes two variables, for its last two values; for deeper slots, the function reads and writes the
# ring itself.

INLINE: Mapping[str, str] = MappingProxyType({
    "add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0} * {1}", "neg": "-{0}",
    "div": "{0} / {1} if {1} else divide({0}, {1})",
    "min": "{0} if {0} < {1} or {1} != {1} else {1}", "max": "{0} if {0} > {1} or {1} != {1} else {1}",
    # `{0} - {0}` is 0 only for finite numbers; `//` would turn an infinity into NaN.
    "floor": "{0} // 1.0 if {0} - {0} == 0.0 else {0}",
    "eq": "{0} == {1}", "ne": "{0} != {1}", "lt": "{0} < {1}", "le": "{0} <= {1}",
    "and": "{0} and {1}", "or": "{0} or {1}", "not": "not {0}", "select": "{1} if {0} else {2}",
    "to_float": "1.0 if {0} else 0.0",
    "bits_add": "({0} + {1}) & 0xFFFFFFFF", "bits_mul": "({0} * {1}) & 0xFFFFFFFF", "bits_xor": "{0} ^ {1}",
    "bits_shr": "{0} >> {1}",
})  # fmt: skip
"""Operators and builtins that are written inline, with their operands as `{0}`, `{1}`, …; the `fold` of the others is
called. A bool is a Python bool, a u32 an int."""

# The globals of a function besides the folds that it calls.
_GIVEN = MappingProxyType({
    "__builtins__": {}, "range": range, "zip": zip, "divide": ieee.divide, "ticks_back": ticks_back, "sample": sample,
    "fetch": fetch,
    "INFINITY": math.inf, "NAN": math.nan,
})  # fmt: skip

# A longer expression becomes a line of its own.
_LONGEST = 40

_WIDTH = 110


@dataclass(frozen=True, slots=True)
class SerialRecurrence:
    """Loops of feedback as a function. The other fields say what its parameters are: numbers that are the same at all
    samples, rows, slots, and channels of pictures and sounds; and for which values it gives rows (`leaves`)."""

    text: str
    function: Callable[..., tuple[list[list[Any]], list[tuple[float, float]]]]
    steady: tuple[Node, ...]
    rows: tuple[Node, ...]
    registers: tuple[SlotPlane, ...]
    """Numbers of slots with a depth of one tick."""
    rings: tuple[str, ...]
    """Deeper slots."""
    pictures: tuple[PicturePlane, ...]
    leaves: tuple[Node, ...]

    def run(self, values: PastBlock) -> None:
        """Computes a block: adds to its values and writes to memory, without advancing it."""
        memory, count = values.machine.memory, values.count
        rings = {key: memory.ring(key) for key in self.rings}
        leaves, registers = self.function(
            count,
            [values[node].item() for node in self.steady],
            [values.row(node).tolist() for node in self.rows],
            # The ring of a register has two values, since readers between ticks see one more back.
            [tuple(float(memory.planes(slot, ago)[plane]) for ago in (1, 2)) for slot, plane in self.registers],
            [(ring.reshape(-1).data, int(memory.cell(key)) * ring.shape[1]) for key, ring in rings.items()],
            [floats(values.machine.launch.pictures[path])[:, :, channel] for path, channel in self.pictures],
        )
        for place, numbers in zip(self.registers, registers, strict=True):
            for ago, number in enumerate(numbers, 1):
                memory.ring(place.slot)[memory.cell(place.slot, ago - count), place.plane] = number
        for node, row in zip(self.leaves, leaves, strict=True):
            values[node] = np.array(row, TYPES[node.kind])


@dataclass
class RecurrenceWriter:
    """Writes the function that computes `nodes`, which are in topological order, and stores some of them. Other parts
    read the `leaves` among them; `varying` are the values that differ from sample to sample."""

    kernel: Kernel
    nodes: Sequence[Node]
    stored: Mapping[SlotPlane, Node]
    leaves: Sequence[Node]
    varying: Set[Node] = frozenset()
    _texts: dict[Node, str] = field(default_factory=dict)
    _compound: set[Node] = field(default_factory=set)
    """Values whose text needs parentheses within other text."""
    _names: int = 0
    _called: dict[str, Callable[..., Any]] = field(default_factory=dict)
    _head: list[str] = field(default_factory=list)
    _body: list[str] = field(default_factory=list)
    _registers: dict[SlotPlane, str] = field(default_factory=dict)
    _rings: dict[str, str] = field(default_factory=dict)
    _pictures: dict[PicturePlane, str] = field(default_factory=dict)

    def recurrence(self) -> SerialRecurrence:
        """Raises OneByOneError if a node is a loop."""
        own = set(self.nodes)
        nodes = self._needed(own)
        self._name_sources(nodes)
        used = [*(arg for node in nodes for arg in self._operands(node)), *self.stored.values()]
        given = [node for node in dict.fromkeys(used) if node not in own and node.op not in ("const", "u32")]
        rows = [node for node in given if node in self.varying]
        steady = [node for node in given if node not in self.varying]
        self._texts = {node: self._name(_stem(node)) for node in given}
        self._head += [f"{self._texts[node]} = steady[{at}]" for at, node in enumerate(steady)]
        self._write_nodes(nodes)
        self._head += [f"row_{at} = []" for at in range(len(self.leaves))]
        self._body += [f"row_{at}.append({self._text(node)})" for at, node in enumerate(self.leaves)]
        self._write_stores()
        text = self._function([self._texts[node] for node in rows])
        names: dict[str, Any] = {**_GIVEN, **self._called}
        exec(compile(text, f"<{self.kernel.name} in turn>", "exec"), names)
        return SerialRecurrence(
            text, names["turn"], tuple(steady), tuple(rows), tuple(self._registers), tuple(self._rings),
            tuple(self._pictures), tuple(self.leaves),
        )  # fmt: skip

    def _operands(self, node: Node) -> tuple[Node, ...]:
        if node.op == "state" and (self.kernel.slot(node.attr.slot).depth == 1 or node.args[0].op == "const"):
            return ()
        return node.args

    def _needed(self, own: Set[Node]) -> list[Node]:
        """The needed ones among the nodes, in topological order."""
        found = {node for node in (*self.stored.values(), *self.leaves) if node in own}
        for node in reversed(self.nodes):
            if node in found:
                found.update(self._operands(node))
        return [node for node in self.nodes if node in found]

    def _name(self, stem: str) -> str:
        self._names += 1
        return f"{re.sub(r'[^A-Za-z0-9]', '_', stem)}_{self._names}"

    def _name_sources(self, nodes: Sequence[Node]) -> None:
        for place in dict.fromkeys([*(node.attr for node in nodes if node.op == "state"), *self.stored]):
            slot = self.kernel.slot(place.slot)
            if slot.depth == 1:
                name = self._registers[place] = self._name(slot.kind)
                self._head += [
                    f"# {slot.key!r}, number {place.plane}",
                    f"{name}, {name}_before = registers[{len(self._registers) - 1}]",
                ]
            elif slot.key not in self._rings:
                name = self._rings[slot.key] = self._name(slot.kind)
                self._head += [f"# {slot.key!r}", f"{name}, {name}_at = rings[{len(self._rings) - 1}]"]
        for place in dict.fromkeys(node.attr for node in nodes if node.op in ("picture", "fetch")):
            name = self._pictures[place] = self._name("picture")
            self._head += [f"# {place.picture!r}", f"{name} = pictures[{len(self._pictures) - 1}]"]

    def _write_nodes(self, nodes: Sequence[Node]) -> None:
        """Writes a line for each value that is used more than once or is long. Other values are written where they are
        used."""
        forms = {node: self._form(node) for node in nodes}
        # The next value of a register has a line of its own, since registers are updated one after another.
        moved = {node for place, node in self.stored.items() if place in self._registers}
        uses = Counter([*self.stored.values(), *self.leaves, *moved])
        for node, form in forms.items():
            for at, arg in enumerate(self._operands(node)):
                uses[arg] += form.count(f"{{{at}}}")
        for node, form in forms.items():
            write = self._within if node.op in INLINE else self._text
            text = form.format(*map(write, self._operands(node)))
            is_short = uses[node] == 1 and len(text) <= _LONGEST
            is_name = node.op == "state" and node.attr in self._registers
            if is_short or (is_name and node not in moved):
                self._texts[node] = text
                if node.op in INLINE:
                    self._compound.add(node)
            else:
                self._texts[node] = self._name(node.op)
                self._body.append(f"{self._texts[node]} = {text}")

    def _form(self, node: Node) -> str:
        """The template of a value's text, with `{0}`, `{1}`, … for its operands."""
        match node.op:
            case "state":
                return self._state(node.attr, node.args[0])
            case "picture":
                return f"sample({self._pictures[node.attr]}, {{0}}, {{1}})"
            case "fetch":
                return f"fetch({self._pictures[node.attr]}[0], {{0}})"
            case "div" if node.args[1].op == "const" and node.args[1].attr != 0:
                return "{0} / {1}"
        if node.op in INLINE:
            return INLINE[node.op]
        row = OPS.get(node.op)
        if row is None or row.gives == "bool":
            raise OneByOneError(f"{node.op} among what state needs")
        self._called[row.name] = row.fold
        return f"{row.name}({', '.join(f'{{{at}}}' for at in range(len(row.params)))})"

    def _state(self, place: SlotPlane, ticks: Node) -> str:
        """A number of a slot some ticks ago. In a ring, a negative position counts from its end."""
        if place in self._registers:
            return self._registers[place]
        slot, name = self.kernel.slot(place.slot), self._rings[place.slot]
        if ticks.op == "const":
            return f"{name}[{name}_at - {ticks_back(ticks.attr, slot.depth) * slot.planes - place.plane}]"
        back = f"ticks_back({{0}}, {slot.depth})"
        return f"{name}[{name}_at - {back}{f' * {slot.planes} + {place.plane}' * (slot.planes > 1)}]"

    def _text(self, node: Node) -> str:
        return _literal(node.attr) if node.op in ("const", "u32") else self._texts[node]

    def _within(self, node: Node) -> str:
        """The text of a value as an operand of operators."""
        return f"({self._text(node)})" if node in self._compound else self._text(node)

    def _write_stores(self) -> None:
        for place, node in self.stored.items():
            if place.slot in self._rings:
                name = self._rings[place.slot]
                self._body.append(f"{name}[{name}_at{f' + {place.plane}' * (place.plane > 0)}] = {self._text(node)}")
        for key, name in self._rings.items():
            slot = self.kernel.slot(key)
            last = slot.depth * slot.planes
            self._body.append(f"{name}_at = {name}_at + {slot.planes} if {name}_at < {last} else 0")
        for place, name in self._registers.items():
            self._body.append(f"{name}_before = {name}")
            if place in self.stored:
                self._body.append(f"{name} = {self._text(self.stored[place])}")

    def _function(self, rows: Sequence[str]) -> str:
        samples = f"{_listed('()', rows)} in zip(*rows)" if rows else "_ in range(count)"
        leaves = _listed("[]", [f"row_{at}" for at in range(len(self.leaves))])
        registers = _listed("[]", [f"({name}, {name}_before)" for name in self._registers.values()])
        return "\n".join([
            "def turn(count, steady, rows, registers, rings, pictures):",
            textwrap.indent("\n".join([*self._head, f"for {samples}:"]), "    "),
            textwrap.indent("\n".join(self._body or ["pass"]), "        "),
            f"    return {leaves}, {registers}\n",
        ])  # fmt: skip


def _stem(node: Node) -> str:
    match node.attr:
        case Line(_, str(name)) | Scalar(_, str(name)):
            return name
    return node.op


def _literal(number: float) -> str:
    if math.isnan(number):
        return "NAN"
    return repr(number) if math.isfinite(number) else f"{'-' * (number < 0)}INFINITY"


def _listed(brackets: str, texts: Sequence[str]) -> str:
    """Texts in brackets, separated by commas, on as many lines as they need."""
    listed = ", ".join(texts) + "," * (brackets == "()" and len(texts) == 1)
    return textwrap.fill(f"{brackets[0]}{listed}{brackets[1]}", _WIDTH, subsequent_indent=" " * 8)
