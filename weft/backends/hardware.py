"""What the machine has: cores, memory, vector instructions."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

_CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def _found_sched_getcpu() -> Callable[[], int] | None:
    if not sys.platform.startswith("linux"):
        return None
    # It takes less than to let go of Python's lock, as CDLL would.
    found: Callable[[], int] | None = getattr(ctypes.PyDLL(None), "sched_getcpu", None)
    return found


_sched_getcpu = _found_sched_getcpu()


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def current_core() -> int | None:
    """The number of the core that this thread runs on; None where systems do not tell."""
    return _sched_getcpu() if _sched_getcpu is not None else None


def keep_off(core: int, threads: Iterable[int]) -> None:
    """Has threads, by the system's numbers, run on the other cores that this one may use; where it cannot be asked
    for, they stay as they are. Only where `current_core` tells anything."""
    others = os.sched_getaffinity(0) - {core}
    for thread in threads if others else ():
        with suppress(OSError):
            os.sched_setaffinity(thread, others)


def memory_total() -> int:
    """Bytes of memory, as far as a container lets this process have them; 0 if that is not known."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return 0
    for path in _CGROUP_LIMITS:
        limit = _number(path)
        if limit:
            total = min(total, limit)
    return total


def memory_free() -> int:
    """Bytes of memory that can be had without others having to give theirs up; the total where that is not known."""
    available = 0
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                available = int(line.split()[1]) * 1024
    except OSError:
        pass
    return min(available or memory_total(), memory_total())


def simd() -> str:
    """The widest vector instructions, by name; the processor's architecture where they cannot be told."""
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    except OSError:
        return platform.machine()
    words = set(flags.split())
    for flag, name in (("avx512f", "AVX-512"), ("avx2", "AVX2"), ("sse2", "SSE2"), ("asimd", "NEON")):
        if flag in words:
            return name
    return platform.machine()


def may_have_card() -> bool:
    """Whether a graphics card can be there: on Linux its driver shows in /dev, elsewhere there is always one."""
    if not sys.platform.startswith("linux"):
        return True
    return any(any(Path("/dev").glob(pattern)) for pattern in ("dri/render*", "nvidia[0-9]*", "dxg"))


def _number(path: str) -> int | None:
    try:
        text = Path(path).read_text(encoding="ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None
