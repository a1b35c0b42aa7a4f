"""MIDI messages, and the values that a patch reads from them: controllers, and the notes that are held.

Everything here is a function of bytes and their times; `weft.runtime.hands.midi_ports` has the ports that they come
from. The messages are those of the MIDI 1.0 detailed specification (version 4.2). What a reset of all controllers
changes is specified in its recommended practice RP-015.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal[
    "note off", "note on", "key pressure", "control", "program", "pressure", "bend",
    "position", "clock", "start", "continue", "stop",
]  # fmt: skip

_CHANNEL_KINDS: tuple[Kind, ...] = (
    "note off", "note on", "key pressure", "control", "program", "pressure", "bend",
)  # fmt: skip
_SYSTEM_KINDS: dict[int, Kind] = {0xF2: "position", 0xF8: "clock", 0xFA: "start", 0xFB: "continue", 0xFC: "stop"}
_SHORT: frozenset[Kind] = frozenset({"program", "pressure"})

CLOCK_KINDS: frozenset[Kind] = frozenset({"position", "clock", "start", "continue", "stop"})
"""The messages about the position of a sequencer."""

_SUSTAIN, _SOUND_OFF, _RESET, _NOTES_OFF = 64, 120, 121, 123
_EXPRESSION = 11
# The controllers that a reset sets to 0: modulation and the pedals.
_RESET_TO_0 = (1, 64, 65, 66, 67)
# A controller below this is the coarse half of a pair, whose fine half has a number that is this much higher.
_FINE = 32
# Seconds within which the fine half follows. Two knobs turned by hand are further apart.
_TOGETHER = 0.01


@dataclass(frozen=True, slots=True)
class MidiMessage:
    """A message: `number` is a note, a controller or a program, `value` how much, as it was sent. `channel` is 1 to 16,
    and 0 for a message to the whole system."""

    kind: Kind
    channel: int = 0
    number: int = 0
    value: int = 0


def decode(data: bytes) -> MidiMessage | None:
    """The message in some bytes; None for a message that has no meaning here, and for bytes that are no message."""
    if not data or any(byte > 0x7F for byte in data[1:]):
        return None
    status = data[0]
    if status >= 0xF0:
        kind = _SYSTEM_KINDS.get(status)
        if kind is None or len(data) != (3 if kind == "position" else 1):
            return None
        return MidiMessage(kind, value=data[1] | data[2] << 7 if kind == "position" else 0)
    if status < 0x80:
        return None
    kind, channel = _CHANNEL_KINDS[(status >> 4) - 8], (status & 15) + 1
    if len(data) != (2 if kind in _SHORT else 3):
        return None
    match kind:
        case "program":
            return MidiMessage(kind, channel, data[1])
        case "pressure":
            return MidiMessage(kind, channel, 0, data[1])
        case "bend":
            return MidiMessage(kind, channel, 0, data[1] | data[2] << 7)
        case "note on" if not data[2]:
            return MidiMessage("note off", channel, data[1])
    return MidiMessage(kind, channel, data[1], data[2])


def encode(message: MidiMessage) -> bytes:
    """The bytes of a message to a channel."""
    status = (_CHANNEL_KINDS.index(message.kind) + 8) << 4 | (message.channel - 1)
    match message.kind:
        case "program":
            return bytes((status, message.number))
        case "pressure":
            return bytes((status, message.value))
        case "bend":
            return bytes((status, message.value & 0x7F, message.value >> 7))
    return bytes((status, message.number, message.value))


def bent(value: int) -> float:
    """A bend of 14 bits as a number from -1 to 1; 8192 is 0."""
    return (value - 8192) / (8192 if value < 8192 else 8191)


# --- controllers and notes --------------------------------------------------------------------------------------------

# A controller by its number, and the other values of a channel.
Control: TypeAlias = "int | Literal['bend', 'pressure', 'program']"

_Place: TypeAlias = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Moved:
    """A controller that was moved: its place, and its new value, 0…1."""

    device: str
    channel: int
    number: int
    value: float


@dataclass(frozen=True, slots=True)
class MidiNote:
    """A note that was struck. `serial` counts all notes; `began` is the time of the performance."""

    serial: int
    device: str
    channel: int
    key: int
    velocity: float
    began: float

    @property
    def place(self) -> tuple[str, int, int]:
        return self.device, self.channel, self.key

    def is_of(self, channel: int, device: str) -> bool:
        """Whether it was struck on a channel (0: any) of a device with this in its name."""
        return channel in (0, self.channel) and is_meant(self.device, device)


def _moved(message: MidiMessage) -> Control | None:
    """The controller that a message moves to a value other than 0, or the choice of a program."""
    match message.kind:
        case "control" if message.value:
            return message.number
        case "pressure" | "key pressure" if message.value:
            return "pressure"
        case "bend" if bent(message.value):
            return "bend"
        case "program":
            return "program"
    return None


def is_meant(device: str, part: str) -> bool:
    """Whether the name of a device contains a part, in any spelling of letters. The empty part is in all names."""
    return part.casefold() in device.casefold()


class MidiState:
    """All that devices have sent so far. In a frame, call `begin_frame`, then `take` for each message."""

    def __init__(self) -> None:
        self.held: dict[tuple[str, int, int], MidiNote] = {}
        """The notes that are held, the newest last."""
        self._count = 0
        self._shown = 0
        """The number of notes and changes so far, and before this frame."""
        self._values: dict[tuple[str, int, Control], tuple[int, float]] = {}
        """The value of each controller, and the count at which it was set."""
        self._moves: Counter[tuple[str, int, Control]] = Counter()
        """The number of messages that set each controller to a value other than 0, or chose a program."""
        self._coarse: dict[tuple[str, int, int], int] = {}
        """The coarse halves of the controllers that were sent as pairs."""
        self._last: dict[_Place, tuple[int, int, float]] = {}
        """The number and value of the last controller, and when it came."""
        self._pedals: set[_Place] = set()
        self._sustained: set[tuple[str, int, int]] = set()
        """The notes that a pedal holds."""
        self._ending: list[MidiNote] = []
        """The notes that ended in the frame in which they began."""
        self._struck: list[tuple[MidiNote, tuple[MidiNote, ...]]] = []
        """The notes that were struck in this frame, each with those that were held then, the newest last."""

    def begin_frame(self) -> None:
        """Ends the notes that were seen for a frame."""
        for note in self._ending:
            if self.held.get(note.place) is note:
                del self.held[note.place]
        self._ending.clear()
        self._struck.clear()
        self._shown = self._count

    def take(self, device: str, message: MidiMessage, moment: float, began: float) -> Moved | None:
        """Takes a message, which came at a `moment` in seconds, and at the time `began` of the performance. Returns the
        controller that it moved."""
        here = device, message.channel
        if (control := _moved(message)) is not None:
            self._moves[(*here, control)] += 1
        match message.kind:
            case "note on":
                self._count += 1
                place = (*here, message.number)
                self._sustained.discard(place)
                # Struck again, it becomes the newest.
                self.held.pop(place, None)
                self.held[place] = note = MidiNote(self._count, *place, message.value / 127, began)
                self._struck.append((note, tuple(self.held.values())))
            case "note off":
                place = (*here, message.number)
                if here in self._pedals:
                    self._sustained.add(place)
                else:
                    self._release([place])
            case "pressure" | "key pressure":
                self._set(here, "pressure", message.value / 127)
            case "program":
                self._set(here, "program", float(message.number))
            case "bend":
                self._set(here, "bend", bent(message.value))
            case "control":
                return self._control(here, message.number, message.value, moment)
        return None

    def unplugged(self, device: str) -> None:
        """Ends the notes of a device. Its controllers stay where they are."""
        self._end_all(lambda place: place[0] == device)
        self._pedals = {place for place in self._pedals if place[0] != device}

    def value(self, control: Control, channel: int, device: str) -> float | None:
        """The latest value of a controller, on a channel (0: any) of the devices with this in their names; None if
        nothing has come."""
        found = [
            value
            for (name, its_channel, its_control), value in self._values.items()
            if its_control == control and channel in (0, its_channel) and is_meant(name, device)
        ]
        return max(found)[1] if found else None

    def moves(self, control: Control, channel: int, device: str) -> int:
        """The number of messages for a controller that did not set it to 0, from the devices that `value` means."""
        return sum(
            count
            for (name, its_channel, its_control), count in self._moves.items()
            if its_control == control and channel in (0, its_channel) and is_meant(name, device)
        )

    def notes(self, channel: int, device: str) -> list[MidiNote]:
        """The held notes on a channel (0: any) of the devices with this in their names, the newest last."""
        return [note for note in self.held.values() if note.is_of(channel, device)]

    def struck(self, channel: int, device: str) -> list[list[MidiNote]]:
        """For each of these notes that was struck in this frame, those that were held then. It is the last of them."""
        meant = (held for note, held in self._struck if note.is_of(channel, device))
        return [[note for note in held if note.is_of(channel, device)] for held in meant]

    def later(self, seconds: float) -> None:
        """Moves the beginnings of notes, because the time of the performance was set back."""
        self.held = {place: replace(note, began=note.began + seconds) for place, note in self.held.items()}
        self._ending = [self.held[note.place] for note in self._ending if note.place in self.held]

    def _control(self, here: _Place, number: int, value: int, moment: float) -> Moved | None:
        if number >= _SOUND_OFF:
            self._mode(here, number)
            return None
        self._set(here, number, value / 127)
        if number == _SUSTAIN:
            self._pedal(here, value >= 64)
        last, self._last[here] = self._last.get(here), (number, value, moment)
        coarse = number - _FINE
        if 0 <= coarse < _FINE:
            follows = last is not None and last[0] == coarse and moment - last[2] <= _TOGETHER
            if last is not None and follows:
                self._coarse[(*here, coarse)] = last[1]
            if (*here, coarse) in self._coarse:
                fine = (self._coarse[(*here, coarse)] << 7 | value) / 16383
                self._set(here, coarse, fine)
                return Moved(*here, coarse, fine)
        elif (*here, number) in self._coarse:
            # A new coarse half sets the fine one to 0.
            self._coarse[(*here, number)] = value
            self._set(here, number, (value << 7) / 16383)
        return Moved(*here, number, self._values[(*here, number)][1])

    def _mode(self, here: _Place, number: int) -> None:
        """A message to a whole channel. All of them end its notes, except the one about where notes come from."""
        if number == _RESET:
            for control in ("bend", "pressure", *_RESET_TO_0):
                if (*here, control) in self._values:
                    self._set(here, control, 0.0)
            if (*here, _EXPRESSION) in self._values:
                self._set(here, _EXPRESSION, 1.0)
        if number in {_SOUND_OFF, _RESET} or number >= _NOTES_OFF:
            self._pedals.discard(here)
            self._end_all(lambda place: place[:2] == here)

    def _set(self, here: _Place, control: Control, value: float) -> None:
        self._count += 1
        self._values[(*here, control)] = self._count, value

    def _pedal(self, here: _Place, is_down: bool) -> None:
        if is_down:
            self._pedals.add(here)
            return
        self._pedals.discard(here)
        self._release([place for place in self._sustained if place[:2] == here])

    def _end_all(self, is_meant: Callable[[tuple[str, int, int]], bool]) -> None:
        self._release([place for place in self.held if is_meant(place)])

    def _release(self, places: Iterable[tuple[str, int, int]]) -> None:
        for place in places:
            self._sustained.discard(place)
            note = self.held.get(place)
            if note is None:
                continue
            if note.serial > self._shown:
                self._ending.append(note)
            else:
                del self.held[place]


@dataclass(frozen=True, slots=True)
class Voice:
    """What a voice shows in a frame: its note, or the one before; None if there was none."""

    note: MidiNote | None = None
    gate: bool = False


@dataclass(slots=True)
class Voices:
    """Gives held notes to voices, by one of the orders of `weft.sources.ORDERS`."""

    order: str
    shown: list[Voice] = field(default_factory=list)
    """What each voice showed in the last frame."""
    _slots: list[MidiNote | None] = field(default_factory=list)
    """The held note of each steady voice."""
    _given: list[MidiNote | None] = field(default_factory=list)
    """The last note of each steady voice."""
    _last: int = 0
    """The newest note that was given to a steady voice."""
    hits: list[int] = field(default_factory=list)
    """The number of notes that each voice has taken at the moment when they were struck."""

    def frame(self, held: Sequence[MidiNote], count: int, struck: Iterable[Sequence[MidiNote]] = ()) -> list[Voice]:
        """The notes of the first voices in the next frame, in which these notes are held, the newest last. `struck`
        has, for each note that was struck since the last frame, the notes that were held then.

        A voice keeps its note when the note ends. When a voice gets a note that was struck after the end of its last
        one, and both happened between two frames, its gate is 0 for this frame: otherwise no frame would show it.
        """
        self.shown += [Voice()] * (count - len(self.shown))
        self.hits += [0] * (count - len(self.hits))
        for then in struck:
            for k, note in enumerate(self._chosen(then)[:count]):
                self.hits[k] += note is then[-1]
        serials = {note.serial for note in held}
        chosen = self._chosen(held)
        for k, voice in enumerate(self.shown):
            note = chosen[k] if k < len(chosen) else None
            if note is None:
                self.shown[k] = Voice(voice.note, False)
                continue
            before = voice.note
            changed = before is not None and before.serial != note.serial
            is_struck = before is not None and changed and note.serial > before.serial and (
                self.order == "steady" or before.serial not in serials
            )
            self.shown[k] = Voice(note, not (voice.gate and is_struck))
        return self.shown[:count]

    def later(self, seconds: float) -> None:
        """Moves the beginnings of notes, because the time of the performance was set back."""
        self.shown = [
            Voice(replace(voice.note, began=voice.note.began + seconds), voice.gate) if voice.note else voice
            for voice in self.shown
        ]

    def _chosen(self, held: Sequence[MidiNote]) -> Sequence[MidiNote | None]:
        """The notes of the voices while these notes are held."""
        return self._steady(held) if self.order == "steady" else _ordered(held, self.order)

    def _steady(self, held: Sequence[MidiNote]) -> list[MidiNote | None]:
        """The notes of steady voices. A new note takes the voice that last had its key if that is free, else the one
        that has been free for longest, else that of the oldest note."""
        self._slots += [None] * (len(self.shown) - len(self._slots))
        self._given += [None] * (len(self.shown) - len(self._given))
        by_serial = {note.serial: note for note in held}
        self._slots = [by_serial.get(note.serial) if note else None for note in self._slots]
        for note in sorted(held, key=lambda note: note.serial):
            if note.serial <= self._last or not self._slots:
                continue
            self._last = note.serial
            chosen = min(range(len(self._slots)), key=lambda k: self._rank(k, note))
            self._slots[chosen] = self._given[chosen] = note
        return self._slots

    def _rank(self, k: int, note: MidiNote) -> tuple[bool, bool, int]:
        current, before = self._slots[k], self._given[k]
        own_key = before is not None and before.place == note.place
        age = current or before
        return current is not None, not own_key, age.serial if age is not None else -1


def _ordered(held: Collection[MidiNote], order: str) -> list[MidiNote]:
    keys: dict[str, Callable[[MidiNote], tuple[int, int]]] = {
        "newest": lambda note: (-note.serial, 0),
        "oldest": lambda note: (note.serial, 0),
        "lowest": lambda note: (note.key, -note.serial),
        "highest": lambda note: (-note.key, -note.serial),
    }
    return sorted(held, key=keys[order])
