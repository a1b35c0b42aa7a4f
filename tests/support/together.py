"""What runs together: the tests that one worker of pytest-xdist runs, one after another (`--dist loadgroup`); and the
part of a test's many cases that is tried in `make test` and in continuous integration.

Groups are recognised by the names of tests: with pytest 9.2, pytest-xdist 3.8 loses those that marks give.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from hypothesis import settings

# Sound processes ask for priority over all others, and two at once would compete as they never do on a stage. Keys go
# to the window on top. What a process makes only once is shared: all machines that are tried with the same hundred of
# generated programs, all that plays a patch its kernels, all that reads the sources of weft their trees, and all pages
# a browser. What is measured takes seconds, and several tests look at it.
_GROUPS = re.compile(
    r"tests/(?P<loudspeaker>runtime/sound/test_(?:device|evening|fallback|flaws|microphone|\w*performance|null_device|process"
    r"|streams)|cli/test_run_record)\.py"
    r"|tests/(?P<display>runtime/screens/test_window_performance\.py|cli/test_examples\.py::test_a_name_is_played)"
    r"|tests/cli/(?P<bench>test_bench)\.py"
    r"|tests/(?:test_generated_parity|codegen/test_\w+_pictures|backends/test_prologue)\.py::"
    r"test_generated_(?P<made>programs|sounds)\w+(?:\[\D*(?P<start>\d+)\])?"
    r"|tests/(?P<first>test_generated_parity)\.py::"
    r"|tests/(?:test_patches|backends/\w+/test_(?:backend|tiles)|codegen/(?:test_essl|test_msl_checks|test_wgsl|clike/test_numbers))\.py::"
    r"test_(?:a_(?:shipped|list_with_other|known_program)_\w+|nothing_is_left_out)\[(?:[a-z]+-)?(?P<patch>\w+)\]"
    r"|tests/(?P<file>backends/test_(?:card_sound|reads)|test_layers)\.py"
    r"|tests/codegen/(?P<msl>test_msl_pictures)\.py::test_(?!generated)"
    r"|tests/(?P<pages>web/test_(?!firefox)\w+)\.py"
)

LISTENING = "loudspeaker"
"""The group of the tests that listen to sounds."""


_ROOT = Path(__file__).parents[2]

_LASTS = re.compile(r'^@pytest\.fixture\(scope="module".*\)\ndef (\w+)', re.MULTILINE)
_FUNCTION = re.compile(r"^def (\w+)\(([^)]*)\)", re.MULTILINE)


@cache
def _lasting(path: Path) -> frozenset[str]:
    """The fixtures of a file that are made once for all tests of a file."""
    return frozenset(_LASTS.findall(path.read_text(encoding="utf-8"))) if path.exists() else frozenset()


@cache
def _offered(folder: Path) -> frozenset[str]:
    """Such fixtures that tests of a folder may take from other files."""
    conftests = (each / "conftest.py" for each in (folder, *folder.parents))
    return frozenset[str]().union(*map(_lasting, (*conftests, *(_ROOT / "tests" / "support").glob("*.py"))))


@cache
def _sharing(file: str) -> frozenset[str]:
    """The tests of a file that take such fixtures of other files, at once or by another fixture."""
    path = _ROOT / file
    if not path.exists():
        return frozenset()
    functions = {name: set(re.findall(r"\w+", taken)) for name, taken in _FUNCTION.findall(path.read_text("utf-8"))}
    found = _offered(path.parent)
    while more := {name for name, taken in functions.items() if name not in found and taken & found}:
        found |= more
    return found


def group_of(name: str) -> str:
    """The group of a test by its whole name (`tests/…::test_…[…]`): its file where something is made once for all its
    tests, which another worker would make again, and so would one that runs something else in between; that name itself
    where it stands alone."""
    found = _GROUPS.match(name)
    if found is None:
        file, _, test = name.partition("::")
        return file if _lasting(_ROOT / file) or test.partition("[")[0] in _sharing(file) else name
    if found["made"] or found["first"]:
        return f"{found['made'] or 'programs'} {int(found['start'] or 0) // 100}00"
    return found["patch"] or found["file"] or str(found.lastgroup)


def place_of(name: str) -> int:
    """When a test begins, by its whole name: those with a lower number come first. The tests that listen mostly wait,
    and the other workers have enough to do meanwhile. A long group that came last would be waited for."""
    group = group_of(name)
    return 0 if group == LISTENING else 1 if group != name else 2


# Of a test with more cases than `_FEW`, `make test` tries one in `_STEP`, but at most `_MOST`.
_FEW = 2
_STEP = 4
_MOST = 12


def some_of(names: Sequence[str]) -> frozenset[str]:
    """The tests of `make test` among these, by their whole names: some of the cases of those that have many."""
    families: dict[str, list[str]] = {}
    for name in names:
        families.setdefault(name.partition("[")[0], []).append(name)
    return frozenset(name for at, family in enumerate(families.values()) for name in _cases(at, family))


def _cases(at: int, family: Sequence[str]) -> Sequence[str]:
    """The cases of test number `at`. One and the same patch is not always left out: others begin elsewhere."""
    step = max(_STEP, -(-len(family) // _MOST)) if len(family) > _FEW else 1
    return family[at % step :: step]


# Continuous integration tries what `make test` tries, and of the rest one test in `_TURNS`: others with each commit.
_TURNS = 8


def turn(names: Sequence[str]) -> frozenset[str]:
    """The tests whose turn it is at this commit, by their whole names."""
    shown = subprocess.run(["git", "rev-parse", "HEAD"], cwd=_ROOT, capture_output=True, text=True, check=False).stdout
    now = crc32(shown.encode())
    return frozenset(name for name in names if (crc32(name.encode()) + now) % _TURNS == 0)


def all_but(count: int, values: Iterable[Any]) -> list[Any]:
    """Values of a parameter, or tuples of several, of which all but the first `count` make a test `long`."""
    tuples = [value if isinstance(value, tuple) else (value,) for value in values]
    return [pytest.param(*each, marks=[pytest.mark.long] * (at >= count)) for at, each in enumerate(tuples)]


def examples(count: int) -> int:
    """How many examples hypothesis tries where all tests run and look for what is new. CI tries half of them, and
    `make test` a tenth, as of all others."""
    return -(-count * settings.default.max_examples // 100)
