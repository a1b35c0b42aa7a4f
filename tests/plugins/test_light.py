"""A package adds a context with its own output statement and backend, and not one file of weft knows about it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.forks import ran

PACKAGE = Path(__file__).parent / "light"
PATCH = """\
beat<v> = if me@frame % 2 == 0 then 1 else 0.5
level<v> = prev(level@v) + 0.25
display(beat@v, 0, 0)
light(front: beat@v, back: level@v)
lamp(2, 0 / 0)
"""


def _run(command: list[str], cwd: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, check=False, cwd=cwd, env=environment, capture_output=True, text=True, timeout=60
    )


def weft(tmp_path: Path, *args: str, plugin: bool = True) -> subprocess.CompletedProcess[str]:
    lamps = tmp_path / "lamps.txt"
    environment = {**os.environ, "WEFT_LIGHT_FILE": str(lamps)}
    if plugin:
        environment["PYTHONPATH"] = str(PACKAGE)
    (tmp_path / "patch.weft").write_text(PATCH)
    return ran(args, tmp_path, environment)


def test_a_patch_plays_on_lamps(tmp_path: Path) -> None:
    done = weft(tmp_path, "run", "patch.weft", "--headless", "--frames", "4")
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in (tmp_path / "lamps.txt").read_text().splitlines()]
    # Two statements share nothing, so they are two subgraphs, each with a line a frame.
    named = [line for line in lines if line != ["255", "0"]]
    assert named == [["255", "64"], ["128", "128"], ["255", "191"], ["128", "255"]]
    assert len(lines) - len(named) == 4


def test_the_context_is_known_to_the_other_commands(tmp_path: Path) -> None:
    assert weft(tmp_path, "check", "patch.weft").returncode == 0
    assert "light/light" in weft(tmp_path, "graph", "patch.weft", "--format", "text").stdout
    assert "light" in weft(tmp_path, "devices").stdout
    bytecode = weft(tmp_path, "compile", "patch.weft", "--dump-bytecode", "--context", "light")
    assert "LOAD_STATE light/level@v/prev/0[0]" in bytecode.stdout


def test_without_the_package_the_statement_is_unknown(tmp_path: Path) -> None:
    done = weft(tmp_path, "check", "patch.weft", plugin=False)
    assert done.returncode == 1
    assert '"light" is not an output statement' in done.stderr


def test_a_package_that_cannot_be_loaded_is_a_warning(tmp_path: Path) -> None:
    broken = tmp_path / "broken-0.1.dist-info"
    broken.mkdir()
    (broken / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 0.1\n")
    (broken / "entry_points.txt").write_text("[weft.backends]\nbroken = no_such_module:Nothing\n")
    (tmp_path / "other.weft").write_text("display(me@x)\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-m", "weft", "run", "other.weft", "--headless", "--frames", "1"]
    done = _run(command, tmp_path, environment)
    assert done.returncode == 0
    assert "the backend broken (no_such_module:Nothing) could not be loaded" in done.stderr
