"""The stateful builtins: their signatures and slots. Their meaning is in `weft.graph.elaborate`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from weft.ops.spec import Param


@dataclass(frozen=True, slots=True)
class StateSpec:
    """One stateful builtin. A slot of this kind keeps `planes` values for each tick that it remembers; `breaks_cycle`
    says whether its first operand may mention the strand that is being defined."""

    name: str
    params: tuple[Param, ...]
    doc: str
    example: str
    planes: int
    breaks_cycle: bool


_ROWS = (
    StateSpec("prev", (Param("e"),), "the value of e one tick ago, 0 at the first",
              "trail<v> = max(me@x > fract(me@time), prev(trail@v) * 0.95)", 1, True),
    StateSpec("delay", (Param("e"), Param("ticks"), Param("max")),
              "e as it was `ticks` ago; ticks may vary and be fractional, clamped to 0…max; max is a constant",
              "echo<v> = fract(me@time) + 0.5 * delay(echo@v, 30, 30)", 1, True),
    StateSpec("integrate", (Param("e"),), "the sum of e · dt over earlier ticks, 0 first",
              "integrate(mouse@x)", 1, True),
    StateSpec("phasor", (Param("freq"),), "a phase 0…1 that runs freq times a second and never jumps",
              "sin(phasor(0.5 + mouse@x) * tau)", 1, True),
    StateSpec("hold", (Param("e"), Param("trigger")), "e as it was when trigger last changed",
              "hold(hash(me@beat), me@beat)", 3, False),
    StateSpec("cache", (Param("instance"), Param("n")),
              "the last n ticks of an instance, read along its own axis k; 0 is now",
              "wave<v> = sin(me@time)\ncache(wave, 30)::past<v>\ndisplay(past@v(past@k ~ me@x * 29))", 1, False),
)  # fmt: skip

STATE: Mapping[str, StateSpec] = MappingProxyType({row.name: row for row in _ROWS})
