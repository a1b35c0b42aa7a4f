"""Letters for patches: a text as a picture of distances to its outlines, from which edges of any width are made.

A distance field keeps its shape under every remap, where coverage would blur or turn to steps (C. Green, "Improved
Alpha-Tested Magnification for Vector Textures and Special Effects", SIGGRAPH 2007).
"""

from __future__ import annotations

import math
import struct
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from PIL import Image, ImageDraw, ImageFont, features

from weft.media.source import PictureError, open_media
from weft.names import LETTERS_EM, LETTERS_REACH, Letters
from weft.sources import MediaHeader, Remark

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.floating[Any]]

MAX_WIDTH = 16384
"""The widest line, in pixels of the picture of distances; some 280 letters."""
MAX_LINES = 100
MAX_LETTERS = 2000
MAX_FONT_BYTES = 256_000_000

_FONT = "DejaVuSansMono.ttf"
# The tables of fonts that have colours, as layers or as pictures.
_COLOURED = {b"COLR", b"CBDT", b"sbix"}
# The coverage from which on the colour of a pixel is known.
_COVERED = 0.25
# The number of pixels around the letters over which their colours continue.
_BLED = 4


def header_of(letters: Letters) -> MediaHeader:
    """Width and height in pixels of the picture of distances, its margins included, and whether its font has colours.
    Raises PictureError."""
    with _whole_font():
        font = _font(letters.font)
        size = _laid_out(letters, font).scaled
        lacking = _lacking(letters.text, font)
    return MediaHeader(*size, has_colours=font.has_colours, remarks=(_lacks(lacking),) if lacking else ())


def _lacking(text: str, font: _Font) -> list[str]:
    """The letters of a text that a font does not have: it draws them like a code point that no font has."""
    face = font.face.font_variant(layout_engine=ImageFont.Layout.BASIC)

    def drawn_as(letter: str) -> tuple[object, ...]:
        image = Image.new("RGBA" if font.has_colours else "L", (2 * font.size, 2 * font.size))
        fill = (255, 255, 255, 255) if font.has_colours else 255
        place = font.size // 2, font.size // 2
        ImageDraw.Draw(image).text(place, letter, fill=fill, font=face, embedded_color=font.has_colours)
        return image.tobytes(), face.getlength(letter)

    unknown = drawn_as(_NO_LETTER)
    return [each for each in dict.fromkeys(text) if each.isprintable() and not each.isspace()
            and unicodedata.category(each) not in _UNDRAWN and drawn_as(each) == unknown]  # fmt: skip


# A code point that no font has, and the categories of characters that only change how others are drawn.
_NO_LETTER = "\U0010ffff"
_UNDRAWN = frozenset({"Cc", "Cf", "Mn", "Me"})
_MOST_NAMED = 12


def _lacks(letters: Sequence[str]) -> Remark:
    named = " ".join(letters[:_MOST_NAMED]) + (" …" if len(letters) > _MOST_NAMED else "")
    words = f"the font lacks {named}, and shows boxes"
    return Remark("missing-letters", words, 'name one that has them: text("…", font: "font.ttf")')


def drawn(letters: Letters) -> NDArray[np.float32]:
    """The picture, [height, width, 4]: colours with straight alpha; or distances. Then red is ½ on the outlines, 1 at
    `LETTERS_REACH` pixels outside of them, and 0 at that distance inside, and the other channels are 0. Raises
    PictureError."""
    import numpy as np  # not needed for a header

    with _whole_font():
        image = _image(letters, _font(letters.font))
    if letters.in_colour:
        return _straight(np.asarray(image.convert("RGBA")) / np.float32(255))
    coverage = np.asarray(image.getchannel("A") if image.mode == "RGBA" else image) / np.float32(255)
    found = np.zeros((image.height, image.width, 4), np.float32)
    found[..., 0] = 0.5 + _signed_distance(coverage) / (2 * LETTERS_REACH)
    return found


def _image(letters: Letters, font: _Font) -> Image.Image:
    """The letters, drawn by Pillow: their coverage, or for a font with colours these on a transparent black."""
    block = _laid_out(letters, font)
    image = Image.new("RGBA" if font.has_colours else "L", block.size)
    draw = ImageDraw.Draw(image)
    fill = (255, 255, 255, 255) if font.has_colours else 255
    for line, place in zip(letters.text.split("\n"), block.places, strict=True):
        draw.text(place, line, fill=fill, font=font.face, embedded_color=font.has_colours)
    return image if block.scaled == block.size else image.resize(block.scaled, Image.Resampling.LANCZOS)


def _straight(given: Floats) -> Floats:
    """Colours that are multiplied by their alpha, without that factor. If little of a pixel is covered, too few bits of
    its colour are left. There, and around the letters, colours continue from their neighbours, so that no dark edges
    appear between pixels."""
    import numpy as np

    colours, alpha = given[..., :3], given[..., 3:]
    found = np.clip(np.divide(colours, alpha, out=np.zeros_like(colours), where=alpha > 0), 0, 1)
    known = alpha > _COVERED
    for _ in range(_BLED):
        weights, summed = np.zeros_like(alpha), np.zeros_like(found)
        for shift, axis in ((1, 0), (-1, 0), (1, 1), (-1, 1)):
            weights += np.roll(known, shift, axis)
            summed += np.roll(np.where(known, found, 0), shift, axis)
        found = np.where(known, found, summed / np.maximum(weights, 1))
        known = known | (weights > 0)
    return np.concatenate([found, alpha], axis=2).astype(np.float32)


@contextmanager
def _whole_font() -> Iterator[None]:
    """Any failure of FreeType in the block becomes a `PictureError`: it finds damage when it draws."""
    try:
        yield
    except PictureError:
        raise
    except MemoryError:
        raise PictureError("there is not enough memory for it") from None
    except Exception as failure:  # of the libraries below, of all kinds
        raise PictureError(f"its font is damaged ({failure})", _READABLE) from failure


_READABLE = "weft reads ttf and otf"


class _Font(NamedTuple):
    """A font in the size in which it is drawn. Fonts of pictures have a size of their own."""

    face: ImageFont.FreeTypeFont
    size: int
    has_colours: bool


def _font(path: str | None) -> _Font:
    """A font, by its file. If Pillow has Raqm, that joins and orders letters as their script requires."""
    engine = ImageFont.Layout.RAQM if features.check("raqm") else ImageFont.Layout.BASIC
    try:
        data = _font_data(path)
        tables = _tables(data)
        size = _picture_size(data, tables) or LETTERS_EM
        face = ImageFont.truetype(BytesIO(data), size, layout_engine=engine)
    except (OSError, struct.error):
        raise PictureError("it is not a font, or a damaged one", _READABLE) from None
    return _Font(face, size, bool(_COLOURED & tables.keys()))


def _font_data(path: str | None) -> bytes:
    if path is None:
        return files("weft.media").joinpath("fonts", _FONT).read_bytes()
    with open_media(Path(path)) as file:
        data = file.read(MAX_FONT_BYTES + 1)
    if len(data) > MAX_FONT_BYTES:
        raise PictureError(f"it is larger than {MAX_FONT_BYTES // 1_000_000} MB")
    return data


def _tables(data: bytes) -> dict[bytes, int]:
    """The start of each table of a font, or of the first font of a collection. Raises struct.error."""
    start = struct.unpack_from(">I", data, 12)[0] if data[:4] == b"ttcf" else 0
    (count,) = struct.unpack_from(">H", data, start + 4)
    rows = (struct.unpack_from(">4s4xI", data, start + 12 + 16 * number) for number in range(count))
    return dict(rows)


def _picture_size(data: bytes, tables: Mapping[bytes, int]) -> int | None:
    """The pixels of an em in a font that has pictures in place of outlines; of several sizes, the one nearest to that
    of other letters. Raises struct.error."""
    if b"glyf" in tables or b"CFF " in tables or b"CBLC" not in tables:
        return None
    at = tables[b"CBLC"]
    (count,) = struct.unpack_from(">I", data, at + 4)
    sizes = [data[at + 8 + 48 * number + 44] for number in range(min(count, 64))]
    return min(sizes, key=lambda size: abs(size - LETTERS_EM), default=None)


class _Block(NamedTuple):
    """Lines below one another, in pixels of the font: the size of all with margins, and the start of each; and the size
    in pixels of the picture."""

    size: tuple[int, int]
    places: tuple[tuple[int, int], ...]
    scaled: tuple[int, int]


def _laid_out(letters: Letters, font: _Font) -> _Block:
    lines = letters.text.split("\n")
    if len(lines) > MAX_LINES:
        raise PictureError(f"it has more than {MAX_LINES} lines")
    if len(letters.text) > MAX_LETTERS:
        raise PictureError(f"it has more than {MAX_LETTERS:,} letters")
    try:
        widths = [math.ceil(font.face.getlength(line)) for line in lines]
    except (RuntimeError, ValueError):  # of raqm, for characters that no text has
        raise PictureError("it has characters that cannot be drawn") from None
    width, height = max(1, *widths), sum(font.face.getmetrics())
    scale = LETTERS_EM / font.size
    margin = math.ceil(LETTERS_REACH / scale)
    if (width + 2 * margin) * scale > MAX_WIDTH:
        raise PictureError("its lines are too long", "break it by \\n")
    left = {"left": 0.0, "center": 0.5, "right": 1.0}[letters.align]
    places = (
        (margin + round(left * (width - each)), margin + height * n) for n, each in enumerate(widths)
    )
    size = width + 2 * margin, height * len(lines) + 2 * margin
    return _Block(size, tuple(places), (round(size[0] * scale), round(size[1] * scale)))


def _signed_distance(coverage: Floats) -> Floats:
    """The distance of each pixel's middle to the outline in pixels, negative inside, at most `LETTERS_REACH`.

    Pixels on the outline know their distance from their coverage (S. Gustavson and R. Strand, "Anti-aliased Euclidean
    distance transform", 2011). The others take the nearest point that a neighbour knows, by jump flooding (G. Rong and
    T.-S. Tan, 2006).
    """
    import numpy as np

    height, width = coverage.shape
    rows, columns = np.mgrid[0:height, 0:width].astype(np.float32)
    down, across = _gradient(coverage)
    is_edge = (coverage > 0) & (coverage < 1)
    for shift, axis in ((1, 0), (-1, 0), (1, 1), (-1, 1)):
        is_edge |= (coverage == 1) & (np.roll(coverage, shift, axis) == 0)
    far = np.float32(1e6)
    offset = _edge_offset(np.abs(across), np.abs(down), coverage)
    point_x = np.where(is_edge, columns + across * offset, far)
    point_y = np.where(is_edge, rows + down * offset, far)
    best = (point_x - columns) ** 2 + (point_y - rows) ** 2
    steps = [1 << power for power in reversed(range((LETTERS_REACH - 1).bit_length() + 1))]
    for step in (1, *steps, 1):  # more steps of 1, for the few that see no seed
        known_x, known_y = point_x, point_y
        for dy in (-step, 0, step):
            for dx in (-step, 0, step):
                if dx == dy == 0:
                    continue
                near_x, near_y = _moved(known_x, dy, dx, far), _moved(known_y, dy, dx, far)
                found = (near_x - columns) ** 2 + (near_y - rows) ** 2
                nearer = found < best
                best = np.where(nearer, found, best)
                point_x = np.where(nearer, near_x, point_x)
                point_y = np.where(nearer, near_y, point_y)
    distance = np.minimum(np.sqrt(best), LETTERS_REACH)
    signed: Floats = np.where(coverage > 0.5, -distance, distance)
    return signed


def _gradient(coverage: Floats) -> tuple[Floats, Floats]:
    """The direction in which the coverage grows, down and across, of length 1; 0 where it is even."""
    import numpy as np

    around = np.pad(coverage, 1)
    root = np.float32(np.sqrt(2))

    def slope(a: Floats) -> Floats:
        """Down."""
        found: Floats = a[:, :-2] + root * a[:, 1:-1] + a[:, 2:]
        grown: Floats = found[2:] - found[:-2]
        return grown

    down, across = slope(around), slope(around.T).T
    length: Floats = np.hypot(down, across)
    length[length == 0] = 1
    return down / length, across / length


def _edge_offset(across: Floats, down: Floats, coverage: Floats) -> Floats:
    """The distance of the outline from a pixel's centre along the gradient, if it is a straight line that covers this
    much of the pixel."""
    import numpy as np

    steep, flat = np.maximum(across, down), np.minimum(across, down)
    is_plain = flat < 1e-4
    safe = np.where(is_plain, np.float32(1), flat)
    corner = 0.5 * flat / np.where(steep == 0, 1, steep)
    low = 0.5 * (steep + flat) - np.sqrt(np.maximum(2 * steep * safe * coverage, 0))
    high = -0.5 * (steep + flat) + np.sqrt(np.maximum(2 * steep * safe * (1 - coverage), 0))
    middle = (0.5 - coverage) * steep
    found = np.where(coverage < corner, low, np.where(coverage > 1 - corner, high, middle))
    return np.where(is_plain, 0.5 - coverage, found).astype(np.float32)


def _moved(plane: Floats, dy: int, dx: int, fill: np.float32) -> Floats:
    """A plane in which each element is that of `dy` rows below and `dx` columns to the right."""
    import numpy as np

    moved = np.full_like(plane, fill)
    height, width = plane.shape
    if abs(dy) >= height or abs(dx) >= width:
        return moved
    to_rows, to_columns = slice(max(-dy, 0), height - max(dy, 0)), slice(max(-dx, 0), width - max(dx, 0))
    from_rows, from_columns = slice(max(dy, 0), height - max(-dy, 0)), slice(max(dx, 0), width - max(-dx, 0))
    moved[to_rows, to_columns] = plane[from_rows, from_columns]
    return moved
