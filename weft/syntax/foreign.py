"""Words of other languages and tools, and what to write instead: for hints."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

# What announces a variable or a function elsewhere.
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
"""What other languages write before a dot, with no meaning here."""

CALLS: Final[Mapping[str, str]] = MappingProxyType({
    "turn": "turned", "zoom": "zoomed", "repeat": "tiled", "scroll": "moved", "modulateRotate": "modulate_rotate",
    "modulateScale": "modulate_scale", "thresh": "threshold", "luma": "luma_key", "hue": "hue_shift",
    "colorama": "hue_shift", "shape": "polygon", "blend": "mix", "layer": "over", "diff": "difference",
    "grayscale": "luminance", "constrain": "clamp", "dist": "distance", "radians": "rad", "degrees": "deg",
    "ln": "log", "rand": "random", "map": "remap", "line": "segment", "rect": "box", "SinOsc": "sine_tone",
    "Saw": "saw_tone", "Pulse": "pulse_tone", "LFTri": "tri_tone", "WhiteNoise": "white_noise",
    "PinkNoise": "pink_noise", "Dust": "dust", "LPF": "lowpass", "HPF": "highpass", "RLPF": "filter",
    "MoogFF": "ladder", "Pan2": "pan", "FreeVerb": "reverb", "CombL": "comb", "EnvGen": "adsr", "LFNoise1": "wander",
    "LFNoise0": "steps", "normalise": "unit", "len": "count",
})  # fmt: skip
"""Calls of other tools, by the name of the builtin, or of the library's spindle, that does the same."""

METHODS: Final[Mapping[str, str]] = MappingProxyType(
    {**CALLS, "rotate": "turned", "scale": "zoomed", "pixelate": "pixelated"}
)
"""The same for what is written after a dot, where it changes a whole picture."""

_BUNDLE = "several strands are a bundle: write <a, b, c>"
_PICTURE = "a picture is used by its name, and prev(name) is its last frame"
_PATTERN = 'write pattern("bd sn")::p<bd, sn>, and play what p@bd and p@sn start'

FORMS: Final[Mapping[str, str]] = MappingProxyType({
    **dict.fromkeys(("vec2", "vec3", "vec4", "float2", "float3", "float4", "color", "colour"), _BUNDLE),
    **dict.fromkeys(("rgb", "rgba"), f"{_BUNDLE}, each 0…1"),
    **dict.fromkeys(("float", "int", "bool"), "all strands are numbers: leave this out"),
    **dict.fromkeys(("src", "o0", "o1", "o2", "o3", "s0"), _PICTURE),
    **dict.fromkeys(("d1", "d2", "d3", "sound", "note"), _PATTERN),
    **dict.fromkeys(("texture", "texture2D", "tex2D"), "a picture is a strand: write img(u, v)"),
    **dict.fromkeys(("out", "show", "background", "gl_FragColor"), "write display(…)"),
    **dict.fromkeys(("print", "println", "console"), "write compute(…); weft eval FILE NAME shows a value"),
    **dict.fromkeys(("setup", "draw", "main", "mainImage"),
                    "a patch has no main function: write its statements one below the other, and display(…)"),
    "mult": "write a * b", "sub": "write a - b", "brightness": "write a + 0.2",
    "scrollX": "write a(me@x ~ me@x + 0.1)", "scrollY": "write a(me@y ~ me@y + 0.1)",
    "osc": 'osc("/fader/1") is the last number that came by OSC; a tone is sine_tone(440), of std.synth',
    "saw": "a tone is saw_tone(110), of std.synth", "sine": "sin(…) is the function of that name",
    "pulse": "a tone is pulse_tone(110), of std.synth", "tri": "a tone is tri_tone(110), of std.synth",
    "return": "a spindle gives what its outputs are assigned: out = …",
    "createCanvas": "write me<width> = 640 and me<height> = 360",
})  # fmt: skip
"""What to write instead of words that have no single counterpart."""


def hint_for(name: str) -> str | None:
    """What to write instead of a word of another tool; None for any other word."""
    if name in STRANDS:
        return f"write {STRANDS[name]}"
    if name in CALLS:
        return f"write {CALLS[name]}(…)"
    return FORMS.get(name)
