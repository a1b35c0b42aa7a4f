"""The notation of patterns: from the string in `pattern("0 3 [7 10]")` to a tree, with errors at their places in it.

A string is one or several sequences, which commas separate. The steps of a sequence share its time by their weights,
and a step is a number, a note, a word, a rest or a group, with suffixes. What the suffixes `!n` and `(k,n,r)` and the
brackets `<…>` mean is written out in the tree, which has only the nodes below.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple, TypeAlias

from weft.errors import Span, WeftError, error
from weft.syntax.ast import Text

# --- the tree ---


@dataclass(frozen=True, slots=True, eq=False)
class PatternEvent:
    """A number, note or word, which lasts a cycle of the time around it."""

    value: float
    word: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class PatternRest:
    """Silence."""


@dataclass(frozen=True, eq=False)
class PatternSequence:
    """Nodes one after the other, which share a cycle by their weights."""

    steps: tuple[tuple[PatternNode, Fraction], ...]

    @cached_property
    def ends(self) -> tuple[Fraction, ...]:
        """Where each step ends in the cycle."""
        total = sum(weight for _, weight in self.steps)
        return tuple(end / total for end in accumulate(weight for _, weight in self.steps))


@dataclass(frozen=True, slots=True, eq=False)
class PatternStack:
    """Several nodes at the same time, each of which has voices of its own."""

    parts: tuple[PatternNode, ...]


@dataclass(frozen=True, slots=True, eq=False)
class PatternSpeed:
    """A node of which `factor` cycles pass in one."""

    node: PatternNode
    factor: Fraction


@dataclass(frozen=True, slots=True, eq=False)
class PatternChance:
    """A node whose events are each left out with a probability."""

    node: PatternNode
    left_out: float


PatternNode: TypeAlias = "PatternEvent | PatternRest | PatternSequence | PatternStack | PatternSpeed | PatternChance"


@dataclass(frozen=True, slots=True, eq=False)
class PatternText:
    """The tree of a string. `words` are the names of its own, each with its value and place, in the order of the
    text."""

    root: PatternStack
    words: dict[str, tuple[float, Span]]


def voices_of(node: PatternNode) -> int:
    """The number of events that can sound at the same time."""
    match node:
        case PatternSequence(steps):
            return max(map(voices_of, {step for step, _ in steps}))
        case PatternStack(parts):
            return sum(map(voices_of, parts))
        case PatternSpeed(node=inner) | PatternChance(node=inner):
            return voices_of(inner)
        case _:
            return 1


def euclidean(hits: int, count: int, rotation: int = 0) -> tuple[bool, ...]:
    """Which of `count` steps are hit, if the hits are spread as evenly as possible and the first step is one of them.

    Bjorklund's algorithm, from G. T. Toussaint, "The Euclidean algorithm generates traditional musical rhythms", 2005:
    groups of one kind take one group each of the other kind, until one kind has at most one group. A rotation begins at
    a later step.
    """
    groups: list[tuple[bool, ...]] = [(True,)] * hits
    rest: list[tuple[bool, ...]] = [(False,)] * (count - hits)
    while min(len(groups), len(rest)) > 1:
        pairs = min(len(groups), len(rest))
        merged = [a + b for a, b in zip(groups, rest, strict=False)]
        groups, rest = merged, groups[pairs:] or rest[pairs:]
    steps = [step for group in (*groups, *rest) for step in group]
    start = rotation % count
    return tuple(steps[start:] + steps[:start])


# --- the parser ---

MAX_DEPTH = 24
"""The deepest nesting of groups."""

MAX_REPEATS = 64
"""The most steps that `!n` or `(k,n)` write out."""

_TOKEN = re.compile(
    r"""(?P<number>-?(?:\d+\.?\d*|\.\d+)(?![\w#.]))
    |(?P<note>[a-gA-G](?:\#\#?|ss?|bb?)?-?\d{1,2}(?![\w#]))
    |(?P<word>[A-Za-z][A-Za-z0-9_]*(?![\w#]))
    |(?P<sign>[][<(~*/@!?])""",
    re.VERBOSE,
)
_AMOUNT = re.compile(r"\d+\.?\d*|\.\d+")
_WHOLE = re.compile(r"-?\d+(?![\w.])")
_RUN = re.compile(r"[^\s\][<>(),]+|.")

_SEMITONES = {"c": 0, "d": 2, "e": 4, "f": 5, "g": 7, "a": 9, "b": 11}
_ACCIDENTALS = {"": 0, "#": 1, "##": 2, "s": 1, "ss": 2, "b": -1, "bb": -2}
_NO_OCTAVE = re.compile(r"[a-g][sb]?")
_NOTE = re.compile(r"([a-g])(##?|ss?|bb?)?(-?\d+)")

# Each suffix, with an example.
_SUFFIXES = {"*": "bd*2", "/": "bd/2", "@": "bd@3", "!": "bd!2", "?": "bd?0.3", "(": "bd(3,8)"}
_CLOSING = {"[": "]", "<": ">"}

_A_STEP = "a step is a number, a note like c4 or eb3, a word, ~ for a rest, or a group [ ] or < >"

# What other notations write, and what to write here.
_FOREIGN = {
    "{": "for steps of another length, write <bd sn hh>*4: four of them in a cycle",
    "|": "to leave something out by chance, write bd?; to take turns, write <bd sn>",
    ":": "give each sound a word of its own: bd1 bd2",
    ".": "group steps with brackets: [bd sn] hh",
    "-": "a rest is written ~",
    "+": "numbers are added outside: p@value + 12",
    "^": "a longer step is written bd@3",
    "'": "a chord is a stack: [c4, e4, g4]",
    "&": "sequences at the same time are separated by a comma",
    ";": "sequences at the same time are separated by a comma",
    "$": "a word consists of letters, digits and _",
    "#": "a sharp stands after the letter of a note: f#5",
    "%": "for steps of another length, write <bd sn hh>*4: four of them in a cycle",
    "=": "a pattern has only values; names are bound outside of it",
    "\\": "a pattern stands on one line, without escapes",
}


def parse_pattern(text: Text) -> PatternText:
    """The tree of a string. Raises WeftError at the place of its first mistake."""
    return _PatternParser(text).parsed()


class _Item(NamedTuple):
    """A step in the making, with how long it is and how often it comes."""

    node: PatternNode
    weight: Fraction = Fraction(1)
    repeats: int = 1


class _PatternParser:
    """Reads the characters of a literal from left to right; `at` is the next one."""

    def __init__(self, text: Text) -> None:
        self.span = text.span
        self.characters = text.span.text[1:-1]
        self.at = 0
        self.depth = 0
        self.words: dict[str, tuple[float, Span]] = {}
        self.has_notes = False

    def parsed(self) -> PatternText:
        root = self._stack("")
        for word, (_, place) in self.words.items():
            if _NO_OCTAVE.fullmatch(word) and (len(word) == 1 or self.has_notes):
                raise error("pattern-syntax", f'"{word}" is a note without its octave', place,
                            f"write {word}4; a word of one's own is longer")  # fmt: skip
        parts = root.parts if isinstance(root, PatternStack) else (root,)
        return PatternText(PatternStack(parts), self.words)

    # --- places and characters ------------------------------------------------------------------------------------

    def place(self, start: int, end: int) -> Span:
        """The span of some characters; after the last one, it is the closing quote."""
        first = self.span.start + 1
        return Span(self.span.source, first + start, first + max(end, start + 1))

    def mistake(self, message: str, start: int, end: int, hint: str | None = None) -> WeftError:
        return error("pattern-syntax", message, self.place(start, end), hint)

    def _skip(self) -> None:
        """Goes on to the next character that is no blank."""
        while self._next in (" ", "\t"):
            self.at += 1

    @property
    def _next(self) -> str:
        """The next character; empty at the end."""
        return self.characters[self.at : self.at + 1]

    # --- sequences ------------------------------------------------------------------------------------------------

    def _stack(self, opening: str) -> PatternNode:
        """The sequences up to the bracket that closes a group, or up to the end."""
        closing, start = _CLOSING.get(opening, ""), self.at - 1
        parts: list[PatternNode] = []
        while True:
            before = self.at
            items = self._items()
            found = self._next
            if not items and (found in (",", closing) or parts):
                raise self._no_step(start, before, bool(parts))
            if found not in (",", closing):
                raise self._unclosed(opening, start)
            parts.append(_sequence(items, opening == "<"))
            self.at += 1
            if found != ",":
                return parts[0] if len(parts) == 1 else PatternStack(tuple(parts))

    def _no_step(self, start: int, before: int, is_later: bool) -> WeftError:
        """The error for a sequence without a step, after `before`."""
        if self._next == "," or is_later:
            return self.mistake("a sequence is empty here, beside a comma", before - is_later, self.at + 1,
                                "a voice that is silent is written ~")  # fmt: skip
        if self._next == "":
            return self.mistake("this pattern is empty", -1, self.at + 1, 'for example "0 3 [7 10] ~"')
        return self.mistake("this group is empty", start, self.at + 1, "a rest is written ~")

    def _unclosed(self, opening: str, start: int) -> WeftError:
        """The error for a closing bracket that is missing, or is another one."""
        if self._next == "":
            return self.mistake(f'this "{opening}" is never closed', start, start + 1,
                                f"write {_CLOSING[opening]} where the group ends")  # fmt: skip
        expected = f'"{_CLOSING[opening]}" is expected before it' if opening else "nothing is open here"
        return self.mistake(f'this "{self._next}" closes nothing: {expected}', self.at, self.at + 1)

    def _items(self) -> list[_Item]:
        """The steps up to a comma, a closing bracket or the end."""
        items: list[_Item] = []
        while True:
            self._skip()
            if self._next in ("", ",", "]", ">", ")"):
                return items
            start = self.at
            if self._next == "_":
                self.at += 1
                if not items:
                    raise self.mistake("_ makes the step before it longer, and there is none", start, self.at)
                items[-1] = items[-1]._replace(weight=items[-1].weight + 1)
                continue
            items.append(self._suffixed(self._atom(), start))

    def _atom(self) -> PatternNode:
        start = self.at
        found = _TOKEN.match(self.characters, start)
        if found is None:
            raise self._unknown(start)
        self.at = found.end()
        text = found.group()
        match found.lastgroup:
            case "number":
                return PatternEvent(float(text))
            case "note":
                self.has_notes = True
                return PatternEvent(self._note(text, start))
            case "word":
                value, _ = self.words.setdefault(text, (len(self.words) + 1.0, self.place(start, self.at)))
                return PatternEvent(value, text)
        if text == "~":
            return PatternRest()
        if text in _CLOSING:
            self.depth += 1
            if self.depth > MAX_DEPTH:
                raise self.mistake(f"groups are nested more than {MAX_DEPTH} deep here", start, self.at)
            inner = self._stack(text)
            self.depth -= 1
            return inner
        raise self.mistake(f'"{text}" belongs to the step right before it, without a space', start, self.at,
                           f"for example {_SUFFIXES[text]}")  # fmt: skip

    def _note(self, text: str, start: int) -> float:
        """The number of a note, as MIDI counts: c4 is 60."""
        match = _NOTE.fullmatch(text)
        if match is None:
            raise self.mistake("notes are written small", start, self.at, f"write {text[0].lower()}{text[1:]}")
        letter, accidental, octave = match.groups()
        return float(12 * (int(octave) + 1) + _SEMITONES[letter] + _ACCIDENTALS[accidental or ""])

    def _unknown(self, start: int) -> WeftError:
        match = _RUN.match(self.characters, start)
        found = match.group() if match else self._next
        sign = found[0]
        if sign.isalnum() or (sign in "-." and found[1:2].isdigit()):
            odd = next((c for c in found if not (c.isascii() and (c.isalnum() or c in "_-."))), "")
            return self.mistake(f'"{found}" is neither a number nor a note nor a word', start, start + len(found),
                                _FOREIGN.get(odd) or _A_STEP)  # fmt: skip
        return self.mistake(f'"{sign}" is not part of the notation', start, start + 1, _FOREIGN.get(sign, _A_STEP))

    # --- suffixes -------------------------------------------------------------------------------------------------

    def _suffixed(self, node: PatternNode, start: int) -> _Item:
        """A step with its suffixes, which apply from left to right."""
        item, seen = _Item(node), ""
        while (sign := self._next) and sign in _SUFFIXES:
            begun = self.at
            if sign in seen:
                raise self.mistake(f'this step has "{sign}" twice', begun, begun + 1,
                                   "put brackets around what the first one applies to")  # fmt: skip
            seen += sign
            self.at += 1
            item = self._applied(sign, item, begun)
        after = self._next
        if after and after not in " \t,]>)":
            if after == "~" or after in _CLOSING:
                raise self.mistake("a space is missing between two steps", start, self.at + 1)
            raise self._unknown_suffix(start)
        return item

    def _unknown_suffix(self, start: int) -> WeftError:
        sign = self._next
        hint = _FOREIGN.get(sign, "suffixes are *2 /2 @3 !2 ? ?0.3 (3,8)")
        return self.mistake(f'"{sign}" cannot follow "{self.characters[start:self.at]}"', self.at, self.at + 1, hint)

    def _applied(self, sign: str, item: _Item, begun: int) -> _Item:
        match sign:
            case "*":
                return item._replace(node=PatternSpeed(item.node, self._amount(begun)))
            case "/":
                return item._replace(node=PatternSpeed(item.node, 1 / self._amount(begun)))
            case "@":
                return item._replace(weight=self._amount(begun))
            case "!":
                return item._replace(repeats=self._repeats(begun))
            case "?":
                return item._replace(node=PatternChance(item.node, self._probability()))
            case _:
                return item._replace(node=self._euclid(item.node, begun))

    def _amount(self, begun: int) -> Fraction:
        """The number after a suffix, above 0."""
        match = _AMOUNT.match(self.characters, self.at)
        sign = self.characters[begun]
        if match is None:
            hint = f"for example {_SUFFIXES[sign]}"
            if self._next in ("<", "[") and sign in "*/":
                hint += "; to change it from cycle to cycle, write <bd*2 bd*3>"
            raise self.mistake(f'a number has to follow "{sign}" at once', begun, begun + 1, hint)
        self.at = match.end()
        amount = Fraction(match.group())
        if not 0 < amount <= 1000:
            raise self.mistake(f'the number after "{sign}" is above 0, and at most 1000', begun + 1, self.at)
        return amount

    def _repeats(self, begun: int) -> int:
        amount = self._amount(begun)
        if amount.denominator != 1 or amount > MAX_REPEATS:
            raise self.mistake(f"a step is repeated 1 to {MAX_REPEATS} times", begun + 1, self.at)
        return int(amount)

    def _probability(self) -> float:
        match = _AMOUNT.match(self.characters, self.at)
        if match is None:
            return 0.5
        start, self.at = self.at, match.end()
        if float(match.group()) > 1:
            raise self.mistake("how often a step is left out is a number from 0 to 1", start, self.at, "bd?0.3")
        return float(match.group())

    def _euclid(self, node: PatternNode, begun: int) -> PatternNode:
        """What stands in brackets: hits, steps and a rotation."""
        numbers, places = self._whole_numbers(begun)
        hits, count, rotation = (*numbers, 0)[:3]
        if not 1 <= count <= MAX_REPEATS:
            raise self.mistake(f"a Euclidean rhythm has 1 to {MAX_REPEATS} steps", *places[1])
        if not 0 <= hits <= count:
            raise self.mistake(f"{hits} hits do not fit into {count} steps", *places[0],
                               "first the hits, then the steps: (3,8)")  # fmt: skip
        rest = PatternRest()
        steps = euclidean(hits, count, rotation)
        return PatternSequence(tuple((node if is_hit else rest, Fraction(1)) for is_hit in steps))

    def _whole_numbers(self, begun: int) -> tuple[list[int], list[tuple[int, int]]]:
        """The two or three numbers between brackets, with their places."""
        numbers: list[int] = []
        places: list[tuple[int, int]] = []
        example = "hits, steps and where to begin: (3,8) or (3,8,2)"
        while True:
            self._skip()
            match = _WHOLE.match(self.characters, self.at)
            if match is None:
                hint = "to change it from cycle to cycle, write <bd(3,8) bd(5,8)>" if self._next == "<" else example
                raise self.mistake("a whole number is expected here", self.at, self.at + 1, hint)
            numbers.append(int(match.group()))
            places.append((match.start(), match.end()))
            self.at = match.end()
            self._skip()
            sign, self.at = self._next, self.at + 1
            if sign == "":
                raise self.mistake('this "(" is never closed', begun, begun + 1, example)
            if sign == ")" and len(numbers) > 1:
                return numbers, places
            if sign != "," or len(numbers) == 3:
                wrong = "a Euclidean rhythm takes two or three numbers"
                raise self.mistake(wrong, begun, self.at - (sign not in (",", ")")), example)


def _sequence(items: Sequence[_Item], takes_turns: bool) -> PatternNode:
    """Steps one after the other; those that take turns have a cycle for each unit of weight."""
    steps = tuple(_written_out(items))
    total = sum((weight for _, weight in steps), Fraction(0))
    if len(steps) == 1 and (not takes_turns or total == 1):
        return steps[0][0]
    sequence = PatternSequence(steps)
    return PatternSpeed(sequence, 1 / total) if takes_turns else sequence


def _written_out(items: Sequence[_Item]) -> Iterator[tuple[PatternNode, Fraction]]:
    for item in items:
        for _ in range(item.repeats):
            yield item.node, item.weight
