"""The terminal of stdout on systems with POSIX."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import termios
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

# The most seconds for the guard to notice that it is not needed.
_LEAVING_SECONDS = 1.0


class PosixTerminal:
    """A terminal, opened again: non-blocking output must not affect other processes. After a signal by which the user
    stops this process, its state may be another."""

    def __init__(self) -> None:
        """Raises OSError if stdout is no terminal that can be used."""
        reason: OSError | None = None
        for path in (_name_of(1), "/dev/tty"):
            try:
                self._number = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
                break
            except OSError as problem:
                reason = reason or problem
        else:
            assert reason is not None
            raise reason
        try:
            self.note_state()
        except OSError:
            self.close()
            raise

    @classmethod
    def is_plain(cls) -> bool:
        """Whether it is known to be for plain lines only."""
        return os.environ.get("TERM", "") in ("", "dumb")

    @classmethod
    def signals(cls) -> list[int]:
        """The signals that would end or stop this process without restoring the terminal."""
        return [signal.SIGHUP, signal.SIGTERM, signal.SIGTSTP, signal.SIGCONT]

    hangup: int | None = signal.SIGHUP
    """The signal of a terminal that is gone."""
    stop: int | None = signal.SIGTSTP
    """The signal by which a user stops this process, to continue it later."""
    proceed: int | None = signal.SIGCONT

    @classmethod
    def stop_now(cls) -> None:
        """Stops this process until it is continued."""
        handler = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, handler)

    @property
    def backspace(self) -> bytes:
        """The byte of the Backspace key."""
        return bytes(self._before[6][termios.VERASE])

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows; zeros if they are not known."""
        try:
            columns, rows = os.get_terminal_size(self._number)
            return columns, rows
        except OSError:
            return 0, 0

    # --- state ---

    def note_state(self) -> None:
        """Notes the state that `restore` brings back. Raises OSError."""
        self._before = _checked(termios.tcgetattr, self._number)
        self._words = _settings_in_words(self._number)

    def set_raw(self) -> None:
        """Has keys come at once, without echo; Ctrl-C and Ctrl-Z are signals; Ctrl-S is a key. Raises OSError."""
        settings: list[Any] = list(self._before)
        settings[0] &= ~(termios.IXON | termios.IXOFF | termios.ICRNL | termios.INLCR | termios.IGNCR | termios.ISTRIP)
        settings[3] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN)
        settings[6] = list(settings[6])
        settings[6][termios.VMIN], settings[6][termios.VTIME] = 1, 0
        _checked(termios.tcsetattr, self._number, termios.TCSANOW, settings)

    def restore(self) -> None:
        """Brings back the state that was noted, without what was typed since. Does nothing if the terminal is gone."""
        with suppress(OSError):
            # The mouse may have moved in the meantime: a shell would read the reports as typing.
            _checked(termios.tcflush, self._number, termios.TCIFLUSH)
            _checked(termios.tcsetattr, self._number, termios.TCSANOW, self._before)

    def guard(self, leave: str, caught: Path) -> _Guard:
        """Has the state that was noted brought back when this process ends, however that happens. Then `leave` is
        written, and the contents of the file `caught`. To be called when the terminal has the settings of this process.
        """
        return _Guard(_name_of(self._number), _settings_in_words(self._number), self._words, leave, caught)

    # --- output and input ---

    def write(self, data: memoryview) -> int:
        """Writes the beginning of some data: how many bytes. Raises OSError, and BlockingIOError if the terminal takes
        none now."""
        return os.write(self._number, data)

    def wait(self, seconds: float) -> bool:
        """Waits until it takes output again: whether it does."""
        return bool(select.select([], [self._number], [], seconds)[1])

    def read(self) -> bytes:
        """What was typed, without waiting; nothing if the terminal is gone. Raises OSError, and BlockingIOError if
        nothing was."""
        return os.read(self._number, 4096)

    def drop_output(self) -> None:
        """Drops the output that the terminal has not shown."""
        with suppress(OSError):
            _checked(termios.tcflush, self._number, termios.TCOFLUSH)

    def close(self) -> None:
        """May be called twice."""
        if self._number >= 0:
            os.close(self._number)
            self._number = -1


def _checked(call: Any, *arguments: Any) -> Any:
    """The result of a function of termios. Raises OSError, which its own error is not."""
    try:
        return call(*arguments)
    except termios.error as problem:
        raise OSError(*problem.args) from problem


def _name_of(number: int) -> str:
    try:
        return os.ttyname(number)
    except OSError:  # the terminal belongs to another container
        return "/dev/tty"


# Waits for a word, which means that the terminal is restored, or for the death of its owner. By then, a shell may have
# set up the terminal for itself, and must not be disturbed.
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

    Nothing within a process helps against SIGKILL and crashes. Without a shell there is no guard.
    """

    def __init__(self, terminal: str, now: str, before: str, leave: str, caught: Path) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        with suppress(OSError, subprocess.SubprocessError), ExitStack() as stack:
            # This descriptor may block, since a restored terminal is worth the wait.
            output = os.open(terminal, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
            stack.callback(os.close, output)
            # It has a session of its own, so that it gets no Ctrl-C.
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", _GUARD, "weft-guard", now, before, leave, str(caught)], stdin=subprocess.PIPE,
                stdout=output, stderr=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip

    def dismiss(self) -> None:
        """Ends the guard, because the terminal is restored."""
        if self._process is not None:
            with suppress(OSError, subprocess.TimeoutExpired):
                self._process.communicate(b"well\n", _LEAVING_SECONDS)

    def leave_alone(self) -> None:
        """Closes the pipe to the guard, which restores the terminal unless it was dismissed."""
        if self._process is not None and self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()


def _settings_in_words(terminal: int) -> str:
    """The terminal's settings as stty spells them; empty if there is no stty."""
    try:
        found = subprocess.run(["stty", "-g"], stdin=terminal, capture_output=True, check=True, timeout=2)
    except (OSError, subprocess.SubprocessError):
        return ""
    return found.stdout.decode().strip()
