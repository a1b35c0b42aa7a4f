"""`weft.platform`: every system offers the same functions."""

import ast
from pathlib import Path

import pytest

from weft import platform

FOLDER = Path(platform.__file__).parent


def offered(module: str) -> dict[str, str]:
    """What a module for a system offers: its functions with their arguments, and its constants."""
    found = dict[str, str]()
    for node in ast.parse((FOLDER / f"{module}.py").read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            found[node.name] = ", ".join(each.arg for each in node.args.args)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id[0].isupper():
            found.setdefault(node.target.id, "")
    return found


def test_windows_offers_what_posix_does() -> None:
    assert offered("windows") == offered("posix")


@pytest.mark.parametrize("module", ["linux", "macos"])
def test_a_system_with_posix_replaces_some_of_it(module: str) -> None:
    of_all = offered("posix")
    assert offered(module).items() <= of_all.items()
    source = (FOLDER / f"{module}.py").read_text("utf-8")
    (listed,) = [
        node.value for node in ast.parse(source).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "__all__"
    ]  # fmt: skip
    assert set(ast.literal_eval(listed)) == of_all.keys()
