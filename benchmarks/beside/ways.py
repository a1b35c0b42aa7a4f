"""weft as a participant: its patches, and the ways that it has to run them."""

from __future__ import annotations

from pathlib import Path

from weft.backends.cpu import EXECUTORS
from weft.codegen.native.target import TIERS
from weft.runtime.inspect.measure import ExecutorConfig

PATCHES = Path(__file__).parents[2] / "patches" / "bench"


def ways() -> list[ExecutorConfig]:
    """Each executor of the CPU but the reference machine, which is not meant for so much; machine code at each tier."""
    names = [name for name in EXECUTORS if name != "vm"]
    tiers = {name: TIERS if ExecutorConfig(name).is_native else [1] for name in names}
    return [ExecutorConfig(name, tier=tier) for name in names for tier in tiers[name]]


def way_name(way: ExecutorConfig) -> str:
    """What a participant is called."""
    return f"weft-{way.executor}" + (f"-{way.tier}" if way.is_native else "")
