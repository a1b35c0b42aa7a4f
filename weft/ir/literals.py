"""Open numbers become constants. Most become tunable constants of their own; the others become plain ones.

Within one pool, equal expressions are one expression, and this must not change while numbers are tuned. So numbers that
make equal expressions share one constant: the three 9s, if three statements contain `me@x * me@y * 9`. A number that
makes the same expression as a number of a library becomes a plain constant.

These numbers are found from the text alone, by the values of numbers and the structure of the expressions that use
them.

In a picture, what is computed once a frame, a column or a row costs so little that it may be computed twice. There,
numbers share a constant only if two expressions of each pixel become one by it. All others can be tuned separately:
when two of them first differ, nothing else changes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from itertools import chain
from typing import TypeAlias

from weft.contexts import ContextSpec
from weft.graph.components import reachable
from weft.graph.numbers import Numbers
from weft.ir.census import Census
from weft.ir.expr import COMMUTATIVE, Expr, KnownRewrites, Lowered, Pool, rewrite
from weft.ir.tunable import Tunable, bits, retuned, tune
from weft.syntax.ast import Number

_Use: TypeAlias = "tuple[int, bytes]"
"""The structure of an expression, and the value of a constant that it uses."""

# What a value of a picture varies over, as bits.
_COLUMNS, _ROWS, _PIXELS = 1, 2, 4
_OVER = {"column": _COLUMNS, "row": _ROWS, "element": _PIXELS}

# What does not vary over a picture, besides coordinates.
_STEADY = frozenset({"const", "number", "uniform"})


@dataclass(eq=False)
class LiteralAssignment:
    """The constants for the open numbers of one subgraph, from one text to the next."""

    pool: Pool
    numbers: Numbers
    _forms: dict[Expr, int] = field(default_factory=dict)
    """Hashes of the structures of expressions. The order of operands counts only where it matters."""
    _hashes: dict[Expr, int] = field(default_factory=dict)
    """Hashes of expressions with the values of numbers: those that were asked for since one changed."""
    _varies: dict[Expr, int] = field(default_factory=dict)
    """What each expression of a picture varies over."""
    _census: Census = field(default_factory=lambda: Census(("number",)))
    _rewrites: KnownRewrites = field(default_factory=KnownRewrites)
    _bits: dict[Expr, bytes] = field(default_factory=dict)
    """The values of the numbers in the IR, as bits."""
    _users: defaultdict[_Use, Counter[Expr]] = field(default_factory=lambda: defaultdict(Counter))
    """The numbers with each use, and a constant that is not open, if it has the use, too."""
    _shared: set[_Use] = field(default_factory=set)
    """The uses that several have."""
    _constants: dict[Expr, Expr] = field(default_factory=dict)
    """The constant of each number."""
    _alone: set[Tunable] = field(default_factory=set)
    """The constants that belong to one number only."""
    _roots: set[Expr] = field(default_factory=set)
    """The numbers that are outputs themselves."""
    _spare: dict[tuple[frozenset[Expr], bytes], Expr] = field(default_factory=dict)
    """All constants so far, by the numbers that they represented and the value that they had."""
    _values: Mapping[Number, float] = field(default_factory=dict)
    _result: tuple[Lowered, Lowered] | None = None
    """The last IR with open numbers, and the same with constants that have the `_values`."""

    def assigned(self, lowered: Lowered, spec: ContextSpec) -> Lowered:
        """An IR of a context, with constants for its open numbers."""
        if self._result is not None and self._result[0] is lowered and self._values == self.numbers.values:
            return self._result[1]
        if "number" not in self.pool.ops:
            return lowered
        changes = self._census.follow(lowered.roots)
        self._count(changes.gone, -1)
        for node in changes.gone:
            self._bits.pop(node, None)
            self._hashes.pop(node, None)
            del self._forms[node], self._varies[node]
        for node in changes.came:
            self._forms[node] = self._form(node)
            self._varies[node] = self._variation(node, spec)
        self._bits |= {node: bits(self._value(node)) for node in changes.came if node.op == "number"}
        self._count(changes.came, 1)
        self._revalue()
        self.pool.lift_limit()  # the open expressions have used the budget
        roots = {root for root in lowered.roots if root.op == "number"}
        if changes.came or changes.gone or (roots, self.numbers.values) != (self._roots, self._values):
            before, self._constants = self._constants, self._chosen(roots)
            differing = [node for node, made in self._constants.items() if before.get(node) is not made]
            self._rewrites.forget((*changes.gone, *reachable(differing, self._census.users)))

        def constant_of(node: Expr, args: tuple[Expr, ...]) -> Expr:
            return self._constants[node]

        found = rewrite(lowered, self.pool, ("number",), constant_of, known=self._rewrites)
        self._result, self._roots, self._values = (lowered, found), roots, self.numbers.values
        return found

    def retuned(self, lowered: Lowered) -> Mapping[Tunable, float] | None:
        """The new values of constants, if the IR differs from the last one in these only; None if constants have to be
        assigned again."""
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
        """Gives constants the values that `retuned` has found."""
        tune(values)
        self._values = self.numbers.values
        for node, made in self._constants.items():
            if made.attr in values:
                self._spare[frozenset((node,)), self._bits[node]] = made

    def _value(self, node: Expr) -> float:
        assert isinstance(node.attr, Number)
        return self.numbers.value(node.attr)

    def _is_alone(self, node: Expr) -> bool:
        """Whether a number shares its constant with no other."""
        uses = {(self._forms[user], self._bits[node]) for user in self._census.users[node]}
        return not any(node in together for use in uses for together in self._together(use))

    # --- uses ---

    def _count(self, users: Iterable[Expr], change: int) -> None:
        for user in users:
            for arg in user.args:
                if arg.op == "number":
                    self._add((self._forms[user], self._bits[arg]), arg, change)
                elif arg.op == "const":
                    assert isinstance(arg.attr, float)
                    self._add((self._forms[user], bits(arg.attr)), arg, change)

    def _add(self, use: _Use, constant: Expr, change: int) -> None:
        """Counts a use of a number or of a plain constant: `change` is 1 for a new one, −1 for one that is gone."""
        those = self._users[use]
        those[constant] += change
        if not those[constant]:
            del those[constant]
        if len(those) > 1:
            self._shared.add(use)
        else:
            self._shared.discard(use)
            if not those:
                del self._users[use]

    def _revalue(self) -> None:
        """Brings the values and uses of numbers up to date."""
        for node, before in list(self._bits.items()):
            now = bits(self._value(node))
            if before != now:
                self._bits[node] = now
                self._hashes.clear()
                for user in self._census.users[node]:
                    for _ in range(user.args.count(node)):
                        self._add((self._forms[user], before), node, -1)
                        self._add((self._forms[user], now), node, 1)

    def _form(self, node: Expr) -> int:
        """The hash of the structure of an expression, from those of its operands."""
        if node.op in ("const", "number"):
            return 0
        forms = [self._forms[arg] for arg in node.args]
        return hash((node.op, node.attr, *(sorted(forms) if node.op in COMMUTATIVE else forms)))

    def _hash(self, node: Expr) -> int:
        """The hash of an expression with the values of all numbers."""
        known, todo = self._hashes, [node]
        while todo:
            each = todo[-1]
            if each in known:
                todo.pop()
            elif each.op == "number":
                known[each] = hash(self._bits[each])
            elif each.op == "const":
                assert isinstance(each.attr, float)
                known[each] = hash(bits(each.attr))
            elif missing := [arg for arg in each.args if arg not in known]:
                todo += missing
            else:
                args = [known[arg] for arg in each.args]
                known[each] = hash((each.op, each.attr, *(sorted(args) if each.op in COMMUTATIVE else args)))
        return known[node]

    def _variation(self, node: Expr, spec: ContextSpec) -> int:
        """What an expression varies over, from what its operands vary over. Samples count as pixels."""
        found = 0
        for arg in node.args:
            found |= self._varies[arg]
        if node.op == "coord":
            assert isinstance(node.attr, str)
            return _OVER.get(spec.sweep_of(node.attr), 0) if spec.sweeps_plane else _PIXELS
        return found if node.attr is None or node.op in _STEADY else _PIXELS

    def _is_costly(self, node: Expr) -> bool:
        """Whether an expression may be computed for each pixel, or each sample."""
        return self._varies[node] >= _COLUMNS | _ROWS

    def _together(self, use: _Use) -> Iterator[Set[Expr | None]]:
        """Sets of numbers that have to share a constant because equal expressions are made with them. A set makes
        costly expressions, perhaps through several operations. If one is made with a constant that is not open, None is
        in the set."""
        constants, users = self._users[use].keys(), self._census.users
        if len(constants) < 2:
            return
        first = defaultdict[int, defaultdict[Expr, set[Expr | None]]](lambda: defaultdict(set))
        for constant in constants:
            for user in users[constant]:
                if self._forms[user] == use[0]:
                    first[self._hash(user)][user].add(constant if constant.op == "number" else None)
        alike = list(first.values())
        while alike:
            above = defaultdict[int, defaultdict[Expr, set[Expr | None]]](lambda: defaultdict(set))
            for nodes in alike:
                together = set[Expr | None]().union(*nodes.values())
                if len(together) > 1 and (None in together or self._is_costly(next(iter(nodes)))):
                    yield together
                elif len(together) > 1 and len(nodes) > 1:
                    for node, those in nodes.items():
                        for user in users[node]:
                            above[self._hash(user)][user] |= those
            alike = list(above.values())

    # --- constants ---

    def _chosen(self, roots: Iterable[Expr]) -> dict[Expr, Expr]:
        """The constant of each number. A constant that represented the number before is used again if it has the
        value."""
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
        """The sets of numbers that share a constant, and whether it is a plain one."""
        joined: dict[Expr | None, Expr | None] = {}

        def first_of(each: Expr | None) -> Expr | None:
            """The representative of the numbers that are joined with this one; None if it gets a plain constant."""
            while each in joined:
                each = joined[each]
            return each

        for numbers in chain.from_iterable(map(self._together, self._shared)):
            firsts = {first_of(each) for each in numbers}
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


def _has(constant: Expr, known: bytes) -> bool:
    """Whether this is a tunable constant with this value."""
    return isinstance(constant.attr, Tunable) and bits(constant.attr.current) == known
