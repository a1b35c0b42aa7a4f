"""Which settings of a tool are the fastest for a kernel."""

from __future__ import annotations

import time
from collections.abc import Iterable
from subprocess import TimeoutExpired
from typing import TypeVar

from benchmarks.sound_peers.peer import RATE, Peer, Prepared

P = TypeVar("P", bound=Peer)

_TURNS = 5


def fastest(peers: Iterable[P], kernel: str) -> P:
    """The one that takes least for a second of sound, at its best. Those whose compiler takes too long are left out;
    raises RuntimeError if that is all of them."""
    made: list[tuple[P, Prepared]] = []
    for peer in peers:
        try:
            made.append((peer, peer.prepare(kernel)))
        except TimeoutExpired:
            continue
    if not made:
        raise RuntimeError("its compiler takes too long")
    times = [min(column) for column in zip(*([_second(each) for _, each in made] for _ in range(_TURNS)), strict=True)]
    return made[times.index(min(times))][0]


def _second(prepared: Prepared) -> float:
    before = time.perf_counter()
    prepared.play(RATE)
    return time.perf_counter() - before
