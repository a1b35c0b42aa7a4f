"""Explains what is wrong within expressions: missing and misplaced values, operators and brackets."""

from __future__ import annotations

from typing import Final

from weft.errors import Diagnostic, did_you_mean
from weft.syntax import hints
from weft.syntax.failure import Explanation, Failure
from weft.syntax.tokens import BECOMES, BINDS, GLUED, NAME, NUMBER, OPERAND_ENDS, PRAGMA

_MISSING_WORD: Final = {"if": "then", "then": "else"}
_CLOSERS: Final = (")", "]", "}")


def _keyword_as_name(failure: Failure) -> Diagnostic | None:
    """`a = in + 1`"""
    return failure.reserved_word() if failure.needs_operand and failure.found in "itSFLO" else None


def _bare_me(failure: Failure) -> Diagnostic | None:
    """`a = me + 1`"""
    if not (failure.needs_operand and failure.found == "M"):
        return None
    return failure.error("bare-me", "`me` needs a coordinate", failure.place, "such as me@x or me@time")


def _missing_expression(failure: Failure) -> Diagnostic | None:
    """`a = b + * c`, `f(x, )`"""
    if not failure.needs_operand:
        return None
    if failure.text == "<<" or (failure.found == "<" and failure.is_in_bundle):
        return failure.error("nested-bundle", "a bundle cannot stand in a bundle", failure.place)
    if failure.found == "[":
        return failure.error("misplaced-bracket", "an expression cannot start with `[`", failure.place, hints.BUNDLE)
    hint = None
    if failure.text == "+":
        hint = "a number has no sign +; leave it out"
    elif failure.found == PRAGMA:
        hint = "a pragma cannot stand inside a statement"
    elif failure.found == "=" and failure.before == "=":
        hint = "to compare, write == without a space"
    return failure.missing("an expression", "missing-expression", hint)


def _missing_then_or_else(failure: Failure) -> Diagnostic | None:
    """`if a then b`, `if a then b els c`"""
    word = _MISSING_WORD.get(failure.inside)
    if word is None or failure.needs_operand:
        return None
    if failure.found == NAME:
        hint = did_you_mean(failure.text, [word])
        return failure.error(f"missing-{word}", f"`{word}` is missing here", failure.place, hint) if hint else None
    ends_here = failure.is_cut_off or failure.found in (*_CLOSERS, ",", ":", "{", "T", "E", ">", GLUED)
    return failure.missing(f"`{word}`", f"missing-{word}", hints.CHOICE) if ends_here else None


def _bare_angle(failure: Failure) -> Diagnostic | None:
    """`<a < b, c>`, `<a > b, c>`"""
    if failure.found == "<" and failure.is_in_bundle:
        symbol, place = "<", failure.place
    elif failure.starts_operand and failure.before == ">" and _more_of_bundle_follows(failure):
        symbol, place = ">", failure.tokens.span(failure.at - 1)
    else:
        return None
    hint = f"write {symbol}{symbol}, or put the comparison in parentheses"
    return failure.error("bare-angle", f"in a bundle, `{symbol}` does not compare", place, hint)


def _more_of_bundle_follows(failure: Failure) -> bool:
    """Whether the line goes on as if the > before this place had not closed the bundle."""
    kinds, fresh = failure.tokens.kinds, failure.tokens.fresh
    for index in range(failure.at, len(kinds)):
        if kinds[index] in ";}Z=" or fresh[index]:
            return False
        if kinds[index] in (",", ">"):
            return True
    return False


def _missing_operator(failure: Failure) -> Diagnostic | None:
    """`a = 2 sin(me@x)`, `f(a b)`"""
    if failure.needs_operand or not failure.starts_operand or not failure.before:
        return None
    if failure.inside == "<" and failure.is_cut_off:
        return None
    hint = None
    if failure.found == "I":
        hint = hints.CHOICE
    elif failure.before == NUMBER and failure.found in (NAME, "M", "(") and not failure.is_cut_off:
        hint = f"a product is written {failure.text_before} * …"
    what = "an operator or a comma" if _is_in_list(failure) else "an operator"
    return failure.missing(what, "missing-operator", hint)


def _is_in_list(failure: Failure) -> bool:
    """Whether a comma could stand here as well."""
    if failure.inside == "(":
        before = failure.frames[-1].index - 1
        return before >= failure.start and failure.tokens.kinds[before] in OPERAND_ENDS
    return failure.inside == "<"


def _equals(failure: Failure) -> Diagnostic | None:
    """`if a = 1 then …`, `f(x = 1)`, `a = (b += 1)`"""
    if failure.found not in ("=", BECOMES):
        return None
    if failure.tokens.fresh[failure.at] and not failure.inside:
        return failure.error("missing-name", f"a name is missing before `{failure.text}`", failure.place)
    kinds, name = failure.tokens.kinds, failure.at - 1
    if failure.inside == "(" and failure.before == NAME and kinds[name - 1] in ("(", ","):
        hint = f"write {failure.text_before}: …"
        return failure.error("label-equals", "a label takes a colon", failure.place, hint)
    message = f"`{failure.text}` cannot stand in an expression"
    compare = "to compare, write ==" if failure.found == "=" else None
    return failure.error("misplaced-equals", message, failure.place, compare)


def _unclosed_angle(failure: Failure) -> Diagnostic | None:
    """`a = <1, 2`"""
    if failure.inside != "<" or not (failure.is_cut_off or failure.found in _CLOSERS):
        return None
    related = (failure.tokens.span(failure.frames[-1].index), "this `<` is still open")
    place = failure.tokens.after(failure.at - 1)
    return failure.error("unclosed-bracket", "`>` is missing here", place, None, related)


def _comma(failure: Failure) -> Diagnostic | None:
    """`a<r, g> = 1, 2`"""
    if failure.found != ",":
        return None
    if failure.inside == "[":
        return failure.error("stray-comma", "an index is one value", failure.place)
    return failure.error("stray-comma", "only one value can stand here", failure.place, hints.BUNDLE)


def _binds(failure: Failure) -> Diagnostic | None:
    """`a = f(x)::b<v>`"""
    if failure.found != BINDS:
        return None
    has_equals = "=" in failure.tokens.kinds[failure.start : failure.at]
    message = "this has a name already: `=` gave it one" if has_equals else "`::` cannot stand here"
    hint = "a call is bound by `=` or by `::`, not by both" if has_equals else None
    return failure.error("misplaced-binding", message, failure.place, hint)


def _colon(failure: Failure) -> Diagnostic | None:
    """`f(x):a<v>`, `f(3: x)`"""
    if failure.found != ":":
        return None
    if failure.inside == "(":
        return failure.error("bad-label", "a label is a single name", failure.place, "such as clamp(x, lo: 0)")
    if failure.before == ")" and failure.tokens.kinds[failure.at + 1] == NAME:
        return failure.error("single-colon", "a call is bound with `::`", failure.place)
    hint = "a label stands in a call, such as clamp(x, lo: 0)"
    return failure.error("misplaced-colon", "`:` cannot stand here", failure.place, hint)


def _dot_or_at(failure: Failure) -> Diagnostic | None:
    """`a.b`, `a@3`"""
    has_name = failure.tokens.kinds[failure.at + 1] == NAME
    if failure.found == "." and failure.before == NAME and has_name:
        hint = f"write {failure.text_before}@{failure.tokens.text(failure.at + 1)}"
        return failure.error("dot", "an output is picked with `@`, not with a dot", failure.place, hint)
    if failure.found == "@" and not has_name:
        return failure.error("missing-name", "`@` takes the name of an output", failure.place)
    return None


def _tilde(failure: Failure) -> Diagnostic | None:
    """`a = b ~ c`"""
    if failure.found != "~":
        return None
    message = "`~` stands only in a remap, once for each map"
    return failure.error("misplaced-map", message, failure.place, f"as in {hints.REMAP}")


def _stray_word(failure: Failure) -> Diagnostic | None:
    """`a = b else c`, `a = b to c`"""
    if failure.found in ("T", "E"):
        wanted = "if" if failure.found == "T" else "if … then"
        message = f"`{failure.text}` has no `{wanted}` before it"
        return failure.error("stray-word", message, failure.place, hints.CHOICE)
    if failure.found in ("i", "t"):
        hint = "as in for i in (0 to 7) { … }"
        return failure.error("stray-word", f"`{failure.text}` stands only in loops", failure.place, hint)
    return None


def _block(failure: Failure) -> Diagnostic | None:
    """`a = b { … }`"""
    if failure.found != "{":
        return None
    return failure.error("misplaced-block", "only spindles and loops have a block", failure.place)


def _pragma(failure: Failure) -> Diagnostic | None:
    """A pragma between brackets."""
    if failure.found != PRAGMA or not failure.frames:
        return None
    return failure.error("misplaced-pragma", "a pragma cannot stand inside a statement", failure.place)


EXPLANATIONS: Final[tuple[Explanation, ...]] = (
    _keyword_as_name,
    _bare_me,
    _pragma,
    _missing_then_or_else,
    _missing_expression,
    _bare_angle,
    _missing_operator,
    _equals,
    _unclosed_angle,
    _comma,
    _binds,
    _colon,
    _dot_or_at,
    _tilde,
    _stray_word,
    _block,
)
