"""std.picture: each word against its formula, applied to a picture that numpy computes as well."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from tests.std.values import ASPECT, EXACT, SETTINGS, Values, compiled, values
from weft.backends.executors import Executor
from weft.backends.launch import Launch, StateMemory
from weft.backends.native.executor import NativeExecutor
from weft.backends.select import executor_problem
from weft.backends.vm import ReferenceExecutor

X, Y = np.meshgrid((np.arange(8) + 0.5) / 8, (np.arange(6) + 0.5) / 6)
TIME = 1.25

IMG = "img<r, g, b> = <0.5 + 0.5 * sin(3 * me@x + 5 * me@y), me@x * me@y, 0.5 + 0.5 * cos(7 * me@x - 2 * me@y)>"
OTHER = "other<r, g> = <me@y * me@y, 0.3 * me@x>"


def img(x: Values, y: Values) -> Values:
    return np.stack([0.5 + 0.5 * np.sin(3 * x + 5 * y), x * y, 0.5 + 0.5 * np.cos(7 * x - 2 * y)])


def light(c: Values) -> Values:
    return np.asarray(np.tensordot([0.2126, 0.7152, 0.0722], c, 1))


def at(z: npt.NDArray[np.complex128]) -> Values:
    """The picture at points that are counted from the middle, 1 the height."""
    return img(0.5 + z.real / ASPECT, 0.5 + z.imag)


def folded(z: npt.NDArray[np.complex128], n: int) -> npt.NDArray[np.complex128]:
    """A point, reflected into the wedge that goes down from the right and is half an n-th of a turn wide."""
    angle = np.angle(z) % (2 * np.pi / n)
    return np.abs(z) * np.exp(1j * np.minimum(angle, 2 * np.pi / n - angle))


def step(x: Values, level: float, soft: float) -> Values:
    return np.clip(0.5 + (x - level) / soft, 0, 1)


def share(at: Values, first: float, length: float) -> Values:
    return np.clip((at - first) / length, 0, 1)


def rectangle(left: float, top: float, width: float, height: float) -> Values:
    """What share of each pixel a rectangle covers."""
    across = np.minimum(X - left, left + width - X) * SETTINGS["width"]
    down = np.minimum(Y - top, top + height - Y) * SETTINGS["height"]
    return np.clip(0.5 + across, 0, 1) * np.clip(0.5 + down, 0, 1)


def pulled(corners: list[tuple[float, float]]) -> Values:
    """The picture, by the projective map that takes its corners there: eight equations for its eight numbers."""
    rows, wanted = [], []
    for (u, v), (x, y) in zip([(0, 0), (1, 0), (1, 1), (0, 1)], corners, strict=True):
        rows += [[u, v, 1, 0, 0, 0, -u * x, -v * x], [0, 0, 0, u, v, 1, -u * y, -v * y]]
        wanted += [x, y]
    there = np.append(np.linalg.solve(np.array(rows, float), wanted), 1).reshape(3, 3)
    u, v, scale = np.tensordot(np.linalg.inv(there), np.stack([X, Y, np.ones_like(X)]), 1)
    size = np.array([SETTINGS["width"], SETTINGS["height"]])
    points = np.array(corners) * size
    middle = points.mean(0)
    near = np.full(X.shape, np.inf)
    for first, second in zip(points, np.roll(points, -1, 0), strict=True):
        normal = np.array([first[1] - second[1], second[0] - first[0]]) / np.linalg.norm(second - first)
        side = np.sign((middle - first) @ normal)
        near = np.minimum(near, side * ((X * size[0] - first[0]) * normal[0] + (Y * size[1] - first[1]) * normal[1]))
    return np.clip(0.5 + near, 0, 1) * img(np.clip(u / scale, 0, 1), np.clip(v / scale, 0, 1))


POINTS = (X - 0.5) * ASPECT + 1j * (Y - 0.5)
FAR = np.clip((np.hypot(X - 0.5, Y - 0.5) * np.sqrt(2) - 0.2) / 0.8, 0, 1)
KEYED = img(X, Y) - np.array([0.2, 0.6, 0.1])[:, None, None]

WORDS: dict[str, Values] = {
    "turned(0.8)": at(POINTS * np.exp(-0.8j)),
    "zoomed(2.5)": at(POINTS / 2.5),
    "moved(0.3, -0.1)": at(POINTS - 0.3 + 0.1j),
    "placed(0.2, 0.1, 0.5)": rectangle(0.2, 0.1, 0.5, 0.5) * img(share(X, 0.2, 0.5), share(Y, 0.1, 0.5)),
    "placed(0.2, 0.1, 0.5, 0.25)": rectangle(0.2, 0.1, 0.5, 0.25) * img(share(X, 0.2, 0.5), share(Y, 0.1, 0.25)),
    "inset(img@bgr, 0.5, 0.5, 0.25)": img(X, Y) + rectangle(0.5, 0.5, 0.25, 0.25) * (
        img(share(X, 0.5, 0.25), share(Y, 0.5, 0.25))[::-1] - img(X, Y)
    ),
    "corners()": img(X, Y),
    "corners(<0.1, 0.2>, <0.9, 0.1>, <0.8, 0.9>, <0.2, 0.7>)": pulled([(0.1, 0.2), (0.9, 0.1), (0.8, 0.9), (0.2, 0.7)]),
    "corners(<0.9, 0.1>, <0.1, 0.2>, <0.2, 0.7>, <0.8, 0.9>)": pulled([(0.9, 0.1), (0.1, 0.2), (0.2, 0.7), (0.8, 0.9)]),
    "tiled(3, 2)": img(X * 3 % 1, Y * 2 % 1),
    "tiled(3)": img(X * 3 % 1, Y * 3 % 1),
    "mirrored()": img(np.minimum(X, 1 - X), Y),
    "kaleid(5)": at(folded(POINTS, 5)),
    "pixelated(3, 2)": img((np.floor(X * 3) + 0.5) / 3, (np.floor(Y * 2) + 0.5) / 2),
    "pixelated(4)": img((np.floor(X * 4) + 0.5) / 4, (np.floor(Y * 2) + 0.5) / 2),
    "modulate(other, 0.2)": img(X + 0.2 * Y * Y, Y + 0.2 * 0.3 * X),
    "modulate(me@y)": img(X + 0.1 * Y, Y + 0.1 * Y),
    "modulate_scale(other, 2)": at(POINTS / (1 + 2 * Y * Y)),
    "modulate_rotate(other, 2)": at(POINTS * np.exp(-2j * Y * Y)),
    "posterize(4)": np.searchsorted([0.25, 0.5, 0.75], img(X, Y), side="right") / 3,
    "threshold(0.4, 0.3)": step(img(X, Y), 0.4, 0.3),
    "threshold(0.4, 0)": img(X, Y) > 0.4,
    "luma_key(0.4, 0.2)": np.stack([*img(X, Y), step(light(img(X, Y)), 0.4, 0.2)]),
    "chroma_key(<0.2, 0.6, 0.1>, 0.4, 0.3)": np.stack(
        [*img(X, Y), step(np.linalg.norm(KEYED - light(KEYED), axis=0), 0.4, 0.3)]
    ),
    "layer(<me@x, 0.5, me@y, 0.25>)": 0.75 * img(X, Y) + 0.25 * np.stack([X, 0.5 + 0 * X, Y]),
    "vignette(0.8, 0.2)": img(X, Y) * (1 - 0.8 * (FAR * FAR * (3 - 2 * FAR))),
    "letterbox(4)": img(X, Y) * (np.abs(Y - 0.5) < 0.25),
    "letterbox(1)": img(X, Y) * (np.abs(X - 0.5) < 0.25),
}  # fmt: skip

MACHINES: dict[str, Executor] = {"vm": ReferenceExecutor()}
if executor_problem("native") is None:
    MACHINES["native"] = NativeExecutor(lanes=4)


@pytest.mark.long
@pytest.mark.parametrize("machine", MACHINES)
def test_each_word_is_its_formula(machine: str) -> None:
    before = "\n".join([IMG, OTHER, *(f"wet{n} = img |> {word}" for n, word in enumerate(WORDS))])
    channels = [f"wet{n}[{i}]" for n, expected in enumerate(WORDS.values()) for i in range(len(expected))]
    executor = MACHINES[machine]
    found = iter(values("std.picture", channels, X[0], Y[:, 0], TIME, before=before, executor=executor))
    for word, expected in WORDS.items():
        np.testing.assert_allclose([next(found) for _ in expected], expected, atol=2e-5, err_msg=word)


def test_names_are_kept_and_one_strand_is_a_picture_too() -> None:
    before = f"{IMG}\nturn = img |> turned(0.8) |> posterize(3) |> vignette()\none = me@x |> turned(0.8)"
    blue, third, one = values("std.picture", ["turn@b", "turn[2]", "one"], X[0], Y[:, 0], before=before)
    np.testing.assert_array_equal(blue, third)
    np.testing.assert_allclose(one, 0.5 + (POINTS * np.exp(-0.8j)).real / ASPECT, atol=1e-12)


def test_bars_pass_and_their_colours_are_apart() -> None:
    found = values("std.picture", [f"bars(6, 2, 0.2)@{name}" for name in "rgb"], X[0], Y[:, 0], z=TIME)
    for channel, shift in zip(found, (-0.2, 0, 0.2), strict=True):
        np.testing.assert_allclose(channel, np.sin(np.pi * (6 * X - 2 * TIME + shift)) ** 2, atol=1e-12)


def test_grain_is_new_in_each_frame_and_the_same_in_all_channels() -> None:
    before = f"{IMG}\ndirty = img |> grainy(0.5)"
    frames = [
        values("std.picture", ["dirty@r - img@r", "dirty@g - img@g"], X[0], Y[:, 0], before=before, frame=frame)
        for frame in (3, 4)
    ]
    for red, green in frames:
        np.testing.assert_allclose(red, green, atol=1e-12)
        assert 0.1 < np.abs(red).max() <= 0.25
    assert not np.allclose(frames[0][0], frames[1][0])


def test_a_picture_may_bend_itself_by_its_last_frame() -> None:
    text = f"{IMG}\no = img |> turned(0.8) |> modulate(prev(o), 0.1) |> saturate()\ndisplay(o)"
    (unit,) = compiled("std.picture", f"me<width> = 64\nme<height> = 32\n{text}")
    memory = StateMemory(unit.kernel.slots, X.shape, np.float64)
    executable = EXACT.load(unit.kernel)
    coords = {"x": X[0], "y": Y[:, 0], "abstime": 0.0, "channel": 0.0}
    launch = Launch(X.shape, coords, {name: SETTINGS[name] for name in unit.kernel.uniforms})
    first, second = (np.array(executable.planes(memory, launch)) for _ in range(2))
    np.testing.assert_allclose(first, np.clip(at(POINTS * np.exp(-0.8j)), 0, 1), atol=1e-6)
    bent = (X + 0.1 * first[0] - 0.5) * ASPECT + 1j * (Y + 0.1 * first[1] - 0.5)
    np.testing.assert_allclose(second, np.clip(at(bent * np.exp(-0.8j)), 0, 1), atol=1e-5)
