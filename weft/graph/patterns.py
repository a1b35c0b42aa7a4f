"""Patterns: from the tree of a notation to tables of events, and from these to values at a time.

A table has the events of some cycles, after which they come again: before the first cycle as well as after it, so that
a pattern is a function of the time alone. Its outputs are made of the operations of the domain: the place in the table,
and a search among the onsets.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Final, Generic, Literal, NamedTuple, TypeAlias, TypeVar

from weft.errors import Span, WeftError, error
from weft.graph.budget import Budget
from weft.graph.domain import Coordinates, Environment
from weft.syntax.ast import Text
from weft.syntax.notation import (
    PatternChance, PatternChoice, PatternEvent, PatternNode, PatternRest, PatternSequence, PatternSpeed, PatternStack,
    PatternText, PatternTurns, parse_pattern, voices_of
)

V = TypeVar("V")

# --- patterns and their outputs ---

MAX_EVENTS: Final = 256
"""The most events of a voice, until they come again."""

MAX_CYCLES: Final = 1024
"""The most cycles until a voice comes again."""

MAX_VOICES: Final = 8

_SHORTER = "several patterns may play at once, each with a part of it"

# The most nodes that are visited to expand a pattern, rests included.
_MOST_VISITED: Final = 8 * MAX_EVENTS

# If every event is left to chance, the search looks back over at least this many events.
_LEAST_SEARCHED: Final = 16

# The gate of an event falls this many seconds before another one begins, so that it rises again.
_GAP: Final = 0.02

# Times count as a little later, in beats, so that one that was rounded down still belongs to its onset.
_ONSET_SLACK: Final = 1e-6

# The steps of the budget for each visit in the expansion of a pattern, and for each event of an output.
_STEPS_OF_A_VISIT: Final = 50
_STEPS_OF_AN_EVENT: Final = 4

_START, _END = Fraction(0), Fraction(1)

# An onset this many beats ago means that there was none.
_NEVER: Final = 1e9

Fact: TypeAlias = Literal["value", "gate", "since", "index", "step"]

FACTS: tuple[Fact, ...] = ("value", "gate", "since", "index", "step")


class PatternOutput(NamedTuple):
    """An output: what it gives of a voice, by its number from 0, or of a word."""

    name: str
    fact: Fact
    of: int | str


@dataclass(frozen=True, eq=False)
class PatternCall:
    """A pattern whose cycle takes `per` beats. `seed` is that of its chances, `span` the place of its string."""

    tree: PatternText
    outputs: tuple[PatternOutput, ...]
    per: Fraction
    seed: float
    span: Span

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(output.name for output in self.outputs)

    @cached_property
    def tracks(self) -> PatternTracks:
        """Its events."""
        return _tracks(self.tree, self.span)


@lru_cache(maxsize=256)
def pattern_of(text: Text, per: Fraction, seed: float) -> PatternCall:
    """The pattern of a string. Raises WeftError at the place of a mistake in it."""
    tree = parse_pattern(text)
    voices = voices_of(tree.root)
    if voices > MAX_VOICES:
        raise _too_large(text.span, f"this pattern has {voices:,} voices, and {MAX_VOICES} are the most", _SHORTER)
    outputs = [
        PatternOutput(f"{fact}{voice + 1 if voice else ''}", fact, voice) for voice in range(voices) for fact in FACTS
    ]
    names = {output.name for output in outputs}
    for word, (_, span) in tree.words.items():
        of_word = (PatternOutput(word, "gate", word), PatternOutput(f"{word}_since", "since", word))
        for output in of_word:
            if output.name in names:
                what = "it" if output.name == word else f'"{output.name}"'
                raise error("pattern-syntax", f'"{word}" cannot be a word here: {what} is an output already', span,
                            "choose another word")  # fmt: skip
        outputs += of_word
        names.update(output.name for output in of_word)
    return PatternCall(tree, tuple(outputs), per, seed, text.span)


# --- tables of events ---


class PatternShare(NamedTuple):
    """The part of a draw, from `low` up to `high`, at which one of several sequences is played."""

    draw: int
    low: float
    high: float


class PatternHit(NamedTuple):
    """An event of a table: from `begin` to `end`, in cycles. It is number `place` in its cycle. It sounds if each of
    its shares was drawn, and if it is not left out, which it is with a probability. Draw `scale` · n + `offset` of
    `draw`, and of those of the shares, decides this in round n of its table."""

    begin: Fraction
    end: Fraction
    value: float
    word: str | None
    left_out: float
    shares: tuple[PatternShare, ...] = ()
    place: int = 0
    draw: int = 0
    scale: int = 1
    offset: int = 0

    @property
    def is_certain(self) -> bool:
        return self.left_out == 0 and not self.shares

    def excludes(self, other: PatternHit) -> bool:
        """Whether the two never sound in the same round, because each is of another sequence of one choice."""
        if (self.scale, self.offset) != (other.scale, other.offset):
            return False
        low_by_draw = {share.draw: share.low for share in self.shares}
        return any(low_by_draw.get(share.draw, share.low) != share.low for share in other.shares)


@dataclass(frozen=True, slots=True, eq=False)
class PatternTrack:
    """The events of a voice or word, sorted, which come again after `cycles` cycles."""

    cycles: int
    hits: tuple[PatternHit, ...]


class PatternTracks(NamedTuple):
    """The tracks of a pattern, by the numbers of voices and by words. If they are too large, there are none, but a
    failure. `visited` is the number of nodes that their expansion has visited."""

    by_source: Mapping[int | str, PatternTrack]
    visited: int
    failure: WeftError | None = None


def _tracks(tree: PatternText, span: Span) -> PatternTracks:
    expansion = _Expansion(span)
    tracks: dict[int | str, PatternTrack] = {}
    try:
        voices = [voice for part in tree.root.parts for voice in expansion.tracks(part)]
        for number, track in enumerate(voices):
            tracks[number] = _shortest(_searchable(track))
        for word in tree.words:
            tracks[word] = _shortest(_searchable(_of_word(word, voices, span)))
    except WeftError as failure:
        return PatternTracks({}, expansion.visited, failure)
    return PatternTracks(tracks, expansion.visited)


def _too_large(span: Span, message: str, hint: str | None = None) -> WeftError:
    return error("pattern-too-large", message, span, hint)


class _Drawn(NamedTuple):
    """The condition that a choice plays one of its parts in the cycle that begins at a time."""

    choice: PatternChoice
    part: int
    begin: Fraction


class _Fragment(NamedTuple):
    """The part of an event that is within the requested time; `begins` if the event begins there."""

    begin: Fraction
    end: Fraction
    begins: bool
    event: PatternEvent
    left_out: float = 0.0
    drawn: tuple[_Drawn, ...] = ()
    voice: int = 0

    def moved(self, scale: Fraction, by: Fraction = Fraction(0)) -> _Fragment:
        """The same in another time, which is `scale` times this one, plus `by`."""
        drawn = tuple(each._replace(begin=each.begin * scale + by) for each in self.drawn)
        return self._replace(begin=self.begin * scale + by, end=self.end * scale + by, drawn=drawn)


class _Expansion:
    """Expands trees to tables, of which a text can have only a limited amount."""

    def __init__(self, span: Span) -> None:
        self._span = span
        self.visited = 0
        self._draws = 0
        self._choices: dict[tuple[PatternChoice, Fraction], int] = {}
        self._periods: dict[PatternNode, int] = {}

    def tracks(self, node: PatternNode) -> list[PatternTrack]:
        """The tables of the voices of one sequence."""
        cycles = self._period(node)
        found: list[list[_Fragment]] = [[] for _ in range(voices_of(node))]
        for fragment in self._between(node, Fraction(0), Fraction(cycles)):
            found[fragment.voice].append(fragment)
        return [PatternTrack(cycles, tuple(self._numbered(self._hits(voice)))) for voice in found]

    def _hits(self, fragments: Sequence[_Fragment]) -> list[PatternHit]:
        """The events of a voice. A fragment that continues another one makes that longer; otherwise it is a rest."""
        hits: list[PatternHit] = []
        for each in sorted(fragments, key=lambda fragment: fragment.begin):
            if each.begins:
                shares = tuple(map(self._share, each.drawn))
                hits.append(PatternHit(each.begin, each.end, each.event.value, each.event.word, each.left_out, shares))
            elif hits and hits[-1].end == each.begin:
                hits[-1] = hits[-1]._replace(end=each.end)
        return hits

    def _share(self, drawn: _Drawn) -> PatternShare:
        """The share of the draw of a choice at which one of its parts is played. The draws of events have numbers from
        0 on, those of choices have negative ones."""
        draw = self._choices.setdefault((drawn.choice, drawn.begin), -1 - len(self._choices))
        parts = len(drawn.choice.parts)
        return PatternShare(draw, drawn.part / parts, (drawn.part + 1) / parts)

    def _numbered(self, hits: Sequence[PatternHit]) -> Iterator[PatternHit]:
        if len(hits) > MAX_EVENTS:
            raise _too_large(self._span, f"this pattern has {len(hits):,} events until it comes again, and "
                             f"{MAX_EVENTS} are the most", _SHORTER)  # fmt: skip
        cycle, index = -1, 0
        for hit in hits:
            here = math.floor(hit.begin)
            cycle, index = here, index + 1 if here == cycle else 0
            yield hit._replace(place=index, draw=self._draws)
            self._draws += 1

    def _period(self, node: PatternNode) -> int:
        """The number of cycles after which a node repeats."""
        if node not in self._periods:
            self._periods[node] = self._found_period(node)
        return self._periods[node]

    def _found_period(self, node: PatternNode) -> int:
        match node:
            case PatternSequence(steps):
                period = math.lcm(*map(self._period, {step for step, _ in steps}))
            case PatternStack(parts) | PatternChoice(parts):
                period = math.lcm(*map(self._period, parts))
            case PatternTurns(parts):
                period = math.lcm(len(parts), *map(self._period, parts))
            case PatternSpeed(inner, factor):
                period = (self._period(inner) / factor).numerator
            case PatternChance(node=inner):
                period = self._period(inner)
            case _:
                period = 1
        if period > MAX_CYCLES:
            raise _too_large(self._span, f"this pattern comes again only after {period:,} cycles, and {MAX_CYCLES:,} "
                             "are the most", "let the numbers of steps that take turns divide one another")  # fmt: skip
        return period

    def _between(self, node: PatternNode, begin: Fraction, end: Fraction) -> Iterator[_Fragment]:
        """The fragments of a node between two times, in its cycles."""
        match node:
            case PatternEvent():
                for cycle in self._cycles(begin, end):
                    yield _Fragment(max(begin, Fraction(cycle)), min(end, Fraction(cycle + 1)), cycle >= begin, node)
            case PatternSequence():
                for cycle in self._cycles(begin, end):
                    yield from self._of_sequence(node, cycle, max(begin - cycle, _START), min(end - cycle, _END))
            case PatternStack(parts):
                first = 0
                for part in parts:
                    for found in self._between(part, begin, end):
                        yield found._replace(voice=first + found.voice)
                    first += voices_of(part)
            case PatternSpeed(inner, factor):
                for found in self._between(inner, begin * factor, end * factor):
                    yield found.moved(1 / factor)
            case PatternTurns(parts):
                for cycle in self._cycles(begin, end):
                    yield from self._of_cycle(parts[cycle % len(parts)], cycle, begin, end)
            case PatternChoice(parts):
                for cycle in self._cycles(begin, end):
                    for number, part in enumerate(parts):
                        drawn = _Drawn(node, number, Fraction(cycle))
                        for found in self._of_cycle(part, cycle, begin, end):
                            yield found._replace(drawn=(drawn, *found.drawn))
            case PatternChance(inner, left_out):
                for found in self._between(inner, begin, end):
                    yield found._replace(left_out=1 - (1 - left_out) * (1 - found.left_out))
            case PatternRest():
                pass

    def _cycles(self, begin: Fraction, end: Fraction) -> Iterator[int]:
        """The cycles between two times."""
        for cycle in range(math.floor(begin), math.ceil(end)):
            self._visit()
            yield cycle

    def _visit(self) -> None:
        self.visited += 1
        if self.visited > _MOST_VISITED:
            raise _too_large(self._span, f"this pattern has more than {_MOST_VISITED:,} steps until it comes again",
                             _SHORTER)  # fmt: skip

    def _of_cycle(self, node: PatternNode, cycle: int, begin: Fraction, end: Fraction) -> Iterator[_Fragment]:
        """The fragments between two times of what begins in a cycle."""
        for found in self._between(node, max(begin, Fraction(cycle)), min(end, Fraction(cycle + 1))):
            if found.begins or found.begin > cycle:
                yield found

    def _of_sequence(self, node: PatternSequence, cycle: int, first: Fraction, last: Fraction) -> Iterator[_Fragment]:
        """The fragments of one cycle of a sequence, between two places in that cycle."""
        place = bisect_right(node.ends, first)
        begin = node.ends[place - 1] if place else _START
        while begin < last:
            self._visit()
            step, end = node.steps[place][0], node.ends[place]
            length, offset = end - begin, cycle + begin
            inner = [cycle + (time - begin) / length for time in (max(first, begin), min(last, end))]
            for found in self._between(step, *inner):
                if not found.begins and found.begin == cycle:
                    continue  # the rest of an event that began before this step
                yield found.moved(length, offset - cycle * length)
            place, begin = place + 1, end


def _repeated(track: PatternTrack, times: int) -> PatternTrack:
    """A table that contains another one several times."""
    hits = tuple(
        hit._replace(begin=hit.begin + k * track.cycles, end=hit.end + k * track.cycles, scale=hit.scale * times,
                     offset=hit.offset + hit.scale * k)
        for k in range(times) for hit in track.hits
    )  # fmt: skip
    return PatternTrack(track.cycles * times, hits)


def _of_word(word: str, voices: Sequence[PatternTrack], span: Span) -> PatternTrack:
    """The events of a word, in whatever voices they are."""
    found = [replace(v, hits=tuple(hit for hit in v.hits if hit.word == word)) for v in voices]
    found = [track for track in found if track.hits]
    cycles = math.lcm(*(track.cycles for track in found))
    count = sum(len(track.hits) * cycles // track.cycles for track in found)
    if count > MAX_EVENTS or cycles > MAX_CYCLES:
        raise _too_large(span, f'"{word}" has {count:,} events in {cycles:,} cycles until it comes again, and '
                         f"{MAX_EVENTS} in {MAX_CYCLES:,} are the most", "give each voice its own word")  # fmt: skip
    hits = (hit for track in found for hit in _repeated(track, cycles // track.cycles).hits)
    return PatternTrack(cycles, tuple(sorted(hits, key=lambda hit: hit.begin)))


def _searchable(track: PatternTrack) -> PatternTrack:
    """A table in which a search finds an event that was not left out, or almost certainly does so."""
    if not track.hits or any(hit.is_certain for hit in track.hits):
        return track
    return _repeated(track, -(-_LEAST_SEARCHED // len(track.hits)))


def _shortest(track: PatternTrack) -> PatternTrack:
    """The shortest table of the same events. If some are left to chance, their draws differ from cycle to cycle."""
    if not all(hit.is_certain for hit in track.hits):
        return track
    hits = [hit._replace(draw=0) for hit in track.hits]
    for cycles in range(1, track.cycles):
        count, rest = divmod(len(hits) * cycles, track.cycles)
        if track.cycles % cycles == 0 and not rest:
            moved = [hit._replace(begin=hit.begin + cycles, end=hit.end + cycles) for hit in hits[: len(hits) - count]]
            if moved == hits[count:]:
                return PatternTrack(cycles, tuple(hits[:count]))
    return track


# --- values at a time ---


def pattern_value(pattern: PatternCall, plane: int, env: Environment[V], at: Coordinates[V], budget: Budget) -> V:
    """An output of a pattern at coordinates. Raises WeftError if its tables are too large."""
    output = pattern.outputs[plane]
    if pattern.tracks.failure is not None:
        raise pattern.tracks.failure
    track = pattern.tracks.by_source[output.of]
    budget.spend(_STEPS_OF_AN_EVENT * sum(1 + len(hit.shares) for hit in track.hits))
    return _TrackReading(pattern, track, env, at).fact(output.fact)


def spend_on_tracks(pattern: PatternCall, budget: Budget) -> None:
    """Spends the steps of the expansion of a pattern."""
    budget.spend(_STEPS_OF_A_VISIT * pattern.tracks.visited)


class _TrackReading(Generic[V]):
    """A track, read at coordinates: `place` is the time in its table, in beats, and `round` the number of its
    repetitions so far."""

    def __init__(self, pattern: PatternCall, track: PatternTrack, env: Environment[V], at: Coordinates[V]) -> None:
        self._env, self._at, self._seed, self._per = env, at, pattern.seed, pattern.per
        self._hits, self._cycles = track.hits, track.cycles
        self._length = float(track.cycles * pattern.per)
        beats = env.ops("add", env.beats(at), _ONSET_SLACK)
        self._place = env.ops("mod", beats, self._length)
        self._round = env.ops("round", env.ops("div", env.ops("sub", beats, self._place), self._length))

    def fact(self, fact: Fact) -> V:
        ops, count, length = self._env.ops, len(self._hits), self._length
        match fact:
            case "value":
                return self._latest([hit.value for hit in self._hits], 0.0, 0.0)
            case "index":
                return self._latest([float(hit.place) for hit in self._hits], 0.0, 0.0)
            case "step":
                within = self._latest([float(place) for place in range(count)], float(count), -float(count))
                return ops("add", ops("mul", self._round, float(count)), within)
            case "gate":
                return ops("lt", self._place, self._latest(self._ends(), length, -1.0))
            case "since":
                begun = [float(hit.begin * self._per) + _ONSET_SLACK for hit in self._hits]
                beats = ops("sub", self._place, self._latest(begun, length, -_NEVER))
                return ops("neg", self._env.seconds(self._at, ops("neg", ops("max", beats, 0.0))))

    def _ends(self) -> list[float]:
        """Where the gate of each event falls, in beats."""
        ends: list[float] = []
        for place, hit in enumerate(self._hits):
            begin, end, until = (float(t * self._per) for t in (hit.begin, hit.end, self._following(place)))
            gap = min(_GAP / (60 / self._env.settings["bpm"]), (until - begin) / 2)
            ends.append(end if end < until else until - gap)
        return ends

    def _following(self, place: int) -> Fraction:
        """The next onset after that of an event, among the events that may sound with it."""
        hit = self._hits[place]
        for other in self._hits[place + 1 :]:
            if other.begin > hit.begin and not hit.excludes(other):
                return other.begin
        return self._hits[0].begin + self._cycles

    def _latest(self, facts: Sequence[float], turn: float, none: float) -> V:
        """The fact of the latest event that was not left out. `turn` is how much less it is for an event of the round
        before, and `none` is the result if there is no event."""
        const = self._env.algebra.const
        hits = self._hits
        certain = max((place for place, hit in enumerate(hits) if hit.is_certain), default=None)
        latest = const(none if certain is None else facts[certain] - turn)
        for place in range(0 if certain is None else certain + 1, len(hits)):
            latest = self._unless_left_out(hits[place], -1, facts[place] - turn, latest)
        onsets, found = [0.0], [latest]
        for hit, fact in zip(hits, facts, strict=True):
            latest, onset = self._unless_left_out(hit, 0, fact, latest), float(hit.begin * self._per)
            if onset == onsets[-1]:
                found[-1] = latest
            elif latest != found[-1]:
                onsets.append(onset)
                found.append(latest)
        return self._search(onsets, found)

    def _unless_left_out(self, hit: PatternHit, turn: int, fact: float, before: V) -> V:
        """The fact of an event of this round, or of one `turn` later; if the event is left out, the fact before."""
        if hit.is_certain:
            return self._env.algebra.const(fact)
        ops = self._env.ops
        number = ops("add", ops("mul", self._round, float(hit.scale)), float(hit.offset + turn * hit.scale))
        value = self._env.algebra.const(fact)
        if hit.left_out:
            drawn = ops("hash", float(hit.draw), number, self._seed)
            value = ops("select", ops("ge", drawn, hit.left_out), value, before)
        for draw, low, high in hit.shares:
            drawn = ops("hash", float(draw), number, self._seed)
            if high < 1:
                value = ops("select", ops("lt", drawn, high), value, before)
            if low > 0:
                value = ops("select", ops("ge", drawn, low), value, before)
        return value

    def _search(self, onsets: Sequence[float], found: Sequence[V]) -> V:
        """The value of the last onset that is not after the place, by a binary search."""
        if len(onsets) == 1:
            return found[0]
        middle = len(onsets) // 2
        reached = self._env.ops("ge", self._place, onsets[middle])
        later, earlier = self._search(onsets[middle:], found[middle:]), self._search(onsets[:middle], found[:middle])
        return self._env.ops("select", reached, later, earlier)
