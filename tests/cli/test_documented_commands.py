"""What the documentation says to type about patches that come with weft does what it says, with exit code 0."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Commands that end by themselves, soon, and need no device.
QUICK = "check", "compile", "eval", "examples", "export", "graph", "why"
FENCED = re.compile(r"^```(?:sh|text)?\n(.*?)^```", re.DOTALL | re.MULTILINE)


def commands() -> list[str]:
    """Each command line about a shipped patch, without its comment and without what the shell does with the output."""
    found = dict.fromkeys(
        shlex.join(words)
        for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
        for block in FENCED.findall(page.read_text(encoding="utf-8"))
        for line in block.splitlines()
        if re.match(r"(?:\.venv/bin/)?weft (\w+) ", line) and not re.search("[|<>]", line)
        for words in [shlex.split(line, comments=True)[1:]]
        if words[0] in QUICK and (words[0] == "examples" or any(word.startswith("patches/") for word in words))
    )
    return list(found)


def test_there_are_commands_of_several_kinds():
    assert {"eval", "why", "compile"} <= {line.split()[0] for line in commands()}


@pytest.mark.parametrize("line", commands())
def test_what_is_typed_in_the_documentation_works(weft, line):
    (weft.folder / "patches").symlink_to(ROOT / "patches")
    (weft.folder / "set").mkdir()
    weft(*shlex.split(line))
