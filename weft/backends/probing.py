"""Asks for a device in a process of its own: a driver that was opened once may harm what is opened later, and one that
fails may end the process."""

from __future__ import annotations

import functools
import json
import subprocess
from typing import Any

from weft import child

# A driver that takes longer to start hangs.
_MOST_SECONDS = 20


@functools.cache
def answer(module: str, library: str) -> dict[str, Any]:
    """What a module prints as JSON when it is run, asked once for the process: it does not change meanwhile. Where it
    prints none, `reason` says why, with the library's name."""
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
