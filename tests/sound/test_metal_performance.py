"""A performance whose sound Metal computes, or the processor in its place: recorded from the loudspeaker."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest

import tests
from tests.live.performance import Performance
from tests.sound.test_gl_performance import LEVEL, TONE, tones
from tests.support.metal.check import clang
from tests.support.metal.executor import FOUND
from tests.support.sound import SoundServer, read

ROOT = Path(tests.__file__).parent


@pytest.fixture(params=["metalcompute", "pyobjc"])
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has processes find a library; where there is a real one, that which weft takes."""
    folders = {"metalcompute": "support/metal/installed", "pyobjc": "support/metal/installed_pyobjc"}
    if not FOUND:
        clang()
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, (ROOT / folders[request.param], ROOT.parent))))
    elif request.param != FOUND[0]:
        pytest.skip("here it is not taken")


@pytest.mark.usefixtures("library")
def test_it_plays_what_is_written(loudspeaker: SoundServer, tmp_path: Path) -> None:
    patch = tmp_path / "patch.weft"
    patch.write_text(TONE.format(440))
    with loudspeaker.recorded(tmp_path / "heard") as file:
        with Performance(patch, "--headless", "--backend", "audio=metal") as performance:
            assert performance.wait_for("started")["backends"]["audio"] == "metal_audio"
            performance.wait_for("audio", 2)
        time.sleep(0.2)
        heard, level = tones(file), np.abs(read(file)).max()
    assert "Traceback" not in performance.stderr
    assert len(heard) > 5
    assert heard == pytest.approx([440] * len(heard), abs=1)
    assert level == pytest.approx(LEVEL, abs=0.01)
