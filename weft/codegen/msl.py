"""MSL, the language of Metal: compute kernels for pictures, planes and lists of points, an element for each thread.

All inputs of a kernel are in buffers, in the order of `Shader.buffers`. Launches are one row of threads, and may be
rounded up. Compilers of Metal assume that there is neither NaN nor infinity, divide imprecisely, and reorder terms.
Code that must not be changed works on bits, or uses the functions of `precise`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import copysign
from types import MappingProxyType
from typing import ClassVar

from weft.codegen.clike.buffers import ENDS, Given, Item, KernelLanguage
from weft.codegen.clike.language import C_TYPES, CPP_WORDS, Type
from weft.codegen.clike.pointers import reading_functions
from weft.codegen.clike.prelude import EXACT, FUSED

_ITEMS: Mapping[Item, str] = MappingProxyType({
    "real": "float", "pixel": "uchar4", "two": "float2", "four": "float4", "limit": "atomic_uint",
})  # fmt: skip

_RESERVED = CPP_WORDS | frozenset(
    """
    kernel vertex fragment device constant thread threadgroup threadgroup_imageblock object_data ray_data metal half
    uchar ushort uint ulong size_t ptrdiff_t int8_t uint8_t int16_t uint16_t int32_t uint32_t int64_t uint64_t bool2
    bool3 bool4 char2 char3 char4 uchar2 uchar3 uchar4 short2 short3 short4 ushort2 ushort3 ushort4 int2 int3 int4 uint2
    uint3 uint4 half2 half3 half4 float2 float3 float4 float2x2 float3x3 float4x4 atomic_int atomic_uint atomic_bool
    sampler texture1d texture2d texture3d texturecube depth2d array packed_float2 packed_float3 packed_float4 as_type
    precise fast access filter address coord memory_order_relaxed atomic_store_explicit sin cos tan asin acos atan atan2
    sinh cosh tanh sinpi cospi tanpi exp exp2 exp10 log log2 log10 pow powr sqrt rsqrt abs fabs sign floor ceil trunc
    round rint fract fmod modf frexp ldexp min max fmin fmax min3 max3 median3 clamp mix saturate step smoothstep select
    copysign fma fdim nextafter isnan isinf isfinite isnormal signbit any all dot cross length length_squared distance
    distance_squared normalize faceforward reflect refract popcount clz ctz absdiff hadd rotate reverse_bits mulhi madhi
    extract_bits insert_bits dfdx dfdy fwidth discard_fragment INFINITY NAN MAXFLOAT HUGE_VALF FLT_MAX FLT_MIN
    FLT_EPSILON INT_MAX INT_MIN UINT_MAX M_PI_F M_E_F id count pixels values Frame main
    """.split()  # noqa: SIM905 - this is read more easily than a list of strings
)


@dataclass(frozen=True)
class Msl(KernelLanguage):
    """Version 2.3."""

    top: ClassVar[tuple[str, ...]] = ("#include <metal_stdlib>", "using namespace metal;")
    most_buffers: ClassVar[int] = 31

    name: ClassVar[str] = "msl"
    types: ClassVar[Mapping[Type, str]] = MappingProxyType({**C_TYPES, "two": "float2", "four": "float4"})

    between_pixels: ClassVar[str] = "between_pixels"
    reserved: ClassVar[frozenset[str]] = _RESERVED
    prelude: ClassVar[Mapping[str, str]] = FUSED
    helpers: ClassVar[Mapping[str, str]] = MappingProxyType({**reading_functions("const device"), **ENDS})
    spellings: ClassVar[Mapping[str, str]] = MappingProxyType({"min": "min", "max": "max"})
    # Its precise roots are exact.
    exact: ClassVar[Mapping[str, str]] = MappingProxyType({"div": EXACT["div"]})
    words: ClassVar[Mapping[str, str]] = MappingProxyType({
        "bits_in": "as_type<uint>", "real_in": "as_type<float>", "nearest": "rint", "pair": "float2",
        "sin": "precise::sin", "cos": "precise::cos", "min": "precise::min", "max": "precise::max",
        "clamp": "precise::clamp", "sqrt": "precise::sqrt", "sinpi": "sin_pi", "cospi": "cos_pi",
        "not_a_number": "as_type<float>(0x7fc00000u)", "infinity": "as_type<float>(0x7f800000u)",
    })  # fmt: skip

    def infinite(self, sign: float) -> str:
        # Compilers drop products with a known infinity. Bit 31 of `id` is always 0, which they do not know.
        return f"as_type<float>({0xFF800000 if copysign(1, sign) < 0 else 0x7F800000:#x}u | (id >> 31u))"

    def parameters(self, given: Sequence[Given]) -> list[str]:
        numbered = [f"{each.text} [[buffer({at})]],{each.remark}" for at, each in enumerate(given)]
        return [*numbered, "uint id [[thread_position_in_grid]]"]

    def frame(self, name: str) -> str:
        return f"constant {name} &frame"

    def buffer(self, kind: Item, name: str, written: bool) -> str:
        return f"{'device' if written else 'const device'} {_ITEMS[kind]} *{name}"

    def stopped(self) -> str:
        return "atomic_store_explicit(met_limit, 1u, memory_order_relaxed);"
