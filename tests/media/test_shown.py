"""How frames of films are shown: their display matrix, and tones of high dynamic range."""

from __future__ import annotations

from pathlib import Path

import av
import numpy as np
import pytest

from weft.media.films import Films
from weft.media.frames import floats
from weft.media.sampled import header_of
from weft.media.shown import tone_curve

_ONE = 1 << 16


def first_picture(path: Path) -> np.ndarray:
    film = Films().open((str(path), 1.0, ""), offline=True)
    try:
        return np.array(floats(film.exactly(0.0)))
    finally:
        film.close()


# The matrices of the eight ways to lay a picture on the table, and what each makes of an array.
TURNS = {
    "plain": ((1, 0, 0, 1), lambda p: p),
    "mirrored": ((-1, 0, 0, 1), np.fliplr),
    "upside down, mirrored": ((1, 0, 0, -1), np.flipud),
    "half a turn": ((-1, 0, 0, -1), lambda p: np.rot90(p, 2)),
    "clockwise": ((0, 1, -1, 0), lambda p: np.rot90(p, -1)),
    "counter-clockwise": ((0, -1, 1, 0), lambda p: np.rot90(p, 1)),
    "transposed": ((0, 1, 1, 0), lambda p: p.swapaxes(0, 1)),
    "transposed the other way": ((0, -1, -1, 0), lambda p: np.rot90(p.swapaxes(0, 1), 2)),
}


@pytest.mark.parametrize("turn", TURNS)
def test_a_film_lies_as_its_matrix_says(turn: str, tmp_path: Path) -> None:
    (a, b, c, d), made = TURNS[turn]
    stored = np.zeros((32, 64, 3), np.uint8)
    stored[:16, :32] = (220, 30, 30)  # each corner has its own level
    stored[:16, 32:] = (30, 220, 30)
    stored[16:, :32] = (30, 30, 220)
    path = tmp_path / "a.mp4"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=10)
        stream.width, stream.height, stream.pix_fmt = 64, 32, "yuv420p"
        stream.set_display_matrix([a * _ONE, b * _ONE, 0, c * _ONE, d * _ONE, 0, 0, 0, 1 << 30])
        for _ in range(3):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(stored, "rgb24")))
        container.mux(stream.encode(None))
    expected = made(stored)
    header = header_of(str(path))
    assert not isinstance(header, str)
    assert (header.height, header.width) == expected.shape[:2]
    found = first_picture(path)[..., :3] * 255
    rows, columns = expected.shape[0] // 4, expected.shape[1] // 4
    for row in (rows, 3 * rows):
        for column in (columns, 3 * columns):
            np.testing.assert_allclose(found[row, column], expected[row, column], atol=25)


HDR = {"HLG": ("arib-std-b67", 18), "PQ": ("smpte2084", 16)}


def test_tones_are_those_of_the_light() -> None:
    """Codes and their light in nits, from tables of ITU-R BT.2408 and SMPTE ST 2084."""
    for transfer, lights in ((18, {0.38: 26, 0.75: 203}), (16, {0.58: 203, 0.38: 26})):
        curve = tone_curve(transfer) / 255
        for code, nits in lights.items():
            if nits < 0.75 * 203:
                assert curve[round(code * 255)] == pytest.approx((nits / 203) ** (1 / 2.4), abs=0.02)
            else:
                assert 0.9 <= curve[round(code * 255)] <= 1
        assert (np.diff(curve) >= 0).all()
        assert (curve[0], curve[-1]) == (0, 1)
        # It has no bend: where tones begin to be pressed, steps grow no less than a fifth slower.
        steps = np.diff(curve)[20:120]
        assert np.abs(np.diff(steps)).max() < 2.5 / 255


@pytest.mark.parametrize("name", HDR)
def test_a_film_of_high_dynamic_range_is_shown_on_an_ordinary_screen(name: str, tmp_path: Path) -> None:
    transfer, number = HDR[name]
    path = tmp_path / "a.mp4"
    levels = np.linspace(64, 940, 8).astype(np.uint16)  # of 10 bits, in the range of a television
    with av.open(str(path), "w") as container:
        options = {"qp": "0", "x264-params": f"colorprim=bt2020:transfer={transfer}:colormatrix=bt2020nc"}
        stream = container.add_stream("libx264", rate=10, options=options)
        stream.width, stream.height, stream.pix_fmt = 128, 64, "yuv420p10le"
        frame = av.VideoFrame(128, 64, "yuv420p10le")
        frame.planes[0].update(np.tile(np.repeat(levels, 16), (64, 1)).astype("<u2").tobytes())
        for plane in frame.planes[1:]:
            plane.update(np.full((32, 64), 512, "<u2").tobytes())
        frame.color_trc, frame.color_primaries, frame.colorspace = number, 9, 9
        for at in range(2):
            frame.pts = at
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    found = first_picture(path)[32, 8::16, 0]
    codes = np.round((levels - 64) / 876 * 255).astype(int)
    np.testing.assert_allclose(found, tone_curve(number)[codes] / 255, atol=0.03)
