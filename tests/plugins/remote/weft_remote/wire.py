"""What a message is between the two machines: a head in JSON, and arrays. It holds data alone, never code of Python."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Head = dict[str, Any]
Arrays = Mapping[str, npt.NDArray[Any]]

# The kinds of numbers that may come: bytes of pixels, reals in single and in double precision; little-endian.
_KINDS = ("|u1", "<f4", "<f8")


def pack(head: Head, arrays: Arrays | None = None) -> bytes:
    """A message: a line with the head, which ends with the name, kind and shape of each array; then the arrays."""
    plain = {name: np.ascontiguousarray(array) for name, array in (arrays or {}).items()}
    listed = [[name, array.dtype.str, array.shape] for name, array in plain.items()]
    line = json.dumps([head, listed]).encode("ascii") + b"\n"
    return b"".join([line, *(array.tobytes() for array in plain.values())])


def unpack(message: bytes) -> tuple[Head, dict[str, npt.NDArray[Any]]]:
    """The head and the arrays of a message. Raises ValueError for what is none."""
    line, _, data = message.partition(b"\n")
    head, listed = json.loads(line)
    arrays, start = {}, 0
    for name, kind, shape in listed:
        if kind not in _KINDS or any(length < 0 for length in shape):
            raise ValueError(f"{name} is no array: {kind} {shape}")
        count = math.prod(shape)
        arrays[name] = np.frombuffer(data, kind, count, start).reshape(shape)
        start += count * np.dtype(kind).itemsize
    return head, arrays
