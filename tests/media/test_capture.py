"""Cameras: pictures that change while a program plays. What generates them here is a test source of FFmpeg."""

from __future__ import annotations

import gc
import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image

from tests.support.forks import ran
from tests.support.performance import Performance
from tests.support.ports import free_port
from tests.support.sound import eventually
from weft.cameras import generated
from weft.media.capture import Capture, CapturedPicture
from weft.media.source import PictureError
from weft.names import LiveName, shown
from weft.runtime.program.program import ProgramLoader

BARS = "smptebars size=64x48"
MOVING = "testsrc2 size=64x48 rate=60"
PATCH = 'camera("{address}")::c<r, g, b>\ndisplay(c@r, c@g, c@b)\n'


def bars() -> np.ndarray:
    """The picture of the first address, in bytes."""
    with av.open(generated(BARS), format="lavfi") as container:
        return next(container.decode(video=0)).to_ndarray(format="rgb24")


def children() -> set[int]:
    """The processes that this process has started."""
    found: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        # A thread may end in the meantime.
        with suppress(OSError):
            found.update(map(int, (task / "children").read_text().split()))
    return found


def test_a_patch_shows_what_the_camera_sees(tmp_path: Path) -> None:
    patch, out = tmp_path / "patch.weft", tmp_path / "out.png"
    patch.write_text(PATCH.format(address=BARS))
    outcome = ran(["render", str(patch), "-o", str(out), "--size", "64x48"], tmp_path, os.environ)
    assert outcome.returncode == 0, outcome.stderr
    assert np.array_equal(np.asarray(Image.open(out))[..., :3], bars())


def test_what_was_given_stays_the_same_while_a_newer_picture_comes() -> None:
    camera = Capture().open((MOVING,), offline=False)
    try:
        for _ in range(20):
            first = newer = camera.at(0.0)
            before = first.copy()
            while newer is first:
                newer = camera.at(0.0)
            assert newer.shape == first.shape == (48, 64, 4)
            assert np.array_equal(first, before)
        eventually(lambda: not np.array_equal(camera.at(0.0), before), "a change in the picture")
        assert camera.problem() is None
    finally:
        camera.close()


def test_what_cannot_be_opened_is_told_at_once(tmp_path: Path) -> None:
    before = children()
    with pytest.raises(PictureError, match="there is no such file"):
        Capture().open((str(tmp_path / "nothing.mkv"),), offline=False)
    assert children() == before


@contextmanager
def answering(words: bytes) -> Iterator[int]:
    """The port of a server that answers everything with these words."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            with suppress(OSError):  # the end of the server, or of who asks
                while True:
                    connection, _ = server.accept()
                    with connection:
                        connection.recv(4096)
                        connection.sendall(words)

        threading.Thread(target=answer, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


def stream_problem(address: str) -> PictureError:
    """What is said about a stream that cannot be received."""
    with pytest.raises(PictureError) as raised:
        Capture().open((address,), offline=False)
    return raised.value


@pytest.mark.parametrize("form", ["rtsp://name:secret@127.0.0.1:{}/1", "http://127.0.0.1:{}/a", "tcp://127.0.0.1:{}"])
def test_a_stream_at_which_nothing_answers_is_told_with_a_hint(form: str) -> None:
    problem = stream_problem(form.format(free_port()))
    assert problem.reason == "nothing answers there"
    assert problem.hint == "is what sends it switched on, and are host and port right?"


def test_a_machine_without_an_address_is_told() -> None:
    # This top-level domain is reserved for names that nobody has.
    for scheme in ("rtsp", "http", "udp"):
        assert stream_problem(f"{scheme}://camera.invalid:8000").reason == "no machine of this name is known here"


@pytest.mark.parametrize(
    ("words", "reason"),
    [(b"HTTP/1.0 404 Not Found\r\n\r\n", "what answers there has no such stream"),
     (b"HTTP/1.0 401 Unauthorized\r\n\r\n", "a name and a password are wanted there, or others"),
     (b"HTTP/1.0 403 Forbidden\r\n\r\n", "a name and a password are wanted there, or others"),
     (b"HTTP/1.0 200 OK\r\n\r\n<html>" + b"a page " * 1000, "what answers there sends no pictures"),
     (b"SSH-2.0-x\r\n", "what answers there sends no pictures")],
)  # fmt: skip
def test_what_answers_without_pictures_is_told(words: bytes, reason: str) -> None:
    with answering(words) as port:
        problem = stream_problem(f"http://127.0.0.1:{port}/a")
    assert problem.reason == reason
    assert problem.hint is not None


def test_a_port_at_which_another_program_receives_is_told() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("0.0.0.0", 0))
        assert stream_problem(f"udp://127.0.0.1:{other.getsockname()[1]}").reason.startswith("another program receives")


def test_where_nothing_is_sent_the_hint_is_to_look_at_who_sends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.media.capture._TO_OPEN", 1.0)
    problem = stream_problem(f"udp://127.0.0.1:{free_port(socket.SOCK_DGRAM)}")
    assert problem.reason == "no picture has come within 1 s"
    assert problem.hint == "weft waits at this port of this machine: does anything send to it?"


def test_messages_leave_out_the_name_and_password_of_an_address() -> None:
    assert shown(LiveName("camera", ("rtsp://me:secret@host:5/a@b",)).name) == 'camera("rtsp://…@host:5/a@b")'
    assert shown(LiveName("window", ("Größe @ 2",)).name) == 'window("Größe @ 2")'


def _open_files() -> set[tuple[str, str]]:
    """What this process has open, by numbers."""
    found = set()
    for number in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # that of the folder itself
            found.add((number, os.readlink(f"/proc/self/fd/{number}")))
    return found


@pytest.mark.long
def test_a_camera_is_closed_with_the_last_program_that_reads_it() -> None:
    gc.collect()
    before, files = children(), _open_files()
    loader = ProgramLoader({})
    name = 'live:["camera", "' + MOVING + '"]'
    one, other = loader._open_live([name]), loader._open_live([name])
    assert one[name] is other[name], "it goes on over a save"
    (process,) = children() - before
    one.clear()
    assert process in children()
    other.clear()
    gc.collect()
    assert children() == before
    eventually(lambda: not _open_files() - files, "the end of its files")


def test_a_camera_that_is_unplugged_keeps_its_last_picture_and_comes_back(tmp_path: Path) -> None:
    camera = Capture().open((MOVING,), offline=False)
    assert isinstance(camera, CapturedPicture)
    try:
        assert camera._child is not None
        camera._child.kill()
        eventually(lambda: camera.problem() is not None, "a warning")
        assert camera.at(1.0).any()
        moment = camera.at(1.0)
        # Asking for its problem is what starts it again.
        eventually(lambda: camera.problem() is None and camera.at(2.0) is not moment, "its return")
    finally:
        camera.close()


def test_pictures_come_though_none_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.media.capture._SILENT", 0.2)
    camera = Capture().open((MOVING,), offline=False)
    assert isinstance(camera, CapturedPicture)
    try:
        assert camera._child is not None
        camera._child.send_signal(signal.SIGSTOP)
        eventually(lambda: camera.problem() is not None, "a warning")
        camera._child.send_signal(signal.SIGCONT)
        eventually(lambda: camera.problem() is None, "the next picture")
    finally:
        camera.close()


def test_arguments_are_constant(tmp_path: Path) -> None:
    patch = tmp_path / "patch.weft"
    patch.write_text("camera(me@time)::c<r>\ndisplay(c@r)\n")
    outcome = ran(["check", str(patch)], tmp_path, os.environ)
    assert outcome.returncode == 1
    assert "patch.weft:1:8: error:" in outcome.stderr
    assert "needs-a-constant" in outcome.stderr


def decoders(address: str) -> int:
    """How many processes decode what is at an address."""
    found = 0
    for process in Path("/proc").iterdir():
        # It may end in the meantime.
        with suppress(OSError):
            found += process.name.isdecimal() and address.encode() in (process / "cmdline").read_bytes().split(b"\0")
    return found


@pytest.mark.long
def test_a_performance_goes_on_while_cameras_come_and_go(tmp_path: Path) -> None:
    address = f"testsrc2 size=64x48 rate={os.getpid() % 40 + 20}"
    patch = tmp_path / "patch.weft"
    with_camera, without = PATCH.format(address=address), "display(me@x, me@y, 0)\n"
    patch.write_text(with_camera)
    # A fork would not show the arguments of its own children.
    new = ("-X", "utf8", "-m", "weft")
    with Performance(patch, "--headless", "--size", "64x48", "--no-audio", python=new) as performance:
        performance.wait_for("frames")
        assert decoders(address) == 1
        performance.save(without)
        performance.wait_for("swap")
        performance.save("// again\n" + with_camera)
        performance.wait_for("swap", 2)
        assert decoders(address) == 1, "the one that was kept while the program before may come back"
    eventually(lambda: decoders(address) == 0, "the end of the decoder")


def test_a_render_of_what_is_generated_is_exact() -> None:
    """The frame that is shown from its own time on, in any order."""
    with av.open(generated(MOVING), format="lavfi") as container:
        frames = [frame.to_ndarray(format="rgba") for frame in islice(container.decode(video=0), 40)]
    timed = Capture().open((MOVING,), offline=True)
    for number in (0, 1, 7, 39, 3, 3, 20):
        shown = timed.at((number + 0.5) / 60)
        assert np.array_equal(np.rint(shown * 255), frames[number]), number
    timed.close()
