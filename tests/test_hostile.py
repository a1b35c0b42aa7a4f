"""Hostile patches do nothing that a trace would show: they write nothing but what was asked for, connect to nothing,
listen nowhere but for editors of the same user, start no program, and read nothing outside of their folder."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.hostile import HARMLESS, MEDIA, hostile, world
from tests.support.tracing import Traced, missing_tracer, traced

pytestmark = pytest.mark.skipif(missing_tracer() is not None, reason=missing_tracer() or "")

ROOT = Path(__file__).parents[1]

# Runs commands of weft one after another, each in a fork of a process that has imported what it needs; so does what a
# command starts first.
DRIVER = """\
import json, os, sys
from tests.support.fork_server import ForkedChild, prepare
from tests.support.forks import WHEN_NEEDED
from weft import child
from weft.__main__ import main

commands = ["weft.cli." + name for name in ("render", "check", "evaluate", "run")]
prepare(commands, ["av", "weft.media.films", *WHEN_NEEDED])
child.Child = ForkedChild

for words in json.loads(sys.argv[1]):
    child = os.fork()
    if not child:
        sys.argv = ["weft", *words]
        code = 70
        try:
            code = main()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.waitstatus_to_exitcode(status) not in (0, 1, 2, 3):
        sys.exit(f"{words} ended with {status}")
"""

READ = 'load("near.png")::p<r, g, b>\ncamera("testsrc2 size=64x48")::c<r>\ndisplay(p@r, c@r, p@b)\n'


# By this weft looks at a child of its own that has given no sign of life (`weft.child`).
_LOOKS = {path for path in [shutil.which("ps")] if path}

# The address to which `osc_send` sends without --osc-send; nothing has to listen there.
_OSC_GOES_TO = 'sin_port=htons(9001), sin_addr=inet_addr("127.0.0.1")'


class Room:
    """Folders for hostile patches, for all files next to them, and for what weft itself keeps."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.patches = world(folder, port)
        self.own = folder / "own"
        self.own.mkdir()
        self.texts = {**hostile(self.patches, port), **HARMLESS, "usual": READ}
        for name, text in self.texts.items():
            (self.patches / f"{name}.weft").write_text(text)
        shutil.copy(MEDIA / "cloth.png", self.patches / "near.png")
        self._count = 0

    def trace(self, commands: Sequence[Sequence[str]]) -> Traced:
        """What commands of weft do, in the folder of the patches."""
        self._count += 1
        environment = {**os.environ, "HOME": str(self.own), "TMPDIR": str(self.own), "XDG_CACHE_HOME": str(self.own)}
        environment |= {"XDG_RUNTIME_DIR": str(self.own)}
        environment |= {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(ROOT)}
        environment = {name: value for name, value in environment.items() if name not in ("DISPLAY", "WEFT_ALLOW")}
        command = [sys.executable, "-c", DRIVER, json.dumps([list(each) for each in commands])]
        return traced(command, self.patches, self.folder / f"log{self._count}", environment, 500)

    def drawn(self, names: Sequence[str]) -> list[list[str]]:
        """Commands that draw patches."""
        return [["render", f"{name}.weft", "-o", str(self.own / f"{name}.png"), "--size", "16x16"] for name in names]

    def evaluated(self, names: Sequence[str]) -> list[list[str]]:
        """Commands that evaluate a strand of patches."""
        return [["eval", f"{name}.weft", "c@r"] for name in names]

    def played(self, names: Sequence[str]) -> list[list[str]]:
        """Commands that play patches for a moment."""
        options = "--headless", "--no-audio", "--no-midi", "--frames", "2", "--size", "16x16"
        return [["run", f"{name}.weft", *options] for name in names]

    def forbidden(self, found: Traced, usual: Traced) -> list[str]:
        """What processes must not have done; `usual` is what they do with a harmless patch."""
        ours = (*(f"{each}/" for each in (self.own, "/dev/shm", "/proc")), "/memfd:")
        places = sys.prefix, sys.base_prefix, os.path.realpath(sys.prefix), os.path.realpath(sys.base_prefix), ROOT
        open_to_read = (*(f"{each}/" for each in places), "/usr/", "/lib", "/sys/", f"{self.patches}/", *ours)
        written = [p for p in found.written - usual.written if not p.startswith(ours) and p != "/dev/null"]
        open_folders = {str(self.patches), "/proc"}
        read = [p for p in found.read - usual.read - open_folders if not p.startswith(open_to_read)]
        read += [p for p in found.read if p.endswith("/environ") or p.startswith(f"{self.folder}/outside")]
        return [
            *(f"wrote {p}" for p in written if not self._is_value(p)), *(f"read {p}" for p in read),
            *(f"started {p}" for p in found.programs - usual.programs - _LOOKS),
            *(call for call in found.network if _OSC_GOES_TO not in call),
        ]  # fmt: skip

    def _is_value(self, path: str) -> bool:
        """Whether a file keeps the values of parameters, next to a patch."""
        return path.startswith(f"{self.patches}/") and ".weft.values" in path


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        taken.settimeout(0)
        yield Room(tmp_path_factory.mktemp("room"), taken.getsockname()[1])
        with pytest.raises(BlockingIOError):
            taken.accept()


@pytest.fixture(scope="module")
def usual(room: Room) -> Traced:
    """What weft does with a patch that reads a picture and a generated one, when it is checked, drawn and played."""
    each = room.drawn, room.evaluated, room.played
    found = room.trace([["check", "usual.weft"], *(command for kind in each for command in kind(["usual"]))])
    assert str(room.patches / "near.png") in found.read
    assert not found.network
    assert any(path.startswith(str(room.own)) for path in found.written)
    return found


def test_the_trace_shows_what_is_forbidden(room: Room) -> None:
    before = Traced(frozenset(), frozenset(), frozenset(), frozenset())
    outside = room.folder / "outside"
    code = f"""
import os, socket, subprocess
open('{outside}/secret.weft').read()
open('{outside}/new', 'w')
socket.create_server(('', 0))
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 9))
os.link('near.png', 'far.png')
subprocess.run(['true'])
"""
    done = traced([sys.executable, "-c", code], room.patches, room.folder / "log", os.environ, 60)
    found = room.forbidden(done, before)
    for words in ("read", "wrote", "listen(", "bind(", "sendto(", "far.png", "started"):
        assert any(words in each for each in found), words


@pytest.mark.long
def test_hostile_patches_leave_no_trace(room: Room, usual: Traced) -> None:
    names = [name for name in room.texts if name != "usual"]
    some = names[:: len(names) // 2]
    found = room.trace([["check", *(f"{name}.weft" for name in names)], *room.drawn(some), *room.evaluated(some)])
    assert room.forbidden(found, usual) == []


PARTS = 8


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("part", range(PARTS))
def test_all_hostile_patches_leave_no_trace(room: Room, usual: Traced, part: int) -> None:
    """All are drawn; a performance, which builds them in the same way, plays every third, and others are evaluated."""
    names = [name for name in room.texts if name != "usual"][part::PARTS]
    found = room.trace([*room.drawn(names), *room.played(names[::3]), *room.evaluated(names[1::3])])
    assert room.forbidden(found, usual) == []
