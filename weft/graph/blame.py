"""Mistakes that come to light within a spindle of the library are told at the call that made them: nobody can mend the
library, and few want to read it."""

from __future__ import annotations

from dataclasses import replace

from weft.errors import Diagnostic, Span
from weft.graph.patch import Expanded, FromCache, FromSource, OutputDefinition, Part, Patch
from weft.syntax.ast import Call, Name, SpindleDefinition
from weft.syntax.walk import Walkable, walk


def at_the_call(found: Diagnostic, patch: Patch, within: Walkable | None) -> Diagnostic:
    """The same diagnostic at the call that led there, which is looked for `within` an expression or statement, or at
    all of that where it may be one of several; as it is if it does not lie in the library, or no call is found."""
    if found.span is None or not found.span.source.library or within is None:
        return found
    blamed = _around(found.span, patch)
    calls = [
        (node, spindle)
        for node in walk(within)
        if isinstance(node, Call) and isinstance(node.callee, Name)
        if (spindle := patch.spindles.get(node.callee.id)) is not None and spindle.span.source.library
    ]
    suspects = [(call, spindle) for call, spindle in calls if spindle is blamed] or calls
    if not suspects:
        return found
    span = suspects[0][0].span if len(suspects) == 1 else within.span
    names = dict.fromkeys(spindle.name.name for _, spindle in suspects)
    words = f"{' or '.join(names)} cannot be called like this: {found.message}"
    return replace(found, message=words, span=span, hint=f"weft help {next(iter(names))} says what it takes")


def value_of(output: OutputDefinition) -> Walkable | None:
    """The expression that an output is defined by; None for a parameter."""
    match output.definition:
        case Expanded(value=value) | Part(value=value) | FromSource(call=value) | FromCache(call=value):
            return value
    return None


def _around(span: Span, patch: Patch) -> SpindleDefinition | None:
    """The spindle whose definition a place lies in."""
    for spindle in patch.spindles.values():
        whole = spindle.span
        if whole.source is span.source and whole.start <= span.start and span.end <= whole.end:
            return spindle
    return None
