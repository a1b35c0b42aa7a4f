"""Letters as pixels: one monospaced face, drawn by Pillow's FreeType from a font that ships with weft."""

from __future__ import annotations

from functools import cached_property
from importlib.resources import files
from io import BytesIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

Mask = NDArray[np.uint8]
"""[height, width], from 0 without ink to 255 for full ink."""

_FONT = "DejaVuSansMono.ttf"
# A box with a question mark. The font itself shows characters that it lacks as empty boxes.
_UNKNOWN = "\N{REPLACEMENT CHARACTER}"


class Face:
    """The letters of one size. Every code point takes one cell, so that columns can be counted."""

    def __init__(self, size: int) -> None:
        """`size` is the em in pixels, at least 1."""
        font = BytesIO(files("weft.media").joinpath("fonts", _FONT).read_bytes())
        # The basic layout: letters are drawn one by one, so there is nothing to shape.
        self._font = ImageFont.truetype(font, size, layout_engine=ImageFont.Layout.BASIC)
        self.size = size
        self._ascent, self._descent = self._font.getmetrics()
        self._glyphs: dict[str, Mask] = {}

    @cached_property
    def width(self) -> int:
        """Width of a cell, in pixels."""
        return max(1, round(self._font.getlength("0")))

    @property
    def height(self) -> int:
        """Height of a cell, in pixels: from the top of an accented capital to the foot of a `g`."""
        return self._ascent + self._descent

    def draw(self, text: str) -> Mask:
        """One line of text, `len(text)` cells wide. Characters that are not printable or not in the font are boxes."""
        if not text:
            return np.zeros((self.height, 0), np.uint8)
        return np.concatenate([self._glyph(letter) for letter in text], axis=1)

    def _glyph(self, letter: str) -> Mask:
        glyph = self._glyphs.get(letter)
        if glyph is None:
            image = Image.new("L", (self.width, self.height))
            shown = letter if letter.isprintable() else _UNKNOWN
            ImageDraw.Draw(image).text((0, self._ascent), shown, fill=255, font=self._font, anchor="ls")
            glyph = self._glyphs[letter] = np.asarray(image)
        return glyph
