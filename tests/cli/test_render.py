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


def change_text(weft):
    path = weft.folder / "mix.weft"
    path.write_text(path.read_text().replace("me@x * 0.1", "me@x * 0.2"))


def change_include(weft):
    weft.file("half.weft", "spindle half(x) :: v { v = x / 4 }\n")


def change_picture(weft):
    Image.new("RGB", (2, 2), (90, 0, 0)).save(weft.folder / "red.png")


def change_parameter(weft):
    path = weft.folder / "mix.weft"
    path.write_text(path.read_text().replace("0, 1, 0.25", "0, 1, 0.5"))


CHANGES = {
    "text": (change_text, []), "include": (change_include, []), "picture": (change_picture, []),
    "slider": (change_parameter, []), "size": (None, ["--size", "9x7"]), "fps": (None, ["--fps", "11"]),
    "backend": (None, ["--backend", "visual=vm"]),
}  # fmt: skip


@pytest.fixture
def mixed(small):
    """A patch that remembers, includes, reads a picture and has a slider."""
    Image.new("RGB", (2, 2), (200, 0, 0)).save(small.folder / "red.png")
    small.file("half.weft", "spindle half(x) :: v { v = x / 2 }\n")
    small.file("mix.weft", 'me<width> = 4; me<height> = 2; me<fps> = 10\n#include "half.weft"\n'
               'load("red.png")::img<r, g, b, a>\n#slider s<v> = 0, 1, 0.25 "s"\n'
               "n<v> = 0.5 * prev(n@v) + half(img@r) + me@x * 0.1\ndisplay(n@v, s@v, me@y)\n")  # fmt: skip
    return small


@pytest.mark.parametrize("name", CHANGES)
def test_frames_of_something_else_are_drawn_anew(mixed, name):
    change, options = CHANGES[name]
    mixed("render", "mix.weft", "-o", "f%d.png", "--to", "0.3")
    if change:
        change(mixed)
    done = mixed("render", "mix.weft", "-o", "f%d.png", "--to", "0.5", *options)
    count = 6 if name == "fps" else 5
    words = f"weft: 3 of {count} frames are drawn again: the patch, its pictures or the settings have changed"
    assert words in done.stderr
    assert "are kept" not in done.stderr
    mixed("render", "mix.weft", "-o", "g%d.png", "--to", "0.5", *options)
    for number in range(count):
        drawn, whole = (mixed.folder / f"{letter}{number}.png" for letter in "fg")
        assert drawn.read_bytes() == whole.read_bytes()


def test_what_changes_no_frame_keeps_them(mixed):
    mixed("render", "mix.weft", "-o", "f%d.png", "--to", "0.3")
    path = mixed.folder / "mix.weft"
    path.write_text(f"// A remark.\n{path.read_text()}")
    os.utime(path, (2e9, 2e9))
    done = mixed("render", "mix.weft", "-o", "f%d.png", "--from", "0.1", "--to", "0.4", "--threads", "1")
    assert done.stderr == "weft: 2 of 3 frames are there already and are kept\n"


def test_one_stale_frame_among_others(mixed):
    mixed("render", "mix.weft", "-o", "f%d.png", "--to", "0.4")
    whole = [(mixed.folder / f"f{number}.png").read_bytes() for number in range(4)]
    mixed("render", "mix.weft", "-o", "f2.png", "--time", "0.2", "--size", "3x3")
    (mixed.folder / "f3.png").unlink()
    done = mixed("render", "mix.weft", "-o", "f%d.png", "--to", "0.4")
    assert "2 of 4 frames are there already and are kept" in done.stderr
    assert "1 of 4 frames are drawn again" in done.stderr
    assert [(mixed.folder / f"f{number}.png").read_bytes() for number in range(4)] == whole


def test_overwrite_draws_all_anew(mixed):
    mixed("render", "mix.weft", "-o", "f%d.png", "--to", "0.2")
    drawn = (mixed.folder / "f0.png").stat().st_mtime_ns
    done = mixed("render", "mix.weft", "-o", "f%d.png", "--to", "0.2", "--overwrite")
    assert done.stderr == ""
    assert (mixed.folder / "f0.png").stat().st_mtime_ns != drawn


def test_a_single_file_is_written_again_and_may_be_said_to_be(small):
    small.file("tone.weft", "audio(sin(me@time * 440 * tau) * 0.2)\n")
    for patch, file in (("time", "f.png"), ("time", "f.npy"), ("tone", "f.wav")):
        span = "--duration" if patch == "tone" else "--time"
        for said in ((), ("--overwrite",)):
            (small.folder / file).write_text("what was there")
            assert small("render", f"{patch}.weft", "-o", file, span, "0.1", *said).stderr == ""
            assert (small.folder / file).read_bytes() != b"what was there"


def test_a_picture_that_weft_has_not_drawn_is_left_alone(mixed):
    Image.new("RGB", (4, 2), (1, 2, 3)).save(mixed.folder / "f1.png")
    mine = (mixed.folder / "f1.png").read_bytes()
    done = mixed("render", "mix.weft", "-o", "f%d.png", "--to", "0.3", code=3)
    assert done.stderr.count("\n") == 1
    assert "f1.png is there already, and weft has not drawn it" in done.stderr
    assert (mixed.folder / "f1.png").read_bytes() == mine
    assert not (mixed.folder / "f0.png").exists()
    mixed("render", "mix.weft", "-o", "f%d.png", "--to", "0.3", "--overwrite")
    assert (mixed.folder / "f1.png").read_bytes() != mine


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


def test_what_cannot_be_rendered(small):
    small.file("mute.weft", "audio(me@x)\n")
    assert "nothing to show" in small("render", "mute.weft", "-o", "a.png", code=1).stderr
    assert "nosuch.weft cannot be read" in small("render", "nosuch.weft", "-o", "a.png", code=3).stderr
    missing = small("render", "time.weft", "-o", "none/a.png", code=3).stderr
    assert missing == "weft: there is no folder none (make it with: mkdir -p none)\n"
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
        ["-o", "a%d.png", "--duration", "1e12"], ["-o", "a.mp4", "--duration", "1e12"],
    ],
)  # fmt: skip
def test_wrong_usage(small, args):
    small("render", "time.weft", *args, code=2)


SHARED = "me<width> = 32; me<height> = 18; me<fps> = 10\na<v> = prev(a@v) + me@x * 0.2\n"
WINDOWS = {"": "a@v, me@y, 0", "left": "a@v(me@x ~ 1 - me@x)", "right": "1 - a@v, prev(me@x) * a@v, 0"}


@pytest.fixture
def windows(small):
    """A patch with three pictures of what one of them remembers, and patches with one of these pictures each."""
    for name, what in WINDOWS.items():
        small.file(f"{name}.weft", f"{SHARED}display({what})\n")
    texts = [f'display({what}, to: "{name}")\n' if name else f"display({what})\n" for name, what in WINDOWS.items()]
    small.file("three.weft", SHARED + "".join(reversed(texts)))
    return small


@pytest.mark.parametrize(
    ("options", "words"),
    [(["--time", "3s"], "'3s' is not a number from 0 on"), (["--time", "-3"], "'-3' is not a number from 0 on"),
     (["--time", "nan"], "'nan' is not a number from 0 on"),
     (["--threads", "0"], "'0' is not a whole number from 1 on"),
     (["--rate", "1.5"], "'1.5' is not a whole number from 1,000 to 768,000"),
     (["--sheet", "5*4"], "'5*4' is not a size; write it like 5x4")],
)  # fmt: skip
def test_a_value_that_does_not_fit_is_told_with_what_does(small, options, words):
    assert f": {words}\n" in small("render", "time.weft", "-o", "a.png", *options, code=2).stderr


@pytest.mark.parametrize("executor", ["native", "vector", "vm"])
def test_each_of_several_pictures_is_drawn_as_if_it_were_alone(windows, executor):
    args = "--time", "0.3", "--backend", f"visual={executor}"
    for name in WINDOWS:
        windows("render", f"{name}.weft", "-o", "alone.png", *args)
        said = windows("render", "three.weft", "-o", "shown.png", *args, *(["--window", name] if name else [])).stderr
        assert said == ""
        shown, alone = (pixels(windows.folder / file).astype(int) for file in ("shown.png", "alone.png"))
        assert np.abs(shown - alone).max() <= 1


def test_frames_of_another_window_are_drawn_again(windows):
    for name in ("left", "right"):
        said = windows("render", "three.weft", "-o", "f%d.png", "--to", "0.3", "--window", name).stderr
        assert ("3 of 3 frames are drawn again" in said) == (name == "right")


def test_without_a_picture_that_has_no_name_the_first_one_is_drawn(windows):
    windows.file("named.weft", SHARED + 'display(0.4, to: "b")\ndisplay(0.8, to: "a")\n')
    windows("render", "named.weft", "-o", "named.png")
    assert (pixels(windows.folder / "named.png")[..., 0] == 102).all()


def test_a_window_that_is_not_in_the_patch(windows):
    assert "it has right, left" in windows("render", "three.weft", "-o", "a.png", "--window", "top", code=2).stderr
    assert "have no names" in windows("render", "left.weft", "-o", "a.png", "--window", "left", code=2).stderr


@pytest.mark.parametrize(
    ("broken", "out", "told"),
    [
        ("native,tiles", "a.png", ["visual/display runs on vector, not native: "]),
        (
            "native,tiles,numpy", "a.npy",
            ["visual/display runs on vector, not native: ", "visual/display runs on vm, not vector: "],
        ),
    ],
)  # fmt: skip
def test_what_one_machine_cannot_compile_is_drawn_by_the_next(weft, broken, out, told):
    weft("render", "plain.weft", "-o", f"whole.{out}", "--size", "20x10", "--backend", "vector")
    done = weft.broken(broken, "render", "plain.weft", "-o", out, "--size", "20x10", "--backend", "visual=native")
    assert [line[: len(f"weft: {words}")] for line, words in zip(done.stderr.splitlines(), told, strict=True)] == [
        f"weft: {words}" for words in told
    ]
    if out.endswith(".npy"):
        found, expected = (np.load(weft.folder / name) for name in (out, f"whole.{out}"))
        np.testing.assert_allclose(found, expected, atol=1e-6)
    else:
        found, expected = (pixels(weft.folder / name).astype(int) for name in (out, f"whole.{out}"))
        assert np.abs(found - expected).max() <= 1


@pytest.mark.parametrize("executor", ["vm", "vector", "native"])
def test_a_held_value_stays_while_its_trigger_does(weft, executor):
    """Triggers that no precision has digits enough for: constant, of the frame, and varying over the picture."""
    weft.file("held.weft", "me<width> = 7; me<height> = 3; me<fps> = 10\n"
                           "a = hold(me@time + me@x, 0.1)\n"
                           "b = hold(me@time, me@x)\n"
                           "c = hold(me@time + 0.25, noise(me@x * 7, me@y * 0.3) + me@x / 3)\n"
                           "d = hold(me@time + me@y, floor(me@time / 0.35) * 0.1)\n"
                           "display(a, b, c, d)\n")  # fmt: skip
    weft("render", "held.weft", "-o", "held.npy", "--time", "0.6", "--backend", f"visual={executor}")
    shown = np.load(weft.folder / "held.npy").reshape(3, 7, 4)
    x, y = (np.arange(7) + 0.5) / 7, (np.arange(3) + 0.5) / 3
    np.testing.assert_allclose(shown[..., 0], np.broadcast_to(x, (3, 7)), atol=1e-6)
    np.testing.assert_array_equal(shown[..., 1], 0)
    np.testing.assert_array_equal(shown[..., 2], 0.25)
    np.testing.assert_allclose(shown[..., 3], np.broadcast_to(0.4 + y[:, None], (3, 7)), atol=1e-6)


LOOP = "spindle long(n) :: v {\n  v = 0\n  for i in (1 to n) { v += i }\n}\n"


@pytest.mark.parametrize("out", ["a.png", "a%d.png", "a.npy"])
def test_what_is_remarkable_about_a_picture_is_told_once_at_the_end(small, out):
    small.file("odd.weft", f"me<width> = 8; me<height> = 4; me<fps> = 10\n{LOOP}"
               'display(long(me@x * 20000) * 0.001, sqrt(me@x - 2), 1)\ndisplay(me@x, to: "side")\n')  # fmt: skip
    done = small("render", "odd.weft", "-o", out, *(["--to", "0.3"] if "%" in out else []))
    assert done.stdout == ""
    where = "the pixels, first at 0 s" if out == "a.npy" else "any pixel, so it would be black"
    share = "100 % of " if out == "a.npy" else ""
    assert done.stderr.split("\n\n") == [
        ("odd.weft:4:13: warning: this loop stops at its limit of steps [loop-stopped]\n"
        " 4 |   for i in (1 to n) { v += i }\n   |             ^^^^^^\n     hint: the rest of its steps is left out: "
         "bring its end down"),
        (f"odd.weft:6:1: warning: g of display is not a number at {share}{where} [not-a-number]\n"
        " 6 | display(long(me@x * 20000) * 0.001, sqrt(me@x - 2), 1)\n   | ^^^^^^^\n"
        "     hint: look for 0/0, or a root or logarithm of a negative number"),
        "2 warnings\n",
    ]


def test_a_picture_that_is_dark_on_purpose_is_not_remarkable(small):
    small.file("dark.weft", "me<width> = 8; me<height> = 4\ndisplay(0, me@x, if me@time < 1 then 0 else 0 / 0)\n")
    assert small("render", "dark.weft", "-o", "a.png").stderr == ""
    assert "b of display is not a number" in small("render", "dark.weft", "-o", "a.png", "--time", "2").stderr


@pytest.mark.parametrize(("places", "share"), [("me@x > 0.5", "50 %"), ("me@time >= 0.2 and me@x > 0.5", "17 %")])
def test_values_that_are_not_numbers_are_counted(small, places, share):
    small.file("some.weft", f"me<width> = 8; me<height> = 4; me<fps> = 10\ndisplay(if {places} then 0 / 0 else 1)\n")
    told = small("render", "some.weft", "-o", "a.npy", "--to", "0.3").stderr
    first = "0 s" if share == "50 %" else "0.2 s"
    assert f"gray of display is not a number at {share} of the pixels, first at {first} [not-a-number]" in told


SPIN = "me<width> = 6; me<height> = 4; me<fps> = 10\ndisplay(fract(me@x + me@time))\n"


COUNT = "me<width> = 6; me<height> = 4; me<fps> = 10\nn = prev(n) + 1\ndisplay(n / 255)\n"


@pytest.mark.parametrize("text", [SPIN, COUNT])
def test_a_sheet_shows_frames_of_all_the_time(weft, text):
    weft.file("a.weft", text)
    weft("render", "a.weft", "-o", "f%02d.png", "--from", "0.5", "--duration", "1.2")
    weft("render", "a.weft", "-o", "sheet.png", "--from", "0.5", "--duration", "1.2", "--sheet", "3x2")
    frames = [pixels(weft.folder / f"f{number:02}.png") for number in range(5, 17, 2)]
    expected = np.vstack([np.hstack(frames[:3]), np.hstack(frames[3:])])
    np.testing.assert_array_equal(pixels(weft.folder / "sheet.png"), expected)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["-o", "sheet.png"], "a sheet is one .png, and needs --to or --duration"),
        (["-o", "sheet-%d.png", "--to", "1"], "a sheet is one .png"),
        (["-o", "sheet.gif", "--to", "1"], "a sheet is one .png"),
        (["-o", "sheet.png", "--to", "0.5"], "a sheet of 3x2 has 6 frames, and there are 5 frames"),
        (["-o", "sheet.png", "--to", "1", "--size", "9000x9000"], "67,108,864 pixels at most"),
    ],
)
def test_what_is_no_sheet(weft, options, words):
    weft.file("a.weft", SPIN)
    result = weft("render", "a.weft", "--sheet", "3x2", *options, code=2)
    assert words in result.stderr
    assert not [*weft.folder.glob("sheet*")]


def test_a_loop_that_is_closed(weft):
    weft.file("a.weft", SPIN)
    result = weft("render", "a.weft", "-o", "f%02d.png", "--duration", "2", "--loop")
    assert "the loop is closed: the frame after the last one is the first" in result.stderr


def test_a_loop_that_is_not_closed(weft):
    """By how much is told, and the frames are written all the same."""
    weft.file("a.weft", SPIN)
    result = weft("render", "a.weft", "-o", "f%02d.png", "--duration", "1.1", "--loop", code=1)
    weft("render", "a.weft", "-o", "after.png", "--time", "1.1")
    first, after = (pixels(weft.folder / name)[..., :3].astype(int) for name in ("f00.png", "after.png"))
    mean = np.sqrt(((after - first) ** 2).mean())
    assert f"by up to {np.abs(after - first).max()} of 255, by {mean:.2g} on average" in result.stderr
    assert len([*weft.folder.glob("f*.png")]) == 11


@pytest.mark.parametrize("options", [["-o", "a.png"], ["-o", "a.wav", "--to", "1"], ["-o", "a.npy", "--to", "1"]])
def test_what_is_no_loop(weft, options):
    weft.file("a.weft", SPIN)
    result = weft("render", "a.weft", "--loop", *options, code=2)
    assert "--loop is for pictures over a time" in result.stderr


def test_samples_win_over_the_patch(weft):
    weft.file("a.weft", "me<width> = 4; me<height> = 4; me<samples> = 4\ndisplay(me@x < 0.4)\n")
    weft("render", "a.weft", "-o", "a.png")
    weft("render", "a.weft", "-o", "b.png", "--samples", "1")
    smooth, sharp = (pixels(weft.folder / name)[0, :, 0].tolist() for name in ("a.png", "b.png"))
    assert sharp == [255, 255, 0, 0]
    # The edge is at 0.6 of the second pixel: of 16 samples in columns of their own, 10 are before it.
    assert smooth == [255, round(255 * 10 / 16), 0, 0]
