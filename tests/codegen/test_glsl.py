"""The text of shaders: as a person who knows the patch would write them."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from weft.codegen import glsl
from weft.codegen.clike.expressions import ExpressionText, applied, assignment, choice, literal
from weft.codegen.clike.fields import NumberedKernel
from weft.codegen.clike.language import Identifiers, identifier, remark
from weft.codegen.clike.prelude import PRELUDE, called_in, real_text
from weft.codegen.clike.shader import FirstLayer, LaunchExtent, Shader, UnsuitableError, plain
from weft.codegen.native.target import single
from weft.contexts import ContextTable
from weft.errors import Source
from weft.runtime.compiling.stages import Request, build


def shader_of(text: str, packed: bool = True, optimise: bool = True) -> Shader:
    made = build(Request(Source("p.weft", text), ContextTable()), optimise=optimise)
    (unit,) = (unit for unit in made.units if unit.subgraph.context == "visual")
    return glsl.fragment(unit.kernel, packed)


def main_of(shader: Shader) -> str:
    return shader.text[shader.text.index("void main()") :]


def test_a_shader_from_end_to_end() -> None:
    assert shader_of("// A ramp.\nramp<v> = me@x * mouse@wheel\ndisplay(ramp@v)\n").text == """\
#version 330 core
// visual/display → display.gray

layout(std140) uniform Frame {
    float mouse_wheel;  // mouse@wheel
    int columns;
} frame;

layout(location = 0) out vec4 pixel;

// Whether x is no NaN. On the bits: a compiler may think that there are none.
bool is_number(float x) {
    return (floatBitsToUint(x) & 0x7fffffffu) <= 0x7f800000u;
}

// x, or something else where it is NaN.
float number_or(float x, float other) {
    return is_number(x) ? x : other;
}

// a / b to the last digit, for sides of pictures: what a quotient of some drivers leaves over is divided once more.
float share(float a, float b) {
    float ratio = a / b;
#if __VERSION__ >= 400 && defined(GL_NV_gpu_shader5)
    precise float left = fma(-ratio, b, a);
    return ratio + left / b;
#elif __VERSION__ >= 400
    float high = uintBitsToFloat(floatBitsToUint(ratio) & 0xffffc000u);
    precise float left = (a - high * b) - (ratio - high) * b;
    return ratio + left / b;
#else
    float high = uintBitsToFloat(floatBitsToUint(ratio) & 0xffffc000u);
    float left = (a - high * b) - (ratio - high) * b;
    return ratio + left / b;
#endif
}

void main() {
    float me_x = share(gl_FragCoord.x, float(frame.columns));
    pixel = vec4(vec3(number_or(frame.mouse_wheel * me_x, 0.0)), 1.0);
}
"""


MAINS = {
    "strands": (
        "wave<v> = sin(me@x * 10 + me@time)\nboth = (wave@v + me@y) / 4 + 0.5\ndisplay(both, both ^ 2, wave@v)\n",
        """\
void main() {
    float me_x = share(gl_FragCoord.x, float(frame.columns));
    float me_y = share(gl_FragCoord.y, float(frame.rows));
    // 1: wave<v> = sin(me@x * 10 + me@time)
    float wave = sin(3.1415927 * (frame.sin_me_x_10_me_time + me_x * frame.wave_number));
    // 2: both = (wave@v + me@y) / 4 + 0.5
    float both = (me_y + wave) * frame.both_share + frame.both_number;
    pixel = vec4(both, both * both, wave, 1.0);
}
""",
    ),
    "feedback": (
        "trail<v> = max(me@x > fract(me@time), prev(trail@v)(me@x ~ me@x * 0.99) * 0.95)\ndisplay(trail@v)\n",
        """\
void main() {
    ivec2 at = ivec2(gl_FragCoord.xy);
    float me_x = share(gl_FragCoord.x, float(frame.columns));
    // 1: trail<v> = max(me@x > fract(me@time), prev(trail@v)(me@x ~ me@x * 0.99) * 0.95)
    float trail = maximum(float(frame.fract_me_time < me_x), sampled_across(past, frame.trail_first + frame.trail_past_cell, me_x * frame.trail_number, at.y) * frame.trail_number_2);
    pixel = vec4(vec3(trail), 1.0);
    trail_next = trail;
}
""",  # noqa: E501
    ),
    "a loop": (
        "spindle f(x) :: v {\n  v = 0\n  for i in (1 to 20) {\n    v += sin(x * i) / i\n  }\n}\ndisplay(f(me@x))\n",
        """\
void main() {
    float me_x = share(gl_FragCoord.x, float(frame.columns));
    // 3: for i in (1 to 20) {
    float v = 0.0;
    for (float i = 1.0; i <= 20.0; i += 1.0) {
        // 4: v += sin(x * i) / i
        v += sinpi(me_x * i * 0.31830987) / i;
    }
    pixel = vec4(vec3(number_or(v, 0.0)), 1.0);
}
""",
    ),
    "a loop that may be stopped": (
        "spindle f(x) :: v {\n  v = x\n  for i in (0 to x * 9) {\n    v = v * 0.5 + i\n  }\n}\ndisplay(f(me@x))\n",
        """\
void main() {
    float me_x = share(gl_FragCoord.x, float(frame.columns));
    bool stopped = false;  // a loop met its limit
    // 3: for i in (0 to x * 9) {
    float v = me_x;
    float last = number_or(me_x * 9.0, -uintBitsToFloat(0x7f800000u));
    for (int n = 0; float(n) <= last; n++) {
        if (n == 4096) {
            stopped = true;
            break;
        }
        float i = float(n);
        // 4: v = v * 0.5 + i
        v = v * frame.v_number + i;
    }
    pixel = vec4(vec3(number_or(v, 0.0)), 1.0);
    met_limit = float(stopped);
}
""",
    ),
    "a picture": (
        'load("grain.png")::img<r, g, b, a>\ndisplay(img@r, img@g, 0.5)\n',
        """\
void main() {
    float me_x = share(gl_FragCoord.x, float(frame.columns));
    float me_y = share(gl_FragCoord.y, float(frame.rows));
    vec4 grain_colour = picture(grain, me_x, me_y);
    pixel = vec4(number_or(grain_colour.r, 0.0), number_or(grain_colour.g, 0.0), 0.5, 1.0);
}
""",
    ),
}


@pytest.mark.parametrize(("text", "expected"), MAINS.values(), ids=MAINS.keys())
def test_statements(text: str, expected: str) -> None:
    assert main_of(shader_of(text)) == expected


def test_without_optimising_the_time_is_an_operand_like_any_other() -> None:
    text = "display(sin(me@x * 10 + me@time))\n"
    assert "sine(me_x * frame.number + frame.abstime)" in main_of(shader_of(text, optimise=False))


def test_each_line_tells_where_it_comes_from() -> None:
    shader = shader_of("a = me@x * 3 + me@y\nb = a * a\ndisplay(b + a)\n")
    lines = shader.text.splitlines()
    assert len(shader.places) == len(lines)
    found = {line.strip().partition(" =")[0]: place for line, place in zip(lines, shader.places, strict=True) if place}
    assert found["float a"] == "p.weft:1"


def test_the_block_holds_what_a_launch_is_given() -> None:
    shader = shader_of("#slider knob<v> = 0, 1, 0.5\ndisplay(me@x * knob@v + sin(me@time))\n")
    sources = [uniform.source for uniform in shader.uniforms]
    assert LaunchExtent.COLUMNS in sources
    declared = shader.text[shader.text.index("uniform Frame") : shader.text.index("} frame;")].splitlines()[1:]
    assert [line.split()[1].rstrip(";") for line in declared] == [uniform.name for uniform in shader.uniforms]
    assert "knob_v" in [uniform.name for uniform in shader.uniforms]


def test_planes_come_four_to_a_target() -> None:
    text = "display(me@x, me@y, 0.5, 0.25)\n"
    assert "values = vec4(me_x, me_y, 0.5, 0.25);" in shader_of(text, packed=False).text
    assert shader_of(text).colour_targets == shader_of(text, packed=False).colour_targets == 1


def test_what_no_shader_can_do_is_told() -> None:
    made = build(Request(Source("p.weft", "play(prev(me@time))\n"), ContextTable()))
    with pytest.raises(UnsuitableError, match="each of its values needs the one before"):
        glsl.fragment(made.units[0].kernel, packed=False)
    with pytest.raises(ValueError, match="a picture has 1, 3 or 4 outputs, not 2"):
        glsl.fragment(build(Request(Source("p.weft", "compute(1, 2)\n"), ContextTable())).units[0].kernel)


def test_names_of_the_language_are_left_alone() -> None:
    taken = ("half", "mix", "cell", "pixel")
    lines = "\n".join(f"{name} = sin(me@x * {n}) + sin(me@y)" for n, name in enumerate(taken, 2))
    main = main_of(shader_of(f"{lines}\ndisplay(half * half + mix * mix, cell * cell, pixel * pixel)\n"))
    for name in taken:
        assert f"float {name}_2 = " in main


@pytest.mark.parametrize(
    ("value", "is_sure"),
    [
        ("a", False), ("0.3", True), ("clamp(a, 0, 1)", True), ("-abs(clamp(a, 0, 1))", True),
        ("max(a, 0) * 2", False), ("max(a, 0) + 2", True), ("max(a, 0) - max(b, 0)", False),
        ("clamp(a, -1, 2) * clamp(b, 0, 1)", True), ("if a > 0 then 0.2 else clamp(b, 0, 1)", True),
        ("if a > 0 then a else 1", False), ("fract(a)", False), ("1 / clamp(a, 0, 1)", False),
        ("key@a", True), ("me@time * 2", True), ("s / 4", True), ("1 / s", False), ("sin(s) + sqrt(me@x * me@y)", True),
        ("sqrt(s)", False), ("atan2(s, me@x)", True), ("far * far * far", False), ("prev(s)", False),
    ],
)  # fmt: skip
def test_what_is_never_nan_is_not_guarded(value: str, is_sure: bool) -> None:
    given = '#slider s<v> = -1, 3, 0 "s"\n#slider far<v> = 0, 1e30, 0 "far"\na = osc("/a")\nb = osc("/b")\n'
    text = shader_of(f"{given}display({value}, 1, 1)\n", optimise=False).text
    assert ("number_or(" in text) is not is_sure


def test_a_comment_stays_a_comment() -> None:
    shader = shader_of("a = sin(me@x) + sin(me@y) // ½ \\\ndisplay(a * a)\n")
    assert "// 1: a = sin(me@x) + sin(me@y) // ½ /" in shader.text
    assert "½" not in plain(shader.text)
    assert plain("2³² · 2⁻¹³ − xⁿ") == "2^32 * 2^-13 - x^n"
    assert b"//" not in shader.code
    assert shader.code.count(b"\n") == shader.text.count("\n"), "a driver's line is that of the listing"
    assert remark("a\nb\\") == "a b/"
    assert len(remark("x" * 300)) == 100


# --- pieces -------------------------------------------------------------------------------------------------------


def test_numbers_read_back_as_they_are() -> None:
    words = np.random.default_rng(1).integers(0, 2**32, 2000, dtype=np.uint32)
    values = words.view(np.float32)[np.isfinite(words.view(np.float32))]
    for value in (*values.tolist(), 0.1, 1e6, 123456789.0, 1e-7, 2.0**-149, 0.0, 3.0, 16777216.0):
        text = real_text(value)
        assert np.float32(text) == np.float32(value)
        assert {".", "e"} & set(text)
    assert [real_text(x) for x in (1, 0.1, 1e6, -2.5, 6.02e23)] == ["1.0", "0.1", "1000000.0", "-2.5", "6.02e+23"]
    assert math.copysign(1, float(real_text(-0.0))) == -1
    assert single(1e39) == math.inf


A, B, C = map(ExpressionText, "abc")


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (applied("-", [A, applied("-", [B, C])]), "a - (b - c)"),
        (applied("-", [applied("-", [A, B]), C]), "a - b - c"),
        (applied("*", [applied("+", [A, B]), C]), "(a + b) * c"),
        (applied("+", [A, applied("*", [B, C])]), "a + b * c"),
        (applied("+", [A, applied("+", [B, C])]), "a + (b + c)"),
        (applied("-", [applied("-", [A])]), "-(-a)"),
        (applied("-", [A, literal("-0.5")]), "a + 0.5"),
        (applied("+", [A, applied("*", [literal("-0.5"), B])]), "a - 0.5 * b"),
        (applied("+", [A, applied("-", [B])]), "a - b"),
        (applied("!", [applied("<", [A, B])]), "!(a < b)"),
        (applied("<", [literal("0.5"), A]), "a > 0.5"),
        (applied("<", [literal("0.5"), literal("0.75")]), "0.5 < 0.75"),
        (choice(applied("<", [A, B]), A, choice(C, A, B)), "a < b ? a : c ? a : b"),
        (applied("+", [A, choice(A, B, C)]), "a + (a ? b : c)"),
        (applied("^", [applied("^", [A, B]), applied("^", [B, C])]), "a ^ b ^ b ^ c"),
        (applied("^", [A, applied(">>", [A, literal("16u")])]), "a ^ (a >> 16u)"),
        (applied("max", [applied("+", [A, B]), C]), "max(a + b, c)"),
    ],
)  # fmt: skip
def test_parentheses_stand_where_they_are_needed(made: ExpressionText, text: str) -> None:
    assert made.text == text


def test_assignments() -> None:
    assert assignment("a", applied("+", [A, applied("*", [B, C])])) == "a += b * c"
    assert assignment("a", applied("+", [applied("*", [B, C]), A])) == "a += b * c"
    assert assignment("a", applied("-", [B, A])) == "a = b - a"
    assert assignment("a", applied("+", [applied("+", [A, B]), C])) == "a = a + b + c"
    assert assignment("a", applied("*", [A, applied("+", [B, C])])) == "a *= b + c"


def test_identifiers() -> None:
    assert [identifier(name) for name in ("flow@x", "mouse@down * 1.5", "0.5", "…", "gl_x__y")] == [
        "flow_x", "mouse_down_1_5", "v0_5", "v", "vgl_x_y"
    ]  # fmt: skip
    names = Identifiers({"a"})
    names.take("b")
    assert [names.new(name) for name in ("a", "a", "b", "c", "c")] == ["a_2", "a_3", "b_2", "c", "c_2"]


def test_functions_stand_behind_those_that_they_call() -> None:
    known: set[str] = set()
    for name, text in PRELUDE.items():
        assert called_in(text) & PRELUDE.keys() - {name} <= known, name
        known.add(name)


@pytest.mark.parametrize(
    ("angle", "is_small"),
    [
        ("me@x * 10 + me@time", True),
        ("hypot(me@x - 0.5, me@y) * 20 - 2 * me@time", True),
        ("7 * sin(me@x * 9 + me@y)", True),
        ("me@x * 1000 + me@time", False),
        ("prev(me@x * me@y) * 10", False),
        ("me@x * mouse@x", False),
    ],
)
def test_turns_are_only_taken_out_of_what_may_be_large(angle: str, is_small: bool) -> None:
    outermost = main_of(shader_of(f"display(sin({angle}) * me@y)\n")).splitlines()[-2]
    assert ("sinpi(" not in outermost and "sin(3.1415927 * " in outermost) == is_small


def test_shaders_say_what_must_not_be_reordered() -> None:
    """Version 3.30 has no word for that."""
    (unit,) = build(Request(Source("p.weft", "display(me@x / me@y >= 1, me@x % me@y, 0)\n"), ContextTable())).units
    forms = glsl.drawn_or_tiled(unit.kernel, True, NumberedKernel.of(unit.kernel))
    drawn, tiles = forms.drawn.text, forms.tiles[-1].text
    newer = re.compile(r"#if __VERSION__ >= 400(.*?)#else\n", re.DOTALL)
    of_all = (newer.sub("", drawn), "", 5), ("".join(newer.findall(drawn)), "precise", 6)  # with fused products and not
    for text, word, count in (*of_all, (tiles, "precise", 8)):
        assert re.findall(r"(\w*) float (?:rest|left|nearer) = (?!rest_of)", text) == [word] * count


def test_what_reads_more_than_every_driver_lets_it_is_refused() -> None:
    reads = "".join(f'load("{at}.png")::p{at}<r>\n' for at in range(17))
    with pytest.raises(UnsuitableError, match=r"it reads 17 .* and 16 can be read at once"):
        shader_of(f"{reads}display({' + '.join(f'p{at}' for at in range(17))})\n")


@pytest.mark.parametrize("name", ["trail_next", "trail_past", "trail_past_next"])
def test_a_strand_called_as_what_is_written_is_another_variable(name: str) -> None:
    text = f"{name}<v> = sin(me@x * 40 + me@time)\ntrail<v> = prev(trail@v) + {name}@v * {name}@v\n"
    shader = shader_of(f"{text}display(trail@v)\n")
    assert f"float {name}_2 = " in shader.text
    assert "    trail_next = trail;\n" in shader.text


def test_the_target_of_a_long_name_is_not_what_it_reads() -> None:
    name = "a_strand_whose_name_is_long_enough_to_be_cut"
    shader = shader_of(f"{name}<v> = prev({name}@v) + me@x\ndisplay({name}@v)\n")
    (target,) = re.findall(r"out float (\w+);", shader.text)
    assert target.endswith("_next")
    (written,) = re.findall(rf"^    {target} = (\w+);", shader.text, re.MULTILINE)
    assert target not in (written, *(image.name for image in shader.images))


def test_slots_share_a_texture_but_for_long_pasts() -> None:
    shader = shader_of("a = prev(a) + me@x\nb = delay(me@y, 9, 9)\nc = delay(me@x, 3, 3)\ndisplay(a, b, c)\n")
    assert [image.name for image in shader.images] == ["past", "b_past", "past"]
    firsts = {uniform.name for uniform in shader.uniforms if isinstance(uniform.source, FirstLayer)}
    assert firsts == {"a_first", "c_first"}
    assert re.findall(r"sampler2DArray (\w+);", shader.text) == ["past", "b_past"]


@pytest.mark.parametrize(
    ("value", "is_exact"),
    [
        ("me@time % sin(me@x)", True), ("me@y / cos(me@x * 4)", True), ("sin(me@x) * 0.5", False),
        ("sin(me@x) % 0.3", False),
    ],
)  # fmt: skip
def test_a_wave_that_divides_is_right_to_its_last_digits(value: str, is_exact: bool) -> None:
    """A card's own sine may be off by much of a small one."""
    text = shader_of(f"display({value})\n").text
    assert ("exact_sine(" in text or "exact_cosine(" in text) == is_exact


@pytest.mark.parametrize(
    ("value", "is_guarded"),
    [
        ("not (a <= me@x)", True), ("not (me@x > a)", True), ("not (me@x < 0.3)", False), ("not (a == me@x)", False),
        ("a <= me@x", False),
    ],
)  # fmt: skip
def test_an_order_that_does_not_hold_for_nan_is_not_turned_round(value: str, is_guarded: bool) -> None:
    """NVIDIA's compiler takes `!(a <= b)` for `a > b`."""
    text = shader_of(f'a = osc("/a")\ndisplay({value})\n').text
    assert ("are_numbers(" in text) is is_guarded


@pytest.mark.parametrize("value", [
    "(me@x * 9e6) % k", "(me@x * 9) % k", "me@x / k", "me@x / (k * 3)", "me@x / 0.7", "floor(me@x / k)",
    "(me@x * 9e6) % 0.7",
])  # fmt: skip
def test_no_number_is_given_in_vain(value: str) -> None:
    """Neither a reciprocal of what is divided by, nor a divisor of which nothing but its reciprocal is read."""
    text = shader_of(f'#slider k<v> = 0.1, 9, 2 "k"\ndisplay({value})\n').text
    given = re.findall(r"^    float (\w+);", text, re.MULTILINE)
    assert [name for name in given if not re.search(rf"\bframe\.{name}\b", text)] == []
    assert ("/" in value) == any("share" in name for name in given)
