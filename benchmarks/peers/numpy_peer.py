"""numpy by hand: tiles of rows that fit into the cache, in single precision, buffers used again; what varies with one
coordinate or the time alone is computed once a frame."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from benchmarks.beside.tools import versions
from benchmarks.peers.figures import (
    AXES, CLOUD_TURNS, FIRST_MULTIPLIER, FIRST_SHIFT, OCTAVES, PLASMA_ANGLES, SECOND_MULTIPLIER, SECOND_SHIFT, depth
)
from benchmarks.peers.peer import Picture, Prepared, blank

F, U = np.float32, np.uint32
Floats: TypeAlias = npt.NDArray[np.float32]
Bits: TypeAlias = npt.NDArray[np.uint32]

# Draws some rows of a frame.
Band: TypeAlias = Callable[[slice], None]

TILE = 64 * 1024


@dataclass(frozen=True)
class Grid:
    """Where the pixels are, and how they are shared: x [1, width] and y [height, 1], 0…1."""

    x: Floats
    y: Floats
    out: Picture
    rows: int
    free: list[list[Floats]] = field(default_factory=list)
    """Sets of buffers for one tile that no thread uses at the moment."""

    @property
    def tiles(self) -> list[slice]:
        return [slice(at, at + self.rows) for at in range(0, len(self.out), self.rows)]

    def buffers(self, count: int) -> list[Floats]:
        try:
            return self.free.pop()
        except IndexError:
            return [np.empty((self.rows, self.x.size), F) for _ in range(count)]


def grid(width: int, height: int) -> Grid:
    x = ((np.arange(width) + 0.5) / width).astype(F)[None, :]
    y = ((np.arange(height) + 0.5) / height).astype(F)[:, None]
    return Grid(x, y, blank(width, height), max(1, min(height, TILE // width)))


def stripes(grid: Grid) -> Callable[[float], Band]:
    green = (grid.y * F(255) + F(0.5)).astype(np.uint8)

    def frame(time: float) -> Band:
        red = (np.sin(grid.x * F(20 * math.pi) + F(time)) * F(127.5) + F(128)).astype(np.uint8)

        def band(rows: slice) -> None:
            out = grid.out[rows]
            out[..., 0], out[..., 1], out[..., 2] = red, green[rows], 51

        return band

    return frame


def plasma(grid: Grid) -> Callable[[float], Band]:
    x, y = grid.x, grid.y
    ten_x, ten_y = x * F(10), y * F(10)
    dx, dy = ((line - F(0.5)) ** 2 * F(400) for line in (x, y))

    def frame(time: float) -> Band:
        across, down = np.sin(ten_x + F(time)), np.sin(ten_y + F(1.3 * time))
        x_sum = ten_x + F(0.7 * time)

        def band(rows: slice) -> None:
            buffers = grid.buffers(2)
            v, a = (buffer[: len(y[rows])] for buffer in buffers)
            np.sin(np.add(x_sum, ten_y[rows], out=v), out=v)
            np.sqrt(np.add(dx, dy[rows], out=a), out=a)
            np.sin(np.subtract(a, F(2 * time), out=a), out=a)
            np.add(v, a, out=v)
            np.add(v, np.add(across, down[rows], out=a), out=v)
            np.multiply(v, F(math.pi), out=v)
            for channel, angle in enumerate(PLASMA_ANGLES):
                np.sin(np.add(v, F(angle), out=a), out=a)
                level(a, grid.out[rows], channel)
            grid.free.append(buffers)

        return band

    return frame


def clouds(grid: Grid) -> Callable[[float], Band]:
    lines = lattice(grid)

    def frame(time: float) -> Band:
        depths = depth(time)

        def band(rows: slice) -> None:
            buffers = grid.buffers(6)
            total, a, b, c, d, free = (buffer[: len(grid.y[rows])] for buffer in buffers)
            total.fill(0)
            for octave, (x, y), (low, high, w) in zip(OCTAVES, lines, depths, strict=True):
                for plane, z_part in ((a, U(low)), (b, U(high))):
                    for edge, y_part in ((plane, y[0][rows]), (c, y[1][rows])):
                        others = y_part ^ z_part
                        corner(x[0], others, edge, free)
                        corner(x[1], others, d, free)
                        blend(edge, d, x[2])
                    blend(plane, c, y[2][rows])
                blend(a, b, F(w))
                np.add(total, np.multiply(a, F(octave.weight), out=a), out=total)
            np.multiply(total, F(math.tau), out=total)
            for channel, turn in enumerate(CLOUD_TURNS):
                np.cos(np.add(total, F(math.tau * turn), out=a), out=a)
                level(a, grid.out[rows], channel)
            grid.free.append(buffers)

        return band

    return frame


def level(wave: Floats, out: Picture, channel: int) -> None:
    """Packs a sine: it stays in its range, so there is nothing to clamp."""
    np.add(np.multiply(wave, F(127.5), out=wave), F(128), out=wave)
    np.copyto(out[..., channel], wave, casting="unsafe")


def cell(at: Floats, axis: str) -> tuple[Bits, Bits, Floats]:
    """Along one axis: the parts of the hash of the lattice points below and above, and how much of that above is
    blended in."""
    below = np.floor(at)
    product = below.astype(np.int32).view(U) * U(AXES[axis].multiplier)
    low, high = (product + U(AXES[axis].offset(step)) for step in (0, 1))
    rest = at - below
    return low ^ (low >> U(FIRST_SHIFT)), high ^ (high >> U(FIRST_SHIFT)), rest * rest * (F(3) - F(2) * rest)


def lattice(grid: Grid) -> list[list[tuple[Bits, Bits, Floats]]]:
    """For each octave the cells along x and y."""
    return [
        [cell(line * F(octave.scale) + F(octave.shift), name) for name, line in (("x", grid.x), ("y", grid.y))]
        for octave in OCTAVES
    ]


def corner(x_part: Bits, others: Bits, out: Floats, free: Floats) -> None:
    """The random number of a lattice point, in units of 2⁻²⁴."""
    bits, mixed = free.view(U), out.view(U)
    np.multiply(np.bitwise_xor(x_part, others, out=bits), U(FIRST_MULTIPLIER), out=bits)
    np.bitwise_xor(bits, np.right_shift(bits, U(SECOND_SHIFT), out=mixed), out=bits)
    np.right_shift(np.multiply(bits, U(SECOND_MULTIPLIER), out=bits), U(8), out=bits)
    np.copyto(out, bits.view(np.int32), casting="unsafe")


def blend(a: Floats, b: Floats, t: Floats | np.float32) -> None:
    """Moves a towards b, and leaves b in use."""
    np.multiply(np.subtract(b, a, out=b), t, out=b)
    np.add(a, b, out=a)


FRAMES = {"v1": stripes, "v2": plasma, "v3": clouds}


@dataclass(frozen=True)
class NumpyPeer:
    name: str = "numpy"

    def available(self) -> str | None:
        return None

    def version(self) -> str:
        return versions("numpy")

    def prepare(self, kernel: str, width: int, height: int, threads: int) -> Prepared:
        made = grid(width, height)
        frame, tiles = FRAMES[kernel](made), made.tiles
        pool = ThreadPoolExecutor(threads) if threads > 1 else None

        def draw(time: float) -> None:
            for _ in (pool.map if pool else map)(frame(time), tiles):
                pass

        return Prepared(draw, lambda: made.out)


PEERS = (NumpyPeer(),)
