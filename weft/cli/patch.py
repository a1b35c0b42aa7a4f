"""What every command does with FILE: reading, compiling, warning."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import weft
from weft.cli.console import Missing
from weft.cli.options import probe
from weft.contexts import ContextTable
from weft.plugins import context_table
from weft.runtime.build import Build, build
from weft.syntax.includes import open_source


def compile_file(
    file: str,
    contexts: ContextTable | None = None,
    settings: Mapping[str, float] | None = None,
    optimise: bool = True,
) -> Build:
    """FILE, compiled; `settings` override those of the patch. Raises WeftError if it cannot be read or has errors."""
    return build(open_source(file), contexts or context_table(), settings, optimise, probe)


def comes_with_weft(path: Path) -> bool:
    """Whether a patch is one of those that come with weft, beside which nothing should be written."""
    try:
        return shipped_patches().resolve() in path.resolve().parents
    except Missing:
        return False


def shipped_patches() -> Path:
    """The folder of the patches that come with weft: in a wheel inside the package, in a checkout beside it.

    Raises Missing if there is neither.
    """
    package = Path(os.path.abspath(weft.__file__)).parent
    for folder in (package / "patches", package.parent / "patches"):
        if folder.is_dir():
            return folder
    raise Missing("the patches that come with weft are not installed")
