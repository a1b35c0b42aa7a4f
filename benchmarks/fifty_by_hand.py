"""patches/bench/fifty.weft on a card beside a program by hand, by turns in one process: by CUDA beside a kernel
(`benchmarks/peers/fifty.cu`), or by OpenGL beside shaders (`benchmarks/peers/fifty.glsl`).

    python -m benchmarks.fifty_by_hand [--by opengl] [--size 1280x720] [--rounds 8]

All draw the same frames, one behind the other, with a wait after each; the pictures are compared first. By hand, the
numbers and sliders of the patch are constants, as in a picture that nobody plays, or inputs, as weft has them. By
OpenGL, what is by hand is drawn, and computed in tiles, and the faster one counts; the context of each stays current
in its turn, as that of a window does. There, shaders that sample the trail by the card's filter are measured too, which
is faster and not exact: it knows the place between two pixels to 8 binary digits.
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.peers.cuda_peer import SOURCE, done, module
from benchmarks.peers.fifty import Moment, by_backend, fill, turned_text
from benchmarks.peers.peer import Picture
from weft.backends.base import as_array
from weft.backends.cuda.backend import CudaVisual

if TYPE_CHECKING:
    from benchmarks.peers.fifty_opengl import OpenGLWay

_WIDE, _HIGH, _FRAMES, _BEFORE = 32, 8, 300, 12


@dataclass(frozen=True)
class Way:
    """One of those that are compared. What it is `like` says how it has the numbers of the patch; it draws where it has
    been entered."""

    name: str
    like: str
    draw: Callable[[int], None]
    picture: Callable[[], Picture]
    enter: Callable[[], None] = lambda: None
    leave: Callable[[], None] = lambda: None


def by_hand(width: int, height: int, turned: bool) -> tuple[Callable[[int], None], Callable[[], Picture]]:
    """Draws a frame by its number, and gives its picture. The numbers of the patch are inputs if they can be
    `turned`."""
    from cuda.bindings import driver

    done(driver.cuInit(0))
    device = done(driver.cuDeviceGet(0))
    done(driver.cuCtxSetCurrent(done(driver.cuDevicePrimaryCtxRetain(device))))
    text = SOURCE.with_name("fifty.cu").read_text(encoding="utf-8")
    numbers = np.zeros(0, np.float32)
    if turned:
        text, numbers = turned_text(text, "__constant__ float numbers[{}];")
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
    moment = Moment()
    given = (*places, ctypes.c_int(width), ctypes.c_int(height), moment)
    orders = (0, 1, 2, 3, 4, 5), (0, 2, 1, 3, 4, 5)
    lists = [(ctypes.c_void_p * 6)(*(ctypes.addressof(given[at]) for at in order)) for order in orders]
    addresses = [ctypes.addressof(each) for each in lists]
    blocks = -(-width // _WIDE), -(-height // _HIGH)
    launch, wait = driver.cuLaunchKernel, driver.cuStreamSynchronize

    def draw(number: int, kept: object = (given, lists)) -> None:
        fill(moment, number)
        done(launch(function, *blocks, 1, _WIDE, _HIGH, 1, 0, stream, addresses[number % 2], 0))
        done(wait(stream))

    def picture() -> Picture:
        out = np.empty((height, width, 4), np.uint8)
        done(driver.cuMemcpyDtoH(out.ctypes.data, memory[0], size))
        return out

    return draw, picture


def by_weft(width: int, height: int) -> tuple[Callable[[int], None], Callable[[], Picture]]:
    """The same by weft."""
    backend, shown = CudaVisual(), list[Any]()
    begin = by_backend(backend, width, height)

    def draw(number: int) -> None:
        shown[:] = [begin(number)]
        backend.sync()

    return draw, lambda: np.asarray(as_array(shown[0]))


_KINDS = {"with constants": False, "with inputs": True}


def ways_of_cuda(width: int, height: int) -> list[Way]:
    """weft, and those by hand."""
    theirs = (Way(kind, kind, *by_hand(width, height, turned)) for kind, turned in _KINDS.items())
    return [Way("weft", "weft", *by_weft(width, height)), *theirs]


def of_opengl(name: str, like: str, made: OpenGLWay) -> Way:
    return Way(name, like, made.draw, made.picture, made.context.enter, made.context.leave)


def ways_of_opengl(width: int, height: int) -> list[Way]:
    """weft, and those by hand: drawn, and in tiles."""
    from benchmarks.peers import fifty_opengl

    ours, renderer = fifty_opengl.by_weft(width, height)
    print(renderer, flush=True)
    ways = [of_opengl("weft", "weft", ours)]
    for filtered, (kind, turned) in itertools.product((False, True), _KINDS.items()):
        like = kind + (" and the card's filter" if filtered else "")
        for side in (0, *fifty_opengl.TILES):
            name = f"{like}, " + (f"in tiles of {side}×{side}" if side else "drawn")
            ways.append(of_opengl(name, like, fifty_opengl.by_hand(width, height, turned, side, filtered)))
    return ways


WAYS = {"cuda": ways_of_cuda, "opengl": ways_of_opengl}


@contextmanager
def entered(way: Way) -> Iterator[None]:
    way.enter()
    try:
        yield
    finally:
        way.leave()


def share_apart(ways: Sequence[Way]) -> float:
    """Draws the first frames, and gives the share of the pixels in which weft and another differ, at the most."""
    shown = []
    for way in ways:
        with entered(way):
            for number in range(_BEFORE):
                way.draw(number)
            shown.append(way.picture().astype(int))
    ours, *theirs = shown
    return max(float((np.abs(ours - each).max(axis=2) > 2).mean()) for each in theirs)


def turn(way: Way, first: int) -> float:
    """Draws the frames from this one on, and gives the median of what one took, in milliseconds."""
    taken = []
    with entered(way):
        for number in range(first, first + _FRAMES):
            before = time.perf_counter()
            way.draw(number)
            taken.append(time.perf_counter() - before)
    return statistics.median(taken) * 1e3


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n", 1)[0])
    options.add_argument("--by", choices=sorted(WAYS), default="cuda", help="what draws")
    options.add_argument("--size", default="1280x720", help="of the picture")
    options.add_argument("--rounds", type=int, default=8)
    asked = options.parse_args()
    ways = WAYS[asked.by](*map(int, asked.size.split("x")))
    print(f"{share_apart(ways):.4%} of the pixels differ by more than 2 levels", flush=True)
    times: dict[str, list[float]] = {way.name: [] for way in ways}
    for number in range(asked.rounds):
        for way in ways:
            times[way.name].append(turn(way, _BEFORE + number * _FRAMES))
    weft, medians = times["weft"], {name: statistics.median(found) for name, found in times.items()}
    kinds = dict.fromkeys(way.like for way in ways if way.like != "weft")
    if len(ways) > 1 + len(kinds):
        print(f"{asked.size}: " + "; ".join(f"{name} {taken:.4f} ms" for name, taken in medians.items()), flush=True)
    for kind in kinds:
        name = min((way.name for way in ways if way.like == kind), key=medians.__getitem__)
        ratio = statistics.median(theirs / ours for ours, theirs in zip(weft, times[name], strict=True))
        told = f"weft {medians['weft']:.4f} ms, by hand {name} {medians[name]:.4f} ms a frame"
        print(f"{asked.size}: {told}; weft / by hand {ratio:.2f}", flush=True)


if __name__ == "__main__":
    main()
