"""The package for Helix: its form, and Helix's own word about it where there is a Helix."""

from __future__ import annotations

import re

import pytest

from tests.support.real_editors import PACKAGES, Home, editor
from weft.syntax.scanner import ENDING

toml = pytest.importorskip("tomllib", reason="Python before 3.11 has no tomllib")
LANGUAGES = PACKAGES / "helix/languages.toml"


def test_the_language_is_that_of_patches():
    settings = toml.loads(LANGUAGES.read_text("utf-8"))
    (language,) = settings["language"]
    assert language["file-types"] == [ENDING[1:]]
    assert language["language-servers"] == list(settings["language-server"]) == ["weft"]
    server, formatter = settings["language-server"]["weft"], language["formatter"]
    assert [server["command"], *server["args"]] == ["weft", "lsp"]
    assert [formatter["command"], *formatter["args"]] == ["weft", "fmt", "-"]


def test_helix_finds_all_of_it(tmp_path):
    command = editor("hx", "helix")
    home = Home(tmp_path / "home")
    home.install("Helix")
    said = re.sub(r"\x1b\[[0-9;]*m", "", home.run(command, "--health", "weft").stdout)
    for line in ("✓ weft", "parser: ✓", "Highlight queries: ✓", "Textobject queries: ✓", "Indent queries: ✓"):
        assert line in said
