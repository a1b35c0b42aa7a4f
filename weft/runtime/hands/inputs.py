"""What reaches a patch from outside, number by number: mouse and keys (`mouse@x`, `key@space`), parameters that were
set by hand, and what others send (MIDI, OSC)."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Protocol

from weft.keys import KEYS, MOUSE
from weft.names import CLOCK, SentName, count_of, is_count, is_sent, sent_of
from weft.runtime.hands.clock import Clock
from weft.runtime.hands.knobs import KnobBindings
from weft.runtime.hands.lamp_strips import LampStrip
from weft.runtime.hands.parameters import ParameterBank

BUTTONS = ("left", "right", "middle")
"""The mouse buttons in GLFW's order; a patch reads the first two by name, and all of them as `mouse@down`."""


@dataclass(frozen=True, slots=True)
class InputState(Mapping[str, float]):
    """All inputs at one moment, and the mapping from the names that kernels read (`mouse@x`, `key@a`) to their values.

    `x` and `y` are 0…1 over the picture, y down; `wheel` is the sum of all turns so far, in notches, positive away from
    the player. `held_keys` and `held_buttons` are the names of those that are down. `others` has the parameters that
    were set by hand, the values that were sent, and how often keys and buttons were pressed.
    """

    x: float = 0.5
    y: float = 0.5
    wheel: float = 0.0
    held_buttons: frozenset[str] = frozenset()
    held_keys: frozenset[str] = frozenset()
    others: Mapping[str, float] = field(default_factory=dict)

    def __getitem__(self, strand: str) -> float:
        """The value of a strand such as `mouse@x` or `key@space`. Raises `KeyError` for any other name."""
        if strand in self.others:
            return self.others[strand]
        instance, _, output = strand.partition("@")
        if is_count(strand) and not is_sent(strand):
            return 0.0
        if instance == "key" and output in KEYS:
            return float(output in self.held_keys)
        if instance != "mouse" or output not in MOUSE:
            raise KeyError(strand)
        if output in BUTTONS:
            return float(output in self.held_buttons)
        return {"x": self.x, "y": self.y, "wheel": self.wheel, "down": float(bool(self.held_buttons))}[output]

    def __iter__(self) -> Iterator[str]:
        yield from (f"mouse@{output}" for output in MOUSE)
        yield from (f"key@{name}" for name in KEYS)
        yield from self.others

    def __len__(self) -> int:
        return len(MOUSE) + len(KEYS) + len(self.others)


class Controller(Protocol):
    """Receives what others send: MIDI ports, an OSC server."""

    sources: frozenset[str]
    """The sources (see `weft.sources`) whose outputs it knows."""

    def values(self, wanted: Iterable[SentName]) -> Mapping[SentName, float]:
        """The numbers for the next frame; those that were never sent are left out. A value that came and went since the
        last call is given as if it were still there, so that a note shorter than a frame is seen. Called once a
        frame."""

    def close(self) -> None:
        """Stops receiving. May be called twice."""


_FIRST_DAY = date(2000, 1, 1).toordinal()

# A difference between two clocks, up to this many seconds, counts as jitter.
_JITTER = 0.05


def _local_time() -> datetime:
    """The time that clocks on the wall show, in the zone that the system has now."""
    if hasattr(time, "tzset"):
        time.tzset()
    return datetime.now()


class WallClock:
    """The time of day, for `me@daytime`, `me@day` and the like; see `weft.graph.domain.Environment`."""

    sources = frozenset({CLOCK})

    def __init__(self, clock: Clock, now: Callable[[], datetime] = _local_time) -> None:
        """`now` gives the local time, as clocks on the wall show it."""
        self._clock = clock
        self._now = now
        self._midnight = datetime.combine(now().date(), datetime.min.time())
        self._start = 0.0

    def values(self, wanted: Iterable[SentName]) -> Mapping[SentName, float]:
        """See `Controller.values`. Where the local time jumps, as by daylight saving, the start jumps."""
        names = list(wanted)
        if not names:
            return {}
        start = (self._now() - self._midnight).total_seconds() - self._clock.latest.time
        if abs(start - self._start) > _JITTER:
            self._start = start
        found = {"start": self._start, "day": float(self._midnight.toordinal() - _FIRST_DAY)}
        return {name: found[name.output] for name in names}

    def close(self) -> None:
        """Does nothing."""


class Inputs:
    """Collects all inputs. Every method may be called from any thread, except `connect` and `frame`."""

    def __init__(self) -> None:
        self.parameters = ParameterBank()
        self.knobs = KnobBindings(self.parameters)
        self.lamps: Callable[[], tuple[LampStrip, ...]] = tuple
        """What the lamps of the patch look like."""
        self._controllers: list[Controller] = []
        self._sent: Mapping[str, float] = {}
        """What had been sent at the last frame."""
        self._lock = threading.Lock()
        self._x = self._y = 0.5
        self._wheel = 0.0
        # By number: several keys may have one name, and one of them may be released while the other is held.
        self._keys_down: dict[int, str] = {}
        self._buttons_down: set[str] = set()
        # The keys and buttons that went down since the last frame, so that a tap shorter than a frame is seen.
        self._tapped_keys: set[str] = set()
        self._tapped_buttons: set[str] = set()
        self._presses: Counter[str] = Counter()
        """How often keys and buttons were pressed, by the names that kernels read."""

    def connect(self, controller: Controller) -> None:
        """Reads the values that a controller receives from now on, until `close`."""
        self._controllers.append(controller)

    def close(self) -> None:
        """Closes all controllers. May be called twice."""
        for controller in self._controllers:
            controller.close()

    def move(self, x: float, y: float) -> None:
        """The pointer moved to `x`, `y` in units of the picture; outside, the nearest point of its edge counts."""
        with self._lock:
            self._x = min(max(x, 0.0), 1.0)
            self._y = min(max(y, 0.0), 1.0)

    def turn(self, notches: float) -> None:
        """The wheel turned; positive is away from the player."""
        with self._lock:
            self._wheel += notches

    def press(self, button: str) -> None:
        """A mouse button, one of `BUTTONS`, goes down."""
        with self._lock:
            self._buttons_down.add(button)
            self._tapped_buttons.add(button)
            self._presses.update((count_of(f"mouse@{button}"), count_of("mouse@down")))

    def release(self, button: str) -> None:
        """A mouse button goes up."""
        with self._lock:
            self._buttons_down.discard(button)

    def key_down(self, number: int, name: str) -> None:
        """The key with this number and name goes down."""
        with self._lock:
            self._keys_down[number] = name
            self._tapped_keys.add(name)
            self._presses[count_of(f"key@{name}")] += 1

    def key_up(self, number: int) -> None:
        """The key with this number goes up, if it was down."""
        with self._lock:
            self._keys_down.pop(number, None)

    def frame(self, sent: Iterable[str] = ()) -> InputState:
        """The state for the next frame, which reads the names in `sent` from what others send. Keys and buttons that
        were pressed since the last call count as held, even if they were released."""
        wanted = [sent_of(name) for name in sent]
        self._sent = {
            each.name: value
            for controller in self._controllers
            for each, value in controller.values([w for w in wanted if w.source in controller.sources]).items()
        }
        with self._lock:
            state = self._state(self._tapped_buttons, self._tapped_keys, self.parameters.frame())
            self._tapped_buttons, self._tapped_keys = set(), set()
            return state

    def snapshot(self) -> InputState:
        """The state at this moment."""
        with self._lock:
            return self._state(set(), set(), self.parameters.values)

    def _state(self, more_buttons: set[str], more_keys: set[str], parameters: Mapping[str, float]) -> InputState:
        buttons = frozenset(self._buttons_down | more_buttons)
        keys = frozenset(more_keys.union(self._keys_down.values()))
        others = {**parameters, **self._sent, **self._presses}
        return InputState(self._x, self._y, self._wheel, buttons, keys, others)
