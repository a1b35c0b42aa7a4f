"""The process that finds the most expensive statements of a text that plays, for the figures over its picture."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection

from weft.backends.hardware import lower_priority
from weft.child import Pulse
from weft.contexts import context_table
from weft.errors import Source
from weft.media.sampled import header_of
from weft.permissions import Permissions
from weft.runtime.compiling.stages import Request, build
from weft.runtime.inspect.statement_costs import OTHERWISE, costs_of_statements
from weft.syntax.scanner import decode

COST_FINDER = "weft.runtime.inspect.cost_process:main"
"""What the process runs, as `module:function`."""

# The statements that are named, and the least share of a frame of one.
_MOST, _LEAST_SHARE = 3, 0.01


@dataclass(frozen=True)
class CostQuestion:
    """A file, the text of it that plays, and what it may open."""

    file: str
    text: bytes
    permissions: Permissions


def expensive_statements(question: CostQuestion) -> tuple[str, ...]:
    """The most expensive statements of a text, a line for each: its name and line, its share of the operations at each
    pixel, and what to do if that is known. Raises WeftError."""
    source = Source(question.file, decode(question.text))
    request = Request(source, context_table(), probe=header_of, permissions=question.permissions)
    lines = []
    for each in costs_of_statements(build(request).units, source)[:_MOST]:
        if each.share >= _LEAST_SHARE:
            line = "" if each.place is None else f", line {source.position(each.place.start)[0]}"
            advice = each.advice(source)
            lines.append(f"{each.name}{line}: {each.share:.0%}" + ("" if advice == OTHERWISE else f" · {advice}"))
    return tuple(lines)


def main(descriptor: str, lifeline: str) -> None:
    """Answers one question over the socket with this descriptor. For the `lifeline` see `Child`."""
    Pulse(int(lifeline))
    lower_priority()
    with suppress(EOFError, OSError), Connection(int(descriptor)) as performance:
        question = performance.recv()
        found: tuple[str, ...] = ()
        with suppress(Exception):  # then no statement is named
            found = expensive_statements(question)
        performance.send(found)
