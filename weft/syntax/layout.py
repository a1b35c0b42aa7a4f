"""The layout pass: finds where statements must begin, so that a broken one ends where a reader would say that it ends.

A line that starts like a definition (`name =`, `name<a, b> =`, `let`, `spindle`, `display(`, …) cannot continue an
expression: a boundary is put before it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Container
from typing import Final

from weft.errors import Report, Span
from weft.syntax.braces import without_stray_braces
from weft.syntax.brackets import match_brackets
from weft.syntax.scanner import Scan
from weft.syntax.tokens import BINDS, END, GLUED, OPERAND_ENDS, Tokens

# What can only be the start of a statement where it is the first on its line.
_START = re.compile(r"[nITENit](?:<n(?:,n)*[>g])?[=a]|n<-*[0n][>g]\(|M<n[>g]=|[SFOL]")
# Two values side by side do not continue an expression; a name may also start a statement, which the grammar knows.
_OPERAND_STARTS: Final = "0sIN"
_CALL = re.compile(r"n(?:@n)?\(")
# Behind these, `name =` is a label that should have a colon.
_BEFORE_ARGUMENT: Final = "(,"
_SPINDLE_HEAD = re.compile(r"Sn\((?:n(?:,n)*)?\)d(?:n|<n(?:,n)*[>g])")
_LOOP_HEAD = re.compile(r"Fni\(")
_HEAD_WORD = re.compile("[SF]")
_BEHIND_HEAD: Final = "{};SFOLPp"
# Nothing continues `…::name<a, b>`.
_WHOLE_BINDING = re.compile(r"dn<n(?:,n)*[>g]\Z")
_LONGEST_LIST: Final = 200
_ROUND = re.compile("[()]")


def arrange(scan: Scan, statements: Collection[str], report: Report) -> Tokens | None:
    """The tokens with boundaries and matched brackets; None, with an error reported, if they nest too deep."""
    layout = _Layout(scan, statements)
    boundaries = layout.boundaries()
    inserted = {**boundaries, **layout.missing_braces(boundaries, report)}
    tokens = without_stray_braces(_with_inserted(scan, inserted), report)
    return match_brackets(tokens, statements, report)


class _Layout:
    """Looks at the lines of one text."""

    def __init__(self, scan: Scan, statements: Collection[str]) -> None:
        self._scan = scan
        self._names = statements
        self._kinds = "".join(scan.kinds)
        self._closing = _closing_brackets(self._kinds)

    def boundaries(self) -> dict[int, str]:
        """A `;` for each token before which a statement must end."""
        found: dict[int, str] = {}
        depth = 0
        for index, kind in enumerate(self._kinds):
            if self._scan.fresh[index] and index > 0 and self._starts_statement(index, depth):
                found[index] = ";"
                depth = 0
            if kind in "([":
                depth += 1
            elif kind in ")]":
                depth = max(0, depth - 1)
            elif kind in "{};":
                depth = 0
        return found

    def _starts_statement(self, index: int, depth: int) -> bool:
        """Whether a line that starts here cannot continue the one above."""
        kinds = self._kinds
        before = kinds[index - 1]
        if before in (">", GLUED) and _WHOLE_BINDING.search(kinds, max(0, index - _LONGEST_LIST), index):
            return True
        if start := _START.match(kinds, index):
            return start[0] != "n=" or before not in _BEFORE_ARGUMENT
        if (call := _CALL.match(kinds, index)) and before != "S":
            is_bound = kinds.startswith(BINDS, self._closing.get(call.end() - 1, index) + 1)
            return is_bound or self._scan.text(index) in self._names
        return depth == 0 and kinds[index] in _OPERAND_STARTS and before in OPERAND_ENDS

    def missing_braces(self, boundaries: Container[int], report: Report) -> dict[int, str]:
        """A `{` behind each head of a spindle or loop that has none, if this text has too few of them."""
        found: dict[int, str] = {}
        heads = _HEAD_WORD.finditer(self._kinds) if self._kinds.count("{") < self._kinds.count("}") else ()
        for start in (head.start() for head in heads):
            behind = self._head_end(start, boundaries)
            if self._kinds.startswith("{", behind):
                continue
            found[behind] = "{"
            if self._is_good_head(start, behind):  # else there is something else to say about it
                end = self._scan.ends[behind - 1]
                report.error("missing-block", "`{` is missing here", Span(self._scan.source, end, end))
        return found

    def _head_end(self, start: int, boundaries: Container[int]) -> int:
        """The first token behind a head, wherever it starts a statement or a block."""
        behind = start + 1
        while behind < len(self._kinds) and self._kinds[behind] not in _BEHIND_HEAD and behind not in boundaries:
            behind += 1
        return behind

    def _is_good_head(self, start: int, behind: int) -> bool:
        if _SPINDLE_HEAD.fullmatch(self._kinds, start, behind):
            return True
        loop = _LOOP_HEAD.match(self._kinds, start)
        return loop is not None and self._closing.get(loop.end() - 1) == behind - 1


def _closing_brackets(kinds: str) -> dict[int, int]:
    """The round brackets as they match if nothing is wrong with the text."""
    partners: dict[int, int] = {}
    stack: list[int] = []
    for bracket in _ROUND.finditer(kinds):
        if bracket[0] == "(":
            stack.append(bracket.start())
        elif stack:
            partners[stack.pop()] = bracket.start()
    return partners


def _with_inserted(scan: Scan, inserted: dict[int, str]) -> Tokens:
    """The tokens with others of no width before some of them, and the end of the text behind them."""
    kinds: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    fresh: list[bool] = []
    first = 0
    for behind, kind in [*sorted(inserted.items()), (len(scan.kinds), END)]:
        kinds += scan.kinds[first:behind]
        starts += scan.starts[first:behind]
        ends += scan.ends[first:behind]
        fresh += scan.fresh[first:behind]
        place = ends[-1] if ends else 0
        kinds.append(kind)
        starts.append(place)
        ends.append(place)
        fresh.append(False)
        first = behind
    broken = [index for index, start in enumerate(starts) if start in scan.broken]
    return Tokens(scan.source, "".join(kinds), starts, ends, fresh, {}, broken, scan.repairs, scan.docs, depth=0)
