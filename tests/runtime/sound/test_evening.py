"""A performer who saves all the time hears neither a click nor a gap."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.evening import HERTZ, spend
from tests.support.sound import SoundServer
from tests.support.together import all_but


@pytest.mark.timeout(180)
@pytest.mark.parametrize("seconds", all_but(1, [6, 60]))
def test_saves_do_not_break_a_tone(loudspeaker: SoundServer, tmp_path: Path, seconds: int) -> None:
    evening = spend(tmp_path, loudspeaker, seconds)
    assert evening.swaps > seconds / 2, "or there was nothing that could have broken it"
    # A machine that is shared with others stands still now and then; nothing that weft does may be heard.
    assert [str(flaw) for flaw in evening.unexplained] == []
    assert evening.seconds > seconds / 2, "or hardly any of it was heard"
    assert evening.hertz == pytest.approx(HERTZ, abs=0.5)
