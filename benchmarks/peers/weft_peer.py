"""weft itself: patches/bench through each executor of the CPU but the reference machine, which is not meant for
pictures of this size; machine code at each tier."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import weft
from benchmarks.peers.peer import Prepared, blank
from weft.backends.cpu import EXECUTORS, executor_problem
from weft.backends.launch import Launch, picture_coords
from weft.backends.memory import StateMemory
from weft.codegen.native.target import TIERS
from weft.contexts import ContextTable
from weft.errors import Source
from weft.runtime.build import build
from weft.runtime.measure import Way

PATCHES = Path(__file__).parents[2] / "patches" / "bench"


@dataclass(frozen=True)
class WeftPeer:
    way: Way

    @property
    def name(self) -> str:
        return f"weft-{self.way.executor}" + (f"-{self.way.tier}" if self.way.is_native else "")

    def available(self) -> str | None:
        return executor_problem(self.way.executor)

    def version(self) -> str:
        return f"weft {weft.__version__}"

    def prepare(self, kernel: str, width: int, height: int, threads: int) -> Prepared:
        text = (PATCHES / f"{kernel}.weft").read_text(encoding="utf-8")
        made = build(Source(f"{kernel}.weft", text), ContextTable(), {"width": width, "height": height})
        (unit,) = made.units
        executor = self.way.loader()
        executable = executor.load(unit.kernel, {True: executor.translate(unit.kernel, True, self.way.tier)})
        memory = StateMemory(unit.kernel.slots, (height, width))
        out, centres = blank(width, height), picture_coords(width, height)

        def draw(time: float) -> None:
            launch = Launch((height, width), {**centres, "abstime": time}, threads=threads)
            executable.rgba8(memory, launch, out)

        return Prepared(draw, lambda: out)


def _ways() -> list[Way]:
    names = [name for name in EXECUTORS if name != "vm"]
    return [Way(name, tier=tier) for name in names for tier in (TIERS if Way(name).is_native else [1])]


PEERS = tuple(WeftPeer(way) for way in _ways())
