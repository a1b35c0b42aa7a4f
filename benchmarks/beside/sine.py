"""The sine that is written by hand wherever a tool has no fast one.

Sines are written as waves: `wave(turns) = cos(τ · turns)`. Whole turns are taken off by one rounding, and what is left
is reflected into −1…1, where an odd polynomial of degree 9 gives the sine of a quarter turn:

    q = 1 − 4·|turns − round(turns)|        wave = q · (s₀ + s₁q² + s₂q⁴ + s₃q⁶ + s₄q⁸)
"""

from __future__ import annotations

import numpy as np


def _sine() -> tuple[float, ...]:
    """The polynomial in q² that is sin(π/2 · q) / q, from its values at Chebyshev's points: 3e-9 off at most."""
    squares = 0.5 - 0.5 * np.cos((np.arange(5) + 0.5) * np.pi / 5)
    roots = np.sqrt(squares)
    found = np.linalg.solve(np.vander(squares, increasing=True), np.sin(np.pi / 2 * roots) / roots)
    return tuple(float(each) for each in found)


SINE = _sine()
