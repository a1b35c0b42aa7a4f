"""A real pseudo-terminal: what its screen shows, what keys and mouse do, and that every end leaves it as it was."""

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
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyte
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from weft.errors import Diagnostic, Source, Span
from weft.keys import TOOL_KEYS
from weft.runtime.inputs import Inputs
from weft.runtime.screens.frame import letterbox
from weft.runtime.screens.screen import Overlay
from weft.runtime.screens.terminal_cells import nearest_in_table, scaled
from weft.runtime.screens.terminal_keys import Decoder, HeldKeys, Key, Mouse
from weft.runtime.screens.terminal_text import columns_of, painted, rows_of

Picture = NDArray[np.uint8]

# Plays pictures as a session does, reports what it sees on the pipe, and does what it is told by the other pipe.
PLAYER = """
import fcntl, json, os, pickle, select, signal, sys, termios, time
import numpy as np
from weft.errors import WeftError
from weft.runtime.inputs import Inputs
from weft.runtime.screens.screen import Overlay
from weft.runtime.screens.terminal import Terminal

told, report = open(int(sys.argv[1]), "rb", buffering=0), open(int(sys.argv[2]), "w")
inputs, commands, said = Inputs(), [], None
picture = np.zeros((2, 2, 4), np.uint8)
frames = 0
aside = os.open("/dev/tty", os.O_WRONLY)

def settle(number):
    # Everything is with the terminal, and this comes behind it.
    while screen._device.busy or screen._due:
        screen.poll()
    os.write(aside, b"\\x1b[?%dl" % number)

def exactly(size):
    data = b""
    while len(data) < size:
        data += told.read(size - len(data))
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
        if select.select([told], [], [], 0.005)[0]:
            exec(pickle.loads(exactly(int(exactly(10)))), globals())
            print(json.dumps({"done": True}), file=report, flush=True)
    print(json.dumps({"closed": True}), file=report, flush=True)
"""

# What a shell does for a job: gives it the terminal, takes it back while the job stands still, lets it go on.
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
        self._told = 0
        told, self._tell = os.pipe()
        self._report, report = os.pipe()
        self._reported = b""
        env = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLORTERM", "TERM_PROGRAM", "TMUX")}
        self.process = subprocess.Popen(
            [sys.executable, "-c", SHELL, "-c", PLAYER, str(told), str(report)],
            stdin=self.slave, stdout=self.slave, stderr=self.slave, pass_fds=[told, report],
            start_new_session=True, env={**env, "TERM": "xterm-256color", **environment},
        )  # fmt: skip
        os.close(told)
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
        self._told += 1
        os.write(self._tell, b"%010d" % len(data) + data)

    def do(self, code: str, **values: Any) -> None:
        """Has the player run this code, and waits until the terminal has all that came of it."""
        number = 9000 + self._told
        self.order(f"{code}\nsettle({number})", **values)
        mark = b"\x1b[?%dl" % number
        self.until(lambda: mark in self.raw)
        self.raw = self.raw.replace(mark, b"")

    def show(self, picture: Picture, overlay: Overlay = Overlay()) -> None:  # noqa: B008 -- it is frozen
        """Shows a picture, and waits until the terminal has it."""
        self.do("screen.annotate(overlay); screen.present(picture)", picture=picture, overlay=overlay)

    def listen(self, seconds: float = 0.02, reading: bool = True) -> None:
        """Takes in what has come, waiting for so long if nothing has."""
        watched = [self._report] + [self.master] * reading
        for ready in select.select(watched, [], [], seconds)[0]:
            data = os.read(ready, 1 << 16)
            if ready == self.master:
                self.raw += data
                self._stream.feed(data)
            else:
                self._reported += data
        *lines, self._reported = self._reported.split(b"\n")
        for line in lines:
            self._take(json.loads(line))

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
            assert time.monotonic() < deadline, ("this has not come about in time", self.state, self.raw[-500:])
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
        for number in (self.master, self.slave, self._tell, self._report):
            if number >= 0:
                os.close(number)


@pytest.fixture
def start() -> Iterator[Callable[..., Player]]:
    players: list[Player] = []

    def start(columns: int = 40, rows: int = 13, **environment: str) -> Player:
        player = Player(columns, rows, **environment)
        players.append(player)
        player.until(lambda: player.state)
        return player

    yield start
    for player in players:
        player.close()


def noise(width: int, height: int, seed: int = 1) -> Picture:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 4), np.uint8)


def diagnostic(text: str, marked: str, hint: str | None = None) -> Diagnostic:
    source = Source("a.weft", text)
    at = text.index(marked)
    return Diagnostic("error", "wrong", "this is wrong", Span(source, at, at + len(marked)), hint)


# --- the picture ------------------------------------------------------------------------------------------------------


def test_every_pixel_has_its_half_of_a_cell(start):
    player = start()
    assert player.state["room"] == [40, 24]
    for seed in (1, 2):
        picture = noise(40, 24, seed)
        player.show(picture)
        assert np.array_equal(player.half_blocks(12), picture[..., :3])


def test_the_picture_lies_in_the_middle_of_black(start):
    player = start()
    for size in ((24, 24), (40, 10), (9, 3)):
        picture = noise(*size)
        player.show(picture)
        place = letterbox(size, (40, 24))
        expected = np.zeros((24, 40, 3), np.uint8)
        inside = slice(place.top, place.top + place.height), slice(place.left, place.left + place.width)
        expected[inside] = scaled(picture, place.width, place.height)
        assert np.array_equal(player.half_blocks(12), expected)


def test_what_stays_is_not_sent_again(start):
    player = start()
    picture = noise(40, 24)
    player.show(picture, Overlay(note="note"))
    sent = len(player.raw)
    player.do("for _ in range(5): screen.present(picture)")
    assert len(player.raw) == sent
    picture[5, 7] ^= 255
    player.show(picture, Overlay(note="note"))
    assert player.raw[sent:].count("▀".encode()) == 1
    assert b"note" not in player.raw[sent:]
    assert np.array_equal(player.half_blocks(12), picture[..., :3])


def test_a_frame_is_shown_at_once(start):
    player = start()
    player.do("pass")
    before = len(player.raw)
    player.show(noise(40, 24), Overlay(note="note"))
    frame = player.raw[before:]
    assert frame.startswith(b"\x1b[?2026h")
    assert frame.endswith(b"\x1b[?2026l")
    assert frame.count(b"\x1b[?2026") == 2


def test_a_new_size_is_followed(start):
    player = start()
    player.show(noise(40, 24), Overlay(note="the note"))
    for columns, rows in ((60, 20), (15, 6), (1, 1), (30, 2)):
        player.resize(columns, rows)
        room = [columns, 2 * max(rows - 1, 1)]
        player.until(lambda room=room: player.state["room"] == room)
        picture = noise(*room)
        player.show(picture, Overlay(note="the note"))
        assert np.array_equal(player.half_blocks(room[1] // 2), picture[..., :3])
        if rows > 1:
            assert player.lines()[-1] == ("the note" if columns >= 8 else "t")


def test_a_terminal_with_few_colours_gets_the_nearest(start):
    player = start(TERM_PROGRAM="Apple_Terminal")
    table = [bytes.fromhex(code) for code in pyte.graphics.FG_BG_256[16:]]
    colours = np.array([list(colour) for colour in table], np.uint8)
    picture = np.zeros((24, 40, 4), np.uint8)
    picture.reshape(-1, 4)[: len(colours), :3] = colours
    player.show(picture)
    assert np.array_equal(player.half_blocks(12), picture[..., :3])
    assert b";2;" not in b"".join(found[0] for found in re.findall(rb"\x1b\[([34]8;[0-9;]*)(m)", player.raw))


def test_the_nearest_colour_is_near():
    table = np.array([list(bytes.fromhex(code)) for code in pyte.graphics.FG_BG_256], int)
    colours = noise(30, 30)[..., :3].reshape(-1, 3)
    found = ((table[nearest_in_table(colours)] - colours) ** 2).sum(1)
    best = ((table[np.newaxis, 16:] - colours[:, np.newaxis]) ** 2).sum(2).min(1)
    assert np.array_equal(found, best)


sizes = st.integers(1, 12)


@given(sizes, sizes, sizes, sizes)
def test_less_room_averages_and_more_repeats(width, height, new_width, new_height):
    picture = noise(width, height)
    result = scaled(picture, new_width, new_height)
    assert result.shape == (new_height, new_width, 3)
    expected = picture[..., :3].astype(float)
    for axis, (old, new) in enumerate(((height, new_height), (width, new_width))):
        if new <= old:
            # In pieces so small that each lies in one old and one new pixel.
            pieces = np.moveaxis(expected.repeat(new, axis), axis, 0)
            expected = np.moveaxis(pieces.reshape(new, old, *pieces.shape[1:]).mean(1), 0, axis)
        else:
            expected = expected.take([int((at + 0.5) * old / new) for at in range(new)], axis)
    assert np.abs(result - expected).max() <= 0.5 + 1e-6


# --- below the picture ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "a<v> = wrong",
        "a<v> =\t\twrong + 1",
        "a<v> = 世界🙂é\u0301 + wrong\t+ 世界",
        "a<v> = " + "long + " * 30 + "wrong + " + "long + " * 30,
        "a<v> = " + "世" * 60 + "wrong",
        "a<v> = " + "x世" * 30 + "wrong" + "世x" * 30,
    ],
    ids=["plain", "tabs", "wide", "long", "wide and long", "odd columns"],
)
def test_the_caret_stands_below_its_place(start, text):
    player = start(columns=40, rows=16)
    player.show(noise(40, 30), Overlay((diagnostic(text, "wrong", "mend it"),), "plays on", ("60 fps",)))
    lines = player.lines()
    place = next(at for at, line in enumerate(lines) if line.endswith("^"))
    for column in range(5):
        x = lines[place].index("^") + column
        assert player.screen.buffer[place - 1][x].data == "wrong"[column]
        assert player.screen.buffer[place][x].data == "^"
        assert player.screen.buffer[place][x].fg == "red"
    assert lines[place].count("^") == 5
    first = next(at for at, line in enumerate(lines) if "error: this is wrong" in line)
    assert player.screen.buffer[first][lines[first].index("error")].fg == "red"
    assert lines[place + 1].strip() == "hint: mend it"
    assert lines[-1] == "plays on · 60 fps"
    assert ("…" in lines[place - 1]) == (len(columns_of(f" 1 | {text}")) > 40)


def test_errors_leave_half_of_the_terminal_to_the_picture(start):
    player = start(columns=40, rows=16)
    room = player.state["room"]
    errors = tuple(diagnostic(f"a{n}<v> = wrong", "wrong") for n in range(9))
    player.show(np.full((30, 40, 4), 255, np.uint8), Overlay(errors, "note"))
    below = player.lines()[8:]
    assert below[0].startswith("a.weft:1:9: error")
    assert below[-2:] == [f"… {9 * 3 - 6} more lines", "note"]
    assert player.half_blocks(8).any()
    player.listen()
    assert player.state["room"] == room
    picture = noise(40, 30)
    player.show(picture)
    assert np.array_equal(player.half_blocks(15), picture[..., :3])


def test_nothing_hostile_gets_through(start):
    player = start(columns=100, rows=40)
    evil = "\x1b[?1049l\x1b]0;title\x07\x9b31m\x90q\x08\x7f\r\u202e\u2028\ud800"
    span = diagnostic(f"a = {evil} wrong", "wrong").span
    error = Diagnostic("error", f"c{evil}", f"m{evil}\x1b[2J\n\x1bc", span, evil)
    player.show(noise(100, 78), Overlay((error,), f"note{evil}", (f"figure{evil}",)))
    left = SEQUENCE.sub(b"", player.raw).decode()
    assert {letter for letter in left if not letter.isprintable()} <= {"\N{REPLACEMENT CHARACTER}"}
    assert {final for _, _, final in SEQUENCE.findall(player.raw)} <= {b"H", b"m", b"K", b"h", b"l", b"J"}
    assert b"\x1b[?1049l" not in player.raw
    assert player.raw.count(b"\x1b[2J") == 1
    assert any("wrong" in line for line in player.lines())
    assert player.lines()[-1].startswith("note")


def test_colours_of_words_can_be_switched_off(start):
    player = start(NO_COLOR="1")
    player.show(noise(40, 24), Overlay((diagnostic("a = wrong", "wrong"),)))
    place = next(at for at, line in enumerate(player.lines()) if line.endswith("^"))
    assert {player.screen.buffer[row][x].fg for row in (place - 2, place) for x in range(40)} == {"default"}


@given(st.text(), st.text(), st.integers(1, 60), st.integers(1, 12), st.data())
def test_any_text_keeps_to_its_columns(text, message, width, most, data):
    start = data.draw(st.integers(0, len(text)))
    span = Span(Source("a.weft", text), start, data.draw(st.integers(start, len(text))))
    overlay = Overlay((Diagnostic("warning", "code", message, span, message, ((span, message),)),), message, (text,))
    rows = rows_of(overlay, width, most)
    assert len(rows) <= most
    for row in rows:
        assert len(row) <= width
        shown = painted(row, False).decode()
        assert shown.isprintable()
        assert len(columns_of(shown)) == len(row)


# --- keys and mouse ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (b"a", Key("a")), (b"A", Key("a", frozenset({"shift"}))), (b"7", Key("7")), (b" ", Key("space")),
        (b"-", Key("minus")), (b"\r", Key("enter")), (b"\t", Key("tab")), (b"\x7f", Key("backspace")),
        (b"\x13", Key("s", frozenset({"control"}))), (b"\x08", Key("h", frozenset({"control"}))),
        (b"\x00", Key("space", frozenset({"control"}))), (b"\x1bx", Key("x", frozenset({"alt"}))),
        (b"\x1b[A", Key("up")), (b"\x1bOB", Key("down")), (b"\x1b[1;5C", Key("right", frozenset({"control"}))),
        (b"\x1b[1;4D", Key("left", frozenset({"shift", "alt"}))), (b"\x1b[Z", Key("tab", frozenset({"shift"}))),
        (b"\x1bOP", Key("f1")), (b"\x1b[11~", Key("f1")), (b"\x1b[[A", Key("f1")),
        (b"\x1b[1;2P", Key("f1", frozenset({"shift"}))),
        (b"\x1b[15~", Key("f5")), (b"\x1b[17~", Key("f6")), (b"\x1b[24~", Key("f12")), (b"\x1b[3~", Key("delete")),
        (b"\x1b[H", Key("home")), (b"\x1b[4~", Key("end")), (b"\x1b[5~", Key("pageup")),
        (b"\x1b[<0;3;4M", Mouse("press", 2, 3, "left")), (b"\x1b[<2;3;4m", Mouse("release", 2, 3, "right")),
        (b"\x1b[<1;3;4M", Mouse("press", 2, 3, "middle")), (b"\x1b[<35;1;1M", Mouse("move", 0, 0)),
        (b"\x1b[<64;1;1M", Mouse("turn", 0, 0, notches=1)), (b"\x1b[<65;1;1M", Mouse("turn", 0, 0, notches=-1)),
    ],
)  # fmt: skip
def test_what_is_sent_is_understood_however_it_is_cut(sent, expected):
    whole = Decoder().feed(sent, 0)
    assert whole[-1] == expected
    decoder = Decoder()
    pieces = [event for at in range(len(sent)) for event in decoder.feed(sent[at : at + 1], 0)]
    assert pieces == whole
    assert decoder.feed(b"b", 0) == [Key("b")]


def test_what_means_nothing_is_left_out():
    for noise in ("é世".encode(), b"\x1b[200~", b"\x1b[?1;2c", b"\x1b[<0;1M", b"\x1b[I", b"!"):
        assert Decoder().feed(noise + b"b", 0) == [Key("b")]


@given(st.binary())
def test_any_bytes_are_taken(data):
    decoder = Decoder()
    decoder.feed(data, 0)
    decoder.feed(b"", 10)
    assert decoder.feed(b"b", 10)[-1:] == [Key("b")]


def test_escape_is_known_by_the_silence_after_it():
    decoder = Decoder()
    assert decoder.feed(b"\x1b", 0) == []
    assert decoder.feed(b"", 0.01) == []
    assert decoder.feed(b"", 1) == [Key("escape")]
    assert Decoder().feed(b"\x1b\x1b[A", 0) == [Key("escape"), Key("up")]


def test_where_backspace_sends_it_control_h_is_backspace():
    assert Decoder(backspace=b"\x08").feed(b"\x08", 0) == [Key("backspace")]


def test_tool_keys_give_commands_and_others_are_the_patchs(start):
    player = start()
    player.type(b"f")
    player.until(lambda: player.state["commands"] == ["fullscreen"])
    player.type(b"q")
    player.until(lambda: player.state["keys"] == ["q"])
    player.until(lambda: player.state["keys"] == [])
    player.do("screen.set_patch_keys(frozenset({'s', 'space'}))")
    player.type(b"s \x1b[A")
    player.until(lambda: player.state["keys"] == ["s", "space", "up"])
    assert player.state["commands"] == ["fullscreen"]
    player.type(b"\x13")
    player.until(lambda: player.state["commands"] == ["fullscreen", "screenshot"])
    player.type(b"\x00")
    player.until(lambda: player.state["commands"] == ["fullscreen", "screenshot", "pause"])
    player.type(b"\x1b")
    player.until(lambda: player.state["commands"][3:] == ["leave"])


def test_every_tool_key_has_its_command(start):
    player = start()
    sent = {"space": b" ", "escape": b"\x1b"}
    expected = []
    for key, command in TOOL_KEYS.items():
        player.type(sent.get(key, key.encode()))
        expected.append(command)
        player.until(lambda: player.state["commands"] == expected)


def test_a_key_is_held_until_it_has_been_silent():
    inputs = Inputs()
    held = HeldKeys(inputs)

    def is_held(now):
        held.pass_time(now)
        return bool(inputs.snapshot()["key@w"])

    held.heard("w", 0)
    # Keyboards wait before they repeat a key, and then are quick.
    assert is_held(0.4)
    held.heard("w", 0.45)
    held.heard("w", 0.5)
    assert is_held(0.6)
    assert not is_held(0.7)
    held.heard("w", 0.8)
    assert is_held(1.2)


def test_a_key_that_repeats_itself_commands_once(start):
    player = start()
    player.type(b"rrrrq")
    player.until(lambda: player.state["keys"] == ["q"])
    assert player.state["commands"] == ["restart"]


def test_the_mouse_points_into_the_picture(start):
    player = start()
    player.show(noise(24, 24))
    # The picture lies in columns 8 to 31, and a cell is two of its pixels tall.
    for column, row in ((8, 0), (31, 11), (20, 5)):
        player.type(b"\x1b[<35;%d;%dM" % (column + 1, row + 1))
        x, y = (column - 8 + 0.5) / 24, (2 * row + 1) / 24
        player.until(lambda x=x, y=y: player.state["x"] == pytest.approx(x) and player.state["y"] == pytest.approx(y))
    player.type(b"\x1b[<35;1;1M")
    player.until(lambda: player.state["x"] == 0)
    player.type(b"\x1b[<0;1;1M\x1b[<2;1;1M")
    player.until(lambda: player.state["buttons"] == ["left", "right"])
    player.type(b"\x1b[<0;1;1m")
    player.until(lambda: player.state["buttons"] == ["right"])
    player.type(b"\x1b[<64;1;1M\x1b[<64;1;1M\x1b[<65;1;1M")
    player.until(lambda: player.state["wheel"] == 1)


# --- ends -------------------------------------------------------------------------------------------------------------


def test_the_terminal_is_taken_over(start):
    player = start()
    assert player.modes == {1049, 1002, 1003, 1006}
    input_flags, _, _, local, *_ = termios.tcgetattr(player.slave)
    assert not local & (termios.ECHO | termios.ICANON)
    assert local & termios.ISIG
    assert not input_flags & termios.IXON


ENDS = {
    "close": ("screen.close()", 0),
    "exception": ("raise ValueError('in the middle')", 1),
    "exit": ("sys.exit(3)", 3),
    "exit at once": ("os._exit(4)", 4),
    "abort": ("os.abort()", -signal.SIGABRT),
    **{
        signal.Signals(number).name: (f"os.kill(os.getpid(), {number:d})", code)
        for number, code in (
            (signal.SIGTERM, 128 + signal.SIGTERM),
            (signal.SIGINT, -signal.SIGINT),
            (signal.SIGHUP, 0),
            (signal.SIGQUIT, -signal.SIGQUIT),
            (signal.SIGSEGV, -signal.SIGSEGV),
            (signal.SIGKILL, -signal.SIGKILL),
        )
    },
}


@pytest.mark.parametrize("end", ENDS)
def test_every_end_leaves_the_terminal_as_it_was(start, end, tmp_path: Path):
    player = start(TMPDIR=str(tmp_path))
    player.show(noise(40, 24))
    player.do("os.write(2, b'a stray word')")
    assert not player.is_restored()
    code, status = ENDS[end]
    player.order(code)
    player.until(lambda: player.ended is not None)
    assert player.ended == status
    player.until(player.is_restored)
    player.until(lambda: b"a stray word" in player.raw)
    assert player.raw.index(b"\x1b[?1049l") < player.raw.index(b"a stray word")
    assert (b"ValueError: in the middle" in player.raw) == (end == "exception")
    player.until(lambda: not list(tmp_path.iterdir()))


def test_control_c_is_a_signal(start):
    player = start()
    player.type(b"\x03")
    player.until(lambda: player.ended is not None)
    assert player.ended == -signal.SIGINT
    player.until(player.is_restored)


def test_control_z_gives_the_terminal_back_for_a_while(start):
    player = start()
    picture = noise(40, 24)
    player.show(picture)
    for stop in (1, 2):
        player.type(b"\x1a")
        player.until(lambda stop=stop: player.stops == stop)
        player.until(player.is_restored)
        player.screen.reset()
        os.kill(player.process.pid, signal.SIGUSR1)
        player.until(lambda: player.modes == {1049, 1002, 1003, 1006})
        player.do("pass")
        assert np.array_equal(player.half_blocks(12), picture[..., :3])
    player.order("screen.close()")
    player.until(lambda: player.ended == 0)
    assert player.is_restored()


def test_what_others_print_waits_for_the_end_and_nobody_waits_for_it(start):
    player = start()
    player.show(noise(40, 24))
    player.do("print('first words'); os.write(2, b'x' * 1_000_000); print('later', file=sys.stderr)")
    player.do("os.system('echo from a child >&2')")
    assert b"xxx" not in player.raw
    assert player.lines()[-1] == ""
    player.order("screen.close(); print('at the end')")
    player.until(lambda: player.ended == 0)
    player.until(lambda: b"at the end" in player.raw)
    after = player.raw.partition(b"\x1b[?1049l")[2]
    assert after.startswith(b"first words")
    assert 1000 < after.count(b"x") < 100_000


def test_a_terminal_that_does_not_read_holds_nobody_up(start):
    player = start()
    player.order("poll = screen.poll\nscreen.poll = lambda: (poll(), picture.__iadd__(noise)) and None",
                 picture=noise(40, 24), noise=noise(40, 24, 2))  # fmt: skip
    frames = player.state["frames"]
    player.until(lambda: player.state["frames"] > frames + 2, reading=False)
    os.kill(player.job, signal.SIGINT)
    player.until(lambda: player.ended is not None, reading=False)
    assert player.ended == -signal.SIGINT
    assert player.modes != {7, 25}
    player.until(player.is_restored)


def test_a_slow_terminal_gets_the_latest_picture_in_the_end(start):
    player = start(columns=200, rows=60)
    for seed in range(5):
        player.order("screen.present(picture)", picture=noise(200, 118, seed))
        player.until(lambda: player.done == player._told, reading=False)
    player.do("pass")
    wanted = noise(200, 118, 4)[..., :3]
    player.until(lambda: player.raw.endswith(b"\x1b[?2026l") and np.array_equal(player.half_blocks(59), wanted))


def test_a_terminal_that_is_closed_ends_the_show(start):
    player = start()
    os.close(player.slave)
    os.close(player.master)
    player.master = player.slave = -1
    player.until(lambda: player.closed, reading=False)


@pytest.mark.parametrize(("stdout", "term"), [("pipe", "xterm"), ("terminal", "dumb"), ("terminal", "")])
def test_without_a_terminal_nothing_is_changed(stdout, term, tmp_path: Path):
    master, slave = os.openpty()
    code = (
        "import sys\nfrom weft.errors import WeftError\nfrom weft.runtime.screens.terminal import Terminal\n"
        "try: Terminal()\nexcept WeftError as failure: print(failure, file=sys.stderr)"
    )
    before = termios.tcgetattr(slave)
    try:
        done = subprocess.run(
            [sys.executable, "-c", code], stdin=slave, stdout=slave if stdout == "terminal" else subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, check=True, timeout=60, env={**os.environ, "TERM": term},
        )  # fmt: skip
        assert "[no-terminal]" in done.stderr
        assert "hint: " in done.stderr
        assert not done.stdout
        assert not select.select([master], [], [], 0)[0]
        assert termios.tcgetattr(slave) == before
    finally:
        os.close(master)
        os.close(slave)
