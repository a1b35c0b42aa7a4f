"""`weft.web.limits`: what a page cannot do is told at its place, by `weft export` and `weft check --for web`."""

import re

import pytest

HEAD = "me<width> = 16; me<height> = 9\n"

TOLD = {
    'display(osc("/a"))': "2:9",
    'osc_send("/a", me@time)\ndisplay(me@x)': "2:1",
    'midi(note: 60, gate: me@x)\ndisplay(me@x)': "2:1",
    'display(me@x)\ndisplay(me@y, to: "pipe:beam.y4m")': "3:1",
    "me<rate> = 1000\naudio(phasor(100))": "3:1",
    "audio(<phasor(i) - 0.5 for i in (1 to 33)>)\ndisplay(me@x)": "2:1",
    'camera("testsrc2 size=32x18")::c<r>\ndisplay(c@r)': "2:8",
}


@pytest.mark.parametrize("text", TOLD)
def test_what_a_page_cannot_do_is_told_at_its_place(weft, text):
    weft.file("patch.weft", HEAD + text)
    for command in (("export", "patch.weft", "-o", "page.html"), ("check", "--for", "web", "patch.weft")):
        said = weft(*command).stderr
        assert f"patch.weft:{TOLD[text]}: warning: " in said
        assert "[not-in-a-page]" in said
    assert "[not-in-a-page]" not in weft("check", "patch.weft").stderr


def test_a_page_with_nothing_in_it_is_not_written(weft):
    weft.file("patch.weft", 'osc_send("/a", me@time)')
    for command in (("export", "patch.weft", "-o", "page.html"), ("check", "--for", "web", "patch.weft")):
        assert "[nothing-in-a-page]" in weft(*command, code=1).stderr
    assert not (weft.folder / "page.html").exists()


def test_a_page_goes_to_stdout(weft):
    weft.file("patch.weft", HEAD + "display(me@x, me@y, 0.5)")
    weft("export", "patch.weft", "-o", "page.html")
    assert weft("export", "patch.weft", "-o", "-").stdout == (weft.folder / "page.html").read_text()
    assert not (weft.folder / "-").exists()
    assert "-o needs a file" in weft("export", "patch.weft", "-o", "-", "--poster", "1", code=2).stderr


def test_media_have_a_limit(weft):
    weft.file("patch.weft", HEAD + 'text("weft")::t<d>\ndisplay(t@d)')
    said = weft("export", "patch.weft", "-o", "page.html", "--no-check", "--media", "100").stderr
    assert re.search(r"text\(.*\) is left out: the media of the page would be larger than they may be", said)
    assert (weft.folder / "page.html").stat().st_size < 120_000
    weft("export", "patch.weft", "-o", "whole.html", "--no-check")
    assert (weft.folder / "whole.html").stat().st_size > (weft.folder / "page.html").stat().st_size
