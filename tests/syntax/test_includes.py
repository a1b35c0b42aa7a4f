"""Reading texts with what they include."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from weft.errors import Report, Source
from weft.syntax.ast import Binding
from weft.syntax.includes import load, real_path


def test_a_path_is_found_while_links_and_files_take_each_others_place(tmp_path: Path) -> None:
    path, target = tmp_path / "patch.weft", tmp_path / "target.weft"
    target.write_text("x")
    path.write_text("x")
    ended = threading.Event()

    def exchange() -> None:
        other = tmp_path / "other"
        while not ended.is_set():
            other.symlink_to(target)
            os.replace(other, path)
            other.write_text("x")
            os.replace(other, path)

    thread = threading.Thread(target=exchange)
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
