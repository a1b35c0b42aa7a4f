"""Says what is wrong with kernels: by clang's C++ for OpenCL, many in one run, and by a look at what that lets pass."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NoReturn

import pytest

from tests.support.metal.header import NAMES, header

_FLAGS = (
    "-x", "clcpp", "-cl-std=clc++2021", "-cl-no-stdinc", "-target", "spir64", "-fsyntax-only", "-fno-color-diagnostics",
    "-ferror-limit=0", "-Xclang", "-cl-single-precision-constant",
    "-Xclang", "-cl-ext=-__opencl_c_program_scope_global_variables,-__opencl_c_device_enqueue",
    "-Wall", "-Werror", "-Wno-unknown-attributes", "-Wno-undefined-internal",
    "-Wno-logical-op-parentheses",
)  # fmt: skip

_ATTRIBUTE = re.compile(r"\[\[\s*([^\[\]]*?)\s*\]\]")
_BUFFER = re.compile(r"buffer\((\d+)\)")
_KERNEL = re.compile(r"\bkernel\s+void\s+(\w+)\s*\(([^{]*)\)\s*\{")
_FUNCTION = re.compile(r"^(?:\w[\w<>]*\s+)+(\w+)\([^;{}]*\)\s*\{", re.MULTILINE)
_MESSAGE = re.compile(r"^(?:kernel_(\d+)|[^\s:]+):(\d+:\d+: )(?:fatal )?(error|note): (.*)$", re.MULTILINE)

MOST_BUFFERS = 31


@cache
def clang() -> str:
    """The compiler's path. Where there is none, the test is skipped; in CI it fails, but for a Mac, which has Metal."""
    found = shutil.which("clang++") or shutil.which("clang")
    if found is None or sys.platform == "darwin":
        lack("clang")
    return found


def lack(what: str) -> NoReturn:
    """Ends a test for which something is missing that `scripts/setup system test` brings."""
    fail_or_skip = pytest.fail if os.environ.get("CI") and sys.platform == "linux" else pytest.skip
    fail_or_skip(f"{what} is not there: scripts/setup system test")


def check(texts: Sequence[str]) -> list[list[str]]:
    """What is wrong with each of some kernels. One run of the compiler for all."""
    found = [lint(text) for text in texts]
    with TemporaryDirectory(prefix="weft-msl-") as folder:
        Path(folder, "metal_stdlib").write_text(header())
        given = "".join(isolated(text, at) for at, text in enumerate(texts))
        done = subprocess.run(
            [clang(), *_FLAGS, "-I", folder, "-"], input=given, capture_output=True, text=True, check=False
        )
    for at, message in _messages(done.stderr):
        found[at].append(message)
    if done.returncode and not any(found):
        raise RuntimeError(done.stderr)
    return found


def check_file(text: str) -> list[str]:
    """What is wrong with a file of any number of kernels, compiled exactly as it stands."""
    with TemporaryDirectory(prefix="weft-msl-") as folder:
        Path(folder, "metal_stdlib").write_text(header())
        done = subprocess.run(
            [clang(), *_FLAGS, "-I", folder, "-"], input=text, capture_output=True, text=True, check=False
        )
    return [*lint(text, one_kernel=False), *([done.stderr] if done.returncode else [])]


def check_shading(text: str) -> list[str]:
    """What is wrong with functions that shade vertices and pixels."""
    with TemporaryDirectory(prefix="weft-msl-") as folder:
        Path(folder, "metal_stdlib").write_text(header())
        given = f'#define vertex\n#define fragment\n#line 1 "kernel_0"\n{text}'
        done = subprocess.run(
            [clang(), *_FLAGS, "-I", folder, "-"], input=given, capture_output=True, text=True, check=False
        )
    found = [message for _, message in _messages(done.stderr)]
    if done.returncode and not found:
        raise RuntimeError(done.stderr)
    return found


def _messages(output: str) -> Iterator[tuple[int, str]]:
    """The errors by their kernels. For an error in the library, the note after it shows the kernel."""
    waiting = ""
    for number, place, kind, words in _MESSAGE.findall(output):
        if kind == "error":
            waiting = words
        if waiting and number:
            yield int(number), f"{place}{waiting}"
            waiting = ""


def isolated(text: str, number: int) -> str:
    """A kernel among others in one text: in a namespace, its function with a number after its name, and messages
    about `kernel_N` and its own lines."""
    renamed = _KERNEL.sub(lambda found: found[0].replace(found[1], f"{found[1]}_{number}", 1), text)
    return f'#include <metal_stdlib>\nnamespace kernel_{number} {{\n#line 1 "kernel_{number}"\n{renamed}\n}}\n'


def lint(text: str, one_kernel: bool = True) -> list[str]:
    """What the compiler lets pass, and Metal does not."""
    plain = re.sub(r"//[^\n]*", "", text)
    taken = sorted(NAMES & {*_FUNCTION.findall(plain), *re.findall(r"\bstruct (\w+)", plain)})
    jumps = ["there is a goto"] if re.search(r"\bgoto\b", plain) else []
    kernels = [found[0] for found in _KERNEL.finditer(plain)]
    if not kernels or (one_kernel and len(kernels) > 1):
        return ["there is not exactly one kernel" if one_kernel else "there is no kernel"]
    attributes = [problem for kernel in kernels for problem in _attributes(kernel)]
    return [*attributes, *_recursion(plain), *jumps, *(f"Metal has {name} as well" for name in taken)]


def parameters(text: str) -> tuple[str, list[tuple[str, str]]]:
    """The name of the one kernel of a text, and its parameters: how each is declared, and its attribute or nothing.
    Raises ValueError if there is not exactly one."""
    ((name, given),) = _KERNEL.findall(re.sub(r"//[^\n]*", "", text))
    found = []
    for parameter in given.split(","):
        attribute = _ATTRIBUTE.search(parameter)
        found.append((_ATTRIBUTE.sub("", parameter).strip(), attribute[1] if attribute else ""))
    return name, found


def _attributes(text: str) -> list[str]:
    """What is wrong with the parameters of the kernel."""
    _, given = parameters(text)
    problems, indices = [], []
    for declared, attribute in given:
        number = _BUFFER.fullmatch(attribute)
        if number:
            indices.append(int(number[1]))
        elif attribute != "thread_position_in_grid":
            problems.append(f"{declared} has the attribute {attribute or 'none'}")
        elif not declared.startswith("uint "):
            problems.append(f"{declared} is no number of a thread in one row")
    problems += [f"two buffers have the index {index}" for index in {i for i in indices if indices.count(i) > 1}]
    problems += [f"there is no buffer {index}" for index in indices if index >= MOST_BUFFERS]
    return problems


def _recursion(text: str) -> list[str]:
    """Functions that call themselves, be it by way of others."""
    starts = [(found.start(), found[1]) for found in _FUNCTION.finditer(text)]
    ends = [at for at, _ in starts[1:]] + [len(text)]
    names = {name for _, name in starts}
    calls: defaultdict[str, set[str]] = defaultdict(set)
    for (start, name), end in zip(starts, ends, strict=True):
        body = text[text.index("{", start) : end]
        calls[name] |= {called for called in re.findall(r"(?<!::)\b(\w+)\s*\(", body) if called in names}
    reached = {name: set(called) for name, called in calls.items()}
    for _ in names:
        for called in reached.values():
            called |= {further for name in set(called) for further in reached.get(name, ())}
    return [f"{name} calls itself" for name, called in reached.items() if name in called]
