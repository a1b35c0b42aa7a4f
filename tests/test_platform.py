"""`weft.platform`: every system offers the same methods."""

import ast
import re
from pathlib import Path

import pytest

from weft import platform

FOLDER = Path(platform.__file__).parent


def offered(module: str) -> dict[str, str]:
    """What the class of a system offers: its methods with their arguments, and its constants."""
    tree = ast.parse((FOLDER / f"{module}.py").read_text("utf-8"))
    (system,) = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name[0] != "_"]
    found = dict[str, str]()
    for node in system.body:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = ", ".join(each.arg for each in node.args.args)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {ast.unparse(target): "" for target in targets}
    return found


def test_windows_offers_what_posix_does() -> None:
    common = offered("any_system")
    assert {**common, **offered("windows")} == {**common, **offered("posix")}
    assert offered("windows_terminal") == offered("posix_terminal")


def test_what_every_system_has_is_said_once() -> None:
    """What differs between the systems is in their own files, as what they share is in none of them."""
    assert not offered("any_system").keys() & offered("posix").keys()


def test_nothing_else_asks_which_system_this_is() -> None:
    asks = re.compile(r"\bsys\.platform\b|\bos\.name\b|\bplatform\.system\(\) *[!=]=")
    files = [path for path in sorted(FOLDER.parent.rglob("*.py")) if path.parent != FOLDER]
    assert files
    assert [str(path) for path in files if asks.search(path.read_text("utf-8"))] == []


@pytest.mark.parametrize("module", ["linux", "macos"])
def test_a_system_with_posix_replaces_some_of_it(module: str) -> None:
    own = offered(module)
    assert own
    assert own.items() <= {**offered("any_system"), **offered("posix")}.items()
