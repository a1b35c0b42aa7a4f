"""Sources, spans and diagnostics: how every part of weft reports an error and its place, and how text from outside
appears in a message.

Such text (names, lines of a patch, paths, messages of other libraries) cannot move a terminal's cursor or reverse a
line. Each character is counted as wide as a terminal draws it, and everything is cut to a readable length. All limits
on lengths are here.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import cached_property, lru_cache
from heapq import nlargest
from itertools import pairwise
from typing import Final, Literal, NamedTuple

from weft.codes.rows import Severity
from weft.codes.table import spec_of

# --- text from outside, as a message shows it ---

LONGEST_QUOTE: Final = 32
"""Characters of a text that a message repeats as it was typed."""

LONGEST_WORD: Final = 80
"""Characters of a name in a message; a longer one is cut in the middle."""

LONGEST_PATH: Final = 240
"""Characters of a file's path in a message."""

LONGEST_MESSAGE: Final = 600
"""Characters of a whole message, or of a hint."""

LONGEST_LINE: Final = 96
"""Columns of a line of a patch. A longer one would wrap in most terminals, and push the caret away from its place."""

LONGEST_CHAIN: Final = 7
"""Names in a chain such as a cycle; of a longer one, the beginning and the end are shown."""

# More marks than this on one letter belong to no script, and reach into the lines above.
_MOST_MARKS: Final = 4

_WORD = re.compile(rf"\S{{{LONGEST_WORD + 1},}}")
# A wide character, and one that takes no column; ASCII has neither.
_WIDE: Final = frozenset("WF")
_MARKS: Final = frozenset(("Mn", "Me"))
# Vowels and final consonants of Hangul join the syllable before them.
_JOINING: Final = range(0x1160, 0x1200)


def visible(text: str) -> str:
    """The text, with each invisible character as its escape: `\x1b`, `\u202e`. Spaces do not change."""
    return text if text.isprintable() else "".join(map(_visible, text))


def visible_lines(text: str) -> str:
    """A text of several lines with its invisible characters as escapes. Line ends and tabs do not change."""
    return "".join(c if c in "\n\t" else _visible(c) for c in text) if not text.isprintable() else text


def _visible(character: str) -> str:
    if character.isprintable():
        return character
    number = ord(character)
    if character in "\t\n\r":
        return {"\t": "\\t", "\n": "\\n", "\r": "\\r"}[character]
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


@lru_cache(maxsize=4096)
def columns_of_character(character: str) -> int:
    """The columns that a visible character takes in a terminal: 2, 1, or 0 for a mark on the character before."""
    if character.isascii():
        return 1
    if unicodedata.category(character) in _MARKS or ord(character) in _JOINING:
        return 0
    return 2 if unicodedata.east_asian_width(character) in _WIDE else 1


def columns(text: str, tab: int | None = None, start: int = 0) -> list[str]:
    """The text as the columns of a terminal show it, from column `start` on: a character with its marks, a part of an
    escape, or an empty string for the right half of a wide character. A tab stays one column, unless it goes to
    multiples of `tab`."""
    found: list[str] = []
    for letter in text:
        if letter == "\t":
            found += ["\t"] if tab is None else [" "] * (tab - (start + len(found)) % tab)
            continue
        for shown in _visible(letter):
            width = columns_of_character(shown)
            if width:
                found += [shown, ""][:width]
                continue
            at = -2 if found and found[-1] == "" else -1
            if not found or found[at] == "\t":
                found.append(" " + shown)
            elif len(found[at]) <= _MOST_MARKS:
                found[at] += shown
    return found


def blank_halves(row: Sequence[str]) -> list[str]:
    """Columns that were cut out of a row, with a space in place of each half of a wide character that was cut."""
    if not row:
        return []
    is_left = [shown != "" and columns_of_character(shown[0]) == 2 for shown in row]
    is_right = [shown == "" for shown in row]
    halved = (left and not right for left, right in zip(is_left, [*is_right[1:], False], strict=True))
    orphans = (right and not left for left, right in zip([False, *is_left[:-1]], is_right, strict=True))
    broken = map(any, zip(halved, orphans, strict=True))
    return [" " if is_broken else shown for shown, is_broken in zip(row, broken, strict=True)]


def cut_out(row: Sequence[str], first: int, length: int, width: int) -> tuple[list[str], int, int]:
    """At most `width` columns of a row, which include the `length` columns from `first`, or at least the first of them.

    Returns these columns, and the start and length of the range in them. An end where something is missing shows …
    """
    if max(len(row), first + 1) <= width:
        return list(row), first, length
    row = [*row, *" " * (first + 1 - len(row))]
    length = min(length, len(row) - first)
    lead = min(width - 1, max(1, min(width // 3, width - length - 1)))
    cut = max(0, min(first - lead, len(row) - width))
    goes_on = cut + width < len(row)
    shown = list(row[cut : cut + width])
    if cut:
        shown[0] = "…"
    if goes_on:
        shown[-1] = "…"
    return shown, first - cut, max(1, min(length, width - goes_on - (first - cut)))


def shortened(text: str, most: int) -> str:
    """The text, with its middle left out if it is longer than `most` characters."""
    if len(text) <= most:
        return text
    tail = (most - 1) // 3
    return f"{text[: most - 1 - tail]}…{text[len(text) - tail :]}"


def path_of(path: str) -> str:
    """The path of a file as a message shows it."""
    return visible(shortened(path, LONGEST_PATH))


def steps_of(names: Sequence[str]) -> str:
    """A chain of names; of many, the first and the last ones, and the number of those left out."""
    if len(names) > LONGEST_CHAIN + 1:
        tail = LONGEST_CHAIN // 2
        first, last = names[: LONGEST_CHAIN - tail], names[len(names) - tail :]
        names = [*first, f"… {len(names) - LONGEST_CHAIN:,} more …", *last]
    return " → ".join(shortened(name, LONGEST_WORD) for name in names)


def fitting(message: str) -> str:
    """A message of readable length: long names are cut in the middle, and so is the whole."""
    if len(message) <= LONGEST_WORD:
        return message
    words = _WORD.sub(lambda w: shortened(w[0], LONGEST_PATH if "/" in w[0] else LONGEST_WORD), message)
    cut = shortened(words, LONGEST_MESSAGE)
    # A cut can make one long word of two, or take the slash out of a path: cut until nothing is too long.
    return cut if cut == message else fitting(cut)


# --- sources, spans and diagnostics ---

MOST_SHOWN: Final = 50
"""The most diagnostics that are shown at once; the others are only counted."""


@dataclass(frozen=True, eq=False)
class Source:
    """A text with the name that people know it by: for a file, its path as it was given. Offsets count code points from
    0. A `library` ships with weft; a patch may redefine its names."""

    name: str
    text: str
    library: bool = False

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(end.end() for end in re.finditer("\n", self.text))]

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset, both from 1."""
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    def offset(self, line: int, column: int) -> int:
        """The offset of a line and a column, both from 1; the nearest one, if there is none there."""
        starts = self._line_starts
        start = starts[min(max(line, 1), len(starts)) - 1]
        return min(start + max(column, 1) - 1, len(self.text))

    def line(self, number: int) -> str:
        """The text of a line, counted from 1, without its line end."""
        start = self._line_starts[number - 1]
        end = self._line_starts[number] - 1 if number < len(self._line_starts) else len(self.text)
        return self.text[start:end].rstrip("\r")


@dataclass(frozen=True, slots=True)
class Span:
    """The half-open range of offsets `start … end` in a source."""

    source: Source
    start: int
    end: int

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.end]

    def to(self, other: Span) -> Span:
        """The span from the start of this one to the end of `other`."""
        return Span(self.source, self.start, other.end)

    def __str__(self) -> str:
        line, column = self.source.position(self.start)
        return f"{path_of(self.source.name)}:{line}:{column}"


Role = Literal["place", "severity", "message", "code", "related", "label", "hint", "source", "mark"]


class Part(NamedTuple):
    """A part of a line about a diagnostic, and what it is."""

    role: Role
    text: str


def _part(role: Role, text: str) -> Part:
    return Part(role, visible(text))


@dataclass(frozen=True, slots=True)
class SourceLine:
    """The line of a patch in which a span starts; the span covers its characters `first … last`."""

    number: int
    text: str
    first: int
    last: int

    @staticmethod
    def of(span: Span) -> SourceLine:
        number, column = span.source.position(span.start)
        text = span.source.line(number)
        first = min(column - 1, len(text))
        return SourceLine(number, text, first, max(first, min(first + span.end - span.start, len(text))))

    def excerpt(self, width: int = LONGEST_LINE, tab: int | None = None) -> tuple[str, str, int]:
        """The line as a terminal shows it, cut around the range; the white space before the range, and its length, both
        in columns."""
        # Of a long line, only the part that can be shown is looked at.
        start, stop = max(0, self.first - width), self.first + 2 * width
        before = columns(self.text[start : self.first], tab)
        after = columns(self.text[self.first : stop], tab, len(before))
        covered = columns(self.text[self.first : min(self.last, stop)], tab, len(before))
        row = before + after
        if start:
            row[:1] = ["…"]
        if stop < len(self.text):
            row[-1:] = ["…"]
        row, at, length = cut_out(row, len(before), max(1, min(len(covered), len(after))), width)
        row = blank_halves(row)
        indentation = "".join("\t" if shown == "\t" else " " for shown in row[:at]).ljust(at)
        return "".join(row), indentation, length


class DiagnosticLine(NamedTuple):
    """The message of a diagnostic about one place, and the line of the patch there."""

    parts: tuple[Part, ...]
    source: SourceLine | None = None


# Between the number of a line and the line, and the columns of a line that leave room for its number.
_BAR: Final = " | "
_NARROW: Final = 8


def _spaced(parts: Sequence[Part], gutter: int) -> Iterator[Part]:
    """Parts with the characters between them; a hint is indented."""
    if parts[0].role == "label":
        yield Part("source", " " * (gutter + len(_BAR)))
    for role, text in parts[:-1]:
        yield Part(role, text + (": " if role in ("place", "severity") else " "))
    yield parts[-1]


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One error or warning. `related` holds further places, each with its own message. Message and hint are cut to a
    readable length, and of many further places only the first are kept. `fix` is a place and the text that corrects the
    mistake there, if that is known for certain."""

    severity: Severity
    code: str
    message: str
    span: Span | None = None
    hint: str | None = None
    related: tuple[tuple[Span, str], ...] = ()
    fix: tuple[Span, str] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", fitting(self.message))
        if self.hint is not None:
            object.__setattr__(self, "hint", fitting(self.hint))
        if len(self.related) > LONGEST_CHAIN:
            *first, (span, words) = self.related[:LONGEST_CHAIN]
            last = span, f"{words}, and so on at {len(self.related) - LONGEST_CHAIN:,} more places"
            object.__setattr__(self, "related", (*first, last))

    @staticmethod
    def of(
        code: str, message: str, span: Span | None = None, hint: str | None = None,
        related: Iterable[tuple[Span, str]] = (), fix: tuple[Span, str] | None = None,
    ) -> Diagnostic:  # fmt: skip
        """A diagnostic with the severity of its code."""
        return Diagnostic(spec_of(code).severity, code, message, span, hint, tuple(related), fix)

    def layout(self) -> Iterator[DiagnosticLine]:
        """The lines of the diagnostic, of visible characters: the message, related places, and the hint."""
        place = [_part("place", str(self.span))] if self.span else []
        said = _part("severity", self.severity), _part("message", self.message), _part("code", f"[{self.code}]")
        yield DiagnosticLine((*place, *said), SourceLine.of(self.span) if self.span else None)
        for span, words in self.related:
            yield DiagnosticLine((_part("place", str(span)), _part("related", words)), SourceLine.of(span))
        if self.hint:
            yield DiagnosticLine((_part("label", "hint:"), _part("hint", self.hint)))

    def text_lines(self, width: int | None = None, tab: int | None = None) -> Iterator[tuple[Part, ...]]:
        """The layout as lines of text, with carets below the places. Lines of a patch take at most `width` columns with
        their numbers; the numbers are left out if that is narrow. Tabs in them go to multiples of `tab`, or do not
        change; then there are also tabs before the carets, so that these keep their columns in any width of tabs."""
        lines = list(self.layout())
        gutter = max((len(str(line.source.number)) for line in lines if line.source), default=1) + 1
        head = gutter + len(_BAR)
        if width is not None and width - head < _NARROW:
            head = 0
        room = LONGEST_LINE if width is None else min(LONGEST_LINE, width - head)
        for line in lines:
            yield tuple(_spaced(line.parts, gutter))
            if line.source:
                row, indentation, length = line.source.excerpt(room, tab)
                number = f"{line.source.number:>{gutter}}{_BAR}" if head else ""
                blank = f"{'':{gutter}}{_BAR}" if head else ""
                yield (Part("source", number + row),)
                yield Part("source", blank + indentation), Part("mark", "^" * length)

    def render(self) -> str:
        """The whole text of the diagnostic: place, message, source line, carets, related places and hint."""
        return "\n".join("".join(part.text for part in line) for line in self.text_lines())

    def to_json(self) -> dict[str, str | int | None]:
        """The object that `weft check --json` promises; lines and columns count from 1."""
        fields: dict[str, str | int | None] = {
            "severity": self.severity, "code": self.code, "message": self.message, "file": None,
            "line": None, "column": None, "end_line": None, "end_column": None, "hint": self.hint,
        }  # fmt: skip
        if self.span:
            fields["file"] = self.span.source.name
            fields["line"], fields["column"] = self.span.source.position(self.span.start)
            fields["end_line"], fields["end_column"] = self.span.source.position(self.span.end)
        return fields


def foremost(diagnostics: Sequence[Diagnostic]) -> tuple[tuple[Diagnostic, ...], int]:
    """At most `MOST_SHOWN` diagnostics in their order, errors preferred to warnings, and the number of the others."""
    if len(diagnostics) <= MOST_SHOWN:
        return tuple(diagnostics), 0
    by_weight = sorted(range(len(diagnostics)), key=lambda at: diagnostics[at].severity != "error")
    kept = tuple(diagnostics[at] for at in sorted(by_weight[:MOST_SHOWN]))
    return kept, len(diagnostics) - len(kept)


def event_fields(diagnostics: Sequence[Diagnostic]) -> dict[str, object]:
    """The fields of an event about diagnostics. `left_out` is present only if some are left out."""
    shown, left_out = foremost(diagnostics)
    fields: dict[str, object] = {"diagnostics": [d.to_json() for d in shown]}
    return {**fields, "left_out": left_out} if left_out else fields


class WeftError(Exception):
    """Some work failed for a reason that the user can fix. Carries at least one diagnostic."""

    def __init__(self, *diagnostics: Diagnostic) -> None:
        super().__init__(*diagnostics)
        self.diagnostics = diagnostics

    def __str__(self) -> str:
        shown, left_out = foremost(self.diagnostics)
        return "\n".join([*(d.render() for d in shown), *([f"and {left_out:,} more"] if left_out else [])])


def error(
    code: str, message: str, span: Span | None = None, hint: str | None = None,
    related: Iterable[tuple[Span, str]] = (), fix: tuple[Span, str] | None = None,
) -> WeftError:  # fmt: skip
    """An exception with one error diagnostic, to be raised."""
    return WeftError(Diagnostic.of(code, message, span, hint, related, fix))


def fault(what: str, failure: BaseException) -> Diagnostic:
    """The diagnostic for a failure that is a bug in weft. `what` is a sentence about what was being done."""
    if is_out_of_memory(failure):
        return out_of_memory(what, failure)
    words = f"{what} ({type(failure).__name__}: {failure})"
    return Diagnostic.of("internal", words, None, "this is a bug in weft")


def is_out_of_memory(failure: BaseException) -> bool:
    """Whether something failed because there is no memory left; a new thread also needs some for its stack."""
    return isinstance(failure, MemoryError) or "can't start new thread" in str(failure)


def out_of_memory(what: str, failure: BaseException) -> Diagnostic:
    """The diagnostic for a failure that `is_out_of_memory`, with the message of the failure, which may say how much
    memory was asked for."""
    asked = str(failure)
    words = f"{what}: it ran out of memory" + (f" ({asked[0].lower()}{asked[1:]})" if asked else "")
    hint = "remember fewer ticks, make the picture smaller, or end other programs"
    return Diagnostic.of("not-enough-memory", words, None, hint)


def _in_the_text(found: Diagnostic) -> tuple[bool, bool, str, int, int, str, str]:
    """A key that sorts diagnostics by their places, and those of one place by their messages."""
    source = found.span.source if found.span else None
    start, end = (found.span.start, found.span.end) if found.span else (0, 0)
    file = (True, True, "") if source is None else (False, source.library, source.name)
    return (*file, start, end, found.code, found.message)


@dataclass
class Report:
    """Collects the diagnostics of one compile, so that one problem does not hide the next."""

    diagnostics: list[Diagnostic] = field(default_factory=list)
    _seen: set[Diagnostic] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._seen = set(self.diagnostics)

    def add(self, found: Iterable[Diagnostic]) -> None:
        """Adds diagnostics, leaving out repetitions."""
        for diagnostic in found:
            if diagnostic not in self._seen:
                self._seen.add(diagnostic)
                self.diagnostics.append(diagnostic)

    def tell(
        self, code: str, message: str, span: Span | None = None, hint: str | None = None, *related: tuple[Span, str]
    ) -> None:
        """Adds an error or a warning, whichever its code is."""
        self.add([Diagnostic.of(code, message, span, hint, related)])

    def __contains__(self, found: Diagnostic) -> bool:
        return found in self._seen

    @property
    def errors(self) -> list[Diagnostic]:
        return [d for d in self.diagnostics if d.severity == "error"]

    def __iter__(self) -> Iterator[Diagnostic]:
        """The diagnostics file by file, in the order of the text, not in the order in which they were found. Those
        without a place come last."""
        return iter(sorted(self.diagnostics, key=_in_the_text))

    def raise_errors(self) -> None:
        """Raises `WeftError` with all diagnostics if there is an error among them."""
        if self.errors:
            raise WeftError(*self)


CLOSE_NAME: Final = "did you mean"
"""The beginning of a hint with a known name."""

# Comparing two names letter by letter takes long. Of many names, only this number of likely ones is compared.
_LIKELY: Final = 8
_CLOSE: Final = 0.6


def installs(extra: str) -> str:
    """The command that installs an extra of weft. The distribution is not called `weft`, as another on PyPI is."""
    return f"pip install 'weft-live[{extra}]'"


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """A hint with the closest known name, if one is close. The last part of a name with points counts twice."""
    close = closest(name, known)
    return f'{CLOSE_NAME} "{close}"?' if close is not None else None


def closest(name: str, known: Iterable[str]) -> str | None:
    """The known name that `did_you_mean` has in its hint; None if none is close."""
    name, candidates = name[:LONGEST_WORD], list(known)
    if len(candidates) > _LIKELY:
        likely = _likely(name, candidates)
        if "." in name:
            last = _last_part(name)
            ends = dict.fromkeys(_likely(last, dict.fromkeys(map(_last_part, candidates))))
            likely += [each for each in candidates if _last_part(each) in ends]
        candidates = likely
    return _closest(name, candidates)


def _closest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate most like a name; None if none is close."""
    last = _last_part(name) or name
    whole, end = (SequenceMatcher(None, "", word) for word in (name, last))
    best, closest = _CLOSE, None
    for each in candidates:
        whole.set_seq1(each)
        end.set_seq1(each if last == name else _last_part(each))
        # What is less alike than another by letters alone is so in their order too.
        if whole.quick_ratio() + end.quick_ratio() >= 2 * best:
            likeness = (whole.ratio() + end.ratio()) / 2
            if likeness > best or (likeness == best and each > (closest or "")):
                best, closest = likeness, each
    return closest


def _last_part(name: str) -> str:
    return name.rpartition(".")[2]


def _likely(name: str, known: Iterable[str]) -> list[str]:
    pairs = _pairs(name)
    return nlargest(_LIKELY, known, key=lambda each: len(pairs & _pairs(each)) - len(each) / 64)


@lru_cache(maxsize=4096)
def _pairs(name: str) -> frozenset[str]:
    """The letters of a name and its pairs of neighbouring letters, most of which a misspelt name shares."""
    return frozenset([*name, *map("".join, pairwise(name))])
