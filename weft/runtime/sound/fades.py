"""Fading from one program of sound to the next, so that neither a click nor a gap is heard.

Gains follow a quarter of a circle: what leaves by its cosine, what enters by its sine, so that two sounds that have
nothing to do with each other keep their power together. Sounds that agree would be louder in the middle, up to twice
the power; how much they do is measured while they fade, and taken back. What leaves is all that was heard as the fade
began, at the gains of that moment, with those voices in it that are wanted again.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from weft.backends.launch import Reals

# After so many samples, what was heard of two sounds counts half.
_HALF_LIFE = 2048


@dataclass(frozen=True, slots=True)
class Likeness:
    """How two sounds go together, as far as they have been heard lately: the sums of their squares, and of their
    products."""

    leaving: float = 0.0
    entering: float = 0.0
    common: float = 0.0

    def with_more(self, leaving: Reals, entering: Reals) -> Likeness:
        """What is known after another stretch of both, of one shape."""
        sums = [float(np.sum(a * b)) for a, b in ((leaving, leaving), (entering, entering), (leaving, entering))]
        if not all(map(math.isfinite, sums)):
            return self
        kept = 0.5 ** (leaving.shape[-1] / _HALF_LIFE)
        known = (self.leaving, self.entering, self.common)
        return Likeness(*(kept * before + more for before, more in zip(known, sums, strict=True)))

    def compensation(self, cosine: Reals, sine: Reals) -> Reals:
        """What keeps the power of both together from rising where one has this cosine as its gain, the other this
        sine. Sounds that cancel each other are not made louder: that would be a swell where they stop to do so."""
        apart = self.leaving * np.square(cosine) + self.entering * np.square(sine)
        common = 2 * max(self.common, 0.0) * cosine * sine
        loud = apart > 0
        return np.sqrt(np.divide(apart, apart + common, out=np.ones_like(apart), where=loud))


class Fade:
    """One passage from some voices to others. Voices are told apart by any key; a gain is what a voice is multiplied
    with, 0…1."""

    def __init__(
        self, samples: int, gains: Mapping[Hashable, float], wanted: Iterable[Hashable], ending: Iterable[Hashable] = ()
    ) -> None:
        """A fade of so many samples from voices with these gains, which may be in the midst of another fade, to those
        that are wanted. For those `ending` there is no time: they are gone after one stretch."""
        self._samples = samples
        self._done = 0
        self._wanted = frozenset(wanted)
        self._start = {**dict.fromkeys(self._wanted, 0.0), **gains}
        self._ending = frozenset(ending)
        self._likeness = Likeness()

    @property
    def is_over(self) -> bool:
        return self._done >= self._samples

    @property
    def voices(self) -> frozenset[Hashable]:
        """All voices that can still be heard."""
        return self._wanted if self.is_over else frozenset(self._start)

    def now(self) -> dict[Hashable, float]:
        """The gains at this moment, as the next fade begins with them."""
        if self.is_over:
            return dict.fromkeys(self._wanted, 1.0)
        cosine, sine = _circle(np.array([self._done / self._samples]))
        compensation = self._likeness.compensation(cosine, sine)
        return {v: float((self._gains(v, cosine, sine, compensation) * np.ones(1))[0]) for v in self._start}

    def mix(self, sounds: Mapping[Hashable, Reals], total: Reals) -> None:
        """Adds the next stretch of what the voices sound like, [channels, samples] each, at their gains."""
        samples = total.shape[1]
        still = {voice for voice in sounds if self._stands_still(voice)}
        if len(still) == len(sounds):
            for sound in sounds.values():
                total += sound
        else:
            cosine, sine = _circle(np.minimum((self._done + np.arange(1, samples + 1)) / max(1, self._samples), 1.0))
            compensation = self._heard({v: s for v, s in sounds.items() if v not in still}, cosine, sine)
            for voice, sound in sounds.items():
                total += sound * self._gains(voice, cosine, sine, compensation)
        self._done = min(self._done + samples, self._samples)
        for voice in self._ending & self._start.keys():
            del self._start[voice]

    def _stands_still(self, voice: Hashable) -> bool:
        """Whether a voice plays on at full gain."""
        return voice in self._wanted and (self.is_over or self._start[voice] == 1.0)

    def _gains(self, voice: Hashable, cosine: Reals, sine: Reals, compensation: Reals) -> Reals | float:
        if self._stands_still(voice):
            return 1.0
        # A voice that is on its way out and comes back is part of both: of what was heard, and of what will be.
        gains: Reals = (self._start[voice] * cosine + (sine if voice in self._wanted else 0.0)) * compensation
        return gains * _ending(len(gains)) if voice in self._ending else np.minimum(gains, 1.0)

    def _heard(self, moving: Mapping[Hashable, Reals], cosine: Reals, sine: Reals) -> Reals:
        """Listens to a stretch of the voices that come and go; gives their compensation, led from what was known of
        them before to what is known now, so that it does not jump."""
        shape = next(iter(moving.values())).shape
        leaving, entering = np.zeros(shape), np.zeros(shape)
        for voice, sound in moving.items():
            if voice in self._wanted:
                entering += sound
            start = self._start[voice]
            leaving += sound * (start * _ending(shape[-1]) if voice in self._ending else start)
        before, self._likeness = self._likeness, self._likeness.with_more(leaving, entering)
        now = self._likeness.compensation(cosine, sine)
        if self._done == 0:
            return now
        ramp = np.arange(1, len(now) + 1) / len(now)
        was = before.compensation(cosine, sine)
        led: Reals = was + (now - was) * ramp
        return led


def _ending(samples: int) -> Reals:
    """What takes a voice away within one stretch."""
    return np.linspace(1, 0, samples)


def _circle(share: Reals) -> tuple[Reals, Reals]:
    """Cosine and sine at these shares of a quarter of a circle."""
    angle = share * (math.pi / 2)
    return np.cos(angle), np.sin(angle)
