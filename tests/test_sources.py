"""The examples of docs/sources.md and docs/hands.md."""

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


def examples(page: str) -> list[str]:
    return re.findall(r"```weft\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)


@pytest.mark.parametrize("text", examples("sources.md"), ids=lambda text: text.partition("(")[0].partition("\n")[0])
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


def test_what_is_played_by_hand_has_no_errors(tmp_path: Path) -> None:
    for number, text in enumerate(examples("hands.md")):
        (tmp_path / f"{number}.weft").write_text(text)
        done = ran(["check", f"{number}.weft"], tmp_path, os.environ)
        assert done.stderr == f"{number}.weft: no errors\n"
