"""`weft/web/devices.js` and `midi.js`: what devices send to a page."""

import json
import random

import pytest

from tests.runtime.hands.test_midi import KEYS, Desk
from weft.names import SentName
from weft.runtime.hands.midi_messages import MidiMessage, encode
from weft.sources import ORDERS

HEAD = "me<width> = 64; me<height> = 36\n"

READ = (
    *(SentName("midi_note", (float(voice), float(channel), "", order), output)
      for order in ORDERS for voice in range(2) for channel in (0, 2)
      for output in ("note", "velocity", "gate", "age")),
    *(SentName("midi_note", (0.0, 0.0, "", order), "count") for order in ORDERS),
    *(SentName("midi_cc", (number, channel, device), output)
      for number in (1.0, 33.0, 64.0) for channel, device in ((0.0, ""), (2.0, "KEY"), (1.0, "pads"))
      for output in ("v", "count")),
    *(SentName(source, (0.0, ""), output)
      for source in ("midi_bend", "midi_pressure", "midi_program") for output in ("v", "count")),
)  # fmt: skip

PLAY = """\
(async () => {
    const { sentName } = await import(window.weft.address("devices.js"));
    const { Midi } = await import(window.weft.address("midi.js"));
    const names = %s, frames = %s, found = [];
    let now = 0;
    const midi = new Midi(names.map(sentName), () => now, () => now), inputs = new Map();
    for (const messages of frames) {
        now += 1 / 60;
        for (const message of messages) midi.take("keys", message);
        midi.frame(inputs);
        found.push(names.map((name) => inputs.get(name)));
    }
    return found;
})()
"""


def some_message(chosen):
    """A message that matters: of few keys, controllers and channels."""
    channel, kind = chosen.choice((1, 2)), chosen.randrange(12)
    if kind < 7:
        return MidiMessage(chosen.choice(("note on", "note off")), channel, chosen.randrange(60, 64), 90)
    if kind < 10:
        number = chosen.choice((1, 1, 33, 64, 64, 11, 121, 123))
        return MidiMessage("control", channel, number, chosen.choice((0, 20, 127)))
    kind = chosen.choice(("bend", "pressure", "program"))
    number = chosen.randrange(128) if kind == "program" else 0
    return MidiMessage(kind, channel, number, chosen.choice((0, 100, 16383 if kind == "bend" else 127)))


@pytest.mark.long
def test_a_page_hears_midi_as_a_performance_does(weft, browser):
    weft.file("patch.weft", HEAD + "display(midi_cc(1))")
    weft("export", "patch.weft", "-o", "page.html", "--no-check")
    browser.open((weft.folder / "page.html").as_uri())
    browser.until("window.weft?.performance !== undefined")
    chosen, desk = random.Random(7), Desk()
    frames = [[some_message(chosen) for _ in range(chosen.randrange(4))] for _ in range(300)]
    wanted = [desk.frame(*messages, wanted=READ) for messages in frames]
    sent = [[[*encode(message)] for message in messages] for messages in frames]
    found = browser.value(PLAY % (json.dumps([name.name for name in READ]), json.dumps(sent)))
    assert desk.received.devices == (KEYS,)
    for number, (here, there) in enumerate(zip(found, wanted, strict=True)):
        named = dict(zip(READ, here, strict=True))
        assert named == pytest.approx(dict(zip(READ, there, strict=True))), (number, frames[: number + 1][-3:])


@pytest.mark.long
def test_a_page_shows_a_camera_and_hears_a_microphone(weft, browser):
    weft.file("patch.weft", HEAD + "camera(0)::c<r, g, b>\nmic()::m<l, r>\npeak(m@l)::p<v>\n"
              "display(max(c@r, max(c@g, c@b)), p@v, me@daytime / 86400)\naudio(m@l * 0.5)")  # fmt: skip
    weft("export", "patch.weft", "-o", "page.html")
    browser.open((weft.folder / "page.html").as_uri())
    browser.until("window.weft?.performance !== undefined")
    # The browser's own camera shows a pattern, and its microphone beeps once a second.
    seen = """(() => { const { player } = window.weft.performance, [picture] = player.shown;
               const pixels = player.card.read(picture.shown), most = [0, 0, 0];
               pixels.forEach((level, at) => { if (at % 4 < 3) most[at % 4] = Math.max(most[at % 4], level); });
               return most; })()"""
    browser.until(f"{seen}.every((level, at) => at === 2 || level > 20)")
    local = browser.value("(() => { const now = new Date(); return now.getHours() / 24 + now.getMinutes() / 1440; })()")
    assert browser.value(seen)[2] / 255 == pytest.approx(local, abs=0.01)
