"""What Windows says of any process, with its threads (learn.microsoft.com: NtQuerySystemInformation).

`GetProcessTimes` is meant for this, but has no states of threads, and under Wine it has the times of who asks.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from ctypes import wintypes

from weft.platform.process_state import UNKNOWN_STATE, ProcessState

assert sys.platform == "win32"  # types are checked for one system at a time

_PROCESSES = 5
_TOO_SHORT = 0xC0000004
_FIRST_SIZE = 1 << 18
_TICKS = 1e-7
"""Times are counted in seconds of this length."""

# The states of a thread that goes on as soon as there is a processor, or its memory: ready, running, standby,
# transition, and ready on another one.
_AT_WORK = frozenset((1, 2, 3, 6, 7))
_WAITING = 5
_FOR_MEMORY = frozenset((1, 2, 8, 9))
"""What a thread waits for that needs a part of its memory."""
_SUSPENDED = frozenset((5, 12))


class _CountedText(ctypes.Structure):
    """UNICODE_STRING."""

    _fields_ = (("length", wintypes.USHORT), ("room", wintypes.USHORT), ("letters", ctypes.c_void_p))


class _ListedThread(ctypes.Structure):
    """SYSTEM_THREAD_INFORMATION."""

    _fields_ = (
        ("in_kernel", ctypes.c_int64), ("in_user", ctypes.c_int64), ("began", ctypes.c_int64),
        ("waited", wintypes.ULONG), ("start", ctypes.c_void_p), ("process", ctypes.c_void_p),
        ("number", ctypes.c_void_p), ("priority", wintypes.LONG), ("base_priority", wintypes.LONG),
        ("switches", wintypes.ULONG), ("state", wintypes.ULONG), ("reason", wintypes.ULONG),
    )  # fmt: skip


class _ListedProcess(ctypes.Structure):
    """SYSTEM_PROCESS_INFORMATION; its threads follow it."""

    _fields_ = (
        ("next", wintypes.ULONG), ("threads", wintypes.ULONG), ("private", ctypes.c_int64 * 3),
        ("began", ctypes.c_int64), ("in_user", ctypes.c_int64), ("in_kernel", ctypes.c_int64), ("name", _CountedText),
        ("base_priority", wintypes.LONG), ("number", ctypes.c_size_t), ("parent", ctypes.c_size_t),
        ("handles", wintypes.ULONG), ("session", wintypes.ULONG), ("key", ctypes.c_size_t),
        ("memory", ctypes.c_size_t * 12), ("transfers", ctypes.c_int64 * 6),
    )  # fmt: skip


def processor_time(process: int) -> float | None:
    """The seconds of processor time that a process has used; None if there is no such process."""
    found = _found(process)
    return None if found is None else (found[0].in_kernel + found[0].in_user) * _TICKS


def process_state(process: int, main_thread: bool) -> ProcessState:
    """The state of a process, or of its oldest thread alone. Wine does not say which threads work: there, only the time
    that they have used tells it."""
    found = _found(process)
    if found is None or not found[1]:
        return UNKNOWN_STATE
    threads = [min(found[1], key=lambda each: each.began)] if main_thread else found[1]
    return ProcessState(
        any(map(_is_at_work, threads)),
        all(each.state == _WAITING and each.reason in _SUSPENDED for each in threads),
        sum(each.in_kernel + each.in_user for each in threads) * _TICKS,
    )


def _is_at_work(thread: _ListedThread) -> bool:
    return thread.state in _AT_WORK or (thread.state == _WAITING and thread.reason in _FOR_MEMORY)


def _found(number: int) -> tuple[_ListedProcess, list[_ListedThread]] | None:
    """A process with its threads."""
    table = _table()
    for process, at in _processes(table):
        if process.number == number:
            first, size = at + ctypes.sizeof(_ListedProcess), ctypes.sizeof(_ListedThread)
            return process, [_ListedThread.from_buffer(table, first + size * each) for each in range(process.threads)]
    return None


def _processes(table: ctypes.Array[ctypes.c_char]) -> Iterator[tuple[_ListedProcess, int]]:
    """Each with its place in the table."""
    at = 0
    while at + ctypes.sizeof(_ListedProcess) <= len(table):
        process = _ListedProcess.from_buffer(table, at)
        yield process, at
        if not process.next:
            return
        at += process.next


def _table() -> ctypes.Array[ctypes.c_char]:
    """All processes, as the system writes them; zeros if it does not say."""
    size = _FIRST_SIZE
    while True:
        table, needed = ctypes.create_string_buffer(size), wintypes.ULONG()
        code = ctypes.windll.ntdll.NtQuerySystemInformation(_PROCESSES, table, size, ctypes.byref(needed))
        if code & 0xFFFFFFFF != _TOO_SHORT:
            return table
        # Others may start meanwhile.
        size = max(2 * size, needed.value)
