"""The texts of one file after each edit: only the lines around an edit are parsed again, and the statements of all
other lines stay the same objects."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate

from weft.errors import Diagnostic, Report, Source, Span
from weft.syntax.ast import OutputStatement, Parameter, Program, Statement
from weft.syntax.parser import MAX_ERRORS, OUTPUT_STATEMENTS, parse
from weft.syntax.scanner import MAX_CHARACTERS, scan


@dataclass
class _Lines:
    """Statements in the order of the text, the first and last line of each, from 0, the offset of each, and the offset
    that it had in the text in which it was parsed."""

    statements: list[Statement]
    first: list[int]
    last: list[int]
    start: list[int]
    parsed: list[int]

    def __len__(self) -> int:
        return len(self.statements)


@dataclass(frozen=True)
class _GoodText:
    """A text without errors: its lines, its statements and the warnings about it."""

    source: Source
    lines: Sequence[str]
    placed: _Lines
    warnings: Sequence[Diagnostic]


# An edit starts from one of this many texts: what was typed last may be taken back, or be somewhere else.
_MOST_GOOD = 3


@dataclass
class EditedText:
    """The texts of one file, one after another.

    A statement that an edit leaves alone keeps the places of the text in which it was parsed. `placed` finds where a
    place in such a statement is now. Output statements and parameters are different, because their places outlive the
    compile: they are shown, and written to. If one of these moves, it becomes another object with the same arguments.
    """

    _good: tuple[_GoodText, ...] = ()
    """The last texts without errors, the latest first."""
    _last: Source = field(default_factory=lambda: Source("", ""))
    """The last text, with or without errors."""
    _moved: Mapping[Statement, int] = field(default_factory=dict)
    """The distance of each of its statements from where it was parsed."""
    _holders: PlaceIndex = field(default_factory=lambda: PlaceIndex(()))
    """Its statements, by their places."""
    _starts: Sequence[int] = ()
    """Where its statements are now, in their order."""

    def parse(self, source: Source, report: Report, statements: Collection[str] = OUTPUT_STATEMENTS) -> Program:
        """The program of a text, the same as from `parse` except for places. Diagnostics go to the report, with the
        places of this text."""
        lines, own = source.text.split("\n"), Report()
        found = self._edited(source, lines, own, statements)
        if found is None:
            own = Report()
            found = _placed(parse(source, own, statements).statements, 0, 0)
        report.add(own)
        moved = [start - parsed for start, parsed in zip(found.start, found.parsed, strict=True)]
        self._last, self._moved = source, dict(zip(found.statements, moved, strict=True))
        self._holders, self._starts = PlaceIndex(found.statements), found.start
        if not own.errors:
            good = _GoodText(source, lines, found, own.diagnostics)
            self._good = good, *[each for each in self._good if each.source.text != source.text][: _MOST_GOOD - 1]
        return Program(tuple(found.statements))

    def placed(self, span: Span) -> Span | None:
        """Where a place in a statement of the last program is in its text; None if it is in none."""
        if span.source is self._last:
            return span
        statement = self._holders.at(span)
        if statement is None:
            return None
        is_there = isinstance(statement, OutputStatement) and _is_within(statement.span, span)
        return _shifted(span, self._last, 0 if is_there else self._moved[statement])

    def holder(self, span: Span) -> Statement | None:
        """The statement of the last program in which a place of its text begins; None if there is none."""
        at = bisect_right(self._starts, span.start) - 1
        if span.source is not self._last or at < 0:
            return None
        statement = self._holders.statements[at]
        length = statement.span.end - statement.span.start
        return statement if span.start < self._starts[at] + length else None

    def _edited(self, source: Source, lines: list[str], report: Report, names: Collection[str]) -> _Lines | None:
        """The statements of a text, with those that the edit leaves alone; None if it has to be parsed as a whole.
        Warnings go to the report."""
        if not self._good or "/*" in source.text or len(source.text) > MAX_CHARACTERS:
            return None  # a comment over several lines may begin or end at any place
        common = [(*_common(each.lines, lines), each) for each in self._good]
        same, same_after, base = max(common, key=lambda each: each[0] + each[1])
        placed, text = base.placed, base.source.text
        if "/*" in text:
            return None
        first, last = _around(placed, same, len(base.lines) - same_after)
        by = len(lines) - len(base.lines)
        top = placed.last[first - 1] + 1 if first else 0
        bottom = placed.last[last - 1] + 1 + by if last < len(placed) else len(lines)
        start = _offset(lines, top)
        end = max(start, _offset(lines, bottom) - 1)
        program = parse(source, report, names, (start, end))
        middle = _placed(program.statements, start, top)
        if last < len(placed) and not _ends_as(middle, placed, last - 1, by):
            return None
        if report.errors and not _stay_within(report, source, (start, end), base):
            return None
        known = {_words(statement): statement for statement in placed.statements[first:last]}
        for at, statement in enumerate(middle.statements):
            if (earlier := known.pop(_words(statement), None)) is not None:
                middle.statements[at], middle.parsed[at] = earlier, earlier.span.start
        after, shift = placed.statements[last:], len(source.text) - len(text)
        for warning in base.warnings:
            if (span := warning.span) is not None and not start <= span.start < end - shift:
                report.add([replace(warning, span=_shifted(span, source, 0 if span.start < start else shift))])
        if by or shift:
            after = [_moved(statement, source, shift) for statement in after]
        parsed = [
            statement.span.start if isinstance(statement, Parameter) else offset
            for statement, offset in zip(after, placed.parsed[last:], strict=True)
        ]
        return _Lines(
            [*placed.statements[:first], *middle.statements, *after],
            [*placed.first[:first], *middle.first, *(line + by for line in placed.first[last:])],
            [*placed.last[:first], *middle.last, *(line + by for line in placed.last[last:])],
            [*placed.start[:first], *middle.start, *(offset + shift for offset in placed.start[last:])],
            [*placed.parsed[:first], *middle.parsed, *parsed],
        )


_BLOCK_DEPTH = {"{": 1, "}": -1}


@dataclass(frozen=True)
class PlaceIndex:
    """Finds the statement that holds a place, in the text in which the statement, or its arguments, were parsed."""

    statements: Sequence[Statement]

    def at(self, span: Span) -> Statement | None:
        """The statement in which a place begins; None if there is none."""
        starts, ends, statements = self._by_source.get(id(span.source), _NO_PLACES)
        last = bisect_right(starts, span.start) - 1
        return statements[last] if last >= 0 and span.start < ends[last] else None

    @cached_property
    def _by_source(self) -> dict[int, tuple[list[int], list[int], list[Statement]]]:
        """The places in each text: where they start, where they end, and the statements. No two overlap."""
        found: dict[int, list[tuple[int, int, int]]] = {}
        for at, statement in enumerate(self.statements):
            for span in _places(statement):
                found.setdefault(id(span.source), []).append((span.start, span.end, at))
        by_source = dict[int, tuple[list[int], list[int], list[Statement]]]()
        for source, places in found.items():
            places.sort()
            starts, ends = [start for start, _, _ in places], [end for _, end, _ in places]
            by_source[source] = starts, ends, [self.statements[at] for _, _, at in places]
        return by_source


_NO_PLACES: tuple[list[int], list[int], list[Statement]] = [], [], []


def _places(statement: Statement) -> Iterator[Span]:
    """The place of a statement, and those of its arguments that were parsed elsewhere."""
    yield statement.span
    if isinstance(statement, OutputStatement):
        yield from (each.span for each in statement.args if not _is_within(statement.span, each.span))


def _is_within(outer: Span, span: Span) -> bool:
    return outer.source is span.source and outer.start <= span.start < outer.end


def _shifted(span: Span, source: Source, by: int) -> Span:
    """A place in a text that was edited before it."""
    return Span(source, span.start + by, span.end + by)


def _stay_within(report: Report, source: Source, part: tuple[int, int], base: _GoodText) -> bool:
    """Whether the errors in a part of a text are those that the whole text would have: there are not too many, and
    no block reaches beyond the part."""
    tokens = scan(source, Report(), part)
    if tokens is None or len(report.diagnostics) + len(base.warnings) >= MAX_ERRORS:
        return False
    depths = list(accumulate(_BLOCK_DEPTH.get(kind, 0) for kind in tokens.kinds))
    return min(depths) == 0 == depths[-1]


def _offset(lines: Sequence[str], line: int) -> int:
    """Where a line starts."""
    return sum(map(len, lines[:line])) + line


def _placed(statements: Sequence[Statement], start: int, line: int) -> _Lines:
    """Statements with their lines, of which the one at the offset `start` is known."""
    lines: list[int] = []
    for statement in statements:
        span = statement.span
        for end in (span.start, span.end - 1):
            line += span.source.text.count("\n", start, end)
            lines.append(line)
            start = end
    starts = [statement.span.start for statement in statements]
    return _Lines([*statements], lines[::2], lines[1::2], starts, [*starts])


def _moved(statement: Statement, source: Source, by: int) -> Statement:
    """A statement after an edit before it. Most keep their places."""

    def there(span: Span) -> Span:
        return _shifted(span, source, by)

    match statement:
        case OutputStatement(span=span, head=head):
            return replace(statement, span=there(span), head=there(head))
        case Parameter(name=name, outputs=outputs, span=span, places=places):
            return replace(
                statement, name=replace(name, span=there(name.span)), span=there(span),
                outputs=tuple([replace(output, span=there(output.span)) for output in outputs]),
                places=tuple(map(there, places)),
            )  # fmt: skip
    return statement


def _words(statement: Statement) -> object:
    """Equal for statements that are the same except for their places."""
    if isinstance(statement, (OutputStatement, Parameter)):
        return statement
    return type(statement), statement.span.text, getattr(statement, "doc", None)


def _common(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """The number of lines that two texts have in common at their beginning, and after that at their end."""
    shorter = min(len(old), len(new))
    same = next((at for at in range(shorter) if old[at] != new[at]), shorter)
    rest = shorter - same
    return same, next((at for at in range(rest) if old[-1 - at] != new[-1 - at]), rest)


def _around(placed: _Lines, same: int, changed: int) -> tuple[int, int]:
    """The statements `first … last` that have to be parsed again: those that touch the lines `same … changed`, and one
    more on either side, since a line may continue the one before. Others that share a line with them are among them."""
    first = max(0, bisect_left(placed.last, same) - 1)
    while first and placed.last[first - 1] == placed.first[first]:
        first -= 1
    last = min(len(placed), max(bisect_left(placed.first, changed), first) + 1)
    while last < len(placed) and placed.first[last] == placed.last[last - 1]:
        last += 1
    return first, last


def _ends_as(found: _Lines, placed: _Lines, last: int, by: int) -> bool:
    """Whether the last statement is the same kind of statement at the same lines as before the edit."""
    if not found:
        return False
    lines = found.first[-1], found.last[-1]
    expected = placed.first[last] + by, placed.last[last] + by
    return lines == expected and type(found.statements[-1]) is type(placed.statements[last])
