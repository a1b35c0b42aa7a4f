"""The pictures that programs sample, on a graphics card, whatever the card."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from weft.backends.launch import Picture

T = TypeVar("T")


class CardPictures(Generic[T]):
    """Pictures that are sent to a card when a program needs them first, and again when their file has changed."""

    def __init__(self, send: Callable[[Picture], T]) -> None:
        """`send` puts a picture [height, width, 4] on the card."""
        self._send = send
        self._known: dict[str, tuple[Picture, T]] = {}

    def on_card(self, path: str, picture: Picture) -> T:
        """What there is on the card of a picture; what has not changed is there already."""
        known = self._known.get(path)
        if known is None or known[0] is not picture:
            known = self._known[path] = picture, self._send(picture)
        return known[1]
