"""Values of the reference machine for a page to compare itself with: pixels and samples of the first seconds."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from weft.backends.base import SampleBlock
from weft.backends.registry import load_registry
from weft.backends.select import Choice, choose
from weft.codegen.kernel import LOOP_STEPS, Kernel
from weft.codegen.values import Node, Section
from weft.contexts import AUDIO, COMPUTE, VISUAL
from weft.ir.rates import Rate
from weft.runtime.compiling.stages import Build
from weft.runtime.films.offline import Offline
from weft.runtime.sound.mixer import BLOCK

Json: TypeAlias = Any

SECONDS = 3.0
"""The values are from the first seconds."""

VALUES = 200
"""How many pixels are compared, and how many samples."""

# The pixels of the pictures that are compared: patches look the same at any size, and the reference machine is slow.
_WIDTH = 48

# How many values of kernels the reference machine computes for the pictures, and for the sound.
_WORK = 4_000_000

# Frames and samples that a patch with memory has to play from the beginning, at least.
_FEWEST_FRAMES, _FEWEST_SAMPLES = 8, 2048

# How many moments are compared of what may be computed at any of them.
_MOMENTS = 12


class ReferenceValues(NamedTuple):
    """What a page compares. `pixels` are (frame, target, x, y, levels), `samples` are (number, channel, value)."""

    size: tuple[int, int]
    fps: float
    frames: list[int]
    every: bool
    """Whether all frames up to the last one have to be drawn."""
    together: bool
    """Whether the sound and the frames read each other, and have to be computed in step."""
    end: int
    """The number of the sample after the last one."""
    pixels: list[tuple[int, str, int, int, list[int]]]
    samples: list[tuple[int, int, float]]

    def to_json(self) -> Json:
        return self._asdict()


def small_size(build: Build) -> dict[str, float]:
    """The settings of a picture that the reference machine draws in time."""
    width, height = build.compiled.size
    small = min(width, _WIDTH)
    return {"width": float(small), "height": float(max(1, round(height * small / width)))}


def reference(build: Build, seed: int = 1) -> ReferenceValues:
    """The values of a program in a small size. Raises WeftError for what cannot be computed."""
    chosen = random.Random(seed)
    choices = _reference_machines()
    targets = [each.target for each in build.compiled.pictures]
    offline = Offline(build, choices)
    compiled, fps, rate = build.compiled, build.patch.settings["fps"], build.patch.settings["rate"]
    streams = [unit for unit in compiled.units if compiled.contexts[unit.subgraph.context].streams]
    together = any(unit.feeds or unit.subgraph.exposes for unit in streams) or bool(compiled.views or compiled.heard)
    every = offline.remembers or together
    frames = _frames(build, fps, every, together, chosen) if targets else []
    pixels: list[tuple[int, str, int, int, list[int]]] = []
    heard: dict[int, np.ndarray[Any, Any]] = {}
    places = _places(frames, targets, build.compiled.size, chosen)
    record, count = _recorder(heard)
    if together and frames:
        film = offline.film(frames, range(frames[-1] + 1), record)
        pixels += _looked_at(film.frames, places[targets[0]], targets[0])
        end = count()
    else:
        if frames:
            steps = offline.steps(frames)
            pixels += _looked_at(offline.play(steps), places[targets[0]], targets[0])
        end = _hear(Offline(build, choices), build, rate, heard) if streams and offline.sounds else 0
    for target in targets[1:]:
        other = Offline(build, choices, window=target)
        shown = (other.film(frames, range(frames[-1] + 1), lambda block: None).frames if together
                 else other.play(other.steps(frames)))  # fmt: skip
        pixels += _looked_at(shown, places[target], target)
    samples = _samples(heard, chosen)
    pixels.sort(key=lambda each: each[0])
    return ReferenceValues(compiled.size, fps, frames, every, together, end, pixels, samples)


def _reference_machines() -> Mapping[str, Choice]:
    names = ",".join(f"{context}=vm" for context in (VISUAL.name, AUDIO.name, COMPUTE.name))
    registry = load_registry()
    return choose(registry, [VISUAL.name, AUDIO.name, COMPUTE.name], names)


# What is computed.


def work_of(kernel: Kernel) -> int:
    """About how many values a kernel computes for each element, with those of its stages."""
    own = _work(kernel.section(Rate.ELEMENT)) + _work(kernel.section(Rate.ROW)) // 8
    return max(1, own + sum(work_of(stage) >> 2 * stage.level for stage in kernel.stages))


def _work(section: Section) -> int:
    return sum(map(_work_of_value, section.nodes))


def _work_of_value(node: Node) -> int:
    if node.op != "loop":
        return 1
    first, last = (arg.attr if arg.op == "const" else None for arg in node.args[:2])
    steps = 16.0 if first is None or last is None else min(max(last - first + 1, 0.0), float(LOOP_STEPS))
    return max(1, int(steps)) * max(1, sum(map(_work_of_value, node.attr.nodes)))


def _frames(build: Build, fps: float, every: bool, together: bool, chosen: random.Random) -> list[int]:
    """The frames that are compared, in order."""
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


def _places(
    frames: list[int], targets: list[str], size: tuple[int, int], chosen: random.Random
) -> dict[str, dict[int, list[tuple[int, int]]]]:
    """The pixels of each picture, by its target and by frame."""
    found: dict[str, dict[int, list[tuple[int, int]]]] = {target: {} for target in targets}
    for _ in range(VALUES if frames and targets else 0):
        place = chosen.randrange(size[0]), chosen.randrange(size[1])
        found[chosen.choice(targets)].setdefault(chosen.choice(frames), []).append(place)
    return found


def _looked_at(
    pictures: Iterable[tuple[int, Any]], places: Mapping[int, list[tuple[int, int]]], target: str
) -> list[tuple[int, str, int, int, list[int]]]:
    found: list[tuple[int, str, int, int, list[int]]] = []
    for number, picture in pictures:
        height, width = picture.shape[:2]
        for x, y in places.get(number, ()):
            column, row = min(x, width - 1), min(y, height - 1)
            found.append((number, target, column, row, [int(level) for level in picture[row, column]]))
    return found


def _recorder(heard: dict[int, Any]) -> tuple[Callable[[Any], None], Callable[[], int]]:
    """Keeps the blocks of a sound by the number of their first sample; and how many samples came."""
    next_ = [0]

    def record(block: Any) -> None:
        heard[next_[0]] = block.copy()
        next_[0] += len(block)

    return record, lambda: next_[0]


def _hear(offline: Offline, build: Build, rate: float, heard: dict[int, Any]) -> int:
    """The first samples of a sound that depends on nothing else; gives how many they are."""
    streams = [unit for unit in build.units if build.contexts[unit.subgraph.context].streams]
    block = SampleBlock(0, 0, rate)
    channels = offline.channels if any(block.differs(unit.kernel) for unit in streams) else 1
    work = channels * sum(work_of(unit.kernel) for unit in streams)
    count = min(int(SECONDS * rate), max(_FEWEST_SAMPLES, _WORK // work)) // BLOCK * BLOCK
    at = 0
    for block_ in offline.samples(0.0, count / rate):
        heard[at] = block_.copy()
        at += len(block_)
    return at


def _samples(heard: Mapping[int, Any], chosen: random.Random) -> list[tuple[int, int, float]]:
    """Some of the samples, in order."""
    if not heard:
        return []
    all_ = np.concatenate([heard[first] for first in sorted(heard)])
    numbers = sorted(chosen.sample(range(len(all_)), min(VALUES, len(all_))))
    return [(number, channel, float(all_[number, channel]))
            for number, channel in ((number, chosen.randrange(all_.shape[1])) for number in numbers)]  # fmt: skip
