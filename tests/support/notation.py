"""A reference of the notation of patterns, after the table of symbols that live coders know: what is there at a moment.

Nothing of weft is in it. A model says how it is written, in one of the ways that mean the same, and which event or rest
there is at a moment, or just before it, in exact fractions of a cycle.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from hypothesis import strategies as st


@dataclass(frozen=True)
class Now:
    """The event, or the rest, at a moment: from when to when, and its value."""

    begin: Fraction
    end: Fraction
    value: float | None

    def moved(self, by: Fraction, scale: Fraction = Fraction(1)) -> Now:
        return Now(self.begin * scale + by, self.end * scale + by, self.value)

    def within(self, begin: Fraction, end: Fraction) -> Now:
        """What is left of it in a slot: nothing of an event that began earlier."""
        is_late = self.begin < begin
        return Now(max(self.begin, begin), min(self.end, end), None if is_late else self.value)


def cycle_of(time: Fraction, before: bool) -> int:
    return math.ceil(time) - 1 if before else math.floor(time)


@dataclass(frozen=True)
class Leaf:
    text: str
    value: float | None
    voices = 1

    def at(self, time: Fraction, before: bool, voice: int) -> Now:
        cycle = Fraction(cycle_of(time, before))
        return Now(cycle, cycle + 1, self.value if voice == 0 else None)


def in_sequence(nodes: Sequence[tuple[Model, int]], time: Fraction, before: bool, voice: int) -> Now:
    """What is there where nodes share a cycle by their weights."""
    cycle, begin = cycle_of(time, before), Fraction(0)
    for node, weight in nodes:
        length = Fraction(weight, sum(weight for _, weight in nodes))
        start = cycle + begin
        if time < start + length or (before and time == start + length):
            inner = node.at(cycle + (time - start) / length, before, voice)
            return inner.moved(Fraction(-cycle)).moved(start, length).within(start, start + length)
        begin += length
    raise AssertionError("a cycle has an end")


def written(node: Model, weight: int, times: int, style: int) -> str:
    """`x@3!2`, or one of the other ways to write a step that is longer, or comes several times."""
    text = f"[{node.text}]" if isinstance(node, Run) and (weight, times) != (1, 1) else node.text
    if style and times == 1:
        return text + " _" * (weight - 1)
    if style and weight == 1:
        return text + ("!" * (times - 1) if style == 1 else " !" * (times - 1))
    return text + f"@{weight}" * (weight > 1) + f"!{times}" * (times > 1)


@dataclass(frozen=True)
class Steps:
    """Nodes with weights and numbers of repetitions."""

    steps: tuple[tuple[Model, int, int], ...]
    style: int = 0

    @property
    def text(self) -> str:
        return "[" + " ".join(written(*step, self.style) for step in self.steps) + "]"

    @property
    def voices(self) -> int:
        return max(node.voices for node, _, _ in self.steps)

    @property
    def written_out(self) -> list[tuple[Model, int]]:
        return [(node, weight) for node, weight, times in self.steps for _ in range(times)]

    def at(self, time: Fraction, before: bool, voice: int) -> Now:
        nodes = self.written_out
        return nodes[0][0].at(time, before, voice) if len(nodes) == 1 else in_sequence(nodes, time, before, voice)


@dataclass(frozen=True)
class Feet:
    """Groups with dots between them: `bd sn . hh hh hh`."""

    groups: tuple[Steps, ...]

    @property
    def text(self) -> str:
        return "[" + " . ".join(group.text[1:-1] for group in self.groups) + "]"

    @property
    def voices(self) -> int:
        return max(group.voices for group in self.groups)

    def at(self, time: Fraction, before: bool, voice: int) -> Now:
        return in_sequence([(group, 1) for group in self.groups], time, before, voice)


@dataclass(frozen=True)
class Turns:
    """Nodes of which each cycle has one."""

    nodes: tuple[Model, ...]

    @property
    def text(self) -> str:
        return "<" + " ".join(node.text for node in self.nodes) + ">"

    @property
    def voices(self) -> int:
        return max(node.voices for node in self.nodes)

    def at(self, time: Fraction, before: bool, voice: int) -> Now:
        if len(self.nodes) == 1:
            return self.nodes[0].at(time, before, voice)
        cycle = cycle_of(time, before)
        turn, place = divmod(cycle, len(self.nodes))
        inner = self.nodes[place].at(time - cycle + turn, before, voice)
        return inner.moved(Fraction(cycle - turn)).within(Fraction(cycle), Fraction(cycle + 1))


@dataclass(frozen=True)
class Polymeter:
    """Sequences at the same time, each of which plays as many steps in a cycle as the first has, or as `count` says."""

    parts: tuple[Steps, ...]
    count: int | None = None

    @property
    def text(self) -> str:
        inner = ", ".join(part.text[1:-1] for part in self.parts)
        return "{" + inner + "}" + (f"%{self.count}" if self.count else "")

    @property
    def voices(self) -> int:
        return sum(part.voices for part in self.parts)

    def at(self, time: Fraction, before: bool, voice: int) -> Now:
        lengths = [sum(weight for _, weight in part.written_out) for part in self.parts]
        for part, length in zip(self.parts, lengths, strict=True):
            if voice < part.voices:
                factor = Fraction(self.count or lengths[0], length)
                if factor == 1:
                    return part.at(time, before, voice)
                return in_sequence(part.written_out, time * factor, before, voice).moved(Fraction(0), 1 / factor)
            voice -= part.voices
        cycle = Fraction(cycle_of(time, before))
        return Now(cycle, cycle + 1, None)


def with_suffix(node: Model, suffix: str) -> str:
    """A step takes each suffix once, and a run none."""
    return f"[{node.text}]{suffix}" if isinstance(node, Faster | Varied | Rhythm | Run) else node.text + suffix


@dataclass(frozen=True)
class Faster:
    node: Model
    suffix: str

    @property
    def text(self) -> str:
        return with_suffix(self.node, self.suffix)

    @property
    def voices(self) -> int:
        return self.node.voices

    def at(self, time: Fraction, before: bool, voice: int) -> Now:
        number = Fraction(self.suffix[1:])
        factor = number if self.suffix[0] == "*" else 1 / number
        return self.node.at(time * factor, before, voice).moved(Fraction(0), 1 / factor)


@dataclass(frozen=True)
class Varied:
    """`bd*<2 3>`: a number for each cycle, in which it is as if that one stood there."""

    node: Model
    sign: str
    numbers: tuple[int, ...]

    @property
    def text(self) -> str:
        return with_suffix(self.node, f"{self.sign}<{' '.join(map(str, self.numbers))}>")

    @property
    def voices(self) -> int:
        return self.node.voices

    def at(self, time: Fraction, before: bool, voice: int) -> Now:
        cycle = cycle_of(time, before)
        number = self.numbers[cycle % len(self.numbers)]
        now = Faster(self.node, f"{self.sign}{number}").at(time, before, voice)
        return now if len(self.numbers) == 1 else now.within(Fraction(cycle), Fraction(cycle + 1))


# Rhythms that are known by name, by their hits and steps.
RHYTHMS = {
    (3, 8): "x..x..x.", (5, 8): "x.xx.xx.", (4, 9): "x.x.x.x..", (5, 9): "x.x.x.x.x",
    (2, 5): "x.x..", (3, 5): "x.x.x", (3, 7): "x.x.x..", (4, 7): "x.x.x.x",
}  # fmt: skip


@dataclass(frozen=True)
class Rhythm:
    """`bd(3,8,2)`: hits among steps, of which as many as the third number says come last. Negative hits are the other
    steps. Each number may take turns."""

    node: Model
    hits: tuple[int, ...]
    steps: int
    first: tuple[int, ...]

    @property
    def text(self) -> str:
        hits, first = (f"<{' '.join(map(str, n))}>" if len(n) > 1 else str(n[0]) for n in (self.hits, self.first))
        return with_suffix(self.node, f"({hits},{self.steps}" + (")" if first == "0" else f",{first})"))

    @property
    def voices(self) -> int:
        return self.node.voices

    def at(self, time: Fraction, before: bool, voice: int) -> Now:
        cycle = cycle_of(time, before)
        hits, first = (numbers[cycle % len(numbers)] for numbers in (self.hits, self.first))
        rhythm = RHYTHMS[abs(hits), self.steps]
        turned = rhythm[first:] + rhythm[:first]
        played = [self.node if (step == "x") == (hits > 0) else REST for step in turned]
        return in_sequence([(node, 1) for node in played], time, before, voice)


@dataclass(frozen=True)
class Run:
    """`0 .. 3`: the group of these numbers, up or down."""

    first: int
    last: int
    voices = 1

    @property
    def text(self) -> str:
        return f"{self.first} .. {self.last}"

    def at(self, time: Fraction, before: bool, voice: int) -> Now:
        sign = 1 if self.last >= self.first else -1
        leaves = tuple((Leaf(str(n), float(n)), 1, 1) for n in range(self.first, self.last + sign, sign))
        return Steps(leaves).at(time, before, voice)


@dataclass(frozen=True)
class Together:
    parts: tuple[Model, ...]

    @property
    def text(self) -> str:
        return "[" + ", ".join(part.text for part in self.parts) + "]"

    @property
    def voices(self) -> int:
        return sum(part.voices for part in self.parts)

    def at(self, time: Fraction, before: bool, voice: int) -> Now:
        for part in self.parts:
            if voice < part.voices:
                return part.at(time, before, voice)
            voice -= part.voices
        cycle = Fraction(cycle_of(time, before))
        return Now(cycle, cycle + 1, None)


Model = Leaf | Steps | Feet | Turns | Polymeter | Faster | Varied | Rhythm | Run | Together

REST = Leaf("~", None)


def whole(model: Model) -> str:
    """The text of a model that is all of a pattern."""
    return model.text[1:-1] if isinstance(model, Steps | Feet) else model.text


def events(model: Model, voice: int, begin: int, end: int) -> Iterator[Now]:
    """The events of a voice that begin in some cycles."""
    time = Fraction(begin)
    while time < end:
        now = model.at(time, False, voice)
        if now.value is not None and now.begin >= begin:
            yield now
        time = now.end


# --- patterns of all kinds --------------------------------------------------------------------------------------------

LEAVES: st.SearchStrategy[Model] = st.one_of(
    st.integers(-9, 99).map(lambda n: Leaf(str(n), float(n))),
    st.sampled_from([
        Leaf("c4", 60), Leaf("eb3", 51), Leaf("f#5", 78), Leaf("0.25", 0.25), Leaf("ef4", 63), Leaf("bf3", 58),
        Leaf("ff2", 40), Leaf("gff4", 65), Leaf("es4", 65),
    ]),
    st.just(REST),
)  # fmt: skip
_SUFFIXES = st.sampled_from(["*2", "*3", "*1.5", "/2", "/3", "/1.5"])
_KNOWN = st.sampled_from([*RHYTHMS])


def _sequences(nodes: st.SearchStrategy[Model], least: int = 1) -> st.SearchStrategy[Steps]:
    step = st.tuples(nodes, st.sampled_from([1, 1, 1, 2, 3]), st.sampled_from([1, 1, 1, 2]))
    return st.builds(Steps, st.lists(step, min_size=least, max_size=4).map(tuple), st.integers(0, 2))


def _rhythm(node: Model, known: tuple[int, int], sign: int, other: int, first: list[int]) -> Rhythm:
    hits, steps = known
    others = [k for k, n in RHYTHMS if n == steps]
    turns = (sign * hits, others[other % len(others)]) if other else (sign * hits,)
    return Rhythm(node, turns, steps, tuple(first))


def _larger(nodes: st.SearchStrategy[Model]) -> st.SearchStrategy[Model]:
    return st.one_of(
        _sequences(nodes),
        st.builds(Feet, st.lists(_sequences(nodes), min_size=2, max_size=3).map(tuple)),
        st.lists(nodes, min_size=1, max_size=3).map(lambda found: Turns(tuple(found))),
        st.builds(Polymeter, st.lists(_sequences(nodes, 2), min_size=1, max_size=2).map(tuple),
                  st.sampled_from([None, 1, 3, 4])),
        st.builds(Faster, nodes, _SUFFIXES),
        st.builds(Varied, nodes, st.sampled_from("*/"), st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple)),
        st.builds(_rhythm, nodes, _KNOWN, st.sampled_from([1, 1, -1]), st.integers(0, 2),
                  st.lists(st.integers(0, 4), min_size=1, max_size=2)),
        st.builds(Run, st.integers(-3, 9), st.integers(-3, 9)),
        st.lists(nodes, min_size=2, max_size=2).map(lambda found: Together(tuple(found))),
    )  # fmt: skip


MODELS: st.SearchStrategy[Model] = st.recursive(LEAVES, _larger, max_leaves=8)
