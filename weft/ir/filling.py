"""Open numbers become constants: of their own, so that they can be tuned, or plain ones.

Equal expressions are one, also if the text says them twice. So numbers with which equal expressions are made, such as
those in `me@x * 9` in three statements, are one constant; and a number whose expression is made with a number of a
library, too, is plain. Which numbers these are follows from a text alone. It is found generously: by the values of
numbers, and the structure of what uses them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from weft.graph.numbers import Numbers
from weft.graph.partition import reachable
from weft.ir.census import Census
from weft.ir.constants import Tunable, bits, retuned, tune
from weft.ir.expr import Expr, KnownRewrites, Lowered, Pool, in_order, rewrite
from weft.syntax.ast import Number

_Use: TypeAlias = "tuple[int, bytes]"
"""The structure of an expression, and the value of a constant that it uses."""


@dataclass(eq=False)
class Filling:
    """The constants for the open numbers of one subgraph, from one text to the next."""

    pool: Pool
    numbers: Numbers
    _census: Census = field(default_factory=lambda: Census(("number",)))
    _rewrites: KnownRewrites = field(default_factory=KnownRewrites)
    _bits: dict[Expr, bytes] = field(default_factory=dict)
    """The values of the numbers that are there."""
    _users: defaultdict[_Use, Counter[Expr | None]] = field(default_factory=lambda: defaultdict(Counter))
    """The numbers that are used in the same way; None stands for those that are not open."""
    _shared: set[_Use] = field(default_factory=set)
    """The uses of several numbers."""
    _constants: dict[Expr, Expr] = field(default_factory=dict)
    """The constants of numbers."""
    _alone: set[Tunable] = field(default_factory=set)
    """Those of one number each."""
    _roots: set[Expr] = field(default_factory=set)
    """The numbers that are outputs themselves."""
    _spare: dict[tuple[frozenset[Expr], bytes], Expr] = field(default_factory=dict)
    """Constants by the numbers and the value that they stand for, or stood for."""
    _values: Mapping[Number, float] = field(default_factory=dict)
    _result: tuple[Lowered, Lowered] | None = None
    """The last result with open numbers, and the same with constants for `_values`."""

    def filled(self, lowered: Lowered) -> Lowered:
        """An IR with the values of its open numbers."""
        if self._result is not None and self._result[0] is lowered and self._values == self.numbers.values:
            return self._result[1]
        if "number" not in self.pool.ops:
            return lowered
        changes = self._census.follow(lowered.roots)
        self._count(changes.gone, -1)
        for node in changes.gone:
            self._bits.pop(node, None)
        self._bits |= {node: bits(self._value(node)) for node in changes.came if node.op == "number"}
        self._count(changes.came, 1)
        self._revalue()
        self.pool.lift_limit()  # the open expressions have been paid for
        roots = {root for root in lowered.roots if root.op == "number"}
        if changes.came or changes.gone or (roots, self.numbers.values) != (self._roots, self._values):
            before, self._constants = self._constants, self._chosen(roots)
            differing = [node for node, made in self._constants.items() if before.get(node) is not made]
            self._rewrites.forget((*changes.gone, *reachable(differing, self._census.users)))

        def fill(node: Expr, args: tuple[Expr, ...]) -> Expr:
            return self._constants[node]

        found = rewrite(lowered, self.pool, ("number",), fill, known=self._rewrites)
        self._result, self._roots, self._values = (lowered, found), roots, self.numbers.values
        return found

    def retuned(self, lowered: Lowered) -> Mapping[Tunable, float] | None:
        """The new values of constants, if the IR is the last one but for these; None if it has to be filled again."""
        if self._result is None or self._result[0] is not lowered:
            return None
        changed = {number for number, _ in self._values.items() ^ self.numbers.values.items()}
        constants = {node: made.attr for node, made in self._constants.items() if node.attr in changed}
        if not constants:
            return {}
        self._revalue()
        new = {attr: self._value(node) for node, attr in constants.items() if attr in self._alone}
        return retuned(new) if len(new) == len(constants) and all(map(self._is_alone, constants)) else None

    def tune(self, values: Mapping[Tunable, float]) -> None:
        """Gives constants the values of `retuned`."""
        tune(values)
        self._values = self.numbers.values
        for node, made in self._constants.items():
            if made.attr in values:
                self._spare[frozenset((node,)), self._bits[node]] = made

    def _value(self, node: Expr) -> float:
        assert isinstance(node.attr, Number)
        return self.numbers.value(node.attr)

    def _is_alone(self, node: Expr) -> bool:
        """Whether a number is the only one that is used as it is."""
        return all(len(self._users[_form(user), self._bits[node]]) == 1 for user in self._census.users[node])

    # --- uses ---

    def _count(self, users: Iterable[Expr], change: int) -> None:
        for user in users:
            for arg in user.args:
                if arg.op == "number":
                    self._add((_form(user), self._bits[arg]), arg, change)
                elif arg.op == "const":
                    assert isinstance(arg.attr, float)
                    self._add((_form(user), bits(arg.attr)), None, change)

    def _add(self, use: _Use, number: Expr | None, change: int) -> None:
        """Notes that a number is used so, or no longer."""
        those = self._users[use]
        those[number] += change
        if not those[number]:
            del those[number]
        if len(those) > 1:
            self._shared.add(use)
        else:
            self._shared.discard(use)
            if not those:
                del self._users[use]

    def _revalue(self) -> None:
        """Goes on to the new values of numbers."""
        for node, before in list(self._bits.items()):
            now = bits(self._value(node))
            if before != now:
                self._bits[node] = now
                for user in self._census.users[node]:
                    for _ in range(user.args.count(node)):
                        self._add((_form(user), before), node, -1)
                        self._add((_form(user), now), node, 1)

    # --- constants ---

    def _chosen(self, roots: Iterable[Expr]) -> dict[Expr, Expr]:
        """The constants of all numbers. One that stood for the same number is taken again, if it has the value."""
        found: dict[Expr, Expr] = {}
        taken: set[Expr] = set()
        self._alone = set()
        for nodes, is_plain in self._classes(roots):
            first = next(iter(nodes))
            known, value = self._bits[first], self._value(first)
            if is_plain:
                found |= dict.fromkeys(nodes, self.pool.const(value, first.span))
                continue
            former = (*map(self._constants.get, nodes), self._spare.get((nodes, known)))
            usable = (each for each in former if each is not None and each not in taken and _has(each, known))
            made = next(usable, None) or self.pool.tunable(value, first.span)
            taken.add(made)
            self._spare[nodes, known] = made
            if isinstance(made.attr, Tunable) and len(nodes) == 1:
                self._alone.add(made.attr)
            found |= dict.fromkeys(nodes, made)
        return found

    def _classes(self, roots: Iterable[Expr]) -> Iterator[tuple[frozenset[Expr], bool]]:
        """The numbers, those that are one constant together, and whether it is a plain one."""
        joined: dict[Expr | None, Expr | None] = {}

        def first_of(each: Expr | None) -> Expr | None:
            """One of those that are joined, the same for all of them; None if it is among them."""
            while each in joined:
                each = joined[each]
            return each

        for use in self._shared:
            firsts = {first_of(each) for each in self._users[use]}
            first = None if None in firsts else firsts.pop()
            joined |= dict.fromkeys(firsts - {first}, first)
        for root in roots:
            if (first := first_of(root)) is not None:
                joined[first] = None
        together = defaultdict[Expr | None, list[Expr]](list)
        for node in self._census.found:
            together[first_of(node)].append(node)
        for first, nodes in together.items():
            if first is None:
                yield from ((frozenset((node,)), True) for node in nodes)
            else:
                yield frozenset(nodes), False


def _form(user: Expr) -> int:
    """A hash of the structure of an expression, whatever the order of its operands is if that does not matter."""
    if user.attr is not None:
        return user.key
    return hash((user.op, *[arg.key for arg in in_order(user.op, user.args)]))


def _has(constant: Expr, known: bytes) -> bool:
    """Whether it is a tunable constant of this value."""
    return isinstance(constant.attr, Tunable) and bits(constant.attr.current) == known
