"""Linux: as `posix`, and what can be read in /proc or asked of the kernel alone."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import struct
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from weft.platform.any_system import AnySystem
from weft.platform.posix import Posix
from weft.platform.process_state import ProcessState

_PR_SET_PDEATHSIG = 1
# The option of a socket that counts the packets it had to drop, and the room for the count beside a packet.
_SO_RXQ_OVFL = 40
_ANCILLARY = 64


class Linux(Posix):
    finds_egl = True
    opengl_remedy = f"{AnySystem.opengl_remedy}, or Mesa (Debian: apt install libegl1 libgl1-mesa-dri)"
    portaudio_remedy = "install portaudio19-dev and gcc"

    def shared_file(self, size: int) -> int:
        descriptor = os.memfd_create("weft")
        os.ftruncate(descriptor, size)
        return descriptor

    def end_with_parent(self, number: int = signal.SIGKILL) -> None:
        """SIGKILL ends it even in the middle of machine code, and if it is stopped."""
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)

    def receive(self, at: socket.socket, most: int) -> tuple[bytes, int | None]:
        packet, extra = at.recvmsg(most, _ANCILLARY)[:2]
        counts = (data for level, kind, data in extra if (level, kind) == (socket.SOL_SOCKET, _SO_RXQ_OVFL))
        return packet, next((struct.unpack("I", data[:4])[0] for data in counts), None)

    def count_dropped(self, at: socket.socket) -> None:
        at.setsockopt(socket.SOL_SOCKET, _SO_RXQ_OVFL, 1)

    def process_state(self, process: int, main_thread: bool = False) -> ProcessState:
        tasks = f"/proc/{process}/task"
        try:
            numbers = [str(process)] if main_thread else os.listdir(tasks)
        except OSError:
            return super().process_state(process)
        threads = [found for number in numbers if (found := _stat(f"{tasks}/{number}/stat")) is not None]
        if not threads:
            return super().process_state(process)
        states = {state for state, _ in threads}
        # Running or ready to run, waiting for a disk, or stopped by a debugger.
        return ProcessState(bool(states & {"R", "D", "t"}), states == {"T"}, sum(spent for _, spent in threads))

    def processor_time(self, process: int) -> float | None:
        found = _stat(f"/proc/{process}/stat")
        return None if found is None else found[1]

    def set_urgency(self, urgency: int) -> None:
        with suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(urgency))

    @contextmanager
    def calmly(self, urgency: int, nicer: int) -> Iterator[None]:
        thread = threading.get_native_id()
        before = os.getpriority(os.PRIO_PROCESS, thread)
        if os.sched_getscheduler(0) == os.SCHED_OTHER and before >= 0:
            yield
            return
        with suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
            os.setpriority(os.PRIO_PROCESS, thread, os.getpriority(os.PRIO_PROCESS, os.getppid()))
            self.lower_priority(nicer)
        try:
            yield
        finally:
            with suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, thread, before)
            self.set_urgency(urgency)

    def lower_priority(self, nicer: int) -> None:
        with suppress(OSError):
            thread = threading.get_native_id()
            os.setpriority(os.PRIO_PROCESS, thread, os.getpriority(os.PRIO_PROCESS, thread) + nicer)

    def cores(self) -> int:
        return len(os.sched_getaffinity(0))

    def core_finder(self) -> Callable[[], int] | None:
        # CDLL would release Python's lock, which takes longer than the call.
        return getattr(ctypes.PyDLL(None), "sched_getcpu", None)

    def threads_of(self, process: int) -> list[int]:
        try:
            return [int(name) for name in os.listdir(f"/proc/{process}/task")]
        except OSError:
            return []

    def allowed_cores(self) -> set[int]:
        return os.sched_getaffinity(0)

    def restrict(self, threads: Iterable[int], cores: Collection[int]) -> None:
        for thread in threads if cores else ():
            with suppress(OSError):
                os.sched_setaffinity(thread, cores)

    def free_memory(self) -> int | None:
        with suppress(OSError, StopIteration):
            lines = Path("/proc/meminfo").read_text().splitlines()
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
        return None

    def may_have_card(self) -> bool:
        """Its driver appears in /dev."""
        return any(any(Path("/dev").glob(pattern)) for pattern in ("dri/render*", "nvidia[0-9]*", "dxg"))


def _stat(path: str) -> tuple[str, float] | None:
    """The state of a thread or a process, as one letter, and the seconds of processor time that it has used; None if it
    has ended."""
    try:
        fields = Path(path).read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return fields[0], (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
