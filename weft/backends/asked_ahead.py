"""Strands on devices that a kernel reads once a tick, place by place: found out before it runs, so that all of them are
asked for at once, and a device is waited for once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TypeAlias

import numpy as np

from weft.backends.base import Env
from weft.backends.launch import Launch, Value
from weft.backends.launch_numbers import Once
from weft.backends.launching import nowhere
from weft.backends.memory import StateMemory
from weft.codegen.base import Kernel
from weft.ir.rates import Rate
from weft.names import StrandRef

Place: TypeAlias = tuple[float, ...]
"""The coordinates of one read."""

# Of a loop that reads at more places than this, the others are read one by one.
_MOST = 4096


class Prefetch:
    """Where a kernel will read strands in a tick."""

    def __init__(self, kernel: Kernel, refs: Collection[StrandRef]) -> None:
        """`refs` are what is worth asking for ahead."""
        self._kernel = kernel
        self._refs = refs
        self._once = Once(kernel)

    def places(self, memory: StateMemory, env: Env) -> dict[StrandRef, list[Place]]:
        """The places, each once. What comes once a tick is run through for that, with 0 for every strand: a place that
        depends on another strand may be missing, and one that nobody will read may be among them."""
        found: dict[StrandRef, dict[Place, None]] = {ref: {} for ref in self._refs}

        def reader(ref: StrandRef) -> Callable[..., Value]:
            places = found.get(ref, {})

            def read(*place: Value) -> float:
                if len(places) < _MOST:
                    places[tuple(map(float, place))] = None
                return 0.0

            return read

        kernel = self._kernel
        launch = Launch(
            shape=(1, 1),
            coords=nowhere(env),
            uniforms={name: env.uniform(name) for name in kernel.uniforms},
            strands={ref: reader(ref) for ref in kernel.strands},
            pictures={path: env.pictures[path] for path in kernel.pictures},
        )
        self._once.begin(memory, launch)
        return {ref: list(places) for ref, places in found.items() if places}


def prefetch_of(kernel: Kernel, on_devices: Collection[StrandRef]) -> Prefetch | None:
    """What finds out where a kernel reads strands that are on devices; None where there is at most one such place, so
    that nothing is to be gained, or where to find out would take another wait."""
    reads = list(_reads(kernel, on_devices))
    samples = any(node.op == "sample" for node in kernel.section(Rate.FRAME).walk())
    if kernel.tick != "launch" or samples or not (len(reads) > 1 or any(in_loop for _, in_loop in reads)):
        return None
    return Prefetch(kernel, frozenset(ref for ref, _ in reads))


def _reads(kernel: Kernel, refs: Collection[StrandRef]) -> Iterator[tuple[StrandRef, bool]]:
    """The strands among these that are read once a tick, and whether it is in a loop."""
    section = kernel.section(Rate.FRAME)
    outside = set(section.nodes)
    for node in section.walk():
        if node.op == "strand" and node.attr in refs:
            yield node.attr, node not in outside


def rows(places: list[Place], over: tuple[str, ...]) -> Mapping[str, Value]:
    """Places as coordinates: a row of each."""
    return {name: np.array(values) for name, values in zip(over, zip(*places, strict=True), strict=True)}
