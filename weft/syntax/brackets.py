"""Matches brackets, measures how deep they nest, and reports what has no partner at the place where it is missing."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final

from weft.errors import Diagnostic, Report, Span
from weft.syntax.tokens import BINDS, END, NAME, PRAGMA, Tokens

MAX_DEPTH: Final = 256

_CLOSING: Final = {"(": ")", "[": "]", "{": "}"}
_OPENING: Final = {closing: opening for opening, closing in _CLOSING.items()}
_ROUND_OR_SQUARE: Final = ("(", "[")
_EVENT: Final = re.compile(f"[][(){{}};IES{PRAGMA}{BINDS}{END}]")
# None of these stands between round or square brackets, which end before them at the latest.
_NEVER_INSIDE: Final = ";{}" + BINDS + END
# What cannot stand in a spindle: where a } is missing, it is missing before this.
_NOT_IN_SPINDLE: Final = re.compile(r"n<n(?:,n)*[>g]=|M<n[>g]=")


def match_brackets(tokens: Tokens, statements: Collection[str], report: Report) -> Tokens | None:
    """The tokens with their brackets matched; None, with an error reported, if these nest too deep."""
    return _Matcher(tokens, statements, report).run()


@dataclass
class _Open:
    """An opening bracket that waits for its closing one. The whole text counts as one, at -1."""

    index: int
    kind: str
    ifs: int = 0
    pragma: int | None = None
    """The first pragma in it, if there is one."""
    is_explained: bool = False
    """Whether an error was reported that explains why its partner is missing."""


class _Matcher:
    """One run over the tokens of one text, from left to right."""

    def __init__(self, tokens: Tokens, statements: Collection[str], report: Report) -> None:
        self._tokens = tokens
        self._names = statements
        self._report = report
        self._partners: dict[int, int] = {}
        self._lonely: set[int] = set()
        self._last_lonely = -1
        self._stack = [_Open(-1, "")]
        self._ifs = 0
        self._depth = 0
        self._statement = 0
        self._braces_missing = tokens.kinds.count("{") - tokens.kinds.count("}")

    def run(self) -> Tokens | None:
        for event in _EVENT.finditer(self._tokens.kinds):
            index, kind = event.start(), event[0]
            if kind in _NEVER_INSIDE:
                self._cut(index)
            if kind in _CLOSING:
                self._stack.append(_Open(index, kind))
            elif kind in _OPENING:
                self._close(index, _OPENING[kind])
            else:
                self._note(index, kind)
            if not self._is_within_depth(index):
                return None
        broken = sorted({*self._tokens.broken, *self._lonely})
        return replace(self._tokens, partners=self._partners, broken=broken, depth=self._depth)

    def _note(self, index: int, kind: str) -> None:
        top = self._stack[-1]
        if kind == "I":
            top.ifs += 1
            self._ifs += 1
        elif kind == "E" and top.ifs:
            top.ifs -= 1
            self._ifs -= 1
        elif kind == ";":
            self._begin_statement(index)
        elif kind == PRAGMA:
            top.pragma = top.pragma or index
            self._end_blocks(index)
        elif kind == "S":
            self._end_blocks(index)
        elif kind == END and top.kind:
            self._report_unclosed(top, index)

    def _begin_statement(self, boundary: int) -> None:
        self._statement = boundary
        self._ifs -= self._stack[-1].ifs
        self._stack[-1].ifs = 0
        kinds, first = self._tokens.kinds, boundary + 1
        is_output = kinds.startswith(NAME + "(", first) and self._tokens.text(first) in self._names
        if is_output or _NOT_IN_SPINDLE.match(kinds, first):
            self._end_blocks(boundary)

    def _end_blocks(self, index: int) -> None:
        """Ends the open blocks before what cannot stand in them, as far as a `}` is missing in this text."""
        innermost = self._stack[-1]
        while self._stack[-1].kind == "{" and self._braces_missing > 0:
            self._braces_missing -= 1
            self._add_lonely(self._pop().index)
        if self._stack[-1] is not innermost:
            self._report_unclosed(innermost, index)

    def _is_within_depth(self, index: int) -> bool:
        depth = len(self._stack) - 1 + self._ifs
        self._depth = max(self._depth, depth)
        if depth > MAX_DEPTH:
            message = f"brackets and `if`s nest deeper than {MAX_DEPTH} here"
            self._report.error("too-deep", message, self._tokens.span(index), "give the inner parts names of their own")
        return depth <= MAX_DEPTH

    def _pop(self) -> _Open:
        top = self._stack.pop()
        self._ifs -= top.ifs
        return top

    def _cut(self, index: int) -> None:
        """Ends the round and square brackets that are open, because nothing of them can come any more."""
        if self._stack[-1].kind in _ROUND_OR_SQUARE:
            self._report_unclosed(self._stack[-1], index)
        while self._stack[-1].kind in _ROUND_OR_SQUARE:
            self._add_lonely(self._pop().index)

    def _close(self, index: int, wanted: str) -> None:
        top = self._stack[-1]
        if top.kind == wanted:
            self._partners[self._pop().index] = index
        elif top.kind in _ROUND_OR_SQUARE and self._is_open(wanted):
            self._report_unclosed(top, index)
            while self._stack[-1].kind != wanted:
                self._add_lonely(self._pop().index)
            self._partners[self._pop().index] = index
        elif top.kind in _ROUND_OR_SQUARE:
            self._report_mismatch(top, index)
        else:
            self._report_stray(index, wanted)

    def _is_open(self, kind: str) -> bool:
        """Whether a bracket of this kind is open in the innermost block."""
        for bracket in reversed(self._stack):
            if bracket.kind not in _ROUND_OR_SQUARE:
                return False
            if bracket.kind == kind:
                return True
        return False

    def _add_lonely(self, index: int) -> None:
        self._lonely.add(index)
        self._last_lonely = max(self._last_lonely, index)

    # --- errors; what was reported nearby explains what follows from it ---

    def _report_unclosed(self, opened: _Open, index: int) -> None:
        self._add_lonely(opened.index)
        is_block = opened.kind == "{"
        if opened.is_explained or (not is_block and self._tokens.is_broken(opened.index, index)):
            return
        last = index if is_block or opened.pragma is None else opened.pragma
        related = (self._tokens.span(opened.index), f"this `{opened.kind}` is still open")
        message = f"`{_CLOSING[opened.kind]}` is missing here"
        self._error("unclosed-bracket", message, self._tokens.after(last - 1), related)

    def _report_mismatch(self, opened: _Open, index: int) -> None:
        self._add_lonely(index)
        if not opened.is_explained and not self._tokens.is_broken(opened.index, index):
            message = f"`{self._tokens.text(index)}` cannot close `{opened.kind}`"
            related = (self._tokens.span(opened.index), f"this `{opened.kind}` waits for `{_CLOSING[opened.kind]}`")
            self._error("mismatched-bracket", message, self._tokens.span(index), related)
        opened.is_explained = True

    def _report_stray(self, index: int, wanted: str) -> None:
        is_explained = self._tokens.is_broken(self._statement, index) or self._last_lonely >= self._statement
        self._add_lonely(index)
        if not is_explained:
            message = f"this `{self._tokens.text(index)}` has no `{wanted}` before it"
            self._error("stray-bracket", message, self._tokens.span(index))

    def _error(self, code: str, message: str, place: Span, *related: tuple[Span, str]) -> None:
        self._report.add([Diagnostic("error", code, message, place, related=related)])
