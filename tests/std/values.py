"""What the spindles of the library that ships with weft compute, over grids of points."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tests.support.beats import given_beats
from weft.backends.executors import Executor
from weft.backends.launch import Launch, StateMemory
from weft.backends.vector.machine import VectorExecutor
from weft.codegen.kernel import Unit
from weft.codegen.units import compile_unit
from weft.contexts import ContextTable
from weft.errors import Report, Source
from weft.graph.bindings import collect
from weft.graph.build import build_graph
from weft.media.sampled import read
from weft.permissions import DEFAULT_PERMISSIONS
from weft.runtime.compiling.opened import check_media
from weft.syntax.ast import Program
from weft.syntax.includes import libraries, load
from weft.syntax.parser import parse

Values: TypeAlias = npt.NDArray[np.float64]

SETTINGS = {"width": 64.0, "height": 32.0}
ASPECT = SETTINGS["width"] / SETTINGS["height"]

EXACT: Executor = VectorExecutor(np.float64)


@cache
def parsed(library: str) -> Program:
    """A library with those that it uses, read once for all tests."""
    report = Report()
    program = load(Source(f"<{library}>", libraries()[library], library=True), report).program
    assert not report.diagnostics
    return program


@cache
def compiled(library: str, text: str) -> tuple[Unit, ...]:
    """The units of a patch that uses a library. A warning is a mistake."""
    report = Report()
    contexts = ContextTable()
    own = parse(Source("test.weft", text), report, contexts.statements)
    program = Program(parsed(library).statements + own.statements)
    media = check_media(program, report, DEFAULT_PERMISSIONS.reach(""))
    patch = collect(program, contexts, report, {name: each.header for name, each in media.items()})
    graph = build_graph(patch, contexts, report)
    assert not report.diagnostics, "\n".join(d.render() for d in report)
    return tuple(compile_unit(patch, graph, sub, contexts)[0] for sub in graph.subgraphs)


def planes(
    units: Sequence[Unit], x: Any, y: Any, z: float = 0.0, frame: int = 0, executor: Executor = EXACT,
    bpm: float = 120,
) -> list[Values]:  # fmt: skip
    """What the outputs of some units are, at every x of every y; z is the time. Each has the shape (y, x)."""
    shape = (np.size(y), np.size(x))
    coords: dict[str, Any] = {"x": np.ravel(x).astype(float), "y": np.ravel(y).astype(float)}
    found: list[tuple[int, Values]] = []
    for kernel in (unit.kernel for unit in units):
        known = {**given_beats(bpm), **SETTINGS, "absframe": float(frame), "mouse@x": 0.4, "mouse@y": 0.3}
        uniforms = {name: known[name] for name in kernel.uniforms}
        pictures = {name: read(name) for name in kernel.pictures}
        launch = Launch(shape, {**coords, "abstime": float(z), "channel": 0.0}, uniforms, pictures=pictures)
        memory = StateMemory(kernel.slots, shape, executor.widest)
        made = executor.load(kernel).planes(memory, launch)
        found += [
            (_target(name), np.array(plane, np.float64)) for name, plane in zip(kernel.outputs, made, strict=True)
        ]
    # One kernel may serve several targets.
    return [plane for _, plane in sorted(found, key=lambda pair: pair[0])]


def _target(output: str) -> int:
    """The number of the `display` that an output belongs to: 3 of `display:3.gray`."""
    found = re.search(r"\d+", output)
    return int(found[0]) if found else 0


def values(
    library: str, expressions: Sequence[str], x: Any, y: Any = 0.5, z: float = 0.0, before: str = "", frame: int = 0,
    executor: Executor = EXACT, bpm: float = 120,
) -> list[Values]:  # fmt: skip
    """What expressions of me@x, me@y and me@time (which is z) are, in a patch that uses the library and starts with
    the statements `before`."""
    sinks = "".join(f'display({e}, to: "{n}")\n' for n, e in enumerate(expressions))
    text = f"{_SETTINGS}me<bpm> = {bpm:g}\n{before}\n{sinks}"
    return planes(compiled(library, text), x, y, z, frame, executor, bpm)


def sound(library: str, text: str, seconds: float, rate: int = 8000, bpm: float = 120) -> Values:
    """What the `audio` of a patch that uses the library gives from its start on: [channels, samples]."""
    units = compiled(library, f"me<rate> = {rate}\nme<bpm> = {bpm:g}\n{text}")
    (unit,) = (u for u in units if u.kernel.context == "audio")
    count = round(seconds * rate)
    times = np.arange(count) / rate
    known = {"dt": 1 / rate, **given_beats(bpm)}
    launch = Launch(
        (1, count), {"abstime": times, "channel": 0.0}, {name: known[name] for name in unit.kernel.uniforms}
    )
    memory = StateMemory(unit.kernel.slots, (1, 1), np.float64)
    return np.asarray(VectorExecutor(np.float64).load(unit.kernel).planes(memory, launch)[:, 0], np.float64)


_SETTINGS = "".join(f"me<{name}> = {value:g}\n" for name, value in SETTINGS.items())


def line(library: str, expression: str, x: Any) -> Values:
    """One expression of me@x at a row of places."""
    (found,) = values(library, [expression], x)
    return found[0]
