"""`weft render` of sound."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

import numpy as np
import pytest
import soundfile

from tests.support.together import all_but

RATE = 8000
HEAD = f"me<rate> = {RATE}; me<width> = 8; me<height> = 4; me<fps> = 10\n"
TONE = f"{HEAD}audio(sin(phasor(440) * tau) * 0.5, 0.25)\n"

# One step of what is written, and of single precision.
STEP = 2.0**-23


def tone(first, count):
    return np.sin(2 * np.pi * 440 * (first + np.arange(count)) / RATE) * 0.5


@pytest.fixture
def sounding(weft):
    weft.file("tone.weft", TONE)
    weft.file("both.weft", f"{HEAD}audio(me@time)\ndisplay(me@x)\n")
    weft.file("picture.weft", f"{HEAD}display(me@x)\n")
    weft.file("wild.weft", f"{HEAD}audio(2 - me@time * 1e3, 0 / 0)\n")
    return weft


def test_without_its_library_it_says_what_to_install(sounding, tmp_path):
    (tmp_path / "soundfile.py").write_text("raise ImportError\n")
    paths = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    words = sounding.anew("render", "tone.weft", "-o", "a.wav", "--duration", "1", code=3, PYTHONPATH=paths).stderr
    assert words == "weft: writing sound needs soundfile (pip install 'weft-live[media]')\n"


@pytest.mark.parametrize(("ending", "backend"), [("wav", "native"), ("flac", "vector"), ("WAV", "vm")])
def test_a_sound(sounding, ending, backend):
    sounding("render", "tone.weft", "-o", f"a.{ending}", "--duration", "0.25", "--backend", backend)
    info = soundfile.info(sounding.folder / f"a.{ending}")
    assert (info.samplerate, info.channels, info.subtype) == (RATE, 2, "PCM_24")
    assert info.format == ending.upper()
    heard, _ = soundfile.read(sounding.folder / f"a.{ending}")
    assert heard.shape == (RATE // 4, 2)
    np.testing.assert_allclose(heard[:, 0], tone(0, RATE // 4), atol=STEP)
    assert (heard[:, 1] == 0.25).all()


@pytest.mark.long
def test_a_long_wav_counts_in_larger_numbers(sounding):
    """What is too long for a WAV takes minutes to write, so the limit is another one here."""
    code = "import weft.cli.render as render; render._MOST_OF_WAV = 20_000; from weft.cli import main; main()"
    for seconds, form in ((0.25, "WAV"), (0.5, "RF64")):
        run = [sys.executable, "-c", code, "render", "tone.weft", "-o", "a.wav", "--duration", str(seconds)]
        subprocess.run(run, cwd=sounding.folder, check=True, timeout=60)
        info = soundfile.info(sounding.folder / "a.wav")
        assert (info.format, info.subtype, info.frames) == (form, "PCM_24", seconds * RATE)


def test_a_sound_by_opengl(sounding, opengl):
    sounding.file("sine.weft", f"{HEAD}audio(sin(me@time * 440 * tau) * 0.5, 0.25)\n")
    sounding("render", "sine.weft", "-o", "a.wav", "--duration", "0.5", "--backend", "audio=gl")
    heard, _ = soundfile.read(sounding.folder / "a.wav")
    np.testing.assert_allclose(heard[:, 0], tone(0, RATE // 2), atol=1e-4)
    assert (heard[:, 1] == 0.25).all()


def test_what_does_not_suit_opengl_is_told_and_computed_elsewhere(sounding, opengl):
    done = sounding("render", "tone.weft", "-o", "a.wav", "--duration", "0.1", "--backend", "audio=gl")
    assert "audio/audio runs on native, not gl_audio: each of its samples needs the one before" in done.stderr
    heard, _ = soundfile.read(sounding.folder / "a.wav")
    np.testing.assert_allclose(heard[:, 0], tone(0, RATE // 10), atol=STEP)


@pytest.mark.parametrize(
    ("broken", "options", "told"),
    all_but(1, [
        ("native", ("--backend", "native"), ["audio/audio runs on vector, not native: "]),
        ("better", (), []),
        ("numpy", ("--backend", "vector"), ["audio/audio runs on vm, not vector: "]),
        ("native,numpy", (), ["audio/audio runs on vector, not native: ", "audio/audio runs on vm, not vector: "]),
    ]),
)  # fmt: skip
def test_what_one_machine_cannot_compile_is_played_by_the_next(sounding, broken, options, told):
    done = sounding.broken(broken, "render", "tone.weft", "-o", "a.wav", "--duration", "0.02", *options)
    lines = done.stderr.splitlines()
    assert len(lines) == len(told)
    for line, words in zip(lines, told, strict=True):
        assert line.startswith(f"weft: {words}")
        assert "KeyError: 'it was broken on purpose'" in line
    heard, _ = soundfile.read(sounding.folder / "a.wav")
    np.testing.assert_allclose(heard[:, 0], tone(0, RATE // 50), atol=STEP)


@pytest.mark.parametrize("options", [(), ("--oversample", "3")])
def test_a_piece_is_the_same_as_in_the_whole(sounding, options):
    sounding("render", "tone.weft", "-o", "piece.wav", "--from", "0.1", "--to", "0.35", *options)
    sounding("render", "tone.weft", "-o", "whole.wav", "--to", "0.5", *options)
    piece, whole = (soundfile.read(sounding.folder / f"{name}.wav")[0] for name in ("piece", "whole"))
    assert np.array_equal(piece, whole[RATE // 10 : RATE * 35 // 100])


def test_the_rate_of_the_command_line_wins(sounding):
    sounding("render", "tone.weft", "-o", "a.wav", "--to", "0.1", "--rate", "44100")
    assert soundfile.info(sounding.folder / "a.wav").samplerate == 44100
    heard, _ = soundfile.read(sounding.folder / "a.wav")
    np.testing.assert_allclose(heard[:, 0], np.sin(2 * np.pi * 440 * np.arange(4410) / 44100) / 2, atol=STEP)


def test_a_file_is_clipped_and_values_are_not(sounding):
    sounding("render", "wild.weft", "-o", "a.wav", "--to", "0.01")
    sounding("render", "wild.weft", "-o", "a.npy", "--to", "0.01")
    written, _ = soundfile.read(sounding.folder / "a.wav")
    values = np.load(sounding.folder / "a.npy")
    assert values.dtype == np.float32
    np.testing.assert_allclose(values[:, 0], 2 - 1e3 * np.arange(RATE // 100) / RATE, atol=1e-6)
    assert np.isnan(values[:, 1]).all()
    np.testing.assert_allclose(written[:, 0], np.clip(values[:, 0], -1, 1), atol=STEP)
    assert not written[:, 1].any()


def test_values_of_a_patch_with_both_are_its_picture_unless_its_sound_is_asked_for(sounding):
    sounding("render", "both.weft", "-o", "a.npy", "--to", "0.2")
    assert np.load(sounding.folder / "a.npy").shape == (2, 4, 8, 1)
    sounding("render", "both.weft", "-o", "a.npy", "--to", "0.2", "--context", "audio")
    heard = np.load(sounding.folder / "a.npy")
    np.testing.assert_allclose(heard, np.outer(np.arange(RATE // 5) / RATE, [1, 1]), atol=1e-7)


@pytest.mark.parametrize("options", [(), ("--oversample", "2")])
def test_it_is_the_same_every_time(sounding, options):
    for name in ("a", "b"):
        sounding("render", "tone.weft", "-o", f"{name}.wav", "--to", "0.1", *options)
    assert (sounding.folder / "a.wav").read_bytes() == (sounding.folder / "b.wav").read_bytes()


def test_a_sound_and_a_picture_that_read_each_other(sounding):
    text = (
        "grows<v> = prev(grows@v) + 0.125 + me@x * 0\nosc<v> = phasor(1)\n"
        "display(grows@v, osc@v(me@time ~ me@time), 0)\naudio(grows@v(me@x ~ 0.5, me@y ~ 0.5), osc@v)\n"
    )
    sounding.file("touch.weft", HEAD + text)
    sounding("render", "touch.weft", "-o", "a.wav", "--to", "0.3")
    sounding("render", "touch.weft", "-o", "a.npy", "--to", "0.3")
    heard, _ = soundfile.read(sounding.folder / "a.wav")
    shown = np.load(sounding.folder / "a.npy")[:, 0, 0]
    # At the end of each frame, what it has shown; and what was heard by then.
    np.testing.assert_allclose(heard[RATE // 10 :: RATE // 10, 0], shown[:2, 0], atol=1e-6)
    np.testing.assert_allclose(heard[:: RATE // 10, 1], shown[:, 1], atol=1e-6)


def test_what_cannot_be_rendered(sounding):
    def refused(*args, code):
        words = sounding("render", *args, code=code).stderr
        assert [path for path in sounding.folder.iterdir() if path.suffix != ".weft"] == []
        return words

    assert "nothing to play" in refused("picture.weft", "-o", "a.wav", "--to", "1", code=1)
    assert "nothing to play" in refused("picture.weft", "-o", "a.npy", "--to", "1", "--context", "audio", code=1)
    assert "nothing to show" in refused("tone.weft", "-o", "a.npy", "--to", "1", "--context", "visual", code=1)
    assert "a sound needs --to" in refused("tone.weft", "-o", "a.npy", code=2)
    assert "there is no folder" in refused("tone.weft", "-o", "none/a.wav", "--to", "1", code=3)
    # More samples a second than the format knows.
    assert "cannot be written" in refused("tone.weft", "-o", "a.flac", "--to", "0.1", "--rate", "768000", code=3)


@pytest.mark.parametrize(
    "args",
    [
        ["-o", "a.wav"], ["-o", "a.flac", "--time", "1"], ["-o", "a%d.wav", "--to", "1"],
        ["-o", "a.wav", "--to", "1", "--context", "audio"], ["-o", "a.npy", "--from", "0.5", "--to", "0.50001"],
        ["-o", "a.wav", "--to", "1", "--rate", "10"], ["-o", "a.wav", "--to", "1", "--oversample", "0"],
        ["-o", "a.wav", "--to", "1", "--oversample", "9"], ["-o", "a.wav", "--to", "1", "--oversample", "1.5"],
    ],
)  # fmt: skip
def test_wrong_usage(sounding, args):
    sounding("render", "tone.weft", *args, code=2)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("audio(0 * me@time)", "this sound is silent from beginning to end [silent]"),
        ("audio(sin(me@time) * 1e-5)", "this sound is silent from beginning to end [silent]"),
        ("audio(if me@time < 0.25 then 0.5 else -2)",
         "this sound is too loud at 50 % of its samples, which are clipped: first at 0.25 s, and by 6.0 dB at most"),
        ("audio(0.6 + mouse@x, 0.5)", "at 50 % of its samples, which are clipped: first at 0 s, and by 0.8 dB at most"),
        ("audio(log(-1 - me@time))", "mono of audio is not a number at any sample, so it would be silent"),
        ("audio(0.1, right: if me@time < 0.375 then 0.1 else 0 / 0)",
         "right of audio is not a number at 25 % of the samples, first at 0.375 s [not-a-number]"),
        ("y = 0.2 + 1.5 * prev(y)\naudio(y)",
         "p.weft:3:1: warning: mono of audio grows without end: it is infinite from 0.219 s on, and silent"),
        ("audio(if me@time < 0.25 then 0.5 else 1 / (me@time - 0.25) * 0 + 1 / 0)",
         "mono of audio is infinite, first at 0.25 s, and silent where it is [not-finite]"),
        (("spindle long(n) :: v {\n  v = 0\n  for i in (1 to n) { v += 1 / n }\n}\n"
         "audio(long(1e5 * (mouse@x + me@time)) * 0.1)"),
         "p.weft:4:13: warning: this loop stops at its limit of steps [loop-stopped]"),
    ],
)  # fmt: skip
def test_what_is_remarkable_about_a_sound_is_told(sounding, text, words):
    sounding.file("p.weft", HEAD + text + "\n")
    done = sounding("render", "p.weft", "-o", "a.wav", "--duration", "0.5")
    assert words in done.stderr
    assert "\n1 warning\n" in done.stderr
    assert done.stdout == ""


SAW, OVERSAMPLE = 499, 4


def spectrum(samples):
    """The amplitude at each whole number of hertz, of a second of sound."""
    return 2 * np.abs(np.fft.rfft(samples)) / len(samples)


def test_oversampling_takes_out_what_would_be_heard_as_other_tones(sounding):
    sounding.file("saw.weft", f"{HEAD}audio(fract(me@time * {SAW}) - 0.5)\n")
    found = []
    for factor in (1, OVERSAMPLE):
        options = ("--to", "1.5", "--context", "audio", "--oversample", factor)
        sounding("render", "saw.weft", "-o", "a.npy", *map(str, options))
        heard = np.load(sounding.folder / "a.npy")
        assert heard.shape == (RATE * 3 // 2, 2)
        assert np.array_equal(heard[:, 0], heard[:, 1])
        found.append(spectrum(heard[-RATE:, 0]))
    plain, filtered = found
    harmonics = np.arange(1, OVERSAMPLE * RATE // 2 // SAW + 1)
    # What is above half of the rate, and is there at the higher one, is heard at another place without the filter.
    above = harmonics[harmonics * SAW > RATE / 2] * SAW
    places = abs(above - RATE * np.round(above / RATE)).astype(int)
    assert (filtered[places] < plain[places] * 10 ** (-40 / 20)).all()
    # A sawtooth has tones above the higher rate, too: what these leave is weaker by the factor.
    others = np.delete(np.arange(RATE // 2), harmonics[harmonics * SAW < RATE / 2] * SAW)
    assert np.linalg.norm(filtered[others]) < np.linalg.norm(plain[others]) / OVERSAMPLE * 1.1
    # What is kept has the level of an ideal sawtooth.
    kept = harmonics[harmonics * SAW < 0.47 * RATE]
    levels = 20 * np.log10(filtered[kept * SAW] * np.pi * kept)
    assert np.abs(levels).max() < 0.1


def test_oversampling_keeps_a_click_where_it_is(sounding):
    # It begins at half a second, and is as long as a sample. The other side is constant.
    click = f"if me@time >= 0.5 and me@time < {0.5 + 1 / RATE} then 0.5 else 0"
    sounding.file("click.weft", f"{HEAD}audio({click}, 0.25)\n")
    sounding("render", "click.weft", "-o", "a.wav", "--to", "0.7501", "--oversample", "8")
    heard, rate = soundfile.read(sounding.folder / "a.wav")
    assert (len(heard), rate) == (round(0.7501 * RATE), RATE)
    click, constant = heard.T
    assert abs(int(click.argmax()) - RATE // 2) <= 1
    np.testing.assert_allclose(click.sum(), 0.5, atol=1e-3)
    np.testing.assert_allclose(constant[200:], 0.25, atol=STEP)


def test_what_is_oversampled_is_clipped_in_the_end_and_numbers_stay_apart_from_what_is_none(sounding):
    done = sounding("render", "wild.weft", "-o", "a.wav", "--to", "0.1", "--oversample", "2")
    assert "too loud at" in done.stderr
    assert "right of audio is not a number at any sample" in done.stderr
    written, _ = soundfile.read(sounding.folder / "a.wav")
    assert (written[-100:] == [-1, 0]).all()
    sounding("render", "wild.weft", "-o", "a.npy", "--to", "0.1", "--oversample", "2")
    values = np.load(sounding.folder / "a.npy")
    np.testing.assert_allclose(values[300:, 0], 2 - 1e3 * np.arange(300, RATE // 10) / RATE, rtol=1e-5)
    assert np.isnan(values[:, 1]).all()


@pytest.mark.parametrize(
    ("patch", "options", "words"),
    [
        ("both.weft", ["-o", "a.png"], "--oversample is for what is heard"),
        ("both.weft", ["-o", "a.npy", "--to", "1"], "--oversample is for what is heard"),
        ("picture.weft", ["-o", "a.mp4", "--to", "1"], "--oversample is for what is heard"),
        ("tone.weft", ["-o", "a.wav", "--to", "1", "--rate", "192000"], "the sound has 1536000 samples a second"),
    ],
)
def test_what_cannot_be_oversampled(sounding, patch, options, words):
    assert words in sounding("render", patch, *options, "--oversample", "8", code=2).stderr


def test_only_what_is_written_is_judged(sounding):
    sounding.file("p.weft", f"{HEAD}audio(if me@time < 0.25 then 2 else 0.5)\n")
    assert sounding("render", "p.weft", "-o", "a.wav", "--from", "0.25", "--to", "0.5").stderr == ""
    assert "clipped" in sounding("render", "p.weft", "-o", "a.wav", "--from", "0.1", "--to", "0.5").stderr
    assert sounding("render", "p.weft", "-o", "a.npy", "--to", "0.5").stderr == ""


@pytest.mark.long
@pytest.mark.parametrize("ending", ["wav", "flac"])
def test_a_full_disk_is_told_and_leaves_nothing(sounding, ending):
    def fill():
        resource.setrlimit(resource.RLIMIT_FSIZE, (9_000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))

    run = [sys.executable, "-m", "weft", "render", "tone.weft", "-o", f"full.{ending}", "--duration", "2"]
    done = subprocess.run(run, cwd=sounding.folder, preexec_fn=fill, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (3, f"weft: full.{ending} cannot be written: File too large\n")
    assert not [path for path in sounding.folder.iterdir() if "full" in path.name]


def test_many_channels_are_in_a_wav_and_too_many_for_a_flac_are_told(weft):
    weft.file("many.weft", "audio(<0.5 * sin(tau * 100 * i * me@time) for i in (1 to 16)>)")
    weft("render", "many.weft", "-o", "many.wav", "--duration", "0.1")
    samples, _ = soundfile.read(weft.folder / "many.wav")
    assert samples.shape == (4800, 16)
    for number in range(16):
        spectrum = np.abs(np.fft.rfft(samples[:, number]))
        assert np.argmax(spectrum) == 10 * (number + 1)
    said = weft("render", "many.weft", "-o", "many.flac", "--duration", "0.1", code=3).stderr
    assert "a .flac has 8 channels at most, and the patch 16 (-o many.wav has them all)" in said


# Interrupts a render when the library that writes its sound calls for the n-th time what writes to the file, or moves
# in it.
_INTERRUPTED = """\
import signal, sys
import weft.cli.render as render

class Interrupted(render._ReportingFile):
    calls = 0

def interrupting(name):
    act = getattr(render._ReportingFile, name)
    def method(self, *args):
        Interrupted.calls += 1
        if Interrupted.calls == {call}:
            signal.raise_signal(signal.SIGINT)
        return act(self, *args)
    return method

setattr(Interrupted, {name!r}, interrupting({name!r}))
render._ReportingFile = Interrupted
from weft.cli import main
code = main()
assert Interrupted.calls >= {call}
sys.exit(code)
"""


@pytest.mark.parametrize(("name", "call"), all_but(2, [("write", 1), ("write", 20), ("seek", 1), ("tell", 9)]))
def test_an_interrupt_while_it_is_written_leaves_nothing(sounding, name, call):
    """The library would lose it, and go on or say that it cannot write."""
    code = _INTERRUPTED.format(name=name, call=call)
    run = [sys.executable, "-c", code, "render", "tone.weft", "-o", "cut.wav", "--duration", "20"]
    done = subprocess.run(run, cwd=sounding.folder, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (130, "weft: interrupted")
    assert "Traceback" not in done.stderr
    assert not [path for path in sounding.folder.iterdir() if "cut" in path.name]
