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
    is_silent: bool = False
    """Whether no device is asked for."""


Kind: TypeAlias = Literal[
    "playing", "lost", "failure", "back", "died", "restarted", "ready", "moved", "placed", "loop"
]


@dataclass(frozen=True)
class SoundEvent:
    """Something that a performer is told: one line of `words`.

    `playing`: sound begins, on the device of that name. `lost`: there is no device, or not any more; it is tried again.
    `back`: there is one again. `failure`: what is to be played fails; the program before goes on, if there is one.
    `died`: the process has ended. `restarted`: it plays again. `ready`: what was sent at first is loaded, and a device
    has been asked for; only the process that this one belongs to is told. `moved`: what computes sounds, `origin`, has
    failed, for the reason in `words`, and they go on with what comes behind it; `code` is their context. `placed`: a
    subgraph runs elsewhere than it was meant to. `loop`: a loop of the kernel that `words` names met its limit of
    steps.
    """

    kind: Kind
    code: str
    words: str
    number: int = 0
    """The program that it is about, as its player counts them; 0 for none."""
    origin: str = ""
    """The name of a backend, as `--backend` knows it."""


class ProgramFailure(Exception):  # noqa: N818 -- a failure, as the event that tells of it
    """What goes wrong with one program; the cause says what."""

    def __init__(self, number: int) -> None:
        """`number` is that of the program, as its player counts them."""
        super().__init__(number)
        self.number = number
