"""Windows from outside: external programs move them, and take pictures of the screen."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

if TYPE_CHECKING:
    from weft.runtime.screens.window import Window

Picture = NDArray[np.uint8]

on_x11 = pytest.mark.skipif(sys.platform != "linux", reason="needs a display that can be steered from outside")


def xdotool(*arguments: object) -> None:
    subprocess.run(["xdotool", *map(str, arguments)], check=True, timeout=10)


def screen(directory: Path) -> Picture:
    """What is on the X server's screen, [height, width, RGB]."""
    subprocess.run(["import", "-window", "root", directory / "screen.png"], check=True, timeout=10)
    with Image.open(directory / "screen.png") as image:
        return np.asarray(image.convert("RGB"))


def geometry(title: str) -> dict[str, str]:
    command = ["xdotool", "search", "--name", f"^{title}$", "getwindowgeometry", "--shell"]
    output = subprocess.run(command, check=True, timeout=10, capture_output=True, text=True).stdout
    return dict(line.split("=") for line in output.splitlines())


def resize(window: Window, width: int, height: int, title: str = "weft") -> None:
    """Resizes a window from outside, as dragging its edge does."""
    xdotool("search", "--name", f"^{title}$", "windowsize", width, height)
    deadline = time.monotonic() + 5
    while window.frame_size != (width, height):
        assert time.monotonic() < deadline, f"the window stays at {window.frame_size}"
        window.poll()
    window.poll()
