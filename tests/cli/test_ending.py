"""Whatever asks a command to end, it leaves whole files only, and no process; what was there before stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.conftest import Weft
from tests.support.together import all_but
from weft.__main__ import ASKING
from weft.platform import system

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no signals to send")

MOVING = "me<width> = 64; me<height> = 36\ndisplay(me@x, fract(me@time), 0)\naudio(sin(me@time * 999))\n"


def started(weft: Weft, *args: object, **more: object) -> subprocess.Popen[str]:
    weft.file("moving.weft", MOVING)
    run = [sys.executable, "-m", "weft", *map(str, args)]
    given: dict[str, object] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
    return subprocess.Popen(run, cwd=weft.folder, text=True, **(given | more))  # type: ignore[call-overload,no-any-return]


def until(process: subprocess.Popen[str], is_so: Callable[[], object]) -> None:
    while not is_so() and process.poll() is None:
        time.sleep(0.01)


def left(weft: Weft) -> set[str]:
    return {path.name for path in weft.folder.iterdir() if path.suffix != ".weft"}


def children(process: int) -> list[int]:
    found = []
    for folder in Path("/proc").iterdir():
        with suppress(OSError):
            if int((folder / "stat").read_text().rpartition(")")[2].split()[1]) == process:
                found.append(int(folder.name))
    return found


def is_running(process: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


def test_a_signal_is_asked_for_where_it_is_heard() -> None:
    assert set(system.ending_signals()) <= set(ASKING)


@pytest.mark.parametrize(
    ("name", "number", "times"),
    all_but(
        2,
        [
            ("o.npy", signal.SIGTERM, 1), ("o.wav", signal.SIGHUP, 3), ("o.npy", signal.SIGHUP, 2),
            ("o.wav", signal.SIGTERM, 1), ("o.wav", signal.SIGINT, 2),
        ],
    ),
)  # fmt: skip
def test_what_was_there_before_stays(weft: Weft, name: str, number: int, times: int) -> None:
    weft.file(name, "before")
    ending = Path(name).suffix
    with started(weft, "render", "moving.weft", "-o", name, "--duration", "60000") as process:
        until(process, lambda: any(path.stat().st_size for path in weft.folder.glob(f".o-*{ending}")))
        for _ in range(times):
            process.send_signal(number)
        _, words = process.communicate(timeout=60)
    # A signal that comes at the very end of a process ends it without its code.
    assert process.returncode in {128 + number, *([-number] if times > 1 else [])}
    assert words.strip() == f"weft: {ASKING[number]}"
    assert left(weft) == {name}
    assert (weft.folder / name).read_text() == "before"


def test_workers_leave_whole_pictures_only(weft: Weft) -> None:
    args = ["-o", "o%d.png", "--duration", "60", "--size", "1000x1000", "--workers", "2"]
    with started(weft, "render", "moving.weft", *args) as process:
        until(process, lambda: any(weft.folder.glob(".o*")))
        process.send_signal(signal.SIGTERM)
        _, words = process.communicate(timeout=60)
    assert (process.returncode, words) == (143, "weft: terminated\n")
    assert not [name for name in left(weft) if name.startswith(".")]


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_children_leave_the_end_to_their_parent(weft: Weft) -> None:
    """When a machine stops, every process is asked to end, in any order."""
    with started(weft, "render", "moving.weft", "-o", "o.mp4", "--duration", "3") as process:
        until(process, lambda: any((weft.folder / ".o.mp4.parts").glob(".0*")))
        for child in children(process.pid):
            with suppress(ProcessLookupError):  # it has done its part already
                os.kill(child, signal.SIGTERM)
                os.kill(child, signal.SIGHUP)
        _, words = process.communicate(timeout=60)
    assert (process.returncode, words) == (0, "")
    assert left(weft) == {"o.mp4"}


# --- streams that fail ------------------------------------------------------------------------------------------------


def test_a_performance_plays_though_nothing_can_be_said(weft: Weft) -> None:
    args = ["run", "moving.weft", "--headless", "--no-audio", "--no-midi", "--frames", "3", "--events", "events"]
    with open("/dev/full", "w") as full, started(weft, *args, stderr=full) as process:
        assert process.wait(timeout=60) == 0
    assert '"reason": "frames"' in (weft.folder / "events").read_text()


@pytest.mark.parametrize(("args", "code"), [(["lsp"], 0), (["check", "-"], 0)])
def test_a_closed_stdin_is_an_empty_one(weft: Weft, args: Sequence[str], code: int) -> None:
    with started(weft, *args, stdin=None, preexec_fn=lambda: os.close(0)) as process:
        _, words = process.communicate(timeout=60)
    assert process.returncode == code, words
    assert "internal error" not in words


# --- what is in the way -----------------------------------------------------------------------------------------------


def test_a_film_whose_folder_is_gone_says_so(weft: Weft) -> None:
    with started(weft, "render", "moving.weft", "-o", "o.mp4", "--duration", "3600") as process:
        parts = weft.folder / ".o.mp4.parts"
        until(process, lambda: any(parts.glob("0*")))
        parts.rename(weft.folder / "away")
        _, words = process.communicate(timeout=60)
    assert process.returncode == 3
    assert words.startswith("weft: o.mp4 cannot be written: No such file or directory")
    assert words.count("\n") == 1


# --- the language server ----------------------------------------------------------------------------------------------

INITIALIZE = (
    '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"processId":null,"rootUri":null,"capabilities":{}}}'
)
OPEN = (
    '{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":'
    '{"uri":"file:///a.weft","languageId":"weft","version":1,"text":"display(me@x)"}}}'
)


def told(server: subprocess.Popen[str], *messages: str) -> None:
    assert server.stdin is not None
    for message in messages:
        server.stdin.write(f"Content-Length: {len(message)}\r\n\r\n{message}")
    server.stdin.flush()


@pytest.mark.parametrize(("number", "times"), all_but(1, [(signal.SIGTERM, 1), (signal.SIGINT, 2), (signal.SIGHUP, 1)]))
def test_the_language_server_ends_though_the_editor_does_not_leave(weft: Weft, number: int, times: int) -> None:
    with started(weft, "lsp", stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        assert server.stderr is not None
        told(server, INITIALIZE, OPEN)
        assert server.stdout.readline()
        until(server, lambda: sys.platform != "linux" or children(server.pid))
        processes = children(server.pid)
        for _ in range(times):
            server.send_signal(number)
        try:
            assert server.wait(timeout=30) == 0
            assert server.stderr.read() == ""
            assert not any(map(is_running, processes))
        finally:
            server.kill()


@pytest.mark.parametrize(("is_heard", "code"), [(True, 0), (False, 130)])
def test_what_was_asked_for_is_not_asked_for_again_at_the_very_end(is_heard: bool, code: int) -> None:
    """Of two signals in a moment, the second may come when the command has returned."""
    ends = f"asked = Asked(); signal.signal(signal.SIGINT, asked); {'asked.note(); ' if is_heard else ''}return 0"
    text = f"""\
import os, signal, sys
import weft.cli
from weft.__main__ import Asked, main
def command():
    {ends}
weft.cli.main = command
code = main()
os.kill(os.getpid(), signal.SIGINT)
sys.exit(code)
"""
    ended = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (code, "" if is_heard else "weft: interrupted\n")


def test_the_language_server_ends_when_nobody_reads_what_it_says(weft: Weft) -> None:
    with started(weft, "lsp", stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        assert server.stderr is not None
        told(server, INITIALIZE)
        assert server.stdout.readline()
        server.stdout.close()
        try:
            told(server, OPEN)
            assert server.wait(timeout=30) == 0
            assert server.stderr.read() == ""
        finally:
            server.kill()
