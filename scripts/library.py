#!/usr/bin/env python3
"""Writes docs/library.md from the libraries that ship with weft: .venv/bin/python scripts/library.py"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from weft.editor.topics import library_docs
from weft.syntax.docs import SpindleDoc
from weft.syntax.includes import libraries

PAGE = Path(__file__).parents[1] / "docs" / "library.md"

_OPENING = """\
# The library

Seventeen files of spindles ship with weft, written in weft (`weft/std/`). A patch uses one with a line at its top:

```weft
#use std.coord
#use std.sdf
#use std.color

t = centre() |> rotate(me@time / 4) |> tile(0.25)
tint = oklch(h: hash(t@column, t@row))
display(tint * fill(star(t, radius: 0.1)))
```

All of them can be used together. A spindle that a patch does not call costs nothing while it plays. If a patch defines
a spindle with the same name as one in the library, its own is used, and a warning says so. `weft help star` describes
a single spindle: its parameters, its range, and an example to paste.

What has a default, such as `radius = 0.25`, may be left out. A parameter `p<x, y>` takes a bundle, and `p<…>` one of
any length. Any other parameter takes one strand; a bundle in its place calls the spindle for each member, so the words
for one channel are words for whole pictures.

This page is generated from the comments in the libraries by `scripts/library.py`."""


def page() -> str:
    """The page: for each library what it is about, and a line for every spindle."""
    return "\n".join([_OPENING, *(line for name, text in libraries().items() for line in _library(name, text))]) + "\n"


def _library(name: str, text: str) -> Iterator[str]:
    title, *about = text[: text.index("\n\n")].split("\n")
    yield from ("", f"## {title.removeprefix('// ').removesuffix('.')}", "", *_about(about))
    yield from ("| spindle | |", "| --- | --- |")
    yield from map(_row, library_docs(name))


def _about(comment: list[str]) -> Iterator[str]:
    """The rest of the comment that a library begins with. Indented lines are code."""
    is_code = False
    for line in comment:
        words = line.removeprefix("//").removeprefix(" ")
        if words.startswith("  ") != is_code:
            yield from ("```", "") if is_code else ("", "```weft")
            is_code = not is_code
        yield words.strip()
    if comment:
        yield from ("```", "") if is_code else ("",)


def _row(doc: SpindleDoc) -> str:
    # A spindle with one output is a value, whatever its output is called.
    signature = doc.signature if len(doc.outputs) > 1 else doc.signature.partition(" ::")[0]
    return f"| `{signature}` | {doc.headline} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
