#!/usr/bin/env python3
"""Counts how much of compiler and backends all devices share, and prints it: .venv/bin/python scripts/shared_code.py

Counted are the lines that are not blank in weft/ir, weft/codegen and weft/backends. A file is a device's own if it, or
the folder that it stands in, is named for the device; whatever is not is shared. Of that, a second table tells what
executes programs on a processor: it serves every context, but is of no use to a graphics card.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path, PurePath

import weft

PACKAGES = ("ir", "codegen", "backends")

# What files and folders are called that are for one device alone.
DEVICES: Mapping[str, tuple[str, ...]] = {
    "processor": ("cpu", "cpu_*"),
    "OpenGL": ("gl", "gl_*", "glsl", "glsl_*"),
    "Metal": ("metal", "metal_*", "msl", "msl_*"),
    "browsers": ("essl",),
    "C": ("c99", "c_program"),
    "haptic": ("haptic",),
    "null": ("null",),
}

# What those are called that execute programs on a processor.
MACHINES: Mapping[str, tuple[str, ...]] = {
    "machine code": ("native", "native_*", "llvm", "asked_lines"),
    "WebAssembly": ("wasm", "wasm_*"),
    "vector machine": ("vector", "vector_*", "bands"),
    "reference": ("vm", "interpreter"),
}

LEAST = 0.80
"""The share that has to be common to all devices."""

SHARED = "shared"


def named(path: PurePath, names: Mapping[str, tuple[str, ...]], other: str) -> str:
    """Which of the names a file, by its path within weft, or a folder above it bears; else `other`."""
    parts = path.with_suffix("").parts
    return next(
        (key for key, patterns in names.items() if any(fnmatchcase(p, want) for p in parts for want in patterns)), other
    )


def lines_by_file(root: Path) -> dict[PurePath, int]:
    """The lines that are not blank, by path within weft."""
    files = sorted(path for package in PACKAGES for path in (root / package).rglob("*.py"))
    return {path.relative_to(root): _lines(path) for path in files}


def _lines(path: Path) -> int:
    return sum(1 for line in path.read_text(encoding="utf-8").splitlines() if line.strip())


def shared_fraction(counts: Mapping[PurePath, int]) -> float:
    """The lines that no device has to itself, over all."""
    own = sum(count for path, count in counts.items() if named(path, DEVICES, SHARED) != SHARED)
    return 1 - own / sum(counts.values())


def table(counts: Mapping[PurePath, int]) -> str:
    """The lines of each package: shared, and of each device; below that, what of the shared ones is a machine."""
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
