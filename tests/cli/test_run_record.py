"""`weft run --record`: what was played is decoded again, and its pictures are compared with its sound."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import av
import numpy as np
import pytest

from tests.cli.conftest import Weft
from weft.osc_packets import message

FPS = 25
# Each frame shows the second at which it was drawn, and the sound is loud in the first half of each second.
PATCH = (
    f"me<width> = 64; me<height> = 36; me<fps> = {FPS}\nnow<v> = fract(me@time)\ndisplay(now@v, now@v, now@v)\n"
    "loud<v> = if now@v < 0.5 then 0.5 else 0\naudio(loud@v)\n"
)
# Half a step of what a frame may be early or late, as it is drawn when it can be; see `FilmTimeline.number`.
EARLY, LATE = -0.2, 1.2
# What 8 bits and their conversion to Y, Cb and Cr leave of a second, and what AAC and Opus leave of an edge.
READ, HEARD = 3 / 255, 0.003


def frames_of(path):
    """The times of the frames, their brightness, and the frames a second."""
    with av.open(str(path)) as film:
        stream = film.streams.video[0]
        found = [(float(frame.time), frame.to_ndarray(format="rgb24").mean() / 255) for frame in film.decode(stream)]
        return *np.array(found).T, float(stream.average_rate)


def sound_of(path):
    """The samples of the left channel, and their rate."""
    with av.open(str(path)) as film:
        stream = film.streams.audio[0]
        parts = [frame.to_ndarray()[0] for frame in film.decode(stream)]
        return np.concatenate(parts), stream.rate


def beginnings(samples, rate):
    """The seconds at which the sound becomes loud."""
    is_loud = samples > 0.25
    edges = np.flatnonzero(is_loud[1:] & ~is_loud[:-1]) + 1
    return edges[np.diff(edges, prepend=-rate) > 0.7 * rate] / rate


def is_undisturbed(path):
    """Whether there is a second of a film in which the machine did not stand still."""
    return any(np.abs(np.diff(beginnings(*sound_of(path))) - 1) <= 2 * HEARD)


def until_undisturbed(record, path):
    """Records a film, again if there is no such second in it."""
    for _ in range(3):
        path.unlink(missing_ok=True)
        record(path.name)
        if is_undisturbed(path):
            return


def check_sync(path):
    """Demands that each new picture of a film is shown with the sound of the same second, as exactly as frames allow.
    This does not depend on how fast they were drawn. A machine that stands still for a moment makes the sound skip or
    leaves a gap in it, and with it the pictures: seconds are counted from the last beginning, and one of them has to be
    undisturbed. The length of the second before the first beginning is not known."""
    times, shown, fps = frames_of(path)
    assert fps == pytest.approx(FPS, rel=0.01)
    assert np.diff(times) == pytest.approx(1 / FPS, abs=0.0011)
    samples, rate = sound_of(path)
    began = beginnings(samples, rate)
    assert len(began) >= 2
    assert is_undisturbed(path)
    is_new = np.abs(np.diff(shown, prepend=shown[0])) > READ
    # Brightness near black and white may be a second off.
    is_new &= (shown > 0.05) & (shown < 0.95)
    is_new &= times - shown > began[0] - 0.25
    nearest = np.abs(began[:, np.newaxis] - (times - shown)).argmin(axis=0)
    late = (began[nearest] + shown - times)[is_new] * FPS
    # A second in which the sound skips is shorter or longer by that, and its later pictures are with what follows.
    shorter = (1 - np.diff(began, append=began[-1] + 1))[nearest][is_new] * FPS
    assert np.count_nonzero(is_new) > 5
    tolerance = (READ + HEARD) * FPS
    earliest, latest = np.minimum(shorter, 0) + EARLY - tolerance, np.maximum(shorter, 0) + LATE + tolerance
    # Brightness leaves out whole seconds, and a machine may stand still for more than half of one.
    assert (earliest + (late - earliest) % FPS <= latest).all()
    return len(times), len(samples) / rate


def events_of(path):
    return [json.loads(line) for line in Path(path).read_text().splitlines() if line.endswith("}")]


class Show:
    """`weft run` that continues until it is ended."""

    def __init__(self, folder, *options):
        self.events = folder / "events.jsonl"
        command = [sys.executable, "-m", "weft", "run", "a.weft", "--headless", "--events", self.events, *options]
        self.process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)

    def until(self, is_there):
        """Waits for an event; returns it."""
        while self.process.poll() is None:
            found = [event for event in (events_of(self.events) if self.events.exists() else ()) if is_there(event)]
            if found:
                return found[-1]
            time.sleep(0.02)
        raise AssertionError(self.process.stderr.read())

    def until_played(self, count, what="frames"):
        """Waits for this many seconds of frames since now, or of what else has an event a second."""
        before = len(self._seconds(what))
        while len(self._seconds(what)) < before + count:
            assert self.process.poll() is None
            time.sleep(0.02)

    def until_written(self, film):
        """Waits until something is in a film, however long its encoder takes to start."""
        path = self.events.parent / film
        while not (path.exists() and path.stat().st_size):
            assert self.process.poll() is None
            time.sleep(0.02)

    def _seconds(self, what):
        return [event for event in events_of(self.events) if event["event"] == what]

    def end(self):
        """Ends it as Ctrl-C does; returns what it said."""
        self.process.send_signal(signal.SIGINT)
        said = self.process.communicate()[1]
        assert self.process.returncode == 130
        assert "Traceback" not in said
        return said


def is_recording(state):
    return lambda event: event["event"] == "recording" and event["state"] == state


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    weft = Weft(tmp_path_factory.mktemp("recorded"))
    weft.file("a.weft", PATCH)

    def record(name):
        (weft.folder / "events.jsonl").unlink(missing_ok=True)
        # Whenever its sound begins.
        show = Show(weft.folder, "--record", name)
        show.until(is_recording("started"))
        show.until_played(4, "audio")
        weft.said = show.end()

    until_undisturbed(record, weft.folder / "out.mp4")
    return weft


def test_a_film_has_the_pictures_with_their_sound(recorded):
    count, seconds = check_sync(recorded.folder / "out.mp4")
    assert seconds == pytest.approx(count / FPS, abs=0.05)
    told = [event for event in events_of(recorded.folder / "events.jsonl") if event["event"] == "recording"]
    assert [event["state"] for event in told if event["state"] != "behind"] == ["started", "stopped"]
    assert told[-1]["path"] == "out.mp4"
    assert told[-1]["frames"] == count
    assert f"weft: recorded out.mp4, {count / FPS:.1f} s" in recorded.said
    assert not list(recorded.folder.glob("*.part.*"))


@pytest.mark.long
@pytest.mark.parametrize("ending", ["mkv", "mov", "webm"])
def test_other_files_are_the_same(recorded, ending):
    path = recorded.folder / f"out.{ending}"
    until_undisturbed(lambda name: recorded("run", "a.weft", "--headless", "--record", name, "--duration", "4"), path)
    check_sync(path)


# The sound is as loud as the picture is bright, where neither jumps.
SAME = (
    f"me<width> = 64; me<height> = 36; me<fps> = {FPS}\nnow<v> = fract(me@time)\ndisplay(now@v, now@v, now@v)\n"
    "audio(now@v * 0.8)\n"
)


@pytest.mark.long
def test_pauses_and_restarts_keep_pictures_and_sound_together(tmp_path):
    (tmp_path / "a.weft").write_text(SAME)
    show = Show(tmp_path, "--record", "held.mp4", "--osc", "0")
    started = show.until(lambda event: event["event"] == "started")
    show.until(is_recording("started"))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as phone:
        for command in ("pause", "pause", "restart"):
            show.until_played(2)
            host, _, port = started["osc"].rpartition(":")
            phone.sendto(message(f"/weft/{command}", [1]), (host, int(port)))
        show.until_played(3)
    said = show.end()
    assert all(words in said for words in ("paused", "resumed", "the clock restarts"))
    times, shown, _ = frames_of(tmp_path / "held.mp4")
    samples, rate = sound_of(tmp_path / "held.mp4")
    is_new = (np.abs(np.diff(shown, prepend=shown[0])) > READ) & (shown > 0.1) & (shown < 0.9)
    # The sound of that moment, and whether it continues evenly around it.
    near = 0.02
    before, now, after = (
        np.interp(times + offset, np.arange(len(samples)) / rate, samples) / 0.8 for offset in (-near, 0, near)
    )
    is_even = (np.abs(now - before - near) < HEARD) & (np.abs(after - now - near) < HEARD)
    late = (shown - now)[is_new & is_even] * FPS
    assert len(late) > FPS
    tolerance = (READ + HEARD) * FPS
    assert late.max() <= LATE + tolerance
    assert late.min() >= EARLY - tolerance


@pytest.mark.long
def test_half_a_minute_does_not_drift(recorded):
    recorded("run", "a.weft", "--headless", "--record", "half.mp4", "--duration", "30")
    check_sync(recorded.folder / "half.mp4")


def test_what_exists_is_not_overwritten(recorded):
    before = (recorded.folder / "out.mp4").read_bytes()
    done = recorded("run", "a.weft", "--headless", "--record", "out.mp4", "--duration", "0.5")
    assert "weft: recorded out-001.mp4" in done.stderr
    assert (recorded.folder / "out.mp4").read_bytes() == before
    times, _, _ = frames_of(recorded.folder / "out-001.mp4")
    assert len(times) > 1


def test_what_cannot_be_recorded_is_refused_before_anything_plays(recorded):
    assert "--record writes .mp4" in recorded("run", "a.weft", "--record", "out.gif", code=2).stderr
    assert "there is no folder no" in recorded("run", "a.weft", "--record", "no/out.mp4", code=3).stderr


@pytest.mark.long
def test_a_patch_without_sound_of_an_odd_size(recorded):
    recorded.file("odd.weft", "me<width> = 33; me<height> = 17; me<fps> = 25\ndisplay(1, 1, 1)\n")
    recorded("run", "odd.weft", "--headless", "--no-audio", "--record", "odd.mp4", "--duration", "1.5")
    with av.open(str(recorded.folder / "odd.mp4")) as film:
        frames = [frame.to_ndarray(format="rgb24") for frame in film.decode(video=0)]
    assert {frame.shape for frame in frames} == {(18, 34, 3)}
    assert min(frame.min() for frame in frames) > 250
    assert not sound_of(recorded.folder / "odd.mp4")[0].any()


@pytest.mark.long
def test_what_was_complete_is_kept_when_weft_is_killed(tmp_path):
    (tmp_path / "a.weft").write_text(PATCH)
    show = Show(tmp_path, "--record", "cut.mp4")
    show.until(is_recording("started"))
    show.until_played(4)
    show.process.kill()
    show.process.communicate()
    assert not (tmp_path / "cut.mp4").exists()
    times, _, _ = frames_of(tmp_path / "cut.part.mp4")
    assert len(times) >= FPS


@pytest.mark.long
def test_a_save_that_changes_the_size_begins_the_next_film(tmp_path):
    (tmp_path / "a.weft").write_text(PATCH)
    show = Show(tmp_path, "--record", "size.mp4")
    show.until(is_recording("started"))
    show.until_played(1)
    (tmp_path / "a.weft").write_text(PATCH.replace("64", "48"))
    show.until(is_recording("stopped"))
    show.until_written("size-001.part.mp4")
    assert show.end().count("weft: recorded size") == 2
    for name, width in ("size.mp4", 64), ("size-001.mp4", 48):
        with av.open(str(tmp_path / name)) as film:
            assert film.streams.video[0].width == width


@pytest.mark.long
@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="only Linux limits the files of another process")
def test_a_full_disk_ends_the_film_and_not_the_show(tmp_path):
    noise = "display(noise(me@x * 99 + me@time, me@y * 99))"
    (tmp_path / "a.weft").write_text(f"me<width> = 320; me<height> = 180; me<fps> = {FPS}\n{noise}\n")
    show = Show(tmp_path, "--record", "full.mp4")
    show.until(is_recording("started"))
    (encoder,) = (
        int(path.parent.name) for path in Path("/proc").glob("[0-9]*/cmdline") if is_encoder(path, show.process.pid)
    )
    # The disk is as full as can be after the first second.
    show.until_played(2)
    size = (tmp_path / "full.part.mp4").stat().st_size
    resource.prlimit(encoder, resource.RLIMIT_FSIZE, (size, size))
    failed = show.until(is_recording("failed"))
    show.until_played(1)
    said = show.end()
    assert said.count("File too large") == 1
    assert "recording full.mp4 has ended: File too large; what was complete is kept in full.part.mp4" in said
    assert failed["reason"] in said
    assert not (tmp_path / "full.mp4").exists()


def is_encoder(path, parent):
    try:
        words = path.read_text().split("\0")
        return "weft.runtime.films.recording:main" in words and str(parent) in words
    except OSError:
        return False


@pytest.mark.parametrize("option", ["--record-source", pytest.param("--show-source", marks=pytest.mark.long)])
def test_a_film_has_the_text_only_if_that_is_asked_for(tmp_path, option):
    (tmp_path / "a.weft").write_text("me<width> = 320; me<height> = 180; me<fps> = 20\n\ndisplay(1, 1, 1)\n")
    command = [sys.executable, "-m", "weft", "run", "a.weft", "--record", "a.mkv", "--frames", "30", "--no-audio"]
    shown = ["--terminal", "--size", "320x180"] if option == "--show-source" else ["--headless"]
    with open("/dev/null", "wb") as nothing:
        if option == "--show-source":
            # The text over the picture on the screen is none of the picture.
            reading, writing = os.openpty()
            subprocess.run([*command, *shown, option], cwd=tmp_path, stdout=writing, stderr=nothing, check=True)
            os.close(reading)
            os.close(writing)
        else:
            subprocess.run([*command, *shown, option], cwd=tmp_path, stdout=nothing, stderr=nothing, check=True)
    with av.open(str(tmp_path / "a.mkv")) as film:
        last = [frame.to_ndarray(format="gray") for frame in film.decode(video=0)][-1]
    plates = (last[:60, 8:12] < 128).any()
    assert plates == (option == "--record-source")
    assert last[120:].min() > 240
