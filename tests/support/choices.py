"""What runs programs in tests: backends on the processor. They are chosen once in a process, since each choice looks at
the machine again. And what the programs may open."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from weft.backends.registry import load_registry
from weft.backends.select import Choice, choose
from weft.permissions import Permissions

ANYWHERE = Permissions((os.path.abspath(os.sep),))
"""For texts that are not in the folder of their media."""


@cache
def on_processor(executor: str, *contexts: str) -> Mapping[str, Choice]:
    """An executor of the processor for some contexts; without names, for those of patches that ship."""
    return MappingProxyType(choose(load_registry(), contexts or ("visual", "audio", "compute", "lights"), executor))
