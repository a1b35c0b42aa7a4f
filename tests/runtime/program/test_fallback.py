"""A device that fails while a program plays is replaced by the next of its chain, and the program continues."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest

from tests.support.cards import card_of_package, registry_with
from tests.support.gl import Graphics, graphics
from weft.backends.base import DeviceLostError, Env, Values
from weft.backends.gl.backend import GlVisual
from weft.backends.gl.egl import Context, Egl, GraphicsError
from weft.backends.metal.backend import MetalVisual
from weft.backends.select import choose
from weft.errors import Source, WeftError
from weft.runtime.compiling.stages import Request, build
from weft.runtime.program.assignment import Change
from weft.runtime.program.compiled import CompiledProgram
from weft.runtime.program.coordinator import TickResult
from weft.runtime.program.fallback import moves, recover, repair, settle
from weft.runtime.program.program import LoadedProgram, ProgramLoader

__all__ = ["graphics"]

SIZE = (16, 8)
COUNTING = "n<v> = prev(n@v) + 1 / 64\ndisplay(n@v, me@x, me@y)\nc = prev(c) + 1\ncompute(c)\n"


@pytest.fixture(autouse=True)
def few_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """The card lasts for three frames."""
    monkeypatch.setenv("WEFT_CARD_FRAMES", "3")


def staged(asked: str | None = "visual=card_visual:0") -> ProgramLoader:
    return ProgramLoader(choose(registry_with(card_of_package()), ["visual", "compute"], asked))


def built(text: str) -> CompiledProgram:
    return build(Request(Source("patch.weft", text), registry_with().contexts)).compiled


def tick(
    loader: ProgramLoader, loaded: LoadedProgram, number: int, last: Mapping[str, Values] = MappingProxyType({})
) -> list[TickResult]:
    """A tick, as the session runs it."""
    env, done = Env(*SIZE, tick=number, abstime=number / 60, dt=1 / 60), dict[int, Any]()
    repair(loader, loaded, env, {}, last)
    for _ in range(3):
        try:
            return loaded.runner.run(env, done)
        except Exception as failure:
            if not recover(loader, loaded, failure, env, done, last):
                raise
    raise AssertionError("it recovers for ever")


def play(loader: ProgramLoader, loaded: LoadedProgram, ticks: range) -> list[tuple[int, float]]:
    """What is counted by the picture and by the numbers, tick by tick."""
    found = []
    last: dict[str, Values] = {}
    for number in ticks:
        results = tick(loader, loaded, number, last)
        last = {result.subgraph: result.values for result in results}
        values = {result.context: result.array for result in results}
        found.append((int(values["visual"][0, 0, 0]), float(values["compute"].item())))
    return found


def counted(loader: ProgramLoader, count: int) -> list[tuple[int, float]]:
    return play(loader, loader.prepare(built(COUNTING), SIZE), range(count))


def test_what_is_remembered_goes_on_and_nothing_is_counted_twice() -> None:
    loader = staged()
    assert counted(loader, 8) == counted(staged("native"), 8)
    assert loader.assignment.changes() == [Change("visual", "card_visual", "native", "somebody pulled the plug")]
    assert loader.assignment.choices["visual"].shown == "native"


def test_what_was_on_the_device_alone_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_CARD_END", "forgetful")
    right = counted(staged("native"), 8)
    found = counted(staged(), 8)
    assert [numbers for _, numbers in found] == [numbers for _, numbers in right]
    assert [level for level, _ in found] == [level for level, _ in right[:3] + right[:5]]


def test_what_had_its_turn_in_a_tick_has_no_other() -> None:
    text = "a<v> = prev(a@v) + 1 / 64\nb<v> = prev(b@v) + 1 / 32\ndisplay(a@v)\ndisplay(b@v, to: \"other\")\n"
    levels = []
    for asked in ("visual=card_visual:0", "native"):
        loader = staged(asked)
        loaded = loader.prepare(built(text), SIZE)
        # With two pictures a frame, the card ends between the one and the other.
        levels.append([[int(r.array[0, 0, 0]) for r in tick(loader, loaded, number)] for number in range(4)])
    assert levels[0] == levels[1]


def test_an_error_that_nobody_explains_is_that_of_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_CARD_END", "strange")
    loader = staged()
    assert counted(loader, 8) == counted(staged("native"), 8)
    assert [change.reason for change in loader.assignment.changes()] == ["RuntimeError: error 0x505"]


def test_a_program_that_fails_on_the_cpu_is_not_helped_by_another_backend() -> None:
    loader = staged("vector")
    loaded = loader.prepare(built(COUNTING), SIZE)
    env = Env(*SIZE)
    loaded.runner.run(env)
    assert not recover(loader, loaded, ZeroDivisionError("a bug"), env, {})
    assert not recover(loader, loaded, DeviceLostError("visual", "nothing is behind it"), env, {})
    assert loader.assignment.changes() == []


def test_numbers_that_read_a_lost_picture_read_it_where_it_is_drawn_from_then_on() -> None:
    text = "n<v> = prev(n@v) + me@x\ndisplay(n@v)\ncompute(n@v(me@x ~ 0.5))\n"
    values = []
    for asked in ("visual=card_visual:0", "vector"):
        loader = staged(asked)
        loaded = loader.prepare(built(text), SIZE)
        ticks = [tick(loader, loaded, number) for number in range(6)]
        values.append([float(r.array.item()) for results in ticks for r in results if r.context == "compute"])
    assert values[0] == pytest.approx(values[1])
    assert values[0][-1] == pytest.approx(3.0)


def test_a_program_that_was_made_ready_before_is_mended_when_it_comes() -> None:
    loader = staged()
    first = loader.prepare(built(COUNTING), SIZE)
    waiting = loader.prepare(built(COUNTING.replace("me@y", "1 - me@y")), SIZE, first)
    assert play(loader, first, range(5))[-1] == (20, 5.0)
    repair(loader, waiting, Env(*SIZE, tick=5), {})
    loader.take_over(waiting, first)
    assert play(loader, waiting, range(5, 7)) == [(24, 6.0), (28, 7.0)]


def test_what_stands_in_is_made_better_in_its_time() -> None:
    loader = staged()
    loaded = loader.prepare(loader.translate(built(COUNTING)), SIZE)
    shown = play(loader, loaded, range(4))
    assert loaded.tier() == 0
    assert {unit.hash for unit in loaded.improvable} >= loaded.stand_ins != frozenset()
    loaded.upgrade(loader.improve(loaded.improvable, loaded.stand_ins)[0])
    assert not loaded.stand_ins
    assert loaded.tier() >= 1
    assert shown + play(loader, loaded, range(4, 8)) == counted(staged("native"), 8)


def test_a_program_compiled_after_a_loss_keeps_off_the_device() -> None:
    loader = staged()
    loaded = loader.prepare(built(COUNTING), SIZE)
    play(loader, loaded, range(5))
    after = loader.prepare(built(COUNTING), SIZE, loaded)
    assert set(after.kept) == {"visual/display", "compute/compute"}
    other = loader.prepare(built(COUNTING.replace("me@y", "0")), SIZE, loaded)
    assert all(not loader.assignment.is_lost(part.backend) for part in (*after.runner.parts, *other.runner.parts))


def test_what_does_not_suit_a_device_runs_behind_it_and_is_told_once() -> None:
    loader = staged()
    text = "cache(a, 4)::h<v>\na = me@x\ndisplay(h@v(h@k ~ 2))\n"
    for _ in range(2):
        loaded = loader.prepare(loader.translate(built(text)), SIZE)
        (part,) = loaded.runner.parts
        assert part.backend is not loader.backend("visual")
    (change,) = loader.assignment.changes()
    assert (change.subgraph, change.target) == ("visual/display", "native")
    assert str(change) == "visual/display runs on native, not card_visual: it has nothing to keep a cache in"


def test_tiny_pictures_stay_on_the_cpu_unless_somebody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_CARD", "metal_visual")
    large = "me<width> = 1920\nme<height> = 1080\ndisplay(sin(me@x * me@y * 9 + me@time))\n"
    tiny = "me<width> = 16\nme<height> = 9\ndisplay(sin(me@x * me@y * 9 + me@time))\n"
    for asked, text, runs in ((None, large, "metal_visual"), (None, tiny, "native"), ("metal", tiny, "metal_visual")):
        loader, compiled = staged(asked), built(text)
        placed = loader.placed(compiled.units[0], compiled)
        assert placed is not None
        assert placed[0].shown == runs
        # The small frames of a trial change nothing about it.
        (part,) = loader.prepare(compiled, (16, 9)).runner.parts
        candidate = loader.assignment.candidate_of(part.backend)
        assert candidate is not None
        assert candidate.choice.shown == runs


# From device to device.


def bridged(loader: ProgramLoader, loaded: LoadedProgram) -> set[str]:
    """The subgraphs that wait for their device. They are made ready for it, if any device takes them."""
    names = {unit.subgraph.name for unit in loaded.bridged.units}
    for move in moves(loader, loaded, loader.translate(loaded.bridged).units):
        settle(loader, move)
    return names


def running(loader: ProgramLoader, loaded: LoadedProgram) -> str | None:
    """What runs the picture."""
    part = next(part for part in loaded.runner.parts if part.unit.subgraph.context == "visual")
    candidate = loader.assignment.candidate_of(part.backend)
    return candidate.choice.shown if candidate is not None else None


def test_the_next_device_takes_over_when_it_is_ready_and_then_the_one_behind_it() -> None:
    loader = staged("visual=card_visual")
    loaded = loader.prepare(loader.translate(built(COUNTING)), SIZE)
    shown = play(loader, loaded, range(4))
    assert running(loader, loaded) == "native", "nobody waits for the second card"
    assert bridged(loader, loaded) == {"visual/display"}
    assert running(loader, loaded) == "card_visual:1"
    assert bridged(loader, loaded) == set()
    shown += play(loader, loaded, range(4, 9))
    assert running(loader, loaded) == "native"
    assert bridged(loader, loaded) == set()
    assert shown == counted(staged("native"), 9)
    told = [(change.origin, change.target) for change in loader.assignment.changes()]
    assert told == [("card_visual", "card_visual:1"), ("card_visual:1", "native")]


def test_a_device_that_cannot_be_made_ready_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    loader = staged("visual=card_visual")
    loaded = loader.prepare(built(COUNTING), SIZE)
    shown = play(loader, loaded, range(4))
    monkeypatch.setenv("WEFT_CARD_FRAMES", "-1")  # it is lost before it has drawn anything
    assert bridged(loader, loaded) == {"visual/display"}
    assert running(loader, loaded) == "native"
    assert not loaded.bridged.units
    assert shown + play(loader, loaded, range(4, 8)) == counted(staged("native"), 8)
    assert [change.target for change in loader.assignment.changes()] == ["card_visual:1", "native"]


def test_a_text_that_comes_while_something_bridges_runs_on_the_next_device() -> None:
    loader = staged("visual=card_visual")
    first = loader.prepare(built(COUNTING), SIZE)
    shown = play(loader, first, range(4))
    for text in (COUNTING, COUNTING.replace("me@y", "0")):
        second = loader.prepare(loader.translate(built(text)), SIZE, first)
        assert running(loader, second) == "card_visual:1"
    loader.take_over(second, first)
    assert shown + play(loader, second, range(4, 7)) == counted(staged("native"), 7)


def test_a_move_that_comes_too_late_changes_nothing() -> None:
    loader = staged("visual=card_visual")
    loaded = loader.prepare(built(COUNTING), SIZE)
    shown = play(loader, loaded, range(4))
    (move,) = moves(loader, loaded, loader.translate(loaded.bridged).units)
    assert move.new is not None
    loader.assignment.lose(move.new.backend, "it is gone already")
    assert not settle(loader, move)
    assert running(loader, loaded) == "native"
    assert shown + play(loader, loaded, range(4, 8)) == counted(staged("native"), 8)


class Cable:
    """A context of OpenGL that can be pulled out."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.is_out = False

    def enter(self) -> None:
        if self.is_out:
            raise GraphicsError("the cable was pulled out")
        self._context.enter()


def test_from_a_card_to_opengl_to_the_cpu(graphics: Graphics) -> None:
    egl = Egl()
    preparing, drawing = egl.context(), egl.context()
    cable = Cable(drawing)
    registry = registry_with(card_of_package(), GlVisual)
    loader = ProgramLoader(choose(registry, ["visual", "compute"], "visual=card_visual:0,visual=gl"))
    loader.draw_in(type(graphics)(Context(cable.enter, drawing.leave), preparing))
    loaded = loader.prepare(loader.translate(built(COUNTING)), SIZE)
    shown = play(loader, loaded, range(4))
    assert bridged(loader, loaded) == {"visual/display"}
    assert running(loader, loaded) == "gl_visual"
    shown += play(loader, loaded, range(4, 6))
    cable.is_out = True
    # It has kept numbers in the memory of this computer, where they can still be read.
    shown += play(loader, loaded, range(6, 8))
    assert running(loader, loaded) == "native"
    assert shown == counted(staged("native"), 8)
    told = [(change.origin, change.target) for change in loader.assignment.changes()]
    assert told == [("card_visual", "gl_visual"), ("gl_visual", "native")]


def test_a_program_made_for_one_device_is_made_anew_for_another(graphics: Graphics) -> None:
    """Code that was translated for the first means nothing to the second, although both are cards."""
    loader = ProgramLoader(choose(registry_with(card_of_package(), GlVisual), ["visual", "compute"], "visual=gl"))
    compiled = loader.translate(built(COUNTING))
    other = ProgramLoader(choose(registry_with(MetalVisual, GlVisual), ["visual", "compute"], "visual=gl"))
    unit = next(unit for unit in compiled.units if unit.subgraph.context == "visual")
    assert unit.code is not None
    assert unit.coded_for("gl_visual") is unit
    assert unit.coded_for("metal_visual").code is None
    assert running(other, other.prepare(compiled, SIZE)) == "gl_visual"


# Where nothing is left.


def test_the_last_picture_stands_and_all_else_goes_on() -> None:
    loader = ProgramLoader({name: replace(choice, fallbacks=()) for name, choice in staged().choices.items()})
    assert counted(loader, 8) == [(min(number, 3) * 4, float(number)) for number in range(1, 9)]
    (change,) = loader.assignment.changes()
    assert (change.context, change.origin, change.target) == ("visual", "card_visual", None)
    assert str(change) == "visual stops, since no backend is left: somebody pulled the plug"


def test_a_text_that_comes_when_nothing_is_left_goes_without() -> None:
    loader = ProgramLoader({name: replace(choice, fallbacks=()) for name, choice in staged().choices.items()})
    counted(loader, 5)
    loaded = loader.prepare(built(COUNTING), SIZE)
    assert loaded.changed == ("compute/compute",)
    (warning,) = loaded.left_out
    assert "nothing is left that runs visual: somebody pulled the plug" in warning.message


@pytest.mark.parametrize("method", ["unsuitable", "translate", "compile_subgraph"])
def test_a_backend_that_fails_to_make_a_subgraph_ready_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    loader = staged()
    card = loader.assignment.left("visual")[0].backend

    def fail(*args: Any) -> None:
        raise KeyError("loop")

    monkeypatch.setattr(type(card), method, fail)
    loaded = loader.prepare(loader.translate(built(COUNTING)), SIZE)
    told = [str(change) for change in loader.assignment.changes()]
    if method == "translate":  # nothing but a head start
        assert (running(loader, loaded), told) == ("card_visual", [])
        return
    assert running(loader, loaded) == "native"
    words = "it could not be loaded there (KeyError: 'loop'), which is a bug in that backend"
    assert told == [f"visual/display runs on native, not card_visual: {words}"]
    assert play(loader, loaded, range(3)) == counted(staged("native"), 3)


@pytest.mark.parametrize("bridges", [False, True])
def test_a_driver_that_hangs_keeps_no_program_from_being_shown(monkeypatch: pytest.MonkeyPatch, bridges: bool) -> None:
    loader, ended = staged(), threading.Event()
    card = loader.assignment.left("visual")[0]
    monkeypatch.setattr(type(card.backend), "compile_subgraph", lambda *_: ended.wait())
    monkeypatch.setattr("weft.runtime.program.program.DRIVER_SECONDS", 0.05)
    try:
        made = loader.translate(built(COUNTING))
        if bridges:  # the processor draws until the device is ready
            made = replace(made, units=tuple(replace(unit, bridges=True, code_of="native") for unit in made.units))
        loaded = loader.prepare(made, SIZE)
        assert running(loader, loaded) == "native"
        bridged(loader, loaded)
        told = [(change.origin, change.target, change.reason) for change in loader.assignment.changes()]
        assert told == [("card_visual", "native", "its driver has not made a program ready in 0.05 seconds")]
        assert play(loader, loaded, range(3)) == counted(staged("native"), 3)
    finally:
        ended.set()


def test_a_subgraph_that_nothing_can_make_ready_is_an_error_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    loader = staged("native")

    def fail(*args: Any) -> None:
        raise KeyError("loop")

    monkeypatch.setattr(type(loader.assignment.left("compute")[0].backend), "compile_subgraph", fail)
    with pytest.raises(WeftError) as caught:
        loader.prepare(built("c = prev(c) + 1\ncompute(c)\n"), SIZE)
    (problem,) = caught.value.diagnostics
    assert (problem.code, problem.severity) == ("backend-failed", "error")
    assert problem.message.startswith("compute/compute cannot run on native: ")
