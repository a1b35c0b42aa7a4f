"""Sound by Metal, block by block."""

from __future__ import annotations

from weft.backends.card_audio import CardAudio
from weft.backends.card_sound import CardSound
from weft.backends.metal.backend import MetalBackend
from weft.backends.metal.stretches import MetalSounding
from weft.backends.registry import register_backend
from weft.backends.sound_code import SoundCode
from weft.codegen.unit import Unit


@register_backend
class MetalAudio(CardAudio, MetalBackend):
    """Sound, in memory that the device shares."""

    name = "metal_audio"

    def sound(self, unit: Unit, code: SoundCode) -> CardSound:
        return CardSound(unit, code, MetalSounding(*self.device(), unit.kernel, code))
