"""What crosses the socket between the player's process and the sound process, apart from programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias


@dataclass(frozen=True)
class SoundSetup:
    """What the sound process is told first. The memory is given by the numbers of files that it inherits."""

    device: str | None
    """A device's number or a part of its name; None is the system's choice."""
    rate: int
    channels: int
    frames: int
    """The length of a block."""
    controls: int
    figures: int
    rings: int
    renderer: str
    """`module:name` of what makes the renderer, see `renderer.py`."""
    is_silent: bool = False
    """Whether no device is asked for."""


Kind: TypeAlias = Literal["playing", "lost", "failure", "back", "died", "restarted"]


@dataclass(frozen=True)
class SoundEvent:
    """Something that a performer is told: one line of `words`.

    `playing`: sound begins, on the device of that name. `lost`: there is no device, or not any more; it is tried again.
    `back`: there is one again. `failure`: what is to be played fails, which is silent. `died`: the process has ended.
    `restarted`: it plays again.
    """

    kind: Kind
    code: str
    words: str
