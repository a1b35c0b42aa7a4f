"""Running weft as its users do: as a process. On Linux, most of these are forks of one that has imported weft already;
`test_main.py` has a new process import each command, and end as Python does."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.support.forks import ran, started
from tests.support.gl import no_graphics
from tests.support.interfaces import check_json
from weft.backends.gl.backend import GlVisual

# Processes with this folder on their path have code generators that fail.
BROKEN = Path(__file__).parents[1] / "support" / "broken"

PLAIN = """\
a<v> = sin(me@x * 3) + me@time
b<r, g> = <me@x, me@y>
display(a@v, b@r, b@g)
"""

# State of each kind, a parameter, a cache, and outputs of every context.
RICH = """\
me<width> = 16; me<height> = 9
#slider s<v> = 0, 1, 0.25 "s"
a<v> = me@x + me@time
cache(a, 4)::h<v>
count<v> = prev(count@v) + 1
trail<v> = prev(trail@v) + me@x
from_outside<v> = s@v * 100 + mouse@x * 10 + key@a
clock<v> = me@frame + me@beat * 100 + me@px * 1000
tone<v> = phasor(12000)
display(trail@v, h@v, from_outside@v)
audio(tone@v)
compute(count@v)
"""


def said(stderr):
    """The lines that a command has written there, without those that it writes on a slow machine."""
    return [line for line in stderr.splitlines() if "is still" not in line]


class Weft:
    """Calls `weft` in a folder of its own."""

    def __init__(self, folder):
        self.folder = folder

    def __call__(self, *args, code=0, **environment):
        """Runs a command line, and demands its exit code."""
        return self._run(ran, args, code, environment)

    def anew(self, *args, code=0, **environment):
        """The same, for certain by a process that imports weft."""
        return self._run(started, args, code, environment)

    def _run(self, run, args, code, environment):
        env = {name: value for name, value in os.environ.items() if name != "WEFT_BACKEND"} | environment
        done = run(list(map(str, args)), self.folder, env)
        assert done.returncode == code, done.stderr + done.stdout
        assert "Traceback" not in done.stderr
        return done

    def broken(self, generators, *args, code=0):
        """Runs a command line with code generators that fail; see `tests/support/broken`."""
        return self(*args, code=code, PYTHONPATH=str(BROKEN), WEFT_BROKEN=generators)

    def json(self, *args, code=0):
        """What a command prints with `--json`, on stdout alone: nothing that docs/interfaces.md does not list."""
        found = json.loads(self(*args, "--json", code=code).stdout)
        check_json(args[0], found)
        return found

    def file(self, name, text):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path


@pytest.fixture(scope="session")
def opengl():
    """Ends a test where nothing draws with OpenGL."""
    (device,) = GlVisual.probe()
    if not device.available:
        no_graphics(device.reason)


def weft_in(folder):
    """`weft` in a folder with some patches."""
    made = Weft(folder)
    made.file("plain.weft", PLAIN)
    made.file("rich.weft", RICH)
    made.file("broken.weft", "a<v> = nosuch(1)\nb<v> = 1 +\ndisplay(a@v)\n")
    return made


@pytest.fixture
def weft(tmp_path):
    return weft_in(tmp_path)
