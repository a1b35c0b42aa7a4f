"""OSC by real packets: what a server makes of them, what a sender sends, and a performance with another process."""

import json
import math
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pythonosc.osc_bundle_builder import OscBundleBuilder
from pythonosc.osc_message import OscMessage
from pythonosc.osc_message_builder import OscMessageBuilder
from pythonosc.udp_client import SimpleUDPClient

from tests.support.performance import PATIENCE, Performance
from tests.support.ports import free_port
from weft.errors import WeftError
from weft.names import SentName
from weft.runtime.hands.osc import MOST_ADDRESSES, RATE, NoOscServer, OscAddress, OscReporter, OscSender, OscServer
from weft.runtime.hands.parameters import ParameterBank, ParameterSpec

HERE = "127.0.0.1"


def message(address: str, *numbers: object) -> bytes:
    builder = OscMessageBuilder(address)
    for number in numbers:
        builder.add_arg(number)
    return bytes(builder.build().dgram)


def bundle(due: float, *messages: bytes) -> bytes:
    head = bytes(OscBundleBuilder(due).build().dgram)
    return head + b"".join(struct.pack(">i", len(each)) + each for each in messages)


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


class Listening:
    """A server, with all that it reports."""

    def __init__(self) -> None:
        self.bank = ParameterBank()
        self.lines: list[str] = []
        self.events: list[dict[str, Any]] = []
        self.commands: list[tuple[str, str]] = []
        outside = OscReporter(self.lines.append, lambda event, **fields: self.events.append({"event": event, **fields}))
        self.server = OscServer(OscAddress(HERE, 0), self.bank, lambda *each: self.commands.append(each), outside)
        self.client = SimpleUDPClient(HERE, self.server.address.port)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._last = 0
        self.program: tuple[str, ...] = ()
        """What is read in every frame besides."""
        self.server.start()

    def close(self) -> None:
        self.server.close()
        self._socket.close()
        self.client._sock.close()

    def send(self, *packets: bytes) -> None:
        """Sends packets, and waits until all of them have been taken in."""
        self._last += 1
        for packet in (*packets, message("/last", self._last)):
            self._socket.sendto(packet, (HERE, self.server.address.port))
        until(lambda: self.read("/last", *self.program)[0] == self._last)

    def counted(self, kind: str) -> int:
        """How many of a kind events have told of so far."""
        assert {event["event"] for event in self.events} <= {"osc"}
        return sum(event[kind] for event in self.events)

    def read(self, *addresses: str | tuple[str, int]) -> list[float | None]:
        """What a frame reads."""
        args = [each if isinstance(each, tuple) else (each, 0) for each in addresses]
        names = [SentName("osc", (address, float(index)), "v") for address, index in args]
        found = self.server.values(names)
        return [found.get(name) for name in names]


@pytest.fixture
def listening() -> Iterator[Listening]:
    with closing(Listening()) as made:
        yield made


def test_the_last_number_of_each_place_is_read(listening: Listening) -> None:
    listening.send(message("/a", 0.25, 7), message("/a", 0.5), message("/b", True), message("/c", "text", 3))
    assert listening.read("/a", ("/a", 1), ("/a", 2), "/b", "/c", ("/c", 1), "/d") == [0.5, 7, None, 1, None, 3, None]
    listening.send(message("/a", math.nan), message("/b", False), message("/c", "another text", 4))
    assert listening.read("/a", "/b", ("/c", 1)) == [0.5, 0, 4]
    assert listening.lines == [
        "OSC: /c has a text, which is left out", "OSC: /a has nan, which is left out",
    ]  # fmt: skip


def test_what_is_shorter_than_a_frame_is_seen(listening: Listening) -> None:
    listening.send(message("/button", 0.75), message("/button", 0), message("/bang"))
    frames = [listening.read("/button", "/bang") for _ in range(3)]
    assert frames == [[0.75, 1], [0, 0], [0, 0]]
    # Held over a frame, and pressed again before the next one: it was up for a frame.
    listening.send(message("/button", 1))
    assert listening.read("/button") == [1]
    listening.send(message("/button", 0), message("/button", 1), message("/button", 0))
    assert [listening.read("/button")[0] for _ in range(3)] == [0, 1, 0]
    assert listening.read("/button", "/button") == [0, 0]


def test_a_number_is_the_same_wherever_a_frame_reads_it(listening: Listening) -> None:
    listening.send(message("/bang"))
    assert listening.read("/bang", "/bang") == [1, 1]


def test_the_last_addresses_are_remembered_and_those_that_are_read(listening: Listening) -> None:
    listening.program = ("/read",)
    listening.send(message("/read", 5), message("/not/read", 5))
    for first in range(0, MOST_ADDRESSES + 10, 100):
        listening.send(bundle(1, *(message(f"/{n}", n) for n in range(first, first + 100))))
    assert listening.read("/read", "/not/read", "/4000", f"/{MOST_ADDRESSES}") == [5, None, 4000, MOST_ADDRESSES]
    assert len(listening.server._known) == MOST_ADDRESSES


def test_bundles_are_applied_at_their_time(listening: Listening) -> None:
    for ahead in (0.3, 1.0, 3.0, 9.0):
        due = time.time() + ahead
        listening.send(bundle(due, message("/a", 2)), bundle(due - 9, message("/a", 1)))
        # On a busy machine it may be due before it is read.
        if time.time() < due:
            break
    listening.send(bundle(due + 900, message("/b", 1)))
    while True:
        found = listening.read("/a", "/b")
        if time.time() >= due:
            break
        assert found == [1, None]
    until(lambda: listening.read("/a", "/b") == [2, None])
    assert time.time() >= due - 0.001
    (line,) = listening.lines
    assert "do the clocks of both machines agree" in line


def test_what_waits_is_bounded(listening: Listening) -> None:
    waiting = [message("/a", n) for n in range(1000)]
    listening.send(*(bundle(time.time() + 50, *waiting) for _ in range(6)), bundle(time.time() + 50, bytes(60_000)))
    assert len(listening.server._waiting) < 5000
    assert any("too many bundles" in line for line in listening.lines)


SPECS = (
    ParameterSpec("slider", "speed", ("v",), (0.5,), 0, 2, "speed", False, "p.weft", 1),
    ParameterSpec("toggle", "on", ("v",), (0,), 0, 1, "on", False, "p.weft", 2),
    ParameterSpec("xy", "spot", ("x", "y"), (0.5, 0.5), 0, 1, "spot", False, "p.weft", 3),
)


def test_parameters_are_set_by_name_output_and_order(listening: Listening) -> None:
    listening.bank.adopt(SPECS)
    listening.send(message("/param/speed", 1.25), message("/param/on", 1), message("/param/spot", 0.25, 0.75))
    assert [listening.bank.value(name) for name in ("speed@v", "on@v", "spot@x", "spot@y")] == [1.25, 1, 0.25, 0.75]
    listening.send(message("/param/spot/y", 0.5), message("/param/spot", "text", 1), message("/param/speed/v", 0.5))
    assert [listening.bank.value(name) for name in ("speed@v", "spot@x", "spot@y")] == [0.5, 0.25, 1]
    assert listening.read("/param/speed/v") == [0.5]


def test_what_is_no_parameter_or_out_of_range_is_told_once(listening: Listening) -> None:
    listening.bank.adopt(SPECS)
    for _ in range(2):
        listening.send(message("/param/speed", 3), message("/param/sped", 1), message("/param/spot/z", 1),
                       message("/param/speed", -1.0, 1.0))  # fmt: skip
    assert listening.bank.value("speed@v") == 0
    assert listening.lines == [
        "OSC: /param/speed runs from 0 to 2; what is outside is moved there",
        "OSC: there is no parameter sped; there are speed, on, spot",
        "OSC: there is no parameter spot/z; its outputs are x, y",
        "OSC: /param/speed takes 1 of 2 numbers",
    ]


def test_many_mistakes_are_told_in_few_lines(listening: Listening) -> None:
    listening.send(*(message(f"/param/{n}", n) for n in range(50)))
    assert len(listening.lines) == 9
    assert listening.lines[-1] == "OSC: further messages about unknown parameters are not shown"


def test_commands_happen_when_a_button_goes_down(listening: Listening) -> None:
    listening.send(message("/weft/pause", 1.0), message("/weft/pause", 0.0), message("/weft/restart"),
                   message("/weft/load", "other.weft"), message("/weft/load"), message("/weft/stop", 1))  # fmt: skip
    assert listening.commands == [("pause", ""), ("restart", ""), ("load", "other.weft")]
    assert [line.partition(";")[0] for line in listening.lines] == [
        "OSC: /weft/load needs the name of a patch, as text", "OSC: there is no /weft/stop"
    ]


def test_packets_that_cannot_be_read_are_counted(listening: Listening) -> None:
    deep = message("/deep", 0.5)
    while len(deep) < 60_000:
        deep = bundle(1, deep)
    listening.send(b"", b"?", bytes(65_507), b"/a\0\0,f", bundle(1, message("/before", 1), b"/"), deep,
                   bundle(time.time() + 0.1, b"/a\0\0,f"))  # fmt: skip
    assert listening.read("/before", "/deep") == [1, 0.5]
    # On a busy machine, it takes more than the second of one event.
    until(lambda: listening.read() or listening.counted("malformed") == 5)
    assert (listening.counted("messages"), listening.counted("dropped")) == (3, 0)
    assert [each for event in listening.events for each in event["addresses"]] == ["/before", "/deep", "/last"]
    assert all("cannot be read" in line for line in listening.lines)


def test_a_pattern_is_no_address(listening: Listening) -> None:
    listening.send(message("/fader/1", 0.5), message("/fader/*", 1), message("/fader/*", 1))
    assert listening.read("/fader/1") == [0.5]
    assert listening.lines == ["OSC: /fader/* is no address that a patch can read, or a pattern, and is left out"]


def test_a_server_that_is_closed_frees_its_port(listening: Listening) -> None:
    with pytest.raises(WeftError) as failure:
        OscServer(listening.server.address, listening.bank, lambda *_: None, OscReporter())
    (problem,) = failure.value.diagnostics
    assert (problem.code, str(listening.server.address) in problem.message) == ("osc-port", True)
    assert "another program has this port" in (problem.hint or "")
    free = int((problem.hint or "").split()[-3])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind((HERE, free))
    listening.server.close()
    OscServer(listening.server.address, listening.bank, lambda *_: None, OscReporter()).close()


def test_without_a_server_a_patch_that_reads_is_told_how_to_get_one() -> None:
    lines: list[str] = []
    nothing = NoOscServer(OscReporter(lines.append))
    assert (nothing.values([]), lines) == ({}, [])
    for _ in range(2):
        assert nothing.values([SentName("osc", ("/a", 0.0), "v")]) == {}
    (line,) = lines
    assert "--osc 9000" in line


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("9000", (HERE, 9000)), ("stage.local:1", ("stage.local", 1)), ("[::1]:65535", ("::1", 65535)), ("65536", None),
        ("x", None), ("", None), (":9", None), ("::1:9000", None), ("a:b", None), ("-1", None), ("٣", None),
    ],
)  # fmt: skip
def test_a_place_is_a_port_or_a_host_with_one(text: str, found: tuple[str, int] | None) -> None:
    assert OscAddress.parse(text) == found
    if found is not None:
        assert OscAddress.parse(str(OscAddress.parse(text))) == found


# What is sent.


class Receiver:
    """A socket of another program, at a port of its own or a given one."""

    def __init__(self, port: int = 0) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((HERE, port))
        self.socket.settimeout(0.05)
        self.port: int = self.socket.getsockname()[1]

    def received(self) -> list[tuple[str, list[float]]]:
        """All that has come since the last call."""
        found = []
        try:
            while True:
                parsed = OscMessage(self.socket.recv(1 << 16))
                found.append((parsed.address, parsed.params))
        except TimeoutError:
            return found

    def close(self) -> None:
        self.socket.close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with closing(Receiver()) as made:
        yield made


def computed(*messages: tuple[str, list[float]]) -> dict[str, float]:
    """What a subgraph with these messages gives in a frame."""
    return {f"osc_send:{address}.{n}": number for address, numbers in messages for n, number in enumerate(numbers)}


def test_a_message_is_sent_when_a_number_changes(receiver: Receiver) -> None:
    with closing(OscSender(OscAddress(HERE, receiver.port), OscReporter())) as sender:
        for frame, number in enumerate([1, 1, 2, 2, 1]):
            sender.send(computed(("/a", [number, 0.5]), ("/b.0", [7])), frame / RATE)
        sender.send(computed(("/d", [math.nan, 1e300, -math.inf])), 1)
    largest = float(np.finfo(np.float32).max)
    assert receiver.received() == [
        ("/a", [1, 0.5]), ("/b.0", [7]), ("/a", [2, 0.5]), ("/a", [1, 0.5]), ("/d", [0, largest, 0]),
    ]  # fmt: skip


@pytest.mark.parametrize("fps", [30.0, 60.0, 61.0, 144.0, 1000.0])
def test_of_many_frames_so_many_are_sent(receiver: Receiver, fps: float) -> None:
    frames = round(fps)
    with closing(OscSender(OscAddress(HERE, receiver.port), OscReporter())) as sender:
        for frame in range(frames):
            sender.send(computed(("/a", [frame])), frame / fps)
        # What came too early is sent when it may be.
        sender.send(computed(("/a", [frames - 1])), 2)
    found = receiver.received()
    assert min(fps, RATE) <= len(found) + 1 <= min(fps, RATE) + 3
    assert found[-1] == ("/a", [frames - 1])


def test_a_receiver_that_comes_later_gets_all_that_holds() -> None:
    lines, port = list[str](), free_port(socket.SOCK_DGRAM)
    with closing(OscSender(OscAddress(HERE, port), OscReporter(lines.append))) as sender:
        for tenth in range(30):
            sender.send(computed(("/a", [1]), ("/b", [2])), tenth / 10)
            time.sleep(0.001)
        with closing(Receiver(port)) as late:
            for tenth in range(30, 60):
                sender.send(computed(("/a", [1]), ("/b", [2])), tenth / 10)
            assert late.received() == [("/a", [1]), ("/b", [2])]
    (line,) = lines
    assert line.startswith(f"OSC: what osc_send sends does not reach {HERE}:{port}: nothing listens there; ")


def test_a_host_that_is_unknown_is_told_before_anything_plays() -> None:
    with pytest.raises(WeftError) as failure:
        OscSender(OscAddress("nowhere.invalid", 9001), OscReporter())
    assert '--osc-send: the host "nowhere.invalid" is not found' in failure.value.diagnostics[0].message


# A performance.

PATCH = """\
me<width> = 16; me<height> = 9
#slider speed<v> = 0, 2, 0.5 "speed"
presses = prev(presses) + osc("/button")
compute(osc("/fader"), presses, speed, me@time)
osc_send("/echo", osc("/fader") * 2, speed)
osc_send("/fixed.0/1", <3, 4>)
display(me@x)
"""

CLIENT = """\
import json, sys
from pythonosc.udp_client import SimpleUDPClient
client = SimpleUDPClient("127.0.0.1", int(sys.argv[1]))
for line in sys.stdin:
    client.send_message(*json.loads(line))
"""


class Other:
    """Another program that sends, with python-osc."""

    def __init__(self, port: int) -> None:
        self._process = subprocess.Popen([sys.executable, "-c", CLIENT, str(port)], stdin=subprocess.PIPE, text=True)

    def send(self, address: str, *arguments: object) -> None:
        assert self._process.stdin is not None
        print(json.dumps([address, arguments]), file=self._process.stdin, flush=True)

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert self._process.wait(PATIENCE) == 0


def computes(*expected: float) -> Callable[[dict[str, object]], bool]:
    """Whether an event tells of these values, the first of those that are computed."""

    def matches(event: dict[str, object]) -> bool:
        values = event["values"]
        assert isinstance(values, list)
        return values[: len(expected)] == pytest.approx(list(expected))

    return matches


def test_another_program_plays_a_patch(tmp_path: Path, receiver: Receiver) -> None:
    patch = tmp_path / "patch.weft"
    patch.write_text(PATCH)
    options = ("--headless", "--no-audio", "--osc", "0", "--osc-send", str(receiver.port))
    with Performance(patch, *options) as performance:
        started = performance.wait_for("started")
        port = started["osc"].rpartition(":")[2]
        assert f"OSC at {HERE}:{port}" in performance.stderr
        with closing(Other(int(port))) as other:
            other.send("/fader", 0.25)
            other.send("/param/speed", 1.5)
            for _ in range(3):
                other.send("/button", 1)
                other.send("/button", 0)
            other.send("/later", 0.125)
            performance.wait_for("compute", when=computes(0.25))
            performance.wait_for("parameters", when=lambda event: event["values"] == {"speed@v": 1.5})
            # What came before a save is there after it.
            performance.save(PATCH.replace('"/fader") * 2', '"/later") * 2').replace("me@time)", 'osc("/later"))'))
            final = performance.wait_for("compute", when=lambda event: event["values"][3] == 0.125)
            assert final["values"][:3:2] == [0.25, 1.5]
            assert 1 <= final["values"][1] <= 3
            other.send("/weft/pause")
            other.send("/weft/screenshot", 1)
            other.send("/weft/load", "nothing")
            until(lambda: "nothing.weft cannot be played: there is no such file" in performance.stderr)
            assert "paused" in performance.stderr
            until(lambda: "screenshot: " in performance.stderr)
            (tmp_path / "second.weft").write_text('compute(osc("/fader") + 4)\n')
            other.send("/weft/load", "second")
            other.send("/weft/pause")
            performance.wait_for("compute", when=computes(4.25))
    received = receiver.received()
    assert received.count(("/fixed.0/1", [3, 4])) == 1
    sent = [numbers for address, numbers in received if address == "/echo"]
    assert sent[0] == [0, 0.5]
    assert [0.5, 1.5] in sent
    assert sent[-1] == [0.25, 1.5]
    assert len(sent) == len({*map(tuple, sent)})


def test_a_port_that_is_taken_is_one_line(tmp_path: Path, receiver: Receiver) -> None:
    patch = tmp_path / "patch.weft"
    patch.write_text(PATCH)
    with Performance(patch, "--headless", "--osc", str(receiver.port)) as performance:
        assert performance.process.wait(PATIENCE) == 3
        (line,) = performance.stderr.splitlines()
    assert line.startswith(f"weft: weft cannot listen for OSC at {HERE}:{receiver.port}: Address already in use (")


@pytest.mark.long
def test_a_flood_of_everything_ends_nothing(tmp_path: Path) -> None:
    patch = tmp_path / "patch.weft"
    patch.write_text(PATCH)
    rng = np.random.default_rng(7)
    deep = message("/deep", 1)
    while len(deep) < 60_000:
        deep = bundle(1, deep)
    wide = bundle(1, *(message(f"/{n}", n) for n in range(2500)))
    noise = [rng.bytes(int(size)) for size in rng.integers(0, 2000, 50)]
    late = [bundle(time.time() + 3600, message("/never", 1))] * 50
    packets = [deep, wide, *noise, *late, *(message("/fader", n) for n in range(200)), message("/param/speed", 99)]
    with Performance(patch, "--headless", "--no-audio", "--osc", "0") as performance:
        port = int(performance.wait_for("started")["osc"].rpartition(":")[2])
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as attacker:
            began = time.monotonic()
            while time.monotonic() < began + 3:
                for packet in packets:
                    attacker.sendto(packet, (HERE, port))
                time.sleep(0.02)
            shown = performance.count("frames")

            def has_all_come() -> bool:
                # Of what comes faster than it is read, any packet may be lost.
                for packet in (noise[0], message("/param/speed", 99), message("/fader", 0.75)):
                    attacker.sendto(packet, (HERE, port))
                time.sleep(0.05)
                malformed = sum(event["malformed"] for event in performance.events if event["event"] == "osc")
                computed = [event["values"][0] for event in performance.events if event["event"] == "compute"]
                return 0.75 in computed and malformed > 50 and "speed runs from 0 to 2" in performance.stderr

            until(has_all_come)
        assert shown >= 1
        assert len([line for line in performance.stderr.splitlines() if "OSC: " in line]) < 30


HANDS = """\
#button hit<v> "hit"
#menu wave<v> = 0, "sine", "saw", "square"
#use std.control
compute(tally(hit@count), wave)
"""


def test_buttons_and_menus_are_set_by_another_program(tmp_path: Path) -> None:
    patch = tmp_path / "patch.weft"
    patch.write_text(HANDS)
    with Performance(patch, "--headless", "--no-audio", "--osc", "0") as performance:
        port = performance.wait_for("started")["osc"].rpartition(":")[2]
        performance.wait_for("compute")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for packet in (*[message("/param/hit", 1)] * 4, message("/param/wave", 2)):
                sender.sendto(packet, (HERE, int(port)))
        performance.wait_for("compute", when=computes(4, 2))


COUNTS = """\
#use std.control
kick = osc("/kick")
heard<n> = tally(kick@count)
compute(tally(kick@count), kick@count, heard@n, since(kick@count), rise(kick@count))
audio(perc(kick@count) * 0.1 + heard@n * 0.001)
"""


@pytest.mark.long
def test_every_message_counts_in_a_picture_and_in_a_sound(tmp_path: Path) -> None:
    """A sequencer sends the same number again and again, and never a 0; and several messages in one frame."""
    patch = tmp_path / "patch.weft"
    patch.write_text(COUNTS)
    with Performance(patch, "--headless", "--osc", "0") as performance:
        port = performance.wait_for("started")["osc"].rpartition(":")[2]
        performance.wait_for("audio")  # what comes before a sound plays, it does not hear
        with closing(Other(int(port))) as other:
            for number in range(1, 5):
                other.send("/kick", 1)
                performance.wait_for("compute", when=computes(number, number, number))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.sendto(bundle(1, *[message("/kick", 1)] * 3, message("/kick", 0)), (HERE, int(port)))
        performance.wait_for("compute", when=computes(7, 7, 7))
        assert 0 <= performance.latest("compute")["values"][3] < PATIENCE
        # To words that are new in the text, nothing that came before has just come.
        performance.save(COUNTS.replace("heard", "another").replace("compute(tally", "compute(10 - tally"))
        performance.wait_for("compute", when=computes(3, 7, 0))
