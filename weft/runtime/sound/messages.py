"""The messages between the player's process and the sound process, and the protocol of what computes the sound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weft.runtime.sound.shared import Controls, Rings

RENDERER = "weft.runtime.sound.transfer:Player"


@dataclass(frozen=True)
class SoundOptions:
    """Options of the sound, which are the first message to the sound process."""

    device: str | None = None
    """A device's number or a part of its name; None is the system's choice."""
    rate: int = 48000
    channels: int = 2
    frames: int = 512
    """The length of a block."""
    renderer: str = RENDERER
    """`module:name` of a `RendererFactory`."""
    is_silent: bool = False
    """Whether no device is opened."""


Kind: TypeAlias = Literal["playing", "lost", "failure", "back", "died", "restarted", "ready", "moved", "placed", "loop"]


@dataclass(frozen=True)
class SoundEvent:
    """An event of the sound process for the player: one line of `words`.

    `playing`: sound begins on the device with that name. `lost`: there is no device, or not any more; opening one is
    tried again. `back`: there is one again. `failure`: a program cannot be played; the previous one, if there is one,
    goes on. `died`: the process has ended. `restarted`: it plays again. `ready`: the first messages are handled, and
    opening a device was tried; it is not reported to people. `moved`: the backend `origin` that computed sounds has
    failed, for the reason in `words`, and its fallback goes on; `code` is the context. `placed`: a subgraph runs
    elsewhere than intended. `loop`: a loop of the kernel that `words` names reached its limit of steps.
    """

    kind: Kind
    code: str
    words: str
    number: int = 0
    """The number of the program that it is about, as the player counts them; 0: none."""
    origin: str = ""
    """The name of a backend, as in `--backend`."""


class ProgramFailure(Exception):  # noqa: N818 -- named like the event that reports it
    """The failure of one program; the cause says why."""

    def __init__(self, number: int) -> None:
        """`number` is that of the program, as the player counts them."""
        super().__init__(number)
        self.number = number


class Renderer(Protocol):
    """Fills blocks of sound, one after another, with the program that it was given last."""

    def render(self, out: NDArray[np.float32], seconds: float) -> None:
        """Fills a block, [frames, channels], whose first sample is at `seconds` of the performance.

        The thread of the sound device calls it: it allocates little, takes no lock and writes no file. The controls
        have been refreshed before. If it raises, the block is silent.
        """
        ...

    def take(self, message: object) -> None:
        """Handles a message of the player, such as a program. Called by another thread than `render`, also while that
        runs."""
        ...

    def news(self) -> list[SoundEvent]:
        """The events since the last call. Called by the thread that calls `take`."""
        ...


RendererFactory: TypeAlias = Callable[[SoundOptions, Controls, Rings], Renderer]
"""Makes the renderer, in the sound process."""
