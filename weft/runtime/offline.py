"""A program off stage: frame by frame, as fast as it goes, and the same every time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from math import floor
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.backends.base import Env
from weft.backends.cpu_visual import CpuVisual
from weft.backends.select import Choice
from weft.errors import error
from weft.graph.patch import Patch
from weft.runtime.build import Build
from weft.runtime.coordinator import main_picture
from weft.runtime.inputs import InputState
from weft.runtime.program import Stage, Swap

Pixels = npt.NDArray[Any]

# Frames begin just before the moment they count from, so that a time that was rounded down still has its frame.
_SLACK = 1e-6

# Two days of frames at 60 a second: a later one would be waited for in vain.
_REACH = 10_000_000


class _Planes(CpuVisual):
    """Gives the outputs as they are, [outputs, height, width], instead of pixels."""

    packed = False


def raw(choice: Choice) -> Choice | None:
    """The choice, giving values as they are before they become pixels; None if its backend only gives pixels."""
    return replace(choice, backend=_Planes) if choice.backend is CpuVisual else None


def initial_inputs(patch: Patch) -> dict[str, float]:
    """Mouse, keys and parameters as they are when nothing has happened."""
    return {**InputState(), **patch.parameter_values()}


def frame_numbers(start: float, end: float, fps: float) -> range:
    """The frames that begin in `start … end` seconds, without one that begins at the end."""
    first, behind = (-floor(-seconds * fps + _SLACK) for seconds in (start, end))
    return range(first, behind)


def _check_reach(number: int) -> None:
    if number > _REACH:
        words = "a patch that remembers plays all frames before the one that is wanted"
        raise error("too-far", f"{words}, and {_REACH:,} is the most")


class Offline:
    """Draws the frames of a program. Mouse, keys and parameters stay as they are at the start."""

    def __init__(self, build: Build, choices: Mapping[str, Choice], threads: int = 1) -> None:
        """Raises WeftError for what a device cannot take, a picture that cannot be read, and a patch that shows
        nothing."""
        settings = build.patch.settings
        size = (int(settings["width"]), int(settings["height"]))
        self._fps = settings["fps"]
        stage = Stage(choices)
        # The best tier from the first frame on, whichever are wanted: tiers may differ in how they round numbers.
        codes = stage.improve(build.units)
        units = tuple(replace(unit, code=codes.get(unit.hash)) for unit in build.units)
        self._swap: Swap = stage.prepare(replace(build.playable, units=units), size)
        self._check_display(build)
        self._env = Env(
            width=size[0],
            height=size[1],
            dt=1 / self._fps,
            inputs=initial_inputs(build.patch),
            pictures=self._swap.pictures,
            threads=threads,
        )

    def _check_display(self, build: Build) -> None:
        parts = self._swap.runner.parts
        if any(p.unit.subgraph.context == "visual" and p.unit.subgraph.sinks for p in parts):
            return
        reasons = "; ".join(d.message for d in (*build.warnings, *self._swap.left_out))
        raise error("nothing-to-show", "the patch has nothing to show", hint=reasons or "display(…) shows strands")

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the picture."""
        return self._swap.size

    @property
    def remembers(self) -> bool:
        """Whether a frame depends on those before it."""
        return any(part.unit.kernel.slots for part in self._swap.runner.parts)

    def steps(self, wanted: Iterable[int]) -> range | list[int]:
        """The frames that have to be computed for those that are wanted: all before them, if the patch remembers, so
        that a frame is the same picture whichever others are wanted."""
        numbers = sorted(wanted)
        if not (numbers and self.remembers):
            return numbers
        _check_reach(numbers[-1])
        return range(numbers[-1] + 1)

    def play(self, steps: Iterable[int]) -> Iterator[tuple[int, Pixels]]:
        """Computes frames in order, each with its number. A picture is only good until the next."""
        for number in steps:
            yield number, self._tick(number, number / self._fps)

    def at(self, time: float) -> Pixels:
        """The picture at a time, which may lie within a frame."""
        number = floor(time * self._fps + _SLACK)
        if self.remembers:
            _check_reach(number)
            for _ in self.play(range(number)):
                pass
        return self._tick(number, time)

    def _tick(self, number: int, time: float) -> Pixels:
        results = self._swap.runner.run(replace(self._env, tick=number, abstime=time))
        shown = main_picture(results)
        if shown is None:
            raise TypeError("a program without a picture is played for one")
        picture = shown.values
        return picture if picture.dtype == np.uint8 else np.moveaxis(picture, 0, -1)
