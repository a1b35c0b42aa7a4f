"""The text of kernels in Metal: as a person who knows the patch would write them."""

from __future__ import annotations

import re

import pytest

from weft.codegen import glsl
from weft.codegen.clike.shader import BufferSpec, BufferUse, Shader, UnsuitableError
from weft.codegen.kernel import Unit
from weft.codegen.msl import Msl
from weft.contexts import ContextTable
from weft.errors import Source
from weft.runtime.compiling.stages import Request, build


def units_of(text: str, optimise: bool = True) -> list[Unit]:
    return list(build(Request(Source("p.weft", text), ContextTable()), optimise=optimise).units)


def shader_of(text: str, packed: bool = True, optimise: bool = True) -> Shader:
    (unit,) = (unit for unit in units_of(text, optimise) if unit.subgraph.context == "visual")
    return Msl.pixels(unit.kernel, packed)


def main_of(shader: Shader) -> str:
    return shader.text[shader.text.index("kernel void") :]


def test_a_kernel_from_end_to_end() -> None:
    assert shader_of("// A ramp.\nramp<v> = me@x * mouse@x\ndisplay(ramp@v)\n").text == """\
// visual/display → display.gray
#include <metal_stdlib>
using namespace metal;

struct Frame {
    float mouse_x;  // mouse@x
    uint columns;
    uint rows;
};

// Whether x is no NaN. On the bits: a compiler may think that there are none.
bool is_number(float x) {
    return (as_type<uint>(x) & 0x7fffffffu) <= 0x7f800000u;
}

// x, or something else where it is NaN.
float number_or(float x, float other) {
    return is_number(x) ? x : other;
}

// a / b to the last digit, for sides of pictures: what a quotient of some drivers leaves over is divided once more.
float share(float a, float b) {
    float ratio = a / b;
    float left = fma(-ratio, b, a);
    return ratio + left / b;
}

// A channel as a byte: clamped to 0…1, a half rounded up; NaN is 0.
uchar to_byte(float x) {
    return uchar(precise::clamp(number_or(x, 0.0), 0.0, 1.0) * 255.0 + 0.5);
}

kernel void visual_display(
    constant Frame &frame [[buffer(0)]],
    device uchar4 *pixels [[buffer(1)]],
    uint id [[thread_position_in_grid]]
) {
    uint count = frame.columns * frame.rows;
    if (id >= count) return;
    float me_x = share(float(id % frame.columns) + 0.5, float(frame.columns));
    pixels[id] = uchar4(uchar3(to_byte(me_x * frame.mouse_x)), 255);
}
"""


MAINS = {
    "feedback": (
        "trail<v> = max(me@x > fract(me@time), prev(trail@v)(me@x ~ me@x * 0.99) * 0.95)\ndisplay(trail@v)\n",
        """\
kernel void visual_display(
    constant Frame &frame [[buffer(0)]],
    device uchar4 *pixels [[buffer(1)]],
    device float *trail_ring [[buffer(2)]],  // visual/trail@v/prev/0
    uint id [[thread_position_in_grid]]
) {
    uint count = frame.columns * frame.rows;
    if (id >= count) return;
    float me_x = share(float(id % frame.columns) + 0.5, float(frame.columns));
    // 1: trail<v> = max(me@x > fract(me@time), prev(trail@v)(me@x ~ me@x * 0.99) * 0.95)
    float trail = precise::max(float(frame.fract_me_time < me_x), between_columns(trail_ring + frame.trail_past_cell * count + id / frame.columns * frame.columns, frame.columns, me_x * frame.trail_number) * frame.trail_number_2);
    pixels[id] = uchar4(uchar3(to_byte(trail)), 255);
    trail_ring[frame.trail_head * count + id] = trail;
}
""",  # noqa: E501
    ),
    "a loop that may be stopped": (
        "spindle f(x) :: v {\n  v = x\n  for i in (0 to x * 9) {\n    v = v * 0.5 + i\n  }\n}\ndisplay(f(me@x))\n",
        """\
kernel void visual_display(
    constant Frame &frame [[buffer(0)]],
    device uchar4 *pixels [[buffer(1)]],
    device atomic_uint *met_limit [[buffer(2)]],
    uint id [[thread_position_in_grid]]
) {
    uint count = frame.columns * frame.rows;
    if (id >= count) return;
    float me_x = share(float(id % frame.columns) + 0.5, float(frame.columns));
    bool stopped = false;  // a loop met its limit
    // 3: for i in (0 to x * 9) {
    float v = me_x;
    float last = number_or(me_x * 9.0, -as_type<float>(0x7f800000u));
    for (int n = 0; float(n) <= last; n++) {
        if (n == 4096) {
            stopped = true;
            break;
        }
        float i = float(n);
        // 4: v = v * 0.5 + i
        v = v * frame.v_number + i;
    }
    pixels[id] = uchar4(uchar3(to_byte(v)), 255);
    if (stopped) atomic_store_explicit(met_limit, 1u, memory_order_relaxed);
}
""",
    ),
    "a picture": (
        'load("grain.png")::img<r, g, b, a>\ndisplay(img@r, img@g, 0.5)\n',
        """\
kernel void visual_display(
    constant Frame &frame [[buffer(0)]],
    device uchar4 *pixels [[buffer(1)]],
    const device float4 *grain [[buffer(2)]],  // grain.png
    uint id [[thread_position_in_grid]]
) {
    uint count = frame.columns * frame.rows;
    if (id >= count) return;
    float me_x = share(float(id % frame.columns) + 0.5, float(frame.columns));
    float me_y = share(float(id / frame.columns) + 0.5, float(frame.rows));
    float4 grain_colour = between_pixels(grain, frame.grain_width, frame.grain_height, me_x, me_y);
    pixels[id] = uchar4(to_byte(grain_colour.r), to_byte(grain_colour.g), to_byte(0.5), 255);
}
""",
    ),
}


@pytest.mark.parametrize(("text", "expected"), MAINS.values(), ids=MAINS.keys())
def test_statements(text: str, expected: str) -> None:
    assert main_of(shader_of(text)) == expected


def test_points() -> None:
    text = "a<v> = prev(a@v) * 0.5 + me@x\ndisplay(a@v)\ncompute(a@v(me@x ~ 0.25))\n"
    (kernel,) = (k for unit in units_of(text) for k in unit.points.values())
    shader = Msl.points(kernel)
    uses = [BufferUse.FRAME, BufferUse.OUT, BufferUse.COORDINATE, BufferUse.COORDINATE, BufferUse.RING]
    assert [buffer.use for buffer in shader.buffers] == uses
    assert [buffer.key for buffer in shader.buffers[2:4]] == list(shader.coords)
    assert "const device float *a_ring" in shader.text
    assert "uint count = frame.points;" in shader.text
    assert "* frame.columns * frame.rows, frame.columns, frame.rows, " in shader.text


def test_planes_lie_one_behind_the_other() -> None:
    ends = main_of(shader_of("display(me@x, me@y, 0.5)\n", packed=False)).splitlines()[-4:-1]
    assert ends == ["    values[id] = me_x;", "    values[count + id] = me_y;", "    values[2 * count + id] = 0.5;"]


def test_buffers_have_the_numbers_that_the_kernel_gives_them() -> None:
    text = (
        'load("a.png")::a<r, g, b, o>\nw<v> = hash(me@absframe)\ncache(w, 4)::past<v>\n'
        "display(prev(a@r) + past@v(past@k ~ me@x * 3) + a@g)\n"
    )
    shader = shader_of(text)
    declared = re.findall(r"(\w+) \[\[buffer\((\d+)\)\]\]", shader.text)
    assert [int(number) for _, number in declared] == list(range(len(shader.buffers)))
    names = {
        BufferSpec(BufferUse.FRAME): "frame", BufferSpec(BufferUse.OUT): "pixels",
        **{BufferSpec(BufferUse.RING, bound.key): bound.name for bound in shader.images},
        **{BufferSpec(BufferUse.HISTORY, bound.key): bound.name for bound in shader.histories},
        **{BufferSpec(BufferUse.PICTURE, bound.key): bound.name for bound in shader.pictures},
        **{BufferSpec(BufferUse.EXTERNAL_READ, bound.key): bound.name for bound in shader.external_reads},
    }  # fmt: skip
    assert [name for name, _ in declared] == [names[buffer] for buffer in shader.buffers]
    assert {buffer.use for buffer in shader.buffers} >= {BufferUse.HISTORY, BufferUse.PICTURE, BufferUse.RING}


def test_the_struct_is_as_long_as_what_a_launch_is_given() -> None:
    shader = shader_of("#slider knob<v> = 0, 1, 0.5\ndisplay(me@x * knob@v + sin(me@time))\n")
    declared = re.search(r"struct Frame \{\n(.*?)\};", shader.text, re.DOTALL)
    assert declared is not None
    fields = [re.findall(r"\w+", line)[:2] for line in declared[1].splitlines()]
    kinds = {"float": "float", "bool": "uint", "u32": "uint", "int": "int"}
    assert fields == [[kinds[uniform.kind], uniform.name] for uniform in shader.uniforms]


def test_what_no_kernel_can_do_is_told() -> None:
    (unit,) = units_of("play(prev(me@time))\n")
    with pytest.raises(UnsuitableError, match="each of its values needs the one before"):
        Msl.pixels(unit.kernel, packed=False)
    with pytest.raises(ValueError, match="a picture has 1, 3 or 4 outputs, not 2"):
        Msl.pixels(units_of("compute(1, 2)\n")[0].kernel)


@pytest.mark.parametrize("make", [Msl.pixels, glsl.fragment], ids=["msl", "glsl"])
def test_what_is_given_keeps_its_name(make: object) -> None:
    taken = ("me_x", "all_x", "met_limit", "stopped", "frame")
    lines = "\n".join(f"{name}<v> = sin(me@x * {n}) + sin(me@y)" for n, name in enumerate(taken, 2))
    text = f"{lines}\ndisplay({' + '.join(f'{name}@v * {name}@v' for name in taken)})\n"
    assert callable(make)
    shader = make(units_of(text)[0].kernel)
    for name in taken:
        assert f"float {name}_2 = " in shader.text


def test_names_of_the_language_are_left_alone() -> None:
    taken = ("half", "kernel", "device", "constant", "id", "count", "pixels", "sine", "between")
    lines = "\n".join(f"{name}<v> = sin(me@x * {n}) + sin(me@y)" for n, name in enumerate(taken, 2))
    main = main_of(shader_of(f"{lines}\ndisplay({' + '.join(f'{name}@v * {name}@v' for name in taken)})\n"))
    for name in taken:
        assert f"float {name}_2 = " in main


def test_a_quotient_from_which_something_jumps_is_exact() -> None:
    assert "floor(exact_ratio(me_x, me_y))" in shader_of("display(floor(me@x / me@y))\n").text
    assert "exact_ratio" not in shader_of("display(me@x / me@y)\n").text


def test_a_value_by_itself_is_not_left_to_the_compiler() -> None:
    assert "nothing_of(me_x) + one_of(me_x)" in shader_of("display(me@x / me@x + (me@x - me@x))\n").text


def test_without_optimising_the_time_is_an_operand_like_any_other() -> None:
    text = "display(sin(me@x * 10 + me@time))\n"
    assert "sine(me_x * frame.number + frame.abstime)" in main_of(shader_of(text, optimise=False))


def test_each_line_tells_where_it_comes_from() -> None:
    shader = shader_of("a = me@x * 3 + me@y\nb = a * a\ndisplay(b + a)\n")
    lines = shader.text.splitlines()
    assert len(shader.places) == len(lines)
    found = {line.strip().partition(" =")[0]: place for line, place in zip(lines, shader.places, strict=True) if place}
    assert found["float a"] == "p.weft:1"
