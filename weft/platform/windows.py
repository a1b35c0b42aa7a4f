"""Windows 10 and later: the methods of `posix`, by the interfaces of Windows (learn.microsoft.com/windows/win32)."""

from __future__ import annotations

import _winapi
import ctypes
import io
import msvcrt
import os
import secrets
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Collection, Sequence
from ctypes import wintypes
from functools import cache
from pathlib import Path
from typing import IO, Any

from weft.platform import windows_endings, windows_meeting, windows_processes
from weft.platform.any_system import AnySystem
from weft.platform.link_secret import LinkSecret
from weft.platform.process_state import ProcessState

assert sys.platform == "win32"  # types are checked for one system at a time

_LENGTH = struct.Struct("I")
"""Before the description of a socket."""
_HANDLE = struct.Struct("Q")
"""A file, by the number that a child has for it."""

_FILE_MODE = os.O_RDWR | os.O_BINARY | os.O_NOINHERIT
_SET_SPARSE = 0x900C4
_SHARE_ALL = 0x7
_OPEN_FOLDERS_TOO = 0x2000000

_WAITS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1)
"""Seconds between attempts to replace a file."""

_ABOVE_NORMAL, _BELOW_NORMAL = 0x8000, 0x4000
_BELOW_NORMAL_THREAD, _HIGHEST_THREAD = -1, 2


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


class _Throttling(ctypes.Structure):
    """PROCESS_POWER_THROTTLING_STATE."""

    _fields_ = (("version", wintypes.ULONG), ("decided", wintypes.ULONG), ("throttled", wintypes.ULONG))


_POWER_THROTTLING = 4
_SLOWER, _COARSER_TIMERS = 1, 4


class _MemoryStatus(ctypes.Structure):
    """MEMORYSTATUSEX."""

    _fields_ = (
        ("length", wintypes.DWORD), ("load", wintypes.DWORD), ("total", ctypes.c_uint64), ("free", ctypes.c_uint64),
        ("others", ctypes.c_uint64 * 5),
    )  # fmt: skip


class Win32(AnySystem):
    """What `posix` says, each by what Windows has for it."""

    camera_format = "dshow"
    grabber = "gdigrab"
    has_unseen_windows = True
    opengl_platform = "nt"
    # They do not, and a console that stderr has led away from has another handle than others have noted.
    prints_in_libraries = False
    # Each of its C libraries has numbers of its own.
    shares_descriptors = False
    has_jit_link = False
    # The older linker asks for blocks that may be anywhere.
    code_model = "large"

    # --- files ---

    def open_reading(self, path: str | Path, follow: bool = True) -> int:
        """What `os.open` opens, no other program could replace or delete meanwhile, as editors do when they save."""
        try:
            handle = _winapi.CreateFile(
                os.fspath(path), _winapi.GENERIC_READ, _SHARE_ALL, 0, _winapi.OPEN_EXISTING, _OPEN_FOLDERS_TOO, 0
            )
        except OSError as problem:
            raise OSError(problem.errno, problem.strerror, str(path), problem.winerror) from None
        return msvcrt.open_osfhandle(handle, os.O_RDONLY | os.O_BINARY | os.O_NOINHERIT)

    def appending(self) -> int:
        return os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_BINARY | os.O_NOINHERIT

    def is_own(self, found: os.stat_result) -> bool:
        """Files below the folder of a user are that user's by the access list of the folder, not by a mode."""
        return True

    def is_closed(self, found: os.stat_result) -> bool:
        return True

    def shared_file(self, size: int) -> int:
        """By a temporary file, which the system deletes and keeps in memory if it can."""
        path = os.path.join(tempfile.gettempdir(), f"weft-{secrets.token_hex(8)}")
        flags = os.O_CREAT | os.O_EXCL | os.O_TEMPORARY | os.O_SHORT_LIVED
        descriptor = os.open(path, _FILE_MODE | flags)
        handle, done = wintypes.HANDLE(msvcrt.get_osfhandle(descriptor)), wintypes.DWORD()
        # It also works, with more memory, where files cannot be sparse.
        ctypes.windll.kernel32.DeviceIoControl(handle, _SET_SPARSE, None, 0, None, 0, ctypes.byref(done), None)
        os.ftruncate(descriptor, size)
        return descriptor

    def replace(self, new: str | Path, old: str | Path) -> None:
        """Tries again while another program has the file open."""
        for wait in _WAITS:
            try:
                os.replace(new, old)
            except PermissionError:
                time.sleep(wait)
            else:
                return
        os.replace(new, old)

    def lock(self, file: IO[Any]) -> None:
        # One byte, far after the end of what is written, so that others may read that.
        at = file.tell()
        file.seek(1 << 30)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        finally:
            file.seek(at)

    def cache_home(self) -> Path:
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")

    def runtime_home(self) -> Path:
        return self.cache_home() / "weft" / "performances"

    def listening(self, path: Path) -> tuple[socket.socket, LinkSecret]:
        return windows_meeting.listening(path)

    def connected(self, path: Path, seconds: float) -> socket.socket:
        if self.is_left_over(path):
            raise ConnectionRefusedError
        return windows_meeting.connected(path, self.open_reading(path), seconds)

    def is_left_over(self, path: Path) -> bool:
        return windows_meeting.is_left_over(path)

    def prepare_observer(self, observer: Any) -> None:
        known: Any = observer._emitter_class

        class Emitter(known):  # type: ignore[misc]
            """It cancels a wait for changes, and waits for the end of that. If the wait begins a moment later, that end
            comes with the next change in the folder."""

            def on_thread_stop(self) -> None:
                threading.Thread(target=super().on_thread_stop, name="weft-unwatch", daemon=True).start()

        observer._emitter_class = Emitter

    def quoted(self, word: str) -> str:
        return subprocess.list2cmdline([word])

    def others_read(self, path: Path) -> bool:
        return False

    def prepare_streams(self) -> None:
        """To files and pipes, Python writes a code page of Windows, which lacks most letters."""
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper) and not stream.isatty():
                stream.reconfigure(encoding="utf-8")

    # --- processes ---

    def inheriting(self, sockets: Sequence[int], descriptors: Collection[int] = ()) -> dict[str, Any]:
        return {"stdin": subprocess.PIPE}

    def hand_over(
        self, process: subprocess.Popen[bytes], sockets: Sequence[int], descriptors: Collection[int] = ()
    ) -> None:
        """By its standard input: what describes a socket to one other process, and the numbers of files there."""
        assert process.stdin is not None
        with process.stdin as pipe:
            for number in sockets:
                shared = socket.socket(fileno=number)
                description = shared.share(process.pid)
                shared.detach()
                pipe.write(_LENGTH.pack(len(description)) + description)
            own, its = _winapi.GetCurrentProcess(), int(process._handle)  # type: ignore[attr-defined]
            for number in descriptors:
                handle = msvcrt.get_osfhandle(number)
                there = _winapi.DuplicateHandle(own, handle, its, 0, False, _winapi.DUPLICATE_SAME_ACCESS)
                pipe.write(_HANDLE.pack(there))
        process.stdin = None

    def inherited(self, sockets: Sequence[int], descriptors: Sequence[int] = ()) -> list[int]:
        pipe = sys.stdin.buffer
        lengths = (_LENGTH.unpack(pipe.read(_LENGTH.size))[0] for _ in sockets)
        found = [socket.fromshare(pipe.read(length)).detach() for length in lengths]
        handles = (_HANDLE.unpack(pipe.read(_HANDLE.size))[0] for _ in descriptors)
        return [*found, *(msvcrt.open_osfhandle(handle, _FILE_MODE) for handle in handles)]

    def apart(self) -> dict[str, Any]:
        return {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW}

    def bind(self, process: subprocess.Popen[bytes]) -> None:
        """By a job object, which ends it even in the middle of machine code."""
        handle = int(process._handle)  # type: ignore[attr-defined]
        ctypes.windll.kernel32.AssignProcessToJobObject(wintypes.HANDLE(_job()), wintypes.HANDLE(handle))

    def interrupt(self, process: subprocess.Popen[bytes], lifeline: socket.socket) -> None:
        """Only the processes of one console can be sent Ctrl-C."""
        lifeline.send(b"c")

    def ending_signals(self) -> list[int]:
        """Ctrl-Break, the closing of the console and the end of the user's session are one signal to C."""
        return [signal.SIGINT, signal.SIGBREAK, signal.SIGTERM]

    def end_in_order(self, session: bool = False) -> None:
        windows_endings.answer_by_ending()
        if session:
            windows_endings.answer_end_of_session()

    def ignore_background(self) -> None:
        """There is no background."""

    def set_alarm(self, seconds: int) -> None:
        """The parent, to which these seconds were said as well, ends a process that stands still."""

    def is_alarm(self, code: int | None) -> bool:
        return False

    def end_now(self) -> None:
        ctypes.windll.kernel32.TerminateProcess(wintypes.HANDLE(-1), 1)

    def send_now(self, to: socket.socket, data: bytes) -> None:
        to.send(data)

    def process_state(self, process: int, main_thread: bool = False) -> ProcessState:
        return windows_processes.process_state(process, main_thread)

    def processor_time(self, process: int) -> float | None:
        return windows_processes.processor_time(process)

    # --- priorities and processors ---

    def wait_precisely(self) -> None:
        """Waits with a timeout end at a tick of the system, which comes every 15.6 ms if nobody asks for more: nearly
        a whole frame. Windows 11 ignores the wish of a process whose windows are covered, and slows that down, unless
        it says otherwise."""
        ctypes.windll.winmm.timeBeginPeriod(1)
        state = _Throttling(1, _SLOWER | _COARSER_TIMERS, 0)
        ctypes.windll.kernel32.SetProcessInformation(
            wintypes.HANDLE(-1), _POWER_THROTTLING, ctypes.byref(state), ctypes.sizeof(state)
        )

    def prefer_process(self, nicer: int) -> None:
        kind = _ABOVE_NORMAL if nicer < 0 else _BELOW_NORMAL
        ctypes.windll.kernel32.SetPriorityClass(wintypes.HANDLE(-1), kind)

    def set_urgency(self, urgency: int) -> None:
        """For this thread alone: others do not begin with its priority."""
        _set_thread_priority(_HIGHEST_THREAD if urgency else 0)

    def lower_priority(self, nicer: int) -> None:
        _set_thread_priority(_BELOW_NORMAL_THREAD)

    # --- the machine ---

    def installed_memory(self) -> int:
        return int(_memory_status().total)

    def free_memory(self) -> int | None:
        return int(_memory_status().free) or None

    def library_names(self, linux: Sequence[str], windows: Sequence[str]) -> Sequence[str]:
        return windows


def _memory_status() -> _MemoryStatus:
    """Zeros if the system does not say."""
    found = _MemoryStatus()
    found.length = ctypes.sizeof(found)
    ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(found))
    return found


def _set_thread_priority(priority: int) -> None:
    kernel = ctypes.windll.kernel32
    kernel.GetCurrentThread.restype = wintypes.HANDLE
    kernel.SetThreadPriority(wintypes.HANDLE(kernel.GetCurrentThread()), priority)
