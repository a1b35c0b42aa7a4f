"""Patches that ship, and what the processor shows of them. What shows them otherwise is compared with that."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tests.support.choices import on_processor
from weft.backends.registry import load_registry
from weft.backends.select import Choice
from weft.errors import Source
from weft.runtime.build import Build, build
from weft.runtime.offline import Offline

SIZE = {"width": 128.0, "height": 72.0}

# Not at the very start, when edges lie on the centres of pixels, and fall to either side.
MOMENTS = (0.05, 0.15)


class Shown(NamedTuple):
    """A patch, the choices by which the processor plays it, and its pictures at `MOMENTS`."""

    made: Build
    choices: Mapping[str, Choice]
    pictures: tuple[npt.NDArray[np.uint8], ...]

    def differing(self, visual: Choice) -> list[float]:
        """The shares of the values of these pictures that another backend shows otherwise, by more than 1 of 255."""
        drawn = Offline(self.made, {**self.choices, "visual": visual})
        shown = [drawn.at(moment).astype(int) for moment in MOMENTS]
        return [float((np.abs(ours - own) > 1).mean()) for ours, own in zip(shown, self.pictures, strict=True)]


@cache
def expected_of(path: Path) -> Shown:
    made = build(Source(str(path), path.read_text()), load_registry().contexts, SIZE)
    heard = ["audio"] if any(unit.subgraph.context == "audio" and unit.subgraph.exposes for unit in made.units) else []
    choices = on_processor("vector", "visual", "compute", *heard)
    offline = Offline(made, choices)
    return Shown(made, choices, tuple(offline.at(moment).copy() for moment in MOMENTS))
