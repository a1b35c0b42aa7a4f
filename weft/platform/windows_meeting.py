"""Where programs of one user meet on Windows, for which Python has no sockets with a path: at a port of this machine,
which a file of the user names. Everybody can connect to a port, so both sides first say what only that file tells."""

from __future__ import annotations

import _winapi
import json
import os
import secrets
import socket
import sys
import time
from contextlib import suppress
from hmac import compare_digest
from pathlib import Path

from weft.platform.link_secret import LinkSecret

assert sys.platform == "win32"  # types are checked for one system at a time

_HERE = "127.0.0.1"
_LONGEST = 1024
"""The most bytes of a file that names a port."""


class _NamedSocket(socket.socket):
    """A socket that listens, and the file that names it, which this process has open until the end."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(socket.AF_INET)
        self._file: int | None = descriptor
        self.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)  # type: ignore[attr-defined,unused-ignore]

    def close(self) -> None:
        super().close()
        file, self._file = self._file, None
        if file is not None:
            os.close(file)


def listening(path: Path) -> tuple[socket.socket, LinkSecret]:
    """See `posix`."""
    secret = LinkSecret(secrets.token_hex(32).encode(), secrets.token_hex(32).encode())
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_BINARY | os.O_NOINHERIT
    made = _NamedSocket(os.open(path, flags, 0o600))
    try:
        made.bind((_HERE, 0))
        made.listen()
        said = {"port": made.getsockname()[1], "knock": secret.knock.decode(), "answer": secret.answer.decode()}
        assert made._file is not None
        os.write(made._file, json.dumps(said).encode())
    except BaseException:
        made.close()
        raise
    return made, secret


def connected(path: Path, descriptor: int, seconds: float) -> socket.socket:
    """See `posix`. The descriptor is that of the file, and is closed."""
    port, secret = _named(path, descriptor)
    until = time.monotonic() + seconds
    made = socket.create_connection((_HERE, port), seconds)
    try:
        made.sendall(secret.knock + b"\n")
        expected, heard = secret.answer + b"\n", b""
        while len(heard) < len(expected):
            made.settimeout(max(0.001, until - time.monotonic()))
            piece = made.recv(len(expected) - len(heard))
            if not piece:
                raise ConnectionResetError(0, "it has ended")
            heard += piece
        if not compare_digest(heard, expected):
            raise PermissionError(0, "another program listens at its port")
    except BaseException:
        made.close()
        raise
    return made


def _named(path: Path, descriptor: int) -> tuple[int, LinkSecret]:
    """The port that a file names, and what is said there first. Raises OSError."""
    with os.fdopen(descriptor, "rb") as file:
        text = file.read(_LONGEST)
    with suppress(ValueError, RecursionError):
        match json.loads(text):
            case {"port": int() as port, "knock": str() as knock, "answer": str() as answer} if 0 < port < 1 << 16:
                return port, LinkSecret(knock.encode(), answer.encode())
    # It is written a moment after it was made.
    raise FileNotFoundError(0, "it names no port", str(path))


def is_left_over(path: Path) -> bool:
    """See `posix`. As long as its process is there, nobody can have the file alone."""
    try:
        handle = _winapi.CreateFile(str(path), _winapi.GENERIC_READ, 0, 0, _winapi.OPEN_EXISTING, 0, 0)
    except OSError:
        return False
    _winapi.CloseHandle(handle)
    return True
