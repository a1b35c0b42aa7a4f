"""The graphics of a process without a window."""

from __future__ import annotations

import functools

from weft.backends.gl.egl import DESKTOP, Egl, GlApi, GraphicsError
from weft.backends.gl.graphics import Graphics
from weft.platform import system

if system.has_unseen_windows:
    from weft.backends.gl.glfw_contexts import UnseenWindows


@functools.cache
def offscreen(number: int = 0, api: GlApi = DESKTOP) -> Graphics:
    """The graphics of a process without a window, on the device of this number. Raises GraphicsError if there are
    none."""
    if system.has_unseen_windows and api == DESKTOP:
        return Graphics(*UnseenWindows(number).contexts())
    if not system.finds_egl:
        raise GraphicsError(f"without a window, there is no {api.name} on this system")
    egl = Egl(number, api)
    return Graphics(egl.context(), egl.context(), egl.context())
