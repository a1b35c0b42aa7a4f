"""OpenGL without a display, for kernels as shaders: on a graphics card, or on a driver that draws on the processor."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

if TYPE_CHECKING:
    from tests.support.gl_executor import GlExecutor
    from weft.backends.gl.graphics import Graphics
else:
    try:
        from tests.support.gl_executor import GlExecutor
        from weft.backends.gl.graphics import Graphics
    except Exception:  # without libGL, PyOpenGL fails in ways of its own, each an error of another kind
        GlExecutor: Any = None
        Graphics: Any = None

__all__ = ["GlExecutor", "Graphics", "embedded_graphics", "graphics", "no_graphics", "that_computes"]


@pytest.fixture(scope="module")
def graphics() -> Graphics:
    """OpenGL without a display. Where there is none, the test is skipped, but in CI it fails."""
    return _offscreen("DESKTOP")


@pytest.fixture(scope="module")
def embedded_graphics() -> Graphics:
    """OpenGL ES, likewise."""
    return _offscreen("EMBEDDED")


def _offscreen(kind: str) -> Graphics:
    from weft.backends.gl import egl

    if GlExecutor is None:
        no_graphics("libGL is missing")
    from weft.backends.gl.offscreen import offscreen

    try:
        found = offscreen(0, getattr(egl, kind))
    except egl.GraphicsError as problem:
        no_graphics(str(problem))
    return found


def no_graphics(problem: str) -> NoReturn:
    """Ends a test that needs OpenGL."""
    fail_or_skip = pytest.fail if os.environ.get("CI") and sys.platform == "linux" else pytest.skip
    fail_or_skip(f"no OpenGL without a display: {problem}")


@pytest.fixture
def that_computes(graphics: Graphics) -> Graphics:
    """OpenGL with compute shaders; only OpenGL on a Mac may lack them."""
    if sys.platform == "darwin" and not graphics.about.able.computes:
        pytest.skip("OpenGL on a Mac has no compute shaders")
    assert graphics.about.able.computes
    return graphics
