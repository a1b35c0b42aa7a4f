"""Bilinear sampling, and samples by their numbers: the same for single places and for arrays."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tests.support.exprs import Exprs, lowered
from tests.support.kernels import MACHINES, agree, compiled, launch_of
from weft.backends.executors import Executable
from weft.backends.launch import StateMemory, fetch, fetch_all, resample, sample

PLANE = np.array([[0.0, 1, 2], [10, 11, 12]])


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [
        (1 / 6, 0.25, 0),
        (0.5, 0.25, 1),
        (1 / 3, 0.25, 0.5),
        (5 / 6, 0.5, 7),
        (0, 0, 0),
        (1, 1, 12),
        (-9, 0.25, 0),
        (9, 0.25, 2),
        (np.inf, np.inf, 12),
        (-np.inf, 1, 10),
        (np.nan, 1, 10),
        (0.5, np.nan, 1),
    ],
)
def test_places(x, y, expected):
    assert sample(PLANE, x, y) == pytest.approx(expected, abs=1e-14)


def test_resampling_to_the_same_size_changes_nothing():
    picture = np.random.default_rng(1).random((5, 7))
    np.testing.assert_allclose(resample(picture, (5, 7)), picture, rtol=1e-13)


PLACES = st.one_of(st.floats(-0.5, 1.5), st.sampled_from([0.0, 1.0, np.inf, -np.inf, np.nan]))


@cache
def sampling(machine: str) -> Executable:
    """What samples a picture, with places that vary and that do not, on a machine."""
    e = Exprs()
    moved = e.picture("p", e.coord("x") + e.uniform("x"), e.coord("y") + e.uniform("y"), plane=1)
    still = e.picture("p", e.uniform("x"), e.coord("y"), plane=3)
    return MACHINES[machine].load(compiled(lowered(moved, still)))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("size", [(1, 1), (1, 5), (5, 1), (3, 4)])
@given(x=PLACES, y=PLACES)
def test_machines_agree(machine, size, x, y):
    picture = np.random.default_rng(2).random((*size, 4)).astype(np.float32)
    launch = launch_of((2, 5), uniforms={"x": x, "y": y}, pictures={"p": picture})
    expected, found = (sampling(name).planes(StateMemory(()), launch) for name in ("vm", machine))
    assert agree(machine, found, expected)


def test_pictures_need_not_lie_in_one_piece():
    e = Exprs()
    made = compiled(lowered(e.picture("p", e.coord("x"), e.coord("y"), plane=2)))
    picture = np.random.default_rng(2).random((6, 10, 4)).astype(np.float32)[::2, ::2]
    for name, machine in MACHINES.items():
        got = machine.load(made).planes(StateMemory(()), launch_of((3, 5), pictures={"p": picture}))
        assert agree(name, got[0], picture[:, :, 2])


SOUND = np.random.default_rng(3).uniform(-1, 1, (1, 7, 2)).astype(np.float32)
NUMBERS = [0.0, -0.0, 0.9, 1.0, 5.999, 6.0, 6.9, 7.0, 7.1, -1e-9, -1.0, 1e9, -1e9, 1e30, -1e30, np.inf, -np.inf, np.nan]


def test_a_sample_by_its_number():
    samples = SOUND[0, :, 1]
    wanted = [samples[int(number)] if 0 <= number < 7 else 0.0 for number in NUMBERS]
    assert [fetch(samples, number) for number in NUMBERS] == wanted
    np.testing.assert_array_equal(fetch_all(samples, np.array(NUMBERS)), wanted)


@cache
def fetching(machine: str) -> Executable:
    """What reads samples by numbers that vary by element, by row, and that do not."""
    e = Exprs()
    number = e.uniform("n")
    by_element, by_row = number + e.coord("x") * 0 + e.coord("y") * 0, number + e.coord("y") * 0
    places = ((by_element, 1), (by_row, 0), (number, 1))
    return MACHINES[machine].load(compiled(lowered(*(e.fetch("sound:1:s", *place) for place in places))))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("number", NUMBERS)
def test_machines_agree_about_samples(machine, number):
    found = fetching(machine).planes(
        StateMemory(()), launch_of((2, 9), uniforms={"n": number}, pictures={"sound:1:s": SOUND})
    )  # fmt: skip
    near = np.float32(number) if MACHINES[machine].widest == np.float32 else number
    wanted = [fetch(SOUND[0, :, 1], near), fetch(SOUND[0, :, 0], near), fetch(SOUND[0, :, 1], number)]
    np.testing.assert_array_equal(found, np.broadcast_to(np.array(wanted)[:, None, None], (3, 2, 9)))
