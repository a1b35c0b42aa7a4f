"""Pictures as lists of calls: the same values as the reference machine, and a cache that takes only its own files."""

from __future__ import annotations

import functools
import random
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.exprs import Exprs, lowered
from tests.support.kernels import agree, compiled, kernel, kernel_by, launch_of, run
from tests.support.mutations import programs
from weft.backends.launch import StateMemory
from weft.backends.native.executor import NativeExecutor
from weft.backends.native.llvm import NativeCode, handlers_object, host, plainest, runs_here
from weft.backends.vm import Interpreter, ReferenceExecutable, ReferenceExecutor
from weft.codegen.native import tiles
from weft.codegen.native.handlers import FUSIONS, RECORD, TILE, UNIFORM, handler_names
from weft.codegen.native.plan import Form, plan
from weft.codegen.native.target import ISAS, SINGLE
from weft.codegen.native.tiles import TileEmitter, TileProgram, emit_tiles
from weft.codegen.native.writer import COLUMNS, ELEMENTS, ROWS
from weft.codegen.values import SIGNATURES, Line, Node, Section
from weft.contexts import ContextTable
from weft.errors import Source
from weft.ir.rates import Rate
from weft.media.sampled import header_of
from weft.runtime.compiling.kept import KeptBuild
from weft.runtime.compiling.stages import Request, build

BENCH = Path(__file__).parents[3] / "patches" / "bench"

TEXTS = {
    **{name: (BENCH / f"{name}.weft").read_text() for name in ("v1", "v2", "v3")},
    "lines": "display(<me@x, me@y, 0.5>)",
    "bools": "display(<(me@x > 0.5 and me@y < 0.3), select((me@x > me@y), me@x, 1 - me@y), (me@x > 0.2)>)",
    "once": "display(<me@time, 0.5, 0.25>)",
    "remainders": "display(<me@x * 9 % 2.5, me@x * 9 % 1, (me@x + me@y * 9) % (me@x + 0.1)>)",
    "past": """a = fract(me@x * 3 + me@y * me@time)
        display(<delay(a, 3, 4), delay(a, me@x * 4, 5), delay(me@time, me@x * 9, 9)>)""",
    "sampled": """a<v> = fract(me@x * 3 + me@y * me@time)
        cache(a@v, 4)::c<v>
        one = prev(a@v)(me@x ~ me@x + 0.3, me@y ~ me@y * 0.7)
        two = prev(a@v)(me@x ~ me@y, me@y ~ me@x)
        display(<one, two, c@v(c@k ~ me@x * 4, me@x ~ me@y, me@y ~ me@x)>)""",
    "sampled along an axis": """a<v> = fract(me@x * 3 + me@y * me@time)
        cache(a@v, 4)::c<v>
        one = prev(a@v)(me@x ~ me@x + 0.3) + prev(a@v)(me@y ~ me@y * 0.7)
        two = prev(a@v)(me@y ~ me@y * 0.7 + me@x * 0.1)
        three = c@v(c@k ~ me@x * 4, me@y ~ me@y * 0.8)
        four = prev(a@v)(me@x ~ 0.3) + c@v(c@k ~ me@y * 4, me@x ~ 0.6)
        display(<one / 2, two, (three + four + c@v(c@k ~ me@x * 4, me@x ~ me@x * 0.8)) / 4>)""",
    "loops": """spindle sums(x, y) :: <a, b, c> {
          a = 0
          for i in (1 to 9 + floor(me@time)) { a += sin(x * i + y) / i }
          b = 0
          for i in (1 to 3) { for j in (i to 5) { b += x * j } }
          for i in (1 to 1 + x * 7) { for j in (1 to y * 5) { b += i / (j + y) } }
          c = x
          next = y
          for i in (1 to 5) { before = c
            c = next + 0.1 * i
            next = before * 0.5 }
        }
        sums(me@x, me@y)::s<a, b, c>
        display(<s@a, fract(s@b), fract(s@c)>)""",
    "crossing": """spindle summed(a, b, c) :: v {
          v = a * c
          for i in (1 to 3 + b) { v += a * i + sin(b * i) * c }
          v = v * 0.1 + sin(me@x * 7) * sin(me@y * 7)
        }
        first = sum(<sin(me@x * i) * sin(me@y * i) for i in (1 to 9)>)
        second = summed(sin(me@x * 3), sin(me@y * 4), sin(me@x * 7))
        last = sum(<sin(me@x * i) * cos(me@y * i) for i in (1 to 9)>) + prev(first) * prev(second)
        display(<fract(first), fract(second), fract(last)>)""",
    "functions": "display(<exp(me@x) / 3, log(1 + me@x * me@y), fract(me@x * 9) ^ 2.2>)",
}


_SOME = {"v1", "v2", "v3", "fifty", "twohundred", "plasma"}
PATCHES = [
    pytest.param(path, marks=[] if path.stem in _SOME else pytest.mark.long) for path in programs("patches")
]
HERE = [name for name, isa in ISAS.items() if runs_here(isa)]


def drawn(executable, made, shape):
    """The last of a few frames."""
    found, memory = np.zeros((*shape, 4), np.uint8), StateMemory(made.slots, shape)
    for frame in range(6):
        executable.rgba8(memory, launch_of(shape, 1.5 + frame / 7), found)
    return found.astype(int)


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize(("shape", "isa"), [((3, 1), None), *(((2, TILE + 17), isa) for isa in HERE)], ids=str)
def test_a_list_of_calls_draws_what_the_reference_machine_draws(name, shape, isa):
    kernel, executor = kernel_by(TEXTS[name]), NativeExecutor(isa and plainest(ISAS[isa]))
    code = executor.translate(kernel, True)
    assert isinstance(code, TileProgram)
    found = drawn(executor.load(kernel, {True: code}), kernel, shape)
    assert np.abs(found - drawn(ReferenceExecutable(kernel), kernel, shape)).max() <= 1


def test_the_texts_need_every_kind_of_handler():
    """All but those that read pictures and sounds, which other tests do, and those of several operations."""
    special = {name for name in handler_names() if name.startswith("_") and not name.startswith("_fused")}
    used = set[str]().union(*(names_of(emit_tiles(kernel_by(text), packed=True)) for text in TEXTS.values()))
    assert special - used == {"_picture", "_fetch"}


@pytest.mark.parametrize("path", PATCHES, ids=lambda path: path.stem)
def test_a_list_with_other_numbers_is_the_one_that_these_would_have(path):
    chance, emitter = random.Random(path.stem), TileEmitter()
    for unit in units_of(path.read_text(), str(path)):
        made = unit.kernel
        if unit.subgraph.context != "visual" or made.stages or plan(made).first is not Form.LIST:
            continue
        if not emitter.emit(made, True):
            continue
        served = tried = 0
        while tried < 8 or (not served and tried < 64):  # some numbers, such as 0 and 1, are in the code
            tried += 1
            made = with_another_number(made, chance)
            again = emitter.emit_again(made, True)
            served += again is not None
            assert emitter.emit(made, True) == (again or emit_tiles(made, True)) == emit_tiles(made, True)
            if chance.random() < 0.2:
                made = unit.kernel
        assert served


def test_kernels_that_differ_in_numbers_share_the_interpreter_of_their_prologue(monkeypatch):
    """It is made when a kernel is loaded, since a frame would have to wait for it."""
    (unit,) = units_of("a = sin(me@time * 0.3) + 0.2\ndisplay(<me@x * a, a * 0.7, a>)")
    other = replace(unit.kernel, numbers=tuple(0.9 * number for number in unit.kernel.numbers))
    executor = NativeExecutor()
    loaded = [executor.load(each, {True: executor.translate(each, True)}) for each in (unit.kernel, other)]
    monkeypatch.setattr(Interpreter, "of_prologue", None)
    for executable, each in zip(loaded, (unit.kernel, other), strict=True):
        assert np.abs(drawn(executable, each, (4, 9)) - drawn(ReferenceExecutable(each), each, (4, 9))).max() <= 1


def units_of(text, path="p.weft"):
    """The units of a text with its numbers as inputs."""
    return build(Request(Source(path, text), ContextTable(), probe=header_of), kept=KeptBuild()).units


def with_another_number(kernel, chance):
    """A kernel with another value of one of its numbers."""
    numbers, at = [*kernel.numbers], chance.randrange(len(kernel.numbers))
    before = numbers[at]
    numbers[at] = chance.choice([before * 0.999, 0.0, 1.0, -before, chance.choice(numbers), chance.random()])
    return replace(kernel, numbers=tuple(numbers))


TUNED = "a = me@x * 2.5 + 0.75\nb = delay(a, 2, 3)\ndisplay(<a % 1.5 + sin(b), a * a * 0.6, b * 0.3 + me@y * 0.2>)"


@pytest.mark.parametrize(
    ("edit", "serves"),
    [
        (("2.5", "2.25"), True),
        (("0.75", "0.8"), True),
        (("0.75", "2.5"), True),  # two numbers that are equal
        (("1.5", "1.6"), False),  # the remainder is computed with it
        (("delay(a, 2", "delay(a, 1"), False),  # the place in a ring is part of a call
        (("a * 0.6", "a * 0.7"), False),  # it is merged with the levels of a pixel
        (("y * 0.2", "y * 0.25"), True),
    ],
)
def test_what_a_list_of_calls_serves_again_for(edit, serves):
    kernels = [units_of(text)[0].kernel for text in (TUNED, TUNED.replace(*edit))]
    emitter, executor = TileEmitter(), NativeExecutor()
    emitter.emit(kernels[0], True)
    assert (emitter.emit_again(kernels[1], True) is not None) == serves
    for made in (*kernels, kernels[0]):
        assert executor.translate(made, True) == emit_tiles(made, True)
        shape, code = (3, 40), {True: executor.translate(made, True)}
        found = drawn(executor.load(made, code), made, shape)
        assert np.abs(found - drawn(ReferenceExecutable(made), made, shape)).max() <= 1


def test_the_elements_of_a_picture_serve_another_that_differs_elsewhere(monkeypatch):
    """A summand changes what is computed by column, but not the elements."""
    emitted = []
    emit = tiles._emitted
    monkeypatch.setattr(tiles, "_emitted", lambda name, *others: emitted.append(name) or emit(name, *others))
    text = "display(fract(me@y * sin((me@x - 0.5) * 3) + cos((me@x - 0.5) * {})))"
    emitter, (one, other) = TileEmitter(), (units_of(text.format(factor))[0].kernel for factor in ("5", "5 + me@x"))
    emitter.emit(one, True)
    assert emitter.emit_again(other, True) is None
    emitter.emit(other, True)
    assert emitted == ["elements", "columns", "rows", "columns", "rows"]
    assert emitter.emit(other, True) == emit_tiles(other, True)


def names_of(code):
    """The handlers that a program calls."""
    records = [np.frombuffer(words, np.int64).reshape(-1, RECORD)[1:, 0] for _, words in code.programs]
    return {handler_names()[place] for place in np.concatenate(records)}


WIDTH = 50


@pytest.mark.parametrize("at", range(len(FUSIONS)))
def test_several_operations_are_one_call(at):
    made = pattern_kernel(FUSIONS[at])
    assert f"_fused{at}" in names_of(emit_tiles(made, packed=False))
    found, expected = (run(made, machine, (3, WIDTH)) for machine in ("tiles", "vm"))
    assert agree("tiles", found, expected)
    assert expected.std() > 0


def pattern_kernel(pattern):
    """A kernel of one output, which a pattern computes from the coordinates and constants."""
    places = (("x", Rate.COLUMN), ("y", Rate.ROW))
    x, y = (Node("line", (), "float", Line("coord", name, rate, "float")) for name, rate in places)
    nodes = []

    def add(op, *args):
        nodes.append(Node(op, args, SIGNATURES[op][1]))
        return nodes[-1]

    @functools.cache
    def leaf(at, kind, is_shift):
        if kind == "float":
            return (x, y)[at] if at < 2 else Node("const", (), "float", 0.3 + at / 9)
        if at:
            return Node("u32", (), "u32", 7 + at if is_shift else 0x9E37_79B1 >> at)
        return add("bits_of", whole())

    @functools.cache
    def whole():
        return add("mul", x, Node("const", (), "float", float(WIDTH)))

    @functools.cache
    def made(part):
        op, *operands = part
        if op == "u32":
            return Node(op, (), "u32", *operands)
        if op == "bits_of":
            return add(op, whole())
        kinds = SIGNATURES[op][0]
        args = [
            Node("const", (), "float", each) if isinstance(each, float)
            else leaf(each, kind, op == "bits_shr" and each > 0) if isinstance(each, int) else made(each)
            for each, kind in zip(operands, kinds, strict=True)
        ]  # fmt: skip
        return add(op, *args)

    value = made(pattern)
    if value.kind == "u32":
        value = add("bits_add", value, Node("u32", (), "u32", 77))
        value = add("bits_top", add("bits_mul", value, Node("u32", (), "u32", 0x9E37_79B1)))
    return replace(kernel([("PUSH", 0.0)]), sections=(Section(Rate.ELEMENT, tuple(nodes), (value,)),))


def test_the_second_tier_takes_over():
    kernel, executor = kernel_by(TEXTS["v2"]), NativeExecutor()
    executable = executor.load(kernel, {True: executor.translate(kernel, True)})
    assert executable.tier == 1
    better = executor.translate(kernel, True, 2)
    assert isinstance(better, NativeCode)
    executable.upgrade(better)
    assert executable.tier == 2


def test_a_picture_too_large_for_llvm_is_a_list_of_calls():
    e = Exprs()
    total = sum((e("exp", e.coord("x") * e.coord("y") / -n) for n in range(1, 500)), e.coord("y"))
    made, executor = compiled(lowered(total)), NativeExecutor()
    assert (executor.plan(made).first, executor.plan(made).second) == (Form.LIST, None)
    assert isinstance(executor.translate(made, True), TileProgram)
    assert executor.translate(made, True, 2) is None
    found, expected = (
        each.load(made).planes(StateMemory(()), launch_of((3, 40))) for each in (executor, ReferenceExecutor())
    )
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_the_pictures_of_some_windows_serve_again(monkeypatch):
    """Numbers are tuned in patches of several windows, whose images are pictures, too."""
    emitted = []
    make = tiles._emitted
    monkeypatch.setattr(tiles, "_emitted", lambda name, *rest: emitted.append(name) or make(name, *rest))
    pictures = [kernel_by(f"display(sin(me@x * {n + 2}) {'+ me@y * sin(me@time)' * n})") for n in range(1, 9)]
    emitter = TileEmitter()
    for made in pictures:
        emitter.emit(made, True)
    assert len(emitted) == 3 * len(pictures)
    for made in pictures:
        emitter.emit(made, True)
    assert len(emitted) == 3 * len(pictures)


def test_memory_of_values_serves_others_after_their_last_use():
    """However many columns and rows there are, few are needed at once."""
    count = 120
    lines = [f"wave{n} = sin(me@x * {n}.5) * sin(me@y * {n}.25)" for n in range(1, count + 1)]
    made = kernel_by("\n".join([*lines, f"display({' + '.join(f'wave{n}' for n in range(1, count + 1))})"]))
    programs = dict(emit_tiles(made, True).programs)
    assert set(programs) == {ELEMENTS, COLUMNS, ROWS}
    for words in programs.values():
        (room,) = struct.unpack_from("<q", words)
        numbers = count * UNIFORM[SINGLE] * SINGLE.bytes
        assert (room - numbers) / (TILE * SINGLE.bytes) < count / 3


@pytest.mark.long
def test_the_cache_takes_only_whole_files_of_this_user(tmp_path):
    processor, folder = host(), tmp_path / "code"
    code = handlers_object(processor, SINGLE, folder)
    (kept,) = folder.iterdir()
    whole = kept.read_bytes()
    for damage in (whole[:-1], b"", whole[:-1] + bytes([whole[-1] ^ 1])):
        kept.write_bytes(damage)
        assert handlers_object(processor, SINGLE, folder) == code
        assert len(kept.read_bytes()) == len(whole)
    before = kept.stat().st_ino
    assert handlers_object(processor, SINGLE, folder) == code
    assert kept.stat().st_ino == before
    for place, mode in ((kept, 0o666), (folder, 0o777)):
        place.chmod(mode)
        assert handlers_object(processor, SINGLE, folder) == code
        assert kept.stat().st_ino != before
        before = kept.stat().st_ino
    folder.chmod(0o700)
