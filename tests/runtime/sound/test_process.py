"""The sound process, its loudspeaker, and what may befall them. What is heard is recorded."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.runtime.sound.conftest import Player
from tests.support.flaws import listened
from tests.support.sound import RATE, SoundServer, breaks, eventually, frequency, hearing, read, sounding
from tests.support.together import all_but
from weft.codegen.kernel import to_json
from weft.runtime.compiling.compiler import Compiler, Saved
from weft.runtime.program.program import Setup
from weft.runtime.sound.player import SoundProcess, Stream
from weft.runtime.sound.renderer import Better, Play, SoundEvent, SoundOptions

# Sound comes and goes within this many samples.
EDGE = RATE // 100
HERTZ = 440.0


def inside(samples: np.ndarray) -> np.ndarray:
    """A stretch of sound without the ends, where it comes and goes."""
    return samples[EDGE:-EDGE]


def is_gone(pid: int) -> bool:
    """Whether no process of this number runs any more. A process whose end was not collected does not run."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


@pytest.mark.long
@pytest.mark.parametrize("seconds", all_but(1, [4, 10]))
def test_a_player_that_holds_up_python_does_not_hold_up_the_sound(
    loudspeaker: SoundServer, quick_player: Player, tmp_path: Path, seconds: int
) -> None:
    # Unlike CDLL, this keeps Python's lock while it sleeps.
    sleep = ctypes.PyDLL(None).usleep
    is_over = threading.Event()

    def hold() -> None:
        while not is_over.wait(0.005):
            sleep(20_000)

    quick_player.sound.send(HERTZ, keep="program")
    quick_player.sound.start()
    quick_player.until(lambda: quick_player.hears("playing"))
    file = tmp_path / "heard"
    with listened(loudspeaker, file, EDGE) as listening:
        holding = threading.Thread(target=hold)
        holding.start()
        try:
            quick_player.play(seconds)
        finally:
            is_over.set()
            holding.join()
    left, right = read(file).T
    assert np.array_equal(left, right)
    # Nothing is wrong that the machine is not to blame for.
    assert [str(flaw) for flaw in listening.unexplained(HERTZ)] == []
    stretches = sounding(left)
    assert sum(map(len, stretches)) > 0.9 * seconds * RATE
    longest = max(stretches, key=len)
    assert frequency(longest) == pytest.approx(HERTZ, abs=0.5)
    assert np.abs(longest).max() == pytest.approx(0.5, abs=1e-3)
    assert quick_player.hears("playing")


def test_the_sound_process_is_killed(loudspeaker: SoundServer, player: Player, tmp_path: Path) -> None:
    player.sound.send(220.0, keep="program")
    player.sound.send(HERTZ, keep="program")
    player.sound.start()
    with loudspeaker.recorded(tmp_path / "heard") as heard:
        player.until(lambda: player.sound.seconds() is not None)
        player.play(0.5)
        pid = player.sound.pid
        assert pid is not None
        os.kill(pid, signal.SIGINT)  # Ctrl-C is for the player alone
        player.play(0.1)
        assert player.sound.pid == pid
        os.kill(pid, signal.SIGKILL)
        player.until(lambda: player.hears("playing", "died", "restarted"))
        player.until(lambda: player.sound.seconds() is not None)
        player.play(0.5)
    assert "SIGKILL" in player.events[1].words
    assert player.sound.pid != pid
    stretches = [stretch for stretch in sounding(read(heard)[:, 0]) if len(stretch) > RATE // 5]
    assert len(stretches) == 2
    for stretch in stretches:
        assert not breaks(inside(stretch), HERTZ).size
        assert frequency(inside(stretch)) == pytest.approx(HERTZ, abs=0.5)


@pytest.mark.long
def test_the_sound_process_stands_still(loudspeaker: SoundServer, player: Player, tmp_path: Path) -> None:
    player.sound.send(HERTZ, keep="program")
    player.sound.start()
    player.until(lambda: player.hears("playing") and player.sound.seconds() is not None)
    pid = player.sound.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    player.until(lambda: player.hears("playing", "died", "restarted"))
    assert player.events[1].words == "the sound process stood still and is started again"
    with loudspeaker.recorded(tmp_path / "heard") as heard:
        count = hearing(heard)
        player.until(lambda: count() > RATE // 2)
    assert frequency(inside(max(sounding(read(heard)[:, 0]), key=len))) == pytest.approx(HERTZ, abs=0.5)


@pytest.mark.long
def test_time_goes_on_as_the_player_s_clock_shows_it(loudspeaker: SoundServer, player: Player) -> None:
    player.sound.send(HERTZ, keep="program")
    player.sound.start()
    for _ in range(2):
        player.until(lambda: player.sound.seconds() is not None)
        for _ in range(30):
            player.frame()
            heard = player.sound.seconds()
            # Not a measure of speed: if time began again, it would be seconds off.
            assert heard is None or heard == pytest.approx(player.now(), abs=0.5)
        player.play(1)
        pid = player.sound.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        player.until(lambda pid=pid: player.sound.pid not in {pid, None})


def test_the_player_is_killed(loudspeaker: SoundServer, tmp_path: Path) -> None:
    before = set(os.listdir("/dev/shm"))
    script = (
        "import sys, time\n"
        "from weft.runtime.sound.renderer import SoundOptions\nfrom weft.runtime.sound.player import SoundProcess\n"
        "from tests.support.sound import TONE\n"
        "sound = SoundProcess(SoundOptions(renderer=TONE))\n"
        "sound.send(440.0, keep='program')\n"
        "sound.start()\n"
        "while sound.seconds() is None:\n"
        "    sound.controls.write(time.monotonic(), {})\n"
        "    time.sleep(0.01)\n"
        "print(sound.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    root = Path(__file__).parents[3]
    with subprocess.Popen([sys.executable, "-c", script], cwd=root, stdout=subprocess.PIPE, text=True) as playing:
        assert playing.stdout is not None
        pid = int(playing.stdout.readline())
        assert not is_gone(pid)
        playing.kill()
    eventually(lambda: is_gone(pid), "the end of the sound process")

    def has_left_nothing() -> bool:
        # The clients of sound servers leave their own there, and a Dask that another test kills its semaphores.
        left = set(os.listdir("/dev/shm")) - before
        return all(name.startswith(("pulse-", "jack", "sem.")) for name in left)

    # Others, such as browsers, have something there for a moment.
    eventually(has_left_nothing, "the end of what it shares")


def test_without_a_loudspeaker_until_there_is_one(
    silent_loudspeaker: SoundServer, player: Player, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    player.sound.send(HERTZ, keep="program")
    player.sound.start()
    player.until(lambda: player.hears("lost"))
    player.play(2.5)
    assert player.hears("lost")
    assert player.events[0].code == "no-sound-device"
    assert "\n" not in player.events[0].words
    assert player.sound.seconds() is None
    silent_loudspeaker.start()
    with silent_loudspeaker.recorded(tmp_path / "heard") as heard:
        player.until(lambda: player.hears("lost", "back"))
        count = hearing(heard)
        player.until(lambda: count() > RATE // 2)
    stretch = max(sounding(read(heard)[:, 0]), key=len)
    assert frequency(inside(stretch)) == pytest.approx(HERTZ, abs=0.5)
    assert capfd.readouterr().err == ""


def test_a_loudspeaker_goes_away_and_comes_back(silent_loudspeaker: SoundServer, player: Player) -> None:
    player.sound.send(HERTZ, keep="program")
    silent_loudspeaker.start()
    player.sound.start()
    player.until(lambda: player.sound.seconds() is not None)
    silent_loudspeaker.stop()
    player.until(lambda: "lost" in {event.kind for event in player.events})
    assert player.sound.seconds() is None
    silent_loudspeaker.start()
    player.until(lambda: player.events[-1].kind == "back")
    player.until(lambda: player.sound.seconds() is not None)


@pytest.mark.long
def test_a_loudspeaker_that_does_not_answer(silent_loudspeaker: SoundServer, player: Player) -> None:
    player.sound.send(HERTZ, keep="program")
    silent_loudspeaker.start()
    player.sound.start()
    player.until(lambda: player.sound.seconds() is not None)
    with silent_loudspeaker.held_up():
        player.until(lambda: player.hears("playing", "lost"))
        assert "does not answer" in player.events[-1].words
        pid = player.sound.pid
        # It waits for what never comes, and is ended for it.
        player.until(lambda: player.sound.pid not in {pid, None})
        assert player.sound.seconds() is None
    player.until(lambda: player.hears("playing", "lost", "back"))
    player.until(lambda: player.sound.seconds() is not None)


def test_one_that_is_ready_beforehand_plays_at_the_rate_that_it_is_told_then(
    loudspeaker: SoundServer, player: Player, tmp_path: Path
) -> None:
    player.sound.start()
    player.until(lambda: player.sound.pid is not None)
    pid = player.sound.pid
    player.play(0.5)
    assert not player.events
    assert not player.sound.is_ready, "or it has asked for a device at a rate that nobody has told it"
    player.sound.options = replace(player.sound.options, rate=RATE // 2)
    with loudspeaker.recorded(tmp_path / "heard") as heard:
        player.sound.send(HERTZ, keep="program")
        count = hearing(heard)
        player.until(lambda: count() > RATE // 2)
    assert player.sound.pid == pid
    assert player.sound.is_ready
    assert frequency(inside(max(sounding(read(heard)[:, 0]), key=len))) == pytest.approx(HERTZ, abs=0.5)


def test_what_has_entered_meanwhile_is_played_at_once(loudspeaker: SoundServer, player: Player, tmp_path: Path) -> None:
    """A process that is still to be started gets the message that is kept by then."""
    player.sound.send(220.0, keep="playing")
    player.sound.send(330.0, keep="waiting")
    player.sound.keep(HERTZ, "playing", instead_of="waiting")
    player.sound.start()
    with loudspeaker.recorded(tmp_path / "heard") as file:
        count = hearing(file)
        player.until(lambda: count() > RATE // 2)
    heard = max(sounding(read(file)[:, 0]), key=len)
    assert frequency(inside(heard)) == pytest.approx(HERTZ, abs=0.5)


def test_one_that_is_not_needed_after_all_leaves_nothing_behind(player: Player) -> None:
    player.sound.start()
    player.until(lambda: player.sound.pid is not None)
    pid = player.sound.pid
    assert pid is not None
    player.sound.close()
    assert is_gone(pid)
    assert not player.sound.events()


def test_a_renderer_that_cannot_be_had_is_told(loudspeaker: SoundServer) -> None:
    sound = SoundProcess(SoundOptions(renderer="tests.support.sound:nothing"))
    sound.send(HERTZ)
    sound.start()
    told: list[SoundEvent] = []

    def is_told() -> bool:
        told.extend(sound.events())
        return any(event.kind == "failure" for event in told)

    try:
        eventually(is_told)
    finally:
        sound.close()
    assert "nothing" in next(event.words for event in told if event.kind == "failure")


class Witness:
    """A renderer that says what it takes."""

    def __init__(self, *_given: object) -> None:
        self._taken: list[SoundEvent] = []

    def render(self, out: np.ndarray, seconds: float) -> None:
        out[:] = 0

    def take(self, message: object) -> None:
        words = _all_of(message) if isinstance(message, Play) else repr(message)
        self._taken.append(SoundEvent("microphone", "", words))

    def news(self) -> list[SoundEvent]:
        taken, self._taken = self._taken, []
        return taken


def _all_of(play: Play) -> str:
    units = play.compiled.units
    kernels = [to_json(kernel) for unit in units for kernel in unit.kernels]
    return repr([play.number, play.held, kernels, [(unit.subgraph, unit.hash, unit.code) for unit in units]])


@pytest.mark.long
def test_programs_arrive_as_they_were_sent(tmp_path: Path) -> None:
    """Though only what is new of them is sent, and all of it to a process that replaces another."""
    setup = Setup(str(tmp_path / "patch.weft"), "cpu")
    compiler, plays = Compiler.of(setup), list[Play]()
    for hertz in (220, 330, 220, 440, 330):
        text = f"s = prev(s) * 0.9 + sin(me@time * {hertz} * tau)\naudio(s / 10, 0.2)\ndisplay(s)\n"
        made = compiler.compile(Saved(text.encode(), 0.0)).compiled
        assert made is not None
        for held in (True, False):
            plays.append(Play(len(plays) + 1, setup, made.streaming, 0.1, {}, {}, {}, held))
    sound, told = SoundProcess(SoundOptions(renderer=f"{__name__}:Witness", is_silent=True)), list[str]()

    def arrive(*expected: Play) -> None:
        def have_arrived() -> bool:
            told.extend(event.words for event in sound.events() if event.kind == "microphone")
            return len(told) >= len(expected)

        eventually(have_arrived)
        assert told == list(map(_all_of, expected))
        told.clear()

    try:
        for play in plays:
            sound.send(play, keep="program")
        sound.start()
        arrive(*plays)
        assert sound.pid is not None
        os.kill(sound.pid, signal.SIGKILL)
        arrive(plays[-1])
        sound.send(plays[0], keep="program")
        sound.send(plays[-1], keep="program")
        arrive(plays[0], plays[-1])
    finally:
        sound.close()


def test_better_code_is_sent_for_sounds_only(tmp_path: Path) -> None:
    setup, told = Setup(str(tmp_path / "patch.weft"), "cpu"), list[str]()
    made = Compiler.of(setup).compile(Saved(b"audio(sin(me@time))\ndisplay(me@x)\n", 0.0)).compiled
    assert made is not None
    picture, sound = sorted((unit.hash for unit in made.units), key=lambda each: each == made.streaming.units[0].hash)
    stream = Stream(setup, SoundOptions(renderer=f"{__name__}:Witness", is_silent=True))
    try:
        stream.play(1, made.streaming, 0.0, {}, None, held=False)
        stream.improve({picture: "a"})
        stream.improve({picture: "b", sound: "c"})

        def have_arrived() -> bool:
            told.extend(event.words for event in stream.events() if event.kind == "microphone")
            return len(told) > 1

        eventually(have_arrived)
        assert told[1:] == [repr(Better({sound: "c"}))]
    finally:
        stream.close()


def test_it_loads_nothing_that_reads_texts_or_draws() -> None:
    heavy = ("parsimonious", "weft.syntax.parser", "weft.graph.build", "weft.ir.lower", "click", "rich", "watchdog",
             "glfw", "OpenGL", "hypothesis")  # fmt: skip
    code = (
        "import sys, weft.runtime.sound.server, weft.runtime.sound.renderer, weft.backends.cpu\n"
        f"print([module for module in {heavy} if module in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"


def test_what_fails_is_silent_and_told_once(loudspeaker: SoundServer, player: Player, tmp_path: Path) -> None:
    player.sound.send(HERTZ, keep="program")
    player.sound.start()
    player.until(lambda: player.hears("playing"))
    player.sound.send(-1.0, keep="program")
    player.until(lambda: player.hears("playing", "failure"))
    assert "there is no such tone" in player.events[-1].words
    player.sound.send("no tone")
    player.until(lambda: len(player.events) > 2)
    assert "that is no frequency" in player.events[2].words
    pid = player.sound.pid
    with loudspeaker.recorded(tmp_path / "heard") as heard:
        player.sound.send(HERTZ, keep="program")
        count = hearing(heard)
        player.until(lambda: count() > RATE // 2)
    assert frequency(inside(max(sounding(read(heard)[:, 0]), key=len))) == pytest.approx(HERTZ, abs=0.5)
    assert player.sound.pid == pid


def test_a_pause_is_silent_and_time_stands_still(loudspeaker: SoundServer, player: Player, tmp_path: Path) -> None:
    player.sound.send(HERTZ, keep="program")
    player.sound.start()
    with loudspeaker.recorded(tmp_path / "heard") as heard:
        player.until(lambda: player.sound.seconds() is not None)
        player.play(0.3)
        player.paused = True
        player.until(lambda: player.sound.figures.state.name == "PAUSED")
        sample = player.sound.figures.sample
        player.play(0.3)
        assert player.sound.figures.sample == sample
        player.paused = False
        player.until(lambda: player.sound.figures.sample > sample + RATE // 3)
    # The pause is silent for longer than a machine stands still, which divides nothing.
    first, second = sounding(read(heard)[:, 0], apart=RATE // 5)
    parts = [part for stretch in (first, second) for part in sounding(stretch)]
    for part in parts:
        assert not breaks(inside(part), HERTZ).size
    # Going and coming is soft: no step is much larger than those of the tone itself.
    steps = np.concatenate([*map(np.diff, parts), first[-1:], second[:1]])
    assert np.abs(steps).max() < 1.1 * 0.5 * 2 * np.pi * HERTZ / RATE


# The priorities of a process that plays: before, while and after it looks for devices.
_LOOKING = """\
import os
from weft.runtime.sound.server import _calmly, _prefer_this_process
def show():
    print(os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0))
show()
_prefer_this_process()
show()
for _ in range(2):
    with _calmly():
        show()
    show()
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere it has no priority")
def test_it_gives_way_to_the_picture_while_it_looks_for_devices() -> None:
    ran = subprocess.run([sys.executable, "-c", _LOOKING], stdout=subprocess.PIPE, text=True, check=True)
    ordinary, playing, *later = [tuple(map(int, line.split())) for line in ran.stdout.splitlines()]
    assert later == [later[0], playing, later[0], playing]
    if playing == ordinary:
        assert later[0] == ordinary  # it could not go back
    else:
        assert later[0][0] == os.SCHED_OTHER
        assert later[0][1] > ordinary[1]
