"""The words of the library that remember are the same in machine code, and on the vector and the reference machine."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.series import assert_same, kernel_of, played
from weft.backends.native.executor import NativeExecutor
from weft.backends.vector.machine import VectorExecutor
from weft.backends.vm import ReferenceExecutor
from weft.codegen.native.target import TIERS

PATCHES = {
    "voices": """
        a = pluck(441, fract(me@time * 300) < 0.5, 0.3, 0.4)
        b = fm(100, 1, 2, 0.8)
        c = supersaw(300, 0.3)
        audio(a, b, c)
    """,
    "filters": """
        x = saw_tone(300)
        a = ladder(x, 3000, 1.1)
        b = svf(x, 900, 3)@notch
        c = low_shelf(high_shelf(peak_eq(x, 900, 2, 9), 3000, 6), 400, -6)
        audio(a, b, c)
    """,
    "delays": """
        x = square_tone(300) + tri_tone(77)
        a = phaser(x, 9, 1, 0.5)
        b = flanger(x, 9, 0.001, 0.5)
        c = comb(allpass1(x, 900), 0.002, 0.8, 0.3)
        audio(a, b, c)
    """,
    "loudness": """
        x = 3 * pulse_tone(300, 0.2)
        a = compressor(x, -20, 4, 0.001, 0.002)
        b = limiter(x, -6, 0.001)
        c = noise_gate(x, 6, 0.001, 0.001)
        audio(a, b, c)
    """,
    "dirt": """
        a = overdrive(sine_tone(300), 5)
        b = wavefold(sine_tone(300), 5)
        audio(a, b)
    """,
    "rooms": """
        hall(sine_tone(300), 0, 0.5, 0.5)::around<l, r>
        width(around, 2)::wide<l, r>
        audio(wide@l, wide@r)
    """,
}


@pytest.mark.long
@pytest.mark.parametrize("patch", PATCHES.values(), ids=PATCHES)
def test_all_machines_agree(patch: str) -> None:
    made = kernel_of(f"#use std.synth\n#use std.effects\n{patch}")
    sizes = (100, 1, 300)
    expected = played(ReferenceExecutor(), made, sizes)
    assert (np.abs(expected[0]).max(axis=1) > 0.1).all()
    assert_same(played(VectorExecutor(), made, sizes), expected)
    executor = NativeExecutor()
    for tier in TIERS:
        assert_same(played(executor, made, sizes, codes={False: executor.translate(made, False, tier)}), expected)
