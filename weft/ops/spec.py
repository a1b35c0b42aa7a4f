"""The shape of a row in the tables of operators, builtins and constants."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from weft.ops.intervals import ANYWHERE, UNIT, Interval

# The type of a value. `bool` is the result of a comparison (as a float it is 1.0 or 0.0; a float becomes a bool by
# `x != 0`, so NaN is true). `u32` is an unsigned integer of 32 bits, which only internal rows handle: it exists so that
# hashing agrees bit for bit on every backend.
ValueType: TypeAlias = Literal["float", "bool", "u32"]

# How a patch writes a row: as an operator, as a call, or not at all (only expansions of other rows use it).
OpKind: TypeAlias = Literal["operator", "builtin", "internal"]


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter of a builtin; one without a default must be given."""

    name: str
    default: float | None = None

    def __str__(self) -> str:
        return self.name if self.default is None else f"{self.name}: {self.default:g}"


@dataclass(frozen=True, slots=True)
class Usual:
    """The usual intervals of the operands of a row, one for each; the last one serves all further ones. Programs that
    tests generate try the row there. Bools have no interval of their own."""

    intervals: tuple[Interval, ...] = (Interval(-2, 2),)
    strict: bool = False
    """Beyond them, the result is NaN or infinite."""
    whole: bool = False
    """Only whole operands are worth trying, since others are hardly ever equal."""

    def interval(self, index: int) -> Interval:
        return self.intervals[min(index, len(self.intervals) - 1)]


def about(*ends: float, strict: bool = False, whole: bool = False) -> Usual:
    """From the ends of the intervals: `about(-2, 2, 0, 1)` is −2…2 for the first operand, and 0…1 for all others."""
    return Usual(tuple(map(Interval, ends[::2], ends[1::2])), strict, whole)


def params(*names: str, **defaults: float) -> tuple[Param, ...]:
    """Parameters in their order: `params("x", lo=0, hi=1)`."""
    return (*map(Param, names), *(Param(name, default) for name, default in defaults.items()))


@dataclass(frozen=True, slots=True)
class OpSpec:
    """One operator or builtin, with everything that any part of weft knows about it.

    A row either has its form for every target (`vector`, `native`, …) or an `expand`, which rewrites it into other rows
    before any target sees it.
    """

    name: str
    kind: OpKind
    params: tuple[Param, ...]
    doc: str
    """One sentence, as `weft help` prints it."""
    fold: Callable[..., float]
    """The meaning: takes and returns Python floats (bools as 1.0 or 0.0, u32 as ints), never raises, and follows
    IEEE-754. Used for constant folding, by the reference VM, and as the oracle of every other form."""
    vector: str | Callable[..., None] | None = None
    """For numpy: the name of a ufunc, or a function `(np, out, *args, *temps)` that leaves the result in `out`, which
    is not one of the args. Works for float32 and float64; args may have any shape that broadcasts to out's. `u32` are
    uint32 arrays."""
    native: str | Callable[..., Any] | None = None
    """For machine code: the name of a method of `weft.ops.lanes.Lanes`, or a function `(lanes, *args) -> result`."""
    double: str | Callable[..., Any] | None = None
    """For machine code in double precision, if `native` relies on single precision: the name of a function of C's
    library, or a function `(lanes, *args) -> result`."""
    clike: str | None = None
    """For languages like C: an operator (`+`, `!`, `?:`) or the name of a function, of the language or of the prelude
    in `weft.codegen.clike.prelude`. A language may spell a row differently."""
    temps: int = 0
    """The number of scratch arrays of out's shape and of the float type that the `vector` function takes after its
    args."""
    expand: Callable[..., Any] | None = None
    """`(*terms) -> term`: the row in terms of other rows, written with `weft.ops.formula`."""
    takes: tuple[ValueType, ...] | ValueType = "float"
    """The type of each operand, or of all of them."""
    gives: ValueType = "float"
    symbols: tuple[str, ...] = ()
    """For operators: their spellings; the first is the usual one."""
    level: int = 0
    """For operators: the precedence level in the order of docs/language.md; a larger one binds tighter."""
    right: bool = False
    """For operators: groups from the right."""
    variadic: bool = False
    """Takes any number of further operands like the last one (`min max length`). `fold` and `expand` get all of them; a
    row without `expand` is grouped from the left into binary ones."""
    aliases: tuple[str, ...] = ()
    """Further names by which a patch may call the row: `lerp` is `mix`. An operator can be called only by these."""
    example: str = ""
    """An example expression."""
    usual: Usual = Usual()
    """The usual intervals of its operands. To be given if −2…2 is outside of what the row is for, or shows little of
    it."""
    interval: Callable[..., Interval] | None = None
    """The interval of the result for operands within intervals, NaN and rounding aside; see `interval_of`."""
    slopes: Callable[..., tuple[float, ...]] | None = None
    """For rows without an `expand`: the derivatives of the result by each operand, at operands; not finite where there
    is none. The derivative by a bool is not used: what it chooses changes in steps. A row without `slopes` is a step
    everywhere. A row with an `expand` has the derivative of that."""
    keeps_finite: bool = False
    """Whether the result is finite for finite operands, apart from overflow."""
    cost: int = 1
    """Rough cost of one evaluation, in additions; used by cost models only."""

    @property
    def call_names(self) -> tuple[str, ...]:
        """Every name by which a patch may call the row."""
        return (self.name, *self.aliases) if self.kind == "builtin" else self.aliases

    @property
    def signature(self) -> str:
        """How the row is written: `clamp(x, lo: 0, hi: 1)`, `a + b`, `-a`."""
        names = [str(param) for param in self.params]
        if self.kind != "operator":
            return f"{self.name}({', '.join(names)}{', …' if self.variadic else ''})"
        if len(names) == 2:
            return f"{names[0]} {self.symbols[0]} {names[1]}"
        return f"{self.symbols[0]}{' ' if self.symbols[0].isalpha() else ''}{names[0]}"

    def interval_of(self, *operands: Interval) -> Interval:
        """The interval of the result for operands within these intervals, NaN and rounding aside."""
        if self.gives == "bool":
            return UNIT
        return self.interval(*operands) if self.interval is not None else ANYWHERE

    def type_of_operand(self, index: int) -> ValueType:
        return self.takes if isinstance(self.takes, str) else self.takes[index]


@dataclass(frozen=True, slots=True)
class StateSpec:
    """One stateful builtin. A slot of this kind keeps `planes` values for each tick that it remembers; `breaks_cycle`
    says whether its first operand may mention the strand that is being defined."""

    name: str
    params: tuple[Param, ...]
    doc: str
    example: str
    planes: int
    breaks_cycle: bool
    usual: Usual = Usual()


@dataclass(frozen=True, slots=True)
class ConstantSpec:
    """A name for a number."""

    name: str
    value: float
    doc: str
    example: str
