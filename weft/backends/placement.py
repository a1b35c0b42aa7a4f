"""Where a subgraph fits: what it costs there, and how much memory it takes, before any of it is taken."""

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

# Whether a subgraph is worth the way to a graphics card: its work against what a device costs to ask.


@dataclass(frozen=True, slots=True)
class Costs:
    """What work and ways cost, in seconds. An operation is a value of a kernel, for one element. What
    stands here is believed of devices that have not been measured (`known_costs.py`)."""

    cpu_operation: float = 2.4e-10
    """On one core, as machine code: some 240 million pixels a second of the plasma in patches/bench, of 17 operations,
    on a core with AVX2 (docs/performance.md)."""
    gpu_operation: float = 1.2e-11
    """A tenth of what an NVIDIA H200 takes, which draws that plasma at 1280×720 in 0.07 ms: a small card is meant."""
    launch: float = 5e-5
    """Until a draw has been given to the driver and begun: 19 µs there with the wait for its end, 50 µs on machines
    that share their memory with the card (`weft bench` measures it)."""
    wait: float = 5e-5
    """Until values have been read back, however few. As with the launch, the larger of what is known."""
    upload: float = 1e-10
    """For a byte of a picture on its way to the screen: 10 GB a second."""


COSTS = Costs()
_PIXEL = 4


def operations(kernel: Kernel, shape: tuple[int, int]) -> int:
    """How many operations a launch over a shape (height, width) takes. A loop counts as one turn of it."""
    height, width = shape
    counts = {Rate.ELEMENT: height * width, Rate.COLUMN: width, Rate.ROW: height}
    return sum(len(section) * counts.get(section.rate, 1) for section in kernel.sections)


def stays_on_cpu(unit: Unit, shape: tuple[int, int], cores: int, costs: Costs = COSTS) -> str | None:
    """Why a subgraph that sweeps a shape (height, width) is left to so many cores although there is a graphics card;
    None if the card is worth it."""
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


# How much memory subgraphs take, before any of it is taken, and whether a device has it.

# Bytes of a pixel: of a picture that is made, one of the two that are drawn by turns; of one that a patch samples.
_DRAWN, _SAMPLED = 2 * 4, 4 * 4

# How many of the largest an error names.
_NAMED = 3


@dataclass(frozen=True, slots=True)
class Need:
    """Something that takes memory, in words for people, and how many bytes."""

    what: str
    bytes: int


def needs_of(unit: Unit, shape: tuple[int, int], copies: int = 1) -> Iterator[Need]:
    """What a subgraph that sweeps a shape (height, width) keeps for itself: pictures that it makes, and what it
    remembers. Sound that differs from channel to channel remembers it in several `copies`."""
    height, width = shape
    if unit.subgraph.sinks and height > 1:
        yield Need(f"the picture of {unit.subgraph.name}, {width}×{height}", _DRAWN * height * width)
    for slot in unit.kernel.slots:
        back = f"{slot.key} alone goes back {slot.depth} ticks" if slot.depth > 1 else slot.key
        yield Need(back, copies * slot_bytes(slot, shape))


def pictures_of(kernels: Iterable[Kernel]) -> Iterator[Need]:
    """The pictures that kernels sample, each once, by what their files say; those that cannot be read take nothing."""
    paths = {path for kernel in kernels for path in kernel.pictures if not is_view(path)}
    for path in sorted(paths):
        try:
            info = probe_picture(Path(path))
        except PictureError:
            continue
        yield Need(path, _SAMPLED * info.width * info.height)


def by_device(needs: Mapping[tuple[str, str], Iterable[Need]]) -> dict[str, set[Need]]:
    """All that is wanted of each device, of needs by device and subgraph. A picture that several sample is there
    once."""
    found: dict[str, set[Need]] = {}
    for (device, _), each in needs.items():
        found.setdefault(device, set()).update(each)
    return found


def total(needs: Iterable[Need]) -> int:
    """Bytes of all of them."""
    return sum(need.bytes for need in needs)


def check_room(wanted: Mapping[str, Iterable[Need]], free: Mapping[str, int]) -> None:
    """Raises WeftError if a device, by its name, has less memory free than is wanted of it; 0 says that it is not known
    how much that is."""
    for device, needs in wanted.items():
        listed = sorted(needs, key=lambda need: -need.bytes)
        there, needed = free.get(device, 0), total(listed)
        if not there or needed <= there:
            continue
        words = f"this patch would take {size_text(needed)} of memory on {device}, and {size_text(there)} are free"
        largest = ", ".join(f"{need.what} ({size_text(need.bytes)})" for need in listed[:_NAMED])
        raise error("not-enough-memory", words, None, f"{largest}: remember fewer ticks, or make the picture smaller")


def size_text(count: int) -> str:
    """Bytes for people: `3.7 MB`."""
    power = min(3, int(math.log10(max(1, count)) // 3))
    return f"{count} B" if power == 0 else f"{count / 1000**power:.1f} {('kB', 'MB', 'GB')[power - 1]}"
