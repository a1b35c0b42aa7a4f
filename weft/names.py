"""The name of a strand, as a patch writes it, and the name of the picture as which other contexts read it."""

from __future__ import annotations

from typing import NamedTuple


class StrandRef(NamedTuple):
    """A strand by the names the patch gives it."""

    instance: str
    output: str

    def __str__(self) -> str:
        return f"{self.instance}@{self.output}"

    @property
    def short(self) -> str:
        """The strand as it is usually written."""
        if self.output.isdigit():  # a bundle without names
            return f"{self.instance}[{self.output}]"
        return str(self).removesuffix("@val")


def view_of(strand: StrandRef) -> str:
    """The name of the picture of a strand, among pictures from files."""
    return f"<{strand}>"


def is_view(picture: str) -> bool:
    """Whether a picture is the view of a strand."""
    return picture.startswith("<") and picture.endswith(">")


def viewed(picture: str) -> StrandRef:
    """The strand of a view."""
    instance, _, output = picture[1:-1].partition("@")
    return StrandRef(instance, output)
