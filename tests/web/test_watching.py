"""`weft/web/watch.js`: what a page reports while it plays, and how it begins again."""

import pytest

from tests.web.test_playing import HEAD, page, until_seen  # noqa: F401 -- a fixture

GROWS = "what it remembers grows without end, or is no number"

# The statement is in line 3: the head has one.
LOST = {
    "a number": "// a comment\nn<v> = prev(n@v) * 1e30 + 1\ndisplay(n@v * 0, 1, 0)",
    "a picture": "// a comment\nn<v> = prev(n@v) * 1e30 + step(0.5, me@x)\ndisplay(n@v * 0, 1, 0)",
    "a sound": "// a comment\nn<v> = prev(n@v) * 1e30 + 1\naudio(n@v * 0.1)\ndisplay(0, 1, 0)",
}
CLEARED = HEAD + "me<fps> = 20\nn<v> = prev(n@v) + if key@k then 1 / 0 - 1 / 0 else 0.1\nm<v> = prev(m@v) + me@x\n"


# The third frame after it has begun again.
LOOK = """\
(() => {
    const { performance } = window.weft;
    let before = performance.time, left = 3;
    const look = () => {
        const { player, time } = performance, [picture] = player.shown;
        if (left === 3 && time > before - 0.5) before = time;
        else if (left-- === 0) window.seen = [...player.card.read(picture.shown).slice(40, 44)];
        if (left >= 0) requestAnimationFrame(look);
    };
    look();
})()
"""


def words(browser):
    return browser.until("document.getElementById('words')?.textContent")


@pytest.mark.parametrize("kind", LOST)
def test_memory_that_is_not_finite_is_reported_with_its_place(page, browser, kind):  # noqa: F811
    page(HEAD + LOST[kind])
    said = words(browser)
    assert said.startswith("n@v is not finite since ")
    assert said.endswith(f"{GROWS} (line 3). R clears it.")


def test_r_begins_again(page, browser, tmp_path):  # noqa: F811
    page(CLEARED + "display(if n@v < 1e9 then 1 else 0, m@v / 4, 0)\naudio(0)", "?t=3")
    browser.press("KeyK", "k")
    assert "n@v is not finite" in words(browser)
    until_seen(browser, tmp_path, (10, 10), (0, 255, 0), near=250)
    browser.until("window.weft.performance.sound?.leads && window.weft.performance.time > 4")
    browser.value(LOOK)
    browser.press("KeyR", "r")
    assert browser.until("window.seen") == pytest.approx([255, 0, 0, 255], abs=10)
    browser.until("window.weft.performance.sound.leads")
    assert browser.value("document.getElementById('words').hidden")


@pytest.mark.long
def test_a_loop_that_stops_is_reported_with_its_place(page, browser):  # noqa: F811
    loop = "spindle f(n) :: c { c = 0; for i in (1 to n) { c += 1 } }\n"
    page(HEAD + loop + "display(f(me@x * 1e5) / 1e5)")
    assert words(browser) == "A loop stops at its limit of steps, and leaves out the rest (line 2)."


def test_a_loop_that_stops_in_a_sound_is_reported(page, browser):  # noqa: F811
    loop = "spindle f(n) :: c { c = 0; for i in (1 to n) { c += 1 } }\n"
    page(HEAD + "me<rate> = 8000\n" + loop + "audio(f(me@time * 0 + 5000) / 1e5)\ndisplay(0)")
    assert words(browser) == "A loop stops at its limit of steps, and leaves out the rest (line 3)."


def test_an_embedded_page_reports_nothing(page, browser):  # noqa: F811
    page(HEAD + LOST["a picture"], "?embed")
    browser.until("window.weft.performance.watch._known.size > 0")
    assert browser.value("document.getElementById('words').hidden")
