"""Sound by graphics cards: in tune after an hour, the same however a stream is cut, and what is left to the
processor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.beats import changing_beats
from tests.support.compute import nvidia, opencl, wgpu
from tests.support.gl import graphics
from tests.support.metal.executor import device
from tests.support.metal.library import in_place
from tests.support.parity.author import sound
from tests.support.parity.cases import Case, sampled, stored_count
from tests.support.parity.rule import compare
from tests.support.series import LOOPS, PROGRAMS, looping
from tests.support.together import all_but
from tests.support.tolerances import GENERATED, SERIES
from weft.backends.base import Backend, Env, SampleBlock
from weft.backends.card import CardAudio, SoundCode
from weft.backends.cpu import CpuAudio, CpuCode
from weft.backends.cuda.backend import CudaAudio
from weft.backends.executors import NOTHING
from weft.backends.gl.backend import GlAudio
from weft.backends.launch import Floats, Launch, StateMemory
from weft.backends.metal.backend import MetalAudio
from weft.backends.opencl.backend import ClAudio
from weft.backends.wgpu.backend import WgpuAudio
from weft.codegen.kernel import Kernel, Unit
from weft.contexts import AUDIO, COMPUTE, VISUAL, ContextTable
from weft.errors import Source, WeftError
from weft.names import view_of
from weft.runtime.compiling.compiler import Compiler, Saved, mistakes
from weft.runtime.compiling.stages import Build, Request, build
from weft.runtime.hands.clock import Moment
from weft.runtime.program.coordinator import ProgramRunner
from weft.runtime.program.findings import NOT_A_NUMBER
from weft.runtime.program.program import Setup

__all__ = ["device", "graphics", "nvidia", "opencl", "wgpu"]

RATE = 48_000
HOUR = 3600 * RATE
WHOLE, BLOCKS = ContextTable(), ContextTable([VISUAL, AUDIO.by_blocks(), COMPUTE])

# Blocks of a usual size, and cuts of them, as where programs enter.
CUTS = (512, 512, 100, 1, 411, 7, 700, 2500, 512)

Given = Callable[[int, int], Mapping[str, Floats]]
"""The inputs from outside, for this many samples from one on."""

CARDS: tuple[type[CardAudio], ...] = (GlAudio, MetalAudio, ClAudio, WgpuAudio, CudaAudio)
of_cards = pytest.mark.parametrize("card", CARDS, ids=lambda card: card.library)

SINE = "audio(sin(me@time * 440 * tau) * 0.5)"
FM = "audio(sin(me@time * 220 * tau + 3 * sin(me@time * 110 * tau)))"


@pytest.fixture(params=CARDS, ids=lambda card: card.library)
def card(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> type[CardAudio]:
    """A backend whose device is there."""
    found: type[CardAudio] = request.param
    if found is GlAudio:
        request.getfixturevalue("graphics")
    elif found is ClAudio:
        request.getfixturevalue("opencl")
    elif found is WgpuAudio:
        request.getfixturevalue("wgpu")
    elif found is CudaAudio:
        request.getfixturevalue("nvidia")
    else:
        in_place(request.getfixturevalue("device"), monkeypatch)
    return found


@cache
def unit_of(text: str, contexts: ContextTable = BLOCKS) -> Unit:
    (unit,) = build(Request(Source("test.weft", f"{text}\n"), contexts)).units
    return unit


def nothing(first: int, samples: int) -> Mapping[str, Floats]:
    return {}


def still(first: int, samples: int) -> Mapping[str, Floats]:
    return {"mouse@x": np.full(samples, 0.3)}


def moving(first: int, samples: int) -> Mapping[str, Floats]:
    return {"mouse@x": 0.6 + 0.1 * np.sin(np.arange(first, first + samples) * 1e-3)}


def stepping(first: int, samples: int) -> Mapping[str, Floats]:
    """It stays as it is for thousands of samples, and then is another one."""
    return {"mouse@x": np.floor(np.arange(first, first + samples) / 3000) / 8}


@dataclass
class Player:
    """One subgraph of sound on a backend, played block by block from a sample on."""

    backend: Backend
    unit: Unit
    first: int = 0
    channels: int = 2
    given: Given = nothing

    def __post_init__(self) -> None:
        self._runner = ProgramRunner(BLOCKS)
        self.pictures = sampled(self.unit.kernel)
        self.compiled = self.backend.compile_subgraph(self.unit, self._env(0), self._runner)

    def _env(self, samples: int) -> Env:
        block = SampleBlock(self.first, samples, RATE, self.channels, self.given(self.first, samples))
        return Env(64, 36, dt=1 / RATE, pictures=self.pictures, block=block)

    def play(self, *blocks: int) -> NDArray[np.float64]:
        """[channels, outputs, samples]"""
        pieces = []
        for samples in blocks:
            pieces.append(self.backend.execute_subgraph(self.compiled, self._env(samples), self._runner))
            self.first += samples
        return np.concatenate(pieces, axis=2)


def decibels(got: NDArray[np.float64], wanted: NDArray[np.float64]) -> float:
    """How loud a difference is, relative to the expected sound."""
    assert got.shape == wanted.shape
    return float(10 * np.log10(np.mean((got - wanted) ** 2) / np.mean(wanted**2)))


# --- in tune ----------------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("text", [SINE, FM, "audio(2 * (me@time * 220 % 1) - 1)", "audio(2 * me@x - 1, me@y)"])
def test_it_is_in_tune_after_an_hour(card: type[CardAudio], text: str) -> None:
    wanted = Player(CpuAudio("vm"), unit_of(text, WHOLE), HOUR).play(1024)
    assert decibels(Player(card(), unit_of(text), HOUR).play(512, 512), wanted) < -80


def test_blocks_that_are_computed_ahead_are_in_tune(card: type[CardAudio]) -> None:
    player = Player(card(), unit_of(FM), HOUR)
    wanted = Player(CpuAudio("native"), unit_of(FM, WHOLE), HOUR).play(RATE)
    assert decibels(player.play(*[512] * 93, RATE - 93 * 512), wanted) < -80


# --- blocks -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [nothing, still, moving, stepping])
def test_it_is_the_same_however_it_is_cut(card: type[CardAudio], given: Given) -> None:
    text = FM if given is nothing else "audio(sin(me@time * 440 * tau) * mouse@x, noise(me@time * 900 + mouse@x))"
    wanted = Player(CpuAudio("vector"), unit_of(text, WHOLE), HOUR, given=given).play(sum(CUTS))
    assert decibels(Player(card(), unit_of(text), HOUR, given=given).play(*CUTS), wanted) < -80


def test_who_goes_back_hears_the_same_again(card: type[CardAudio]) -> None:
    player = Player(card(), unit_of(FM))
    heard = player.play(*[512] * 8)
    for first in (0, 1024, 2000):
        player.first = first
        assert decibels(player.play(600, 600), heard[:, :, first : first + 1200]) < -100


def test_a_zero_with_another_sign_is_heard(card: type[CardAudio]) -> None:
    player = Player(card(), unit_of("audio(if 1 / mouse@x > 0 then 0.5 else -0.5)"))
    for sign, heard in ((1.0, 0.5), (-1.0, -0.5), (1.0, 0.5)):
        player.given = lambda _, samples, sign=sign: {"mouse@x": np.full(samples, sign * 0.0)}
        assert (player.play(64) == heard).all()


@pytest.mark.parametrize("channels", [1, 2, 5])
def test_what_depends_on_the_channel_is_computed_for_each(card: type[CardAudio], channels: int) -> None:
    text = "audio(sin(me@time * (440 + me@channel) * tau))"
    wanted = Player(CpuAudio("vector"), unit_of(text, WHOLE), channels=channels).play(sum(CUTS))
    assert wanted.shape == (channels, 1, sum(CUTS))
    assert decibels(Player(card(), unit_of(text), channels=channels).play(*CUTS), wanted) < -80


def test_what_is_given_to_each_channel_by_itself_is_heard_there(card: type[CardAudio]) -> None:
    def apart(first: int, samples: int) -> Mapping[str, Floats]:
        return {"mouse@x": np.stack([np.full(samples, 0.25), np.linspace(0, 1, samples)])}

    heard = Player(card(), unit_of("audio(mouse@x)"), given=apart).play(64)
    np.testing.assert_allclose(heard[:, 0], [np.full(64, 0.25), np.linspace(0, 1, 64)], atol=1e-7)


def test_a_picture_that_changes_where_it_lies_is_seen_as_it_is(card: type[CardAudio]) -> None:
    text = "s<v> = prev(s@v) + me@x\ndisplay(s@v)\naudio(s@v(me@x ~ 0.25, me@y ~ me@x))"
    units = build(Request(Source("test.weft", f"{text}\n"), BLOCKS)).units
    (unit,) = (unit for unit in units if unit.subgraph.context == "audio")
    player = Player(card(), unit)
    (path,) = unit.kernel.pictures
    assert path == view_of(next(iter(units[0].subgraph.exposes)))
    for level in (0.25, 0.75):
        player.pictures[path][:] = level
        assert (player.play(64) == level).all()


def test_a_loop_that_meets_its_limit_is_told(card: type[CardAudio]) -> None:
    endless = "spindle f(t) :: o { o = 0\nfor i in (0 to 1e9 * t) { o += 1 } }\naudio(f(me@time % 1))"
    stopped: list[str] = []
    player = Player(card(), unit_of(endless))
    env = player._env(64)._replace(loop_stopped=stopped.append)
    heard = player.backend.execute_subgraph(player.compiled, env, player._runner)
    assert heard.max() == 4096
    assert stopped == [player.unit.kernel.name]


# --- what suits it ----------------------------------------------------------------------------------------------------

TIME = "it uses the time itself at every sample, which single precision puts out of tune"
COUNTS = "it uses a number that grows with the time, which single precision puts out of tune"
STATE = "each of its samples needs the one before"

REFUSED = {
    "memory": ("audio(phasor(440))", STATE),
    "the time as a level": (f"{SINE[:-1]} * exp(-me@time))", TIME),
    "a melody": ("audio(sin(me@time * 220 * 2 ^ (floor(me@time * 4) % 8 / 12) * tau))", TIME),
    "a loop over pitches": (looping(*LOOPS["partials"]).replace("prev(e@v)", "0").replace("phasor(3)", "0.5"), TIME),
    "a frequency from outside": ("audio(sin(me@time * mouse@x * tau))", TIME),
    "whole seconds": ("audio(sin(floor(me@time) * mouse@x))", TIME),
    "a hundred steps": ("audio(floor(me@time * 8) % 100 / 100)", COUNTS),
    "a long period": ("audio(sin(me@time % 600 * 440))", COUNTS),
}  # fmt: skip


@of_cards
@pytest.mark.parametrize(("text", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_it_leaves_to_the_processor_and_why(card: type[CardAudio], text: str, reason: str) -> None:
    backend, unit = card(), unit_of(text)
    assert backend.unsuitable(unit) == reason
    assert backend.translate(unit) is None
    with pytest.raises(WeftError, match=reason):
        Player(backend, unit)


@of_cards
def test_a_program_that_knows_no_blocks_is_refused(card: type[CardAudio]) -> None:
    assert card().unsuitable(unit_of(SINE, WHOLE)) == TIME


# Something in these jumps at the very moment of a sample, and may do so at the next one.
JUMPS = ("picture", "bounds of the sample")

SOUNDS = {
    name: text
    for name, text in {**PROGRAMS, **{name: looping(*loop) for name, loop in LOOPS.items()}}.items()
    if name not in JUMPS
}


PIECES = (100, 1, 31, 257)


@cache
def in_one_piece(text: str) -> NDArray[np.float64]:
    return Player(CpuAudio("vector"), unit_of(text, WHOLE), given=moving).play(sum(PIECES))


@pytest.mark.parametrize("executor", ["vm", "vector", "native"])
@pytest.mark.parametrize("text", all_but(10, SOUNDS.values()), ids=SOUNDS)
def test_the_processor_plays_the_same_by_blocks(text: str, executor: str) -> None:
    """What is left to it has been compiled in one go with what is not."""
    found = Player(CpuAudio(executor), unit_of(text), given=moving).play(*PIECES)
    assert SERIES.agreement(found, in_one_piece(text)).all()


# --- where it is asked for --------------------------------------------------------------------------------------------


def test_only_who_asks_for_it_has_it_and_programs_are_compiled_for_it(card: type[CardAudio]) -> None:
    contexts, loader = Setup("patch.weft", asked=f"audio={card.name}").open()
    assert contexts["audio"].in_blocks
    assert loader.choices["audio"].backend is card
    contexts, loader = Setup("patch.weft").open()
    assert not contexts["audio"].in_blocks
    assert issubclass(loader.choices["audio"].backend, CpuAudio)


def saved(compiler: Compiler, text: str) -> tuple[list[str], dict[str, type[object]]]:
    """What a trial finds wrong with a text, by its codes, and what code its sounds have."""
    made = compiler.compile(Saved(text.encode(), 0.0))
    assert made.compiled is not None
    wrong = mistakes(made.compiled, compiler.loader, Moment(), made.places)
    codes = {unit.subgraph.name: type(unit.code) for unit in made.compiled.units if unit.kernel.context == "audio"}
    return [each.code for each in wrong], codes


def test_a_new_program_is_tried_out_without_the_card(card: type[CardAudio]) -> None:
    compiler = Compiler.of(Setup("patch.weft", asked=f"audio={card.name}"))
    both = f"{SINE}\nplay(phasor(3) - 0.5)\n"
    wrong, codes = saved(compiler, both)
    assert wrong == []
    assert set(codes.values()) <= {SoundCode, CpuCode}
    assert saved(compiler, "audio(0 / 0 * sin(me@time * 440 * tau))\n")[0] == [NOT_A_NUMBER]


# --- generated sounds -------------------------------------------------------------------------------------------------

STRETCH = 48
MOMENTS = (0.7, 3600.5, 86400.01)
GENERATED_SOUNDS = range(80)


@dataclass(frozen=True)
class Stretches(Case):
    """A sound in single precision, stretch by stretch."""

    unit: Unit = field(kw_only=True)

    is_sound = True
    tolerance = GENERATED


class OnCard:
    """Runs the sound of a case."""

    name = "card"
    widest = np.float32

    def __init__(self, card: type[CardAudio], unit: Unit) -> None:
        self._player = Player(card(), unit)

    def load(self, kernel: Kernel, codes: Mapping[bool, object] = NOTHING) -> OnCard:
        return self

    def planes(self, memory: StateMemory, launch: Launch) -> Floats:
        return self._player.compiled.run(self._player.compiled.memory, launch)


def launches_of(kernel: Kernel, parameters: Mapping[str, float]) -> tuple[Launch, ...]:
    """The stretches, with a mouse and keys that move."""
    ramp = np.linspace(0, 1, STRETCH)
    moved = {"mouse@x": 0.3 + 0.4 * ramp, "mouse@y": 0.55, "mouse@down": ramp > 0.6, "key@space": ramp > 0.3}
    given = {**moved, **parameters}
    led = {name: np.asarray(given.get(name, 0.0), np.float64) for name, _ in kernel.coords}
    numbers = {"dt": 1 / RATE, "width": 37, "height": 2, **changing_beats(0.2, 97, 131)}
    since = np.arange(STRETCH) / RATE
    return tuple(
        Launch(
            (1, STRETCH), {**led, "channel": 1.0, "abstime": moment, "since": since},
            {name: stored_count(name) or float(numbers.get(name, 0)) for name in kernel.uniforms},
            pictures=sampled(kernel),
        )
        for moment in MOMENTS
    )  # fmt: skip


@cache
def made_of(seed: int) -> Build | None:
    """A generated sound; None if there is an error in it."""
    try:
        return build(Request(Source("test.weft", f"{sound(seed)}\n"), BLOCKS))
    except WeftError:
        return None


@cache
def stretches_of(seed: int) -> Stretches:
    made = made_of(seed)
    assert made is not None
    (unit,) = made.units
    kernel = replace(unit.kernel, tick="launch")
    launches = launches_of(kernel, made.patch.parameter_values())
    return Stretches(sound(seed), kernel, launches, unit=unit)


def suiting(card: type[CardAudio], seeds: Sequence[int]) -> list[Stretches]:
    """Of generated sounds those that it plays."""
    sounds = ((seed, made_of(seed)) for seed in seeds)
    return [stretches_of(seed) for seed, made in sounds if made and card().unsuitable(*made.units) is None]


def make_ready(card: type[CardAudio], cases: Sequence[Stretches], request: pytest.FixtureRequest) -> None:
    """Compiles all programs at once, which is faster, where the device can."""
    codes = [card().translate(case.unit) for case in cases]
    device: Any = request.getfixturevalue("device") if card is MetalAudio else None
    if hasattr(device, "prepare"):
        device.prepare([code.shader.text for code in codes if code is not None])


@pytest.mark.long
def test_generated_sounds_are_what_the_reference_plays_but_for_single_precision(
    card: type[CardAudio], request: pytest.FixtureRequest
) -> None:
    cases = suiting(card, GENERATED_SOUNDS)
    make_ready(card, cases, request)
    assert len(cases) > len(GENERATED_SOUNDS) / 5
    for case in cases:
        outcome = compare(case, OnCard(card, case.unit))
        assert not outcome.unexplained, f"{case.text}\n{outcome.unexplained[0]}"
