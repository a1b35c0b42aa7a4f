"""Files on Windows: what is rendered there is what the reference machine computes, films are read and written, and what
cannot be opened is named."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.windows.processes import on_windows
from weft.disk import NotPlainError, open_plain, replacing
from weft.permissions import DEFAULT_PERMISSIONS

pytestmark = on_windows

RAMP = "display(me@x, me@y, me@time)\n"


def weft(*arguments: object, code: int = 0) -> str:
    command = [sys.executable, "-m", "weft", *map(str, arguments)]
    ended = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=120, check=False)
    assert ended.returncode == code, ended.stderr
    return ended.stdout + ended.stderr


@pytest.mark.long
def test_a_film_that_is_rendered_can_be_a_source(tmp_path: Path) -> None:
    ramp, film, shows = tmp_path / "ramp.weft", tmp_path / "ramp.mkv", tmp_path / "shows.weft"
    ramp.write_text(RAMP)
    shows.write_text('load("ramp.mkv")::f<r, g, b>\ndisplay(f@r, f@g, f@b)\n')
    weft("render", ramp, "-o", film, "--size", "64x36", "--duration", "0.5")
    weft("render", shows, "-o", tmp_path / "film.png", "--size", "64x36", "--time", "0.25")
    weft("render", ramp, "-o", tmp_path / "ramp.png", "--size", "64x36", "--time", "0.25")
    film_shows, ramp_shows = (
        np.asarray(Image.open(tmp_path / name).convert("RGB"), int) for name in ("film.png", "ramp.png")
    )
    assert np.abs(film_shows - ramp_shows).mean() < 6


def has_opengl(line: str) -> bool:
    return "OpenGL 3." in line or "OpenGL 4." in line


@pytest.mark.parametrize("machine", ["native", "vector", "gl"])
def test_machines_render_the_same_picture(tmp_path: Path, machine: str) -> None:
    if machine == "gl" and os.environ.get("CI") and not any(map(has_opengl, weft("devices").splitlines())):
        pytest.skip("this machine has no OpenGL")
    ramp = tmp_path / "ramp.weft"
    ramp.write_text("display(sin(me@x * 9 + me@time), fract(me@y * 5), prev(me@x))\n")
    for name in (machine, "vm"):
        weft("render", ramp, "-o", tmp_path / f"{name}.png", "--size", "64x36", "--backend", f"visual={name}")
    found, expected = (np.asarray(Image.open(tmp_path / f"{name}.png"), int) for name in (machine, "vm"))
    assert np.abs(found - expected).max() <= 1


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    assert "it is a folder" in weft("check", tmp_path, code=3)
    assert "there is no such file" in weft("check", tmp_path / "missing.weft", code=3)


@pytest.mark.parametrize("path", [r"\\machine\share\picture.png", "//machine/share/picture.png", r"\\.\pipe\name"])
def test_no_other_machine_is_asked_for_a_file(tmp_path: Path, path: str) -> None:
    denial = DEFAULT_PERMISSIONS.reach(str(tmp_path / "ramp.weft")).denial_of_file(path)
    assert denial is not None
    assert denial.reason == "it is on another machine"


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(NotPlainError):
        open_plain(tmp_path)


def test_a_file_that_is_read_can_be_deleted(tmp_path: Path) -> None:
    path = tmp_path / "read.weft"
    path.write_text(RAMP)
    with open_plain(path):
        path.unlink()


def test_a_file_is_replaced_though_another_program_reads_it_now_and_then(tmp_path: Path) -> None:
    path = tmp_path / "values"
    path.write_text("0")
    reads = "import sys, time\nwhile True:\n  open(sys.argv[1]).read()\n  time.sleep(0.02)\n"
    reader = subprocess.Popen([sys.executable, "-c", reads, str(path)], stderr=subprocess.DEVNULL)
    try:
        for number in range(20):
            with replacing(path) as new:
                new.write_text(str(number))
    finally:
        reader.kill()
        reader.wait()
    assert path.read_text() == "19"
