"""The hardware of the machine: cores, memory, vector instructions, and whether there are graphics cards."""

from __future__ import annotations

import functools
import os
import platform
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from weft.platform import system

try:
    import resource
except ImportError:  # only Unix has it
    resource = None  # type: ignore[assignment]


_core: Callable[[], int] | None = system.core_finder()


@functools.cache
def cores() -> int:
    """The number of cores that this process may use, or might when this was first called."""
    return system.cores()


def current_core() -> int | None:
    """The number of the core that this thread runs on; None if the system does not say."""
    return _core() if _core is not None else None


def keep_off(core: int, threads: Iterable[int]) -> None:
    """Restricts threads, by the system's numbers, to the other cores that this one may use. Does nothing if the system
    refuses. Call it only where `current_core` gives a number."""
    system.restrict(threads, system.allowed_cores() - {core})


def keep_on(core: int, threads: Iterable[int]) -> None:
    """Moves threads to a core, where they stay until `keep_off`. The same holds as there."""
    system.restrict(threads, {core})


def threads_of(process: int) -> list[int]:
    """The system's numbers of the threads of a process; none if that is gone, or the system does not say."""
    return system.threads_of(process)


# How much nicer a thread of lower priority is than others. It gets a third of a core that it shares with one of them,
# so that it also ends in time on a busy machine.
NICER = 4


def lower_priority() -> None:
    """Lowers the priority of this thread, and of threads that it starts, below that of the others in this session. Does
    nothing where priorities of threads cannot differ."""
    system.lower_priority(NICER)


class Memory(NamedTuple):
    """The bytes of memory that this process may use, within its own limits and those of its container, 0 if unknown;
    and those of them that are available without swapping, all if that is unknown."""

    total: int
    free: int


def memory() -> Memory:
    """The memory of this process."""
    limits = memory_limits()
    installed = system.installed_memory()
    total = min((installed, *(limit.bytes for limit in limits))) if installed else 0
    free = system.free_memory()
    available = total if free is None else free
    return Memory(total, min((available, *(max(0, limit.bytes - limit.used) for limit in limits))))


def memory_total() -> int:
    """The total of the memory of this process."""
    return memory().total


def memory_free() -> int:
    """The free bytes of the memory of this process."""
    return memory().free


class Limit(NamedTuple):
    """The number of bytes of memory that may be used, and the number in use."""

    bytes: int
    used: int


def memory_limits(process: Path = Path("/proc/self")) -> list[Limit]:
    """The limits of a process, read from its folder in /proc: those of its groups (containers) and their parents, and
    that of its address space."""
    return [*_limits_of_groups(process), *_limits_of_process(process)]


_GROUP_FILES = {
    "cgroup2": (("memory.max", "memory.high"), "memory.current", "inactive_file"),
    "cgroup": (("memory.limit_in_bytes",), "memory.usage_in_bytes", "total_inactive_file"),
}
"""By the name of the file system (of version 2 and 1): the names of a control group's files with its limits and its use
of memory, and the line of `memory.stat` about memory that can be reclaimed at any time."""


def _limits_of_groups(process: Path) -> Iterator[Limit]:
    """The limits of all groups that the process is in, from its own to the outermost visible one."""
    for kind, root, mounted in _mounted_groups(process):
        inside = os.path.relpath(_path_of_group(process, kind), root)
        # If the group is outside the mounted tree, a container shows its own group at the top.
        parts = [] if inside.startswith("..") else [part for part in inside.split("/") if part != "."]
        limits_in, used_in, reclaimable = _GROUP_FILES[kind]
        for depth in range(len(parts), -1, -1):
            folder = Path(mounted, *parts[:depth])
            limits = [limit for name in limits_in if (limit := _number(folder / name)) is not None]
            if limits:
                stat = dict(line.split(maxsplit=1) for line in _lines(folder / "memory.stat"))
                used = (_number(folder / used_in) or 0) - int(stat.get(reclaimable, 0))
                yield Limit(min(limits), max(0, used))


def _mounted_groups(process: Path) -> Iterator[tuple[str, str, str]]:
    """The file systems with the memory of groups: their names, the mounted part, and the mount point."""
    for line in _lines(process / "mountinfo"):
        fields, _, rest = line.partition(" - ")
        kind, _, options = (*rest.split(), "", "", "")[:3]
        places = fields.split()
        if len(places) > 4 and (kind == "cgroup2" or (kind == "cgroup" and "memory" in options.split(","))):
            yield kind, places[3], places[4]


def _path_of_group(process: Path, kind: str) -> str:
    for line in _lines(process / "cgroup"):
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if (not controllers) if kind == "cgroup2" else "memory" in controllers.split(","):
            return path or "/"
    return "/"


def _limits_of_process(process: Path) -> Iterator[Limit]:
    """The limits of its address space and its data (`ulimit -v`, `ulimit -d`), if their use is known."""
    if resource is None:
        return
    used = {line.partition(":")[0]: line.split()[1:2] for line in _lines(process / "status")}
    for what, name in ((resource.RLIMIT_AS, "VmSize"), (resource.RLIMIT_DATA, "VmData")):
        most, has = resource.getrlimit(what)[0], used.get(name)
        if most != resource.RLIM_INFINITY and has:
            yield Limit(most, int(has[0]) * 1024)


@functools.cache
def simd() -> str:
    """The widest vector instructions, by name; the processor's architecture if they are unknown."""
    flags = {flag for line in _lines(Path("/proc/cpuinfo")) for flag in line.split()}
    named = (("avx512f", "AVX-512"), ("avx2", "AVX2"), ("sse2", "SSE2"), ("asimd", "NEON"))
    return next((name for flag, name in named if flag in flags), platform.machine())


def may_have_card() -> bool:
    """Whether there may be a graphics card. On Linux, its driver appears in /dev; other systems may always have one."""
    return system.may_have_card()


# Parts of the names of renderers that draw with the CPU.
_SOFTWARE = ("llvmpipe", "softpipe", "swrast", "swiftshader", "software", "gdi generic")


def is_software(renderer: str) -> bool:
    """Whether a renderer draws with the CPU, by its name."""
    return any(name in renderer.lower() for name in _SOFTWARE)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def _number(path: Path) -> int | None:
    text = "".join(_lines(path)).strip()
    return int(text) if text.isdigit() else None
