"""Sound continues: through another rate or more channels, a program that fails, and the end of the process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.runtime.sound.hall import compiled
from tests.support.flaws import watched
from tests.support.performance import Performance
from tests.support.sound import (
    COUNTING, RATE, Samples, SoundServer, counted, eventually, hearing, last, read, tempos, until_heard
)
from tests.support.together import all_but
from weft.runtime.compiling.compiler import Compiler
from weft.runtime.hands.clock import Clock
from weft.runtime.hands.inputs import Inputs
from weft.runtime.live import transition
from weft.runtime.live.events import EventLog, Reporter
from weft.runtime.live.session import Session
from weft.runtime.program.files import SetList
from weft.runtime.program.program import Setup
from weft.runtime.screens.screen import Screen
from weft.runtime.sound.player import Sound
from weft.runtime.sound.renderer import SoundEvent, SoundOptions

FUSE = Path(__file__).parents[2] / "plugins" / "fuse"
PICTURE = "me<width> = 16\nme<height> = 9\ndisplay(me@x)\n"
# Each sample says when it belongs into the performance, and none is 0.
CLOCK = "fract(me@abstime / 64) / 2 + 0.125"
# No silence may be longer, in samples, but for the time that a machine stands still.
GAP = RATE // 5
# Sound comes and goes within this many samples.
EDGE = RATE // 20


def times(samples: Samples) -> Samples:
    """When samples of `CLOCK` belong into the performance, in seconds."""
    return (samples - 0.125) * 2 * 64


def longest_silence(samples: Samples) -> int:
    """Between the first sound and the last, in samples."""
    return int(np.diff(np.flatnonzero(samples)).max()) - 1


# --- another stream ---------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize(
    ("before", "after"),
    all_but(1, [
        (f"audio({CLOCK})", f"me<rate> = 44100\naudio({CLOCK})"),
        (f"audio({CLOCK})", f"audio({', '.join([CLOCK] * 4)})"),
        (f"#quantize 2\naudio({CLOCK})", f"#quantize 2\nme<rate> = 44100\naudio({CLOCK})"),
    ]),
    ids=["rate", "channels", "rate on the beat"],
)  # fmt: skip
def test_another_stream_takes_over_without_a_gap(
    loudspeaker: SoundServer, tmp_path: Path, before: str, after: str
) -> None:
    patch = tmp_path / "patch.weft"
    patch.write_text(PICTURE + before)
    with watched() as watch, loudspeaker.recorded(tmp_path / "heard") as file:
        with Performance(patch, "--headless") as performance:
            until_heard(file, RATE // 4)
            performance.save(PICTURE + after)
            performance.wait_for("swap")
            until_heard(file, RATE, anew=True)
        time.sleep(0.2)
        heard = read(file)[:, 0]
    assert "Traceback" not in performance.stderr
    assert longest_silence(heard) < GAP + watch.stalls.total * RATE
    sounding = heard[np.flatnonzero(heard)][EDGE:-EDGE]
    # The time continues, whichever stream plays.
    assert times(sounding[-1:])[0] - times(sounding[:1])[0] == pytest.approx(len(sounding) / RATE, abs=0.25)


def test_a_rate_that_the_device_refuses_is_a_mistake(loudspeaker: SoundServer, tmp_path: Path) -> None:
    patch = tmp_path / "patch.weft"
    patch.write_text(PICTURE + f"audio({CLOCK})\n")
    with watched() as watch, loudspeaker.recorded(tmp_path / "heard") as file:
        with Performance(patch, "--headless") as performance:
            until_heard(file, RATE // 4)
            performance.save(PICTURE + f"me<rate> = 500000\naudio({CLOCK})\n")
            problem = performance.wait_for("error")
            performance.wait_for_words("the last good version keeps playing")
            performance.save(PICTURE + f"audio({CLOCK} + 0)\ncompute(1)\n")
            performance.wait_for("swap")
            until_heard(file, RATE // 2, anew=True)
        time.sleep(0.2)
        heard = read(file)[:, 0]
    (diagnostic,) = problem["diagnostics"]
    assert diagnostic["code"] == "sound-device-failed"
    assert "me<rate>" in diagnostic["message"]
    assert longest_silence(heard) < GAP + watch.stalls.total * RATE


# --- failures ---------------------------------------------------------------------------------------------------------


def test_a_sound_that_fails_gives_way_to_the_one_before(
    loudspeaker: SoundServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(FUSE), prepend=os.pathsep)
    patch = tmp_path / "patch.weft"
    patch.write_text(PICTURE + f"audio({CLOCK})\ncompute(1)\n")
    with watched() as watch, loudspeaker.recorded(tmp_path / "heard") as file:
        with Performance(patch, "--headless", "--backend", "audio=fuse") as performance:
            until_heard(file, RATE // 4)
            later = f"n = prev(n) + 1\naudio({CLOCK} + if n > {2 * RATE} then 1 else 0)\ncompute(2)\n"
            performance.save(PICTURE + later)
            performance.wait_for("swap")
            problem = performance.wait_for("error")
            told, heard = len(performance.events), read(file)[:, 0]
            (blown,) = times(heard[np.flatnonzero(heard)[-1:]])
            performance.wait_for_words("the previous version keeps playing")
            eventually(lambda: [e for e in performance.events[told:] if e["event"] == "compute"], "a picture")
            eventually(lambda: performance.events[-1]["event"] == "compute", "a picture")
            last = performance.events[-1]
            until_heard(file, RATE // 2, anew=True)
        time.sleep(0.2)
        heard = read(file)[:, 0]
    assert "the fuse has blown" in problem["diagnostics"][0]["message"]
    assert last["values"] == [1]
    assert longest_silence(heard) < GAP + watch.stalls.total * RATE
    assert times(heard[np.flatnonzero(heard)][-EDGE]) > blown + 0.3


def test_a_failure_belongs_to_the_text_that_plays_and_not_to_one_that_was_refused(
    loudspeaker: SoundServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(FUSE), prepend=os.pathsep)
    patch = tmp_path / "patch.weft"
    patch.write_text(f"{PICTURE}n = prev(n) + 1\naudio({CLOCK} + if n > {2 * RATE} then 1 else 0)\n")
    with Performance(patch, "--headless", "--backend", "audio=fuse") as performance:
        failing = performance.hash
        performance.wait_for("started")
        performance.save("display(\n")
        refused = performance.wait_for("error")
        blown = performance.wait_for("error", when=lambda event: "fuse" in event["diagnostics"][0]["message"])
        performance.wait_for_words("the previous sound keeps playing")
    assert refused["hash"] == performance.hash != failing
    assert blown["hash"] == failing


@pytest.mark.long
def test_a_sound_that_fails_on_its_beat_is_refused_with_its_picture(
    loudspeaker: SoundServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(FUSE), prepend=os.pathsep)
    patch = tmp_path / "patch.weft"
    patch.write_text(f"#quantize 1\n{PICTURE}audio({CLOCK})\ncompute(1)\n")
    with watched() as watch, loudspeaker.recorded(tmp_path / "heard") as file:
        with Performance(patch, "--headless", "--backend", "audio=fuse") as performance:
            until_heard(file, RATE // 4)
            performance.save(f"#quantize 1\n{PICTURE}audio({CLOCK} + 1)\ncompute(2)\n")
            problem = performance.wait_for("error")
            told = len(performance.events)
            eventually(lambda: [1] in [e.get("values") for e in performance.events[told:]], "the picture before")
            performance.save(f"#quantize 1\n{PICTURE}audio({CLOCK} + 0)\ncompute(3)\n")
            performance.wait_for("compute", when=lambda event: event["values"] == [3])
        time.sleep(0.2)
        heard = read(file)[:, 0]
    assert "the fuse has blown" in problem["diagnostics"][0]["message"]
    assert longest_silence(heard) < GAP + watch.stalls.total * RATE


def test_what_nobody_hears_changes_its_rate_too(tmp_path: Path) -> None:
    patch = tmp_path / "patch.weft"
    text = PICTURE + f"s<v> = {CLOCK}\naudio(s@v)\ncompute(s@v(me@time ~ me@time))\n"
    patch.write_text(text)
    with Performance(patch, "--headless", "--no-audio") as performance:
        performance.wait_for("compute", when=lambda event: event["values"][0] > 0.13)
        performance.save(f"me<rate> = 44100\n{text}")
        performance.wait_for("swap")
        told = len(performance.events)
        eventually(lambda: [e for e in performance.events[told:] if e["event"] == "compute" and e["values"][0] > 0.13],
                   "sound at another rate")  # fmt: skip
    assert "Traceback" not in performance.stderr


def _sound_processes() -> list[int]:
    """Those of this player."""
    found = subprocess.run(["pgrep", "-P", str(os.getpid()), "-f", "weft.runtime.sound.server"],
                           capture_output=True, text=True, check=False)  # fmt: skip
    return [int(number) for number in found.stdout.split()]


class Player:
    """Frames of a performance, and the sound that goes with it."""

    def __init__(self, frames: int = SoundOptions.frames) -> None:
        self.clock = Clock()
        self.sound = Sound(Setup("patch.weft"), SoundOptions(frames=frames))
        self.events: list[SoundEvent] = []
        self.values: dict[str, float] = {}
        self.is_late = False
        """Whether a frame is held up before it tells another tempo, for longer than that is planned ahead."""

    def until(self, happens: Callable[[], object]) -> None:
        def frame() -> object:
            tempo, now = self.clock.tempo, self.clock.now()
            if tempo.advance(now, self.sound.ahead(now), self.sound.changed):
                while self.is_late and self.clock.now() < tempo.beats.start + 0.2:
                    time.sleep(0.01)
                self.sound.inform(self.clock, tempo.beats.inputs)
            self.sound.follow(self.clock, {**self.values, **tempo.beats.inputs}, {})
            self.events += self.sound.events()
            return happens()

        eventually(frame)

    def pid(self) -> int:
        """The sound process."""
        (found,) = _sound_processes()
        return found


@pytest.fixture
def player(request: pytest.FixtureRequest) -> Iterator[Player]:
    """With blocks of another length if it has a parameter."""
    player = Player(getattr(request, "param", SoundOptions.frames))
    yield player
    player.sound.close()


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="kills by a signal")
def test_the_process_dies_while_a_program_waits(loudspeaker: SoundServer, player: Player, tmp_path: Path) -> None:
    player.sound.enter(compiled("audio(0.25)"), 0.0, {})
    player.until(lambda: not player.sound.is_starting)
    # Longer where it takes longer to start a process again than the program waits.
    for seconds in (6, 15, 40):
        change = player.clock.now() + seconds
        # The next of so many beats is then.
        player.sound.enter(compiled("audio(0.375)"), 0.0, {}, player.clock.tempo.beats.at(change))
        player.until(lambda: player.sound.figures)
        with loudspeaker.recorded(tmp_path / "heard") as file:
            os.kill(player.pid(), signal.SIGKILL)
            count = len(player.events)
            player.until(lambda count=count: "restarted" in [event.kind for event in player.events[count:]])
            if player.clock.now() >= change:
                player.sound.enter(compiled("audio(0.25)"), 0.0, {})
                continue
            player.until(lambda file=file: np.count_nonzero(read(file) == 0.375) > RATE)
            heard = read(file)[:, 0]
            break
    else:
        pytest.fail("the process is never there in time")
    before = heard[: np.flatnonzero(heard == 0.375)[0]]
    assert np.count_nonzero(before == 0.25) > RATE


def test_what_is_not_waited_for_enters_when_its_stream_is_ready(
    loudspeaker: SoundServer, player: Player, tmp_path: Path
) -> None:
    first, second = compiled("audio(0.25)"), compiled("me<rate> = 44100\naudio(0.125)")
    player.sound.enter(first, 0.0, {})
    player.until(lambda: not player.sound.is_starting)
    with watched() as watch, loudspeaker.recorded(tmp_path / "heard") as file:
        count = hearing(file)
        player.until(lambda: count() > RATE // 8)
        player.sound.enter(second, 0.0, {})
        player.until(lambda: player.sound.options.rate == 44100)
        player.until(lambda: np.isclose(last(file), 0.125, atol=1e-3))
        # The one that fades away can be had back only by another stream again.
        player.sound.enter(first, 0.0, {})
        player.until(lambda: player.sound.options.rate == RATE)
        player.until(lambda: np.isclose(last(file), 0.25, atol=1e-3))
        heard = read(file)[:, 0]
    assert longest_silence(heard) < GAP + watch.stalls.total * RATE


@pytest.mark.long
def test_a_stream_that_leaves_on_a_beat_plays_until_then_if_the_tempo_changes(
    loudspeaker: SoundServer, player: Player, tmp_path: Path
) -> None:
    tempo = player.clock.tempo
    player.sound.enter(compiled("audio(0.25)"), 0.0, {})
    player.until(lambda: not player.sound.is_starting)
    with watched() as watch, loudspeaker.recorded(tmp_path / "heard") as file:
        player.until(lambda: last(file) == 0.25)
        every = tempo.beats.at(player.clock.now() + 5)
        number = player.sound.enter(compiled("me<rate> = 44100\naudio(0.125)"), 0.0, {}, every)
        player.until(lambda: player.sound.beat(number))
        tempo.set(tempo.bpm / 2)
        player.until(lambda: np.isclose(last(file), 0.125, atol=1e-3))
        heard = read(file)[:, 0]
    assert longest_silence(heard) < GAP + watch.stalls.total * RATE


def doubles_its_tempo(loudspeaker: SoundServer, player: Player, folder: Path) -> None:
    """Its beat does not jump, in what is heard, and the picture counts as the sound does."""
    tempo = player.clock.tempo
    player.sound.enter(compiled(COUNTING), 0.0, {})
    player.until(lambda: not player.sound.is_starting)
    with loudspeaker.recorded(folder / "heard") as file:
        count = hearing(file)
        player.until(lambda: count() > RATE // 2)
        tempo.set(2 * tempo.bpm)
        player.until(lambda: tempo.beats.start and player.clock.now() > tempo.beats.start + 0.5)
        beats, seconds = counted(read(file))
    found = tempos(beats, seconds)
    assert found.min() > 120 - 20
    assert found.max() < 240 + 20
    assert beats[-1] == pytest.approx(tempo.beats.at(seconds[-1]), abs=1e-4)


def test_another_tempo_begins_behind_what_a_device_far_away_has_been_given(
    loudspeaker: SoundServer, player: Player, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As wireless loudspeakers are. It is changed where the clock agrees with them."""
    monkeypatch.setenv("PULSE_LATENCY_MSEC", "400")
    doubles_its_tempo(loudspeaker, player, tmp_path)


def test_another_tempo_that_comes_too_late_begins_where_the_sound_is_by_then(
    loudspeaker: SoundServer, player: Player, tmp_path: Path
) -> None:
    player.is_late = True
    doubles_its_tempo(loudspeaker, player, tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="stops by a signal")
@pytest.mark.parametrize("player", [4096], indirect=True)
def test_after_an_interruption_the_sound_is_not_ahead_of_the_picture(loudspeaker: SoundServer, player: Player) -> None:
    """What is in hand at the device otherwise is not there then."""
    player.sound.enter(compiled(f"audio({CLOCK})"), 0.0, {})
    stream = player.sound.audible
    assert stream is not None

    def kinds() -> list[str]:
        return [event.kind for event in player.events]

    def play(blocks: int) -> None:
        before = stream.figures.blocks
        player.until(lambda: stream.figures.blocks >= before + blocks)

    play(8)
    underruns, began = stream.figures.underruns, time.monotonic()
    os.kill(player.pid(), signal.SIGSTOP)
    player.until(lambda: time.monotonic() > began + 1.3)
    os.kill(player.pid(), signal.SIGCONT)
    # On a machine that stands still itself, the process may count as hanging.
    player.until(lambda: stream.figures.underruns > underruns or "restarted" in kinds())
    play(8)
    heard = stream.seconds()
    assert heard is not None
    # It may come later if the machine stands still.
    assert heard < player.clock.now() + 0.05
    assert "lost" not in kinds(), "its device is still there"


def test_what_plays_follows_the_mouse_whatever_waits_for_a_beat(
    loudspeaker: SoundServer, player: Player, tmp_path: Path
) -> None:
    player.values["mouse@x"] = 0.25
    player.sound.enter(compiled("audio(mouse@x)"), 0.0, {})
    player.until(lambda: not player.sound.is_starting)
    with loudspeaker.recorded(tmp_path / "heard") as file:
        player.until(lambda: last(file) == 0.25)
        for level in (0.5, 0.75):
            player.sound.enter(compiled(f"audio({level})"), 0.0, {}, 1000)
        player.values["mouse@x"] = 0.375
        player.until(lambda: last(file) == 0.375)


def test_a_sound_that_plays_already_goes_on(loudspeaker: SoundServer, player: Player) -> None:
    """It is not loaded again, unless it is not sure that it plays."""
    enter, hum = player.sound.enter, "audio(sin(me@abstime * 440) * 0.25)"
    first = enter(compiled(hum), 0.0, {})
    player.until(lambda: not player.sound.is_starting)
    assert enter(compiled(f"// the same\n#slider x<v> = 0, 1, 0.5 \"x\"\ndisplay(me@x)\n{hum}"), 0.0, {}) > first
    second = enter(compiled(hum), 0.0, {})
    assert enter(compiled(f"// a note, and a picture\n\ndisplay(me@x)\n{hum}"), 0.0, {}) == second
    assert enter(compiled(hum), 0.0, {}, player.clock.now() + 1) == second
    louder = enter(compiled(hum.replace("0.25", "0.5")), 0.0, {}, player.clock.now() + 60)
    # Now the louder one waits, and must not follow.
    again = enter(compiled(hum), 0.0, {})
    assert second < louder < again
    assert enter(compiled(hum), 0.0, {}) == again
    assert enter(compiled(hum), 0.0, {}, again=True) > again


# --- the beginning ----------------------------------------------------------------------------------------------------


class _UntilHeard(Screen):
    """Ends a performance when it has been heard for a while."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session

    def poll(self) -> None:
        if self._session.clock.now() > 1:
            self._session.stop("heard")


def test_the_first_sample_of_a_performance_is_heard(
    loudspeaker: SoundServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However busy the machine is.
    monkeypatch.setattr(transition, "_HELD", 60.0)
    patch = tmp_path / "patch.weft"
    patch.write_text(PICTURE + f"audio({CLOCK})\n")
    setup = Setup(str(patch))
    session = Session(
        SetList([patch]), Compiler.of(setup), Reporter(EventLog(None)), Inputs(),
        sound=Sound(setup, SoundOptions()),
    )  # fmt: skip
    with watched() as watch, loudspeaker.recorded(tmp_path / "heard") as file:
        session.begin()
        began = time.monotonic()
        session.run(_UntilHeard(session))
        over = time.monotonic()
        time.sleep(0.2)
        heard = read(file)[:, 0]
    # What a machine that stands still loses of a recording is no fault of the player.
    missing = times(heard[np.flatnonzero(heard)[:1]])[0]
    assert missing == 0 or missing <= watch.stalls.lost_around(began, over)


@pytest.mark.parametrize(
    ("text", "awaited"),
    [("audio(0)", True), ("#use sin\nplay(0) // left, right", True), ("display(me@x) // displayed", False)],
)
def test_a_file_that_mentions_a_sound_has_it_get_ready(tmp_path: Path, text: str, awaited: bool) -> None:
    patch = tmp_path / "patch.weft"
    patch.write_text(text)
    setup = Setup(str(patch))
    session = Session(
        SetList([patch]), Compiler.of(setup), Reporter(EventLog(None)), Inputs(),
        sound=Sound(setup, SoundOptions()),
    )  # fmt: skip
    session.expect()
    try:
        if awaited:
            eventually(lambda: len(_sound_processes()) == 1, "the start of the sound process")
        assert len(_sound_processes()) == awaited
    finally:
        session.close()
    assert not _sound_processes()


def test_no_device_holds_a_performance_up(silent_loudspeaker: SoundServer, tmp_path: Path) -> None:
    patch = tmp_path / "patch.weft"
    patch.write_text(PICTURE + f"audio({CLOCK})\ncompute(me@abstime)\n")
    with Performance(patch, "--headless") as performance:
        performance.wait_for("compute", when=lambda event: event["values"][0] > 1)


def test_a_device_that_is_not_there_is_told_before_the_performance(loudspeaker: SoundServer, tmp_path: Path) -> None:
    patch = tmp_path / "patch.weft"
    patch.write_text(PICTURE + "audio(0.25)\n")
    with Performance(patch, "--headless", "--audio-device", "nosuch") as performance:
        assert performance.ended() == 3
    assert '"nosuch"' in performance.stderr
    assert "default" in performance.stderr
    assert "Traceback" not in performance.stderr
