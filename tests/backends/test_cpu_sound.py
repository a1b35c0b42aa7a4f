"""Sound on the CPU: channels, the raster, blocks, and what continues from one program to the next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.exprs import number_slot
from tests.support.tolerances import SERIES, Tolerance
from weft.backends.base import Env, SampleBlock
from weft.backends.cpu import CpuAudio, CpuCompiled
from weft.backends.launch import StateMemory
from weft.backends.registry import load_registry
from weft.codegen.kernel import Unit
from weft.errors import Source
from weft.runtime.compiling.stages import Request, build
from weft.runtime.program.coordinator import ProgramRunner

RATE = 48000.0
CONTEXTS = load_registry().contexts
EXECUTORS = pytest.mark.parametrize("executor", ["vm", "vector", "native", "wasm"])


def unit_of(text: str) -> Unit:
    (unit,) = build(Request(Source("sound.weft", text), CONTEXTS)).units
    return unit


class Player:
    """One subgraph of sound, played block by block."""

    def __init__(self, text: str, executor: str = "vector", channels: int = 2, rate: float = RATE) -> None:
        self.backend = CpuAudio(executor)
        self.channels, self.rate = channels, rate
        self.first = 0
        self._runner = ProgramRunner(CONTEXTS)
        self.compiled = self.prepared(text)

    def _env(self, samples: int) -> Env:
        return Env(64, 36, dt=1 / self.rate, block=SampleBlock(self.first, samples, self.rate, self.channels))

    def prepared(self, text: str) -> CpuCompiled:
        return self.backend.compile_subgraph(unit_of(text), self._env(0), self._runner)

    def change_to(self, text: str, copy: bool = False) -> list[str]:
        """Another program continues with the memory of this one."""
        before, self.compiled = self.compiled, self.prepared(text)
        return self.backend.adopt(self.compiled, [before], copy)

    def play(self, *blocks: int) -> NDArray[np.float64]:
        """Blocks of this many samples, joined: [channels, outputs, samples]."""
        pieces = []
        for samples in blocks:
            pieces.append(self.backend.execute_subgraph(self.compiled, self._env(samples), self._runner))
            self.first += samples
        return np.concatenate(pieces, axis=2)


def moments(count: int, first: int = 0, rate: float = RATE) -> NDArray[np.float64]:
    return (first + np.arange(count)) / rate


# --- channels ---------------------------------------------------------------------------------------------------------


@EXECUTORS
def test_what_does_not_depend_on_the_channel_is_computed_once(executor: str) -> None:
    player = Player("audio(me@time, phasor(1000))\n", executor)
    heard = player.play(100)
    assert heard.shape == (1, 2, 100)
    assert SERIES.agreement(heard[0, 0], moments(100)).all()


@EXECUTORS
def test_what_depends_on_the_channel_is_computed_for_each(executor: str) -> None:
    heard = Player("audio(me@channel + me@time)\n", executor, channels=3).play(50, 50)
    assert heard.shape == (3, 1, 100)
    assert SERIES.agreement(heard[:, 0], np.arange(3)[:, np.newaxis] + moments(100)).all()


@EXECUTORS
def test_each_channel_remembers_for_itself(executor: str) -> None:
    heard = Player("n<v> = prev(n@v) + 1 + me@channel\naudio(n@v)\n", executor).play(30, 1, 19)
    assert np.array_equal(heard[:, 0], [np.arange(1, 51), 2 * np.arange(1, 51)])


@pytest.mark.parametrize("copy", [False, True])
def test_what_was_the_same_in_all_channels_goes_on_in_each(copy: bool) -> None:
    player = Player("n<v> = prev(n@v) + 1\naudio(n@v)\n")
    player.play(10)
    assert player.change_to("n<v> = prev(n@v) + 1 + me@channel\naudio(n@v)\n", copy) == ["audio/n@v/prev/0"]
    assert np.array_equal(player.play(5)[:, 0], 10 + np.outer([1, 2], np.arange(1, 6)))


@pytest.mark.parametrize("copy", [False, True])
def test_of_several_channels_the_first_goes_on(copy: bool) -> None:
    player = Player("n<v> = prev(n@v) + 1 + me@channel\naudio(n@v)\n")
    player.play(10)
    player.change_to("n<v> = prev(n@v) + 1\naudio(n@v)\n", copy)
    assert player.play(3)[:, 0].tolist() == [[11, 12, 13]]


def test_each_channel_goes_on_with_its_own() -> None:
    player = Player("n<v> = prev(n@v) + 1 + me@channel\naudio(n@v)\n")
    player.play(10)
    player.change_to("n<v> = prev(n@v) + 1 + me@channel * 2\naudio(n@v)\n")
    assert np.array_equal(player.play(2)[:, 0], [[11, 12], [23, 26]])


# --- the raster -------------------------------------------------------------------------------------------------------


@EXECUTORS
@pytest.mark.parametrize("first", [0, 3600 * int(RATE) + 7])
def test_x_runs_once_a_cycle_and_y_once_a_sweep(executor: str, first: int) -> None:
    player = Player("me<pitch> = 100\nme<sweep> = 0.5\naudio(me@x, me@y)\n", executor)
    player.first = first
    x, y = player.play(1000)[0]
    time = moments(1000, first)
    # A moment on a seam may fall on either side of it.
    for got, expected in ((x, time * 100), (y, time / 0.5)):
        assert np.abs(np.remainder(got - expected + 0.5, 1) - 0.5).max() < 1e-9
        assert got.min() >= 0
        assert got.max() <= 1


@EXECUTORS
def test_a_strand_of_the_picture_is_a_tone(executor: str) -> None:
    heard = Player("wave<v> = sin(me@x * tau) * (0.5 + me@y / 2)\naudio(wave@v)\n", executor).play(480)[0, 0]
    time = moments(480)
    # The settings that no patch changes: 220 cycles a second, and ten seconds for a sweep.
    expected = np.sin(2 * np.pi * 220 * time) * (0.5 + time / 10 / 2)
    assert Tolerance(0, 1e-9).agreement(heard, expected).all()


# --- blocks -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [44100.0, 48000.0, 12345.0])
@pytest.mark.parametrize("first", [0, 48000 * 86400 + 1])
def test_moments_do_not_depend_on_how_a_stream_is_cut(rate: float, first: int) -> None:
    whole = SampleBlock(first, 1000, rate).times
    assert np.array_equal(whole, np.concatenate([SampleBlock(first + at, 1, rate).times for at in range(1000)]))
    assert np.array_equal(whole, [(first + at) / rate for at in range(1000)])


SOUND = """\
fm<v> = sin(phasor(220 + 40 * sin(me@time * 30)) * tau)
low<v> = prev(low@v) + 0.1 * (fm@v - prev(low@v))
echo<v> = low@v + 0.4 * delay(echo@v, 300.5, 500) + 0.2 * delay(low@v, 300 + 100 * me@y, 500)
held<v> = hold(fm@v, floor(me@time * 100))
count<v> = prev(count@v) + 1
cache(low, 40)::old<v>
audio(echo@v * 0.5 + hash(count@v) * 0.1, held@v + integrate(low@v) + old@v(old@k ~ 7.5))
"""


@EXECUTORS
def test_neither_do_samples(executor: str) -> None:
    whole = Player(SOUND, executor).play(700)
    assert SERIES.agreement(Player(SOUND, executor).play(1, 511, 100, 87, 1), whole).all()


@pytest.mark.parametrize("executor", ["vector", "native", "wasm"])
def test_every_machine_plays_what_the_reference_plays(executor: str) -> None:
    expected = Player(SOUND, "vm").play(512, 188)
    assert np.abs(expected).max() > 0.1
    assert SERIES.agreement(Player(SOUND, executor).play(512, 188), expected).all()


def test_what_is_led_is_read_sample_by_sample() -> None:
    player = Player("n<v> = prev(n@v) + mouse@x\naudio(n@v, key@a)\n")
    steps = np.linspace(0, 1, 64)
    block = SampleBlock(0, 64, RATE, 2, {"mouse@x": steps, "key@a": np.ones(64)})
    heard = player.backend.execute_subgraph(player.compiled, Env(8, 8, block=block), ProgramRunner(CONTEXTS))
    np.testing.assert_allclose(heard[0], [np.cumsum(steps), np.ones(64)])


def test_a_stream_has_no_single_tick() -> None:
    player = Player("audio(me@time)\n")
    with pytest.raises(ValueError, match="block by block"):
        player.backend.execute_subgraph(player.compiled, Env(8, 8), ProgramRunner(CONTEXTS))


# --- memory -----------------------------------------------------------------------------------------------------------


def written(depth: int, values: Iterable[float]) -> StateMemory:
    memory = StateMemory([number_slot("n", depth)])
    for value in values:
        memory.ring("n")[memory.cell("n")] = value
        memory.advance()
    return memory


def recalled(memory: StateMemory, count: int) -> Sequence[float]:
    """What was written 1, 2, … ticks ago."""
    return [float(memory.ring("n")[memory.cell("n", back + 1)].item()) for back in range(count)]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [(3, 3, [7, 6, 5, 4]), (3, 5, [7, 6, 5, 4, 0, 0]), (5, 2, [7, 6, 5]), (1, 4, [7, 6, 0, 0, 0])],
)
def test_a_copy_keeps_the_latest_ticks_and_leaves_the_original_alone(
    old: int, new: int, expected: list[float]
) -> None:
    before = written(old, range(1, 8))
    memory = StateMemory([number_slot("n", new)])
    memory.ticks = 11
    was = before.ring("n").copy()
    assert memory.adopt(before, copy=True) == ["n"]
    assert recalled(memory, new + 1) == expected
    for value in (90, 91, 92):
        memory.ring("n")[memory.cell("n")] = value
        memory.advance()
    assert np.array_equal(before.ring("n"), was)
    before.ring("n")[before.cell("n")] = 8
    before.advance()
    assert recalled(memory, 2) == [92, 91]
    assert recalled(before, 2) == [8, 7]


@EXECUTORS
def test_a_longer_delay_line_keeps_what_sounded(executor: str) -> None:
    text = "audio(delay(me@time * 48000, {0}, {0}))\n"
    player = Player(text.format(20), executor)
    player.play(100)
    assert player.change_to(text.format(30), copy=True)
    heard = player.play(40)[0, 0]
    # 21 ticks are known of those before, and what is older is not.
    expected = np.arange(100, 140) - 30.0
    assert SERIES.agreement(heard, np.where(expected < 100 - 21, 0, expected)).all()


@EXECUTORS
def test_a_program_and_its_copy_go_on_apart(executor: str) -> None:
    text = "n<v> = prev(n@v) + {}\naudio(n@v)\n"
    player = Player(text.format(1), executor)
    player.play(100)
    before = player.compiled
    player.change_to(text.format(10), copy=True)
    after = player.compiled
    for offset in (0, 50):
        for compiled, step in ((before, 1), (after, 10)):
            player.compiled = compiled
            assert np.array_equal(player.play(50)[0, 0], 100 + step * (offset + np.arange(1, 51)))
