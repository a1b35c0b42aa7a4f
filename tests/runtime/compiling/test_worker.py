"""What happens in parallel with the picture while texts are compiled: undo, trial, and a compiler that is slow or
dies."""

from __future__ import annotations

import gc
import os
import resource
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from tests.support.performance import PATIENCE, Performance
from tests.support.together import all_but
from weft.backends.hardware import cores
from weft.child import BEAT, Child
from weft.runtime.compiling.compiler import Compiler, CompileResult, Saved, _Trial
from weft.runtime.compiling.process import CompileProcess, CompilerDiedError, TrialReport
from weft.runtime.compiling.worker import CompileWorker, PreemptionPolicy
from weft.runtime.hands.clock import Clock, Moment
from weft.runtime.hands.inputs import Inputs
from weft.runtime.program.program import LoadedProgram, Programs, Setup

SIZE = "me<width> = 32\nme<height> = 18\n"
COUNTING = SIZE + "count = prev(count) + 1\ndisplay(fract(count / 100), me@x, 0)\ncompute(count, me@bpm)\n"

# Enough different terms that compiling them takes seconds.
SLOW = SIZE + f"display({' + '.join(f'sin(me@x * {n})' for n in range(12_000))})\n"


STUBBORN = Path(__file__).parents[2] / "plugins" / "stubborn"


@pytest.fixture
def patch(tmp_path: Path) -> Path:
    path = tmp_path / "patch.weft"
    path.write_text(COUNTING)
    return path


def test_a_text_that_comes_back_is_not_compiled_again(patch: Path) -> None:
    with Performance(patch, "--headless") as performance:
        performance.wait_for("started")
        for number, text in enumerate((COUNTING.replace("100", "50"), COUNTING, COUNTING.replace("100", "50")), 1):
            performance.save(text)
            assert performance.wait_for("swap", number)["hash"] == performance.hash
        edited, undone, redone = (event for event in performance.events if event["event"] == "swap")
        assert (edited["recompiled"], edited["cached"]) == (["visual/display"], [])
        for again in (undone, redone):
            assert (again["recompiled"], again["cached"]) == ([], ["visual/display"])
            assert again["kept"] == ["compute/compute"]
            assert again["parse_ms"] == again["graph_ms"] == 0
        counts = [event["values"][0] for event in performance.events if event["event"] == "compute"]
        assert counts == sorted(counts), "what is remembered went on"


def test_a_text_that_comes_back_is_compiled_again_if_what_it_includes_has_changed(patch: Path) -> None:
    library = patch.with_name("library.weft")
    library.write_text("spindle f(x) :: v { out v = x }\n")
    text = SIZE + '#include "library.weft"\ndisplay(f(me@x))\n'
    with Performance(patch, "--headless") as performance:
        performance.wait_for("started")
        performance.save(text)
        performance.wait_for("swap")
        performance.save(COUNTING)
        performance.wait_for("swap", 2)
        library.write_text("spindle f(x) :: v { out v = 1 - x }\n")
        performance.save(text)
        assert performance.wait_for("swap", 3)["recompiled"] == ["visual/display"]


@pytest.mark.parametrize("strand", all_but(1, ["sqrt(-1 - me@x)", "0 / 0", "prev(n) + 0 / 0 * me@x"]))
def test_what_is_nowhere_a_number_is_refused(patch: Path, strand: str) -> None:
    with Performance(patch, "--headless") as performance:
        performance.wait_for("started")
        performance.save(SIZE + f"n = {strand}\ndisplay(n, 0, 0)\n")
        (found,) = performance.wait_for("error")["diagnostics"]
        assert (found["code"], found["line"], found["message"]) == (
            "not-a-number", 4, "r of display is not a number at any pixel, so it would be black"
        )  # fmt: skip
        performance.save(COUNTING + "// goes on\n")
        assert performance.wait_for("swap")["kept"] == ["visual/display", "compute/compute"]


def test_what_is_a_number_somewhere_or_becomes_one_is_played(patch: Path) -> None:
    with Performance(patch, "--headless") as performance:
        performance.wait_for("started")
        # 0/0 at the first tick alone, at the left half alone, and what is 0 on purpose.
        text = SIZE + "n = prev(n) + 1\ndisplay(prev(n) / prev(n), sqrt(me@x - 0.5), 0)\n"
        performance.save(text)
        assert performance.wait_for("swap")["hash"]


def test_settings_take_effect_live(patch: Path) -> None:
    with Performance(patch, "--headless") as performance:
        performance.wait_for("frames", when=lambda event: event["fps"] > 4)
        performance.save("me<bpm> = 90\nme<fps> = 2\n" + COUNTING.replace("me<width> = 32", "me<width> = 40"))
        performance.wait_for("swap")
        performance.wait_for("frames", when=lambda event: event["fps"] < 3)
        assert performance.wait_for("compute", when=lambda event: event["values"][1] == 90)


def test_a_slow_text_does_not_keep_the_next_one_waiting(patch: Path) -> None:
    with Performance(patch, "--headless") as performance:
        performance.wait_for("started")
        performance.save(SLOW)
        performance.wait_for("saved")
        performance.save(COUNTING.replace("100", "50"))
        performance.wait_for("swap")
        answered = [event["hash"] for event in performance.events if event["event"] in ("swap", "error")]
        assert answered == [performance.hash]


def test_at_the_start_a_save_takes_the_place_of_a_text_that_takes_long(patch: Path) -> None:
    patch.write_text(SLOW)
    with Performance(patch, "--headless") as performance:
        performance.wait_for_words("patch.weft is still being compiled")
        performance.save(COUNTING)
        performance.wait_for("started")
        performance.wait_for("compute")
        assert not any(event["event"] in ("swap", "error") for event in performance.events)


def test_at_the_start_a_text_that_takes_long_does_not_keep_the_end_waiting(patch: Path) -> None:
    patch.write_text(SLOW)
    with Performance(patch, "--headless") as performance:
        performance.wait_for_words("patch.weft is still being compiled")
        performance.process.send_signal(signal.SIGINT)
        assert performance.ended() == 130
        assert performance.stderr.endswith("weft: interrupted\n")
        assert "Traceback" not in performance.stderr


def test_it_is_said_that_a_save_takes_long_and_the_next_one_finds_the_same_process(patch: Path) -> None:
    with Performance(patch, "--headless") as performance:
        performance.wait_for("started")
        children = _children(performance)
        performance.save(SLOW)
        performance.wait_for_words("patch.weft is still being compiled")
        performance.save(COUNTING.replace("100", "50"))
        performance.wait_for("swap")
        assert _children(performance) == children


def test_what_a_text_may_cost_grows_with_each_that_is_given_up() -> None:
    patience = PreemptionPolicy()
    assert patience.runs_out(None), "nothing is lost of a text that has not begun"
    given_up = [patience.runs_out(spent) for spent in (0.4, 0.6, 0.6, 1.9, 2.1, 2.1, 7.9, 8.1)]
    assert given_up == [False, True, False, False, True, False, False, True]
    patience.finished(0.1)
    assert patience.runs_out(0.6)


def test_a_text_that_is_nearly_done_is_not_given_up() -> None:
    patience = PreemptionPolicy()
    for spent in (3.0, 0.1, 3.2, 2.9, 9.0):
        patience.finished(spent)
    assert not any(patience.runs_out(spent) for spent in (1.6, 3.0, 5.9))
    assert patience.runs_out(1.4)


BUSY, LOCKED = (COUNTING.replace("me@x", f"me@x * key@{key}") for key in "zl")


@pytest.fixture
def stubborn(patch: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """The options for a backend whose compiler may never end, see its package."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(STUBBORN), *filter(None, [os.environ.get("PYTHONPATH")])]))
    return "--headless", "--backend", "visual=stubborn"


@pytest.mark.long
def test_a_text_that_a_library_never_ends_with_is_overtaken(patch: Path, stubborn: tuple[str, ...]) -> None:
    patch.write_text(BUSY)
    with Performance(patch, *stubborn) as performance:
        performance.wait_for_words("patch.weft is still being compiled")
        performance.save(COUNTING)
        performance.wait_for("started")
        performance.save(BUSY)
        performance.wait_for("saved", 2)
        performance.save(COUNTING.replace("100", "50"))
        performance.wait_for("swap")
        assert not any(event["event"] in ("error", "restart") for event in performance.events)
        # Once for each of the texts, at the most.
        assert performance.stderr.count("still being compiled") <= 4


def test_at_the_start_it_is_said_what_else_is_waited_for(
    patch: Path, stubborn: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEFT_STUBBORN_DRIVER", "1")
    with Performance(patch, *stubborn) as performance:
        performance.wait_for_words("weft: waiting for drivers, to find out what can draw and play here\n")
        performance.process.send_signal(signal.SIGINT)
        assert performance.ended() == 130


@pytest.mark.long
def test_a_text_at_which_the_compiler_stands_still_is_refused(patch: Path, stubborn: tuple[str, ...]) -> None:
    with Performance(patch, *stubborn) as performance:
        performance.wait_for("started")
        performance.save(LOCKED)
        (found,) = performance.wait_for("error")["diagnostics"]
        assert found["message"] == "the compile process failed twice: it stood still"
        performance.save(COUNTING.replace("100", "50"))
        performance.wait_for("swap")


def test_of_fifty_saves_in_a_second_none_is_compiled_twice_and_the_last_plays(patch: Path) -> None:
    with Performance(patch, "--headless") as performance:
        performance.wait_for("started")
        for number in range(50):
            performance.save(COUNTING.replace("100", str(200 + number)))
            time.sleep(0.02)
        performance.wait_for("swap", when=lambda event: event["hash"] == performance.hash)
        performance.save(COUNTING + "// the end\n")
        performance.wait_for("swap", when=lambda event: event["hash"] == performance.hash)
        hashes = [event["hash"] for event in performance.events if event["event"] == "swap"]
        assert len(hashes) == len(set(hashes))
        assert not any(event["event"] == "error" for event in performance.events)


def test_a_slow_text_does_not_keep_the_end_waiting(patch: Path) -> None:
    with Performance(patch, "--headless") as performance:
        performance.wait_for("started")
        performance.save(SLOW)
        performance.wait_for("saved")
        performance.process.send_signal(signal.SIGINT)
        assert performance.ended() == 130
        assert not any(e["event"] == "swap" for e in performance.events)


@pytest.mark.long
def test_slow_texts_are_seen_even_if_each_is_saved_before_the_last_is_finished(patch: Path) -> None:
    with Performance(patch, "--headless") as performance:
        performance.wait_for("started")
        # What a text may cost is counted in the time of the processor, of which a busy machine gives it a part.
        deadline = time.monotonic() + 3 * PATIENCE
        count = 0
        while not any(event["event"] == "swap" for event in performance.events):
            assert time.monotonic() < deadline, "of all these saves none is ever seen"
            count += 1
            performance.save(SLOW + f"// {count}\n")
            time.sleep(0.3)


LOOP = "spindle slow(n) :: v {\n  v = 0\n  for i in (1 to n) { v += sin(v + me@x * i) * me@y }\n}\n"

# A hundred billion sines, each of which waits for the one before.
FOR_EVER = f"me<width> = 8192\nme<height> = 4096\n{LOOP}display(slow(4000 - mouse@x))\n"


def test_what_would_take_for_ever_is_refused(patch: Path) -> None:
    with Performance(patch, "--headless") as performance:
        performance.wait_for("started")
        performance.save(FOR_EVER)
        (found,) = performance.wait_for("error")["diagnostics"]
        assert found["code"] == "too-slow"
        performance.save(SIZE + LOOP + "display(slow(40 - mouse@x))\n")
        performance.wait_for("swap")


def test_what_would_take_for_ever_is_refused_on_a_busy_machine_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first frames of the smaller size seem to take as long as those of the larger one."""
    frame, delays = _Trial.frame, iter([1.0] * 8)

    def held_up(trial: _Trial, raw: bool = False) -> dict[str, Any]:
        found = frame(trial, raw)
        trial.seconds += next(delays, 0.0) if trial.pixels == 64 * 32 else 0.0
        return found

    monkeypatch.setattr(_Trial, "frame", held_up)
    compiler = Compiler.of(Setup("patch.weft"))
    (found,) = compiler.try_out(compiler.compile(Saved(FOR_EVER.encode(), 0.0)), Moment()).problems
    assert found.code == "too-slow"


def test_the_trial_goes_through_time_like_a_performance(patch: Path) -> None:
    with Performance(patch, "--headless") as performance:
        performance.wait_for("started")
        slope = "w<a> = sin(me@time)\nr<d> = (w@a - prev(w@a)) / (me@abstime - prev(me@abstime))\n"
        performance.save(SIZE + slope + "display(r@d * me@x, 0, 0)\n")
        performance.wait_for("swap")


def test_a_program_that_plays_already_is_not_tried_out_again() -> None:
    """Of a save that changes nothing, no more is found wrong than of the picture that plays."""
    compiler = Compiler.of(Setup("patch.weft"))
    ends, later = SIZE + "display(sqrt(2 - me@abstime) * {}, 0, 0)\n", Moment(tick=180, abstime=3.0)

    def problems(text: str, moment: Moment) -> list[str]:
        made = compiler.compile(Saved(text.encode(), 0.0))
        return [problem.code for problem in compiler.try_out(made, moment).problems]

    assert problems(ends.format(1), Moment()) == []
    assert problems("// more\n" + ends.format(1), later) == []
    assert problems(ends.format(0.5), later) == ["not-a-number"]
    assert problems(ends.format(1), later) == ["not-a-number"]


@pytest.mark.long
def test_files_beside_the_patch_are_not_taken_for_modules(patch: Path) -> None:
    for name in ("random", "socket", "numpy", "weft"):
        patch.with_name(f"{name}.py").write_text("raise SystemExit('this is no module of weft')\n")
    # As the console script does it: with a path that does not begin with the current folder.
    program = "import sys; sys.path = [p for p in sys.path if p]; from weft.cli import main; sys.exit(main())"
    with Performance(patch, "--headless", python=("-c", program), cwd=patch.parent) as performance:
        performance.wait_for("started")
        performance.save(COUNTING.replace("100", "50"))
        performance.wait_for("swap")


@pytest.mark.long
def test_a_closed_stderr_does_not_end_the_performance(patch: Path) -> None:
    with Performance(patch, "--headless", stderr=subprocess.PIPE) as performance:
        performance.wait_for("started")
        assert performance.process.stderr is not None
        performance.process.stderr.close()
        for number in range(1, 4):
            performance.save(COUNTING.replace("100", str(number)))
            performance.wait_for("swap", number)
        performance.save("display(")
        performance.wait_for("error")
        performance.process.send_signal(signal.SIGTERM)
        performance.ended()
        assert performance.events[-1]["reason"] == "terminated"


def test_ctrl_c_is_for_the_player_alone(patch: Path) -> None:
    with Performance(patch, "--headless", start_new_session=True) as performance:
        performance.wait_for("started")
        os.killpg(performance.process.pid, signal.SIGINT)
        assert performance.ended() == 130
        assert "Traceback" not in performance.stderr


@pytest.mark.parametrize(("number", "code"), all_but(1, [(signal.SIGINT, 130), (signal.SIGTERM, 0)]))
def test_it_ends_when_asked_to_though_signals_arrived_ignored(
    patch: Path, number: int, code: int
) -> None:
    # As under nohup, and in the background of a shell without job control.
    with _ignored(signal.SIGINT, signal.SIGHUP):
        performance = Performance(patch, "--headless")
    with performance:
        performance.wait_for("started")
        performance.process.send_signal(signal.SIGHUP)
        performance.wait_for("frames")
        performance.process.send_signal(number)
        assert performance.ended() == code
        assert performance.events[-1]["reason"] == ("interrupted" if code else "terminated")


@pytest.mark.long
def test_a_text_does_not_wait_for_what_is_prepared_in_a_pause(patch: Path) -> None:
    """The process leaves that for it, at any place, and answers as ever."""
    terms = (f"sin(me@x * {number} + me@y * x) * v" for number in range(200))
    large = SIZE + f"x = 0.5\nv = prev(v) * 0.5 + me@x\ndisplay({' + '.join(terms)})\n"
    process = CompileProcess(Setup(str(patch), "cpu"))

    def asked(number: int) -> CompileResult:
        text = large.replace("x = 0.5", f"x = 0.{number}")
        process.ask(Saved(text.encode(), 0.0), Moment())
        found = process.answer(CompileResult, lambda: False)
        assert process.answer(TrialReport, lambda: False) == TrialReport((), is_heard=False)
        assert found is not None
        assert found.compiled is not None
        alone = Compiler.of(Setup(str(patch), "cpu")).compile(Saved(text.encode(), 0.0))
        assert alone.compiled is not None
        assert [unit.hash for unit in found.compiled.units] == [unit.hash for unit in alone.compiled.units]
        return found

    try:
        for number in range(11, 17):
            asked(number)
        for number in range(21, 24):
            # The pause is as long as it takes to notice it, and a part of the preparation.
            time.sleep(BEAT + number % 4 * 0.05)
            asked(number)
    finally:
        process.end()


def test_a_process_that_works_does_not_start_when_it_is_asked_again(patch: Path) -> None:
    """A text that waits for the one before it is not said to wait for the start of the compiler."""
    process = CompileProcess(Setup(str(patch), "cpu"))
    try:
        assert process.is_starting
        process.ask(Saved(COUNTING.encode(), 0.0), Moment())
        assert process.answer(CompileResult, lambda: False) is not None
        process.ask(Saved(COUNTING.encode(), 0.0), Moment())
        assert not process.is_starting
        process.end()
        process.start()
        assert process.is_starting
    finally:
        process.end()


@pytest.mark.long
def test_an_answer_belongs_to_its_own_text(patch: Path) -> None:
    process = CompileProcess(Setup(str(patch)))
    try:
        texts = [COUNTING.replace("100", str(number)).encode() for number in range(3)]
        # The verdict about the first is never fetched, nor anything about the second.
        process.ask(Saved(texts[0], 0.0), Moment())
        first = process.answer(CompileResult, lambda: False)
        process.ask(Saved(texts[1], 0.0), Moment())
        process.ask(Saved(texts[2], 0.0), Moment())
        third = process.answer(CompileResult, lambda: False)
        assert process.answer(TrialReport, lambda: False) == TrialReport((), is_heard=False)
        expected = Compiler.of(Setup(str(patch))).compile(Saved(texts[2], 0.0))
        assert third is not None
        assert [unit.hash for unit in third.compiled.units] == [unit.hash for unit in expected.compiled.units]
        assert first is not None
        assert [unit.hash for unit in third.compiled.units] != [unit.hash for unit in first.compiled.units]
    finally:
        process.end()


@pytest.mark.long
def test_what_arrives_is_what_was_compiled_whatever_came_before(patch: Path) -> None:
    """Answers that are abandoned, or never read, have pieces that later ones are sent without."""
    process, setups = CompileProcess(Setup(str(patch), "cpu")), [Setup(str(patch), "cpu")]
    large = SIZE + f"slow = {' + '.join(f'sin(me@x * {n})' for n in range(300))}\ncompute(me@bpm)\ndisplay(slow / "

    def compare(found: CompileResult | None, text: str, name: str = "") -> CompileResult:
        expected = Compiler.of(setups[-1]).compile(Saved(text.encode(), 0.0, name=name)).compiled
        assert found is not None
        assert found.compiled is not None
        assert expected is not None
        assert found.compiled.units == expected.units
        assert (found.compiled.file, found.compiled.settings) == (expected.file, expected.settings)
        return found

    def asked(text: str, name: str = "") -> CompileResult:
        process.ask(Saved(text.encode(), 0.0, name=name), Moment())
        return compare(process.answer(CompileResult, lambda: False), text, name)

    def kernels(made: CompileResult) -> list[int]:
        assert made.compiled is not None
        return [id(unit.kernel) for unit in made.compiled.units]

    try:
        first = asked(f"{large}2)\n")
        assert kernels(asked(f"{large}2) // the same\n")) == kernels(first)
        for patience in range(12):
            # At any moment: before it has begun, in the middle, or when the answer is on its way.
            process.ask(Saved(f"{large}{patience + 3})\n".encode(), 0.0), Moment())
            deadline = time.monotonic() + patience * 0.005
            process.answer(CompileResult, lambda until=deadline: time.monotonic() > until)  # type: ignore[misc]
            asked(f"{large}{patience + 3}) // again\n")
        for number in (50, 51, 52):
            process.ask(Saved(f"{large}{number})\n".encode(), 0.0), Moment())
            time.sleep(0.1)
        asked(f"{large}51)\n")
        # Other patches, of which one has the same text, and the way back.
        asked(COUNTING, "other.weft")
        asked(f"{large}51)\n", "other.weft")
        assert set(kernels(asked(f"{large}2)\n"))) & set(kernels(first))
        setups.append(Setup(str(patch), "cpu", settings={"width": 48, "bpm": 90}))
        process.change(setups[-1])
        asked(f"{large}51)\n")
        process.kill()
        with suppress(CompilerDiedError):  # its end may be noticed before
            asked(f"{large}51)\n")
        found = asked(f"{large}51)\n")
        assert kernels(asked(f"{large}51) // the same\n")) == kernels(found)
    finally:
        process.end()


# --- what is heard after the verdict ----------------------------------------------------------------------------------

WAVE, STEADY = f"{SIZE}audio(sin(me@time * 440 * tau) / 2)\n", f"{SIZE}audio(0.7)\n"
WARNING = "this sound stays off zero"


def test_it_is_said_that_a_sound_stays_off_zero_once_it_plays(patch: Path) -> None:
    """Whenever it is saved, from the cache too; with another picture; and not with another sound."""
    texts = [f"{STEADY}display(me@x)\n", f"{STEADY}display(me@y)\n", f"{STEADY}display(me@x)\n"]
    with Performance(patch, "--headless") as performance:
        performance.wait_for("started")
        for number, text in enumerate(texts, 1):
            performance.save(text)
            performance.wait_for_words(WARNING, number)
            swap = performance.wait_for("swap", number)
        assert (swap["hash"], swap["cached"]) == (performance.hash, ["visual/display"])
        performance.save(f"{WAVE}display(me@y)\n")
        performance.wait_for("swap", 4)
        performance.save(texts[0])
        performance.wait_for_words(WARNING, 4)
        assert performance.count("error") == 0


def test_it_is_said_of_the_first_text_too(patch: Path) -> None:
    patch.write_text(f"{STEADY}display(me@x)\n")
    with Performance(patch, "--headless") as performance:
        performance.wait_for_words(WARNING)


@pytest.mark.long
def test_a_mistake_that_is_saved_in_the_meantime_does_not_hide_what_is_heard(patch: Path) -> None:
    process = CompileProcess(Setup(str(patch)))

    def asked(text: str) -> tuple[int, TrialReport | None]:
        number = process.ask(Saved(text.encode(), 0.0), Moment())
        made = process.answer(CompileResult, lambda: False)
        assert made is not None
        return number, None if made.compiled is None else process.answer(TrialReport, lambda: False)

    def heard() -> list[str]:
        deadline = time.monotonic() + PATIENCE
        while (found := process.heard()) is None:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        return [problem.code for problem in found.problems]

    try:
        plays, tried = asked(STEADY)
        assert tried == TrialReport((), is_heard=True)
        broken, tried = asked("display(")
        assert tried is None
        dark, tried = asked(f"{WAVE}display(0 / 0)\n")
        assert tried is not None
        assert [problem.code for problem in tried.problems] == ["not-a-number"]
        assert [process.listens_to(number) for number in (plays, broken, dark)] == [True, False, False]
        assert heard() == ["steady-sound"]
        assert not process.listens_to(plays)
        # The sound of a program that has been replaced does not matter any more.
        asked(STEADY)
        last, _ = asked(WAVE)
        assert process.listens_to(last)
        assert heard() == []
        assert asked(f"{WAVE}display(me@x)\n")[1] == TrialReport((), is_heard=False)
    finally:
        process.end()


def hang_up(descriptor: str, lifeline: str) -> None:
    """A compile process that closes its socket after the first message, and stays for a while."""
    with Connection(int(descriptor)) as player:
        player.recv()
    time.sleep(PATIENCE)


@pytest.mark.long
def test_a_compiler_that_is_gone_when_the_setup_changes_is_replaced(patch: Path) -> None:
    setup, wake = Setup(str(patch)).decided(), threading.Event()
    _, loader = setup.open()
    worker = CompileWorker(setup, Programs(loader), Clock(), Inputs(), wake)
    gone = Child(f"{__name__}:hang_up")
    try:
        worker.start(gone)
        assert gone.connection.poll(PATIENCE)
        worker.change(setup)
        worker.submit(Saved(COUNTING.encode(), time.monotonic(), is_first=True))
        assert wake.wait(PATIENCE)
        (result,) = worker.take().results
        assert result.loaded is not None
    finally:
        worker.close()


def look_when_interrupted(descriptor: str, lifeline: str) -> None:
    """A compile process that answers the first text, and then looks for messages only when a signal comes, as the real
    one does in a pause in which it has much to do."""
    interrupted = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: interrupted.set())
    with suppress(EOFError, OSError), Connection(int(descriptor)) as player:
        player.recv()
        number = player.recv().number
        player.send((number, "begun"))
        player.send((number, CompileResult(None, ())))
        while interrupted.wait(PATIENCE):
            interrupted.clear()
            while player.poll():
                message = player.recv()
                if message is None:
                    player.send((number, "abandoned"))
                else:
                    number = message.number
                    player.send((number, "begun"))


@pytest.mark.long
def test_better_code_that_is_given_up_does_not_wait_for_what_is_done_in_a_pause(patch: Path) -> None:
    """Otherwise the text for which it is given up would wait, too."""
    process = CompileProcess(Setup(str(patch)))
    process.ahead = Child(f"{__name__}:look_when_interrupted")
    nothing = Compiler.of(Setup(str(patch))).compile(Saved(COUNTING.encode(), 0.0)).compiled
    assert nothing is not None
    try:
        process.start()
        process.ask(Saved(COUNTING.encode(), 0.0), Moment())
        assert process.answer(CompileResult, lambda: False) is not None
        given_up = threading.Thread(target=lambda: process.improve((), frozenset(), nothing, lambda: True))
        given_up.start()
        given_up.join(PATIENCE)
        assert not given_up.is_alive()
    finally:
        process.end()


@pytest.mark.long
def test_a_program_is_not_kept_after_a_change_of_the_setup(patch: Path) -> None:
    """What it has open, such as films, would stay open with it."""
    setup, wake = Setup(str(patch)).decided(), threading.Event()
    _, loader = setup.open()
    programs = Programs(loader)
    worker = CompileWorker(setup, programs, Clock(), Inputs(), wake)

    def plays(number: int) -> LoadedProgram:
        """A new text that plays. It shares no subgraph with those before."""
        wake.clear()
        text = COUNTING.replace("100", str(number)).replace("me@bpm", f"me@bpm + {number}")
        worker.submit(Saved(text.encode(), time.monotonic(), is_first=number == 1))
        assert wake.wait(PATIENCE)
        (result,) = worker.take().results
        assert result.loaded is not None
        programs.enter(result.loaded)
        return result.loaded

    try:
        first = weakref.ref(plays(1))
        worker.change(setup)
        plays(2)
        plays(3)
        gc.collect()
        assert first() is None
    finally:
        worker.close()


def test_a_compiler_that_dies_is_replaced(patch: Path) -> None:
    with Performance(patch, "--headless") as performance:
        performance.wait_for("started")
        performance.save(COUNTING.replace("100", "50"))
        performance.wait_for("swap")
        for victim in _children(performance):
            os.kill(victim, signal.SIGKILL)
        performance.save(COUNTING.replace("100", "25"))
        assert performance.wait_for("swap", 2)["recompiled"] == ["visual/display"]


@pytest.mark.long
@pytest.mark.skipif(not sys.platform.startswith("linux") or cores() < 2, reason="there is no other core to be told of")
def test_a_compiler_keeps_off_the_core_on_which_the_picture_is_drawn(patch: Path) -> None:
    with Performance(patch, "--headless") as performance:
        performance.wait_for("started")
        allowed = os.sched_getaffinity(performance.process.pid)
        for number in range(2):
            if number:
                for victim in _children(performance):
                    os.kill(victim, signal.SIGKILL)
                performance.wait_for("restart")
            performance.save(COUNTING.replace("100", str(number + 50)))
            performance.wait_for("swap", number + 1)
            performance.wait_for("frames", performance.count("frames") + 1)
            assert any(len(os.sched_getaffinity(each)) == len(allowed) - 1 for each in _children(performance))
        assert os.sched_getaffinity(performance.process.pid) == allowed


@pytest.mark.parametrize("text", all_but(1, ["", SLOW]))
def test_a_compiler_that_stands_still_is_replaced(patch: Path, text: str) -> None:
    with Performance(patch, "--headless") as performance:
        performance.wait_for("started")
        if text:
            performance.save(text)
            performance.wait_for("saved")
        for victim in _children(performance):
            os.kill(victim, signal.SIGSTOP)
        told = performance.wait_for("restart")
        assert told["process"] == "compile"
        assert told["reason"] == "the compile process stood still and is started again"
        performance.wait_for_words(told["reason"])
        performance.save(COUNTING.replace("100", "25"))
        performance.wait_for("swap", when=lambda event: event["hash"] == performance.hash)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems limit no process that runs")
def test_a_program_that_needs_more_memory_than_there_is_leaves_the_last_one(patch: Path) -> None:
    with Performance(patch, "--headless") as performance:
        performance.wait_for("started")
        _, hard = resource.prlimit(performance.process.pid, resource.RLIMIT_AS)
        resource.prlimit(performance.process.pid, resource.RLIMIT_AS, (4 << 30, hard))
        many = [f"d{k} = delay(me@time, 9, 60000000)" for k in range(10)]
        performance.save("\n".join([COUNTING, *many, f"compute(d: {' + '.join(f'd{k}' for k in range(10))})"]))
        (told,) = performance.wait_for("error")["diagnostics"]
        assert told["code"] == "not-enough-memory"
        assert "4.8 GB" in told["message"]
        assert "480.0 MB" in told["hint"]
        performance.save(COUNTING.replace("100", "50"))
        assert performance.wait_for("swap")["kept"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems limit no process that runs")
def test_a_compiler_that_runs_out_of_memory_says_so(patch: Path) -> None:
    with Performance(patch, "--headless") as performance:
        performance.wait_for("started")
        performance.save(COUNTING.replace("100", "50"))
        performance.wait_for("swap")
        (compiler,) = _children(performance)
        _, hard = resource.prlimit(compiler, resource.RLIMIT_AS)
        pages = int(Path(f"/proc/{compiler}/statm").read_text().split()[0])
        resource.prlimit(compiler, resource.RLIMIT_AS, (pages * resource.getpagesize() + (8 << 20), hard))
        performance.save(SLOW)
        (told,) = performance.wait_for("error")["diagnostics"]
        assert told["code"] == "not-enough-memory"
        assert "ran out of memory" in told["message"]
        assert "bug" not in told["hint"]
        performance.save(COUNTING.replace("100", "25"))
        performance.wait_for("swap", 2)


@pytest.mark.parametrize("text", all_but(1, ["", SLOW]))
def test_nothing_is_left_of_a_performance_that_was_killed(patch: Path, text: str) -> None:
    with Performance(patch, "--headless") as performance:
        performance.wait_for("started")
        children = _children(performance)
        if text:
            performance.save(text)
            performance.wait_for("saved")
        performance.process.kill()
        performance.process.wait()
    deadline = time.monotonic() + PATIENCE
    while any(_alive(child) for child in children):
        assert time.monotonic() < deadline, "the compiler outlives the performance"
        time.sleep(0.02)


def _children(performance: Performance) -> list[int]:
    """The processes that it has started: without sound and without a device to look for, those that compile."""
    command = ["pgrep", "-P", str(performance.process.pid)]
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        found = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False).stdout.split()
        if found:
            return [int(pid) for pid in found]
        time.sleep(0.02)
    raise AssertionError("there is no process that compiles")


@contextmanager
def _ignored(*numbers: int) -> Iterator[None]:
    """What is started meanwhile inherits that these signals are ignored."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
