"""What every command does with FILE: reading, compiling, warning."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import click

import weft
from weft.cli.console import Missing
from weft.contexts import ContextTable
from weft.plugins import context_table
from weft.runtime.build import Build, build
from weft.syntax.includes import open_source

# Read by weft itself, which says what is wrong with a file in its own words and with its own exit code.
FILE = click.argument("file", type=click.Path())


def compile_file(
    file: str,
    contexts: ContextTable | None = None,
    settings: Mapping[str, float] | None = None,
    optimise: bool = True,
) -> Build:
    """FILE, compiled; `settings` override those of the patch. Raises WeftError if it cannot be read or has errors."""
    return build(open_source(file), contexts or context_table(), settings, optimise, probe)


def probe(path: str) -> str | None:
    """What is wrong with a picture file, from its header; None for one that is fine."""
    from weft.media.pictures import PictureError, probe_picture  # Pillow: only for patches with pictures

    try:
        probe_picture(Path(path))
    except PictureError as problem:
        return f"{problem.reason} ({problem.hint})" if problem.hint else problem.reason
    return None


def shipped_patches() -> Path:
    """The folder of the patches that come with weft: in a wheel inside the package, in a checkout beside it.

    Raises Missing if there is neither.
    """
    package = Path(os.path.abspath(weft.__file__)).parent
    for folder in (package / "patches", package.parent / "patches"):
        if folder.is_dir():
            return folder
    raise Missing("the patches that come with weft are not installed")
