"""The clock of MIDI: tempo and beat of ticks with jitter."""

from __future__ import annotations

import numpy as np
import pytest

from weft.runtime.hands.midi import TICKS, ClockDecoder
from weft.runtime.hands.midi_messages import MidiMessage

TICK, START, STOP = MidiMessage("clock"), MidiMessage("start"), MidiMessage("stop")


def ticked(
    bpm: float, count: int, jitter: float = 0.0, begin: float = 0.0, into: ClockDecoder | None = None
) -> ClockDecoder:
    """A clock after some ticks, which come late by up to `jitter` seconds."""
    made = ClockDecoder() if into is None else into
    late = np.random.default_rng(1).uniform(0, jitter, count)
    for number in range(count):
        made.take(TICK, begin + number * 60 / bpm / TICKS + late[number])
    return made


@pytest.mark.parametrize("bpm", [20.0, 60.0, 90.5, 120.0, 174.0, 300.0])
def test_even_ticks_have_a_tempo_and_a_beat(bpm: float) -> None:
    made = ClockDecoder()
    made.take(START, 0.0)
    found = ticked(bpm, 97, into=made).reading()
    assert found is not None
    assert (found.bpm, found.beat) == (pytest.approx(bpm), pytest.approx(4))
    assert found.moment == pytest.approx(4 * 60 / bpm)


def test_jitter_is_smoothed() -> None:
    made = ClockDecoder()
    made.take(START, 0.0)
    found = ticked(120, 200, jitter=0.002, into=made).reading()
    assert found is not None
    assert found.bpm == pytest.approx(120, rel=2e-3)
    beat = found.beat + (199 * 60 / 120 / TICKS - found.moment) * found.bpm / 60
    # The mean delay is 1 ms, which is 0.002 beats.
    assert beat == pytest.approx(199 / TICKS - 0.002, abs=0.001)


def test_a_busy_sender_has_a_steady_tempo() -> None:
    """Whose ticks are late by 4 ms on average, some by much more, and never overtake each other."""
    made, found = ClockDecoder(), []
    even = np.arange(24 * 60) * 60 / 140 / TICKS
    late = np.maximum.accumulate(even + np.random.default_rng(2).exponential(0.004, len(even)))
    for number, moment in enumerate(late):
        made.take(TICK, float(moment))
        if number >= 96 and (reading := made.reading()) is not None:
            found.append(reading.bpm)
    assert found == pytest.approx([140] * len(found), rel=0.015)
    assert len(set(found)) < 40, "it is not moved with every tick"


def test_there_is_nothing_before_there_are_enough_ticks() -> None:
    assert ticked(120, 11).reading() is None
    assert ticked(120, 12).reading() is not None
    assert ClockDecoder().reading() is None
    made = ClockDecoder()
    for _ in range(50):
        made.take(TICK, 1.0)
    assert made.reading() is None, "all at once"


def test_another_tempo_is_found_within_two_beats() -> None:
    made = ticked(120, 96)
    for count in range(2 * TICKS):
        made.take(TICK, 96 * 60 / 120 / TICKS + count * 60 / 140 / TICKS)
        found = made.reading()
    assert found is not None
    assert found.bpm == pytest.approx(140, rel=0.01)


def test_a_pause_begins_anew() -> None:
    made = ticked(120, 96)
    found = ticked(90, 12, begin=20.0, into=made).reading()
    assert found is not None
    assert found.bpm == pytest.approx(90)


def test_positions_are_those_of_the_sequencer() -> None:
    made = ticked(120, 48)
    found = made.reading()
    assert found is not None
    assert not found.is_known
    made.take(STOP, 1.0)
    made.take(MidiMessage("position", value=8), 1.0)
    made.take(MidiMessage("continue"), 1.0)
    found = ticked(120, 1, begin=1.0, into=made).reading()
    assert found is not None
    assert (found.beat, found.is_known) == (pytest.approx(2), True)
    made.take(START, 1.01)
    found = ticked(120, 1, begin=1.0 + 0.5 / TICKS, into=made).reading()
    assert found is not None
    assert found.beat == pytest.approx(0, abs=1e-6)
