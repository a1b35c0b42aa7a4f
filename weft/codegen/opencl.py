"""OpenCL C 1.2: compute kernels for pictures, planes and lists of points, an element for each thread.

The inputs of a kernel are in buffers, in the order of `Shader.buffers`. Compilers keep NaN and infinities, and are told
not to join a product and a sum. Quotients may be inexact. Numbers are written as singles, since a device need not have
doubles.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

from weft.codegen.clike.buffers import ENDS, Given, Item, KernelLanguage
from weft.codegen.clike.expressions import ExpressionText, prefixed
from weft.codegen.clike.language import C_TYPES, CodeLine, Type
from weft.codegen.clike.pointers import reading_functions
from weft.codegen.clike.prelude import EXACT, ORDERS, PRELUDE

_ITEMS: Mapping[Item, str] = MappingProxyType({
    "real": "float", "pixel": "uchar4", "two": "float2", "four": "float4", "limit": "uint",
})  # fmt: skip

_RESERVED = frozenset(
    """
    auto break case char const continue default do double else enum extern float for goto if inline int long register
    restrict return short signed sizeof static struct switch typedef union unsigned void volatile while asm bool true
    false kernel global local constant private generic read_only write_only read_write uniform pipe half quad complex
    imaginary uchar ushort uint ulong size_t ptrdiff_t intptr_t uintptr_t event_t sampler_t image1d_t image2d_t
    image3d_t image2d_array_t image1d_array_t image1d_buffer_t queue_t ndrange_t clk_event_t reserve_id_t
    cl_mem_fence_flags
    acos acosh acospi asin asinh asinpi atan atan2 atanh atanpi atan2pi cbrt ceil copysign cos cosh cospi erf erfc exp
    exp2 exp10 expm1 fabs fdim floor fma fmax fmin fmod fract frexp hypot ilogb ldexp lgamma lgamma_r log log2 log10
    log1p logb mad maxmag minmag modf nan nextafter pow pown powr remainder remquo rint rootn round rsqrt sin sincos
    sinh sinpi sqrt tan tanh tanpi tgamma trunc abs abs_diff add_sat hadd rhadd clamp clz ctz mad_hi mad_sat max min
    mul_hi rotate sub_sat upsample popcount mad24 mul24 degrees mix radians step smoothstep sign cross dot distance
    length normalize fast_distance fast_length fast_normalize isequal isnotequal isgreater isgreaterequal isless
    islessequal islessgreater isfinite isinf isnan isnormal isordered isunordered signbit any all bitselect select
    barrier mem_fence read_mem_fence write_mem_fence work_group_barrier prefetch shuffle shuffle2 printf vec_step
    wait_group_events async_work_group_copy async_work_group_strided_copy get_work_dim get_global_size get_global_id
    get_local_size get_local_id get_num_groups get_group_id get_global_offset
    INFINITY NAN MAXFLOAT HUGE_VALF HUGE_VAL NULL CHAR_BIT FLT_DIG FLT_MANT_DIG FLT_MAX_10_EXP FLT_MAX_EXP
    FLT_MIN_10_EXP FLT_MIN_EXP FLT_RADIX FLT_MAX FLT_MIN FLT_EPSILON INT_MAX INT_MIN UINT_MAX M_PI_F M_E_F linux unix
    id count pixels values frame Frame met_limit main
    """.split()  # noqa: SIM905 - this is read more easily than a list of strings
) | {
    f"{kind}{size}" for kind in ("char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "half", "float",
                                 "double", "bool") for size in (2, 3, 4, 8, 16)
} | {
    f"{kind}_{name}" for kind in ("half", "native")
    for name in ("cos", "divide", "exp", "exp2", "exp10", "log", "log2", "log10", "powr", "recip", "rsqrt", "sin",
                 "sqrt", "tan")
} | {
    f"{kind}{name}{size}" for kind in ("as_", "convert_", "vload", "vstore")
    for name in ("", "float", "int", "uint", "uchar") for size in ("", 2, 3, 4, 8, 16)
}  # fmt: skip

# A type that is called, and a real, as the shared functions have them.
_CALLED = re.compile(r"\b((?:float|int|uint|uchar)[234]?)\(")
_REAL = re.compile(r"(?<![\w.])(\d+\.\d*(?:e[+-]?\d+)?|\d+e[+-]?\d+)(?![\w.])")


@dataclass(frozen=True)
class OpenCl(KernelLanguage):
    """Version 1.2."""

    top: ClassVar[tuple[str, ...]] = ("#pragma OPENCL FP_CONTRACT OFF",)
    most_buffers: ClassVar[int] = 120  # a device takes 1024 bytes of arguments, or more

    name: ClassVar[str] = "opencl"
    types: ClassVar[Mapping[Type, str]] = MappingProxyType({**C_TYPES, "two": "float2", "four": "float4"})
    channels: ClassVar[str] = "xyzw"
    frame_access: ClassVar[str] = "frame->"
    between_pixels: ClassVar[str] = "between_pixels"

    reserved: ClassVar[frozenset[str]] = _RESERVED
    prelude: ClassVar[Mapping[str, str]] = MappingProxyType({**ORDERS, **PRELUDE})
    helpers: ClassVar[Mapping[str, str]] = MappingProxyType({**reading_functions("global const"), **ENDS})
    exact: ClassVar[Mapping[str, str]] = EXACT
    words: ClassVar[Mapping[str, str]] = MappingProxyType({
        "bits_in": "as_uint", "real_in": "as_float", "nearest": "rint", "pair": "float2", "abs": "fabs", "min": "least",
        "max": "most", "sinpi": "sin_pi", "cospi": "cos_pi", "not_a_number": "as_float(0x7fc00000u)",
        "infinity": "as_float(0x7f800000u)",
    })  # fmt: skip

    def real(self, value: float) -> str:
        return _REAL.sub(r"\1f", super().real(value))

    def converted(self, kind: Type, value: ExpressionText) -> ExpressionText:
        return prefixed(f"({self.types[kind]})", value)

    def functions(self, names: Iterable[str], loops: bool = True) -> list[str]:
        """As the shared functions are written, with casts and singles as in C."""

        def as_in_c(line: str) -> str:
            return line if line.startswith("//") else _REAL.sub(r"\1f", _CALLED.sub(r"(\1)(", line))

        return ["\n".join(map(as_in_c, text.split("\n"))) for text in super().functions(names, loops)]

    def packed(self, channels: Sequence[str]) -> str:
        return _CALLED.sub(r"(\1)(", super().packed(channels))

    def frame(self, name: str) -> str:
        return f"constant struct {name} *frame"

    def buffer(self, kind: Item, name: str, written: bool) -> str:
        return f"global {'' if written else 'const '}{_ITEMS[kind]} *{name}"

    def parameters(self, given: Sequence[Given]) -> list[str]:
        ends = [*[","] * (len(given) - 1), ""]
        return [f"{each.text}{end}{each.remark}" for each, end in zip(given, ends, strict=True)]

    def start(self) -> list[CodeLine]:
        return [CodeLine("uint id = get_global_id(0);")]

    def stopped(self) -> str:
        return "*met_limit = 1u;"
