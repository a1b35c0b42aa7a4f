"""patches/bench/fifty.weft: its frames by weft, and what the programs by hand share: what varies with the time alone,
and the numbers that can be turned."""

from __future__ import annotations

import ctypes
import math
import re
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from benchmarks.peers.figures import AXES, FIRST_SHIFT
from weft.backends.base import Backend, Env
from weft.backends.prologue import prologue_code
from weft.cli.arguments import compile_file, shipped_patches
from weft.contexts import ContextTable
from weft.runtime.films.offline import initial_inputs
from weft.runtime.program.coordinator import ProgramRunner

# When the first frame is, in seconds.
START = 1.7


class Moment(ctypes.Structure):
    """What varies with the time alone, as the programs have it."""

    _names = ("kick", "bar", "flow_x", "flow_y", "wave", "ring", "cloud", "turn")
    _fields_ = [
        *((name, ctypes.c_float) for name in _names), ("waves", ctypes.c_float * 4), ("grain", ctypes.c_uint),
        ("blink", ctypes.c_uint),
    ]  # fmt: skip


def _part(number: int) -> int:
    product = (number * AXES["z"].multiplier + AXES["z"].start) & 0xFFFF_FFFF
    return product ^ product >> FIRST_SHIFT


def fill(moment: Moment, frame: int) -> None:
    """The numbers of a frame, in double precision."""
    at = START + frame / 60
    beats = at * 128 / 60
    kick = (1 - beats % 1) ** 3
    moment.kick, moment.bar, moment.flow_x, moment.flow_y = kick, beats / 4 % 1, at * 0.2, -at * 0.1
    moment.wave, moment.ring, moment.cloud = (kick * 0.15 - at * 0.6) % 1, at * 0.05 % 1, at * 0.03 % 1
    moment.turn = math.remainder(at * 0.1, math.tau)
    moment.waves[:] = [math.remainder(at * n, math.tau) for n in range(1, 5)]
    moment.grain, moment.blink = _part(frame), _part(math.floor(beats))


_NUMBER = re.compile(r"(?<!define )\bN\(([^)]*)f\)")


def turned_text(text: str, declared: str) -> tuple[str, npt.NDArray[np.float32]]:
    """A program whose numbers are inputs, declared so (`{}` is how many there are), and what they are."""
    numbers = np.array(_NUMBER.findall(text), np.float32)
    places = iter(range(numbers.size))
    return declared.format(numbers.size) + "\n" + _NUMBER.sub(lambda _: f"numbers[{next(places)}]", text), numbers


def by_backend(backend: Backend, width: int, height: int) -> Callable[[int], object]:
    """Begins to draw a frame by its number, as a performance does after a moment, and gives its picture."""
    made = compile_file(str(shipped_patches() / "bench" / "fifty.weft"), settings={"width": width, "height": height})
    (unit,) = made.units
    inputs, runner = initial_inputs(made.patch), ProgramRunner(ContextTable())
    ready = backend.compile_subgraph(unit, Env(width, height, inputs=inputs), runner)
    code = prologue_code(unit.kernel)
    if code is not None:
        backend.upgrade(ready, code)

    def begin(number: int) -> object:
        env = Env(width, height, number, START + number / 60, 1 / 60, inputs)
        return backend.execute_subgraph(ready, env, runner)

    return begin
