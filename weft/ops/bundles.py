"""Words for bundles: builtins that take a bundle as a whole. Each works on the values of its members."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from types import MappingProxyType
from typing import Any, Literal

from weft.ops.spec import Param

Gives = Literal["one", "members", "regrouped", "element"]
"""The result of a word: one strand; a bundle with a member for each of the first operand's; members of its operands,
unchanged; or what an index picks."""


def _combined(name: str, domain: Any, values: Sequence[Any]) -> Any:
    return reduce(partial(domain.op, name), values)


def _sum(domain: Any, b: Sequence[Any]) -> Any:
    return _combined("add", domain, b)


def _mean(domain: Any, b: Sequence[Any]) -> Any:
    return domain.op("div", _sum(domain, b), domain.const(float(len(b))))


def _dot(domain: Any, a: Sequence[Any], b: Sequence[Any]) -> Any:
    return _sum(domain, [domain.op("mul", one, other) for one, other in zip(a, b, strict=True)])


def _length(domain: Any, b: Sequence[Any]) -> Any:
    return domain.op("length", *b)


def _distance(domain: Any, a: Sequence[Any], b: Sequence[Any]) -> Any:
    return _length(domain, [domain.op("sub", other, one) for one, other in zip(a, b, strict=True)])


def _unit(domain: Any, b: Sequence[Any]) -> list[Any]:
    size = _length(domain, b)
    is_zero = domain.op("eq", size, domain.const(0.0))
    divisor = domain.op("select", is_zero, domain.const(1.0), size)
    return [domain.op("div", member, divisor) for member in b]


def _cross(domain: Any, a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
    def part(i: int, j: int) -> Any:
        return domain.op("sub", domain.op("mul", a[i], b[j]), domain.op("mul", a[j], b[i]))

    return [part(1, 2), part(2, 0), part(0, 1)]


@dataclass(frozen=True, slots=True)
class BundleSpec:
    """One word. `value` takes a domain with `op` and `const`, and the values of each operand; it returns a value, or
    those of all members. For `regrouped` it takes and returns the members themselves."""

    name: str
    params: tuple[Param, ...]
    doc: str
    example: str
    gives: Gives = "one"
    value: Callable[..., Any] = _sum
    variadic: bool = False
    is_paired: bool = False
    """Whether its operands need the same number of members. One strand serves for all."""

    def fits(self, count: int) -> bool:
        """Whether the word takes this number of arguments."""
        return count == len(self.params) or (self.variadic and count > len(self.params))


_B, _A_B = (Param("b"),), (Param("a"), Param("b"))

WORD_ROWS = (
    BundleSpec("count", _B, "the number of strands in a bundle, a constant; 1 for one strand",
               "c<r, g, b> = <me@x, 0.5, me@y>\ndisplay(sum(c) / count(c))",
               value=lambda domain, b: domain.const(float(len(b)))),
    BundleSpec("sum", _B, "the sum of a bundle", "sum(<me@x, me@y, 0.5>) / 3", value=_sum),
    BundleSpec("product", _B, "the product of a bundle", "product(<me@x, me@y, 2>)",
               value=partial(_combined, "mul")),
    BundleSpec("mean", _B, "the mean of a bundle", "mean(<me@x, me@y, 0.5>)", value=_mean),
    BundleSpec("min", _B, "the least of a bundle", "min(<me@x, me@y, 0.5>)", value=partial(_combined, "min")),
    BundleSpec("max", _B, "the largest of a bundle", "max(<me@x, me@y, 0.5>)", value=partial(_combined, "max")),
    BundleSpec("dot", _A_B, "the sum of the products of two bundles, member by member",
               "dot(<me@x, me@y>, <0.3, 0.7>)", value=_dot, is_paired=True),
    BundleSpec("length", _B, "the Euclidean length of a bundle", "length(<me@x - 0.5, me@y - 0.5>)", value=_length),
    BundleSpec("distance", _A_B, "the Euclidean distance of two bundles", "distance(<me@x, me@y>, <0.3, 0.6>)",
               value=_distance, is_paired=True),
    BundleSpec("cross", _A_B, "the cross product of two bundles of three", "cross(<me@x, me@y, 0>, <0, 0, 1>)@y",
               "members", _cross, is_paired=True),
    BundleSpec("unit", _B, "a bundle divided by its length; zero stays zero", "unit(<me@x - 0.5, me@y - 0.5>)@x",
               "members", _unit),
    BundleSpec("reverse", _B, "the members of a bundle from the last to the first, without names",
               "display(reverse(<me@x, me@y, 0.5>))", "regrouped", lambda b: b[::-1]),
    BundleSpec("join", (Param("a"),), "the members of several bundles as one, without names",
               "display(join(<me@x, me@y>, 0.5))", "regrouped", lambda *bundles: [m for b in bundles for m in b],
               variadic=True),
    BundleSpec("seq", (Param("b"), Param("i")), "the member at the whole number below i, round and round",
               "seq(<0.1, 0.5, 0.9>, me@time * 2)", "element"),
    BundleSpec("smooth_seq", (Param("b"), Param("i")), "seq, gliding from each member to the next",
               "smooth_seq(<0.1, 0.5, 0.9>, me@time * 2)", "element"),
)  # fmt: skip

WORDS: Mapping[str, BundleSpec] = MappingProxyType({row.name: row for row in WORD_ROWS})
"""Every word, by its name. `min`, `max`, `length` and `distance` are also builtins, with other numbers of operands."""
