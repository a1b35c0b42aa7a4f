"""What tests start ends with them, however they end: by Ctrl-C, by SIGTERM or by SIGKILL."""

from __future__ import annotations

import shutil
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn


def tied(command: Sequence[str]) -> list[str]:
    """A command whose process is killed when the one that starts it ends, though it is in a session of its own, where
    no signal of a terminal reaches it. But on Linux it is the command itself."""
    setpriv = shutil.which("setpriv") if sys.platform == "linux" else None
    return [*([setpriv, "--pdeathsig", "KILL", "--"] if setpriv else []), *command]


def terminate_in_order() -> None:
    """Has SIGTERM end the tests of this process as Ctrl-C does: what they have started is ended first."""
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _interrupt)


def _interrupt(*_: object) -> NoReturn:
    # Once: a process that cleans up must not be interrupted again.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt("SIGTERM")
