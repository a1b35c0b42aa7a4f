"""Programs, ready to be compared: their kernel, some launches that follow one another, and what the reference shows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tests.support.parity.author import program
from weft.backends.launch import Launch, Picture, Reals, picture_coords
from weft.backends.memory import StateMemory
from weft.backends.vm import ReferenceExecutor
from weft.codegen.base import Kernel
from weft.contexts import ContextTable
from weft.errors import Source, WeftError
from weft.runtime.build import build

# Two rows, each of some vectors of 16 with a rest behind them.
SHAPE = (2, 37)

# Two ticks in a row, and leaps to an hour and to a day later: as many as a generated program remembers.
MOMENTS = (0.7, 0.7 + 1 / 60, 3600.5, 86400.01)

FPS = 60

# What a program may be refused for: whether it is, is known only when its spindles and maps are followed.
REFUSED = frozenset({"index-out-of-range", "time-map-reaches-state"})
_ATTEMPTS = 5


@dataclass(frozen=True)
class Case:
    """A program, and what it displays by the reference: [launches, outputs, height, width]."""

    text: str
    kernel: Kernel
    launches: tuple[Launch, ...]
    expected: Reals


def case_of(text: str, moments: tuple[float, ...] = MOMENTS, shape: tuple[int, int] = SHAPE) -> Case:
    """The case of a text. Raises WeftError if there is an error in it."""
    made = build(Source("test.weft", text), ContextTable())
    (unit,) = made.units
    given = made.patch.parameter_values()
    launches = tuple(_launch(unit.kernel, given, tick, time, shape) for tick, time in enumerate(moments))
    executable = ReferenceExecutor().load(unit.kernel)
    memory = StateMemory(unit.kernel.slots, shape, np.float64)
    expected = np.stack([executable.planes(memory, launch) for launch in launches])
    return Case(text, unit.kernel, launches, expected)


def case_of_seed(seed: int) -> Case:
    """The case of program number `seed`."""
    for attempt in range(_ATTEMPTS):
        try:
            return case_of(program(seed, attempt))
        except WeftError as failure:
            if not {diagnostic.code for diagnostic in failure.diagnostics} <= REFUSED:
                raise
    raise ValueError(f"program {seed} is refused {_ATTEMPTS} times")


def picture() -> Picture:
    """What programs load: blocks of chance colours, with 8 bits a channel."""
    levels = np.random.default_rng(7).integers(0, 256, (6, 9, 4))
    return np.divide(levels, 255).astype(np.float32)


def _launch(kernel: Kernel, given: dict[str, float], tick: int, time: float, shape: tuple[int, int]) -> Launch:
    """The launch of a tick, with mouse and keys that move."""
    height, width = shape
    values = {
        **given, "width": width, "height": height, "dt": 1 / FPS, "absframe": np.floor(time * FPS + 1e-3),
        "mouse@x": 0.3 + 0.1 * tick, "mouse@y": 0.55, "mouse@down": tick % 2, "mouse@left": tick % 2,
        "mouse@wheel": tick // 2, "key@space": tick > 1,
    }  # fmt: skip
    return Launch(
        shape=shape,
        coords=picture_coords(width, height, time),
        uniforms={name: float(values.get(name, 0)) for name in kernel.uniforms},
        pictures=dict.fromkeys(kernel.pictures, picture()),
    )
