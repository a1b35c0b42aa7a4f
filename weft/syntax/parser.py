"""The parser: the grammar of the language, as a PEG over kinds of tokens, and the syntax tree made from its matches.

The parser takes one item after another and continues after a broken one. The matcher recurses with nesting, which the
layout limits to `MAX_DEPTH`, by up to `FRAMES_PER_LEVEL` Python calls a level. From Python 3.11 on these take no C
stack; on 3.10 a thread that parses needs a stack of 16 MB.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from typing import Final

from parsimonious.exceptions import ParseError
from parsimonious.grammar import Grammar
from parsimonious.nodes import Node

from weft.contexts import ContextTable
from weft.errors import Diagnostic, Report, Source
from weft.ops import BINARY
from weft.syntax.ast import BodyStatement, For, OutputStatement, Program, SpindleDefinition, Statement
from weft.syntax.diagnose import ParseFailure, diagnose
from weft.syntax.layout import arrange
from weft.syntax.pragmas import read_pragma
from weft.syntax.scanner import CALL, END, GLUED, NAME, OPERAND_ENDS, PRAGMA, PRAGMA_END, Tokens, scan
from weft.syntax.statements import StatementBuilder

# The grammar, as a PEG over the string of token kinds (see `scanner`): one character a token.
#
# n name   0 number   s string   a += -= *= /=   d ::   P…p pragma   S spindle   L let   O out   M me F for   i in   t
# to   I if   T then   E else   N not   g a > right before > or = | |>   o any binary operator that has no further
# meaning; every other character is its own kind
#
# Rules stay flat: an expression is a row of operands with operators between them, and precedence is resolved
# afterwards from the table of operators. The recursion of the matcher therefore grows with brackets and `if`s alone.
# Blocks are opened and closed by items of their own; the parser keeps the stack of them, so that it can continue after
# a broken statement.

_STATEMENTS: Final = r"""
item        = binding / results_of / call / setting / pragma / spindle / loop / piped

binding     = intro? name part? becomes expr ends
part        = outputs / access
results_of  = ~r"O=" expr ends
intro       = ~r"[LO]"
becomes     = ~r"[=a]"

call        = name count? postfix+ bound? ends
count       = less ~r"-*[0n]" greater
bound       = binds name outputs
piped       = ~r"(?=[^;{}d]*[|])" expr bound? ends

setting     = me less name greater equals expr ends
pragma      = ~r"P[^p]*p"

spindle     = ~r"S" name open parameters? close binds results begin
parameters  = parameter (comma parameter)*
parameter   = name outputs? default?
default     = equals expr
results     = outputs / name
loop        = ~r"F" name in open expr to expr close begin

# What must follow a statement, so that an expression that breaks off is an error at that place.
ends        = ~r"(?=[;}PnLOMSFZ])"

outputs     = less names greater
names       = ~r"n(?:,n)*"
"""

# Every operand begins with its signs, if it has any. A `run` is a row of operands without brackets, as most
# expressions are: one match instead of dozens.
_OPERANDS: Final = r"""
chain       = base postfix*
inner_chain = inner_base postfix*
base        = inner_base / bundle
inner_base  = ~r"M@n|n(?:@n)?" / group / tuple
postfix     = arguments / index / access
group       = open expr close
tuple       = open expr (comma expr)+ close
index       = left_square expr right_square
access      = ~r"@n"
arguments   = open list? close
list        = argument (comma argument)*
argument    = plain / full
plain       = ~r"(?:n:)?{run}(?:~{run})?(?=[,)])"
full        = label? expr map?
map         = tilde expr
label       = ~r"n:"
signs       = ~r"[-N]+"

mapping     = open mapped (comma mapped)* close postfix*
mapped      = expr map
literal     = ~r"[0s]"

bundle      = loosely / strictly / each_loosely / each_strictly
loosely     = less expr_loose (comma expr_loose)* greater
strictly    = less expr_strict (comma expr_strict)* greater
each_loosely  = less expr_loose range greater
each_strictly = less expr_strict range greater
range       = ~r"F" name in open expr to expr close
"""

# An expression is read in three ways. `loose` is directly inside a bundle, where no bundle can start and a bare < or >
# is not an operator; `strict` also leaves >= and >> alone, for a bundle that is closed by their first character.
_EXPRESSION: Final = r"""
expr{x}     = piece{x} rest{x}*
rest{x}     = step{x} / pipe{x}
step{x}     = operator{x} piece{x}
pipe{x}     = ~r"[|]" target{x}
target{x}   = mapping / {chain} / literal
operator{x} = ~r"{operator}"
piece{x}    = run{x} / {chain} / prefixed{x}
run{x}      = ~r"{run}"
prefixed{x} = prefix{x}+ tail{x}
prefix{x}   = signs / choice{x}
tail{x}     = run{x} / {chain}
choice{x}   = if expr then expr{x} else
"""

_TOKENS: Final = r"""
name = "n"
me = "M"
in = "i"
to = "t"
if = "I"
then = "T"
else = "E"
binds = "d"
equals = "="
less = "<"
greater = ~r"[>g]"
comma = ","
tilde = "~"
open = "("
close = ")"
left_square = "["
right_square = "]"
begin = "{"
"""


def spelling(symbol: str) -> str:
    """A binary operator as a string of kinds."""
    if symbol[0] == ">":
        return "g" * (len(symbol) - 1) + symbol[-1]
    return symbol if symbol in "-<" else "o"


def _expression(rules: str, operators: Iterable[str], suffix: str = "", chain: str = "chain") -> str:
    """Rules with the patterns of one reading of an expression."""
    operand = r"[-N]*(?:0|s|(?:M@n|n(?:@n)?)(?![@(\[]))"
    longest_first = sorted(operators, key=lambda s: (-len(s), s))
    operator = "(?:" + "|".join(map(re.escape, longest_first)) + ")"
    parts = {"x": suffix, "operator": operator, "run": f"{operand}(?:{operator}{operand})*", "chain": chain}
    return re.sub(r"\{(x|operator|run|chain)\}", lambda part: parts[part[1]], rules)


@cache
def grammar() -> Grammar:
    """The grammar; built on the first call."""
    full = {spelling(symbol) for symbol in BINARY}
    loose = full - {"<", ">"}
    strict = {s for s in loose if s[0] != "g"}
    readings = (
        _expression(_OPERANDS + _EXPRESSION, full),
        _expression(_EXPRESSION, loose, "_loose", "inner_chain"),
        _expression(_EXPRESSION, strict, "_strict", "inner_chain"),
    )
    return Grammar("\n".join([_STATEMENTS, *readings, _TOKENS]))


# --- the forms of the language besides calls and operators, for `weft help` ---


@dataclass(frozen=True, slots=True)
class FormSpec:
    """One form. `words` are the keywords and other names under which it is looked up, `shown` is how it is written, and
    the example is an expression, or statements."""

    name: str
    words: tuple[str, ...]
    shown: str
    doc: str
    example: str


_ROWS = (
    FormSpec("=", ("let", "strand", "instance"), "name<a, b> = e",
             "an instance with the outputs a and b, read as name@a and name@b; without <…> it has the strands and names"
             " of e, and name means all of them; `let` may precede it",
             "wave<v> = sin(me@x * 20)\ncolour = <me@x, 0.4, me@y> * wave\ndisplay(colour)"),
    FormSpec("@", ("output", "swizzle"), "e@name, e@xy",
             "one member of a bundle, by its name; without names they are x y z w, r g b a or l r, and two to four of"
             " these letters give a bundle",
             "spot<x, y> = <0.3, 0.6>\ndisplay(distance(me@x, me@y, spot@x, spot@y))"),
    FormSpec("|>", ("pipe",), "e |> f(a)", "f(e, a): a call whose first argument stands before it, or maps of e",
             "spindle softer(x, amount) :: v {\n  v = x * amount\n}\nsin(me@x * 20)\n  |> softer(0.5)\n"
             "  |> (me@x ~ me@x * me@x)::wave<v>\ndisplay(wave)"),
    FormSpec("~", ("remap", "map"), "strand(me@x ~ e, me@y ~ e)",
             "the strand at other coordinates, with everything that it is made of",
             "wave<v> = sin(me@x * 20)\ndisplay(wave@v(me@x ~ me@x + 0.1 * sin(me@y * 9)))"),
    FormSpec("if", ("then", "else"), "if c then a else b",
             "a where c is true (not 0), else b; what the other side computes never leaks",
             "if me@x < 0.5 then me@y else 1 - me@y"),
    FormSpec("<>", ("bundle", "tuple"), "<e1, e2, …>",
             "a bundle of several strands, also written (e1, e2, …); whatever is done to it is done member by member;"
             " inside <…>, comparisons are written << and >>",
             "colour = <me@x, 0.4, me@y> * 0.8\ndisplay(colour)"),
    FormSpec("<for>", ("comprehension",), "<e for i in (a to b)>",
             "a bundle with a member for i = a, a + 1, … up to and including b, which are constants",
             "display(sum(<sin(me@x * 9 * i) / i for i in (1 to 8)>))"),
    FormSpec("[]", ("index",), "e[i]", "the i-th value of a bundle or output of an instance, from 0; i may vary",
             "steps<a, b, c> = <0.1, 0.5, 0.9>\ndisplay(steps[me@x * 3])"),
    FormSpec("::", ("bind",), "f(args)::name<a, b>",
             "an instance whose outputs are those of a call or a remap, by position",
             "spindle swap(p, q) :: <a, b> {\n  out a = q\n  out b = p\n}\n"
             "swap(me@x, me@y)::turned<x, y>\ndisplay(turned@x)"),
    FormSpec("<3>", ("multicall",), "f<3>(args)::name<a, b, c>",
             "several calls of a spindle with one output: a bundle gives each its own argument, anything else repeats",
             "spindle wave(speed) :: v {\n  out v = sin(me@x * 20 + me@time * speed)\n}\n"
             "wave<3>(<1, 2, 3>)::c<r, g, b>\ndisplay(c)"),
    FormSpec("spindle", ("out", "default"), "spindle name(p, q<x, y>, r = e) :: <a, b> { … }",
             "a template: called with values for its parameters, it gives its outputs; a parameter with a list takes a"
             " bundle, and one with a default may be left out",
             "spindle disc(cx, cy, radius) :: v {\n  d = distance(me@x, me@y, cx, cy)\n"
             "  out v = smoothstep(radius, radius * 0.9, d)\n}\ndisplay(disc(0.5, 0.5, 0.2))"),
    FormSpec("for", ("in", "to"), "for i in (a to b) { … }",
             "in a spindle: repeats the block for i = a, a + 1, … up to and including b",
             "spindle waves(x) :: v {\n  v = 0\n  for i in (1 to 4) {\n    v += sin(x * i * 9) / i\n  }\n}\n"
             "display(waves(me@x))"),
    FormSpec("+=", ("-=", "*=", "/="), "name += e, name@x += e",
             "in a spindle: the same as name = name + (e), for a local or a member of it; so do -= *= and /=",
             "spindle waves(x) :: v {\n  v = sin(x * 9)\n  v *= 0.5\n  v += 0.5\n}\ndisplay(waves(me@x))"),
    FormSpec("me", ("coordinates",), "me@field, me<setting> = number",
             "where and when a strand is evaluated; settings are set once, with < and >",
             "me<width> = 640\ndisplay(sin(me@x * 20 + me@time))"),
    FormSpec("//", ("comment", "/*"), "// to the end of the line, /* over several */", "a comment, for people only",
             "display(me@x) // a ramp from left to right"),
    FormSpec("///", ("doc",), "/// text",
             "above a spindle: what it does, with @param name text, @returns text and @example code",
             "/// A soft disc.\n/// @param radius how large it is\n/// @returns 1 inside, 0 outside\n"
             "spindle disc(radius) :: v {\n  out v = hypot(me@x - 0.5, me@y - 0.5) < radius\n}\ndisplay(disc(0.2))"),
)  # fmt: skip

FORMS: Mapping[str, FormSpec] = {row.name: row for row in _ROWS}


# --- from text to items, and from items to a program ---

OUTPUT_STATEMENTS: Final = frozenset(ContextTable().statements)
_OUTSIDE: Final = "put it on a line of its own, outside of the braces"

MAX_ERRORS: Final = 50
FRAMES_PER_LEVEL: Final = 60
# Python's own limit leaves room for this depth; ordinary patches nest less.
_SHALLOW: Final = 12

# Tokens that begin a statement of their own even after an expression on the same line.
_OWN_STATEMENT = re.compile(r"n(?:<n(?:,n)*[>g]|@n)?[=a]|[SFLOP]|M(?:<|@n=)")
# The last tokens of a line that a name on the next line does not continue.
_ENDS: Final = OPERAND_ENDS + "}>" + GLUED + PRAGMA_END


def parse(
    source: Source, report: Report, statements: Collection[str] = OUTPUT_STATEMENTS,
    part: tuple[int, int] | None = None,
) -> Program:  # fmt: skip
    """The program of one text, without what it includes, or of the `part` of it between two ends of lines. Errors go to
    the report, and statements with errors are left out. `statements` are the names of the output statements."""
    first = _FirstErrors()
    program = Program(())
    if (found := scan(source, first, part)) and (tokens := arrange(found, statements, first)):
        with _room_for(tokens.depth):
            program = _Parser(tokens, statements, first).program()
    report.add(first.limited())
    return program


class _FirstErrors(Report):
    """Keeps at most `MAX_ERRORS` diagnostics of one text."""

    has_more: bool = False
    """Whether a diagnostic was left out, or the rest of the text was not read."""

    @property
    def is_full(self) -> bool:
        return len(self.diagnostics) >= MAX_ERRORS

    def add(self, found: Iterable[Diagnostic]) -> None:
        if self.is_full:
            self.has_more = True
        else:
            super().add(found)

    def limited(self) -> list[Diagnostic]:
        """The diagnostics that were kept. If there are more, the last one says so."""
        if not self.has_more:
            return self.diagnostics
        *first, last = self
        hint = f"fix those above first: at most {MAX_ERRORS} are reported at once"
        return [*first, Diagnostic.of("too-many-errors", "there are more errors from here on", last.span, hint)]


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


# An item up to its last token, at the latest. A head ends with its brace.
_ITEM = re.compile("P[^p]*p?|[^;{}Z]*.")


@lru_cache(maxsize=1024)
def _matched(kinds: str) -> Node:
    """The match of the item at the start of these kinds. Raises ParseError. Cached, because matching takes half the
    time of parsing, and most items keep their kinds from save to save, even if they move."""
    item: Node = grammar()["item"].match(kinds).children[0]
    return item


def _names_outputs(binding: Node) -> bool:
    """Whether a binding has a list of outputs, which none in a spindle has."""
    part = binding.children[2]
    return bool(part.children) and part.children[0].children[0].expr_name == "outputs"


@dataclass
class _OpenBlock:
    """An open spindle or loop. One in the wrong place is read for its errors and then dropped."""

    head: SpindleDefinition | For
    start: int
    brace: int
    is_misplaced: bool
    body: list[BodyStatement] = field(default_factory=list)


class _Parser:
    """One run over the tokens of one text."""

    def __init__(self, tokens: Tokens, statements: Collection[str], report: _FirstErrors) -> None:
        self._tokens = tokens
        self._names = statements
        self._report = report
        self._statements: list[Statement] = []
        self._blocks: list[_OpenBlock] = []
        self._openings = {closing: opening for opening, closing in tokens.partners.items()}
        self._at = 0
        self._value_from: int | None = None
        """The start of the statement before this place, if that ends in an expression."""
        self._rest_of_error: int | None = None
        """The place where the rest of a reported statement may start."""

    def program(self) -> Program:
        kinds = self._tokens.kinds
        while kinds[self._at] != END and not self._report.is_full:
            if kinds[self._at] not in ";}":
                self._item()
                continue
            opening = self._openings.get(self._at)
            if opening is not None and any(block.brace == opening for block in self._blocks):
                while self._blocks and self._blocks[-1].brace >= opening:
                    self._end_block(self._at)
            self._at += 1
            self._value_from = None
        self._report.has_more |= kinds[self._at] != END
        while self._blocks:
            self._end_block(self._at)
        return Program(tuple(self._statements))

    def _item(self) -> None:
        start, kinds = self._at, self._tokens.kinds
        item_text = _ITEM.match(kinds, start)
        tokens = self._tokens.part(start, item_text.end() if item_text else len(kinds))
        try:
            item = _matched(tokens.kinds)
        except ParseError as error:
            self._fail(start + error.pos, error.expr.name if error.expr else "")
            return
        form = item.expr_name
        is_output = form == "call" and tokens.text(0) in self._names
        if form == "call" and not is_output and not item.children[3].children and self._follows_value():
            self._fail(start, "ends")
            return
        found_before = len(self._report.diagnostics)
        is_inner = form in ("loop", "results_of") or (form == "binding" and not _names_outputs(item))
        if not (is_inner or (form == "call" and not is_output)):
            # A `}` is missing, which was reported: the blocks end before something that is not allowed in them.
            while self._blocks and self._blocks[0].brace not in self._tokens.partners:
                self._end_block(start - 1)
        self._add(item, tokens)
        self._at = start + item.end
        if len(self._report.diagnostics) > found_before and not self._tokens.fresh[self._at]:
            self._rest_of_error = self._at
        self._value_from = start if form in ("binding", "setting") else None

    def _follows_value(self) -> bool:
        """Whether an expression ends directly before this place, on the same line."""
        return self._value_from is not None and not self._tokens.fresh[self._at]

    # --- blocks, and what may be in them ---

    def _add(self, item: Node, tokens: Tokens) -> None:
        """Adds one match of a form of `item`, with its tokens, to the innermost block."""
        build = StatementBuilder(tokens, self._report)
        form = item.expr_name
        if form == "spindle":
            if self._blocks:
                message = "a spindle cannot be defined in another spindle or in a loop"
                self._report.tell("nested-spindle", message, tokens.span(0), _OUTSIDE)
            self._open_block(build.spindle(item), item, bool(self._blocks))
        elif form == "loop":
            if not self._blocks:
                self._report.tell("misplaced-loop", "a loop is allowed only in a spindle", tokens.span(0),
                                   "a bundle has a member for each step: a = <i * 0.1 for i in (0 to 3)>")  # fmt: skip
            self._open_block(build.loop(item), item, not self._blocks)
        elif self._blocks:
            self._add_to_block(item, tokens, build, self._blocks[-1].body)
        elif found := self._build_statement(item, tokens, build):
            self._statements.append(found)

    def _build_statement(self, item: Node, tokens: Tokens, build: StatementBuilder) -> Statement | None:
        match item.expr_name:
            case "binding":
                return build.binding(item)
            case "call":
                return build.call(item)
            case "piped":
                return build.piped(item, self._names)
            case "setting":
                return build.setting(item)
            case "results_of":
                build.report_misplaced_out()
                return None
        is_broken = self._tokens.is_broken(self._at, self._at + item.end)
        return None if is_broken else read_pragma(tokens, item.end, self._report)

    def _add_to_block(self, item: Node, tokens: Tokens, build: StatementBuilder, body: list[BodyStatement]) -> None:
        found: BodyStatement | OutputStatement | None = None
        match item.expr_name:
            case "binding":
                found = build.assignment(item)
            case "results_of":
                found = self._out_assignment(item, build)
            case "call":
                found = build.call(item)
            case "piped":
                found = build.piped(item, self._names)
            case "setting":
                message = "a setting is not allowed in a spindle"
                self._report.tell("misplaced-setting", message, tokens.span(0, 3), _OUTSIDE)
            case _:
                self._report.tell("misplaced-pragma", "a pragma is not allowed in a spindle", tokens.span(0), _OUTSIDE)
        if isinstance(found, OutputStatement) and found.name in self._names:
            hint = "give the spindle an output, and use that in the patch"
            self._report.tell("misplaced-output", f"`{found.name}` is not allowed in a spindle", found.head, hint)
        elif isinstance(found, OutputStatement):
            hint = f"give it a name: a = {found.name}(…)"
            self._report.tell("not-a-statement", "this value is not used", found.span, hint)
        elif found:
            body.append(found)

    def _out_assignment(self, item: Node, build: StatementBuilder) -> BodyStatement | None:
        head = self._blocks[-1].head
        if isinstance(head, SpindleDefinition):
            return build.out_assignment(item, head.outputs)
        hint = "assign each output by its name, or write out = … after the loop"
        self._report.tell("misplaced-out", "`out = …` stands outside of loops", build.place, hint)
        return None

    def _open_block(self, head: SpindleDefinition | For, item: Node, is_misplaced: bool) -> None:
        self._blocks.append(_OpenBlock(head, self._at, self._at + item.end - 1, is_misplaced))

    def _end_block(self, last: int) -> None:
        block = self._blocks.pop()
        if block.is_misplaced:
            return
        whole = replace(block.head, body=tuple(block.body), span=self._tokens.span(block.start, last))
        if isinstance(whole, For):
            self._blocks[-1].body.append(whole)
        else:
            self._statements.append(whole)

    # --- errors ---

    def _fail(self, at: int, expected: str) -> None:
        """Reports that the grammar matched only up to `at`, and continues after the broken statement."""
        start = self._at
        failure = ParseFailure(self._tokens, start, at, expected, self._names)
        if self._value_from is not None and self._follows_value() and self._is_rest_of_value():
            failure = ParseFailure(self._tokens, self._value_from, start, "ends", self._names)
        self._at = self._next_start(at)
        self._value_from = None
        is_explained = self._tokens.is_broken(failure.start, self._at) or self._rest_of_error == start
        if not is_explained:
            self._report.add([diagnose(failure)])
        if self._tokens.kinds[self._at] == PRAGMA:
            self._rest_of_error = self._tokens.kinds.index(PRAGMA_END, self._at) + 1

    def _is_rest_of_value(self) -> bool:
        """Whether the tokens that start here cannot be a statement of their own."""
        if _OWN_STATEMENT.match(self._tokens.kinds, self._at):
            return False
        is_call = CALL.match(self._tokens.kinds, self._at)
        return not (is_call and self._tokens.text(self._at) in self._names)

    def _next_start(self, at: int) -> int:
        """The first token from `at` on that may start a statement, outside of brackets."""
        kinds, partners = self._tokens.kinds, self._tokens.partners
        index = self._at
        while True:
            kind = kinds[index]
            if index >= at and (kind in (";", END, PRAGMA) or (kind == "}" and index in self._openings)):
                return index
            # A line that begins with a name which does not continue the line before.
            is_start = self._tokens.fresh[index] and kind in (NAME, "M") and kinds[index - 1] in _ENDS
            if index >= at and index > self._at and is_start:
                return index
            index = partners.get(index, index) + 1
