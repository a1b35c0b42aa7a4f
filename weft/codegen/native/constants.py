"""Constants as arguments of machine code.

Code that does not depend on the values of constants serves again when a number of the text is tuned, which is what
happens most often on stage.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

from weft.codegen.kernel import Kernel, content_hash
from weft.codegen.native.target import SINGLE, Isa
from weft.codegen.native.writer import reciprocal
from weft.codegen.values import Rows, Scalar, Section
from weft.ir.rates import Rate

# The operations for which it makes little difference whether an operand is a constant; and a quotient by one, which is
# a sum of two products except in the launch prologue.
_TUNABLE = frozenset({"add", "sub", "mul", "lt", "le", "gt", "ge", "select"})
_TUNABLE_IN_PROLOGUE = _TUNABLE | {"div"}

_LINEAR = frozenset({"add", "sub", "mul", "div", "neg"})


class Argument(NamedTuple):
    """What a constant gives to an argument: itself, or a part of its reciprocal. The constant is one of those of a
    section, both by their numbers."""

    section: int
    constant: int
    part: Literal["itself", "value", "rest"]

    def of(self, constants: Sequence[Sequence[float]]) -> float | None:
        """Its value, from the constants of all sections; None without a usable reciprocal."""
        value = constants[self.section][self.constant]
        if self.part == "itself":
            return value
        parts = reciprocal(value, SINGLE)
        return None if parts is None else parts.value if self.part == "value" else parts.rest


@dataclass(frozen=True)
class Tunable:
    """A kernel with constants as `arguments`, as far as that is worth while. Each use of a constant is an argument of
    its own, since the text may have the number in several places. `fixed` are the bits of the other constants, by the
    numbers of their section and of the constant there."""

    kernel: Kernel
    arguments: tuple[Argument, ...]
    fixed: Mapping[tuple[int, int], bytes]

    @cached_property
    def hash(self) -> str:
        """The content hash of the kernel."""
        return content_hash(self.kernel)

    def constants(self, kernel: Kernel) -> tuple[float, ...] | None:
        """The arguments for a kernel that has the structure of the one that this was made of; None if it differs in
        more than arguments."""
        given = [section.constants for section in kernel.sections]
        if any(_bits(given[section][number]) != bits for (section, number), bits in self.fixed.items()):
            return None
        values = [argument.of(given) for argument in self.arguments]
        found = tuple([value for value in values if value is not None])
        return found if len(found) == len(values) else None


def _bits(value: float) -> bytes:
    return struct.pack("<d", value)


def tunable(kernel: Kernel, isa: Isa) -> Tunable:
    """The kernel with constants as arguments."""
    shown = [(row.op, row.attr) for row in kernel.section(Rate.ELEMENT).outputs]
    packed = {attr.key for op, attr in shown if op == "line" and attr.source == "local"}
    arguments: list[Argument] = []
    fixed: dict[tuple[int, int], bytes] = {}
    sections = []
    for number, section in enumerate(kernel.sections):
        copier = _Copier(section, number, arguments, fixed)
        sections.append(copier.copied(packed, isa.fused))
    return Tunable(replace(kernel, sections=tuple(sections)), tuple(arguments), fixed)


class _Copier:
    """Copies a section with constants as arguments, which are appended; the others are added to those that are
    `fixed`."""

    def __init__(
        self, section: Section, number: int, arguments: list[Argument], fixed: dict[tuple[int, int], bytes]
    ) -> None:
        self._section = section
        self._number = number
        self._rows, self._notes = section.numbered
        self._arguments = arguments
        self._fixed = fixed
        self._met = 0
        """The number of the next constant."""
        self._ops: list[str] = []
        self._args: list[tuple[int, ...]] = []
        self._attrs: list[Any] = []
        self._places: dict[object, int] = {}

    def copied(self, packed: Set[str | int], fused: bool) -> Section:
        """The copy. Constants that are merged with the levels of a pixel stay constants, in the locals that are
        `packed`, too."""
        rows, in_prologue = self._rows, self._section.rate <= Rate.FRAME
        merged = set[int]()
        for end in (*rows.outputs, *(at for key, at in rows.locals if key in packed)):
            merged |= _merged(rows, end)
        tunable = _TUNABLE_IN_PROLOGUE if in_prologue else _TUNABLE
        for at, (op, args, attr) in enumerate(zip(rows.ops, rows.args, rows.attrs, strict=True)):
            if op == "const":
                continue
            if op == "div" and not in_prologue and fused and at not in merged and self._has_reciprocal(args[1]):
                self._places[at] = self._append("quotient", (self._place(args[0]), *self._parts(args[1])), None)
                continue
            if op in tunable and at not in merged:
                found = [self._argument(arg) if rows.ops[arg] == "const" else self._place(arg) for arg in args]
            else:
                found = [self._place(arg) for arg in args]
            self._places[at] = self._append(op, tuple(found), attr)
        outputs = tuple(map(self._place, rows.outputs))
        stores = tuple([(slot, self._place(at)) for slot, at in rows.stores])
        locals_ = tuple([(key, self._place(at)) for key, at in rows.locals])
        changed = Rows(tuple(self._ops), tuple(self._args), tuple(self._attrs), outputs, stores, locals_)
        return Section.of_rows(self._section.rate, changed, [(self._places[at], note) for at, note in self._notes])

    def _append(self, op: str, args: tuple[int, ...], attr: Any) -> int:
        self._ops.append(op)
        self._args.append(args)
        self._attrs.append(attr)
        return len(self._ops) - 1

    def _place(self, at: int) -> int:
        """The row of an operand that is a constant, or another value, which has been copied."""
        if self._rows.ops[at] != "const":
            return self._places[at]
        value = self._rows.attrs[at]
        self._fixed[self._number, self._met] = bits = _bits(value)
        self._met += 1
        if bits not in self._places:
            self._places[bits] = self._append("const", (), value)
        return self._places[bits]

    def _argument(self, at: int) -> int:
        """The row of an argument for an operand that is a constant."""
        return self._parts(at, ("itself",))[0]

    def _parts(self, at: int, parts: Sequence[Literal["itself", "value", "rest"]] = ("value", "rest")) -> list[int]:
        """The rows of arguments for parts of an operand that is a constant."""
        made = []
        for part in parts:
            self._arguments.append(Argument(self._number, self._met, part))
            made.append(self._append("scalar", (), Scalar("const", len(self._arguments) - 1, "float")))
        self._met += 1
        return made

    def _has_reciprocal(self, at: int) -> bool:
        return self._rows.ops[at] == "const" and reciprocal(self._rows.attrs[at], SINGLE) is not None


def _merged(rows: Rows, end: int) -> set[int]:
    """The last sums and products with constants of which a value is made."""
    found = set[int]()
    while rows.ops[end] in _LINEAR:
        found.add(end)
        others = [arg for arg in rows.args[end] if rows.ops[arg] != "const"]
        if len(others) != 1:
            break
        end = others[0]
    return found
