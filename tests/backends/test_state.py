"""State on each machine: rings, images, what points see, and what a reload keeps."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from tests.support.exprs import Exprs, image_slot, lowered, number_slot
from tests.support.kernels import MACHINES, compiled, launch_of
from weft.backends.launch import Launch, StateMemory, aligned_zeros, bytes_needed, slot_bytes, ticks_back
from weft.codegen.compilation import compile_points
from weft.contexts import AUDIO, VISUAL
from weft.ir.expr import StrandRef

MACHINE = pytest.mark.parametrize("machine", MACHINES)


class Player:
    """Launches a kernel again and again, with the number of the tick as the uniform `tick`."""

    def __init__(self, ir, machine, shape=(1, 1), **inputs):
        self.kernel = compiled(ir)
        self.executable = MACHINES[machine].load(self.kernel)
        self.memory = StateMemory(self.kernel.slots, shape, MACHINES[machine].widest)
        self.shape, self.inputs, self.tick = shape, inputs, 0

    def play(self):
        launch = launch_of(self.shape, uniforms={"tick": float(self.tick)}, **self.inputs)
        self.tick += 1
        return self.executable.planes(self.memory, launch)


@MACHINE
def test_a_number_is_one_tick_late(machine):
    e = Exprs()
    count = e.state("v/n", 1)
    player = Player(lowered(count, slots=[number_slot("v/n")], updates={"v/n": count + 2}), machine)
    assert [player.play().item() for _ in range(4)] == [0, 2, 4, 6]


@MACHINE
def test_reads_and_writes_of_a_tick_do_not_disturb_each_other(machine):
    e = Exprs()
    a, b = e.state("v/a", 1), e.state("v/b", 1)
    ir = lowered(
        a, b, slots=[number_slot("v/a"), number_slot("v/b")], updates={"v/a": b + 1, "v/b": a * 10}
    )  # fmt: skip
    player = Player(ir, machine)
    assert [player.play()[:, 0, 0].tolist() for _ in range(4)] == [[0, 0], [1, 0], [1, 10], [11, 10]]


@MACHINE
@pytest.mark.parametrize("kind", [number_slot, image_slot])
def test_a_ring_remembers_its_depth(machine, kind):
    e = Exprs()
    tick = e.uniform("tick")
    reads = [e.state("v/r", k) for k in (1, 2, 3)]
    ir = lowered(*reads, slots=[kind("v/r", depth=3)], updates={"v/r": tick + 1})
    player = Player(ir, machine, shape=(2, 2))
    assert [player.play()[:, 1, 1].tolist() for _ in range(5)] == [
        [0, 0, 0], [1, 0, 0], [2, 1, 0], [3, 2, 1], [4, 3, 2],
    ]  # fmt: skip


@MACHINE
@pytest.mark.parametrize("kind", [number_slot, image_slot])
@pytest.mark.parametrize("varying", [False, True])
def test_ticks_back_are_rounded_down_and_clamped(machine, kind, varying):
    e = Exprs()
    back = [1.9, 2.5, 0, -4, 99, float("inf"), float("nan")]
    apart = e.coord("x") * 0 if varying else e.number(0)
    reads = [e.state("v/r", e.uniform(str(at)) + apart) for at in range(len(back))]
    ir = lowered(*reads, slots=[kind("v/r", depth=3)], updates={"v/r": e.uniform("tick") + 1})
    player = Player(ir, machine, shape=(2, 3))
    inputs = {str(at): k for at, k in enumerate(back)}
    for tick in range(5):
        launch = launch_of((2, 3), uniforms={"tick": float(tick), **inputs})
        got = player.executable.planes(player.memory, launch)
    assert got[:, 1, 2].tolist() == [4, 3, 4, 4, 2, 2, 4]


def test_ticks_back():
    assert [ticks_back(k, 3) for k in (-1, 0.5, 1, 1.9, 3, 4, np.inf, np.nan)] == [1, 1, 1, 1, 3, 3, 3, 1]


@MACHINE
def test_planes_are_kept_apart(machine):
    e = Exprs()
    reads = [e.state("v/h", 1, plane=plane) for plane in range(3)]
    updates = {f"v/h[{plane}]": reads[plane] + 10**plane for plane in range(3)}
    player = Player(lowered(*reads, slots=[number_slot("v/h", planes=3)], updates=updates), machine)
    assert [player.play()[:, 0, 0].tolist() for _ in range(3)] == [[0, 0, 0], [1, 10, 100], [2, 20, 200]]


@MACHINE
def test_an_image_keeps_every_element(machine):
    e = Exprs()
    x, y, past = e.coord("x"), e.coord("y"), e.state("v/i", 1)
    ir = lowered(past, slots=[image_slot("v/i")], updates={"v/i": past * 0.5 + x + 10 * y})
    player = Player(ir, machine, shape=(4, 6))
    one = player.play()
    assert (one == 0).all()
    two = player.play()[0]
    np.testing.assert_allclose(two, (np.arange(6) + 0.5)[None] / 6 + 10 * (np.arange(4) + 0.5)[:, None] / 4)
    np.testing.assert_allclose(player.play()[0], two * 1.5)


@MACHINE
def test_the_old_image_is_sampled_while_the_new_one_is_written(machine):
    e = Exprs()
    x, y = e.coord("x"), e.coord("y")
    mirrored = e.state("v/i", 1, 1 - x, y)
    ir = lowered(mirrored, slots=[image_slot("v/i")], updates={"v/i": mirrored + x})
    player = Player(ir, machine, shape=(3, 4))
    x_at = (np.arange(4) + 0.5) / 4
    assert (player.play() == 0).all()
    np.testing.assert_allclose(player.play()[0][1], x_at[::-1])
    np.testing.assert_allclose(player.play()[0][2], x_at[::-1] + x_at)


@MACHINE
def test_sound_advances_after_every_sample(machine):
    e = Exprs()
    count = e.state("a/n", 1)
    echo = e.state("a/e", 3) * 0.5 + count
    ir = lowered(
        count, echo, context="audio",
        slots=[number_slot("a/n"), number_slot("a/e", depth=3)], updates={"a/n": count + 1, "a/e": echo},
    )  # fmt: skip
    kernel = compiled(ir)
    executable, memory = MACHINES[machine].load(kernel), StateMemory(kernel.slots)
    blocks = [executable.planes(memory, Launch((1, 4), {}))[:, 0] for _ in range(2)]
    assert blocks[0].tolist() == [[0, 1, 2, 3], [0, 1, 2, 3]]
    assert blocks[1].tolist() == [[4, 5, 6, 7], [4.5, 6, 7.5, 9.25]]


@MACHINE
@pytest.mark.parametrize("depth", [1, 2])
def test_points_see_the_tick_that_was_finished_last(machine, depth):
    e = Exprs()
    past = e.state("v/n", depth)
    ir = lowered(
        past, slots=[number_slot("v/n", depth)], updates={"v/n": e.uniform("tick") + 1}, exposed={"a@past": past}
    )  # fmt: skip
    player = Player(ir, machine)
    points = MACHINES[machine].load(compile_points(ir, StrandRef("a", "past"), VISUAL))
    for _ in range(6):
        in_the_tick = player.play().item()
        assert points.planes(player.memory, Launch((1, 1), {})).item() == in_the_tick
        assert points.planes(player.memory, Launch((1, 1), {})).item() == in_the_tick


@MACHINE
def test_points_sample_images(machine):
    e = Exprs()
    x, y = e.coord("x"), e.coord("y")
    ir = lowered(
        slots=[image_slot("v/i")], updates={"v/i": x + y * 10}, exposed={"a@b": e.state("v/i", 1)}
    )  # fmt: skip
    player = Player(ir, machine, shape=(4, 5))
    player.play()
    player.play()
    points = MACHINES[machine].load(compile_points(ir, StrandRef("a", "b"), VISUAL))
    coords = {"x": np.array([0.1, 0.2, 0.5, 0.0, 2.0]), "y": np.array([0.125, 0.25, 0.5, 0.0, 7.0])}
    got = points.planes(player.memory, Launch((1, 5), coords))
    np.testing.assert_allclose(got[0, 0], [0.1 + 1.25, 0.2 + 2.5, 5.5, 0.1 + 1.25, 0.9 + 8.75])


def test_points_of_sound_see_the_last_sample():
    e = Exprs()
    count = e.state("a/n", 1)
    ir = lowered(
        count, context="audio", slots=[number_slot("a/n")], updates={"a/n": count + 1}, exposed={"a@n": count}
    )  # fmt: skip
    kernel = compiled(ir)
    memory = StateMemory(kernel.slots)
    MACHINES["vm"].load(kernel).planes(memory, Launch((1, 4), {}))
    points = MACHINES["vm"].load(compile_points(ir, StrandRef("a", "n"), AUDIO))
    assert points.planes(memory, Launch((1, 1), {})).item() == 3


# Memory itself.


def test_bytes_are_known_beforehand():
    e = Exprs()
    kernel = compiled(
        lowered(
            slots=[image_slot("v/i", depth=2, planes=1), number_slot("v/n", depth=9)],
            updates={"v/i": e.coord("x"), "v/n": e.number(1)},
        )
    )
    shape = (90, 160)
    assert bytes_needed(kernel, shape) == 3 * 90 * 160 * 4 + 10 * 8
    memory = StateMemory(kernel.slots, shape)
    assert sum(memory.ring(key).nbytes for key in memory.slots) == bytes_needed(kernel, shape)
    assert bytes_needed(kernel, shape, np.float64) == 3 * 90 * 160 * 8 + 10 * 8


def written(slot, count, shape=(1, 1)):
    """Memory of one slot after ticks that wrote 1, 2, … into it."""
    memory = StateMemory([slot], shape)
    for tick in range(count):
        memory.ring(slot.key)[memory.cell(slot.key)] = tick + 1
        memory.advance()
    return memory


def recalled(memory, key, count):
    """What was written 1, 2, … ticks ago."""
    return [memory.ring(key)[memory.cell(key, back + 1)].flat[0] for back in range(count)]


@pytest.mark.parametrize(
    ("old", "new", "expected"), [(3, 3, [7, 6, 5, 4]), (3, 5, [7, 6, 5, 4, 0, 0]), (5, 2, [7, 6, 5])]
)
def test_a_reload_keeps_the_latest_ticks(old, new, expected):
    memory = StateMemory([number_slot("n", new), number_slot("other")])
    memory.ticks = 11
    assert memory.adopt(written(number_slot("n", old), 7)) == ["n"]
    assert recalled(memory, "n", new + 1) == expected


@pytest.mark.parametrize(
    ("old", "other"),
    [(number_slot("n"), number_slot("m")), (number_slot("n"), number_slot("n", planes=2)),
     (image_slot("n"), number_slot("n"))], ids=["key", "planes", "one number"],
)  # fmt: skip
def test_a_reload_starts_anew_what_is_not_the_same(old, other):
    memory = StateMemory([other])
    assert memory.adopt(written(old, 7)) == []
    assert not memory.ring(other.key).any()


@pytest.mark.parametrize("copied_ahead", [False, True])
def test_an_image_begins_with_the_number_that_was_in_its_place(copied_ahead):
    slot, old = image_slot("n", 5), written(number_slot("n", 3), 7)
    memory = StateMemory([slot], (3, 5))
    memory.allocate([old])
    if copied_ahead:
        memory.copy_ahead(old)
    assert memory.adopt(old, copy=copied_ahead) == ["n"]
    assert recalled(memory, "n", 6) == [7, 6, 5, 4, 0, 0]
    assert (memory.planes("n", 1) == 7).all()


def made(work):
    """How many bytes of memory some work makes and keeps."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def test_what_will_be_taken_over_is_not_made_before():
    shape, kept, longer, new = (90, 160), image_slot("kept"), image_slot("longer", 3), image_slot("new")
    old = StateMemory([kept, image_slot("longer")], shape)
    old.allocate()
    memory = StateMemory([kept, longer, new], shape)
    needed = sum(slot_bytes(slot, shape) for slot in (longer, new))
    assert needed <= made(lambda: memory.allocate([old])) < needed + slot_bytes(kept, shape)
    assert made(lambda: memory.adopt(old)) < slot_bytes(kept, shape)
    assert memory.ring("kept") is old.ring("kept")
    assert made(lambda: [memory.ring(key) for key in memory.slots]) < slot_bytes(kept, shape)


def test_what_another_memory_owns_is_not_made():
    slot = image_slot("i")
    owner, reader = StateMemory([slot], (90, 160)), StateMemory([slot], (90, 160), borrowed=frozenset({"i"}))
    assert made(lambda: [reader.allocate(), owner.allocate(), reader.follow(owner)]) < 2 * slot_bytes(slot, (90, 160))
    assert reader.ring("i") is owner.ring("i")


def test_a_resize_resamples():
    slot = image_slot("i")
    old = StateMemory([slot], (4, 8))
    old.ring("i")[old.cell("i")] = (np.arange(8) + 0.5) / 8 + 10 * (np.arange(4)[:, None] + 0.5) / 4
    old.advance()
    memory = StateMemory([slot], (8, 16))
    assert memory.adopt(old) == ["i"]
    picture = memory.ring("i")[memory.cell("i", 1), 0]
    inner = (np.arange(16) + 0.5) / 16 + 10 * (np.arange(8)[:, None] + 0.5) / 8
    np.testing.assert_allclose(picture[1:-1, 1:-1], inner[1:-1, 1:-1], rtol=1e-5)
    assert picture[0, 0] == old.ring("i")[0, 0, 0, 0]


@pytest.mark.parametrize("between", [0, 1, 500, 20_000, 30_000])
def test_what_is_copied_ahead_is_as_it_is_when_it_is_adopted(between):
    depth = 24_000
    slots = [number_slot("a/n", depth)]
    old, new, expected = (StateMemory(slots) for _ in range(3))

    def write(count):
        cells = old.cell("a/n", -np.arange(count))
        old.ring("a/n")[cells, 0] = old.ticks + np.arange(count)
        old.advance(count)

    write(10_000)
    new.copy_ahead(old)
    write(between)
    assert new.adopt(old, copy=True) == expected.adopt(old, copy=True) == ["a/n"]
    assert new.ring("a/n") is not old.ring("a/n")
    ago = np.arange(1, depth + 1)
    assert np.array_equal(
        new.ring("a/n")[new.cell("a/n", ago)], expected.ring("a/n")[expected.cell("a/n", ago)]
    )  # fmt: skip
    write(7)
    assert not np.array_equal(new.ring("a/n"), old.ring("a/n")), "each goes on by itself"


def test_what_was_taken_over_can_be_copied_back():
    a, b = (StateMemory([number_slot("a/n", 4)]) for _ in range(2))
    for value in range(9):
        a.ring("a/n")[a.cell("a/n"), 0] = value
        a.advance()
    b.adopt(a)
    b.advance(3)
    a.adopt(b, copy=True)
    for memory in (a, b):
        memory.ring("a/n")[memory.cell("a/n"), 0] = 100 + (memory is b)
    assert [float(a.ring("a/n")[a.cell("a/n", ago), 0]) for ago in (3, 4)] == [4, 8]
    assert [float(b.ring("a/n")[b.cell("a/n", ago), 0]) for ago in (3, 4)] == [4, 8]


@pytest.mark.parametrize("shape", [7, (3, 5), (2, 1, 9, 9)])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_aligned_zeros_begin_with_a_line_of_the_cache(shape: int | tuple[int, ...], dtype: type[np.generic]) -> None:
    array = aligned_zeros(shape, dtype)
    assert (array.shape, array.dtype) == (np.zeros(shape).shape, dtype)
    assert array.ctypes.data % 64 == 0
    assert array.flags.c_contiguous
    assert array.flags.writeable
    assert not array.any()
