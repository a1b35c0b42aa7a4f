"""`weft run -`: where texts end that are piped in, and a performance of them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

from tests.support.interfaces import check_event
from weft.runtime.live.text_pipe import TextSplitter
from weft.runtime.program.files import TEXT_LIMIT

TEXT = "me<width> = 32\nme<height> = 18\n\n\ndisplay(me@x, 0.25, 0)\n"


def split(*pieces: str | None) -> list[str]:
    """The texts in some pieces, with None for a pause."""
    splitter, found = TextSplitter(), list[bytes]()
    for piece in pieces:
        found += splitter.pause() if piece is None else splitter.feed(piece.encode())
    return [text.decode() for text in (*found, *splitter.end())]


@pytest.mark.parametrize(("pieces", "texts"), [
    (["a\n---\nb\n---\n"], ["a\n", "b\n"]),
    (["a\n--", "-\nb"], ["a\n", "b"]),
    (["a\r\n --- \r\nb\r\n"], ["a\r\n", "b\r\n"]),
    (["---\na\n", None, "b\n", None, "---\n"], ["a\nb\n"]),
    (["a\n---\nb\n", None, "c\n"], ["a\n", "b\nc\n"]),
    (["a\n\nb\n\n", None, "c\n", None], ["a\n\nb\n\n", "c\n"]),
    (["a\nb", None, "c\n", None], ["a\nbc\n"]),
    (["a = 1 ---\n---- \n"], ["a = 1 ---\n---- \n"]),
    (["\n\n", None, " \n---\n---\n"], []),
    ([], []),
    (["a\n---"], ["a\n"]),
])  # fmt: skip
def test_texts_end_at_separators_and_until_then_at_pauses(pieces: list[str | None], texts: list[str]) -> None:
    assert split(*pieces) == texts
    if None not in pieces:
        assert split(*"".join(filter(None, pieces))) == texts


def test_no_more_of_a_text_is_kept_than_shows_that_it_is_too_large() -> None:
    for line in ("x" * 1_000, "x" * 999 + "\n"):
        (found,) = split(*[line] * (TEXT_LIMIT // 500))
        assert len(found) == TEXT_LIMIT + 1


@contextmanager
def piped(folder: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "weft", "run", "-", "--headless", "--no-audio", "--events", "-", *options]
    with (folder / "errors").open("wb") as errors, subprocess.Popen(
        command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.kill()


def wait_for(stream: IO[bytes] | None, name: str) -> dict[str, Any]:
    assert stream is not None
    for line in stream:
        event = json.loads(line)
        check_event(event)
        if event["event"] == name:
            found: dict[str, Any] = event
            return found
    raise AssertionError(f"no {name}")


@pytest.mark.long  # test_flok.py has a quicker one
def test_texts_play_one_after_another_and_the_show_goes_on_after_the_last(tmp_path: Path) -> None:
    (tmp_path / "parts.weft").write_text("shade<v> = me@y\n")
    with piped(tmp_path) as process:
        assert process.stdin is not None
        wait_for(process.stdout, "started")
        for text, answer in (
            (TEXT, "swap"), (TEXT.replace("me@x", "shad"), "error"),
            (f'#include "parts.weft"\n{TEXT.replace("me@x", "shade")}', "swap"),
        ):  # fmt: skip
            process.stdin.write(f"{text}---\n".encode())
            process.stdin.flush()
            found = wait_for(process.stdout, answer)
        # A change of a file that is included counts as one of the text.
        (tmp_path / "parts.weft").write_text("shade<v> = me@y * 0.5\n")
        assert wait_for(process.stdout, "swap")["hash"] == found["hash"]
        process.stdin.close()
        wait_for(process.stdout, "frames")
        process.send_signal(signal.SIGTERM)
        assert wait_for(process.stdout, "stopped")["reason"] == "terminated"
    said = (tmp_path / "errors").read_text()
    assert "nothing to show yet: pipe in a text" in said
    assert '<stdin>:5:9: error: there is no strand "shad"' in said
    assert not (tmp_path / "<stdin>.values").exists()


@pytest.mark.long
@pytest.mark.parametrize(("text", "code", "words"), [
    (TEXT, 0, "texts are piped in"), ("", 3, "<stdin> cannot be read: nothing is piped in"), ("a", 1, "error: "),
])  # fmt: skip
def test_a_script_plays_a_text_for_some_frames(tmp_path: Path, text: str, code: int, words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "weft", "run", "-", "--headless", "--no-audio", "--frames", "3"], input=text,
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == code
    assert words in done.stderr
