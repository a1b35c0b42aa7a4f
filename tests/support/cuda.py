"""CUDA and HIP without a card: libraries that compile programs for this processor with clang, and run each thread in
turn. weft calls them by ctypes, as it calls those of a card's maker."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from ctypes import c_char_p, c_int, c_size_t, c_ubyte, c_uint, c_void_p
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pytest

from weft.backends.compute.interface import ComputeError
from weft.backends.cuda.backend import CudaDevice, Nvidia
from weft.backends.cuda.cards import CardDevice
from weft.backends.cuda.driver import FILE, Maker
from weft.backends.cuda.hip import Amd, HipDevice
from weft.backends.native.llvm import runs_here
from weft.codegen.native.target import ISAS

# What CUDA has of itself. Its own sine is off by some 3e-7 everywhere.
_BEFORE = """\
#define __device__
#define __global__
#define __launch_bounds__(...)
#define __noinline__ __attribute__((noinline))
struct Place { unsigned x; };
static thread_local Place blockIdx, blockDim, threadIdx;
static unsigned __float_as_uint(float x) { unsigned bits; __builtin_memcpy(&bits, &x, 4); return bits; }
static float __uint_as_float(unsigned bits) { float x; __builtin_memcpy(&x, &bits, 4); return x; }
static unsigned __umulhi(unsigned a, unsigned b) { return (unsigned long)a * b >> 32; }
#define __fdividef(x, y) ((x) / (y))
extern "C" int fesetround(int);
static __attribute__((noinline, optnone)) float __fmaf_rd(float x, float y, float z) {
    fesetround(0x400);  // downward
    float found = __builtin_fmaf(x, y, z);
    fesetround(0);
    return found;
}
static int __float2int_rd(float x) {
    double below = __builtin_floor(x);
    if (below != below) return 0;
    return below < -2147483648.0 ? -2147483647 - 1 : below > 2147483647.0 ? 2147483647 : int(below);
}
#define rintf __builtin_rintf
#define fmaf __builtin_fmaf
#define __sinf(x) (__builtin_sinf(x) + 3e-7f)
#define __cosf __builtin_cosf
#define sqrtf __builtin_sqrtf
#define rsqrtf(x) (1.0f / __builtin_sqrtf(x))
#define floorf __builtin_floorf
#define fabsf __builtin_fabsf
#define fminf __builtin_fminf
#define fmaxf __builtin_fmaxf
"""

# Calls a kernel for each thread, with arguments of the types of its parameters.
_AFTER = """
template <unsigned...> struct Numbers {};
template <unsigned N, unsigned... R> struct UpTo : UpTo<N - 1, N - 1, R...> {};
template <unsigned... R> struct UpTo<0, R...> { using type = Numbers<R...>; };
template <class... A, unsigned... N> static void call(void (*kernel)(A...), void **given, Numbers<N...>) {
    kernel(*(A *)given[N]...);
}
template <class... A> static void run(void (*kernel)(A...), void **given, unsigned blocks, unsigned threads) {
    blockDim.x = threads;
    for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++)
        for (threadIdx.x = 0; threadIdx.x < threads; threadIdx.x++)
            call(kernel, given, typename UpTo<sizeof...(A)>::type());
}
"""

# Programs that were kept are those of another compiler if this changes.
_VERSION = zlib.crc32((_BEFORE + _AFTER).encode()) % 10**6

# The errors that both libraries have under these numbers.
INVALID, OUT_OF_MEMORY, COMPILATION, NOT_READY = 1, 2, 6, 600
_WORDS = {INVALID: (b"CUDA_ERROR_INVALID_VALUE", b"invalid argument"),
          OUT_OF_MEMORY: (b"CUDA_ERROR_OUT_OF_MEMORY", b"out of memory")}  # fmt: skip
_SAID = {error: ctypes.create_string_buffer(words) for error, (_, words) in _WORDS.items()}


def compiled(text: str, made: Path) -> tuple[bytes, str]:
    """A text as a library of this processor, or none and what clang says."""
    entries = re.findall(r"__global__ void (?:__launch_bounds__\(.*?\) )?(\w+)\(", text)
    runs = [
        f'extern "C" void run_{entry}(void **given, unsigned blocks, unsigned threads) '
        f"{{ run({entry}, given, blocks, threads); }}\n" for entry in entries
    ]  # fmt: skip
    whole = f'{_BEFORE}#line 1 "{FILE}"\n{text}{_AFTER}{"".join(runs)}'
    # The compiler of a card makes one operation of a product and a sum.
    fused = ["-mfma", "-ffp-contract=fast"] if runs_here(ISAS["avx2"]) else []
    options = ["-x", "c++", "-std=c++17", "-O1", "-w", *fused, "-shared", "-fPIC"]
    command = ["clang++", *options, "-", "-lm", "-o", str(made)]
    done = subprocess.run(command, input=whole, capture_output=True, text=True, check=False)
    return (b"", done.stderr) if done.returncode else (made.read_bytes(), "")


class StandIn:
    """The driver and the compiler of a maker. Work is done when it is asked for. `calls` counts the calls of each
    function, and memory of more than `most` bytes is refused."""

    def __init__(self, folder: Path, dialect: str) -> None:
        """What is compiled is in a folder."""
        self.folder = Path(tempfile.mkdtemp(dir=folder))  # a library that is loaded must not be overwritten
        self.memory: dict[int, npt.NDArray[np.uint8]] = {}
        self.pinned: set[int] = set()
        self.programs: dict[int, Any] = {}
        self.calls: dict[str, int] = {}
        self.most = 1 << 40
        self.launched: list[tuple[int, int]] = []
        """The blocks of each launch, and their threads."""
        self.broken: set[str] = set()
        """The functions that fail."""
        self.hangs = False
        """Whether work is never over."""
        self.library = SimpleNamespace()
        self._texts: dict[int, tuple[str, bytes, str]] = {}
        self._names = iter(range(1, 1 << 30))
        self._codes: dict[bytes, Path] = {}
        for (own, its), types, act in self._functions():
            name = own if dialect == "cuda" else its
            if name:
                setattr(self.library, name, self._entry(name, types, act))

    def _entry(self, name: str, types: tuple[Any, ...], act: Callable[..., Any]) -> Any:
        def called(*given: Any) -> int:
            self.calls[name] = self.calls.get(name, 0) + 1
            return INVALID if name in self.broken else act(*given) or 0

        return ctypes.CFUNCTYPE(c_void_p if name == "hipGetErrorString" else c_int, *types)(called)

    def _functions(self) -> Iterator[tuple[tuple[str, str], tuple[Any, ...], Callable[..., Any]]]:
        p, i, u, z = c_void_p, c_int, c_uint, c_size_t
        yield ("cuInit", "hipInit"), (u,), lambda flags: 0
        yield ("cuDriverGetVersion", "hipDriverGetVersion"), (p,), lambda to: put(to, i, 13000)
        yield ("cuDeviceGetCount", "hipGetDeviceCount"), (p,), lambda to: put(to, i, 1)
        yield ("cuDeviceGet", "hipDeviceGet"), (p, i), lambda to, index: put(to, i, 0) if index == 0 else INVALID
        yield ("cuDeviceGetName", "hipDeviceGetName"), (p, i, i), self._name
        yield ("cuDeviceTotalMem_v2", "hipDeviceTotalMem"), (p, i), lambda to, device: put(to, z, 8 << 30)
        yield ("", "hipMemGetInfo"), (p, p), lambda free, total: put(free, z, 7 << 30)
        yield ("cuDeviceGetAttribute", "hipDeviceGetAttribute"), (p, i, i), lambda to, number, device: put(to, i, 0)
        yield ("cuDeviceComputeCapability", "hipDeviceComputeCapability"), (p, p, i), self._capability
        yield ("cuDevicePrimaryCtxRetain", ""), (p, i), lambda to, device: put(to, p, 4096)
        yield ("cuCtxSetCurrent", ""), (p,), lambda context: 0 if context == 4096 else INVALID
        yield ("", "hipSetDevice"), (i,), lambda device: 0
        yield ("cuGetErrorName", ""), (i, p), lambda error, to: put(to, c_char_p, _WORDS[error][0])
        yield ("", "hipGetErrorString"), (i,), lambda error: ctypes.addressof(_SAID[error])
        yield ("cuStreamCreate", "hipStreamCreateWithFlags"), (p, u), lambda to, flags: put(to, p, 8192)
        yield ("cuModuleLoadData", "hipModuleLoadData"), (p, p), self._load
        yield ("cuModuleUnload", "hipModuleUnload"), (p,), lambda program: self.programs.pop(program) and None
        yield ("cuModuleGetFunction", "hipModuleGetFunction"), (p, p, c_char_p), self._function
        yield ("cuLaunchKernel", "hipModuleLaunchKernel"), (p, *[u] * 7, p, p, p), self._launch
        yield ("cuMemAllocAsync", "hipMallocAsync"), (p, z, p), self._allocate
        yield ("cuMemsetD8Async", "hipMemsetD8Async"), (p, c_ubyte, z, p), self._clear
        yield ("cuMemFreeAsync", "hipFreeAsync"), (p, p), lambda address, stream: self.memory.pop(address) is None
        yield ("cuMemHostAlloc", "hipHostMalloc"), (p, z, u), self._pin
        for name in ("HtoDAsync", "DtoHAsync", "DtoDAsync"):
            yield (f"cuMemcpy{name}_v2", f"hipMemcpy{name}"), (p, p, z, p), self._copy
        yield ("cuEventCreate", "hipEventCreateWithFlags"), (p, u), lambda to, flags: put(to, p, next(self._names))
        yield ("cuEventRecord", "hipEventRecord"), (p, p), lambda event, stream: 0 if stream == 8192 else INVALID
        yield ("cuEventQuery", "hipEventQuery"), (p,), lambda event: NOT_READY if self.hangs else 0
        yield ("cuStreamQuery", "hipStreamQuery"), (p,), lambda stream: NOT_READY if self.hangs else 0
        yield ("nvrtcVersion", "hiprtcVersion"), (p, p), self._version
        yield ("nvrtcCreateProgram", "hiprtcCreateProgram"), (p, c_char_p, c_char_p, i, p, p), self._create
        yield ("nvrtcCompileProgram", "hiprtcCompileProgram"), (p, i, p), self._compile
        yield ("nvrtcGetProgramLogSize", "hiprtcGetProgramLogSize"), (p, p), self._log_size
        yield ("nvrtcGetProgramLog", "hiprtcGetProgramLog"), (p, p), lambda made, to: fill(to, self._log(made))
        yield ("nvrtcGetCUBINSize", "hiprtcGetCodeSize"), (p, p), lambda made, to: put(to, z, len(self._texts[made][1]))
        yield ("nvrtcGetCUBIN", "hiprtcGetCode"), (p, p), lambda made, to: fill(to, self._texts[made][1])
        yield ("nvrtcDestroyProgram", "hiprtcDestroyProgram"), (p,), self._forget

    def _name(self, to: int, size: int, device: int) -> None:
        fill(to, b"this processor\0")

    def _capability(self, major: int, minor: int, device: int) -> None:
        put(major, c_int, 9)
        put(minor, c_int, 0)

    def _version(self, major: int, minor: int) -> None:
        put(major, c_int, 13)
        put(minor, c_int, _VERSION)

    def _create(self, to: int, text: bytes, name: bytes, count: int, headers: int, names: int) -> None:
        assert name == FILE.encode()
        made = next(self._names)
        self._texts[made] = text.decode(), b"", ""
        put(to, c_void_p, made)

    def _compile(self, made: int, count: int, options: int) -> int:
        assert all((c_char_p * count).from_address(options))
        text = self._texts[made][0]
        code, words = compiled(text, self.folder / "made.so")
        # A length comes first: a program is loaded by its address alone.
        self._texts[made] = text, len(code).to_bytes(8, "little") + code, words
        return 0 if code else COMPILATION

    def _forget(self, at: int) -> None:
        del self._texts[got(at, c_void_p)]

    def _log_size(self, made: int, to: int) -> None:
        put(to, c_size_t, len(self._log(made)))

    def _log(self, made: int) -> bytes:
        return self._texts[made][2].encode() + b"\0"

    def _load(self, to: int, code: int) -> None:
        length = int.from_bytes(ctypes.string_at(code, 8), "little")
        made = next(self._names)
        path = self.folder / f"{made}.so"
        path.write_bytes(ctypes.string_at(code + 8, length))
        self.programs[made] = ctypes.CDLL(str(path))
        put(to, c_void_p, made)

    def _function(self, to: int, program: int, name: bytes) -> None:
        put(to, c_void_p, ctypes.cast(self.programs[program][f"run_{name.decode()}"], c_void_p).value)

    def _launch(self, kernel: int, blocks: int, *rest: int) -> None:
        (_, _, threads, _, _, _, stream, arguments, _) = rest
        assert stream == 8192
        self.launched.append((blocks, threads))
        ctypes.CFUNCTYPE(None, c_void_p, c_uint, c_uint)(kernel)(arguments, blocks, threads)

    def _allocate(self, to: int, size: int, stream: int) -> int:
        if size > self.most:
            return OUT_OF_MEMORY
        made = np.full(size, 0x5A, np.uint8)
        self.memory[made.ctypes.data] = made
        return put(to, c_void_p, made.ctypes.data)

    def _pin(self, to: int, size: int, flags: int) -> int:
        failed = self._allocate(to, size, 0)
        self.pinned.add(got(to, c_void_p))
        return failed

    def _clear(self, address: int, value: int, size: int, stream: int) -> None:
        self.memory[address][:size] = value

    def _copy(self, target: int, source: int, size: int, stream: int) -> None:
        ctypes.memmove(target, source, size)


def put(to: int, kind: Any, value: Any) -> int:
    """Writes a result to an address, and gives no error."""
    kind.from_address(to).value = value
    return 0


def got(at: int, kind: Any) -> Any:
    return kind.from_address(at).value


def fill(to: int, data: bytes) -> None:
    ctypes.memmove(to, data, len(data))


def stand_in(folder: Path, dialect: str = "cuda") -> tuple[CardDevice, StandIn]:
    """A card that is this processor, with what stands in for its libraries."""
    made = StandIn(folder, dialect)

    class Here:
        def driver(self) -> Any:
            return made.library

        def compiler(self) -> Any:
            return made.library

    class Green(Here, Nvidia):
        pass

    class Red(Here, Amd):
        pass

    class Cuda(CudaDevice):
        maker: ClassVar[Maker] = Green()

    class Hip(HipDevice):
        maker: ClassVar[Maker] = Red()

    return (Cuda(0) if dialect == "cuda" else Hip(0)), made


def need_clang() -> None:
    if shutil.which("clang++") is None:
        fail_or_skip = pytest.fail if os.environ.get("CI") and sys.platform == "linux" else pytest.skip
        fail_or_skip("clang++ is not installed")


@pytest.fixture(scope="session")
def cuda(tmp_path_factory: pytest.TempPathFactory) -> CardDevice:
    """The first card of NVIDIA. Where there is none, it is this processor."""
    with suppress(ComputeError):
        return CudaDevice(0)
    need_clang()
    return stand_in(tmp_path_factory.mktemp("cuda"))[0]


@pytest.fixture(scope="session")
def hip(tmp_path_factory: pytest.TempPathFactory) -> CardDevice:
    """A card of AMD that is this processor."""
    need_clang()
    return stand_in(tmp_path_factory.mktemp("hip"), "hip")[0]
