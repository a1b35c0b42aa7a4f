"""The vector machine, playing the patches of patches/bench, against the same formulas written by hand in numpy: tiles
of rows, single precision, buffers used again, whatever varies with one coordinate or the time alone computed once.

    python -m benchmarks.vector_vm [--size 1280x720] [--rounds 15]

Both are measured in turns, so that only their ratio counts: how many times as fast as by hand the machine is.
"""

from __future__ import annotations

import argparse
import itertools
import math
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from weft.backends.executors import BandPool
from weft.backends.launch import Launch, StateMemory, picture_coords
from weft.backends.vector.machine import VectorExecutor
from weft.contexts import ContextTable
from weft.errors import Source
from weft.ops import noise
from weft.ops.noise import LACUNARITY_Z, OCTAVE_PLANES, OCTAVE_SHIFT
from weft.runtime.compiling.stages import Request, build

F = np.float32
Floats: TypeAlias = npt.NDArray[np.float32]
Bits: TypeAlias = npt.NDArray[np.uint32]
Picture: TypeAlias = npt.NDArray[np.uint8]

# Draws a frame of a time into a picture, with some threads.
Draw: TypeAlias = Callable[[float, Picture, int], None]

TILE = 64 * 1024
PATCHES = Path(__file__).parent.parent / "patches" / "bench"


# The programs by hand.


class Hand:
    """What the programs by hand share: coordinates, and buffers for each thread."""

    def __init__(self, width: int, height: int, buffers: int) -> None:
        self.rows = max(1, TILE // width)
        self.tiles = [slice(at, min(at + self.rows, height)) for at in range(0, height, self.rows)]
        self.x = ((np.arange(width, dtype=F) + F(0.5)) / F(width))[None, :]
        self.y = ((np.arange(height, dtype=F) + F(0.5)) / F(height))[:, None]
        self.real = [[np.empty((self.rows, width), F) for _ in range(buffers)] for _ in range(2)]
        self.bits = [np.empty((self.rows, width), np.uint32) for _ in range(2)]
        self.pool = BandPool()

    def share(self, tile: Callable[[int, slice], None], threads: int) -> None:
        """Calls `tile` with the thread's number and the rows, for every tile."""
        counter = itertools.count()

        def work(number: int) -> None:
            while (at := next(counter)) < len(self.tiles):
                tile(number, self.tiles[at])

        self.pool.run(work, threads)


def level(out: Picture, channel: int, value: Floats, free: Floats) -> None:
    """Packs one channel, the usual way."""
    np.multiply(value, F(255), out=free)
    np.add(free, F(0.5), out=free)
    np.clip(free, F(0), F(255.5), out=free)
    np.copyto(out[..., channel], free, casting="unsafe")


def stripes_by_hand(width: int, height: int) -> Draw:
    hand = Hand(width, height, 0)

    def draw(time: float, picture: Picture, threads: int) -> None:
        red = np.sin(hand.x * F(20 * math.pi) + F(time)) * F(0.5) + F(0.5)

        def tile(number: int, rows: slice) -> None:
            out = picture[rows]
            out[..., 0] = (np.clip(red, 0, 1) * F(255) + F(0.5)).astype(np.uint8)
            out[..., 1] = (np.clip(hand.y[rows], 0, 1) * F(255) + F(0.5)).astype(np.uint8)
            out[..., 2] = 51
            out[..., 3] = 255

        hand.share(tile, threads)

    return draw


def plasma_by_hand(width: int, height: int) -> Draw:
    hand = Hand(width, height, 3)
    dx, dy = ((line - F(0.5)) ** 2 for line in (hand.x, hand.y))

    def draw(time: float, picture: Picture, threads: int) -> None:
        across = np.sin(hand.x * F(10) + F(time))
        down = np.sin(hand.y * F(10) + F(time * 1.3))

        def tile(number: int, rows: slice) -> None:
            out = picture[rows]
            v, a, b = (buffer[: len(out)] for buffer in hand.real[number])
            np.add(across, down[rows], out=v)
            np.add(hand.x, hand.y[rows], out=a)
            np.multiply(a, F(10), out=a)
            np.add(a, F(time * 0.7), out=a)
            np.sin(a, out=a)
            np.add(v, a, out=v)
            np.add(dx, dy[rows], out=a)
            np.sqrt(a, out=a)
            np.multiply(a, F(20), out=a)
            np.subtract(a, F(time * 2), out=a)
            np.sin(a, out=a)
            np.add(v, a, out=v)
            np.multiply(v, F(math.pi), out=v)
            for channel, phase in enumerate((0, 2.094, 4.188)):
                np.add(v, F(phase), out=a)
                np.sin(a, out=a)
                np.multiply(a, F(0.5), out=a)
                np.add(a, F(0.5), out=a)
                level(out, channel, a, b)
            out[..., 3] = 255

        hand.share(tile, threads)

    return draw


def _parts(coordinate: Any, axis: noise.Axis) -> tuple[list[Bits], Floats]:
    """What a coordinate contributes to the hash of the lattice points around it, and how they are blended."""
    below = np.floor(coordinate)
    whole = below.astype(np.int32).view(np.uint32)
    products = [whole * np.uint32(axis.multiplier) + np.uint32(axis.offset(step)) for step in (0, 1)]
    rest = coordinate - below
    return [p ^ (p >> np.uint32(16)) for p in products], rest * rest * (F(3) - F(2) * rest)


def clouds_by_hand(width: int, height: int) -> Draw:
    hand = Hand(width, height, 6)

    def draw(time: float, picture: Picture, threads: int) -> None:
        octaves = []
        for i in range(5):
            shift = F(OCTAVE_SHIFT if i else 0)
            z = np.full((1, 1), time * 0.5 * LACUNARITY_Z**i + OCTAVE_PLANES * i, F)
            x, y = (
                _parts(line * F(4 * 2**i) + shift, axis) for line, axis in ((hand.x, noise.X), (hand.y, noise.Y))
            )
            octaves.append((x, y, _parts(z, noise.Z), F(0.5**i / 1.9375 * noise.UNIT)))

        def tile(number: int, rows: slice) -> None:
            out = picture[rows]
            total, a, b, c, d, free = (buffer[: len(out)] for buffer in hand.real[number])
            bits = hand.bits[number][: len(out)]
            total.fill(0)
            for (x, u), (y, v), (z, w), weight in octaves:
                for plane, z_part in ((a, z[0]), (b, z[1])):
                    for edge, y_part in ((plane, y[0][rows] ^ z_part), (c, y[1][rows] ^ z_part)):
                        corner(bits, x[0], y_part, edge)
                        corner(bits, x[1], y_part, d)
                        blend(edge, d, u)
                    blend(plane, c, v[rows])
                blend(a, b, w)
                np.multiply(a, weight, out=a)
                np.add(total, a, out=total)
            for channel, phase in enumerate((0, 0.33, 0.67)):
                np.add(total, F(phase), out=a)
                np.multiply(a, F(math.tau), out=a)
                np.cos(a, out=a)
                np.multiply(a, F(0.5), out=a)
                np.add(a, F(0.5), out=a)
                level(out, channel, a, free)
            out[..., 3] = 255

        hand.share(tile, threads)

    return draw


def corner(bits: Bits, x_part: Bits, y_part: Bits, out: Floats) -> None:
    """The random number of a lattice point, in units of 2⁻²⁴."""
    np.bitwise_xor(x_part, y_part, out=bits)
    np.multiply(bits, np.uint32(0x87EB_F2B7), out=bits)
    scrambled = out.view(np.uint32)
    np.right_shift(bits, np.uint32(14), out=scrambled)
    np.bitwise_xor(bits, scrambled, out=bits)
    np.multiply(bits, np.uint32(0xA26F_4F4D), out=bits)
    np.right_shift(bits, np.uint32(8), out=bits)
    np.copyto(out, bits.view(np.int32), casting="unsafe")


def blend(a: Floats, b: Floats, t: Floats) -> None:
    """Moves a towards b."""
    np.subtract(b, a, out=b)
    np.multiply(b, t, out=b)
    np.add(a, b, out=a)


# The measurement.


def by_machine(patch: str, width: int, height: int) -> Draw:
    path = PATCHES / f"{patch}.weft"
    made = build(Request(Source(path.name, path.read_text()), ContextTable(), {"width": width, "height": height}))
    kernel = made.units[0].kernel
    executable = VectorExecutor().load(kernel)
    memory = StateMemory(kernel.slots, (height, width))

    def draw(time: float, picture: Picture, threads: int) -> None:
        coords = picture_coords(width, height, time)
        executable.rgba8(memory, Launch((height, width), coords, threads=threads), picture)

    return draw


def seconds(draw: Draw, picture: Picture, at: float, threads: int) -> float:
    start = time.perf_counter()
    draw(at, picture, threads)
    return time.perf_counter() - start


PROGRAMS = {
    "V1 stripes": ("v1", stripes_by_hand),
    "V2 plasma": ("v2", plasma_by_hand),
    "V3 fbm": ("v3", clouds_by_hand),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", default="1280x720")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    width, height = map(int, options.size.split("x"))
    print(
        f"{'program':12} {'threads':>7} {'machine':>9} {'by hand':>9} {'Mpixel/s':>9} {'ratio':>6}  largest difference"
    )
    for name, (patch, by_hand) in PROGRAMS.items():
        machine, hand = by_machine(patch, width, height), by_hand(width, height)
        pictures = [np.zeros((height, width, 4), np.uint8) for _ in range(2)]
        for threads in (1, 2):
            machine(1.7, pictures[0], threads)
            hand(1.7, pictures[1], threads)
            apart = int(np.abs(np.subtract(*pictures, dtype=np.int16)).max())
            turns = [
                (seconds(machine, pictures[0], at / 60, threads), seconds(hand, pictures[1], at / 60, threads))
                for at in range(options.rounds)
            ]
            ours, theirs = (statistics.median(column) for column in zip(*turns, strict=True))
            ratio = statistics.median(b / a for a, b in turns)
            print(
                f"{name:12} {threads:7} {ours * 1e3:6.2f} ms {theirs * 1e3:6.2f} ms "
                f"{width * height / ours / 1e6:9.0f} {ratio:6.2f}  {apart} of 255"
            )


if __name__ == "__main__":
    main()
