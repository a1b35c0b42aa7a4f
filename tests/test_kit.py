"""The samples that ship with weft are those of scripts/kit.py."""

from __future__ import annotations

import av
import numpy as np
import pytest

from scripts.kit import FOLDER, KIT, RATE, STEP


@pytest.mark.parametrize("name", KIT)
def test_a_shipped_sample_is_what_the_script_makes(name: str) -> None:
    path = FOLDER / f"{name}.flac"
    with av.open(str(path)) as container:
        pieces = [frame.to_ndarray()[0] for frame in container.decode(audio=0)]
        assert container.streams.audio[0].rate == RATE
    made = KIT[name]()
    # Libraries of mathematics differ in the last digits.
    np.testing.assert_allclose(np.concatenate(pieces) / 2**15, made, atol=1.5 * STEP)
    assert np.abs(made[[0, -1]]).max() < STEP, "it begins or ends with a click"
    assert path.stat().st_size < 20_000
