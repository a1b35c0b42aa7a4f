"""The interface of a backend: how a subgraph is made ready, run and read, on whatever device runs its context."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from weft.backends.executor import Refusal
from weft.backends.launch import SINCE, TIME, Even, Floats, Getter, Launch, Picture, StreamCoords, Value
from weft.backends.memory import StateMemory
from weft.codegen.kernel import Kernel, Unit
from weft.contexts import ContextSpec, is_smoothed
from weft.errors import Diagnostic, WeftError
from weft.ir.rates import Rate
from weft.names import StrandRef

Scope: TypeAlias = Literal["thread", "block", "device", "system"]


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """One device that a backend could run on. An unavailable one says why, and how to get it (`remedy`). Memory is in
    bytes, 0 where it is not known; one that is `unified` has that of the computer."""

    index: int
    name: str
    available: bool = True
    reason: str | None = None
    remedy: str | None = None
    memory_total: int = 0
    memory_free: int = 0
    unified: bool = True
    compute: str | None = None
    driver: str | None = None
    platform: str | None = None
    simd: str | None = None
    cores: int = 0
    software: bool = False
    """Whether it is the processor that does the work of a graphics card."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a backend can do. `sources` are the kinds of media its kernels can sample."""

    simd: bool = False
    threads: bool = False
    fp64: bool = False
    fp16: bool = False
    handles: bool = False
    state: bool = True
    feedback: bool = True
    sources: frozenset[str] = frozenset()
    max_elements: int = 1 << 28


class DeviceLostError(WeftError):
    """A device that ran a context has failed and will not come back: what it was doing can go on elsewhere. `reason`
    says what happened."""

    def __init__(self, context: str, reason: str) -> None:
        super().__init__(Diagnostic("error", "device-lost", f"{context} cannot go on: {reason}"))
        self.context = context
        self.reason = reason


class Handle(ABC):
    """A strand on a device, whose values programs there can bind, instead of being sent them."""

    device: object
    """What is the same for all who can bind it."""

    @abstractmethod
    def values_at(self, coords: Mapping[str, Value], env: Env, coordinator: Coordinator) -> Any:
        """A value for each of a list of coordinates, left on the device: in the form that programs there bind. Nothing
        is waited for. Raises DeviceLostError if the device fails."""


class NoHandle(Handle):
    """A strand whose values cannot be bound, only read."""

    def values_at(self, coords: Mapping[str, Value], env: Env, coordinator: Coordinator) -> Any:
        raise TypeError("there is nothing to bind")


@dataclass(frozen=True, slots=True)
class Bindable:
    """Reads a strand like any getter; and whoever runs on the device that has it can bind it there."""

    read: Getter
    device: object
    bind: Callable[..., Any]
    """Takes what `read` does, and gives what can be bound."""

    def __call__(self, *coords: Value) -> Value:
        return self.read(*coords)

    def bound(self, device: object, *coords: Value) -> Any:
        """What a program on a device can bind; None for one elsewhere."""
        return self.bind(*coords) if device is self.device else None


class PictureHandle(ABC):
    """A finished picture that lies on a device. Whoever knows the device can show it without a copy; everybody else
    reads it."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int, int]:
        """Height, width and 4."""

    @abstractmethod
    def read(self) -> npt.NDArray[np.uint8]:
        """The pixels [height, width, RGBA], row 0 on top, which stay as they are. Raises DeviceLostError."""


Values: TypeAlias = "npt.NDArray[Any] | PictureHandle"
"""What a context makes of the outputs of a subgraph."""


def as_array(values: Values) -> npt.NDArray[Any]:
    """The same as an array, for which a device may have to be waited for."""
    return values.read() if isinstance(values, PictureHandle) else values


@dataclass(frozen=True, slots=True)
class SampleBlock:
    """A stretch of a stream that is computed at once: so many samples for each of the channels, `rate` of them a
    second; `first` counts from the start of the performance. `led` holds what comes from outside, by the names of the
    coordinates that it arrives as: a value for each sample, or [channels, samples] where each channel has its own."""

    first: int
    samples: int
    rate: float
    channels: int = 2
    led: Mapping[str, Floats] = field(default_factory=dict)

    @property
    def times(self) -> Floats:
        """The moment of each sample, in seconds. They do not depend on how a stream is cut into blocks."""
        return self.even.times(self.samples)

    @property
    def even(self) -> Even:
        return Even(self.first, self.rate)

    def coords(self, kernel: Kernel, channel: int = 0) -> Mapping[str, Value]:
        """What a sound is computed at; to a kernel that knows blocks, the time is given by blocks."""
        led = {name: values if values.ndim == 1 else values[channel] for name, values in self.led.items()}
        others = {"channel": float(channel), **led}
        if not any(name == SINCE or (name, rate) == (TIME, Rate.FRAME) for name, rate in kernel.coords):
            return StreamCoords(self.even, self.samples, others)
        return {TIME: self.first / self.rate, SINCE: np.arange(self.samples) / self.rate, **others}

    def differs(self, kernel: Kernel) -> bool:
        """Whether a kernel gives something else in each channel: it reads its number, or what is different in each."""
        own = {name for name, values in self.led.items() if values.ndim > 1}
        return any(name == "channel" or name in own for name, _ in kernel.coords)


@dataclass(frozen=True)
class Env:
    """What is the same for every subgraph in one tick: size of the picture, time, and the values from outside.

    `tick` counts frames from 0, `abstime` and `dt` are seconds. `inputs` has mouse, keys and parameters by the names
    that kernels read them by. `block` is what contexts that stream compute.
    `loop_stopped` is called with the name of a kernel whose loop met its limit, `warn` with what a device cannot do any
    more, for which the performance need not stop.
    """

    width: int
    height: int
    tick: int = 0
    abstime: float = 0.0
    dt: float = 0.0
    inputs: Mapping[str, float] = field(default_factory=dict)
    pictures: Mapping[str, Picture] = field(default_factory=dict)
    block: SampleBlock | None = None
    threads: int = 1
    loop_stopped: Callable[[str], None] = lambda kernel: None
    warn: Callable[[Diagnostic], None] = lambda problem: None

    def uniform(self, name: str) -> float:
        """The value of a uniform; what nobody gives (a key that is not there) is 0."""
        own = {"width": self.width, "height": self.height, "absframe": self.tick, "dt": self.dt}
        return float(own[name] if name in own else self.inputs.get(name, 0.0))

    def standing(self, kernel: Kernel, samples: int) -> dict[str, Floats]:
        """What comes to a kernel from outside, led to it sample by sample, while it stays as it is."""
        return {name: np.full(samples, self.uniform(name)) for name, _ in kernel.coords if is_smoothed(name)}


class Compiled(Protocol):
    """A subgraph that is ready to run, with its memory."""

    unit: Unit

    @property
    def memory(self) -> StateMemory:
        """What it remembers."""
        ...

    def run(
        self, memory: StateMemory, launch: Launch, sync: bool = True, out: npt.NDArray[Any] | None = None
    ) -> npt.NDArray[Any]:
        """One tick: computes the outputs and advances the state. Gives `out`, or an array of its own choice."""
        ...

    def value_at(self, ref: StrandRef, launch: Launch) -> npt.NDArray[Any]:
        """An exposed strand at the points of a launch, as it was in the tick finished last."""
        ...

    def dump(self) -> str:
        """The program in the form the device takes it, for people."""
        ...


class Coordinator(Protocol):
    """Routes values between backends. Readers ask for a strand by name and never learn who computes it."""

    def expose(self, ref: StrandRef, backend: Backend, compiled: Compiled) -> None:
        """Lets others read a strand that a backend computes."""
        ...

    def lookup(self, ref: StrandRef) -> Getter | Bindable:
        """What reads a strand: a getter of its values, maybe `Bindable`. Raises KeyError if nobody exposed it."""
        ...


class Reading(NamedTuple):
    """A strand that a subgraph exposes, and the coordinates to read it at."""

    ref: StrandRef
    compiled: Compiled
    coords: Mapping[str, Value]


class MemoryPool:
    """Memory for arrays that live together: one block, handed out piece by piece, and freed at once when nobody knows
    any of them any more."""

    def __init__(self, block: npt.NDArray[np.uint8]) -> None:
        """Of a block of zeros in the memory of this computer, or in what a device shares with it."""
        self.size = len(block)
        self._block = block
        self._used = 0

    def place(self, shape: Sequence[int], dtype: npt.DTypeLike) -> int:
        """Where the next array begins, in bytes: at a multiple of 64. Raises MemoryError when the block is full."""
        start = -(-self._used // 64) * 64
        end = start + int(np.prod(shape)) * np.dtype(dtype).itemsize
        if end > self.size:
            raise MemoryError(f"a pool of {self.size} bytes is full")
        self._used = end
        return start

    def take(self, shape: Sequence[int], dtype: npt.DTypeLike) -> Any:
        """A zeroed array within the block, as the device has arrays. Raises MemoryError when the block is full."""
        start = self.place(shape, dtype)
        return self._block[start : self._used].view(np.dtype(dtype)).reshape(tuple(shape))

    def copy(self, source: Any, target: Any) -> None:
        """Copies one array of the device to another of its shape, which nobody else sees."""
        np.copyto(target, source)


class DeviceProbe(ABC):
    """What devices there are, and how a backend is opened on one."""

    @classmethod
    @abstractmethod
    def probe(cls) -> list[DeviceInfo]:
        """The devices it could run on; never raises. An unavailable one says why."""

    @classmethod
    def may_have_hardware(cls) -> bool:
        """Whether a device that is no software can be there at all, told at once and without opening anything."""
        return True

    @classmethod
    def spec_of(cls, spec: ContextSpec) -> ContextSpec:
        """The context that it runs as its programs have to be compiled for it, and for whatever takes its place."""
        return spec

    def open(self) -> None:
        """Does beforehand what its first subgraph would have to wait for, in a process that will run subgraphs of its
        context. Raises DeviceLostError."""

    def draw_in(self, graphics: Any) -> None:
        """Takes the graphics of a window into use, if it `draws`. Before it compiles anything."""

    def window_device(self) -> Any:
        """The device whose pictures a window can show without a copy if it draws with that device itself; None where
        there is none such."""
        return None


class KernelCompiler(ABC):
    """From a unit to what the device runs, in tiers: the first is there soon, the next runs faster.

    `compile_subgraph`, `tier` and `upgrade` may be called from any thread.
    """

    def unsuitable(self, unit: Unit) -> str | None:
        """Why a unit has to run elsewhere; None if it may run here. It needs no device, and is the same for the same
        unit in every process."""
        return None

    def translate(self, unit: Unit, tier: int = 1) -> object:
        """The part of compiling that needs neither device nor memory; can be pickled. `compile_subgraph` finds it as
        `unit.code`; None if there is no such part, or it was not done beforehand. A higher tier takes longer to make,
        and runs faster: `upgrade` takes it; None where there is none."""
        return None

    def refusal(self, code: object) -> str | None:
        """Why there is no such code as `translate` was asked for, if what it gave stands for something else."""
        return None

    def refusals(self) -> Sequence[Refusal]:
        """The subgraphs that run in another way than this backend prefers, because that failed, since this was asked
        last. May be called from any thread."""
        return ()

    def tier(self, compiled: Compiled) -> int | None:
        """How much was done for the speed of a subgraph, from 1; None where there is only one way."""
        return None

    def upgrade(self, compiled: Compiled, code: object) -> None:
        """Takes what `translate` gave for a higher tier into use, from the next tick on."""

    @abstractmethod
    def compile_subgraph(self, unit: Unit, env: Env, coordinator: Coordinator) -> Compiled:
        """Makes a subgraph ready, with zeroed memory. Raises WeftError if the device cannot take it."""

    def compile_at_once(self, unit: Unit, env: Env, coordinator: Coordinator) -> Compiled:
        """The same as `compile_subgraph`, but as soon as can be, for a performance that waits for it: what is made may
        be slower, is of tier 0 then, and `upgrade` makes up for it."""
        return self.compile_subgraph(unit, env, coordinator)


class KernelRunner(ABC):
    """Runs subgraphs tick by tick, and reads the strands that they expose."""

    @abstractmethod
    def capabilities(self) -> Capabilities: ...

    @abstractmethod
    def execute_subgraph(self, compiled: Compiled, env: Env, coordinator: Coordinator) -> Values:
        """Runs one tick. What it gives is what the context makes of the outputs: a picture, a list of numbers. It stays
        as it is until the tick behind the next is begun; the same object as in the last tick says that nothing in it
        has changed. Raises DeviceLostError if the device fails."""

    def try_out(
        self, compiled: Compiled, env: Env, coordinator: Coordinator, raw: bool = False
    ) -> Values | None:
        """Runs one tick without any effect outside of `compiled`, to see whether it fails. Gives what
        `execute_subgraph` would, or (`raw`) the outputs as they are, [outputs, height, width]; None if the backend
        tries nothing out."""
        return None

    @abstractmethod
    def get_value_at(
        self, ref: StrandRef, compiled: Compiled, coords: Mapping[str, Value], env: Env, coordinator: Coordinator
    ) -> npt.NDArray[Any]:
        """An exposed strand at coordinates (numbers or arrays that broadcast together), one call for all of them."""

    def get_values_at(
        self, reads: Sequence[Reading], env: Env, coordinator: Coordinator
    ) -> list[npt.NDArray[Any]]:
        """Several strands, each at coordinates of its own. A device is waited for once."""
        return [self.get_value_at(read.ref, read.compiled, read.coords, env, coordinator) for read in reads]

    def get_handle(self, ref: StrandRef, compiled: Compiled) -> Handle:
        """What others on the same device can bind to read a strand without a copy."""
        return NoHandle()

    def sync(self, scope: Scope = "device") -> None:
        """Waits until what was launched is done, as far as the scope reaches. A CPU is done when a call returns."""

    def barrier(self) -> None:
        """Keeps what is launched later from starting before what was launched earlier is done."""


class DeviceMemory:
    """What subgraphs remember, and memory of the device for any purpose. The defaults are those of a CPU."""

    def remembered(self, compiled: Compiled) -> StateMemory:
        """What a subgraph remembers, in the memory of this computer, for another backend to go on from. Raises
        WeftError if the device does not give it away any more."""
        return compiled.memory

    def adopt(self, compiled: Compiled, old: Iterable[Compiled], copy: bool = False) -> list[str]:
        """Takes over what subgraphs of the program before remember; gives the keys of the slots that go on. These may
        only run on if it is a `copy`."""
        return [key for other in old for key in compiled.memory.adopt(other.memory, copy)]

    def copy_ahead(self, compiled: Compiled, old: Iterable[Compiled]) -> None:
        """Does beforehand what takes time of an `adopt` that copies. What is `old` may be running meanwhile; this is
        called from any thread."""
        for other in old:
            compiled.memory.copy_ahead(other.memory)

    def alloc(self, shape: Sequence[int], dtype: npt.DTypeLike = np.float32) -> Any:
        """A zeroed array in the device's memory, in a form of its own."""
        return self.pool(int(np.prod(shape)) * np.dtype(dtype).itemsize).take(shape, dtype)

    def free(self, memory: Any) -> None:
        """Gives back what `alloc` gave. To forget it does the same."""

    def upload(self, data: npt.NDArray[Any], memory: Any) -> None:
        """Copies to the device."""
        np.copyto(memory, data)

    def download(self, memory: Any) -> npt.NDArray[Any]:
        """Copies from the device; waits until it is written."""
        return np.array(memory)

    def pool(self, size: int) -> MemoryPool:
        """An arena of so many bytes on the device, with copies from place to place."""
        return MemoryPool(np.zeros(size, np.uint8))


class Backend(DeviceProbe, KernelCompiler, KernelRunner, DeviceMemory):
    """Runs the subgraphs of one context on one kind of device. A new one brings the five abstract methods: `probe`,
    `capabilities`, `compile_subgraph`, `execute_subgraph` and `get_value_at`.

    The process that compiles has backends of its own, for `translate` and, in the trial of a program, for
    `compile_subgraph` and `try_out`. What may be called from any thread says so; all else is called from the thread
    that runs the context.
    """

    name: ClassVar[str]
    context: ClassVar[str]
    spec: ClassVar[ContextSpec | None] = None
    """A context that this backend brings along."""
    requires: ClassVar[tuple[str, ...]] = ()
    draws: ClassVar[bool] = False
    """Whether it can draw with the graphics of a window (`draw_in`)."""

    @classmethod
    def on(cls, device: DeviceInfo, executor: str = "") -> Backend:
        """A backend for one of the devices that `probe` gave. `executor` says how those that have several ways to
        execute do it. One that has several devices overrides this."""
        return cls()

    def rehearsing(self) -> Backend:
        """What tries programs out in its place in a process that has no device: itself, if it needs none."""
        return self
