"""A card that runs CUDA C++, by the driver of its maker, and the interface of such drivers."""

from __future__ import annotations

import re
import threading
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Sequence
from ctypes import c_uint8
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from weft.backends.compute.interface import Arrival, Bytes, CompileError, RemoteDevice, Run, as_bytes

# Threads in a block.
_BLOCK = 256

# Finds the line in the compiler's errors: "weft.cu(12): error: …" of NVRTC, "weft.cu:12:3: error: …" of hipRTC.
_LINE = re.compile(r"weft\.cu[(:](\d+)\S*:? error: (.*)")

FILE = "weft.cu"
"""The name of a text for its compiler."""


class Driver(ABC):
    """What a card's driver and its compiler are asked for. Addresses are numbers. Work is done in the order in which it
    is asked for, in one stream. Raises what its library raises, or RuntimeError, with the reason."""

    @abstractmethod
    def enter(self) -> None:
        """Makes the card that of the calling thread."""

    @abstractmethod
    def compile(self, text: str) -> tuple[bytes, str]:
        """The machine code of a text, or none and what the compiler says."""

    @abstractmethod
    def load(self, code: bytes, entry: str) -> Any:
        """A kernel of machine code."""

    @abstractmethod
    def launch(self, kernel: Any, blocks: int, threads: int, arguments: int) -> None:
        """Launches a kernel; `arguments` is the address of a list of addresses, one for each argument."""

    @abstractmethod
    def allocate(self, size: int) -> int:
        """The address of memory of the card, set to 0."""

    @abstractmethod
    def free(self, address: int) -> None:
        """Frees memory of the card once what was asked for before is done."""

    @abstractmethod
    def pinned(self, size: int) -> int:
        """The address of memory of the computer that copies need not wait for. It is never freed."""

    @abstractmethod
    def send(self, target: int, source: int, size: int) -> None:
        """Copies from the computer to the card."""

    @abstractmethod
    def fetch(self, target: int, source: int, size: int) -> None:
        """Copies from the card to pinned memory of the computer."""

    @abstractmethod
    def copy(self, target: int, source: int, size: int) -> None:
        """Copies on the card."""

    @abstractmethod
    def mark(self) -> Any:
        """A mark after all that was asked for."""

    @abstractmethod
    def wait(self, mark: Any) -> None:
        """Waits until all before a mark is done, with Python's lock free."""

    @abstractmethod
    def forget(self, mark: Any) -> None:
        """Frees a mark."""


class CardMemory:
    """Memory of a card. It is freed with the last reference, once what was launched until then is done."""

    def __init__(self, driver: Driver, size: int) -> None:
        self.size = size
        self._driver = driver
        self.address = driver.allocate(size)

    def __del__(self) -> None:
        if hasattr(self, "address"):
            self._driver.enter()
            self._driver.free(self.address)


class StreamMark:
    """A mark in the work of a card."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._mark: Any = None
        self._mark = driver.mark()

    def wait(self) -> None:
        self._driver.enter()
        self._driver.wait(self._mark)

    def __del__(self) -> None:
        if self._mark is not None:
            self._driver.enter()
            self._driver.forget(self._mark)


class _PinnedMemory:
    """Memory of the computer for what is on its way from a card. Pinning takes long, so it is used again."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._lock = threading.Lock()
        self._free: defaultdict[int, list[Bytes]] = defaultdict(list)

    def take(self, size: int) -> Bytes:
        """At least this many bytes."""
        rounded = 1 << max(12, (size - 1).bit_length())
        with self._lock:
            if self._free[rounded]:
                return self._free[rounded].pop()
        address = self._driver.pinned(rounded)
        return np.ctypeslib.as_array((c_uint8 * rounded).from_address(address))

    def give_back(self, memory: Bytes) -> None:
        with self._lock:
            self._free[memory.nbytes].append(memory)


class _ArrivingBytes:
    """Bytes on their way from a card."""

    def __init__(self, pinned: _PinnedMemory, memory: Bytes, size: int, mark: StreamMark) -> None:
        self._pinned = pinned
        self._memory = memory
        self._size = size
        self._mark = mark

    def __call__(self) -> Bytes:
        self._mark.wait()
        return self._memory[: self._size].copy()

    def __del__(self) -> None:
        # If nobody waited for them: the next copy into this memory comes after this one.
        self._pinned.give_back(self._memory)


class CudaDevice(RemoteDevice):
    """A card by a driver."""

    library: ClassVar[str] = "CUDA"
    option: ClassVar[str] = "--dump-cuda"
    late: ClassVar[bool] = False

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        driver.enter()
        self._pinned = _PinnedMemory(driver)

    def allocate(self, size: int) -> CardMemory:
        self._driver.enter()
        return CardMemory(self._driver, size)

    def send(self, data: npt.NDArray[Any], before: Any = None) -> CardMemory:
        given = as_bytes(data)
        # Work is done in order: what launches under way still read is overwritten after them.
        reused = before if isinstance(before, CardMemory) and before.size >= given.nbytes else None
        buffer = reused or self.allocate(max(1, given.nbytes))
        self.write(buffer, given)
        return buffer

    def write(self, buffer: CardMemory, data: npt.NDArray[Any], start: int = 0) -> None:
        given = as_bytes(data)
        self._driver.enter()
        # From memory that is not pinned the driver copies before it returns, so the array may change.
        self._driver.send(buffer.address + start, given.ctypes.data, given.nbytes)

    def copy(self, source: CardMemory, start: int, target: CardMemory, to: int, size: int) -> None:
        self._driver.enter()
        self._driver.copy(target.address + to, source.address + start, size)

    def compile(self, text: str, entry: str) -> Any:
        self._driver.enter()
        code, words = self._driver.compile(text)
        if not code:
            found = _LINE.search(words)
            raise CompileError(found[2], int(found[1])) if found else CompileError(words.strip())
        return self._driver.load(code, entry)

    def numbers(self, words: npt.NDArray[np.uint32], before: Any = None) -> npt.NDArray[np.uint32]:
        # An argument by value: it is read as fast as what is in the text.
        return words.copy() if words.size else np.zeros(1, np.uint32)

    def launch(self, kernel: Any, count: int, buffers: Sequence[CardMemory | npt.NDArray[np.uint32]]) -> Run:
        numbers, *others = buffers
        assert isinstance(numbers, np.ndarray)
        addresses = np.array([each.address for each in others if isinstance(each, CardMemory)], np.uint64)
        first = addresses.ctypes.data
        places = [numbers.ctypes.data, *range(first, first + 8 * len(others), 8)]
        arguments = np.array(places, np.uint64)
        self._driver.enter()
        self._driver.launch(kernel, -(-count // _BLOCK), _BLOCK, arguments.ctypes.data)
        return StreamMark(self._driver)

    def read(self, buffer: CardMemory, after: Run | None = None, start: int = 0, size: int | None = None) -> Arrival:
        wanted = buffer.size - start if size is None else size
        memory = self._pinned.take(wanted)
        self._driver.enter()
        self._driver.fetch(memory.ctypes.data, buffer.address + start, wanted)
        return _ArrivingBytes(self._pinned, memory, wanted, StreamMark(self._driver))

    def wait(self) -> None:
        self._driver.enter()
        StreamMark(self._driver).wait()
