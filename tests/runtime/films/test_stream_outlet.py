"""Streams to servers, mixers and players: what real receivers get, and what becomes of those that die."""

from __future__ import annotations

import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from tests.support.outlets import FPS, RATE, Sending, ffmpeg_with
from tests.support.performance import PATIENCE, Performance
from tests.support.ports import free_port
from weft.outlets import OutletError, outlet_of
from weft.runtime.films.srt_sender import srt_library
from weft.runtime.films.stream_outlet import preset
from weft.streams import SCHEMES, stream_address

ROOT = Path(__file__).parents[3]
SIZE = 64, 36
HERTZ = 1000


@contextmanager
def sending(target: str) -> Iterator[Sending]:
    made = Sending(target, SIZE)
    try:
        yield made
    finally:
        made.encoder.close()


def receiving(address: str, seconds: float) -> subprocess.Popen[str]:
    """A program that listens for a stream."""
    command = [sys.executable, "-m", "tests.support.stream_receiver", address, str(seconds)]
    program = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None
    assert program.stdout.readline() == "listening\n"
    return program


def play(made: Sending, until: Callable[[], bool], turn: int = 0, late: int = 0) -> None:
    """Plays at its pace: black and silent up to frame `turn`, then white with a tone. Ends when that happens. The sound
    of a frame is given so many frames `late`."""
    deadline = time.monotonic() + PATIENCE
    length = RATE // FPS
    while not until():
        assert time.monotonic() < deadline
        number, heard = made.count, made.count - late
        at = (heard * length + np.arange(length)) / RATE
        tone = np.sin(2 * np.pi * HERTZ * at) * 0.5 * (heard >= turn)
        if heard >= 0:
            made.encoder.hear(np.stack([tone, tone], 1).astype(np.float32))
        level = 255 if number >= turn else 0
        made.show(np.full((SIZE[1], SIZE[0], 4), level, np.uint8))
        time.sleep(1 / FPS)


def has_ipv6() -> bool:
    """Whether this machine reaches itself by IPv6."""
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


def test_sound_may_come_after_the_first_pictures() -> None:
    port = free_port()
    address = f"rtmp://127.0.0.1:{port}/app/key"
    program = receiving(address, 1)
    with sending(address) as made:
        play(made, lambda: program.poll() is not None, late=FPS // 2)
        assert not made.said("no receiver: Invalid", "trouble")
    assert len(result(program)["sound"]) > 10


def result(program: subprocess.Popen[str]) -> dict[str, Any]:
    assert program.stdout is not None
    with program.stdout:
        found: dict[str, Any] = json.loads(program.stdout.read().splitlines()[-1])
    return found


def play_and_turn(made: Sending, program: subprocess.Popen[str]) -> None:
    """Plays until a program has received enough, whose sound and picture turn once it receives."""
    assert program.stdout is not None
    waiting = threading.Thread(target=program.stdout.readline)
    waiting.start()
    play(made, lambda: not waiting.is_alive(), turn=sys.maxsize)
    play(made, lambda: program.poll() is not None, turn=made.count + FPS // 2)


def check(found: dict[str, Any]) -> None:
    """Picture and sound turn at the same time, and the tone is what was played."""
    white = next(at for at, level in found["pictures"] if level > 200)
    loud = next(at for at, level in found["sound"] if level > 0.1)
    assert abs(white - loud) < 0.05
    assert abs(found["hertz"] - HERTZ) < 3


def test_a_receiver_gets_picture_and_sound_in_step() -> None:
    port = free_port(socket.SOCK_DGRAM)
    program = receiving(f"udp://127.0.0.1:{port}", 2)
    with sending(f"udp://127.0.0.1:{port}") as made:
        play_and_turn(made, program)
    check(result(program))


@pytest.mark.long
@pytest.mark.parametrize("address", ["rtp://127.0.0.1", "rtp://[::1]", "udp://[::1]", "rtmp://127.0.0.1"])
def test_others_do_too(address: str) -> None:
    if "::1" in address and not has_ipv6():
        pytest.skip("this machine has no IPv6")
    address = f"{address}:{free_port()}" + "/app/key" * address.startswith("rtmp")
    program = receiving(address, 2)
    with sending(address) as made:
        play_and_turn(made, program)
        assert not made.encoder.is_done
    check(result(program))


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """One for localhost that nobody has signed, with its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("there is no openssl, which makes certificates")
    both = tmp_path / "both.pem"
    made_by = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    made_by += ["-addext", "subjectAltName=DNS:localhost"]
    subprocess.run([*made_by, "-keyout", both, "-out", tmp_path / "c.pem"], check=True, capture_output=True)
    both.write_text(both.read_text() + (tmp_path / "c.pem").read_text())
    return both


@pytest.mark.long
def test_a_server_with_encryption_does_too(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    port = free_port()
    with encrypted(certificate, port) as outside:
        program = receiving(f"rtmp://127.0.0.1:{port}/app/key", 2)
        with sending(f"rtmps://localhost:{outside}/app/key") as made:
            play_and_turn(made, program)
    check(result(program))


@pytest.mark.parametrize("is_trusted", [False, True])
def test_a_server_whose_certificate_is_wrong_gets_nothing(
    certificate: Path, monkeypatch: pytest.MonkeyPatch, is_trusted: bool
) -> None:
    """One that nobody has signed, and one of another name."""
    if is_trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    host = "127.0.0.1" if is_trusted else "localhost"
    with socket.create_server(("127.0.0.1", 0)) as behind, encrypted(certificate, behind.getsockname()[1]) as outside:
        behind.settimeout(0)
        with sending(f"rtmps://{host}:{outside}/app/key") as made:
            words = f"no receiver: the certificate of {host} is not to be trusted"
            play(made, lambda: bool(made.said(words, "trouble")))
        with pytest.raises(BlockingIOError):
            behind.accept()


def _after(data: bytes, port: int) -> socket.socket:
    """A connection that has these data already. Raises OSError if there are none: who only looks sends nothing."""
    if not data:
        raise OSError
    made = socket.create_connection(("127.0.0.1", port))
    made.sendall(data)
    return made


@contextmanager
def encrypted(certificate: Path, port: int) -> Iterator[int]:
    """A port by which clients with TLS reach another port of this machine."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    def pass_on(source: socket.socket, to: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                to.sendall(data)

    def serve(server: socket.socket) -> None:
        with suppress(OSError):
            while True:
                plain, _ = server.accept()
                # The one behind may not listen yet: who connects tries again.
                with (
                    suppress(OSError), context.wrap_socket(plain, server_side=True) as client,
                    _after(client.recv(1 << 16), port) as behind,
                ):  # fmt: skip
                    back = threading.Thread(target=pass_on, args=(behind, client), daemon=True)
                    back.start()
                    pass_on(client, behind)
                    behind.shutdown(socket.SHUT_RDWR)
                    back.join()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, args=(server,), daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


def test_a_receiver_that_is_not_there_is_said_once_however_that_shows() -> None:
    port = free_port()
    with sending(f"rtmp://127.0.0.1:{port}/app/key") as made:
        play(made, lambda: made.said("no receiver: ", "trouble"))
        with socket.create_server(("127.0.0.1", port)) as server:
            # What is there now ends each connection.
            def end_two() -> None:
                for _ in range(2):
                    server.accept()[0].close()

            ending = threading.Thread(target=end_two)
            ending.start()
            play(made, lambda: not ending.is_alive())
        begun = made.count
        play(made, lambda: made.count > begun + 30)
        assert [kind for kind, _ in made.encoder.told].count("trouble") == 1


@pytest.mark.long
def test_receivers_that_are_killed_are_followed_by_others() -> None:
    port = free_port()
    address = f"rtmp://127.0.0.1:{port}/app/key"
    with sending(address) as made:
        for _ in range(4):
            program = receiving(address, 60)
            made.encoder.told.clear()
            play(made, lambda: made.said("", "well"))
            made.encoder.told.clear()
            begun = made.count
            play(made, lambda begun=begun: made.count > begun + 30)
            with program:
                program.kill()
            play(made, lambda: made.said("no receiver: ", "trouble"))
        assert made.said("", "dropped")
        program = receiving(address, 1)
        play(made, lambda: program.poll() is not None)
        assert len(result(program)["pictures"]) > 30


@pytest.mark.long
def test_a_receiver_that_stands_still_holds_nothing_up(tmp_path: Path) -> None:
    patch = tmp_path / "patch.weft"
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"rtmp://127.0.0.1:{server.getsockname()[1]}/app/key"
        patch.write_text(f'me<width> = 64; me<height> = 36\ndisplay(me@x, to: "{address}")\n')
        with Performance(patch, "--headless", "--no-audio", "--allow", "net") as performance:
            # It takes the connection, and says nothing.
            receiver, _ = server.accept()
            frames = performance.count("frames")
            performance.wait_for("window", when=lambda event: event["state"] == "waiting")
            assert performance.count("frames") > frames
            performance.wait_for("window", count=2, when=lambda event: event["state"] == "opened")
            receiver.close()


@pytest.mark.skipif(sys.platform == "win32", reason="priorities are not numbers there")
def test_the_process_of_an_outlet_yields_to_the_thread_that_draws() -> None:
    with sending("udp://127.0.0.1:9") as made:
        own, its = (os.getpriority(os.PRIO_PROCESS, process) for process in (0, made.encoder._child.pid))
        assert its > own


def test_few_cores_encode_with_less_work() -> None:
    assert [preset(cores) for cores in (1, 2, 4, 16)] == ["ultrafast", "ultrafast", "superfast", "superfast"]


def test_an_address_is_made_of_what_was_read() -> None:
    address = stream_address("srt", "//LOCALHOST:9000?latency=120&passphrase=0123456789&mode=listener")
    assert address.text == "//localhost:9000?latency=120&passphrase=0123456789&mode=listener"
    assert stream_address("srt", address.text) == address
    assert address.shown == "srt://localhost:9000"
    assert "latency=120000" in address.url
    assert stream_address("rtmp", "//a.example.com/live2/ab-cd").url == "rtmp://a.example.com:1935/live2/ab-cd"
    assert stream_address("udp", "//[::1]:9000?ttl=3").url == "udp://[::1]:9000?pkt_size=1316&ttl=3"


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(
    "text",
    [
        "", "//", "//host", "//host:0", "//host:70000/a/b", "//user@host:9000/a/b", "//ho st:9000/a/b",
        "//host:9000/a/../b", "//host:9000/a/b?", "//host:9000/a/b?listen=1",
        "//host:9000?localaddr=1.2.3.4", "//host:9000/a/b?bitrate=1e9",
        "//host:9000?ttl=1&ttl=2", "//host:9000?pkt_size=1", "//host:9000?passphrase=a%26b", "//host:9000/a/b#c",
        "//127.1:9000/a/b", "//0x7f000001.1:9000", "//host:9000/a/b live=1", "//host:9000/a/b|file:/tmp/x", "//é:9000",
        "//host:9000/a/b\n", "file:/tmp/x",
    ],
)  # fmt: skip
def test_nothing_else_is_an_address(scheme: str, text: str) -> None:
    outlet = outlet_of(f"{scheme}:{text}")
    assert outlet is not None
    if text == "//host:9000/a/b?" and outlet.spec.name.startswith("rtmp"):
        return
    with pytest.raises(OutletError):
        _ = outlet.place


def test_each_example_is_an_address() -> None:
    for scheme, row in SCHEMES.items():
        outlet = outlet_of(row.example)
        assert outlet is not None
        assert outlet.spec.name == scheme
        assert outlet.place.reaches == "network"


@pytest.mark.long
def test_ffmpeg_receives_srt_with_a_password_and_after_it_was_killed(tmp_path: Path) -> None:
    program = ffmpeg_with("srt")
    if program is None or srt_library() is None:
        pytest.skip("there is no ffmpeg with SRT, or no libsrt; scripts/setup system test installs both")
    address = f"srt://127.0.0.1:{free_port(socket.SOCK_DGRAM)}"
    listening = f"{address}?mode=listener&passphrase=a-long-password"
    out = tmp_path / "out.ts"
    receive = [program, "-nostdin", "-loglevel", "error", "-y", "-i", listening, "-c", "copy"]
    with sending(f"{address}?passphrase=a-long-password&latency=60") as made:
        with subprocess.Popen([*receive, "-f", "mpegts", os.devnull]) as first:
            play(made, lambda: made.said("", "well"))
            made.encoder.told.clear()
            first.kill()
        play(made, lambda: made.said("no receiver: ", "trouble"))
        with subprocess.Popen([*receive, "-t", "2", str(out)]) as second:
            play(made, lambda: second.poll() is not None)
    with av.open(out) as container:
        frames = list(container.decode(*container.streams))
    assert sum(isinstance(frame, av.VideoFrame) for frame in frames) > 60
    sound = np.concatenate([frame.to_ndarray()[0] for frame in frames if isinstance(frame, av.AudioFrame)])
    spectrum = np.abs(np.fft.rfft(sound * np.hanning(len(sound))))
    assert abs(spectrum.argmax() * RATE / len(sound) - HERTZ) < 3


@pytest.mark.long
@pytest.mark.parametrize(("target", "address"), [("[::1]", "[::]"), ("127.0.0.1?mode=listener", "127.0.0.1")])
def test_ffmpeg_receives_srt_by_ipv6_and_from_a_sender_that_waits(tmp_path: Path, target: str, address: str) -> None:
    program = ffmpeg_with("srt")
    if program is None or srt_library() is None:
        pytest.skip("there is no ffmpeg with SRT, or no libsrt; scripts/setup system test installs both")
    if "::" in target and not has_ipv6():
        pytest.skip("this machine has no IPv6")
    host, mode, query = target.partition("?")
    port = free_port(socket.SOCK_DGRAM)
    out = tmp_path / "out.ts"
    source = f"srt://{address}:{port}" + "?mode=listener" * (not mode)
    receive = [program, "-nostdin", "-loglevel", "error", "-y", "-i", source, "-t", "1", "-c", "copy", str(out)]
    with sending(f"srt://{host}:{port}{mode}{query}") as made:
        # Twice: one that waits takes the next receiver when the first is gone.
        for _ in range(2):
            with subprocess.Popen(receive) as receiver:
                play(made, lambda receiver=receiver: receiver.poll() is not None)
    with av.open(out) as container:
        assert sum(1 for _ in container.decode(video=0)) > 30


def test_a_library_that_is_missing_is_told() -> None:
    if srt_library() is not None:
        pytest.skip("libsrt is there")
    with sending(f"srt://127.0.0.1:{free_port(socket.SOCK_DGRAM)}") as made:
        play(made, lambda: made.encoder.is_done)
        assert "the library of SRT is missing" in (made.encoder.failure or "")
