"""Patterns are what their notation says on every machine: held against a reference of it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from tests.support.beats import given_beats
from tests.support.devices import DRAWING, cuda, device, embedded_graphics, executor_on, graphics, opencl, wgpu
from tests.support.kernels import MACHINES
from tests.support.notation import MODELS, Faster, Leaf, Model, Now, Steps, Together, Turns, events, whole
from tests.support.parity.cases import case_of
from tests.support.parity.rule import compare
from tests.support.together import examples
from tests.support.tolerances import OFF_SHARE, SERIES
from weft.backends.executors import Executor
from weft.backends.launch import Floats, Launch, StateMemory
from weft.backends.native.executor import NativeExecutor
from weft.backends.vector.machine import VectorExecutor
from weft.codegen.kernel import Kernel
from weft.contexts import ContextTable
from weft.errors import Source, Span, WeftError
from weft.graph.patterns import PatternHit, PatternTracks, pattern_of
from weft.runtime.compiling.stages import Request, build
from weft.syntax.ast import Text

__all__ = ["cuda", "device", "embedded_graphics", "graphics", "opencl", "wgpu"]

def euclid_model(node: Model, hits: str) -> Steps:
    """A rhythm, written out: `x..x..x.`."""
    return Steps(tuple((node if hit == "x" else Leaf("~", None), 1, 1) for hit in hits))


BPM = 90
OUTPUTS = ("value", "gate", "since", "index", "step")

# More moments than this without an event, and there is none.
FARTHEST = 300


def expected(model: Model, beats: Fraction, per: Fraction, voice: int) -> tuple[float, ...]:
    """The outputs of a voice at a moment."""
    time = beats / per
    now = model.at(time, False, voice)
    latest = now
    for _ in range(FARTHEST):
        if latest.value is not None:
            break
        latest = model.at(latest.begin, True, voice)
    else:
        return (0.0, 0.0, math.inf, 0.0, math.nan)
    gate = now.value is not None
    following = model.at(now.end, False, voice)
    if gate and following.value is not None and following.begin == now.end:
        gap = min(Fraction(2, 100) * BPM / 60, (now.end - now.begin) * per / 2)
        gate = beats < now.end * per - gap
    index = onsets(model, Fraction(math.floor(latest.begin)), latest.begin, voice)
    step = onsets(model, Fraction(0), latest.begin, voice)
    if latest.begin < 0:
        step = -onsets(model, latest.begin, Fraction(0), voice)
    since = float(beats - latest.begin * per) * 60 / BPM
    return (latest.value or 0.0, float(gate), since, float(index), float(step))


def onsets(model: Model, begin: Fraction, end: Fraction, voice: int) -> int:
    """How many events begin between two moments, the first included."""
    count = 0
    while end > begin:
        now = model.at(end, True, voice)
        count += now.value is not None and now.begin >= begin
        end = now.begin
    return count


# --- patterns of all kinds --------------------------------------------------------------------------------------------

def kernel_of(model: Model, per: str, voice: int) -> Kernel | None:
    """A sound of the outputs of a voice; None if the pattern has too many events, which other tests are about."""
    names = [f"p@{name}{voice + 1 if voice else ''}" for name in OUTPUTS]
    source = f'me<bpm> = {BPM}\np<{", ".join(n[2:] for n in names)}> = pattern("{whole(model)}", per: {per})\n'
    try:
        (unit,) = build(Request(Source("test.weft", f"{source}audio({', '.join(names)})"), ContextTable())).units
    except WeftError as failure:
        if {d.code for d in failure.diagnostics} != {"pattern-too-large"}:
            raise
        return None
    return unit.kernel


def values(kernel: Kernel, machine: str, times: Sequence[float], bpm: float = BPM) -> Floats:
    coords = {"abstime": np.array(times), "x": 0.5, "y": 0.5, "channel": 1.0}
    launch = Launch((1, len(times)), coords, given_beats(bpm))
    return np.asarray(MACHINES[machine].load(kernel).planes(StateMemory(kernel.slots), launch)[:, 0], np.float64)


def moments(model: Model, per: Fraction, voice: int, candidates: Sequence[Fraction]) -> dict[Fraction, Sequence[float]]:
    """What is expected at the moments at which nothing changes, by their beats."""
    found: dict[Fraction, Sequence[float]] = {}
    nearby = (Fraction(-1, 10**5), Fraction(1, 10**5))
    for beats in candidates:
        now = expected(model, beats, per, voice)
        others = [expected(model, beats + by, per, voice) for by in nearby]
        if all((o[0], o[1], *o[3:]) == (now[0], now[1], *now[3:]) for o in others):
            found[beats] = now
    return found


def assert_sounds(model: Model, per: str, voice: int, candidates: Sequence[Fraction], machines: Sequence[str]) -> None:
    kernel = kernel_of(model, per, voice)
    if kernel is None:
        return
    wanted = moments(model, Fraction(per), voice, candidates)
    times = [float(beats * 60 / BPM) for beats in wanted]
    for machine in machines if times else ():
        got = values(kernel, machine, times)
        for place, numbers in enumerate(wanted.values()):
            if math.isnan(numbers[4]):
                assert (got[0, place], got[1, place], got[2, place] > 1e6) == (0, 0, True), model.text
            else:
                assert SERIES.agreement(got[:, place], numbers).all(), (model.text, per, voice, times[place], machine)


# --- the tables of events, in exact fractions -------------------------------------------------------------------------

CYCLES_COMPARED = 8


def tracks_of(text: str) -> PatternTracks | None:
    """The tables of a pattern; None if it has too many events."""
    source = Source("test.weft", f'"{text}"')
    try:
        tracks = pattern_of(Text(text, Span(source, 0, len(text) + 2)), Fraction(4), 0.0).tracks
    except WeftError as failure:
        if {d.code for d in failure.diagnostics} != {"pattern-too-large"}:
            raise
        return None
    return tracks if tracks.failure is None else None


def hits_of(tracks: PatternTracks, voice: int) -> list[PatternHit]:
    """The events of a voice in the first cycles."""
    track = tracks.by_source[voice]
    moves = range(0, CYCLES_COMPARED, track.cycles)
    hits = (hit._replace(begin=hit.begin + by, end=hit.end + by) for by in moves for hit in track.hits)
    return [hit for hit in hits if hit.begin < CYCLES_COMPARED]


def now_of(hit: PatternHit) -> Now:
    return Now(hit.begin, hit.end, hit.value)


@settings(max_examples=examples(200), deadline=None, suppress_health_check=list(HealthCheck))
@given(MODELS)
def test_events_are_where_the_reference_has_them(model: Model) -> None:
    assert_has_events(model)


@pytest.mark.long
@settings(max_examples=examples(800), deadline=None, suppress_health_check=list(HealthCheck))
@given(MODELS)
def test_events_of_hundreds_of_patterns_are_where_the_reference_has_them(model: Model) -> None:
    assert_has_events(model)


def assert_has_events(model: Model) -> None:
    tracks = tracks_of(whole(model))
    for voice in range(model.voices) if tracks is not None else ():
        assert tracks is not None
        assert [*map(now_of, hits_of(tracks, voice))] == [*events(model, voice, 0, CYCLES_COMPARED)], whole(model)


@pytest.mark.long
@settings(max_examples=examples(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(MODELS, min_size=2, max_size=4))
def test_a_choice_has_the_events_of_its_parts_each_under_its_share_of_one_draw(parts: list[Model]) -> None:
    text = "|".join(map(whole, parts))
    tracks = tracks_of(f"[{text}]")
    for voice in range(max(part.voices for part in parts)) if tracks is not None else ():
        assert tracks is not None
        found: dict[int, list[Now]] = defaultdict(list)
        draws: dict[int, set[int]] = defaultdict(set)
        for hit in hits_of(tracks, voice):
            (share,) = hit.shares
            number = round(share.low * len(parts))
            assert (share.low, share.high) == (number / len(parts), (number + 1) / len(parts))
            found[number].append(now_of(hit))
            draws[math.floor(hit.begin)].add(share.draw)
        assert all(len(each) == 1 for each in draws.values()), "a cycle has one draw"
        for number, part in enumerate(parts):
            wanted = [now for cycle in range(CYCLES_COMPARED) for now in events(part, voice, cycle, cycle + 1)]
            ends = [min(now.end, Fraction(math.floor(now.begin) + 1)) for now in wanted]
            assert found[number] == [Now(now.begin, e, now.value) for now, e in zip(wanted, ends, strict=True)], text


# Some cycles from the start, before the start, and after a long performance.
CANDIDATES = [Fraction(n, 37) for n in (-200, -77, -3, 1, 5, 11, 20, 36, 60, 100, 150, 222, 300, 444, 700)]


@pytest.mark.long
@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(MODELS, st.sampled_from(["4", "1", "0.75"]), st.data())
def test_a_pattern_sounds_what_its_notation_says(model: Model, per: str, data: st.DataObject) -> None:
    voice = data.draw(st.integers(0, min(model.voices, 8) - 1))
    assert_sounds(model, per, voice, CANDIDATES, ["vm", "native"])


DANCE = Steps((
    (euclid_model(Leaf("1", 1), "x..x..x."), 2, 1),
    (Faster(Turns((Leaf("5", 5), Leaf("~", None), Steps(((Leaf("6", 6), 1, 1), (Leaf("7", 7), 2, 1))))), "*2"), 1, 2),
    (Faster(Leaf("c4", 60), "/1.5"), 1, 1), (Together((Leaf("2", 2), Faster(Leaf("3", 3), "*3"))), 3, 1),
))  # fmt: skip


@pytest.mark.parametrize("machine", MACHINES)
def test_machines_agree_also_after_a_long_performance(machine: str) -> None:
    late = [beats + 100_000 for beats in CANDIDATES]
    # A count of 100,000 beats' onsets takes the model too long.
    kernel = kernel_of(DANCE, "4", 0)
    assert kernel is not None
    wanted = moments(DANCE, Fraction(4), 0, CANDIDATES)
    got = values(kernel, machine, [float(beats * 60 / BPM) for beats in (*wanted, *late)])
    for place, beats in enumerate(wanted):
        assert SERIES.agreement(got[:, place], wanted[beats]).all()
        # 100,000 beats are a whole number of rounds of three cycles, but for one cycle.
        at_once = got[:4, len(wanted) + CANDIDATES.index(beats)]
        moved = expected(DANCE, beats + 100_000 - 12 * 8333, Fraction(4), 0)
        assert np.allclose(at_once, moved[:4], rtol=0, atol=1e-9)


# --- chance -----------------------------------------------------------------------------------------------------------


def sampled(text: str, outputs: str, times: Floats, machine: str = "vector", argument: str = "") -> Floats:
    """Outputs of a pattern of which a cycle takes a second, at these times."""
    names = [f"p@{name}" for name in outputs.split()]
    source = f'me<bpm> = 60\npattern("{text}", per: 1{argument})::p<{", ".join(outputs.split())}>\n'
    (unit,) = build(Request(Source("test.weft", f"{source}audio({', '.join(names)})"), ContextTable())).units
    return values(unit.kernel, machine, list(times), bpm=60)


CYCLES = 2000
CHANCES = {"1": 1.0, "2?": 0.5, "3?0.3": 0.7, "[4?0.5]?0.5": 0.25, "5?0.9": 0.1, "<6? 7>": 0.75, "8?0": 1.0, "9?1": 0.0}


def test_chance_leaves_out_as_many_events_as_it_says() -> None:
    times = np.arange(-8 * CYCLES, 8 * CYCLES) / 8 + 0.03
    gate, value, since, step = sampled(" ".join(CHANCES), "gate value since step", times)
    by_slot = gate.reshape(-1, 8)
    for slot, (text, share) in enumerate(CHANCES.items()):
        spread = 5 * math.sqrt(share * (1 - share) / len(by_slot))
        assert abs(by_slot[:, slot].mean() - share) <= spread, text
    # Neighbours are drawn independently of each other, and so are rounds.
    both = (by_slot[:, 1] * by_slot[:, 2]).mean()
    assert abs(both - 0.35) < 0.03
    assert abs((by_slot[1:, 1] * by_slot[:-1, 1]).mean() - 0.25) < 0.03
    # Between events, the facts are those of the last one that sounded.
    latest = np.maximum.accumulate(np.where(gate > 0, np.arange(len(gate)), -1))
    known = latest >= 0
    numbers = np.tile([1, 2, 3, 4, 5, 6, 8, 9, 1, 2, 3, 4, 5, 7, 8, 9], CYCLES).astype(float)
    assert np.array_equal(value[known], numbers[latest[known]])
    assert np.allclose(since[known], (times - times[latest] + 0.03)[known], rtol=0, atol=1e-9)
    # Each onset has a number of its own: a new one where one sounds, and no other.
    assert np.array_equal(step[known], (latest - 8 * CYCLES)[known])


def test_words_and_voices_draw_the_same() -> None:
    times = np.arange(-500, 3000) / 16 + 0.01
    gate, value, bd, sn, gate2, hh, value2 = sampled(
        "bd? sn?0.3 [bd sn]? bd, hh*4?0.4 <hh ~ hh?>", "gate value bd sn gate2 hh value2", times
    )
    assert np.array_equal(bd + sn, gate)
    assert np.array_equal(hh, gate2)
    assert np.array_equal(bd, gate * (value == 1))
    assert np.array_equal(sn, gate * (value == 2))
    assert set(value2) == {3}
    assert 0.2 < bd.mean() < 0.8


def test_a_seed_gives_other_draws_and_the_same_ones_again() -> None:
    times = np.arange(400) / 4 + 0.01
    first, again, other = (sampled("x?*4", "gate", times, argument=a) for a in ("", ", seed: 0", ", seed: 1"))
    assert np.array_equal(first, again)
    assert 0.3 < (first == other).mean() < 0.7


def test_where_all_is_left_to_chance_it_is_known_for_long_what_sounded_last() -> None:
    times = np.arange(4000) + 0.01
    gate, value, since = sampled("7?0.9", "gate value since", times)
    latest = np.maximum.accumulate(np.where(gate > 0, np.arange(4000), -1))
    age = np.arange(4000) - latest
    near, far = (latest >= 0) & (age < 16), age > 32
    assert near.any()
    assert (value[near] == 7).all()
    assert np.allclose(since[near], age[near] + 0.01)
    assert (value[far] == 0).all()
    assert (since[far] > 1e6).all()


def test_a_choice_draws_one_of_its_sequences_in_each_cycle() -> None:
    times = np.arange(-8 * CYCLES, 8 * CYCLES) / 8 + 0.03
    gate, value, step = sampled("[1|2 3|~] [4*2|[5|6]]", "gate value step", times)
    by_slot = np.where(gate > 0, value, 0).reshape(-1, 8)
    first, second = by_slot[:, :4], by_slot[:, 4:]
    assert {tuple(row) for row in first} == {(1, 1, 1, 1), (2, 2, 3, 3), (0, 0, 0, 0)}
    assert {tuple(row) for row in second} == {(4, 4, 4, 4), (5, 5, 5, 5), (6, 6, 6, 6)}
    for column, shares in ((first[:, 0], {1: 1 / 3, 2: 1 / 3, 0: 1 / 3}), (second[:, 0], {4: 0.5, 5: 0.25, 6: 0.25})):
        for number, share in shares.items():
            assert abs((column == number).mean() - share) < 0.03
    # Two choices draw independently of each other, and so do two cycles.
    assert abs(((first[:, 0] == 1) & (second[:, 0] == 4)).mean() - 1 / 6) < 0.03
    assert abs((second[1:, 0] == second[:-1, 0]).mean() - 0.375) < 0.03
    assert np.all(np.diff(step) >= 0)
    assert len(np.unique(step[gate > 0])) == sum({1: 1, 2: 2, 0: 0}[n] for n in first[:, 0]) + 2 * np.sum(
        second[:, 0] == 4) + np.sum(second[:, 0] != 4)  # fmt: skip


def test_a_choice_that_comes_four_times_draws_four_times() -> None:
    times = np.arange(4 * CYCLES) / 4 + 0.03
    for text in ("[1|2]*4", "[1|2]!4", "{[1|2] [1|2] [1|2]}%4", "[1|2]! . [1|2] !"):
        (value,) = sampled(text, "value", times)
        rows = {tuple(row) for row in value.reshape(-1, 4)}
        assert len(rows) == 16, text


def test_voices_and_words_of_a_choice_agree() -> None:
    times = np.arange(4000) / 4 + 0.01
    value, value2, gate, gate2, bd, sn = sampled("[[1, 5]|[2, 6]] [bd|sn ~]", "value value2 gate gate2 bd sn", times)
    early = np.arange(4000) % 4 < 2
    assert np.array_equal(value[early] + 4, value2[early])
    assert set(value[early]) == {1, 2}
    assert not gate2[~early].any()
    assert np.array_equal((bd + sn)[~early], gate[~early])
    assert {(b, s) for b, s in zip(bd[~early], sn[~early], strict=True)} == {(1, 0), (0, 1), (0, 0)}


def test_the_gate_of_an_event_does_not_fall_for_one_that_was_not_drawn() -> None:
    times = np.arange(0, 400, 0.05) + 0.001
    gate, value = sampled("1|2 3", "gate value", times)
    whole_cycles = value.reshape(-1, 20)[:, 10] == 1
    assert 0.3 < whole_cycles.mean() < 0.7
    assert gate.reshape(-1, 20)[whole_cycles, :19].all()
    (others,) = sampled("1|2 3", "gate", np.arange(400) + 0.49)
    assert np.array_equal(others > 0, whole_cycles)


def test_what_is_always_left_out_never_was() -> None:
    assert sampled("5?1", "value gate", np.array([0.5, 7.5])).tolist() == [[0, 0], [0, 0]]
    assert (sampled("~", "since", np.array([0.5, 7.5])) > 1e6).all()


# --- pictures ---------------------------------------------------------------------------------------------------------

# Four cycles from left to right, and a tenth of a cycle from top to bottom.
PICTURE = """\
me<bpm> = 60
p<value, gate, since, bd, value2> = pattern("0 [3 7]*1.5 <5 8?>!2 x(<3 -5>,8) [1|4 .. 6], {bd sn? ff2}%<2 4>", per: 1)
there = me@time + me@x * 4 + me@y * 0.1
display(p@value(there) / 12, p@gate(there), min(p@since(there), 1), p@bd(there) * 0.5 + p@value2(there) * 0.1)
"""


@pytest.mark.parametrize("executor", ["vector", "native", *DRAWING])
def test_pictures_of_patterns_are_what_the_reference_shows(executor: str, request: pytest.FixtureRequest) -> None:
    case = case_of(PICTURE)
    made: Executor
    if executor in DRAWING:
        made = executor_on(executor, request)
    else:
        made = {"vector": VectorExecutor, "native": NativeExecutor}[executor]()
    outcome = compare(case, made)
    assert not outcome.unexplained
    assert outcome.off[0] <= OFF_SHARE * outcome.values


# --- how large a pattern may be ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    ["x*1000", "[[x*64]*64]*64", "[[[[x!64]!64]!64]!64]!64", "<0 1 2 3 4 5 6 7>*1.001", "[[[x*1000]*1000]*1000]/7",
     "[0|1 .. 4]*64", "{<0 1!58> 2 3, <0!60 1>}%<2 3 5>", "x*<1 900>",
     "<0!7> <0!11 1> <0!17 1>", "0, 1, 2, 3, 4, 5, 6, 7, 8", "<0 1 2 3 4 5 6> <0 1!10> <0 1!16>",
     "<x!63> <x!62>, <x!61> <x!59>"],
)  # fmt: skip
def test_what_is_too_large_is_refused_soon(text: str) -> None:
    with pytest.raises(WeftError) as refused:
        build(Request(Source("test.weft", f'display(pattern("{text}")@value)'), ContextTable()))
    (diagnostic,) = refused.value.diagnostics
    assert diagnostic.code == "pattern-too-large"
    assert diagnostic.span is not None
    assert diagnostic.span.text == f'"{text}"'


@pytest.mark.long
def test_many_large_patterns_spend_the_budget() -> None:
    lines = "".join(f'a{n} = pattern("[[x*64]*64]*{n + 1}")@value\n' for n in range(400))
    with pytest.raises(WeftError) as refused:
        build(Request(Source("test.weft", f"{lines}compute({', '.join(f'a{n}' for n in range(400))})"), ContextTable()))
    codes = [diagnostic.code for diagnostic in refused.value.diagnostics]
    assert codes[-1] == "program-too-large"
    assert len(codes) < 50


def test_256_events_are_played() -> None:
    notes = [(n * 7) % 64 for n in range(256)]
    text = "<" + " ".join("[" + " ".join(map(str, notes[k : k + 16])) + "]" for k in range(0, 256, 16)) + ">"
    times = (np.arange(256) + 0.5) / 16
    value, index, step = sampled(text, "value index step", times, "native")
    assert value.tolist() == notes
    assert np.array_equal(index, np.arange(256) % 16)
    assert np.array_equal(step, np.arange(256))


def test_voices_and_words_come_again_each_for_itself() -> None:
    """Their common period would be too long."""
    primes = (7, 11, 13, 17, 19, 23)
    text = ", ".join("<" + " ".join(map(str, range(prime))) + ">" for prime in primes)
    outputs = " ".join(["value", *(f"value{n}" for n in range(2, 7))])
    times = np.array([0.5, 1000.5, 123_456.5])
    assert sampled(text, outputs, times).tolist() == [[math.floor(t) % prime for t in times] for prime in primes]
