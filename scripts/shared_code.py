#!/usr/bin/env python3
"""Counts how much of compiler and backends all devices share, and prints it: .venv/bin/python scripts/shared_code.py

Counted are the lines that are not blank in weft/ir, weft/codegen and weft/backends. A file is a device's own if it, or
its folder, is named after the device; all others are shared. Of these, a second table counts the files that execute
programs on a processor: they serve every context, but are of no use to a graphics card.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePath

import weft

PACKAGES = ("ir", "codegen", "backends")

# The names of files and folders that are for one device alone.
DEVICES: Mapping[str, tuple[str, ...]] = {
    "processor": ("cpu",),
    "OpenGL": ("gl", "glsl"),
    "Metal": ("metal", "msl"),
    "CUDA": ("cuda",),
    "OpenCL": ("opencl",),
    "WebGPU": ("wgpu", "wgsl"),
    "browsers": ("essl",),
    "C": ("c99", "c_program"),
    "haptic": ("haptic",),
}

# The names of those that execute programs on a processor.
MACHINES: Mapping[str, tuple[str, ...]] = {
    "machine code": ("native",),
    "WebAssembly": ("wasm",),
    "vector machine": ("vector",),
    "reference": ("vm",),
}

LEAST = 0.80
"""The share that has to be common to all devices."""

SHARED = "shared"


def named(path: PurePath, names: Mapping[str, tuple[str, ...]], other: str) -> str:
    """The key of the name that a file has, by its path within weft, or a folder above it; else `other`."""
    parts = path.with_suffix("").parts
    return next((key for key, wanted in names.items() if not set(parts).isdisjoint(wanted)), other)


def lines_by_file(root: Path) -> dict[PurePath, int]:
    """The lines that are not blank, by path within weft."""
    files = sorted(path for package in PACKAGES for path in (root / package).rglob("*.py"))
    return {path.relative_to(root): _lines(path) for path in files}


def _lines(path: Path) -> int:
    return sum(1 for line in path.read_text(encoding="utf-8").splitlines() if line.strip())


def shared_fraction(counts: Mapping[PurePath, int]) -> float:
    """The share of the lines that do not belong to a single device."""
    own = sum(count for path, count in counts.items() if named(path, DEVICES, SHARED) != SHARED)
    return 1 - own / sum(counts.values())


def table(counts: Mapping[PurePath, int]) -> str:
    """The lines of each package: shared, and of each device; below that, the shared ones by machine."""
    by_owner = Counter[tuple[str, str]]()
    by_machine = Counter[str]()
    for path, count in counts.items():
        owner = named(path, DEVICES, SHARED)
        by_owner[owner, path.parts[0]] += count
        if owner == SHARED:
            by_machine[named(path, MACHINES, "no machine")] += count
    rows = [[owner, *(by_owner[owner, package] for package in PACKAGES)] for owner in (SHARED, *DEVICES)]
    whole = sum(counts.values())
    lines = [_row("lines", [*PACKAGES, "all"], "share")]
    lines += [_row(owner, [*found, sum(found)], f"{sum(found) / whole:.1%}") for owner, *found in rows]
    lines += ["", "of those that are shared:"]
    shared = sum(by_machine.values())
    lines += [_row(name, ["", "", "", count], f"{count / shared:.1%}") for name, count in by_machine.most_common()]
    return "\n".join(lines)


def _row(title: str, cells: Iterable[object], share: str) -> str:
    numbers = (f"{cell:,}" if isinstance(cell, int) else f"{cell}" for cell in cells)
    return f"{title:<16}" + "".join(f"{number:>10}" for number in numbers) + f"{share:>9}"


def main() -> None:
    counts = lines_by_file(Path(weft.__file__).parent)
    print(table(counts))
    print(f"\n{shared_fraction(counts):.1%} is shared by all devices; {LEAST:.0%} is the least.")


if __name__ == "__main__":
    main()
