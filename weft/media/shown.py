"""How a decoded frame of a film is shown: with square pixels, turned and flipped as its display matrix says, its tones
those of an ordinary screen, and its colours multiplied by its alpha."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from weft.media.frames import Pixels

MAX_PIXELS = 3840 * 2160
"""The most pixels of a frame; larger ones are made smaller."""

_UNSPECIFIED = 2  # the colours of a frame, by ITU-T H.273
_PQ, _HLG = 16, 18  # transfer characteristics, by the same
_TRANSFERS = {_PQ: "PQ", _HLG: "HLG"}


def size_of(frame: Any, stream: Any) -> tuple[int, int]:
    """Width and height of a film as it is shown."""
    width, height = _unturned(frame, stream)
    return (height, width) if _turn_of(frame).is_transposed else (width, height)


def has_alpha(frame: Any) -> bool:
    """Whether the pixels of a frame have an alpha."""
    return any(component.is_alpha for component in frame.format.components)


def rgba(frame: Any, stream: Any) -> Pixels:
    """The pixels of a frame as it is shown, [height, width, 4]. Colours are multiplied by their alpha."""
    from av.video.reformatter import Colorspace

    width, height = _unturned(frame, stream)
    # If a film does not say how its colours are coded, those of large films are coded as in HDTV.
    guessed = Colorspace.ITU709 if frame.height >= 720 else Colorspace.ITU601
    unknown = frame.colorspace == _UNSPECIFIED
    made = frame.reformat(width, height, "rgba", src_colorspace=guessed if unknown else None)
    plane = made.planes[0]
    rows = np.frombuffer(plane, np.uint8).reshape(-1, plane.line_size)
    pixels: Pixels = rows[:height, : width * 4].reshape(height, width, 4)
    if frame.color_trc in _TRANSFERS:
        pixels = np.concatenate([tone_curve(frame.color_trc)[pixels[..., :3]], pixels[..., 3:]], axis=2)
    if has_alpha(frame):
        pixels = weighted(pixels)
    turn = _turn_of(frame)
    turned = pixels.swapaxes(0, 1) if turn.is_transposed else pixels
    return turned[:: -1 if turn.flips_down else 1, :: -1 if turn.flips_across else 1]


def _unturned(frame: Any, stream: Any) -> tuple[int, int]:
    """The size of a frame with square pixels, before it is turned."""
    aspect = stream.sample_aspect_ratio or 1
    return fitted(frame.width * float(aspect), float(frame.height))


def fitted(width: float, height: float) -> tuple[int, int]:
    """The size in which pictures of a film are shown, by their own."""
    scale = min(1.0, (MAX_PIXELS / (width * height)) ** 0.5)
    return max(1, round(width * scale)), max(1, round(height * scale))


def weighted(pixels: Pixels) -> Pixels:
    """Pixels with their colours multiplied by their alpha."""
    alpha = pixels[..., 3:].astype(np.uint16)
    colours = (pixels[..., :3] * alpha + 127) // 255
    return np.concatenate([colours.astype(np.uint8), pixels[..., 3:]], axis=2)


class _Turn(NamedTuple):
    """How rows and columns are exchanged, and flipped after that."""

    is_transposed: bool = False
    flips_across: bool = False
    flips_down: bool = False


def _turn_of(frame: Any) -> _Turn:
    """The display matrix of a frame, as the nearest of the eight that keep its edges straight."""
    from av.sidedata.sidedata import Type

    found = frame.side_data.get(Type.DISPLAYMATRIX)
    if found is None:
        return _Turn()
    # It takes (x, y), y downwards, to (a x + c y, b x + d y).
    a, b, _, c, d = np.frombuffer(found, np.int32)[:5].astype(np.float64)
    if abs(a) + abs(d) >= abs(b) + abs(c):
        return _Turn(False, a < 0, d < 0)
    return _Turn(True, c < 0, b < 0)


# --- high dynamic range ---

# The light of white paper in nits, by ITU-R BT.2408, and the brightest light that is shown.
_WHITE, _PEAK = 203.0, 1000.0
# Up to this share of white, tones do not change.
_KNEE = 0.75
# The gamma of an ordinary screen, by ITU-R BT.1886.
_SCREEN = 2.4

_Light = NDArray[np.float64]


def _pq_light(code: _Light) -> _Light:
    """The light of codes 0…1 in nits (SMPTE ST 2084)."""
    m1, m2, c1, c2, c3 = 1305 / 8192, 2523 / 32, 107 / 128, 2413 / 128, 2392 / 128
    root = code ** (1 / m2)
    found: _Light = 10_000 * (np.maximum(root - c1, 0) / (c2 - c3 * root)) ** (1 / m1)
    return found


def _hlg_light(code: _Light) -> _Light:
    """The light of codes 0…1 in nits, of gray on a screen of 1000 nits (ITU-R BT.2100, table 5)."""
    a, b, c = 0.17883277, 0.28466892, 0.55991073
    scene: _Light = np.where(code <= 0.5, code**2 / 3, (np.exp((code - c) / a) + b) / 12)
    return _PEAK * scene**1.2


_LIGHTS: dict[int, Callable[[_Light], _Light]] = {_PQ: _pq_light, _HLG: _hlg_light}


@cache
def tone_curve(transfer: int) -> NDArray[np.uint8]:
    """For each code of a channel of high dynamic range, 0…255, the code with which an ordinary screen shows it. Up to ¾
    of white, the light is the same. Brighter light is compressed into the rest, without a kink."""
    light = np.minimum(_LIGHTS[transfer](np.arange(256) / 255), _PEAK) / _WHITE
    most = _PEAK / _WHITE
    far = np.clip((light - _KNEE) / (most - _KNEE), 0, 1)
    pressed = 1 - (1 - _KNEE) * (1 - far) ** ((most - _KNEE) / (1 - _KNEE))
    shown = np.where(light < _KNEE, light, pressed) ** (1 / _SCREEN)
    return np.round(255 * shown).astype(np.uint8)
