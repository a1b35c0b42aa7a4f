"""A picture on a wall, drawn with OpenGL: one pass over the frame, after the picture is finished."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.backends.gl.graphics import GL
from weft.backends.gl.programs import linked
from weft.runtime.screens.display import GraphicsError
from weft.runtime.screens.screen import Picture
from weft.runtime.screens.warp import Point, Warp, bent, from_quad

_VERTEX_SHADER = """#version 330 core
uniform vec2 frame;
uniform mat3 seen;            // from pixels of the frame to places in the picture as it is seen
uniform mat3 lying;           // and back
uniform sampler2D grid;       // where places of the picture are led to; of one texel if there is no grid
out vec2 at;                  // in pixels of the frame; not gl_FragCoord, which some drivers turn upside down
out vec3 place;               // in the picture as it is seen, times the distance
void main() {
    ivec2 cells = textureSize(grid, 0) - 1;
    if (cells.x < 1) {
        // One triangle that covers the viewport.
        vec2 corner = vec2(gl_VertexID & 1, gl_VertexID >> 1) * 2.0;
        at = vec2(corner.x, 1.0 - corner.y) * frame;
        place = seen * vec3(at, 1.0);
        gl_Position = vec4(corner * 2.0 - 1.0, 0.0, 1.0);
        return;
    }
    // Two triangles a cell.
    int cell = gl_VertexID / 6;
    int corner = gl_VertexID % 6;
    ivec2 node = ivec2(cell % cells.x, cell / cells.x);
    node += ivec2(corner == 1 || corner == 2 || corner == 4, corner == 2 || corner == 4 || corner == 5);
    vec3 there = lying * vec3(texelFetch(grid, node, 0).xy, 1.0);
    at = there.xy / there.z;
    place = vec3(vec2(node) / vec2(cells), 1.0);
    vec2 screen = vec2(at.x, frame.y - at.y) / frame * 2.0 - 1.0;
    gl_Position = vec4(screen * there.z, 0.0, there.z);
}
"""

# Light adds up where projectors overlap, and a projector makes light of a level by its gamma. So the share of the
# light is taken to the power of one over gamma. Of two pictures that overlap, these shares are f(t) and f(1 - t), which
# are 1 together.
_FRAGMENT_SHADER = """#version 330 core
uniform sampler2D picture;
uniform sampler2D mask;
uniform mat3 drawn;       // from places in the picture as it is seen to those in it as it is drawn
uniform vec2 frame;
uniform vec4 blend;       // left, right, top, bottom
uniform vec3 levels;      // black, brightness, 1 / gamma
uniform bool has_mask;
in vec2 at;
in vec3 place;
out vec4 colour;

float share(float place, float width) {
    if (width <= 0.0) {
        return 1.0;
    }
    float t = clamp(place / width, 0.0, 1.0);
    return t * t * (3.0 - 2.0 * t);
}

void main() {
    vec2 inside = place.xy / place.z;
    bool is_outside = place.z <= 0.0 || any(lessThan(inside, vec2(0.0))) || any(greaterThan(inside, vec2(1.0)));
    if (is_outside) {
        colour = vec4(0.0, 0.0, 0.0, 1.0);
        return;
    }
    vec3 found = texture(picture, (drawn * vec3(inside, 1.0)).xy).rgb;
    vec3 level = levels.x + (levels.y - levels.x) * found;
    float light = share(inside.x, blend.x) * share(1.0 - inside.x, blend.y)
        * share(inside.y, blend.z) * share(1.0 - inside.y, blend.w);
    level *= pow(light, levels.z);
    if (has_mask) {
        level *= texture(mask, at / frame).r;
    }
    colour = vec4(level, 1.0);
}
"""

_UNIFORMS = ("picture", "mask", "grid", "seen", "lying", "drawn", "frame", "blend", "levels", "has_mask")

# The cells of a bent picture, in each direction: between them, it is drawn straight.
_CELLS = 32

# A mask is drawn with this many samples a pixel in each direction.
_FINE = 2


class WarpPainter:
    """Draws the picture of a window on a wall. Its methods need the context of the window."""

    def __init__(self) -> None:
        """Raises DriverError or GraphicsError."""
        shaders = (GL.GL_VERTEX_SHADER, _VERTEX_SHADER), (GL.GL_FRAGMENT_SHADER, _FRAGMENT_SHADER)
        self._program = linked(shaders, GraphicsError)
        self._at = {name: GL.glGetUniformLocation(self._program, name) for name in _UNIFORMS}
        self._mask = GL.glGenTextures(1)
        self._grid = GL.glGenTextures(1)
        self._masked: tuple[object, tuple[int, int]] | None = None
        self._bent: object = None
        self._told: object = None

    def paint(self, warp: Warp, texture: Any, size: tuple[int, int], frame: tuple[int, int], scaling: int) -> None:
        """Fills a frame (width, height) with a texture of a size, warped, and black around it."""
        GL.glViewport(0, 0, *frame)
        GL.glUseProgram(self._program)
        if self._told != (warp, size, frame):
            self._tell(warp, size, frame)
            self._told = warp, size, frame
        for unit, own in ((GL.GL_TEXTURE1, self._mask), (GL.GL_TEXTURE2, self._grid)):
            GL.glActiveTexture(unit)
            GL.glBindTexture(GL.GL_TEXTURE_2D, own)
        GL.glActiveTexture(GL.GL_TEXTURE0)
        GL.glBindTexture(GL.GL_TEXTURE_2D, texture)
        GL.glTexParameteri(GL.GL_TEXTURE_2D, GL.GL_TEXTURE_MIN_FILTER, scaling)
        GL.glTexParameteri(GL.GL_TEXTURE_2D, GL.GL_TEXTURE_MAG_FILTER, scaling)
        GL.glDrawArrays(GL.GL_TRIANGLES, 0, 6 * _CELLS**2 if warp.grid else 3)

    def _tell(self, warp: Warp, size: tuple[int, int], frame: tuple[int, int]) -> None:
        """Tells the program what is the same from frame to frame."""
        seen = from_quad(warp.quad(size, frame))
        # A perspective may be scaled by any number: here the middle of the picture is before the eye.
        seen *= _in_front(seen, warp.quad(size, frame))
        drawn = np.vstack([warp.turning, (0, 0, 1)])
        for name, matrix in (("seen", seen), ("lying", np.linalg.inv(seen)), ("drawn", drawn)):
            GL.glUniformMatrix3fv(self._at[name], 1, GL.GL_TRUE, np.ascontiguousarray(matrix, np.float32))
        blend = warp.blend
        GL.glUniform2f(self._at["frame"], *frame)
        GL.glUniform4f(self._at["blend"], blend.left, blend.right, blend.top, blend.bottom)
        GL.glUniform3f(self._at["levels"], warp.black, warp.brightness, 1 / blend.gamma)
        GL.glUniform1i(self._at["has_mask"], warp.is_masked)
        for unit, name in enumerate(("picture", "mask", "grid")):
            GL.glUniform1i(self._at[name], unit)
        GL.glActiveTexture(GL.GL_TEXTURE1)
        GL.glBindTexture(GL.GL_TEXTURE_2D, self._mask)
        if warp.is_masked and self._masked != ((warp.mask, warp.mask_picture), frame):
            self._send_mask(warp, frame)
        GL.glActiveTexture(GL.GL_TEXTURE2)
        GL.glBindTexture(GL.GL_TEXTURE_2D, self._grid)
        if self._bent != warp.grid:
            self._send_grid(warp)

    def _send_grid(self, warp: Warp) -> None:
        """Fills the bound texture with the nodes of the cells."""
        nodes = np.zeros((1, 1, 2), np.float32)
        if warp.grid:
            steps = np.linspace(0, 1, _CELLS + 1)
            nodes = np.ascontiguousarray(bent(warp.grid, *np.meshgrid(steps, steps)), np.float32)
        for name in (GL.GL_TEXTURE_MIN_FILTER, GL.GL_TEXTURE_MAG_FILTER):
            GL.glTexParameteri(GL.GL_TEXTURE_2D, name, GL.GL_NEAREST)
        size = nodes.shape[1], nodes.shape[0]
        GL.glTexImage2D(GL.GL_TEXTURE_2D, 0, GL.GL_RG32F, *size, 0, GL.GL_RG, GL.GL_FLOAT, nodes)
        self._bent = warp.grid

    def _send_mask(self, warp: Warp, frame: tuple[int, int]) -> None:
        pixels = mask_pixels(warp, frame)
        for name, value in (
            (GL.GL_TEXTURE_WRAP_S, GL.GL_CLAMP_TO_EDGE), (GL.GL_TEXTURE_WRAP_T, GL.GL_CLAMP_TO_EDGE),
            (GL.GL_TEXTURE_MIN_FILTER, GL.GL_NEAREST), (GL.GL_TEXTURE_MAG_FILTER, GL.GL_NEAREST),
        ):  # fmt: skip
            GL.glTexParameteri(GL.GL_TEXTURE_2D, name, value)
        GL.glPixelStorei(GL.GL_UNPACK_ALIGNMENT, 1)
        GL.glTexImage2D(GL.GL_TEXTURE_2D, 0, GL.GL_R8, *frame, 0, GL.GL_RED, GL.GL_UNSIGNED_BYTE, pixels)
        GL.glPixelStorei(GL.GL_UNPACK_ALIGNMENT, 4)
        self._masked = (warp.mask, warp.mask_picture), frame


def mask_pixels(warp: Warp, frame: tuple[int, int]) -> Picture:
    """Which pixels of a frame (width, height) a mask shows [height, width]: 255 inside of its polygons, 0 outside; less
    where its picture is darker than white."""
    width, height = frame[0] * _FINE, frame[1] * _FINE
    shown = np.full((height, width), not warp.mask)
    for polygon in warp.mask:
        shown |= _inside([(x * width, y * height) for x, y in polygon], width, height)
    parts = shown.reshape(frame[1], _FINE, frame[0], _FINE)
    light = parts.mean(axis=(1, 3)) * (255 if warp.mask_picture is None else _stretched(warp.mask_picture.light, frame))
    made: Picture = np.rint(light).astype(np.uint8)
    return made


def _stretched(light: Picture, frame: tuple[int, int]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """A picture in the size of a frame (width, height) [height, width], with straight lines between its pixels."""
    made = light.astype(np.float64)
    for count in (frame[1], frame[0]):
        at = np.clip((np.arange(count) + 0.5) / count * len(made) - 0.5, 0, len(made) - 1)
        first = np.minimum(at.astype(int), max(0, len(made) - 2))
        part = (at - first)[:, np.newaxis]
        made = (made[first] * (1 - part) + made[np.minimum(first + 1, len(made) - 1)] * part).T
    return made


def _inside(polygon: Sequence[Point], width: int, height: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which samples are inside of a polygon [height, width]: those with an odd number of its edges on their left."""
    edges = np.zeros((height, width + 1), bool)
    for (ax, ay), (bx, by) in zip(polygon, (*polygon[1:], polygon[0]), strict=True):
        rows = np.arange(*(int(np.clip(np.ceil(y - 0.5), 0, height)) for y in sorted((ay, by))))
        if len(rows):
            across = ax + (rows + 0.5 - ay) * (bx - ax) / (by - ay)
            edges[rows, np.clip(np.ceil(across - 0.5), 0, width).astype(int)] ^= True
    return np.logical_xor.accumulate(edges, axis=1)[:, :width]


def _in_front(seen: np.ndarray[Any, np.dtype[np.float64]], quad: tuple[tuple[float, float], ...]) -> float:
    """1, or −1 if the perspective of a matrix is negative where the picture is."""
    middle = np.mean(quad, axis=0)
    return 1.0 if float(seen[2] @ (*middle, 1.0)) > 0 else -1.0
