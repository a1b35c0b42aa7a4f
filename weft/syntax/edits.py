"""The texts of one file after each edit: only the lines around an edit are parsed again, and the statements of all
other lines stay the same objects."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from weft.errors import Report, Source
from weft.syntax.ast import OutputStatement, Parameter, Program, Statement
from weft.syntax.parser import OUTPUT_STATEMENTS, parse
from weft.syntax.scanner import MAX_CHARACTERS

# Statements whose places outlive the compile: those of output statements are shown, and parameters are written to.
_PLACED = (OutputStatement, Parameter)


@dataclass(frozen=True, slots=True)
class _StatementLines:
    """A statement, and its first and last line, from 0."""

    statement: Statement
    first: int
    last: int

    def moved(self, by: int) -> _StatementLines:
        return _StatementLines(self.statement, self.first + by, self.last + by)


@dataclass
class EditedText:
    """The texts of one file, one after another.

    A statement that an edit leaves alone keeps the places of the text in which it was parsed, unless it is an output
    statement or a parameter. Whatever else shows a place needs the program of `weft.syntax.parser.parse`.
    """

    _text: str = ""
    _lines: list[str] = field(default_factory=list)
    _placed: list[_StatementLines] | None = None

    def parse(self, source: Source, report: Report, statements: Collection[str] = OUTPUT_STATEMENTS) -> Program:
        """The program of a text, as `parse` gives it, but for places. Errors go to the report."""
        lines = source.text.split("\n")
        found = self._edited(source, lines, statements)
        if found is None:
            own = Report()
            program = parse(source, own, statements)
            report.add(own)
            if own.diagnostics:
                return program
            found = [_placed(statement) for statement in program.statements]
        self._text, self._lines, self._placed = source.text, lines, found
        return Program(tuple(each.statement for each in found))

    def _edited(self, source: Source, lines: list[str], names: Collection[str]) -> list[_StatementLines] | None:
        """The statements of a text, with those that the edit leaves alone; None if it has to be parsed as a whole."""
        placed = self._placed
        if placed is None or "/*" in self._text or "/*" in source.text or len(source.text) > MAX_CHARACTERS:
            return None  # a comment over several lines may begin or end at any place
        same, same_after = _common(self._lines, lines)
        first, last = _around(placed, same, len(self._lines) - same_after)
        by = len(lines) - len(self._lines)
        shifts = by != 0 or len(source.text) != len(self._text)
        top = placed[first - 1].last + 1 if first else 0
        bottom = placed[last - 1].last + 1 + by if last < len(placed) else len(lines)
        middle = _part(source, lines, top, bottom, names)
        if middle is None or (last < len(placed) and not _ends_as(middle, placed[last - 1].moved(by))):
            return None
        known = {_words(each.statement): each.statement for each in placed[first:last]}
        middle = [replace(each, statement=known.get(_words(each.statement), each.statement)) for each in middle]
        after: list[_StatementLines] = []
        for each in placed[last:]:
            moved = each.moved(by)
            if shifts and isinstance(each.statement, _PLACED):
                alone = _part(source, lines, moved.first, moved.last + 1, names)
                if alone is None or len(alone) != 1:
                    return None
                moved = alone[0]
            after.append(moved)
        return [*placed[:first], *middle, *after]


def _placed(statement: Statement) -> _StatementLines:
    span, position = statement.span, statement.span.source.position
    return _StatementLines(statement, position(span.start)[0] - 1, position(span.end - 1)[0] - 1)


def _words(statement: Statement) -> object:
    """Equal for statements that are the same, but for their places."""
    if isinstance(statement, _PLACED):
        return statement
    return type(statement), statement.span.text, getattr(statement, "doc", None)


def _common(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """How many lines two texts have in common at their beginning, and after that at their end."""
    shorter = min(len(old), len(new))
    same = next((at for at in range(shorter) if old[at] != new[at]), shorter)
    rest = shorter - same
    return same, next((at for at in range(rest) if old[-1 - at] != new[-1 - at]), rest)


def _around(placed: Sequence[_StatementLines], same: int, changed: int) -> tuple[int, int]:
    """The statements `first … last` that have to be parsed again: those that touch the lines `same … changed`, and one
    more on either side, since a line may continue the one before. Others that share a line with them are among them."""
    first = sum(each.last < same for each in placed)
    first = max(0, first - 1)
    while first and placed[first - 1].last == placed[first].first:
        first -= 1
    last = next((at for at, each in enumerate(placed) if each.first >= changed), len(placed))
    last = min(len(placed), max(last, first) + 1)
    while last < len(placed) and placed[last].first == placed[last - 1].last:
        last += 1
    return first, last


def _part(
    source: Source, lines: Sequence[str], top: int, bottom: int, names: Collection[str]
) -> list[_StatementLines] | None:
    """The statements in some lines of a text, at their places in it; None if there is anything to report."""
    before = "\n".join(" " * len(line) for line in lines[:top]) + "\n" * (top > 0)
    report = Report()
    program = parse(Source(source.name, before + "\n".join(lines[top:bottom])), report, names)
    return None if report.diagnostics else [_placed(statement) for statement in program.statements]


def _ends_as(found: Sequence[_StatementLines], expected: _StatementLines) -> bool:
    """Whether the last statement is the same kind of statement at the same lines as before the edit."""
    if not found:
        return False
    last = found[-1]
    return (type(last.statement), last.first, last.last) == (type(expected.statement), expected.first, expected.last)
