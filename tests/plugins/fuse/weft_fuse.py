"""A package that runs sound on a device with a fuse: it fails when more than 1 is asked of it."""

import numpy as np

from weft.backends.cpu import CpuAudio


class Fuse(CpuAudio):
    """Runs sound as weft does; only what is heard can blow it."""

    name = "fuse"
    context = "audio"

    def execute_subgraph(self, compiled, env, coordinator):
        values = super().execute_subgraph(compiled, env, coordinator)
        if np.abs(values).max() > 1:
            raise RuntimeError("the fuse has blown")
        return values

    def try_out(self, compiled, env, coordinator, raw=False):
        return super().execute_subgraph(compiled, env, coordinator)
