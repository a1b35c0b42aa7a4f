"""std.control against simulations, tick by tick: in sounds and pictures, by the reference machine and machine code."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np
import pytest

from tests.std.values import Values, line
from tests.support.beats import given_beats
from weft.backends.executors import Executor
from weft.backends.launch import Launch, StateMemory, picture_coords
from weft.backends.native.executor import NativeExecutor
from weft.backends.vm import ReferenceExecutor
from weft.contexts import ContextTable
from weft.errors import Source, WeftError
from weft.runtime.compiling.stages import Request, build

# Steps of time that are exact, so that a number is drawn at the same tick in every order of summation.
RATE, FPS = 8192, 64
MACHINES: dict[str, Callable[[], Executor]] = {"vm": ReferenceExecutor, "native": NativeExecutor}
USES = "#use std.control\n#use std.music\n"
NEVER = 1e9

# The trigger is the mouse: on at the start, on for a single tick, off for one, below 0, no number, and at random.
TRIGGER = np.concatenate([
    [1, 1, 0, 0, 1, 0, 0.2, 0, 1, -1, 1, np.nan, 1, np.nan, np.nan, 0],
    np.repeat([0, 1, 0, 1, 0], [3, 40, 30, 9, 60]),
    np.random.default_rng(3).choice([0, 0, 1, 0.5, np.nan], 60),
])  # fmt: skip
SIGNAL = np.random.default_rng(4).normal(size=len(TRIGGER)) * np.repeat([1, 0.1], [100, len(TRIGGER) - 100])
SIGNAL[20] = np.nan


def played(
    outputs: str, machine: str, trigger: Values, signal: Values, start: float = 0.0, tier: int = 2
) -> Values:
    """Outputs of a sound, sample by sample: [outputs, samples]."""
    (unit,) = build(Request(Source("test.weft", f"{USES}me<rate> = {RATE}\naudio({outputs})"), ContextTable())).units
    executor = MACHINES[machine]()
    codes = {False: executor.translate(unit.kernel, False, tier)} if isinstance(executor, NativeExecutor) else {}
    times = start + np.arange(len(trigger)) / RATE
    coords = {"x": 0.5, "y": 0.5, "channel": 0.0, "abstime": times, "mouse@x": trigger, "mouse@y": signal}
    launch = Launch((1, len(times)), coords, {"dt": 1 / RATE, **given_beats()})
    return np.array(executor.load(unit.kernel, codes).planes(StateMemory(unit.kernel.slots), launch)[:, 0], np.float64)


def shown(outputs: str, machine: str, trigger: Values, signal: Values, times: Values) -> Values:
    """Outputs of a picture of one pixel, frame by frame."""
    sinks = "".join(f'display({each}, to: "{n}")\n' for n, each in enumerate(outputs.split("; ")))
    units = build(Request(Source("test.weft", USES + sinks), ContextTable())).units
    executor = MACHINES[machine]()
    rows = {}
    for kernel in (unit.kernel for unit in units):
        loaded, memory = executor.load(kernel), StateMemory(kernel.slots, (1, 1))
        frames = []
        for tick, (time, x, y) in enumerate(zip(times, trigger, signal, strict=True)):
            values = {"mouse@x": x, "mouse@y": y, "absframe": tick, "dt": 1 / FPS, **given_beats()}
            coords = picture_coords(1, 1, float(time), dtype=np.float32 if machine == "native" else np.float64)
            uniforms = {name: float(values[name]) for name in kernel.uniforms}
            frames.append(loaded.planes(memory, Launch((1, 1), coords, uniforms))[:, 0, 0].astype(np.float64))
        rows.update(zip((int(name[8:].split(".")[0]) for name in kernel.outputs), np.transpose(frames), strict=True))
    return np.array([rows[n] for n in sorted(rows)])


# --- the simulations: each gives what a word is at every tick


def rises(trigger: Values) -> list[bool]:
    on = [bool(x > 0) for x in trigger]
    return [now and not before for before, now in pairwise([False, *on])]


def passed(times: Values) -> list[float]:
    return [0.0, *np.maximum(np.diff(times), 0)]


def remains(seconds: float, dt: float) -> float:
    return float(10 ** (-3 * dt / seconds)) if seconds > 0 else 0.0


def raised(before: float, seconds: float, dt: float) -> float:
    return min(1.0, before + dt / seconds) if seconds > 0 else 1.0


def since(trigger: Values, times: Values) -> Iterator[float]:
    age = NEVER
    for risen, dt in zip(rises(trigger), passed(times), strict=True):
        age = 0 if risen else NEVER if age == NEVER else age + dt
        yield age


def latch(values: Values, trigger: Values) -> Iterator[float]:
    kept = values[0]
    for value, risen in zip(values, rises(trigger), strict=True):
        kept = value if risen else kept
        yield kept


def perc(trigger: Values, times: Values, attack: float, fall: float) -> Iterator[float]:
    level, rising = 0.0, False
    for risen, dt in zip(rises(trigger), passed(times), strict=True):
        rising = risen or (rising and level < 1)
        level = raised(level, attack, dt) if rising else level * remains(fall, dt)
        yield level


def adsr(trigger: Values, times: Values, attack: float, fall: float, sustain: float, release: float) -> Iterator[float]:
    level, stage = 0.0, "release"
    for on, dt in zip(trigger > 0, passed(times), strict=True):
        stage = "release" if not on else "hold" if level >= 1 else "attack" if stage == "release" else stage
        if stage == "attack":
            level = raised(level, attack, dt)
        else:
            target, seconds = (0, release) if stage == "release" else (sustain, fall)
            level = target + (level - target) * remains(seconds, dt)
        yield level


def follow(signal: Values, times: Values, attack: float, release: float) -> Iterator[float]:
    level = 0.0
    for target, dt in zip(np.nan_to_num(np.abs(signal)), passed(times), strict=True):
        level = target + (level - target) * remains(attack if target > level else release, dt)
        yield level


def drawn(counts: Values, seed: int) -> Values:
    """The numbers of chance."""
    return line("std.control", f"hash(me@x, {seed})", counts)


def expected(times: Values, tick: float) -> dict[str, Values]:
    """Every word with the trigger `mouse@x` and the signal `mouse@y`, where a tick takes this many seconds."""
    t, x = TRIGGER, SIGNAL
    risen = np.array(rises(t))
    count = np.cumsum(risen)
    open_ = t > 0
    place = 0.125 * np.arange(len(t))
    share = place % 1
    glided = drawn(place // 1, 6) + (drawn(place // 1 + 1, 6) - drawn(place // 1, 6)) * share**2 * (3 - 2 * share)
    long, short = 7.5 * tick, 2.5 * tick
    found = {
        "rise(t)": risen,
        "fall(t)": [before and not now for before, now in pairwise([False, *open_])],
        "since(t)": list(since(t, times)),
        "tally(t)": count,
        "every(3, t)": open_ & ((count - 1) % 3 == 0),
        "latch(me@abstime, t)": list(latch(times, t)),
        "random(t)": drawn(count, 0),
        "random(t, 5)": drawn(count, 5),
        f"perc(t, {short}, {long})": list(perc(t, times, short, long)),
        f"perc(t, 0, {long})": list(perc(t, times, 0, long)),
        f"perc(t, {long}, 0)": list(perc(t, times, long, 0)),
        "perc(t)": list(perc(t, times, 0.005, 0.3)),
        f"adsr(t, {short}, {long}, 0.4, {short})": list(adsr(t, times, short, long, 0.4, short)),
        f"adsr(t, {long}, 0, 0.4, {long})": list(adsr(t, times, long, 0, 0.4, long)),
        f"adsr(t, 0, {long}, 0, 0)": list(adsr(t, times, 0, long, 0, 0)),
        "adsr(t)": list(adsr(t, times, 0.01, 0.2, 0.6, 0.3)),
        f"follow(x, {short}, {long})": list(follow(x, times, short, long)),
        "follow(x, 0)": list(follow(x, times, 0, 0.3)),
        f"steps({0.125 / tick}, 6)": drawn(place // 1, 6),
        f"wander({0.125 / tick}, 6)": glided,
        "steps()": drawn(np.floor(2 * tick * np.arange(len(t))), 0),
        "steps(0 / 0)": drawn(np.zeros(len(t)), 0),
    }
    return {word: np.asarray(values, np.float64) for word, values in found.items()}


def outputs_of(words: dict[str, Values]) -> list[str]:
    return [word.replace("(t", "(mouse@x").replace(", t)", ", mouse@x)").replace("(x", "(mouse@y") for word in words]


def check(found: Values, words: dict[str, Values], **bounds: float) -> None:
    for plane, (word, values) in zip(found, words.items(), strict=True):
        np.testing.assert_allclose(plane, values, err_msg=word, **bounds)


# --- the tests


@pytest.mark.parametrize(("machine", "tier"), [("vm", 1), ("native", 1), ("native", 2)])
def test_the_words_of_a_sound_are_their_simulations(machine: str, tier: int) -> None:
    words = expected(np.arange(len(TRIGGER)) / RATE, 1 / RATE)
    wanted = outputs_of(words)
    texts = [", ".join(wanted[n : n + 8]) for n in range(0, len(wanted), 8)]
    parts = [played(text, machine, TRIGGER, SIGNAL, tier=tier) for text in texts]
    check(np.concatenate(parts), words, rtol=1e-9, atol=1e-12)


@pytest.mark.long
@pytest.mark.parametrize("machine", MACHINES)
def test_the_words_of_a_picture_are_their_simulations(machine: str) -> None:
    times = np.arange(len(TRIGGER)) / FPS
    words = expected(times, 1 / FPS)
    # What is the same for a whole picture has double precision until it is drawn.
    check(shown("; ".join(outputs_of(words)), machine, TRIGGER, SIGNAL, times), words, rtol=1e-6, atol=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("machine", MACHINES)
def test_a_trigger_may_differ_from_pixel_to_pixel(machine: str) -> None:
    times = np.arange(len(TRIGGER)) / FPS
    words = expected(times, 1 / FPS)
    wanted = [word.replace("mouse@x", "mouse@x * (me@x < 0.6)") for word in outputs_of(words)]
    check(shown("; ".join(wanted), machine, TRIGGER, SIGNAL, times), words, rtol=1e-5, atol=1e-5)


def test_frames_that_take_long_and_a_clock_that_stops_or_starts_anew_are_followed() -> None:
    steps = np.random.default_rng(5).choice([0, 1, 1, 1, 5], len(TRIGGER)) / FPS
    times = np.cumsum(steps)
    times[100:] -= times[100]
    t, x = TRIGGER, SIGNAL
    words = {
        "since(mouse@x)": np.array(list(since(t, times))),
        "perc(mouse@x, 0.1, 0.5)": np.array(list(perc(t, times, 0.1, 0.5))),
        "adsr(mouse@x, 0.1, 0.2, 0.5, 0.5)": np.array(list(adsr(t, times, 0.1, 0.2, 0.5, 0.5))),
        "follow(mouse@y, 0.1, 0.5)": np.array(list(follow(x, times, 0.1, 0.5))),
    }
    check(shown("; ".join(words), "vm", t, x, times), words, rtol=1e-9, atol=1e-12)


def test_times_are_large_before_a_trigger_rises_and_exact_after_a_day() -> None:
    trigger = (np.arange(3000) >= 10) * 1.0
    (found,) = played("since(mouse@x)", "native", trigger, trigger, start=86_400.0)
    assert (found[:10] == NEVER).all()
    np.testing.assert_allclose(found[10:], np.arange(2990) / RATE, atol=1e-9)


def test_a_word_is_called_for_each_member_of_a_bundle() -> None:
    calls = {
        "adsr({}, 0.002, 0.01)": "<mouse@x, 1 - mouse@x>",
        "perc({}, <0, 0.001>)": "<mouse@x, 1 - mouse@x>",
        "random({}, <1, 2>)": "<mouse@x, mouse@x>",
        "wander(<900, 500>, <3, 4>) + 0 * {}": "<0, 0>",
    }
    for call, bundle in calls.items():
        first, second = bundle[1:-1].split(", ")
        one = call.replace("<0, 0.001>", "0").replace("<1, 2>", "1").replace("<900, 500>, <3, 4>", "900, 3")
        other = call.replace("<0, 0.001>", "0.001").replace("<1, 2>", "2").replace("<900, 500>, <3, 4>", "500, 4")
        at_once = played(call.format(bundle), "vm", TRIGGER, SIGNAL)
        singly = played(f"{one.format(first)}, {other.format(second)}", "vm", TRIGGER, SIGNAL)
        assert (at_once == singly).all()
        assert np.ptp(at_once[0] - at_once[1]) > 0.1


def test_a_stroke_from_silence_is_that_of_std_music() -> None:
    trigger = (np.arange(2000) > 50) * 1.0
    formula = "ad(since(mouse@x) + 1 / me@rate, 16 / me@rate, 0.1)"
    stroke, wanted = played(f"perc(mouse@x, 16 / me@rate, 0.1), {formula}", "native", trigger, trigger)
    np.testing.assert_allclose(stroke[51:], wanted[51:], rtol=1e-9)
    assert not stroke[:51].any()


def test_wandering_goes_through_the_steps_at_all_speeds() -> None:
    speed = "(1 + 400 * mouse@y)"
    moved = np.linspace(0, 1, 4096)
    walked, stepped, place = played(
        f"wander({speed}, 2), steps({speed}, 2), integrate({speed})", "native", moved, moved
    )
    assert len(np.unique(stepped)) == place[-1] // 1 + 1 > 90
    begun = np.flatnonzero(np.diff(np.floor(place))) + 1
    assert (np.abs(walked[begun] - stepped[begun]) < 3 * (place[begun] % 1) ** 2 + 1e-9).all()
    assert (walked >= 0).all()
    assert (walked < 1).all()


@pytest.mark.parametrize("machine", MACHINES)
def test_a_count_is_a_trigger_of_which_no_event_is_lost(machine: str) -> None:
    """It had counted 5 events when it was first seen; then come 1, 1 in the next tick, and 3 in one tick. After all it
    begins again, as where the other program does."""
    counts = np.array([5, 5, 6, 7, 7, 10, 10, 2, 3, 3], np.float64)
    count = 'osc("/kick")@count'
    words = {
        "rise": [0, 0, 1, 1, 0, 1, 0, 0, 1, 0], "tally": [0, 0, 1, 2, 2, 5, 5, 5, 6, 6], "fall": [0] * 10,
        "rises": [0, 0, 1, 1, 0, 3, 0, 0, 1, 0], "held": [0] * 10, "every_2": [0, 0, 1, 0, 0, 1, 0, 0, 0, 0],
        "every_1": [0, 0, 1, 1, 0, 1, 0, 0, 1, 0], "latch": [0, 0, 2, 3, 3, 5, 5, 5, 8, 8],
    }  # fmt: skip
    calls = [
        f"latch(me@abssample, {count})" if word == "latch" else f"every({word[-1]}, {count})" if "_" in word
        else f"{word}({count})" for word in words
    ]  # fmt: skip
    text = f"{USES}me<rate> = {RATE}\naudio({', '.join(calls)})"
    (unit,) = build(Request(Source("test.weft", text), ContextTable())).units
    executor = MACHINES[machine]()
    (name,) = [name for name, _ in unit.kernel.coords if name.endswith("@count")]
    coords = {"x": 0.5, "y": 0.5, "channel": 0.0, "abstime": np.arange(10) / RATE, name: counts}
    launch = Launch((1, 10), coords, {"dt": 1 / RATE, "abssample": 0, **given_beats()})
    found = executor.load(unit.kernel).planes(StateMemory(unit.kernel.slots), launch)[:, 0]
    for (word, expected), values in zip(words.items(), found, strict=True):
        np.testing.assert_array_equal(values, expected, word)


def test_a_sum_of_counts_is_one_and_what_else_is_computed_of_one_is_told() -> None:
    two = 'key@a@count + midi_note()@count'
    for text in (f"rise({two})", f"k<v> = {two}\ndisplay(tally(k))", "rise(pad@a@count % 2 == 0)"):
        shown = text if "display" in text else f"display({text})"
        assert build(Request(Source("test.weft", USES + shown), ContextTable())).units
    for text in (
        "rise(key@a@count * me@x)", "perc(max(key@a@count - 3, 0))", "tally(if mouse@left then 0 else key@a@count)",
    ):  # fmt: skip
        with pytest.raises(WeftError) as failure:
            build(Request(Source("test.weft", f"{USES}display({text})"), ContextTable()))
        (found,) = failure.value.diagnostics
        assert found.code == "count-as-level"
        assert found.span is not None
        assert found.span.text in text


@pytest.mark.parametrize("machine", MACHINES)
def test_a_phase_begins_again_with_its_trigger(machine: str) -> None:
    trigger = np.array([0, 0, 0, 1, 1, 0, 1, 0, 0], np.float64)
    found = played("phasor(1024, mouse@x), phasor(1024, reset: 0), phasor(1024)", machine, trigger, trigger)
    np.testing.assert_allclose(found[0], np.array([0, 1, 2, 0, 1, 2, 0, 1, 2]) / 8)
    np.testing.assert_allclose(found[1:], [np.arange(9) % 8 / 8] * 2)
