"""Generated programs of several contexts give out on every machine what they give out on the reference, from end to end
as `weft render` plays them: pictures, sounds and numbers that read each other.

`WEFT_PARITY=20000` tries a twentieth as many programs, others than usual.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.support.parity.contexts import built, differences, made, played, program, write_pictures
from tests.support.together import all_but

CHUNK = 25
ASKED = int(os.environ.get("WEFT_PARITY", "0")) // 20
FIRST, COUNT = (1_000_000, ASKED) if ASKED else (0, 75)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("contexts")
    write_pictures(found)
    return found


@pytest.mark.long
@pytest.mark.parametrize("start", all_but(1, range(FIRST, FIRST + COUNT, CHUNK)))
def test_programs_of_several_contexts(start: int, folder: Path) -> None:
    contexts: Counter[str] = Counter()
    crossing = 0
    for seed in range(start, start + CHUNK):
        text, program = made(seed, folder)
        contexts.update({unit.subgraph.context for unit in program.units})
        crossing += any(unit.kernel.strands or unit.feeds for unit in program.units)
        expected = played(program, "vm")
        for executor in ("vector", "native", "wasm"):
            found = differences(program, played(program, executor), expected)
            assert not found, f"program {seed} on {executor}:\n{text}\n" + "\n".join(found[:5])
    assert min(contexts[name] for name in ("visual", "audio", "compute")) > CHUNK / 10
    assert crossing > CHUNK / 5


def test_programs_are_the_same_every_time() -> None:
    assert [program(seed) for seed in range(20)] == [program(seed) for seed in range(20)]


def test_programs_read_along_axes(folder: Path) -> None:
    programs = (made(seed, folder)[1] for seed in range(20))
    kernels = [kernel for program in programs for unit in program.units for kernel in unit.kernels]
    assert any(ref.axes for kernel in kernels for ref in kernel.strands)


FLAWED = {
    "a sound of a picture": (
        "t<v> = prev(t@v) * 0.5 + me@x\ndisplay(t@v)\naudio(t@v(me@x ~ 0.3, me@y ~ 0.5))\n", "me@x", "me@x * 1.001"
    ),
    "a picture of a number": ("n<v> = prev(n@v) + 1\ncompute(n@v)\ndisplay(n@v / 9)\n", "+ 1", "+ 1.001"),
    "a held value": (
        "h<v> = hold(me@time, me@x)\ndisplay(h@v)\naudio(h@v(me@x ~ 0.3, me@y ~ 0.5))\n", "me@x)", "me@time)",
    ),
    "a remainder": ("r<v> = (me@px * 1000003) % 7\ndisplay(r@v)\naudio(r@v)\n", "% 7", "% 7 - 7"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "old", "new"), FLAWED.values(), ids=FLAWED.keys())
def test_what_is_wrong_is_not_explained(text: str, old: str, new: str, folder: Path) -> None:
    right, wrong = built(text, folder), built(text.replace(old, new, 1), folder)
    expected = played(right, "vm")
    assert differences(right, played(right, "native"), expected) == []
    assert differences(right, played(wrong, "native"), expected)


def test_a_frame_and_a_sample_are_compared(folder: Path) -> None:
    found = played(built("display(me@x, me@y, me@time)\naudio(me@time, 0.5)\n", folder), "vm")
    assert found.pictures is not None
    assert found.samples is not None
    assert found.pictures.shape == (3, 3, 2, 7)
    assert len(found.samples) > 50
    np.testing.assert_allclose(found.samples[:3, 0], [0, 1 / 2000, 2 / 2000], atol=1e-7)
