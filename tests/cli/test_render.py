"""`weft render`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from PIL import Image


def pixels(path):
    with Image.open(path) as image:
        return np.asarray(image.convert("RGBA"))


@pytest.fixture
def small(weft):
    """A patch that shows the time in red, x in green and 2 in blue, and one that counts its frames."""
    weft.file("time.weft", "me<width> = 4; me<height> = 2; me<fps> = 10\ndisplay(me@time, me@x, 2)\n")
    weft.file("count.weft", "me<width> = 4; me<height> = 2; me<fps> = 10\n"
                            "n<v> = prev(n@v) + 1\ndisplay(n@v / 255)\n")  # fmt: skip
    return weft


def test_one_frame(small):
    small("render", "time.weft", "-o", "a.png", "--time", "0.2")
    picture = pixels(small.folder / "a.png")
    assert picture.shape == (2, 4, 4)
    assert picture[0, 0].tolist() == [51, 32, 255, 255]


def test_size_and_rate_win_over_the_patch(small):
    small("render", "time.weft", "-o", "a.png", "--size", "8x6")
    assert pixels(small.folder / "a.png").shape == (6, 8, 4)
    small("render", "time.weft", "-o", "f-%d.png", "--to", "1", "--fps", "2", "--rate", "44100")
    assert sorted(p.name for p in small.folder.glob("f-*")) == ["f-0.png", "f-1.png"]


def test_a_sequence_is_numbered_from_time_0(small):
    small("render", "time.weft", "-o", "f%04d.png", "--from", "0.3", "--duration", "0.3")
    names = sorted(p.name for p in small.folder.glob("f*.png"))
    assert names == ["f0003.png", "f0004.png", "f0005.png"]
    assert pixels(small.folder / "f0004.png")[0, 0, 0] == 102


@pytest.mark.parametrize("patch", ["time.weft", "count.weft"])
def test_a_sequence_goes_on_where_it_was_left(small, patch):
    small("render", patch, "-o", "whole%d.png", "--to", "0.6")
    small("render", patch, "-o", "part%d.png", "--to", "0.3")
    kept = (small.folder / "part1.png").stat().st_mtime_ns
    (small.folder / "part2.png").unlink()
    done = small("render", patch, "-o", "part%d.png", "--to", "0.6")
    assert "2 of 6 frames" in done.stderr
    assert (small.folder / "part1.png").stat().st_mtime_ns == kept
    for number in range(6):
        assert (small.folder / f"part{number}.png").read_bytes() == (small.folder / f"whole{number}.png").read_bytes()
    assert "6 of 6 frames" in small("render", patch, "-o", "part%d.png", "--to", "0.6").stderr


def test_a_sequence_is_not_mixed_with_another(small):
    small("render", "time.weft", "-o", "f%d.png", "--to", "0.3")
    done = small("render", "time.weft", "-o", "f%d.png", "--to", "0.6", "--size", "9x7", code=3)
    assert "f0.png is there already, of " in done.stderr
    assert not (small.folder / "f3.png").exists()
    os.utime(small.folder / "time.weft", (2e9, 2e9))
    done = small("render", "time.weft", "-o", "f%d.png", "--to", "0.6")
    assert "time.weft has changed since" in done.stderr


def test_a_frame_is_the_same_whichever_others_are_asked_for(small):
    small("render", "count.weft", "-o", "f%d.png", "--from", "0.4", "--to", "0.5")
    small("render", "count.weft", "-o", "one.png", "--time", "0.4")
    assert pixels(small.folder / "f4.png")[0, 0, 0] == 5
    assert (small.folder / "one.png").read_bytes() == (small.folder / "f4.png").read_bytes()


def test_values_are_neither_clamped_nor_rounded(small):
    small.file("odd.weft", "me<width> = 3; me<height> = 2\ndisplay(me@x * 10 - 5, 0 / 0, me@y)\n")
    small("render", "odd.weft", "-o", "a.npy")
    found = np.load(small.folder / "a.npy")
    assert found.shape == (1, 2, 3, 3)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found[0, 0, :, 0], (np.arange(3) + 0.5) / 3 * 10 - 5, rtol=1e-6)
    assert np.isnan(found[..., 1]).all()


@pytest.mark.parametrize("backend", ["vector", "vm", "visual=vm"])
def test_several_frames_of_values(small, backend):
    small("render", "count.weft", "-o", "n.npy", "--from", "0.2", "--to", "0.5", "--backend", backend)
    found = np.load(small.folder / "n.npy")
    assert found.shape == (3, 2, 4, 1)
    np.testing.assert_allclose(found[:, 0, 0, 0] * 255, [3, 4, 5], rtol=1e-6)


def test_it_is_the_same_every_time(small):
    for name, threads in (("a", 1), ("b", 2)):
        small("render", "rich.weft", "-o", f"{name}.npy", "--to", "0.2", "--size", "300x200", "--threads", threads)
    assert (small.folder / "a.npy").read_bytes() == (small.folder / "b.npy").read_bytes()


def test_nothing_is_left_beside_the_files(small):
    small("render", "time.weft", "-o", "a.npy")
    small("render", "time.weft", "-o", "a.png")
    small("render", "broken.weft", "-o", "b.png", code=1)
    names = {p.name for p in small.folder.iterdir() if p.suffix != ".weft"}
    assert names == {"a.npy", "a.png"}


@pytest.mark.skipif(sys.platform == "win32", reason="there is no interrupt to send")
def test_an_interrupt_leaves_whole_files_only(small):
    command = [sys.executable, "-m", "weft", "render", "time.weft", "-o", "f%d.png", "--to", "900", "--size", "64x64"]
    with subprocess.Popen(command, cwd=small.folder, stderr=subprocess.PIPE, text=True) as process:
        try:
            while not (small.folder / "f3.png").exists() and process.poll() is None:
                time.sleep(0.02)
            process.send_signal(signal.SIGINT)
            _, words = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130
    assert "Traceback" not in words
    left = [p for p in small.folder.iterdir() if p.suffix != ".weft"]
    assert {p.suffix for p in left} == {".png"}
    for path in left:
        assert pixels(path).shape == (64, 64, 4)


@pytest.mark.parametrize("ending", ["mp4", "webm", "mov"])
def test_endings_of_a_later_version(small, ending):
    done = small("render", "time.weft", "-o", f"a.{ending}", code=3)
    assert done.stderr.count("\n") == 1
    assert f".{ending}" in done.stderr


def test_what_cannot_be_rendered(small):
    small.file("mute.weft", "audio(me@x)\n")
    assert "nothing to show" in small("render", "mute.weft", "-o", "a.png", code=1).stderr
    assert "nosuch.weft cannot be read" in small("render", "nosuch.weft", "-o", "a.png", code=3).stderr
    assert "there is no folder" in small("render", "time.weft", "-o", "none/a.png", code=3).stderr
    assert "metal" in small("render", "time.weft", "-o", "a.png", "--backend", "metal:99", code=3).stderr


@pytest.mark.parametrize(
    "args",
    [
        [], ["-o", "a.txt"], ["-o", "a"], ["-o", "a%d.png"], ["-o", "a.png", "--to", "1"],
        ["-o", "a%d%d.png", "--to", "1"], ["-o", "a%d.npy", "--to", "1"], ["-o", "a.png", "--time", "-1"],
        ["-o", "a%d.png", "--to", "1", "--duration", "1"], ["-o", "a%d.png", "--from", "1"],
        ["-o", "a%d.png", "--from", "1", "--to", "1"], ["-o", "a%d.png", "--time", "1", "--to", "1"],
        ["-o", "a.png", "--size", "0x1"], ["-o", "a.png", "--backend", "nosuch"], ["-o", "a.png", "--fps", "0"],
        ["-o", "a.png", "--time", "nan"], ["-o", "a%d.png", "--duration", "inf"], ["-o", "a.png", "--fps", "nan"],
    ],
)  # fmt: skip
def test_wrong_usage(small, args):
    small("render", "time.weft", *args, code=2)
