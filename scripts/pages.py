#!/usr/bin/env python3
"""Writes a page for each patch that ships with weft, and an index of them, to build/gallery, for any host:
.venv/bin/python scripts/pages.py

With names of patches, only their pages are written. Together they are too large to be kept with the code.
"""

from __future__ import annotations

import html
import shutil
import subprocess
import sys
from pathlib import Path

from weft.cli.examples import headline, shipped

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "build" / "gallery"
PICTURES = ROOT / "docs" / "gallery"

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
img {{ width: 100%; }}
a {{ color: inherit; }}
</style>
<h1>The patches that ship with weft</h1>
<ul>
{entries}
</ul>
</html>
"""


def entry(name: str, path: Path) -> str:
    """The entry of a patch in the index."""
    picture = f'<img src="{name}.png" alt="" loading="lazy">' if (PICTURES / f"{name}.png").exists() else ""
    return f'<li><a href="{name}.html">{picture}<strong>{name}</strong></a><br>{html.escape(headline(path))}</li>'


def write(name: str, path: Path) -> None:
    """Writes the page of a patch, and its picture beside it."""
    subprocess.run([sys.executable, "-m", "weft", "export", path, "-o", FOLDER / f"{name}.html"], check=True)
    if (PICTURES / f"{name}.png").exists():
        shutil.copyfile(PICTURES / f"{name}.png", FOLDER / f"{name}.png")


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    patches = shipped()
    for name in sys.argv[1:] or patches:
        write(name, patches[name])
    entries = "\n".join(entry(name, path) for name, path in patches.items())
    (FOLDER / "index.html").write_text(_INDEX.format(entries=entries), encoding="utf-8")
