"""Every patch that ships compiles without a warning, and draws the same picture on both machines."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.tolerances import EDGE_SHARE
from weft.backends.registry import load_registry
from weft.backends.select import choose
from weft.errors import Source
from weft.runtime.build import Build, build
from weft.runtime.offline import Offline

FOLDER = Path(__file__).parent.parent / "patches"
PATCHES = sorted(FOLDER.rglob("*.weft"))

# Small, so that the reference machine is done in time, and odd, so that tiles end within a row.
SIZE = {"width": 31.0, "height": 17.0}


def built(path: Path) -> Build:
    return build(Source(str(path), path.read_text()), load_registry().contexts, SIZE)


def picture(made: Build, executor: str, time: float) -> np.ndarray:
    choices = choose(load_registry(), ["visual", "compute"], executor)
    return Offline(made, choices).at(time).astype(int)


@pytest.mark.parametrize("path", PATCHES, ids=lambda path: path.stem)
def test_a_shipped_patch_compiles_and_its_picture_is_right(path: Path) -> None:
    made = built(path)
    assert not made.warnings
    assert path.read_text().startswith("//"), "a patch begins with a line on what it is, or what to change first"
    for time in (0.0, 0.1):
        ours, reference = picture(made, "vector", time), picture(made, "vm", time)
        assert ours.shape == (17, 31, 4)
        assert ours[..., :3].std() > 4, "there is nothing to see"
        off = np.abs(ours - reference) > 1
        assert off.mean() <= EDGE_SHARE, f"{off.mean():.2%} of the values differ by more than 1 of 255"


@pytest.mark.parametrize("name", ["plasma", "trails", "sdf"])
def test_a_shipped_patch_moves(name: str) -> None:
    made = built(FOLDER / f"{name}.weft")
    assert not np.array_equal(picture(made, "vector", 0.1), picture(made, "vector", 1.0))


def test_the_three_to_measure_with_are_their_formulas() -> None:
    y, x = np.mgrid[0:17, 0:31]
    x, y, t = (x + 0.5) / 31, (y + 0.5) / 17, 0.5
    d = np.hypot(x - 0.5, y - 0.5)
    v = np.sin(10 * x + t) + np.sin(10 * y + 1.3 * t) + np.sin(10 * (x + y) + 0.7 * t) + np.sin(20 * d - 2 * t)
    formulas = {
        "v1": [np.sin(x * 10 * 2 * np.pi + t) / 2 + 0.5, y, np.full_like(x, 0.2)],
        "v2": [np.sin(np.pi * v + phase) / 2 + 0.5 for phase in (0, 2.094, 4.188)],
    }
    for name, planes in formulas.items():
        expected = np.stack([np.floor(np.clip(p, 0, 1) * 255 + 0.5) for p in planes], axis=-1)
        found = picture(built(FOLDER / "bench" / f"{name}.weft"), "vm", t)
        assert np.abs(found[..., :3] - expected).max() <= 1
