"""The examples of docs/sources.md and docs/hands.md."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.support.forks import ran

ROOT = Path(__file__).parents[1]


def examples(page: str, language: str = "weft") -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the commands at the head of the page were typed."""
    made = tmp_path_factory.mktemp("sources")
    for line in examples("sources.md", "sh")[0].splitlines():
        weft, *args = shlex.split(line)
        assert weft == "weft"
        done = ran(args, made, os.environ)
        assert done.returncode == 0, done.stderr
    return made


@pytest.mark.parametrize("text", examples("sources.md"), ids=lambda text: text.partition("(")[0].partition("\n")[0])
def test_an_example_shows_something(folder: Path, text: str) -> None:
    (folder / "patch.weft").write_text(text)
    done = ran(["check", "patch.weft"], folder, os.environ)
    assert done.stderr == "patch.weft: no errors\n"
    done = ran(["render", "patch.weft", "-o", "out.png", "--size", "64x36", "--time", "0.5"], folder, os.environ)
    assert done.returncode == 0, done.stderr
    assert np.ptp(np.asarray(Image.open(folder / "out.png"))[..., :3]) > 100


def test_what_is_played_by_hand_has_no_errors(tmp_path: Path) -> None:
    for number, text in enumerate(examples("hands.md")):
        (tmp_path / f"{number}.weft").write_text(text)
        done = ran(["check", f"{number}.weft"], tmp_path, os.environ)
        assert done.stderr == f"{number}.weft: no errors\n"
