"""The command `weft.why`: why a pixel of an unsaved text has its value."""

from __future__ import annotations

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from weft.contexts import context_table
from weft.editor.documents import Document, Documents
from weft.editor.questions import RefusedRequestError
from weft.editor.reasons import reasons
from weft.permissions import DEFAULT_PERMISSIONS


def why(editor, name, place):
    asked = types.ExecuteCommandParams("weft.why", [editor.uri(name), place])
    return editor.now(editor.client.workspace_execute_command_async(asked))


def asked(text, place):
    documents = Documents()
    documents.update({"file:///a.weft": Document("file:///a.weft", text)})
    return reasons(documents, context_table(), DEFAULT_PERMISSIONS, "file:///a.weft", place)


def test_a_pixel_of_an_open_text():
    found = asked("a<v> = me@x * 0.75\ndisplay(a@v)\n", {"x": 0.5, "name": "a"})
    assert found["nodes"][0]["value"] == 0.375
    assert "0.75" in found["text"]
    with pytest.raises(RefusedRequestError, match="time is a number"):
        asked("display(1)", {"time": True})
    with pytest.raises(RefusedRequestError, match="nosuch"):
        asked("display(nosuch)", {})


@pytest.mark.long
def test_a_pixel_of_a_text_that_includes_an_unsaved_one(editor):
    editor.open("lib.weft", "spindle twice(x) :: v { out v = x * 2 }\n")
    editor.open("a.weft", '#include "lib.weft"\na<v> = twice(me@x) * 0.75\ndisplay(a@v)\n')
    found = why(editor, "a.weft", {"x": 0.25, "y": 0.5, "time": 1})
    assert "weft.why" in editor.server.capabilities.execute_command_provider.commands
    assert found["nodes"][0]["value"] == 0.375
    assert {each["name"] for each in found["influences"]} == {"0.75", "2"}
    assert found["text"].startswith("display pixel 320,360 at")
    editor.edit("lib.weft", "spindle twice(x) :: v { out v = x * 3 }\n")
    assert why(editor, "a.weft", {"x": 0.25})["nodes"][0]["value"] == 0.5625
    for place, words in (
        ({"x": 2}, "a place in the picture"), ({"time": "now"}, "time is a number"), ({"z": 1}, "and no z"),
        ({"name": "hall"}, 'no output statement "hall"'), ({"name": 3}, "the name is"),
    ):  # fmt: skip
        with pytest.raises(JsonRpcException, match=words):
            why(editor, "a.weft", place)
    editor.edit("a.weft", "display(nosuch)\n")
    with pytest.raises(JsonRpcException, match="nosuch"):
        why(editor, "a.weft", {})
    with pytest.raises(JsonRpcException, match="not open"):
        why(editor, "other.weft", {})
