"""The inputs of one execution of a kernel: its extent, its coordinates, and the values from outside."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from weft.ir.expr import StrandRef

Array: TypeAlias = npt.NDArray[Any]

Floats: TypeAlias = npt.NDArray[np.floating[Any]]

TIME = "abstime"
"""The coordinate that is the time, in seconds; where it is given by blocks, that of the first sample."""

SINCE = "since"
"""The coordinate that is the time within a block, in seconds, where the time is given by blocks."""

# A coordinate or another value: one number, or an array with a number for each element.
Value: TypeAlias = float | Floats

# Reads a strand of another subgraph at coordinates: numbers, or arrays that broadcast together, which it must neither
# keep nor change. Gives a number, or an array of the broadcast shape. Several threads may call it at once.
Getter: TypeAlias = Callable[..., Value]

# A picture: [height, width, 4], single precision, 0…1.
Picture: TypeAlias = npt.NDArray[np.float32]


class Even(NamedTuple):
    """Evenly spaced times: that of element n is `origin + (first + n) / rate`, in double precision."""

    first: float
    rate: float
    origin: float = 0.0

    def times(self, count: int) -> Floats:
        """The first `count` times."""
        return self.origin + (self.first + np.arange(count)) / self.rate


class StreamCoords(Mapping[str, Value]):
    """The coordinates of a stream. The array of times is computed only when it is read."""

    def __init__(self, even: Even, count: int, others: Mapping[str, Value]) -> None:
        self._even = even
        self._count = count
        self._others = others

    def __getitem__(self, name: str) -> Value:
        return self._times if name == TIME else self._others[name]

    def __contains__(self, name: object) -> bool:
        return name == TIME or name in self._others

    def __iter__(self) -> Iterator[str]:
        return iter({TIME: None, **self._others})

    def __len__(self) -> int:
        return len({TIME, *self._others})

    @functools.cached_property
    def _times(self) -> Floats:
        return self._even.times(self._count)


@dataclass(frozen=True)
class Launch:
    """One execution over `shape` elements (height, width); points and samples are a picture of one row.

    `coords` holds every coordinate that the kernel reads: an array of the width for what changes by column or by
    element, an array of the height for what changes by row, else a number. A list of points may share a number.
    """

    shape: tuple[int, int]
    coords: Mapping[str, Value]
    uniforms: Mapping[str, float] = field(default_factory=dict)
    strands: Mapping[StrandRef, Getter] = field(default_factory=dict)
    pictures: Mapping[str, Picture] = field(default_factory=dict)
    threads: int = 1
    """How many threads may share the work; a small launch uses one."""
    even: Even | None = None
    """The coordinate `abstime` in short, if its values are evenly spaced; saves reading the array."""
    loop_stopped: Callable[[], None] = lambda: None
    """Called once at the end, from the calling thread, if a loop reached its limit of steps."""


VIEW = (128, 256)
"""Height and width of a view: the picture of a strand, sent to a process that cannot read the strand itself."""


def blank_view() -> Picture:
    """A view that shows nothing yet. Only its first channel is used."""
    return np.zeros((*VIEW, 4), np.float32)


def picture_coords(
    width: int, height: int, abstime: float = 0.0, channel: float = 0.0, dtype: npt.DTypeLike = np.float64
) -> dict[str, Value]:
    """The coordinates of a picture: pixel centres, 0…1, y downwards."""
    x = (np.arange(width, dtype=dtype) + 0.5) / width
    y = (np.arange(height, dtype=dtype) + 0.5) / height
    return {"x": x, "y": y, "abstime": abstime, "channel": channel}
