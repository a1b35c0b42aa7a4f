"""`weft run --terminal` at a pseudo-terminal, judged by a terminal emulator: picture, errors, keys, and the way out."""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyte
import pytest

from tests.support.forks import Fork, usual_forks
from tests.support.performance import PATIENCE
from tests.support.together import all_but

COLUMNS, ROWS = 60, 24
BLUE = "me<width> = 320\nme<height> = 180\ndisplay(0, 0, 1)\ncompute(me@width, me@height)\n"


# Ctrl-C is for the process that has the terminal.
_SESSION = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, "-m", "weft", *sys.argv[1:]])
"""


class Tty:
    """A `weft` command at one end of a pseudo-terminal, and an emulator at the other."""

    def __init__(self, folder: Path, *command: str, **environment: str) -> None:
        self.folder = folder
        self.screen = pyte.Screen(COLUMNS, ROWS)
        self._stream = pyte.ByteStream(self.screen)
        self.master, self.slave = os.openpty()
        self.resize(COLUMNS, ROWS)
        self.before = termios.tcgetattr(self.slave)
        kept = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "DISPLAY", "WAYLAND_DISPLAY")}
        variables = {**kept, "TERM": "xterm-256color", "COLORTERM": "truecolor", **environment}
        arguments, found = [*command, "--events", "events"], usual_forks()
        self.process: subprocess.Popen[bytes] | Fork
        if found is not None and found.suit(variables):
            self.process = found.start(arguments, folder, variables, terminal=self.slave)
            return
        self.process = subprocess.Popen(
            [sys.executable, "-c", _SESSION, *arguments], cwd=folder, stdin=self.slave, stdout=self.slave,
            stderr=self.slave, start_new_session=True, env=variables,
        )  # fmt: skip

    def resize(self, columns: int, rows: int) -> None:
        self.screen.resize(rows, columns)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys: str) -> None:
        time.sleep(0.15)  # what comes sooner is taken for a key that is held
        os.write(self.master, keys.encode())

    def until(self, condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, "\n".join(self.screen.display)
            if select.select([self.master], [], [], 0.02)[0]:
                self._stream.feed(os.read(self.master, 1 << 16))

    @property
    def text(self) -> str:
        return "\n".join(self.screen.display)

    def colour(self, column: int, row: int) -> str:
        return str(self.screen.buffer[row][column].fg)

    def events(self, name: str) -> list[dict[str, object]]:
        path = self.folder / "events"
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        found = [json.loads(line) for line in lines if line.endswith("\n")]
        return [event for event in found if event["event"] == name]

    def ended(self) -> int:
        self.until(lambda: self.process.poll() is not None)
        return int(self.process.returncode)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)


@contextmanager
def played(folder: Path, *options: str, **environment: str) -> Iterator[Tty]:
    tty = Tty(folder, "run", "patch.weft", *options, **environment)
    try:
        yield tty
    finally:
        tty.close()


@pytest.fixture
def patch(tmp_path: Path) -> Path:
    path = tmp_path / "patch.weft"
    path.write_text(BLUE)
    return path


def middle_is(tty: Tty, colour: str) -> Callable[[], bool]:
    return lambda: tty.colour(tty.screen.columns // 2, 4) == colour


@pytest.mark.parametrize("options", [("--terminal",), ()])
def test_it_plays_in_the_terminal_also_where_there_is_no_display(patch: Path, options: tuple[str, ...]) -> None:
    with played(patch.parent, *options) as tty:
        tty.until(middle_is(tty, "0000ff"))
        # It is computed in the size in which it is shown, with its aspect.
        tty.until(lambda: tty.events("compute"))
        width, height = tty.events("compute")[-1]["values"]  # type: ignore[misc]
        assert (width, height) == (COLUMNS, round(COLUMNS * 180 / 320))
        tty.resize(40, 20)
        tty.until(lambda: tty.events("compute")[-1]["values"] == [40, round(40 * 180 / 320)])
        patch.write_text(BLUE.replace("0, 0, 1", "1, 0, 0"))
        tty.until(middle_is(tty, "ff0000"))
        tty.until(lambda: "updated in" in tty.text)
        tty.type("\x1b")
        assert tty.ended() == 0


def test_a_size_that_was_asked_for_is_computed(patch: Path) -> None:
    with played(patch.parent, "--terminal", "--size", "64x32") as tty:
        tty.until(lambda: tty.events("compute"))
        assert tty.events("compute")[0]["values"] == [64, 32]


def test_a_mistake_stands_below_the_picture_until_it_is_mended(patch: Path) -> None:
    with played(patch.parent, "--terminal") as tty:
        tty.until(middle_is(tty, "0000ff"))
        patch.write_text(BLUE.replace("0, 0, 1", "0, nosuch, 1"))
        # What is below comes last.
        tty.until(lambda: 'there is no strand "nosuch"' in tty.text and "^" * len("nosuch") in tty.text)
        assert middle_is(tty, "0000ff")()
        source = next(line for line in tty.screen.display if "nosuch, 1" in line)
        marks = tty.screen.display[tty.screen.display.index(source) + 1]
        assert marks.index("^") == source.index("nosuch")
        assert marks.count("^") == len("nosuch")
        tty.type("e")
        tty.until(lambda: "nosuch" not in tty.text)
        tty.type("e")
        tty.until(lambda: "nosuch" in tty.text)
        patch.write_text(BLUE.replace("0, 0, 1", "0, 1, 0"))
        tty.until(middle_is(tty, "00ff00"))
        tty.until(lambda: "nosuch" not in tty.text)


def test_keys_steer_the_tool_or_belong_to_the_patch(patch: Path) -> None:
    patch.write_text(BLUE.replace("0, 0, 1", "key@h, 0, 1"))
    with played(patch.parent, "--terminal") as tty:
        tty.until(middle_is(tty, "0000ff"))
        tty.type("h")
        tty.until(middle_is(tty, "ff00ff"))
        tty.type(" ")
        tty.until(lambda: "paused" in tty.text)
        tty.type(" ")
        tty.until(lambda: "resumed" in tty.text)
        tty.type("s")
        tty.until((patch.parent / "patch-001.png").exists)
        tty.type("t")
        tty.until(lambda: "tap on" in tty.text)
        deadline = time.monotonic() + PATIENCE
        while " bpm" not in tty.text:
            # On a busy machine, some are read unevenly, and a series begins anew.
            assert time.monotonic() < deadline
            tty.type("t")
            later = time.monotonic() + 0.4
            tty.until(lambda later=later: " bpm" in tty.text or time.monotonic() > later)


@pytest.mark.parametrize("way", all_but(3, ["escape", "ctrl-c", "hang up", "terminate", "kill"]))
def test_every_way_out_gives_the_terminal_back(patch: Path, way: str) -> None:
    with played(patch.parent, "--terminal") as tty:
        tty.until(middle_is(tty, "0000ff"))
        assert termios.tcgetattr(tty.slave) != tty.before
        signals = {"terminate": signal.SIGTERM, "hang up": signal.SIGHUP, "kill": signal.SIGKILL}
        if way in signals:
            tty.process.send_signal(signals[way])
        else:
            tty.type("\x1b" if way == "escape" else "\x03")
        code = tty.ended()
        assert code == {"ctrl-c": 130, "kill": -signal.SIGKILL}.get(way, 0)
        tty.until(lambda: termios.tcgetattr(tty.slave) == tty.before)
        tty.until(lambda: not tty.screen.cursor.hidden)


def test_a_broken_patch_waits_for_its_mending(patch: Path) -> None:
    patch.write_text("display(nosuch)\n")
    with played(patch.parent, "--terminal") as tty:
        tty.until(lambda: 'there is no strand "nosuch"' in tty.text)
        patch.write_text(BLUE)
        tty.until(middle_is(tty, "0000ff"))


def test_the_text_that_plays_is_in_the_terminal(patch: Path) -> None:
    with played(patch.parent, "--terminal", "--show-source") as tty:
        tty.until(lambda: "display(0, 0, 1)" in tty.screen.display[2])
        assert tty.screen.display[0].startswith(" me<width> = 320 ▀")
        # The picture is around it.
        tty.until(lambda: tty.colour(40, 3) == "0000ff")
        patch.write_text(BLUE.replace("0, 0, 1", "0, 1, 0"))
        tty.until(lambda: "display(0, 1, 0)" in tty.screen.display[2] and tty.colour(40, 3) == "00ff00")
        # Errors take rows of the picture, all of which is drawn again.
        patch.write_text(BLUE.replace("0, 0, 1", "0, 1, nothing"))
        tty.until(lambda: "nothing" in "".join(tty.screen.display[12:]) and tty.colour(40, 3) == "00ff00")
        tty.until(lambda: "width" in tty.screen.display[0] and "display(0, 1, 0)" in tty.screen.display[2])
        patch.write_text(BLUE.replace("0, 0, 1", "0, 1, 0"))
        tty.until(lambda: "nothing" not in "".join(tty.screen.display))
        tty.type("v")
        tty.until(lambda: "display" not in "".join(tty.screen.display))
        tty.until(lambda: tty.colour(3, 3) == "00ff00")
