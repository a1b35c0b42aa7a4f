"""A device of OpenCL that is open: its buffers, its programs, and the queue of its work."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from weft.backends.compute.interface import Arrival, Bytes, CompileError, ComputeError, RemoteDevice, Run, as_bytes
from weft.backends.opencl import platforms
from weft.backends.waits import DeviceCommand
from weft.codegen.clike.shader import plain

# The threads of a group, unless the kernel allows fewer.
_GROUP = 256

# Nothing that would change NaN or infinities, or reorder sums.
_OPTIONS = ("-cl-std=CL1.2",)
_EXACT = "-cl-fp32-correctly-rounded-divide-sqrt"

# Finds the line in a compiler's errors: "<kernel>:12:3: error: …", or in those of PoCL "error: …/file.cl:12:3: …".
_LINE = re.compile(r":(\d+):\d+: (?:fatal )?error: (.*)|error: [^\n]*:(\d+):\d+: (.*)")


class ClDevice(RemoteDevice):
    """A device. Its memory is used as its own, even where the processor shares it."""

    library: ClassVar[str] = "OpenCL"
    option: ClassVar[str] = "--dump-opencl"

    def __init__(self, index: int) -> None:
        """Raises ComputeError."""
        self._cl = cl = platforms.library()
        try:
            device = platforms.found(cl)[index]
            self._context = cl.Context([device])
            self._queue = cl.CommandQueue(self._context)
            rounds = device.single_fp_config & cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT
        except ComputeError:
            raise
        except Exception as failure:  # drivers fail in many ways
            raise ComputeError(f"the device {index} cannot be opened ({failure})") from failure
        self._device = device
        if device.type & cl.device_type.CPU:
            self.waits.is_processor = True
        self.waits.kept += [self._queue, self._context]
        self._options = [*_OPTIONS, _EXACT] if rounds else [*_OPTIONS]

    def allocate(self, size: int) -> Any:
        size = -(-max(1, size) // 4) * 4
        made = self._cl.Buffer(self._context, self._cl.mem_flags.READ_WRITE, size)
        self._cl.enqueue_fill_buffer(self._queue, made, np.zeros(1, np.uint32), 0, size)
        return made

    def send(self, data: npt.NDArray[Any], before: Any = None) -> Any:
        # Copying into `before` would have to keep the data until the queue has come to it.
        flags = self._cl.mem_flags.READ_WRITE | self._cl.mem_flags.COPY_HOST_PTR
        return self._cl.Buffer(self._context, flags, hostbuf=as_bytes(data))

    def write(self, buffer: Any, data: npt.NDArray[Any], start: int = 0) -> None:
        self._copying(buffer, as_bytes(data), dst_offset=start).wait()

    def copy(self, source: Any, start: int, target: Any, to: int, size: int) -> None:
        self._cl.enqueue_copy(self._queue, target, source, byte_count=size, src_offset=start, dst_offset=to)

    def read(self, buffer: Any, after: Run | None = None, start: int = 0, size: int | None = None) -> Arrival:
        into = np.empty(buffer.size - start if size is None else size, np.uint8)
        copying = self._copying(into, buffer, src_offset=start)

        def fetch() -> Bytes:
            copying.wait()
            return into

        return fetch

    def _copying(self, target: Any, source: Any, **places: int) -> DeviceCommand:
        """Begins to copy to or from memory of the computer. To forget that waits for it."""
        begun = self._begun(self._cl.enqueue_copy(self._queue, target, source, is_blocking=False, **places))
        self.waits.keep(begun)
        return begun

    def _begun(self, event: Any) -> DeviceCommand:
        """A command that an event stands for."""
        self._queue.flush()
        return DeviceCommand(self.waits, lambda: event.command_execution_status <= 0, event.wait)

    def compile(self, text: str, entry: str) -> Any:
        # A program that is made so leaves caching to the driver: pyopencl would keep the texts of those that fail.
        program = self._cl.Program(self._cl._cl._Program(self._context, plain(text)))
        try:
            with warnings.catch_warnings():
                # A compiler may remark on a program that it takes.
                warnings.simplefilter("ignore", self._cl.CompilerWarning)
                made = program.build(options=self._options)
        except self._cl.RuntimeError as failure:
            found = _LINE.search(str(failure))
            if found is None:
                raise CompileError(str(failure)) from failure
            raise CompileError(found[2] or found[4], int(found[1] or found[3])) from failure
        return self._cl.Kernel(made, entry)

    def launch(self, kernel: Any, count: int, buffers: Sequence[Any]) -> Run:
        kernel.set_args(*buffers)
        limit = kernel.get_work_group_info(self._cl.kernel_work_group_info.WORK_GROUP_SIZE, self._device)
        group = min(_GROUP, limit)
        threads = -(-count // group) * group
        return self._begun(self._cl.enqueue_nd_range_kernel(self._queue, kernel, (threads,), (group,)))

    def wait(self) -> None:
        self._begun(self._cl.enqueue_marker(self._queue)).wait()
