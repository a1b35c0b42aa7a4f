"""`weft/web/analyses.js`: what a page hears in a sound is what `weft.media.analysis` hears."""

import json

import numpy as np
import pytest

from tests.cli.conftest import weft_in
from weft.media.analysis import ANALYSES, analyser
from weft.names import HeardName, hop_length
from weft.sources import SOURCES

RATES = (48000, 44100)

# Each row that a page makes of samples, one after another.
HEAR = """\
(async () => {
    const { Analyser } = await import(window.weft.address("analyses.js"));
    const analyser = new Analyser(%s, %d), rows = [];
    for (const sample of new Float32Array(%s)) {
        const row = analyser.take(sample);
        if (row !== null) rows.push(row);
    }
    return rows;
})()
"""


def sound(rate, silence):
    """Two seconds and a half of hits twice a second, over a tone that rises, with silence before and noise after."""
    times = np.arange(int(2.5 * rate)) / rate
    hit = np.exp(-(times % 0.5) * 20) * np.sin(2 * np.pi * 60 * (times % 0.5))
    tone = 0.2 * np.sin(2 * np.pi * (220 * times + 60 * times**2))
    noise = 0.3 * np.random.default_rng(1).uniform(-1, 1, len(times)) * (times > 2)
    return ((0.5 * hit + tone + noise) * (times >= silence)).astype(np.float32)


@pytest.fixture(scope="module")
def page(browser, tmp_path_factory):
    """A page with sound, in which modules can be called."""
    weft = weft_in(tmp_path_factory.mktemp("page"))
    weft.file("patch.weft", "audio(phasor(100) * 0.1)")
    weft("export", "patch.weft", "-o", "page.html", "--no-check")
    browser.open((weft.folder / "page.html").as_uri() + "?embed")
    return browser


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("name", ANALYSES)
def test_a_page_hears_the_same(page, name, rate):
    samples = sound(rate, silence=0 if name == "pitch" else 0.1)[: 2**16 if name == "pitch" else None]
    args = (24.0,) if name == "fft" else ()
    wanted = analyser(HeardName(name, args, "s"), rate).feed(samples)
    record = {"analysis": name, "bands": 24, "hop": hop_length(rate), "hops": SOURCES[name].hops}
    # A list of numbers, each as exact as it is.
    found = np.array(page.value(HEAR % (json.dumps(record), rate, json.dumps([*map(float, samples)]))))
    assert found.shape == wanted.shape
    # At the edge of silence, a pitch is that of rounding errors.
    first = SOURCES[name].hops if name == "pitch" else 0
    np.testing.assert_allclose(found[first:], wanted[first:], rtol=1e-4, atol=1e-5)
