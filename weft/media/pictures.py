"""Pictures from files: png, jpg, gif (its first frame), webp and bmp.

Only this module and `lettering` import Pillow.
"""

from __future__ import annotations

import io
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image, UnidentifiedImageError
from PIL.PngImagePlugin import PngInfo

from weft.disk import replacing
from weft.media.source import PictureError, open_media
from weft.sources import HIDDEN, PictureLevels

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_PIXELS = 8192 * 8192
"""The most pixels that a picture may have; as numbers for a patch, they fill a gigabyte."""

_FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP")
_EXIF_ORIENTATION = 0x0112
# The operation that sets a picture upright, by its EXIF orientation; the last four exchange width and height.
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}

# Of a JPEG, in percent.
_QUALITY = 60


@dataclass(frozen=True, slots=True)
class PictureInfo:
    """The header of a picture: its size in pixels as it is shown, its format, such as "png",
    whether its pixels have an alpha, and how many frames it has."""

    width: int
    height: int
    format: str
    has_alpha: bool = False
    frames: int = 1


def probe_picture(path: Path) -> PictureInfo:
    """Reads the header of a picture, and decodes nothing. (For webp, Pillow reads the whole file.)

    Raises `PictureError`. Any thread may call it.
    """
    with _opened(path) as image:
        width, height = image.size
        if _orientation(image) >= 5:
            width, height = height, width
        # Pillow calls a jpg file with several pictures MPO; its first picture is a plain jpg.
        name = "JPEG" if image.format == "MPO" else str(image.format)
        return PictureInfo(width, height, name.lower(), _has_alpha(image), _frames(image, name))


def load_picture(path: Path) -> NDArray[np.float32]:
    """The picture as [height, width, RGBA], row 0 on top, each 0…1; turned as its EXIF says. If it has an alpha,
    colours are multiplied by that, and by no less than `HIDDEN`.

    Raises `PictureError`. Any thread may call it; it takes about 20 bytes of memory a pixel while it works.
    """
    import numpy as np  # not needed for a probe

    with _opened(path) as image:
        image.load()
        turn = _TURNS.get(_orientation(image))
        upright = image if turn is None else image.transpose(turn)
        pixels: NDArray[np.float32]
        if upright.mode.startswith("I"):
            # Gray values of 16 bits, which Pillow would clip at 255.
            gray = np.asarray(upright)
            pixels = np.ones((*gray.shape, 4), np.float32)
            pixels[..., :3] = np.clip(gray[..., np.newaxis] / np.float32(65535), 0, 1)
        else:
            pixels = np.divide(np.asarray(upright.convert("RGBA")), np.float32(255), dtype=np.float32)
            if _has_alpha(image):
                pixels[..., :3] *= np.maximum(pixels[..., 3:], np.float32(HIDDEN))
        return pixels


def load_levels(path: Path) -> NDArray[np.float32]:
    """The smaller levels of a picture, as `PictureLevels` has them. Means are taken channel by channel.

    Raises `PictureError`. Any thread may call it.
    """
    import numpy as np

    pixels = load_picture(path)
    levels = PictureLevels(pixels.shape[1], pixels.shape[0])
    (width, height), (whole_width, whole_height) = levels.together, levels.whole
    found = np.zeros((height, width, 4), np.float32)
    level = np.pad(pixels, ((0, whole_height - levels.height), (0, whole_width - levels.width), (0, 0)), "edge")
    for number in range(1, levels.count + 1):
        level = level.reshape(level.shape[0] // 2, 2, level.shape[1] // 2, 2, 4).mean((1, 3))
        bordered = np.pad(level, ((1, 1), (1, 1), (0, 0)), "edge")
        top = levels.top(number) - 1
        found[top : top + bordered.shape[0], : bordered.shape[1]] = bordered
    return found


def _frames(image: Image.Image, name: str) -> int:
    """The number of frames of a moving picture. The pictures in a jpg do not count."""
    return getattr(image, "n_frames", 1) if name in ("PNG", "GIF", "WEBP") else 1


def _has_alpha(image: Image.Image) -> bool:
    return image.has_transparency_data


def _orientation(image: Image.Image) -> int:
    """The EXIF orientation, 1 to 8, if it is known without further decoding; otherwise 1."""
    exif = Image.Exif()
    try:
        exif.load(image.info.get("exif") or b"")
        found = int(exif.get(_EXIF_ORIENTATION, 1))
    except Exception:  # damaged metadata must not keep the picture from being shown
        return 1
    return found if found in _TURNS else 1


@contextmanager
def _opened(path: Path) -> Iterator[Image.Image]:
    """The picture, opened by Pillow, with its size checked. Any failure in the block becomes a `PictureError`."""
    try:
        with open_media(path) as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow's, about large pictures and damaged metadata
            with Image.open(file, formats=_FORMATS) as image:
                if image.width * image.height > MAX_PIXELS:
                    raise PictureError(f"it has {image.width} × {image.height} pixels", _LIMIT)
                yield image
    except PictureError:
        raise
    except UnidentifiedImageError:
        raise PictureError("it is not a picture, or a damaged one", _READABLE) from None
    except Image.DecompressionBombError:  # Pillow's own limit, twice as high as ours
        raise PictureError(f"it has more than {MAX_PIXELS:,} pixels", _LIMIT) from None
    except MemoryError:
        raise PictureError("there is not enough memory for it", "make the picture smaller") from None
    except Exception as problem:  # decoders raise all kinds of errors for damage, even KeyError and SyntaxError
        raise PictureError(f"it is damaged or incomplete ({problem})") from problem


def load_bytes(path: Path, size: tuple[int, int]) -> NDArray[np.uint8]:
    """A picture in bytes [height, width, RGBA], turned as its EXIF says, in a width and height. Raises
    PictureError. Any thread may call it."""
    import numpy as np

    with _opened(path) as image:
        turn = _TURNS.get(_orientation(image))
        upright = image.convert("RGBA") if turn is None else image.transpose(turn).convert("RGBA")
        return np.asarray(upright if upright.size == size else upright.resize(size))


def open_animation(path: Path, size: tuple[int, int]) -> Callable[[int], NDArray[np.uint8]]:
    """A picture of several frames: a function that decodes one by its number, [height, width, RGBA] in a width and
    height. Those that follow each other are decoded fastest. The file stays open. Raises PictureError, and so does the
    function."""
    import numpy as np

    context = _opened(path)
    image = context.__enter__()

    def frame(number: int) -> NDArray[np.uint8]:
        try:
            image.seek(number)
            found = image.convert("RGBA")
            return np.asarray(found if found.size == size else found.resize(size))
        except Exception as problem:  # decoders raise all kinds of errors for damage
            raise PictureError(f"it is damaged or incomplete ({problem})") from problem

    weakref.finalize(frame, context.__exit__, None, None, None)
    return frame


_READABLE = "weft reads png, jpg, gif, webp and bmp"
_LIMIT = f"at most {MAX_PIXELS:,} pixels are read (8192 × 8192)"


# The key of the PNG text with the origin of a picture.
_ORIGIN = "weft"


def origin_of(path: Path) -> str | None:
    """The origin of a picture, as `save_picture` noted it. Raises `PictureError`."""
    with _opened(path) as image:
        found = image.info.get(_ORIGIN)
        return found if isinstance(found, str) else None


def save_picture(path: Path, pixels: NDArray[np.uint8], origin: str | None = None, token: str = "") -> None:
    """Writes pixels [height, width, RGBA] as a PNG, whole or not at all, with a note of its origin; `token` is that of
    `replacing`. Raises OSError if it cannot be written."""
    notes = PngInfo()
    if origin is not None:
        notes.add_text(_ORIGIN, origin)
    with replacing(path, token) as partial:
        Image.fromarray(pixels).save(partial, format="PNG", pnginfo=notes)


def reduced_picture(pixels: NDArray[np.uint8], width: int, form: str) -> tuple[bytes, tuple[int, int]]:
    """Pixels [height, width, RGBA] over black, no wider than `width`, as a file of the form PNG or JPEG; and its
    size."""
    whole = Image.fromarray(pixels)
    picture = Image.alpha_composite(Image.new("RGBA", whole.size, "black"), whole).convert("RGB")
    columns = min(width, picture.width)
    size = columns, max(1, round(columns * picture.height / picture.width))
    data = io.BytesIO()
    options = {"optimize": True} if form == "PNG" else {"quality": _QUALITY}
    picture.resize(size, Image.Resampling.LANCZOS).save(data, form, **options)
    return data.getvalue(), size


def as_jpeg(pixels: NDArray[np.uint8], quality: int = 90) -> bytes:
    """Pixels [height, width, RGBA] as a JPEG of their colours, fast. They are next to each other in memory."""
    height, width = pixels.shape[:2]
    picture = Image.frombuffer("RGBX", (width, height), pixels, "raw", "RGBX", 0, 1)
    data = io.BytesIO()
    picture.save(data, "JPEG", quality=quality)
    return data.getvalue()


def as_png(pixels: NDArray[np.uint8]) -> bytes:
    """Pixels [height, width, RGBA] as a PNG, exactly."""
    data = io.BytesIO()
    Image.fromarray(pixels).save(data, "PNG", compress_level=1)
    return data.getvalue()
