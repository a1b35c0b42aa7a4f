"""What MIDI devices send to a performance: values for the patch, and knobs that move its parameters."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping

from weft.media.midi import Control, MidiState, Voice, Voices
from weft.media.midi_ports import LOOK, NOT_INSTALLED, MidiEvent, MidiInput, is_installed
from weft.names import SentName
from weft.runtime.clock import Clock
from weft.runtime.knobs import KnobBindings
from weft.sources import NEVER

_CONTROLS: dict[str, Control] = {"midi_bend": "bend", "midi_pressure": "pressure", "midi_program": "program"}


class MidiController:
    """Receives MIDI once a program reads it, or a knob matters."""

    sources = frozenset({"midi_cc", "midi_note", *_CONTROLS})

    def __init__(
        self, clock: Clock, knobs: KnobBindings, tell: Callable[[str], None], received: MidiInput | None = None
    ) -> None:
        """`tell` is given what the performer should know."""
        self._clock = clock
        self._knobs = knobs
        self._tell = tell
        self._input = MidiInput() if received is None else received
        self._state = MidiState()
        self._voices: dict[tuple[str, int, str], Voices] = {}
        self._told: set[str] = set()
        self._time = 0.0
        """The time of the performance at the last frame."""

    def values(self, wanted: Iterable[SentName]) -> Mapping[SentName, float]:
        """The numbers for the next frame."""
        names = list(wanted)
        if names or self._knobs.is_used:
            self._start(names)
        self._state.begin_frame()
        self._follow_restart()
        self._take_events()
        return self._found(names)

    def close(self) -> None:
        """Closes the ports. May be called twice."""
        self._input.close()

    def _start(self, names: Iterable[SentName]) -> None:
        """Starts to receive, and tells what is missing."""
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
        """Lets notes be as old as before when the time of the performance is set back."""
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
        now, moment = self._clock.now(), time.monotonic()
        while events:
            self._take(events.popleft(), now - moment)

    def _take(self, event: MidiEvent, ahead: float) -> None:
        """Takes an event; the time of the performance is `ahead` of the moments of events."""
        if event.message is None:
            self._state.unplugged(event.device)
        elif event.message.channel:
            moved = self._state.take(event.device, event.message, event.moment, event.moment + ahead)
            if moved is not None and self._knobs.is_used:
                learnt = self._knobs.move(moved)
                if learnt is not None and (knob := self._knobs.of(learnt)) is not None:
                    self._tell(f"{learnt.removesuffix('@v')} follows {knob.shown}")

    def _found(self, names: Iterable[SentName]) -> dict[SentName, float]:
        found: dict[SentName, float] = {}
        notes = []
        for name in names:
            if name.source == "midi_note":
                notes.append(name)
                continue
            channel, device = _where(name)
            control: Control = int(name.args[0]) if name.source == "midi_cc" else _CONTROLS[name.source]
            value = self._state.value(control, channel, device)
            if value is not None:
                found[name] = value
        counts: dict[tuple[str, int, str], int] = {}
        for name in notes:
            key = (str(name.args[3]), *_where(name))
            counts[key] = max(counts.get(key, 0), int(name.args[0]) + 1)
        shown = {key: self._frame(key, count) for key, count in counts.items()}
        for name in notes:
            found[name] = _output(shown[(str(name.args[3]), *_where(name))][int(name.args[0])], name.output)
        return found

    def _frame(self, key: tuple[str, int, str], count: int) -> list[Voice]:
        order, channel, device = key
        return self._voices.setdefault(key, Voices(order)).frame(self._state.notes(channel, device), count)


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
