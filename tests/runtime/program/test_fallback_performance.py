"""A device fails in the middle of a performance, which continues."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.cards import PACKAGE
from tests.support.compute import opencl
from tests.support.gl import Graphics, graphics
from tests.support.performance import Performance

__all__ = ["graphics", "opencl"]

# Processes with this folder on their path have code generators that fail.
BROKEN = Path(__file__).parents[2] / "support" / "broken"

TEXT = """\
me<width> = 96
me<height> = 54
n<v> = prev(n@v) + 1 / 256
display(n@v, sin(me@x * {} + me@time), me@y)
c = prev(c) + 1
compute(c)
"""


@pytest.fixture
def patch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A patch, and a card that lasts for twenty frames."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(PACKAGE), *filter(None, [os.environ.get("PYTHONPATH")])]))
    monkeypatch.setenv("WEFT_CARD_FRAMES", "20")
    monkeypatch.setenv("WEFT_CARD_LOG", str(tmp_path / "looked_for"))
    path = tmp_path / "patch.weft"
    path.write_text(TEXT.format(3))
    return path


def test_the_performance_goes_on_elsewhere_and_gets_better_there(patch: Path) -> None:
    with Performance(patch, "--headless", "--no-audio", "--backend", "visual=card_visual:0") as performance:
        assert performance.wait_for("started")["backends"]["visual"] == "card_visual"
        moved = performance.wait_for("backend")
        reason = "somebody pulled the plug"
        fields = {"context": "visual", "from": "card_visual", "to": "native", "reason": reason}
        assert {name: moved[name] for name in fields} == fields
        performance.wait_for_words(f"weft: visual continues with native: {reason}")
        assert performance.wait_for("tier")["hash"] == performance.hash
        frames = performance.wait_for("frames", 2)
        assert frames["fps"] > 0
        performance.save(TEXT.format(5))
        loaded = performance.wait_for("swap")
        assert (loaded["recompiled"], loaded["kept"]) == (["visual/display"], ["compute/compute"])
        assert [event for event in performance.events if event["event"] in ("error", "stopped")] == []
        # No frame was counted twice, and none was left out.
        counts = [event["values"][0] for event in performance.events if event["event"] == "compute"]
        assert counts == sorted(counts)
    assert len(patch.with_name("looked_for").read_text().splitlines()) == 1, "one process decides for all"


def test_a_text_that_comes_back_runs_where_the_performance_runs_by_then(patch: Path) -> None:
    with Performance(patch, "--headless", "--no-audio", "--backend", "visual=card_visual:0") as performance:
        performance.wait_for("backend")
        for number, factor in enumerate((7, 3, 7), 1):
            performance.save(TEXT.format(factor))
            assert performance.wait_for("swap", number)["hash"] == performance.hash
        assert sum(event["event"] == "backend" for event in performance.events) == 1
        assert "error" not in {event["event"] for event in performance.events}


@pytest.mark.long
def test_the_next_card_takes_over_and_then_the_processor(patch: Path) -> None:
    with Performance(patch, "--headless", "--no-audio", "--backend", "visual=card_visual") as performance:
        assert performance.wait_for("started")["backends"]["visual"] == "card_visual"
        performance.wait_for("backend", 2)
        performance.wait_for("frames", 2)
        performance.save(TEXT.format(5))
        performance.wait_for("swap")
        moved = [(event["from"], event["to"]) for event in performance.events if event["event"] == "backend"]
        assert moved == [("card_visual", "card_visual:1"), ("card_visual:1", "native")]
        assert {"error", "stopped"}.isdisjoint(event["event"] for event in performance.events)
        counts = [event["values"][0] for event in performance.events if event["event"] == "compute"]
        assert counts == sorted(counts)


def test_opengl_takes_over_from_a_card(graphics: Graphics, patch: Path) -> None:
    options = ("--headless", "--no-audio", "--backend", "visual=card_visual:0,visual=gl")
    with Performance(patch, *options) as performance:
        assert performance.wait_for("backend")["to"] == "gl_visual"
        performance.wait_for("tier")
        performance.wait_for("frames", 2)
        performance.save(TEXT.format(5))
        performance.wait_for("swap")
        assert sum(event["event"] == "backend" for event in performance.events) == 1
        assert {"error", "stopped"}.isdisjoint(event["event"] for event in performance.events)


@pytest.mark.usefixtures("opencl")
def test_a_device_that_hangs_is_left_and_the_performance_ends_when_it_is_told_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(BROKEN))
    monkeypatch.setenv("WEFT_BROKEN", "opencl")
    path = tmp_path / "patch.weft"
    path.write_text(TEXT.format(3))
    options = ("--headless", "--no-audio", "--no-stand-in", "--backend", "visual=opencl:0", "--frames", "120")
    with Performance(path, *options) as performance:
        moved = performance.wait_for("backend")
        reason = "its device has not answered for 0.1 seconds"
        fields = {"context": "visual", "from": "opencl_visual", "to": "native", "reason": reason}
        assert {name: moved[name] for name in fields} == fields
        performance.wait_for_words(f"weft: visual continues with native: {reason}")
        assert performance.wait_for("stopped")["reason"] == "frames"
        assert performance.ended() == 0
        counts = [event["values"][0] for event in performance.events if event["event"] == "compute"]
        assert counts == sorted(counts)


@pytest.mark.long
@pytest.mark.parametrize(
    ("broken", "told"),
    [
        ("native", ["visual/display keeps its present code: ", "audio/audio runs on vector, not native: "]),
        ("better", ["audio/audio keeps its present code: "]),
    ],
)
def test_what_cannot_become_machine_code_plays_on_the_next_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str, told: list[str]
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(BROKEN))
    monkeypatch.setenv("WEFT_BROKEN", broken)
    path = tmp_path / "patch.weft"
    # The first tier of a picture needs no compiler.
    sound, picture = "audio(prev(sin(me@time * 2000)) * 0.5)", "display(prev(me@x), me@y, fract(me@time))"
    path.write_text(f"me<width> = 32\nme<height> = 18\n{sound}\n{picture}\n")
    with Performance(path, "--headless", "--backend", "native") as performance:
        for words in told:
            performance.wait_for_words(f"weft: {words}")
        assert performance.wait_for("frames", 2)["fps"] > 0
        assert [event for event in performance.events if event["event"] in ("error", "stopped")] == []
        said = performance.stderr
    assert all(said.count(words) == 1 for words in told)
