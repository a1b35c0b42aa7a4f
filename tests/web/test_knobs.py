"""`weft/web/knobs.js`: knobs of MIDI devices move the parameters of a page."""

import json
import random

import pytest

from tests.runtime.hands.test_midi import KEYS, Desk
from tests.web.test_playing import HEAD, page, until_seen  # noqa: F401 -- a fixture
from weft.runtime.hands.midi_messages import MidiMessage, encode

PARAMETERS = """\
#slider s<v> = 2, 6, 3
#slider z<v> = -1, 1, 0
#toggle t<v> = 0
#menu m<v> = 0, "a", "b", "c"
"""
NAMES = ("s@v", "z@v", "t@v", "m@v")

PLAY = """\
(async () => {
    const { Knobs } = await import(window.weft.address("knobs.js"));
    const { parameters, inputs: start } = window.weft.description, inputs = new Map(Object.entries(start)), found = [];
    let now = 0;
    const knobs = new Knobs(parameters, inputs, () => null, () => now);
    for (const [action, ...given] of %s) {
        now += 1 / 60;
        if (action === "learn") knobs.learn(given[0]);
        else if (action === "forget") knobs.forget(given);
        else if (action === "set") inputs.set(...given);
        else knobs.take("keys", given);
        found.push(%s.map((name) => inputs.get(name)));
    }
    return found;
})()
"""


def steps(chosen):
    """What hands do: turn some knobs back and forth, bind and free them, and drag sliders."""
    at = {number: chosen.randrange(128) for number in (1, 7, 33)}
    for _ in range(600):
        match chosen.randrange(20):
            case 0 | 1:
                yield "learn", chosen.choice(NAMES)
            case 2:
                yield "forget", chosen.choice(NAMES)
            case 3:
                yield "set", "s@v", chosen.choice((2.0, 3.3, 6.0))
            case 4:
                yield "set", "z@v", chosen.choice((-1.0, 0.25))
            case _:
                number = chosen.choice((*at,))
                at[number] = min(max(at[number] + chosen.randrange(-30, 31), 0), 127)
                yield "turn", chosen.choice((1, 1, 2)), number, at[number]


def test_knobs_in_a_page_mean_what_they_mean_in_a_performance(page, browser):  # noqa: F811
    page(HEAD + PARAMETERS + "display(s@v, z@v, t@v + m@v)")
    desk, wanted, given = Desk(PARAMETERS), [], []
    values = {"s@v": 3.0, "z@v": 0.0, "t@v": 0.0, "m@v": 0.0}
    for action, *rest in steps(random.Random(4)):
        messages = []
        match action:
            case "learn":
                desk.knobs.learn(*rest)
            case "forget":
                desk.knobs.forget(*rest)
            case "set":
                desk.bank.set(*rest)
            case "turn":
                channel, number, value = rest
                messages = [MidiMessage("control", channel, number, value)]
        given.append([action, *(encode(messages[0]) if messages else rest)])
        desk.frame(*messages)
        wanted.append([desk.bank.value(name) for name in values])
    assert desk.received.devices == (KEYS,)
    found = browser.value(PLAY % (json.dumps(given), json.dumps(NAMES)))
    for number, (here, there) in enumerate(zip(found, wanted, strict=True)):
        assert here == pytest.approx(there), (number, given[number])
    assert len({tuple(each) for each in wanted}) > 50


@pytest.mark.long
def test_a_parameter_learns_its_knob_and_keeps_it(page, browser, tmp_path):  # noqa: F811
    text = HEAD + '#slider s<v> = 0, 1, 0.5 "s"\ndisplay(s@v, 0, 0)'
    browser.before_pages("navigator.requestMIDIAccess = async () => { throw new Error('it is a test') }")
    try:
        page(text)
        browser.until("window.weft.performance.knobs !== undefined")
        clicked = "document.querySelector('#panel label').dispatchEvent(new MouseEvent('contextmenu', %s))"
        browser.value(clicked % "{ cancelable: true }")
        assert browser.value("document.getElementById('note').textContent") == "turn a knob for s@v"
        browser.until("document.getElementById('words').textContent === 'There is no MIDI: it is a test.'")
        browser.value("window.weft.performance.knobs.take('pads', [0xb0, 20, 127])")
        until_seen(browser, tmp_path, (20, 170), (255, 0, 0))
        assert browser.value("document.querySelector('#panel input').value") == "1"
        # It is still bound the next time.
        page(text)
        browser.until("window.weft.performance.knobs?.isUsed")
        browser.value("for (const value of [64, 0]) window.weft.performance.knobs.take('pads', [0xb0, 20, value])")
        until_seen(browser, tmp_path, (20, 170), (0, 0, 0))
        browser.value(clicked % "{ cancelable: true, shiftKey: true }")
        assert not browser.value("window.weft.performance.knobs.isUsed")
    finally:
        browser.before_pages(None)
