"""Whatever happens to a file of pictures or sounds, weft shows and plays what is left of it, or says what is wrong.

`WEFT_MEDIA=10000` tries this many files, different from the usual ones, and prints how many of each kind could be read.
"""

from __future__ import annotations

import io
import os
import random
import signal
import struct
import wave
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import FrameType

import av
import numpy as np
import pytest
from PIL import Image

from tests.support.films import film_of
from tests.support.forks import ran
from tests.support.sounds import cache as cache_folder, write_coded
from tests.support.together import all_but
from weft.contexts import ContextTable
from weft.errors import Source, WeftError
from weft.media import decoding
from weft.media.sampled import header_of, read
from weft.media.source import PictureError
from weft.names import SoundFile
from weft.runtime.compiling.stages import Request, build
from weft.sources import FILM, PICTURE, SOUND, ends_as

__all__ = ["cache_folder"]

pytestmark = pytest.mark.usefixtures("cache_folder")

ASKED = int(os.environ.get("WEFT_MEDIA", "0"))
FIRST, COUNT = (1_000_000, ASKED) if ASKED else (0, 400)
CHUNK = 40

# Seconds that a small file may take on a machine with much else to do.
_PATIENCE = 60

RATE = 48_000


# --- files ---


def _wav() -> bytes:
    made = io.BytesIO()
    with wave.open(made, "wb") as file:
        file.setnchannels(2)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(np.random.default_rng(1).integers(-9000, 9000, 800, np.int16).tobytes())
    return made.getvalue()


def _sound(ending: str, codec: str, layout: str = "stereo", rate: int = RATE) -> Callable[[Path], None]:
    count = len(av.AudioLayout(layout).channels)
    samples = np.random.default_rng(1).uniform(-0.5, 0.5, (2400, count))
    return lambda path: write_coded(path, samples, rate, codec, layout)


def _picture(mode: str, **options: object) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        channels = len(mode)
        pixels = np.random.default_rng(1).integers(0, 256, (13, 17, channels), np.uint8)
        Image.fromarray(pixels if channels > 1 else pixels[..., 0]).save(path, **options)

    return write


def _animation(path: Path) -> None:
    frames = [Image.new("RGB", (16, 9), colour) for colour in ("red", "lime", "blue")]
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=200, loop=0)


def _film(codec: str) -> Callable[[Path], None]:
    pictures = [np.random.default_rng(n).integers(0, 256, (16, 32, 3), np.uint8) for n in range(4)]
    samples = np.random.default_rng(1).uniform(-0.5, 0.5, (6400, 2)).astype(np.float32)
    sound = {"libvpx-vp9": "libopus", "libvpx": "libopus", "ffv1": "flac"}.get(codec, "aac")
    return lambda path: film_of(path, pictures, 30, codec, sound=(sound, [(0, samples)]))


def _font(path: Path) -> None:
    path.write_bytes(files("weft.media").joinpath("fonts", "DejaVuSansMono.ttf").read_bytes())


KINDS: dict[str, Callable[[Path], object]] = {
    "a.wav": lambda path: path.write_bytes(_wav()), "b.wav": _sound("wav", "pcm_f32le", "5.1"),
    "a.flac": _sound("flac", "flac"), "a.ogg": _sound("ogg", "flac"), "a.opus": _sound("opus", "libopus"),
    "a.mp3": _sound("mp3", "libmp3lame"), "a.m4a": _sound("m4a", "aac"), "a.aiff": _sound("aiff", "pcm_s16be"),
    "a.png": _picture("RGBA"), "b.png": _picture("L"), "c.png": _animation, "a.jpg": _picture("RGB"),
    "a.gif": _animation, "a.webp": _picture("RGBA"), "b.webp": _animation, "a.bmp": _picture("RGB"),
    "a.mp4": _film("libx264"), "a.webm": _film("libvpx-vp9"), "b.webm": _film("libvpx"), "a.mkv": _film("ffv1"),
    "a.avi": _film("mpeg4"), "a.mov": _film("libx264"), "a.ts": _film("libx264"), "a.ttf": _font,
}  # fmt: skip


@cache
def _whole(name: str, folder: Path) -> bytes:
    path = folder / f"whole-{name}"
    KINDS[name](path)
    return path.read_bytes()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("media")


_NUMBERS = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)


def mutated(data: bytes, chance: random.Random) -> bytes:
    """A file with damage: mostly at its beginning, where it says what it is."""
    found = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 5, 20))):
        size = len(found)
        if not size:
            break
        at = chance.randrange(size if chance.random() < 0.4 else min(size, 200))
        match chance.randrange(8):
            case 0 | 1:
                found[at] = chance.randrange(256)
            case 2:
                found[at] ^= 1 << chance.randrange(8)
            case 3:
                number = struct.pack(chance.choice(("<I", ">I")), chance.choice(_NUMBERS))
                found[at : at + 4] = number
            case 4:
                del found[at : at + chance.randint(1, 64)]
            case 5:
                found[at:at] = found[chance.randrange(size) :][: chance.randint(1, 64)]
            case 6:
                found[at : at + chance.randint(1, 200)] = bytes(chance.randint(1, 200))
            case _:
                del found[chance.randrange(size) :]
    return bytes(found)


# --- what becomes of them ---


@contextmanager
def _in_time() -> Iterator[None]:
    def end(number: int, frame: FrameType | None) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(_PATIENCE)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _text(name: str) -> str:
    if name.endswith(".ttf"):
        return f'text("Aé1", font: "{name}")::t<v>\ndisplay(t@v)\n'
    if ends_as(name, SOUND):
        return f'load("{name}")::k<l, r>\nplay(k@l, k@r)\n'
    return f'load("{name}")::p<r, g, b, a>\ndisplay(p)\n'


def outcome(path: Path) -> str:
    """What happens to a file: it is `read`, or refused `by its header` or `later`."""
    text = _text(path.name)
    try:
        made = build(Request(Source(str(path.with_suffix(".weft")), text), ContextTable(), probe=header_of))
    except WeftError as failure:
        (diagnostic,) = failure.diagnostics
        assert diagnostic.code == "unreadable-source", diagnostic
        assert diagnostic.span is not None
        assert "Error" not in diagnostic.message, diagnostic
        return "by its header"
    try:
        if ends_as(path.name, FILM):
            _play(path)
            header = header_of(str(path))
            assert not isinstance(header, str)
            if header.channels:
                read(SoundFile(str(path), RATE).name)
        for unit in made.units:
            for sampled in unit.pictures:
                if not sampled.startswith("live:"):
                    found = np.asarray(read(sampled))
                    assert np.isfinite(found).all()
    except PictureError:
        return "later"
    return "read"


def _play(path: Path) -> None:
    """Decodes a film as its process does, which tells what is raised there."""
    index = decoding.index_of(path)
    if isinstance(index, decoding.FilmIndex):
        index.measure(path)
    reader = index.reader()
    try:
        for seconds in (0.0, index.seconds / 2):
            reader.seek(seconds)
            for _ in range(6):
                decoded = reader.next()
                if decoded is None:
                    break
                assert reader.pixels(decoded.frame).shape[2] == 4
    except (OSError, ValueError) as failure:  # PyAV's; the process tells it, and tries again
        raise PictureError(str(failure)) from failure
    finally:
        reader.close()


@pytest.mark.parametrize("name", KINDS)
def test_whole_files_are_read(name: str, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(_whole(name, folder))
    assert outcome(path) == "read"


@pytest.mark.parametrize("first", all_but(2, range(FIRST, FIRST + COUNT, CHUNK)))
def test_damaged_files_are_read_or_told(first: int, folder: Path, tmp_path: Path) -> None:
    tally: Counter[tuple[str, str]] = Counter()
    for seed in range(first, min(first + CHUNK, FIRST + COUNT)):
        chance = random.Random(seed)
        name = list(KINDS)[seed % len(KINDS)]
        path = tmp_path / f"{seed}{Path(name).suffix}"
        path.write_bytes(mutated(_whole(name, folder), chance))
        try:
            with _in_time():
                tally[name, outcome(path)] += 1
        except Exception as failure:
            raise AssertionError(f"seed {seed}, a {name}: {failure!r}") from failure
        path.unlink()
    if ASKED:
        print(dict(sorted(tally.items())))


@pytest.mark.parametrize("kind", [PICTURE, SOUND, FILM], ids=lambda kind: kind.name)
@pytest.mark.parametrize("seed", all_but(1, range(8)))
def test_the_command_tells_it_with_its_place(kind: object, seed: int, folder: Path, tmp_path: Path) -> None:
    names = [name for name in KINDS if ends_as(name, kind)]  # type: ignore[arg-type]
    name = names[seed % len(names)]
    (tmp_path / name).write_bytes(mutated(_whole(name, folder), random.Random(seed + 5)))
    (tmp_path / "p.weft").write_text(_text(name))
    out = "p.npy" if ends_as(name, SOUND) else "p.png"
    more = ["--duration", "0.05"] if out == "p.npy" else ["--size", "16x16"]
    found = ran(["render", "p.weft", "-o", out, *more], tmp_path, os.environ)
    assert found.returncode in (0, 1, 3), found.stderr
    assert "Traceback" not in found.stderr
    if found.returncode == 1:
        assert "p.weft:1:" in found.stderr
