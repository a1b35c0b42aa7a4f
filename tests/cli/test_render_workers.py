"""`weft render --workers`: several processes write what one process writes, also when some of them are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest

from tests.cli.conftest import Weft
from weft.backends.registry import load_registry

FPS = 12
# Twice as many frames as in a segment, and more: one segment is shorter than the others.
SECONDS = 5
PATCH = (
    f"me<width> = 64; me<height> = 36; me<fps> = {FPS}\ndisplay(me@x, me@y, fract(me@time / 3))\n"
    "audio(sin(me@time * 440 * tau) * 0.3, sin(me@time * 330 * tau) * 0.3)\n"
)
SMALL = f"me<width> = 16; me<height> = 10; me<fps> = {FPS}\n"
PICTURES = SMALL + "a<v> = fract(prev(a@v) + me@x / 9)\ndisplay(a@v, 0, 0)\n"
NUMBERS = f"""{SMALL}\
a<v> = phasor(0.7)
b<v> = prev(b@v) * 0.9 + sin(me@time * me@width)
display(a@v, me@x * b@v, delay(b@v, 9, 9))
"""


@pytest.fixture(scope="module")
def weft(tmp_path_factory):
    found = Weft(tmp_path_factory.mktemp("workers"))
    found.file("a.weft", PATCH)
    found.file("pictures.weft", PICTURES)
    found.file("numbers.weft", NUMBERS)
    return found


@pytest.fixture(scope="module")
def film(weft):
    """The bytes of a long film that one process has written. Nothing can be killed half-way in a short one."""
    weft("render", "a.weft", "-o", "one.mp4", "--duration", "30")
    return (weft.folder / "one.mp4").read_bytes()


@cache
def draws_by_gl():
    """Whether a device does; asked when a test begins, since it takes a process to find out."""
    return any(device.available for device in load_registry().backend("gl_visual").probe())


def workers_of(process, entry=b"weft.runtime.films.workers:main"):
    """The processes that draw for another one, or those of another `entry`."""
    found = []
    for folder in Path("/proc").iterdir():
        with suppress(OSError):
            words = (folder / "cmdline").read_bytes()
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == process.pid and entry in words:
                found.append(int(folder.name))
    return found


def start(weft, name):
    run = [sys.executable, "-m", "weft", "render", "a.weft", "-o", name, "--duration", "30", "--workers", "2"]
    return subprocess.Popen(run, cwd=weft.folder, stderr=subprocess.PIPE, text=True)


def wait_for_a_segment(weft, process, name):
    parts = weft.folder / f".{name}.parts"
    while not (parts.is_dir() and any(path.name.isdigit() for path in parts.iterdir())) and process.poll() is None:
        time.sleep(0.01)


def test_a_film_of_two_workers_has_the_same_bytes(weft):
    for count in "1", "2":
        done = weft("render", "a.weft", "-o", f"film{count}.mp4", "--duration", str(SECONDS), "--workers", count)
        assert done.stderr == ""
    assert (weft.folder / "film1.mp4").read_bytes() == (weft.folder / "film2.mp4").read_bytes()
    assert not [path for path in weft.folder.iterdir() if path.name.startswith(".")]


@pytest.mark.long
def test_a_sequence_of_two_workers_has_the_same_bytes(weft):
    for count in "1", "2":
        weft("render", "a.weft", "-o", f"frame{count}-%02d.png", "--duration", "1", "--workers", count)
    same(weft, "frame", range(FPS))
    # Only those that are missing are drawn again.
    (weft.folder / "frame2-03.png").unlink()
    done = weft("render", "a.weft", "-o", "frame2-%02d.png", "--duration", "1", "--workers", "2")
    assert f"{FPS - 1} of {FPS} frames are there already" in done.stderr
    assert (weft.folder / "frame2-03.png").read_bytes() == (weft.folder / "frame1-03.png").read_bytes()


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_frame_that_cannot_be_written_is_named(weft, workers):
    (weft.folder / f"way{workers}-05.png").mkdir()
    command = ["render", "a.weft", "-o", f"way{workers}-%02d.png", "--duration", "1", "--overwrite"]
    done = weft(*command, "--workers", workers, code=3)
    words = f"way{workers}-05.png cannot be written: Is a directory; the same command continues from there"
    assert done.stderr == f"weft: {words}\n"


@pytest.mark.long
def test_a_worker_that_is_killed_costs_its_task_only(weft, film):
    with start(weft, "killed.mp4") as process:
        wait_for_a_segment(weft, process, "killed.mp4")
        victims = workers_of(process)
        assert victims
        os.kill(victims[0], signal.SIGKILL)
        _, words = process.communicate(timeout=120)
    assert (process.returncode, words) == (0, "")
    assert (weft.folder / "killed.mp4").read_bytes() == film


@pytest.mark.long
def test_what_joins_segments_is_not_needed_while_they_are_drawn(weft, film):
    """If it ended early, all would be drawn before that is noticed."""
    with start(weft, "joined.mp4") as process:
        wait_for_a_segment(weft, process, "joined.mp4")
        for encoder in workers_of(process, b"weft.runtime.films.encoding:main"):
            os.kill(encoder, signal.SIGKILL)
        _, words = process.communicate(timeout=120)
    assert (process.returncode, words) == (0, "")
    assert (weft.folder / "joined.mp4").read_bytes() == film


@pytest.mark.long
def test_workers_that_are_always_killed_end_the_film_and_what_is_complete_is_kept(weft, film):
    with start(weft, "lost.mp4") as process:
        wait_for_a_segment(weft, process, "lost.mp4")
        while process.poll() is None:
            for victim in workers_of(process):
                with suppress(ProcessLookupError):
                    os.kill(victim, signal.SIGKILL)
            time.sleep(0.01)
        words = process.stderr.read()
    assert process.returncode == 3
    assert words.count("\n") == 1
    assert "lost.mp4 cannot be written: 3 processes that computed" in words
    assert "ended (SIGKILL); " in words
    assert "frames are kept, and the same command continues from there" in words
    assert not (weft.folder / "lost.mp4").exists()
    with start(weft, "lost.mp4") as process:
        _, words = process.communicate(timeout=120)
    assert "frames are there already and are kept" in words
    assert (weft.folder / "lost.mp4").read_bytes() == film


@pytest.mark.long
def test_an_interrupt_keeps_what_is_complete(weft, film):
    with start(weft, "interrupted.mp4") as process:
        wait_for_a_segment(weft, process, "interrupted.mp4")
        process.send_signal(signal.SIGINT)
        _, words = process.communicate(timeout=60)
        assert process.returncode == 130
        assert "the same command continues from there" in words
        assert not workers_of(process)
    with start(weft, "interrupted.mp4") as process:
        process.communicate(timeout=120)
    assert (weft.folder / "interrupted.mp4").read_bytes() == film


def test_one_process_draws_what_remembers_pictures(weft):
    for count in "1", "2":
        done = weft("render", "pictures.weft", "-o", f"p{count}-%02d.png", "--duration", "1", "--workers", count)
        words = "weft: one process draws: frames of this patch depend on the pictures before them\n"
        assert done.stderr == (words if count == "2" else "")
    same(weft, "p", range(FPS))


@pytest.mark.long
def test_several_processes_draw_what_remembers_numbers(weft):
    span = "--from", "2", "--to", "6"
    for count in "1", "2":
        assert weft("render", "numbers.weft", "-o", f"n{count}-%02d.png", *span, "--workers", count).stderr == ""
        weft("render", "numbers.weft", "-o", f"n{count}.mp4", *span, "--workers", count)
    same(weft, "n", range(2 * FPS, 6 * FPS))
    assert (weft.folder / "n1.mp4").read_bytes() == (weft.folder / "n2.mp4").read_bytes()
    # Between frames that are there already.
    for number in 30, 31, 40:
        (weft.folder / f"n2-{number}.png").unlink()
    weft("render", "numbers.weft", "-o", "n2-%02d.png", *span, "--workers", "2")
    same(weft, "n", range(2 * FPS, 6 * FPS))


def same(weft, name, numbers):
    for number in numbers:
        one, two = ((weft.folder / f"{name}{count}-{number:02}.png").read_bytes() for count in (1, 2))
        assert one == two


def test_workers_are_for_sequences_and_films(weft):
    done = weft("render", "a.weft", "-o", "a.wav", "--duration", "1", "--workers", "2", code=2)
    assert "--workers is for sequences and films" in done.stderr


@pytest.mark.long
@pytest.mark.skipif("not draws_by_gl()", reason="no device draws by OpenGL")
@pytest.mark.parametrize("devices", [("gl:0,gl:0",), ("gl:0", "--workers", "2")])
def test_several_processes_share_a_device(weft, devices):
    span = "--duration", "1"
    weft("render", "a.weft", "-o", "d1-%02d.png", *span, "--backend", "visual=gl:0")
    assert weft("render", "a.weft", "-o", "d2-%02d.png", *span, "--devices", *devices).stderr == ""
    same(weft, "d", range(FPS))
    for path in weft.folder.glob("d2-*.png"):
        path.unlink()


@pytest.mark.skipif("not draws_by_gl()", reason="no device draws by OpenGL")
def test_devices_that_are_not_there_or_of_several_kinds(weft):
    span = "a.weft", "-o", "x-%02d.png", "--duration", "1", "--devices"
    words = weft("render", *span, "gl:0,gl:97", code=3).stderr
    assert words.startswith("weft: gl:97 cannot run visual: it has no device 97 (there is 0: ")
    assert words.count("\n") == 1
    for names, reason in {
        ("gl:0,native",): "--devices are of one kind, such as gl:0,gl:1",
        ("gl:0,gl:0", "--workers", "1"): "--devices names 2, and --workers 1 would leave some out",
        ("gl:0", "--exact"): "--devices says what draws: leave out --exact",
        ("gl:0", "--cluster", "tcp://127.0.0.1:9"): "--devices are of this machine",
    }.items():
        assert reason in weft("render", *span, *names, code=2).stderr
    assert not list(weft.folder.glob("x-*"))
