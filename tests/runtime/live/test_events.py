"""Events reach their reader whole and in order, and nothing waits for them; figures of frames."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from weft.errors import WeftError
from weft.runtime.compiling.compiler import Saved
from weft.runtime.live.events import EventLog, FrameFigures, FrameStats, Reporter


def events(path: Path) -> list[dict[str, object]]:
    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    return [json.loads(line, parse_constant=refuse) for line in path.read_text().splitlines()]


def test_an_event_can_be_read_as_soon_as_it_happened(tmp_path: Path) -> None:
    file = tmp_path / "events"
    file.write_text("what was there before\n")
    with closing(EventLog(file)) as log:
        log.emit("started", backends={"visual": "native"}, size=[1280, 720])
        log.emit("stopped", reason="the window was closed — ä\ud800")
        deadline = time.monotonic() + 20
        while len(events(file)) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.001)
        first, second = events(file)
    assert first == {"t": first["t"], "event": "started", "backends": {"visual": "native"}, "size": [1280, 720]}
    assert second["reason"] == "the window was closed — ä\ud800"
    assert 0 <= first["t"] <= second["t"] < 5  # type: ignore[operator]


def test_values_of_every_kind_become_json(tmp_path: Path) -> None:
    with closing(EventLog(tmp_path / "events")) as log:
        values = [1, 1.5, True, None, float("nan"), float("inf"), np.float32("-inf"), np.float32(0.5), np.int64(7)]
        log.emit("compute", values=values, kept=frozenset({"b", "a"}), path=Path("x"), inner={"v": (float("nan"),)})
    (event,) = events(tmp_path / "events")
    assert event["values"] == [1, 1.5, True, None, "nan", "inf", "-inf", 0.5, 7]
    assert (event["kept"], event["path"], event["inner"]) == (["a", "b"], "x", {"v": ["nan"]})


def test_lines_of_many_threads_stay_whole_and_in_order(tmp_path: Path) -> None:
    with closing(EventLog(tmp_path / "events")) as log:

        def chatter() -> None:
            for number in range(200):
                log.emit("x", number=number, text="y" * 3000)

        threads = [threading.Thread(target=chatter) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    lines = events(tmp_path / "events")
    assert len(lines) == 800
    times = [line["t"] for line in lines]
    assert times == sorted(times)  # type: ignore[type-var]


def test_no_target_and_a_closed_log_take_events_and_keep_none(tmp_path: Path) -> None:
    EventLog(None).emit("x")
    log = EventLog(tmp_path / "events")
    log.close()
    log.close()
    log.emit("x")
    assert not events(tmp_path / "events")


def test_a_file_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(WeftError) as caught:
        EventLog(tmp_path / "missing" / "events")
    assert caught.value.diagnostics[0].code == "events-file"


def test_a_reader_that_goes_away_is_warned_about_once() -> None:
    program = """
import sys
from weft.runtime.live.events import EventLog
log = EventLog("-", warn=lambda message: print(message, file=sys.stderr))
log.emit("started")
sys.stdin.readline()
for _ in range(3):
    log.emit("frames")
log.close()
print("goes on", file=sys.stderr)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        assert json.loads(process.stdout.readline())["event"] == "started"
        process.stdout.close()
        process.stdin.write(b"\n")
        process.stdin.flush()
        said = process.stderr.read().decode().splitlines()
    assert said == ["no more events are written to -: Broken pipe", "goes on"]
    assert process.returncode == 0


def test_a_reader_that_stops_reading_keeps_nobody_waiting() -> None:
    reading, writing = os.pipe()
    warnings: list[str] = []
    log = EventLog(f"/dev/fd/{writing}", warn=warnings.append)
    for number in range(30_000):
        log.emit("frames", number=number, text="y" * 100)
    log.close()
    os.close(reading)
    os.close(writing)
    assert warnings == [f"no more events are written to /dev/fd/{writing}: nothing reads them"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no device that is always full")
def test_a_full_disk_is_warned_about_once() -> None:
    warnings: list[str] = []
    with closing(EventLog("/dev/full", warn=warnings.append)) as log:
        log.emit("x")
        log.emit("x")
    assert warnings == ["no more events are written to /dev/full: No space left on device"]


def test_figures_come_once_a_second() -> None:
    stats = FrameStats(fps=50)
    given = [stats.shown(number / 50) for number in range(101)]
    assert [number for number, figures in enumerate(given) if figures] == [50, 100]
    assert given[50] == FrameFigures(50.0, 20.0, 20.0, 20.0, 0)


def test_late_frames_count_as_dropped() -> None:
    stats = FrameStats(fps=100)
    moments = [number / 100 for number in range(101) if number not in (10, 20, 21, 22)]
    moments[40] += 0.004  # late, but within its turn
    figures = [stats.shown(moment) for moment in moments][-1]
    assert figures == FrameFigures(96.0, 10.0, 10.0, 40.0, 4)
    assert asdict(figures) == {"fps": 96.0, "p50_ms": 10.0, "p95_ms": 10.0, "p99_ms": 40.0, "dropped": 4}


def test_a_text_that_waits_for_the_compiler_and_then_takes_long_is_told_of_in_this_order() -> None:
    said: list[str] = []
    reporter = Reporter(EventLog(None), echo=said.append)
    saved, later = Saved(b"", time.monotonic() - 2, name="a.weft"), Saved(b"", time.monotonic() - 2, name="a.weft")
    for text, is_starting in ((saved, True), (saved, True), (saved, False), (saved, False), (later, False)):
        reporter.waiting(text, is_starting)
    compiled = "a.weft is still being compiled; another save takes its place"
    assert said == ["the compiler is still starting", compiled, compiled]
