"""How much memory subgraphs take, before any of it is taken, and whether a device has it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from weft.backends.memory import slot_bytes
from weft.codegen.base import Kernel
from weft.codegen.unit import Unit
from weft.errors import error
from weft.media.pictures import PictureError, probe_picture
from weft.names import is_view

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
