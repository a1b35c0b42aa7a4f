"""Kernels as shaders, drawn by a process with an OpenGL context of its own: what the machines do, on a graphics card or
on a driver that draws with the processor."""

from __future__ import annotations

import os
import pickle
import struct
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import pytest

from weft.backends.executor import NOTHING
from weft.backends.interpreter import Interpreter, Machine
from weft.backends.launch import Launch, Reals
from weft.backends.memory import StateMemory
from weft.codegen import glsl
from weft.codegen.base import Kernel
from weft.codegen.clike.shader import Extent, Past, Shader, Uniform
from weft.codegen.native.layout import Head, Scalar
from weft.ir.rates import Rate

_ONCE = (Rate.CONSTANT, Rate.FRAME)
_FORMS = {"real": "f", "int": "i", "bits": "I", "truth": "I"}


class Graphics:
    """The process, and calls of its methods. Raises RuntimeError where one of them fails."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.gl_worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def __call__(self, name: str, *arguments: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        pickle.dump((name, arguments), self._process.stdin)
        self._process.stdin.flush()
        done, answer = pickle.load(self._process.stdout)
        if not done:
            raise RuntimeError(answer)
        return answer

    def __enter__(self) -> Graphics:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(20)
        self._process.stdout.close()


@pytest.fixture(scope="module")
def graphics() -> Iterator[Graphics]:
    """A process that draws. Where there is no OpenGL without a display, the test is skipped, but in CI it fails."""
    with Graphics() as process:
        try:
            process("about")
        except (RuntimeError, EOFError) as problem:
            fail_or_skip = pytest.fail if os.environ.get("CI") and sys.platform == "linux" else pytest.skip
            fail_or_skip(f"no OpenGL without a display: {problem}")
        yield process


class GlExecutor:
    """Makes kernels ready as shaders; see `weft.backends.executor.Executor`."""

    name = "glsl"
    widest = np.float32

    def __init__(self, graphics: Graphics, modern: bool = False) -> None:
        self._graphics = graphics
        self._modern = modern

    def translate(self, kernel: Kernel, packed: bool, tier: int = 1) -> None:
        return None

    def load(self, kernel: Kernel, codes: Mapping[bool, object] = NOTHING) -> GlExecutable:
        return GlExecutable(kernel, self._graphics, self._modern)


class GlExecutable:
    """A kernel as shaders. The images that a memory holds at first are handed to the process that draws, and stay
    there."""

    tier = None

    def __init__(self, kernel: Kernel, graphics: Graphics, modern: bool) -> None:
        self.kernel = kernel
        self._graphics = graphics
        self._modern = modern
        self._interpreter = Interpreter(replace(kernel, sections=tuple(s for s in kernel.sections if s.rate in _ONCE)))
        self._programs: dict[bool, tuple[Shader, int]] = {}
        self._stages: WeakKeyDictionary[StateMemory, int] = WeakKeyDictionary()

    def planes(self, memory: StateMemory, launch: Launch) -> Reals:
        if self.kernel.sweep == "points":
            return self._points(memory, launch)
        targets = self._draw(memory, launch, packed=False)
        planes = np.concatenate([np.moveaxis(target, -1, 0) for target in targets]) if targets else np.zeros((0, 1, 1))
        return planes[: len(self.kernel.outputs)]

    def rgba8(self, memory: StateMemory, launch: Launch, out: npt.NDArray[np.uint8]) -> None:
        (out[...],) = self._draw(memory, launch, packed=True)

    def _program(self, packed: bool) -> tuple[Shader, int]:
        if packed not in self._programs:
            points = self.kernel.sweep == "points"
            shader = glsl.points(self.kernel) if points else glsl.fragment(self.kernel, packed, self._modern)
            self._programs[packed] = shader, self._graphics("compile", shader)
        return self._programs[packed]

    def _draw(self, memory: StateMemory, launch: Launch, packed: bool) -> list[npt.NDArray[Any]]:
        shader, program = self._program(packed)
        if memory not in self._stages:
            rings = {slot.key: memory.ring(slot.key) for slot in self.kernel.slots if slot.image}
            self._stages[memory] = self._graphics("stage", program, launch.shape, rings)
        with np.errstate(all="ignore"):
            machine = self._interpreter.begin(memory, launch)
        heads = {slot.key: int(memory.cell(slot.key)) for slot in self.kernel.slots}
        targets, written, stopped = self._graphics(
            "draw", self._stages[memory], self._block(shader, machine), heads, self._histories(shader, memory),
            dict(launch.pictures),
        )  # fmt: skip
        for key, cell in written.items():
            memory.ring(key)[heads[key]] = cell  # for those who read a strand across
        memory.advance()
        if stopped or machine.loop_stopped:
            launch.loop_stopped()
        found: list[npt.NDArray[Any]] = targets
        return found

    def _points(self, memory: StateMemory, launch: Launch) -> Reals:
        shader, program = self._program(packed=False)
        with np.errstate(all="ignore"):
            machine = self._interpreter.begin(memory, launch)
        count = launch.shape[1]
        coords = [np.broadcast_to(np.asarray(launch.coords[name], np.float32), count).copy() for name in shader.coords]
        rings = {b.key: memory.ring(b.key).reshape(-1, *memory.shape) for b in shader.images}
        values: Reals = self._graphics(
            "points", program, self._block(shader, machine), coords, rings, self._histories(shader, memory),
            dict(launch.pictures),
        )  # fmt: skip
        return np.broadcast_to(values, (len(shader.outputs), count))[:, np.newaxis]

    def _histories(self, shader: Shader, memory: StateMemory) -> dict[str, Reals]:
        return {bound.key: memory.ring(bound.key).astype(np.float32).reshape(-1) for bound in shader.histories}

    def _block(self, shader: Shader, machine: Machine) -> bytes:
        """The numbers of a launch."""
        with np.errstate(all="ignore"):
            return b"".join(_packed(uniform, self._number(uniform, machine)) for uniform in shader.uniforms)

    def _number(self, uniform: Uniform, machine: Machine) -> float:
        memory, finished = machine.memory, int(self.kernel.sweep == "points")
        match uniform.source:
            case Scalar("uniform", str(name)):
                return float(machine.launch.uniforms[name])
            case Scalar("coord", str(name)):
                return float(machine.coords[name])
            case Scalar("local", int(number)):
                return float(machine.locals[number])
            case Extent.ROWS:
                return machine.launch.shape[0]
            case Extent.COLUMNS | Extent.POINTS:
                return machine.launch.shape[1]
            case Head(slot):
                return float(memory.cell(slot, finished))
            case Past(slot, plane, k):
                return float(memory.ring(slot)[memory.cell(slot, k + finished), plane])
        raise LookupError(f"{uniform} is given nowhere")


def _packed(uniform: Uniform, value: float) -> bytes:
    form = _FORMS[uniform.kind]
    number = np.float32(value) if form == "f" else int(value)
    return struct.pack(f"<{form}", number)
