"""Packages and compilers: whether they are there, which they are, and what a compiler makes."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

# Sums may not be put in another order: all else that -ffast-math allows is right for what is measured.
C_FLAGS = ("-O3", "-march=native", "-ffast-math", "-fno-associative-math", "-std=gnu11")


def missing(package: str, requirement: str = "") -> str | None:
    """Why a package cannot be used; None if it is installed."""
    if find_spec(package) is not None:
        return None
    return f"{package} is not installed: pip install {requirement or package}"


def versions(*packages: str) -> str:
    return ", ".join(f"{package} {version(package)}" for package in packages)


def missing_program(*programs: str, package: str = "") -> str | None:
    """Why a program cannot be used, if one of them is not there; `package` is what brings it along."""
    for program in programs:
        if shutil.which(program) is None:
            return f"{program} is not there: apt install {package or program}"
    return None


def program_version(program: str) -> str:
    """The first line of what a program says of itself."""
    told = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    return told.stdout.splitlines()[0]


def called(command: Sequence[str], timeout: float | None = None) -> None:
    """Calls a compiler. Raises RuntimeError with what it complains about, TimeoutExpired if it takes too long."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=timeout)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())


def library(
    command: Sequence[str], source: Path, defined: Mapping[str, object] | None = None, timeout: float | None = None
) -> ctypes.CDLL:
    """A source, compiled by `command` (a compiler with its flags) and loaded. Raises as `called` does."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "kernel.so"
        definitions = [f"-D{name}={value}" for name, value in (defined or {}).items()]
        # What starts a library with fast mathematics would have the whole process drop subnormal numbers.
        shared = ("-shared", "-nostartfiles", "-fPIC")
        called([*command, *shared, *definitions, str(source), "-o", str(made), "-lm"], timeout)
        return ctypes.CDLL(str(made))
