"""What all commands share: help, exit codes, and how errors look."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import weft as package
from weft.cli import COMMANDS
from weft.cli.console import exit_code_of, summary
from weft.errors import Diagnostic


def test_alone_it_shows_help(weft):
    text = weft().stdout
    assert text == weft("--help").stdout
    for name in COMMANDS:
        assert f"\n  {name} " in text


def test_version(weft):
    assert weft("--version").stdout == f"weft {package.__version__}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_help(weft, name):
    assert "--help" in weft(name, "--help").stdout


@pytest.mark.parametrize(
    "args",
    [["chek", "plain.weft"], ["check"], ["check", "plain.weft", "--nope"], ["graph", "plain.weft", "--format", "x"]],
)
def test_wrong_usage(weft, args):
    done = weft(*args, code=2)
    assert "Usage:" in done.stderr
    assert done.stdout == ""


def test_a_command_misspelt(weft):
    assert 'did you mean "check"?' in weft("chek", code=2).stderr


@pytest.mark.parametrize("command", ["check", "compile", "graph", "devices", "bench"])
def test_a_file_that_is_not_there(weft, command):
    done = weft(command, "nosuch.weft", code=3)
    assert "nosuch.weft cannot be read" in done.stderr


@pytest.mark.parametrize("command", ["check", "compile", "graph", "devices", "bench"])
def test_errors_of_the_patch_are_shown_and_counted(weft, command):
    done = weft(command, "broken.weft", code=1)
    assert "broken.weft:2:" in done.stderr
    assert done.stderr.splitlines()[-1].startswith(("1 error", "2 errors"))
    assert done.stdout == ""


def test_no_colour_where_there_is_no_terminal(weft):
    assert "\x1b" not in weft("check", "broken.weft", code=1).stderr


def test_an_error_of_weft_itself_is_one_line(weft):
    script = weft.file(
        "crash.py",
        "import sys, weft.cli.check as c\nfrom weft.cli import main\n"
        "def crash(file, **_):\n    raise ZeroDivisionError('oops')\n"
        "c.command.callback = crash\nsys.exit(main(['check', 'plain.weft']))\n",
    )
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(package.__file__))}
    environment.pop("WEFT_DEBUG", None)

    def run(**more):
        return subprocess.run(
            [sys.executable, script],
            env={**environment, **more}, capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip

    quiet = run()
    assert quiet.returncode == 70
    assert quiet.stderr.count("\n") == 1
    assert "WEFT_DEBUG=1" in quiet.stderr
    assert "Traceback" in run(WEFT_DEBUG="1").stderr


def test_a_reader_that_leaves_is_no_error(weft):
    command = f"{sys.executable} -m weft eval plain.weft a --grid 300x300 | head -c 10"
    done = subprocess.run(command, shell=True, cwd=weft.folder, capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr == ""


def test_summary_and_exit_code():
    fault, warning = Diagnostic("error", "some-error", "e"), Diagnostic("warning", "some-warning", "w")
    missing = Diagnostic("error", "unreadable-file", "m")
    assert summary([fault, fault, warning]) == "2 errors, 1 warning"
    assert summary([]) == "no errors"
    assert exit_code_of([warning]) == 0
    assert exit_code_of([warning, missing]) == 3
    assert exit_code_of([fault, missing]) == 1


def test_the_package_has_few_names_and_imports_nothing():
    code = "import sys, weft; weft.compile; print('numpy' in sys.modules, 'click' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "False False\n"
    assert [unit.subgraph.context for unit in package.compile("display(me@x)\n").units] == ["visual"]
    assert "cpu_visual" in package.devices()
    assert package.best_backend("visual") is not None
    assert package.best_backend("nosuch") is None
