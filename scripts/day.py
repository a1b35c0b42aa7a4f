"""Writes patches/media/day.mp4, the film of patches/scratch.weft: .venv/bin/python scripts/day.py

A runner, and a day that goes by in eight seconds. Whatever moves comes back to where it began after 192 frames.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

PATH = Path(__file__).parents[1] / "patches" / "media" / "day.mp4"
WIDTH, HEIGHT, FPS, FRAMES = 480, 270, 24, 192

# How often each comes by in the film: steps of the runner, and what he passes, from near to far.
STEPS, TREES, HILLS, MOUNTAINS = 16, 2, 2, 1

Plane: TypeAlias = NDArray[np.float64]
Point: TypeAlias = tuple[float, float]

Y, X = (np.indices((HEIGHT, WIDTH)) + 0.5) / HEIGHT
MIDDLE = WIDTH / HEIGHT / 2
EDGE = 1 / HEIGHT


def colour(*rgb: float) -> Plane:
    return np.array(rgb)


NIGHT, DAWN, NOON = colour(0.06, 0.09, 0.22), colour(0.98, 0.50, 0.28), colour(0.45, 0.70, 0.92)


def covered(distance: Plane) -> Plane:
    """How much of each pixel is within an outline."""
    return np.clip(0.5 - distance / EDGE, 0, 1)


def limb(a: Point, b: Point, thick: float) -> Plane:
    """The distance to a line with round ends."""
    across, down = b[0] - a[0], b[1] - a[1]
    way = np.clip(((X - a[0]) * across + (Y - a[1]) * down) / (across**2 + down**2), 0, 1)
    return np.hypot(X - a[0] - way * across, Y - a[1] - way * down) - thick


def disc(centre: Point, radius: float) -> Plane:
    return np.hypot(X - centre[0], Y - centre[1]) - radius


def reach(start: Point, angle: float, length: float) -> Point:
    """A point below another one, where the angle is 0; forwards is to the right."""
    return start[0] + np.sin(angle) * length, start[1] + np.cos(angle) * length


def runner(turn: float) -> Plane:
    """The distance to a runner, `turn` radians into a double step."""
    hip = MIDDLE, 0.655 - 0.012 * np.cos(2 * turn)
    neck = reach(hip, np.pi - 0.16, 0.115)
    head = reach(neck, np.pi - 0.25, 0.04)
    parts = [limb(hip, neck, 0.021), disc(head, 0.024)]
    for phase in (turn, turn + np.pi):
        thigh = 0.22 + 0.72 * np.sin(phase)
        knee = reach(hip, thigh, 0.085)
        foot = reach(knee, thigh - 0.35 - 1.15 * max(0.0, np.sin(phase - 1.9)), 0.09)
        parts += [limb(hip, knee, 0.015), limb(knee, foot, 0.011), limb(foot, (foot[0] + 0.022, foot[1]), 0.008)]
        upper = 0.75 * np.sin(phase + np.pi) - 0.1
        elbow = reach((neck[0], neck[1] + 0.015), upper, 0.06)
        parts += [limb(neck, elbow, 0.010), limb(elbow, reach(elbow, upper + 1.35, 0.055), 0.008)]
    return np.minimum.reduce(parts)


def trees(p: float) -> Plane:
    """The distance to the trees that pass."""
    apart, parts = 0.75, []
    for number in range(5):
        x = (number * apart - p * TREES * apart * 5) % (apart * 5) - 0.5
        tall = 0.17 + 0.06 * ((number * 3) % 5) / 4
        top = 0.84 - tall
        parts += [limb((x, 0.86), (x, top), 0.008), disc((x, top), 0.055), disc((x + 0.035, top + 0.035), 0.038)]
        parts.append(disc((x - 0.035, top + 0.03), 0.042))
    return np.minimum.reduce(parts)


def ridge(height: float, steep: float, waves: int, p: float, times: int) -> Plane:
    """Whether a place is below a row of hills, which has a length of 2 and passes `times` in the film."""
    place = np.pi * X + 2 * np.pi * times * p
    line = height - steep * (np.sin(waves * place) + 0.5 * np.sin(2 * waves * place + 1) + 0.3 * np.sin(place))
    return covered(line - Y)


def frame(number: int) -> NDArray[np.uint8]:
    """A frame [height, width, 3]."""
    p = number / FRAMES
    around = 2 * np.pi * p - 0.35
    up = np.sin(around)
    day, glow = np.clip(0.5 + 1.4 * up, 0, 1), np.exp(-((up / 0.28) ** 2))
    sun = MIDDLE - 0.80 * np.cos(around), 0.74 - 0.60 * up
    moon = MIDDLE + 0.80 * np.cos(around), 0.74 + 0.60 * up
    depth = np.clip(Y / 0.8, 0, 1)[..., np.newaxis]
    sky = (NIGHT + (NOON - NIGHT) * day) * (0.75 + 0.35 * depth)
    warmth = glow * np.exp(-((X - sun[0]) ** 2 + 3 * (Y - 0.74) ** 2) * 2.5) + 0.35 * glow * depth[..., 0] ** 2
    picture = sky + (DAWN - sky) * np.clip(warmth, 0, 1)[..., np.newaxis]
    around_sun = np.exp(-disc(sun, 0.05).clip(0) * 9)[..., np.newaxis] * (0.25 + 0.2 * glow)
    picture = picture + around_sun * colour(1, 0.85, 0.55) * np.clip(up * 4 + 1, 0, 1)
    for at, colours, radius in ((sun, colour(1, 0.93, 0.72), 0.05), (moon, colour(0.86, 0.90, 0.98), 0.036)):
        picture += (colours - picture) * covered(disc(at, radius))[..., np.newaxis]
    far = sky.mean() * colour(0.75, 0.80, 1.0)
    for cover, tint in (
        (ridge(0.66, 0.050, 3, p, MOUNTAINS), far * 0.80 + DAWN * 0.10 * glow),
        (ridge(0.74, 0.030, 2, p, HILLS), far * 0.48),
        (covered(trees(p)), far * 0.22 + 0.008),
        (covered(0.845 + 0.004 * np.sin(7 * X) - Y), far * 0.16 + 0.006),
        (covered(runner(2 * np.pi * p * STEPS)), colour(0.02, 0.02, 0.04) + 0.03 * day),
    ):
        picture += (tint - picture) * cover[..., np.newaxis]
    return (np.clip(picture, 0, 1) ** 0.85 * 255).round().astype(np.uint8)


def frames() -> Iterator[NDArray[np.uint8]]:
    return map(frame, range(FRAMES))


def write(path: Path) -> None:
    import av

    # A key frame for every half second, so that scratching finds its way quickly.
    options = {"crf": "30", "preset": "veryslow", "g": "12", "x264-params": "info=0"}
    with av.open(str(path), "w", options={"movflags": "faststart"}) as container:
        stream: Any = container.add_stream("libx264", rate=FPS, options=options)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        for picture in frames():
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode())


if __name__ == "__main__":
    write(PATH)
    print(f"{PATH.name}: {PATH.stat().st_size:,} bytes")
