"""From a text to kernels: all stages in order, the errors that they find, and the time that each takes.

`analyse` stops at the render graph and needs no code generator; `build` continues to kernels.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeVar

from weft.codegen.kernel import Unit
from weft.codegen.units import compile_unit
from weft.contexts import ContextTable
from weft.errors import Diagnostic, Report, Source, Span, WeftError
from weft.graph.affected import Edit
from weft.graph.budget import MOST_STEPS, Budget
from weft.graph.build import CheckedPatch, checked
from weft.graph.domain import SETTINGS, fitted
from weft.graph.false_friends import false_friends
from weft.graph.follow_ups import without_follow_ups
from weft.graph.nodes import RenderGraph, Subgraph
from weft.graph.numbers import StaleError
from weft.graph.patch import Patch
from weft.ir.expr import Lowered
from weft.names import file_of, is_heard
from weft.outlets import load_outlets
from weft.permissions import DEFAULT_PERMISSIONS, Permissions
from weft.runtime.compiling.kept import KeptBuild, UnplacedError
from weft.runtime.compiling.opened import Probe, check_media, check_outlets
from weft.runtime.hands.parameters import ParameterSpec
from weft.runtime.program.compiled import CompiledProgram
from weft.sources import load_sources
from weft.syntax.ast import OutputStatement, Program, Statement
from weft.syntax.includes import load
from weft.syntax.parser import parse
from weft.syntax.scanner import read_text

T = TypeVar("T")


@dataclass(frozen=True)
class Request:
    """A text to compile, and how.

    `settings` override those of the patch; a picture that is larger than `room` (width, height) is made smaller, with
    the same aspect. `probe` looks into picture files, which are not looked at without it; `permissions` say what may be
    opened besides what is below the folder of the text. An output statement to `consume` (`display(a@v)`) replaces
    all output statements of the patch, except those whose words are in `stay`. So does `only` the one in the text of
    this name, at this offset. The whole compile may take `most_steps`
    (`graph/budget.py`). `read` gives the texts of files that are included.
    """

    source: Source
    contexts: ContextTable
    settings: Mapping[str, float] | None = None
    probe: Probe | None = None
    permissions: Permissions = DEFAULT_PERMISSIONS
    read: Callable[[str], str] = read_text
    room: tuple[int, int] | None = None
    consume: str | None = None
    stay: Container[str] = frozenset()
    only: tuple[str, int] | None = None
    most_steps: int = MOST_STEPS


@dataclass(frozen=True)
class Meaning:
    """A program whose meaning is known: nothing is wrong with it. `files` are the texts and `media` the pictures that
    it names; `opened` are the places in the text at which pictures and sounds are opened, by name or by path;
    `warnings` are those found so far. Lowering continues to spend from the same `budget`. `edit` is what became of the
    names since the build before."""

    patch: Patch
    program: Program
    contexts: ContextTable
    files: tuple[str, ...]
    media: tuple[str, ...]
    opened: Mapping[str, Span]
    warnings: tuple[Diagnostic, ...]
    budget: Budget
    edit: Edit
    parse_ms: float
    graph_ms: float


@dataclass(frozen=True)
class CheckedMeaning(Meaning):
    """The same with what its graph can be made of, which is for this process alone."""

    checked: CheckedPatch


@dataclass(frozen=True)
class Analysis(Meaning):
    """A program with its render graph."""

    graph: RenderGraph


def analyse(request: Request, kept: KeptBuild | None = None) -> Analysis:
    """Reads a text and builds its render graph. What is `kept` of an earlier build is not done again.

    Raises WeftError with all diagnostics if there is an error among them.
    """
    found = understand(request, kept or KeptBuild())
    started = time.perf_counter()
    graph = found.checked.graph(request.contexts)
    known = {**vars(found), "graph_ms": found.graph_ms + (time.perf_counter() - started) * 1e3}
    del known["checked"]
    return Analysis(**known, graph=graph)


def understand(request: Request, kept: KeptBuild, has_kernels: bool = True) -> CheckedMeaning:
    """Reads a text and finds what it means, without a graph. What is `kept` of an earlier build is not done again; for
    `has_kernels` see `KeptBuild.would_lose_much`.

    Raises WeftError with all diagnostics if there is an error among them.
    """
    report = Report()
    started = time.perf_counter()
    load_sources()
    load_outlets()
    source, contexts, permissions = request.source, request.contexts, request.permissions
    loaded = load(source, report, contexts.statements, request.read, kept.parse, permissions)
    parsed = time.perf_counter()
    program = _consumed(loaded.program, request, report)
    meaning = Report()
    of_media = Report()
    program = kept.with_open_numbers(program)
    report = Report(kept.located(report.diagnostics))
    reach = permissions.reach(source.name)
    named = check_media(loaded.program, of_media, reach, request.probe, kept.opening)
    media = {name: each.header for name, each in named.items()}
    patch, edit = kept.collect(program, contexts, meaning, media)
    if report.errors and kept.would_lose_much(edit, has_kernels):
        raise UnplacedError
    check_outlets(patch, of_media, reach)
    unbound = frozenset(meaning.errors)
    patch = _with_settings(patch, request, meaning)
    budget = Budget(kept.most_steps(request.most_steps))
    known, edit = kept.shapes(patch, program, budget, edit)
    found = checked(patch, meaning, budget, known)
    meaning.add(of_media)
    meaning.add(false_friends(loaded.program))
    meaning = Report(kept.located(meaning.diagnostics))
    report.add(without_follow_ups(meaning, report, unbound, loaded.program, kept.holder))
    report.raise_errors()
    files = tuple(dict.fromkeys(file for name in media if (file := file_of(name)) is not None))
    opened = {name: kept.now(each.place) for name, each in named.items()}
    took = (parsed - started) * 1e3, (time.perf_counter() - parsed) * 1e3
    warnings = tuple(report)
    return CheckedMeaning(
        patch, loaded.program, contexts, loaded.files, files, opened, warnings, budget, edit, *took, found
    )


def _consumed(program: Program, request: Request, report: Report) -> Program:
    """The program with the output statement that is asked for in place of its own."""
    if request.consume is None and request.only is None:
        return program
    others = (each for each in program.statements if _stays(each, request))
    if request.consume is None:
        return Program(tuple(others))
    asked = parse(Source("(asked for)", request.consume), report, request.contexts.statements)
    return Program((*others, *asked.statements))


def _stays(statement: Statement, request: Request) -> bool:
    place = statement.span.source.name, statement.span.start
    return not isinstance(statement, OutputStatement) or statement.name in request.stay or place == request.only


def _with_settings(patch: Patch, request: Request, report: Report) -> Patch:
    """The patch with the settings and the size that are asked for."""
    for name, value in (request.settings or {}).items():
        if not SETTINGS[name].accepts(value):
            report.tell("setting-out-of-range", f"{name} is {SETTINGS[name].range}, not {value:g}")
    if request.settings:
        patch = replace(patch, settings={**patch.settings, **request.settings})
    return replace(patch, settings=fitted(patch.settings, request.room)) if request.room else patch


@contextmanager
def without_collection() -> Iterator[None]:
    """Suspends garbage collection: a compile makes many objects that live until it ends."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def each_subgraph(found: Analysis, make: Callable[[Subgraph], T]) -> tuple[list[T], tuple[Diagnostic, ...]]:
    """The results of `make` for the subgraphs, in their order, and all warnings. Raises WeftError with the errors of
    all subgraphs together."""
    report = Report(list(found.warnings))
    made: list[T] = []
    for subgraph in found.graph.subgraphs:
        try:
            made.append(make(subgraph))
        except WeftError as failure:
            report.add(failure.diagnostics)
            if found.budget.is_spent:
                break
    report.raise_errors()
    return made, tuple(report)


@dataclass(frozen=True)
class Build(Analysis):
    """A compiled program. `units` are in an order in which they can run, and `lowered` is what each was compiled
    from."""

    units: tuple[Unit, ...]
    lowered: tuple[Lowered, ...]
    compile_ms: float

    @property
    def compiled(self) -> CompiledProgram:
        """All that is needed to play it."""
        sampled = (name for unit in self.units for kernel in unit.kernels for name in kernel.pictures)
        return CompiledProgram(
            self.units, self.patch.settings, tuple(map(ParameterSpec.of, self.patch.parameters)), self.contexts,
            (self.parse_ms, self.graph_ms, self.compile_ms), self.patch.fade, self.patch.quantize,
            heard=tuple(dict.fromkeys(name for name in sampled if is_heard(name))), glides=self.patch.glides,
        )  # fmt: skip


def understood(request: Request, kept: KeptBuild) -> CheckedMeaning:
    """See `understand`, for one text after another: what this one means is kept for the next, and no kernels are
    made."""
    def made(kept: KeptBuild) -> CheckedMeaning:
        found = understand(request, kept, has_kernels=False)
        kept.succeed(found.budget, found.edit)
        return found

    return _with(kept, made)


def build(request: Request, optimise: bool = True, kept: KeptBuild | None = None) -> Build:
    """Compiles a text. Without `optimise`, nothing is folded or hoisted. What is `kept` of an earlier build is not done
    again, and has this one afterwards. A build of which nothing is kept has names for listings.

    Raises WeftError with all diagnostics if there is an error among them.
    """
    known = kept or KeptBuild(has_names=True)
    return _with(known, lambda known: _build(request, optimise, known))


def _with(kept: KeptBuild, make: Callable[[KeptBuild], T]) -> T:
    """What `make` gives from what is kept, or from scratch if that cannot be used."""
    with without_collection():
        try:
            return make(kept)
        except StaleError:
            kept.become(KeptBuild())
            return make(kept)
        except UnplacedError:
            alone = KeptBuild()
            whole = make(alone)
            kept.become(alone)
            return whole


def _build(request: Request, optimise: bool, kept: KeptBuild) -> Build:
    """See `build`. Raises StaleError or UnplacedError if what is kept cannot be used."""
    found, contexts = analyse(request, kept), request.contexts
    started = time.perf_counter()

    def made_unit(sub: Subgraph) -> tuple[Unit, Lowered]:
        known = kept.unit(found.patch, found.graph, sub, contexts[sub.context], found.budget, found.edit)
        is_new = not known.lowering.pool
        try:
            unit, lowered = compile_unit(found.patch, found.graph, sub, contexts, optimise, found.budget, known)
        except WeftError as failure:
            raise WeftError(*kept.located(failure.diagnostics)) from failure
        loops = kept.loops(unit, is_new) if unit.loops else unit.loops
        if loops is None:
            kept.forget_unit(sub.name)
            return made_unit(sub)
        in_order = sorted(loops, key=lambda span: (span.source.library, span.source.name, span.start))
        return replace(unit, loops=tuple(in_order)), lowered

    made, warnings = each_subgraph(found, made_unit)
    kept.succeed(found.budget, found.edit)
    kept.keep_units(found.graph)
    compile_ms = (time.perf_counter() - started) * 1e3
    units, lowered = tuple(unit for unit, _ in made), tuple(lowered for _, lowered in made)
    known = {**vars(found), "warnings": warnings}
    return Build(**known, units=units, lowered=lowered, compile_ms=compile_ms)
