"""Sounds: files in samples, and the language over them on every executor of the CPU."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from tests.support.choices import ANYWHERE
from tests.support.devices import DRAWING, cuda, device, embedded_graphics, executor_on, graphics, opencl, wgpu
from tests.support.exprs import Exprs, lowered
from tests.support.gl import GlExecutor, Graphics
from tests.support.kernels import compiled as compiled_ir
from tests.support.sounds import between, cache, write_coded, write_wav
from weft import disk
from weft.backends.base import Env
from weft.backends.executors import Executor
from weft.backends.launch import Floats, Launch, StateMemory, fetch, picture_coords
from weft.backends.native.executor import NativeExecutor
from weft.backends.registry import load_registry
from weft.backends.select import choose
from weft.backends.vector.machine import VectorExecutor
from weft.backends.vm import ReferenceExecutor
from weft.backends.wasm import WasmExecutor
from weft.codegen.kernel import Kernel, verify
from weft.contexts import ContextTable
from weft.disk import HEAD_BYTES
from weft.errors import Source, WeftError, error
from weft.media import sounds
from weft.media.sampled import decoded_files, header_of, read, read_decoded
from weft.media.sounds import SoundInfo, load_sound, probe_sound
from weft.media.source import PictureError
from weft.names import SoundFile, file_of, is_sound, sound_of
from weft.runtime.compiling.stages import Request, build
from weft.runtime.program.program import ProgramLoader

__all__ = ["cache", "cuda", "device", "embedded_graphics", "graphics", "opencl", "wgpu"]

pytestmark = pytest.mark.usefixtures("cache")

RATE = 48_000
MACHINES: dict[str, Executor] = {"vm": ReferenceExecutor(), "vector": VectorExecutor(), "native": NativeExecutor(),
                                "wasm": WasmExecutor()}  # fmt: skip
NOISE = np.random.default_rng(1).uniform(-0.9, 0.9, (700, 2))


def tone(frequency: float, rate: int, seconds: float = 0.5) -> NDArray[np.float64]:
    return np.sin(2 * np.pi * frequency * np.arange(round(seconds * rate)) / rate)


def db(of: Floats, to: Floats) -> float:
    """The power of one signal relative to another, in dB."""
    return float(10 * np.log10(np.mean(np.square(of, dtype=np.float64)) / np.mean(np.square(to, dtype=np.float64))))


# Files.


def test_samples_of_the_rate_of_the_performance_are_exact(tmp_path: Path) -> None:
    stored = write_wav(tmp_path / "a.wav", NOISE)
    found = load_sound(tmp_path / "a.wav", RATE)
    assert found.shape == (1, 700, 2)
    np.testing.assert_array_equal(found[0], stored)
    mono = write_wav(tmp_path / "m.wav", NOISE[:, 0])
    np.testing.assert_array_equal(load_sound(tmp_path / "m.wav", RATE)[0], np.repeat(mono, 2, axis=1))


@pytest.mark.parametrize(
    ("codec", "ending", "error"),
    [("flac", "flac", -90), ("pcm_s24le", "wav", -120), ("pcm_f32le", "wav", -140), ("pcm_f64le", "wav", -140),
     ("pcm_u8", "wav", -40), ("libmp3lame", "mp3", -20), ("libopus", "ogg", -30), ("aac", "m4a", -12)],
)  # fmt: skip
def test_every_format_is_read_in_place(codec: str, ending: str, error: float, tmp_path: Path) -> None:
    """The delays of encoders are taken out: each sample is where it was."""
    path = tmp_path / f"a.{ending}"
    given = np.stack([tone(440, RATE), 0.5 * tone(1000, RATE)], axis=1) * np.hanning(RATE // 2)[:, None]
    write_coded(path, given, RATE, codec)
    info = probe_sound(path)
    assert (info.channels, round(info.seconds, 1)) == (2, 0.5)
    found = load_sound(path, RATE)[0]
    assert len(found) >= len(given)
    errors = [db(np.roll(found[: len(given)], shift, axis=0) - given, given) for shift in (-1, 0, 1)]
    assert errors[1] == min(errors)
    assert errors[1] < error


@pytest.mark.parametrize("rate", [44_100, 96_000, 8_000])
def test_resampling_keeps_tones_and_their_places(rate: int, tmp_path: Path) -> None:
    """Within 0.001 dB up to nine tenths of what both rates can hold, and what is left over is below −110 dB."""
    for share in (0.02, 0.4, 0.87):
        frequency = share * min(rate, RATE) / 2
        write_coded(tmp_path / "a.wav", np.repeat(tone(frequency, rate)[:, None], 2, axis=1), rate, "pcm_f32le")
        found = load_sound(tmp_path / "a.wav", RATE)[0, 4000:-4000, 0]
        wave = 2 * np.pi * frequency * (4000 + np.arange(len(found))) / RATE
        assert db(found - np.sin(wave), np.sin(wave)) < -75  # 0.001 dB
        basis = np.stack([np.sin(wave), np.cos(wave)], axis=1)
        fitted = basis @ np.linalg.lstsq(basis, found, rcond=None)[0]
        assert db(found - fitted, fitted) < -110


@pytest.mark.parametrize("rate", [1000, 8000, 44_100, 96_000])
def test_a_sound_that_is_shorter_than_the_filter_keeps_its_length(rate: int, tmp_path: Path) -> None:
    for count in (1, 10, 480, 5000):
        write_wav(tmp_path / "short.wav", np.full((count, 2), 0.5))
        made = load_sound(tmp_path / "short.wav", rate)
        assert made.shape[1] == max(1, round(count * rate / 48_000))
        assert count < 480 or made[0, made.shape[1] // 2] == pytest.approx(0.5, abs=0.1)


def test_what_a_lower_rate_cannot_hold_is_gone(tmp_path: Path) -> None:
    given = np.repeat(tone(24_600, 96_000)[:, None], 2, axis=1)
    write_coded(tmp_path / "a.wav", given, 96_000, "pcm_f32le")
    found = load_sound(tmp_path / "a.wav", RATE)[0, 4000:-4000, 0]
    assert db(found, tone(1000, RATE)) < -110


@pytest.mark.parametrize(("layout", "left", "right"), [
    ("5.1", [1, 0, 0.7071, 0, 0.7071, 0], [0, 1, 0.7071, 0, 0, 0.7071]),
    ("quad", [1, 0, 0.7071, 0], [0, 1, 0, 0.7071]),
    ("3.0", [1, 0, 0.7071], [0, 1, 0.7071]),
    ("4.0", [1, 0, 0.7071, 0.5], [0, 1, 0.7071, 0.5]),
])  # fmt: skip
@pytest.mark.parametrize(("ending", "codec"), [("wav", "pcm_f32le"), ("flac", "flac")])
def test_more_than_two_channels_are_mixed_as_their_layout_says(
    layout: str, left: list[float], right: list[float], ending: str, codec: str, tmp_path: Path
) -> None:
    """By the levels of ITU-R BS.775."""
    given = np.random.default_rng(4).uniform(-0.3, 0.3, (900, len(left)))
    path = tmp_path / f"a.{ending}"
    write_coded(path, given, RATE, codec, layout)
    expected = np.stack([given @ left, given @ right], axis=1)
    np.testing.assert_allclose(load_sound(path, RATE)[0], expected, atol=2e-4)


def test_of_many_channels_without_a_layout_the_first_two_are_left_and_right(tmp_path: Path) -> None:
    given = np.random.default_rng(2).uniform(-1, 1, (500, 32))
    stored = write_wav(tmp_path / "a.wav", given)
    np.testing.assert_array_equal(load_sound(tmp_path / "a.wav", RATE)[0], stored[:, :2])
    assert probe_sound(tmp_path / "a.wav").channels == 32


def test_a_title_in_any_encoding_is_no_matter(tmp_path: Path) -> None:
    """Old editors write titles in Latin-1."""
    stored = write_wav(tmp_path / "a.wav", NOISE)
    title = b"INFOINAM\x06\x00\x00\x00Caf\xe9 \x00"
    whole = (tmp_path / "a.wav").read_bytes() + b"LIST" + len(title).to_bytes(4, "little") + title
    (tmp_path / "a.wav").write_bytes(whole[:4] + (len(whole) - 8).to_bytes(4, "little") + whole[8:])
    assert probe_sound(tmp_path / "a.wav").channels == 2
    np.testing.assert_array_equal(load_sound(tmp_path / "a.wav", RATE)[0], stored)


def test_what_is_no_number_in_a_file_is_silent(tmp_path: Path) -> None:
    given = np.array([[0.5, np.nan], [np.inf, -0.5], [-np.inf, 0.25]])
    write_coded(tmp_path / "a.wav", given, RATE, "pcm_f32le")
    np.testing.assert_array_equal(load_sound(tmp_path / "a.wav", RATE)[0], [[0.5, 0], [0, -0.5], [0, 0.25]])


def test_a_sound_is_decoded_once_and_mapped(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.wav"
    first = write_wav(path, NOISE)
    load_sound(path, RATE)
    (kept,) = cache.iterdir()
    assert kept.stat().st_size == HEAD_BYTES + NOISE.size * 4 + 8
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "av", None)
        found = load_sound(path, RATE)
        np.testing.assert_array_equal(found[0], first)
        assert not found.flags.writeable
        with pytest.raises(PictureError, match="PyAV, which is not installed"):
            load_sound(path, 44_100)
    second = write_wav(path, NOISE[::-1])
    np.testing.assert_array_equal(load_sound(path, RATE)[0], second)
    np.testing.assert_array_equal(found[0], first)


def test_the_cache_keeps_what_was_used_last(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sounds, "KEPT_BYTES", 3 * (HEAD_BYTES + NOISE.size * 4 + 8))
    cache.mkdir(parents=True)
    for name, age in (("left.part", 3600), ("decoding.part", 1)):
        (cache / name).touch()
        os.utime(cache / name, (time.time() - age,) * 2)
    for number in range(5):
        write_wav(tmp_path / f"{number}.wav", NOISE)
        load_sound(tmp_path / f"{number}.wav", RATE)
        for at, kept in enumerate(sorted(cache.glob("*.f32"), key=lambda each: each.stat().st_mtime_ns)):
            os.utime(kept, (at, at))
    assert len(list(cache.glob("*.f32"))) == 3
    assert [left.name for left in cache.glob("*.part")] == ["decoding.part"]
    (last,) = decoded_files([SoundFile(str(tmp_path / "4.wav"), RATE).name]).values()
    assert Path(last).exists()


def test_without_a_cache_folder_another_one_serves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(sounds.tempfile, "gettempdir", lambda: str(tmp_path))
    stored = write_wav(tmp_path / "a.wav", NOISE)
    np.testing.assert_array_equal(load_sound(tmp_path / "a.wav", RATE)[0], stored)


def broken(kind: str, folder: Path) -> Path:
    """A file that is no sound, or not a whole one."""
    path = folder / "a.wav"
    match kind:
        case "missing":
            pass
        case "folder":
            path.mkdir()
        case "empty":
            path.touch()
        case "text":
            path.write_text("this is no sound\n" * 90)
        case "picture":
            Image.new("RGB", (9, 9)).save(path, format="PNG")
        case "no samples":
            write_wav(path, NOISE[:0])
        case "broken off":
            write_coded(folder / "a.flac", np.random.default_rng(3).uniform(-1, 1, (4 * RATE, 2)), RATE, "flac")
            data = (folder / "a.flac").read_bytes()
            path.write_bytes(data[: len(data) // 2])
    return path


BROKEN = {
    "missing": "there is no such file", "folder": "it is a folder", "empty": "it is empty",
    "text": "it is not a sound", "picture": "no sound in it, only pictures", "no samples": "there is no sound in it",
    "broken off": r"breaks off after [12]\.\d of 4\.0 seconds",
}  # fmt: skip


@pytest.mark.parametrize("kind", BROKEN)
def test_what_cannot_be_read_says_why(kind: str, tmp_path: Path, cache: Path) -> None:
    path = broken(kind, tmp_path)
    with pytest.raises(PictureError, match=BROKEN[kind]):
        load_sound(path, RATE)
    assert not cache.exists() or not list(cache.iterdir())
    if kind not in ("no samples", "broken off"):  # that is not in the header
        text = f'load("{path}")::k<l, r>\nplay(k@l)'
        with pytest.raises(WeftError, match=BROKEN[kind]) as raised:
            build(Request(Source("patch.weft", text), ContextTable(), probe=header_of, permissions=ANYWHERE))
        (problem,) = raised.value.diagnostics
        assert problem.span is not None
        assert problem.span.text == f'"{path}"'


def test_a_sound_may_be_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sounds, "MAX_SAMPLES", 600)
    write_wav(tmp_path / "a.wav", NOISE)
    with pytest.raises(PictureError, match="longer than"):
        load_sound(tmp_path / "a.wav", RATE)


def test_a_header_is_enough_to_check(tmp_path: Path, cache: Path) -> None:
    write_wav(tmp_path / "a.wav", NOISE)
    assert probe_sound(tmp_path / "a.wav") == SoundInfo(2, 700 / RATE, "wav")
    text = f'load("{tmp_path}/a.wav")::k<l, r>\nplay(k@l)'
    build(Request(Source("patch.weft", text), ContextTable(), probe=header_of, permissions=ANYWHERE))
    assert not cache.exists()


@pytest.mark.parametrize("path", ["kick.wav", "a@b.wav", "50%40.flac", "a:b/ü.ogg"])
def test_names_of_sounds(path: str) -> None:
    name = SoundFile(path, 44_100).name
    assert is_sound(name)
    assert sound_of(name) == SoundFile(path, 44_100)
    assert file_of(name) == path
    assert "@" not in name


def test_samples_that_are_gone_are_told(tmp_path: Path) -> None:
    with pytest.raises(PictureError, match=r"gone \(No such file"):
        read_decoded(str(tmp_path / "a.f32"))


# In the language.


@pytest.fixture(params=["vm", "vector", "native", *DRAWING])
def machine(request: pytest.FixtureRequest) -> Executor:
    """What computes pictures. Cards are made when they are needed."""
    name = request.param
    if name in DRAWING:
        return executor_on(name, request)
    return MACHINES[name]


def compiled(text: str) -> Kernel:
    (unit,) = build(Request(Source("patch.weft", text), ContextTable(), probe=header_of, permissions=ANYWHERE)).units
    verify(unit.kernel)
    return unit.kernel


def launch_of(kernel: Kernel, shape: tuple[int, int], coords: dict[str, Floats | float]) -> Launch:
    env = Env(shape[1], shape[0], pictures={name: read(name) for name in kernel.pictures})
    uniforms = {name: env.uniform(name) for name in kernel.uniforms}
    return Launch(shape, coords, uniforms, pictures=env.pictures)


def heard(text: str, times: Floats, machine: str = "vm") -> Floats:
    """The outputs of a sound at some times: [outputs, times]."""
    kernel = compiled(text)
    launch = launch_of(kernel, (1, len(times)), {"abstime": times, "channel": 0.0})
    found: Floats = MACHINES[machine].load(kernel).planes(StateMemory(kernel.slots), launch)[:, 0]
    return found


@pytest.fixture
def noise(tmp_path: Path) -> tuple[str, NDArray[np.float32]]:
    """A call that loads a sound, and its samples."""
    path = tmp_path / "noise.wav"
    return f'load("{path}")', write_wav(path, NOISE)


@pytest.mark.parametrize("machine", MACHINES)
def test_at_its_own_speed_a_sound_is_itself_and_silent_around(
    machine: str, noise: tuple[str, NDArray[np.float32]]
) -> None:
    call, stored = noise
    times = np.arange(-50, 800) / RATE
    found = heard(f"{call}::k<l, r>\nplay(k@l, k@r)", times, machine)
    padded = np.concatenate([np.zeros((50, 2)), stored, np.zeros((100, 2))]).T
    np.testing.assert_array_equal(found, padded.astype(np.float32))
    later = heard(f"{call}::k<l, r>\nplay(k@l(me@time ~ me@time - 7000), k@r)", times + 7000, machine)
    np.testing.assert_array_equal(later, [padded[0].astype(np.float32), np.zeros(850)])


@pytest.mark.parametrize("machine", MACHINES)
def test_a_remap_plays_at_another_speed_and_backwards(machine: str, noise: tuple[str, NDArray[np.float32]]) -> None:
    call, stored = noise
    times = np.arange(-20, 720) / RATE
    text = f"{call}::k<l, r>\nplay(k@l(me@time ~ me@time * 0.77), k@r(me@time ~ 0.0113 - me@time), k@l(me@time * 1.5))"
    found = heard(text, times, machine)
    wanted = [between(stored[:, 0], times * RATE * 0.77), between(stored[:, 1], (0.0113 - times) * RATE),
              between(stored[:, 0], times * RATE * 1.5)]  # fmt: skip
    np.testing.assert_allclose(found, wanted, atol=2e-6)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("count", [1, 2, 3, 5, 700])
def test_a_loop_goes_round_without_a_seam(machine: str, count: int, tmp_path: Path) -> None:
    stored = write_wav(tmp_path / "a.wav", NOISE[:count])
    text = f'load("{tmp_path}/a.wav", loop: 1)::k<l, r>\nplay(k@l, k@r(me@time ~ me@time * 0.37), k@seconds)'
    times = np.arange(-750, 750) / RATE
    whole, between_them, length = heard(text, times, machine)
    numbers = np.arange(-750, 750)
    np.testing.assert_array_equal(whole, stored[numbers % count, 0])
    rounds = np.tile(stored[:, 1], 8000 // count)
    start = len(rounds) // count // 2 * count
    np.testing.assert_allclose(between_them, between(rounds, start + numbers * 0.37), atol=2e-6)
    np.testing.assert_allclose(length, count / RATE)


def test_pictures_read_sounds(machine: Executor, noise: tuple[str, NDArray[np.float32]]) -> None:
    call, stored = noise
    over = "k@l(me@time ~ me@x * 0.014), k@r(me@time ~ me@time + me@y * 0.01), k@l"
    kernel = compiled(f"{call}::k<l, r>\ndisplay({over})")
    coords = picture_coords(40, 6, 0.003)
    found = machine.load(kernel).planes(StateMemory(()), launch_of(kernel, (6, 40), coords))
    x, y = np.asarray(coords["x"]), np.asarray(coords["y"])[:, None]
    over_x = between(stored[:, 0], x * 0.014 * RATE)
    over_y = between(stored[:, 1], (0.003 + y * 0.01) * RATE)
    for plane, wanted in zip(found, (over_x, over_y, np.full(1, stored[144, 0])), strict=True):
        np.testing.assert_allclose(plane, np.broadcast_to(wanted, (6, 40)), atol=3e-4)


EDGES = [0.0, 0.99, 1.0, 699.0, 699.99, 700.0, 750.0, 4095.9, 1e9, 3e38, -1e-9, -1.0, -3e38, np.inf, -np.inf, np.nan]


def test_numbers_of_samples_are_checked_on_every_machine(machine: Executor) -> None:
    """They vary by element, so that cards compute them too."""
    e = Exprs()
    number = e.uniform("n") + e.coord("x") * 0 + e.coord("y") * 0
    made = machine.load(compiled_ir(lowered(e.fetch("sound:1:s", number), e.fetch("sound:1:s", number, 1))))
    sound = NOISE.astype(np.float32)[np.newaxis]
    for edge in np.array(EDGES, np.float32).tolist():
        launch = Launch((2, 9), picture_coords(9, 2), {"n": edge}, pictures={"sound:1:s": sound})
        found = made.planes(StateMemory(()), launch)
        wanted = [fetch(sound[0, :, channel], edge) for channel in (0, 1)]
        np.testing.assert_array_equal(found, np.broadcast_to(np.array(wanted)[:, None, None], (2, 2, 9)))


@pytest.mark.parametrize("machine", MACHINES)
def test_a_time_that_is_no_number_is_silent(machine: str, noise: tuple[str, NDArray[np.float32]]) -> None:
    call, _ = noise
    text = f"{call}::k<l, r>\nplay(k@l(me@time ~ log(-1 - me@time)), k@l(me@time ~ 1 / (me@time - me@time)))"
    np.testing.assert_array_equal(heard(text, np.arange(9) / RATE, machine), np.zeros((2, 9)))


@pytest.mark.long
def test_an_hour_is_exact_to_the_sample(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The samples of a long sound are in a sparse file, which takes no room."""
    count = 3600 * RATE
    path = tmp_path / "a.wav"
    write_wav(path, NOISE[:1])
    cache.mkdir(parents=True)
    tail = NOISE.astype(np.float32)
    kept = cache / sounds._key(path, RATE)
    head = disk._head_of(kept, sounds._KEPT, count * 8 + 8, 10**18, bytes(32))
    with kept.open("wb") as file:
        file.write(head)
        file.seek(HEAD_BYTES + (count - len(tail)) * 8)
        file.write(tail.tobytes())
        file.write(np.float64(count).tobytes())
    os.utime(kept, ns=(10**18, 10**18))
    cache.chmod(0o700)
    kept.chmod(0o600)
    times = np.arange(count - 700, count + 9) / RATE
    for machine in MACHINES:
        found = heard(f'load("{path}")::k<l, r>\nplay(k@l, k@r)', times, machine)
        np.testing.assert_array_equal(found[:, :700], tail.T)
        np.testing.assert_array_equal(found[:, 700:], np.zeros((2, 9)))


def test_between_samples_a_sine_is_nearly_one(tmp_path: Path) -> None:
    """Nearly as docs/sources.md says, within 16 bits: here, changes of the level count too."""
    for frequency, most in ((1000, -90), (5000, -50), (10_000, -26)):
        stored = write_wav(tmp_path / "a.wav", tone(frequency, RATE, 0.1))[:, 0]
        times = np.arange(200, 1400) / RATE
        (found,) = heard(f'load("{tmp_path}/a.wav")::k<l, r>\nplay(k@l(me@time ~ me@time * 1.5))', times)
        exact = np.sin(2 * np.pi * frequency * 1.5 * times) * 32767 / 32768
        assert len(stored) == 4800
        assert db(found - exact, exact) < most


@pytest.mark.parametrize(
    ("text", "code"),
    [('load("a.wav", loop: me@x)::k<l, r>\nplay(k@l)', "needs-a-number"),
     ('load("a.wav", loop: 2)::k<l, r>\nplay(k@l)', "needs-a-number"),
     ('load("a.wav")::k<l, r, x>\nplay(k@l)', "too-many-outputs"),
     ('load("a.mid")::k<l, r>\nplay(k@l)', "unknown-media")],
)  # fmt: skip
def test_mistakes(text: str, code: str) -> None:
    with pytest.raises(WeftError) as raised:
        build(Request(Source("patch.weft", text), ContextTable()))
    assert code in {problem.code for problem in raised.value.diagnostics}


def test_a_process_that_plays_does_not_import_the_decoder(noise: tuple[str, NDArray[np.float32]]) -> None:
    call, _ = noise
    path = call.split('"')[1]
    load_sound(Path(path), RATE)
    (decoded,) = decoded_files([SoundFile(path, RATE).name, "a.png"]).values()
    program = (
        "import sys; from weft.media.sampled import read_decoded\n"
        f"assert read_decoded({decoded!r}).shape == (1, 700, 2)\n"
        "assert 'av' not in sys.modules and 'weft.runtime.compiling.stages' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_sound_in_rows_of_a_texture(
    graphics: Graphics, noise: tuple[str, NDArray[np.float32]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A card that takes 60 pixels a side holds 3600 samples, in rows of 60."""
    call, stored = noise
    kernel = compiled(f"{call}::k<l, r>\ndisplay(k@l(me@time ~ me@px / {RATE}), k@r(me@time ~ me@px / {RATE}), 0)")
    monkeypatch.setattr(graphics, "about", replace(graphics.about, side=60))
    launch = launch_of(kernel, (1, 710), picture_coords(710, 1))
    monkeypatch.setattr("weft.backends.gl.textures.check_side", lambda *_: None)
    found = GlExecutor(graphics).load(kernel).planes(StateMemory(()), launch)[:2, 0]
    np.testing.assert_allclose(found[:, :700], stored.T, atol=1e-4)
    np.testing.assert_array_equal(found[:, 702:], 0)
    monkeypatch.setattr(graphics, "about", replace(graphics.about, side=26))
    with pytest.raises(WeftError, match="cannot hold a sound of 700 samples"):
        GlExecutor(graphics).load(kernel).planes(StateMemory(()), launch)


def test_a_sound_that_a_card_cannot_hold_is_shown_by_the_processor(
    graphics: Graphics, noise: tuple[str, NDArray[np.float32]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise error("sound-too-long", "the graphics card cannot hold a sound of 700 samples")

    monkeypatch.setattr("weft.backends.gl.drawing.SoundTexture", refused)
    registry = load_registry()
    loader = ProgramLoader(choose(registry, ["visual"], "visual=gl"))
    text = f"{noise[0]}::k<l, r>\ndisplay(k@l(me@time ~ me@x))"
    made = build(Request(Source("patch.weft", text), registry.contexts, probe=header_of, permissions=ANYWHERE))
    loaded = loader.prepare(made.compiled, (8, 4))
    assert [part.backend.name for part in loaded.runner.parts] == ["cpu_visual"]
    (change,) = loader.assignment.changes()
    assert "cannot hold a sound of 700 samples" in str(change)
