"""The syntax tree: what a patch says, with the span of every part, and nothing about what it means.

All nodes are frozen. Passes over expressions must not recurse with the expression's depth: a sum of ten
thousand terms is a tree ten thousand levels deep.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from weft.errors import Span

# --- expressions ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Number:
    value: float
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class Text:
    """A string literal; `value` has its escapes resolved."""

    value: str
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class Name:
    id: str
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """`base@output`; coordinates are `me@x`."""

    base: Expression
    output: str
    output_span: Span
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class Argument:
    """One argument of a call; `label` is the name before `:`, if there is one."""

    label: str | None
    value: Expression
    span: Span
    label_span: Span | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """`callee(args)`: a call where `callee` is the name of a spindle, builtin or source; a positional remap
    of `callee` anywhere else. Only name resolution can tell."""

    callee: Expression
    args: tuple[Argument, ...]
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class Map:
    """`target ~ value` in a remap."""

    target: Access
    value: Expression
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class Remap:
    """`base(target ~ value, …)`."""

    base: Expression
    maps: tuple[Map, ...]
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class Index:
    """`base[index]`."""

    base: Expression
    index: Expression
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class Unary:
    """`op` is a symbol of the operator table: `-` or `not`."""

    op: str
    operand: Expression
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class Binary:
    """`op` is the symbol as it was typed; the operator table knows its meaning."""

    op: str
    left: Expression
    right: Expression
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class If:
    condition: Expression
    then: Expression
    otherwise: Expression
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class Bundle:
    """`<e1, e2, …>`, at least one element."""

    items: tuple[Expression, ...]
    span: Span


Expression: TypeAlias = Number | Text | Name | Access | Call | Remap | Index | Unary | Binary | If | Bundle


# --- statements ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Ident:
    """A name at the place where it is bound."""

    name: str
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """`me<field> = value`."""

    field: Ident
    value: float
    value_span: Span
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class Binding:
    """`name<outputs> = value`; `outputs` is None where the text has none (`name = value`)."""

    name: Ident
    outputs: tuple[Ident, ...] | None
    value: Expression
    span: Span
    doc: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class CallBinding:
    """`value::name<outputs>`: value is a Call, Remap, Access or Name chain that begins with a name.
    `count` is the 3 of a multi-call `f<3>(args)::name<a, b, c>`."""

    value: Expression
    name: Ident
    outputs: tuple[Ident, ...]
    span: Span
    count: int | None = None
    count_span: Span | None = None
    doc: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Assignment:
    """Inside a spindle: `name op value`, where `op` is one of `= += -= *= /=`."""

    name: Ident
    op: str
    value: Expression
    span: Span
    is_out: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class For:
    """`for variable in (first to last) { body }`; both ends are included."""

    variable: Ident
    first: Expression
    last: Expression
    body: tuple[BodyStatement, ...]
    span: Span


BodyStatement: TypeAlias = Assignment | CallBinding | For


@dataclass(frozen=True, slots=True, eq=False)
class SpindleDefinition:
    name: Ident
    parameters: tuple[Ident, ...]
    outputs: tuple[Ident, ...]
    body: tuple[BodyStatement, ...]
    span: Span
    doc: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class OutputStatement:
    """A call in the place of a statement: `display(…)`, `audio(…)`, …; `head` is the name's span."""

    name: str
    args: tuple[Argument, ...]
    span: Span
    head: Span


# --- pragmas -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Include:
    """`#include "path"`."""

    path: str
    path_span: Span
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class Use:
    """`#use std.noise`."""

    library: str
    library_span: Span
    span: Span


ParameterKind: TypeAlias = Literal["slider", "toggle", "xy", "color"]


@dataclass(frozen=True, slots=True, eq=False)
class Parameter:
    """`#slider #toggle #xy #color`: one start value an output. A slider ranges over `low … high`; the others
    over 0 … 1."""

    kind: ParameterKind
    name: Ident
    outputs: tuple[Ident, ...]
    start: tuple[float, ...]
    label: str | None
    span: Span
    low: float = 0.0
    high: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Fade:
    """`#fade seconds`."""

    seconds: float
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class Quantize:
    """`#quantize beats`."""

    beats: float
    span: Span


Pragma: TypeAlias = Include | Use | Parameter | Fade | Quantize
Statement: TypeAlias = Setting | Binding | CallBinding | SpindleDefinition | OutputStatement | Pragma


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """The statements of one patch, in the order of the text. What an include brought in stands in the place of the
    include; each statement's spans say which file it came from."""

    statements: tuple[Statement, ...]
