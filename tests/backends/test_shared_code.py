"""A device adds memory, launches and synchronisation: nearly all else is shared."""

from __future__ import annotations

from pathlib import Path, PurePath

import pytest

import weft
from scripts.shared_code import DEVICES, LEAST, MACHINES, SHARED, lines_by_file, named, shared_fraction, table

ROOT = Path(weft.__file__).parent


def test_most_is_shared_by_all_devices() -> None:
    counts = lines_by_file(ROOT)
    assert shared_fraction(counts) >= LEAST, "\n" + table(counts)


@pytest.mark.parametrize(
    ("path", "owner"),
    [
        ("backends/gl/textures.py", "OpenGL"),
        ("codegen/glsl.py", "OpenGL"),
        ("codegen/glsl/words.py", "OpenGL"),
        ("codegen/msl.py", "Metal"),
        ("backends/cpu.py", "processor"),
        ("codegen/clike/shader.py", SHARED),
        ("backends/launch.py", SHARED),
        ("backends/glance.py", SHARED),
    ],
)
def test_a_file_is_a_devices_own_by_its_name_or_folder(path: str, owner: str) -> None:
    assert named(PurePath(path), DEVICES, SHARED) == owner


def test_every_name_is_that_of_a_file_or_folder() -> None:
    parts = {part for path in lines_by_file(ROOT) for part in path.with_suffix("").parts}
    wanted = {name for names in (*DEVICES.values(), *MACHINES.values()) for name in names}
    assert wanted <= parts, wanted - parts


def test_every_line_is_counted_once(tmp_path: Path) -> None:
    for name, text in {"ir/a.py": "x = 1\n\ny = 2\n", "codegen/glsl.py": "z = 3\n   \n", "backends/b.py": "w = 4\n",
                       "graph/c.py": "v = 5\n"}.items():  # fmt: skip
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    counts = lines_by_file(tmp_path)
    assert sum(counts.values()) == 4
    assert shared_fraction(counts) == 0.75
