"""An executor that runs kernels on the graphics card but keeps memory on the processor, to be compared with others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from weft.backends.executors import NOTHING, check
from weft.backends.gl.drawing import (
    DrawnPoints, DrawPass, PictureTextures, Points, Stages, any_stopped, look, plain_shaders, planes_of
)
from weft.backends.gl.graphics import Graphics
from weft.backends.gl.memory import GlMemory
from weft.backends.gl.offscreen import offscreen
from weft.backends.gl.programs import LinkedPrograms
from weft.backends.launch import Floats, Launch, StateMemory, channels, check_picture
from weft.codegen import essl, glsl
from weft.codegen.clike.emission import emit
from weft.codegen.clike.shader import Shader
from weft.codegen.kernel import Kernel


class GlExecutor:
    """Makes kernels ready; see `weft.backends.executors.Executor`."""

    name = "gl"
    widest = np.float32

    def __init__(self, graphics: Graphics | None = None, language: glsl.Glsl | None = None) -> None:
        """Pixels are computed by programs in a `language`; without one they are drawn, as outputs are. Raises
        GraphicsError without OpenGL."""
        self._language = language
        self._graphics = graphics or offscreen()
        self._programs = LinkedPrograms(self._graphics)
        self._sources = PictureTextures(self._graphics)
        self._memories: WeakKeyDictionary[StateMemory, GlMemory] = WeakKeyDictionary()

    def translate(self, kernel: Kernel, packed: bool, tier: int = 1) -> None:
        return None

    def load(self, kernel: Kernel, codes: Mapping[bool, object] = NOTHING) -> GlExecutable:
        return GlExecutable(kernel, self._programs, self._sources, self._memories, self._language)


class GlExecutable:
    """A kernel that is ready to run. What a memory holds when it is first used goes to the graphics card, and stays
    there; what a tick writes is brought back. Raises UnsuitableError for a kernel that has no program."""

    tier = None

    def __init__(
        self,
        kernel: Kernel,
        programs: LinkedPrograms,
        sources: PictureTextures,
        memories: WeakKeyDictionary[StateMemory, GlMemory],
        language: glsl.Glsl | None,
    ) -> None:
        self.kernel = kernel
        self._language = language
        self._programs = programs
        self._graphics = programs.graphics
        self._sources = sources
        self._memories = memories
        self._passes: dict[bool, DrawPass] = {}
        self._staged: list[DrawPass] = []
        self._points: Points | DrawnPoints | None = None

    def planes(self, memory: StateMemory, launch: Launch) -> Floats:
        check(self.kernel, memory, launch)
        own = self._own(memory)
        if self.kernel.sweep == "points":
            return self._at_points(own, launch)[:, np.newaxis]
        values = planes_of(self._pass(packed=False), self._stages(launch.shape), own, launch, self._sources)
        self._bring_back(own, memory)
        return values

    def rgba8(self, memory: StateMemory, launch: Launch, out: npt.NDArray[np.uint8]) -> None:
        channels(len(self.kernel.outputs))
        check_picture(out, launch.shape)
        own, program, stages = self._own(memory), self._pass(packed=True), self._stages(launch.shape)
        with self._graphics.drawing() as place:
            canvas = program.canvas(launch.shape)
            stages.draw(place, own, launch, self._sources)
            begun = program.prepare(own, launch)
            program.draw(place, begun, own, self._sources, canvas)
            canvas.colours[0].read(out)
            stopped = begun.machine.loop_stopped or any_stopped(look([canvas, *stages.canvases]))
        own.advance()
        self._bring_back(own, memory)
        if stopped:
            launch.loop_stopped()

    def _pass(self, packed: bool) -> DrawPass:
        if packed not in self._passes:
            with self._graphics.drawing():
                self._passes[packed] = DrawPass.of(self._programs, self.kernel, self._shaders(packed))
        return self._passes[packed]

    def _shaders(self, packed: bool) -> Sequence[Shader]:
        if packed and self._language is not None:
            return [emit(self.kernel, self._language, packed)]
        write = essl.over_picture if self._graphics.about.embedded else glsl.over_picture
        return write(self.kernel, packed).shaders  # type: ignore[operator,no-any-return]

    def _stages(self, shape: tuple[int, int]) -> Stages:
        with self._graphics.drawing():
            if not self._staged:
                shaders = ((stage, plain_shaders(self._graphics, stage)) for stage in self.kernel.stages)
                self._staged = [DrawPass.of(self._programs, stage, each) for stage, each in shaders]
            return Stages(self._staged, shape)

    def _at_points(self, memory: GlMemory, launch: Launch) -> Floats:
        if self._points is None:
            with self._graphics.drawing():
                if self._graphics.about.embedded:
                    self._points = DrawnPoints(self._programs, self.kernel, essl.over_points(self.kernel))
                else:
                    self._points = Points(self._programs, self.kernel, glsl.points(self.kernel))
        pending = self._points.begin(memory, launch, self._sources)
        values = pending.read()
        if pending.stopped:
            launch.loop_stopped()
        return values

    def _own(self, memory: StateMemory) -> GlMemory:
        """The memory on the graphics card that mirrors one on the processor."""
        if memory not in self._memories:
            with self._graphics.drawing():
                own = GlMemory(self._graphics, memory.slots.values(), memory.shape)
            own.adopt(memory)
            self._memories[memory] = own
        return self._memories[memory]

    def _bring_back(self, own: GlMemory, memory: StateMemory) -> None:
        memory.advance()
        for slot in self.kernel.slots:
            if slot.image:
                memory.ring(slot.key)[memory.cell(slot.key, 1)] = own.planes(slot.key, 1)
