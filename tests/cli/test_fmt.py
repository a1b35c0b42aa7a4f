"""`weft fmt`."""

from __future__ import annotations

import os
import stat
import subprocess
import sys

import pytest

UGLY = "a<v>=me@x*2 // twice\n\n\n\ndisplay( a@v )"
IN_STYLE = "a<v> = me@x * 2   // twice\n\n\ndisplay(a@v)\n"
BROKEN = "a = 1 +\ndisplay( a )\n"


def piped(weft, text, *options):
    return subprocess.run(
        [sys.executable, "-m", "weft", "fmt", *options, "-"], input=text.encode(), cwd=weft.folder, capture_output=True,
        check=False, timeout=60
    )  # fmt: skip


def test_files_are_written_in_style(weft):
    ugly, good = weft.file("ugly.weft", UGLY), weft.file("good.weft", IN_STYLE)
    ugly.chmod(0o640)
    before = os.stat(good)
    done = weft("fmt", "ugly.weft", "good.weft")
    assert (done.stdout, done.stderr) == ("", "weft: ugly.weft is formatted\n")
    assert ugly.read_text() == IN_STYLE
    assert stat.S_IMODE(ugly.stat().st_mode) == 0o640
    assert (os.stat(good).st_mtime_ns, os.stat(good).st_ino) == (before.st_mtime_ns, before.st_ino)


def test_check_and_diff_write_nothing(weft):
    ugly = weft.file("ugly.weft", UGLY)
    weft.file("good.weft", IN_STYLE)
    done = weft("fmt", "--check", "ugly.weft", "good.weft", code=1)
    assert (done.stdout, done.stderr) == ("", "ugly.weft: not in style\n")
    assert weft("fmt", "--check", "good.weft").stderr == ""
    shown = weft("fmt", "--diff", "ugly.weft").stdout
    assert "-a<v>=me@x*2 // twice\n" in shown
    assert "+a<v> = me@x * 2   // twice\n" in shown
    assert "-display( a@v )\n\\ No newline at end of file\n+display(a@v)\n" in shown
    assert weft("fmt", "--diff", "--check", "ugly.weft", code=1).stdout == shown
    assert ugly.read_text() == UGLY


@pytest.mark.parametrize("options", [(), ("--check",), ("--diff",)])
def test_a_file_with_mistakes_stays_and_its_mistakes_are_said(weft, options):
    broken = weft.file("broken.weft", BROKEN)
    ugly = weft.file("ugly.weft", UGLY)
    done = weft("fmt", *options, "broken.weft", "ugly.weft", code=1)
    assert "broken.weft:1:" in done.stderr
    assert "[missing-expression]" in done.stderr
    assert broken.read_text() == BROKEN
    assert (ugly.read_text() == IN_STYLE) == (not options)


def test_mistakes_of_meaning_are_left_to_check(weft):
    file = weft.file("a.weft", "display( nosuch )\n")
    weft("fmt", "a.weft")
    assert file.read_text() == "display(nosuch)\n"


def test_a_file_that_is_not_there(weft):
    assert "nosuch.weft" in weft("fmt", "nosuch.weft", code=3).stderr


def test_a_link_stays_a_link(weft):
    target = weft.file("target.weft", UGLY)
    (weft.folder / "link.weft").symlink_to(target)
    weft("fmt", "link.weft")
    assert (weft.folder / "link.weft").is_symlink()
    assert target.read_text() == IN_STYLE


def test_what_is_piped_in_comes_out_formatted(weft):
    done = piped(weft, UGLY)
    assert (done.returncode, done.stdout.decode(), done.stderr) == (0, IN_STYLE, b"")
    assert piped(weft, UGLY, "--check").returncode == 1
    assert piped(weft, UGLY.replace("\n", "\r\n")).stdout.decode() == IN_STYLE.replace("\n", "\r\n")


def test_what_is_piped_in_with_mistakes_comes_out_as_it_is(weft):
    """An editor that filters a text through the command puts in its place whatever comes out."""
    done = piped(weft, BROKEN)
    assert (done.returncode, done.stdout.decode()) == (1, BROKEN)
    assert b"<stdin>:1:" in done.stderr
