"""What the server answers about a whole text: outline, folding, selection, tokens, colours, links, style, and what
corrects its mistakes."""

from __future__ import annotations

import re

import pytest
from lsprotocol import types

from tests.support.mutations import programs
from weft.contexts import context_table
from weft.editor.documents import Document, Documents
from weft.editor.questions import TOKEN_MODIFIERS, TOKEN_TYPES
from weft.editor.read_texts import TextReader
from weft.errors import Source
from weft.names import RESERVED
from weft.permissions import DEFAULT_PERMISSIONS
from weft.syntax.formatting import formatted
from weft.syntax.scanner import NAME

SHIPPED = programs("patches", "weft/std")

TEXT = """\
// What it is,
// in two lines.
#use std.coord
#include "lib.weft"
me<width> = 640
#color tint<r, g, b> = "#ff8000" "tint"

spindle disc(p<x, y>, radius = 0.2) :: v {
  // inside
  v = if length(p) < radius
    then 1 else 0   // é 𝄞
}
warm = <1, 0.5, 0.25> * disc(centre())
display(warm +
  tint)
"""


@pytest.fixture
def text(shared):
    (shared.folder / "lib.weft").write_text("// nothing\n")
    if "t.weft" not in shared.texts:
        shared.open("t.weft", TEXT)
    return shared


def test_the_outline(text):
    parameters = types.DocumentSymbolParams(text.document("t.weft"))
    found = text.now(text.client.text_document_document_symbol_async(parameters))
    assert [each.name for each in found] == ["me<width>", "tint", "disc", "warm", "display"]
    disc = found[2]
    assert disc.kind == types.SymbolKind.Function
    assert [(each.name, each.detail) for each in disc.children] == [
        ("p", "parameter"), ("radius", "parameter"), ("v", "output")
    ]
    assert text.shown("t.weft", disc.selection_range) == "disc"
    assert text.shown("t.weft", disc.range).endswith("}")


def test_folding(text):
    found = text.now(text.client.text_document_folding_range_async(types.FoldingRangeParams(text.document("t.weft"))))
    assert {(each.start_line, each.end_line, each.kind) for each in found} == {
        (0, 1, "comment"), (2, 3, "imports"), (7, 11, None), (13, 14, None)
    }


def test_selecting_more_and_more(text):
    parameters = types.SelectionRangeParams(text.document("t.weft"), [text.at("t.weft", "length(‸p)")])
    (found,) = text.now(text.client.text_document_selection_range_async(parameters))
    shown = []
    while found is not None:
        shown.append(text.shown("t.weft", found.range))
        found = found.parent
    assert shown[:3] == ["p", "length(p)", "length(p) < radius"]
    assert shown[-2].startswith("spindle disc")
    assert shown[-1] == TEXT


def tokens(editor, name):
    found = editor.now(editor.client.text_document_semantic_tokens_full_async(
        types.SemanticTokensParams(editor.document(name))))  # fmt: skip
    line = column = 0
    for at in range(0, len(found.data), 5):
        down, right, length, kind, bits = found.data[at : at + 5]
        line, column = line + down, right if down else column + right
        place = types.Range(types.Position(line, column), types.Position(line, column + length))
        modifiers = {name for number, name in enumerate(TOKEN_MODIFIERS) if bits >> number & 1}
        yield editor.shown(name, place), TOKEN_TYPES[kind], modifiers


def test_tokens(text):
    found = list(tokens(text, "t.weft"))
    assert ("// What it is,", "comment", set()) in found
    assert ("#use", "macro", set()) in found
    assert ("std.coord", "namespace", set()) in found
    assert ("disc", "function", {"declaration"}) in found
    assert ("radius", "parameter", set()) in found
    assert ("length", "function", {"defaultLibrary"}) in found
    assert ("if", "keyword", set()) in found
    assert ("0.25", "number", set()) in found
    assert ("// é 𝄞", "comment", set()) in found
    assert ("warm", "variable", {"declaration"}) in found
    assert ("display", "function", {"defaultLibrary"}) in found


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_name_of_what_ships_is_known(path):
    documents = Documents()
    documents.update({path.as_uri(): Document(path.as_uri(), SHIPPED[path])})
    reading = TextReader(documents, context_table(), DEFAULT_PERMISSIONS).reading(path.as_uri())
    assert reading.tokens is not None
    known = {each.span.start for each in reading.occurrences}
    plain = re.sub("P[^p]*p", lambda pragma: " " * len(pragma[0]), reading.tokens.kinds)
    unknown = [at for at, kind in enumerate(plain) if kind == NAME and reading.tokens.starts[at] not in known]
    words = [(reading.tokens.text(at), str(reading.tokens.span(at))) for at in unknown]
    assert [each for each in words if each[0] not in RESERVED] == []


def test_colours_are_picked_where_they_are_written(text):
    found = text.now(text.client.text_document_document_color_async(types.DocumentColorParams(text.document("t.weft"))))
    shown = {text.shown("t.weft", each.range): each for each in found}
    assert shown.keys() == {'"#ff8000"', "<1, 0.5, 0.25>"}
    assert shown["<1, 0.5, 0.25>"].color == types.Color(1.0, 0.5, 0.25, 1.0)
    for place, written in (('"#ff8000"', '"#336699"'), ("<1, 0.5, 0.25>", "<0.2, 0.4, 0.6>")):
        parameters = types.ColorPresentationParams(
            text.document("t.weft"), types.Color(0.2, 0.4, 0.6, 1.0), shown[place].range
        )
        (presented,) = text.now(text.client.text_document_color_presentation_async(parameters))
        assert text.edited("t.weft", [presented.text_edit]) == TEXT.replace(place, written)


def test_links_lead_to_files(text):
    found = text.now(text.client.text_document_document_link_async(types.DocumentLinkParams(text.document("t.weft"))))
    shown = {text.shown("t.weft", each.range): each.target for each in found}
    assert shown.keys() == {"std.coord", "lib.weft"}
    assert shown["lib.weft"] == text.uri("lib.weft")
    assert shown["std.coord"].endswith("/std/coord.weft")


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_a_text_is_brought_in_style(shared, ending):
    ugly = TEXT.replace("v = if", "v=if").replace("640", "640\n\n\n\n").replace("\n", ending)
    shared.open("u.weft", ugly)
    parameters = types.DocumentFormattingParams(
        shared.document("u.weft"), types.FormattingOptions(tab_size=8, insert_spaces=False)
    )
    edits = shared.now(shared.client.text_document_formatting_async(parameters))
    assert shared.edited("u.weft", edits) == formatted(Source("u.weft", ugly)) != ugly
    shared.edit("u.weft", "a = \n")
    assert not shared.now(shared.client.text_document_formatting_async(parameters))


def actions(editor, name):
    everything = types.Range(types.Position(0, 0), types.Position(9999, 0))
    context = types.CodeActionContext(list(editor.diagnostics(name)))
    parameters = types.CodeActionParams(editor.document(name), everything, context)
    return list(editor.now(editor.client.text_document_code_action_async(parameters)))


@pytest.mark.parametrize(("wrong", "title", "right", "is_sure"), [
    ("display(rotate(centre(), 1)@x)\n", "add #use std.coord", "#use std.coord\ndisplay(rotate(centre(), 1)@x)\n", 1),
    ("display(time)\n", "write me@time", "display(me@time)\n", True),
    ("display(sinn(me@x))\n", "write sin", "display(sin(me@x))\n", False),
    ("a<r, gg> = <0, 1>\ndisplay(a@r, a@ggg, 0)\n", "write gg", "a<r, gg> = <0, 1>\ndisplay(a@r, a@gg, 0)\n", False),
    ("// a\r\ndisplay(centre()@x)\r\n", "add #use std.coord", "// a\r\n#use std.coord\r\ndisplay(centre()@x)\r\n", 1),
])  # fmt: skip
def test_a_mistake_is_corrected(shared, wrong, title, right, is_sure):
    shared.open("w.weft", wrong)
    found = next(each for each in actions(shared, "w.weft") if each.title == title)
    (edits,) = found.edit.changes.values()
    assert shared.edited("w.weft", edits) == right
    assert found.is_preferred == is_sure
    assert found.diagnostics
    shared.edit("w.weft", right)
    assert actions(shared, "w.weft") == []
    shared.shut("w.weft")
