"""What the modules of all systems return."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ProcessState:
    """The state of a process. `spent` has the seconds of processor time that it has used."""

    is_busy: bool
    is_stopped: bool
    spent: float


UNKNOWN_STATE = ProcessState(True, False, 0.0)
"""A process that may be working must not be killed."""
