"""The watcher against real files: whatever way they are saved, each contents is reported once, whole, and soon."""

from __future__ import annotations

import itertools
import os
import random
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest

import weft.runtime.live.saves
from weft.runtime.live.saves import _GONE, _QUIET, _SETTLE, Watcher
from weft.runtime.program.files import TEXT_LIMIT, FileState, read_text, stat_media

Eventually = Callable[..., None]


class Reports:
    """What a watcher has reported, in order."""

    def __init__(self) -> None:
        self.all: list[tuple[Path, FileState]] = []

    def __call__(self, changes: Mapping[Path, FileState]) -> None:
        self.all.extend(changes.items())

    def texts(self) -> list[bytes | None]:
        return [state.data for _, state in self.all]


@pytest.fixture
def reports() -> Reports:
    return Reports()


@pytest.fixture
def watcher(reports: Reports) -> Iterator[Watcher]:
    with closing(Watcher(reports)) as watcher:
        yield watcher


@pytest.fixture
def patch(tmp_path: Path) -> Path:
    file = tmp_path / "patch.weft"
    file.write_bytes(contents(0))
    return file


_BEGIN, _END = b"// begin\n", b"// end\n"


def contents(number: int) -> bytes:
    """A text of some 18 kB of which one can tell whether it is whole."""
    return _BEGIN + f"a{number} = me@x * {number}\n".encode() * 800 + _END


def whole(text: bytes | None) -> bool:
    return text is not None and text.startswith(_BEGIN) and text.endswith(_END) and len(set(text.split(b"\n"))) == 4


def is_in_part(data: bytes | None, text: bytes, took: float, waits: float) -> bool:
    """Whether this is a part of a text that took so many seconds to be written, more than a watcher waits for it."""
    if not data:
        return took > _GONE
    return took > waits and data != text and text.startswith(data)


def save_by_rename(file: Path, text: bytes) -> None:
    beside = file.with_name(".patch.weft.tmp")
    beside.write_bytes(text)
    beside.replace(file)


def save_from_elsewhere(file: Path, text: bytes) -> None:
    elsewhere = file.parent / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    (elsewhere / "new").write_bytes(text)
    (elsewhere / "new").replace(file)


def save_in_place(file: Path, text: bytes) -> None:
    file.write_bytes(text)


_IN_CHUNKS = 0.005
"""The seconds that the next way sleeps, on a machine that does not hold it up."""


def save_in_chunks(file: Path, text: bytes) -> None:
    with file.open("wb", buffering=0) as out:
        for start in range(0, len(text), 4000):
            out.write(text[start : start + 4000])
            time.sleep(0.001)


def save_without_truncation(file: Path, text: bytes) -> None:
    with file.open("r+b", buffering=0) as out:
        out.write(text)
        out.truncate()


def save_after_unlink(file: Path, text: bytes) -> None:
    file.unlink()
    save_in_chunks(file, text)


def save_like_vim(file: Path, text: bytes) -> None:
    backup = file.with_name(file.name + "~")
    file.replace(backup)
    save_in_place(file, text)
    backup.unlink()


def save_after_truncation(file: Path, text: bytes) -> None:
    file.write_bytes(b"")
    time.sleep(0.01)
    file.write_bytes(text)


def save_by_link(file: Path, text: bytes) -> None:
    """Points the file's name, as a symbolic link, at a new file in a directory of its own."""
    target = file.parent / f"version-{len(os.listdir(file.parent))}"
    target.mkdir()
    (target / "patch").write_bytes(text)
    link = file.with_name(".link")
    link.symlink_to(target / "patch")
    link.replace(file)


WAYS = [
    save_by_rename,
    save_from_elsewhere,
    save_in_place,
    save_in_chunks,
    save_without_truncation,
    save_after_unlink,
    save_like_vim,
    save_after_truncation,
    save_by_link,
]


def test_every_one_of_many_mixed_saves_is_reported_once_and_whole(
    watcher: Watcher, reports: Reports, patch: Path, eventually: Eventually
) -> None:
    watcher.watch({patch: read_text(patch)})
    dice = random.Random(1)
    ways = [way for way in WAYS for _ in range(36)]
    dice.shuffle(ways)
    texts = [contents(number) for number in range(1, len(ways) + 1)]
    in_part: list[bytes | None] = []
    for way, text in zip(ways, texts, strict=True):
        began, known = time.monotonic(), len(reports.all)
        way(patch, text)
        took = time.monotonic() - began
        eventually(lambda text=text: reports.all and reports.all[-1][1].data == text)
        # The machine may hold up the writer for longer than a watcher waits for the next write.
        in_part += [data for data in reports.texts()[known:] if is_in_part(data, text, took, _QUIET)]
    assert [data for data in reports.texts() if data not in in_part] == texts


@pytest.mark.parametrize("way", WAYS)
def test_a_save_is_reported_without_waiting_for_a_poll(
    way: Callable[[Path, bytes], None], reports: Reports, patch: Path, eventually: Eventually,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(weft.runtime.live.saves, "_POLL", 3600.0)
    with closing(Watcher(reports)) as watcher:
        watcher.watch({patch: read_text(patch)})
        for number in range(1, 6):
            way(patch, contents(number))
            # On a busy machine, a part of it may be reported before.
            eventually(lambda number=number: reports.texts()[-1:] == [contents(number)])


def test_fifty_saves_in_a_second_lose_nothing_of_the_last(
    watcher: Watcher, reports: Reports, patch: Path, eventually: Eventually
) -> None:
    watcher.watch({patch: read_text(patch)})
    dice = random.Random(2)
    start = time.monotonic()
    took: dict[int, float] = {}
    for number in range(1, 51):
        began = time.monotonic()
        dice.choice(WAYS[:8])(patch, contents(number))
        took[number] = time.monotonic() - began
        time.sleep(max(0.0, start + number * 0.02 - time.monotonic()))
    eventually(lambda: reports.texts()[-1:] == [contents(50)])
    # The machine may hold up the writer and its events for longer than a watcher waits between two looks.
    waits = _IN_CHUNKS + _SETTLE
    for data in reports.texts():
        assert whole(data) or any(is_in_part(data, contents(each), took[each], waits) for each in took)
    assert all(a != b for a, b in itertools.pairwise(reports.texts()))


def test_saves_without_a_pause_give_no_half_text(
    watcher: Watcher, reports: Reports, patch: Path, eventually: Eventually
) -> None:
    watcher.watch({patch: read_text(patch)})
    writer = subprocess.Popen([sys.executable, "-c", _HASTY_WRITER, str(patch)], stdout=subprocess.PIPE)
    # Meanwhile this process is busy too, so that events come late.
    while writer.poll() is None:
        sum(range(20_000))
    took = dict(enumerate(map(float, writer.communicate()[0].split())))
    assert writer.returncode == 0
    eventually(lambda: reports.texts()[-1:] == [patch.read_bytes()])
    # The machine may hold up the writer for longer than a watcher waits between two looks.
    for data in reports.texts():
        assert whole(data) or any(is_in_part(data, contents(each), took[each], _SETTLE) for each in took)


_HASTY_WRITER = """
import os, random, sys, time
dice = random.Random(3)
for number in range(150):
    text = b"// begin\\n" + f"a{number} = me@x * {number}\\n".encode() * 800 + b"// end\\n"
    name = sys.argv[1]
    began = time.monotonic()
    if dice.random() < 0.3:
        with open(name + "~", "wb") as out:
            out.write(text)
        os.replace(name + "~", name)
    else:
        with open(name, "wb", buffering=0) as out:
            for start in range(0, len(text), 3000):
                out.write(text[start:start + 3000])
    print(time.monotonic() - began)
    time.sleep(dice.random() * 0.008)
"""


def test_a_writer_that_never_closes_is_heard(
    watcher: Watcher, reports: Reports, patch: Path, eventually: Eventually
) -> None:
    watcher.watch({patch: read_text(patch)})
    with patch.open("r+b", buffering=0) as out:
        out.write(contents(1))
        out.truncate()
        eventually(lambda: reports.texts() == [contents(1)])


def test_the_same_contents_again_are_no_news(
    watcher: Watcher, reports: Reports, patch: Path, eventually: Eventually
) -> None:
    watcher.watch({patch: read_text(patch)})
    for way in WAYS:
        way(patch, contents(0))
    os.utime(patch)
    save_by_rename(patch, contents(1))
    eventually(lambda: reports.all)
    assert reports.texts() == [contents(1)]


def test_a_file_that_goes_is_reported_and_so_is_its_return(
    watcher: Watcher, reports: Reports, patch: Path, eventually: Eventually
) -> None:
    watcher.watch({patch: read_text(patch)})
    patch.unlink()
    eventually(lambda: reports.all)
    assert reports.all[0][1].problem == "there is no such file"
    save_in_place(patch, contents(0))
    eventually(lambda: len(reports.all) == 2)
    assert reports.texts() == [None, contents(0)]


def test_a_file_that_is_emptied_for_good_is_reported(
    watcher: Watcher, reports: Reports, patch: Path, eventually: Eventually
) -> None:
    watcher.watch({patch: read_text(patch)})
    patch.write_bytes(b"")
    eventually(lambda: reports.texts() == [b""])


def test_the_target_of_a_link_is_watched(
    watcher: Watcher, reports: Reports, patch: Path, tmp_path: Path, eventually: Eventually
) -> None:
    links = tmp_path / "links"
    links.mkdir()
    link = links / "now.weft"
    link.symlink_to(patch)
    watcher.watch({link: read_text(link)})
    save_by_rename(patch, contents(1))
    eventually(lambda: reports.texts() == [contents(1)])
    other = tmp_path / "other" / "patch.weft"
    other.parent.mkdir()
    other.write_bytes(contents(2))
    link.unlink()
    link.symlink_to(other)
    eventually(lambda: reports.texts()[1:] == [contents(2)])
    save_in_chunks(other, contents(3))
    eventually(lambda: reports.texts()[2:] == [contents(3)])
    save_in_place(patch, contents(4))
    save_by_rename(other, contents(5))
    eventually(lambda: reports.texts()[3:] == [contents(5)])


def test_a_link_among_the_directories_may_be_pointed_elsewhere(
    watcher: Watcher, reports: Reports, tmp_path: Path, eventually: Eventually
) -> None:
    for number in (1, 2):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "patch.weft").write_bytes(contents(number))
    current = tmp_path / "current"
    current.symlink_to("1")
    file = current / "patch.weft"
    watcher.watch({file: read_text(file)})
    current.unlink()
    current.symlink_to("2")
    eventually(lambda: reports.texts() == [contents(2)])
    (tmp_path / "2" / "patch.weft").write_bytes(contents(3))
    eventually(lambda: reports.texts()[1:] == [contents(3)])


def test_a_directory_may_come_later_go_and_come_back(
    watcher: Watcher, reports: Reports, tmp_path: Path, eventually: Eventually
) -> None:
    file = tmp_path / "set" / "lib" / "noise.weft"
    watcher.watch({file: read_text(file)})
    for number in range(1, 4):
        file.parent.mkdir(parents=True)
        file.write_bytes(contents(number))
        eventually(lambda number=number: reports.texts()[-1:] == [contents(number)])
        file.unlink()
        file.parent.rmdir()
        file.parent.parent.rmdir()
        eventually(lambda: reports.texts()[-1] is None)
    assert reports.texts() == [contents(1), None, contents(2), None, contents(3), None]


def test_a_directory_that_was_replaced_is_watched_by_events_again(
    watcher: Watcher, reports: Reports, tmp_path: Path, eventually: Eventually, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "set"
    folder.mkdir()
    file = folder / "patch.weft"
    file.write_bytes(contents(0))
    watcher.watch({file: read_text(file)})
    folder.rename(tmp_path / "old")
    folder.mkdir()
    file.write_bytes(contents(1))
    eventually(lambda: reports.texts() == [contents(1)])
    # From now on, looks without an event are out of the question.
    monkeypatch.setattr(weft.runtime.live.saves, "_POLL", 3600.0)
    eventually(lambda: watcher._next_poll > time.monotonic() + 60)
    file.write_bytes(contents(2))
    eventually(lambda: reports.texts() == [contents(1), contents(2)])


def test_the_set_may_be_replaced_and_nothing_between_is_lost(
    watcher: Watcher, reports: Reports, patch: Path, tmp_path: Path, eventually: Eventually
) -> None:
    library = tmp_path / "lib.weft"
    library.write_bytes(contents(1))
    known = read_text(library)
    watcher.watch({patch: read_text(patch)})
    library.write_bytes(contents(2))  # changed after it was read, and before it is watched
    watcher.watch({patch: read_text(patch), library: known})
    eventually(lambda: reports.all == [(library, read_text(library))])
    # The stale state of a file that is watched already does not make it news again.
    watcher.watch({library: known})
    patch.write_bytes(contents(3))  # not watched any more
    library.write_bytes(contents(4))
    eventually(lambda: len(reports.all) == 2)
    assert reports.texts() == [contents(2), contents(4)]


def test_files_may_be_added_from_within_a_report(patch: Path, tmp_path: Path, eventually: Eventually) -> None:
    library = tmp_path / "lib.weft"
    library.write_bytes(contents(1))
    seen: list[Path] = []

    def changed(changes: Mapping[Path, FileState]) -> None:
        watcher.watch({patch: read_text(patch), library: read_text(library)})
        seen.extend(changes)  # the test goes on from here

    with closing(Watcher(changed)) as watcher:
        watcher.watch({patch: read_text(patch)})
        save_by_rename(patch, contents(2))
        eventually(lambda: seen == [patch])
        save_by_rename(library, contents(3))
        eventually(lambda: seen == [patch, library])


def test_a_text_that_is_too_large_is_not_read(
    watcher: Watcher, reports: Reports, patch: Path, eventually: Eventually
) -> None:
    watcher.watch({patch: read_text(patch)})
    with patch.open("wb") as out:
        out.truncate(1 << 40)
    eventually(lambda: reports.all)
    assert reports.all[0][1].data is None
    assert reports.all[0][1].problem == "it is larger than 1 MB, which no patch is"
    patch.write_bytes(b"x" * TEXT_LIMIT)
    eventually(lambda: reports.texts()[1:] == [b"x" * TEXT_LIMIT])


def test_media_are_told_apart_without_being_read(
    watcher: Watcher, reports: Reports, tmp_path: Path, eventually: Eventually
) -> None:
    film = tmp_path / "film.mp4"
    with film.open("wb") as out:
        out.truncate(1 << 40)
    watcher.watch({film: stat_media(film)})
    with film.open("r+b", buffering=0) as out:
        for _ in range(20):
            out.write(b"frame")
            time.sleep(0.002)
    eventually(lambda: reports.all)
    assert reports.all == [(film, stat_media(film))]
    film.unlink()
    eventually(lambda: len(reports.all) == 2)
    assert reports.all[1][1].problem == "there is no such file"


def test_what_is_no_file_has_a_reason(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert read_text(pipe).problem == stat_media(pipe).problem == "it is not a file with contents"
    assert read_text(tmp_path).problem == stat_media(tmp_path).problem == "it is a folder"
    assert read_text(tmp_path / "x" / "y").problem == "there is no such file"
    assert read_text(tmp_path / "nul\0").problem == "there is no such file"
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert "symbolic links" in (read_text(loop).problem or "")


def test_without_events_polling_still_finds_changes(
    reports: Reports, patch: Path, monkeypatch: pytest.MonkeyPatch, eventually: Eventually
) -> None:
    def no_more_watches() -> None:
        raise OSError("inotify instance limit reached")

    monkeypatch.setattr("weft.runtime.live.saves.Observer", no_more_watches)
    with closing(Watcher(reports)) as watcher:
        watcher.watch({patch: read_text(patch)})
        for number, way in enumerate([save_by_rename, save_in_chunks, save_by_link], 1):
            way(patch, contents(number))
            eventually(lambda number=number: reports.texts()[-1:] == [contents(number)])
    assert reports.texts() == [contents(1), contents(2), contents(3)]


def test_closing_ends_all_threads_and_all_reports(patch: Path, reports: Reports) -> None:
    before = set(threading.enumerate())
    watcher = Watcher(reports)
    watcher.watch({patch: read_text(patch)})
    watcher.close()
    watcher.close()
    assert set(threading.enumerate()) <= before
    patch.write_bytes(contents(1))
    assert not reports.all


def test_the_current_folder_may_be_renamed(
    watcher: Watcher, reports: Reports, patch: Path, monkeypatch: pytest.MonkeyPatch, eventually: Eventually
) -> None:
    folder = patch.parent / "set"
    folder.mkdir()
    (folder / "patch.weft").write_bytes(contents(1))
    monkeypatch.chdir(folder)
    path = Path("patch.weft")
    watcher.watch({path: read_text(path)})
    for number in (2, 3):
        renamed = folder.rename(patch.parent / f"set {number}")
        # As a player sees it, nothing has happened to the file.
        (renamed / "patch.weft").write_bytes(contents(number))
        eventually(lambda number=number: reports.texts()[-1:] == [contents(number)])
        folder = renamed
    assert reports.texts() == [contents(2), contents(3)]
    # Once it is deleted, there is no file, and the watcher continues.
    shutil.rmtree(folder)
    eventually(lambda: len(reports.all) == 3)
    assert reports.all[-1][1].problem == "there is no such file"
    watcher.watch({patch: read_text(patch)})
    patch.write_bytes(contents(4))
    eventually(lambda: reports.texts()[-1] == contents(4))
