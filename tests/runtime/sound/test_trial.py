"""Sounds that are refused before anybody hears them, and those that are only warned of."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, count
from pathlib import Path

import pytest

from weft.errors import Diagnostic
from weft.runtime.compiling import compiler as compiler_module
from weft.runtime.compiling.compiler import Compiler, Saved, Verdict, mistakes
from weft.runtime.hands.clock import Moment
from weft.runtime.program.program import Setup
from weft.runtime.sound.mixer import BLOCK
from weft.runtime.sound.shared import MOST_RINGS, MOST_VIEWS

Try = Callable[..., tuple[Diagnostic, ...]]


@pytest.fixture
def tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Try:
    """What is wrong with a text, tried out on a machine."""

    def tried(
        text: str, executor: str = "vector", moment: Moment | None = None, **clocks: Callable[[], float]
    ) -> tuple[Diagnostic, ...]:
        for name, clock in clocks.items():
            monkeypatch.setattr(compiler_module, f"_{name}_clock", clock)
        compiler = Compiler.of(Setup(str(tmp_path / "patch.weft"), asked=executor))
        made = compiler.compile(Saved(text.encode(), 0.0))
        assert made.compiled is not None, made.diagnostics
        return mistakes(made.compiled, compiler.loader, moment or Moment(), made.places)

    return tried


def found(diagnostics: tuple[Diagnostic, ...]) -> list[tuple[str, str, str]]:
    return [(d.severity, d.code, d.span.text if d.span else "") for d in diagnostics]


def test_a_sound_that_did_not_change_is_not_tried_again(tmp_path: Path) -> None:
    """Unless there was something to say about it, or it has to do with pictures."""
    compiler = Compiler.of(Setup(str(tmp_path / "patch.weft"), asked="vector"))

    def saved(text: str) -> tuple[list[tuple[str, str, str]], dict[str, object]]:
        made = compiler.compile(Saved(text.encode(), 0.0))
        assert made.compiled is not None, made.diagnostics
        verdict = compiler.try_out(made, Moment())
        assert verdict.problems == ()
        return found(verdict.listening() if verdict.listening is not None else ()), made.compiled.codes

    steady, wave = "audio(0.7)\n", "audio(sin(me@time * 440 * tau) / 2)\n"
    (problem,) = saved(f"{steady}display(me@x)\n")[0]
    assert problem == ("warning", "steady-sound", "audio")
    assert saved(f"{steady}display(me@y)\n")[0] == [problem]
    nothing, codes = saved(f"{wave}display(me@x)\n")
    assert nothing == []
    again = saved(f"{wave}display(me@y)\n")
    assert again[0] == []
    (same,) = codes.keys() & again[1].keys()
    assert again[1][same] is codes[same], "it is not translated again either"


def test_a_sound_that_was_tried_but_not_listened_to_is_only_listened_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler, played = Compiler.of(Setup(str(tmp_path / "patch.weft"), asked="vector")), count()

    def tried_with(picture: str) -> Verdict:
        made = compiler.compile(Saved(f"audio(sin(me@time * 440 * tau) / 2)\n{picture}".encode(), 0.0))
        monkeypatch.setattr(compiler_module, "_block_clock", lambda: 1e-9 * next(played))
        return compiler.try_out(made, Moment())

    assert tried_with("display(0)\n").listening is not None
    blocks = next(played)
    assert blocks > 0
    for picture in ("display(1)\n", "display(1)\n// the same\n"):
        listening = tried_with(picture).listening
        assert listening is not None
        assert next(played) == blocks + 1, "no block was played"
        blocks += 1
    # A program that is refused changes nothing about that.
    refused = tried_with("display(0 / 0)\n")
    assert found(refused.problems)[0][:2] == ("error", "not-a-number")
    assert refused.listening is None
    assert listening() == ()
    assert found(tried_with("display(0 / 0)\n").problems) == found(refused.problems)
    assert tried_with("display(2)\n") == Verdict(())


def test_a_sound_that_reads_a_picture_is_tried_again(tmp_path: Path) -> None:
    compiler = Compiler.of(Setup(str(tmp_path / "patch.weft"), asked="vector"))
    for size, problems in (("0.5", []), ("0", [("error", "not-a-number", "audio")])):
        picture = f"size<v> = prev(size@v) * 0 + {size} + me@x * 0\ndisplay(size@v)\n"
        text = f"{picture}audio(sin(phasor(50 / size@v(me@x ~ 0.5, me@y ~ 0.5) * 0 + 50) * tau) / 2)\n"
        made = compiler.compile(Saved(text.encode(), 0.0))
        assert found(compiler.try_out(made, Moment()).problems) == problems


# --- what is no number ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("executor", ["vm", "vector", "native"])
def test_a_sound_that_is_no_number_is_refused(tried: Try, executor: str) -> None:
    (refused,) = tried("audio(log(0 - 1 - abs(phasor(440))))\n", executor)
    assert (refused.severity, refused.code) == ("error", "not-a-number")
    assert refused.message == "mono of audio is not a number at any sample, so it would be silent"


def test_it_says_which_side_of_which_statement(tried: Try) -> None:
    text = "audio(phasor(440) - 0.5)\nplay(0 / 0, 0.1)\naudio(sqrt(me@abstime - 99), 0 / 0)\ndisplay(me@x)\n"
    refused = tried(text)
    assert found(refused) == [("error", "not-a-number", "play"), ("error", "not-a-number", "audio")]
    assert refused[0].message.startswith("left of audio is ")
    assert refused[1].message.startswith("left and right of audio are ")


def test_what_is_no_number_at_times_or_may_become_one_is_played(tried: Try) -> None:
    assert tried("audio(sqrt(sin(me@time * 440)) - 0.5)\n") == ()
    # For half of each period, which is longer than the trial.
    assert tried("audio(sqrt(sin(me@time * 12 * tau)) - 0.5)\n") == ()
    assert tried("w<v> = sin(me@time * 440)\naudio((w@v - prev(w@v)) / (me@abstime - prev(me@abstime)) / 500)\n",
                 "native") == ()  # fmt: skip


def test_a_sound_is_tried_with_what_a_picture_gives_to_it(tried: Try) -> None:
    size = "size<v> = prev(size@v) * 0 + 0.5 + me@x * 0\ndisplay(size@v)\n"
    there = "size@v(me@x ~ 0.5, me@y ~ 0.5)"
    assert tried(f"{size}audio(sin(phasor(50 / {there}) * tau))\n") == ()
    assert found(tried(f"{size}audio(phasor(50 / ({there} * 0)))\n")) == [("error", "not-a-number", "audio")]


def test_a_sound_is_tried_with_the_pictures_that_it_sees(tried: Try) -> None:
    skin = "skin<v> = prev(skin@v) * 0 + 0.5 + me@x * 0\ndisplay(skin@v)\n"
    assert tried(f"{skin}audio(skin@v / skin@v * sin(phasor(50) * tau))\n") == ()
    assert found(tried(f"{skin}audio(skin@v * 0 / 0)\n")) == [("error", "not-a-number", "audio")]


def test_a_sound_that_grows_until_it_is_no_number_is_refused(tried: Try) -> None:
    text = "w<v> = prev(w@v) * {0} - prev(prev(w@v)) * 2 * {0} + sin(me@time * 440)\naudio(w@v)\n"
    assert found(tried(text.format(2), "native")) == [("error", "not-a-number", "audio")]
    assert tried(text.format(0.3), "native") == ()


# --- what is too slow -------------------------------------------------------------------------------------------------

LOOP = "spindle slow(n) :: v {\n  v = 0\n  for i in (1 to n) { v += sin(me@abstime * i) }\n}\n"


def each_takes(seconds: float) -> Callable[[], float]:
    """A clock that shows this many seconds more whenever it is read, which is before and after a frame or a block."""
    readings = count()
    return lambda: seconds * next(readings)


@pytest.mark.long
@pytest.mark.parametrize("executor", ["vm", "vector", "native"])
def test_a_sound_that_takes_longer_than_it_lasts_is_refused(tried: Try, executor: str) -> None:
    text, lasts = f"{LOOP}audio(slow(20 + mouse@x) / 40)\n", BLOCK / 48000
    (refused,) = tried(text, executor, block=each_takes(1.5 * lasts))
    assert found([refused]) == [("error", "too-slow", "audio")]
    assert refused.message == "this sound takes 1.5 times as long to compute as it lasts, so it would stutter"
    assert tried(text, executor, block=each_takes(0.9 * lasts)) == ()


def test_the_best_of_several_blocks_counts(tried: Try) -> None:
    # The first is held up by others.
    readings = chain([0.0, 1.0], count(1.0, 1e-4))
    assert tried("audio(sin(me@abstime * 440))\n", block=lambda: next(readings)) == ()


def test_what_a_block_takes_is_measured(tried: Try) -> None:
    # By an order of magnitude more than there is time for, on a machine that is fast.
    (refused,) = tried(f"{LOOP}audio(slow(100 + mouse@x) / 100)\n", "vm")
    assert refused.code == "too-slow"


@pytest.mark.parametrize(("seconds", "codes"), [(0.1, []), (1.5, []), (2.5, ["too-slow"])])
def test_a_picture_whose_frames_take_seconds_is_refused(tried: Try, seconds: float, codes: list[str]) -> None:
    text = "me<width> = 1280\nme<height> = 720\ndisplay(sin(me@x * mouse@x))\n"
    refused = tried(text, frame=each_takes(seconds))
    assert [diagnostic.code for diagnostic in refused] == codes


def test_what_each_pixel_takes_counts_for_the_whole_picture(tried: Try) -> None:
    # Later frames, which are larger, take longer.
    readings = count()

    def clock() -> float:
        return 0.01 * next(readings) ** 2

    (refused,) = tried("me<width> = 1280\nme<height> = 720\ndisplay(sin(me@x * mouse@x))\n", frame=clock)
    assert refused.code == "too-slow"
    assert tried("me<width> = 32\nme<height> = 18\ndisplay(sin(me@x * mouse@x))\n", frame=clock) == ()


# Twelve images of 4000×3000, of which a frame reads and writes 1.2 GB.
MANY_IMAGES = (
    "me<width> = 4000\nme<height> = 3000\nspindle trail(x, k) :: v { v = max(prev(v) * k, x) }\n"
    "all = sum(<trail(sin(me@x * (i + 1)), 0.9) for i in (1 to 12)>)\ndisplay(all * me@time)\n"
)


@pytest.mark.parametrize(
    ("tick", "verdict", "words"),
    [
        (0.001, [], ""),
        (0.03, [("warning", "slow", "display")], "it remembers 12 images of 4000×3000, 1.2 GB"),
        (0.1, [("error", "too-slow", "display")], "its first frames would take about 2"),
    ],
)
def test_images_that_fit_into_no_cache_count(tried: Try, tick: float, verdict: list[object], words: str) -> None:
    readings = count()
    problems = tried(MANY_IMAGES, "native", frame=lambda: 0.0, own=lambda: tick * next(readings))
    assert found(problems) == verdict
    assert all(words in problem.message for problem in problems)


# --- what stays off zero ----------------------------------------------------------------------------------------------


def test_an_infinite_sound_is_warned_of(tried: Try) -> None:
    (warning,) = tried("audio(1 / 0, 0)\n", block=lambda: 0.0)
    assert warning.span is not None
    assert warning.message == "this sound is infinite, first at 0 s, and silent where it is"


@pytest.mark.parametrize(
    ("text", "off"),
    [("audio(0.75)\n", "0.75"), ("audio(0, me@time - 0.6 - me@time)\n", "0.6"), ("audio(0.4)\naudio(5)\n", "1")],
)  # fmt: skip
def test_a_sound_that_stays_off_zero_is_warned_of(tried: Try, text: str, off: str) -> None:
    (warning,) = tried(text, block=lambda: 0.0)  # however busy this machine is
    assert found([warning]) == [("warning", "steady-sound", "audio")]
    assert f"by {off} on average" in warning.message


@pytest.mark.parametrize("text", ["audio(0.4)\n", "audio(sin(me@time * 3 * tau))\n", "audio(me@x * 0.9)\n"])
def test_a_sound_that_moves_about_zero_or_is_not_far_off_is_not(tried: Try, text: str) -> None:
    assert tried(text) == ()


# --- when it is tried -------------------------------------------------------------------------------------------------


def test_it_is_tried_at_the_moment_of_the_performance(tried: Try) -> None:
    text = "audio(log(10 - me@abstime) * 0.1)\n"
    assert tried(text) == ()
    assert found(tried(text, moment=Moment(tick=1200, abstime=20.0, dt=1 / 60)))[0][1] == "not-a-number"


def test_the_mouse_is_where_it_is(tried: Try) -> None:
    text = "audio(log(mouse@x - 0.5) * 0.1)\n"
    assert tried(text, moment=Moment(inputs={"mouse@x": 0.9})) == ()
    assert tried(text, moment=Moment(inputs={"mouse@x": 0.1})) != ()


def test_a_slider_is_within_its_new_range(tried: Try) -> None:
    text = "#slider k<v> = 0, 1, 0.5\ndisplay(sqrt(1 - k))\naudio(sqrt(1 - k) * sin(me@time * 3) * 0.1)\n"
    assert tried(text, moment=Moment(inputs={"k@v": 8.0})) == ()


# --- what there is no room for ----------------------------------------------------------------------------------------


def test_more_strands_than_there_is_room_for_are_refused(tried: Try) -> None:
    seen = "".join(f"s{n}<v> = prev(s{n}@v) + me@x\n" for n in range(MOST_VIEWS + 1))
    total = " + ".join(f"s{n}@v" for n in range(MOST_VIEWS + 1))
    assert [d.code for d in tried(f"{seen}display({total})\naudio({total})\n")] == ["too-many-seen"]
    heard = "".join(f"s{n}<v> = phasor({n})\n" for n in range(MOST_RINGS + 1))
    total = " + ".join(f"s{n}@v" for n in range(MOST_RINGS + 1))
    assert [d.code for d in tried(f"{heard}compute({total})\naudio({total})\n")] == ["too-many-heard"]
