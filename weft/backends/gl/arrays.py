"""Arrays in buffers of the graphics card, and pools of them. What programs draw to and sample are textures, which have
no addresses: those are in `textures.py`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.backends.base import MemoryPool
from weft.backends.gl.graphics import Graphics
from weft.backends.gl.opengl import GL
from weft.backends.gl.textures import Buffer

_HERE, _THERE = GL.GL_COPY_READ_BUFFER, GL.GL_COPY_WRITE_BUFFER


@dataclass(frozen=True, eq=False, slots=True)
class GlArray:
    """An array in a buffer, from a byte of it on."""

    graphics: Graphics
    buffer: Buffer
    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def nbytes(self) -> int:
        return int(np.prod(self.shape)) * self.dtype.itemsize

    def fill(self, data: npt.NDArray[Any]) -> None:
        """Takes an array of this shape."""
        given = np.ascontiguousarray(np.broadcast_to(data, self.shape), self.dtype)
        with self.graphics.drawing():
            GL.glBindBuffer(_THERE, self.buffer.number)
            GL.glBufferSubData(_THERE, self.offset, self.nbytes, given)

    def read(self) -> npt.NDArray[Any]:
        """A copy of it; waits until it is written."""
        with self.graphics.drawing():
            GL.glBindBuffer(_HERE, self.buffer.number)
            found = bytes(GL.glGetBufferSubData(_HERE, self.offset, self.nbytes))
        return np.frombuffer(found, self.dtype).reshape(self.shape).copy()


class GlPool(MemoryPool):
    """One buffer of the card, handed out piece by piece."""

    def __init__(self, graphics: Graphics, size: int) -> None:
        """Raises GraphicsError if there is no room for it."""
        super().__init__(np.zeros(0, np.uint8))
        self.size = size
        self._graphics = graphics
        with graphics.drawing():
            self._buffer = Buffer(graphics)
            self._buffer.fill(_THERE, np.zeros(max(1, size), np.uint8))

    def take(self, shape: Sequence[int], dtype: npt.DTypeLike) -> GlArray:
        start = self.place(shape, dtype)
        return GlArray(self._graphics, self._buffer, start, tuple(shape), np.dtype(dtype))

    def copy(self, source: GlArray, target: GlArray) -> None:
        with self._graphics.drawing():
            GL.glBindBuffer(_HERE, source.buffer.number)
            GL.glBindBuffer(_THERE, target.buffer.number)
            GL.glCopyBufferSubData(_HERE, _THERE, source.offset, target.offset, min(source.nbytes, target.nbytes))
