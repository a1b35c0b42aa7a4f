"""The samples that pictures and numbers read: which moment has which sample, and which strand has which ring."""

from __future__ import annotations

import numpy as np
import pytest

from tests.runtime.sound.hall import compiled
from weft.errors import WeftError
from weft.names import StrandRef
from weft.runtime.sound.mixer import Recent, write

RATE = 1000.0
LENGTH = 100


def played(count: int, newest: int | None = None) -> Recent:
    """A strand `s@v` whose sample n is n + 1, played so far; `newest` is the last that is complete."""
    rings = np.zeros((1, LENGTH), np.float32)
    recent = Recent(rings, RATE, lambda: count - 1 if newest is None else newest)
    row = recent.rows(compiled("s<v> = phasor(1)\naudio(s@v)\ndisplay(s@v)\n"))["s@v"]
    for first in range(0, count, 7):
        write(rings[row], first, np.arange(first, min(first + 7, count)) + 1.0)
    return recent


def read(recent: Recent, seconds: object) -> np.ndarray:
    return np.asarray(recent.getter(StrandRef("s", "v"))(np.asarray(seconds)))


def test_each_moment_has_the_sample_that_began_last() -> None:
    recent = played(50)
    assert read(recent, np.array([0, 1, 20, 49]) / RATE).tolist() == [1, 2, 21, 50]
    assert read(recent, np.array([20.3, 20.9]) / RATE).tolist() == [21, 21]
    # What a division makes of a whole number of samples.
    assert read(recent, np.arange(50) * (1 / RATE)).tolist() == list(range(1, 51))


def test_before_the_start_and_what_is_no_moment_is_0() -> None:
    recent = played(50)
    before = [-1 / RATE, -0.5, -1e300, -np.inf, np.nan]
    assert not read(recent, before).any()
    assert read(recent, np.nan) == 0


def test_what_is_yet_to_come_is_the_newest() -> None:
    assert read(played(50), [50 / RATE, 3.0, 1e300, 1.7e308, np.inf]).tolist() == [50] * 5
    assert read(played(60, newest=49), [55 / RATE]).tolist() == [50], "what is being written is not read"
    assert read(played(0), [0.0, 1.0, np.inf]).tolist() == [0, 0, 0]


def test_what_is_too_long_ago_is_0() -> None:
    count = 250
    recent = played(count)
    kept = np.arange(count) / RATE
    assert read(recent, kept).tolist() == [n + 1 if n >= count - LENGTH else 0 for n in range(count)]


def test_any_shape_is_read_at_once() -> None:
    recent = played(50)
    moments = np.arange(12).reshape(3, 4) / RATE
    assert np.array_equal(read(recent, moments), np.arange(12).reshape(3, 4) + 1)
    assert read(recent, 0.004).shape == ()


@pytest.mark.parametrize("first", [0, 60, 95, 100, 1000 * LENGTH + 99])
@pytest.mark.parametrize("count", [0, 1, 5, 99])
def test_writing_wraps_around(first: int, count: int) -> None:
    ring = np.full(LENGTH, -1, np.float32)
    write(ring, first, np.arange(count, dtype=np.float64))
    expected = np.full(LENGTH, -1)
    for number in range(count):
        expected[(first + number) % LENGTH] = number
    assert ring.tolist() == expected.tolist()


# --- rings ------------------------------------------------------------------------------------------------------------


def heard(*names: str) -> str:
    """A program in which these strands of sound are shown."""
    bound = "".join(f"{name}<v> = phasor(1)\n" for name in names)
    total = " + ".join(f"{name}@v" for name in names)
    return f"{bound}audio({total})\ncompute({total})\n"


def test_a_strand_keeps_its_ring_as_long_as_there_are_others() -> None:
    recent = Recent(np.zeros((4, LENGTH), np.float32), RATE, lambda: 0)
    first = recent.rows(compiled(heard("a", "b")))
    assert sorted(first) == ["a@v", "b@v"]
    assert recent.rows(compiled(heard("c"))) == {"c@v": 2}
    assert recent.rows(compiled(heard("b", "a", "d"))) == {**first, "d@v": 3}


def test_a_new_strand_takes_the_ring_that_nobody_has_asked_for_for_the_longest_time() -> None:
    rings = np.zeros((3, LENGTH), np.float32)
    recent = Recent(rings, RATE, lambda: LENGTH - 1)
    for names in (("a", "b"), ("c",), ("a",)):
        recent.rows(compiled(heard(*names)))
    rings[:] = 1
    assert recent.rows(compiled(heard("a", "d"))) == {"a@v": 0, "d@v": 1}
    assert recent.getter(StrandRef("d", "v"))(0.05) == 0, "what another strand has left is not heard"
    assert recent.getter(StrandRef("b", "v"))(0.05) == 0, "it has no ring any more"
    assert recent.getter(StrandRef("c", "v"))(0.05) == 1


def test_a_program_with_more_strands_than_rings_is_refused() -> None:
    recent = Recent(np.zeros((2, LENGTH), np.float32), RATE, lambda: 0)
    recent.rows(compiled(heard("a", "b")))
    with pytest.raises(WeftError) as caught:
        recent.rows(compiled(heard("a", "b", "c")))
    assert caught.value.diagnostics[0].code == "too-many-heard"
    for name in "pqrstuvw":
        recent.rows(compiled(heard("a", name)))
