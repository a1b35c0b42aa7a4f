"""`weft new`."""

from __future__ import annotations

import os
import shlex
import subprocess

import pytest

from weft.cli.new import starter


def test_it_writes_a_patch_that_is_fine_and_moves(weft):
    done = weft("new", "hello.weft")
    assert (weft.folder / "hello.weft").read_bytes() == starter()
    assert weft("check", "hello.weft").stderr == "hello.weft: no errors\n"
    for time in ("0", "1"):
        weft("render", "hello.weft", "-o", f"{time}.png", "--time", time, "--size", "64x36")
    assert (weft.folder / "0.png").read_bytes() != (weft.folder / "1.png").read_bytes()
    assert "run hello.weft" in done.stdout
    assert os.listdir(weft.folder).count("hello.weft") == 1


def test_what_it_says_to_type_works_as_it_stands(weft):
    said = weft.anew("new", "my first").stdout.splitlines()
    typed = shlex.split(next(line for line in said if " run " in line))
    assert typed[-2:] == ["run", "my first.weft"]
    shown = subprocess.run([*typed, "--help"], cwd=weft.folder, capture_output=True, text=True, timeout=60, check=False)
    assert shown.stdout == weft("run", "--help").stdout


def test_a_name_like_an_option_is_typed_with_its_folder(weft):
    said = weft("new", "--", "-x").stdout.splitlines()
    assert shlex.split(next(line for line in said if " run " in line))[-2:] == ["run", "./-x.weft"]


@pytest.mark.parametrize("typed", ["hello", "v1.2", "sub/a.weft"])
def test_the_ending_may_be_left_out(weft, typed):
    made = typed.removesuffix(".weft") + ".weft"
    (weft.folder / "sub").mkdir()
    assert f"{made} is written" in weft("new", typed).stdout
    assert (weft.folder / made).read_bytes() == starter()


@pytest.mark.parametrize("typed", ["plain.weft", "plain"])
def test_it_never_overwrites(weft, typed):
    before = (weft.folder / "plain.weft").read_text()
    done = weft("new", typed, code=3)
    assert "plain.weft is there already" in done.stderr
    assert (weft.folder / "plain.weft").read_text() == before


def test_a_link_that_leads_nowhere_is_not_written_through(weft):
    (weft.folder / "link.weft").symlink_to("elsewhere.weft")
    weft("new", "link", code=3)
    assert not (weft.folder / "elsewhere.weft").exists()


@pytest.mark.parametrize(
    ("typed", "words"),
    [("nosuch/hello", "there is no folder nosuch"), ("no such/hello", "mkdir -p 'no such')"),
     ("plain.weft/hello", "plain.weft"),
     ("sub", "sub is not the name of a file"), ("sub/", "such as sub/hello.weft"), ("", "not the name of a file"),
     ("-", "- is not the name of a file (name one, such as hello.weft)"), ("sub/-", "such as sub/hello.weft"),
     ("a" * 300, "File name too long")],
)  # fmt: skip
def test_what_cannot_be_written(weft, typed, words):
    (weft.folder / "sub").mkdir()
    before = sorted(os.listdir(weft.folder))
    done = weft("new", typed, code=3)
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert sorted(os.listdir(weft.folder)) == before
