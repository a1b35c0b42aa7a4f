"""A package that teaches weft a new context: `light(front, back)` sets lamps, 0…1, once a frame.

The lamps' levels are written to the file named by WEFT_LIGHT_FILE, a line of numbers 0…255 a frame.
"""

import os

import numpy as np

from weft.backends.cpu import CpuBackend
from weft.contexts import ContextSpec

LIGHT = ContextSpec(
    name="light",
    statements=("light", "lamp"),
    doc="the levels of lamps, once a frame",
    example="light(front: me@beatphase, back: 0.2)",
    counters=("absframe",),
    state_rank=3,
)


class Light(CpuBackend):
    """Runs on the CPU like `compute`, and does something of its own with what it computes."""

    name = "light"
    context = "light"
    spec = LIGHT

    def execute_subgraph(self, compiled, env, coordinator):
        levels = super().execute_subgraph(compiled, env, coordinator).reshape(-1)
        bytes_ = (np.nan_to_num(np.clip(levels, 0, 1)) * 255 + 0.5).astype(int)
        with open(os.environ["WEFT_LIGHT_FILE"], "a", encoding="ascii") as lamps:
            lamps.write(" ".join(map(str, bytes_)) + "\n")
        return levels
