"""`weft render --exact`: the same bytes by code for each family of processors that this machine runs."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.cli.conftest import Weft
from weft.backends import cpu
from weft.backends.native import llvm
from weft.backends.native.executor import ExactExecutor, NativeExecutor
from weft.backends.registry import load_registry
from weft.backends.select import choose
from weft.cli.arguments import compile_file
from weft.codegen.native.target import ISAS, exactly
from weft.codegen.native.writer import LlvmLanes
from weft.runtime.compiling.stages import Build
from weft.runtime.films import encoding
from weft.runtime.films.offline import Offline

pytestmark = pytest.mark.skipif(llvm.problem() is not None, reason="machine code needs llvmlite")

PATCHES = Path(__file__).parents[2] / "patches"
# Noise, polynomials, remainders, images, loops, text, files; scans, waves, serial recurrences, delays and filters.
QUICK = "acid", "plasma", "warp"
SLOW = "aurora", "bells", "dub", "ink", "kaleidoscope", "keys", "life", "ripple", "sampler"
CORPUS = [*QUICK, *(pytest.param(name, marks=pytest.mark.long) for name in SLOW)]
SIZE = {"width": 96.0, "height": 54.0}
FRAMES, SECONDS = (0, 1, 30), 0.7


def digests(build: Build, executor: str) -> tuple[str, str]:
    """The hashes of some frames and of some sound of a patch; those of nothing if it has none."""
    registry = load_registry()
    choices = choose(registry, [spec.name for spec in registry.contexts], executor)
    shown, heard = hashlib.sha256(), hashlib.sha256()
    offline = Offline(build, choices)
    if offline.shows:
        for number, picture in offline.play(offline.steps(FRAMES)):
            if number in FRAMES:
                shown.update(picture.tobytes())
    if offline.sounds:
        for block in offline.samples(0, SECONDS):
            heard.update(block.tobytes())
    return shown.hexdigest(), heard.hexdigest()


def digests_of_each(
    name: str, kind: type[NativeExecutor], monkeypatch: pytest.MonkeyPatch
) -> Mapping[str, tuple[str, str]]:
    """The hashes by the name of a family of processors, with code for its plainest member, and those of this one."""
    build = compile_file(str(PATCHES / f"{name}.weft"), settings=SIZE)
    found = {"this": digests(build, kind.name)}
    for isa in filter(llvm.runs_here, ISAS.values()):
        monkeypatch.setitem(cpu.EXECUTORS, kind.name, lambda isa=isa: kind(llvm.plainest(isa)))  # type: ignore[misc]
        found[isa.name] = digests(build, kind.name)
    return found


@pytest.mark.parametrize("name", CORPUS)
def test_all_families_of_processors_give_the_same_bytes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = digests_of_each(name, ExactExecutor, monkeypatch)
    assert len(set(found.values())) == 1, found


@pytest.mark.skipif(not llvm.runs_here(ISAS["avx2"]), reason="a single family fuses nothing")
def test_without_it_families_round_in_their_own_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    found = digests_of_each("plasma", NativeExecutor, monkeypatch)
    assert found["avx2"] != found["sse2"]


@pytest.mark.parametrize("isa", ISAS.values(), ids=list(ISAS))
def test_no_family_fuses_anything(isa) -> None:
    lanes = LlvmLanes(exactly(isa), 8)
    one = lanes.real(3)
    lanes.fma(lanes.add(one, one), lanes.mul(one, one), lanes.sub(one, one))
    text = "\n".join(lanes.text)
    assert "contract" not in text
    assert "fma" not in text
    other = LlvmLanes(exactly(ISAS["sse2"]), 8)
    other.fma(other.add(one, one), other.mul(one, one), other.sub(one, one))
    assert other.text == lanes.text


@pytest.mark.parametrize("isa", ISAS.values(), ids=list(ISAS))
def test_there_is_code_for_each_family(isa) -> None:
    executor = ExactExecutor(llvm.plainest(isa))
    for unit in compile_file(str(PATCHES / "acid.weft")).units:
        assert executor.listing(unit.kernel, False).assembly()


ODD = """me<width> = 48; me<height> = 28; me<fps> = 12
a<v> = exp(sin(me@x * 9 + me@time)) ^ 0.7 % 0.31
display(a@v, atan2(me@y - 0.5, me@x - 0.5), log(1 + me@x))
audio(sin(me@time * 440 * tau) * exp(-fract(me@time)))
"""


@pytest.fixture(scope="module")
def weft(tmp_path_factory: pytest.TempPathFactory) -> Weft:
    found = Weft(tmp_path_factory.mktemp("exact"))
    found.file("a.weft", ODD)
    return found


@pytest.mark.long
def test_films_and_sequences_of_several_processes_are_exact_too(weft: Weft) -> None:
    for count in "1", "2":
        run = "--duration", "4.5", "--exact", "--workers", count
        assert weft("render", "a.weft", "-o", f"film{count}.mkv", *run).stderr == ""
    one, two = ((weft.folder / f"film{count}.mkv").read_bytes() for count in (1, 2))
    assert one == two
    weft("render", "a.weft", "-o", "exact.wav", "--duration", "1", "--exact")
    weft("render", "a.weft", "-o", "named.wav", "--duration", "1", "--backend", "exact")
    assert (weft.folder / "exact.wav").read_bytes() == (weft.folder / "named.wav").read_bytes()


def test_h264_has_the_same_bytes_whatever_instructions_the_encoder_may_use(tmp_path: Path) -> None:
    code = """
import sys
from pathlib import Path
import numpy as np
from weft.runtime.films import encoding
codec = encoding.CODECS["h264"]
codec.options["x264-params"] += f":asm={sys.argv[1]}"
spec = encoding.film_spec(".mp4", "h264", None, (96, 54), 25)
y, x = np.mgrid[0:54, 0:96]
frames = (np.stack([x + 3 * i, 2 * y + i, x * y // 9, 0 * x + 255], -1).astype(np.uint8) for i in range(30))
encoding.write_segment(spec, Path(sys.argv[2]), frames)
"""
    # x264 takes its word for instructions that the processor lacks, and dies of them.
    found = set()
    for instructions in "no", *(isa.name for isa in ISAS.values() if llvm.runs_here(isa)):
        path = tmp_path / instructions
        subprocess.run([sys.executable, "-c", code, instructions, path], check=True)
        found.add(tuple(encoding.packets_of(path)))
    assert len(found) == 1


def test_what_cannot_be_exact(weft: Weft) -> None:
    words = weft("render", "a.weft", "-o", "a.png", "--exact", "--backend", "vector", code=2).stderr
    assert "--exact is what --backend exact is: leave one of them out" in words
    words = weft("render", "a.weft", "-o", "a.mp4", "--duration", "1", "--exact", "--codec", "h265", code=2).stderr
    assert "h265 encodes in another way on another processor: --exact is for h264" in words
