"""Machines of a network, as texts of patches name them and weft writes them."""

from __future__ import annotations

import ipaddress
import re

from weft.codes.rows import InternalError

_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9\-]{0,61}[A-Za-z0-9])?"
_HOST = re.compile(rf"{_LABEL}(?:\.{_LABEL})*\.?", re.ASCII)


class HostError(InternalError):
    """A text names no machine. `hint` says what would."""

    def __init__(self) -> None:
        super().__init__("this names no machine")
        self.reason = "this names no machine"
        self.hint = "such as localhost, 192.168.0.5 or [::1]"


def host_of(text: str) -> str:
    """A host as weft writes it: an address, in brackets if it has colons, or a name. Raises HostError."""
    bare = text[1:-1] if text.startswith("[") else text
    try:
        found = ipaddress.ip_address(bare)
    except ValueError:
        # Numbers with dots that are no address would be read in several ways.
        if _HOST.fullmatch(text) is None or len(text) > 253 or text.rstrip(".").rpartition(".")[2].isdecimal():
            raise HostError from None
        return text.rstrip(".").lower()
    return f"[{found}]" if found.version == 6 else str(found)


def is_loopback(host: str) -> bool:
    """Whether a host, as `host_of` writes it, is this machine and cannot be reached from others."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
