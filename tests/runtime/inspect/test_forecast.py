"""What a broken statement makes of the errors in others."""

from __future__ import annotations

import pytest

from weft.contexts import ContextTable
from weft.errors import Source
from weft.runtime.inspect.forecast import check


def codes(text: str) -> list[str]:
    return [d.code for d in check(Source("patch.weft", text), ContextTable())]


@pytest.mark.parametrize(
    "broken",
    [
        "lost<v> = sin(me@x",
        "let lost = (1 +",
        "sin(me@x ~ )::lost<v>",
        '#slider lost<v> = 1, 0 "no range"',
        "spindle lost(x) :: <y> { y = }",
        "a = 1; lost = * 2",
    ],
)
def test_what_a_broken_statement_would_have_bound_is_not_missed(broken: str) -> None:
    use = "lost(1)" if "spindle" in broken else "lost"
    found = codes(f"{broken}\ndisplay({use})\n")
    assert len(found) == 1
    assert not found[0].startswith("unknown")


def test_other_mistakes_are_found_all_the_same() -> None:
    found = codes("lost<v> = sin(me@x\nb = nois@v\nc = clamp(1, 2, 3, 4)\ndisplay(b, lost@v, 0)\n")
    assert found == ["unclosed-bracket", "unknown-strand", "too-many-arguments"]


def test_without_a_broken_statement_every_unknown_name_is_told() -> None:
    assert codes("a = lost\ndisplay(a)\n") == ["unknown-strand"]
