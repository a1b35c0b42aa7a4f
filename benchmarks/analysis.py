"""What an analysis costs, and how well it agrees with scipy and librosa: python -m benchmarks.analysis [FILE.wav …]

The sounds are synthetic ones, and those of the files, such as `weft render` writes. scipy, librosa and soundfile are no
dependencies: what is missing is left out.
"""

from __future__ import annotations

import argparse
import importlib
import time
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.media.analysis import ANALYSES, NEVER, Analyser, Rows, Samples, Spectrum
from weft.names import hop_length

RATE = 48000
HOP = hop_length(RATE)
HOP_SECONDS = HOP / RATE
WINDOW = 4 * HOP


def library(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ImportError:
        print(f"{name} is not installed: what it would be compared with is left out")
        return None


def synthetic() -> Iterator[tuple[str, Samples]]:
    time_ = np.arange(10 * RATE) / RATE
    noise = np.random.default_rng(1)
    scale = 220 * 2 ** (np.array([0, 2, 3, 5, 7, 8, 10, 12])[(time_ * 2).astype(int) % 8] / 12)
    phase = np.cumsum(scale) / RATE
    melody = sum(np.sin(2 * np.pi * n * phase) / n for n in range(1, 6)) * 0.4 * np.exp(-((time_ * 2) % 1) * 3)
    yield "melody", np.asarray(melody, np.float32)
    beat = time_ * 128 / 60
    kick = np.sin(2 * np.pi * (50 * (time_ % (60 / 128)) + 4 * (1 - np.exp(-30 * (time_ % (60 / 128))))))
    hats = noise.standard_normal(len(time_)) * 0.2 * np.exp(-((beat + 0.5) % 1) * 12)
    yield "drums at 128", (kick * np.exp(-(beat % 1) * 5) * 0.8 + hats).astype(np.float32)
    yield "noise", (noise.standard_normal(len(time_)) * 0.1).astype(np.float32)


def recorded(paths: list[str]) -> Iterator[tuple[str, Samples]]:
    soundfile = library("soundfile") if paths else None
    for path in paths if soundfile else ():
        samples, rate = soundfile.read(path, dtype="float32", always_2d=True)  # type: ignore[union-attr]
        if rate == RATE:
            yield path.rsplit("/", 1)[-1], samples.mean(axis=1)
        else:
            print(f"{path} is left out: its rate is not {RATE}")


def rows_of(name: str, samples: Samples) -> Rows:
    return ANALYSES[name](RATE).feed(samples)


def begins(rows: Rows) -> NDArray[Any]:
    ages = rows[:, 1]
    found = np.flatnonzero(np.diff(ages, prepend=NEVER) < 0)
    return (found + 1) * HOP_SECONDS - ages[found]


def matched(ours: NDArray[Any], theirs: NDArray[Any], tolerance: float = 0.05) -> float:
    """The F-measure of two lists of times: 1 where each one has its partner."""
    if not len(ours) or not len(theirs):
        return float(len(ours) == len(theirs))
    distance = np.abs(ours[:, None] - theirs)
    recall = np.mean(distance.min(axis=0) <= tolerance)
    precision = np.mean(distance.min(axis=1) <= tolerance)
    return float(2 * recall * precision / max(recall + precision, 1e-9))


def against_scipy(signal: Any, samples: Samples) -> Iterator[tuple[str, str]]:
    padded = np.concatenate((np.zeros(WINDOW - HOP), samples))
    hann = signal.get_window("hann", WINDOW)
    ours = rows_of("rms", samples)[:, 0]
    theirs = np.sqrt(np.maximum(signal.fftconvolve(padded**2, hann[::-1] / hann.sum(), "valid"), 0))[::HOP][: len(ours)]
    yield "rms", f"differs by {np.abs(ours[: len(theirs)] - theirs).max():.1e} at most"
    _, _, power = signal.spectrogram(padded, RATE, hann, WINDOW, WINDOW - HOP, detrend=False, scaling="spectrum",
                                     mode="psd")  # fmt: skip
    spectrum = Spectrum(RATE, 16)
    levels = spectrum.feed(samples)
    differences = []
    for number, (start, end) in list(enumerate(spectrum.edges))[10:]:
        bins = np.arange(len(power)) * RATE / WINDOW
        # A Hann window spreads a sine over 1.5 bins; 0 dB is a mean square of ½.
        level = 10 * np.log10(np.maximum(power[(bins >= start) & (bins < end)].sum(axis=0) / 1.5 * 2, 1e-9))
        found = np.clip(1 + level / 60, 0, 1)
        rising = levels[1:, number] > levels[:-1, number]
        differences.append(np.abs(found[1 : len(levels)] - levels[1:, number])[rising])
    off = 60 * np.concatenate(differences)
    yield "fft", f"rising bands above 1 kHz differ by {np.median(off):.2f} dB (median)" if len(off) else "silent"


def against_librosa(librosa: Any, samples: Samples) -> Iterator[tuple[str, str]]:
    theirs = librosa.onset.onset_detect(y=samples, sr=RATE, hop_length=HOP, units="time")
    ours = begins(rows_of("onset", samples))
    yield "onset", f"{len(ours)} here, {len(theirs)} there, F-measure {matched(ours, theirs):.2f} within 50 ms"
    rows = rows_of("pitch", samples)
    theirs = librosa.yin(samples, fmin=50, fmax=2000, sr=RATE, frame_length=WINDOW, hop_length=HOP, center=False)
    # Row n ends with hop n; their frame n begins there.
    ours = rows[3:, 0][: len(theirs)]
    sure = (rows[3:, 1][: len(theirs)] > 0.9) & (ours > 0)
    cents = 1200 * np.log2(ours[sure] / theirs[: len(ours)][sure])
    same = np.mean(np.abs(cents) < 20) if len(cents) else 0
    yield "pitch", f"{sure.mean():.0%} of rows sure, {same:.0%} of them within 20 cents"
    bpm = float(np.atleast_1d(librosa.feature.tempo(y=samples, sr=RATE, hop_length=HOP))[0])
    found = rows_of("tempo", samples)[-1]
    yield "tempo", f"{found[0]:.1f} (confidence {found[2]:.2f}) here, {bpm:.1f} there"


def microseconds(analyser: Analyser, samples: Samples) -> float:
    """For a hop, fed block by block as in a performance."""
    blocks = np.split(samples[: len(samples) // HOP * HOP], len(samples) // HOP)
    analyser.feed(blocks[0])
    started = time.perf_counter()
    for block in blocks:
        analyser.feed(block)
    return (time.perf_counter() - started) / len(blocks) * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*")
    files = parser.parse_args().files
    sounds = [*synthetic(), *recorded(files)]
    print(f"microseconds for a hop, of the {HOP_SECONDS * 1e6:.0f} that it lasts, and the delay in ms:")
    for name, make in ANALYSES.items():
        print(f"  {name:8}{microseconds(make(RATE), sounds[1][1]):7.0f}{make(RATE).delay * 1e3:7.1f}")
    signal, librosa = library("scipy.signal"), library("librosa")
    for title, samples in sounds:
        print(f"{title}:")
        found = (*(against_scipy(signal, samples) if signal else ()),
                 *(against_librosa(librosa, samples) if librosa else ()))  # fmt: skip
        for name, line in found:
            print(f"  {name:8}{line}")


if __name__ == "__main__":
    main()
