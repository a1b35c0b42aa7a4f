"""Loops of feedback, sample by sample: as Python functions, which are written for their kernel.

A function goes through a block of samples. What was computed before comes in as rows of Python's numbers, and what
others go on with goes out as rows. A number of a slot that remembers one tick is a variable meanwhile, beside what it
was one tick before; of a slot that remembers more, the function reads and writes the ring itself.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from weft.backends.memory import StateMemory, ticks_back
from weft.backends.sampling import sample
from weft.backends.vector_nodes import TYPES, OneByOneError
from weft.backends.vector_past import PastBlock
from weft.codegen.base import Kernel
from weft.codegen.values import Line, Node, Scalar
from weft.ir.expr import PicturePlane, SlotPlane
from weft.ops import OPS, ieee

INLINE: Mapping[str, str] = MappingProxyType({
    "add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0} * {1}", "neg": "-{0}",
    "div": "{0} / {1} if {1} else divide({0}, {1})",
    "min": "{0} if {0} < {1} or {1} != {1} else {1}", "max": "{0} if {0} > {1} or {1} != {1} else {1}",
    # Only what is finite leaves 0 of itself; of an infinity, `//` would make NaN.
    "floor": "{0} // 1.0 if {0} - {0} == 0.0 else {0}",
    "eq": "{0} == {1}", "ne": "{0} != {1}", "lt": "{0} < {1}", "le": "{0} <= {1}",
    "and": "{0} and {1}", "or": "{0} or {1}", "not": "not {0}", "select": "{1} if {0} else {2}",
    "to_real": "1.0 if {0} else 0.0",
    "bits_add": "({0} + {1}) & 0xFFFFFFFF", "bits_mul": "({0} * {1}) & 0xFFFFFFFF", "bits_xor": "{0} ^ {1}",
    "bits_shr": "{0} >> {1}",
})  # fmt: skip
"""Rows of the table of operators and builtins that are written out, with their operands as `{0}`, `{1}`, …; the others
are called by their `fold`. Truths are True and False here, bits are ints."""

# What the function finds besides the folds that it calls.
_GIVEN = MappingProxyType({
    "__builtins__": {}, "range": range, "zip": zip, "divide": ieee.divide, "ticks_back": ticks_back, "sample": sample,
    "INFINITY": math.inf, "NAN": math.nan,
})  # fmt: skip

# A longer expression becomes a line of its own.
_LONGEST = 40

_WIDTH = 110


@dataclass(frozen=True, slots=True)
class SerialRecurrence:
    """Loops of feedback, as a function. The rest says what its parameters stand for: numbers that are the same at all
    samples, rows, slots, and channels of pictures; and of what it gives rows (`leaves`)."""

    text: str
    function: Callable[..., tuple[list[list[Any]], list[tuple[float, float]]]]
    steady: tuple[Node, ...]
    rows: tuple[Node, ...]
    registers: tuple[SlotPlane, ...]
    """Numbers of slots that remember one tick."""
    rings: tuple[str, ...]
    """Slots that remember more."""
    pictures: tuple[PicturePlane, ...]
    leaves: tuple[Node, ...]

    def run(self, values: PastBlock) -> None:
        """Computes a block: adds to its values, and writes to memory, which does not move on yet."""
        memory, count = values.machine.memory, values.count
        leaves, registers = self.function(
            count,
            [values[node].item() for node in self.steady],
            [values.row(node).tolist() for node in self.rows],
            [_register(memory, place) for place in self.registers],
            [_ring(memory, key) for key in self.rings],
            [values.machine.launch.pictures[path][:, :, channel] for path, channel in self.pictures],
        )
        for place, numbers in zip(self.registers, registers, strict=True):
            for ago, number in enumerate(numbers, 1):
                memory.ring(place.slot)[memory.cell(place.slot, ago - count), place.plane] = number
        for node, row in zip(self.leaves, leaves, strict=True):
            values[node] = np.array(row, TYPES[node.kind])


def _register(memory: StateMemory, place: SlotPlane) -> tuple[float, float]:
    """A number as it was one tick ago, and two: the ring has both, since between ticks it is read one further back."""
    ring = memory.ring(place.slot)
    one, two = (float(ring[memory.cell(place.slot, ago), place.plane]) for ago in (1, 2))
    return one, two


def _ring(memory: StateMemory, key: str) -> tuple[memoryview, int]:
    """All numbers of a ring, which Python reads and writes in place, and where the cell begins that is written next."""
    ring = memory.ring(key)
    return ring.reshape(-1).data, int(memory.cell(key)) * ring.shape[1]


def write_recurrence(
    kernel: Kernel,
    nodes: Sequence[Node],
    stored: Mapping[SlotPlane, Node],
    leaves: Sequence[Node],
    varying: Set[Node] = frozenset(),
) -> SerialRecurrence:
    """The function that computes these nodes, whose operands stand before their users, and stores some of them. Others
    go on with the `leaves` among them; `varying` are the values that differ from sample to sample. Raises OneByOneError
    if one is a loop of steps."""
    return _PythonWriter(kernel, nodes, stored, leaves, varying).turn()


class _PythonWriter:
    def __init__(
        self,
        kernel: Kernel,
        nodes: Sequence[Node],
        stored: Mapping[SlotPlane, Node],
        leaves: Sequence[Node],
        varying: Set[Node],
    ) -> None:
        self._kernel = kernel
        self._varying = varying
        self._own = set(nodes)
        self._stored = stored
        self._leaves = tuple(leaves)
        self._moved = {node for place, node in self._stored.items() if self._is_register(place)}
        """What becomes the number of a register."""
        self._nodes = self._needed(nodes)
        self._texts: dict[Node, str] = {}
        self._compound: set[Node] = set()
        """Values whose text needs brackets within other text."""
        self._names = 0
        self._called: dict[str, Callable[..., Any]] = {}
        self._head: list[str] = []
        self._body: list[str] = []
        self._registers: dict[SlotPlane, str] = {}
        self._rings: dict[str, str] = {}
        self._pictures: dict[PicturePlane, str] = {}

    def turn(self) -> SerialRecurrence:
        self._name_slots()
        given = self._given_values()
        rows = [node for node in given if node in self._varying]
        steady = [node for node in given if node not in self._varying]
        self._texts = {node: self._name(_stem(node)) for node in given}
        self._name_pictures()
        self._head += [f"{self._texts[node]} = steady[{at}]" for at, node in enumerate(steady)]
        self._write_nodes()
        self._write_leaves()
        self._write_stores()
        text = self._function([self._texts[node] for node in rows])
        return SerialRecurrence(
            text, self._compiled(text), tuple(steady), tuple(rows), tuple(self._registers), tuple(self._rings),
            tuple(self._pictures), self._leaves,
        )  # fmt: skip

    # What there is.

    def _is_register(self, place: SlotPlane) -> bool:
        return self._kernel.slot(place.slot).depth == 1

    def _operands(self, node: Node) -> tuple[Node, ...]:
        """What the text of a value is made of."""
        if node.op == "state" and (self._is_register(node.attr) or node.args[0].op == "const"):
            return ()
        return node.args

    def _needed(self, nodes: Sequence[Node]) -> list[Node]:
        """What is needed of these nodes. Operands stand before their users."""
        found = {node for node in (*self._stored.values(), *self._leaves) if node in self._own}
        for node in reversed(nodes):
            if node in found:
                found.update(self._operands(node))
        return [node for node in nodes if node in found]

    def _given_values(self) -> list[Node]:
        """What comes from outside, besides constants."""
        used = [*(arg for node in self._nodes for arg in self._operands(node)), *self._stored.values()]
        return [node for node in dict.fromkeys(used) if node not in self._own and node.op not in ("const", "bits")]

    # Names.

    def _name(self, stem: str) -> str:
        self._names += 1
        return f"{re.sub(r'[^A-Za-z0-9]', '_', stem)}_{self._names}"

    def _name_slots(self) -> None:
        places = dict.fromkeys([*(node.attr for node in self._nodes if node.op == "state"), *self._stored])
        for place in places:
            slot = self._kernel.slot(place.slot)
            if slot.depth == 1:
                name = self._registers[place] = self._name(slot.kind)
                self._head += [
                    f"# {slot.key!r}, number {place.plane}",
                    f"{name}, {name}_before = registers[{len(self._registers) - 1}]",
                ]
            elif slot.key not in self._rings:
                name = self._rings[slot.key] = self._name(slot.kind)
                self._head += [f"# {slot.key!r}", f"{name}, {name}_at = rings[{len(self._rings) - 1}]"]

    def _name_pictures(self) -> None:
        for node in self._nodes:
            if node.op == "picture" and node.attr not in self._pictures:
                name = self._pictures[node.attr] = self._name("picture")
                self._head += [f"# {node.attr.picture!r}", f"{name} = pictures[{len(self._pictures) - 1}]"]

    # Text.

    def _write_nodes(self) -> None:
        """A line for each value that is used more than once, or is long; the others are part of where they are used."""
        forms = {node: self._form(node) for node in self._nodes}
        uses = self._uses(forms)
        for node, form in forms.items():
            write = self._within if node.op in INLINE else self._text
            text = form.format(*map(write, self._operands(node)))
            is_short = uses[node] == 1 and len(text) <= _LONGEST
            is_name = node.op == "state" and node.attr in self._registers
            if is_short or (is_name and node not in self._moved):
                self._texts[node] = text
                if node.op in INLINE:
                    self._compound.add(node)
            else:
                self._texts[node] = self._name(node.op)
                self._body.append(f"{self._texts[node]} = {text}")

    def _uses(self, forms: Mapping[Node, str]) -> Counter[Node]:
        """How often the text of each value would be written."""
        # What a register becomes is a line of its own: they move on one after another.
        uses = Counter([*self._stored.values(), *self._leaves, *self._moved])
        for node, form in forms.items():
            for at, arg in enumerate(self._operands(node)):
                uses[arg] += form.count(f"{{{at}}}")
        return uses

    def _form(self, node: Node) -> str:
        """How a value is written, with `{0}`, `{1}`, … for its operands."""
        match node.op:
            case "state":
                return self._state(node.attr, node.args[0])
            case "picture":
                return f"sample({self._pictures[node.attr]}, {{0}}, {{1}})"
            case "div" if node.args[1].op == "const" and node.args[1].attr != 0:
                return "{0} / {1}"
        if node.op in INLINE:
            return INLINE[node.op]
        row = OPS.get(node.op)
        if row is None or row.gives == "truth":
            raise OneByOneError(f"{node.op} among what state needs")
        self._called[row.name] = row.fold
        return f"{row.name}({', '.join(f'{{{at}}}' for at in range(len(row.params)))})"

    def _state(self, place: SlotPlane, ticks: Node) -> str:
        """A number of a slot some ticks ago. In a ring, what lies before its first cell is counted from its end."""
        if place in self._registers:
            return self._registers[place]
        slot, name = self._kernel.slot(place.slot), self._rings[place.slot]
        if ticks.op == "const":
            return f"{name}[{name}_at - {ticks_back(ticks.attr, slot.depth) * slot.planes - place.plane}]"
        back = f"ticks_back({{0}}, {slot.depth})"
        return f"{name}[{name}_at - {back}]" if slot.planes == 1 else (
            f"{name}[{name}_at - {back} * {slot.planes} + {place.plane}]"
        )  # fmt: skip

    def _text(self, node: Node) -> str:
        return _literal(node.attr) if node.op in ("const", "bits") else self._texts[node]

    def _within(self, node: Node) -> str:
        """The text of a value as an operand of operators."""
        return f"({self._text(node)})" if node in self._compound else self._text(node)

    def _write_leaves(self) -> None:
        for at, node in enumerate(self._leaves):
            self._head.append(f"row_{at} = []")
            self._body.append(f"row_{at}.append({self._text(node)})")

    def _write_stores(self) -> None:
        """What slots will have been one tick ago, and how they move on to that tick."""
        for place, node in self._stored.items():
            if place.slot in self._rings:
                name = self._rings[place.slot]
                self._body.append(f"{name}[{name}_at{f' + {place.plane}' * (place.plane > 0)}] = {self._text(node)}")
        for key, name in self._rings.items():
            slot = self._kernel.slot(key)
            last = slot.depth * slot.planes
            self._body.append(f"{name}_at = {name}_at + {slot.planes} if {name}_at < {last} else 0")
        for place, name in self._registers.items():
            self._body.append(f"{name}_before = {name}")
            if place in self._stored:
                self._body.append(f"{name} = {self._text(self._stored[place])}")

    def _function(self, rows: Sequence[str]) -> str:
        samples = f"{_listed('()', rows)} in zip(*rows)" if rows else "_ in range(count)"
        leaves = _listed("[]", [f"row_{at}" for at in range(len(self._leaves))])
        registers = _listed("[]", [f"({name}, {name}_before)" for name in self._registers.values()])
        return "\n".join([
            "def turn(count, steady, rows, registers, rings, pictures):",
            *_indented(self._head, 1),
            f"    for {samples}:",
            *_indented(self._body or ["pass"], 2),
            f"    return {leaves}, {registers}",
            "",
        ])  # fmt: skip

    def _compiled(self, text: str) -> Callable[..., Any]:
        names: dict[str, Any] = {**_GIVEN, **self._called}
        exec(compile(text, f"<{self._kernel.name} in turn>", "exec"), names)
        function: Callable[..., Any] = names["turn"]
        return function


def _stem(node: Node) -> str:
    """What the name of a value that comes from outside begins with."""
    match node.attr:
        case Line(_, str(name)) | Scalar(_, str(name)):
            return name
    return node.op


def _literal(number: float) -> str:
    if math.isnan(number):
        return "NAN"
    return repr(number) if math.isfinite(number) else f"{'-' * (number < 0)}INFINITY"


def _listed(brackets: str, texts: Sequence[str]) -> str:
    """Texts with commas between them, in brackets, on as many lines as that takes."""
    listed = ", ".join(texts) + "," * (brackets == "()" and len(texts) == 1)
    return textwrap.fill(f"{brackets[0]}{listed}{brackets[1]}", _WIDTH, subsequent_indent=" " * 8)


def _indented(lines: Iterable[str], depth: int) -> list[str]:
    return [f"{'    ' * depth}{line}" for line in lines]
