"""What Linux, macOS and other systems with POSIX have in common."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import IO, Any

from weft.platform.process_state import UNKNOWN_STATE, ProcessState

# Ctrl-C is only for the parent. But in a session of its own, a child would get as much of the processor as its parent,
# since Linux first divides it among sessions, whatever the priorities of threads are.
_APART: dict[str, Any] = {"process_group": 0} if sys.version_info >= (3, 11) else {"start_new_session": True}


class Posix:
    """What each method does, and how on any system with POSIX."""

    has_jit_link = True
    """Whether LLVM's newer linker works here."""
    code_model = "small"
    """How far code may be from its constants, in LLVM's words."""

    # --- files ---

    def reading(self, follow: bool = True) -> int:
        """The flags of `os.open` for reading what anybody may have put there. No open waits, for instance for the
        writer of a named pipe, and no child inherits the file. A link is refused unless it may be `follow`ed."""
        return os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)

    def appending(self) -> int:
        """The same for reading a file and writing at its end; it is made if there is none, and no link is followed."""
        return os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

    def is_own(self, found: os.stat_result) -> bool:
        """Whether a file or folder belongs to this user."""
        return found.st_uid == os.geteuid()

    def is_closed(self, found: os.stat_result) -> bool:
        """Whether nobody else can write in a file or folder of this user."""
        return not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)

    def lock(self, file: IO[Any]) -> None:
        """Locks a file until it is closed. Raises OSError if another process has locked it."""
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def cache_home(self) -> Path:
        """The folder of this user's files that can be made again."""
        return Path.home() / ".cache"

    # --- processes ---

    def inheriting(self, sockets: Sequence[int], descriptors: Collection[int] = ()) -> dict[str, Any]:
        """The arguments of `subprocess.Popen` for a child that inherits some sockets and files."""
        return {"stdin": subprocess.DEVNULL, "pass_fds": [*sockets, *descriptors]}

    def hand_over(self, process: subprocess.Popen[bytes], sockets: Sequence[int]) -> None:
        """Gives a child that has just started what it inherits, where it cannot have that from the start. Raises
        OSError."""

    def inherited(self, sockets: Sequence[int]) -> Sequence[int]:
        """In a child: the numbers that the sockets of its parent have here."""
        return sockets

    def apart(self) -> dict[str, Any]:
        """The arguments of `subprocess.Popen` for a child that does not get the signals of its parent's terminal."""
        return _APART

    def bind(self, process: subprocess.Popen[bytes]) -> None:
        """Has a child end with this process, where it cannot do so itself."""

    def end_with_parent(self, number: int = signal.SIGKILL) -> None:
        """Asks the system to send this process a signal when the thread that has started it ends. Does nothing where a
        system cannot."""

    def end_now(self) -> None:
        """Ends this process, whatever it does."""
        os.kill(os.getpid(), signal.SIGKILL)

    def send_now(self, to: socket.socket, data: bytes) -> None:
        """Sends some bytes. Raises OSError, also if the other end does not read."""
        to.send(data, socket.MSG_DONTWAIT)

    def process_state(self, process: int, main_thread: bool = False) -> ProcessState:
        """The state of a process; of its main thread alone, if the system can tell. It is slow, and used only when no
        sign of life has come."""
        try:
            state, used = subprocess.run(
                ["ps", "-o", "state=,time=", "-p", str(process)], capture_output=True, text=True, timeout=5, check=True
            ).stdout.split()[:2]
            spent = 0.0
            for part in used.replace("-", ":").split(":"):
                spent = 60 * spent + float(part)
            return ProcessState(state[0] in "RUD", state[0] == "T", spent)
        except (OSError, subprocess.SubprocessError, ValueError):
            return UNKNOWN_STATE

    def processor_time(self, process: int) -> float | None:
        """The seconds of processor time that a process has used; None if the system does not say at once."""
        return None

    # --- the machine ---

    def installed_memory(self) -> int:
        """The bytes of memory of the machine; 0 if the system does not say."""
        try:
            return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        except (ValueError, OSError):
            return 0
