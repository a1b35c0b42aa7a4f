"""Programs that a loader has made ready, and the pictures that they give tick by tick."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from weft.backends.base import Env
from weft.backends.registry import load_registry
from weft.backends.select import choose
from weft.contexts import ContextTable
from weft.errors import Source
from weft.runtime.compiling.stages import Request, build
from weft.runtime.program.coordinator import pictures_of
from weft.runtime.program.program import LoadedProgram, ProgramLoader


def loader_of(asked: str) -> ProgramLoader:
    return ProgramLoader(choose(load_registry(), ["visual"], asked))


def prepared(loader: ProgramLoader, text: str, size: tuple[int, int]) -> LoadedProgram:
    return loader.prepare(build(Request(Source("test.weft", text), ContextTable())).compiled, size)


def drawn(loaded: LoadedProgram, number: int) -> Any:
    """The picture of a tick of 1/60 s."""
    env = Env(*loaded.size, tick=number, abstime=number / 60, dt=1 / 60)
    shown = pictures_of(loaded.runner.run(env)).get("")
    assert shown is not None
    return shown.values


def expected(text: str, ticks: int, size: tuple[int, int]) -> NDArray[Any]:
    """The last of some pictures, drawn by numpy."""
    loaded = prepared(loader_of("vector"), text, size)
    return [drawn(loaded, number) for number in range(ticks)][-1]
