"""`weft compile` and `weft graph`."""

from __future__ import annotations

import json
import re
import subprocess

import numpy as np
import pytest
import soundfile
import wasmtime
from PIL import Image

from tests.graph.graphs import from_json
from tests.support.c_programs import compiled
from tests.support.compute import opencl, wgpu
from tests.support.gl import graphics
from tests.support.glslang import problems
from tests.support.metal.check import check_file
from tests.support.parity.author import program
from tests.support.parity.pieces import PICTURE
from weft.backends.gl.graphics import GL
from weft.cli import main
from weft.cli.arguments import shipped_patches
from weft.contexts import ContextTable
from weft.errors import Source
from weft.runtime.inspect.forecast import check

__all__ = ["graphics", "opencl", "wgpu"]

PATCHES = shipped_patches()


def test_without_a_dump_it_says_what_was_compiled(weft):
    text = weft("compile", "rich.weft").stdout
    for words in ("visual/display", "audio/audio", "element ", "hash "):
        assert words in text


@pytest.mark.parametrize(
    ("stage", "words"),
    [("ast", "(output display a@v b@r b@g)"), ("graph", "a@v"), ("ir", "%"), ("bytecode", "LOAD_COORD x")],
)
def test_each_dump(weft, stage, words):
    text = weft("compile", "plain.weft", f"--dump-{stage}").stdout
    assert words in text
    assert f"// {stage}" not in text


def test_several_dumps_have_heads_and_come_in_the_order_of_the_stages(weft):
    text = weft("compile", "plain.weft", "--dump-bytecode", "--dump-ast").stdout
    heads = [line for line in text.splitlines() if line in ("// ast", "// bytecode")]
    assert heads == ["// ast", "// bytecode"]


def test_without_optimising_the_code_is_as_it_was_written(weft):
    weft.file("sum.weft", "display((5 + 3) * 2)\n")
    plain = weft("compile", "sum.weft", "--dump-bytecode", "-O0").stdout
    code = [" ".join(line.split()[1:]) for line in plain.splitlines() if line[:7].strip().isdigit()]
    assert code == ["PUSH 5", "PUSH 3", "ADD", "PUSH 2", "MUL", "RETURN"]
    assert "PUSH 16" in weft("compile", "sum.weft", "--dump-bytecode").stdout


@pytest.mark.long
def test_dumps_are_the_same_every_time(weft):
    args = ("compile", "rich.weft", "--dump-ast", "--dump-graph", "--dump-ir", "--dump-bytecode", "--dump-llvm")
    assert weft(*args, PYTHONHASHSEED="1").stdout == weft(*args, PYTHONHASHSEED="2").stdout


def test_one_context_alone(weft):
    text = weft("compile", "rich.weft", "--dump-bytecode", "--context", "audio").stdout
    assert "kernel audio/audio" in text
    assert "kernel visual" not in text
    assert 'did you mean "audio"?' in weft("compile", "rich.weft", "--context", "adio", code=2).stderr


def test_shaders(weft):
    text = weft("compile", "rich.weft", "--dump-glsl").stdout
    assert "#version 330 core" in text
    assert "void main() {" in text
    only = weft("compile", "rich.weft", "--dump-glsl", "--context", "audio").stdout
    assert "runs on the CPU: each of its values needs the one before" in only
    assert "#version" not in only
    plain = weft("compile", "rich.weft", "--dump-glsl", "--context", "visual", "-O0").stdout
    assert plain != weft("compile", "rich.weft", "--dump-glsl", "--context", "visual").stdout


def test_shaders_for_browsers(weft):
    text = weft("compile", "rich.weft", "--dump-essl").stdout
    assert text.startswith("#version 300 es\nprecision highp float;\n")
    macros = re.findall(r"^#define (\w+) +\d", text, re.M)
    assert len(macros) > 1
    chosen = [text.replace("#ifndef KERNEL", f"#define KERNEL {macro}\n#ifndef KERNEL") for macro in macros]
    assert problems(chosen) == []
    weft("compile", "rich.weft", "--dump-essl", "-o", "out")
    files = sorted(path.name for path in (weft.folder / "out").iterdir())
    assert files == sorted(["rich.essl", *(f"rich.{macro.lower()}.essl" for macro in macros)])


def test_webassembly(weft):
    text = weft("compile", "rich.weft", "--dump-wasm").stdout
    parts = text.split("\n)\n")[:-1]
    weft("compile", "rich.weft", "--dump-wasm", "-o", "out")
    files = {path.name: path for path in (weft.folder / "out").iterdir()}
    assert files.pop("rich.wat").read_text() == text
    assert len(files) == len(parts) > 1
    for name, path in files.items():
        assert name.startswith("rich.")
        wasmtime.Module.validate(wasmtime.Engine(), path.read_bytes())
    for part in parts:
        wasmtime.wat2wasm(f"{part}\n)\n")


def test_programs_in_c(weft):
    weft.file("sized.weft", "me<width> = 4; me<height> = 2\ndisplay(me@x, 0.5, 0)\naudio(sin(me@time * 2764.6))\n")
    text = weft("compile", "sized.weft", "--dump-c").stdout
    assert "#define KERNEL VISUAL_DISPLAY\n" in text
    program = compiled(text, weft.folder / "picture")
    subprocess.run([program, weft.folder / "p.ppm"], check=True)
    with Image.open(weft.folder / "p.ppm") as image:
        assert (image.size, image.getpixel((3, 1))) == ((4, 2), (223, 128, 0))
    program = compiled(text, weft.folder / "sound", "-DKERNEL=AUDIO_AUDIO")
    subprocess.run([program, weft.folder / "s.wav"], check=True)
    samples, rate = soundfile.read(weft.folder / "s.wav")
    np.testing.assert_allclose(samples[:, 1], np.sin(np.arange(48000) / rate * 2764.6), atol=1e-6)
    weft("compile", "sized.weft", "--dump-c", "-o", "out")
    files = sorted(path.name for path in (weft.folder / "out").iterdir())
    assert files == ["sized.audio_audio.c", "sized.c", "sized.visual_display.c"]
    only = weft("compile", "sized.weft", "--dump-c", "--context", "audio").stdout
    assert (weft.folder / "out" / "sized.audio_audio.c").read_text() == only


def test_what_has_no_program_in_c(weft):
    Image.new("RGB", (2, 2)).save(weft.folder / "p.png")
    weft.file("picture.weft", 'load("p.png")::p<r, g, b>\ndisplay(p@r)\n')
    said = weft("compile", "picture.weft", "--dump-c", code=1).stderr
    words = "there is no program in C for visual/display: it reads p.png"
    assert said.startswith(f"picture.weft:2:1: error: {words} [no-program]")
    weft.file("both.weft", 'load("p.png")::p<r, g, b>\ndisplay(p@r)\naudio(sin(me@time * 9))\n')
    text = weft("compile", "both.weft", "--dump-c").stdout
    assert text.endswith(f"// {words}\n")
    assert "KERNEL" not in text
    weft.file("numbers.weft", "compute(me@time)\n")
    said = weft("compile", "numbers.weft", "--dump-c", code=1).stderr
    assert "numbers.weft:1:1: error: " in said
    assert "it is neither a picture nor a sound [no-program]" in said
    # All that there is: this is not.
    listed = weft("compile", "numbers.weft", "-o", "all").stdout
    assert "numbers.c\n" not in listed
    assert "numbers.essl" in listed


def test_kernels_in_metal(weft):
    text = weft("compile", "rich.weft", "--dump-msl").stdout
    assert "#include <metal_stdlib>" in text
    assert "kernel void visual_display(" in text
    assert "kernel void compute_" in text
    only = weft("compile", "rich.weft", "--dump-msl", "--context", "audio").stdout
    assert "runs on the CPU: each of its values needs the one before" in only
    assert "kernel void" not in only
    plain = weft("compile", "rich.weft", "--dump-msl", "--context", "visual", "-O0").stdout
    assert plain != weft("compile", "rich.weft", "--dump-msl", "--context", "visual").stdout


# Names that those of kernels, structs and macros must not meet, and strands whose names begin alike.
LONG = "a_strand_whose_name_is_long_enough_to_be_cut"
CROWDED = f"""\
me<width> = 16; me<height> = 9
visual_display<v> = sin(me@x * 4000) + me@time
VisualDisplayFrame<v> = pow(me@y, visual_display@v)
VISUAL_DISPLAY<v> = visual_display@v * VisualDisplayFrame@v
KERNEL<KERNEL> = phasor(200)
{LONG}_1<v> = prev({LONG}_1@v)(me@x ~ me@x * 0.9) * 0.5 + VISUAL_DISPLAY@v
{LONG}_2<v> = prev({LONG}_2@v)(me@y ~ me@y * 0.9) * 0.5 + VISUAL_DISPLAY@v
audio(KERNEL@KERNEL * {LONG}_1@v(me@x ~ 0.5, me@y ~ fract(me@time)))
compute({LONG}_1@v(me@x ~ mouse@x, me@y ~ 0.5), {LONG}_2@v(me@x ~ 0.1, me@y ~ mouse@y), pow(mouse@x, me@time))
display({LONG}_1@v, {LONG}_2@v, KERNEL@KERNEL(me@time ~ me@time - me@x * 0.01))
"""


def of_several_contexts(seed):
    """A generated program that also gives numbers, of what it shows and of what it remembers, to another context."""
    text = program(seed).replace("render(", "display(")
    shown = text[text.rindex("display(") + len("display(") :].rstrip()[:-1]
    memory = "kept<v> = prev(kept@v)(me@x ~ me@x * 0.9) * 0.5 + me@y"
    return f"{text}{memory}\ndisplay(kept@v, to: \"kept\")\ncompute({shown}, kept@v(me@x ~ mouse@x, me@y ~ 0.5))\n"


def several_kernels(weft):
    """The texts that become several kernels: crowded names, shipped patches, and generated programs."""
    Image.new("RGB", (4, 3)).save(weft.folder / PICTURE)
    weft.file("crowded.weft", CROWDED)
    names = ["crowded.weft", PATCHES / "both.weft", PATCHES / "touch.weft"]
    for seed in range(12):
        weft.file(f"{seed}.weft", of_several_contexts(seed))
        names.append(f"{seed}.weft")
    return names


@pytest.fixture
def dumped(weft, capsys):
    """What is printed of each text with several kernels that compiles, in this process: starting one for each takes
    longer than the rest."""

    def dump(stage):
        for file in several_kernels(weft):
            if main(["compile", str(weft.folder / file), f"--dump-{stage}"]) == 0:
                yield capsys.readouterr().out

    return dump


@pytest.mark.long
def test_kernels_in_metal_are_one_file_that_compiles_as_it_is_printed(weft, dumped):
    found = [text for text in dumped("msl") if text.count("kernel void") > 1]
    assert len(found) > 10
    for text in found:
        assert check_file(text) == [], text
        functions = re.findall(r"^\w+ (\w+)\(", text, re.MULTILINE)
        assert len(functions) == len(set(functions))
    crowded = weft("compile", "crowded.weft", "--dump-msl").stdout
    assert "struct VisualDisplayFrame {" in crowded
    assert "kernel void visual_display(\n    constant VisualDisplayFrame &frame [[buffer(0)]]," in crowded


@pytest.mark.long
def test_kernels_in_opencl_are_one_file_that_compiles_as_it_is_printed(weft, dumped, opencl):
    found = [text for text in dumped("opencl") if text.count("kernel void") > 1]
    assert len(found) > 10
    for text in found[:2]:
        entries = re.findall(r"^kernel void (\w+)\(", text, re.MULTILINE)
        assert all(opencl.compile(text, entry) for entry in entries)
    whole = weft("compile", "crowded.weft", "--dump-opencl").stdout
    assert "struct VisualDisplayFrame {" in whole
    assert whole.isascii()


def test_kernels_in_wgsl_are_one_file_that_compiles_as_it_is_printed(weft, dumped, wgpu):
    found = [text for text in dumped("wgsl") if text.count("@compute") > 1]
    assert len(found) > 10
    for text in found:
        assert text.isascii()
        wgpu.own.create_shader_module(code=text)  # raises an error with naga's words
    crowded = weft("compile", "crowded.weft", "--dump-wgsl").stdout
    assert "struct VisualDisplayFrame {" in crowded
    assert "@group(0) @binding(0) var<uniform> visual_display__frame: VisualDisplayFrame;" in crowded


def compiles(kind, text):
    """The words of the driver about a text, given to it as it stands; nothing if it compiles."""
    shader = GL.glCreateShader(kind)
    GL.glShaderSource(shader, text)
    GL.glCompileShader(shader)
    words = "" if GL.glGetShaderiv(shader, GL.GL_COMPILE_STATUS) else str(GL.glGetShaderInfoLog(shader))
    GL.glDeleteShader(shader)
    return words


def test_shaders_are_one_text_that_compiles_as_it_is_printed(dumped, graphics):
    found = [text for text in dumped("glsl") if "#ifndef KERNEL" in text]
    assert len(found) > 10
    for text in found:
        with graphics.drawing():
            assert compiles(GL.GL_FRAGMENT_SHADER, text.encode()) == "", text
            chosen = re.findall(r"^#define (\w+) +\d+  // (\w+) shader$", text, re.MULTILINE)
            assert len(chosen) > 1
            for macro, stage in chosen:
                kind = GL.GL_COMPUTE_SHADER if stage == "compute" else GL.GL_FRAGMENT_SHADER
                version, rest = text.split("\n", 1)
                one = f"{version}\n#define KERNEL {macro}\n{rest}"
                assert compiles(kind, one.encode()) == "", one


def test_each_shader_in_a_file_of_its_own(weft, graphics):
    weft.file("crowded.weft", CROWDED)
    weft("compile", "crowded.weft", "--dump-glsl", "-o", "out")
    files = {path.name: path.read_bytes() for path in (weft.folder / "out").iterdir()}
    assert files.pop("crowded.glsl").decode() == weft("compile", "crowded.weft", "--dump-glsl").stdout
    assert "crowded.visual_display.glsl" in files
    assert len(files) > 2
    with graphics.drawing():
        for text in files.values():
            kind = GL.GL_COMPUTE_SHADER if b"local_size" in text else GL.GL_FRAGMENT_SHADER
            assert compiles(kind, text) == "", text


# Reserved words of GLSL 4.30 and Metal that a patch can bind; and names of the generated text.
KEPT = """
    active asm attribute bool break buffer bvec2 case cast centroid class coherent common const continue default discard
    dmat2 dmat4x3 double dvec2 enum extern external false filter fixed flat float fvec2 gl_FragCoord gl_own goto half
    highp hvec2 iimage2D iimageBuffer image1D image2DMS imageCube imageStore inline inout input int interface invariant
    isampler2D ivec3 layout long lowp mat2 mat4x3 mediump namespace noinline noperspective out output partition
    patch precise precision public readonly resource restrict return row_major sample sampler1DShadow sampler2DRect
    samplerCube shared short sizeof smooth static struct subroutine superp switch template this true typedef uimage2D
    uint uniform union unsigned usampler2D using uvec2 varying vec4 void volatile while writeonly
    alignas alignof and_eq auto bitand char char4 compl constexpr constant decltype delete device dynamic_cast explicit
    export fragment friend kernel metal mutable new noexcept nullptr operator or_eq private protected ptrdiff_t register
    signed size_t thread threadgroup throw try typeid typename uchar ulong ushort vertex virtual wchar_t xor
    atomic_store_explicit texture2d at count frame id main me_x met_limit pixel pixels place point sampled share stopped
    values values_1 values_2 visual_display VisualDisplayFrame KERNEL VISUAL_DISPLAY
""".split()  # noqa: SIM905 - this is read more easily than a list of strings


@pytest.mark.long
def test_strands_may_have_any_name(weft, graphics):
    forms = (f"{name}<v> = sin(me@x * {40 + at} + me@time) * cos(me@y * {at})" for at, name in enumerate(KEPT))
    lines = [line for line in forms if not check(Source("p.weft", f"{line}\ndisplay(0)\n"), ContextTable())]
    assert len(lines) > 0.8 * len(KEPT)
    # Each is used twice, so that it gets a variable.
    names = [line.partition("<")[0] for line in lines]
    total = " + ".join(f"{name}@v * {name}@v" for name in names)
    kept = f"trail<v> = prev(trail@v) + {total}"
    numbers = f"compute({', '.join([total] * 9)})\n"
    weft.file("names.weft", "\n".join([*lines, kept, "display(trail@v)", numbers]))
    assert check_file(weft("compile", "names.weft", "--dump-msl").stdout) == []
    assert problems([weft("compile", "names.weft", "--dump-essl").stdout]) == []
    compiled(weft("compile", "names.weft", "--dump-c").stdout, weft.folder / "names", "-fsyntax-only")
    with graphics.drawing():
        assert compiles(GL.GL_FRAGMENT_SHADER, weft("compile", "names.weft", "--dump-glsl").stdout.encode()) == ""


def test_a_text_with_one_shader_begins_with_its_version(weft):
    weft.file("both.weft", "display(me@x)\naudio(phasor(200))\n")
    lines = weft("compile", "both.weft", "--dump-glsl").stdout.splitlines()
    assert lines[0] == "#version 330 core"
    assert lines[-1] == "// audio/audio runs on the CPU: each of its values needs the one before"


@pytest.mark.parametrize("stage", ["glsl", "essl", "msl", "cuda", "opencl", "wgsl"])
def test_the_times_of_films_are_no_picture(weft, stage):
    shown = weft("compile", PATCHES / "scratch.weft", f"--dump-{stage}").stdout
    assert "runs on the CPU: it says once a frame which pictures of films are read" in shown


def test_files_instead(weft):
    weft("compile", "plain.weft", "--dump-ir", "-o", "one")
    assert [p.name for p in (weft.folder / "one").iterdir()] == ["plain.ir"]
    listed = weft("compile", "plain.weft", "-o", "deep/all").stdout
    found = sorted(p.name for p in (weft.folder / "deep/all").iterdir())
    names = ("asm", "ast", "bytecode", "c", "cl", "cu", "essl", "glsl", "graph", "hip", "ir", "llvm", "msl",
             "visual_display.wasm", "wat", "wgsl")  # fmt: skip
    assert found == [f"plain.{name}" for name in names]
    assert len(listed.splitlines()) == len(found)
    shown = weft("compile", "plain.weft", "--dump-ir").stdout
    assert (weft.folder / "deep/all/plain.ir").read_text(encoding="utf-8") == shown


def test_files_where_there_can_be_none(weft):
    weft.file("taken", "")
    assert "taken" in weft("compile", "plain.weft", "-o", "taken/in", code=3).stderr


@pytest.mark.parametrize(
    ("form", "words"), [("text", "visual/display"), ("mermaid", "flowchart"), ("dot", "digraph")]
)
def test_graph(weft, form, words):
    assert words in weft("graph", "rich.weft", "--format", form).stdout


def test_graph_as_json_can_be_read_back(weft):
    text = weft("graph", "rich.weft", "--format", "json").stdout
    assert weft("graph", "rich.weft", "--json").stdout == text
    graph = from_json(json.loads(text))
    assert {s.context for s in graph.subgraphs} == {"visual", "audio", "compute"}
    assert weft("graph", "rich.weft").stdout == weft("graph", "rich.weft", "--format", "text").stdout


@pytest.mark.long
@pytest.mark.parametrize("dump", ["--dump-llvm", "--dump-asm"])
def test_what_cannot_become_machine_code_is_told(weft, dump):
    done = weft.broken("native", "compile", "rich.weft", dump)
    assert "; visual/display: runs on the vector machine" in done.stdout or dump == "--dump-asm"
    assert "visual/display runs on vector, not native: no machine code could be made of it" in done.stderr
