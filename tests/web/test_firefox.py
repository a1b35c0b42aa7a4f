"""Pages in Firefox, which has another WebGL and another WebAssembly than Chromium."""

import os

import pytest

from tests.support.browser import FIREFOX, firefox
from tests.support.sound import private_sound
from tests.web.test_pages import HEAD, PATCHES
from weft.cli.examples import shipped

SOME = (
    "memory of pictures", "several windows", "a sound and its picture", "a picture and its sound", "letters",
    "many rests",
)  # fmt: skip

# Notes whether the page asks for the latency of its sound.
_WATCH = """\
(() => {
    weft.asked = false;
    Object.defineProperty(AudioContext.prototype, "outputLatency", { get() { weft.asked = true; return 0.01; } });
    return true;
})()
"""

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(FIREFOX is None, reason="there is no Firefox here; scripts/setup system test installs it"),
    pytest.mark.skipif("DISPLAY" not in os.environ, reason="without a window, Firefox has no WebGL here"),
]


@pytest.fixture(scope="module")
def browser():
    with firefox() as made:
        yield made


@pytest.fixture
def checked(weft, browser):
    """Exports a patch, and gives the title of its page after it has compared itself."""

    def check(patch):
        weft("export", patch, "-o", "page.html")
        browser.open((weft.folder / "page.html").as_uri() + "?check")
        return browser.title("check ", 100)

    return check


@pytest.mark.parametrize("name", SOME)
def test_a_page_plays_the_same_in_firefox(weft, checked, name):
    weft.file("patch.weft", HEAD + PATCHES[name])
    assert checked("patch.weft").startswith("check ok: ")


@pytest.mark.parametrize("name", shipped())
def test_a_shipped_patch_plays_the_same_in_firefox(checked, name):
    title = checked(shipped()[name])
    assert title.endswith("is never the same twice") if name == "mirrors" else title.startswith("check ok: ")


def test_the_sound_begins_in_firefox_and_leads_the_clock(weft, tmp_path):
    weft.file("patch.weft", HEAD + PATCHES["a sound and its picture"])
    weft("export", "patch.weft", "-o", "page.html", "--no-check")
    with private_sound(tmp_path / "sound") as server:
        server.start()
        with firefox() as browser:
            browser.open((weft.folder / "page.html").as_uri())
            browser.until("weft?.performance?.sound?.leads")
            begun = browser.until("weft.performance.time")
            browser.until(f"weft.performance.time > {begun} + 1")
            # Asking for the latency may stop Firefox for ever.
            browser.until(_WATCH)
            browser.until(f"weft.performance.time > {begun} + 2")
            assert browser.until("String(weft.asked)") == "false"
            # What is computed is what is heard next.
            browser.until("weft.performance.sound.recent.newest > 48000 * weft.performance.time")
