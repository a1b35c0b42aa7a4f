"""What the command lines have in common."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any

from weft.runtime.inspect.measure import machine


def parser(prog: str, description: str, peers: Collection[str], kernels: Collection[str]) -> argparse.ArgumentParser:
    """What every measurement can be told."""
    made = argparse.ArgumentParser(prog=prog, description=description)
    made.add_argument("--peers", type=names(peers), default=list(peers), help=f"of {', '.join(peers)}")
    made.add_argument("--kernels", type=names(kernels), default=list(kernels), help=f"of {', '.join(kernels)}")
    made.add_argument("--seconds", type=float, default=2.0, help="for each measurement, all rounds together")
    made.add_argument("--rounds", type=int, default=8, help="how many turns each takes")
    made.add_argument("--json", action="store_true", help="the results as JSON on stdout")
    return made


def names(known: Collection[str]) -> Callable[[str], list[str]]:
    """Reads a list of names."""

    def read(text: str) -> list[str]:
        found = [part.strip() for part in text.split(",") if part.strip()]
        unknown = [name for name in found if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"there is no {', '.join(unknown)}, only {', '.join(known)}")
        return found

    return read


def tell(line: str) -> None:
    """Says how far it is, to whoever watches."""
    if sys.stderr.isatty():
        print(line, file=sys.stderr)


def number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def rounded(figures: Mapping[str, float | None]) -> dict[str, float | None]:
    return {name: None if value is None else float(f"{value:.4g}") for name, value in figures.items()}


def machine_line(*more: Any) -> str:
    """What was measured on, and `more`."""
    facts = machine()
    told = (facts["processor"], facts["simd"], f"{facts['cores']} cores", f"Python {facts['python']}", *more)
    return " · ".join(map(str, told))
