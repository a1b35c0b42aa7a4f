"""How pictures lie on walls: the geometry, what is kept of it, and what is seen in windows."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from tests.support.windows import inside_of, on_x11, screen, xdotool
from weft.media.pictures import save_picture
from weft.runtime.screens.wall_pins import WallPins, card_of
from weft.runtime.screens.walls import Walls, read_mask
from weft.runtime.screens.warp import (
    PLAIN, SQUARE, EdgeBlend, Warp, WarpError, bent, from_quad, warp_from_json, warp_from_words, warp_to_json
)

SIZE = (160, 90)
PINS = ((0.08, 0.11), (0.93, 0.03), (0.88, 0.97), (0.02, 0.9))
FULL = Warp(
    PINS, 270, True, False, 0.8, 0.05, EdgeBlend(0.1, 0.2, 0, 0.3, 2.0), (((0.0, 0.0), (1.0, 0.0), (0.5, 1.0)),)
)  # fmt: skip


def test_a_matrix_leads_the_corners_to_those_of_the_square():
    quad = [(10.0, 20.0), (200.0, 5.0), (180.0, 150.0), (3.0, 90.0)]
    for corner, expected in zip(quad, SQUARE, strict=True):
        x, y, w = from_quad(quad) @ (*corner, 1)
        assert (x / w, y / w) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("turn", "seen"), [(0, (0, 0)), (90, (1, 0)), (180, (1, 1)), (270, (0, 1))],
)  # fmt: skip
def test_the_upper_left_corner_goes_clockwise(turn, seen):
    assert Warp(turn=turn).turning @ (*seen, 1) == pytest.approx([0, 0])


def test_mirroring_comes_before_turning():
    # Mirrored, the upper left corner is at the right; turned by 90°, it is below.
    assert Warp(turn=90, flip_x=True).turning @ (1, 1, 1) == pytest.approx([0, 0])


def test_places_lead_there_and_back():
    for warp in (FULL, PLAIN, Warp(turn=90)):
        x, y = warp.from_picture(SIZE, (640, 400), 0.3, 0.6)
        assert warp.to_picture(SIZE, (640, 400), x, y) == pytest.approx((0.3, 0.6))


def test_without_pins_a_picture_keeps_its_aspect_also_when_turned():
    assert Warp(turn=90).quad((200, 100), (400, 400)) == ((100, 0), (300, 0), (300, 400), (100, 400))


@pytest.mark.parametrize(
    ("warp", "words"),
    [
        (Warp((PINS[0], PINS[2], PINS[1], PINS[3])), "fold"),
        (Warp((*PINS[:3], (0.5, 0.4))), "fold"),
        (Warp((PINS[1], PINS[0], PINS[3], PINS[2])), "fold"),
        (Warp((PINS[0],) * 4), "fold"),
        (Warp(((float("nan"), 0), *PINS[1:])), "near its window"),
        (Warp(((-9, 0), *PINS[1:])), "near its window"),
        (Warp(turn=45), "0, 90, 180 or 270"),
        (Warp(brightness=float("nan")), "brightness is 0 to 2"),
        (Warp(blend=EdgeBlend(left=1.5)), "blended"),
        (Warp(mask=(((0, 0), (1, 1)),)), "3 to 256 points"),
    ],
)
def test_what_no_picture_can_do_is_refused(warp, words):
    with pytest.raises(WarpError, match=words):
        warp.checked()


def test_json_has_what_is_not_usual():
    assert warp_to_json(PLAIN) == {}
    for warp in (PLAIN, FULL, replace(FULL, mask=()), FULL.with_grid(5)):
        assert warp_from_json(json.loads(json.dumps(warp_to_json(warp)))) == warp


@pytest.mark.parametrize(
    "data", [[], {"spin": 1}, {"corners": [1, 2]}, {"corners": "abcd"}, {"blend": {"middle": 1}}, {"flip_x": "yes"},
             {"turn": True}, {"mask": 3}, {"brightness": None}, {"black": [1]}],
)  # fmt: skip
def test_json_of_another_kind_is_refused(data):
    with pytest.raises(WarpError):
        warp_from_json(data)


def test_an_option_says_it_in_words():
    assert warp_from_words("turn:90, flip:x,brightness:0.9,black:0.02,blend-right:0.2,gamma:1.8") == Warp(
        None, 90, True, False, 0.9, 0.02, EdgeBlend(right=0.2, gamma=1.8)
    )
    assert warp_from_words("pin:0/0/1/0/1/1/0/0.5").corners == ((0, 0), (1, 0), (1, 1), (0, 0.5))
    wrong_words = "turn", "mask", "mask:a.png", "turn:x", "pin:1/2", "spin:3", "flip:z", "brightness:inf"
    for wrong in (*wrong_words, "pin:0/0/1/1/1/0/0/1"):
        with pytest.raises(WarpError):
            warp_from_words(wrong)


# --- what is kept ---


def test_walls_are_kept_beside_the_patch_for_each_monitor_and_window(tmp_path):
    patch, told = tmp_path / "show.weft", []
    walls = Walls(patch, {"side": Warp(turn=90)}, told.append)
    assert walls.of("HDMI-1", "") == PLAIN
    assert walls.of("HDMI-1", "side").turn == 90
    walls.keep("HDMI-1", "", FULL)
    walls.keep("DP-1", "side", Warp(turn=180))
    walls.close()
    again = Walls(patch, tell=told.append)
    assert again.of("HDMI-1", "") == FULL
    assert again.of("DP-1", "side").turn == 180
    assert again.of("DP-1", "") == PLAIN
    assert told == []


@pytest.mark.parametrize("text", ["{", "[]", '{"HDMI-1": 3}', "\0\0"])
def test_a_damaged_file_is_told_and_kept_aside(tmp_path, text):
    patch, told = tmp_path / "show.weft", []
    (tmp_path / "show.weft.walls").write_text(text)
    walls = Walls(patch, tell=told.append)
    assert walls.of("HDMI-1", "") == PLAIN
    assert told == ["show.weft.walls: it is damaged; windows are shown as they are"]
    walls.keep("HDMI-1", "", FULL)
    walls.close()
    assert (tmp_path / "show.weft.walls.damaged").read_text() == text
    assert Walls(patch).of("HDMI-1", "") == FULL


def test_a_wall_that_cannot_be_is_told_with_its_window(tmp_path):
    patch, told = tmp_path / "show.weft", []
    folded = {"corners": [[0, 0], [1, 1], [1, 0], [0, 1]]}
    (tmp_path / "show.weft.walls").write_text(json.dumps({"HDMI-1": {"": {"turn": 90}, "side": folded}}))
    walls = Walls(patch, tell=told.append)
    assert walls.of("HDMI-1", "").turn == 90
    assert walls.of("HDMI-1", "side") == PLAIN
    (line,) = told
    assert "the window \"side\" on HDMI-1 is shown as it is: the corners fold the picture over itself" in line


def picture_of_mask(path):
    """Left black, in the middle gray, on the right transparent white; each a third."""
    pixels = np.zeros((6, 90, 4), np.uint8)
    pixels[:, 30:60] = 128
    pixels[:, 60:, :3] = 255
    pixels[..., 3] = 255
    pixels[:, 75:, 3] = 0
    save_picture(path, pixels)


def test_a_picture_masks_a_wall_and_what_cannot_be_read_is_told(tmp_path):
    patch, told = tmp_path / "show.weft", []
    picture_of_mask(tmp_path / "stage.png")
    (tmp_path.parent / "outside.png").write_bytes((tmp_path / "stage.png").read_bytes())
    names = {"": "stage.png", "gone": "gone.png", "text": "show.weft.walls", "up": "../outside.png"}
    text = json.dumps({"HDMI-1": {window: {"mask_picture": name} for window, name in names.items()}})
    (tmp_path / "show.weft.walls").write_text(text)
    walls = Walls(patch, tell=told.append)
    warp = walls.of("HDMI-1", "")
    assert warp.mask_picture is not None
    assert warp.mask_picture.light[0, [0, 45, 70, 80]].tolist() == [0, 128, 255, 0]
    assert warp_to_json(warp) == {"mask_picture": "stage.png"}
    for window, words in (("gone", "gone.png cannot be read"), ("text", "cannot be read: it is not a picture"),
                          ("up", "../outside.png is not read")):  # fmt: skip
        assert walls.of("HDMI-1", window) == PLAIN
        assert words in told.pop()
    assert told == []


def test_a_folder_that_cannot_be_written_is_told(tmp_path):
    told = []
    walls = Walls(tmp_path / "nowhere" / "show.weft", tell=told.append)
    walls.keep("HDMI-1", "", FULL)
    walls.close()
    assert "cannot be written" in told[0]


# --- by hand ---


def pinned():
    changed, kept = [], []
    pins = WallPins(changed.append, kept.append)
    pins.open(PLAIN, SIZE)
    pins.labels(SIZE, 1.0)
    return pins, changed, kept


def test_a_corner_is_dragged_and_kept_when_it_is_let_go():
    pins, changed, kept = pinned()
    pins.press(80, 45)  # no corner is near
    pins.move(70, 40)
    assert changed == []
    pins.press(158, 3)
    pins.move(138, 12)
    assert changed[-1].corners == ((0, 0), (140 / 160, 9 / 90), (1, 1), (0, 1))
    assert kept == []
    pins.release()
    assert kept == changed[-1:]


def test_where_pixels_are_small_a_corner_is_taken_from_farther():
    for scale, is_taken in ((1.0, False), (2.0, True)):
        pins, changed, _ = pinned()
        pins.labels(SIZE, scale)
        pins.press(50, 30)
        pins.move(60, 30)
        assert bool(changed) == is_taken


def test_a_corner_that_would_fold_the_picture_stays():
    pins, changed, _ = pinned()
    pins.press(0, 0)
    pins.move(150, 85)
    assert changed == []
    pins.move(20, 10)
    assert len(changed) == 1


def test_keys_move_turn_and_mirror():
    pins, changed, kept = pinned()
    assert pins.key("right", False)
    assert changed[-1].corners[0] == (1 / 160, 0)
    assert pins.key("down", True)
    assert changed[-1].corners[0] == (1 / 160, 10 / 90)
    for key in ("tab", "r", "x", "equal"):
        assert pins.key(key, False)
    assert (changed[-1].turn, changed[-1].flip_x, changed[-1].brightness) == (90, True, 1.02)
    assert not pins.key("q", False)
    assert pins.key("0", False)
    assert changed[-1] == Warp(brightness=1.02)
    pins.close()
    assert kept == [Warp(brightness=1.02)]


def test_what_was_not_changed_is_not_kept():
    pins, _, kept = pinned()
    pins.press(158, 3)
    pins.release()
    pins.key("tab", False)
    pins.close()
    assert kept == []
    pins.open(Warp(turn=180), SIZE)
    pins.close()
    assert kept == []


def test_a_grid_bends_the_picture_between_its_corners():
    pins, changed, _ = pinned()
    pins.key("g", False)
    assert changed[-1].grid[1] == ((0, 0.5), (0.5, 0.5), (1, 0.5))
    pins.press(80, 45)
    pins.move(96, 54)
    assert changed[-1].grid[1][1] == pytest.approx((0.6, 0.6))
    pins.move(159, 88)  # over the next points
    assert changed[-1].grid[1][1] == pytest.approx((0.6, 0.6))
    for sides in (5, 9, 0):
        pins.key("g", False)
        assert len(changed[-1].grid) == sides


def test_a_straight_grid_changes_nothing():
    places = np.meshgrid(np.linspace(0, 1, 7), np.linspace(0, 1, 5))
    for sides in (2, 3, 5):
        np.testing.assert_allclose(np.moveaxis(bent(PLAIN.with_grid(sides).grid, *places), -1, 0), places, atol=1e-12)
    warp = Warp(PINS).with_grid(3).with_point(1, 1, 0.6, 0.45)
    for place in ((0.25, 0.5), (0.5, 0.5), (0.9, 0.1)):
        pixel = warp.from_picture(SIZE, (640, 400), *place)
        assert warp.to_picture(SIZE, (640, 400), *pixel) == pytest.approx(place, abs=0.02)


@pytest.mark.parametrize(
    "grid", [((0, 0), (1, 0)), (((0, 0), (1, 0)),), (((0, 0), (1, 0)), ((0, 1), (1, 1), (2, 1))),
             (((0, 0), (1, 0)), ((1, 1), (0, 1)))],
)  # fmt: skip
def test_a_grid_that_cannot_be_is_refused(grid):
    with pytest.raises(WarpError):
        warp_from_json({"grid": grid})


def test_the_card_is_white_at_its_edge():
    card = card_of((64, 36), "weft")
    edge = np.concatenate([card[0], card[-1], card[:, 0], card[:, -1]])
    assert (edge == 255).all()


# --- in windows ---


@pytest.fixture
def window(display):
    from weft.runtime.screens.window import Window

    with Window("weft", *SIZE, vsync=False) as window:
        yield window


def of_level(level, size=SIZE):
    return np.full((size[1], size[0], 4), [level, level, level, 255], np.uint8)


def test_a_pinned_picture_is_within_half_a_pixel_of_its_corners(window):
    window.present(of_level(255))
    window._lie(Warp(PINS))
    seen = window.read_back()[..., 0]
    height, width = seen.shape
    inside = inside_of(Warp(PINS).quad(SIZE, (width, height)), (width, height))
    assert (seen[inside > 0.5] == 255).all()
    assert (seen[inside < -0.5] == 0).all()
    # The card itself ends there, too: its edge is white.
    window._surface.show(card_of(SIZE, "weft"))
    card = window.read_back()[..., 0]
    assert (card[(inside > 0.1) & (inside < 0.4)] > 100).mean() > 0.9


def test_a_turned_and_mirrored_picture_is_exact(display):
    picture = np.random.default_rng(1).integers(0, 256, (36, 36, 4), np.uint8)
    from weft.runtime.screens.window import Window

    with Window("turned", 36, 36, vsync=False, filtering="nearest") as square:
        square.present(picture)
        for warp, expected in (
            (Warp(turn=90), np.rot90(picture, -1)), (Warp(turn=180), picture[::-1, ::-1]),
            (Warp(flip_x=True), picture[:, ::-1]), (Warp(flip_y=True, turn=270), np.rot90(picture[::-1])),
        ):  # fmt: skip
            square._lie(warp)
            np.testing.assert_array_equal(square.read_back()[..., :3], expected[..., :3])


def test_levels_and_masks(window):
    window.present(of_level(102))
    window._lie(Warp(brightness=0.8, black=0.1, mask=(((0.0, 0.0), (0.5, 0.0), (0.5, 1.0), (0.0, 1.0)),)))
    seen = window.read_back()[..., 0].astype(int)
    assert np.abs(seen[:, :79] - round((0.1 + 0.7 * 0.4) * 255)).max() <= 1
    assert (seen[:, 81:] == 0).all()


def test_what_is_dark_in_the_picture_of_a_mask_is_dark_on_the_wall(window, tmp_path):
    picture_of_mask(tmp_path / "stage.png")
    upper = ((0.0, 0.0), (1.0, 0.0), (1.0, 0.5), (0.0, 0.5))
    window.present(of_level(200))
    window._lie(Warp(mask=(upper,), mask_picture=read_mask(str(tmp_path / "stage.png"))))
    seen = window.read_back()[..., 0].astype(int)
    height, width = seen.shape
    places = [int(share * width) for share in (0.1, 0.5, 0.75, 0.95)]
    assert np.abs(seen[height // 4, places] - [0, 100, 200, 0]).max() <= 1
    assert (seen[height // 2 + 1 :] == 0).all()


def test_a_bent_picture_goes_through_the_points_of_its_grid(window):
    picture = of_level(0)
    picture[44:47, 79:82, :3] = 255
    window.present(picture)
    window._lie(Warp().with_grid(3))
    straight = window.read_back()[..., 0].astype(float)
    window._lie(Warp().with_grid(3).with_point(1, 1, 0.625, 0.4))
    bent_there = window.read_back()[..., 0].astype(float)
    y, x = np.mgrid[: SIZE[1], : SIZE[0]] + 0.5
    for seen, (px, py) in ((straight, (80.5, 45.5)), (bent_there, (100.5, 36.5))):
        assert (seen * x).sum() / seen.sum() == pytest.approx(px, abs=0.6)
        assert (seen * y).sum() / seen.sum() == pytest.approx(py, abs=0.6)
    window.present(of_level(255))
    assert (window.read_back()[..., 0] == 255).mean() > 0.99


def test_a_mask_shows_what_is_in_any_of_its_polygons(display):
    from weft.runtime.screens.wall_drawing import mask_pixels

    triangle, box = ((0.0, 0.0), (0.5, 0.0), (0.0, 0.5)), ((0.5, 0.5), (3.0, 0.5), (3.0, 3.0), (0.5, 3.0))
    seen = mask_pixels(Warp(mask=(triangle, box)), (40, 40))
    assert (seen[20:, 20:] == 255).all()
    assert (seen[20:, :20] == 0).all()
    assert seen[:20, :20].mean() / 255 == pytest.approx(0.5, abs=0.03)
    assert seen[5, 5] == 255
    assert seen[15, 15] == 0


def test_a_wall_is_followed_when_the_window_opens(display, tmp_path):
    from weft.runtime.screens.window import Window

    walls = Walls(tmp_path / "show.weft", {"": Warp(turn=180)})
    with Window("weft", *SIZE, vsync=False, walls=walls) as window:
        picture = of_level(0)
        picture[0, 0, :3] = 255
        window.present(picture)
        assert (window.read_back()[-1, -1, :3] == 255).all()


@on_x11
def test_a_window_that_comes_to_another_monitor_lies_as_is_kept_for_that(display, monkeypatch, eventually):
    from weft.runtime.screens.display import glfw
    from weft.runtime.screens.window import Window

    # The display has one monitor: its right half is another one here.
    def name(window):
        return "right" if glfw.get_window_pos(window._handle)[0] >= 400 else "left"

    monkeypatch.setattr(Window, "_on_monitor", property(name))
    walls = Walls()
    walls.keep("right", "", Warp(turn=180))
    walls.keep("left", "", Warp(turn=90))
    with Window("weft", *SIZE, vsync=False, walls=walls) as window:
        for left, turn in ((400, 180), (0, 90), (500, 180)):
            glfw.set_window_pos(window._handle, left, 0)
            eventually(lambda turn=turn: window._warp.turn == turn, meanwhile=window.poll)
        # While it is pinned, what is done there is not lost.
        window.toggle_pins()
        window._on_key(window._handle, glfw.KEY_X, 0, glfw.PRESS, 0)
        glfw.set_window_pos(window._handle, 0, 0)
        eventually(lambda: name(window) == "left", meanwhile=window.poll)
        assert window._warp == Warp(turn=180, flip_x=True)


@on_x11
@pytest.mark.parametrize("level", [255, 128, 40])
def test_two_blended_windows_are_flat(display, tmp_path, eventually, level):
    """The light of both, where they overlap, is that of one."""
    from weft.runtime.screens.display import glfw
    from weft.runtime.screens.window import Windows

    given = {"": Warp(blend=EdgeBlend(right=0.25)), "side": Warp(blend=EdgeBlend(left=0.25))}
    with Windows("blended", *SIZE, vsync=False, walls=Walls(given=given)) as windows:
        windows.show_others({"side": of_level(level)})
        glfw.set_window_pos(windows._further["side"]._handle, 400, 200)

        def seen():
            windows.poll()
            windows.present(of_level(level))
            windows._further["side"].redraw()
            shot = screen(tmp_path).astype(float)
            return shot[: SIZE[1], : SIZE[0], 0], shot[200 : 200 + SIZE[1], 400 : 400 + SIZE[0], 0]

        eventually(lambda: all(each.max() == level for each in seen()))
        left, right = seen()
        overlap = SIZE[0] // 4
        both = ((left[:, -overlap:] / 255) ** 2.2 + (right[:, :overlap] / 255) ** 2.2) ** (1 / 2.2) * 255
        assert np.abs(both - level).max() <= 2
        assert (left[:, :-overlap] == level).all()
        assert left[0, -1] < 0.2 * level


@on_x11
@pytest.mark.long
def test_the_first_window_lies_as_the_name_of_its_picture_says(display, tmp_path, eventually):
    from tests.support.performance import Performance

    patch = tmp_path / "show.weft"
    patch.write_text('me<width> = 640\nme<height> = 360\ndisplay(me@x < 0.5, to: "beamer")\n')

    def levels():
        return screen(tmp_path)[180, [100, 540], 0].tolist()

    with Performance(patch, "--no-audio", "--warp", "beamer=flip:x"):
        eventually(lambda: levels() == [0, 255], seconds=20)


@on_x11
@pytest.mark.long
def test_corners_are_dragged_over_a_test_card(display, tmp_path, eventually):
    from tests.support.performance import Performance

    patch = tmp_path / "show.weft"
    patch.write_text("me<width> = 640\nme<height> = 360\ndisplay(0.5)\n")
    kept = tmp_path / "show.weft.walls"

    def black():
        return (screen(tmp_path)[:360, :640].max(axis=2) < 8).mean()

    with Performance(patch, "--no-audio") as performance:
        performance.wait_for("started")
        xdotool("mousemove", 300, 300, "key", "w")
        eventually(lambda: len(np.unique(screen(tmp_path)[:360, :640])) > 20, seconds=20)
        for place in ((2, 2), (60, 40), (82, 62)):
            xdotool("mousemove", *place, "sleep", 0.2, "mousedown", 1, "sleep", 0.2)
        xdotool("mouseup", 1)
        eventually(kept.exists, seconds=20)
        xdotool("key", "w")
        eventually(lambda: 0.05 < black() < 0.3, seconds=20)
        xdotool("key", "Escape")
        assert performance.ended() == 0
    ((_, windows),) = json.loads(kept.read_text()).items()
    assert windows[""]["corners"][0] == pytest.approx([80 / 640, 60 / 360], abs=0.01)
