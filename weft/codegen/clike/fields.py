"""Which numbers of a kernel are fields of `Frame`, so that one program serves all their values.

A driver takes tenths of a second to link a program, and on stage, numbers are tuned more often than anything else.
Numbers that determine the text of the program are constants of it: bounds of loops, the number of ticks that a read
goes back, exponents, and zeros where languages treat them in their own way. Whether a wave or a remainder may have many
turns is a question as well: if the answer differs, so does the program.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from weft.codegen.kernel import Kernel
from weft.codegen.native.dataflow import interval
from weft.codegen.open_numbers import NumberUse, OpenKernel, with_constants
from weft.codegen.values import Line, Node, Scalar, Section
from weft.ir.rates import Rate
from weft.ops.intervals import ANYWHERE, UNIT, Interval

_WAVES = frozenset({"sinpi", "cospi"})
"""Sines of half turns: the functions of the languages are precise up to some half turns only."""

_TURNING = _WAVES | {"mod"}
"""What takes whole turns out of its operand. That is simple for few of them."""

FEW = "few"
"""The attribute of a value of this kind whose operand has few turns."""

# Half turns of a wave, and turns of a remainder: their products with a period are exact in every language.
_FEW_WAVES, _FEW_REMAINDERS = 32.0, 2.0**10

# Smaller periods have reciprocals that are too large, and no turn of an infinite one is a number.
_LEAST_PERIOD, _MOST_PERIOD = 2.0**-100, 2.0**100

# More numbers than this are not inputs: every driver has a block of 4,096.
_MOST = 3072


@dataclass(frozen=True)
class NumberedKernel:
    """A kernel whose numbers are inputs if they may be, with `FEW` where a wave or a remainder has few turns."""

    kernel: Kernel
    _open: OpenKernel | None
    """None if no number is an input."""
    _turns: tuple[KnownTurns, ...]

    @classmethod
    def of(cls, kernel: Kernel) -> NumberedKernel:
        found = OpenKernel.of(kernel, _decides) if len(kernel.numbers) <= _MOST else None
        given = with_constants(kernel, dict(enumerate(kernel.numbers))) if found is None else found.kernel
        turns = tuple(map(partial(_turns, kernel), _turning(kernel)))
        left = iter([each.are_few for each in turns])
        return cls(replace(given, sections=tuple([_marked(section, left) for section in given.sections])), found, turns)

    def serves(self, kernel: Kernel) -> bool:
        """Whether the program is also that of a kernel of the same structure."""
        if self._open is None or not self._open.serves(kernel):
            return False
        known = zip(self._turns, _turning(kernel), strict=True)
        return all(
            all(kernel.numbers[place] == value for place, value in turns.depends_on.items())
            or _turns(kernel, node).are_few == turns.are_few
            for turns, node in known
        )


@dataclass(frozen=True)
class KnownTurns:
    """Whether the turns of a wave or a remainder are few, and the numbers of the kernel, by their places, that this
    depends on."""

    are_few: bool
    depends_on: Mapping[int, float]


class _Noted(Sequence[float]):
    """Numbers of a kernel. Notes those that are looked at."""

    def __init__(self, numbers: Sequence[float]) -> None:
        self._numbers = numbers
        self.seen: dict[int, float] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, place: Any) -> Any:
        found = self.seen[place] = self._numbers[place]
        return found


def _marked(section: Section, few: Iterator[bool]) -> Section:
    """A section with the next answers about turns, which are in the order of its rows."""
    rows, notes = section.numbered
    if section.rate <= Rate.FRAME or _TURNING.isdisjoint(rows.ops):
        return section
    pairs = zip(rows.ops, rows.attrs, strict=True)
    attrs = tuple([(FEW if next(few) else None) if op in _TURNING else attr for op, attr in pairs])
    return Section.of_rows(section.rate, rows._replace(attrs=attrs), notes)


def _decides(use: NumberUse, value: float) -> bool:
    """Whether the text of a program depends on the value of a number."""
    if use.in_prologue:
        return False  # the CPU computes it
    match use.op, use.place:
        case ("power", 1) | ("loop", 0 | 1) | ("next" | "state" | "sample", _):
            return True  # of an exponent, too: if a compiler knows it, it drops the tests in the function
        case ("div", 1) if not 2.0**-120 <= abs(value) <= 2.0**120:
            return True  # others have a reciprocal
        case ("div" | "mod" | "select", 1) | ("select", 2):
            return value in (-1, 0, 1)
        case ("min" | "max" | "loop", _):
            return value == 0  # of two zeros the second one is given
    return False


def _turning(kernel: Kernel) -> Iterator[Node]:
    """The waves and the remainders of a program."""
    for section in kernel.sections:
        if section.rate > Rate.FRAME and not _TURNING.isdisjoint(section.ops()):
            yield from (node for node in section.walk() if node.op in _TURNING)


def _turns(kernel: Kernel, node: Node) -> KnownTurns:
    """What is known of the turns of a wave or a remainder."""
    sections = {section.rate: section for section in kernel.sections}
    numbers = _Noted(kernel.numbers)

    def given(leaf: Node) -> Interval:
        match leaf.attr:
            case Scalar("local", int(at)) | Line("local", int(at)):
                return interval(sections[kernel.locals[at].rate].locals[at], given, numbers)
            case Line("coord", "x" | "y") if kernel.sweep == "grid":
                return UNIT
        return ANYWHERE

    if node.op in _WAVES:
        return KnownTurns(interval(node.args[0], given, numbers).size <= _FEW_WAVES, numbers.seen)
    of, period = (interval(arg, given, numbers) for arg in node.args)
    least = max(period.low, _LEAST_PERIOD)
    is_usual = period.low == least and period.high <= _MOST_PERIOD
    return KnownTurns(is_usual and of.size <= _FEW_REMAINDERS * least, numbers.seen)
