"""docs/api.md lists all that packages import, and what it lists is there."""

from __future__ import annotations

import ast
import importlib
import re
import warnings
from dataclasses import fields, replace
from pathlib import Path

import pytest

import weft
from weft.backends.base import Capabilities
from weft.contexts import ContextSpec

ROOT = Path(weft.__file__).parent
TEXT = (ROOT.parent / "docs" / "api.md").read_text(encoding="utf-8")
NAMES = {n for row in re.findall(r"^\| (`weft\..+?) \|", TEXT.partition("## Names")[2], re.M) for n in row.split(", ")}
PACKAGES = [*sorted((ROOT.parent / "tests" / "plugins").glob("*/**/*.py")), ROOT / "backends" / "haptic.py"]


def imported_by(path: Path) -> set[str]:
    """The names of weft that a package imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "weft":
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def test_each_name_is_there() -> None:
    assert len(NAMES) > 40
    for name in (name.strip("`") for name in NAMES):
        module, _, attribute = name.rpartition(".")
        found = importlib.import_module(module)
        assert hasattr(found, attribute) or importlib.import_module(name), name


def test_packages_import_nothing_else() -> None:
    assert len(PACKAGES) > 6
    assert {name for path in PACKAGES for name in imported_by(path)} - {name.strip("`") for name in NAMES} == set()


def test_the_fields_of_a_context_are_all_explained() -> None:
    page = (ROOT.parent / "docs" / "backends.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.+?) \|", page.partition("### What a ContextSpec says")[2].partition("\n## ")[0], re.M)
    explained = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert explained == {field.name for field in fields(ContextSpec)}


def test_types_are_part_of_the_package() -> None:
    assert (ROOT / "py.typed").exists()


def test_what_is_deprecated_works_and_warns() -> None:
    with pytest.warns(DeprecationWarning, match="leave out fp64"):
        assert Capabilities(simd=True, fp64=True).simd
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert replace(Capabilities(simd=True), handles=True) == Capabilities(simd=True, handles=True)
