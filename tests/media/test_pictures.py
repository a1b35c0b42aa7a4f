"""Pictures from files: every format, damaged ones, and those that are too large."""

from __future__ import annotations

import os
import random
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from weft.contexts import ContextTable
from weft.errors import Source
from weft.media.pictures import MAX_PIXELS, PictureInfo, load_picture, probe_picture
from weft.media.source import PictureError
from weft.runtime.compiling.stages import Request, analyse
from weft.sources import HIDDEN

Pixels = NDArray[np.uint8]


def noise(width: int, height: int, channels: int = 4) -> Pixels:
    return np.random.default_rng(1).integers(0, 256, (height, width, channels), np.uint8)


def failure(path: Path) -> PictureError:
    with pytest.raises(PictureError) as caught:
        load_picture(path)
    return caught.value


@pytest.mark.parametrize("ending", ["png", "webp"])
def test_lossless_pictures_come_to_the_bit(tmp_path: Path, ending: str) -> None:
    pixels = noise(33, 21)
    pixels[0, 0] = (200, 100, 50, 0)  # colour under full transparency stays
    path = tmp_path / f"p.{ending}"
    Image.fromarray(pixels).save(path, **({"lossless": True, "exact": True} if ending == "webp" else {}))
    loaded = load_picture(path)
    assert loaded.dtype == np.float32
    expected = pixels.astype(np.float32) / np.float32(255)
    expected[..., :3] *= np.maximum(expected[..., 3:], np.float32(HIDDEN))
    assert np.array_equal(loaded, expected)
    assert probe_picture(path) == PictureInfo(33, 21, ending, True)


@pytest.mark.parametrize(("ending", "format_name"), [("jpg", "jpeg"), ("gif", "gif"), ("bmp", "bmp")])
def test_pictures_without_alpha_are_opaque(tmp_path: Path, ending: str, format_name: str) -> None:
    across = np.linspace(0, 255, 64).astype(np.uint8)
    pixels = np.stack(np.broadcast_arrays(across[np.newaxis, :], across[:48, np.newaxis], across[32]), axis=-1)
    path = tmp_path / f"p.{ending}"
    Image.fromarray(pixels).save(path)
    loaded = load_picture(path)
    assert loaded.shape == (48, 64, 4)
    assert (loaded[..., 3] == 1).all()
    assert np.abs(loaded[..., :3] * 255 - pixels).mean() < {"jpg": 3, "gif": 20, "bmp": 0.001}[ending]
    assert probe_picture(path) == PictureInfo(64, 48, format_name)


def test_of_a_moving_gif_the_first_picture_counts(tmp_path: Path) -> None:
    frames = [Image.new("RGB", (8, 6), colour) for colour in ("red", "lime", "blue")]
    frames[0].save(tmp_path / "p.gif", save_all=True, append_images=frames[1:])
    assert (load_picture(tmp_path / "p.gif") == (1, 0, 0, 1)).all()


def test_gray_palette_and_wide_pictures_keep_their_values(tmp_path: Path) -> None:
    gray = noise(9, 7, 1)[..., 0]
    Image.fromarray(gray).save(tmp_path / "gray.png")
    wide = np.array([[0, 257, 32896, 65535]], np.uint16)
    Image.fromarray(wide).save(tmp_path / "wide.png")
    palette = Image.new("P", (2, 1))
    palette.putpalette([255, 0, 0, 0, 0, 255])
    palette.putdata([0, 1])
    palette.save(tmp_path / "palette.png", transparency=1)
    assert np.array_equal(load_picture(tmp_path / "gray.png")[..., 2], gray.astype(np.float32) / np.float32(255))
    assert np.allclose(load_picture(tmp_path / "wide.png")[0, :, 0], wide[0] / 65535)
    assert load_picture(tmp_path / "palette.png").tolist() == [[[1, 0, 0, 1], [0, 0, HIDDEN, 0]]]


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("ending", ["jpg", "png", "webp"])
def test_a_picture_is_turned_as_its_camera_was_held(tmp_path: Path, ending: str, orientation: int) -> None:
    # Upright: red is above green, and at their left is blue.
    upright = np.zeros((48, 32, 3), np.uint8)
    upright[:24, :, 0] = 255
    upright[24:, :, 1] = 255
    upright[:, :8] = (0, 0, 255)
    # What the sensor stored, by the meaning of the tag: where its row 0 and its column 0 lie in the upright picture.
    stored = {
        1: upright,
        2: upright[:, ::-1],
        3: upright[::-1, ::-1],
        4: upright[::-1],
        5: upright.transpose(1, 0, 2),
        6: upright[:, ::-1].transpose(1, 0, 2),
        7: upright[::-1, ::-1].transpose(1, 0, 2),
        8: upright[::-1].transpose(1, 0, 2),
    }[orientation]
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = tmp_path / f"p.{ending}"
    Image.fromarray(np.ascontiguousarray(stored)).save(path, exif=exif)
    loaded = load_picture(path)
    assert loaded.shape == (48, 32, 4)
    assert np.abs(loaded[..., :3] * 255 - upright).mean() < 10
    probed = probe_picture(path)
    assert (probed.width, probed.height) == (32, 48)


def test_damaged_exif_does_not_keep_a_picture_from_being_shown(tmp_path: Path) -> None:
    path = tmp_path / "p.jpg"
    Image.new("RGB", (8, 8)).save(path, exif=b"Exif\0\0MM\0*\0\0\xff\xff\x01\x12")
    assert load_picture(path).shape == (8, 8, 4)


def test_a_phones_double_picture_is_a_jpg(tmp_path: Path) -> None:
    path = tmp_path / "p.jpg"
    Image.new("RGB", (8, 4), "red").save(path, "MPO", save_all=True, append_images=[Image.new("RGB", (8, 4))])
    assert probe_picture(path) == PictureInfo(8, 4, "jpeg")
    assert load_picture(path).shape == (4, 8, 4)


def test_a_probe_needs_no_more_than_the_header(tmp_path: Path) -> None:
    for ending, enough in (("png", 60), ("jpg", 700), ("gif", 800), ("bmp", 60)):
        path = tmp_path / f"p.{ending}"
        Image.fromarray(noise(300, 200, 3)).save(path)
        path.write_bytes(path.read_bytes()[:enough])
        probed = probe_picture(path)
        assert (probed.width, probed.height) == (300, 200)
        assert "incomplete" in failure(path).reason


def test_a_probe_imports_no_numpy(tmp_path: Path) -> None:
    path = tmp_path / "p.png"
    Image.new("RGB", (3, 2)).save(path)
    program = (
        "import sys; from pathlib import Path; from weft.media.pictures import probe_picture;"
        "print(probe_picture(Path(sys.argv[1])).width, 'numpy' in sys.modules)"
    )
    ended = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["3", "False"]


def png_header(width: int, height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


@pytest.mark.parametrize(("width", "height"), [(8193, 8192), (30_000, 30_000), (2_000_000_000, 1)])
def test_a_picture_that_is_too_large_is_refused_by_its_header(tmp_path: Path, width: int, height: int) -> None:
    path = tmp_path / "p.png"
    path.write_bytes(png_header(width, height))
    for read in (probe_picture, load_picture):
        with pytest.raises(PictureError, match="pixels") as caught:
            read(path)
        assert f"{MAX_PIXELS:,}" in (caught.value.hint or "")
    path.write_bytes(png_header(8192, 8192))
    assert probe_picture(path).width == 8192


def test_what_cannot_be_read_has_a_reason_and_a_hint(tmp_path: Path) -> None:
    assert failure(tmp_path / "none.png").reason == "there is no such file"
    assert failure(tmp_path / "nul\0.png").reason == "there is no such file"
    assert failure(tmp_path).reason == "it is a folder"
    pipe = tmp_path / "pipe.png"
    os.mkfifo(pipe)
    assert failure(pipe).reason == "it is not a file with contents"
    text = tmp_path / "text.png"
    text.write_text("no picture")
    assert failure(text).hint == "weft reads png, jpg, gif, webp and bmp"
    empty = tmp_path / "empty.png"
    empty.touch()
    assert "not a picture" in failure(empty).reason
    other = tmp_path / "p.tiff"
    Image.new("RGB", (2, 2)).save(other)
    assert "not a picture" in failure(other).reason


@pytest.mark.parametrize("ending", ["png", "jpg", "gif", "webp", "bmp"])
def test_damage_of_any_kind_gives_a_picture_or_a_reason(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"p.{ending}"
    Image.fromarray(noise(24, 16, 3)).save(path)
    whole = path.read_bytes()
    dice = random.Random(4)
    pieces = [whole[:length] for length in range(0, len(whole), max(1, len(whole) // 40))]
    for _ in range(120):
        spoilt = bytearray(whole)
        for _ in range(dice.randint(1, 6)):
            spoilt[dice.randrange(min(len(whole), dice.choice([40, 10_000])))] = dice.randrange(256)
        pieces.append(bytes(spoilt))
    refused = 0
    for piece in pieces:
        path.write_bytes(piece)
        for read in (probe_picture, load_picture):
            try:
                read(path)
            except PictureError:
                refused += 1
    assert refused >= 20


def test_what_nobody_has_looked_at_has_some_size_and_is_known_by_its_file() -> None:
    text = 'load("a.png")::i<r, g, b>\nload("b.mp4")::f<r, g, b, l, r2>\ndisplay(i@width, f@seconds, i@r)\naudio(f@l)'
    found = analyse(Request(Source("patch.weft", text), ContextTable()))
    assert found.media == ("a.png", "b.mp4")
