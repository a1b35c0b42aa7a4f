"""What takes programs in the sound process: those that wait, and those that fail."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.runtime.sound.hall import BLOCK, RATE, Samples, compiled
from weft.beats import Beats
from weft.runtime.program.program import Setup
from weft.runtime.sound.microphone import Microphones
from weft.runtime.sound.renderer import BeatFigures, Play, Player, ProgramFailure, SoundOptions
from weft.runtime.sound.shared import Controls, ControlsWriter, Rings, SharedMemory

FUSE, SLOW = (Path(__file__).parents[2] / "plugins" / name for name in ("fuse", "slow"))
BACK = RATE // 100


class Room:
    """A player without a process or a device."""

    def __init__(self, backend: str = "vector") -> None:
        controls, rings = SharedMemory(Controls.SIZE), SharedMemory(Rings.SIZE)
        sound = SoundOptions(None, RATE, 2, BLOCK)
        self._written, self._controls = ControlsWriter(controls), Controls(controls.bytes)
        self.player = Player(sound, self._controls, Rings(rings.bytes), Microphones(RATE, BLOCK))
        self.beats = BeatFigures()
        """What the last block says of beats."""
        self._setup = Setup("sound.weft", backend)
        self._number = 0
        self._played = 0
        for memory in (controls, rings):
            memory.close()

    def enter(
        self, text: str, at: float | None = None, held: bool = False, again: bool = False, every: float | None = None,
        fade: float = 0.0,
    ) -> int:
        """Sends a program, or the last one `again`; gives its number."""
        self._number += not again
        self.player.take(Play(self._number, self._setup, compiled(text), fade, {}, {}, {}, held, at=at, every=every))
        return self._number

    def count(self, beats: Beats) -> None:
        """From now on, beats are counted so."""
        self._written.write(0.0, beats.inputs)
        self._controls.refresh()

    def restart(self) -> None:
        """The next block is the first one."""
        self._played = 0

    def play(self, blocks: int = 1) -> Samples:
        """What one channel hears in this many blocks."""
        out = np.full((blocks, BLOCK, 2), np.nan, np.float32)
        for block in out:
            self._played += BLOCK
            self.beats = self.player.render(block, (self._played - BLOCK) / RATE)
        return out[:, :, 0].reshape(-1)


def test_what_plays_enters_before_what_waits() -> None:
    room = Room()
    room.enter("audio(0.25)")
    room.enter("audio(0.5)", at=4 * BLOCK / RATE)
    heard = room.play(6)
    assert (heard[: 4 * BLOCK] == 0.25).all()
    assert (heard[4 * BLOCK :] == 0.5).all()


def test_what_is_held_plays_when_it_is_said_to() -> None:
    room = Room()
    room.enter("audio(0.25)", held=True)
    assert not room.play(2).any()
    room.enter("audio(0.25)", at=3 * BLOCK / RATE, again=True)
    assert not room.play().any()
    assert (room.play() == 0.25).all()


# A beat for each of so many samples, which are no blocks.
SAMPLES = 3 * BLOCK + 5
EACH = Beats.steady(60 * RATE / SAMPLES)


def waiting() -> Room:
    """One that has played for longer than a beat when a program comes that is to enter on one."""
    room = Room()
    room.count(EACH)
    room.enter("audio(0.25)")
    room.play(4)
    room.enter("audio(0.5)", every=1)
    return room


def test_what_waits_for_a_beat_enters_on_the_next_that_is_not_computed_yet() -> None:
    room = waiting()
    heard = room.play()
    # It is said before it is heard.
    assert room.beats[:2] == (2, 2)
    heard = np.concatenate([heard, room.play(3)])
    enters = 2 * SAMPLES - 4 * BLOCK
    assert (heard[:enters] == 0.25).all()
    assert (heard[enters:] == 0.5).all()
    assert room.beats[:2] == (2, 2)


def test_what_is_held_enters_on_a_beat_when_it_is_said_to() -> None:
    room = Room()
    room.count(EACH)
    room.enter("audio(0.25)", held=True)
    room.play(4)
    room.enter("audio(0.25)", again=True, every=2)
    heard = room.play(4)
    enters = 2 * SAMPLES - 4 * BLOCK
    assert not heard[:enters].any()
    assert (heard[enters:] == 0.25).all()


def test_what_waits_for_a_beat_goes_by_the_tempo_then() -> None:
    room = waiting()
    room.play()
    slower = EACH.changed(5 * BLOCK / RATE, EACH.bpm / 2)
    room.count(slower)
    heard = room.play(5)
    enters = round(slower.time_of(2) * RATE) - 5 * BLOCK
    assert BLOCK + 10 < enters < 4 * BLOCK
    assert (heard[:enters] == 0.25).all()
    assert (heard[enters:] == 0.5).all()


def test_a_tempo_that_comes_too_late_begins_where_the_sound_is() -> None:
    room = Room()
    room.count(EACH)
    room.enter("audio(me@beats / 64)")
    heard = room.play(4)
    late = EACH.changed(2.5 * BLOCK / RATE, 2 * EACH.bpm)
    room.count(late)
    heard = np.concatenate([heard, room.play(2)])
    moments = np.arange(6 * BLOCK) / RATE
    taken = EACH.changed(4 * BLOCK / RATE, 2 * EACH.bpm)
    assert heard * 64 == pytest.approx(np.array([taken.at(moment) for moment in moments]), abs=1e-4)
    assert room.beats[2:] == (taken.then, taken.start)
    # The player counts so, too, and then in time.
    next = taken.changed(9 * BLOCK / RATE, EACH.bpm)
    for beats in (taken, next):
        room.count(beats)
        heard = room.play(2) * 64
        assert room.beats[2:] == (beats.then, beats.start)
    moments = np.arange(8 * BLOCK, 10 * BLOCK) / RATE
    assert heard == pytest.approx(np.array([next.at(moment) for moment in moments]), abs=1e-4)


def test_what_waits_for_a_beat_waits_for_another_after_a_restart() -> None:
    room = waiting()
    room.play()
    room.restart()
    assert (room.play() == 0.5).all()
    assert room.beats[:2] == (2, 0)


def test_what_waits_does_not_enter_while_another_is_loaded_in_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(SLOW)
    room, heard = Room("audio=slow"), np.empty(0)

    def meanwhile() -> None:
        nonlocal heard
        heard = room.play(4) if room.beats[:2] == (2, 1) else heard

    monkeypatch.setattr("weft_slow.Slow.wait", staticmethod(meanwhile))
    room.count(EACH)
    room.enter("audio(0.25)")
    room.play()
    room.enter("audio(0.5)", every=1)
    room.play()
    room.enter("audio(0.75)", every=1)
    # That was longer than to the beat.
    assert (heard == 0.25).all()
    heard = room.play(4)
    enters = 2 * SAMPLES - 6 * BLOCK
    assert (heard[:enters] == 0.25).all()
    assert (heard[enters:] == 0.75).all()


@pytest.fixture
def fused(monkeypatch: pytest.MonkeyPatch) -> Room:
    """A player with a device that fails when more than 1 is asked of it."""
    monkeypatch.syspath_prepend(FUSE)
    return Room("audio=fuse")


def test_a_program_that_fails_gives_way_to_the_one_before(fused: Room) -> None:
    fused.enter("audio(0.25)")
    fused.play()
    number = fused.enter(f"audio(0.5 + if me@abstime >= {4 * BLOCK / RATE} then 1 else 0)")
    assert (fused.play(3) == 0.5).all()
    with pytest.raises(ProgramFailure) as failed:
        fused.play()
    assert failed.value.number == number
    assert "the fuse has blown" in str(failed.value.__cause__)
    assert (fused.play(4)[BACK:] == 0.25).all()
    # What comes then follows the one that is heard.
    fused.enter("audio(0.125)")
    assert (fused.play(2) == 0.125).all()


def failing(room: Room, at: float | None, fade: float = 0.0) -> int:
    """One that enters after a program that fails from block 4 on, and has played for 2 blocks; its number."""
    room.enter("audio(0.25)")
    room.play()
    room.enter(f"audio(0.5 + if me@abstime >= {4 * BLOCK / RATE} then 1 else 0)")
    room.play(2)
    return room.enter("audio(0.125)", at=at, fade=fade)


def test_a_program_that_fails_while_it_fades_out_is_gone(fused: Room) -> None:
    failing(fused, None, 4 * BLOCK / RATE)
    assert (fused.play(6)[4 * BLOCK :] == 0.125).all()


def test_a_program_that_fails_in_the_block_in_which_it_leaves_is_silent_until_then(fused: Room) -> None:
    failing(fused, (4 * BLOCK + 100) / RATE, BLOCK / RATE)
    heard = fused.play(4)
    assert (heard[:BLOCK] == 0.5).all()
    assert not heard[BLOCK : BLOCK + 100].any()
    assert (heard[2 * BLOCK + 100 :] == 0.125).all()


def test_a_program_that_fails_up_to_the_beat_of_the_next_is_told_by_its_number(fused: Room) -> None:
    # That is in the block after it, rounded to a sample.
    number = failing(fused, (5 * BLOCK - 0.4) / RATE)
    fused.play()
    with pytest.raises(ProgramFailure) as failed:
        fused.play()
    assert failed.value.number == number - 1
    assert (fused.play(4)[2 * BLOCK :] == 0.125).all()


def test_what_waits_goes_on_waiting_when_another_one_fails(fused: Room) -> None:
    fused.enter("audio(0.25)")
    fused.play()
    fused.enter(f"audio(0.5 + if me@abstime >= {3 * BLOCK / RATE} then 1 else 0)")
    fused.play()
    fused.enter("audio(0.125)", at=10 * BLOCK / RATE)
    fused.play()
    with pytest.raises(ProgramFailure):
        fused.play()
    heard = fused.play(8)
    assert (heard[BACK : 6 * BLOCK] == 0.25).all()
    assert (heard[6 * BLOCK :] == 0.125).all()


def test_with_nothing_before_it_is_tried_again(fused: Room) -> None:
    fused.enter(f"audio(0.5 + if me@abstime < {2 * BLOCK / RATE} then 1 else 0)")
    for _ in range(2):
        with pytest.raises(ProgramFailure):
            fused.play()
    assert (fused.play() == 0.5).all()


@pytest.mark.parametrize("is_there", [False, True])
def test_with_nothing_before_another_takes_its_place_on_its_beat(fused: Room, is_there: bool) -> None:
    fused.count(EACH)
    fused.enter(f"audio(0.5 + if me@abstime >= {BLOCK / RATE} then 1 else 0)")
    fused.play()
    if not is_there:
        with pytest.raises(ProgramFailure):
            fused.play()
    number = fused.enter("audio(0.25)", every=1, fade=0.01)
    if is_there:
        with pytest.raises(ProgramFailure):
            fused.play()
    heard = fused.play(3)
    assert fused.beats[:2] == (number, 1)
    enters = SAMPLES - 2 * BLOCK
    assert not heard[:enters].any()
    assert heard[-1] > 0.2


def test_with_nothing_before_another_takes_its_place_at_once(fused: Room) -> None:
    fused.enter("audio(0.5 + 1)")
    with pytest.raises(ProgramFailure):
        fused.play()
    fused.enter("audio(0.25)", fade=0.01)
    assert fused.play(2)[-1] == 0.25


def test_a_program_that_cannot_be_loaded_is_told_by_its_number() -> None:
    with pytest.raises(ProgramFailure) as failed:
        Room("nosuch").enter("audio(0.5)")
    assert failed.value.number == 1
    assert "nosuch" in str(failed.value.__cause__)


def test_a_loop_that_is_stopped_is_news_once() -> None:
    loop = "spindle long(n) :: v {\n v = 0\n for i in (1 to n) { v += 1 / n }\n}\n"
    room = Room()
    room.enter(f"{loop}audio(long(mouse@x * 9 + if me@time < {2 * BLOCK / RATE} then 5 else 5000))")
    room.play()
    assert room.player.news() == []
    room.play(3)
    assert [(event.kind, event.words) for event in room.player.news()] == [("loop", "audio/audio")]
    room.play()
    assert room.player.news() == []
