"""Short ways to parse a text and to see what came of it."""

from __future__ import annotations

from weft.errors import Report, Source
from weft.syntax.ast import Binding, Program, Statement, dump, expression_text
from weft.syntax.parser import OUTPUT_STATEMENTS, parse


def program(text: str) -> Program:
    """The program of a text in which nothing is wrong."""
    report = Report()
    found = parse(Source("patch.weft", text), report, OUTPUT_STATEMENTS)
    assert [diagnostic.render() for diagnostic in report] == []
    return found


def statement(text: str) -> Statement:
    """The only statement of a text."""
    (found,) = program(text).statements
    return found


def tree(text: str) -> list[str]:
    """The lines of the dump, without file and places."""
    return [line[8:] for line in dump(program(text)).splitlines() if not line.startswith("//")]


def expression(text: str) -> str:
    """An expression in nested parentheses."""
    binding = statement(f"a = {text}")
    assert isinstance(binding, Binding)
    return expression_text(binding.value)


def errors(text: str) -> list[str]:
    """Place and code of everything that is wrong with a text."""
    report = Report()
    parse(Source("patch.weft", text), report, OUTPUT_STATEMENTS)
    found = []
    for diagnostic in report:
        assert diagnostic.span is not None
        line, column = diagnostic.span.source.position(diagnostic.span.start)
        found.append(f"{line}:{column} {diagnostic.code}")
    return found
