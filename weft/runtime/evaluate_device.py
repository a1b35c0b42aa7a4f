"""A single strand, evaluated by a backend: for devices that are none of the CPU's executors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.backends.base import Backend, Compiled, Env, as_array
from weft.codegen.unit import Unit
from weft.contexts import VISUAL, ContextTable
from weft.errors import error
from weft.runtime.coordinator import ProgramRunner
from weft.runtime.evaluate import Moment, read_picture


@dataclass(frozen=True)
class _PatchEnv(Env):
    """What a launch over a picture of any size is given: for the kernel, it has the size that the patch says."""

    patch_size: tuple[int, int] = (1, 1)

    def uniform(self, name: str) -> float:
        own = dict(zip(("width", "height"), self.patch_size, strict=True))
        return float(own[name]) if name in own else super().uniform(name)


class DeviceEvaluation:
    """Evaluates one strand of pictures; see `Evaluation`. State starts at zero in every call."""

    def __init__(
        self, unit: Unit, settings: Mapping[str, float], backend: Backend, loop_stopped: Callable[[], None]
    ) -> None:
        """`unit` exposes the strand, which is its only output. Raises WeftError for a picture that cannot be read."""
        self._unit = unit
        self._size = int(settings["width"]), int(settings["height"])
        self._fps = settings["fps"]
        self._backend = backend
        self._loop_stopped = loop_stopped
        self._nothing_else = ProgramRunner(ContextTable((VISUAL,)))
        self._pictures = {path: read_picture(path) for path in unit.kernel.pictures}

    def point(self, x: float, y: float, channel: float, moment: Moment, ticks: int) -> float:
        """The strand at one place of the picture."""
        images = any(slot.image for slot in self._unit.kernel.slots)
        shape = self._size[::-1] if images and ticks else (1, 1)
        compiled, env = self._advanced(shape, moment, ticks)
        if self._unit.kernel.slots:
            self._tick(compiled, env)
        (ref,) = self._unit.points
        coords = {"x": x, "y": y, "channel": channel}
        return float(self._backend.get_value_at(ref, compiled, coords, env, self._nothing_else))

    def picture(self, shape: tuple[int, int], moment: Moment, ticks: int) -> npt.NDArray[Any]:
        """The strand at the centres of a picture of this shape (height, width)."""
        return self._tick(*self._advanced(shape, moment, ticks))

    def sound(self, count: int, channel: float, moment: Moment, ticks: int) -> npt.NDArray[Any]:
        """Raises WeftError: no such device plays sound."""
        raise error("not-for-this-device", f"{self._backend.name} draws pictures, and computes no samples",
                    hint="--backend native does")  # fmt: skip

    def _advanced(self, shape: tuple[int, int], moment: Moment, ticks: int) -> tuple[Compiled, Env]:
        """The strand on the device, after so many ticks that end before the moment, and what the moment gives it."""
        env = _PatchEnv(
            width=shape[1],
            height=shape[0],
            tick=moment.frame,
            abstime=moment.abstime,
            dt=1 / self._fps,
            inputs=moment.inputs,
            pictures=self._pictures,
            loop_stopped=lambda kernel: self._loop_stopped(),
            patch_size=self._size,
        )
        compiled = self._backend.compile_subgraph(self._unit, env, self._nothing_else)
        for back in range(ticks if self._unit.kernel.slots else 0, 0, -1):
            abstime = moment.abstime - back / self._fps
            self._tick(compiled, replace(env, tick=moment.frame - back, abstime=abstime))
        return compiled, env

    def _tick(self, compiled: Compiled, env: Env) -> npt.NDArray[Any]:
        """One tick of the strand: [height, width]."""
        planes = self._backend.try_out(compiled, env, self._nothing_else, raw=True)
        if planes is None:
            raise error("not-for-this-device", f"{self._backend.name} computes no single strands")
        return np.asarray(as_array(planes)[0])
