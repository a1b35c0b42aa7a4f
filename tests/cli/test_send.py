"""`weft send`."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.forks import ran
from tests.support.links import own_runtime_folder
from tests.support.performance import Performance
from weft.performances import ListeningSocket, line_of

pytestmark = pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="sockets have no paths here")

TEXT = "me<width> = 32\nme<height> = 18\nshade<v> = me@x\ndisplay(shade@v, 0.25, 0)\n"


@pytest.fixture(scope="module")
def playing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Performance]:
    with own_runtime_folder():
        patch = tmp_path_factory.mktemp("playing") / "show.weft"
        patch.write_text(TEXT)
        with Performance(patch, "--headless", "--no-audio") as performance:
            performance.wait_for("started")
            yield performance


def sent(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return ran(["send", *options], folder, os.environ)


def piped(folder: Path, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "weft", "send", "-", *options], input=text, cwd=folder, capture_output=True, text=True,
        check=False, timeout=60,
    )  # fmt: skip


def test_a_text_is_played_as_it_is_piped_in_and_the_file_stays(playing: Performance) -> None:
    swaps = playing.count("swap")
    done = piped(playing.patch.parent, TEXT.replace("0.25", "0.5"))
    process = playing.patch
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith(f"<stdin>: no errors; {process} (process ")
    playing.wait_for("swap", swaps + 1)
    assert playing.patch.read_text() == TEXT


def test_what_is_piped_in_may_stand_for_a_file(playing: Performance, tmp_path: Path) -> None:
    other = tmp_path / "other.weft"
    other.write_text(TEXT)
    with Performance(other, "--headless", "--no-audio") as second:
        second.wait_for("started")
        swaps = second.count("swap")
        done = piped(tmp_path, TEXT.replace("0.25", "0.6"), "--as", "other.weft")
        assert done.stderr.startswith("other.weft: no errors; ")
        second.wait_for("swap", swaps + 1)
        wrong = piped(tmp_path, TEXT.replace("shade@v", "shad@v"), "--as", "other.weft")
        assert "other.weft:4:9: error" in wrong.stderr
    assert sent(tmp_path, "other.weft", "--as", "b.weft").returncode == 2
    assert other.read_text() == TEXT


def test_mistakes_are_shown_as_by_check(playing: Performance) -> None:
    folder = playing.patch.parent
    (folder / "parts.weft").write_text("spindle part(a) :: v {\n  v = a + nope\n}\n")
    draft = folder / "draft.weft"
    included = '#include "parts.weft"\n' + TEXT.replace("me@x", "part(1)")
    for text in (TEXT + "shade<w> = 2\ndisplay(shad)\n", included):
        draft.write_text(text)
        done = sent(folder, "draft.weft")
        assert done.returncode == 1
        assert done.stderr == ran(["check", "draft.weft"], folder, os.environ).stderr


def test_the_one_that_plays_the_file_is_found_and_of_several_others_one_is_named(
    playing: Performance, tmp_path: Path
) -> None:
    other = tmp_path / "other.weft"
    other.write_text(TEXT)
    with Performance(other, "--headless", "--no-audio") as second:
        second.wait_for("started")
        swaps = second.count("swap")
        other.with_name("draft.weft").write_text(TEXT.replace("0.25", "0.75"))
        done = sent(tmp_path, "draft.weft")
        assert done.returncode == 2
        assert f" is {playing.patch}" in done.stderr
        number = done.stderr.partition(f" is {other}")[0].split()[-1]
        assert sent(tmp_path, "draft.weft", "--to", number).returncode == 0
        second.wait_for("swap", swaps + 1)
        assert str(other) in sent(tmp_path, "other.weft").stderr
        assert sent(tmp_path, "draft.weft", "--to", "1").returncode == 3


def test_where_nothing_plays_it_says_what_plays(tmp_path: Path) -> None:
    (tmp_path / "a.weft").write_text(TEXT)
    with own_runtime_folder():
        done = sent(tmp_path, "a.weft")
        assert done.returncode == 3
        assert "nothing plays" in done.stderr
        assert "run a.weft" in done.stderr
        assert sent(tmp_path, "missing.weft").returncode == 3


@pytest.mark.parametrize(("hello", "words"), [
    ({"event": "hello", "protocol": 99, "weft": "9.9", "file": None}, "is left alone: weft 9.9 speaks version 99"),
    ({"event": "hello", "protocol": 1, "weft": "1", "file": None}, "has ended before it answered\n"),
    (None, "does not answer"),
])  # fmt: skip
def test_a_performance_that_cannot_take_it_is_named(
    tmp_path: Path, hello: dict[str, object] | None, words: str
) -> None:
    (tmp_path / "a.weft").write_text(TEXT)
    with own_runtime_folder():
        made = ListeningSocket.open()
        try:
            command = [sys.executable, "-m", "weft", "send", "a.weft"]
            with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
                while hello is not None and process.poll() is None:
                    made.socket.settimeout(0.1)
                    try:
                        end, _ = made.socket.accept()
                    except TimeoutError:
                        continue
                    with end:
                        end.sendall(line_of(hello))
                assert process.stderr is not None
                assert words in process.stderr.read()
            assert process.returncode == 3
        finally:
            made.close()
