"""The time of a performance: pauses, restarts, and a leader that it follows."""

from __future__ import annotations

import threading
import time
from itertools import pairwise

import pytest

from weft.runtime.hands.clock import Clock, Tick


class Hands:
    """A source of seconds that a test moves by hand."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def hands() -> Hands:
    return Hands()


def test_time_starts_at_0_and_runs_with_the_source(hands: Hands) -> None:
    clock = Clock(hands)
    assert clock.now() == 0
    hands.seconds += 2.5
    assert clock.now() == 2.5


def test_a_pause_holds_the_time(hands: Hands) -> None:
    clock = Clock(hands)
    hands.seconds += 1
    clock.pause()
    clock.pause()
    hands.seconds += 10
    assert clock.paused
    assert clock.now() == 1
    clock.resume()
    hands.seconds += 1
    assert not clock.paused
    assert clock.now() == 2


def test_a_restart_goes_to_0_and_keeps_the_pause(hands: Hands) -> None:
    clock = Clock(hands)
    clock.tick()
    hands.seconds += 3
    clock.pause()
    clock.restart()
    hands.seconds += 1
    assert clock.now() == 0
    clock.resume()
    hands.seconds += 1
    assert clock.tick() == Tick(0, 1.0, 0.0)


def test_ticks_carry_the_real_interval(hands: Hands) -> None:
    clock = Clock(hands)
    first = clock.tick()
    hands.seconds += 0.25
    second = clock.tick()
    clock.pause()
    hands.seconds += 1
    third = clock.tick()
    assert [first, second, third] == [Tick(0, 0.0, 0.0), Tick(1, 0.25, 0.25), Tick(2, 0.25, 0.0)]


@pytest.mark.parametrize("difference", [0.05, -0.05])
def test_a_leader_is_caught_up_with_slowly_and_exactly(hands: Hands, difference: float) -> None:
    clock = Clock(hands)
    times = []
    for _ in range(240):
        hands.seconds += 1 / 60
        clock.follow(hands.seconds - 1000 + difference)
        times.append(clock.now())
    steps = [b - a for a, b in pairwise(times)]
    assert all(0.0163 < step < 0.0171 for step in steps)
    assert times[-1] == pytest.approx(4 + difference, abs=1e-9)


def test_a_leader_that_starts_again_does_not_move_the_time_back(hands: Hands) -> None:
    clock = Clock(hands)
    hands.seconds += 100
    before = clock.now()
    clock.follow(0.0)
    hands.seconds += 1
    assert before < clock.now() < before + 1


def test_real_time_never_goes_back_under_many_threads() -> None:
    start = time.monotonic()
    clock = Clock()
    seen: list[list[float]] = [[] for _ in range(4)]

    def look(times: list[float]) -> None:
        for _ in range(2000):
            times.append(clock.now())
            clock.follow(times[-1] - 0.1)

    threads = [threading.Thread(target=look, args=[times]) for times in seen]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(times == sorted(times) for times in seen)
    assert clock.now() <= time.monotonic() - start + 0.01
