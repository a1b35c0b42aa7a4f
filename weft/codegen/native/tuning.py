"""Constants that can change: as arguments of the machine code of pictures and of the lists of calls of sounds, and as
words of the lists of calls of pictures, whose slots would not suffice for an argument for each use.

Code that does not depend on the values of constants is used again when a number of the text is tuned, which on stage
happens more often than anything else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite
from typing import Any, Literal, TypeAlias

from weft.codegen.kernel import Kernel, content_hash
from weft.codegen.native.target import SINGLE, Isa
from weft.codegen.native.writer import reciprocal
from weft.codegen.values import Rows, Scalar, Section
from weft.ir.rates import Rate
from weft.ir.tunable import bits

# The operations of machine code for which it makes little difference whether an operand is a constant. A quotient by
# one is a sum of two products, except in the launch prologue.
_TUNABLE = frozenset({"add", "sub", "mul", "lt", "le", "gt", "ge", "select"})
_TUNABLE_IN_PROLOGUE = _TUNABLE | {"div"}

# The operations of lists of calls whose constants decide how they are computed.
_DECIDING = frozenset({"mod", "state", "sample", "loop", "next"})

_LINEAR = frozenset({"add", "sub", "mul", "div", "neg"})

Part: TypeAlias = Literal["itself", "value", "rest", "finite", "nonzero", "no step"]
"""The part of a constant that is an argument: the constant itself, or a part of its reciprocal. The last three are the
constant itself as well, with a condition: finite; also not 0; or none of −1, 0 and 1."""

Rule: TypeAlias = "Callable[[str, int, float], Part | None]"
"""What a constant becomes as an operand: of an operation, at a place, with a value. None: it stays a constant."""

Use: TypeAlias = tuple[int, int]
"""A constant of a kernel: the number of its section, and its own among the operands there that are constants."""


@dataclass(frozen=True, slots=True)
class ConstantArgument:
    """An argument for one use of a constant."""

    part: Part
    use: Use

    def of(self, constants: Sequence[Sequence[float]]) -> float | None:
        """Its value, from the constants of all sections; None if the condition does not hold."""
        section, at = self.use
        value = constants[section][at]
        if self.part == "itself":
            return value
        if self.part in ("value", "rest"):
            parts = reciprocal(value, SINGLE)
            return None if parts is None else parts.value if self.part == "value" else parts.rest
        return value if suits(self.part, value) else None


def suits(part: Part, value: float) -> bool:
    """Whether a constant can be an argument that has a condition."""
    return isfinite(value) and (part == "finite" or value != 0) and (part != "no step" or abs(value) != 1)


@dataclass(frozen=True)
class TunableKernel:
    """A kernel with `arguments` in place of constants where that pays. `fixed` are the bits of the others."""

    kernel: Kernel
    arguments: Sequence[ConstantArgument]
    fixed: Mapping[Use, bytes]

    @cached_property
    def hash(self) -> str:
        """The content hash of the kernel."""
        return content_hash(self.kernel)

    def constants(self, kernel: Kernel) -> tuple[float, ...] | None:
        """The arguments for a kernel that has the structure of the one that this was made of; None if it differs in
        more than arguments."""
        given = [section.constants for section in kernel.sections]
        if any(bits(given[section][at]) != known for (section, at), known in self.fixed.items()):
            return None
        values = [argument.of(given) for argument in self.arguments]
        found = tuple([value for value in values if value is not None])
        return found if len(found) == len(values) else None


def tunable(kernel: Kernel, isa: Isa | None) -> TunableKernel:
    """The kernel with constants as arguments: of machine code, or without `isa` of a list of calls."""
    return with_arguments(kernel, lambda section: _rule(section, isa), isa, lambda section: _merged(kernel, section))


def with_arguments(
    kernel: Kernel, rule: Callable[[Section], Rule | None], isa: Isa | None = None,
    merged: Callable[[Section], Set[int]] = lambda section: frozenset(),
) -> TunableKernel:  # fmt: skip
    """The kernel with arguments in place of those constants that the rule of their section names. A section without a
    rule does not change. Each use of a constant is an argument of its own, since the text may have the number in
    several places. For `isa`, quotients by constants become products. The constants of `merged` values stay
    constants."""
    arguments: list[ConstantArgument] = []
    fixed: dict[Use, bytes] = {}
    sections = []
    for number, section in enumerate(kernel.sections):
        found = rule(section)
        copier = None if found is None else _Copier(section, number, found, isa, arguments, fixed)
        sections.append(section if copier is None else copier.copied(merged(section)))
    return TunableKernel(replace(kernel, sections=tuple(sections)), arguments, fixed)


def _rule(section: Section, isa: Isa | None) -> Rule:
    """The rule of lists of calls, or of machine code."""
    in_prologue = section.rate <= Rate.FRAME
    usual = _TUNABLE_IN_PROLOGUE if in_prologue else _TUNABLE

    def part_of(op: str, place: int, value: float) -> Part | None:
        is_tunable = op not in _DECIDING if isa is None else op in usual
        return "itself" if is_tunable else None

    return part_of


def _merged(kernel: Kernel, section: Section) -> set[int]:
    """The values whose constants are merged with the levels of a pixel, by their rows."""
    if kernel.tick == "element":
        return set()
    shown = [(row.op, row.attr) for row in kernel.section(Rate.ELEMENT).outputs]
    packed = {attr.key for op, attr in shown if op == "line" and attr.source == "local"}
    rows, _ = section.numbered
    ends = (*rows.outputs, *(at for key, at in rows.locals if key in packed))
    return set[int]().union(*(_last_sums(rows, end) for end in ends))


def _last_sums(rows: Rows, end: int) -> set[int]:
    """The last sums and products with constants of which a value is made."""
    found = set[int]()
    while rows.ops[end] in _LINEAR:
        found.add(end)
        others = [arg for arg in rows.args[end] if rows.ops[arg] != "const"]
        if len(others) != 1:
            break
        end = others[0]
    return found


def decisive_constants(kernel: Kernel, section: Section) -> Iterator[int]:
    """The numbers of the constants of a section on whose values a list of calls depends, apart from the words that hold
    them."""
    rows, merged, met = section.numbered[0], _merged(kernel, section), 0
    for at, (op, args) in enumerate(zip(rows.ops, rows.args, strict=True)):
        count = sum(rows.ops[arg] == "const" for arg in args)
        if op in _DECIDING or at in merged:
            yield from range(met, met + count)
        met += count
    yield from range(met, len(section.constants))  # the results


class _Copier:
    """Copies a section with constants as arguments, which are appended; the others are added to those that are
    `fixed`."""

    def __init__(
        self, section: Section, number: int, rule: Rule, isa: Isa | None, arguments: list[ConstantArgument],
        fixed: dict[Use, bytes],
    ) -> None:  # fmt: skip
        self._section = section
        self._number = number
        self._rule = rule
        self._isa = isa
        self._rows, self._notes = section.numbered
        self._arguments = arguments
        self._fixed = fixed
        self._met = 0
        """The number of the next constant."""
        self._ops: list[str] = []
        self._args: list[tuple[int, ...]] = []
        self._attrs: list[Any] = []
        self._places: dict[object, int] = {}

    def copied(self, merged: Set[int]) -> Section:
        """The copy. The constants of values that are `merged` stay constants."""
        rows = self._rows
        for at, (op, args, attr) in enumerate(zip(rows.ops, rows.args, rows.attrs, strict=True)):
            if op == "const":
                continue
            if op == "div" and at not in merged and self._is_quotient(args[1]):
                self._places[at] = self._append("quotient", (self._place(args[0]), *self._parts()), None)
                continue
            if at in merged:
                found = [self._place(arg) for arg in args]
            else:
                found = [self._operand(op, place, arg) for place, arg in enumerate(args)]
            self._places[at] = self._append(op, tuple(found), attr)
        outputs = tuple(map(self._place, rows.outputs))
        stores = tuple([(slot, self._place(at)) for slot, at in rows.stores])
        locals_ = tuple([(key, self._place(at)) for key, at in rows.locals])
        changed = Rows(tuple(self._ops), tuple(self._args), tuple(self._attrs), outputs, stores, locals_)
        return Section.of_rows(self._section.rate, changed, [(self._places[at], note) for at, note in self._notes])

    def _operand(self, op: str, place: int, at: int) -> int:
        """The row of an operand, which may be a constant that becomes an argument."""
        part = self._rule(op, place, self._rows.attrs[at]) if self._rows.ops[at] == "const" else None
        return self._place(at) if part is None else self._argument(part, self._use())

    def _is_quotient(self, divisor: int) -> bool:
        """Whether a quotient is a sum of two products."""
        in_prologue = self._section.rate <= Rate.FRAME
        if self._isa is None or not self._isa.fused or in_prologue or self._rows.ops[divisor] != "const":
            return False
        return reciprocal(self._rows.attrs[divisor], SINGLE) is not None

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
        self._fixed[self._use()] = known = bits(value)
        if known not in self._places:
            self._places[known] = self._append("const", (), value)
        return self._places[known]

    def _use(self) -> Use:
        """The next constant."""
        self._met += 1
        return self._number, self._met - 1

    def _parts(self) -> tuple[int, int]:
        """The rows of the arguments for the parts of a reciprocal."""
        use = self._use()
        return self._argument("value", use), self._argument("rest", use)

    def _argument(self, part: Part, use: Use) -> int:
        """The row of an argument for an operand that is a constant."""
        self._arguments.append(ConstantArgument(part, use))
        return self._append("scalar", (), Scalar("const", len(self._arguments) - 1, "float"))
