"""The numbers of a text, by their places, and those by which two texts differ."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from weft.errors import Report, Source
from weft.syntax.scanner import NUMBER, UnreadableError, decode, scan

Place: TypeAlias = tuple[int, int]
"""Line and column of a number in the text of a file, both from 1."""


def numbers_of(text: bytes) -> dict[Place, tuple[int, int]]:
    """The numbers of a text: where each begins and ends, in characters."""
    try:
        return numbers_in(decode(text))
    except UnreadableError:
        return {}


def numbers_in(text: str) -> dict[Place, tuple[int, int]]:
    """The same, of a text that was decoded."""
    source = Source("", text)
    tokens = scan(source, Report())
    if tokens is None:
        return {}
    spans = zip(tokens.kinds, tokens.starts, tokens.ends, strict=True)
    return {source.position(start): (start, end) for kind, start, end in spans if kind == NUMBER}


@dataclass(frozen=True)
class NumberedLines:
    """A text as lines, with the numbers of each. How a line ends is no part of it: an editor may say `\\n` of a file
    that has `\\r\\n`."""

    text: str

    @cached_property
    def lines(self) -> list[str]:
        return [line.removesuffix("\r") for line in self.text.split("\n")]

    @cached_property
    def numbers(self) -> Mapping[int, list[tuple[Place, float]]]:
        """The numbers by their lines, which count from 0, in order."""
        found: dict[int, list[tuple[Place, float]]] = {}
        for place, (start, end) in numbers_in(self.text).items():
            found.setdefault(place[0] - 1, []).append((place, float(self.text[start:end])))
        return found

    @cached_property
    def shapes(self) -> list[str]:
        """The lines without the values of their numbers."""
        found = list(self.lines)
        for (line, column), (start, end) in reversed(numbers_in(self.text).items()):
            shape = found[line - 1]
            found[line - 1] = f"{shape[: column - 1]}0{shape[column - 1 + end - start :]}"
        return found


def lines_in_both(one: NumberedLines, other: NumberedLines) -> dict[int, int]:
    """The lines of a text, from 0, that another one has, too, but for the values of their numbers, with their places
    there. Where lines are the same, it is clear which is meant only before the first and after the last difference."""
    ours, theirs = one.shapes, other.shapes
    least = min(len(ours), len(theirs))
    before = next((at for at in range(least) if ours[at] != theirs[at]), least)
    rest = least - before
    after = next((at for at in range(rest) if ours[-1 - at] != theirs[-1 - at]), rest)
    found = {at: at for at in range(before)}
    found |= {len(ours) - 1 - at: len(theirs) - 1 - at for at in range(after)}
    here, there = _only(ours, before, len(ours) - after), _only(theirs, before, len(theirs) - after)
    return found | {at: there[shape] for shape, at in here.items() if shape in there}


def _only(shapes: list[str], start: int, end: int) -> dict[str, int]:
    """The lines in a range that occur there once."""
    found: dict[str, int] = {}
    twice = set()
    for at in range(start, end):
        if shapes[at] in found:
            twice.add(shapes[at])
        found[shapes[at]] = at
    return {shape: at for shape, at in found.items() if shape not in twice}


def numbers_to_turn(
    playing: NumberedLines, new: NumberedLines, changed: Collection[int], also: Collection[Place] = ()
) -> dict[Place, float]:
    """The numbers of the text that plays that have other values in the `changed` lines of a new one, by their places in
    the first; and those there that are turned already."""
    found: dict[Place, float] = {}
    for here, there in lines_in_both(playing, new).items():
        if there in changed:
            pairs = zip(playing.numbers.get(here, ()), new.numbers.get(there, ()), strict=True)
            found |= {place: value for (place, was), (_, value) in pairs if value != was or place in also}
    return found
