"""The prelude of shaders: functions that shading languages lack or define loosely, and the text of numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from types import MappingProxyType

from weft.codegen.native.target import single
from weft.ops.lanes import (
    ARCTANGENT, COSINE, COSINE_OF_HALF_TURNS, LOGARITHM, POWER_OF_2, POWER_OF_E, SINE, SINE_OF_HALF_TURNS
)
from weft.ops.single import split

# Numbers as text, which reads back as exactly the same singles.


def real_text(value: float) -> str:
    """The shortest text that reads back as a finite number in single precision: `0.1`, `1.0`, `6.02e+23`."""
    rounded = single(value)
    text = next(text for digits in range(1, 10) if single(float(text := f"{rounded:.{digits}g}")) == rounded)
    if "e" in text and 1 <= abs(rounded) < 1e10:
        text = f"{rounded:.0f}"
    return text if re.search(r"[.e]", text) else f"{text}.0"


def bits_text(value: int) -> str:
    return f"0x{value:x}u" if value > 255 else f"{value}u"


# Functions, in parts of which a language may take those that it needs. The text of each becomes part of the programs
# that call it.
#
# They replace functions of the language where drivers differ or promise little: a sine may be precise up to π only, a
# power may be the exponential of a rounded logarithm, a minimum may be NaN. The polynomials and reductions are those of
# `weft.ops.single`, arranged so that a compiler that simplifies (a + b) − b to a does no harm: no number is added only
# to be subtracted again.
#
# The texts use the subset that the languages share. `Language.words` translates the rest: `bits_in` and `real_in`
# convert a float to its bits and back, `nearest` rounds to even, `inverse_root` is 1 over a root, and `pair` is two
# floats.


def polynomial_text(x: str, coefficients: tuple[float, ...]) -> str:
    """c₀ + x·(c₁ + x·(…)), as text."""
    *others, last = coefficients
    text = f"({real_text(last)})" if last < 0 else real_text(last)
    for coefficient in reversed(others):
        text = f"({real_text(coefficient)} + {x} * {text})"
    return text


_PI_1, _PI_2, _PI_3 = map(real_text, split(math.pi, 11, 11, 24))
_LN_2_1, _LN_2_2 = map(real_text, split(math.log(2), 15, 24))
_PI, _PER_PI = real_text(math.pi), real_text(1 / math.pi)
_LN_2, _PER_LN_2 = real_text(math.log(2)), real_text(1 / math.log(2))
_BELOW_1 = real_text(1 - 2.0**-24)

# Up to these counts of turns, their product with half a period or a whole one is exact, even a few units off.
_MOST_TURNS, _MOST_FUSED_TURNS = real_text(2.0**11), real_text(2.0**20)

# What `long_rest` repeats, and how often at most.
_STEPS = """\
    while (steps > 0u) {
        rest = rest_of(rest, 2048.0, whole, per);
        steps -= 1u;
    }"""
_MOST_STEPS = 253 // 11

# Below the first, what a root leaves over may have too few digits; by the second, numbers are enlarged, and their roots
# reduced by the third.
_FEW_DIGITS, _ENLARGED, _REDUCED = real_text(2.0**-60), real_text(2.0**96), real_text(2.0**-48)

_SMALLEST_NORMAL, _STEP = real_text(2.0**-126), real_text(2.0**-23)


def functions_in(text: str) -> dict[str, str]:
    """The functions of a text, by their names. Empty lines separate them."""
    return {re.findall(r"^\w+ (\w+)\(", each, re.MULTILINE)[0]: each for each in text.split("\n\n")}


@cache
def called_in(text: str) -> frozenset[str]:
    """The names that a text calls."""
    code = "\n".join(line for line in text.split("\n") if not line.startswith("//"))
    return frozenset(re.findall(r"\b(\w+)\(", code))


def _less(x: str, count: str, parts: Sequence[str], fused: bool) -> str:
    """x − count · (the sum of the parts), as text. `fused` keeps compilers from reordering the terms."""
    for part in parts:
        x = f"fma(-{count}, {part}, {x})" if fused else f"{x} - {count} * {part}"
    return x


NUMBERS: Mapping[str, str] = MappingProxyType(functions_in("""\
// Whether x is no NaN. On the bits: a compiler may think that there are none.
bool is_number(float x) {
    return (bits_in(x) & 0x7fffffffu) <= 0x7f800000u;
}

// Whether neither is NaN.
bool are_numbers(float x, float y) {
    return is_number(x) && is_number(y);
}

// Whether x is neither infinite nor NaN.
bool is_finite(float x) {
    return (bits_in(x) & 0x7f800000u) != 0x7f800000u;
}

// Whether a whole number is odd.
bool is_odd(float whole) {
    return whole - 2.0 * floor(0.5 * whole) == 1.0;
}

// x, or something else where it is NaN.
float number_or(float x, float other) {
    return is_number(x) ? x : other;
}

// x, which is a bound of a loop, or something else where it or the other bound is NaN.
float bound(float x, float other, float none) {
    return is_number(x) && is_number(other) ? x : none;
}

// x - x: 0, or NaN where x is not finite. A compiler may think that it is always 0.
float nothing_of(float x) {
    return is_finite(x) ? 0.0 : not_a_number;
}

// x / x: 1, or NaN where x is 0 or not finite. A compiler may think that it is always 1.
float one_of(float x) {
    return is_finite(x) && x != 0.0 ? 1.0 : not_a_number;
}

// 0 / x: 0 with the sign of x, or NaN where x is 0 or NaN. A compiler may think that it is always 0.
float none_of(float x) {
    return is_number(x) && x != 0.0 ? real_in(bits_in(x) & 0x80000000u) : not_a_number;
}

// The smaller; of a number and a NaN the number; of two zeros the second one.
float minimum(float a, float b) {
    return a < b || !is_number(b) ? a : b;
}

// The larger; of a number and a NaN the number; of two zeros the second one.
float maximum(float a, float b) {
    return a > b || !is_number(b) ? a : b;
}"""))
"""NaN and infinities, found by their bits, and functions that use this."""


def _waves(fused: bool) -> dict[str, str]:
    """Sines and cosines."""
    return functions_in(f"""\
// sin x: whole half turns are taken out of x first, in three parts.
float sine(float x) {{
    float turns = nearest(x * {_PER_PI});
    float rest = {_less("x", "turns", (_PI_1, _PI_2, _PI_3), fused)};
    rest = clamp(rest, -1.58, 1.58);
    float square = rest * rest;
    float value = rest + rest * square * {polynomial_text("square", SINE)};
    return !is_finite(x) ? not_a_number : is_odd(turns) ? -value : value;
}}

// cos x: whole half turns are taken out of x first, in three parts.
float cosine(float x) {{
    float turns = nearest(x * {_PER_PI});
    float rest = {_less("x", "turns", (_PI_1, _PI_2, _PI_3), fused)};
    float square = min(rest * rest, 2.4964);
    float value = 1.0 + square * {polynomial_text("square", COSINE)};
    return !is_finite(x) ? not_a_number : is_odd(turns) ? -value : value;
}}

// sin πx. Turns of 2 are taken out of x first, which is exact however large it is: drivers promise little beyond π.
float sinpi(float x) {{
    return sin({_PI} * (x - 2.0 * nearest(0.5 * x)));
}}

// cos πx. Turns of 2 are taken out of x first.
float cospi(float x) {{
    return cos({_PI} * (x - 2.0 * nearest(0.5 * x)));
}}""")


def _powers(fused: bool) -> dict[str, str]:
    """Powers and logarithms."""
    whole_part = "fma(exponent, parts.x, -whole)" if fused else "exponent * parts.x - whole"
    return functions_in(f"""\
// x · 2ⁿ for whole n from -126, where it is 0, to 129, where it is infinite.
float scaled(float x, float n) {{
    return x * real_in(uint(int(n) + 126) << 23u) * 2.0;
}}

// e to the power of x.
float exponential(float x) {{
    float limited = clamp(x, -87.4, 89.0);
    float octaves = nearest(limited * {_PER_LN_2});
    float rest = {_less("limited", "octaves", (_LN_2_1, _LN_2_2), fused)};
    float value = scaled(1.0 + rest * {polynomial_text("rest", POWER_OF_E)}, octaves);
    return is_number(x) ? value : not_a_number;
}}

// 2 to the power of x; exact for whole x.
float power_of_two(float x) {{
    float limited = clamp(x, -126.0, 128.0);
    float octaves = nearest(limited);
    float rest = limited - octaves;
    float value = scaled(1.0 + rest * {polynomial_text("rest", POWER_OF_2)}, octaves);
    return !is_number(x) ? not_a_number : x < -126.0 ? 0.0 : value;
}}

// n and ln m, where x = m · 2ⁿ with m from 2/3 to 4/3.
pair logarithm_parts(float x) {{
    bool is_small = x < {_SMALLEST_NORMAL};
    uint bits = bits_in(is_small ? x * 8388608.0 : x);
    uint exponent = (bits - 0x3f2aaaabu) & 0xff800000u;
    float octaves = float(int(exponent)) * {_STEP} - (is_small ? 23.0 : 0.0);
    float rest = real_in(bits - exponent) - 1.0;
    return pair(octaves, rest + rest * rest * {polynomial_text("rest", LOGARITHM)});
}}

// The value where x is positive and finite, otherwise what the logarithm is there.
float logarithm_of_any(float x, float value) {{
    if (!is_number(x) || x < 0.0) return not_a_number;
    return x == 0.0 ? -infinity : is_finite(x) ? value : infinity;
}}

// The natural logarithm.
float logarithm(float x) {{
    pair parts = logarithm_parts(x);
    return logarithm_of_any(x, parts.x * {_LN_2} + parts.y);
}}

// The logarithm to base 2; exact for powers of two.
float octaves(float x) {{
    pair parts = logarithm_parts(x);
    return logarithm_of_any(x, parts.x + parts.y * {_PER_LN_2});
}}

// a to the power of b. The logarithm of a settles by how many octaves to scale; what is left comes from its two parts.
float power(float a, float b) {{
    if ((bits_in(b) & 0x7fffffffu) == 0u || bits_in(a) == bits_in(1.0)) return 1.0;
    bool is_whole = floor(b) == b;
    if (!is_number(a) || !is_number(b) || (a < 0.0 && !is_whole)) return not_a_number;
    float size = abs(a);
    float exponent = clamp(b, -2e9, 2e9);
    pair parts = logarithm_parts(size);
    float logarithm = size == 0.0 ? -infinity : is_finite(size) ? parts.x + parts.y * {_PER_LN_2} : size;
    float whole = nearest(clamp(exponent * logarithm, -126.0, 129.0));
    float left = {whole_part} + exponent * parts.y * {_PER_LN_2};
    float value = scaled(1.0 + left * {polynomial_text("left", POWER_OF_2)}, whole);
    value = whole > 128.0 ? infinity : whole < -125.0 ? 0.0 : value;
    return is_whole && is_odd(exponent) && (bits_in(a) >> 31u) != 0u ? -value : value;
}}""")


NEAR: Mapping[str, str] = MappingProxyType(
    {"fraction": "near_fraction", "modulo_of_few": "near_modulo", "angle": "near_angle"}
)
"""The shorter forms of functions, for operands that are neither NaN nor of more digits than a whole number may have."""


ANGLES: Mapping[str, str] = MappingProxyType(functions_in(f"""\
// The angle of the direction (x, y), from -π to π, for numbers that are not NaN.
float near_angle(float y, float x) {{
    float width = abs(x);
    float height = abs(y);
    float larger = max(width, height);
    float smaller = min(width, height);
    float ratio = smaller == larger ? 1.0 : smaller / larger;
    ratio = larger == 0.0 ? 0.0 : ratio;
    float square = ratio * ratio;
    float turned = ratio + ratio * square * {polynomial_text("square", ARCTANGENT)};
    turned = width < height ? {real_text(math.pi / 2)} - turned : turned;
    turned = (bits_in(x) >> 31u) != 0u ? {real_text(math.pi)} - turned : turned;
    return (bits_in(y) >> 31u) != 0u ? -turned : turned;
}}

// The same for any x and y.
float angle(float y, float x) {{
    return is_number(x) && is_number(y) ? near_angle(y, x) : not_a_number;
}}"""))
"""Angles of directions."""


def _remainders(fused: bool) -> dict[str, str]:
    """Remainders. Without fused products, a period is split in two halves, whose products with few
    turns are exact."""
    less = "fma(-turns, size, given)" if fused else "given - turns * upper - turns * (size - upper)"
    upper = "" if fused else "    float upper = real_in(bits_in(size) & 0xfffff000u);\n"
    few_upper, few_less = upper.replace("size", "b"), less.replace("size", "b").replace("given", "a")
    most_turns = _MOST_FUSED_TURNS if fused else _MOST_TURNS
    return functions_in(f"""\
// x less the whole number below it; never rounded to 1.
float fraction(float x) {{
    float rest = x - floor(x);
    return rest >= 1.0 ? {_BELOW_1} : rest;
}}

// The same for a number that is not NaN.
float near_fraction(float x) {{
    return min(x - floor(x), {_BELOW_1});
}}

// What is left of a after few whole turns of b, which is positive; per is about 1 / b.
float modulo_of_few(float a, float b, float per) {{
    float turns = nearest(a * per);
{few_upper}    float rest = {few_less};
    rest = rest < 0.0 ? rest + b : rest;
    return rest >= b ? b * {_BELOW_1} : rest;
}}

// The same for numbers that are not NaN.
float near_modulo(float a, float b, float per) {{
    float turns = nearest(a * per);
{few_upper}    float rest = {few_less};
    return min(rest < 0.0 ? rest + b : rest, b * {_BELOW_1});
}}

// A whole number times a scale less whole turns of size, to at most half of it. Exact for numbers below 2^24 and scales
// that are powers of 2, up to 2^11; per is about 1 / size.
float rest_of(float number, float scale, float size, float per) {{
    float given = number * scale;
    float turns = nearest(given * per);
{upper}    float rest = {less};
    return rest;
}}

// The remainder of a after any number of whole turns of size; both are positive. Every step takes 11 binary digits of
// a, and is exact. What may be large is one product in the end: drivers may take several in another order.
float long_rest(float a, float size) {{
    uint upper = bits_in(a) >> 23u;
    uint lower = bits_in(size) >> 23u;
    uint digits = (bits_in(a) & 0x7fffffu) | (upper == 0u ? 0u : 0x800000u);
    uint turn = (bits_in(size) & 0x7fffffu) | (lower == 0u ? 0u : 0x800000u);
    upper = upper == 0u ? 1u : upper;
    lower = lower == 0u ? 1u : lower;
    if (upper < lower) return a;
    uint left = upper - lower;
    uint steps = left / 11u;
    float whole = float(turn);
    float per = 1.0 / whole;
    float rest = rest_of(float(digits % turn), real_in((127u + left % 11u) << 23u), whole, per);
{_STEPS}
    rest = rest < 0.0 ? rest + whole : rest;
    return lower > 23u ? rest * real_in((lower - 23u) << 23u) : rest * {_STEP} * real_in(lower << 23u);
}}

// What is left of a after whole turns of b, with the sign of b; never rounded to b.
float modulo(float a, float b) {{
    float size = abs(b);
    float given = b < 0.0 ? -a : a;
    if (!is_finite(a) || !is_number(b) || bits_in(size) == 0u) return not_a_number;
    if (!is_finite(size)) return given < 0.0 ? b : a;
    float turns = nearest(given / size);
{upper}    float rest = {less};
    if (!(abs(turns) < {most_turns})) {{
        rest = long_rest(abs(given), size);
        rest = given < 0.0 ? -rest : rest;
    }}
    rest = rest < 0.0 ? rest + size : rest;
    rest = rest < size ? rest : size * {_BELOW_1};
    return b < 0.0 ? -rest : rest;
}}""")


def _ratios(fused: bool) -> dict[str, str]:
    """Quotients to the last digit. Without fused products, both factors are split in two halves, whose products are
    exact."""
    left = "fma(-ratio, b, a)" if fused else (
        "((a - high * upper) - high * (b - upper) - (ratio - high) * upper) - (ratio - high) * (b - upper)"
    )  # fmt: skip
    halves = "" if fused else (
        "    float high = real_in(bits_in(ratio) & 0xfffff000u);\n"
        "    float upper = real_in(bits_in(b) & 0xfffff000u);\n"
    )  # fmt: skip
    of_sides, some = ("fma(-ratio, b, a)", "") if fused else (
        "(a - high * b) - (ratio - high) * b", "    float high = real_in(bits_in(ratio) & 0xffffc000u);\n"
    )  # fmt: skip
    return functions_in(f"""\
// a / b to the last digit, for sides of pictures: what a quotient of some drivers leaves over is divided once more.
float share(float a, float b) {{
    float ratio = a / b;
{some}    float left = {of_sides};
    return ratio + left / b;
}}

// a / b, rounded to nearest: those of cards may be off by some units of the last digit. What is left over is divided,
// too, where it is a number and not 0.
float exact_ratio(float a, float b) {{
    float ratio = a / b;
{halves}    float left = {left};
    float nearer = ratio + left / b;
    return is_finite(nearer) && left != 0.0 ? nearer : ratio;
}}""")


def _roots(fused: bool) -> dict[str, str]:
    """Roots to the last digit, likewise: by 1 over the root, if what is left over is exact without halves. A root of 0
    or infinity is that itself."""
    nearer = """\
    float per = inverse_root(given);
    float root = given * per;
    float left = fma(-root, root, given);
    float nearer = fma(left, 0.5 * per, root);
    float found = given == 0.0 || given == infinity ? given : nearer;""" if fused else """\
    float root = sqrt(given);
    float high = real_in(bits_in(root) & 0xfffff000u);
    float left = ((given - high * high) - 2.0 * high * (root - high)) - (root - high) * (root - high);
    float nearer = root + left / (root + root);
    float found = is_finite(nearer) ? nearer : root;"""
    return functions_in(f"""\
// The root of x, rounded to nearest: those of cards may be off by some units of the last digit. What is left over is
// divided by twice the root, where that is a number. Of small numbers it would have too few digits.
float exact_root(float x) {{
    bool is_small = x < {_FEW_DIGITS};
    float given = is_small ? x * {_ENLARGED} : x;
{nearer}
    return is_small ? found * {_REDUCED} : found;
}}""")


EXACT: Mapping[str, str] = MappingProxyType({"div": "exact_ratio", "sqrt": "exact_root"})
"""The functions for quotients and roots that have to be right to the last digit, for `Language.exact`."""


BITS: Mapping[str, str] = MappingProxyType(functions_in("""\
// A whole number modulo 2³²; 0 if it is not finite. All steps are exact. Cards take a while for conversions and floors,
// and hardly any number is 2³¹ or larger.
uint bits_of(float x) {
    int found = int(x);
    if ((bits_in(x) & 0x7fffffffu) >= 0x4f000000u) {
        float rest = x - floor(x / 4294967296.0) * 4294967296.0;
        found = is_finite(x) ? int(uint(rest)) : 0;
    }
    return uint(found);
}

// The top 24 bits as a whole number.
float bits_top(uint n) {
    return float(n >> 8u);
}"""))
"""Whole numbers of 32 bits."""


FOLDED_BITS: Mapping[str, str] = MappingProxyType(functions_in("""\
// A number less the multiple of 2³² that leaves -2³¹ to below 2³¹; NaN if it is not finite. The sum is rounded down, or
// the number below 2³¹ would be beyond it.
float folded(float x) {
    return fma(floor(fma_down(x, 2.3283064365386963e-10, 0.5)), -4294967296.0, x);
}

// The whole number below, modulo 2³²; 0 if it is not finite. Most cards convert numbers to 64 bits very slowly.
uint bits_of(float x) {
    return uint(int_down(folded(x)));
}"""))
"""The same where sums can be rounded down, in 32 bits."""


def without_loops(functions: Mapping[str, str]) -> dict[str, str]:
    """The same functions with the steps of remainders one after another. They take longer, but the compilers of drivers
    that draw in software take twice as long for each further loop of a program: minutes for 20."""
    steps = "\n".join(
        f"    rest = rest_of(rest, steps > {step}u ? 2048.0 : 1.0, whole, per);" for step in range(_MOST_STEPS)
    )
    return {**functions, "long_rest": functions["long_rest"].replace(_STEPS, steps)}


def loops_in(lines: Iterable[str]) -> int:
    """How many loops a program has: its own, and those of the remainders that it takes."""
    return sum(line.startswith("for (") + line.count("modulo(") for line in lines)


PLACES: Mapping[str, str] = MappingProxyType(functions_in("""\
// Which cell of a ring holds what was k ticks ago: k is rounded down, from 1 to the depth; NaN is 1.
int cell(int head, float k, int depth) {
    int found = head - int(min(max(1.0, k), float(depth)));
    return found < 0 ? found + depth + 1 : found;
}

// The place of a coordinate among the pixels, from the centre of the first to that of the last; NaN is the first.
float place(float coordinate, int size) {
    return min(max(0.0, coordinate * float(size) - 0.5), float(size - 1));
}"""))
"""Cells of rings, and places among pixels."""


PRELUDE: Mapping[str, str] = MappingProxyType(
    {
        **NUMBERS, **_waves(False), **_powers(False), **ANGLES, **_remainders(False), **_ratios(False),
        **_roots(False), **BITS, **PLACES,
    }
)
"""The functions of all parts by their names, each after those that it calls."""

FUSED: Mapping[str, str] = MappingProxyType(
    {**PRELUDE, **_waves(True), **_powers(True), **_remainders(True), **_ratios(True), **_roots(True)}
)
"""The functions for compilers that reorder sums, but compute fma(a, b, c) exactly as written."""

_ANY_MODULO = FUSED["modulo"].replace("modulo", "any_modulo")

BY_RECIPROCAL: Mapping[str, str] = MappingProxyType({"any_modulo": _ANY_MODULO} | functions_in(f"""\
// The quotient by a number, 1 over which is the sum of two, to the last digit.
float exact_ratio_by(float a, float per, float rest) {{
    return fma(a, per, a * rest);
}}

// What is left of a after whole turns of b, where that is easy; any_modulo takes what is rare: many turns, and operands
// that are 0 or not finite. per is about 1 / b.
float modulo_by(float a, float b, float per) {{
    float turns = nearest(a * per);
    if (!(abs(turns) < {_MOST_FUSED_TURNS}) || b == 0.0) return any_modulo(a, b);
    float rest = fma(-turns, b, a);
    rest = b < 0.0 ? -rest : rest;
    rest = rest < 0.0 ? rest + abs(b) : rest;
    rest = rest < abs(b) ? rest : abs(b) * {_BELOW_1};
    return b < 0.0 ? -rest : rest;
}}

// The same for any b.
float modulo(float a, float b) {{
    return is_finite(b) ? modulo_by(a, b, 1.0 / b) : any_modulo(a, b);
}}"""))
"""Quotients and remainders by 1 over a divisor, for the same compilers."""

ORDERS: Mapping[str, str] = MappingProxyType(functions_in("""\
// The smaller where a is a number; of two zeros the first one.
float min(float a, float b) {
    return b < a ? b : a;
}

// The larger where a is a number; of two zeros the first one.
float max(float a, float b) {
    return b > a ? b : a;
}"""))
"""The same as `min` and `max` for languages of which these may give either of two zeros, or NaN."""

HALF_TURNS: Mapping[str, str] = MappingProxyType(functions_in(f"""\
// sin pi x, by a polynomial: the sines of some browsers have an error of 2e-4.
float sinpi(float x) {{
    float turns = nearest(x);
    float rest = x - turns;
    float square = rest * rest;
    float value = rest * {polynomial_text("square", SINE_OF_HALF_TURNS)};
    return is_odd(turns) ? -value : value;
}}

// cos pi x, likewise.
float cospi(float x) {{
    float turns = nearest(x);
    float square = (x - turns) * (x - turns);
    float value = 1.0 + square * {polynomial_text("square", COSINE_OF_HALF_TURNS)};
    return is_odd(turns) ? -value : value;
}}"""))
"""Sines and cosines of half turns for languages whose own are not precise anywhere."""


EXACT_WAVES: Mapping[str, str] = MappingProxyType({"sinpi": "exact_sine", "cospi": "exact_cosine"})
"""The functions for waves that have to be right to their last digits, likewise."""

EXACT_SINES: Mapping[str, str] = MappingProxyType({
    name: f"// {wave[:3]} πx to a unit or two of the last digit, by a polynomial.\n"
          + HALF_TURNS[wave].partition("\n")[2].replace(wave, name)
    for wave, name in EXACT_WAVES.items()
})  # fmt: skip
"""These functions, for languages in which a card's own sine is off by much of a small one."""
