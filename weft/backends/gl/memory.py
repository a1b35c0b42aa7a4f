"""The state of programs on the graphics card: images in textures, and the programs that resize and survey them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any

import numpy as np

from weft.backends.card_memory import CardState
from weft.backends.gl.egl import GraphicsError
from weft.backends.gl.graphics import GL, ContextState, Graphics
from weft.backends.gl.programs import OWN_REFUSED, drawing, linked
from weft.backends.gl.textures import Buffer, Layers, Texture, TextureArray, aside, attach, bind, check_layers
from weft.backends.launch import Floats, StateMemory, continues, make_finite, shape_of_level
from weft.codegen.glsl import SURVEYED, array_of, resampling, surveying
from weft.ir.expr import StateSlot


class Resizer:
    """Copies images of rings in another size, with the same sampling that programs use for state."""

    def __init__(self, graphics: Graphics) -> None:
        """In a context of the graphics."""
        self._copies = graphics.about.able.copies_layers
        self._program: Any = linked(drawing(resampling()), OWN_REFUSED)
        self._layer = GL.glGetUniformLocation(self._program, "layer")
        self._size = GL.glGetUniformLocation(self._program, "size")

    def copy(self, source: Layers, layer: int, to: Layers, to_layer: int) -> None:
        """Fills a layer with the image of another."""
        if to.shape == source.shape and self._copies:
            kind, (height, width) = GL.GL_TEXTURE_2D_ARRAY, to.shape
            of, at = source.first + layer, to.first + to_layer
            GL.glCopyImageSubData(source.number, kind, 0, 0, 0, of, to.number, kind, 0, 0, 0, at, width, height, 1)
            return
        GL.glUseProgram(self._program)
        GL.glUniform1i(self._layer, source.first + layer)
        GL.glUniform2f(self._size, to.shape[1], to.shape[0])
        bind(0, GL.GL_TEXTURE_2D_ARRAY, source.number)
        _draw_aside(to.shape, to.number, to.first + to_layer)


class Surveyor:
    """Looks for values that are not finite in images, without reading them back."""

    def __init__(self, graphics: Graphics) -> None:
        """In a context of the graphics."""
        self._graphics = graphics
        self._program: Any = linked(drawing(surveying()), OWN_REFUSED)
        self._first = GL.glGetUniformLocation(self._program, "first")
        self._count = GL.glGetUniformLocation(self._program, "count")

    def begin(self, layers: Layers, first: int, count: int) -> Survey:
        """Has the card look at some layers. Does not wait."""
        survey = Survey(self._graphics)
        GL.glUseProgram(self._program)
        GL.glUniform1i(self._first, layers.first + first)
        GL.glUniform1i(self._count, count)
        bind(0, GL.GL_TEXTURE_2D_ARRAY, layers.number)
        _draw_aside(survey.texture.shape, survey.texture.number, None)
        survey.texture.begin_read()
        return survey


class Survey:
    """A look at images that the card takes in its own time."""

    def __init__(self, graphics: Graphics) -> None:
        self.texture = Texture(graphics, (SURVEYED, SURVEYED))

    def is_finite(self) -> bool:
        """What it has found; waits for it."""
        found = np.empty((*self.texture.shape, 4), np.uint8)
        self.texture.end_read(found)
        return not found.any()


def _draw_aside(shape: tuple[int, int], texture: Any, layer: int | None) -> None:
    """Draws over a texture, or a layer of it, with the current program."""
    with aside():
        attach(0, texture, layer)
        GL.glViewport(0, 0, shape[1], shape[0])
        GL.glDrawArrays(GL.GL_TRIANGLES, 0, 3)


# The most bytes of room that are made ready for images which will be uploaded.
_MOST_ROOM = 256_000_000


class GlMemory(CardState):
    """State with images in layers of textures, and single numbers in the memory of the CPU.

    The layers of a slot are in the order of its cells, and in each cell in the order of its planes. Slots share a
    texture where their programs expect it (`array_of`). A program that continues another one uses the same textures, as
    long as there is room in them for what is new: then what is remembered stays where it is.
    """

    def __init__(self, graphics: Graphics, slots: Iterable[StateSlot], shape: tuple[int, int]) -> None:
        """Zeroed memory. In a context of the graphics. Raises WeftError if the card cannot take it."""
        super().__init__(slots, shape)
        self.graphics = graphics
        self._layers: dict[str, Layers] = {}
        self._arrays: dict[str, TextureArray] = {}
        """The textures, by their keys."""
        self._surveys: dict[str, Survey] = {}
        self._by_way_of: dict[str, Buffer] = {}
        """Room for the images that will be uploaded."""
        self._back_by: dict[str, Buffer] = {}
        """Room for the images that will be read."""
        self._images = [slot.key for slot in self.slots.values() if slot.image]
        self._sharing: dict[str, list[str]] = {}
        """The slots of each texture."""
        for key in self._images:
            self._sharing.setdefault(array_of(self.slots[key]), []).append(key)
        for keys in self._sharing.values():
            check_layers(graphics, self._stack(keys[0])[0], sum(map(self._count, keys)))
        if self._images and not graphics.about.software:
            graphics.own(Surveyor)  # now, not between two frames

    def layers(self, key: str) -> Layers:
        """The images of a slot, which are made when they are first needed. In a context of the graphics."""
        found = self._layers.get(key)
        if found is None:
            self._make([key])
            found = self._layers[key]
        return found

    def first_layer(self, key: str) -> int:
        return self.layers(key).first

    def complete(self) -> None:
        """Makes all images that are missing. In a context of the graphics, whose bound textures this changes."""
        if len(self._layers) < len(self._images):
            for keys in self._sharing.values():
                if missing := [key for key in keys if key not in self._layers]:
                    self._make(missing)

    def _stack(self, key: str) -> tuple[tuple[int, int], int]:
        """The shape (height, width) and the number of the images of a slot."""
        slot = self.slots[key]
        return shape_of_level(self.shape, slot.level), (slot.depth + 1) * slot.planes

    def _count(self, key: str) -> int:
        return self._stack(key)[1]

    def _make(self, missing: Sequence[str]) -> None:
        """Makes the images of some slots that share a texture: in the one that others have already, or else in a new
        one with all of them."""
        name = array_of(self.slots[missing[0]])
        array = self._arrays.get(name)
        taken = array.take(map(self._count, missing)) if array is not None else None
        if taken is not None:
            self._layers.update(zip(missing, taken, strict=True))
            return
        keys = self._sharing[name]
        count = sum(map(self._count, keys))
        spare = 0 if name in self.slots else max(4, count // 2)
        array = TextureArray(self.graphics, self._stack(keys[0])[0], count, spare)
        moved = array.take(map(self._count, keys)) or []
        before = [self._layers.get(key) for key in keys]
        self._arrays[name] = array
        self._layers.update(zip(keys, moved, strict=True))
        if any(before):
            resizer = self.graphics.own(Resizer)
            for source, to in zip(before, moved, strict=True):
                if source is not None:
                    for layer in range(to.count):
                        resizer.copy(source, layer, to, layer)

    def allocate(self, old: Iterable[StateMemory] = ()) -> None:
        old = tuple(old)
        for name, keys in self._sharing.items():
            shape, _ = self._stack(keys[0])
            for each in old:
                if isinstance(each, GlMemory) and each.graphics is self.graphics and name not in self._arrays:
                    array = each._arrays.get(name)
                    if array is not None and array.shape == shape:
                        self._arrays[name] = array
        super().allocate(old)
        shared = self._shared(old)
        wanted = [
            [key for key in keys if key not in self._layers and key not in shared] for keys in self._sharing.values()
        ]
        arriving = [key for key in self._images if self._is_uploaded(key, old)]
        is_much = sum(map(self.bytes_of, arriving)) > _MOST_ROOM

        def make(_: ContextState) -> None:
            for keys in filter(None, wanted):
                self._make(keys)
            for key in () if is_much else arriving:
                # A driver finds memory for a buffer when it is first written to.
                self._by_way_of[key] = room = Buffer(self.graphics)
                room.fill(GL.GL_PIXEL_UNPACK_BUFFER, np.zeros(*self._form(key)))
                GL.glBindBuffer(GL.GL_PIXEL_UNPACK_BUFFER, 0)

        if any(wanted) or (arriving and not is_much):
            self.graphics.prepared(make)

    def _is_uploaded(self, key: str, old: Iterable[StateMemory]) -> bool:
        """Whether a slot continues one of a memory that is not on this card."""
        others = (each for each in old if not (isinstance(each, GlMemory) and each.graphics is self.graphics))
        return any(continues(self.slots[key], each.slots.get(key)) for each in others)

    def expect_read(self, keys: Collection[str]) -> None:
        wanted = [key for key in keys if key in self._layers and key not in self._back_by]
        is_much = sum(map(self.bytes_of, wanted)) > _MOST_ROOM
        if not wanted or is_much or not self.graphics.about.able.reads_layers:
            return

        def make(_: ContextState) -> None:
            for key in wanted:
                room, nothing = Buffer(self.graphics), np.empty(*self._form(key))
                room.make_room(GL.GL_PIXEL_PACK_BUFFER, nothing.nbytes, GL.GL_STREAM_READ)
                # A driver finds memory for a buffer when it is first used: this reads what nobody needs.
                self._layers[key].begin_read(room)
                room.copy_to(GL.GL_PIXEL_PACK_BUFFER, nothing)
                GL.glBindBuffer(GL.GL_PIXEL_PACK_BUFFER, 0)
                self._back_by[key] = room

        with suppress(GraphicsError):  # it is told when the images are read
            self.graphics.prepared(make)

    def read(self, into: StateMemory | None = None) -> StateMemory:
        with self._entered():
            for key, room in list(self._back_by.items()):  # another thread may add to it
                self.layers(key).begin_read(room)
            return super().read(into)

    def _entered(self) -> AbstractContextManager[object]:
        """The context for drawing, entered once for all images. Numbers can be read and written without it."""
        return self.graphics.drawing() if self._images else nullcontext()

    def _read_ring(self, key: str, into: Floats) -> None:
        if not self.slots[key].image:
            super()._read_ring(key, into)
            return
        with self.graphics.drawing():
            room = self._back_by.get(key)
            if room is not None:
                room.copy_to(GL.GL_PIXEL_PACK_BUFFER, into)
                GL.glBindBuffer(GL.GL_PIXEL_PACK_BUFFER, 0)
                return
            layers = self.layers(key)
            layers.read_into(into.reshape(layers.count, *layers.shape))

    def _can_share(self, key: str, old: StateMemory) -> bool:
        if not self.slots[key].image:
            return super()._can_share(key, old)
        if not isinstance(old, GlMemory) or not old.slots[key].image or old._stack(key) != self._stack(key):
            return False
        array = self._arrays.get(array_of(self.slots[key]))
        return array is not None and array is old._arrays.get(array_of(old.slots[key]))

    def ring(self, key: str) -> Floats:
        """All cells of a slot. Those of an image are a copy that was read back: changing it has no effect."""
        slot = self.slots[key]
        if not slot.image:
            return super().ring(key)
        with self.graphics.drawing():
            layers = self.layers(key)
            return layers.read().reshape(slot.depth + 1, slot.planes, *layers.shape)

    def planes(self, key: str, ticks_ago: int) -> Floats:
        if not self.slots[key].image:
            return super().planes(key, ticks_ago)
        planes = self.slots[key].planes
        with self.graphics.drawing():
            return self.layers(key).read(int(self.cell(key, ticks_ago)) * planes, planes)

    def is_finite(self, key: str) -> bool:
        """The result of the last look. Has the card begin the next one. Before the first look, an image is finite."""
        if not self.slots[key].image or self.graphics.about.software:
            return super().is_finite(key)  # it is in the memory of the computer
        count = self.slots[key].planes
        with self.graphics.drawing():
            last = self._surveys.get(key)
            first = int(self.cell(key, 1)) * count
            layers = self.layers(key)
            self._surveys[key] = self.graphics.own(Surveyor).begin(layers, first, count)
            return last is None or last.is_finite()

    def _make_finite(self, key: str) -> bool:
        if not self.slots[key].image:
            return super()._make_finite(key)
        self._surveys.pop(key, None)
        found = False
        with self.graphics.drawing():
            layers = self.layers(key)
            for layer in range(layers.count):
                image = layers.read(layer, 1)
                if make_finite(image):
                    layers.fill(layer, image)
                    found = True
        self.read_back = None
        return found

    def adopt(self, old: StateMemory, copy: bool = False) -> list[str]:
        with self._entered():
            return super().adopt(old, copy)

    def _adopt_slot(self, key: str, old: StateMemory, copy: bool) -> None:
        if not self.slots[key].image:
            super()._adopt_slot(key, old, copy)
        elif isinstance(old, GlMemory) and old.graphics is self.graphics and old.slots[key].image:
            self._adopt_layers(key, old, copy)
        else:
            self._upload(key, old)

    def _adopt_layers(self, key: str, old: GlMemory, copy: bool) -> None:
        with self.graphics.drawing():
            its = old.layers(key)
            if not copy and self._can_share(key, old):
                self._layers[key] = its
                self._offsets[key] = old.ticks + old._offsets[key] - self.ticks
                return
            if self._layers.get(key) is its:
                # It was taken over in the opposite direction earlier.
                del self._layers[key]
            mine = self.layers(key)
            resizer = self.graphics.own(Resizer)
            planes = self.slots[key].planes
            for ticks_ago in range(1, 1 + self._common(key, old)):
                to, of = (int(m.cell(key, ticks_ago)) * planes for m in (self, old))
                for plane in range(planes):
                    resizer.copy(its, of + plane, mine, to + plane)

    def _upload(self, key: str, old: StateMemory) -> None:
        """Takes over an image slot from a memory that is not on the card."""
        arriving, planes = self.arriving(key, old, self._stack(key)[0]), self.slots[key].planes
        room = self._by_way_of.pop(key, None)
        with self.graphics.drawing():
            layers = self.layers(key)
            for cell, images in arriving:
                layers.fill(cell * planes, images, room)
