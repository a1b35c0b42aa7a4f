"""Pictures and films with alpha: colours are interpolated and shrunk by how much there is of them, on every machine."""

from __future__ import annotations

import json
from pathlib import Path

import av
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from tests.support.gl import GlExecutor, Graphics, graphics
from weft.backends.executors import Executor
from weft.backends.launch import Launch, StateMemory, picture_coords, resample
from weft.backends.native.executor import NativeExecutor
from weft.backends.vector.machine import VectorExecutor
from weft.backends.vm import ReferenceExecutor
from weft.codegen.kernel import to_json
from weft.contexts import ContextTable
from weft.errors import Source
from weft.media.films import Films
from weft.media.frames import floats
from weft.media.sampled import header_of, read
from weft.names import is_levels
from weft.runtime.compiling.stages import Request, build

__all__ = ["graphics"]

Values = NDArray[np.float64]
SIZE = 24
MACHINES: dict[str, type[Executor]] = {"vm": ReferenceExecutor, "vector": VectorExecutor, "native": NativeExecutor}


def saved(folder: Path, pixels: NDArray[np.uint8]) -> Values:
    """Saves a picture [height, width, 4] as `p.png`; gives it as numbers 0…1."""
    Image.fromarray(pixels).save(folder / "p.png")
    return pixels / 255


def shown(folder: Path, size: int, machine: Executor) -> Values:
    """Red, green, blue and alpha of the picture, [size, size, 4]."""
    text = 'load("p.png")::p<r, g, b, a>\ndisplay(p)\n'
    (unit,) = build(Request(Source(str(folder / "a.weft"), text), ContextTable(), probe=header_of)).units
    assert any(map(is_levels, unit.kernel.pictures))
    launch = Launch(
        (size, size), picture_coords(size, size, 0.0), {name: float(size) for name in unit.kernel.uniforms},
        pictures={name: read(name) for name in unit.kernel.pictures},
    )  # fmt: skip
    planes = machine.load(unit.kernel).planes(StateMemory(unit.kernel.slots, launch.shape, np.float64), launch)
    return np.stack([np.asarray(plane, np.float64) for plane in planes], axis=-1)


@pytest.fixture(params=[*MACHINES, "gl"])
def machine(request: pytest.FixtureRequest) -> Executor:
    if request.param == "gl":
        found: Graphics = request.getfixturevalue("graphics")
        return GlExecutor(found)
    return MACHINES[request.param]()


def noise() -> NDArray[np.uint8]:
    """A picture, parts of which are opaque, and others transparent."""
    pixels = np.random.default_rng(5).integers(0, 256, (SIZE, SIZE, 4), np.uint8)
    pixels[:8, :, 3] = 255
    pixels[:, :8, 3] = 0
    return pixels


def unweighted(weighted: Values, alpha: Values) -> Values:
    """Colours of which the products with their alpha are known; where that is 0, there is none."""
    found: Values = np.divide(weighted, alpha, out=np.zeros_like(weighted), where=alpha > 1e-4)
    return found


@pytest.mark.parametrize("size", [3 * SIZE, SIZE // 4])
def test_colours_count_by_their_alpha(size: int, machine: Executor, tmp_path: Path) -> None:
    """Between pixels, and where a pixel shows the mean of several."""
    given = saved(tmp_path, noise())
    weights = given[..., 3:]
    stored = np.concatenate([given[..., :3] * weights, weights], axis=2)
    if size > SIZE:
        planes = [resample(stored[..., plane], (size, size)) for plane in range(4)]
        expected = np.stack(planes, axis=-1)
    else:
        expected = stored.reshape(size, SIZE // size, size, SIZE // size, 4).mean((1, 3))
    found, alpha = shown(tmp_path, size, machine), expected[..., 3:]
    exact = 0.01 if isinstance(machine, GlExecutor) else 1e-5
    np.testing.assert_allclose(found[..., 3:], alpha, atol=exact)
    seen = np.broadcast_to(alpha > 0.05, expected[..., :3].shape)
    colours = unweighted(expected[..., :3], alpha)
    np.testing.assert_allclose(found[..., :3][seen], colours[seen], atol=10 * exact)
    # Laid over anything, what is hardly seen makes no difference.
    np.testing.assert_allclose(found[..., :3] * found[..., 3:], expected[..., :3], atol=exact)


def test_at_its_own_size_a_picture_is_what_is_in_the_file(machine: Executor, tmp_path: Path) -> None:
    """Also the colours under an alpha of 0."""
    given = saved(tmp_path, noise())
    exact = 0.01 if isinstance(machine, GlExecutor) else 1e-6
    np.testing.assert_allclose(shown(tmp_path, SIZE, machine), given, atol=exact)


@pytest.mark.parametrize("size", [5 * SIZE, SIZE // 4 - 1])
def test_a_white_logo_over_black_that_nobody_sees_stays_white(size: int, machine: Executor, tmp_path: Path) -> None:
    pixels = np.zeros((SIZE, SIZE, 4), np.uint8)
    pixels[6:17, 5:19] = 255
    saved(tmp_path, pixels)
    found = shown(tmp_path, size, machine)
    over_white = found[..., :3] * found[..., 3:] + 1 - found[..., 3:]
    assert over_white.min() > 1 - 1e-4


def test_a_picture_without_alpha_costs_no_division(tmp_path: Path) -> None:
    texts = {}
    for mode in ("RGB", "RGBA"):
        Image.new(mode, (SIZE, SIZE)).save(tmp_path / "p.png")
        assert header_of(str(tmp_path / "p.png")).has_alpha == (mode == "RGBA")  # type: ignore[union-attr]
        text = 'load("p.png")::p<r, g, b>\ndisplay(p)\n'
        (unit,) = build(Request(Source(str(tmp_path / "a.weft"), text), ContextTable(), probe=header_of)).units
        texts[mode] = json.dumps(to_json(unit.kernel))
    assert texts["RGBA"].count('"div"') > texts["RGB"].count('"div"')


# --- films ---


@pytest.mark.parametrize(("name", "codec", "pixels"), [
    ("a.webm", "libvpx-vp9", "yuva420p"), ("b.webm", "libvpx", "yuva420p"), ("a.mkv", "ffv1", "bgra"),
    ("a.mov", "qtrle", "argb"),
])  # fmt: skip
def test_films_have_their_alpha(name: str, codec: str, pixels: str, tmp_path: Path) -> None:
    """The left half is red, and the right half an invisible green; more so in later frames."""
    path, count = tmp_path / name, 5
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=10, options={"auto-alt-ref": "0"} if codec == "libvpx" else {})
        stream.width, stream.height, stream.pix_fmt = 64, 32, pixels
        for number in range(count):
            picture = np.zeros((32, 64, 4), np.uint8)
            picture[:, :32] = (255, 0, 0, 255)
            picture[:, 32:] = (0, 255, 0, 50 * number)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, "rgba")))
        container.mux(stream.encode(None))
    header = header_of(str(path))
    assert not isinstance(header, str)
    assert header.has_alpha
    film = Films().open((str(path), 1.0, ""), offline=True)
    try:
        for number in (3, 1, 4):  # back and forth
            found = np.asarray(floats(film.exactly(number / 10 + 0.05)), np.float64)
            np.testing.assert_allclose(found[16, 8], (1, 0, 0, 1), atol=0.05)
            share = 50 * number / 255
            np.testing.assert_allclose(found[16, 56], (0, share, 0, share), atol=0.05)
    finally:
        film.close()
