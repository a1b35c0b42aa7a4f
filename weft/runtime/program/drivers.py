"""Has subgraphs made ready by drivers, of which one may hang."""

from __future__ import annotations

import threading
from concurrent.futures import Future, wait

from weft.backends.base import Backend, Compiled, Coordinator, DeviceLostError, Env
from weft.backends.cpu import CpuBackend
from weft.codegen.kernel import Unit

MOST_SECONDS = 60.0
"""A driver that takes longer for a subgraph is considered to hang. Some take ten seconds for one with many loops."""


def made_ready(backend: Backend, unit: Unit, env: Env, coordinator: Coordinator) -> Compiled:
    """`Backend.compile_subgraph`, which ends even if the driver of a device hangs: that raises DeviceLostError. The
    thread that waits for such a driver is left behind."""
    if isinstance(backend, CpuBackend):
        return backend.compile_subgraph(unit, env, coordinator)
    result = Future[Compiled]()

    def make() -> None:
        try:
            result.set_result(backend.compile_subgraph(unit, env, coordinator))
        except BaseException as failure:
            result.set_exception(failure)

    threading.Thread(target=make, name="weft-driver", daemon=True).start()
    if not wait([result], MOST_SECONDS).done:
        reason = f"its driver has not made a program ready in {MOST_SECONDS:g} seconds"
        raise DeviceLostError(backend.context or unit.subgraph.context, reason)
    return result.result()
