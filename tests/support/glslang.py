"""The validator of the Khronos Group, for texts in GLSL ES: what it refuses, browsers refuse."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

VALIDATOR = "glslangValidator"


def problems(texts: Sequence[str], kind: str = "frag", *options: str) -> list[str]:
    """What is wrong with shaders of one kind (`frag`, `vert`), each with its text. Without the validator the test is
    skipped, but in CI it fails."""
    if shutil.which(VALIDATOR) is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"{VALIDATOR} is missing")
    if not texts:
        return []
    with TemporaryDirectory() as folder:
        files = [Path(folder, f"{at}.{kind}") for at in range(len(texts))]
        for file, text in zip(files, texts, strict=True):
            file.write_text(text, encoding="utf-8")
        done = subprocess.run([VALIDATOR, *options, *map(str, files)], capture_output=True, text=True, check=False)
        if done.returncode == 0 and "ERROR" not in done.stdout:
            return []
        said = done.stdout.split(f"{folder}{os.sep}")[1:]
        found = [(part, files[int(part.partition(".")[0])]) for part in said if "ERROR" in part]
        return [f"{part}\n{file.read_text(encoding='utf-8')}" for part, file in found] or [done.stdout + done.stderr]
