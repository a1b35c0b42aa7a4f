"""The results of `weft bench`, for programs and for people."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from weft.backends.select import Choice
from weft.runtime.build import Build
from weft.runtime.measure import Cost, machine
from weft.runtime.measure_costs import MeasuredCosts
from weft.runtime.transfers import Transfer
from weft.wording import visible

_BAR = 20


@dataclass(frozen=True)
class Row:
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
            "tier": way.tier if way.is_native else way.made,
            "isa": way.isa.name if way.isa else None,
            "estimated": cost.estimated,
            "first_ms": _rounded(cost.timing.first),
            "p50_ms": _rounded(cost.timing.p50),
            "p95_ms": _rounded(cost.timing.p95),
            **(speed if is_sound else {"mpix_per_s": _rounded(cost.elements_per_second / 1e6)}),
            "budget_share": _rounded(self.budget_share),
        }


def text_to_bytecode(build: Build) -> float:
    """Milliseconds from the text to kernels."""
    return build.parse_ms + build.graph_ms + build.compile_ms


def json_of(
    rows: Sequence[Row], routes: Sequence[Transfer], cards: Sequence[Choice], costs: Sequence[MeasuredCosts]
) -> dict[str, Any]:
    """All of it, for programs."""
    devices = [
        {"backend": card.shown, "name": device.name, "driver": device.driver, "software": device.software}
        for card in cards
        for device in (card.device,)
    ]
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
    builds: Sequence[tuple[str, Build]],
    rows: Sequence[Row],
    routes: Sequence[Transfer],
    cards: Sequence[Choice],
    costs: Sequence[MeasuredCosts],
) -> None:
    """All of it, for people."""
    facts = machine()
    console = Console(width=None if sys.stdout.isatty() else 160)
    console.print(f"{facts['processor']} · {facts['simd']} · {facts['cores']} cores · Python {facts['python']}")
    for card in cards:
        software = "software, on this processor" if card.device.software else ""
        console.print(" · ".join(filter(None, (card.shown, card.device.name, card.device.driver, software))))
    console.print(_table(rows))
    for file, build in builds:
        total = text_to_bytecode(build)
        name = escape(visible(Path(file).stem))
        console.print(f"{name}: text → tree {build.parse_ms:.1f} ms, text → bytecode {total:.1f} ms")
    console.print(_route_table(routes))
    if costs:
        console.print(_cost_table(costs))


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def _route_table(routes: Sequence[Transfer]) -> Table:
    """What values cost on their way, beside what is said of machines whose processor and card share their memory."""
    table = Table(box=None, pad_edge=False)
    for title in ("from", "to", "by"):
        table.add_column(title, no_wrap=True)
    for title in ("bytes", "µs", "µs with shared memory, as claimed"):
        table.add_column(title, justify="right", no_wrap=True)
    for route in routes:
        times = map(_microseconds, (route.p50_us, route.claimed_us))
        table.add_row(route.source, route.target, route.mechanism, f"{route.bytes:,}", *times)
    return table


def _microseconds(took: float | None) -> str:
    if took is None:
        return ""
    return f"{took:,.3g}" if took < 100 else f"{took:,.0f}"


def _cost_table(costs: Sequence[MeasuredCosts]) -> Table:
    """What a choice goes by, beside what was measured."""
    table = Table(box=None, pad_edge=False)
    for title in ("device", "cost of"):
        table.add_column(title, no_wrap=True)
    for title in ("ns, measured", "ns, as the choice has it"):
        table.add_column(title, justify="right", no_wrap=True)
    for each in costs:
        for name, measured, believed in each.lines():
            table.add_row(each.card.shown, name.replace("_", " "), f"{measured * 1e9:.3g}", f"{believed * 1e9:.3g}")
    return table


def _table(rows: Sequence[Row]) -> Table:
    table = Table(box=None, pad_edge=False)
    for title in ("patch", "context", "backend"):
        table.add_column(title, no_wrap=True)
    for title in ("extent", "compile ms", "first ms", "p50 ms", "p95 ms", "speed"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("of the budget", no_wrap=True)
    for row in rows:
        cost, timing = row.cost, row.cost.timing
        times = (_milliseconds(ms) for ms in (row.compile_ms, timing.first, timing.p50, timing.p95))
        backend = cost.way.text
        share = _bar(row.budget_share) + " estimated" * cost.estimated
        table.add_row(escape(visible(row.patch)), cost.context, backend, row.extent, *times, _speed(row), share)
    return table


def _milliseconds(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def _speed(row: Row) -> str:
    if row.cost.context == "audio":
        return f"{1 / row.budget_share:.3g} × real time"
    return f"{row.cost.elements_per_second / 1e6:,.3f} Mpixel/s"


def _bar(share: float) -> str:
    """A bar that is full where the whole budget is used up."""
    filled = min(_BAR, round(share * _BAR))
    words = f"{share:.1%}" if share < 10 else f"{share:,.0f} × "
    return f"{'█' * filled}{'·' * (_BAR - filled)} {words.rstrip()}"
