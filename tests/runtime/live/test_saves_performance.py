"""Saves under a running performance: what is compiled again, what continues, and what a mistake leaves alone."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from PIL import Image

from tests.support.performance import Event, Performance
from weft.osc_packets import message
from weft.runtime.compiling.worker import CompileWorker
from weft.runtime.hands.clock import Clock
from weft.runtime.hands.inputs import Inputs
from weft.runtime.live.events import EventLog
from weft.runtime.live.saves import Saves
from weft.runtime.program.program import Programs, Setup

TWO = """\
me<width> = 64
me<height> = 36
wave<v> = sin(me@x * 9 + me@time)
display(wave@v, 0, 0)
compute(mouse@x * 2)
"""

COUNTING = """\
me<width> = 32
me<height> = 18
count = prev(count) + 1
other = 1
display(other)
compute(count, me@absframe, me@time)
"""


@pytest.fixture
def patch(tmp_path: Path) -> Path:
    return tmp_path / "patch.weft"


def test_only_what_an_edit_touches_is_compiled_again(patch: Path) -> None:
    patch.write_text(TWO)
    with Performance(patch, "--headless") as performance:
        performance.wait_for("started")
        performance.save(TWO.replace("mouse@x * 2", "mouse@x * 3"))
        loaded = performance.wait_for("swap")
        assert (loaded["recompiled"], loaded["kept"]) == (["compute/compute"], ["visual/display"])
        performance.save(TWO.replace("mouse@x * 2", "mouse@x * 3").replace("x * 9", "x * 7"))
        loaded = performance.wait_for("swap", 2)
        assert (loaded["recompiled"], loaded["kept"]) == (["visual/display"], ["compute/compute"])
        performance.save("// a comment moves every line\n" + patch.read_text())
        assert performance.wait_for("swap", 3)["recompiled"] == []
        assert set(loaded) >= {"hash", "parse_ms", "graph_ms", "compile_ms", "latency_ms", "waited_ms", "tier"}
        assert list(loaded["stages"]) == ["asked", "built", "translated", "received", "loaded", "tried", "shown"]
        assert sum(loaded["stages"].values()) == pytest.approx(loaded["latency_ms"], abs=0.01)


def test_state_and_clock_go_on_over_a_swap(patch: Path) -> None:
    patch.write_text(COUNTING)

    def counted(event: Event) -> bool:
        count, frame, _ = event["values"]
        assert count == frame + 1, "the count has lost a tick"
        return bool(frame > 1)

    with Performance(patch, "--headless") as performance:
        before = performance.wait_for("compute", when=counted)
        # The expression around the state changes too: the slot is found again by its place.
        performance.save(COUNTING.replace("other = 1", "other = 0.5").replace("+ 1", "+ 2 - 1"))
        performance.wait_for("swap")
        seen = len([e for e in performance.events if e["event"] == "compute"])
        after = performance.wait_for("compute", seen + 1)
        assert counted(after)
        assert after["values"][2] > before["values"][2]


def test_a_save_is_told_before_anything_that_comes_of_it(patch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or a thread that is held up between the two would tell of it after its swap."""
    order = list[str]()
    setup = Setup(str(patch)).decided()
    programs = Programs(setup.open()[1])
    events, worker = EventLog(None), CompileWorker(setup, programs, Clock(), Inputs(), threading.Event())
    monkeypatch.setattr(events, "emit", lambda event, **fields: order.append(event))
    monkeypatch.setattr(worker, "submit", lambda saved: order.append("compiled"))
    saves = Saves(patch, worker, programs, events, fits=False)
    try:
        saves.put(b"display(1)\n")
        assert order == ["saved", "compiled"]
    finally:
        saves.close()
        worker.close()


GOES_ON = "the last good version keeps playing"


@pytest.fixture(scope="module")
def counting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Performance]:
    """A performance that counts its frames, and continues over every save."""
    patch = tmp_path_factory.mktemp("counting") / "patch.weft"
    patch.write_text(COUNTING)
    with Performance(patch, "--headless") as performance:
        performance.wait_for("compute")
        yield performance


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("display(sin(me@x)", "unclosed-bracket"),
        ("display(nois@v)", "unknown-strand"),
        ("", "no-output"),
        ("a = b\nb = a\ndisplay(a)", "cycle"),
        (b"\x00\x01\x02\xff", "unreadable-file"),
        (b"display(me@x)\n" * 400_000, "unreadable-file"),
        ("display(" + "(" * 100_000 + "me@x" + ")" * 100_000 + ")", "too-deep"),
        ("spindle f(x) :: <y> { y = 0 for i in (1 to 1000000000) { y += i } }\ndisplay(f(1))", "loop-too-long"),
        ("me<width> = 20000\nme<height> = 20000\ndisplay(1)", "setting-out-of-range"),
        ('load("missing.png")::p<r>\ndisplay(p@r)', "unreadable-source"),
        ('#include "patch.weft"\ndisplay(1)', "include-cycle"),
    ],
)
def test_a_bad_save_leaves_running_what_runs(counting: Performance, text: str | bytes, code: str) -> None:
    errors, swaps, said = counting.count("error"), counting.count("swap"), counting.stderr.count(GOES_ON)
    began = time.monotonic()
    counting.save(text)
    error = counting.wait_for("error", errors + 1)
    assert code in [d["code"] for d in error["diagnostics"]]
    assert 0 < error["latency_ms"] < (time.monotonic() - began) * 1e3
    counting.wait_for_words(GOES_ON, said + 1)
    counting.wait_for("compute", counting.count("compute") + 1)
    # The numbers follow each other: no tick was lost, and nothing began again.
    computed = [event["values"] for event in counting.events if event["event"] == "compute"]
    assert all(count == frame + 1 for count, frame, _ in computed)
    counting.save(f"{COUNTING}// {code}\n")
    assert counting.wait_for("swap", swaps + 1)["hash"] == counting.hash
    assert "Traceback" not in counting.stderr


def test_a_patch_that_starts_broken_plays_once_it_is_mended(patch: Path) -> None:
    patch.write_text("display(me@x")
    with Performance(patch, "--headless") as performance:
        performance.wait_for("error")
        performance.wait_for_words("fix the file and save it")
        performance.save(COUNTING)
        performance.wait_for("swap")
        performance.wait_for("compute")


def test_an_included_file_and_a_picture_are_watched_too(patch: Path) -> None:
    library, picture = patch.with_name("lib.weft"), patch.with_name("dot.png")
    library.write_text("spindle twice(x) :: <y> { y = x * 2 }\n")
    Image.new("RGB", (4, 4), (255, 0, 0)).save(picture)
    text = '#include "lib.weft"\nload("dot.png")::dot<r>\ndisplay(twice(me@x) * 0.5 * dot@r)\n'
    patch.write_text(text + "me<width> = 8\nme<height> = 8\n")
    with Performance(patch, "--headless") as performance:
        performance.wait_for("frames")
        library.write_text("spindle twice(x) :: <y> { y = x * 3 }\n")
        assert performance.wait_for("swap")["recompiled"] == ["visual/display"]
        Image.new("RGB", (4, 4), (0, 255, 0)).save(picture)
        performance.wait_for("swap", 2)


def test_what_a_refused_text_names_is_watched_so_that_mending_it_is_enough(patch: Path) -> None:
    library, picture = patch.with_name("lib.weft"), patch.with_name("dot.png")
    patch.write_text("display(1)\nme<width> = 8\nme<height> = 8\n")
    with Performance(patch, "--headless") as performance:
        performance.wait_for("started")
        library.write_text("level = nois\n")
        performance.save('#include "lib.weft"\ndisplay(level)\nme<width> = 8\nme<height> = 8\n')
        performance.wait_for("error")
        library.write_text("level = 0.5\n")
        performance.wait_for("swap")
        performance.save('load("dot.png")::dot<r>\ndisplay(dot@r)\nme<width> = 8\nme<height> = 8\n')
        performance.wait_for("error", 2)
        Image.new("RGB", (4, 4), (255, 0, 0)).save(picture)
        performance.wait_for("swap", 2)


def test_while_a_version_waits_for_its_beat_all_that_texts_name_is_watched(patch: Path) -> None:
    head = "me<width> = 8\nme<height> = 8\n"
    waits, broken = patch.with_name("waits.weft"), patch.with_name("broken.weft")
    patch.write_text(f"{head}display(0)\n")
    with Performance(patch, "--headless", "--quantize", "1024", "--osc", "0") as performance:
        port = int(performance.wait_for("started")["osc"].rpartition(":")[2])
        waits.write_text("level = 0.25\n")
        performance.save(f'{head}#include "waits.weft"\ndisplay(level)\n')
        performance.wait_for("saved")
        for attempt in count():  # the compile may have read what the first of them writes
            waits.write_text(f"level = 0.5 // {attempt}\n")
            if performance.happens("saved", 2, seconds=1.0):
                break
            assert attempt < 10, "what waits is not watched"
        broken.write_text("other = nois\n")
        performance.save(f'{head}#include "broken.weft"\ndisplay(other)\n')
        performance.wait_for("error")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as phone:
            phone.sendto(message("/weft/pause", [1]), ("127.0.0.1", port))  # a pause waits for no beat
        performance.wait_for("swap")
        broken.write_text("other = 0.5\n")
        assert performance.wait_for("swap", 2)["hash"] == performance.hash


def test_a_session_ends_with_its_limits_and_signals(patch: Path) -> None:
    patch.write_text(COUNTING)
    with Performance(patch, "--headless", "--frames", "5") as performance:
        assert performance.ended() == 0
        assert performance.events[-1] | {"t": 0} == {"t": 0, "event": "stopped", "reason": "frames"}
    with Performance(patch, "--headless") as performance:
        performance.wait_for("compute")
        performance.process.send_signal(2)
        assert performance.ended() == 130
        assert performance.events[-1]["reason"] == "interrupted"
    with Performance(patch.with_name("missing.weft"), "--headless") as performance:
        assert performance.ended() == 3
        performance.wait_for_words("missing.weft cannot be read")
