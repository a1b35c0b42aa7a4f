"""The inside of a window, drawn with OpenGL: finished pictures, and labels over them."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias

import numpy as np

from weft.backends.base import as_array
from weft.backends.gl.graphics import GL, plain
from weft.backends.gl.programs import linked
from weft.backends.gl.textures import Texture
from weft.backends.hardware import is_software
from weft.errors import error
from weft.runtime.screens.display import (
    Display, DriverError, GlPicture, Graphics, GraphicsError, glfw, lost, no_display
)
from weft.runtime.screens.screen import Label, Picture, Rect, Shown, letterbox
from weft.runtime.screens.wall_drawing import WallDrawing
from weft.runtime.screens.warp import PLAIN, Warp
from weft.runtime.screens.warp_painter import WarpPainter

Filter: TypeAlias = Literal["nearest", "linear"]
Upload: TypeAlias = Literal["direct", "buffers"]
"""How a picture is sent to the graphics card: directly from the array, or through a ring of pixel buffers."""

NO_MEMORY = "it has no memory left for it; try a smaller --size"
"""A hint."""

# One buffer is filled while the card may still read the two others.
_RING = 3


def upload_for(renderer: str) -> Upload:
    """The faster way for a renderer with this name.

    A graphics card fetches a picture from a pixel buffer by itself, while the processor continues. If the processor
    renders, the buffer is one more copy: with llvmpipe, at 1280×720 and 1920×1080, the upload through a buffer takes 3
    to 7 times as long, upload and drawing together 1.3 to 1.5 times.
    """
    return "direct" if is_software(renderer) else "buffers"


def pixels_of(picture: Shown) -> Picture:
    """The pixels of a picture [height, width, RGBA]. Raises ValueError if it is none."""
    pixels = as_array(picture)
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 4 or not pixels.size:
        raise ValueError(f"not a picture of RGBA bytes: {pixels.dtype} {pixels.shape}")
    return pixels


_VERTEX_SHADER = """#version 330 core
out vec2 place;
void main() {
    // One triangle that covers the viewport; the texture's first row is the upper one.
    vec2 corner = vec2(gl_VertexID & 1, gl_VertexID >> 1) * 2.0;
    place = vec2(corner.x, 1.0 - corner.y);
    gl_Position = vec4(corner * 2.0 - 1.0, 0.0, 1.0);
}
"""

_FRAGMENT_SHADER = """#version 330 core
uniform sampler2D picture;
in vec2 place;
out vec4 colour;
void main() {
    colour = texture(picture, place);
}
"""


class GlSurface:
    """The inside of a window, drawn with OpenGL: one picture, and labels over it. The context of the window is current
    in its thread from the beginning. Backends draw in that of the window that `leads`. All methods raise `WeftError`
    (`display-lost`) if nothing can be drawn any more."""

    def __init__(
        self, display: Display, handle: Any, filtering: Filter, upload: Upload | None = None, leads: bool = True
    ) -> None:
        """`handle` is the window, `filtering` how pictures are scaled, `upload` how they are sent to the card; None:
        `upload_for` the card. Raises `WeftError` (`no-display`)."""
        self._display = display
        self._leads = leads
        self._handle = handle
        self._filter = GL.GL_NEAREST if filtering == "nearest" else GL.GL_LINEAR
        self._size = (0, 0)
        self._shown: Any = None
        """The texture that is shown, and its width and height."""
        self._shown_size = (0, 0)
        self._lent: Texture | None = None
        self._labels: list[tuple[Label, Any]] = []
        self._warp = PLAIN
        self._warps: WarpPainter | None = None
        self._wall = WallDrawing()
        glfw.make_context_current(handle)
        self._graphics = display.lend(handle) if leads else display.shared
        try:
            self._most = int(GL.glGetIntegerv(GL.GL_MAX_TEXTURE_SIZE))
            shaders = (GL.GL_VERTEX_SHADER, _VERTEX_SHADER), (GL.GL_FRAGMENT_SHADER, _FRAGMENT_SHADER)
            self._program = linked(shaders, GraphicsError)
            self._texture = _new_texture()
            GL.glBindVertexArray(GL.glGenVertexArrays(1))  # a core context draws nothing without one
            GL.glDisable(GL.GL_DITHER)
            GL.glBlendFunc(GL.GL_ONE, GL.GL_ONE_MINUS_SRC_ALPHA)
            GL.glClearColor(0.0, 0.0, 0.0, 1.0)
            self.uploading: Upload = upload or upload_for(plain(GL.glGetString(GL.GL_RENDERER)))
            self._buffers = [GL.glGenBuffers(1) for _ in range(_RING)] if self.uploading == "buffers" else []
            # Draws an invisible label. A driver may finish a program only at its first use, which takes llvmpipe some
            # 30 ms: better while the window opens than when an error has to be shown.
            side = 3  # for llvmpipe, a power of two would be another program
            self._annotate([Label(Rect(0, 0, side, side), np.zeros((side, side, 4), np.uint8))])
            self._paint((side, side))
            self._annotate(())
        except (DriverError, GraphicsError) as problem:
            self.close()
            raise no_display(f"the graphics driver does not draw ({problem})") from problem

    def keep_pace(self, vsync: bool) -> None:
        """Makes `present` wait for the monitor's refresh, or not."""
        # Not on Wayland: pictures do not tear there anyway, and while the window is hidden, a swap would wait forever.
        glfw.make_context_current(self._handle)
        glfw.swap_interval(int(vsync and glfw.get_platform() != glfw.PLATFORM_WAYLAND))

    def show(self, picture: Shown) -> None:
        """Shows a picture [height, width, RGBA] from now on, row 0 on top. One that was drawn with the graphics of the
        display is not copied; an array may change afterwards. Raises `WeftError` (`picture-too-large`) for one that the
        graphics card cannot hold."""
        width, height = size = picture.shape[1], picture.shape[0]
        is_lent = isinstance(picture, GlPicture) and picture.texture.graphics is self._graphics
        drawn = None if self._leads or self._graphics is None or not is_lent else self._drawn(self._graphics)
        with self._drawing():
            if isinstance(picture, GlPicture) and is_lent:
                if drawn is not None:
                    GL.glWaitSync(drawn, 0, GL.GL_TIMEOUT_IGNORED)
                    GL.glDeleteSync(drawn)
                self._lent = picture.texture  # keeps it alive
                self._shown, self._shown_size = picture.texture.number, size
                return
            pixels = pixels_of(picture)
            GL.glBindTexture(GL.GL_TEXTURE_2D, self._texture)
            if size != self._size:
                self._allocate(width, height)
            if not (self._buffers and self._send_by_buffer(pixels)):
                _send(width, height, np.ascontiguousarray(pixels))
            self._shown, self._shown_size, self._lent = self._texture, size, None

    def lie(self, warp: Warp) -> None:
        """Shows pictures like this on a wall from now on."""
        if self._warps is None and not warp.is_plain:
            with self._drawing():
                self._warps = WarpPainter()
        self._warp = warp

    def present(self, frame: tuple[int, int], labels: Sequence[Label]) -> None:
        """Fills a window of this width and height with the picture, black around it, and labels over both."""
        with self._drawing():
            self._annotate(labels)
            self._paint(frame)
            glfw.swap_buffers(self._handle)

    def read_back(self, frame: tuple[int, int], labels: Sequence[Label]) -> Picture:
        """Draws the same into another buffer and returns it, since a window's buffers are undefined after a swap."""
        width, height = frame
        pixels = np.zeros((height, width, 4), np.uint8)
        if not pixels.size:
            return pixels
        with self._drawing():
            self._annotate(labels)
            target, colour = GL.glGenFramebuffers(1), GL.glGenRenderbuffers(1)
            GL.glBindRenderbuffer(GL.GL_RENDERBUFFER, colour)
            GL.glRenderbufferStorage(GL.GL_RENDERBUFFER, GL.GL_RGBA8, width, height)
            GL.glBindFramebuffer(GL.GL_FRAMEBUFFER, target)
            GL.glFramebufferRenderbuffer(GL.GL_FRAMEBUFFER, GL.GL_COLOR_ATTACHMENT0, GL.GL_RENDERBUFFER, colour)
            self._paint(frame)
            GL.glReadPixels(0, 0, width, height, GL.GL_RGBA, GL.GL_UNSIGNED_BYTE, pixels)
            GL.glBindFramebuffer(GL.GL_FRAMEBUFFER, 0)
            GL.glDeleteFramebuffers(1, [target])
            GL.glDeleteRenderbuffers(1, [colour])
        return np.ascontiguousarray(pixels[::-1])

    def close(self) -> None:
        """Returns the graphics to the display, if they were lent."""
        if self._leads:
            self._display.lend(None)

    @contextmanager
    def _drawing(self) -> Iterator[None]:
        """Makes the window's context current, and turns errors of the driver or the window system into `WeftError`."""
        self._display.take_error()
        glfw.make_context_current(self._handle)
        reason = self._display.take_error()
        try:
            if reason is None:
                yield
                reason = self._display.take_error()
        except DriverError as problem:
            reason = str(problem)
        if reason is not None:
            raise lost(reason)

    def _drawn(self, graphics: Graphics) -> Any:
        """A fence that shows, in another context, that everything drawn so far is finished."""
        try:
            with graphics.drawing():
                fence = GL.glFenceSync(GL.GL_SYNC_GPU_COMMANDS_COMPLETE, 0)
                GL.glFlush()
                return fence
        except GraphicsError as problem:
            raise lost(str(problem)) from problem

    def _send_by_buffer(self, picture: Picture) -> bool:
        """Puts the picture into the next buffer, from which the card fetches it; False if that fails."""
        height, width, _ = picture.shape
        self._buffers.append(self._buffers.pop(0))
        GL.glBindBuffer(GL.GL_PIXEL_UNPACK_BUFFER, self._buffers[-1])
        try:
            # New memory each time. Memory that the card still reads is not changed, so there is no wait for it.
            GL.glBufferData(GL.GL_PIXEL_UNPACK_BUFFER, picture.size, None, GL.GL_STREAM_DRAW)
            address = GL.glMapBufferRange(GL.GL_PIXEL_UNPACK_BUFFER, 0, picture.size, _MAPPING)
            if not address:
                return False
            memory = (ctypes.c_uint8 * picture.size).from_address(_number(address))
            np.copyto(np.ctypeslib.as_array(memory).reshape(picture.shape), picture)
            if not GL.glUnmapBuffer(GL.GL_PIXEL_UNPACK_BUFFER):  # the memory was lost, as when a laptop wakes up
                return False
            _send(width, height, None)
            return True
        finally:
            GL.glBindBuffer(GL.GL_PIXEL_UNPACK_BUFFER, 0)

    def _annotate(self, labels: Sequence[Label]) -> None:
        """Draws these labels over the picture from now on, at their own places in the frame."""
        while len(self._labels) > len(labels):
            GL.glDeleteTextures([self._labels.pop()[1]])
        for number, label in enumerate(labels):
            if number == len(self._labels):
                self._labels.append((label, _label_texture(_new_texture(), label)))
            elif self._labels[number][0] is not label:
                self._labels[number] = (label, _label_texture(self._labels[number][1], label))

    def _allocate(self, width: int, height: int) -> None:
        self._size = self._shown_size = (0, 0)
        message = f"the graphics card cannot show a picture of {width}×{height}"
        if max(width, height) > self._most:
            raise error("picture-too-large", message, hint=f"it takes up to {self._most} pixels a side")
        while GL.glGetError() != GL.GL_NO_ERROR:  # discards errors of earlier calls
            pass
        GL.glTexImage2D(GL.GL_TEXTURE_2D, 0, GL.GL_RGBA8, width, height, 0, GL.GL_RGBA, GL.GL_UNSIGNED_BYTE, None)
        if GL.glGetError() != GL.GL_NO_ERROR:
            raise error("picture-too-large", message, hint=NO_MEMORY)
        self._size = (width, height)

    def _paint(self, frame: tuple[int, int]) -> None:
        GL.glViewport(0, 0, *frame)
        GL.glClear(GL.GL_COLOR_BUFFER_BIT)
        if not all(frame):
            return
        if all(self._shown_size) and self._warps is not None and not self._warp.is_plain:
            parts = self._wall.parts(self._warp, self._shown_size, frame)
            self._warps.paint(parts, self._shown, frame, self._filter)
        elif all(self._shown_size):
            GL.glUseProgram(self._program)
            place = letterbox(self._shown_size, frame)
            # At its own size a picture is shown exactly, which a linear filter would not guarantee.
            scaling = GL.GL_NEAREST if (place.width, place.height) == self._shown_size else self._filter
            GL.glBindTexture(GL.GL_TEXTURE_2D, self._shown)
            _filter_by(scaling)
            _fill(place, frame)
        if self._labels:
            GL.glUseProgram(self._program)
            GL.glEnable(GL.GL_BLEND)
            for label, texture in self._labels:
                GL.glBindTexture(GL.GL_TEXTURE_2D, texture)
                _fill(label.place, frame)
            GL.glDisable(GL.GL_BLEND)


_MAPPING = GL.GL_MAP_WRITE_BIT | GL.GL_MAP_INVALIDATE_BUFFER_BIT | GL.GL_MAP_UNSYNCHRONIZED_BIT


def _number(address: Any) -> int:
    """PyOpenGL gives addresses as numbers or as pointers, depending on its version."""
    number = address if isinstance(address, int) else ctypes.cast(address, ctypes.c_void_p).value
    return number or 0


def _send(width: int, height: int, pixels: Picture | None) -> None:
    """Fills the bound texture from an array, or from the start of the bound pixel buffer."""
    GL.glTexSubImage2D(GL.GL_TEXTURE_2D, 0, 0, 0, width, height, GL.GL_RGBA, GL.GL_UNSIGNED_BYTE, pixels)


def _new_texture() -> Any:
    """A new texture, clamped at its edges and bound."""
    texture = GL.glGenTextures(1)
    GL.glBindTexture(GL.GL_TEXTURE_2D, texture)
    GL.glTexParameteri(GL.GL_TEXTURE_2D, GL.GL_TEXTURE_WRAP_S, GL.GL_CLAMP_TO_EDGE)
    GL.glTexParameteri(GL.GL_TEXTURE_2D, GL.GL_TEXTURE_WRAP_T, GL.GL_CLAMP_TO_EDGE)
    return texture


def _label_texture(texture: Any, label: Label) -> Any:
    """The texture, filled with the label's pixels."""
    GL.glBindTexture(GL.GL_TEXTURE_2D, texture)
    _filter_by(GL.GL_NEAREST)
    size = label.pixels.shape[1], label.pixels.shape[0]
    GL.glTexImage2D(GL.GL_TEXTURE_2D, 0, GL.GL_RGBA8, *size, 0, GL.GL_RGBA, GL.GL_UNSIGNED_BYTE, label.pixels)
    return texture


def _filter_by(scaling: int) -> None:
    GL.glTexParameteri(GL.GL_TEXTURE_2D, GL.GL_TEXTURE_MIN_FILTER, scaling)
    GL.glTexParameteri(GL.GL_TEXTURE_2D, GL.GL_TEXTURE_MAG_FILTER, scaling)


def _fill(place: Rect, frame: tuple[int, int]) -> None:
    """Draws the bound texture over a part of the frame."""
    GL.glViewport(place.left, frame[1] - place.top - place.height, place.width, place.height)
    GL.glDrawArrays(GL.GL_TRIANGLES, 0, 3)
