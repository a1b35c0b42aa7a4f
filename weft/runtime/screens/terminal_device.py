"""The terminal as a device: its modes, its output, and the decoding of its input.

Nothing here waits long for the terminal: output that it does not accept is kept. Whichever way this process ends, the
terminal gets its previous state back: from this process, or else from a guard that outlives it.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from weft.errors import WeftError, error
from weft.keys import KEYS, key_name
from weft.platform.own_terminal import Terminal
from weft.runtime.hands.inputs import BUTTONS, Inputs

# --- decoding of input --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Key:
    """A key was pressed, or repeats. `modifiers` are the names of keys that were held with it."""

    name: str
    modifiers: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Mouse:
    """The mouse moved, a button went down or up, or the wheel turned by `notches`, positive away from the player.

    `column` and `row` are cells of the terminal from 0; `button` is one of `BUTTONS`.
    """

    action: Literal["move", "press", "release", "turn"]
    column: int
    row: int
    button: str = ""
    notches: float = 0.0
    is_shifted: bool = False


Event = Key | Mouse

# The Escape key sends the byte with which the sequences of all special keys begin. The seconds to wait for the rest.
_ALONE = 0.1
# A slow network may split a sequence. One that is not complete after this many seconds is dropped.
_BROKEN_OFF = 1.0

_SEQUENCE = re.compile(rb"\x1b\[([<-?]?)([0-9;:]*)[ -/]*([@-~])")
_UNFINISHED = re.compile(rb"\x1b(\[([<-?]?[0-9;:]*[ -/]*|\[)|O[0-9;]*)?")
# The codes of the Linux console for F1 to F5.
_CONSOLE = re.compile(rb"\x1b\[\[([A-E])")
_SHORT = re.compile(rb"\x1bO([0-9;]*)([@-~])")

_BY_LETTER = {
    "A": "up", "B": "down", "C": "right", "D": "left", "H": "home", "F": "end", "M": "enter",
    "P": "f1", "Q": "f2", "R": "f3", "S": "f4", "Z": "tab",
}  # fmt: skip
_BY_NUMBER = {
    1: "home", 2: "insert", 3: "delete", 4: "end", 5: "pageup", 6: "pagedown", 7: "home", 8: "end",
    **dict(zip((11, 12, 13, 14, 15, 17, 18, 19, 20, 21, 23, 24), (f"f{n}" for n in range(1, 13)), strict=True)),
}  # fmt: skip
_PLAIN = {b"\t": "tab", b"\r": "enter", b"\x7f": "backspace"}
_MODIFIERS = ("shift", "alt", "control")
# Terminals count buttons from the left one on.
_BUTTONS = (BUTTONS[0], BUTTONS[2], BUTTONS[1])
_CONTROL = frozenset({"control"})


class Decoder:
    """Turns the bytes from a terminal into events. They may arrive in pieces of any size."""

    def __init__(self, backspace: bytes = b"\x7f") -> None:
        """`backspace` is what that key sends in this terminal. If it is not Ctrl+H, Ctrl+H is a separate key."""
        self._backspace = backspace
        self._waiting = b""
        self._since = 0.0

    def feed(self, data: bytes, now: float) -> list[Event]:
        """The events of these bytes. Call it without bytes too, since only time shows what an Escape meant."""
        if data:
            self._waiting += data
            self._since = now
        events: list[Event] = []
        while self._waiting:
            length, found = self._next(now - self._since)
            if not length:
                break
            self._waiting = self._waiting[length:]
            events += found
        return events

    def _next(self, silence: float) -> tuple[int, list[Event]]:
        """The length of the next sequence in bytes, and its events; 0 if it is not complete yet."""
        waiting = self._waiting
        if waiting[0] != 0x1B:
            return 1, self._plain(waiting[:1])
        if _UNFINISHED.fullmatch(waiting):
            if waiting == b"\x1b":
                return (1, [Key("escape")]) if silence >= _ALONE else (0, [])
            return (len(waiting), []) if silence >= _BROKEN_OFF else (0, [])
        if match := _CONSOLE.match(waiting):
            return match.end(), [Key(f"f{match[1][0] - ord('A') + 1}")]
        if match := _SEQUENCE.match(waiting):
            return match.end(), list(_sequence(match[1], match[2], match[3].decode()))
        if match := _SHORT.match(waiting):
            return match.end(), list(_sequence(b"", match[1], match[2].decode()))
        if waiting[1:2] == b"\x1b":
            return 1, [Key("escape")]
        if waiting[1:2] in (b"[", b"O"):  # a sequence that was interrupted
            return 2, []
        return 2, [Key(k.name, k.modifiers | {"alt"}) for k in self._plain(waiting[1:2]) if isinstance(k, Key)]

    def _plain(self, byte: bytes) -> list[Event]:
        """The events of a byte that is not part of a sequence. Letters with accents and the like have no key name, and
        are left out."""
        code = byte[0]
        if code == 0:
            return [Key("space", _CONTROL)]
        if byte == b"\n":  # Ctrl+J, which some terminals send for Ctrl+Enter as well
            return [Key("enter", _CONTROL)]
        if byte == self._backspace:
            return [Key("backspace")]
        if name := _PLAIN.get(byte):
            return [Key(name)]
        if code <= 26:
            return [Key(chr(code + 96), _CONTROL)]
        letter = chr(code)
        found = key_name(code, letter) if 32 <= code < 127 else None
        return [Key(found, frozenset({"shift"} if letter.isupper() else ()))] if found else []


def _sequence(private: bytes, parameters: bytes, final: str) -> Iterator[Event]:
    numbers = [int(text) if text.isdigit() else 1 for text in re.split(rb"[;:]", parameters[:64])]
    if private == b"<" and final in "Mm" and len(numbers) == 3:
        yield from _mouse(numbers[0], numbers[1] - 1, numbers[2] - 1, final == "M")
    elif not private:
        name = _BY_NUMBER.get(numbers[0]) if final == "~" else _BY_LETTER.get(final)
        # Two forms of Enter with a modifier: xterm's modifyOtherKeys, and CSI u.
        if (final == "~" and numbers[::2] == [27, 13]) or (final == "u" and numbers[0] == 13):
            name = "enter"
        if name:
            held = numbers[1] - 1 if len(numbers) > 1 else 0
            modifiers = {modifier for bit, modifier in enumerate(_MODIFIERS) if held >> bit & 1}
            yield Key(name, frozenset(modifiers | ({"shift"} if final == "Z" else set())))


def _mouse(code: int, column: int, row: int, down: bool) -> Iterator[Mouse]:
    """The events of a report in xterm's SGR form: bits 0 and 1 are the button, 4 is Shift, 32 is a movement, 64 the
    wheel."""
    shift = bool(code & 4)
    yield Mouse("move", column, row, is_shifted=shift)
    which = code & 3
    if code & 64:
        if which < 2 and code < 128:
            yield Mouse("turn", column, row, notches=1.0 - 2 * which, is_shifted=shift)
    elif not code & 32 and which < 3 and code < 128:
        yield Mouse("press" if down else "release", column, row, _BUTTONS[which], is_shifted=shift)


# The seconds for which a key counts as held: after it was pressed, until keyboards begin to repeat it; and after each
# repetition, since a few of these may get lost.
_BEFORE_REPEAT = 0.5
_BETWEEN_REPEATS = 0.15


class HeldKeys:
    """Releases keys when they have stopped repeating, since terminals do not report that a key goes up."""

    def __init__(self, inputs: Inputs) -> None:
        self._inputs = inputs
        self._until: dict[str, float] = {}

    def heard(self, name: str, now: float) -> None:
        """A key was pressed, or repeats."""
        repeats = name in self._until
        self._until[name] = now + (_BETWEEN_REPEATS if repeats else _BEFORE_REPEAT)
        if not repeats:
            self._inputs.key_down(KEYS[name][0], name)

    def pass_time(self, now: float) -> None:
        """Releases the keys that have been silent for too long."""
        for name in [name for name, until in self._until.items() if until <= now]:
            del self._until[name]
            self._inputs.key_up(KEYS[name][0])


# --- the device ---------------------------------------------------------------------------------------------------

SYNCHRONIZED = b"\x1b[?2026h", b"\x1b[?2026l"
"""Terminals that know these two show the output between them at once."""

# The alternate screen without a cursor, no wrapping of lines, and every movement of the mouse: 1002 is for terminals
# that report it only while a button is held, and 1006 is the form of the reports.
_ENTER = b"\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[?1002h\x1b[?1003h\x1b[?1006h\x1b[0m\x1b[2J"
_LEAVE = SYNCHRONIZED[1] + b"\x1b[0m\x1b[2J\x1b[?1006l\x1b[?1003l\x1b[?1002l\x1b[?7h\x1b[?25h\x1b[?1049l"

# A terminal that reads accepts more within this time, even over a network.
_PROGRESS_SECONDS = 0.02
# The longest time for which one picture delays the session. After that, the terminal gets the rest while later pictures
# are left out.
_PICTURE_SECONDS = 0.1
# At the end there is more time, since nothing else is left to do.
_LEAVING_SECONDS = 1.0
_MOST_INPUT = 1 << 16
_MOST_CAUGHT = 1 << 14


def _open_terminal() -> Terminal:
    """The terminal of stdout. Raises `WeftError` (`no-terminal`) if there is none that can show a picture."""
    hint = "run it in a terminal; --headless runs without a picture"
    if not os.isatty(1):
        raise error("no-terminal", "the picture cannot be shown: stdout is not a terminal", hint=hint)
    if Terminal.is_plain():
        raise error("no-terminal", "the picture cannot be shown: TERM names a terminal for plain lines", hint=hint)
    try:
        return Terminal()
    except OSError as problem:
        raise _unusable(problem.strerror) from problem


def _unusable(reason: object) -> WeftError:
    return error("no-terminal", f"the terminal cannot be used: {reason}", hint="--headless runs without a picture")


class Device:
    """A terminal, which is in the state for pictures between `enter` and `leave`."""

    def __init__(self) -> None:
        """Raises `WeftError` (`no-terminal`), with nothing changed."""
        self.gone = False
        self._unsent = memoryview(b"")
        self._modes = ExitStack()
        self._entered = False
        self._terminal = _open_terminal()
        self.backspace = self._terminal.backspace
        """The byte of the Backspace key."""

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows."""
        columns, rows = self._terminal.size
        return columns or 80, rows or 24

    # --- modes ----------------------------------------------------------------------------------------------------

    def enter(self) -> None:
        """Puts the terminal into the state for pictures. Raises `WeftError` (`no-terminal`) if that fails."""
        with ExitStack() as stack:
            try:
                self._terminal.note_state()
                stack.callback(self._terminal.restore)
                self._terminal.set_raw()
                caught = _Caught()
            except OSError as problem:
                raise _unusable(problem.strerror) from problem
            stack.callback(caught.close)
            self._guard = self._terminal.guard(_LEAVE.decode(), caught.path)
            stack.callback(self._guard.leave_alone)
            self._caught = caught
            caught.catch()
            self._entered = True
            self._unsent = memoryview(b"")
            self.send(_ENTER)
            self._modes = stack.pop_all()

    def enter_again(self) -> None:
        """Enters the state for pictures again, since another program may have changed it."""
        with suppress(OSError):
            self._terminal.set_raw()
        self.send(_ENTER)

    def leave(self) -> None:
        """Restores the terminal's previous state, then prints the caught output. May be called twice."""
        if not self._entered:
            return
        self._entered = False
        self._unsent = memoryview(bytes(self._unsent) + _LEAVE)
        try:
            if not self.flush(_LEAVING_SECONDS, _LEAVING_SECONDS):
                # The terminal reads nothing. The pictures that wait are dropped, so that the restored state comes first
                # later.
                self._terminal.drop_output()
                self._unsent = memoryview(_LEAVE)
            if self.flush(_PROGRESS_SECONDS, _PICTURE_SECONDS) and not self.gone:
                self._guard.dismiss()
        finally:
            self._modes.close()
        self._unsent = memoryview(self._caught.text)
        self.flush(_LEAVING_SECONDS, _LEAVING_SECONDS)

    def close(self) -> None:
        """Leaves, and closes the terminal. May be called twice."""
        try:
            self.leave()
        finally:
            self._terminal.close()

    # --- output and input -----------------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Whether the terminal has not yet accepted all output."""
        return bool(self._unsent)

    def send(self, data: bytes) -> None:
        """Sends data after all previous output. Data that the terminal does not accept soon is left to `flush`."""
        self._unsent = memoryview(bytes(self._unsent) + data)
        self.flush(_PROGRESS_SECONDS, _PICTURE_SECONDS)

    def flush(self, progress: float, whole: float) -> bool:
        """Sends the remaining data, for at most `whole` seconds, and while the terminal accepts more within `progress`
        seconds. True if all is sent."""
        deadline = time.monotonic() + whole
        while self._unsent and not self.gone:
            try:
                sent = self._terminal.write(self._unsent)
            except BlockingIOError:
                wait = min(progress, deadline - time.monotonic())
                if wait <= 0 or not self._terminal.wait(wait):
                    return False
            except OSError:
                self.gone = True
            else:
                self._unsent = self._unsent[sent:]
        return True

    def read(self) -> bytes:
        """The input so far, without waiting."""
        self._caught.limit()
        data = b""
        while len(data) < _MOST_INPUT and not self.gone:
            try:
                piece = self._terminal.read()
            except BlockingIOError:
                break
            except OSError:
                piece = b""
            self.gone = not piece
            data += piece
        return data


class _Caught:
    """Catches what is printed to the terminal, in a file, which never makes the writer wait. `close` puts it in `text`.

    Standard output and error that go elsewhere are left alone.
    """

    def __init__(self) -> None:
        number, name = tempfile.mkstemp(prefix="weft-", suffix=".txt")
        os.close(number)
        self.path = Path(name)
        self._file = os.open(name, os.O_WRONLY | os.O_APPEND)
        self._kept: dict[int, int] = {}
        self.text = b""

    def catch(self) -> None:
        _flush_streams()
        for number in (1, 2):
            if os.isatty(number):
                self._kept[number] = os.dup(number)
                os.dup2(self._file, number)

    def limit(self) -> None:
        """Truncates output that is too long to be read."""
        with suppress(OSError):
            if os.fstat(self._file).st_size > _MOST_CAUGHT:
                os.ftruncate(self._file, _MOST_CAUGHT)

    def close(self) -> None:
        _flush_streams()
        for number, kept in self._kept.items():
            os.dup2(kept, number)
            os.close(kept)
        os.close(self._file)
        with suppress(OSError):
            self.text = self.path.read_bytes()[:_MOST_CAUGHT]
            self.path.unlink()


def _flush_streams() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with suppress(OSError, ValueError):
                stream.flush()
