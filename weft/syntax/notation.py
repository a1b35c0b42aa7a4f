"""The notation of patterns: from the string in `pattern("0 3 [7 10]")` to a tree, with errors at their places in it.

A string is one or several sequences, separated by commas. The steps of a sequence share its time by their weights, and
a step is a number, a note, a word, a rest, a run or a group, with suffixes. The tree has only the nodes below: `!n`,
`(k,n,r)`, `0 .. 3`, feet (`bd sn . hh`) and the brackets `<…>` and `{…}%n` are written out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
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
        """The end of each step in the cycle."""
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


@dataclass(frozen=True, slots=True, eq=False)
class PatternChoice:
    """Nodes of which each cycle plays one, drawn by chance with equal shares."""

    parts: tuple[PatternNode, ...]


@dataclass(frozen=True, slots=True, eq=False)
class PatternTurns:
    """Nodes that take turns: in cycle n, part n plays its own cycle. So `bd*<2 3>` is `bd*2` in even cycles, and `bd*3`
    in odd ones."""

    parts: tuple[PatternNode, ...]


PatternNode: TypeAlias = (
    "PatternEvent | PatternRest | PatternSequence | PatternStack | PatternSpeed | PatternChance | PatternChoice"
    " | PatternTurns"
)


@dataclass(frozen=True, slots=True, eq=False)
class PatternText:
    """The tree of a string. `words` are its own names, each with its value and place, in the order of the text."""

    root: PatternStack
    words: dict[str, tuple[float, Span]]


@lru_cache(maxsize=4096)
def voices_of(node: PatternNode) -> int:
    """The number of events that can sound at the same time."""
    match node:
        case PatternSequence(steps):
            return max(map(voices_of, {step for step, _ in steps}))
        case PatternChoice(parts) | PatternTurns(parts):
            return max(map(voices_of, parts))
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
"""The most steps that `!n`, `(k,n)` or a run write out, and the most cycles over which numbers take turns."""

_TOKEN = re.compile(
    r"""(?P<number>-?(?:\d+\.?\d*|\.\d+)(?![\w#]|\.(?!\.)))
    |(?P<note>[a-gA-G](?:\#\#?|ss?|bb?|ff?)?-?\d{1,2}(?![\w#]))
    |(?P<word>[A-Za-z][A-Za-z0-9_]*(?![\w#]))
    |(?P<sign>[][<({~*/@!?%])""",
    re.VERBOSE,
)
_AMOUNT = re.compile(r"\d+\.?\d*|\.\d+")
_WHOLE = re.compile(r"-?\d+(?![\w.])")
_RUN = re.compile(r"[^\s\][<>(){},|]+|.")

_SEMITONES = {"c": 0, "d": 2, "e": 4, "f": 5, "g": 7, "a": 9, "b": 11}
_ACCIDENTALS = {"": 0, "#": 1, "##": 2, "s": 1, "ss": 2, "b": -1, "bb": -2, "f": -1, "ff": -2}
_NO_OCTAVE = re.compile(r"[a-g](?:ss?|bb?|ff?)?")
_NOTE = re.compile(r"([a-g])(##?|ss?|bb?|ff?)?(-?\d+)")

# Notes as other languages and notations write them: a letter, an accidental by its name, an octave.
_NOTE_ELSEWHERE = re.compile(r"([a-h])(is|es|isis|eses|n|sharp|flat)?(\d{1,2})")
_ACCIDENTALS_ELSEWHERE = {"is": "#", "isis": "##", "es": "b", "eses": "bb", "n": "", "sharp": "#", "flat": "b"}

# If a pattern has the first of these, it is a rhythm of on and off, and the second is a rest.
_ON, _OFF = ("t", "true"), ("f", "false")
_HAS_ON = re.compile(rf"(?<![\w#])(?:{'|'.join(_ON)})(?![\w#])")

# Each suffix, with an example.
_SUFFIXES = {"*": "bd*2", "/": "bd/2", "@": "bd@3", "!": "bd!2", "?": "bd?0.3", "(": "bd(3,8)"}
_CLOSING = {"[": "]", "<": ">", "{": "}"}

# The separators of sequences that are played together, and of those of which one is played.
_TOGETHER, _EITHER = ",", "|"
_SEPARATORS = (_TOGETHER, _EITHER)

# The characters that may follow a step, and those that end a sequence.
_ENDS = ("", ",", "|", "]", ">", ")", "}")

_A_STEP = "a step is a number, a note like c4 or eb3, a word, ~ for a rest, or a group [ ] or < > or { }"
_POLYMETER = "steps of another length are written in braces: {bd sn hh}%4 plays four of them in a cycle"

# Words of other notations, and what to write here.
_FOREIGN = {
    ":": "give each sound a word of its own: bd1 bd2",
    ".": "a dot between groups has spaces around it: bd sn . hh hh hh",
    "-": "a rest is written ~",
    "+": "numbers are added outside: p@value + 12",
    "^": "a longer step is written bd@3",
    "'": "a chord is a stack: [c4, e4, g4]",
    "&": "sequences at the same time are separated by a comma",
    ";": "sequences at the same time are separated by a comma",
    "$": "a word consists of letters, digits and _",
    "#": "a sharp stands after the letter of a note: f#5",
    "%": _POLYMETER,
    "=": "a pattern has only values; names are bound outside of it",
    "\\": "a pattern stands on one line, without escapes",
    "♭": "a flat is written b: eb4",
    "♯": "a sharp is written #: f#4",
}


def parse_pattern(text: Text) -> PatternText:
    """The tree of a string. Raises WeftError at the place of its first mistake."""
    return _PatternParser(text).parsed()


class _Item(NamedTuple):
    """A step in the making, with its length and the number of its repetitions."""

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
        self.rests = _OFF if _HAS_ON.search(self.characters) else ()

    def parsed(self) -> PatternText:
        root = self._group("")
        for word, (_, place) in self.words.items():
            self._expect_no_note(word, place)
        parts = root.parts if isinstance(root, PatternStack) else (root,)
        return PatternText(PatternStack(parts), self.words)

    def _expect_no_note(self, word: str, place: Span) -> None:
        """Raises an error if a word of the pattern is a note of another notation."""
        if _NO_OCTAVE.fullmatch(word) and (len(word) == 1 or self.has_notes):
            raise error("pattern-syntax", f'"{word}" is a note without its octave', place,
                        f"write {word}4; a word of one's own is longer")  # fmt: skip
        found = _NOTE_ELSEWHERE.fullmatch(word) if self.has_notes else None
        if found is not None:
            letter, accidental, octave = found.groups()
            here = "b" if letter == "h" else letter
            raise error("pattern-syntax", f'"{word}" is no note here, and this pattern has notes', place,
                        f"write {here}{_ACCIDENTALS_ELSEWHERE.get(accidental, '')}{octave}")  # fmt: skip

    # --- places and characters ------------------------------------------------------------------------------------

    def place(self, start: int, end: int) -> Span:
        """The span of some characters; after the last one, it is the closing quote."""
        first = self.span.start + 1
        return Span(self.span.source, first + start, first + max(end, start + 1))

    def mistake(self, message: str, start: int, end: int, hint: str | None = None) -> WeftError:
        return error("pattern-syntax", message, self.place(start, end), hint)

    def _skip(self) -> None:
        """Moves to the next character that is not a blank."""
        while self._next in (" ", "\t"):
            self.at += 1

    @property
    def _next(self) -> str:
        """The next character; empty at the end."""
        return self.characters[self.at : self.at + 1]

    @property
    def _stands_alone(self) -> bool:
        """Whether the next character is a step by itself."""
        return self.characters[self.at + 1 : self.at + 2] in (" ", "\t", *_ENDS)

    @property
    def _is_run(self) -> bool:
        return self.characters.startswith("..", self.at)

    # --- sequences ------------------------------------------------------------------------------------------------

    def _group(self, opening: str) -> PatternNode:
        """The content of brackets, of which the first was read; or all of the text."""
        start = self.at - 1
        parts, separator = self._parts(opening)
        match opening:
            case "{":
                each = self._steps_of_cycle(parts[0])
            case "<":
                each = [Fraction(1)]
            case _:
                each = [None]
        return self._in_turns([_joined([_sequence(part, steps) for part in parts], separator) for steps in each], start)

    def _parts(self, opening: str) -> tuple[list[list[_Item]], str]:
        """The sequences up to the bracket that closes a group, or up to the end, and what separates them."""
        closing, start = _CLOSING.get(opening, ""), self.at - 1
        parts: list[list[_Item]] = []
        separator = ""
        while True:
            before = self.at
            items = self._items()
            found = self._next
            if not items and (found in (*_SEPARATORS, closing) or parts):
                raise self._no_step(start, before, bool(parts))
            if found not in (*_SEPARATORS, closing):
                raise self._unclosed(opening, start)
            parts.append(items)
            self.at += 1
            if found == closing:
                return parts, separator
            if found != (separator or found):
                raise self.mistake(f'"{found}" and "{separator}" cannot be in one group', self.at - 1, self.at,
                                   "put brackets around those of which one is drawn: [bd | sn], hh*4")  # fmt: skip
            separator = found

    def _no_step(self, start: int, before: int, is_later: bool) -> WeftError:
        """The error for a sequence without a step, after `before`."""
        if self._next in _SEPARATORS or is_later:
            found = self._next if self._next in _SEPARATORS else self.characters[before - 1 : before]
            return self.mistake(f"a sequence is empty here, next to a {'comma' if found == _TOGETHER else found}",
                                before - is_later, self.at + 1, "a voice that is silent is written ~")  # fmt: skip
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
        """The steps up to a separator, a closing bracket or the end. Feet are groups of their own."""
        feet: list[_Item] = []
        items: list[_Item] = []
        while True:
            self._skip()
            if self._next in _ENDS:
                if feet and not items:
                    raise self._empty_foot(self.at)
                return [*feet, _Item(_sequence(items))] if feet else items
            start = self.at
            if self._next == "." and self._stands_alone:
                if not items:
                    raise self._empty_foot(start)
                self.at += 1
                feet.append(_Item(_sequence(items)))
                items = []
            elif self._next == "_":
                self.at += 1
                self._lengthen(items, start)
            elif self._next == "!" and self._stands_alone:
                self.at += 1
                self._repeat(items, start)
            else:
                items.append(self._step())

    def _empty_foot(self, at: int) -> WeftError:
        return self.mistake("a dot stands between two groups, and one of them is empty here", at, at + 1,
                            "a rest is written ~; groups are separated as in bd sn . hh hh hh")  # fmt: skip

    def _lengthen(self, items: list[_Item], start: int) -> None:
        """`_`: the last step is longer by one; of several that are the same, only the last."""
        if not items:
            raise self.mistake("_ makes the step before it longer, and there is none", start, self.at)
        last = items.pop()
        if last.repeats > 1:
            items.append(last._replace(repeats=last.repeats - 1))
        items.append(last._replace(weight=last.weight + 1, repeats=1))

    def _repeat(self, items: list[_Item], start: int) -> None:
        """`!`: the last step comes once more."""
        if not items:
            raise self.mistake("! repeats the step before it, and there is none", start, self.at)
        items[-1] = self._once_more(items[-1], start)

    def _once_more(self, item: _Item, begun: int) -> _Item:
        if item.repeats == MAX_REPEATS:
            raise self.mistake(f"a step is repeated 1 to {MAX_REPEATS} times", begun, self.at)
        return item._replace(repeats=item.repeats + 1)

    def _step(self) -> _Item:
        """A step with its suffixes; or a run, which is the group of its numbers."""
        start = self.at
        item = self._suffixed(self._atom(), start)
        after = self.at
        self._skip()
        if self._is_run:
            return _Item(self._run(item, start))
        self.at = after
        return item

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
            case "word" if text not in self.rests:
                value, _ = self.words.setdefault(text, (len(self.words) + 1.0, self.place(start, self.at)))
                return PatternEvent(value, text)
        if text == "~" or text in self.rests:
            return PatternRest()
        if text in _CLOSING:
            self.depth += 1
            if self.depth > MAX_DEPTH:
                raise self.mistake(f"groups are nested more than {MAX_DEPTH} deep here", start, self.at)
            inner = self._group(text)
            self.depth -= 1
            return inner
        if text == "%":
            raise self.mistake('"%" is not part of a step', start, self.at, _POLYMETER)
        raise self.mistake(f'"{text}" belongs to the step right before it, without a space', start, self.at,
                           f"for example {_SUFFIXES[text]}")  # fmt: skip

    def _note(self, text: str, start: int) -> float:
        """The number of a note, as MIDI counts: c4 is 60."""
        match = _NOTE.fullmatch(text)
        if match is None:
            raise self.mistake("notes are written small", start, self.at, f"write {text[0].lower()}{text[1:]}")
        letter, accidental, octave = match.groups()
        return float(12 * (int(octave) + 1) + _SEMITONES[letter] + _ACCIDENTALS[accidental or ""])

    def _run(self, first: _Item, start: int) -> PatternNode:
        """The whole steps from one number to another, up or down."""
        self.at += 2
        self._skip()
        begun = self.at
        if self._next in _ENDS:
            raise self.mistake("a run goes from one number to another, and the second is missing", begun, begun + 1,
                               "for example 0 .. 3")  # fmt: skip
        ends = [_by_cycle(first.node if first == _Item(first.node) else PatternRest()), _by_cycle(self._atom())]
        if self._next in _SUFFIXES:
            raise self.mistake("a suffix of a run stands after its group", self.at, self.at + 1, "write [0 .. 3]*2")
        if not all(ends) or (self._next not in (" ", "\t", *_ENDS)):
            raise self.mistake("a run goes from one number or note to another", start, self.at,
                               "for example 0 .. 3 or c4 .. g4")  # fmt: skip
        return self._in_turns([self._run_between(low, high, start) for low, high in self._cycles(ends, start)], start)

    def _run_between(self, first: float, last: float, start: int) -> PatternNode:
        if not (last - first).is_integer() or abs(last - first) >= MAX_REPEATS:
            raise self.mistake(f"a run has 1 to {MAX_REPEATS} whole steps", start, self.at, "for example 0 .. 3")
        sign = 1 if last >= first else -1
        return _sequence([_Item(PatternEvent(first + sign * k)) for k in range(int(abs(last - first)) + 1)])

    def _unknown(self, start: int) -> WeftError:
        if self._is_run:
            return self.mistake("a run goes from one number to another, and the first is missing", start, start + 2,
                                "for example 0 .. 3")  # fmt: skip
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
            self.at += 1
            if sign == "!" and not (self._next.isdigit() or self._next in (".", "<")):
                item = self._once_more(item, begun)
                continue
            if sign in seen:
                raise self.mistake(f'this step has "{sign}" twice', begun, begun + 1,
                                   "put brackets around what the first one applies to")  # fmt: skip
            seen += sign
            item = self._applied(sign, item, begun)
        after = self._next
        if after not in (" ", "\t", *_ENDS) and not self._is_run:
            if after == "~" or after in _CLOSING or (after.isalnum() and self.characters[self.at - 1] in "~]>})"):
                raise self.mistake("a space is missing between two steps", start, self.at + 1)
            raise self._unknown_suffix(start)
        return item

    def _unknown_suffix(self, start: int) -> WeftError:
        sign = self._next
        hint = _FOREIGN.get(sign, "suffixes are *2 /2 @3 !2 ? ?0.3 (3,8)")
        return self.mistake(f'"{sign}" cannot follow "{self.characters[start:self.at]}"', self.at, self.at + 1, hint)

    def _applied(self, sign: str, item: _Item, begun: int) -> _Item:
        match sign:
            case "*" | "/":
                factors = self._amounts(begun)
                speeds = [PatternSpeed(item.node, each if sign == "*" else 1 / each) for each in factors]
                return item._replace(node=self._in_turns(speeds, begun))
            case "@":
                return item._replace(weight=self._amount(begun))
            case "!":
                return item._replace(repeats=item.repeats - 1 + self._repeats(begun))
            case "?":
                chances = [PatternChance(item.node, each) for each in self._probabilities()]
                return item._replace(node=self._in_turns(chances, begun))
            case _:
                return item._replace(node=self._euclid(item.node, begun))

    def _amount(self, begun: int) -> Fraction:
        """The number after a suffix, above 0."""
        match = _AMOUNT.match(self.characters, self.at)
        sign = self.characters[begun]
        if match is None:
            hint = f"for example {_SUFFIXES.get(sign, '{bd sn hh}%4')}"
            if self._next in ("<", "["):
                hint = "what changes from cycle to cycle is written in angle brackets: "
                hint += "bd*<2 3>" if sign not in "@!" else f"<[bd{sign}2 sn] [bd{sign}3 sn]>"
            raise self.mistake(f'a number has to follow "{sign}" at once', begun, begun + 1, hint)
        self.at = match.end()
        amount = Fraction(match.group())
        self._expect_amount(amount, begun)
        return amount

    def _expect_amount(self, amount: Fraction, begun: int) -> None:
        if not 0 < amount <= 1000:
            raise self.mistake(f'the number after "{self.characters[begun]}" is above 0, and at most 1000', begun + 1,
                               self.at)  # fmt: skip

    def _amounts(self, begun: int) -> list[Fraction]:
        """The number after a suffix, or those that take turns there."""
        if self._next != "<":
            return [self._amount(begun)]
        amounts = [Fraction(str(number)) for number in self._turning()]
        for amount in amounts:
            self._expect_amount(amount, begun)
        return amounts

    def _turning(self) -> tuple[float, ...]:
        """The numbers of a group `<…>`, one for each cycle."""
        start = self.at
        numbers = _by_cycle(self._atom())
        if not numbers:
            raise self.mistake(f"numbers that take turns over at most {MAX_REPEATS} cycles are expected here", start,
                               self.at, "for example bd*<2 3>")  # fmt: skip
        return numbers

    def _cycles(self, numbers: Sequence[Sequence[float]], begun: int) -> list[tuple[float, ...]]:
        """Several numbers in each cycle, until they repeat, from the numbers that take turns for each."""
        period = math.lcm(*map(len, numbers))
        if period > MAX_REPEATS:
            raise self._too_many_turns(begun)
        return [tuple(each[cycle % len(each)] for each in numbers) for cycle in range(period)]

    def _in_turns(self, nodes: Sequence[PatternNode], begun: int) -> PatternNode:
        if len(nodes) > MAX_REPEATS:
            raise self._too_many_turns(begun)
        return nodes[0] if len(nodes) == 1 else PatternTurns(tuple(nodes))

    def _too_many_turns(self, begun: int) -> WeftError:
        return self.mistake(f"numbers take turns over at most {MAX_REPEATS} cycles", begun, self.at)

    def _repeats(self, begun: int) -> int:
        amount = self._amount(begun)
        if amount.denominator != 1 or amount > MAX_REPEATS:
            raise self.mistake(f"a step is repeated 1 to {MAX_REPEATS} times", begun + 1, self.at)
        return int(amount)

    def _probabilities(self) -> Sequence[float]:
        """The probability that an event is left out: a number, those that take turns, or a half."""
        start = self.at
        match = _AMOUNT.match(self.characters, start)
        if match is not None:
            self.at = match.end()
            shares: Sequence[float] = [float(match.group())]
        else:
            shares = self._turning() if self._next == "<" else [0.5]
        if not all(0 <= share <= 1 for share in shares):
            raise self.mistake("how often a step is left out is a number from 0 to 1", start, self.at, "bd?0.3")
        return shares

    def _steps_of_cycle(self, first: Sequence[_Item]) -> list[Fraction | None]:
        """The number of steps of `{…}` in a cycle: those of its first sequence, or the number after `%`."""
        begun = self.at
        if self._next != "%":
            return [sum((item.weight * item.repeats for item in first), Fraction(0))]
        self.at += 1
        return [*self._amounts(begun)]

    def _euclid(self, node: PatternNode, begun: int) -> PatternNode:
        """The content of the brackets: hits, steps and a rotation, each of which may take turns."""
        numbers, places = self._whole_numbers(begun)
        in_turn = self._cycles([*numbers, (0.0,)][:3], begun)
        rhythms = [self._rhythm(node, int(hits), int(count), int(first), places) for hits, count, first in in_turn]
        return self._in_turns(rhythms, begun)

    def _rhythm(
        self, node: PatternNode, hits: int, count: int, rotation: int, places: Sequence[tuple[int, int]]
    ) -> PatternNode:
        if not 1 <= count <= MAX_REPEATS:
            raise self.mistake(f"a Euclidean rhythm has 1 to {MAX_REPEATS} steps", *places[1])
        if abs(hits) > count:
            raise self.mistake(f"{abs(hits)} hits do not fit into {count} steps", *places[0],
                               "first the hits, then the steps: (3,8)")  # fmt: skip
        steps = euclidean(abs(hits), count, rotation)
        return PatternSequence(tuple((node if hit != (hits < 0) else PatternRest(), Fraction(1)) for hit in steps))

    def _whole_numbers(self, begun: int) -> tuple[list[Sequence[float]], list[tuple[int, int]]]:
        """The two or three numbers between brackets, for each turn, with their places."""
        numbers: list[Sequence[float]] = []
        places: list[tuple[int, int]] = []
        example = "hits, steps and where to begin: (3,8) or (3,8,2)"
        while True:
            self._skip()
            start = self.at
            match = _WHOLE.match(self.characters, start)
            if match is not None:
                self.at = match.end()
                numbers.append((float(match.group()),))
            else:
                found = self._turning() if self._next == "<" else (0.5,)
                if not all(number.is_integer() for number in found):
                    raise self.mistake("a whole number is expected here", start, max(self.at, start + 1), example)
                numbers.append(found)
            places.append((start, self.at))
            self._skip()
            sign, self.at = self._next, self.at + 1
            if sign == "":
                raise self.mistake('this "(" is never closed', begun, begun + 1, example)
            if sign == ")" and len(numbers) > 1:
                return numbers, places
            if sign != "," or len(numbers) == 3:
                wrong = "a Euclidean rhythm takes two or three numbers"
                raise self.mistake(wrong, begun, self.at - (sign not in (",", ")")), example)


# --- building nodes ---


def _sequence(items: Sequence[_Item], steps: Fraction | None = None) -> PatternNode:
    """Steps one after the other, all in each cycle, or this many."""
    written = tuple((item.node, item.weight) for item in items for _ in range(item.repeats))
    factor = 1 if steps is None else steps / sum((weight for _, weight in written), Fraction(0))
    sequence = written[0][0] if len(written) == 1 and factor == 1 else PatternSequence(written)
    return sequence if factor == 1 else PatternSpeed(sequence, Fraction(factor))


def _joined(parts: Sequence[PatternNode], separator: str) -> PatternNode:
    """The sequences of a group as one node."""
    if len(parts) == 1:
        return parts[0]
    return PatternChoice(tuple(parts)) if separator == _EITHER else PatternStack(tuple(parts))


def _by_cycle(node: PatternNode) -> tuple[float, ...]:
    """The numbers of a node that has one for each cycle, until they repeat; none if it has anything else."""
    match node:
        case PatternEvent(value, None):
            return (value,)
        case PatternSpeed(PatternSequence(steps), factor):
            total = sum(weight for _, weight in steps)
            inner = {step: _by_cycle(step) for step, _ in steps}
            rounds = math.lcm(*map(len, inner.values()))
            is_whole = factor * total == 1 and all(weight.denominator == 1 for _, weight in steps)
            if not all(inner.values()) or not is_whole or rounds * total > MAX_REPEATS:
                return ()
            turns = [inner[step] for step, weight in steps for _ in range(int(weight))]
            return tuple(numbers[turn % len(numbers)] for turn in range(rounds) for numbers in turns)
    return ()
