#!/usr/bin/env python3
"""Writes docs/errors.md from the table of codes: .venv/bin/python scripts/errors.py"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from weft.codes.meaning import MEANING
from weft.codes.playing import PLAYING
from weft.codes.rows import CodeSpec
from weft.codes.text import TEXT

PAGE = Path(__file__).parents[1] / "docs" / "errors.md"

_OPENING = """\
# Errors and warnings

Each message ends with a code in brackets. `weft help cycle` says the same as this page about one of them: why it is
said, what to do, a wrong text, and a right one.

An **error** keeps a text from playing, while the last good version goes on. A command that ends with errors has the
exit code that stands here; if they differ, it is 1. A **warning** changes neither what plays nor the exit code.

This page is generated from the table in `weft/codes/` by `scripts/errors.py`."""

_PARTS: Sequence[tuple[str, Sequence[CodeSpec]]] = (
    ("How a patch is written", TEXT),
    ("What a patch means", MEANING),
    ("Files, devices, and a patch that plays", PLAYING),
)


def page() -> str:
    """The page: part by part, what is known of each code."""
    lines = [_OPENING]
    for title, rows in _PARTS:
        lines += ["", f"## {title}"]
        lines += [line for row in rows for line in _entry(row)]
    return "\n".join(lines) + "\n"


def _entry(row: CodeSpec) -> Iterator[str]:
    yield from ("", f"### {row.code}", "", f"{row.consequence.capitalize()}. {row.explanation}")
    if row.arises:
        yield from ("", f"For example: {row.arises}")
        return
    yield from ("", "Wrong:", "", "```", row.wrong, "```")
    yield from ("", "Right:", "", "```weft", row.right, "```")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
