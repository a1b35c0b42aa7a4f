"""MSL, the language of Metal: compute kernels for pictures, planes and lists of points, an element for each thread.

All inputs of a kernel are in buffers, in the order of `Shader.buffers`. Launches are one row of threads, and may be
rounded up. Compilers of Metal assume that there is neither NaN nor infinity, divide imprecisely, and reorder terms.
Code that has to stay as written works on bits, or uses the functions of `precise`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import copysign
from types import MappingProxyType
from typing import ClassVar, NamedTuple

from weft.codegen.clike.body import emit, layer_to_write
from weft.codegen.clike.language import (
    CodeLine, Identifiers, Language, ProgramParts, block, document, identifier, packed_pixel, remark, shared_functions,
    structure, without_functions
)
from weft.codegen.clike.numbers import NumberedKernel
from weft.codegen.clike.prelude import FUSED, functions_in
from weft.codegen.clike.shader import (
    Bound, BufferSpec, BufferUse, Forms, LaunchExtent, LevelExtent, Shader, UnsuitableError
)
from weft.codegen.kernel import Kernel
from weft.codegen.native.target import PictureWord
from weft.ir.expr import StateSlot
from weft.ir.rates import Rate
from weft.names import is_sound

_TOP = ("#include <metal_stdlib>", "using namespace metal;")

# A comment names the content of these buffers where they are declared.
_LABELLED = frozenset({BufferUse.RING, BufferUse.HISTORY, BufferUse.PICTURE, BufferUse.EXTERNAL_READ})

MOST_BUFFERS = 31
"""The most buffers of a kernel."""

_FUNCTIONS = """\
// An image, or a picture, between the four pixels around a place; clamped at the edge.
template <typename T>
T between(const device T *image, uint columns, uint rows, float x, float y) {
    float across = place(x, columns);
    float down = place(y, rows);
    uint left = uint(across);
    uint right = left + 1 < columns ? left + 1 : left;
    const device T *upper = image + uint(down) * columns;
    const device T *lower = uint(down) + 1 < rows ? upper + columns : upper;
    T above = upper[left] + (upper[right] - upper[left]) * (across - float(left));
    T below = lower[left] + (lower[right] - lower[left]) * (across - float(left));
    return above + (below - above) * (down - floor(down));
}

// A sample of a sound by its number, left and right; 0 where there is none.
float2 fetched(const device float2 *sound, uint samples, float number) {
    float given = number_or(number, -1.0);
    bool is_there = given >= 0.0 && given < float(samples);
    return is_there ? sound[uint(is_there ? given : 0.0)] : float2(0.0, 0.0);
}

// A channel as a byte: clamped to 0…1, a half rounded up; NaN is 0.
uchar to_byte(float x) {
    return uchar(clamp(number_or(x, 0.0), 0.0, 1.0) * 255.0 + 0.5);
}

// How many whole times b goes into a. The quotient may be a bit too small: then what is left is all of b.
float whole_ratio(float a, float b) {
    float whole = floor(a / b);
    return bits_in(fma(-b, whole, a)) == bits_in(b) ? whole + 1.0 : whole;
}"""

_RESERVED = frozenset(
    """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl const const_cast constexpr
    continue decltype default delete do double dynamic_cast else enum explicit export extern false float for friend goto
    if inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public
    register reinterpret_cast return short signed sizeof static static_assert static_cast struct switch template this
    thread_local throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor
    xor_eq kernel vertex fragment device constant thread threadgroup threadgroup_imageblock object_data ray_data metal
    half uchar ushort uint ulong size_t ptrdiff_t int8_t uint8_t int16_t uint16_t int32_t uint32_t int64_t uint64_t
    bool2 bool3 bool4 char2 char3 char4 uchar2 uchar3 uchar4 short2 short3 short4 ushort2 ushort3 ushort4 int2 int3 int4
    uint2 uint3 uint4 half2 half3 half4 float2 float3 float4 float2x2 float3x3 float4x4 atomic_int atomic_uint
    atomic_bool sampler texture1d texture2d texture3d texturecube depth2d array packed_float2 packed_float3
    packed_float4 as_type precise fast access filter address coord memory_order_relaxed atomic_store_explicit sin cos
    tan asin acos atan atan2 sinh cosh tanh sinpi cospi tanpi exp exp2 exp10 log log2 log10 pow powr sqrt rsqrt abs fabs
    sign floor ceil trunc round rint fract fmod modf frexp ldexp min max fmin fmax min3 max3 median3 clamp mix saturate
    step smoothstep select copysign fma fdim nextafter isnan isinf isfinite isnormal signbit any all dot cross length
    length_squared distance distance_squared normalize faceforward reflect refract popcount clz ctz absdiff hadd rotate
    reverse_bits mulhi madhi extract_bits insert_bits dfdx dfdy fwidth discard_fragment INFINITY NAN MAXFLOAT HUGE_VALF
    FLT_MAX FLT_MIN FLT_EPSILON INT_MAX INT_MIN UINT_MAX M_PI_F M_E_F id count pixels values Frame main
    """.split()  # noqa: SIM905 - this is read more easily than a list of strings
)


class KernelNames(NamedTuple):
    """The names that a kernel defines in its file: its function, and the struct of its uniforms."""

    entry: str
    frame: str = "Frame"


_ALONE: Mapping[str, KernelNames] = MappingProxyType({})


@dataclass(frozen=True)
class Msl(Language):
    """Version 2.3."""

    file: Mapping[str, KernelNames] = field(default_factory=lambda: _ALONE)
    """The kernels that share a file, by their names; empty for a kernel that has a file to itself."""

    name: ClassVar[str] = "msl"
    four: ClassVar[str] = "float4"
    two: ClassVar[str] = "float2"

    ring: ClassVar[str] = "ring"
    reserved: ClassVar[frozenset[str]] = _RESERVED
    helpers: ClassVar[Mapping[str, str]] = MappingProxyType({**FUSED, **functions_in(_FUNCTIONS)})
    spellings: ClassVar[Mapping[str, str]] = MappingProxyType({"min": "min", "max": "max"})
    whole_ratio: ClassVar[str | None] = "whole_ratio"
    words: ClassVar[Mapping[str, str]] = MappingProxyType({
        "bits_in": "as_type<uint>", "real_in": "as_type<float>", "nearest": "rint", "pair": "float2",
        "sin": "precise::sin", "cos": "precise::cos", "min": "precise::min", "max": "precise::max",
        "clamp": "precise::clamp", "sqrt": "precise::sqrt", "sinpi": "sin_pi", "cospi": "cos_pi",
        "not_a_number": "as_type<float>(0x7fc00000u)", "infinity": "as_type<float>(0x7f800000u)",
    })  # fmt: skip

    @property
    def taken(self) -> frozenset[str]:
        return self.reserved | {name for names in self.file.values() for name in names}

    def infinite(self, sign: float) -> str:
        # Compilers drop products with a known infinity. Bit 31 of `id` is always 0, which they do not know.
        return f"as_type<float>({0xFF800000 if copysign(1, sign) < 0 else 0x7F800000:#x}u | (id >> 31u))"

    def own(self, parts: ProgramParts, image: Bound, slot: StateSlot, layer: str) -> str:
        return f"{image.name}[{_factor(layer, slot)} * count + id]"

    def sampled(self, parts: ProgramParts, image: Bound, slot: StateSlot, layer: str, x: str, y: str) -> str:
        parts.helpers.add("between")
        is_here = slot.level == parts.kernel.level
        columns, rows = (
            _extent(parts, side) if is_here else _side(parts, slot, side)
            for side in (LaunchExtent.COLUMNS, LaunchExtent.ROWS)
        )
        size = "count" if is_here and parts.kernel.sweep == "grid" else f"{columns} * {rows}"
        return f"between({image.name} + {_factor(layer, slot)} * {size}, {columns}, {rows}, {x}, {y})"

    def remembered(self, parts: ProgramParts, history: Bound, index: str) -> str:
        return f"{history.name}[{index}]"

    def picture(self, parts: ProgramParts, picture: Bound, x: str, y: str) -> str:
        parts.helpers.add("between")
        size = ", ".join(
            parts.frame.read(PictureWord(picture.key, what), f"{picture.name}_{what}", "u32")
            for what in ("width", "height")
        )
        return f"between({picture.name}, {size}, {x}, {y})"

    def fetched(self, parts: ProgramParts, sound: Bound, number: str) -> str:
        parts.helpers.add("fetched")
        size = parts.frame.read(PictureWord(sound.key, "width"), f"{sound.name}_width", "u32")
        return f"fetched({sound.name}, {size}, {number})"

    def external_read(self, parts: ProgramParts, read: Bound, over: frozenset[Rate]) -> str:
        if not over:
            return f"{read.name}[0]"
        if len(over) > 1 or Rate.ELEMENT in over:
            return f"{read.name}[id]"
        return f"{read.name}[id {'%' if Rate.COLUMN in over else '/'} {_extent(parts, LaunchExtent.COLUMNS)}]"

    def program(self, parts: ProgramParts) -> Shader:
        body = [*map(CodeLine, _coordinates(parts)), *parts.body, *map(CodeLine, self._ends(parts))]
        names = self.file.get(parts.kernel.name) or KernelNames(identifier(parts.kernel.name))
        given = _given(parts, names.frame)
        if len(given) > MOST_BUFFERS:
            raise UnsuitableError(f"it needs {len(given)} buffers, and {MOST_BUFFERS} is the limit")
        main = [CodeLine(f"kernel void {names.entry}("), *(CodeLine(text, 1) for text in _parameters(given))]
        main += block(")", body)
        frame = structure(self, parts, f"struct {names.frame}", "};")
        buffers = tuple(buffer for buffer, _ in given)
        return document(self, parts, _TOP, [frame], main, entry=names.entry, buffers=buffers)

    def _ends(self, parts: ProgramParts) -> list[str]:
        """The statements that write the results of an element."""
        ends = []
        if parts.packed:
            parts.helpers.add("to_byte")
            pixel = packed_pixel([f"to_byte({value})" for value in parts.outputs], "uchar", "255")
            ends.append(f"pixels[id] = {pixel};")
        else:
            places = ["id", "count + id", *(f"{at} * count + id" for at in range(2, len(parts.outputs)))]
            ends += [f"values[{place}] = {value};" for place, value in zip(places, parts.outputs, strict=False)]
        for place, value in parts.stores:
            layer = _factor(layer_to_write(parts, place), parts.kernel.slot(place.slot))
            ends.append(f"{parts.images[place.slot].name}[{layer} * count + id] = {value};")
        if parts.stops:
            ends += ["if (stopped) atomic_store_explicit(met_limit, 1u, memory_order_relaxed);"]
        return ends


def _extent(parts: ProgramParts, extent: LaunchExtent) -> str:
    return parts.frame.read(extent, extent.value, "u32")


def _side(parts: ProgramParts, slot: StateSlot, side: LaunchExtent) -> str:
    """A side of the images of a slot that are larger or smaller than the launch."""
    return parts.frame.read(LevelExtent(slot.level, side), f"{side.value}_{slot.level}", "u32")


def _factor(layer: str, slot: StateSlot) -> str:
    """The number of a layer, as an operand of `*`."""
    return layer if slot.planes == 1 else f"({layer})"


def _coordinates(parts: ProgramParts) -> list[str]:
    """The coordinates of a pixel or point. Returns for threads without one."""
    if parts.kernel.sweep == "points":
        count = _extent(parts, LaunchExtent.POINTS)
        places = [(name, f"all_{name}[id]") for name in parts.coords]
    else:
        columns, rows = _extent(parts, LaunchExtent.COLUMNS), _extent(parts, LaunchExtent.ROWS)
        count = f"{columns} * {rows}"
        numbers = (("x", f"id % {columns}", columns), ("y", f"id / {columns}", rows))
        places = [(name, f"(float({at}) + 0.5) / float({size})") for name, at, size in numbers if name in parts.coords]
    lines = [f"uint count = {count};", "if (id >= count) return;"]
    return [*lines, *(f"float me_{name} = {place};" for name, place in places)]


def _given(parts: ProgramParts, frame: str) -> list[tuple[BufferSpec, str]]:
    """The buffers of a kernel, and their declarations."""
    written = {place.slot for place, _ in parts.stores}
    given = [(BufferSpec(BufferUse.FRAME), f"constant {frame} &frame")]
    if parts.outputs:
        given.append((BufferSpec(BufferUse.OUT), "device uchar4 *pixels" if parts.packed else "device float *values"))
    if parts.kernel.sweep == "points":
        given += [(BufferSpec(BufferUse.COORDINATE, name), f"const device float *all_{name}") for name in parts.coords]
    for image in parts.images.values():
        access = "device" if image.key in written else "const device"
        given.append((BufferSpec(BufferUse.RING, image.key), f"{access} float *{image.name}"))
    given += [(BufferSpec(BufferUse.HISTORY, b.key), f"const device float *{b.name}") for b in parts.histories.values()]
    for picture in parts.pictures.values():
        four = "float2" if is_sound(picture.key) else "float4"
        given.append((BufferSpec(BufferUse.PICTURE, picture.key), f"const device {four} *{picture.name}"))
    reads = parts.external_reads.values()
    given += [(BufferSpec(BufferUse.EXTERNAL_READ, b.key), f"const device float *{b.name}") for b in reads]
    if parts.stops:
        given.append((BufferSpec(BufferUse.LIMIT), "device atomic_uint *met_limit"))
    return given


def _parameters(given: list[tuple[BufferSpec, str]]) -> list[str]:
    """The declarations with their numbers and comments."""
    lines = []
    for at, (buffer, declared) in enumerate(given):
        about = f"  // {remark(buffer.key)}" if buffer.use in _LABELLED else ""
        lines.append(f"{declared} [[buffer({at})]],{about}")
    return [*lines, "uint id [[thread_position_in_grid]]"]


def pixels(kernel: Kernel, packed: bool = True, file: Mapping[str, KernelNames] = _ALONE) -> Shader:
    """The program of a kernel over a picture, `packed` as pixels or with its outputs as planes; `file` are the names of
    the kernels that share its file. Raises UnsuitableError with the reason if it has none."""
    return emit(kernel, Msl(file), packed)


def over_picture(kernel: Kernel, packed: bool, numbered: NumberedKernel) -> Forms:
    """The same for a kernel whose numbers are known."""
    return Forms(emit(kernel, Msl(), packed, numbered))


def points(kernel: Kernel, file: Mapping[str, KernelNames] = _ALONE) -> Shader:
    """The program of a kernel over points. Raises UnsuitableError with the reason if it has none."""
    return emit(kernel, Msl(file))


def over_points(kernel: Kernel, numbered: NumberedKernel) -> Shader:
    """The same for a kernel whose numbers are known."""
    return emit(kernel, Msl(), numbered=numbered)


def file_names(kernels: Sequence[Kernel]) -> Mapping[str, KernelNames]:
    """Names for kernels that share a file: `visual/display` is `visual_display`, with `VisualDisplayFrame`."""
    names = Identifiers(Msl.reserved | Msl().function_names)
    made = {}
    for kernel in kernels:
        entry = names.new(kernel.name)
        frame = "".join(word[0].upper() + word[1:] for word in entry.split("_")) + "Frame"
        made[kernel.name] = KernelNames(entry, names.unique(frame))
    return made


def file_of(shaders: Sequence[Shader]) -> str:
    """One file of several kernels, which were made with the names of that file."""
    lines = [*_TOP, *shared_functions(Msl(), shaders)]
    for shader in shaders:
        title, *rest = without_functions(shader)
        lines += ["", title, *rest[len(_TOP) :]]
    return "\n".join(lines) + "\n"
