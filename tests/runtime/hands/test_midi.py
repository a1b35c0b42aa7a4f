"""MIDI in a performance: what a patch reads, the knobs of parameters, and a real port."""

from __future__ import annotations

import itertools
import json
import math
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.ends import tied
from tests.support.performance import PATIENCE, Performance
from weft.backends.base import Env
from weft.backends.registry import load_registry
from weft.backends.select import choose
from weft.errors import Report, Source, WeftError
from weft.names import SentName, sent_of
from weft.runtime.compiling.stages import Request, build
from weft.runtime.hands.clock import Clock
from weft.runtime.hands.knobs import Knob, KnobBindings
from weft.runtime.hands.midi import RATE, MidiController, MidiSender
from weft.runtime.hands.midi_messages import MidiMessage, Moved, decode
from weft.runtime.hands.midi_ports import (
    MidiEvent, MidiInput, MidiOutput, MidiReceiver, default_output, list_devices, open_library
)
from weft.runtime.hands.parameters import ParameterBank, ParameterSpec, ValuesFile
from weft.runtime.program.program import ProgramLoader
from weft.runtime.sound.mixer import Rendering
from weft.sources import NEVER
from weft.syntax.ast import Parameter
from weft.syntax.parser import parse

KEYS = "keys"


class Desk:
    """A controller that is given messages, frame by frame, by a clock that is set."""

    def __init__(self, text: str = "", file: object = "", follows_clock: bool = False) -> None:
        self.seconds = 0.0
        self.clock = Clock(lambda: self.seconds)
        self.bank = ParameterBank()
        statements = parse(Source("patch.weft", text), Report()).statements
        self.bank.adopt([ParameterSpec.of(each) for each in statements if isinstance(each, Parameter)], str(file))
        self.knobs = KnobBindings(self.bank)
        self.told: list[str] = []
        self.received = MidiInput()
        self.received.close()  # no port is opened
        self.received.devices = (KEYS,)
        self.controller = MidiController(
            self.clock, self.knobs, self.told.append, self.received, follows_clock=follows_clock,
            now=lambda: self.seconds,
        )  # fmt: skip

    def frame(
        self, *messages: MidiMessage | None, wanted: tuple[SentName, ...] = (), passed: float = 1 / 60
    ) -> list[float]:
        self.seconds += passed
        self.clock.tick()
        self.received.events.extend(MidiEvent(self.seconds, KEYS, message) for message in messages)
        found = self.controller.values(wanted)
        return [found.get(name, 0.0) for name in wanted]


def note(output: str, voice: int = 0, channel: int = 0, device: str = "", order: str = "newest") -> SentName:
    return SentName("midi_note", (voice, channel, device, order), output)


def on(key: int, velocity: int = 127) -> MidiMessage:
    return MidiMessage("note on", 1, key, velocity)


def off(key: int) -> MidiMessage:
    return MidiMessage("note off", 1, key)


NOTE = tuple(note(output) for output in ("note", "velocity", "gate"))


def test_a_note_comes_and_goes() -> None:
    desk = Desk()
    assert desk.frame(wanted=NOTE) == [0, 0, 0]
    assert desk.frame(on(60), wanted=NOTE) == [60, 1, 1]
    assert desk.frame(off(62), wanted=NOTE) == [60, 1, 1]
    assert desk.frame(off(60), wanted=NOTE) == [60, 1, 0]
    assert desk.frame(on(64), off(64), wanted=NOTE) == [64, 1, 1]
    assert desk.frame(wanted=NOTE) == [64, 1, 0]
    assert desk.frame(on(65), wanted=NOTE) == [65, 1, 1]
    assert desk.frame(None, wanted=NOTE) == [65, 1, 0], "unplugged"


def test_an_age_is_sent_as_the_time_of_its_note() -> None:
    desk, age = Desk(), note("age")
    assert desk.frame(wanted=(age,)) == [0], "never"
    (sent,) = desk.frame(on(60), wanted=(age,), passed=2.0)
    assert sent == pytest.approx(desk.clock.now() + NEVER, abs=0.1)
    assert desk.frame(wanted=(age,), passed=3.0) == [sent]
    before = desk.clock.latest.time
    desk.clock.restart()
    assert desk.frame(wanted=(age,), passed=0.5) == [pytest.approx(sent + 0.5 - before)], "as old as before"


@pytest.mark.parametrize("executor", ["native", "vector", "vm"])
def test_an_age_runs_on_with_the_time(executor: str) -> None:
    """Sample by sample in a sound. Before the first note it is that of something long past."""
    registry = load_registry()
    bound = "midi_note()::n<note, velocity, gate, age>\n"
    numbers, sound = (
        build(Request(Source("patch.weft", bound + statement), registry.contexts)).compiled
        for statement in ("compute(n@age, n@age(me@time ~ 1))", "audio(n@age)")
    )
    loader = ProgramLoader(choose(registry, ["compute", "audio"], executor))
    runner = loader.prepare(numbers, (8, 8)).runner
    sent = note("age").name
    assert numbers.sent == sound.sent == (sent,)
    computed = [
        runner.run(Env(8, 8, abstime=seconds, inputs=inputs))[0].array.reshape(-1).tolist()
        for seconds, inputs in ((5.0, {}), (5.0, {sent: 3.5 + NEVER}), (3.0, {sent: 3.5 + NEVER}))
    ]
    assert computed == [[105, 101], [1.5, 0], [0, 0]]
    rendering = Rendering(loader, sound, {sent: 3.5 + NEVER}, 5 * 48_000, clips=False)
    samples = np.concatenate(list(rendering.until(5 * 48_000 + 480)))
    assert samples[:, 0] == pytest.approx(1.5 + np.arange(480) / 48_000)


def test_the_index_of_a_comprehension_is_the_number_of_a_voice() -> None:
    text = (
        'spindle voice(i) :: v { midi_note(i, order: "steady")::n<note, velocity, gate>\n v = n@note * n@gate }\n'
        "spindle knobs(first) :: v { v = 0\n for i in (0 to 1) { v += midi_cc(first + i) } }\n"
        "compute(sum(<voice(i) for i in (0 to 7)>), knobs(20), <midi_note(i)@count for i in (0 to 1)>[1])"
    )
    compiled = build(Request(Source("patch.weft", text), load_registry().contexts)).compiled
    names = [sent_of(name) for name in compiled.sent]
    assert {name.args[0] for name in names if name.source == "midi_cc"} == {20, 21}
    assert sorted(name.args[0] for name in names if name.output == "note") == [*range(8)]
    assert [name.args[0] for name in names if name.output == "count"] == [1]


@pytest.mark.parametrize(("text", "code"), [
    ("compute(midi_cc(floor(me@time)))", "needs-a-constant"),
    ("compute(<midi_note(i)@gate for i in (14 to 17)>)", "argument-out-of-range"),
    ("spindle f(n) :: v { v = 0\n for i in (0 to n) { v += midi_cc(i) } }\ncompute(f(mouse@x))", "needs-a-constant"),
])  # fmt: skip
def test_what_is_no_constant_is_told_at_its_place(text: str, code: str) -> None:
    with pytest.raises(WeftError) as failure:
        build(Request(Source("patch.weft", text), load_registry().contexts))
    assert failure.value.diagnostics[0].code == code


@pytest.mark.parametrize(("text", "names"), [
    ("audio(sin(midi_note()))", "note, velocity, gate and age of midi_note as 4 channels"),
    ("midi_note()::n<note, gate>\naudio(n)", "note and gate of midi_note as 2 channels"),
    ("display(midi_note() / 127)", "note, velocity, gate and age of midi_note as 4 channels"),
    ("audio(midi_note()@note, midi_note()@gate)", ""),
    ("audio(mic()@l, mic()@r)", ""), ("compute(midi_note())", ""), ("display(<1, 0, midi_note()@gate>)", ""),
    ('pattern("c4 e4")::p<value, gate>\naudio(p)', "value and gate of pattern as 2 channels"),
    ("audio(onset(noise(me@time * 9000)))", "value and age of onset as 2 channels"),
])  # fmt: skip
def test_outputs_of_different_kinds_are_no_channels(text: str, names: str) -> None:
    found = build(Request(Source("patch.weft", text), load_registry().contexts)).warnings
    told = [each.message for each in found if each.code == "outputs-as-channels"]
    assert told == ([f"this takes {names}"] if names else [])


def test_voices_and_values_of_several_reads_at_once() -> None:
    desk = Desk()
    low, high = note("note", order="lowest"), note("note", voice=1, order="lowest")
    others = note("note", channel=2), note("gate", device="other"), SentName("midi_cc", (7.0, 0.0, ""), "v")
    found = desk.frame(on(67), on(60), MidiMessage("control", 1, 7, 127), wanted=(low, high, *others))
    assert found == [60, 67, 0, 0, 1]
    bend, program = (SentName(name, (0.0, "KEY"), "v") for name in ("midi_bend", "midi_program"))
    found = desk.frame(MidiMessage("bend", 1, 0, 0), MidiMessage("program", 1, 9), wanted=(bend, program))
    assert found == [-1, 9]


def test_a_device_that_is_not_there_is_told_once() -> None:
    desk, other = Desk(), note("gate", device="other")
    for _ in range(3):
        desk.frame(wanted=(other,))
    assert desk.told == [f'no MIDI input has "other" in its name; there is {KEYS}']
    desk.received.devices = ()
    for _ in range(3):
        desk.frame(wanted=(other,))
    assert desk.told[1:] == ["there is no MIDI input; it is looked for every 2 s"]


def test_the_tempo_follows_the_first_clock() -> None:
    for follows in (True, False):
        desk = Desk(follows_clock=follows)
        desk.clock.tempo.begin(120)
        for tick in range(48):
            desk.received.events.append(MidiEvent(tick * 60 / 90 / 24, KEYS, MidiMessage("clock")))
            desk.received.events.append(MidiEvent(tick * 60 / 90 / 24, "other", MidiMessage("clock")))
        desk.frame(passed=2.0)
        assert desk.clock.tempo.bpm == pytest.approx(90 if follows else 120)
        assert desk.told == [f"the tempo follows {KEYS}"] * follows


def test_the_beat_meets_that_of_a_sequencer_that_was_started() -> None:
    desk, begun = Desk(follows_clock=True), 1.7
    tempo = desk.clock.tempo
    tempo.begin(100)
    desk.received.events.append(MidiEvent(begun, KEYS, MidiMessage("start")))
    tick = 0
    while desk.seconds < 24 + begun:
        while begun + tick / 48 <= desk.seconds:
            desk.received.events.append(MidiEvent(begun + tick / 48, KEYS, MidiMessage("clock")))
            tick += 1
        desk.frame(passed=1 / 30)
        tempo.advance(desk.clock.now(), 0.02)
    beats = 2 * (desk.clock.now() - begun)
    assert tempo.bpm == pytest.approx(120)
    assert math.remainder(beats - tempo.beats.at(desk.clock.now()), 4) == pytest.approx(0, abs=0.01)


# --- knobs ------------------------------------------------------------------------------------------------------------

TEXT = "#slider speed<v> = 0, 2, 0.5\n#toggle on<v> = 0\n#xy spot<x, y> = 0.25, 0.75\n"


def turn(number: int, value: int) -> MidiMessage:
    return MidiMessage("control", 1, number, value)


def test_a_parameter_is_bound_to_the_next_knob_that_is_turned() -> None:
    desk = Desk(TEXT)
    desk.frame(turn(16, 127))
    assert desk.bank.values == {}
    desk.knobs.learn("speed@v")
    assert desk.knobs.learning == "speed@v"
    desk.frame(on(60))
    desk.frame(turn(16, 127))
    assert (desk.knobs.learning, desk.bank.values) == (None, {"speed@v": 2})
    assert desk.told == [f"speed follows controller 16 of {KEYS}, channel 1"]
    desk.frame(turn(17, 0), turn(16, 0))
    assert desk.bank.values == {"speed@v": 0}
    desk.knobs.forget("speed@v")
    desk.frame(turn(16, 64))
    assert desk.bank.values == {"speed@v": 0}


def test_a_knob_takes_hold_where_it_passes_the_value() -> None:
    desk = Desk(TEXT)
    desk.knobs.learn("spot@x")
    desk.frame(turn(16, 0))
    desk.bank.set("spot@x", 0.5)  # by the mouse
    values = []
    for value in (10, 40, 63, 64, 100, 20):
        desk.frame(turn(16, value))
        values.append(desk.bank.value("spot@x"))
    assert values == [0.5, 0.5, *(pytest.approx(value / 127) for value in (63, 64, 100, 20))]
    desk.bank.set("spot@x", 0.9)
    desk.frame(turn(16, 126))
    assert desk.bank.value("spot@x") == pytest.approx(126 / 127), "it has passed the value"


def test_a_toggle_follows_at_once() -> None:
    desk = Desk(TEXT)
    desk.knobs.learn("on@v")
    desk.frame(turn(16, 127))
    desk.bank.set("on@v", 0)
    desk.frame(turn(16, 127))
    assert desk.bank.value("on@v") == 1


def test_a_menu_follows_at_once_to_the_nearest_of_its_numbers() -> None:
    desk = Desk('#menu wave<v> = 2, "sine", "saw", "square" "wave"\n')
    desk.knobs.learn("wave@v")
    desk.frame(turn(16, 0))
    desk.bank.set("wave@v", 2)  # by the mouse
    found = []
    for value in (1, 31, 32, 95, 96, 127):
        desk.frame(turn(16, value))
        found.append(desk.bank.value("wave@v"))
    assert found == [0, 0, 1, 1, 2, 2]


def test_a_button_is_pressed_where_its_knob_passes_the_middle() -> None:
    """Also by a key of a controller that sends nothing in between, and once only, however far the knob is turned."""
    desk = Desk('#button hit<v> "hit"\n')
    desk.knobs.learn("hit@v")
    found = []
    for value in (127, 90, 64, 63, 0, 127):
        desk.frame(turn(16, value))
        found.append(tuple(desk.bank.frame().values()))
    assert found == [(1, 1), (1, 1), (1, 1), (0, 1), (0, 1), (1, 2)]


def test_knobs_are_kept_beside_the_values(tmp_path: Path) -> None:
    desk = Desk(TEXT, tmp_path / "patch.weft")
    file = ValuesFile(tmp_path / "patch.weft", desk.bank, midi=desk.knobs)
    desk.knobs.learn("spot@y")
    desk.frame(turn(16, 127))
    assert file.close() is None
    kept = json.loads(file.path.read_text())
    assert kept["midi"] == {"spot@y": {"device": KEYS, "channel": 1, "cc": 16}}
    assert kept["parameters"].keys() == {"spot@y"}
    again = Desk(TEXT, tmp_path / "patch.weft")
    assert ValuesFile(tmp_path / "patch.weft", again.bank, midi=again.knobs).read() is None
    assert again.knobs.of("spot@y") == Knob(KEYS, 1, 16)
    again.frame(turn(16, 0))
    assert again.bank.value("spot@y") == 1, "the knob is elsewhere"


def test_a_file_with_damaged_knobs_is_set_aside(tmp_path: Path) -> None:
    kept = {"parameters": {"on@v": {"value": 1, "start": 0}}, "midi": {"on@v": 3}}
    (tmp_path / "patch.weft.values").write_text(json.dumps(kept))
    bank = ParameterBank()
    knobs = KnobBindings(bank)
    assert "is damaged" in (ValuesFile(tmp_path / "patch.weft", bank, midi=knobs).read() or "")
    assert (bank.values, knobs.is_used) == ({}, False)


def test_a_knob_of_a_parameter_that_is_gone_does_nothing() -> None:
    knobs = KnobBindings(ParameterBank())
    knobs.learn("gone@v")
    assert knobs.move(Moved(KEYS, 1, 2, 0.5)) == "gone@v"


# --- ports ------------------------------------------------------------------------------------------------------------


def test_an_output_that_leads_to_a_device_is_preferred() -> None:
    assert default_output(["Midi Through:port", "synth", "drums"]) == "synth"
    assert [default_output(names) for names in (["Midi Through:port"], [])] == ["Midi Through:port", None]


@pytest.fixture(scope="module")
def jack() -> Iterator[str]:
    """JACK's server without a sound card, through which ports of two processes meet. ALSA's sequencer is missing in
    containers."""
    if shutil.which("jackd") is None:
        pytest.skip("there is no jackd")
    pytest.importorskip("rtmidi")
    name = f"weft-test-{os.getpid()}"
    command = ["jackd", "-r", "-p", "64", "-n", name, "-d", "dummy", "-r", "48000", "-p", "256"]
    nothing = subprocess.DEVNULL
    with subprocess.Popen(tied(command), stdin=nothing, stdout=nothing, stderr=nothing) as server:
        before = os.environ.get("JACK_DEFAULT_SERVER")
        os.environ["JACK_DEFAULT_SERVER"] = name
        try:
            until = time.monotonic() + PATIENCE
            while list_devices().problem is not None and server.poll() is None and time.monotonic() < until:
                time.sleep(0.05)
            if server.poll() is not None:
                pytest.skip("jackd does not run here")
            yield name
        finally:
            server.terminate()
            os.environ.pop("JACK_DEFAULT_SERVER")
            if before is not None:
                os.environ["JACK_DEFAULT_SERVER"] = before


@pytest.fixture
def panel(jack: str) -> Iterator[Any]:
    """The port of another program, which sends."""
    import rtmidi

    made = rtmidi.MidiOut(rtmidi.API_UNIX_JACK, "panel")
    made.open_virtual_port("knobs")
    yield made
    made.delete()


def test_messages_come_from_a_port_that_comes_and_goes(panel: Any) -> None:
    received = MidiInput(look=0.1)
    received.start()
    try:
        _wait(lambda: received.devices == ("panel:knobs",))
        assert list_devices().inputs == ("panel:knobs",)
        before = time.monotonic()
        sent = {turn(7, 1): b"\xb0\x07\x01", turn(7, 2): b"\xb0\x07\x02", MidiMessage("clock"): b"\xf8"}
        for message, data in sent.items():

            def has_come(message: MidiMessage = message, data: bytes = data) -> bool:
                # JACK without a sound card loses blocks on a busy machine, with the messages in them.
                panel.send_message(data)
                return message in [event.message for event in received.events]

            _wait(has_come)
        events = list(received.events)
        assert list(dict.fromkeys(event.message for event in events)) == list(sent)
        moments = [before, *(event.moment for event in events), time.monotonic()]
        assert moments == sorted(moments)
        panel.close_port()
        _wait(lambda: received.devices == ())
        assert received.events.pop().message is None
        assert list(received.notes) == ["MIDI: panel:knobs is gone; there is no other"]
    finally:
        received.close()
    assert received.devices == (), "it was not started again"


def test_nothing_comes_from_a_device_after_it_is_gone(panel: Any) -> None:
    """Or a note that has ended would begin again, and never end."""
    messages, theirs = Pipe(duplex=False)
    receiver = MidiReceiver(theirs, open_library())
    receiver.look()
    assert messages.recv() == ("devices", ("panel:knobs",))

    def has_come() -> bool:
        # JACK connects them with the next block, and what is sent before that is lost.
        panel.send_message((0x90, 60, 100))
        return not receiver.received.empty()

    _wait(has_come)
    panel.close_port()
    _wait(lambda: not list_devices().inputs)
    receiver.look()
    receiver.pass_on(0.0)
    assert messages.recv() == ("devices", ())
    assert not messages.poll()


@pytest.mark.long
def test_a_message_of_another_process_reaches_a_performance(panel: Any, tmp_path: Path) -> None:
    """And one that plays on after its device is unplugged."""
    patch = tmp_path / "patch.weft"
    patch.write_text(
        "me<width> = 8\nme<height> = 8\nme<fps> = 30\nmidi_note()::n<note, velocity, gate>\n"
        'compute(midi_cc(7, device: "panel"), n@note, n@gate, n@count > 0, midi_cc(7)@count > 0)\n'
    )
    with Performance(patch, "--headless", "--no-audio") as performance:
        performance.wait_for("compute")
        for count in itertools.count():
            # What is sent before the port is open is lost.
            panel.send_message((0xB0, 7, 127))
            panel.send_message((0x90, 60, 100))
            if [1, 60, 1, 1, 1] in _computed(performance):
                break
            assert count < PATIENCE * 10, performance.stderr
            time.sleep(0.1)
        panel.close_port()
        performance.wait_for_words("MIDI: panel:knobs is gone")
        count = len(_computed(performance))
        _wait(lambda: [1, 60, 0, 1, 1] in _computed(performance)[count:])


# --- what is sent -----------------------------------------------------------------------------------------------------


class Sent:
    """A sender without ports, and what it wants to send."""

    def __init__(self) -> None:
        self.now = 0.0
        self.output = MidiOutput()
        self.output.close()
        self.sender = MidiSender(lambda words: None, self.output)
        assert self.frame({}) == []

    def frame(self, statements: dict[str, dict[str, float]], passed: float = 1 / 60) -> list[tuple[str, MidiMessage]]:
        """A frame in which these statements have these values."""
        self.now += passed
        self.sender.end_frame()
        sent = {f"{key}.{label}": value for key, values in statements.items() for label, value in values.items()}
        if sent:
            self.sender.send(sent, self.now)
        found = []
        while not self.output.waiting.empty():
            wanted = self.output.waiting.get()
            found += [(wanted[0], decode(data)) for data in wanted[1]] if wanted is not None else []
        return found


def test_a_controller_is_sent_when_it_changes() -> None:
    sent = Sent()
    for value, expected in ((0, [0]), (0.001, []), (0.5, [64]), (0.5, []), (7, [127]), (math.nan, []), (-1, [0])):
        found = sent.frame({"midi": {"cc": 7, "value": value, "channel": 3}})
        assert found == [("", MidiMessage("control", 3, 7, each)) for each in expected]


def test_what_changes_faster_than_the_rate_is_sent_later() -> None:
    sent = Sent()
    found = [sent.frame({"midi": {"bend": frame / 200}}, passed=0.001) for frame in range(200)]
    assert RATE * 0.16 <= sum(map(len, found)) <= RATE * 0.2 + 1
    assert sent.frame({"midi": {"bend": 1}}) == [("", MidiMessage("bend", 1, 0, 16383))]


def test_a_note_lasts_as_long_as_its_gate() -> None:
    sent = Sent()

    def frame(note: float, gate: float) -> list[MidiMessage]:
        return [message for _, message in sent.frame({"midi:synth": {"note": note, "gate": gate, "velocity": 1}})]

    assert frame(60, 0) == []
    assert frame(60, 1) == [on(60)]
    assert frame(60.3, 1) == []
    assert frame(62, 1) == [on(62), off(60)], "tied"
    assert frame(62, 0) == [off(62)]
    assert frame(62, 0) == []


def test_statements_go_to_their_devices_and_end_their_notes_with_a_save() -> None:
    sent = Sent()
    rest = {"midi:my.synth.2": {"program": 5}, "midi": {"pressure": 1}}
    assert sent.frame({"midi:my.synth": {"note": 60, "gate": 0.5}, **rest}) == [
        ("my.synth", MidiMessage("note on", 1, 60, 64)), ("my.synth", MidiMessage("program", 1, 5)),
        ("", MidiMessage("pressure", 1, 0, 127)),
    ]  # fmt: skip
    assert [sent.frame(rest), sent.frame(rest)] == [[], [("my.synth", off(60))]]


def test_what_a_patch_sends_arrives_and_its_notes_end(jack: str) -> None:
    import rtmidi

    synth = rtmidi.MidiIn(rtmidi.API_UNIX_JACK, "synth")
    synth.open_virtual_port("in")
    heard: list[bytes] = []
    synth.set_callback(lambda received, _: heard.append(bytes(received[0])))
    output = MidiOutput()

    def have_come(*notes: MidiMessage) -> bool:
        return {decode(data) for data in list(heard)} == set(notes)

    try:
        output.send("missing", [on(1)])
        for _ in range(int(PATIENCE / 0.1)):
            # JACK loses what is sent just after a port was opened, and on a busy machine any block.
            output.send("SYNTH", [on(60)])
            output.send("", [on(61)])
            time.sleep(0.1)
            if have_come(on(60), on(61)):
                break
        _wait(lambda: list(output.notes) == ['no MIDI output has "missing" in its name; there is synth:in'])
    finally:
        output.close()
    _wait(lambda: have_come(on(60), on(61), off(60), off(61)))
    synth.delete()


def test_a_patch_says_what_it_sends() -> None:
    text = (
        'midi(cc: 7, value: me@time)\nmidi(gate: 1, note: 60, velocity: 0.5, channel: 2, to: "synth")\n'
        'midi(bend: 1, to: "synth")\n'
    )
    registry = load_registry()
    compiled = build(Request(Source("patch.weft", text), registry.contexts)).compiled
    runner = ProgramLoader(choose(registry, ["midi"], None)).prepare(compiled, (8, 8)).runner
    results = runner.run(Env(8, 8, abstime=0.25))
    pairs = [zip(result.labels, result.array.reshape(-1).tolist(), strict=True) for result in results]
    assert dict(itertools.chain(*pairs)) == {
        "midi.cc": 7, "midi.value": 0.25, "midi:synth.note": 60, "midi:synth.velocity": 0.5, "midi:synth.gate": 1,
        "midi:synth.channel": 2, "midi:synth.2.bend": 1,
    }  # fmt: skip


@pytest.mark.parametrize("text", [
    "midi(me@x)", "midi(cc: 7)", "midi(cc: 7, value: 1, gate: 1)", "midi(cc: 7, wert: 1)", "midi(channel: 1)",
    "midi(7, value: 1)", 'midi(note: "c4", gate: 1)',
])  # fmt: skip
def test_a_message_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(WeftError, match="note"):
        build(Request(Source("patch.weft", text), load_registry().contexts))


def _computed(performance: Performance) -> list[list[float]]:
    return [event["values"] for event in performance.events if event["event"] == "compute"]


def _wait(happened: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < until
        time.sleep(0.005)
