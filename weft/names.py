"""The name of a strand, as a patch writes it; and that of the picture which it is seen as from elsewhere."""

from __future__ import annotations

from typing import NamedTuple


class StrandRef(NamedTuple):
    """A strand by the names the patch gives it."""

    instance: str
    output: str

    def __str__(self) -> str:
        return f"{self.instance}@{self.output}"


def view_of(strand: StrandRef) -> str:
    """What the picture of a strand is called, among pictures from files."""
    return f"<{strand}>"


def is_view(picture: str) -> bool:
    """Whether a picture is that of a strand."""
    return picture.startswith("<") and picture.endswith(">")


def viewed(picture: str) -> StrandRef:
    """The strand that a picture is of."""
    instance, _, output = picture[1:-1].partition("@")
    return StrandRef(instance, output)
