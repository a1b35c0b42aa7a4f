"""Completion, as the shells ask for it: real shells, with typed keys."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time

import pytest

from tests.support.together import all_but
from weft.cli import COMMANDS
from weft.cli.completion import SHELLS
from weft.cli.examples import shipped

START = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], 'eval "$(weft completion bash)"'),
    "zsh": (["zsh", "-f", "-i"], 'autoload -Uz compinit; compinit -u; eval "$(weft completion zsh)"'),
    "fish": (["fish", "--no-config", "-i"], "weft completion fish | source"),
}
# Completes as weft does, and prints the arguments that it is called with otherwise.
PROGRAM = """#!/bin/sh
if [ -n "$_WEFT_COMPLETE" ] || [ "$1" = completion ]; then exec "{python}" -m weft "$@"; fi
printf '<%s>' "$@"; echo .
"""
PATIENCE = 60.0


class Shell:
    """A shell at a terminal of its own, with a `weft` that shows its arguments."""

    def __init__(self, name, folder):
        command, setup = START[name]
        program = folder / "bin" / "weft"
        program.parent.mkdir()
        program.write_text(PROGRAM.format(python=sys.executable))
        program.chmod(0o755)
        environment = {**os.environ, "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}", "TERM": "xterm",
                       "HOME": str(folder)}  # fmt: skip
        self._process, self._terminal = pty.fork()
        if self._process == 0:
            os.chdir(folder)
            os.execvpe(command[0], command, environment)
        self._type(setup + "; echo ready''made\n")
        self._read_until("readymade")

    def called(self, line):
        """The arguments that weft gets from a line that Tab and Return end."""
        self._type(line + "\t\n")
        shown = self._read_until(r"<[^\r\n]*>\.\r?\n")
        return re.findall("<([^<>]*)>", re.findall(r"(<[^\r\n]*>)\.\r?\n", shown)[-1])

    def close(self):
        os.kill(self._process, signal.SIGKILL)
        os.waitpid(self._process, 0)
        os.close(self._terminal)

    def _type(self, text):
        os.write(self._terminal, text.encode())

    def _read_until(self, pattern):
        seen, deadline = "", time.monotonic() + PATIENCE
        while not re.search(pattern, seen):
            ready, _, _ = select.select([self._terminal], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"the shell does not say {pattern!r} but {seen!r}"
            seen += os.read(self._terminal, 4096).decode(errors="replace")
        return seen


@pytest.fixture(scope="module", params=SHELLS)
def shell(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("shell")
    (folder / "plain patch.weft").write_text("display(me@x)\n")
    (folder / "plain.txt").write_text("no patch")
    (folder / "sub").mkdir()
    (folder / "sub" / "deep.weft").write_text("display(me@x)\n")
    opened = Shell(request.param, folder)
    yield opened
    opened.close()


# What each shell hands over, and what it makes of spaces, folders and an @. The rest is only listed by weft.
@pytest.mark.parametrize(
    ("typed", "called"),
    all_but(2, [
        ("weft check --js", ["check", "--json"]),
        ("weft check pl", ["check", "plain patch.weft"]),
        ("weft check sub/", ["check", "sub/deep.weft"]),
        ("weft help me@abst", ["help", "me@abstime"]),
        ("weft che", ["check"]),
    ]),
)  # fmt: skip
def test_tab(shell, typed, called):
    assert shell.called(typed) == called


@pytest.mark.parametrize("shell", ["bash"], indirect=True)  # other shells do not split words there
@pytest.mark.parametrize(
    ("typed", "called"),
    [
        ("weft eval x.weft v --backend=vec", ["eval", "x.weft", "v", "--backend=vector"]),
        ("weft eval x.weft v --backend visual=vec", ["eval", "x.weft", "v", "--backend", "visual=vector"]),
        ("weft check su", ["check", "sub/"]),
    ],
)
def test_tab_where_bash_splits_words(shell, typed, called):
    assert shell.called(typed) == called


def listed(weft, line, **more):
    """What bash is offered for a line, of which it completes the last word if it does not split that further."""
    environment = {"_WEFT_COMPLETE": "bash_complete", "COMP_LINE": line, "COMP_POINT": str(len(line))}
    environment |= {"COMP_PIECE": line.rpartition(" ")[2], **more}
    return [item.partition(",")[2] for item in weft(**environment).stdout.splitlines()]


@pytest.mark.long
def test_everything_is_listed(weft):
    assert listed(weft, "weft ") == list(COMMANDS)
    assert listed(weft, "weft examples ") == list(shipped())
    assert listed(weft, "weft check ") == ["broken.weft", "plain.weft", "rich.weft", ""]
    assert listed(weft, "weft completion ") == list(SHELLS)
    names = {"sin", "pi", "load", "display", "time", "slider", "width", "prev", "std.noise", "perlin", "run"}
    assert names <= {*listed(weft, "weft help ")}
    assert listed(weft, "weft help smoothst") == ["smoothstep"]
    assert listed(weft, "weft examples gradi") == ["gradient"]
    assert listed(weft, "weft compile x.weft --context vis") == ["visual"]
    assert listed(weft, "weft eval x.weft v --backend vec") == ["vector"]
    assert listed(weft, "weft help mouse@", COMP_PIECE="@")[0].startswith("@")
    assert listed(weft, "weft new pl") == ["pl"]  # folders only: what is there already cannot be made


def test_a_list_of_commands_imports_none_of_them_and_no_operators():
    code = "import sys; from weft.cli import main\ntry: main([])\n"
    code += "finally: print([m for m in ('numpy', 'weft.ops', 'weft.cli.check') if m in sys.modules])"
    environment = {**os.environ, "_WEFT_COMPLETE": "bash_complete", "COMP_LINE": "weft ", "COMP_POINT": "5"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True, timeout=60
    )  # fmt: skip
    assert "check" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("name", SHELLS)
def test_the_script_is_that_of_clicks_own_way(weft, name):
    assert weft("completion", name).stdout.strip() == weft(_WEFT_COMPLETE=f"{name}_source").stdout.strip()


def test_how_to_install_it(weft):
    text = weft("completion").stdout
    assert all(f"weft completion {name}" in text for name in SHELLS)
    assert "'bash'" in weft("completion", "csh", code=2).stderr
