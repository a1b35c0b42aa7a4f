"""Files that are there as a whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from weft.cli.console import Missing


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A file beside `path` to write to, which takes its place when the block ends, and is gone if the block fails.

    Raises Missing if the folder cannot be written to.
    """
    try:
        # Of the same ending, which says to a writer what to write.
        descriptor, name = tempfile.mkstemp(prefix=f".{path.stem[:40]}-", suffix=path.suffix, dir=path.parent)
        os.close(descriptor)
    except OSError as problem:
        raise Missing(f"{path} cannot be written: {problem.strerror}") from problem
    beside = Path(name)
    try:
        yield beside
        # As a file made the usual way would have it; a temporary one is closed to others.
        os.chmod(beside, 0o666 & ~_umask())
        os.replace(beside, path)
    except OSError as problem:
        raise Missing(f"{path} cannot be written: {problem.strerror}") from problem
    finally:
        with suppress(FileNotFoundError):
            beside.unlink()


def write(path: Path, data: bytes) -> None:
    """Writes a file as a whole. Raises Missing if that cannot be done."""
    with replacing(path) as beside:
        beside.write_bytes(data)


def make_folder(path: Path) -> None:
    """A folder, with those above it. Raises Missing if it cannot be made."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise Missing(f"{path} cannot be made: {problem.strerror}") from problem


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
