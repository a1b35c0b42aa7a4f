"""C, as of 1999: functions that compute an element each, in double precision, with the parts of C's library that they
need.

They read and write buffers like those of graphics cards. A quotient, a root and a rounding are IEEE's; compilers must
not be told that there is no NaN.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

from weft.codegen.clike.buffers import BufferLanguage, Item
from weft.codegen.clike.expressions import ExpressionText, prefixed
from weft.codegen.clike.language import ProgramParts, Type
from weft.codegen.clike.prelude import called_in, functions_in
from weft.codegen.clike.shader import Bound, Shader, UnsuitableError
from weft.ir.rates import Rate
from weft.names import shown

_FUNCTIONS = """\
// x, or something else where it is NaN.
double number_or(double x, double other) {
    return isnan(x) ? other : x;
}

// x, which is a bound of a loop, or something else where it or the other bound is NaN.
double bound(double x, double other, double none) {
    return isnan(x) || isnan(other) ? none : x;
}

// x - x: 0, or NaN where x is not finite.
double nothing_of(double x) {
    return isfinite(x) ? 0.0 : NAN;
}

// x / x: 1, or NaN where x is 0 or not finite.
double one_of(double x) {
    return isfinite(x) && x != 0.0 ? 1.0 : NAN;
}

// 0 / x: 0 with the sign of x, or NaN where x is 0 or NaN.
double none_of(double x) {
    return isnan(x) || x == 0.0 ? NAN : copysign(0.0, x);
}

// The smaller; of a number and a NaN the number; of two zeros the second one.
double minimum(double a, double b) {
    return isnan(b) || a < b ? a : b;
}

// The larger; of a number and a NaN the number; of two zeros the second one.
double maximum(double a, double b) {
    return isnan(b) || a > b ? a : b;
}

// The same where a is a number; of two zeros the first one.
double least(double a, double b) {
    return b < a ? b : a;
}

double most(double a, double b) {
    return b > a ? b : a;
}

// Whether a differs from b in single precision, that of images.
bool differs(double a, double b) {
    return (float)a != (float)b;
}

// sin and cos of half turns. Turns of 2 are taken out of x first, which is exact.
double sinpi(double x) {
    return sin(3.141592653589793 * remainder(x, 2.0));
}

double cospi(double x) {
    return cos(3.141592653589793 * remainder(x, 2.0));
}

// a to the power of b. Unlike in C, not even -infinity has a fractional power.
double power(double a, double b) {
    return a < 0.0 && b != floor(b) ? NAN : pow(a, b);
}

// What is left of a after whole turns of b, with the sign of b; never rounded to b.
double modulo(double a, double b) {
    double rest = fmod(a, b);
    if (b == 0.0 || !isfinite(a) || isnan(b)) return NAN;
    if (rest == 0.0) return copysign(0.0, b);
    if ((rest < 0.0) != (b < 0.0)) rest += b;
    return rest == b && isfinite(b) ? nextafter(b, 0.0) : rest;
}

// x less the whole number below it; never rounded to 1.
double fraction(double x) {
    return modulo(x, 1.0);
}

// A whole number modulo 2^32; 0 if it is not finite.
uint32_t bits_of(double x) {
    return isfinite(x) ? (uint32_t)(int64_t)fmod(x, 4294967296.0) : 0u;
}

// The top 24 bits as a whole number.
double bits_top(uint32_t n) {
    return (double)(n >> 8u);
}

// Which cell of a ring holds what was k ticks ago: k is rounded down, from 1 to the depth; NaN is 1.
int cell(int head, double k, int depth) {
    int found = head - (k >= 1.0 ? (int)(k < (double)depth ? k : (double)depth) : 1);
    return found < 0 ? found + depth + 1 : found;
}

// The place of a coordinate among the pixels, from the centre of the first to that of the last; NaN is the first.
double place(double coordinate, uint32_t size) {
    double at = coordinate * (double)size - 0.5;
    double last = (double)size - 1.0;
    return !(at > 0.0) ? 0.0 : at < last ? at : last;
}

// An item, and what follows it in so many items, by the weight of the latter; if that is 0, it is not read.
double between_two(const double *items, uint32_t step, double weight) {
    return weight > 0.0 ? items[0] + (items[step] - items[0]) * weight : items[0];
}

// A row of an image between two pixels, and a column; clamped at the edge.
double between_columns(const double *row, uint32_t columns, double x) {
    double across = place(x, columns);
    return between_two(row + (uint32_t)across, 1u, across - floor(across));
}

double between_rows(const double *column, uint32_t columns, uint32_t rows, double y) {
    double down = place(y, rows);
    return between_two(column + (uint32_t)down * columns, columns, down - floor(down));
}

// An image between the four pixels around a place.
double between(const double *image, uint32_t columns, uint32_t rows, double x, double y) {
    double down = place(y, rows);
    double weight = down - floor(down);
    const double *row = image + (uint32_t)down * columns;
    double above = between_columns(row, columns, x);
    return weight > 0.0 ? above + (between_columns(row + columns, columns, x) - above) * weight : above;
}"""

_RESERVED = frozenset(
    """
    auto break case char const continue default do double else enum extern float for goto if inline int long register
    restrict return short signed sizeof static struct switch typedef union unsigned void volatile while asm bool true
    false NULL NAN INFINITY EOF stdin stdout stderr errno uint32_t int64_t uint8_t size_t unix linux sin cos sqrt fabs
    floor exp exp2 log log2 pow atan2 fmod remainder nextafter copysign isnan isfinite id count values main frame tick
    now channel memory sizes out
    BUFSIZ EXIT_FAILURE EXIT_SUCCESS FILENAME_MAX FOPEN_MAX FP_ILOGB0 FP_ILOGBNAN FP_INFINITE FP_NAN FP_NORMAL
    FP_SUBNORMAL FP_ZERO HUGE_VAL HUGE_VALF HUGE_VALL L_tmpnam MATH_ERREXCEPT MATH_ERRNO MB_CUR_MAX PTRDIFF_MAX
    PTRDIFF_MIN RAND_MAX SEEK_CUR SEEK_END SEEK_SET SIG_ATOMIC_MAX SIG_ATOMIC_MIN SIZE_MAX TMP_MAX WCHAR_MAX WCHAR_MIN
    WINT_MAX WINT_MIN math_errhandling
    """.split()  # noqa: SIM905 - this is read more easily than a list of strings
) | {
    f"{sign}INT{kind}{size}_{end}" for sign in ("", "U") for kind in ("", "_LEAST", "_FAST", "MAX", "PTR")
    for size in ("", 8, 16, 32, 64) for end in ("MAX", "MIN")
}  # fmt: skip

_ITEMS: Mapping[Item, str] = MappingProxyType({"real": "double", "limit": "int"})


@dataclass(frozen=True)
class C(BufferLanguage):
    """C99, with the types of `stdint.h` and `stdbool.h`."""

    others: frozenset[str] = frozenset()
    """The names of functions, structs and macros of the same text."""

    name: ClassVar[str] = "c"
    types: ClassVar[Mapping[Type, str]] = MappingProxyType(
        {"float": "double", "bool": "bool", "u32": "uint32_t", "int": "int"}
    )
    frame_access: ClassVar[str] = "frame->"
    reserved: ClassVar[frozenset[str]] = _RESERVED
    prelude: ClassVar[Mapping[str, str]] = MappingProxyType(functions_in(_FUNCTIONS))
    spellings: ClassVar[Mapping[str, str]] = MappingProxyType({
        "abs": "fabs", "sin": "sin", "cos": "cos", "exp": "exp", "exp2": "exp2", "log": "log", "log2": "log2",
        "atan2": "atan2", "differs": "differs",
    })  # fmt: skip
    words: ClassVar[Mapping[str, str]] = MappingProxyType({"min": "least", "max": "most"})

    @property
    def taken(self) -> frozenset[str]:
        return self.reserved | self.others

    def real(self, value: float) -> str:
        if math.isnan(value):
            return "NAN"
        return repr(value) if math.isfinite(value) else "INFINITY" if value > 0 else "-INFINITY"

    def converted(self, kind: Type, value: ExpressionText) -> ExpressionText:
        return prefixed(f"({self.types[kind]})", value)

    def frame(self, name: str) -> str:
        return f"const struct {name} *frame"

    def buffer(self, kind: Item, name: str, written: bool) -> str:
        return f"{'' if written else 'const '}{_ITEMS[kind]} *{name}"

    def stopped(self) -> str:
        return "*met_limit = 1;"

    def picture(self, parts: ProgramParts, picture: Bound, x: str, y: str) -> str:
        raise UnsuitableError(f"it reads {shown(picture.key)}")

    def fetched(self, parts: ProgramParts, sound: Bound, number: str) -> str:
        raise UnsuitableError(f"it reads {shown(sound.key)}")

    def external_read(self, parts: ProgramParts, read: Bound, over: frozenset[Rate]) -> str:
        raise UnsuitableError(f"it reads {read.key.partition(': ')[2]} of another subgraph")

    def program(self, parts: ProgramParts) -> Shader:
        raise UnsuitableError("a function of C is part of a program")

    def functions_of(self, texts: Iterable[str]) -> list[str]:
        """The functions that these texts call, as functions of one file."""
        called = {name for text in texts for name in called_in(re.sub("//.*", "", text))}
        found = self.functions(called & self.function_names)
        return [re.sub(r"^(?=\w)(?=[^\n]*\{$)", "static ", text, count=1, flags=re.M) for text in found]
