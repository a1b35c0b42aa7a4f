"""Performances that are heard: saves that cross over without a click, on the beat, and a pause; recorded from the
loudspeaker."""

from __future__ import annotations

import json
import math
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Literal, TypeVar

import numpy as np
import pytest

from tests.support.flaws import listened
from tests.support.performance import Performance
from tests.support.sound import (
    COUNTING, RATE, Samples, SoundServer, counted, eventually, frequency, read, sounding, tempos, until_heard
)
from weft.backends.base import Values, as_array
from weft.runtime.compiling.compiler import Compiler
from weft.runtime.hands.inputs import Inputs
from weft.runtime.hands.midi import MidiController
from weft.runtime.hands.midi_messages import MidiMessage
from weft.runtime.hands.midi_ports import MidiEvent, MidiInput
from weft.runtime.live import transition
from weft.runtime.live.events import EventLog, Reporter
from weft.runtime.live.session import Limits, Session
from weft.runtime.live.transition import TransitionPolicy
from weft.runtime.program.files import SetList
from weft.runtime.program.program import Setup
from weft.runtime.screens.screen import Screen
from weft.runtime.sound.player import Sound
from weft.runtime.sound.renderer import SoundOptions

SLOW = Path(__file__).parents[2] / "plugins" / "slow"
LEVEL = 0.4
PICTURE = "me<width> = 16\nme<height> = 9\ndisplay(me@x)\n"
# Sound comes and goes within this many samples.
EDGE = RATE // 20
FADE = 0.03
# A sound that is silent for this many samples was paused.
PAUSE = RATE // 4
# With blocks this long, a machine that stands still for a moment, as one does that is shared with others, is not heard.
LONG = 2048


def longest(file: Path, channel: int = 0) -> Samples:
    """The longest stretch without silence."""
    return max(sounding(read(file)[:, channel]), key=len)


def bends(samples: Samples) -> float:
    """The largest distance of a sample from the line through its neighbours."""
    return float(np.abs(np.diff(samples, 2)).max())


def bend_of(hertz: float) -> float:
    return LEVEL * (2 * np.pi * hertz / RATE) ** 2


def test_a_save_that_changes_a_frequency_does_not_click(loudspeaker: SoundServer, tmp_path: Path) -> None:
    patch = tmp_path / "patch.weft"
    text = PICTURE + f"audio(sin(phasor({{}}) * tau) * {LEVEL})\n"
    patch.write_text(text.format(440))
    file = tmp_path / "heard"
    with listened(loudspeaker, file, EDGE) as listening:
        with Performance(patch, "--headless", "--buffer", str(LONG)) as performance:
            until_heard(file, RATE // 2)  # a save is heard soon, and the first tone has to last as long as the others
            for number, hertz in enumerate((550, 300), 1):
                performance.save(text.format(hertz))
                performance.wait_for("swap", number)
                until_heard(file, RATE // 2, anew=True)
        time.sleep(0.2)
    # Only the machine may leave gaps: a program that follows another one leaves none.
    gaps = [flaw for flaw in listening.flaws(440) if flaw.kind == "gap"]
    assert [str(gap) for gap in gaps if not gap.is_explained] == []
    parts = [part[EDGE:-EDGE] for part in sounding(read(file)[:, 0]) if len(part) > RATE // 5 + 2 * EDGE]
    assert "Traceback" not in performance.stderr
    # Both at their sharpest at once, and what the gains bend: far less than any click.
    assert max(map(bends, parts)) < 2 * bend_of(550)
    assert max(np.abs(part).max() for part in parts) <= LEVEL * 2**0.5
    ends = [frequency(part) for part in (parts[0][: RATE // 5], parts[-1][-RATE // 5 :])]
    assert ends == [pytest.approx(440, abs=1), pytest.approx(300, abs=1)]


# A program waits for every second beat, which comes once a second.
CLOCK = f"""\
me<bpm> = 120
#quantize 2
{PICTURE}audio(fract(me@abstime / 64) / 2, {{0}})
compute(me@abstime, {{0}})
"""


def is_on_a_beat(left: Samples, last: int, seconds: float) -> bool:
    """Whether a beat, of which one comes every this many seconds, is between the last sample of a program and the first
    of the next one, give or take a sample. On a machine that stands still, samples between them may be lost."""
    before, after = (float(left[sample]) * 2 * 64 / seconds for sample in (last, last + 1))
    slack = 1.5 / RATE / seconds
    return math.floor(after + slack) >= before - slack


def test_a_save_waits_for_the_beat_with_sound_and_picture(loudspeaker: SoundServer, tmp_path: Path) -> None:
    patch = tmp_path / "patch.weft"
    patch.write_text(CLOCK.format(0.0625))
    with loudspeaker.recorded(tmp_path / "heard") as file:
        with Performance(patch, "--headless", "--fade", "0", "--buffer", str(LONG)) as performance:
            # Shortly after a beat: the next one is farther off than what has been computed ahead by then.
            until_heard(file)
            told = sum(event["event"] == "compute" for event in performance.events)
            moment, _ = performance.wait_for("compute", told + 1)["values"]
            time.sleep(1 - moment % 1)
            # On its left, each sample says when it belongs into the performance.
            performance.save(CLOCK.format(0.125))
            loaded = performance.wait_for("swap")
            until_heard(file, RATE // 4, anew=True)
            performance.wait_for("compute", when=lambda event: event["values"][1] == 0.125)
        time.sleep(0.2)
        left, right = read(file).T
    (changes,) = np.flatnonzero((right[:-1] == 0.0625) & (right[1:] == 0.125)),
    assert len(changes) == 1
    assert is_on_a_beat(left, changes[0], 1.0)
    # The picture takes over with the first frame that begins after the beat, however late that is.
    assert loaded["waited_ms"] >= 0
    beat = round(left[changes[0]] * 2 * 64)
    frames = [event["values"] for event in performance.events if event["event"] == "compute"]
    assert min(moment for moment, level in frames if level == 0.125) >= beat
    assert sum(moment >= beat for moment, level in frames if level == 0.0625) <= 1
    saved = next(event["t"] for event in performance.events if event["event"] == "saved")
    # The time of a performance may run 2 % faster.
    assert loaded["t"] - saved >= loaded["waited_ms"] / 1e3 / 1.02


def test_a_beat_that_is_too_near_is_not_waited_for(loudspeaker: SoundServer, tmp_path: Path) -> None:
    """Sound is computed ahead of nearly every beat here."""
    patch, often = tmp_path / "patch.weft", CLOCK.replace("#quantize 2", "#quantize 0.25")
    levels = [number / 16 for number in range(1, 6)]
    patch.write_text(often.format(levels[0]))
    options = "--headless", "--fade", "0", "--buffer", str(LONG)
    with loudspeaker.recorded(tmp_path / "heard") as file, Performance(patch, *options) as performance:
        until_heard(file)
        for before, behind in pairwise(levels):
            performance.save(often.format(behind))
            eventually(lambda level=behind: read(file)[-1, 1] == level, "the change")
            left, right = read(file).T
            (change,) = np.flatnonzero((right[:-1] == before) & (right[1:] == behind))
            assert is_on_a_beat(left, change, 0.125)


class Saves(Screen):
    """Saves a text soon after the one before was seen, once there is sound, and ends soon after the last. Notes the
    time of each frame, by the level that is seen."""

    def __init__(self, session: Session, texts: dict[int, str]) -> None:
        super().__init__()
        self.session = session
        self._texts = texts
        self._due = math.inf
        self.frames: dict[int, list[float]] = {}

    def poll(self) -> None:
        if self.session.sound.figures is None or time.monotonic() < self._due:
            return
        self._due = math.inf
        following = [text for level, text in self._texts.items() if level not in self.frames]
        if following:
            self.session.path.write_text(following[0])
        else:
            self.session.stop("end")

    def present(self, values: Values) -> None:
        level = int(as_array(values)[0, 0, 0])
        if level not in self.frames:
            self.frames[level], self._due = [], time.monotonic() + 0.5
        self.frames[level].append(self.session.clock.latest.time)


S = TypeVar("S", bound=Saves)


def played(
    screen: Callable[[Session, dict[int, str]], S], texts: dict[int, str], loudspeaker: SoundServer, folder: Path,
    backend: str | None = None,
) -> tuple[S, Samples, Samples]:
    """The screen of a performance in which these texts are saved, and what was heard on its left and right."""
    patch = folder / "patch.weft"
    patch.write_text(next(iter(texts.values())))
    setup = Setup(str(patch), backend)
    session = Session(
        SetList([patch]), Compiler.of(setup), Reporter(EventLog(None)), Inputs(), limits=Limits(60.0),
        policy=TransitionPolicy(fade=0), sound=Sound(setup, SoundOptions()),
    )  # fmt: skip
    with loudspeaker.recorded(folder / "heard") as file:
        session.begin()
        shown = screen(session, texts)
        session.run(shown)
        time.sleep(0.2)
        left, right = read(file).T
    assert session.stopping == "end"
    return shown, left, right


def test_a_sound_that_takes_long_to_load_enters_on_a_later_beat_with_its_picture(
    loudspeaker: SoundServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(SLOW)
    # On its left, each sample says when it belongs into the performance.
    text = "me<bpm> = 120\n#quantize 0.5\ndisplay({0} / 255)\naudio(fract(me@abstime / 64) / 2, {0} / 256)\n"
    texts = {level: text.format(level) for level in (32, 64, 96)}
    screen, left, right = played(Saves, texts, loudspeaker, tmp_path, "audio=slow")
    for before, behind in pairwise(texts):
        (change,) = np.flatnonzero((right[:-1] == before / 256) & (right[1:] == behind / 256))
        assert is_on_a_beat(left, change, 0.25)
        beat = round(left[change] * 2 * 64 * 4) / 4
        assert screen.frames[behind][0] >= beat
        assert sum(moment >= beat for moment in screen.frames[before]) <= 1


class Sequencer(Saves):
    """Sends a MIDI clock whose tempo jumps a while after each save, and whose ticks jitter."""

    TEMPOS = 90.0, 160.0, 110.0, 140.0

    def __init__(self, session: Session, texts: dict[int, str]) -> None:
        super().__init__(session, texts)
        self._chance = random.Random(1)
        self._received = MidiInput()
        self._received.close()  # no port is opened
        self._received.devices = ("sequencer",)
        session.inputs.connect(
            MidiController(session.clock, session.inputs.knobs, lambda words: None, self._received, follows_clock=True)
        )
        self._ticked = time.monotonic()
        self._send("start")
        self.beats: dict[int, list[float]] = {}
        """The beat of each frame, by the level that is seen."""

    def _send(self, kind: Literal["start", "clock"]) -> None:
        moment = self._ticked + self._chance.uniform(0, 0.002)
        self._received.events.append(MidiEvent(moment, "sequencer", MidiMessage(kind)))

    def poll(self) -> None:
        super().poll()
        bpm = self.TEMPOS[len(self.frames) % len(self.TEMPOS)]
        while self._ticked < time.monotonic():
            self._send("clock")
            self._ticked += 60 / bpm / 24

    def present(self, values: Values) -> None:
        super().present(values)
        clock = self.session.clock
        self.beats.setdefault(int(as_array(values)[0, 0, 0]), []).append(clock.tempo.beats.at(clock.latest.time))


@pytest.mark.long
def test_saves_meet_their_beats_while_the_tempo_follows_a_midi_clock(loudspeaker: SoundServer, tmp_path: Path) -> None:
    # On its left, each sample says on which beat it is.
    text = "#quantize 1\ndisplay({0} / 255, fract(me@time), 0)\naudio(fract(me@beats / 256) / 2, {0} / 256)\n"
    texts = {level: text.format(level) for level in range(16, 176, 16)}
    screen, left, right = played(Sequencer, texts, loudspeaker, tmp_path)
    assert screen.session.clock.tempo.source == "midi"
    for before, behind in pairwise(texts):
        (change,) = np.flatnonzero((right[:-1] == before / 256) & (right[1:] == behind / 256))
        # A third of a second is the shortest beat here.
        assert is_on_a_beat(left * 4 / 3, change, 1 / 3)
        beat = round(left[change] * 2 * 256)
        assert screen.beats[behind][0] >= beat
        assert sum(each >= beat for each in screen.beats[before]) <= 1


class Commands(Screen):
    """Gives commands at certain moments, in seconds."""

    def __init__(self, session: Session, commands: dict[float, str]) -> None:
        super().__init__()
        self._session = session
        self._commands = sorted(commands.items())
        self._began: float | None = None

    def poll(self) -> None:
        if self._session.sound is None or self._session.sound.figures is None:
            return
        self._began = self._began or time.monotonic()
        while self._commands and time.monotonic() - self._began > self._commands[0][0]:
            name = self._commands.pop(0)[1]
            if name == "end":
                self._session.stop("end")
            else:
                self._session.command(name)


@pytest.mark.long
def test_a_pause_is_silent_and_the_sound_goes_on_where_it_was(loudspeaker: SoundServer, tmp_path: Path) -> None:
    patch = tmp_path / "patch.weft"
    patch.write_text(PICTURE + "audio(fract(me@abstime / 64) / 2 + 0.125)\n")
    setup = Setup(str(patch))
    session = Session(
        SetList([patch]), Compiler.of(setup), Reporter(EventLog(None)), Inputs(),
        limits=Limits(20.0), sound=Sound(setup, SoundOptions(frames=LONG)),
    )  # fmt: skip
    commands = {0.6: "pause", 1.2: "pause", 1.8: "restart", 2.4: "end"}
    with loudspeaker.recorded(tmp_path / "heard") as file:
        session.begin()
        session.run(Commands(session, commands))
        time.sleep(0.2)
        # Where the machine stood still for a moment, samples are late. None of them is 0.
        stretches = [part[part != 0] for part in sounding(read(file)[:, 0], apart=PAUSE) if len(part) > EDGE]
    assert session.stopping == "end"
    assert len(stretches) == 2, "a pause is silent"
    # A new beginning is as sudden as the first sample wants it, after a short fade.
    begins = int(np.argmax(np.diff(stretches[1]))) + 1
    before, after, anew = ((part - 0.125) * 2 * 64 for part in (stretches[0], *np.split(stretches[1], [begins])))
    step = 1 / RATE
    for part in (before, after, anew):
        assert np.diff(part[EDGE:-EDGE]) == pytest.approx(step, abs=step / 2), "a sample is left out or played twice"
    # In the pause, the time stood still.
    assert after[EDGE] - EDGE * step == pytest.approx(before[-EDGE] + EDGE * step, abs=0.02)
    assert anew[0] == pytest.approx(0, abs=step / 2)


def test_a_pause_before_there_is_sound_is_one(loudspeaker: SoundServer, tmp_path: Path) -> None:
    patch = tmp_path / "patch.weft"
    patch.write_text(PICTURE + "audio(sin(me@time * 440 * tau) * 0.1)\n")
    setup, said = Setup(str(patch)), list[str]()
    sound = Sound(setup, SoundOptions(frames=LONG))
    session = Session(
        SetList([patch]), Compiler.of(setup), Reporter(EventLog(None), echo=said.append), Inputs(), limits=Limits(60.0),
        sound=sound,
    )  # fmt: skip

    class UntilThereIsSound(Screen):
        @property
        def should_close(self) -> bool:
            return not sound.is_starting

    session.begin()
    assert sound.is_starting
    session.command("pause")
    session.run(UntilThereIsSound())
    assert "paused" in said
    assert session.stopping == "closed"
    assert session.clock.now() == 0


class Taps(Screen):
    """Taps a tempo once there is sound, and ends a while after the beat has met the taps."""

    BPM = 150.0

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self.moments: list[float] = []
        self._due: list[float] = []

    def poll(self) -> None:
        if self._session.sound.figures is None:
            return
        clock = self._session.clock
        now, tempo = clock.now(), clock.tempo
        if not self.moments:
            self.moments = [now + 1.5 + 60 / self.BPM * tap for tap in range(5)]
            self._due = list(self.moments)
        # However late a frame is, the taps are even.
        while self._due and self._due[0] <= now:
            self._session.command("tap", moment=self._due.pop(0))
        if not self._due and tempo.beats.bpm == tempo.bpm and now > max(tempo.beats.start, self.moments[-1]) + 1:
            self._session.stop("end")


@pytest.mark.long
def test_a_tapped_tempo_is_heard_without_a_jump_and_seen_at_the_same_beat(
    loudspeaker: SoundServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However busy the machine is.
    monkeypatch.setattr(transition, "_HELD", 60.0)
    patch, events = tmp_path / "patch.weft", tmp_path / "events"
    patch.write_text(f"{PICTURE}{COUNTING}\ncompute(me@abstime, me@beats)\n")
    setup = Setup(str(patch))
    log = EventLog(events)
    session = Session(
        SetList([patch]), Compiler.of(setup), Reporter(log), Inputs(), limits=Limits(60.0),
        sound=Sound(setup, SoundOptions(frames=LONG)),
    )  # fmt: skip
    screen = Taps(session)
    with loudspeaker.recorded(tmp_path / "heard") as file:
        session.begin()
        session.run(screen)
        time.sleep(0.2)
        beats, seconds = counted(read(file))
    log.close()
    assert session.stopping == "end"
    followed = session.clock.tempo.beats
    assert followed.bpm == pytest.approx(Taps.BPM)
    # 120 a minute, then that of the taps, and at most a twentieth more or less than that.
    found = tempos(beats, seconds)
    assert found.min() > 0.95 * 120 - 20
    assert found.max() < 1.05 * Taps.BPM + 20
    before, behind = seconds < screen.moments[0], seconds > followed.start
    assert beats[before] == pytest.approx(2 * seconds[before], abs=1e-4)
    counted_on = followed.then + (seconds[behind] - followed.start) * followed.bpm / 60
    assert beats[behind] == pytest.approx(counted_on, abs=1e-4)
    # What a frame has counted is what is heard at its time, to a sample or two.
    told = [json.loads(line) for line in events.read_text().splitlines()]
    frames = np.array([event["values"] for event in told if event["event"] == "compute"])
    for when, beat in frames[(seconds[0] < frames[:, 0]) & (frames[:, 0] < seconds[-1])]:
        place = np.searchsorted(seconds, when)
        # A machine that stands still may leave out what belongs there.
        if seconds[place] - when < 2 / RATE:
            assert beat == pytest.approx(beats[place], abs=3 * Taps.BPM / 60 / RATE)


@pytest.mark.long
def test_sound_that_stands_still_comes_back_with_what_plays_by_then(loudspeaker: SoundServer, tmp_path: Path) -> None:
    patch = tmp_path / "patch.weft"
    text = PICTURE + f"audio(sin(phasor({{}}) * tau) * {LEVEL})\n"
    patch.write_text(text.format(440))
    with Performance(patch, "--headless", "--buffer", str(LONG)) as performance:
        performance.wait_for("audio")
        find = ["pgrep", "-P", str(performance.process.pid), "-f", "weft.runtime.sound.server"]
        os.kill(int(subprocess.run(find, stdout=subprocess.PIPE, check=True).stdout), signal.SIGSTOP)
        performance.save(text.format(300))
        performance.wait_for("swap")
        told = performance.wait_for("restart")
        assert (told["process"], told["reason"]) == ("sound", "the sound process stood still and is started again")
        performance.wait_for_words("sound again on")
        with loudspeaker.recorded(tmp_path / "heard") as file:
            until_heard(file, RATE // 2)
    assert frequency(longest(tmp_path / "heard")[EDGE:-EDGE]) == pytest.approx(300, abs=1)


def test_channels_are_heard_where_they_are_sent(loudspeaker: SoundServer, tmp_path: Path) -> None:
    patch, file = tmp_path / "patch.weft", tmp_path / "heard"
    patch.write_text(PICTURE + f"audio(sin(phasor(440) * tau) * {LEVEL}, sin(phasor(660) * tau) * {LEVEL})\n")
    options = ("--headless", "--buffer", str(LONG), "--channels", "2,1")
    with listened(loudspeaker, file, EDGE), Performance(patch, *options):
        until_heard(file, RATE // 2)
    heard = [frequency(longest(file, channel)) for channel in range(2)]
    assert heard == pytest.approx([660, 440], abs=3)
