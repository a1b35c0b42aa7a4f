"""`weft render` of films: each is decoded again and compared with the pictures and the sound of the same patch."""

from __future__ import annotations

import io
import resource
import signal
import subprocess
import sys
import time
from fractions import Fraction

import av
import numpy as np
import pytest
import soundfile
from PIL import Image

from tests.cli.conftest import Weft

RATE, FPS, FRAMES = 48_000, 12, 12
HEAD = f"me<rate> = {RATE}; me<width> = 64; me<height> = 36; me<fps> = {FPS}\n"
# All colours; white from frame 6 on. At that moment there is a click, besides a tone.
PATCH = (
    f"{HEAD}white<v> = if me@time >= 0.5 then 1 else 0\ndisplay(max(me@x, white@v), max(me@y, white@v), "
    "max(me@time, white@v))\nclick<v> = if me@time >= 0.5 and me@time < 0.501 then 0.9 else 0\n"
    "audio(click@v, sin(me@time * 440 * tau) * 0.3)\n"
)
# How close a decoded frame is to its picture, at least, in decibels. The decoder rounds Y, Cb and Cr to 8 bits, and of
# the latter two there is one for four pixels, while the picture goes through all colours in 64 pixels; a gif has 256
# colours.
LOSSY, FEW_COLOURS, DEEP, EXACT = 36.0, 18.0, 70.0, np.inf


@pytest.fixture(scope="module")
def films(tmp_path_factory):
    weft = Weft(tmp_path_factory.mktemp("films"))
    weft.file("a.weft", PATCH)
    weft("render", "a.weft", "-o", "a%02d.png", "--duration", "1")
    weft("render", "a.weft", "-o", "a.wav", "--duration", "1")
    return weft


def rgb(pixels):
    return pixels[..., :3].astype(int)


def pictures(folder, name="a", count=FRAMES):
    for number in range(count):
        with Image.open(folder / f"{name}{number:02}.png") as image:
            yield rgb(np.asarray(image))


def psnr(frame, picture):
    """The peak signal-to-noise ratio, in decibels."""
    error = np.mean(np.square(frame - picture, dtype=float))
    return 10 * np.log10(255**2 / error) if error else np.inf


def decoded(path):
    """The times and the pixels of the frames, and the properties of the stream."""
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        frames = [(float(frame.time), rgb(frame.to_ndarray(format="rgba"))) for frame in container.decode(stream)]
        context = stream.codec_context
        said = context.name, context.pix_fmt, int(context.colorspace), int(context.color_range)
        return [t for t, _ in frames], [f for _, f in frames], said, stream.sample_aspect_ratio


def heard(path):
    """The samples of a film, [channels, samples], and their rate."""
    with av.open(str(path)) as container:
        stream = container.streams.audio[0]
        frames = list(container.decode(stream))
        assert frames[0].time == 0
        resampler = av.AudioResampler("fltp")
        parts = [part.to_ndarray() for frame in [*frames, None] for part in resampler.resample(frame)]
        return np.concatenate(parts, axis=1), stream.rate


@pytest.mark.parametrize(
    ("ending", "codec", "decoder", "close", "late"),
    [
        ("mp4", None, "h264", LOSSY, 1e-6),
        pytest.param("mp4", "h265", "hevc", LOSSY, 1e-6, marks=pytest.mark.long),
        ("webm", None, "vp9", LOSSY, 1e-3),
        pytest.param("mkv", None, "h264", LOSSY, 1e-3, marks=pytest.mark.long),
        ("mkv", "ffv1", "ffv1", EXACT, 1e-3),
        ("mov", None, "prores", DEEP, 1e-6),
        pytest.param("mov", "png", "png", EXACT, 1e-6, marks=pytest.mark.long),
        ("gif", None, "gif", FEW_COLOURS, 5.1e-3),
        ("apng", None, "apng", EXACT, 1e-3),
    ],
)
def test_a_film_has_the_pictures_and_the_sound_of_its_patch(films, ending, codec, decoder, close, late):
    path = films.folder / f"a.{ending}"
    done = films("render", "a.weft", "-o", path.name, "--duration", "1", *(["--codec", codec] if codec else []))
    times, frames, (name, *_), _ = decoded(path)
    assert decoder in name  # "vp9" or "libvpx-vp9"
    np.testing.assert_allclose(times, np.arange(FRAMES) / FPS, atol=late)
    assert len(frames) == FRAMES
    for frame, picture in zip(frames, pictures(films.folder), strict=True):
        assert psnr(frame, picture) >= close
    with av.open(str(path)) as container:
        # Matroska counts what Opus puts before the first sample; an apng only says how long each frame lasts.
        longer = 0.0081 if ending in ("mkv", "webm") and codec != "ffv1" else 1e-6
        assert ending == "apng" or 0 <= container.duration / av.time_base - 1 <= longer
    if ending in ("gif", "apng"):
        assert f".{ending} has no sound" in done.stderr
        return
    sound, rate = heard(path)
    expected = soundfile.read(films.folder / "a.wav", always_2d=True)[0].T
    # AAC ends with a whole packet, which players cut at the length that the file says.
    assert RATE <= sound.shape[1] <= RATE + (1024 if ending == "mp4" else 0)
    assert rate == RATE
    assert abs(int(np.abs(sound[0]).argmax()) - RATE // 2) < 0.001 * RATE
    tone = np.corrcoef(sound[1, :RATE], expected[1])[0, 1]
    assert tone > 0.999
    if codec == "ffv1" or ending == "mov":
        np.testing.assert_allclose(sound, expected, atol=2.0**-22)


def test_a_film_is_oversampled_as_its_sound_alone_is_and_shows_what_it_would(films):
    # The picture shows the sound of a second ago.
    saw = "s<v> = fract(me@time * 2999) - 0.5\n"
    films.file("saw.weft", f"{HEAD}{saw}display(s@v(me@time ~ me@time - 1))\naudio(s@v)\n")
    for name, options in (("plain", ()), ("over", ("--oversample", "8"))):
        films("render", "saw.weft", "-o", f"{name}.mkv", "--codec", "ffv1", "--to", "1.5", *options)
    films("render", "saw.weft", "-o", "over.wav", "--to", "1.5", "--oversample", "8")
    expected = soundfile.read(films.folder / "over.wav", always_2d=True)[0].T
    sound, rate = heard(films.folder / "over.mkv")
    assert rate == RATE
    np.testing.assert_allclose(sound, expected, atol=2.0**-22)
    plain, over = (np.stack(decoded(films.folder / f"{name}.mkv")[1]) for name in ("plain", "over"))
    assert plain[-1].any()
    assert np.array_equal(plain, over)


def test_a_film_says_how_long_it_is_and_how_its_colours_are_coded(films):
    films.file("red.weft", f"{HEAD}display(1, 0, 0)\naudio(sin(me@time * 99))\n")
    films("render", "red.weft", "-o", "red.mp4", "--duration", "0.5")
    _, frames, said, aspect = decoded(films.folder / "red.mp4")
    assert said == ("h264", "yuv420p", 1, 1)  # BT.709, limited
    assert aspect == 1
    assert all(np.abs(frame - [255, 0, 0]).max() <= 2 for frame in frames)
    with av.open(str(films.folder / "red.mp4")) as container:
        lengths = [stream.duration * stream.time_base for stream in container.streams]
    assert lengths[0] == Fraction(1, 2)
    assert abs(lengths[1] - lengths[0]) < Fraction(1, 1000)


def test_a_picture_and_a_sound_that_read_each_other(films):
    text = (
        "grows<v> = prev(grows@v) + 0.125 + me@x * 0\nosc<v> = phasor(1)\n"
        "display(grows@v, osc@v(me@time ~ me@time), 0)\naudio(grows@v(me@x ~ 0.5, me@y ~ 0.5), osc@v)\n"
    )
    films.file("touch.weft", HEAD + text)
    span = ("--from", "0.25", "--to", "0.5")
    films("render", "touch.weft", "-o", "touch.mkv", "--codec", "ffv1", *span)
    films("render", "touch.weft", "-o", "touch.wav", *span)
    films("render", "touch.weft", "-o", "touch%02d.png", "--to", "0.5")
    _, frames, _, _ = decoded(films.folder / "touch.mkv")
    assert np.array_equal(frames, list(pictures(films.folder, "touch", 6))[3:])
    sound, _ = heard(films.folder / "touch.mkv")
    np.testing.assert_allclose(sound, soundfile.read(films.folder / "touch.wav")[0].T, atol=2.0**-22)


def raw(films, form):
    """The first three frames, as they come out of stdout."""
    command = [sys.executable, "-m", "weft", "render", "a.weft", "-o", "-", "--duration", "0.25", "--format", form]
    return subprocess.run(command, cwd=films.folder, capture_output=True, check=True).stdout


@pytest.mark.long
def test_plain_frames_for_another_program(films):
    frames = np.frombuffer(raw(films, "rgba"), np.uint8).reshape(3, 36, 64, 4)
    assert np.array_equal(frames[..., :3], list(pictures(films.folder, count=3)))


@pytest.mark.long
def test_another_program_may_end_when_it_has_enough(films):
    def limit():  # what is not yet drawn takes no memory
        resource.setrlimit(resource.RLIMIT_AS, (2**33, resource.getrlimit(resource.RLIMIT_AS)[1]))

    command = [sys.executable, "-m", "weft", "render", "a.weft", "-o", "-", "--duration", "1e12", "--format", "rgba"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=films.folder, preexec_fn=limit, **pipes) as process:  # noqa: PLW1509 -- it only limits
        assert process.stdout.read(4) == bytes([round(255 * 0.5 / 64), round(255 * 0.5 / 36), 0, 255])
        process.stdout.close()
        assert process.wait(60) == 0
        assert process.stderr.read() == b""


def test_frames_for_another_program(films):
    with av.open(io.BytesIO(raw(films, "y4m")), format="yuv4mpegpipe") as container:
        stream = container.streams.video[0]
        assert (stream.average_rate, stream.codec_context.color_range) == (FPS, 1)
        shown = (frame.reformat(format="rgba", src_colorspace="itu709") for frame in container.decode(stream))
        frames = [rgb(frame.to_ndarray()) for frame in shown]
    assert len(frames) == 3
    assert np.abs(np.array(frames) - list(pictures(films.folder, count=3))).max() <= 2


# A few bytes a frame for a segment, two seconds; then noise.
GROWS = f"{HEAD}n<v> = noise(me@x * 999, me@y * 999, me@time)\ndisplay(if me@time < 2 then 0 else n@v)\n"


@pytest.mark.long
def test_a_full_disk_keeps_what_is_complete_and_the_same_command_goes_on(films):
    films.file("grows.weft", GROWS)
    command = ["render", "grows.weft", "-o", "part.mp4", "--quality", "1", "--duration", "5", "--fps", "30"]
    limit = 50_000

    def fill():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))

    done = subprocess.run(
        [sys.executable, "-m", "weft", *command],
        cwd=films.folder, preexec_fn=fill, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1
    assert "part.mp4 cannot be written: File too large; 60 of 150 frames are kept" in done.stderr
    assert not (films.folder / "part.mp4").exists()
    again = films(*command)
    assert "60 of 150 frames are there already and are kept" in again.stderr
    films(*command[:2], "-o", "whole.mp4", *command[4:])
    assert (films.folder / "part.mp4").read_bytes() == (films.folder / "whole.mp4").read_bytes()
    assert not [path for path in films.folder.iterdir() if path.name.startswith(".")]


def test_an_interrupt_keeps_what_is_complete(films):
    command = ["render", "a.weft", "-o", "long.mp4", "--duration", "3600"]
    parts = films.folder / ".long.mp4.parts"
    run = [sys.executable, "-m", "weft", *command]
    with subprocess.Popen(run, cwd=films.folder, stderr=subprocess.PIPE, text=True) as process:
        try:
            while not (parts / "00000000").exists() and process.poll() is None:
                time.sleep(0.02)
            process.send_signal(signal.SIGINT)
            _, words = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130
    assert f"of {3600 * FPS} frames are kept, and the same command continues" in words
    assert not (films.folder / "long.mp4").exists()
    assert (parts / "00000000").exists()
    # Another patch: nothing of the old one is used.
    done = films(*command[:2], "-o", "long.mp4", "--duration", "0.25", "--size", "32x18")
    assert "the film is drawn again" in done.stderr
    assert len(decoded(films.folder / "long.mp4")[0]) == 3
    assert not parts.exists()


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["-o", "b.mp4", "--size", "63x35"], "h264 needs an even width and height, not 63x35 (--size 64x36, or"),
        (["-o", "b.gif", "--fps", "60"], ".gif has at most 50 frames a second, not 60"),
        (["-o", "b.mp4", "--codec", "vp9"], '.mp4 cannot have the codec "vp9" (it has h264, h265; vp9 is for'),
        (["-o", "b.mp4", "--quality", "60"], "the quality of h264 is 1 to 51, not 60"),
        (["-o", "b.mov", "--quality", "20"], "--quality is not for prores"),
        (["-o", "b%d.png", "--codec", "h264"], "--codec is only for films"),
        (["-o", "b.mpg"], "does not end in"),
        (["-o", "-"], "--format"),
        (["-o", "b.mp4", "--format", "rgba"], "-o -"),
    ],
)
def test_wrong_usage(films, args, words):
    done = films("render", "a.weft", *args, "--duration", "1", code=2)
    assert words in " ".join(done.stderr.split())
    assert not list(films.folder.glob("b.*"))


def test_what_cannot_be_a_film(films):
    films.file("mute.weft", f"{HEAD}audio(sin(me@time))\n")
    assert "nothing to show" in films("render", "mute.weft", "-o", "b.mp4", "--duration", "1", code=1).stderr
    films.file("round.weft", f"{HEAD}display(me@x)\naudio(0.1, 0.2, 0.3)\n")
    assert "2 channels of sound" in films("render", "round.weft", "-o", "b.mp4", "--duration", "1", code=3).stderr
    assert "a film needs --to" in films("render", "a.weft", "-o", "b.mp4", code=2).stderr
    assert "no folder" in films("render", "a.weft", "-o", "none/b.mp4", "--duration", "1", code=3).stderr
    assert not [path for path in films.folder.iterdir() if "b.mp4" in path.name]


def test_a_folder_is_no_film(films):
    (films.folder / "folder.mp4").mkdir()
    words = films("render", "a.weft", "-o", "folder.mp4", "--duration", "1", code=3).stderr
    assert words == "weft: folder.mp4 is a folder\n"
    assert not list((films.folder / "folder.mp4").iterdir())


@pytest.mark.long
@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_encoder_that_cannot_be_loaded_is_told(films, tmp_path, workers):
    (tmp_path / "av").mkdir()
    (tmp_path / "av" / "__init__.py").write_text("raise ImportError('libavcodec.so is missing')\n")
    run = "render", "a.weft", "-o", "b.mp4", "--duration", "1", "--workers", workers
    words = films.anew(*run, code=3, PYTHONPATH=str(tmp_path)).stderr
    assert words.count("\n") == 1
    assert words.startswith("weft: b.mp4 cannot be written: PyAV cannot be loaded here (libavcodec.so is missing; pip ")
    assert not [path for path in films.folder.iterdir() if "b.mp4" in path.name]


def test_odd_sizes_and_worse_qualities(films):
    films("render", "a.weft", "-o", "odd.webm", "--duration", "0.25", "--size", "63x35")
    assert decoded(films.folder / "odd.webm")[1][0].shape == (35, 63, 3)
    films("render", "a.weft", "-o", "worse.mp4", "--duration", "0.25", "--quality", "40")
    films("render", "a.weft", "-o", "better.mp4", "--duration", "0.25", "--quality", "4")
    expected = list(pictures(films.folder, count=3))
    worse, better = (
        np.abs(np.array(decoded(films.folder / name)[1]) - expected).mean() for name in ("worse.mp4", "better.mp4")
    )
    assert better < worse
