"""The package for Kakoune, in Kakoune."""

from __future__ import annotations

import os
import subprocess
import time

import pytest

from tests.support.real_editors import Home, editor

MISTAKES = "a = sin(me@x\ndisplay(a, b)\n"


@pytest.fixture
def kakoune(tmp_path):
    """A home with Kakoune and the package, and what a buffer is after some commands."""
    command, home = editor("kak"), Home(tmp_path / "home")
    home.install("Kakoune")

    def session(text, *commands, shown="%opt{filetype}"):
        path, answer = home.write("a.weft", text), home.folder / "answer"
        end = f"write! {path}; echo -to-file {answer} -- {shown}; quit! 0"
        ended = home.run(command, "-ui", "dummy", "-e", "\n".join([*commands, end]), path)
        assert answer.exists(), ended.stderr
        return path.read_text("utf-8"), answer.read_text("utf-8").strip()

    session.home, session.command = home, command
    return session


def test_a_patch_is_one(kakoune):
    _, shown = kakoune("a = 1\n", shown="%opt{filetype} %opt{comment_line} %opt{lintcmd}")
    assert shown.startswith("weft // ")
    assert "weft check" in shown


def test_a_patch_is_brought_in_style(kakoune):
    text, _ = kakoune("a=sin( me@x )\ndisplay(a)\n", "format")
    assert text == "a = sin(me@x)\ndisplay(a)\n"


def test_mistakes_are_listed(kakoune):
    """Kakoune looks for them while one types on, and says nothing when it has them: it is asked again and again."""
    home, answer = kakoune.home, kakoune.home.folder / "answer"
    ask = f"evaluate-commands -client client0 %{{ echo -to-file {answer} -- %opt{{lint_messages}} }}"
    session, path = f"weft-{os.getpid()}", home.write("a.weft", MISTAKES)
    command = [kakoune.command, "-s", session, "-ui", "dummy", "-e", "lint", path]
    with subprocess.Popen(command, cwd=home.work, env=home.environment, stdin=subprocess.DEVNULL) as running:
        try:
            found, end = "", time.monotonic() + 60
            while "unclosed-bracket" not in found and time.monotonic() < end:
                home.run(kakoune.command, "-p", session, input=ask)
                # It may be written anew at any moment, as it was asked several times.
                found = answer.read_text("utf-8") if answer.exists() else ""
        finally:
            running.terminate()
    assert "1|error: `)` is missing here [unclosed-bracket](col 13)" in found
    assert '2|error: there is no strand "b" [unknown-strand](col 12)' in found


def test_lines_are_indented_and_words_have_colours(kakoune):
    text, shown = kakoune(
        "spindle s(x) :: v {\n}\n", "execute-keys -with-hooks 'ggo<esc>iv = x<esc>'", shown="%opt{weft_words}",
    )  # fmt: skip
    assert text == "spindle s(x) :: v {\n  v = x\n}\n"
    assert {"display", "sin", "tau"} <= set(shown.split())
