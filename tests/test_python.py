"""What the documentation says about weft from Python."""

from __future__ import annotations

import gc
import re
import subprocess
import sys
from pathlib import Path

import weft

PAGE = Path(__file__).parents[1] / "docs" / "backends.md"


def test_the_examples_of_the_documentation_run() -> None:
    section = PAGE.read_text(encoding="utf-8").partition("## From Python")[2]
    code = "\n".join(re.findall(r"```python\n(.*?)```", section, re.DOTALL))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["['display.r', 'display.g', 'display.b']", "['valve']"]


def test_a_compile_leaves_frozen_what_others_have_frozen() -> None:
    frozen: list[object] = [[]]
    gc.freeze()
    weft.compile("display(me@x)")
    assert not any(each is frozen[0] for each in gc.get_objects())
