"""The terminal as a device: its modes, what goes to it and comes from it, and how it gets its modes back.

Nothing here waits for the terminal for long: what it does not take is kept. And whatever becomes of this process, the
terminal is given back as it was: by this process, or else by a guard that outlives it.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import tempfile
import termios
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from weft.errors import WeftError, error

SYNCHRONIZED = b"\x1b[?2026h", b"\x1b[?2026l"
"""What stands between these two is shown at once, by terminals that know them."""

# The other screen without a cursor, lines that do not wrap, and every movement of the mouse: 1002 is for terminals
# that report it only while a button is held, and 1006 is the form of the reports.
_ENTER = b"\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[?1002h\x1b[?1003h\x1b[?1006h\x1b[0m\x1b[2J"
_LEAVE = SYNCHRONIZED[1] + b"\x1b[0m\x1b[2J\x1b[?1006l\x1b[?1003l\x1b[?1002l\x1b[?7h\x1b[?25h\x1b[?1049l"

# A terminal that reads takes more within this time, even over a network.
_PROGRESS_SECONDS = 0.02
# One picture holds up the session no longer than this; the terminal then gets the rest while later ones are left out.
_PICTURE_SECONDS = 0.1
# At the end there is more time, as nothing else is to be done.
_LEAVING_SECONDS = 1.0
_MOST_INPUT = 1 << 16
_MOST_CAUGHT = 1 << 14


def open_terminal() -> int:
    """The terminal behind stdout, opened anew so that only this process does not wait for it.

    Raises `WeftError` (`no-terminal`) if there is none that can show a picture.
    """
    hint = "run it in a terminal; --headless runs without a picture"
    if not _is_terminal(1):
        raise error("no-terminal", "the picture cannot be shown: stdout is not a terminal", hint=hint)
    if os.environ.get("TERM", "") in ("", "dumb"):
        raise error("no-terminal", "the picture cannot be shown: TERM names a terminal of mere lines", hint=hint)
    reason = ""
    for path in (_name_of(1), "/dev/tty"):
        try:
            return os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as problem:
            reason = reason or str(problem.strerror)
    raise _unusable(reason)


def _unusable(reason: object) -> WeftError:
    return error("no-terminal", f"the terminal cannot be used: {reason}", hint="--headless runs without a picture")


def _is_terminal(number: int) -> bool:
    try:
        return os.isatty(number)
    except OSError:
        return False


def _name_of(number: int) -> str:
    try:
        return os.ttyname(number)
    except OSError:  # the terminal belongs to another container
        return "/dev/tty"


class Device:
    """A terminal, in the state for pictures between `enter` and `leave`."""

    def __init__(self) -> None:
        """Raises `WeftError` (`no-terminal`), with nothing changed."""
        self.gone = False
        self._unsent = memoryview(b"")
        self._modes = ExitStack()
        self._entered = False
        self._number = open_terminal()
        try:
            self._before = termios.tcgetattr(self._number)
        except (OSError, termios.error) as problem:
            os.close(self._number)
            raise _unusable(problem) from problem

    @property
    def backspace(self) -> bytes:
        """What the key of this name sends."""
        return bytes(self._before[6][termios.VERASE])

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows."""
        try:
            columns, rows = os.get_terminal_size(self._number)
        except OSError:
            columns, rows = 0, 0
        return columns or 80, rows or 24

    # --- modes ----------------------------------------------------------------------------------------------------

    def enter(self) -> None:
        """Puts the terminal into the state for pictures. Raises `WeftError` (`no-terminal`) if it does not let."""
        with ExitStack() as stack:
            try:
                self._before = termios.tcgetattr(self._number)
                before = _settings_in_words(self._number)
                stack.callback(self._restore_settings)
                self._set_raw()
                caught = _Caught()
            except (OSError, termios.error) as problem:
                raise _unusable(problem) from problem
            stack.callback(caught.close)
            self._guard = _Guard(self._number, before, caught.path)
            stack.callback(self._guard.leave_alone)
            self._caught = caught
            caught.catch()
            self._entered = True
            self._unsent = memoryview(b"")
            self.send(_ENTER)
            self._modes = stack.pop_all()

    def enter_again(self) -> None:
        """Once more, as somebody else may have changed the state meanwhile."""
        with suppress(OSError, termios.error):
            self._set_raw()
        self.send(_ENTER)

    def leave(self) -> None:
        """Puts the terminal back into its state before, then prints what was caught. May be called twice."""
        if not self._entered:
            return
        self._entered = False
        self._unsent = memoryview(bytes(self._unsent) + _LEAVE)
        try:
            if not self.flush(_LEAVING_SECONDS, _LEAVING_SECONDS):
                # Nobody reads. Without the pictures that wait there, what matters is found when somebody does.
                with suppress(OSError, termios.error):
                    termios.tcflush(self._number, termios.TCOFLUSH)
                self._unsent = memoryview(_LEAVE)
            if self.flush(_PROGRESS_SECONDS, _PICTURE_SECONDS) and not self.gone:
                self._guard.dismiss()
        finally:
            self._modes.close()
        self._unsent = memoryview(self._caught.text)
        self.flush(_LEAVING_SECONDS, _LEAVING_SECONDS)

    def close(self) -> None:
        """Leaves, and lets go of the terminal. May be called twice."""
        try:
            self.leave()
        finally:
            if self._number >= 0:
                os.close(self._number)
                self._number = -1

    def _set_raw(self) -> None:
        """Keys come at once and are not echoed; Ctrl-C and Ctrl-Z are signals; Ctrl-S is a key."""
        settings: list[Any] = list(self._before)
        settings[0] &= ~(termios.IXON | termios.IXOFF | termios.ICRNL | termios.INLCR | termios.IGNCR | termios.ISTRIP)
        settings[3] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN)
        settings[6] = list(settings[6])
        settings[6][termios.VMIN], settings[6][termios.VTIME] = 1, 0
        termios.tcsetattr(self._number, termios.TCSANOW, settings)

    def _restore_settings(self) -> None:
        with suppress(OSError, termios.error):
            # The mouse may have moved since: a shell would take the reports for typing.
            termios.tcflush(self._number, termios.TCIFLUSH)
            termios.tcsetattr(self._number, termios.TCSANOW, self._before)

    # --- to and fro -----------------------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Whether the terminal has not yet taken all that was sent."""
        return bool(self._unsent)

    def send(self, data: bytes) -> None:
        """Sends data behind all that was sent before. What the terminal does not take soon is left to `flush`."""
        self._unsent = memoryview(bytes(self._unsent) + data)
        self.flush(_PROGRESS_SECONDS, _PICTURE_SECONDS)

    def flush(self, progress: float, whole: float) -> bool:
        """Waits until all is sent, as long as the terminal takes more within `progress` seconds; says if it is."""
        deadline = time.monotonic() + whole
        while self._unsent and not self.gone:
            try:
                sent = os.write(self._number, self._unsent)
            except BlockingIOError:
                wait = min(progress, deadline - time.monotonic())
                if wait <= 0 or not select.select([], [self._number], [], wait)[1]:
                    return False
            except OSError:
                self.gone = True
            else:
                self._unsent = self._unsent[sent:]
        return True

    def read(self) -> bytes:
        """What has come in; without waiting."""
        self._caught.limit()
        data = b""
        while len(data) < _MOST_INPUT and not self.gone:
            try:
                piece = os.read(self._number, 4096)
            except BlockingIOError:
                break
            except OSError:
                piece = b""
            self.gone = not piece
            data += piece
        return data


class _Caught:
    """Keeps what anybody prints off the terminal meanwhile; when this is closed, it is found in `text`.

    It goes to a file, which never makes the writer wait. Standard output and error that lead elsewhere are let be.
    """

    def __init__(self) -> None:
        number, name = tempfile.mkstemp(prefix="weft-", suffix=".txt")
        os.close(number)
        self.path = Path(name)
        self._file = os.open(name, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        self._kept: dict[int, int] = {}
        self.text = b""

    def catch(self) -> None:
        _flush_streams()
        for number in (1, 2):
            if _is_terminal(number):
                self._kept[number] = os.dup(number)
                os.dup2(self._file, number)

    def limit(self) -> None:
        """Cuts off what is too much to be read by anybody."""
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


# Reads until a word comes, which says that all is well, or until its owner has died. A shell that has the terminal
# again by then may have set it up for itself, and must not be interfered with.
_GUARD = """
read -r word && exit
exec 3<&1
[ "$(stty -g <&3)" = "$1" ] && stty "$2" <&3
printf %s "$3"
cat "$4"
rm -f "$4"
"""


class _Guard:
    """A shell that waits for the end of this process, and restores the terminal if the process did not.

    Against SIGKILL and crashes nothing within a process helps. Where there is no shell there is no guard either.
    """

    def __init__(self, terminal: int, before: str, caught: Path) -> None:
        """To be started when the terminal's settings are those of this process, in place of `before`."""
        self._process: subprocess.Popen[bytes] | None = None
        with suppress(OSError, subprocess.SubprocessError), ExitStack() as stack:
            # This one may wait, as a restored terminal is worth it.
            output = os.open(_name_of(terminal), os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
            stack.callback(os.close, output)
            words = _settings_in_words(terminal), before, _LEAVE.decode(), str(caught)
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", _GUARD, "weft-guard", *words],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is not for it
            )

    def dismiss(self) -> None:
        """All is well."""
        process = self._process
        if process is not None and process.stdin is not None:
            with suppress(OSError, subprocess.TimeoutExpired):
                process.stdin.write(b"well\n")
                process.stdin.close()
                process.wait(_LEAVING_SECONDS)

    def leave_alone(self) -> None:
        """Without a word before, it takes over."""
        if self._process is not None and self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()


def _settings_in_words(terminal: int) -> str:
    """The terminal's settings as stty spells them; empty if there is no stty."""
    try:
        told = subprocess.run(["stty", "-g"], stdin=terminal, capture_output=True, check=True, timeout=2)
    except (OSError, subprocess.SubprocessError):
        return ""
    return told.stdout.decode().strip()
