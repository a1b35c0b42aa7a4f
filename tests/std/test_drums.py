"""std.drums: each drum is heard from its first sample on, at its pitch, as long as it says, and without a click."""

from __future__ import annotations

import numpy as np
import pytest

from weft.backends.registry import load_registry
from weft.backends.select import choose
from weft.errors import Source
from weft.runtime.compiling.stages import Request, build
from weft.runtime.program.program import ProgramLoader
from weft.runtime.sound.mixer import Rendering

RATE = 48_000
STRUCK = 4800
DRUMS = ("kick", "snare", "hat", "clap", "tom")


def played(text: str, seconds: float) -> np.ndarray:
    registry = load_registry()
    compiled = build(Request(Source("test.weft", f"#use std.drums\naudio({text})"), registry.contexts)).compiled
    rendering = Rendering(ProgramLoader(choose(registry, ["audio"], "native")), compiled, {}, 0, clips=False)
    return np.concatenate(list(rendering.until(int(RATE * seconds))))[:, 0].astype(np.float64)


def stroke(call: str, seconds: float = 0.8) -> np.ndarray:
    """A drum from the moment on at which it is struck for the first time."""
    whole = played(call.replace("(", "(me@time >= 0.1, ", 1).replace(", )", ")"), seconds)
    assert not whole[:STRUCK].any()
    return whole[STRUCK:]


def spectrum(sound: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    size = 1 << 18
    power = np.abs(np.fft.rfft(sound * np.hanning(len(sound)), size)) ** 2
    return np.fft.rfftfreq(size, 1 / RATE), power


@pytest.mark.parametrize(("call", "wanted"), [
    ("kick()", 50), ("kick(70)", 70), ("kick(50, 0.5, 0)", 50), ("tom()", 110), ("tom(200)", 200),
    ("snare(200, 0.4, 0)", 200),
])  # fmt: skip
def test_a_drum_has_its_pitch(call: str, wanted: float) -> None:
    """Once it has come down to it."""
    frequencies, power = spectrum(stroke(call)[7200:14_400])
    assert frequencies[np.argmax(power)] == pytest.approx(wanted, rel=0.01)


@pytest.mark.parametrize(("call", "low", "high"), [
    ("hat()", 7000, 24_000), ("hat(9000, 0.3)", 9000, 24_000), ("clap()", 500, 4000), ("clap(2400)", 1200, 8000),
    ("snare(180, 0.3, 1)", 1000, 10_000),
])  # fmt: skip
def test_noise_lies_where_it_says(call: str, low: float, high: float) -> None:
    frequencies, power = spectrum(stroke(call)[:7200])
    inside = power[(frequencies >= low) & (frequencies <= high)].sum() / power.sum()
    assert inside > (0.5 if "snare" in call else 0.75)


@pytest.mark.parametrize("drum", DRUMS)
def test_a_drum_is_loud_at_once_and_fades_as_it_says(drum: str) -> None:
    sound = np.abs(stroke(f"{drum}(seconds: 0.2)"))
    assert 0.4 < sound[:1440].max() <= 1
    assert 0 < sound[9600:].max() < 0.02


@pytest.mark.parametrize("drum", DRUMS)
def test_a_stroke_begins_from_silence_and_does_not_click(drum: str) -> None:
    """A stroke begins with 0, and one that comes while the drum sounds continues from the sample before."""
    once = stroke(f"{drum}()")
    assert once[0] == 0
    tonal = drum in ("kick", "tom")
    if tonal:
        assert np.abs(np.diff(once)).max() < 0.06
    again = played(f"{drum}(fract(me@time * 17) < 0.5)", 1.0)
    assert np.abs(again).max() <= 1.1
    assert np.abs(np.diff(again)).max() <= (0.06 if tonal else 1.15 * np.abs(np.diff(once)).max())
    hits = np.ceil(np.arange(1, 16) * RATE / 17).astype(int)
    assert np.abs(again[hits] - again[hits - 1]).max() < 1e-6


@pytest.mark.parametrize("drum", DRUMS)
def test_a_count_strikes_a_drum(drum: str) -> None:
    assert not played(f'{drum}(osc("/{drum}")@count)', 0.02).any(), "nothing has come"
