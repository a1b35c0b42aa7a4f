"""What editors draw from the form of a text: its outline, what folds, what is selected next, colours of tokens, colours
to pick, links, and the text in style."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby
from typing import Final

from lsprotocol import types

from weft.contexts import ContextTable
from weft.editor.documents import Documents, uri_of_path
from weft.editor.occurrences import Symbol
from weft.editor.questions import TOKEN_MODIFIERS, TOKEN_TYPES
from weft.editor.read_texts import ReadText
from weft.errors import Span, WeftError
from weft.sources import SOURCES
from weft.syntax.ast import (
    Binding, Bundle, Call, CallBinding, For, Include, OutputStatement, Parameter, Setting, SpindleDefinition, Statement,
    Text, Use, Walkable, literal_number, walk, walk_statement
)
from weft.syntax.formatting import formatted
from weft.syntax.scanner import KEYWORDS, NAME, NUMBER, OPERATOR, PRAGMA, TEXT

# --- the outline ---


def outline_of(reading: ReadText) -> list[types.DocumentSymbol]:
    """The statements of a text, those of spindles with their parameters and outputs."""
    return [_symbol(reading, each) for each in reading.own.statements if not isinstance(each, (Include, Use))]


def _symbol(reading: ReadText, statement: Statement) -> types.DocumentSymbol:
    at = reading.positions.of
    name, kind, place, detail = headline(statement)
    inner = None
    if isinstance(statement, SpindleDefinition):
        inner = [
            types.DocumentSymbol(each.name, types.SymbolKind.Variable, at(each.span), at(each.span), detail=what)
            for what, idents in (
                ("parameter", [parameter.ident for parameter in statement.parameters]), ("output", statement.outputs)
            )
            for each in idents
        ]  # fmt: skip
    return types.DocumentSymbol(name, kind, at(statement.span), at(place), detail=detail, children=inner)


def headline(statement: Statement) -> tuple[str, types.SymbolKind, Span, str | None]:
    """What a statement is called in an outline, its kind, the place of its name, and what is said besides."""
    match statement:
        case Binding(name=name, outputs=outputs):
            listed = ", ".join(output.name for output in outputs or ())
            return name.name, types.SymbolKind.Variable, name.span, f"<{listed}>" if listed else None
        case CallBinding(name=name, outputs=outputs):
            listed = ", ".join(output.name for output in outputs)
            return name.name, types.SymbolKind.Variable, name.span, f"<{listed}>"
        case SpindleDefinition(name=name):
            return name.name, types.SymbolKind.Function, name.span, None
        case Parameter(name=name, kind=kind):
            return name.name, types.SymbolKind.Property, name.span, f"#{kind}"
        case Setting(field=field):
            return f"me<{field.name}>", types.SymbolKind.Constant, field.span, None
        case OutputStatement(name=word, head=head):
            return word, types.SymbolKind.Event, head, None
    word = statement.span.text.split()[0]
    return word, types.SymbolKind.Constant, statement.span, None


# --- folding and selecting ---


def folds_of(reading: ReadText) -> list[types.FoldingRange]:
    """Blocks and statements of several lines, comments of several lines, and the lines that include."""
    at, found = reading.positions.of, dict[tuple[int, int], types.FoldingRange]()

    def add(first: int, last: int, kind: types.FoldingRangeKind | None = None) -> None:
        if last > first:
            found.setdefault((first, last), types.FoldingRange(first, last, kind=kind))

    for statement in reading.own.statements:
        for part in (statement, *(each for each in walk_statement(statement) if isinstance(each, For))):
            lines = at(part.span)
            add(lines.start.line, lines.end.line)
    for are_included, run in groupby(reading.own.statements, lambda each: isinstance(each, (Include, Use))):
        if are_included:
            spans = [each.span for each in run]
            add(at(spans[0]).start.line, at(spans[-1]).end.line, types.FoldingRangeKind.Imports)
    for first, last in _comment_lines(reading):
        add(first, last, types.FoldingRangeKind.Comment)
    return list(found.values())


def _comment_lines(reading: ReadText) -> list[tuple[int, int]]:
    """The first and last lines of comments that stand alone, those that follow each other as one."""
    runs: list[tuple[int, int]] = []
    text = reading.source.text
    for span in _comments(reading):
        if text[text.rfind("\n", 0, span.start) + 1 : span.start].strip():
            continue
        lines = reading.positions.of(span)
        first = runs.pop()[0] if runs and runs[-1][1] + 1 == lines.start.line else lines.start.line
        runs.append((first, lines.end.line))
    return runs


_COMMENT = re.compile(r"//[^\r\n]*|/\*[\s\S]*?(?:\*/|\Z)")


def _comments(reading: ReadText) -> Iterator[Span]:
    tokens = reading.tokens
    if tokens is None:
        return
    text, end = reading.source.text, 0
    for start, stop in zip([*tokens.starts, len(text)], [*tokens.ends, len(text)], strict=True):
        for comment in _COMMENT.finditer(text, end, max(start, end)):
            yield Span(reading.source, *comment.span())
        end = max(stop, end)


def selection_at(reading: ReadText, offset: int) -> types.SelectionRange:
    """What is selected step by step around a place: a name, its expressions, its statement, the text."""
    text = reading.source.text
    spans = {(0, len(text))}
    for statement in reading.own.statements:
        if statement.span.start <= offset <= statement.span.end:
            spans.add((statement.span.start, statement.span.end))
            for node in _parts(statement):
                if node.span.start <= offset <= node.span.end:
                    spans.add((node.span.start, node.span.end))
    if (name := reading.occurrence(offset)) is not None:
        spans.add((name.span.start, name.span.end))
    found: types.SelectionRange | None = None
    around = (0, len(text))
    for start, end in sorted(spans, key=lambda each: (each[0] - each[1], each[0])):
        if around[0] <= start and end <= around[1]:
            found = types.SelectionRange(reading.positions.range(start, end), found)
            around = start, end
    assert found is not None
    return found


def _parts(statement: Statement) -> Iterator[Walkable]:
    yield from walk_statement(statement)
    if isinstance(statement, SpindleDefinition):
        yield from chain.from_iterable(walk(each.default) for each in statement.parameters if each.default is not None)


# --- colours of tokens ---

_OWN_WORDS: Final = 1 << TOKEN_MODIFIERS.index("defaultLibrary")
_READ_ONLY: Final = 1 << TOKEN_MODIFIERS.index("readonly")
_OF_SYMBOLS: Final = {
    "strand": ("variable", 0), "output": ("property", 0), "spindle": ("function", 0), "local": ("variable", 0),
    "parameter": ("parameter", 0), "variable": ("variable", _READ_ONLY), "builtin": ("function", _OWN_WORDS),
    "memory": ("function", _OWN_WORDS), "word": ("function", _OWN_WORDS), "source": ("function", _OWN_WORDS),
    "constant": ("variable", _OWN_WORDS | _READ_ONLY), "coordinate": ("property", _OWN_WORDS),
    "setting": ("property", _OWN_WORDS), "statement": ("function", _OWN_WORDS), "label": ("parameter", 0),
    "library": ("namespace", 0),
}  # fmt: skip
_OF_KINDS: Final = {
    NUMBER: "number", TEXT: "string", OPERATOR: "operator", PRAGMA: "macro", "|": "operator", "~": "operator",
    **{kind: "keyword" for kind in KEYWORDS.values() if kind != OPERATOR},
}  # fmt: skip


def tokens_of(reading: ReadText) -> list[int]:
    """The semantic tokens of a text, each by the distance from the one before, as the protocol wants it."""
    found = dict[int, tuple[int, str, int]]()
    tokens = reading.tokens
    for at, kind in enumerate(tokens.kinds if tokens else ()):
        assert tokens is not None
        start, end = tokens.starts[at], tokens.ends[at]
        word = reading.source.text[start:end]
        shown = "keyword" if word in KEYWORDS and kind != NAME else _OF_KINDS.get(kind)
        if shown is not None and end > start:
            found[start] = end, shown, 0
    for each in reading.occurrences:
        if each.symbol.kind in _OF_SYMBOLS:
            shown, modifiers = _OF_SYMBOLS[each.symbol.kind]
            found[each.span.start] = each.span.end, shown, modifiers | each.is_definition
    for span in _comments(reading):
        found[span.start] = span.end, "comment", 0
    data, line, column, last = list[int](), 0, 0, 0
    for start in sorted(found):
        end, shown, modifiers = found[start]
        if start < last:
            continue
        last = end
        for piece in re.finditer(r"[^\r\n]+", reading.source.text[start:end]):
            place = reading.positions.range(start + piece.start(), start + piece.end())
            first, length = place.start, place.end.character - place.start.character
            moved = first.line - line
            data += [moved, first.character - (0 if moved else column), length, TOKEN_TYPES.index(shown), modifiers]
            line, column = first.line, first.character
    return data


# --- colours to pick ---


def colours_of(reading: ReadText) -> list[types.ColorInformation]:
    """The colours of `#color` lines, and bundles of three numbers from 0 to 1."""
    found = []
    for statement in reading.own.statements:
        if isinstance(statement, Parameter) and statement.kind == "color":
            found.append(types.ColorInformation(reading.positions.of(statement.places[0]), _colour(statement.start)))
        for node in _parts(statement):
            if isinstance(node, Bundle) and len(node.items) == 3:
                numbers = [number for number in map(literal_number, node.items) if number is not None]
                if len(numbers) == 3 and all(0 <= number <= 1 for number in numbers):
                    found.append(types.ColorInformation(reading.positions.of(node.span), _colour(numbers)))
    return found


def _colour(channels: Sequence[float]) -> types.Color:
    red, green, blue = channels
    return types.Color(red=red, green=green, blue=blue, alpha=1.0)


def colour_as_text(colour: types.Color, earlier: str) -> str:
    """A picked colour, written like the one that was there."""
    channels = (colour.red, colour.green, colour.blue)
    if earlier.startswith('"'):
        return '"#' + "".join(f"{round(255 * channel):02x}" for channel in channels) + '"'
    opening, closing = (earlier[0], earlier[-1]) if earlier[:1] == "(" else ("<", ">")
    return f"{opening}{', '.join(f'{round(channel, 3):g}' for channel in channels)}{closing}"


# --- links ---


def links_of(reading: ReadText, documents: Documents) -> list[types.DocumentLink]:
    """The files that a text names, if they are there."""
    found = []
    folder = os.path.dirname(reading.source.name)
    for statement in reading.own.statements:
        if isinstance(statement, Use):
            uri = documents.library_uri(statement.library)
            if uri is not None:
                found.append(types.DocumentLink(reading.positions.of(statement.library_span), uri))
        for text, span in _named_files(statement):
            path = os.path.join(folder, text)
            if "\0" not in path and os.path.isfile(path):
                # Without the quotes.
                place = reading.positions.range(span.start + 1, span.end - 1)
                found.append(types.DocumentLink(place, uri_of_path(path)))
    return found


def _named_files(statement: Statement) -> Iterable[tuple[str, Span]]:
    if isinstance(statement, Include):
        yield statement.path, statement.path_span
    for node in walk_statement(statement):
        if isinstance(node, Call) and node.name in SOURCES and SOURCES[node.name].media:
            yield from ((each.value.value, each.value.span) for each in node.args if isinstance(each.value, Text))


def link_of(symbol: Symbol, reading: ReadText, documents: Documents) -> types.Location | None:
    """Where the file or the library of a name is."""
    nowhere = types.Range(types.Position(0, 0), types.Position(0, 0))
    if symbol.kind == "library":
        uri = documents.library_uri(symbol.name)
        return types.Location(uri, nowhere) if uri else None
    path = os.path.join(os.path.dirname(reading.source.name), symbol.name)
    return types.Location(uri_of_path(path), nowhere) if "\0" not in path and os.path.isfile(path) else None


# --- the text in style ---


def style_of(reading: ReadText, contexts: ContextTable) -> list[types.TextEdit] | None:
    """The edits that bring a text in style, line by line where it keeps its lines; None for a text with mistakes."""
    before = reading.source.text
    try:
        after = formatted(reading.source, contexts.statements)
    except WeftError:
        return None
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    shorter = min(len(old), len(new))
    start = next((at for at in range(shorter) if old[at] != new[at]), shorter)
    rest = shorter - start
    same = next((at for at in range(rest) if old[-1 - at] != new[-1 - at]), rest)
    first, last = old[start : len(old) - same], new[start : len(new) - same]
    offset = sum(map(len, old[:start]))
    if len(first) != len(last):
        first, last = ["".join(first)], ["".join(last)]
    edits = []
    for one, other in zip(first, last, strict=True):
        if one != other:
            edits.append(types.TextEdit(reading.positions.range(offset, offset + len(one)), other))
        offset += len(one)
    return edits
