"""What a patch reads of a gamepad. There is none where these tests run, so what GLFW reports is written down."""

from __future__ import annotations

from itertools import pairwise

import pytest

from weft.contexts import ContextTable
from weft.errors import Source, WeftError
from weft.keys import PAD_AXES, PAD_BUTTONS
from weft.names import SentName, sent_of
from weft.runtime.compiling.stages import Request, build
from weft.runtime.screens.display import Display, Gamepads, pad_values
from weft.sources import SOURCES

AT_REST = [0.0, 0.0, 0.0, 0.0, -1.0, -1.0]


def test_at_rest_everything_is_0() -> None:
    values = pad_values([0.03, -0.05, 0.0, 0.079, -1.0, -1.0], [0] * len(PAD_BUTTONS))
    assert tuple(values) == (*PAD_AXES, *PAD_BUTTONS) == SOURCES["pad"].outputs
    assert set(values.values()) == {0.0}


@pytest.mark.parametrize("name", PAD_AXES)
def test_sticks_and_triggers_go_all_the_way_without_a_step(name: str) -> None:
    place, steps = PAD_AXES.index(name), [at / 500 for at in range(-500, 501)]
    found = [pad_values([*AT_REST[:place], at, *AT_REST[place + 1 :]], [0] * 15)[name] for at in steps]
    lowest = 0.0 if name in ("lt", "rt") else -1.0
    assert (found[0], found[-1]) == (lowest, 1.0)
    rises = [after - before for before, after in pairwise(found)]
    assert min(rises) >= 0
    assert max(rises) < 1.1 * 2 / 1000 / 0.92
    assert found == sorted(found)


def test_a_stick_beyond_its_end_is_at_its_end() -> None:
    assert pad_values([1.2, -1.2, 0, 0, 1, 1], [0] * 15)["lx"] == 1.0


@pytest.mark.parametrize("name", PAD_BUTTONS)
def test_each_button_has_its_name(name: str) -> None:
    values = pad_values(AT_REST, [int(each == name) for each in PAD_BUTTONS])
    assert {each for each in PAD_BUTTONS if values[each]} == {name}


# --- in a patch -------------------------------------------------------------------------------------------------------


def read(text: str) -> list[tuple[str, tuple[float, ...], str]]:
    """What a patch reads of gamepads."""
    made = build(Request(Source("test.weft", text), ContextTable()))
    return sorted((name.source, name.args, name.output) for name in map(sent_of, made.compiled.sent))


def test_the_name_alone_is_the_first_gamepad() -> None:
    assert read("display(pad@lx, pad@a, pad(1)@rt)") == [("pad", (0,), "a"), ("pad", (0,), "lx"), ("pad", (1,), "rt")]
    assert read("display(pad@lx)") == read("display(pad()@lx)") == read("pad()::p<lx>\ndisplay(p@lx)")
    assert read("audio(pad@lx * me@time)") == [("pad", (0,), "lx")]


def test_a_patch_may_have_a_pad_of_its_own() -> None:
    assert read("pad = sin(me@time)\ndisplay(pad)") == []
    assert read("pad<lx, ly> = <1, 2>\ndisplay(pad@lx, pad@ly, 0)") == []
    assert read("spindle pad(x) :: lx { lx = x }\ndisplay(pad(me@x))") == []
    assert read("spindle f(pad) :: v { v = pad }\ndisplay(f(me@x))") == []


@pytest.mark.parametrize("text", ["display(pad@lq)", "display(pad(99)@lx)", "display(pad(0.5)@lx)"])
def test_what_no_gamepad_has_is_an_error(text: str) -> None:
    with pytest.raises(WeftError, match=r'has no output "lq"|whole number from 0 to 15'):
        read(text)


@pytest.mark.usefixtures("display")
def test_every_press_of_a_button_counts() -> None:
    at_rest, pressed = pad_values(AT_REST, [0] * 15), pad_values(AT_REST, [1, *[0] * 14])
    pads = Gamepads()
    for frame in ([pressed], [pressed], [at_rest], [pressed, pressed], [], [at_rest, at_rest]):
        pads.note(frame)
    names = [SentName("pad", (float(index),), f"{button}@count") for index in range(2) for button in "ab"]
    shared = Display()
    try:
        assert list(pads.values(names).values()) == [2, 0, 1, 0]
    finally:
        shared.close()
    assert read("display(pad@a@count, pad(1)@b@count, 0)") == [("pad", (0,), "a@count"), ("pad", (1,), "b@count")]
