#!/usr/bin/env python3
"""Writes docs/gallery.md and its pictures from the patches that ship with weft: .venv/bin/python scripts/gallery.py

With names of patches, only their pictures are drawn; `panel` is the picture of docs/hands.md.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from PIL import Image

from weft.cli.examples import headline, shipped
from weft.errors import Report
from weft.runtime.hands.parameters import ParameterBank, ParameterSpec
from weft.runtime.screens.panel import ControlPanel
from weft.runtime.screens.panel_painter import PanelPainter
from weft.syntax.ast import Parameter
from weft.syntax.includes import load, open_source

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "gallery.md"
PICTURES = DOCS / "gallery"

# The second at which a patch is shown; 5 where nothing is said.
_MOMENTS = {
    "acid": 9, "aurora": 4, "bells": 12, "bloom": 4, "both": 3, "choir": 38, "dancers": 8.3, "drone": 2,
    "drums": 2.53, "dub": 24, "echoes": 9, "film": 3, "gamelan": 41, "garden": 9.1, "groove": 11.5, "ink": 14,
    "kaleidoscope": 13, "life": 7, "mirrors": 9, "mobile": 7, "musicbox": 3, "parade": 5.1, "phases": 62, "pulse": 20,
    "reaction": 10, "ridges": 8.3, "ripple": 11, "sampler": 5.2, "scratch": 4.7, "sdf": 7, "strand": 9, "touch": 8,
    "trails": 13, "voronoi": 2, "warp": 3,
}  # fmt: skip

_WIDTH = 480

# The patch in the picture of the panel, and the size of the window that it shows.
_WITH_PANEL = "silk"
_PANEL_FRAME = 1280, 720
_PANEL_WIDTH = 720

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


def rendered(name: str, path: Path, *options: str) -> Image.Image:
    """A patch at its moment, in its own size."""
    with TemporaryDirectory() as folder:
        frame = Path(folder) / "frame.png"
        moment = str(_MOMENTS.get(name, 5))
        command = [sys.executable, "-m", "weft", "render", path, "-o", frame, "--time", moment, *options]
        subprocess.run(command, check=True)
        with Image.open(frame) as picture:
            return picture.convert("RGB")


def draw(name: str, path: Path) -> None:
    """Keeps the picture of a patch as a small PNG."""
    picture = rendered(name, path)
    size = (_WIDTH, round(_WIDTH * picture.height / picture.width))
    picture.resize(size, Image.Resampling.LANCZOS).save(PICTURES / f"{name}.png", optimize=True)


def draw_panel(name: str, path: Path) -> None:
    """Draws a patch with its panel over it, as a window shows both."""
    frame = rendered(name, path, "--size", "{}x{}".format(*_PANEL_FRAME))
    report = Report()
    statements = load(open_source(str(path)), report).program.statements
    bank = ParameterBank()
    bank.adopt([ParameterSpec.of(each) for each in statements if isinstance(each, Parameter)])
    panel, painter = ControlPanel(bank), PanelPainter()
    panel.toggle()
    view = panel.view(*painter.room(_PANEL_FRAME, 1.0, 0))
    assert view is not None, "there is room"
    pixels = np.asarray(frame).astype(float)
    for label in painter.labels(view, painter.place(view.layout, _PANEL_FRAME, 0)):
        place = label.place
        part = pixels[place.top : place.top + place.height, place.left : place.left + place.width]
        part[...] = label.pixels[..., :3] + part * (1 - label.pixels[..., 3:] / 255)
    shown = Image.fromarray(np.rint(pixels).astype(np.uint8))
    small = shown.resize((_PANEL_WIDTH, _PANEL_WIDTH * 9 // 16), Image.Resampling.LANCZOS)
    small.save(DOCS / "panel.png", optimize=True)


if __name__ == "__main__":
    PICTURES.mkdir(exist_ok=True)
    wanted = shipped()
    for old in set(PICTURES.glob("*.png")) - {PICTURES / f"{name}.png" for name in wanted}:
        old.unlink()
    for name in sys.argv[1:] or [*wanted, "panel"]:
        if name == "panel":
            draw_panel(_WITH_PANEL, wanted[_WITH_PANEL])
        else:
            draw(name, wanted[name])
    PAGE.write_text(page(), encoding="utf-8")
