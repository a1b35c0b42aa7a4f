"""The picture in a terminal, and what stands below it."""

from __future__ import annotations

import re

import numpy as np
import pyte
import pytest
from hypothesis import given, strategies as st

from tests.support.pseudo_terminal import SEQUENCE, diagnostic, noise
from weft.errors import Diagnostic, Source, Span
from weft.runtime.screens.screen import Overlay, letterbox
from weft.runtime.screens.terminal import columns_of, nearest_in_table, painted, rows_of, scaled


def test_every_pixel_has_its_half_of_a_cell(start):
    player = start()
    assert player.state["room"] == [40, 24]
    for seed in (1, 2):
        picture = noise(40, 24, seed)
        player.show(picture)
        assert np.array_equal(player.half_blocks(12), picture[..., :3])


def test_the_picture_lies_in_the_middle_of_black(start):
    player = start()
    for size in ((24, 24), (40, 10), (9, 3)):
        picture = noise(*size)
        player.show(picture)
        place = letterbox(size, (40, 24))
        expected = np.zeros((24, 40, 3), np.uint8)
        inside = slice(place.top, place.top + place.height), slice(place.left, place.left + place.width)
        expected[inside] = scaled(picture, place.width, place.height)
        assert np.array_equal(player.half_blocks(12), expected)


def test_what_stays_is_not_sent_again(start):
    player = start()
    picture = noise(40, 24)
    player.show(picture, Overlay(note="note"))
    sent = len(player.raw)
    player.do("for _ in range(5): screen.present(picture)")
    assert len(player.raw) == sent
    picture[5, 7] ^= 255
    player.show(picture, Overlay(note="note"))
    assert player.raw[sent:].count("▀".encode()) == 1
    assert b"note" not in player.raw[sent:]
    assert np.array_equal(player.half_blocks(12), picture[..., :3])


def test_a_frame_is_shown_at_once(start):
    player = start()
    player.do("pass")
    before = len(player.raw)
    player.show(noise(40, 24), Overlay(note="note"))
    frame = player.raw[before:]
    assert frame.startswith(b"\x1b[?2026h")
    assert frame.endswith(b"\x1b[?2026l")
    assert frame.count(b"\x1b[?2026") == 2


def test_a_new_size_is_followed(start):
    player = start()
    player.show(noise(40, 24), Overlay(note="the note"))
    for columns, rows in ((60, 20), (15, 6), (1, 1), (30, 2)):
        player.resize(columns, rows)
        room = [columns, 2 * max(rows - 1, 1)]
        player.until(lambda room=room: player.state["room"] == room)
        picture = noise(*room)
        player.show(picture, Overlay(note="the note"))
        assert np.array_equal(player.half_blocks(room[1] // 2), picture[..., :3])
        if rows > 1:
            assert player.lines()[-1] == ("the note" if columns >= 8 else "t")


def test_a_terminal_with_few_colours_gets_the_nearest(start):
    player = start(TERM_PROGRAM="Apple_Terminal")
    table = [bytes.fromhex(code) for code in pyte.graphics.FG_BG_256[16:]]
    colours = np.array([list(colour) for colour in table], np.uint8)
    picture = np.zeros((24, 40, 4), np.uint8)
    picture.reshape(-1, 4)[: len(colours), :3] = colours
    player.show(picture)
    assert np.array_equal(player.half_blocks(12), picture[..., :3])
    assert b";2;" not in b"".join(found[0] for found in re.findall(rb"\x1b\[([34]8;[0-9;]*)(m)", player.raw))


def test_the_nearest_colour_is_near():
    table = np.array([list(bytes.fromhex(code)) for code in pyte.graphics.FG_BG_256], int)
    colours = noise(30, 30)[..., :3].reshape(-1, 3)
    found = ((table[nearest_in_table(colours)] - colours) ** 2).sum(1)
    best = ((table[np.newaxis, 16:] - colours[:, np.newaxis]) ** 2).sum(2).min(1)
    assert np.array_equal(found, best)


sizes = st.integers(1, 12)


@given(sizes, sizes, sizes, sizes)
def test_less_room_averages_and_more_repeats(width, height, new_width, new_height):
    picture = noise(width, height)
    result = scaled(picture, new_width, new_height)
    assert result.shape == (new_height, new_width, 3)
    expected = picture[..., :3].astype(float)
    for axis, (old, new) in enumerate(((height, new_height), (width, new_width))):
        if new <= old:
            # In pieces so small that each lies in one old and one new pixel.
            pieces = np.moveaxis(expected.repeat(new, axis), axis, 0)
            expected = np.moveaxis(pieces.reshape(new, old, *pieces.shape[1:]).mean(1), 0, axis)
        else:
            expected = expected.take([int((at + 0.5) * old / new) for at in range(new)], axis)
    assert np.abs(result - expected).max() <= 0.5 + 1e-6


# --- below the picture ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "a<v> = wrong",
        "a<v> =\t\twrong + 1",
        "a<v> = 世界🙂é\u0301 + wrong\t+ 世界",
        "a<v> = " + "long + " * 30 + "wrong + " + "long + " * 30,
        "a<v> = " + "世" * 60 + "wrong",
        "a<v> = " + "x世" * 30 + "wrong" + "世x" * 30,
    ],
    ids=["plain", "tabs", "wide", "long", "wide and long", "odd columns"],
)
def test_the_caret_stands_below_its_place(start, text):
    player = start(columns=40, rows=16)
    player.show(noise(40, 30), Overlay((diagnostic(text, "wrong", "mend it"),), "plays on", ("60 fps",)))
    lines = player.lines()
    place = next(at for at, line in enumerate(lines) if line.endswith("^"))
    for column in range(5):
        x = lines[place].index("^") + column
        assert player.screen.buffer[place - 1][x].data == "wrong"[column]
        assert player.screen.buffer[place][x].data == "^"
        assert player.screen.buffer[place][x].fg == "red"
    assert lines[place].count("^") == 5
    first = next(at for at, line in enumerate(lines) if "error: this is wrong" in line)
    assert player.screen.buffer[first][lines[first].index("error")].fg == "red"
    assert lines[place + 1].strip() == "hint: mend it"
    assert lines[-1] == "plays on · 60 fps"
    assert ("…" in lines[place - 1]) == (len(columns_of(f" 1 | {text}")) > 40)


def test_figures_are_wrapped_between_them():
    figures = ("60 fps · p95 17.1 ms · 0 dropped", "1280×720 · compiled in 127 ms", "visual native · audio native")
    for width in (40, 60, 79):
        rows = [painted(row, False).decode() for row in rows_of(Overlay((), "swapped in 27 ms", figures), width, 12)]
        assert " · ".join(rows) == " · ".join(("swapped in 27 ms", *figures))
        assert max(map(len, rows)) <= width


def test_what_is_left_out_is_counted():
    errors = tuple(diagnostic(f"a{n}<v> = wrong", "wrong") for n in range(2))
    rows = [painted(row, False).decode() for row in rows_of(Overlay(errors, left_out=1950), 60, 20)]
    assert rows[-1] == "… 1950 more errors and warnings"
    rows = [painted(row, False).decode() for row in rows_of(Overlay(errors, left_out=1950), 60, 3)]
    assert rows[-1] == "… 4 more lines and 1950 more errors and warnings"


def test_errors_leave_half_of_the_terminal_to_the_picture(start):
    player = start(columns=40, rows=16)
    room = player.state["room"]
    errors = tuple(diagnostic(f"a{n}<v> = wrong", "wrong") for n in range(9))
    player.show(np.full((30, 40, 4), 255, np.uint8), Overlay(errors, "note"))
    below = player.lines()[8:]
    assert below[0].startswith("a.weft:1:9: error")
    assert below[-2:] == [f"… {9 * 3 - 6} more lines", "note"]
    assert player.half_blocks(8).any()
    player.listen()
    assert player.state["room"] == room
    picture = noise(40, 30)
    player.show(picture)
    assert np.array_equal(player.half_blocks(15), picture[..., :3])


def test_nothing_hostile_gets_through(start):
    player = start(columns=100, rows=40)
    evil = "\x1b[?1049l\x1b]0;title\x07\x9b31m\x90q\x08\x7f\r\u202e\u2028\ud800"
    span = diagnostic(f"a = {evil} wrong", "wrong").span
    error = Diagnostic("error", f"c{evil}", f"m{evil}\x1b[2J\n\x1bc", span, evil)
    player.show(noise(100, 78), Overlay((error,), f"note{evil}", (f"figure{evil}",)))
    left = SEQUENCE.sub(b"", player.raw).decode()
    assert {letter for letter in left if not letter.isprintable()} <= {"\N{REPLACEMENT CHARACTER}"}
    assert {final for _, _, final in SEQUENCE.findall(player.raw)} <= {b"H", b"m", b"K", b"h", b"l", b"J"}
    assert b"\x1b[?1049l" not in player.raw
    assert player.raw.count(b"\x1b[2J") == 1
    assert any("wrong" in line for line in player.lines())
    assert any(line.startswith("note") for line in player.lines())


def test_colours_of_words_can_be_switched_off(start):
    player = start(NO_COLOR="1")
    player.show(noise(40, 24), Overlay((diagnostic("a = wrong", "wrong"),)))
    place = next(at for at, line in enumerate(player.lines()) if line.endswith("^"))
    assert {player.screen.buffer[row][x].fg for row in (place - 2, place) for x in range(40)} == {"default"}


@given(st.text(), st.text(), st.integers(1, 60), st.integers(1, 12), st.data())
def test_any_text_keeps_to_its_columns(text, message, width, most, data):
    start = data.draw(st.integers(0, len(text)))
    span = Span(Source("a.weft", text), start, data.draw(st.integers(start, len(text))))
    problem = Diagnostic("warning", "code", message, span, message, ((span, message),))
    overlay = Overlay((problem,), message, (text,), recording=text)
    rows = rows_of(overlay, width, most)
    assert len(rows) <= most
    for row in rows:
        assert len(row) <= width
        shown = painted(row, False).decode()
        assert shown.isprintable()
        assert len(columns_of(shown)) == len(row)
