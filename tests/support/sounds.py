"""Files of sounds for tests, and what a sound is between its samples."""

from __future__ import annotations

import wave
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from numpy.typing import NDArray

Samples = NDArray[np.floating[Any]]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of its own, for this process and those that it starts."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "weft" / "sounds"


def write_wav(path: Path, samples: Samples, rate: int = 48_000) -> NDArray[np.float32]:
    """Writes samples [count] or [count, channels] with 16 bits; gives what is stored."""
    stored = np.round(np.atleast_2d(samples.T).T * 32767).astype("<i2")
    with wave.open(str(path), "wb") as file:
        file.setnchannels(stored.shape[1])
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(stored.tobytes())
    return stored.astype(np.float32) / 32768


def write_coded(path: Path, samples: Samples, rate: int, codec: str, layout: str = "stereo") -> None:
    """Writes samples [count, channels] by an encoder of PyAV."""
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream(codec, rate=rate)
        stream.layout = layout
        planes = samples.astype(np.float32).reshape(1, -1)
        frame = av.AudioFrame.from_ndarray(planes, format="flt", layout=layout)
        frame.sample_rate, frame.pts, frame.time_base = rate, 0, Fraction(1, rate)
        suits = av.AudioResampler(stream.format.name, layout, rate, stream.codec_context.frame_size or None)
        for made in (*suits.resample(frame), *suits.resample(None), None):
            container.mux(stream.encode(made))


def between(samples: Samples, places: Samples) -> NDArray[np.float64]:
    """Samples at places between them, by the cubic of Catmull and Rom in the form of its matrix; 0 outside."""
    known = np.concatenate([np.zeros(4), samples, np.zeros(4)])
    number = np.clip(np.floor(places), -3, len(samples) + 1).astype(int)
    way = np.clip(places - number, 0, 1)
    four = np.stack([known[number + step + 4] for step in (-1, 0, 1, 2)])
    matrix = np.array([[0, 2, 0, 0], [-1, 0, 1, 0], [2, -5, 4, -1], [-1, 3, -3, 1]]) / 2
    powers = np.stack([way**n for n in range(4)])
    found: NDArray[np.float64] = np.einsum("n...,nk,k...->...", powers, matrix, four)
    return found
