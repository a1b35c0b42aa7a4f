"""Functions that shade vertices and pixels in Metal, run on the processor for the pixels of a viewport."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.support.metal.device import PLAIN, built

_ATTRIBUTE = re.compile(r"\s*\[\[\s*(.*?)\s*\]\]")
_SHADING = re.compile(r"\b(vertex|fragment)\s+(\w+)\s+(\w+)\s*\(([^{]*)\)\s*\{")

# What clang is to take for words of the language.
_WORDS = "#define vertex static\n#define fragment static\n"


class Shading:
    """The functions of a text."""

    def __init__(self, text: str, folder: Path) -> None:
        """`folder` has what `write_library` put there. Raises error."""
        self.kinds = {name: kind for kind, _, name, _ in _SHADING.findall(text)}
        self.structures = {name: made for _, made, name, _ in _SHADING.findall(text) if made != "float4"}
        """What functions for vertices give besides the position: a structure that begins with it."""
        library = folder / f"shading{abs(hash(text))}.so"
        made = "".join(_runner(*found) for found in _SHADING.findall(text))
        built([*PLAIN, "-shared", "-nostartfiles"], f"{_WORDS}{text}{made}", library, folder)
        self._code = ctypes.CDLL(str(library))

    def corners(self, name: str, count: int, buffers: Sequence[Any] = ()) -> npt.NDArray[np.float32]:
        """What a function for vertices gives, whose buffers are arrays: positions and, after these, what is to reach
        the pixels; [vertices, 4 or more]."""
        out = np.zeros((count, 8 if name in self.structures else 4), np.float32)
        getattr(self._code, f"run_{name}")(_addresses(buffers), count, ctypes.c_void_p(out.ctypes.data))
        return out

    def colours(
        self, name: str, pixels: npt.NDArray[np.float32], buffers: Sequence[Any]
    ) -> npt.NDArray[np.float32]:
        """The colours [pixels, 4] that a function for pixels, whose buffers are arrays, gives those with these
        positions in the frame, and what reaches them besides; [pixels, 4 or more]."""
        out = np.zeros((len(pixels), 4), np.float32)
        given = np.ascontiguousarray(pixels, np.float32)
        places = ctypes.c_void_p(given.ctypes.data), ctypes.c_void_p(out.ctypes.data)
        getattr(self._code, f"run_{name}")(_addresses(buffers), len(pixels), *places)
        return out


def covered(
    corners: npt.NDArray[np.float32], viewport: tuple[float, float, float, float], size: tuple[int, int]
) -> npt.NDArray[np.float32]:
    """The pixels of a frame (width, height) that triangles cover: their positions, and what reaches them from the
    corners [corners, 4 or more], with the perspective; [pixels, 4 or more]."""
    left, top, width, height = viewport
    found = [np.zeros((0, corners.shape[1]), np.float32)]
    for triangle in corners.astype(float).reshape(-1, 3, corners.shape[1]):
        w = triangle[:, 3]
        assert (w > 0).all(), "nothing is behind the eye"
        x = (triangle[:, 0] / w + 1) / 2 * width + left
        y = (1 - triangle[:, 1] / w) / 2 * height + top
        within = left, min(left + width, size[0]), top, min(top + height, size[1])
        columns = np.arange(*(int(np.clip(side, within[0], within[1])) for side in (x.min(), x.max() + 1)))
        rows = np.arange(*(int(np.clip(side, within[2], within[3])) for side in (y.min(), y.max() + 1)))
        px, py = (each.reshape(-1) + 0.5 for each in np.meshgrid(columns, rows))
        area = (x[1] - x[0]) * (y[2] - y[0]) - (x[2] - x[0]) * (y[1] - y[0])
        # What is on the edge between two triangles belongs to one of them.
        shares = np.stack([
            ((x[b] - px) * (y[c] - py) - (x[c] - px) * (y[b] - py)) / area for b, c in ((1, 2), (2, 0), (0, 1))
        ])  # fmt: skip
        edges = ((x[c] - x[b]) * np.sign(area) > 0 for b, c in ((1, 2), (2, 0), (0, 1)))
        inside = np.all([(each > 0) | ((each == 0) & own) for each, own in zip(shares, edges, strict=True)], axis=0)
        share = shares[:, inside] / w[:, np.newaxis]
        depth = share.sum(axis=0)
        rest = (share.T @ triangle[:, 4:]) / depth[:, np.newaxis]
        place = np.stack([px[inside], py[inside], np.zeros_like(depth), depth], axis=1)
        found.append(np.concatenate([place, rest], axis=1).astype(np.float32))
    return np.concatenate(found)


def _addresses(buffers: Sequence[Any]) -> Any:
    return (ctypes.c_void_p * len(buffers))(*(buffer.ctypes.data for buffer in buffers))


def _runner(kind: str, made: str, name: str, parameters: str) -> str:
    """The function `run_NAME` that calls one of them for all vertices, or for all pixels."""
    given = ", ".join(_argument(parameter) for parameter in parameters.split(","))
    read, begun = "", f"{made} c = {name}({given}); "
    if kind == "fragment":
        structure = re.search(r"(\w+) \w+ \[\[stage_in\]\]", parameters)
        read = f"{structure[1] if structure else 'float4'} at = *(decltype(at) *)in; in += sizeof at / 4; "
        given_in = "const float *in, "
    else:
        given_in = ""
    store = "__builtin_memcpy(out, &c, sizeof c); out += sizeof c / 4;"
    loop = f"for (uint id = 0; id < count; id++) {{ {read}{begun}{store} }}"
    return f'extern "C" void run_{name}(void **buffers, uint count, {given_in}float *out) {{ {loop} }}\n'


def _argument(parameter: str) -> str:
    """What is handed over for a parameter."""
    (attribute,) = _ATTRIBUTE.findall(parameter)
    declared = _ATTRIBUTE.sub("", parameter).strip()
    kind, _, name = declared.rpartition(" ")
    match attribute:
        case "vertex_id":
            return "id"
        case "position" | "stage_in":
            return "at"
        case _:
            at = attribute.removeprefix("buffer(").removesuffix(")")
            return f"*({kind} *)buffers[{at}]" if name.startswith("&") else f"({kind} *)buffers[{at}]"
