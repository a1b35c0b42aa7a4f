"""Numbers of the text that plays are turned without a save, and written when it is asked for; a save wins over them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from tests.runtime.hands.test_osc import Other, computes
from tests.runtime.live.test_set_list import Player
from tests.support.performance import Performance
from tests.support.sound import private_sound
from weft.errors import Diagnostic
from weft.runtime.compiling.compiler import Compiler, Saved
from weft.runtime.compiling.worker import LoadResult
from weft.runtime.hands.inputs import Inputs
from weft.runtime.live.events import EventLog, Reporter
from weft.runtime.live.saves import Saves, without_overtaken
from weft.runtime.live.session import Limits, Session
from weft.runtime.live.turned import NotTurnedError, TurnedNumbers, last_edited
from weft.runtime.program.files import SetList
from weft.runtime.program.program import LoadedProgram, Setup
from weft.runtime.sound.player import Sound
from weft.runtime.sound.renderer import SoundOptions
from weft.syntax.number_places import Place, numbers_of

TEXT = b"a = 0.5\nb = a * 20 // 3 of them\ncompute(a, b, 7)\n"


def turned(text: bytes, *arguments: str) -> TurnedNumbers:
    numbers = TurnedNumbers()
    for argument in arguments:
        numbers.turn(text, argument)
    return numbers


def test_numbers_are_where_they_are_in_the_text() -> None:
    assert numbers_of(TEXT) == {(1, 5): (4, 7), (2, 9): (16, 18), (3, 15): (46, 47)}
    assert numbers_of(b"\xff\xfe") == {}
    assert numbers_of("é = 2\n".encode()) == {(1, 5): (4, 5)}


@pytest.mark.parametrize(
    ("value", "shown"),
    [("0.25", "0.25"), ("3", "3"), ("-0.5", "(-0.5)"), ("1e-9", "1e-09"), ("1e9", "1000000000.0"), ("0", "0"),
     ("0.123456789", "0.1234568"), ("-0.0", "(-0)")],
)  # fmt: skip
def test_a_number_is_written_as_a_performer_would(value: str, shown: str) -> None:
    numbers = turned(TEXT, f"1 5 {value}")
    assert numbers.take() == TEXT.replace(b"0.5", shown.encode())
    assert numbers.take() is None, "nothing was turned since then"


def test_places_are_those_of_the_saved_text_however_long_numbers_become() -> None:
    text = b"compute(1, 2, 3)\n"
    assert turned(text, "1 9 100.25", "1 15 4", "1 12 -5").take() == b"compute(100.25, (-5), 4)\n"
    assert turned(text, "1 9 100.25", "1 9 7").take() == b"compute(7, 2, 3)\n"


@pytest.mark.parametrize(
    ("argument", "words"),
    [("1 5 nan", "cannot be nan"), ("1 5 inf", "cannot be inf"), ("1 6 2", "no number begins in line 1, column 6"),
     ("9 1 2", "no number"), ("1 5", "by its line"), ("", "by its line"), ("a b c", "by its line"),
     ("1 5 2 3", "by its line"), ("1e999 5 2", "no number"), ("nan 5 2", "no number")],
)  # fmt: skip
def test_what_is_no_number_is_refused(argument: str, words: str) -> None:
    numbers = turned(TEXT, "2 9 4")
    with pytest.raises(NotTurnedError, match=words):
        numbers.turn(TEXT, argument)
    assert numbers.take() == TEXT.replace(b"20", b"4"), "the others stay"


def test_a_refused_number_goes_back_to_the_last_good_one() -> None:
    numbers = turned(TEXT, "1 5 0.6")
    numbers.accept()
    numbers.turn(TEXT, "1 5 0.7")
    numbers.refuse()
    assert numbers.written() == TEXT.replace(b"0.5", b"0.6")


def test_a_save_wins() -> None:
    numbers = turned(TEXT, "1 5 0.6")
    numbers.follow(TEXT.replace(b"20", b"30"))
    assert (numbers.values, numbers.take()) == ({}, None)


def test_an_editor_turns_numbers_of_the_text_that_was_accepted_last_alone() -> None:
    numbers, submitted = TurnedNumbers(), list[bytes]()
    then, now = Saved(TEXT, 0.0), Saved(TEXT.replace(b"20", b"30"), 1.0)
    saves = cast(Saves, SimpleNamespace(accepted=now, turn=submitted.append, is_playing=lambda text: True))
    numbers.turn_now(saves, now, {(1, 5): 0.6, (3, 15): 8})
    numbers.turn_now(saves, now, {(1, 5): 0.6})
    numbers.turn_now(saves, then, {(1, 5): 0.7})
    assert submitted == [now.data.replace(b"0.5", b"0.6").replace(b"7", b"8")]
    assert (numbers.text, numbers.take()) == (now.data, None)


def test_the_same_text_in_another_size_keeps_them() -> None:
    numbers = turned(TEXT, "1 5 0.6")
    numbers.take()
    numbers.follow(TEXT)
    assert numbers.take() == TEXT.replace(b"0.5", b"0.6")


EDITED = {
    "a number": ("a = 0.5\nb = a * 20 + 3\n", "a = 0.5\nb = a * 21 + 3\n", [(2, 9), (2, 14)]),
    "the first of two": ("a = 0.5; b = 3\n", "a = 0.6; b = 3\n", [(1, 5)]),
    "the second of two": ("a = 0.5; b = 3\n", "a = 0.5; b = 4\n", [(1, 14)]),
    "a statement that comes": ("a = 1\n", "a = 1\nb = 2 + 3\n", [(2, 5), (2, 9)]),
    "a line within a spindle": (
        "spindle f(x) :: v {\n  a = x * 2\n  v = a + 3\n}\n", "spindle f(x) :: v {\n  a = x * 2\n  v = a + 4\n}\n",
        [(3, 11)],
    ),
    "a statement of several lines": ("a = (1 +\n  2)\nb = 3\n", "a = (1 +\n  5)\nb = 3\n", [(1, 6), (2, 3)]),
    "a statement without numbers": ("a = me@x\nb = 2\n", "a = me@y\nb = 2\n", []),
    "nothing yet": ("a = me@x\nb = 2\n", "a = me@x\nb = 2\n", [(2, 5)]),
    "all of it": ("", "a = 2\n", [(1, 5)]),
}  # fmt: skip


@pytest.mark.parametrize(("before", "text", "places"), EDITED.values(), ids=EDITED.keys())
def test_the_numbers_of_the_statement_that_was_edited_last(before: str, text: str, places: list[Place]) -> None:
    assert last_edited(text.encode(), before.encode()) == places


def test_sliders_turn_numbers() -> None:
    numbers = TurnedNumbers()
    for text in (b"a = 1\n", b"a = 1\nb = a * 0.25 + 0\n"):
        numbers.follow(text)
    numbers.offer("p.weft")
    assert [(s.name, s.start, s.low, s.high, s.label) for s in numbers.sliders.specs] == [
        ("2:9", (0.25,), 0, 0.5, "b = a * 0.25"), ("2:16", (0.0,), -1, 1, "* 0.25 + 0"),
    ]  # fmt: skip
    assert numbers.take() is None
    numbers.sliders.set("2:9@v", 0.125)
    numbers.sliders.set("2:16@v", -1)
    assert numbers.take() == b"a = 1\nb = a * 0.125 + (-1)\n"
    numbers.sliders.reset("2:9@v")
    assert numbers.take() == b"a = 1\nb = a * 0.25 + (-1)\n"
    shown = numbers.sliders
    numbers.follow(b"a = me@x\n")
    assert numbers.sliders is not shown
    with pytest.raises(NotTurnedError, match="has no numbers"):
        numbers.offer("p.weft")


@pytest.fixture
def patch(tmp_path: Path) -> Path:
    path = tmp_path / "patch.weft"
    path.write_bytes(TEXT)
    return path


@pytest.mark.long
def test_another_program_turns_numbers_of_the_text(patch: Path) -> None:
    with Performance(patch, "--headless", "--no-audio", "--osc", "0") as performance:
        other = Other(int(performance.wait_for("started")["osc"].rpartition(":")[2]))
        performance.wait_for("compute", when=computes(0.5, 10, 7))
        other.send("/weft/number", 1, 5, 0.25)
        performance.wait_for("compute", when=computes(0.25, 5, 7))
        other.send("/weft/number", 3, 15, -2)
        performance.wait_for("compute", when=computes(0.25, 5, -2))
        assert patch.read_bytes() == TEXT, "nothing is written"
        other.send("/weft/number", 1, 99, 3)
        performance.wait_for_words("weft: no number begins in line 1, column 99")
        other.send("/weft/number", 1, 5, math.inf)
        performance.wait_for_words("weft: a number cannot be inf")
        performance.save(TEXT.replace(b"20", b"2"))
        performance.wait_for("compute", when=computes(0.5, 1, 7))
        assert "updated in" in performance.stderr
        assert performance.count("error") == 0
        other.close()


def test_a_number_that_the_text_cannot_have_is_told_and_stays(patch: Path) -> None:
    text = b"spindle f(x) :: v { v = x\nfor i in (1 to 3) { v = v + i } }\ncompute(f(0), delay(1, 2, 4))\n"
    patch.write_bytes(text)
    with Performance(patch, "--headless", "--no-audio", "--osc", "0") as performance:
        other = Other(int(performance.wait_for("started")["osc"].rpartition(":")[2]))
        performance.wait_for("compute", when=computes(6))
        other.send("/weft/number", 3, 27, -1)
        performance.wait_for_words("weft: the number stays as it is: ")
        other.send("/weft/number", 2, 16, 4)
        performance.wait_for("compute", when=computes(10))
        assert performance.count("error") == 0
        other.close()


def test_what_was_turned_and_set_is_written_into_the_text(patch: Path) -> None:
    text = b"#slider level<v> = 0, 9, 1\ncompute(level, 0.5, prev(0.25))\n"
    patch.write_bytes(text)
    events = EventLog(patch.with_name("events"))
    setup, inputs = Setup(str(patch)), Inputs()
    sound = Sound(setup, SoundOptions(is_silent=True))
    session = Session(SetList([patch]), Compiler.of(setup), Reporter(events), inputs, sound, limits=Limits(60.0))

    def turn() -> None:
        inputs.parameters.set("level@v", 4)
        session.command("number", "2 16 -0.75")

    player = Player([
        (lambda: bool(session._compute), turn),
        (lambda: session._compute[1] == -0.75, lambda: session.command("write")),
        (lambda: patch.read_bytes() != text, lambda: session.command("number", "2 30 3")),
        (lambda: len(session._compute) == 3 and session._compute[2] == 3, lambda: session.command("write")),
        (lambda: b"prev(3)" in patch.read_bytes(), lambda: session.command("leave")),
    ])  # fmt: skip
    session.begin()
    session.run(player)
    assert session.stopping == "closed"
    assert patch.read_bytes() == b"#slider level<v> = 0, 9, 4\ncompute(level, (-0.75), prev(3))\n"
    events.close()
    found = [json.loads(line) for line in patch.with_name("events").read_text().splitlines()]
    written = [each.get("numbers", each["values"]) for each in found if each["event"] == "written"]
    first, last = ({"line": 2, "column": column, "value": value} for column, value in ((16, -0.75), (30, 3)))
    assert written == [[first], {"level@v": 4}, [last]]
    assert {"error", "saved"}.isdisjoint(each["event"] for each in found), "it is no save"


def test_numbers_of_what_plays_are_turned_when_another_patch_cannot_play(tmp_path: Path) -> None:
    first, second = tmp_path / "a.weft", tmp_path / "b.weft"
    first.write_text("compute(0.5)\n")
    second.write_text("compute(\n")
    told: list[Diagnostic] = []
    setup, inputs = Setup(str(first)), Inputs()
    sound, reporter = Sound(setup, SoundOptions(is_silent=True)), Reporter(EventLog(None), told.extend)
    session = Session(SetList([first, second]), Compiler.of(setup), reporter, inputs, sound, limits=Limits(60.0))
    player = Player([
        (lambda: bool(session._compute), lambda: session.command("next")),
        (lambda: bool(told), lambda: session.command("number", "1 9 4")),
        (lambda: session._compute == [4], lambda: session.command("leave")),
    ])  # fmt: skip
    session.begin()
    session.run(player)
    assert (session.stopping, session.title) == ("closed", "a.weft · weft")


@pytest.mark.parametrize("where", ["in the text that waits", "on the panel"])
def test_numbers_that_are_turned_while_a_save_waits_do_not_take_its_place(patch: Path, where: str) -> None:
    text = "compute({}, 0.5, me@beats)\nme<bpm> = 60\n#quantize 2\n"
    patch.write_text(text.format(1))
    setup, beats = Setup(str(patch)), list[float]()
    sound, reporter = Sound(setup, SoundOptions(is_silent=True)), Reporter(EventLog(None))
    session = Session(SetList([patch]), Compiler.of(setup), reporter, Inputs(), sound, limits=Limits(60.0))

    def turn() -> None:
        if where == "on the panel":
            session._turned.sliders.set("1:12@v", 0.75)
        else:
            session.command("number", "1 12 0.75")

    def save() -> None:
        beats.append(session._compute[2])
        patch.write_text(text.format(2))

    def note() -> None:
        beats.append(session._compute[2])
        if where == "on the panel":
            session.command("leave")

    player = Player([
        # Long before the beat for which the save waits.
        (lambda: session._compute[2:] > [0] and session._compute[2] % 2 < 0.5, lambda: session.command("numbers")),
        (lambda: True, save),
        (lambda: session._saves.accepted.data == patch.read_bytes(), turn),
        (lambda: session._compute[0] == 2, note),
        (lambda: session._compute[1] == 0.75, lambda: session.command("leave")),
    ])  # fmt: skip
    session.begin()
    session.run(player)
    assert session.stopping == "closed"
    assert beats[1] // 2 > beats[0] // 2


@pytest.mark.long
def test_numbers_are_those_of_what_plays_after_a_save_whose_sound_is_refused(patch: Path, tmp_path: Path) -> None:
    text = "compute({}, 0.5)\naudio(0.25)\n"
    patch.write_text(text.format(1))
    told: list[Diagnostic] = []
    setup = Setup(str(patch))
    sound, reporter = Sound(setup, SoundOptions()), Reporter(EventLog(None), told.extend)
    session = Session(SetList([patch]), Compiler.of(setup), reporter, Inputs(), sound, limits=Limits(60.0))

    def save() -> None:
        patch.write_text(f"{text.format(2)}me<rate> = 500000\n")

    player = Player([
        (lambda: sound.figures is not None and bool(session._compute), save),
        (lambda: bool(told), lambda: session.command("number", "1 12 0.75")),
        (lambda: session._compute[1] == 0.75, lambda: session.command("leave")),
    ])  # fmt: skip
    with private_sound(tmp_path / "sound") as server:
        server.start()
        session.begin()
        session.run(player)
    assert (session.stopping, session._compute) == ("closed", [1, 0.75])


def test_the_panel_shows_the_numbers_that_were_edited_last(patch: Path) -> None:
    patch.write_text("a = 0.5\nb = 2\ncompute(a, b)\n")
    setup, inputs = Setup(str(patch)), Inputs()
    sound, reporter = Sound(setup, SoundOptions(is_silent=True)), Reporter(EventLog(None))
    session = Session(SetList([patch]), Compiler.of(setup), reporter, inputs, sound, limits=Limits(60.0))
    shown: list[list[str]] = []

    def note() -> None:
        view = player.panel.view(80, 24)
        shown.append([] if view is None else [control.spec.name for control in view.layout.shown])

    def turn() -> None:
        note()
        session._turned.sliders.set("2:5@v", 1.5)

    def mend() -> None:
        note()
        patch.write_text("a = 0.25\nb = 2\ncompute(a, b)\n")

    def leave() -> None:
        note()
        session.command("numbers")
        note()
        session.command("panel")
        note()
        session.command("leave")

    player = Player([
        (lambda: bool(session._compute), lambda: patch.write_text("a = 0.5\nb = 3\ncompute(a, b)\n") and None),
        (lambda: session._compute == [0.5, 3], lambda: session.command("numbers")),
        (lambda: True, turn),
        (lambda: session._compute == [0.5, 1.5], mend),
        (lambda: session._compute == [0.25, 2], leave),
    ])  # fmt: skip
    session.begin()
    session.run(player)
    assert session.stopping == "closed"
    assert shown == [["2:5"], ["2:5"], ["1:5"], [], []]


GLIDING = "#fade 0.4 numbers\n"


def values_over(path: Path, *saves: tuple[str, Callable[[float], bool]], events: EventLog | None = None) -> list[float]:
    """What a patch computes first, frame by frame, where it changes: a text is saved, until a value is reached, and
    then the next one."""
    path.write_text(saves[0][0])
    told: list[Diagnostic] = []
    setup, inputs, found = Setup(str(path)), Inputs(), list[float]()
    sound, reporter = Sound(setup, SoundOptions(is_silent=True)), Reporter(events or EventLog(None), told.extend)
    session = Session(SetList([path]), Compiler.of(setup), reporter, inputs, sound, limits=Limits(60.0))

    def reached(enough: Callable[[float], bool]) -> bool:
        found.extend(session._compute[:1] if found[-1:] != session._compute[:1] else ())
        return bool(found) and enough(found[-1])

    def save(text: str | None) -> None:
        session.command("leave") if text is None else path.write_text(text)

    texts = [text for text, _ in saves[1:]] + [None]
    player = Player([(partial(reached, enough), partial(save, text))
                     for (_, enough), text in zip(saves, texts, strict=True)])  # fmt: skip
    session.begin()
    session.run(player)
    assert (session.stopping, told) == ("closed", [])
    return found


def is_(value: float) -> Callable[[float], bool]:
    return lambda found: found == value


def test_numbers_glide_to_what_was_saved(patch: Path) -> None:
    texts = [GLIDING + "compute(1 * 5)\n", GLIDING + "compute(3 * 5) // faster\n"]
    events = EventLog(patch.with_name("events"))
    values = values_over(patch, (texts[0], is_(5)), (texts[1], is_(15)), events=events)
    assert len(values) > 3
    assert values == sorted(values)
    found = [json.loads(line) for line in patch.with_name("events").read_text().splitlines()]
    assert [each["hash"] for each in found if each["event"] == "swap"][-1] == Saved(texts[1].encode(), 0.0).hash


def test_all_else_is_as_without_a_glide(patch: Path) -> None:
    texts = ["compute(9 * 1)", "compute(9 + 1)", "compute(9 + 2)", "compute(9 + 3)"]
    fades = [GLIDING, GLIDING, "", "#fade 0 numbers\n"]
    texts = [fade + text for fade, text in zip(fades, texts, strict=True)]
    assert values_over(patch, *zip(texts, map(is_, (9, 10, 11, 12)), strict=True)) == [9, 10, 11, 12]


def test_a_save_on_the_way_glides_from_where_the_numbers_are(patch: Path) -> None:
    texts = [GLIDING + f"compute(1 + {number})" for number in (0, 1000, 0)]
    values = values_over(patch, (texts[0], is_(1)), (texts[1], lambda value: value > 100), (texts[2], is_(1)))
    top = values.index(max(values))
    assert 100 < values[top] < 1001
    assert values[top:] == sorted(values[top:], reverse=True)
    assert len(values[top:]) > 3


def test_a_number_that_has_no_meaning_on_its_way_arrives_at_once(patch: Path) -> None:
    text = GLIDING + '#menu wave<v> = {}, "sine", "saw", "square"\ncompute(wave)\n'
    assert values_over(patch, (text.format(0), is_(0)), (text.format(2), is_(2))) == [0, 2]


def test_what_was_turned_is_left_out_once_a_save_has_overtaken_it() -> None:
    def outcome(text: bytes, turned_from: bytes = b"", is_good: bool = True) -> LoadResult:
        base = Saved(turned_from, 0.0).hash if turned_from else ""
        return LoadResult(Saved(text, 0.0, turned_from=base), loaded if is_good else None, ())

    loaded = cast(LoadedProgram, object())
    results = [outcome(b"a1", b"a"), outcome(b"b"), outcome(b"a2", b"a"), outcome(b"b1", b"b"),
               outcome(b"c", is_good=False), outcome(b"b2", b"b")]  # fmt: skip
    left = without_overtaken(results, Saved(b"a", 0.0))
    assert [each.saved.data for each in left] == [b"a1", b"b", b"b1", b"c", b"b2"]
