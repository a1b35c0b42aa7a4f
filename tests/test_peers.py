"""What benchmarks/peers and benchmarks/sound_peers measure by: their references, and what they say of tools."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import fifty_by_hand
from benchmarks.beside.tools import missing, missing_program
from benchmarks.beside.ways import PATCHES
from benchmarks.peers import reference
from benchmarks.peers.halide_peer import INSTRUCTIONS, host_target
from benchmarks.peers.registry import PEERS
from benchmarks.sound_peers import reference as sounds
from benchmarks.sound_peers.peer import BLOCK, RATE
from benchmarks.sound_peers.registry import PEERS as SOUND_PEERS
from tests.support.gl import Graphics, graphics, that_computes
from weft.backends.base import SampleBlock
from weft.backends.launch import Launch, StateMemory, picture_coords
from weft.backends.vm import ReferenceExecutor
from weft.contexts import ContextTable
from weft.errors import Source
from weft.runtime.compiling.stages import Request, build

__all__ = ["graphics", "that_computes"]

WIDTH, HEIGHT = 48, 20
TIME = 100.3

# Two stretches, neither of whole blocks.
STRETCHES = (BLOCK + 44, 212)

# An hour in, where a phase in single precision is lost.
LATE = 3600 * RATE

# Those that compile with programs of the system take a second for a large kernel.
COMPILED = ("gcc", "gcc-turned", "clang", "clang-turned", "faust-single-g++", "faust-double-g++")


@pytest.mark.parametrize("kernel", reference.KERNELS)
def test_the_reference_is_what_the_patch_means(kernel):
    text = (PATCHES / f"{kernel}.weft").read_text(encoding="utf-8")
    made = build(Request(Source(kernel, text), ContextTable(), {"width": WIDTH, "height": HEIGHT}))
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


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere, there is no context without a window by EGL")
def test_the_pictures_of_shaders_by_hand_are_right(that_computes: Graphics):
    ways = fifty_by_hand.ways_of_opengl(WIDTH, HEIGHT)
    assert len(ways) == 13
    assert len({way.name for way in ways}) == 13
    assert fifty_by_hand.share_apart(ways) <= 0.005
    for way in ways:
        with fifty_by_hand.entered(way):
            assert way.picture()[..., :3].max() > 100


def test_a_wrong_picture_is_found():
    expected = reference.picture("v3", WIDTH, HEIGHT, TIME)
    moved = reference.picture("v3", WIDTH, HEIGHT, TIME + 0.1)
    assert "a wrong picture" in str(reference.wrong(moved, expected))
    assert reference.wrong(expected[:-1], expected) is not None


def test_a_missing_package_is_told_with_what_helps():
    assert missing("numpy") is None
    told = missing("no_such_package", "no-such-package>=1")
    assert told == "no_such_package is not installed: pip install no-such-package>=1"


@pytest.mark.parametrize(
    ("hidden", "left"),
    [
        ((), "x86-64-linux-avx-avx2-avx512-avx512_cannonlake-avx512_skylake-avx512_zen4-f16c-fma-sse41"),
        (("avx512vbmi",), "x86-64-linux-avx-avx2-avx512-avx512_skylake-f16c-fma-sse41"),
        (("avx512f",), "x86-64-linux-avx-avx2-f16c-fma-sse41"),
        (("avx512f", "avx2"), "x86-64-linux-avx-f16c-fma-sse41"),
    ],
)
def test_halide_writes_no_instructions_that_the_processor_hides(hidden, left):
    says_by_its_model = "x86-64-linux-avx-avx2-avx512-avx512_cannonlake-avx512_skylake-avx512_zen4-f16c-fma-sse41"
    halide = SimpleNamespace(get_host_target=lambda: says_by_its_model)
    flags = {name: name not in hidden for names in INSTRUCTIONS.values() for name in names}
    assert host_target(halide, flags) == f"{left}-no_asserts-no_bounds_query"


@pytest.mark.parametrize("first", [0, LATE])
@pytest.mark.parametrize("kernel", sounds.KERNELS)
def test_the_reference_of_sounds_is_what_the_patch_means(kernel, first):
    text = (PATCHES / f"{kernel}.weft").read_text(encoding="utf-8")
    (unit,) = build(Request(Source(kernel, text), ContextTable())).units
    executable, memory = ReferenceExecutor().load(unit.kernel), StateMemory(unit.kernel.slots)
    # As long as a2 remembers anything.
    lead, count = (400 if kernel == "a2" and first else 0), 40
    launch = Launch((1, lead + count), {"abstime": SampleBlock(first - lead, lead + count, RATE).times})
    heard = executable.planes(memory, launch)[:, 0, lead:]
    assert sounds.wrong(heard, sounds.sound(kernel, first, count), 1e-9) is None


def sounds_right(name, kernel):
    peer = SOUND_PEERS[name]
    problem = peer.available()
    if problem:
        pytest.skip(problem)
    prepared = peer.prepare(kernel)
    first = 0
    for count in STRETCHES:
        prepared.play(count)
        expected = sounds.sound(kernel, first, count)
        assert sounds.wrong(prepared.heard(), expected, peer.tolerance) is None
        first += count


@pytest.mark.parametrize("name", [name for name in SOUND_PEERS if name == "numpy" or name.startswith("weft")])
@pytest.mark.parametrize("kernel", sounds.KERNELS)
def test_the_sounds_of_those_that_are_always_there_are_right(name, kernel):
    sounds_right(name, kernel)


@pytest.mark.parametrize("name", COMPILED)
def test_the_sound_of_what_is_compiled_is_right(name):
    sounds_right(name, "a2")
    assert sys.float_info.min / 2 > 0  # it has left the processor as it was


def test_a_wrong_sound_is_found():
    expected = sounds.sound("a3", 0, 100)
    moved = sounds.sound("a3", 1, 100)
    assert "a wrong sound" in str(sounds.wrong(moved, expected, sounds.TOLERANCE))
    assert sounds.wrong(expected[:, 1:], expected, sounds.TOLERANCE) is not None
    assert sounds.wrong(np.full_like(expected, np.nan), expected, sounds.TOLERANCE) is not None


def test_a_missing_program_is_told_with_what_helps():
    assert missing_program("python3") is None
    told = missing_program("no_such_program", package="something")
    assert told == "no_such_program is not there: apt install something"
