"""Generated programs show on every machine what the reference shows, but for what single precision makes of them; and
the rule that says so finds what is wrong with a machine.

`WEFT_PARITY=20000` tries this many programs, different from the usual ones, and a quarter as many sounds.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from itertools import takewhile

import numpy as np
import numpy.typing as npt
import pytest

from tests.support.kernels import kernel_of
from tests.support.parity.author import program, sound, voice
from tests.support.parity.cases import (  # fmt: skip
    EACH_LONG, SHORT_MOMENTS, Case, case_of, case_of_seed, sound_case_of, sound_case_of_seed
)
from tests.support.parity.moved import DoubleMovement, MovedReference, Movement
from tests.support.parity.pieces import FIELDS, INPUTS, PLACES
from tests.support.parity.recipes import WRITTEN
from tests.support.parity.rule import Outcome, compare, compare_loaded, off_share
from tests.support.parity.shrink import report, shrunk
from tests.support.together import all_but
from tests.support.tolerances import BEYOND_SHARE, OFF_SHARE
from weft.backends.executors import NOTHING, Executable, Executor
from weft.backends.launch import Floats, Launch, StateMemory
from weft.backends.native.executor import NativeExecutor
from weft.backends.native.llvm import NativeCode, plainest, runs_here
from weft.backends.native.samples import SeriesExecutable
from weft.backends.vector.machine import VectorExecutable, VectorExecutor, VectorSeries
from weft.backends.vm import ReferenceExecutable
from weft.backends.wasm import WasmExecutable, WasmExecutor
from weft.codegen.bytecode import Instruction, assemble
from weft.codegen.kernel import Kernel
from weft.codegen.native.plan import Form
from weft.codegen.native.target import ISAS
from weft.ops import STATE


class SecondTier(NativeExecutor):
    """Machine code as it is made in the background."""

    def code(self, kernel: Kernel, packed: bool, tier: int, narrow: bool = False) -> NativeCode:
        return super().code(kernel, packed, 2 if self.plan(kernel).second is Form.MODULE else tier, narrow)

    def first(self, kernel: Kernel, packed: bool, narrow: bool = False) -> NativeCode:
        return self.code(kernel, packed, 1, narrow)


EXECUTORS: Mapping[str, Callable[[], Executor]] = {
    "native": NativeExecutor, "second tier": SecondTier, "quick": partial(NativeExecutor, lanes=16),
    "vector": VectorExecutor, "wasm": WasmExecutor,
}  # fmt: skip

# Sounds of the first tier are lists of calls, also of functions for plainer processors.
SOUND_EXECUTORS: Mapping[str, Callable[[], Executor]] = {
    **{name: EXECUTORS[name] for name in ("native", "second tier", "vector", "wasm")},
    **{isa: partial(NativeExecutor, plainest(ISAS[isa])) for isa in ("avx2", "sse2") if runs_here(ISAS[isa])},
}

CHUNK = 100
ASKED = int(os.environ.get("WEFT_PARITY", "0"))
FIRST, COUNT = (1_000_000, ASKED) if ASKED else (0, 600)

# The vector machine changes rarely, and the tiers have much in common: as a rule these are tried with fewer programs.
COUNTS = {
    "native": COUNT, "second tier": ASKED or 100, "quick": ASKED or 200, "vector": ASKED or 300, "wasm": ASKED or 200,
}  # fmt: skip


def marks_of(start: int, seldom: bool = False) -> list[pytest.MarkDecorator]:
    """All chunks but the first take long; of the second tier, that is one of sounds."""
    return [pytest.mark.long] * (seldom or start > FIRST)


CHUNKS = [
    pytest.param(name, start, id=f"{name}-{start}", marks=marks_of(start, name == "second tier"))
    for start in range(FIRST, FIRST + COUNT, CHUNK)
    for name in EXECUTORS
    if start - FIRST < COUNTS[name]
]

# Sounds: each sample is computed by the reference one after another, so there are fewer.
SOUND_CHUNK, SOUND_COUNT = 60, ASKED // 4 or 480
SOUND_COUNTS = dict.fromkeys(SOUND_EXECUTORS, ASKED // 4 or 120) | {"native": SOUND_COUNT}
SOUND_CHUNKS = [
    pytest.param(name, start, id=f"{name}-sounds from {start}", marks=marks_of(start))
    for start in range(FIRST, FIRST + SOUND_COUNT, SOUND_CHUNK)
    for name in SOUND_EXECUTORS
    if start - FIRST < SOUND_COUNTS[name]
]

# What computes many samples at once, and how many sounds must be computed so: numpy cannot if a loop has memory in it,
# or ends that vary.
AT_ONCE = dict.fromkeys(SOUND_EXECUTORS, (SeriesExecutable,)) | {
    "vector": (VectorSeries, VectorExecutable), "wasm": (WasmExecutable,),
}  # fmt: skip
TELLING_SHARE = 0.75
"""How many sounds must have both loops and memory."""
AT_ONCE_SHARE = dict.fromkeys(SOUND_EXECUTORS, 0.9) | {"vector": 0.1}


@pytest.mark.parametrize(("name", "start"), CHUNKS)
def test_generated_programs_show_what_the_reference_shows(name: str, start: int) -> None:
    executor = EXECUTORS[name]()
    failures: list[tuple[int, Case, Outcome]] = []
    outcomes: list[Outcome] = []
    beyond = 0
    for seed in range(start, min(start + CHUNK, FIRST + COUNTS[name])):
        case = case_of_seed(seed)
        outcome = compare(case, executor)
        assert not executor.refusals.take(), f"program {seed} on {name}\n{case.text}"
        outcomes.append(outcome)
        beyond += outcome.off[0] > OFF_SHARE * outcome.values
        if outcome.unexplained:
            failures.append((seed, case, outcome))
    if failures:
        seed, case, outcome = failures[0]
        seeds = [seed for seed, _, _ in failures]
        pytest.fail(f"programs {seeds}\n" + report(case, executor, outcome, f"program {seed} on {name}"), pytrace=False)
    assert beyond <= BEYOND_SHARE * CHUNK, f"{beyond} of {CHUNK} first pictures differ, even if that is explained"
    assert off_share(outcomes) <= OFF_SHARE


@pytest.mark.parametrize(("name", "start"), SOUND_CHUNKS)
def test_generated_sounds_are_what_the_reference_plays(name: str, start: int) -> None:
    executor = SOUND_EXECUTORS[name]()
    seeds = range(start, min(start + SOUND_CHUNK, FIRST + SOUND_COUNTS[name]))
    at_once = telling = 0
    for seed in seeds:
        case = sound_case_of_seed(seed)
        telling += has_loop_and_memory(case.kernel)
        executable = executor.load(case.kernel)
        if isinstance(executable, ReferenceExecutable):
            continue  # the same as what it would be compared with
        at_once += isinstance(executable, AT_ONCE[name])
        outcome = compare_loaded(case, executable)
        if outcome.unexplained:
            pytest.fail(report(case, executor, outcome, f"sound {seed} on {name}"), pytrace=False)
        assert not executor.refusals.take(), f"sound {seed} on {name}\n{case.text}"
    assert at_once > AT_ONCE_SHARE[name] * len(seeds)
    assert telling >= TELLING_SHARE * len(seeds)


def has_loop_and_memory(kernel: Kernel) -> bool:
    """Whether a sound remembers, and has a loop that is not written out step by step."""
    return bool(kernel.slots) and any(node.op == "loop" for _, node in kernel.walk())


# --- the generator ------------------------------------------------------------------------------------------------


def test_programs_are_the_same_every_time() -> None:
    assert [program(seed) for seed in range(20)] == [program(seed) for seed in range(20)]
    assert len({program(seed) for seed in range(200)}) == 200


def test_sounds_remember() -> None:
    for write in (sound, voice):
        text = "\n".join(map(write, range(300)))
        assert all(f"{name}(" in text for name in STATE if name != "image")  # which is nothing in a sound


def test_voices_have_everything() -> None:
    text = "\n".join(map(voice, range(300)))
    for form in (
        "<o, p, q> {", "1 to 17", "1 to me@width", "fract(me@time * 99) to", "0 to i", "; for j in", "prev(o) * 0.7",
        "::h<o, p", "t * 0.1", "s = o; o = p; p = s", "integrate(p", "phasor(", "hold(me@time", "to min(prev(",
    ):  # fmt: skip
        assert form in text, form


def test_programs_use_everything() -> None:
    text = "\n".join(map(program, range(700)))
    calls = {name for row in WRITTEN.values() for name in row.call_names} | STATE.keys() | {"load"}
    assert calls - set(re.findall(r"\b(\w+)\(", text)) == set()
    symbols = {symbol for row in WRITTEN.values() for symbol in row.symbols}
    assert symbols - set(re.findall(r"(?<=[\s(])(?:[-+*/%^<>=!]+|or|and|not)(?=[\s\w(])", text)) == set()
    for piece in (*PLACES, *FIELDS, *INPUTS):
        assert piece.text in text
    for form in ("(if ", "#slider", "#toggle", "#xy", "#color", "me<loop>", "<2>(", "::c", ">[", " ~ ", "lo: ", "j in"):
        assert form in text


def test_most_outputs_vary_and_are_numbers() -> None:
    outputs = [plane for seed in range(40) for plane in case_of_seed(seed).expected[0]]
    finite = [plane for plane in outputs if np.isfinite(plane).mean() > 0.9]
    assert len(finite) > 0.9 * len(outputs)
    assert sum(np.unique(plane).size > 3 for plane in finite) > 0.6 * len(finite)


# --- the rule -----------------------------------------------------------------------------------------------------


class Still(Movement):
    """Numbers neither rounded nor moved."""

    def result(self, x: float) -> float:
        return x


def test_the_moved_reference_is_the_reference_where_nothing_moves() -> None:
    for seed in range(30):
        case = case_of_seed(seed)
        moved = MovedReference(case.kernel, Still())
        elements = [(1, 5), (0, 36), (1, 0)]
        rows, columns = zip(*elements, strict=True)
        np.testing.assert_array_equal(
            moved.play(case.launches, elements, seed), case.expected[:, :, rows, columns], case.text
        )


def test_movement_is_a_unit_in_the_last_place_and_leaves_exact_numbers_alone() -> None:
    movement = Movement()
    movement.begin(3)
    for exact in (0.5, 3.0, -7.25, 0.0, 2.0**-149, np.inf):
        assert movement.result(exact) == exact
    for x in (0.1, 1 / 3, 1e10 + 1, -123.456, 1.9999999, 1.00000001, 3e-39):
        near, below, above = np.float32(x), np.float32(-1e30), np.float32(1e30)
        units = {float(near), float(np.nextafter(near, below)), float(np.nextafter(near, above))}
        found = {movement.result(x) for _ in range(100)}
        assert found <= units | ({0.0} if abs(x) < 2.0**-126 else set()), x
        assert len(found) >= 2 or abs(x) < 2.0**-126
    assert movement.result(1e39) == np.inf
    assert len({movement.given(0.1) for _ in range(100)}) == 1


def test_the_moved_sound_is_the_reference_where_nothing_moves() -> None:
    for seed in range(0, 5 * EACH_LONG, EACH_LONG):
        case = sound_case_of_seed(seed)
        samples = [(0, 3), (0, 340), (0, 299)]
        found = MovedReference(case.kernel, Still()).play(case.launches, samples, seed)
        np.testing.assert_array_equal(found, case.expected[:, :, 0, [at for _, at in samples]], case.text)


def test_movement_of_doubles_is_a_unit_in_the_last_place() -> None:
    movement = DoubleMovement()
    movement.begin(3)
    for exact in (0.5, -7.25, 0.0, np.inf):
        assert movement.result(exact) == exact
    for x in (0.1, 1 / 3, -123.456, 1e300):
        found = {movement.result(x) for _ in range(100)}
        assert found == {x, *(float(np.nextafter(x, end)) for end in (-np.inf, np.inf))}


class Flawed(VectorExecutor):
    """The vector machine, with something wrong: of the kernel it is given, of its launches, or of what it shows."""

    def __init__(
        self,
        kernel: Callable[[Kernel], Kernel] = lambda kernel: kernel,
        launch: Callable[[Launch], Launch] = lambda launch: launch,
        planes: Callable[[Floats], Floats] = lambda planes: planes,
        pixels: Callable[[npt.NDArray[np.uint8]], None] = lambda pixels: None,
    ) -> None:
        super().__init__()
        self._kernel, self._flaws = kernel, (launch, planes, pixels)

    def load(self, kernel: Kernel, codes: Mapping[bool, object] = NOTHING) -> Executable:
        return FlawedExecutable(super().load(self._kernel(kernel)), *self._flaws)


class FlawedExecutable:
    tier = 1

    def __init__(
        self,
        sound: Executable,
        launch: Callable[[Launch], Launch],
        planes: Callable[[Floats], Floats],
        pixels: Callable[[npt.NDArray[np.uint8]], None],
    ) -> None:
        self.kernel = sound.kernel
        self._sound, self._launch, self._planes, self._pixels = sound, launch, planes, pixels

    def planes(self, memory: StateMemory, launch: Launch) -> Floats:
        return self._planes(self._sound.planes(memory, self._launch(launch)))

    def rgba8(self, memory: StateMemory, launch: Launch, out: npt.NDArray[np.uint8]) -> None:
        self._sound.rgba8(memory, self._launch(launch), out)
        self._pixels(out)


def rewritten(kernel: Kernel, rewrite: Callable[[Instruction], tuple[Instruction, ...]]) -> Kernel:
    """The kernel with other instructions in place of each in its sections for columns, rows and elements."""
    code = assemble(kernel)
    sections = tuple(
        replace(section, code=tuple(new for old in section.code for new in rewrite(old)))
        if section.rate >= 2
        else section
        for section in code.sections
    )
    return kernel_of(replace(code, sections=sections))


def instead(old: Instruction, *new: Instruction) -> Callable[[Kernel], Kernel]:
    return lambda kernel: rewritten(kernel, lambda found: new if found == old else (found,))


def behind(old: Instruction, *new: Instruction) -> Callable[[Kernel], Kernel]:
    return instead(old, old, *new)


def swap_channels(pixels: npt.NDArray[np.uint8]) -> None:
    pixels[..., :3] = pixels[..., 2::-1].copy()


def brighten(pixels: npt.NDArray[np.uint8]) -> None:
    pixels[..., 1] += 2


def clear(pixels: npt.NDArray[np.uint8]) -> None:
    pixels[..., 3] = 254


def repeat_the_tail(planes: Floats) -> Floats:
    planes[..., 32:] = planes[..., 27:32]
    return planes


ADD, LESS, LESS_OR_EQUAL = Instruction("ADD"), Instruction("LT"), Instruction("LE")
POWER, MULTIPLY = Instruction("CALL", "exp"), Instruction("MUL")

FLAWS = {
    "powers of 2 for those of e": ("display(exp(me@x - me@y))", Flawed(instead(POWER, Instruction("CALL", "exp2")))),
    "powers that are a little large": (
        "display(exp(me@x - me@y))", Flawed(behind(POWER, Instruction("PUSH", 1.0001), MULTIPLY)),
    ),
    "difference for sum": ("display(me@x * 0.3 + me@y)", Flawed(instead(ADD, Instruction("SUB")))),
    "less for at most": ("display(me@px <= me@py)", Flawed(instead(LESS_OR_EQUAL, LESS))),
    "a tick too late": (
        "display(delay(me@x * fract(me@frame * 0.37), 1, 3))",
        Flawed(launch=lambda launch: replace(launch, uniforms={"absframe": launch.uniforms["absframe"] + 1})),
    ),
    "one tick back for two": (
        "v = delay(fract(me@frame * 0.37) + me@x * me@y, 2, 3)\ndisplay(v)",
        Flawed(instead(Instruction("PUSH", 2.0), Instruction("PUSH", 1.0))),
    ),
    "red and blue swapped": ("display(me@x, 0.5, me@y)", Flawed(planes=lambda planes: planes[::-1])),
    "red and blue of pixels swapped": ("display(me@x, 0.5, me@y)", Flawed(pixels=swap_channels)),
    "two levels too bright": ("display(me@x * 0.9, me@y * 0.9, 0.5)", Flawed(pixels=brighten)),
    "alpha": ("display(me@x, me@y, 0.5)", Flawed(pixels=clear)),
    "the end of a row": ("display(hash(me@px, me@py))", Flawed(planes=repeat_the_tail)),
    "pictures a pixel off": (
        'load("grain.png")::img<r, g, b, a>\ndisplay(img@g)',
        Flawed(launch=lambda launch: replace(
            launch, pictures={path: np.roll(picture, 1, axis=1) for path, picture in launch.pictures.items()}
        )),
    ),
    "a loop too short": (
        "spindle f(n) :: o { out o = me@y\n for i in (0 to n) { o += sin(me@x + i) } }\ndisplay(f(me@px / 9) / 9)",
        Flawed(lambda kernel: rewritten(kernel, lambda found: (
            (Instruction("PUSH", 0.75), ADD, found) if found == Instruction("LOAD_INDEX", 0) else (found,)
        ))),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "flawed"), FLAWS.values(), ids=FLAWS.keys())
def test_what_is_wrong_with_a_machine_is_not_explained(text: str, flawed: Flawed) -> None:
    case = case_of(text + "\n")
    assert compare(case, VectorExecutor()).unexplained == ()
    assert compare(case, flawed).unexplained


class FlawedSound(NativeExecutor):
    """Machine code of a kernel in which something is wrong."""

    def __init__(self, flaw: Callable[[Kernel], Kernel]) -> None:
        super().__init__()
        self._flaw = flaw

    def load(self, kernel: Kernel, codes: Mapping[bool, object] = NOTHING) -> Executable:
        return super().load(self._flaw(kernel), codes)


SOUND_FLAWS = {
    "a millionth too much": ("play(me@time * 0.3)", instead(Instruction("PUSH", 0.3), Instruction("PUSH", 0.3000003))),
    "difference for sum": ("play(prev(me@time) * 0.7 + me@time)", instead(ADD, Instruction("SUB"))),
    "one sample back for two": (
        "play(delay(sin(me@time * 999), 2, 3))", instead(Instruction("PUSH", 2.0), Instruction("PUSH", 1.0)),
    ),
    "floors": (
        "play(me@time * 3000.1 - floor(me@time * 3000.1))",
        instead(Instruction("CALL", "floor"), Instruction("CALL", "abs")),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "flaw"), SOUND_FLAWS.values(), ids=SOUND_FLAWS.keys())
def test_what_is_wrong_with_a_sound_is_not_explained(text: str, flaw: Callable[[Kernel], Kernel]) -> None:
    case = sound_case_of(text + "\n", SHORT_MOMENTS)
    assert compare(case, NativeExecutor()).unexplained == ()
    assert compare(case, FlawedSound(flaw)).unexplained


@pytest.mark.long
@pytest.mark.parametrize(
    ("row", "flaw"),
    all_but(
        1,
        [
            (Instruction("SUB"), Instruction("ADD")),
            (Instruction("CALL", "max"), Instruction("CALL", "min")),
            (Instruction("CALL", "floor"), Instruction("CALL", "abs")),
        ],
    ),
    ids=lambda instruction: str(instruction.operand or instruction.op),
)  # fmt: skip
def test_a_wrong_row_is_found_by_the_first_generated_programs(row: Instruction, flaw: Instruction) -> None:
    flawed = Flawed(instead(row, flaw))
    cases = (case for case in map(case_of_seed, range(40)) if flawed.load(case.kernel).kernel != case.kernel)
    missed = list(takewhile(lambda case: not compare(case, flawed).unexplained, cases))
    assert len(missed) < 4


def test_a_hard_edge_is_explained_on_both_sides_and_nothing_beyond() -> None:
    case = case_of("display(fract((me@x + me@y) * 3e5) * 0.5)\n")
    outcome = compare(case, VectorExecutor())
    assert outcome.explained > 10
    assert not outcome.unexplained
    assert compare(case, Flawed(planes=lambda planes: planes + 1.1)).unexplained


def test_what_is_explained_of_one_value_does_not_excuse_its_neighbours() -> None:
    text = "a = fract((me@x + me@y) * 3e5)\ndisplay(a, me@x * 0.7, 0.5)\n"
    outcome = compare(case_of(text), Flawed(behind(Instruction("PUSH", 0.7), Instruction("PUSH", 1.01), MULTIPLY)))
    assert {difference.output for difference in outcome.unexplained} == {1}


def test_memory_moves_on_from_moved_numbers() -> None:
    """A difference of the last digit that grows from tick to tick is explained, since the reference's grows as well."""
    text = "t<v> = fract(prev(t@v) * 1000 + me@x + 0.1)\ndisplay(t@v)\n"
    moments = tuple(tick / 60 for tick in range(6))
    outcome = compare(case_of(text, moments), VectorExecutor())
    assert outcome.off[-1] > 0
    assert not outcome.unexplained


def test_no_digits_explain_a_remainder_of_a_whole_period() -> None:
    """Neither next to it, where all digits are lost, nor at places that single precision cannot distinguish from it."""
    for text in ("display((me@px * 1000003.7e7) % 7)\n", "display(fract((me@x - 0.5) * 1e-9 * me@y))\n"):
        case = case_of(text)
        assert compare(case, VectorExecutor()).unexplained == ()
        period = 7.0 if "7)" in text else 1.0
        flawed = Flawed(planes=lambda planes, limit=period: np.where(planes > 0.8 * limit, limit, planes))  # type: ignore[misc]
        assert compare(case, flawed).unexplained
        assert compare(case, Flawed(planes=lambda planes: np.where(planes < 0.5, -1e-9, planes))).unexplained


def test_what_moves_stays_within_its_period() -> None:
    text = "r = ((me@x - 0.5) * 1e-9 + floor(me@px) * 1000003.7) % 0.7\ndisplay(r >= 0 and r < 0.7)\n"
    case = case_of(text)
    for seed in range(20):
        found = MovedReference(case.kernel).play(case.launches, [(0, at) for at in range(37)], seed)
        np.testing.assert_array_equal(found[:, 0], 1)


def test_a_failing_program_is_made_small_and_told() -> None:
    flawed = Flawed(instead(POWER, Instruction("CALL", "exp2")))
    text = "a = me@x * 2\nb = me@y\ndisplay(mix(a, (exp((b + a)) * 0.5), 0.5), (b * 0.25), 0.5)\n"
    case = case_of(text)
    told = report(case, flawed, compare(case, flawed), "program 7")
    assert told.startswith("program 7")
    assert text in told
    small = told.partition("A smaller program that does the same:\n")[2]
    assert "exp(" in small
    assert "0.25" not in small
    assert re.search(r"tick 0, row \d, column \d+, output 0: .* not .*; moved", small)


def test_shrinking_ends_with_what_is_needed() -> None:
    text = "spindle f(a) :: o {\n  out o = a\n}\nx = (f((1 + 2)))\ndisplay((3 * (4 + x)), (5 - (6)))\n"
    assert "(6)" in shrunk(text, lambda smaller: "(6)" in smaller)
    assert len(shrunk(text, lambda smaller: "display" in smaller and "(6)" in smaller)) < len("display(0, (6))\n") + 4
