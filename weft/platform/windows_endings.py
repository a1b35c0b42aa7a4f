"""The ends that Windows brings to a process: its console is closed, the user logs off, the machine shuts down. A
process has some seconds then, until it has answered."""

from __future__ import annotations

import ctypes
import signal
import sys
import threading
from collections.abc import Callable
from ctypes import wintypes
from functools import cache
from typing import Any

assert sys.platform == "win32"  # types are checked for one system at a time

END_WINDOW = "weft.end-of-session"
"""The class of the window that is told when the user logs off."""

_CLOSE, _LOG_OFF, _SHUT_DOWN = 2, 5, 6
_END_SESSION = 0x16
_BEFORE_CHILDREN = 0x2FF
"""The higher, the earlier is a process asked to end. Others have 0x280."""

_Handler = ctypes.WINFUNCTYPE(wintypes.BOOL, wintypes.DWORD)
_Procedure = ctypes.WINFUNCTYPE(ctypes.c_ssize_t, wintypes.HWND, wintypes.UINT, wintypes.WPARAM, wintypes.LPARAM)


class _WindowClass(ctypes.Structure):
    """WNDCLASSW."""

    _fields_ = (
        ("style", wintypes.UINT), ("procedure", _Procedure), ("extra", ctypes.c_int), ("extra_window", ctypes.c_int),
        ("instance", wintypes.HINSTANCE), ("icon", wintypes.HANDLE), ("cursor", wintypes.HANDLE),
        ("background", wintypes.HANDLE), ("menu", wintypes.LPCWSTR), ("name", wintypes.LPCWSTR),
    )  # fmt: skip


@cache
def answer_by_ending() -> tuple[Callable[[], None], object]:
    """From now on, the end of the console is SIGBREAK, and is answered by the end of this process alone. The results
    are what does that, and what the system calls, which has to exist until then."""
    asked = threading.Event()

    def end() -> None:
        """Does not return."""
        if not asked.is_set():
            asked.set()
            signal.raise_signal(signal.SIGBREAK)
        threading.Event().wait()

    kernel = ctypes.windll.kernel32
    kernel.SetProcessShutdownParameters(_BEFORE_CHILDREN, 0)
    handler = _console_handler(end)
    kernel.SetConsoleCtrlHandler(handler, True)
    return end, handler


@cache
def answer_end_of_session() -> None:
    """The same for the end of the user's session. It takes a window, and so a desktop, which a short command does
    without."""
    end, _ = answer_by_ending()
    threading.Thread(target=_watch_session, args=(end,), name="weft-session", daemon=True).start()


def _console_handler(end: Callable[[], None]) -> Any:
    """What the system calls, in a thread of its own. If it returns, the system ends this process."""

    def handle(event: int) -> bool:
        if event in (_CLOSE, _LOG_OFF, _SHUT_DOWN):
            end()
        return False  # Ctrl-C and Ctrl-Break are for the next handler

    return _Handler(handle)


def _watch_session(end: Callable[[], None]) -> None:
    """Has a window that nobody sees, since a process that may have windows is told about the end of a session by
    them alone."""
    user = _user()

    def proceed(window: int, message: int, word: int, long: int) -> int:
        if message == _END_SESSION and word:
            end()
        return int(user.DefWindowProcW(window, message, word, long))

    kind = _WindowClass(procedure=_Procedure(proceed), name=END_WINDOW)
    user.RegisterClassW(ctypes.byref(kind))
    if not user.CreateWindowExW(0, END_WINDOW, None, 0, 0, 0, 0, 0, None, None, None, None):
        return
    message = wintypes.MSG()
    while user.GetMessageW(ctypes.byref(message), None, 0, 0) > 0:
        user.DispatchMessageW(ctypes.byref(message))


def _user() -> ctypes.WinDLL:
    """A library of its own: others say otherwise what its functions take."""
    user = ctypes.WinDLL("user32")
    user.CreateWindowExW.argtypes = (
        wintypes.DWORD, wintypes.LPCWSTR, wintypes.LPCWSTR, wintypes.DWORD, ctypes.c_int, ctypes.c_int, ctypes.c_int,
        ctypes.c_int, wintypes.HWND, wintypes.HMENU, wintypes.HINSTANCE, wintypes.LPVOID,
    )  # fmt: skip
    user.CreateWindowExW.restype = wintypes.HWND
    user.DefWindowProcW.argtypes = (wintypes.HWND, wintypes.UINT, wintypes.WPARAM, wintypes.LPARAM)
    user.DefWindowProcW.restype = ctypes.c_ssize_t
    user.DispatchMessageW.restype = ctypes.c_ssize_t
    return user
