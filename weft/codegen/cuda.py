"""CUDA C++, the language of NVIDIA's cards, which HIP shares: kernels for pictures, planes and lists of points, an
element for each thread.

All inputs of a kernel are in buffers, in the order of `Shader.buffers`. Launches are one row of threads, and may be
rounded up. The text needs no header: it is made for NVRTC and hipRTC. Compilers may fuse a product with a sum, and
otherwise compute as IEEE has it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

from weft.codegen.clike.buffers import ENDS, Given, Item, KernelLanguage, extent
from weft.codegen.clike.language import CPP_WORDS, CodeLine, ProgramParts, Type
from weft.codegen.clike.prelude import (
    BITS, BY_RECIPROCAL, EXACT, EXACT_SINES, EXACT_WAVES, FOLDED_BITS, FUSED, functions_in
)
from weft.codegen.clike.shader import Bound, LaunchExtent, SideFact, SidePart, Source

_TOP = """\
typedef unsigned int uint;
typedef unsigned char uchar;

// Two and four reals, with the operations that a sample and a colour need. Each item is one access to memory.
struct alignas(8) pair {
    float x, y;
    __device__ pair(float x, float y) : x(x), y(y) {}
};

struct alignas(16) colour {
    float r, g, b, a;
    __device__ colour operator+(const colour &o) const { return {r + o.r, g + o.g, b + o.b, a + o.a}; }
    __device__ colour operator-(const colour &o) const { return {r - o.r, g - o.g, b - o.b, a - o.a}; }
    __device__ colour operator*(float by) const { return {r * by, g * by, b * by, a * by}; }
};

struct alignas(4) pixel {
    uchar r, g, b, a;
};"""

_FEW_STATEMENTS = 20  # of a short program

_ITEMS: Mapping[Item, str] = MappingProxyType({
    "real": "float", "pixel": "pixel", "two": "pair", "four": "colour", "limit": "uint",
})  # fmt: skip

_CLAMP = """\
// A number within bounds.
float clamp(float x, float low, float high) {
    return min(max(x, low), high);
}"""

_FUNCTIONS = """\
// An item, and what follows it in so many items, by the weight of the latter; if that is 0, it is not read.
template <typename T>
T between_two(const T *items, uint step, float weight) {
    T found = items[0];
    if (weight > 0.0) found = found + (items[step] - found) * weight;
    return found;
}

// A row of an image that begins at an item between two pixels, and a column; clamped at the edge. The sides of images
// are there as reals, too.
float between_columns(const float *items, uint first, float wide, float x) {
    float across = clamp(x * wide - 0.5, 0.0, wide - 1.0);
    return between_two(items + (first + uint(across)), 1u, across - float(uint(across)));
}

float between_rows(const float *items, uint first, uint columns, float high, float y) {
    float down = clamp(y * high - 0.5, 0.0, high - 1.0);
    return between_two(items + (first + uint(down) * columns), columns, down - float(uint(down)));
}

// An image that begins at an item, or a picture, between the four pixels around a place.
template <typename T>
T between(const T *items, uint first, uint columns, float wide, float high, float x, float y) {
    float across = clamp(x * wide - 0.5, 0.0, wide - 1.0);
    float down = clamp(y * high - 0.5, 0.0, high - 1.0);
    float right = across - float(uint(across));
    float below = down - float(uint(down));
    uint upper = first + uint(down) * columns + uint(across);
    uint lower = below > 0.0 ? upper + columns : upper;
    T found = between_two(items + upper, 1u, right);
    T other = between_two(items + lower, 1u, right);
    if (below > 0.0) found = found + (other - found) * below;
    return found;
}

// A sample of a sound by its number, left and right; 0 where there is none.
pair fetched(const pair *sound, uint samples, float number) {
    float given = number_or(number, -1.0);
    bool is_there = given >= 0.0 && given < float(samples);
    return is_there ? sound[uint(given)] : pair(0.0, 0.0);
}"""

_TO_BYTE = """\
// A channel as a byte: clamped to 0…1, a half rounded up; NaN is 0, as the maximum of it and 0 is.
uchar to_byte(float x) {
    return uchar(min(max(x, 0.0), 1.0) * 255.0 + 0.5);
}"""

# Branches cost more than arithmetic, even those that are never taken: threads wait for each other after them.
_NUMBERS = """\
// Whether x is no NaN.
bool is_number(float x) {
    return x == x;
}

// Whether x is neither infinite nor NaN.
bool is_finite(float x) {
    return abs(x) < infinity;
}

// The smaller of 0 and a value, which is 0 for -0. The compiler makes the card's own minimum of the above with a 0.
float least_and_0(float zero, float x) {
    return min(x, zero) + zero;
}

// The larger of -0 and a value, which is -0 for 0.
float most_and_0(float zero, float x) {
    return -(min(-x, -zero) - zero);
}"""

# The card's own sine has an error of 4e-7 everywhere, which is much of a small one.
_SINE = """\
// The sine of an angle of a few turns.
float sin(float x) {
    float square = x * x;
    return square < 0.00390625 ? x * (1.0 - square * 0.16666667) : card_sine(x);
}"""

_COARSE_SINE = """\
// sin πx, with an error of the card's own sine.
float coarse_sine(float x) {
    return card_sine(3.1415927 * (x - 2.0 * nearest(0.5 * x)));
}"""

# Functions that are rarely called, with code that would be more than that of a whole picture.
_APART = frozenset({"any_modulo"})

_PLACES = """\
// The row of a pixel: the quotient of its number and the columns, by a product.
uint row_of(uint id, uint columns, uint factor, uint shift) {
    return columns > 1u ? __umulhi(id, factor) >> shift : id;
}

// n + 0.5, for n below 2^23: the bits of 2^23 + n.
float centre_of(uint n) {
    return __uint_as_float(0x4b000000u | n) - 8388607.5;
}"""

_RESERVED = CPP_WORDS | frozenset(
    """
    uint pair colour pixel threadIdx blockIdx blockDim gridDim warpSize dim3 std linux unix sin cos tan asin acos atan
    atan2 sinh cosh tanh exp exp2 exp10 log log2 log10 pow sqrt rsqrt cbrt hypot abs fabs floor ceil trunc round rint
    nearbyint fmod modf frexp ldexp min max fmin fmax fma fdim copysign remainder isnan isinf isfinite signbit erf erfc
    tgamma lgamma j0 j1 jn y0 y1 yn norm normcdf rnorm saturate float1 float2 float3 float4 int1 int2 int3 int4 uint1
    uint2 uint3 uint4 uchar1 uchar2 uchar3 uchar4 char1 char2 char3 char4 short1 short2 short3 short4 half half2 assert
    printf malloc free memcpy memset clock clock64 id count pixels values frame main
    """.split()  # noqa: SIM905 - this is read more easily than a list of strings
)

# A number that C++ takes for one of double precision.
_DOUBLE = re.compile(r"(?<![\w.])(\d+\.\d*(?:e[+-]?\d+)?|\d+e[+-]?\d+)(?![\w.])")


@dataclass(frozen=True)
class Cuda(KernelLanguage):
    """C++ of 2017 with what CUDA and HIP have in common."""

    top: ClassVar[tuple[str, ...]] = tuple(_TOP.split("\n"))
    most_buffers: ClassVar[int] = 120
    name: ClassVar[str] = "cuda"
    types: ClassVar[Mapping[Type, str]] = MappingProxyType(
        {"float": "float", "bool": "bool", "u32": "uint", "int": "int", "two": "pair", "four": "colour"}
    )
    by_reciprocal: ClassVar[bool] = True
    skips_nan: ClassVar[bool] = True
    cells: ClassVar[tuple[str, str] | None] = "folded", "int_down"
    coarse_sines: ClassVar[tuple[str, str] | None] = "card_sine", "coarse_sine"
    reserved: ClassVar[frozenset[str]] = _RESERVED
    prelude: ClassVar[Mapping[str, str]] = MappingProxyType({
        **functions_in(_CLAMP), **functions_in(_SINE), **FOLDED_BITS,
        **{name: text for name, text in FUSED.items() if name not in ("modulo", "bits_of")}, **functions_in(_NUMBERS),
        **BY_RECIPROCAL,
    })  # fmt: skip
    helpers: ClassVar[Mapping[str, str]] = MappingProxyType({
        **functions_in(_FUNCTIONS), **EXACT_SINES, **functions_in(_COARSE_SINE), **ENDS,
        **functions_in(_TO_BYTE), **functions_in(_PLACES),
    })  # fmt: skip
    # Quotients and roots that are always rounded to nearest take several times as long.
    exact: ClassVar[Mapping[str, str]] = MappingProxyType({**EXACT, **EXACT_WAVES})
    words: ClassVar[Mapping[str, str]] = MappingProxyType({
        "bits_in": "__float_as_uint", "real_in": "__uint_as_float", "nearest": "rintf", "fma": "fmaf",
        "sin": "near_sine", "card_sine": "__sinf", "cos": "__cosf", "sqrt": "sqrtf", "inverse_root": "rsqrtf",
        "floor": "floorf", "abs": "fabsf", "fma_down": "__fmaf_rd", "int_down": "__float2int_rd", "min": "fminf",
        "max": "fmaxf", "sinpi": "sin_pi", "cospi": "cos_pi", "power": "power_of", "clamp": "clamped",
        "not_a_number": "__uint_as_float(0x7fc00000u)", "infinity": "__uint_as_float(0x7f800000u)",
    })  # fmt: skip

    @property
    def taken(self) -> frozenset[str]:
        return super().taken | set(self.words.values())

    def bound(self, op: str, number: float | None) -> str:
        # The functions of a card put -0 before 0. A number that may change is not 0.
        if number == 0 and (op == "max") != (math.copysign(1, number) > 0):
            return {"min": "least_and_0", "max": "most_and_0"}[op]
        return op

    def real(self, value: float) -> str:
        return _DOUBLE.sub(r"\1f", super().real(value))

    def function(self, name: str, text: str) -> str:
        return _on_card(text)

    def head(self, statements: int) -> str:
        # With registers for 1,024 threads at once. To begin a block takes a card a while, as long as a short program.
        threads = 256 if statements > _FEW_STATEMENTS else 512
        return f'extern "C" __global__ void __launch_bounds__({threads}, {1024 // threads})'

    def packed(self, channels: Sequence[str]) -> str:
        shown = [channels[0]] * 3 if len(channels) == 1 else [*channels]
        return f"pixel{{{', '.join([*shown, '255'][:4])}}}"

    def frame(self, name: str) -> str:
        return f"const {name} frame"

    def buffer(self, kind: Item, name: str, written: bool) -> str:
        return f"{'' if written else 'const '}{_ITEMS[kind]} *{name}"

    def parameters(self, given: Sequence[Given]) -> list[str]:
        ends = [*[","] * (len(given) - 1), ""]
        return [f"{each.text}{end}{each.remark}" for each, end in zip(given, ends, strict=True)]

    def reading(self, parts: ProgramParts, function: str, buffer: Bound, start: str, *more: str) -> str:
        # Sums of whole numbers take less than those of addresses.
        return super().reading(parts, function, buffer, "", *([start or "0u"] if function != "fetched" else []), *more)

    def extents(
        self, parts: ProgramParts, sides: Sequence[tuple[Source, str]], across: bool = True, down: bool = True
    ) -> list[str]:
        # To convert them takes each pixel a while.
        reals = [
            parts.frame.read(source, f"{name}_real", "float")
            for (source, name), is_taken in zip(sides, (across, down), strict=True) if is_taken
        ]  # fmt: skip
        return [*(super().extents(parts, sides, down=False) if down else []), *reals]

    def start(self) -> list[CodeLine]:
        return [CodeLine("uint id = blockIdx.x * blockDim.x + threadIdx.x;")]

    def pixel(self, parts: ProgramParts, columns: str, rows: str) -> list[tuple[str, str]]:
        # Conversions take long.
        parts.helpers |= {"centre_of", "exact_ratio_by"}

        def of(side: LaunchExtent, part: SideFact) -> str:
            return parts.frame.read(SidePart(side, part), f"{side.value}_{part}", "float")

        wide, high = (f"{of(each, 'lower')}, {of(each, 'rest')}" for each in (LaunchExtent.COLUMNS, LaunchExtent.ROWS))
        column, row = self.number(parts)
        return [(name, f"exact_ratio_by(centre_of({number}), {per})")
                for name, number, per in (("x", column, wide), ("y", row, high))]

    def number(self, parts: ProgramParts) -> tuple[str, str]:
        # Divisions of whole numbers take as long as all else in a small kernel.
        parts.helpers.add("row_of")
        columns = extent(parts, LaunchExtent.COLUMNS)
        factor, shift = (
            parts.frame.read(SidePart(LaunchExtent.COLUMNS, part), f"columns_{part}", "u32")
            for part in ("factor", "shift")
        )
        row = f"row_of(id, {columns}, {factor}, {shift})"
        return f"id - {row} * {columns}", row

    def stopped(self) -> str:
        return "*met_limit = 1u;"


@dataclass(frozen=True)
class Hip(Cuda):
    """The same for hipRTC."""

    name: ClassVar[str] = "hip"
    # It has no sums that are rounded down.
    cells: ClassVar[tuple[str, str] | None] = None
    prelude: ClassVar[Mapping[str, str]] = MappingProxyType(
        {**{name: text for name, text in Cuda.prelude.items() if name not in FOLDED_BITS}, "bits_of": BITS["bits_of"]}
    )


def _on_card(text: str) -> str:
    """A function as one that runs on a card, with numbers of single precision."""
    lines = [line if line.startswith("//") else _DOUBLE.sub(r"\1f", line) for line in text.split("\n")]
    head = next(at for at, line in enumerate(lines) if line.endswith("{"))
    apart = "__noinline__ " if _APART & {*re.findall(r"(\w+)\(", lines[head])} else ""
    lines[head] = f"__device__ {apart}{lines[head]}"
    return "\n".join(lines)
