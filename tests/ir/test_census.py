"""A census: what comes and goes from one IR to the next."""

from __future__ import annotations

import random

import pytest

from tests.ir.test_rewrites import terms
from tests.support.exprs import Exprs
from weft.ir.census import Census
from weft.ir.expr import Expr, topological


@pytest.mark.parametrize("seed", range(4))
def test_a_census_follows_what_is_there(seed: int) -> None:
    chance, e = random.Random(seed), Exprs()
    found = [e.expr(term) for term in terms(chance, e, 40)]
    census = Census({"sin", "mod"}, lambda node: node.args[0].op != "add")
    nodes, shared = set[Expr](), set[Expr]()
    for _ in range(20):
        roots = chance.sample(found, chance.randint(0, 5))
        changes = census.follow([*roots, *roots[:1]])
        now = topological(roots)
        users = {node: {user for user in now if node in user.args} for node in now}
        assert census.users == users
        assert census.found == {node for node in now if node.op in {"sin", "mod"} and node.args[0].op != "add"}
        assert census.shared == {node for node in now if len(users[node]) > 1}
        assert changes.came == [node for node in now if node not in nodes]
        assert set(changes.gone) == nodes - set(now)
        assert changes.reshared == (census.shared ^ shared) & set(now)
        nodes, shared = set(now), set(census.shared)
