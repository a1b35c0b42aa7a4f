"""Films: the picture at time t is frame ⌊t · fps⌋, wherever and in whatever order it is read."""

from __future__ import annotations

import gc
import json
import math
import os
import shutil
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.media.test_capture import children, decoders
from tests.media.test_sounds import MACHINES, heard
from tests.support.films import SOUND_RATE, STEP, film_of, gray_film, number_in, sounding_film
from tests.support.forks import ran
from tests.support.performance import Performance
from tests.support.sound import eventually
from tests.support.sounds import cache
from weft.contexts import ContextTable
from weft.errors import Report, Source
from weft.graph.bindings import collect
from weft.media.films import Films, header
from weft.media.frames import Frame, floats
from weft.media.sampled import header_of
from weft.media.sounds import load_sound
from weft.media.source import LivePicture, PictureError
from weft.names import FilmFile
from weft.runtime.program.program import ProgramLoader
from weft.syntax.parser import parse

__all__ = ["cache"]

COUNT, RATE = 48, 24


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the film that most tests read: two seconds of 24 frames."""
    made = tmp_path_factory.mktemp("films")
    gray_film(made / "gray.mp4", COUNT, RATE)
    return made


@pytest.fixture
def opened() -> Iterator[list[LivePicture]]:
    """Films that are closed after the test."""
    found: list[LivePicture] = []
    yield found
    for film in found:
        film.close()


def open_film(path: Path, opened: list[LivePicture], loops: bool = True, key: str = "") -> LivePicture:
    opened.append(Films().open((str(path), float(loops), key), offline=True))
    return opened[-1]


def shown(picture: np.ndarray) -> int:
    return int(number_in(floats(picture)[0, 0, 0]))


# Order of reading: forwards, backwards, and jumps that are further apart than key frames.
TIMES = [k / 60 for k in range(70)] + [2 - k / 30 for k in range(1, 60)] + [(k * 0.77) % 2 for k in range(20)]


@pytest.mark.parametrize(
    ("name", "codec"),
    [("a.mp4", "libx264"), ("a.mkv", "ffv1"), ("a.avi", "mpeg4"), ("a.webm", "libvpx"), ("a.ts", "libx264")],
)
def test_the_picture_at_a_time_is_the_frame_of_that_time(
    name: str, codec: str, tmp_path: Path, opened: list[LivePicture]
) -> None:
    film = open_film(gray_film(tmp_path / name, COUNT, RATE, codec), opened)
    found = [shown(film.exactly(t)) for t in TIMES]
    assert found == [math.floor(t * RATE + 1e-6) % COUNT for t in TIMES]


def test_frames_that_last_differently_are_shown_by_their_time_stamps(tmp_path: Path, opened: list[LivePicture]) -> None:
    stamps = list(np.cumsum([0, *(40 + 37 * (k % 4) for k in range(20))]))
    path = gray_film(tmp_path / "varying.mkv", len(stamps), 25, "ffv1", stamps=[int(s) for s in stamps])
    film = open_film(path, opened, loops=False)
    for t in np.linspace(0, stamps[-1] / 1000, 67):
        wanted = int(np.searchsorted(stamps, t * 1000 + 0.5, side="right")) - 1
        assert shown(film.exactly(float(t))) == wanted, t


def test_a_film_loops_or_stays_and_is_black_before_it_begins(folder: Path, opened: list[LivePicture]) -> None:
    loops, once = (open_film(folder / "gray.mp4", opened, loops=loops) for loops in (True, False))
    for t in (2.0, 3.5, 7.99, -0.02, -1.0, 2e6):
        assert shown(loops.exactly(t)) == math.floor((t % 2) * RATE + 1e-6) % COUNT
    assert shown(once.exactly(2.0)) == shown(once.exactly(99.0)) == shown(once.exactly(math.inf)) == COUNT - 1
    assert not once.exactly(-0.01).any()
    assert not once.exactly(-math.inf).any()
    before = loops.exactly(1.0)
    assert loops.exactly(math.nan) is before, "a time that is no number stays where it was"
    assert loops.exactly(1.01) is before, "the same frame is the same array"


def test_at_waits_for_nothing_and_shows_what_is_nearest(folder: Path, opened: list[LivePicture]) -> None:
    film = open_film(folder / "gray.mp4", opened)
    assert shown(film.at(1.5)) <= 36
    eventually(lambda: shown(film.at(1.5)) == 36, "the right frame")
    for number in range(36, 0, -1):
        eventually(lambda number=number: shown(film.at(number / RATE)) == number, "frames backwards")


@pytest.mark.long
def test_what_was_given_does_not_change_until_two_others_have_been_given(
    tmp_path: Path, opened: list[LivePicture]
) -> None:
    # Large enough that few frames are kept.
    pictures = [np.full((1080, 1920, 3), STEP * number, np.uint8) for number in range(40)]
    film = open_film(film_of(tmp_path / "large.mp4", pictures, 30, "mpeg4"), opened)
    given: list[tuple[np.ndarray, int]] = []
    for number in [*range(0, 40, 3), *range(39, 0, -4), 7, 31, 2]:
        picture = film.exactly(number / 30)
        given.append((picture, number))
        for earlier, known in given[-2:]:
            assert shown(earlier) == known


def test_frames_are_bytes_that_become_floats_when_they_are_asked_for(folder: Path, opened: list[LivePicture]) -> None:
    film = open_film(folder / "gray.mp4", opened)
    frame = film.exactly(0.5)
    assert isinstance(frame, Frame)
    assert frame.shape == (16, 32, 4)
    assert np.allclose(floats(frame), np.asarray(frame) / 255, atol=1e-7)
    assert floats(frame) is floats(frame)


def test_pixels_become_square_and_turned_films_stand_upright(tmp_path: Path, opened: list[LivePicture]) -> None:
    wide = gray_film(tmp_path / "wide.mp4", 3, size=(32, 16), aspect=Fraction(3, 2))
    assert header_of(str(wide))[:2] == (48, 16)
    corner = np.zeros((16, 32, 3), np.uint8)
    corner[:8, :16] = 200  # in the stored picture on top on the left
    for degrees, turns in ((90, 1), (180, 2), (270, 3)):
        path = film_of(tmp_path / f"turned{degrees}.mp4", [corner] * 3, turned=degrees)
        expected = np.rot90(corner[..., 0], turns)
        assert header_of(str(path))[:2] == expected.shape[::-1]
        found = np.asarray(open_film(path, opened).exactly(0.0))[..., 0]
        assert found.shape == expected.shape
        assert np.abs(found.astype(int) - expected).max() < 40


# --- files that cannot be read ---


def test_what_is_no_film_is_told_by_its_header(folder: Path, tmp_path: Path) -> None:
    def told(name: str) -> str:
        found = header_of(str(tmp_path / name))
        assert isinstance(found, str)
        return found

    assert "no such file" in told("missing.mp4")
    Image.new("RGB", (8, 8)).save(tmp_path / "picture.png")
    shutil.move(tmp_path / "picture.png", tmp_path / "picture.mp4")
    assert "single picture (png)" in told("picture.mp4")
    whole = (folder / "gray.mp4").read_bytes()
    (tmp_path / "cut.mp4").write_bytes(whole[: len(whole) // 2])
    assert "it is incomplete or damaged (is it still being written?" in told("cut.mp4")
    (tmp_path / "empty.mp4").write_bytes(b"")
    assert "it is empty" in told("empty.mp4")
    (tmp_path / "text.mp4").write_text("nothing but words\n" * 100)
    assert "damaged" in told("text.mp4")
    (tmp_path / "folder.mp4").mkdir()
    assert "a folder" in told("folder.mp4")


def test_a_film_that_ends_too_soon_is_told_before_it_plays(tmp_path: Path) -> None:
    import av

    path = gray_film(tmp_path / "whole.mp4", COUNT, RATE, "mpeg4", size=(320, 240))
    # The index comes first, as in films for the web.
    order = {"movflags": "faststart"}
    with av.open(str(path)) as source, av.open(str(tmp_path / "web.mp4"), "w", options=order) as web:
        stream = web.add_stream_from_template(source.streams.video[0])
        for packet in source.demux(source.streams.video[0]):
            if packet.dts is not None:
                packet.stream = stream
                web.mux(packet)
    whole = (tmp_path / "web.mp4").read_bytes()
    (tmp_path / "part.mp4").write_bytes(whole[: len(whole) * 3 // 4])
    assert "incomplete" in str(header_of(str(tmp_path / "part.mp4")))


def test_a_sound_that_is_called_a_film_has_no_pictures(tmp_path: Path) -> None:
    import av

    with av.open(str(tmp_path / "sound.mp4"), "w") as container:
        stream = container.add_stream("aac", rate=48000)
        frame = av.AudioFrame.from_ndarray(np.zeros((2, 1024), np.float32), format="fltp", layout="stereo")
        frame.sample_rate = 48000
        for packet in [*stream.encode(frame), *stream.encode()]:
            container.mux(packet)
    assert "it has no pictures" in str(header_of(str(tmp_path / "sound.mp4")))


# --- in patches ---

PATCH = """\
load("gray.mp4")::f<r, g, b, a, w, h>
steps<v> = integrate(1.5)
back<v> = f@r(me@time ~ 1.9 - me@time * 2)
display(f@r, back@v, f@r(me@time ~ steps@v), f@w / 1000)
"""


@pytest.mark.parametrize("backend", ["vm", "vector", "native", "gl"])
def test_renders_show_the_frame_of_each_time(backend: str, folder: Path) -> None:
    patch = folder / f"patch_{backend}.weft"
    patch.write_text(PATCH)
    out = folder / f"{backend}.npy"
    arguments = ["render", str(patch), "-o", str(out), "--size", "4x4", "--fps", "60", "--duration", "1.5"]
    outcome = ran([*arguments, "--backend", f"visual={backend}"], folder, os.environ)
    if backend == "gl" and "no-such-backend" in outcome.stderr:
        pytest.skip("there is no OpenGL")
    assert outcome.returncode == 0, outcome.stderr
    found = np.load(out)[:, 2, 2]
    times = np.arange(90) / 60

    def wanted(t: np.ndarray) -> np.ndarray:
        return np.floor((t % 2) * RATE + 1e-6).astype(int) % COUNT

    assert np.array_equal(number_in(found[:, 0]), wanted(times))
    assert np.array_equal(number_in(found[:, 1]), wanted(1.9 - times * 2))
    assert np.array_equal(number_in(found[:, 2]), wanted(times * 1.5))
    assert np.allclose(found[:, 3], 0.032)


@pytest.mark.parametrize("backend", ["vm", "native", "gl"])
def test_eval_shows_the_frame_of_its_time(backend: str, folder: Path) -> None:
    patch = folder / "evaluated.weft"
    patch.write_text('load("gray.mp4")::f<r>\nk = integrate(2)\nv = f@r(me@time ~ k + 0.5)\ndisplay(v)\n')
    at = ("--at", "abstime=1", "--ticks", "15", "--json", "--backend", backend)
    outcome = ran(["eval", str(patch), "v", *at], folder, os.environ)
    if backend == "gl" and "no-such-backend" in outcome.stderr:
        pytest.skip("there is no OpenGL")
    assert outcome.returncode == 0, outcome.stderr
    # 15 ticks of 1/60 s at twice the speed, from 0.5 s on.
    assert number_in(json.loads(outcome.stdout)["values"]) == [RATE]


def checked(text: str, folder: Path) -> str:
    patch = folder / "checked.weft"
    patch.write_text('load("gray.mp4")::f<r, g, b>\n' + text)
    outcome = ran(["check", str(patch)], folder, os.environ)
    return outcome.stderr


def test_a_time_that_varies_over_the_picture_is_told_at_its_map(folder: Path) -> None:
    said = checked("display(f@r(me@time ~ me@time - me@y))\n", folder)
    assert "checked.weft:2:13: error: the time of a film is one number a frame" in said
    assert "varies over y" in said
    assert "cache(f, 60)" in said


def test_a_time_that_differs_from_step_to_step_of_a_loop_is_told(folder: Path) -> None:
    text = (
        "spindle many(n) :: v { v = 0\n for i in (0 to n) { v = v + f@r(me@time ~ i) } }\ndisplay(many(mouse@x * 9))\n"
    )
    assert "differs from step to step" in checked(text, folder)


def test_films_have_a_limit_of_times(folder: Path) -> None:
    reads = " + ".join(f"f@r(me@time ~ {k})" for k in range(17))
    assert "16 times at once" in checked(f"display({reads})\n", folder)


def test_other_contexts_read_a_film_from_the_picture(folder: Path) -> None:
    patch, out = folder / "read.weft", folder / "read.npy"
    patch.write_text(
        'load("gray.mp4")::f<r>\nlate<v> = f@r(me@time ~ me@time + 0.5)\n'
        "level = late@v(me@x ~ 0.5, me@y ~ 0.5)\ncompute(level)\naudio(level)\ndisplay(f@r)\n"
    )
    arguments = ["render", str(patch), "-o", str(out), "--fps", "24", "--duration", "0.5", "--context", "audio"]
    outcome = ran([*arguments, "--rate", "4800", "--size", "4x4"], folder, os.environ)
    assert outcome.returncode == 0, outcome.stderr
    sound = np.load(out)
    assert number_in(sound.reshape(2, -1)[0, -1] if sound.shape[0] == 2 else sound[-1, 0]) in (22, 23, 24)


# --- their sound: at a time, it is that of the frame of this time ---

LEVEL = 1 / 64


def levels(count: int, rate: Fraction, times: np.ndarray) -> np.ndarray:
    """The sound of a film that sounds as `sounding_film` does, and repeats."""
    return np.floor(times % float(count / rate) * float(rate) + 1e-6) % count * LEVEL


@pytest.mark.parametrize(
    ("name", "codec", "sound", "most"),
    [("a.mkv", "ffv1", "flac", 0), ("a.mp4", "libx264", "alac", 0), ("a.avi", "mpeg4", "pcm_s16le", 0),
     ("b.mp4", "libx264", "aac", 0.05)],
)  # fmt: skip
def test_a_film_and_its_sound_are_in_step(
    name: str, codec: str, sound: str, most: float, tmp_path: Path, cache: Path
) -> None:
    path = sounding_film(tmp_path / name, 24, codec=codec, sound=sound)
    found = load_sound(path, SOUND_RATE)[0]
    wanted = levels(24, Fraction(30), np.arange(len(found)) / SOUND_RATE)
    assert found.shape == (38_400, 2)
    np.testing.assert_allclose(found, np.stack([wanted, -wanted], axis=1), atol=most)


def test_sound_that_is_late_or_missing_stays_in_step(tmp_path: Path, cache: Path) -> None:
    times = np.arange(38_400) / SOUND_RATE
    wanted = levels(24, Fraction(30), times)

    def left(name: str, **options: Any) -> np.ndarray:
        path = sounding_film(tmp_path / name, 24, sound="pcm_s16le", **options)
        found: np.ndarray = load_sound(path, SOUND_RATE)[0, :, 0]
        return found

    late = left("late.mkv", late=0.1)
    np.testing.assert_array_equal(late, np.where(times < 0.1, 0, np.roll(wanted, 4800)))
    part = left("part.mkv", part=(0.25, 0.75))
    np.testing.assert_array_equal(part, np.where((times >= 0.2) & (times < 0.6), wanted, 0))
    gap = left("gap.mkv", missing=(0.5, 0.625))
    np.testing.assert_array_equal(gap, np.where((times >= 0.4) & (times < 0.5), 0, wanted))


@pytest.mark.parametrize("machine", MACHINES)
def test_a_film_and_its_sound_repeat_together(machine: str, tmp_path: Path, cache: Path) -> None:
    """Seven frames last 11,211.2 samples: over an hour, a fifth of a sample each time would become three seconds."""
    count, rate = 7, Fraction(30_000, 1001)
    path = sounding_film(tmp_path / "a.mkv", count, rate)
    text = f'load("{path}")::s<l, r>\nplay(s@l, s@l(me@time ~ -me@time), s@seconds, s@r(0.1))'
    for start in (0, 3600, -3600):
        times = start + np.arange(0, 24_000, 7) / SOUND_RATE
        right, back, seconds, fixed = heard(text, times, machine)
        in_frame = np.abs(times * float(rate) - np.round(times * float(rate))) > 0.01
        for found, wanted in ((right, times), (back, -times)):
            np.testing.assert_allclose(found[in_frame], levels(count, rate, wanted)[in_frame], atol=1e-6)
        np.testing.assert_allclose(seconds, float(count / rate), atol=1e-3)
        np.testing.assert_allclose(fixed, -2 * LEVEL)
    once = heard(f'load("{path}", loop: 0)::s<l, r>\nplay(s@l)', np.array([-1, 0.1, 0.233, 0.235, 9.0]), machine)
    np.testing.assert_array_equal(once, [[0, 2 * LEVEL, 6 * LEVEL, 0, 0]])


SOUNDING = """\
me<rate> = 4800
load("sounding.mkv")::f<r, g, b, a, left, right>
load("sounding.mkv")::s<l, r>
late<v> = f@r(me@time ~ me@time + 0.3)
display(f@r, s@l(me@time ~ me@time + 1 / 60), late@v)
audio(f@left(me@time ~ me@time + 0.3), s@r)
"""


@pytest.mark.parametrize("backend", ["vm", "vector", "native", "gl"])
def test_a_render_shows_and_plays_both(backend: str, tmp_path: Path, cache: Path) -> None:
    sounding_film(tmp_path / "sounding.mkv", 24)
    patch = tmp_path / "patch.weft"
    patch.write_text(SOUNDING)
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache.parents[1])}
    found = {}
    for context in ("visual", "audio"):
        out = tmp_path / f"{context}.npy"
        arguments = ["render", str(patch), "-o", str(out), "--fps", "30", "--duration", "1", "--context", context]
        arguments += ["--backend", f"visual={backend}"] + (["--size", "4x4"] if context == "visual" else [])
        outcome = ran(arguments, tmp_path, environment)
        if backend == "gl" and "no-such-backend" in outcome.stderr:
            pytest.skip("there is no OpenGL")
        assert outcome.returncode == 0, outcome.stderr
        found[context] = np.load(out)
    frames, sound = found["visual"][:, 2, 2], found["audio"]
    times = np.arange(30) / 30
    np.testing.assert_array_equal(number_in(frames[:, 0]), number_of(times))
    # Resampled sound rings about its steps; in the middle of frames it does not.
    np.testing.assert_allclose(frames[:, 1], levels(24, Fraction(30), times), atol=LEVEL / 4)
    np.testing.assert_array_equal(number_in(frames[:, 2]), number_of(times + 0.3))
    places = np.round((times + 0.5 / 30) * 4800).astype(int)
    middle = places / 4800
    np.testing.assert_allclose(sound[places, 0], levels(24, Fraction(30), middle + 0.3), atol=LEVEL / 4)
    np.testing.assert_allclose(sound[places, 1], -levels(24, Fraction(30), middle), atol=LEVEL / 4)


def number_of(times: np.ndarray) -> np.ndarray:
    """The frames of the film of 24 frames, 30 a second, at some times."""
    return np.floor(times % 0.8 * 30 + 1e-6).astype(int) % 24


def test_how_a_film_can_be_bound(folder: Path, tmp_path: Path) -> None:
    shutil.copy(folder / "gray.mp4", tmp_path / "mute.mp4")
    sounding_film(tmp_path / "film.mkv", 3)

    def outputs(text: str) -> list[str]:
        """What each output of `f` is, by its name in full."""
        made = collect(parse(Source(str(tmp_path / "p.weft"), text), Report()), ContextTable(), Report())
        names = ("red", "green", "blue", "alpha", "left", "right")
        return [names[o.definition.plane] for o in made.instances["f"].outputs.values()]  # type: ignore[union-attr]

    for bound, wanted in {
        "<r>": "red", "<r, g>": "red green", "<l, r>": "left right", "<a, b, c>": "red green blue",
        "<r, g, b, l, r2>": "red green blue left right", "<r, g, b, w, h>": "red green blue",
        "<r, g, b, a, l, r2>": "red green blue alpha left right", "<r, g, b, a, w, h>": "red green blue alpha",
    }.items():
        assert outputs(f'load("film.mkv")::f{bound}') == wanted.split()
    for bound in ("<l, r>", "<r, g, b, a, l, r2>"):
        assert outputs(f'f{bound} = load("film.mkv")') == outputs(f'load("film.mkv")::f{bound}')
    for text, said in {
        'load("mute.mp4")::s<l, r>\naudio(s)': "this film has no sound",
        'load("film.mkv")::f<a, b, c, d, e, f, g>': 'nothing is left for "g"',
        'f = load("film.mkv")\naudio(f@l)': 'its sound is load("…")::s<l, r>',
    }.items():
        patch = tmp_path / "wrong.weft"
        patch.write_text(text)
        outcome = ran(["check", str(patch)], tmp_path, os.environ)
        assert said in outcome.stderr
        assert outcome.returncode == 1


def test_what_is_bound_in_a_spindle_sounds_as_well(tmp_path: Path, cache: Path) -> None:
    path = sounding_film(tmp_path / "film.mkv", 24)
    text = (
        f'spindle at(t) :: <a, b> {{ load("{path}")::s<l, r>\n load("{path}")::f<r, g, b, left, right>\n'
        " a = s@l(t)\n b = f@right(me@time ~ t) }\nat(me@time / 2)::v<a, b>\nplay(v)"
    )
    times = np.arange(5, 40, 5) / 30 + 0.01
    wanted = levels(24, Fraction(30), times / 2)
    np.testing.assert_allclose(heard(text, times), [wanted, -wanted], atol=1e-6)


# --- as long as it is read ---


@pytest.mark.long
def test_all_times_of_a_film_share_a_process_which_ends_with_the_last(folder: Path) -> None:
    gc.collect()
    before, files = children(), len(os.listdir("/proc/self/fd"))
    loader = ProgramLoader({})
    film = FilmFile(str(folder / "gray.mp4"), True)
    one, other = loader._open_live([film.at("a")]), loader._open_live([film.at("a"), film.at("b")])
    assert one[film.at("a")] is other[film.at("a")], "it goes on over a save"
    (process,) = children() - before
    other.clear()
    gc.collect()
    assert process in children()
    one.clear()
    gc.collect()
    assert children() == before
    eventually(lambda: len(os.listdir("/proc/self/fd")) == files, "the end of its files")


def test_a_changed_film_is_read_again(tmp_path: Path) -> None:
    path = gray_film(tmp_path / "film.mkv", 4, codec="ffv1")
    loader, name = ProgramLoader({}, offline=True), FilmFile(str(path), True).at("a")
    first = loader._open_live([name])
    assert shown(first[name].exactly(0.1)) == 3
    film_of(path, [np.full((16, 32, 3), 20 * STEP, np.uint8)] * 9, codec="ffv1")
    second = loader._open_live([name])
    assert second[name] is not first[name]
    assert shown(second[name].exactly(0.1)) == 20
    assert loader._open_live([name])[name] is second[name]


def test_a_film_whose_file_is_gone_goes_on_with_a_warning(tmp_path: Path, opened: list[LivePicture]) -> None:
    path = gray_film(tmp_path / "film.mp4", COUNT, RATE)
    film = open_film(path, opened)
    assert film.problem() is None
    aside = path.rename(tmp_path / "aside.mp4")
    assert "gone" in str(film.problem())
    path.write_bytes(b"no film" * 100)
    assert "gone" in str(film.problem())
    path.unlink()
    path.mkdir()
    assert "gone" in str(film.problem())
    path.rmdir()
    aside.replace(path)
    assert film.problem() is None
    path.unlink()
    assert "gone" in str(film.problem())
    assert shown(film.exactly(1.0)) == RATE
    film._film._child.kill()  # type: ignore[attr-defined]
    eventually(lambda: "ended" in str(film.problem()), "a warning")
    assert shown(film.at(1.0)) == RATE


def test_a_film_that_cannot_be_opened_leaves_nothing(tmp_path: Path) -> None:
    before = children()
    with pytest.raises(PictureError, match="no such file"):
        Films().open((str(tmp_path / "nothing.mkv"), 1.0, ""), offline=False)
    assert children() == before
    with pytest.raises(PictureError):
        header(tmp_path / "nothing.mkv")


@pytest.mark.long
def test_a_performance_shows_frames_by_the_clock_while_films_come_and_go(tmp_path: Path) -> None:
    path = gray_film(tmp_path / f"played{os.getpid()}.mp4", COUNT, RATE)
    patch = tmp_path / "patch.weft"
    with_film = (
        f'load("{path.name}")::f<r, g, b>\nlevel = f@r(me@x ~ 0.5, me@y ~ 0.5)\ndisplay(f)\n'
        "compute(level: level, time: me@abstime)\n"
    )
    without = "display(me@x, me@y, 0)\n"
    patch.write_text(with_film)
    new = ("-X", "utf8", "-m", "weft")
    with Performance(patch, "--headless", "--size", "32x16", "--no-audio", python=new) as performance:

        def by_the_clock() -> int:
            """How many reports show the frame of their time, or of one tick before."""
            right = 0
            for event in performance.events:
                if event["event"] == "compute":
                    level, seconds = event["values"]
                    right += (math.floor(seconds * RATE) - int(number_in(level))) % COUNT <= 1
            return right

        eventually(lambda: by_the_clock() >= 3, "frames by the clock")
        assert decoders(str(path)) == 1
        for round_ in range(2):
            performance.save(without)
            performance.wait_for("swap", 2 * round_ + 1)
            performance.save(f"// {round_}\n{with_film}")
            performance.wait_for("swap", 2 * round_ + 2)
        assert decoders(str(path)) == 1, "it went on, or began again"
    eventually(lambda: decoders(str(path)) == 0, "the end of the decoder")


@pytest.mark.long
def test_many_saves_that_add_and_remove_a_film_leave_nothing(tmp_path: Path) -> None:
    path = gray_film(tmp_path / f"saved{os.getpid()}.mp4", COUNT, RATE)
    patch = tmp_path / "patch.weft"

    def text(number: int) -> str:
        if number % 2:
            return f"// {number}\ndisplay(me@x, me@y, {number} / 100)\n"
        return f'load("{path.name}")::f<r, g, b>\ndisplay(f@rgb(me@time ~ me@time * {number % 7}))\n'

    patch.write_text(text(0))
    new = ("-X", "utf8", "-m", "weft")
    with Performance(patch, "--headless", "--size", "32x16", "--no-audio", python=new) as performance:
        performance.wait_for("frames")
        for number in range(1, 60):
            performance.save(text(number))
            performance.wait_for("swap", number)
        # The program before may come back within its first seconds.
        eventually(lambda: decoders(str(path)) == 0, "the end of the decoder, while the performance goes on")


# --- pictures of several frames ---

COLOURS = ((255, 0, 0), (0, 255, 0), (0, 0, 255))


def moving(path: Path) -> Path:
    frames = [Image.new("RGB", (16, 8), colour) for colour in COLOURS]
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=200, loop=0, lossless=True)
    return path


@pytest.mark.long
@pytest.mark.parametrize("name", ["a.gif", "a.png", "a.webp"])
def test_a_picture_of_several_frames_moves(name: str, tmp_path: Path) -> None:
    moving(tmp_path / name)
    found = header_of(str(tmp_path / name))
    assert not isinstance(found, str)
    assert (found.width, found.height, found.moves, found.remarks) == (16, 8, True, ())
    assert found.seconds in (0, pytest.approx(0.6))  # png does not say it at its beginning
    (tmp_path / "a.weft").write_text(f'load("{name}")::p<r, g, b>\ndisplay(p)\n')
    for seconds, colour in zip((0.05, 0.25, 0.45, 0.65), (*COLOURS, COLOURS[0]), strict=True):
        options = ["--time", str(seconds), "--size", "16x8"]
        assert ran(["render", "a.weft", "-o", "a-out.png", *options], tmp_path, os.environ).returncode == 0
        with Image.open(tmp_path / "a-out.png") as image:
            assert image.convert("RGB").getpixel((8, 4)) == colour


def test_a_picture_of_one_frame_stands_still(tmp_path: Path) -> None:
    for name in ("a.gif", "a.png", "a.webp"):
        Image.new("RGB", (4, 4)).save(tmp_path / name)
        found = header_of(str(tmp_path / name))
        assert not isinstance(found, str)
        assert (found.moves, found.remarks) == (False, ())
