"""A display of the tests' own, and its windows from outside: external programs move them, others take pictures of the
screen, and set what a window manager and a desktop would set."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ctypes.util import find_library
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageGrab, features

from tests.support.ends import tied

if TYPE_CHECKING:
    from weft.runtime.screens.window import Window

Picture = NDArray[np.uint8]

on_x11 = pytest.mark.skipif(sys.platform != "linux", reason="needs a display that can be steered from outside")


def xdotool(*arguments: object) -> None:
    subprocess.run(["xdotool", *map(str, arguments)], check=True, timeout=10)


def screen(directory: Path) -> Picture:
    """What is on the X server's screen, [height, width, RGB]. Asked for by the library that opens pictures, or by
    ImageMagick, which takes ten times as long."""
    if features.check("xcb"):
        return np.asarray(ImageGrab.grab(xdisplay=os.environ["DISPLAY"]).convert("RGB"))
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


@contextmanager
def private_display() -> Iterator[None]:
    """A display for the tests alone: they read its screen, move its pointer and press its keys.

    On Linux it is an X server of this process alone, whatever `DISPLAY` says, and the environment leads to it; on
    macOS there is only the real one. A machine without Xvfb fails the test rather than skipping it.
    """
    if sys.platform != "linux":
        yield
        return
    program = shutil.which("Xvfb")
    if program is None:
        pytest.fail("these tests need Xvfb: apt install xvfb xdotool imagemagick")
    reading, writing = os.pipe()
    command = [program, "-displayfd", str(writing), "-screen", "0", "1280x720x24", "-nolisten", "tcp", "-noreset"]
    # In a session of its own, since Ctrl-C is for the tests: a window that loses its server ends the process.
    with subprocess.Popen(
        tied(command), pass_fds=[writing], stderr=subprocess.DEVNULL, start_new_session=True
    ) as server:
        try:
            os.close(writing)
            with open(reading) as announced:
                number = announced.readline().strip()
            assert number, "Xvfb does not start"
            with pytest.MonkeyPatch.context() as patch:
                for variable in ("WAYLAND_DISPLAY", "XAUTHORITY", "PYOPENGL_PLATFORM"):
                    patch.delenv(variable, raising=False)
                patch.setenv("DISPLAY", f":{number}")
                patch.setenv("XDG_SESSION_TYPE", "x11")
                patch.setenv("LIBGL_ALWAYS_SOFTWARE", "1")
                yield
        finally:
            server.terminate()


_REPLACE = 0


class _CursorImage(ctypes.Structure):
    """`XFixesCursorImage`, up to its pixels."""

    _fields_ = [
        *((name, ctypes.c_short) for name in ("x", "y")),
        *((name, ctypes.c_ushort) for name in ("width", "height", "xhot", "yhot")),
        ("serial", ctypes.c_ulong),
        ("pixels", ctypes.POINTER(ctypes.c_ulong)),
    ]


@contextmanager
def _x11() -> Iterator[tuple[ctypes.CDLL, ctypes.c_void_p]]:
    """Xlib, and a connection of its own to the display that the environment names."""
    x11 = ctypes.CDLL(find_library("X11") or "libX11.so.6")
    x11.XOpenDisplay.restype = ctypes.c_void_p
    display = ctypes.c_void_p(x11.XOpenDisplay(None))
    assert display, "no display"
    try:
        yield x11, display
    finally:
        x11.XCloseDisplay(display)


def pointer_is_seen() -> bool:
    """Whether the display shows a pointer where it is now."""
    fixes = ctypes.CDLL(find_library("Xfixes") or "libXfixes.so.3")
    fixes.XFixesGetCursorImage.restype = ctypes.POINTER(_CursorImage)
    with _x11() as (x11, display):
        assert fixes.XFixesQueryExtension(display, ctypes.byref(ctypes.c_int()), ctypes.byref(ctypes.c_int()))
        image = fixes.XFixesGetCursorImage(display)
        seen = any(image.contents.pixels[at] >> 24 for at in range(image.contents.width * image.contents.height))
        x11.XFree(image)
    return seen


def set_property(window: int | None, name: str, kind: str, value: bytes | Sequence[int]) -> None:
    """Sets a property of a window, or of the root window, on the display that the environment names.

    `kind` is the property's type. A text is given as bytes, everything else as numbers of 32 bits.
    """
    with _x11() as (x11, display):
        x11.XInternAtom.restype = x11.XDefaultRootWindow.restype = ctypes.c_ulong
        root = x11.XDefaultRootWindow(display)
        names = [ctypes.c_ulong(x11.XInternAtom(display, text.encode(), 0)) for text in (name, kind)]
        # Xlib takes numbers of 32 bits as longs.
        items = value if isinstance(value, bytes) else (ctypes.c_long * len(value))(*value)
        target = ctypes.c_ulong(root if window is None else window)
        width = 8 if isinstance(value, bytes) else 32
        x11.XChangeProperty(display, target, *names, width, _REPLACE, items, len(value))


class _SaverInfo(ctypes.Structure):
    """`XScreenSaverInfo`."""

    _fields_ = [
        ("window", ctypes.c_ulong), *((name, ctypes.c_int) for name in ("state", "kind")),
        *((name, ctypes.c_ulong) for name in ("til_or_since", "idle", "event_mask")),
    ]  # fmt: skip


class ScreenSaver:
    """That of the X server."""

    def __init__(self, x11: ctypes.CDLL, display: ctypes.c_void_p) -> None:
        self._x11, self._display = x11, display
        self._saver = ctypes.CDLL(find_library("Xss") or "libXss.so.1")

    @property
    def is_on(self) -> bool:
        info = _SaverInfo()
        self._x11.XDefaultRootWindow.restype = ctypes.c_ulong
        root = ctypes.c_ulong(self._x11.XDefaultRootWindow(self._display))
        assert self._saver.XScreenSaverQueryInfo(self._display, root, ctypes.byref(info))
        return info.state == 1

    def end(self) -> None:
        """Ends it, as a key does, until there has been no key for a while."""
        self._x11.XResetScreenSaver(self._display)
        self._x11.XSync(self._display, 0)


@contextmanager
def screen_saver(after: int) -> Iterator[ScreenSaver]:
    """The screen saver of the display that the environment names, which begins after some seconds without a key."""
    with _x11() as (x11, display):
        x11.XSetScreenSaver(display, after, 0, 1, 1)
        yield ScreenSaver(x11, display)
        x11.XSetScreenSaver(display, 0, 0, 1, 1)


def inside_of(quad: Sequence[tuple[float, ...]], size: tuple[int, int]) -> NDArray[np.float64]:
    """How far the middle of each pixel of a picture (width, height) is inside of the nearest edge of a quadrilateral,
    in pixels; less than 0 outside of it."""
    y, x = np.mgrid[: size[1], : size[0]] + 0.5
    found = np.full(x.shape, np.inf)
    for (ax, ay), (bx, by) in zip(quad, [*quad[1:], quad[0]], strict=True):
        found = np.minimum(found, ((bx - ax) * (y - ay) - (by - ay) * (x - ax)) / np.hypot(bx - ax, by - ay))
    return found
