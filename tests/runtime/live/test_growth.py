"""A long evening in short: what a performance keeps does not grow with the number of its saves."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import FunctionType, ModuleType

import pytest

from weft.runtime.compiling.compiler import Compiler, Saved, mistakes
from weft.runtime.compiling.worker import REMEMBERED, Remembered
from weft.runtime.hands.clock import Moment
from weft.runtime.hands.inputs import Inputs
from weft.runtime.live.events import EventLog, Reporter
from weft.runtime.live.session import Session
from weft.runtime.program.files import SetList
from weft.runtime.program.parcels import MOST_KNOWN, Packer, Unpacker
from weft.runtime.program.program import Setup
from weft.runtime.program.recovery import MemoryWatch
from weft.runtime.screens.screen import Screen
from weft.runtime.sound.player import Sound
from weft.runtime.sound.renderer import SoundOptions

TEXT = """\
me<width> = 32
me<height> = 18
spindle ring(d, w) :: v {{ out v = smoothstep(w, 0, abs(d)) }}
trail<v> = max(ring(hypot(me@x - 0.5, me@y - 0.5) - 0.3, 0.{number}), prev(trail@v) * 0.9)
display(trail@v, noise(me@x * {number}, me@y), me@x)
compute(prev(me@beat) + {number})
"""

# Objects that come and go with the moment: frames of the interpreter, events that are being handed over, and a program
# more or less that plays, fades out or is ready, of some 200 objects. One that stayed with each save would be 18,000.
_SLACK = 500

_LIMITED = Remembered, Packer, Unpacker, MemoryWatch

def text(number: int) -> str:
    """A text of its own for every number; every fifth is broken."""
    return TEXT.format(number=number + 100) + ("display(" if number % 5 == 4 else "")


def reached(roots: Iterable[object]) -> dict[int, object]:
    """The objects that these refer to, and those themselves, by their identities; code is left out."""
    waiting, found = list(roots), dict[int, object]()
    while waiting:
        each = waiting.pop()
        if id(each) not in found and not isinstance(each, (type, ModuleType, FunctionType)):
            found[id(each)] = each
            waiting += gc.get_referents(each)
    return found


def objects(keeper: object) -> Counter[str]:
    """How many objects there are of each type, apart from what has a limit that pauses decide about: the remembered
    programs and known pieces of a keeper, which share more or less depending on which builds were from scratch, and the
    units that have played in the last two seconds."""
    gc.collect()
    everything = gc.get_objects()
    limited = reached(each for each in reached([keeper]).values() if isinstance(each, _LIMITED))
    return Counter(f"{type(o).__module__}.{type(o).__qualname__}" for o in everything if id(o) not in limited)


def assert_level(before: Counter[str], after: Counter[str]) -> None:
    more = {name: count - before[name] for name, count in after.items() if count > before[name] + 10}
    assert after.total() <= before.total() + _SLACK, sorted(more.items(), key=lambda entry: -entry[1])[:12]


class Player(Screen):
    """Saves one text after another, each when the one before has been answered, and counts objects in between."""

    def __init__(self, path: Path, rounds: int) -> None:
        super().__init__()
        self.session: Session | None = None
        self.counted: list[Counter[str]] = []
        self.answered = 0
        self._path = path
        self._rounds = rounds
        self._saved = 0

    def poll(self) -> None:
        assert self.session is not None
        if self.answered < self._saved:
            return
        running = self.session.programs.running
        if not self._saved and (running is None or running.tier() == 1):
            # All later texts have the better code at once, of which more is kept, however long a pause between them is.
            return
        if self._saved and self._saved % self._rounds == 0:
            self.counted.append(objects(self.session))
        if len(self.counted) == 2:
            self.session.stop("done")
            return
        self._path.write_text(text(self._saved))
        self._saved += 1


@pytest.mark.long
def test_a_session_keeps_no_more_after_many_saves_than_after_some(tmp_path: Path) -> None:
    path = tmp_path / "patch.weft"
    path.write_text(text(0).replace("0.9", "0.8"))
    # Once around, everything that remembers a limited number of things is full. A text has two new pieces or more.
    player = Player(path, rounds=max(REMEMBERED, MOST_KNOWN // 2) * 5 // 4 + 10)

    def say(line: str) -> None:
        player.answered += line.startswith(("updated in", "the last good version"))

    setup = Setup(str(path))
    sound = Sound(setup, SoundOptions(is_silent=True))
    session = Session(SetList([path]), Compiler.of(setup), Reporter(EventLog(None), echo=say), Inputs(), sound)
    player.session = session
    session.begin()
    session.run(player)
    before, after = player.counted
    assert_level(before, after)


@pytest.mark.long
def test_the_compiler_keeps_nothing_of_the_texts_it_has_compiled(tmp_path: Path) -> None:
    """In a process of its own, since a build takes up what tests before have left."""
    work = f"from tests.runtime.live.test_growth import keeps_nothing; keeps_nothing({str(tmp_path / 'patch.weft')!r})"
    subprocess.run([sys.executable, "-c", work], cwd=Path(__file__).parents[3], check=True)


def keeps_nothing(patch: str) -> None:
    compiler = Compiler.of(Setup(patch))

    def compile_some(numbers: range) -> Counter[str]:
        for number in numbers:
            _compile(compiler, text(number))
        # A pause, in which what no text uses any more is dropped.
        assert compiler.prepare(is_long=True)
        return objects(compiler)

    before = compile_some(range(20))
    assert_level(before, compile_some(range(20, 44)))


def _compile(compiler: Compiler, text: str) -> None:
    made = compiler.compile(Saved(text.encode(), 0.0))
    if made.compiled is not None:
        assert mistakes(made.compiled, compiler.loader, Moment(), made.places) == ()
