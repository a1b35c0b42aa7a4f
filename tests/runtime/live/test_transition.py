"""How a program takes over: on which beat, and how its picture fades in over the one before, what both weigh, and how
long a mixed picture stays."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.compute import opencl, wgpu
from tests.support.sound import eventually
from weft.backends.base import Env, Values, as_array
from weft.backends.registry import load_registry
from weft.backends.select import choose
from weft.beats import Beats
from weft.errors import Source
from weft.runtime.compiling.compiler import Saved
from weft.runtime.compiling.stages import Request, build
from weft.runtime.compiling.worker import LoadResult
from weft.runtime.hands.clock import Clock
from weft.runtime.hands.inputs import Inputs
from weft.runtime.live.transition import PictureFade, TransitionPolicy, TransitionScheduler
from weft.runtime.program.compiled import CompiledProgram
from weft.runtime.program.coordinator import pictures_of
from weft.runtime.program.program import LoadedProgram, ProgramLoader, Programs, Setup
from weft.runtime.sound.microphone import Microphones
from weft.runtime.sound.player import Sound
from weft.runtime.sound.renderer import BeatFigures, Player, SoundOptions
from weft.runtime.sound.shared import Controls, Rings

__all__ = ["opencl", "wgpu"]

WIDTH, HEIGHT, FPS = 8, 4, 50


def compiled(text: str, width: int = WIDTH) -> CompiledProgram:
    settings = {"width": float(width), "height": float(HEIGHT), "fps": float(FPS)}
    return build(Request(Source("patch.weft", text), load_registry().contexts, settings)).compiled


# --- beats ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bpm", [120, 90, 7])
@pytest.mark.parametrize("beats", [0.5, 1, 3, 4])
def test_a_program_waits_for_the_next_of_so_many_beats(bpm: float, beats: float) -> None:
    made, step = compiled(f"#quantize {beats}\ndisplay(1)\n"), beats * 60 / bpm
    # Between two of them, on one, and just before and after it.
    moments = ((0.5, 0, 1), (6.3, 0, 7), (6.98, 0, 7), (7, 0, 7), (7, 0.004, 7), (7, 0.006, 8), (0, 0, 0))
    for steps, seconds, expected in moments:
        beat = TransitionPolicy().beat(made, steps * step + seconds, Beats.steady(bpm))
        assert beat == pytest.approx(expected * beats)


@pytest.mark.parametrize("bpm", [60.0, 240.0])
def test_what_waits_for_a_beat_waits_for_it_when_the_tempo_changes(bpm: float) -> None:
    performance = Performance(grey(200), TransitionPolicy(quantize=4))
    tempo = performance.clock.tempo
    performance.frames(round(0.5 * FPS))
    performance.save(grey(40))
    tempo.set(bpm)
    seen, beats = [], []
    for _ in range(5 * FPS):
        now = performance.clock.now()
        tempo.advance(now, 0.06)
        performance.take_over()
        beats.append(tempo.beats.at(now))
        seen.append(int(performance.frame()[0, 0, 0]))
    # The first frame from the fourth beat on, which is not where it would have been.
    assert seen == [40 if beat >= 4 - 1e-6 else 200 for beat in beats]
    assert abs(seen.index(40) / FPS + 0.5 - 2) > 0.3


def test_without_a_beat_it_waits_for_none() -> None:
    assert TransitionPolicy().beat(compiled("display(1)\n"), 3.3, Beats.steady(120)) is None


def test_the_command_line_has_its_way_over_the_patch() -> None:
    made = compiled("#quantize 4\n#fade 2\ndisplay(1)\n")
    assert TransitionPolicy(quantize=1).beat(made, 0.6, Beats.steady(60)) == 1
    assert TransitionPolicy(quantize=0).beat(made, 0.6, Beats.steady(60)) is None
    assert TransitionPolicy(fade=0.5).fade_of(made) == TransitionPolicy(fade=0.5).requested_fade(made) == 0.5
    assert TransitionPolicy(fade=0).fade_of(made) == 0


def test_sounds_fade_a_little_where_nobody_asks() -> None:
    made = compiled("display(1)\n")
    assert TransitionPolicy().fade_of(made) == pytest.approx(0.03)
    assert TransitionPolicy().requested_fade(made) is None
    assert TransitionPolicy().fade_of(compiled("#fade 2\ndisplay(1)\n")) == 2


# --- mixing -----------------------------------------------------------------------------------------------------------


def pictures(*shape: int) -> tuple[np.ndarray, np.ndarray]:
    before, after = np.random.default_rng(3).integers(0, 256, (2, *shape), np.uint8)
    return before, after


@pytest.mark.parametrize("shape", [(720, 1280, 4), (1, 1, 4), (3, 70_000, 4), (129, 511, 4)])
@pytest.mark.parametrize("share", [0, 1, 100, 255, 256])
def test_each_weighs_its_share(shape: tuple[int, ...], share: int) -> None:
    before, after = pictures(*shape)
    mixed = PictureFade({"": before}, 5.0, 2.0).mixed(before, after, 5.0 + share / 128)
    expected = (before.astype(int) * (256 - share) + after.astype(int) * share) // 256
    assert mixed.dtype == np.uint8
    np.testing.assert_array_equal(mixed, expected)


def test_a_mixed_picture_stays_for_a_tick() -> None:
    before, after = pictures(48, 64, 4)
    fade = PictureFade({"": before}, 0.0, 1.0)
    first = fade.mixed(before, after, 0.25)
    seen = first.copy()
    second = fade.mixed(before, after, 0.5)
    assert second is not first
    np.testing.assert_array_equal(first, seen)
    assert not (fade.mixed(before, after, 0.75) == second).all()


def test_pictures_of_different_sizes_are_not_mixed() -> None:
    (before, _), (_, after) = pictures(4, 6, 4), pictures(6, 4, 4)
    assert PictureFade({"": before}, 0.0, 1.0).mixed(before, after, 0.5) is after


# --- pictures ---------------------------------------------------------------------------------------------------------

Pixels = NDArray[np.uint8]


NO_SOUND = Sound(Setup("test.weft"), SoundOptions(is_silent=True))


class Performance:
    """Programs that follow one another, on a clock that goes from frame to frame."""

    def __init__(
        self, text: str, policy: TransitionPolicy | None = None, contexts: tuple[str, ...] = (),
        executor: str = "vector", sound: Sound = NO_SOUND,
    ) -> None:
        registry = load_registry()
        self.loader = ProgramLoader(choose(registry, [*contexts, "visual", "compute"], executor))
        self.seconds = 0.0
        self.clock = Clock(lambda: self.seconds)
        self.programs = Programs(self.loader)
        self.inputs = Inputs()
        self.succession = TransitionScheduler(
            self.programs, policy or TransitionPolicy(), self.clock, self.inputs, sound
        )
        self.shown: dict[str, Values] = {}
        first = self.prepare(text)
        self.clock.tempo.begin(first.compiled.settings["bpm"])
        self.programs.enter(first)

    def prepare(self, text: str) -> LoadedProgram:
        made = compiled(text)
        return self.loader.prepare(made, made.size, self.programs.running)

    def save(self, text: str) -> None:
        """A text is compiled, and takes over at once or waits."""
        loaded = self.prepare(text)
        self.succession.offer(LoadResult(Saved(text.encode(), time.monotonic()), loaded, ()))
        self.take_over()

    def take_over(self) -> bool:
        due = self.succession.due()
        if due is not None and due.loaded is not None:
            self.succession.enter(due.loaded, self.shown)
        return due is not None

    def frame(self) -> Pixels:
        """The next frame, as it is seen."""
        loaded = self.programs.running
        assert loaded is not None
        tick = self.clock.tick()
        env = Env(*loaded.size, tick=tick.number, abstime=tick.time, dt=tick.dt, pictures=loaded.pictures)
        done: dict[int, Pixels] = {}
        self.shown = self.succession.visible(pictures_of(loaded.runner.run(env, done)), env, done)
        self.seconds += 1 / FPS
        return as_array(self.shown[""]).copy()

    def frames(self, count: int) -> Pixels:
        return np.stack([self.frame() for _ in range(count)])


def grey(level: float) -> str:
    return f"display({level / 255!r})\n"


FADE = 0.5
LENGTH = round(FADE * FPS)
LINEAR = 1.0
"""Levels that rounding may take from a mixture."""


def test_a_picture_fades_linearly_in_time() -> None:
    performance = Performance(grey(200))
    performance.frames(3)
    performance.save(f"#fade {FADE}\n{grey(40)}")
    seen = performance.frames(LENGTH + 3)[:, 0, 0, 0].astype(float)
    shares = np.minimum(np.arange(LENGTH + 3) / LENGTH, 1)
    assert np.abs(seen - (200 + (40 - 200) * shares)).max() <= LINEAR
    assert seen[0] == 200, "it begins with what was seen"
    assert (seen[LENGTH:] == 40).all()


def test_nobody_asks_and_it_is_a_cut() -> None:
    for policy in (TransitionPolicy(), TransitionPolicy(fade=0)):
        performance = Performance(grey(200), policy)
        performance.frames(3)
        performance.save(grey(40))
        assert (performance.frame()[..., :3] == 40).all()


def test_a_picture_that_does_not_change_does_not_blink() -> None:
    performance = Performance("display(me@x, me@y, 0.3)\ncompute(1)\n")
    before = performance.frame()
    performance.save(f"#fade {FADE}\ndisplay(me@x, me@y, 0.3)\ncompute(2)\n")
    for seen in performance.frames(LENGTH + 2):
        assert np.array_equal(seen, before)


def test_both_programs_go_on_with_what_they_remember() -> None:
    counting = "n<v> = prev(n@v) + {}\ndisplay(n@v / 255 + me@x * 0)\n"
    performance = Performance(counting.format(1))
    performance.frames(10)
    performance.save(f"#fade {FADE}\n" + counting.format(3))
    seen = performance.frames(LENGTH)[:, 0, 0, 0].astype(float)
    frames = np.arange(1, LENGTH + 1)
    shares = np.arange(LENGTH) / LENGTH
    expected = (10 + frames) * (1 - shares) + (10 + 3 * frames) * shares
    assert np.abs(seen - expected).max() <= LINEAR + 0.5


def test_a_picture_of_feedback_goes_on_in_both() -> None:
    trail = "t<v> = prev(t@v) * 0.9 + me@x * {}\ndisplay(t@v)\n"
    alone, fading = Performance(trail.format(0.05)), Performance(trail.format(0.05))
    alone.frames(5)
    fading.frames(5)
    fading.save(f"#fade {FADE}\n" + trail.format(0.06))
    # At the very beginning, only the one that leaves is seen.
    assert np.array_equal(fading.frame(), alone.frame())
    alone.save(trail.format(0.06))
    fading.frames(LENGTH)
    assert fading.frame().max() > 0


def test_a_fade_that_is_interrupted_goes_on_from_what_is_seen() -> None:
    performance = Performance(grey(250))
    performance.frames(2)
    seen = [250.0]
    for number, level in enumerate((10, 130, 240, 0)):
        performance.save(f"#fade {FADE}\n// {number}\n{grey(level)}")
        seen += performance.frames(LENGTH // 2)[:, 0, 0, 0].tolist()
    seen += performance.frames(LENGTH)[:, 0, 0, 0].tolist()
    assert np.abs(np.diff(seen)).max() <= 255 / LENGTH + 2 * LINEAR
    assert seen[-1] == 0


def test_a_slider_that_may_go_further_now_stays_within_its_range_in_what_leaves() -> None:
    """Programs of cards are made for that range."""
    sliding = '#slider k<v> = 0, {}, 0.5\ndisplay(min(me@x, 0) + k / 10)\n'
    performance = Performance(sliding.format(1))
    performance.frames(2)
    performance.save(f"#fade {FADE}\n{sliding.format(10)}")
    playing = performance.programs.running
    assert playing is not None
    parameters = performance.inputs.parameters
    parameters.adopt(playing.compiled.parameters, playing.compiled.file)
    parameters.set("k@v", 8)
    # At the beginning of the fade, what leaves is seen alone.
    assert (performance.frame()[..., :3] == round(255 * 0.1)).all()


def test_a_cut_ends_a_fade() -> None:
    performance = Performance(grey(250))
    performance.frames(2)
    performance.save(f"#fade {FADE}\n{grey(10)}")
    performance.frames(3)
    performance.save(grey(100))
    assert (performance.frames(3)[..., :3] == 100).all()


@pytest.fixture(params=["vm", "vector", "native", "opencl", "wgpu"])
def executor(request: pytest.FixtureRequest) -> str:
    """What runs here, by its name."""
    name = str(request.param)
    if name in ("opencl", "wgpu"):
        request.getfixturevalue(name)
    return name


@pytest.mark.parametrize(("before", "first"), [("me@x * 0", 250), ("prev(n@v) * 0 + me@x * 0", 90)])
def test_what_leaves_is_drawn_in_the_new_size_unless_it_remembers_a_picture(
    before: str, first: int, executor: str
) -> None:
    performance = Performance(f"n<v> = {before} + 250 / 255\ndisplay(n@v)\n", executor=executor)
    performance.frames(2)
    wider = compiled(f"#fade {FADE}\n{grey(90)}", WIDTH * 2)
    loaded = performance.loader.prepare(wider, wider.size, performance.programs.running)
    performance.succession.enter(loaded, performance.shown)
    seen = performance.frames(LENGTH + 1)
    assert seen.shape == (LENGTH + 1, HEIGHT, WIDTH * 2, 4)
    assert (seen[0, ..., :3] == first).all()
    assert (seen[-1, ..., :3] == 90).all()


def test_the_pictures_of_all_windows_fade_even_if_that_is_interrupted() -> None:
    performance = Performance(f'{grey(200)}display(1, to: "side")\ndisplay(0.4, to: "gone")\n')
    performance.frames(2)
    seen = []
    middle = LENGTH // 2
    for side, others in ((55, 'display(1, to: "new")\n'), (155, "")):
        performance.save(f'#fade {FADE}\n{grey(40)}display({side / 255}, to: "side")\n{others}')
        for _ in range(middle + 1):
            performance.frame()
            seen.append({window: int(as_array(shown)[0, 0, 0]) for window, shown in performance.shown.items()})
    share = middle / LENGTH
    assert seen[0] == {"": 200, "side": 255, "new": 255}
    # A window that was not there does not fade in from anything.
    assert seen[middle] == pytest.approx({"": 200 - 160 * share, "side": 255 - 200 * share, "new": 255}, abs=LINEAR)
    first, side = seen[middle][""], seen[middle]["side"]
    assert seen[middle + 1] == {"": first, "side": side}
    expected = {"": first + (40 - first) * share, "side": side + (155 - side) * share}
    assert seen[-1] == pytest.approx(expected, abs=LINEAR)


def test_a_window_that_reads_what_another_remembers_fades_with_it() -> None:
    """Here each keeps its own memory, and the second window reads that of the first, as on cards."""
    shown = "n<v> = prev(n@v) * 0 + {}\ndisplay(n@v + me@x * 0)\ndisplay(n@v + me@x * 0, to: \"side\")\n"
    performance = Performance(shown.format(200 / 255))
    performance.frames(2)
    performance.save(f"#fade {FADE}\n{shown.format(40 / 255)}")
    for number in range(LENGTH + 1):
        performance.frame()
        levels = {window: int(as_array(values)[0, 0, 0]) for window, values in performance.shown.items()}
        expected = 200 - 160 * number / LENGTH
        assert levels == pytest.approx({"": expected, "side": expected}, abs=LINEAR)


def test_a_program_that_only_shows_numbers_gives_way_at_once() -> None:
    performance = Performance(grey(250))
    performance.frames(2)
    loaded = performance.prepare("#fade 1\ncompute(1)\n")
    performance.succession.enter(loaded, performance.shown)
    env = Env(*loaded.size)
    assert performance.succession.visible(pictures_of(loaded.runner.run(env)), env, {}) == {}


def test_a_leaving_program_that_cannot_be_drawn_any_more_is_gone() -> None:
    picture = "p<v> = prev(p@v) * 0 + 1\ndisplay(p@v)\n"
    performance = Performance(picture)
    performance.frames(2)
    leaving = performance.programs.running
    assert leaving is not None
    performance.save(f"#fade {FADE}\n{grey(10)}")
    # As if its device were lost: what it reads is not to be had.
    leaving.runner.parts = tuple(
        replace(part, compiled=None) for part in leaving.runner.parts  # type: ignore[arg-type]
    )
    assert (performance.frames(2)[..., :3] == 10).all()


# --- what leaves has no effect ----------------------------------------------------------------------------------------


def test_only_the_program_that_plays_has_effects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "felt"
    monkeypatch.setenv("WEFT_HAPTIC", f"file:{file}")
    performance = Performance(f"{grey(200)}haptic(1)\n", contexts=("haptic",))
    performance.frames(5)
    performance.save(f"#fade {FADE}\n{grey(10)}haptic(2)\n")
    performance.frames(LENGTH + 2)
    felt = [float(line.rpartition("=")[2]) for line in file.read_text().splitlines()]
    assert set(felt) == {1, 2}
    assert felt == sorted(felt), "the one that leaves is felt no more"


def test_in_a_pause_what_is_saved_is_seen_at_once() -> None:
    performance = Performance(grey(200))
    performance.frames(3)
    performance.save(f"#fade {FADE}\n{grey(40)}")
    performance.frames(2)
    performance.clock.pause()
    performance.save(f"#fade {FADE}\n{grey(90)}")
    assert performance.frame()[0, 0, 0] == 90


# --- waiting ----------------------------------------------------------------------------------------------------------

TO_THE_BEAT = f"me<bpm> = 120\n#quantize 1\n{grey(10)}"


def waiting() -> Performance:
    """A program waits for the beat at 0.5 s, and 0.1 s have passed."""
    performance = Performance(f"me<bpm> = 120\n{grey(200)}")
    performance.frames(5)
    performance.save(TO_THE_BEAT)
    return performance


def test_a_save_waits_for_its_beat() -> None:
    performance = waiting()
    seen = []
    for _ in range(25):
        performance.take_over()
        seen.append(int(performance.frame()[0, 0, 0]))
    assert seen == [200] * 20 + [10] * 5
    assert performance.succession.waited_ms == pytest.approx(400)


def test_a_save_on_the_beat_waits_for_none() -> None:
    performance = Performance(f"me<bpm> = 120\n{grey(200)}")
    performance.frames(25)
    performance.save(TO_THE_BEAT)
    assert performance.frame()[0, 0, 0] == 10
    assert performance.succession.waited_ms == 0


def test_the_latest_save_takes_the_place_of_one_that_waits() -> None:
    performance = waiting()
    performance.save(TO_THE_BEAT.replace(grey(10), grey(90)))
    while not performance.take_over():
        performance.frame()
    assert performance.frame()[0, 0, 0] == 90
    assert not performance.take_over()


def test_the_tempo_is_that_of_the_program_that_plays() -> None:
    performance = Performance(f"me<bpm> = 60\n{grey(200)}")
    performance.frames(5)
    performance.save(TO_THE_BEAT)
    while not performance.take_over():
        performance.frame()
    assert performance.clock.now() == pytest.approx(1.0)


@pytest.mark.parametrize("happens", ["pause", "restart"])
def test_a_pause_and_a_restart_do_not_leave_it_waiting(happens: str) -> None:
    performance = Performance(f"me<bpm> = 120\n{grey(200)}")
    performance.frames(500)
    performance.frame()
    performance.save(TO_THE_BEAT)
    assert not performance.take_over()
    getattr(performance.clock, happens)()
    assert performance.take_over()
    assert performance.succession.waited_ms >= 0


def late(options: SoundOptions, controls: Controls, rings: Rings, microphones: Microphones) -> Player:
    """Plays programs, but takes longer to begin than a sound that stands still is waited for."""
    began = time.monotonic()
    while time.monotonic() < began + 2:
        pass  # one that sleeps for so long is taken for one that hangs
    return Choosing(options, controls, rings, microphones)


class Choosing(Player):
    """Tells the beat that it chooses only when that has mostly passed."""

    def render(self, out: NDArray[np.float32], seconds: float) -> BeatFigures:
        before = self._entry
        found = super().render(out, seconds)
        if before is None and self._entry is not None:
            time.sleep(0.3)
        return found


@pytest.mark.parametrize("is_held", [False, True])
def test_a_save_before_there_is_sound_enters_with_its_sound(is_held: bool) -> None:
    sound = Sound(Setup("test.weft"), SoundOptions(is_silent=True, renderer=f"{__name__}:late"))
    counting = "s<v> = prev(s@v) + {}\naudio(s@v)\ncompute(s@v)\n"
    performance = Performance(f"me<bpm> = 120\n{grey(200)}{counting.format(1)}", sound=sound)
    succession, beats = performance.succession, performance.clock.tempo.beats
    try:
        assert performance.programs.running is not None
        succession.begin(performance.programs.running)
        if not is_held:
            succession.toggle_pause()
            performance.clock.resume()
        loaded = performance.prepare(f"{TO_THE_BEAT}{counting.format(2)}")
        succession.offer(LoadResult(Saved(b"", time.monotonic()), loaded, ()))
        assert succession._waiting is not None
        number = succession._waiting.sound

        def has_come() -> bool:
            chosen = sound.beat(number)
            return chosen is not None and performance.clock.now() >= beats.time_of(chosen)

        def enters() -> bool:
            performance.frame()
            sound.follow(performance.clock, beats.inputs, {})
            # The beat may become known only after the clock has come to it: frames do not take their time here.
            had_come = has_come()
            entered = performance.take_over()
            assert entered or not had_come
            return entered

        eventually(enters)
        assert succession._sounding == number
        assert has_come()
    finally:
        sound.close()


def test_a_sound_that_never_enters_does_not_keep_its_picture_from_a_beat() -> None:
    sound = Sound(Setup("test.weft"), SoundOptions(is_silent=True, renderer="weft:nothing"))
    performance = Performance(f"me<bpm> = 120\n{grey(200)}", sound=sound)
    try:
        performance.frames(7)
        performance.save(f"{TO_THE_BEAT}s<v> = prev(s@v) + 1\naudio(s@v)\ncompute(s@v)\n")
        while not performance.take_over():
            performance.frame()
            sound.follow(performance.clock, {}, {})
            time.sleep(1 / FPS)
    finally:
        sound.close()
    beats = performance.clock.now() * 2
    assert beats == pytest.approx(round(beats))
