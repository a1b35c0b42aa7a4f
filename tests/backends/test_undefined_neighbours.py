"""A pixel of an image that is NaN or infinite counts only where it has a weight: not at the centre of its neighbour,
and not along an axis that no remap moves. All machines agree about that."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.backends.test_sampling import sampling
from tests.support.c_programs import frames
from tests.support.devices import DRAWING, cuda, device, embedded_graphics, executor_on, graphics, opencl, wgpu
from tests.support.kernels import MACHINES, launch_of
from tests.support.parity.cases import Case, case_of
from tests.test_generated_parity import SecondTier
from weft.backends.executors import Executor
from weft.backends.launch import Floats, StateMemory, resample, sample
from weft.backends.vm import ReferenceExecutor

__all__ = ["cuda", "device", "embedded_graphics", "graphics", "opencl", "wgpu"]

# Sides by which places can be divided exactly, and others: there, most machines do not find the centres of all pixels.
EXACT, INEXACT = (8, 16), (22, 41)

# Where nothing moves along an axis, and where nothing but pixels is read.
UNMOVED = {
    "moved along x": "me@x ~ me@x * 0.9 + 0.03",
    "moved along y": "me@y ~ me@y * 0.83 + 0.137",
    "moved along y, by x": "me@y ~ me@y * 0.83 + me@x * 0.11",
    "a column": "me@x ~ 0.3",
    "a row": "me@y ~ 0.3",
    "a row for each column": "me@y ~ me@x",
}
ON_PIXELS = {
    "moved by pixels": "me@x ~ me@x + 0.125, me@y ~ me@y - 0.25",
    "mirrored": "me@x ~ 1 - me@x, me@y ~ 1 - me@y",
    "beyond the edges": "me@x ~ me@x * 4 - 1, me@y ~ me@y * 2 - 0.5",
    "a corner": "me@x ~ me@y * 0 - 1, me@y ~ me@x * 0 + 2",
}
BETWEEN = {"turned": "me@x ~ me@x * 0.75 + me@y * 0.125, me@y ~ me@y * 0.875 - me@x * 0.0625"}

# How far back a read goes is the same everywhere, or varies from row to row.
READS = {"the last tick": "prev(t@v)({})", "some ticks ago": "past@v(past@k ~ me@x * 3, {})"}

CASES = [
    pytest.param(shape, read, maps, id=f"{name} of {read_name}, {shape[0]} rows")
    for shape, known in ((EXACT, UNMOVED | ON_PIXELS | BETWEEN), (INEXACT, UNMOVED))
    for name, maps in known.items()
    for read_name, read in READS.items()
]


# The machines, and machine code as it is made in the background.
EXECUTORS = {**MACHINES, "second tier": SecondTier(), "second tier, short vectors": SecondTier(lanes=4)}


def image_of(shape: tuple[int, int], stripes: str = "") -> Floats:
    """An image with some pixels that are NaN or infinite, at the edges and within, alone and beside each other; or each
    other row or column of it."""
    made = np.random.default_rng(1).random(shape).astype(np.float32).astype(np.float64)
    if stripes:
        made[{"rows": np.s_[1::2], "columns": np.s_[:, 1::2]}[stripes]] = np.nan
        return made
    made[1, 1] = made[4, 9] = made[4, 10] = np.nan
    made[0, 5] = made[6, 0] = made[-1, 12] = np.inf
    made[2, 12] = made[3, -1] = -np.inf
    made[2, 13] = made[3, -2] = np.inf
    return made


@cache
def case(shape: tuple[int, int], read: str, maps: str) -> Case:
    text = f"t<v> = me@x\ncache(t, 4)::past<v>\ndisplay({read.format(maps)})\n"
    return case_of(text, moments=(0.7,), shape=shape)


def memory_of(given: Case, reals: type, stripes: str = "") -> StateMemory:
    """Memory with such an image in each tick."""
    shape = given.launches[0].shape
    memory = StateMemory(given.kernel.slots, shape, reals)
    for slot in given.kernel.slots:
        ring = memory.ring(slot.key)
        for cell in ring:
            cell[...] = image_of(shape, stripes)
    return memory


def shown(given: Case, executor: Executor, stripes: str = "") -> Floats:
    memory = memory_of(given, executor.widest, stripes)
    return np.array(executor.load(given.kernel).planes(memory, given.launches[0]), np.float64)[0]


@cache
def expected(shape: tuple[int, int], read: str, maps: str) -> Floats:
    return shown(case(shape, read, maps), ReferenceExecutor())


@pytest.mark.parametrize(("shape", "read", "maps"), CASES)
@pytest.mark.parametrize("machine", EXECUTORS)
def test_machines_agree(machine: str, shape: tuple[int, int], read: str, maps: str) -> None:
    found = shown(case(shape, read, maps), EXECUTORS[machine])
    assert not EXECUTORS[machine].refusals.take()
    np.testing.assert_allclose(found, expected(shape, read, maps), atol=1e-5)


LEFT_ALONE = {"moved along x": "rows", "a column": "rows", "moved along y": "columns", "a row": "columns"}

@pytest.mark.parametrize("name", LEFT_ALONE)
@pytest.mark.parametrize("read", [*READS.values(), "past@v(past@k ~ me@y * 3, {})"])
@pytest.mark.parametrize("machine", EXECUTORS)
def test_machines_leave_stripes_as_they_are(machine: str, read: str, name: str) -> None:
    check_stripes(EXECUTORS[machine], read, name)
    assert not EXECUTORS[machine].refusals.take()


@pytest.mark.parametrize("name", LEFT_ALONE)
@pytest.mark.parametrize("language", DRAWING)
def test_devices_leave_stripes_as_they_are(language: str, name: str, request: pytest.FixtureRequest) -> None:
    check_stripes(executor_on(language, request), READS["the last tick"], name)


def check_stripes(executor: Executor, read: str, name: str) -> None:
    """What is NaN in every second row stays there, if nothing moves along y."""
    found = shown(case(INEXACT, read, UNMOVED[name]), executor, LEFT_ALONE[name])
    np.testing.assert_array_equal(np.isnan(found), np.isnan(image_of(INEXACT, LEFT_ALONE[name])))


@pytest.mark.parametrize(("shape", "read", "maps"), CASES)
@pytest.mark.parametrize("language", DRAWING)
def test_devices_agree(
    language: str, shape: tuple[int, int], read: str, maps: str, request: pytest.FixtureRequest
) -> None:
    found = shown(case(shape, read, maps), executor_on(language, request))
    np.testing.assert_allclose(found, expected(shape, read, maps), atol=1e-4)


def test_programs_in_c_agree(tmp_path: Path) -> None:
    cases = [each.values for each in CASES]
    kernels = [(case(*each).kernel, case(*each).launches[0]) for each in cases]
    for each, frame in zip(cases, frames(kernels, tmp_path), strict=True):
        made = case(*each)
        found = frame(memory_of(made, np.float64), made.launches[0])
        np.testing.assert_allclose(found[0], expected(*each), atol=1e-5)


def test_what_the_reference_shows() -> None:
    """Along an axis that nothing moves, each row (or column) is as if it were alone."""
    image = image_of(INEXACT)
    x, y = ((np.arange(count) + 0.5) / count for count in INEXACT[::-1])
    across = expected(INEXACT, READS["the last tick"], UNMOVED["moved along x"])
    down = expected(INEXACT, READS["the last tick"], UNMOVED["moved along y"])
    for row in range(len(y)):
        alone = [sample(image[[row]], each * 0.9 + 0.03, 0.5) for each in x.tolist()]
        np.testing.assert_allclose(across[row], alone, atol=1e-12)
    for column in range(len(x)):
        alone = [sample(image[:, [column]], 0.5, each * 0.83 + 0.137) for each in y.tolist()]
        np.testing.assert_allclose(down[:, column], alone, atol=1e-12)


def test_at_a_centre_only_that_pixel_counts() -> None:
    for shape in (EXACT, INEXACT):
        image = image_of(shape)
        x, y = ((np.arange(count) + 0.5) / count for count in shape[::-1])
        found = [[sample(image, across, down) for across in x.tolist()] for down in y.tolist()]
        np.testing.assert_array_equal(found, image)
        np.testing.assert_array_equal(resample(image, shape), image)


def test_between_pixels_both_count() -> None:
    plane = np.array([[1.0, np.inf, np.nan, -np.inf]])
    assert sample(plane, 0.25, 0.5) == np.inf
    assert np.isnan([sample(plane, each, 0.5) for each in (0.5, 0.75)]).all()


@pytest.mark.parametrize("machine", MACHINES)
def test_pictures_are_sampled_by_the_same_rule(machine: str) -> None:
    picture = np.repeat(image_of(EXACT)[:, :, None], 4, 2).astype(np.float32)
    for by in (0.0, 0.125, 5.0):
        launch = launch_of(EXACT, uniforms={"x": by, "y": -by}, pictures={"p": picture})
        wanted, found = (sampling(name).planes(StateMemory(()), launch) for name in ("vm", machine))
        np.testing.assert_allclose(found, wanted, atol=1e-5)
