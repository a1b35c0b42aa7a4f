"""`scripts/gallery.py`: a folder in which patches play in a browser, for any host."""

import re

import pytest
from PIL import Image

from scripts.gallery import write_pages
from weft.cli.arguments import shipped_patches


@pytest.mark.long
def test_the_gallery_is_a_folder_that_refers_to_nothing_outside_of_it(browser, tmp_path):
    write_pages(["plasma"], tmp_path, "https://example.org/weft/")
    assert {path.name for path in tmp_path.iterdir()} == {"index.html", "plasma.html", "plasma.png"}
    index = (tmp_path / "index.html").read_text()
    assert set(re.findall(r'(?:src|href)="([^"]*)"', index)) == {"plasma.html", "plasma.png"}
    assert '<meta property="og:image" content="https://example.org/weft/plasma.png">' in (
        tmp_path / "plasma.html"
    ).read_text()
    browser.open((tmp_path / "index.html").as_uri())
    browser.until("document.images.length === 1 && document.images[0].naturalWidth > 0")
    browser.value("document.links[0].click()")
    browser.until("window.weft?.performance?.time > 0.1")
    assert browser.value("document.title") == "plasma"
    with Image.open(tmp_path / "plasma.png") as poster:
        assert len(poster.convert("RGB").getcolors(1 << 20)) > 100
    assert (shipped_patches() / "plasma.weft").read_text() == browser.value(
        "document.getElementById('source').textContent"
    )
