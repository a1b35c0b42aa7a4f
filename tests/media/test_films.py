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

import numpy as np
import pytest
from PIL import Image

from tests.media.test_capture import children, decoders
from tests.support.films import STEP, film_of, gray_film, number_in
from tests.support.forks import ran
from tests.support.performance import Performance
from tests.support.sound import eventually
from weft.media.films import Films, header
from weft.media.frames import Frame, floats
from weft.media.sampled import size_of
from weft.media.source import LivePicture, PictureError
from weft.names import FilmFile
from weft.runtime.program import ProgramLoader

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
    assert size_of(str(wide)) == (48, 16)
    corner = np.zeros((16, 32, 3), np.uint8)
    corner[:8, :16] = 200  # in the stored picture on top on the left
    for degrees, turns in ((90, 1), (180, 2), (270, 3)):
        path = film_of(tmp_path / f"turned{degrees}.mp4", [corner] * 3, turned=degrees)
        expected = np.rot90(corner[..., 0], turns)
        assert size_of(str(path)) == expected.shape[::-1]
        found = np.asarray(open_film(path, opened).exactly(0.0))[..., 0]
        assert found.shape == expected.shape
        assert np.abs(found.astype(int) - expected).max() < 40


# --- files that cannot be read ---


def test_what_is_no_film_is_told_by_its_header(folder: Path, tmp_path: Path) -> None:
    def told(name: str) -> str:
        found = size_of(str(tmp_path / name))
        assert isinstance(found, str)
        return found

    assert "no such file" in told("missing.mp4")
    Image.new("RGB", (8, 8)).save(tmp_path / "picture.png")
    shutil.move(tmp_path / "picture.png", tmp_path / "picture.mp4")
    assert "single picture (png)" in told("picture.mp4")
    whole = (folder / "gray.mp4").read_bytes()
    (tmp_path / "cut.mp4").write_bytes(whole[: len(whole) // 2])
    assert "damaged" in told("cut.mp4")
    (tmp_path / "empty.mp4").write_bytes(b"")
    assert "damaged" in told("empty.mp4")
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
    assert "incomplete" in str(size_of(str(tmp_path / "part.mp4")))


def test_a_sound_that_is_called_a_film_has_no_pictures(tmp_path: Path) -> None:
    import av

    with av.open(str(tmp_path / "sound.mp4"), "w") as container:
        stream = container.add_stream("aac", rate=48000)
        frame = av.AudioFrame.from_ndarray(np.zeros((2, 1024), np.float32), format="fltp", layout="stereo")
        frame.sample_rate = 48000
        for packet in [*stream.encode(frame), *stream.encode()]:
            container.mux(packet)
    assert "it has no pictures" in str(size_of(str(tmp_path / "sound.mp4")))


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


# --- as long as it is read ---


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
