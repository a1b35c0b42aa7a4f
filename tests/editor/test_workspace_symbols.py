"""What the server finds in all texts of a workspace, open ones and others."""

from __future__ import annotations

from lsprotocol import types


def names(editor, query):
    found = editor.now(editor.client.workspace_symbol_async(types.WorkspaceSymbolParams(query)))
    return [(each.name, each.container_name, each.location.range.start.line) for each in found or ()]


def test_symbols_of_open_texts_and_of_files_are_found_by_some_of_their_letters(editor):
    below = editor.folder / "more"
    below.mkdir()
    (below / "lib.weft").write_text("// é 𝄞\nspindle bright_disc(p) :: v { v = p }\n")
    (editor.folder / ".hidden").mkdir()
    (editor.folder / ".hidden" / "no.weft").write_text("disc_hidden = 1\n")
    (editor.folder / "open.weft").write_text("old_disc = 1\n")
    editor.open("open.weft", '#slider disc<v> = 0, 1, 0.5\nnew_disc = disc@v\ndisplay(new_disc\n')
    assert names(editor, "disc") == [
        ("disc", "open.weft", 0), ("new_disc", "open.weft", 1), ("bright_disc", "lib.weft", 1)
    ]
    assert names(editor, "BRDI") == [("bright_disc", "lib.weft", 1)]
    assert names(editor, "nothing at all") == []
    (below / "lib.weft").write_text("spindle dark_disc(p) :: v { v = p }\n")
    assert ("dark_disc", "lib.weft", 0) in names(editor, "disc")


def test_what_cannot_be_read_is_left_out(editor):
    (editor.folder / "odd.weft").write_bytes(b"\xff\xfe\x00 = 1")
    (editor.folder / "large.weft").write_text("large = 1\n" * 100_000)
    (editor.folder / "gone.weft").symlink_to(editor.folder / "nowhere")
    (editor.folder / "ok.weft").write_text("lark = 1\n")
    assert names(editor, "la") == [("lark", "ok.weft", 0)]
