"""What a subgraph remembers, on the graphics card: images in textures, single numbers with the processor."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from weft.backends.gl.graphics import ContextState, Graphics
from weft.backends.gl.resizing import Resizer
from weft.backends.gl.textures import TextureArray
from weft.backends.launch import Reals
from weft.backends.memory import StateMemory, in_size
from weft.ir.expr import StateSlot


class GlMemory(StateMemory):
    """Rings of layers for slots that are images; all else as in any memory.

    The layers of a slot lie plane after plane and cell after cell.
    """

    def __init__(self, graphics: Graphics, place: ContextState, slots: Iterable[StateSlot], shape: tuple[int, int]) -> None:
        """Zeroed. In a context of the graphics. Raises WeftError for what the card cannot hold."""
        super().__init__(slots, shape)
        self.graphics = graphics
        self._read_back: tuple[tuple[int, int], StateMemory] | None = None
        """What was read back last, and when."""
        self.layers = {
            slot.key: TextureArray(graphics, place, shape, (slot.depth + 1) * slot.planes)
            for slot in self.slots.values()
            if slot.image
        }

    def here(self) -> StateMemory:
        known = self.ticks, self.takeovers
        if self._read_back is None or self._read_back[0] != known:
            self._read_back = known, self.read()
        return self._read_back[1]

    def _is_here(self, slot: StateSlot) -> bool:
        return not slot.image

    def ring(self, key: str) -> Reals:
        """All cells of a slot; those of an image are read back, and to change them changes nothing."""
        if key not in self.layers:
            return super().ring(key)
        slot = self.slots[key]
        with self.graphics.drawing() as place:
            return self.layers[key].read(place).reshape(slot.depth + 1, slot.planes, *self.shape)

    def planes(self, key: str, ticks_ago: int) -> Reals:
        if key not in self.layers:
            return super().planes(key, ticks_ago)
        planes = self.slots[key].planes
        with self.graphics.drawing() as place:
            return self.layers[key].read(place, int(self.cell(key, ticks_ago)) * planes, planes)

    def _adopt_slot(self, key: str, old: StateMemory, copy: bool) -> None:
        if key not in self.layers:
            super()._adopt_slot(key, old, copy)
        elif isinstance(old, GlMemory) and old.graphics is self.graphics:
            self._adopt_layers(key, old, copy)
        else:
            self._upload(key, old)

    def _adopt_layers(self, key: str, old: GlMemory, copy: bool) -> None:
        mine, its = self.layers[key], old.layers[key]
        if not copy and (mine.shape, mine.count) == (its.shape, its.count):
            self.layers[key] = its
            self._offsets[key] = old.ticks + old._offsets[key] - self.ticks
            return
        with self.graphics.drawing() as place:
            if mine is its:
                # It was taken over in the other direction before.
                mine = self.layers[key] = TextureArray(self.graphics, place, self.shape, its.count)
            resizer = Resizer(self.graphics)
            planes = self.slots[key].planes
            for ticks_ago in range(1, 1 + self._common(key, old)):
                to, of = (int(m.cell(key, ticks_ago)) * planes for m in (self, old))
                for plane in range(planes):
                    resizer.copy(place, its, of + plane, mine, to + plane)

    def _upload(self, key: str, old: StateMemory) -> None:
        """Takes over what memory elsewhere has of an image slot."""
        its, planes = old.ring(key), self.slots[key].planes
        with self.graphics.drawing():
            for ticks_ago in range(1, 1 + self._common(key, old)):
                images = in_size(np.asarray(its[old.cell(key, ticks_ago)]), self.shape)
                self.layers[key].fill(int(self.cell(key, ticks_ago)) * planes, images)
