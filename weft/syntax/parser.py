"""From text to syntax tree: the parser takes one item after another, and goes on behind a broken one.

The matcher recurses with nesting, which `brackets` limits to `MAX_DEPTH`, by up to `FRAMES_PER_LEVEL` Python calls a
level. From Python 3.11 on these take no C stack; on 3.10 a thread that parses needs a stack of 16 MB.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Final

from parsimonious.exceptions import ParseError
from parsimonious.nodes import Node

from weft.contexts import ContextTable
from weft.errors import Diagnostic, Report, Source
from weft.syntax.assembly import Assembly
from weft.syntax.ast import Program
from weft.syntax.diagnose import diagnose
from weft.syntax.failure import Failure
from weft.syntax.grammar import grammar
from weft.syntax.layout import arrange
from weft.syntax.scanner import scan
from weft.syntax.tokens import END, GLUED, NAME, OPERAND_ENDS, PRAGMA, PRAGMA_END, Tokens

OUTPUT_STATEMENTS: Final = frozenset(ContextTable().statements)
MAX_ERRORS: Final = 50
FRAMES_PER_LEVEL: Final = 60
# Python's own limit leaves room for this much; ordinary patches nest less.
_SHALLOW: Final = 12

# What is a statement of its own even behind an expression on the same line.
_OWN_STATEMENT = re.compile(r"n(?:<n(?:,n)*[>g])?[=a]|[SFLOP]|M(?:<|@n=)")
# What a line ends with if a name on the next line does not continue it.
_ENDS: Final = OPERAND_ENDS + "}>" + GLUED + PRAGMA_END
_CALL = re.compile(r"n(?:@n)?\(")


def parse(source: Source, report: Report, statements: Collection[str] = OUTPUT_STATEMENTS) -> Program:
    """The program of one text, without what it includes. Errors go to the report, and the statements that they are in
    are left out. `statements` are the names of the output statements."""
    first = _FirstErrors()
    program = _parse(source, first, statements)
    report.add(first.told())
    return program


def _parse(source: Source, report: _FirstErrors, statements: Collection[str]) -> Program:
    found = scan(source, report)
    tokens = arrange(found, statements, report) if found else None
    if tokens is None:
        return Program(())
    with _room_for(tokens.depth):
        return _Parser(tokens, statements, report).program()


class _FirstErrors(Report):
    """Keeps what a person can still read of what is found in one text."""

    has_more: bool = False
    """Whether something was left out, or the text was read no further."""

    @property
    def is_full(self) -> bool:
        return len(self.diagnostics) >= MAX_ERRORS

    def add(self, found: Iterable[Diagnostic]) -> None:
        if self.is_full:
            self.has_more = True
        else:
            super().add(found)

    def told(self) -> list[Diagnostic]:
        """What was kept; if there is more, the last one says so."""
        if not self.has_more:
            return self.diagnostics
        *first, last = self
        hint = f"correct those above first: only {MAX_ERRORS} of a text are reported at once"
        return [*first, Diagnostic("error", "too-many-errors", "there are more errors from here on", last.span, hint)]


@contextmanager
def _room_for(depth: int) -> Iterator[None]:
    """Lets Python recurse deep enough for a nesting of this depth."""
    limit = sys.getrecursionlimit()
    if depth > _SHALLOW:
        sys.setrecursionlimit(limit + depth * FRAMES_PER_LEVEL)
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


# What no item goes beyond. A head goes as far as its brace.
_LAST_OF_ITEM = re.compile(r"[;{}Z]")
_LAST_OF_PRAGMA = re.compile(r"p")


def _end_of_item(kinds: str, start: int) -> int:
    """Where the item that starts here has ended at the latest."""
    last = (_LAST_OF_PRAGMA if kinds[start] == PRAGMA else _LAST_OF_ITEM).search(kinds, start)
    return last.end() if last else len(kinds)


@lru_cache(maxsize=1024)
def _matched(kinds: str) -> Node:
    """The form of the item that these kinds begin with. From save to save most items stay the same in kind, if not in
    place, and matching is half of what parsing takes. Raises ParseError."""
    item: Node = grammar()["item"].match(kinds).children[0]
    return item


def _moved(node: Node, by: int, kinds: str) -> Node:
    """The same match so many tokens further back in a text."""
    children = [_moved(child, by, kinds) for child in node.children]
    return Node(node.expr, kinds, node.start + by, node.end + by, children)


class _Parser:
    """One run over the tokens of one text."""

    def __init__(self, tokens: Tokens, statements: Collection[str], report: _FirstErrors) -> None:
        self._tokens = tokens
        self._names = statements
        self._report = report
        self._assembly = Assembly(tokens, statements, report)
        self._closing = {closing for closing in tokens.partners.values() if tokens.kinds[closing] == "}"}
        self._at = 0
        self._value_from: int | None = None
        """Where the statement before this place starts, if it ends in an expression."""
        self._rest_of_error: int | None = None
        """Where something may start that only goes on what an error was reported for."""

    def program(self) -> Program:
        kinds = self._tokens.kinds
        while kinds[self._at] != END and not self._report.is_full:
            if kinds[self._at] not in ";}":
                self._item()
                continue
            if self._at in self._closing:
                self._assembly.close(self._at)
            self._at += 1
            self._value_from = None
        self._report.has_more |= kinds[self._at] != END
        return self._assembly.finish(self._at)

    def _item(self) -> None:
        start = self._at
        kinds = self._tokens.kinds
        try:
            item = _moved(_matched(kinds[start : _end_of_item(kinds, start)]), start, kinds)
        except ParseError as error:
            self._fail(start + error.pos, error.expr.name if error.expr else "")
            return
        if self._is_loose_call(item) and self._follows_value():
            self._fail(start, "ends")
            return
        found_before = len(self._report.diagnostics)
        self._assembly.add(item)
        self._at = item.end
        if len(self._report.diagnostics) > found_before and not self._tokens.fresh[self._at]:
            self._rest_of_error = self._at
        self._value_from = start if item.expr_name in ("binding", "setting") else None

    def _is_loose_call(self, item: Node) -> bool:
        """Whether the item is a call that is not bound, and no output statement."""
        if item.expr_name != "call" or self._tokens.text(item.start) in self._names:
            return False
        bound = item.children[3]
        return not bound.children

    def _follows_value(self) -> bool:
        """Whether an expression ends directly before this place, on the same line."""
        return self._value_from is not None and not self._tokens.fresh[self._at]

    # --- errors ---

    def _fail(self, at: int, expected: str) -> None:
        """Reports that the grammar got no further than `at`, and goes on behind the broken statement."""
        start = self._at
        failure = Failure(self._tokens, start, at, expected, self._names)
        if self._value_from is not None and self._follows_value() and self._is_rest_of_value():
            failure = Failure(self._tokens, self._value_from, start, "ends", self._names)
        self._at = self._next_start(at)
        self._value_from = None
        is_explained = self._tokens.is_broken(failure.start, self._at) or self._rest_of_error == start
        if not is_explained:
            self._report.add([diagnose(failure)])
        if self._tokens.kinds[self._at] == PRAGMA:
            self._rest_of_error = self._tokens.kinds.index(PRAGMA_END, self._at) + 1

    def _is_rest_of_value(self) -> bool:
        """Whether what starts here can be no statement of its own."""
        if _OWN_STATEMENT.match(self._tokens.kinds, self._at):
            return False
        is_call = _CALL.match(self._tokens.kinds, self._at)
        return not (is_call and self._tokens.text(self._at) in self._names)

    def _next_start(self, at: int) -> int:
        """The first token from `at` on that may start a statement, outside of brackets."""
        kinds, partners = self._tokens.kinds, self._tokens.partners
        index = self._at
        while True:
            kind = kinds[index]
            if index >= at and (kind in (";", END, PRAGMA) or index in self._closing):
                return index
            if index >= at and index > self._at and self._is_likely_start(index):
                return index
            index = partners.get(index, index) + 1

    def _is_likely_start(self, index: int) -> bool:
        """Whether a line begins here with a name that does not continue the line before."""
        kinds = self._tokens.kinds
        return self._tokens.fresh[index] and kinds[index] in (NAME, "M") and kinds[index - 1] in _ENDS
