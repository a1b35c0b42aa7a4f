"""Kernels: what code generation hands to a backend."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from weft.codegen.values import Node, Section
from weft.ir.expr import StateSlot, StrandRef
from weft.ir.rates import Rate
from weft.ops.spec import ValueType

# A loop stops after this many steps, and a nest of loops after so many in all its loops together: for each element,
# on every backend, with a warning. Nothing that a patch asks for may hang the performance.
LOOP_STEPS = 4096
NEST_STEPS = 65_536


@dataclass(frozen=True, slots=True)
class Allocation:
    """A local: a value of one section (`rate`) that others read. It takes one number a frame, a column, a row or an
    element. `name` says which strand it came from, for people."""

    name: str
    rate: Rate
    type: ValueType

    @property
    def itemsize(self) -> int:
        """Bytes of one value, with reals in single precision."""
        return 1 if self.type == "truth" else 4

    def count(self, shape: tuple[int, int]) -> int:
        """How many values it takes for a picture of this shape (height, width)."""
        height, width = shape
        return {Rate.COLUMN: width, Rate.ROW: height, Rate.ELEMENT: height * width}.get(self.rate, 1)


@dataclass(frozen=True, slots=True)
class Kernel:
    """One program over the sweep of a context.

    `grid` kernels compute `outputs` at every element and advance `slots`; `points` kernels compute one exposed strand
    at any list of coordinates, and only read state: as it was in the tick that was finished last.
    """

    name: str
    context: str
    sweep: Literal["grid", "points"]
    tick: Literal["launch", "element"]
    """When state advances: at the end of a launch (a frame), or after every element (a sample)."""
    sections: tuple[Section, ...]
    outputs: tuple[str, ...]
    coords: tuple[tuple[str, Rate], ...]
    """The base coordinates that it reads, and how often each changes."""
    uniforms: tuple[str, ...]
    strands: tuple[StrandRef, ...]
    pictures: tuple[str, ...]
    slots: tuple[StateSlot, ...]
    locals: tuple[Allocation, ...]

    def section(self, rate: Rate) -> Section:
        """The section of a rate; an empty one where the kernel has none."""
        return next((s for s in self.sections if s.rate == rate), Section(rate))

    def slot(self, key: str) -> StateSlot:
        """The state slot of a key. Raises KeyError if the kernel has no such slot."""
        for slot in self.slots:
            if slot.key == key:
                return slot
        raise KeyError(key)

    def walk(self) -> Iterator[tuple[Rate, Node]]:
        """Every value, with the rate of its section."""
        for section in self.sections:
            for node in section.walk():
                yield section.rate, node
