"""Parameters while a patch plays: what they are set to, and the file that keeps it."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.performance import Performance
from weft.errors import Report, Source
from weft.runtime.hands.parameters import ParameterBank, ParameterSpec, ValuesFile
from weft.runtime.live.start_values import with_starts
from weft.syntax.ast import Parameter
from weft.syntax.parser import parse

TEXT = """\
#slider speed<v> = 0, 2, 0.5 "how fast"
#toggle on<v> = 0
#xy spot<x, y> = 0.25, 0.75
"""


def specs(text: str) -> list[ParameterSpec]:
    statements = parse(Source("patch.weft", text), Report()).statements
    return [ParameterSpec.of(each) for each in statements if isinstance(each, Parameter)]


def bank(text: str = TEXT, file: object = "") -> ParameterBank:
    made = ParameterBank()
    made.adopt(specs(text), str(file))
    return made


def test_a_parameter_knows_its_place_and_its_inputs() -> None:
    speed, on, spot = specs(TEXT)
    assert (speed.label, on.label) == ("how fast", "on")
    assert spot.inputs == ("spot@x", "spot@y")
    assert [each.line for each in (speed, on, spot)] == [1, 2, 3]


def test_values_stay_in_their_range_and_a_toggle_is_0_or_1() -> None:
    made = bank()
    assert [made.set("speed@v", value) for value in (-1, 1.5, 7, float("nan"))] == [0, 1.5, 2, 0]
    assert [made.set("on@v", value) for value in (0.4, 0.5, 3)] == [0, 1, 1]
    assert made.value("spot@y") == 0.75
    with pytest.raises(KeyError):
        made.set("nothing@v", 1)


def test_only_what_was_set_is_a_value_and_a_reset_forgets_it() -> None:
    made = bank()
    made.set("speed@v", 1)
    assert made.values == {"speed@v": 1}
    before = made.values
    made.reset("speed@v")
    assert (made.values, made.value("speed@v")) == ({}, 0.5)
    assert before == {"speed@v": 1}, "a set of values never changes"


def test_a_value_survives_a_save_and_is_clamped_to_its_new_range() -> None:
    made = bank()
    made.set("speed@v", 1.5)
    assert made.adopt(specs("#slider speed<v> = 0, 2, 0.5")) == ()
    (note,) = made.adopt(specs("#slider speed<v> = 0, 1, 0.5"))
    assert note == "speed was 1.5, and is 1 now: it runs from 0 to 1"
    assert made.value("speed@v") == 1


def test_a_value_survives_a_save_that_leaves_its_parameter_out() -> None:
    made = bank()
    made.set("speed@v", 1.5)
    made.adopt([])
    made.adopt(specs(TEXT))
    assert made.value("speed@v") == 1.5


def test_a_new_start_value_in_the_text_counts() -> None:
    made = bank()
    made.set("speed@v", 1.5)
    made.adopt(specs("#slider speed<v> = 0, 2, 0.75"))
    assert (made.value("speed@v"), made.values) == (0.75, {})


# --- the file ---------------------------------------------------------------------------------------------------------


def test_the_file_keeps_what_was_set(tmp_path: Path) -> None:
    made = bank(file=tmp_path / "patch.weft")
    file = ValuesFile(tmp_path / "patch.weft", made)
    made.set("spot@x", 0.125)
    assert file.close() is None
    assert [path.name for path in tmp_path.iterdir()] == ["patch.weft.values"], "nothing is left beside it"
    again = bank(file=tmp_path / "patch.weft")
    assert ValuesFile(tmp_path / "patch.weft", again).read() is None
    assert again.values == {"spot@x": 0.125}


def test_the_file_is_not_written_while_nothing_has_changed(tmp_path: Path) -> None:
    made = bank(file=tmp_path / "patch.weft")
    file = ValuesFile(tmp_path / "patch.weft", made)
    made.set("on@v", 1)
    made.reset("on@v")
    file.close()
    assert not file.path.exists()
    made.set("on@v", 1)
    file.close()
    written = _writing(file.path)
    again = bank(file=tmp_path / "patch.weft")
    same = ValuesFile(tmp_path / "patch.weft", again)
    same.read()
    again.adopt(specs(TEXT), str(tmp_path / "patch.weft"))
    same.close()
    assert _writing(file.path) == written


def _writing(path: Path) -> tuple[int, int]:
    """What changes whenever a file is written or replaced, and not when it is read."""
    state = path.stat()
    return state.st_ino, state.st_mtime_ns


@pytest.mark.parametrize("damaged", [
    b"", b"{", b"[]", b'{"parameters": 3}', b'{"parameters": {"a@v": 3}}', b"\xff\xfe", b"[" * 100_000,
    b'{"parameters": {"a@v": {"value": NaN, "start": 0}}}', b'{"parameters": {"a@v": {"value": "1", "start": 0}}}',
    b"9" * (2 << 20),
], ids=lambda data: repr(data[:40]))  # fmt: skip
def test_a_damaged_file_is_set_aside(tmp_path: Path, damaged: bytes) -> None:
    (tmp_path / "patch.weft.values").write_bytes(damaged)
    made = bank()
    note = ValuesFile(tmp_path / "patch.weft", made).read()
    assert note == "patch.weft.values is damaged, and is now patch.weft.values.damaged; the values in the text count"
    assert (tmp_path / "patch.weft.values.damaged").read_bytes() == damaged
    assert made.values == {}


def test_a_link_that_leads_out_of_the_folder_is_neither_read_nor_written_through(tmp_path: Path) -> None:
    """A folder from someone else may contain it."""
    outside, folder = tmp_path / "outside.json", tmp_path / "folder"
    text = '{"parameters": {"on@v": {"value": 1, "start": 0, "low": 0, "high": 1}}}'
    outside.write_text(text)
    folder.mkdir()
    (folder / "patch.weft.values").symlink_to(outside)
    made = bank(file=folder / "patch.weft")
    file = ValuesFile(folder / "patch.weft", made)
    assert str(file.read()).startswith("patch.weft.values is not read: it is outside")
    assert made.values == {}
    made.set("on@v", 1)
    assert file.close() is None
    assert outside.read_text() == text
    assert not file.path.is_symlink()


def test_a_file_that_cannot_be_written_is_told_once(tmp_path: Path) -> None:
    made = bank(file=tmp_path / "gone" / "patch.weft")
    file = ValuesFile(tmp_path / "gone" / "patch.weft", made)
    made.set("on@v", 1)
    assert file.close() == "patch.weft.values cannot be written (No such file or directory)"
    assert file.close() is None
    # Once it can be written again, it is.
    file.path.parent.mkdir()
    assert file.close() is None
    assert json.loads(file.path.read_text())["parameters"]["on@v"]["value"] == 1


def _computed(performance: Performance) -> list[float]:
    return next(event["values"] for event in performance.events if event["event"] == "compute")


def test_a_performance_begins_with_what_was_kept(tmp_path: Path) -> None:
    """And the text counts where its start value is another one now."""
    patch = tmp_path / "patch.weft"
    patch.write_text(TEXT + "me<width> = 8\nme<height> = 8\ncompute(speed, on, spot@y)\n")
    kept = {"speed@v": {"value": 1.25, "start": 0.5}, "spot@y": {"value": 1, "start": 0}}
    values = tmp_path / "patch.weft.values"
    values.write_text(json.dumps({"parameters": kept}))
    with Performance(patch, "--headless", "--frames", "2") as performance:
        assert performance.ended() == 0
        (found,) = [event["values"] for event in performance.events if event["event"] == "parameters"]
        assert found == {"speed@v": 1.25}
        assert _computed(performance) == [1.25, 0, 0.75]
    assert json.loads(values.read_text()) == {"parameters": {"speed@v": kept["speed@v"]}}
    with Performance(patch, "--headless", "--frames", "2", "--no-values") as performance:
        assert performance.ended() == 0
        assert _computed(performance) == [0.5, 0, 0.75]


MENU = ParameterSpec("menu", "wave", ("v",), (1.0,), 0, 2, "wave", True, "p.weft", 1, ("sine", "saw", "square"))
BUTTON = ParameterSpec("button", "hit", ("v",), (0.0,), 0, 1, "hit", True, "p.weft", 2)


def test_a_menu_is_one_of_its_numbers() -> None:
    bank = ParameterBank()
    bank.adopt([MENU])
    assert [bank.set("wave@v", value) for value in (0.4, 0.6, 7, math.nan)] == [0, 1, 2, 0]
    bank.set("wave@v", 2)
    bank.adopt([replace(MENU, high=1.0, options=("sine", "saw"))])
    assert bank.value("wave@v") == 1


def test_a_press_that_is_shorter_than_a_frame_is_seen_and_all_are_counted() -> None:
    bank = ParameterBank()
    bank.adopt([BUTTON])
    for value in (1, 0, 1, 1, 0):
        bank.set("hit@v", value)
    assert bank.frame() == {"hit@v": 1, "hit@v@count": 3}
    assert bank.frame() == {"hit@v": 0, "hit@v@count": 3}
    bank.set("hit@v", 1)
    assert bank.frame()["hit@v"] == bank.frame()["hit@v"] == 1, "it is held"
    assert bank.to_json() == {}, "no file keeps it"
    bank.reset("hit@v")
    assert bank.frame() == {"hit@v": 0, "hit@v@count": 4}
    bank.set("hit@v", 1)
    bank.adopt([MENU])
    assert "hit@v" not in bank.frame()


def test_menus_are_written_into_the_text_and_buttons_are_not() -> None:
    text = '#menu wave<v> = 1, "sine", "saw", "square" "wave"\n#button hit<v> "hit"\n'
    made = with_starts(Source("p.weft", text), [MENU, BUTTON], {"wave@v": 2.0, "hit@v": 1.0})
    assert made.text == text.replace("= 1,", "= 2,")
    assert made.starts == {"wave@v": 2}
