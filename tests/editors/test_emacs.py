"""The package for Emacs, in Emacs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.real_editors import PACKAGES, Home, editor
from weft.errors import Source
from weft.syntax.formatting import formatted

DRIVER = Path(__file__).with_name("emacs.el")
MISTAKES = "a = sin(me@x\ndisplay(a, b)\n"


@pytest.fixture
def emacs(tmp_path):
    """A home with Emacs and the package, and what steps of a session answer."""
    command, home = editor("emacs"), Home(tmp_path / "home")
    home.install("Emacs")

    def session(*steps):
        home.environment["STEPS"] = " ".join(steps)
        home.write("a.weft", MISTAKES)
        init = home.folder / ".emacs.d/init.el"
        return home.answered(home.run(command, "--batch", "-l", init, "-l", DRIVER))

    session.home, session.command = home, command
    return session


@pytest.mark.long
def test_an_evening_in_emacs(emacs):
    found = emacs("opened", "formatted", "completed", "renamed")
    assert "failure" not in found
    assert found["mode"] == "weft-mode"
    assert [line for line, _ in found["mistakes"]] == [1, 2]
    assert "`)` is missing here" in found["mistakes"][0][1]
    assert found["formatted"] == "a = sin(me@x)\ndisplay(a, a, a)\n"
    assert {"x", "y", "time"} <= set(found["completions"])
    assert found["renamed"] == "wave = sin(me@x)\ndisplay(wave, wave, wave)\n"


@pytest.mark.long
def test_a_text_that_is_too_long(emacs):
    found = emacs("opened", "huge")
    assert "failure" not in found
    assert "weft reads at most 250,000" in found["huge"][0][1]


@pytest.mark.long
def test_a_server_that_dies(emacs):
    found = emacs("opened", "killed")
    assert "failure" not in found
    assert found["killed"] == "// typed after it\n"


def test_indentation_is_that_of_the_style(emacs):
    found = emacs("indented")
    assert "failure" not in found
    assert found["indented"] == formatted(Source("a.weft", found["indented"]))


def test_colours(emacs):
    found = emacs("coloured")
    assert "failure" not in found
    assert {word: face.removeprefix("font-lock-").removesuffix("-face") for word, face in found["faces"].items()} == {
        "#fade": "preprocessor", "spindle": "keyword", "disc": "function-name", "sin": "builtin",
        "a comment": "comment", "s // s": "string", "display": "keyword", "pi)": "constant", "x) //": "variable-name",
    }  # fmt: skip


def test_the_package_compiles_without_a_warning(emacs):
    package = emacs.home.work / "weft-mode.el"
    package.write_text((PACKAGES / "emacs/weft-mode.el").read_text("utf-8"), "utf-8")
    strict = "(setq byte-compile-error-on-warn t)"
    ended = emacs.home.run(emacs.command, "--batch", "-Q", "--eval", strict, "-f", "batch-byte-compile", package)
    assert (ended.returncode, ended.stderr) == (0, "")
