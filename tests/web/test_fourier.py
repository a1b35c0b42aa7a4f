"""`weft/web/fourier.js`: transforms of any length, against numpy's."""

import json

import numpy as np
import pytest

from tests.web.test_playing import HEAD, page  # noqa: F401 -- a fixture

POWERS = """\
(async () => {
    const { Fourier } = await import(window.weft.address("fourier.js"));
    return %s.map((values) => [...new Fourier(values.length).powers(values)]);
})()
"""


@pytest.mark.long
def test_powers_of_any_length_are_those_of_numpy(page, browser):  # noqa: F811
    page(HEAD + "a<v> = 0.1\naudio(a@v)\nfft(a@v)::f<band>\ndisplay(f@band)")
    chosen = np.random.default_rng(5)
    given = [chosen.uniform(-1, 1, length) for length in (1, 2, 3, 4, 5, 8, 10, 37, 64, 90, 100, 1470, 2048)]
    found = browser.value(POWERS % json.dumps([each.tolist() for each in given]))
    for values, here in zip(given, found, strict=True):
        wanted = np.abs(np.fft.rfft(values)) ** 2
        assert here == pytest.approx(wanted, rel=1e-9, abs=1e-9 * wanted.max())
