"""`weft/web/main.js`: a page that plays is touched, looked at and listened to as its visitor would."""

import io
import json
import time

import pytest
from PIL import Image

from tests.support.browser import chromium
from weft.cli.arguments import shipped_patches

SIZE = (320, 180)
HEAD = "me<width> = 320; me<height> = 180\n"
NASTY = "</script><b>'\u2028&lt;{}<!-- \U0001d11e"


@pytest.fixture
def page(weft, browser):
    """Exports a patch, and opens its page, perhaps with more of an address."""

    def opened(text, address="", name="page"):
        weft.file("patch.weft", text)
        weft("export", "patch.weft", "-o", f"{name}.html", "--no-check")
        browser.size(*SIZE)
        browser.open((weft.folder / f"{name}.html").as_uri() + address)
        browser.until("window.weft?.performance !== undefined")

    return opened


def seen(browser, tmp_path, x, y):
    """The colour of a pixel of the window."""
    browser.screenshot(tmp_path / "seen.png")
    with Image.open(io.BytesIO((tmp_path / "seen.png").read_bytes())) as image:
        return image.convert("RGB").getpixel((x, y))


def until_seen(browser, tmp_path, place, wanted, near=3):
    """Waits until a pixel of the window has about this colour."""
    limit = time.monotonic() + 20
    while time.monotonic() < limit:
        found = seen(browser, tmp_path, *place)
        if all(abs(a - b) <= near for a, b in zip(found, wanted, strict=True)):
            return
    raise AssertionError(f"{place} is {found} instead of {wanted}; {browser.said}")


def test_mouse_and_keys_reach_the_picture(page, browser, tmp_path):
    page(HEAD + "n<v> = prev(n@v) + key@b\ndisplay(mouse@x, mouse@down, min(n@v, 1))")
    until_seen(browser, tmp_path, (160, 90), (128, 0, 0))
    browser.pointer("mouseMoved", 240, 45)
    browser.pointer("mousePressed", 240, 45)
    until_seen(browser, tmp_path, (160, 90), (191, 255, 0))
    browser.pointer("mouseReleased", 240, 45)
    # A tap that is shorter than a frame is seen.
    browser.press("KeyB", "b")
    until_seen(browser, tmp_path, (160, 90), (191, 0, 255))


def test_names_and_texts_of_a_patch_are_no_markup(page, browser):
    label = json.dumps(NASTY + '"', ensure_ascii=False)
    page(HEAD + f'// {NASTY}\n#slider s<v> = 0, 1, 0.5 {label}\ntext({label})::t<d>\ndisplay(t@d * s@v)')
    assert browser.value("document.querySelectorAll('b').length") == 0
    assert browser.value("document.querySelector('#panel span').textContent") == json.loads(label)
    source = browser.value("window.weft.description.source")
    assert NASTY in source
    browser.press("KeyU", "u")
    assert browser.value("!document.getElementById('source').hidden && document.getElementById('source').innerText")
    assert browser.said == []


def test_a_slider_turns_what_it_is_called(page, browser, tmp_path):
    page(HEAD + '#slider s<v> = 0, 1, 0.5 "s"\ndisplay(s@v, 0, 0)')
    until_seen(browser, tmp_path, (20, 170), (128, 0, 0))
    browser.value("""(() => { const slider = document.querySelector('#panel input');
                     slider.value = 1; slider.dispatchEvent(new Event('input')); })()""")
    until_seen(browser, tmp_path, (20, 170), (255, 0, 0))


@pytest.mark.long
def test_an_embedded_page_shows_what_is_behind_it(page, browser, weft, tmp_path):
    page(HEAD + "display(1, 0, 0, step(0.5, me@x))")
    frame = weft.folder / "frame.html"
    frame.write_text('<body style="margin:0;background:#00f"><iframe src="page.html?embed" '
                     'style="border:0;width:320px;height:180px"></iframe>')  # fmt: skip
    browser.open(frame.as_uri())
    until_seen(browser, tmp_path, (300, 90), (255, 0, 0))
    until_seen(browser, tmp_path, (20, 90), (0, 0, 255))


def test_the_sound_leads_the_clock(page, browser):
    page(HEAD + "a<v> = sin(phasor(440) * tau) * 0.2\naudio(a@v)\ndisplay(a@v)", "?t=40")
    browser.until("window.weft.performance.sound?.leads && window.weft.performance.time > 40.3")
    newest = browser.until("window.weft.performance.sound.recent.newest > 40.2 * 48000 && "
                           "window.weft.performance.sound.recent.newest")  # fmt: skip
    assert newest / 48000 < 60


def test_a_browser_without_a_card_says_so(page, browser, weft):
    page(HEAD + "display(me@x)")
    browser.before_pages("HTMLCanvasElement.prototype.getContext = () => null")
    try:
        browser.open((weft.folder / "page.html").as_uri())
        words = browser.until("document.getElementById('words')?.textContent")
    finally:
        browser.before_pages(None)
    assert "WebGL 2" in words


def test_a_browser_without_sound_says_so_and_draws(page, browser, weft, tmp_path):
    page(HEAD + "audio(phasor(100))\ndisplay(0, 1, 0)")
    browser.before_pages("delete window.AudioContext")
    try:
        browser.open((weft.folder / "page.html").as_uri())
        words = browser.until("document.getElementById('words')?.textContent")
        until_seen(browser, tmp_path, (10, 10), (0, 255, 0))
    finally:
        browser.before_pages(None)
    assert "no sound" in words


@pytest.mark.long
def test_a_film_is_read_at_several_times(page, browser, weft, tmp_path):
    film = shipped_patches() / "media" / "day.mp4"
    (weft.folder / "day.mp4").write_bytes(film.read_bytes())
    text = """\
load("day.mp4")::f<r, g, b>
spindle at(s) :: <r, g, b> { out r = f@r(me@time ~ s)
  out g = f@g(me@time ~ s)
  out b = f@b(me@time ~ s) }
display(mix(at(1), at(3), step(0.5, me@x)))
"""
    text = HEAD + text
    page(text)
    browser.until("window.weft.performance.player.pictures.films?.ready.then(() => true)")
    weft("render", "patch.weft", "-o", "rendered.png")
    with Image.open(weft.folder / "rendered.png") as image:
        wanted = image.convert("RGB").copy()
    for place in ((40, 30), (280, 30), (200, 120)):
        # Browsers turn the colours of films into red, green and blue a little differently.
        until_seen(browser, tmp_path, place, wanted.getpixel(place), near=12)


@pytest.mark.long
def test_a_button_begins_the_sound_where_the_browser_wants_a_gesture(weft, browser):
    weft.file("patch.weft", HEAD + "a<v> = sin(phasor(440) * tau) * 0.2\naudio(a@v)\ndisplay(a@v)")
    weft("export", "patch.weft", "-o", "page.html", "--no-check")
    with chromium(wants_gesture=True) as strict:
        strict.size(*SIZE)
        strict.open((weft.folder / "page.html").as_uri())
        strict.until("document.getElementById('begin')?.hidden === false")
        before = strict.until("window.weft.performance.time > 1 && window.weft.performance.time")
        # All code is there before.
        assert strict.value("window.weft.performance.sound.ready.then(() => true)")
        assert not strict.value("window.weft.performance.sound.leads")
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            strict.pointer(kind, SIZE[0] / 2, SIZE[1] / 2)
        strict.until("document.getElementById('begin').hidden && window.weft.performance.sound.leads")
        # The picture does not jump back: the sound begins where it is.
        assert strict.value("window.weft.performance.time") > before
        strict.until(f"window.weft.performance.time > {before} + 1")
