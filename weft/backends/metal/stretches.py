"""Stretches of sound on the device: one is asked for, and its samples are taken when they are needed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.backends.card_sound import SampleChunk
from weft.backends.launch import Launch
from weft.backends.memory import StateMemory
from weft.backends.metal.library import MetalError
from weft.backends.metal.program import ComputeProgram, PictureBuffers, uploaded
from weft.backends.sound_code import SoundCode, one_sample
from weft.codegen.base import Kernel

# What a sample is until the device has computed it: NaN of bits that nothing computes.
_NOT_YET = np.uint32(0x7FA5_5A2A)

# To forget a run waits for it while Python's lock is held, and the sound is held up with it. So what is to be heard is
# waited for by looking at it, up to so many seconds, and the lock is free in between.
_PATIENCE = 0.1
_LOOK = 0.0002


class MetalSampleChunk(SampleChunk):
    """Samples in memory that the device shares."""

    def __init__(self, first: int, program: ComputeProgram, values: Sequence[Any], runs: list[Any], count: int) -> None:
        """`values` are the buffers of each channel, `runs` the launches that fill them."""
        super().__init__(first, (len(values), len(program.shader.outputs), count))
        self._program = program
        self._values = values
        self._runs = runs

    def fetched(self) -> Sequence[npt.NDArray[np.float32]]:
        size = self.shape[1] * self.count
        found = [np.frombuffer(values, np.float32, size) for values in self._values]
        _await(found)
        self._runs.clear()  # waits for what is left of them
        self.stopped = self._program.stopped() or self.stopped
        return found


class MetalSounding:
    """The program of a sound."""

    def __init__(self, device: Any, sources: PictureBuffers, kernel: Kernel, code: SoundCode) -> None:
        """A sample is computed already: a driver may finish a program only at its first use. Raises WeftError if the
        compiler refuses the program, and MetalError if the device fails."""
        self._device = device
        self._sources = sources
        self._code = code
        self._program = ComputeProgram(device, kernel, code.shader)
        self._memory = StateMemory(())
        self.begin(0, [one_sample(kernel, 0.0)]).samples()

    def begin(self, first: int, launches: Sequence[Launch]) -> MetalSampleChunk:
        """Asks for the samples of a stretch, of which there is a launch for each channel; waits for nothing. Raises
        MetalError."""
        count = launches[0].shape[1]
        values = [self._empty(count) for _ in launches]
        machines = [self._program.once.begin(self._memory, launch) for launch in launches]
        runs = [
            self._program.launch(machine, self._memory, self._named(launch), self._sources, out)
            for machine, launch, out in zip(machines, launches, values, strict=True)
        ]
        stretch = MetalSampleChunk(first, self._program, values, runs, count)
        stretch.stopped = any(machine.loop_stopped for machine in machines)
        return stretch

    def _empty(self, count: int) -> Any:
        """A buffer for so many samples of a channel."""
        size = max(1, len(self._code.shader.outputs) * count)
        try:
            return uploaded(self._device, np.full(size, _NOT_YET))
        except Exception as failure:
            raise MetalError(f"there is no memory for {size} samples ({failure})") from failure

    def _named(self, launch: Launch) -> Launch:
        """A launch with its coordinates by the names that the program has for them."""
        names = zip(self._code.shader.coords, self._code.coords, strict=True)
        return replace(launch, coords={made: launch.coords[name] for made, name in names})


def _await(found: Sequence[npt.NDArray[np.float32]]) -> None:
    """Returns when all samples are there, or when that takes too long."""
    last = time.monotonic() + _PATIENCE
    while any((values.view(np.uint32) == _NOT_YET).any() for values in found) and time.monotonic() < last:
        time.sleep(_LOOK)
