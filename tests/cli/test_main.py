"""What all commands share: help, exit codes, and how errors look."""

from __future__ import annotations

import errno
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import weft as package
from tests.support.forks import at_terminal
from tests.support.together import all_but
from weft.__main__ import main as begin
from weft.cli import COMMANDS
from weft.cli.console import exit_code_of, summary
from weft.codes.rows import MISSING
from weft.errors import Diagnostic


def test_alone_it_shows_help(weft):
    text = weft().stdout
    assert text == weft("--help").stdout
    for name in COMMANDS:
        assert f"\n  {name} " in text


def test_version(weft):
    assert weft("--version").stdout == f"weft {package.__version__}\n"


@pytest.mark.parametrize("name", all_but(6, COMMANDS))
def test_each_command_has_help(weft, name):
    assert "--help" in weft.anew(name, "--help").stdout


@pytest.mark.parametrize(
    "args",
    [["chek", "plain.weft"], ["check"], ["check", "plain.weft", "--nope"], ["graph", "plain.weft", "--format", "x"]],
)
def test_wrong_usage(weft, args):
    done = weft(*args, code=2)
    assert "Usage:" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    "line",
    [
        "run mine.weft --headless --frames 1 --events mine.weft",
        "run --headless --frames 1 --events mine.weft",
        "run patch.txt --headless --frames 1 --events ./patch.txt",
        "run --watch-dir . --headless --frames 1 --events new.weft",
        "export mine.weft -o mine.weft",
        "export patch.txt -o linked.html",
    ],
)
def test_nothing_is_written_over_a_patch(weft, line):
    for name in ("mine.weft", "patch.txt"):
        weft.file(name, "display(me@x, me@y, 0.5)\n")
    (weft.folder / "linked.html").symlink_to("patch.txt")
    assert "would write over a patch" in weft(*line.split(), code=2).stderr
    assert {(weft.folder / name).read_text() for name in ("mine.weft", "patch.txt")} == {"display(me@x, me@y, 0.5)\n"}
    assert not (weft.folder / "new.weft").exists()


def test_a_command_misspelt(weft):
    assert 'did you mean "check"?' in weft("chek", code=2).stderr


@pytest.mark.parametrize(
    ("line", "variable", "wrong"),
    [("run plain.weft --headless --frames 1", "WEFT_OSC", "x:y"), ("check plain.weft", "WEFT_ALLOW", "nowhere")],
)
def test_a_wrong_variable_is_named(weft, line, variable, wrong):
    said = weft(*line.split(), code=2, **{variable: wrong}).stderr
    assert f"Invalid value for '{variable}': '{wrong}' is " in said


def test_a_file_in_place_of_a_command(weft):
    assert "run 'my first.weft')" in weft(weft.file("my first.weft", "display(me@x)\n").name, code=2).stderr


@pytest.mark.parametrize("command", ["check", "compile", "graph", "devices", "bench"])
def test_a_file_that_is_not_there(weft, command):
    done = weft(command, "nosuch.weft", code=3)
    assert "nosuch.weft cannot be read" in done.stderr


# Root reads everything, unless it gives that up.
_AS_ANYBODY = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"] if os.geteuid() == 0 else []


_needs_setpriv = pytest.mark.skipif(
    bool(_AS_ANYBODY) and shutil.which("setpriv") is None, reason="root can read the file"
)


def _as_anybody(weft, *args):
    """Runs a command line as one who may do only what the modes of files say."""
    line = [*_AS_ANYBODY, sys.executable, "-m", "weft", *args]
    done = subprocess.run(line, cwd=weft.folder, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == MISSING, done.stderr
    return done.stderr.splitlines()[-1]


@_needs_setpriv
@pytest.mark.parametrize(
    "command", all_but(2, ["check", "run --headless", "fmt", "render -o a.png", "devices", "bench", "send"])
)
def test_a_file_that_may_not_be_read(weft, command):
    """It is told of as any other file that cannot be read, and not as a wrong use of the command."""
    weft.file("mine.weft", "display(me@x)").chmod(0)
    name, *options = command.split()
    assert _as_anybody(weft, name, "mine.weft", *options) == "weft: mine.weft cannot be read: permission denied"


@_needs_setpriv
@pytest.mark.parametrize(
    ("args", "words"),
    [(["render", "plain.weft", "-o", "shut/a.png"], "shut/a.png cannot be written: Permission denied"),
     (["render", "plain.weft", "-o", "shut/a%d.png", "--to", "1"],
      "shut/a0.png cannot be written: Permission denied; the same command continues from there"),
     (["new", "shut/sub/a"], "there is no folder shut/sub (make it with: mkdir -p shut/sub)"),
     (["run", "shut/a.weft", "--headless"], "shut/a.weft cannot be read: permission denied")],
)  # fmt: skip
def test_a_folder_that_may_not_be_entered(weft, args, words):
    (weft.folder / "shut").mkdir(0)
    assert _as_anybody(weft, *args) == f"weft: {words}"



@pytest.mark.parametrize(
    ("typed", "hint"),
    [("helo.weft", 'did you mean "hello.weft"?'), ("hello", 'did you mean "hello.weft"?'),
     ("Hello.wft", 'did you mean "hello.weft"?'), ("sub dir/helo.weft", 'did you mean "sub dir/hello.weft"?'),
     ("nowhere/hello.weft", "there is no folder nowhere"), ("sub dir", "its patches are sub dir/*.weft")],
)  # fmt: skip
def test_a_patch_that_is_nearly_named_is_found(weft, typed, hint):
    (weft.folder / "sub dir").mkdir()
    weft.file("hello.weft", "display(me@x)")
    weft.file("sub dir/hello.weft", "display(me@x)")
    assert weft("check", typed, code=3).stderr.endswith(f"({hint})\n")
    if typed != "sub dir":
        assert weft("run", typed, "--headless", code=3).stderr.endswith(f"({hint})\n")


def test_a_patch_that_is_like_no_other_is_only_missing(weft):
    weft.file("hello.weft", "display(me@x)")
    assert weft("check", "symphony.weft", code=3).stderr.endswith("there is no such file\n")


@pytest.mark.parametrize("folder", ["sub dir", ".", ""])
def test_a_folder_in_the_place_of_a_patch(weft, folder):
    """An empty word is the folder where one is, for the system too."""
    (weft.folder / "sub dir").mkdir()
    done = weft("run", "plain.weft", folder, "--headless", "--frames", "1", code=3)
    assert done.stderr.startswith(f"weft: {folder or '.'} cannot be read: it is a folder (to play the patches in it: ")
    assert done.stderr.endswith(f"run --watch-dir {shlex.quote(folder or '.')})\n")


@pytest.mark.parametrize("command", ["check", "compile", "graph", "devices", "bench"])
def test_errors_of_the_patch_are_shown_and_counted(weft, command):
    done = weft(command, "broken.weft", code=1)
    assert "broken.weft:2:" in done.stderr
    assert done.stderr.splitlines()[-1].startswith(("1 error", "2 errors"))
    assert done.stdout == ""


def test_no_colour_where_there_is_no_terminal(weft):
    assert "\x1b" not in weft("check", "broken.weft", code=1).stderr


def shown_at_terminal(args: Sequence[str], folder: Path) -> str:
    """What a command shows at a terminal, without colours and what a progress bar moves by."""
    master, slave = os.openpty()
    process = at_terminal(args, folder, slave)
    os.close(slave)
    written = bytearray()
    with suppress(OSError):  # what a terminal says at its end
        while data := os.read(master, 65536):
            written += data
    process.wait(60)
    os.close(master)
    return re.sub(r"\x1b\[([0-9;]*m|\?25[lh]|2K|1A)|\r", "", written.decode())


def test_a_terminal_leads_to_the_help_about_the_first_error(weft):
    weft.file("two.weft", "#slider size<v> = 0, 1, 2\ntrail = trail * 0.9\ndisplay(trail)\n")
    last = shown_at_terminal(["check", "two.weft"], weft.folder).splitlines()[-1]
    assert re.fullmatch(r"1 error, 1 warning; .*weft help cycle says more", last)
    assert weft("check", "two.weft", code=1).stderr.splitlines()[-1] == "1 error, 1 warning"


HOSTILE = "e\x1b[2J\x9b31m\u202e\r\u200bx\n.weft"


@pytest.mark.parametrize(
    "args",
    [
        ["check", HOSTILE, f"no{HOSTILE}"],
        ["graph", HOSTILE],
        ["compile", HOSTILE, "--dump-ast"],
        ["compile", HOSTILE, "-o", f"folder{HOSTILE}"],
        ["run", HOSTILE, "--headless", "--frames", "1", "--no-audio"],
        ["render", HOSTILE, "-o", f"{HOSTILE}%02d.png", "--duration", "0.1", "--size", "16x16"],
        ["bench", HOSTILE, "--seconds", "0.01", "--size", "16x16", "--backends", "vm"],
        ["new", f"new{HOSTILE}"],
        ["eval", HOSTILE, HOSTILE],
        ["help", HOSTILE],
        [HOSTILE],
    ],
    ids=lambda args: args[0] if args[0] != HOSTILE else "command",
)
def test_nothing_hostile_reaches_a_terminal(weft, args):
    own = "spindle sin(\u202e)" if args[0] == "check" else "spindle sin(x) :: v { v = x }"
    weft.file(HOSTILE, f'a<v> = me@x\ndisplay(a@v) // \u202e\ndisplay(me@y, to: "t\u202e\x9b")\n{own}\n')
    text = shown_at_terminal(args, weft.folder)
    assert "Traceback" not in text
    assert {letter for letter in text if not letter.isprintable()} <= {"\n", "\t"}
    assert "\\x1b" in text


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
@pytest.mark.parametrize(
    "args",
    [["help"], ["--version"], ["check", "plain.weft", "--json"], ["graph", "plain.weft"], ["eval", "plain.weft", "a"]],
    ids=lambda args: args[0],
)
def test_output_that_cannot_be_written_is_an_error_in_words(weft, args):
    command = [sys.executable, "-m", "weft", *args]
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            command, cwd=weft.folder, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=60
        )
        assert done.returncode == 3
        assert done.stderr == f"weft: the output cannot be written: {os.strerror(errno.ENOSPC)}\n"


def test_a_closed_stream_is_no_fault_of_weft(weft):
    weft_alone = f"{shlex.quote(sys.executable)} -m weft"
    command = f"{weft_alone} help >&-; echo $? >&2; {weft_alone} nope 2>&-; echo $? >&2"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr == "0\n2\n"


def test_an_error_of_weft_itself_is_one_line(weft):
    script = weft.file(
        "crash.py",
        "import sys, weft.cli.check as c\nfrom weft.cli import main\n"
        "def crash(**_):\n    raise ZeroDivisionError('oops')\n"
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


LIMITED = {
    "picture": "me<width> = 1280\nme<height> = 720\nd = delay(me@x + me@time, 9, 1400)\ndisplay(d)\n",
    "sound": "a = sin(me@time * 9)\nd = delay(a, 9, 6e7) + delay(a, 8, 6e7)\ne = d + delay(d, 9, 6e7)\naudio(e)\n",
    "numbers": "d = delay(me@time, 9, 6e7) + delay(me@time, 8, 6e7) + delay(me@time, 7, 6e7)\ncompute(d)\n",
}


@pytest.mark.long
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux limits address spaces, and tells of them")
@pytest.mark.parametrize(
    ("patch", "args"),
    all_but(2, [
        ("picture", ["render", "-o", "out.png", "--backend", "vector"]),
        ("picture", ["run", "--headless", "--frames", "1"]),
        ("sound", ["eval", "e", "--samples", "2", "--ticks", "1"]),
        ("numbers", ["bench", "--seconds", "0", "--backends", "vector"]),
        ("picture", ["eval", "d", "--grid", "1280x720", "--ticks", "1"]),
        ("picture", ["bench", "--seconds", "0", "--backends", "vector"]),
        ("sound", ["render", "-o", "out.wav", "--to", "0.1"]),
        ("sound", ["run", "--headless", "--frames", "1"]),
        ("numbers", ["eval", "d", "--ticks", "1"]),
        ("numbers", ["run", "--headless", "--frames", "1"]),
    ]),
    ids=lambda part: part if isinstance(part, str) else part[0],
)  # fmt: skip
def test_what_takes_more_memory_than_a_limit_leaves_is_refused_before_it_is_taken(weft, patch, args):
    """The patches want 1.4 GB, or 5 for pictures."""
    import resource

    file = weft.file("large.weft", LIMITED[patch])
    most = (3 if patch == "picture" else 1.2) * 2**30
    done = subprocess.run(
        [sys.executable, "-m", "weft", args[0], file, *args[1:]],
        cwd=weft.folder, capture_output=True, text=True, check=False, timeout=60,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (int(most), int(most))),
    )  # fmt: skip
    assert done.returncode == MISSING, done.stderr
    assert re.search(r"\d (GB|MB) are free", done.stderr)
    assert "Traceback" not in done.stderr
    assert "bug" not in done.stderr


def test_garbage_is_collected_while_a_command_runs_though_not_before(weft):
    script = weft.file(
        "collecting.py",
        "import gc, sys, weft.cli.check as c\nfrom weft.__main__ import main\n"
        "def tell(**_):\n    print(gc.isenabled())\n"
        "c.command.callback = tell\nsys.argv[1:] = ['check', 'plain.weft']\nsys.exit(main())\n",
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "True\n"


def test_running_out_of_memory_is_no_error_of_weft(weft):
    script = weft.file(
        "hungry.py",
        "import sys, numpy, weft.cli.check as c\nfrom weft.cli import main\n"
        "def take(**_):\n    return numpy.zeros((2 ** 20, 2 ** 30))\n"
        "c.command.callback = take\nsys.exit(main(['check', 'plain.weft']))\n",
    )
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(package.__file__))}
    done = subprocess.run(
        [sys.executable, script], env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == MISSING
    assert "ran out of memory (unable to allocate 8.00 PiB" in done.stderr
    assert "report" not in done.stderr


def test_a_reader_that_leaves_is_no_error(weft):
    command = f"{shlex.quote(sys.executable)} -m weft eval plain.weft a --grid 300x300 | head -c 10"
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


# --- interruptions ----------------------------------------------------------------------------------------------------

IGNORING = ["sh", "-c", 'trap "" INT HUP; exec "$@"', "sh"]


@pytest.fixture
def interrupting(tmp_path, monkeypatch):
    """Has this process interrupted when it imports a module, which then takes its time."""

    def interrupting(module, name="SIGINT"):
        text = f"import os, signal, time\nos.kill(os.getpid(), signal.{name})\ntime.sleep(60)\n"
        (tmp_path / f"{module}.py").write_text(text)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    return interrupting


@pytest.mark.parametrize("before", [[], IGNORING], ids=["heard", "ignored before"])
@pytest.mark.parametrize(("module", "command"), [("click", "check"), ("parsimonious", "check"), ("watchdog", "run")])
def test_an_interruption_of_the_first_imports_leaves_no_traceback(weft, interrupting, module, command, before):
    interrupting(module)
    line = [*before, sys.executable, "-m", "weft", command, "plain.weft"]
    done = subprocess.run(line, cwd=weft.folder, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "weft: interrupted\n")


@pytest.mark.skipif(sys.platform == "win32", reason="there are no signals to send")
@pytest.mark.parametrize(("name", "code"), all_but(1, [("SIGHUP", 129), ("SIGTERM", 143)]))
def test_what_asks_for_the_end_during_imports_is_heard(weft, interrupting, name, code):
    interrupting("parsimonious", name)
    done = weft.anew("check", "plain.weft", code=code)
    assert (done.stdout, done.stderr) == ("", "weft: terminated\n")


def test_the_installed_command_begins_with_what_hears_interruptions():
    (script,) = entry_points(group="console_scripts", name="weft")
    assert script.load() is begin


def test_no_module_is_imported_before_interruptions_are_heard():
    code = "import sys; before = set(sys.modules); import weft.__main__; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) <= {"__future__", "weft", "weft.__main__"}
