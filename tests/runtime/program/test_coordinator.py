"""Programs of several subgraphs: order, reading across contexts, and what continues when one program follows
another."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from weft.backends.base import Env, MemoryPool
from weft.backends.registry import load_registry, register_backend
from weft.backends.select import choose, parse_request
from weft.contexts import AUDIO, COMPUTE, VISUAL, ContextTable
from weft.errors import Source, WeftError
from weft.names import StrandRef
from weft.runtime.compiling.stages import Request, build
from weft.runtime.program.compiled import CompiledProgram
from weft.runtime.program.coordinator import ProgramRunner
from weft.runtime.program.program import LoadedProgram, ProgramLoader

SIZE = (16, 8)


def built(text: str, name: str = "patch.weft") -> CompiledProgram:
    return build(Request(Source(name, text), load_registry().contexts)).compiled


@pytest.fixture
def loader() -> ProgramLoader:
    registry = load_registry()
    return ProgramLoader(choose(registry, [spec.name for spec in registry.contexts]))


def tick(number: int, **inputs: float) -> Env:
    named = {name.replace("_", "@"): value for name, value in inputs.items()}
    return Env(*SIZE, tick=number, abstime=number / 60, dt=1 / 60, inputs=named)


def numbers(loaded: LoadedProgram, env: Env) -> list[float]:
    return [float(v) for r in loaded.runner.run(env) if r.context == "compute" for v in r.values.reshape(-1)]


def test_compute_reads_the_picture_of_the_same_tick_at_a_place(loader: ProgramLoader) -> None:
    text = "ramp<v> = prev(ramp@v) + me@x\ndisplay(ramp@v)\ncompute(ramp@v(me@x ~ mouse@x), ramp@v(me@x ~ 0.25))\n"
    loaded = loader.prepare(built(text), SIZE)
    for number in range(3):
        # A picture is sampled between the centres of its pixels, and this one is linear.
        assert numbers(loaded, tick(number, mouse_x=0.5)) == pytest.approx([0.5 * (number + 1), 0.25 * (number + 1)])


def test_a_path_that_leaves_a_context_and_comes_back_runs_as_three_subgraphs(loader: ProgramLoader) -> None:
    # Numbers that are remembered belong to compute here, as those of a patch with sound belong to audio.
    contexts = ContextTable([VISUAL, AUDIO, replace(COMPUTE, state_rank=-1)])
    text = (
        "a = prev(a) + 1\n"
        "b<v> = prev(b@v) * 0 + a + me@x\n"
        "c = prev(c) * 0 + b@v(me@x ~ 0.5, me@y ~ 0.5) + a\n"
        "compute(c, a)\n"
        "display(b@v)\n"
    )
    made = build(Request(Source("patch.weft", text), contexts))
    assert [unit.subgraph.context for unit in made.units] == ["compute", "visual", "compute"]
    loaded = loader.prepare(made.compiled, SIZE)
    for number in range(1, 4):
        assert numbers(loaded, tick(number)) == pytest.approx([2 * number + 0.5, number])


def test_strands_are_read_at_many_places_in_one_call(loader: ProgramLoader) -> None:
    loaded = loader.prepare(built("g<v> = prev(g@v) * 0 + me@x * me@y\ndisplay(g@v)\ncompute(g@v)\n"), SIZE)
    loaded.runner.run(tick(0))
    places = {"x": np.array([0.1, 0.5, 0.9]), "y": np.array([[0.2], [0.6]])}
    ref = StrandRef("g", "v")
    found = loaded.runner.values({ref: places}, tick(0))[ref]
    assert found.shape == (2, 3)
    assert found == pytest.approx(places["x"] * places["y"], abs=1e-6)


def test_what_nobody_exposed_cannot_be_read() -> None:
    with pytest.raises(KeyError):
        ProgramRunner(load_registry().contexts).lookup(StrandRef("a", "v"))


def test_an_unchanged_subgraph_goes_on_as_it_is_and_a_changed_one_keeps_its_state(loader: ProgramLoader) -> None:
    text = "n = prev(n) + 1\nm<v> = prev(m@v) + 1 + 0 * me@x\ncompute(n)\ndisplay(m@v)\n"
    before = loader.prepare(built(text), SIZE)
    for number in range(3):
        before.runner.run(tick(number))
    after = loader.prepare(built(text.replace("prev(n) + 1", "prev(n) + 10")), SIZE, before)
    assert (after.changed, after.kept) == (("compute/compute",), ("visual/display",))
    assert set(loader.take_over(after, before)) == {"compute/n@val/prev/0", "visual/m@v/prev/0"}
    assert numbers(after, tick(3)) == [13]
    resized = loader.prepare(built(text), (32, 16), after)
    assert resized.kept == ()
    loader.take_over(resized, after)
    (visual,) = (part for part in resized.runner.parts if part.unit.subgraph.context == "visual")
    picture = visual.compiled.memory.ring("visual/m@v/prev/0")
    assert picture.shape == (2, 1, 16, 32)
    assert picture.max() == 4


def test_state_survives_a_swap_between_programs_that_were_prepared_against_the_same_one(loader: ProgramLoader) -> None:
    text = "n = prev(n) + 1\ncompute(n)\n"
    first = loader.prepare(built(text), SIZE)
    first.runner.run(tick(0))
    second = loader.prepare(built(text.replace("+ 1", "+ 5")), SIZE, first)
    third = loader.prepare(built(text), SIZE, first)
    loader.take_over(second, first)
    second.runner.run(tick(1))
    loader.take_over(third, second)
    assert numbers(third, tick(2)) == [7]


def test_the_null_backend_takes_every_context() -> None:
    registry = load_registry()
    loader = ProgramLoader(choose(registry, ["visual", "compute"], "null"))
    results = loader.prepare(built("display(1)\ncompute(2)\n"), SIZE).runner.run(tick(0))
    assert {r.context: r.values.max() for r in results} == {"visual": 0, "compute": 0}


def test_more_memory_than_there_is_names_what_takes_it(loader: ProgramLoader) -> None:
    made = built("me<width> = 16384\nme<height> = 16384\ncache(a, 100)::c<v>\na = me@x\ndisplay(c@v(c@k ~ 99))\n")
    with pytest.raises(WeftError) as caught:
        loader.prepare(made, (16384, 16384))
    (found,) = caught.value.diagnostics
    assert found.code == "not-enough-memory"
    assert "visual/c/cache/0 alone goes back 99 ticks" in (found.hint or "")


def corner(loaded: LoadedProgram) -> list[int]:
    pixel: list[int] = loaded.runner.run(tick(0)._replace(pictures=loaded.pictures))[0].values[0, 0].tolist()
    return pixel


def test_a_picture_is_read_again_only_when_it_changes(loader: ProgramLoader, tmp_path: Path) -> None:
    dot = tmp_path / "dot.png"
    Image.new("RGB", (2, 2), (255, 0, 0)).save(dot)
    text = 'load("dot.png")::d<r, g>\ndisplay(d@r, d@g, 0)\n'
    name = str(tmp_path / "patch.weft")
    first = loader.prepare(built(text, name), SIZE)
    assert corner(first) == [255, 0, 0, 255]
    again = loader.prepare(built(text, name), SIZE, first)
    assert again.pictures[str(dot)] is first.pictures[str(dot)]
    Image.new("RGB", (3, 3), (0, 255, 0)).save(dot)
    changed = loader.prepare(built(text, name), SIZE, first)
    assert corner(changed) == [0, 255, 0, 255]


def test_choices() -> None:
    registry = load_registry()
    assert parse_request("visual=vm, compute=vector,vm") == {"visual": ["vm"], "compute": ["vector"], "*": ["vm"]}
    auto = choose(registry, ["visual", "audio", "compute"])
    assert (auto["audio"].shown, auto["compute"].shown) == ("native", "native")
    assert list(auto) == ["visual", "audio", "compute"]
    asked = choose(registry, ["visual", "compute"], "visual=vm", "cpu")
    assert {name: (c.executor, c.reason) for name, c in asked.items()} == {
        "visual": ("vm", "asked for with --backend"),
        "compute": ("native", "asked for with WEFT_BACKEND"),
    }
    for request in ("nope", "visual=cpu_compute", "elsewhere=vm"):
        with pytest.raises(WeftError):
            choose(registry, ["visual"], request)


def test_two_backends_of_one_name_are_refused() -> None:
    known = load_registry().backends["null"]
    assert register_backend(known) is known
    with pytest.raises(ValueError, match="two backends named 'null'"):
        register_backend(type("Other", (known,), {"__qualname__": "Other"}))


def test_a_pool_hands_out_aligned_pieces_until_it_is_full() -> None:
    pool = MemoryPool(np.zeros(256, np.uint8))
    first, second = pool.take((3,), np.float32), pool.take((2, 4), np.float64)
    assert second.shape == (2, 4)
    assert (second.ctypes.data - first.ctypes.data) % 64 == 0
    with pytest.raises(MemoryError):
        pool.take((32,), np.float64)


def test_memory_of_a_cpu_is_arrays_of_its_own(loader: ProgramLoader) -> None:
    backend = loader.backend("visual")
    assert backend is not None
    memory = backend.alloc((2, 3))
    assert memory.shape == (2, 3)
    assert not memory.any()
    backend.upload(np.arange(6).reshape(2, 3), memory)
    copy = backend.download(memory)
    memory[:] = 0
    assert copy.tolist() == [[0, 1, 2], [3, 4, 5]]
    backend.sync("system")
    backend.barrier()
    backend.free(memory)
    assert backend.pool(128).take((4,), np.float32).nbytes == 16
