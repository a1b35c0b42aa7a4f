"""Reading texts with what they include."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import pytest

from tests.support.choices import ANYWHERE
from weft.errors import Report, Source
from weft.permissions import real_path
from weft.syntax.ast import Binding
from weft.syntax.includes import MAX_INCLUDES, load


@pytest.mark.long
def test_a_path_is_found_while_links_and_files_take_each_others_place(tmp_path: Path) -> None:
    path, target = tmp_path / "patch.weft", tmp_path / "target.weft"
    target.write_text("x")
    path.write_text("x")
    ended = threading.Event()

    def upgrade() -> None:
        other = tmp_path / "other"
        while not ended.is_set():
            other.symlink_to(target)
            os.replace(other, path)
            other.write_text("x")
            os.replace(other, path)

    thread = threading.Thread(target=upgrade)
    thread.start()
    try:
        found = {real_path(path) for _ in range(20_000)}
    finally:
        ended.set()
        thread.join()
    assert found <= {os.path.realpath(path), os.path.realpath(target)}


def test_an_included_file_is_read_once_however_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.weft").write_text('#include "b.weft"\n#include "./c.weft"\na = 1\n')
    (tmp_path / "b.weft").write_text('#include "c.weft"\nb = 1\n')
    (tmp_path / "c.weft").write_text("c = 1\n")
    report = Report()
    name = str(tmp_path / "a.weft")
    loaded = load(Source(name, Path(name).read_text()), report)
    assert not report.diagnostics
    assert [s.name.name for s in loaded.program.statements if isinstance(s, Binding)] == ["c", "b", "a"]
    assert [os.path.basename(f) for f in loaded.files] == ["a.weft", "b.weft", "c.weft"]


def included(folder: Path, name: str) -> Report:
    """What is said about a patch that includes a file of this name."""
    report = Report()
    load(Source(str(folder / "a.weft"), f'#include "{name}"\n'), report, permissions=ANYWHERE)
    return report


@pytest.mark.parametrize("name", ["secrets", "secrets.txt", "weft", "/etc/passwd", "/dev/zero", "fifo", "."])
def test_of_what_is_no_patch_nothing_is_read_or_shown(tmp_path: Path, name: str) -> None:
    for secrets in ("secrets", "secrets.txt", "weft"):
        (tmp_path / secrets).write_text("password = hunter2\n")
    os.mkfifo(tmp_path / "fifo")
    (found,) = included(tmp_path, name)
    assert found.code == "include-not-a-patch"
    assert found.span is not None
    assert found.span.text == f'"{name}"'
    assert "hunter2" not in found.render()


@pytest.mark.parametrize(
    ("kind", "words"),
    [("fifo", "it is not a file with contents"), ("socket", "no such device or address"), ("folder", "it is a folder"),
     ("device", "it is not a file with contents")],
)  # fmt: skip
def test_what_is_no_plain_file_is_an_error_at_once(tmp_path: Path, kind: str, words: str) -> None:
    path = tmp_path / "b.weft"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(str(path))
        listening.close()
    (found,) = included(tmp_path, "b.weft")
    assert found.code == "include-unreadable"
    assert words in found.message


@pytest.mark.parametrize("count", [MAX_INCLUDES, MAX_INCLUDES + 1, 1000])
def test_files_include_each_other_so_deep_and_no_deeper(tmp_path: Path, count: int) -> None:
    for k in range(count):
        (tmp_path / f"{k}.weft").write_text(f'#include "{k + 1}.weft"\na{k} = 1\n')
    (tmp_path / f"{count}.weft").write_text("last = 1\n")
    report = Report()
    name = str(tmp_path / "0.weft")
    loaded = load(Source(name, Path(name).read_text()), report)
    if count == MAX_INCLUDES:
        assert not report.diagnostics
        assert len(loaded.program.statements) == count + 1
    else:
        (told,) = report.diagnostics
        assert (told.code, str(told.span)) == ("too-deep", f"{tmp_path / f'{MAX_INCLUDES}.weft'}:1:10")
        assert told.hint
