"""The backends that compute with OpenGL: pictures, numbers and sound. OpenGL is imported when something is compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from weft.backends import hardware
from weft.backends.base import Backend, Compiled, Coordinator, DeviceInfo, Env, MemoryPool
from weft.backends.card import CardAudio, CardBackend, CardCompute, CardSound, CardVisual, Dialect, SoundCode
from weft.backends.gl import probe
from weft.backends.gl.egl import DESKTOP, EMBEDDED, GlApi, GraphicsError
from weft.backends.registry import members, register_backend
from weft.codegen import essl, glsl
from weft.codegen.kernel import Unit

if TYPE_CHECKING:
    from weft.backends.gl.drawing import GlCompiled, ProgramFactory
    from weft.backends.gl.graphics import Graphics


class GlBackend(CardBackend):
    """Draws the subgraphs of a context."""

    requires: ClassVar[tuple[str, ...]] = ("OpenGL",)
    draws: ClassVar[bool] = True
    library: ClassVar[str] = "OpenGL"
    dialect: ClassVar[Dialect] = Dialect(glsl.drawn_or_tiled, glsl.over_points)
    failure: ClassVar[type[Exception]] = GraphicsError
    api: ClassVar[GlApi] = DESKTOP

    def __init__(self, graphics: Graphics | None = None, tiled: bool | None = None, number: int = 0) -> None:
        """Without `graphics`, offscreen ones are opened when they are needed, on the device of a `number`. `tiled` says
        whether pictures are computed in tiles instead of drawn; None measures which is faster."""
        self._graphics = graphics
        self._number = number
        self._tiled = tiled
        self._made: ProgramFactory | None = None

    @classmethod
    def probe(cls) -> list[DeviceInfo]:
        return probe.devices(cls.api)

    @classmethod
    def on(cls, device: DeviceInfo, executor: str = "") -> Backend:
        return cls(number=device.index)

    @classmethod
    def may_have_hardware(cls) -> bool:
        return hardware.may_have_card()

    def draw_in(self, graphics: Any) -> None:
        if graphics.about.api == self.api:
            self._graphics = graphics
            self._made = None

    def compile_subgraph(self, unit: Unit, env: Env, coordinator: Coordinator) -> Compiled:
        self.check(unit)
        shape, code = self.shape(env), self.code(unit)
        return self.at_known_tier(self.guarded(lambda: self._factory().compiled(unit, code, shape, env.pictures)))

    def pool(self, size: int) -> MemoryPool:
        graphics = self.guarded(self._factory).graphics
        from weft.backends.gl.textures import GlPool

        return self.guarded(lambda: GlPool(graphics, size))

    def sync(self, scope: str = "device") -> None:
        self.guarded(self._factory().graphics.finish)

    def barrier(self) -> None:
        self.guarded(self._factory().graphics.barrier)

    def own(self, compiled: Compiled) -> GlCompiled:
        if self._made is None or not isinstance(compiled, self._made.subgraph_class):
            raise TypeError(f"{compiled.unit.subgraph.name} runs on another backend")
        return compiled

    def _factory(self) -> ProgramFactory:
        if self._made is None:
            try:
                from weft.backends.gl.drawing import ProgramFactory
                from weft.backends.gl.offscreen import offscreen
            except Exception as failure:  # PyOpenGL raises errors of many kinds if libraries are missing
                raise GraphicsError(f"OpenGL is missing on this machine ({failure})") from failure
            self._made = ProgramFactory(self._graphics or offscreen(self._number, self.api), self._tiled)
            self._made.graphics.waits.most = self.most_seconds
        return self._made


class EmbeddedGlBackend(GlBackend):
    """The same with OpenGL ES, which small computers have."""

    library: ClassVar[str] = EMBEDDED.name
    dialect: ClassVar[Dialect] = Dialect(essl.over_picture, essl.over_points)
    api: ClassVar[GlApi] = EMBEDDED


GlVisual, GlCompute = members("gl", GlBackend, (CardVisual, CardCompute))
EmbeddedGlVisual, EmbeddedGlCompute = members("gles", EmbeddedGlBackend, (CardVisual, CardCompute))


@register_backend
class GlAudio(CardAudio, GlBackend):
    """Sound by compute shaders."""

    name = "gl_audio"
    draws = False

    @classmethod
    def probe(cls) -> list[DeviceInfo]:
        return probe.devices(cls.api, probe.COMPUTES)

    def open(self) -> None:
        # Loading a driver takes a while, which would hold up a sound that is playing.
        self.guarded(self._factory)

    def sound(self, unit: Unit, code: SoundCode) -> CardSound:
        return CardSound(unit, code, self._factory().sound(unit, code))
