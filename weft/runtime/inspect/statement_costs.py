"""What the statements of a patch cost, and what to do about it: `weft bench --by-statement`, and what editors show."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from weft.codegen.kernel import Unit
from weft.errors import Source, Span
from weft.runtime.program.findings import place_named, shares_of_costs

# The lines of a statement that are looked at.
_MOST_LINES = 20

# Words by which a statement says what makes it costly, and what to do then.
_ADVICE: Mapping[str, str] = {
    r"\bfbm\s*\(": "fewer octaves of fbm, such as octaves: 3",
    r"\bblur\w*\s*\(": "a smaller radius of the blur, or a blur of image(…, level: 1)",
    r"\bnoise\s*\(": "image(…, level: 1) around its noise, which has no sharp edges",
    r"\b(for|while)\b": "fewer steps of its loop",
    r"\bvoronoi\w*\s*\(|\bworley\w*\s*\(": "larger cells, or image(…, level: 1) of it",
}

_AN_IMAGE = "image(…) around it: it is read at other places, where it is computed again for each of them"
OTHERWISE: Final = "image(…, level: 1) around what has no sharp edges, a number in place of what hardly changes"
"""What helps if a statement does not say what makes it costly."""


@dataclass(frozen=True)
class StatementCost:
    """A statement, the share of all operations at each pixel that it takes, and its place, if that is in the text."""

    name: str
    share: float
    place: Span | None

    def advice(self, source: Source) -> str:
        """What makes it cheaper, in words."""
        text = "" if self.place is None else _statement(source, self.place)
        for words, advice in _ADVICE.items():
            if re.search(words, text):
                return advice
        is_read_elsewhere = re.search(rf"\b{re.escape(self.name)}(@\w+)?\([^()]*~", source.text)
        return _AN_IMAGE if is_read_elsewhere and "image(" not in text else OTHERWISE


def costs_of_statements(units: Iterable[Unit], source: Source) -> list[StatementCost]:
    """The statements of a text with what they cost at each pixel, the most expensive first."""
    found: dict[str, StatementCost] = {}
    for label, share in shares_of_costs(units, source.name).items():
        name, place = _named(source, label)
        key = name if place is None else str(place.start)
        known = found.get(key)
        found[key] = StatementCost(name, share + (known.share if known else 0.0), place)
    return sorted(found.values(), key=lambda each: -each.share)


def _named(source: Source, label: str) -> tuple[str, Span | None]:
    """The name of a value, such as `oil[0]` or `a@g`, as it is written where it is defined, and the place of that."""
    name = re.split(r"[@\[.]", label)[0]
    for each in (name, name.rpartition("_")[0]):
        if each and (place := place_named(source, each)) is not None:
            return each, place
    return name, None


def _statement(source: Source, place: Span) -> str:
    """The text of a statement that begins in the line of a place."""
    first, *others = source.text[source.text.rfind("\n", 0, place.start) + 1 :].split("\n")[:_MOST_LINES]
    lines = [first]
    for line in others:
        if not line[:1].isspace() and not line.startswith("}"):
            break
        lines.append(line)
    return "\n".join(lines)
