"""A package that loads each sound for longer than a beat may last."""

import time

from weft.backends.cpu import CpuAudio


class Slow(CpuAudio):
    """Runs sound as weft does."""

    name = "slow"
    context = "audio"

    @staticmethod
    def wait():
        time.sleep(0.4)

    def compile_subgraph(self, unit, env, coordinator):
        self.wait()
        return super().compile_subgraph(unit, env, coordinator)
