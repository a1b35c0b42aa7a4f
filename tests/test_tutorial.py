"""The tutorial is true: its patches play, its commands work, and they say what it says they do."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from PIL import Image

from tests.cli.conftest import Weft
from weft.cli.new import starter
from weft.contexts import ContextTable
from weft.errors import Source
from weft.runtime.inspect.forecast import check

TEXT = (Path(__file__).parents[1] / "docs" / "tutorial.md").read_text(encoding="utf-8")


class Block(NamedTuple):
    language: str
    text: str


BLOCKS = [Block(*found) for found in re.findall(r"^```(\w+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)]
PATCHES = [block.text for block in BLOCKS if block.language == "weft"]

# What the tutorial tells to change in the patch that `weft new` writes, before it is checked.
CHANGES = (("40", "120"), ("me@time", "me@tme"))


@pytest.mark.parametrize("text", PATCHES, ids=range(len(PATCHES)))
def test_each_patch_is_fine(text: str) -> None:
    assert [d.render() for d in check(Source("mine.weft", text), ContextTable())] == []


def test_every_command_does_as_it_is_told(tmp_path: Path) -> None:
    weft = Weft(tmp_path)
    typed = 0
    for block, behind in zip(BLOCKS, [*BLOCKS[1:], Block("", "")], strict=True):
        if block.language == "weft":
            weft.file("mine.weft", block.text)
        elif block.language == "sh" and not block.text.startswith(("export", "weft run")):
            typed += 1
            program, *args = shlex.split(block.text)
            assert program == "weft"
            if args[0] == "check":
                make_the_mistake(tmp_path / args[1])
            # What `weft new` tells to type names weft as these tests call it.
            done = weft(*args, code=1 if args[0] == "check" else 0)
            said = re.sub(r"\S+ -m weft", "weft", done.stdout + done.stderr)
            if behind.language == "text":
                assert said == behind.text
    assert typed >= 4
    with Image.open(tmp_path / "mine.png") as picture:
        assert picture.size == (640, 360)
        assert np.asarray(picture.convert("RGB")).std() > 10, "there is nothing to see"


def make_the_mistake(path: Path) -> None:
    lines = path.read_text().splitlines(keepends=True)
    number = next(n for n, line in enumerate(lines) if line.startswith("rings"))
    for old, new in CHANGES:
        assert lines[number].count(old) == 1
        assert f"`{old}`" in TEXT
        assert f"`{new}`" in TEXT
        lines[number] = lines[number].replace(old, new)
    path.write_text("".join(lines))


def test_what_the_starter_says_to_change_is_there() -> None:
    comment = starter().decode().splitlines()[1]
    number, word = re.findall(r'the (\d+) in the line that starts with "(\w+)"', comment)[0]
    assert [line for line in starter().decode().splitlines() if line.startswith(word) and number in line]
