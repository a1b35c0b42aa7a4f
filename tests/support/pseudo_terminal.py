"""A `Terminal` in a process of its own at one end of a pseudo-terminal, and an emulator of a terminal at the other."""

from __future__ import annotations

import fcntl
import json
import os
import pickle
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pyte
from numpy.typing import NDArray

from weft.errors import Diagnostic, Source, Span
from weft.runtime.screens.screen import Overlay

Picture = NDArray[np.uint8]

# Plays pictures as a session does. It reports the input that it sees on one pipe, and runs code from the other.
PLAYER = """
import fcntl, json, os, pickle, select, signal, sys, termios, time
import numpy as np
from weft.errors import WeftError
from weft.runtime.hands.inputs import Inputs
from weft.runtime.screens.screen import Overlay
from weft.runtime.screens.terminal import Terminal

orders, report = open(int(sys.argv[1]), "rb", buffering=0), open(int(sys.argv[2]), "w")
inputs, commands, said = Inputs(), [], None
picture = np.zeros((2, 2, 4), np.uint8)
frames = 0
aside = os.open("/dev/tty", os.O_WRONLY)

def settle(number):
    # The terminal has received everything; this mark comes after it.
    while screen._device.busy or screen._due:
        screen.poll()
    os.write(aside, b"\\x1b[?%dl" % number)

def exactly(size):
    data = b""
    while len(data) < size:
        data += orders.read(size - len(data))
    return data

with Terminal(inputs, commands.append) as screen:
    while not screen.should_close:
        screen.poll()
        screen.present(picture)
        frames += 1
        seen = inputs.frame()
        state = {
            "commands": commands, "keys": sorted(seen.held_keys), "buttons": sorted(seen.held_buttons),
            "x": seen.x, "y": seen.y, "wheel": seen.wheel, "room": screen.room, "frames": frames // 20,
        }
        if state != said:
            said = json.loads(json.dumps(state))
            said["room"] = tuple(said["room"])
            print(json.dumps(state), file=report, flush=True)
        if select.select([orders], [], [], 0.005)[0]:
            exec(pickle.loads(exactly(int(exactly(10)))), globals())
            print(json.dumps({"done": True}), file=report, flush=True)
    print(json.dumps({"closed": True}), file=report, flush=True)
"""

# What a shell does for a job: gives it the terminal, takes it back while the job is stopped, and resumes the job.
SHELL = """
import fcntl, os, signal, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
job = os.fork()
if not job:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR1])
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
report = int(sys.argv[4])
os.write(report, b'{"job": %d}\\n' % job)
while True:
    _, status = os.waitpid(job, os.WUNTRACED)
    os.tcsetpgrp(0, os.getpid())
    if not os.WIFSTOPPED(status):
        break
    os.write(report, b'{"stopped": true}\\n')
    signal.sigwait([signal.SIGUSR1])
    os.tcsetpgrp(0, job)
    os.killpg(job, signal.SIGCONT)
os.write(report, b'{"ended": %d}\\n' % os.waitstatus_to_exitcode(status))
"""

SEQUENCE = re.compile(rb"\x1b\[([?]?)([0-9;]*)([A-Za-z])")
MODE = re.compile(rb"\x1b\[\?([0-9]+)([hl])")


class Player:
    """A process with a `Terminal` at one end of a pseudo-terminal, and an emulator at the other."""

    def __init__(self, columns: int, rows: int, **environment: str) -> None:
        self.master, self.slave = os.openpty()
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self.resize(columns, rows)
        self.before = termios.tcgetattr(self.slave)
        self.raw = b""
        self.state: dict[str, Any] = {}
        self.stops = 0
        self.job = 0
        self.done = 0
        self.closed = False
        self.ended: int | None = None
        self._sent = 0
        orders, self._send = os.pipe()
        self._report, report = os.pipe()
        self._reported = b""
        self._reports: deque[dict[str, Any]] = deque()
        env = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLORTERM", "TERM_PROGRAM", "TMUX")}
        self.process = subprocess.Popen(
            [sys.executable, "-c", SHELL, "-c", PLAYER, str(orders), str(report)],
            stdin=self.slave, stdout=self.slave, stderr=self.slave, pass_fds=[orders, report],
            start_new_session=True, env={**env, "TERM": "xterm-256color", **environment},
        )  # fmt: skip
        os.close(orders)
        os.close(report)

    def resize(self, columns: int, rows: int) -> None:
        self.screen.resize(rows, columns)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys: bytes) -> None:
        os.write(self.master, keys)

    def order(self, code: str, **values: Any) -> None:
        """Has the player run this code between two frames, with these values as globals."""
        names = "".join(f"{name} = pickle.loads({pickle.dumps(value)!r})\n" for name, value in values.items())
        data = pickle.dumps(names + code)
        self._sent += 1
        os.write(self._send, b"%010d" % len(data) + data)

    def do(self, code: str, **values: Any) -> None:
        """Has the player run this code, and waits until the terminal has all that came of it."""
        number = 9000 + self._sent
        self.order(f"{code}\nsettle({number})", **values)
        mark = b"\x1b[?%dl" % number
        self.until(lambda: mark in self.raw)
        self.raw = self.raw.replace(mark, b"")

    def show(self, picture: Picture, overlay: Overlay = Overlay()) -> None:  # noqa: B008 -- it is frozen
        """Shows a picture, and waits until the terminal has it."""
        self.do("screen.annotate(overlay); screen.present(picture)", picture=picture, overlay=overlay)

    def listen(self, seconds: float = 0.02, reading: bool = True) -> None:
        """Takes in what has arrived, but one report at a time, so that none is missed; waits for up to `seconds` if
        nothing has."""
        watched = [self._report] + [self.master] * reading
        for ready in select.select(watched, [], [], 0 if self._reports else seconds)[0]:
            data = os.read(ready, 1 << 16)
            if ready == self.master:
                self.raw += data
                self._stream.feed(data)
            else:
                self._reported += data
        *lines, self._reported = self._reported.split(b"\n")
        self._reports.extend(map(json.loads, lines))
        if self._reports:
            self._take(self._reports.popleft())

    def _take(self, report: dict[str, Any]) -> None:
        self.stops += "stopped" in report
        self.done += "done" in report
        self.closed |= "closed" in report
        self.job = report.get("job", self.job)
        self.ended = report.get("ended", self.ended)
        if "room" in report:
            self.state = report

    def until(self, condition: Callable[[], object], reading: bool = True) -> None:
        deadline = time.monotonic() + 20
        while not condition():
            assert time.monotonic() < deadline, ("this has not happened in time", self.state, self.raw[-500:])
            self.listen(reading=reading)

    @property
    def modes(self) -> set[int]:
        """The private modes that are set, of those that are not from the start."""
        modes = {7, 25}
        for number, letter in MODE.findall(self.raw):
            (modes.add if letter == b"h" else modes.discard)(int(number))
        return modes

    def is_restored(self) -> bool:
        return self.modes == {7, 25} and termios.tcgetattr(self.slave) == self.before

    def lines(self) -> list[str]:
        return [line.rstrip() for line in self.screen.display]

    def half_blocks(self, rows: int) -> Picture:
        """The pixels [2 × rows, columns, RGB] in the first rows of the screen."""
        pixels = np.zeros((2 * rows, self.screen.columns, 3), np.uint8)
        for row in range(rows):
            for column in range(self.screen.columns):
                cell = self.screen.buffer[row][column]
                assert cell.data == "▀"
                pixels[2 * row, column] = list(bytes.fromhex(cell.fg))
                pixels[2 * row + 1, column] = list(bytes.fromhex(cell.bg))
        return pixels

    def close(self) -> None:
        if self.process.poll() is None and self.job and self.ended is None:
            with suppress(ProcessLookupError):
                os.kill(self.job, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        for number in (self.master, self.slave, self._send, self._report):
            if number >= 0:
                os.close(number)


def noise(width: int, height: int, seed: int = 1) -> Picture:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 4), np.uint8)


def diagnostic(text: str, marked: str, hint: str | None = None) -> Diagnostic:
    source = Source("a.weft", text)
    at = text.index(marked)
    return Diagnostic("error", "wrong", "this is wrong", Span(source, at, at + len(marked)), hint)
