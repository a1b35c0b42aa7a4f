"""patches/bench/fifty.weft by CUDA beside a kernel by hand (`benchmarks/peers/fifty.cu`), by turns in one process.

    python -m benchmarks.fifty_by_hand [--size 1280x720] [--rounds 8]

All draw the same frames, one behind the other, with a wait after each; the pictures are compared first. By hand, the
numbers and sliders of the patch are constants, as in a picture that nobody plays, or inputs, as weft has them.
"""

from __future__ import annotations

import argparse
import ctypes
import math
import re
import statistics
import time
from collections.abc import Callable
from itertools import count

import numpy as np

from benchmarks.peers.cuda_peer import SOURCE, done, module
from benchmarks.peers.figures import AXES, FIRST_SHIFT
from benchmarks.peers.peer import Picture
from weft.backends.base import Env, as_array
from weft.backends.cuda.backend import CudaVisual
from weft.backends.prologue import prologue_code
from weft.cli.arguments import compile_file, shipped_patches
from weft.contexts import ContextTable
from weft.runtime.films.offline import initial_inputs
from weft.runtime.program.coordinator import ProgramRunner

_WIDE, _HIGH, _FRAMES, _START = 32, 8, 300, 1.7


class _Moment(ctypes.Structure):
    """What varies with the time alone, as the kernel has it."""

    _names = ("kick", "bar", "flow_x", "flow_y", "wave", "ring", "cloud", "turn")
    _fields_ = [
        *((name, ctypes.c_float) for name in _names), ("waves", ctypes.c_float * 4), ("grain", ctypes.c_uint),
        ("blink", ctypes.c_uint),
    ]  # fmt: skip


def _part(number: int) -> int:
    product = (number * AXES["z"].multiplier + AXES["z"].start) & 0xFFFF_FFFF
    return product ^ product >> FIRST_SHIFT


def fill(moment: _Moment, at: float, frame: int) -> None:
    """The numbers of a frame, in double precision."""
    beats = at * 128 / 60
    kick = (1 - beats % 1) ** 3
    moment.kick, moment.bar, moment.flow_x, moment.flow_y = kick, beats / 4 % 1, at * 0.2, -at * 0.1
    moment.wave, moment.ring, moment.cloud = (kick * 0.15 - at * 0.6) % 1, at * 0.05 % 1, at * 0.03 % 1
    moment.turn = math.remainder(at * 0.1, math.tau)
    moment.waves[:] = [math.remainder(at * n, math.tau) for n in range(1, 5)]
    moment.grain, moment.blink = _part(frame), _part(math.floor(beats))


_NUMBER = re.compile(r"(?<!define )\bN\(([^)]*)f\)")


def by_hand(width: int, height: int, turned: bool) -> tuple[Callable[[int], None], Callable[[], Picture]]:
    """Draws a frame by its number, and gives its picture. The numbers of the patch are inputs if they can be
    `turned`."""
    from cuda.bindings import driver

    done(driver.cuInit(0))
    device = done(driver.cuDeviceGet(0))
    done(driver.cuCtxSetCurrent(done(driver.cuDevicePrimaryCtxRetain(device))))
    text = SOURCE.with_name("fifty.cu").read_text(encoding="utf-8")
    numbers = np.array(_NUMBER.findall(text), np.float32)
    if turned:
        at = count()
        text = _NUMBER.sub(lambda _: f"numbers[{next(at)}]", text)
        text = f"__constant__ float numbers[{numbers.size}];\n{text}"
    program = module(device, text.encode())
    function = done(driver.cuModuleGetFunction(program, b"fifty"))
    if turned:
        address, _ = driver.cuModuleGetGlobal(program, b"numbers")[1:]
        done(driver.cuMemcpyHtoD(address, numbers.ctypes.data, numbers.nbytes))
    stream = done(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING))
    size = 4 * width * height
    memory = [done(driver.cuMemAlloc(size)) for _ in range(3)]
    for each in memory:
        done(driver.cuMemsetD8(each, 0, size))
    places = [ctypes.c_uint64(int(each)) for each in memory]
    moment = _Moment()
    given = (*places, ctypes.c_int(width), ctypes.c_int(height), moment)
    orders = (0, 1, 2, 3, 4, 5), (0, 2, 1, 3, 4, 5)
    lists = [(ctypes.c_void_p * 6)(*(ctypes.addressof(given[at]) for at in order)) for order in orders]
    addresses = [ctypes.addressof(each) for each in lists]
    blocks = -(-width // _WIDE), -(-height // _HIGH)
    launch, wait = driver.cuLaunchKernel, driver.cuStreamSynchronize

    def draw(number: int, kept: object = (given, lists)) -> None:
        fill(moment, _START + number / 60, number)
        done(launch(function, *blocks, 1, _WIDE, _HIGH, 1, 0, stream, addresses[number % 2], 0))
        done(wait(stream))

    def picture() -> Picture:
        out = np.empty((height, width, 4), np.uint8)
        done(driver.cuMemcpyDtoH(out.ctypes.data, memory[0], size))
        return out

    return draw, picture


def by_weft(width: int, height: int) -> tuple[Callable[[int], None], Callable[[], Picture]]:
    """The same by weft."""
    path = shipped_patches() / "bench" / "fifty.weft"
    made = compile_file(str(path), settings={"width": width, "height": height})
    (unit,) = made.units
    inputs = initial_inputs(made.patch)
    backend, runner = CudaVisual(), ProgramRunner(ContextTable())
    ready = backend.compile_subgraph(unit, Env(width, height, inputs=inputs), runner)
    code = prologue_code(unit.kernel)  # as a performance has it after a moment
    if code is not None:
        backend.upgrade(ready, code)
    shown: list[Picture] = []

    def draw(number: int) -> None:
        env = Env(width, height, number, _START + number / 60, 1 / 60, inputs)
        shown[:] = [backend.execute_subgraph(ready, env, runner)]  # type: ignore[list-item]
        backend.sync()

    return draw, lambda: np.asarray(as_array(shown[0]))


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n", 1)[0])
    options.add_argument("--size", default="1280x720", help="of the picture")
    options.add_argument("--rounds", type=int, default=8)
    asked = options.parse_args()
    width, height = map(int, asked.size.split("x"))
    ways = [by_weft(width, height), by_hand(width, height, turned=False), by_hand(width, height, turned=True)]
    for number in range(12):
        for draw, _ in ways:
            draw(number)
    ours, *theirs = (picture().astype(int) for _, picture in ways)
    share = max(float((np.abs(ours - each).max(axis=2) > 2).mean()) for each in theirs)
    print(f"{share:.4%} of the pixels differ by more than 2 levels", flush=True)
    number, times = 12, [list[float]() for _ in ways]
    for _ in range(asked.rounds):
        for (draw, _), found in zip(ways, times, strict=True):
            taken = []
            for n in range(number, number + _FRAMES):
                before = time.perf_counter()
                draw(n)
                taken.append(time.perf_counter() - before)
            found.append(statistics.median(taken) * 1e3)
        number += _FRAMES
    weft = times[0]
    for name, found in zip(("with constants", "with inputs"), times[1:], strict=True):
        ratio = statistics.median(theirs / ours for ours, theirs in zip(weft, found, strict=True))
        ours, theirs = statistics.median(weft), statistics.median(found)
        told = f"weft {ours:.4f} ms, by hand {name} {theirs:.4f} ms a frame; weft / by hand {ratio:.2f}"
        print(f"{asked.size}: {told}", flush=True)


if __name__ == "__main__":
    main()
