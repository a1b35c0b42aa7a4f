"""Offline sound: as fast as possible, in step with the frames that read it, and the same every time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from weft.backends.launch import Floats, Getter, blank_view
from weft.names import StrandRef
from weft.runtime.compiled import CompiledProgram
from weft.runtime.program import ProgramLoader
from weft.runtime.sound.mixer import Levels, Mixer, Recent, channels_of
from weft.runtime.sound.shared import MOST_RINGS, MOST_VIEWS, RING, places_of_views

BLOCK = 512
"""Samples in a block, as in a performance by default."""


class Rendering:
    """The sound of a program from one sample on. The parameters stay at their initial values; other inputs are 0 until
    they are fed."""

    def __init__(
        self, loader: ProgramLoader, compiled: CompiledProgram, inputs: Mapping[str, float], first: int = 0,
        clips: bool = True,
    ) -> None:
        """`first` is the number of the first sample. Raises WeftError for what the `loader` cannot load."""
        self.rate = compiled.settings["rate"]
        self._inputs = dict(inputs)
        self._next = first
        # Memory that is never written takes no space.
        rings = np.zeros((MOST_RINGS, RING), np.float32)
        self._recent = Recent(rings, self.rate, lambda: self._next - 1)
        self._channels = channels_of(compiled)
        self._mixer = Mixer(self.rate, self._channels, lambda name: self._inputs.get(name, 0.0), rings, clips)
        self._views = {name: blank_view() for name in places_of_views(MOST_VIEWS).take(compiled.views)}
        rows = self._recent.rows(compiled)
        self._mixer.enter(self._mixer.prepare(loader, compiled, 0.0, None, rows, self._views))

    def watch(self, first: int, end: int) -> Levels:
        """Watches the samples from `first` to before `end` while they are rendered."""
        self._mixer.levels = Levels(first, end)
        return self._mixer.levels

    @property
    def loops_stopped(self) -> frozenset[str]:
        """The kernels with a loop that reached its limit."""
        return frozenset(self._mixer.loops_stopped)

    @property
    def not_numbers(self) -> list[str]:
        """See `Mixer.not_numbers`."""
        return self._mixer.not_numbers

    def getter(self, ref: StrandRef) -> Getter:
        """The getter of a strand of the sound; see `Recent.getter`."""
        return self._recent.getter(ref)

    def feed(self, values: Mapping[str, float]) -> None:
        """Sets inputs from the next block on; see `ControlSmoother`."""
        self._inputs.update(values)

    def show(self, views: Mapping[str, Floats]) -> None:
        """Sets the strands that it samples, from the next block on; see `ProgramRunner.view_values`."""
        for name, values in views.items():
            self._views[name][:, :, 0] = values

    def until(self, stop: int) -> Iterator[npt.NDArray[np.float32]]:
        """Computes the samples before number `stop`: [samples, channels], block by block."""
        while self._next < stop:
            end = min(stop, self._next + BLOCK)
            block = np.zeros((end - self._next, self._channels), np.float32)
            self._mixer.render(block, self._next / self.rate)
            self._next = end
            yield block
