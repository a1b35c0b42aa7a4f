"""Functions and shaders that read textures, as all dialects of GLSL have them: of desktops, small computers
and browsers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from weft.codegen.clike.language import Language
from weft.codegen.clike.prelude import EXACT, FUSED, PRELUDE, functions_in

# A pixel with weight 0 takes no part: 0 times NaN, or times an infinity, would be NaN.
TEXTURE_FUNCTIONS = """\
// a / b to the last digit, where 1 / b is the sum of two parts.
float exact_ratio_by(float a, float b, float part, float rest) {
    return exact_ratio(a, b);
}

// A layer of images between the four pixels around a place, clamped at the edge.
float sampled(sampler2DArray images, int layer, float x, float y) {
    ivec2 size = textureSize(images, 0).xy;
    vec2 at = vec2(place(x, size.x), place(y, size.y));
    ivec2 low = ivec2(at);
    ivec2 high = min(low + 1, size - 1);
    float upper_left = texelFetch(images, ivec3(low, layer), 0).r;
    float upper_right = texelFetch(images, ivec3(high.x, low.y, layer), 0).r;
    float lower_left = texelFetch(images, ivec3(low.x, high.y, layer), 0).r;
    float lower_right = texelFetch(images, ivec3(high, layer), 0).r;
    vec2 across = at - vec2(low);
    float upper = across.x > 0.0 ? upper_left + (upper_right - upper_left) * across.x : upper_left;
    float lower = across.x > 0.0 ? lower_left + (lower_right - lower_left) * across.x : lower_left;
    return across.y > 0.0 ? upper + (lower - upper) * across.y : upper;
}

// The same in a row of pixels, and in a column.
float sampled_across(sampler2DArray images, int layer, float x, int row) {
    int size = textureSize(images, 0).x;
    float at = place(x, size);
    int low = int(at);
    float left = texelFetch(images, ivec3(low, row, layer), 0).r;
    float right = texelFetch(images, ivec3(min(low + 1, size - 1), row, layer), 0).r;
    float across = at - float(low);
    return across > 0.0 ? left + (right - left) * across : left;
}

float sampled_down(sampler2DArray images, int layer, int column, float y) {
    int size = textureSize(images, 0).y;
    float at = place(y, size);
    int low = int(at);
    float upper = texelFetch(images, ivec3(column, low, layer), 0).r;
    float lower = texelFetch(images, ivec3(column, min(low + 1, size - 1), layer), 0).r;
    float across = at - float(low);
    return across > 0.0 ? upper + (lower - upper) * across : upper;
}

// A picture between the four pixels around a place, clamped at the edge.
vec4 picture(sampler2D image, float x, float y) {
    ivec2 size = textureSize(image, 0);
    vec2 at = vec2(place(x, size.x), place(y, size.y));
    ivec2 low = ivec2(at);
    ivec2 high = min(low + 1, size - 1);
    vec4 upper_left = texelFetch(image, low, 0);
    vec4 upper_right = texelFetch(image, ivec2(high.x, low.y), 0);
    vec4 lower_left = texelFetch(image, ivec2(low.x, high.y), 0);
    vec4 lower_right = texelFetch(image, high, 0);
    vec2 across = at - vec2(low);
    vec4 upper = across.x > 0.0 ? upper_left + (upper_right - upper_left) * across.x : upper_left;
    vec4 lower = across.x > 0.0 ? lower_left + (lower_right - lower_left) * across.x : lower_left;
    return across.y > 0.0 ? upper + (lower - upper) * across.y : upper;
}

// A sample of a sound by its number, left and right; 0 where there is none. The last row is filled up with zeros.
vec2 fetched(sampler2D sound, float number) {
    ivec2 size = textureSize(sound, 0);
    float given = number_or(number, -1.0);
    bool is_there = given >= 0.0 && given < float(size.x * size.y);
    int at = is_there ? int(given) : 0;
    return is_there ? texelFetch(sound, ivec2(at % size.x, at / size.x), 0).rg : vec2(0.0, 0.0);
}"""


CORRECTED = ("share", *EXACT.values())
"""Functions of the prelude that add what a quotient or a root leaves over, which the last digits of a product show."""

NEWER_FUNCTIONS: Mapping[str, str] = MappingProxyType({
    **functions_in("""\
// A layer of images between the four pixels around a place, clamped at the edge.
float sampled(sampler2DArray images, int layer, float x, float y) {
    ivec2 size = textureSize(images, 0).xy;
    vec2 at = vec2(place(x, size.x), place(y, size.y));
    vec2 low = floor(at);
    // All four pixels share a corner. The lower left one comes first, and then the others against the clock.
    vec4 around = textureGather(images, vec3((low + 1.0) / vec2(size), float(layer)));
    vec2 across = at - low;
    vec2 rows = across.x > 0.0 ? around.wx + (around.zy - around.wx) * across.x : around.wx;
    return across.y > 0.0 ? rows.x + (rows.y - rows.x) * across.y : rows.x;
}"""),
    **{name: PRELUDE[name] for name in CORRECTED},
    **{name: FUSED[name] for name in ("modulo_of_few", "near_modulo")},
})
"""Those of these functions, and of the prelude, that differ from version 4.00 on: four pixels are read at once, and
terms are computed as written. By `fma`, a driver may round the product, too, as Mesa does on the processor: where that
counts, it is not called."""

FUSED_FUNCTIONS: Mapping[str, str] = MappingProxyType({
    **{name: FUSED[name] for name in CORRECTED},
    **functions_in("""\
// a / b to the last digit, where 1 / b is the sum of two parts.
float exact_ratio_by(float a, float b, float part, float rest) {
    return fma(a, part, a * rest);
}"""),
})
"""Those for drivers of which it is known that their `fma` rounds once."""


def survey(language: Language, top: Sequence[str], side: int, bounded: bool = False) -> str:
    """The fragment shader that looks for values that are not finite in `count` layers of images, from the layer `first`
    on; with a bound, also for those that are greater than `most`. It draws `side` × `side` pixels, each white if it
    finds something in its share of all values. `top` are its first lines."""
    head = "\n".join(top)
    functions = "\n\n".join(language.functions(["is_finite"]))
    most, beyond = ("uniform float most;\n", " || value > most") if bounded else ("", "")
    return f"""\
{head}

uniform sampler2DArray images;
uniform int first;
uniform int count;
{most}layout(location = 0) out vec4 found;

{functions}

void main() {{
    ivec2 size = textureSize(images, 0).xy;
    bool lost = false;
    for (int layer = first; layer < first + count; layer++)
        for (int y = int(gl_FragCoord.y); y < size.y; y += {side})
            for (int x = int(gl_FragCoord.x); x < size.x; x += {side}) {{
                float value = texelFetch(images, ivec3(x, y, layer), 0).r;
                lost = lost || !is_finite(value){beyond};
            }}
    found = vec4(lost);
}}
"""
