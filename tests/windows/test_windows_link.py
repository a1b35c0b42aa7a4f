"""The link to a performance on Windows: texts without saving, from who can read a file of the user and from nobody
else."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.links import LinkedEditor
from tests.support.performance import Performance
from tests.windows.processes import eventually, on_windows
from weft.editor.documents import path_of_uri, uri_of_path
from weft.performances import PerformanceLink, running, sockets

pytestmark = on_windows

TEXT = "me<width> = 32\nme<height> = 18\ndisplay(me@x, 0.25, 0)\n"


@pytest.fixture
def performance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Performance]:
    # The folder of sockets is below it.
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    patch = tmp_path / "größe 絵.weft"
    patch.write_text(TEXT, encoding="utf-8", newline="\n")
    with Performance(patch, "--headless", "--no-audio") as performance:
        performance.wait_for("frames")
        yield performance


def test_a_text_is_sent_and_mistakes_come_back(performance: Performance) -> None:
    draft = performance.patch.with_name("draft.weft")
    for text, code in ((TEXT.replace("0.25", "0.75"), 0), (TEXT.replace("0.25", "nope"), 1)):
        draft.write_text(text, newline="\n")
        sent = subprocess.run(
            [sys.executable, "-m", "weft", "send", str(draft)], capture_output=True, encoding="utf-8", check=False
        )
        assert sent.returncode == code, sent.stderr
    assert "nope" in sent.stderr
    with LinkedEditor() as editor:
        editor.ask("want", kinds=["playing"])
        assert editor.wait_for("playing")["text"] == TEXT.replace("0.25", "0.75")
    assert performance.patch.read_bytes() == TEXT.encode()


def test_who_does_not_know_the_file_is_told_nothing(performance: Performance) -> None:
    (path,) = sockets()
    named = json.loads(path.read_text())
    for said in (b"", b"GET / HTTP/1.1\r\n\r\n", b"0" * 64 + b"\n", b"x" * 100_000):
        with socket.create_connection(("127.0.0.1", named["port"]), 30) as stranger:
            stranger.sendall(said)
            with suppress(ConnectionError):  # what it has sent was not read
                assert stranger.recv(1) == b""
    assert "editor" not in performance.stderr
    with LinkedEditor() as editor:
        assert editor.ask("text", text=TEXT)["ok"]


def test_another_program_at_the_port_is_told_nothing(performance: Performance, tmp_path: Path) -> None:
    (path,) = sockets()
    named = json.loads(path.read_text())
    with socket.create_server(("127.0.0.1", 0)) as other:
        false = path.with_name(f"{os.getpid()}-00000000.socket")
        with false.open("w") as file:
            json.dump(named | {"port": other.getsockname()[1], "answer": "1" * 64}, file)
            file.flush()
            with pytest.raises(OSError, match=r"timed out|another program"):
                PerformanceLink.open(false)
        # Nobody has it open any more.
        assert [each.path for each in running()] == [path]
        assert not false.exists()


def test_files_have_addresses(tmp_path: Path) -> None:
    path = str(tmp_path / "größe 絵.weft")
    address = uri_of_path(path)
    assert address.startswith("file:///")
    # Editors write the letter of a drive as they like.
    assert os.path.normcase(path_of_uri(address)) == os.path.normcase(path)
    assert uri_of_path(address) == address
    assert uri_of_path("untitled:Untitled-1") == "untitled:Untitled-1"


def test_a_killed_performance_is_forgotten(performance: Performance) -> None:
    assert len(sockets()) == 1
    performance.process.kill()
    eventually(lambda: not running() and not sockets(), "the end of its file")
