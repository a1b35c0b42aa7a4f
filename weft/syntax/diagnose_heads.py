"""Explains what is wrong at the start of a statement: names, output lists, settings, spindles and loops."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from weft.errors import Diagnostic, did_you_mean
from weft.syntax import hints
from weft.syntax.failure import Explanation, Failure
from weft.syntax.tokens import BECOMES, BINDS, GLUED, NAME, NUMBER, OPERATOR, shorten

# How other languages announce variables and functions.
_VARIABLE_WORDS: Final = ("var", "const", "auto", "val", "float", "int", "double", "vec2", "vec3", "vec4", "uniform")
_FUNCTION_WORDS: Final = ("def", "function", "fn", "func", "fun", "void")

_BOUND_HEAD: Final = re.compile(r"(?:[LO]n|[LO]?n<n(?:,n)*[>g]|M<n[>g])\Z")
_COUNT_HEAD: Final = re.compile(r"n<-*0[>g]?\Z")
# The rules that were tried where a name has to stand.
_TAKES_NAME: Final = ("name", "names", "results")


# What a rule that did not match stands for, and the code of its absence.
_SPINDLE_PARTS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "name": ("a name", "missing-name"),
        "open": ("the list of parameters", "missing-parameters"),
        "binds": ("`::`", "missing-binds"),
        "results": ("the list of outputs", "missing-outputs"),
        "begin": ("`{`", "missing-block"),
    }
)
_LOOP_PARTS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "name": ("the name of the loop's variable", "missing-name"),
        "in": ("`in`", "missing-in"),
        "open": ("`(`", "missing-parentheses"),
        "to": ("`to`", "missing-to"),
        "begin": ("`{`", "missing-block"),
    }
)


def _keyword_as_name(failure: Failure) -> Diagnostic | None:
    """`in = 3`, `let to = 3`, `a<in> = 3`, `spindle if(x) …`"""
    if not failure.is_word or failure.needs_operand:
        return None
    if failure.at == failure.start:
        takes_name = failure.tokens.kinds[failure.at + 1] in ("=", "<", BECOMES)
    else:
        is_parameter = failure.tokens.kinds[failure.start] == "S" and failure.inside == "("
        takes_name = failure.expected in _TAKES_NAME or failure.before == "," or is_parameter
    return failure.reserved_word() if takes_name else None


def _bad_start(failure: Failure) -> Diagnostic | None:
    """`2 + a`, `if a then b else c`"""
    if failure.at != failure.start:
        return None
    if failure.found == "=":
        return failure.error("missing-name", "a name is missing before `=`", failure.place)
    message = f"a statement cannot start with `{failure.text}`"
    hint = "it chooses a value: a = if c then x else y" if failure.found == "I" else hints.STATEMENT
    return failure.error("bad-start", message, failure.place, hint)


def _double_equals(failure: Failure) -> Diagnostic | None:
    """`a == 3`, `a<v> == 3`"""
    if failure.text not in ("==", "===") or not _is_head(failure):
        return None
    message = f"`{failure.text}` compares; a single `=` gives a name its value"
    return failure.error("double-equals", message, failure.place)


def _is_head(failure: Failure) -> bool:
    """Whether nothing but the name, with its outputs, stands before this place."""
    head = failure.tokens.kinds[failure.start : failure.at]
    return head == NAME or bool(_BOUND_HEAD.match(head))


def _continued_line(failure: Failure) -> Diagnostic | None:
    """A line that starts with a bracket, behind what it cannot continue."""
    if not failure.tokens.fresh[failure.at] or failure.found not in ("(", "[", "<") or failure.frames:
        return None
    if failure.needs_operand:
        return None
    message = f"a line that starts with `{failure.text}` continues the line above"
    return failure.error("continued-line", message, failure.place, hints.STATEMENT)


def _name_alone(failure: Failure) -> Diagnostic | None:
    """`noise`, `display a`, `var x = 3`, `a: 3`, `a * 2`"""
    if failure.before != NAME or failure.at != failure.start + 1:
        return None
    name, place = failure.text_before, failure.tokens.span(failure.start)
    if name in failure.statements:
        hint = f"write {name}(…)"
        return failure.error("missing-parentheses", f"`{name}` takes its arguments in parentheses", place, hint)
    if failure.found == ":":
        return failure.error("single-colon", "a name gets its value by `=`", failure.place, f"write {name} = …")
    if failure.found == BINDS:
        message = "`::` binds a call or a remap; a name gets its value by `=`"
        return failure.error("misplaced-binding", message, failure.place, f"as in a<v> = {name}")
    if failure.found == "." and failure.tokens.kinds[failure.at + 1] == NAME:
        output = shorten(failure.tokens.text(failure.at + 1))
        return failure.error(
            "dot", "an output is bound in angle brackets", failure.place, f"write {name}<{output}> = …"
        )
    if failure.is_cut_off or failure.starts_operand or failure.is_word:
        return failure.error("not-a-statement", f"`{name}` alone is not a statement", place, _hint_for_word(name))
    return None if failure.found == "<" else _unused(failure)


def _hint_for_word(word: str) -> str:
    if word in _VARIABLE_WORDS:
        return "a name is bound without such a word: a = 3, or let a = 3"
    if word in _FUNCTION_WORDS:
        return hints.SPINDLE
    return did_you_mean(word, ["let", "spindle", "for", "out"]) or f"write {word} = …"


def _output_list(failure: Failure) -> Diagnostic | None:
    """`a<> = 1`, `a<v = 1`, `a<v w> = 1`, `a<3> = 1`"""
    head = failure.tokens.kinds[failure.start : failure.at]
    if _COUNT_HEAD.match(head) and failure.found != "(":
        place = failure.tokens.span(failure.start + 2)
        return failure.error("bad-output", "an output has a name, not a number", place, "such as a<v> = …")
    if failure.inside != "list":
        return None
    if head.startswith("M") and (failure.before == "<" or failure.found == ","):
        return failure.error("bad-setting", "a setting has one name", failure.place, hints.SETTING)
    if failure.found == ",":
        return _behind_comma(failure, _output_list)
    if failure.before in ("<", ","):
        if failure.found == NUMBER:
            return failure.error("bad-output", "an output has a name, not a number", failure.place, "such as a<v> = …")
        return failure.missing("a name", "missing-name")
    if failure.found == NAME and not failure.is_cut_off:
        return failure.missing("a comma", "missing-comma")
    related = (failure.tokens.span(failure.frames[-1].index), "this `<` is still open")
    place = failure.tokens.after(failure.at - 1)
    return failure.error("unclosed-bracket", "`>` is missing here", place, None, related)


def _behind_comma(failure: Failure, explain: Explanation) -> Diagnostic | None:
    """Explains what follows a comma in a list of names; the grammar stops before a comma that no name follows."""
    behind = replace(failure, at=failure.at + 1)
    return _keyword_as_name(behind) or explain(behind)


def _missing_equals(failure: Failure) -> Diagnostic | None:
    """`a<v> 3`, `let a`, `me<bpm> 120`"""
    if not _is_head(failure) or failure.at == failure.start + 1:
        return None
    kinds, start = failure.tokens.kinds, failure.start
    if kinds.startswith(")n<", start - 1) and not failure.tokens.fresh[start]:
        return replace(failure, start=start - 1, at=start).missing("`::`", "missing-binds")
    return failure.missing("`=`", "missing-equals")


def _missing_name(failure: Failure) -> Diagnostic | None:
    """`let 3`, `f(x)::`"""
    if failure.before == BINDS:
        return failure.missing("a name", "missing-name", "as in f(x)::name<v>")
    if failure.before in ("L", "O") and failure.at == failure.start + 1:
        return failure.missing("a name", "missing-name")
    if failure.before == NAME and failure.tokens.kinds[failure.at - 2] == BINDS:
        name = failure.text_before
        place = failure.tokens.after(failure.at - 1)
        return failure.error("missing-outputs", f"the outputs of `{name}` are missing", place, f"such as ::{name}<v>")
    return None


def _unsettable(failure: Failure) -> Diagnostic | None:
    """`a@v = 3`, `a[0] = 1`, `f(x) = 3`"""
    kinds, start = failure.tokens.kinds, failure.start
    if failure.found not in ("=", BECOMES) or kinds[start] != NAME or failure.frames:
        return None
    if "=" in kinds[start : failure.at] or failure.at == start + 1:
        return None
    if failure.tokens.fresh[failure.at]:
        return failure.error("missing-name", f"a name is missing before `{failure.text}`", failure.place)
    place = failure.tokens.span(start, failure.at - 1)
    name = shorten(failure.tokens.text(start))
    if kinds[start + 1 : failure.at] == "@n":
        hint = f"write {name}<{failure.text_before}> = …"
        return failure.error("cannot-set", "an output is bound in angle brackets", place, hint)
    if failure.before == "]":
        return failure.error("cannot-set", "an element cannot be set", place, "bind the whole bundle: a = <1, 2, 3>")
    return failure.error("cannot-set", "a call cannot be set", place, hints.SPINDLE)


def _unused(failure: Failure) -> Diagnostic | None:
    """`img@r * 2`, `f(x) + 1`"""
    kinds, start = failure.tokens.kinds, failure.start
    if kinds[start] != NAME or failure.frames or "=" in kinds[start : failure.at] or failure.needs_operand:
        return None
    if failure.found not in ("-", "<", OPERATOR, ">", GLUED):
        return None
    place = failure.tokens.span(start, failure.at - 1)
    return failure.error("not-a-statement", "this value is not used", place, hints.USE)


def _setting(failure: Failure) -> Diagnostic | None:
    """`me@x = 3`, `me = 3`, `me<3> = 1`"""
    kinds, start = failure.tokens.kinds, failure.start
    if kinds[start] != "M" or failure.at != start + 1:
        return None
    if kinds.startswith("@n=", failure.at):
        place = failure.tokens.span(start, start + 2)
        message = f"`{shorten(place.text)}` cannot be set: other coordinates are put in by a remap"
        return failure.error("cannot-set", message, place, f"{hints.SETTING}; a remap: {hints.REMAP}")
    if failure.found == "@":
        place = failure.tokens.span(start, failure.at + 1)
        return failure.error("not-a-statement", "this value is not used", place, hints.USE)
    message = "`me` is the environment and takes no value itself"
    return failure.error("bad-setting", message, failure.tokens.span(start), hints.SETTING)


def _spindle(failure: Failure) -> Diagnostic | None:
    """Whatever is wrong in the head of a spindle."""
    if failure.tokens.kinds[failure.start] != "S" or failure.at == failure.start:
        return None
    if failure.inside == "(":
        return _parameters(failure)
    if failure.expected == "binds" and failure.found in (":", "-", "o"):
        message = "the outputs of a spindle stand behind `::`"
        return failure.error("missing-binds", message, failure.place, hints.SPINDLE)
    if failure.expected == "binds" and failure.found != "<":
        return failure.missing("the list of outputs", "missing-outputs", hints.SPINDLE)
    return _missing_part(failure, _SPINDLE_PARTS, hints.SPINDLE)


def _parameters(failure: Failure) -> Diagnostic | None:
    if failure.found == "," and failure.before == NAME:
        return _behind_comma(failure, _parameters)
    if failure.before == NAME and failure.found in ("=", ":"):
        return failure.error("bad-parameter", "a parameter has no default", failure.place, hints.SPINDLE)
    if failure.before == NAME and failure.found == NAME:
        return failure.missing("a comma", "missing-comma")
    if failure.found == ")":
        return failure.missing("a parameter", "missing-parameter")
    return failure.error("bad-parameter", "a parameter is a name", failure.place, hints.SPINDLE)


def _loop(failure: Failure) -> Diagnostic | None:
    """Whatever is wrong in the head of a loop; its bounds are expressions like others."""
    if failure.tokens.kinds[failure.start] != "F" or failure.needs_operand:
        return None
    if failure.expected == "to" and failure.found == ",":
        return failure.error("missing-to", "between the bounds of a loop stands `to`", failure.place, hints.LOOP)
    return _missing_part(failure, _LOOP_PARTS, hints.LOOP)


def _missing_part(failure: Failure, parts: Mapping[str, tuple[str, str]], form: str) -> Diagnostic | None:
    part = parts.get(failure.expected)
    return failure.missing(*part, form) if part else None


EXPLANATIONS: Final[tuple[Explanation, ...]] = (
    _keyword_as_name,
    _setting,
    _bad_start,
    _double_equals,
    _continued_line,
    _name_alone,
    _output_list,
    _spindle,
    _loop,
    _missing_equals,
    _missing_name,
    _unsettable,
    _unused,
)
