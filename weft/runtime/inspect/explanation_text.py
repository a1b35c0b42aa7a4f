"""An explanation as lines for people: where, the tree of values, and what acts on them most."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

from weft.errors import Span, shortened, visible
from weft.runtime.inspect.explanation import ExplainedNode, Explanation, Influence

Role: TypeAlias = Literal["heading", "plain", "value", "dim", "strong"]


class StyledWord(NamedTuple):
    """A part of a line, and how it is shown."""

    role: Role
    text: str


Row: TypeAlias = tuple[StyledWord, ...]

# The most lines of the tree, unless a depth is asked for; and the most numbers that are listed.
_MOST_LINES = 40
_MOST_LISTED = 12

# The most outputs that have a column of their own; its width, and the columns before the first.
_MOST_COLUMNS = 4
_CHANGE = 11
_BEFORE_CHANGES = 22

# Where the values of the tree begin, at most.
_WIDEST_NAME = 34


def explanation_rows(
    found: Explanation, width: int = 80, depth: int | None = None, most_lines: int = _MOST_LINES,
    most_listed: int = _MOST_LISTED, more: str = "--depth {} shows more",
) -> Iterator[Row]:  # fmt: skip
    """The lines of an explanation. Without a `depth`, the tree has as many levels as fit into `most_lines`. `more` says
    how to see what is below the deepest level; {} is the next one."""
    yield from _heading(found, width)
    yield ()
    yield from _tree(found, width, depth, most_lines, more)
    yield ()
    yield from _influences(found, width, most_listed)
    for note in found.notes:
        yield (StyledWord("dim", visible(f"note: {note}")),)


def rows_as_text(rows: Iterable[Row]) -> str:
    """Lines without any style."""
    return "\n".join("".join(word.text for word in row).rstrip() for row in rows)


def number_text(value: float | None, digits: int = 6) -> str:
    """A value for people."""
    if value is None:
        return "each step"
    return f"{value:.{digits}g}" if math.isfinite(value) else str(value)


def _signed(value: float) -> str:
    return f"{value:+.3g}" if math.isfinite(value) else str(value)


# --- where ---


def _heading(found: Explanation, width: int) -> Iterator[Row]:
    place = found.place
    given = {"x": place.x, "y": place.y} if found.is_picture else {"channel": place.channel} if found.is_sound else {}
    words = [f"{name}={number_text(value)}" for name, value in given.items()]
    words.append(f"time={number_text(place.moment.abstime)}")
    where = "" if found.pixel is None else " pixel {},{}".format(*found.pixel)
    yield (StyledWord("heading", visible(found.sink)), StyledWord("plain", f"{where} at {' '.join(words)}"))
    yield (StyledWord("dim", _cut(f"{_line(found.span)}  {_source_line(found.span)}", width)),)


def _line(span: Span) -> str:
    return str(span.source.position(span.start)[0])


def _source_line(span: Span) -> str:
    return visible(span.source.line(span.source.position(span.start)[0]).strip())


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"


# --- the tree ---


class _TreeLine(NamedTuple):
    branch: str
    node: ExplainedNode
    is_again: bool


def _tree(found: Explanation, width: int, depth: int | None, most_lines: int, more: str) -> Iterator[Row]:
    lines = list(_lines(found, depth or 1))
    if depth is None:
        depth = 1
        while depth < len(found.nodes):
            deeper = list(_lines(found, depth + 1))
            if len(deeper) > most_lines or len(deeper) == len(lines):
                break
            depth, lines = depth + 1, deeper
    shown = {line.node for line in lines}
    names = min(max((len(line.branch + _name(line.node)) for line in lines), default=0), _WIDEST_NAME)
    for line in lines:
        yield _tree_row(line, names, width)
    if (rest := sum(node not in shown for node in found.nodes)) > 0:
        yield (StyledWord("dim", f"… and {rest:,} below: {more.format(depth + 2)}"),)


def _lines(found: Explanation, depth: int) -> Iterator[_TreeLine]:
    """The nodes down to a depth. A node that was met before is named again, without what is below it."""
    seen: set[int] = set()
    waiting = [(at, "", "", 0) for at in reversed(found.outputs)]
    while waiting:
        at, branch, indent, level = waiting.pop()
        node = found.nodes[at]
        is_again = at in seen and bool(node.reads)
        yield _TreeLine(branch, node, is_again)
        if at in seen or level == depth:
            continue
        seen.add(at)
        last = len(node.reads) - 1
        children = [
            (each, f"{indent}{'└' if k == last else '├'} ", f"{indent}{' ' if k == last else '│'} ", level + 1)
            for k, each in enumerate(node.reads)
        ]
        waiting += reversed(children)


def _name(node: ExplainedNode) -> str:
    name = visible(node.name.rpartition(".")[2] if node.kind == "output" else node.name)
    if node.taken is not None:
        name += " → then" if node.taken == 0 else " → else"
    if node.place:
        name += " at " + " ".join(f"{each}={number_text(value, 3)}" for each, value in node.place)
    return name


def _tree_row(line: _TreeLine, names: int, width: int) -> Row:
    node = line.node
    name = shortened(_name(node), max(8, names - len(line.branch)))
    value = number_text(node.value).rjust(12)
    head = (
        StyledWord("dim", line.branch), StyledWord("heading" if node.kind == "output" else "plain", name),
        StyledWord("plain", " " * max(0, names - len(line.branch) - len(name))), StyledWord("value", value),
    )  # fmt: skip
    if line.is_again:
        return (*head, StyledWord("dim", "  as above"))
    place = f"  {_line(node.span):>4}  "
    text = visible(" ".join(node.span.text.split())) if node.kind in ("call", "local", "choice") else ""
    text = text or _source_line(node.span)
    left = width - sum(len(word.text) for word in head) - len(place)
    return (*head, StyledWord("dim", place + _cut(text, left) if left > 8 else place.rstrip()))


# --- what acts on it ---


def _influences(found: Explanation, width: int, most_listed: int) -> Iterator[Row]:
    graded = [each for each in found.influences if each.effect == "slope"]
    names = [found.nodes[at].name.rpartition(".")[2] for at in found.outputs][:_MOST_COLUMNS]
    is_narrow = width < _BEFORE_CHANGES + _CHANGE * len(names)
    if graded:
        yield (StyledWord("heading", _cut("What acts on it most: the change for 1 % more", width)),)
        if not is_narrow:
            yield (StyledWord("dim", " " * _BEFORE_CHANGES + "".join(name.rjust(_CHANGE) for name in names)),)
    for each in graded[:most_listed]:
        yield _influence_row(each, names, is_narrow, width)
    if len(graded) > most_listed:
        yield (StyledWord("dim", f"  … and {len(graded) - most_listed} weaker ones"),)
    if found.pixel is not None and not is_narrow and any(map(any, (found.slopes["x"], found.slopes["y"]))):
        for axis, count, words in zip("xy", found.size, ("a pixel right", "a pixel down"), strict=True):
            moved = [slope / count for slope in found.slopes[axis][: len(names)]]
            yield (StyledWord("dim", f"  {words:<20}" + "".join(_signed(each).rjust(_CHANGE) for each in moved)),)
    for effect, words in (
        ("step", "in steps only"), ("unknown", "not known how"), ("decides", "decide what is computed"),
    ):  # fmt: skip
        listed = [each for each in found.influences if each.effect == effect]
        if listed:
            yield (StyledWord("dim", _cut(f"  {words}: {', '.join(map(_listed, listed))}", width)),)
    if rest := sum(each.effect == "none" for each in found.influences):
        yield (StyledWord("dim", f"  nothing here: {rest} other{'s' * (rest != 1)}"),)


def _listed(each: Influence) -> str:
    return visible(each.name) + (f" ({_place(each.span)})" if each.span is not None else "")


def _place(span: Span) -> str:
    line, column = span.source.position(span.start)
    return f"{line}:{column}"


def _influence_row(each: Influence, names: Sequence[str], is_narrow: bool, width: int) -> Row:
    """A number and its changes: of each output, or if that is too wide the largest one, with the name of the output."""
    place = _place(each.span) if each.span is not None else ""
    changes: Sequence[float] = each.change[: len(names)]
    shown = "".join((_signed(change) if change else "·").rjust(_CHANGE) for change in changes)
    if is_narrow:
        most = max(range(len(changes)), key=lambda at: abs(changes[at]))
        shown = f"  {names[most]} {_signed(changes[most])}".ljust(_CHANGE + 4)
    partly = " and more" if each.is_partial else ""
    head = (StyledWord("strong", f"  {shortened(visible(each.name), 12):<12}"), StyledWord("dim", f"{place:>8}"),
            StyledWord("value", shown), StyledWord("dim", partly))  # fmt: skip
    left = width - sum(len(word.text) for word in head) - 2
    if each.span is None:
        return (*head, StyledWord("dim", f"  now {number_text(each.value)}")) if left > 8 else head
    return (*head, StyledWord("dim", "  " + _cut(_around(each.span, left), left))) if left > 8 else head


def _around(span: Span, width: int) -> str:
    """The line of a number, from where the number is seen."""
    line, column = span.source.position(span.start)
    text = span.source.line(line)
    start = len(text) - len(text.lstrip())
    first = max(start, min(column - 1 - width // 2, len(text) - width))
    return ("…" if first > start else "") + visible(text[first:].rstrip())
