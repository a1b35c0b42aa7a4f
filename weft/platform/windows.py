"""Windows 10 and later: the methods of `posix`, by the interfaces of Windows (learn.microsoft.com/windows/win32)."""

from __future__ import annotations

import ctypes
import msvcrt
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Collection, Sequence
from ctypes import wintypes
from functools import cache
from pathlib import Path
from typing import IO, Any

from weft.platform.process_state import UNKNOWN_STATE, ProcessState

assert sys.platform == "win32"  # types are checked for one system at a time

_LENGTH = struct.Struct("I")
"""Before the description of a socket."""

_QUERY_LIMITED = 0x1000
"""The right to ask a process for its times."""


class _BasicJobLimits(ctypes.Structure):
    _fields_ = (
        ("process_time", ctypes.c_int64), ("job_time", ctypes.c_int64), ("flags", wintypes.DWORD),
        ("least_set", ctypes.c_size_t), ("most_set", ctypes.c_size_t), ("processes", wintypes.DWORD),
        ("affinity", ctypes.c_size_t), ("priority", wintypes.DWORD), ("scheduling", wintypes.DWORD),
    )  # fmt: skip


class _JobLimits(ctypes.Structure):
    """JOBOBJECT_EXTENDED_LIMIT_INFORMATION."""

    _fields_ = (
        ("basic", _BasicJobLimits), ("counts", ctypes.c_uint64 * 6), ("process_memory", ctypes.c_size_t),
        ("job_memory", ctypes.c_size_t), ("peak_process", ctypes.c_size_t), ("peak_job", ctypes.c_size_t),
    )  # fmt: skip


_KILL_ON_CLOSE = 0x2000
_EXTENDED_LIMITS = 9


@cache
def _job() -> int:
    """The job of all children. The system closes it when this process ends, and ends what is in it."""
    kernel = ctypes.windll.kernel32
    kernel.CreateJobObjectW.restype = wintypes.HANDLE
    job = kernel.CreateJobObjectW(None, None)
    limits = _JobLimits()
    limits.basic.flags = _KILL_ON_CLOSE
    kernel.SetInformationJobObject(wintypes.HANDLE(job), _EXTENDED_LIMITS, ctypes.byref(limits), ctypes.sizeof(limits))
    return int(job or 0)


class _MemoryStatus(ctypes.Structure):
    """MEMORYSTATUSEX."""

    _fields_ = (
        ("length", wintypes.DWORD), ("load", wintypes.DWORD), ("total", ctypes.c_uint64), ("free", ctypes.c_uint64),
        ("others", ctypes.c_uint64 * 5),
    )  # fmt: skip


class Win32:
    """What `posix` says, each by what Windows has for it."""

    has_jit_link = False
    # The older linker asks for blocks that may lie anywhere.
    code_model = "large"

    # --- files ---

    def reading(self, follow: bool = True) -> int:
        return os.O_RDONLY | os.O_BINARY | os.O_NOINHERIT

    def appending(self) -> int:
        return os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_BINARY | os.O_NOINHERIT

    def is_own(self, found: os.stat_result) -> bool:
        """What lies below the folder of a user belongs to that user by that folder's access list, not by its mode."""
        return True

    def is_closed(self, found: os.stat_result) -> bool:
        return True

    def lock(self, file: IO[Any]) -> None:
        # One byte far behind the end of what is written, so that others may read it.
        at = file.tell()
        file.seek(1 << 30)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        finally:
            file.seek(at)

    def cache_home(self) -> Path:
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")

    # --- processes ---

    def inheriting(self, sockets: Sequence[int], descriptors: Collection[int] = ()) -> dict[str, Any]:
        return {"stdin": subprocess.PIPE}

    def hand_over(self, process: subprocess.Popen[bytes], sockets: Sequence[int]) -> None:
        """By its standard input: what describes a socket to one other process."""
        assert process.stdin is not None
        with process.stdin as pipe:
            for number in sockets:
                shared = socket.socket(fileno=number)
                description = shared.share(process.pid)
                shared.detach()
                pipe.write(_LENGTH.pack(len(description)) + description)
        process.stdin = None

    def inherited(self, sockets: Sequence[int]) -> Sequence[int]:
        pipe = sys.stdin.buffer
        lengths = (_LENGTH.unpack(pipe.read(_LENGTH.size))[0] for _ in sockets)
        return [socket.fromshare(pipe.read(length)).detach() for length in lengths]

    def apart(self) -> dict[str, Any]:
        return {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW}

    def bind(self, process: subprocess.Popen[bytes]) -> None:
        """By a job object, which ends it even in the middle of machine code."""
        handle = int(process._handle)  # type: ignore[attr-defined]
        ctypes.windll.kernel32.AssignProcessToJobObject(wintypes.HANDLE(_job()), wintypes.HANDLE(handle))

    def end_with_parent(self, number: int = 0) -> None:
        """The parent has bound it."""

    def end_now(self) -> None:
        ctypes.windll.kernel32.TerminateProcess(wintypes.HANDLE(-1), 1)

    def send_now(self, to: socket.socket, data: bytes) -> None:
        to.send(data)

    def process_state(self, process: int, main_thread: bool = False) -> ProcessState:
        """A process that waits for the processor is not told from one that waits for something else."""
        spent = self.processor_time(process)
        return UNKNOWN_STATE if spent is None else ProcessState(False, False, spent)

    def processor_time(self, process: int) -> float | None:
        kernel = ctypes.windll.kernel32
        kernel.OpenProcess.restype = wintypes.HANDLE
        handle = kernel.OpenProcess(_QUERY_LIMITED, False, process)
        if not handle:
            return None
        times = [wintypes.FILETIME() for _ in range(4)]
        found = kernel.GetProcessTimes(wintypes.HANDLE(handle), *map(ctypes.byref, times))
        kernel.CloseHandle(wintypes.HANDLE(handle))
        in_kernel, in_user = ((each.dwHighDateTime << 32 | each.dwLowDateTime) * 1e-7 for each in times[2:])
        return in_kernel + in_user if found else None

    # --- the machine ---

    def installed_memory(self) -> int:
        found = _MemoryStatus()
        found.length = ctypes.sizeof(found)
        return int(found.total) if ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(found)) else 0
