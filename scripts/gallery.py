#!/usr/bin/env python3
"""Writes docs/gallery.md and its pictures from the patches that ship with weft: .venv/bin/python scripts/gallery.py

With names of patches, only their pictures are drawn.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image

from weft.cli.examples import headline, shipped

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "gallery.md"
PICTURES = DOCS / "gallery"

# The second at which a patch is shown; 5 where nothing is said.
_MOMENTS = {
    "acid": 9, "aurora": 4, "bells": 12, "bloom": 4, "both": 3, "choir": 38, "dancers": 8.3, "drone": 2,
    "drums": 2.53, "dub": 24, "echoes": 9, "film": 3, "gamelan": 41, "garden": 9.1, "groove": 11.5, "ink": 14,
    "kaleidoscope": 13, "life": 7, "mirrors": 9, "mobile": 7, "musicbox": 3, "phases": 62, "pulse": 20,
    "reaction": 10, "ridges": 8.3, "ripple": 11, "sampler": 5.2, "scratch": 4.7, "sdf": 7, "strand": 9, "touch": 8,
    "trails": 13, "voronoi": 2, "warp": 3,
}  # fmt: skip

_WIDTH = 480

_OPENING = """\
# Gallery

The patches that ship with weft, each at a moment of its own. Play one, and change it while it plays:

```sh
make run PATCH=patches/kaleidoscope.weft
```

This page is generated from the patches' first lines by `make gallery`."""


def page() -> str:
    """The page: for each patch its name, what it is, and its picture."""
    return "\n".join([_OPENING, *(line for name, path in shipped().items() for line in _entry(name, path))]) + "\n"


def _entry(name: str, path: Path) -> Iterator[str]:
    yield from ("", f"## [{name}](../patches/{name}.weft)", "", headline(path))
    yield from ("", f"![A frame of {name}.weft](gallery/{name}.png)")


def draw(name: str, path: Path) -> None:
    """Renders a patch in its own size, and keeps it as a small PNG."""
    with TemporaryDirectory() as folder:
        frame = Path(folder) / "frame.png"
        command = [sys.executable, "-m", "weft", "render", path, "-o", frame, "--time", str(_MOMENTS.get(name, 5))]
        subprocess.run(command, check=True)
        with Image.open(frame) as picture:
            size = (_WIDTH, round(_WIDTH * picture.height / picture.width))
            small = picture.convert("RGB").resize(size, Image.Resampling.LANCZOS)
    small.save(PICTURES / f"{name}.png", optimize=True)


if __name__ == "__main__":
    PICTURES.mkdir(exist_ok=True)
    wanted = shipped()
    for old in set(PICTURES.glob("*.png")) - {PICTURES / f"{name}.png" for name in wanted}:
        old.unlink()
    for name in sys.argv[1:] or wanted:
        draw(name, wanted[name])
    PAGE.write_text(page(), encoding="utf-8")
