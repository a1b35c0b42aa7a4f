"""Which waves need not be right to their last digits: those that only the levels of pixels show.

A card's own sine may be off by some 2⁻²¹ everywhere. That is much of a small sine, but nothing of a level of 255, as
long as nothing on the way makes it larger: neither a large factor, nor an operation that may jump.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from weft.codegen.native.dataflow import interval
from weft.codegen.values import Line, Node, Section, operands_within
from weft.ops.intervals import ANYWHERE, UNIT, Interval

_WAVES = frozenset({"sinpi", "cospi"})

# An error may become this many times as large on its way to a pixel: 2⁻¹³, a thirtieth of a level.
_MOST_GAIN = 256.0

# A number may become this many times as large, or as small, before another program is needed.
_ROOM = 2.0

# How deep the size of a factor is looked for.
_DEPTH = 6


class CoarseWaves(NamedTuple):
    """The waves of a program whose absolute error counts, and for which numbers that holds (see `Shader.limits`)."""

    waves: frozenset[Node]
    limits: tuple[tuple[int, float, float], ...]


def coarse_waves(program: Section, numbers: Sequence[float]) -> CoarseWaves:
    """Finds these in a program that gives pixels; `numbers` are those of the kernel."""
    gains = _Gains(numbers, _leading(program.nodes))
    gains.follow(program)
    waves = (node for node in program.nodes if node.op in _WAVES)
    found = frozenset(node for node in waves if gains.of.get(node, math.inf) <= _MOST_GAIN)
    limits = tuple((place, *gains.limits(place)) for place in sorted(gains.sizes))
    return CoarseWaves(found, limits if found else ())


def _leading(nodes: Iterable[Node]) -> set[Node]:
    """The waves, and the values that are made of them."""
    found: set[Node] = set()
    for node in nodes:
        if node.op in _WAVES or not found.isdisjoint(node.args):
            found.add(node)
    return found


@dataclass(slots=True)
class _Gains:
    """How many times an error of each value may be as large in an output; infinite if that is not known."""

    numbers: Sequence[float]
    leads: set[Node]
    of: dict[Node, float] = field(default_factory=lambda: defaultdict(float))
    sizes: dict[int, tuple[float, float]] = field(default_factory=dict)
    divisors: set[int] = field(default_factory=set)
    """The places of numbers whose smallest size counts."""

    def limits(self, place: int) -> tuple[float, float]:
        """What a number may become: a divisor keeps away from 0."""
        number, (least, most) = self.numbers[place], self.sizes[place]
        if place in self.divisors and number:
            return (least, most) if number > 0 else (-most, -least)
        return -most, most

    def follow(self, program: Section) -> None:
        """Finds the gains of all values that are made of waves, from the outputs on."""
        for output in program.outputs:
            self.of[output] += 1.0
        for kept in (*(store.value for store in program.stores), *program.locals.values()):
            self.of[kept] = math.inf
        for node in reversed(program.nodes):
            if node.op == "loop":
                for each in operands_within(node):
                    self.of[each] = math.inf
            elif node in self.leads and (gain := self.of.get(node, 0.0)):
                for arg, slope in self._slopes(node):
                    self.of[arg] += gain * slope

    def _slopes(self, node: Node) -> Iterator[tuple[Node, float]]:
        """Those operands that are made of waves, and how many times a change of them may be as large in the value."""
        first, last = node.args[:1], node.args[-1:]
        for at, arg in enumerate(node.args):
            if arg not in self.leads:
                continue
            match node.op:
                case "add" | "sub" | "neg" | "abs" | "min" | "max":
                    yield arg, 1.0
                case "select" if at:
                    yield arg, 1.0
                case "mul":
                    yield arg, self._most(*(first if at else last))
                case "div" if not at:
                    yield arg, 1 / least if (least := self._least(*last)) else math.inf
                case "sinpi" | "cospi":
                    yield arg, math.pi
                case _:
                    yield arg, math.inf

    def _most(self, node: Node) -> float:
        """The largest size of a factor."""
        sizes = self._sizes(node)
        return sizes[1] if sizes is not None else interval(node, self._given, depth=_DEPTH).size

    def _least(self, node: Node) -> float:
        """The smallest size of a divisor."""
        sizes = self._sizes(node)
        if sizes is not None:
            if node.op != "const":
                self.divisors.add(int(node.attr.key))
            return sizes[0]
        low, high = interval(node, self._given, depth=_DEPTH)
        return max(low, -high, 0.0)

    def _sizes(self, node: Node) -> tuple[float, float] | None:
        """The sizes of a constant, or those that a number of the kernel may have; None for other values."""
        if node.op == "const":
            return abs(node.attr), abs(node.attr)
        if node.op != "scalar" or node.attr.source != "number":
            return None
        place = int(node.attr.key)
        size = abs(self.numbers[place])
        return self.sizes.setdefault(place, (size / _ROOM, size * _ROOM if size else 1.0))

    def _given(self, leaf: Node) -> Interval:
        """The interval of an input."""
        match leaf.attr:
            case Line("coord", "x" | "y"):
                return UNIT
        sizes = self._sizes(leaf)
        return ANYWHERE if sizes is None else Interval(-sizes[1], sizes[1])
