"""The syntax tree as text, for `weft compile --dump-ast`: a line for each statement, with its place, and its parts in
nested parentheses."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import groupby

from weft.errors import Span
from weft.syntax import ast

_INDENT = "  "


def dump(program: ast.Program) -> str:
    """The whole program. Each line starts with line and column of its statement; a comment names the file."""
    lines: list[str] = []
    for source, statements in groupby(program.statements, lambda statement: statement.span.source):
        lines.append(f"// {source.name}")
        for statement in statements:
            lines += _statement(statement)
    return "".join(f"{line}\n" for line in lines)


def expression_text(root: ast.Expression) -> str:
    """An expression in nested parentheses: `1 + 2 * x` is `(+ 1 (* 2 x))`."""
    pieces: list[str] = []
    pending: list[ast.Expression | str] = [root]
    while pending:
        part = pending.pop()
        if isinstance(part, str):
            pieces.append(part)
        else:
            pending.extend(reversed(_pieces(part)))
    return "".join(pieces)


def _pieces(node: ast.Expression) -> list[ast.Expression | str]:
    """The text of one node, cut where its parts come in."""
    match node:
        case ast.Number(value=value):
            return [_number(value)]
        case ast.Text(value=text):
            return [json.dumps(text, ensure_ascii=False)]
        case ast.Name(id=name):
            return [name]
        case ast.Access(base=base, output=output):
            return [base, f"@{output}"]
        case ast.Call(callee=callee, args=args):
            return ["(call ", callee, *_arguments(args), ")"]
        case ast.Remap(base=base, maps=maps):
            return ["(remap ", base, *_maps(maps), ")"]
        case ast.Index(base=base, index=index):
            return ["(index ", base, " ", index, ")"]
        case ast.Unary(op=op, operand=operand):
            return [f"({op} ", operand, ")"]
        case ast.Binary(op=op, left=left, right=right):
            return [f"({op} ", left, " ", right, ")"]
        case ast.If(condition=condition, then=then, otherwise=otherwise):
            return ["(if ", condition, " ", then, " ", otherwise, ")"]
        case ast.Bundle(items=items):
            return ["(bundle", *(piece for item in items for piece in (" ", item)), ")"]


def _arguments(args: Sequence[ast.Argument]) -> Iterator[ast.Expression | str]:
    for argument in args:
        yield f" {argument.label}: " if argument.label else " "
        yield argument.value


def _maps(maps: Sequence[ast.Map]) -> Iterator[ast.Expression | str]:
    for entry in maps:
        yield from (" (~ ", entry.target, " ", entry.value, ")")


def _number(value: float) -> str:
    return repr(value).removesuffix(".0")


def _names(names: Sequence[ast.Ident] | None) -> str:
    return "" if names is None else f"<{', '.join(name.name for name in names)}>"


def _at(span: Span, depth: int, text: str) -> str:
    line, column = span.source.position(span.start)
    return f"{f'{line}:{column}':<8}{_INDENT * depth}{text}"


def _statement(statement: ast.Statement) -> Iterator[str]:
    match statement:
        case ast.Setting(field=field, value=value):
            text = f"(setting {field.name} {_number(value)})"
        case ast.Binding(name=name, outputs=outputs, value=expression):
            text = f"(binding {name.name}{_names(outputs)} {expression_text(expression)})"
        case ast.CallBinding():
            text = _call_binding(statement)
        case ast.OutputStatement(name=head, args=args):
            arguments = [f"{a.label}: " * bool(a.label) + expression_text(a.value) for a in args]
            text = f"({' '.join(['output', head, *arguments])})"
        case ast.SpindleDefinition():
            yield from _spindle(statement)
            return
        case _:
            text = _pragma(statement)
    yield _at(statement.span, 0, text)


def _call_binding(statement: ast.CallBinding) -> str:
    count = f" count {statement.count}" if statement.count is not None else ""
    return f"(bind {statement.name.name}{_names(statement.outputs)}{count} {expression_text(statement.value)})"


def _spindle(spindle: ast.SpindleDefinition) -> Iterator[str]:
    parameters = "".join(f" {parameter.name}" for parameter in spindle.parameters)
    yield _at(spindle.span, 0, f"(spindle {spindle.name.name}{_names(spindle.outputs)}{parameters})")
    pending = [(1, statement) for statement in reversed(spindle.body)]
    while pending:
        depth, statement = pending.pop()
        yield _at(statement.span, depth, _body_statement(statement))
        if isinstance(statement, ast.For):
            pending += [(depth + 1, inner) for inner in reversed(statement.body)]


def _body_statement(statement: ast.BodyStatement) -> str:
    match statement:
        case ast.Assignment(name=name, op=op, value=value, is_out=is_out):
            return f"({'out ' * is_out}{op} {name.name} {expression_text(value)})"
        case ast.CallBinding():
            return _call_binding(statement)
        case ast.For(variable=variable, first=first, last=last):
            return f"(for {variable.name} {expression_text(first)} {expression_text(last)})"


def _pragma(pragma: ast.Pragma) -> str:
    match pragma:
        case ast.Include(path=path):
            return f"(include {json.dumps(path, ensure_ascii=False)})"
        case ast.Use(library=library):
            return f"(use {library})"
        case ast.Parameter():
            start = " ".join(_number(value) for value in pragma.start)
            span = f" from {_number(pragma.low)} to {_number(pragma.high)}"
            label = f" {json.dumps(pragma.label, ensure_ascii=False)}" if pragma.label is not None else ""
            return f"({pragma.kind} {pragma.name.name}{_names(pragma.outputs)} {start}{span}{label})"
        case ast.Fade(seconds=seconds):
            return f"(fade {_number(seconds)})"
        case ast.Quantize(beats=beats):
            return f"(quantize {_number(beats)})"
