"""What an edit changes in an IR: the expressions that come and go, and those that have to be rewritten because of it.

The results of some passes depend on more than an expression itself, for instance on how many users it has. These passes
would have to look at the whole program after each edit. A census knows these facts from the build before, and looks
only at the differences.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple

from weft.ir.expr import Expr, KnownRewrites, Lowered, topological

_INDEX = attrgetter("index")


class Changes(NamedTuple):
    """The difference between two sets of expressions. Those that `came` are in an order with operands first. `reshared`
    are those of the second set that have several users in only one of the two sets."""

    came: list[Expr]
    gone: list[Expr]
    reshared: set[Expr]


@dataclass(eq=False)
class Census:
    """The expressions that some roots need, with the users of each. Other roots cost as much as they differ."""

    ops: Container[str] = ()
    wanted: Callable[[Expr], bool] = lambda _: True
    found: set[Expr] = field(default_factory=set)
    """Those whose operation is one of `wanted`."""
    users: dict[Expr, set[Expr]] = field(default_factory=dict)
    shared: set[Expr] = field(default_factory=set)
    """Those with several users."""
    _roots: frozenset[Expr] = frozenset()

    def follow(self, roots: Iterable[Expr]) -> Changes:
        """Continues with other roots."""
        before, self._roots = self._roots, frozenset(roots)
        users, crossed = self.users, set[Expr]()
        came = topological([root for root in self._roots if root not in users], users)
        for node in came:
            users[node] = set()
            for arg in node.args:
                those = users[arg]
                those.add(node)
                if len(those) == 2:
                    crossed.add(arg)
        self.found.update([node for node in came if node.op in self.ops and self.wanted(node)])
        gone = self._drop([root for root in before - self._roots if not users[root]], crossed)
        self.found.difference_update(gone)
        self.shared.difference_update(gone)
        reshared = {node for node in crossed if node in users and (len(users[node]) > 1) != (node in self.shared)}
        self.shared ^= reshared
        return Changes(came, gone, reshared)

    def _drop(self, todo: list[Expr], crossed: set[Expr]) -> list[Expr]:
        """Removes expressions that nothing needs any more, and everything that only they need. Expressions that are
        left with one user are added to `crossed`."""
        users, gone = self.users, list[Expr]()
        while todo:
            node = todo.pop()
            del users[node]
            gone.append(node)
            for arg in node.args:
                those = users[arg]
                if node in those:
                    those.remove(node)
                    if len(those) == 1:
                        crossed.add(arg)
                    elif not those and arg not in self._roots:
                        todo.append(arg)
        return gone


AGAIN = object()
"""The fact about an expression whose result depends on more than its parts. This result is found again each time."""


@dataclass(eq=False)
class TrackedRewrites(KnownRewrites):
    """The results of a rewriting that depend on facts about everything that an expression is made of. A pass that
    changes nothing in an IR need not ask for the results. The changes meanwhile add up until it does."""

    census: Census = field(kw_only=True)
    _facts: Mapping[Expr, object] = field(default_factory=dict)
    _new: set[Expr] = field(default_factory=set)
    _changed: set[Expr] = field(default_factory=set)

    def follow(self, lowered: Lowered) -> Changes:
        """Continues with another IR."""
        changes = self.census.follow(lowered.roots)
        self._new.update(changes.came)
        self._new.difference_update(changes.gone)
        # Facts about the parts of an expression may change while the expression is absent.
        for gone in changes.gone:
            self.results.pop(gone, None)
        return changes

    def add_changed(self, nodes: Iterable[Expr]) -> None:
        """Notes expressions that changed in something other than these facts."""
        self._changed.update(nodes)

    def compare(self, facts: Mapping[Expr, object]) -> None:
        """Notes the facts that hold now."""
        self._changed.update(node for node, _ in self._facts.items() ^ facts.items())
        self._facts = facts

    def missing(self, lowered: Lowered) -> Iterator[Expr]:
        """The expressions that have no result: the new ones, and those that depend on a fact that has changed."""
        users, results, new = self.census.users, self.results, self._new
        changed = {node for node in self._changed if node in users}
        queued = new | changed | {node for node, fact in self._facts.items() if fact is AGAIN}
        queue = sorted(queued, key=_INDEX)
        for node in queue:
            before = results.pop(node, node)
            yield node
            if node in changed or (node not in new and results[node] is not before):
                # Users come later in the queue.
                changed |= users[node]
                for user in users[node] - queued:
                    queued.add(user)
                    insort(queue, user, key=_INDEX)
        self._new, self._changed = set(), set()
