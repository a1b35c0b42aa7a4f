"""Kernels in CUDA C++ by hand, by NVIDIA's own bindings: one launch a frame and one wait, with everything prepared.

What varies with the time alone is an argument, computed in double precision. A frame is over when the picture is in the
card's memory; reading it back is not measured.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.beside.tools import missing, versions
from benchmarks.peers.figures import (
    AXES, CLOUD_TURNS, FIRST_MULTIPLIER, FIRST_SHIFT, OCTAVES, PLASMA_ANGLES, SECOND_MULTIPLIER, SECOND_SHIFT, depth
)
from benchmarks.peers.peer import Picture, Prepared

SOURCE = Path(__file__).parent / "kernels.cu"

# Threads of a block: a warp is a part of one row.
_WIDE, _HIGH = 32, 8


def _figures() -> list[str]:
    """What kernels.cu wants defined."""
    found = [f"PLASMA_{i}={angle!r}f" for i, angle in enumerate(PLASMA_ANGLES)]
    found += [f"CLOUD_{i}={turn!r}f" for i, turn in enumerate(CLOUD_TURNS)]
    for name in "xy":
        found += [f"MULTIPLIER_{name.upper()}={AXES[name].multiplier}u", f"START_{name.upper()}={AXES[name].start}u"]
    found += [f"FIRST_SHIFT={FIRST_SHIFT}", f"FIRST_MULTIPLIER={FIRST_MULTIPLIER}u"]
    found += [f"SECOND_SHIFT={SECOND_SHIFT}", f"SECOND_MULTIPLIER={SECOND_MULTIPLIER}u", f"OCTAVES={len(OCTAVES)}"]
    for field in ("scale", "shift", "weight"):
        listed = ",".join(f"{float(getattr(octave, field))!r}f" for octave in OCTAVES)
        found.append(f"OCTAVE_{field.upper()}S={listed}")
    return found


class _Plane(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint), ("high", ctypes.c_uint), ("fade", ctypes.c_float)]


_Planes = _Plane * len(OCTAVES)
_Phases = ctypes.c_float * 4


def _angle(angle: float) -> float:
    """An angle, in the turn around 0."""
    return math.remainder(angle, math.tau)


def _numbers(kernel: str) -> tuple[Any, Callable[[float], None]]:
    """The argument that follows the time, and what fills it in."""
    if kernel == "v3":
        planes = _Planes()

        def fill(time: float) -> None:
            for plane, values in zip(planes, depth(time), strict=True):
                plane.low, plane.high, plane.fade = values

        return planes, fill
    phases = _Phases()
    if kernel == "v1":

        def fill(time: float) -> None:
            phases[0] = _angle(time)

    else:

        def fill(time: float) -> None:
            phases[:] = _angle(time), _angle(1.3 * time), _angle(0.7 * time), _angle(-2 * time)

    return phases, fill


def done(answer: tuple[Any, ...]) -> Any:
    """The result of a call. Raises RuntimeError."""
    error, *found = answer
    if int(error):
        raise RuntimeError(str(error))
    return found[0] if found else None


@dataclass(frozen=True)
class CudaPeer:
    name: str = "cuda"

    def available(self) -> str | None:
        problem = missing("cuda", "cuda-bindings nvidia-cuda-nvrtc")
        if problem is not None:
            return problem
        try:
            from cuda.bindings import driver

            done(driver.cuInit(0))
        except Exception as failure:  # the library is missing, or there is no card
            return f"there is no card of NVIDIA ({failure})"
        return None

    def version(self) -> str:
        from cuda.bindings import driver

        name = bytes(done(driver.cuDeviceGetName(128, done(driver.cuDeviceGet(0))))).split(b"\0")[0].decode()
        return f"{name}, {versions('cuda-bindings')}"

    def prepare(self, kernel: str, width: int, height: int, threads: int) -> Prepared:
        from cuda.bindings import driver

        done(driver.cuInit(0))
        device = done(driver.cuDeviceGet(0))
        done(driver.cuCtxSetCurrent(done(driver.cuDevicePrimaryCtxRetain(device))))
        function = compiled(kernel, device)
        stream = done(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING))
        size = 4 * width * height
        memory = done(driver.cuMemAlloc(size))
        numbers, fill = _numbers(kernel)
        given = (ctypes.c_uint64(int(memory)), ctypes.c_int(width), ctypes.c_int(height), numbers)
        arguments = (ctypes.c_void_p * len(given))(*map(ctypes.addressof, given))
        address = ctypes.addressof(arguments)
        blocks = -(-width // _WIDE), -(-height // _HIGH)
        launch, wait = driver.cuLaunchKernel, driver.cuStreamSynchronize

        def draw(time: float, kept: object = (given, arguments)) -> None:
            fill(time)
            done(launch(function, *blocks, 1, _WIDE, _HIGH, 1, 0, stream, address, 0))
            done(wait(stream))

        def picture() -> Picture:
            out = np.empty((height, width, 4), np.uint8)
            done(driver.cuMemcpyDtoH(out.ctypes.data, memory, size))
            return out

        return Prepared(draw, picture)


def compiled(kernel: str, device: Any, text: bytes | None = None) -> Any:
    """A kernel of a text, by default that of the kernels, for a card."""
    from cuda.bindings import driver

    return done(driver.cuModuleGetFunction(module(device, text or SOURCE.read_bytes()), kernel.encode()))


def module(device: Any, text: bytes) -> Any:
    """The program of a text, for a card."""
    from cuda.bindings import driver, nvrtc

    kind = driver.CUdevice_attribute
    major = done(driver.cuDeviceGetAttribute(kind.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device))
    minor = done(driver.cuDeviceGetAttribute(kind.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device))
    options = [f"--gpu-architecture=sm_{major}{minor}", "--std=c++17", "--use_fast_math"]
    options += [f"--define-macro={each}" for each in _figures()]
    program = done(nvrtc.nvrtcCreateProgram(text, b"by_hand.cu", 0, [], []))
    if int(nvrtc.nvrtcCompileProgram(program, len(options), [each.encode() for each in options])[0]):
        words = bytes(done(nvrtc.nvrtcGetProgramLogSize(program)))
        done(nvrtc.nvrtcGetProgramLog(program, words))
        raise RuntimeError(words.decode())
    code = bytes(done(nvrtc.nvrtcGetCUBINSize(program)))
    done(nvrtc.nvrtcGetCUBIN(program, code))
    return done(driver.cuModuleLoadData(code))


PEERS = (CudaPeer(),)
