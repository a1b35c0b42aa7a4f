"""What runs together: the tests that one worker of pytest-xdist runs, one after another (`--dist loadgroup`), and the
part of a family of tests that is in `make test` and not only in `make test-all`.

Groups are recognised by the names of tests: with pytest 9.2, pytest-xdist 3.8 loses those that marks give.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# Sound processes ask for priority over all others, and two at once would compete as they never do on a stage. Keys go
# to the window on top. What a process makes only once is shared: all machines that are tried with the same hundred of
# generated programs, all that plays a patch its kernels, and all that reads the sources of weft their trees. What is
# measured takes seconds, and several tests look at it.
_GROUPS = re.compile(
    r"tests/(?P<loudspeaker>runtime/sound/test_(?:device|evening|fallback|flaws|microphone|\w*performance|null_device|process"
    r"|streams)|cli/test_run_record)\.py"
    r"|tests/(?P<display>runtime/screens/test_window_performance\.py|cli/test_examples\.py::test_a_name_is_played)"
    r"|tests/cli/(?P<bench>test_bench)\.py"
    r"|tests/(?:test_generated_parity|codegen/test_\w+_pictures|backends/test_prologue)\.py::"
    r"test_generated_(?P<made>programs|sounds)\w+(?:\[\D*(?P<start>\d+)\])?"
    r"|tests/(?P<first>test_generated_parity)\.py::"
    r"|tests/(?:test_patches|backends/\w+/test_(?:backend|tiles)|codegen/(?:test_essl|test_msl_checks|clike/test_numbers))\.py::"
    r"test_(?:a_(?:shipped|list_with_other|known_program)_\w+|nothing_is_left_out)\[(?:[a-z]+-)?(?P<patch>\w+)\]"
    r"|tests/(?P<file>backends/test_(?:card_sound|reads)|test_layers)\.py"
    r"|tests/codegen/(?P<msl>test_msl_pictures)\.py::test_(?!generated)"
)

LISTENING = "loudspeaker"
"""The group of the tests that listen to sounds."""


_ROOT = Path(__file__).parents[2]


@cache
def _makes_once(file: str) -> bool:
    """Whether a file of tests has a fixture that is made once for all of them. Another worker would make it again, and
    so would one that runs something else in between."""
    return 'scope="module"' in (_ROOT / file).read_text(encoding="utf-8")


def group_of(name: str) -> str:
    """The group of a test by its whole name (`tests/…::test_…[…]`): its file where that makes something once; that name
    itself where it stands alone."""
    found = _GROUPS.match(name)
    if found is None:
        file = name.partition("::")[0]
        return file if _makes_once(file) else name
    if found["made"] or found["first"]:
        return f"{found['made'] or 'programs'} {int(found['start'] or 0) // 100}00"
    return found["patch"] or found["file"] or str(found.lastgroup)


def place_of(name: str) -> int:
    """When a test begins, by its whole name: those with a lower number come first. The tests that listen mostly wait,
    and the other workers have enough to do meanwhile. A long group that came last would be waited for."""
    group = group_of(name)
    return 0 if group == LISTENING else 1 if group != name else 2


# Of a test with more cases than `_FEW`, `make test` tries every third, but not more than `_MANY`.
_FEW = 3
_MANY = 24


def some_of(names: Sequence[str]) -> frozenset[str]:
    """The tests of `make test` among these, by their whole names: some of the cases of those that have many."""
    families: dict[str, list[str]] = {}
    for name in names:
        families.setdefault(name.partition("[")[0], []).append(name)
    return frozenset(name for family in families.values() for name in family[:: _step(len(family))])


def _step(count: int) -> int:
    return max(3, -(-count // _MANY)) if count > _FEW else 1


# What each device does with each patch that ships, each language of devices with each row of the table of operations,
# and each browser with each case of the language; and what is asked of each patch besides whether it is right.
_EVERYWHERE = re.compile(
    r"tests/(?:backends|codegen|web)/.*::test_a_(?:shipped|case)_\w+\["
    r"|tests/test_patches\.py::test_a_shipped_\w+_(?:as_webassembly|by_the_fastest_machine|is_comfortable)\["
    r"|tests/(?:codegen/test_units\.py::test_kernels_with_other_constants|runtime/inspect/test_precision\.py::test_no)\w+\["
    r"|tests/codegen/(?:test_opencl\.py::test_\w+\[|clike/test_rows\.py::test_\w+\[(?:cuda|opencl)-)"
)


def some_everywhere(names: Sequence[str]) -> frozenset[str]:
    """The tests of continuous integration among these, by their whole names: all, but of what every device does with
    everything one case in three, others on each device."""
    families: dict[str, list[str]] = {}
    for name in names:
        if _EVERYWHERE.match(name):
            families.setdefault(name.partition("[")[0], []).append(name)
    left = {name for at, family in enumerate(families.values()) for name in family[at % 3 :: 3]}
    return frozenset(name for name in names if name in left or not _EVERYWHERE.match(name))


def all_but(count: int, values: Iterable[Any]) -> list[Any]:
    """Values of a parameter, or tuples of several, of which all but the first `count` make a test `long`."""
    tuples = [value if isinstance(value, tuple) else (value,) for value in values]
    return [pytest.param(*each, marks=[pytest.mark.long] * (at >= count)) for at, each in enumerate(tuples)]


def examples(count: int) -> int:
    """How many examples hypothesis tries where all tests run and look for what is new. CI tries half of them, and
    `make test` a tenth, as of all others."""
    return -(-count * settings.default.max_examples // 100)
