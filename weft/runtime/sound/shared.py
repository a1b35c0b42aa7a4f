"""Memory that the player's process and the sound process share, for data that changes many times a second.

Neither process waits for the other: a reader takes the last complete state. The memory belongs to open files without a
name, so that it is gone when both processes are, even if they are killed.
"""

from __future__ import annotations

import math
import mmap
import os
import time
from collections.abc import Iterable, Mapping
from enum import IntEnum
from itertools import accumulate, count
from typing import NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from weft.backends.launch import VIEW
from weft.contexts import AUDIO
from weft.errors import error
from weft.media.hearing import MOST_COLUMNS, HeardMemory
from weft.names import HEARD_ROWS, HeardName, columns
from weft.platform import system


class SlotAllocator:
    """A few places, numbered from 0, for strands that change with every save. `words` tell people that there are no
    more than {}."""

    def __init__(self, count: int, code: str, words: str) -> None:
        self._count = count
        self._code = code
        self._words = words
        self._taken: dict[str, int] = {}
        """The names, those that were taken last at the end."""

    def find(self, name: str) -> int | None:
        """The place of a name; None if it has none."""
        return self._taken.get(name)

    def take(self, names: Iterable[str]) -> dict[str, int]:
        """A place for each of these names, which is the previous one if it has one. If none is free, the place that
        has not been taken for the longest time is reused. Raises WeftError with the code for more names than places."""
        wanted = dict.fromkeys(names)
        if len(wanted) > self._count:
            raise error(self._code, self._words.format(self._count), hint="read one instead of several")
        others = {name: place for name, place in self._taken.items() if name not in wanted}
        free = sorted(set(range(self._count)) - {*self._taken.values()}, reverse=True)
        places: dict[str, int] = {}
        for name in wanted:
            place = self._taken.get(name)
            if place is None:
                place = free.pop() if free else others.pop(next(iter(others)))
            places[name] = place
        self._taken = {**others, **places}
        return places


MOST_CONTROLS = 1024
MOST_RINGS = 64
MOST_VIEWS = 8
MOST_HEARD = 16
RING = AUDIO.keeps
"""Samples in a ring."""


def places_of_views() -> SlotAllocator:
    """Places for the strands that sounds sample over a picture."""
    return SlotAllocator(MOST_VIEWS, "too-many-seen", "sounds can read no more than {} strands over a whole picture")


def places_of_heard() -> SlotAllocator:
    """Places for the analyses of sounds."""
    return SlotAllocator(MOST_HEARD, "too-many-analyses", "a patch can have no more than {} analyses of sounds")


# The number of times that a reader tries when the writer overtakes it.
_TRIES = 4


class SharedMemory:
    """Memory of a fixed size that another process maps through the inherited descriptor of its file."""

    def __init__(self, size: int) -> None:
        """Makes memory of zeros; pages that are never touched take no space."""
        self.descriptor = system.shared_file(size)
        self.bytes = _mapped(self.descriptor, size)

    def close(self) -> None:
        """Closes the file; the memory is freed when no process maps it any more. May be called twice."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


def inherited(descriptor: int, size: int) -> NDArray[np.uint8]:
    """The memory of an inherited file, which is closed."""
    try:
        return _mapped(descriptor, size)
    finally:
        os.close(descriptor)


def _mapped(descriptor: int, size: int) -> NDArray[np.uint8]:
    # The map ends with the last array that uses it.
    return np.frombuffer(mmap.mmap(descriptor, size), np.uint8)


class _Mailbox:
    """Numbers (float64) that one process writes as a whole and another reads as a whole.

    There are two places. The writer fills the one that was not written last, then increments the counter of writes,
    whose lowest bit says which place is valid. A reader is only disturbed by two writes while it copies. It detects
    them by a checksum over counter and numbers, even on processors that reorder writes.
    """

    # The counter; for each place the count of numbers, and the checksum; all int64. Then both places.
    _HEADER = 5

    def __init__(self, memory: NDArray[np.uint8], most: int) -> None:
        split = 8 * self._HEADER
        self._header = memory[:split].view(np.int64)
        places = memory[split : split + 16 * most].view(np.float64)
        self._places = (places[:most], places[most:])
        self._seen = 0

    @classmethod
    def size(cls, most: int) -> int:
        """The bytes for a mailbox with at most this many numbers."""
        return 8 * cls._HEADER + 16 * most

    def write(self, numbers: NDArray[np.float64]) -> None:
        """Writes numbers. For one process, and one thread at a time there."""
        counter = int(self._header[0]) + 1
        place, count = counter & 1, len(numbers)
        self._places[place][:count] = numbers
        self._header[1 + 2 * place] = count
        self._header[2 + 2 * place] = crc32(numbers.data, counter)
        self._header[0] = counter

    def read(self) -> NDArray[np.float64] | None:
        """The last numbers; None if there is nothing new, or if the writer was in the way."""
        for _ in range(_TRIES):
            counter = int(self._header[0])
            if counter == self._seen:
                return None
            place = counter & 1
            count = int(self._header[1 + 2 * place])
            copy = self._places[place][: max(0, count)].copy()
            if crc32(copy.data, counter) == int(self._header[2 + 2 * place]):
                self._seen = counter
                return copy
        return None


# --- from the player to the sound process -----------------------------------------------------------------------------

# Performance time, the moment of that, paused, restarts; the bytes of the names, and their checksum.
_CLOCK = 6
_MOST_NUMBERS = _CLOCK + MOST_CONTROLS
# The names come after the numbers, each on a line, in the order in which they were first written.
_NAMES = _Mailbox.size(_MOST_NUMBERS)


class ControlsWriter:
    """The player's side of the controls: the clock, and named numbers. For one thread."""

    def __init__(self, memory: SharedMemory) -> None:
        self._mailbox = _Mailbox(memory.bytes, _MOST_NUMBERS)
        self._numbers = np.zeros(_MOST_NUMBERS)
        self._names = memory.bytes[_NAMES:]
        self._indices: dict[str, int] = {}
        self._bytes = self._checksum = 0
        self.restarts = 0

    def write(
        self, seconds: float, values: Mapping[str, float], paused: bool = False, restarts: int = 0,
        moment: float | None = None,
    ) -> None:
        """Writes a consistent set: the performance is at `seconds` at `moment` (of `time.monotonic`, now if not given).
        Names that are left out keep their numbers until there is no room for new ones; then they are forgotten. Raises
        WeftError (`too-many-controls`)."""
        new = [name for name in values if name not in self._indices]
        if new and not self._append(new):
            # Forgets the known names, if there is room then.
            known = self._indices, self._bytes, self._checksum
            self._indices, self._bytes, self._checksum = {}, 0, 0
            if not self._append(list(values)):
                self._indices, self._bytes, self._checksum = known
                message = f"the sound can follow no more than {MOST_CONTROLS} parameters, keys and the like"
                raise error("too-many-controls", message, hint="read fewer of them")
        for name, value in values.items():
            self._numbers[_CLOCK + self._indices[name]] = value
        self.restarts = restarts
        now = time.monotonic() if moment is None else moment
        self._numbers[:_CLOCK] = seconds, now, paused, restarts, self._bytes, self._checksum
        self._mailbox.write(self._numbers[: _CLOCK + len(self._indices)])

    def _append(self, names: list[str]) -> bool:
        """Gives numbers to new names, unless there is no room for all of them."""
        lines = np.frombuffer("".join(f"{name}\n" for name in names).encode(), np.uint8)
        end = self._bytes + len(lines)
        if len(self._indices) + len(names) > MOST_CONTROLS or end > len(self._names):
            return False
        self._indices.update(zip(names, count(len(self._indices)), strict=False))
        self._names[self._bytes : end] = lines
        self._checksum = crc32(lines.data, self._checksum)
        self._bytes = end
        return True


class Controls:
    """The sound process's side of the controls. Its values stay the same until the next `refresh`."""

    SIZE = _NAMES + 64 * MOST_CONTROLS

    def __init__(self, memory: NDArray[np.uint8]) -> None:
        self._mailbox = _Mailbox(memory, _MOST_NUMBERS)
        self._names = memory[_NAMES:]
        self._indices: dict[str, int] = {}
        self._values = np.zeros(MOST_CONTROLS)
        self._version = [0.0, 0.0]
        """The bytes of the known names, and their checksum."""
        self.known = False
        """Whether anything has been written yet."""
        self.seconds = 0.0
        self.moment = 0.0
        self.paused = False
        self.restarts = 0

    def refresh(self) -> None:
        """Reads the last set. Never waits: in the worst case nothing changes."""
        numbers = self._mailbox.read()
        if numbers is None:
            return
        self.known = True
        self.seconds, self.moment, paused, restarts, *names = numbers[:_CLOCK].tolist()
        self.paused, self.restarts = bool(paused), int(restarts)
        if names != self._version:
            text = self._names[: int(names[0])].tobytes()
            if crc32(text) != names[1]:
                # While the names are being rewritten, the numbers do not belong to known names.
                return
            self._indices = {name: index for index, name in enumerate(text.decode().split("\n"))}
            self._version = names
        self._values[: len(numbers) - _CLOCK] = numbers[_CLOCK:]

    def find(self, name: str) -> float | None:
        """The number of this name; None if it has never been written."""
        index = self._indices.get(name)
        return None if index is None else float(self._values[index])

    def now(self, moment: float) -> float:
        """The time of the player's clock at a moment of `time.monotonic`, in seconds."""
        return self.seconds if self.paused else self.seconds + (moment - self.moment)


# --- from the sound process to the player -----------------------------------------------------------------------------


class SoundState(IntEnum):
    """The state of the sound process."""

    STARTING = 0
    PLAYING = 1
    PAUSED = 2
    LOST = 3


class Figures(NamedTuple):
    """Figures about the latest block."""

    sample: int = 0
    """Number of its first sample, counted from the start of the performance: `seconds` times the rate."""
    seconds: float = 0.0
    """The performance time of its first sample."""
    moment: float = 0.0
    """When it began, on `time.monotonic`."""
    latency: float = 0.0
    """Seconds from then until its first sample is heard."""
    heard: float = 0.0
    """The moment at which its first sample is heard, smoothed over many blocks."""
    blocks: int = 0
    underruns: int = 0
    load: float = 0.0
    """The share of the time that rendering took, over the last second."""
    state: SoundState = SoundState.STARTING
    restarts: int = 0
    """The number of restarts of the performance up to then."""
    late: int = 0
    """The number of blocks that took longer than they last. The time counts from the moment at which the device asked
    for them, so it includes the wait for Python's lock."""
    taped: int = 0
    """The number of its first sample on the `SoundTape`."""
    level: float = 0.0
    """The root of the mean square of its samples, on all channels."""
    program: int = 0
    """The number of the last program that waits for a beat, or has waited for one; 0: none."""
    beat: float = 0.0
    """The beat on which that program enters."""
    beats_then: float = 0.0
    """The beats until the last change of the tempo, as it is heard."""
    beats_start: float = 0.0
    """The time of that change."""


_TYPES = (int, float, float, float, float, int, int, float, SoundState, int, int, int, float, int, float, float, float)


class FiguresMemory:
    """The memory of the figures, for one thread at a time of the sound process, and for any thread of the player."""

    SIZE = _Mailbox.size(len(_TYPES))

    def __init__(self, memory: NDArray[np.uint8]) -> None:
        self._mailbox = _Mailbox(memory, len(_TYPES))
        self._numbers = np.zeros(len(_TYPES))
        self._figures = Figures()

    def write(self, figures: Figures) -> None:
        self._numbers[:] = figures
        self._mailbox.write(self._numbers)

    def read(self) -> Figures:
        """The last figures. Never waits."""
        numbers = self._mailbox.read()
        if numbers is not None:
            self._figures = Figures(*(kind(number) for kind, number in zip(_TYPES, numbers.tolist(), strict=True)))
        return self._figures


class SoundTape:
    """The last seconds of the samples that the device was given, in stereo, with the silence of pauses and of gaps
    between streams: sample n is at n modulo `LENGTH`. It is not protected: samples that `Figures` does not count yet
    may be half written."""

    LENGTH = 262_144
    CHANNELS = 2
    SIZE = 4 * LENGTH * CHANNELS

    def __init__(self, memory: NDArray[np.uint8]) -> None:
        self._samples = memory.view(np.float32).reshape(self.LENGTH, self.CHANNELS)

    def write(self, first: int, block: NDArray[np.float32]) -> None:
        """Writes a block [frames, channels] from a sample on. Of more than two channels, each side is the mean of every
        second one."""
        for start, stop, at in self._parts(first, first + len(block)):
            for side in range(self.CHANNELS):
                part = block[at : at + stop - start, side % block.shape[1] :: self.CHANNELS]
                self._samples[start:stop, side] = part[:, 0] if part.shape[1] == 1 else part.mean(axis=1)

    def silence(self, first: int, count: int) -> None:
        """Writes silence from a sample on."""
        for start, stop, _ in self._parts(first + max(0, count - self.LENGTH), first + count):
            self._samples[start:stop] = 0

    def read(self, first: int, end: int) -> NDArray[np.float32]:
        """A copy of the samples [frames, 2] in a range of at most `LENGTH`. Those before the first one are silent."""
        found = np.zeros((end - first, self.CHANNELS), np.float32)
        begin = max(0, first)
        for start, stop, at in self._parts(begin, end):
            found[begin - first + at :][: stop - start] = self._samples[start:stop]
        return found

    def _parts(self, first: int, end: int) -> Iterable[tuple[int, int, int]]:
        """The pieces of a range that are contiguous in memory: their ends there, and the samples before them."""
        at = first
        while at < end:
            start = at % self.LENGTH
            stop = min(start + end - at, self.LENGTH)
            yield start, stop, at - first
            at += stop - start


# --- recent samples ---------------------------------------------------------------------------------------------------


class Rings:
    """Recent samples of up to 64 strands, and what up to 16 analyses hear: the sound process writes them and the player
    reads them. Views of up to 8 strands of pictures go the other way. They are not protected: a reader may only read
    samples before the block that is being written, and a view may show parts of two frames.

    Sample n of the performance (as `Figures.sample` counts) is at n modulo `RING`.
    """

    _SIZES = MOST_RINGS * RING, MOST_VIEWS * math.prod(VIEW) * 4, MOST_HEARD * HEARD_ROWS * MOST_COLUMNS * 4
    SIZE = 4 * sum(_SIZES) + 8 * MOST_HEARD

    def __init__(self, memory: NDArray[np.uint8]) -> None:
        ends = [4 * end for end in accumulate(self._SIZES)]
        samples, views, heard = (part.view(np.float32) for part in np.split(memory[: ends[-1]], ends[:-1]))
        self.samples: NDArray[np.float32] = samples.reshape(MOST_RINGS, RING)
        self.views: NDArray[np.float32] = views.reshape(MOST_VIEWS, *VIEW, 4)
        """[8, 128, 256, 4], of which the first channel is used."""
        self._heard: NDArray[np.float32] = heard.reshape(MOST_HEARD, HEARD_ROWS, MOST_COLUMNS, 4)
        self._newest = memory[ends[-1] :].view(np.int64)

    def heard(self, place: int, heard: HeardName) -> HeardMemory:
        """The memory of an analysis."""
        return HeardMemory(self._heard[place, :, : columns(heard)], self._newest[place : place + 1])
