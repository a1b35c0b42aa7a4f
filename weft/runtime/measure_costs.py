"""Measures the costs by which pictures are left to the CPU or given to a graphics card."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields

from weft.backends.cpu import EXECUTORS, executor_problem
from weft.backends.known_costs import KnownCosts
from weft.backends.placement import Costs, operations
from weft.backends.select import Choice
from weft.contexts import VISUAL, ContextTable
from weft.errors import Source
from weft.runtime.build import Build, build
from weft.runtime.measure import Way, measure
from weft.runtime.measure_cards import measure_card
from weft.runtime.transfers import Transfer

# A picture of common operations, in which everything moves.
_TEXT = """\
a = sin(me@x * 13 + me@time) + sin(me@y * 11 - me@time * 1.3)
b = sqrt(abs(a * me@x - 0.3)) + 1 / (1 + a * a + me@y)
display(fract(a * b + me@time), a * 0.3 + 0.5, clamp(b * me@x - a * me@y, 0, 1))
"""

# The sizes of pictures: one that takes no time besides being asked for, one on the CPU, and one for a card.
_TINY, _ON_CPU, _ON_CARD = (16, 16), (512, 256), (2048, 1024)

# What is less than can be told apart from nothing.
_LEAST = 1e-15


@dataclass(frozen=True, slots=True)
class MeasuredCosts:
    """What was measured of a card, and what the choice would have gone by."""

    card: Choice
    measured: Costs
    believed: Costs

    def lines(self) -> Iterator[tuple[str, float, float]]:
        """Each cost by its name, in seconds: as measured, and as believed."""
        for each in fields(Costs):
            yield each.name, getattr(self.measured, each.name), getattr(self.believed, each.name)


def measure_costs(
    cards: Iterable[Choice], routes: Sequence[Transfer], known: KnownCosts, seconds: float
) -> list[MeasuredCosts]:
    """The costs of the cards that draw pictures, about so many seconds for each of four measurements; `routes` has what
    the ways to and from them take. Raises WeftError if a card does not do what it should."""
    return [
        MeasuredCosts(card, _measured(card, routes, seconds), known.of(card.backend.name, card.device))
        for card in cards
        if card.context == VISUAL.name
    ]


def _measured(card: Choice, routes: Sequence[Transfer], seconds: float) -> Costs:
    (tiny, least), (large, most) = (_on_card(card, size, seconds) for size in (_TINY, _ON_CARD))
    reads = [route.p50_us for route in routes if (route.source, route.mechanism) == (card.shown, "read")]
    sends = [r.p50_us / r.bytes for r in routes if (r.target, r.mechanism) == (card.shown, "upload")]
    return Costs(
        cpu_operation=max(_LEAST, _on_cpu(seconds)),
        gpu_operation=max(_LEAST, (most - least) / (large - tiny)),
        launch=max(_LEAST, least),
        wait=max(_LEAST, min(reads, default=least * 1e6) * 1e-6),
        upload=max(_LEAST, min(sends, default=Costs().upload * 1e6) * 1e-6),
    )


def _on_card(card: Choice, size: tuple[int, int], seconds: float) -> tuple[int, float]:
    """How many operations a picture of this size takes, and how many seconds until the card has drawn it."""
    program = _drawn(size)
    cost = measure_card(program, card, seconds)
    assert cost is not None, "the program has a picture"
    return _operations(program, size), cost.timing.p50 * 1e-3


def _on_cpu(seconds: float) -> float:
    """What an operation takes on one core, in seconds."""
    program = _drawn(_ON_CPU)
    name = next(name for name in EXECUTORS if executor_problem(name) is None)
    cost = measure(program, VISUAL.name, Way(name, 1), seconds)
    assert cost is not None, "the program has a picture"
    return cost.timing.p50 * 1e-3 / _operations(program, _ON_CPU)


def _drawn(size: tuple[int, int]) -> Build:
    width, height = size
    settings = {"width": float(width), "height": float(height)}
    return build(Source("(measured)", _TEXT), ContextTable((VISUAL,)), settings)


def _operations(program: Build, size: tuple[int, int]) -> int:
    (unit,) = program.units
    return operations(unit.kernel, size[::-1])
