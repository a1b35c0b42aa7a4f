"""Patterns are what their notation says on every machine: held against a model that looks at one moment at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from tests.support.beats import given_beats
from tests.support.gl import GlExecutor, graphics
from tests.support.kernels import MACHINES
from tests.support.metal.executor import MetalExecutor, device
from tests.support.parity.cases import case_of
from tests.support.parity.rule import compare
from tests.support.together import examples
from tests.support.tolerances import OFF_SHARE, SERIES
from weft.backends.executor import Executor
from weft.backends.launch import Floats, Launch, StateMemory
from weft.backends.native.executor import NativeExecutor
from weft.backends.vector.executor import VectorExecutor
from weft.codegen.kernel import Kernel
from weft.contexts import ContextTable
from weft.errors import Source, WeftError
from weft.runtime.build import build

__all__ = ["device", "graphics"]

# --- a model: what is there at a moment, or just before it ------------------------------------------------------------


@dataclass(frozen=True)
class Now:
    """The event, or the rest, at a moment: from when to when, and its value."""

    begin: Fraction
    end: Fraction
    value: float | None

    def moved(self, by: Fraction, scale: Fraction = Fraction(1)) -> Now:
        return Now(self.begin * scale + by, self.end * scale + by, self.value)

    def within(self, begin: Fraction, end: Fraction) -> Now:
        """What is left of it in a slot: nothing of an event that began earlier."""
        is_late = self.begin < begin
        return Now(max(self.begin, begin), min(self.end, end), None if is_late else self.value)


def cycle_of(time: Fraction, before: bool) -> int:
    return math.ceil(time) - 1 if before else math.floor(time)


@dataclass(frozen=True)
class Leaf:
    text: str
    value: float | None
    voices = 1

    def at(self, time: Fraction, before: bool, voice: int) -> Now:
        cycle = Fraction(cycle_of(time, before))
        return Now(cycle, cycle + 1, self.value if voice == 0 else None)


@dataclass(frozen=True)
class Steps:
    """Nodes with weights and numbers of repetitions."""

    steps: tuple[tuple[Model, int, int], ...]

    @property
    def text(self) -> str:
        written = (node.text + f"@{weight}" * (weight > 1) + f"!{times}" * (times > 1)
                   for node, weight, times in self.steps)  # fmt: skip
        return "[" + " ".join(written) + "]"

    @property
    def voices(self) -> int:
        return max(node.voices for node, _, _ in self.steps)

    def at(self, time: Fraction, before: bool, voice: int) -> Now:
        nodes = [(node, weight) for node, weight, times in self.steps for _ in range(times)]
        if len(nodes) == 1:
            return nodes[0][0].at(time, before, voice)
        cycle, begin = cycle_of(time, before), Fraction(0)
        for node, weight in nodes:
            length = Fraction(weight, sum(weight for _, weight in nodes))
            start = cycle + begin
            if time < start + length or (before and time == start + length):
                inner = node.at(cycle + (time - start) / length, before, voice)
                return inner.moved(Fraction(-cycle)).moved(start, length).within(start, start + length)
            begin += length
        raise AssertionError("a cycle has an end")


@dataclass(frozen=True)
class Turns:
    """Nodes of which each cycle has one."""

    nodes: tuple[Model, ...]

    @property
    def text(self) -> str:
        return "<" + " ".join(node.text for node in self.nodes) + ">"

    @property
    def voices(self) -> int:
        return max(node.voices for node in self.nodes)

    def at(self, time: Fraction, before: bool, voice: int) -> Now:
        if len(self.nodes) == 1:
            return self.nodes[0].at(time, before, voice)
        cycle = cycle_of(time, before)
        turn, place = divmod(cycle, len(self.nodes))
        inner = self.nodes[place].at(time - cycle + turn, before, voice)
        return inner.moved(Fraction(cycle - turn)).within(Fraction(cycle), Fraction(cycle + 1))


@dataclass(frozen=True)
class Faster:
    node: Model
    suffix: str

    @property
    def text(self) -> str:
        inner = f"[{self.node.text}]" if isinstance(self.node, Faster) else self.node.text
        return inner + self.suffix

    @property
    def voices(self) -> int:
        return self.node.voices

    def at(self, time: Fraction, before: bool, voice: int) -> Now:
        number = Fraction(self.suffix[1:])
        factor = number if self.suffix[0] == "*" else 1 / number
        return self.node.at(time * factor, before, voice).moved(Fraction(0), 1 / factor)


@dataclass(frozen=True)
class Together:
    parts: tuple[Model, ...]

    @property
    def text(self) -> str:
        return "[" + ", ".join(part.text for part in self.parts) + "]"

    @property
    def voices(self) -> int:
        return sum(part.voices for part in self.parts)

    def at(self, time: Fraction, before: bool, voice: int) -> Now:
        for part in self.parts:
            if voice < part.voices:
                return part.at(time, before, voice)
            voice -= part.voices
        cycle = Fraction(cycle_of(time, before))
        return Now(cycle, cycle + 1, None)


Model = Leaf | Steps | Turns | Faster | Together


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

LEAVES = st.one_of(
    st.integers(-9, 99).map(lambda n: Leaf(str(n), float(n))),
    st.sampled_from([Leaf("c4", 60), Leaf("eb3", 51), Leaf("f#5", 78), Leaf("0.25", 0.25)]),
    st.just(Leaf("~", None)),
)
SUFFIXES = st.sampled_from(["*2", "*3", "*1.5", "/2", "/3", "/1.5"])


def larger(nodes: st.SearchStrategy[Model]) -> st.SearchStrategy[Model]:
    steps = st.tuples(nodes, st.sampled_from([1, 1, 1, 2, 3]), st.sampled_from([1, 1, 1, 2]))
    return st.one_of(
        st.lists(steps, min_size=1, max_size=4).map(lambda found: Steps(tuple(found))),
        st.lists(nodes, min_size=1, max_size=3).map(lambda found: Turns(tuple(found))),
        st.builds(Faster, nodes, SUFFIXES),
        st.lists(nodes, min_size=2, max_size=2).map(lambda found: Together(tuple(found))),
    )


MODELS = st.recursive(LEAVES, larger, max_leaves=8)


def kernel_of(model: Model, per: str, voice: int) -> Kernel | None:
    """A sound of the outputs of a voice; None if the pattern has too many events, which other tests are about."""
    text = model.text[1:-1] if isinstance(model, Steps) else model.text
    names = [f"p@{name}{voice + 1 if voice else ''}" for name in OUTPUTS]
    source = f'me<bpm> = {BPM}\np<{", ".join(n[2:] for n in names)}> = pattern("{text}", per: {per})\n'
    try:
        (unit,) = build(Source("test.weft", f"{source}audio({', '.join(names)})"), ContextTable()).units
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


# Some cycles from the start, before the start, and after a long performance.
CANDIDATES = [Fraction(n, 37) for n in (-200, -77, -3, 1, 5, 11, 20, 36, 60, 100, 150, 222, 300, 444, 700)]


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
    (unit,) = build(Source("test.weft", f"{source}audio({', '.join(names)})"), ContextTable()).units
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
    # Between events, the last one that sounded is told of.
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


def test_what_is_always_left_out_never_was() -> None:
    assert sampled("5?1", "value gate", np.array([0.5, 7.5])).tolist() == [[0, 0], [0, 0]]
    assert (sampled("~", "since", np.array([0.5, 7.5])) > 1e6).all()


# --- pictures ---------------------------------------------------------------------------------------------------------

# Four cycles from left to right, and a tenth of a cycle from top to bottom.
PICTURE = """\
me<bpm> = 60
pattern("0 [3 7]*1.5 ~ <5 8? 11>!2 x(3,8), bd sn?", per: 1)::p<value, gate, since, bd, value2>
there = me@time + me@x * 4 + me@y * 0.1
display(p@value(there) / 12, p@gate(there), min(p@since(there), 1), p@bd(there) * 0.5 + p@value2(there) * 0.1)
"""


@pytest.mark.parametrize("executor", ["vector", "native", "glsl", "msl"])
def test_pictures_of_patterns_are_what_the_reference_shows(executor: str, request: pytest.FixtureRequest) -> None:
    case = case_of(PICTURE)
    made: Executor
    if executor == "glsl":
        made = GlExecutor(request.getfixturevalue("graphics"))
    elif executor == "msl":
        made = MetalExecutor(request.getfixturevalue("device"))
    else:
        made = {"vector": VectorExecutor, "native": NativeExecutor}[executor]()
    outcome = compare(case, made)
    assert not outcome.unexplained
    assert outcome.off[0] <= OFF_SHARE * outcome.values


# --- how large a pattern may be ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    ["x*1000", "[[x*64]*64]*64", "[[[[x!64]!64]!64]!64]!64", "<0 1 2 3 4 5 6 7>*1.001", "[[[x*1000]*1000]*1000]/7",
     "<0!7> <0!11 1> <0!17 1>", "0, 1, 2, 3, 4, 5, 6, 7, 8", "<0 1 2 3 4 5 6> <0 1!10> <0 1!16>",
     "<x!63> <x!62>, <x!61> <x!59>"],
)  # fmt: skip
def test_what_is_too_large_is_refused_soon(text: str) -> None:
    with pytest.raises(WeftError) as refused:
        build(Source("test.weft", f'display(pattern("{text}")@value)'), ContextTable())
    (diagnostic,) = refused.value.diagnostics
    assert diagnostic.code == "pattern-too-large"
    assert diagnostic.span is not None
    assert diagnostic.span.text == f'"{text}"'


def test_many_large_patterns_spend_the_budget() -> None:
    lines = "".join(f'a{n} = pattern("[[x*64]*64]*{n + 1}")@value\n' for n in range(400))
    with pytest.raises(WeftError) as refused:
        build(Source("test.weft", f"{lines}compute({', '.join(f'a{n}' for n in range(400))})"), ContextTable())
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
