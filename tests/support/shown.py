"""Patches that ship, and what the processor shows of them. What shows them otherwise is compared with that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from tests.support.choices import on_processor
from weft.backends.registry import load_registry
from weft.backends.select import Choice
from weft.errors import Source
from weft.runtime.compiling.stages import Build, Request, build
from weft.runtime.films.offline import Offline

Pixels: TypeAlias = npt.NDArray[np.int_]

SIZE = {"width": 128.0, "height": 72.0}

# Not the very first, in which edges lie on the centres of pixels, and fall to either side.
FRAMES = (3, 6)


class Shown(NamedTuple):
    """A patch, the choices by which the processor plays it, and its pictures in `FRAMES`."""

    made: Build
    choices: Mapping[str, Choice]
    pictures: tuple[Pixels, ...]

    def differing(self, visual: Choice) -> list[float]:
        """The shares of the values of these pictures that another backend shows otherwise, by more than 1 of 255."""
        shown = frames(self.made, {**self.choices, "visual": visual})
        return [float((np.abs(ours - own) > 1).mean()) for ours, own in zip(shown, self.pictures, strict=True)]


def frames(made: Build, choices: Mapping[str, Choice], numbers: Sequence[int] = FRAMES) -> tuple[Pixels, ...]:
    """Some frames of a program, as numbers that can be subtracted."""
    offline = Offline(made, choices)
    return tuple(shown.astype(int) for number, shown in offline.play(offline.steps(numbers)) if number in numbers)


@cache
def built(path: Path) -> Build:
    """A patch, built once in a process."""
    return build(Request(Source(str(path), path.read_text()), load_registry().contexts))


def sized(made: Build, size: Mapping[str, float]) -> Build:
    """The same in another size, which is no part of its kernels: a window changes it while a program plays."""
    return replace(made, patch=replace(made.patch, settings={**made.patch.settings, **size}))


@cache
def expected_of(path: Path) -> Shown:
    made = sized(built(path), SIZE)
    heard = ["audio"] if any(unit.subgraph.context == "audio" and unit.subgraph.exposes for unit in made.units) else []
    choices = on_processor("vector", "visual", "compute", *heard)
    return Shown(made, choices, frames(made, choices))
