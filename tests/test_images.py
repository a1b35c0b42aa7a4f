"""`image(e)` keeps what e is at every pixel of a tick: what remaps of it read, in which stages it is computed, and what
it is where there is no picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.runtime.live.test_slots import edited
from tests.support.devices import DRAWING, cuda, device, embedded_graphics, executor_on, graphics, opencl, wgpu
from tests.support.parity.cases import Case, case_of
from tests.support.parity.rule import compare
from tests.test_generated_parity import SecondTier
from weft.backends.executors import Executor
from weft.backends.launch import bytes_needed
from weft.backends.native.executor import NativeExecutor
from weft.backends.select import operations
from weft.backends.vector.machine import VectorExecutor
from weft.backends.vm import ReferenceExecutor
from weft.backends.wasm import WasmExecutor
from weft.codegen.bytecode import disassemble
from weft.codegen.kernel import Kernel, Unit, content_hash, from_json, to_json
from weft.contexts import ContextTable
from weft.errors import Source, WeftError
from weft.graph.draw import to_dot, to_json as graph_json, to_mermaid, to_text
from weft.names import StrandRef
from weft.runtime.compiling.kept import KeptBuild
from weft.runtime.compiling.stages import Build, Request, build
from weft.runtime.hands.clock import Moment
from weft.runtime.inspect.strands import Evaluation, compile_alone, read_patch

__all__ = ["cuda", "device", "embedded_graphics", "graphics", "opencl", "wgpu"]


def built(text: str) -> Build:
    return build(Request(Source("patch.weft", text), ContextTable()))


def unit_of(text: str) -> Unit:
    (unit,) = built(text).units
    return unit


def kernel_of(text: str) -> Kernel:
    return unit_of(text).kernel


# --- values ---

WIDTH, HEIGHT = 37, 5


@cache
def shown(text: str, shape: tuple[int, int] = (HEIGHT, WIDTH)) -> NDArray[np.float64]:
    """The outputs in the first tick, by the reference."""
    return case_of(text + "\n", moments=(0.5,), shape=shape).expected[0]


def test_at_the_middle_of_a_pixel_it_is_the_expression() -> None:
    wild = "fbm(me@x * 9, me@y * 7, me@time)"
    np.testing.assert_array_equal(shown(f"display(image({wild}))"), shown(f"display({wild})"))


def test_between_pixels_it_is_linear() -> None:
    wild = "hash(me@px, me@py)"
    found = shown(f"display(image({wild})(me@x ~ 3 * me@x - 1, me@y ~ 0.5 * me@y + 0.25))")[0]
    pixels = shown(f"display({wild})")[0]
    x, y = ((np.arange(size) + 0.5) / size for size in (WIDTH, HEIGHT))
    places, rows = (3 * x - 1) * WIDTH - 0.5, (0.5 * y + 0.25) * HEIGHT - 0.5
    across = np.array([np.interp(places, np.arange(WIDTH), row) for row in pixels])
    expected = np.array([np.interp(rows, np.arange(HEIGHT), column) for column in across.T]).T
    np.testing.assert_allclose(found, expected, atol=1e-12)


TEXTS: Mapping[str, str] = {
    "a spindle that looks around": (
        "spindle around(s) :: v { i = image(s); v = (i(me@x ~ me@x - 0.1) + i + i(me@y ~ me@y + 0.1)) / 3 }\n"
        "noisy<v> = simplex(me@x * 9, me@y * 5, me@time)\ndisplay(around(noisy@v), around(around(noisy@v)), noisy@v)\n"
    ),
    "columns and rows": "a<v> = image(sin(me@x * 9))\nb<v> = image(a@v(me@x ~ me@y))\ndisplay(b@v(me@y ~ me@x))\n",
    "memory": (
        "i<v> = image(prev(t@v)(me@x ~ 1 - me@x))\nt<v> = mix(hash(me@px, me@py), i@v(me@x ~ me@x * 0.9 + 0.05), 0.7)\n"
        "display(t@v, i@v, image(hold(me@x * me@time, floor(me@time * 9)))(me@x ~ me@y))\n"
    ),
    "levels": (
        "spot = hash(me@px, me@py, me@absframe)\nhalf = image(image(spot), 1)\nquarter = image(half(me@y ~ me@x), 2)\n"
        "wild<v> = image(simplex(me@x * 9, me@y * 5) * mouse@x + me@px, 1)\n"
        "display(quarter(me@x ~ 1 - me@x), half + image(spot, 9), half(me@x ~ me@x + 1 / me@width) - wild@v * 0.1)\n"
    ),
    "memory at levels": (
        "t<v> = mix(hash(me@px, me@py), i@v(me@x ~ me@x * 0.9), 0.7)\n"
        "i<v> = image(prev(t@v) + delay(t@v, max(1, 4 * me@x), 4) * me@y, 1)\n"
        "h<v> = image(hold(t@v, floor(me@x * 3) == me@absframe), 2)\ndisplay(t@v, i@v, h@v(me@y ~ me@x))\n"
    ),
    "two levels at one place": (
        "spindle both(fine, coarse, by) :: <p, q> { p = fine(me@x ~ me@x + by); q = coarse(me@x ~ me@x + by) }\n"
        "both(image(me@x), image(me@x, 2), 0.1)::s<p, q>\ndisplay(s@p, s@q, 0)\n"
    ),
    "more than a card draws at once": (
        "many = image(<hash(me@px, me@py, k) for k in (1 to 9)>)\n"
        "display(mean(many(me@x ~ 1 - me@x)), many[0], many[8])\n"
    ),
    "pictures and the mouse": (
        'load("card.png")::card<r, g, b, a>\ni = image(card * mouse@x)\ndisplay(i@rgb(me@x ~ me@x + 0.2 * i[1]))\n'
    ),
}  # fmt: skip
MACHINES: Mapping[str, Callable[[], Executor]] = {
    "vector": VectorExecutor, "native": NativeExecutor, "second tier": SecondTier,
    "wasm": WasmExecutor,
}  # fmt: skip


@cache
def case(name: str) -> Case:
    return case_of(TEXTS[name], moments=tuple(tick / 60 for tick in range(3)), shape=(HEIGHT, WIDTH))


# The second tier takes LLVM a second for most texts, but not for these.
QUICK = ("columns and rows", "two levels at one place")
RUNS = [
    pytest.param(machine, name, marks=[pytest.mark.long] * (machine == "second tier" and name not in QUICK))
    for machine in MACHINES
    for name in TEXTS
]


@pytest.mark.parametrize(("machine", "name"), RUNS)
def test_machines_agree(machine: str, name: str) -> None:
    executor = MACHINES[machine]()
    assert compare(case(name), executor).unexplained == ()
    assert not executor.refusals.take()


@pytest.mark.long
@pytest.mark.parametrize("name", ["levels", "memory at levels"])
def test_cards_agree(name: str, request: pytest.FixtureRequest) -> None:
    for language in DRAWING:
        assert compare(case(name), executor_on(language, request)).unexplained == ()


# --- levels ---


def level(values: NDArray[np.float64], number: int) -> NDArray[np.float64]:
    """A level of an image with these values, which is linear between the middles of pixels."""
    height, width = values.shape
    rows, columns = (
        (np.arange(count) + 0.5) / count * side - 0.5 for side in values.shape for count in [-(-side >> number)]
    )
    across = np.array([np.interp(columns, np.arange(width), row) for row in values])
    return np.array([np.interp(rows, np.arange(height), column) for column in across.T]).T


@pytest.mark.parametrize(("number", "shape"), [(1, (4, 8)), (1, (5, 37)), (2, (5, 37)), (3, (1, 1)), (14, (5, 37))])
def test_a_level_has_half_the_width_and_height(number: int, shape: tuple[int, int]) -> None:
    wild = "hash(me@px, me@py)"
    expected = level(shown(f"display({wild})", shape)[0], number)
    rows, columns = expected.shape
    # Each pixel of the picture looks at the middle of the pixel of the level in which it lies.
    middles = f"me@x ~ (floor(me@x * {columns}) + 0.5) / {columns}, me@y ~ (floor(me@y * {rows}) + 0.5) / {rows}"
    (found,) = shown(f"display(image(image({wild}), {number})({middles}))", shape)
    down, across = ((np.arange(s) + 0.5) / s * n for s, n in zip(shape, expected.shape, strict=True))
    np.testing.assert_allclose(found, expected[np.ix_(down.astype(int), across.astype(int))], atol=1e-12)


def test_the_first_level_of_an_image_has_the_means_of_four() -> None:
    wild = shown("display(hash(me@px, me@py))", (4, 8))[0]
    np.testing.assert_allclose(level(wild, 1), wild.reshape(2, 2, 4, 2).mean((1, 3)))


def test_a_level_is_computed_for_its_own_pixels_only() -> None:
    kernel = kernel_of("display(image(fbm(me@x * 9, me@y * 9), 2)(me@x ~ me@x + 0.1))")
    assert [stage.level for stage in kernel.stages] == [2]
    assert bytes_needed(kernel, (9, 17)) == 3 * 5 * 4
    assert operations(kernel, (90, 160)) < operations(kernel_of("display(fbm(me@x * 9, me@y * 9))"), (90, 160)) / 2


def test_images_of_several_levels_are_several() -> None:
    text = "a = hash(me@px, me@py)\nb = image(a)\nc = image(a, 1)\nd = image(a, 1)\ndisplay(b, c, d(me@x ~ me@y))"
    kernel = kernel_of(text)
    assert sorted((stage.level, len(list(stage.stores()))) for stage in kernel.stages) == [(0, 1), (1, 1)]
    assert from_json(to_json(kernel)) == kernel
    assert content_hash(kernel_of(text.replace("1)\nd", "2)\nd"))) != content_hash(kernel)


@pytest.mark.parametrize("statement", ["audio", "compute"])
def test_without_a_picture_a_level_changes_nothing(statement: str) -> None:
    kept, plain = (
        unit_of(f"s<v> = sin(me@x * 9 + me@time)\n{statement}({of}(me@x ~ 0.3))") for of in ("image(s@v, 3)", "s@v")
    )
    assert kept.hash == plain.hash


def test_a_level_that_is_tuned_is_built_again() -> None:
    kept = KeptBuild()
    for number in (1, 2, 0, 1):
        source = Source("p.weft", f"a<v> = me@x * me@y\ndisplay(image(a@v, {number})(me@x ~ me@y))\n")
        found, fresh = (build(Request(source, ContextTable()), kept=each).units[0] for each in (kept, None))
        assert (found.hash, found.kernel.slots[0].level) == (fresh.hash, number)


def test_the_listing_names_the_level() -> None:
    (stage,) = kernel_of("display(image(me@x * me@y, 2)(me@x ~ me@y))").stages
    assert "image of level 2 · of this tick" in disassemble(stage)


# --- stages ---

BLURRED = (
    "spindle soft(s) :: v { row = image((s(me@x ~ me@x - 0.1) + s) / 2); v = row(me@y ~ me@y + 0.1) }\n"
    "s<v> = image(fbm(me@x * 9, me@y * 9))\n"
)


def planes(kernel: Kernel) -> list[int]:
    """How many images each stage computes."""
    return [sum(1 for _ in stage.stores()) for stage in kernel.stages]


def test_images_come_in_the_order_in_which_they_need_one_another() -> None:
    assert planes(kernel_of(BLURRED + "display(soft(s@v))")) == [1, 1]
    text = "a = image(b(me@x ~ 1 - me@x))\nb = image(me@x)\nc = image(me@y)\ndisplay(a(me@y ~ 1), c(me@y ~ me@x), 0)"
    assert planes(kernel_of(text)) == [2, 1]


def test_a_stage_has_as_many_images_as_a_card_draws_at_once() -> None:
    assert planes(case("more than a card draws at once").kernel) == [6, 3]


def test_each_member_of_a_bundle_has_an_image() -> None:
    """Also where only some are shown, and others were evaluated first."""
    text = (
        "spindle f(s) :: v { k = image(s); all = min(count(k), 1); v = k(me@x ~ me@x * me@x) * all }\n"
        "img<r, g, b> = <hash(me@px), hash(me@py), hash(me@px, me@py)>\no = f(img)\n"
    )
    assert planes(kernel_of(text + "display(o)")) == [3]
    assert planes(kernel_of(text + "display(o[2])")) == [1]
    np.testing.assert_array_equal(shown(text + "display(o[2])")[0], shown(text + "display(o)")[2])
    graph = built(text + "display(o[2])").graph
    assert to_text(graph).count("image(o@") == to_mermaid(graph).count('["image<br>') == len(graph.subgraphs[0].images)


def test_equal_images_are_one() -> None:
    once = kernel_of(BLURRED + "display(soft(s@v))")
    twice = kernel_of(BLURRED + "display(soft(s@v) * 0.5 + 0.5 * soft(s@v))")
    assert planes(twice) == planes(once)
    assert [list(map(len, stage.sections)) for stage in twice.stages] == [
        list(map(len, stage.sections)) for stage in once.stages
    ]


def test_what_nothing_reads_is_not_kept() -> None:
    assert kernel_of(BLURRED + "display(me@x)").slots == ()
    assert kernel_of("i = image(me@x * me@y)\ndisplay(select(0, i(me@x ~ 0.5), me@x))").stages == ()


def test_what_an_image_keeps_is_not_computed_again() -> None:
    noisy = "n = fbm(me@x * 9, me@y * 9)\n"
    alone, both = (kernel_of(noisy + f"display({e})") for e in ("n", "n + image(n)(me@x ~ me@x + 0.1)"))
    assert sum(map(len, both.sections)) < 30 < sum(map(len, alone.sections))


def test_without_images_nothing_changes() -> None:
    unit = unit_of("display(prev(me@x * me@y))")
    assert (unit.kernel.stages, unit.subgraph.images) == ((), ())
    assert unit.hash == content_hash(unit.kernel)


def test_it_is_written_and_read_without_loss() -> None:
    kernel = kernel_of(BLURRED + "display(soft(s@v))")
    assert from_json(to_json(kernel)) == kernel
    assert content_hash(from_json(to_json(kernel))) == content_hash(kernel)
    other = kernel_of(BLURRED.replace("0.1", "0.2") + "display(soft(s@v))")
    assert content_hash(other.alone) != content_hash(kernel.alone) or content_hash(other) != content_hash(kernel)


def test_memory_counts_each_image_once() -> None:
    assert bytes_needed(kernel_of(BLURRED + "display(soft(s@v))"), (9, 16)) == 2 * 9 * 16 * 4


def test_the_graph_shows_them() -> None:
    graph = built(BLURRED + "display(soft(s@v))\ncompute(soft(s@v))").graph
    assert [image.of for image in graph.images] == [next(iter(graph.strands())), "display"]
    assert {s.context: len(s.images) for s in graph.subgraphs} == {"visual": 2, "compute": 0}
    assert to_text(graph).count("image(") == 2
    assert to_dot(graph).count('label="image') == to_mermaid(graph).count('["image<br>') == 2
    assert len(graph_json(graph)["images"]) == 2


# --- contexts without a picture ---


@pytest.mark.parametrize("statement", ["audio", "compute"])
def test_without_a_picture_it_is_the_expression(statement: str) -> None:
    kept, plain = (
        unit_of(f"s<v> = sin(me@x * 9 + me@time)\n{statement}({of}(me@x ~ 0.3))") for of in ("image(s@v)", "s@v")
    )
    assert kept.hash == plain.hash


def test_a_picture_and_a_sound_of_one_strand_each_compute_it() -> None:
    text = "s<v> = image(sin(me@x * 9))\ndisplay(s@v(me@y ~ me@x))\naudio(s@v)"
    graph = built(text).graph
    (strand,) = graph.strands().values()
    assert (strand.tied, strand.contexts) == (None, ("audio", "visual"))
    assert {s.context: len(s.images) for s in graph.subgraphs} == {"visual": 1, "audio": 0}


def test_a_map_of_the_time_stops_at_it() -> None:
    text = "s<v> = image(me@x + me@time)\npast = s@v(me@time ~ me@time - 1)\n"
    with pytest.raises(WeftError) as raised:
        built(text + "display(past)")
    (found,) = raised.value.diagnostics
    assert (found.code, found.span and found.span.text) == ("map-reaches-state", "me@time ~ me@time - 1")
    assert found.hint == "map the time inside of image(…)"
    built(text + "audio(past)")


# --- performances ---


def test_nothing_of_it_goes_on_over_a_save() -> None:
    """An image is not among what continues, and is computed in the new size at once."""
    before = "i<v> = image(me@x)\ndisplay(i@v(me@x ~ 1 - me@x))\n"
    after = "i<v> = image(me@x * 2)\nseen<v> = prev(i@v(me@x ~ me@y))\ndisplay(seen@v)\ncompute(1)\n"
    found = edited(before, after, ((8, 4), (6, 2)))
    assert not found.loaded.kept
    np.testing.assert_allclose(found.image("visual/i@v/image/0"), np.tile((np.arange(6) + 0.5) / 3, (2, 1)), rtol=1e-6)
    np.testing.assert_allclose(found.image("visual/seen@v/prev/0"), [[0.5] * 6, [1.5] * 6], rtol=1e-6)


def test_a_place_is_evaluated_in_the_whole_picture() -> None:
    text = "me<width> = 4\nme<height> = 2\ni<v> = image(me@x * me@x)\nshifted<v> = i@v(me@x ~ me@x + 0.25)\n"
    source, contexts = Source("patch.weft", text), ContextTable()
    patch = read_patch(source, contexts)
    unit = compile_alone(source, contexts, patch, StrandRef("shifted", "v"), {}).unit
    assert unit is not None
    for executor in (ReferenceExecutor(), NativeExecutor()):
        evaluation = Evaluation(unit, patch.settings, executor, ReferenceExecutor(), lambda: None)
        moment = Moment(0, 0.0, 1 / 60, {})
        assert evaluation.point(0.25, 0.3, 0.0, moment, 0) == pytest.approx((0.375**2 + 0.625**2) / 2)


def test_a_still_picture_with_images_is_drawn_once() -> None:
    assert not kernel_of("display(image(me@x)(me@x ~ me@y))").remembers
    assert kernel_of("display(image(prev(me@x))(me@x ~ me@y))").remembers
