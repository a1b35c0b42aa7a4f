"""What comes to sounds from outside, led from one value to the next: a parameter that jumps must not click."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from weft.backends.launch import Reals

LED = 0.010
"""Seconds from one value to the next, at least."""


@dataclass(slots=True)
class _Way:
    """Where one thing is on its way to what it shall be, and how many samples it still takes."""

    now: float
    target: float
    left: int = 0


class Leading:
    """Leads what others ask for, stretch by stretch: along a straight line, for as long as a block at least. What
    nobody asks for in a stretch begins anew where it is by then."""

    def __init__(self, rate: float, given: Callable[[str], float]) -> None:
        """`given` is asked for each thing by its name."""
        self._shortest = math.ceil(LED * rate)
        self._given = given
        self._ways: dict[str, _Way] = {}

    def led(self, names: Iterable[str], samples: int, left: int) -> dict[str, Reals]:
        """The next so many samples of each, with so many `left` of the block."""
        ways = {name: self._turned(name, left) for name in names}
        self._ways = ways
        return {name: _walked(way, samples) for name, way in ways.items()}

    def _turned(self, name: str, left: int) -> _Way:
        """The way of one thing, to what it shall be by now."""
        target = float(self._given(name))
        way = self._ways.get(name)
        # To and from what is no number, nothing leads.
        if way is None or not math.isfinite(target - way.now):
            return _Way(target, target)
        if way.target != target:
            way.target, way.left = target, max(left, self._shortest)
        return way


def _walked(way: _Way, samples: int) -> Reals:
    """The next samples of a way; it has come so much further then."""
    if not way.left:
        return np.full(samples, way.now)
    line: Reals = way.now + (way.target - way.now) * (np.arange(1, samples + 1) / way.left)
    line[way.left - 1 :] = way.target
    way.left = max(0, way.left - samples)
    way.now = float(line[-1])
    return line
