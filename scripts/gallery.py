#!/usr/bin/env python3
"""Writes docs/gallery.md and its pictures from the patches that ship with weft, and docs/gallery/pages, a folder for
any host in which each patch plays in a browser: .venv/bin/python scripts/gallery.py

With names of patches, only their pictures and pages are made; `panel` is the picture of docs/hands.md. `--pages` makes
only the pages, which are too large to be kept with the code, and `--address` says where they will be published.
"""

from __future__ import annotations

import argparse
import html
import os
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
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
from weft.web.poster import MOMENT

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "gallery.md"
PICTURES = DOCS / "gallery"

PAGES = PICTURES / "pages"

# The second at which a patch is shown; that of every still where nothing is said.
_MOMENTS = {
    "acid": 9, "aurora": 4, "bells": 12, "bloom": 4, "both": 3, "choir": 38, "dancers": 8.3, "drone": 2,
    "drums": 2.53, "dub": 24, "echoes": 9, "film": 3, "gamelan": 41, "garden": 9.1, "groove": 11.5, "ink": 14,
    "kaleidoscope": 13, "lamps": 3.3, "life": 7, "mirrors": 9, "mobile": 7, "musicbox": 3, "orbit": 5.3, "overlay": 5.2,
    "parade": 5.1, "phases": 62, "pulse": 20, "reaction": 10, "ridges": 8.3, "ripple": 11, "sampler": 5.2,
    "scratch": 4.7, "sdf": 7, "strand": 9, "touch": 8, "trails": 13, "voronoi": 2, "warp": 3,
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

`make gallery` generates this page from the patches' first lines. It also writes
[a folder for any host](gallery/pages/index.html), in which each of them plays in a browser
([web.md](web.md#the-gallery))."""


def page() -> str:
    """The page: for each patch its name, what it is, and its picture."""
    return "\n".join([_OPENING, *(line for name, path in shipped().items() for line in _entry(name, path))]) + "\n"


def _entry(name: str, path: Path) -> Iterator[str]:
    yield from ("", f"## [{name}](../patches/{name}.weft)", "", headline(path))
    yield from ("", f"![A frame of {name}.weft](gallery/{name}.png)")


def moment_of(name: str) -> str:
    """The second at which a patch is shown."""
    return str(_MOMENTS.get(name, MOMENT))


def rendered(name: str, path: Path, *options: str) -> Image.Image:
    """A patch at its moment, in its own size."""
    with TemporaryDirectory() as folder:
        frame = Path(folder) / "frame.png"
        command = [sys.executable, "-m", "weft", "render", path, "-o", frame, "--time", moment_of(name), *options]
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


# Pages.

_INDEX = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>weft: gallery</title>
<style>
body {{ margin: 2em; background: #111; color: #ddd; font: 16px/1.4 system-ui, sans-serif; }}
ul {{ display: grid; grid-template-columns: repeat(auto-fill, minmax(16em, 1fr)); gap: 2em; padding: 0; }}
li {{ list-style: none; }}
img {{ display: block; width: 100%; aspect-ratio: 16 / 9; object-fit: cover; margin-bottom: 0.5em; }}
a {{ color: inherit; }}
</style>
<h1>The patches that ship with weft</h1>
<p>Each plays its picture and its sound here in the browser. U shows its text.</p>
<ul>
{entries}
</ul>
</html>
"""


def write_pages(wanted: Iterable[str], folder: Path = PAGES, address: str = "") -> None:
    """Writes the pages of some patches with their posters, and an index of all that the folder has. `address` is where
    the folder will be published."""
    folder.mkdir(parents=True, exist_ok=True)
    patches = shipped()

    def write(name: str) -> None:
        at = ["--address", f"{address.rstrip('/')}/{name}.html"] if address else []
        command = [sys.executable, "-m", "weft", "export", patches[name], "-o", folder / f"{name}.html"]
        subprocess.run([*command, "--poster", moment_of(name), *at], check=True)

    # Most of the time is that of the reference machine, which is a process with one thread.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        deque(pool.map(write, wanted), maxlen=0)
    entries = (_link(name, path, folder) for name, path in patches.items() if (folder / f"{name}.html").exists())
    (folder / "index.html").write_text(_INDEX.format(entries="\n".join(entries)), encoding="utf-8")


def _link(name: str, path: Path, folder: Path) -> str:
    """The entry of a patch in the index. One that is only heard has no picture."""
    picture = f'<img src="{name}.png" alt="" loading="lazy">' if (folder / f"{name}.png").exists() else ""
    return f'<li><a href="{name}.html">{picture}<strong>{name}</strong></a><br>{html.escape(headline(path))}</li>'


def write_pictures(names: Iterable[str]) -> None:
    """Draws the pictures of some patches, and writes the page that shows all of them."""
    PICTURES.mkdir(exist_ok=True)
    patches = shipped()
    for old in set(PICTURES.glob("*.png")) - {PICTURES / f"{name}.png" for name in patches}:
        old.unlink()
    for name in names:
        if name == "panel":
            draw_panel(_WITH_PANEL, patches[_WITH_PANEL])
        else:
            draw(name, patches[name])
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write the gallery.")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--pages", action="store_true", help="write only the pages for a browser")
    parser.add_argument("--address", default="", help="where the folder of the pages will be published")
    asked = parser.parse_args()
    names = asked.names or [*shipped(), "panel"]
    if unknown := set(names) - {*shipped(), "panel"}:
        parser.error(f"no patch is called {', '.join(sorted(unknown))}")
    if not asked.pages:
        write_pictures(names)
    write_pages([name for name in names if name != "panel"], address=asked.address)
