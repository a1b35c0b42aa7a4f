"""`scripts/editor_words.py`, which writes the words of the language into the packages for editors."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


class Checkout:
    """A copy of the script, and of the files that it writes."""

    def __init__(self, folder: Path) -> None:
        self._script = folder / "scripts" / "editor_words.py"
        self._script.parent.mkdir()
        shutil.copy(ROOT / "scripts" / "editor_words.py", self._script)
        shutil.copytree(ROOT / "editors", folder / "editors", ignore=shutil.ignore_patterns("node_modules"))
        self.kakoune = folder / "editors" / "kakoune" / "weft.kak"
        self.whole = self.kakoune.read_text("utf-8")

    def outdate(self) -> None:
        """Takes a word out."""
        self.kakoune.write_text(self.whole.replace("'e pi tau'", "'e pi'"), "utf-8")

    def run(self, *options: str, most: int | None = None) -> subprocess.CompletedProcess[str]:
        """Runs it, with room for files of so many bytes."""

        def limit() -> None:
            if most is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))

        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, str(self._script), *options]
        return subprocess.run(
            command, env=environment, preexec_fn=limit, capture_output=True, text=True, check=False
        )  # fmt: skip


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    folder = tmp_path / "a folder, and ü"
    folder.mkdir()
    return Checkout(folder)


def test_what_is_outdated_is_named_and_written(checkout: Checkout) -> None:
    checkout.outdate()
    named = checkout.run("--check")
    assert named.returncode == 1
    assert named.stdout.startswith(f"{checkout.kakoune}: not the words of today")
    mode = checkout.kakoune.stat().st_mode
    assert checkout.run().returncode == 0
    assert checkout.kakoune.read_text("utf-8") == checkout.whole
    assert checkout.kakoune.stat().st_mode == mode
    assert sorted(os.listdir(checkout.kakoune.parent)) == ["weft.kak"]


def test_a_file_that_is_empty_is_not_taken_for_one_without_words(checkout: Checkout) -> None:
    checkout.kakoune.write_text("")
    for options in (["--check"], []):
        done = checkout.run(*options)
        assert done.returncode == 1
        assert done.stderr == f"{checkout.kakoune}: it has no place for words, and may be damaged; git restores it\n"


def test_what_cannot_be_written_stays_as_it_was(checkout: Checkout) -> None:
    checkout.outdate()
    before = checkout.kakoune.read_text("utf-8")
    done = checkout.run(most=1000)
    assert (done.returncode, done.stderr) == (1, f"{checkout.kakoune} cannot be written: File too large\n")
    assert checkout.kakoune.read_text("utf-8") == before
    assert sorted(os.listdir(checkout.kakoune.parent)) == ["weft.kak"]
