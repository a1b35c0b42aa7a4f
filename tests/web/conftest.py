"""One browser for all tests of pages, and pages that `weft export` has written."""

import pytest

from tests.cli.conftest import weft  # noqa: F401 -- a fixture
from tests.support.browser import CHROMIUM, chromium


@pytest.fixture(scope="session")
def lasting_browser():
    """A browser without a window. Where there is none, tests of pages are skipped."""
    if CHROMIUM is None:
        pytest.skip("there is no Chromium here; scripts/setup system test installs it")
    with chromium() as made:
        yield made


@pytest.fixture(scope="module")
def browser(lasting_browser):
    """That browser, which plays no page once the tests of a file are done."""
    yield lasting_browser
    lasting_browser.open("about:blank")


@pytest.fixture
def checked(weft, browser):  # noqa: F811
    """Exports a patch, and gives the title of its page after it has compared itself."""

    def check(text, *options):
        weft.file("patch.weft", text)
        weft("export", "patch.weft", "-o", "page.html", *options)
        browser.open((weft.folder / "page.html").as_uri() + "?check")
        return browser.title("check ")

    return check
