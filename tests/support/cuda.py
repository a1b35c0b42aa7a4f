"""CUDA without a card: a driver that compiles programs for this processor with clang and runs each thread in turn."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from weft.backends.cuda.cards import FILE, CudaDevice, Driver

# What CUDA has of itself.
_BEFORE = """\
#define __device__
#define __global__
struct Place { unsigned x; };
static thread_local Place blockIdx, blockDim, threadIdx;
static unsigned __float_as_uint(float x) { unsigned bits; __builtin_memcpy(&bits, &x, 4); return bits; }
static float __uint_as_float(unsigned bits) { float x; __builtin_memcpy(&x, &bits, 4); return x; }
#define rintf __builtin_rintf
#define fmaf __builtin_fmaf
#define __sinf __builtin_sinf
#define __cosf __builtin_cosf
#define sqrtf __builtin_sqrtf
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


class ClangDriver(Driver):
    """A card that is this processor. Work is done when it is asked for."""

    def __init__(self, folder: Path) -> None:
        """What is compiled is in a folder."""
        self.memory: dict[int, npt.NDArray[np.uint8]] = {}
        self._folder = folder
        self._loaded = 0

    def enter(self) -> None:
        pass

    def compile(self, text: str) -> tuple[bytes, str]:
        entries = re.findall(r"__global__ void (\w+)\(", text)
        runs = [
            f'extern "C" void run_{entry}(void **given, unsigned blocks, unsigned threads) '
            f"{{ run({entry}, given, blocks, threads); }}\n" for entry in entries
        ]  # fmt: skip
        whole = f'{_BEFORE}#line 1 "{FILE}"\n{text}{_AFTER}{"".join(runs)}'
        made = self._folder / "made.so"
        command = ["clang++", "-x", "c++", "-std=c++17", "-O1", "-w", "-shared", "-fPIC", "-", "-lm", "-o", str(made)]
        done = subprocess.run(command, input=whole, capture_output=True, text=True, check=False)
        return (b"", done.stderr) if done.returncode else (made.read_bytes(), "")

    def load(self, code: bytes, entry: str) -> Any:
        self._loaded += 1
        path = self._folder / f"{self._loaded}.so"
        path.write_bytes(code)
        return ctypes.CDLL(str(path))[f"run_{entry}"]

    def launch(self, kernel: Any, blocks: int, threads: int, arguments: int) -> None:
        kernel(ctypes.c_void_p(arguments), blocks, threads)

    def allocate(self, size: int) -> int:
        made = np.zeros(size, np.uint8)
        self.memory[made.ctypes.data] = made
        return int(made.ctypes.data)

    def free(self, address: int) -> None:
        del self.memory[address]

    def pinned(self, size: int) -> int:
        return self.allocate(size)

    def send(self, target: int, source: int, size: int) -> None:
        ctypes.memmove(target, source, size)

    def fetch(self, target: int, source: int, size: int) -> None:
        ctypes.memmove(target, source, size)

    def copy(self, target: int, source: int, size: int) -> None:
        ctypes.memmove(target, source, size)

    def mark(self) -> Any:
        return object()

    def wait(self, mark: Any) -> None:
        pass

    def forget(self, mark: Any) -> None:
        pass


@pytest.fixture(scope="session")
def cuda(tmp_path_factory: pytest.TempPathFactory) -> CudaDevice:
    """A card that is this processor."""
    if shutil.which("clang++") is None:
        fail_or_skip = pytest.fail if os.environ.get("CI") and sys.platform == "linux" else pytest.skip
        fail_or_skip("clang++ is not installed")
    return CudaDevice(ClangDriver(tmp_path_factory.mktemp("cuda")))
