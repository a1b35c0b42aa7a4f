"""The patches and edits that the benchmarks generate: all are programs, but for the edits that are mistakes."""

from itertools import islice
from pathlib import Path

import pytest

from benchmarks.generated import SIZES, STYLES, edits, patch, patches
from tests.cli.conftest import Weft
from weft.contexts import ContextTable
from weft.errors import Source, WeftError
from weft.runtime.compiling.kept import KeptBuild
from weft.runtime.compiling.stages import Request, build


def mistakes(text: str, kept: KeptBuild) -> list[str]:
    try:
        build(Request(Source("a.weft", text), ContextTable()), kept=kept)
    except WeftError as failure:
        return [each.render() for each in failure.diagnostics]
    return []


@pytest.mark.parametrize("style", STYLES)
def test_a_patch_and_its_edits_are_programs(style: str) -> None:
    text, kept = patch(style, 25, 7).text, KeptBuild()
    assert not mistakes(text, kept)
    seen = {text}
    for edit in islice(edits(text), 13):
        found = mistakes(edit.text, kept)
        assert bool(found) == (edit.kind == "mistake"), f"{edit.kind}: {found}\n{edit.text}"
        assert edit.text not in seen, f"{edit.kind} was there:\n{edit.text}"
        seen.add(edit.text)


def test_patches_are_those_of_their_seed_and_about_as_long_as_asked() -> None:
    made = patches(5, 2 * len(STYLES))
    assert made == patches(5, 2 * len(STYLES)) != patches(6, 2 * len(STYLES))
    assert [each.style for each in made] == [*STYLES] * 2
    for n, each in enumerate(made):
        asked = SIZES[(n + n // len(STYLES)) % len(SIZES)]
        assert 0.9 * asked <= each.statements <= 1.3 * asked + 20, each.name


def test_a_patch_passes_the_check(tmp_path: Path) -> None:
    (tmp_path / "made.weft").write_text(patch("evening", 25, 3).text)
    Weft(tmp_path)("check", "made.weft")
