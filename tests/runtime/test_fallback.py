"""A device that fails while a program plays is replaced by the next of its chain, and the program goes on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.support.cards import card_of_package, registry_with
from tests.support.gl import Graphics, graphics
from weft.backends.base import DeviceLostError, Env, Values
from weft.backends.gl.contexts import Context, Egl, GraphicsError
from weft.backends.gl_visual import GlVisual
from weft.backends.metal_visual import MetalVisual
from weft.backends.select import choose
from weft.errors import Source, WeftError
from weft.runtime.build import build
from weft.runtime.cast import Change
from weft.runtime.coordinator import Result
from weft.runtime.fallback import NOTHING_SEEN, mend, moves, recover, settle
from weft.runtime.playable import Playable
from weft.runtime.program import Stage, Swap

__all__ = ["graphics"]

SIZE = (16, 8)
COUNTING = "n<v> = prev(n@v) + 1 / 64\ndisplay(n@v, me@x, me@y)\nc = prev(c) + 1\ncompute(c)\n"


@pytest.fixture(autouse=True)
def few_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """The card lasts for three frames."""
    monkeypatch.setenv("WEFT_CARD_FRAMES", "3")


def staged(asked: str | None = "visual=card_visual:0") -> Stage:
    return Stage(choose(registry_with(card_of_package()), ["visual", "compute"], asked))


def built(text: str) -> Playable:
    return build(Source("patch.weft", text), registry_with().contexts).playable


def tick(stage: Stage, swap: Swap, number: int, last: Mapping[str, Values] = NOTHING_SEEN) -> list[Result]:
    """A tick, as the session runs it."""
    env, done = Env(*SIZE, tick=number, abstime=number / 60, dt=1 / 60), dict[int, Any]()
    mend(stage, swap, env, {}, last)
    for _ in range(3):
        try:
            return swap.runner.run(env, done)
        except Exception as failure:
            if not recover(stage, swap, failure, env, done, last):
                raise
    raise AssertionError("it recovers for ever")


def play(stage: Stage, swap: Swap, ticks: range) -> list[tuple[int, float]]:
    """What is counted by the picture and by the numbers, tick by tick."""
    found = []
    last: dict[str, Values] = {}
    for number in ticks:
        results = tick(stage, swap, number, last)
        last = {result.subgraph: result.values for result in results}
        values = {result.context: result.array for result in results}
        found.append((int(values["visual"][0, 0, 0]), float(values["compute"].item())))
    return found


def counted(stage: Stage, count: int) -> list[tuple[int, float]]:
    return play(stage, stage.prepare(built(COUNTING), SIZE), range(count))


def test_what_is_remembered_goes_on_and_nothing_is_counted_twice() -> None:
    stage = staged()
    assert counted(stage, 8) == counted(staged("native"), 8)
    assert stage.cast.changes() == [Change("visual", "card_visual", "native", "somebody pulled the plug")]
    assert stage.cast.choices["visual"].shown == "native"


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
        stage = staged(asked)
        swap = stage.prepare(built(text), SIZE)
        # With two pictures a frame, the card ends between the one and the other.
        levels.append([[int(r.array[0, 0, 0]) for r in tick(stage, swap, number)] for number in range(4)])
    assert levels[0] == levels[1]


def test_an_error_that_nobody_explains_is_that_of_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_CARD_END", "strange")
    stage = staged()
    assert counted(stage, 8) == counted(staged("native"), 8)
    assert [change.reason for change in stage.cast.changes()] == ["RuntimeError: error 0x505"]


def test_a_program_that_fails_on_the_cpu_is_not_helped_by_another_backend() -> None:
    stage = staged("vector")
    swap = stage.prepare(built(COUNTING), SIZE)
    env = Env(*SIZE)
    swap.runner.run(env)
    assert not recover(stage, swap, ZeroDivisionError("a bug"), env, {})
    assert not recover(stage, swap, DeviceLostError("visual", "nothing is behind it"), env, {})
    assert stage.cast.changes() == []


def test_numbers_that_read_a_lost_picture_read_it_where_it_is_drawn_from_then_on() -> None:
    text = "n<v> = prev(n@v) + me@x\ndisplay(n@v)\ncompute(n@v(me@x ~ 0.5))\n"
    values = []
    for asked in ("visual=card_visual:0", "vector"):
        stage = staged(asked)
        swap = stage.prepare(built(text), SIZE)
        ticks = [tick(stage, swap, number) for number in range(6)]
        values.append([float(r.array.item()) for results in ticks for r in results if r.context == "compute"])
    assert values[0] == pytest.approx(values[1])
    assert values[0][-1] == pytest.approx(3.0)


def test_a_program_that_was_made_ready_before_is_mended_when_it_comes() -> None:
    stage = staged()
    first = stage.prepare(built(COUNTING), SIZE)
    waiting = stage.prepare(built(COUNTING.replace("me@y", "1 - me@y")), SIZE, first)
    assert play(stage, first, range(5))[-1] == (20, 5.0)
    mend(stage, waiting, Env(*SIZE, tick=5), {})
    stage.take_over(waiting, first)
    assert play(stage, waiting, range(5, 7)) == [(24, 6.0), (28, 7.0)]


def test_what_stands_in_is_made_better_in_its_time() -> None:
    stage = staged()
    swap = stage.prepare(stage.translate(built(COUNTING)), SIZE)
    shown = play(stage, swap, range(4))
    assert swap.tier == 0
    assert {unit.hash for unit in swap.improvable} >= swap.stand_ins != frozenset()
    swap.exchange(stage.improve(swap.improvable, swap.stand_ins))
    assert not swap.stand_ins
    assert swap.tier >= 1
    assert shown + play(stage, swap, range(4, 8)) == counted(staged("native"), 8)


def test_a_program_compiled_after_a_loss_keeps_off_the_device() -> None:
    stage = staged()
    swap = stage.prepare(built(COUNTING), SIZE)
    play(stage, swap, range(5))
    after = stage.prepare(built(COUNTING), SIZE, swap)
    assert set(after.kept) == {"visual/display", "compute/compute"}
    other = stage.prepare(built(COUNTING.replace("me@y", "0")), SIZE, swap)
    assert all(not stage.cast.is_lost(part.backend) for part in (*after.runner.parts, *other.runner.parts))


def test_what_does_not_suit_a_device_runs_behind_it_and_is_told_once() -> None:
    stage = staged()
    text = "cache(a, 4)::h<v>\na = me@x\ndisplay(h@v(h@k ~ 2))\n"
    for _ in range(2):
        swap = stage.prepare(stage.translate(built(text)), SIZE)
        (part,) = swap.runner.parts
        assert part.backend is not stage.backend("visual")
    (change,) = stage.cast.changes()
    assert (change.subgraph, change.target) == ("visual/display", "native")
    assert str(change) == "visual/display runs on native, not card_visual: it has nothing to keep a cache in"


def test_tiny_pictures_stay_on_the_cpu_unless_somebody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_CARD", "metal_visual")
    large = "me<width> = 1920\nme<height> = 1080\ndisplay(sin(me@x * me@y * 9 + me@time))\n"
    tiny = "me<width> = 16\nme<height> = 9\ndisplay(sin(me@x * me@y * 9 + me@time))\n"
    for asked, text, runs in ((None, large, "metal_visual"), (None, tiny, "native"), ("metal", tiny, "metal_visual")):
        stage, playable = staged(asked), built(text)
        placed = stage.placed(playable.units[0], playable)
        assert placed is not None
        assert placed[0].shown == runs
        # The small frames of a trial change nothing about it.
        (part,) = stage.prepare(playable, (16, 9)).runner.parts
        candidate = stage.cast.candidate_of(part.backend)
        assert candidate is not None
        assert candidate.choice.shown == runs


# From device to device.


def bridged(stage: Stage, swap: Swap) -> set[str]:
    """The subgraphs that wait for their device. They are made ready for it, as far as anything takes them."""
    names = {unit.subgraph.name for unit in swap.bridged.units}
    for move in moves(stage, swap, stage.translate(swap.bridged).units):
        settle(stage, move)
    return names


def running(stage: Stage, swap: Swap) -> str | None:
    """What runs the picture."""
    part = next(part for part in swap.runner.parts if part.unit.subgraph.context == "visual")
    candidate = stage.cast.candidate_of(part.backend)
    return candidate.choice.shown if candidate is not None else None


def test_the_next_device_takes_over_when_it_is_ready_and_then_the_one_behind_it() -> None:
    stage = staged("visual=card_visual")
    swap = stage.prepare(stage.translate(built(COUNTING)), SIZE)
    shown = play(stage, swap, range(4))
    assert running(stage, swap) == "native", "nobody waits for the second card"
    assert bridged(stage, swap) == {"visual/display"}
    assert running(stage, swap) == "card_visual:1"
    assert bridged(stage, swap) == set()
    shown += play(stage, swap, range(4, 9))
    assert running(stage, swap) == "native"
    assert bridged(stage, swap) == set()
    assert shown == counted(staged("native"), 9)
    told = [(change.origin, change.target) for change in stage.cast.changes()]
    assert told == [("card_visual", "card_visual:1"), ("card_visual:1", "native")]


def test_a_device_that_cannot_be_made_ready_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = staged("visual=card_visual")
    swap = stage.prepare(built(COUNTING), SIZE)
    shown = play(stage, swap, range(4))
    monkeypatch.setenv("WEFT_CARD_FRAMES", "-1")  # it is lost before it has drawn anything
    assert bridged(stage, swap) == {"visual/display"}
    assert running(stage, swap) == "native"
    assert not swap.bridged.units
    assert shown + play(stage, swap, range(4, 8)) == counted(staged("native"), 8)
    assert [change.target for change in stage.cast.changes()] == ["card_visual:1", "native"]


def test_a_text_that_comes_while_something_bridges_runs_on_the_next_device() -> None:
    stage = staged("visual=card_visual")
    first = stage.prepare(built(COUNTING), SIZE)
    shown = play(stage, first, range(4))
    for text in (COUNTING, COUNTING.replace("me@y", "0")):
        second = stage.prepare(stage.translate(built(text)), SIZE, first)
        assert running(stage, second) == "card_visual:1"
    stage.take_over(second, first)
    assert shown + play(stage, second, range(4, 7)) == counted(staged("native"), 7)


def test_a_move_that_comes_too_late_changes_nothing() -> None:
    stage = staged("visual=card_visual")
    swap = stage.prepare(built(COUNTING), SIZE)
    shown = play(stage, swap, range(4))
    (move,) = moves(stage, swap, stage.translate(swap.bridged).units)
    assert move.new is not None
    stage.cast.lose(move.new.backend, "it is gone already")
    assert not settle(stage, move)
    assert running(stage, swap) == "native"
    assert shown + play(stage, swap, range(4, 8)) == counted(staged("native"), 8)


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
    stage = Stage(choose(registry, ["visual", "compute"], "visual=card_visual:0,visual=gl"))
    stage.draw_in(type(graphics)(preparing, Context(cable.enter, drawing.leave)))
    swap = stage.prepare(stage.translate(built(COUNTING)), SIZE)
    shown = play(stage, swap, range(4))
    assert bridged(stage, swap) == {"visual/display"}
    assert running(stage, swap) == "gl_visual"
    shown += play(stage, swap, range(4, 6))
    cable.is_out = True
    # It has kept numbers in the memory of this computer, where they can still be read.
    shown += play(stage, swap, range(6, 8))
    assert running(stage, swap) == "native"
    assert shown == counted(staged("native"), 8)
    told = [(change.origin, change.target) for change in stage.cast.changes()]
    assert told == [("card_visual", "gl_visual"), ("gl_visual", "native")]


def test_a_program_made_for_one_device_is_made_anew_for_another(graphics: Graphics) -> None:
    """Code that was translated for the first means nothing to the second, although both are cards."""
    stage = Stage(choose(registry_with(card_of_package(), GlVisual), ["visual", "compute"], "visual=gl"))
    playable = stage.translate(built(COUNTING))
    other = Stage(choose(registry_with(MetalVisual, GlVisual), ["visual", "compute"], "visual=gl"))
    unit = next(unit for unit in playable.units if unit.subgraph.context == "visual")
    assert unit.code is not None
    assert unit.coded_for("gl_visual") is unit
    assert unit.coded_for("metal_visual").code is None
    assert running(other, other.prepare(playable, SIZE)) == "gl_visual"


# Where nothing is left.


def test_the_last_picture_stands_and_all_else_goes_on() -> None:
    stage = Stage({name: replace(choice, rest=()) for name, choice in staged().choices.items()})
    assert counted(stage, 8) == [(min(number, 3) * 4, float(number)) for number in range(1, 9)]
    (change,) = stage.cast.changes()
    assert (change.context, change.origin, change.target) == ("visual", "card_visual", None)
    assert str(change) == "visual stands still, nothing is left to go on with: somebody pulled the plug"


def test_a_text_that_comes_when_nothing_is_left_goes_without() -> None:
    stage = Stage({name: replace(choice, rest=()) for name, choice in staged().choices.items()})
    counted(stage, 5)
    swap = stage.prepare(built(COUNTING), SIZE)
    assert swap.changed == ("compute/compute",)
    (warning,) = swap.left_out
    assert "nothing is left that runs visual: somebody pulled the plug" in warning.message


@pytest.mark.parametrize("method", ["unsuitable", "translate", "compile_subgraph"])
def test_a_backend_that_fails_to_make_a_subgraph_ready_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    stage = staged()
    card = stage.cast.left("visual")[0].backend

    def fail(*args: Any) -> None:
        raise KeyError("loop")

    monkeypatch.setattr(type(card), method, fail)
    swap = stage.prepare(stage.translate(built(COUNTING)), SIZE)
    told = [str(change) for change in stage.cast.changes()]
    if method == "translate":  # nothing but a head start
        assert (running(stage, swap), told) == ("card_visual", [])
        return
    assert running(stage, swap) == "native"
    words = "it could not be made ready there (KeyError: 'loop'), which is a bug in that backend"
    assert told == [f"visual/display runs on native, not card_visual: {words}"]
    assert play(stage, swap, range(3)) == counted(staged("native"), 3)


def test_a_subgraph_that_nothing_can_make_ready_is_an_error_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = staged("native")

    def fail(*args: Any) -> None:
        raise KeyError("loop")

    monkeypatch.setattr(type(stage.cast.left("compute")[0].backend), "compile_subgraph", fail)
    with pytest.raises(WeftError) as caught:
        stage.prepare(built("c = prev(c) + 1\ncompute(c)\n"), SIZE)
    (problem,) = caught.value.diagnostics
    assert (problem.code, problem.severity) == ("backend-failed", "error")
    assert problem.message.startswith("compute/compute cannot run on native: ")
