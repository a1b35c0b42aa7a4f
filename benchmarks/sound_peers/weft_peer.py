"""weft itself: patches/bench, in each of its ways."""

from __future__ import annotations

from dataclasses import dataclass

import weft
from benchmarks.beside.ways import PATCHES, way_name, ways
from benchmarks.sound_peers.peer import RATE, Prepared, Samples
from benchmarks.sound_peers.reference import TOLERANCE
from weft.backends.base import SampleBlock
from weft.backends.cpu import executor_problem
from weft.backends.launch import Launch, StateMemory
from weft.contexts import ContextTable
from weft.errors import Source
from weft.runtime.compiling.stages import Request, build
from weft.runtime.inspect.measure import ExecutorConfig


@dataclass(frozen=True)
class WeftPeer:
    way: ExecutorConfig
    tolerance: float = TOLERANCE
    drifts: bool = False

    @property
    def name(self) -> str:
        return way_name(self.way)

    def available(self) -> str | None:
        return executor_problem(self.way.executor)

    def version(self) -> str:
        return f"weft {weft.__version__}"

    def tuned(self, kernel: str) -> WeftPeer:
        return self

    def prepare(self, kernel: str) -> Prepared:
        text = (PATCHES / f"{kernel}.weft").read_text(encoding="utf-8")
        (unit,) = build(Request(Source(f"{kernel}.weft", text), ContextTable())).units
        executor = self.way.loader()
        executable = executor.load(unit.kernel, {False: executor.translate(unit.kernel, False, self.way.tier)})
        memory = StateMemory(unit.kernel.slots)
        played, heard = 0, None

        def play(count: int) -> None:
            nonlocal played, heard
            block = SampleBlock(played, count, RATE)
            heard = executable.planes(memory, Launch((1, count), block.coords(unit.kernel), even=block.even))
            played += count

        def samples() -> Samples:
            assert heard is not None, "nothing was played"
            return heard[:, 0, :]

        return Prepared(play, samples)


PEERS = tuple(WeftPeer(way) for way in ways())
