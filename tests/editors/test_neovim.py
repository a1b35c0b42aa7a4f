"""The package for Neovim, in Neovim."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.real_editors import Home, editor, version_of

DRIVER = Path(__file__).with_name("neovim.lua")
MISTAKES = "a = sin(me@x\ndisplay(a, b)\n"


@pytest.fixture
def neovim(tmp_path):
    """A home with Neovim and the package, and what steps of a session answer."""
    command = editor("nvim")
    if version_of([command, "--version"]) < (0, 10):
        pytest.skip("this Neovim is older than 0.10; pip installs a newer one where there are wheels of it")
    home = Home(tmp_path / "home")
    home.install("Neovim")

    def session(*steps):
        home.environment["STEPS"] = " ".join(steps)
        return home.answered(home.run(command, "--headless", home.write("a.weft", MISTAKES), "-S", DRIVER))

    session.home = home
    return session


def test_an_evening_in_neovim(neovim):
    found = neovim("opened", "completed", "formatted", "renamed")
    assert "failure" not in found
    assert found["filetype"] == "weft"
    assert found["mistakes"] == [["unclosed-bracket", 0, 12], ["unknown-strand", 1, 11]]
    assert {"x", "y", "time"} <= set(found["completions"])
    assert found["omnifunc"] == "v:lua.vim.lsp.omnifunc"
    assert found["formatted"] == "a = sin(me@x)\ndisplay(a, a, a)"
    assert found["renamed"] == "wave = sin(me@x)\ndisplay(wave, wave, wave)"


@pytest.mark.long
def test_a_server_that_dies_and_a_text_that_is_too_long(neovim):
    """Also where there is ALE, which leaves the server to Neovim."""
    settings = neovim.home.folder / ".config/nvim/init.lua"
    settings.parent.mkdir(parents=True)
    settings.write_text("vim.cmd('silent! packadd ale')", "utf-8")
    found = neovim("opened", "huge", "killed")
    assert "failure" not in found
    assert [code for code, *_ in found["huge"]] == ["too-long"]
    assert found["killed"] == ["display(me@x)", "// typed after it"]
    assert found["again"]


@pytest.mark.long
def test_colours_with_and_without_the_grammar(neovim):
    found = neovim("opened", "formatted", "coloured", "folded")
    assert "failure" not in found
    assert found["captures"][-1] == "keyword"
    assert found["folds"] == [0, 1, 0]
    (neovim.home.folder / ".local/share/nvim/site/parser/weft.so").unlink()
    found = neovim("opened", "formatted", "coloured")
    assert not found["parser"]
    assert found["syntax"] == "weftOutputs"
