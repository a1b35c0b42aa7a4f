"""The trial before a swap: a new program draws a few small frames aside, and must not fail at it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.backends.base import Env
from weft.errors import Diagnostic, Span, WeftError
from weft.runtime.build import Playable
from weft.runtime.program import Stage, Swap

# Large enough that a picture is not judged by its middle alone.
_SIDE = 32

# What remembers is 0 at first, and 0/0 at the first tick alone is no mistake.
_TICKS = 3


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
    width, height = small(playable.size)
    try:
        swap = stage.prepare(playable, (width, height))
        inputs = {**moment.inputs, **playable.parameters}
        env = Env(width, height, moment.tick, moment.abstime, moment.dt, inputs, swap.pictures)
        return tuple(_not_a_number(label, places) for label in _run(swap, env))
    except WeftError as failure:
        return failure.diagnostics
    except Exception as failure:
        words = f"the program failed when it was tried out ({type(failure).__name__}: {failure})"
        return (Diagnostic("error", "internal", words, None, "this is a bug in weft: the text before it goes on"),)


def small(size: tuple[int, int]) -> tuple[int, int]:
    """The width and height of a picture of about the same aspect that is drawn in no time."""
    scale = min(1.0, _SIDE / max(size))
    return max(1, round(size[0] * scale)), max(1, round(size[1] * scale))


def _run(swap: Swap, env: Env) -> list[str]:
    """The outputs that are not a number anywhere in the last of some frames, by their labels."""
    dark = set[str]()
    for number in range(_TICKS):
        tick = replace(env, tick=env.tick + number)
        pictures = [(part.unit.subgraph.name, values) for part, values in swap.runner.try_out(tick)]
        dark = {name for name, values in pictures if values is not None and _has_dark_channel(values)}
        if not dark:
            return []
    # NaN is shown as 0. Only the numbers themselves tell it from what is dark on purpose, and they take longer.
    tick = replace(env, tick=env.tick + _TICKS)
    return [
        label
        for part, planes in swap.runner.try_out(tick, raw=True)
        if part.unit.subgraph.name in dark and planes is not None
        for label, plane in zip(part.unit.kernel.outputs, planes, strict=True)
        if np.isnan(plane).all()
    ]


def _has_dark_channel(values: npt.NDArray[Any]) -> bool:
    """Whether these are pixels of which a channel is 0 everywhere."""
    return values.dtype == np.uint8 and not values.any(axis=(0, 1)).all()


def _not_a_number(label: str, places: Mapping[str, Span]) -> Diagnostic:
    statement, _, output = label.rpartition(".")
    words = f"{output} of {statement.partition(':')[0]} is not a number at any pixel, so it would be black"
    hint = "look for 0/0, or a root or logarithm of what is below 0"
    return Diagnostic("error", "not-a-number", words, places.get(statement), hint)
