"""A card that runs CUDA C++: its memory, its programs, and their launches."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from contextlib import suppress
from ctypes import addressof, c_uint64
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from weft.backends.compute.interface import Arrival, Bytes, CompileError, LaunchCalls, RemoteDevice, Run, as_bytes
from weft.backends.cuda.driver import Driver, Maker
from weft.backends.kept_programs import KeptProgram, RecentPrograms
from weft.backends.lent_memory import lent

# What a text says about the threads of its blocks.
_BOUNDS = re.compile(r"__launch_bounds__\((\d+)")

# The half of a word that counts of an error which a call has returned.
_INT = 0xFFFF_FFFF

# Finds the line in the compiler's errors: "weft.cu(12): error: …" of NVRTC, "weft.cu:12:3: error: …" of hipRTC.
_LINE = re.compile(r"weft\.cu[(:](\d+)\S*:? (?:fatal )?error: (.*)")


class CardMemory:
    """Memory of a card. It is freed with the last reference, once what was launched until then is done."""

    def __init__(self, driver: Driver, size: int) -> None:
        self.size = size
        self._driver = driver
        self.address = driver.allocate(size)

    def __del__(self) -> None:
        if hasattr(self, "address"):
            self._driver.give_back("free", self.address)


class _Marks:
    """Marks in the work of a card. Each is an event once more work follows, and until then the end of all work: a frame
    that is waited for at once needs no event. Making an event takes as long as a launch, so they are used again."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.last: StreamMark | None = None
        """The one that no work follows yet."""
        self.free: list[int] = []

    def take(self) -> int:
        try:
            return self.free.pop()
        except IndexError:
            return self.driver.event()

    def settle(self) -> None:
        """Makes the last mark an event, since more work follows."""
        last, self.last = self.last, None
        if last is not None:
            event = self.take()
            self.driver.record(event)
            last.event = event


class StreamMark:
    """A mark in the work of a card, after all that was asked for."""

    __slots__ = ("_is_passed", "_marks", "event")

    def __init__(self, marks: _Marks) -> None:
        self._marks = marks
        self._is_passed = False
        self.event = 0
        """What has been recorded for it; 0 while nothing has."""
        marks.last = self

    def wait(self) -> None:
        if not self._is_passed:
            marks = self._marks
            marks.driver.wait(self.event)
            self._is_passed = True
            if marks.last is self:
                marks.last = None

    def __del__(self) -> None:
        if self.event:
            self._marks.free.append(self.event)


class _CardProgram:
    """A program in a card's own form. It is freed with the last kernel."""

    def __init__(self, driver: Driver, code: bytes, entry: str, text: str) -> None:
        self._driver = driver
        bounds = _BOUNDS.search(text)
        self.threads = int(bounds[1]) if bounds else 256
        """Those of a block."""
        self._program = driver.load(code)
        self.kernel = driver.kernel(self._program, entry)

    def __del__(self) -> None:
        with suppress(Exception):  # it was not loaded, or its card is lost
            self._driver.give_back("unload", self._program)


class _LaunchRecord:
    """A kernel with the record of its launches: the addresses of its arguments. The first are the numbers, which are
    passed by value, and the others buffers, whose addresses are."""

    def __init__(self, program: _CardProgram) -> None:
        self.program = program
        self.function, self.threads = program.kernel, program.threads
        self.lock = threading.Lock()
        self._numbers: npt.NDArray[np.uint32] | None = None
        self.given: Any = ()
        """The addresses of the buffers."""
        self._places: Any = ()
        self.arguments = 0
        """The address of the record."""

    def prepare(self, count: int, numbers: npt.NDArray[np.uint32]) -> None:
        """Makes the record of a number of buffers."""
        if len(self.given) != count or self._numbers is None:
            self.given = (c_uint64 * count)()
            first = addressof(self.given)
            self._places = (c_uint64 * (1 + count))(0, *range(first, first + 8 * count, 8))
            self.arguments = addressof(self._places)
        if numbers is not self._numbers:
            self._numbers = numbers
            self._places[0] = numbers.ctypes.data


class _PinnedMemory:
    """Memory of the computer for what is on its way from a card. Pinning takes long, so it is used again."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._free: dict[int, list[int]] = {}

    def take(self, size: int) -> Bytes:
        """This many bytes, which go back when nobody refers to them. A copy that nobody waits for comes before the next
        one into them."""
        rounded = 1 << max(12, (size - 1).bit_length())
        free = self._free.setdefault(rounded, [])
        try:
            address = free.pop()
        except IndexError:
            address = self._driver.pinned(rounded)
        return lent(address, (size,), lambda: free.append(address))


class _CardCalls(LaunchCalls):
    """How machine code launches a kernel over a picture."""

    def __init__(self, marks: _Marks, record: _LaunchRecord, count: int) -> None:
        self._marks = marks
        self._record = record
        blocks = -(-count // record.threads)
        super().__init__(marks.driver.launching(record.function, blocks, record.threads, record.arguments))

    def use(self, rings: Sequence[CardMemory]) -> None:
        self._record.given[1:] = [ring.address for ring in rings]

    def draw_to(self, picture: CardMemory) -> None:
        self._record.given[0] = picture.address

    def begin(self) -> None:
        if self._marks.last is not None:
            self._marks.settle()

    def end(self) -> StreamMark:
        for error in filter(None, self.results()):
            self._marks.driver.done(error & _INT)
        return StreamMark(self._marks)


class CardDevice(RemoteDevice):
    """A card by a driver."""

    maker: ClassVar[Maker]
    late: ClassVar[bool] = False
    by_record: ClassVar[bool] = True

    def __init__(self, index: int) -> None:
        """Raises ComputeError."""
        self._driver = Driver(self.maker, index, self.waits)
        self._pinned = _PinnedMemory(self._driver)
        self._marks = _Marks(self._driver)
        self._programs: RecentPrograms[tuple[str, str], _CardProgram] = RecentPrograms()

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
        self._driver.copy("send", buffer.address + start, given.ctypes.data, given.nbytes)

    def copy(self, source: CardMemory, start: int, target: CardMemory, to: int, size: int) -> None:
        self._driver.enter()
        self._driver.copy("copy", target.address + to, source.address + start, size)

    def compile(self, text: str, entry: str) -> _LaunchRecord:
        self._driver.enter()
        return _LaunchRecord(self._programs.get_or_make((text, entry), lambda: self._program(text, entry)))

    def _program(self, text: str, entry: str) -> _CardProgram:
        """From disk, if the driver takes what is there."""
        place = KeptProgram(self._driver.about, [(self.option, text)])
        kept = place.read()
        if kept is not None:
            with suppress(RuntimeError):
                return _CardProgram(self._driver, kept, entry, text)
        code, words = self._driver.compile(text)
        if not code:
            found = _LINE.search(words)
            raise CompileError(found[2], int(found[1])) if found else CompileError(words.strip())
        made = _CardProgram(self._driver, code, entry, text)
        place.write(code)
        return made

    def numbers(self, words: npt.NDArray[np.uint32], before: Any = None) -> npt.NDArray[np.uint32]:
        # An argument by value: it is read as fast as what is in the text, and copied by the launch.
        return words if words.size else np.zeros(1, np.uint32)

    def calls(self, kernel: _LaunchRecord, count: int, words: npt.NDArray[np.uint32], buffers: int) -> _CardCalls:
        own = _LaunchRecord(kernel.program)
        own.prepare(buffers, words)
        return _CardCalls(self._marks, own, count)

    def launch(self, kernel: _LaunchRecord, count: int, buffers: Sequence[Any]) -> Run:
        driver = self._driver
        with kernel.lock:
            kernel.prepare(len(buffers) - 1, buffers[0])
            for at, buffer in enumerate(buffers[1:]):
                kernel.given[at] = buffer.address
            self._marks.settle()
            driver.enter()
            driver.launch(kernel.function, -(-count // kernel.threads), kernel.threads, kernel.arguments)
        return StreamMark(self._marks)

    def read(self, buffer: CardMemory, after: Run | None = None, start: int = 0, size: int | None = None) -> Arrival:
        arrival = self._arriving(buffer, start, buffer.size - start if size is None else size)
        return lambda: arrival().copy()

    def lending(self, buffer: CardMemory, after: Run) -> Arrival:
        return self._arriving(buffer, 0, buffer.size)

    def _arriving(self, buffer: CardMemory, start: int, size: int) -> Arrival:
        memory = self._pinned.take(size)
        self._driver.enter()
        # Who waits for a picture alone does not wait for its copy, nor for what follows that.
        self._marks.settle()
        self._driver.copy("fetch", memory.ctypes.data, buffer.address + start, size)
        mark = StreamMark(self._marks)

        def fetch() -> Bytes:
            mark.wait()
            return memory

        return fetch

    def wait(self) -> None:
        (self._marks.last or StreamMark(self._marks)).wait()  # without an event it is the end of all work
