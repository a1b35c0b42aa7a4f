"""A loudspeaker for the tests of a process, and the sound process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.sound import TONE, SoundServer, private_sound
from weft.runtime.sound.player import SoundProcess
from weft.runtime.sound.renderer import SoundEvent, SoundOptions

# Long enough for a machine with other work; a test that waits this long has failed.
_PATIENCE = 30.0


@pytest.fixture(scope="session")
def loudspeaker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SoundServer]:
    """A loudspeaker that plays."""
    with private_sound(tmp_path_factory.mktemp("sound") / "server") as server:
        server.start()
        yield server


@pytest.fixture
def silent_loudspeaker(tmp_path: Path) -> Iterator[SoundServer]:
    """A loudspeaker of the test's own, which is to be started."""
    with private_sound(tmp_path / "server") as server:
        yield server


class Player:
    """The player's side: a clock that runs, and a frame now and then."""

    def __init__(self, options: SoundOptions) -> None:
        self.sound = SoundProcess(options)
        self.events: list[SoundEvent] = []
        self.paused = False
        self.restarts = 0
        self._began = time.monotonic()

    def now(self) -> float:
        return time.monotonic() - self._began

    def frame(self) -> None:
        self.sound.controls.write(self.now(), {}, self.paused, self.restarts)
        self.events += self.sound.events()
        time.sleep(1 / 60)

    def until(self, happens: Callable[[], object]) -> None:
        """Plays until something happens."""
        deadline = self.now() + _PATIENCE
        while not happens():
            assert self.now() < deadline, self.events
            self.frame()

    def play(self, seconds: float, look: Callable[[], None] = lambda: None) -> None:
        """Continues to play for a time, and checks after each frame."""
        end = self.now() + seconds
        while self.now() < end:
            self.frame()
            look()

    def hears(self, *kinds: str) -> bool:
        """Whether these are the events so far."""
        return [event.kind for event in self.events] == list(kinds)


@pytest.fixture
def player() -> Iterator[Player]:
    """Plays nothing yet. Its blocks are long, so that a machine that stands still for a moment, as one does that is
    shared with others, is not heard."""
    yield from _playing(SoundOptions(frames=2048, renderer=TONE))


@pytest.fixture
def quick_player() -> Iterator[Player]:
    """The same, with the blocks that a performer has."""
    yield from _playing(SoundOptions(renderer=TONE))


def _playing(options: SoundOptions) -> Iterator[Player]:
    player = Player(options)
    yield player
    player.sound.close()
