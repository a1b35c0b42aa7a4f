"""`weft run` with a window that Metal draws, or with a stand-in for pyobjc in processes of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import tests
from tests.support.metal.check import clang
from tests.support.metal.executor import FOUND
from tests.support.performance import Performance
from tests.support.windows import private_display

ROOT = Path(tests.__file__).parent
TEXT = "display(me@x, me@y, 0.5 + 0.5 * sin(me@time))\n"


@pytest.fixture(scope="module")
def display() -> Iterator[None]:
    with private_display():
        yield


@pytest.fixture
def pyobjc(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has processes find the library, be it the real one."""
    if "pyobjc" not in FOUND:
        clang()
        folders = (ROOT / "support/metal/installed_pyobjc", ROOT.parent)
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, folders)))


@pytest.mark.long
@pytest.mark.usefixtures("display", "pyobjc")
def test_it_is_drawn_by_metal(tmp_path: Path) -> None:
    patch = tmp_path / "patch.weft"
    patch.write_text(TEXT)
    with Performance(patch, "--no-audio", "--backend", "visual=metal", "--size", "96x54") as performance:
        assert performance.wait_for("started")["backends"]["visual"] == "metal_visual"
        performance.save(TEXT.replace("me@y", "1 - me@y"))
        assert performance.wait_for("swap")["recompiled"] == ["visual/display"]
        performance.process.terminate()
        performance.process.wait()
    assert "copied" not in performance.stderr
    assert "Traceback" not in performance.stderr


@pytest.mark.long
@pytest.mark.usefixtures("display", "pyobjc")
def test_where_metal_cannot_draw_in_the_window_pictures_are_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    patch = tmp_path / "patch.weft"
    patch.write_text(TEXT)
    (tmp_path / "Quartz.py").touch()  # a framework without layers
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    with Performance(patch, "--no-audio", "--backend", "visual=metal", "--frames", "5") as performance:
        assert performance.wait_for("stopped")["reason"] == "frames"
        assert performance.process.wait(20) == 0
    assert performance.stderr.count("pictures are copied to the window: Metal does not draw there (") == 1
    assert "CAMetalLayer" in performance.stderr
