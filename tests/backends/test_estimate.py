"""The memory that a program takes is known before it is taken."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from tests.support.cards import card, registry_with
from weft.backends.base import DeviceInfo, Env
from weft.backends.registry import load_registry
from weft.backends.select import Need, check_room, choose, needs_of, pictures_of, size_text, total
from weft.errors import Source, WeftError
from weft.media.pictures import load_picture
from weft.runtime.compiling.stages import Request, build
from weft.runtime.program.compiled import CompiledProgram
from weft.runtime.program.program import HERE, ProgramLoader

SIZE = (32, 18)
REMEMBERING = "a = prev(a) + me@x\nb = delay(me@y, 3, 4)\ncache(a, 5)::h<v>\ndisplay(a, b, h@v(h@k ~ 3))\n"


def built(text: str, folder: Path = Path()) -> CompiledProgram:
    return build(Request(Source(str(folder / "patch.weft"), text), load_registry().contexts)).compiled


def test_it_is_what_is_taken() -> None:
    compiled = built(REMEMBERING)
    loader = ProgramLoader(choose(load_registry(), ["visual"], "native"))
    loaded = loader.prepare(compiled, SIZE)
    (part,) = loaded.runner.parts
    picture = sum(part.backend.execute_subgraph(part.compiled, Env(*SIZE, n), loaded.runner).nbytes for n in range(2))
    memory = part.compiled.memory
    needs = list(needs_of(part.unit, SIZE[::-1]))
    assert total(needs) == picture + sum(memory.ring(key).nbytes for key in memory.slots)
    assert [need.what for need in needs if "goes back" in need.what]


def test_a_picture_that_is_sampled_takes_what_its_file_says(tmp_path: Path) -> None:
    Image.new("RGB", (30, 20)).save(tmp_path / "dot.png")
    compiled = built('load("dot.png")::d<r>\ndisplay(d@r)\n', tmp_path)
    (need,) = pictures_of((unit.kernel for unit in compiled.units), on_cpu=True)
    assert need == Need(str(tmp_path / "dot.png"), load_picture(tmp_path / "dot.png").nbytes)
    (tmp_path / "dot.png").unlink()
    assert list(pictures_of((unit.kernel for unit in compiled.units), on_cpu=True)) == []


def test_sound_that_differs_by_channel_remembers_in_each() -> None:
    loader = ProgramLoader(choose(load_registry(), ["audio"]))
    same, differing = (
        sum(total(needs) for needs in loader.needs(built(f"audio({tone})"), SIZE, channels=4).values())
        for tone in ("phasor(100)", "phasor(100 + me@channel)")
    )
    assert differing == 4 * same > 0


def test_too_much_is_an_error_that_says_what_takes_how_much() -> None:
    wanted = [Need("a small thing", 10), Need("a large thing", 3_000_000), Need("another", 2_000_000)]
    check_room({HERE: wanted}, {HERE: 5_000_010})
    check_room({HERE: wanted}, {HERE: 0})
    with pytest.raises(WeftError) as caught:
        check_room({"a card": [], HERE: wanted}, {HERE: 5_000_009, "a card": 1})
    (found,) = caught.value.diagnostics
    assert found.code == "not-enough-memory"
    assert "5.0 MB of memory on this computer" in found.message
    assert (found.hint or "").startswith("a large thing (3.0 MB), another (2.0 MB), a small thing (10 B)")


def test_a_device_has_memory_of_its_own() -> None:
    compiled = built(REMEMBERING)
    needed = total(needs_of(compiled.units[0], SIZE[::-1]))
    for free, fits in ((needed, True), (needed - 1, False)):
        device = DeviceInfo(0, "a card", unified=False, memory_free=free)
        loader = ProgramLoader(choose(registry_with(card("metal_visual", [device])), ["visual"], "metal"))
        assert set(loader.needs(compiled, SIZE)) == {("a card", "visual/display")}
        if fits:
            loader.prepare(compiled, SIZE)
            continue
        with pytest.raises(WeftError, match="of memory on a card"):
            loader.prepare(compiled, SIZE)


def test_sizes_for_people() -> None:
    assert [size_text(n) for n in (0, 999, 1000, 12_345_678, 5 * 10**12)] == [
        "0 B", "999 B", "1.0 kB", "12.3 MB", "5000.0 GB",
    ]  # fmt: skip
