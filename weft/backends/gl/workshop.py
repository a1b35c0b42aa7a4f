"""Where subgraphs are made ready for the graphics card: in a context of their own, so that none of it holds up a
frame."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from contextlib import suppress

from weft.backends.gl.compiled import DrawPass, GlCompiled
from weft.backends.gl.drawing import Canvas, PictureTextures
from weft.backends.gl.form import tiles_are_faster
from weft.backends.gl.graphics import ContextState, Graphics
from weft.backends.gl.memory import GlMemory
from weft.backends.gl.points import ExposedStrand
from weft.backends.gl.programs import ShaderProgram
from weft.backends.gl.stretches import GlSounding
from weft.backends.gl.textures import check_row
from weft.backends.launch import Picture
from weft.backends.shader_code import ShaderCode
from weft.backends.sound_code import SoundCode
from weft.backends.still import Stillness
from weft.codegen import glsl
from weft.codegen.clike.shader import Shader, UnsuitableError
from weft.codegen.unit import Unit

# Of so many units asked for last, the programs are kept: a text that comes back needs none of it anew.
_KEPT = 12

# Pictures are drawn to these by turns.
_CANVASES = 2


class ProgramFactory:
    """Makes the subgraphs of one backend ready."""

    def __init__(self, graphics: Graphics, tiled: bool | None = None) -> None:
        """`tiled` says whether pictures are computed by tiles instead of drawn; None finds out what is faster."""
        self.graphics = graphics
        self._tiled = tiled
        self._sources = PictureTextures(graphics)
        self._programs: dict[str, ShaderProgram] = {}

    def compiled(
        self, unit: Unit, code: ShaderCode, shape: tuple[int, int], pictures: Mapping[str, Picture]
    ) -> GlCompiled:
        """A subgraph for pictures of this shape (height, width), with zeroed memory; it has drawn once already. Raises
        WeftError for what the card cannot take, and GraphicsError if it fails."""
        graphics = self.graphics
        with graphics.preparing() as place:
            program = self._program(unit, code, place)
            grid = DrawPass(graphics, unit.kernel, program.shader, program)
            check_row(graphics, grid.strands.most(shape))
            grid.rehearse(place, shape, pictures, self._sources)
            return GlCompiled(
                unit,
                graphics,
                code,
                grid,
                {ref: ExposedStrand(graphics, kernel, code.points.get(ref)) for ref, kernel in unit.points.items()},
                GlMemory(graphics, place, unit.kernel.slots, shape),
                self._sources,
                deque(Canvas(graphics, program.shader, shape) for _ in range(_CANVASES)),
                Stillness(unit.kernel),
            )

    def sound(self, unit: Unit, code: SoundCode) -> GlSounding:
        """The program of a sound, which has run once already. Raises WeftError if the driver refuses it, and
        GraphicsError if the card fails."""
        with self.graphics.preparing() as place:
            sounding = GlSounding(self.graphics, place, unit.kernel, code, self._sources)
            sounding.rehearse()
            return sounding

    def _program(self, unit: Unit, code: ShaderCode, place: ContextState) -> ShaderProgram:
        program = self._programs.pop(unit.hash, None) or ShaderProgram(self.graphics, self._form(unit, code.grid, place))
        self._programs[unit.hash] = program
        while len(self._programs) > _KEPT:
            del self._programs[next(iter(self._programs))]
        return program

    def _form(self, unit: Unit, drawn: Shader, place: ContextState) -> Shader:
        """The program of a unit in the form that is faster on this card."""
        if not drawn.packed:
            return drawn
        if self._tiled is None:
            self._tiled = tiles_are_faster(self.graphics, place)
        if self._tiled:
            with suppress(UnsuitableError):
                return glsl.tiled(unit.kernel)
        return drawn
