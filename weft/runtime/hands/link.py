"""Ableton Link: a tempo and a beat that several programs on a network share.

It needs the package LinkPython-extern, which is imported when it is asked for. Others follow a tempo that is tapped or
written here, and the beat here follows that of the others. All of it is for the thread that draws.
"""

from __future__ import annotations

import time
from typing import Any

from weft.errors import error, installs
from weft.runtime.hands.tempo import Tempo

# The beats of a measure. The beat agrees with that of the others up to whole measures.
_MEASURE = 4.0
# For this many seconds after joining, nothing is changed, so that the tempo of the others prevails.
_LISTENS = 0.5
# The share by which a tempo may differ when it is read back, since Link counts microseconds.
_SAME = 1e-4


class LinkPeer:
    """Takes part in the session of all that use Link on this network. `tempo` follows it."""

    def __init__(self, tempo: Tempo) -> None:
        """Raises WeftError (`no-link`) if the package is missing."""
        try:
            import link  # only where it is asked for
        except ImportError as problem:
            raise error("no-link", "Ableton Link needs a package that is not installed",
                        hint=installs("link")) from problem  # fmt: skip
        self._tempo = tempo
        self._agreed = tempo.bpm
        self._link: Any = link.Link(tempo.bpm)
        self._link.enabled = True
        self._joined: float | None = None
        self.peers = 0
        """The number of other programs."""

    def follow(self, now: float) -> bool:
        """Once a frame, at the time `now` of the performance; returns whether the number of others has changed."""
        before, self.peers = self.peers, self._link.numPeers()
        if self.peers and not before:
            self._joined = time.monotonic()
        state, moment = self._link.captureSessionState(), self._link.clock().micros()
        listens = self._joined is not None and time.monotonic() - self._joined < _LISTENS
        is_changed = self._tempo.source != "link" and abs(self._tempo.bpm / self._agreed - 1) > _SAME
        if is_changed and not listens:
            state.setTempo(self._tempo.bpm, moment)
            self._link.commitSessionState(state)
            self._agreed = self._tempo.bpm
        elif self.peers:
            self._agreed = state.tempo()
            self._tempo.follow(self._agreed, state.beatAtTime(moment, _MEASURE), now, "link", _MEASURE)
        return self.peers != before

    def close(self) -> None:
        """Leaves the session. May be called twice."""
        self._link.enabled = False
