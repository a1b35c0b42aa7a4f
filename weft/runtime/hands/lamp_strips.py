"""What the lamps of `lights` look like, for who plays: a strip of colours for each statement."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import NamedTuple, TypeAlias

Colour: TypeAlias = tuple[float, float, float]
"""Red, green and blue, 0…1."""

# The colours of channels, by the names that `std.fixtures` gives them.
_INKS: Mapping[str, Colour] = {
    "r": (1, 0, 0), "g": (0, 1, 0), "b": (0, 0, 1), "w": (1, 1, 1), "a": (1, 0.6, 0), "u": (0.3, 0, 1),
    "warm": (1, 0.75, 0.45), "cold": (0.8, 0.9, 1),
}  # fmt: skip
_DIMMER = "d"
# The steps of a colour: fewer of them are drawn less often.
_STEPS = 64


class LampStrip(NamedTuple):
    """The lamps of a statement: where they are, such as `lights 1/17` for universe 1 from channel 17 on, and the colour
    of each. Channels that are no part of a colour are grey."""

    label: str
    colours: tuple[Colour, ...]


def strip_of(values: Mapping[str, float]) -> LampStrip:
    """The strip of a statement, by the labels of its values: `universe`, `at`, and names of levels such as `left@r`."""
    where = [values.get(label, 1.0) for label in ("universe", "at")]
    label = "/".join(f"{floor_of(each)}" for each in where)
    levels = [(name.rpartition("@"), _level(value)) for name, value in values.items() if name not in ("universe", "at")]
    found: list[Colour] = []
    for (name, _), members in groupby(levels, key=lambda level: level[0][:2]):
        found += _colours(bool(name), [(member[2], value) for member, value in members])
    return LampStrip(f"lights {label}", tuple(found))


def floor_of(value: float) -> int | str:
    """A universe or a channel, as it is sent; a question mark for what is none."""
    return math.floor(value + 0.5) if math.isfinite(value) else "?"


def _level(value: float) -> float:
    inside = min(max(value, 0.0), 1.0) if not math.isnan(value) else 0.0
    return round(inside * _STEPS) / _STEPS


def _colours(is_bundle: bool, members: list[tuple[str, float]]) -> Iterator[Colour]:
    """The colours of the members of a bundle: one, if there are names of colours among them."""
    named = [(_INKS[name], value) for name, value in members if name in _INKS] if is_bundle else []
    if not named:
        yield from ((value, value, value) for _, value in members)
        return
    dimmer = next((value for name, value in members if name == _DIMMER), 1.0)
    red, green, blue = (min(1.0, dimmer * sum(ink[at] * value for ink, value in named)) for at in range(3))
    yield red, green, blue
