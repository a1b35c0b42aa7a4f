"""A display for the tests that open windows, terminals for those that draw in one, and patience for those that wait."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support.windows import private_display

if TYPE_CHECKING:
    from tests.support.pseudo_terminal import Player


@pytest.fixture(scope="session")
def display() -> Iterator[None]:
    """A display that nothing else uses."""
    with private_display():
        yield


@pytest.fixture
def eventually() -> Callable[..., None]:
    """Waits until a condition holds, calling `meanwhile` between looks; fails after a time."""

    def wait(
        condition: Callable[[], object], seconds: float = 5, meanwhile: Callable[[], object] = lambda: None
    ) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, "this has not come about in time"
            meanwhile()
            time.sleep(0.0005)

    return wait


@pytest.fixture
def start() -> Iterator[Callable[..., Player]]:
    from tests.support.pseudo_terminal import Player  # which is for systems with POSIX

    players: list[Player] = []

    def start(columns: int = 40, rows: int = 13, **environment: str) -> Player:
        player = Player(columns, rows, **environment)
        players.append(player)
        player.until(lambda: player.state)
        return player

    yield start
    for player in players:
        player.close()
