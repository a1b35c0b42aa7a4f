"""A package that brings a graphics card which lasts for some frames. It draws like numpy, on devices of its own.

`WEFT_CARD` names the backend, `WEFT_CARD_FRAMES` says how many frames each of its devices lasts (below 0: it cannot be
opened), `WEFT_CARD_END` how they end: `lost` as a device should, `strange` with an unexplained error, `forgetful` with
all that was on it. `WEFT_CARD_LOG` names a file that takes a line every time that the devices are listed.
"""

import os

from weft.backends.base import Backend, Capabilities, DeviceInfo, DeviceLostError
from weft.backends.cpu import CpuVisual

REASON = "somebody pulled the plug"
MEMORY = 8_000_000


class Card(Backend):
    """Runs what it is given until it does not any more."""

    name = os.environ.get("WEFT_CARD", "card_visual")
    context = "visual"

    def __init__(self, index=0):
        self._cpu = CpuVisual("vector")
        self._frames = int(os.environ.get("WEFT_CARD_FRAMES", "1000000"))
        self._end = os.environ.get("WEFT_CARD_END", "lost")

    @classmethod
    def probe(cls):
        if log := os.environ.get("WEFT_CARD_LOG"):
            with open(log, "a", encoding="ascii") as lines:
                lines.write(f"{os.getpid()}\n")
        memory = {"unified": False, "memory_total": MEMORY, "memory_free": MEMORY}
        return [
            DeviceInfo(0, "a card", **memory),
            DeviceInfo(1, "another card", **memory),
            DeviceInfo(2, "a broken card", False, "it smells of smoke", "open a window"),
        ]

    @classmethod
    def on(cls, device, executor=""):
        return cls(device.index)

    def capabilities(self):
        return Capabilities(handles=True)

    def unsuitable(self, unit):
        return "it has nothing to keep a cache in" if "/cache/" in str(unit.kernel.slots) else None

    def compile_subgraph(self, unit, env, coordinator):
        if self._frames < 0:
            raise DeviceLostError("visual", REASON)
        return self._cpu.compile_subgraph(unit, env, coordinator)

    def remembered(self, compiled):
        if self._end == "forgetful" and self._frames <= 0:
            raise DeviceLostError("visual", REASON)
        return compiled.memory

    def execute_subgraph(self, compiled, env, coordinator):
        self._frames -= 1
        if self._frames < 0:
            raise RuntimeError("error 0x505") if self._end == "strange" else DeviceLostError("visual", REASON)
        return self._cpu.execute_subgraph(compiled, env, coordinator)

    def try_out(self, compiled, env, coordinator, raw=False):
        return self._cpu.try_out(compiled, env, coordinator, raw)

    def get_value_at(self, ref, compiled, coords, env, coordinator):
        if self._frames < 0:
            raise DeviceLostError("visual", REASON)
        return self._cpu.get_value_at(ref, compiled, coords, env, coordinator)
