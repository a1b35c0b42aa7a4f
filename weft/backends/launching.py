"""Launches of kernels: what one is given in a tick, by what is the same for all subgraphs and by those it reads."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from weft.backends.base import Coordinator, Env
from weft.backends.launch import Getter, Launch, Value
from weft.codegen.base import Kernel
from weft.names import StrandRef


def tick(
    kernel: Kernel, env: Env, coordinator: Coordinator, shape: tuple[int, int], coords: Mapping[str, Value]
) -> Launch:
    """One tick of a kernel over a sweep of this shape (height, width), with its coordinates."""
    return Launch(
        shape=shape,
        coords=coords,
        uniforms={name: env.uniform(name) for name in kernel.uniforms},
        strands={ref: _getter(coordinator, ref) for ref in kernel.strands},
        pictures={path: env.pictures[path] for path in kernel.pictures},
        threads=env.threads,
        loop_stopped=lambda: env.loop_stopped(kernel.name),
    )


def at_points(
    kernel: Kernel, coords: Mapping[str, Value], env: Env, coordinator: Coordinator
) -> tuple[Launch, tuple[int, ...]]:
    """A kernel over points, at coordinates that broadcast together; and the shape that they broadcast to."""
    given = {**nowhere(env), **coords}
    arrays = np.broadcast_arrays(*(np.asarray(v, np.float64) for v in given.values()))
    flat = {name: np.ascontiguousarray(a).reshape(-1) for name, a in zip(given, arrays, strict=True)}
    launch = Launch(
        shape=(1, max(1, arrays[0].size)),
        coords=flat,
        uniforms={name: env.uniform(name) for name in kernel.uniforms},
        strands={other: _getter(coordinator, other) for other in kernel.strands},
        pictures={path: env.pictures[path] for path in kernel.pictures},
    )
    return launch, arrays[0].shape


def nowhere(env: Env) -> dict[str, Value]:
    """The coordinates of what is computed at no particular place."""
    return {"x": 0.5, "y": 0.5, "abstime": env.abstime, "channel": 0.0}


def _getter(coordinator: Coordinator, ref: StrandRef) -> Getter:
    """What reads a strand by value."""
    found = coordinator.lookup(ref)
    if not callable(found):
        raise TypeError(f"{ref} can only be bound, not read")
    getter: Getter = found
    return getter
