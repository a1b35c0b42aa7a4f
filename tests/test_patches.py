"""Every patch that ships compiles without a warning, draws the same picture and plays the same sound on all machines,
is neither too loud nor too soft, and has its place in the gallery."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from pathlib import Path

import numpy as np
import pytest
import wasmtime
from PIL import Image

from scripts.gallery import PAGE, PICTURES, page
from tests.support import shown
from tests.support.choices import ANYWHERE, on_processor
from tests.support.shown import sized
from tests.support.sound import steps
from tests.support.together import all_but
from tests.support.tolerances import EDGE_SHARE
from weft.backends.registry import load_registry
from weft.backends.select import executor_problem
from weft.cli.examples import headline, shipped
from weft.codegen.wasm.sweep import emit
from weft.errors import Source, WeftError
from weft.runtime.compiling.kept import KeptBuild
from weft.runtime.compiling.stages import Build, Request, build, understood
from weft.runtime.films.offline import Offline
from weft.runtime.program.program import ProgramLoader
from weft.syntax.docs import opening_line

FOLDER = Path(__file__).parent.parent / "patches"
LIBRARIES = sorted((FOLDER / "lib").glob("*.weft"))
PATCHES = sorted(set(FOLDER.rglob("*.weft")) - set(LIBRARIES))
SHOWN = shipped()

# Longer than any of their sweeps, and than eight measures.
SECONDS = 17

# The reference machine takes seconds for a moment of sound: where a longer one is needed, the fastest machine plays it.
FASTEST = "vector" if executor_problem("native") else "native"

# Small, so that the reference machine is done in time, and odd, so that tiles end within a row.
SIZE = {"width": 21.0, "height": 13.0}


# When pictures are looked at: at the first frame, at one that follows from all before it, and later.
TIMES = FIRST, THEN, LATER = 0.0, 0.05, 0.1


def built(path: Path) -> Build:
    return sized(shown.built(path), SIZE)


def with_statement(*names: str) -> list[Path]:
    """The patches with one of these output statements. They are read, not built, so that tests are collected fast."""
    return [path for path in PATCHES if re.search(rf"^({'|'.join(names)})\(", path.read_text(), re.M)]


PICTURES_OF, SOUNDS_OF = with_statement("display"), with_statement("audio", "play")


def pictures(made: Build, executor: str, *times: float) -> tuple[np.ndarray, ...]:
    """What is shown at these times, each of which is that of a frame."""
    # Sound is left out where no picture reads it.
    is_read = any(unit.subgraph.context == "audio" and unit.subgraph.exposes for unit in made.units)
    choices = on_processor(executor, "visual", "compute", *["audio"] * is_read)
    return shown.frames(made, choices, [round(time * made.patch.settings["fps"]) for time in times])


@cache
def drawn(path: Path) -> tuple[np.ndarray, ...]:
    """The pictures of a patch at `TIMES`."""
    return pictures(built(path), "vector", *TIMES)


@cache
def reference(path: Path) -> np.ndarray:
    """The picture of a patch by the reference machine, at `THEN`."""
    (found,) = pictures(built(path), "vm", THEN)
    return found


def assert_near(found: np.ndarray, expected: np.ndarray) -> None:
    off = np.abs(found - expected) > 1
    assert off.mean() <= EDGE_SHARE, f"{off.mean():.2%} of the values differ by more than 1 of 255"


def sound(made: Build, executor: str, seconds: float) -> np.ndarray:
    choices = on_processor(executor)
    return np.concatenate(list(Offline(made, choices, clips=False).samples(0, seconds)))


class Recording:
    """The sound of a patch by the fastest machine, up to the last sample that was asked for."""

    def __init__(self, made: Build) -> None:
        self._blocks = Offline(made, on_processor(FASTEST), clips=False).samples(0, SECONDS)
        self._heard = np.zeros((0, 2))

    def until(self, samples: int) -> np.ndarray:
        """This many samples, from the first on."""
        parts, missing = [self._heard], samples - len(self._heard)
        while missing > 0:
            parts.append(next(self._blocks))
            missing -= len(parts[-1])
        self._heard = np.concatenate(parts)
        return self._heard[:samples]


@lru_cache(1)  # each has memory for all that it may remember
def recorded(path: Path) -> Recording:
    return Recording(built(path))


@pytest.mark.parametrize("path", PATCHES, ids=lambda path: path.stem)
def test_a_shipped_patch_compiles_and_begins_with_a_comment(path: Path) -> None:
    assert not built(path).warnings
    consumed = {unit.subgraph.context for unit in built(path).units if unit.subgraph.sinks}
    assert ("visual" in consumed, "audio" in consumed) == (path in PICTURES_OF, path in SOUNDS_OF)
    assert path.read_text().startswith("//"), "a patch begins with a line on what it is, or what to change first"


@pytest.mark.parametrize("path", all_but(14, PICTURES_OF), ids=lambda path: path.stem)
def test_a_shipped_picture_is_right(path: Path) -> None:
    for picture in drawn(path):
        assert picture.shape == (13, 21, 4)
        assert picture[..., :3].std() > 4, "there is nothing to see"
    assert_near(drawn(path)[TIMES.index(THEN)], reference(path))


@pytest.mark.parametrize("path", all_but(9, PICTURES_OF), ids=lambda path: path.stem)
def test_a_shipped_picture_is_right_by_the_fastest_machine(path: Path) -> None:
    (found,) = pictures(built(path), FASTEST, THEN)
    assert_near(found, reference(path))


@pytest.mark.parametrize("path", all_but(5, PICTURES_OF), ids=lambda path: path.stem)
def test_a_shipped_picture_is_right_as_webassembly(path: Path) -> None:
    (found,) = pictures(built(path), "wasm", THEN)
    assert_near(found, reference(path))


@pytest.mark.parametrize("path", PATCHES, ids=lambda path: path.stem)
def test_each_kernel_of_a_shipped_patch_is_a_module(path: Path) -> None:
    engine = wasmtime.Engine()
    for unit in built(path).units:
        for kernel in unit.kernels:
            for is_whole in (True, False):
                wasmtime.Module.validate(engine, emit(kernel.alone, is_whole).encoded())


@pytest.mark.parametrize("path", all_but(4, SOUNDS_OF), ids=lambda path: path.stem)
def test_a_shipped_sound_is_right_as_webassembly(path: Path) -> None:
    expected = sound(built(path), "vm", 0.0061)
    np.testing.assert_allclose(sound(built(path), "wasm", 0.0061), expected, atol=1e-9)


@pytest.mark.parametrize("path", all_but(5, SOUNDS_OF), ids=lambda path: path.stem)
def test_a_shipped_sound_is_right(path: Path) -> None:
    # More samples than machine code computes in one go, and not a whole number of vectors.
    seconds, samples = 0.0061, 293
    expected = sound(built(path), "vm", seconds)
    assert expected.shape == (samples, 2)
    np.testing.assert_allclose(recorded(path).until(samples), expected, atol=1e-6)


@pytest.mark.skipif(FASTEST != "native", reason="without llvmlite, this takes minutes")
@pytest.mark.parametrize("path", all_but(2, SOUNDS_OF), ids=lambda path: path.stem)
def test_a_shipped_sound_is_comfortable(path: Path) -> None:
    made, recording = built(path), recorded(path)
    if any(unit.feeds is not None for unit in made.units):
        # Pictures that come more seldom make larger steps of what a sound reads of them, and take less time.
        made = build(Request(Source(str(path), path.read_text()), load_registry().contexts, {**SIZE, "fps": 20.0}))
        recording = Recording(made)
    settings = made.patch.settings
    assert settings["sweep"] < SECONDS
    heard = recording.until(round(SECONDS * settings["rate"]))
    assert np.isfinite(heard).all()
    assert steps(heard, settings["rate"]) == []
    if path not in SHOWN.values():
        return
    heard = heard[: 8 * round(settings["rate"])]
    assert 10 ** (-12 / 20) < np.abs(heard).max() < 10 ** (-1 / 20), "between -12 and -1 dB"
    assert np.abs(heard.mean(axis=0)).max() < 0.02, "the loudspeakers are pushed to one side"
    assert np.abs(heard[0]).max() < 0.02, "it begins with a click"
    seconds = heard.reshape(8, -1)
    assert seconds[1:].std(axis=1).min() > 10 ** (-40 / 20), "a second of it is silent"


def test_a_wave_that_jumps_where_its_sweep_begins_anew_is_found() -> None:
    text = SHOWN["strand"].read_text().replace("me<sweep> = 16", "me<sweep> = 8").replace("(me@y ~ down_and_up)", "")
    made = build(Request(Source("strand.weft", text), load_registry().contexts, {**SIZE, "rate": 22050.0}))
    found = steps(sound(made, FASTEST, 8.5), 22050)
    assert [(round(step.time, 2), round(step.height, 1)) for step in found] == [(8.0, 0.3)] * 2


def test_a_step_is_told_from_a_corner_and_from_what_is_rough_throughout() -> None:
    time = np.arange(48000) / 48000
    tone = np.cos(2 * np.pi * 100 * time) * 0.3
    assert steps(tone, 48000) == []
    (step,) = steps(np.where(time < 0.5, tone, tone - 0.02), 48000)
    assert (round(step.time, 4), round(step.height, 3)) == (0.5, 0.02)
    assert steps(np.where(time < 0.5, 0, np.sin(2 * np.pi * 900 * (time - 0.5)) * np.exp(-9 * time)), 48000) == []
    assert steps(np.random.default_rng(1).normal(size=48000) * 0.1, 48000) == []


def sounds_of_the_documentation() -> list[str]:
    """The patches on its pages that are heard. Those within the page of the libraries leave out what they use. One page
    has its own tests."""
    pages = [FOLDER.parent / "README.md", *sorted((FOLDER.parent / "docs").glob("*.md"))]
    pages = [page for page in pages if page.name != "coming-from.md"]
    found = [text for page in pages for text in re.findall(r"^```weft\n(.*?)^```$", page.read_text(), re.M | re.S)]
    uses = "".join(f"#use std.{name}\n" for name in ("music", "synth", "effects", "drums", "ambisonics"))
    found = [text for text in found if re.search(r"^audio\(", text, re.M)]
    # `tests/test_sources.py` has the files that do not ship.
    found = [text for text in found if all((FOLDER / name).exists() for name in re.findall(r'load\("(.+?)"', text))]
    return [text if "#use" in text else uses + text for text in found]


def patches_of_the_documentation() -> list[tuple[str, str]]:
    """Those that are whole, with their pages. The page of the libraries leaves out what they use, that of the errors
    has what is wrong, and the one about backends has contexts that a reader writes."""
    pages = [FOLDER.parent / "README.md", *sorted((FOLDER.parent / "docs").glob("*.md"))]
    pages = [page for page in pages if page.name not in ("backends.md", "errors.md", "library.md")]
    fence = re.compile(r"^```weft\n(.*?)^```", re.MULTILINE | re.DOTALL)
    return [(page.name, text) for page in pages for text in fence.findall(page.read_text(encoding="utf-8"))]


def test_patches_of_the_documentation_have_no_mistakes() -> None:
    contexts, refused = load_registry().contexts, []
    for name, text in patches_of_the_documentation():
        request = Request(Source(str(FOLDER / "page.weft"), text), contexts, permissions=ANYWHERE)
        try:
            understood(request, KeptBuild())
        except WeftError as failure:
            refused.append((name, failure.diagnostics[0].message))
    assert refused == []


@pytest.mark.skipif(FASTEST != "native", reason="without llvmlite, this takes minutes")
@pytest.mark.parametrize("text", all_but(3, sounds_of_the_documentation()))
def test_a_sound_of_the_documentation_does_not_click(text: str) -> None:
    made = build(Request(Source(str(FOLDER / "page.weft"), text), load_registry().contexts, SIZE))
    settings = made.patch.settings
    assert steps(sound(made, FASTEST, settings["sweep"] + 0.5), settings["rate"]) == []


@pytest.mark.parametrize("path", LIBRARIES, ids=lambda path: path.stem)
def test_a_library_beside_the_patches_compiles(path: Path) -> None:
    assert not built(path).warnings
    assert opening_line(path.read_text())


@pytest.mark.parametrize("name", SHOWN)
def test_nothing_is_left_out(name: str) -> None:
    choices = on_processor("vector")
    size = (int(SIZE["width"]), int(SIZE["height"]))
    loader = ProgramLoader(choices, stream_getter=lambda strand: lambda *coordinates: 0.0)
    assert not loader.prepare(built(SHOWN[name]).compiled, size).left_out


@pytest.mark.parametrize("name", SHOWN)
def test_a_patch_begins_with_a_summary_and_what_to_change_first(name: str) -> None:
    summary, change = SHOWN[name].read_text().split("\n")[:2]
    assert summary.startswith("// ")
    assert summary.endswith(".")
    assert summary[3].isupper()
    assert change.startswith("// Change first: ")


def test_the_gallery_shows_every_patch() -> None:
    text = PAGE.read_text()
    assert text == page(), "the page is old: make gallery"
    pictures = {path.stem for path in PICTURES.glob("*.png")}
    assert pictures == set(SHOWN), "pictures are missing, or too many: make gallery"
    for name, path in SHOWN.items():
        assert headline(path) in text
        with Image.open(PICTURES / f"{name}.png") as shown:
            colours = np.asarray(shown.convert("RGB"))
        assert colours.std() > 4, f"there is nothing to see of {name}"


@pytest.mark.parametrize("name", all_but(14, SHOWN))
def test_a_shipped_patch_moves(name: str) -> None:
    before, *after = drawn(SHOWN[name])
    if np.array_equal(before, after[-1]):
        after = pictures(built(SHOWN[name]), "vector", 1.0)
    assert not np.array_equal(before, after[-1])


def test_the_three_to_measure_with_are_their_formulas() -> None:
    y, x = np.mgrid[0:13, 0:21]
    x, y, t = (x + 0.5) / 21, (y + 0.5) / 13, 0.5
    d = np.hypot(x - 0.5, y - 0.5)
    v = np.sin(10 * x + t) + np.sin(10 * y + 1.3 * t) + np.sin(10 * (x + y) + 0.7 * t) + np.sin(20 * d - 2 * t)
    formulas = {
        "v1": [np.sin(x * 10 * 2 * np.pi + t) / 2 + 0.5, y, np.full_like(x, 0.2)],
        "v2": [np.sin(np.pi * v + phase) / 2 + 0.5 for phase in (0, 2.094, 4.188)],
    }
    for name, planes in formulas.items():
        expected = np.stack([np.floor(np.clip(p, 0, 1) * 255 + 0.5) for p in planes], axis=-1)
        (found,) = pictures(built(FOLDER / "bench" / f"{name}.weft"), "vm", t)
        assert np.abs(found[..., :3] - expected).max() <= 1
