"""Keys and mouse in a terminal: for the tool, for the patch, and what is no key at all."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from tests.support.pseudo_terminal import noise
from weft.keys import TOOL_KEYS
from weft.runtime.hands.inputs import Inputs
from weft.runtime.screens.terminal_device import Decoder, HeldKeys, Key, Mouse


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (b"a", Key("a")), (b"A", Key("a", frozenset({"shift"}))), (b"7", Key("7")), (b" ", Key("space")),
        (b"-", Key("minus")), (b"\r", Key("enter")), (b"\t", Key("tab")), (b"\x7f", Key("backspace")),
        (b"\x13", Key("s", frozenset({"control"}))), (b"\x08", Key("h", frozenset({"control"}))),
        (b"\x00", Key("space", frozenset({"control"}))), (b"\x1bx", Key("x", frozenset({"alt"}))),
        (b"\x1b[A", Key("up")), (b"\x1bOB", Key("down")), (b"\x1b[1;5C", Key("right", frozenset({"control"}))),
        (b"\x1b[1;4D", Key("left", frozenset({"shift", "alt"}))), (b"\x1b[Z", Key("tab", frozenset({"shift"}))),
        (b"\x1bOP", Key("f1")), (b"\x1b[11~", Key("f1")), (b"\x1b[[A", Key("f1")),
        (b"\x1b[1;2P", Key("f1", frozenset({"shift"}))),
        (b"\x1b[15~", Key("f5")), (b"\x1b[17~", Key("f6")), (b"\x1b[24~", Key("f12")), (b"\x1b[3~", Key("delete")),
        (b"\x1b[H", Key("home")), (b"\x1b[4~", Key("end")), (b"\x1b[5~", Key("pageup")),
        (b"\x1b[<0;3;4M", Mouse("press", 2, 3, "left")), (b"\x1b[<2;3;4m", Mouse("release", 2, 3, "right")),
        (b"\x1b[<1;3;4M", Mouse("press", 2, 3, "middle")), (b"\x1b[<35;1;1M", Mouse("move", 0, 0)),
        (b"\x1b[<64;1;1M", Mouse("turn", 0, 0, notches=1)), (b"\x1b[<65;1;1M", Mouse("turn", 0, 0, notches=-1)),
    ],
)  # fmt: skip
def test_what_is_sent_is_understood_however_it_is_cut(sent, expected):
    whole = Decoder().feed(sent, 0)
    assert whole[-1] == expected
    decoder = Decoder()
    pieces = [event for at in range(len(sent)) for event in decoder.feed(sent[at : at + 1], 0)]
    assert pieces == whole
    assert decoder.feed(b"b", 0) == [Key("b")]


def test_what_means_nothing_is_left_out():
    for sent in ("é世".encode(), b"\x1b[200~", b"\x1b[?1;2c", b"\x1b[<0;1M", b"\x1b[I", b"!"):
        assert Decoder().feed(sent + b"b", 0) == [Key("b")]


@given(st.binary())
def test_any_bytes_are_taken(data):
    decoder = Decoder()
    decoder.feed(data, 0)
    decoder.feed(b"", 10)
    assert decoder.feed(b"b", 10)[-1:] == [Key("b")]


def test_escape_is_known_by_the_silence_after_it():
    decoder = Decoder()
    assert decoder.feed(b"\x1b", 0) == []
    assert decoder.feed(b"", 0.01) == []
    assert decoder.feed(b"", 1) == [Key("escape")]
    assert Decoder().feed(b"\x1b\x1b[A", 0) == [Key("escape"), Key("up")]


def test_where_backspace_sends_it_control_h_is_backspace():
    assert Decoder(backspace=b"\x08").feed(b"\x08", 0) == [Key("backspace")]


def test_tool_keys_give_commands_and_others_are_the_patchs(start):
    player = start()
    player.type(b"f")
    player.until(lambda: player.state["commands"] == ["fullscreen"])
    player.type(b"q")
    player.until(lambda: player.state["keys"] == ["q"])
    player.until(lambda: player.state["keys"] == [])
    player.do("screen.set_patch_keys(frozenset({'s', 'space'}))")
    player.type(b"s \x1b[A")
    player.until(lambda: player.state["keys"] == ["s", "space", "up"])
    assert player.state["commands"] == ["fullscreen"]
    player.type(b"\x13")
    player.until(lambda: player.state["commands"] == ["fullscreen", "screenshot"])
    player.type(b"\x00")
    player.until(lambda: player.state["commands"] == ["fullscreen", "screenshot", "pause"])
    player.type(b"\x1b")
    player.until(lambda: player.state["commands"][3:] == ["leave"])


def test_every_tool_key_has_its_command(start):
    player = start()
    sent = {"space": b" ", "escape": b"\x1b", "pageup": b"\x1b[5~", "pagedown": b"\x1b[6~"}
    expected = []
    for key, command in TOOL_KEYS.items():
        player.type(sent.get(key, key.encode()))
        expected.append(command)
        player.until(lambda: player.state["commands"] == expected)


def test_a_key_is_held_until_it_has_been_silent():
    inputs = Inputs()
    held = HeldKeys(inputs)

    def is_held(now):
        held.pass_time(now)
        return bool(inputs.snapshot()["key@w"])

    held.heard("w", 0)
    # Keyboards wait before they repeat a key, and then are quick.
    assert is_held(0.4)
    held.heard("w", 0.45)
    held.heard("w", 0.5)
    assert is_held(0.6)
    assert not is_held(0.7)
    held.heard("w", 0.8)
    assert is_held(1.2)


def test_a_key_that_repeats_itself_commands_once(start):
    player = start()
    player.type(b"rrrrq")
    player.until(lambda: player.state["keys"] == ["q"])
    assert player.state["commands"] == ["restart"]


def test_the_mouse_points_into_the_picture(start):
    player = start()
    player.show(noise(24, 24))
    # The picture lies in columns 8 to 31, and a cell is two of its pixels tall.
    for column, row in ((8, 0), (31, 11), (20, 5)):
        player.type(b"\x1b[<35;%d;%dM" % (column + 1, row + 1))
        x, y = (column - 8 + 0.5) / 24, (2 * row + 1) / 24
        player.until(lambda x=x, y=y: player.state["x"] == pytest.approx(x) and player.state["y"] == pytest.approx(y))
    player.type(b"\x1b[<35;1;1M")
    player.until(lambda: player.state["x"] == 0)
    player.type(b"\x1b[<0;1;1M\x1b[<2;1;1M")
    player.until(lambda: player.state["buttons"] == ["left", "right"])
    player.type(b"\x1b[<0;1;1m")
    player.until(lambda: player.state["buttons"] == ["right"])
    player.type(b"\x1b[<64;1;1M\x1b[<64;1;1M\x1b[<65;1;1M")
    player.until(lambda: player.state["wheel"] == 1)
