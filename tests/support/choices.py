"""What runs programs in tests: backends on the processor. They are chosen once in a process, since each choice looks at
the machine anew."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from weft.backends.registry import load_registry
from weft.backends.select import Choice, choose


@cache
def on_processor(executor: str, *contexts: str) -> Mapping[str, Choice]:
    """An executor of the processor for some contexts; without names, for those that are weft's own."""
    return MappingProxyType(choose(load_registry(), contexts or ("visual", "audio", "compute"), executor))
