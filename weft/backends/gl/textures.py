"""Memory on the graphics card: textures, buffers, and pictures.

Objects on the card live as long as their Python objects. Row 0 of a texture is the top row of its picture."""

from __future__ import annotations

import ctypes
import math
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from weft.backends.base import DeviceLostError
from weft.backends.card import CardPicture
from weft.backends.card_memory import CardArray, CardPool
from weft.backends.gl.egl import GraphicsError
from weft.backends.gl.graphics import GL, Graphics
from weft.backends.launch import Array, Picture
from weft.backends.lent_memory import lent
from weft.backends.ranges import FreeRanges
from weft.codegen.essl import ROW
from weft.errors import error
from weft.media.sounds import SAMPLE_BYTES

T = TypeVar("T")

Shape = tuple[int, int]
"""Height and width."""

# The bytes of a sound that are uploaded at once.
_PIECE = 16_000_000


class Texture:
    """One image of four channels: bytes, or floats if `wide`."""

    def __init__(self, graphics: Graphics, shape: Shape, wide: bool = False) -> None:
        """In a context of the graphics. Raises WeftError if it is too large."""
        self.graphics = graphics
        self.shape = shape
        self.wide = wide
        self._kind = GL.GL_FLOAT if wide else GL.GL_UNSIGNED_BYTE
        self._dtype = np.dtype(np.float32 if wide else np.uint8)
        self._buffers: list[Buffer] = []
        self._readback: Buffer | None = None
        self._lendable: list[Buffer] = []
        """Buffers that `lending` copies to, which nobody reads any more."""
        check_side(graphics, shape)
        self.number: Any = _new(graphics, self)
        GL.glBindTexture(GL.GL_TEXTURE_2D, self.number)
        form = GL.GL_RGBA32F if wide else GL.GL_RGBA8
        GL.glTexImage2D(GL.GL_TEXTURE_2D, 0, form, shape[1], shape[0], 0, GL.GL_RGBA, self._kind, None)
        _settle(GL.GL_TEXTURE_2D)

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * (16 if self.wide else 4)

    def fill(self, pixels: Array) -> None:
        """Uploads pixels [height, width, 4] of the texture's type."""
        given, (height, width) = np.ascontiguousarray(pixels, self._dtype), self.shape
        GL.glBindTexture(GL.GL_TEXTURE_2D, self.number)
        GL.glTexSubImage2D(GL.GL_TEXTURE_2D, 0, 0, 0, width, height, GL.GL_RGBA, self._kind, given)

    def stream(self, pixels: Array) -> None:
        """Uploads pixels that change often, through two buffers in turn, so that it never waits for drawing."""
        given, (height, width) = np.ascontiguousarray(pixels, self._dtype), self.shape
        if not self._buffers:
            self._buffers = [Buffer(self.graphics), Buffer(self.graphics)]
        self._buffers.reverse()
        self._buffers[0].fill(GL.GL_PIXEL_UNPACK_BUFFER, given)
        GL.glBindTexture(GL.GL_TEXTURE_2D, self.number)
        GL.glTexSubImage2D(GL.GL_TEXTURE_2D, 0, 0, 0, width, height, GL.GL_RGBA, self._kind, None)
        GL.glBindBuffer(GL.GL_PIXEL_UNPACK_BUFFER, 0)

    def read(self, out: Array | None = None) -> Array:
        """The pixels [height, width, 4]; waits until they have been drawn."""
        found: Array = np.empty((*self.shape, 4), self._dtype) if out is None else out
        self.graphics.wait()
        self._send(found)
        return found

    def _send(self, to: Any) -> None:
        """Copies the pixels to an array, or to a place of the bound buffer."""
        if self.graphics.about.able.reads_textures:
            GL.glBindTexture(GL.GL_TEXTURE_2D, self.number)
            GL.glGetTexImage(GL.GL_TEXTURE_2D, 0, GL.GL_RGBA, self._kind, to)
            return
        with aside():
            attach(0, self.number, None)
            GL.glReadPixels(0, 0, self.shape[1], self.shape[0], GL.GL_RGBA, self._kind, to)

    def begin_read(self) -> None:
        """Has the card copy the pixels to a buffer when they have been drawn, for `end_read`."""
        self._readback = self._readback or self._room()
        self._copy_to(self._readback)

    def end_read(self, into: Array) -> None:
        """Copies the pixels of the last `begin_read` into an array [height, width, 4]; waits until they are there."""
        if self._readback is not None:
            self._readback.copy_to(GL.GL_PIXEL_PACK_BUFFER, into)
            GL.glBindBuffer(GL.GL_PIXEL_PACK_BUFFER, 0)

    def lending(self) -> Callable[[], npt.NDArray[np.uint8]]:
        """Has the card copy the pixels to a buffer when they have been drawn. Returns a function that lends the memory
        of that as an array [height, width, channels in bytes], in a context of the graphics, and waits until they are
        there. The buffer is used again when nobody looks at the array any more."""
        lendable = self._lendable
        buffer = lendable.pop() if lendable else self._room()
        buffer.unmap(GL.GL_PIXEL_PACK_BUFFER)
        self._copy_to(buffer)
        shape = (*self.shape, 4 * self._dtype.itemsize)

        def lend() -> npt.NDArray[np.uint8]:
            address = buffer.mapped(GL.GL_PIXEL_PACK_BUFFER, 0, math.prod(shape))
            GL.glBindBuffer(GL.GL_PIXEL_PACK_BUFFER, 0)
            return lent(address, shape, lambda: lendable.append(buffer))

        return lend

    def _room(self) -> Buffer:
        made = Buffer(self.graphics)
        made.make_room(GL.GL_PIXEL_PACK_BUFFER, self.nbytes, GL.GL_STREAM_READ)
        return made

    def _copy_to(self, buffer: Buffer) -> None:
        GL.glBindBuffer(GL.GL_PIXEL_PACK_BUFFER, buffer.number)
        self._send(ctypes.c_void_p(0))
        GL.glBindBuffer(GL.GL_PIXEL_PACK_BUFFER, 0)
        buffer.follow()


class SoundTexture:
    """A sound, in rows as long as the card has them; the last one is filled up with zeros."""

    def __init__(self, graphics: Graphics, sound: Picture) -> None:
        """Uploads samples [1, samples, 2]. In a context of the graphics. Raises WeftError if there are too many."""
        self.graphics = graphics
        count, width = sound.shape[1], min(sound.shape[1], graphics.about.side)
        if count > width * graphics.about.side:
            words = f"the graphics card cannot hold a sound of {count} samples"
            raise error("sound-too-long", words, hint=f"it takes up to {graphics.about.side**2}; the CPU takes more")
        whole, rest = divmod(count, width)
        self.nbytes = (whole + bool(rest)) * width * SAMPLE_BYTES
        self.number: Any = _new(graphics, self)
        GL.glBindTexture(GL.GL_TEXTURE_2D, self.number)
        GL.glTexImage2D(
            GL.GL_TEXTURE_2D, 0, GL.GL_RG32F, width, whole + bool(rest), 0, GL.GL_RG, GL.GL_FLOAT, None
        )  # fmt: skip
        _settle(GL.GL_TEXTURE_2D)
        _send_rows(sound[0, : whole * width], width, GL.GL_RG)
        if rest:
            _send_rows(np.pad(sound[0, whole * width :], ((0, width - rest), (0, 0))), width, GL.GL_RG, whole)


# The most bytes for layers that slots may take later.
_LATER = 64_000_000


class TextureArray:
    """Images of one shape and one float channel, of which slots take layers."""

    def __init__(self, graphics: Graphics, shape: Shape, count: int, spare: int = 0) -> None:
        """Room for `count` layers, and for up to `spare` more. In a context of the graphics. Raises WeftError if there
        are too many."""
        self.graphics = graphics
        self.shape = shape
        check_layers(graphics, shape, count)
        spare = min(spare, graphics.about.layers - count, _LATER // (4 * shape[0] * shape[1]))
        self._free = FreeRanges(count + spare)
        self.number: Any = _new(graphics, self)
        GL.glBindTexture(GL.GL_TEXTURE_2D_ARRAY, self.number)
        GL.glTexImage3D(
            GL.GL_TEXTURE_2D_ARRAY, 0, GL.GL_R32F, shape[1], shape[0], count + spare, 0, GL.GL_RED, GL.GL_FLOAT, None
        )
        _settle(GL.GL_TEXTURE_2D_ARRAY)

    def take(self, counts: Iterable[int]) -> list[Layers] | None:
        """Zeroed layers, as many in a row as each count says, which are given back when nothing refers to them; None if
        there is no room. In a context of the graphics. May be called from any thread."""
        found = self._free.take(counts)
        if found is None:
            return None
        made = [Layers(self, *each) for each in found]
        for each in made:
            weakref.finalize(each, self._free.give_back, each.first, each.count).atexit = False
            each.clear()
        return made


class Layers:
    """Some layers in a row: the ring of a slot."""

    def __init__(self, array: TextureArray, first: int, count: int) -> None:
        self.array = array
        self.first = first
        self.count = count

    @property
    def number(self) -> Any:
        return self.array.number

    @property
    def shape(self) -> Shape:
        return self.array.shape

    def clear(self) -> None:
        """Makes all of them 0."""
        with aside():
            for at in range(self.count):
                attach(0, self.number, self.first + at)
                GL.glClearBufferfv(GL.GL_COLOR, 0, (GL.GLfloat * 4)())

    def fill(self, first: int, images: Array, by_way_of: Buffer | None = None) -> None:
        """Uploads one or several images [height, width], from a layer on. A buffer that has room for all layers makes
        that faster."""
        given = np.ascontiguousarray(images, np.float32)
        count = 1 if given.ndim == 2 else len(given)
        source: Any = given
        if by_way_of is not None:
            at = first * given.nbytes // count
            by_way_of.write(GL.GL_PIXEL_UNPACK_BUFFER, at, given)
            source = ctypes.c_void_p(at)
        height, width = self.shape
        GL.glBindTexture(GL.GL_TEXTURE_2D_ARRAY, self.number)
        GL.glTexSubImage3D(
            GL.GL_TEXTURE_2D_ARRAY, 0, 0, 0, self.first + first, width, height, count, GL.GL_RED, GL.GL_FLOAT, source
        )
        GL.glBindBuffer(GL.GL_PIXEL_UNPACK_BUFFER, 0)

    def read(self, first: int = 0, count: int | None = None) -> npt.NDArray[np.float32]:
        """Some layers [count, height, width], all by default; waits until they have been drawn."""
        found = np.empty((self.count if count is None else count, *self.shape), np.float32)
        self.read_into(found, first)
        return found

    def begin_read(self, into: Buffer) -> None:
        """Has the card copy all layers to a buffer when they have been drawn, if it `reads_layers`."""
        GL.glBindBuffer(GL.GL_PIXEL_PACK_BUFFER, into.number)
        self._send(0, self.count, ctypes.c_void_p(0))
        GL.glBindBuffer(GL.GL_PIXEL_PACK_BUFFER, 0)
        into.follow()

    def _send(self, first: int, count: int, to: Any) -> None:
        """Copies layers to an array, or to a place of the bound buffer."""
        height, width = self.shape
        GL.glGetTextureSubImage(
            self.number, 0, 0, 0, self.first + first, width, height, count, GL.GL_RED, GL.GL_FLOAT,
            4 * count * height * width, to,
        )  # fmt: skip

    def read_into(self, found: npt.NDArray[np.float32], first: int = 0) -> None:
        """Reads layers into an array without gaps [count, height, width]; waits until they have been drawn."""
        # With some drivers, a read through a framebuffer takes a hundred times as long in another context than that in
        # which the texture was made.
        able = self.array.graphics.about.able
        self.array.graphics.wait()
        if able.reads_layers:
            self._send(first, len(found), found)
            return
        whole = None if able.reads_textures else np.empty((*self.shape, 4), np.float32)
        with aside():
            for at, image in enumerate(found):
                attach(0, self.number, self.first + first + at)
                if whole is None:
                    GL.glReadPixels(0, 0, self.shape[1], self.shape[0], GL.GL_RED, GL.GL_FLOAT, image)
                else:  # OpenGL ES gives no single channel
                    GL.glReadPixels(0, 0, self.shape[1], self.shape[0], GL.GL_RGBA, GL.GL_FLOAT, whole)
                    np.copyto(image, whole[..., 0])


class RowTexture:
    """A row of floats that shaders index: the ring of a slot of numbers, or values of another subgraph. It continues in
    the next row of a texture when one is full."""

    kind: ClassVar[Any] = GL.GL_TEXTURE_2D

    def __init__(self, graphics: Graphics) -> None:
        """In a context of the graphics."""
        self.number: Any = _new(graphics, self)
        self._room = 0

    def fill(self, numbers: Array) -> None:
        given = np.ascontiguousarray(numbers, np.float32).ravel()
        whole, rest = divmod(given.size, ROW)
        GL.glBindTexture(self.kind, self.number)
        if self._room < whole + bool(rest):
            self._room = whole + bool(rest)
            GL.glTexImage2D(self.kind, 0, GL.GL_R32F, ROW, self._room, 0, GL.GL_RED, GL.GL_FLOAT, None)
            _settle(self.kind)
        _send_rows(given[: whole * ROW], ROW, GL.GL_RED)
        _send_rows(given[whole * ROW :], rest, GL.GL_RED, whole)


class BufferTexture:
    """The same in a buffer."""

    kind: ClassVar[Any] = GL.GL_TEXTURE_BUFFER

    def __init__(self, graphics: Graphics, filled: Buffer | None = None) -> None:
        """In a context of the graphics. Uses a `filled` buffer without a copy."""
        self._buffer = filled or Buffer(graphics)
        self.number: Any = _new(graphics, self)
        if filled is not None:
            self._attach()

    def fill(self, numbers: Array) -> None:
        self._buffer.fill(self.kind, np.ascontiguousarray(numbers, np.float32))
        self._attach()

    def _attach(self) -> None:
        GL.glBindTexture(self.kind, self.number)
        GL.glTexBuffer(self.kind, GL.GL_R32F, self._buffer.number)


def row_texture(graphics: Graphics) -> RowTexture | BufferTexture:
    """A row of floats, in the form that shaders index here. In a context of the graphics."""
    return BufferTexture(graphics) if graphics.about.able.indexes_buffers else RowTexture(graphics)


class Buffer:
    """Bytes on the graphics card."""

    def __init__(self, graphics: Graphics) -> None:
        self.number: Any = GL.glGenBuffers(1)
        self._graphics = graphics
        self._fence = 0
        self._is_mapped = False
        weakref.finalize(self, graphics.discard, "buffer", self.number).atexit = False

    def fill(self, kind: Any, data: Array) -> None:
        """Uploads an array. Earlier commands still read the old contents."""
        GL.glBindBuffer(kind, self.number)
        GL.glBufferData(kind, data.nbytes, data, GL.GL_STREAM_DRAW)

    def write(self, kind: Any, at: int, data: Array) -> None:
        """Uploads an array to a place of a buffer that has room for it, which stays bound."""
        GL.glBindBuffer(kind, self.number)
        GL.glBufferSubData(kind, at, data.nbytes, data)

    def repeat(self, kind: Any, value: float, count: int) -> None:
        """Fills it with one number. The card does so by itself: for each pixel, it would be as much as a picture."""
        with np.errstate(over="ignore"):
            number = np.float32(value)
        self.make_room(kind, count * number.nbytes)
        GL.glClearBufferData(kind, GL.GL_R32F, GL.GL_RED, GL.GL_FLOAT, number)

    def make_room(self, kind: Any, count: int, usage: Any = GL.GL_DYNAMIC_COPY) -> None:
        """Allocates `count` bytes with undefined contents."""
        GL.glBindBuffer(kind, self.number)
        GL.glBufferData(kind, count, None, usage)

    def follow(self) -> None:
        """Notes that all which will be read has been asked for now: what is asked for later is not waited for."""
        fence, self._fence = self._fence, self._graphics.fence()
        if fence:
            self._graphics.fences.delete(fence)

    def __del__(self) -> None:
        if self._fence:
            self._graphics.discard("fence", self._fence)

    def _wait(self) -> None:
        """Waits until it has been written to."""
        fence, self._fence = self._fence, 0
        self._graphics.wait(fence)

    def copy_to(self, kind: Any, into: Array, at: int = 0) -> None:
        """Copies the contents from a place on into an array, without a copy in between; waits until they have been
        written. The buffer stays bound. Raises GraphicsError."""
        memory = (ctypes.c_uint8 * into.nbytes).from_address(self.mapped(kind, at, into.nbytes))
        np.copyto(into, np.ctypeslib.as_array(memory).view(into.dtype).reshape(into.shape))
        self.unmap(kind)

    def mapped(self, kind: Any, at: int, count: int) -> int:
        """The address of `count` bytes from a place on, which they have until `unmap`; waits until they have been
        written. The buffer stays bound. Raises GraphicsError."""
        self._wait()
        GL.glBindBuffer(kind, self.number)
        address = GL.glMapBufferRange(kind, at, count, GL.GL_MAP_READ_BIT)
        if not address:
            raise GraphicsError("the buffer cannot be read")
        self._is_mapped = True
        return address if isinstance(address, int) else ctypes.cast(address, ctypes.c_void_p).value or 0

    def unmap(self, kind: Any) -> None:
        """Ends `mapped`, if it was called. The buffer stays bound."""
        if self._is_mapped:
            self._is_mapped = False
            GL.glBindBuffer(kind, self.number)
            GL.glUnmapBuffer(kind)

    def read(self, kind: Any, like: Array) -> Array:
        """The contents as an array like this one; waits until they have been written."""
        self._wait()
        GL.glBindBuffer(kind, self.number)
        return np.frombuffer(bytes(GL.glGetBufferSubData(kind, 0, like.nbytes)), like.dtype)


def check_side(graphics: Graphics, shape: Shape) -> None:
    """Raises WeftError for a picture that the card cannot hold."""
    most = graphics.about.side
    if max(shape) > most:
        words = f"the graphics card cannot draw a picture of {shape[1]}×{shape[0]}"
        raise error("picture-too-large", words, hint=f"it takes up to {most} pixels a side")


def check_layers(graphics: Graphics, shape: Shape, count: int) -> None:
    """Raises WeftError for images of a shape that the card cannot hold, or for more of them than it takes."""
    check_side(graphics, shape)
    if count > graphics.about.layers:
        words = f"it remembers {count} images, and {graphics.about.renderer} takes {graphics.about.layers} in one"
        raise error("not-enough-memory", words, hint="remember fewer ticks, or draw it with --backend native")


def check_row(graphics: Graphics, count: int) -> None:
    """Raises WeftError for more floats than programs can index."""
    most = graphics.about.texels
    if count > most:
        words = f"the graphics card cannot be given a row of {count} numbers"
        raise error("picture-too-large", words, hint=f"it takes up to {most}; the CPU takes more")


@contextmanager
def aside() -> Iterator[None]:
    """A framebuffer for reading textures, and drawing over them, within this; after it there is none."""
    number = GL.glGenFramebuffers(1)
    GL.glBindFramebuffer(GL.GL_FRAMEBUFFER, number)
    GL.glDrawBuffers(1, [GL.GL_COLOR_ATTACHMENT0])
    try:
        yield
    finally:
        GL.glDeleteFramebuffers(1, [number])


def attach(at: int, number: Any, layer: int | None) -> None:
    """Makes a texture (0: none), or a layer of one, the target of this number of the bound framebuffer."""
    point = GL.GL_COLOR_ATTACHMENT0 + at
    if layer is None:
        GL.glFramebufferTexture2D(GL.GL_FRAMEBUFFER, point, GL.GL_TEXTURE_2D, number, 0)
    else:
        GL.glFramebufferTextureLayer(GL.GL_FRAMEBUFFER, point, number, 0, layer)


def bind(unit: int, kind: Any, number: Any) -> None:
    """Binds a texture to the unit of a sampler."""
    GL.glActiveTexture(GL.GL_TEXTURE0 + unit)
    GL.glBindTexture(kind, number)


def _send_rows(numbers: Array, width: int, form: Any, first: int = 0) -> None:
    """Fills rows of the bound texture from a row on, in pieces that a driver can take at once."""
    piece = width * max(1, _PIECE // max(1, width * numbers[:1].nbytes))
    for at in range(0, len(numbers), piece or 1):
        given = np.ascontiguousarray(numbers[at : at + piece], np.float32)
        row, rows = first + at // width, len(given) // width
        GL.glTexSubImage2D(GL.GL_TEXTURE_2D, 0, 0, row, width, rows, form, GL.GL_FLOAT, given)


def _new(graphics: Graphics, owner: object) -> Any:
    number = GL.glGenTextures(1)
    weakref.finalize(owner, graphics.discard, "texture", number).atexit = False
    return number


def _settle(kind: Any) -> None:
    """Sets up the bound texture: a single size, clamped at the edges."""
    GL.glTexParameteri(kind, GL.GL_TEXTURE_MAX_LEVEL, 0)
    for name in (GL.GL_TEXTURE_MIN_FILTER, GL.GL_TEXTURE_MAG_FILTER):
        GL.glTexParameteri(kind, name, GL.GL_NEAREST)
    for name in (GL.GL_TEXTURE_WRAP_S, GL.GL_TEXTURE_WRAP_T):
        GL.glTexParameteri(kind, name, GL.GL_CLAMP_TO_EDGE)


class GlPicture(CardPicture):
    """The texture that a picture was drawn to."""

    def __init__(self, context: str, texture: Texture) -> None:
        super().__init__(texture.shape)
        self.texture = texture
        self._context = context

    def fetched(self) -> npt.NDArray[np.uint8]:
        return self._drawing(self.texture.read)

    def lending(self) -> Callable[[], npt.NDArray[np.uint8]]:
        begun = self._drawing(self.texture.lending)
        return lambda: self._drawing(begun)

    def _drawing(self, read: Callable[[], T]) -> T:
        try:
            with self.texture.graphics.drawing():
                return read()
        except GraphicsError as failure:
            raise DeviceLostError(self._context, str(failure)) from failure


# Arrays in buffers, and pools of them. (Programs draw to and sample textures, which have no addresses.)

_HERE, _THERE = GL.GL_COPY_READ_BUFFER, GL.GL_COPY_WRITE_BUFFER


class GlPool(CardPool):
    """A buffer of the card."""

    def __init__(self, graphics: Graphics, size: int) -> None:
        """Raises GraphicsError if there is not enough memory."""
        super().__init__(size)
        self._graphics = graphics
        with graphics.drawing():
            self.buffer = Buffer(graphics)
            self.buffer.fill(_THERE, np.zeros(max(1, size), np.uint8))

    def write(self, start: int, data: Array) -> None:
        with self._graphics.drawing():
            self.buffer.write(_THERE, start, data)

    def fetch(self, start: int, into: npt.NDArray[np.uint8]) -> None:
        with self._graphics.drawing():
            self.buffer.copy_to(_HERE, into, start)

    def copy(self, source: CardArray, target: CardArray) -> None:
        with self._graphics.drawing():
            GL.glBindBuffer(_HERE, source.pool.buffer.number)
            GL.glBindBuffer(_THERE, target.pool.buffer.number)
            GL.glCopyBufferSubData(_HERE, _THERE, source.start, target.start, min(source.nbytes, target.nbytes))
