"""The link of a performance to editors: texts without saving, numbers, what is told, and editors that do harm."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.links import LinkedEditor, own_runtime_folder
from tests.support.performance import PATIENCE, Performance
from weft import performances
from weft.performances import ListeningSocket, PerformanceLink, UnreachableError, line_of, running

pytestmark = pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="sockets have no paths here")

TEXT = """\
me<width> = 32
me<height> = 18
#slider speed<v> = 0, 2, 0.5
display(me@x, speed@v, 0.25)
"""


@pytest.fixture(scope="module", autouse=True)
def folder() -> Iterator[Path]:
    with own_runtime_folder() as found:
        yield found


@pytest.fixture(scope="module")
def playing(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Performance]:
    """One performance for most tests, each of which begins with the text as it was saved."""
    patch = tmp_path_factory.mktemp("playing") / "patch.weft"
    patch.write_text(TEXT)
    with Performance(patch, "--headless", "--no-audio") as performance:
        performance.wait_for("started")
        yield performance


@pytest.fixture
def performance(playing: Performance) -> Performance:
    with LinkedEditor(playing.patch) as editor:
        assert editor.ask("text", text=TEXT)["ok"]
    return playing


@pytest.fixture
def editor(performance: Performance) -> Iterator[LinkedEditor]:
    with LinkedEditor(performance.patch) as found:
        yield found


def shout(performance: Performance) -> socket.socket:
    """A connection that says anything."""
    found = next(each for each in running() if each.file == str(performance.patch))
    made = socket.socket(socket.AF_UNIX)
    made.settimeout(PATIENCE)
    made.connect(str(found.path))
    return made


def test_a_text_plays_without_being_saved_until_the_file_is(performance: Performance, editor: LinkedEditor) -> None:
    text, before = TEXT.replace("0.25", "0.75"), performance.patch.read_bytes()
    editor.ask("want", kinds=["playing", "events"])
    answer = editor.ask("text", text=text)
    assert answer["ok"]
    assert answer["diagnostics"] == []
    assert editor.wait_for("swap", hash=answer["hash"])["kept"] == []
    assert editor.wait_for("playing", hash=answer["hash"])["text"] == text
    assert performance.patch.read_bytes() == before
    saved = TEXT.replace("0.25", "0.5")
    performance.save(saved)
    assert editor.wait_for("playing", hash=performance.hash)["text"] == saved


def test_mistakes_are_told_to_who_made_them_and_the_last_text_plays_on(
    performance: Performance, editor: LinkedEditor
) -> None:
    editor.ask("want", kinds=["playing"])
    playing = editor.wait_for("playing")
    text = TEXT.replace("speed@v, ", "sped@v, ")
    answer = editor.ask("text", text=text)
    (found,) = answer["diagnostics"]
    assert not answer["ok"]
    assert found["file"] == str(performance.patch)
    assert (found["line"], found["column"], found["code"]) == (4, 15, "unknown-strand")
    assert "speed" in found["hint"]
    with LinkedEditor(performance.patch) as other:
        other.ask("want", kinds=["playing"])
        assert other.wait_for("playing") == playing


def test_every_text_is_answered_the_newest_one_by_what_became_of_it(editor: LinkedEditor) -> None:
    texts = [TEXT.replace("0.25", f"0.{number}") for number in range(11, 31)]
    for number, text in enumerate(texts):
        editor.link.say("text", id=number, text=text)
    answers = [editor.answer() for _ in texts]
    assert {answer["id"] for answer in answers} == {*range(20)}
    assert next(answer for answer in answers if answer["id"] == 19)["ok"]
    assert all(answer["ok"] or "another text" in answer["problem"] for answer in answers)


def test_a_text_that_is_no_patch_is_answered(editor: LinkedEditor) -> None:
    for text, code in (("\0", "unreadable-file"), ("x" * 1_000_001, "unreadable-file"), ("", "no-output")):
        answer = editor.ask("text", text=text)
        assert [each["code"] for each in answer["diagnostics"]] == [code]


def test_numbers_are_turned_without_a_save(editor: LinkedEditor) -> None:
    editor.ask("want", kinds=["values"])
    turned = {"line": 4, "column": 24, "value": 0.9}
    assert editor.ask("turn", numbers=[turned])["ok"]
    editor.wait_for("values", numbers=[turned])
    assert editor.ask("turn", text=TEXT.replace("0.25", "0.375"))["ok"]
    editor.wait_for("values", numbers=[turned | {"value": 0.375}])
    # Back where it was: a number that was turned is turned back.
    assert editor.ask("turn", text=TEXT)["ok"]
    editor.wait_for("values", numbers=[turned | {"value": 0.25}])
    for refused, words in (
        ({"text": TEXT.replace("me@x", "me@y")}, "more than its numbers"),
        ({"numbers": [turned | {"column": 23}]}, "no number begins in line 4, column 23"),
        ({"numbers": [{"line": 1}]}, "a line, a column and a finite value"),
        ({}, "turn takes numbers"),
    ):
        assert words in editor.ask("turn", **refused)["problem"]


def test_a_number_that_is_turned_waits_for_no_frame(folder: Path, tmp_path: Path) -> None:
    """The next one is due after the end of the performance."""
    patch = tmp_path / "slow.weft"
    patch.write_text(f"{TEXT}me<fps> = 0.1\n")
    with Performance(patch, "--headless", "--no-audio", "--duration", "8") as performance:
        performance.wait_for("tier")
        with LinkedEditor(patch) as editor:
            assert editor.ask("turn", numbers=[{"line": 4, "column": 24, "value": 0.9}])["ok"]
        performance.wait_for("swap")


def test_parameters_are_set_and_told(editor: LinkedEditor, performance: Performance) -> None:
    editor.ask("want", kinds=["values", "costs"])
    speed = {"name": "speed@v", "value": 1.5, "file": str(performance.patch), "line": 3}
    assert editor.ask("set", name="speed", value=1.5)["ok"]
    editor.wait_for("values", parameters=[speed])
    assert 'did you mean "speed@v"' in editor.ask("set", name="sped@v", value=1)["problem"]
    editor.ask("set", name="speed@v", value=0.5)
    costs = editor.wait_for("costs")
    assert costs["draw_ms"] > 0
    assert costs["budget_ms"] == pytest.approx(1000 / 60, abs=0.001)


def test_what_is_no_request_is_refused_in_words(editor: LinkedEditor) -> None:
    for asked, words in (
        ({"do": "dance"}, "there are text, turn, set, want, cursor"),
        ({"do": "text"}, "text takes text"),
        ({"do": "cursor", "line": 0}, "from 1"),
        ({"do": "want", "kinds": ["all"]}, "playing, values, costs, events"),
        ({"do": "set", "name": "speed", "value": "fast"}, "set takes name, value"),
        ({}, "there are text"),
    ):
        editor.link.say(**{"do": "", **asked})  # type: ignore[arg-type]
        assert words in editor.answer()["problem"]


@pytest.mark.parametrize(("harm", "words"), [
    (b"GET / HTTP/1.1\r\n\r\n", "no request"),
    (b"[" * 100_000 + b"\n", "no request"),
    (b'{"do": "set", "name": "speed", "value": NaN}\n', "no request"),
    (b"x" * 5_000_000, "without the end of a line"),
])  # fmt: skip
def test_an_editor_that_sends_rubbish_is_let_go(performance: Performance, harm: bytes, words: str) -> None:
    before = performance.stderr.count(words)
    with shout(performance) as made, LinkedEditor(performance.patch) as other:
        with suppress(OSError):  # it may be gone already
            made.sendall(harm)
            while made.recv(1 << 16):
                pass
        performance.wait_for_words(words, before + 1)
        assert other.ask("text", text=TEXT)["ok"]


def test_an_editor_that_reads_nothing_is_let_go_and_one_that_dies_is_forgotten(performance: Performance) -> None:
    with shout(performance) as made, LinkedEditor(performance.patch) as other:
        made.sendall(line_of({"do": "want", "kinds": ["events", "values"]}))
        with suppress(BrokenPipeError, ConnectionResetError):
            while True:
                made.sendall(line_of({"do": "dance"}) * 1000)
        performance.wait_for_words("reads no answer")
        dying = shout(performance)
        dying.sendall(b'{"do": "text", "text": "display(me@x)')
        dying.close()
        assert other.ask("text", text=TEXT)["ok"]


def test_two_performances_of_one_file_are_told_apart_and_a_killed_one_is_forgotten(tmp_path: Path) -> None:
    patch, other = tmp_path / "one.weft", tmp_path / "two.weft"
    patch.write_text(TEXT)
    other.symlink_to(patch)
    options = "--headless", "--no-audio"
    with Performance(patch, *options) as first, Performance(other, *options) as second:
        for each in (first, second):
            each.wait_for("started")
        found = [each for each in running() if performances.fits(str(patch), each)]
        assert len({each.process for each in found}) == 2
        first.process.kill()
        first.process.wait()
        (left,) = [each for each in running() if performances.fits(str(patch), each)]
        gone = next(each for each in found if each.process != left.process)
        assert not gone.path.exists()
        assert os.path.exists(left.path)


def test_the_socket_is_gone_when_the_performance_ends(tmp_path: Path, folder: Path) -> None:
    patch = tmp_path / "short.weft"
    patch.write_text(TEXT)
    before = {*(folder / "weft").iterdir()} if (folder / "weft").exists() else set()
    with Performance(patch, "--headless", "--no-audio", "--frames", "3") as performance:
        assert performance.ended() == 0
    assert {*(folder / "weft").iterdir()} <= before
    assert "editors" not in performance.stderr


def test_other_versions_and_what_does_not_answer_are_told_and_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(performances, "_HELLO", 0.1)
    newer, silent = ListeningSocket.open(), ListeningSocket.open()
    try:
        waiting = socket.socket(socket.AF_UNIX)
        waiting.connect(str(newer.path))
        with newer.socket.accept()[0] as end:
            end.sendall(line_of({"event": "hello", "protocol": 99, "weft": "9.9", "file": "/a.weft"}))
            found = performances.hello_of(waiting.recv(1000), newer.path)
        assert "weft 9.9 speaks version 99 of the link" in str(found.problem)
        (other,) = [each for each in running() if each.path == silent.path]
        assert "does not answer" in str(other.problem)
        assert newer.path.exists()
        assert silent.path.exists()
        waiting.close()
    finally:
        newer.close()
        silent.close()
    with pytest.raises(FileNotFoundError):
        PerformanceLink.open(newer.path)


def test_only_a_folder_that_is_closed_to_others_is_trusted(folder: Path) -> None:
    made = ListeningSocket.open()
    try:
        assert os.stat(made.path).st_mode & 0o077 == 0
        assert os.stat(made.path.parent).st_mode & 0o077 == 0
        os.chmod(made.path.parent, 0o777)
        with pytest.raises(UnreachableError, match="others can write"):
            running()
        ListeningSocket.open().close()  # which closes the folder
        assert os.stat(made.path.parent).st_mode & 0o022 == 0
    finally:
        os.chmod(made.path.parent, 0o700)
        made.close()


def test_a_performance_without_a_folder_for_its_socket_says_so_and_plays(tmp_path: Path) -> None:
    patch = tmp_path / "alone.weft"
    patch.write_text(TEXT)
    with own_runtime_folder() as folder:
        (folder / "weft").write_text("no folder")
        with Performance(patch, "--headless", "--no-audio", "--frames", "2") as performance:
            assert performance.ended() == 0
        assert "editors cannot reach this performance" in performance.stderr


def test_what_is_said_is_json(performance: Performance) -> None:
    with shout(performance) as made:
        hello = json.loads(made.recv(1 << 16).partition(b"\n")[0])
    assert hello["protocol"] == performances.PROTOCOL
    assert hello["file"] == str(performance.patch)
