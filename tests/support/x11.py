"""Window properties, set by the tests in place of a window manager and a desktop: Xvfb has neither."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes.util import find_library

_REPLACE = 0


def set_property(window: int | None, name: str, kind: str, value: bytes | Sequence[int]) -> None:
    """Sets a property of a window, or of the root window, on the display that the environment names.

    `kind` is the property's type. A text is given as bytes, everything else as numbers of 32 bits.
    """
    x11 = ctypes.CDLL(find_library("X11") or "libX11.so.6")
    x11.XOpenDisplay.restype = ctypes.c_void_p
    x11.XInternAtom.restype = x11.XDefaultRootWindow.restype = ctypes.c_ulong
    display = ctypes.c_void_p(x11.XOpenDisplay(None))
    assert display, "no display"
    try:
        root = x11.XDefaultRootWindow(display)
        names = [ctypes.c_ulong(x11.XInternAtom(display, text.encode(), 0)) for text in (name, kind)]
        # Xlib takes numbers of 32 bits as longs.
        items = value if isinstance(value, bytes) else (ctypes.c_long * len(value))(*value)
        target = ctypes.c_ulong(root if window is None else window)
        width = 8 if isinstance(value, bytes) else 32
        x11.XChangeProperty(display, target, *names, width, _REPLACE, items, len(value))
    finally:
        x11.XCloseDisplay(display)
