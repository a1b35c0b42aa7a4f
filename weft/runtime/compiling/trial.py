"""The trial before a swap: a new program draws a few small frames aside, and must neither fail nor take for ever."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from weft.backends.base import Env
from weft.errors import Diagnostic, Span, WeftError, fault
from weft.runtime.build import Playable
from weft.runtime.program import Stage, Swap

NOT_A_NUMBER: Final = "not-a-number"
"""The code of the diagnostic about an output that is no number anywhere."""

# The longer sides of the frames, in pixels. The first is large enough that a picture is not judged by its middle alone;
# the second is for telling what each pixel costs from what a frame costs.
_SIDE = 32
_LARGER_SIDE = 128

# What remembers is 0 at first, and 0/0 at the first tick alone is no mistake.
_TICKS = 3

# Seconds for one frame on one core, above which a picture would seem to stand still, and keys not to be heard.
_SLOWEST = 2.0


@dataclass(frozen=True)
class Moment:
    """Where a performance is: the frame's number, seconds since the start and since the frame before, and what mouse
    and keys are at."""

    tick: int = 0
    abstime: float = 0.0
    dt: float = 0.0
    inputs: Mapping[str, float] = field(default_factory=dict)


def mistakes(playable: Playable, stage: Stage, moment: Moment, places: Mapping[str, Span]) -> tuple[Diagnostic, ...]:
    """What is wrong with a program as it would run at this moment; nothing if it may. `places` says where the output
    statements stand. Never raises."""
    try:
        trial = _Trial(playable, stage, moment, _SIDE)
        return _not_numbers(trial.not_numbers(), places) or _too_slow(playable, stage, moment, trial)
    except WeftError as failure:
        return failure.diagnostics
    except Exception as failure:
        return (fault("the program failed when it was tried out", failure),)


class _Trial:
    """A program with a small picture, tick by tick."""

    def __init__(self, playable: Playable, stage: Stage, moment: Moment, side: int) -> None:
        width, height = small(playable.size, side)
        self.pixels = width * height
        self.seconds = 0.0
        """What the last frame took."""
        self._swap: Swap = stage.prepare(playable, (width, height))
        inputs = {**moment.inputs, **playable.parameters}
        # Time goes on from tick to tick, also while the performance is paused.
        dt = moment.dt or 1 / playable.settings["fps"]
        self._env = Env(width, height, moment.tick, moment.abstime, dt, inputs, self._swap.pictures)

    def frame(self, raw: bool = False) -> dict[str, npt.NDArray[Any]]:
        """What each subgraph gives in the next tick, by its name."""
        started = time.perf_counter()
        found = {part.unit.subgraph.name: values for part, values in self._swap.runner.try_out(self._env, raw)}
        self.seconds = time.perf_counter() - started
        env = self._env
        self._env = replace(env, tick=env.tick + 1, abstime=env.abstime + env.dt)
        return {name: values for name, values in found.items() if values is not None}

    def not_numbers(self) -> list[str]:
        """The outputs that are not a number anywhere in the last of some frames, by their labels."""
        dark = set[str]()
        for _ in range(_TICKS):
            dark = {name for name, values in self.frame().items() if _has_dark_channel(values)}
            if not dark:
                return []
        # NaN is shown as 0. Only the numbers themselves tell it from what is dark on purpose, and they take longer.
        planes = self.frame(raw=True)
        kernels = {part.unit.subgraph.name: part.unit.kernel for part in self._swap.runner.parts}
        return [
            label
            for name in sorted(dark)
            for label, plane in zip(kernels[name].outputs, planes[name], strict=True)
            if np.isnan(plane).all()
        ]


def small(size: tuple[int, int], side: int) -> tuple[int, int]:
    """The width and height of a picture of about the same aspect, none longer than `side`."""
    scale = min(1.0, side / max(size))
    return max(1, round(size[0] * scale)), max(1, round(size[1] * scale))


def _too_slow(playable: Playable, stage: Stage, moment: Moment, first: _Trial) -> tuple[Diagnostic, ...]:
    """Whether a frame would take so long that nothing else could be done; measured, as far as there is any doubt."""
    pixels = playable.size[0] * playable.size[1]
    for _ in range(2):  # the first frame of a trial also sets up what the others use
        if first.seconds * pixels / first.pixels < _SLOWEST:
            return ()
        first.frame()
    larger = _Trial(playable, stage, moment, _LARGER_SIDE)
    for _ in range(2):
        larger.frame()
    a_pixel = max(0.0, larger.seconds - first.seconds) / max(1, larger.pixels - first.pixels)
    expected = first.seconds + a_pixel * max(0, pixels - first.pixels)
    if expected < _SLOWEST:
        return ()
    words = f"a frame would take about {expected:.0f} seconds, and nothing could be done meanwhile"
    return (Diagnostic("error", "too-slow", words, None, "make the picture smaller, or loops shorter"),)


def _has_dark_channel(values: npt.NDArray[Any]) -> bool:
    """Whether these are pixels of which a channel is 0 everywhere."""
    return values.dtype == np.uint8 and not values.any(axis=(0, 1)).all()


def _not_numbers(labels: list[str], places: Mapping[str, Span]) -> tuple[Diagnostic, ...]:
    """What to say about outputs that are no numbers, given by their labels: one error for each statement."""
    outputs: dict[str, list[str]] = {}
    for label in labels:
        statement, _, output = label.rpartition(".")
        outputs.setdefault(statement, []).append(output)
    hint = "look for 0/0, or a root or logarithm of what is below 0"
    return tuple(
        Diagnostic("error", NOT_A_NUMBER, _no_number(statement, names), places.get(statement), hint)
        for statement, names in outputs.items()
    )


def _no_number(statement: str, outputs: list[str]) -> str:
    *others, last = outputs
    listed = f"{', '.join(others)} and {last} of {{}} are" if others else f"{last} of {{}} is"
    black = "they would be black" if others else "it would be black"
    return f"{listed.format(statement.partition(':')[0])} not a number at any pixel, so {black}"
