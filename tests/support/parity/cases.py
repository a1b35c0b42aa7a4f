"""Programs, ready to be compared: their kernel, some launches that follow one another, and what the reference shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from tests.support.beats import changing_beats
from tests.support.parity.author import program, sound, voice
from tests.support.parity.bundles import bundled, bundled_sound
from tests.support.tolerances import GENERATED, HEARD, Tolerance
from weft.backends.launch import Floats, Launch, Picture, StateMemory, picture_coords
from weft.backends.vm import ReferenceExecutor
from weft.codegen.kernel import Kernel
from weft.contexts import ContextTable
from weft.errors import Source, WeftError
from weft.names import is_sound
from weft.runtime.compiling.stages import Request, build

# Two rows, each of some vectors of 16 and a remainder.
SHAPE = (2, 37)

# Two ticks in a row, and leaps to an hour and to a day later: as many as a generated program remembers.
MOMENTS = (0.7, 0.7 + 1 / 60, 3600.5, 86400.01)

FPS = 60

# What a program may be refused for: whether it is, is known only when its spindles and maps are followed.
REFUSED = frozenset({"index-out-of-range", "time-map-reaches-state", "map-reaches-state"})

# The sounds' launches: several in a row, then leaps. The reference computes sample by sample, so only one sound in so
# many is played for longer than a chunk.
RATE = 48_000
SOUND_MOMENTS = ((0.7, 300), (0.7 + 300 / RATE, 3), (3600.5, 40), (86400.01, 25))
SHORT_MOMENTS = ((0.7, 21), (0.7 + 21 / RATE, 3), (3600.5, 9), (86400.01, 4))
EACH_LONG = 20

# One sound in this many uses everything that pictures use; the others use loops and memory.
_EACH_PLAIN = 15
_ATTEMPTS = 5

# One picture in this many is written with bundles, and one sound in this many.
_EACH_BUNDLED = 4
_EACH_SOUND_BUNDLED = 30

# One picture in this many is compared in both its forms. The bytes come from the same code as the outputs, packed at
# its end, and outputs are compared far more closely; but each form is a program that has to be compiled.
_EACH_PACKED = 5

# How many cases are kept: as many as several machines are tried with, one after another.
_KEPT = 150


@dataclass(frozen=True)
class Case:
    """A program, and what is launched of it."""

    text: str
    kernel: Kernel
    launches: tuple[Launch, ...]
    packed: bool = True
    """Whether the bytes of its picture are compared as well."""

    @cached_property
    def expected(self) -> Floats:
        """What it displays by the reference: [launches, outputs, height, width]."""
        executable = ReferenceExecutor().load(self.kernel)
        memory = StateMemory(self.kernel.slots, (1, 1) if self.is_sound else self.launches[0].shape, np.float64)
        return np.stack([executable.planes(memory, launch) for launch in self.launches])

    @property
    def is_sound(self) -> bool:
        return self.kernel.tick == "element"

    @property
    def tolerance(self) -> Tolerance:
        """Within which a value is near."""
        return HEARD if self.is_sound else GENERATED


def sound_case_of(text: str, moments: Sequence[tuple[float, int]] = SOUND_MOMENTS) -> Case:
    """The case of a sound, with all launches as one: [1, outputs, 1, samples]. Raises WeftError if there is an error
    in it."""
    made = build(Request(Source("test.weft", text), ContextTable()))
    (unit,) = made.units
    times = np.concatenate([start + np.arange(count) / RATE for start, count in moments])
    launch = _sound_launch(unit.kernel, made.patch.parameter_values(), times)
    return Case(text, unit.kernel, (launch,))


def case_of(
    text: str, moments: tuple[float, ...] = MOMENTS, shape: tuple[int, int] = SHAPE, packed: bool = True
) -> Case:
    """The case of a text. Raises WeftError if there is an error in it."""
    made = build(Request(Source("test.weft", text), ContextTable()))
    (unit,) = made.units
    given = made.patch.parameter_values()
    launches = tuple(_launch(unit.kernel, given, tick, time, shape) for tick, time in enumerate(moments))
    return Case(text, unit.kernel, launches, packed)


@lru_cache(_KEPT)
def case_of_seed(seed: int) -> Case:
    """The case of program number `seed`."""
    text = bundled_text if seed % _EACH_BUNDLED == _EACH_BUNDLED - 1 else program
    packed = seed % _EACH_PACKED == 0
    return _attempted(lambda attempt: case_of(text(seed, attempt), packed=packed), f"program {seed}")


@lru_cache(_KEPT)
def sound_case_of_seed(seed: int) -> Case:
    """The case of sound number `seed`."""
    text = voice if seed % _EACH_PLAIN else sound
    if seed % _EACH_SOUND_BUNDLED == _EACH_SOUND_BUNDLED - 1:
        text = bundled_sound_text
    moments = SHORT_MOMENTS if seed % EACH_LONG else SOUND_MOMENTS
    return _attempted(lambda attempt: sound_case_of(text(seed, attempt), moments), f"sound {seed}")


def bundled_text(seed: int, attempt: int) -> str:
    return bundled(seed, attempt)[0]


def bundled_sound_text(seed: int, attempt: int) -> str:
    return bundled_sound(seed, attempt)[0]


def _attempted(make: Callable[[int], Case], name: str) -> Case:
    for attempt in range(_ATTEMPTS):
        try:
            return make(attempt)
        except WeftError as failure:
            if not {diagnostic.code for diagnostic in failure.diagnostics} <= REFUSED:
                raise
    raise ValueError(f"{name} is refused {_ATTEMPTS} times")


def picture() -> Picture:
    """What programs load: blocks of chance colours, with 8 bits a channel."""
    levels = np.random.default_rng(7).integers(0, 256, (6, 9, 4))
    return np.divide(levels, 255).astype(np.float32)


def grain() -> Picture:
    """The sound that programs load: chance, with 16 bits a sample."""
    levels = np.random.default_rng(8).integers(-(2**15), 2**15, (1, 2000, 2))
    return np.divide(levels, 2**15).astype(np.float32)


def sampled(kernel: Kernel) -> dict[str, Picture]:
    """The pictures and sounds of a kernel, by their names."""
    return {name: grain() if is_sound(name) else picture() for name in kernel.pictures}


def stored_count(name: str) -> float:
    """The number of samples, if that is what a uniform is."""
    return float(grain().shape[1]) if is_sound(name) else 0.0


def _launch(kernel: Kernel, given: dict[str, float], tick: int, time: float, shape: tuple[int, int]) -> Launch:
    """The launch of a tick, with mouse and keys that move."""
    height, width = shape
    values = {
        **given, **changing_beats(0.2, 97, 131), "width": width, "height": height,
        "dt": 1 / FPS, "absframe": np.floor(time * FPS + 1e-3),
        "mouse@x": 0.3 + 0.1 * tick, "mouse@y": 0.55, "mouse@down": tick % 2, "mouse@left": tick % 2,
        "mouse@wheel": tick // 2, "key@space": tick > 1,
    }  # fmt: skip
    return Launch(
        shape=shape,
        coords=picture_coords(width, height, time),
        uniforms={name: stored_count(name) or float(values.get(name, 0)) for name in kernel.uniforms},
        pictures=sampled(kernel),
    )


def _sound_launch(kernel: Kernel, given: dict[str, float], times: Floats) -> Launch:
    """The launch of these samples. What comes from outside is led to where it moves."""
    ramp = np.linspace(0, 1, len(times))
    values = {"mouse@x": 0.3 + 0.4 * ramp, "mouse@y": 0.55, "mouse@down": ramp > 0.6, "key@space": ramp > 0.3, **given}
    coords = {"abstime": times, "x": 0.5, "y": 0.5, "channel": 1.0}
    coords |= {name: np.asarray(values.get(name, 0.0), np.float64) for name, _ in kernel.coords if name not in coords}
    numbers = {"dt": 1 / RATE, "width": 37, "height": 2, **changing_beats(0.2, 97, 131)}
    return Launch(
        shape=(1, len(times)),
        coords=coords,
        uniforms={name: stored_count(name) or float(numbers.get(name, given.get(name, 0))) for name in kernel.uniforms},
        pictures=sampled(kernel),
    )
