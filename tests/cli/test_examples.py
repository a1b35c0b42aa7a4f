"""`weft examples`."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests.support.together import all_but
from tests.support.windows import private_display
from weft.cli.examples import headline, shipped

NAMES = list(shipped())


def test_it_lists_each_patch_with_a_line(weft):
    lines = weft("examples").stdout.splitlines()
    for name, path in shipped().items():
        assert headline(path), f"{name} does not begin with a comment"
        assert [line for line in lines if line.split("  ")[0] == name and line.endswith(headline(path))]
    assert f"weft examples {NAMES[0]}" in lines[-2]
    assert not [name for name in NAMES if "bench" in name or "lib" in name.split("/")]


@pytest.mark.long
@pytest.mark.parametrize("names", all_but(1, [NAMES[:6], NAMES[6:]]), ids=["some", "others"])
def test_a_copy_is_complete(weft, names):
    """Each in a folder of its own, since it brings what it needs. They are checked together, by one process."""
    for name in names:
        (weft.folder / name).mkdir()
        done = weft("examples", name, "--copy", f"{name}/mine")
        assert (weft.folder / name / "mine.weft").read_bytes() == shipped()[name].read_bytes()
        assert f"run {name}/mine.weft" in done.stdout
    copies = [f"{name}/mine.weft" for name in names]
    # One that is too much for the machine is only warned of.
    checked = weft("check", *copies).stderr
    assert all(f"{path}:" in checked for path in copies)


def test_a_copy_goes_here_under_its_own_name_and_brings_its_pictures(weft):
    done = weft("examples", "remap", "--copy")
    assert "remap.weft is copied, with media/cloth.png" in done.stdout
    weft("examples", "remap", "--copy", "again.weft")  # the picture is the same
    (weft.folder / "media" / "cloth.png").write_bytes(b"mine")
    assert "media/cloth.png is there already" in weft("examples", "remap", "--copy", "third", code=3).stderr
    assert not (weft.folder / "third.weft").exists()
    assert (weft.folder / "media" / "cloth.png").read_bytes() == b"mine"


def test_a_copy_overwrites_nothing(weft):
    before = (weft.folder / "plain.weft").read_text()
    weft("examples", "gradient", "--copy", "plain.weft", code=3)
    assert (weft.folder / "plain.weft").read_text() == before
    weft("examples", "gradient", "--copy", "nosuch/plain.weft", code=3)


def test_where_a_patch_lies(weft):
    path = weft("examples", "gradient.weft", "--path").stdout.strip()
    assert path == str(shipped()["gradient"])


def test_wrong_names(weft):
    assert 'did you mean "plasma"?' in weft("examples", "plasna", code=2).stderr
    assert "examples: " in weft("examples", "qqq", code=2).stderr
    assert "name the example" in weft("examples", "--copy", "mine.weft", code=2).stderr


@pytest.mark.long
def test_a_name_is_played_as_run_plays_it(tmp_path):
    with private_display():
        command = [sys.executable, "-m", "weft", "examples", "gradient"]
        with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as playing:
            try:
                said = (line for line in playing.stderr if "is still" not in line)  # on a slow machine
                assert "examples gradient --copy gradient.weft" in next(said)
                assert f"edit {shipped()['gradient']}" in next(said)
                playing.send_signal(signal.SIGINT)
                assert playing.wait(timeout=60) == 130
            finally:
                playing.kill()
