"""Kernels as WebAssembly, run by wasmtime: the code of browsers, on this machine, one element at a time in double
precision."""

from __future__ import annotations

import functools
import importlib.util
import threading
import weakref
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.backends.executors import (
    NOTHING, Executable, Refusal, Refusals, Refused, RefusedError, check, load_stages, refusing_failures,
    translate_stages
)
from weft.backends.launch import TIME, Even, Floats, Launch, StateMemory, channels, shape_of_level
from weft.backends.native.samples import evenly
from weft.backends.vm import ReferenceExecutable
from weft.codegen.kernel import Kernel
from weft.codegen.wasm.abi import (
    ALIGNMENT, COLUMNS, CONSTANTS, ELEMENTS, FIRST, FRAME, HEIGHT, NUMBER, ORIGIN, OUT, PADDING, RATE, ROWS, STOPPED,
    STRIDE, WIDTH, WORD, RingPlace, SampledPlace, series_time
)
from weft.codegen.wasm.sweep import WasmKernel, emit
from weft.ir.rates import Rate
from weft.media.frames import floats

# The size of a page of linear memory.
_PAGE = 65_536

# Where blocks begin: nothing is at address 0, so a missing address is noticed.
_BLOCK = 1024


def wasm_problem() -> str | None:
    """Why no WebAssembly runs on this machine, and how it would; None if it does."""
    if importlib.util.find_spec("wasmtime") is None:
        return 'wasmtime is not installed: pip install "weft-live[wasm]"'
    return None


def _closed_in_time(owner: object, made: Any) -> Any:
    """What wasmtime has made, which is closed with its owner, or before the process ends: it could not close itself
    then any more."""
    weakref.finalize(owner, made.close)
    return made


class WasmExecutor:
    """Makes kernels ready to run as WebAssembly."""

    name = "wasm"
    widest = np.float64

    def __init__(self) -> None:
        self.refusals = Refusals()

    @functools.cached_property
    def engine(self) -> Any:
        """What compiles and runs modules."""
        import wasmtime

        return _closed_in_time(self, wasmtime.Engine())

    def translate(self, kernel: Kernel, packed: bool, tier: int = 1) -> object | None:
        if packed:
            channels(len(kernel.outputs))
        if kernel.stages:
            return translate_stages(self, kernel, packed, tier)
        return _made(kernel) if tier == 1 else None

    def load(self, kernel: Kernel, codes: Mapping[bool, object] = NOTHING) -> Executable:
        if kernel.stages:
            return load_stages(self, kernel, codes)
        code = next((code for code in codes.values() if isinstance(code, WasmKernel | Refused)), None) or _made(kernel)
        if isinstance(code, Refused):
            self.refusals.add(Refusal(kernel.name, self.name, "vm", code.reason))
            return ReferenceExecutable(kernel)
        return WasmExecutable(kernel, code, self)


def _made(kernel: Kernel) -> WasmKernel | Refused:
    """The module of a kernel, or why there is none."""
    try:
        with refusing_failures("WebAssembly"):
            return emit(kernel)
    except RefusedError as failure:
        return Refused(str(failure))


class WasmExecutable(Executable):
    """A kernel as WebAssembly; see `Executable`. Its planes are in double precision."""

    tier = None

    def __init__(self, kernel: Kernel, code: WasmKernel, executor: WasmExecutor) -> None:
        self.kernel = kernel
        self._code = code
        self._executor = executor
        self._lock = threading.Lock()
        self._is_series = series_time(kernel)
        self._has_times = self._is_series and (TIME, Rate.ELEMENT) in kernel.coords

    @functools.cached_property
    def _instance(self) -> _WasmInstance:
        return _WasmInstance(self.kernel, self._code, self._executor.engine)

    def planes(self, memory: StateMemory, launch: Launch) -> Floats:
        with self._lock:
            check(self.kernel, memory, launch)
            parts = [launch] if launch.even or not self._has_times else evenly(self.kernel, memory, launch)
            out = [self._part(memory, part) for part in parts]
            if self._instance.has_stopped():
                launch.loop_stopped()
        return out[0] if len(out) == 1 else np.concatenate(out, axis=2)

    def _part(self, memory: StateMemory, launch: Launch) -> Floats:
        found = self._instance.run(memory, launch)
        if self.kernel.sweep == "grid" and self.kernel.tick != "never":
            memory.advance(launch.shape[1] if self.kernel.tick == "element" else 1)
        return found


class _WasmInstance:
    """An instance of a module, with its memory and one block in it."""

    def __init__(self, kernel: Kernel, code: WasmKernel, engine: Any) -> None:
        import wasmtime

        self._kernel = kernel
        self._layout = layout = code.layout
        self._store = _closed_in_time(self, wasmtime.Store(engine))
        self._memory = wasmtime.Memory(self._store, wasmtime.MemoryType(wasmtime.Limits(1, None)))
        self._launch: Launch | None = None
        strands = [
            wasmtime.Func(self._store, self._type_of(strand.coordinates), functools.partial(self._read, number))
            for number, strand in enumerate(layout.strands)
        ]
        module = _closed_in_time(self, wasmtime.Module(engine, code.module.encoded()))
        exports = wasmtime.Instance(self._store, module, [self._memory, *strands]).exports(self._store)
        self._functions: dict[str, Any] = {name: exports[name] for name in layout.exports}
        self._end = 0
        self._constants: list[float] | None = None
        self._places: tuple[object, dict[object, int]] = (None, {})
        self._pictures: dict[str, object] = {}
        """What has been copied to the memory."""

    @staticmethod
    def _type_of(coordinates: int) -> Any:
        import wasmtime

        number = wasmtime.ValType.f64()
        return wasmtime.FuncType([number] * coordinates, [number])

    def _read(self, number: int, *coordinates: float) -> float:
        assert self._launch is not None
        value = self._launch.strands[self._kernel.strands[number]](*coordinates)
        return float(np.asarray(value).reshape(()))

    # Memory.

    def _bytes(self) -> npt.NDArray[np.uint8]:
        length = self._memory.data_len(self._store)
        return np.ctypeslib.as_array(self._memory.data_ptr(self._store), (length,))

    def _grow(self, size: int) -> None:
        missing = size - self._memory.data_len(self._store)
        if missing <= 0:
            return
        import wasmtime

        try:
            self._memory.grow(self._store, -(-missing // _PAGE))
        except wasmtime.WasmtimeError as failure:
            words = f"{self._kernel.name} needs {size / 1e9:.1f} GB: WebAssembly has no more than 4"
            raise MemoryError(words) from failure

    def _view(self, address: int, shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        count = int(np.prod(shape)) * np.dtype(dtype).itemsize
        return self._bytes()[address : address + count].view(dtype).reshape(shape)

    def _arrange(self, memory: StateMemory, launch: Launch) -> dict[object, int]:
        """The addresses of what the block refers to, for a launch of this extent."""
        sizes = dict(self._sizes(memory, launch))
        key = tuple(sizes.items())
        if self._places[0] != key:
            at, places = _BLOCK + self._layout.size, dict[object, int]()
            for name, size in sizes.items():
                at = -(-at // ALIGNMENT) * ALIGNMENT
                places[name], at = at, at + size
            self._grow(at)
            self._bytes()[_BLOCK : _BLOCK + self._layout.size] = 0
            self._places, self._constants, self._pictures = (key, places), None, {}
        return self._places[1]

    def _sizes(self, memory: StateMemory, launch: Launch) -> Iterator[tuple[object, int]]:
        height, width = launch.shape
        for ring in self._layout.rings:
            yield ring, memory.ring(ring.key).size * NUMBER
        for line in self._layout.lines:
            yield line, NUMBER * ((height if line.rate == "row" else width) + PADDING)
        for local in self._layout.locals:
            if local.rate in ("column", "row"):
                yield local, NUMBER * (height if local.rate == "row" else width)
        for sampled in self._layout.sampled:
            yield sampled, floats(launch.pictures[sampled.name]).nbytes
        yield OUT, NUMBER * len(self._kernel.outputs) * height * width

    # Launches.

    def run(self, memory: StateMemory, launch: Launch) -> Floats:
        """The outputs of a launch [outputs, height, width]. Stores new values of slots to the memory."""
        places = self._arrange(memory, launch)
        height, width = launch.shape
        stride = height * width
        size = self._layout.size
        words = self._view(_BLOCK, (size // WORD,), np.uint32)
        numbers = self._view(_BLOCK, (size // NUMBER,), np.float64)
        for offset, word in ((OUT, places[OUT]), (STRIDE, stride), (WIDTH, width), (HEIGHT, height)):
            words[offset // WORD] = word
        even = launch.even or Even(0.0, 1.0)
        for offset, number in ((FIRST, even.first), (RATE, even.rate), (ORIGIN, even.origin)):
            numbers[offset // NUMBER] = number
        self._give_numbers(numbers, launch)
        self._give_places(words, places, launch)
        for ring in self._layout.rings:
            self._give_ring(words, places[ring], ring, memory)
        self._launch = launch
        with np.errstate(all="ignore"):
            self._call(launch)
        self._launch = None
        for ring in self._layout.rings:
            self._take_ring(places[ring], ring, memory, width)
        return self._view(places[OUT], (len(self._kernel.outputs), height, width), np.float64).copy()

    def _call(self, launch: Launch) -> None:
        constants = [
            float(launch.coords[each.name]) for each in self._layout.numbers if each.source == "coord" and each.constant
        ]
        names = (CONSTANTS, FRAME, COLUMNS, ROWS, ELEMENTS)
        for name in names if constants != self._constants else names[1:]:
            if name in self._functions:
                self._functions[name](self._store, _BLOCK)
        self._constants = constants

    def _give_numbers(self, numbers: npt.NDArray[np.float64], launch: Launch) -> None:
        for each in self._layout.numbers:
            given = launch.uniforms[each.name] if each.source == "uniform" else launch.coords[each.name]
            numbers[each.offset // NUMBER] = float(given)

    def _give_places(self, words: npt.NDArray[np.uint32], places: Mapping[object, int], launch: Launch) -> None:
        height, width = launch.shape
        for line in self._layout.lines:
            words[line.offset // WORD] = places[line]
            count = height if line.rate == "row" else width
            self._view(places[line], (count,), np.float64)[:] = launch.coords[line.name]
        for local in self._layout.locals:
            if local.rate in ("column", "row"):
                words[local.offset // WORD] = places[local]
        for sampled in self._layout.sampled:
            self._give_picture(words, places[sampled], sampled, launch)

    def _give_picture(
        self, words: npt.NDArray[np.uint32], address: int, sampled: SampledPlace, launch: Launch
    ) -> None:  # fmt: skip
        picture = launch.pictures[sampled.name]
        pixels = floats(picture)
        at = sampled.offset // WORD
        words[at : at + 3] = address, pixels.shape[1], pixels.shape[0]
        # What is heard changes in place.
        if self._pictures.get(sampled.name) is not picture or pixels.flags.writeable:
            self._view(address, pixels.shape, np.float32)[:] = pixels
            self._pictures[sampled.name] = picture

    def _give_ring(self, words: npt.NDArray[np.uint32], address: int, ring: RingPlace, memory: StateMemory) -> None:
        its = memory.ring(ring.key)
        finished = 1 if self._kernel.sweep == "points" else 0
        words[ring.offset // WORD], words[ring.head // WORD] = address, memory.cell(ring.key, finished)
        if ring.image:
            rows, columns = shape_of_level(memory.shape, ring.level)
            words[ring.size // WORD : ring.size // WORD + 2] = columns, rows
        self._view(address, its.shape, np.float64)[:] = its

    def _take_ring(self, address: int, ring: RingPlace, memory: StateMemory, width: int) -> None:
        """Copies the cells of a ring back that were written: one, or one for each sample."""
        its = memory.ring(ring.key)
        mine = self._view(address, its.shape, np.float64)
        if self._kernel.sweep == "points":
            return
        count = width if self._kernel.tick == "element" else 1
        if count >= len(its):
            its[:] = mine
            return
        cells = (memory.cell(ring.key) + np.arange(count)) % len(its)
        its[cells] = mine[cells]

    def has_stopped(self) -> bool:
        """Whether a loop has met its limit since this was last asked."""
        word = self._view(_BLOCK + STOPPED, (1,), np.int32)
        found, word[0] = bool(word[0]), 0
        return found
