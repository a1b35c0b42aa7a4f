"""`weft bench`: what patches cost on every backend of this machine, as tables or as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from weft.backends.cpu import EXECUTORS, IN_DOUBLE, executor_problem
from weft.backends.hardware import cores
from weft.backends.native.executor import ExactExecutor, NativeExecutor
from weft.backends.native.llvm import runs_here
from weft.backends.registry import Registry, load_registry
from weft.backends.select import Choice, contexts_of, read_costs, refused, write_costs
from weft.backends.wasm import WasmExecutor
from weft.cli.arguments import (
    ALLOW, SAMPLES, SIZE, NumberRange, WholeRange, compile_file, setting_overrides, shipped_patches
)
from weft.cli.console import Missing, output, say
from weft.codegen.native.target import ISAS, TIERS, Isa
from weft.contexts import VISUAL
from weft.errors import WeftError, did_you_mean, error, path_of, visible
from weft.permissions import Permissions
from weft.runtime.compiling.stages import Build
from weft.runtime.inspect.measure import (
    Cost, ExecutorConfig, MeasuredCosts, Transfer, contexts, find_cards, machine, measure, measure_card, measure_costs,
    transfers
)
from weft.runtime.inspect.statement_costs import OTHERWISE, costs_of_statements
from weft.syntax.includes import open_source

_BAR = 20

# What the tables show, in the help and above each of them.
_OF_PATCHES = (
    "A tick is a frame of a picture, a block of a sound, or a value of another context. compile ms: from the text to a "
    "loaded kernel. first ms: its first tick. p50 ms, p95 ms: half of the ticks, and 95 of 100, take no longer. of the "
    "budget: the p50 as a share of the time for a tick at the patch's rate; 100% and more is too slow. estimated: from "
    "a part of the tick."
)
_OF_WAYS = (
    "What it takes to pass a value on: by a call, one or 4,096 values; and with a graphics card, a number (uniform), a "
    "picture (buffer), a strand that stays on the card (bind), and one that is read back (read). As claimed: an "
    "estimate for machines whose processor and card share one memory."
)
_OF_CARDS = "What work costs on a graphics card: as measured now, and as weft assumed when it chose what runs there."


@dataclass(frozen=True)
class BenchRow:
    """One line of the results; `compile_ms` is the time from the text to a loaded kernel."""

    patch: str
    compile_ms: float
    cost: Cost

    @property
    def budget_share(self) -> float:
        return self.cost.timing.p50 / self.cost.budget_ms

    @property
    def extent(self) -> str:
        height, width = self.cost.shape
        return f"{width} samples" if self.cost.context == "audio" else f"{width}x{height}"

    def to_json(self) -> dict[str, Any]:
        cost, way = self.cost, self.cost.way
        is_sound = cost.context == "audio"
        extent = {"block": cost.shape[1]} if is_sound else {"size": self.extent}
        speed = {"realtime_factor": _rounded(1 / self.budget_share)}
        return {
            "patch": self.patch,
            "context": cost.context,
            "backend": way.executor,
            **extent,
            "compile_ms": _rounded(self.compile_ms),
            "threads": way.threads,
            "tier": way.tier if way.is_native else way.made,
            "isa": way.isa.name if way.isa else None,
            "estimated": cost.estimated,
            "first_ms": _rounded(cost.timing.first),
            "p50_ms": _rounded(cost.timing.p50),
            "p95_ms": _rounded(cost.timing.p95),
            **(speed if is_sound else {"mpix_per_s": _rounded(cost.elements_per_second / 1e6)}),
            "budget_share": _rounded(self.budget_share),
        }


def text_to_kernels(build: Build) -> float:
    """Milliseconds from the text to kernels."""
    return build.parse_ms + build.graph_ms + build.compile_ms


def json_of(
    rows: Sequence[BenchRow], routes: Sequence[Transfer], cards: Sequence[Choice], costs: Sequence[MeasuredCosts]
) -> dict[str, Any]:
    """All results, for programs."""
    devices = [
        {"backend": card.shown, "name": card.device.name, "driver": card.device.driver,
         "software": card.device.software}
        for card in cards
    ]  # fmt: skip
    return {
        "machine": {**machine(), "devices": devices},
        "results": [row.to_json() for row in rows],
        "transfers": [
            {"from": route.source, "to": route.target, "mechanism": route.mechanism, "bytes": route.bytes,
             "p50_us": _rounded(route.p50_us)}
            for route in routes
        ],
        "costs": [
            {"backend": each.card.shown, "cost": name, "measured_s": _rounded(measured), "believed_s": believed}
            for each in costs
            for name, measured, believed in each.lines()
        ],
    }  # fmt: skip


def print_tables(
    builds: Sequence[tuple[str, Build]], rows: Sequence[BenchRow], routes: Sequence[Transfer], cards: Sequence[Choice],
    costs: Sequence[MeasuredCosts],
) -> None:
    """All results, for people."""
    facts = machine()
    console = Console(width=None if sys.stdout.isatty() else 160)
    console.print(f"{facts['processor']} · {facts['simd']} · {facts['cores']} cores · Python {facts['python']}")
    for card in cards:
        software = "software, on this processor" if card.device.software else ""
        console.print(" · ".join(filter(None, (card.shown, card.device.name, card.device.driver, software))))
    console.print(_OF_PATCHES, style="dim", highlight=False)
    console.print(_table(rows))
    for file, build in builds:
        total = text_to_kernels(build)
        name = escape(visible(Path(file).stem))
        console.print(f"{name}: text → tree {build.parse_ms:.1f} ms, text → kernels {total:.1f} ms")
    console.print(_OF_WAYS, style="dim", highlight=False)
    console.print(_route_table(routes))
    if costs:
        console.print(_OF_CARDS, style="dim", highlight=False)
        console.print(_cost_table(costs))


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def _table_of(words: Sequence[str], numbers: Sequence[str]) -> Table:
    """An empty table with these columns."""
    table = Table(box=None, pad_edge=False)
    for title in words:
        table.add_column(title, no_wrap=True)
    for title in numbers:
        table.add_column(title, justify="right", no_wrap=True)
    return table


def _route_table(routes: Sequence[Transfer]) -> Table:
    """The cost of moving values here, and the claimed cost where processor and card share their memory."""
    table = _table_of(("from", "to", "by"), ("bytes", "µs", "µs with shared memory, as claimed"))
    for route in routes:
        times = map(_microseconds, (route.p50_us, route.claimed_us))
        table.add_row(route.source, route.target, route.mechanism, f"{route.bytes:,}", *times)
    return table


def _microseconds(took: float | None) -> str:
    if took is None:
        return ""
    return f"{took:,.3g}" if took < 100 else f"{took:,.0f}"


def _cost_table(costs: Sequence[MeasuredCosts]) -> Table:
    """The measured costs, and those that the choice of a backend assumes."""
    table = _table_of(("device", "cost of"), ("ns, measured", "ns, as assumed"))
    for each in costs:
        for name, measured, believed in each.lines():
            table.add_row(each.card.shown, name.replace("_", " "), f"{measured * 1e9:.3g}", f"{believed * 1e9:.3g}")
    return table


def _table(rows: Sequence[BenchRow]) -> Table:
    times = ("compile ms", "first ms", "p50 ms", "p95 ms")
    table = _table_of(("patch", "context", "backend"), ("extent", *times, "speed"))
    table.add_column("of the budget", no_wrap=True)
    for row in rows:
        cost, timing, used = row.cost, row.cost.timing, row.budget_share
        took = (row.compile_ms, timing.first, timing.p50, timing.p95)
        shown = [f"{ms:,.0f}" if ms >= 100 else f"{ms:.2f}" for ms in took]
        per_second = f"{cost.elements_per_second / 1e6:,.3f} Mpixel/s"
        speed = f"{1 / used:.3g} × real time" if cost.context == "audio" else per_second
        filled = min(_BAR, round(used * _BAR))
        share = f"{used:.1%}" if used < 10 else f"{used:,.0f} ×"
        bar = f"{'█' * filled}{'·' * (_BAR - filled)} {share}" + " estimated" * cost.estimated
        table.add_row(escape(visible(row.patch)), cost.context, cost.way.text, row.extent, *shown, speed, bar)
    return table


# The slowest comes first, so that the bars grow shorter from line to line.
_EXECUTORS = tuple(EXECUTORS)[::-1]
_COMPILES = 3

# Executors that are measured only if they are named.
_BY_NAME = (ExactExecutor.name, WasmExecutor.name)

# Measurements shorter than this, in seconds, are not kept: chance should not choose.
_LONG_ENOUGH = 0.2


@click.command("bench", epilog="\n\n".join((_OF_PATCHES, _OF_WAYS, _OF_CARDS)))
@click.argument("patches", nargs=-1, type=click.Path(readable=False), metavar="[FILE]…")
@click.option("--backends", metavar="NAMES", default="", help=f"Which to measure: {', '.join(_EXECUTORS)} (the "
              "reference machine, WebAssembly, numpy, machine code with the same bits everywhere, machine code), or "
              "those of graphics cards, such as gl; default: all but exact and wasm.")
@click.option("--size", type=SIZE, metavar="WxH", help="Size of the picture, instead of the patch's.")
@SAMPLES
@click.option("--seconds", type=NumberRange(0), default=1.0, show_default=True, help="How long "
              "to repeat the ticks for each line of the first table; from 0.2 on, the costs of cards are kept.")
@click.option("--threads", type=WholeRange(1), metavar="N", help="Measure one thread and N, marked × N; default: "
              "one and all cores.")
@click.option("--isa", "isas", metavar="NAMES", default="", help="Machine code for these families of "
              f"processors too, with one thread, at both tiers: {', '.join(ISAS)}.")
@click.option("--by-statement", is_flag=True, help="Name the three statements of each FILE that take most of a frame, "
              "by their operations at each pixel, and what to do about them; measure nothing else.")
@click.option("--json", "as_json", is_flag=True, help="The results as JSON on stdout, with times in ms "
              "(transfers in µs, costs in s).")
@ALLOW
def command(
    patches: Sequence[str], backends: str, size: tuple[int, int] | None, samples: int | None, seconds: float,
    threads: int | None, isas: str, by_statement: bool, as_json: bool, permissions: Permissions,
) -> None:
    """Measure how long FILEs (by default those in patches/bench) take on every backend, with one thread and with
    several, and what it costs to move values between devices. Machine code comes in two tiers: tier 1 is made soon
    after a save, and tier 2, made in a pause, runs faster."""
    registry, names = load_registry(), _names(backends)
    executors = [name for name in _EXECUTORS if name in names or not (names or name in _BY_NAME)]
    configs = list(_configs(executors, threads or cores()))
    configs += [ExecutorConfig(NativeExecutor.name, 1, tier, _isa(isa)) for isa in _names(isas) for tier in TIERS]
    compiled = partial(compile_file, settings=setting_overrides(size, samples=samples), permissions=permissions)
    if by_statement and not names:  # no card is asked for, so none has to be left out
        _show_statements([(file, compiled(file)) for file in patches or _shipped()], configs, seconds, as_json)
        return
    bench = _Bench(registry, compiled, configs, _cards(registry, names), seconds)
    if by_statement:
        _show_statements([(file, compiled(file)) for file in patches or _shipped()], configs, seconds, as_json)
        return
    # The fastest of several builds, since the first one also prepares the grammar.
    builds = [
        (file, min((compiled(file) for _ in range(_COMPILES)), key=text_to_kernels))
        for file in patches or _shipped()
    ]
    rows = [row for file, build in builds for row in bench.rows(file, build)]
    routes = transfers(min(seconds, 0.2), bench.cards)
    costs = measure_costs(bench.cards, routes, read_costs(), min(seconds, 0.2))
    if as_json:
        output(json.dumps(json_of(rows, routes, bench.cards, costs), indent=2))
    else:
        print_tables(builds, rows, routes, bench.cards, costs)
    if seconds >= _LONG_ENOUGH:
        _keep(costs)


_MOST_STATEMENTS = 3


def _show_statements(
    builds: Sequence[tuple[str, Build]], configs: Sequence[ExecutorConfig], seconds: float, as_json: bool
) -> None:
    """Shows which statements take most of a frame, and what to do about them."""
    config = max(configs, key=lambda each: (each.is_native, each.tier, each.threads))
    found: list[dict[str, Any]] = []
    for file, build in builds:
        cost = measure(build, VISUAL.name, config, seconds)
        source = open_source(file)
        statements = costs_of_statements(build.units, source)[:_MOST_STATEMENTS] if cost is not None else []
        if cost is None or not statements:
            say(f"{file}: nothing is computed at each pixel")
            continue
        frame, name = cost.timing.p50, path_of(file)
        if not as_json:
            used = f"{frame / cost.budget_ms:.0%} of the {cost.budget_ms:.3g} that it may take"
            output(f"{name}: a frame takes {frame:.2f} ms, {used}, by {config.text}")
        for each in statements:
            line = None if each.place is None else source.position(each.place.start)[0]
            took, advice = frame * each.share, each.advice(source)
            found.append({
                "file": file, "name": each.name, "line": line, "share": _rounded(each.share), "ms": _rounded(took),
                "advice": advice,
            })  # fmt: skip
            if not as_json:
                place = name if line is None else f"{name}:{line}"
                says = "" if advice == OTHERWISE else f"  {advice}"
                output(f"  {each.name:<12} {each.share:4.0%}  {took:7.2f} ms  {place}{says}")
    if as_json:
        output(json.dumps({"statements": found}, indent=2))
    elif found:
        output(f"what helps otherwise: {OTHERWISE}, and a smaller picture")


def _keep(costs: Sequence[MeasuredCosts]) -> None:
    """Stores the measured costs, for later choices of a backend."""
    try:
        paths = {write_costs(each.card.backend.name, each.card.device, each.measured) for each in costs}
    except OSError as failure:
        say(f"the measured costs cannot be kept: {failure}")
        return
    for path in paths:
        say(f"from now on, these costs decide what is worth running on a graphics card: {path}")


def _shipped() -> list[str]:
    found = sorted((shipped_patches() / "bench").glob("*.weft"))
    if not found:
        raise Missing("there are no patches to measure; name some")
    return [str(path) for path in found]


def _names(listed: str) -> list[str]:
    return [name for name in map(str.strip, listed.split(",")) if name]


def _cards(registry: Registry, names: Sequence[str]) -> tuple[Choice, ...]:
    """The devices of these names, without the CPU; all devices if there are no names. Raises WeftError for an unknown
    name, and for a device that is not available."""
    others = [name for name in names if name not in EXECUTORS]
    if names and not others:
        return ()
    cards, problems = find_cards(registry)
    if not names:
        # By the first words of their names: a device that serves several contexts is reported once.
        families: dict[str, str] = {}
        for name, problem in problems.items():
            families.setdefault(name.partition("_")[0], problem)
        for family, problem in families.items():
            if not any(_is_called(card.backend.name, family) for card in cards):
                say(f"{family} is left out: {problem}")
        return tuple(cards)
    for name in others:
        if not any(_is_called(card.backend.name, name) for card in cards):
            reasons = [problem for known, problem in problems.items() if _is_called(known, name)]
            if not reasons:
                raise refused(name, [*_EXECUTORS, *dict.fromkeys(card.backend.name for card in cards)])
            raise error("backend-not-available", f"{name} is not available: {reasons[0]}")
    return tuple(card for card in cards if any(_is_called(card.backend.name, name) for name in others))


def _is_called(backend: str, name: str) -> bool:
    """Whether a name is that of a backend, or of its family."""
    return name == backend or backend.startswith(f"{name}_")


def _configs(executors: Sequence[str], threads: int) -> Iterator[ExecutorConfig]:
    """The executors of the CPU to measure: with one thread and with several, machine code at each tier."""
    for name in executors:
        problem = executor_problem(name)
        if problem is not None:
            say(f"{name} is left out: {problem}")
            continue
        counts = (1,) if name in IN_DOUBLE else sorted({1, threads})
        tiers = list(TIERS) if ExecutorConfig(name).is_native else [1]
        yield from (ExecutorConfig(name, count, tier) for tier in tiers for count in counts)


def _isa(name: str) -> Isa:
    """A family of processors whose code this machine runs. Raises UsageError or Missing for others."""
    if name not in ISAS:
        raise click.UsageError(f'there is no code for "{name}" ({did_you_mean(name, ISAS) or ", ".join(ISAS)})')
    problem = executor_problem(NativeExecutor.name)
    if problem is None and not runs_here(ISAS[name]):
        problem = f"this processor does not run code for {ISAS[name].title}"
    if problem is not None:
        raise Missing(problem)
    return ISAS[name]


@dataclass(frozen=True)
class _Bench:
    """What to measure: executors of the CPU, and other devices. `compiled` builds a file, for contexts if they
    are given; each measurement takes about `seconds`."""

    registry: Registry
    compiled: Callable[..., Build]
    configs: Sequence[ExecutorConfig]
    cards: tuple[Choice, ...]
    seconds: float

    def rows(self, file: str, build: Build) -> Iterator[BenchRow]:
        """Measures FILE, reports what cannot be measured, and shows a terminal what is being measured."""
        name, compile_ms = Path(file).stem, text_to_kernels(build)
        for context in contexts(build):
            # Only a picture is large enough to be shared among threads, and a single element has no tiers.
            spec = build.contexts[context]
            has_tiers = spec.sweeps_plane or spec.streams
            for config in self.configs:
                if (config.threads > 1 and not spec.sweeps_plane) or (config.tier > 1 and not has_tiers):
                    continue
                self._show_progress(name, context, config.text)
                cost = measure(build, context, config, self.seconds)
                if cost is not None:
                    for line in cost.refused:
                        say(f"{name}: {line}")
                    yield BenchRow(name, compile_ms + cost.load_ms, cost)
            for card in self.cards:
                if card.context == context:
                    self._show_progress(name, context, card.shown)
                    cost = self._on_card(file, build, card)
                    if cost is not None:
                        yield BenchRow(name, compile_ms + cost.load_ms, cost)

    def _on_card(self, file: str, build: Build, card: Choice) -> Cost | None:
        """None also for a patch that the card cannot run, which is reported."""
        contexts = contexts_of(self.registry, {card.context: card})
        if contexts[card.context] != build.contexts[card.context]:
            build = self.compiled(file, contexts)
        try:
            return measure_card(build, card, self.seconds)
        except WeftError as failure:
            say(f"{Path(file).stem} is not measured on {card.shown}: {failure.diagnostics[0].message}")
            return None

    def _show_progress(self, *facts: str) -> None:
        if sys.stderr.isatty():
            click.echo(visible(" · ".join(facts)), err=True)
