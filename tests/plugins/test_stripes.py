"""A package adds a source, and not one file of weft knows about it."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.support.forks import ran

PACKAGE = Path(__file__).parent / "stripes"
ROOT = Path(__file__).parents[2]
PATCH = "stripes({count})::s<r, g, b>\ndisplay(s@r, s@g, s@b)\n"


def weft(folder: Path, *args: str, count: str = "4") -> subprocess.CompletedProcess[str]:
    (folder / "patch.weft").write_text(PATCH.format(count=count))
    return ran(args, folder, {**os.environ, "PYTHONPATH": str(PACKAGE)})


@pytest.mark.parametrize("executor", ["vm", "vector", "native"])
def test_it_is_drawn(tmp_path: Path, executor: str) -> None:
    for second in (0, 1, 2):
        out = tmp_path / f"{second}.png"
        done = weft(
            tmp_path, "render", "patch.weft", "-o", str(out), "--time", str(second), "--size", "4x1",
            "--backend", f"visual={executor}",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        expected = 255 * ((np.arange(4) + second) % 2)
        assert np.asarray(Image.open(out))[0, :, :3].tolist() == [[level] * 3 for level in expected]


def test_help_knows_it(tmp_path: Path) -> None:
    assert "stripes that wander" in weft(tmp_path, "help", "stripes").stdout


def test_what_it_refuses_is_told(tmp_path: Path) -> None:
    done = weft(tmp_path, "check", "patch.weft", count="5000")
    assert done.returncode == 1
    assert "patch.weft:1:1: error: stripes(5000) cannot be read: there are 1 to 1000 stripes" in done.stderr
    done = weft(tmp_path, "render", "patch.weft", "-o", "out.png", count="13")
    assert done.returncode == 1
    assert "stripes(13) cannot be read: nobody likes thirteen stripes" in done.stderr
    assert "one more would do" in done.stderr


def test_without_the_package_it_is_no_source(tmp_path: Path) -> None:
    (tmp_path / "patch.weft").write_text(PATCH.format(count=4))
    done = ran(["check", "patch.weft"], tmp_path, os.environ)
    assert done.returncode == 1
    assert "stripes" in done.stderr


def test_the_documentation_shows_this_package() -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "sources.md").read_text(), re.DOTALL)
    assert (PACKAGE / "weft_stripes.py").read_text() in blocks
