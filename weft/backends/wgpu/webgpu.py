"""A device of WebGPU that is open: its buffers, its programs, and the queue of its work."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, ClassVar, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from weft.backends.compute.interface import Arrival, Bytes, CompileError, RemoteDevice, Run, as_bytes, failing
from weft.backends.lent_memory import lent
from weft.backends.wgpu import adapters
from weft.codegen.clike.shader import plain
from weft.codegen.wgsl import GROUP

# What a program may need more of than every device has.
_LIMITS = ("max-storage-buffers-per-shader-stage", "max-storage-buffer-binding-size", "max-buffer-size")

# The variables of a program, which are its buffers in order, and what binds them.
_VARIABLE = re.compile(r"^@group\(0\) @binding\(\d+\) var<([^>]*)>", re.MULTILINE)
_KINDS = {"uniform": "uniform", "storage, read": "read-only-storage", "storage, read_write": "storage"}

# Finds the line in a compiler's errors, after the words.
_LINE = re.compile(r"error: (.*)\n\s*┌─ .*?:(\d+):\d+")


class Fence(NamedTuple):
    """A launch under way: something that can be read after it."""

    wait: Callable[[], Any]


class _NoThread:
    """Stands for the thread in which the library waits for a device. Its waits have no end, and a thread that gives the
    device work meanwhile waits with it. Here, who waits asks the device."""

    def get_token(self) -> _NoThread:
        return self

    def set_done(self) -> None:
        pass

    def stop(self) -> None:
        pass


class WgpuDevice(RemoteDevice):
    """A device. Its memory is used as its own, even where the processor shares it."""

    library: ClassVar[str] = "WebGPU"
    option: ClassVar[str] = "--dump-wgsl"

    def __init__(self, index: int) -> None:
        """Raises ComputeError."""
        self.gpu = adapters.library()
        with failing(f"the device {index} cannot be opened"):
            adapter = adapters.found()[index]
            self.own = adapter.request_device_sync(required_limits={name: adapter.limits[name] for name in _LIMITS})
            self.own._poller.stop()
            self.own._poller = _NoThread()
        self.waits.is_processor = adapter.info["adapter_type"] == "CPU"
        self._largest = min(self.own.limits[name] for name in _LIMITS[1:])
        usage = self.gpu.BufferUsage
        self._usage = usage.STORAGE | usage.UNIFORM | usage.COPY_SRC | usage.COPY_DST
        self._reading = usage.MAP_READ | usage.COPY_DST
        self._lendable: WeakKeyDictionary[Any, list[Any]] = WeakKeyDictionary()
        """For each buffer that was lent, those that it was copied to and nobody reads any more. They are mapped."""
        self._last: Any = None
        """The last reading that was begun."""
        self._mark = self.allocate(4)
        self.waits.kept.append(self.own)

    @contextmanager
    def told(self) -> Iterator[None]:
        """Makes an error of the library one with its last words alone."""
        try:
            yield
        except self.gpu.GPUError as failure:
            raise RuntimeError(_words(failure)) from failure

    def allocate(self, size: int) -> Any:
        size = _whole(size)
        if size > self._largest:
            raise MemoryError(f"a buffer of {size} bytes is larger than the {self._largest} that it takes")
        with self.told():
            return self.own.create_buffer(size=size, usage=self._usage)

    def send(self, data: npt.NDArray[Any], before: Any = None) -> Any:
        # What is written waits for launches under way that read it.
        made = before if before is not None and before.size == _whole(data.nbytes) else self.allocate(data.nbytes)
        self.write(made, data)
        return made

    def write(self, buffer: Any, data: npt.NDArray[Any], start: int = 0) -> None:
        given = as_bytes(data) if data.nbytes % 4 == 0 else np.pad(as_bytes(data), (0, -data.nbytes % 4))
        with self.told():
            if given.size:
                self.own.queue.write_buffer(buffer, start, given)

    def copy(self, source: Any, start: int, target: Any, to: int, size: int) -> None:
        if source is target:
            self.copy(source, start, between := self.allocate(size), 0, size)
            source, start = between, 0
        with self.told():
            encoder = self.own.create_command_encoder()
            encoder.copy_buffer_to_buffer(source, start, target, to, _whole(size))
            self._submit(encoder)

    def read(
        self, buffer: Any, after: Run | None = None, start: int = 0, size: int | None = None, encoder: Any = None
    ) -> Arrival:
        """See there. Submits what an encoder holds, and reads when that is done."""
        wanted = buffer.size - start if size is None else size
        with self.told():
            into = self.own.create_buffer(size=_whole(wanted), usage=self._reading)
        mapped = self._mapped(buffer, start, into, encoder)

        def fetch() -> Bytes:
            return mapped()[:wanted].copy()

        return fetch

    def lending(self, buffer: Any, after: Run) -> Arrival:
        """See there. Making memory that the processor maps takes long, so it is used again."""
        lendable = self._lendable.setdefault(buffer, [])
        with self.told():
            if lendable:
                (into := lendable.pop()).unmap()
            else:
                into = self.own.create_buffer(size=buffer.size, usage=self._reading)
        mapped = self._mapped(buffer, 0, into)

        def fetch() -> Bytes:
            found = mapped()
            return lent(found.ctypes.data, found.shape, lambda: lendable.append(into))

        return fetch

    def _mapped(self, buffer: Any, start: int, into: Any, encoder: Any = None) -> Arrival:
        """Begins to read into a buffer. What it returns waits, and gives the memory of that, until it is unmapped."""
        with self.told():
            encoder = encoder or self.own.create_command_encoder()
            encoder.copy_buffer_to_buffer(buffer, start, into, 0, into.size)
            self._submit(encoder)
            self._last = promise = into.map_async("READ_NOSYNC")

        def fetch() -> Bytes:
            self._wait_for(promise)
            with self.told():
                promise.sync_wait()
                return np.frombuffer(into.read_mapped(copy=False), np.uint8)

        return fetch

    def _submit(self, encoder: Any) -> None:
        # A driver may take more work only when it has done what it has, and that has no end.
        if self._last is not None:
            self._wait_for(self._last)
        self.own.queue.submit([encoder.finish()])

    def _wait_for(self, promise: Any) -> None:
        """Waits for a reading, as `sync_wait` does, but with an end."""
        self.waits.until(partial(self._is_over, promise._thread_event))

    def _is_over(self, known: Any) -> bool:
        """Whether it is known that a reading has come, or cannot. Asks the device, which hands over all that has."""
        if not known.is_set():
            self.own._poll()
        return bool(known.is_set())

    def compile(self, text: str, entry: str) -> Any:
        seen = {"visibility": self.gpu.ShaderStage.COMPUTE}
        kinds = [{"type": _KINDS[kind]} for kind in _VARIABLE.findall(text)]
        entries = [{"binding": at, "buffer": kind, **seen} for at, kind in enumerate(kinds)]
        try:
            stage = {"module": self.own.create_shader_module(code=plain(text)), "entry_point": entry}
            layout = self.own.create_bind_group_layout(entries=entries)
            whole = self.own.create_pipeline_layout(bind_group_layouts=[layout])
            return self.own.create_compute_pipeline(layout=whole, compute=stage), layout
        except self.gpu.GPUError as failure:
            words, place = _words(failure), _LINE.search(str(failure))
            if words == "Parent device is lost" or isinstance(failure, self.gpu.GPUOutOfMemoryError):
                raise RuntimeError(words) from failure
            raise CompileError(*(place[1], int(place[2])) if place else (words,)) from failure

    def launch(self, kernel: Any, count: int, buffers: Sequence[Any]) -> Run:
        bound = [{"binding": at, "resource": {"buffer": each}} for at, each in enumerate(buffers)]
        groups = -(-count // GROUP)
        rows = -(-groups // self.own.limits["max-compute-workgroups-per-dimension"])
        with self.told():
            encoder = self.own.create_command_encoder()
            work = encoder.begin_compute_pass()
            work.set_pipeline(kernel[0])
            work.set_bind_group(0, self.own.create_bind_group(layout=kernel[1], entries=bound))
            work.dispatch_workgroups(-(-groups // rows), rows)
            work.end()
        return Fence(cache(self.read(self._mark, encoder=encoder)))

    def wait(self) -> None:
        self.read(self._mark)()


def _words(failure: Exception) -> str:
    """What is wrong: what a compiler says, or else the last line of an error."""
    if place := _LINE.search(str(failure)):
        return place[1]
    return [line.strip() for line in ["it gives no reason", *str(failure).splitlines()] if line.strip()][-1]


def _whole(size: int) -> int:
    """Bytes as whole words, of which buffers and copies consist. Without any it is the size of the largest item."""
    return -(-size // 4) * 4 or 16
