"""The tables of operators, builtins and constants. One row has everything that any part of weft knows about one of
them.

To add a builtin, add a row to the file of its family. Nothing here imports numpy or a device library: the caller passes
numpy to a row's vector form.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import chain
from types import MappingProxyType

from weft.ops.arithmetic import ARITHMETIC, EXPONENTIAL, LOGIC, ROUNDING
from weft.ops.bundles import WORDS
from weft.ops.curves import GEOMETRY, SHAPING, TRIGONOMETRY
from weft.ops.noise import HASHING, NOISE
from weft.ops.spec import ConstantSpec, OpSpec, Param, StateSpec, about

__all__ = ["BINARY", "BUILTINS", "CONSTANTS", "CONSTANT_ROWS", "OPS", "STATE", "UNARY", "WORDS", "OpSpec", "Param"]

_FAMILIES = (ARITHMETIC, LOGIC, ROUNDING, SHAPING, GEOMETRY, TRIGONOMETRY, EXPONENTIAL, HASHING, NOISE)


def index_rows(entries: Iterable[tuple[str, OpSpec]]) -> Mapping[str, OpSpec]:
    """The rows by their keys. Raises ValueError if two have the same key."""
    index: dict[str, OpSpec] = {}
    for key, row in entries:
        if key in index:
            raise ValueError(f"{key!r} is the key of two rows: {index[key].name} and {row.name}")
        index[key] = row
    return MappingProxyType(index)


OPS = index_rows((row.name, row) for row in chain(*_FAMILIES))
"""Every row, by its name."""

BINARY = index_rows((symbol, row) for row in OPS.values() if len(row.params) == 2 for symbol in row.symbols)
"""The rows of binary operators, by each of their symbols."""

UNARY = index_rows((symbol, row) for row in OPS.values() if len(row.params) == 1 for symbol in row.symbols)
"""The rows of the prefix operators, by their symbols."""

BUILTINS = index_rows((name, row) for row in OPS.values() for name in row.call_names)
"""The rows that a patch may call, by each name that it may use."""

CONSTANT_ROWS = (
    ConstantSpec("pi", math.pi, "half a turn in radians", "sin(me@x * pi)"),
    ConstantSpec("tau", math.tau, "a whole turn in radians, 2 pi", "sin(me@x * tau)"),
    ConstantSpec("e", math.e, "the base of the natural logarithm", "e ^ (-4 * me@x)"),
)

CONSTANTS: Mapping[str, float] = MappingProxyType({row.name: row.value for row in CONSTANT_ROWS})
"""The constants, by their names."""

_STATE_ROWS = (
    StateSpec("prev", (Param("e"),), "the value of e one tick ago, 0 at the first",
              "trail<v> = max(me@x > fract(me@time), prev(trail@v) * 0.95)", 1, True),
    StateSpec("delay", (Param("e"), Param("ticks"), Param("max")),
              "e as it was `ticks` ago; ticks may vary and be fractional, clamped to 0…max; max is a constant",
              "echo<v> = fract(me@time) + 0.5 * delay(echo@v, 30, 30)", 1, True, about(-2, 2, 0, 3)),
    StateSpec("integrate", (Param("e"),), "the sum of e · dt over earlier ticks, 0 first",
              "integrate(mouse@x)", 1, True),
    StateSpec("phasor", (Param("freq"), Param("reset", 0)),
              "a phase 0…1 that runs freq times a second and never jumps, unless reset rises above 0: then it is 0",
              "sin(phasor(0.5 + mouse@x) * tau)", 1, True, about(-3, 3)),
    StateSpec("hold", (Param("e"), Param("trigger")), "e as it was when trigger last changed",
              "hold(hash(me@beat), me@beat)", 3, False, about(-2, 2, 0, 3)),
    StateSpec("rises", (Param("trigger"),),
              "how often a trigger has risen above 0 since the tick before, 1 or 0; of a count, by how much it grew",
              "flash<v> = max(prev(flash@v) * 0.9, rises(mouse@left@count))", 1, False),
    StateSpec("cache", (Param("instance"), Param("n")),
              "the last n ticks of an instance, read along its own axis k; 0 is now",
              "wave<v> = sin(me@time)\ncache(wave, 30)::past<v>\ndisplay(past@v(past@k ~ me@x * 29))", 1, False,
              about(0, 3)),
    StateSpec("image", (Param("e"), Param("level", 0)),
              "e, kept at every pixel of this frame, which remaps of it read; level: 1 keeps it at half the width and "
              "height, each further one at half of that",
              "clouds<v> = image(fbm(me@x * 8, me@y * 8))\ndisplay(clouds@v(me@x ~ me@x + 0.02 * sin(me@y * 40)))",
              1, False),
)  # fmt: skip

STATE: Mapping[str, StateSpec] = MappingProxyType({row.name: row for row in _STATE_ROWS})
"""The builtins that keep values, by their names. Their meaning is in `weft.graph.elaborate`."""
