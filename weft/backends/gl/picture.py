"""A picture on the graphics card."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from weft.backends.base import DeviceLostError
from weft.backends.card_compiled import CardPicture
from weft.backends.gl.contexts import GraphicsError
from weft.backends.gl.textures import Texture


class GlPicture(CardPicture):
    """The texture that a picture was drawn to."""

    def __init__(self, context: str, texture: Texture) -> None:
        super().__init__(texture.shape)
        self.texture = texture
        self._context = context

    def fetched(self) -> npt.NDArray[np.uint8]:
        try:
            with self.texture.graphics.drawing():
                return self.texture.read()
        except GraphicsError as failure:
            raise DeviceLostError(self._context, str(failure)) from failure
