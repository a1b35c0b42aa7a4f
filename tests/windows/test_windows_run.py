"""`weft run` on Windows, as a performer uses it: the window, saves of every kind, its ends, a recording. Its folder has
a space in its name, and letters of several languages."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.support.performance import Performance
from tests.windows.processes import Held, children, end, eventually, is_gone, on_windows, shown
from weft.media.decoding import times_of

pytestmark = on_windows

RED, GREEN, BLUE, WHITE = ("display({}, {}, {})\n".format(*each) for each in ("100", "010", "001", "111"))
SOUND = "tone<v> = sin(me@time * 2764) * 0.2\naudio(tone@v)\n"


@pytest.fixture
def patch(tmp_path: Path) -> Path:
    folder = tmp_path / "mein Ordner 絵"
    folder.mkdir()
    return folder / "größe.weft"


@pytest.fixture
def performance(patch: Path) -> Iterator[Performance]:
    """A performance in a window."""
    patch.write_text(RED + SOUND, encoding="utf-8")
    with Performance(patch, "--size", "640x360") as performance:
        eventually(lambda: performance.count("started") or performance.process.poll() is not None, "the start")
        if os.environ.get("CI") and "no window can be opened" in performance.stderr:
            pytest.skip("this machine has no OpenGL for a window")
        performance.wait_for("started")
        yield performance


def is_shown(red: int, green: int, blue: int, title: str = "größe.weft · weft") -> bool:
    """Whether much of a window has one colour; messages lie over the rest."""
    picture = shown(title)
    if picture is None or not picture.size:
        return False
    return bool((np.abs(picture.astype(int) - (red, green, blue)) <= 2).all(axis=-1).mean() > 0.25)


def test_the_window_shows_each_save_and_what_weft_has_started_ends_with_it(
    performance: Performance, patch: Path
) -> None:
    eventually(lambda: is_shown(255, 0, 0), "the first picture")
    performance.save(GREEN + SOUND)
    eventually(lambda: is_shown(0, 255, 0), "a save by a rename")
    patch.write_text(BLUE + SOUND, encoding="utf-8")
    eventually(lambda: is_shown(0, 0, 255), "a save in place")
    patch.write_text(WHITE + "display(1, 1", encoding="utf-8")
    performance.wait_for("error")
    eventually(lambda: is_shown(0, 0, 255), "the last good program")
    with Held(patch):
        # Nothing can be read while another program has the file for itself.
        performance.wait_for("error", when=lambda event: "cannot be read" in str(event))
    patch.write_text(WHITE + SOUND, encoding="utf-8")
    eventually(lambda: is_shown(255, 255, 255), "a save after all that")

    started = children(performance.process.pid)
    assert len(started) >= 2, "one compiles and one plays"
    for child in started:
        end(child)
    performance.wait_for("restart")
    performance.save(GREEN + SOUND)
    eventually(lambda: is_shown(0, 255, 0), "a save after the processes were started again")

    started = children(performance.process.pid)
    performance.process.kill()
    eventually(lambda: all(map(is_gone, started)), "the end of what it has started")


def test_opengl_computes_what_the_window_shows(patch: Path) -> None:
    patch.write_text(RED, encoding="utf-8")
    with Performance(patch, "--size", "320x180", "--no-audio", "--backend", "visual=gl") as performance:
        eventually(lambda: performance.count("started") or performance.process.poll() is not None, "the start")
        if os.environ.get("CI") and performance.process.poll() is not None:
            pytest.skip("this machine has no OpenGL")
        eventually(lambda: is_shown(255, 0, 0), "the first picture")
        performance.save(GREEN)
        eventually(lambda: is_shown(0, 255, 0), "a save")


def test_a_recording_is_a_film_with_all_that_was_played(patch: Path) -> None:
    patch.write_text(RED + SOUND, encoding="utf-8")
    film = patch.with_name("aufgenommen.mp4")
    with Performance(patch, "--headless", "--size", "64x36", "--record", str(film), "--duration", "4") as performance:
        assert performance.ended() == 0
        recorded = performance.latest("recording")
    assert recorded["state"] == "stopped"
    assert times_of(film)[1] == pytest.approx(recorded["frames"] / 60, abs=0.1)


def test_a_second_window_opens_and_follows_saves(patch: Path) -> None:
    patch.write_text(RED + 'display(0, 1, 0, to: "side")\n', encoding="utf-8")
    with Performance(patch, "--size", "320x180", "--no-audio") as performance:
        eventually(lambda: is_shown(0, 255, 0, "side · größe.weft · weft"), "the picture of the second window")
        performance.save(RED + 'display(0, 0, 1, to: "side")\n')
        eventually(lambda: is_shown(0, 0, 255, "side · größe.weft · weft"), "a save in the second window")
        assert is_shown(255, 0, 0)


def test_a_path_may_be_longer_than_260_letters(patch: Path) -> None:
    folder = patch.parent.joinpath(*(f"ein langer Ordner 絵の名前 {number} {'x' * 40}" for number in range(5)))
    # The longer form of a path makes what the shorter one may not.
    Path(f"\\\\?\\{folder}").mkdir(parents=True)
    deep = folder / patch.name
    assert len(str(deep)) > 300
    deep.write_text(RED, encoding="utf-8")
    film = deep.with_name("film.mp4")
    with Performance(deep, "--headless", "--size", "64x36", "--record", str(film), "--no-audio") as performance:
        performance.wait_for("frames", 2)
        performance.save(GREEN)
        performance.wait_for("swap")
        performance.process.kill()
        performance.process.wait()
    assert times_of(film.with_name("film.part.mp4"))[1] > 0


def test_ctrl_break_ends_a_performance_in_order(patch: Path) -> None:
    patch.write_text(RED, encoding="utf-8")
    with Performance(patch, "--headless", start_new_session=True) as performance:
        performance.wait_for("frames")
        try:
            performance.process.send_signal(signal.CTRL_BREAK_EVENT)  # type: ignore[attr-defined]
        except OSError:
            pytest.skip("these tests have no console")
        performance.ended()
        assert performance.latest("stopped")["reason"] == "terminated"


def test_what_is_written_to_a_pipe_is_utf_8(patch: Path) -> None:
    patch.write_text("größe<v> = 1\n", encoding="utf-8")
    ended = subprocess.run([sys.executable, "-m", "weft", "check", str(patch)], capture_output=True, check=False)
    assert "größe.weft" in (ended.stdout + ended.stderr).decode("utf-8")
