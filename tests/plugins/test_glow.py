"""A package adds an outlet, and not one file of weft knows about it."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.forks import ran
from tests.support.performance import PATIENCE

PACKAGE = Path(__file__).parent / "glow"
ROOT = Path(__file__).parents[2]
PATCH = 'me<width> = 8; me<height> = 8\ndisplay(1, 0.2, 0, to: "glow:{place}")\n'
AROUND = {**os.environ, "PYTHONPATH": str(PACKAGE)}


@pytest.mark.long
def test_it_gets_the_pictures(tmp_path: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(PATIENCE)
        (tmp_path / "patch.weft").write_text(PATCH.format(place=receiver.getsockname()[1]))
        command = [sys.executable, "-m", "weft", "run", "patch.weft", "--headless", "--no-audio"]
        player = subprocess.Popen(command, cwd=tmp_path, env={**AROUND, "PYTHONPATH": f"{PACKAGE}{os.pathsep}{ROOT}"})
        try:
            assert receiver.recv(100) == b"255 51 0"
        finally:
            player.kill()
            player.wait()


def test_what_it_refuses_is_told(tmp_path: Path) -> None:
    (tmp_path / "patch.weft").write_text(PATCH.format(place="80"))
    done = ran(["check", "patch.weft"], tmp_path, AROUND)
    assert done.returncode == 1
    assert "patch.weft:2:24: error: this is no port" in done.stderr
    assert 'to: "glow:9000": the mean colour, by UDP' in ran(["help", "display"], tmp_path, AROUND).stdout


def test_the_documentation_shows_this_package() -> None:
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    shown = re.findall(r"^```python\n(.*?)^```", page.partition("## An outlet")[2], re.M | re.S)
    assert (PACKAGE / "weft_glow.py").read_text(encoding="utf-8") in shown
