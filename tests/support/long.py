"""Families of tests that take long: `make test` runs the first of each, and `make test-all` runs them all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def all_but(count: int, values: Iterable[Any]) -> list[Any]:
    """Values of a parameter, of which all but the first `count` make a test `long`."""
    values = list(values)
    return values[:count] + [pytest.param(value, marks=pytest.mark.long) for value in values[count:]]
