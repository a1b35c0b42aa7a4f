"""Fading from one program of sound to the next, so that neither a click nor a gap is heard.

Gains follow a quarter of a circle: what leaves by its cosine, what enters by its sine, so that two sounds that have
nothing to do with each other keep their power together. Sounds that agree would be louder in the middle, up to twice
the power; how much they do is measured as the fade begins, and taken back.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass

import numpy as np

from weft.backends.launch import Reals


@dataclass(frozen=True, slots=True)
class Likeness:
    """How two sounds go together: their powers, and how much they agree, 0…1."""

    leaving: float = 0.0
    entering: float = 0.0
    agreement: float = 0.0

    @classmethod
    def of(cls, leaving: Reals, entering: Reals) -> Likeness:
        """That of two stretches of sound of one shape."""
        powers = [float(np.mean(np.square(sound))) for sound in (leaving, entering)]
        both = math.sqrt(powers[0] * powers[1])
        if not (math.isfinite(both) and both > 0):
            return cls()
        together = float(np.mean(leaving * entering)) / both
        # Sounds that cancel each other are not made louder for it: that would be a swell where they stop to do so.
        return cls(powers[0], powers[1], min(max(together, 0.0), 1.0))


class Fade:
    """One passage from some voices to others. Voices are told apart by any key; a gain is what a voice is multiplied
    with, 0…1."""

    def __init__(self, samples: int, gains: dict[Hashable, float], wanted: Iterable[Hashable]) -> None:
        """A fade of so many samples from voices with these gains, which may be in the midst of another fade, to those
        that are wanted."""
        self._samples = samples
        self._done = 0
        self.wanted = frozenset(wanted)
        self._start = {**dict.fromkeys(self.wanted, 0.0), **gains}
        self._likeness: Likeness | None = None

    @property
    def is_over(self) -> bool:
        return self._done >= self._samples

    @property
    def needs_likeness(self) -> bool:
        """Whether nobody has said yet how the sounds go together."""
        return self._likeness is None and not self.is_over

    def compare(self, leaving: Reals, entering: Reals) -> None:
        """Learns how the sounds go together, from their first stretch."""
        self._likeness = Likeness.of(leaving, entering)

    @property
    def voices(self) -> list[Hashable]:
        """All voices that can still be heard."""
        return list(self.wanted if self.is_over else self._start)

    def stands_still(self, voice: Hashable) -> bool:
        """Whether a voice plays on at full gain."""
        return voice in self.wanted and (self.is_over or self._start[voice] == 1.0)

    def gains(self, voice: Hashable, samples: int) -> Reals | float:
        """The gain of a voice for each of the next samples."""
        if self.stands_still(voice):
            return 1.0
        return self._gains(voice, self._angles(samples))

    def advance(self, samples: int) -> None:
        """So many samples have been played."""
        self._done = min(self._done + samples, self._samples)

    def now(self) -> dict[Hashable, float]:
        """The gains at this moment, as the next fade begins with them."""
        if self.is_over:
            return dict.fromkeys(self.wanted, 1.0)
        here = np.array([self._done / self._samples * (math.pi / 2)])
        return {v: 1.0 if self.stands_still(v) else float(self._gains(v, here)[0]) for v in self._start}

    def _angles(self, samples: int) -> Reals:
        share = (self._done + np.arange(1, samples + 1)) / max(1, self._samples)
        return np.minimum(share, 1.0) * (math.pi / 2)

    def _gains(self, voice: Hashable, angles: Reals) -> Reals:
        cosine, sine = np.cos(angles), np.sin(angles)
        start = self._start[voice]
        entering = sine if voice in self.wanted else 0.0
        gains: Reals = np.hypot(start * cosine, entering) * self._compensation(cosine, sine)
        return gains

    def _compensation(self, cosine: Reals, sine: Reals) -> Reals | float:
        like = self._likeness
        if like is None or like.agreement == 0:
            return 1.0
        apart = like.leaving * np.square(cosine) + like.entering * np.square(sine)
        common = 2 * like.agreement * math.sqrt(like.leaving * like.entering) * cosine * sine
        compensation: Reals = np.sqrt(apart / (apart + common))
        return compensation
