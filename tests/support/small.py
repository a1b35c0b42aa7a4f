"""Programs of small pictures, their units, and what these are run in."""

from __future__ import annotations

from typing import Any

from weft.backends.base import Env
from weft.codegen.kernel import Unit
from weft.contexts import ContextTable
from weft.errors import Source
from weft.runtime.compiling.stages import Build, Request, build
from weft.runtime.program.coordinator import ProgramRunner

SIZE = {"width": 31.0, "height": 17.0}


def built(text: str, size: dict[str, float] = SIZE) -> Build:
    return build(Request(Source("p.weft", text), ContextTable(), size))


def unit_of(text: str, context: str = "visual") -> Unit:
    return next(unit for unit in built(text).units if unit.subgraph.context == context)


def env_of(tick: int = 0, width: int = 31, height: int = 17, **more: Any) -> Env:
    return Env(width, height, tick, tick / 60, 1 / 60, **more)


def alone() -> ProgramRunner:
    """What a subgraph is given that reads no others."""
    return ProgramRunner(ContextTable())
