"""The layout of a text: where statements end, and which brackets and braces belong together.

A line that starts like a definition (`name =`, `name<a, b> =`, `let`, `spindle`, `display(`, …) cannot continue an
expression, so a boundary is put before it. A broken statement thus ends where a reader would say that it ends.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Container, Mapping
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Final

from weft.errors import Report
from weft.syntax.scanner import (
    BINDS, BROKEN, BUNDLE_FORM, CALL, END, GLUED, LOOP_FORM, NAME, OPENING, OPERAND_ENDS, PRAGMA, STATEMENT_FORM, Tokens
)

# --- stray braces: typed where no block can begin or end ---

_HEAD: Final = re.compile(r"[SF][^;{}pSF]*\{")
_INSIDE: Final = re.compile(r"[^;{}p]*\}")
# What comes before the { of a head, even if the head is misspelt.
_BEFORE_BLOCK: Final = (")", ">", "g")
_LIKE_HEAD: Final = re.compile("[dn:]n")
_BEFORE_STATEMENT: Final = (";", "{", "}", "p", "")
# What may follow a } that ends a block: a statement or nothing.
_AFTER_BLOCK: Final = "nSFLOMP;}Z"


def without_stray_braces(tokens: Tokens, report: Report) -> Tokens:
    """The tokens, with stray braces reported and made into broken tokens."""
    stray = _stray_openings(tokens, report)
    stray |= _stray_closings(tokens, stray, report)
    if not stray:
        return tokens
    kinds = "".join(BROKEN if index in stray else kind for index, kind in enumerate(tokens.kinds))
    return replace(tokens, kinds=kinds, broken=sorted({*tokens.broken, *stray}))


def _stray_openings(tokens: Tokens, report: Report) -> set[int]:
    """Each { that does not end a head, and the } that belongs to it, if it is on the same line."""
    kinds = tokens.kinds
    heads = {head.end() - 1 for head in _HEAD.finditer(kinds)}
    found: set[int] = set()
    for index in (index for index, kind in enumerate(kinds) if kind == "{"):
        before = kinds[index - 1] if index else ""
        if index in heads or before in _BEFORE_BLOCK or _LIKE_HEAD.match(kinds, max(0, index - 2), index):
            continue
        place = tokens.span(index)
        if index - 1 in found:
            pass  # reported
        elif before in _BEFORE_STATEMENT:
            report.tell("bad-start", "a statement cannot start with `{`", place, STATEMENT_FORM)
        elif before in OPERAND_ENDS:
            report.tell("misplaced-block", "only spindles and loops have a block", place)
        else:
            report.tell("misplaced-bracket", "an expression cannot start with `{`", place, BUNDLE_FORM)
        found.add(index)
        inside = _INSIDE.match(kinds, index + 1)
        if inside and not any(tokens.fresh[index + 1 : inside.end()]):
            found.add(inside.end() - 1)
    return found


def _stray_closings(tokens: Tokens, known: set[int], report: Report) -> set[int]:
    """Each } in the middle of a statement, up to the number by which the text has too many."""
    kinds = tokens.kinds
    braces = [brace.start() for brace in re.finditer("[{}]", kinds) if brace.start() not in known]
    surplus = sum(1 if kinds[index] == "}" else -1 for index in braces)
    found: set[int] = set()
    for index in braces:
        is_amid = not tokens.fresh[index] and not tokens.fresh[index + 1] and kinds[index + 1] not in _AFTER_BLOCK
        if kinds[index] == "}" and is_amid and len(found) < surplus:
            found.add(index)
            report.tell("stray-bracket", "this `}` has no `{` before it", tokens.span(index))
    return found


# --- matching brackets ---

MAX_DEPTH: Final = 256

_CLOSING: Final = {opening: closing for closing, opening in OPENING.items()}
_ROUND_OR_SQUARE: Final = ("(", "[")
_EVENT: Final = re.compile(f"[][(){{}};IES{PRAGMA}{BINDS}{END}]")
# None of these is between round or square brackets, which end before them at the latest.
_NEVER_INSIDE: Final = ";{}" + BINDS + END
# Tokens that are not allowed in a spindle: a missing } is missing before them.
_NOT_IN_SPINDLE: Final = re.compile(r"n<n(?:,n)*[>g]=|M<n[>g]=")


@dataclass
class _OpenBracket:
    """An opening bracket that waits for its closing one. The whole text counts as one, at -1."""

    index: int
    kind: str
    ifs: int = 0
    pragma: int | None = None
    """The first pragma in it, if there is one."""
    is_explained: bool = False
    """Whether an error was reported that explains why its partner is missing."""


class _Matcher:
    """Matches brackets in one run over the tokens of one text, from left to right. A bracket without a partner is
    reported at the place where the partner is missing."""

    def __init__(self, tokens: Tokens, statements: Collection[str], report: Report) -> None:
        self._tokens = tokens
        self._names = statements
        self._report = report
        self._partners: dict[int, int] = {}
        self._unmatched: set[int] = set()
        self._last_unmatched = -1
        self._stack = [_OpenBracket(-1, "")]
        self._ifs = 0
        self._depth = 0
        self._statement = 0
        self._braces_missing = tokens.kinds.count("{") - tokens.kinds.count("}")

    def run(self) -> Tokens | None:
        """The tokens with their brackets matched; None, with an error reported, if they nest too deep."""
        for event in _EVENT.finditer(self._tokens.kinds):
            index, kind = event.start(), event[0]
            if kind in _NEVER_INSIDE:
                self._cut(index)
            if kind in _CLOSING:
                self._stack.append(_OpenBracket(index, kind))
            elif kind in OPENING:
                self._close(index, OPENING[kind])
            else:
                self._note(index, kind)
            depth = len(self._stack) - 1 + self._ifs
            self._depth = max(self._depth, depth)
            if depth > MAX_DEPTH:
                hint = "give the inner parts names of their own"
                message = f"brackets and `if`s nest deeper than {MAX_DEPTH} here"
                self._report.tell("too-deep", message, self._tokens.span(index), hint)
                return None
        broken = sorted({*self._tokens.broken, *self._unmatched})
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
        """Ends the open blocks before something that is not allowed in them, as long as the text lacks a `}`."""
        innermost = self._stack[-1]
        while self._stack[-1].kind == "{" and self._braces_missing > 0:
            self._braces_missing -= 1
            self._add_unmatched(self._pop().index)
        if self._stack[-1] is not innermost:
            self._report_unclosed(innermost, index)

    def _pop(self) -> _OpenBracket:
        top = self._stack.pop()
        self._ifs -= top.ifs
        return top

    def _cut(self, index: int) -> None:
        """Ends the open round and square brackets, because they cannot continue past this place."""
        if self._stack[-1].kind in _ROUND_OR_SQUARE:
            self._report_unclosed(self._stack[-1], index)
        while self._stack[-1].kind in _ROUND_OR_SQUARE:
            self._add_unmatched(self._pop().index)

    def _close(self, index: int, wanted: str) -> None:
        top = self._stack[-1]
        if top.kind == wanted:
            self._partners[self._pop().index] = index
            if top.is_explained and self._stack[-1].kind in _ROUND_OR_SQUARE:
                # The bracket that has closed this one was perhaps meant for the one around it.
                self._stack[-1].is_explained = True
        elif top.kind not in _ROUND_OR_SQUARE:
            self._report_stray(index, wanted)
        elif wanted in takewhile(_ROUND_OR_SQUARE.__contains__, (bracket.kind for bracket in reversed(self._stack))):
            self._report_unclosed(top, index)
            while self._stack[-1].kind != wanted:
                self._add_unmatched(self._pop().index)
            self._partners[self._pop().index] = index
        else:
            self._report_mismatch(top, index)

    def _add_unmatched(self, index: int) -> None:
        self._unmatched.add(index)
        self._last_unmatched = max(self._last_unmatched, index)

    # --- errors; a mistake that follows from a reported one nearby is not reported again ---

    def _report_unclosed(self, opened: _OpenBracket, index: int) -> None:
        self._add_unmatched(opened.index)
        is_block = opened.kind == "{"
        if opened.is_explained or (not is_block and self._tokens.is_broken(opened.index, index)):
            return
        last = index if is_block or opened.pragma is None else opened.pragma
        related = (self._tokens.span(opened.index), f"this `{opened.kind}` is still open")
        message = f"`{_CLOSING[opened.kind]}` is missing here"
        is_loop = opened.index > 0 and self._tokens.kinds[opened.index - 1] == "F"
        hint = LOOP_FORM if is_loop else None
        self._report.tell("unclosed-bracket", message, self._tokens.after(last - 1), hint, related)

    def _report_mismatch(self, opened: _OpenBracket, index: int) -> None:
        self._add_unmatched(index)
        if not opened.is_explained and not self._tokens.is_broken(opened.index, index):
            message = f"`{self._tokens.text(index)}` cannot close `{opened.kind}`"
            related = (self._tokens.span(opened.index), f"this `{opened.kind}` waits for `{_CLOSING[opened.kind]}`")
            self._report.tell("mismatched-bracket", message, self._tokens.span(index), None, related)
        opened.is_explained = True

    def _report_stray(self, index: int, wanted: str) -> None:
        is_explained = self._tokens.is_broken(self._statement, index) or self._last_unmatched >= self._statement
        self._add_unmatched(index)
        if not is_explained:
            message = f"this `{self._tokens.text(index)}` has no `{wanted}` before it"
            self._report.tell("stray-bracket", message, self._tokens.span(index))


# --- statement boundaries ---

# Tokens that can start a statement only if they are the first on their line.
_START = re.compile(r"[nITENit](?:<n(?:,n)*[>g]|@n)?[=a]|n<-*[0n][>g]\(|M<n[>g]=|[SFOL]")
# Two values side by side do not continue an expression. Names are left to the grammar: they may start a statement.
_OPERAND_STARTS: Final = "0sIN"
# After these, `name =` is a label that should have a colon.
_BEFORE_ARGUMENT: Final = "(,"
_SPINDLE_HEAD = re.compile(r"Sn\([^{};]*\)d(?:n|<n(?:,n)*[>g])")
# A line in the head of a spindle: the parameters before it, whose defaults may have calls.
_IN_HEAD = re.compile(r"Sn\((?:[^(){};]|\([^(){};]*\))*\Z")
_LOOP_HEAD = re.compile(r"Fni\(")
_HEAD_WORD = re.compile("[SF]")
_AFTER_HEAD: Final = "{};SFOLPp" + END
# Nothing continues `…::name<a, b>`.
_WHOLE_BINDING = re.compile(r"dn<n(?:,n)*[>g]\Z")
_LONGEST_LIST: Final = 200
_ROUND = re.compile("[()]")


def arrange(scanned: Tokens, statements: Collection[str], report: Report) -> Tokens | None:
    """The tokens with boundaries and matched brackets; None, with an error reported, if they nest too deep."""
    layout = _LineLayout(scanned, statements)
    boundaries = layout.boundaries()
    inserted = {**boundaries, **layout.missing_braces(boundaries, report)}
    tokens = without_stray_braces(_with_inserted(scanned, inserted), report)
    return _Matcher(tokens, statements, report).run()


class _LineLayout:
    """Looks at the lines of one text."""

    def __init__(self, tokens: Tokens, statements: Collection[str]) -> None:
        self._tokens = tokens
        self._names = statements
        self._kinds = tokens.kinds
        self._closing = _closing_brackets(self._kinds)

    def boundaries(self) -> dict[int, str]:
        """A `;` for each token before which a statement must end."""
        found: dict[int, str] = {}
        depth = 0
        for index, kind in enumerate(self._kinds):
            if self._tokens.fresh[index] and index > 0 and self._starts_statement(index, depth):
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
            if start[0] == "F" and (loop := _LOOP_HEAD.match(kinds, index)):
                # After the ends of a loop comes its block, and after those of a bundle the bundle's end.
                return kinds[self._closing.get(loop.end() - 1, index) + 1] not in (">", GLUED)
            if before in _BEFORE_ARGUMENT and _IN_HEAD.search(kinds, max(0, index - _LONGEST_LIST), index):
                return False
            return start[0] != "n=" or before not in _BEFORE_ARGUMENT
        if (call := CALL.match(kinds, index)) and before != "S":
            is_bound = kinds.startswith(BINDS, self._closing.get(call.end() - 1, index) + 1)
            return is_bound or self._tokens.text(index) in self._names
        return depth == 0 and kinds[index] in _OPERAND_STARTS and before in OPERAND_ENDS

    def missing_braces(self, boundaries: Container[int], report: Report) -> dict[int, str]:
        """A `{` after each head of a spindle or loop that has none, if the text has too few of them."""
        found: dict[int, str] = {}
        heads = _HEAD_WORD.finditer(self._kinds) if self._kinds.count("{") < self._kinds.count("}") else ()
        for start in (head.start() for head in heads):
            stop = start + 1
            while self._kinds[stop] not in _AFTER_HEAD and stop not in boundaries:
                stop += 1
            if self._kinds.startswith("{", stop):
                continue
            found[stop] = "{"
            if self._is_good_head(start, stop):  # otherwise the head has another error
                report.tell("missing-block", "`{` is missing here", self._tokens.after(stop - 1))
        return found

    def _is_good_head(self, start: int, stop: int) -> bool:
        if _SPINDLE_HEAD.fullmatch(self._kinds, start, stop):
            return True
        loop = _LOOP_HEAD.match(self._kinds, start)
        return loop is not None and self._closing.get(loop.end() - 1) == stop - 1


def _closing_brackets(kinds: str) -> dict[int, int]:
    """The partners of the round brackets in a text without mistakes."""
    partners: dict[int, int] = {}
    stack: list[int] = []
    for bracket in _ROUND.finditer(kinds):
        if bracket[0] == "(":
            stack.append(bracket.start())
        elif stack:
            partners[stack.pop()] = bracket.start()
    return partners


def _with_inserted(tokens: Tokens, inserted: Mapping[int, str]) -> Tokens:
    """The tokens, with others of no width inserted before them, by index."""
    kinds: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    fresh: list[bool] = []
    first = 0
    places = sorted(inserted)
    for stop in places:
        kinds += tokens.kinds[first:stop], inserted[stop]
        starts += tokens.starts[first:stop]
        ends += tokens.ends[first:stop]
        fresh += tokens.fresh[first:stop]
        starts.append(ends[-1])
        ends.append(ends[-1])
        fresh.append(False)
        first = stop
    broken = [index + bisect_right(places, index) for index in tokens.broken]
    return replace(
        tokens, kinds="".join(kinds) + tokens.kinds[first:], starts=[*starts, *tokens.starts[first:]],
        ends=[*ends, *tokens.ends[first:]], fresh=[*fresh, *tokens.fresh[first:]], broken=broken,
    )  # fmt: skip
