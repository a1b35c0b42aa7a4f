"""Taichi on the CPU: a kernel whose outermost loop, over the rows, Taichi shares among its threads."""

# Without annotations from the future: Taichi reads those of its kernels.

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.beside.sine import SINE
from benchmarks.beside.tools import missing, versions
from benchmarks.peers.figures import (
    AXES, CLOUD_TURNS, FIRST_MULTIPLIER, FIRST_SHIFT, OCTAVES, PLASMA_ANGLES, SECOND_MULTIPLIER, SECOND_SHIFT, depth,
    turns
)
from benchmarks.peers.peer import Prepared, blank

Frame = Callable[[float], None]


@dataclass(frozen=True)
class TaichiPeer:
    name: str = "taichi"

    def available(self) -> str | None:
        return missing("taichi")

    def version(self) -> str:
        return versions("taichi")

    def prepare(self, kernel: str, width: int, height: int, threads: int) -> Prepared:
        import taichi as ti

        # Nothing that was compiled earlier may be found, neither on disk nor in memory.
        ti.init(arch=ti.cpu, cpu_max_num_threads=threads, fast_math=True, offline_cache=False, log_level=ti.ERROR)
        out = blank(width, height)
        frame = KERNELS[kernel](ti, out.view(np.uint32)[..., 0])
        return Prepared(frame, lambda: out)


def _wave(ti: Any) -> Any:
    s0, s1, s2, s3, s4 = SINE

    @ti.func
    def wave(turns):
        q = 1 - 4 * ti.abs(turns - ti.floor(turns + 0.5))
        s = q * q
        return q * (s0 + s * (s1 + s * (s2 + s * (s3 + s * s4))))

    return wave


def _level(ti: Any) -> Any:
    wave = _wave(ti)

    @ti.func
    def level(turns):
        return ti.cast(ti.cast(wave(turns) * 127.5 + 128, ti.i32), ti.u32)

    return level


def _stripes(ti: Any, out: Any) -> Frame:
    level, (height, width) = _level(ti), out.shape
    column = np.empty(width, np.uint32)

    @ti.kernel
    def stripes(column: ti.types.ndarray(ti.u32, 1), out: ti.types.ndarray(ti.u32, 2), at: ti.f32):
        for i in range(width):
            column[i] = level((i + 0.5) / width * 10 + at) | ti.u32(0xFF330000)
        for j in range(height):
            green = ti.cast(ti.cast((j + 0.5) / height * 255 + 0.5, ti.i32), ti.u32) << 8
            for i in range(width):
                out[j, i] = column[i] | green

    return lambda time: stripes(column, out, turns(time))


def _plasma(ti: Any, out: Any) -> Frame:
    wave, level, (height, width) = _wave(ti), _level(ti), out.shape
    tables = np.empty((3, width), np.float32)
    ten, twenty = 10 / math.tau, 20 / math.tau
    red, green, blue = (angle / math.tau - 0.25 for angle in PLASMA_ANGLES)

    @ti.kernel
    def plasma(tables: ti.types.ndarray(ti.f32, 2), out: ti.types.ndarray(ti.u32, 2),
               at_x: ti.f32, at_y: ti.f32, at_sum: ti.f32, at_d: ti.f32):  # fmt: skip
        for i in range(width):
            x = (i + 0.5) / width
            tables[0, i], tables[1, i], tables[2, i] = wave(x * ten + at_x), x * ten + at_sum, (x - 0.5) * (x - 0.5)
        for j in range(height):
            y = (j + 0.5) / height
            down, y_sum, dy = wave(y * ten + at_y), y * ten, (y - 0.5) * (y - 0.5)
            for i in range(width):
                d = ti.sqrt(tables[2, i] + dy)
                v = 0.5 * (tables[0, i] + down + wave(tables[1, i] + y_sum) + wave(d * twenty + at_d))
                colour = level(v + red) | (level(v + green) << 8) | (level(v + blue) << 16)
                out[j, i] = colour | ti.u32(0xFF000000)

    return lambda time: plasma(tables, out, *(turns(angle) for angle in (time, 1.3 * time, 0.7 * time, -2 * time)))


def _clouds(ti: Any, out: Any) -> Frame:
    level, (height, width) = _level(ti), out.shape
    red, green, blue = CLOUD_TURNS
    octaves = tuple((octave.scale, octave.shift, octave.weight) for octave in OCTAVES)
    count, numbers = len(octaves), range(len(octaves))
    multiplier_x, start_x, multiplier_y, start_y = (
        figure for name in "xy" for figure in (AXES[name].multiplier, AXES[name].start)
    )
    parts, fades = np.empty((len(octaves), 2, width), np.uint32), np.empty((len(octaves), width), np.float32)

    @ti.func
    def part(below, multiplier, start):
        product = ti.cast(ti.cast(below, ti.i32), ti.u32) * multiplier + start
        return product ^ (product >> FIRST_SHIFT)

    @ti.func
    def corner(x_part, others):
        n = (x_part ^ others) * ti.u32(FIRST_MULTIPLIER)
        n = (n ^ (n >> SECOND_SHIFT)) * ti.u32(SECOND_MULTIPLIER)
        return ti.cast(ti.cast(n >> 8, ti.i32), ti.f32)

    @ti.func
    def mix(a, b, t):
        return a + (b - a) * t

    @ti.kernel
    def clouds(parts: ti.types.ndarray(ti.u32, 3), fades: ti.types.ndarray(ti.f32, 2), out: ti.types.ndarray(ti.u32, 2),
               z: ti.types.ndarray(ti.u32, 2), w: ti.types.ndarray(ti.f32, 1)):  # fmt: skip
        for i in range(width):
            for o in ti.static(numbers):
                at = (i + 0.5) / width * octaves[o][0] + octaves[o][1]
                below = ti.floor(at)
                t = at - below
                parts[o, 0, i] = part(below, ti.u32(multiplier_x), ti.u32(start_x))
                parts[o, 1, i] = part(below + 1, ti.u32(multiplier_x), ti.u32(start_x))
                fades[o, i] = t * t * (3 - 2 * t)
        for j in range(height):
            y_parts, v = ti.Matrix.zero(ti.u32, count, 2), ti.Vector.zero(ti.f32, count)
            for o in ti.static(numbers):
                at = (j + 0.5) / height * octaves[o][0] + octaves[o][1]
                below = ti.floor(at)
                t = at - below
                v[o] = t * t * (3 - 2 * t)
                y_parts[o, 0] = part(below, ti.u32(multiplier_y), ti.u32(start_y))
                y_parts[o, 1] = part(below + 1, ti.u32(multiplier_y), ti.u32(start_y))
            for i in range(width):
                total = 0.0
                for o in ti.static(numbers):
                    p, q, u = parts[o, 0, i], parts[o, 1, i], fades[o, i]
                    q0, q1 = y_parts[o, 0] ^ z[o, 0], y_parts[o, 1] ^ z[o, 0]
                    q2, q3 = y_parts[o, 0] ^ z[o, 1], y_parts[o, 1] ^ z[o, 1]
                    near = mix(mix(corner(p, q0), corner(q, q0), u), mix(corner(p, q1), corner(q, q1), u), v[o])
                    far = mix(mix(corner(p, q2), corner(q, q2), u), mix(corner(p, q3), corner(q, q3), u), v[o])
                    total += octaves[o][2] * mix(near, far, w[o])
                colour = level(total + red) | (level(total + green) << 8) | (level(total + blue) << 16)
                out[j, i] = colour | ti.u32(0xFF000000)

    def frame(time: float) -> None:
        depths = depth(time)
        z = np.array([each[:2] for each in depths], np.uint32)
        clouds(parts, fades, out, z, np.array([each[2] for each in depths], np.float32))

    return frame


KERNELS = {"v1": _stripes, "v2": _plasma, "v3": _clouds}
PEERS = (TaichiPeer(),)
