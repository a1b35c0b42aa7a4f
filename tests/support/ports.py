"""Ports that nobody has."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from itertools import count

# Systems give ports from 32768 on, or above that, to who asks for any, as other tests do all the time. Below, nobody
# gets one before it is used here. Even ones, since RTP takes the next one, too; each process begins elsewhere.
_FROM, _TO = 20_000, 32_000
_STEP = 2


def _candidates() -> Iterator[int]:
    for number in count(os.getpid() * 100):
        yield _FROM + number * _STEP % (_TO - _FROM)


_LEFT = _candidates()


def free_port(kind: socket.SocketKind = socket.SOCK_STREAM) -> int:
    """A port of this machine that is free, and stays so until it is used."""
    for port in _LEFT:
        with socket.socket(socket.AF_INET, kind) as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("the ports do not end")
