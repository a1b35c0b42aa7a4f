"""In what order backends are preferred: what `select` goes by where nobody asks for anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ChainLink:
    """A backend by a name that `--backend` takes. `software` says that its device has to be software, or must not be;
    None: either will do."""

    name: str
    software: bool | None = None


CPU = (ChainLink("native"), ChainLink("vector"))
"""What `cpu` stands for, from the fastest on. The last one needs nothing but numpy."""

CHAINS: Mapping[str, tuple[ChainLink, ...]] = {
    "visual": (ChainLink("metal", software=False), ChainLink("gl", software=False), *CPU, ChainLink("gl", software=True)),
    "audio": CPU,
    "compute": CPU,
}

FAMILIES = ("gl", "metal")
"""Names that stand for a backend in each context: for pictures, `gl` is `gl_visual`."""


def chain_of(context: str) -> tuple[ChainLink, ...]:
    """What is preferred for a context, the best first. One that a package brings along runs as numbers do."""
    return CHAINS.get(context, CPU)
