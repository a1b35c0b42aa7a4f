"""`weft/web/poster.py` and `still.js`: a page that is looked at before it plays."""

import re

import pytest
from PIL import Image

from tests.web.test_playing import HEAD, SIZE, seen, until_seen

# Red grows with the time, blue with the number of frames: both say which moment is seen.
MOVING = HEAD + "me<fps> = 10\nn<v> = prev(n@v) + 0.02\ndisplay(me@time / 4, 0.2, n@v)"
HEARD = HEAD + "me<fps> = 10\na<v> = prev(a@v) + 1 / 96000\naudio(a@v)\ndisplay(a@v, 0, 1)"


@pytest.fixture
def export(weft):
    """Exports a patch, and gives the address of its page."""

    def written(text, *options):
        weft.file("patch.weft", text)
        weft("export", "patch.weft", "-o", "page.html", "--no-check", *options)
        return (weft.folder / "page.html").as_uri()

    return written


@pytest.fixture
def still(browser):
    """A browser whose visitor wants less motion."""
    browser.size(*SIZE)
    browser.reduce_motion(True)
    yield browser
    browser.reduce_motion(False)


def test_a_still_shows_one_moment_with_its_past(export, browser, tmp_path):
    browser.size(*SIZE)
    address = export(MOVING)
    browser.open(address + "?still&t=2")
    browser.until("document.documentElement.dataset.still === 'drawn'")
    # Frame 20 is the 21st.
    wanted = (round(255 * 2 / 4), 51, round(255 * 21 * 0.02))
    until_seen(browser, tmp_path, (160, 90), wanted, near=1)
    assert browser.value("new Promise((resolve) => setTimeout(() => resolve(document.title), 300))") == "patch"
    assert seen(browser, tmp_path, 160, 90) == pytest.approx(wanted, abs=1)


def test_a_still_sees_the_sound_that_was_before(export, browser, tmp_path):
    browser.size(*SIZE)
    browser.open(export(HEARD) + "?still&t=1")
    until_seen(browser, tmp_path, (160, 90), (round(255 / 2), 0, 255), near=1)
    assert browser.value("document.getElementById('begin').hidden")


def test_less_motion_begins_with_a_still_and_a_button(export, still, tmp_path):
    still.open(export(MOVING, "--poster", "1"))
    until_seen(still, tmp_path, (20, 20), (round(255 / 4), 51, round(255 * 11 * 0.02)), near=1)
    assert not still.value("document.getElementById('begin').hidden || window.weft.performance")
    for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
        still.pointer(kind, SIZE[0] / 2, SIZE[1] / 2)
    still.until("window.weft.performance?.time > 0.5")
    assert still.value("document.querySelectorAll('canvas').length") == 1
    assert still.value("document.getElementById('begin').hidden")


def test_less_motion_can_be_overruled_by_the_address(export, still):
    still.open(export(MOVING) + "?play")
    still.until("window.weft.performance?.time > 0.2")


def test_a_poster_stands_next_to_the_page_for_previews_and_in_it_until_it_plays(export, weft, browser, tmp_path):
    address = export(MOVING, "--poster", "2", "--address", "https://example.org/a/page.html")
    with Image.open(weft.folder / "page.png") as poster:
        assert poster.size == SIZE
        assert poster.getpixel((5, 5)) == pytest.approx((128, 51, 107), abs=1)
    text = (weft.folder / "page.html").read_text()
    told = dict(re.findall(r'<meta property="(og:[\w:]+)" content="([^"]*)">', text))
    assert told == {
        "og:type": "website", "og:title": "patch", "og:description": "", "og:url": "https://example.org/a/page.html",
        "og:image": "https://example.org/a/page.png", "og:image:width": "320", "og:image:height": "180",
    }  # fmt: skip
    browser.size(*SIZE)
    browser.before_pages("HTMLCanvasElement.prototype.getContext = () => null")
    try:
        browser.open(address)
        browser.until("document.getElementById('words')?.textContent")
        # What cannot be drawn shows its poster.
        assert seen(browser, tmp_path, 20, 20) == pytest.approx((128, 51, 107), abs=4)
    finally:
        browser.before_pages(None)
    browser.open(address)
    browser.until("window.weft?.performance?.time > 0.2 && document.getElementById('poster') === null")


def test_a_poster_without_a_picture_is_not_written(weft):
    weft.file("patch.weft", "audio(phasor(100))")
    said = weft("export", "patch.weft", "-o", "page.html", "--no-check", "--poster", "1").stderr
    assert "there is no picture, and so no poster" in said
    assert not (weft.folder / "page.png").exists()


@pytest.mark.parametrize("address", ["page.html", "ftp://example.org/a", "https://example.org/a b", "javascript:a()"])
def test_an_address_that_is_none_is_refused(weft, address):
    weft.file("patch.weft", "display(me@x)")
    assert "is not an address" in weft("export", "patch.weft", "-o", "page.html", "--address", address, code=2).stderr
