"""The contexts of windows that GLFW opens, and graphics of windows that are never shown, where there is no EGL."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import glfw

from weft.backends.gl.egl import DESKTOP, EMBEDDED, Context, GlApi, GraphicsError

__all__ = ["UnseenWindows", "glfw", "hints_of", "window_context"]

_KINDS: Mapping[GlApi, Mapping[int, int]] = MappingProxyType({
    DESKTOP: {glfw.OPENGL_PROFILE: glfw.OPENGL_CORE_PROFILE, glfw.OPENGL_FORWARD_COMPAT: glfw.TRUE},
    EMBEDDED: {glfw.CLIENT_API: glfw.OPENGL_ES_API},
})


def hints_of(api: GlApi) -> Mapping[int, int]:
    """What GLFW has to know to make a context that weft draws in. It gives the best version from the least one on."""
    major, minor = api.versions[-1]
    version = {glfw.CONTEXT_VERSION_MAJOR: major, glfw.CONTEXT_VERSION_MINOR: minor}
    return {**_KINDS[api], **version, glfw.ALPHA_BITS: 0, glfw.DEPTH_BITS: 0, glfw.STENCIL_BITS: 0}

# Seconds between two looks for messages of the system, and for the windows to be made.
_LOOK, _START = 1.0, 15.0


def window_context(handle: Any) -> Context:
    """The graphics context of a window of GLFW."""
    before: list[Any] = []

    def enter() -> None:
        before.append(glfw.get_current_context())
        _make_current(handle)

    return Context(enter, lambda: _make_current(before.pop()))


def _address(handle: Any) -> int:
    return ctypes.cast(handle, ctypes.c_void_p).value or 0 if handle else 0


def _make_current(handle: Any) -> None:
    """Makes the context of a window current in this thread; None: no context. Raises GraphicsError."""
    if _address(glfw.get_current_context()) != _address(handle):
        glfw.make_context_current(handle)
        if _address(glfw.get_current_context()) != _address(handle):
            raise GraphicsError("the context of the window cannot be used")


class UnseenWindows:
    """Windows that are never shown, and whose contexts share their objects. A thread keeps them, since on Windows they
    end with the thread that has made them, and reads what the system tells them."""

    def __init__(self, number: int, count: int = 3) -> None:
        """`number` is that of the device, of which there is one: the system has chosen it. Raises GraphicsError."""
        if number:
            raise GraphicsError("the system chooses the device")
        self._problem = "GLFW does not start"
        self._handles: list[Any] = []
        self._ready = threading.Event()
        threading.Thread(target=self._keep, args=(count,), name="weft-unseen", daemon=True).start()
        if not self._ready.wait(_START) or len(self._handles) < count:
            raise GraphicsError(f"OpenGL makes no context ({self._problem})")

    def contexts(self) -> list[Context]:
        return list(map(window_context, self._handles))

    def _keep(self, count: int) -> None:
        glfw.set_error_callback(self._on_error)
        if glfw.init():
            self._open(count)
        self._ready.set()
        while self._handles:
            glfw.wait_events_timeout(_LOOK)

    def _open(self, count: int) -> None:
        glfw.default_window_hints()
        for hint, value in {**hints_of(DESKTOP), glfw.VISIBLE: glfw.FALSE}.items():
            glfw.window_hint(hint, value)
        for _ in range(count):
            handle = glfw.create_window(1, 1, "weft", None, self._handles[0] if self._handles else None)
            if not handle:
                return
            self._handles.append(handle)

    def _on_error(self, _code: int, words: bytes | str) -> None:
        self._problem = words.decode(errors="replace") if isinstance(words, bytes) else words
