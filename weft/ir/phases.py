"""Phases that stay exact for long times (docs/algorithms.md, "Phases").

The terms of a periodic operation's argument that change only with the frame are reduced to one turn in the frame
section, which has double precision. Products of what grows with the time and what varies over the picture are reduced
where they vary (`weft.ir.products`). The rest of the argument stays small however long a performance lasts. The terms
are put together again by rates, so that those of a column, of a row and of the frame are each summed in their own
section.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, TypeAlias

from weft.ir.census import Census, TrackedRewrites
from weft.ir.expr import Expr, ExprBuilder, Lowered, Replacements, rewrite
from weft.ir.products import Growth, Product, halves_of, pieces_of, product_of, quotient_of, time_slots
from weft.ir.rates import (
    LINEAR, Finiteness, PassContext, Rate, Remainder, is_steady, is_within, period_of, remainder_of, remainders_among,
    sums_at_elements
)
from weft.ops import formula as f
from weft.ops.formula import Term

# 2π as a sum: the first part has few digits, so that its product with any number of turns up to 2⁴⁵ is exact.
_TURN, _TURN_REST = 201 / 32, 1.9353071795864769e-3

# Below this, single precision still resolves a millionth: smaller arguments need no reduction.
_SMALL = 8.0

_PERIODIC = frozenset({"sin", "cos", "floor", "mod"})
_BITS = frozenset({"bits_of", "bits_mul", "bits_add"})
_TELLING = _PERIODIC | {"sub", "bits_of"}
_CHANGING = _PERIODIC | _BITS | {"sub"}

_Reduce: TypeAlias = "Callable[[Expr, bool], Expr]"
"""Leaves out whole turns of a steady expression: those in it, or the nearest number of them."""


class Split(NamedTuple):
    """A sum, split into `terms`: one expression for each rate, or None. `products` are those of what grows and what
    varies. Expressions that mention variables of loops count as terms of an element."""

    terms: tuple[Expr | None, ...] = (None,) * len(Rate)
    products: tuple[Product, ...] = ()

    @property
    def is_moving(self) -> bool:
        """Whether some terms vary only with the frame and others do not, or products do."""
        return bool(self.products) or (self.terms[Rate.FRAME] is not None and any(self.terms[Rate.COLUMN :]))


_NOTHING = Split()


@dataclass(frozen=True, slots=True)
class _SplitFloor:
    """`⌊A + U⌋` as `whole + turns`, where `turns` changes only with the frame, and is None if U is already small, and
    `products` of steady whole numbers and those that vary. In a remainder, whole turns are subtracted from `argument`.
    If U is not finite, `argument` and `whole` are NaN."""

    argument: Expr
    whole: Expr
    turns: Expr | None
    products: tuple[Product, ...]
    settled: Expr | None
    """The floor as one number, if it is needed; None if it has to be computed as before, since U may be infinite."""
    finite: bool
    """Whether A is certainly finite."""


def reduce_phases(lowered: Lowered, context: PassContext) -> Lowered:
    """Keeps the arguments of periodic operations small: the terms that vary only with the frame are reduced to one
    turn."""
    anywhere = bool(lowered.exposed)
    growing = time_slots(lowered)
    known = context.known(
        lambda: _KnownPhases(finite=Finiteness(anywhere), growth=Growth(context.spec, growing)),
        "phases", lowered.slots, anywhere, growing,
    )  # fmt: skip
    changes = known.follow(lowered)
    rate = context.rates_with(changes.came, lowered)
    known.add_moving(changes.came, rate)
    known.add_changed(sums_at_elements(changes.reshared, rate))
    found = known.census.found
    if not any(known.is_moving(node) for node in found if node.op in _PERIODIC):
        return lowered
    remainders = remainders_among(found)
    taken = {each.whole for each in remainders.values()} | {node.args[0] for node in found if node.op == "bits_of"}
    shared, finite, growth, new = known.census.shared, known.finite, known.growth, known.results
    phases = _Phases(ExprBuilder(context.pool), rate, known.moving, remainders, taken, shared, finite, growth, new)
    known.compare(phases.facts())
    return rewrite(lowered, context.pool, _CHANGING, phases.change, True, known)


def _is_telling(node: Expr) -> bool:
    """Whether the pass needs this expression in its census, wherever it is."""
    return node.op != "sub" or remainder_of(node) is not None


@dataclass(eq=False)
class _KnownPhases(TrackedRewrites):
    """What the pass found out about expressions."""

    finite: Finiteness = field(kw_only=True)
    growth: Growth = field(kw_only=True)
    census: Census = field(default_factory=lambda: Census(_TELLING, _is_telling))
    moving: set[Expr] = field(default_factory=set)
    """The sums of a term that varies only with the frame and another term, the products of what grows and what varies,
    and the expressions that split into such terms."""

    def add_moving(self, nodes: Iterable[Expr], rate: Mapping[Expr, Rate]) -> None:
        """Finds those among some expressions, which come operands first."""
        moving, frame = self.moving, Rate.FRAME
        for node in nodes:
            if node.op in LINEAR and (node.free or rate[node] > frame):
                operands = node.args[:1] if node.op == "div" else node.args
                steady = [arg for arg in operands if rate[arg] == frame and not arg.free]
                joins = bool(steady) and (node.op in ("add", "sub") or any(map(self.growth.of, steady)))
                if joins or not moving.isdisjoint(node.args):
                    moving.add(node)

    def is_moving(self, node: Expr) -> bool:
        """Whether a periodic operation may have something to reduce."""
        return node.args[0] in self.moving or (node.op == "mod" and self.growth.of(node.args[0]))


@dataclass(slots=True)
class _Phases:
    """One run of the pass. `moving` are the expressions with a term that varies only with the frame; `remainders` are
    the differences that are remainders, and the operations `mod` whose floors also exist; `shared` are the expressions
    with several users. `taken` are the floors in remainders and bits: their other users have to see them change at the
    same places."""

    builder: ExprBuilder
    rate: Mapping[Expr, Rate]
    moving: set[Expr]
    remainders: dict[Expr, Remainder]
    taken: set[Expr]
    shared: set[Expr]
    finite: Finiteness
    growth: Growth
    new: Replacements
    _whole_of: dict[Expr, Remainder] = field(init=False)
    """The remainder that each floor belongs to, the larger one if there are two."""
    _splits: dict[Expr, Split] = field(default_factory=dict)
    _cells: dict[Expr, _SplitFloor | None] = field(default_factory=dict)
    _bit_sums: dict[Expr, tuple[Expr, Expr | None] | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._whole_of = {}
        for _, found in sorted(self.remainders.items(), key=lambda item: (item[0].key, item[1].period)):
            if found.argument is not found.whole.args[0] or found.whole not in self._whole_of:
                self._whole_of[found.whole] = found

    def facts(self) -> Mapping[Expr, object]:
        """The facts that results depend on, apart from the expressions themselves."""
        taken, remainders, whole_of = self.taken, self.remainders, self._whole_of
        return {n: (n in taken, remainders.get(n), whole_of.get(n)) for n in {*taken, *remainders, *whole_of}}

    def change(self, node: Expr, args: tuple[Expr, ...]) -> Expr:
        """The expression with all its phases reduced; `args` are its operands' replacements."""
        self.builder.at(node.span)
        return self._changed(node) or self.builder.pool.rebuilt(node, args)

    def _changed(self, node: Expr) -> Expr | None:
        match node.op:
            case "sin" | "cos" if node.args[0] in self.moving:
                angle = self._angle(node.args[0])
                return None if angle is None else self._made(node.op, angle)
            case "floor" if (cell := self._cell(node)) is not None:
                return cell.settled
            case op if op in _BITS:
                return self._bits(node)
            case "sub" | "mod" if node in self.remainders:
                cell = self._cell(self.remainders[node].whole)
                return None if cell is None else self._remainder(node, self.remainders[node], cell)
            case "mod":
                return self._rest(node)
            case _:
                return None

    # --- periodic operations --------------------------------------------------------------------------------------

    def _angle(self, argument: Expr) -> Expr | None:
        """A + U as A + U′, where U′ is within half a turn."""
        split = self._split(argument)
        return self._joined(split, self._within_turn) if split.is_moving else None

    def _within_turn(self, steady: Expr, _nearest: bool) -> Expr:
        """An angle within half a turn."""
        u = Term(self.builder, steady)
        turns = f.floor(u * (1 / math.tau) + 0.5)
        return _value(u - turns * _TURN - turns * _TURN_REST)

    def _rest(self, node: Expr) -> Expr | None:
        """The remainder of A + U, from the remainder of U."""
        argument, by = node.args
        size = self.new[by]
        if by.free or self.rate[by] > Rate.FRAME:
            return self._rest_by_varying(argument, size)
        split = self._split(argument) if argument in self.moving else _NOTHING
        if not split.is_moving or not (self._grows(split) if by.op != "const" else period_of(node) is not None):
            return None
        return self._made("mod", self._joined(split, partial(self._remainder_of, size), size), size)

    def _rest_by_varying(self, argument: Expr, size: Expr) -> Expr | None:
        """The remainder of A + U by what varies, if U grows."""
        split = self._split(argument) if self._is_growing(argument) else _NOTHING
        steady, constant = self._steady(split)
        if split.products or steady is None or not self.growth.of(steady):
            return None
        high, low = halves_of(self.builder, steady)
        rest = self._made("add", self._made("mod", high, size), self._total("add", low, constant) if constant else low)
        if any(split.terms[Rate.COLUMN :]):
            rest = self._made("add", self._sum_of(split.terms[Rate.COLUMN :]), rest)
        return self._made("mod", rest, size)

    def _remainder_of(self, period: Expr, steady: Expr, nearest: bool) -> Expr:
        """What is left of a steady term after whole periods, or the `nearest` whole number of periods, are removed."""
        if not nearest:
            return self._made("mod", steady, period)
        return self._less(period, steady, self._turns(period, steady, nearest))

    def _turns(self, period: Expr, steady: Expr, nearest: bool) -> Term:
        """The number of whole periods in a steady term, or the `nearest` whole number."""
        turns = Term(self.builder, self._made("div", steady, period))
        return f.floor(turns + 0.5 if nearest else turns)

    def _less(self, period: Expr, steady: Expr, turns: Term) -> Expr:
        return self._made("sub", steady, self._made("mul", _value(turns), period))

    def _cell(self, whole: Expr) -> _SplitFloor | None:
        """A floor split into parts; None if it stays as it is."""
        if whole not in self._cells:
            found = self._whole_of.get(whole) or Remainder(whole, whole.args[0], 1.0)
            split = self._split(found.argument) if found.argument in self.moving else _NOTHING
            self._cells[whole] = self._made_cell(found, split) if split.is_moving else None
        return self._cells[whole]

    def _made_cell(self, found: Remainder, split: Split) -> _SplitFloor:
        period, turns, products = self.builder.const(found.period), None, list[Product]()

        def without(steady: Expr, nearest: bool) -> Expr:
            return self._less(period, steady, self._turns(period, steady, nearest))

        steady, constant = self._steady(split)
        if steady is not None and not is_within(steady, _SMALL):
            turns = _value(self._turns(period, steady, False))
        for product in split.products:
            for factor, varying in pieces_of(self.builder, product).wholes:
                if product.divisor is None and not is_within(factor, _SMALL):
                    products.append(Product(_value(self._turns(period, factor, True)), varying, product.rate))
            if product.divisor is not None:
                _, turns_left_out = self._quotient(product, product.divisor, period)
                products.append(Product(self.builder.const(1.0), turns_left_out, product.rate))
        argument = self._joined(split, without, period)
        whole = self._whole(found, argument)
        if turns is None and not products:
            return _SplitFloor(argument, whole, None, (), whole, True)
        added = [factor for each in split.products for factor in (each.steady, each.varying)]
        added += [term for term in (steady, constant) if turns is not None and term is not None]
        settled = None
        if found.whole in self.taken and all(self.finite.of(term) for term in added):
            settled = whole
            for each in [*[self._made("mul", each.varying, each.steady) for each in products], turns]:
                settled = settled if each is None else self._made("add", settled, each)
        return _SplitFloor(argument, whole, turns, tuple(products), settled, self._is_finite(split))

    def _is_finite(self, split: Split) -> bool:
        """Whether what varies is certainly finite."""
        varying = [*split.terms[Rate.COLUMN :], *[each.varying for each in split.products]]
        return all(self.finite.of(term) for term in varying if term is not None)

    def _whole(self, found: Remainder, argument: Expr) -> Expr:
        """The floor of the quotient of a remainder with another argument."""
        quotient = found.whole.args[0]
        if quotient is found.argument:
            return self._made("floor", argument)
        args = [argument if arg is found.argument else arg for arg in quotient.args]
        return self._made("floor", self._made(quotient.op, *args))

    def _remainder(self, node: Expr, found: Remainder, cell: _SplitFloor) -> Expr:
        argument = cell.whole.args[0] if found.argument is found.whole.args[0] else cell.argument
        period = self.builder.const(found.period)
        if node.op == "mod":
            return self._made("mod", argument, period)
        return self._made("sub", argument, cell.whole if found.period == 1 else self._made("mul", cell.whole, period))

    def _bits(self, node: Expr) -> Expr | None:
        """The bits of a floor modulo 2³², and their sums and products with constants. The part that varies only with
        the frame stays a term of its own."""
        terms = self._bit_terms(node)
        if terms is None:
            return None
        varying, turns = terms
        return varying if turns is None else self._made("bits_add", varying, turns)

    def _bit_terms(self, node: Expr) -> tuple[Expr, Expr | None] | None:
        if node not in self._bit_sums:
            self._bit_sums[node] = self._found_bit_terms(node)
        return self._bit_sums[node]

    def _found_bit_terms(self, node: Expr) -> tuple[Expr, Expr | None] | None:
        first = node.args[0]
        if node.op == "bits_of":
            cell = self._cell(first) if first.op == "floor" else None
            return None if cell is None else self._cell_bits(cell)
        terms = self._bit_terms(first) if first.op in _BITS else None
        varying, turns = terms or (first, None)
        constant = node.args[1]
        if turns is None or constant.op != "u32":
            return None
        if node.op == "bits_mul":
            varying = self._made("bits_mul", varying, constant)
        return varying, self._made(node.op, turns, constant)

    def _cell_bits(self, cell: _SplitFloor) -> tuple[Expr, Expr | None]:
        """The bits of both parts of a floor. Their sum is 0 if A or U is not finite."""
        bits = self._made("bits_of", cell.whole)
        turns = None if cell.turns is None else self._made("bits_of", cell.turns)
        varying = [
            self._made("bits_mul", self._made("bits_of", each.varying), self._made("bits_of", each.steady))
            for each in cell.products
        ]
        if cell.finite:
            for each in varying:
                bits = self._made("bits_add", bits, each)
            return bits, turns
        taken = [each for each in (*varying, turns) if each is not None]
        if not taken:
            return bits, None
        turns = taken[0]
        for each in taken[1:]:
            turns = self._made("bits_add", turns, each)
        known = self._made("eq", self._made("sub", cell.whole, cell.whole), self.builder.const(0.0))
        known = self._made("bits_of", self._made("to_float", known))
        return self._made("bits_add", bits, self._made("bits_mul", turns, known)), None

    # --- sums -----------------------------------------------------------------------------------------------------

    def _steady(self, split: Split) -> tuple[Expr | None, Expr | None]:
        """The terms that vary only with the frame. A constant joins them only if it is too large to be added after the
        reduction. Otherwise it is added afterwards, so that one reduction serves all channels of a colour."""
        constant, frame = split.terms[: Rate.COLUMN]
        if constant is None or frame is None or is_within(constant, _SMALL):
            return frame, constant
        return self._total("add", frame, constant), None

    def _joined(self, split: Split, reduce: _Reduce, period: Expr | None = None) -> Expr:
        """The sum of the terms of columns, rows and elements, of the steady ones, and of the products; each rate is
        summed first. Of what is steady and may be large, `reduce` leaves out whole turns. With a `period`, quotients
        of whole numbers are exact."""
        steady, constant = self._steady(split)
        if steady is not None and not is_within(steady, _SMALL):
            steady = reduce(steady, False)
        terms = list(split.terms)
        for product in split.products:
            if product.divisor is not None and period is not None:
                left, _ = self._quotient(product, product.divisor, period)
                terms[product.rate] = self._sum("add", terms[product.rate], left)
                continue
            pieces = pieces_of(self.builder, product)
            for factor, varying in pieces.wholes:
                left = self._made("mul", varying, factor if is_within(factor, _SMALL) else reduce(factor, True))
                terms[product.rate] = self._sum("add", terms[product.rate], left)
            terms[product.rate] = self._sum("add", terms[product.rate], pieces.rest)
        return self._sum_of(terms[Rate.COLUMN :], self._sum("add", steady, constant))

    def _sum_of(self, varying: Sequence[Expr | None], steady: Expr | None = None) -> Expr:
        """The sum of the terms of columns, rows and elements, and of a steady one."""
        column, row, element = varying
        if steady is None:
            pass
        elif row is not None:
            row = self._total("add", row, steady)
        elif column is not None:
            column = self._total("add", column, steady)
        else:
            row = steady
        # Terms that no loop changes stay together, so that they can be summed before the loop.
        terms = (column, row, element) if element is not None and element.free else (element, column, row)
        total, *others = [term for term in terms if term is not None]
        for term in others:
            total = self._total("add", total, term)
        return total

    def _split(self, root: Expr) -> Split:
        splits, todo = self._splits, [root]
        while todo:
            node = todo[-1]
            summands = self._summands(node) if node not in splits else ()
            missing = [arg for arg in summands if arg not in splits]
            if missing:
                todo += missing
                continue
            todo.pop()
            if node not in splits:
                splits[node] = self._split_sum(node, [splits[arg] for arg in summands])
        return splits[root]

    def _summands(self, node: Expr) -> tuple[Expr, ...]:
        """The operands that have to be split in order to split an expression. There are none if it is not split, such
        as terms of a column without any of a frame."""
        if node in self.remainders or (not node.free and node not in self.moving and self.rate[node] < Rate.ELEMENT):
            return ()
        if node.op in ("add", "sub", "neg"):
            return node.args
        if node.op == "floor":
            found = self._whole_of.get(node)
            return node.args if found is None else (found.argument,)
        factor = self._factor(node)
        if factor is not None:
            return tuple([arg for arg in node.args if arg is not factor])
        if node.op == "div":
            return node.args[:1] if self._is_growing(node.args[0]) else ()
        moving = [arg for arg in node.args if arg in self.moving]
        return tuple(moving) if node.op == "mul" and len(moving) == 1 else ()

    def _split_sum(self, node: Expr, summands: list[Split]) -> Split:
        """The split of an expression, given those of its summands."""
        if node.op == "floor":
            cell = self._cell(node)
            return self._leaf(node) if cell is None else self._leaf(node, cell.whole, cell.turns, cell.products)
        if not self._pays(node, summands):
            return self._leaf(node)
        if len(summands) == 2:
            first, second = summands
            products = [*first.products, *[self._scaled_product(node, each) for each in second.products]]
            terms = [self._sum(node.op, a, b) for a, b in zip(first.terms, second.terms, strict=True)]
            return Split(tuple(terms), tuple(products))
        (split,) = summands
        factor = self._factor(node)
        if node.op in ("mul", "div") and factor is None:
            return self._spread(node, split)
        if factor is not None and self._grows_by(node, factor):
            return self._grown(split, self.new[factor])
        terms = [None if a is None else self._scaled(node, a) for a in split.terms]
        return Split(tuple(terms), tuple([self._scaled_product(node, each) for each in split.products]))

    def _pays(self, node: Expr, summands: list[Split]) -> bool:
        """Whether splitting a sum pays: it has a term of the frame, or terms that would not have to be added at every
        element, unless another expression adds them there anyway."""
        if not summands:
            return False
        if any(split.products for split in summands):
            return True
        there = [any(terms) for terms in zip(*[split.terms for split in summands], strict=True)]
        factor = self._factor(node)
        if factor is None and len(summands) == 1 and node.op != "neg":
            return there[Rate.FRAME]
        if factor is not None and self._grows_by(node, factor):
            return any(there[Rate.COLUMN :])
        return sum(there) > 1 and (there[Rate.FRAME] or not there[Rate.ELEMENT] or node not in self.shared)

    def _leaf(
        self, node: Expr, value: Expr | None = None, turns: Expr | None = None, products: tuple[Product, ...] = ()
    ) -> Split:
        """The split of an expression that is not taken apart, or of the parts in its place."""
        terms = list(_NOTHING.terms)
        terms[Rate.FRAME] = turns
        terms[self._rate_of(node)] = self.new[node] if value is None else value
        return Split(tuple(terms), products)

    # --- products -------------------------------------------------------------------------------------------------

    def _grows_by(self, node: Expr, factor: Expr) -> bool:
        """Whether it is a product with a steady factor that grows."""
        return node.op == "mul" and self.growth.of(factor)

    def _is_growing(self, node: Expr) -> bool:
        """Whether an expression is steady and grows, or may have terms that do."""
        return node in self.moving or (is_steady(node, self.rate) and self.growth.of(node))

    def _grows(self, split: Split) -> bool:
        steady = split.terms[Rate.FRAME]
        return bool(split.products) or (steady is not None and self.growth.of(steady))

    def _grown(self, split: Split, factor: Expr) -> Split:
        """A split, times a steady factor that grows."""
        terms = list(_NOTHING.terms)
        products = [each.scaled(lambda steady: self._made("mul", steady, factor)) for each in split.products]
        for term in split.terms[: Rate.COLUMN]:
            if term is not None:
                terms[Rate.FRAME] = self._sum("add", terms[Rate.FRAME], self._made("mul", term, factor))
        varying = split.terms[Rate.COLUMN :]
        if varying[-1] is None:
            parts = [(term, rate) for rate, term in zip((Rate.COLUMN, Rate.ROW), varying, strict=False)]
        else:
            parts = [(self._sum_of(varying), Rate.ELEMENT)]
        for term, rate in parts:
            if term is not None:
                product, steady = product_of(self.builder, factor, term, rate)
                terms[Rate.FRAME] = self._sum("add", terms[Rate.FRAME], steady)
                products.append(product)
        return Split(tuple(terms), tuple(products))

    def _spread(self, node: Expr, split: Split) -> Split:
        """A product or a quotient, for the split of its operand that grows; the other one varies."""
        if not self._grows(split):
            return self._leaf(node)
        other = node.args[1]
        if node.op == "mul":
            other = next(arg for arg in node.args if arg not in self.moving)
        factor, rate = self.new[other], self._rate_of(other)
        op, others, terms = "mul" if node.op == "mul" else "div", list(split.terms), list(_NOTHING.terms)
        products = [
            Product(each.steady, self._made(op, each.varying, factor), _both(each.rate, rate))
            for each in split.products
        ]
        steady = split.terms[Rate.FRAME]
        if steady is not None and self.growth.of(steady):
            others[Rate.FRAME] = None
            if op == "mul":
                product, terms[Rate.FRAME] = product_of(self.builder, steady, factor, rate)
            else:
                product = quotient_of(self.builder, steady, factor, rate)
            products.append(product)
        for at, term in enumerate(others):
            if term is not None:
                place = _both(Rate(at), rate)
                terms[place] = self._sum("add", terms[place], self._made(op, term, factor))
        return Split(tuple(terms), tuple(products))

    def _quotient(self, product: Product, divisor: Expr, period: Expr) -> tuple[Expr, Expr]:
        """What is left of a quotient after whole periods are removed, and how many these are."""
        high, low = halves_of(self.builder, product.steady)
        by = self._made("mul", divisor, period)
        rest = self._made("mod", high, by)
        turns = f.floor(Term(self.builder, self._made("div", self._made("sub", high, rest), by)) + 0.5)
        return self._made("div", self._made("add", rest, low), divisor), _value(turns)

    def _scaled_product(self, node: Expr, product: Product) -> Product:
        """A product as the second term of a difference, as a term with a sign, or times what is steady."""
        if node.op == "add":
            return product
        scale = (lambda steady: self._made("neg", steady)) if node.op == "sub" else partial(self._scaled, node)
        return product.scaled(scale)

    def _rate_of(self, node: Expr) -> Rate:
        return Rate.ELEMENT if node.free else self.rate[node]

    def _factor(self, node: Expr) -> Expr | None:
        """The steady factor of a product, or the steady divisor of a quotient."""
        if node.op == "mul":
            return next((arg for arg in node.args if is_steady(arg, self.rate)), None)
        return node.args[1] if node.op == "div" and is_steady(node.args[1], self.rate) else None

    def _sum(self, op: str, a: Expr | None, b: Expr | None) -> Expr | None:
        """A sum or difference of two terms, either of which may be missing."""
        if a is not None and b is not None:
            return self._total(op, a, b)
        return self._made("neg", b) if b is not None and op == "sub" else a or b

    def _total(self, op: str, a: Expr, b: Expr) -> Expr:
        """A sum or difference, without unnecessary signs."""
        if b.op == "neg":
            return self._made("sub" if op == "add" else "add", a, b.args[0])
        if a.op == "neg" and op == "add":
            return self._made("sub", b, a.args[0])
        return self._made(op, a, b)

    def _scaled(self, node: Expr, term: Expr) -> Expr:
        """A product, a quotient or a negation, applied to one term."""
        factor = self._factor(node)
        if factor is None:
            return term.args[0] if term.op == "neg" else self._made("neg", term)
        if term.op == "neg":
            return self._made("neg", self._made(node.op, term.args[0], self.new[factor]))
        return self._made(node.op, term, self.new[factor])

    def _made(self, op: str, *args: Expr) -> Expr:
        return self.builder.folded(op, *args)


def _both(a: Rate, b: Rate) -> Rate:
    """The rate of what is made of two expressions."""
    return Rate.ELEMENT if {a, b} == {Rate.COLUMN, Rate.ROW} else max(a, b)


def _value(term: Term) -> Expr:
    value = term.value
    assert isinstance(value, Expr)
    return value
