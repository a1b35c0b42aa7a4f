"""Pages in Firefox, which has another WebGL and another WebAssembly than Chromium."""

import os

import pytest

from tests.support.browser import FIREFOX, firefox
from tests.web.test_pages import HEAD, PATCHES

SOME = ("memory of pictures", "several windows", "a sound and its picture", "a picture and its sound", "letters")


@pytest.mark.long
@pytest.mark.skipif(FIREFOX is None, reason="there is no Firefox here; scripts/setup system test installs it")
@pytest.mark.skipif("DISPLAY" not in os.environ, reason="without a window, Firefox has no WebGL here")
def test_pages_play_the_same_in_firefox(weft):
    found = {}
    with firefox() as browser:
        for number, name in enumerate(SOME):
            weft.file("patch.weft", HEAD + PATCHES[name])
            weft("export", "patch.weft", "-o", f"{number}.html")
            browser.open((weft.folder / f"{number}.html").as_uri() + "?check")
            found[name] = browser.title("check ")
    assert {name: title for name, title in found.items() if not title.startswith("check ok: ")} == {}
