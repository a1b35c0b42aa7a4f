"""A subgraph on a device that computes into buffers: its kernels and their launches, its pictures, and its samples."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.backends.base import DeviceLostError, Env
from weft.backends.card import (
    CardCompiled, CardPicture, CardPictures, Dialect, SampleChunk, ShaderCode, SoundCode, one_sample, refused
)
from weft.backends.compute.arrays import ComputeMemory, memory_on
from weft.backends.compute.interface import (
    Arrival, CompileError, ComputeDevice, Run, SharedDevice, as_bytes, failing, failure
)
from weft.backends.executors import Stillness
from weft.backends.launch import Floats, Launch, StateMemory
from weft.backends.prologue import (
    CoordinateRows, Fetch, LaunchPrologue, PointReads, PrologueBlock, PrologueMachine, StrandReads
)
from weft.backends.records import FrameRecord, prepared
from weft.backends.vm import Machine
from weft.codegen.clike.fields import NumberedKernel
from weft.codegen.clike.shader import BufferUse, Shader
from weft.codegen.kernel import Kernel, Unit
from weft.media.frames import floats
from weft.names import StrandRef

# Pictures are drawn to this many buffers in turn.
_BUFFERS = 2


class PictureBuffers(CardPictures[Any]):
    """The pictures that kernels sample, in buffers of a device."""

    def __init__(self, device: ComputeDevice) -> None:
        super().__init__(lambda picture, before: device.send(as_bytes(floats(picture)), before))


class Work:
    """A launch, with what it needs until it is done."""

    __slots__ = ("_kept", "_limit", "_stopped", "is_done", "run")

    def __init__(self, run: Run, kept: object, limit: Arrival | None, stopped: bool) -> None:
        """`limit` brings the number that says whether a loop reached its limit; `stopped` is whether one of the
        prologue did."""
        self.run = run
        self.is_done = False
        """Whether it has been waited for."""
        self._kept: object = kept
        self._limit = limit
        self._stopped = stopped

    def wait(self) -> None:
        """Waits until it is done. Raises ComputeError."""
        if self.is_done:
            return
        try:
            self.run.wait()
        except Exception as reason:
            raise failure("a launch fails", reason) from reason
        self.is_done = True
        self._kept = None

    def stopped(self) -> bool:
        """Whether a loop has reached its limit, the first time that this is asked; waits until that is known."""
        limit, self._limit = self._limit, None
        stopped, self._stopped = self._stopped, False
        if limit is None:
            return stopped
        with failing("a launch fails"):
            return bool(limit().any()) or stopped


@dataclass(frozen=True)
class DeviceResult:
    """Values left on the device: their buffer, and the work that fills it."""

    buffer: Any
    work: Work


class ComputeProgram:
    """A compiled kernel."""

    def __init__(self, device: ComputeDevice, kernel: Kernel, shader: Shader) -> None:
        """Raises WeftError with the compiler's words if it refuses the text, and ComputeError if the device fails."""
        self.shader = shader
        self.prologue = LaunchPrologue(kernel)
        self._strands = StrandReads(kernel)
        self._device = device
        self._finished = int(kernel.sweep == "points")
        self._block = PrologueBlock(shader)
        self._numbers: Any = None
        """The numbers of the last launch, on the device."""
        self._rows = CoordinateRows[Any]()
        try:
            with failing("a program cannot be made"):
                self._kernel = device.compile(shader.text, shader.entry)
        except CompileError as failure:
            raise refused(shader, device.library, failure.words, failure.line, device.option) from failure

    def start(
        self, memory: StateMemory, launch: Launch, sources: PictureBuffers, out: Any, threads: int | None = None
    ) -> Work:
        """Starts a launch, of one thread for each element or of more `threads`: runs its prologue, and reads strands of
        other subgraphs. Does not advance the memory. Raises ComputeError."""
        machine = self.prologue.begin(memory, launch)
        words = self._block.packed(machine, self._finished)
        answers = self._strands.answers(machine, self._device)
        return self._launched(machine, words, answers, sources, out, threads)

    def _launched(
        self, machine: Machine, words: npt.NDArray[np.uint32], answers: Any, sources: PictureBuffers, out: Any,
        threads: int | None,
    ) -> Work:  # fmt: skip
        device, memory, launch = self._device, machine.memory, machine.launch
        limits: list[Any] = []

        def buffer_of(use: BufferUse, key: str) -> Any:
            match use:
                case BufferUse.FRAME:
                    self._numbers = device.numbers(words, self._numbers)
                    return self._numbers
                case BufferUse.OUT:
                    return out
                case BufferUse.COORDINATE:
                    return self._rows.row(launch.coords[key], launch.shape[1], lambda row, _: device.send(row))
                case BufferUse.RING if isinstance(memory, ComputeMemory):
                    return memory.buffers[key]
                case BufferUse.RING | BufferUse.HISTORY:
                    with np.errstate(all="ignore"):
                        return device.send(memory.ring(key).astype(np.float32))
                case BufferUse.PICTURE:
                    return sources.on_card(key, launch.pictures[key])
                case BufferUse.EXTERNAL_READ:
                    answer = answers[key]
                    return answer.buffer if isinstance(answer, DeviceResult) else device.send(answer)
                case BufferUse.LIMIT:
                    limits.append(device.send(np.zeros(1, np.uint32)))
                    return limits[0]

        with failing("a launch fails"):
            given = [buffer_of(*buffer) for buffer in self.shader.buffers]
            run = device.launch(self._kernel, threads or math.prod(launch.shape), given)
            limit = device.read(limits[0], run) if limits else None
        # Values on the device that other launches compute are kept with what computes them.
        return Work(run, (given, answers), limit, machine.loop_stopped)

    def record(
        self, machine: PrologueMachine, shape: tuple[int, int], rings: Sequence[str]
    ) -> FrameRecord | None:
        """The record of its launches over a shape, into a picture and rings; None if it cannot have one."""
        uses = [each.use for each in self.shader.buffers]
        if uses != [BufferUse.FRAME, BufferUse.OUT, *[BufferUse.RING] * len(rings)]:
            return None
        record = FrameRecord.of(self.prologue.kernel, self.shader, machine, shape)
        if record is None:
            return None
        calls = self._device.calls(self._kernel, math.prod(shape), record.words, 1 + len(rings))
        if calls is None:
            return None
        record.makes(calls)
        return record

    def rehearse(self, device: ComputeDevice, shape: tuple[int, int]) -> None:
        """Launches the threads of a shape, of which one computes something, since a driver may finish a program only at
        its first use. Raises ComputeError."""
        kernel = self.prologue.kernel
        memory = memory_on(device, kernel.slots, (1, 1))
        with failing("a launch fails"):
            out = device.allocate(4 * max(4, len(self.shader.outputs)))
        alone = one_sample(kernel, 0.0)
        self.start(memory, alone, PictureBuffers(device), out, threads=math.prod(shape)).wait()


# Pictures and numbers.


class ComputePicture(CardPicture):
    """A picture in a buffer, which may still be drawn to."""

    def __init__(
        self, context: str, device: ComputeDevice, buffer: Any, work: Work, shape: tuple[int, int]
    ) -> None:
        super().__init__(shape)
        self.device = device
        self._context = context
        self._work = work
        self.buffer = buffer
        """The pixels drawn so far."""

    def fetched(self) -> npt.NDArray[np.uint8]:
        return self._begun(self.device.read)()

    def lending(self) -> Callable[[], npt.NDArray[np.uint8]]:
        return self.read if self._pixels is not None else self._begun(self.device.lending)

    def _begun(self, read: Callable[[Any, Run], Arrival]) -> Callable[[], npt.NDArray[np.uint8]]:
        with self._telling:
            arrival = read(self.buffer, self._work.run)

        def fetch() -> npt.NDArray[np.uint8]:
            with self._telling:
                return arrival().reshape(self.shape)

        return fetch

    @property
    def _telling(self) -> AbstractContextManager[None]:
        """Tells of a failure in a `with` block as a loss of the device."""
        return failing("a picture cannot be read", lambda reason: DeviceLostError(self._context, reason))


class ComputeCompiled(CardCompiled):
    """A subgraph in buffers of a device."""

    memory: ComputeMemory

    def __init__(
        self, unit: Unit, code: ShaderCode, device: ComputeDevice, sources: PictureBuffers, shape: tuple[int, int],
        dialect: Dialect,
    ) -> None:
        """Has zeroed state. Raises WeftError if the compiler refuses a kernel, and ComputeError if memory runs out or
        the device fails."""
        self.unit = unit
        self.code = code
        self.grid = ComputeProgram(device, unit.kernel, code.grid.drawn)
        self._stages = [
            ComputeProgram(device, kernel, stage.drawn)
            for kernel, stage in zip(unit.kernel.stages, code.stages, strict=True)
        ]
        self._device = device
        self._sources = sources
        self._dialect = dialect
        self._shape = shape
        self._wide: ComputeProgram | None = None if code.grid.drawn.packed else self.grid
        self._exposed: dict[StrandRef, tuple[PointReads, ComputeProgram | None]] = {}
        self._ticks: deque[list[Work]] = deque()
        """The launches of ticks that may be under way."""
        # What machine code needs is made here, where no frame waits for it.
        self.may_record = device.by_record and code.grid.drawn.packed and prepared() is not None
        self._rings = [each.key for each in code.grid.drawn.buffers if each.use == BufferUse.RING]
        self._used: list[Any] = []
        """Their buffers, if a record is ready for the next frame."""
        self.stillness = Stillness(unit.kernel)
        self.drawn = None
        self.memory = memory_on(device, unit.kernel.slots, shape)
        with failing(f"there is no memory for a picture of {shape[1]}×{shape[0]}"):
            self._buffers = deque(device.allocate(4 * math.prod(shape)) for _ in range(_BUFFERS))
        # What others read of it is made ready as well, since they read it in a frame.
        exposed = [program for ref in code.points if (program := self._reading(ref)[1]) is not None]
        if device.late:
            for program in (*self._stages, self.grid):
                program.rehearse(device, shape)
            for program in exposed:
                program.rehearse(device, (1, 1))

    def draw(self, launch: Launch) -> ComputePicture | None:
        self.forget_record()
        self._fit(launch.shape)
        buffer = self._buffers[0]
        work = self._start(self.grid, launch, buffer)
        self._buffers.rotate(1)
        if not self.unit.kernel.outputs:
            return None
        return ComputePicture(self.unit.subgraph.context, self._device, buffer, work, launch.shape)

    def new_record(self, machine: PrologueMachine) -> FrameRecord | None:
        return self.grid.record(machine, self._shape, self._rings)

    def draw_by(self, record: FrameRecord, inputs: bytes, env: Env) -> ComputePicture:
        calls, memory, buffer = record.calls, self.memory, self._buffers[0]
        try:
            if not record.is_ready(memory):
                self._used = [memory.buffers[key] for key in self._rings]
                calls.use(self._used)
                calls.draw_to(buffer)
                record.make_ready(memory)
            calls.begin()
            stopped = record.draw(inputs, memory)
            run: Run = calls.end()
        except Exception as reason:
            raise failure("a launch fails", reason) from reason
        # From here on, the device is at work.
        work = Work(run, (buffer, self._used), None, stopped)
        self._buffers.rotate(1)
        self._follow([work])
        calls.draw_to(self._buffers[0])
        record.make_ready(memory)
        # For the next tick, which then begins with its launch.
        self._make_room(lambda: env.loop_stopped(self.unit.kernel.name))
        return ComputePicture(self.unit.subgraph.context, self._device, buffer, work, self._shape)

    def _fit(self, shape: tuple[int, int]) -> None:
        """Makes room for a picture of another shape, such as a program draws that fades out. Raises ValueError if it
        remembers images: a device would write beyond the ends of their memory."""
        if shape == self._shape:
            return
        if any(slot.image for slot in self.unit.kernel.slots):
            (height, width), (rows, columns) = shape, self._shape
            raise ValueError(f"{self.unit.kernel.name}: a launch of {width}×{height} on memory for {columns}×{rows}")
        with failing(f"there is no memory for a picture of {shape[1]}×{shape[0]}"):
            self._buffers = deque(self._device.allocate(4 * math.prod(shape)) for _ in range(_BUFFERS))
        self._shape, self._record = shape, None

    def planes(self, launch: Launch) -> Floats:
        kernel = self.unit.kernel
        self._fit(launch.shape)
        if self._wide is None:
            shader = self._dialect.over_picture(kernel, False, NumberedKernel.of(kernel)).drawn
            self._wide = ComputeProgram(self._device, kernel, shader)
        shape = (len(kernel.outputs), *launch.shape)
        with failing(f"there is no memory for {shape[0]} pictures of {shape[2]}×{shape[1]}"):
            out = self._device.allocate(4 * max(1, math.prod(shape)))
        work = self._start(self._wide, launch, out)
        if any(each.stopped() for each in self._ticks[-1]):
            launch.loop_stopped()
        return self._floats(DeviceResult(out, work), shape)()

    def _floats(self, result: DeviceResult, shape: tuple[int, ...]) -> Callable[[], Floats]:
        """Begins to read an array of this shape."""
        with failing("values cannot be read"):
            arrival = self._device.read(result.buffer, result.work.run)

        def fetch() -> Floats:
            with failing("values cannot be read"):
                return arrival().view(np.float32)[: math.prod(shape)].reshape(shape)

        return fetch

    def _start(self, program: ComputeProgram, launch: Launch, out: Any) -> Work:
        """Launches a tick once few enough of the earlier ones are under way. Returns the work of the program."""
        self._make_room(launch.loop_stopped)
        works: list[Work] = []
        for each in (*self._stages, program):
            part = launch.at_level(each.prologue.kernel.level)
            works.append(each.start(self.memory, part, self._sources, out))
        self._follow(works)
        return works[-1]

    def _make_room(self, loop_stopped: Callable[[], None]) -> None:
        """Waits until few enough ticks are under way."""
        while len(self._ticks) > self._device.ahead:
            for work in self._ticks.popleft():
                work.wait()
                if work.stopped():
                    loop_stopped()

    def _follow(self, works: list[Work]) -> None:
        """Notes the works of a tick, and ends it."""
        self._ticks.append(works)
        self.memory.running = works[-1]
        self.memory.advance()

    def ask(self, ref: StrandRef, launch: Launch) -> Fetch:
        """Requests a strand as `CardCompiled.ask` does. The CPU computes small numbers of points."""
        reads, program = self._reading(ref)
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
            self._exposed[ref] = PointReads(kernel, isinstance(self._device, SharedDevice)), program
        return self._exposed[ref]

    def _points(self, program: ComputeProgram, launch: Launch) -> Fetch:
        """Requests the values [outputs, points] of a program over points."""
        result = self._result(program, launch)
        begun = self._floats(result, (len(program.shader.outputs), launch.shape[1]))

        def fetch() -> Floats:
            values = begun()
            if result.work.stopped():
                launch.loop_stopped()
            return values

        return fetch

    def _result(self, program: ComputeProgram, launch: Launch) -> DeviceResult:
        """The values of a program over points, left on the device. Does not wait."""
        with failing(f"there is no memory for {launch.shape[1]} points"):
            out = self._device.allocate(4 * max(1, len(program.shader.outputs) * launch.shape[1]))
        return DeviceResult(out, program.start(self.memory, launch, self._sources, out))


# Sound: a chunk is requested, and its samples are taken when they are needed.


class ComputeChunk(SampleChunk):
    """Samples on their way from the device, with the work of each channel."""

    def __init__(self, first: int, shape: tuple[int, int, int], works: Sequence[Work], arrivals: Sequence[Arrival]):
        super().__init__(first, shape)
        self._works = works
        self._arrivals = arrivals

    def fetched(self) -> Sequence[npt.NDArray[np.float32]]:
        size = self.shape[1] * self.count
        with failing("samples cannot be read"):
            found = [arrival().view(np.float32)[:size] for arrival in self._arrivals]
        self.stopped = any(work.stopped() for work in self._works)
        self._works, self._arrivals = (), ()
        return found


class ComputeSounding:
    """The program of a sound."""

    def __init__(self, device: ComputeDevice, sources: PictureBuffers, kernel: Kernel, code: SoundCode) -> None:
        """Computes one sample, since a driver may finish a program only at its first use. Raises WeftError if the
        compiler refuses the program, and ComputeError if the device fails."""
        self._device = device
        self._sources = sources
        self._code = code
        self._program = ComputeProgram(device, kernel, code.shader)
        self._memory = StateMemory(())
        self.begin(0, [code.named(one_sample(kernel, 0.0))]).samples()

    def begin(self, first: int, launches: Sequence[Launch]) -> ComputeChunk:
        """Starts to compute a chunk, with a launch for each channel; does not wait. Raises ComputeError."""
        outputs, count = len(self._code.shader.outputs), launches[0].shape[1]
        works, arrivals = [], []
        for launch in launches:
            with failing(f"there is no memory for {outputs * count} samples"):
                out = self._device.samples(outputs * count)
            works.append(self._program.start(self._memory, launch, self._sources, out))
            with failing("samples cannot be read"):
                arrivals.append(self._device.read_samples(out, works[-1].run))
        return ComputeChunk(first, (len(launches), outputs, count), works, arrivals)
