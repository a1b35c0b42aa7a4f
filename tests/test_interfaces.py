"""docs/interfaces.md lists what the program has: each of its tables is compared with the one in the code. What commands
and performances write is compared wherever tests run them (`tests.support.interfaces`)."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import click
import pytest

import weft
from tests.cli.conftest import RICH, Weft
from tests.support.interfaces import events, fields, spelled, table
from weft.cli import COMMANDS
from weft.codes import spec
from weft.keys import CONTROL_KEYS, TOOL_KEYS
from weft.runtime.osc import COMMAND_NAMES, COMMANDS as COMMAND_ADDRESSES, PARAMETERS

ROOT = Path(weft.__file__).parent
TREES = [ast.parse(path.read_text(encoding="utf-8")) for path in sorted(ROOT.rglob("*.py"))]
CALLS = [node for tree in TREES for node in ast.walk(tree) if isinstance(node, ast.Call)]
TEXTS = {n.value for tree in TREES for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)}

# Fields that no text of the program names are those of dataclasses.
ANNOTATED = [node.target for tree in TREES for node in ast.walk(tree) if isinstance(node, ast.AnnAssign)]
NAMES = {target.id for target in ANNOTATED if isinstance(target, ast.Name)}
WITH_JSON = ("check", "eval", "graph", "devices", "bench")
KEYWORDS = {keyword.arg for call in CALLS for keyword in call.keywords}


def test_commands_and_their_options() -> None:
    rows = table("Commands and options")
    documented = {spelled(command)[0].split()[1]: spelled(options) for command, options in rows}
    assert list(documented) == list(COMMANDS)
    for name, entry in COMMANDS.items():
        command = importlib.import_module(entry.module).command
        options = [option for each in command.params if isinstance(each, click.Option) for option in each.opts[:1]]
        assert sorted(documented[name]) == sorted(set(options) - {"--help"}), name


def test_exit_codes() -> None:
    codes = {value for name, value in vars(spec).items() if name.isupper() and type(value) is int}
    assert {int(code) for code, _ in table("Exit codes")} == codes


def test_environment_variables() -> None:
    documented = {name for row in table("Environment variables") for name in spelled(row[0])}
    assert {text for text in TEXTS if re.fullmatch(r"_?WEFT_[A-Z]+", text)} == {n for n in documented if "WEFT" in n}
    assert documented <= TEXTS


def test_events_are_those_that_the_program_emits() -> None:
    emitted: dict[str, set[str]] = {}
    for call in CALLS:
        match call:
            case ast.Call(func=ast.Attribute(attr="emit"), args=[ast.Constant(value=name)], keywords=keywords):
                emitted.setdefault(name, set()).update(each.arg for each in keywords if each.arg is not None)
    assert emitted.keys() == events().keys()
    assert {name: found - events()[name] for name, found in emitted.items() if not found <= events()[name]} == {}


@pytest.mark.parametrize("title", ["Events", *(f"weft {name} --json" for name in WITH_JSON)])
def test_nothing_is_promised_that_the_program_does_not_know(title: str) -> None:
    promised = {f for each in events().values() for f in each} if title == "Events" else fields(title)
    named = {part for name in promised for part in re.split(r"\[\]\.?|\.", name) if part}
    assert named - TEXTS - NAMES - KEYWORDS == set()


def test_keys() -> None:
    documented = {spelled(key)[0].lower(): does.split()[0].rstrip(":") for key, does in table("Keys")}
    assert documented == {**TOOL_KEYS, **{f"ctrl+{key}": command for key, command in CONTROL_KEYS.items()}}


def test_osc_addresses() -> None:
    documented = [address.split()[0] for row in table("OSC") for address in spelled(row[0])]
    assert [a for a in documented if a.startswith(PARAMETERS)]
    own = {a.removeprefix(COMMAND_ADDRESSES) for a in documented if a.startswith(COMMAND_ADDRESSES)}
    assert own == {*COMMAND_NAMES}


def test_every_command_with_json_has_its_table() -> None:
    commands = {name: importlib.import_module(entry.module).command for name, entry in COMMANDS.items()}
    assert {name for name, c in commands.items() if any("--json" in each.opts for each in c.params)} == {*WITH_JSON}


def test_the_graph_of_a_patch_has_no_more_than_the_page_lists(tmp_path: Path) -> None:
    weft_in_folder = Weft(tmp_path)
    weft_in_folder.file("rich.weft", RICH + "i = image(trail@v)\ndisplay(i(me@x ~ 0), to: \"other\")\n")
    found = weft_in_folder.json("graph", "rich.weft")
    assert all(found.values())


def test_what_pip_is_told_to_install_is_there() -> None:
    """The extras, of the distribution that is weft's own: on PyPI, `weft` is another project."""
    project = ROOT.parent
    extras = re.findall(r"^(\w+) = \[", (project / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    pages = [project / "README.md", *(project / "docs").rglob("*.md")]
    texts = [path.read_text(encoding="utf-8") for path in pages] + [ast.unparse(tree) for tree in TREES]
    told = {name for text in texts for name in re.findall(r"weft-live\[(\w+)\]|installs\('(\w+)'\)", text)}
    assert {name for pair in told for name in pair if name} <= {*extras}
    assert not [text for text in texts if re.search(r"pip install '?weft\[", text)]
