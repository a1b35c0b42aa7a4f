"""Tempo and beat in common with another process, by Ableton Link itself."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from weft.cli.console import exit_code_of
from weft.codes.rows import MISSING
from weft.errors import WeftError
from weft.runtime.hands.link import LinkPeer
from weft.runtime.hands.tempo import Tempo

BPM = 97.0

# Another program, which is there first. It says its tempo, and the beat at a moment of the clock that both have.
OTHER = f"""
import time, link
peer = link.Link({BPM})
peer.enabled = True
while True:
    time.sleep(0.05)
    state, moment = peer.captureSessionState(), time.monotonic()
    print(peer.numPeers(), state.tempo(), moment, state.beatAtTime(peer.clock().micros(), 4), flush=True)
"""


class Other:
    """That program."""

    def __init__(self) -> None:
        self.process = subprocess.Popen([sys.executable, "-c", OTHER], stdout=subprocess.PIPE, text=True)

    def says(self) -> tuple[float, ...]:
        """How many others there are for it, its tempo, a moment, and its beat then."""
        assert self.process.stdout is not None
        return tuple(map(float, self.process.stdout.readline().split()))


@pytest.fixture
def other() -> Iterator[Other]:
    pytest.importorskip("link", reason="the package LinkPython-extern is not installed")
    made = Other()
    yield made
    made.process.kill()
    made.process.communicate()


@pytest.mark.long
def test_it_follows_another_program_and_leads_it_by_a_tap(other: Other) -> None:
    first = other.says()
    assert first[:2] == (0, BPM)
    # Of two that are as old as each other, chance decides which one follows.
    while other.says()[2] < first[2] + 1.5:
        pass
    tempo, began = Tempo(120), time.monotonic()
    peer = LinkPeer(tempo)

    def play(happens: Callable[[], bool]) -> None:
        """Plays until something happens."""
        deadline = time.monotonic() + 30
        while not happens():
            assert time.monotonic() < deadline
            now = time.monotonic() - began
            peer.follow(now)
            tempo.advance(now, 0.05)
            time.sleep(0.01)

    def latest() -> tuple[float, ...]:
        said = other.says()
        while said[2] < time.monotonic() - 0.2:
            said = other.says()
        return said

    # Link needs a second or two to find others, and another one to agree with them.
    play(lambda: tempo.bpm == pytest.approx(BPM, rel=1e-4))
    joined = time.monotonic()
    play(lambda: time.monotonic() > joined + 1)
    assert (peer.peers, tempo.source) == (1, "link")
    # Where the beat will be once it has met that of the other one, which runs steadily.
    now = time.monotonic() - began
    while tempo.advance(now, 0.05) or now < 60:
        now += 0.05
    said = latest()
    later = 60 + began - said[2]
    apart = (tempo.beats.at(60.0) - said[3] - later * BPM / 60 + 2) % 4 - 2
    assert abs(apart) * 60 / BPM < 0.02
    for tap in range(4):
        tempo.tap(100 + tap * 60 / 140)
    play(lambda: latest()[1] == pytest.approx(140, rel=1e-4))
    peer.close()


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "link", None)
    with pytest.raises(WeftError) as caught:
        LinkPeer(Tempo())
    assert [(d.code, d.hint) for d in caught.value.diagnostics] == [("no-link", "pip install 'weft-live[link]'")]
    assert exit_code_of(caught.value.diagnostics) == MISSING
