"""The language server while a performance plays what is open: values beside the lines, texts without saving, numbers
that are turned."""

from __future__ import annotations

import asyncio
import json
import math
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from lsprotocol import types

from tests.support.editor import Editor
from tests.support.links import LinkedEditor, own_runtime_folder
from tests.support.performance import PATIENCE, Performance
from weft.contexts import context_table
from weft.editor.checks import Checker
from weft.editor.documents import Document, Documents
from weft.editor.live_documents import LineCosts, LineCurves, sparkline, values_beside
from weft.editor.performing import LinkedPerformance
from weft.performances import PROTOCOL, FoundPerformance, ListeningSocket, line_of
from weft.permissions import DEFAULT_PERMISSIONS

TEXT = """\
me<width> = 32
me<height> = 18
#slider speed<v> = 0, 2, 0.5
wave<v> = sin(me@x * 9 + me@y + me@time * speed@v)
tint<r, g, b> = <1, 0.5, 0.25>
display(wave@v * tint@r, tint@g, tint@b)
"""
COLOUR = TEXT.splitlines()[4].index("<1")


def linked(text: str, **values: object) -> Any:
    """A performance as the server knows it."""
    return SimpleNamespace(text=text, hash="playing", values_file="/p.weft", values=values, costs={"draw_ms": 0.5})


def shown(now: str, performance: Any, costs: LineCosts | None = None) -> list[tuple[int, int | None, str]]:
    return [(each.line, each.column, each.text) for each in values_beside(now, performance, costs or LineCosts())]


def test_what_cannot_be_read_of_what_a_performance_says_is_left_out() -> None:
    said = [
        {"event": "values", "time": 1.0, "level": math.nan, "parameters": [
            3, {}, {"name": 1, "value": 2}, {"name": "a@v", "value": 10**400}, {"name": "b@v", "value": 2.5},
        ], "numbers": [None, {"line": 1, "value": 2}, {"line": 1, "column": 5, "value": "2"}]},
        {"event": "costs", "draw_ms": [1], "late": math.inf, "fps": 60.0}, {"event": "values", "parameters": {}},
    ]  # fmt: skip

    async def heard() -> LinkedPerformance:
        reader, (one, other) = asyncio.StreamReader(), socket.socketpair()
        reader.feed_data(b"".join(json.dumps(each).encode() + b"\n" for each in said))
        reader.feed_eof()
        _, writer = await asyncio.open_connection(sock=one)
        found = LinkedPerformance(FoundPerformance(Path("p"), 1, "/p.weft"), reader, writer, lambda: None)
        await found.follow()
        other.close()
        return found

    performance = asyncio.run(heard())
    assert performance.values == {"time": 1.0, "parameters": [{"name": "b@v", "value": 2.5}], "numbers": []}
    assert performance.costs == {"fps": 60.0}


def test_values_are_beside_the_lines_to_which_they_belong_now() -> None:
    speed = {"name": "speed@v", "value": 1.25, "file": "/p.weft", "line": 3}
    performance = linked(
        TEXT + "audio(wave@v)\n", parameters=[speed, speed | {"file": "/other.weft"}], level=-12.2,
        numbers=[{"line": 5, "column": 21, "value": 0.75}, {"line": 9, "column": 1, "value": 1}],
    )  # fmt: skip
    costs = LineCosts("playing", {3: 0.5, 5: 0.001})
    whole = [(2, None, "= 1.25"), (3, None, "250 µs · 50 %"), (4, 23, "→ 0.75"), (6, None, "▮▮▮▮▮▮▯▯ -12 dB")]
    assert shown(performance.text, performance, costs) == whole
    assert shown(performance.text, performance, LineCosts("earlier", {3: 0.5})) == [whole[0], *whole[2:]]
    # Lines have moved, one is another, and one has another number.
    now = "// above\n" + performance.text.replace("wave@v * tint", "tint").replace("* 9", "* 10")
    assert shown(now, performance, costs) == [(line + 1, *rest) for line, *rest in whole]
    # An editor may end lines otherwise than the file.
    assert shown(now.replace("\n", "\r\n"), performance, costs) == [(line + 1, *rest) for line, *rest in whole]
    curves = LineCurves("playing", 1.0, {3: [0.0, 1.0]})
    assert values_beside(TEXT, linked(TEXT), LineCosts(), curves)[0].text == "▁█ 1"
    assert shown("", linked(TEXT)) == []


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Editor, Performance]]:
    with own_runtime_folder():
        folder = tmp_path_factory.mktemp("played")
        patch = folder / "patch.weft"
        patch.write_text(TEXT)
        with Performance(patch, "--headless", "--no-audio") as performance:
            performance.wait_for("started")
            editor = Editor(folder)
            editor.open("patch.weft", TEXT)
            yield editor, performance
            editor.close()


def hints(editor: Editor, name: str = "patch.weft") -> dict[int, list[str]]:
    """What is shown beside each line."""
    everywhere = types.Range(types.Position(0, 0), types.Position(1000, 0))
    asked = types.InlayHintParams(editor.document(name), everywhere)
    found: dict[int, list[str]] = {}
    for hint in editor.now(editor.client.text_document_inlay_hint_async(asked)) or ():
        found.setdefault(hint.position.line, []).append(str(hint.label).strip())
    return found


def wait_for_hints(editor: Editor, wanted: dict[int, list[str]]) -> None:
    """Waits until these are among those that are shown. What a line costs may be shown as well."""
    deadline = time.monotonic() + PATIENCE
    while not all({*each} <= {*found.get(line, ())} for found in [hints(editor)] for line, each in wanted.items()):
        assert time.monotonic() < deadline, hints(editor)
        editor.now(asyncio.sleep(0.05))


def called(editor: Editor, command: str, *arguments: object) -> dict[str, Any]:
    asked = types.ExecuteCommandParams(command, [editor.uri("patch.weft"), *arguments])
    found: dict[str, Any] = editor.now(editor.client.workspace_execute_command_async(asked))
    return found


def test_what_is_open_is_played_turned_and_shown_with_its_values(played: tuple[Editor, Performance]) -> None:
    editor, performance = played
    wait_for_hints(editor, {2: ["= 0.5"]})
    with LinkedEditor(performance.patch) as other:
        other.ask("want", kinds=["playing", "values"])
        text = TEXT.replace("* 9", "* 7")
        editor.edit("patch.weft", text)
        answer = called(editor, "weft.evaluate")
        assert answer["ok"]
        assert other.wait_for("playing", hash=answer["hash"])["text"] == text
        assert performance.patch.read_text() == TEXT
        # A number is turned; then a colour, while the text has a mistake elsewhere.
        assert called(editor, "weft.turn", {"line": 3, "character": 21}, -3)["ok"]
        other.wait_for("values", numbers=[{"line": 4, "column": 22, "value": -3.0}])
        editor.edit("patch.weft", "// above\n" + text.replace("display(wave@v", "display(wav@v"))
        place = types.Range(types.Position(5, COLOUR), types.Position(5, COLOUR + len("<1, 0.5, 0.25>")))
        picked = types.ColorPresentationParams(editor.document("patch.weft"), types.Color(0.0, 0.5, 1.0, 1.0), place)
        editor.now(editor.client.text_document_color_presentation_async(picked))
        colour = [
            {"line": 5, "column": COLOUR + 2, "value": 0.0}, {"line": 5, "column": COLOUR + 10, "value": 1.0}
        ]
        other.wait_for("values", numbers=[{"line": 4, "column": 22, "value": -3.0}, *colour])
        wait_for_hints(editor, {4: ["→ -3"], 5: ["→ 0", "→ 1"], 3: ["= 0.5"]})
    refused = called(editor, "weft.evaluate")
    assert refused["diagnostics"][0]["code"] == "unknown-strand"
    assert 'line 7: there is no strand "wav"' in editor.client.messages[-1].message
    assert "no number here" in called(editor, "weft.turn", {"line": 0, "character": 0}, 1)["problem"]
    editor.edit("patch.weft", TEXT)
    assert called(editor, "weft.evaluate")["ok"]


def test_curves_are_those_of_strands_that_change_with_the_time_alone() -> None:
    text = (
        "#slider speed<v> = 0, 2, 0.5\nwobble = sin(me@time * 3)\nboth<v> = wobble * speed\n"
        "kept<v> = prev(kept@v) + 1\nwide = me@x * wobble\ndisplay(wide, kept@v, both@v)\n"
    )
    documents = Documents()
    documents.update({"file:///p.weft": Document("file:///p.weft", text)})
    checker = Checker(documents, context_table(), DEFAULT_PERMISSIONS)
    found = checker.curves("file:///p.weft", 5.0, {"speed@v": 2.0})
    assert {*found} == {1, 2}
    assert found[1][-1] == pytest.approx(math.sin(15), abs=1e-6)
    assert found[2][-1] == pytest.approx(2 * math.sin(15), abs=1e-6)
    assert sparkline([0, 0.5, 1, 0.25]) == "▁▅█▃ 0.25"
    assert sparkline([math.nan, 3.0]) == " ▁ 3"


@pytest.mark.long
def test_costs_are_shown_of_a_text_that_plays_as_it_is_and_help_says_values(
    played: tuple[Editor, Performance]
) -> None:
    editor, _ = played
    wait_for_hints(editor, {2: ["= 0.5"]})
    assert "Now: 0.5" in editor.hovered("patch.weft", "me@time * sp‸eed@v")
    deadline = time.monotonic() + PATIENCE
    while not any(each.endswith(" %") for each in hints(editor).get(3, ())):
        assert time.monotonic() < deadline, hints(editor)
        editor.now(asyncio.sleep(0.05))


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="speaks to a socket with a path")
@pytest.mark.long  # tests/runtime/live/test_remote.py has quicker ones about the link
def test_a_performance_that_hangs_or_talks_nonsense_costs_nothing(tmp_path: Path) -> None:
    patch = tmp_path / "patch.weft"
    patch.write_text(TEXT)
    hello = {"event": "hello", "protocol": PROTOCOL, "weft": "0", "process": 1, "file": str(patch)}
    wrong = line_of({"event": "values", "parameters": 3}) + line_of({"event": "playing", "file": 1}) + b"[]\n"
    with own_runtime_folder():
        silent, talking = ListeningSocket.open(), ListeningSocket.open()
        is_heard = threading.Event()

        def talk() -> None:
            end, _ = talking.socket.accept()
            with end:
                end.sendall(line_of(hello) + wrong)
                end.recv(1)
                is_heard.set()
                end.sendall(b"nonsense\n")

        threading.Thread(target=talk, daemon=True).start()
        editor = Editor(tmp_path)
        try:
            editor.open("patch.weft", TEXT)
            assert is_heard.wait(PATIENCE)
            assert hints(editor) == {}
            deadline = time.monotonic() + PATIENCE
            while (answer := called(editor, "weft.evaluate"))["problem"] != "no performance plays this file":
                assert time.monotonic() < deadline, answer
            assert not answer["ok"]
            assert editor.hovered("patch.weft", "wave<v> = s‸in(")
        finally:
            editor.close()
            silent.close()
            talking.close()
