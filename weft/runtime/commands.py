"""What the keys of the tool do, by the names of `weft.keys`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from weft.runtime.clock import Clock
from weft.runtime.sound.player import Sound
from weft.runtime.telling import Teller


@dataclass
class Commands:
    """Carries out commands on a performance. `stop` ends it, and is given the reason."""

    clock: Clock
    sound: Sound | None
    teller: Teller
    stop: Callable[[str], None]
    toggle_fullscreen: Callable[[], None]
    screenshot: Callable[[], None]

    def run(self, name: str) -> None:
        """Carries out the command of a name."""
        match name:
            case "leave":
                self.stop("closed")
            case "pause":
                self._pause()
            case "restart":
                self._restart()
            case "fullscreen":
                self.toggle_fullscreen()
            case "screenshot":
                self.screenshot()
            case "errors":
                self.teller.notices.toggle_errors()
            case "figures":
                self.teller.notices.toggle_figures()

    def _pause(self) -> None:
        if self.clock.paused:
            self.clock.resume()
        else:
            self.clock.pause()
        self.teller.notices.set_paused(self.clock.paused)
        self.teller.mention("paused" if self.clock.paused else "goes on")

    def _restart(self) -> None:
        self.clock.restart()
        if self.sound is not None:
            self.sound.restart()
        self.teller.mention("the clock starts again")
