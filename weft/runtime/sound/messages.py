"""What crosses the socket between the player's process and the sound process, and what computes the sound there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weft.runtime.sound.shared import Controls, Rings

# What crosses the socket between the player's process and the sound process, apart from programs.


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


# What computes the sound.


class Renderer(Protocol):
    """Fills blocks of sound, one after another, with whatever program it was given last."""

    def render(self, out: NDArray[np.float32], seconds: float) -> None:
        """Fills a block, [frames, channels], whose first sample is at `seconds` of the performance.

        Called by the thread of the sound card: it allocates little, takes no lock and writes no file. The controls have
        been refreshed before. If it raises, the block is silent.
        """
        ...

    def take(self, message: object) -> None:
        """Takes what the player sent, such as a program. Called by another thread than `render`, also while that
        runs."""
        ...

    def news(self) -> list[SoundEvent]:
        """What has happened in here that the performer is to be told, since this was asked last. Called by the thread
        that calls `take`."""
        ...


RendererFactory: TypeAlias = Callable[[SoundSetup, Controls, Rings], Renderer]
"""Makes the renderer, in the sound process."""
