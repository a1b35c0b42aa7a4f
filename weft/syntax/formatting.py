"""The one style of patches: spaces between tokens, the indentation of lines, and comments at the ends of lines.

A formatted text has the lines of the original. Where a line ends is left to the performer, since it says what belongs
together; so the tokens, and which of them begin a line, are the same, and with them the program. That is compared
before a text is handed out.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from weft.errors import Report, Source, error
from weft.syntax.ast import (
    Assignment, Binding, Bundle, CallBinding, Comprehension, For, Ident, OutAssignment, Parameter, Program, Remap,
    Setting, SpindleDefinition, Statement, Walkable, outline, walk, walk_statement
)
from weft.syntax.parser import OUTPUT_STATEMENTS, parse
from weft.syntax.scanner import BINDS, END, GLUED, NAME, OPERAND_ENDS, PRAGMA, PRAGMA_END, Tokens, scan

_STEP: Final = "  "
_BETWEEN_STATEMENTS: Final = "  "
_BEFORE_COMMENT: Final = "   "
_MOST_BLANK: Final = 2
_ORDER_MARK: Final = "\ufeff"
_OPENING: Final = "([{"
_CLOSING: Final = ")]}"
# What is between two tokens, apart from blanks.
_PIECE = re.compile(r"//[^\n]*|/\*[\s\S]*?\*/|\n")


def formatted(source: Source, statements: Collection[str] = OUTPUT_STATEMENTS) -> str:
    """A text in the style of all patches, with its own line ends. Raises WeftError with the mistakes of a text that is
    not a program; what names mean is not looked at."""
    report = Report()
    program = parse(source, report, statements)
    report.raise_errors()
    is_marked, is_windows = source.text.startswith(_ORDER_MARK), "\r\n" in source.text
    plain = Source(source.name, source.text.removeprefix(_ORDER_MARK).replace("\r\n", "\n"))
    if plain.text != source.text:
        program = parse(plain, Report(), statements)
    tokens = scan(plain, Report())
    assert tokens is not None, "a text that is a program has tokens"
    text = "".join(f"{line}\n" for line in _StyledText(tokens, _TokenRoles.of(program, tokens)).lines())
    if outline(parse(Source(source.name, text), Report(), statements)) != outline(program):
        raise error("internal", f"{source.name} would not be the same patch when formatted", None,
                    "this is a bug in weft; the text stays as it is")  # fmt: skip
    if is_windows:
        text = text.replace("\n", "\r\n")
    return _ORDER_MARK * is_marked + text


# --- what tokens are for, where only the syntax tree knows ---


@dataclass(frozen=True)
class _TokenRoles:
    """Offsets: of the first tokens of statements, and of the `<` and `>` that are brackets."""

    starts: Collection[int]
    opening: Collection[int]
    closing: Collection[int]

    @staticmethod
    def of(program: Program, tokens: Tokens) -> _TokenRoles:
        starts, opening, closing = set[int](), set[int](), set[int]()
        place = {start: index for index, start in enumerate(tokens.starts) if tokens.ends[index] > start}

        def bracket(first: int, last: int) -> None:
            """The tokens before the one at `first` and after the one at `last`, if they are brackets."""
            if tokens.text(before := place[first] - 1) == "<":
                opening.add(tokens.starts[before])
                closing.add(tokens.starts[place[last] + 1])

        for statement in program.statements:
            starts.add(statement.span.start)
            for names in _lists(statement):
                if names:
                    bracket(names[0].span.start, names[-1].span.start)
            for node in _nodes(statement):
                if isinstance(node, (Assignment, OutAssignment, CallBinding, For)):
                    starts.add(node.span.start)
                if isinstance(node, CallBinding):
                    bracket(node.outputs[0].span.start, node.outputs[-1].span.start)
                    if node.count_span is not None:
                        bracket(node.count_span.start, node.count_span.start)
                elif isinstance(node, (Bundle, Comprehension)) and tokens.text(place[node.span.start]) == "<":
                    opening.add(node.span.start)
                    closing.add(node.span.end - 1)
        return _TokenRoles(starts, opening, closing)


def _lists(statement: Statement) -> Iterator[Sequence[Ident]]:
    """The lists of names in the head of a statement."""
    match statement:
        case Setting(field=name):
            yield (name,)
        case Binding(outputs=outputs):
            yield outputs or ()
        case Parameter(outputs=outputs):
            yield outputs
        case SpindleDefinition(parameters=parameters, outputs=outputs):
            yield from (parameter.members or () for parameter in parameters)
            yield outputs


def _nodes(statement: Statement) -> Iterator[Walkable]:
    """All parts of a statement, with the defaults of parameters and the targets of maps."""
    defaults = statement.parameters if isinstance(statement, SpindleDefinition) else ()
    for node in chain(
        walk_statement(statement), *(walk(each.default) for each in defaults if each.default is not None)
    ):
        yield node
        if isinstance(node, Remap):
            yield from chain.from_iterable(walk(each.target) for each in node.maps)


# --- writing ---


@dataclass
class _StyledLine:
    """A line of the result, and the comment at its end."""

    text: str = ""
    comment: str = ""


@dataclass
class _OpenedBracket:
    """An open bracket, and how far the line is indented at which it belongs."""

    kind: str
    level: int


@dataclass
class _StyledText:
    """Writes one text, token by token."""

    tokens: Tokens
    roles: _TokenRoles
    _done: list[_StyledLine] = field(default_factory=list)
    _line: _StyledLine = field(default_factory=_StyledLine)
    _open: list[_OpenedBracket] = field(default_factory=list)
    _level: int = 0
    """How far the current line is indented."""
    _statement: int = 0
    """The same of the line on which the last statement began."""
    _is_binding: bool = True
    """Whether a `::` binds, as it does outside of the heads of spindles."""

    def lines(self) -> Iterator[str]:
        tokens, end = self.tokens, 0
        shown = [at for at, kind in enumerate(tokens.kinds) if kind not in (PRAGMA_END, END)]
        for number, at in enumerate(shown):
            is_apart = self._between(end, tokens.starts[at], shown[number:])
            self._token(at, shown[number - 1] if number else None, shown[number:], is_apart)
            end = tokens.ends[at]
        self._between(end, len(tokens.source.text), [])
        self._end_line()
        while self._done and not (self._done[-1].text or self._done[-1].comment):
            self._done.pop()
        yield from _aligned(self._done)

    # --- tokens ---

    def _token(self, at: int, before: int | None, rest: Sequence[int], is_apart: bool) -> None:
        """Writes a token. `rest` begins with it; `is_apart` if a comment stands directly before it."""
        kind, start = self.tokens.kinds[at], self.tokens.starts[at]
        if not self._line.text:
            self._begin_line(self._level_of(rest))
        elif before is None or is_apart or self._is_spaced(before, at):
            self._line.text += _BETWEEN_STATEMENTS if self._follows_statement(before, at) else " "
        self._line.text += self.tokens.text(at)
        if start in self.roles.starts:
            self._statement = self._level
            self._is_binding = kind != "S"
        if kind == "{":
            self._open.append(_OpenedBracket(kind, self._statement))
            self._is_binding = True
        elif kind in _OPENING or start in self.roles.opening:
            self._open.append(_OpenedBracket(kind, self._level))
        elif self._closes(at):
            self._open.pop()

    def _follows_statement(self, before: int | None, at: int) -> bool:
        """Whether a statement begins here, with nothing but white space between it and the one before."""
        is_start = self.tokens.starts[at] in self.roles.starts
        return is_start and before is not None and self.tokens.kinds[before] not in ";{"

    def _closes(self, at: int) -> bool:
        return self.tokens.kinds[at] in _CLOSING or self.tokens.starts[at] in self.roles.closing

    def _is_spaced(self, before: int, at: int) -> bool:
        """Whether a space belongs between two tokens that follow each other on a line."""
        left, right = self.tokens.kinds[before], self.tokens.kinds[at]
        is_list_end = self.tokens.starts[before] in self.roles.closing
        if left in "([@." or self.tokens.starts[before] in self.roles.opening or self._is_sign(before):
            return False
        if left == GLUED and not is_list_end:
            return False  # the first half of an operator
        if right in ")],;:@.[" or self.tokens.starts[at] in self.roles.closing:
            return False
        if BINDS in (left, right):
            return not self._is_binding
        if right == "(":
            return not (left in OPERAND_ENDS or is_list_end)
        if self.tokens.starts[at] in self.roles.opening:
            return left not in (NAME, "M")
        return not (left == "{" and right == "}")

    def _is_sign(self, at: int) -> bool:
        """Whether a token is the sign of an operand."""
        if self.tokens.kinds[at] != "-":
            return False
        before = at - 1
        is_operand = before >= 0 and (
            self.tokens.kinds[before] in OPERAND_ENDS or self.tokens.starts[before] in self.roles.closing
        )
        return not is_operand

    # --- lines ---

    def _level_of(self, rest: Sequence[int]) -> int:
        """How far a line is indented that begins with the first of these tokens."""
        closing = 0
        while closing < len(rest) and self._closes(rest[closing]) and self._is_on_line(rest, closing):
            closing += 1
        if closing and closing <= len(self._open):
            return self._open[-closing].level
        if not rest:
            return 0
        is_start = self.tokens.starts[rest[0]] in self.roles.starts or self.tokens.kinds[rest[0]] == PRAGMA
        if not self._open:
            return 0 if is_start else 1
        inner = self._open[-1]
        return inner.level + (2 if inner.kind == "{" and not is_start else 1)

    def _is_on_line(self, rest: Sequence[int], number: int) -> bool:
        """Whether a token is on the same line as the first."""
        return "\n" not in self.tokens.source.text[self.tokens.starts[rest[0]] : self.tokens.starts[rest[number]]]

    def _begin_line(self, level: int) -> None:
        self._level = level
        self._line.text = _STEP * level

    def _end_line(self) -> None:
        is_blank = not (self._line.text or self._line.comment)
        last = self._done[-_MOST_BLANK:]
        if not (is_blank and (not last or all(not (each.text or each.comment) for each in last))):
            self._done.append(self._line)
        self._line = _StyledLine()

    # --- comments ---

    def _between(self, first: int, last: int, rest: Sequence[int]) -> bool:
        """Writes the comments and line ends between two tokens; `rest` are the tokens from there on. Returns whether a
        comment stands directly before the next token."""
        is_apart = False
        for piece in _PIECE.finditer(self.tokens.source.text, first, last):
            text = piece[0].rstrip()
            is_apart = bool(text)
            if not text:
                self._end_line()
            elif not self._line.text:
                is_inside = bool(rest) and self._closes(rest[0]) and bool(self._open)
                self._begin_line(self._open[-1].level + 1 if is_inside else self._level_of(rest))
                self._line.text += text
            elif text.startswith("//"):
                self._line.comment = text
            else:
                self._line.text += f" {text}"
        return is_apart


def _aligned(lines: Sequence[_StyledLine]) -> Iterator[str]:
    """The lines with their comments, which have one column where lines follow each other."""
    at = 0
    while at < len(lines):
        stop = at
        while stop < len(lines) and lines[stop].comment:
            stop += 1
        width = max((len(line.text.rpartition("\n")[2]) for line in lines[at:stop]), default=0)
        for line in lines[at:stop]:
            first, end, last = line.text.rpartition("\n")
            yield f"{first}{end}{last:<{width}}{_BEFORE_COMMENT}{line.comment}"
        if stop < len(lines):
            yield lines[stop].text
        at = stop + 1
