"""The driver of a card and the compiler of its programs, called by ctypes: what CUDA and HIP have in common, which is
everything but names. `nvidia` and `amd` say how their libraries are found and what is their own."""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from ctypes import c_char, c_char_p, c_int, c_size_t, c_ubyte, c_uint, c_void_p
from dataclasses import dataclass
from itertools import repeat
from types import MappingProxyType
from typing import Any, ClassVar, Literal

from weft.backends.base import DeviceInfo
from weft.backends.compute.interface import ComputeError, MissingError
from weft.backends.records import Call
from weft.backends.waits import DeviceWaits

FILE = "weft.cu"
"""The name of a text for its compiler."""


@dataclass(frozen=True)
class DriverFunction:
    """A function of the driver: its names in CUDA and in HIP, and the types of what it is given. It returns an error,
    0 if there is none. Results are written to addresses."""

    cuda: str
    hip: str
    takes: tuple[Any, ...]


_P, _I, _U, _Z, _NAME = c_void_p, c_int, c_uint, c_size_t, c_char * 128

_DRIVER: Mapping[str, DriverFunction] = MappingProxyType({
    "init": DriverFunction("cuInit", "hipInit", (_U,)),
    "version": DriverFunction("cuDriverGetVersion", "hipDriverGetVersion", (_P,)),
    "count": DriverFunction("cuDeviceGetCount", "hipGetDeviceCount", (_P,)),
    "device": DriverFunction("cuDeviceGet", "hipDeviceGet", (_P, _I)),
    "name": DriverFunction("cuDeviceGetName", "hipDeviceGetName", (_P, _I, _I)),
    "total": DriverFunction("cuDeviceTotalMem_v2", "hipDeviceTotalMem", (_P, _I)),
    "attribute": DriverFunction("cuDeviceGetAttribute", "hipDeviceGetAttribute", (_P, _I, _I)),
    "capability": DriverFunction("cuDeviceComputeCapability", "hipDeviceComputeCapability", (_P, _P, _I)),
    "stream": DriverFunction("cuStreamCreate", "hipStreamCreateWithFlags", (_P, _U)),
    "load": DriverFunction("cuModuleLoadData", "hipModuleLoadData", (_P, c_char_p)),
    "unload": DriverFunction("cuModuleUnload", "hipModuleUnload", (_P,)),
    "function": DriverFunction("cuModuleGetFunction", "hipModuleGetFunction", (_P, _P, c_char_p)),
    "launch": DriverFunction("cuLaunchKernel", "hipModuleLaunchKernel", (_P, *[_U] * 7, _P, _P, _P)),
    "allocate": DriverFunction("cuMemAllocAsync", "hipMallocAsync", (_P, _Z, _P)),
    "clear": DriverFunction("cuMemsetD8Async", "hipMemsetD8Async", (_P, c_ubyte, _Z, _P)),
    "free": DriverFunction("cuMemFreeAsync", "hipFreeAsync", (_P, _P)),
    "pinned": DriverFunction("cuMemHostAlloc", "hipHostMalloc", (_P, _Z, _U)),
    "send": DriverFunction("cuMemcpyHtoDAsync_v2", "hipMemcpyHtoDAsync", (_P, _P, _Z, _P)),
    "fetch": DriverFunction("cuMemcpyDtoHAsync_v2", "hipMemcpyDtoHAsync", (_P, _P, _Z, _P)),
    "copy": DriverFunction("cuMemcpyDtoDAsync_v2", "hipMemcpyDtoDAsync", (_P, _P, _Z, _P)),
    "event": DriverFunction("cuEventCreate", "hipEventCreateWithFlags", (_P, _U)),
    "record": DriverFunction("cuEventRecord", "hipEventRecord", (_P, _P)),
    "passed": DriverFunction("cuEventQuery", "hipEventQuery", (_P,)),
    "idle": DriverFunction("cuStreamQuery", "hipStreamQuery", (_P,)),
})  # fmt: skip

_COMPILER: Mapping[str, DriverFunction] = MappingProxyType({
    "version": DriverFunction("nvrtcVersion", "hiprtcVersion", (_P, _P)),
    "create": DriverFunction("nvrtcCreateProgram", "hiprtcCreateProgram", (_P, c_char_p, c_char_p, _I, _P, _P)),
    "compile": DriverFunction("nvrtcCompileProgram", "hiprtcCompileProgram", (_P, _I, _P)),
    "log_size": DriverFunction("nvrtcGetProgramLogSize", "hiprtcGetProgramLogSize", (_P, _P)),
    "log": DriverFunction("nvrtcGetProgramLog", "hiprtcGetProgramLog", (_P, _P)),
    "code_size": DriverFunction("nvrtcGetCUBINSize", "hiprtcGetCodeSize", (_P, _P)),
    "code": DriverFunction("nvrtcGetCUBIN", "hiprtcGetCode", (_P, _P)),
    "destroy": DriverFunction("nvrtcDestroyProgram", "hiprtcDestroyProgram", (_P,)),
})  # fmt: skip

# The same in both: a stream that does not wait for others, an event without a time, the answer that work is under way.
_NON_BLOCKING, _WITHOUT_TIME, _NOT_READY = 1, 2, 600
_AT_ONCE = 64  # questions whether a card is done, without a pause


class LibraryCalls:
    """Functions of a library, by weft's names."""

    def __init__(self, library: ctypes.CDLL, functions: Mapping[str, DriverFunction], maker: Maker) -> None:
        """Raises AttributeError if the library lacks one."""
        self._library = library
        self._maker = maker
        self.by_name: dict[str, Callable[..., int]] = {}
        for name, function in functions.items():
            call = getattr(library, function.cuda if maker.dialect == "cuda" else function.hip)
            call.argtypes, call.restype = function.takes, c_int
            self.by_name[name] = call

    def done(self, error: int) -> bool:
        """Whether nothing is under way. Raises RuntimeError with the driver's words if there is an error."""
        if error and error != _NOT_READY:
            raise RuntimeError(self._maker.words(self._library, error))
        return not error

    def call(self, name: str, *given: Any) -> None:
        self.done(self.by_name[name](*given))

    def value(self, name: str, *given: Any, kind: Any = c_int) -> Any:
        """What a function writes to the address that it is given first, as a value of this type of ctypes."""
        found = kind()
        self.call(name, ctypes.byref(found), *given)
        return found.value

    def numbers(self, name: str, *given: Any) -> tuple[int, int]:
        """The two numbers that a function gives."""
        first, second = c_int(), c_int()
        self.call(name, ctypes.byref(first), ctypes.byref(second), *given)
        return first.value, second.value


class Maker(ABC):
    """The maker of cards: how its libraries are found, and what is not the same at all of them."""

    name: ClassVar[str]
    """The maker's name, for messages."""
    library: ClassVar[str]
    """The interface's name, for messages."""
    dialect: ClassVar[Literal["cuda", "hip"]]
    """Which name of a `DriverFunction` its libraries have."""
    integrated: ClassVar[int]
    """The number of the attribute of a card that shares the computer's memory."""
    compute: ClassVar[str]
    """What the generation of a card is called."""

    @abstractmethod
    def driver(self) -> ctypes.CDLL:
        """Raises MissingError."""

    @abstractmethod
    def compiler(self) -> ctypes.CDLL:
        """Raises MissingError."""

    @abstractmethod
    def words(self, driver: ctypes.CDLL, error: int) -> str:
        """What the driver calls an error."""

    @abstractmethod
    def choosing(self, driver: ctypes.CDLL, calls: LibraryCalls, device: int) -> tuple[Callable[[Any], int], Any]:
        """The function that makes a card that of the calling thread, and what it takes."""

    @abstractmethod
    def options(self, capability: tuple[int, int]) -> Sequence[str]:
        """The compiler's options for a card."""

    @abstractmethod
    def free(self, driver: ctypes.CDLL, device: int, total: int) -> int:
        """The bytes of memory of a card that are free; all of them if that is not known. Never raises."""


# The cards.


def devices(maker: Maker) -> list[DeviceInfo]:
    """The cards of a maker. Never raises: without one, there is a reason."""
    try:
        driver = maker.driver()
        maker.compiler()
        calls = LibraryCalls(driver, _DRIVER, maker)
        calls.call("init", 0)
        found = [_described(maker, driver, calls, index) for index in range(calls.value("count"))]
    except MissingError as failure:
        return [DeviceInfo.absent(maker.library, str(failure), failure.remedy)]
    except Exception as failure:  # of a driver that finds no card, or lacks a function
        return [DeviceInfo.absent(maker.library, f"the driver of {maker.name} does not answer ({failure})")]
    return found or [DeviceInfo.absent(maker.library, f"there is no card of {maker.name}")]


def _described(maker: Maker, driver: ctypes.CDLL, calls: LibraryCalls, index: int) -> DeviceInfo:
    device = calls.value("device", index)
    total = calls.value("total", device, kind=c_size_t)
    return DeviceInfo(
        index, _name(calls, device), memory_total=total, memory_free=maker.free(driver, device, total),
        unified=bool(calls.value("attribute", maker.integrated, device)),
        compute=f"{maker.compute} {'.'.join(map(str, calls.numbers('capability', device)))}",
        driver=f"{maker.library} {_version(calls)}", platform=maker.library,
    )  # fmt: skip


def _name(calls: LibraryCalls, device: int) -> str:
    return bytes(calls.value("name", ctypes.sizeof(_NAME), device, kind=_NAME)).decode(errors="replace")


def _version(calls: LibraryCalls) -> str:
    number = calls.value("version")
    # CUDA writes 13.0 as 13000, HIP 7.1.2 as 70100002, or 70102000.
    return f"{number // 1000}.{number % 1000 // 10}" if number < 10**6 else f"{number // 10**7}.{number // 10**5 % 100}"


class Driver(LibraryCalls):
    """A card, and the compiler of its programs. Addresses are numbers. Work is done in the order in which it is asked
    for, in one stream. Raises RuntimeError with the reason if the driver fails.

    The card has to be that of the calling thread: `enter` makes it so.
    """

    def __init__(self, maker: Maker, index: int, waits: DeviceWaits) -> None:
        """Raises ComputeError."""
        self.waits = waits
        library, compiler = maker.driver(), maker.compiler()
        try:
            super().__init__(library, _DRIVER, maker)
            self._compiler = LibraryCalls(compiler, _COMPILER, maker)
            self.call("init", 0)
            device = self.value("device", index)
            self._choose, self._choice = maker.choosing(library, self, device)
            self.enter()
            self._passed, self._idle = self.by_name["passed"], self.by_name["idle"]
            self._stream = self._address("stream", _NON_BLOCKING)
            capability = self.numbers("capability", device)
            versions = self.value("version"), self._compiler.numbers("version")
            self._options = [option.encode() for option in maker.options(capability)]
            self.about = (maker.library, versions, _name(self, device), capability, self._options)
            """What the machine code of a text depends on."""
        except Exception as failure:  # drivers fail in many ways
            raise ComputeError(f"the device {index} cannot be opened ({failure})") from failure

    def _address(self, name: str, *given: Any) -> int:
        return self.value(name, *given, kind=c_void_p) or 0

    def enter(self) -> None:
        """Makes the card that of the calling thread."""
        self.done(self._choose(self._choice))

    def launching(self, kernel: int, blocks: int, threads: int, arguments: int) -> Sequence[Call]:
        """The calls that `enter` and `launch` make."""
        choose, launch = (ctypes.cast(call, c_void_p).value or 0 for call in (self._choose, self.by_name["launch"]))  # type: ignore[arg-type]
        return (choose, self._choice), (launch, kernel, blocks, 1, 1, threads, 1, 1, 0, self._stream, arguments, 0)

    def compile(self, text: str) -> tuple[bytes, str]:
        """The machine code of a text, or none and what the compiler says."""
        compiler, program = self._compiler, c_void_p()
        calls, options = compiler.by_name, self._options
        if calls["create"](ctypes.byref(program), text.encode(), FILE.encode(), 0, None, None):
            raise RuntimeError("the compiler does not start")
        try:
            if calls["compile"](program, len(options), (c_char_p * len(options))(*options)):
                return b"", self._answer(program, "log").split(b"\0")[0].decode(errors="replace")
            return self._answer(program, "code"), ""
        finally:
            calls["destroy"](ctypes.byref(program))

    def _answer(self, program: c_void_p, what: Literal["code", "log"]) -> bytes:
        size, calls = c_size_t(), self._compiler.by_name
        calls[f"{what}_size"](program, ctypes.byref(size))
        found = ctypes.create_string_buffer(size.value)
        calls[what](program, found)
        return found.raw

    def load(self, code: bytes) -> int:
        """A program of machine code."""
        return self._address("load", code)

    def kernel(self, program: int, entry: str) -> int:
        """A kernel of a program."""
        return self._address("function", program, entry.encode())

    def launch(self, kernel: int, blocks: int, threads: int, arguments: int) -> None:
        """Launches a kernel; `arguments` is the address of a list of addresses, one for each argument. The arguments
        are read before it returns."""
        self.call("launch", kernel, blocks, 1, 1, threads, 1, 1, 0, self._stream, arguments, None)

    def allocate(self, size: int) -> int:
        """The address of memory of the card, set to 0."""
        address = self._address("allocate", size, self._stream)
        self.call("clear", address, 0, size, self._stream)
        return address

    def give_back(self, what: Literal["free", "unload"], given: int) -> None:
        """Frees memory of the card, or a program, once what was asked for before is done; not if the card hangs."""
        if not self.waits.is_hung:
            self.enter()
            self.by_name[what](*((given, self._stream) if what == "free" else (given,)))

    def pinned(self, size: int) -> int:
        """The address of memory of the computer that copies need not wait for. It is never freed."""
        return self._address("pinned", size, 0)

    def copy(self, way: Literal["send", "fetch", "copy"], target: int, source: int, size: int) -> None:
        """Copies from the computer to the card, from the card to pinned memory of the computer, or on the card. Memory
        that is not pinned is read before it returns."""
        self.call(way, target, source, size, self._stream)

    def event(self) -> int:
        """Something that can be recorded and waited for. It is never freed."""
        return self._address("event", _WITHOUT_TIME)

    def record(self, event: int) -> None:
        """Records an event after all that was asked for."""
        self.enter()
        self.call("record", event, self._stream)

    def wait(self, event: int) -> None:
        """Waits until all before the last record of an event is done, and without one (0) all."""
        ask, about = (self._passed, event) if event else (self._idle, self._stream)
        # The answer 0 is that it is done. A small picture is done before a function of Python could ask for it.
        if all(map(ask, repeat(about, _AT_ONCE))):
            self.waits.until(lambda: self.done(ask(about)))
