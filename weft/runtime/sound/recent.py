"""What was heard lately: the samples of strands of sound that pictures and numbers read."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from weft.backends.launch import Getter, Reals, Value
from weft.errors import error
from weft.names import StrandRef
from weft.runtime.build import Playable

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
        self._rows: dict[str, int] = {}

    def row(self, strand: str) -> int:
        """Which of the rings belongs to a strand, from now on and for good. Raises WeftError (`too-many-heard`)."""
        row = self._rows.setdefault(strand, len(self._rows))
        if row >= len(self._rings):
            words = f"pictures and numbers can read no more than {len(self._rings)} strands of sound"
            raise error("too-many-heard", words, hint="a new start forgets those that are not read any more")
        return row

    def rows(self, playable: Playable) -> dict[str, int]:
        """The rings of all strands of a program's sound that others read. Raises WeftError (`too-many-heard`)."""
        heard = (str(ref) for unit in playable.streaming.units for ref in unit.subgraph.exposes)
        return {strand: self.row(strand) for strand in heard}

    def getter(self, ref: StrandRef) -> Getter:
        """What reads a strand at moments of the performance, in seconds: 0 before its start, and where it is too long
        ago; the newest sample for what is yet to come."""
        ring = self._rings[self.row(str(ref))]

        def read(seconds: Value) -> Reals:
            newest, length = self._newest(), len(ring)
            # What is no number, or far away, must not overflow.
            places = np.nan_to_num(np.asarray(seconds) * self._rate + _SLACK, nan=-1.0, posinf=newest, neginf=-1.0)
            numbers = np.minimum(np.floor(places), newest).astype(np.int64)
            values = ring[numbers % length]
            return np.where((numbers >= 0) & (numbers > newest - length), values, np.float32(0))

        return read


def write(ring: npt.NDArray[np.float32], first: int, values: npt.NDArray[np.floating]) -> None:
    """Puts samples from number `first` on into a ring that is longer than they are."""
    start = first % len(ring)
    fits = min(len(values), len(ring) - start)
    ring[start : start + fits] = values[:fits]
    ring[: len(values) - fits] = values[fits:]
