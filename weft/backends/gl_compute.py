"""Numbers by OpenGL, once a tick."""

from __future__ import annotations

from weft.backends.card_contexts import CardCompute
from weft.backends.gl.backend import GlBackend
from weft.backends.registry import register_backend


@register_backend
class GlCompute(CardCompute, GlBackend):
    """Gives numbers, through a picture of one pixel."""

    name = "gl_compute"
