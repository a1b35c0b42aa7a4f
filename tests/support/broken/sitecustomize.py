"""Code generators that fail, and devices that hang: Python imports this by itself at the start of a process that has
the folder on its path.

`WEFT_BROKEN` names them: `native`, `better` (machine code of the second tier), `tiles` (pictures as lists of calls),
`numpy`, `opencl` (the device hangs after some launches, and is not waited for as long as usual).
"""

from __future__ import annotations

import importlib.abc
import os
import sys
from typing import Any, NoReturn

BROKEN = os.environ.get("WEFT_BROKEN", "native").split(",")


def fail(*args: Any) -> NoReturn:
    raise KeyError("it was broken on purpose")


class Breaker(importlib.abc.MetaPathFinder):
    """Breaks the code generators when the module is imported that calls them."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> None:
        if name == "weft.backends.vector.machine" and "numpy" in BROKEN:
            from weft.backends.vector import feedback, lists

            lists.ListReader = feedback.reads_of = fail
        if name == "weft.backends.native.executor":
            self.break_machine_code()
        if name == "weft.backends.opencl.backend" and "opencl" in BROKEN:
            self.hang_opencl()

    def hang_opencl(self) -> None:
        """Has the queue of a device wait after some launches, for what never comes."""
        import pyopencl

        from weft.backends import card
        from weft.backends.opencl.queue import ClDevice

        launch, left = ClDevice.launch, iter(range(20))

        def hanging(device: Any, *given: Any) -> Any:
            if next(left, None) is None and not hasattr(device, "hangs"):
                device.hangs = pyopencl.UserEvent(device._context)
                pyopencl.enqueue_barrier(device._queue, wait_for=[device.hangs])
            return launch(device, *given)

        ClDevice.launch = hanging  # type: ignore[method-assign]
        card.CardBackend.most_seconds = 0.1

    def break_machine_code(self) -> None:
        from weft.codegen.native import chunks, module, series, tiles

        if "native" in BROKEN:
            module.emit = series.emit_series = chunks.emit_chunks = fail
        elif "better" in BROKEN:
            series.emit_series = fail
        if "tiles" in BROKEN:
            self.break_lists(tiles)

    def break_lists(self, tiles: Any) -> None:
        """Breaks the lists of calls, but not those that numpy makes."""
        emitted = tiles._emitted

        def failing(name: str, kernel: Any, callees: Any, *rest: Any) -> Any:
            return fail() if callees is tiles.HANDLERS else emitted(name, kernel, callees, *rest)

        tiles._emitted = failing


sys.meta_path.insert(0, Breaker())
