"""How well sounds from files are played: what resampling leaves of a tone and adds to it, and what the cubic between
samples adds.

    python -m benchmarks.sounds
"""

from __future__ import annotations

import os
import tempfile
import time
import wave
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from weft.backends.base import Env
from weft.backends.launch import Launch, StateMemory
from weft.backends.vector.machine import VectorExecutor
from weft.contexts import ContextTable
from weft.errors import Source
from weft.media.sampled import header_of, read
from weft.media.sounds import load_sound
from weft.runtime.compiling.stages import Request, build

RATE = 48_000
PAIRS = ((44_100, 48_000), (48_000, 44_100), (96_000, 48_000), (22_050, 48_000))
FREQUENCIES = (1000, 5000, 10_000, 16_000, 20_000, 21_000)
RATIO = 1.5

Tone = NDArray[np.float64]


def tone(frequency: float, rate: int, seconds: float) -> Tone:
    """A sine at nine tenths of full scale."""
    return np.asarray(0.9 * np.sin(2 * np.pi * frequency * np.arange(round(seconds * rate)) / rate))


def write(path: Path, samples: Tone, rate: int) -> None:
    """Writes a sound of one channel in 32 bits."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(4)
        file.setframerate(rate)
        file.writeframes(np.round(samples * (2**31 - 1)).astype("<i4").tobytes())


def fitted(samples: Tone, frequency: float, rate: int) -> tuple[float, float]:
    """The level of a tone in samples, relative to what was written, and of all the rest relative to the tone, in dB."""
    angle = 2 * np.pi * frequency * np.arange(len(samples)) / rate
    basis = np.stack([np.sin(angle), np.cos(angle)], axis=1)
    sides = np.linalg.lstsq(basis, samples, rcond=None)[0]
    level = np.hypot(*sides)
    rest = np.sqrt(2 * np.mean((samples - basis @ sides) ** 2))
    return float(20 * np.log10(level / 0.9)), float(20 * np.log10(rest / level))


def played(path: Path, seconds: float) -> Tone:
    """A sound, played at `RATIO` times its speed."""
    text = f'load("{path}")::k<l, r>\naudio(k@l(me@time ~ me@time * {RATIO}))'
    (unit,) = build(Request(Source(str(path.with_name("patch.weft")), text), ContextTable(), probe=header_of)).units
    pictures = {name: read(name) for name in unit.kernel.pictures}
    env = Env(1, 1, pictures=pictures)
    count = round(seconds * RATE)
    launch = Launch(
        (1, count), {"abstime": np.arange(count) / RATE, "channel": 0.0},
        {name: env.uniform(name) for name in unit.kernel.uniforms}, pictures=pictures,
    )  # fmt: skip
    return np.asarray(VectorExecutor(np.float64).load(unit.kernel).planes(StateMemory(()), launch)[0, 0], np.float64)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        os.environ["XDG_CACHE_HOME"] = name
        path = Path(name) / "tone.wav"
        print("resampled: level of the tone, and what is added to it, in dB")
        for given, wanted in PAIRS:
            shown = []
            for frequency in FREQUENCIES:
                if frequency < 0.49 * min(given, wanted):
                    write(path, tone(frequency, given, 1.0), given)
                    samples = load_sound(path, wanted)[0, 4000:-4000, 0].astype(np.float64)
                    level, rest = fitted(samples, frequency, wanted)
                    shown.append(f"{frequency} Hz {level:+.4f} {rest:.0f}")
            print(f"  {given} → {wanted}: {' · '.join(shown)}")
        print(f"between samples, at {RATIO} times the speed: what is added, in dB")
        for frequency in FREQUENCIES[:-3]:
            write(path, tone(frequency, RATE, 2.0), RATE)
            _, rest = fitted(played(path, 1.2)[2000:], frequency * RATIO, RATE)
            print(f"  {frequency} Hz: {rest:.1f}")
        write(path, np.tile(tone(441, 44_100, 1.0), 60), 44_100)
        began = time.perf_counter()
        load_sound(path, RATE)
        print(f"a minute of 44,100 samples a second is decoded in {time.perf_counter() - began:.2f} s")


if __name__ == "__main__":
    main()
