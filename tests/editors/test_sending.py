"""Texts that editors have a performance play without a save."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from tests.support.links import own_runtime_folder
from tests.support.performance import Performance
from tests.support.real_editors import PACKAGES, Home, editor

pytestmark = [
    pytest.mark.long, pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="sockets have no paths here"),
]  # fmt: skip

TEXT = 'me<width> = 32\nme<height> = 18\n#slider blue<v> = 0, 1, 0.5 "blue"\ndisplay(me@x, {}, blue)\n'


@pytest.fixture(scope="module")
def playing(tmp_path_factory):
    with own_runtime_folder():
        patch = tmp_path_factory.mktemp("playing") / "show.weft"
        patch.write_text(TEXT.format(0.25))
        with Performance(patch, "--headless", "--no-audio") as performance:
            performance.wait_for("started")
            yield performance


def emacs_session(command, path, value):
    insert = f'(progn (goto-char (point-max)) (search-backward "0.25") (replace-match "{value}"))'
    load = ("-L", PACKAGES / "emacs", "-l", "weft-mode")
    return (command, "--batch", *load, path, "--eval", insert, "-f", "weft-send-buffer")


def vim_session(command, path, value):
    begin = ("-u", "NORC", "--cmd", "filetype plugin on", "-i", "NONE", "-n", "-es", "--not-a-term")
    return (command, *begin, "-c", f"%s/0.25/{value}/ | WeftSend | qall!", path)


def neovim_session(command, path, value):
    return (command, "--headless", path, "-c", f"%s/0.25/{value}/ | WeftSend", "-c", "qall!")


def kakoune_session(command, path, value):
    edit = f"execute-keys '%s0.25<ret>c{value}<esc>'\nweft-send\nquit! 0"
    return (command, "-ui", "dummy", "-e", edit, path)


@pytest.mark.parametrize(("name", "commands", "session", "value"), [
    ("Emacs", ("emacs",), emacs_session, 0.3), ("Vim", ("vim.nox", "vim"), vim_session, 0.4),
    ("Neovim", ("nvim",), neovim_session, 0.5), ("Kakoune", ("kak",), kakoune_session, 0.6),
])  # fmt: skip
def test_a_text_is_played_as_it_is_in_the_editor(tmp_path, playing, name, commands, session, value):
    command, home = editor(*commands), Home(tmp_path / "home")
    home.install(name)
    home.environment["XDG_RUNTIME_DIR"] = os.environ["XDG_RUNTIME_DIR"]
    path = home.write("draft.weft", TEXT.format(0.25))
    swaps = playing.count("swap")
    home.run(*session(command, path, value))
    playing.wait_for("swap", swaps + 1)
    assert path.read_text("utf-8") == TEXT.format(0.25)


def test_values_are_beside_the_lines_in_neovim(tmp_path, playing):
    """And the server plays the text."""
    command, home = editor("nvim"), Home(tmp_path / "home")
    home.install("Neovim")
    home.environment |= {"XDG_RUNTIME_DIR": os.environ["XDG_RUNTIME_DIR"], "STEPS": "valued"}
    swaps = playing.count("swap")
    driver = Path(__file__).with_name("neovim.lua")
    found = home.answered(home.run(command, "--headless", playing.patch, "-S", driver))
    assert "failure" not in found
    assert [2, "= 0.5"] in found["hints"]
    assert found["modified"]
    playing.wait_for("swap", swaps + 1)
    assert playing.patch.read_text() == TEXT.format(0.25)
