"""numba: one function a kernel, `prange` over the rows; once with the cosine of the library, which SVML computes where
numba finds it, and once with the polynomial."""

from __future__ import annotations

import math
import os
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

F, S, U = np.float32, np.int32, np.uint32

# Sums may not be put in another order; SVML asks for all.
FLAGS = {"nnan", "ninf", "nsz", "arcp", "contract", "afn"}


@dataclass(frozen=True)
class NumbaPeer:
    name: str
    polynomial: bool

    def available(self) -> str | None:
        return missing("numba")

    def version(self) -> str:
        import numba

        return versions("numba", "llvmlite") + (" with" if numba.config.USING_SVML else " without") + " SVML"

    def prepare(self, kernel: str, width: int, height: int, threads: int) -> Prepared:
        os.environ.setdefault("NUMBA_NUM_THREADS", str(threads))
        import numba

        numba.set_num_threads(threads)
        flags = FLAGS if self.polynomial else True

        def compiled(function: Callable[..., Any]) -> Any:
            return numba.njit(fastmath=flags, error_model="numpy", parallel=threads > 1)(function)

        def inlined(function: Callable[..., Any]) -> Any:
            return numba.njit(fastmath=flags, error_model="numpy", forceinline=True)(function)

        wave = inlined(_polynomial if self.polynomial else _cosine)
        out = blank(width, height)
        x = ((np.arange(width) + 0.5) / width).astype(F)
        y = ((np.arange(height) + 0.5) / height).astype(F)
        frame = KERNELS[kernel](compiled, inlined, wave, x, y, out.view(U)[..., 0])
        return Prepared(frame, lambda: out)


S0, S1, S2, S3, S4 = map(F, SINE)
TAU = F(math.tau)


def _polynomial(turns: Any) -> Any:
    q = F(1) - F(4) * abs(turns - np.rint(turns))
    s = q * q
    return q * (S0 + s * (S1 + s * (S2 + s * (S3 + s * S4))))


def _cosine(turns: Any) -> Any:
    return math.cos(TAU * turns)


def _pack(wave: Any) -> Callable[..., Any]:
    def pack(red: Any, green: Any, blue: Any) -> Any:
        """Sines stay in their range, so there is nothing to clamp."""
        span, half = F(127.5), F(128)
        r, g, b = S(wave(red) * span + half), S(wave(green) * span + half), S(wave(blue) * span + half)
        return U(r) | U(U(g) << U(8)) | U(U(b) << U(16)) | U(0xFF000000)

    return pack


def _stripes(compiled: Any, inlined: Any, wave: Any, x: Any, y: Any, out: Any) -> Callable[[float], None]:
    import numba

    column = np.empty(x.size, U)

    def stripes(x: Any, y: Any, column: Any, out: Any, at: Any) -> None:
        for i in range(x.size):
            column[i] = U(S(wave(x[i] * F(10) + at) * F(127.5) + F(128))) | U(0xFF330000)
        for j in numba.prange(y.size):
            green = U(U(S(y[j] * F(255) + F(0.5))) << U(8))
            for i in range(x.size):
                out[j, i] = column[i] | green

    function = compiled(stripes)
    return lambda time: function(x, y, column, out, F(turns(time)))


def _plasma(compiled: Any, inlined: Any, wave: Any, x: Any, y: Any, out: Any) -> Callable[[float], None]:
    import numba

    pack = inlined(_pack(wave))
    ten, twenty = F(10 / math.tau), F(20 / math.tau)
    red, green, blue = (F(angle / math.tau - 0.25) for angle in PLASMA_ANGLES)
    across, total, square = (np.empty(x.size, F) for _ in range(3))

    def plasma(x: Any, y: Any, across: Any, total: Any, square: Any, out: Any,
               at_x: Any, at_y: Any, at_sum: Any, at_d: Any) -> None:  # fmt: skip
        for i in range(x.size):
            across[i] = wave(x[i] * ten + at_x)
            total[i] = x[i] * ten + at_sum
            square[i] = (x[i] - F(0.5)) * (x[i] - F(0.5))
        for j in numba.prange(y.size):
            down, y_sum, dy = wave(y[j] * ten + at_y), y[j] * ten, (y[j] - F(0.5)) * (y[j] - F(0.5))
            for i in range(x.size):
                d = math.sqrt(square[i] + dy)
                v = F(0.5) * (across[i] + down + wave(total[i] + y_sum) + wave(d * twenty + at_d))
                out[j, i] = pack(v + red, v + green, v + blue)

    function = compiled(plasma)

    def draw(time: float) -> None:
        phases = (F(turns(angle)) for angle in (time, 1.3 * time, 0.7 * time, -2 * time))
        function(x, y, across, total, square, out, *phases)

    return draw


def _clouds(compiled: Any, inlined: Any, wave: Any, x: Any, y: Any, out: Any) -> Callable[[float], None]:
    import numba

    pack = inlined(_pack(wave))
    red, green, blue = map(F, CLOUD_TURNS)
    scales, shifts, weights = (np.array([getattr(octave, name) for octave in OCTAVES], F)
                               for name in ("scale", "shift", "weight"))  # fmt: skip
    count = len(OCTAVES)
    multiplier_x, start_x, multiplier_y, start_y = (
        U(figure) for name in "xy" for figure in (AXES[name].multiplier, AXES[name].start)
    )

    @inlined
    def part(below: Any, multiplier: Any, start: Any) -> Any:
        product = U(U(U(S(below)) * multiplier) + start)
        return U(product ^ U(product >> U(FIRST_SHIFT)))

    @inlined
    def fade(t: Any) -> Any:
        return t * t * (F(3) - F(2) * t)

    @inlined
    def corner(x_part: Any, others: Any) -> Any:
        n = U(U(x_part ^ others) * U(FIRST_MULTIPLIER))
        n = U(U(n ^ U(n >> U(SECOND_SHIFT))) * U(SECOND_MULTIPLIER))
        return F(S(n >> U(8)))

    @inlined
    def mix(a: Any, b: Any, t: Any) -> Any:
        return a + (b - a) * t

    low, high = (np.empty((count, x.size), U) for _ in range(2))
    fades, totals = np.empty((count, x.size), F), np.empty((y.size, x.size), F)

    def clouds(x: Any, y: Any, low: Any, high: Any, fades: Any, totals: Any, out: Any, z_parts: Any, w: Any) -> None:
        for o in range(count):
            for i in range(x.size):
                at = x[i] * scales[o] + shifts[o]
                below = np.floor(at)
                low[o, i], high[o, i] = part(below, multiplier_x, start_x), part(below + F(1), multiplier_x, start_x)
                fades[o, i] = fade(at - below)
        for j in numba.prange(y.size):
            total = totals[j]
            total[:] = F(0)
            for o in range(count):
                at = y[j] * scales[o] + shifts[o]
                below = np.floor(at)
                v = fade(at - below)
                y_low, y_high = part(below, multiplier_y, start_y), part(below + F(1), multiplier_y, start_y)
                q0, q1 = U(y_low ^ z_parts[o, 0]), U(y_high ^ z_parts[o, 0])
                q2, q3 = U(y_low ^ z_parts[o, 1]), U(y_high ^ z_parts[o, 1])
                for i in range(x.size):
                    p, q, u = low[o, i], high[o, i], fades[o, i]
                    near = mix(mix(corner(p, q0), corner(q, q0), u), mix(corner(p, q1), corner(q, q1), u), v)
                    far = mix(mix(corner(p, q2), corner(q, q2), u), mix(corner(p, q3), corner(q, q3), u), v)
                    total[i] += weights[o] * mix(near, far, w[o])
            for i in range(x.size):
                out[j, i] = pack(total[i] + red, total[i] + green, total[i] + blue)

    function = compiled(clouds)

    def draw(time: float) -> None:
        depths = depth(time)
        z_parts, w = np.array([each[:2] for each in depths], U), np.array([each[2] for each in depths], F)
        function(x, y, low, high, fades, totals, out, z_parts, w)

    return draw


KERNELS = {"v1": _stripes, "v2": _plasma, "v3": _clouds}
PEERS = (NumbaPeer("numba", False), NumbaPeer("numba-poly", True))
