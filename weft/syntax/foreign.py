"""Words of other languages and tools, and what to write instead: for hints."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

# The words that announce a variable or a function in other languages.
VARIABLE_WORDS: Final = frozenset(
    ("var", "const", "auto", "val", "float", "int", "double", "bool", "vec2", "vec3", "vec4", "uniform", "varying")
)
FUNCTION_WORDS: Final = frozenset(("def", "function", "fn", "func", "fun", "void"))

STRANDS: Final[Mapping[str, str]] = MappingProxyType({
    **dict.fromkeys(("t", "iTime", "u_time", "uTime", "iGlobalTime", "TIME", "seconds"), "me@time"),
    **dict.fromkeys(("iFrame", "frameCount", "FRAMEINDEX"), "me@frame"),
    **dict.fromkeys(("gl_FragCoord", "fragCoord"), "(me@px, me@py)"),
    **dict.fromkeys(("uv", "st", "vUv", "texCoord", "isf_FragNormCoord"), "(me@x, me@y)"),
    **dict.fromkeys(("iResolution", "u_resolution", "resolution", "RENDERSIZE"), "(me@width, me@height)"),
    **dict.fromkeys(("iMouse", "u_mouse"), "(mouse@x, mouse@y)"),
    **dict.fromkeys(("sampleRate", "SR"), "me@rate"),
    **dict.fromkeys(("iDate", "DATE", "date"), "(me@year, me@month, me@day, me@daytime)"),
    **dict.fromkeys(("PI", "Pi", "M_PI"), "pi"),
    **dict.fromkeys(("TAU", "TWO_PI", "M_2PI"), "tau"),
    "mouseX": "mouse@x", "mouseY": "mouse@y", "mouseIsPressed": "mouse@down",
    "true": "1", "false": "0", "True": "1", "False": "0",
})  # fmt: skip
"""Strands of other tools, as weft writes them."""

NAMESPACES: Final = frozenset({"Math", "math", "np", "numpy", "p5", "window", "THREE", "gl"})
"""Words that other languages write before a dot, and that have no meaning here."""

CALLS: Final[Mapping[str, str]] = MappingProxyType({
    "turn": "turned", "zoom": "zoomed", "repeat": "tiled", "scroll": "moved", "modulateRotate": "modulate_rotate",
    "modulateScale": "modulate_scale", "thresh": "threshold", "luma": "luma_key", "hue": "hue_shift",
    "colorama": "hue_shift", "shape": "polygon", "blend": "mix", "layer": "over", "diff": "difference",
    "grayscale": "luminance", "constrain": "clamp", "dist": "distance", "radians": "rad", "degrees": "deg",
    "ln": "log", "rand": "random", "map": "remap", "line": "segment", "rect": "box", "SinOsc": "sine_tone",
    "Saw": "saw_tone", "Pulse": "pulse_tone", "LFTri": "tri_tone", "WhiteNoise": "white_noise",
    "PinkNoise": "pink_noise", "Dust": "dust", "LPF": "lowpass", "HPF": "highpass", "RLPF": "filter",
    "MoogFF": "ladder", "Pan2": "pan", "FreeVerb": "reverb", "CombL": "comb", "EnvGen": "adsr", "LFNoise1": "wander",
    "LFNoise0": "steps", "normalise": "unit", "len": "count", "norm": "normalize", "mag": "length", "snoise": "simplex",
    "cnoise": "perlin", "roundEven": "round", "fmod": "mod", "square": "box", "any": "max", "all": "min",
})  # fmt: skip
"""Calls of other tools, by the name of the builtin, or of the library's spindle, that does the same."""

METHODS: Final[Mapping[str, str]] = MappingProxyType(
    {**CALLS, "rotate": "turned", "scale": "zoomed", "pixelate": "pixelated", "normalize": "unit"}
)
"""The same for calls after a dot, which change a whole picture or a vector."""

_BUNDLE = "several strands are a bundle: write <a, b, c>"
_PICTURE = "a picture is used by its name, and prev(name) is its last frame"
_PATTERN = 'write pattern("bd sn")::p<bd, sn>, and play what p@bd and p@sn start'

FORMS: Final[Mapping[str, str]] = MappingProxyType({
    **dict.fromkeys(("vec2", "vec3", "vec4", "float2", "float3", "float4", "color", "colour"), _BUNDLE),
    **dict.fromkeys(("rgb", "rgba"), f"{_BUNDLE}, each 0…1"),
    **dict.fromkeys(("float", "int", "bool"), "all strands are numbers: leave this out"),
    **dict.fromkeys(("src", "o0", "o1", "o2", "o3", "s0"), _PICTURE),
    **dict.fromkeys(("d1", "d2", "d3", "sound", "note"), _PATTERN),
    **dict.fromkeys(("texture", "texture2D", "tex2D", "textureLod", "texelFetch", "IMG_NORM_PIXEL", "IMG_PIXEL",
                     "IMG_THIS_PIXEL", "IMG_THIS_NORM_PIXEL"), "a picture is a strand: write img(u, v)"),
    **dict.fromkeys(("iChannel0", "iChannel1", "iChannel2", "iChannel3", "inputImage", "loadImage"),
                    'write load("picture.png")::img<r, g, b> or camera()::img<r, g, b>, and img'),
    **dict.fromkeys(("mat2", "mat3", "mat4"), "write rotate(p, angle), of std.coord; each row is a bundle"),
    **dict.fromkeys(("dFdx", "dFdy", "fwidth"), "write fill(d), of std.sdf, for smooth edges; a difference is "
                    "a - a(me@x ~ me@x - 1 / me@width)"),
    **dict.fromkeys(("lessThan", "greaterThan", "equal"), "comparisons are operators: write a < b"),
    **dict.fromkeys(("out", "show", "background", "gl_FragColor"), "write display(…)"),
    **dict.fromkeys(("print", "println", "console"), "write compute(…); weft eval FILE NAME shows a value"),
    **dict.fromkeys(("setup", "draw", "main", "mainImage"),
                    "a patch has no main function: write its statements one below the other, and display(…)"),
    "inversesqrt": "write 1 / sqrt(a)", "sq": "write a ^ 2",
    "refract": "write unit(v - n * 0.3), which bends v towards -n",
    "faceforward": "write n * -sign(dot(n, v))", "solid": "write <1, 0, 0.5>", "gradient": "write <me@x, me@y, 0.5>",
    "mask": "write a * luminance(b), of std.color", "millis": "write me@time * 1000",
    "mult": "write a * b", "sub": "write a - b", "brightness": "write a + 0.2",
    "scrollX": "write a(me@x ~ me@x + 0.1)", "scrollY": "write a(me@y ~ me@y + 0.1)",
    "osc": "osc(\"/fader/1\") is the last number that came by OSC; a tone is sine_tone(440), of std.synth, "
           "and a picture of bars is bars(20), of std.picture",
    "saw": "a tone is saw_tone(110), of std.synth", "sine": "sin(…) is the function of that name",
    "pulse": "a tone is pulse_tone(110), of std.synth", "tri": "a tone is tri_tone(110), of std.synth",
    "return": "a spindle gives what its outputs are assigned: out = …",
    "createCanvas": "write me<width> = 640 and me<height> = 360",
})  # fmt: skip
"""What to write instead of words that have no single counterpart."""


MORE: Final[Mapping[str, str]] = MappingProxyType({
    "atan": "the angle of a direction is atan2(y, x)",
    "saturate": "write saturation(s, 2), of std.color; saturate(x) keeps x between 0 and 1",
    "add": "write a + b * 0.5",
    "round": "write round(x * 100) / 100",
    "log": "write log(x) / log(base)",
    "pixelate": "write pixelated(s, 64, 36), of std.picture",
    "fill": "a colour is a factor: write fill(circle()) * <1, 0.5, 0>",
    "stroke": "a colour is a factor: write stroke(circle()) * <1, 0.5, 0>",
    "circle": "a place is one bundle: write circle(centre() - <0.1, 0.2>, 0.3)",
    "ellipse": "a place is one bundle: write ellipse(centre() - <0.1, 0.2>, 0.3, 0.2)",
    "box": "a place is one bundle: write box(centre() - <0.1, 0.2>, 0.3, 0.2)",
    "triangle": "places are bundles: write triangle(centre(), <-0.3, 0.2>, <0.3, 0.2>, <0, -0.3>)",
    "arc": "a place is one bundle: write arc(centre() - <0.1, 0.2>, 0.3, pi)",
})  # fmt: skip
"""What is meant if a name of another tool has more arguments than it takes here."""

PICTURE_WORDS: Final[Mapping[str, str]] = MappingProxyType({
    "rotate": "turned(s, 0.3), of std.picture", "scale": "zoomed(s, 2), of std.picture",
    "translate": "moved(s, 0.1), of std.picture", "pixelate": "pixelated(s, 40), of std.picture",
    "tile": "tiled(s, 3), of std.picture", "mirror_tile": "mirrored(s), of std.picture",
    "kaleidoscope": "kaleid(s, 6), of std.picture", "invert": "1 - s",
})  # fmt: skip
"""Words that change a whole picture elsewhere, and a place here."""

Given = Literal["alone", "numbers", "place", "directions", "picture"]


class FalseFriend(NamedTuple):
    """A name that another tool has for something else. It is meant so if its arguments are as `given`: one alone, only
    numbers written there, one place, a direction among them, or a picture first. `here` says what the name does in
    weft, and `library` is the library that has it, None for a builtin."""

    given: Given
    here: str
    hint: str
    library: str | None = None


def _of_places(name: str) -> tuple[FalseFriend, ...]:
    """For functions of a place, which take its coordinates one by one."""
    return (
        FalseFriend("place", f"{name} takes x and y one by one: a bundle gives {name}(x) and {name}(y)",
                    f"write {name}(p@x, p@y)"),
        FalseFriend("numbers", f"{name} of these numbers is the same everywhere, so it shows nothing",
                    f"write {name}(me@x * 3, me@y * 3, me@time * 0.1)"),
    )  # fmt: skip


FALSE_FRIENDS: Final[Mapping[str, tuple[FalseFriend, ...]]] = MappingProxyType({
    **{name: _of_places(name) for name in ("noise", "simplex", "fbm", "voronoi")},
    "hash": _of_places("hash")[:1],
    "normalize": (FalseFriend("alone", "normalize(x, lo, hi) maps a range to 0…1, and without one changes nothing",
                              "a vector of length 1 is unit(v)"),),
    "reflect": (FalseFriend("directions", "reflect blends two pictures", "write v - 2 * dot(n, v) * n", "blend"),),
    "add": (FalseFriend("directions", "add blends two pictures, and gives at most 1", "write a + b", "blend"),),
    "subtract": (FalseFriend("directions", "subtract cuts one shape out of another", "write a - b", "sdf"),),
    "random": (FalseFriend("numbers", "random draws whenever its trigger rises, and a number never does",
                           "write random(me@beatphase < 0.5) * 10, or hash(1) for a number that stays", "control"),),
    "fill": (FalseFriend("numbers", "fill draws the inside of a shape, and a number is none",
                         "a colour is a factor: write fill(circle()) * <1, 0.5, 0>", "sdf"),),
    "stroke": (FalseFriend("numbers", "stroke draws the outline of a shape, and a number is none",
                           "a colour is a factor: write stroke(circle()) * <1, 0.5, 0>", "sdf"),),
    "mirror": (FalseFriend("picture", "mirror keeps a number between two others, and changes no picture",
                           "write mirrored(s), of std.picture", "map"),),
})  # fmt: skip
"""By their names: those of GLSL, Shadertoy, Hydra, Processing and p5 that mean something else here."""


def hint_for(name: str) -> str | None:
    """What to write instead of a word of another tool; None for any other word."""
    if name in STRANDS:
        return f"write {STRANDS[name]}"
    if name in CALLS:
        return f"write {CALLS[name]}(…)"
    return FORMS.get(name)
