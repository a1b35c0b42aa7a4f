"""Signed distances to outlines, by looking at every edge of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.std.values import Values

# Edges of a full turn: the distance to them is within r · 1e-5 of that to the circle.
FINE = 800


def turn(radius: float, start: float = 0, end: float = 2 * np.pi, centre: Sequence[float] = (0, 0)) -> Values:
    """Points of a part of a circle."""
    angles = np.linspace(start, end, FINE + 1)
    return np.stack([centre[0] + radius * np.cos(angles), centre[1] + radius * np.sin(angles)], -1)


def polygon(*corners: Any) -> Values:
    return np.array(corners, float)


def star(n: int, radius: float, inner: float) -> Values:
    """Tips and the corners between them, from the top on."""
    angles = np.arange(2 * n) * np.pi / n - np.pi / 2
    radii = np.where(np.arange(2 * n) % 2, inner, radius)
    return np.stack([radii * np.cos(angles), radii * np.sin(angles)], -1)


def signed_distance(outlines: Sequence[Values], x: Values, y: Values) -> Values:
    """From each point to the nearest edge of closed outlines; negative where an odd number of edges lies to the
    right."""
    nearest = np.full(x.shape, np.inf)
    inside = np.zeros(x.shape, bool)
    for outline in outlines:
        start, end = outline, np.roll(outline, -1, 0)
        edge = end - start
        px, py = x[..., None] - start[:, 0], y[..., None] - start[:, 1]
        length = (edge**2).sum(1)
        along = np.clip((px * edge[:, 0] + py * edge[:, 1]) / np.where(length == 0, 1, length), 0, 1)
        nearest = np.minimum(nearest, np.hypot(px - along * edge[:, 0], py - along * edge[:, 1]).min(-1))
        crosses = (start[:, 1] > y[..., None]) != (end[:, 1] > y[..., None])
        rise = np.where(edge[:, 1] == 0, 1, edge[:, 1])
        inside ^= (crosses & (px < py / rise * edge[:, 0])).sum(-1) % 2 == 1
    return np.where(inside, -nearest, nearest)


def turned_solid(profile: Values) -> Callable[[Values, Values, Values], Values]:
    """The solid that an outline makes when it turns around the y axis, on both sides of which it lies."""
    return lambda x, y, z: signed_distance([profile], np.hypot(x, z), y)
