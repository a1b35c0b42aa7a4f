#!/usr/bin/env python3
"""Writes patches/media/*.flac, the drum kit of patches/sampler.weft: .venv/bin/python scripts/kit.py"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

FOLDER = Path(__file__).parents[1] / "patches" / "media"
RATE = 44_100

# Samples are multiples of this, since what is finer than hearing in noise would only make files larger.
STEP = 2**-10

Samples: TypeAlias = NDArray[np.float64]


def seconds(length: float) -> Samples:
    """The times of the samples of a sound."""
    return np.arange(round(length * RATE)) / RATE


def falling(high: float, low: float, drop: float, t: Samples) -> Samples:
    """A sine whose frequency falls from high to low, by the factor e in `drop` seconds."""
    return np.sin(2 * np.pi * (low * t + (high - low) * drop * (1 - np.exp(-t / drop))))


def noise(t: Samples, seed: int, low: float, high: float) -> Samples:
    """Noise between two frequencies."""
    spectrum = np.fft.rfft(np.random.default_rng(seed).standard_normal(len(t)))
    f = np.fft.rfftfreq(len(t), 1 / RATE)
    spectrum *= 1 / (1 + (low / np.maximum(f, 1)) ** 6) / (1 + (f / high) ** 6)
    made = np.fft.irfft(spectrum, len(t))
    return made / np.abs(made).max()


def framed(made: Samples, t: Samples, level: float) -> Samples:
    """The same at a level, with 1 ms to begin in and a tenth to end in, both at 0."""
    end = t[-1]
    edges = np.minimum(np.minimum(t / 0.001, (end - t) / (0.1 * end)), 1)
    return level * made * edges / np.abs(made * edges).max()


def kick() -> Samples:
    t = seconds(0.26)
    body = falling(210, 47, 0.022, t) * np.exp(-t / 0.12)
    return framed(np.tanh(2.2 * body) + 0.25 * noise(t, 1, 900, 5000) * np.exp(-t / 0.003), t, 0.95)


def snare() -> Samples:
    t = seconds(0.24)
    drum = falling(330, 186, 0.01, t) * np.exp(-t / 0.05)
    wires = noise(t, 2, 1500, 9000) * np.exp(-t / 0.07)
    return framed(drum + 0.7 * wires, t, 0.8)


def hat() -> Samples:
    t = seconds(0.064)
    return framed(noise(t, 3, 7000, 15_000) * np.exp(-t / 0.016), t, 0.6)


def cymbal() -> Samples:
    """Six square waves with no common measure, of which only the upper part is left, in noise."""
    t = seconds(0.42)
    ring = sum(np.sign(np.sin(2 * np.pi * f * t)) for f in (2050, 3040, 3697, 5222, 5400, 8000))
    upper = np.diff(np.asarray(ring), 2, append=[0, 0])
    return framed((0.25 * upper + noise(t, 4, 5000, 14_000)) * np.exp(-t / 0.13), t, 0.6)


def clap() -> Samples:
    """Four hands, which are not quite together."""
    t = seconds(0.2)
    hands = [np.where(t >= at, np.exp(-np.maximum(t - at, 0) / fade), 0)
             for at, fade in ((0.0, 0.004), (0.011, 0.004), (0.021, 0.005), (0.03, 0.05))]  # fmt: skip
    return framed(noise(t, 5, 900, 4200) * np.sum(hands, axis=0), t, 0.75)


def stab() -> Samples:
    """A minor chord with the ninth on A, as a saw that is shut while it sounds."""
    t = seconds(0.5)
    made = np.zeros_like(t)
    for note in (0, 3, 7, 10, 14):
        for partial in range(1, 24):
            f = 220 * 2 ** (note / 12) * partial
            made += np.sin(2 * np.pi * f * t) / partial * np.exp(-t * (3 + 0.9 * partial)) * (f < 9000)
    return framed(made, t, 0.7)


KIT: Mapping[str, Callable[[], Samples]] = {
    "kick": kick, "snare": snare, "hat": hat, "cymbal": cymbal, "clap": clap, "stab": stab,
}  # fmt: skip


def stored(made: Samples) -> NDArray[np.int16]:
    """The samples of 16 bits that a file holds."""
    return (np.round(made / STEP) * STEP * 2**15).astype(np.int16)


def write(path: Path, samples: NDArray[np.int16]) -> None:
    import av

    with av.open(str(path), "w", options={"metadata_header_padding": "0"}) as container:
        stream: Any = container.add_stream("flac", rate=RATE, options={"compression_level": "12"})
        stream.layout, stream.format = "mono", "s16"
        frame = av.AudioFrame.from_ndarray(samples[np.newaxis], format="s16", layout="mono")
        frame.sample_rate, frame.pts, frame.time_base = RATE, 0, Fraction(1, RATE)
        pieces = av.AudioResampler("s16", "mono", RATE, stream.codec_context.frame_size or 4096)
        for piece in (*pieces.resample(frame), *pieces.resample(None), None):
            container.mux(stream.encode(piece))


def main() -> None:
    for name, make in KIT.items():
        path = FOLDER / f"{name}.flac"
        write(path, stored(make()))
        print(f"{path.name}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
