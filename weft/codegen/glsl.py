"""GLSL: fragment shaders and compute shaders for pictures, and compute shaders for lists of points.

Rows of textures are rows of the picture, from top to bottom.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from types import MappingProxyType
from typing import ClassVar, NamedTuple

from weft.codegen.clike.body import layer_to_write
from weft.codegen.clike.emission import emit, emit_forms, emit_pieces
from weft.codegen.clike.fields import NumberedKernel
from weft.codegen.clike.language import (
    C_TYPES, CodeLine, Language, ProgramParts, Type, block, document, packed_pixel, remark, structure
)
from weft.codegen.clike.lines import Axis, LineValue, split
from weft.codegen.clike.pieces import is_crowded, pieces_of
from weft.codegen.clike.prelude import EXACT, EXACT_SINES, EXACT_WAVES, functions_in
from weft.codegen.clike.shader import Bound, Forms, LaunchExtent, Shader, UnsuitableError, image_to_write
from weft.codegen.clike.texture_functions import CORRECTED, FUSED_FUNCTIONS, NEWER_FUNCTIONS, TEXTURE_FUNCTIONS, survey
from weft.codegen.kernel import Kernel
from weft.ir.expr import StateSlot
from weft.ir.rates import Rate

TARGETS = 8
"""The number of targets that every driver can draw to at once."""

TEXTURES = 16
"""The number of textures that a program can read with every driver."""

IMAGES = 8
"""The number of images that a program can write with every driver that supports images."""

WORKGROUP = 64
TILE = 16

_SIDES: Mapping[Axis, LaunchExtent] = MappingProxyType({"x": LaunchExtent.COLUMNS, "y": LaunchExtent.ROWS})

# The threads of a tile that compute what its columns and its rows share begin with these: threads that run in step
# would take the ways of both, one after the other.
_FIRST_THREADS: Mapping[Axis, int] = MappingProxyType({"x": 0, "y": 64})

# Measured on an NVIDIA H200: shipped patches that save less gain 7 % by it, or lose 6.
_WORTH_SHARING = 12

# The names of what is shared.
_SHARED = frozenset(
    f"{own}{side.value}_{kind}s" for own in ("", "own_") for side in _SIDES.values() for kind in ("float", "uint")
)

# The most images of a slot that shares a texture. A long delay has its own, since a driver may not have memory for all
# of them in one piece.
_MOST_SHARED = 8


def array_of(slot: StateSlot) -> str:
    """The key of the texture array with the images of a slot: its own, or that of all slots of its level that have few.
    A program can read and write few textures."""
    return slot.key if (slot.depth + 1) * slot.planes > _MOST_SHARED else f"level {slot.level}"

VERTEX = """\
#version 330 core
// One triangle that covers everything.
void main() {
    gl_Position = vec4(vec2(gl_VertexID & 1, gl_VertexID >> 1) * 4.0 - 1.0, 0.0, 1.0);
}
"""
"""The vertex shader that goes with every fragment shader: three vertices, without attributes."""

_RESERVED = frozenset(
    """
    attribute const uniform varying buffer shared coherent volatile restrict readonly writeonly layout centroid flat
    smooth noperspective patch sample break continue do for while switch case default if else subroutine in out inout
    int void bool true false float double discard return mat2 mat3 mat4 vec2 vec3 vec4 ivec2 ivec3 ivec4 bvec2 bvec3
    bvec4 uint uvec2 uvec3 uvec4 lowp mediump highp precision sampler1D sampler2D sampler3D samplerCube sampler2DArray
    samplerBuffer image2D image2DArray struct common partition active asm class union enum typedef template this
    resource goto inline noinline public static extern external interface long short half fixed unsigned superp input
    output hvec2 hvec3 hvec4 dvec2 dvec3 dvec4 fvec2 fvec3 fvec4 filter sizeof cast namespace using row_major invariant
    precise atomic_uint isampler1D isampler2D isampler3D isamplerCube isampler1DArray isampler2DArray isamplerBuffer
    isampler2DRect isamplerCubeArray isampler2DMS isampler2DMSArray usampler1D usampler2D usampler3D usamplerCube
    usampler1DArray usampler2DArray usamplerBuffer usampler2DRect usamplerCubeArray usampler2DMS usampler2DMSArray
    sampler1DShadow sampler2DShadow samplerCubeShadow sampler1DArray sampler1DArrayShadow sampler2DArrayShadow
    sampler2DRect sampler2DRectShadow sampler3DRect samplerCubeArray samplerCubeArrayShadow sampler2DMS sampler2DMSArray
    image1D image3D imageCube imageBuffer image1DArray image2DRect imageCubeArray image2DMS image2DMSArray
    iimage1D iimage2D iimage3D iimageCube iimageBuffer iimage1DArray iimage2DArray iimage2DRect iimageCubeArray
    iimage2DMS iimage2DMSArray uimage1D uimage2D uimage3D uimageCube uimageBuffer uimage1DArray uimage2DArray
    uimage2DRect uimageCubeArray uimage2DMS uimage2DMSArray
    mat2x2 mat2x3 mat2x4 mat3x2 mat3x3 mat3x4 mat4x2 mat4x3 mat4x4 dmat2 dmat3 dmat4 dmat2x2 dmat2x3 dmat2x4 dmat3x2
    dmat3x3 dmat3x4 dmat4x2 dmat4x3 dmat4x4
    radians degrees sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh pow exp log exp2 log2 sqrt inversesqrt
    abs sign floor trunc round roundEven ceil fract mod modf min max clamp mix step smoothstep isnan isinf
    floatBitsToInt floatBitsToUint intBitsToFloat uintBitsToFloat length distance dot cross normalize faceforward fma
    reflect refract transpose inverse determinant outerProduct lessThan equal any all not texture textureSize texelFetch
    textureLod textureGather imageStore noise1 noise2 noise3 noise4 dFdx dFdy fwidth pixel values at point sampled
    picture fetched share
    """.split()  # noqa: SIM905 - this is read more easily than a list of strings
)

_VERSION, _NEWER_VERSION = b"#version 330 core", b"#version 400 core"

# Conditions of a text: version 4.00 or newer, and drivers of NVIDIA, which have this extension, and whose `fma` rounds
# once.
_NEWER, _FUSES = "__VERSION__ >= 400", "defined(GL_NV_gpu_shader5)"

# Functions with values that are wrong if a compiler reorders the terms that they are made of, and these values. It can
# be told so from version 4.00 on, but then it finds fewer shorter ways.
_ORDERED = frozenset({"modulo", "modulo_of_few", "near_modulo", "rest_of", *CORRECTED})
_AS_WRITTEN = re.compile(r"^( +)(float (?:rest|left|nearer) = )", re.MULTILINE)


@dataclass(frozen=True)
class Glsl(Language):
    """Version 3.30, which draws to as many targets as every driver has; or for compute shaders, version 4.30."""

    tile: int | None = None
    """The side of the squares of pixels that are computed instead of drawn; None for fragment shaders."""
    macros: frozenset[str] = frozenset()
    """The macros of a text that holds several programs, this one included."""
    is_newer: bool = False
    """Whether its version is 4.30."""

    name: ClassVar[str] = "glsl"
    types: ClassVar[Mapping[Type, str]] = MappingProxyType({**C_TYPES, "two": "vec2", "four": "vec4"})
    has_fract: ClassVar[bool] = True
    exact: ClassVar[Mapping[str, str]] = MappingProxyType({**EXACT, **EXACT_WAVES})
    by_reciprocal: ClassVar[bool] = True
    keeps_divisor: ClassVar[bool] = True
    negates_orders: ClassVar[bool] = True

    targets: ClassVar[int] = TARGETS
    """The number of targets that can be drawn to at once."""
    row_sampler: ClassVar[str] = "samplerBuffer"
    """The type of a row of numbers."""

    reserved: ClassVar[frozenset[str]] = _RESERVED
    helpers: ClassVar[Mapping[str, str]] = MappingProxyType({**functions_in(TEXTURE_FUNCTIONS), **EXACT_SINES})
    words: ClassVar[Mapping[str, str]] = MappingProxyType({
        "bits_in": "floatBitsToUint", "real_in": "uintBitsToFloat", "nearest": "roundEven", "pair": "vec2",
        "inverse_root": "inversesqrt",
        "not_a_number": "uintBitsToFloat(0x7fc00000u)", "infinity": "uintBitsToFloat(0x7f800000u)",
    })  # fmt: skip

    newer: ClassVar[Mapping[str, str]] = NEWER_FUNCTIONS
    """The functions that differ from version 4.00 on."""
    fused: ClassVar[Mapping[str, str]] = FUSED_FUNCTIONS
    """Those that differ again where products are fused with sums."""

    @property
    def worth_sharing(self) -> float:
        return _WORTH_SHARING if self.tile is not None else inf

    @property
    def taken(self) -> frozenset[str]:
        return self.reserved | self.macros | _SHARED | {"lane"}

    def function(self, name: str, text: str) -> str:
        forms = {}
        if name in self.fused:
            forms[f"{_NEWER} && {_FUSES}"] = _as_written(name, self.fused[name])
        if name in self.newer and not self.is_newer:
            forms[_NEWER] = _as_written(name, self.newer[name])
        return _of_forms(forms, _as_written(name, self.newer.get(name, text)) if self.is_newer else text)

    def array(self, slot: StateSlot) -> str:
        return array_of(slot)

    def own(self, parts: ProgramParts, image: Bound, slot: StateSlot, layer: str) -> str:
        return f"texelFetch({image.name}, ivec3(at, {layer}), 0).r"

    def sampled(
        self, parts: ProgramParts, image: Bound, slot: StateSlot, layer: str, x: str | None, y: str | None
    ) -> str:
        if x is None and y is None:
            return self.own(parts, image, slot, layer)
        if y is None:
            parts.helpers.add("sampled_across")
            return f"sampled_across({image.name}, {layer}, {x}, at.y)"
        if x is None:
            parts.helpers.add("sampled_down")
            return f"sampled_down({image.name}, {layer}, at.x, {y})"
        parts.helpers.add("sampled")
        return f"sampled({image.name}, {layer}, {x}, {y})"

    def remembered(self, parts: ProgramParts, history: Bound, index: str) -> str:
        return self.in_row(parts, history.name, index)

    def picture(self, parts: ProgramParts, picture: Bound, x: str, y: str) -> str:
        parts.helpers.add("picture")
        return f"picture({picture.name}, {x}, {y})"

    def fetched(self, parts: ProgramParts, sound: Bound, number: str) -> str:
        parts.helpers.add("fetched")
        return f"fetched({sound.name}, {number})"

    def external_read(self, parts: ProgramParts, read: Bound, over: frozenset[Rate]) -> str:
        columns = parts.frame.read(LaunchExtent.COLUMNS, LaunchExtent.COLUMNS.value, "int") if len(over) > 1 else ""
        return self.in_row(parts, read.name, _place(over, columns))

    def in_row(self, parts: ProgramParts, row: str, index: str) -> str:
        """A number of a row."""
        return f"texelFetch({row}, {index}).r"

    def program(self, parts: ProgramParts) -> Shader:
        if parts.kernel.sweep == "points":
            return self._points(parts)
        return self.drawn(parts, ["#version 330 core"]) if self.tile is None else self._tiles(parts, self.tile)

    # Pixels.

    def drawn(self, parts: ProgramParts, top: Sequence[str]) -> Shader:
        """A fragment shader with these first lines. The outputs and the new values of slots go to targets."""
        colours = [("pixel", _pixel(parts))] if parts.packed else planes(parts.outputs)
        targets = [f"vec4 {name}" for name, _ in colours]
        written = [f"{name} = {value};" for name, value in colours]
        names = [parts.targets[place.slot][place.plane] for place, _ in parts.stores]
        targets += [f"float {name}" for name in names]
        written += [f"{name} = {value};" for name, (_, value) in zip(names, parts.stores, strict=True)]
        if parts.stops:
            targets.append("float met_limit")
            written.append("met_limit = float(stopped);")
        if len(targets) > self.targets:
            raise UnsuitableError(
                f"it needs {len(targets)} targets, and {self.targets} can be drawn to at once"
                f" ({len(names)} of them are for what it remembers)"
            )
        body = [*self.coordinates(parts, written), *parts.body]
        main = block("void main()", [*body, *map(CodeLine, written)])
        head = [f"layout(location = {at}) out {target};" for at, target in enumerate(targets)]
        return document(self, parts, top, [*self._given(parts), head], main)

    def _tiles(self, parts: ProgramParts, tile: int) -> Shader:
        heads = _written_images(parts)
        if len(heads) + 1 + parts.stops > IMAGES:
            words = f"it writes {len(heads)} long pasts and a picture, and {IMAGES} can be written at once"
            raise UnsuitableError(words)
        flat = "layout(rgba8) uniform writeonly image2D"
        ends = _image_stores(parts)
        if parts.outputs:
            heads.append(f"{flat} pixel;")
            ends.append(f"imageStore(pixel, at, {_pixel(parts)});")
        if parts.stops:
            heads.append(f"{flat} met_limit;")
            ends.append("imageStore(met_limit, at, vec4(float(stopped)));")
        sides = {axis: parts.frame.read(side, side.value, "int") for axis, side in _SIDES.items()}
        is_outside = " || ".join(f"at.{axis} >= {side}" for axis, side in sides.items())
        body, lines = list(parts.body), dict(parts.lines)
        for axis, side in reversed(sides.items()):
            if axis in parts.coords:
                parts.helpers.add("share")
                centre = f"float me_{axis} = share(float(at.{axis}) + 0.5, float({side}));"
                body.insert(0, CodeLine(centre, part=f"me_{axis}"))
                lines[f"me_{axis}"] = LineValue(axis, "float", True, f"me_{axis}")
        before = list[CodeLine]()
        if any(value.shared for value in parts.lines.values()):
            found = split(body, lines, ends)
            values = _SharedValues.of(found.shared, lines)
            heads += [each.declared(tile) for each in values]
            before = _shared_first(values, found.before, tile, sides)
            body = [*(CodeLine(text) for each in values for text in each.read()), *found.pixels]
        place = f"{'' if before else 'ivec2 '}at = ivec2(gl_GlobalInvocationID.xy);"
        start = [place, f"if ({is_outside}) return;"]
        main = block("void main()", [*before, *map(CodeLine, start), *body, *map(CodeLine, ends)])
        top = ["#version 430 core", f"layout(local_size_x = {tile}, local_size_y = {tile}) in;"]
        computed = replace(self, is_newer=True)
        return document(computed, parts, top, [*self._given(parts), heads], main, tile=tile)

    def coordinates(self, parts: ProgramParts, ends: Sequence[str]) -> list[CodeLine]:
        """The coordinates of a pixel that the statements or the `ends` read."""
        lines = []
        texts = (*ends, *(line.text for line in parts.body))
        if any(read in text for text in texts for read in ("(at, ", ", at, ", "at.")):
            lines.append("ivec2 at = ivec2(gl_FragCoord.xy);")
        for name, part, extent in (("x", "x", LaunchExtent.COLUMNS), ("y", "y", LaunchExtent.ROWS)):
            if name in parts.coords:
                size = parts.frame.read(extent, extent.value, "int")
                parts.helpers.add("share")
                lines.append(f"float me_{name} = share(gl_FragCoord.{part}, float({size}));")
        return [*map(CodeLine, lines)]

    # Points.

    def _points(self, parts: ProgramParts) -> Shader:
        count = parts.frame.read(LaunchExtent.POINTS, "points", "int")
        ends = [f"values[{at} * {count} + point] = {value};" for at, value in enumerate(parts.outputs)]
        buffers = ["layout(std430, binding = 0) writeonly buffer Values { float values[]; };"]
        start = ["int point = int(gl_GlobalInvocationID.x);", f"if (point >= {count}) return;"]
        for at, name in enumerate(parts.coords, 1):
            buffers.append(f"layout(std430, binding = {at}) readonly buffer Places{at} {{ float all_{name}[]; }};")
            start.append(f"float me_{name} = all_{name}[point];")
        if parts.stops:
            at = len(parts.coords) + 1
            buffers.append(f"layout(std430, binding = {at}) writeonly buffer Limit {{ uint met_limit; }};")
            ends.append("if (stopped) met_limit = 1u;")
        lines = [*map(CodeLine, start), *parts.body, *map(CodeLine, ends)]
        main = block("void main()", lines)
        top = ["#version 430 core", f"layout(local_size_x = {WORKGROUP}) in;"]
        computed = replace(self, is_newer=True)
        return document(computed, parts, top, [*self._given(parts), buffers], main, workgroup=WORKGROUP)

    def _given(self, parts: ProgramParts) -> list[list[str]]:
        """The declarations of the inputs, in groups."""
        kinds = (
            ("sampler2DArray", parts.images), (self.row_sampler, parts.histories), ("sampler2D", parts.pictures),
            (self.row_sampler, parts.external_reads),
        )  # fmt: skip
        given = {bound.name: (kind, bound.key) for kind, found in kinds for bound in found.values()}
        samplers = [
            f"uniform {kind} {name};" + ("" if key in parts.shared else f"  // {remark(key)}")
            for name, (kind, key) in given.items()
        ] + self.more_samplers(parts)
        if len(samplers) > TEXTURES:
            words = "images that it remembers, pictures and strands of other subgraphs"
            raise UnsuitableError(f"it reads {len(samplers)} {words}, and {TEXTURES} can be read at once")
        frame = structure(self, parts, "layout(std140) uniform Frame", "} frame;")
        return [frame, samplers]

    def more_samplers(self, parts: ProgramParts) -> list[str]:
        """The declarations of further inputs."""
        return []


def _place(over: frozenset[Rate], columns: str) -> str:
    """The place of an element among values that change in these directions."""
    if Rate.ELEMENT in over:
        return "point"
    if len(over) > 1:
        return f"at.y * {columns} + at.x"
    return "at.x" if Rate.COLUMN in over else "at.y" if over else "0"


def _written_images(parts: ProgramParts) -> list[str]:
    """The declarations of the images that stores go to."""
    stored = {place.slot for place, _ in parts.stores}
    names = dict.fromkeys(image_to_write(image.name) for key, image in parts.images.items() if key in stored)
    return [f"layout(r32f) uniform writeonly image2DArray {name};" for name in names]


class _SharedValues(NamedTuple):
    """Values of one type that change along one axis, and that a tile shares, in vectors of four."""

    axis: Axis
    names: Sequence[str]
    scalar: str
    vector: str

    @classmethod
    def of(cls, shared: Mapping[Axis, Sequence[str]], lines: Mapping[str, LineValue]) -> list[_SharedValues]:
        """Those of some variables, by their axes."""
        types = ("float", "float", "vec4"), ("u32", "uint", "uvec4")
        sorted_ = [
            cls(axis, [name for name in names if lines[name].kind == kind], scalar, vector)
            for axis, names in shared.items() for kind, scalar, vector in types
        ]
        return [each for each in sorted_ if each.names]

    @property
    def array(self) -> str:
        """The memory of the workgroup, which has the vectors of each column or row."""
        return f"{_SIDES[self.axis].value}_{self.scalar}s"

    @property
    def vectors(self) -> int:
        return -(-len(self.names) // 4)

    def declared(self, tile: int) -> str:
        return f"shared {self.vector} {self.array}[{self.vectors}][{tile}];"

    def written(self) -> list[str]:
        """The statements of a thread that has computed them."""
        nothing = ["0u" if self.scalar == "uint" else "0.0"] * 3
        fours = ([*self.names[4 * at :], *nothing][:4] for at in range(self.vectors))
        return [f"{self.array}[{at}][lane] = {self.vector}({', '.join(four)});" for at, four in enumerate(fours)]

    def read(self) -> list[str]:
        """The statements of a pixel that needs them."""
        own = ", ".join(f"{self.array}[{at}][gl_LocalInvocationID.{self.axis}]" for at in range(self.vectors))
        parts = (f"own_{self.array}[{at // 4}].{'xyzw'[at % 4]}" for at in range(len(self.names)))
        return [
            f"{self.vector} own_{self.array}[{self.vectors}] = {self.vector}[]({own});",
            *(f"{self.scalar} {name} = {part};" for name, part in zip(self.names, parts, strict=True)),
        ]


def _shared_first(
    values: Sequence[_SharedValues], before: Mapping[Axis, Sequence[CodeLine]], tile: int, sides: Mapping[Axis, str]
) -> list[CodeLine]:
    """The lines that some threads of a tile run for all. They are on its diagonal, so each has a column and a row."""
    lines = []
    for axis, body in before.items():
        written = [CodeLine(text) for each in values if each.axis == axis for text in each.written()]
        if written:
            lane = "gl_LocalInvocationIndex" + (f" - {first}u" if (first := _FIRST_THREADS[axis]) else "")
            lines += [CodeLine(f"lane = {lane};"), CodeLine(f"at = ivec2(gl_WorkGroupID.xy * {tile}u + lane);")]
            # Before the first thread, it is a large number.
            lines += block(f"if (lane < {tile}u && at.{axis} < {sides[axis]})", [*body, *written])
    declared = CodeLine("uint lane;"), CodeLine("ivec2 at;")
    return [*declared, *lines, CodeLine("memoryBarrierShared();"), CodeLine("barrier();")]


def _image_stores(parts: ProgramParts) -> list[str]:
    return [
        f"imageStore({image_to_write(parts.images[place.slot].name)},"
        f" ivec3(at, {layer_to_write(parts, place)}), vec4({value}));"
        for place, value in parts.stores
    ]


def _pixel(parts: ProgramParts) -> str:
    """The pixel of a picture, whose target clamps to 0…1 and rounds to steps of 1/255. The only half that can be hit
    exactly is 127½, which both kinds of rounding round up. NaN is replaced, since cards treat it differently."""
    if not all(parts.sure_outputs):
        parts.helpers.add("number_or")
    channels = zip(parts.outputs, parts.sure_outputs, strict=True)
    return packed_pixel([value if sure else f"number_or({value}, 0.0)" for value, sure in channels], "vec", "1.0")


def planes(outputs: list[str]) -> list[tuple[str, str]]:
    """Targets of four outputs each, unchanged."""
    made = []
    for at in range(0, len(outputs), 4):
        four = (*outputs[at : at + 4], "0.0", "0.0", "0.0")[:4]
        made.append((f"values_{at // 4}" if at else "values", f"vec4({', '.join(four)})"))
    return made


def _as_written(name: str, text: str) -> str:
    """A function for version 4.00, with the values that a compiler may not reorder."""
    return _AS_WRITTEN.sub(r"\1precise \2", text) if name in _ORDERED else text


def _of_forms(forms: Mapping[str, str], usual: str) -> str:
    """A function with lines of its own under each condition, after those that are the same."""
    lines = [text.split("\n") for text in (*forms.values(), usual)]
    same = [len({*each}) == 1 for each in zip(*lines, strict=False)]
    if False not in same:
        return usual
    first, parted = same.index(False), list[str]()
    words = [*(f"{'#elif' if at else '#if'} {condition}" for at, condition in enumerate(forms)), "#else"]
    for word, own in zip(words, lines, strict=True):
        parted += [word, *own[first:-1]]
    return "\n".join([*lines[-1][:first], *parted, "#endif", lines[-1][-1]])


def as_newer(text: bytes) -> bytes:
    """A shader of version 3.30 as one of 4.00; others are unchanged."""
    return _NEWER_VERSION + text.removeprefix(_VERSION) if text.startswith(_VERSION) else text


def fragment(kernel: Kernel, packed: bool = True, macros: frozenset[str] = frozenset()) -> Shader:
    """The fragment shader of a kernel over a picture. Raises UnsuitableError with the reason if it has none."""
    return emit(kernel, Glsl(macros=macros), packed)


def passes(kernel: Kernel, packed: bool, macros: frozenset[str] = frozenset()) -> list[Shader]:
    """The fragment shaders that draw a kernel, one after another; `macros` are those of the text that they are part of.
    Raises UnsuitableError with the reason if it has none."""
    return [*over_picture(kernel, packed, None, Glsl(macros=macros)).shaders]


def over_picture(
    kernel: Kernel, packed: bool, numbered: NumberedKernel | None = None, language: Glsl | None = None
) -> Forms:
    """The shaders that draw a kernel. Raises UnsuitableError with the reason if it has none."""
    language = language or Glsl()
    cut = partial(pieces_of, targets=language.targets)
    return Forms(tuple(drawn() for (drawn,) in emit_pieces(kernel, [language], packed, numbered, cut)))


def drawn_or_tiled(kernel: Kernel, packed: bool, numbered: NumberedKernel) -> Forms:
    """The shaders that draw, and the same as compute shaders that give pixels, if they have that form. Raises
    UnsuitableError with the reason if it cannot be drawn."""
    tiled = [Glsl(tile=TILE)] if packed or kernel.tick == "never" else []
    if is_crowded(kernel, TARGETS):
        drawn = over_picture(kernel, packed, numbered).shaders
        tiles = emit_forms(kernel, tiled, packed, numbered) if tiled else []
    else:
        pieces = emit_pieces(kernel, [Glsl(), *tiled], packed, numbered)
        drawn, tiles = tuple(first() for first, *_ in pieces), [other for _, *others in pieces for other in others]
    with suppress(UnsuitableError):
        return Forms(drawn, tuple(made() for made in tiles))
    return Forms(drawn)


def points(kernel: Kernel, macros: frozenset[str] = frozenset()) -> Shader:
    """The compute shader of a kernel over points; `macros` are those of the text that it is part of. Raises
    UnsuitableError with the reason if it has none."""
    return emit(kernel, Glsl(macros=macros))


def over_points(kernel: Kernel, numbered: NumberedKernel) -> Shader:
    """The compute shader for a kernel whose numbers are known."""
    return emit(kernel, Glsl(), numbered=numbered)


SURVEYED = 64
"""The sides of the picture that `surveying` draws."""


def surveying() -> str:
    """The fragment shader that looks for values that are not finite; see `survey`."""
    return survey(Glsl(), ["#version 330 core"], SURVEYED)


def resampling() -> str:
    """The fragment shader that draws a layer of images in the size of its target: sampled like state, or unchanged if
    the size is the same."""
    functions = "\n\n".join(Glsl().functions(["sampled"]))
    return f"""\
#version 330 core

uniform sampler2DArray images;
uniform int layer;
uniform vec2 size;
layout(location = 0) out float image;

{functions}

void main() {{
    bool same = textureSize(images, 0).xy == ivec2(size);
    float own = texelFetch(images, ivec3(gl_FragCoord.xy, layer), 0).r;
    vec2 middle = gl_FragCoord.xy / size;
    image = same ? own : sampled(images, layer, middle.x, middle.y);
}}
"""
