"""Launches of kernels: what one is given in a tick, by what is the same for all subgraphs and by those it reads."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from weft.backends.base import Coordinator, Env
from weft.backends.launch import Launch, Value
from weft.codegen.base import Kernel


def tick(
    kernel: Kernel, env: Env, coordinator: Coordinator, shape: tuple[int, int], coords: Mapping[str, Value]
) -> Launch:
    """One tick of a kernel over a sweep of this shape (height, width), with its coordinates."""
    return Launch(
        shape=shape,
        coords=coords,
        uniforms={name: env.uniform(name) for name in kernel.uniforms},
        strands={ref: coordinator.lookup(ref) for ref in kernel.strands},
        pictures={path: env.pictures[path] for path in kernel.pictures},
        threads=env.threads,
        loop_stopped=lambda: env.loop_stopped(kernel.name),
    )


def at_points(
    kernel: Kernel, coords: Mapping[str, Value], env: Env, coordinator: Coordinator
) -> tuple[Launch, tuple[int, ...]]:
    """A kernel over points, at coordinates that broadcast together; and the shape that they broadcast to."""
    given = {**nowhere(env), **coords}
    shape = np.broadcast_shapes(*map(np.shape, given.values()))
    launch = Launch(
        shape=(1, max(1, math.prod(shape))),
        coords={name: _row(value, shape) for name, value in given.items()},
        uniforms={name: env.uniform(name) for name in kernel.uniforms},
        strands={other: coordinator.lookup(other) for other in kernel.strands},
        pictures={path: env.pictures[path] for path in kernel.pictures},
    )
    return launch, shape


def _row(value: Value, shape: tuple[int, ...]) -> Value:
    """A coordinate of a list of points: a number as it is, else one for each point; that of a list, too, as it is."""
    if not np.ndim(value):
        return float(value)
    given = np.asarray(value, np.float64)
    return given if given.shape == shape and given.ndim == 1 else np.broadcast_to(given, shape).flatten()


def nowhere(env: Env) -> dict[str, Value]:
    """The coordinates of what is computed at no particular place."""
    return {"x": 0.5, "y": 0.5, "abstime": env.abstime, "channel": 0.0}
