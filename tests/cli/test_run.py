"""`weft run` as a process without a screen; what it does on one is tested in tests/runtime/screens."""

from __future__ import annotations

import pytest

from tests.cli.conftest import said


def test_without_a_file_it_plays_a_patch_and_says_how_to_copy_it(weft):
    done = weft("run", "--headless", "--frames", "2")
    first, second = said(done.stderr)
    assert first.startswith("weft: playing plasma.weft, which comes with weft · visual ")
    assert "weft examples plasma --copy mine.weft" in second
    weft("examples", "plasma", "--copy", "mine.weft")
    first, *_ = said(weft("run", "mine.weft", "--headless", "--frames", "2").stderr)
    assert first.startswith("weft: edit mine.weft and save · ")


@pytest.mark.parametrize(
    "options",
    [
        ("--headless", "--terminal"),
        ("--headless", "--monitor", "0"),
        ("--headless", "--fullscreen"),
        ("--headless", "--window", "a=8x8"),
        ("--terminal", "--window", "a=:full"),
        ("--terminal", "--fullscreen"),
        *(("--window", wrong) for wrong in ("a", "a=", "=8x8", "a=8", "a=0x8", "a=@x", "a=:half", "a=:full@1")),
        ("--window", "a=8x8", "--window", "a=:full"),
        ("--headless", "--window", "pipe:a=8x8@1"),
        ("--terminal", "--events", "-"),
        ("--fps", "0"),
        ("--size", "640"),
        ("--frames", "0"),
    ],
)
def test_options_that_mean_nothing_together_are_refused(weft, options):
    assert "Error: " in weft("run", "plain.weft", *options, code=2).stderr


def test_a_window_that_no_picture_is_for(weft):
    weft.file("two.weft", 'display(me@x)\ndisplay(me@y, to: "side")\n')
    said = weft("run", "two.weft", "--window", "side=8x8", "--window", "seite=:full", DISPLAY="", code=2).stderr
    assert 'no display(…, to: "seite") is in the patch; it has side' in said


def test_what_is_missing_is_one_line(weft):
    (weft.folder / "empty").mkdir()
    assert "there is no patch in empty" in weft("run", "--watch-dir", "empty", "--headless", code=3).stderr
    done = weft("run", "nope.weft", code=3)
    assert done.stderr.startswith("weft: nope.weft cannot be read: there is no such file (")
    assert "weft new nope.weft writes a patch to begin with" in done.stderr
    assert len(said(done.stderr)) == 1
    for name in ("plasma", "plasma.weft"):
        assert "(weft examples plasma plays the one that comes with weft)" in weft("run", name, code=3).stderr
    done = weft("run", "plain.weft", "--terminal", code=3)
    assert len(said(done.stderr)) == 2  # the first names the file and the keys
    done = weft("run", "plain.weft", "--headless", "--frames", "1", "--events", "no/such/folder", code=3)
    assert len(said(done.stderr)) == 1


def test_a_later_patch_that_is_missing_is_told_at_the_start(weft):
    weft.file("second.weft", "display(me@x)\n")
    done = weft("run", "plain.weft", "secnd.weft", "--headless", "--no-audio", "--frames", "1")
    assert said(done.stderr)[0] == (
        'weft: secnd.weft is not there; it can be played once it is (did you mean "second.weft"?)'
    )  # fmt: skip


@pytest.mark.long
def test_without_a_display_and_a_terminal_it_says_what_to_do(weft):
    done = weft("run", "plain.weft", DISPLAY="", WAYLAND_DISPLAY="", code=3)
    (line,) = said(done.stderr)
    assert "--terminal" in line
    assert "--headless" in line
