"""docs/interfaces.md lists what the program has: each of its tables is compared with the one in the code. What commands
and performances write is compared wherever tests run them (`tests.support.interfaces`)."""

from __future__ import annotations

import ast
import importlib
import json
import re
import sys
from functools import cache
from itertools import chain
from pathlib import Path

import click
import pytest

import weft
from tests.cli.conftest import RICH
from tests.support.interfaces import check_json, events, fields, section, spelled, table
from weft.__main__ import ASKING, Ended
from weft.cli import COMMANDS, main
from weft.codes import rows
from weft.keys import CONTROL_KEYS, TOOL_KEYS
from weft.performances import LONGEST, NOTICES, PROTOCOL, REQUESTS, WANTED
from weft.runtime.hands.osc import COMMAND_NAMES, COMMANDS as COMMAND_ADDRESSES, PARAMETERS

ROOT = Path(weft.__file__).parent
WITH_JSON = ("check", "eval", "why", "graph", "devices", "bench")


@cache
def sources() -> tuple[str, ...]:
    return tuple(path.read_text(encoding="utf-8") for path in sorted(ROOT.rglob("*.py")))


@cache
def words() -> frozenset[str]:
    """All words of the program: what is a field of JSON or of an event stands there as a name or as a text."""
    return frozenset(word for text in sources() for word in re.findall(r"\w+", text))


def test_commands_and_their_options() -> None:
    rows = table("Commands and options")
    documented = {spelled(command)[0].split()[1]: spelled(options) for command, options in rows}
    assert list(documented) == list(COMMANDS)
    for name, entry in COMMANDS.items():
        command = importlib.import_module(entry.module).command
        options = [option for each in command.params if isinstance(each, click.Option) for option in each.opts[:1]]
        assert sorted(documented[name]) == sorted(set(options) - {"--help"}), name


def test_exit_codes() -> None:
    codes = {value for name, value in vars(rows).items() if name.isupper() and type(value) is int}
    asked = {Ended(number).code for number in ASKING}
    if sys.platform == "win32":
        asked.add(129)  # of a signal that is not there
    assert {int(code) for code, _ in table("Exit codes")} == codes | asked


def test_environment_variables() -> None:
    documented = {name for row in table("Environment variables") for name in spelled(row[0])}
    own = {name for text in sources() for name in re.findall(r'"(_?WEFT_[A-Z_]+)"', text)}
    assert own == {name for name in documented if "WEFT" in name}
    assert documented <= words()


def test_events_are_those_that_the_program_emits() -> None:
    emitted: dict[str, set[str]] = {}
    for node in chain.from_iterable(ast.walk(ast.parse(text)) for text in sources() if ".emit(" in text):
        match node:
            case ast.Call(func=ast.Attribute(attr="emit"), args=[ast.Constant(value=name)], keywords=keywords):
                emitted.setdefault(name, set()).update(each.arg for each in keywords if each.arg is not None)
    assert emitted.keys() == events().keys()
    assert {name: found - events()[name] for name, found in emitted.items() if not found <= events()[name]} == {}


@pytest.mark.parametrize("title", ["Events", *(f"weft {name} --json" for name in WITH_JSON)])
def test_nothing_is_promised_that_the_program_does_not_know(title: str) -> None:
    promised = {f for each in events().values() for f in each} if title == "Events" else fields(title)
    named = {part for name in promised for part in re.split(r"\[\]\.?|\.", name) if part}
    assert named - words() == set()


def test_keys() -> None:
    documented = {spelled(key)[0].lower(): does.split()[0].rstrip(":") for key, does in table("Keys")}
    assert documented == {**TOOL_KEYS, **{f"ctrl+{key}": command for key, command in CONTROL_KEYS.items()}}


def test_the_readme_has_all_keys() -> None:
    page = (ROOT.parent / "README.md").read_text(encoding="utf-8")
    cells = re.findall(r"^\| (.+?) \|", page.partition("## Keys")[2].partition("\n## ")[0], re.MULTILINE)[1:]
    named = {key.lower() for cell in cells for key in cell.split(", ")} - {"---"}
    assert named == {"esc" if key == "escape" else key for key in TOOL_KEYS} | {f"ctrl+{key}" for key in CONTROL_KEYS}


def test_osc_addresses() -> None:
    documented = [address.split()[0] for row in table("OSC") for address in spelled(row[0])]
    assert [a for a in documented if a.startswith(PARAMETERS)]
    own = {a.removeprefix(COMMAND_ADDRESSES) for a in documented if a.startswith(COMMAND_ADDRESSES)}
    assert own == {*COMMAND_NAMES}
    hands = (ROOT.parent / "docs" / "hands.md").read_text(encoding="utf-8")
    assert {*re.findall(r"`/weft/(\w+)", hands)} == own


def test_the_commands_of_the_language_server() -> None:
    registered = {name for text in sources() for name in re.findall(r'\.command\("(weft\.\w+)"\)', text)}
    assert {spelled(name)[0] for name, _ in table("The language server")} == registered
    assert registered


def test_the_link_to_a_performance() -> None:
    for title, known in (("Requests", REQUESTS), ("Notices", NOTICES)):
        documented = {spelled(name)[0]: spelled(fields) for name, _, fields in table(title)}
        assert {name: sorted(fields) for name, fields in documented.items()} == {
            name: sorted(fields) for name, fields in known.items()
        }
    page = section("The link to a performance") + section("Requests")
    assert f"is another than {PROTOCOL} " in page.replace("\n", " ")
    assert f"at most {LONGEST // 1_000_000} MB" in page
    assert set(WANTED) <= set(spelled(next(line for line in page.splitlines() if line.startswith("- `want`"))))


def test_every_command_with_json_has_its_table() -> None:
    commands = {name: importlib.import_module(entry.module).command for name, entry in COMMANDS.items()}
    assert {name for name, c in commands.items() if any("--json" in each.opts for each in c.params)} == {*WITH_JSON}


def test_the_graph_of_a_patch_has_no_more_than_the_page_lists(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    patch = tmp_path / "rich.weft"
    patch.write_text(RICH + 'i = image(trail@v)\ndisplay(i(me@x ~ 0), to: "other")\n')
    assert main(["graph", str(patch), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert all(found.values())
    check_json("graph", found)


def test_what_pip_is_told_to_install_is_there() -> None:
    """The extras, of the distribution that is weft's own: on PyPI, `weft` is another project."""
    project = ROOT.parent
    extras = re.findall(r"^(\w+) = \[", (project / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    pages = [project / "README.md", *(project / "docs").rglob("*.md")]
    told_in = [*(path.read_text(encoding="utf-8") for path in pages), *sources()]
    told = {name for text in told_in for name in re.findall(r"weft-live\[(\w+)\]|installs\(['\"](\w+)['\"]\)", text)}
    assert {name for pair in told for name in pair if name} <= {*extras}
    assert not [text for text in told_in if re.search(r"pip install '?weft\[", text)]
