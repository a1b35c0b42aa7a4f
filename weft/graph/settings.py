"""The settings of the environment: what `me<field> = number` may set, with defaults and ranges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class SettingSpec:
    """One setting: `low … high` is the range it is accepted in, `whole` asks for a whole number."""

    name: str
    default: float
    low: float
    high: float
    doc: str
    example: str
    whole: bool = False

    def accepts(self, value: float) -> bool:
        return self.low <= value <= self.high and (not self.whole or value == int(value))

    @property
    def range(self) -> str:
        """The range in words, for messages."""
        kind = "a whole number" if self.whole else "a number"
        return f"{kind} from {self.low:g} to {self.high:g}"


_ROWS = (
    SettingSpec("width", 1280, 1, 16384, "width of the picture in pixels", "me<width> = 640", whole=True),
    SettingSpec("height", 720, 1, 16384, "height of the picture in pixels", "me<height> = 360", whole=True),
    SettingSpec("fps", 60, 0.1, 1000, "frames a second", "me<fps> = 30"),
    SettingSpec("rate", 48000, 1000, 768000, "samples a second", "me<rate> = 44100", whole=True),
    SettingSpec("loop", 0, 0, 1e9, "frames after which the time starts again; 0: never", "me<loop> = 600"),
    SettingSpec("bpm", 120, 0.1, 10000, "beats a minute", "me<bpm> = 90"),
    SettingSpec("timesig_num", 4, 1, 64, "beats in a measure", "me<timesig_num> = 3", whole=True),
    SettingSpec("timesig_denom", 4, 1, 64, "which note is a beat; it changes no time", "me<timesig_denom> = 8",
                whole=True),
    SettingSpec("pitch", 220, 1e-6, 1e6, "cycles of x a second in audio", "me<pitch> = 110"),
    SettingSpec("sweep", 10, 1e-6, 1e6, "seconds of a cycle of y in audio", "me<sweep> = 4"),
)  # fmt: skip

SETTINGS: Mapping[str, SettingSpec] = MappingProxyType({row.name: row for row in _ROWS})

DEFAULTS: Mapping[str, float] = MappingProxyType({row.name: row.default for row in _ROWS})

# These change while a program runs (a window is resized, a picture is evaluated at another size), so kernels read them
# as uniforms; the others are constants of a compile.
LIVE = ("width", "height")


def fitted(settings: Mapping[str, float], room: tuple[int, int]) -> dict[str, float]:
    """Settings with a picture that fits into `room` (width, height) and keeps its aspect; it is never made larger."""
    width, height = settings["width"], settings["height"]
    scale = min(1.0, room[0] / width, room[1] / height)
    return {**settings, "width": max(1, round(width * scale)), "height": max(1, round(height * scale))}
