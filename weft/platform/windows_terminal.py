"""The console of Windows 10 and later, which understands the sequences of other terminals."""

from __future__ import annotations

import ctypes
import errno
import msvcrt
import os
import signal
import sys
from ctypes import wintypes
from pathlib import Path

assert sys.platform == "win32"  # types are checked for one system at a time

_PROCESSED_INPUT, _EXTENDED, _SEQUENCES_IN = 0x1, 0x80, 0x200
"""Ctrl-C is a signal; without a flag beside it, the console does not select by mouse; keys come as sequences."""
_SEQUENCES_OUT, _NO_RETURN = 0x4, 0x8
"""Sequences are understood; a new line does not begin at the left."""

_MOST = 1024
_PIECE = 1 << 14
"""Letters of one call of the console: too many at once fail on older systems."""
_KEY = 1
_NO_COLOUR = "\x1b[0m"
"""A sequence that moves nothing."""


class _KeyRecord(ctypes.Structure):
    """INPUT_RECORD with a key, which is the longest kind in use."""

    _fields_ = (
        ("kind", wintypes.WORD), ("down", wintypes.BOOL), ("repeats", wintypes.WORD), ("key", wintypes.WORD),
        ("scan", wintypes.WORD), ("letter", wintypes.WCHAR), ("held", wintypes.DWORD),
    )  # fmt: skip


class _ScreenState(ctypes.Structure):
    """CONSOLE_SCREEN_BUFFER_INFO."""

    _fields_ = (
        ("size", wintypes._COORD), ("cursor", wintypes._COORD), ("attributes", wintypes.WORD),
        ("window", wintypes.SMALL_RECT), ("most", wintypes._COORD),
    )  # fmt: skip


class WindowsTerminal:
    """What `posix_terminal` says. A console never makes its writer wait for long."""

    def __init__(self) -> None:
        self._out = os.open("CONOUT$", os.O_RDWR | os.O_BINARY | os.O_NOINHERIT)
        self._in = -1
        try:
            self._in = os.open("CONIN$", os.O_RDWR | os.O_BINARY | os.O_NOINHERIT)
            self.note_state()
            _set_mode(self._out, self._modes[0] | _SEQUENCES_OUT)
            is_understood = _is_sequence_understood(self._out)
            _set_mode(self._out, self._modes[0])
            if not is_understood:
                raise OSError(0, "it shows sequences of ANSI as letters")
        except OSError:
            self.close()
            raise
        self._half = b""

    @classmethod
    def is_plain(cls) -> bool:
        return False

    @classmethod
    def signals(cls) -> list[int]:
        return [signal.SIGBREAK, signal.SIGTERM]

    hangup: int | None = signal.SIGBREAK
    stop: int | None = None
    proceed: int | None = None

    @classmethod
    def stop_now(cls) -> None:
        """Is never called: there is no such signal."""

    @property
    def backspace(self) -> bytes:
        return b"\x7f"

    @property
    def size(self) -> tuple[int, int]:
        try:
            columns, rows = os.get_terminal_size(self._out)
            return columns, rows
        except OSError:
            return 0, 0

    # --- state ---

    def note_state(self) -> None:
        self._modes = _mode(self._out), _mode(self._in)

    def set_raw(self) -> None:
        _set_mode(self._out, self._modes[0] | _SEQUENCES_OUT | _NO_RETURN)
        _set_mode(self._in, _PROCESSED_INPUT | _EXTENDED | _SEQUENCES_IN)

    def restore(self) -> None:
        ctypes.windll.kernel32.FlushConsoleInputBuffer(_handle(self._in))
        for number, mode in zip((self._out, self._in), self._modes, strict=True):
            ctypes.windll.kernel32.SetConsoleMode(_handle(number), mode)

    def guard(self, leave: str, caught: Path) -> _NoGuard:
        return _NoGuard()

    # --- output and input ---

    def write(self, data: memoryview) -> int:
        """The console takes letters of 16 bits, whatever its code page is."""
        piece = self._half + bytes(data[:_PIECE])
        text, used = _whole(piece)
        written, units = wintypes.DWORD(), text.encode("utf-16-le", "replace")
        if not ctypes.windll.kernel32.WriteConsoleW(
            _handle(self._out), units, len(units) // 2, ctypes.byref(written), None
        ):
            raise ctypes.WinError()
        self._half = piece[used:]
        return min(len(data), _PIECE)

    def wait(self, seconds: float) -> bool:
        return True

    def read(self) -> bytes:
        records, count = (_KeyRecord * _MOST)(), wintypes.DWORD()
        kernel, handle = ctypes.windll.kernel32, _handle(self._in)
        if not kernel.PeekConsoleInputW(handle, records, _MOST, ctypes.byref(count)):
            return b""
        if not count.value:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        kernel.ReadConsoleInputW(handle, records, count, ctypes.byref(count))
        keys = [each for each in records[: count.value] if each.kind == _KEY and each.down and each.letter != "\0"]
        typed = "".join(each.letter * max(1, each.repeats) for each in keys)
        if not typed:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        return typed.encode("utf-8", "replace")

    def drop_output(self) -> None:
        """It has shown all."""

    def close(self) -> None:
        for number in {self._out, self._in} - {-1}:
            os.close(number)
        self._out = self._in = -1


class _NoGuard:
    """A console has its state back when the program that is in front has set it, as shells do."""

    def dismiss(self) -> None:
        """There is nobody to dismiss."""

    def leave_alone(self) -> None:
        """There is nobody to leave alone."""


def _whole(piece: bytes) -> tuple[str, int]:
    """The whole letters in the beginning of UTF-8, and how many bytes they are."""
    for missing in range(min(4, len(piece) + 1)):
        try:
            return piece[: len(piece) - missing].decode(), len(piece) - missing
        except UnicodeDecodeError:
            continue
    return piece.decode("utf-8", "replace"), len(piece)


def _is_sequence_understood(number: int) -> bool:
    """Whether a console follows a sequence, which some that say so show as letters. These are removed again."""
    kernel, handle = ctypes.windll.kernel32, _handle(number)
    found, done = _ScreenState(), wintypes.DWORD()
    if not kernel.GetConsoleScreenBufferInfo(handle, ctypes.byref(found)):
        return False
    column, row = found.cursor.X, found.cursor.Y
    kernel.WriteConsoleW(handle, _NO_COLOUR, len(_NO_COLOUR), ctypes.byref(done), None)
    kernel.GetConsoleScreenBufferInfo(handle, ctypes.byref(found))
    if (column, row) == (found.cursor.X, found.cursor.Y):
        return True
    place = wintypes._COORD(column, row)
    kernel.FillConsoleOutputCharacterW(handle, wintypes.WCHAR(" "), len(_NO_COLOUR), place, ctypes.byref(done))
    kernel.SetConsoleCursorPosition(handle, place)
    return False


def _handle(number: int) -> wintypes.HANDLE:
    return wintypes.HANDLE(msvcrt.get_osfhandle(number))


def _mode(number: int) -> int:
    found = wintypes.DWORD()
    if not ctypes.windll.kernel32.GetConsoleMode(_handle(number), ctypes.byref(found)):
        raise ctypes.WinError()
    return found.value


def _set_mode(number: int, mode: int) -> None:
    if not ctypes.windll.kernel32.SetConsoleMode(_handle(number), mode):
        raise ctypes.WinError()
