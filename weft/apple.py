"""Metal by Apple's own interface, through pyobjc: devices that are used like those of metalcompute, and whose buffers a
window can show as they are. The one module that imports pyobjc; backends and windows use it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

# So many threads are launched together, unless the kernel leaves room for fewer.
_GROUP = 256


class AppleError(Exception):
    """What cannot be had from Metal, or fails, in its own words."""


@dataclass(frozen=True)
class Frameworks:
    """Apple's frameworks, and what bridges them."""

    metal: Any
    quartz: Any
    appkit: Any
    objc: Any


def frameworks() -> Frameworks:
    """Raises AppleError where they are not installed, or not as they should be."""
    try:
        import AppKit
        import Metal
        import objc
        import Quartz
    except Exception as failure:  # parts of different versions fail in ways of their own
        raise AppleError(f"pyobjc's Metal and Quartz cannot be imported ({failure})") from failure
    return Frameworks(Metal, Quartz, AppKit, objc)


def is_installed() -> bool:
    """Whether the frameworks can be had."""
    try:
        frameworks()
    except AppleError:
        return False
    return True


class BufferMemory(np.ndarray[tuple[int], np.dtype[np.uint8]]):
    """The bytes of a buffer that device and processor share."""

    metal: Any
    """The buffer itself; a part of these bytes has none."""
    owner: AppleDevice
    """The device that it belongs to."""


class _Owner:
    """Keeps a buffer for as long as any array looks at its bytes: arrays that are made of others forget those, but not
    where the bytes come from."""

    def __init__(self, metal: Any, size: int) -> None:
        self.metal = metal
        bytes_there = np.frombuffer(metal.contents().as_buffer(size), np.uint8)
        self.__array_interface__ = {
            "version": 3, "shape": (size,), "typestr": "|u1", "data": (bytes_there.ctypes.data, False)
        }  # fmt: skip


class AppleDevice:
    """A device. All that it is given to do is done in that order, and waits for what was to be written before."""

    def __init__(self, index: int = 0) -> None:
        """Raises AppleError."""
        self.own = frameworks()
        known = list(self.own.metal.MTLCopyAllDevices())
        if index >= len(known):
            raise AppleError(f"Metal has {len(known)} devices, and none with the number {index}")
        self.metal = known[index]
        self.queue = had(self.metal.newCommandQueue(), "a queue")
        self.failure: str | None = None
        """What went wrong in a launch that is over."""

    def buffer(self, given: Any) -> BufferMemory:
        """Memory of so many bytes, or with these in it. Raises AppleError."""
        data = np.frombuffer(b"" if isinstance(given, int) else np.ascontiguousarray(given), np.uint8)
        size = max(1, given if isinstance(given, int) else data.nbytes)
        with self.working():
            made = self.metal.newBufferWithLength_options_(size, self.own.metal.MTLResourceStorageModeShared)
            memory = np.asarray(_Owner(had(made, f"memory for {size} bytes"), size)).view(BufferMemory)
        memory.metal, memory.owner = made, self
        memory[: data.nbytes] = data
        return memory

    def kernel(self, text: str) -> AppleKernel:
        """Compiles a text. Raises AppleError with the compiler's words."""
        return AppleKernel(self, self.library(text))

    @contextmanager
    def working(self) -> Iterator[None]:
        """What Apple's interface hands out meanwhile is given back afterwards. Whatever pyobjc raises, also for what
        this version of it or of the system does not have, becomes an AppleError."""
        try:
            with self.own.objc.autorelease_pool():
                yield
        except (self.own.objc.error, AttributeError, TypeError, ValueError) as failure:
            raise AppleError(str(failure)) from failure

    def library(self, text: str) -> Any:
        """The functions of a text. Raises AppleError with the compiler's words."""
        with self.working():
            options = self.own.metal.MTLCompileOptions.alloc().init()
            options.setLanguageVersion_(self.own.metal.MTLLanguageVersion2_3)
            options.setFastMathEnabled_(False)  # else the compiler may take it that nothing is ever NaN
            return without_error(self.metal.newLibraryWithSource_options_error_(text, options, None))

    def check(self) -> None:
        """Raises AppleError if a launch has failed since the last call."""
        failure, self.failure = self.failure, None
        if failure is not None:
            raise AppleError(failure)


class AppleKernel:
    """A text that is compiled."""

    def __init__(self, device: AppleDevice, library: Any) -> None:
        self._device = device
        self._library = library

    def function(self, name: str) -> AppleFunction:
        """Raises AppleError."""
        with self._device.working():
            function = had(self._library.newFunctionWithName_(name), f"a function {name}")
            made = self._device.metal.newComputePipelineStateWithFunction_error_(function, None)
            return AppleFunction(self._device, without_error(made))


class AppleFunction:
    """A kernel that can be launched."""

    def __init__(self, device: AppleDevice, pipeline: Any) -> None:
        self._device = device
        self._pipeline = pipeline
        self._group = min(_GROUP, int(pipeline.maxTotalThreadsPerThreadgroup()))

    def __call__(self, count: int, *buffers: BufferMemory) -> DeviceWork:
        """Launches so many threads, rounded up to whole groups; waits for nothing. Raises AppleError if a launch before
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
    """Work that the device was given; who forgets it waits for it, while others may run Python. What goes wrong in it
    is told by whatever is launched next."""

    def __init__(self, device: AppleDevice, commands: Any) -> None:
        self._device = device
        self._commands = commands

    def wait(self) -> None:
        """Waits until it is done."""
        commands, self._commands = self._commands, None
        if commands is None:
            return
        commands.waitUntilCompleted()
        if commands.status() == self._device.own.metal.MTLCommandBufferStatusError:
            self._device.failure = words_of(commands.error())

    def __del__(self) -> None:
        if not sys.is_finalizing():  # else what it would need may be gone already
            self.wait()


def words_of(failure: Any) -> str:
    """What an error of Apple's says."""
    return "nothing is said about why" if failure is None else str(failure.localizedDescription())


def had(made: Any, what: str) -> Any:
    """What was asked for. Raises AppleError if it was not given."""
    if made is None:
        raise AppleError(f"Metal has not given {what}")
    return made


def without_error(answer: tuple[Any, Any]) -> Any:
    """What was made; warnings that come along are passed over. Raises AppleError with its words if nothing was."""
    made, failure = answer
    if made is None:
        raise AppleError(words_of(failure))
    return made
