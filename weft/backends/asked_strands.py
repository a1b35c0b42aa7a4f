"""Strands of other subgraphs that a program on a card reads at places of its own: asked for before it is launched, all
places at once. What lies on the same card is bound, everything else is sent there."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from weft.backends.base import Bindable
from weft.backends.interpreter import Machine
from weft.backends.launch import Launch, Value, picture_coords
from weft.backends.vector_nodes import Calls, Values
from weft.codegen.base import Kernel
from weft.codegen.clike.asking import ReadSite
from weft.codegen.clike.read import strands_of
from weft.codegen.values import Node
from weft.ir.rates import Rate

Singles: TypeAlias = npt.NDArray[np.float32]

Answers: TypeAlias = "Mapping[str, Singles | Any]"
"""By the keys of a program's strands: a value for each place, in single precision; or what the card has of them, as a
handle gave it."""

# What changes from launch to launch, and with it the places that are computed from it.
_CHANGING = frozenset({"scalar", "strand", "picture"})


class StrandReads:
    """What one program is given of other subgraphs' strands."""

    def __init__(self, kernel: Kernel) -> None:
        """Raises UnsuitableError for a kernel whose program could not be given them."""
        self._kernel = kernel
        self._asked = [_StrandRead(asking, kernel.sweep == "grid") for asking in strands_of(kernel)]

    def nothing(self) -> Answers:
        """Something in the place of answers, for a launch that nobody sees: one value for each strand."""
        return {strand.key: np.zeros(1, np.float32) for strand in self._asked}

    def most(self, shape: tuple[int, int]) -> int:
        """How many values the largest answer has to a launch of this shape."""
        return max((math.prod(strand.places(shape)) for strand in self._asked), default=0)

    def answers(self, machine: Machine, device: object) -> Answers:
        """Asks for a launch, of which the machine has run what comes once. `device` is where the program runs."""
        if not self._asked:
            return {}
        launch = machine.launch
        values = Values(machine, _lines(self._kernel, launch))
        with np.errstate(all="ignore"):
            return {strand.key: strand.answer(values, launch, device) for strand in self._asked}


class _StrandRead:
    """One strand, read at certain places."""

    def __init__(self, asking: ReadSite, in_place: bool) -> None:
        """`in_place` says that elements are where they are in every launch of a shape."""
        self.key = asking.asked.key
        self._ref = asking.asked.strand
        self._over = asking.asked.over
        self._coordinates = asking.coordinates
        self._calls = Calls(asking.before)
        self._steady = in_place and not any(_changes(node) for node in (*asking.before, *asking.coordinates))
        self._places: tuple[tuple[int, int], list[Value]] | None = None
        """Places that stay, for a launch of this shape."""

    def answer(self, values: Values, launch: Launch, device: object) -> Singles | Any:
        reads = launch.strands[self._ref]
        places = self._at(values, launch)
        bound = reads.bound(device, *places) if isinstance(reads, Bindable) else None
        if bound is not None:
            return bound
        found = np.asarray(reads(*places), np.float32)
        return np.ascontiguousarray(np.broadcast_to(found, math.prod(self.places(launch.shape))))

    def _at(self, values: Values, launch: Launch) -> list[Value]:
        """The coordinates: numbers, or a row of them with one for each place. Rows that nobody may write to stay as
        they are."""
        if self._places is not None and self._places[0] == launch.shape:
            return self._places[1]
        self._calls.run(values)
        found = [self._spread(values[node], launch) for node in self._coordinates]
        if self._steady:
            for rows in found:
                if isinstance(rows, np.ndarray):
                    rows.setflags(write=False)
            self._places = launch.shape, found
        return found

    def _spread(self, coordinate: Any, launch: Launch) -> Value:
        if not np.ndim(coordinate):
            return float(coordinate)
        return np.broadcast_to(coordinate, self.places(launch.shape)).flatten()

    def places(self, shape: tuple[int, int]) -> tuple[int, int]:
        """How many places there are in a launch of this shape: one above the other, and side by side."""
        if Rate.ELEMENT in self._over:
            return shape
        height, width = shape
        return height if Rate.ROW in self._over else 1, width if Rate.COLUMN in self._over else 1


def _changes(node: Node) -> bool:
    return node.op in _CHANGING or any(arg.op in _CHANGING for arg in node.args)


def _lines(kernel: Kernel, launch: Launch) -> dict[str, npt.NDArray[Any]]:
    """The coordinates that change, so that they spread over the launch [height, width]."""
    if kernel.sweep == "points":
        return {name: np.atleast_2d(np.asarray(launch.coords[name], np.float64)) for name, _ in kernel.coords}
    height, width = launch.shape
    across = picture_coords(width, height)
    return {"x": np.asarray(across["x"])[np.newaxis, :], "y": np.asarray(across["y"])[:, np.newaxis]}
