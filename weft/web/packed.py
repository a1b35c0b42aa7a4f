"""What a page holds as bytes: deflated, in base64, as `packed.js` unpacks it."""

from __future__ import annotations

import base64
import zlib

import numpy as np
from numpy.typing import NDArray


def packed(data: bytes) -> str:
    """Bytes as a text of letters, digits, `+`, `/` and `=`."""
    return base64.b64encode(zlib.compress(data, 9)).decode()


def unpacked(text: str) -> bytes:
    """The bytes of a text that `packed` made."""
    return zlib.decompress(base64.b64decode(text))


def packed_rows(rows: NDArray[np.int64], width: int) -> str:
    """Whole numbers [count, columns] of `width` bytes, with a sign. Neighbours in smooth pictures and sounds hardly
    differ, so their second differences from row to row are small; the sign is folded into the lowest bit, and the
    lowest bytes of all come first."""
    wrapped = np.diff(rows, 2, axis=0, prepend=np.zeros((2, rows.shape[1]), np.int64)) & ((1 << 8 * width) - 1)
    signed = wrapped - ((wrapped >> (8 * width - 1)) << (8 * width))
    folded = (signed << 1) ^ (signed >> 63)
    return packed(b"".join((folded >> 8 * plane & 255).astype(np.uint8).tobytes() for plane in range(width)))
