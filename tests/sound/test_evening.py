"""A performer who saves all the time hears neither a click nor a gap."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.evening import HERTZ, spend
from tests.support.sound import RATE, SoundServer

SECONDS = 60


@pytest.mark.timeout(180)
def test_saves_do_not_break_a_tone(loudspeaker: SoundServer, tmp_path: Path) -> None:
    evening = spend(tmp_path, loudspeaker, SECONDS)
    assert evening.swaps > SECONDS / 2, "or there was nothing that could have broken it"
    assert len(evening.heard) > (SECONDS - 1) * RATE
    assert evening.breaks == 0
    assert evening.hertz == pytest.approx(HERTZ, abs=0.5)
    assert evening.audio["underruns"] == 0
