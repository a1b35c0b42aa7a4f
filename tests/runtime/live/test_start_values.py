"""Values of parameters in the text: written shortly, in their places, and with all else as it was."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from tests.support.parameters import bank_of, specs_of
from weft.errors import Source
from weft.runtime.hands.parameters import ParameterBank
from weft.runtime.live.start_values import (
    NotWrittenError, rewritten, short_number, texts_of, with_starts, written_aside
)
from weft.runtime.program.files import FileState

TEXT = (
    "// #slider speed<v> = 0, 2, 0.5\r\n"
    '#slider speed<v> = 0, 2, 0.50 "0.5 \u00e9" raw // 0.5\r\n'
    "\t#slider  bend<v>=-20,20,-.5;\n"
    "#toggle on<v> = 0\r"
    "\n#xy spot<x, y> = 0.25, /* 0.75 */ 0.75 \"light\"\n"
    '#color tint<r, g, b> = "#F80" "#ff8800"\n'
    "speeds<v> = 0.5 * speed   \n\n\n"
)
NAMES = ["speed@v", "bend@v", "on@v", "spot@x", "spot@y", "tint@r", "tint@g", "tint@b"]


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.floats(0, 1))
def test_a_number_is_exact_enough_and_in_its_range(low: float, span: float, share: float) -> None:
    value = min(low + share * span, low + span)
    text = short_number(value, low, low + span)
    assert "e" not in text
    assert low <= float(text) <= low + span
    assert abs(float(text) - value) <= span / 1000


def test_a_number_is_short() -> None:
    found = [short_number(value, low, high) for value, low, high in (
        (0.45678, 0, 1), (2 / 3, 0, 2), (-0.0001, -1, 1), (440.123, 20, 20000), (1, 0, 1), (0.00123456, 0, 0.01)
    )]  # fmt: skip
    assert found == ["0.457", "0.667", "0", "440", "1", "0.00123"]


@given(st.dictionaries(st.sampled_from(NAMES), st.floats(0, 1)))
def test_the_text_starts_with_the_values_and_is_otherwise_the_same(shares: dict[str, float]) -> None:
    bank = bank_of(TEXT)
    ranges = {name: (spec.low, spec.high) for spec in bank.specs for name in spec.inputs}
    for name, share in shares.items():
        low, high = ranges[name]
        bank.set(name, low + share * (high - low))
    found = with_starts(Source("patch.weft", TEXT), bank.specs, bank.values)
    after = specs_of(found.text)
    starts = {name: start for spec in after for name, start in zip(spec.inputs, spec.start, strict=True)}
    for name, (low, high) in ranges.items():
        exact = 0.5 / 255 if name.startswith("tint") else (high - low) / 1000
        assert abs(starts[name] - bank.value(name)) <= exact + 1e-12
        assert found.starts[name] == starts[name]
    # The numbers apart, which stand at the same places in the same order, both texts are equal.
    pieces = []
    for text in (TEXT, found.text):
        spans = [(place.start, place.end) for place in places_in(text)]
        ends = [0, *(end for _, end in spans)]
        begins = [*(start for start, _ in spans), len(text)]
        pieces.append([text[end:start] for end, start in zip(ends, begins, strict=True)])
    assert pieces[0] == pieces[1]


def places_in(text: str):  # type: ignore[no-untyped-def]
    from weft.errors import Report
    from weft.syntax.ast import Parameter
    from weft.syntax.parser import parse

    statements = parse(Source("patch.weft", text), Report()).statements
    return [place for each in statements if isinstance(each, Parameter) for place in each.places]


def test_a_value_that_is_as_in_the_text_keeps_its_spelling() -> None:
    bank = bank_of(TEXT)
    bank.set("bend@v", 3)
    found = with_starts(Source("patch.weft", TEXT), bank.specs, bank.values)
    assert found.text == TEXT.replace("20,-.5", "20,3")


def files(folder: Path) -> dict[Path, bytes]:
    """A patch and what it includes, with the name that the compiler gives the latter."""
    main, lib = folder / "a.weft", folder / "lib.weft"
    main.write_bytes(b'#include "lib.weft"\r\n#slider speed<v> = 0, 2, 0.5\r\n')
    lib.write_bytes(b"#toggle on<v> = 0 // \xc3\xa9\n")
    return {main: main.read_bytes(), lib: lib.read_bytes()}


def bank_for(playing: dict[Path, bytes]) -> ParameterBank:
    bank = ParameterBank()
    bank.adopt([spec for path, data in playing.items() for spec in specs_of(data.decode(), str(path))])
    return bank


def test_each_value_goes_into_the_file_that_has_it(tmp_path: Path) -> None:
    playing = files(tmp_path)
    main, lib = playing
    bank = bank_for(playing)
    bank.set("on@v", 1)
    texts, starts = rewritten(playing, bank.specs, bank.values)
    assert texts == {lib: playing[lib].replace(b"= 0", b"= 1")}
    assert starts == {"on@v": 1}
    bank.set("speed@v", 1.23456)
    texts, starts = rewritten(playing, bank.specs, bank.values)
    assert texts[main] == playing[main].replace(b"0.5", b"1.235")
    assert starts == {"on@v": 1, "speed@v": 1.235}


def test_a_text_that_does_not_play_is_left_alone(tmp_path: Path) -> None:
    playing = files(tmp_path)
    main, lib = playing
    bank = bank_for(playing)
    with pytest.raises(NotWrittenError, match="as in the text"):
        rewritten(playing, bank.specs, bank.values)
    bank.set("speed@v", 1)
    lib.write_bytes(b"#toggle on<v> = 0")
    with pytest.raises(NotWrittenError, match=r"lib\.weft has changed"):
        rewritten(playing, bank.specs, bank.values)
    lib.unlink()
    with pytest.raises(NotWrittenError, match=r"lib\.weft has changed"):
        rewritten(playing, bank.specs, bank.values)
    assert main.read_bytes() == playing[main]


def test_a_new_version_lies_beside_the_file_that_a_link_names(tmp_path: Path) -> None:
    target, link = tmp_path / "there" / "a.weft", tmp_path / "link.weft"
    target.parent.mkdir()
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    with written_aside({link: b"new"}) as asides:
        ((aside, named),) = asides.items()
        assert (named, aside.parent) == (target, target.parent)
        os.replace(aside, named)
    assert link.is_symlink()
    assert link.read_text() == "new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    with written_aside({link: b"never"}):
        pass
    assert [each.name for each in target.parent.iterdir()] == ["a.weft"]
    with pytest.raises(NotWrittenError, match="cannot be written"), written_aside({tmp_path / "no" / "b.weft": b""}):
        pass


def test_pictures_are_no_texts(tmp_path: Path) -> None:
    found = {tmp_path / "a.png": FileState("media"), tmp_path / "b.weft": FileState("text", b"x")}
    assert texts_of(tmp_path / "a.weft", b"y", found) == {tmp_path / "a.weft": b"y", tmp_path / "b.weft": b"x"}


def test_after_the_text_is_rewritten_a_reset_goes_to_its_new_start() -> None:
    bank = bank_of(TEXT)
    bank.set("bend@v", 3.00001)
    bank.rewrite({"bend@v": 3.0})
    assert bank.values["bend@v"] == 3, "the program itself still starts at the old value"
    assert bank.to_json() == {}
    bank.set("bend@v", 7)
    bank.reset("bend@v")
    assert bank.values["bend@v"] == 3
    assert bank.specs[1].start == (3,)
    bank.adopt(specs_of(TEXT.replace("20,-.5", "20,3")))
    bank.reset("bend@v")
    assert (bank.value("bend@v"), dict(bank.values)) == (3, {})
