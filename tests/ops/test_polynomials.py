"""The coefficients in the package are those that the script computes, and are as good as it says."""

from __future__ import annotations

import numpy as np
import pytest

from scripts.polynomials import DOUBLE_POLYNOMIALS, POLYNOMIALS, best, double_error, double_table, table
from weft.ops import lanes

NAMES = list(POLYNOMIALS)

# The last steps of the search hang on the last digits of double precision, which differ from machine to machine.
ULPS = 16


def packaged(name: str) -> tuple[float, ...]:
    return tuple(float(np.float32(c)) for c in getattr(lanes, name))


def test_every_table_has_its_polynomial():
    tables = {name for name, value in vars(lanes).items() if isinstance(value, tuple)}
    assert tables == {*NAMES, *DOUBLE_POLYNOMIALS}


@pytest.mark.parametrize("name", NAMES)
def test_table_is_what_the_script_computes(name):
    np.testing.assert_array_max_ulp(
        np.array(packaged(name), np.float32), np.array(table(POLYNOMIALS[name]), np.float32), ULPS
    )


@pytest.mark.parametrize("name", NAMES)
def test_error_is_within_its_bound(name):
    polynomial = POLYNOMIALS[name]
    assert polynomial.error(packaged(name)) < polynomial.bound


@pytest.mark.parametrize("name", DOUBLE_POLYNOMIALS)
def test_table_in_double_precision(name):
    polynomial = DOUBLE_POLYNOMIALS[name]
    np.testing.assert_array_max_ulp(np.array(getattr(lanes, name)), np.array(double_table(polynomial)), ULPS)
    assert double_error(polynomial) < polynomial.bound


@pytest.mark.parametrize("name", NAMES)
def test_error_alternates(name):
    """The mark of the best polynomial: as many equal errors with changing signs as there are coefficients, and one."""
    polynomial = POLYNOMIALS[name]
    found, x = best(polynomial), polynomial.grid()
    error = (polynomial.value(found, x) - polynomial.function(x)) / polynomial.unit(x) * np.sign(polynomial.tail(x))
    pieces = np.split(error, np.flatnonzero(np.diff(np.signbit(error))) + 1)
    peaks = np.array([np.max(np.abs(piece)) for piece in pieces])
    assert np.sum(peaks > 0.999 * polynomial.error(found)) == polynomial.count + 1
