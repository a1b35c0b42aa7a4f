"""MIDI ports, which a process of its own opens: looking for devices may block, and a library may end its process when
it meets a device that was just unplugged.

The library is python-rtmidi where it is installed, else rtmidi2. Both wrap RtMidi. There are no wheels of the first for
the newest Pythons, and the second ends the process where the first raises an exception.
"""

from __future__ import annotations

import importlib.util
import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache, partial
from multiprocessing.connection import Connection
from typing import Any, NamedTuple, Protocol

from weft.child import BEAT, Child, Pulse, run
from weft.codes.rows import InternalError
from weft.errors import installs
from weft.runtime.hands.midi_messages import MidiMessage, decode, encode, is_meant

LOOK = 2.0
"""Seconds between two looks for devices."""

NOT_INSTALLED = f"MIDI needs a library: {installs('hands')}"

# The most seconds for a look or for opening a port; for the end of an output; and for the wait of `weft devices`.
_PATIENCE = 20.0
_TO_END = 1.0
_TO_FLUSH = 0.1
_TO_LIST = 10.0
# How often the end of a note that still sounds is sent when an output ends.
_ENDS = 3
# The most messages that wait for a frame: those of 20 seconds from 5 devices that send at the rate of a MIDI cable.
_MOST = 100_000
_ENTRY = "weft.runtime.hands.midi_ports:main"
# The names of the clients that are opened here. They are not devices.
_CLIENTS = ("weft-in", "weft-out")
# The end of ALSA's names, which changes each time a device is plugged in.
_CLIENT_NUMBERS = re.compile(r" \d+:\d+$")


@cache
def is_installed() -> bool:
    """Whether there is a library for MIDI. Asked once a frame."""
    return any(importlib.util.find_spec(name) is not None for name in ("rtmidi", "rtmidi2"))


class MidiEvent(NamedTuple):
    """What came from a device at a moment (`time.monotonic`): a message, or None if it was unplugged."""

    moment: float
    device: str
    message: MidiMessage | None


@dataclass(frozen=True)
class MidiDevices:
    """The names of all MIDI ports, or the problem that kept them from being listed."""

    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    problem: str | None = None


def list_devices() -> MidiDevices:
    """All MIDI ports, listed by a process of its own. Never raises."""
    if not is_installed():
        return MidiDevices(problem=NOT_INSTALLED)
    try:
        done = run("weft.runtime.hands.midi_ports:listing", timeout=_TO_LIST)
        found = json.loads(done.stdout)
        return MidiDevices(tuple(found["inputs"]), tuple(found["outputs"]), found["problem"])
    except subprocess.TimeoutExpired:
        return MidiDevices(problem="looking for MIDI ports takes too long")
    except (OSError, ValueError, KeyError):
        return MidiDevices(problem="looking for MIDI ports failed")


class _PortProcess:
    """A process with ports, and the thread that owns it and starts it again when it ends."""

    def __init__(self, *arguments: str) -> None:
        self.notes: deque[str] = deque(maxlen=100)
        """Messages for the performer, until they are taken."""
        self._arguments = arguments
        self._child: Child | None = None
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Starts in the background. May be called again."""
        if self._thread is None and not self._closing.is_set():
            self._thread = threading.Thread(target=self._work, name=f"weft-midi-{self._arguments[0]}", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Ends the process. May be called twice."""
        self._closing.set()
        self._end()
        if self._thread is not None:
            self._thread.join(_TO_END)

    def _work(self) -> None:
        while not self._closing.is_set():
            try:
                self._child = child = Child(_ENTRY, *self._arguments)
            except OSError as failure:
                self.notes.append(f"MIDI cannot be opened: {failure.strerror}")
                return
            # A library that damages its memory may also send bytes that cannot be read.
            with suppress(Exception):
                self._serve(child)
            self._ended()
            child.end()
            if not self._closing.is_set():
                self.notes.append(f"the process for MIDI {child.ending}, and is started again")
                self._closing.wait(LOOK)

    def _serve(self, child: Child) -> None:
        """Talks to the process until it ends, and raises an exception then."""

    def _ended(self) -> None:
        """The process has ended."""

    def _end(self) -> None:
        child = self._child
        if child is not None:
            child.kill()


class MidiInput(_PortProcess):
    """All MIDI inputs, opened as they come."""

    def __init__(self, look: float = LOOK) -> None:
        """Looks for devices every `look` seconds."""
        super().__init__("in", str(look))
        self.events: deque[MidiEvent] = deque(maxlen=_MOST)
        """The events that have come, oldest first. The user takes them from here."""
        self.devices: tuple[str, ...] | None = None
        """The names of the inputs that are open; None before the first look."""

    def _serve(self, child: Child) -> None:
        while True:
            match child.connection.recv():
                case "messages", received:
                    for moment, device, data in received:
                        message = decode(data)
                        if message is not None:
                            self.events.append(MidiEvent(moment, device, message))
                case "devices", names:
                    for gone in set(self.devices or ()) - set(names):
                        self.events.append(MidiEvent(time.monotonic(), gone, None))
                        self.notes.append(f"MIDI: {gone} is gone; {_listed(names)}")
                    if self.devices is not None:
                        self.notes.extend(f"MIDI: {new} is there" for new in names if new not in self.devices)
                    self.devices = names
                case "problem", words:
                    self.notes.append(words)

    def _ended(self) -> None:
        for device in self.devices or ():
            self.events.append(MidiEvent(time.monotonic(), device, None))


class MidiOutput(_PortProcess):
    """MIDI outputs, which are opened when something is sent to them."""

    def __init__(self) -> None:
        super().__init__("out")
        self.waiting: queue.SimpleQueue[tuple[str, Sequence[bytes]] | None] = queue.SimpleQueue()
        """The messages to be sent, with a part of the output's name; None at the end."""

    def send(self, part: str, messages: Iterable[MidiMessage]) -> None:
        """Sends messages to the first output with this in its name, in the background."""
        self.start()
        if self.waiting.qsize() < _MOST:
            self.waiting.put((part, [encode(message) for message in messages]))

    def _serve(self, child: Child) -> None:
        while True:
            wanted = None
            with suppress(queue.Empty):
                wanted = self.waiting.get(timeout=BEAT)
                child.connection.send(wanted)
                if wanted is None:
                    # It ends the notes, and then itself.
                    with suppress(subprocess.TimeoutExpired):
                        child.wait(_TO_END)
                    return
            while child.connection.poll():
                self.notes.append(child.connection.recv())

    def _end(self) -> None:
        self.waiting.put(None)
        if self._thread is not None:
            self._thread.join(2 * _TO_END)
        super()._end()


def _listed(names: Sequence[str]) -> str:
    return f"there is {', '.join(names)}" if names else "there is no other"


# --- in the process with the ports ------------------------------------------------------------------------------------


class Library(Protocol):
    """The library, bound to the first of the system's interfaces that answers."""

    def inputs(self) -> list[str]: ...

    def outputs(self) -> list[str]: ...

    def listen(self, index: int, heard: Callable[[Sequence[int]], None]) -> Any:
        """Opens an input, until `close_port` of what it returns."""

    def speak(self, index: int) -> Any:
        """Opens an output, which has `send_message` and `close_port`."""


class NoMidiError(InternalError):
    """The system has no interface for MIDI that answers."""


class _PythonRtMidi:
    def __init__(self) -> None:
        import rtmidi

        self._rtmidi = rtmidi
        for api in rtmidi.get_compiled_api():
            with suppress(rtmidi.RtMidiError, RuntimeError):
                self._api = api
                self._in, self._out = rtmidi.MidiIn(api, _CLIENTS[0]), rtmidi.MidiOut(api, _CLIENTS[1])
                return
        raise NoMidiError

    def inputs(self) -> list[str]:
        return list(self._in.get_ports())

    def outputs(self) -> list[str]:
        return list(self._out.get_ports())

    def listen(self, index: int, heard: Callable[[Sequence[int]], None]) -> Any:
        port = self._rtmidi.MidiIn(self._api, _CLIENTS[0])
        port.ignore_types(sysex=True, timing=False, active_sense=True)
        port.set_callback(lambda received, _: heard(received[0]))
        port.open_port(index, "input")
        return port

    def speak(self, index: int) -> Any:
        port = self._rtmidi.MidiOut(self._api, _CLIENTS[1])
        port.open_port(index, "output")
        return port


class _RtMidi2:
    def __init__(self) -> None:
        import rtmidi2

        self._rtmidi2 = rtmidi2
        for api in (rtmidi2.API_LINUX_ALSA, rtmidi2.API_MACOSX_CORE, rtmidi2.API_UNIX_JACK):
            with suppress(RuntimeError):
                self._api = api
                self._in = rtmidi2.MidiIn(_CLIENTS[0], api=api)
                self._out = rtmidi2.MidiOut(_CLIENTS[1], api=api)
                return
        raise NoMidiError

    def inputs(self) -> list[str]:
        return [name or "?" for name in self._in.ports]

    def outputs(self) -> list[str]:
        return [name or "?" for name in self._out.ports]

    def listen(self, index: int, heard: Callable[[Sequence[int]], None]) -> Any:
        port = self._rtmidi2.MidiIn(_CLIENTS[0], api=self._api)
        port.ignore_types(True, False, True)
        port.callback = lambda message, _: heard(message)
        port.open_port(index)
        return port

    def speak(self, index: int) -> Any:
        port = self._rtmidi2.MidiOut(_CLIENTS[1], api=self._api)
        port.open_port(index)
        return port


_NO_MIDI = "this system has no MIDI: neither its sequencer nor JACK answers"


def open_library() -> Library:
    """Raises NoMidiError."""
    return _PythonRtMidi() if importlib.util.find_spec("rtmidi") is not None else _RtMidi2()


def _suppress_output() -> None:
    """Libraries of the system write to stderr whenever an interface does not answer."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 2)
    os.close(nothing)


def _named(ports: Iterable[str]) -> dict[str, int]:
    """The numbers of ports by name, without the ports of weft itself. Several ports of one name get different names."""
    found: dict[str, int] = {}
    for index, port in enumerate(ports):
        name = _CLIENT_NUMBERS.sub("", port)
        if name.startswith(_CLIENTS):
            continue
        own, count = name, 1
        while own in found:
            count += 1
            own = f"{name} ({count})"
        found[own] = index
    return found


def listing() -> None:
    """Prints all ports as JSON."""
    _suppress_output()
    try:
        library = open_library()
        found = MidiDevices(tuple(_named(library.inputs())), tuple(_named(library.outputs())))
    except NoMidiError:
        found = MidiDevices(problem=_NO_MIDI)
    sys.stdout.write(json.dumps(asdict(found)))


def main(descriptor: str, lifeline: str, role: str, look: str = "") -> None:
    """Opens ports until the process is ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _suppress_output()
    parent, pulse = Connection(int(descriptor)), Pulse(int(lifeline))
    with suppress(EOFError, OSError):
        if role == "in":
            MidiReceiver(parent, _connected(parent, pulse)).serve(pulse, float(look))
        else:
            _Speaker(parent, pulse).serve()
    os._exit(0)


def _connected(parent: Connection, pulse: Pulse) -> Library:
    """Waits for an interface."""
    is_told = False
    while True:
        pulse.allow(_PATIENCE)
        try:
            return open_library()
        except NoMidiError:
            if not is_told:
                parent.send(("problem", f"{_NO_MIDI}; it is looked for every {LOOK:g} s"))
                parent.send(("devices", ()))
            is_told = True
        until = time.monotonic() + LOOK
        while time.monotonic() < until:
            pulse.beat()
            time.sleep(BEAT)


class MidiReceiver:
    """Opens all inputs as they come, and passes on what they receive: `("messages", …)` with their moments and devices,
    `("devices", …)` with the names of all that are open, and `("problem", …)` with words."""

    def __init__(self, parent: Connection, library: Library) -> None:
        self.received: queue.SimpleQueue[tuple[float, str, bytes]] = queue.SimpleQueue()
        """The events that are not passed on yet."""
        self._parent = parent
        self._library = library
        self._opened: dict[str, Any] = {}
        self._failed: set[str] = set()
        self._told: tuple[str, ...] | None = None

    def serve(self, pulse: Pulse, look: float) -> None:
        """Looks for inputs every `look` seconds, until its reader is gone, which raises EOFError or OSError."""
        due = 0.0
        while True:
            if time.monotonic() >= due:
                pulse.allow(_PATIENCE)
                self.look()
                due = time.monotonic() + look
            pulse.beat()
            self.pass_on(min(BEAT, look))

    def look(self) -> None:
        """Opens the inputs that are new, and closes those that are gone."""
        ports = _named(self._library.inputs())
        for name in self._opened.keys() - ports.keys():
            self._opened.pop(name).close_port()
        self._failed &= ports.keys()
        for name in ports.keys() - self._opened.keys():
            try:
                self._opened[name] = self._library.listen(ports[name], partial(self._heard, name))
            except Exception as failure:
                if name not in self._failed:
                    self._parent.send(("problem", f"MIDI: {name} cannot be opened: {failure}"))
                self._failed.add(name)
        names = tuple(name for name in ports if name in self._opened)
        if names != self._told:
            self._told = names
            self._parent.send(("devices", names))

    def pass_on(self, patience: float) -> None:
        """Passes on messages as they are received, for this many seconds."""
        with suppress(queue.Empty):
            batch = [self.received.get(timeout=patience)]
            while not self.received.empty():
                batch.append(self.received.get())
            # The notes of a device end when it is gone. A note that began after that would never end.
            if here := [each for each in batch if each[1] in self._opened]:
                self._parent.send(("messages", here))

    def _heard(self, name: str, data: Sequence[int]) -> None:
        if self.received.qsize() < _MOST:
            self.received.put((time.monotonic(), name, bytes(data)))


class _Speaker:
    """Sends the messages of the other process, and ends the notes that it has begun."""

    def __init__(self, parent: Connection, pulse: Pulse) -> None:
        self._parent = parent
        self._pulse = pulse
        self._ports: dict[str, Any] = {}
        """The open ports by the parts of names that found them."""
        self._missing: dict[str, float] = {}
        """The parts that were not found, and when they are looked for again."""
        self._sounding: dict[str, set[tuple[int, int]]] = {}
        """The channels and keys of the notes that have begun."""

    def serve(self) -> None:
        library: Library | None = None
        while True:
            if not self._parent.poll(BEAT):
                self._pulse.beat()
                continue
            wanted = self._parent.recv()
            if wanted is None:
                break
            self._pulse.allow(_PATIENCE)
            if library is None:
                try:
                    library = open_library()
                except NoMidiError:
                    self._parent.send(_NO_MIDI)
                    return self._idle()
            self._send(library, *wanted)
        # JACK takes messages once a block. Messages that still wait are lost with the process, and so are those of a
        # block that comes too late for their receiver, as on a busy machine. A note may end more than once.
        for _ in range(_ENDS):
            self._end_notes()
            time.sleep(_TO_FLUSH)
        return None

    def _end_notes(self) -> None:
        for part, sounding in self._sounding.items():
            for channel, key in sounding:
                with suppress(Exception):
                    self._ports[part].send_message(encode(MidiMessage("note off", channel, key)))

    def _idle(self) -> None:
        """Drops messages."""
        while True:
            self._pulse.beat()
            if self._parent.poll(BEAT) and self._parent.recv() is None:
                return

    def _send(self, library: Library, part: str, messages: Sequence[bytes]) -> None:
        if part not in self._ports and not self._open(library, part):
            return
        try:
            for data in messages:
                self._ports[part].send_message(data)
                self._note(part, data)
        except Exception as failure:
            self._ports.pop(part)
            self._parent.send(f"MIDI does not reach {part or 'its output'}: {failure}")

    def _open(self, library: Library, part: str) -> bool:
        now = time.monotonic()
        if now < self._missing.get(part, now):
            return False
        names = _named(library.outputs())
        name = default_output(names) if not part else next((name for name in names if is_meant(name, part)), None)
        reason = f'no MIDI output has "{part}" in its name' if part else "there is no MIDI output"
        if name is not None:
            try:
                self._ports[part] = library.speak(names[name])
                # JACK connects it with the next block, and messages that are sent before that are lost.
                time.sleep(_TO_FLUSH)
                return True
            except Exception as failure:
                reason = f"MIDI: {name} cannot be opened: {failure}"
        if part not in self._missing:
            self._parent.send(f"{reason}; {_listed(tuple(names))}" if names and part else reason)
        self._missing[part] = now + LOOK
        return False

    def _note(self, part: str, data: bytes) -> None:
        sounding, message = self._sounding.setdefault(part, set()), decode(data)
        if message is not None and message.kind == "note on":
            sounding.add((message.channel, message.number))
        elif message is not None and message.kind == "note off":
            sounding.discard((message.channel, message.number))


def default_output(names: Iterable[str]) -> str | None:
    """The output that is used where none is named: the first that leads to a device, else the first."""
    found = list(names)
    return next((name for name in found if not is_meant(name, "through")), found[0] if found else None)
