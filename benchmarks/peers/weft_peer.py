"""weft itself: patches/bench, in each of its ways."""

from __future__ import annotations

from dataclasses import dataclass

import weft
from benchmarks.beside.ways import PATCHES, way_name, ways
from benchmarks.peers.peer import Prepared, blank
from weft.backends.cpu import executor_problem
from weft.backends.launch import Launch, StateMemory, picture_coords
from weft.contexts import ContextTable
from weft.errors import Source
from weft.runtime.compiling.stages import Request, build
from weft.runtime.inspect.measure import ExecutorConfig


@dataclass(frozen=True)
class WeftPeer:
    way: ExecutorConfig

    @property
    def name(self) -> str:
        return way_name(self.way)

    def available(self) -> str | None:
        return executor_problem(self.way.executor)

    def version(self) -> str:
        return f"weft {weft.__version__}"

    def prepare(self, kernel: str, width: int, height: int, threads: int) -> Prepared:
        text = (PATCHES / f"{kernel}.weft").read_text(encoding="utf-8")
        made = build(Request(Source(f"{kernel}.weft", text), ContextTable(), {"width": width, "height": height}))
        (unit,) = made.units
        executor = self.way.loader()
        executable = executor.load(unit.kernel, {True: executor.translate(unit.kernel, True, self.way.tier)})
        memory = StateMemory(unit.kernel.slots, (height, width))
        out, centres = blank(width, height), picture_coords(width, height)

        def draw(time: float) -> None:
            launch = Launch((height, width), {**centres, "abstime": time}, threads=threads)
            executable.rgba8(memory, launch, out)

        return Prepared(draw, lambda: out)


PEERS = tuple(WeftPeer(way) for way in ways())
