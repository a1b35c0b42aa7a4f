"""Linux: as `posix`, and what can be read in /proc or asked of the kernel alone."""

from __future__ import annotations

import ctypes
import os
import signal
from contextlib import suppress
from pathlib import Path

from weft.platform.posix import Posix
from weft.platform.process_state import ProcessState

_PR_SET_PDEATHSIG = 1


class Linux(Posix):
    def end_with_parent(self, number: int = signal.SIGKILL) -> None:
        """SIGKILL ends it even in the middle of machine code, and if it is stopped."""
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)

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


def _stat(path: str) -> tuple[str, float] | None:
    """The state of a thread or a process, as one letter, and the seconds of processor time that it has used; None if it
    has ended."""
    try:
        fields = Path(path).read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return fields[0], (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
