"""Cards of NVIDIA, by the packages cuda-bindings and nvidia-cuda-nvrtc."""

from __future__ import annotations

from typing import Any

from weft.backends.base import DeviceInfo
from weft.backends.compute.interface import ComputeError
from weft.backends.cuda.cards import FILE, Driver

# Exact quotients and roots take several times as long.
_OPTIONS = (b"--std=c++17", b"--prec-div=false", b"--prec-sqrt=false")

REMEDY = 'pip install "weft-live[cuda]"'


def devices() -> list[DeviceInfo]:
    """The cards; never raises."""
    try:
        library = _libraries()[0]
        _done(library.cuInit(0))
        found = [_described(library, index) for index in range(_done(library.cuDeviceGetCount()))]
    except ComputeError as failure:
        return [_missing(str(failure), REMEDY)]
    except Exception as failure:  # of a library that finds no driver
        return [_missing(f"the driver of NVIDIA does not answer ({failure})", None)]
    return found or [_missing("there is no card of NVIDIA", None)]


def _missing(reason: str, remedy: str | None) -> DeviceInfo:
    return DeviceInfo(0, "CUDA", available=False, reason=reason, remedy=remedy, platform="CUDA")


def _described(library: Any, index: int) -> DeviceInfo:
    device = _done(library.cuDeviceGet(index))
    name = bytes(_done(library.cuDeviceGetName(128, device))).split(b"\0")[0].decode(errors="replace")
    total = int(_done(library.cuDeviceTotalMem(device)))
    version = int(_done(library.cuDriverGetVersion()))
    kind = library.CUdevice_attribute
    return DeviceInfo(
        index, name, memory_total=total, memory_free=_free(index, total),
        unified=bool(_done(library.cuDeviceGetAttribute(kind.CU_DEVICE_ATTRIBUTE_INTEGRATED, device))),
        compute=f"compute capability {'.'.join(map(str, _capability(library, device)))}",
        driver=f"CUDA {version // 1000}.{version % 1000 // 10}", platform="CUDA",
    )  # fmt: skip


def _capability(library: Any, device: Any) -> tuple[int, int]:
    kind = library.CUdevice_attribute
    major = _done(library.cuDeviceGetAttribute(kind.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device))
    minor = _done(library.cuDeviceGetAttribute(kind.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device))
    return int(major), int(minor)


def _free(index: int, total: int) -> int:
    """The free memory of a card. Asked without a context, which would take some of it."""
    try:
        from cuda.bindings import nvml

        nvml.init_v2()
        return int(nvml.device_get_memory_info_v2(nvml.device_get_handle_by_index_v2(index)).free)
    except Exception:  # the library of NVIDIA's tools may be missing, or count other cards
        return total


def _libraries() -> tuple[Any, Any]:
    """The driver and the compiler. Raises ComputeError."""
    try:
        from cuda.bindings import driver, nvrtc
    except ImportError as failure:
        raise ComputeError("cuda-bindings is not installed") from failure
    return driver, nvrtc


def _done(answer: tuple[Any, ...]) -> Any:
    """The result of a call. Raises RuntimeError with the words of the driver."""
    error, *found = answer
    if int(error):
        raise RuntimeError(f"{error.name.removeprefix('CUDA_ERROR_').replace('_', ' ').lower()}")
    return found[0] if found else None


class NvidiaDriver(Driver):
    """One card. It shares its context with everything else in the process that uses CUDA."""

    def __init__(self, index: int) -> None:
        """Raises ComputeError."""
        self._cuda, self._nvrtc = _libraries()
        try:
            _done(self._cuda.cuInit(0))
            device = _done(self._cuda.cuDeviceGet(index))
            self._context = _done(self._cuda.cuDevicePrimaryCtxRetain(device))
            self.enter()
            self._stream = _done(self._cuda.cuStreamCreate(self._cuda.CUstream_flags.CU_STREAM_NON_BLOCKING))
            self._architecture = "sm_{}{}".format(*_capability(self._cuda, device))
        except Exception as failure:
            raise ComputeError(f"the device {index} cannot be opened ({failure})") from failure

    def enter(self) -> None:
        _done(self._cuda.cuCtxSetCurrent(self._context))

    def compile(self, text: str) -> tuple[bytes, str]:
        rtc = self._nvrtc
        program = _done(rtc.nvrtcCreateProgram(text.encode(), FILE.encode(), 0, [], []))
        try:
            options = [f"--gpu-architecture={self._architecture}".encode(), *_OPTIONS]
            if int(rtc.nvrtcCompileProgram(program, len(options), options)[0]):
                words = bytes(_done(rtc.nvrtcGetProgramLogSize(program)))
                _done(rtc.nvrtcGetProgramLog(program, words))
                return b"", words.split(b"\0")[0].decode(errors="replace")
            code = bytes(_done(rtc.nvrtcGetCUBINSize(program)))
            _done(rtc.nvrtcGetCUBIN(program, code))
            return code, ""
        finally:
            rtc.nvrtcDestroyProgram(program)

    def load(self, code: bytes, entry: str) -> Any:
        return _done(self._cuda.cuModuleGetFunction(_done(self._cuda.cuModuleLoadData(code)), entry.encode()))

    def launch(self, kernel: Any, blocks: int, threads: int, arguments: int) -> None:
        _done(self._cuda.cuLaunchKernel(kernel, blocks, 1, 1, threads, 1, 1, 0, self._stream, arguments, 0))

    def allocate(self, size: int) -> int:
        address = _done(self._cuda.cuMemAllocAsync(size, self._stream))
        _done(self._cuda.cuMemsetD8Async(address, 0, size, self._stream))
        return int(address)

    def free(self, address: int) -> None:
        self._cuda.cuMemFreeAsync(address, self._stream)

    def pinned(self, size: int) -> int:
        return int(_done(self._cuda.cuMemAllocHost(size)))

    def send(self, target: int, source: int, size: int) -> None:
        _done(self._cuda.cuMemcpyHtoDAsync(target, source, size, self._stream))

    def fetch(self, target: int, source: int, size: int) -> None:
        _done(self._cuda.cuMemcpyDtoHAsync(target, source, size, self._stream))

    def copy(self, target: int, source: int, size: int) -> None:
        _done(self._cuda.cuMemcpyDtoDAsync(target, source, size, self._stream))

    def mark(self) -> Any:
        event = _done(self._cuda.cuEventCreate(self._cuda.CUevent_flags.CU_EVENT_DISABLE_TIMING))
        _done(self._cuda.cuEventRecord(event, self._stream))
        return event

    def wait(self, mark: Any) -> None:
        _done(self._cuda.cuEventSynchronize(mark))

    def forget(self, mark: Any) -> None:
        self._cuda.cuEventDestroy(mark)
