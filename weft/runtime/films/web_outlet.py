"""The outlet `http`: a page that shows the picture in browsers, and in the browser sources of OBS and vMix.

The page asks for one picture after another, and gets the newest: nothing waits in a queue, however slow a network or a
browser is. Pictures are JPEGs, which are made only while a page asks for them. One with an alpha has it below its
colours, as a picture of about twice the height.
"""

from __future__ import annotations

import asyncio
import hmac
import os
import re
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from importlib.resources import files
from typing import Final, NamedTuple
from urllib.parse import parse_qs, urlsplit

import numpy as np

from weft.codes.rows import InternalError
from weft.hosts import is_loopback
from weft.media.frames import Pixels
from weft.media.pictures import as_jpeg, as_png
from weft.outlets import OutletError, host_and_port
from weft.runtime.films.outlet import OutletOpening, PictureOutlet

# The most connections at a time, and the most bytes of a request.
_CONNECTIONS = 64
_REQUEST = 8192
# Seconds for a request to come whole, for an answer to go out, without a request, and until a page that waits for the
# next picture is told that there is none.
_TO_COME, _TO_GO, _IDLE, _NEXT = 5.0, 5.0, 30.0, 10.0
# Seconds for which a program that asks for the newest picture waits for the first one.
_FIRST = 5.0
# The bytes of a picture that may wait in the system for a slow receiver.
_SENDING = 262_144
# The seconds between two lines about requests of one kind.
_QUIET = 10.0

# The rows of a block of a JPEG whose colours have half the resolution.
_BLOCK = 16

_LOCAL = {"localhost", "127.0.0.1", "[::1]"}
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; img-src blob:; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
_HEADERS = (
    "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n"
    f"Cross-Origin-Resource-Policy: same-origin\r\nContent-Security-Policy: {_POLICY}\r\n"
)
_BOUNDARY: Final = "weft-picture"
_REASONS = {200: "OK", 204: "No Content", 400: "Bad Request", 403: "Forbidden", 404: "Not Found",
            405: "Method Not Allowed", 503: "Service Unavailable"}  # fmt: skip


class _Encoded(NamedTuple):
    """A picture as a JPEG, its number, and the row at which its alpha begins below its colours; 0 if it has none."""

    number: int
    data: bytes
    alpha: int


class _Newest:
    """The newest picture, which a thread of its own encodes when one is wanted."""

    def __init__(self, width: int, height: int, publish: Callable[[_Encoded], None]) -> None:
        """`publish` is called by that thread."""
        self._publish = publish
        self._changed = threading.Condition()
        self._newest = np.zeros((height, width, 4), np.uint8)
        self._spare = np.zeros_like(self._newest)
        self._number = 0
        self._encoded = 0
        """The numbers of the newest picture, and of the one that was last encoded."""
        self._is_wanted = False
        # The alpha begins with a block of the JPEG, so that no block has both.
        self._alpha = -(-height // _BLOCK) * _BLOCK
        self._stacked = np.full((self._alpha + height, width, 4), 255, np.uint8)
        self._thread = threading.Thread(target=self._encode, name="weft-jpeg", daemon=True)
        self._thread.start()

    def show(self, pixels: Pixels) -> None:
        """Takes a picture."""
        with self._changed:
            np.copyto(self._newest, pixels)
            self._number += 1
            if self._is_wanted or self._number == 1:
                self._changed.notify_all()

    def want(self) -> None:
        """Has the next picture encoded that is not the last one."""
        with self._changed:
            self._is_wanted = True
            self._changed.notify_all()

    def exactly(self, written: Callable[[Pixels], bytes]) -> bytes:
        """The newest picture, written as a file. The first one is waited for; nothing if none comes."""
        with self._changed:
            is_there = self._changed.wait_for(lambda: self._number, _FIRST)
            pixels = self._newest.copy()
        return written(pixels) if is_there else b""

    def _encode(self) -> None:
        last = np.zeros_like(self._newest)
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_wanted and self._number != self._encoded)
                is_first, number = not self._encoded, self._number
                np.copyto(self._spare, self._newest)
                self._encoded = number
            if not is_first and np.array_equal(self._spare, last):
                continue
            with self._changed:
                self._is_wanted = False
            self._publish(self._form(self._spare, number))
            self._spare, last = last, self._spare

    def _form(self, pixels: Pixels, number: int) -> _Encoded:
        if int(pixels[..., 3].min()) == 255:
            return _Encoded(number, as_jpeg(pixels), 0)
        height = len(pixels)
        self._stacked[:height] = pixels
        self._stacked[height : self._alpha] = pixels[-1]
        self._stacked[self._alpha :, :, :3] = pixels[..., 3:]
        return _Encoded(number, as_jpeg(self._stacked), self._alpha)


class WebOutlet(PictureOutlet):
    """Serves the page and its pictures, by a thread of its own."""

    def __init__(self, opening: OutletOpening) -> None:
        """Raises OutletError if listening is not allowed there."""
        super().__init__(opening)
        host, port = host_and_port(opening.place)
        secret = "" if is_loopback(host) else opening.secret
        listening = _listening(host, port)
        self._loop = asyncio.new_event_loop()
        self._server = _Server(self._loop, opening, secret)
        threading.Thread(target=self._server.run, args=(listening,), name="weft-http", daemon=True).start()
        opening.say("address", _address(host, port, secret))

    def show(self, pixels: Pixels, number: int) -> None:
        self._server.newest.show(pixels)


def _listening(host: str, port: int) -> socket.socket:
    """The socket that listens. Raises OutletError."""
    family = socket.AF_INET6 if host.startswith("[") else socket.AF_INET
    # All addresses of this machine are those of both kinds.
    is_both = host == "[::]" and socket.has_dualstack_ipv6()
    try:
        found = socket.create_server(
            (host.strip("[]"), port), family=family, backlog=_CONNECTIONS, dualstack_ipv6=is_both
        )  # fmt: skip
    except OSError as problem:
        reason = f"port {port} of {host} cannot be had: {os.strerror(problem.errno or 0)}"
        raise OutletError(reason, "another program may have it; another number may be free") from None
    found.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SENDING)
    return found


def _address(host: str, port: int, secret: str) -> str:
    """The address of the page, for people in the network if it is for all of them."""
    if host in ("0.0.0.0", "[::]"):
        host = _own_address() or host
    return f"http://{host}:{port}/" + (f"?token={secret}" if secret else "")


def _own_address() -> str | None:
    """The address of this machine in its network. Nothing is sent to find it."""
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))
        return str(probe.getsockname()[0])
    return None


class _PageRequest(NamedTuple):
    """What a receiver asks for."""

    method: str
    path: str
    query: dict[str, list[str]]
    host: str | None
    """The host that its Host header names, without the port."""
    closes: bool


class _RequestError(InternalError):
    """A request that is none, or one that is refused: the status, and words for the performer."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


_LINE = re.compile(r"([A-Z]{1,10}) (/[!-~]*) HTTP/1\.([01])")


def _request(head: bytes) -> _PageRequest:
    """The request in the bytes up to its empty line. Raises _RequestError."""
    line, *lines = head.decode("latin-1").split("\r\n")
    match = _LINE.fullmatch(line)
    if match is None:
        raise _RequestError(400, "sent what is no request")
    headers = {name.strip().lower(): value.strip() for name, _, value in (each.partition(":") for each in lines)}
    host = headers.get("host")
    try:
        parts = urlsplit(match[2])
        query = parse_qs(parts.query, max_num_fields=8)
    except ValueError:
        raise _RequestError(400, "sent what is no request") from None
    closes = match[3] == "0" or "close" in headers.get("connection", "").lower()
    bare = None if host is None else re.sub(r":\d*$", "", host).lower()
    return _PageRequest(match[1], parts.path, query, bare, closes)


class _Server:
    """Answers requests."""

    def __init__(self, loop: asyncio.AbstractEventLoop, opening: OutletOpening, secret: str) -> None:
        """Without a secret, only this machine reaches it."""
        self._loop, self._opening, self._secret = loop, opening, secret
        self._latest: _Encoded | None = None
        self._arrived = asyncio.Event()
        self._count = 0
        self._said: dict[str, float] = {}
        self._page = files("weft.runtime.films").joinpath("outlet_page.html").read_bytes()
        self.newest = _Newest(opening.width, opening.height, self._publish)

    def run(self, listening: socket.socket) -> None:
        """Serves for as long as the process lasts."""
        asyncio.set_event_loop(self._loop)
        self._loop.set_exception_handler(lambda loop, context: None)
        start = asyncio.start_server(self._connected, sock=listening, limit=_REQUEST)
        self._loop.run_until_complete(start)
        self._loop.run_forever()

    # --- pictures -------------------------------------------------------------------------------------------------

    def _publish(self, picture: _Encoded) -> None:
        self._loop.call_soon_threadsafe(self._take, picture)

    def _take(self, picture: _Encoded) -> None:
        self._latest = picture
        arrived, self._arrived = self._arrived, asyncio.Event()
        arrived.set()

    async def _next(self, after: int) -> _Encoded | None:
        """The newest picture, as soon as it is another one than that with the number `after`; None if none comes."""
        deadline = self._loop.time() + _NEXT
        while self._latest is None or self._latest.number == after:
            arrived = self._arrived
            self.newest.want()
            try:
                await asyncio.wait_for(arrived.wait(), deadline - self._loop.time())
            except asyncio.TimeoutError:
                return None
        return self._latest

    # --- connections ----------------------------------------------------------------------------------------------

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serves a connection until either side has enough of it."""
        self._count += 1
        writer.transport.set_write_buffer_limits(high=0)
        try:
            if self._count > _CONNECTIONS:
                await self._answer(writer, 503, b"", "text/plain", closes=True)
                self._note("too many", f"more than {_CONNECTIONS} receivers; the others have to wait")
            else:
                await self._serve(reader, writer)
        except (OSError, EOFError, asyncio.TimeoutError):
            pass  # gone, or standing still
        finally:
            self._count -= 1
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            try:
                first = await asyncio.wait_for(reader.readexactly(1), _IDLE)
                head = first + await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), _TO_COME)
                request = self._allowed(_request(head[:-4]))
            except asyncio.LimitOverrunError:
                self._note("rubbish", f"{_peer(writer)} sent what is no request")
                return await self._answer(writer, 400, b"", "text/plain", closes=True)
            except _RequestError as problem:
                self._note(str(problem), f"{_peer(writer)} {problem}")
                return await self._answer(writer, problem.status, b"", "text/plain", closes=True)
            await self._respond(request, writer)
            if request.closes:
                return None

    def _allowed(self, request: _PageRequest) -> _PageRequest:
        """The request, if it may be answered. Raises _RequestError."""
        if self._secret:
            given = request.query.get("token", [""])[-1]
            if not hmac.compare_digest(given.encode("utf-8", "replace"), self._secret.encode()):
                raise _RequestError(403, "asked without the right token")
        elif request.host is not None and request.host not in _LOCAL:
            # A page of the internet whose name leads to this machine would otherwise see the picture.
            raise _RequestError(403, "asked by way of another site")
        if request.method not in ("GET", "HEAD"):
            raise _RequestError(405, "asked for something else than to see")
        return request

    async def _respond(self, request: _PageRequest, writer: asyncio.StreamWriter) -> None:
        is_head = request.method == "HEAD"
        match request.path:
            case "/":
                await self._answer(writer, 200, self._page, "text/html; charset=utf-8", is_head=is_head)
            case "/frame":
                picture = await self._next(_number(request.query))
                await self._answer_frame(writer, picture, is_head)
            case "/frame.png":
                data = await self._loop.run_in_executor(None, self.newest.exactly, as_png)
                await self._answer(writer, 200 if data else 204, data, "image/png", is_head=is_head)
            case "/stream" if not is_head:
                await self._stream(writer)
            case _:
                await self._answer(writer, 404, b"", "text/plain")

    async def _answer_frame(self, writer: asyncio.StreamWriter, picture: _Encoded | None, is_head: bool) -> None:
        if picture is None:
            await self._answer(writer, 204, b"", "image/jpeg")
            return
        about = f"X-Weft-Frame: {picture.number}\r\nX-Weft-Alpha: {picture.alpha}\r\n"
        await self._answer(writer, 200, picture.data, "image/jpeg", about, is_head=is_head)

    async def _stream(self, writer: asyncio.StreamWriter) -> None:
        """Sends picture after picture to programs that play MJPEG. They have no alpha."""
        kind = f"multipart/x-mixed-replace; boundary={_BOUNDARY}"
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n{_HEADERS}Connection: close\r\n\r\n"
        await self._write(writer, head.encode())
        number = 0
        while True:
            picture = await self._next(number)
            if picture is None:
                picture = self._latest
            if picture is not None:
                number, data = picture.number, picture.data
                if picture.alpha:
                    data = await self._loop.run_in_executor(None, self.newest.exactly, as_jpeg)
                head = f"--{_BOUNDARY}\r\nContent-Type: image/jpeg\r\nContent-Length: {len(data)}\r\n\r\n"
                await self._write(writer, head.encode() + data + b"\r\n")

    async def _answer(
        self, writer: asyncio.StreamWriter, status: int, data: bytes, kind: str, about: str = "",
        is_head: bool = False, closes: bool = False,
    ) -> None:  # fmt: skip
        ending = "Connection: close\r\n" if closes else ""
        head = (
            f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: {kind}\r\nContent-Length: {len(data)}\r\n"
            f"{_HEADERS}{about}{ending}\r\n"
        )
        await self._write(writer, head.encode() + (b"" if is_head else data))

    async def _write(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        """Waits until the system has all of it. Raises TimeoutError for a receiver that stands still."""
        writer.write(data)
        await asyncio.wait_for(writer.drain(), _TO_GO)

    def _note(self, kind: str, words: str) -> None:
        """Tells the performer, from time to time."""
        now = time.monotonic()
        if now - self._said.get(kind, -_QUIET) >= _QUIET:
            self._said[kind] = now
            self._opening.say("note", words)


def _peer(writer: asyncio.StreamWriter) -> str:
    found = writer.get_extra_info("peername")
    return str(found[0]) if found else "somebody"


def _number(query: dict[str, list[str]]) -> int:
    """The number of the picture that a page has; 0 for none."""
    text = query.get("after", ["0"])[-1]
    return int(text) if re.fullmatch(r"\d{1,15}", text, re.ASCII) else 0
