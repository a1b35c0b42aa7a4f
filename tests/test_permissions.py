"""What a patch may open: what is below its folder, and what the performer has allowed."""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path

import pytest

from tests.support.forks import ran
from tests.support.hostile import MEDIA, hostile, world
from weft.contexts import context_table
from weft.errors import Diagnostic, Source
from weft.media.sampled import header_of
from weft.permissions import DEFAULT_PERMISSIONS, Permissions
from weft.runtime.inspect.forecast import check

PICTURE = 'load("{}")::c<r, g, b>\ndisplay(c@r, c@g, c@b)\n'


def told(patch: Path, text: str, permissions: Permissions = DEFAULT_PERMISSIONS) -> list[Diagnostic]:
    """The errors of a patch."""
    found = check(Source(str(patch), text), context_table(), header_of, permissions)
    return [each for each in found if each.severity == "error"]


def test_hostile_patches_are_refused_at_their_place(tmp_path: Path) -> None:
    patches = world(tmp_path, 9)
    for name, text in hostile(patches, 9).items():
        errors = told(patches / f"{name}.weft", text)
        assert errors, f"{name} is accepted:\n{text}"
        assert all(each.span is not None and each.code != "internal" for each in errors), (name, errors)
        assert "0.25" not in "".join(each.render() for each in errors), f"{name} shows what is in a file"


@pytest.mark.parametrize("place", ["{}/outside/secret.png", "../outside/secret.png", "link.png", "folder/secret.png"])
def test_what_is_refused_is_allowed_by_the_words_that_are_told(tmp_path: Path, place: str) -> None:
    patches = world(tmp_path, 9)
    (patches / "a.weft").write_text(PICTURE.format(place.format(tmp_path)))
    refused = ran(["check", "a.weft"], patches, os.environ)
    assert refused.returncode == 1
    assert "a.weft:1:6: error: " in refused.stderr
    assert "[not-allowed]" in refused.stderr
    words = refused.stderr.partition("add ")[2].partition(" to the command")[0]
    for command in (["check"], ["render", "-o", "a.png", "--size", "16x16"], ["eval"]):
        strand = ["c@r"] if command == ["eval"] else []
        allowed = ran([command[0], "a.weft", *strand, *command[1:], *shlex.split(words)], patches, os.environ)
        assert allowed.returncode == 0, allowed.stderr
    environment = {**os.environ, "WEFT_ALLOW": f"net{os.pathsep}{tmp_path / 'outside'}"}
    assert ran(["check", "a.weft"], patches, environment).returncode == 0
    assert ran(["check", "a.weft", "--allow", "nowhere"], patches, os.environ).returncode == 2


def test_a_stream_is_for_who_allows_it(tmp_path: Path) -> None:
    patch, text = tmp_path / "a.weft", 'camera("rtsp://127.0.0.1:9/a")::c<r>\ndisplay(c@r)\n'
    (refused,) = told(patch, text)
    assert (refused.code, str(refused.span)) == ("not-allowed", f"{patch}:1:8")
    assert refused.hint is not None
    assert "--allow net" in refused.hint
    assert not told(patch, text, Permissions.of(["net"]))


def test_all_that_lies_below_the_folder_of_a_patch_may_be_read(tmp_path: Path) -> None:
    """Also where that folder is reached by a link, has a space in its name, or is the one that the shell is in."""
    real, link = tmp_path / "a real folder", tmp_path / "link"
    (real / "deep" / "down").mkdir(parents=True)
    link.symlink_to(real)
    shutil.copy(MEDIA / "cloth.png", real / "deep" / "down" / "a.png")
    (real / "deep" / "inner.png").symlink_to(real / "deep" / "down" / "a.png")
    (real / "other.weft").write_text('#include "deep/third.weft"\n')
    (real / "deep" / "third.weft").write_text('load("down/a.png")::d<r>\nload("../deep/inner.png")::e<r>\n')
    text = '#include "other.weft"\n' + PICTURE.format("deep/down/a.png") + "f = d@r + e@r\ndisplay(f)\n"
    for folder in (real, link):
        assert not [each for each in told(folder / "a.weft", text) if each.code != "duplicate-statement"]
    (real / "a.weft").write_text(PICTURE.format("deep/down/a.png"))
    for name in ("a.weft", "./a.weft", str(link / "a.weft")):
        assert ran(["check", name], real, os.environ).returncode == 0
    assert ran(["check", "../a.weft"], real / "deep", os.environ).returncode == 0


@pytest.mark.long
def test_files_with_the_names_of_other_pictures_are_files(tmp_path: Path) -> None:
    names = ["live:1.png", "text:a.png", "sound:48000:a.png", "levels:a.png", "heard:a.png", "<a@b>.png", "a:b.png"]
    for name in names:
        shutil.copy(MEDIA / "cloth.png", tmp_path / name)
        (tmp_path / "a.weft").write_text(PICTURE.format(name))
        done = ran(["render", "a.weft", "-o", "out.png", "--size", "16x16"], tmp_path, os.environ)
        assert done.returncode == 0, (name, done.stderr)


def test_a_missing_camera_is_told_at_its_place_and_ends_a_render_with_3(tmp_path: Path) -> None:
    (tmp_path / "a.weft").write_text("// first\ncamera(250)::c<r, g, b>\ndisplay(c@r, c@g, c@b)\n")
    for words in (["render", "-o", "a.png", "--size", "16x16"], ["run", "--headless", "--no-audio", "--frames", "1"]):
        done = ran([words[0], "a.weft", *words[1:]], tmp_path, os.environ)
        assert done.returncode == 3, done.stderr
        assert "a.weft:2:1: error: camera(250) cannot be read: " in done.stderr
        assert "[no-camera]" in done.stderr
