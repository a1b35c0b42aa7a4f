"""A stand-in for <metal_stdlib>, as far as weft's kernels go, and somewhat further to tell where names are ambiguous.

It serves two compilers. To check, clang's C++ for OpenCL, which has the same four address spaces and nearly the same
bans: there all functions are only declared. To run, plain C++ without address spaces.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

SCALARS = ("float", "int", "uint", "uchar")
WIDTHS = (2, 3, 4)

# How vectors of each width can be put together: the widths of the operands.
_MAKINGS: dict[int, tuple[tuple[int, ...], ...]] = {
    2: ((1,), (1, 1)),
    3: ((1,), (1, 1, 1), (2, 1), (1, 2)),
    4: ((1,), (1, 1, 1, 1), (2, 1, 1), (1, 2, 1), (1, 1, 2), (2, 2), (3, 1), (1, 3)),
}

# Functions of reals by their number of operands. Those that run have a body.
_REAL: dict[int, tuple[str, ...]] = {
    1: ("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "sinpi", "cospi", "tanpi", "exp", "exp2",
        "exp10", "log", "log2", "log10", "sqrt", "rsqrt", "floor", "ceil", "trunc", "round", "rint", "abs", "fabs",
        "sign", "fract", "saturate"),
    2: ("pow", "powr", "fmod", "atan2", "min", "max", "fmin", "fmax", "step", "copysign"),
    3: ("mix", "clamp", "fma", "smoothstep"),
}  # fmt: skip
_WHOLE: dict[int, tuple[str, ...]] = {1: ("abs",), 2: ("min", "max"), 3: ("clamp",)}

# Functions with a precise and a fast form besides the plain one.
_PRECISE = frozenset(name for names in _REAL.values() for name in names) - {"mix", "fma", "smoothstep", "step", "abs",
                                                                            "sign", "copysign"}  # fmt: skip

# What there is besides, whose names programs must not give to functions either.
_OTHERS = (
    "access", "address", "bias", "component", "coord", "filter", "gradient2d", "level", "matrix", "sampler", "vec",
)  # fmt: skip

NAMES = frozenset((*_OTHERS, *(name for names in _REAL.values() for name in names)))

_HEAD = """\
#pragma once
#ifdef __OPENCL_CPP_VERSION__
#define kernel __kernel
#define device __global
#define constant __constant
#define threadgroup __local
#define thread __private
#else
#define kernel static
#define device
#define constant const
#define thread
#endif
#define double double_is_no_type_of_metal
#define atomic_uint metal_atomic_uint
typedef unsigned char uchar;
typedef unsigned int uint;
"""

_ATOMIC = """\
enum memory_order { memory_order_relaxed };
struct metal_atomic_uint { uint value; };
"""

PRECISE = """\
extern "C" {
float precise_sin(float x) { return __builtin_sinf(x); }
float precise_cos(float x) { return __builtin_cosf(x); }
float precise_sqrt(float x) { return __builtin_sqrtf(x); }
float precise_min(float a, float b) { return __builtin_fminf(a, b); }
float precise_max(float a, float b) { return __builtin_fmaxf(a, b); }
float whole_fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
}
"""
"""The precise functions, and the product and sum that always is one operation, which are compiled without the liberties
of fast mathematics: with these, clang makes it two where a processor may lack it."""

_RUNNING = """\
extern "C" float precise_sin(float), precise_cos(float), precise_sqrt(float);
extern "C" float precise_min(float, float), precise_max(float, float), whole_fma(float, float, float);
template <typename T, typename F> inline T as_type(const F &from) {
    static_assert(sizeof(T) == sizeof(F), "as_type between sizes");
    T to;
    __builtin_memcpy(&to, &from, sizeof to);
    return to;
}
inline float floor(float x) { return __builtin_floorf(x); }
inline float rint(float x) { return __builtin_rintf(x); }
inline float abs(float x) { return __builtin_fabsf(x); }
inline float fma(float a, float b, float c) { return whole_fma(a, b, c); }
inline int clamp(int x, int low, int high) { return x < low ? low : x > high ? high : x; }
inline float4 mix(float4 a, float4 b, float4 share) { return a + (b - a) * share; }
inline float pow(float x, float y) { return __builtin_powf(x, y); }
inline float4 smoothstep(float4 low, float4 high, float4 x) {
    float4 made;
    for (int k = 0; k < 4; k++) {
        float t = (x[k] - low[k]) / (high[k] - low[k]);
        t = t < 0 ? 0 : t > 1 ? 1 : t;
        made[k] = t * t * (3 - 2 * t);
    }
    return made;
}
namespace precise {
inline float sin(float x) { return precise_sin(x); }
inline float cos(float x) { return precise_cos(x); }
inline float sqrt(float x) { return precise_sqrt(x); }
inline float min(float a, float b) { return precise_min(a, b); }
inline float max(float a, float b) { return precise_max(a, b); }
inline float clamp(float x, float low, float high) { return min(max(x, low), high); }
}
inline void atomic_store_explicit(metal_atomic_uint *object, uint value, memory_order) { object->value = value; }
"""

_CHECKING = """\
template <typename T, typename F> T as_type(F from) { return __builtin_astype(from, T); }
void atomic_store_explicit(__global metal_atomic_uint *object, uint value, memory_order order);
"""


def vector(scalar: str, width: int) -> str:
    return scalar if width == 1 else f"{scalar}{width}"


def header() -> str:
    """The whole text."""
    return "\n".join([
        _HEAD, *_types(), "namespace metal {", _ATOMIC, *_makings(),
        "#ifdef __OPENCL_CPP_VERSION__", _CHECKING, *_declared(), "#else", _RUNNING, "#endif", "}",
        *_constructors(), "",
    ])  # fmt: skip


def _types() -> Iterator[str]:
    for scalar in SCALARS:
        for width in WIDTHS:
            yield f"typedef {scalar} {scalar}{width} __attribute__((ext_vector_type({width})));"


def _makings() -> Iterator[str]:
    """Functions that put vectors together; nothing is converted but scalars, and whole vectors."""
    for scalar in SCALARS:
        for width in WIDTHS:
            made = vector(scalar, width)
            for parts in _MAKINGS[width]:
                yield _making(scalar, width, parts)
            for other in SCALARS:
                if other != scalar:
                    body = f"return __builtin_convertvector(v, {made});"
                    yield f"inline {made} make_{made}({vector(other, width)} v) {{ {body} }}"


def _making(scalar: str, width: int, parts: Sequence[int]) -> str:
    made = vector(scalar, width)
    operands = ", ".join(f"{vector(scalar, part)} p{at}" for at, part in enumerate(parts))
    if parts == (1,):
        return f"inline {made} make_{made}({operands}) {{ {made} v = p0; return v; }}"
    components = [
        f"p{at}" if part == 1 else f"p{at}.{'xyzw'[k]}" for at, part in enumerate(parts) for k in range(part)
    ]
    sets = " ".join(f"v.{'xyzw'[k]} = {component};" for k, component in enumerate(components))
    return f"inline {made} make_{made}({operands}) {{ {made} v; {sets} return v; }}"


def _declared() -> Iterator[str]:
    yield from _functions("float", _REAL)
    for scalar in ("int", "uint", "uchar"):
        yield from _functions(scalar, _WHOLE)
    chosen = {count: tuple(name for name in names if name in _PRECISE) for count, names in _REAL.items()}
    for form in ("precise", "fast"):
        yield f"namespace {form} {{"
        yield from _functions("float", chosen)
        yield "}"


def _functions(scalar: str, names: dict[int, tuple[str, ...]]) -> Iterator[str]:
    for count, found in names.items():
        for name in found:
            for width in (1, *WIDTHS):
                kind = vector(scalar, width)
                yield f"{kind} {name}({', '.join([kind] * count)});"


def _constructors() -> Iterator[str]:
    """The functions of the types, where these are called."""
    for scalar in SCALARS:
        for width in WIDTHS:
            made = vector(scalar, width)
            yield f"#define {made}(...) metal::make_{made}(__VA_ARGS__)"
