"""What the mouse, keys, gamepads and numbers that are sent are at a moment, and what is counted of them."""

from __future__ import annotations

import threading
from collections.abc import Iterable

import pytest

from weft.keys import KEYS, TOOL_KEYS, key_name
from weft.names import SentName
from weft.runtime.hands.inputs import Inputs, InputState
from weft.runtime.hands.parameters import ParameterSpec


def test_before_anything_happens_the_mouse_is_in_the_middle() -> None:
    state = Inputs().snapshot()
    assert state == InputState()
    assert {name: value for name, value in state.items() if value} == {"mouse@x": 0.5, "mouse@y": 0.5}


def test_the_pointer_stays_within_the_picture() -> None:
    inputs = Inputs()
    inputs.move(-3, 1.5)
    state = inputs.snapshot()
    assert (state["mouse@x"], state["mouse@y"]) == (0, 1)


def test_buttons_and_wheel() -> None:
    inputs = Inputs()
    inputs.press("right")
    inputs.turn(2)
    inputs.turn(-0.5)
    state = inputs.snapshot()
    assert [state[f"mouse@{name}"] for name in ("down", "left", "right", "wheel")] == [1, 0, 1, 1.5]
    inputs.press("middle")
    inputs.release("right")
    assert [inputs.snapshot()[f"mouse@{name}"] for name in ("down", "left", "right")] == [1, 0, 0]


def test_a_name_is_held_while_one_of_its_keys_is() -> None:
    inputs = Inputs()
    left, right = KEYS["shift"]
    inputs.key_down(left, "shift")
    inputs.key_down(right, "shift")
    inputs.key_up(left)
    inputs.frame()
    assert inputs.frame()["key@shift"] == 1
    inputs.key_up(right)
    inputs.key_up(right)
    assert inputs.frame()["key@shift"] == 0


def test_a_tap_shorter_than_a_frame_is_seen_in_one() -> None:
    inputs = Inputs()
    inputs.key_down(32, "space")
    inputs.key_up(32)
    inputs.press("left")
    inputs.release("left")
    assert inputs.snapshot()["key@space"] == 0
    first, second = inputs.frame(), inputs.frame()
    assert (first["key@space"], first["mouse@left"], first["mouse@down"]) == (1, 1, 1)
    assert (second["key@space"], second["mouse@left"], second["mouse@down"]) == (0, 0, 0)


@pytest.mark.parametrize("name", ["mouse@z", "key@nothing", "key@", "mouse", "me@x"])
def test_other_names_are_unknown(name: str) -> None:
    with pytest.raises(KeyError):
        InputState()[name]


def test_many_threads_may_use_it_at_once() -> None:
    inputs = Inputs()

    def play() -> None:
        for _ in range(500):
            inputs.turn(1)
            inputs.key_down(65, "a")
            inputs.frame()
            inputs.key_up(65)

    threads = [threading.Thread(target=play) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    inputs.frame()
    assert inputs.frame() == InputState(wheel=2000, others={"key@a@count": 2000})


def test_every_press_counts_also_several_in_a_frame() -> None:
    inputs = Inputs()
    assert inputs.frame()["key@a@count"] == inputs.frame()["mouse@down@count"] == 0
    for _ in range(3):
        inputs.key_down(65, "a")
        inputs.key_up(65)
        inputs.press("left")
        inputs.release("left")
    inputs.press("right")
    state = inputs.frame()
    assert [state[f"{name}@count"] for name in ("key@a", "key@b", "mouse@left", "mouse@right", "mouse@down")] == [
        3, 0, 3, 1, 4,
    ]  # fmt: skip
    assert inputs.frame()["key@a@count"] == 3


def test_keys_are_named_by_number_and_by_what_is_printed_on_them() -> None:
    assert key_name(65) == key_name(65, "a") == "a"
    assert key_name(65, "Q") == "q"  # French keyboards have Q there
    assert key_name(49, "&") == "1"
    assert key_name(65, "ф") == "a"  # a label that no patch can write
    assert key_name(77, ",") == "comma"
    assert key_name(335, "1") == "enter"
    assert key_name(290) == "f1"
    assert key_name(301) == "f12"
    assert key_name(-1) is key_name(348) is None


def test_no_key_has_two_names_and_all_tool_keys_exist() -> None:
    numbers = [number for group in KEYS.values() for number in group]
    assert len(numbers) == len(set(numbers))
    assert TOOL_KEYS.keys() <= KEYS.keys()


def test_the_numbers_are_those_of_glfw() -> None:
    glfw = pytest.importorskip("glfw")
    spelled = {"enter": "ENTER", "pageup": "PAGE_UP", "leftbracket": "LEFT_BRACKET", "grave": "GRAVE_ACCENT"}
    for name in ("space", "escape", "tab", "backspace", "a", "z", "0", "9", "f1", "f12", "up", "down", "left", "right"):
        assert KEYS[name] == (getattr(glfw, f"KEY_{name.upper()}"),)
    for name, constant in spelled.items():
        assert KEYS[name][0] == getattr(glfw, f"KEY_{constant}")
    for name in ("shift", "control", "alt"):
        assert KEYS[name] == tuple(getattr(glfw, f"KEY_{side}_{name.upper()}") for side in ("LEFT", "RIGHT"))


class Sender:
    """Has received some numbers from others."""

    sources = frozenset({"osc"})

    def __init__(self, received: dict[tuple[str | float, ...], float]) -> None:
        self.received = received
        self.asked: list[SentName] = []

    def values(self, wanted: Iterable[SentName]) -> dict[SentName, float]:
        self.asked = list(wanted)
        return {name: self.received[name.args] for name in self.asked if name.args in self.received}

    def close(self) -> None:
        self.received.clear()


def test_a_controller_is_asked_for_what_the_program_reads() -> None:
    inputs = Inputs()
    sender = Sender({("/a@b", 0.0): 7.0, ("/c", 1.0): 8.0})
    inputs.connect(sender)
    name, other, note = (SentName(*each, "v") for each in (("osc", ("/a@b", 0.0)), ("osc", ("/d", 0.0)), ("midi", ())))
    state = inputs.frame([name.name, other.name, note.name])
    assert sender.asked == [name, other]
    assert state[name.name] == inputs.snapshot()[name.name] == 7
    assert other.name not in state
    assert {*state} == {*InputState(), name.name}
    inputs.close()
    assert name.name not in inputs.frame([name.name])


def test_a_parameter_that_was_set_is_among_the_inputs() -> None:
    inputs = Inputs()
    inputs.parameters.adopt([ParameterSpec("slider", "a", ("v",), (0.5,), 0, 2, "a", False, "p.weft", 1)])
    assert "a@v" not in inputs.frame()
    inputs.parameters.set("a@v", 3)
    assert inputs.frame()["a@v"] == inputs.snapshot()["a@v"] == 2
