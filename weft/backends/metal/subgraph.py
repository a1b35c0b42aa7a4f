"""A subgraph on a device of Metal: its kernels and their launches, its state, its pictures, and its samples."""

from __future__ import annotations

import re
import sys
import time
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from weft import apple
from weft.backends import hardware
from weft.backends.base import DeviceInfo
from weft.backends.card import (
    CardCompiled, CardPicture, CardPictures, SampleChunk, ShaderCode, SoundCode, one_sample, refused
)
from weft.backends.executors import Stillness
from weft.backends.launch import Floats, Launch, StateMemory, shape_of_level
from weft.backends.prologue import Fetch, LaunchPrologue, PointReads, PrologueBlock, StrandReads, line
from weft.backends.vm import Machine
from weft.codegen import msl
from weft.codegen.clike.shader import BufferUse, Shader
from weft.codegen.kernel import Kernel, Unit
from weft.codes.rows import InternalError
from weft.ir.expr import StateSlot
from weft.media.frames import floats
from weft.names import StrandRef

# The libraries for Metal, and the devices that they list: Apple's own interface if pyobjc is installed, else
# metalcompute. The other modules use both in the same way.

_REMEDY = "pip install pyobjc-framework-Metal pyobjc-framework-Quartz"


class MetalError(InternalError):
    """Metal is not available, or failed. Carries the reason, in plain words."""


def devices() -> list[DeviceInfo]:
    """The devices; never raises. The memory of a device is its working set."""
    try:
        found = _by_apple() if apple.is_installed() else _by_metalcompute()
    except MetalError as failure:
        return [_missing(str(failure), _REMEDY if _is_mac() else None)]
    except Exception as failure:
        return [_missing(f"Metal does not start ({failure})", None)]
    return found or [_missing("Metal has no device", None)]


def open_device(index: int) -> Any:
    """A device. Raises MetalError."""
    try:
        return apple.AppleDevice(index) if apple.is_installed() else metalcompute().Device(index)
    except MetalError:
        raise
    except Exception as failure:
        raise MetalError(f"the device {index} cannot be opened ({failure})") from failure


def metalcompute() -> Any:
    """The module metalcompute. Raises MetalError."""
    try:
        import metalcompute
    except ImportError as failure:
        reason = "neither pyobjc's Metal nor metalcompute is installed" if _is_mac() else "Metal exists only on Macs"
        raise MetalError(reason) from failure
    return metalcompute


def _by_apple() -> list[DeviceInfo]:
    """The devices. All of a working set that this process has not allocated counts as free."""
    found = apple.frameworks().metal.MTLCopyAllDevices()
    return [
        _described("pyobjc", at, device.name(), (total := int(device.recommendedMaxWorkingSetSize())),
                   total - int(device.currentAllocatedSize()), device.hasUnifiedMemory())
        for at, device in enumerate(found)
    ]  # fmt: skip


def _by_metalcompute() -> list[DeviceInfo]:
    # The fields are: name, working set in bytes, rate of transfers, and whether memory is unified.
    found = [tuple(device)[:4] for device in metalcompute().get_devices()]
    return [
        _described("metalcompute", at, name, total, min(total, hardware.memory_free()) if unified else 0, unified)
        for at, (name, total, _, unified) in enumerate(found)
    ]


def _described(driver: str, index: int, name: str, total: int, free: int, unified: bool) -> DeviceInfo:
    return DeviceInfo(
        index, str(name), memory_total=total, memory_free=max(0, free), unified=bool(unified), compute="MSL 2.3",
        driver=driver, platform="Metal",
    )  # fmt: skip


def _is_mac() -> bool:
    return sys.platform == "darwin"


def _missing(reason: str, remedy: str | None) -> DeviceInfo:
    return DeviceInfo(0, "Metal", available=False, reason=reason, remedy=remedy, platform="Metal")


# Pictures are drawn to this many buffers in turn.
_BUFFERS = 2


class MetalMemory(StateMemory):
    """State with the rings of images in buffers that the device shares with the CPU. Reading one waits for the last
    launch."""

    def __init__(self, device: Any, slots: Iterable[StateSlot], shape: tuple[int, int]) -> None:
        """Zeroed memory. Raises what the device raises if it has no room."""
        super().__init__(slots, shape)
        self.buffers: dict[str, Any] = {}
        self.running: Any = None
        """The last launches, until they are waited for."""
        for slot in self.slots.values():
            if slot.image:
                wanted = (slot.depth + 1, slot.planes, *shape_of_level(shape, slot.level))
                self.buffers[slot.key] = device.buffer(4 * int(np.prod(wanted)))
                ring = np.frombuffer(self.buffers[slot.key], np.float32).reshape(wanted)
                ring[...] = 0.0
                self._rings[slot.key] = ring

    def _is_here(self, slot: StateSlot) -> bool:
        return not slot.image

    def ring(self, key: str) -> Floats:
        self.wait()
        return super().ring(key)

    def wait(self) -> None:
        """Waits until the last launch has finished."""
        self.running = None

    def _adopt_slot(self, key: str, old: StateMemory, copy: bool) -> None:
        self.wait()
        shares = isinstance(old, MetalMemory)
        super()._adopt_slot(key, old, copy or (key in self.buffers and not shares))
        if isinstance(old, MetalMemory) and key in self.buffers and self._rings[key] is old._rings[key]:
            self.buffers[key] = old.buffers[key]


# A kernel on the device, and its launches.

# Finds the line in the compiler's errors: "program_source:12:3: error: …".
_LINE = re.compile(r":(\d+):\d+: (?:fatal )?error: (.*)")


class PictureBuffers(CardPictures[Any]):
    """The pictures that kernels sample, in buffers of a device."""

    def __init__(self, device: Any) -> None:
        super().__init__(lambda picture, _: uploaded(device, floats(picture)))


@dataclass
class DeviceResult:
    """Values left on the device: their buffer, and the launch that fills it. Releasing the launch waits for them."""

    buffer: Any
    run: Any


class ComputeProgram:
    """A compiled kernel, with its buffers of inputs."""

    def __init__(self, device: Any, kernel: Kernel, shader: Shader) -> None:
        """Raises WeftError with the compiler's words if it refuses the text."""
        self.shader = shader
        self.prologue = LaunchPrologue(kernel)
        self._strands = StrandReads(kernel)
        self._device = device
        self._finished = int(kernel.sweep == "points")
        self._block = PrologueBlock(shader)
        self._limit = device.buffer(4)
        try:
            self._function = device.kernel(shader.text).function(shader.entry)
        except Exception as failure:  # the type of the error belongs to the library, which need not be there
            found = _LINE.search(str(failure))
            words, at = (found[2], int(found[1])) if found else (str(failure), 0)
            raise refused(shader, "Metal", words, at, "--dump-msl") from failure

    def launch(self, machine: Machine, memory: StateMemory, launch: Launch, sources: PictureBuffers, out: Any) -> Any:
        """One launch, for which `machine` has run the prologue. Reads strands of other subgraphs. Releasing the result
        waits for the end of the launch. Does not advance the memory. Raises MetalError."""
        words = self._block.packed(machine, self._finished)
        answers = self._strands.answers(machine, self._device)
        device = self._device

        def buffer_of(use: BufferUse, key: str) -> Any:
            match use:
                case BufferUse.FRAME:
                    return uploaded(device, words)
                case BufferUse.OUT:
                    return out
                case BufferUse.COORDINATE:
                    return uploaded(device, line(launch.coords[key], launch.shape[1]))
                case BufferUse.RING if isinstance(memory, MetalMemory):
                    return memory.buffers[key]
                case BufferUse.RING | BufferUse.HISTORY:
                    with np.errstate(all="ignore"):
                        return uploaded(device, memory.ring(key).astype(np.float32))
                case BufferUse.PICTURE:
                    return sources.on_card(key, launch.pictures[key])
                case BufferUse.EXTERNAL_READ:
                    answer = answers[key]
                    return answer.buffer if isinstance(answer, DeviceResult) else uploaded(device, answer)
                case BufferUse.LIMIT:
                    return self._limit

        try:
            given = [buffer_of(*buffer) for buffer in self.shader.buffers]
            # The answers on the device are kept until this launch has finished.
            return self._function(launch.shape[0] * launch.shape[1], *given), answers
        except Exception as failure:
            raise MetalError(f"a launch fails ({failure})") from failure

    def stopped(self) -> bool:
        """Whether a loop of a finished launch has reached its limit since the last call."""
        if not self.shader.stops:
            return False
        limit = np.frombuffer(self._limit, np.uint32)
        found = bool(limit[0])
        limit[0] = 0
        return found


def uploaded(device: Any, data: npt.NDArray[Any]) -> Any:
    """A new buffer with the bytes of an array."""
    return device.buffer(np.ascontiguousarray(data).reshape(-1).view(np.uint8))


# Pictures and numbers.


class MetalPicture(CardPicture):
    """A picture in a buffer, which may still be drawn to."""

    def __init__(self, memory: MetalMemory, buffer: Any, shape: tuple[int, int]) -> None:
        super().__init__(shape)
        self._memory = memory
        self.buffer = buffer
        """The pixels drawn so far."""

    def fetched(self) -> npt.NDArray[np.uint8]:
        self._memory.wait()
        return np.frombuffer(self.buffer, np.uint8).reshape(self.shape).copy()


class MetalCompiled(CardCompiled):
    """A subgraph in memory shared with the device."""

    memory: MetalMemory

    def __init__(
        self, unit: Unit, code: ShaderCode, device: Any, sources: PictureBuffers, shape: tuple[int, int]
    ) -> None:
        """Has zeroed state. Raises WeftError if the compiler refuses a kernel, MetalError if memory runs out."""
        self.unit = unit
        self.code = code
        self.grid = ComputeProgram(device, unit.kernel, code.grid.drawn)
        self._stages = [
            ComputeProgram(device, kernel, stage.drawn)
            for kernel, stage in zip(unit.kernel.stages, code.stages, strict=True)
        ]
        self._device = device
        self._sources = sources
        self._wide: ComputeProgram | None = None if code.grid.drawn.packed else self.grid
        self._exposed: dict[StrandRef, tuple[PointReads, ComputeProgram | None]] = {}
        self.stillness = Stillness(unit.kernel)
        self.drawn = None
        try:
            self.memory = MetalMemory(device, unit.kernel.slots, shape)
            self._buffers = deque(device.buffer(4 * shape[0] * shape[1]) for _ in range(_BUFFERS))
        except Exception as failure:
            raise MetalError(f"there is no memory for a picture of {shape[1]}×{shape[0]} ({failure})") from failure

    def draw(self, launch: Launch) -> MetalPicture | None:
        buffer = self._buffers[0]
        self._start(self.grid, launch, buffer)
        self._buffers.rotate(1)
        return MetalPicture(self.memory, buffer, launch.shape) if self.unit.kernel.outputs else None

    def planes(self, launch: Launch) -> Floats:
        if self._wide is None:
            self._wide = ComputeProgram(self._device, self.unit.kernel, msl.pixels(self.unit.kernel, packed=False))
        shape = (len(self.unit.kernel.outputs), *launch.shape)
        out = self._device.buffer(4 * max(1, int(np.prod(shape))))
        self._start(self._wide, launch, out)
        self.memory.wait()
        if self._wide.stopped():
            launch.loop_stopped()
        return np.frombuffer(out, np.float32)[: int(np.prod(shape))].reshape(shape).copy()

    def _start(self, program: ComputeProgram, launch: Launch, out: Any) -> None:
        """Launches a tick when the previous one has finished."""
        self.memory.wait()
        # A device finishes one launch before the next one that reads what it writes.
        running = []
        for each in (*self._stages, program):
            part = launch.at_level(each.prologue.kernel.level)
            machine = each.prologue.begin(self.memory, part)
            if each.stopped() or machine.loop_stopped:
                launch.loop_stopped()
            running.append(each.launch(machine, self.memory, part, self._sources, out))
        self.memory.running = running
        self.memory.advance()

    def ask(self, ref: StrandRef, launch: Launch) -> Fetch:
        """Requests a strand as `CardCompiled.ask` does. The CPU computes small numbers of points."""
        reads, program = self._reading(ref)
        self.memory.wait()
        on_card = None if program is None else lambda: self._points(program, launch)
        return reads.ask(launch, on_card, self.memory)

    @property
    def prologue(self) -> LaunchPrologue:
        return self.grid.prologue

    @property
    def device(self) -> object:
        return self._device

    def can_bind(self, ref: StrandRef) -> bool:
        return ref in self.code.points

    def bound_at(self, ref: StrandRef, launch: Launch) -> DeviceResult:
        _, program = self._reading(ref)
        if program is None:
            raise ValueError("the CPU computes it")
        return self._result(program, launch)

    def _reading(self, ref: StrandRef) -> tuple[PointReads, ComputeProgram | None]:
        if ref not in self._exposed:
            kernel, shader = self.unit.points[ref], self.code.points.get(ref)
            program = ComputeProgram(self._device, kernel, shader) if shader is not None else None
            self._exposed[ref] = PointReads(kernel, shared=True), program
        return self._exposed[ref]

    def _points(self, program: ComputeProgram, launch: Launch) -> Fetch:
        """Requests the values [outputs, points] of a program over points."""
        left = self._result(program, launch)

        def fetch() -> Floats:
            left.run = None  # waits for it
            if program.stopped():
                launch.loop_stopped()
            shape = len(program.shader.outputs), launch.shape[1]
            return np.frombuffer(left.buffer, np.float32).reshape(shape).copy()

        return fetch

    def _result(self, program: ComputeProgram, launch: Launch) -> DeviceResult:
        """The values of a program over points, left on the device. Does not wait."""
        out = self._device.buffer(4 * max(1, len(program.shader.outputs) * launch.shape[1]))
        machine = program.prologue.begin(self.memory, launch)
        if machine.loop_stopped:
            launch.loop_stopped()
        return DeviceResult(out, program.launch(machine, self.memory, launch, self._sources, out))


# Sound: a chunk is requested, and its samples are taken when they are needed.

# The value of a sample until the device has computed it: a NaN with bits that no computation gives.
_NOT_YET = np.uint32(0x7FA5_5A2A)

# Releasing a run waits for it with Python's lock held, which would hold up the sound. So the samples are polled, for at
# most this many seconds, with the lock free in between.
_PATIENCE = 0.1
_LOOK = 0.0002


class MetalSampleChunk(SampleChunk):
    """Samples in memory shared with the device."""

    def __init__(self, first: int, program: ComputeProgram, values: Sequence[Any], count: int) -> None:
        """`values` are the buffers of each channel."""
        super().__init__(first, (len(values), len(program.shader.outputs), count))
        self.runs: list[Any] = []
        """The launches that fill the buffers."""
        self._program = program
        self._values = values

    def fetched(self) -> Sequence[npt.NDArray[np.float32]]:
        size = self.shape[1] * self.count
        found = [np.frombuffer(values, np.float32, size) for values in self._values]
        last = time.monotonic() + _PATIENCE
        while any((values.view(np.uint32) == _NOT_YET).any() for values in found) and time.monotonic() < last:
            time.sleep(_LOOK)
        self.runs.clear()  # waits for the rest of them
        self.stopped = self._program.stopped() or self.stopped
        return found


class MetalSounding:
    """The program of a sound."""

    def __init__(self, device: Any, sources: PictureBuffers, kernel: Kernel, code: SoundCode) -> None:
        """Computes one sample, since a driver may finish a program only at its first use. Raises WeftError if the
        compiler refuses the program, and MetalError if the device fails."""
        self._device = device
        self._sources = sources
        self._code = code
        self._program = ComputeProgram(device, kernel, code.shader)
        self._memory = StateMemory(())
        self.begin(0, [code.named(one_sample(kernel, 0.0))]).samples()

    def begin(self, first: int, launches: Sequence[Launch]) -> MetalSampleChunk:
        """Starts to compute a chunk, with a launch for each channel; does not wait. Raises MetalError."""
        count = launches[0].shape[1]
        values = [self._empty(count) for _ in launches]
        chunk = MetalSampleChunk(first, self._program, values, count)
        for launch, out in zip(launches, values, strict=True):
            machine = self._program.prologue.begin(self._memory, launch)
            chunk.runs.append(self._program.launch(machine, self._memory, launch, self._sources, out))
            chunk.stopped |= machine.loop_stopped
        return chunk

    def _empty(self, count: int) -> Any:
        """A buffer for `count` samples of a channel, none of which has been computed."""
        size = max(1, len(self._code.shader.outputs) * count)
        try:
            return uploaded(self._device, np.full(size, _NOT_YET))
        except Exception as failure:
            raise MetalError(f"there is no memory for {size} samples ({failure})") from failure
