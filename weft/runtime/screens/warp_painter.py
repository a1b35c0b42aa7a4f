"""A picture on a wall, drawn with OpenGL: one pass over the frame, after the picture is finished."""

from __future__ import annotations

from typing import Any

from weft.backends.gl.graphics import GL
from weft.backends.gl.programs import linked
from weft.runtime.screens.display import GraphicsError
from weft.runtime.screens.screen import Picture
from weft.runtime.screens.wall_drawing import WallParts

_VERTEX_SHADER = """#version 330 core
uniform sampler2D corners;    // a row for each two triangles; two texels for each of their corners
out vec4 place;               // in the picture as it is seen, and as it is drawn
out vec3 at;                  // in the frame; not gl_FragCoord, which some drivers turn upside down
void main() {
    ivec2 number = ivec2(gl_VertexID % 6 * 2, gl_VertexID / 6);
    vec4 position = texelFetch(corners, number, 0);
    place = texelFetch(corners, number + ivec2(1, 0), 0);
    at = position.xyw;
    gl_Position = position;
}
"""

_FRAGMENT_SHADER = """#version 330 core
uniform sampler2D picture;
uniform sampler2D mask;
uniform vec4 blend;           // left, top, right, bottom
uniform vec4 levels;          // black, from there to white, 1 / gamma, whether there is a mask
in vec4 place;
in vec3 at;
out vec4 colour;
void main() {
    vec3 level = levels.x + levels.y * texture(picture, place.zw).rgb;
    vec4 shares = smoothstep(vec4(-1e-6), blend, vec4(place.xy, 1.0 - place.xy));
    float light = pow(shares.x * shares.y * shares.z * shares.w, levels.z);
    if (levels.w > 0.0) {
        light *= texture(mask, vec2(at.x, -at.y) / at.z * 0.5 + 0.5).r;
    }
    colour = vec4(level * light, 1.0);
}
"""

_UNIFORMS = ("picture", "mask", "corners", "blend", "levels")


class WarpPainter:
    """Draws the picture of a window on a wall. Its methods need the context of the window."""

    def __init__(self) -> None:
        """Raises DriverError or GraphicsError."""
        shaders = (GL.GL_VERTEX_SHADER, _VERTEX_SHADER), (GL.GL_FRAGMENT_SHADER, _FRAGMENT_SHADER)
        self._program = linked(shaders, GraphicsError)
        self._at = {name: GL.glGetUniformLocation(self._program, name) for name in _UNIFORMS}
        self._mask = GL.glGenTextures(1)
        self._corners = GL.glGenTextures(1)
        self._told: WallParts | None = None
        self._masked: Picture | None = None

    def paint(self, parts: WallParts, texture: Any, frame: tuple[int, int], scaling: int) -> None:
        """Draws a texture into a frame (width, height), which is black."""
        GL.glViewport(0, 0, *frame)
        GL.glUseProgram(self._program)
        for unit, own in ((GL.GL_TEXTURE1, self._mask), (GL.GL_TEXTURE2, self._corners)):
            GL.glActiveTexture(unit)
            GL.glBindTexture(GL.GL_TEXTURE_2D, own)
        if parts is not self._told:
            self._tell(parts)
            self._told = parts
        GL.glActiveTexture(GL.GL_TEXTURE0)
        GL.glBindTexture(GL.GL_TEXTURE_2D, texture)
        GL.glTexParameteri(GL.GL_TEXTURE_2D, GL.GL_TEXTURE_MIN_FILTER, scaling)
        GL.glTexParameteri(GL.GL_TEXTURE_2D, GL.GL_TEXTURE_MAG_FILTER, scaling)
        GL.glDrawArrays(GL.GL_TRIANGLES, 0, len(parts.corners))

    def _tell(self, parts: WallParts) -> None:
        """Tells the program what is the same from frame to frame."""
        nodes = parts.corners.reshape(-1, 12, 4)  # few enough rows for any card
        _sample_nearest()
        size = nodes.shape[1], nodes.shape[0]
        GL.glTexImage2D(GL.GL_TEXTURE_2D, 0, GL.GL_RGBA32F, *size, 0, GL.GL_RGBA, GL.GL_FLOAT, nodes)
        GL.glUniform4f(self._at["blend"], *map(float, parts.numbers[:4]))
        GL.glUniform4f(self._at["levels"], *map(float, parts.numbers[4:]))
        for unit, name in enumerate(("picture", "mask", "corners")):
            GL.glUniform1i(self._at[name], unit)
        if parts.mask is not None and parts.mask is not self._masked:
            GL.glActiveTexture(GL.GL_TEXTURE1)
            _send_mask(parts.mask)
            self._masked = parts.mask


def _sample_nearest() -> None:
    for name, value in (
        (GL.GL_TEXTURE_WRAP_S, GL.GL_CLAMP_TO_EDGE), (GL.GL_TEXTURE_WRAP_T, GL.GL_CLAMP_TO_EDGE),
        (GL.GL_TEXTURE_MIN_FILTER, GL.GL_NEAREST), (GL.GL_TEXTURE_MAG_FILTER, GL.GL_NEAREST),
    ):  # fmt: skip
        GL.glTexParameteri(GL.GL_TEXTURE_2D, name, value)


def _send_mask(pixels: Picture) -> None:
    """Fills the bound texture."""
    _sample_nearest()
    size = pixels.shape[1], pixels.shape[0]
    GL.glPixelStorei(GL.GL_UNPACK_ALIGNMENT, 1)
    GL.glTexImage2D(GL.GL_TEXTURE_2D, 0, GL.GL_R8, *size, 0, GL.GL_RED, GL.GL_UNSIGNED_BYTE, pixels)
    GL.glPixelStorei(GL.GL_UNPACK_ALIGNMENT, 4)
