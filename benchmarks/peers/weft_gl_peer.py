"""weft itself on the graphics card: patches/bench, as a performance draws them without a window.

A frame is over when the picture is in a texture, as it is for the shader by hand. Python's share of a frame, and the
numbers that are computed by the processor, are measured with it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np

import weft
from benchmarks.beside.ways import PATCHES
from benchmarks.peers.peer import Picture, Prepared
from weft.backends.base import Env, PictureHandle
from weft.backends.gl.backend import GlVisual
from weft.backends.prologue import prologue_code
from weft.contexts import ContextTable
from weft.errors import Source
from weft.runtime.compiling.stages import Request, build
from weft.runtime.program.coordinator import ProgramRunner


@dataclass(frozen=True)
class WeftGlPeer:
    name: str = "weft-gl"

    def available(self) -> str | None:
        device = GlVisual.probe()[0]
        return None if device.available else f"{device.reason}: {device.remedy}"

    def version(self) -> str:
        device = GlVisual.probe()[0]
        return f"weft {weft.__version__}, {device.name}"

    def prepare(self, kernel: str, width: int, height: int, threads: int) -> Prepared:
        # What counts for Mesa's renderers on the CPU, as for the shader by hand.
        os.environ |= {"LP_NUM_THREADS": str(threads), "MESA_SHADER_CACHE_DISABLE": "true"}
        text = (PATCHES / f"{kernel}.weft").read_text(encoding="utf-8")
        contexts = ContextTable()
        made = build(Request(Source(f"{kernel}.weft", text), contexts, {"width": width, "height": height}))
        (unit,) = made.units
        # OpenGL may be missing.
        from weft.backends.gl.offscreen import offscreen

        graphics = offscreen()
        backend, runner = GlVisual(graphics), ProgramRunner(contexts)
        compiled = backend.compile_subgraph(unit, Env(width, height), runner)
        code = prologue_code(unit.kernel)  # as a performance has it after a moment
        if code is not None:
            backend.upgrade(compiled, code)
        shown: list[PictureHandle] = []

        def draw(time: float) -> None:
            with graphics.drawing():
                picture = backend.execute_subgraph(compiled, Env(width, height, abstime=time), runner)
                backend.sync()
            assert isinstance(picture, PictureHandle)
            shown[:] = [picture]

        def picture() -> Picture:
            return np.asarray(shown[0].read())

        return Prepared(draw, picture)


PEERS = (WeftGlPeer(),)
