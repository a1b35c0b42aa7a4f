"""Strands of other subgraphs that a picture on a graphics card reads at places of its own: what it shows, what is bound
instead of read back, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.choices import on_processor
from tests.support.compute import nvidia, opencl, wgpu
from tests.support.gl import embedded_graphics, graphics, that_computes
from tests.support.metal.executor import device
from tests.support.metal.library import in_place
from tests.support.together import all_but
from tests.support.tolerances import OFF_SHARE
from weft.backends.base import Bindable, Env
from weft.backends.card import CardBackend
from weft.backends.cuda.backend import CudaVisual
from weft.backends.gl.backend import EmbeddedGlVisual, GlVisual
from weft.backends.launch import Value
from weft.backends.metal.backend import MetalVisual
from weft.backends.opencl.backend import ClVisual
from weft.backends.registry import load_registry
from weft.backends.select import choose
from weft.backends.wgpu.backend import WgpuVisual
from weft.codegen.kernel import Unit
from weft.contexts import AUDIO, COMPUTE, VISUAL, ContextTable
from weft.errors import Source, WeftError
from weft.names import StrandRef
from weft.runtime.compiling.stages import Build, Request, build
from weft.runtime.films.offline import Offline
from weft.runtime.program.coordinator import ProgramRunner
from weft.runtime.program.program import ProgramLoader

__all__ = ["device", "embedded_graphics", "graphics", "nvidia", "opencl", "that_computes", "wgpu"]

SIZE = {"width": 31.0, "height": 17.0}

# Memory that sound asks for belongs to sound.
WAVE = "wave = phasor(220)\nother = sin(tau * phasor(150))\naudio(wave, other)\n"

# A picture that a sound reads, which another picture reads: that is drawn by two subgraphs, one after the other.
CHAIN = (
    "trail<v> = prev(trail@v)(me@x ~ me@x * 0.9 + 0.05) * 0.5 + hash(me@px, me@py, me@absframe) * 0.5\n"
    "level = integrate(trail@v(me@x ~ 0.5, me@y ~ 0.5))\naudio(level * 0.01)\n"
)

SHOWN = {
    "by column": f"{WAVE}display(wave(me@time ~ me@time - me@x * 0.02), other(me@time ~ me@time - me@x * 0.02), 0)\n",
    "by row": f"{WAVE}display(wave(me@time ~ me@time - me@y * 0.02))\n",
    "at every pixel": f"{WAVE}display(wave(me@time ~ me@time - length(me@x, me@y) * 0.02), me@x, 0.5)\n",
    "in all directions": (
        f"{WAVE}display(wave(me@time ~ me@time - me@x * 0.02), wave(me@time ~ me@time - me@y * 0.01),"
        " wave(me@time ~ me@time - me@x * me@y * 0.02))\n"
    ),
    "once a frame as well": f"{WAVE}display(other, wave(me@time ~ me@time - me@x * 0.02) * other, me@y)\n",
    "where another one says": (
        f"{WAVE}display(wave(me@time ~ me@time - other(me@time ~ me@time - me@x * 0.01) * 0.01))\n"
    ),
    "remembered": f"{WAVE}t<v> = prev(t@v) * 0.5 + wave(me@time ~ me@time - me@x * 0.02)\ndisplay(t@v)\n",
    "a picture at the same place": f"{CHAIN}display(trail@v, fract(level), 0)\n",
    "a picture at several places": (
        f"{CHAIN}display(trail@v(me@x ~ 1 - me@x) * fract(level), trail@v(me@y ~ 0.3), trail@v(me@x ~ me@y))\n"
    ),
    "a picture where the frame says": f"{CHAIN}display(trail@v(me@x ~ me@x + me@time * 3), fract(level), 0)\n",
}

CARDS: tuple[type[CardBackend], ...] = (GlVisual, EmbeddedGlVisual, MetalVisual, ClVisual, WgpuVisual, CudaVisual)


@pytest.fixture(params=CARDS, ids=lambda card: card.library)
def card(request: pytest.FixtureRequest, device: Any, monkeypatch: pytest.MonkeyPatch) -> type[CardBackend]:
    """A backend whose device is there."""
    found: type[CardBackend] = request.param
    if found is GlVisual:
        request.getfixturevalue("graphics")
    elif found is EmbeddedGlVisual:
        request.getfixturevalue("embedded_graphics")
    elif found is ClVisual:
        request.getfixturevalue("opencl")
    elif found is WgpuVisual:
        request.getfixturevalue("wgpu")
    elif found is CudaVisual:
        request.getfixturevalue("nvidia")
    else:
        in_place(device, monkeypatch)
    return found


def built(text: str) -> Build:
    return build(Request(Source("p.weft", text), load_registry().contexts, SIZE))


def pictures_of(text: str) -> Iterator[Unit]:
    return (unit for unit in built(text).units if unit.subgraph.context == "visual")


def shown_by(made: Build, visual: str) -> Offline:
    return Offline(made, {**on_processor("vector"), **choose(load_registry(), ["visual"], visual)})


def running(text: str, visual: str) -> ProgramRunner:
    loader = ProgramLoader(choose(load_registry(), ["visual", "compute"], f"visual={visual},compute=vector"))
    return loader.prepare(built(text).compiled, (31, 17)).runner


# At first nothing has been heard yet.
MOMENTS = (0.05, 0.1, 0.15)


@cache
def expected_of(text: str) -> tuple[Build, list[NDArray[Any]]]:
    """A program, and what the reference shows of it at these moments; every card is compared with the same."""
    made = built(text)
    reference = shown_by(made, "vm")
    return made, [reference.at(time).copy() for time in MOMENTS]


@pytest.mark.parametrize("text", all_but(4, SHOWN.values()), ids=SHOWN)
def test_a_picture_shows_what_the_reference_shows(text: str, card: type[CardBackend]) -> None:
    made, expected = expected_of(text)
    assert all(card().unsuitable(unit) is None for unit in made.units if unit.subgraph.context == "visual")
    drawn = shown_by(made, card.name)
    for time, wanted in zip(MOMENTS, expected, strict=True):
        found = drawn.at(time).astype(int)
        assert wanted[..., :3].std() > 1
        assert (np.abs(found - wanted) > 1).mean() <= OFF_SHARE


def test_only_what_elements_need_goes_into_a_program(card: type[CardBackend]) -> None:
    (unit,) = pictures_of(SHOWN["where another one says"])
    assert [bound.key for bound in card().code(unit).grid.drawn.external_reads] == ["0: wave"]


# --- what is bound ----------------------------------------------------------------------------------------------------


LAUNCH, READ_BACK, DRAWN = "glDispatchCompute", "glGetBufferSubData", "glDrawArrays"


def watched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """From now on, what OpenGL is asked for."""
    from weft.backends.gl.graphics import GL

    calls: list[str] = []

    def watch(name: str, made: Callable[..., Any]) -> None:
        def call(*arguments: Any) -> Any:
            calls.append(name)
            return made(*arguments)

        monkeypatch.setattr(GL, name, call)

    for name in (LAUNCH, READ_BACK, DRAWN):
        watch(name, getattr(GL, name))
    return calls


def test_of_a_picture_that_another_one_reads_nothing_is_read_back(
    that_computes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = built(f"{CHAIN}display(trail@v, trail@v(me@x ~ 1 - me@x), fract(level))\n")
    drawings = sum(unit.subgraph.context == "visual" for unit in made.units)
    assert drawings == 2
    drawn = shown_by(made, "gl")
    drawn.at(0.05)
    calls = watched(monkeypatch)
    drawn.at(0.1)
    # The sound is led by one value a tick.
    assert calls.count(READ_BACK) * drawings == calls.count(DRAWN) > drawings


def test_who_is_on_the_card_can_bind_and_all_others_read(card: type[CardBackend]) -> None:
    text = "ramp<v> = prev(ramp@v) * 0 + me@x * 3 + me@y\ndisplay(ramp@v)\ncompute(ramp@v)\n"
    runner = running(text, card.name)
    runner.run(Env(31, 17, dt=1 / 60))
    reads = runner.lookup(StrandRef("ramp", "v"))
    x, y = np.linspace(0.1, 0.9, 7), np.linspace(0.8, 0.2, 7)
    np.testing.assert_allclose(reads(x, y), x * 3 + y, rtol=1e-5)
    if card is EmbeddedGlVisual:  # without compute shaders, strands are drawn and read back
        assert not isinstance(reads, Bindable)
        return
    assert isinstance(reads, Bindable)
    assert reads.bound(object(), x, y) is None
    assert reads.bound(reads.device, x, y) is not None


# --- what is read back ------------------------------------------------------------------------------------------------

SUMMED = "spindle sum(x) :: o { o = 0; for i in (0 to 9) { o += ramp@v(me@x ~ i / 9 * x, me@y ~ 0.5) } }\n"

READ = {
    "two strands": "compute(ramp@v(me@x ~ mouse@x, me@y ~ 0.5), back@v(me@x ~ 0.25, me@y ~ mouse@y))\n",
    "many places of one": "compute(ramp@v(me@x ~ 0.1, me@y ~ 0.2), ramp@v(me@x ~ 0.3, me@y ~ 0.4), ramp@v)\n",
    "in a loop": f"{SUMMED}compute(sum(mouse@x))\n",
}

RAMPS = (
    "ramp<v> = prev(ramp@v) * 0.5 + me@x * 0.1\nback<v> = prev(back@v) * 0.5 + me@y * 0.1\n"
    "display(ramp@v, back@v, 0)\n"
)


def waits(calls: list[str]) -> int:
    """How often something was read that had only just been asked for."""
    return sum((one, other) == (LAUNCH, READ_BACK) for one, other in pairwise(calls))


def numbers(runner: ProgramRunner, env: Env) -> NDArray[Any]:
    (found,) = (result.array for result in runner.run(env) if result.context == "compute")
    return found.reshape(-1)


@pytest.mark.parametrize("text", READ.values(), ids=READ)
def test_values_that_are_read_back_in_a_tick_are_waited_for_once(
    text: str, that_computes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, found = (running(RAMPS + text, asked) for asked in ("vector", "gl"))
    calls = watched(monkeypatch)
    for number in range(3):
        env = Env(31, 17, number, number / 60, 1 / 60, {"mouse@x": 0.1 * number, "mouse@y": 0.7})
        calls.clear()
        given = numbers(found, env)
        assert waits(calls) == 1
        np.testing.assert_allclose(given, numbers(expected, env), rtol=1e-4)


def test_numbers_of_a_card_are_read_by_a_picture_on_it(card: type[CardBackend]) -> None:
    # Numbers that are remembered belong to compute here, as those of a patch with sound belong to audio.
    contexts = ContextTable([VISUAL, AUDIO, replace(COMPUTE, state_rank=-1)])
    text = "a = prev(a) + 0.1\nb = prev(b) + 0.2\ncompute(a, b)\ndisplay(a * me@x, b * me@y, 0)\n"
    made = build(Request(Source("p.weft", text), contexts, SIZE))
    shown = []
    for asked in ("vm", card.name.removesuffix("_visual")):
        loader = ProgramLoader(choose(load_registry(), ["visual", "compute"], asked))
        runner = loader.prepare(made.compiled, (31, 17)).runner
        for number in range(3):
            results = runner.run(Env(31, 17, number, number / 60, 1 / 60))
        shown.append(next(result.array for result in results if result.context == "visual"))
    assert shown[0][..., :2].std() > 1
    assert np.abs(shown[0].astype(int) - shown[1]).max() <= 1


def test_several_strands_are_read_in_one_go(that_computes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    expected, found = (running(f"{RAMPS}compute(ramp@v, back@v)\n", asked) for asked in ("vector", "gl"))
    env = Env(31, 17, dt=1 / 60)
    asked: dict[StrandRef, dict[str, Value]] = {
        StrandRef("ramp", "v"): {"x": np.linspace(0, 1, 9), "y": 0.3},
        StrandRef("back", "v"): {"x": 0.5, "y": 0.5},
    }
    for runner in (expected, found):
        runner.run(env)
    wanted = expected.values(asked, env)
    calls = watched(monkeypatch)
    given = found.values(asked, env)
    assert waits(calls) == 1
    for ref in asked:
        np.testing.assert_allclose(given[ref], wanted[ref], rtol=1e-4)


def test_strands_are_read_where_they_are_drawn(embedded_graphics: Any) -> None:
    text = f"{RAMPS}compute(ramp@v(me@x ~ mouse@x), back@v(me@x ~ 0.3))\n"
    expected, found = (running(text, asked) for asked in ("vector", "gles"))
    exposed = [each for part in found.parts for each in getattr(part.compiled, "exposed", {}).values()]
    assert len(exposed) == 2
    assert all(each.points is not None for each in exposed)
    for number in range(3):
        env = Env(31, 17, number, number / 60, 1 / 60, {"mouse@x": 0.1 * number})
        np.testing.assert_allclose(numbers(found, env), numbers(expected, env), rtol=1e-4)


# --- what is refused --------------------------------------------------------------------------------------------------

SUM = "spindle sum(x) :: o { o = 0; for i in (0 to x * 9) { o += wave(me@time ~ me@time - i * 0.001) } }\n"
FAR = "spindle far(x) :: o { o = 0; for i in (0 to x * 9) { o = o * 0.5 + i } }\n"

REFUSED = {
    "in a loop": (f"{WAVE}{SUM}display(sum(me@x))\n", "it reads wave in the steps of a loop"),
    "where a loop says": (
        f"{WAVE}{FAR}display(wave(me@time ~ me@time - far(me@x) * 0.001))\n",
        "the place at which it reads wave is found by a loop",
    ),
    "where memory says": (
        f"{WAVE}t<v> = prev(t@v) * 0.5 + me@x\ndisplay(wave(me@time ~ me@time - t@v * 0.01))\n",
        "the place at which it reads wave depends on what it remembers",
    ),
}


@pytest.mark.parametrize(("text", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_it_cannot_draw_it_says_beforehand(text: str, reason: str, card: type[CardBackend]) -> None:
    (unit,) = pictures_of(text)
    backend = card()
    assert backend.unsuitable(unit) == reason
    assert backend.translate(unit) is None
    with pytest.raises(WeftError, match=reason) as refused:
        backend.check(unit)
    assert refused.value.diagnostics[0].code == "unsuitable"
