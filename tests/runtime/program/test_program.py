"""What a performance can go back to when a program fails, and that nothing is copied on the way."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from weft.backends.base import Env, as_array
from weft.backends.registry import load_registry
from weft.backends.select import choose, contexts_of
from weft.errors import Source
from weft.runtime.compiling.compiler import mistakes
from weft.runtime.compiling.stages import Request, build
from weft.runtime.hands.clock import Moment
from weft.runtime.program.coordinator import pictures_of
from weft.runtime.program.program import LoadedProgram, ProgramLoader, Programs

SIZE = (8, 4)
COUNTING = "n = prev(n) + {step}\ndisplay(me@x)\ncompute(n)\n"


class Player:
    """Programs with a clock that is set by hand."""

    def __init__(self) -> None:
        registry = load_registry()
        self.loader = ProgramLoader(choose(registry, [spec.name for spec in registry.contexts]))
        self.time = 0.0
        self.programs = Programs(self.loader, lambda: self.time)
        self._ticks = 0

    def enter(self, step: int) -> LoadedProgram:
        made = build(Request(Source("patch.weft", COUNTING.format(step=step)), load_registry().contexts))
        loaded = self.loader.prepare(made.compiled, SIZE, self.programs.running)
        self.programs.enter(loaded)
        return loaded

    def frame(self) -> float:
        """Draws a frame; gives what is counted."""
        assert self.programs.running is not None
        results = self.programs.running.runner.run(Env(*SIZE, tick=self._ticks))
        self._ticks += 1
        self.programs.drew()
        return float(next(r for r in results if r.context == "compute").values.item())


@pytest.fixture
def player() -> Player:
    return Player()


def test_a_failure_goes_back_to_the_program_before_with_what_is_remembered_since(player: Player) -> None:
    first = player.enter(1)
    assert [player.frame() for _ in range(3)] == [1, 2, 3]
    player.enter(10)
    assert [player.frame() for _ in range(2)] == [13, 23]
    assert player.programs.withdraw()
    assert player.programs.running is first
    assert player.frame() == 24
    assert not player.programs.withdraw(), "there is nothing before it any more"
    assert player.programs.running is first


def test_what_has_not_drawn_a_frame_is_nothing_to_go_back_to(player: Player) -> None:
    first = player.enter(1)
    player.frame()
    player.enter(10)
    player.enter(100)
    assert player.programs.withdraw()
    assert player.programs.running is first


def test_a_program_that_has_played_for_long_is_not_withdrawn(player: Player) -> None:
    player.enter(1)
    player.frame()
    second = player.enter(10)
    player.frame()
    player.time += 60
    player.frame()
    assert not player.programs.withdraw()
    assert player.programs.running is second


def test_what_is_remembered_changes_hands_without_a_copy(player: Player) -> None:
    def ring(loaded: LoadedProgram) -> object:
        memory = next(p.compiled.memory for p in loaded.runner.parts if p.unit.subgraph.context == "compute")
        return memory.ring("compute/n@val/prev/0")

    first = player.enter(1)
    player.frame()
    assert ring(player.enter(10)) is ring(first)


# --- several pictures -------------------------------------------------------------------------------------------------

SIZED = """
me<width> = 24; me<height> = 12
t = prev(t) * 0.5 + me@x * 0.5
display(t, me@width / 255, me@aspect / 4)
display(t(me@x ~ 1 - me@x), me@width / 255, me@aspect / 4, to: "beamer")
display(prev(t), me@px / 255, me@height / 255, to: "side")
"""
SIZES = {"beamer": (40, 10), "side": (9, 27)}


@pytest.mark.parametrize("is_for_any", [False, True], ids=["for the backend", "for any backend"])
@pytest.mark.parametrize("backend", ["vm", "vector", "native", "gl"])
def test_a_picture_may_have_a_size_of_its_own(backend: str, is_for_any: bool) -> None:
    registry = load_registry()
    choices = choose(registry, ["visual"], backend)
    loader = ProgramLoader(choices)
    contexts = registry.contexts if is_for_any else contexts_of(registry, choices)
    made = build(Request(Source("patch.weft", SIZED), contexts)).compiled
    loaded = loader.prepare(replace(made, sizes=SIZES), made.size)
    for tick in range(5):
        results = loaded.runner.run(Env(*made.size, tick=tick))
    shown = {name: as_array(each.values).astype(float) for name, each in pictures_of(results).items()}
    for name, (width, height) in {"": made.size, **SIZES}.items():
        assert shown[name].shape == (height, width, 4)
        x = (np.arange(width) + 0.5) / width
        wanted = {"": x * (1 - 0.5**5), "beamer": (1 - x) * (1 - 0.5**5), "side": x * (1 - 0.5**4)}[name]
        green, blue = (np.arange(width), height) if name == "side" else (width, width / height * 255 / 4)
        for plane, value in enumerate((wanted * 255, green, blue)):
            # What remembers has the size of the first picture, and is read between its pixels.
            assert np.abs(shown[name][..., plane] - value).max() <= (12 if plane == 0 else 1)


def test_pictures_of_their_own_size_are_tried_out_as_small_as_others() -> None:
    loader = ProgramLoader(choose(load_registry(), ["visual"], "vector"))
    made = build(Request(Source("patch.weft", SIZED), load_registry().contexts)).compiled
    made = replace(made, sizes={"beamer": (4000, 1000)})
    assert not mistakes(made, loader, Moment(0, 0.0, 1 / 60, {}), {})
    small = loader.prepare(made, (6, 3))
    shapes = {name: as_array(each.values).shape[:2] for name, each in pictures_of(small.runner.run(Env(6, 3))).items()}
    assert shapes == {"": (3, 6), "beamer": (250, 1000), "side": (3, 6)}


REMEMBERING = """
me<width> = 40; me<height> = 24
spark = step(hypot(me@x - 0.5 - 0.3 * sin(me@time * 9), me@y - 0.5), 0.2)
trail = max(spark(me@y ~ me@y * 1.3), prev(trail(me@x ~ me@x * 0.98 + 0.02)) * 0.9)
turn = phasor(0.7 + trail * 0)
count = prev(count) + 1
kept = hold(count % 3 == 0, noise(me@x * 9, count))
cache(trail, 5)::past<v>
scene = <trail, delay(kept, 2, 3) * turn, past@v(past@k ~ 4 * me@y) * 0.5 + image(kept)(me@x ~ me@x * 0.5) * 0.3>
display(scene)
display(scene, to: "same")
display(scene(me@x ~ me@x * 2 - 0.5), to: "wide")
"""


@pytest.mark.long
@pytest.mark.parametrize("backend", ["vm", "vector", "native"])
def test_pictures_of_what_is_remembered_once_are_those_that_each_would_draw_alone(backend: str) -> None:
    registry = load_registry()
    choices = choose(registry, ["visual", "compute"], backend)
    contexts = contexts_of(registry, choices)
    *texts, last = REMEMBERING.strip().splitlines()
    alone = "\n".join([*texts[:-2], last.replace(', to: "wide"', "")])
    shown = []
    for text in (REMEMBERING, alone):
        made = build(Request(Source("patch.weft", text), contexts)).compiled
        assert sum(bool(unit.borrowed) for unit in made.units) == 2 * (text is REMEMBERING)
        loaded = ProgramLoader(choices).prepare(made, made.size)
        for tick in range(12):
            results = loaded.runner.run(Env(*made.size, tick=tick, abstime=tick / 60, dt=1 / 60, inputs=made.inputs))
        shown.append({name: as_array(each.values).copy() for name, each in pictures_of(results).items()})
    together, apart = shown
    assert np.array_equal(together["same"], together[""])
    assert np.array_equal(together["wide"], apart[""])
    assert np.abs(together["wide"].astype(int) - together[""]).max() > 50


KEPT = """
me<width> = 8; me<height> = 4
count = prev(count) + 1
grain = if count == 1 then hash(me@px, me@py) else prev(grain)
"""
FIRST, OTHER = "display(grain, count / 255, {} / 255)\n", 'display(grain, count / 255, {} / 255, to: "b")\n'


class Stage(Player):
    """The same, for what machine code draws: in two sizes, or in one."""

    def __init__(self, sizes: dict[str, tuple[int, int]]) -> None:
        super().__init__()
        self.sizes = sizes
        self.contexts = contexts_of(load_registry(), self.loader.choices)
        self.tick = 0

    def save(self, text: str, fades: bool = False) -> None:
        made = replace(build(Request(Source("patch.weft", KEPT + text), self.contexts)).compiled, sizes=self.sizes)
        loaded = self.loader.prepare(made, made.size, self.programs.running)
        self.programs.enter(loaded, fades)

    def shown(self) -> dict[str, np.ndarray]:
        assert self.programs.running is not None
        self.tick += 1
        results = pictures_of(self.programs.running.runner.run(Env(*SIZE, tick=self.tick)))
        return {name: as_array(each.values).astype(int) for name, each in results.items()}


@pytest.mark.parametrize("sizes", [{}, {"b": (20, 10)}])
def test_what_pictures_share_goes_on_whichever_of_them_comes_and_goes(sizes: dict[str, tuple[int, int]]) -> None:
    stage = Stage(sizes)
    stage.save(FIRST.format(0) + OTHER.format(0))
    grain = stage.shown()[""][..., 0]
    assert np.ptp(grain) > 100
    for number, text in enumerate((FIRST + OTHER, OTHER + FIRST, FIRST, FIRST + OTHER, FIRST + OTHER), 1):
        fades = number % 2 == 0
        # A program that never draws a frame changes nothing.
        stage.save(text.format(number + 100, number + 100), fades)
        stage.save(text.format(number, number), fades)
        for _ in range(2):
            shown = stage.shown()
            for picture in shown.values():
                assert (picture[..., 1:3] == (stage.tick, number)).all()
            assert np.array_equal(shown[""][..., 0], grain)
    assert shown["b"].shape[:2] == sizes.get("b", SIZE)[::-1]
    # The other picture takes over what it had borrowed.
    stage.save(OTHER.format(9))
    shown = stage.shown()
    assert (shown[""][..., 1] == stage.tick).all()
    assert sizes or np.array_equal(shown[""][..., 0], grain)
