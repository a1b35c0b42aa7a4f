"""Checkpoints: what a program remembers before a frame, found without drawing the frames before it.

If a program remembers only numbers, the code that advances them does not depend on the size of the picture: it runs
once a frame, before any pixel. So a copy of the program that draws a single pixel remembers the same numbers, to the
bit. Programs that remember pictures have no checkpoints, since advancing these costs as much as drawing.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping

from weft.backends.base import Env
from weft.backends.launch import StateMemory
from weft.backends.null import NullCompiled
from weft.codegen.kernel import Kernel, Unit
from weft.contexts import COMPUTE, VISUAL
from weft.ir.rates import Rate
from weft.runtime.program.program import LoadedProgram

ONE_PIXEL = (1, 1)
"""The size (width, height) of a program that only advances."""

Checkpoint = Mapping[str, StateMemory]
"""What each subgraph remembers, by its name."""


def has_checkpoints(program: LoadedProgram) -> bool:
    """Whether a program remembers only numbers from frame to frame that do not depend on any of its images. It must not
    read sounds."""
    return all(map(_remembers_numbers, (part.unit for part in program.runner.all_parts)))


def _remembers_numbers(unit: Unit) -> bool:
    known = unit.subgraph.context in (VISUAL.name, COMPUTE.name)
    reads_images = any(slot.image for kernel in unit.points.values() for slot in kernel.slots)
    return known and unit.films is None and not reads_images and _advances_numbers(unit.kernel)


def _advances_numbers(kernel: Kernel) -> bool:
    """Whether all slots that outlive a tick are numbers, and are computed without images."""
    if any(slot.image and slot.outlives for slot in kernel.slots):
        return False
    prologues = (kernel.section(rate) for rate in Rate if rate <= Rate.FRAME)
    return not any(node.op == "sample" for section in prologues for node in section.walk())


def checkpoints(
    program: LoadedProgram, env: Env, fps: float, wanted: Iterable[int],
    passed: Callable[[float], object] = lambda share: None,
) -> Iterator[tuple[int, bytes]]:
    """The state of a program of the size ONE_PIXEL before each of the wanted frames, as bytes for `restore`, with the
    number of the frame. It begins with frame 0. `env` is that of the whole picture. `passed` is called with the share
    that is done."""
    small = env._replace(width=1, height=1, seen=env.size)
    numbers = sorted(set(wanted))
    at = 0
    for number in numbers:
        for tick in range(at, number):
            passed(tick / numbers[-1])
            time = tick / fps
            pictures = program.pictures_at(time, exactly=True)
            program.runner.run(small._replace(tick=tick, abstime=time, pictures=pictures))
        at = number
        yield number, pickle.dumps(_remembered(program))


def _remembered(program: LoadedProgram) -> Checkpoint:
    parts = (part for part in program.runner.parts if part.unit.kernel.remembers)
    return {part.unit.subgraph.name: part.backend.remembered(part.compiled).read() for part in parts}


def restore(program: LoadedProgram, checkpoint: bytes) -> None:
    """Lets a program continue from a checkpoint of the same program."""
    found: Checkpoint = pickle.loads(checkpoint)
    for part in program.runner.parts:
        memory = found.get(part.unit.subgraph.name)
        if memory is not None:
            part.backend.adopt(part.compiled, [NullCompiled(part.unit, memory)], copy=True)
