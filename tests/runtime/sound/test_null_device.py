"""Sound without a device keeps to the time."""

from __future__ import annotations

import threading
import time

import numpy as np
from numpy.typing import NDArray

from weft.runtime.sound.server import NullAudioDevice

RATE, FRAMES = 48000, 480


class Listener:
    """Notes what it is asked for; the block of a number takes a while."""

    def __init__(self, slow: int, seconds: float) -> None:
        self.asked: list[str] = []
        self.enough = threading.Event()
        self._slow = slow
        self._seconds = seconds

    def fill(self, block: NDArray[np.float32], latency: float, underflow: bool, waited: float) -> None:
        self.asked.append("block")
        if len(self.asked) == self._slow:
            time.sleep(self._seconds)
        if len(self.asked) > 20:
            self.enough.set()

    def anew(self) -> None:
        self.asked.append("anew")


def test_after_a_stall_it_is_placed_anew() -> None:
    listener = Listener(5, 0.7)
    unheard = NullAudioDevice(RATE, 2, FRAMES, listener.fill, listener.anew)
    assert listener.enough.wait(30)
    unheard.close()
    assert listener.asked[4:7] == ["block", "anew", "block"]


def test_what_was_late_is_made_up_for() -> None:
    listener = Listener(5, 0.2)
    unheard = NullAudioDevice(RATE, 2, FRAMES, listener.fill, listener.anew)
    assert listener.enough.wait(30)
    unheard.close()
    assert listener.asked[:8] == ["block"] * 8
