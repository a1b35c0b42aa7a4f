"""The package for Vim, in Vim, and with ALE, by which it speaks to the language server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.mutations import programs
from tests.support.real_editors import PACKAGES, Home, editor
from weft.errors import Source
from weft.syntax.formatting import formatted
from weft.syntax.scanner import ENDING

DRIVER = Path(__file__).with_name("vim.vim")
ALE = Path("/usr/share/vim-ale")
MISTAKES = "a = sin(me@x\ndisplay(a, b)\n"


@pytest.fixture
def vim(tmp_path):
    """A home with Vim and the package, and what steps of a session answer."""
    command = editor("vim.nox", "vim")
    home = Home(tmp_path / "home")
    home.install("Vim")
    # ALE is where its package of the system has it, as `:packadd ale` finds it for a performer.
    (home.folder / ".vimrc").write_text("set nocompatible\nfiletype plugin indent on\nsyntax on\n", "utf-8")

    def session(*steps):
        home.environment["STEPS"] = " ".join(steps)
        path = home.write("a.weft", MISTAKES)
        flags = ("-u", home.folder / ".vimrc", "-i", "NONE", "-n", "-es", "--not-a-term")
        return home.answered(home.run(command, *flags, path, "-S", DRIVER))

    session.home = home
    return session


def test_a_patch_in_vim(vim):
    found = vim("opened", "listed", "formatted", "indented", "coloured")
    assert found["failure"] == ""
    assert found["filetype"] == "weft"
    missing, unknown = found["listed"]
    assert missing == [1, 13, "`)` is missing here [unclosed-bracket]"]
    assert unknown == [2, 12, 'there is no strand "b" [unknown-strand]']
    assert found["formatted"] == ["a = sin(me@x)", "display(a, a, a)"]
    assert found["indented"] == formatted(Source("a.weft", "\n".join(found["indented"]) + "\n")).splitlines()
    assert found["colours"] == {
        "#fade": "weftPragmas", "spindle": "weftDefining", "disc": "weftSpindle", "sin": "weftFunctions",
        "a comment": "weftComment", "s // s": "weftString", "display": "weftOutputs", "pi)": "weftConstants",
        "r /": "weftMember",
    }  # fmt: skip
    assert found["comment"] == "// %s"


@pytest.mark.long
def test_mistakes_as_one_types_by_ale(vim):
    if not ALE.exists():
        pytest.skip("there is no ALE here; scripts/setup system test installs it where apt has it")
    found = vim("served", "huge", "killed")
    assert found["failure"] == ""
    assert [each[:2] for each in found["served"]] == [[1, 13], [2, 12]]
    assert "weft reads at most 250,000" in found["huge"]
    assert found["killed"] == ["// typed after it"]


def test_the_ending_of_patches_is_known_everywhere():
    assert f"*{ENDING} " in (PACKAGES / "vim/ftdetect/weft.vim").read_text("utf-8")


@pytest.mark.long
def test_indentation_of_all_patches(vim):
    """What Vim's `=` makes of a patch in style is nearly that patch: lines that go on are a matter of taste."""
    texts = [text for text in programs("patches").values() if "/*" not in text]
    vim.home.write("all.txt", "\n".join(texts))
    found = vim("reindented")
    assert found["failure"] == ""
    assert found["same"] > 0.97 * found["lines"]
