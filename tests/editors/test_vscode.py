"""The package for VS Code, by the libraries that VS Code is made of: its grammars, and the client of its extension."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.mutations import programs
from tests.support.real_editors import PACKAGES, Home, editor
from weft.syntax.scanner import ENDING

DRIVER = Path(__file__).with_name("vscode.js")
FOLDER = PACKAGES / "vscode"
MISTAKES = "a = sin(me@x\ndisplay(a, b)\n"


@pytest.fixture
def vscode(tmp_path):
    """A home, and what the libraries answer there."""
    command, home = editor("node"), Home(tmp_path / "home")
    if not (FOLDER / "node_modules").is_dir():
        pytest.skip("the libraries of VS Code are not here; scripts/setup node installs them where there is npm")

    def ask(what, argument):
        return home.answered(home.run(command, DRIVER, what, argument))

    ask.home, ask.command = home, command
    return ask


def scopes(vscode, text):
    """What each token of a text is, without the language."""
    found = vscode("colours", vscode.home.write("a.weft", text))
    return [(word, scope.removesuffix(".weft")) for line in found for word, scope in line if word.strip()]


def test_colours(vscode):
    found = scopes(vscode, '#fade 1\nspindle disc(x) :: v { v = sin(x) } // a\nb<r> = disc(me@x, to: "s // s\\n")\n')
    for each in [
        ("#fade", "keyword.control.directive"), ("spindle", "storage.type"), ("disc", "entity.name.function"),
        ("sin", "support.function"), ("// a", "comment.line.double-slash"), ("me", "variable.language"),
        ("@x", "variable.other.member"), ("to", "variable.parameter"), ("s // s", "string.quoted.double"),
        ("\\n", "constant.character.escape"), ("1", "constant.numeric"), ("=", "keyword.operator"),
    ]:  # fmt: skip
        assert each in found, found


def test_all_patches_have_colours_and_no_fault(vscode):
    text = "\n".join(programs("patches", "weft/std").values())
    found = scopes(vscode, text)
    assert not [each for each in found if each[1].startswith("invalid")]
    plain = [word for word, scope in found if scope == "source"]
    assert not [word for word in plain if re.search(r'["#0-9]', re.sub(r"\w+", "", word))]


@pytest.mark.long
def test_the_server_is_started_and_says_what_is_wrong(vscode):
    vscode.home.write("a.weft", MISTAKES)
    found = vscode("client", vscode.home.work)
    assert found["diagnostics"] == [["unclosed-bracket", 0, 12], ["unknown-strand", 1, 11]]


def test_the_manifest_says_what_is_there(vscode):
    manifest = json.loads((FOLDER / "package.json").read_text("utf-8"))
    contributed = manifest["contributes"]
    (language,), (grammar,) = contributed["languages"], contributed["grammars"]
    assert language["extensions"] == [ENDING]
    assert json.loads((FOLDER / grammar["path"]).read_text("utf-8"))["scopeName"] == grammar["scopeName"]
    assert json.loads((FOLDER / language["configuration"]).read_text("utf-8"))["comments"]["lineComment"] == "//"
    extension = (FOLDER / manifest["main"]).read_text("utf-8")
    registered = set(re.findall(r"registerCommand\('([\w.]+)'", extension))
    assert registered == {each["command"] for each in contributed["commands"]}
    assert {each["command"] for each in contributed["keybindings"]} <= registered
    # What a stranger's folder brings along must not say which program is started.
    assert {each["scope"] for each in contributed["configuration"]["properties"].values()} == {"machine"}
    read = {f"weft.{name}" for name in re.findall(r"settings\(\)\.get\('(\w+)'\)", extension)}
    assert read == set(contributed["configuration"]["properties"])
    ended = vscode.home.run(vscode.command, "--check", FOLDER / manifest["main"])
    assert ended.returncode == 0, ended.stderr


def test_the_licence_is_that_of_weft():
    assert (FOLDER / "LICENSE").read_bytes() == (PACKAGES.parent / "LICENSE").read_bytes()
