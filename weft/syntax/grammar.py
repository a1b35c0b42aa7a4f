r"""The grammar, as a PEG over the string of token kinds (see `tokens`): one character a token.

    n name   0 number   s string   a += -= *= /=   d ::   P…p pragma   S spindle   L let   O out   M me
    F for   i in   t to   I if   T then   E else   N not   g a > right before > or =
    o any binary operator that has no further meaning; every other character stands for itself

Rules stay flat: an expression is a row of operands with operators between them, and precedence is resolved
afterwards from the table of operators. The recursion of the matcher therefore grows with brackets and `if`s alone.
Blocks are opened and closed by items of their own; the parser keeps the stack of them, so that it can go on behind a
broken statement.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Final

from parsimonious.grammar import Grammar

from weft.syntax.operators import BINARY

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

# What a statement must be followed by; so an expression that breaks off is an error where it does.
ends        = ~r"(?=[;}PnLOMSFZ])"

outputs     = less names greater
names       = ~r"n(?:,n)*"
"""

# Every operand begins with its signs, if it has any. A `run` is a row of operands without brackets, which is what
# most expressions consist of: one match instead of dozens.
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

# Three readings of an expression: `loose` is directly inside a bundle, where no bundle can start and a bare < or > is
# no operator; `strict` also leaves >= and >> alone, for a bundle that is closed by their first character.
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
