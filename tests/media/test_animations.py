"""Pictures that move, by their own times: compared frame by frame with what Pillow reads. And sequences of files."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from tests.support.forks import ran
from tests.test_permissions import told
from weft.media.animations import animation_header, files_of
from weft.media.films import Films
from weft.media.source import PictureError
from weft.web.embedded import is_page_film

SIZE = 32, 24
LASTS = (40, 100, 250, 70, 20, 500)


def drawn(number: int) -> NDArray[np.uint8]:
    """A frame that moves, with a hole in it."""
    found = np.zeros((SIZE[1], SIZE[0], 4), np.uint8)
    found[..., 3] = 255
    found[2 + number : 8 + number, 3 * number : 3 * number + 8, :3] = 40 * number, 255 - 30 * number, 90
    found[12:16, 5 * number : 5 * number + 4, 3] = 0
    return found


def animation(path: Path) -> Path:
    first, *others = [Image.fromarray(drawn(number)) for number in range(len(LASTS))]
    options = {"lossless": True} if path.suffix == ".webp" else {"disposal": 2} if path.suffix == ".gif" else {}
    first.save(path, save_all=True, append_images=others, duration=LASTS, loop=0, **options)
    return path


def read_by_pillow(path: Path) -> list[tuple[float, NDArray[np.uint8]]]:
    """The frames with their durations in seconds."""
    found = []
    with Image.open(path) as image:
        for number in range(image.n_frames):
            image.seek(number)
            image.load()
            found.append((image.info["duration"] / 1000, np.asarray(image.convert("RGBA"))))
    return found


def shown(path: Path, times: list[float]) -> list[NDArray[np.uint8]]:
    """What a film shows at these times, in a render."""
    film = Films().open((str(path), 1.0, "time"), offline=True)
    try:
        return [np.asarray(film.exactly(each)).copy() for each in times]
    finally:
        film.close()


def same(first: NDArray[np.uint8], second: NDArray[np.uint8]) -> bool:
    """Whether two pictures are the same to the bit, where they are seen."""
    seen = second[..., 3:] > 0
    return bool((first[..., 3] == second[..., 3]).all() and (first * seen == second * seen).all())


@pytest.mark.parametrize("ending", ["gif", "png", "webp"])
def test_each_frame_is_shown_for_as_long_as_it_says(tmp_path: Path, ending: str) -> None:
    path = animation(tmp_path / f"moving.{ending}")
    frames = read_by_pillow(path)
    assert len(frames) == len(LASTS)
    begins = np.cumsum([0, *(lasts for lasts, _ in frames)])
    times, expected = [], []
    # Forwards, backwards, in the second round, and at both ends of each frame.
    for number in [*range(len(frames)), 4, 2, 5, 0]:
        for at in (begins[number], begins[number + 1] - 0.001, begins[number] + begins[-1]):
            times.append(float(at))
            expected.append(frames[number][1])
    found = shown(path, times)
    wrong = [at for at, one, other in zip(times, found, expected, strict=True) if not same(one, other)]
    assert wrong == []


def test_a_sequence_is_shown_in_the_order_of_its_numbers(tmp_path: Path) -> None:
    for number in (3, 4, 8, 9, 10, 100):
        Image.new("RGB", (8, 6), (number, 0, 0)).save(tmp_path / f"shot{number:02}.png")
    (tmp_path / "shot5.png").write_text("has too few digits")
    (tmp_path / "shot1000.txt").write_text("is no picture")
    path = tmp_path / "shot%02d.png"
    assert [each.name[4:-4] for each in files_of(path)] == ["03", "04", "08", "09", "10", "100"]
    found = shown(path, [number / 25 for number in (0, 1, 2, 3, 4, 5, 6, 11, 2, 0)] + [0.039, 0.2399])
    assert [int(each[0, 0, 0]) for each in found] == [3, 4, 8, 9, 10, 100, 3, 100, 8, 3, 3, 100]


def test_pictures_of_other_sizes_are_made_to_fit(tmp_path: Path) -> None:
    Image.new("RGB", (8, 6), (10, 20, 30)).save(tmp_path / "1.png")
    Image.new("L", (20, 20), 200).save(tmp_path / "2.png")
    found = shown(tmp_path / "%d.png", [0.0, 0.05])
    assert [each.shape for each in found] == [(6, 8, 4), (6, 8, 4)]
    assert found[1][3, 4].tolist() == [200, 200, 200, 255]


def test_a_patch_shows_a_sequence(tmp_path: Path) -> None:
    (tmp_path / "shots").mkdir()
    for number in range(10):
        Image.new("RGB", (8, 6), (25 * number, 0, 255)).save(tmp_path / "shots" / f"{number:04}.png")
    (tmp_path / "patch.weft").write_text('load("shots/%04d.png")::f<r, g, b>\ndisplay(f@rgb)\n')
    out = str(tmp_path / "out.png")
    done = ran(["render", "patch.weft", "-o", out, "--time", "0.125", "--size", "8x6"], tmp_path, os.environ)
    assert done.returncode == 0, done.stderr
    assert np.asarray(Image.open(tmp_path / "out.png"))[2, 2].tolist() == [75, 0, 255, 255]


def test_a_sequence_is_as_fast_as_its_text_says(tmp_path: Path) -> None:
    for number in range(10):
        Image.new("RGB", (8, 6), (25 * number, 0, 255)).save(tmp_path / f"{number}.png")
    text = 'load("%d.png", fps: 2)::f<r, g, b>\nload("%d.png", fps: 50)::g<r, g, b>\n'
    (tmp_path / "patch.weft").write_text(f"{text}display(f@r, g@r, f@b, 1)\n")
    done = ran(["render", "patch.weft", "-o", "out.png", "--time", "1.6", "--size", "8x6"], tmp_path, os.environ)
    assert done.returncode == 0, done.stderr
    # Pictures 3 and, in the eighth round, 0.
    assert np.asarray(Image.open(tmp_path / "out.png"))[2, 2].tolist() == [75, 0, 255, 255]


@pytest.mark.parametrize(
    ("call", "code", "words"),
    [
        ('load("%d.png", fps: 0)', "argument-out-of-range", "from 0.01 to 1000"),
        ('load("%d.png", fps: me@x)', "needs-a-number", "is a plain number"),
        ('load("0.png", fps: 24)', "argument-out-of-range", "times of its own"),
    ],
)
def test_a_rate_that_cannot_be_is_told(tmp_path: Path, call: str, code: str, words: str) -> None:
    Image.new("RGB", (8, 6)).save(tmp_path / "0.png")
    (found,) = told(tmp_path / "patch.weft", f"{call}::f<r, g, b>\ndisplay(f@rgb)\n")
    assert found.code == code
    assert words in found.message


def test_what_is_no_sequence_is_told(tmp_path: Path) -> None:
    with pytest.raises(PictureError, match="there are no such files"):
        animation_header(tmp_path / "%04d.png")
    Image.new("RGB", (8, 6)).save(tmp_path / "secret.png")
    (tmp_path / "1.png").symlink_to(tmp_path / "secret.png")
    with pytest.raises(PictureError, match=r"1\.png is a link"):
        animation_header(tmp_path / "%d.png")


def test_a_broken_picture_in_a_row_is_told(tmp_path: Path) -> None:
    Image.new("RGB", (8, 6)).save(tmp_path / "1.png")
    (tmp_path / "2.png").write_bytes(b"nothing of the kind")
    film = Films().open((str(tmp_path / "%d.png"), 1.0, "time"), offline=True)
    try:
        with pytest.raises(PictureError, match="not a picture"):
            film.exactly(0.05)
    finally:
        film.close()


def test_a_page_leaves_them_out() -> None:
    assert [is_page_film(path) for path in ("a.mp4", "a.WEBP", "shots/%04d.png")] == [True, False, False]
