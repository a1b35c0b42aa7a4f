"""The process that sends lights: 44 times a second, by a clock of its own that neither picture nor sound holds up."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from math import ceil
from multiprocessing.connection import Connection

from weft.child import Pulse
from weft.runtime.hands.light_packets import (
    CHANNELS, DISCOVERY_UNIVERSE, SACN_PORT, artnet, sacn, sacn_discovery, sacn_group
)
from weft.runtime.hands.light_sender import DARK, LightAddress, LightTable
from weft.runtime.hands.light_serial import SerialLights

RATE = 44
"""Packets of a universe in a second: as many as DMX512 can carry."""

NAME = "weft"

# Dark frames at the end, and packets that end a stream.
_DARK = 3
# The packets between two of a discovery, which E1.31 wants every ten seconds.
_DISCOVERED_AFTER = 10 * RATE
# Seconds between two looks at the other end of the socket.
_LOOK = 0.2


class NetworkLights:
    """One place in a network where lights go."""

    def __init__(self, address: LightAddress, sender: bytes) -> None:
        """Raises OSError."""
        self.address = address
        self._sender = sender
        self._numbers: dict[int, int] = {}
        """The number of packets of each universe so far."""
        family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        if address.interface:
            chosen = socket.inet_aton(address.interface)
            self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, chosen)

    def send(self, universe: int, levels: bytes, is_last: bool = False) -> None:
        """Sends a universe, if the protocol knows it. Raises OSError."""
        address = self.address
        if universe not in address.universes:
            return
        number = self._numbers[universe] = self._numbers.get(universe, -1) + 1
        if address.protocol == "artnet":
            packet = artnet(universe, levels, number)
        else:
            packet = sacn(universe, levels, number, self._sender, NAME, is_last)
        self._send(packet, universe)

    def discover(self, universes: list[int]) -> None:
        """Says which universes there are. Raises OSError."""
        if self.address.protocol == "sacn" and not self.address.host:
            known = [universe for universe in universes if universe in self.address.universes]
            for packet in sacn_discovery(known, self._sender, NAME):
                self._send(packet, DISCOVERY_UNIVERSE)

    def _send(self, packet: bytes, universe: int) -> None:
        host, port = (self.address.host, self.address.port) if self.address.host else (sacn_group(universe), SACN_PORT)
        with suppress(BlockingIOError):  # a packet that the system has no room for is lost, as on the way
            self._socket.sendto(packet, (host, port))

    def close(self) -> None:
        self._socket.close()


class DongleLights:
    """A dongle at a serial port, which gets one universe."""

    def __init__(self, address: LightAddress) -> None:
        self.address = address
        self._dongle = SerialLights(address.host)

    def send(self, universe: int, levels: bytes, is_last: bool = False) -> None:
        """Sends a universe, if it is the one of the dongle. Raises OSError."""
        if universe in self.address.universes:
            self._dongle.send(levels)

    def discover(self, universes: list[int]) -> None:
        """Nobody asks a dongle."""

    def close(self) -> None:
        self._dongle.close()


class LightClock:
    """Ticks `RATE` times a second, evenly spaced. Ticks that are missed are left out: a node cannot take more."""

    def __init__(self) -> None:
        self._next = time.monotonic()

    def wait(self, meanwhile: Callable[[], None]) -> None:
        """Waits for the next tick. Calls `meanwhile` first, if there is time."""
        meanwhile()
        periods = ceil((time.monotonic() - self._next) * RATE)
        self._next += max(1, periods) / RATE
        left = self._next - time.monotonic()
        if left > 0:
            time.sleep(left)


def main(descriptor: str, lifeline: str, memory: str, addresses: str) -> None:
    """Sends the levels in memory until the other end of the socket says `end`; then everything is dark."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent, pulse, table = Connection(int(descriptor)), Pulse(int(lifeline)), LightTable(int(memory))
    told = set[str]()
    outputs: list[NetworkLights | DongleLights] = []
    sender = uuid.uuid4().bytes

    def tell(words: str) -> None:
        if words not in told:
            told.add(words)
            with suppress(OSError):
                parent.send(words)

    for each in json.loads(addresses):
        address = LightAddress(*each)
        try:
            dongle = address.protocol == "dmx"
            outputs.append(DongleLights(address) if dongle else NetworkLights(address, sender))
        except OSError as failure:
            tell(f"nothing goes to {address}: {failure.strerror}")

    def send(is_dark: bool = False, is_last: bool = False) -> list[int]:
        found = table.read()
        for universe, levels in found:
            for output in outputs:
                try:
                    output.send(universe, bytes(CHANNELS) if is_dark else levels, is_last)
                except OSError as failure:
                    tell(f"nothing reaches {output.address}: {failure.strerror or os.strerror(failure.errno or 0)}")
        return [universe for universe, _ in found]

    clock, tick, looked, is_over = LightClock(), 0, 0.0, False

    def look() -> None:
        nonlocal looked, is_over
        pulse.beat()
        now = time.monotonic()
        if now - looked >= _LOOK or is_over:
            looked = now
            with suppress(EOFError, OSError):
                if parent.poll():
                    parent.recv()
                    is_over = True

    while not is_over:
        universes = send()
        if tick % _DISCOVERED_AFTER == 0 and universes:
            for output in outputs:
                with suppress(OSError):
                    output.discover(universes)
            tick = 0
        tick += bool(universes)
        clock.wait(look)
    for last in (False, True):
        for _ in range(_DARK):
            send(is_dark=True, is_last=last)
            clock.wait(pulse.beat)
    for output in outputs:
        output.close()
    with suppress(OSError):
        parent.send(DARK)
        parent.poll(None)
