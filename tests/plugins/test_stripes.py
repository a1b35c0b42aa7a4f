"""A package adds a source, and not one file of weft knows about it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
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


@pytest.mark.parametrize(("wrong", "code"), [('"a"', "needs-a-constant"), ("4, 5", "too-many-arguments")])
def test_a_wrong_argument_is_told_once(tmp_path: Path, wrong: str, code: str) -> None:
    done = weft(tmp_path, "check", "patch.weft", "--json", count=wrong)
    assert [each["code"] for each in json.loads(done.stdout)["diagnostics"]] == [code]


def test_it_is_called_within_an_expression(tmp_path: Path) -> None:
    done = weft(tmp_path, "check", "patch.weft", count="4)::t<r, g, b>\ndisplay(t@r + stripes(6)@g)\nstripes(2")
    assert "there is no" not in done.stderr


def test_its_numbers_are_none_that_are_turned() -> None:
    """Else a save of another number would show what the source was opened for before."""
    patch = "stripes({})::s<r, g, b>\ndisplay(s@r * 0.5)\n"
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE)}
    command = [sys.executable, "-m", "weft", "run", "-", "--headless", "--no-audio", "--events", "-"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(patch.format(4) + "---\n")
        process.stdin.flush()
        events = map(json.loads, process.stdout)
        next(event for event in events if event["event"] == "started")
        process.stdin.write(patch.format(10) + "---\n")
        process.stdin.flush()
        swap = next(event for event in events if event["event"] == "swap")
        process.terminate()
        process.communicate()
    assert swap["recompiled"] == ["visual/display"]


def test_without_the_package_it_is_no_source(tmp_path: Path) -> None:
    (tmp_path / "patch.weft").write_text(PATCH.format(count=4))
    done = ran(["check", "patch.weft"], tmp_path, os.environ)
    assert done.returncode == 1
    assert "stripes" in done.stderr


def test_the_documentation_shows_this_package() -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "sources.md").read_text(), re.DOTALL)
    assert (PACKAGE / "weft_stripes.py").read_text() in blocks
