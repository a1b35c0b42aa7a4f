"""Letters as distances to their outlines."""

from __future__ import annotations

from contextlib import suppress
from importlib.resources import files
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from tests.support.choices import ANYWHERE
from tests.support.fonts import coloured_font
from weft.backends.launch import Floats, Launch, StateMemory, picture_coords
from weft.backends.native.executor import NativeExecutor
from weft.backends.vector.machine import VectorExecutor
from weft.backends.vm import ReferenceExecutor
from weft.contexts import ContextTable
from weft.errors import Source, WeftError
from weft.media.letters import MAX_LETTERS, MAX_LINES
from weft.media.sampled import header_of, read
from weft.media.source import PictureError
from weft.names import LETTERS_EM, LETTERS_REACH, Letters, file_of, letters_of
from weft.runtime.compiling.stages import Request, build

FONT = files("weft.media").joinpath("fonts", "DejaVuSansMono.ttf")


def font(size: int = LETTERS_EM) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(BytesIO(FONT.read_bytes()), size)


def shown(text: str, width: int, height: int, machine: type = ReferenceExecutor) -> Floats:
    """What a patch displays in a picture of this size: [outputs, height, width]."""
    settings = {"width": float(width), "height": float(height)}
    source = Source("patch.weft", text)
    (unit,) = build(Request(source, ContextTable(), settings, header_of, ANYWHERE)).units
    launch = Launch(
        (height, width), {**picture_coords(width, height)}, {"width": width, "height": height},
        pictures={name: read(name) for name in unit.kernel.pictures},
    )  # fmt: skip
    found: Floats = machine().load(unit.kernel).planes(StateMemory(unit.kernel.slots, (height, width)), launch)
    return found


def own_size(text: str) -> tuple[int, int]:
    """The size of a picture in which a pixel of the letters' own picture is a pixel."""
    found = header_of(Letters(text, None, "center").name)
    assert not isinstance(found, str)
    return found.width, found.height


def by_pillow(text: str, scale: int, width: int, height: int) -> NDArray[np.float32]:
    """The coverage of one line of text, `scale` times as large, as Pillow draws it into such a picture."""
    image = Image.new("L", (width * scale, height * scale))
    ImageDraw.Draw(image).text((LETTERS_REACH * scale,) * 2, text, fill=255, font=font(LETTERS_EM * scale))
    return np.asarray(image) / np.float32(255)


def test_in_their_own_size_letters_are_as_pillow_draws_them() -> None:
    width, height = own_size("Weft &g")
    (found,) = shown(f'display(text("Weft &g", size: {LETTERS_EM / height!r})@v)', width, height)
    error = np.abs(found - by_pillow("Weft &g", 1, width, height))
    assert error.mean() < 0.003
    assert error.max() < 0.35


def test_edges_stay_sharp_where_letters_grow() -> None:
    width, height = own_size("Rg")
    (found,) = shown(f'display(text("Rg", size: {LETTERS_EM / height!r})@v)', 4 * width, 4 * height, NativeExecutor)
    large = by_pillow("Rg", 4, width, height)
    assert ((found > 0.5) != (large > 0.5)).mean() < 0.005
    assert ((found > 0.05) & (found < 0.95)).sum() < 1.5 * ((large > 0.05) & (large < 0.95)).sum()


def test_the_distance_is_that_to_the_outline() -> None:
    width, height = own_size("\u2588")
    text = f'display(text("\u2588", size: {LETTERS_EM / height!r})@distance)'
    (found,) = shown(text, width, height)
    block = by_pillow("\u2588", 1, width, height)
    left, right = ends(block[height // 2])
    top, bottom = ends(block[:, width // 2])
    x, y = np.arange(width) + 0.5, (np.arange(height) + 0.5)[:, np.newaxis]
    across, down = np.maximum(left - x, x - right), np.maximum(top - y, y - bottom)
    outside = np.hypot(np.maximum(across, 0), np.maximum(down, 0))
    expected = np.clip(outside + np.minimum(np.maximum(across, down), 0), -LETTERS_REACH, LETTERS_REACH)
    assert np.abs(found * height - expected).max() < 0.5  # at the corners, which letters seldom have as sharp
    assert np.abs(found * height - expected).mean() < 0.05


def ends(coverage: NDArray[np.float32]) -> tuple[float, float]:
    """Where ink begins and ends along a line of pixels that it covers wholly in between."""
    inked = np.nonzero(coverage)[0]
    return inked[0] + 1 - float(coverage[inked[0]]), inked[-1] + float(coverage[inked[-1]])


def test_far_away_the_distance_goes_on() -> None:
    middle, far = (shown(f'display(text("\u2588", size: 0.1)@distance(me@x ~ {x}))', 40, 40)[0] for x in (0.5, 3.5))
    assert np.abs(far - 3).max() < 0.1
    assert middle.min() < 0


@pytest.mark.parametrize("machine", [VectorExecutor, NativeExecutor])
def test_machines_agree(machine: type) -> None:
    text = 'text("a b\\nc", size: 0.4, align: "right")::t<v, distance>\ndisplay(t@v(me@x ~ me@y), t@distance * 2, t@v)'
    np.testing.assert_allclose(shown(text, 41, 23, machine), shown(text, 41, 23), atol=2e-5)


def test_lines_are_aligned() -> None:
    def columns(align: str) -> tuple[float, float]:
        """The middles of a short line above a long one, from left to right."""
        letters = read(Letters("i\niiiiii", None, align).name)[..., 0] < 0.5
        upper, lower = np.vsplit(letters, [letters.shape[0] // 2])
        return np.nonzero(upper)[1].mean(), np.nonzero(lower)[1].mean()

    (left, long), (centre, same), (right, _) = map(columns, ("left", "center", "right"))
    assert long == same
    assert centre == pytest.approx(same, abs=1)
    assert right - centre == pytest.approx(centre - left, abs=1)
    assert right - left == pytest.approx(font().getlength("iiiii"), abs=1)


def test_their_name_says_all_of_them() -> None:
    letters = Letters('quotes " and\nlines', "some/font.ttf", "left")
    assert letters_of(letters.name) == letters
    assert file_of(letters.name) == "some/font.ttf"
    assert file_of(Letters("a", None, "left").name) is None


def test_a_font_by_its_file(tmp_path: Path) -> None:
    (tmp_path / "own.ttf").write_bytes(FONT.read_bytes())
    own = read(Letters("abc", str(tmp_path / "own.ttf"), "center").name)
    np.testing.assert_array_equal(own, read(Letters("abc", None, "center").name))


@pytest.mark.parametrize(
    ("call", "code", "words"),
    [
        ('text("a", font: "none.ttf")', "unreadable-source", "there is no such file"),
        ('text("a", font: "broken.ttf")', "unreadable-source", "it is not a font"),
        ('text("a", font: "folder.ttf")', "unreadable-source", "it is a folder"),
        (f'text("{"a" * 1000}")', "unreadable-source", "too long"),
        (f'text("{(chr(92) + "n") * MAX_LINES}")', "unreadable-source", f"more than {MAX_LINES} lines"),
        (f'text("{("a" * 100 + chr(92) + "n") * 30}")', "unreadable-source", f"more than {MAX_LETTERS:,} letters"),
        ('text("a", align: "middle")', "unknown-alignment", '"left" or "center" or "right"'),
        ('text("a", size: 0)', "needs-a-number", "above 0"),
        ('text("a", size: me@x)', "needs-a-number", "a remap makes letters grow"),
        ("text(3)", "needs-a-string", "in quotes"),
        ('text("a", font: 3)', "needs-a-string", "in quotes"),
    ],
)
def test_what_cannot_be_drawn_is_told_at_its_place(tmp_path: Path, call: str, code: str, words: str) -> None:
    (tmp_path / "broken.ttf").write_bytes(b"no font")
    (tmp_path / "folder.ttf").mkdir()
    with pytest.raises(WeftError) as failed:
        build(Request(Source(str(tmp_path / "p.weft"), f"a = {call}@v\ndisplay(a)"), ContextTable(), probe=header_of))
    (found,) = failed.value.diagnostics
    assert found.code == code
    assert words in f"{found.message} {found.hint}"
    assert found.span is not None
    assert found.span.start > 3


# Colours: a font whose letters take those of a palette in turn, in the order of the alphabet.

PALETTE = [(250, 30, 0), (10, 200, 40), (0, 60, 240)]


@pytest.fixture(scope="module")
def coloured(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("fonts") / "coloured.ttf"
    path.write_bytes(coloured_font(FONT.read_bytes(), PALETTE))
    return str(path)


def test_letters_have_the_colours_of_their_font(coloured: str) -> None:
    letters = Letters("A B C", coloured, "center")
    found, plain = read(letters._replace(in_colour=True).name), read(Letters("A B C", None, "center").name)
    np.testing.assert_array_equal(read(letters.name), plain)
    inside = found[..., 3] == 1
    assert (inside == (plain[..., 0] < 0.49)).mean() > 0.99
    seen = [tuple(np.round(found[:, at][inside[:, at]] * 255).astype(int)[0, :3].tolist()) for at in columns(inside)]
    first = PALETTE.index(seen[0])
    assert seen == [PALETTE[(first + number) % 3] for number in range(3)]
    # Half-covered pixels have the same colours, and so do their neighbours.
    beside = (found[..., 3] > 0.1) | np.roll(inside, 2, 1) | np.roll(inside, -2, 1)
    distances = [np.abs(found[..., :3] - np.array(colour) / 255).max(axis=2) for colour in PALETTE]
    assert np.min(distances, axis=0)[beside].max() < 0.06


def columns(inside: NDArray[np.bool_]) -> list[int]:
    """A column of pixels in each of three letters side by side."""
    inked = np.flatnonzero(inside.any(axis=0))
    return [int(part[len(part) // 2]) for part in np.split(inked, np.flatnonzero(np.diff(inked) > 1) + 1)]


@pytest.mark.parametrize("machine", [ReferenceExecutor, VectorExecutor, NativeExecutor])
def test_a_patch_reads_colours_after_the_distance(machine: type, coloured: str) -> None:
    letters = read(Letters("AB", coloured, "center", in_colour=True).name)
    height, width = letters.shape[:2]
    call = f'text("AB", size: {LETTERS_EM / height!r}, font: "{coloured}")::t<v, distance, r, g, b, a>'
    found = shown(f"{call}\ndisplay(t@r, t@g, t@b, t@a)", width, height, machine)
    np.testing.assert_allclose(np.moveaxis(found, 0, 2), letters, atol=1e-4)
    beyond = shown(f"{call}\ndisplay(t@a(me@x ~ me@x * 9 + 1))", 8, 8, machine)
    assert not beyond.any()


def test_letters_without_colours_are_white() -> None:
    call = 'text("AB", size: 0.8)::t<v, distance, r, g, b, a>'
    red, green, blue, alpha = shown(f"{call}\ndisplay(t@r, t@g, t@b, t@a)", 96, 64)
    assert red.min() == green.min() == blue.min() == 1
    np.testing.assert_array_equal(alpha, shown(f"{call}\ndisplay(t@v)", 96, 64)[0])


def test_an_empty_text_is_nothing() -> None:
    assert shown('display(text("")@v)', 64, 64).max() == 0


def test_letters_that_a_font_lacks_are_named() -> None:
    found = header_of(Letters("a こん\u0301é\n☃", None, "left").name)
    assert not isinstance(found, str)
    (remark,) = found.remarks
    assert remark.code == "missing-letters"
    assert "こ ん ☃," in remark.message
    for text in ("", "abc é ñ Ω ж → ✓", "e\u0301", "a\u200bb"):
        known = header_of(Letters(text, None, "left").name)
        assert not isinstance(known, str)
        assert known.remarks == (), text
    many = header_of(Letters("".join(map(chr, range(0x4E00, 0x4E40))), None, "left").name)
    assert not isinstance(many, str)
    assert many.remarks[0].message.count(" ") < 25


def test_a_font_with_damage_is_told_wherever_it_is_found(tmp_path: Path) -> None:
    """Some damage shows when letters are drawn, not when the font is opened."""
    whole = FONT.read_bytes()
    glyphs = whole.index(b"glyf")
    start = int.from_bytes(whole[glyphs + 8 : glyphs + 12], "big")
    for seed in range(30):
        chance = np.random.default_rng(seed)
        damaged = np.frombuffer(whole, np.uint8).copy()
        damaged[start + chance.integers(0, len(whole) - start, 2000)] = chance.integers(0, 256, 2000)
        (tmp_path / "own.ttf").write_bytes(damaged.tobytes())
        name = Letters("abcé", str(tmp_path / "own.ttf"), "center").name
        if not isinstance(header_of(name), str):
            with suppress(PictureError):
                read(name)
