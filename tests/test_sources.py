"""The examples of docs/sources.md."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.support.films import sounding_film
from tests.support.forks import ran

ROOT = Path(__file__).parents[1]
EXAMPLES = re.findall(r"```weft\n(.*?)```", (ROOT / "docs" / "sources.md").read_text(), re.DOTALL)


@pytest.mark.parametrize("text", EXAMPLES, ids=lambda text: text.partition("(")[0].partition("\n")[0])
def test_an_example_shows_something(tmp_path: Path, text: str) -> None:
    shutil.copytree(ROOT / "patches" / "media", tmp_path / "media")
    if "band.mkv" in text:
        sounding_film(tmp_path / "media" / "band.mkv", 24)
    (tmp_path / "patch.weft").write_text(text)
    done = ran(["check", "patch.weft"], tmp_path, os.environ)
    assert done.stderr == "patch.weft: no errors\n"
    done = ran(["render", "patch.weft", "-o", "out.png", "--size", "64x36", "--time", "0.5"], tmp_path, os.environ)
    assert done.returncode == 0, done.stderr
    assert np.ptp(np.asarray(Image.open(tmp_path / "out.png"))[..., :3]) > 100
