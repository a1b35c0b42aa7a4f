"""The interface of a backend: how a subgraph is compiled, run and read on the device that runs its context."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from operator import attrgetter, itemgetter
from struct import Struct
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from weft.backends.executors import Refusal
from weft.backends.launch import (
    SINCE, TIME, Array, Even, Floats, Getter, Launch, Picture, StateMemory, StreamCoords, Value
)
from weft.beats import BPM, Beats
from weft.codegen.kernel import Kernel, Unit
from weft.contexts import ContextSpec, is_smoothed
from weft.errors import Diagnostic, WeftError
from weft.ir.rates import Rate
from weft.media.frames import length_of
from weft.names import StrandRef, is_sound

Scope: TypeAlias = Literal["thread", "block", "device", "system"]


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """One device that a backend could run on. An unavailable device gives the `reason` and a `remedy`. Memory is in
    bytes, 0 if unknown; a `unified` device shares the computer's memory."""

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
    """Whether the CPU does the work of a graphics card."""

    @classmethod
    def absent(cls, library: str, reason: str, remedy: str | None = None) -> DeviceInfo:
        """What stands for the devices of a library where it has none."""
        return cls(0, library, available=False, reason=reason, remedy=remedy, platform=library)


@dataclass(frozen=True)
class Capabilities:
    """What a backend can do. `sources` are the kinds of media its kernels can sample. `fp64`, `fp16` and `max_elements`
    are deprecated: they say nothing that weft asks for."""

    simd: bool = False
    threads: bool = False
    fp64: InitVar[bool] = False
    fp16: InitVar[bool] = False
    handles: bool = False
    state: bool = True
    feedback: bool = True
    sources: frozenset[str] = frozenset()
    max_elements: InitVar[int] = 1 << 28

    def __post_init__(self, fp64: bool, fp16: bool, max_elements: int) -> None:
        if fp64 or fp16 or max_elements != 1 << 28:
            words = "leave out fp64, fp16 and max_elements of Capabilities, which mean nothing any more"
            warnings.warn(words, DeprecationWarning, stacklevel=3)


class DeviceLostError(WeftError):
    """A device that ran a context has permanently failed, for a `reason`. Its work can continue on another device."""

    def __init__(self, context: str, reason: str) -> None:
        super().__init__(Diagnostic.of("device-lost", f"{context} cannot continue: {reason}"))
        self.context = context
        self.reason = reason


class Handle(ABC):
    """A strand whose values stay on a device, where other programs can bind them without a transfer."""

    device: object
    """Identifies the device: only programs on an equal device can bind the values."""

    @abstractmethod
    def values_at(self, coords: Mapping[str, Value], env: Env, coordinator: Coordinator) -> Any:
        """A value for each of a list of coordinates, left on the device in the form that its programs bind. Does not
        wait. Raises DeviceLostError if the device fails."""


@dataclass(frozen=True, slots=True)
class Bindable:
    """A getter of a strand's values. Programs on the same device can bind them instead."""

    read: Getter
    device: object
    bind: Callable[..., Any]
    """Takes the arguments of `read`, and returns what can be bound."""

    def __call__(self, *coords: Value) -> Value:
        return self.read(*coords)

    def bound(self, device: object, *coords: Value) -> Any:
        """What a program on `device` can bind; None if the strand is on another device."""
        return self.bind(*coords) if device is self.device else None


class PictureHandle(ABC):
    """A finished picture on a device. A window on the same device shows it without a copy. All other code reads it."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int, int]:
        """Height, width and 4."""

    @abstractmethod
    def read(self) -> npt.NDArray[np.uint8]:
        """The pixels [height, width, RGBA], row 0 on top, which do not change later. Raises DeviceLostError."""

    def lending(self) -> Callable[[], npt.NDArray[np.uint8]]:
        """Begins to read the pixels. Returns a function that gives them, to be called once, by the same thread, before
        the tick after the next one. After the next tick it hardly waits. What it gives may be memory of the device,
        which any thread may look at, and should drop soon. Both may raise DeviceLostError."""
        return self.read

    def copier(self) -> Callable[[Array], None]:
        """The same, as a function that copies the pixels into an array."""
        lent = self.lending()
        return lambda into: np.copyto(into, lent())


Values: TypeAlias = "Array | PictureHandle"
"""What a context makes of the outputs of a subgraph."""


def as_array(values: Values) -> Array:
    """The values as an array. May wait for the device."""
    return values.read() if isinstance(values, PictureHandle) else values


@dataclass(frozen=True, slots=True)
class SampleBlock:
    """Consecutive samples of a stream that are computed together: `samples` for each channel, `rate` a second. `first`
    counts from the start of the performance. `controls` are smoothed, by the names of their coordinates: a value for
    each sample, or [channels, samples] where each channel has its own."""

    first: int
    samples: int
    rate: float
    channels: int = 2
    controls: Mapping[str, Floats] = field(default_factory=dict)

    @property
    def times(self) -> Floats:
        """The time of each sample, in seconds. It does not depend on how a stream is cut into blocks."""
        return self.even.times(self.samples)

    @property
    def even(self) -> Even:
        return Even(self.first, self.rate)

    def coords(self, kernel: Kernel, channel: int = 0) -> Mapping[str, Value]:
        """The coordinates of a channel's samples. If the kernel takes the time by blocks, so do these."""
        smoothed = {name: values if values.ndim == 1 else values[channel] for name, values in self.controls.items()}
        others = {"channel": float(channel), **smoothed}
        if not any(name == SINCE or (name, rate) == (TIME, Rate.FRAME) for name, rate in kernel.coords):
            return StreamCoords(self.even, self.samples, others)
        return {TIME: self.first / self.rate, SINCE: np.arange(self.samples) / self.rate, **others}

    def differs(self, kernel: Kernel) -> bool:
        """Whether a kernel's values depend on the channel, because it reads the number of the channel or a control with
        a value for each channel."""
        own = {name for name, values in self.controls.items() if values.ndim > 1}
        return any(name == "channel" or name in own for name, _ in kernel.coords)


# The uniforms that are fields of the environment, and these fields; the time can be read with them.
_OWN = {"width": "width", "height": "height", "absframe": "tick", "dt": "dt", TIME: "abstime"}

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Env(NamedTuple):
    """Everything that is the same for all subgraphs in one tick: the size of the picture, the time, and the values from
    outside. (Each frame has one, and a tuple is made in half the time that a dataclass takes.)

    `level` is the level of the picture that is drawn instead of the whole one: level 1 has half of its width and
    height. `tick` counts frames from 0, `abstime` and `dt` are seconds. `inputs` has mouse, keys and parameters by the
    names that kernels use. `block` is the block that contexts which stream compute. `loop_stopped` is called with the
    name of a kernel whose loop reached its limit. `warn` is called with something that a device can no longer do, if
    the performance can continue. `seen` is the size (width, height) that a program reads as that of the picture, where
    it draws another one.
    """

    width: int
    height: int
    tick: int = 0
    abstime: float = 0.0
    dt: float = 0.0
    inputs: Mapping[str, float] = _NOTHING
    pictures: Mapping[str, Picture] = _NOTHING
    block: SampleBlock | None = None
    threads: int = 1
    level: int = 0
    loop_stopped: Callable[[str], None] = lambda kernel: None
    warn: Callable[[Diagnostic], None] = lambda problem: None
    seen: tuple[int, int] | None = None

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the picture."""
        return self.width, self.height

    def uniform(self, name: str) -> float:
        """The value of a uniform. It is 0 for an input that is absent, such as an unknown key, and the usual tempo if
        no beats are given. For a sound, it is the number of its samples."""
        if self.seen is not None and name in ("width", "height"):
            return float(self.seen[name == "height"])
        own = _OWN.get(name)
        if own is not None:
            return float(getattr(self, own))
        if name == BPM:
            return Beats.of(self.inputs).bpm_at(self.abstime)
        found = self.inputs.get(name)
        if found is not None:
            return float(found)
        if is_sound(name):
            return length_of(self.pictures[name])
        return Beats.of(self.inputs).inputs.get(name, 0.0)

    def constant_controls(self, kernel: Kernel, samples: int) -> dict[str, Floats]:
        """The kernel's smoothed controls, held constant over `samples` samples."""
        return {name: np.full(samples, self.uniform(name)) for name, _ in kernel.coords if is_smoothed(name)}


class UniformReader:
    """Reads some uniforms of environments, as `Env.uniform` gives them, in less time."""

    def __init__(self, names: Sequence[str]) -> None:
        own, given = [name for name in names if name in _OWN], [name for name in names if name not in _OWN]
        # Getters give a tuple only of more than one thing.
        own += ["width", "height"] if len(own) == 1 else []
        given += given if len(given) == 1 else []
        self.names = (*own, *given)
        """Those that `packed` gives, in its order, and perhaps others."""
        self._fields = attrgetter(*(_OWN[name] for name in own)) if own else lambda env: ()
        self._items = itemgetter(*given) if given else None
        self._has_items = BPM not in given
        self._pack = Struct(f"{len(self.names)}d").pack

    def packed(self, env: Env) -> bytes:
        """Their values, in double precision, in one row."""
        if self._has_items and env.seen is None:
            if self._items is None:
                return self._pack(*self._fields(env))
            try:
                return self._pack(*self._fields(env), *self._items(env.inputs))
            except KeyError:  # of an input that is absent
                pass
        return self._pack(*map(env.uniform, self.names))


class Compiled(Protocol):
    """A subgraph that is ready to run, with its state."""

    unit: Unit

    @property
    def memory(self) -> StateMemory:
        """The state of its slots."""

    def run(self, memory: StateMemory, launch: Launch, sync: bool = True, out: Array | None = None) -> Array:
        """One tick: computes the outputs and advances the state. Returns `out`, or an array of its own choice."""

    def value_at(self, ref: StrandRef, launch: Launch) -> Array:
        """An exposed strand at the points of a launch, as it was in the last finished tick."""

    def dump(self) -> str:
        """The program as readable text, in the form that the device takes."""


class Coordinator(Protocol):
    """Routes values between backends. A reader names a strand, and need not know which backend computes it."""

    def expose(self, ref: StrandRef, backend: Backend, compiled: Compiled) -> None:
        """Lets others read a strand that a backend computes."""

    def lookup(self, ref: StrandRef) -> Getter | Bindable:
        """A getter of a strand's values, which may be `Bindable`. Raises KeyError if the strand is not exposed."""


class Reading(NamedTuple):
    """A strand that a subgraph exposes, and the coordinates to read it at."""

    ref: StrandRef
    compiled: Compiled
    coords: Mapping[str, Value]


class MemoryPool:
    """An arena: one block from which arrays are allocated. The block is freed when the last of them is released."""

    def __init__(self, block: npt.NDArray[np.uint8]) -> None:
        """`block` is zeroed memory of the computer, or memory that a device shares with it."""
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
        """Copies an array of the device to another of the same shape, which nothing else may be using."""
        np.copyto(target, source)


class DeviceProbe(ABC):
    """Lists the devices of a backend, and opens a backend on one."""

    @classmethod
    @abstractmethod
    def probe(cls) -> list[DeviceInfo]:
        """The devices that it could run on. Never raises: an unavailable device has a reason."""

    @classmethod
    def may_have_hardware(cls) -> bool:
        """Whether there can be a hardware device. Answers at once, without opening anything."""
        return True

    @classmethod
    def spec_of(cls, spec: ContextSpec) -> ContextSpec:
        """The context, as programs have to be compiled for this backend and for its fallbacks."""
        return spec

    def open(self) -> None:
        """Initializes the device early, so that the first subgraph does not wait for it. Raises DeviceLostError."""

    def set_offline(self) -> None:
        """Lets its device take as long as it does from now on, since nobody watches: it makes a film."""

    def draw_in(self, graphics: Any) -> None:
        """Uses the graphics of a window, if it `draws`. Called before anything is compiled."""

    def window_device(self) -> Any:
        """The device with which a window has to draw to show its pictures without a copy; None if there is none."""
        return None


class KernelCompiler(ABC):
    """Compiles a unit to what the device runs, in tiers: the first is ready sooner, later ones run faster.

    `compile_subgraph`, `tier` and `upgrade` may be called from any thread.
    """

    def unsuitable(self, unit: Unit) -> str | None:
        """The reason why a unit has to run on another backend; None if it may run on this one. Needs no device, and is
        the same for the same unit in every process."""
        return None

    def translate(self, unit: Unit, tier: int = 1) -> object:
        """The part of compiling that needs neither device nor memory. Its result can be pickled, and `compile_subgraph`
        finds it as `unit.code`. That is None if the backend has no such part, or if it was not run beforehand. A higher
        tier takes longer to compile and runs faster; its code is passed to `upgrade`. None if there is no such tier."""
        return None

    def is_at_hand(self, unit: Unit) -> bool:
        """Whether a unit can run soon. False if a compiler of the device has to make a program for it first, which
        takes tenths of a second."""
        return True

    def code_serves_again(self, unit: Unit) -> bool:
        """Whether a translated unit will get better code that also serves units with other constants."""
        return False

    def refusal(self, code: object) -> str | None:
        """The reason why `translate` failed, if `code` is for a fallback; else None."""
        return None

    def refusals(self) -> Sequence[Refusal]:
        """The subgraphs that fell back to another executor since the last call. May be called from any thread."""
        return ()

    def tier(self, compiled: Compiled) -> int | None:
        """The tier of a subgraph's code, from 1 (0 for a stand-in); None if there is only one."""
        return None

    def has_second_tier(self, unit: Unit) -> bool:
        """Whether faster code than that of the first tier will be made for a unit. May walk through all of it."""
        return False

    def upgrade(self, compiled: Compiled, code: object) -> None:
        """Runs code of a higher tier, made by `translate`, from the next tick on."""

    @abstractmethod
    def compile_subgraph(self, unit: Unit, env: Env, coordinator: Coordinator) -> Compiled:
        """Makes a subgraph ready to run, with zeroed memory. Raises WeftError if the device cannot take it."""

    def compile_at_once(self, unit: Unit, env: Env, coordinator: Coordinator) -> Compiled:
        """The same as `compile_subgraph`, for a performance that is waiting: the result may run slower. It is then of
        tier 0 until `upgrade` replaces its code."""
        return self.compile_subgraph(unit, env, coordinator)


class KernelRunner(ABC):
    """Runs subgraphs tick by tick, and reads the strands that they expose."""

    @abstractmethod
    def capabilities(self) -> Capabilities: ...

    @abstractmethod
    def execute_subgraph(self, compiled: Compiled, env: Env, coordinator: Coordinator) -> Values:
        """Runs one tick, and returns what the context makes of the outputs: a picture, or a list of numbers. The result
        is valid until the second tick after this one begins. The same object as in the last tick means that nothing has
        changed. Raises DeviceLostError if the device fails."""

    def try_out(self, compiled: Compiled, env: Env, coordinator: Coordinator, raw: bool = False) -> Values | None:
        """Runs one tick without any effect outside `compiled`, to see whether it fails. Returns the same as
        `execute_subgraph`, or with `raw` the plain outputs [outputs, height, width]; None if the backend has no
        trials."""
        return None

    @abstractmethod
    def get_value_at(
        self, ref: StrandRef, compiled: Compiled, coords: Mapping[str, Value], env: Env, coordinator: Coordinator
    ) -> Array:
        """The values of an exposed strand at coordinates (numbers or arrays that broadcast together), in one call."""

    def get_values_at(self, reads: Sequence[Reading], env: Env, coordinator: Coordinator) -> list[Array]:
        """Several strands, each at its own coordinates. Waits for the device once."""
        return [self.get_value_at(read.ref, read.compiled, read.coords, env, coordinator) for read in reads]

    def get_handle(self, ref: StrandRef, compiled: Compiled) -> Handle | None:
        """A handle with which programs on the same device bind a strand without a copy; None if it can only be read."""
        return None

    def sync(self, scope: Scope = "device") -> None:
        """Waits until all launches within the scope are finished. A CPU has finished when a call returns."""

    def barrier(self) -> None:
        """Keeps later launches from starting before the earlier ones are finished."""


class DeviceMemory:
    """The state of subgraphs, and general memory of the device. The defaults suit a CPU."""

    def remembered(self, compiled: Compiled) -> StateMemory:
        """The state of a subgraph in the memory of the computer, from which another backend can continue. Raises
        WeftError if it cannot be read from the device any more."""
        return compiled.memory

    def remembered_into(self, compiled: Compiled, into: StateMemory) -> StateMemory:
        """The same for the memory `into`, whose arrays a copy may have where they fit."""
        return self.remembered(compiled)

    def adopt(self, compiled: Compiled, old: Iterable[Compiled], copy: bool = False) -> list[str]:
        """Takes over the state of subgraphs of the previous program. Returns the keys of the slots that continue. The
        old subgraphs may run again only if this is a `copy`."""
        return [key for other in old for key in compiled.memory.adopt(other.memory, copy)]

    def allocate(self, compiled: Compiled, old: Iterable[Compiled]) -> None:
        """Allocates the memory of a subgraph, except what it will share with `old` ones when it adopts their state."""
        compiled.memory.allocate([other.memory for other in old])

    def copy_ahead(self, compiled: Compiled, old: Iterable[Compiled]) -> None:
        """Does the slow part of an `adopt` with `copy` early. The `old` subgraphs may be running, and any thread may
        call this."""
        for other in old:
            compiled.memory.copy_ahead(other.memory)

    def is_finite(self, compiled: Compiled, key: str) -> bool:
        """Whether all of the latest values of a slot are finite numbers. To be called between two ticks."""
        return compiled.memory.is_finite(key)

    def begin_again(self, compiled: Compiled, keys: Sequence[str]) -> list[str]:
        """Sets the values in some slots that are not finite to 0. Returns the keys of the slots that it changes. To be
        called between two ticks."""
        return compiled.memory.begin_again(keys)

    def alloc(self, shape: Sequence[int], dtype: npt.DTypeLike = np.float32) -> Any:
        """A zeroed array in the device's memory, of the device's own type."""
        return self.pool(int(np.prod(shape)) * np.dtype(dtype).itemsize).take(shape, dtype)

    def free(self, memory: Any) -> None:
        """Frees an array from `alloc`. Dropping the last reference does the same."""

    def upload(self, data: Array, memory: Any) -> None:
        """Copies to the device."""
        np.copyto(memory, data)

    def download(self, memory: Any) -> Array:
        """Copies from the device; waits until the array has been written."""
        return np.array(memory)

    def pool(self, size: int) -> MemoryPool:
        """An arena of `size` bytes on the device, with copies within it."""
        return MemoryPool(np.zeros(size, np.uint8))


class Backend(DeviceProbe, KernelCompiler, KernelRunner, DeviceMemory):
    """Runs the subgraphs of one context on one kind of device. A new backend implements five abstract methods: `probe`,
    `capabilities`, `compile_subgraph`, `execute_subgraph` and `get_value_at`.

    The process that compiles has backends of its own, for `translate` and, in the trial of a program, for
    `compile_subgraph` and `try_out`. Methods that may be called from any thread say so; all others are called from the
    thread that runs the context.
    """

    name: ClassVar[str]
    context: ClassVar[str]
    spec: ClassVar[ContextSpec | None] = None
    """A context that this backend adds."""
    requires: ClassVar[tuple[str, ...]] = ()
    draws: ClassVar[bool] = False
    """Whether it can draw with the graphics of a window (`draw_in`)."""
    api: ClassVar[Any] = None
    """The kind of graphics that it draws with; None for any."""

    @classmethod
    def on(cls, device: DeviceInfo, executor: str = "") -> Backend:
        """A backend for one of the devices that `probe` found. `executor` names the executor, for backends that have
        several. Backends with several devices override this."""
        return cls()

    def rehearsing(self) -> Backend:
        """The backend that runs trials in a process without the device: itself, if it needs none."""
        return self
