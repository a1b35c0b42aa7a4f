"""Shaders for browsers: the validator accepts them, and no pass needs more than a browser has.

Those for drivers of OpenGL ES differ little; tests/backends/gl/test_embedded.py has what they draw.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from tests.codegen.test_glsl_pictures import MEMORIES
from tests.support.glslang import problems
from tests.support.parity.author import program
from tests.support.shown import built as patch_built
from tests.support.together import all_but
from tests.test_patches import PATCHES, PICTURES_OF
from weft.codegen import essl, glsl
from weft.codegen.clike.shader import FirstLayer, LaunchExtent, Shader, UnsuitableError, plain
from weft.codegen.kernel import Kernel
from weft.contexts import ContextTable
from weft.errors import Source, WeftError
from weft.ir.rates import Rate
from weft.runtime.compiling.stages import Build, Request, build

PROGRAMS, CHUNK = 200, 25


def text_built(text: str) -> Build:
    return build(Request(Source("p.weft", text), ContextTable()))


def kernel_of(text: str) -> Kernel:
    return text_built(text).units[0].kernel


def shaders_of(made: Build) -> Iterator[Shader]:
    """All that a text becomes: pictures as pixels and as floats, and strands over points; for browsers, and for
    drivers."""
    for kernel in (kernel for unit in made.units for kernel in unit.kernels):
        is_picture = kernel.context == "visual" and kernel.sweep == "grid" and len(kernel.outputs) in (1, 3, 4)
        for packed in {False, is_picture}:
            try:
                yield from essl.passes(kernel, packed)
                if kernel.sweep == "grid":
                    yield from essl.over_picture(kernel, packed).shaders
                else:
                    yield essl.over_points(kernel)
            except UnsuitableError:
                assert kernel.context == "audio" or glsl_refuses(kernel)


def glsl_refuses(kernel: Kernel) -> bool:
    try:
        glsl.points(kernel) if kernel.sweep == "points" else glsl.passes(kernel, False)
    except UnsuitableError:
        return True
    return False


def assert_clean(shaders: list[Shader]) -> None:
    assert problems([plain(shader.text) for shader in shaders]) == []
    for shader in shaders:
        assert shader.colour_targets + len(shader.stores) + shader.stops <= essl.TARGETS


@pytest.mark.parametrize("path", all_but(4, PATCHES), ids=lambda path: path.stem)
def test_a_shipped_patch_is_in_order(path: Path) -> None:
    found = [*shaders_of(patch_built(path))]
    assert found or path not in PICTURES_OF
    assert_clean(found)


@pytest.mark.parametrize("start", all_but(1, range(0, PROGRAMS, CHUNK)))
def test_shaders_of_generated_programs_are_in_order(start: int) -> None:
    found: list[Shader] = []
    for seed in range(start, start + CHUNK):
        try:
            found += shaders_of(text_built(program(seed, 0)))
        except WeftError:
            continue  # it refers to what is not there
    assert len(found) > CHUNK
    assert_clean(found)


def test_the_vertex_shader_is_in_order() -> None:
    assert problems([essl.VERTEX], "vert") == []


def test_own_shaders_for_the_desktop_are_in_order_for_drivers() -> None:
    from weft.runtime.screens import painter, warp_painter

    vertices = [glsl.VERTEX, painter._VERTEX_SHADER, warp_painter._VERTEX_SHADER]
    fragments = [glsl.surveying(), glsl.resampling(), painter._FRAGMENT_SHADER, warp_painter._FRAGMENT_SHADER]
    for stage, texts in (("vert", vertices), ("frag", fragments)):
        found = [essl.from_desktop(text.encode("ascii")).decode() for text in texts]
        assert all(text.startswith("#version 300 es") for text in found)
        assert problems(found, stage) == []


def test_names_that_browsers_reserve_are_not_given() -> None:
    (shader,) = essl.passes(kernel_of("webgl_x<v> = me@x * me@y + 1\ndisplay(webgl_x@v * webgl_x@v)"), packed=True)
    assert "float vwebgl_x = " in shader.text
    assert not [line for line in shader.text.splitlines() if line.strip().startswith("float webgl_")]


def test_planted_mistakes_are_found() -> None:
    (shader,) = essl.passes(kernel_of("display(me@x)"), packed=True)
    for old, new in (("float me_x", "float me_y"), ("precision highp float;", ""), ("vec4(", "vec4(1u ? ")):
        assert old in shader.text
        assert len(problems([shader.text, plain(shader.text).replace(old, new)])) == 1


# --- what a caller has to know ------------------------------------------------------------------------------------

PLANES = "\n".join(f"t{at}<v> = mix(me@x * {at}, prev(t{at}@v), 0.5)" for at in range(9))


def test_a_kernel_that_needs_more_targets_is_drawn_in_passes() -> None:
    kernel = kernel_of(f"{PLANES}\ndisplay({' + '.join(f't{at}@v' for at in range(9))}, me@x, me@y)")
    made = essl.passes(kernel, packed=True)
    assert [len(shader.stores) for shader in made] == [3, 4, 2]
    stores = kernel.section(Rate.ELEMENT).stores
    assert [place for shader in made for place in shader.stores] == [store.place for store in stores]
    assert [shader.outputs for shader in made] == [kernel.outputs, (), ()]
    assert [shader.packed for shader in made] == [True, False, False]


def test_outputs_and_loops_take_targets_too() -> None:
    outputs = ", ".join(f"me@x * {at}" for at in range(2, 19))
    kernel = kernel_of(f"compute({outputs})")
    assert [len(shader.outputs) for shader in essl.passes(kernel, packed=False)] == [16, 1]
    looped = "spindle f(n) :: v { v = n for i in (0 to n) { v = v * 0.5 + i } }\n"
    kernel = kernel_of(f"{looped}{PLANES}\ndisplay(f(me@x * 9) + {' + '.join(f't{at}@v' for at in range(9))})")
    assert [len(shader.stores) for shader in essl.passes(kernel, packed=True)] == [2, 3, 3, 1]


ONE_PASS = {
    "numbers and a picture": "display(me@x * 0.3 + me@time, mouse@x, me@y > 0.5)",
    "memory": MEMORIES["another place"],
    "rows of numbers": MEMORIES["two of them"],
    "sound": "w = phasor(220)\naudio(w)\ndisplay(w(me@time ~ me@time - me@x * 0.02))",
}


@pytest.mark.parametrize("text", ONE_PASS.values(), ids=ONE_PASS.keys())
def test_a_caller_is_told_as_much_as_for_glsl(text: str) -> None:
    kernel = next(unit.kernel for unit in text_built(text).units if unit.subgraph.context == "visual")
    (made,) = essl.passes(kernel, packed=True)
    desktop = glsl.fragment(kernel, packed=True)
    same = {f.name for f in fields(Shader)} - {"language", "text", "places", "calls", "functions"}
    for name in same - {"uniforms", "images"}:
        assert getattr(made, name) == getattr(desktop, name)
    # Slots share no texture in a browser.
    assert [image.key for image in made.images] == [image.key for image in desktop.images]
    assert len({image.name for image in made.images}) == len(made.images)
    # The width of a picture is not needed to find a place of a texture.
    others = {each for each in desktop.uniforms if not isinstance(each.source, FirstLayer)}
    assert {each for each in others if each.source != LaunchExtent.COLUMNS} <= {*made.uniforms}
    assert problems([plain(made.text)]) == []


def test_points_are_pixels_and_their_coordinates_textures() -> None:
    made = text_built(f"{MEMORIES['another place']}\naudio(t@v(me@x ~ me@time, me@y ~ 0.5))")
    kernel = next(kernel for unit in made.units for kernel in unit.points.values())
    (shader,) = essl.passes(kernel, packed=False)
    assert shader.coords
    for name in shader.coords:
        assert f"uniform sampler2D all_{name};" in shader.text
        assert f"float me_{name} = texelFetch(all_{name}, at, 0).r;" in shader.text
    assert_clean([shader])
