"""weft itself by CUDA, as a performance draws without a window.

A frame is over when its picture is in the card's memory, as it is for the kernel by hand. Python's share of a frame is
measured with it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import weft
from benchmarks.beside.ways import PATCHES
from benchmarks.peers.peer import Picture, Prepared
from weft.backends.base import Env, PictureHandle
from weft.backends.cuda.backend import CudaVisual
from weft.backends.prologue import prologue_code
from weft.contexts import ContextTable
from weft.errors import Source
from weft.runtime.compiling.stages import Request, build
from weft.runtime.program.coordinator import ProgramRunner


@dataclass(frozen=True)
class WeftCudaPeer:
    name: str = "weft-cuda"

    def available(self) -> str | None:
        device = CudaVisual.probe()[0]
        return None if device.available else f"{device.reason}: {device.remedy}"

    def version(self) -> str:
        return f"weft {weft.__version__}, {CudaVisual.probe()[0].name}"

    def prepare(self, kernel: str, width: int, height: int, threads: int) -> Prepared:
        text = (PATCHES / f"{kernel}.weft").read_text(encoding="utf-8")
        contexts = ContextTable()
        made = build(Request(Source(f"{kernel}.weft", text), contexts, {"width": width, "height": height}))
        (unit,) = made.units
        backend, runner = CudaVisual(), ProgramRunner(contexts)
        compiled = backend.compile_subgraph(unit, Env(width, height), runner)
        code = prologue_code(unit.kernel)  # as a performance has it after a moment
        if code is not None:
            backend.upgrade(compiled, code)
        shown: list[PictureHandle] = []

        def draw(time: float) -> None:
            picture = backend.execute_subgraph(compiled, Env(width, height, abstime=time), runner)
            assert isinstance(picture, PictureHandle)
            shown[:] = [picture]
            backend.sync()

        def picture() -> Picture:
            return np.asarray(shown[0].read())

        return Prepared(draw, picture)


PEERS = (WeftCudaPeer(),)
