"""`weft bench`: what patches cost on every backend of this machine."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from weft.backends import llvm
from weft.backends.cpu import EXECUTORS, executor_problem
from weft.backends.hardware import cores
from weft.backends.native import NativeExecutor
from weft.backends.select import refused
from weft.cli.console import Missing, say
from weft.cli.options import SIZE, NumberRange
from weft.cli.patch import compile_file, shipped_patches
from weft.codegen.native.target import ISAS, TIERS, Isa
from weft.errors import did_you_mean
from weft.runtime.build import Build
from weft.runtime.measure import Cost, Transfer, Way, contexts, machine, measure, transfers

# The slowest comes first, so that the bars grow shorter from line to line.
_BACKENDS = tuple(EXECUTORS)[::-1]
_BAR = 20
_COMPILES = 3


@dataclass(frozen=True)
class _Row:
    """One line of the results; `compile_ms` leads from the text to a kernel that is loaded."""

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
            "tier": way.tier if way.is_native else "bytecode",
            "isa": way.isa.name if way.isa else None,
            "estimated": cost.estimated,
            "first_ms": _rounded(cost.timing.first),
            "p50_ms": _rounded(cost.timing.p50),
            "p95_ms": _rounded(cost.timing.p95),
            **(speed if is_sound else {"mpix_per_s": _rounded(cost.elements_per_second / 1e6)}),
            "budget_share": _rounded(self.budget_share),
        }


@click.command("bench")
@click.argument("patches", nargs=-1, type=click.Path(), metavar="[FILE]…")
@click.option("--backends", metavar="NAMES", default=",".join(_BACKENDS), show_default=True, help="Which to measure.")
@click.option("--size", type=SIZE, metavar="WxH", help="Size of the picture, instead of the patch's.")
@click.option("--seconds", type=NumberRange(0), default=1.0, show_default=True, help="For each measurement.")
@click.option("--threads", type=click.IntRange(1), metavar="N", help="At most so many threads; default: all cores.")
@click.option("--isa", "isas", metavar="NAMES", default="", help="Machine code also for these families of processors: "
              f"{', '.join(ISAS)}.")
@click.option("--json", "as_json", is_flag=True, help="The results as JSON on stdout.")
def command(
    patches: Sequence[str],
    backends: str,
    size: tuple[int, int] | None,
    seconds: float,
    threads: int | None,
    isas: str,
    as_json: bool,
) -> None:
    """Measure FILEs (by default those in patches/bench) on every backend, with one thread and with several."""
    ways = _ways(_names(backends), _names(isas), threads or cores())
    settings = {"width": float(size[0]), "height": float(size[1])} if size else None
    builds = [(file, _compiled(file, settings)) for file in patches or _shipped()]
    rows = [row for file, build in builds for row in _measured(file, build, ways, seconds)]
    routes = transfers(min(seconds, 0.2))
    if as_json:
        found = [row.to_json() for row in rows]
        result = {"machine": machine(), "results": found, "transfers": [_route(r) for r in routes]}
        click.echo(json.dumps(result, indent=2))
    else:
        _show(builds, rows, routes)


def _compiled(file: str, settings: Mapping[str, float] | None) -> Build:
    """FILE, compiled; of several times the fastest, since the first one also prepares the grammar."""
    builds = [compile_file(file, settings=settings) for _ in range(_COMPILES)]
    return min(builds, key=_text_to_bytecode)


def _text_to_bytecode(build: Build) -> float:
    return build.parse_ms + build.graph_ms + build.compile_ms


def _shipped() -> list[str]:
    found = sorted((shipped_patches() / "bench").glob("*.weft"))
    if not found:
        raise Missing("there are no patches to measure; name some")
    return [str(path) for path in found]


def _names(listed: str) -> list[str]:
    return [name for name in map(str.strip, listed.split(",")) if name]


def _ways(backends: Sequence[str], isas: Sequence[str], threads: int) -> list[Way]:
    """The ways to execute that are measured: with one thread and with several, machine code at each tier."""
    ways: list[Way] = []
    for name in backends:
        if name not in EXECUTORS:
            raise refused(name, _BACKENDS)
        problem = executor_problem(name)
        if problem is not None:
            say(f"{name} is left out: {problem}")
            continue
        counts = (1,) if name == "vm" else sorted({1, threads})
        tiers = list(TIERS) if Way(name).is_native else [1]
        ways += [Way(name, count, tier) for tier in tiers for count in counts]
    for isa in isas:
        ways += [Way(NativeExecutor.name, 1, tier, _isa(isa)) for tier in TIERS]
    return ways


def _isa(name: str) -> Isa:
    """A family of processors that this machine can stand for."""
    if name not in ISAS:
        raise click.UsageError(f'there is no code for "{name}" ({did_you_mean(name, ISAS) or ", ".join(ISAS)})')
    problem = executor_problem(NativeExecutor.name)
    if problem is None and not llvm.runs_here(ISAS[name]):
        problem = f"this processor does not run code for {ISAS[name].title}"
    if problem is not None:
        raise Missing(problem)
    return ISAS[name]


def _measured(file: str, build: Build, ways: Sequence[Way], seconds: float) -> Iterator[_Row]:
    compile_ms = _text_to_bytecode(build)
    for context in contexts(build):
        spec = build.contexts[context]
        for way in ways:
            # Only a picture is large enough to be shared among threads, and a single element has no tiers.
            if way.threads > 1 and not spec.sweeps_plane:
                continue
            if way.tier > 1 and not (spec.sweeps_plane or spec.streams):
                continue
            _tell(f"{Path(file).name} · {context} · {_way_text(way)}")
            cost = measure(build, context, way, seconds)
            if cost is not None:
                yield _Row(Path(file).stem, compile_ms + cost.load_ms, cost)


def _tell(line: str) -> None:
    if sys.stderr.isatty():
        click.echo(line, err=True)


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def _route(route: Transfer) -> dict[str, Any]:
    return {"from": route.source, "to": route.target, "mechanism": route.mechanism, "bytes": route.bytes,
            "p50_us": _rounded(route.p50_us)}  # fmt: skip


def _show(builds: Sequence[tuple[str, Build]], rows: Sequence[_Row], routes: Sequence[Transfer]) -> None:
    facts = machine()
    console = Console(width=None if sys.stdout.isatty() else 160)
    console.print(f"{facts['processor']} · {facts['simd']} · {facts['cores']} cores · Python {facts['python']}")
    console.print(_table(rows))
    for file, build in builds:
        total = _text_to_bytecode(build)
        console.print(f"{Path(file).stem}: text → tree {build.parse_ms:.1f} ms, text → bytecode {total:.1f} ms")
    for route in routes:
        console.print(
            f"{route.source} → {route.target} by {route.mechanism}: {route.bytes} bytes in {route.p50_us:.1f} µs"
        )


def _table(rows: Sequence[_Row]) -> Table:
    table = Table(box=None, pad_edge=False)
    for title in ("patch", "context", "backend"):
        table.add_column(title, no_wrap=True)
    for title in ("extent", "compile ms", "first ms", "p50 ms", "p95 ms", "speed"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("of the budget", no_wrap=True)
    for row in rows:
        cost, timing = row.cost, row.cost.timing
        times = (_milliseconds(ms) for ms in (row.compile_ms, timing.first, timing.p50, timing.p95))
        backend = _way_text(cost.way)
        share = _bar(row.budget_share) + " estimated" * cost.estimated
        table.add_row(row.patch, cost.context, backend, row.extent, *times, _speed(row), share)
    return table


def _way_text(way: Way) -> str:
    parts = [way.executor, f"tier {way.tier}" if way.is_native else "", f"for {way.isa.title}" if way.isa else ""]
    parts.append(f"× {way.threads}" if way.threads > 1 else "")
    return " ".join(filter(None, parts))


def _milliseconds(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def _speed(row: _Row) -> str:
    if row.cost.context == "audio":
        return f"{1 / row.budget_share:.3g} × real time"
    return f"{row.cost.elements_per_second / 1e6:,.3f} Mpixel/s"


def _bar(share: float) -> str:
    """A bar that is full where the whole budget is used up."""
    filled = min(_BAR, round(share * _BAR))
    words = f"{share:.1%}" if share < 10 else f"{share:,.0f} × "
    return f"{'█' * filled}{'·' * (_BAR - filled)} {words.rstrip()}"
