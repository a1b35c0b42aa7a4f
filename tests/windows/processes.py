"""Processes and windows of Windows, for tests that run there, or under Wine."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from ctypes import wintypes
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import ImageGrab

on_windows = pytest.mark.skipif(sys.platform != "win32", reason="is for Windows; make test-windows runs it under Wine")

# Long enough for a machine with other work, on which Wine starts a process in seconds.
PATIENCE = 90.0

_OF_PROCESSES = 2
_SYNCHRONIZE, _TERMINATE = 0x100000, 0x1
_GENERIC_READ, _OPEN_EXISTING = 0x80000000, 3
_ALL_ACCESS = 0x1FFFFF
_CLOSE = 2
_QUERY_END_SESSION, _END_SESSION = 0x11, 0x16


class _Process(ctypes.Structure):
    """PROCESSENTRY32W."""

    _fields_ = (
        ("size", wintypes.DWORD), ("usage", wintypes.DWORD), ("id", wintypes.DWORD), ("heap", ctypes.c_size_t),
        ("module", wintypes.DWORD), ("threads", wintypes.DWORD), ("parent", wintypes.DWORD), ("base", wintypes.LONG),
        ("flags", wintypes.DWORD), ("file", wintypes.WCHAR * 260),
    )  # fmt: skip


def children(parent: int) -> list[int]:
    """The processes of Python that a process has started, and that run. The system may have it start others, such as
    that of a desktop."""
    name = Path(sys.executable).name
    return [each.id for each in _processes() if each.parent == parent and each.file == name]


def _processes() -> Iterator[_Process]:
    kernel = ctypes.windll.kernel32  # type: ignore[attr-defined]
    kernel.CreateToolhelp32Snapshot.restype = wintypes.HANDLE
    snapshot = wintypes.HANDLE(kernel.CreateToolhelp32Snapshot(_OF_PROCESSES, 0))
    entry = _Process()
    entry.size = ctypes.sizeof(entry)
    more = kernel.Process32FirstW(snapshot, ctypes.byref(entry))
    while more:
        yield entry
        more = kernel.Process32NextW(snapshot, ctypes.byref(entry))
    kernel.CloseHandle(snapshot)


def is_gone(process: int) -> bool:
    """Whether a process has ended."""
    kernel = ctypes.windll.kernel32  # type: ignore[attr-defined]
    kernel.OpenProcess.restype = wintypes.HANDLE
    handle = kernel.OpenProcess(_SYNCHRONIZE, False, process)
    if not handle:
        return True
    ended = kernel.WaitForSingleObject(wintypes.HANDLE(handle), 0) == 0
    kernel.CloseHandle(wintypes.HANDLE(handle))
    return bool(ended)


def end(process: int) -> None:
    """Ends a process at once."""
    kernel = ctypes.windll.kernel32  # type: ignore[attr-defined]
    kernel.OpenProcess.restype = wintypes.HANDLE
    handle = wintypes.HANDLE(kernel.OpenProcess(_TERMINATE, False, process))
    kernel.TerminateProcess(handle, 9)
    kernel.CloseHandle(handle)


def suspend(process: subprocess.Popen[bytes]) -> None:
    """Has all threads of a process stand still."""
    nt = ctypes.WinDLL("ntdll")  # type: ignore[attr-defined]
    assert nt.NtSuspendProcess(wintypes.HANDLE(int(process._handle))) == 0  # type: ignore[attr-defined]


def close_console(process: int) -> None:
    """Does to a process what Windows does when its console is closed: a thread there says so, and when that has ended,
    so has the process."""
    kernel = ctypes.WinDLL("kernel32")  # type: ignore[attr-defined]
    kernel.OpenProcess.restype = kernel.CreateRemoteThread.restype = wintypes.HANDLE
    handle = wintypes.HANDLE(kernel.OpenProcess(_ALL_ACCESS, False, process))
    # A library of the system is at the same place in all processes.
    routine = ctypes.cast(ctypes.WinDLL("kernelbase").CtrlRoutine, ctypes.c_void_p)  # type: ignore[attr-defined]
    thread = kernel.CreateRemoteThread(handle, None, 0, routine, ctypes.c_void_p(_CLOSE), 0, None)
    assert thread
    assert kernel.WaitForSingleObject(wintypes.HANDLE(thread), int(PATIENCE * 1000)) == 0
    kernel.TerminateProcess(handle, 9)
    kernel.CloseHandle(handle)


def log_off(process: int) -> None:
    """Does to a process what Windows does when its user logs off: each of its windows is told, and when all have
    answered, the process ends."""
    kernel, user = ctypes.WinDLL("kernel32"), ctypes.WinDLL("user32")  # type: ignore[attr-defined]
    kernel.OpenProcess.restype = wintypes.HANDLE
    handle = wintypes.HANDLE(kernel.OpenProcess(_ALL_ACCESS, False, process))
    windows = _windows_of(process)
    assert windows
    for message in (_QUERY_END_SESSION, _END_SESSION):
        for window in windows:
            answer = ctypes.c_size_t()
            user.SendMessageTimeoutW(
                wintypes.HWND(window), message, 1, 0, 0, int(PATIENCE * 1000), ctypes.byref(answer)
            )
    kernel.TerminateProcess(handle, 9)
    kernel.CloseHandle(handle)


def _windows_of(process: int) -> list[int]:
    user = ctypes.WinDLL("user32")  # type: ignore[attr-defined]
    found = []

    @ctypes.WINFUNCTYPE(wintypes.BOOL, wintypes.HWND, wintypes.LPARAM)  # type: ignore[attr-defined, untyped-decorator]
    def note(window: int, _: int) -> bool:
        owner = wintypes.DWORD()
        user.GetWindowThreadProcessId(wintypes.HWND(window), ctypes.byref(owner))
        if owner.value == process:
            found.append(window)
        return True

    user.EnumWindows(note, 0)
    return found


class Held:
    """A file that this process has open, so that no other can, as long as the `with` block lasts."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        kernel = ctypes.windll.kernel32  # type: ignore[attr-defined]
        kernel.CreateFileW.restype = wintypes.HANDLE

        def opens() -> bool:
            """Whoever reads the file at this moment, such as weft, has it open."""
            self._handle = wintypes.HANDLE(
                kernel.CreateFileW(str(self._path), _GENERIC_READ, 0, None, _OPEN_EXISTING, 0, None)
            )
            return self._handle.value != wintypes.HANDLE(-1).value

        eventually(opens, "having the file alone")

    def __exit__(self, *_: object) -> None:
        ctypes.windll.kernel32.CloseHandle(self._handle)  # type: ignore[attr-defined]


def eventually(happens: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not happens():
        assert time.monotonic() < deadline, f"{what} does not happen"
        time.sleep(0.05)


def client_of(title: str) -> tuple[int, int, int, int] | None:
    """Where a window's picture is on the screen: left, top, right and bottom; None if there is no such window."""
    user = ctypes.windll.user32  # type: ignore[attr-defined]
    user.FindWindowW.restype = wintypes.HWND
    window = user.FindWindowW(None, title)
    if not window:
        return None
    corner, size = wintypes.POINT(), wintypes.RECT()
    user.ClientToScreen(wintypes.HWND(window), ctypes.byref(corner))
    user.GetClientRect(wintypes.HWND(window), ctypes.byref(size))
    return corner.x, corner.y, corner.x + size.right, corner.y + size.bottom


def shown(title: str) -> NDArray[np.uint8] | None:
    """What the screen shows where the window is [height, width, RGB]; None if there is no such window."""
    place = client_of(title)
    return None if place is None else np.asarray(ImageGrab.grab(place).convert("RGB"))
