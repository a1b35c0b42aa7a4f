"""The syntax tree: what a patch says, with the span of every part, and nothing about what it means.

All nodes are frozen. Passes over expressions must not recurse with the expression's depth: a sum of ten thousand terms
is a tree ten thousand levels deep.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
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
    """`callee(args)`: a call where `callee` is the name of a spindle, builtin or source; a positional remap of `callee`
    anywhere else. Only name resolution can distinguish them."""

    callee: Expression
    args: tuple[Argument, ...]
    span: Span
    is_piped: bool = False
    """Whether the first argument was piped in: `e |> f(a)` is `f(e, a)`."""

    @property
    def name(self) -> str:
        """The name that is called; empty for any other callee."""
        return self.callee.id if isinstance(self.callee, Name) else ""


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
    """`<e1, e2, …>` or `(e1, e2, …)`, at least one element."""

    items: tuple[Expression, ...]
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class Comprehension:
    """`<item for variable in (first to last)>`; both ends are included."""

    item: Expression
    variable: Ident
    first: Expression
    last: Expression
    span: Span


Expression: TypeAlias = (
    Number | Text | Name | Access | Call | Remap | Index | Unary | Binary | If | Bundle | Comprehension
)


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
    """Inside a spindle: `name op value`, where `op` is one of `= += -= *= /=`; or the same for one `member` of a local
    bundle, `name@member op value`."""

    name: Ident
    op: str
    value: Expression
    span: Span
    is_out: bool = False
    member: Ident | None = None


@dataclass(frozen=True, slots=True, eq=False)
class OutAssignment:
    """Inside a spindle: `out = value`, which assigns all outputs of the head at once."""

    outputs: tuple[Ident, ...]
    value: Expression
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class For:
    """`for variable in (first to last) { body }`; both ends are included."""

    variable: Ident
    first: Expression
    last: Expression
    body: tuple[BodyStatement, ...]
    span: Span

    @property
    def ends(self) -> Span:
        """The place of its first and last value."""
        return self.first.span.to(self.last.span)


BodyStatement: TypeAlias = Assignment | OutAssignment | CallBinding | For


@dataclass(frozen=True, slots=True, eq=False)
class SpindleParameter:
    """`name`, `name<x, y>`, `name = default` or both. One with a list of `members` takes a bundle."""

    ident: Ident
    members: tuple[Ident, ...] | None = None
    default: Expression | None = None

    @property
    def name(self) -> str:
        return self.ident.name


@dataclass(frozen=True, slots=True, eq=False)
class SpindleDefinition:
    name: Ident
    parameters: tuple[SpindleParameter, ...]
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


ParameterKind: TypeAlias = Literal["slider", "toggle", "menu", "button", "xy", "color"]


_REACHES = (1.0, 16.0, 256.0, 65536.0, math.inf)


@dataclass(frozen=True, slots=True, eq=False)
class Parameter:
    """`#slider #toggle #menu #button #xy #color`: one start value an output. A slider ranges over `low … high`, a menu
    over the numbers of its `options` from 0; the others over 0 … 1."""

    kind: ParameterKind
    name: Ident
    outputs: tuple[Ident, ...]
    start: tuple[float, ...]
    label: str | None
    span: Span
    low: float = 0.0
    high: float = 1.0
    is_raw: bool = False
    """Whether a sound takes over its values at once, instead of gliding from each to the next."""
    places: tuple[Span, ...] = ()
    """Where the start values are written: one place for each, or one for a whole colour; none for a button."""
    options: tuple[str, ...] = ()
    """The options of a menu."""

    @property
    def reach(self) -> float:
        """How large its values may be, as one of a few sizes: programs are made for these, and serve while it stays."""
        return next(reach for reach in _REACHES if max(abs(self.low), abs(self.high)) <= reach)


@dataclass(frozen=True, slots=True, eq=False)
class Fade:
    """`#fade seconds`, or `#fade seconds numbers`: then a number `glides` to the value that a save gives it."""

    seconds: float
    span: Span
    glides: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Quantize:
    """`#quantize beats`."""

    beats: float
    span: Span


Pragma: TypeAlias = Include | Use | Parameter | Fade | Quantize
Statement: TypeAlias = Setting | Binding | CallBinding | SpindleDefinition | OutputStatement | Pragma


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """The statements of one patch, in the order of the text. An include is replaced by the statements of its file;
    each statement's spans say which file it came from."""

    statements: tuple[Statement, ...]


def literal_number(node: Expression) -> float | None:
    """The number of a literal, which may have a sign; None for any other expression."""
    match node:
        case Number(value=value):
            return value
        case Unary(op="-", operand=Number(value=value)):
            return -value
    return None


# --- walks, without recursion ----------------------------------------------------------------------------------

Walkable: TypeAlias = Expression | BodyStatement


def children(node: Walkable) -> tuple[Walkable, ...]:
    """The expressions and statements directly below a node, in the order of the text. The targets of maps are left out,
    since they only name what is replaced and have no value."""
    match node:
        case Name() | Number() | Text():
            return ()
        case Binary(left=left, right=right):
            return left, right
        case Call(callee=callee, args=args):
            return callee, *(argument.value for argument in args)
        case Access(base=base):
            return (base,)
        case Unary(operand=operand):
            return (operand,)
        case Remap(base=base, maps=maps):
            return base, *(entry.value for entry in maps)
        case If(condition=condition, then=then, otherwise=otherwise):
            return condition, then, otherwise
        case Bundle(items=items):
            return items
        case Comprehension(item=item, first=first, last=last):
            return item, first, last
        case Index(base=base, index=index):
            return base, index
        case Assignment(value=value) | CallBinding(value=value) | OutAssignment(value=value):
            return (value,)
        case For(first=first, last=last, body=body):
            return first, last, *body


def walk(node: Walkable) -> Iterator[Walkable]:
    """The node and all its descendants, parents first, in the order of the text."""
    pending = [node]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(reversed(children(node)))


def walk_statement(statement: Statement) -> Iterator[Walkable]:
    """Every expression and body statement of one statement of a program, in the order of the text."""
    match statement:
        case Binding(value=value):
            yield from walk(value)
        case CallBinding():
            yield from walk(statement)
        case SpindleDefinition(body=body):
            yield from chain.from_iterable(map(walk, body))
        case OutputStatement(args=args):
            yield from chain.from_iterable(walk(argument.value) for argument in args)


# --- the tree as text, for `weft compile --dump-ast` -----------------------------------------------------------

_INDENT = "  "


def dump(program: Program) -> str:
    """The whole program: a line for each statement, its parts in nested parentheses. Each line starts with the line and
    column of its statement; a comment names the file."""
    lines: list[str] = []
    for source, statements in groupby(program.statements, lambda statement: statement.span.source):
        lines.append(f"// {source.name}")
        for place, text in _nested(list(statements)):
            line, column = source.position(place.start)
            lines.append(f"{f'{line}:{column}':<8}{text}")
    return "".join(f"{line}\n" for line in lines)


def outline(program: Program) -> str:
    """The whole program without places: equal for two texts that say the same."""
    return "".join(f"{text}\n" for _, text in _nested(program.statements))


def _nested(statements: Sequence[Statement]) -> Iterator[tuple[Span, str]]:
    """Each statement with its place, those in a body indented below their head."""
    pending: list[tuple[int, Statement | BodyStatement]] = [(0, each) for each in reversed(statements)]
    while pending:
        depth, statement = pending.pop()
        yield statement.span, f"{_INDENT * depth}{_statement(statement)}"
        if isinstance(statement, (SpindleDefinition, For)):
            pending += [(depth + 1, inner) for inner in reversed(statement.body)]


def expression_text(root: Expression) -> str:
    """An expression in nested parentheses: `1 + 2 * x` is `(+ 1 (* 2 x))`."""
    pieces: list[str] = []
    pending: list[Expression | str] = [root]
    while pending:
        part = pending.pop()
        if isinstance(part, str):
            pieces.append(part)
        else:
            pending.extend(reversed(_pieces(part)))
    return "".join(pieces)


def _pieces(node: Expression) -> list[Expression | str]:
    """The text of one node, with its operands in their places."""
    match node:
        case Number(value=value):
            return [number_text(value)]
        case Text(value=text):
            return [json.dumps(text, ensure_ascii=False)]
        case Name(id=name):
            return [name]
        case Access(base=base, output=output):
            return [base, f"@{output}"]
        case Call(callee=callee, args=args):
            given = ((f" {a.label}: " if a.label else " ", a.value) for a in args)
            return ["(call ", callee, *chain.from_iterable(given), ")"]
        case Remap(base=base, maps=maps):
            targets = ((" (~ ", each.target, " ", each.value, ")") for each in maps)
            return ["(remap ", base, *chain.from_iterable(targets), ")"]
        case Index(base=base, index=index):
            return ["(index ", base, " ", index, ")"]
        case Unary(op=op, operand=operand):
            return [f"({op} ", operand, ")"]
        case Binary(op=op, left=left, right=right):
            return [f"({op} ", left, " ", right, ")"]
        case If(condition=condition, then=then, otherwise=otherwise):
            return ["(if ", condition, " ", then, " ", otherwise, ")"]
        case Bundle(items=items):
            return ["(bundle", *(piece for item in items for piece in (" ", item)), ")"]
        case Comprehension(item=item, variable=variable, first=first, last=last):
            return [f"(each {variable.name} ", first, " ", last, " ", item, ")"]


def number_text(value: float) -> str:
    """A number as people write it: 5, not 5.0; otherwise with all significant digits."""
    return repr(value).removesuffix(".0")


def _names(names: Sequence[Ident] | None) -> str:
    return "" if names is None else f"<{', '.join(name.name for name in names)}>"


def _parameter(parameter: SpindleParameter) -> str:
    shown = f" {parameter.name}{_names(parameter.members)}"
    return shown if parameter.default is None else f"{shown} = {expression_text(parameter.default)}"


def _statement(statement: Statement | BodyStatement) -> str:
    """A statement, without the body that it may have."""
    match statement:
        case Setting(field=field, value=number):
            return f"(setting {field.name} {number_text(number)})"
        case Binding(name=name, outputs=outputs, value=value):
            return f"(binding {name.name}{_names(outputs)} {expression_text(value)})"
        case CallBinding(value=value, name=name, outputs=outputs, count=count):
            times = f" count {count}" if count is not None else ""
            return f"(bind {name.name}{_names(outputs)}{times} {expression_text(value)})"
        case OutputStatement(name=head, args=args):
            arguments = [f"{a.label}: " * bool(a.label) + expression_text(a.value) for a in args]
            return f"({' '.join(['output', head, *arguments])})"
        case SpindleDefinition(name=name, parameters=parameters, outputs=outputs):
            return f"(spindle {name.name}{_names(outputs)}{''.join(map(_parameter, parameters))})"
        case Assignment(name=name, op=op, value=value, is_out=is_out, member=member):
            target = name.name if member is None else f"{name.name}@{member.name}"
            return f"({'out ' * is_out}{op} {target} {expression_text(value)})"
        case OutAssignment(value=value):
            return f"(out = {expression_text(value)})"
        case For(variable=name, first=first, last=last):
            return f"(for {name.name} {expression_text(first)} {expression_text(last)})"
        case Include(path=path):
            return f"(include {json.dumps(path, ensure_ascii=False)})"
        case Use(library=library):
            return f"(use {library})"
        case Parameter(kind=kind, name=name, outputs=outputs, label=text):
            start = " ".join(number_text(value) for value in statement.start)
            span = f" from {number_text(statement.low)} to {number_text(statement.high)}"
            label = f" {json.dumps(text, ensure_ascii=False)}" if text is not None else ""
            raw = " raw" * statement.is_raw
            options = "".join(f" {json.dumps(each, ensure_ascii=False)}" for each in statement.options)
            return f"({kind} {name.name}{_names(outputs)} {start}{span}{options}{label}{raw})"
        case Fade(seconds=number, glides=glides):
            return f"(fade {number_text(number)}{' numbers' * glides})"
        case Quantize(beats=number):
            return f"(quantize {number_text(number)})"
