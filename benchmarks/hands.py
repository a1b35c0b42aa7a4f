"""How soon an OSC message is in the picture and in the sound, and what a flood of messages costs the frames.

    .venv/bin/python -m benchmarks.hands [--messages 200] [--seconds 5] [--fps 60]

A patch sends back by `osc_send` what it has received. It does so when the frame with the number has been computed, from
the number itself, and from a sound that is made of it, of which a frame reads the sample that is heard at its time.
"""

from __future__ import annotations

import argparse
import json
import random
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any, TypeAlias

from weft.osc_packets import message, read_message

HERE = "127.0.0.1"
BLOCK, RATE = 512, 48000

Flood: TypeAlias = Callable[[], Iterable[list[bytes]]]
"""What is sent, in groups of packets."""

PATCH = """\
me<width> = 320; me<height> = 180
probe = osc("/probe")
heard = prev(heard) * 0 + probe
audio(heard * 0.0001)
osc_send("/picture", probe)
osc_send("/sound", heard)
wave = sin(me@x * 20 + me@time * 3) * cos(me@y * 14 - me@time) + noise(me@x * 8, me@y * 8, me@time)
display(wave, wave * probe, 0.5)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=5, help="of each flood")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--fps", type=float, default=60)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, Performance(Path(folder), asked.fps) as performance:
        performance.settle()
        print(f"a frame lasts {1000 / asked.fps:.1f} ms, and a block of sound {BLOCK / RATE * 1000:.1f} ms")
        for address in ("/picture", "/sound"):
            milliseconds = sorted(performance.round_trips(address, asked.messages))
            print(f"message to {address[1:]}: {figures(milliseconds)} ms")
        for name, flood in FLOODS.items():
            compare(performance, name, flood, asked.seconds, asked.rounds)


def compare(performance: Performance, name: str, flood: Flood, seconds: float, rounds: int) -> None:
    """Sends a flood to the performance and to a port that nobody reads, in turns: sending takes a processor as well."""
    slices: dict[bool, list[Slice]] = {True: [], False: []}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as nobody:
        nobody.bind((HERE, 0))
        for _ in range(rounds):
            for meant in (False, True):
                to = performance.to if meant else nobody.getsockname()
                slices[meant].append(performance.flood(flood, seconds, to))
    found = slices[True]
    sent, took = sum(each.sent for each in found), sum(each.took for each in found)
    read, malformed, dropped = (sum(each.counts[kind] for each in found) for kind in KINDS)
    print(f"{name}: {sent / took:,.0f} packets a second; {read / took:,.0f} messages a second were read, "
          f"{malformed / took:,.0f} packets malformed, {dropped / took:,.0f} dropped")  # fmt: skip
    for meant, words in ((True, "frames in the flood"), (False, "while it went elsewhere")):
        frames = [event for each in slices[meant] for event in each.frames]
        p50, p99 = (statistics.median(event[kind] for event in frames) for kind in ("p50_ms", "p99_ms"))
        missed, due = sum(each["dropped"] for each in frames), sum(round(each["fps"]) for each in frames)
        print(f"    {words}: median {p50:.2f} ms, 99 % {p99:.2f} ms, {missed} of {due + missed} missed")


def figures(ordered: list[float]) -> str:
    return ", ".join(f"{share} {ordered[min(len(ordered) - 1, int(len(ordered) * at))]:.1f}"
                     for share, at in (("median", 0.5), ("95 %", 0.95), ("most", 1)))  # fmt: skip


KINDS = ("messages", "malformed", "dropped")


@dataclass(frozen=True)
class Slice:
    """Some seconds of a flood: the packets sent, what was read, and the events about frames."""

    sent: int
    took: float
    counts: dict[str, int]
    frames: list[dict[str, Any]]


class Performance:
    """A performance in a process of its own, to which messages go."""

    def __init__(self, folder: Path, fps: float) -> None:
        patch = folder / "patch.weft"
        patch.write_text(PATCH)
        self._events = folder / "events"
        self._echo = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._echo.bind((HERE, 0))
        self._echo.settimeout(5)
        command = [sys.executable, "-m", "weft", "run", str(patch), "--headless", "--events", str(self._events),
                   "--osc", "0", "--osc-send", str(self._echo.getsockname()[1]), "--fps", str(fps), "--no-values",
                   "--buffer", str(BLOCK)]  # fmt: skip
        self._process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        self.to = (HERE, 0)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    def __enter__(self) -> Performance:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()

    def events(self, name: str) -> list[dict[str, Any]]:
        if not self._events.exists():
            return []
        lines = self._events.read_text().splitlines(keepends=True)
        found = (json.loads(line) for line in lines if line.endswith("\n"))
        return [event for event in found if event["event"] == name]

    def settle(self) -> None:
        """Waits until it plays, and its code does not get better any more."""
        deadline = time.monotonic() + 60
        while len(self.events("frames")) < 3:
            if time.monotonic() > deadline:
                raise SystemExit("the performance does not begin")
            time.sleep(0.1)
        self.to = (HERE, int(self.events("started")[0]["osc"].rpartition(":")[2]))

    def round_trips(self, address: str, count: int) -> Iterable[float]:
        """For several messages, the milliseconds until their number comes back."""
        for number in range(1, count + 1):
            # At any moment of a frame.
            time.sleep(random.uniform(0.05, 0.1))
            wanted = struct.unpack(">f", struct.pack(">f", number / 1000))[0]
            began = time.perf_counter()
            self._socket.sendto(message("/probe", [wanted]), self.to)
            while read_message(self._echo.recv(1 << 16)) != (address, (wanted,)):
                pass
            yield (time.perf_counter() - began) * 1000

    def flood(self, packets: Flood, seconds: float, to: Any) -> Slice:
        """Sends packets of a kind for some seconds."""
        before = {kind: len(self.events(kind)) for kind in ("frames", "osc")}
        began, sent = time.monotonic(), 0
        for group in packets():
            for packet in group:
                self._socket.sendto(packet, to)
            sent += len(group)
            if time.monotonic() > began + seconds:
                break
        took = time.monotonic() - began
        # The first of the events tells of a second that began before.
        frames = self.events("frames")[before["frames"] + 1 :]
        time.sleep(1.5)
        counts = self.events("osc")[before["osc"] :]
        return Slice(sent, took, {kind: sum(event[kind] for event in counts) for kind in KINDS}, frames)


# Floods, in groups of packets.


def paced(packets: list[bytes], each_second: int) -> Iterable[list[bytes]]:
    """The packets over and over, so many in each second."""
    began, sent = time.monotonic(), 0
    while True:
        due = round((time.monotonic() - began) * each_second)
        yield [packets[number % len(packets)] for number in range(sent, due)]
        sent = max(sent, due)
        time.sleep(0.001)


def bundle(*parts: bytes) -> bytes:
    return b"#bundle\0" + bytes(7) + b"\1" + b"".join(struct.pack(">i", len(part)) + part for part in parts)


def nested() -> bytes:
    deep = message("/deep", [1])
    while len(deep) < 60_000:
        deep = bundle(deep)
    return deep


FADERS = [message(f"/fader/{number}", [number / 100]) for number in range(100)]

FLOODS: dict[str, Flood] = {
    "10,000 messages a second": lambda: paced(FADERS, 10_000),
    "the same, one in ten malformed": lambda: paced([*FADERS[:9], b"/x\0\0,f"], 10_000),
    "60 kB bundles of 2500 messages": lambda: paced([bundle(*FADERS * 25)], 20),
    "60 kB bundles, 3000 deep": lambda: paced([nested()], 100),
    "as fast as one process can": lambda: repeat(FADERS),
}

if __name__ == "__main__":
    main()
