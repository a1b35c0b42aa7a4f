"""Metal through Apple's own interface, by pyobjc: devices that are used like those of metalcompute, and whose buffers a
window can show directly. Only this module imports pyobjc; backends and windows use it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.codes.rows import InternalError

# The threads of a group, unless the kernel allows fewer.
_GROUP = 256


class AppleError(InternalError):
    """A call of Metal failed; the message is Metal's own."""


@dataclass(frozen=True)
class Frameworks:
    """Apple's frameworks, and the bridge to them."""

    metal: Any
    quartz: Any
    appkit: Any
    objc: Any


def frameworks() -> Frameworks:
    """Apple's frameworks. Raises AppleError if they are not installed, or not correctly."""
    try:
        import AppKit
        import Metal
        import objc
        import Quartz
    except Exception as failure:  # mismatched versions fail in many ways
        raise AppleError(f"pyobjc's Metal and Quartz cannot be imported ({failure})") from failure
    return Frameworks(Metal, Quartz, AppKit, objc)


def is_installed() -> bool:
    """Whether the frameworks can be imported."""
    try:
        frameworks()
    except AppleError:
        return False
    return True


class BufferMemory(np.ndarray[tuple[int], np.dtype[np.uint8]]):
    """The bytes of a buffer that device and processor share."""

    metal: Any
    """The buffer itself; slices of the array have none."""
    owner: AppleDevice
    """The device that the buffer belongs to."""


class _Owner:
    """Keeps a buffer as long as any array uses its bytes. A view of a view forgets the view that it was made from, but
    not the owner of the bytes."""

    def __init__(self, metal: Any, size: int) -> None:
        self.metal = metal
        bytes_there = np.frombuffer(metal.contents().as_buffer(size), np.uint8)
        self.__array_interface__ = {
            "version": 3, "shape": (size,), "typestr": "|u1", "data": (bytes_there.ctypes.data, False)
        }  # fmt: skip


class AppleDevice:
    """A device. It does its work in the order in which the work was given."""

    def __init__(self, index: int = 0) -> None:
        """Raises AppleError."""
        self.own = frameworks()
        known = list(self.own.metal.MTLCopyAllDevices())
        if index >= len(known):
            raise AppleError(f"Metal has {len(known)} devices, and none with the number {index}")
        self.metal = known[index]
        self.queue = _required(self.metal.newCommandQueue(), "a queue")
        self.failure: str | None = None
        """The error of a finished launch."""
        self.is_hung = False
        """Whether it is not to be waited for any more."""

    def buffer(self, given: Any) -> BufferMemory:
        """Memory for a number of bytes, or a copy of an array. Raises AppleError."""
        data = np.frombuffer(b"" if isinstance(given, int) else np.ascontiguousarray(given), np.uint8)
        size = max(1, given if isinstance(given, int) else data.nbytes)
        with self.working():
            made = self.metal.newBufferWithLength_options_(size, self.own.metal.MTLResourceStorageModeShared)
            memory = np.asarray(_Owner(_required(made, f"memory for {size} bytes"), size)).view(BufferMemory)
        memory.metal, memory.owner = made, self
        memory[: data.nbytes] = data
        return memory

    def kernel(self, text: str) -> AppleKernel:
        """Compiles a text. Raises AppleError with the compiler's message."""
        return AppleKernel(self, self.library(text))

    @contextmanager
    def working(self) -> Iterator[None]:
        """Frees the temporary objects of Apple's interface afterwards. Any exception of pyobjc, also for functions that
        this version of it or of the system lacks, becomes an AppleError."""
        try:
            with self.own.objc.autorelease_pool():
                yield
        except (self.own.objc.error, AttributeError, TypeError, ValueError) as failure:
            raise AppleError(str(failure)) from failure

    def library(self, text: str) -> Any:
        """The functions of a text. Raises AppleError with the compiler's message."""
        with self.working():
            options = self.own.metal.MTLCompileOptions.alloc().init()
            options.setLanguageVersion_(self.own.metal.MTLLanguageVersion2_3)
            options.setFastMathEnabled_(False)  # otherwise the compiler may assume that nothing is ever NaN
            return without_error(self.metal.newLibraryWithSource_options_error_(text, options, None))

    def check(self) -> None:
        """Raises AppleError if a launch has failed since the last call."""
        failure, self.failure = self.failure, None
        if failure is not None:
            raise AppleError(failure)


class AppleKernel:
    """A compiled text."""

    def __init__(self, device: AppleDevice, library: Any) -> None:
        self._device = device
        self._library = library

    def function(self, name: str) -> AppleFunction:
        """Raises AppleError."""
        with self._device.working():
            function = _required(self._library.newFunctionWithName_(name), f"a function {name}")
            made = self._device.metal.newComputePipelineStateWithFunction_error_(function, None)
            return AppleFunction(self._device, without_error(made))


class AppleFunction:
    """A kernel that can be launched."""

    def __init__(self, device: AppleDevice, pipeline: Any) -> None:
        self._device = device
        self._pipeline = pipeline
        self._group = min(_GROUP, int(pipeline.maxTotalThreadsPerThreadgroup()))

    def __call__(self, count: int, *buffers: BufferMemory) -> DeviceWork:
        """Launches `count` threads, rounded up to whole groups, without waiting. Raises AppleError if an earlier launch
        has failed."""
        self._device.check()
        size = self._device.own.metal.MTLSize
        with self._device.working():
            commands = self._device.queue.commandBuffer()
            encoder = commands.computeCommandEncoder()
            encoder.setComputePipelineState_(self._pipeline)
            for index, buffer in enumerate(buffers):
                encoder.setBuffer_offset_atIndex_(buffer.metal, 0, index)
            groups = size(-(-count // self._group), 1, 1)
            encoder.dispatchThreadgroups_threadsPerThreadgroup_(groups, size(self._group, 1, 1))
            encoder.endEncoding()
            commands.commit()
        return DeviceWork(self._device, commands)


class DeviceWork:
    """Work on a device. Deleting it waits for the work, without holding the GIL. The next launch raises its error."""

    def __init__(self, device: AppleDevice, commands: Any) -> None:
        self.device = device
        self._commands = commands

    @property
    def is_over(self) -> bool:
        """Whether it is done, or has failed."""
        completed: int = self.device.own.metal.MTLCommandBufferStatusCompleted  # a greater number is a failure
        return self._commands is None or bool(self._commands.status() >= completed)

    def wait(self) -> None:
        """Waits until it is done."""
        commands, self._commands = self._commands, None
        if commands is None:
            return
        commands.waitUntilCompleted()
        if commands.status() == self.device.own.metal.MTLCommandBufferStatusError:
            self.device.failure = _message_of(commands.error())

    def __del__(self) -> None:
        if not sys.is_finalizing() and not self.device.is_hung:  # modules that it needs may be gone by then
            self.wait()


def _message_of(failure: Any) -> str:
    """The message of an error of Apple's."""
    return "Metal gives no reason" if failure is None else str(failure.localizedDescription())


def _required(made: Any, what: str) -> Any:
    """The object that Metal made. Raises AppleError if it is None."""
    if made is None:
        raise AppleError(f"Metal cannot provide {what}")
    return made


def without_error(answer: tuple[Any, Any]) -> Any:
    """The object of an answer (object, error); warnings are ignored. Raises AppleError with the message if there is no
    object."""
    made, failure = answer
    if made is None:
        raise AppleError(_message_of(failure))
    return made
