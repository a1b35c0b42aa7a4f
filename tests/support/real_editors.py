"""Real editors, with the packages of `editors/` put where docs/editors.md says, in a home of their own."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

_ROOT = Path(__file__).parents[2]
PACKAGES = _ROOT / "editors"

_MOST_STEPS = 3

# An editor that hangs is ended after so many seconds.
_PATIENCE = 100.0

_SCRIPTS = Path(sys.executable).parent


class Home:
    """The home of a performer with one editor."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work = folder / "work"
        self.answers = folder / "answers.json"
        self.work.mkdir(parents=True)
        # The editor looks here for all that it reads and keeps, and finds the command weft.
        self.environment = {
            **os.environ, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder / ".config"),
            "XDG_DATA_HOME": str(folder / ".local/share"), "XDG_STATE_HOME": str(folder / ".local/state"),
            "XDG_CACHE_HOME": str(folder / ".cache"), "XDG_RUNTIME_DIR": str(folder), "TERM": "xterm-256color",
            "PATH": f"{_SCRIPTS}:{os.environ['PATH']}", "ANSWERS": str(self.answers), "LC_ALL": "C.UTF-8",
        }  # fmt: skip

    def install(self, name: str) -> None:
        """Types the steps of docs/editors.md by which an editor gets its package."""
        page = (_ROOT / "docs/editors.md").read_text("utf-8")
        found = re.search(rf"^### {name}\n\n```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
        assert found, name
        assert found[1].count("\n") <= _MOST_STEPS
        subprocess.run(["sh", "-euc", found[1]], cwd=_ROOT, env=self.environment, check=True)

    def write(self, name: str, text: str) -> Path:
        """Writes a file of the performer."""
        path = self.work / name
        path.write_text(text, "utf-8")
        return path

    def run(self, *command: str | Path, input: str | None = None) -> subprocess.CompletedProcess[str]:
        """Runs an editor up to its end."""
        return subprocess.run(
            command, cwd=self.work, env=self.environment, capture_output=True, text=True, check=False,
            timeout=_PATIENCE, input=input, stdin=None if input is not None else subprocess.DEVNULL,
        )  # fmt: skip

    def answered(self, ended: subprocess.CompletedProcess[str]) -> Any:
        """What a script in the editor has written to `$ANSWERS`."""
        assert self.answers.exists(), ended.stdout + ended.stderr
        return json.loads(self.answers.read_text("utf-8"))


def editor(*names: str) -> str:
    """The command of an editor, the first of `names` that is here. Skips the test if there is none."""
    path = f"{_SCRIPTS}:{os.environ['PATH']}"
    found = next((each for name in names if (each := shutil.which(name, path=path))), None)
    if found is None:
        pytest.skip(f"there is no {names[0]} here; scripts/setup system test installs it where apt has it")
    return found


def version_of(command: Sequence[str]) -> tuple[int, ...]:
    """The first number with dots that an editor says of itself."""
    said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    word = next((each for each in said.replace("v", " ").split() if each[:1].isdigit()), "0")
    return tuple(int(part) for part in word.split(".")[:2] if part.isdigit())
