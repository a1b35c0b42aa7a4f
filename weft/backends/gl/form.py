"""Whether a card is faster at drawing pictures or at computing them by tiles. Most are as fast at both; those made for
computing draw with a small part of what they have."""

from __future__ import annotations

import time
from collections.abc import Callable

from weft.backends.gl.drawing import dispatch_tiles, draw_triangle
from weft.backends.gl.graphics import ContextState, Graphics
from weft.backends.gl.opengl import GL
from weft.backends.gl.programs import linked, linked_compute
from weft.backends.gl.textures import Texture
from weft.codegen.glsl import TILE

# The picture that is measured, and how often it is made.
_SIDE = 1024
_TIMES = 4

# Tiles have to be faster by this much: drawing works with every driver.
_WORTH = 1.5

_WORK = """
float work(vec2 at) {
    float sum = 0.0;
    for (int turn = 0; turn < 64; turn++) sum = sin(sum + at.x * 0.01 + at.y * 0.02);
    return sum;
}
"""

_DRAWN = f"""#version 330 core
layout(location = 0) out vec4 pixel;
{_WORK}
void main() {{
    pixel = vec4(work(gl_FragCoord.xy));
}}
"""

_TILED = f"""#version 430 core
layout(local_size_x = {TILE}, local_size_y = {TILE}) in;
layout(rgba8, binding = 0) uniform writeonly image2D pixel;
{_WORK}
void main() {{
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    imageStore(pixel, at, vec4(work(vec2(at) + 0.5)));
}}
"""


def tiles_are_faster(graphics: Graphics, place: ContextState) -> bool:
    """Tries both. In a context of the graphics."""
    if not graphics.about.computes or graphics.about.software:
        return False
    texture = Texture(graphics, (_SIDE, _SIDE))
    drawn, tiled = linked(_DRAWN), linked_compute(_TILED)
    try:
        GL.glUseProgram(drawn)
        slow = _seconds(lambda: draw_triangle(place, [(texture.number, None)], texture.shape))
        GL.glUseProgram(tiled)
        GL.glBindImageTexture(0, texture.number, 0, False, 0, GL.GL_WRITE_ONLY, GL.GL_RGBA8)
        return slow > _WORTH * _seconds(lambda: dispatch_tiles(texture.shape, TILE))
    finally:
        GL.glDeleteProgram(drawn)
        GL.glDeleteProgram(tiled)


def _seconds(work: Callable[[], None]) -> float:
    work()
    GL.glFinish()
    began = time.perf_counter()
    for _ in range(_TIMES):
        work()
    GL.glFinish()
    return time.perf_counter() - began
