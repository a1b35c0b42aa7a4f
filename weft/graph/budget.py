"""The work that one compile may take, counted in steps, so that a text is refused on every machine or on none.

A short text can ask for any amount of work: loops within loops, spindles that call one another twice, remaps of
remaps. All parts of a compile whose work can grow faster than the text draw on one budget. When it is spent, the error
points at the loop, call or strand that used most of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, TypeAlias

from weft.errors import Span, WeftError, error

MOST_STEPS: Final = 1_200_000
"""A step usually takes about a microsecond, so the whole budget is spent in less than two seconds. Those of loops with
memory and of remaps in remaps take up to four."""

TOO_LARGE: Final = "program-too-large"
"""The code of the diagnostic when the budget is spent."""

Kind: TypeAlias = Literal["loop", "call", "strand", "statement"]

# A part of the text is large if it takes a quarter of the budget.
_LARGE: Final = 4

_OF_STRANDS: Final = "each remap and each call evaluates again what is below it, and each noise is long: use fewer"
_HINTS: Final[Mapping[Kind, str]] = MappingProxyType(
    {
        "loop": "make it shorter, or nest fewer loops: a loop with memory is written out step by step",
        "call": "a spindle that calls another twice doubles the work at each level: call it once and use its outputs",
        "strand": _OF_STRANDS,
        "statement": _OF_STRANDS,
    }
)


class _Site(NamedTuple):
    """A part of the text that is being evaluated, and what had been spent before it."""

    span: Span
    kind: Kind
    before: int


class Within:
    """Marks a part of the text as being evaluated, for a `with` statement. A part that is evaluated in pieces has
    several. It is a plain class for speed, since all strands and calls go through it."""

    __slots__ = ("_budget", "_site")

    def __init__(self, budget: Budget, site: _Site) -> None:
        self._budget = budget
        self._site = site

    def __enter__(self) -> None:
        self._budget.sites.append(self._site)

    def __exit__(self, *failure: object) -> None:
        self._budget.sites.pop()
        if self._site.kind == "loop":
            self._budget.credit((self._site.span,), self._budget.spent - self._site.before)


class Budget:
    """Counts the steps of one compile."""

    def __init__(self, most: int = MOST_STEPS) -> None:
        self._most = most
        self._of_loops: dict[Span, int] = {}
        """The steps spent by loops that are not being evaluated at the moment."""
        self.sites: list[_Site] = []
        self.spent = 0

    @property
    def is_spent(self) -> bool:
        return self.spent > self._most

    @property
    def loops(self) -> tuple[Span, ...]:
        """The loops that are being evaluated."""
        return tuple(site.span for site in self.sites if site.kind == "loop")

    def spend(self, steps: int, span: Span | None = None) -> None:
        """Takes steps from the budget. They count for the part of the text that is being evaluated, or else for that at
        `span`. Raises WeftError if the budget has fewer left."""
        self.spent += steps
        if self.spent > self._most:
            raise self._refusal(span)

    def spend_singly(self, steps: int) -> None:
        """Takes steps one after another: the same as `spend`, but if there are fewer left, it first takes these."""
        self.spend(min(steps, self._most + 1 - self.spent))

    def within(self, span: Span, kind: Kind) -> Within:
        """For a `with` statement: the steps spent in it count for this part of the text."""
        return Within(self, _Site(span, kind, self.spent))

    def credit(self, loops: Iterable[Span], steps: int) -> None:
        """Notes steps that were spent because of loops."""
        for loop in loops:
            self._of_loops[loop] = self._of_loops.get(loop, 0) + steps

    def _refusal(self, span: Span | None) -> WeftError:
        """Blames the innermost part that has used a quarter of the budget, and of nested loops the outermost. If no
        such part is being evaluated, it blames the most expensive loop, since the slots of a loop are evaluated
        later."""
        sites = self.sites
        at = next((n for n in reversed(range(len(sites))) if self._is_large(sites[n])), None)
        while at and sites[at].kind == sites[at - 1].kind == "loop":
            at -= 1
        loop = max(self._of_loops, key=self._of_loops.__getitem__, default=None)
        kind: Kind = "strand"
        if at is not None:
            span, kind = sites[at].span, sites[at].kind
        elif loop is not None and self._of_loops[loop] * _LARGE > self._most:
            at, span, kind = 0, loop, "loop"
        elif sites:
            span, kind = sites[0].span, sites[0].kind
        what = "this patch" if at is None else f"this {kind}"
        return error(TOO_LARGE, f"{what} takes more than {self._most:,} steps to compile", span, _HINTS[kind])

    def _is_large(self, site: _Site) -> bool:
        earlier = self._of_loops.get(site.span, 0) if site.kind == "loop" else 0
        return (self.spent - site.before + earlier) * _LARGE > self._most
