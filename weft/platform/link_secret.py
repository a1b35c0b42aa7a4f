"""What both ends of a connection say first, where a system lets every user of the machine connect."""

from dataclasses import dataclass


@dataclass(frozen=True)
class LinkSecret:
    """A line without its end for each side. Only who may read the file of a performance knows them."""

    knock: bytes = b""
    """What who connects says first; nothing if the system lets nobody else connect."""
    answer: bytes = b""
    """What the performance says then."""


NO_SECRET = LinkSecret()
