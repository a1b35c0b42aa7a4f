"""Textures for other programs of the machine, by Spout and Syphon."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.support.outlets import Sending
from weft.outlets import OutletError, outlet_of
from weft.platform import system
from weft.runtime.films.texture_outlet import SyphonOutlet, sharing

SIZE = 64, 36


@pytest.mark.parametrize("name", ["weft", "Stage 1", "a.b_c-d", "x" * 64])
def test_a_name_is_of_letters_digits_and_a_few_signs(name: str) -> None:
    outlet = outlet_of(f"spout:{name}")
    assert outlet is not None
    assert (outlet.place.text, outlet.place.reaches) == (name, "machine")


@pytest.mark.parametrize("name", ["", " weft", "a/b", "a\nb", "größe", "x" * 65, "a\0b", '"'])
@pytest.mark.parametrize("word", ["spout", "syphon"])
def test_nothing_else_is_a_name(word: str, name: str) -> None:
    outlet = outlet_of(f"{word}:{name}")
    assert outlet is not None
    with pytest.raises(OutletError, match=f"this is no name for other programs .*{word}:weft"):
        outlet.place.text  # noqa: B018


@pytest.mark.parametrize(
    ("word", "own", "words"),
    [("spout", "win32", "Spout is for Windows alone"), ("syphon", "darwin", "Syphon is for macOS alone")],
)
def test_on_another_system_it_is_told_what_it_is_for(word: str, own: str, words: str) -> None:
    if sys.platform == own:
        pytest.skip("this is its system")
    made = Sending(f"{word}:weft", SIZE)
    made.encoder.close()
    assert made.encoder.failure == f"{words} (http:8080 gives pictures to programs on every system)"


@pytest.mark.parametrize(
    ("own", "module", "package"), [("win32", "SpoutGL", "SpoutGL"), ("darwin", "syphon", "syphon-python")]
)
def test_a_package_that_is_missing_is_told_with_what_installs_it(
    monkeypatch: pytest.MonkeyPatch, own: str, module: str, package: str
) -> None:
    monkeypatch.setattr(type(system), "name", own)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(OutletError, match=rf"needs {package} \(pip install 'weft-live\[textures\]'\)"):
        sharing(module, "It", own)


class Syphon:
    """A stand-in for syphon-python and pyobjc: what is published, as other programs would see it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[np.ndarray[Any, Any]] = []
        self.depth = self.looked = 0
        self.device, self.run_loop_interval = "a device", 1.0
        made = {"syphon": ModuleType("syphon"), "syphon.utils": ModuleType("syphon.utils"), "objc": ModuleType("objc"),
                "syphon.utils.raw": ModuleType("syphon.utils.raw")}  # fmt: skip
        made["syphon"].__dict__.update(SyphonMetalServer=self.server, SyphonServerDirectory=lambda: self)
        made["syphon.utils.raw"].__dict__.update(create_mtl_texture=self.texture, copy_bytes_to_mtl_texture=self.copy)
        made["objc"].__dict__.update(autorelease_pool=lambda: self)
        for name, module in made.items():
            monkeypatch.setitem(sys.modules, name, module)
        monkeypatch.setattr(type(system), "name", "darwin")

    def __enter__(self) -> None:
        self.depth += 1

    def __exit__(self, *_: object) -> None:
        self.depth -= 1

    def server(self, name: str) -> Syphon:
        assert self.depth, "objects would never be released"
        self.name: str | None = name
        return self

    def texture(self, device: object, width: int, height: int) -> np.ndarray[Any, Any]:
        assert device == self.device
        return np.zeros((height, width, 4), np.uint8)

    def copy(self, data: bytes, texture: np.ndarray[Any, Any]) -> None:
        assert all(texture is not each for each in self.seen[-2:]), "the card may still copy this one"
        texture.reshape(-1)[:] = np.frombuffer(data, np.uint8)

    def publish_frame_texture(self, texture: np.ndarray[Any, Any], is_flipped: bool) -> None:
        assert self.depth
        assert is_flipped
        self.seen.append(texture)

    def update_run_loop(self) -> None:
        self.looked += 1

    def stop(self) -> None:
        self.name = None

    def close(self) -> None:
        assert self.name is None


def opened(outlet: Any, place: str) -> Any:
    class Opening:
        pass

    made = Opening()
    made.__dict__.update(place=place, width=SIZE[0], height=SIZE[1])
    return outlet(made)


def test_syphon_gets_each_picture_and_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    syphon = Syphon(monkeypatch)
    outlet = opened(SyphonOutlet, "stage")
    assert syphon.name == "stage"
    pictures = np.random.default_rng(1).integers(0, 256, (5, SIZE[1], SIZE[0], 4), np.uint8)
    for number, picture in enumerate(pictures):
        outlet.show(picture, number)
        np.testing.assert_array_equal(syphon.seen[-1], picture)
    assert (syphon.looked, syphon.depth) == (5, 0)
    outlet.close()
    assert syphon.name is None
