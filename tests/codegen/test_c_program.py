"""Programs in C compute what the reference computes, and are accepted without a warning."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
from PIL import Image

from tests.codegen.clike.test_rows import ROWS
from tests.codegen.test_glsl_pictures import MEMORIES, remembering
from tests.ops.operands import disagreements, table_for, types, vector_tolerance
from tests.support.c_programs import compiled, frames
from tests.support.exprs import Exprs, image_slot, lowered
from tests.support.kernels import compiled as kernel_of, launch_of
from tests.support.parity.cases import Case, case_of_seed
from tests.support.shown import built as patch_built, sized
from tests.support.together import all_but
from tests.support.tolerances import DOUBLE
from tests.test_patches import PATCHES
from weft.backends.base import Env
from weft.backends.executors import Executor
from weft.backends.launch import Even, Launch, StateMemory, pack, picture_coords
from weft.backends.vector.machine import VectorExecutor
from weft.backends.vm import ReferenceExecutor
from weft.cli.compile import c_program_of
from weft.codegen.clike.shader import UnsuitableError
from weft.codegen.kernel import Unit
from weft.contexts import OWN_CONTEXTS, ContextTable, channel_of, is_smoothed
from weft.errors import Source
from weft.runtime.compiling.stages import Build, Request, build
from weft.runtime.films.offline import initial_inputs

# Functions of C's library and of Python's may differ in the last digit, and programs add some dozens of them.
NEAR = DOUBLE.scaled(1000)

SIZE = {"width": 21.0, "height": 13.0}


def test_every_row_is_its_fold(tmp_path: Path) -> None:
    """All rows at once, each over hard operands: they are what the state of each pixel was."""
    e = Exprs()
    terms = {row.name: [e.state(f"{row.name}/v{at}", 1) for at in range(len(types(row)))] for row in ROWS}
    states = {f"{name}/v{at}": term for name, operands in terms.items() for at, term in enumerate(operands)}
    outputs = [e(name, *operands) for name, operands in terms.items()]
    kernel = kernel_of(lowered(*outputs, slots=[image_slot(key) for key in states], updates=states))
    tables = {row.name: table_for(row, np.float64) for row in ROWS}
    shape = (1, max(len(table[0]) for table in tables.values()))
    memory = StateMemory(kernel.slots, shape, np.float64)
    for name, operands in tables.items():
        for at, operand in enumerate(operands):
            key = f"{name}/v{at}"
            memory.ring(key)[memory.cell(key, 1), 0, 0, : len(operand)] = operand
    launch = launch_of(shape)
    (frame,) = frames([(kernel, launch)], tmp_path)
    got = frame(memory, launch)[:, 0]
    for row, padded in zip(ROWS, got, strict=True):
        operands = tables[row.name]
        values = padded[: len(operands[0])]
        found = values != 0 if row.gives == "bool" else values
        tolerance = vector_tolerance(row, np.float64)
        assert not list(disagreements(row, operands, found, np.float64, tolerance))[:5], row.name


def assert_agree(cases: dict[str, Case], folder: Path) -> None:
    """The programs of cases, with a function for each launch, as its inputs are part of the text."""
    each = [(name, case, launch) for name, case in cases.items() for launch in case.launches]
    made = iter(frames([(case.kernel, launch) for _, case, launch in each], folder))
    for name, case in cases.items():
        memory = StateMemory(case.kernel.slots, case.launches[0].shape, np.float64)
        got = np.stack([next(made)(memory, launch) for launch in case.launches])
        # A value may fall to the other side of an edge.
        assert NEAR.agreement(got, case.expected).mean() > 0.999, f"{name}\n{case.text}"


def test_memory(tmp_path: Path) -> None:
    assert_agree({name: remembering(text) for name, text in MEMORIES.items()}, tmp_path)


PROGRAMS, CHUNK = (int(os.environ.get("WEFT_PARITY", "0")) or 120), 6


@pytest.mark.parametrize("start", all_but(1, range(0, PROGRAMS, CHUNK)))
def test_generated_programs_show_what_the_reference_shows(start: int, tmp_path: Path) -> None:
    cases = {str(seed): case_of_seed(seed) for seed in range(start, start + CHUNK)}
    suited = {
        seed: case for seed, case in cases.items()
        if not {"absframe"} & {*case.kernel.uniforms} and not case.kernel.strands and not case.kernel.pictures
    }  # fmt: skip
    assert suited
    assert_agree(suited, tmp_path)


# --- whole programs -----------------------------------------------------------------------------------------------


def played(unit: Unit, made: Build, last: int, executor: Executor) -> np.ndarray:
    """The pixels of a frame, [height, width, 4]."""
    width, height, fps = (int(made.patch.settings[name]) for name in ("width", "height", "fps"))
    executable = executor.load(unit.kernel)
    memory = StateMemory(unit.kernel.slots, (height, width), np.float64)
    for tick in range(last + 1):
        env = Env(width, height, tick, tick / fps, 1 / fps, initial_inputs(made.patch))
        uniforms = {name: env.uniform(name) for name in unit.kernel.uniforms}
        planes = executable.planes(memory, Launch((height, width), picture_coords(width, height, tick / fps), uniforms))
    out = np.zeros((height, width, 4), np.uint8)
    pack(np.asarray(planes), out)
    return out


def heard(unit: Unit, made: Build, samples: int, executor: Executor) -> np.ndarray:
    """The first samples of two channels, [2, samples]."""
    settings, kernel = made.patch.settings, unit.kernel
    width, height, rate = (int(settings[name]) for name in ("width", "height", "rate"))
    env, even = Env(width, height, dt=1 / rate, inputs=initial_inputs(made.patch)), Even(0, rate)
    found = []
    for channel in (0, 1):
        coords = {"channel": float(channel), **env.constant_controls(kernel, samples), "abstime": even.times(samples)}
        launch = Launch((1, samples), coords, {name: env.uniform(name) for name in kernel.uniforms}, even=even)
        memory = StateMemory(kernel.slots, (1, samples), np.float64)
        planes = np.asarray(executor.load(kernel).planes(memory, launch))[:, 0]
        labels = [(label, channel_of(label)) for label in kernel.outputs]
        found.append(planes[[only in (None, channel) and not is_smoothed(label) for label, only in labels]].sum(axis=0))
    return np.clip(found, -1, 1)


def assert_whole(unit: Unit, made: Build, folder: Path, executor: Executor, last: int, samples: int) -> None:
    """The program writes what an executor computes."""
    program = compiled(c_program_of(made, unit), folder / "program", "-O1")
    if made.contexts[unit.subgraph.context].streams:
        subprocess.run([program, folder / "sound.wav"], check=True)
        got, rate = soundfile.read(folder / "sound.wav", dtype="float64")
        assert (len(got), rate) == (made.patch.settings["rate"], made.patch.settings["rate"])
        wanted = heard(unit, made, samples, executor)
        np.testing.assert_allclose(got[:samples, :2].T, wanted, atol=1e-6)
    else:
        subprocess.run([program, folder / "picture.pnm", str(last)], check=True)
        data, wanted = (folder / "picture.pnm").read_bytes(), played(unit, made, last, executor)
        channels = 4 if data.startswith(b"P7") else 3
        got = np.frombuffer(data[-wanted[..., 0].size * channels :], np.uint8).reshape(*wanted.shape[:2], channels)
        assert (np.abs(got.astype(int) - wanted[..., :channels]) > 0).mean() < 0.001


WHOLE = """\
#use std.synth
me<width> = 21; me<height> = 13
beat = phasor(2)
trail<v> = max(me@x > fract(me@time), prev(trail@v)(me@x ~ me@x * 0.9) * 0.95)
spindle f(x) :: o { o = 0; for i in (0 to x * 9) { o = o * 0.5 + i } }
soft<v> = image(trail@v * me@y)
display(trail@v, f(me@y) / 9 - noise(me@x * 9, me@absframe), soft@v(me@x ~ 1 - me@x) + mouse@x, 1 - beat * me@x)
audio(left: sin(me@time * 440 * tau) * phasor(3), right: lowpass(noise(me@time * 9000), 500))
"""


@pytest.fixture(scope="module")
def whole() -> Build:
    return build(Request(Source("whole.weft", WHOLE), ContextTable()))


@pytest.mark.parametrize("context", ["visual", "audio"])
def test_a_program_writes_what_the_reference_computes(whole: Build, context: str, tmp_path: Path) -> None:
    (unit,) = (unit for unit in whole.units if unit.subgraph.context == context)
    folder = tmp_path / "a folder"
    folder.mkdir()
    assert_whole(unit, whole, folder, ReferenceExecutor(), last=3, samples=900)


def test_what_a_program_says(whole: Build, tmp_path: Path) -> None:
    made = build(Request(Source("p.weft", "me<width> = 5; me<height> = 3\ndisplay(me@x, me@y, 0.5)"), ContextTable()))
    program = compiled(c_program_of(made, made.units[0]), tmp_path / "program")

    def run(*args: str) -> tuple[int, str]:
        done = subprocess.run([program, *args], capture_output=True, text=True, check=False)
        return done.returncode, done.stderr

    assert run(str(tmp_path / "p.ppm")) == (0, "")
    with Image.open(tmp_path / "p.ppm") as image:
        assert (image.size, image.getpixel((4, 0))) == ((5, 3), (230, 43, 128))
    for args in ((), ("a", "b"), ("a", "-1"), ("a", "1", "2"), ("a", "1x"), ("a", "")):
        assert run(*args)[0] == 2
        assert "usage: " in run(*args)[1]
    code, said = run(str(tmp_path / "none" / "p.ppm"))
    assert (code, "No such file" in said) == (1, True)


# Macros of C's headers, and what the program itself is made of.
TAKEN = """
RAND_MAX EOF BUFSIZ HUGE_VAL SEEK_SET UINT32_MAX INT_FAST8_MIN stdout errno NULL NAN linux unix memory sizes tick now
values frame channel main met_limit visual_display visual_display_tick visual_display_frame place between KERNEL
uint32_t int64_t double register isnan calloc fputs file level pixel
""".split()  # noqa: SIM905 - this is read more easily than a list of strings


def test_strands_may_have_the_names_of_c(tmp_path: Path) -> None:
    lines = [f"{name}<v> = prev({name}@v) * sin(me@x * {at} + me@time) + cos(me@time * {at})"
             for at, name in enumerate(TAKEN)]  # fmt: skip
    total = " + ".join(f"{name}@v * {name}@v" for name in TAKEN)
    for sink in ("display", "audio"):
        made = build(Request(Source("p.weft", "\n".join([*lines, f"{sink}({total})"])), ContextTable()))
        text = c_program_of(made, made.units[0], frozenset({"KERNEL"}))
        compiled(f"#define KERNEL 1\n{text}", tmp_path / "program", "-fsyntax-only")


def test_a_loop_that_is_stopped_is_told(tmp_path: Path) -> None:
    text = "me<width> = 2; me<height> = 1\nspindle f(n) :: v { v = 0; for i in (1 to n) { v = v + 1 } }\n"
    made = build(Request(Source("p.weft", f"{text}display(f(me@x * 99999) / 8192)"), ContextTable()))
    program = compiled(c_program_of(made, made.units[0]), tmp_path / "program")
    done = subprocess.run([program, tmp_path / "p.ppm"], capture_output=True, text=True, check=True)
    assert "a loop was stopped" in done.stderr
    with Image.open(tmp_path / "p.ppm") as image:
        assert image.getpixel((1, 0)) == (128, 128, 128)


REFUSED = {
    "audio(mic() * 0.5)": "it reads the microphone",
    "w = phasor(2)\naudio(sin(w))\ndisplay(w(me@time ~ me@time - me@x))": "it reads w of another subgraph",
    "compute(me@time)": "it is neither a picture nor a sound",
    "t<v> = mix(me@x, prev(t@v), 0.5)\ndisplay(t@v, to: \"a\")\ndisplay(1 - t@v, to: \"b\")":
        "it reads what another picture remembers",
}  # fmt: skip


@pytest.mark.parametrize(("text", "reason"), REFUSED.items(), ids=REFUSED.values())
def test_what_a_program_cannot_have_is_refused(text: str, reason: str) -> None:
    contexts = ContextTable([replace(spec, in_one_memory=spec.sweeps_plane) for spec in OWN_CONTEXTS])
    made = build(Request(Source("p.weft", text), contexts))
    with pytest.raises(UnsuitableError, match=reason):
        _ = [c_program_of(made, unit) for unit in made.units]


def units_with_programs(made: Build) -> Iterator[Unit]:
    for unit in made.units:
        try:
            c_program_of(made, unit)
        except UnsuitableError:
            continue
        yield unit


@pytest.mark.parametrize("path", all_but(1, PATCHES), ids=lambda path: path.stem)
def test_a_shipped_patch_is_written(path: Path, tmp_path: Path) -> None:
    made = sized(patch_built(path), SIZE)
    for unit in units_with_programs(made):
        assert_whole(unit, made, tmp_path, VectorExecutor(np.float64), last=4, samples=4000)
