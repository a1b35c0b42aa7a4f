"""A picture on the graphics card."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from weft.backends.base import DeviceLostError, PictureHandle
from weft.backends.gl.contexts import GraphicsError
from weft.backends.gl.textures import Texture


class GlPicture(PictureHandle):
    """The texture that a picture was drawn to, which is drawn to again in the tick behind the next."""

    def __init__(self, context: str, texture: Texture) -> None:
        self.texture = texture
        self._context = context
        self._pixels: npt.NDArray[np.uint8] | None = None

    @property
    def shape(self) -> tuple[int, int, int]:
        return (*self.texture.shape, 4)

    def read(self) -> npt.NDArray[np.uint8]:
        if self._pixels is None:
            try:
                with self.texture.graphics.drawing():
                    self._pixels = self.texture.read()
            except GraphicsError as failure:
                raise DeviceLostError(self._context, str(failure)) from failure
        return self._pixels
