"""Open Sound Control while a patch plays: a server for what others send, and a sender for `osc_send`.

Frames never wait for incoming messages. The server has a thread of its own, which uses a limited share of a processor.
The system drops what the thread cannot keep up with, and counts it. Nothing that it keeps grows without bound.
"""

from __future__ import annotations

import errno
import heapq
import math
import os
import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count, groupby
from typing import Any, NamedTuple

import numpy as np

from weft.errors import error, shortened, visible
from weft.names import COUNT, SentName
from weft.osc_packets import Argument, MalformedPacketError, elements, is_address, message, read_message
from weft.platform import system
from weft.runtime.hands.parameters import ParameterBank, ParameterSpec
from weft.runtime.hands.thread_pace import ThreadPace

SOURCE = "osc"
"""The source that reads what is received."""

PARAMETERS, COMMANDS = "/param/", "/weft/"
"""The prefixes of the addresses that set parameters, and of those that control weft."""

COMMAND_NAMES = ("pause", "restart", "screenshot", "record", "tap", "next", "previous", "load", "number")
"""The commands at `/weft/NAME`; `load` takes the name of a patch, `number` a line, a column and a value."""

MOST_ADDRESSES = 4096
"""The number of last addresses that are remembered, even if no program reads them yet."""

RATE = 60
"""The most messages that one `osc_send` sends in a second."""


class OscAddress(NamedTuple):
    """A computer and a port, as the command line names them."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str, host: str = "127.0.0.1") -> OscAddress | None:
        """The address in `PORT` or `HOST:PORT`, with `host` if the text names none; None for another text."""
        found = re.fullmatch(r"(?:(\[[^\[\]]+\]|[^:\[\]]+):)?([0-9]{1,5})", text)
        if found is None or int(found[2]) >= 1 << 16:
            return None
        return cls((found[1] or host).removeprefix("[").removesuffix("]"), int(found[2]))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass
class OscReporter:
    """The reports of a server and a sender: `mention` shows a line to the performer, `emit` writes an event. Both are
    called from any thread. Each line is shown once, and of each kind only the first few."""

    mention: Callable[[str], None] = lambda line: None
    emit: Callable[..., None] = lambda event, **fields: None
    _told: dict[str, set[str]] = field(default_factory=dict)

    def tell(self, kind: str, line: str) -> None:
        """Shows a line, unless it has been shown, or many of its kind have been."""
        told = self._told.setdefault(kind, set())
        if line not in told and len(told) <= _MOST_LINES:
            told.add(line)
            self.mention(f"OSC: {line}" if len(told) <= _MOST_LINES else f"OSC: further messages {kind} are not shown")


_MOST_LINES = 8

# --- what is received -------------------------------------------------------------------------------------------


class _Received:
    """A number at a place in the messages to one address. If a number came and was 0 again before a frame read it, it
    is shown in one frame. `count` is the number of messages that were not 0, texts included; `has_number` says whether
    one of them was a number."""

    __slots__ = ("_passed", "_shown", "count", "has_number", "latest")

    def __init__(self) -> None:
        self.latest = 0.0
        self.count = 0
        self.has_number = False
        self._passed = 0.0
        """The last number that was not 0, and that no frame has shown."""
        self._shown = 0.0

    def take(self, number: float) -> None:
        """A number has come."""
        self.latest, self.has_number = number, True
        if number:
            self._passed = number
            self.count += 1

    def show(self) -> float:
        """The number for a frame."""
        if self.latest:
            self._shown, self._passed = self.latest, 0.0
        elif self._passed and not self._shown:
            self._shown, self._passed = self._passed, 0.0
        else:
            self._shown = 0.0
        return self._shown


# The largest share of a processor that the thread uses.
_SHARE = 0.25

# The most seconds that it waits before it checks whether it should end.
_GLANCE = 0.5

# The bytes that the system keeps while they wait to be read, if it allows this many.
_BUFFER = 1 << 20

# The largest packet of UDP.
_DATAGRAM = 1 << 16

# The most messages that wait for their time, and the most bytes of them.
_MOST_WAITING = 4096
_MOST_BYTES = 1 << 22

# Seconds. A bundle that is due later than this is still applied at its time, but probably a clock is wrong.
_LATE_CLOCK = 60.0

# The most seconds that a frame waits for the thread. After that it has the numbers of the last frame.
_NO_LONGER = 0.001

# Seconds between events with figures, and the most new addresses that one of them names.
_PERIOD = 1.0
_MOST_NAMED = 32



class OscServer:
    """Receives OSC over UDP, for patches that read `osc(…)`, for parameters, and to control weft."""

    sources = frozenset({SOURCE})

    def __init__(
        self, address: OscAddress, parameters: ParameterBank, on_command: Callable[[str, str], None],
        reporter: OscReporter,
    ) -> None:  # fmt: skip
        """Opens the port; port 0 is any that is free. Nothing is received before `start`. `on_command` is called by
        another thread, with the name of a command and its argument. Raises WeftError (`osc-port`)."""
        self._socket = _bound(address)
        self.address = OscAddress(address.host, self._socket.getsockname()[1])
        self._parameters = parameters
        self._on_command = on_command
        self._reporter = reporter
        self._lock = threading.Lock()
        self._known: dict[str, dict[int, _Received]] = {}
        """The received numbers, by address, that of the latest message at the end; and by the place in a message."""
        self._wanted: frozenset[str] = frozenset()
        """The addresses that the program reads."""
        self._found: dict[SentName, float] = {}
        """The numbers of the last frame."""
        self._named: tuple[tuple[ParameterSpec, ...], dict[str, ParameterSpec]] = ((), {})
        """The parameters of the program, and the same by name."""
        self._waiting: list[tuple[float, int, bytes]] = []
        """A heap of messages that are not due yet."""
        self._waiting_bytes = 0
        self._order = count()
        self._counts: Counter[str] = Counter()
        self._new: list[str] = []
        """Addresses that came for the first time since the last event."""
        self._reported = time.monotonic()
        self._dropped = 0
        self._closing = False
        self._thread = threading.Thread(target=self._receive, name="weft-osc", daemon=True)

    def start(self) -> None:
        """Begins to receive. Messages that came earlier were kept."""
        self._thread.start()

    def close(self) -> None:
        """Stops receiving. May be called twice."""
        if self._closing:
            return
        self._closing = True
        if self._thread.is_alive():
            self._wake()
            self._thread.join(_GLANCE)
        self._socket.close()

    def _wake(self) -> None:
        """Sends an empty packet to itself, so that the thread stops waiting."""
        host = self._socket.getsockname()[0]
        loopback = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
        with suppress(OSError), socket.socket(self._socket.family, socket.SOCK_DGRAM) as other:
            other.sendto(b"", (loopback, self.address.port))

    # --- for the frame ---

    def values(self, wanted: Iterable[SentName]) -> Mapping[SentName, float]:
        """The numbers for the next frame."""
        names = [(name, str(name.args[0]), int(float(name.args[1]))) for name in wanted]
        if not self._lock.acquire(timeout=_NO_LONGER):
            return self._found
        try:
            self._wanted = frozenset(address for _, address, _ in names)
            shown: dict[tuple[str, int], float] = {}
            self._found = {}
            for name, address, index in names:
                place = self._known.get(address, {}).get(index)
                if place is not None and name.output == COUNT:
                    self._found[name] = float(place.count)
                elif place is not None and place.has_number:
                    if (address, index) not in shown:
                        shown[address, index] = place.show()
                    self._found[name] = shown[address, index]
            self._report()
        finally:
            self._lock.release()
        return self._found

    def _report(self) -> None:
        """Writes an event with figures, once a second if anything has come."""
        now = time.monotonic()
        if now - self._reported < _PERIOD:
            return
        if self._counts:
            counted = {kind: self._counts[kind] for kind in ("messages", "malformed", "dropped")}
            self._reporter.emit("osc", **counted, addresses=self._new)
        self._reported, self._counts, self._new = now, Counter(), []

    # --- the thread ---

    def _receive(self) -> None:
        pace = ThreadPace(_SHARE)
        while not self._closing:
            wait = _GLANCE
            if self._waiting:
                self._apply_due(pace)
                wait = self._waiting[0][0] - time.time() if self._waiting else _GLANCE
            self._read(min(max(wait, 0.001), _GLANCE), pace)

    def _read(self, timeout: float, pace: ThreadPace) -> None:
        """Waits for a packet, and takes it in."""
        try:
            if timeout != self._socket.gettimeout():
                self._socket.settimeout(timeout)
            packet, dropped = system.receive(self._socket, _DATAGRAM)
        except TimeoutError:
            return
        except OSError as failure:
            if not self._closing:
                self._reporter.tell("about the port", f"nothing was received: {failure.strerror}")
                time.sleep(_GLANCE)
            return
        self._count_dropped(dropped)
        if packet:
            self._take(packet, pace)

    def _take(self, packet: bytes, pace: ThreadPace) -> None:
        """Applies the messages of a packet that are due, and keeps the rest until they are."""
        try:
            for element in elements(packet):
                if element.due and element.due > time.time():
                    self._postpone(element.due, packet[element.start : element.end])
                else:
                    self._apply(packet, element.start, element.end)
                pace.keep()
        except MalformedPacketError as failure:
            self._malformed(failure)
            pace.keep()

    def _malformed(self, failure: MalformedPacketError) -> None:
        with self._lock:
            self._counts["malformed"] += 1
        self._reporter.tell("that cannot be read", f"a packet cannot be read and is left out: {failure}")

    def _count_dropped(self, total: int | None) -> None:
        if total is not None and total != self._dropped:
            with self._lock:
                self._counts["dropped"] += (total - self._dropped) % (1 << 32)
            self._dropped = total
            self._reporter.tell("about too many", "more comes than can be read; some of it is dropped")

    def _postpone(self, due: float, data: bytes) -> None:
        if due > time.time() + _LATE_CLOCK:
            self._reporter.tell("about clocks", f"a bundle waits for its time, more than {_LATE_CLOCK:.0f} s from now; "
                               "do the clocks of both machines agree?")  # fmt: skip
        if len(self._waiting) >= _MOST_WAITING or self._waiting_bytes + len(data) > _MOST_BYTES:
            with self._lock:
                self._counts["dropped"] += 1
            self._reporter.tell("about bundles", "too many bundles wait for their time; further ones are dropped")
            return
        self._waiting_bytes += len(data)
        heapq.heappush(self._waiting, (due, next(self._order), data))

    def _apply_due(self, pace: ThreadPace) -> None:
        while self._waiting and self._waiting[0][0] <= time.time():
            data = heapq.heappop(self._waiting)[2]
            self._waiting_bytes -= len(data)
            try:
                self._apply(data, 0, len(data))
            except MalformedPacketError as failure:
                self._malformed(failure)
            pace.keep()

    def _apply(self, packet: bytes, start: int, end: int) -> None:
        """Applies a message. Raises MalformedPacketError."""
        address, arguments = read_message(packet, start, end)
        numbers = [each if isinstance(each, float) and math.isfinite(each) else None for each in arguments]
        if None in numbers and not address.startswith(COMMANDS):
            self._tell_of_texts(address, arguments)
        is_readable = address in self._known or is_address(address)
        with self._lock:
            self._counts["messages"] += 1
            if is_readable:
                self._keep(address, numbers, arguments)
        if not is_readable:
            self._reporter.tell("about addresses", f"{_shown(address)} is no address that a patch can read, or a "
                               "pattern, and is left out")  # fmt: skip
        elif address.startswith(PARAMETERS):
            self._set_parameters(address[len(PARAMETERS) :], numbers)
        elif address.startswith(COMMANDS):
            self._command(address[len(COMMANDS) :], arguments)

    def _tell_of_texts(self, address: str, arguments: tuple[Argument, ...]) -> None:
        """Reports once that arguments of a message have no number."""
        for each in arguments:
            if not (isinstance(each, float) and math.isfinite(each)):
                what = "a text" if isinstance(each, str) else "not a number" if each is None else str(each)
                self._reporter.tell("that are no numbers", f"{_shown(address)} has {what}, which is left out")

    def _keep(self, address: str, numbers: list[float | None], arguments: tuple[Argument, ...]) -> None:
        """Keeps numbers for programs that read them, now or later."""
        places = self._known.pop(address, None)
        if places is None:
            places = {}
            if len(self._known) >= MOST_ADDRESSES:
                del self._known[next((a for a in self._known if a not in self._wanted), next(iter(self._known)))]
            if len(self._new) < _MOST_NAMED:
                self._new.append(address)
        self._known[address] = places
        for index, (number, argument) in enumerate(zip(numbers, arguments, strict=True)):
            if number is not None:
                _place(places, index).take(number)
            elif isinstance(argument, str):
                _place(places, index).count += 1
        if not numbers:
            # A message without arguments is 1 in one frame.
            _place(places, 0).take(1.0)
            _place(places, 0).take(0.0)

    # --- parameters and commands ---

    def _set_parameters(self, path: str, numbers: list[float | None]) -> None:
        """Sets a parameter by `NAME`, or one of its outputs by `NAME/OUTPUT`."""
        specs = self._parameters.specs
        if specs is not self._named[0]:
            self._named = specs, {spec.name: spec for spec in specs}
        name, slash, output = path.partition("/")
        spec = self._named[1].get(name)
        inputs = () if spec is None else (f"{name}@{output}",) if slash else spec.inputs
        if spec is None or not set(inputs) <= set(spec.inputs):
            there = ", ".join(self._named[1]) or "none"
            if spec is not None:
                there = f"its outputs are {', '.join(spec.outputs)}"
            else:
                there = f"there are {there}" if self._named[1] else "the patch has none"
            self._reporter.tell("about unknown parameters", f"there is no parameter {_shown(path)}; {there}")
            return
        if len(numbers) > len(inputs):
            self._reporter.tell("about parameters", f"{PARAMETERS}{path} takes {len(inputs)} of {len(numbers)} numbers")
        for each, number in zip(inputs, numbers, strict=False):
            if number is None:
                continue
            with suppress(KeyError):  # a save has just removed it
                self._parameters.set(each, number)
            if not spec.low <= number <= spec.high:
                self._reporter.tell("about ranges", f"{PARAMETERS}{path} runs from {spec.low:g} to {spec.high:g}; "
                                    "what is outside is moved there")  # fmt: skip

    def _command(self, name: str, arguments: tuple[Argument, ...]) -> None:
        """Executes a command, unless its argument is 0, which a button sends when it is released."""
        if name not in COMMAND_NAMES:
            known = " ".join(f"{COMMANDS}{each}" for each in COMMAND_NAMES)
            self._reporter.tell("about unknown commands", f"there is no {_shown(COMMANDS + name)}; there are {known}")
            return
        argument = arguments[0] if arguments else None
        if name == "number":
            self._on_command(name, " ".join(map(str, arguments)))
            return
        if name == "load" and not isinstance(argument, str):
            self._reporter.tell("about unknown commands", f"{COMMANDS}load needs the name of a patch, as text")
        elif argument != 0:
            self._on_command(name, argument if isinstance(argument, str) else "")


def _place(places: dict[int, _Received], index: int) -> _Received:
    found = places.get(index)
    if found is None:
        found = places[index] = _Received()
    return found


def _shown(address: str) -> str:
    return visible(shortened(address, 60))


def _bound(address: OscAddress) -> socket.socket:
    """A socket that receives at an address. Raises WeftError (`osc-port`)."""
    family, place = _looked_up(address, "--osc")
    made = socket.socket(family, socket.SOCK_DGRAM)
    try:
        made.bind(place)
    except OSError as failure:
        made.close()
        raise error("osc-port", f"weft cannot listen for OSC at {address}: {_reason(failure)}",
                    hint=_remedy(address, failure)) from failure  # fmt: skip
    with suppress(OSError):
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
        system.count_dropped(made)
    return made


def _looked_up(address: OscAddress, option: str) -> tuple[int, tuple[Any, ...]]:
    """The family and the address for a socket. If a name has several, one of IPv4 is used, since most programs listen
    there. Raises WeftError (`osc-host`)."""
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError) as failure:
        raise error("osc-host", f'{option}: the host "{visible(shortened(address.host, 80))}" is not found: '
                    f"{_reason(failure)}", hint=f"for example {option} localhost:9000") from failure  # fmt: skip
    family, _, _, _, place = min(found, key=lambda each: each[0] != socket.AF_INET)
    return family, place


def _remedy(address: OscAddress, failure: Exception) -> str | None:
    """What to type instead."""
    number = failure.errno if isinstance(failure, OSError) else None
    if number == errno.EADDRNOTAVAIL:
        return "this machine has no such address; 0.0.0.0 means all that it has"
    if number == errno.EACCES:
        return "ports below 1024 need a permission; take a higher one"
    for port in range(address.port + 1, min(address.port + 50, 1 << 16)):
        with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as attempt:
            attempt.bind((address.host, port))
            return f"another program has this port; {port} is free"
    return None


def _reason(failure: Exception) -> str:
    return (failure.strerror if isinstance(failure, OSError) else None) or str(failure)


class NoOscServer:
    """Replaces the server if the command line asks for none."""

    sources = frozenset({SOURCE})
    address = None

    def __init__(self, reporter: OscReporter) -> None:
        self._reporter = reporter

    def start(self) -> None:
        """Does nothing."""

    def values(self, wanted: Iterable[SentName]) -> Mapping[SentName, float]:
        """No numbers. If a program reads some, the performer learns once how to get them."""
        if any(True for _ in wanted):
            words = "the patch reads osc(…), but nothing listens; weft run with --osc 9000 does, at port 9000"
            self._reporter.tell("about the port", words)
        return {}

    def close(self) -> None:
        """Does nothing."""


# --- what is sent -----------------------------------------------------------------------------------------------

_LARGEST = float(np.finfo(np.float32).max)

# After this many seconds, everything is sent again to a receiver that was not there.
_AGAIN = 1.0


@dataclass
class _Sent:
    """The last message to an address, and the moment from which on the next one may follow."""

    data: bytes
    due: float = -math.inf


class OscSender:
    """Sends the values of `osc_send`: a message for each statement when one of its numbers has changed, at most `RATE`
    a second. A change that comes too early is sent as soon as possible. It never waits."""

    def __init__(self, address: OscAddress, reporter: OscReporter) -> None:
        """Looks up the host, which may take a while; the socket is opened when there is something to send. Raises
        WeftError (`osc-host`)."""
        self.address = address
        self._reporter = reporter
        self._family, self._place = _looked_up(address, "--osc-send")
        self._socket: socket.socket | None = None
        self._sent: dict[str, _Sent] = {}
        self._again: float | None = None
        """When everything is to be sent again, if a message was lost."""

    def send(self, values: Mapping[str, float], now: float) -> None:
        """Sends the values of statements by their labels, at a moment in seconds."""
        self._look(now)
        finite = [value if math.isfinite(value) else 0.0 for value in values.values()]
        numbers = np.clip(finite, -_LARGEST, _LARGEST).tolist()
        # A label is osc_send:/address, then the place of the number.
        labels = (label.rpartition(".")[0].partition(":")[2] for label in values)
        for address, pairs in groupby(zip(labels, numbers, strict=True), key=lambda pair: pair[0]):
            self._send(address, message(address, [number for _, number in pairs]), now)

    def _send(self, address: str, data: bytes, now: float) -> None:
        sent = self._sent.setdefault(address, _Sent(b""))
        interval = 1 / RATE
        # The rate holds on average. A frame that comes a little early is not left out.
        if data == sent.data or now < sent.due - interval:
            return
        try:
            self._opened().send(data)
        except BlockingIOError:
            return
        except OSError as failure:
            self._lost(failure.errno, now)
        sent.data, sent.due = data, max(sent.due, now) + interval

    def close(self) -> None:
        """Closes the socket. May be called twice."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _opened(self) -> socket.socket:
        if self._socket is None:
            self._socket = socket.socket(self._family, socket.SOCK_DGRAM)
            self._socket.setblocking(False)
            # For a connected socket, the system reports when nothing listens at the other end.
            self._socket.connect(self._place)
        return self._socket

    def _look(self, now: float) -> None:
        """Notes errors that the system reports about earlier messages."""
        if self._socket is not None:
            number = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if number:
                self._lost(number, now)
        if self._again is not None and now >= self._again:
            self._again = None
            for sent in self._sent.values():
                sent.data = b""

    def _lost(self, number: int | None, now: float) -> None:
        reason = "nothing listens there" if number == errno.ECONNREFUSED else os.strerror(number or 0)
        self._reporter.tell("about osc_send", f"what osc_send sends does not reach {self.address}: {reason}; "
                           "--osc-send HOST:PORT sends it elsewhere")  # fmt: skip
        if self._again is None:
            self._again = now + _AGAIN
