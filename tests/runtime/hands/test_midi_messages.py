"""MIDI messages and what they amount to: decoding, controllers, and notes in voices."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from weft.runtime.hands.midi_messages import MidiMessage, MidiNote, MidiState, Voice, Voices, bent, decode, encode
from weft.sources import ORDERS

KEYS = "keys"

LENGTHS = {0x8: 3, 0x9: 3, 0xA: 3, 0xB: 3, 0xC: 2, 0xD: 2, 0xE: 3}


def state(*messages: MidiMessage, moment: float = 0.0, device: str = KEYS) -> MidiState:
    made = MidiState()
    feed(made, *messages, moment=moment, device=device)
    return made


def feed(made: MidiState, *messages: MidiMessage, moment: float = 0.0, device: str = KEYS) -> None:
    """The messages of one frame."""
    made.begin_frame()
    for message in messages:
        made.take(device, message, moment, moment)


def on(key: int, velocity: int = 127, channel: int = 1) -> MidiMessage:
    return MidiMessage("note on", channel, key, velocity)


def off(key: int, channel: int = 1) -> MidiMessage:
    return MidiMessage("note off", channel, key)


def cc(number: int, value: int, channel: int = 1) -> MidiMessage:
    return MidiMessage("control", channel, number, value)


def keys(made: MidiState) -> list[int]:
    return [note.key for note in made.notes(0, "")]


# --- bytes ------------------------------------------------------------------------------------------------------------


def test_every_message_to_a_channel_goes_to_bytes_and_back() -> None:
    for status in range(0x80, 0xF0):
        for first in range(128):
            for second in (0, 1, 64, 127) if LENGTHS[status >> 4] == 3 else (None,):
                data = bytes((status, first) if second is None else (status, first, second))
                found = decode(data)
                assert found is not None
                assert found.channel == (status & 15) + 1
                ends = status >> 4 == 9 and second == 0
                assert encode(found) == (bytes((status - 16, first, 0)) if ends else data)


@pytest.mark.parametrize("data", [
    b"", b"\x40", b"\x40\x40\x40", b"\x90", b"\x90\x40", b"\x90\x40\x40\x40", b"\x90\x80\x40", b"\x90\x40\xff",
    b"\xc0\x01\x01", b"\xf0\x7e\x7f\xf7", b"\xf1\x10", b"\xf3\x01", b"\xf6", b"\xf9", b"\xfe", b"\xff", b"\xf2\x01",
    b"\xf8\x00",
], ids=bytes.hex)  # fmt: skip
def test_what_is_no_message_is_none(data: bytes) -> None:
    assert decode(data) is None


def test_the_messages_of_a_clock() -> None:
    kinds = [decode(bytes((status,))) for status in (0xF8, 0xFA, 0xFB, 0xFC)]
    assert [found.kind for found in kinds if found] == ["clock", "start", "continue", "stop"]
    assert decode(bytes((0xF2, 3, 1))) == MidiMessage("position", value=128 + 3)


def test_a_bend_goes_from_one_end_to_the_other() -> None:
    assert [bent(value) for value in (0, 4096, 8192, 16383)] == [-1, -0.5, 0, 1]
    assert state(MidiMessage("bend", 3, 0, 16383)).value("bend", 0, "") == 1


# --- controllers ------------------------------------------------------------------------------------------------------


def test_a_controller_is_the_last_value_of_those_that_are_meant() -> None:
    made = state(cc(7, 127), cc(7, 0, channel=2))
    feed(made, cc(7, 64), device="nanoKONTROL2")
    assert [made.value(7, channel, "") for channel in (0, 1, 2, 3)] == [64 / 127, 64 / 127, 0, None]
    assert [made.value(7, 0, part) for part in ("key", "NANO", "other")] == [0, 64 / 127, None]
    feed(made, MidiMessage("pressure", 1, 0, 127), MidiMessage("program", 1, 5))
    assert [made.value(each, 0, "") for each in ("pressure", "program", "bend")] == [1, 5, None]
    feed(made, MidiMessage("key pressure", 1, 60, 0))
    assert made.value("pressure", 0, "") == 0


def test_the_halves_of_a_pair_are_joined() -> None:
    made = state(cc(1, 127), cc(33, 127))
    assert made.value(1, 0, "") == 1
    for position in (0, 1, 127, 128, 8000, 16382):
        feed(made, cc(1, position >> 7), cc(33, position & 127))
        assert made.value(1, 0, "") == pytest.approx(position / 16383)
    feed(made, cc(1, 5), cc(33, 9))
    feed(made, cc(33, 10))
    assert made.value(1, 0, "") == pytest.approx((5 * 128 + 10) / 16383), "only the fine half moves"


def test_two_knobs_are_no_pair() -> None:
    made = state(cc(1, 127))
    feed(made, cc(33, 3), moment=0.5)
    assert (made.value(1, 0, ""), made.value(33, 0, "")) == (1, 3 / 127)
    feed(made, cc(1, 127), cc(2, 0), cc(33, 3))
    assert made.value(1, 0, "") == 1, "another controller came between"


def test_what_moved_is_told_with_its_pair() -> None:
    made = MidiState()
    moved = [made.take(KEYS, message, 0, 0) for message in (cc(1, 64), cc(33, 127), on(60))]
    values = [(each.number, each.value) for each in moved if each]
    assert values == [(1, 64 / 127), (1, pytest.approx((64 * 128 + 127) / 16383))]


def test_a_reset_moves_what_the_practice_names() -> None:
    made = state(cc(1, 9), cc(7, 9), cc(11, 9), MidiMessage("bend", 1, 0, 0), cc(1, 9, channel=2), on(60))
    feed(made, cc(121, 0))
    assert [made.value(each, 1, "") for each in (1, 7, 11, "bend", "pressure")] == [0, 9 / 127, 1, 0, None]
    assert made.value(1, 2, "") == 9 / 127
    assert keys(made) == []


# --- notes ------------------------------------------------------------------------------------------------------------


def test_notes_are_held_until_they_end() -> None:
    made = state(on(60, 127), on(64, 32), on(67, channel=2))
    assert keys(made) == [60, 64, 67]
    assert [note.velocity for note in made.notes(1, "")] == [1, 32 / 127]
    assert [note.key for note in made.notes(2, "")] == [67]
    feed(made, off(64), off(1))
    assert keys(made) == [60, 67]


def test_a_note_that_is_shorter_than_a_frame_is_seen_for_one() -> None:
    made = state(on(60), off(60))
    assert keys(made) == [60]
    feed(made)
    assert keys(made) == []
    feed(made, on(60), off(60), on(60))
    feed(made)
    assert keys(made) == [60], "the key is down"


@pytest.mark.parametrize("number", [120, 121, 123, 124, 125, 126, 127])
def test_messages_to_a_channel_end_its_notes(number: int) -> None:
    made = state(on(60), on(64, channel=2))
    feed(made, cc(number, 0))
    assert keys(made) == [64]


def test_a_device_that_is_unplugged_ends_its_notes() -> None:
    made = state(on(60), cc(64, 127), cc(7, 127))
    feed(made, on(61), device="other")
    made.begin_frame()
    made.unplugged(KEYS)
    assert keys(made) == [61]
    assert made.value(7, 0, KEYS) == 1
    feed(made, on(60))
    feed(made, off(60))
    assert keys(made) == [61], "its pedal is up as well"


def test_a_pedal_holds_what_is_released() -> None:
    made = state(on(60), on(64), cc(64, 127))
    feed(made, off(60), off(64))
    feed(made, on(60))
    assert keys(made) == [64, 60]
    feed(made, cc(64, 0))
    assert keys(made) == [60], "which was struck again"


# --- voices -----------------------------------------------------------------------------------------------------------


def note(serial: int, key: int = 60, began: float = 0.0) -> MidiNote:
    return MidiNote(serial, KEYS, 1, key, 1.0, began)


def shown(voices: Voices, *held: MidiNote, count: int = 1) -> list[tuple[int, bool]]:
    found = voices.frame(held, count)
    return [(voice.note.key if voice.note else 0, voice.gate) for voice in found]


@pytest.mark.parametrize(("order", "expected"), [
    ("newest", [62, 59, 67]), ("oldest", [67, 59, 62]), ("lowest", [59, 62, 67]), ("highest", [67, 62, 59]),
    ("steady", [67, 59, 62]),
])  # fmt: skip
def test_an_order_gives_notes_to_voices(order: str, expected: list[int]) -> None:
    found = shown(Voices(order), note(1, 67), note(2, 59), note(3, 62), count=4)
    assert found == [*((key, True) for key in expected), (0, False)]


def test_every_order_is_known() -> None:
    for order in ORDERS:
        assert Voices(order).frame([note(1)], 1) == [Voice(note(1), True)]


def test_a_voice_keeps_its_note_after_the_end() -> None:
    voices = Voices("newest")
    assert shown(voices, note(1, 60)) == [(60, True)]
    assert shown(voices) == [(60, False)]


def test_a_note_struck_after_the_end_of_another_lowers_the_gate_for_a_frame() -> None:
    voices = Voices("newest")
    assert shown(voices, note(1, 60)) == [(60, True)]
    assert shown(voices, note(2, 60)) == [(60, False)], "the same key again"
    assert shown(voices, note(2, 60)) == [(60, True)]
    assert shown(voices, note(2, 60), note(3, 62)) == [(62, True)], "tied"
    assert shown(voices, note(2, 60)) == [(60, True)], "back to what is held"


def test_a_steady_voice_stays_with_its_note() -> None:
    voices = Voices("steady")
    assert shown(voices, note(1, 60), note(2, 64), count=3) == [(60, True), (64, True), (0, False)]
    assert shown(voices, note(2, 64), note(3, 67), count=3) == [(60, False), (64, True), (67, True)]
    assert shown(voices, note(3, 67), note(4, 72), count=3) == [(72, True), (64, False), (67, True)]
    assert shown(voices, note(3, 67), note(5, 64), count=3) == [(72, False), (64, True), (67, True)], "its own voice"


def test_the_oldest_note_gives_its_steady_voice_to_a_new_one() -> None:
    voices = Voices("steady")
    held = [note(serial, 60 + serial) for serial in range(1, 4)]
    assert shown(voices, *held[:2], count=2) == [(61, True), (62, True)]
    assert shown(voices, *held, count=2) == [(63, False), (62, True)]
    assert shown(voices, *held, count=2) == [(63, True), (62, True)]
    assert shown(voices, *held[:1], count=2) == [(63, False), (62, False)], "it does not come back"


@pytest.mark.parametrize(("order", "expected"), [
    ("newest", [4, 0]), ("oldest", [2, 1]), ("lowest", [3, 0]), ("highest", [3, 1]), ("steady", [3, 1]),
])  # fmt: skip
def test_every_note_counts_for_the_voice_that_takes_it(order: str, expected: list[int]) -> None:
    """Several in one frame, of which the first is over before the frame begins."""
    state, voices = MidiState(), Voices(order)
    for messages in ([on(60), off(60), on(60)], [on(55), on(67)], [off(55), off(67)]):
        state.begin_frame()
        for message in messages:
            state.take("a device", message, 0.0, 0.0)
        voices.frame(state.notes(0, ""), 2, state.struck(0, ""))
    assert voices.hits == expected


def test_messages_that_are_not_0_count() -> None:
    state = MidiState()
    for data in ("b0077f", "b00700", "b0077f", "b10701", "c000", "c000", "d000", "d001", "e00040", "e00140"):
        message = decode(bytes.fromhex(data))
        assert message is not None
        state.take("a device", message, 0.0, 0.0)
    assert [state.moves(7, channel, "") for channel in (0, 1, 2, 3)] == [3, 2, 1, 0]
    assert [state.moves(control, 0, "dev") for control in ("program", "pressure", "bend")] == [2, 1, 1]
    assert state.moves(7, 0, "another") == 0


def test_a_pair_counts_once() -> None:
    state = MidiState()
    for number in (1, 33, 1, 33):
        state.take("a device", MidiMessage("control", 1, number, 5), 0.0, 0.0)
    assert state.moves(1, 0, "") == 2


def test_notes_move_with_a_time_that_is_set_back() -> None:
    made = state(on(60), off(60), moment=5.0)
    made.later(-4.0)
    assert [each.began for each in made.notes(0, "")] == [1.0]
    feed(made)
    assert keys(made) == []


def test_nothing_that_can_be_sent_breaks_it() -> None:
    """All messages in an order that is not musical."""
    made = MidiState()
    voices = [Voices(order) for order in ORDERS]
    for frame in range(300):
        made.begin_frame()
        for message in _any(frame):
            made.take(KEYS, message, frame / 60, frame / 60)
        for each in voices:
            found = each.frame(made.notes(0, ""), 4)
            assert {voice.note.serial for voice in found if voice.gate and voice.note} <= {
                held.serial for held in made.held.values()
            }


def _any(seed: int) -> Iterable[MidiMessage]:
    for step in range(40):
        number = (seed * 7919 + step * 104729) % (112 * 128 * 128)
        status, rest = divmod(number, 128 * 128)
        found = decode(bytes((0x80 + status, *divmod(rest, 128)))) or decode(bytes((0x80 + status, rest % 128)))
        assert found is not None
        yield found
