"""The time of day and the date: of the wall in a performance, of the time in everything else."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import pytest

from tests.support.performance import Performance
from weft.backends.base import Env
from weft.backends.registry import load_registry
from weft.backends.select import choose
from weft.errors import Source, WeftError
from weft.names import CLOCK_DAY, CLOCK_START, sent_of
from weft.runtime.compiling.stages import Request, build
from weft.runtime.hands.clock import Clock
from weft.runtime.hands.inputs import WallClock
from weft.runtime.program.program import ProgramLoader

FIRST = date(2000, 1, 1)
FIELDS = "me@year, me@month, me@day, me@weekday, me@daytime"
NAMES = [sent_of(CLOCK_START), sent_of(CLOCK_DAY)]


def computed(text: str, seconds: float, inputs: dict[str, float], executor: str = "native") -> list[float]:
    registry = load_registry()
    compiled = build(Request(Source("patch.weft", f"compute({text})"), registry.contexts)).compiled
    runner = ProgramLoader(choose(registry, ["compute"], executor)).prepare(compiled, (8, 8)).runner
    found: list[float] = runner.run(Env(8, 8, abstime=seconds, inputs=inputs))[0].array.reshape(-1).tolist()
    return found


@pytest.mark.parametrize("executor", ["native", "vector", "vm"])
def test_dates_are_those_of_the_calendar(executor: str) -> None:
    registry = load_registry()
    compiled = build(Request(Source("patch.weft", f"compute({FIELDS})"), registry.contexts)).compiled
    runner = ProgramLoader(choose(registry, ["compute"], executor)).prepare(compiled, (8, 8)).runner
    for days in (*range(-40_000, 80_000, 1997), -1, 0, 59, 60, 365, 366, 36_523, 36_524, 36_525, 36_583, 36_584):
        day = FIRST + timedelta(days)
        inputs = {CLOCK_START: 100.25, CLOCK_DAY: float(days)}
        found = runner.run(Env(8, 8, abstime=5.5, inputs=inputs))[0].array.reshape(-1).tolist()
        assert found == [day.year, day.month, day.day, day.weekday(), 105.75]


def test_midnight_comes_while_a_patch_plays() -> None:
    inputs = {CLOCK_START: 86_390.0, CLOCK_DAY: float((date(2027, 12, 31) - FIRST).days)}
    assert computed(FIELDS, 9.5, inputs) == [2027, 12, 31, 4, 86_399.5]
    assert computed(FIELDS, 10.5, inputs) == [2028, 1, 1, 5, 0.5]


def test_without_a_clock_the_time_is_the_time_of_day() -> None:
    """So a render shows the same everywhere, and begins at any time of day that it is asked for."""
    assert computed(FIELDS, 3600.0, {}) == [2000, 1, 1, 5, 3600]
    assert computed(FIELDS, 86_400.0 * 60, {}) == [2000, 3, 1, 2, 0]


def test_a_map_of_the_time_moves_the_time_of_day() -> None:
    text = "me@daytime(me@time ~ me@time - 60), me@daytime(me@daytime ~ 60), me@day(me@time ~ me@time + 86400)"
    assert computed(text, 30.0, {}) == [86_370, 60, 2]


@pytest.mark.parametrize(("text", "hint"), [
    ("me@date", "me@year"), ("me@hour", "floor(me@daytime / 3600)"), ("me@minute", "me@daytime / 60"),
    ("iDate", "me@daytime"), ("me@day(me@day ~ 3)", "coordinates are"),
])  # fmt: skip
def test_other_names_lead_there(text: str, hint: str) -> None:
    with pytest.raises(WeftError) as failure:
        build(Request(Source("patch.weft", f"compute({text})"), load_registry().contexts))
    assert hint in (failure.value.diagnostics[0].hint or "")


class Wall:
    """A clock on the wall, and that of a performance, which both stand still."""

    def __init__(self, moment: datetime) -> None:
        self.moment, self.passed = moment, 0.0
        self.clock = Clock(lambda: self.passed)
        self.wall = WallClock(self.clock, lambda: self.moment)

    def read(self) -> tuple[float, float]:
        """The time of day that a frame shows, and the day of its midnight."""
        tick = self.clock.tick()
        start, day = self.wall.values(NAMES).values()
        return tick.time + start, day


def test_the_clock_of_the_wall_is_followed_where_it_jumps() -> None:
    wall = Wall(datetime(2026, 3, 29, 1, 59, 59))
    assert wall.read() == (7199.0, (date(2026, 3, 29) - FIRST).days)
    wall.passed, wall.moment = 1.0, datetime(2026, 3, 29, 3, 0, 0)
    assert wall.read()[0] == 10_800, "daylight saving time begins"
    wall.passed, wall.moment = 2.0, datetime(2026, 3, 29, 3, 0, 1, 20_000)
    assert wall.read()[0] == 10_801, "some milliseconds are jitter"
    wall.clock.pause()
    wall.passed, wall.moment = 62.0, datetime(2026, 3, 29, 3, 1, 1)
    assert wall.read()[0] == 10_861, "a pause of the performance is none of the day"
    assert wall.wall.values([]) == {}


def test_a_performance_shows_the_local_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "ODD-5:45")
    patch = tmp_path / "patch.weft"
    patch.write_text(f"compute({FIELDS})")
    with Performance(patch, "--headless", "--no-audio") as performance:
        year, month, day, weekday, seconds = performance.wait_for("compute")["values"]
    shown = datetime(int(year), int(month), int(day)) + timedelta(seconds=seconds)
    expected = datetime.now(timezone(timedelta(hours=5, minutes=45))).replace(tzinfo=None)
    assert abs(shown - expected) < timedelta(minutes=1)
    assert weekday == shown.weekday()
