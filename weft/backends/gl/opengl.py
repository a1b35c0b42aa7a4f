"""The one module that imports PyOpenGL, with how it has to be set up first.

Importing it raises whatever PyOpenGL raises where there is no libGL: errors of many kinds.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import OpenGL

# Every call would otherwise ask the driver for errors, which makes it wait; what can fail is asked for explicitly.
OpenGL.ERROR_CHECKING = False
OpenGL.ERROR_LOGGING = False
OpenGL.USE_ACCELERATE = False

_CHOICE = "PYOPENGL_PLATFORM"


def _session_needs_egl() -> bool:
    asked = os.environ.get(_CHOICE)
    if asked is not None:
        return asked == "egl"
    return bool(os.environ.get("WAYLAND_DISPLAY")) or os.environ.get("XDG_SESSION_TYPE") == "wayland"


def _has_egl() -> bool:
    try:
        ctypes.CDLL("libEGL.so.1")
    except OSError:
        return False
    return True


NEEDS_EGL = _session_needs_egl()
"""Whether windows have to be opened with EGL."""

# Through EGL, PyOpenGL finds the functions of any context, those of GLX too; through GLX, only those of GLX. It reads
# this when it is imported, and nothing else should.
_FINDS_BY_EGL = sys.platform.startswith("linux") and _CHOICE not in os.environ and _has_egl()
if _FINDS_BY_EGL:
    os.environ[_CHOICE] = "egl"
    try:
        from OpenGL import GL, platform
    finally:
        del os.environ[_CHOICE]
else:
    from OpenGL import GL, platform


def _current_of_any() -> Callable[[], int | None]:
    """What finds the context that is current in a thread, whether EGL or GLX has made it."""
    finders = []
    for library, function in (("libEGL.so.1", "eglGetCurrentContext"), ("libGLX.so.0", "glXGetCurrentContext"),
                              ("libGL.so.1", "glXGetCurrentContext")):  # fmt: skip
        with suppress(OSError, AttributeError):
            finder = getattr(ctypes.CDLL(library), function)
            finder.restype = ctypes.c_void_p
            finders.append(finder)
    return lambda: next((context for context in (finder() for finder in finders) if context), None)


if _FINDS_BY_EGL:
    # In a context that it does not know of, PyOpenGL takes it that there is no extension.
    platform.PLATFORM.GetCurrentContext = platform.PLATFORM.CurrentContextIsValid = _current_of_any()

from OpenGL.error import Error as OpenGLError  # noqa: E402  (the settings above count when this is imported)

__all__ = ["GL", "NEEDS_EGL", "SOFTWARE", "DriverError", "is_software", "plain"]

DriverError: type[Exception] = OpenGLError
"""What a call raises that the driver lacks."""

SOFTWARE = ("llvmpipe", "softpipe", "swrast", "swiftshader", "software", "gdi generic")
"""Parts of the names that drivers give themselves when the processor does the drawing."""


def is_software(renderer: str) -> bool:
    """Whether the processor does the drawing, by the name of the renderer."""
    return any(name in renderer.lower() for name in SOFTWARE)


def plain(words: Any) -> str:
    """What a driver says, as text."""
    return words.decode(errors="replace") if isinstance(words, bytes) else str(words or "")
