"""What is heard in a sound, as numbers for pictures: its loudness, spectrum, hits, pitch and tempo.

Every analysis is a class with one interface: it is made for a rate, fed samples as they come, and gives a row of values
for each hop that they complete. A row depends on the samples up to the end of its hop and on nothing else, so the
blocks in which they come do not matter. Before the first sample there is silence. Samples that are NaN count as silence
too. `ANALYSES` is the table of all analyses.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weft.names import HeardName, hop_length
from weft.sources import SOURCES, SourceSpec

Samples: TypeAlias = NDArray[np.float32]
Rows: TypeAlias = NDArray[np.float32]
"""[hops, values]"""
Doubles: TypeAlias = NDArray[np.float64]

LOWEST_BAND, HIGHEST_BAND = 40.0, 16000.0
"""The range of the bands of a spectrum, in hertz."""
LOW_END, HIGH_START = 250.0, 4000.0
"""Where `low` ends and `high` starts, in hertz."""
FLOOR_DB = -60.0
"""The loudness that has the level 0; a sine of full scale has the level 1."""
SPECTRUM_RELEASE = 0.5
"""Seconds in which a level falls from 1 to 0. It rises at once."""
ONSET_RELEASE = 0.05
PEAK_RELEASE = 0.1
"""Seconds in which a peak falls to 1/e."""
LOWEST_PITCH, HIGHEST_PITCH = 50.0, 2000.0
LOWEST_BPM, HIGHEST_BPM = 60.0, 180.0
NEVER = 100.0
"""The age of an onset before the first one, in seconds."""


class Analyser(ABC):
    """The samples of a window that ends with each hop, and the row that a subclass computes from them."""

    spec: ClassVar[SourceSpec]
    """Its row in the table of sources. Its outputs are the values of a row, in order."""

    def __init__(self, rate: float) -> None:
        self.rate = float(rate)
        self.hop = hop_length(rate)
        self.window = self.hop * self.spec.hops
        # Rows are views into a buffer of a few windows, so samples are moved once in that many hops.
        self._buffer = np.zeros(self.window + 16 * self.hop)
        self._end = self.window - self.hop
        self._row_end = self.window

    @property
    def width(self) -> int:
        """The number of values in a row."""
        return len(self.spec.outputs)

    @property
    def delay(self) -> float:
        """The seconds from a moment of the sound to the end of the hop whose row shows it best. This is half of the
        window, since the moment is then in the middle of the window."""
        return self.window / 2 / self.rate

    def picture(self, rows: Rows) -> NDArray[np.float32]:
        """Rows as a picture [hops, columns, 4], each value in a plane of its own."""
        found = np.zeros((len(rows), 1, 4), np.float32)
        found[:, 0, : rows.shape[1]] = rows
        return found

    def feed(self, samples: Samples) -> Rows:
        """The rows of all hops that these samples complete."""
        found = np.zeros(((self._end - self._row_end + self.hop + len(samples)) // self.hop, self.width), np.float32)
        if not np.isfinite(samples).all():
            samples = np.where(np.isfinite(samples), samples, np.float32(0))
        start = 0
        for row in found:
            stop = start + self._row_end - self._end
            self._keep(samples[start:stop])
            self._analyse(self._buffer[self._row_end - self.window : self._row_end], row)
            start = stop
            self._row_end += self.hop
            if self._row_end > len(self._buffer):
                kept = self._end - self.window
                self._buffer[: self.window] = self._buffer[kept : self._end]
                self._end -= kept
                self._row_end -= kept
        self._keep(samples[start:])
        return found

    def _keep(self, samples: Samples) -> None:
        self._buffer[self._end : self._end + len(samples)] = samples
        self._end += len(samples)

    @abstractmethod
    def _analyse(self, window: Doubles, row: NDArray[np.float32]) -> None:
        """Writes the row of the hop with which the window ends."""


class Loudness(Analyser):
    """The root of the mean square under a Hann window. The window makes it steady for tones from 50 Hz on, where a mean
    over whole samples would tremble with each period."""

    spec = SOURCES["rms"]

    def __init__(self, rate: float) -> None:
        super().__init__(rate)
        self._weights = hann(self.window)
        self._weights /= self._weights.sum()

    def _analyse(self, window: Doubles, row: NDArray[np.float32]) -> None:
        row[0] = math.sqrt(np.dot(self._weights, window * window))


class Peak(Analyser):
    """The greatest magnitude in the hop. It falls by a factor e in `PEAK_RELEASE` seconds."""

    spec = SOURCES["peak"]

    def __init__(self, rate: float) -> None:
        super().__init__(rate)
        self._fall = math.exp(-self.hop / self.rate / PEAK_RELEASE)
        self._value = 0.0

    def _analyse(self, window: Doubles, row: NDArray[np.float32]) -> None:
        self._value = max(float(np.abs(window).max()), self._value * self._fall)
        row[0] = self._value


class Spectrum(Analyser):
    """Levels of everything low, middle and high, in this order, and then of all bands.

    Bands divide 40 Hz … 16 kHz (or half the rate) at equal ratios. The power in a band is a sum over the bins of a Hann
    window, scaled so that a sine of full scale in the middle of the band has 0 dB. A level is the power in decibels,
    from 0 at −60 dB to 1 at 0 dB. The window separates tones that are some 50 Hz apart, so low bands, which are
    narrower than that, show the same tones.
    """

    spec = SOURCES["fft"]

    def __init__(self, rate: float, bands: int = 32) -> None:
        super().__init__(rate)
        self.bands = int(bands)
        top = min(HIGHEST_BAND, self.rate / 2)
        edges = np.geomspace(min(LOWEST_BAND, top / 2), top, self.bands + 1)
        low, high = min(LOW_END, top), min(HIGH_START, top)
        self.edges = [(edges[0], low), (low, high), (high, top), *pairwise(edges)]
        self._hann = hann(self.window)
        self._weights = np.array([self._band(start, end) for start, end in self.edges])
        self._fall = self.hop / self.rate / SPECTRUM_RELEASE
        self._levels = np.zeros(self.width)

    @property
    def width(self) -> int:
        return 3 + self.bands

    def picture(self, rows: Rows) -> NDArray[np.float32]:
        found = np.empty((len(rows), self.bands, 4), np.float32)
        found[:, :, 0] = rows[:, 3:]
        found[:, :, 1:] = rows[:, None, :3]
        return found

    def _band(self, start: float, end: float) -> Doubles:
        """The weights with which the powers of the bins are summed for a band."""
        bins = self.window // 2 + 1
        per_bin = self.rate / self.window
        weights = np.zeros(bins)
        if start >= end:
            return weights
        middle = math.sqrt(start * end) / per_bin
        first, last = min(start / per_bin, middle - 1), max(end / per_bin, middle + 1)
        number = np.arange(bins)
        # A bin that the band covers in part counts with that part.
        weights = np.clip(np.minimum(number + 0.5, last) - np.maximum(number - 0.5, first), 0, 1)
        time = np.arange(self.window)
        # A wave without negative frequencies, whose power does not depend on its phase.
        sine = np.fft.fft(self._hann * np.exp(2j * np.pi * middle * time / self.window))[:bins] / 2
        scaled: Doubles = weights / np.dot(weights, np.abs(sine) ** 2)
        return scaled

    def _analyse(self, window: Doubles, row: NDArray[np.float32]) -> None:
        power = np.abs(np.fft.rfft(self._hann * window)) ** 2
        decibels = 10 * np.log10(np.maximum(self._weights @ power, 1e-30))
        found = np.clip(1 - decibels / FLOOR_DB, 0, 1)
        self._levels = np.maximum(found, self._levels - self._fall)
        row[:] = self._levels


class Novelty(Analyser):
    """How much louder a sound becomes from one hop to the next, over bands: its spectral flux.

    Magnitudes are compressed to logarithms, and only rises count (S. Dixon, "Onset Detection Revisited", DAFx 2006). A
    band is compared with the loudest of its neighbours a hop before, so a tone that moves between bands is no rise (S.
    Böck and G. Widmer, "Maximum Filter Vibrato Suppression for Onset Detection", DAFx 2013).
    """

    spec = SOURCES["onset"]
    _BANDS = 40
    _COMPRESSION = 300.0

    def __init__(self, rate: float) -> None:
        super().__init__(rate)
        self._hann = hann(self.window)
        bins = self.window // 2 + 1
        frequencies = np.arange(bins) * self.rate / self.window
        edges = np.geomspace(30, min(16000, self.rate / 2), self._BANDS + 1)
        # Low bands without a bin of their own are left out.
        found = np.clip(np.searchsorted(edges, frequencies, "right") - 1, 0, self._BANDS - 1)
        self._starts = np.flatnonzero(np.diff(found, prepend=-1))
        self._scale = 2 / self._hann.sum()
        count = len(self._starts)
        self._before = np.zeros(count + 2)

    def _analyse(self, window: Doubles, row: NDArray[np.float32]) -> None:
        row[0] = self.rise(window)

    def rise(self, window: Doubles) -> float:
        power = np.abs(np.fft.rfft(self._hann * window)) ** 2
        magnitude = np.sqrt(np.add.reduceat(power, self._starts)) * self._scale
        level = np.log10(1 + self._COMPRESSION * magnitude)
        before = self._before
        loudest = np.maximum(np.maximum(before[:-2], before[1:-1]), before[2:])
        before[1:-1] = level
        before[0], before[-1] = level[0], level[-1]
        return float(np.maximum(level - loudest, 0).mean())


class Onset(Analyser):
    """The moments at which something begins to sound: rises that stand out from those of the last 0.4 seconds.

    The threshold is a constant, twice the median of the recent rises, and a fifth of the last hit's rise, which fades.
    The last term is needed because the tail of a hit may beat with other tones. `value` is the strength of a hit, 0…1,
    which falls to 0 within `ONSET_RELEASE` seconds, so that no frame misses it; `age` is the time since the last hit.
    """

    spec = SOURCES["onset"]
    _FLOOR, _MEDIANS, _ECHO, _ECHO_SECONDS = 0.04, 2.0, 0.2, 0.1
    _MEMORY, _REST = 0.4, 0.05
    _FULL = 0.5
    """The rise of a hit with the strength 1."""

    def __init__(self, rate: float) -> None:
        super().__init__(rate)
        self._novelty = Novelty(rate)
        self._seconds = self.hop / self.rate
        self._recent = np.zeros(max(3, round(self._MEMORY / self._seconds)))
        self._age = NEVER
        self._strongest = 0.0
        self._is_rising = False
        self._before = self._value = 0.0

    def _analyse(self, window: Doubles, row: NDArray[np.float32]) -> None:
        flux = self._novelty.rise(window)
        self._age = min(self._age + self._seconds, NEVER)
        threshold = self._FLOOR + self._MEDIANS * float(np.partition(self._recent, self._half)[self._half])
        threshold += self._ECHO * self._strongest * math.exp(-self._age / self._ECHO_SECONDS)
        self._recent[:-1] = self._recent[1:]
        self._recent[-1] = flux
        if flux > threshold and flux > self._before and self._age >= self._REST:
            # The hit is somewhere in the newer half of the window.
            self._age = self.hop / self.rate
            self._is_rising = True
            self._strongest = 0.0
        self._is_rising = self._is_rising and flux > self._strongest
        self._strongest = max(self._strongest, flux)
        self._before = flux
        self._value = max(self._value - self._seconds / ONSET_RELEASE, 0.0)
        if self._is_rising:
            self._value = max(self._value, min(1.0, flux / self._FULL))
        row[0] = self._value
        row[1] = self._age

    @property
    def _half(self) -> int:
        return len(self._recent) // 2


class Pitch(Analyser):
    """The frequency of a tone from 50 to 2000 Hz, and how certain it is: YIN (A. de Cheveigné and H. Kawahara, "YIN, a
    fundamental frequency estimator for speech and music", JASA 111, 2002), steps 1 to 5.

    `confidence` is 1 for a periodic sound and about 0 for noise. Below ½, and in silence, `frequency` keeps its value;
    it is 0 before the first tone.
    """

    spec = SOURCES["pitch"]
    _THRESHOLD = 0.1
    _SILENCE = 1e-3
    """A loudness of −60 dB."""

    def __init__(self, rate: float) -> None:
        super().__init__(rate)
        longest = min(math.ceil(self.rate / LOWEST_PITCH) + 1, self.window // 2 - 1)
        self._shortest = max(2, math.floor(self.rate / HIGHEST_PITCH) - 1)
        self._lags = np.arange(1, max(longest, self._shortest + 3))
        self._summed = self.window - len(self._lags) - 1
        self._size = fast_length(self.window)
        self._frequency = 0.0

    def _analyse(self, window: Doubles, row: NDArray[np.float32]) -> None:
        row[0], row[1] = self._frequency, 0.0
        if np.dot(window, window) <= self._SILENCE**2 * len(window):
            return
        lag, aperiodicity = self._period(window - window.mean())
        row[1] = min(1.0, max(0.0, 1 - aperiodicity))
        if row[1] >= 0.5:
            row[0] = self._frequency = self.rate / lag

    def _period(self, window: Doubles) -> tuple[float, float]:
        """The period in samples, and how much a period differs from the next, about 0…1."""
        count = self._summed
        square = np.concatenate(([0.0], np.cumsum(window * window)))
        head = np.fft.rfft(window[:count], self._size)
        products = np.fft.irfft(np.conj(head) * np.fft.rfft(window, self._size), self._size)
        lags = self._lags
        difference = np.maximum(square[count] + square[lags + count] - square[lags] - 2 * products[lags], 0)
        normal = difference * lags / np.maximum(np.cumsum(difference), 1e-30)
        first = self._shortest - 1
        low = np.flatnonzero(normal[first:] < self._THRESHOLD)
        best = first + (int(low[0]) if len(low) else int(np.argmin(normal[first:])))
        while best + 1 < len(normal) and normal[best + 1] < normal[best]:
            best += 1
        if not 0 < best < len(normal) - 1:
            return float(lags[best]), float(normal[best])
        return best + 1 + vertex(difference[best - 1 : best + 2]), float(normal[best])


class TempoEstimate(Analyser):
    """The beats of the last six seconds, from 60 to 180 a minute, with a preference for about 120.

    The rises of the sound are correlated with themselves. The score of a tempo is the correlation at one to four of its
    beats, times the preference (D. Ellis, "Beat Tracking by Dynamic Programming", 2007), minus the evidence for a tempo
    that is twice as fast. `phase` is the place in the beat at the end of the hop, 0…1; `confidence` is the correlation
    at one beat, 0…1. Below 0.2, `bpm` keeps its value, and the phase continues; it is 0 before the first beats.
    """

    spec = SOURCES["tempo"]
    _MEMORY = 6.0
    _FIRST = 2.0
    """Seconds before there is a tempo."""
    _BEATS, _FASTER, _WIDTH, _PREFERRED = 4, 0.25, 0.9, 120.0
    _STEADY, _LEAST = 0.005, 0.2
    """If rises are as small as those of a steady tone, or the confidence is below this, there is no tempo."""
    _KEPT = 1.1
    """How much better another tempo must be to replace the current one."""
    _PULL = 0.08
    """The share of a phase's error that is corrected in a hop."""

    def __init__(self, rate: float) -> None:
        super().__init__(rate)
        self._novelty = Novelty(rate)
        self._hops = self.rate / self.hop
        self._rises = np.zeros(round(self._MEMORY * self._hops))
        self._known = 0
        self._size = fast_length(2 * len(self._rises))
        self._bpms = np.arange(LOWEST_BPM, HIGHEST_BPM + 0.125, 0.25)
        periods = self._hops * 60 / self._bpms
        self._multiples = periods * np.arange(1, self._BEATS + 1)[:, None]
        self._halves = np.where(2 * self._bpms <= HIGHEST_BPM, periods / 2, 0)
        self._preference = np.exp(-0.5 * (np.log2(self._bpms / self._PREFERRED) / self._WIDTH) ** 2)
        self._lags = np.arange(len(self._rises))
        self._bpm = self._phase = 0.0

    def _analyse(self, window: Doubles, row: NDArray[np.float32]) -> None:
        self._rises[:-1] = self._rises[1:]
        self._rises[-1] = self._novelty.rise(window)
        self._known = min(self._known + 1, len(self._rises))
        confidence = self._find() if self._known >= self._FIRST * self._hops else 0.0
        row[0], row[1], row[2] = self._bpm, self._phase, confidence

    def _find(self) -> float:
        """Updates tempo and phase; returns the confidence."""
        self._phase = (self._phase + self._bpm / 60 / self._hops) % 1
        recent = self._rises[-self._known :]
        rises = np.maximum(recent - recent.mean(), 0)
        deviations = rises - rises.mean()
        power = np.abs(np.fft.rfft(deviations, self._size)) ** 2
        correlation = np.fft.irfft(power, self._size)[: self._known]
        if correlation[0] <= self._STEADY**2 * self._known:
            return 0.0
        # The longer a lag, the fewer products it has; and players are not exact to a hop.
        correlation = correlation / (self._known - self._lags[: self._known])
        correlation = np.convolve(np.concatenate((correlation[1:2], correlation, [0.0])), (0.25, 0.5, 0.25), "valid")
        correlation[self._known * 3 // 4 :] = 0
        correlation /= correlation[0]
        lags = self._lags[: self._known]
        at_beats = np.interp(self._multiples, lags, correlation)
        at_halves = np.where(self._halves > 0, np.interp(self._halves, lags, correlation), 0)
        scores = (at_beats.mean(axis=0) - self._FASTER * np.maximum(at_halves, 0)) * self._preference
        best = int(np.argmax(scores))
        near = np.flatnonzero(np.abs(self._bpms - self._bpm) < 0.04 * self._bpm)
        if len(near):
            kept = near[np.argmax(scores[near])]
            best = kept if scores[best] < self._KEPT * scores[kept] else best
        confidence = min(1.0, max(0.0, float(at_beats[0, best])))
        if confidence < self._LEAST:
            return confidence
        found = self._exactly(self._bpms[best], correlation)
        is_new = self._bpm == 0 or abs(found / self._bpm - 1) > 0.04
        self._bpm = found
        error = (self._beat(rises) - self._phase + 0.5) % 1 - 0.5
        self._phase = (self._phase + (error if is_new else error * self._PULL)) % 1
        return confidence

    def _exactly(self, bpm: float, correlation: Doubles) -> float:
        """A more exact value of a tempo, by the peak of the correlation that is as many beats away as possible."""
        period = self._hops * 60 / bpm
        count = max(1, int((self._known * 3 // 4 - 3) / period))
        start = round(count * period) - 1
        summit = start + int(np.argmax(correlation[start : start + 3]))
        lag = summit + vertex(-correlation[summit - 1 : summit + 2])
        found = float(self._hops * 60 * count / lag)
        return found if abs(found / bpm - 1) < 0.02 else float(bpm)

    def _beat(self, rises: Doubles) -> float:
        """The place in the beat at the end of the window."""
        period = self._hops * 60 / self._bpm
        offsets = np.arange(0, period, 0.5)
        back = offsets + period * np.arange(int(len(rises) / period))[:, None]
        newest = len(rises) - 1
        found = np.interp(newest - back, np.arange(len(rises)), rises) * np.exp(-back / (self._hops * 3))
        sums = found.sum(axis=0)
        best = int(np.argmax(sums))
        around = sums[[best - 1, best, (best + 1) % len(sums)]]
        # A rise shows about a hop after the hit.
        return float(((best + vertex(-around)) * 0.5 + 1) / period % 1)


ANALYSES: Mapping[str, type[Analyser]] = MappingProxyType({
    each.spec.name: each for each in (Loudness, Peak, Spectrum, Onset, Pitch, TempoEstimate)
})  # fmt: skip
"""The analyses, by their names in the table of sources."""


def analyser(heard: HeardName, rate: float) -> Analyser:
    """The analysis of this name, for a rate."""
    if heard.analysis == "fft":
        return Spectrum(rate, int(heard.args[0]))
    return ANALYSES[heard.analysis](rate)


def vertex(three: Doubles) -> float:
    """The place of the minimum of the parabola through three values, counted from the middle one: -½…½."""
    before, here, after = (float(value) for value in three)
    bend = before - 2 * here + after
    return min(0.5, max(-0.5, 0.5 * (before - after) / bend)) if bend > 0 else 0.0


def fast_length(least: int) -> int:
    """A power of two that is at least that length. Transforms of other lengths may take many times as long."""
    return 1 << max(0, least - 1).bit_length()


def hann(length: int) -> Doubles:
    """A Hann window over a period, as spectra take it."""
    window: Doubles = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(length) / length)
    return window
