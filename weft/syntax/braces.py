"""Finds braces that a slip of the hand put where no block can begin or end."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from weft.errors import Report
from weft.syntax import hints
from weft.syntax.tokens import BROKEN, OPERAND_ENDS, Tokens

_HEAD: Final = re.compile(r"[SF][^;{}pSF]*\{")
_INSIDE: Final = re.compile(r"[^;{}p]*\}")
# What a { stands behind in a head, even if that is misspelt.
_BEFORE_BLOCK: Final = (")", ">", "g")
_LIKE_HEAD: Final = re.compile("[dn:]n")
_BEFORE_STATEMENT: Final = (";", "{", "}", "p", "")
# Behind a } that ends a block, a statement starts or nothing follows.
_BEHIND_BLOCK: Final = "nSFLOMP;}Z"


def without_stray_braces(tokens: Tokens, report: Report) -> Tokens:
    """The tokens, with stray braces reported and made into broken tokens."""
    stray = _stray_openings(tokens, report)
    stray |= _stray_closings(tokens, stray, report)
    if not stray:
        return tokens
    kinds = "".join(BROKEN if index in stray else kind for index, kind in enumerate(tokens.kinds))
    return replace(tokens, kinds=kinds, broken=sorted({*tokens.broken, *stray}))


def _stray_openings(tokens: Tokens, report: Report) -> set[int]:
    """Each { that is in no head, and the } that belongs to it, if it is on its line."""
    kinds = tokens.kinds
    heads = {head.end() - 1 for head in _HEAD.finditer(kinds)}
    found: set[int] = set()
    for index in (brace.start() for brace in re.finditer(r"\{", kinds)):
        before = kinds[index - 1] if index else ""
        if index in heads or before in _BEFORE_BLOCK or _LIKE_HEAD.match(kinds, max(0, index - 2), index):
            continue
        if index - 1 not in found:
            _report_opening(tokens, index, before, report)
        found.add(index)
        inside = _INSIDE.match(kinds, index + 1)
        if inside and not any(tokens.fresh[index + 1 : inside.end()]):
            found.add(inside.end() - 1)
    return found


def _report_opening(tokens: Tokens, index: int, before: str, report: Report) -> None:
    place = tokens.span(index)
    if before in _BEFORE_STATEMENT:
        report.error("bad-start", "a statement cannot start with `{`", place, hints.STATEMENT)
    elif before in OPERAND_ENDS:
        report.error("misplaced-block", "only spindles and loops have a block", place)
    else:
        report.error("misplaced-bracket", "an expression cannot start with `{`", place, hints.BUNDLE)


def _stray_closings(tokens: Tokens, known: set[int], report: Report) -> set[int]:
    """Each } in the middle of a statement, as far as the text has too many of them."""
    kinds = tokens.kinds
    braces = [brace.start() for brace in re.finditer("[{}]", kinds) if brace.start() not in known]
    surplus = sum(1 if kinds[index] == "}" else -1 for index in braces)
    found: set[int] = set()
    for index in braces:
        is_amid = not tokens.fresh[index] and not tokens.fresh[index + 1] and kinds[index + 1] not in _BEHIND_BLOCK
        if kinds[index] == "}" and is_amid and len(found) < surplus:
            found.add(index)
            report.error("stray-bracket", "this `}` has no `{` before it", tokens.span(index))
    return found
