"""Source spans, diagnostics and their rendering: what every part of weft uses to say what is wrong and where."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from typing import Literal

Severity = Literal["error", "warning"]


@dataclass(frozen=True, eq=False)
class Source:
    """A text that was read, with the name that people know it by: for a file, its path as it was given. Offsets count
    code points from 0. What a `library` that ships with weft binds, a patch may bind anew."""

    name: str
    text: str
    library: bool = False

    @cached_property
    def _line_starts(self) -> list[int]:
        starts = [0]
        starts.extend(i + 1 for i, c in enumerate(self.text) if c == "\n")
        return starts

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset, both from 1."""
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

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
        return f"{self.source.name}:{line}:{column}"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One error or warning. `related` holds further places, each with the words that belong to it."""

    severity: Severity
    code: str
    message: str
    span: Span | None = None
    hint: str | None = None
    related: tuple[tuple[Span, str], ...] = ()

    def render(self) -> str:
        """The whole text of the diagnostic: place, message, source line, caret, related places and hint."""
        place = f"{self.span}: " if self.span else ""
        lines = [f"{place}{self.severity}: {self.message} [{self.code}]"]
        gutter = self._gutter_width()
        if self.span:
            lines += _excerpt(self.span, gutter)
        for span, words in self.related:
            lines.append(f"{span}: {words}")
            lines += _excerpt(span, gutter)
        if self.hint:
            lines.append(f"{'':{gutter}}   hint: {self.hint}")
        return "\n".join(lines)

    def _gutter_width(self) -> int:
        spans = [self.span] if self.span else []
        spans += [span for span, _ in self.related]
        return max((len(str(s.source.position(s.start)[0])) for s in spans), default=1) + 1

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


# A longer line would wrap in most terminals and push the caret away from what it points at.
_EXCERPT_WIDTH = 96


def _excerpt(span: Span, gutter: int) -> list[str]:
    number, column = span.source.position(span.start)
    text = span.source.line(number)
    first = column - 1
    length = max(1, min(span.end - span.start, len(text) - first))
    if len(text) > _EXCERPT_WIDTH:
        cut = max(0, min(first - _EXCERPT_WIDTH // 3, len(text) - _EXCERPT_WIDTH))
        shown = text[cut : cut + _EXCERPT_WIDTH]
        shown = ("…" + shown[1:] if cut else shown)
        if cut + _EXCERPT_WIDTH < len(text):
            shown = shown[:-1] + "…"
        first -= cut
        length = min(length, _EXCERPT_WIDTH - first)
        text = shown
    # Tabs keep their place under tabs, so that the caret stays in its column however wide they are drawn;
    # control characters would move the terminal's cursor.
    indent = "".join("\t" if c == "\t" else " " for c in text[:first])
    text = "".join(c if c == "\t" or c.isprintable() else "�" for c in text)
    return [f"{number:>{gutter}} | {text}", f"{'':{gutter}} | {indent}{'^' * length}"]


class WeftError(Exception):
    """What stops a piece of work for a reason that the user can mend. Carries at least one diagnostic."""

    def __init__(self, *diagnostics: Diagnostic) -> None:
        super().__init__("\n".join(d.render() for d in diagnostics))
        self.diagnostics = diagnostics


def error(
    code: str, message: str, span: Span | None = None, hint: str | None = None, related: Iterable[tuple[Span, str]] = ()
) -> WeftError:
    """An exception with one error diagnostic, to be raised."""
    return WeftError(Diagnostic("error", code, message, span, hint, tuple(related)))


def fault(what: str, failure: BaseException) -> Diagnostic:
    """What to say about a failure that is not the user's: `what` is a sentence that says what was being done."""
    hint = "the machine has no memory left for it" if isinstance(failure, MemoryError) else "this is a bug in weft"
    return Diagnostic("error", "internal", f"{what} ({type(failure).__name__}: {failure})", None, hint)


@dataclass
class Report:
    """Collects the diagnostics of one compile, so that one problem does not hide the next."""

    diagnostics: list[Diagnostic] = field(default_factory=list)

    def add(self, found: Iterable[Diagnostic]) -> None:
        """Adds diagnostics, leaving out what was said already."""
        self.diagnostics.extend(d for d in found if d not in self.diagnostics)

    def error(self, code: str, message: str, span: Span | None = None, hint: str | None = None) -> None:
        self.add([Diagnostic("error", code, message, span, hint)])

    def warn(self, code: str, message: str, span: Span | None = None, hint: str | None = None) -> None:
        self.add([Diagnostic("warning", code, message, span, hint)])

    @property
    def errors(self) -> list[Diagnostic]:
        return [d for d in self.diagnostics if d.severity == "error"]

    def __iter__(self) -> Iterator[Diagnostic]:
        """File by file, in the order of the text; what has no place comes last."""
        files = {d.span.source: n for n, d in reversed(list(enumerate(self.diagnostics))) if d.span}
        last = (len(self.diagnostics), 0)
        return iter(sorted(self.diagnostics, key=lambda d: (files[d.span.source], d.span.start) if d.span else last))

    def raise_errors(self) -> None:
        """Raises `WeftError` with all diagnostics if there is an error among them."""
        if self.errors:
            raise WeftError(*self)


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """A hint with the closest known name, if one is close."""
    close = get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f'did you mean "{close[0]}"?' if close else None
