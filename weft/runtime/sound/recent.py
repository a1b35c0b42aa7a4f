"""What was heard lately: the samples of strands of sound that pictures and numbers read."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from weft.backends.launch import Getter, Reals, Value
from weft.names import StrandRef
from weft.runtime.playable import Playable
from weft.runtime.sound.places import places_of_rings

# A moment that was rounded down still has its sample.
_SLACK = 1e-3


class Recent:
    """Rings of recent samples, one for each strand. Sample n of the performance stands at n modulo their length.

    `rings` is [strands, samples], single precision, and may be written to by another process; `newest` gives the number
    of the last sample that is complete.
    """

    def __init__(self, rings: npt.NDArray[np.float32], rate: float, newest: Callable[[], int]) -> None:
        self._rings = rings
        self._rate = rate
        self._newest = newest
        self._rows = places_of_rings(len(rings))

    def rows(self, playable: Playable) -> dict[str, int]:
        """The rings of all strands of a program's sound that others read; see `Places.take`. Raises WeftError
        (`too-many-heard`)."""
        heard = [str(ref) for unit in playable.streaming.units for ref in unit.subgraph.exposes]
        known = {strand: self._rows.find(strand) for strand in heard}
        rows = self._rows.take(heard)
        # What another strand has left in there is not heard.
        self._rings[[row for strand, row in rows.items() if row != known[strand]]] = 0
        return rows

    def getter(self, ref: StrandRef) -> Getter:
        """What reads a strand at moments of the performance, in seconds: 0 before its start, and where it is too long
        ago; the newest sample for what is yet to come. A strand that no program has a ring for is 0."""

        def read(seconds: Value) -> Reals:
            row, newest = self._rows.find(str(ref)), self._newest()
            length = self._rings.shape[1]
            # What is no number, or far away, must not overflow.
            with np.errstate(over="ignore"):
                places = np.nan_to_num(np.asarray(seconds) * self._rate + _SLACK, nan=-1.0)
            numbers = np.floor(np.clip(places, -1, max(newest, -1))).astype(np.int64)
            known = (numbers >= 0) & (numbers > newest - length)
            return np.where(known, self._rings[row, numbers % length] if row is not None else 0, np.float32(0))

        return read


def write(ring: npt.NDArray[np.float32], first: int, values: npt.NDArray[np.floating]) -> None:
    """Puts samples from number `first` on into a ring that is longer than they are."""
    start = first % len(ring)
    fits = min(len(values), len(ring) - start)
    ring[start : start + fits] = values[:fits]
    ring[: len(values) - fits] = values[fits:]
