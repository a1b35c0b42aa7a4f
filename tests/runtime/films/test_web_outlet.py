"""The page of the outlet `http`: what receivers get, and that nothing they do is noticed by who draws."""

from __future__ import annotations

import http.client
import io
import socket
import struct
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, TimeoutError as NotYetError
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from tests.support.browser import CHROMIUM, chromium
from tests.support.outlets import SECRET, Sending
from tests.support.performance import PATIENCE, Performance
from tests.support.ports import free_port
from weft.outlets import OutletError, outlet_of

SIZE = 64, 36

@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def sending(port: int) -> Iterator[Sending]:
    made = Sending(f"http:{port}", SIZE)
    yield made
    made.encoder.close()


def picture(blue: int = 100, alpha: int = 255) -> NDArray[np.uint8]:
    y, x = np.mgrid[0 : SIZE[1], 0 : SIZE[0]]
    return np.stack([x * 4, y * 7, np.full_like(x, blue), np.full_like(x, alpha)], -1).astype(np.uint8)


def asked(port: int, path: str, host: str = "127.0.0.1", **headers: str) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection(host, port, timeout=PATIENCE)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    data = answer.read()
    connection.close()
    return answer, data


def decoded(data: bytes) -> NDArray[np.uint8]:
    return np.asarray(Image.open(io.BytesIO(data)))


def test_who_asks_before_the_first_picture_waits_for_it(sending: Sending, port: int) -> None:
    with ThreadPoolExecutor(1) as asking:
        answer = asking.submit(asked, port, "/frame.png")
        with pytest.raises(NotYetError):
            answer.result(0.5)
        sending.show(picture())
        assert np.array_equal(decoded(answer.result()[1]), picture())


def test_a_picture_comes_exactly_and_fast_and_the_newest_alone(sending: Sending, port: int) -> None:
    assert sending.said(f"http://127.0.0.1:{port}/")
    for blue in (0, 50, 200):
        sending.show(picture(blue))
    answer, data = asked(port, "/frame?after=0")
    assert answer.headers["X-Weft-Frame"] == "3"
    assert answer.headers["X-Weft-Alpha"] == "0"
    assert np.abs(decoded(data).astype(int) - picture(200)[..., :3]).mean() < 4
    assert np.array_equal(decoded(asked(port, "/frame.png")[1]), picture(200))


def test_an_alpha_is_below_the_colours(sending: Sending, port: int) -> None:
    sending.show(picture(200, alpha=90))
    answer, data = asked(port, "/frame?after=0")
    begin = int(answer.headers["X-Weft-Alpha"])
    both = decoded(data).astype(int)
    assert both.shape == (begin + SIZE[1], SIZE[0], 3)
    assert np.abs(both[: SIZE[1]] - picture(200)[..., :3]).mean() < 4
    # Its brightness: decoders smooth hues across the edge.
    assert np.abs(both[begin:] @ (0.299, 0.587, 0.114) - 90).max() <= 2
    assert np.array_equal(decoded(asked(port, "/frame.png")[1]), picture(200, alpha=90))


def test_programs_that_play_mjpeg_get_one_picture_after_another(sending: Sending, port: int) -> None:
    sending.show(picture(10))
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as receiver, receiver.makefile("rb") as file:
        receiver.sendall(b"GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert file.readline() == b"HTTP/1.1 200 OK\r\n"
        for blue in (10, 240):
            while not file.readline().startswith(b"--weft-picture"):
                pass
            headers = dict(line.rstrip().split(b": ") for line in iter(file.readline, b"\r\n"))
            found = decoded(file.read(int(headers[b"Content-Length"])))
            assert abs(int(found[..., 2].mean()) - blue) < 6
            sending.show(picture(240))


def test_a_hundred_receivers_that_stall_die_or_send_rubbish_leave_it_as_it_was(sending: Sending, port: int) -> None:
    sending.show(picture(10))
    reset = struct.pack("ii", 1, 0)
    said = (
        b"GET /stream HTTP/1.1\r\n\r\n", b"GET /frame?after=0 HTTP/1.1\r\nHost: x", b"\x16\x03\x01\x02" * 5000, b"",
        b"GET / HTTP/9\r\n\r\n", b"GET /frame?after=99999999999999999999 HTTP/1.1\r\n\r\n", b"A" * 20_000,
        b"GET /%2e%2e/etc/passwd HTTP/1.1\r\n\r\n", b"POST / HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n",
        b"GET /frame?after=1 HTTP/1.1\r\n\r\n" * 50,
    )  # fmt: skip
    open_ones = []
    for number in range(100):
        receiver = socket.create_connection(("127.0.0.1", port), PATIENCE)
        with suppress(OSError):  # it has closed already
            receiver.sendall(said[number % len(said)])
        sending.show(picture(number))
        if number % 3:
            receiver.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
            receiver.close()
        else:
            open_ones.append(receiver)
    # Who asks while the process still counts more of them than it serves has to wait.
    assert until(port, lambda shown: np.array_equal(shown, picture(99)))
    assert not sending.encoder.is_done
    assert sending.said("sent what is no request")
    for receiver in open_ones:
        receiver.close()


def test_a_page_of_another_site_does_not_get_the_picture(sending: Sending, port: int) -> None:
    sending.show(picture())
    answer, data = asked(port, "/frame.png", Host=f"rebound.example.com:{port}")
    assert (answer.status, data) == (403, b"")
    sending.until(lambda: sending.said("asked by way of another site"))
    answer, _ = asked(port, "/", Host=f"localhost:{port}")
    assert answer.status == 200
    assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"


def test_others_need_the_token(port: int) -> None:
    made = Sending(f"http:0.0.0.0:{port}", SIZE)
    try:
        made.show(picture())
        address = next(str(said) for kind, said in made.encoder.told if kind == "address")
        assert address.endswith(f"?token={SECRET}")
        for path in ("/", "/frame", "/frame.png?token=", "/stream?token=wrong", "/frame?token=%ff"):
            assert asked(port, path)[0].status == 403
        made.until(lambda: made.said("127.0.0.1 asked without the right token"))
        assert asked(port, "/frame.png?token=a+word+that+nobody+guesses")[0].status == 200
    finally:
        made.encoder.close()


def test_a_port_that_is_taken_is_told(port: int) -> None:
    with socket.create_server(("127.0.0.1", port)):
        made = Sending(f"http:{port}", SIZE)
        try:
            assert f"port {port} of 127.0.0.1 cannot be had" in (made.encoder.failure or "")
        finally:
            made.encoder.close()


@pytest.mark.long
def test_a_performance_goes_on_without_its_port_and_serves_each_size(tmp_path: Path, port: int) -> None:
    patch = tmp_path / "patch.weft"
    text = f'me<width> = 64; me<height> = 36\ndisplay(me@x, me@y, 0, to: "http:{port}")\n'
    patch.write_text(text)
    with socket.create_server(("127.0.0.1", port)), Performance(patch, "--headless", "--no-audio") as performance:
        failed = performance.wait_for("window", when=lambda event: event["state"] == "failed")
        assert f"port {port} of 127.0.0.1 cannot be had" in failed["reason"]
        performance.wait_for("frames")
        performance.wait_for_words(f"http:{port} is not shown: ")
    with Performance(patch, "--headless", "--no-audio") as performance:
        performance.wait_for_words(f"http: the picture is at http://127.0.0.1:{port}/")
        performance.save(text.replace("0, to", "1, to"))
        performance.wait_for("swap")
        assert until(port, lambda found: found[0, 0, 2] == 255)
        # Another size is another process at the same port.
        performance.save(text.replace("<width> = 64", "<width> = 32"))
        assert until(port, lambda found: found.shape[1] == 32)


def until(port: int, is_so: Callable[[NDArray[np.uint8]], bool]) -> bool:
    """Asks for pictures until one is as it should be."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        with suppress(OSError):  # nobody listens while a process follows another one
            if is_so(decoded(asked(port, "/frame.png")[1])):
                return True
        time.sleep(0.02)  # the process that answers has a lower priority than this one
    return False


@pytest.mark.parametrize(
    "text",
    ["80", "8080 ", "0.0.0.0", "127.1:8080", "a.example.com:8080", "127.0.0.1:70000", "//127.0.0.1:8080", "8080?x"],
)
def test_what_is_no_port_is_told(text: str) -> None:
    outlet = outlet_of(f"http:{text}")
    assert outlet is not None
    with pytest.raises(OutletError):
        _ = outlet.place


@pytest.mark.long
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here; scripts/setup system test installs it")
def test_a_browser_shows_it_with_its_alpha(sending: Sending, port: int, tmp_path: Path) -> None:
    sending.show(picture(200, alpha=128))
    with chromium() as browser:
        browser.size(SIZE[0] * 5, SIZE[1] * 5)
        browser.open(f"http://127.0.0.1:{port}/")
        browser.until("window.frames_shown >= 1")
        shown = shown_by(browser, tmp_path)
        assert np.abs(shown - picture(200)[..., :3] * (128 / 255)).mean() < 4
        sending.show(picture(20))
        browser.until("window.frames_shown >= 2")
        assert np.abs(shown_by(browser, tmp_path) - picture(20)[..., :3]).mean() < 4


def shown_by(browser: object, folder: Path) -> NDArray[np.float64]:
    """What the page shows, in the size of the picture."""
    browser.screenshot(folder / "shot.png")  # type: ignore[attr-defined]
    found = Image.open(folder / "shot.png").convert("RGB").resize(SIZE, Image.Resampling.BOX)
    return np.asarray(found).astype(float)
