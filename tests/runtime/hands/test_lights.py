"""Lights: what statements give, where it goes, and the process that sends it."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.performance import Performance
from tests.support.ports import free_port
from weft.cli import main
from weft.contexts import LIGHTS, ContextTable
from weft.errors import Source, WeftError
from weft.runtime.compiling.kept import KeptBuild
from weft.runtime.compiling.stages import Request, understood
from weft.runtime.hands.light_packets import ARTNET_UNIVERSES, CHANNELS, SACN_UNIVERSES
from weft.runtime.hands.light_process import RATE
from weft.runtime.hands.light_sender import MOST_UNIVERSES, LightAddress, LightSender, fixture_of

PATIENCE = 20.0
QUIET = "me<width> = 16; me<height> = 9\ndisplay(0)\n"


class Node:
    """A receiver of one universe that reads packets by the offsets of the standards, and nothing of weft's."""

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.settimeout(PATIENCE)
        self.port = self.socket.getsockname()[1]

    def __enter__(self) -> Node:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def next(self) -> tuple[int, bytes, int, bool]:
        """Universe, levels, number and whether the stream ends, of the next packet."""
        packet = self.socket.recv(2048)
        if packet.startswith(b"Art-Net\0"):
            assert struct.unpack("<H", packet[8:10]) == (0x5000,)
            low, net, length = struct.unpack(">BBH", packet[14:18])
            return net << 8 | low, packet[18 : 18 + length], packet[12], False
        assert packet[4:16] == b"ASC-E1.17\0\0\0"
        (universe,) = struct.unpack(">H", packet[113:115])
        return universe, packet[126:638], packet[111], bool(packet[112] & 0x40)

    def emptied(self) -> float:
        """Takes in what waits; a moment before all that comes later."""
        self.socket.setblocking(False)
        with suppress(BlockingIOError):
            while True:
                moment = time.monotonic()
                self.socket.recv(2048)
        self.socket.settimeout(PATIENCE)
        return moment

    def until(self, condition: Callable[[int, bytes], object]) -> bytes:
        """The levels of the first packet that fulfils a condition."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            universe, levels, _, _ = self.next()
            if condition(universe, levels):
                return levels
        raise AssertionError("no such packet")


@contextmanager
def sending(*addresses: LightAddress, **options: Callable[..., None]) -> Iterator[LightSender]:
    with closing(LightSender(addresses, **options)) as sender:
        yield sender


def at(node: Node, protocol: str = "sacn") -> LightAddress:
    found = LightAddress.parse(f"{protocol}:127.0.0.1:{node.port}")
    assert found is not None
    return found


# What statements give.


def test_levels_are_bytes_in_their_order() -> None:
    found = fixture_of({"universe": 3.0, "0": 0.0, "1": 0.5, "rgb@r": 1.0, "at": 17.2, "2": -3.0, "3": 9.0})
    assert found is not None
    assert (found.universe, found.start, found.levels.tolist()) == (3, 16, [0, 128, 255, 0, 255])
    odd = fixture_of({"0": float("nan"), "1": float("inf"), "2": float("-inf")})
    assert odd is not None
    assert (odd.universe, odd.start, odd.levels.tolist()) == (1, 0, [0, 255, 0])
    assert fixture_of({"universe": float("nan"), "0": 1.0}) is None


@pytest.mark.parametrize(("text", "address"), [
    ("sacn", LightAddress("sacn", "", 5568)),
    ("sacn@192.168.1.2", LightAddress("sacn", "", 5568, "192.168.1.2")),
    ("sacn:node.local", LightAddress("sacn", "node.local", 5568)),
    ("sacn:[::1]:99", LightAddress("sacn", "::1", 99)),
    ("artnet:10.0.0.7", LightAddress("artnet", "10.0.0.7", 6454)),
    ("artnet:10.0.0.7:6455", LightAddress("artnet", "10.0.0.7", 6455)),
    ("dmx:/dev/ttyUSB0", LightAddress("dmx", "/dev/ttyUSB0", 1)),
    ("dmx:COM3:12", LightAddress("dmx", "COM3", 12)),
    *((text, None) for text in (
        "", "artnet", "dmx", "sacn:", "sacn:a:b", "sacn:a:99999", "sacn@", "sacn@a", "sacn@1.2.3", "sacn@300.1.2.3",
        "x:sacn", "dmx:", "dmx:a:b", "dmx:a:1:2",
    )),
])  # fmt: skip
def test_where_lights_go(text: str, address: LightAddress | None) -> None:
    assert LightAddress.parse(text) == address
    if address is not None:
        assert LightAddress.parse(str(address)) == address


def test_a_host_that_is_not_there_is_told_before_anything_plays() -> None:
    with pytest.raises(WeftError) as caught:
        LightSender((LightAddress("sacn", "no.such.host.invalid", 5568),))
    assert caught.value.diagnostics[0].code == "lights-host"


def told(text: str, kept: KeptBuild | None = None) -> list[tuple[str, str]]:
    """What is marked, and what is said of it."""
    found = understood(Request(Source("p.weft", text), ContextTable()), kept or KeptBuild()).warnings
    return [(each.span.text if each.span else "", each.message) for each in found]


@pytest.mark.parametrize(("text", "marked", "words"), [
    ("lights(universe: 70000, 1)", "70000", "universe is 70000, and lights takes 0 to 63999"),
    ("lights(universe: -1, 1)", "-1", "universe is -1, and lights takes 0 to 63999"),
    ("lights(at: 0, 1)", "0", "at is 0, and lights takes 1 to 512"),
    ("first = 3 * 200\nlights(at: first, 1)", "first", "at is 600, and lights takes 1 to 512"),
    ("lights(at: 0 / 0, 1)", "0 / 0", "at is nan, and lights takes 1 to 512"),
    ("lights(at: 1e300 * 1e300, 1)", "1e300 * 1e300", "at is inf, and lights takes 1 to 512"),
    ("lights(at: 510, a: <1, 0, 1, 0>)", "510", "the last of these 4 values would be number 513 of 512"),
])  # fmt: skip
def test_constants_that_no_lamp_has_are_warned_of(text: str, marked: str, words: str) -> None:
    assert told(text) == [(marked, words)]


@pytest.mark.parametrize("text", [
    "lights(universe: 0, at: 1, 1)", "lights(universe: 63999, at: 509, a: <1, 0, 1, 0>)",
    "lights(at: mouse@x * 900, 1)", "lights(at: 512.4, 1)", "compute(at: 600)",
])  # fmt: skip
def test_places_that_there_are_or_that_change_are_not(text: str) -> None:
    assert told(text) == []


def test_a_place_is_looked_at_with_each_edit() -> None:
    kept = KeptBuild()
    assert [len(told(f"lights(at: {at}, 1)", kept)) for at in (60, 600, 601, 60)] == [0, 1, 1, 0]
    assert [len(told(f"level = {level}\nlights(at: 600, level)", kept)) for level in (0.5, 0.6)] == [1, 1]


def test_the_places_are_those_of_the_standards() -> None:
    assert LIGHTS.ranges is not None
    assert LIGHTS.ranges["at"] == (1, CHANNELS)
    known = [*SACN_UNIVERSES, *ARTNET_UNIVERSES]
    assert LIGHTS.ranges["universe"] == (min(known), max(known))


# What is sent.


@pytest.mark.parametrize("protocol", ["sacn", "artnet"])
def test_levels_arrive_and_in_the_end_it_is_dark(protocol: str) -> None:
    with Node() as node:
        with sending(at(node, protocol)) as sender:
            sender.send({"lights.universe": 2.0, "lights.at": 3.0, "lights.0": 1.0, "lights.1": 0.5}, 0.0)
            levels = node.until(lambda universe, levels: universe == 2)
            assert levels[:6] == bytes([0, 0, 255, 128, 0, 0])
            assert len(levels) == 512
        last = []
        node.socket.settimeout(0.3)
        try:
            while True:
                last.append(node.next())
        except TimeoutError:
            pass
        # Three dark frames, and three that end the stream.
        assert [any(levels) for _, levels, _, _ in last[-6:]] == [False] * 6
        assert [ends for *_, ends in last[-6:]] == [False] * 3 + [protocol == "sacn"] * 3


def test_packets_are_numbered_without_a_gap_and_no_faster_than_dmx() -> None:
    with Node() as node, sending(at(node)) as sender:
        sender.send({"lights.0": 1.0}, 0.0)
        node.next()
        # On a busy machine, many may have waited for this test.
        began = node.emptied()
        numbers = [node.next()[2] for _ in range(60)]
        assert time.monotonic() - began >= 50 / RATE
    assert all((after - before) % 256 == 1 for before, after in pairwise(numbers))


def test_statements_overlap_and_go_one_by_one() -> None:
    with Node() as node, sending(at(node)) as sender:
        first = {"lights.0": 0.2, "lights.1": 1.0}
        second = {"lights.2.at": 2.0, "lights.2.0": 0.5, "lights.2.1": 0.5}
        sender.send({**first, **second}, 0.0)
        sender.values(())
        assert node.until(lambda _, levels: levels[0])[:4] == bytes([51, 255, 128, 0])  # the highest counts
        # A frame in which the second one is gone, and one without any.
        sender.send(first, 0.1)
        sender.values(())
        assert node.until(lambda _, levels: not levels[2])[:4] == bytes([51, 255, 0, 0])
        sender.values(())
        assert not any(node.until(lambda _, levels: not levels[0]))


def test_a_place_that_moves_beyond_what_there_is_is_said_once_and_hides_nothing_else() -> None:
    said: list[str] = []
    with Node() as node, sending(at(node), mention=said.append) as sender:
        for step in range(40):
            sender.send({"lights.universe": 64000.0 + step, "lights.0": 1.0}, 0.0)
            sender.send({"lights.2.at": 513.0 + step, "lights.2.0": 1.0}, 0.0)
        assert said == [
            "lights: there is no universe 64000; they are 1 to 63999",
            "lights: there is no channel 513 in universe 1; they are 1 to 512",
        ]
        sender.send({f"lights.{number}.at": 0.0 for number in range(3, 100)}, 0.0)
        for universe in range(MOST_UNIVERSES + 5):
            sender.send({"lights.universe": universe + 1.0, "lights.0": 1.0}, 0.0)
        assert said[-1] == f"lights: at most {MOST_UNIVERSES} universes are sent; others are left out"
        assert len(said) < 20


def test_what_does_not_exist_is_said_once() -> None:
    said: list[str] = []
    with Node() as node, sending(at(node), mention=said.append) as sender:
        for _ in range(3):
            sender.send({"lights.universe": 64000.0, "lights.0": 1.0}, 0.0)
            sender.send({"lights.2.at": 512.0, "lights.2.0": 1.0, "lights.2.1": 1.0}, 0.0)
            sender.send({"lights.3.at": 0.0, "lights.3.0": 1.0, "lights.3.1": 0.4}, 0.0)
        assert said == [
            "lights: there is no universe 64000; they are 1 to 63999",
            "lights: there is no channel 513 in universe 1; they are 1 to 512",
            "lights: there is no channel 0 in universe 1; they are 1 to 512",
        ]
        levels = node.until(lambda _, levels: levels[511])
        assert (levels[0], levels[511]) == (102, 255)
        for universe in range(MOST_UNIVERSES + 5):
            sender.send({"lights.4.universe": universe + 1.0, "lights.4.0": 1.0}, 0.0)
        assert said[3:] == [f"lights: at most {MOST_UNIVERSES} universes are sent; others are left out"]


def test_without_an_address_that_is_said_and_nothing_starts() -> None:
    said: list[str] = []
    with sending(mention=said.append) as sender:
        for _ in range(2):
            sender.send({"lights.0": 1.0}, 0.0)
            sender.values(())
        assert len(said) == 1
        assert "--lights" in said[0]
        assert sender._child is None


def test_a_process_that_is_killed_is_started_again_with_the_same_levels() -> None:
    restarts: list[str] = []
    with Node() as node, sending(at(node), restarted=lambda process, words: restarts.append(process)) as sender:
        sender.send({"lights.0": 1.0}, 0.0)
        node.next()
        deadline = time.monotonic() + PATIENCE
        while sender._child is None:
            assert time.monotonic() < deadline
        sender._child.kill()
        while not restarts:
            assert time.monotonic() < deadline
        assert restarts == ["lights"]
        # A new process counts from 0.
        while node.next()[2] != 0:
            pass
        assert node.next()[1][0] == 255


def test_a_hundred_receivers_that_die_are_not_noticed() -> None:
    said: list[str] = []
    with Node() as node:
        dying = LightAddress("sacn", "127.0.0.1", free_port(socket.SOCK_DGRAM))
        with sending(at(node), dying, mention=said.append) as sender:
            sender.send({"lights.0": 1.0}, 0.0)
            node.next()
            for number in range(100):
                with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
                    receiver.bind(("127.0.0.1", dying.port))
                    if number % 25 == 0:
                        receiver.settimeout(PATIENCE)
                        assert len(receiver.recv(1024)) == 638
            assert node.next()[1][0] == 255
    assert said == []


def test_a_network_that_this_machine_is_not_in_is_told_and_the_others_get_their_levels() -> None:
    said: list[str] = []
    nowhere = LightAddress("sacn", "", 5568, "192.0.2.1")  # an address for examples, which no machine has
    with Node() as node, sending(nowhere, at(node), mention=said.append) as sender:
        sender.send({"lights.0": 1.0}, 0.0)
        assert node.next()[1][0] == 255
        deadline = time.monotonic() + PATIENCE
        while not said:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert len(said) == 1
    assert "nothing goes to sacn@192.0.2.1" in said[0] or "nothing reaches sacn@192.0.2.1" in said[0]


def test_a_port_that_another_program_has_taken_is_none_of_ours() -> None:
    """Receivers have the ports of the standards, also on this machine; a sender needs none of its own."""
    taken = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
    try:
        for each, port in zip(taken, (5568, 6454), strict=True):
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as receivers of multicast do
            each.bind(("127.0.0.1", port))
            each.settimeout(PATIENCE)
        with sending(LightAddress("sacn", "127.0.0.1", 5568), LightAddress("artnet", "127.0.0.1", 6454)) as sender:
            sender.send({"lights.0": 1.0}, 0.0)
            assert [len(each.recv(1024)) for each in taken] == [638, 530]
    finally:
        for each in taken:
            each.close()


def test_another_implementation_of_sacn_receives_it() -> None:
    """`sacn` from PyPI, which joins the group of a universe, and watches that packets come in their order."""
    sacn = pytest.importorskip("sacn")
    found: list[tuple[int, ...]] = []
    # On Linux, the address only says by which interface groups are joined.
    receiver = sacn.sACNreceiver(bind_address="127.0.0.1")
    receiver.register_listener("universe", lambda packet: found.append(packet.dmxData), universe=7)
    receiver.start()
    try:
        receiver.join_multicast(7)
        with sending(LightAddress("sacn", "", 5568, "127.0.0.1")) as sender:
            deadline = time.monotonic() + PATIENCE
            for level in (1.0, 0.5):
                sender.send({"lights.universe": 7.0, "lights.at": 2.0, "lights.0": level}, 0.0)
                while not (found and found[-1][1] == round(level * 255)):
                    assert time.monotonic() < deadline
                    time.sleep(0.01)
            assert len(found[-1]) == 512
            assert receiver.get_possible_universes() == (7,)
    finally:
        receiver.stop()


def test_another_implementation_of_artnet_receives_it() -> None:
    """`stupidArtnet` from PyPI."""
    artnet = pytest.importorskip("stupidArtnet")
    port = free_port(socket.SOCK_DGRAM)
    server = artnet.StupidArtnetServer(port=port)
    try:
        listener = server.register_listener(universe=7, sub=1, is_simplified=False)
        with sending(LightAddress("artnet", "127.0.0.1", port)) as sender:
            deadline = time.monotonic() + PATIENCE
            for level in (1.0, 0.5):
                # The net, the sub-net and the universe are parts of one number.
                sender.send({"lights.universe": 16.0 + 7, "lights.at": 2.0, "lights.0": level}, 0.0)
                while (server.get_buffer(listener) or [0, 0])[1] != round(level * 255):
                    assert time.monotonic() < deadline
                    time.sleep(0.01)
    finally:
        server.close()


# In a performance.


def test_a_patch_plays_lights_and_saves_change_them(tmp_path: Path) -> None:
    patch = tmp_path / "patch.weft"
    lamps = "lights(universe: 4, at: 2, lamp: <0.2, 1, me@x> * me@y)\n"
    patch.write_text(QUIET + lamps)
    with Node() as node:
        with Performance(patch, "--headless", "--no-audio", "--lights", f"sacn:127.0.0.1:{node.port}") as performance:
            levels = node.until(lambda universe, levels: universe == 4 and any(levels))
            assert levels[:5] == bytes([0, 26, 128, 64, 0])
            performance.save(QUIET + lamps.replace("0.2", "1"))
            node.until(lambda _, levels: levels[1] == 128)
            # A mistake leaves them as they are.
            performance.save(QUIET + lamps.replace("me@y", "nothing"))
            performance.wait_for("error")
            assert node.next()[1][1] == 128
            performance.save(QUIET)
            node.until(lambda _, levels: not any(levels))
            performance.save(QUIET + lamps)
            node.until(lambda _, levels: any(levels))
            performance.process.terminate()
            assert performance.ended() == 0
        while not node.next()[3]:
            pass
        assert not any(node.next()[1])


def test_a_patch_cannot_name_a_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    patch = tmp_path / "patch.weft"
    for words in ('"sacn:10.0.0.1", 1', '1, to: "10.0.0.1"', 'universe: "10.0.0.1", 1'):
        patch.write_text(f"lights({words})\n")
        assert main(["check", str(patch)]) == 1
        assert "error" in capsys.readouterr().err


@pytest.mark.parametrize("address", ["dmx", "artnet", "sacn:a:b"])
def test_a_wrong_address_is_a_mistake_in_the_command(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--lights", address]) == 2
    assert "sacn@INTERFACE" in capsys.readouterr().err
