"""numexpr, whose own threads share an expression; numpy prepares what varies with one coordinate alone.

Tiles of rows, so that what lies between two expressions stays in the cache. There are no unsigned numbers: a shift to
the right needs a mask. Conversions are left to `out`, since mixing whole numbers with reals would be computed in double
precision.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.beside.tools import missing, versions
from benchmarks.peers.figures import (
    CLOUD_TURNS, FIRST_MULTIPLIER, OCTAVES, PLASMA_ANGLES, SECOND_MULTIPLIER, SECOND_SHIFT, depth
)
from benchmarks.peers.numpy_peer import Band, Grid, grid, lattice
from benchmarks.peers.peer import Prepared

F = np.float32
LEVEL = "half + span * "
CORNER = "(((x ^ q) * first ^ ((((x ^ q) * first) >> shift) & mask)) * second >> eight) & top"
BLEND = "(a + (b - a) * u) * (one - v) + (c + (d - c) * u) * v"


def real(**values: float) -> dict[str, np.float32]:
    return {name: F(value) for name, value in values.items()}


def whole(**values: int) -> dict[str, np.int32]:
    return {name: np.uint32(value).view(np.int32) for name, value in values.items()}


CONSTANTS: dict[str, Any] = {
    **real(half=128, span=127.5, one=1),
    **whole(first=FIRST_MULTIPLIER, second=SECOND_MULTIPLIER, shift=SECOND_SHIFT, mask=(1 << 32 - SECOND_SHIFT) - 1),
    **whole(eight=8, top=(1 << 24) - 1),
}


def evaluate(expression: str, out: Any, **values: Any) -> None:
    import numexpr

    numexpr.evaluate(expression, {**CONSTANTS, **values}, {}, out=out, casting="unsafe")


def stripes(grid: Grid) -> Callable[[float], Band]:
    x, green = grid.x * F(20 * math.pi), (grid.y * F(255) + F(0.5)).astype(np.uint8)
    red = np.empty_like(x, np.uint8)

    def frame(time: float) -> Band:
        evaluate(LEVEL + "sin(x + t)", red, x=x, t=F(time))

        def band(rows: slice) -> None:
            out = grid.out[rows]
            out[..., 0], out[..., 1], out[..., 2] = red, green[rows], 51

        return band

    return frame


def plasma(grid: Grid) -> Callable[[float], Band]:
    x, y = grid.x * F(10), grid.y * F(10)
    dx, dy = ((line - F(0.5)) ** 2 * F(400) for line in (grid.x, grid.y))

    def frame(time: float) -> Band:
        across, down = np.sin(x + F(time)), np.sin(y + F(1.3 * time))
        at = real(at_sum=0.7 * time, at_d=2 * time, pi=math.pi)

        def band(rows: slice) -> None:
            (v,) = buffers = grid.buffers(1)
            v = v[: len(y[rows])]
            waves = "pi * (across + down + sin(x + y + at_sum) + sin(sqrt(dx + dy) - at_d))"
            evaluate(waves, v, across=across, down=down[rows], x=x, y=y[rows], dx=dx, dy=dy[rows], **at)
            for channel, angle in enumerate(PLASMA_ANGLES):
                evaluate(LEVEL + "sin(v + angle)", grid.out[rows][..., channel], v=v, angle=F(angle))
            grid.free.append(buffers)

        return band

    return frame


def clouds(grid: Grid) -> Callable[[float], Band]:
    lines = lattice(grid)

    def frame(time: float) -> Band:
        depths = depth(time)

        def band(rows: slice) -> None:
            buffers = grid.buffers(7)
            total, low, high, *corners = (buffer[: len(grid.y[rows])] for buffer in buffers)
            total.fill(0)
            for octave, (x, y), (*z, w) in zip(OCTAVES, lines, depths, strict=True):
                for plane, z_part in zip((low, high), z, strict=True):
                    points = [(y_part[rows] ^ np.uint32(z_part), x_part) for y_part in y[:2] for x_part in x[:2]]
                    for out, (q, x_part) in zip(corners, points, strict=True):
                        evaluate(CORNER, out, x=x_part.view(np.int32), q=q.view(np.int32))
                    evaluate(BLEND, plane, **dict(zip("abcd", corners, strict=True)), u=x[2], v=y[2][rows])
                mixed = "total + weight * (low + (high - low) * w)"
                evaluate(mixed, total, total=total, low=low, high=high, **real(w=w, weight=octave.weight))
            for channel, turn in enumerate(CLOUD_TURNS):
                at = real(tau=math.tau, angle=math.tau * turn)
                evaluate(LEVEL + "cos(tau * total + angle)", grid.out[rows][..., channel], total=total, **at)
            grid.free.append(buffers)

        return band

    return frame


FRAMES = {"v1": stripes, "v2": plasma, "v3": clouds}


@dataclass(frozen=True)
class NumexprPeer:
    name: str = "numexpr"

    def available(self) -> str | None:
        return missing("numexpr")

    def version(self) -> str:
        import numexpr

        return versions("numexpr") + (" with" if numexpr.use_vml else " without") + " VML"

    def prepare(self, kernel: str, width: int, height: int, threads: int) -> Prepared:
        import numexpr

        numexpr.set_num_threads(threads)
        made = grid(width, height)
        frame, tiles = FRAMES[kernel](made), made.tiles

        def draw(time: float) -> None:
            band = frame(time)
            for rows in tiles:
                band(rows)

        return Prepared(draw, lambda: made.out)


PEERS = (NumexprPeer(),)
