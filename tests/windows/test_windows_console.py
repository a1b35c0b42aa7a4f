"""A console of Windows: messages are written to it, and one that shows ANSI sequences as letters, as that of Wine, is
not written full of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.windows.processes import PATIENCE, on_windows

pytestmark = on_windows


def test_a_console_either_shows_the_picture_or_says_why_not(tmp_path: Path) -> None:
    patch, errors = tmp_path / "ramp.weft", tmp_path / "errors"
    patch.write_text("display(me@x, me@y, 0)\n")
    command = [sys.executable, "-m", "weft", "run", str(patch), "--terminal", "--no-audio", "--frames", "3"]
    # A process in the new console names it; this one cannot.
    inside = (
        "import subprocess, sys\n"
        "with open('CONOUT$', 'w') as out, open(sys.argv[1], 'w') as errors:\n"
        "    sys.exit(subprocess.run(sys.argv[2:], stdout=out, stderr=errors).returncode)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", inside, str(errors), *command], timeout=PATIENCE, check=False,
        creationflags=subprocess.CREATE_NEW_CONSOLE,  # type: ignore[attr-defined,unused-ignore]
    )  # fmt: skip
    said = errors.read_text("utf-8")
    assert "Traceback" not in said
    if ended.returncode:
        assert ended.returncode == 3
        assert "the terminal cannot be used: it shows sequences of ANSI as letters" in said


def test_messages_are_written_to_a_console_after_libraries_were_silent(tmp_path: Path) -> None:
    told = tmp_path / "told"
    inside = (
        "import sys, traceback\n"
        "from weft.cli.console import say\n"
        "from weft.runtime.stderr import suppress_stderr\n"
        "with open(sys.argv[1], 'w') as told:\n"
        "    try:\n"
        "        assert sys.stderr.isatty()\n"
        "        say('before')\n"
        "        with suppress_stderr():\n"
        "            others = [open('NUL') for _ in range(9)]\n"
        "        say('after')\n"
        "    except BaseException:\n"
        "        traceback.print_exc(file=told)\n"
    )
    subprocess.run(
        [sys.executable, "-c", inside, str(told)], timeout=PATIENCE, check=False,
        creationflags=subprocess.CREATE_NEW_CONSOLE,  # type: ignore[attr-defined,unused-ignore]
    )  # fmt: skip
    assert told.read_text() == ""
