"""What is kept on disk counts only if nothing is wrong with it; where anybody may have put something, only plain files
are read."""

from __future__ import annotations

import os
import shutil
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from tests.support.films import gray_film
from tests.support.sounds import cache, write_wav
from weft.disk import (
    HEAD_BYTES, KeptWriter, NotPlainError, cache_folder, is_kept, keep, make_private, map_kept, new_file, open_plain,
    read_kept, read_plain, replacing
)
from weft.media import sounds
from weft.media.letters import drawn
from weft.media.sampled import decoded_files, header_of, read_decoded
from weft.media.sounds import load_sound
from weft.media.source import PictureError
from weft.names import Letters, SoundFile
from weft.platform import system
from weft.runtime.films.encoding import FilmParts, film_spec, write_segment
from weft.runtime.hands.parameters import ParameterBank, ValuesFile
from weft.runtime.program.files import read_text
from weft.syntax.scanner import UnreadableError, read_text as text_of

__all__ = ["cache"]

DATA = bytes(range(256)) * 40


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    path = tmp_path / "kept" / "a"
    keep(path, "test 1", DATA)
    return path


# --- what is kept ---


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5])


def _longer(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"x")


def _changed(path: Path) -> None:
    whole = bytearray(path.read_bytes())
    whole[HEAD_BYTES + 700] ^= 1
    path.write_bytes(whole)


def _renamed(path: Path) -> None:
    keep(path.with_name("b"), "test 1", DATA)
    os.replace(path.with_name("b"), path)


def _linked(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


def _piped(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


WRONG: dict[str, Callable[[Path], object]] = {
    "gone": Path.unlink, "empty": lambda path: path.write_bytes(b""), "3 bytes": lambda path: path.write_bytes(b"abc"),
    "cut": _cut, "longer": _longer, "changed": _changed, "another's name": _renamed,
    "another version": lambda path: keep(path, "test 2", DATA), "a link": _linked, "a pipe": _piped,
    "open to others": lambda path: path.chmod(0o666), "in an open folder": lambda path: path.parent.chmod(0o777),
}  # fmt: skip


def test_what_is_kept_is_read(kept: Path) -> None:
    assert read_kept(kept, "test 1") == DATA
    assert map_kept(kept, "test 1")[HEAD_BYTES:] == DATA
    assert (kept.parent.stat().st_mode & 0o777, kept.stat().st_mode & 0o777) == (0o700, 0o600)
    assert [path.name for path in kept.parent.iterdir()] == ["a"]


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_is_not_there_and_is_kept_anew(wrong: str, kept: Path) -> None:
    WRONG[wrong](kept)
    for look in (read_kept, map_kept):
        with pytest.raises(OSError, match=r"."):
            look(kept, "test 1")
    assert not is_kept(kept, "test 1")
    keep(kept, "test 1", DATA)
    assert read_kept(kept, "test 1") == DATA
    assert kept.parent.stat().st_mode & 0o022 == 0


def test_what_somebody_else_keeps_is_not_trusted(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert not is_kept(kept, "test 1")
    assert is_kept(kept, "test 1", is_private=False)
    with pytest.raises(PermissionError):
        make_private(kept.parent)


def test_what_fails_is_not_kept(kept: Path) -> None:
    with suppress(ZeroDivisionError), KeptWriter(kept, "test 1") as file:
        file.write(b"half")
        raise ZeroDivisionError
    assert read_kept(kept, "test 1") == DATA
    assert [path.name for path in kept.parent.iterdir()] == ["a"]


def test_a_file_is_replaced_whole_and_nothing_behind_a_link_is_written(tmp_path: Path) -> None:
    path, victim = tmp_path / "a.txt", tmp_path / "victim"
    victim.write_text("precious")
    names = set()
    for text in ("first", "second"):
        with replacing(path) as aside:
            names.add(aside.name)
            aside.write_text(text)
        assert path.read_text() == text
    assert len(names) == 2
    with suppress(ZeroDivisionError), replacing(path) as aside:
        raise ZeroDivisionError
    assert path.read_text() == "second"
    assert {each.name for each in tmp_path.iterdir()} == {"a.txt", "victim"}
    (tmp_path / "link").symlink_to(victim)
    with new_file(tmp_path / "link") as file:
        file.write(b"new")
    assert (victim.read_text(), (tmp_path / "link").read_text()) == ("precious", "new")


# --- decoded sounds ---


@pytest.mark.parametrize("wrong", WRONG)
def test_a_decoded_sound_with_something_wrong_is_decoded_again(wrong: str, tmp_path: Path, cache: Path) -> None:
    stored = write_wav(tmp_path / "a.wav", np.random.default_rng(1).uniform(-0.9, 0.9, (3000, 2)))
    name = SoundFile(str(tmp_path / "a.wav"), 48_000).name
    load_sound(tmp_path / "a.wav", 48_000)
    (file,) = decoded_files([name]).values()
    WRONG[wrong](Path(file))
    with pytest.raises(PictureError, match="its samples are gone"):
        read_decoded(file)
    np.testing.assert_array_equal(load_sound(tmp_path / "a.wav", 48_000)[0], stored)
    np.testing.assert_array_equal(read_decoded(file)[0], stored)


@pytest.mark.parametrize("given", ["", "caches", "./caches"])
def test_a_relative_folder_of_caches_does_not_count(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", given)
    assert cache_folder() == system.cache_home() / "weft"


def test_a_shared_folder_of_somebody_else_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no folder can be trusted, sounds play all the same."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(sounds.tempfile, "gettempdir", lambda: str(tmp_path))
    stored = write_wav(tmp_path / "a.wav", np.random.default_rng(1).uniform(-0.9, 0.9, (3000, 2)))
    load_sound(tmp_path / "a.wav", 48_000)
    (theirs,) = tmp_path.glob("weft-sounds-*")
    before = {path: path.stat().st_mtime_ns for path in theirs.iterdir()}
    theirs.rename(tmp_path / "moved")
    theirs.symlink_to(tmp_path / "moved")  # no folder of this user either
    np.testing.assert_array_equal(load_sound(tmp_path / "a.wav", 48_000)[0], stored)
    assert {path: path.stat().st_mtime_ns for path in theirs.iterdir()} == before


# --- films on their way ---


def test_a_damaged_segment_of_a_film_is_drawn_again(tmp_path: Path) -> None:
    pytest.importorskip("av")
    spec = film_spec(".mkv", "ffv1", None, (16, 16), 25)
    out, numbers = tmp_path / "a.mkv", range(3 * spec.segment)
    frames = [np.zeros((16, 16, 4), np.uint8)] * spec.segment
    parts = FilmParts(out, spec, numbers, "origin")
    parts.open(overwrite=False)
    segments = list(parts.segments.values())
    for segment in segments[:2]:
        write_segment(spec, segment, frames)
    assert len(parts.missing) == spec.segment
    parts.close(keep=True)
    _cut(segments[1])
    (segments[0].parent / ".left.part").touch()
    again = FilmParts(out, spec, numbers, "origin")
    assert again.open(overwrite=False) == 0
    assert again.missing == [number for first in list(again.segments)[1:] for number in again.frames(first)]
    assert {path.name for path in segments[0].parent.iterdir()} == {"origin", segments[0].name}
    again.close(keep=False)


def test_links_among_the_parts_of_a_film_lead_nowhere(tmp_path: Path) -> None:
    spec = film_spec(".mkv", "ffv1", None, (16, 16), 25)
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / ".a.mkv.parts").mkdir()
    (tmp_path / ".a.mkv.parts" / "origin").symlink_to(victim)
    with pytest.raises(OSError, match="origin"):
        FilmParts(tmp_path / "a.mkv", spec, range(3), "origin").open(overwrite=True)
    assert victim.read_text() == "precious"


# --- what anybody may have put there ---


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        folder = os.getcwd()
        os.chdir(path.parent)  # the path of a socket is short
        try:
            made.bind(path.name)
        finally:
            os.chdir(folder)


ODD: dict[str, Callable[[Path], object]] = {
    "a named pipe": _fifo, "a folder": Path.mkdir, "a device": lambda path: path.symlink_to("/dev/zero"),
    "a socket": _socket, "a link in a circle": lambda path: path.symlink_to(path.name),
}  # fmt: skip


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("name", ["a.weft", "a.png", "a.gif", "a.webp", "a.wav", "a.mp3", "a.mp4", "a.webm", "a.ttf"])
def test_only_plain_files_are_read(name: str, odd: str, tmp_path: Path) -> None:
    path = tmp_path / name
    ODD[odd](path)
    with pytest.raises(OSError, match=r"."):
        open_plain(path)
    if name == "a.weft":
        assert read_text(path).problem
        with pytest.raises(UnreadableError):
            text_of(str(path))
    elif name == "a.ttf":
        with pytest.raises(PictureError):
            drawn(Letters("a", str(path), "left"))
    else:
        assert isinstance(header_of(str(path)), str)


def test_no_more_is_read_than_is_wanted(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(DATA)
    assert (read_plain(tmp_path / "a"), read_plain(tmp_path / "a", 7)) == (DATA, DATA[:7])
    for name in ("b", "a\0b"):
        with pytest.raises(FileNotFoundError):
            open_plain(tmp_path / name)
    with pytest.raises(NotPlainError) as raised:
        open_plain(tmp_path)
    assert raised.value.strerror == "it is a folder"


@pytest.mark.parametrize("odd", ODD)
def test_a_file_of_values_that_is_no_file_is_told(odd: str, tmp_path: Path) -> None:
    ODD[odd](tmp_path / "v.weft.values")
    note = ValuesFile(tmp_path / "v.weft", ParameterBank()).read()
    assert note is not None
    assert "cannot be read" in note or "a link leads there" in note


def test_a_playlist_leads_to_no_other_file(tmp_path: Path) -> None:
    """A film that is a list of films: only what was named is read."""
    gray_film(tmp_path / "secret.mp4", 3)
    lists = {
        "hls": "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nsecret.mp4\n#EXT-X-ENDLIST\n",
        "hls-file": f"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nfile:{tmp_path}/secret.mp4\n#EXT-X-ENDLIST\n",
        "concat": "ffconcat version 1.0\nfile secret.mp4\n",
    }
    for name, text in lists.items():
        path = tmp_path / f"{name}.mp4"
        path.write_text(text)
        assert isinstance(header_of(str(path)), str), name
    shutil.copy(tmp_path / "secret.mp4", tmp_path / "named: as a protocol.mp4")
    assert not isinstance(header_of(str(tmp_path / "named: as a protocol.mp4")), str)


def test_an_interrupt_at_any_moment_leaves_no_file(tmp_path):
    """Wherever it comes until the file is written."""
    begun: list[Path] = []
    for moment in count(1):
        left = iter(range(moment, -1, -1))

        def interrupt(frame, event, _, left=left):
            is_here = event == "line" and frame.f_code.co_filename.endswith("disk.py")
            if is_here and not begun and next(left, None) == 0:
                raise KeyboardInterrupt
            return interrupt

        before = sys.gettrace()
        sys.settrace(interrupt)
        try:
            with suppress(KeyboardInterrupt), replacing(tmp_path / "a.png") as aside:
                begun.append(aside)
        finally:
            sys.settrace(before)
        if begun:
            break
        assert not list(tmp_path.iterdir()), moment
    assert moment > 3
