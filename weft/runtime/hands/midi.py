"""MIDI of a performance: values and knobs that devices send, and the messages that `midi` statements send to
devices."""

from __future__ import annotations

import math
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby

from weft.names import COUNT, SentName
from weft.runtime.hands.clock import Clock
from weft.runtime.hands.knobs import KnobBindings
from weft.runtime.hands.midi_messages import Control, MidiMessage, MidiState, Voice, Voices
from weft.runtime.hands.midi_ports import LOOK, NOT_INSTALLED, MidiEvent, MidiInput, MidiOutput, is_installed
from weft.sources import NEVER

# The seconds without a message after which another device may lead the tempo, and the beats of a measure.
_SILENT = 2.0
_MEASURE = 4.0

_CONTROLS: dict[str, Control] = {"midi_bend": "bend", "midi_pressure": "pressure", "midi_program": "program"}


class MidiController:
    """Receives MIDI as soon as a program reads it, or a knob matters."""

    sources = frozenset({"midi_cc", "midi_note", *_CONTROLS})

    def __init__(
        self, clock: Clock, knobs: KnobBindings, tell: Callable[[str], None], received: MidiInput | None = None,
        sender: MidiSender | None = None, follows_clock: bool = False,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`tell` is given messages for the performer. The frames of the `sender` end with those of this one. If it
        `follows_clock`, the tempo is that of the first device that sends one. `now` gives the moments of events."""
        self._clock = clock
        self._knobs = knobs
        self._tell = tell
        self._input = MidiInput() if received is None else received
        self._sender = sender
        self._follows_clock = follows_clock
        self._now = now
        self._decoder = ClockDecoder()
        self._leader: tuple[str, float] | None = None
        """The device whose clock is followed, and the moment of its last message."""
        self._state = MidiState()
        self._voices: dict[tuple[str, int, str], Voices] = {}
        self._told: set[str] = set()
        self._time = 0.0
        """The time of the performance at the last frame."""

    def values(self, wanted: Iterable[SentName]) -> Mapping[SentName, float]:
        """The numbers for the next frame."""
        names = list(wanted)
        if self._sender is not None:
            self._sender.end_frame()
        if names or self._knobs.is_used or self._follows_clock:
            self._start(names)
        self._state.begin_frame()
        self._follow_restart()
        self._take_events()
        return self._found(names)

    def close(self) -> None:
        """Closes the ports. May be called twice."""
        self._input.close()

    def _start(self, names: Iterable[SentName]) -> None:
        """Starts to receive, and reports what is missing."""
        if not is_installed():
            self._tell_once(f"{NOT_INSTALLED}; until then it is 0")
            return
        self._input.start()
        while self._input.notes:
            self._tell(self._input.notes.popleft())
        devices = self._input.devices
        if devices is None:
            return
        if not devices:
            self._tell_once(f"there is no MIDI input; it is looked for every {LOOK:g} s")
        for part in {_where(name)[1] for name in names} if devices else ():
            if not any(part.casefold() in device.casefold() for device in devices):
                self._tell_once(f'no MIDI input has "{part}" in its name; there is {", ".join(devices)}')

    def _tell_once(self, words: str) -> None:
        if words not in self._told:
            self._told.add(words)
            self._tell(words)

    def _follow_restart(self) -> None:
        """Keeps the ages of notes when the time of the performance is set back."""
        now = self._clock.latest.time
        if now < self._time:
            self._state.later(now - self._time)
            for voices in self._voices.values():
                voices.later(now - self._time)
        self._time = now

    def _take_events(self) -> None:
        events = self._input.events
        if not events:
            return
        ahead = self._clock.now() - self._now()
        before = self._leader
        while events:
            self._take(events.popleft(), ahead)
        if self._leader != before:
            self._lead(ahead)

    def _take(self, event: MidiEvent, ahead: float) -> None:
        """Takes an event. The time of the performance is `ahead` of the moments of events."""
        if event.message is None:
            self._state.unplugged(event.device)
        elif not event.message.channel:
            self._take_clock(event.device, event.message, event.moment)
        else:
            moved = self._state.take(event.device, event.message, event.moment, event.moment + ahead)
            if moved is not None and self._knobs.is_used:
                learnt = self._knobs.move(moved)
                if learnt is not None and (knob := self._knobs.of(learnt)) is not None:
                    self._tell(f"{learnt.removesuffix('@v')} follows {knob.shown}")

    def _take_clock(self, device: str, message: MidiMessage, moment: float) -> None:
        if not self._follows_clock:
            return
        if self._leader is None or (self._leader[0] != device and moment - self._leader[1] > _SILENT):
            self._decoder = ClockDecoder()
            self._tell(f"the tempo follows {device}")
        elif self._leader[0] != device:
            return
        self._leader = device, moment
        self._decoder.take(message, moment)

    def _lead(self, ahead: float) -> None:
        """Makes the tempo follow the clock that was received. If its position is not known, the own beat stays."""
        reading, tempo = self._decoder.reading(), self._clock.tempo
        if reading is None:
            return
        moment = reading.moment + ahead
        if reading.is_known:
            tempo.follow(reading.bpm, reading.beat, moment, "midi", _MEASURE)
        else:
            tempo.follow(reading.bpm, tempo.beats.at(moment), moment, "midi")

    def _found(self, names: Iterable[SentName]) -> dict[SentName, float]:
        found: dict[SentName, float] = {}
        notes = []
        for name in names:
            if name.source == "midi_note":
                notes.append(name)
                continue
            channel, device = _where(name)
            control: Control = int(name.args[0]) if name.source == "midi_cc" else _CONTROLS[name.source]
            if name.output == COUNT:
                found[name] = float(self._state.moves(control, channel, device))
                continue
            value = self._state.value(control, channel, device)
            if value is not None:
                found[name] = value
        counts: dict[tuple[str, int, str], int] = {}
        for name in notes:
            key = (str(name.args[3]), *_where(name))
            counts[key] = max(counts.get(key, 0), int(name.args[0]) + 1)
        shown = {key: self._frame(key, count) for key, count in counts.items()}
        for name in notes:
            if name.output == COUNT:
                voices = self._voices[(str(name.args[3]), *_where(name))]
                found[name] = float(voices.hits[int(name.args[0])])
                continue
            found[name] = _output(shown[(str(name.args[3]), *_where(name))][int(name.args[0])], name.output)
        return found

    def _frame(self, key: tuple[str, int, str], count: int) -> list[Voice]:
        order, channel, device = key
        return self._voices.setdefault(key, Voices(order)).frame(
            self._state.notes(channel, device), count, self._state.struck(channel, device)
        )  # fmt: skip


def _where(name: SentName) -> tuple[int, str]:
    """The channel that is read, and the part of the names of devices."""
    first = 1 if name.source in {"midi_cc", "midi_note"} else 0
    return int(name.args[first]), str(name.args[first + 1])


def _output(voice: Voice, output: str) -> float:
    if output == "gate":
        return float(voice.gate)
    if voice.note is None:
        return 0.0
    match output:
        case "note":
            return float(voice.note.key)
        case "velocity":
            return voice.note.velocity
    return voice.note.began + NEVER


# --- what is sent -----------------------------------------------------------------------------------------------------

RATE = 100
"""The most messages a second with which a statement sends a controller, a bend or pressure. A MIDI cable carries about
1000. Notes and programs are sent at once."""


@dataclass(slots=True)
class _Statement:
    """What a `midi` statement has sent: the last message, or its note; and when the next one may be sent."""

    message: MidiMessage | None = None
    note: MidiMessage | None = None
    due: float = 0.0


class MidiSender:
    """Sends the values of `midi` statements when they have changed. It never waits."""

    def __init__(self, tell: Callable[[str], None], output: MidiOutput | None = None) -> None:
        """`tell` is given messages for the performer."""
        self._tell = tell
        self._output = MidiOutput() if output is None else output
        self._statements: dict[str, _Statement] = {}
        self._seen: set[str] = set()
        """The statements that were computed since the last frame ended."""
        self._is_told = False

    def send(self, values: Mapping[str, float], now: float) -> None:
        """Sends the values of statements by their labels, at a moment in seconds."""
        if not is_installed():
            if not self._is_told:
                self._tell(f"{NOT_INSTALLED}; nothing is sent")
            self._is_told = True
            return
        while self._output.notes:
            self._tell(self._output.notes.popleft())
        parts = ((label.rpartition("."), value) for label, value in values.items())
        for key, pairs in groupby(parts, key=lambda pair: pair[0][0]):
            self._seen.add(key)
            sent = self._statements.setdefault(key, _Statement())
            messages = list(_messages({label[2]: value for label, value in pairs}, sent, now))
            if messages:
                self._output.send(_target(key), messages)

    def end_frame(self) -> None:
        """Ends the notes of statements that are not computed any more."""
        for key in self._statements.keys() - self._seen:
            note = self._statements.pop(key).note
            if note is not None:
                self._output.send(_target(key), [_ended(note)])
        self._seen.clear()

    def close(self) -> None:
        """Ends all notes, and closes the ports. May be called twice."""
        self._output.close()


def _target(key: str) -> str:
    """The part of a device's name that a statement gives: its label is midi, midi.2, midi:name, midi:name.2."""
    return re.sub(r"\.\d+$", "", key.partition(":")[2])


def _messages(values: Mapping[str, float], sent: _Statement, now: float) -> Iterator[MidiMessage]:
    """The messages of a statement with these values, which are noted as `sent`. NaN sends nothing."""
    if not all(map(math.isfinite, values.values())):
        return
    channel = _whole(values.get("channel", 1.0), 1, 16)
    if "note" in values:
        yield from _note_messages(values, channel, sent)
        return
    message = _message(values, channel)
    if message == sent.message or (message.kind != "program" and now < sent.due):
        return
    sent.message, sent.due = message, now + 1 / RATE
    yield message


def _note_messages(values: Mapping[str, float], channel: int, sent: _Statement) -> Iterator[MidiMessage]:
    """A note lasts for as long as `gate` is above 0. If its number changes meanwhile, the new one begins before the old
    one ends, which ties them. Without a velocity, the gate is the velocity."""
    gate, note = values["gate"], None
    if gate > 0:
        velocity = _whole(values.get("velocity", gate) * 127, 1, 127)
        note = MidiMessage("note on", channel, _whole(values["note"], 0, 127), velocity)
    before = sent.note
    if note is not None and before is not None and (note.channel, note.number) == (before.channel, before.number):
        return
    sent.note = note
    if note is not None:
        yield note
    if before is not None:
        yield _ended(before)


def _message(values: Mapping[str, float], channel: int) -> MidiMessage:
    if "cc" in values:
        return MidiMessage("control", channel, _whole(values["cc"], 0, 127), _whole(values["value"] * 127, 0, 127))
    if "bend" in values:
        bend = values["bend"]
        return MidiMessage("bend", channel, 0, _whole(8192 + bend * (8191 if bend > 0 else 8192), 0, 16383))
    if "pressure" in values:
        return MidiMessage("pressure", channel, 0, _whole(values["pressure"] * 127, 0, 127))
    return MidiMessage("program", channel, _whole(values["program"], 0, 127))


def _whole(value: float, least: int, most: int) -> int:
    """The nearest whole number within a range."""
    return min(max(math.floor(value + 0.5), least), most)


def _ended(note: MidiMessage) -> MidiMessage:
    return MidiMessage("note off", note.channel, note.number)


# --- the clock: from 24 ticks a beat to a tempo and a beat ---
#
# Ticks come with jitter: a cable takes a third of a millisecond for a byte, USB hands on what has come once a
# millisecond, and a program on a busy machine is late by many. The tempo is the slope of the line that fits the last
# ticks best: ordinary least squares of their numbers over their moments, with the standard error of the slope, as in
# any textbook of statistics. A tempo stays as it is while it differs from that slope by no more than chance explains.

TICKS = 24
"""Ticks a beat."""

# Ticks a sixteenth, in which positions are sent.
_SIXTEENTH = TICKS // 4
# The most ticks of a line, and the fewest that make one: four beats, and half a beat.
_MOST = 4 * TICKS
_FEWEST = TICKS // 2
# Seconds between two ticks after which a clock begins again: 10 beats a minute.
_GAP = 0.25
# The tempo counts as changed if that of the last beat differs from that of all ticks by more than this many standard
# errors and this share, for this many ticks, since late ticks catch up. And a tempo is corrected if it is off by more
# than this many errors and this share.
_CHANGED_ERRORS, _CHANGED, _LASTING = 5.0, 0.02, TICKS // 2
_OFF_ERRORS, _OFF = 3.0, 2e-4


@dataclass(frozen=True, slots=True)
class ClockReading:
    """The tempo, and the beat at a moment in seconds. If the position `is_known`, beat 0 is the beginning of the
    piece."""

    bpm: float
    beat: float
    moment: float
    is_known: bool


class ClockDecoder:
    """Follows the clock of one device."""

    def __init__(self) -> None:
        self._moments: deque[float] = deque(maxlen=_MOST)
        self._ticks = 0
        """The number of the next tick since the beginning of the piece."""
        self._is_known = False
        self._way = self._lasting = 0
        """Whether the last ticks are faster (1) or slower (-1) than all of them, and for how many ticks."""
        self._rate = 0.0
        """The tempo that was given last, in ticks a second."""

    def take(self, message: MidiMessage, moment: float) -> None:
        """Takes a message of a clock, which came at a moment in seconds."""
        match message.kind:
            case "clock":
                if self._moments and not 0 <= moment - self._moments[-1] <= _GAP:
                    self._moments.clear()
                self._moments.append(moment)
                self._ticks += 1
                self._lasting += 1
            case "start":
                # Beat 0 is at the next tick.
                self._ticks, self._is_known = 0, True
            case "position":
                self._ticks, self._is_known = message.value * _SIXTEENTH, True

    def reading(self) -> ClockReading | None:
        """The tempo and the beat at the last tick; None before there were enough."""
        line = self._fitted()
        if line is None:
            return None
        if abs(line.slope - self._rate) > max(_OFF_ERRORS * line.error, _OFF * line.slope):
            self._rate = line.slope
        beat = (self._ticks - 1 + line.last) / TICKS
        return ClockReading(60 * self._rate / TICKS, beat, self._moments[-1], self._is_known)

    def _fitted(self) -> _FittedLine | None:
        """The line through the last ticks. If their tempo has changed, it is that of the last beat."""
        moments = list(self._moments)
        if len(moments) < _FEWEST:
            return None
        line = _FittedLine.through(moments)
        if line is None or len(moments) < 2 * TICKS:
            return line
        recent = _FittedLine.through(moments[-TICKS:])
        if recent is None:
            return line
        apart = recent.slope - line.slope
        way = 0 if abs(apart) <= max(_CHANGED_ERRORS * recent.error, _CHANGED * line.slope) else 1 if apart > 0 else -1
        if way != self._way:
            self._way, self._lasting = way, 0
        if way and self._lasting >= _LASTING:
            self._moments, self._way = deque(moments[-TICKS:], maxlen=_MOST), 0
            return recent
        return line


@dataclass(frozen=True, slots=True)
class _FittedLine:
    """A line through the numbers of ticks over their moments: ticks a second, the standard error of that, and the value
    at the last moment, in ticks after the last one."""

    slope: float
    error: float
    last: float

    @classmethod
    def through(cls, moments: list[float]) -> _FittedLine | None:
        """The line that fits best; None if all ticks came at once."""
        count, end = len(moments), moments[-1]
        times = [moment - end for moment in moments]
        mean_time, mean_tick = sum(times) / count, (1 - count) / 2
        spread = sum((time - mean_time) ** 2 for time in times)
        if spread == 0:
            return None
        pairs = list(zip(times, range(1 - count, 1), strict=True))
        slope = sum((time - mean_time) * (tick - mean_tick) for time, tick in pairs) / spread
        last = mean_tick - slope * mean_time
        rest = sum((tick - last - slope * time) ** 2 for time, tick in pairs)
        return cls(slope, math.sqrt(rest / (count - 2) / spread), last)
