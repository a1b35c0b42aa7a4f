"""A machine that has OpenGL ES 3.0 and too little of OpenGL, as its owner would see it: Mesa plays it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.support.loaded import expected
from tests.support.windows import on_x11, screen

pytestmark = [on_x11, pytest.mark.usefixtures("display")]

SIZE = (480, 270)
TEXT = "t<v> = mix(hash(me@px, me@py, 1), prev(t@v(me@x ~ 1 - me@x)), 0.75)\ndisplay(t@v, me@x, me@y)\n"


def begun(*arguments: object) -> subprocess.Popen[str]:
    small = {"MESA_GL_VERSION_OVERRIDE": "2.1", "MESA_GLES_VERSION_OVERRIDE": "3.0"}
    command = [sys.executable, "-m", "weft", *map(str, arguments)]
    return subprocess.Popen(
        command, env={**os.environ, **small}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def said(*arguments: object) -> str:
    out, err = begun(*arguments).communicate(timeout=60)
    assert err == ""
    return out


def patch(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "small.weft"
    path.write_text(f"me<width> = {SIZE[0]}; me<height> = {SIZE[1]}\n{text}")
    return path


@pytest.mark.long
def test_devices_says_what_there_is() -> None:
    found = {each["name"]: each["devices"][0] for each in json.loads(said("devices", "--json"))["backends"]}
    assert found["gles_visual"]["compute"] == found["gles_compute"]["compute"] == "OpenGL ES 3.0"
    assert found["gl_visual"]["reason"] == "EGL makes no context of OpenGL 3.3 or later without a display"
    assert found["gl_visual"]["remedy"] == "--backend gles draws with OpenGL ES, which is there"


def test_a_picture_is_rendered(tmp_path: Path) -> None:
    said("render", patch(tmp_path, TEXT), "--backend", "gles", "--time", 2 / 60, "-o", tmp_path / "shown.png")
    shown = np.asarray(Image.open(tmp_path / "shown.png").convert("RGB")).astype(int)
    assert (np.abs(shown - expected(TEXT, 3, SIZE)[..., :3]) > 1).mean() < 0.001


@pytest.mark.parametrize("backend", ["gles", pytest.param("native", marks=pytest.mark.long)])
def test_a_window_shows_it(backend: str, tmp_path: Path, eventually: Callable[..., None]) -> None:
    text = "display(me@x, me@y, 0.5)\n"
    wanted = expected(text, 1, SIZE)[..., :3].astype(int)
    playing = begun("run", patch(tmp_path, text), "--backend", f"visual={backend}", "--no-audio")

    def is_shown() -> bool:
        assert playing.poll() is None, playing.communicate()
        found = screen(tmp_path)[: SIZE[1], : SIZE[0]].astype(int)
        return bool((np.abs(found - wanted) <= 1).all())

    try:
        eventually(is_shown, seconds=40)
    finally:
        playing.send_signal(signal.SIGINT)
        _, err = playing.communicate(timeout=40)
    assert playing.returncode == 130
    assert f"visual {backend}" in err  # gles_visual, or native
