"""A subgraph on a graphics card that draws or computes numbers, whatever the card."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.backends.asked_points import Fetch
from weft.backends.base import PictureHandle
from weft.backends.launch import Launch, Reals
from weft.backends.launch_numbers import Once
from weft.backends.memory import StateMemory
from weft.backends.shader_code import ShaderCode
from weft.backends.still import Stillness
from weft.codegen.unit import Unit
from weft.names import StrandRef


class CardPicture(PictureHandle):
    """A picture that was drawn to a place of its own, which is drawn to again in the tick behind the next."""

    def __init__(self, shape: tuple[int, int]) -> None:
        """`shape` is height and width."""
        self._shape = shape
        self._pixels: npt.NDArray[np.uint8] | None = None

    @property
    def shape(self) -> tuple[int, int, int]:
        return (*self._shape, 4)

    def read(self) -> npt.NDArray[np.uint8]:
        if self._pixels is None:
            self._pixels = self.fetched()
        return self._pixels

    @abstractmethod
    def fetched(self) -> npt.NDArray[np.uint8]:
        """The pixels, of which they are a copy; waits until they are drawn."""


class CardCompiled(ABC):
    """A subgraph that is ready to run. The memory is bound to the size of the picture it was made for."""

    unit: Unit
    code: ShaderCode
    memory: StateMemory
    stillness: Stillness
    drawn: PictureHandle | None
    """The picture of the last tick."""

    @property
    @abstractmethod
    def once(self) -> Once:
        """What is computed once in a tick."""

    @property
    @abstractmethod
    def device(self) -> object:
        """Where it runs: what lies there can be bound by all that run there."""

    @abstractmethod
    def can_bind(self, ref: StrandRef) -> bool:
        """Whether the values of a strand that others read can be left on the card."""

    @abstractmethod
    def ask(self, ref: StrandRef, launch: Launch) -> Fetch:
        """Asks for a strand at the points of a launch, as it was in the tick finished last, and waits for nothing if
        the card computes it. Gives what fetches the values."""

    def value_at(self, ref: StrandRef, launch: Launch) -> npt.NDArray[Any]:
        """The same, and the values; in one go."""
        return self.ask(ref, launch)()

    @abstractmethod
    def bound_at(self, ref: StrandRef, launch: Launch) -> Any:
        """A value for each point of a launch, left on the card in the form that programs bind. Waits for nothing."""

    @abstractmethod
    def draw(self, launch: Launch) -> PictureHandle | None:
        """One tick: draws a picture, and advances the state. None if it has no outputs, and only remembers."""

    @abstractmethod
    def planes(self, launch: Launch) -> Reals:
        """One tick: gives the outputs as they are [outputs, height, width], and advances the state."""

    def picture(self, launch: Launch) -> PictureHandle | None:
        """One tick, like `draw`; but gives the last picture if nothing in it moves."""
        if self.drawn is not None and self.stillness.lasts(launch):
            return self.drawn
        self.drawn = self.draw(launch)
        self.stillness.drew(launch)
        return self.drawn

    def run(
        self, memory: StateMemory, launch: Launch, sync: bool = True, out: npt.NDArray[Any] | None = None
    ) -> npt.NDArray[Any]:
        if memory is not self.memory:
            raise ValueError("a subgraph on the graphics card runs on its own memory")
        shown = self.picture(launch) if self.code.grid.packed else None
        found: npt.NDArray[Any] = self.planes(launch) if shown is None else shown.read()
        if out is None:
            return found
        np.copyto(out, found)
        return out

    def dump(self) -> str:
        return self.code.grid.text
