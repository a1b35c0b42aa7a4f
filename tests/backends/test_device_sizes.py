"""What a device costs: few lines of its own, a language, and two rows elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import weft

ROOT = Path(weft.__file__).parent

# The most lines of a device and of a language, blank ones aside.
DEVICE, LANGUAGE = 300, 250

# What the page about backends lists: two rows, and the option that shows its programs.
ROWS = {"backends/registry.py", "backends/select.py", "cli/compile.py"}


def lines(path: Path) -> int:
    return sum(1 for line in path.read_text(encoding="utf-8").splitlines() if line.strip())


@pytest.mark.parametrize(("folder", "devices"), [("opencl", 1), ("wgpu", 1), ("metal", 1), ("cuda", 2)])
def test_a_device_is_short(folder: str, devices: int) -> None:
    assert sum(map(lines, (ROOT / "backends" / folder).glob("*.py"))) <= devices * DEVICE


@pytest.mark.parametrize("language", ["opencl", "wgsl", "cuda", "msl"])
def test_a_language_is_short(language: str) -> None:
    assert lines(ROOT / "codegen" / f"{language}.py") <= LANGUAGE


@pytest.mark.parametrize("device", ["opencl", "cuda", "hip"])
def test_little_outside_of_its_folder_names_a_device(device: str) -> None:
    own = ("backends/opencl/", "backends/cuda/", "codegen/opencl.py", "codegen/cuda.py")
    naming = set()
    for path in ROOT.rglob("*.py"):
        name = path.relative_to(ROOT).as_posix()
        code = re.sub(r'"""(?:.|\n)*?"""|#.*', "", path.read_text(encoding="utf-8"))
        if not name.startswith(own) and re.search(rf"\b{device}\b", code, re.IGNORECASE):
            naming.add(name)
    assert naming <= ROWS
