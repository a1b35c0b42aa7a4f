"""What a performance tells: events for other programs, lines for people, and notes over the picture."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from weft.errors import Diagnostic
from weft.runtime.cast import Change
from weft.runtime.compiling.worker import Outcome
from weft.runtime.events import EventLog, FrameFigures
from weft.runtime.findings import loop_of
from weft.runtime.notices import Notices
from weft.runtime.playable import Playable
from weft.runtime.program import Swap
from weft.runtime.sound.messages import SoundEvent
from weft.runtime.sound.player import Sound

# What is told with the name of a device.
_SOUNDS = {"playing": "sound on", "back": "sound again on", "restarted": "sound again on"}


@dataclass
class Teller:
    """Tells by all three ways. `tell` shows diagnostics, `say` a line of its own."""

    events: EventLog
    notices: Notices
    tell: Callable[[list[Diagnostic]], None]
    say: Callable[[str], None]
    _loops_told: set[str] = field(default_factory=set)
    _mentioned: set[str] = field(default_factory=set)

    def begin(self) -> None:
        """Another program plays."""
        self._loops_told.clear()

    def mention(self, words: str) -> None:
        """A line, also over the picture."""
        self.say(words)
        self.notices.note(words)

    def _mention_once(self, words: str) -> None:
        """What several processes may find out, each for itself."""
        if words not in self._mentioned:
            self._mentioned.add(words)
            self.mention(words)

    def warn(self, problem: Diagnostic) -> None:
        """What a device cannot do any more."""
        self.tell([problem])
        self.notices.note(problem.message)

    def loop_stopped(self, playable: Playable, kernel: str) -> None:
        """A loop of a program met its limit, which is told once for each kernel."""
        if kernel not in self._loops_told:
            self._loops_told.add(kernel)
            problem = loop_of(playable.units, kernel)
            self.tell([problem])
            self.notices.add_warning(problem)

    def changed(self, changes: Iterable[Change]) -> None:
        """Something runs elsewhere. That a device failed while it ran is an event as well."""
        for change in changes:
            self._mention_once(str(change))
            if change.subgraph is None:
                moved = {"context": change.context, "from": change.origin, "to": change.target}
                self.events.emit("backend", **moved, reason=change.reason)

    def heard(self, event: SoundEvent) -> None:
        """Something happened to the sound."""
        if event.kind == "placed":
            self._mention_once(event.words)
        elif event.kind == "died":
            self.restarted("sound", event.words)
        else:
            self.mention(f"{_SOUNDS.get(event.kind, '')} {event.words}".lstrip())

    def restarted(self, process: str, words: str) -> None:
        """A process was started again, since it had ended by itself."""
        self.events.emit("restart", process=process, reason=words)
        self.mention(words)

    def frames(self, figures: FrameFigures, sound: Sound | None, facts: Iterable[str]) -> None:
        """How the last second was; with `facts` about the program for those who look at the picture."""
        self.events.emit("frames", **figures.fields())
        frames = f"{figures.fps:.0f} fps · p95 {figures.p95_ms:.1f} ms · {figures.dropped} dropped"
        self.notices.set_figures((frames, *facts))
        heard = sound.figures if sound is not None else None
        if heard is not None:
            load = round(heard.load, 4)
            self.events.emit("audio", blocks=heard.blocks, load=load, underruns=heard.underruns)

    def swapped(self, outcome: Outcome, swap: Swap, waited_ms: float) -> None:
        """A program that was swapped in has just been seen for the first time."""
        parsing, graph, kernels = outcome.took
        latency = (time.monotonic() - outcome.saved.moment) * 1e3
        self.events.emit(
            "swap",
            hash=outcome.saved.hash,
            parse_ms=round(parsing, 3),
            graph_ms=round(graph, 3),
            compile_ms=round(kernels, 3),
            latency_ms=round(latency, 3),
            waited_ms=round(waited_ms, 3),
            recompiled=[] if outcome.known else list(swap.changed),
            kept=list(swap.kept),
            cached=list(swap.changed) if outcome.known else [],
            tier=swap.tier,
        )
        words = f"swapped in {latency:.0f} ms"
        count = len(swap.changed) + len(swap.kept)
        changed = "as it was before" if outcome.known else f"{len(swap.changed)} of {count} subgraphs new"
        self.notices.note(words)
        self.say(f"{words} · {changed}")
