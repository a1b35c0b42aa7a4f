"""What Linux, macOS and other systems with POSIX have in common."""

from __future__ import annotations

import fcntl
import os
import shlex
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from weft.platform.any_system import AnySystem
from weft.platform.link_secret import NO_SECRET, LinkSecret
from weft.platform.process_state import UNKNOWN_STATE, ProcessState

# Ctrl-C is only for the parent. But in a session of its own, a child would get as much of the processor as its parent,
# since Linux first divides it among sessions, whatever the priorities of threads are.
_APART: dict[str, Any] = {"process_group": 0} if sys.version_info >= (3, 11) else {"start_new_session": True}


class Posix(AnySystem):
    """What each of these methods does, and how on any system with POSIX."""

    camera_format = "v4l2"
    """What FFmpeg calls the cameras of this system."""
    grabber = "x11grab"
    """What FFmpeg calls the device that shows the screen of this system."""

    # --- files ---

    def open_reading(self, path: str | Path, follow: bool = True) -> int:
        """Opens for reading what anybody may have put there: a descriptor. It does not wait, for instance for the
        writer of a named pipe, no child inherits the file, and others may replace it meanwhile. A link is refused
        unless it may be `follow`ed. Raises OSError, and ValueError for a name with a null byte."""
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
        return os.open(path, flags)

    def appending(self) -> int:
        """The flags of `os.open` for reading a file and writing at its end, without waiting or a child that inherits
        it. It is made if there is none, and no link is followed."""
        return os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

    def is_own(self, found: os.stat_result) -> bool:
        """Whether a file or folder belongs to this user."""
        return found.st_uid == os.geteuid()

    def is_closed(self, found: os.stat_result) -> bool:
        """Whether nobody else can write in a file or folder of this user."""
        return not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)

    def shared_file(self, size: int) -> int:
        """The descriptor of a file without a name, for memory that processes share. It takes memory only where
        something has been written, and is gone when no process has it any more. Raises OSError."""
        descriptor, path = tempfile.mkstemp(prefix="weft-")
        os.unlink(path)
        os.ftruncate(descriptor, size)
        return descriptor

    def replace(self, new: str | Path, old: str | Path) -> None:
        """Moves a file over another, which a program that is reading it may hold up for a moment. Raises OSError."""
        os.replace(new, old)

    def lock(self, file: IO[Any]) -> None:
        """Locks a file until it is closed. Raises OSError if another process has locked it."""
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def cache_home(self) -> Path:
        """The folder of this user's files that can be made again."""
        return Path.home() / ".cache"

    def runtime_home(self) -> Path:
        """The folder of this user for the places at which what runs is met, in which nobody else may look."""
        given = Path(os.environ.get("XDG_RUNTIME_DIR", ""))
        with suppress(OSError):
            if given.is_absolute() and self.is_own(given.stat()):
                return given / "weft"
        return Path(tempfile.gettempdir()) / f"weft-{os.geteuid()}"

    def listening(self, path: Path) -> tuple[socket.socket, LinkSecret]:
        """A socket that listens at a path, which nobody has, and what is said there first. The path exists from the
        moment on at which it listens; the file is to be removed after the socket is closed. Raises OSError."""
        made = socket.socket(socket.AF_UNIX)
        aside = path.with_suffix(".new")
        try:
            made.bind(str(aside))
            os.chmod(aside, 0o600)  # nobody can connect before `listen`
            made.listen()
            # Under its name it listens from the first moment on, so that it is not taken for one that is left over.
            aside.rename(path)
        except OSError:
            made.close()
            with suppress(OSError):
                aside.unlink()
            raise
        return made, NO_SECRET

    def connected(self, path: Path, seconds: float) -> socket.socket:
        """A connection to what listens at a path, after what is said first. Waits for at most some seconds. Raises
        OSError: ConnectionRefusedError if its process is gone."""
        made = socket.socket(socket.AF_UNIX)
        try:
            made.settimeout(seconds)
            made.connect(str(path))
        except BaseException:
            made.close()
            raise
        return made

    def is_left_over(self, path: Path) -> bool:
        """Whether the process that listened at a path is gone. Returns at once."""
        with suppress(OSError), socket.socket(socket.AF_UNIX) as attempt:
            attempt.setblocking(False)
            try:
                attempt.connect(str(path))
            except ConnectionRefusedError:
                return True
        return False

    def quoted(self, word: str) -> str:
        """A word as it is typed in a command line."""
        return shlex.quote(word)

    def others_read(self, path: Path) -> bool:
        """Whether the mode of a file lets other users read it. Raises OSError."""
        return bool(os.stat(path).st_mode & (stat.S_IRGRP | stat.S_IROTH))

    # --- processes ---

    def inheriting(self, sockets: Sequence[int], descriptors: Collection[int] = ()) -> dict[str, Any]:
        """The arguments of `subprocess.Popen` for a child that inherits some sockets and files."""
        return {"stdin": subprocess.DEVNULL, "pass_fds": [*sockets, *descriptors]}

    def inherited(self, sockets: Sequence[int], descriptors: Sequence[int] = ()) -> list[int]:
        """In a child: the numbers that the sockets and files of its parent have here."""
        return [*sockets, *descriptors]

    def apart(self) -> dict[str, Any]:
        """The arguments of `subprocess.Popen` for a child that does not get the signals of its parent's terminal."""
        return _APART

    def interrupt(self, process: subprocess.Popen[bytes], lifeline: socket.socket) -> None:
        """Sends SIGINT to a child; a byte over its `lifeline` does the same. Raises OSError."""
        process.send_signal(signal.SIGINT)

    def ending_signals(self) -> list[int]:
        """The signals that ask this process to end. A SIGHUP that was ignored stays ignored: with nohup, the terminal
        may close."""
        asks: list[int] = [signal.SIGINT, signal.SIGTERM]
        return asks if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else [*asks, signal.SIGHUP]

    def ignore_background(self) -> None:
        """Has this process write to its terminal from the background, which a terminal may be set to prevent."""
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)

    def set_alarm(self, seconds: int) -> None:
        """Has the system end this process after some seconds, even if a thread keeps Python's lock; 0: not any more."""
        signal.alarm(seconds)

    def is_alarm(self, code: int | None) -> bool:
        """Whether a process with this exit code was ended by its alarm."""
        return code == -signal.SIGALRM

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

    # --- priorities and processors ---

    def prefer_process(self, nicer: int) -> None:
        """Changes the priority of this process by some steps (below 0: it is preferred), if that is allowed."""
        with suppress(OSError):
            os.nice(nicer)

    # --- the machine ---

    def installed_memory(self) -> int:
        """The bytes of memory of the machine; 0 if the system does not say."""
        try:
            return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        except (ValueError, OSError):
            return 0

    def library_names(self, linux: Sequence[str], windows: Sequence[str]) -> Sequence[str]:
        """The names of a library here, out of those on Linux and on Windows."""
        return linux
