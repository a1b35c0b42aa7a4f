"""What is shown of the text that plays: its last edit, its mistakes, and the values of its parameters."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from typing import Protocol

from weft.contexts import OWN_CONTEXTS
from weft.errors import Diagnostic, Report, Source
from weft.runtime.compiling.compiler import Saved
from weft.runtime.compiling.worker import LoadResult
from weft.runtime.hands.parameters import ParameterBank
from weft.runtime.screens.text_view import Glow, TextView
from weft.syntax.layout import arrange
from weft.syntax.scanner import UnreadableError, decode, scan

# What was edited glows for this many beats.
_BEATS = 2
# Statements are looked for among this many lines around an edit.
_AROUND = 40
# Longer stretches between the first and the last difference count as one edit.
_MOST_COMPARED = 80
# The separators of statements in a text.
_BOUNDS = frozenset(";{}")


class TextReceiver(Protocol):
    """Shows the text that plays."""

    @property
    def wants_text(self) -> bool:
        """Whether it shows the text now."""

    def show_text(self, view: TextView) -> None:
        """Shows this from the next picture on."""


def lines_of(text: str) -> tuple[str, ...]:
    """The lines of a text, without blank ones at its end."""
    return tuple(line.rstrip("\r") for line in text.rstrip().split("\n"))


def changed_lines(before: Sequence[str], now: Sequence[str]) -> tuple[range, ...]:
    """The lines of a text, from 0, that are not in the text before; an empty range where lines were removed."""
    same = next((at for at, (one, other) in enumerate(zip(before, now, strict=False)) if one != other), None)
    if same is None:
        same = min(len(before), len(now))
    rest = min(len(before), len(now)) - same
    end = next((at for at in range(rest) if before[-1 - at] != now[-1 - at]), rest)
    old, new = before[same : len(before) - end], now[same : len(now) - end]
    if max(len(old), len(new)) > _MOST_COMPARED:
        return (range(same, same + len(new)),)
    found = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return tuple(range(same + start, same + stop) for kind, _, _, start, stop in found if kind != "equal")


def statement_lines(lines: Sequence[str], edited: range) -> range:
    """The lines of the statements that have any of the edited lines, in a text that may have mistakes."""
    if not edited:
        return edited
    top = max(0, edited.start - _AROUND)
    source, report = Source("", "\n".join(lines[top : edited.stop + _AROUND])), Report()
    scanned = scan(source, report)
    words = {word for spec in OWN_CONTEXTS for word in spec.statements}
    if scanned is None or (tokens := arrange(scanned, words, report)) is None:
        return edited
    first, last = edited.start, edited.stop - 1
    begun = end = None
    for kind, start, stop in (*zip(tokens.kinds, tokens.starts, tokens.ends, strict=True), (";", 0, 0)):
        if kind not in _BOUNDS:
            end = source.position(max(start, stop - 1))[0] - 1 + top
            begun = source.position(start)[0] - 1 + top if begun is None else begun
        elif begun is not None and end is not None:
            if begun < edited.stop and end >= edited.start:
                first, last = min(first, begun), max(last, end)
            begun = end = None
    return range(first, last + 1)


def line_in(lines: Sequence[str], problem: Diagnostic, name: str) -> int | None:
    """The line of a text, from 0, to which a problem of this or another version of it belongs; None if it is about
    another file. A line that this version does not have is the nearest one that it has in its place."""
    if problem.span is None or problem.span.source.name != name or not lines:
        return None
    source = problem.span.source
    line = source.position(problem.span.start)[0] - 1
    other = lines_of(source.text)
    line = min(line, len(other) - 1)
    if other[: line + 1] == tuple(lines[: line + 1]):
        return line
    after = len(other) - line
    if other[-after:] == tuple(lines[-after:]):
        return len(lines) - after
    pairs = enumerate(zip(reversed(lines), reversed(other), strict=False))
    end = next((at for at, (one, new) in pairs if one != new), 0)
    return max(0, min(line, len(lines) - 1 - end))


@dataclass
class TextFollower:
    """Follows the text that plays. A view is made when it is asked for, and only if something has changed."""

    parameters: ParameterBank
    cursor: int | None = None
    """The line at which the cursor of an editor is, from 0, if that is known."""
    _name: str = ""
    _saved: Saved | None = None
    _bpm: float = 120.0
    _entered: float = 0.0
    """When that text began to play, by time.monotonic."""
    _lines: tuple[str, ...] = ()
    _problems: tuple[Diagnostic, ...] = ()
    _changes: int = -1
    _view: TextView = field(default_factory=TextView)
    _is_new: bool = False

    def follow(self, entered: LoadResult | None, bpm: float) -> None:
        """Notes that a text plays from now on, at this tempo."""
        if entered is not None:
            self._saved, self._bpm, self._entered, self._is_new = entered.saved, bpm, time.monotonic(), True

    def show(self, problems: tuple[Diagnostic, ...], *receivers: TextReceiver) -> None:
        """Shows the text where it is wanted, with these problems. Once a frame."""
        wanting = [receiver for receiver in receivers if receiver.wants_text]
        if wanting:
            view = self.view(problems)
            for receiver in wanting:
                receiver.show_text(view)

    def view(self, problems: tuple[Diagnostic, ...]) -> TextView:
        """What is shown now, with these problems. The same object for as long as nothing changes."""
        saved = self._saved
        if saved is None:
            return self._view
        is_new, self._is_new = self._is_new, False
        if is_new:
            self._take_over(saved)
        if is_new or problems is not self._problems:
            self._problems = problems
            marks = {
                line: problem.severity
                for problem in sorted(problems, key=lambda each: each.severity == "error")
                if (line := line_in(self._lines, problem, self._name)) is not None
            }
            self._view = replace(self._view, marks=tuple(sorted(marks.items())))
        if self.cursor != self._view.cursor:
            self._view = replace(self._view, cursor=self.cursor)
        if is_new or self.parameters.changes != self._changes:
            self._changes = self.parameters.changes
            self._view = replace(self._view, values=self._values())
        return self._view

    def _take_over(self, saved: Saved) -> None:
        try:
            lines = lines_of(decode(saved.data))
        except UnreadableError:
            lines = ()
        is_other = saved.name != self._name or not self._lines
        edits = () if is_other else changed_lines(self._lines, lines)
        if not saved.is_turned:  # a number that is turned glows on its own line
            edits = tuple(statement_lines(lines, edit) for edit in edits)
        self._name, self._lines = saved.name, lines
        edited, glow = (0, Glow()) if is_other else (self._view.edited, self._view.glow)
        if edits:
            if not saved.is_turned:
                edited = min(edits[0].start, max(0, len(lines) - 1))
            glow = Glow(_all_of(edits), self._entered, _BEATS * 60 / max(self._bpm, 1.0))
        self._view = TextView(lines, edited, glow=glow)

    def _values(self) -> tuple[tuple[int, str], ...]:
        """The values of parameters beside their lines, of those in this file."""
        found: dict[int, list[str]] = {}
        for spec in self.parameters.specs:
            if spec.path == self._name and spec.line <= len(self._lines):
                values = (f"{self.parameters.value(name):.3g}" for name in spec.inputs)
                found.setdefault(spec.line - 1, []).extend(values)
        return tuple((line, " ".join(values)) for line, values in sorted(found.items()))


def _all_of(ranges: Collection[range]) -> tuple[int, ...]:
    return tuple(sorted({line for each in ranges for line in each}))
