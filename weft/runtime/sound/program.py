"""Programs of sound on their way to the sound process, and what takes them there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from weft.runtime.build import Playable
from weft.runtime.program import Stage
from weft.runtime.setup import Setup
from weft.runtime.sound.messages import SoundSetup
from weft.runtime.sound.mixer import Mixer
from weft.runtime.sound.shared import Controls, Rings


@dataclass(frozen=True)
class Play:
    """A program to play, of which only that is sent which streams. `setup` says what runs it; `at` is the moment of the
    performance from which on it plays, None for at once; `rows` says which rings its strands go to, `views` where the
    pictures are that it sees; `given` has what comes from outside as it is now."""

    setup: Setup
    playable: Playable
    fade: float
    at: float | None
    rows: Mapping[str, int]
    views: Mapping[str, int]
    given: Mapping[str, float]


@dataclass(frozen=True)
class Better:
    """Better code for units that play, by their hashes."""

    codes: Mapping[str, object]


class Player:
    """The renderer of the sound process; see `renderer.Renderer`."""

    def __init__(self, setup: SoundSetup, controls: Controls, rings: Rings) -> None:
        self._stage: Stage | None = None
        self._rings = rings
        self._controls = controls
        self._first: Mapping[str, float] = {}
        """What counts as long as the controls do not know a name."""
        self._mixer = Mixer(setup.rate, setup.channels, self._given, rings.samples)

    def render(self, out: npt.NDArray[np.float32], seconds: float) -> None:
        self._mixer.render(out, seconds)

    def take(self, message: object) -> None:
        match message:
            case Play():
                self._play(message)
            case Better(codes) if self._mixer.playing is not None:
                self._mixer.playing.exchange(codes)

    def _play(self, play: Play) -> None:
        self._first = {**self._first, **play.given}
        if self._stage is None:
            _, self._stage = play.setup.open()
        views = {name: self._rings.views[row] for name, row in play.views.items()}
        entry = self._mixer.prepare(self._stage, play.playable, play.fade, play.at, play.rows, views)
        self._mixer.enter(entry)

    def _given(self, name: str) -> float:
        found = self._controls.find(name)
        return self._first.get(name, 0.0) if found is None else found
