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
from dataclasses import dataclass, field
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Final

from parsimonious.exceptions import ParseError
from parsimonious.grammar import Grammar
from parsimonious.nodes import Node

from weft.contexts import ContextTable
from weft.errors import Diagnostic, Report, Source
from weft.syntax.ast import BodyStatement, For, OutputStatement, Program, SpindleDefinition, Statement
from weft.syntax.diagnose import ParseFailure, diagnose
from weft.syntax.layout import arrange
from weft.syntax.pragmas import read_pragma
from weft.syntax.scanner import BINARY, CALL, END, GLUED, NAME, OPERAND_ENDS, PRAGMA, PRAGMA_END, Tokens, scan
from weft.syntax.statements import LoopHead, SpindleHead, StatementBuilder

# The grammar, as a PEG over the string of token kinds (see `scanner`): one character a token.
#
#     n name   0 number   s string   a += -= *= /=   d ::   P…p pragma   S spindle   L let   O out   M me
#     F for   i in   t to   I if   T then   E else   N not   g a > right before > or =
#     o any binary operator that has no further meaning; every other character stands for itself
#
# Rules stay flat: an expression is a row of operands with operators between them, and precedence is resolved
# afterwards from the table of operators. The recursion of the matcher therefore grows with brackets and `if`s alone.
# Blocks are opened and closed by items of their own; the parser keeps the stack of them, so that it can continue after
# a broken statement.

_STATEMENTS: Final = r"""
item        = binding / call / setting / pragma / spindle / loop

binding     = intro? name outputs? becomes expr ends
intro       = ~r"[LO]"
becomes     = ~r"[=a]"

call        = name count? postfix+ bound? ends
count       = less ~r"-*[0n]" greater
bound       = binds name outputs

setting     = me less name greater equals expr ends
pragma      = ~r"P[^p]*p"

spindle     = ~r"S" name open names? close binds results begin
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
inner_base  = ~r"M@n|n(?:@n)?" / group
postfix     = arguments / index / access
group       = open expr close
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

bundle      = loosely / strictly
loosely     = less expr_loose (comma expr_loose)* greater
strictly    = less expr_strict (comma expr_strict)* greater
"""

# An expression is read in three ways. `loose` is directly inside a bundle, where no bundle can start and a bare < or >
# is not an operator; `strict` also leaves >= and >> alone, for a bundle that is closed by their first character.
_EXPRESSION: Final = r"""
expr{x}     = piece{x} rest{x}*
rest{x}     = operator{x} piece{x}
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


def _pattern(spellings: Iterable[str]) -> str:
    longest_first = sorted(spellings, key=lambda s: (-len(s), s))
    return "(?:" + "|".join(map(re.escape, longest_first)) + ")"


def _run(operator: str) -> str:
    operand = r"[-N]*(?:0|s|(?:M@n|n(?:@n)?)(?![@(\[]))"
    return f"{operand}(?:{operator}{operand})*"


def _expression(suffix: str, operators: Iterable[str], chain: str) -> str:
    """The rules of one reading of an expression."""
    operator = _pattern(operators)
    parts = {"x": suffix, "operator": operator, "run": _run(operator), "chain": chain}
    return re.sub(r"\{(\w+)\}", lambda part: parts[part[1]], _EXPRESSION)


@cache
def grammar() -> Grammar:
    """The grammar; built on the first call."""
    full = {spelling(symbol) for symbol in BINARY}
    loose = full - {"<", ">"}
    strict = {s for s in loose if s[0] != "g"}
    rules = [_STATEMENTS, _OPERANDS.replace("{run}", _run(_pattern(full)))]
    rules.append(_expression("", full, "chain"))
    rules.append(_expression("_loose", loose, "inner_chain"))
    rules.append(_expression("_strict", strict, "inner_chain"))
    return Grammar("\n".join([*rules, _TOKENS]))


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
             "an instance with the outputs a and b, read as name@a and name@b; without <…> it has one, and name is read"
             " as it is; `let` may precede it",
             "wave<v> = sin(me@x * 20)\nhalf = 0.5\ndisplay(wave@v * half)"),
    FormSpec("@", ("output",), "name@output", "one output of an instance",
             "spot<x, y> = <0.3, 0.6>\ndisplay(distance(me@x, me@y, spot@x, spot@y))"),
    FormSpec("~", ("remap", "map"), "strand(me@x ~ e, me@y ~ e)",
             "the strand at other coordinates, with everything that it is made of",
             "wave<v> = sin(me@x * 20)\ndisplay(wave@v(me@x ~ me@x + 0.1 * sin(me@y * 9)))"),
    FormSpec("if", ("then", "else"), "if c then a else b",
             "a where c is true (not 0), else b; what the other side computes never leaks",
             "if me@x < 0.5 then me@y else 1 - me@y"),
    FormSpec("<>", ("bundle",), "<e1, e2, …>",
             "a bundle: one value for each output that it is bound to; inside, comparisons are written << and >>",
             "colour<r, g, b> = <me@x, 0.4, me@y> * 0.8\ndisplay(colour)"),
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
    FormSpec("spindle", ("out",), "spindle name(p, q) :: <a, b> { … }",
             "a template: called with values for its parameters, it gives its outputs; each must be assigned with out",
             "spindle disc(cx, cy, radius) :: v {\n  d = distance(me@x, me@y, cx, cy)\n"
             "  out v = smoothstep(radius, radius * 0.9, d)\n}\ndisplay(disc(0.5, 0.5, 0.2))"),
    FormSpec("for", ("in", "to"), "for i in (a to b) { … }",
             "in a spindle: repeats the block for i = a, a + 1, … up to and including b",
             "spindle waves(x) :: v {\n  v = 0\n  for i in (1 to 4) {\n    v += sin(x * i * 9) / i\n  }\n}\n"
             "display(waves(me@x))"),
    FormSpec("+=", ("-=", "*=", "/="), "name += e",
             "in a spindle: the same as name = name + (e); so do -= *= and /=",
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

FORMS: Mapping[str, FormSpec] = MappingProxyType({row.name: row for row in _ROWS})


# --- from items to a program ---


@dataclass
class _OpenBlock:
    """An open spindle or loop. One in the wrong place is read for its errors and then dropped."""

    head: SpindleHead | LoopHead
    start: int
    brace: int
    is_misplaced: bool
    body: list[BodyStatement] = field(default_factory=list)


class Assembly:
    """Takes the items of one text in order and makes a program of them: it knows what may stand in which block."""

    def __init__(self, tokens: Tokens, statements: Collection[str], report: Report) -> None:
        self._tokens = tokens
        self._names = statements
        self._report = report
        self._build = StatementBuilder(tokens, report)
        self._blocks: list[_OpenBlock] = []
        self._statements: list[Statement] = []

    def add(self, item: Node) -> None:
        """One match of a form of `item`."""
        if self._belongs_outside(item):
            self._leave_unclosed_blocks(item)
        if item.expr_name == "spindle":
            self._open_spindle(item)
        elif item.expr_name == "loop":
            self._open_loop(item)
        elif self._blocks:
            self._add_to_block(item, self._blocks[-1])
        else:
            self._add_to_program(item)

    def close(self, brace: int) -> None:
        """Ends the block that a } belongs to, and the blocks in it; does nothing if the } belongs to none."""
        openings = [block.brace for block in self._blocks]
        opening = next((o for o in openings if self._tokens.partners.get(o) == brace), None)
        while opening is not None and self._blocks and self._blocks[-1].brace >= opening:
            self._end_block(brace)

    def _end_block(self, last: int) -> None:
        block = self._blocks.pop()
        span, body = self._tokens.span(block.start, last), tuple(block.body)
        if block.is_misplaced:
            return
        if isinstance(block.head, LoopHead):
            loop = For(block.head.variable, block.head.first, block.head.last, body, span)
            self._blocks[-1].body.append(loop)
        else:
            head = block.head
            spindle = SpindleDefinition(head.name, head.parameters, head.outputs, body, span, head.doc)
            self._statements.append(spindle)

    def finish(self, last: int) -> Program:
        """The program, with all blocks ended."""
        while self._blocks:
            self._end_block(last)
        return Program(tuple(self._statements))

    def _belongs_outside(self, item: Node) -> bool:
        """Whether an item is not allowed in a block."""
        if item.expr_name == "binding":
            outputs = item.children[2]
            return bool(outputs.children)
        if item.expr_name == "call":
            return self._tokens.text(item.start) in self._names
        return item.expr_name != "loop"

    def _add_to_program(self, item: Node) -> None:
        statement: Statement | None
        if item.expr_name == "binding":
            statement = self._build.binding(item)
        elif item.expr_name == "call":
            statement = self._build.call(item)
        elif item.expr_name == "setting":
            statement = self._build.setting(item)
        else:
            statement = read_pragma(self._tokens, item.start, item.end, self._report)
        if statement:
            self._statements.append(statement)

    def _add_to_block(self, item: Node, block: _OpenBlock) -> None:
        statement: BodyStatement | OutputStatement | None = None
        if item.expr_name == "binding":
            statement = self._build.assignment(item)
        elif item.expr_name == "call":
            statement = self._build.call(item)
        elif item.expr_name == "setting":
            place = self._tokens.span(item.start, item.start + 3)
            self._report.error("misplaced-setting", "a setting is not allowed in a spindle", place)
        else:
            place = self._tokens.span(item.start)
            self._report.error("misplaced-pragma", "a pragma is not allowed in a spindle", place)
        if isinstance(statement, OutputStatement):
            self._report_output(statement)
        elif statement:
            block.body.append(statement)

    def _report_output(self, statement: OutputStatement) -> None:
        if statement.name in self._names:
            message = f"`{statement.name}` is not allowed in a spindle"
            hint = "give the spindle an output, and use that in the patch"
            self._report.error("misplaced-output", message, statement.head, hint)
        else:
            hint = f"give it a name: a = {statement.name}(…)"
            self._report.error("not-a-statement", "this value is not used", statement.span, hint)

    def _leave_unclosed_blocks(self, item: Node) -> None:
        """Ends the blocks whose `}` is missing, which was reported, before something that is not allowed in them."""
        while self._blocks and self._blocks[0].brace not in self._tokens.partners:
            self._end_block(item.start - 1)

    def _open_spindle(self, item: Node) -> None:
        is_nested = bool(self._blocks)
        if is_nested:
            place = self._tokens.span(item.start)
            self._report.error("nested-spindle", "a spindle cannot be defined in another spindle or in a loop", place)
        self._blocks.append(_OpenBlock(self._build.spindle(item), item.start, item.end - 1, is_nested))

    def _open_loop(self, item: Node) -> None:
        is_outside = not self._blocks
        if is_outside:
            place = self._tokens.span(item.start)
            self._report.error("misplaced-loop", "a loop is allowed only in a spindle", place)
        self._blocks.append(_OpenBlock(self._build.loop(item), item.start, item.end - 1, is_outside))


# --- from text to items ---

OUTPUT_STATEMENTS: Final = frozenset(ContextTable().statements)
MAX_ERRORS: Final = 50
FRAMES_PER_LEVEL: Final = 60
# Python's own limit leaves room for this depth; ordinary patches nest less.
_SHALLOW: Final = 12

# What is a statement of its own even after an expression on the same line.
_OWN_STATEMENT = re.compile(r"n(?:<n(?:,n)*[>g])?[=a]|[SFLOP]|M(?:<|@n=)")
# What a line ends with if a name on the next line does not continue it.
_ENDS: Final = OPERAND_ENDS + "}>" + GLUED + PRAGMA_END


def parse(source: Source, report: Report, statements: Collection[str] = OUTPUT_STATEMENTS) -> Program:
    """The program of one text, without what it includes. Errors go to the report, and statements with errors are left
    out. `statements` are the names of the output statements."""
    first = _FirstErrors()
    program = _parse(source, first, statements)
    report.add(first.limited())
    return program


def _parse(source: Source, report: _FirstErrors, statements: Collection[str]) -> Program:
    found = scan(source, report)
    tokens = arrange(found, statements, report) if found else None
    if tokens is None:
        return Program(())
    with _room_for(tokens.depth):
        return _Parser(tokens, statements, report).program()


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
        """The diagnostics that were kept; if there are more, the last one says so."""
        if not self.has_more:
            return self.diagnostics
        *first, last = self
        hint = f"fix those above first: at most {MAX_ERRORS} are reported at once"
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


# The last token of an item, at the latest. A head ends with its brace.
_LAST_OF_ITEM = re.compile(r"[;{}Z]")
_LAST_OF_PRAGMA = re.compile(r"p")


def _end_of_item(kinds: str, start: int) -> int:
    """The position after the item that starts here, at the latest."""
    last = (_LAST_OF_PRAGMA if kinds[start] == PRAGMA else _LAST_OF_ITEM).search(kinds, start)
    return last.end() if last else len(kinds)


@lru_cache(maxsize=1024)
def _matched(kinds: str) -> Node:
    """The match of the item at the start of these kinds. Raises ParseError. Cached, because matching takes half the
    time of parsing, and from save to save most items keep their kinds, if not their place."""
    item: Node = grammar()["item"].match(kinds).children[0]
    return item


def _moved(node: Node, by: int, kinds: str) -> Node:
    """The same match, `by` tokens later in a text."""
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
        """Where the rest of something that was reported may start."""

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
        """Whether the item is a call that is neither bound nor an output statement."""
        if item.expr_name != "call" or self._tokens.text(item.start) in self._names:
            return False
        bound = item.children[3]
        return not bound.children

    def _follows_value(self) -> bool:
        """Whether an expression ends directly before this place, on the same line."""
        return self._value_from is not None and not self._tokens.fresh[self._at]

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
        """Whether what starts here cannot be a statement of its own."""
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
            if index >= at and (kind in (";", END, PRAGMA) or index in self._closing):
                return index
            if index >= at and index > self._at and self._is_likely_start(index):
                return index
            index = partners.get(index, index) + 1

    def _is_likely_start(self, index: int) -> bool:
        """Whether a line begins here with a name that does not continue the line before."""
        kinds = self._tokens.kinds
        return self._tokens.fresh[index] and kinds[index] in (NAME, "M") and kinds[index - 1] in _ENDS
