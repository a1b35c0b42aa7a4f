"""A device with the interface of metalcompute that runs kernels on the processor: compiled by clang, with the freedoms
that compilers of Metal take with reals."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.support.metal.check import clang, isolated, parameters
from tests.support.metal.header import PRECISE, header

THREADGROUP = 1024
"""Launches are rounded up to whole groups of this many threads."""

PLAIN = ("-x", "c++", "-std=c++14", "-nostdinc", "-O1", "-fPIC", "-fno-color-diagnostics", "-Wno-everything")
_FAST = (*PLAIN, "-ffast-math", "-Xclang", "-cl-single-precision-constant")

# From this version on, clang notes that no function is ever given NaN, and drops what looks for it by its bits.
_DROPS_GUARDS = 17

# Not linked as such: the option for fast reals makes the whole process lose its smallest numbers there.
_LINKED = ("-shared", "-nostartfiles", "-lm")


class error(Exception):  # noqa: N801, N818 - as metalcompute has it
    """What is wrong with a kernel, or a call."""


class CpuDevice:
    """The processor, in place of `metalcompute.Device(i)`."""

    def __init__(self, index: int = 0) -> None:
        self._ready: dict[str, Any] = {}
        self._folder = TemporaryDirectory(prefix="weft-msl-")
        self._made = 0
        write_library(self.folder)

    @property
    def folder(self) -> Path:
        """The folder of compiled code, and of what compiling needs."""
        return Path(self._folder.name)

    def __enter__(self) -> CpuDevice:
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def prepare(self, texts: Sequence[str]) -> None:
        """Compiles many kernels at once, which is faster. Raises error."""
        texts = [text for text in dict.fromkeys(texts) if text not in self._ready]
        if not texts:
            return
        self._made += 1
        library = self.folder / f"kernels{self._made}.so"
        given = "".join(f"{isolated(text, at)}{runner(text, at)}" for at, text in enumerate(texts))
        built([*flags(), *_LINKED], given, library, self.folder)
        functions = ctypes.CDLL(str(library))
        for at, text in enumerate(texts):
            self._ready[text] = getattr(functions, f"run_{at}")

    def kernel(self, text: str) -> _Kernel:
        self.prepare([text])
        return _Kernel(parameters(text), self._ready[text])

    def buffer(self, given: Any) -> Any:
        """Memory of this many bytes, or with this content."""
        if isinstance(given, int):
            return (ctypes.c_char * given)()
        data = memoryview(given).cast("B")
        return (ctypes.c_char * max(1, data.nbytes)).from_buffer_copy(data.tobytes() or b"\0")


class _Kernel:
    def __init__(self, signature: tuple[str, list[tuple[str, str]]], code: Any) -> None:
        self.name, given = signature
        self._count = sum(attribute.startswith("buffer") for _, attribute in given)
        self._code = code

    def function(self, name: str) -> _Function:
        if name != self.name:
            raise error(f"Function not found: {name}")
        return _Function(self._count, self._code)


class _Function:
    def __init__(self, count: int, code: Any) -> None:
        self._count = count
        self._code = code

    def __call__(self, count: int, *buffers: Any) -> object:
        """Runs this many threads, rounded up."""
        given = [b if isinstance(b, ctypes.Array) else CpuDevice.buffer(None, b) for b in buffers]  # type: ignore[arg-type]
        self.run(-(-count // THREADGROUP) * THREADGROUP, [*map(ctypes.addressof, given)])
        return object()

    def run(self, threads: int, addresses: Sequence[int]) -> None:
        """Runs this many threads over buffers at these addresses."""
        if len(addresses) != self._count:
            raise error(f"{self._count} buffers are declared, and {len(addresses)} given")
        self._code((ctypes.c_void_p * len(addresses))(*addresses), ctypes.c_uint(threads))


def runner(text: str, number: int) -> str:
    """The function `run_N(buffers, threads)` for a kernel among others."""
    name, given = parameters(text)
    arguments = []
    for declared, attribute in given:
        kind = declared.rpartition(" ")[0]
        at = attribute.removeprefix("buffer(").removesuffix(")")
        if attribute == "thread_position_in_grid":
            arguments.append("id")
        elif declared.rpartition(" ")[2].startswith("&"):
            arguments.append(f"*({kind} *)buffers[{at}]")
        else:
            arguments.append(f"({kind} *)buffers[{at}]")
    call = f"{name}_{number}({', '.join(arguments)})"
    return (
        f'namespace kernel_{number} {{ extern "C" void run_{number}(void **buffers, uint threads) {{\n'
        f"for (uint id = 0; id < threads; id++) {call};\n}} }}\n"
    )


@cache
def flags() -> tuple[str, ...]:
    """The freedoms with which kernels are compiled: those of fast mathematics that keep guards against NaN."""
    version = subprocess.run([clang(), "-dumpversion"], capture_output=True, text=True, check=True).stdout
    drops_guards = int(version.partition(".")[0]) >= _DROPS_GUARDS
    return (*_FAST, "-fno-finite-math-only") if drops_guards else _FAST


def write_library(folder: Path) -> None:
    """Puts what kernels include and link into a folder."""
    (folder / "metal_stdlib").write_text(header())
    _run([clang(), *PLAIN, "-c", "-o", str(folder / "precise.o"), "-"], PRECISE)


def built(flags: Sequence[str], text: str, to: Path, folder: Path) -> None:
    """Compiles a text into a file, with what `write_library` has put into a folder. Raises error, in the form that
    metalcompute has."""
    _run([clang(), *flags, "-I", str(folder), "-o", str(to), "-", "-x", "none", str(folder / "precise.o")], text)


def _run(command: Sequence[str], text: str) -> None:
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise error(done.stderr)
