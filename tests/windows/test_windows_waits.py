"""Waits of a performance last as long as they should, and not until the next tick of Windows."""

from __future__ import annotations

import ctypes
from ctypes import wintypes

from tests.windows.processes import on_windows
from weft.platform import system

pytestmark = on_windows

_MILLISECOND = 10_000
"""In the units of Windows, of 100 ns."""


def test_the_system_ticks_every_millisecond_once_that_was_asked_for() -> None:
    """Wine always does."""
    system.wait_precisely()
    longest, shortest, now = wintypes.ULONG(), wintypes.ULONG(), wintypes.ULONG()
    found = map(ctypes.byref, (longest, shortest, now))
    assert ctypes.windll.ntdll.NtQueryTimerResolution(*found) == 0  # type: ignore[attr-defined]
    assert now.value <= max(_MILLISECOND, shortest.value) * 1.1
