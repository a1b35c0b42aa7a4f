"""How a program takes over from the one before: how long they fade into each other, and what beat it waits for."""

from __future__ import annotations

import math
from dataclasses import dataclass

from weft.runtime.playable import Playable

# Seconds in which sounds fade into each other where nobody says otherwise: long enough for no click to be heard.
_FADE = 0.03

# A beat that was so many seconds ago is still met: nobody hears that.
_ON_TIME = 0.005


@dataclass(frozen=True)
class Takeover:
    """What the command line asks for, seconds and beats; it has its way over what a patch says."""

    fade: float | None = None
    quantize: float | None = None

    def fade_of(self, playable: Playable) -> float:
        """Seconds in which the sound of a program fades in."""
        asked = self.asked_fade(playable)
        return _FADE if asked is None else asked

    def asked_fade(self, playable: Playable) -> float | None:
        """The fade that somebody asks for, by which pictures go as well."""
        return self.fade if self.fade is not None else playable.fade

    def moment(self, playable: Playable, now: float, bpm: float) -> float | None:
        """The moment of the performance at which a program takes over, in seconds; None for at once. Beats are those
        of the program that plays."""
        beats = self.quantize if self.quantize is not None else playable.quantize
        if not beats:
            return None
        step = beats * 60 / bpm
        return math.ceil((now - _ON_TIME) / step) * step
