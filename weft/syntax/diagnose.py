"""Explains, in a live coder's words, text that the grammar does not accept."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, TypeAlias

from weft.errors import Diagnostic, Span, did_you_mean
from weft.syntax.foreign import CALLS, FORMS, FUNCTION_WORDS, METHODS, NAMESPACES, STRANDS, VARIABLE_WORDS, hint_for
from weft.syntax.scanner import (
    BECOMES, BINDS, BUNDLE_FORM, CHOICE_FORM, END, GLUED, KEYWORDS, LOOP_FORM, NAME, NUMBER, OPENING, OPERAND_ENDS,
    OPERATOR, PRAGMA, REMAP_FORM, SETTING_FORM, SPINDLE_FORM, STATEMENT_FORM, TEXT, USE_FORM, Tokens, shorten
)

# --- the place where the grammar stopped matching ---

# The tokens that must be followed by a value. A > may also close a bundle; there, `ParseFailure.expected` decides.
_BEFORE_OPERAND: Final = "-<NITE([,=a~:t" + OPERATOR
# The tokens with which a value can start. It can also start with - and <, but after a value these are operators.
_STARTS_OPERAND: Final = NAME + NUMBER + TEXT + "MIN(["


@dataclass(frozen=True, slots=True)
class OpenConstruct:
    """Something open: a bracket, `<` of a bundle, `list` of names, `if` that waits for `then`, `then` for `else`."""

    kind: str
    index: int


@dataclass(frozen=True)
class ParseFailure:
    """Where the grammar stopped: `at` is the first token that does not fit into the statement that begins at `start`,
    and `expected` is the last rule that was tried there."""

    tokens: Tokens
    start: int
    at: int
    expected: str
    statements: Collection[str]
    """The names of the output statements."""

    @property
    def found(self) -> str:
        """The kind of the token that does not fit."""
        return self.tokens.kinds[self.at]

    @property
    def text(self) -> str:
        return shorten(self.tokens.text(self.at))

    @property
    def place(self) -> Span:
        return self.tokens.span(self.at)

    @property
    def before(self) -> str:
        """The kind of the last token that fits; empty at the start of the statement."""
        return self.tokens.kinds[self.at - 1] if self.at > self.start else ""

    @property
    def text_before(self) -> str:
        return shorten(self.tokens.text(self.at - 1))

    @property
    def is_at_end(self) -> bool:
        """Whether the statement ends here."""
        return self.found in (";", "}", END, PRAGMA)

    @property
    def is_cut_off(self) -> bool:
        """Whether the statement ends here, or at least its line."""
        return self.is_at_end or self.tokens.fresh[self.at]

    @property
    def is_word(self) -> bool:
        """Whether a keyword was found."""
        return self.text in KEYWORDS and self.found != NAME

    @property
    def needs_operand(self) -> bool:
        """Whether a value must follow here."""
        if self.inside == "list" or self.tokens.kinds[self.start] == "S":
            return False
        if self.before in (">", GLUED):
            return self.expected.startswith("piece")
        return self.before != "" and self.before in _BEFORE_OPERAND

    @property
    def starts_operand(self) -> bool:
        """Whether a value was found where none fits."""
        return self.found in _STARTS_OPERAND

    @cached_property
    def frames(self) -> list[OpenConstruct]:
        """The constructs that are open at this place, the innermost last."""
        return _open_frames(self.tokens.kinds, self.start, self.at)

    @property
    def inside(self) -> str:
        """The kind of the innermost thing that is open."""
        return self.frames[-1].kind if self.frames else ""

    @property
    def is_in_bundle(self) -> bool:
        """Whether the innermost bracket is that of a bundle."""
        brackets = [frame.kind for frame in self.frames if frame.kind not in ("if", "then")]
        return brackets[-1:] == ["<"]

    def error(
        self, code: str, message: str, hint: str | None = None, place: Span | None = None, *related: tuple[Span, str]
    ) -> Diagnostic:
        """An error at `place`, by default at the token that does not fit."""
        return Diagnostic.of(code, message, place or self.place, hint, related)

    def missing(self, what: str, code: str, hint: str | None = None) -> Diagnostic:
        """Something that has to follow the last token that fits, or stand between it and the next."""
        kinds, first, last = self.tokens.kinds, self.at - 1, self.at
        if kinds[first - 1] == "@" and first - 2 >= self.start:
            first -= 2
        if self.is_cut_off:
            message = f"{what} is missing after {self._quoted(first, self.at)}"
            return self.error(code, message, hint, self.tokens.after(self.at - 1))
        if kinds[last + 1] == "@" and kinds[last + 2] == NAME:
            last += 2
        message = f"{what} is missing between {self._quoted(first, self.at)} and {self._quoted(self.at, last + 1)}"
        return self.error(code, message, hint, self.tokens.span(first, last))

    def reserved_word(self) -> Diagnostic:
        """A keyword where a name has to stand."""
        message = f"`{self.text}` is a word of the language and cannot be a name"
        return self.error("keyword-as-name", message, f"choose another name, such as {self.text}_")

    def unclosed_angle(self) -> Diagnostic:
        related = (self.tokens.span(self.frames[-1].index), "this `<` is still open")
        return self.error("unclosed-bracket", "`>` is missing here", None, self.tokens.after(self.at - 1), related)

    def _quoted(self, first: int, stop: int) -> str:
        """A few tokens as a message shows them."""
        text = "".join(self.tokens.text(index) for index in range(first, stop))
        return f"`{shorten(text)}`"


# Returns the error if it recognises the mistake.
Explanation: TypeAlias = Callable[[ParseFailure], Diagnostic | None]


def _open_frames(kinds: str, start: int, stop: int) -> list[OpenConstruct]:
    frames: list[OpenConstruct] = []
    for index in range(start, stop):
        kind = kinds[index]
        innermost = frames[-1].kind if frames else ""
        if kind in "([{":
            frames.append(OpenConstruct(kind, index))
        elif kind in OPENING:
            while frames and frames.pop().kind != OPENING[kind]:
                pass
        elif kind == "<":
            # An operator after a value, a list after a name that is bound, and otherwise a bundle.
            is_first_name = index == start + 1 or (index == start + 2 and kinds[start] in "LO")
            if is_first_name or BINDS in (kinds[index - 1], kinds[index - 2]):
                frames.append(OpenConstruct("list", index))
            elif kinds[index - 1] not in OPERAND_ENDS:
                frames.append(OpenConstruct("<", index))
        elif kind in (">", GLUED):
            # Directly before another > or = it is more likely an operator in a bundle.
            if innermost == "list" or (innermost == "<" and kind == ">"):
                frames.pop()
        elif kind == "I":
            frames.append(OpenConstruct("if", index))
        elif kind == "T" and innermost == "if":
            frames[-1] = OpenConstruct("then", frames[-1].index)
        elif kind == "E" and innermost == "then":
            frames.pop()
    return frames


# --- mistakes in expressions: missing and misplaced values, operators and brackets ---

_MISSING_WORD: Final = {"if": ("then", "missing-then"), "then": ("else", "missing-else")}


def _pragma(failure: ParseFailure) -> Diagnostic | None:
    """A pragma between brackets."""
    if failure.found != PRAGMA or not failure.frames:
        return None
    return failure.error("misplaced-pragma", "a pragma cannot be inside a statement")


def _missing_expression(failure: ParseFailure) -> Diagnostic | None:
    """`a = b + * c`, `f(x, )`, `a = in + 1`, `a = me + 1`"""
    if not failure.needs_operand:
        return None
    if failure.found == "O" and failure.tokens.kinds.startswith(".n", failure.at + 1):
        name = shorten(failure.tokens.text(failure.at + 2))
        return failure.error("dot", "an output is read by its name alone", f"write {name}")
    if failure.found in "itSFLO":
        return failure.reserved_word()
    if failure.found == "M":
        return failure.error("bare-me", "`me` needs a coordinate", "such as me@x or me@time")
    if failure.text == "<<" or (failure.found == "<" and failure.is_in_bundle):
        return failure.error("nested-bundle", "a bundle cannot contain a bundle")
    if failure.found == "[":
        return failure.error("misplaced-bracket", "an expression cannot start with `[`", BUNDLE_FORM)
    hint = None
    if failure.text == "+":
        hint = "a number has no sign +; leave it out"
    elif failure.found == PRAGMA:
        hint = "a pragma cannot be inside a statement"
    elif failure.found == "=" and failure.before == "=":
        hint = "to compare, write == without a space"
    return failure.missing("an expression", "missing-expression", hint)


# What follows `|>` if its call is missing, or if it is meant as an assignment of outputs.
_NO_CALL: Final = (*OPENING, "O", ",", ";", PRAGMA, END)


def _pipe(failure: ParseFailure) -> Diagnostic | None:
    """`a |>`, `a |> out()`"""
    if failure.at == failure.start or failure.text_before != "|>" or failure.found not in _NO_CALL:
        return None
    if failure.found == "O":
        hint = "to show a picture, write display(…); to play a sound, play(…); in a spindle, out = …"
        return failure.error("misplaced-token", f"`{failure.text}` cannot follow `|>`", hint)
    return failure.missing("a call", "pipe-needs-a-call", "as in a |> f(0.5)")


def _unopened_angle(failure: ParseFailure) -> Diagnostic | None:
    """`unit(0.6, me@x>)`"""
    if failure.before != ">" or failure.inside not in ("(", "[") or failure.found not in OPENING:
        return None
    opened = failure.frames[-1].index
    if "," not in failure.tokens.kinds[opened : failure.at]:
        return None
    first = failure.tokens.span(opened + 1)
    related = (failure.tokens.span(failure.at - 1), "this `>` closes a bundle")
    place = Span(first.source, first.start, first.start)
    return failure.error("stray-bracket", "`<` is missing here", None, place, related)


def _missing_then_or_else(failure: ParseFailure) -> Diagnostic | None:
    """`if a then b`, `if a then b els c`"""
    if failure.inside not in _MISSING_WORD or failure.needs_operand:
        return None
    word, code = _MISSING_WORD[failure.inside]
    if failure.found == NAME:
        hint = did_you_mean(failure.text, [word])
        return failure.error(code, f"`{word}` is missing here", hint) if hint else None
    ends_here = failure.is_cut_off or failure.found in (*OPENING, ",", ":", "{", "T", "E", ">", GLUED)
    return failure.missing(f"`{word}`", code, CHOICE_FORM) if ends_here else None


def _bare_angle(failure: ParseFailure) -> Diagnostic | None:
    """`<a < b, c>`, `<a > b, c>`"""
    if failure.found == "<" and failure.is_in_bundle:
        symbol, place = "<", failure.place
    elif failure.starts_operand and failure.before == ">" and _more_of_bundle_follows(failure):
        symbol, place = ">", failure.tokens.span(failure.at - 1)
    else:
        return None
    hint = f"write {symbol}{symbol}, or put the comparison in parentheses"
    return failure.error("bare-angle", f"in a bundle, `{symbol}` does not compare", hint, place)


def _more_of_bundle_follows(failure: ParseFailure) -> bool:
    """Whether the line continues as if the > before this place had not closed the bundle."""
    kinds, fresh = failure.tokens.kinds, failure.tokens.fresh
    for index in range(failure.at, len(kinds)):
        if kinds[index] in ";}Z=" or fresh[index]:
            return False
        if kinds[index] in (",", ">"):
            return True
    return False


def _missing_operator(failure: ParseFailure) -> Diagnostic | None:
    """`a = 2 sin(me@x)`, `f(a b)`"""
    if failure.needs_operand or not failure.starts_operand or not failure.before:
        return None
    if failure.inside == "<" and failure.is_cut_off:
        return None
    hint = None
    if failure.found == "I":
        hint = CHOICE_FORM
    elif failure.before == NUMBER and failure.found in (NAME, "M", "(") and not failure.is_cut_off:
        hint = f"a product is written {failure.text_before} * …"
    takes_comma = failure.inside == "<"
    if failure.inside == "(":
        before = failure.frames[-1].index - 1
        takes_comma = before >= failure.start and failure.tokens.kinds[before] in OPERAND_ENDS
    return failure.missing("an operator or a comma" if takes_comma else "an operator", "missing-operator", hint)


def _equals(failure: ParseFailure) -> Diagnostic | None:
    """`if a = 1 then …`, `f(x = 1)`, `a = (b += 1)`"""
    if failure.found not in ("=", BECOMES):
        return None
    if failure.tokens.fresh[failure.at] and not failure.inside:
        return failure.error("missing-name", f"a name is missing before `{failure.text}`")
    kinds, name = failure.tokens.kinds, failure.at - 1
    if failure.inside == "(" and failure.before == NAME and kinds[name - 1] in ("(", ","):
        return failure.error("label-equals", "a label takes a colon", f"write {failure.text_before}: …")
    message = f"`{failure.text}` cannot be used in an expression"
    compare = "to compare, write ==" if failure.found == "=" else None
    return failure.error("misplaced-equals", message, compare)


def _unclosed_angle(failure: ParseFailure) -> Diagnostic | None:
    """`a = <1, 2`"""
    if failure.inside != "<" or not (failure.is_cut_off or failure.found in OPENING):
        return None
    return failure.unclosed_angle()


# Tokens that cannot be where they are, in any construct.
_MISPLACED: Final[Mapping[str, tuple[str, str, str | None]]] = {
    ",": ("stray-comma", "only one value is allowed here", BUNDLE_FORM),
    ":": ("misplaced-colon", "`:` is not allowed here", "labels are used in calls, such as clamp(x, lo: 0)"),
    BINDS: ("misplaced-binding", "`::` is not allowed here", None),
    "~": ("misplaced-map", "`~` is used only in a remap, once for each map", f"as in {REMAP_FORM}"),
    "{": ("misplaced-block", "only spindles and loops have a block", None),
    "T": ("stray-word", "`then` has no `if` before it", CHOICE_FORM),
    "E": ("stray-word", "`else` has no `if … then` before it", CHOICE_FORM),
    "i": ("stray-word", "`in` is used only in loops", "as in for i in (0 to 7) { … }"),
    "t": ("stray-word", "`to` is used only in loops", "as in for i in (0 to 7) { … }"),
}


def _misplaced(failure: ParseFailure) -> Diagnostic | None:
    """`a<r, g> = 1, 2`, `f(x):a<v>`, `f(3: x)`, `a = f(x)::b<v>`, `a.b`, `a@3`, `a = b ~ c`, `a = b else c`"""
    kinds = failure.tokens.kinds
    precedes_name = kinds.startswith(NAME, failure.at + 1)
    match failure.found:
        case "," if failure.inside == "[":
            return failure.error("stray-comma", "an index is one value", "the members one by one: a[0], a[1]")
        case ":" if failure.inside == "(":
            place = failure.tokens.span(failure.at - 1, failure.at)
            return failure.error("bad-label", "a label is a single name", "such as clamp(x, lo: 0)", place)
        case ":" if failure.before == ")" and precedes_name:
            return failure.error("single-colon", "a call is bound with `::`")
        case "d" if "=" in kinds[failure.start : failure.at]:
            hint = "a call is bound by `=` or by `::`, not by both"
            return failure.error("misplaced-binding", "this has a name already: `=` gave it one", hint)
        case "." if failure.before in (NAME, "M", ")", "]", ">") and precedes_name:
            return _dot(failure)
        case "@" if not precedes_name:
            return failure.error("missing-name", "`@` takes the name of an output")
    if failure.found not in _MISPLACED:
        return None
    code, message, form = _MISPLACED[failure.found]
    return failure.error(code, message, form)


def _dot(failure: ParseFailure) -> Diagnostic:
    """`img.r`, `img.r(me@x ~ 1 - me@x)`, `Math.PI`, `a.kaleid(5)`, `SinOsc.ar(440)`"""
    name, before = shorten(failure.tokens.text(failure.at + 1)), failure.text_before
    after = failure.at + 2
    is_remap = "~" in failure.tokens.kinds[after : failure.tokens.partners.get(after, after)]
    if failure.tokens.kinds[after] == "(" and not is_remap:
        hint = hint_for(before) if before in CALLS else FORMS.get(name)
        if failure.before == NAME and len(name) == 1:  # a remap by position of an output
            hint = f"an output is picked with `@`: write {before}@{name}(…)"
        return failure.error("dot", "a call follows no dot", hint or f"write … |> {METHODS.get(name, name)}(…)")
    if (before in NAMESPACES or failure.before == "M") and name in STRANDS:
        place = failure.tokens.span(failure.at - 1, failure.at + 1)
        written = failure.error("dot", "nothing is picked with a dot", f"write {STRANDS[name]}", place)
        return replace(written, fix=(place, STRANDS[name]))
    picked = before if failure.before in (NAME, "M") else "…"
    found = failure.error("dot", "an output is picked with `@`, not with a dot", f"write {picked}@{name}")
    return replace(found, fix=(failure.place, "@"))


# --- mistakes at the start of a statement: names, output lists, settings, spindles and loops ---

_BOUND_HEAD: Final = re.compile(r"(?:[LO]n|[LO]?n<n(?:,n)*[>g]|M<n[>g])\Z")
# How other languages define a function: `f(x, y) = …`.
_DEFINITION: Final = re.compile(r"\w{1,20}\((?:\w{1,20}(?:, ?\w{1,20}){0,4})?\)")
_COUNT_HEAD: Final = re.compile(r"n<-*0[>g]?\Z")
# The rules that were tried where a name has to stand.
_TAKES_NAME: Final = ("name", "names", "results")


# What each rule matches, and the code of the error if it is missing.
_SPINDLE_PARTS: Final[Mapping[str, tuple[str, str]]] = {
    "name": ("a name", "missing-name"),
    "open": ("the list of parameters", "missing-parameters"),
    "binds": ("`::`", "missing-binds"),
    "results": ("the list of outputs", "missing-outputs"),
    "begin": ("`{`", "missing-block"),
}
_LOOP_PARTS: Final[Mapping[str, tuple[str, str]]] = {
    "name": ("the name of the loop's variable", "missing-name"),
    "in": ("`in`", "missing-in"),
    "open": ("`(`", "missing-parentheses"),
    "to": ("`to`", "missing-to"),
    "begin": ("`{`", "missing-block"),
}


def _keyword_in_head(failure: ParseFailure) -> Diagnostic | None:
    """`in = 3`, `let to = 3`, `a<in> = 3`, `spindle if(x) …`"""
    if not failure.is_word or failure.needs_operand:
        return None
    if failure.at == failure.start:
        takes_name = failure.tokens.kinds[failure.at + 1] in ("=", "<", BECOMES)
    else:
        is_parameter = failure.tokens.kinds[failure.start] == "S" and failure.inside == "("
        takes_name = failure.expected in _TAKES_NAME or failure.before == "," or is_parameter
    return failure.reserved_word() if takes_name else None


def _bad_start(failure: ParseFailure) -> Diagnostic | None:
    """`2 + a`, `if a then b else c`"""
    if failure.at != failure.start:
        return None
    if failure.found == "=":
        return failure.error("missing-name", "a name is missing before `=`")
    message = f"a statement cannot start with `{failure.text}`"
    hint = "it chooses a value: a = if c then x else y" if failure.found == "I" else STATEMENT_FORM
    return failure.error("bad-start", message, hint)


def _double_equals(failure: ParseFailure) -> Diagnostic | None:
    """`a == 3`, `a<v> == 3`"""
    if failure.text not in ("==", "===") or not _is_head(failure):
        return None
    return failure.error("double-equals", f"`{failure.text}` compares; a single `=` gives a name its value")


def _is_head(failure: ParseFailure) -> bool:
    """Whether nothing but the name, with its outputs, stands before this place."""
    head = failure.tokens.kinds[failure.start : failure.at]
    return head == NAME or bool(_BOUND_HEAD.match(head))


def _continued_line(failure: ParseFailure) -> Diagnostic | None:
    """A line that starts with a bracket but cannot continue the line above."""
    if not failure.tokens.fresh[failure.at] or failure.found not in ("(", "[", "<") or failure.frames:
        return None
    if failure.needs_operand:
        return None
    message = f"a line that starts with `{failure.text}` continues the line above"
    return failure.error("continued-line", message, STATEMENT_FORM)


def _name_alone(failure: ParseFailure) -> Diagnostic | None:
    """`noise`, `display a`, `var x = 3`, `a: 3`, `a * 2`"""
    if failure.before != NAME or failure.at != failure.start + 1:
        return None
    name, place = failure.text_before, failure.tokens.span(failure.start)
    if name in failure.statements:
        hint = f"write {name}(…)"
        return failure.error("missing-parentheses", f"`{name}` takes its arguments in parentheses", hint, place)
    if failure.found == ":":
        return failure.error("single-colon", "a name gets its value with `=`", f"write {name} = …")
    if failure.found == BINDS:
        message = "`::` binds a call or a remap; a name gets its value with `=`"
        return failure.error("misplaced-binding", message, f"as in a<v> = {name}")
    if failure.found == "." and failure.tokens.kinds[failure.at + 1] == NAME:
        output = shorten(failure.tokens.text(failure.at + 1))
        return failure.error("dot", "an output is bound in angle brackets", f"write {name}<{output}> = …")
    if failure.is_cut_off or failure.starts_operand or failure.is_word:
        hint = _hint_for_word(name, failure.text if failure.found == NAME else "")
        return failure.error("not-a-statement", f"`{name}` alone is not a statement", hint, place)
    return None if failure.found == "<" else _unused(failure)


def _hint_for_word(word: str, following: str) -> str:
    if word in VARIABLE_WORDS:
        return f"a name is bound without such a word: write {following or 'a'} = …"
    if word in FUNCTION_WORDS:
        return FORMS.get(following, SPINDLE_FORM)
    return FORMS.get(word) or did_you_mean(word, ["let", "spindle", "for", "out"]) or f"write {word} = …"


def _output_list(failure: ParseFailure) -> Diagnostic | None:
    """`a<> = 1`, `a<v = 1`, `a<v w> = 1`, `a<3> = 1`"""
    head = failure.tokens.kinds[failure.start : failure.at]
    if _COUNT_HEAD.match(head) and failure.found != "(":
        place = failure.tokens.span(failure.start + 2)
        return failure.error("bad-output", "an output has a name, not a number", "such as a<v> = …", place)
    if failure.inside != "list":
        return None
    if head.startswith("M") and (failure.before == "<" or failure.found == ","):
        return failure.error("bad-setting", "a setting has one name", SETTING_FORM)
    if failure.found == ",":
        return _after_comma(failure, _output_list)
    if failure.before in ("<", ","):
        if failure.found == NUMBER:
            return failure.error("bad-output", "an output has a name, not a number", "such as a<v> = …")
        return failure.missing("a name", "missing-name")
    if failure.found == NAME and not failure.is_cut_off:
        return failure.missing("a comma", "missing-comma")
    return failure.unclosed_angle()


def _after_comma(failure: ParseFailure, explain: Explanation) -> Diagnostic | None:
    """Explains what follows a comma in a list of names; the grammar stops before a comma that no name follows."""
    after = replace(failure, at=failure.at + 1)
    return _keyword_in_head(after) or explain(after)


def _missing_equals(failure: ParseFailure) -> Diagnostic | None:
    """`a<v> 3`, `let a`, `me<bpm> 120`"""
    if not _is_head(failure) or failure.at == failure.start + 1:
        return None
    kinds, start = failure.tokens.kinds, failure.start
    if kinds.startswith(")n<", start - 1) and not failure.tokens.fresh[start]:
        return replace(failure, start=start - 1, at=start).missing("`::`", "missing-binds")
    return failure.missing("`=`", "missing-equals")


def _missing_name(failure: ParseFailure) -> Diagnostic | None:
    """`let 3`, `f(x)::`"""
    if failure.before == BINDS:
        return failure.missing("a name", "missing-name", "as in f(x)::name<v>")
    if failure.before == "O" and failure.found == "." and failure.tokens.kinds[failure.at + 1] == NAME:
        name = shorten(failure.tokens.text(failure.at + 1))
        return failure.error("dot", "an output is assigned by its name", f"in a spindle, write {name} = …")
    if failure.before in ("L", "O") and failure.at == failure.start + 1:
        return failure.missing("a name", "missing-name")
    if failure.before == NAME and failure.tokens.kinds[failure.at - 2] == BINDS:
        name = failure.text_before
        place = failure.tokens.after(failure.at - 1)
        return failure.error("missing-outputs", f"the outputs of `{name}` are missing", f"such as ::{name}<v>", place)
    return None


def _unsettable(failure: ParseFailure) -> Diagnostic | None:
    """`a@v = 3`, `a[0] = 1`, `f(x) = 3`"""
    kinds, start = failure.tokens.kinds, failure.start
    if failure.found not in ("=", BECOMES) or kinds[start] != NAME or failure.frames:
        return None
    if "=" in kinds[start : failure.at] or failure.at == start + 1:
        return None
    if failure.tokens.fresh[failure.at]:
        return failure.error("missing-name", f"a name is missing before `{failure.text}`")
    place = failure.tokens.span(start, failure.at - 1)
    if failure.before == "]":
        return failure.error("cannot-set", "an element cannot be set", "bind the whole bundle: a = <1, 2, 3>", place)
    hint = f"write spindle {place.text} :: v {{ v = … }}" if _DEFINITION.fullmatch(place.text) else SPINDLE_FORM
    return failure.error("cannot-set", "a call cannot be set", hint, place)


def _unused(failure: ParseFailure) -> Diagnostic | None:
    """`img@r * 2`, `f(x) + 1`"""
    kinds, start = failure.tokens.kinds, failure.start
    if kinds[start] != NAME or failure.frames or "=" in kinds[start : failure.at] or failure.needs_operand:
        return None
    if failure.found not in ("-", "<", OPERATOR, ">", GLUED):
        return None
    place = failure.tokens.span(start, failure.at - 1)
    hint = USE_FORM
    if failure.text in ("+", "-") and failure.tokens.text(failure.at + 1) == failure.text:
        hint = f"in a spindle, write {shorten(place.text)} {failure.text}= 1"
    return failure.error("not-a-statement", "this value is not used", hint, place)


def _setting(failure: ParseFailure) -> Diagnostic | None:
    """`me@x = 3`, `me = 3`, `me<3> = 1`"""
    kinds, start = failure.tokens.kinds, failure.start
    if kinds[start] != "M" or failure.at != start + 1:
        return None
    if kinds.startswith("@n=", failure.at):
        place = failure.tokens.span(start, start + 2)
        message = f"`{shorten(place.text)}` cannot be set: other coordinates are put in by a remap"
        return failure.error("cannot-set", message, f"{SETTING_FORM}; a remap: {REMAP_FORM}", place)
    if failure.found == "@":
        place = failure.tokens.span(start, failure.at + 1)
        return failure.error("not-a-statement", "this value is not used", USE_FORM, place)
    message = "`me` is the environment and takes no value itself"
    return failure.error("bad-setting", message, SETTING_FORM, failure.tokens.span(start))


def _spindle(failure: ParseFailure) -> Diagnostic | None:
    """Any mistake in the head of a spindle."""
    if failure.tokens.kinds[failure.start] != "S" or failure.at == failure.start:
        return None
    if failure.inside == "(":
        return _parameters(failure)
    if failure.expected == "binds" and failure.found in (":", "-", "o"):
        return failure.error("missing-binds", "the outputs of a spindle follow `::`", SPINDLE_FORM)
    if failure.expected == "binds" and failure.found != "<":
        return failure.missing("the list of outputs", "missing-outputs", SPINDLE_FORM)
    part = _SPINDLE_PARTS.get(failure.expected)
    return failure.missing(*part, SPINDLE_FORM) if part else None


def _parameters(failure: ParseFailure) -> Diagnostic | None:
    if failure.found == "," and failure.before == NAME:
        return _after_comma(failure, _parameters)
    if failure.before == NAME and failure.found == ":":
        return failure.error("bad-parameter", "a default is written with `=`", "spindle f(x, size = 0.5) :: v { … }")
    if failure.before == NAME and failure.found == NAME:
        return failure.missing("a comma", "missing-comma")
    if failure.found == ")":
        return failure.missing("a parameter", "missing-parameter")
    return failure.error("bad-parameter", "a parameter is a name", SPINDLE_FORM)


def _loop(failure: ParseFailure) -> Diagnostic | None:
    """Any mistake in the head of a loop, except in its bounds, which are ordinary expressions."""
    if failure.tokens.kinds[failure.start] != "F" or failure.needs_operand:
        return None
    if failure.expected == "to" and failure.found == ",":
        return failure.error("missing-to", "the bounds of a loop are separated by `to`", LOOP_FORM)
    part = _LOOP_PARTS.get(failure.expected)
    return failure.missing(*part, LOOP_FORM) if part else None


# The first that recognises the mistake explains it.
_EXPLANATIONS: Final[tuple[Explanation, ...]] = (
    # at the start of a statement
    _keyword_in_head, _setting, _bad_start, _double_equals, _continued_line, _name_alone, _output_list, _spindle, _loop,
    _missing_equals, _missing_name, _unsettable, _unused,
    # in an expression
    _pragma, _pipe, _unopened_angle, _missing_then_or_else, _missing_expression, _bare_angle, _missing_operator,
    _equals, _unclosed_angle, _misplaced,
)  # fmt: skip


def diagnose(failure: ParseFailure) -> Diagnostic:
    """The error for a place where the grammar stopped."""
    for explain in _EXPLANATIONS:
        if found := explain(failure):
            return found
    if failure.is_at_end:
        message = f"this statement breaks off after `{failure.text_before}`"
        return failure.error("incomplete-statement", message, None, failure.tokens.span(failure.at - 1))
    return failure.error("misplaced-token", f"`{failure.text}` cannot follow `{failure.text_before}`")
