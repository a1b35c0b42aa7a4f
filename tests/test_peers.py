"""What benchmarks/peers measures by: its reference, and what it says of pictures and packages."""

import numpy as np
import pytest

from benchmarks.beside.tools import missing
from benchmarks.beside.ways import PATCHES
from benchmarks.peers import reference
from benchmarks.peers.registry import PEERS
from weft.backends.launch import Launch, picture_coords
from weft.backends.memory import StateMemory
from weft.backends.vm import ReferenceExecutor
from weft.contexts import ContextTable
from weft.errors import Source
from weft.runtime.build import build

WIDTH, HEIGHT = 48, 20
TIME = 100.3


@pytest.mark.parametrize("kernel", reference.KERNELS)
def test_the_reference_is_what_the_patch_means(kernel):
    text = (PATCHES / f"{kernel}.weft").read_text(encoding="utf-8")
    made = build(Source(kernel, text), ContextTable(), {"width": WIDTH, "height": HEIGHT})
    (unit,) = made.units
    launch = Launch((HEIGHT, WIDTH), picture_coords(WIDTH, HEIGHT, TIME))
    out = np.empty((HEIGHT, WIDTH, 4), np.uint8)
    ReferenceExecutor().load(unit.kernel).rgba8(StateMemory(unit.kernel.slots, (HEIGHT, WIDTH)), launch, out)
    assert reference.wrong(out, reference.picture(kernel, WIDTH, HEIGHT, TIME)) is None


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kernel", reference.KERNELS)
def test_the_picture_of_numpy_is_right(kernel, threads):
    prepared = PEERS["numpy"].prepare(kernel, WIDTH, HEIGHT, threads)
    prepared.draw(0.0)
    prepared.draw(TIME)
    assert reference.wrong(prepared.picture(), reference.picture(kernel, WIDTH, HEIGHT, TIME)) is None


def test_a_wrong_picture_is_found():
    expected = reference.picture("v3", WIDTH, HEIGHT, TIME)
    moved = reference.picture("v3", WIDTH, HEIGHT, TIME + 0.1)
    assert "a wrong picture" in str(reference.wrong(moved, expected))
    assert reference.wrong(expected[:-1], expected) is not None


def test_a_missing_package_is_told_with_what_helps():
    assert missing("numpy") is None
    told = missing("no_such_package", "no-such-package>=1")
    assert told == "no_such_package is not installed: pip install no-such-package>=1"
