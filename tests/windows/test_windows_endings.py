"""The ends that Windows brings: a performance finishes its film first, and no command leaves half a file."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.performance import Performance
from tests.windows.processes import PATIENCE, children, close_console, eventually, log_off, on_windows
from weft.media.decoding import times_of

pytestmark = on_windows


@pytest.mark.parametrize("bring_end", [close_console, pytest.param(log_off, marks=pytest.mark.long)])
def test_an_end_that_windows_brings_waits_for_the_film(tmp_path: Path, bring_end: Callable[[int], None]) -> None:
    patch, film = tmp_path / "ramp.weft", tmp_path / "film.mp4"
    patch.write_text("tone<v> = sin(me@time * 2764) * 0.2\ndisplay(me@x, me@y, 0)\naudio(tone@v)\n")
    with Performance(patch, "--headless", "--size", "64x36", "--record", str(film)) as performance:
        partial = film.with_name("film.part.mp4")
        eventually(lambda: partial.exists() and partial.stat().st_size > 10_000, "the first second of the film")
        number = performance.process.pid
        assert len(children(number)) >= 3, "one compiles, one plays, and one encodes"
        bring_end(number)
        performance.ended()
        eventually(lambda: not children(number), "the end of what it has started")
        recorded = performance.latest("recording")
        assert performance.latest("stopped")["reason"] == "terminated"
    assert recorded["state"] == "stopped"
    assert times_of(film)[1] == pytest.approx(recorded["frames"] / 60, abs=0.1)


def test_an_end_that_windows_brings_leaves_no_half_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "ramp.weft").write_text("display(me@x, fract(me@time), 0)\n")
    command = [sys.executable, "-m", "weft", "render", "ramp.weft", "-o", "o.npy", "--duration", "9999"]
    said = tmp_path / "said"
    with said.open("w") as errors, subprocess.Popen(
        command, cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors
    ) as process:
        try:
            eventually(lambda: any(tmp_path.glob(".o-*")), "the file that is being written")
            close_console(process.pid)
            process.wait(PATIENCE)
        finally:
            process.kill()
    assert said.read_text().endswith("weft: interrupted\n")
    assert {path.name for path in tmp_path.iterdir()} == {"ramp.weft", "said"}


def test_only_a_performance_has_a_window_that_is_told_of_the_end_of_the_session() -> None:
    told = "print('weft-session' in [thread.name for thread in threading.enumerate()])"
    ends = f"system.end_in_order(); {told}; system.end_in_order(session=True); {told}"
    command = [sys.executable, "-c", f"import threading; from weft.platform import system; {ends}"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert ended.stdout.split() == ["False", "True"]
