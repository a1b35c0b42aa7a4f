"""What a context of OpenGL can do, by its kind, its version and its extensions. Nothing else decides that: drivers also
have functions which a context refuses."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from weft.backends.gl.egl import DESKTOP, EMBEDDED, GlApi


@dataclass(frozen=True, slots=True)
class Abilities:
    """What weft uses where it is there, and does in another way or leaves out where it is not."""

    draws_floats: bool
    """Targets of floats, without which it draws nothing."""
    computes: bool
    """Compute shaders, images and buffers that shaders write, and buffers that the card fills by itself."""
    indexes_buffers: bool
    """Shaders read rows of numbers in buffers; else the rows are in textures."""
    reads_textures: bool
    """The pixels of a texture can be copied; else those of a framebuffer."""
    reads_layers: bool
    """The same for some layers of a texture."""
    copies_layers: bool
    """A layer of a texture is copied to another one without drawing."""
    orders_drawing: bool
    """A program reads what the one before it has drawn to other layers of the same texture, once it is told to."""
    keeps_programs: bool
    """Programs in the driver's own form."""
    tells_losses: bool
    """Why a context was reset."""


def abilities_of(api: GlApi, version: tuple[int, int], extensions: Collection[str] = ()) -> Abilities:
    """The abilities of a context."""
    es, desktop = ((version if api is kind else (0, 0)) for kind in (EMBEDDED, DESKTOP))
    return Abilities(
        draws_floats=desktop >= (3, 3) or es >= (3, 2) or (es >= (3, 0) and "GL_EXT_color_buffer_float" in extensions),
        computes=desktop >= (4, 3),
        indexes_buffers=desktop >= (3, 1),
        reads_textures=desktop >= (3, 3),
        reads_layers=desktop >= (4, 5),
        copies_layers=desktop >= (4, 3),
        orders_drawing=desktop >= (4, 5),
        keeps_programs=desktop >= (4, 1),
        tells_losses=desktop >= (4, 5) or es >= (3, 2),
    )
