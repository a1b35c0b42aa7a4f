"""Which devices a library has, found out in a process of its own: a driver that is open may interfere with one that is
opened later, and one that fails may end the process."""

from __future__ import annotations

import functools
import json
import subprocess
from collections.abc import Callable
from typing import Any

from weft import child
from weft.backends.base import DeviceInfo

# A driver that takes longer to start is considered to hang.
_MOST_SECONDS = 20


def probed(
    module: str, library: str, remedy: str, device_of: Callable[[dict[str, Any]], DeviceInfo]
) -> list[DeviceInfo]:  # fmt: skip
    """The devices that a module lists by `print_devices` when it is run. Without any, there is a reason and a
    remedy."""
    told = _answer(module, library)
    if "reason" in told:
        return [DeviceInfo.absent(library, told["reason"], remedy)]
    return [device_of(about) for about in told["devices"]]


@functools.cache
def _answer(module: str, library: str) -> dict[str, Any]:
    """The JSON that a module prints when it is run. It runs only once, since the answer stays the same. If it prints
    none, the answer has a `reason` with the library's name."""
    try:
        ended = child.run(module, timeout=_MOST_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as failure:
        return {"reason": f"{library} does not answer ({failure})"}
    try:
        found: dict[str, Any] = json.loads(ended.stdout)
    except ValueError:
        lines = ended.stderr.decode(errors="replace").strip().splitlines()
        return {"reason": f"{library} does not start ({lines[-1] if lines else f'exit status {ended.returncode}'})"}
    return found


def print_devices(listed: Callable[[], list[dict[str, Any]]]) -> None:
    """Prints what is known of each device, as JSON, or the reason why they cannot be listed."""
    try:
        told: dict[str, Any] = {"devices": listed()}
    except Exception as failure:  # drivers fail in many ways
        told = {"reason": str(failure)}
    print(json.dumps(told))
