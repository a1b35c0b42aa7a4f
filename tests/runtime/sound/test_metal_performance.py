"""A performance whose sound Metal computes, or the processor in its place: recorded from the loudspeaker."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import tests
from tests.runtime.sound.test_gl_performance import check_tone
from tests.support.metal.check import clang
from tests.support.metal.executor import FOUND
from tests.support.sound import SoundServer

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


@pytest.mark.long
@pytest.mark.usefixtures("library")
def test_it_plays_what_is_written(loudspeaker: SoundServer, tmp_path: Path) -> None:
    check_tone("metal", loudspeaker, tmp_path)
