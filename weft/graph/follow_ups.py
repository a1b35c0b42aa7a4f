"""Which mistakes only follow from others. These are not reported."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Final

from weft.errors import CLOSE_NAME, LONGEST_WORD, Diagnostic, Report, Source, Span
from weft.graph.affected import mentioned_in, name_of
from weft.graph.components import reachable
from weft.syntax.ast import Binding, Program, Statement

# The codes of errors about missing names.
_UNKNOWN = frozenset(
    {"unknown-strand", "unknown-call", "unknown-output", "call-without-arguments", "output-not-assigned"}
)

# The errors that may follow from a library or another text that could not be read.
_UNREAD: Mapping[str, frozenset[str]] = {
    "unknown-library": frozenset({"unknown-call"}),
    "include-unreadable": frozenset({"unknown-call", "unknown-strand", "call-without-arguments"}),
}

# Any name; and the one of which a member is picked.
_NAME = re.compile(r"[^\W\d]\w*")
_PICKED = re.compile(r"(\w+)(?:@|\[)\Z")

ABOUT_SHAPES: Final = frozenset(
    {"unknown-output", "index-out-of-range", "count-mismatch", "several-strands", "wrong-arguments", "nested-bundle"}
)
"""The codes of errors about how many strands there are, and what they are called."""


def without_follow_ups(
    found: Report, syntax: Report, unbound: Collection[Diagnostic], program: Program,
    holder: Callable[[Span], Statement | None],
) -> list[Diagnostic]:  # fmt: skip
    """The findings that do not merely follow from others. A name seems to be missing after a syntax error, after
    another error in the statement that binds it (then it is `unbound`), or if a file or library cannot be read. The
    number of strands is unknown if they cannot be evaluated. `holder` gives the statement in which a place of a finding
    is."""
    broken = {_line(d.span) for d in syntax.errors if d.span}
    lines = {(d.span.source, d.span.source.position(d.span.start)[0]) for d in unbound if d.span}
    lost = {(source, name) for source, line in lines for name in _BOUND.findall(source.line(line))}
    unread = {d.code for d in syntax.errors} & _UNREAD.keys()
    missing = frozenset[str]().union(*(_UNREAD[code] for code in unread))
    bound: dict[Source, frozenset[str]] = {}

    def follows(d: Diagnostic) -> bool:
        if d.span is None:
            return False
        if _line(d.span) in broken or (d.code in missing and not (d.hint or "").startswith(CLOSE_NAME)):
            return True
        if d.code not in _UNKNOWN:
            return False
        name = d.span.text.partition("@")[0].partition("(")[0].strip()
        if not broken:
            return (d.span.source, name) in lost and d not in unbound
        if d.span.source not in bound:
            bound[d.span.source] = frozenset(_BOUND.findall(d.span.source.text))
        return name in bound[d.span.source]

    return _without_unknown_shapes([d for d in found if not follows(d)], program, holder)


def _without_unknown_shapes(
    found: list[Diagnostic], program: Program, holder: Callable[[Span], Statement | None]
) -> list[Diagnostic]:
    """The findings, except those about the number or names of strands in a statement that mentions, directly or
    indirectly, a strand whose own statement is wrong."""
    doubtful = [d for d in found if d.code in ABOUT_SHAPES and d.span]
    if not doubtful:
        return found
    of_errors = (holder(d.span) for d in found if d.severity == "error" and d.span)
    wrong = {each.name.name for each in of_errors if isinstance(each, Binding) and each.outputs is None}
    if not wrong:
        return found
    mentioned_by: dict[str, list[str]] = {}
    for each in program.statements:
        if isinstance(each, Binding) and each.outputs is None:
            for word in mentioned_in(each):
                mentioned_by.setdefault(word, []).append(each.name.name)
    unknown = reachable(wrong, mentioned_by)

    def follows(d: Diagnostic) -> bool:
        if d.span is None or (statement := holder(d.span)) is None:
            return False
        picked = _PICKED.search(d.span.source.text, max(0, d.span.start - LONGEST_WORD), d.span.start)
        texts = [picked[1]] if picked else [d.span.text, *(span.text for span, _ in d.related)]
        names = {name for text in texts for name in _NAME.findall(text)}
        return not unknown.isdisjoint(names & mentioned_in(statement) - {name_of(statement)})

    dropped = {d for d in doubtful if follows(d)}
    left = [d for d in found if d not in dropped]
    return left if any(d.severity == "error" for d in left) else found


def _line(span: Span) -> tuple[str, int]:
    return span.source.name, span.source.position(span.start)[0]


# A name that seems to be bound: at the start of a statement, or after `::`.
_BOUND = re.compile(r"(?:(?:^|[{;])[ \t]*(?:[#\w]+[ \t]+)?|::\s*)(\w+)", re.MULTILINE)
