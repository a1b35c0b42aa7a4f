"""The numbers of kernels, for a device: those that are inputs of its code, and those that decide what the code is.

A number of a text is an input of the kernel (`Kernel.numbers`), so a save that tunes it needs no other kernel. In some
places, such as an exponent or the divisor of a remainder, a constant makes the code of a device faster, or possible at
all. The rule of the device says which places these are. Kernels that differ in other numbers only share their code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite
from typing import NamedTuple, TypeAlias

from weft.codegen.kernel import Kernel, content_hash, structure_hash
from weft.codegen.values import Rows, Scalar, Section
from weft.ir.rates import Rate
from weft.ir.tunable import bits
from weft.recently_used import RecentlyUsed


class NumberUse(NamedTuple):
    """A number as an operand: the operation, its place among the operands, whether it is computed once a launch, and
    whether it is among the last sums and products of an output, which are merged with the levels of a pixel."""

    op: str
    place: int
    in_prologue: bool
    in_level: bool


Rule: TypeAlias = Callable[[NumberUse, float], bool]
"""Whether a number with this value decides something where it is used."""


@dataclass(frozen=True, eq=False)
class OpenKernel:
    """A kernel with constants in place of the numbers that decide what its code is: `decided` has these by their
    places. Another kernel of its structure has the same code if these numbers are the same."""

    kernel: Kernel
    decided: Mapping[int, float]
    _uses: tuple[Set[NumberUse], ...]
    _rule: Rule

    @classmethod
    def of(cls, kernel: Kernel, rule: Rule) -> OpenKernel:
        uses = _uses(kernel)
        found = _decided(kernel.numbers, uses, rule)
        return cls(with_constants(kernel, found), found, uses, rule)

    @cached_property
    def hash(self) -> str:
        """A hash of what all kernels with this code have in common."""
        return content_hash(replace(self.kernel, numbers=(0.0,) * len(self.kernel.numbers)))

    def serves(self, kernel: Kernel) -> bool:
        """Whether a kernel of the same structure has the same code."""
        found = _decided(kernel.numbers, self._uses, self._rule)
        return _by_bits(found) == _by_bits(self.decided)


# How many kernels are kept: those of some windows with images, before and after an edit.
_MOST_KERNELS = 96


class OpenKernels:
    """The last kernels with open numbers, by a rule."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self._kept: RecentlyUsed[str, OpenKernel] = RecentlyUsed(_MOST_KERNELS)

    def known(self, kernel: Kernel) -> OpenKernel | None:
        """One that serves a kernel, if there is one. The values of the kernel are not looked at."""
        found = self._kept.peek(structure_hash(kernel))
        return found if found is not None and found.serves(kernel) else None

    def of(self, kernel: Kernel) -> OpenKernel:
        found = self.known(kernel) or OpenKernel.of(kernel, self._rule)
        self._kept.keep(structure_hash(kernel), found)
        return found


def _by_bits(numbers: Mapping[int, float]) -> Mapping[int, bytes]:
    return {place: bits(value) for place, value in numbers.items()}


def with_constants(kernel: Kernel, values: Mapping[int, float]) -> Kernel:
    """The kernel, without its stages, with constants in place of some of its numbers."""
    if not values:
        return kernel
    return replace(kernel, sections=tuple([section.with_constants(values) for section in kernel.sections]))


def without_numbers(kernel: Kernel) -> Kernel:
    """The kernel and its stages with constants in place of all numbers, for devices whose code has no inputs for
    them."""
    stages = tuple(map(without_numbers, kernel.stages))
    return replace(with_constants(kernel, dict(enumerate(kernel.numbers))), stages=stages, numbers=())


def _decided(numbers: tuple[float, ...], uses: tuple[Set[NumberUse], ...], rule: Rule) -> Mapping[int, float]:
    """The numbers that decide what the code is, by the rule. Those that are not finite always do: no code takes them as
    inputs."""
    return {
        place: value
        for place, (value, used) in enumerate(zip(numbers, uses, strict=True))
        if not isfinite(value) or any(rule(use, value) for use in used)
    }


def _uses(kernel: Kernel) -> tuple[Set[NumberUse], ...]:
    """The uses of each number."""
    found: list[set[NumberUse]] = [set() for _ in kernel.numbers]
    for section in kernel.sections:
        rows, merged = section.numbered[0], _merged(kernel, section)
        in_prologue = section.rate <= Rate.FRAME
        for at, (op, args) in enumerate(zip(rows.ops, rows.args, strict=True)):
            for place, arg in enumerate(args):
                attr = rows.attrs[arg]
                if isinstance(attr, Scalar) and attr.source == "number":
                    found[int(attr.key)].add(NumberUse(op, place, in_prologue, at in merged))
    return tuple(found)


_LINEAR = frozenset({"add", "sub", "mul", "div", "neg"})


def _merged(kernel: Kernel, section: Section) -> set[int]:
    """The rows of the values whose constants are merged with the levels of a pixel."""
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
        others = [arg for arg in rows.args[end] if not _is_number(rows, arg)]
        if len(others) != 1:
            break
        end = others[0]
    return found


def _is_number(rows: Rows, at: int) -> bool:
    attr = rows.attrs[at]
    return rows.ops[at] == "const" or (isinstance(attr, Scalar) and attr.source == "number")
