"""`weft.codegen.native.dataflow`: what is found in values without computing them."""

from __future__ import annotations

from weft.codegen.native.dataflow import affine
from weft.codegen.values import Node


def test_sums_and_products_are_split_off_a_few_at_a_time() -> None:
    """Each value of a long chain may be asked for its own."""
    x = value = Node("line", (), "float")
    chain = [value]
    for _ in range(1000):
        value = Node("sub", (Node("const", (), "float", 1.0), value), "float")
        chain.append(value)
    assert affine(chain[3]) == (x, -1, 1)
    base, scale, offset = affine(value)
    assert (scale, offset) == ((1, 0) if (len(chain) - chain.index(base)) % 2 else (-1, 1))
    assert chain.index(base) > 900
