"""The numbers of a program: constants of a kernel that are fields of `Frame`, so that one program serves all values.

A driver takes tenths of a second to link a program, and on stage, numbers are tuned more often than anything else. So
most constants of a program are inputs of it, each use of a constant by itself. Constants that determine the text of the
program stay constants: bounds of loops, the number of ticks that a read goes back, exponents, and zeros where languages
treat them in their own way. Whether an angle may be large is a question as well: if the answer differs, so does the
program.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from weft.codegen.kernel import Kernel
from weft.codegen.native.dataflow import interval
from weft.codegen.native.tuning import Part, TunableKernel, suits, with_arguments
from weft.codegen.values import Line, Node, Scalar, Section
from weft.ir.rates import Rate
from weft.ops.intervals import ANYWHERE, UNIT, Interval

WAVES = frozenset({"sinpi", "cospi"})
"""Sines of half turns: the functions of the languages are precise up to some half turns only."""

NEAR = "near"
"""The attribute of a wave whose angle is no larger than that."""

# Half turns.
_PLAIN_WAVES = 32.0

# More numbers than this are not inputs: every driver has a block of 4,096.
_MOST = 3072


@dataclass(frozen=True)
class NumberedKernel:
    """A kernel whose numbers are inputs (`Scalar` of `const`), with `NEAR` where a wave is."""

    kernel: Kernel
    _arguments: TunableKernel
    _near: tuple[bool, ...]

    @classmethod
    def of(cls, kernel: Kernel) -> NumberedKernel:
        found = with_arguments(kernel, lambda section: _part_of if section.rate > Rate.FRAME else None)
        if len(found.arguments) > _MOST:
            found = TunableKernel(kernel, (), {})
        near = tuple(_nearness(kernel))
        left = iter(near)
        sections = tuple([_marked(section, left) for section in found.kernel.sections])
        return cls(replace(found.kernel, sections=sections), found, near)

    def numbers(self, kernel: Kernel) -> tuple[float, ...] | None:
        """The numbers of a kernel that has the structure of the one that this was made of, by their places; None if it
        needs another program."""
        found = self._arguments.constants(kernel)
        return found if found is not None and tuple(_nearness(kernel)) == self._near else None


def _marked(section: Section, near: Iterator[bool]) -> Section:
    """A section with the next answers of `_nearness`, which are in the order of its rows."""
    rows, notes = section.numbered
    if section.rate <= Rate.FRAME or WAVES.isdisjoint(rows.ops):
        return section
    pairs = zip(rows.ops, rows.attrs, strict=True)
    attrs = tuple([(NEAR if next(near) else None) if op in WAVES else attr for op, attr in pairs])
    return Section.of_rows(section.rate, rows._replace(attrs=attrs), notes)


def _part_of(op: str, place: int, value: float) -> Part | None:
    """See `Rule`."""
    part: Part = "finite"
    match op, place:
        case ("power", 1) | ("loop", 0 | 1) | ("next" | "state" | "sample", _):
            return None  # of an exponent, too: if a compiler knows it, it drops the tests in the function
        case ("min" | "max" | "loop", _):
            part = "nonzero"  # of two zeros the second one is given
        case ("div" | "mod" | "select", 1) | ("select", 2):
            part = "no step"
    return part if suits(part, value) else None


def _nearness(kernel: Kernel) -> Iterator[bool]:
    """Whether the angle of each wave of a program is small enough for the functions of the languages."""
    sections = {section.rate: section for section in kernel.sections}

    def given(leaf: Node) -> Interval:
        match leaf.attr:
            case Scalar("local", int(number)) | Line("local", int(number)):
                return interval(sections[kernel.locals[number].rate].locals[number], given)
            case Line("coord", "x" | "y") if kernel.sweep == "grid":
                return UNIT
        return ANYWHERE

    for section in kernel.sections:
        if section.rate > Rate.FRAME and not WAVES.isdisjoint(section.ops()):
            for node in section.walk():
                if node.op in WAVES:
                    yield interval(node.args[0], given).size <= _PLAIN_WAVES
