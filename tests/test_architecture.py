"""What docs/architecture.md names is there."""

import ast
import re
from functools import cache
from pathlib import Path

import weft

ROOT = Path(weft.__file__).parent
TEXT = (ROOT.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
NAMES = re.findall(r"`([\w/]+\.py): (\w+)`", TEXT)
GLOSSARY = re.findall(r"^\| (\w+) \| `([\w/]+\.py)` \| (.+) \|$", TEXT.partition("## Glossary")[2], re.MULTILINE)
FILES = sorted(set(re.findall(r"`((?:[\w]+/)*\w+\.py)[:`]", TEXT)))


@cache
def defined_in(path: str) -> frozenset[str]:
    """The names that a module of weft defines."""
    found = set()
    for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body:
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                found.add(name)
            case ast.AnnAssign(target=ast.Name(id=name)):
                found.add(name)
            case ast.Assign(targets=targets):
                found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return frozenset(found)


def test_names_are_defined_where_the_document_says():
    assert NAMES
    assert [f"{path}: {name}" for path, name in NAMES if name not in defined_in(path)] == []


def test_files_are_there():
    assert FILES
    assert [path for path in FILES if not ((ROOT / path).exists() or (ROOT.parent / path).exists())] == []


def test_the_glossary_is_short_and_each_word_is_defined_where_it_says():
    assert 20 <= len(GLOSSARY) <= 40
    assert [word for word, path, _ in GLOSSARY if word not in defined_in(path)] == []
    assert len({word for word, _, _ in GLOSSARY}) == len(GLOSSARY)


def test_no_two_modules_define_a_class_of_the_same_name():
    defining = {}
    for path in sorted(ROOT.rglob("*.py")):
        for name in re.findall(r"^ *class (\w+)[(:]", path.read_text("utf-8"), re.MULTILINE):
            defining.setdefault(name.lstrip("_"), set()).add(str(path.relative_to(ROOT)))
    assert {name: paths for name, paths in defining.items() if len(paths) > 1} == {}


def test_the_name_of_a_file_says_which_one_it_is():
    """In a traceback, say. Only the devices' packages each have a `backend.py`, for one interface."""
    names = [path.name for path in ROOT.rglob("*.py") if path.name not in ("__init__.py", "backend.py")]
    assert sorted(name for name in set(names) if names.count(name) > 1) == []


def test_each_package_says_where_to_begin():
    signs = {path.parent: ast.get_docstring(ast.parse(path.read_text("utf-8"))) for path in ROOT.rglob("__init__.py")}
    assert [str(room) for room, sign in signs.items() if not sign] == []
    named = [name for sign in signs.values() for name in re.findall(r"Begin with `([\w.]+)`", sign)]
    assert len(named) >= 10
    places = [name.removeprefix("weft.").rpartition(".") for name in named]
    assert [name for name, _, it in places if it not in defined_in(name.replace(".", "/") + ".py")] == []
