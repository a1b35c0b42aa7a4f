"""The interface of a device that computes into buffers, as programs of `weft.codegen.clike.buffers` take them."""

from __future__ import annotations

import ctypes
import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from weft.backends.records import CallList
from weft.backends.waits import DeviceWaits
from weft.codes.rows import InternalError
from weft.errors import WeftError

Bytes: TypeAlias = npt.NDArray[np.uint8]

Arrival: TypeAlias = Callable[[], Bytes]
"""Waits for bytes that a device sends, and gives them. They do not change later. May be called once."""


class ComputeError(InternalError):
    """A device is not available, or failed. Carries the reason, in plain words."""


class CompileError(InternalError):
    """A compiler refuses a text: its words, and the line that they are about (from 1; 0 if unknown)."""

    def __init__(self, words: str, line: int = 0) -> None:
        super().__init__(words)
        self.words = words
        self.line = line


class MissingError(ComputeError):
    """A library is missing: the reason, and the command that brings it, if there is one."""

    def __init__(self, reason: str, remedy: str | None = None) -> None:
        super().__init__(reason)
        self.remedy = remedy


def opened(names: Iterable[str], reason: str) -> ctypes.CDLL:
    """The first of these libraries that is there. Raises MissingError with the reason if none is."""
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise MissingError(reason)


def failure(what: str, reason: Exception) -> Exception:
    """See `failing`: what an exception becomes."""
    is_own = isinstance(reason, (WeftError, ComputeError, CompileError))
    return reason if is_own else ComputeError(f"{what} ({reason})")


class _Failing:
    """See `failing`. A generator would take longer, and a frame has several."""

    __slots__ = ("_as", "_what")

    def __init__(self, what: str, told: Callable[[str], Exception] | None) -> None:
        self._what = what
        self._as = told

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, reason: BaseException | None, trace: object) -> None:
        if not isinstance(reason, Exception):
            return
        told = failure(self._what, reason)
        if self._as is not None and isinstance(told, ComputeError):
            told = self._as(str(told))
        if told is not reason:
            raise told from reason


def failing(what: str, told: Callable[[str], Exception] | None = None) -> _Failing:
    """Makes any exception of a device's library in a `with` block a ComputeError that begins with `what`, or what
    `told` makes of its words. The types of these exceptions belong to the library, which need not be there."""
    return _Failing(what, told)


class Run(Protocol):
    """A launch under way."""

    def wait(self) -> None:
        """Waits until it is done. May be called again."""


class LaunchCalls(CallList, ABC):
    """The calls of a driver that launch a kernel, for machine code to make."""

    @abstractmethod
    def use(self, rings: Sequence[Any]) -> None:
        """Gives the launches from now on the buffers of what they remember."""

    @abstractmethod
    def draw_to(self, picture: Any) -> None:
        """Gives the next launch the buffer of its picture."""

    @abstractmethod
    def begin(self) -> None:
        """The launch follows."""

    @abstractmethod
    def end(self) -> Run:
        """The launch that machine code has made. Raises what the device raises."""


class ComputeDevice(ABC):
    """A device. Its buffers are objects of its library.

    It does its work in the order in which the work was given, from whatever thread: a launch sees what was written
    before it, and a read what was launched before it. Its methods may raise any exception if the device fails or has no
    memory left; the message is the reason.
    """

    library: ClassVar[str]
    """The name of the library that it uses, for messages."""
    option: ClassVar[str]
    """The option of `weft compile` that shows its programs."""
    ahead: ClassVar[int] = 1
    """The number of earlier ticks that may be under way when a tick begins."""
    by_record: ClassVar[bool] = False
    """Whether `calls` gives some."""
    late: ClassVar[bool] = True
    """Whether it may finish a program only at its first launch, so that weft launches it once beforehand."""

    @functools.cached_property
    def waits(self) -> DeviceWaits:
        """What all waits for it go through, so that each has an end."""
        return DeviceWaits(ComputeError)

    @abstractmethod
    def __init__(self, index: int) -> None:
        """Opens the device of this number. Raises ComputeError."""

    @abstractmethod
    def allocate(self, size: int) -> Any:
        """A buffer of this many bytes, at least 1, set to 0."""

    @abstractmethod
    def send(self, data: npt.NDArray[Any], before: Any = None) -> Any:
        """A buffer with the bytes of an array, which may change afterwards. Does not wait for launches. If possible it
        is `before`, a buffer that a call has returned and that nothing needs any more but launches under way."""

    @abstractmethod
    def compile(self, text: str, entry: str) -> Any:
        """The kernel `entry` of a text. Raises CompileError if the compiler refuses it."""

    @abstractmethod
    def launch(self, kernel: Any, count: int, buffers: Sequence[Any]) -> Run:
        """Launches at least `count` threads over buffers, which are in the order of `Shader.buffers`. Does not wait.
        The caller keeps the buffers until it is done."""

    @abstractmethod
    def read(self, buffer: Any, after: Run | None = None, start: int = 0, size: int | None = None) -> Arrival:
        """Begins to read bytes from `start` on, all of them without a `size`, when the run `after`, which was launched
        last, is done. Does not wait."""

    def lending(self, buffer: Any, after: Run) -> Arrival:
        """Begins to read all bytes, as `read` does. What it gives may be memory of the device that is used again when
        nobody looks at the array any more. It is called by the same thread."""
        return self.read(buffer, after)

    def calls(self, kernel: Any, count: int, words: npt.NDArray[np.uint32], buffers: int) -> LaunchCalls | None:
        """The calls by which machine code launches `count` threads itself, over the numbers `words` and this many
        `buffers`; None if it cannot."""
        return None

    def numbers(self, words: npt.NDArray[np.uint32], before: Any = None) -> Any:
        """What a launch gets for the numbers of `Shader.uniforms`; see `send`."""
        return self.send(words, before)

    def samples(self, count: int) -> Any:
        """A buffer for samples of a sound, none of which has been computed."""
        return self.allocate(4 * max(1, count))

    def read_samples(self, buffer: Any, after: Run) -> Arrival:
        """Begins to read the samples that a run computes."""
        return self.read(buffer, after)


class SharedDevice(ComputeDevice):
    """A device whose memory the processor shares: what is done is there, and nothing is copied."""

    @abstractmethod
    def view(self, buffer: Any) -> Bytes:
        """The bytes of a buffer themselves."""


class RemoteDevice(ComputeDevice):
    """A device whose memory is its own, or is used as if it were."""

    @abstractmethod
    def write(self, buffer: Any, data: npt.NDArray[Any], start: int = 0) -> None:
        """Overwrites bytes from `start` on with those of an array, which may change afterwards."""

    @abstractmethod
    def copy(self, source: Any, start: int, target: Any, to: int, size: int) -> None:
        """Copies bytes from one buffer to another, or to another place in the same one where they do not overlap."""

    @abstractmethod
    def wait(self) -> None:
        """Waits until everything is done."""


def as_bytes(data: npt.NDArray[Any]) -> Bytes:
    """The bytes of an array, in one row."""
    return np.ascontiguousarray(data).reshape(-1).view(np.uint8)
