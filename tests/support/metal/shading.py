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
_SHADING = re.compile(r"\b(vertex|fragment)\s+float4\s+(\w+)\s*\(([^{]*)\)\s*\{")

# What clang is to take for words of the language.
_WORDS = "#define vertex static\n#define fragment static\n"


class Shading:
    """The functions of a text."""

    def __init__(self, text: str, folder: Path) -> None:
        """`folder` has what `write_library` put there. Raises error."""
        self.kinds = {name: kind for kind, name, _ in _SHADING.findall(text)}
        library = folder / f"shading{abs(hash(text))}.so"
        made = "".join(_runner(*found) for found in _SHADING.findall(text))
        built([*PLAIN, "-shared", "-nostartfiles"], f"{_WORDS}{text}{made}", library, folder)
        self._code = ctypes.CDLL(str(library))

    def corners(self, name: str, count: int) -> npt.NDArray[np.float32]:
        """The positions that a function for vertices gives: [vertices, 4]."""
        out = np.zeros((count, 4), np.float32)
        getattr(self._code, f"run_{name}")(count, ctypes.c_void_p(out.ctypes.data))
        return out

    def colours(
        self, name: str, viewport: tuple[int, int, int, int], buffers: Sequence[Any]
    ) -> npt.NDArray[np.float32]:
        """The colours [height, width, 4] that a function for pixels gives those of a viewport (left, top, width,
        height), whose buffers are arrays."""
        left, top, width, height = viewport
        out = np.zeros((height, width, 4), np.float32)
        given = (ctypes.c_void_p * len(buffers))(*(buffer.ctypes.data for buffer in buffers))
        getattr(self._code, f"run_{name}")(given, left, top, width, height, ctypes.c_void_p(out.ctypes.data))
        return out


def _runner(kind: str, name: str, parameters: str) -> str:
    """The function `run_NAME` that calls one of them for all vertices, or for all pixels."""
    given = ", ".join(_argument(parameter) for parameter in parameters.split(","))
    store = f"float4 c = {name}({given}); *out++ = c.x; *out++ = c.y; *out++ = c.z; *out++ = c.w;"
    if kind == "vertex":
        loop = f"for (uint id = 0; id < count; id++) {{ {store} }}"
        return f'extern "C" void run_{name}(int count, float *out) {{ {loop} }}\n'
    return (
        f'extern "C" void run_{name}(void **buffers, int left, int top, int width, int height, float *out) {{\n'
        "for (int y = top; y < top + height; y++) for (int x = left; x < left + width; x++) "
        f"{{ float4 at = float4(x + 0.5f, y + 0.5f, 0.0f, 1.0f); {store} }}\n}}\n"
    )


def _argument(parameter: str) -> str:
    """What is handed over for a parameter."""
    (attribute,) = _ATTRIBUTE.findall(parameter)
    declared = _ATTRIBUTE.sub("", parameter).strip()
    kind, _, name = declared.rpartition(" ")
    match attribute:
        case "vertex_id":
            return "id"
        case "position":
            return "at"
        case _:
            at = attribute.removeprefix("buffer(").removesuffix(")")
            return f"*({kind} *)buffers[{at}]" if name.startswith("&") else f"({kind} *)buffers[{at}]"
