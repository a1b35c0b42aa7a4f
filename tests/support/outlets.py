"""Outlets without a performance: their processes, which get pictures and sound from a test."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from tests.support.performance import PATIENCE
from weft.outlets import outlet_of
from weft.runtime.films.outlet_process import start_outlet
from weft.runtime.films.recording import LiveEncoder
from weft.runtime.live.record import PictureSender

SECRET = "a word that nobody guesses"
RATE, FPS = 48_000, 60


class Sending:
    """An outlet that is open."""

    def __init__(self, target: str, size: tuple[int, int]) -> None:
        outlet = outlet_of(target)
        assert outlet is not None
        rate = RATE if outlet.spec.has_sound else 0
        self.encoder: LiveEncoder = start_outlet(outlet.spec, outlet.place.text, size, FPS, rate, SECRET)
        self._pictures = PictureSender(self.encoder)
        self.count = 0
        self.until(lambda: self.encoder.is_ready or self.encoder.is_done)

    def until(self, happens: Callable[[], bool]) -> None:
        """Waits until something happens."""
        deadline = time.monotonic() + PATIENCE
        while not happens():
            assert time.monotonic() < deadline
            self.encoder.poll(0.02)

    def show(self, picture: NDArray[np.uint8]) -> None:
        """Gives the picture to the process, and waits until it has it."""
        self.encoder.poll()
        assert self._pictures.send(picture, self.count)
        self.count += 1
        free = self.encoder._free
        self.until(lambda: len(free) == 8)

    def said(self, words: str, kind: str = "") -> bool:
        """Whether the process has said these words."""
        return any(words in str(said) and kind in each for each, said in self.encoder.told)


@cache
def ffmpeg_with(protocol: str) -> str | None:
    """The program ffmpeg, if it knows a protocol."""
    program = shutil.which("ffmpeg")
    if program is None:
        return None
    known = subprocess.run([program, "-hide_banner", "-protocols"], capture_output=True, text=True, check=False).stdout
    return program if protocol in known.split() else None
