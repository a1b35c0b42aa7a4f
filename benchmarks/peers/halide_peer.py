"""Halide: a pipeline for each kernel, compiled when it is prepared.

What varies with x alone or y alone is a Func of its own that is computed once a frame; rows of the picture are
computed in vectors, and strips of rows are shared among Halide's threads.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from llvmlite import binding

from benchmarks.beside.sine import SINE
from benchmarks.beside.tools import missing, versions
from benchmarks.peers.figures import (
    AXES, CLOUD_TURNS, FIRST_MULTIPLIER, FIRST_SHIFT, OCTAVES, PLASMA_ANGLES, SECOND_MULTIPLIER, SECOND_SHIFT, depth,
    turns
)
from benchmarks.peers.peer import Prepared, blank

Frame = Callable[[float], None]


@dataclass(frozen=True)
class HalidePeer:
    name: str = "halide"

    def available(self) -> str | None:
        return missing("halide")

    def version(self) -> str:
        return versions("halide")

    def prepare(self, kernel: str, width: int, height: int, threads: int) -> Prepared:
        os.environ["HL_NUM_THREADS"] = str(threads)
        import halide as hl

        out = blank(width, height)
        made = Pipeline(hl, width, height)
        set_time = KERNELS[kernel](made)
        made.schedule(threads)
        target, picture = hl.Target(host_target(hl)), hl.Buffer(out.view(np.uint32)[..., 0])
        made.picture.compile_jit(target)

        def draw(time: float) -> None:
            set_time(time)
            made.picture.realize(picture, target)

        return Prepared(draw, lambda: out)


# What Halide calls what a processor has, with LLVM's names of the instructions that it then uses.
_SKYLAKE = ("avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl")
_CANNONLAKE = (*_SKYLAKE, "avx512ifma", "avx512vbmi")
_ZEN4 = (*_CANNONLAKE, "avx512bf16", "avx512vnni")
INSTRUCTIONS = {
    "sse41": ("sse4.1",), "avx": ("avx",), "f16c": ("f16c",), "fma": ("fma",), "avx2": ("avx2", "f16c", "fma"),
    "avxvnni": ("avxvnni",), "avx512": ("avx512f", "avx512cd"), "avx512_knl": ("avx512f", "avx512cd", "avx512er"),
    "avx512_skylake": _SKYLAKE, "avx512_cannonlake": _CANNONLAKE, "avx512_zen4": _ZEN4,
    "avx512_zen5": (*_ZEN4, "avxvnni", "avx512vp2intersect"),
    "avx512_sapphirerapids": (*_ZEN4, "avxvnni", "avx512fp16"),
}  # fmt: skip


def host_target(hl: Any, flags: Mapping[str, bool] | None = None) -> str:
    """This machine as Halide's target, without the instructions that the processor's `flags` lack. Halide goes by the
    model of some processors, whose instructions a virtual machine may hide."""
    known = binding.get_host_cpu_features() if flags is None else flags
    words = str(hl.get_host_target()).split("-")
    runs = [each for each in words if all(known.get(name) for name in INSTRUCTIONS.get(each, ()))]
    return "-".join([*runs, "no_asserts", "no_bounds_query"])


class Pipeline:
    """A pipeline while it is written: its variables, its tables, and the words that the kernels are written in."""

    def __init__(self, hl: Any, width: int, height: int) -> None:
        self.hl, self.width, self.height = hl, width, height
        self.i, self.j = hl.Var("i"), hl.Var("j")
        self.x = (hl.cast(hl.Float(32), self.i) + hl.f32(0.5)) / hl.f32(width)
        self.y = (hl.cast(hl.Float(32), self.j) + hl.f32(0.5)) / hl.f32(height)
        self.picture = hl.Func("picture")
        self._tables: list[tuple[Any, Any]] = []

    def column(self, value: Any) -> Any:
        """What varies with x alone, from a table."""
        return self._table(value, self.i)

    def row(self, value: Any) -> Any:
        """What varies with y alone, from a table."""
        return self._table(value, self.j)

    def _table(self, value: Any, variable: Any) -> Any:
        table = self.hl.Func(f"table_{len(self._tables)}")
        table[variable] = value
        self._tables.append((table, variable))
        return table[variable]

    def wave(self, turns: Any) -> Any:
        f = self.hl.f32
        q = f(1) - f(4) * self.hl.abs(turns - self.hl.round(turns))
        s = q * q
        value = f(SINE[-1])
        for factor in reversed(SINE[:-1]):
            value = value * s + f(factor)
        return value * q

    def level(self, turns: Any) -> Any:
        return self.byte(self.wave(turns) * self.hl.f32(127.5) + self.hl.f32(128))

    def byte(self, value: Any) -> Any:
        return self.hl.cast(self.hl.UInt(32), self.hl.cast(self.hl.Int(32), value))

    def show(self, levels: Sequence[Any]) -> None:
        red, green, blue = levels
        u = self.hl.u32
        self.picture[self.i, self.j] = red | (green << u(8)) | (blue << u(16)) | u(0xFF000000)

    def schedule(self, threads: int) -> None:
        lanes = self.hl.get_host_target().natural_vector_size(self.hl.Float(32))
        for table, variable in self._tables:
            table.compute_root().vectorize(variable, lanes)
        self.picture.vectorize(self.i, lanes * UNROLL)
        self.picture.bound(self.i, 0, self.width).bound(self.j, 0, self.height)
        if threads > 1:
            strip, inner = self.hl.Var("strip"), self.hl.Var("inner")
            self.picture.split(self.j, strip, inner, math.ceil(self.height / (threads * STRIPS))).parallel(strip)


# Vectors side by side, and strips for each thread.
UNROLL, STRIPS = 2, 4


def _phases(hl: Any, angles: Sequence[float]) -> tuple[list[Any], Frame]:
    """Parameters that hold the phases of waves, which grow by these angles a second."""
    phases = [hl.Param(hl.Float(32), f"phase_{number}") for number in range(len(angles))]

    def set_time(time: float) -> None:
        for phase, angle in zip(phases, angles, strict=True):
            phase.set(turns(angle * time))

    return phases, set_time


def _stripes(p: Pipeline) -> Frame:
    f = p.hl.f32
    (at,), set_time = _phases(p.hl, [1])
    p.show([p.column(p.level(p.x * f(10) + at)), p.row(p.byte(p.y * f(255) + f(0.5))), p.hl.u32(51)])
    return set_time


def _plasma(p: Pipeline) -> Frame:
    f, half = p.hl.f32, p.hl.f32(0.5)
    ten, twenty = f(10 / math.tau), f(20 / math.tau)
    (at_x, at_y, at_sum, at_d), set_time = _phases(p.hl, [1, 1.3, 0.7, -2])
    d = p.hl.sqrt(p.column((p.x - half) * (p.x - half)) + p.row((p.y - half) * (p.y - half)))
    lines = p.column(p.wave(p.x * ten + at_x)) + p.row(p.wave(p.y * ten + at_y))
    v = lines + p.wave(p.column(p.x * ten + at_sum) + p.row(p.y * ten)) + p.wave(d * twenty + at_d)
    p.show([p.level(v * half + f(angle / math.tau - 0.25)) for angle in PLASMA_ANGLES])
    return set_time


def _clouds(p: Pipeline) -> Frame:
    hl, f, u = p.hl, p.hl.f32, p.hl.u32
    depths = [[hl.Param(kind) for kind in (hl.UInt(32), hl.UInt(32), hl.Float(32))] for _ in OCTAVES]

    def cell(coordinate: Any, axis: str) -> tuple[list[Any], Any]:
        below = hl.floor(coordinate)
        product = hl.cast(hl.UInt(32), hl.cast(hl.Int(32), below)) * u(AXES[axis].multiplier)
        products = [product + u(AXES[axis].offset(step)) for step in (0, 1)]
        rest = coordinate - below
        return [each ^ (each >> u(FIRST_SHIFT)) for each in products], rest * rest * (f(3) - f(2) * rest)

    def corner(x_part: Any, others: Any) -> Any:
        n = (x_part ^ others) * u(FIRST_MULTIPLIER)
        n = (n ^ (n >> u(SECOND_SHIFT))) * u(SECOND_MULTIPLIER)
        return hl.cast(hl.Float(32), hl.cast(hl.Int(32), n >> u(8)))

    def mix(a: Any, b: Any, t: Any) -> Any:
        return a + (b - a) * t

    total = f(0)
    for octave, (low, high, w) in zip(OCTAVES, depths, strict=True):
        (x_parts, across), (y_parts, down) = (
            cell(at * f(octave.scale) + f(octave.shift), axis) for at, axis in ((p.x, "x"), (p.y, "y"))
        )
        x_parts, across = [p.column(part) for part in x_parts], p.column(across)
        down = p.row(down)
        planes = []
        for z_part in (low, high):
            others = [p.row(part ^ z_part) for part in y_parts]
            near, far = (mix(corner(x_parts[0], q), corner(x_parts[1], q), across) for q in others)
            planes.append(mix(near, far, down))
        total = total + mix(planes[0], planes[1], w) * f(octave.weight)
    p.show([p.level(total + f(turn)) for turn in CLOUD_TURNS])

    def set_time(time: float) -> None:
        for params, values in zip(depths, depth(time), strict=True):
            for param, value in zip(params, values, strict=True):
                param.set(value)

    return set_time


KERNELS = {"v1": _stripes, "v2": _plasma, "v3": _clouds}
PEERS = (HalidePeer(),)
