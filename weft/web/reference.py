"""Values of the reference machine for a page to compare itself with: pixels and samples of the first seconds."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weft.backends.base import Env, SampleBlock
from weft.backends.cpu import CpuVisual
from weft.backends.launch import OPAQUE, Value, channels, level
from weft.backends.registry import load_registry
from weft.backends.select import Choice, choose
from weft.codegen.kernel import LOOP_STEPS, Kernel
from weft.codegen.values import Node, Section
from weft.contexts import AUDIO, COMPUTE, VISUAL
from weft.ir.rates import Rate
from weft.media.films import header as film_header
from weft.names import is_live, live_of, shown as displayed
from weft.runtime.compiling.stages import Build
from weft.runtime.films.offline import Offline, Samples, raw
from weft.runtime.sound.mixer import BLOCK
from weft.sources import FILM
from weft.web.description import reads_each_other

Json: TypeAlias = Any

Picture: TypeAlias = NDArray[Any]

SECONDS = 3.0
"""The values are from the first seconds."""

VALUES = 200
"""How many pixels are compared, and how many samples."""

# The widths of the pictures that are compared: patches look the same at any size, and the reference machine is slow.
_WIDTHS = (48, 32, 24, 16)

# How many values of kernels the reference machine computes for the pictures, and for the sound.
_WORK = 1_500_000

# What an element takes besides its values.
_EACH = 12

# Frames and samples that a patch with memory has to play from the beginning, at least.
_FEWEST_FRAMES, _FEWEST_SAMPLES = 6, 2048

# How many moments are compared of what may be computed at any of them.
_MOMENTS = 12


Pixel: TypeAlias = "tuple[int, str, int, int, list[int]]"
"""The frame, the target of its picture, x, y, and the levels of its channels."""

# How far from a pixel the picture is looked at, in its width and height.
_NEAR = 1e-6

# By how much single precision may differ from double at a pixel that is compared. Cards are less precise than a CPU.
_SINGLE = 0.15 / 255

# By how many steps of 1/255 a pixel may differ; and with a film, whose colours each browser turns into red, green and
# blue in its own way: up to 3 were found in Chromium, and up to 8 in Firefox. They interpolate its colours between its
# pixels in their own way, too, so places at which neighbours differ by more than half as much are left out.
_STEPS, _FILM_STEPS = 1, 10

# By how much a sample may differ: computed in double precision, or fed by pictures, which a card draws in single.
_COMPUTED, _FED = 1e-6, 1e-3


class ReferenceValues(NamedTuple):
    """What a page compares. `samples` are (number, channel, value), and may differ by `allowed`."""

    size: tuple[int, int]
    fps: float
    frames: list[int]
    every: bool
    """Whether all frames up to the last one have to be drawn."""
    end: int
    """The number of the sample after the last one."""
    pixels: list[Pixel]
    steps: int
    """By how many steps of 1/255 a channel of a pixel may differ."""
    samples: list[tuple[int, int, float]]
    allowed: float

    def to_json(self) -> Json:
        return self._asdict()


def moving_picture(build: Build) -> str | None:
    """A picture from outside, which is never the same twice, as a patch names it; None if there is none. A film is the
    same."""
    names = (name for unit in build.units for name in sorted(unit.pictures) if is_live(name))
    return next((displayed(name) for name in names if live_of(name).source != FILM.name), None)


def _films(build: Build) -> list[str]:
    """The names of the films that pictures show."""
    names = (name for unit in build.units for name in sorted(unit.pictures) if is_live(name))
    return [name for name in names if live_of(name).source == FILM.name]


def small_size(build: Build) -> dict[str, float]:
    """The settings of a picture that the reference machine draws in time."""
    width, height = build.compiled.size
    units = [unit for unit in build.units if build.contexts[unit.subgraph.context].sweeps_plane]
    work = _FEWEST_FRAMES * sum(work_of(unit.kernel) for unit in units)

    def shape(small: int) -> tuple[int, int]:
        return min(width, small), max(1, round(height * min(width, small) / width))

    suitable = (shape(each) for each in _WIDTHS if math.prod(shape(each)) * work <= _WORK)
    columns, rows = next(suitable, shape(_WIDTHS[-1]))
    return {"width": float(columns), "height": float(rows)}


def reference(build: Build, seed: int = 1) -> ReferenceValues:
    """The values of a program, which is compiled for a small picture. Raises WeftError for what cannot be computed."""
    chosen = random.Random(seed)
    settings, targets = build.patch.settings, [each.target for each in build.compiled.pictures]
    together, exact = reads_each_other(build), _machines("vm")
    drawn = [unit for unit in build.units if not build.contexts[unit.subgraph.context].streams]
    every = together or any(unit.kernel.remembers for unit in drawn)
    frames = _frames(build, every, together, chosen) if targets else []
    films = [film_header(Path(str(live_of(name).args[0]))) for name in _films(build)]
    near = max([_NEAR, *(1 / min(film.width, film.height) for film in films)])
    steps = _FILM_STEPS if films else _STEPS
    heard: list[Samples] = []
    pixels: list[Pixel] = []
    for target in targets:
        # In step with the frames, all of the sound that they need is computed anyway.
        record = (lambda block: heard.append(block.copy())) if together and target == targets[0] else None
        shown = _shown(Offline(build, exact, window=target), frames, together, record)
        others = [
            _shown(Offline(build, _moved(_machines("vector"), by), window=target), frames, together)
            for by in (-near, near)
        ]
        most = steps / 2 / 255 if films else _SINGLE
        pixels += _pixels(target, shown, others, most, VALUES // len(targets), chosen)
    if not heard:
        heard += _heard(Offline(build, exact), build)
    end = sum(map(len, heard))
    pixels.sort(key=lambda each: each[0])
    fed = any(unit.feeds for unit in build.units)
    return ReferenceValues(
        build.compiled.size, settings["fps"], frames, every, end, pixels, steps, _samples(heard, chosen),
        _FED if fed else _COMPUTED,
    )  # fmt: skip


def _machines(name: str) -> Mapping[str, Choice]:
    """What computes pictures, sounds and numbers, all by the machine of this name."""
    names = ",".join(f"{context.name}={name}" for context in (VISUAL, AUDIO, COMPUTE))
    choices = choose(load_registry(), [VISUAL.name, AUDIO.name, COMPUTE.name], names)
    pictures = raw(choices[VISUAL.name])
    assert pictures is not None, "the CPU gives values"
    return {**choices, VISUAL.name: pictures}


def _moved(choices: Mapping[str, Choice], by: float) -> dict[str, Choice]:
    """The same with pixels that are a little further right and below."""
    visual = choices[VISUAL.name]
    backend = visual.backend
    assert issubclass(backend, CpuVisual)

    def coords(self: CpuVisual, env: Env, shape: tuple[int, int]) -> Mapping[str, Value]:
        found = backend.coords(self, env, shape)
        return {**found, "x": np.asarray(found["x"]) + by, "y": np.asarray(found["y"]) + by}

    moved = type(f"{backend.__name__}Moved", (backend,), {"coords": coords})
    return {**choices, VISUAL.name: replace(visual, backend=moved)}


def _shown(
    offline: Offline, frames: list[int], together: bool, record: Callable[[Samples], object] | None = None
) -> dict[int, Picture]:
    """The values of the wanted frames, [height, width, outputs], by their numbers. `record` gets the sound that is
    computed meanwhile."""
    if together:
        film = offline.film(frames, range(frames[-1] + 1), record or (lambda block: None))
        shown = film.frames
    else:
        shown = offline.play(offline.steps(frames))
    return {number: picture.copy() for number, picture in shown if number in frames}


def _pixels(
    target: str, shown: Mapping[int, Picture], others: Sequence[Mapping[int, Picture]], most: float, count: int,
    chosen: random.Random,
) -> list[Pixel]:
    """Some pixels of a picture, of those at which single precision shows what double does up to `most`, even a little
    next to them. At an edge, or where a patch magnifies the last digit, the two differ, and both are right."""
    clear = {}
    for number, exact in shown.items():
        with np.errstate(invalid="ignore"):
            far = [np.abs(np.clip(exact, 0, 1) - np.clip(each[number], 0, 1)) > most for each in others]
        clear[number] = np.argwhere(~np.any(far, axis=(0, 3)))
    numbers = [number for number, places in clear.items() if len(places)]
    found: list[Pixel] = []
    for _ in range(count if numbers else 0):
        number = chosen.choice(numbers)
        row, column = map(int, chosen.choice(clear[number]))
        values = shown[number][row, column]
        levels = [level(float(values[channel])) for channel in channels(len(values))]
        found.append((number, target, column, row, [*levels, *[OPAQUE] * (4 - len(levels))]))
    return found


# What is computed.


def work_of(kernel: Kernel) -> int:
    """About how many values a kernel computes for each element, with those of its stages."""
    own = _work(kernel.section(Rate.ELEMENT)) + _work(kernel.section(Rate.ROW)) // 8
    return _EACH + own + sum(work_of(stage) >> 2 * stage.level for stage in kernel.stages)


def _work(section: Section) -> int:
    return sum(map(_work_of_value, section.nodes))


def _work_of_value(node: Node) -> int:
    if node.op != "loop":
        return 1
    first, last = (arg.attr if arg.op == "const" else None for arg in node.args[:2])
    steps = 16.0 if first is None or last is None else min(max(last - first + 1, 0.0), float(LOOP_STEPS))
    return max(1, int(steps)) * max(1, sum(map(_work_of_value, node.attr.nodes)))


def _frames(build: Build, every: bool, together: bool, chosen: random.Random) -> list[int]:
    """The frames that are compared, in order."""
    fps = build.patch.settings["fps"]
    width, height = build.compiled.size
    units = [unit for unit in build.units if build.contexts[unit.subgraph.context].sweeps_plane]
    sounds = [unit for unit in build.units if build.contexts[unit.subgraph.context].streams]
    work = width * height * sum(work_of(unit.kernel) for unit in units)
    work += sum(work_of(unit.kernel) for unit in sounds) * int(build.patch.settings["rate"] / fps) if together else 0
    last = max(1, int(SECONDS * fps))
    affordable = _WORK // work
    if every:
        length = min(last, max(_FEWEST_FRAMES, affordable))
        return sorted(chosen.sample(range(length), min(length, _MOMENTS)))
    return sorted({0, *chosen.sample(range(last), min(last, max(2, min(_MOMENTS, affordable))))})


def _heard(offline: Offline, build: Build) -> list[Samples]:
    """The first samples of a sound that depends on nothing else, in blocks."""
    streams = [unit for unit in build.units if build.contexts[unit.subgraph.context].streams]
    if not streams or not offline.sounds:
        return []
    rate, block = build.patch.settings["rate"], SampleBlock(0, 0, build.patch.settings["rate"])
    count = offline.channels if any(block.differs(unit.kernel) for unit in streams) else 1
    work = count * sum(work_of(unit.kernel) for unit in streams)
    length = min(int(SECONDS * rate), max(_FEWEST_SAMPLES, _WORK // work)) // BLOCK * BLOCK
    return [each.copy() for each in offline.samples(0.0, length / rate)]


def _samples(heard: list[Samples], chosen: random.Random) -> list[tuple[int, int, float]]:
    """Some of the samples, in order."""
    if not heard:
        return []
    samples = np.concatenate(heard)
    numbers = sorted(chosen.sample(range(len(samples)), min(VALUES, len(samples))))
    sides = [chosen.randrange(samples.shape[1]) for _ in numbers]
    return [(number, side, float(samples[number, side])) for number, side in zip(numbers, sides, strict=True)]
