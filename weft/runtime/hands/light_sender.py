"""Lights: the values of `lights` as levels of universes, which a process sends by sACN and Art-Net at its own pace.

Where they go is up to the options of the command line. A patch names universes and channels; it cannot name machines.
"""

from __future__ import annotations

import importlib.util
import json
import math
import mmap
import os
import re
import socket
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from subprocess import TimeoutExpired
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from weft.child import Child
from weft.errors import error, installs
from weft.names import SentName
from weft.platform import system
from weft.runtime.hands.lamp_strips import LampStrip, strip_of
from weft.runtime.hands.light_packets import ARTNET_PORT, ARTNET_UNIVERSES, CHANNELS, SACN_PORT, SACN_UNIVERSES

Protocol: TypeAlias = Literal["sacn", "artnet", "dmx"]

# Of a dongle, the universe whose levels it gets takes the place of the port.
PORTS: Mapping[Protocol, int] = {"sacn": SACN_PORT, "artnet": ARTNET_PORT, "dmx": 1}

MOST_UNIVERSES = 64
"""The universes that a performance sends at most."""

FORMS = "sacn, sacn@INTERFACE, sacn:HOST, artnet:HOST or dmx:SERIALPORT"
"""How the places where lights go are written; a HOST may have a port, and a SERIALPORT the universe that it gets."""

DARK = "dark"
"""What the process says last, when everything is dark."""

# The seconds that the process may take at the end.
_LEAVE = 1.0
# How often it is started again when it ends.
_MOST_STARTS = 4
# The most lines about statements, and about everything else.
_MOST_TOLD = 16


class LightAddress(NamedTuple):
    """Where lights go. Without a host, to all who listen in the network of an `interface` (the address of one of this
    computer's), or of the one that the system takes. For `dmx`, the host is a serial port, and the port a universe."""

    protocol: Protocol
    host: str = ""
    port: int = 0
    interface: str = ""

    @classmethod
    def parse(cls, text: str) -> LightAddress | None:
        """The address in one of the `FORMS`; None for another text."""
        if dongle := re.fullmatch(r"dmx:([^:]+)(?::([0-9]{1,5}))?", text):
            return cls("dmx", dongle[1], int(dongle[2] or PORTS["dmx"]))
        form = r"(sacn|artnet)(?:@([0-9]{1,3}(?:\.[0-9]{1,3}){3})|:(\[[^\[\]]+\]|[^:@\[\]]+)(?::([0-9]{1,5}))?)?"
        found = re.fullmatch(form, text)
        protocol = next((each for each in get_args(Protocol) if found is not None and each == found[1]), None)
        if found is None or protocol is None:
            return None
        interface, host, port = found[2] or "", (found[3] or "").strip("[]"), int(found[4] or 0) or PORTS[protocol]
        if any(int(part) > 255 for part in interface.split(".") if interface):
            return None
        if port >= 1 << 16 or (protocol == "artnet" and not host):  # Art-Net 4 forbids to send levels to everybody
            return None
        return cls(protocol, host, port, interface)

    @property
    def universes(self) -> range:
        """The universes that can be sent there."""
        match self.protocol:
            case "sacn":
                return SACN_UNIVERSES
            case "artnet":
                return ARTNET_UNIVERSES
            case "dmx":
                return range(self.port, self.port + 1)

    def __str__(self) -> str:
        if not self.host:
            return self.protocol + f"@{self.interface}" * bool(self.interface)
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.protocol}:{host}" + f":{self.port}" * (self.port != PORTS[self.protocol])

    def resolved(self) -> LightAddress:
        """The same with the number of its host, which is looked up. Raises WeftError (`lights-host`)."""
        if self.protocol == "dmx":
            if importlib.util.find_spec("serial") is None:
                words = f"lights cannot go to {self}: serial ports need pyserial"
                raise error("lights-host", words, hint=installs("hands"))
            return self
        try:
            if not self.host:
                return self
            found = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_DGRAM)[0]
        except (OSError, UnicodeError) as failure:
            reason = (isinstance(failure, OSError) and failure.strerror) or str(failure)
            words = f"lights cannot go to {self}: {reason}"
            raise error("lights-host", words, hint=f"--lights takes {FORMS}") from failure
        return self._replace(host=str(found[4][0]))


class LightTable:
    """The memory that both processes map: universes and their levels. One writes, the other reads, and neither waits:
    a universe that is read while it is written may have levels of two frames."""

    _HEAD = 4 * (1 + MOST_UNIVERSES)
    SIZE = _HEAD + MOST_UNIVERSES * CHANNELS

    def __init__(self, descriptor: int) -> None:
        memory = np.frombuffer(mmap.mmap(descriptor, self.SIZE), np.uint8)
        self._count: NDArray[np.uint32] = memory[:4].view(np.uint32)
        self._numbers: NDArray[np.uint32] = memory[4 : self._HEAD].view(np.uint32)
        self._levels: NDArray[np.uint8] = memory[self._HEAD :].reshape(MOST_UNIVERSES, CHANNELS)
        self._places: dict[int, int] = {}

    def write(self, universe: int, levels: NDArray[np.uint8]) -> bool:
        """Sets the levels of a universe; False if there are too many universes."""
        place = self._places.get(universe)
        if place is None:
            place = len(self._places)
            if place == MOST_UNIVERSES:
                return False
            self._places[universe] = place
            self._numbers[place] = universe
            self._levels[place] = levels
            # Last, so that no place is read before it is filled.
            self._count[0] = place + 1
        self._levels[place] = levels
        return True

    def read(self) -> list[tuple[int, bytes]]:
        """The universes and their levels."""
        count = min(int(self._count[0]), MOST_UNIVERSES)
        return [(int(self._numbers[place]), self._levels[place].tobytes()) for place in range(count)]

    def darken(self) -> None:
        """Sets all levels to 0."""
        self._levels[:] = 0


@dataclass(frozen=True)
class _Fixture:
    """The levels of a statement, from a channel on (from 0)."""

    universe: int
    start: int
    levels: NDArray[np.uint8]


def fixture_of(values: Mapping[str, float]) -> _Fixture | None:
    """What a statement gives: its labels are `universe` and `at`, by default 1, and all other values are levels from
    0 to 1, in their order. NaN is 0. None if it is nowhere."""
    where = {"universe": 1.0, "at": 1.0} | {label: values[label] for label in ("universe", "at") if label in values}
    if not all(map(math.isfinite, where.values())):
        return None
    universe, start = (math.floor(min(max(value, -1e9), 1e9) + 0.5) for value in where.values())
    found = np.array([value for label, value in values.items() if label not in where], np.float64)
    levels = np.rint(np.clip(np.nan_to_num(found, nan=0.0, posinf=1.0, neginf=0.0), 0, 1) * 255).astype(np.uint8)
    return _Fixture(universe, start - 1, levels)


@dataclass
class LightSender:
    """Sends the values of `lights`. It never waits for anything, except at the end. `mention` is given lines for the
    performer, and `restarted` says that the process was started again."""

    addresses: tuple[LightAddress, ...]
    mention: Callable[[str], None] = lambda line: None
    restarted: Callable[[str, str], None] = lambda process, words: None
    sources: frozenset[str] = frozenset()
    _shown: dict[str, Mapping[str, float]] = field(default_factory=dict)
    """What the statements of the last frame say, by their keys."""
    _fixtures: dict[str, _Fixture] = field(default_factory=dict)
    _seen: set[str] = field(default_factory=set)
    _told: set[str] = field(default_factory=set)
    _told_of: set[tuple[str, str]] = field(default_factory=set)
    _table: LightTable | None = None
    _descriptor: int = -1
    _child: Child | None = None
    _thread: threading.Thread | None = None
    _is_closed: bool = False

    def __post_init__(self) -> None:
        """Looks up the hosts. Raises WeftError (`lights-host`)."""
        self.addresses = tuple(address.resolved() for address in self.addresses)

    # --- for the frame ---

    def send(self, values: Mapping[str, float], now: float) -> None:
        """Sends the values of statements by their labels: lights.universe, lights.2.at, lights.2.lamps@r."""
        if not self.addresses:
            self._tell(f"lights are computed, and go nowhere: --lights says where ({FORMS})")
        touched = set()
        pairs = ((label.rpartition("."), value) for label, value in values.items())
        for key, group in groupby(pairs, key=lambda pair: pair[0][0]):
            self._seen.add(key)
            said = self._shown[key] = {label[2]: value for label, value in group}
            if self.addresses:
                touched |= self._place(key, fixture_of(said))
        self._write(touched)

    def strips(self) -> tuple[LampStrip, ...]:
        """What the lamps look like, whether they are sent or not."""
        return tuple(map(strip_of, self._shown.values()))

    def _place(self, key: str, fixture: _Fixture | None) -> set[int]:
        """Notes the levels of a statement. Gives the universes that change."""
        before = self._fixtures.pop(key, None)
        if fixture is not None and self._is_there(key, fixture):
            self._fixtures[key] = fixture
        return {each.universe for each in (before, self._fixtures.get(key)) if each is not None}

    def _is_there(self, key: str, fixture: _Fixture) -> bool:
        known = [address.universes for address in self.addresses]
        if not any(fixture.universe in numbers for numbers in known):
            words = f"there is no universe {fixture.universe}; they are {known[0].start} to {known[0][-1]}"
            self._tell_of(key, "universe", words)
            return False
        end = fixture.start + len(fixture.levels)
        if fixture.start < 0 or end > CHANNELS:
            channel = fixture.start + 1 if fixture.start < 0 else end
            words = f"there is no channel {channel} in universe {fixture.universe}; they are 1 to {CHANNELS}"
            self._tell_of(key, "channel", words)
        return True

    def _write(self, universes: Iterable[int]) -> None:
        """Writes the levels of universes. Where statements overlap, the highest level counts."""
        if not universes:
            return
        table = self._opened()
        if table is None:
            return
        for universe in universes:
            levels = np.zeros(CHANNELS, np.uint8)
            for fixture in self._fixtures.values():
                if fixture.universe == universe:
                    first = max(fixture.start, 0)
                    part = levels[first : first + max(0, len(fixture.levels) - (first - fixture.start))]
                    np.maximum(part, fixture.levels[first - fixture.start :][: len(part)], out=part)
            if not table.write(universe, levels):
                self._tell(f"lights: at most {MOST_UNIVERSES} universes are sent; others are left out")

    def values(self, wanted: Iterable[SentName]) -> Mapping[SentName, float]:
        """Before a frame: darkens what statements no longer say."""
        gone = self._fixtures.keys() - self._seen
        if gone:
            self._write({self._fixtures.pop(key).universe for key in gone})
        for key in self._shown.keys() - self._seen:
            del self._shown[key]
        self._seen.clear()
        return {}

    def _opened(self) -> LightTable | None:
        """The memory, with the process that sends it; None if that cannot be."""
        if self._table is None and not self._is_closed:
            try:
                self._descriptor = system.shared_file(LightTable.SIZE)
                self._table = LightTable(self._descriptor)
            except OSError as failure:
                self._tell(f"lights cannot be sent: {failure.strerror}")
                return None
            self._thread = threading.Thread(target=self._serve, name="weft-lights", daemon=True)
            self._thread.start()
        return self._table

    # --- the thread that looks after the process ---

    def _serve(self) -> None:
        """Starts the process, and again if it ends by itself. A process ends with the thread that has started it."""
        said = json.dumps([list(address) for address in self.addresses])
        for start in range(_MOST_STARTS):
            try:
                child = Child("weft.runtime.hands.light_process:main", said, descriptors=[self._descriptor])
            except OSError as failure:
                self._tell(f"lights cannot be sent: {failure.strerror}")
                return
            self._child = child
            if self._is_closed:
                self._end(child)
            with suppress(EOFError, OSError):
                while (words := child.connection.recv()) != DARK:
                    self._tell(f"lights: {words}")
            if not self._is_closed:
                with suppress(TimeoutExpired):
                    child.wait(_LEAVE)
                if start + 1 < _MOST_STARTS:
                    self.restarted("lights", f"the process for lights {child.ending}, and was started again")
            child.end()
            if self._is_closed:
                return
        self._tell("the process for lights has ended too often; lights are not sent any more")

    def _tell_of(self, key: str, what: str, words: str) -> None:
        """Says once of a statement that it names a universe or a channel that there is not, which may move."""
        if (key, what) not in self._told_of and len(self._told_of) < _MOST_TOLD:
            self._told_of.add((key, what))
            self.mention(f"lights: {words}")

    def _tell(self, words: str) -> None:
        if words not in self._told and len(self._told) < _MOST_TOLD:
            self._told.add(words)
            self.mention(words)

    # --- the end ---

    def close(self) -> None:
        """Darkens everything, and ends the process. May be called twice."""
        self._is_closed = True
        if self._child is not None:
            self._end(self._child)
        if self._thread is not None:
            self._thread.join(_LEAVE)
        child, self._child = self._child, None
        if child is not None:
            child.end()
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    @staticmethod
    def _end(child: Child) -> None:
        with suppress(OSError):
            child.connection.send("end")
