"""Gamepads, as GLFW knows them. Import it only for a window; all of it is for the main thread."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from weft.keys import PAD_AXES, PAD_BUTTONS
from weft.names import SentName
from weft.runtime.screens.display import glfw

# Sticks that are let go do not come to rest exactly in the middle.
_REST = 0.08


def pad_values(axes: Sequence[float], buttons: Sequence[int]) -> dict[str, float]:
    """The outputs of `pad`, from the axes (−1…1) and buttons of a gamepad in GLFW's order. Sticks are 0 near the middle
    and go on from there without a step; triggers are 0 when they are let go."""
    sticks = {name: _off_rest(value) for name, value in zip(PAD_AXES[:4], axes[:4], strict=True)}
    triggers = {name: (value + 1) / 2 for name, value in zip(PAD_AXES[4:], axes[4:], strict=True)}
    held = {name: float(bool(value)) for name, value in zip(PAD_BUTTONS, buttons, strict=True)}
    return {**sticks, **triggers, **held}


def _off_rest(value: float) -> float:
    size = max(0.0, min(abs(value), 1.0) - _REST) / (1 - _REST)
    return size if value > 0 else -size if size else 0.0


class Gamepads:
    """The gamepads that are connected at the moment, read once a frame; see `weft.runtime.inputs.Controller`."""

    sources = frozenset({"pad"})

    def values(self, wanted: Iterable[SentName]) -> Mapping[SentName, float]:
        """See `Controller.values`. What is read of a gamepad that is not there is left out."""
        names = list(wanted)
        # GLFW looks for devices when it is first asked, which takes a moment.
        numbers = range(glfw.JOYSTICK_LAST + 1) if names else ()
        pads = [_state(number) for number in numbers if glfw.joystick_is_gamepad(number)]
        found: dict[SentName, float] = {}
        for name in names:
            index = int(name.args[0])
            if index < len(pads):
                found[name] = pads[index].get(name.output, 0.0)
        return found

    def close(self) -> None:
        """Does nothing: GLFW keeps the devices."""


def _state(number: int) -> dict[str, float]:
    """The outputs of one gamepad; none if it is being unplugged."""
    state = glfw.get_gamepad_state(number)
    return pad_values(list(state.axes), list(state.buttons)) if state else {}
