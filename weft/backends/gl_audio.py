"""Sound by OpenGL, block by block."""

from __future__ import annotations

from weft.backends.base import DeviceInfo
from weft.backends.card_audio import CardAudio
from weft.backends.card_sound import CardSound
from weft.backends.gl import probe
from weft.backends.gl.backend import GlBackend
from weft.backends.registry import register_backend
from weft.backends.sound_code import SoundCode
from weft.codegen.unit import Unit


@register_backend
class GlAudio(CardAudio, GlBackend):
    """Sound by compute shaders."""

    name = "gl_audio"
    draws = False

    @classmethod
    def probe(cls) -> list[DeviceInfo]:
        return probe.devices(probe.COMPUTES)

    def open(self) -> None:
        # To load a driver takes a while, in which a sound that plays already would be held up.
        self.guarded(self._workshop)

    def sound(self, unit: Unit, code: SoundCode) -> CardSound:
        return CardSound(unit, code, self._workshop().sound(unit, code))
