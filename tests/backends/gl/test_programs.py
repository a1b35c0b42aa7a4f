"""Programs that a driver has linked are kept on disk, and what is wrong with a kept one does no harm."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.gl import Graphics, graphics
from weft.backends.base import Env
from weft.backends.gl.backend import GlVisual
from weft.codegen.kernel import Unit
from weft.contexts import OWN_CONTEXTS, ContextTable
from weft.errors import Source
from weft.runtime.compiling.stages import Request, build
from weft.runtime.program.coordinator import ProgramRunner

__all__ = ["graphics"]

SIZE = (12, 8)


class Linker:
    """Draws with programs that a driver links or that were kept, and counts those that it links."""

    def __init__(self, graphics: Graphics, linked: list[object]) -> None:
        self._graphics = graphics
        self._linked = linked

    def drawn(self, text: str) -> tuple[bytes, int]:
        """A picture of a new backend, and how many programs were linked for it."""
        before = len(self._linked)
        backend, env = GlVisual(self._graphics, tiled=False), Env(*SIZE, abstime=0.25)
        contexts = ContextTable(OWN_CONTEXTS)
        runner = ProgramRunner(contexts)
        compiled = backend.compile_subgraph(_unit(text, contexts), env, runner)
        shown: Any = backend.execute_subgraph(compiled, env, runner)
        return shown.read().tobytes(), len(self._linked) - before


def _unit(text: str, contexts: ContextTable) -> Unit:
    (unit,) = build(Request(Source("p.weft", text), contexts)).units
    return unit


@pytest.fixture
def linker(graphics: Graphics, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Linker:
    from weft.backends.gl import programs

    links, found = programs.linked, list[object]()

    def linking(*given: Any, **more: Any) -> Any:
        found.append(given)
        return links(*given, **more)

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(programs, "linked", linking)
    if graphics.prepared(lambda _: programs._place(graphics.about, ())) is None:
        pytest.skip("this driver gives no programs away")
    return Linker(graphics, found)


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return tmp_path / "weft" / "programs"


TEXT = "display(fract(me@x * 7 + me@time), me@y, sin(me@x * 9) * 0.5 + 0.5)\n"


def test_a_program_is_linked_once_for_all_processes(linker: Linker, kept: Path) -> None:
    first, links = linker.drawn(TEXT)
    assert (links, len(list(kept.iterdir()))) == (1, 1)
    assert linker.drawn(TEXT) == (first, 0)
    turned, links = linker.drawn(TEXT.replace("7", "6"))
    assert (turned != first, links) == (True, 0), "numbers are no part of a program"
    assert linker.drawn(TEXT.replace("fract", "abs"))[1] == 1


def _damage(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-40] + b"\0" * 40)


def _shorten(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:10])


def _of_another_driver(file: Path) -> None:
    """A file that is whole, but in a form that the driver does not know."""
    from weft.backends.gl.programs import _FORM
    from weft.backends.kept_programs import _KEPT
    from weft.disk import keep, read_kept

    binary = read_kept(file, _KEPT)[_FORM.size :]
    keep(file, _KEPT, _FORM.pack(0x12345678) + binary)


def _written_by_others(file: Path) -> None:
    file.chmod(0o666)


@pytest.mark.parametrize("spoil", [_damage, _shorten, _of_another_driver, _written_by_others])
def test_what_is_wrong_is_not_used_and_made_again(linker: Linker, kept: Path, spoil: Any) -> None:
    first, _ = linker.drawn(TEXT)
    (file,) = kept.iterdir()
    spoil(file)
    assert linker.drawn(TEXT) == (first, 1)
    assert linker.drawn(TEXT) == (first, 0)


def test_it_draws_without_a_place_to_keep_programs(linker: Linker, tmp_path: Path) -> None:
    (tmp_path / "weft").write_text("a file, where there should be a folder")
    first, links = linker.drawn(TEXT)
    assert links == 1
    assert linker.drawn(TEXT) == (first, 1)


def test_the_oldest_are_removed(linker: Linker, kept: Path) -> None:
    kept.mkdir(parents=True)
    for number in range(600):
        file = kept / f"{number:032}"
        file.write_bytes(b"")
        os.utime(file, (number, number))
    linker.drawn(TEXT)
    left = sorted(path.name for path in kept.iterdir())
    assert len(left) == 301
    assert left[0] == f"{300:032}"
