"""Sounds from files in performances: programs, the process that plays, renders, and files that change."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from tests.runtime.sound.hall import BLOCK, RATE
from tests.runtime.sound.test_player import Room
from tests.support.choices import on_processor
from tests.support.sounds import cache, write_wav
from weft.backends.base import Env
from weft.backends.registry import load_registry
from weft.backends.select import SAMPLE_BYTES
from weft.errors import Source, WeftError
from weft.media.sampled import decoded_files, header_of, read
from weft.runtime.compiling.stages import Build, Request, build
from weft.runtime.films.offline import Offline
from weft.runtime.program.program import HERE, ProgramLoader
from weft.runtime.sound.renderer import Play

__all__ = ["cache"]

pytestmark = pytest.mark.usefixtures("cache")

NOISE = np.random.default_rng(5).uniform(-0.8, 0.8, (3000, 2))


def made(folder: Path, text: str) -> Build:
    return build(Request(Source(str(folder / "patch.weft"), text), load_registry().contexts, probe=header_of))


@pytest.fixture
def stored(tmp_path: Path) -> NDArray[np.float32]:
    """The samples of a sound next to the patch."""
    return write_wav(tmp_path / "a.wav", NOISE)


def test_a_render_plays_and_shows_a_sound(tmp_path: Path, stored: NDArray[np.float32]) -> None:
    text = 'me<width> = 8 me<height> = 2\nload("a.wav")::k<l, r>\naudio(k@l, k@r)\ndisplay(0.5 + k@l * 0.5)'
    found = made(tmp_path, text)
    heard = np.concatenate(list(Offline(found, on_processor("vector")).samples(0, 0.05)))
    np.testing.assert_allclose(heard[:2400], stored[:2400], atol=1e-7)
    frames = dict(Offline(found, on_processor("vector")).play([2]))
    level = 0.5 + stored[round(2 / 60 * RATE), 0] * 0.5
    np.testing.assert_allclose(frames[2][..., 0], np.full((2, 8), level * 255), atol=0.51)


def test_what_frames_depend_on_includes_the_sound(tmp_path: Path, stored: NDArray[np.float32]) -> None:
    text = 'load("a.wav")::k<l, r>\ndisplay(k@l)'
    before = Offline(made(tmp_path, text), on_processor("vector")).fingerprint
    assert Offline(made(tmp_path, text), on_processor("vector")).fingerprint == before
    write_wav(tmp_path / "a.wav", stored[::-1])
    assert Offline(made(tmp_path, text), on_processor("vector")).fingerprint != before


def test_a_sound_that_has_changed_is_read_again_by_the_same_program(tmp_path: Path) -> None:
    text = 'load("a.wav")::k<l, r>\ncompute(k@l(me@time ~ 0), length: k@seconds)'
    loader = ProgramLoader(on_processor("vector"))
    running = None
    for level, count in ((0.25, 480), (0.5, 960)):
        write_wav(tmp_path / "a.wav", np.full(count, level))
        running = loader.prepare(made(tmp_path, text).compiled, (4, 4), running)
        (result,) = running.runner.run(Env(4, 4, pictures=running.pictures))
        np.testing.assert_allclose(result.values.reshape(-1), [level, count / RATE], atol=1e-4)
    assert running is not None
    assert not running.changed


def test_the_process_that_plays_maps_what_was_decoded(tmp_path: Path, stored: NDArray[np.float32]) -> None:
    """It gets the decoded file, so it continues even if the sound itself is gone."""
    compiled = made(tmp_path, 'load("a.wav")::k<l, r>\naudio(k@l, k@r)').compiled.streaming
    (name,) = {name for unit in compiled.units for name in unit.kernel.pictures}
    read(name)
    decoded = decoded_files([name])
    (tmp_path / "a.wav").unlink()
    room = Room()
    room.player.take(Play(1, room._setup, compiled, 0.0, {}, {}, {}, False, decoded))
    heard = room.play(4)
    np.testing.assert_allclose(heard, stored[: 4 * BLOCK, 0], atol=1e-7)


@pytest.mark.parametrize("kind", ["damaged", "gone"])
def test_what_cannot_be_decoded_is_told_before_it_plays(kind: str, tmp_path: Path) -> None:
    write_wav(tmp_path / "a.wav", NOISE)
    compiled = made(tmp_path, 'load("a.wav")::k<l, r>\naudio(k@l)').compiled
    if kind == "gone":
        (tmp_path / "a.wav").unlink()
    else:
        Image.new("RGB", (4, 4)).save(tmp_path / "a.wav", format="PNG")
    with pytest.raises(WeftError, match=r"a\.wav cannot be read") as raised:
        ProgramLoader(on_processor("vector")).prepare(compiled, (4, 4))
    assert raised.value.diagnostics[0].code == "unreadable-source"


def test_the_need_of_a_sound_is_known_beforehand(
    tmp_path: Path, stored: NDArray[np.float32], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the CPU it is what is read from the disk at once: the rest is mapped."""
    loader = ProgramLoader(on_processor("vector"))
    compiled = made(tmp_path, 'load("a.wav")::k<l, r>\naudio(k@l)').compiled
    (needs,) = loader.needs(compiled, (4, 4)).values()
    assert [(Path(need.what).name, need.bytes) for need in needs] == [("a.wav", len(stored) * SAMPLE_BYTES)]
    assert {where for where, _ in loader.needs(compiled, (4, 4))} == {HERE}
    monkeypatch.setattr("weft.backends.select.AHEAD", 1000)
    (needs,) = loader.needs(compiled, (4, 4)).values()
    assert [need.bytes for need in needs] == [1000]
    assert not cache.exists()
