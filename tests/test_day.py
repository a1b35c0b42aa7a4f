"""The film that ships with weft is that of scripts/day.py."""

from __future__ import annotations

import av
import numpy as np
import pytest

from scripts.day import FPS, FRAMES, HEIGHT, PATH, WIDTH, frame


@pytest.mark.long
def test_the_shipped_film_is_what_the_script_makes() -> None:
    with av.open(str(PATH)) as container:
        stream = container.streams.video[0]
        assert stream.average_rate == FPS
        pictures = [found.to_ndarray(format="rgb24") for found in container.decode(stream)]
    assert len(pictures) == FRAMES
    assert pictures[0].shape == (HEIGHT, WIDTH, 3)
    for number in (0, 50, 100):
        error = np.abs(pictures[number].astype(float) - frame(number)).mean()
        others = np.abs(pictures[number].astype(float) - pictures[number + 6]).mean()
        assert error < min(4.0, others), "what compression leaves of a frame is nearer to it than another frame"
    assert PATH.stat().st_size < 100_000
