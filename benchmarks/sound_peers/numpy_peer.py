"""numpy by hand, block by block: all sines of a block in one call, in double precision; sums, and the filter within a
block, are products with a matrix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from benchmarks.beside.tools import versions
from benchmarks.sound_peers.peer import BLOCK, RATE, Prepared, room
from benchmarks.sound_peers.reference import TOLERANCE

Floats: TypeAlias = npt.NDArray[Any]

# Computes the samples at some times.
Block: TypeAlias = Callable[[Floats], Floats]


def partials() -> Block:
    i = np.arange(64)[:, None]
    tones, levels = 2 * np.pi * 55 * (i + 1), 2 * np.pi * (0.1 + 0.013 * i)
    pan, gain = (i % 8) / 7, 0.1 / (i + 1)
    mix = np.hstack([(1 - pan) * gain, pan * gain]).T.copy()
    a, b = np.empty((2, 64, BLOCK))

    def block(t: Floats) -> Floats:
        tone, level = a[:, : t.size], b[:, : t.size]
        np.sin(np.multiply(tones, t, out=tone), out=tone)
        np.sin(np.add(np.multiply(levels, t, out=level), i, out=level), out=level)
        np.add(np.multiply(level, 0.5, out=level), 0.5, out=level)
        mixed: Floats = mix @ np.multiply(tone, level, out=tone)
        return mixed

    return block


def bent() -> Block:
    ago = np.arange(BLOCK)[:, None] - np.arange(BLOCK)
    filtered = np.where(ago >= 0, 0.1 * 0.9 ** np.maximum(ago, 0), 0.0)
    left_over = 0.9 ** (np.arange(BLOCK) + 1)
    before = 0.0

    def block(t: Floats) -> Floats:
        nonlocal before
        tone = np.sin(t * (2 * np.pi * 220) + 3 * np.sin(t * (2 * np.pi * 110)))
        soft: Floats = filtered[: t.size, : t.size] @ tone + left_over[: t.size] * before
        before = soft[-1]
        return soft

    return block


def sines() -> Block:
    speeds = 2 * np.pi * 100 * 1.01 ** np.arange(200)[:, None]
    a = np.empty((200, BLOCK))

    def block(t: Floats) -> Floats:
        each = a[:, : t.size]
        total: Floats = np.sin(np.multiply(speeds, t, out=each), out=each).sum(axis=0)
        return total / 200

    return block


BLOCKS = {"a1": partials, "a2": bent, "a3": sines}


@dataclass(frozen=True)
class NumpyPeer:
    name: str = "numpy"
    tolerance: float = TOLERANCE
    drifts: bool = False

    def available(self) -> str | None:
        return None

    def version(self) -> str:
        return versions("numpy")

    def tuned(self, kernel: str) -> NumpyPeer:
        return self

    def prepare(self, kernel: str) -> Prepared:
        block, out = BLOCKS[kernel](), room(kernel)
        played = 0

        def play(count: int) -> None:
            nonlocal played
            for start in range(0, count, BLOCK):
                end = min(start + BLOCK, count)
                out.samples[:, start:end] = block(np.arange(played + start, played + end) / RATE)
            out.count = count
            played += count

        return Prepared(play, out.heard)


PEERS = (NumpyPeer(),)
