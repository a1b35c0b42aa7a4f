"""Microphones: what they hear, for the blocks that are played at the same time.

Streams to and from a device run on one clock, but each has its own thread, and calls at its own moments. Samples that
come in wait in a ring until the sound asks for them. A margin of one block makes up for the difference. With the block
that is being played, a sound is at most two blocks late, in addition to the delay of the devices.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from weft.errors import WeftError
from weft.names import microphone_of
from weft.runtime.sound.device import Devices, InputStream, chosen

MOST_CHANNELS = 8

_RING = 1 << 15
# The most samples of a cross-fade from one place of a sound to another, or to silence.
_FADE = 256
# Seconds after which an unused microphone is closed, and between tries to open one.
_UNUSED = 3.0
_AGAIN = 1.0

Samples = NDArray[np.float32]


class Intake:
    """The samples that one microphone has heard. One thread writes, another one takes."""

    def __init__(self, margin: int) -> None:
        """`margin` is the number of samples that wait in addition to those that are taken."""
        self._margin = margin
        self._ring = np.zeros((MOST_CHANNELS, _RING), np.float32)
        self._written = 0
        self._taken: int | None = None
        self._has_begun = False
        self._section: tuple[int, Samples] = (-1, np.zeros((MOST_CHANNELS, 0), np.float32))
        self.used = time.monotonic()
        """The time at which samples were last taken."""

    def write(self, samples: Samples) -> None:
        """Adds samples, [samples, channels]. A microphone with one channel is heard in both of the first two."""
        samples = samples[-_RING // 2 :, :MOST_CHANNELS]
        places = (self._written + np.arange(len(samples))) % _RING
        channels = samples.shape[1]
        self._ring[:channels, places] = samples.T
        if channels == 1:
            self._ring[1, places] = samples[:, 0]
        self._written += len(samples)

    def section(self, first: int, samples: int) -> Samples:
        """The next samples [channels, samples], to be played from sample number `first` of the performance; the same
        ones for the same number. Silent until there are enough."""
        known, found = self._section
        if known != first or found.shape[1] != samples:
            found = self._next(samples)
            self._section = first, found
        return found

    def _next(self, samples: int) -> Samples:
        self.used = time.monotonic()
        written, wanted, before = self._written, samples + self._margin, self._taken
        start = before
        # At the start, after a gap, and when too much is waiting, it continues with the newest samples.
        if before is None or written - before > wanted + self._margin:
            start = written - wanted if written >= wanted else None
        elif written - before < samples:
            start = None
        found = self._part(start, samples, written)
        if start != before and self._has_begun:
            # The rest of the sound, and then its last value, fades out.
            length = min(samples, _FADE)
            fade = np.linspace(1, 0, length, dtype=np.float32)
            found[:, :length] += (self._part(before, length, written) - found[:, :length]) * fade
        self._has_begun = self._has_begun or start is not None
        self._taken = None if start is None else start + samples
        return found

    def _part(self, start: int | None, samples: int, written: int) -> Samples:
        """Samples from a place on. After the newest one, its value is repeated; None is silent."""
        if start is None:
            return np.zeros((MOST_CHANNELS, samples), np.float32)
        return self._ring[:, np.minimum(start + np.arange(samples), written - 1) % _RING]


class Microphones:
    """The microphones that programs listen to, opened when they are first wanted. `sample` is for the thread that
    renders, all other methods are for the main thread."""

    def __init__(self, rate: int, frames: int, is_muted: bool = False) -> None:
        self._rate = rate
        self._frames = frames
        self._is_muted = is_muted
        self._intakes: dict[str, Intake] = {}
        self._streams: dict[str, InputStream] = {}
        self._devices: Devices | None = None
        self._tried = -_AGAIN
        self._told: dict[str, str | None] = {}

    def sample(self, name: str, first: int, samples: int) -> Samples:
        """The samples that a microphone with this name heard in a channel, from number `first` of the performance
        on."""
        device, channel = microphone_of(name)
        intake = self._intakes.get(device)
        if intake is None:
            intake = self._intakes[device] = Intake(self._frames)
        found: Samples = intake.section(first, samples)[channel]
        return found

    def update(self, opening: Callable[[], Devices]) -> list[str]:
        """Opens microphones that are wanted, and closes those that are not used any more. `opening` gives devices.
        Returns messages, each once until it changes."""
        if self._is_muted:
            return []
        now = time.monotonic()
        for device, intake in list(self._intakes.items()):
            if now - intake.used > _UNUSED:
                self._close(device)
                del self._intakes[device]
        for device in [device for device, stream in self._streams.items() if not stream.is_active]:
            self._close(device)
        missing = [device for device in self._intakes if device not in self._streams]
        if not missing or now - self._tried < _AGAIN:
            return []
        self._tried = now
        return [words for device in missing if (words := self._open(device, opening)) is not None]

    def _open(self, device: str, opening: Callable[[], Devices]) -> str | None:
        try:
            devices = opening()
            found = chosen(devices.listed("Input"), device or None)
            channels = min(MOST_CHANNELS, found.channels)
            stream = devices.open_input(found, self._rate, channels, self._frames, self._intakes[device].write)
            stream.start()
        except WeftError as failure:
            problem = failure.diagnostics[0]
            words = f"the microphone is silent: {problem.message}"
        else:
            self._streams[device] = stream
            words = f"listening to {found.name}"
        known, self._told[device] = self._told.get(device), words
        return words if words != known else None

    def _close(self, device: str) -> None:
        stream = self._streams.pop(device, None)
        if stream is not None:
            stream.close()

    def close(self) -> None:
        """Closes all streams. They are opened again by `update`."""
        for device in list(self._streams):
            with suppress(WeftError):
                self._close(device)
