"""SRT, by the system's library libsrt: the wheels of PyAV are made without it. A dozen of its functions, called by
ctypes, which lets other threads run meanwhile."""

from __future__ import annotations

import ctypes
import socket
import struct
from functools import cache
from typing import Any, Final

from weft.codes.rows import InternalError
from weft.streams import StreamAddress

# The names of the library on Linux (by the library of its ciphers), macOS and Windows.
_NAMES = (
    "libsrt-gnutls.so.1.5", "libsrt-openssl.so.1.5", "libsrt.so.1.5", "libsrt.so.1", "libsrt.1.5.dylib",
    "/opt/homebrew/lib/libsrt.dylib", "/usr/local/lib/libsrt.dylib", "srt.dll",
)  # fmt: skip
# Its options of sockets, by their numbers in `srt.h`.
_SENDING_MS, _REUSES, _LATENCY, _PASSPHRASE, _KEY_LENGTH, _CONNECTING_MS, _STREAM = 13, 15, 23, 26, 27, 36, 46
_MILLISECONDS = 3000
# The bytes of a message: seven packets of MPEG-TS.
_MESSAGE: Final = 7 * 188
# It says nothing on stderr but what ends it.
_CRITICAL = 2


class SrtError(InternalError):
    """A connection cannot be made, or has ended."""


@cache
def srt_library() -> Any:
    """The library; None where there is none."""
    for name in _NAMES:
        try:
            found: Any = ctypes.CDLL(name)
        except OSError:
            continue
        found.srt_getlasterror_str.restype = ctypes.c_char_p
        found.srt_setloglevel(_CRITICAL)
        found.srt_startup()
        return found
    return None


class SrtSender:
    """A connection by SRT. FFmpeg writes to it as to a file."""

    def __init__(self, library: Any, address: StreamAddress) -> None:
        """Connects, or waits for a receiver. Raises SrtError, and OSError for a host that is not known."""
        self._library = library
        self._rest = b""
        self.failure: str | None = None
        """Why it has ended. PyAV does not pass on what `write` raises."""
        name = _place(address)
        self._socket = library.srt_create_socket()
        try:
            self._set(_SENDING_MS, _MILLISECONDS)
            self._set(_CONNECTING_MS, _MILLISECONDS)
            self._configure(address)
            if address.listens:
                self._accept(name)
            else:
                self._check(library.srt_connect(self._socket, name, len(name)))
        except BaseException:
            self.close()
            raise

    def write(self, data: bytes) -> int:
        """Sends packets, as soon as there are seven of them. Raises SrtError."""
        whole = self._rest + bytes(data)
        for at in range(0, len(whole) - _MESSAGE + 1, _MESSAGE):
            self._check(self._library.srt_send(self._socket, whole[at : at + _MESSAGE], _MESSAGE))
        self._rest = whole[len(whole) // _MESSAGE * _MESSAGE :]
        return len(data)

    def close(self) -> None:
        """Ends the connection. May be called twice."""
        number, self._socket = self._socket, -1
        if number != -1:
            self._library.srt_close(number)

    def _configure(self, address: StreamAddress) -> None:
        said = address.said
        for name, option in (("latency", _LATENCY), ("pbkeylen", _KEY_LENGTH)):
            if name in said:
                self._set(option, int(said[name]))
        for name, option in (("passphrase", _PASSPHRASE), ("streamid", _STREAM)):
            if name in said:
                text = said[name].encode()
                self._check(self._library.srt_setsockflag(self._socket, option, text, len(text)))

    def _accept(self, name: bytes) -> None:
        """Waits for a receiver, and takes no second one."""
        listening = self._socket
        self._set(_REUSES, 1)
        self._check(self._library.srt_bind(listening, name, len(name)))
        self._check(self._library.srt_listen(listening, 1))
        self._socket = self._library.srt_accept(listening, None, None)
        failure = None if self._socket != -1 else self._reason()
        self._library.srt_close(listening)
        if failure is not None:
            raise SrtError(failure)

    def _set(self, option: int, number: int) -> None:
        value = ctypes.c_int(number)
        self._check(self._library.srt_setsockflag(self._socket, option, ctypes.byref(value), ctypes.sizeof(value)))

    def _check(self, result: int) -> None:
        if result == -1:
            self.failure = self._reason()
            raise SrtError(self.failure)

    def _reason(self) -> str:
        found = self._library.srt_getlasterror_str()
        return (found or b"it failed").decode(errors="replace").rstrip(".")


def _place(address: StreamAddress) -> bytes:
    """An address as the functions of the system take it. Raises OSError."""
    flags = socket.AI_PASSIVE if address.listens else 0
    host = address.host.strip("[]")
    family, *_, place = socket.getaddrinfo(host, address.port, type=socket.SOCK_DGRAM, flags=flags)[0]
    raw = socket.inet_pton(family, str(place[0]).partition("%")[0])
    port = struct.pack("!H", address.port)
    head = _family(family)
    if family == socket.AF_INET6:
        return head + port + bytes(4) + raw + struct.pack("=I", int(place[3]) if len(place) > 3 else 0)
    return head + port + raw + bytes(8)


def _family(family: int) -> bytes:
    """The number of a family at the beginning of an address; systems of BSD have its length before it."""
    if hasattr(socket, "AF_SYSTEM"):
        return bytes((28 if family == socket.AF_INET6 else 16, family))
    return struct.pack("=H", family)
