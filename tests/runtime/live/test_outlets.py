"""Pictures for other programs: what comes out of a named pipe, and that nothing waits for those who read."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.runtime.films.test_web_outlet import asked, decoded
from tests.support.compute import wgpu
from tests.support.gl import graphics
from tests.support.performance import PATIENCE, Event, Performance
from tests.support.ports import free_port
from weft.runtime.films.encoding import Y4M_FRAME, y4m_frame

__all__ = ["graphics", "wgpu"]

WIDTH, HEIGHT = 64, 36
PATCH = f"""me<width> = {WIDTH}; me<height> = {HEIGHT}
display(0)
display(me@x, me@y, 0.5, to: "pipe:beam")
"""


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "beam")
    return tmp_path / "beam"


@contextmanager
def reading(performance: Performance, pipe: Path, failed: int = 0) -> Iterator[BinaryIO]:
    """The pipe, open to a program that reads it, once something is in it. Fails at once if nothing will ever come: if
    the performance has ended, or the outlet has failed more often than it should have."""


    def failures() -> list[Event]:
        of_windows = (event for event in performance.events if event["event"] == "window")
        return [event for event in of_windows if (event["name"], event["state"]) == (f"pipe:{pipe.name}", "failed")]

    deadline = time.monotonic() + PATIENCE
    with os.fdopen(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        while not select.select((file,), (), (), 0.1)[0]:
            assert len(failures()) <= failed, failures()
            assert performance.process.poll() is None, performance.stderr
            assert time.monotonic() < deadline, performance.stderr
        os.set_blocking(file.fileno(), True)
        yield file


def frames(performance: Performance, pipe: Path, count: int, failed: int = 0) -> tuple[str, list[NDArray[np.uint8]]]:
    """The header, and the brightness in some frames, as a program reads them that opens the pipe now. Empty if it has
    come so soon that the rest of a frame for the last one is still there."""
    found: list[NDArray[np.uint8]] = []
    with reading(performance, pipe, failed) as file:
        header = file.readline().decode(errors="replace")
        if not header.startswith("YUV4MPEG2 "):
            return "", found
        width, height = (int(word[1:]) for word in header.split()[1:3])
        for _ in range(count):
            assert file.read(len(Y4M_FRAME)) == Y4M_FRAME
            plane = file.read(width * height)
            assert len(file.read(2 * (width // 2) * (height // 2))) == width * height // 2
            found.append(np.frombuffer(plane, np.uint8).reshape(height, width))
    return header, found


def brightness(blue: float = 0.5) -> NDArray[np.uint8]:
    y, x = np.meshgrid((np.arange(HEIGHT) + 0.5) / HEIGHT, (np.arange(WIDTH) + 0.5) / WIDTH, indexing="ij")
    shown = np.rint(np.stack([x, y, np.full_like(x, blue), x], -1) * 255).astype(np.uint8)
    return np.frombuffer(y4m_frame(shown), np.uint8, HEIGHT * WIDTH, len(Y4M_FRAME)).reshape(HEIGHT, WIDTH)


def test_programs_that_open_a_pipe_get_the_picture_from_a_header_on(pipe: Path) -> None:
    patch = pipe.with_name("patch.weft")
    patch.write_text(PATCH)
    with Performance(patch, "--headless", "--no-audio") as performance:
        performance.wait_for("window", when=lambda event: event["name"] == "pipe:beam" and event["state"] == "opened")
        header, found = frames(performance, pipe, 5)
        assert header.startswith(f"YUV4MPEG2 W{WIDTH} H{HEIGHT} F60:1 ")
        assert all(np.abs(plane.astype(int) - brightness()).max() <= 2 for plane in found)
        performance.save(PATCH.replace("0.5", "1"))
        performance.wait_for("swap")
        deadline = time.monotonic() + 20
        while not found or np.abs(found[-1].astype(int) - brightness(1)).max() > 2:
            assert time.monotonic() < deadline, "the new picture does not come"
            # Until weft has noticed that the last reader is gone.
            time.sleep(0.1)
            _, found = frames(performance, pipe, 2)
        assert [event["state"] for event in performance.events if event["event"] == "window"] == ["opened"]


def test_a_size_of_its_own_is_made_even(pipe: Path) -> None:
    patch = pipe.with_name("patch.weft")
    patch.write_text(PATCH)
    options = "--headless", "--no-audio", "--window", f"pipe:beam={WIDTH}x{HEIGHT - 1}", "--size", "8x8"
    with Performance(patch, *options) as performance:
        header, (plane, *_) = frames(performance, pipe, 2)
        assert header.startswith(f"YUV4MPEG2 W{WIDTH} H{HEIGHT} ")
        assert np.array_equal(plane[-1], plane[-2])


@pytest.mark.long
def test_what_does_not_take_pictures_is_reported_and_tried_again_with_a_save(tmp_path: Path) -> None:
    patch, other = tmp_path / "patch.weft", 'display(me@x, to: "v4l2:/dev/video250")\n'
    (tmp_path / "file").write_text("this stays")
    patch.write_text(PATCH + other + 'display(me@x, to: "pipe:file")\n')
    with Performance(patch, "--headless", "--no-audio") as performance:
        for name, reason in (("pipe:beam", "mkfifo"), ("pipe:file", "no pipe"), ("v4l2:/dev/video250", "v4l2loopback")):
            failed = performance.wait_for(
                "window", when=lambda event, name=name: event["name"] == name and event["state"] == "failed"
            )  # fmt: skip
            assert reason in failed["reason"]
            performance.wait_for_words(f"{name} is not shown: ")
        os.mkfifo(tmp_path / "beam")
        performance.save(PATCH.replace("0.5", "1"))
        _, found = frames(performance, tmp_path / "beam", 1, failed=1)
        assert np.abs(found[0].astype(int) - brightness(1)).max() <= 2
    assert (tmp_path / "file").read_text() == "this stays"


def test_a_reader_that_stands_still_holds_nothing_up(pipe: Path) -> None:
    patch = pipe.with_name("patch.weft")
    patch.write_text(PATCH)
    options = "--headless", "--no-audio", "--size", "640x360"
    with Performance(patch, *options) as performance, reading(performance, pipe) as file:
        file.readline()
        # Nothing more is read, and seconds of frames follow.
        performance.wait_for("frames", count=performance.count("frames") + 2)
        performance.process.terminate()
        assert performance.ended() == 0
    assert performance.latest("stopped")["reason"] == "terminated"


@pytest.mark.parametrize("device", ["gl", pytest.param("wgpu", marks=pytest.mark.long)])
def test_pictures_of_a_card_come_whole_while_it_draws_the_next_ones(
    device: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue({"gl": "graphics"}.get(device, device))
    patch, port = tmp_path / "patch.weft", free_port()
    patch.write_text(f'me<width> = 63; me<height> = 35\ndisplay(me@x, me@y, fract(me@time * 9), to: "http:{port}")\n')
    y, x = np.meshgrid((np.arange(35) + 0.5) / 35, (np.arange(63) + 0.5) / 63, indexing="ij")
    with Performance(patch, "--headless", "--no-audio", "--backend", f"visual={device}") as performance:
        performance.wait_for_words("the picture is at")
        shades = set()
        while len(shades) < 10:
            shown = decoded(asked(port, "/frame.png")[1]).astype(float)
            assert np.abs(shown[..., :2] - np.stack([x, y], -1) * 255).max() <= 1
            # One that is drawn over while it is copied would have two.
            (shade,) = np.unique(shown[..., 2])
            shades.add(shade)
