"""Lights by a dongle at a serial port: what a pseudo terminal gets, read by the offsets of the protocol's text."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from weft.runtime.hands.light_sender import LightAddress, LightSender

pytest.importorskip("serial")
pty = pytest.importorskip("pty")

PATIENCE = 20.0


class Dongle:
    """The other end of a serial port, which a link leads to."""

    def __init__(self, link: Path) -> None:
        self._end, other = pty.openpty()
        link.unlink(missing_ok=True)
        link.symlink_to(os.ttyname(other))
        # The terminal stays as long as somebody has it open.
        self._other = other
        self._rest = b""

    def next(self) -> bytes:
        """The levels of the next message."""
        deadline = time.monotonic() + PATIENCE
        while True:
            begin = self._rest.find(b"\x7e\x06")
            if begin >= 0 and len(self._rest) >= begin + 4 + 513 + 1:
                length = self._rest[begin + 2] | self._rest[begin + 3] << 8
                message, self._rest = self._rest[begin : begin + 5 + length], self._rest[begin + 5 + length :]
                assert length == 513
                assert message[4] == 0  # the start code
                assert message[-1] == 0xE7
                return message[5:-1]
            assert time.monotonic() < deadline
            if select.select([self._end], [], [], 0.1)[0]:
                self._rest += os.read(self._end, 4096)

    def until(self, first: int) -> bytes:
        """The levels of the first message whose first level is this one."""
        while (levels := self.next())[0] != first:
            pass
        return levels

    def pull_out(self) -> None:
        os.close(self._other)
        os.close(self._end)


@contextmanager
def plugged(link: Path) -> Iterator[Dongle]:
    dongle = Dongle(link)
    try:
        yield dongle
    finally:
        dongle.pull_out()


def test_a_dongle_gets_one_universe_and_is_dark_in_the_end(tmp_path: Path) -> None:
    link = tmp_path / "ttyUSB0"
    with plugged(link) as dongle:
        with closing(LightSender((LightAddress("dmx", str(link), 2),))) as sender:
            sender.send({"lights.universe": 2.0, "lights.0": 1.0, "lights.1": 0.5}, 0.0)
            sender.send({"lights.2.universe": 1.0, "lights.2.0": 0.3}, 0.0)
            levels = dongle.until(255)
            assert levels[:4] == bytes([255, 128, 0, 0])
            assert len(levels) == 512
        assert not any(dongle.until(0))


def test_a_dongle_that_is_pulled_out_is_told_once_and_found_again(tmp_path: Path) -> None:
    link = tmp_path / "ttyUSB0"
    said: list[str] = []
    with closing(LightSender((LightAddress("dmx", str(link), 1),), mention=said.append)) as sender:
        sender.send({"lights.0": 1.0}, 0.0)
        deadline = time.monotonic() + PATIENCE
        while not said:
            assert time.monotonic() < deadline
        assert said == [f"lights: nothing reaches dmx:{link}: No such file or directory"]
        with plugged(link) as dongle:
            dongle.until(255)
        link.unlink()
        sender.send({"lights.0": 0.2}, 0.0)
        with plugged(link) as dongle:
            assert dongle.until(51)[0] == 51
    assert len(said) <= 2  # in words of its own, if the port is seen to fail before it is gone


def test_a_port_that_takes_nothing_holds_no_other_lights_up(tmp_path: Path) -> None:
    full, link = tmp_path / "ttyUSB0", tmp_path / "ttyUSB1"
    with plugged(full), plugged(link) as dongle:
        addresses = LightAddress("dmx", str(full), 1), LightAddress("dmx", str(link), 1)
        with closing(LightSender(addresses)) as sender:
            for level in (1.0, 0.2, 1.0, 0.2):
                sender.send({"lights.0": level}, 0.0)
                # More than a terminal keeps for who does not read.
                for _ in range(30):
                    dongle.next()
                dongle.until(round(level * 255))
