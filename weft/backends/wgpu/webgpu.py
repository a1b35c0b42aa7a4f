"""A device of WebGPU that is open: its buffers, its programs, and the queue of its work."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from weft.backends.compute.interface import Arrival, Bytes, CompileError, ComputeError, RemoteDevice, Run, as_bytes
from weft.backends.wgpu import adapters
from weft.codegen.clike.shader import plain
from weft.codegen.wgsl import GROUP

# What a program may need more of than every device has.
_LIMITS = ("max-storage-buffers-per-shader-stage", "max-storage-buffer-binding-size", "max-buffer-size")

# The bytes of the largest item of a buffer: a program is given a buffer for one, or more.
_ITEM = 16

# The variables of a program, which are its buffers in order.
_VARIABLE = re.compile(r"^@group\(0\) @binding\(\d+\) var<(\w+)(?:, (\w+))?>", re.MULTILINE)

# Finds the line in a compiler's errors, after the words.
_LINE = re.compile(r"error: (.*)\n\s*┌─ .*?:(\d+):\d+")


class Pipeline(NamedTuple):
    """A compiled kernel, and the kinds of its buffers."""

    pipeline: Any
    layout: Any


class WgpuDevice(RemoteDevice):
    """A device. Its memory is used as its own, even where the processor shares it."""

    library: ClassVar[str] = "WebGPU"
    option: ClassVar[str] = "--dump-wgsl"

    def __init__(self, index: int) -> None:
        """Raises ComputeError."""
        self._gpu = gpu = adapters.library()
        try:
            adapter = adapters.found()[index]
            self._device = adapter.request_device_sync(required_limits={name: adapter.limits[name] for name in _LIMITS})
        except ComputeError:
            raise
        except Exception as failure:  # drivers fail in many ways
            raise ComputeError(f"the device {index} cannot be opened ({failure})") from failure
        self._queue = self._device.queue
        self._largest = min(self._device.limits[name] for name in _LIMITS[1:])
        usage = gpu.BufferUsage
        self._usage = usage.STORAGE | usage.UNIFORM | usage.COPY_SRC | usage.COPY_DST
        self._reading = usage.MAP_READ | usage.COPY_DST
        self._mark = self.allocate(4)

    def allocate(self, size: int) -> Any:
        size = _whole(size)
        if size > self._largest:
            raise MemoryError(f"a buffer of {size} bytes is larger than the {self._largest} that it takes")
        return self._device.create_buffer(size=size, usage=self._usage)

    def send(self, data: npt.NDArray[Any], before: Any = None) -> Any:
        # What is written waits for launches under way that read it.
        fits = before is not None and before.size == _whole(data.nbytes)
        made = before if fits else self.allocate(data.nbytes)
        self.write(made, data)
        return made

    def write(self, buffer: Any, data: npt.NDArray[Any], start: int = 0) -> None:
        given = as_bytes(data)
        if given.size % 4:
            given = np.concatenate([given, np.zeros(-given.size % 4, np.uint8)])
        if given.size:
            self._queue.write_buffer(buffer, start, given)

    def copy(self, source: Any, start: int, target: Any, to: int, size: int) -> None:
        if source is target:
            between = self.allocate(size)
            self.copy(source, start, between, 0, size)
            source, start = between, 0
        encoder = self._device.create_command_encoder()
        encoder.copy_buffer_to_buffer(source, start, target, to, _whole(size))
        self._queue.submit([encoder.finish()])

    def read(self, buffer: Any, after: Run | None = None, start: int = 0, size: int | None = None) -> Arrival:
        return self._sent(self._device.create_command_encoder(), buffer, start, size)

    def _sent(self, encoder: Any, buffer: Any, start: int = 0, size: int | None = None) -> Arrival:
        """Begins to read bytes when what an encoder holds is done, and submits that."""
        wanted = buffer.size - start if size is None else size
        into = self._device.create_buffer(size=_whole(wanted), usage=self._reading)
        encoder.copy_buffer_to_buffer(buffer, start, into, 0, into.size)
        self._queue.submit([encoder.finish()])
        promise = into.map_async("READ_NOSYNC")

        def fetch() -> Bytes:
            promise.sync_wait()
            found = np.frombuffer(into.read_mapped(), np.uint8)[:wanted]
            into.destroy()
            return found

        return fetch

    def compile(self, text: str, entry: str) -> Any:
        kinds = {("uniform", ""): "uniform", ("storage", "read"): "read-only-storage"}
        entries = [
            {"binding": at, "visibility": self._gpu.ShaderStage.COMPUTE,
             "buffer": {"type": kinds.get((found[1], found[2] or ""), "storage")}}
            for at, found in enumerate(_VARIABLE.finditer(text))
        ]  # fmt: skip
        try:
            module = self._device.create_shader_module(code=plain(text))
            layout = self._device.create_bind_group_layout(entries=entries)
            whole = self._device.create_pipeline_layout(bind_group_layouts=[layout])
            stage = {"module": module, "entry_point": entry}
            return Pipeline(self._device.create_compute_pipeline(layout=whole, compute=stage), layout)
        except self._gpu.GPUError as failure:
            words = str(failure)
            place = _LINE.search(words)
            raise CompileError(*(place[1], int(place[2])) if place else (words,)) from failure

    def launch(self, kernel: Any, count: int, buffers: Sequence[Any]) -> Run:
        bound = [{"binding": at, "resource": {"buffer": each}} for at, each in enumerate(buffers)]
        encoder = self._device.create_command_encoder()
        work = encoder.begin_compute_pass()
        work.set_pipeline(kernel.pipeline)
        work.set_bind_group(0, self._device.create_bind_group(layout=kernel.layout, entries=bound))
        groups = -(-count // GROUP)
        rows = -(-groups // self._device.limits["max-compute-workgroups-per-dimension"])
        work.dispatch_workgroups(-(-groups // rows), rows)
        work.end()
        return _Fence(self._sent(encoder, self._mark))

    def wait(self) -> None:
        self._sent(self._device.create_command_encoder(), self._mark)()


def _whole(size: int) -> int:
    """Bytes as whole words, of which buffers and copies consist. Without any it is the size of the largest item."""
    return -(-size // 4) * 4 or _ITEM


class _Fence:
    """A launch under way, which is done when something has been read after it."""

    def __init__(self, arrival: Arrival) -> None:
        self._arrival: Arrival | None = arrival

    def wait(self) -> None:
        arrival, self._arrival = self._arrival, None
        if arrival is not None:
            arrival()
