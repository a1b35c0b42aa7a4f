"""Set lists: several patches in a performance, each with its own state and parameters."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from weft.errors import Diagnostic, WeftError
from weft.runtime.compiling.compiler import Compiler
from weft.runtime.hands.inputs import Inputs
from weft.runtime.hands.parameters import ValuesFile
from weft.runtime.live.events import EventLog, Reporter
from weft.runtime.live.session import Limits, Session
from weft.runtime.program.files import SetList
from weft.runtime.program.program import Setup
from weft.runtime.screens.screen import Screen
from weft.runtime.sound.player import Sound
from weft.runtime.sound.renderer import SoundOptions

# --- the list ---------------------------------------------------------------------------------------------------------


def test_it_goes_around_in_the_order_of_the_command_line() -> None:
    a, b, c = map(Path, ("a.weft", "c.weft", "b.weft"))
    patches = SetList([a, b, c, a])
    assert (patches.current, patches.place) == (a, "1 of 3")
    assert [patches.move(1) for _ in range(3)] == [b, c, a]
    assert (patches.move(-1), patches.place) == (c, "3 of 3")


def test_one_patch_has_no_other() -> None:
    assert SetList([Path("a.weft")]).move(1) is None


def test_what_is_loaded_is_put_at_its_end() -> None:
    a, b = Path("a.weft"), Path("b.weft")
    patches = SetList([a])
    assert (patches.load(b), patches.current, patches.place) == (b, b, "2 of 2")
    patches.load(a)
    assert (patches.current, patches.place) == (a, "1 of 2")


def test_a_folder_is_looked_at_again_and_again(tmp_path: Path) -> None:
    for name in ("b.weft", "a.weft", "notes.txt"):
        (tmp_path / name).touch()
    (tmp_path / "folder.weft").mkdir()
    patches = SetList([], tmp_path)
    assert [path.name for path in patches.patches] == ["a.weft", "b.weft"]
    (tmp_path / "aa.weft").touch()
    assert patches.move(1) == tmp_path / "aa.weft"
    (tmp_path / "aa.weft").unlink()
    assert patches.move(1) == tmp_path / "b.weft"


def test_a_folder_counts_and_leaves_hidden_files_alone(tmp_path: Path) -> None:
    in_order = [
        "1-scene.weft", "2-scene.weft", "10-scene.weft", "Act 1 b.weft", "act 2 a.weft", "act 10.weft", "b.weft",
        "b1.weft",
    ]  # fmt: skip
    for name in (*reversed(in_order), "._1-scene.weft", ".hidden.weft", ".weft"):
        (tmp_path / name).touch()
    patches = SetList([], tmp_path)
    assert [path.name for path in patches.patches] == in_order
    assert patches.current.name == in_order[0]
    patches.move(1)
    patches.current.unlink()
    moved = patches.move(1)
    assert moved is not None
    assert moved.name == in_order[2]


def test_an_empty_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(WeftError, match="there is no patch in"):
        SetList([], tmp_path)


# --- a performance of several patches ---------------------------------------------------------------------------------

TEXT = """\
me<width> = 8
me<height> = 4
#slider level<v> = 0, 10, {start}
count = prev(count) + 1
compute(count, level, {number})
"""


class Player(Screen):
    """Does one thing after another, each as soon as what came before it has led to new numbers."""

    def __init__(self, steps: list[tuple[Callable[[], bool], Callable[[], None]]]) -> None:
        super().__init__()
        self.steps = steps
        self.titles: list[str] = []

    def poll(self) -> None:
        if self.steps and self.steps[0][0]():
            self.steps.pop(0)[1]()

    def set_title(self, title: str) -> None:
        self.titles.append(title)


def _session(patches: SetList, told: list[Diagnostic]) -> Session:
    setup = Setup(str(patches.current))
    inputs = Inputs()
    sound = Sound(setup, SoundOptions(is_silent=True))
    return Session(
        patches, Compiler.of(setup), Reporter(EventLog(None), told.extend), inputs, sound, limits=Limits(20.0),
        keeper=lambda path: ValuesFile(path, inputs.parameters),
    )  # fmt: skip


def test_each_patch_keeps_its_state_and_its_parameters(tmp_path: Path) -> None:
    paths = [tmp_path / "a.weft", tmp_path / "b.weft"]
    for number, path in enumerate(paths):
        path.write_text(TEXT.format(number=number, start=number + 1))
    session = _session(SetList(paths), [])
    found: list[list[float]] = []

    def shows(number: int, at_least: int) -> Callable[[], bool]:
        def reached() -> bool:
            numbers = session._compute
            return bool(numbers) and numbers[2] == number and numbers[0] >= at_least

        return reached

    def go(command: str, level: float | None = None) -> Callable[[], None]:
        def act() -> None:
            found.append(session._compute)
            if level is not None:
                session.inputs.parameters.set("level@v", level)
            session.command(command)

        return act

    screen = Player([
        (shows(0, 20), go("next", 5)), (shows(1, 10), go("previous", 7)), (shows(0, 30), go("next")),
        (shows(1, 11), go("leave")),
    ])  # fmt: skip
    session.begin()
    session.run(screen)
    assert [numbers[1:] for numbers in found] == [[1, 0], [2, 1], [5, 0], [7, 1]]
    first, second, again, last = (numbers[0] for numbers in found)
    assert second < first, "another patch begins at zero"
    assert again >= first, "and this one goes on where it was left"
    assert last > second
    assert screen.titles == ["a.weft · weft", "b.weft · weft"] * 2
    kept = [json.loads(path.with_name(path.name + ".values").read_text())["parameters"] for path in paths]
    assert [each["level@v"] for each in kept] == [{"value": 5, "start": 1}, {"value": 7, "start": 2}]


@pytest.mark.long
def test_a_patch_that_cannot_play_leaves_the_other_one_and_is_watched(tmp_path: Path) -> None:
    a, b = tmp_path / "a.weft", tmp_path / "b.weft"
    a.write_text(TEXT.format(number=0, start=1))
    told: list[Diagnostic] = []
    session = _session(SetList([a, b]), told)

    def mend() -> None:
        assert session._compute[2] == 0, "the first one goes on"
        b.write_text(TEXT.format(number=1, start=1))

    screen = Player([
        (lambda: bool(session._compute), lambda: session.command("next")),
        (lambda: bool(told), mend),
        (lambda: session._compute[2] == 1, lambda: session.command("leave")),
    ])  # fmt: skip
    session.begin()
    session.run(screen)
    assert [d.message for d in told] == [f"{b} cannot be read: there is no such file"]
    assert session.stopping == "closed"


@pytest.mark.long
def test_what_is_written_goes_beside_the_patch_that_plays(tmp_path: Path) -> None:
    paths = [tmp_path / "a.weft", tmp_path / "sub" / "b.weft"]
    for number, path in enumerate(paths):
        path.parent.mkdir(exist_ok=True)
        path.write_text(TEXT.format(number=number, start=1) + "display(me@x)\n")
    session = _session(SetList(paths), [])
    screenshots = [path.with_name(f"{path.stem}-001.png") for path in paths]

    def plays(number: int) -> Callable[[], bool]:
        return lambda: bool(session._compute) and session._compute[2] == number

    screen = Player([
        (plays(0), lambda: session.command("screenshot")), (screenshots[0].exists, lambda: session.command("next")),
        (plays(1), lambda: session.command("screenshot")), (screenshots[1].exists, lambda: session.command("leave")),
    ])  # fmt: skip
    session.begin()
    session.run(screen)
    assert session.stopping == "closed"


def test_a_name_leads_to_no_other_folder(tmp_path: Path) -> None:
    """It may come from another machine."""
    a, said = tmp_path / "sub" / "a.weft", list[str]()
    a.parent.mkdir()
    for path in (a, tmp_path / "b.weft"):
        path.write_text(TEXT.format(number=0, start=1))
    session = _session(SetList([a]), [])
    session.reporter.echo = said.append
    session.begin()
    for name in ("../b", "../b.weft", f"/{tmp_path}/b.weft"):
        session.command("load", name)
        assert session.path == a
        assert said.pop().endswith("cannot be played: it is not in the folder of the patch that plays")
    session.close()


def test_another_file_may_be_asked_for(tmp_path: Path) -> None:
    a, b = tmp_path / "a.weft", tmp_path / "b.weft"
    a.write_text(TEXT.format(number=0, start=1))
    b.write_text(TEXT.format(number=1, start=1))
    session = _session(SetList([a]), [])
    screen = Player([
        (lambda: bool(session._compute), lambda: session.load(b)),
        (lambda: session._compute[2] == 1, lambda: session.command("leave")),
    ])  # fmt: skip
    session.begin()
    session.run(screen)
    assert (session.stopping, session.patches.place) == ("closed", "2 of 2")


@pytest.mark.long
def test_the_next_patch_is_compiled_before_it_is_asked_for_as_it_was_saved_last(tmp_path: Path) -> None:
    a, b, events = tmp_path / "a.weft", tmp_path / "b.weft", tmp_path / "events"
    for number, path in enumerate((a, b)):
        path.write_text(TEXT.format(number=number, start=1))
    session = _session(SetList([a, b]), [])
    session.reporter.events = EventLog(str(events))

    def is_ready() -> bool:
        saved = session._next_text()
        return saved is not None and session._worker._remembered.find(saved) is not None

    screen = Player([
        (is_ready, lambda: b.write_text(TEXT.format(number=2, start=1)) and None),
        (is_ready, lambda: session.command("next")),
        (lambda: session._compute[2] == 2, lambda: session.command("leave")),
    ])  # fmt: skip
    session.begin()
    session.run(screen)
    session.reporter.events.close()
    assert session.stopping == "closed"
    found = [json.loads(line) for line in events.read_text().splitlines()]
    (swap,) = [event for event in found if event["event"] == "swap"]
    assert (swap["cached"], swap["recompiled"]) == (["compute/compute"], [])


@pytest.mark.long
def test_a_next_patch_with_errors_is_said_only_when_it_is_asked_for(tmp_path: Path) -> None:
    a, b = tmp_path / "a.weft", tmp_path / "b.weft"
    a.write_text(TEXT.format(number=0, start=1))
    b.write_text("display(sin(me@x)\n")
    told: list[Diagnostic] = []
    session = _session(SetList([a, b]), told)
    screen = Player([
        (lambda: bool(session._worker._refused_ahead), lambda: told.append(Diagnostic("warning", "so-far", "none"))),
        (lambda: bool(session._compute), lambda: session.command("next")),
        (lambda: len(told) > 1, lambda: session.command("leave")),
    ])  # fmt: skip
    session.begin()
    session.run(screen)
    assert [problem.code for problem in told] == ["so-far", "unclosed-bracket"]
