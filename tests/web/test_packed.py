"""`weft/web/packed.py` and `packed.js`: what a page holds as bytes is what was put into it."""

import json

import numpy as np
import pytest

from tests.web.test_playing import HEAD, page  # noqa: F401 -- a fixture
from weft.media.sampled import read
from weft.web.embedded import embedded
from weft.web.packed import packed_rows

ROWS = """\
(async () => {
    const { rowsOf } = await import(window.weft.address("packed.js"));
    return Promise.all(%s.map(async ([text, columns, width]) => [...await rowsOf(text, columns, width)]));
})()
"""
SOUNDS = """\
(async () => {
    const { mediaOf } = await import(window.weft.address("media.js"));
    const { sounds } = await mediaOf({ media: %s });
    return [...sounds.values()].map((samples) => [...samples]);
})()
"""


@pytest.mark.long
def test_rows_of_numbers_are_what_they_were(page, browser):  # noqa: F811
    page(HEAD + "display(1)")
    chosen = np.random.default_rng(1)
    rows = [(chosen.integers(-(1 << 8 * width - 1), 1 << 8 * width - 1, (40, columns)), columns, width)
            for width in (2, 3) for columns in (1, 2, 4)]  # fmt: skip
    given = [[packed_rows(each, width), columns, width] for each, columns, width in rows]
    found = browser.value(ROWS % json.dumps(given))
    for (wanted, _, _), here in zip(rows, found, strict=True):
        assert here == wanted.ravel().tolist()


@pytest.mark.parametrize("kind", ["16 bits", "24 bits", "too loud"])
def test_sounds_are_what_they_were(page, browser, weft, kind):  # noqa: F811
    soundfile = pytest.importorskip("soundfile")
    page(HEAD + "display(1)")
    chosen = np.random.default_rng(2)
    samples = np.round(chosen.uniform(-0.9, 0.9, (500, 2)) * 2**15) / 2**15
    if kind != "16 bits":
        samples += 1e-6
    if kind == "too loud":
        samples *= 3
    paths = []
    for name, sides in (("one", samples[:, 0]), ("two", samples)):
        paths.append(str(weft.folder / f"{name}.wav"))
        soundfile.write(paths[-1], sides, 48000, "FLOAT")
    names = [f"sound:48000:{path}" for path in paths]
    records = embedded(names).records
    assert [each["sides"] for each in records.values()] == [1, 2]
    assert {each["width"] for each in records.values()} == {{"16 bits": 2, "24 bits": 3, "too loud": 4}[kind]}
    found = browser.value(SOUNDS % json.dumps(records))
    for name, here in zip(names, found, strict=True):
        np.testing.assert_allclose(np.reshape(here, (-1, 2)), read(name)[0], rtol=0, atol=2**-24 + 1e-12)
