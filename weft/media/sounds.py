"""Sounds as files. Only this module imports soundfile."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt

ENDINGS = (".wav", ".flac")

# Finer than anyone can hear, and read by every program.
_FORMAT = "PCM_24"


class SoundError(Exception):
    """A sound cannot be written; the message says why."""


def save(path: Path, ending: str, rate: float, blocks: Iterable[npt.NDArray[np.float32]]) -> None:
    """Writes blocks [samples, channels], all with the same number of channels, one after another, in the format of an
    ending. Raises SoundError, or OSError if the file cannot be written."""
    try:
        import soundfile
    except ImportError as problem:
        raise SoundError("writing sound needs soundfile (pip install soundfile)") from problem
    blocks = iter(blocks)
    first = next(blocks)
    kind = ending.removeprefix(".").upper()
    try:
        with soundfile.SoundFile(path, "w", round(rate), first.shape[1], _FORMAT, format=kind) as file:
            file.write(first)
            for block in blocks:
                file.write(block)
    except soundfile.SoundFileError as problem:
        raise SoundError(f"the sound cannot be written: {problem}") from problem
