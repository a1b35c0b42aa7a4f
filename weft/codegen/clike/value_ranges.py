"""What is known of the values of a program for all its inputs: between which numbers they are, and which are never NaN.

A cell whose corner is a whole number of 31 bits is converted by one instruction, and a minimum of what is never NaN is
the card's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf, isfinite, isnan
from types import MappingProxyType
from typing import NamedTuple

from weft.beats import BPM, INPUTS
from weft.codegen.kernel import Kernel
from weft.codegen.native.dataflow import interval_from
from weft.codegen.values import Line, Node, Scalar, Section, with_bodies
from weft.graph.domain import SETTINGS
from weft.names import is_count
from weft.ops.intervals import ANYWHERE, UNIT, Interval, number

# Numbers below it are finite in single precision, and converted to whole ones, whatever their last digits are.
_MOST_SINGLE, _MOST_WHOLE = 2.0**127, 2.0**30

# A smaller number may be 0 on a card.
_LEAST_SINGLE = 2.0**-120

# A number of the text may become this many times as large before another program is needed, and a divisor as small:
# more where it matters only whether a value is a number.
_ROOM, _MORE_ROOM = 16.0, 2.0**20

# Seconds of a performance: eight years.
_MOST_TIME = 2.0**28

# What a card may add to a wave or an angle.
_CARD_ERROR = 2.0**-18
_LOOSE = frozenset({"sinpi", "cospi", "sin", "cos", "atan2"})


def _setting(name: str) -> Interval:
    return Interval(SETTINGS[name].low, SETTINGS[name].high)


_TIME = Interval(-_MOST_TIME, _MOST_TIME)
_TEMPO = Interval(2.0**-10, 2.0**20)  # those that are tapped or sent are not in the range of the setting
_THEN, _START, _BEFORE, _NOW = INPUTS

_GIVEN: Mapping[str, Interval] = MappingProxyType({
    "width": _setting("width"), "height": _setting("height"), "absframe": Interval(0, 2.0**40),
    "dt": Interval(0, 2.0**10), "mouse@x": UNIT, "mouse@y": UNIT, _START: _TIME,
    _THEN: Interval(-(2.0**48), 2.0**48), **dict.fromkeys((BPM, _BEFORE, _NOW), _TEMPO),
})  # fmt: skip


class Known(NamedTuple):
    """The interval of a value that is no NaN, whether it is never NaN, and the numbers of the kernel that this depends
    on, as the bits of their places."""

    interval: Interval
    is_number: bool
    numbers: int = 0

    @property
    def is_finite(self) -> bool:
        return self.is_number and self.interval.size < _MOST_SINGLE


_UNKNOWN = Known(ANYWHERE, False)


class ValueRanges:
    """What is known of the values of one program. It holds while the numbers of the kernel keep within `limits`."""

    def __init__(
        self, kernel: Kernel, program: Section, prologue: Section, numbers: Sequence[float], room: float = _ROOM
    ) -> None:
        """`room` is how many times as large a number may become."""
        self._roomier = ValueRanges(kernel, program, prologue, numbers, _MORE_ROOM) if room < _MORE_ROOM else None
        self._room_of_numbers = room
        self._kernel = kernel
        self._prologue = prologue
        self._numbers = numbers
        self._reaches = dict(kernel.reaches)
        self._divisors = {
            int(node.args[1].attr.key)
            for node in (*with_bodies(prologue.nodes), *with_bodies(program.nodes))
            if node.op in ("div", "mod") and is_number_input(node.args[1])
        }
        self._known: dict[Node, Known] = {}
        self._used = 0
        self._look_at(prologue.nodes)
        self._look_at(program.nodes)

    @property
    def limits(self) -> tuple[tuple[int, float, float], ...]:
        """Those of the numbers that the answers so far depend on: their places, the least and the largest."""
        places = (place for place in range(self._used.bit_length()) if self._used >> place & 1)
        own = tuple((place, *self._room(place)) for place in places)
        return own if self._roomier is None else (*own, *self._roomier.limits)

    def are_numbers(self, nodes: Iterable[Node]) -> bool:
        """Whether none of some values is ever NaN; they may be infinite."""
        nodes = list(nodes)
        if self._roomier is not None and self._roomier.are_numbers(nodes):
            return True
        return self._answer(nodes, lambda known: known.is_number)

    def is_near(self, node: Node) -> bool:
        """Whether a value is never NaN, and its whole part has less than 31 bits."""
        return self._answer([node], lambda known: known.is_number and known.interval.size < _MOST_WHOLE)

    def _answer(self, nodes: Iterable[Node], holds: Callable[[Known], bool]) -> bool:
        known = [self.known(node) for node in nodes]
        if not all(map(holds, known)):
            return False
        for each in known:
            self._used |= each.numbers
        return True

    def _look_at(self, nodes: Iterable[Node]) -> None:
        """Goes through values in their order: a chain of them may be longer than calls may be deep. What a loop carries
        is unknown."""
        for node in nodes:
            if node.op == "loop":
                self._look_at(node.attr.nodes)
            else:
                self._known[node] = self._computed(node)

    def _computed(self, node: Node) -> Known:
        if node.kind != "float":
            return Known(ANYWHERE, True)
        args = [self.known(arg) for arg in node.args]
        places = 0
        for arg in args:
            places |= arg.numbers
        low, high = interval_from(node, lambda arg: self.known(arg).interval)
        if node.op == "max":
            low = max([low, *(arg.interval.low for arg in args if arg.is_number)])
        elif node.op == "min":
            high = min([high, *(arg.interval.high for arg in args if arg.is_number)])
        if node.op in _LOOSE:
            low, high = low - _CARD_ERROR, high + _CARD_ERROR
        found = _on_a_card(Interval(low, high))
        return Known(found, self._stays_a_number(node, args, found), places)

    def _stays_a_number(self, node: Node, args: Sequence[Known], found: Interval) -> bool:
        are_numbers = [arg.is_number for arg in args]
        match node.op:
            case "min" | "max":
                return any(are_numbers)  # of a number and a NaN it is the number
            case "select":
                return all(are_numbers[1:])
            case "neg" | "abs" | "floor":
                return all(are_numbers)
            case "add" | "sub":  # but for ∞ - ∞
                return all(are_numbers) and any(arg.is_finite for arg in args)
            case "sqrt" if args[0].interval.low < 0:
                return False
        return bool(args) and found.size < _MOST_SINGLE and all(
            arg.is_finite or given.kind != "float" for arg, given in zip(args, node.args, strict=True)
        )

    def known(self, node: Node) -> Known:
        """What is known of a value of the program, or of its prologue."""
        match node.op, node.attr:
            case "const", float(value):
                return Known(_on_a_card(number(value)), not isnan(value))
            case "scalar", Scalar("number", int(place)):
                return Known(_on_a_card(Interval(*self._room(place))), True, 1 << place)
            case "scalar", Scalar("local", int(at), "float") if at in self._prologue.locals:
                return self.known(self._prologue.locals[at])
            case "scalar", Scalar("uniform", str(name)):
                given = self._input(name)
                return _UNKNOWN if given is None else Known(given, True)
            case "scalar", Scalar("coord", "abstime"):
                return Known(_TIME, True)
            case "line", Line("coord", "x" | "y") if self._kernel.sweep == "grid":
                return Known(UNIT, True)
        return self._known.get(node, _UNKNOWN)

    def _input(self, name: str) -> Interval | None:
        """The interval of an input of the kernel, which is a number: of a field of `me`, a key, the mouse or a
        parameter. None if it may be anything."""
        reach = self._reaches.get(name)
        if reach is not None:
            return Interval(-reach, reach) if isfinite(reach) else None
        return UNIT if name.startswith("key@") and not is_count(name) else _GIVEN.get(name)

    def _room(self, place: int) -> tuple[float, float]:
        """What a number of the text may become: a divisor keeps away from 0."""
        value, room = self._numbers[place], self._room_of_numbers
        if place in self._divisors and value:
            return (value / room, value * room) if value > 0 else (value * room, value / room)
        most = max(1.0, abs(value)) * room
        return -most, most


def _on_a_card(interval: Interval) -> Interval:
    """The interval with 0 and infinities, if there are numbers in it that a card may take for these."""
    low, high = interval
    low = -inf if low <= -_MOST_SINGLE else 0.0 if 0 < low < _LEAST_SINGLE else low
    high = inf if high >= _MOST_SINGLE else 0.0 if 0 > high > -_LEAST_SINGLE else high
    return Interval(low, high)


def is_number_input(node: Node) -> bool:
    """Whether a value is a number that is an input, which is finite."""
    return node.op == "scalar" and node.attr.source == "number"
