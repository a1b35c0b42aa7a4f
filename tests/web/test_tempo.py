"""`weft/web/tempo.js`, `midi_clock.js`: the tempo of taps and clocks in a page is that of a performance."""

import json
import random

import pytest

from tests.web.test_playing import HEAD, page, until_seen  # noqa: F401 -- a fixture
from weft.runtime.hands.midi import ClockDecoder
from weft.runtime.hands.midi_messages import decode as message_of
from weft.runtime.hands.tempo import Tempo

BEAT = "me<bpm> = 120\n"
PLAY = """\
(async () => {
    const { Tempo } = await import(window.weft.address("tempo.js"));
    const tempo = new Tempo(120), found = [];
    for (const [now, ahead, tap] of %s) {
        const bpm = tap === null ? null : tempo.tap(tap);
        found.push([bpm, tempo.advance(now, ahead), ...Object.values(tempo.inputs)]);
    }
    return found;
})()
"""


def steps(chosen):
    """A minute of frames, each with its time, how far the sound is ahead, and a tap, if there was one: series of some
    tempo, with taps that are missed, doubled or far apart."""
    taps, at = [], 0.5
    while at < 60:
        every = chosen.uniform(0.25, 0.9)
        for _ in range(chosen.randrange(1, 14)):
            taps.append(at)
            if chosen.random() < 0.1:
                taps.append(at + 0.05)
            at += every * chosen.choice((1, 1, 1, 1, 1, 2)) + chosen.gauss(0, 0.01)
        at += chosen.choice((0.3, 2.5, 8))
    for frame in range(60 * 60):
        now = frame / 60
        while taps and taps[0] < now - 1 / 60:
            taps.pop(0)
        yield now, chosen.choice((0.0, 0.06, 0.2)), taps[0] if taps and taps[0] < now else None


def test_taps_in_a_page_mean_what_they_mean_in_a_performance(page, browser):  # noqa: F811
    page(HEAD + BEAT + "display(fract(me@beat))")
    given, tempo = list(steps(random.Random(3))), Tempo(120)
    wanted = []
    for now, ahead, tap in given:
        bpm = None if tap is None else tempo.tap(tap)
        wanted.append([bpm, tempo.advance(now, ahead), *tempo.beats])
    assert len({tuple(each[2:]) for each in wanted}) > 20
    found = browser.value(PLAY % json.dumps(given))
    for number, (here, there) in enumerate(zip(found, wanted, strict=True)):
        assert here == pytest.approx(there), number


@pytest.mark.long
def test_t_taps_the_tempo_of_picture_and_sound(page, browser, tmp_path):  # noqa: F811
    page(HEAD + BEAT + "a<v> = me@bpm / 400\naudio(a@v * 0)\ndisplay(me@bpm / 400, a@v, 0)")
    until_seen(browser, tmp_path, (5, 5), (77, 77, 0))
    tap = "window.dispatchEvent(new KeyboardEvent('keydown', { key: 't', code: 'KeyT' }))"
    # On a busy machine, timers are late and uneven.
    bpm = browser.value("""new Promise((resolve) => {
        const { tempo } = window.weft.performance;
        const tap = () => { TAP; tempo.bpm > 130 ? resolve(tempo.bpm) : setTimeout(tap, 250); };
        tap();
    })""".replace("TAP", tap))
    assert browser.value("document.getElementById('note').textContent").endswith(" BPM")
    level = round(255 * bpm / 400)
    until_seen(browser, tmp_path, (5, 5), (level, level, 0))
    before = browser.value("window.weft.performance.time")
    browser.press("KeyR", "r")
    browser.until(f"window.weft.performance.time < {before}")
    browser.until("window.weft.performance.sound.leads")
    until_seen(browser, tmp_path, (5, 5), (level, level, 0))


LEAD = """\
(async () => {
    const { Tempo } = await import(window.weft.address("tempo.js"));
    const { MidiClock } = await import(window.weft.address("midi_clock.js"));
    const tempo = new Tempo(120), clock = new MidiClock(tempo, () => {}), found = [];
    for (const [now, ahead, messages] of %s) {
        messages.forEach(([bytes, moment]) => clock.take("drums", bytes, moment));
        clock.lead(0.5);
        found.push([tempo.advance(now, ahead), ...Object.values(tempo.inputs)]);
    }
    return found;
})()
"""


def ticks(chosen):
    """The messages of a clock with their moments: some tempos, each begun by a start, a position or neither, with
    ticks that come late and pauses in which a device is silent."""
    at = 1.0
    for bpm in (100, 100.5, 140, 60, 174):
        match chosen.choice(("start", "position", "on")):
            case "start":
                yield [0xFA], at
            case "position":
                yield [0xF2, 5, 1], at
        for _ in range(24 * 12):
            at += 60 / bpm / 24
            yield [0xF8], at + chosen.uniform(0, 0.003)
        at += chosen.choice((0, 0.6))


def test_a_clock_of_midi_leads_a_page_as_it_leads_a_performance(page, browser):  # noqa: F811
    page(HEAD + BEAT + "display(fract(me@beat))")
    messages, tempo, decoder = list(ticks(random.Random(7))), Tempo(120), ClockDecoder()
    given, wanted = [], []
    for frame in range(60 * 40):
        now, new = frame / 60, []
        while messages and messages[0][1] + 0.5 <= now:
            new.append(messages.pop(0))
        given.append([now, 0.05, new])
        for (status, *more), moment in new:
            decoder.take(message_of(bytes([status, *more])), moment)
        if new and (found := decoder.reading()) is not None:
            moment = found.moment + 0.5
            known = (found.beat, moment, "midi", 4) if found.is_known else (tempo.beats.at(moment), moment, "midi")
            tempo.follow(found.bpm, *known)
        wanted.append([tempo.advance(now, 0.05), *tempo.beats])
    assert len({tuple(each[1:]) for each in wanted}) > 8
    for number, (here, there) in enumerate(zip(browser.value(LEAD % json.dumps(given)), wanted, strict=True)):
        assert here == pytest.approx(there), number


DEVICE = """\
navigator.requestMIDIAccess = async () => {
    const port = new EventTarget(), access = new EventTarget();
    window.send = (...data) => {
        const event = new Event("midimessage");
        event.data = Uint8Array.from(data);
        port.dispatchEvent(event);
    };
    Object.assign(port, { type: "input", name: "drums", open() {} });
    return Object.assign(access, { inputs: new Map([["1", port]]) });
};
"""


@pytest.mark.long
def test_a_page_that_is_asked_to_follows_the_first_clock(page, browser):  # noqa: F811
    browser.before_pages(DEVICE)
    try:
        page(HEAD + BEAT + "display(fract(me@beat))", "?midi-clock")
        browser.until("window.weft.performance.clock !== null && window.send !== undefined")
        browser.value("window.ticks = setInterval(() => window.send(0xf8), 1000 * 60 / 90 / 24), 1")
        browser.until("Math.abs(window.weft.performance.tempo.bpm - 90) < 20")
        assert browser.value("document.getElementById('note').textContent") == "the tempo follows drums"
        # Without being asked, a page opens no device for a tempo.
        page(HEAD + BEAT + "display(fract(me@beat))")
        browser.until("window.weft.performance.time > 0.3")
        assert browser.value("window.send === undefined")
    finally:
        browser.before_pages(None)
