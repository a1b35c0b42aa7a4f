"""Placement of subgraphs on devices, by estimates of what they cost there and how much memory they take."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from weft.backends.memory import slot_bytes
from weft.codegen.kernel import Kernel, Unit
from weft.errors import error
from weft.ir.rates import Rate
from weft.media.pictures import PictureError, probe_picture
from weft.names import is_view

# Whether a subgraph is worth the transfer to a graphics card.


@dataclass(frozen=True, slots=True)
class Costs:
    """What work and transfers cost, in seconds. An operation is one value of a kernel at one element. The defaults are
    estimates for devices that have not been measured."""

    cpu_operation: float = 2.4e-10
    """On one core, as machine code: a core with AVX2 computes about 240 million pixels a second of the plasma in
    patches/bench, which has 17 operations (docs/performance.md)."""
    gpu_operation: float = 1.2e-11
    """For a small card, slower than an NVIDIA H200, which draws that plasma at 1280×720 in 0.07 ms."""
    launch: float = 5e-5
    """Until the driver has begun a draw: 19 µs on that card, the wait for its end included; 50 µs on machines that
    share their memory with the card (`weft bench` measures it)."""
    wait: float = 5e-5
    """Until values have been read back, however few. Like `launch`, the larger of the known figures."""
    upload: float = 1e-10
    """For each byte of a picture that is sent to the screen: 10 GB a second."""


COSTS = Costs()
_PIXEL = 4


def operations(kernel: Kernel, shape: tuple[int, int]) -> int:
    """How many operations a launch over a shape (height, width) takes. A loop counts as a single step."""
    height, width = shape
    counts = {Rate.ELEMENT: height * width, Rate.COLUMN: width, Rate.ROW: height}
    return sum(len(section) * counts.get(section.rate, 1) for section in kernel.sections)


def stays_on_cpu(unit: Unit, shape: tuple[int, int], cores: int, costs: Costs = COSTS) -> str | None:
    """Why a subgraph that sweeps a shape (height, width) stays on a CPU with this number of cores, although there is a
    graphics card; None if the card is worth it."""
    work = operations(unit.kernel, shape)
    shown = shape[0] * shape[1] * _PIXEL * costs.upload if unit.subgraph.sinks else 0.0
    here = work * costs.cpu_operation / max(1, cores) + shown
    reading = len(unit.points) * costs.wait
    there = costs.launch + work * costs.gpu_operation + reading
    if here > there:
        return None
    small = f"{work:,} operations take {here * 1e3:.2g} ms on the CPU"
    if reading > costs.launch:
        return f"{small}, and reading {len(unit.points)} strands back from a graphics card {reading * 1e3:.2g} ms"
    return f"{small}, and a graphics card {there * 1e3:.2g} ms before it has answered"


# How much memory subgraphs need, checked before any is allocated.

# Bytes for each pixel: of a drawn picture, which has two buffers; and of a picture that a patch samples.
_DRAWN, _SAMPLED = 2 * 4, 4 * 4

# How many of the largest an error names.
_NAMED = 3


@dataclass(frozen=True, slots=True)
class Need:
    """Something that takes memory: what it is, for messages, and its bytes."""

    what: str
    bytes: int


def needs_of(unit: Unit, shape: tuple[int, int], copies: int = 1) -> Iterator[Need]:
    """The memory of a subgraph that sweeps a shape (height, width): the picture that it draws, and its state. Sound
    that differs between channels has several `copies` of its state."""
    height, width = shape
    if unit.subgraph.sinks and height > 1:
        yield Need(f"the picture of {unit.subgraph.name}, {width}×{height}", _DRAWN * height * width)
    for slot in unit.kernel.slots:
        back = f"{slot.key} alone goes back {slot.depth} ticks" if slot.depth > 1 else slot.key
        yield Need(back, copies * slot_bytes(slot, shape))


def pictures_of(kernels: Iterable[Kernel]) -> Iterator[Need]:
    """The pictures that kernels sample, each once, with sizes from their files; unreadable ones count as nothing."""
    paths = {path for kernel in kernels for path in kernel.pictures if not is_view(path)}
    for path in sorted(paths):
        try:
            info = probe_picture(Path(path))
        except PictureError:
            continue
        yield Need(path, _SAMPLED * info.width * info.height)


def by_device(needs: Mapping[tuple[str, str], Iterable[Need]]) -> dict[str, set[Need]]:
    """The needs of each device, from needs by device and subgraph: a picture that several sample counts once."""
    found: dict[str, set[Need]] = {}
    for (device, _), each in needs.items():
        found.setdefault(device, set()).update(each)
    return found


def total(needs: Iterable[Need]) -> int:
    """The sum of the bytes."""
    return sum(need.bytes for need in needs)


def check_room(wanted: Mapping[str, Iterable[Need]], free: Mapping[str, int]) -> None:
    """Raises WeftError if a device, by its name, has less free memory than is wanted; a free memory of 0 means
    unknown."""
    for device, needs in wanted.items():
        listed = sorted(needs, key=lambda need: -need.bytes)
        there, needed = free.get(device, 0), total(listed)
        if not there or needed <= there:
            continue
        words = f"this patch would take {size_text(needed)} of memory on {device}, and {size_text(there)} are free"
        largest = ", ".join(f"{need.what} ({size_text(need.bytes)})" for need in listed[:_NAMED])
        raise error("not-enough-memory", words, None, f"{largest}: remember fewer ticks, or make the picture smaller")


def size_text(count: int) -> str:
    """Bytes as text: `3.7 MB`."""
    power = min(3, int(math.log10(max(1, count)) // 3))
    return f"{count} B" if power == 0 else f"{count / 1000**power:.1f} {('kB', 'MB', 'GB')[power - 1]}"
