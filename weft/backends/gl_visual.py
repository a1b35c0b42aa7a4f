"""Pictures by OpenGL."""

from __future__ import annotations

from weft.backends.card_contexts import CardVisual
from weft.backends.gl.backend import GlBackend
from weft.backends.registry import register_backend


@register_backend
class GlVisual(CardVisual, GlBackend):
    """Gives a picture on the graphics card."""

    name = "gl_visual"
