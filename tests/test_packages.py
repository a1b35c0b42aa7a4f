"""What packages bring: rows beside those of weft, and the words about what cannot be used."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from weft.backends.registry import CARD_CONTEXTS, load_registry
from weft.backends.select import FAMILIES

POINTS = """[weft.sources]
camera = brought:Source
meadow = brought:Source
hole = brought:Nothing
[weft.outlets]
http = brought:Outlet
smoke = brought:Outlet
void = no_such_module:Outlet
"""
BROUGHT = """from weft.outlets import OutletSpec
from weft.sources import SOURCES, SourceSpec
class Source:
    spec = SourceSpec("other", (), ("r",), ("x", "y"), "grass", "meadow()::m<r>")
class Outlet:
    spec = OutletSpec("other", "smoke signals", "smoke:1", str)
"""
ASKING = """from weft.outlets import OUTLET_CLASSES, OUTLETS, load_outlets
from weft.sources import OPENERS, SOURCES, load_sources
print(*load_sources(), *load_outlets(), sep="\\n")
for rows, classes in ((SOURCES, OPENERS), (OUTLETS, OUTLET_CLASSES)):
    print(sorted(classes), [(rows[name].name, rows[name].doc) for name in sorted(classes)])
print(SOURCES["meadow"].is_live, OUTLETS["http"].example)
"""


def test_a_package_adds_rows_and_replaces_none(tmp_path: Path) -> None:
    about = tmp_path / "brought-0.1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: brought\nVersion: 0.1\n")
    (about / "entry_points.txt").write_text(POINTS)
    (tmp_path / "brought.py").write_text(BROUGHT)
    done = subprocess.run(
        [sys.executable, "-c", ASKING], env={**os.environ, "PYTHONPATH": str(tmp_path)}, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert done.stdout.splitlines() == [
        "the source camera (brought:Source) is not used: weft has one of this name",
        "the source hole (brought:Nothing) could not be loaded: module 'brought' has no attribute 'Nothing'",
        "the outlet http (brought:Outlet) is not used: weft has one of this name",
        "the outlet void (no_such_module:Outlet) could not be loaded: No module named 'no_such_module'",
        "['meadow'] [('meadow', 'grass')]",
        "['smoke'] [('smoke', 'smoke signals')]",
        "True http:8080",
    ]


def test_the_modules_of_backends_register_what_the_table_says() -> None:
    registry = load_registry()
    assert {backend.name: backend.context for backend in registry.backends.values()} == dict(registry.names)
    named = {f"{family}_{context}": context for family in FAMILIES for context in CARD_CONTEXTS}
    del named["gles_audio"]  # OpenGL ES 3.0 computes no sound
    assert named.items() <= registry.names.items()
