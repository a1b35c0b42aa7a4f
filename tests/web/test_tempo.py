"""`weft/web/tempo.js`: a tapped tempo in a page is that of a performance."""

import json
import random

import pytest

from tests.web.test_playing import HEAD, page, until_seen  # noqa: F401 -- a fixture
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
    browser.value("new Promise((resolve) => { let left = 8; const tap = () => { " + tap + "; "
                  "left-- ? setTimeout(tap, 250) : resolve(1); }; tap(); })")
    bpm = browser.until("window.weft.performance.tempo.bpm > 130 && window.weft.performance.tempo.bpm")
    assert browser.value("document.getElementById('note').textContent").endswith(" BPM")
    level = round(255 * bpm / 400)
    until_seen(browser, tmp_path, (5, 5), (level, level, 0))
    browser.press("KeyR", "r")
    browser.until("window.weft.performance.time < 2 && window.weft.performance.sound.leads", 5)
    until_seen(browser, tmp_path, (5, 5), (level, level, 0))
