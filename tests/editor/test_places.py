"""What the server answers about a place in a text: help, completion, definitions, mentions, renaming."""

from __future__ import annotations

import gc
import random

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from tests.support.mutations import programs
from weft.contexts import context_table
from weft.editor.documents import Document, Documents, path_of_uri
from weft.editor.navigation import Navigator
from weft.editor.occurrences import OWN_KINDS
from weft.editor.questions import RefusedRequestError
from weft.editor.read_texts import TextReader
from weft.permissions import DEFAULT_PERMISSIONS

TEXT = """\
#use std.coord
#slider speed<v> = 0, 2, 0.5 "speed"
/// A soft disc.
/// @param radius how large it is
/// @returns 1 inside
spindle disc(p<x, y>, radius = 0.2) :: v {
  d = length(p@x, p@y)
  for i in (1 to 3) { d += i * 0.01 }
  v = smoothstep(radius, radius * 0.9, d)
}
centred = centre() |> rotate(me@time * speed)
shown<r, g, b> = <disc(centred), me@x, 0.2>
loud = sin(me@time * 440 * tau)
display(shown)
audio(loud * 0.2, right: 0)
"""


@pytest.fixture
def text(shared):
    if "a.weft" not in shared.texts:
        shared.open("a.weft", TEXT)
        shared.settle()
    return shared


# --- help ---


@pytest.mark.parametrize(("place", "said"), [
    ("shown<r‸, g", ["shown@r", "each pixel"]),
    ("display(sho‸wn)", ["shown<r, g, b> = <disc(centred)", "3 strands: `r`, `g`, `b`", "for visual"]),
    ("audio(lo‸ud", ["one strand", "each sample", "for audio"]),
    ("<di‸sc(centred)", ["disc(p<x, y>, radius = 0.2) :: v", "A soft disc.", "`radius`: how large", "gives 1 inside"]),
    ("smoothstep(ra‸dius,", ["radius = 0.2", "parameter of `disc`", "how large it is"]),
    ("smooth‸step(radius,", ["smoothstep(a, b, x)", "builtin"]),
    ("|> rot‸ate(", ["rotate(p<x, y> = centre(), angle = me@time)", "Turns what is drawn clockwise"]),
    ("rotate(me@ti‸me", ["me@time", "coordinate"]),
    ("disp‸lay(shown)", ["display(", "output statement"]),
    ("440 * ta‸u", ["tau", "constant"]),
    ("#sli‸der", ["#slider", "pragma"]),
    ("#use std.co‸ord", ["#use std.coord", "library"]),
    ("centre() ‸|> rotate", ["|>", "form"]),
    ("f‸or i in", ["for i in"]),
    ("audio(loud * 0.2, ri‸ght", ["audio(", "labels"]),
])  # fmt: skip
def test_help_about_a_name(text, place, said):
    found = text.hovered("a.weft", place)
    assert [each for each in said if each not in found] == [], found


def test_what_a_stranger_writes_is_shown_as_text(shared):
    shared.open("strange.weft", "/// ![x](http://a.b/c) <img> ```\nspindle f(x) :: v { v = x }\ndisplay(f(me@x))\n")
    found = shared.hovered("strange.weft", "display(‸f(")
    assert "\\!\\[x\\](http://a.b/c) \\<img\\> \\`\\`\\`" in found


def test_nothing_is_said_where_there_is_nothing(text):
    assert text.hovered("a.weft", '0.5 "sp‸eed"') == ""


def test_the_parameters_of_a_call(shared):
    shared.open("s.weft", TEXT + "x = disc(centre(), ‸\n".replace("‸", "") + "y = clamp(0.5, hi: 2)\n")

    def signature(place):
        return shared.now(shared.client.text_document_signature_help_async(
            shared.where(types.SignatureHelpParams, "s.weft", place)))  # fmt: skip

    def active(found):
        each = found.signatures[found.active_signature]
        return each.label[slice(*each.parameters[found.active_parameter].label)]

    found = signature("x = disc(centre(), ‸")
    assert found.signatures[0].label == "disc(p<x, y>, radius = 0.2) :: v"
    assert active(found) == "radius = 0.2"
    assert found.signatures[0].parameters[1].documentation == "how large it is"
    assert active(signature("x = disc(‸centre()")) == "p<x, y>"
    assert active(signature("clamp(0.5, hi: ‸2")) == "hi: 1"
    assert active(signature("|> rotate(me@‸time")) == "angle = me@time"
    shown = signature("display(‸shown)")
    assert [each.label for each in shown.signatures] == ["display(gray)", "display(r, g, b)", "display(r, g, b, a)"]
    assert signature("loud = s‸in") is None


# --- completion ---


@pytest.mark.parametrize(("line", "wanted", "unwanted"), [
    ("x = me@‸", ["x", "time", "beatphase", "width"], ["sin", "shown"]),
    ("x = mouse@‸", ["x", "down", "wheel"], ["time"]),
    ("x = key@‸", ["space", "a"], ["time"]),
    ("x = shown@‸", ["r", "g", "b"], ["v", "sin"]),
    ("x = speed@‸", ["v"], ["r"]),
    ("x = centred@‸", ["x", "y"], ["r"]),
    ("x = rotate()@‸", ["x", "y"], ["r", "sin"]),
    ("x = ‸", ["shown", "disc", "sin", "rotate", "if", "me", "prev", "pi", "sum", "pattern"], ["display", "radius"]),
    ("‸", ["display", "spindle", "shown"], []),
    ("x = sm‸", ["smoothstep", "sin", "smooth_seq"], ["cos"]),
    ("#‸", ["slider", "use", "fade"], ["sin"]),
    ("#use std.‸", ["std.coord", "std.noise"], ["sin"]),
    ("me<‸", ["width", "bpm"], ["time", "sin"]),
    ("x = clamp(0.5, ‸", ["lo", "hi", "sin"], []),
    ("x = disc(centred, ‸", ["radius", "p"], []),
    ("display(‸", ["r", "rgb", "to", "shown"], []),
    ("// x = me@‸", [], ["x", "sin"]),
    ("/* a\nx = me@‸", [], ["x", "sin"]),
    ("/* a\nx = me@‸ */", [], ["x", "sin"]),
    ("/* a */ x = me@‸", ["x", "time"], ["sin"]),
    ('w = load("a/*.png"); x = me@‸', ["x", "time"], ["sin"]),
    ('x = text("me@‸', [], ["x", "sin"]),
])  # fmt: skip
def test_completion_knows_the_place(text, line, wanted, unwanted):
    name = f"c{len(text.texts)}.weft"
    text.open(name, TEXT)
    text.settle()
    text.edit(name, TEXT + line.replace("‸", ""))
    found = text.completed(name, "right: 0)\n" + line)
    assert set(wanted) <= found.keys()
    assert not found.keys() & set(unwanted)


def test_completion_in_a_spindle_has_its_names(text):
    found = text.completed("a.weft", "d += i * ‸0.01")
    assert {"i", "d", "radius", "p", "v", "shown"} <= found.keys()


def test_a_word_of_a_library_brings_the_line_that_uses_it(text):
    item = text.completed("a.weft", "loud = s‸in(")["sine_tone"]
    (use,) = item.additional_text_edits
    assert use.new_text == "#use std.synth\n"
    edited = text.edited("a.weft", [item.text_edit, use])
    assert edited.startswith("#use std.coord\n#use std.synth\n#slider")


def test_the_place_of_all_proposals_is_said_once_to_editors_that_know_this(any_editor):
    text = any_editor
    text.open("a.weft", TEXT)
    asked = text.where(types.CompletionParams, "a.weft", "loud = s‸in(")
    found = text.now(text.client.text_document_completion_async(asked))
    lists = text.capabilities.text_document.completion.completion_list
    knows = lists is not None and "editRange" in (lists.item_defaults or ())
    assert (found.item_defaults is not None) == knows
    assert {item.text_edit is None for item in found.items} == {knows}
    place = found.item_defaults.edit_range if knows else found.items[0].text_edit.range
    assert text.shown("a.weft", place) == "s"


def test_what_completion_says_of_a_word(text):
    item = text.completed("a.weft", "v = smooth‸step(")["smoothstep"]
    assert item.detail == "smoothstep(a, b, x)"
    said = text.now(text.client.completion_item_resolve_async(item))
    assert "builtin" in said.documentation.value
    spindle = text.now(text.client.completion_item_resolve_async(text.completed("a.weft", "= <d‸isc(")["disc"]))
    assert "A soft disc." in spindle.documentation.value


def test_files_are_completed_in_strings(shared):
    (shared.folder / "pictures").mkdir()
    for name in ("pictures/cat.png", "pictures/notes.txt", "lib.weft"):
        (shared.folder / name).write_bytes(b"")
    shared.open("files.weft", '#include "\nx = load("pictures/\ny = load("../\n')
    assert {"lib.weft", "pictures"} <= shared.completed("files.weft", '#include "‸\n').keys()
    assert shared.completed("files.weft", 'load("pictures/‸\n').keys() == {"cat.png"}
    assert shared.completed("files.weft", 'load("../‸\n') == {}


# --- definitions and mentions ---


def target(editor, name, place):
    found = editor.now(editor.client.text_document_definition_async(editor.where(types.DefinitionParams, name, place)))
    return [(path_of_uri(each.uri).rpartition("/")[2], each.range.start.line) for each in found]


@pytest.mark.parametrize(("place", "line"), [
    ("display(sho‸wn)", 11), ("rotate(me@time * spe‸ed)", 1), ("<di‸sc(", 5), ("v = smoothstep(rad‸ius,", 5),
    ("d += ‸i *", 7), ("length(p@‸x,", 5),
])  # fmt: skip
def test_where_a_name_is_bound(text, place, line):
    assert ("a.weft", line) in target(text, "a.weft", place)


def test_where_words_of_libraries_are_bound(text):
    ((file, line),) = target(text, "a.weft", "|> rot‸ate(")
    assert file == "coord.weft"
    assert line > 0
    assert target(text, "a.weft", "#use std.co‸ord") == [("coord.weft", 0)]


def mentions(editor, name, place):
    parameters = types.ReferenceParams(
        types.ReferenceContext(True), editor.document(name), editor.at(name, place)
    )
    found = editor.now(editor.client.text_document_references_async(parameters)) or []
    return sorted((path_of_uri(each.uri).rpartition("/")[2], each.range.start.line) for each in found)


def test_where_a_name_is_mentioned(text):
    assert mentions(text, "a.weft", "display(sho‸wn)") == [("a.weft", 11), ("a.weft", 13)]
    assert mentions(text, "a.weft", "smoothstep(radi‸us, ") == [("a.weft", 5), ("a.weft", 8), ("a.weft", 8)]
    assert [line for _, line in mentions(text, "a.weft", "  d‸ = length")] == [6, 7, 8]
    lit = text.now(text.client.text_document_document_highlight_async(
        text.where(types.DocumentHighlightParams, "a.weft", "display(sho‸wn)")))  # fmt: skip
    assert [(each.range.start.line, each.kind) for each in lit] == [
        (11, types.DocumentHighlightKind.Write), (13, types.DocumentHighlightKind.Read)
    ]


def renamed(editor, name, place, new):
    edit = editor.now(editor.client.text_document_rename_async(
        types.RenameParams(editor.document(name), editor.at(name, place), new)))  # fmt: skip
    return {path_of_uri(uri).rpartition("/")[2]: edits for uri, edits in edit.changes.items()}


def test_a_name_is_renamed_wherever_it_is(text):
    edits = renamed(text, "a.weft", "display(sho‸wn)", "picture")
    assert text.edited("a.weft", edits["a.weft"]) == TEXT.replace("shown", "picture")
    edits = renamed(text, "a.weft", "v = smoothstep(rad‸ius,", "size")
    assert text.edited("a.weft", edits["a.weft"]) == TEXT.replace("(radius, radius", "(size, size").replace(
        ", radius = 0.2", ", size = 0.2")  # fmt: skip


@pytest.mark.parametrize(("place", "new", "why"), [
    ("display(sho‸wn)", "centred", "would not be the same"), ("display(sho‸wn)", "if", "word of the language"),
    ("display(sho‸wn)", "2x", "ASCII letter"), ("|> rot‸ate(", "turn", "library"), ("lou‸d = sin", "shown", "same"),
    ("v = smooth‸step(", "soft", "no name of the patch"), ("spindle di‸sc", "rotate", "would not be the same"),
])  # fmt: skip
def test_renaming_that_would_change_the_patch_is_refused(text, place, new, why):
    with pytest.raises(JsonRpcException, match=why):
        renamed(text, "a.weft", place, new)


def test_what_has_mistakes_is_renamed_only_to_a_new_name(shared):
    shared.open("wrong.weft", "a = me@x\nb = me@y\ndisplay(a + nosuch)\n")
    edits = renamed(shared, "wrong.weft", "display(‸a + ", "c")
    assert shared.edited("wrong.weft", edits["wrong.weft"]) == "c = me@x\nb = me@y\ndisplay(c + nosuch)\n"
    for taken in ("b", "nosuch", "sin"):
        with pytest.raises(JsonRpcException, match="has mistakes"):
            renamed(shared, "wrong.weft", "display(‸a + ", taken)


def test_a_spindle_is_renamed_in_all_open_texts_that_include_it(shared):
    (shared.folder / "words.weft").write_text("spindle f(x) :: v { v = x }\n")
    shared.open("main.weft", '#include "words.weft"\ndisplay(f(me@x))\n')
    shared.open("words.weft", "// more\nspindle f(x) :: v { v = x }\n")
    edits = renamed(shared, "words.weft", "spindle f‸(x)", "g")
    assert shared.edited("main.weft", edits["main.weft"]) == '#include "words.weft"\ndisplay(g(me@x))\n'
    assert "spindle g(x)" in shared.edited("words.weft", edits["words.weft"])
    assert mentions(shared, "main.weft", "display(‸f(") == [("main.weft", 1), ("words.weft", 1)]


def every_name(path, text, chance=None, name="", part=slice(None)):
    """Renames the names of a patch, or one of them, or a part, one after another, and returns how many could be."""
    uri = path.as_uri()
    documents, contexts = Documents(), context_table()
    documents.update({uri: Document(uri, text)})
    reader = TextReader(documents, contexts, DEFAULT_PERMISSIONS)
    navigator = Navigator(documents, reader, contexts, DEFAULT_PERMISSIONS)
    own = [each for each in reader.reading(uri).occurrences if each.is_definition and each.symbol.kind in OWN_KINDS]
    own = [each for each in own if name in ("", each.symbol.name)][part]
    done, refused = 0, []
    for each in own if chance is None else chance.sample(own, min(3, len(own))):
        try:
            assert navigator.rename(uri, each.span.start, "unlikely_name").changes
            done += 1
        except RefusedRequestError as refusal:
            refused.append((each.symbol, str(refusal)))
        if (done + len(refused)) % 32 == 0:
            gc.collect()  # as a server does between requests: a build leaves several megabytes
    del documents, reader, navigator
    gc.collect()
    return done, refused


PATCHES = {path: text for path, text in programs("patches").items() if "lib" not in path.parts}


@pytest.mark.parametrize("path", sorted(PATCHES, key=lambda path: len(PATCHES[path]))[:6], ids=lambda path: path.stem)
def test_names_of_patches_are_renamed(path):
    done, refused = every_name(path, PATCHES[path], random.Random(path.stem))
    assert done, refused
    assert {symbol.kind for symbol, _ in refused} <= {"output", "local"}


NAMES = [("ripple", "depth"), ("voronoi", "lead"), ("strand", "sway"), ("scratch", "drag")]


@pytest.mark.parametrize(("patch", "name"), NAMES)
def test_the_order_in_which_names_are_sorted_does_not_count(patch, name):
    """Listings have unnamed values by their numbers, or by the text that they stand for, which is cut; films by the
    hash of what leads them; and sums in the order of what is added up."""
    (path,) = (each for each in PATCHES if each.stem == patch)
    assert every_name(path, PATCHES[path], name=name) == (1, [])


# Each rename compiles the patch, so those of a long one are in several tests, of about a dozen names each.
PARTS = [
    (path, slice(at, None, count))
    for path, text in PATCHES.items() for count in (len(text) // 400 + 1,) for at in range(count)
]  # fmt: skip


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("path", "part"), PARTS, ids=[f"{path.stem}-{part.start}" for path, part in PARTS])
def test_all_names_of_all_patches_are_renamed(path, part):
    done, refused = every_name(path, PATCHES[path], part=part)
    assert {symbol.kind for symbol, _ in refused} <= {"output", "local"}
    assert done >= len(refused), refused
