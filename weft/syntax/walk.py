"""Walks over syntax trees without recursion, so that no depth of nesting is too much."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from weft.syntax.ast import (
    Access, Assignment, Binary, Binding, BodyStatement, Bundle, Call, CallBinding, Expression, For, If, Index, Name,
    Number, OutputStatement, Remap, SpindleDefinition, Statement, Text, Unary
)

Walkable: TypeAlias = Expression | BodyStatement


def children(node: Walkable) -> tuple[Walkable, ...]:
    """The expressions and statements directly below a node, in the order of the text. The targets of maps are not
    among them: they say what is replaced and have no value of their own."""
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
        case Index(base=base, index=index):
            return base, index
        case Assignment(value=value) | CallBinding(value=value):
            return (value,)
        case For(first=first, last=last, body=body):
            return first, last, *body


def walk(node: Walkable) -> Iterator[Walkable]:
    """The node and all that is below it, each before what is below it, in the order of the text."""
    pending = [node]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(reversed(children(node)))


def walk_statement(statement: Statement) -> Iterator[Walkable]:
    """Every expression and body statement of one statement of a program, in the order of the text."""
    roots: tuple[Walkable, ...] = ()
    match statement:
        case Binding(value=value):
            roots = (value,)
        case CallBinding():
            roots = (statement,)
        case SpindleDefinition(body=body):
            roots = body
        case OutputStatement(args=args):
            roots = tuple(a.value for a in args)
        case _:
            pass
    for root in roots:
        yield from walk(root)
