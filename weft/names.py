"""The name of a strand, as a patch writes it."""

from __future__ import annotations

from typing import NamedTuple


class StrandRef(NamedTuple):
    """A strand by the names the patch gives it."""

    instance: str
    output: str

    def __str__(self) -> str:
        return f"{self.instance}@{self.output}"
