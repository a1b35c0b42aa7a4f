"""Processes of outlets that are killed while a patch plays: the show continues, and others take their places."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from tests.runtime.films.test_stream_outlet import receiving
from tests.runtime.films.test_web_outlet import asked
from tests.support.performance import PATIENCE, Performance
from tests.support.ports import free_port

pytestmark = pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="processes are found in /proc")


def kill_outlet(performance: Performance) -> None:
    """Kills the process of the only outlet."""
    (found,) = [
        number for number in _descendants(performance.process.pid)
        if b"outlet_process" in Path(f"/proc/{number}/cmdline").read_bytes()
    ]  # fmt: skip
    os.kill(found, signal.SIGKILL)


def _descendants(parent: int) -> list[int]:
    found: list[int] = []
    for thread in Path(f"/proc/{parent}/task").iterdir():
        for child in map(int, (thread / "children").read_text().split()):
            found += [child, *_descendants(child)]
    return found


def test_a_page_comes_back_when_its_process_is_killed(tmp_path: Path) -> None:
    port = free_port()
    patch = tmp_path / "patch.weft"
    patch.write_text(f'me<width> = 64; me<height> = 36\ndisplay(me@x, to: "http:{port}")\n')
    with Performance(patch, "--headless", "--no-audio") as performance:
        performance.wait_for_words("the picture is at")
        assert asked(port, "/frame.png")[0].status == 200
        kill_outlet(performance)
        event = performance.wait_for("restart")
        assert event["process"] == "outlet"
        assert event["reason"] == f"the process for http:{port} ended (SIGKILL), and is started again"
        performance.wait_for("window", count=2, when=lambda event: event["state"] == "opened")
        deadline = time.monotonic() + PATIENCE
        while _status(port) != 200:
            assert time.monotonic() < deadline
        frames = performance.count("frames")
        performance.wait_for("frames", count=frames + 1)
        assert performance.stderr.count("is started again") == 1


def _status(port: int) -> int:
    try:
        return asked(port, "/frame.png")[0].status
    except OSError:
        return 0


@pytest.mark.long
def test_a_process_that_is_killed_again_and_again_is_left_until_a_save(tmp_path: Path) -> None:
    port = free_port()
    patch = tmp_path / "patch.weft"
    text = f'me<width> = 64; me<height> = 36\ndisplay(me@x, to: "http:{port}")\n'
    patch.write_text(text)
    with Performance(patch, "--headless", "--no-audio") as performance:
        for count in range(1, 6):
            performance.wait_for("window", count=count, when=lambda event: event["state"] == "opened")
            kill_outlet(performance)
        performance.wait_for_words("its process has ended too often")
        performance.save(text.replace("me@x,", "me@y,"))
        performance.wait_for("window", count=6, when=lambda event: event["state"] == "opened")


@pytest.mark.long
def test_a_stream_goes_on_when_its_process_is_killed(tmp_path: Path) -> None:
    address = f"rtmp://127.0.0.1:{free_port()}/app/key"
    patch = tmp_path / "patch.weft"
    patch.write_text(f'me<width> = 64; me<height> = 36\ndisplay(me@x, to: "{address}")\n')
    with Performance(patch, "--headless", "--no-audio", "--allow", "net") as performance:
        with receiving(address, 60) as first:
            performance.wait_for("window", when=lambda event: event["state"] == "connected")
            kill_outlet(performance)
            first.kill()
        assert performance.wait_for("restart")["process"] == "outlet"
        with receiving(address, 1) as second:
            performance.wait_for("window", count=2, when=lambda event: event["state"] == "opened")
            assert len(second.communicate()[0]) > 100
