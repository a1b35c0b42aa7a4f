"""macOS: as `posix`, with folders of its own. A child notices by its lifeline that its parent has ended."""

from __future__ import annotations

from pathlib import Path

from weft.platform.posix import (
    CODE_MODEL, HAS_JIT_LINK, apart, appending, bind, end_now, end_with_parent, hand_over, inherited, inheriting,
    installed_memory, is_closed, is_own, lock, process_state, processor_time, reading, send_now
)

__all__ = [
    "CODE_MODEL", "HAS_JIT_LINK", "apart",
    "appending",
    "bind",
    "cache_home",
    "end_now",
    "end_with_parent",
    "hand_over", "inherited", "inheriting",
    "installed_memory",
    "is_closed",
    "is_own",
    "lock",
    "process_state",
    "processor_time",
    "reading",
    "send_now",
]


def cache_home() -> Path:
    return Path.home() / "Library" / "Caches"
