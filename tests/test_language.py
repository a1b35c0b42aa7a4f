"""docs/language.md says what the tables of the language say: the reference is compared with them, row by row."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from weft.contexts import ContextTable
from weft.graph.domain import ALL_FIELDS, SETTINGS
from weft.keys import KEYS, MOUSE
from weft.ops import BINARY, BUILTINS, CONSTANTS, STATE, UNARY, WORDS
from weft.ops.spec import Param
from weft.sources import SOURCES
from weft.syntax.pragmas import PRAGMAS
from weft.syntax.scanner import KEYWORDS

TEXT = (Path(__file__).parents[1] / "docs" / "language.md").read_text(encoding="utf-8")
CALL = re.compile(r"(\w+)\(([^)]*)\)")


def section(title: str) -> str:
    """The text below a heading, up to the next one."""
    found = re.search(rf"^#+ {re.escape(title)}\n(.*?)(?=^#+ |\Z)", TEXT, re.MULTILINE | re.DOTALL)
    assert found, title
    return found[1]


def rows(title: str) -> list[list[str]]:
    """The cells of the tables below a heading, without what stands above their lines."""
    lines = [line.strip("| ") for line in section(title).splitlines() if line.startswith("|")]
    return [re.split(r" +\| +", line) for line in lines if set(line) - set("-| ")]


def spelled(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell.replace("\\|", "|"))


def calls(texts: Iterator[str] | list[str]) -> dict[str, list[str]]:
    """The arguments of all calls in some texts, by the name that is called."""
    found: dict[str, list[str]] = {}
    for name, arguments in CALL.findall("\n".join(texts)):
        found.setdefault(name, []).append(arguments)
    return found


def test_builtins_are_those_of_the_table() -> None:
    documented = [text for row in rows("Builtins") for text in spelled(row[-1])]
    of_rows = [
        f"{name}({', '.join(map(str, row.params))}{', …' if row.variadic else ''})" for name, row in BUILTINS.items()
    ]
    assert sorted(documented) == sorted(of_rows)


def test_operators_have_the_precedence_that_the_document_says() -> None:
    """Loosest first: a line may have several levels, each after `, then`."""
    levels = [
        [symbol for text in spelled(part) for symbol in text.split()]
        for row in rows("Expressions")
        for part in row[0].split(", then ")
    ]
    prefix = {"not": UNARY["not"].level, "-x": UNARY["-"].level}
    actual = {**{symbol: row.level for symbol, row in BINARY.items()}, **prefix}
    operators = [level for level in levels if level and set(level) <= actual.keys()]  # no calls and other forms
    found = {symbol: rank for rank, level in enumerate(operators) for symbol in level}
    assert found.keys() == actual.keys()
    ranks = {level: rank for rank, level in enumerate(sorted(set(actual.values())))}
    assert found == {symbol: ranks[level] for symbol, level in actual.items()}


def test_words_for_bundles_are_those_of_the_table() -> None:
    kinds = [row for row in rows("Bundles") if row[0].startswith(("to ", "by "))]
    documented = calls([text for _, cell in kinds for text in spelled(cell)])
    assert documented.keys() == WORDS.keys()
    for name, (arguments, *others) in documented.items():
        assert not others
        assert len(re.sub(", b, …", "", arguments).split(", ")) == len(WORDS[name].params)
        assert WORDS[name].variadic == ("…" in arguments)


@pytest.mark.parametrize("name", STATE)
def test_memory_is_called_as_the_table_says(name: str) -> None:
    documented = calls([row[0] for row in rows("Memory")] + [section("Images of this frame").split("\n- ")[0]])[name]
    params: tuple[Param, ...] = STATE[name].params
    required = sum(param.default is None for param in params)
    for arguments in documented if name != "image" else ["e"]:
        named = arguments.split(", ")
        assert named == [param.name for param in params][: len(named)]
        assert required <= len(named)


def test_memory_has_no_more_than_the_table() -> None:
    assert {CALL.search(row[0])[1] for row in rows("Memory") if "(" in row[0]} | {"image"} == STATE.keys()  # type: ignore[index]


def test_settings_have_the_defaults_and_ranges_that_the_document_says() -> None:
    documented = {}
    for names, defaults, text in rows("Settings")[1:]:
        low, high = text.removeprefix("whole, ").split()[0].rstrip(",:").split("…")
        for name, default in zip(spelled(names), defaults.split(", "), strict=True):
            documented[name] = (float(default), number(low), number(high), text.startswith("whole"))
    assert documented == {s.name: (s.default, s.low, s.high, s.whole) for s in SETTINGS.values()}


def number(text: str) -> float:
    """Of a text such as 10⁻⁶."""
    power = re.fullmatch(r"10([⁻⁰-⁹¹²³]+)", text)
    return float(f"1e{power[1].translate(str.maketrans('⁻⁰¹²³⁴⁵⁶⁷⁸⁹', '-0123456789'))}" if power else text)


def test_fields_are_those_of_the_tables() -> None:
    documented = {
        field.removeprefix("me@")
        for title in ("Coordinates and settings", "Settings")
        for row in rows(title)
        for field in spelled(row[0])
    }
    assert documented == {*ALL_FIELDS}


def test_keys_and_the_mouse_are_those_of_the_tables() -> None:
    text = section("Settings")
    named = re.search(r"letters, digits, `f1`…`f12`, `([^`]+)`", text)
    assert named
    assert {*named[1].split()} == {key for key in KEYS if len(key) > 1 and not re.fullmatch(r"f\d+", key)}
    assert {field for field in MOUSE if f"`mouse@{field}`" in text} == MOUSE.keys()


def test_reserved_words_are_those_of_the_scanner() -> None:
    reserved = re.search(r"These words are reserved: `([^`]+)`", " ".join(TEXT.split()))
    assert reserved
    assert {*reserved[1].split()} == KEYWORDS.keys()


@pytest.mark.parametrize(
    ("what", "names"),
    [("pragmas", [f"#{name}" for name in PRAGMAS]), ("sources", [f"{name}(" for name in SOURCES if name != "pad"]),
     ("statements", [f"{name}(" for spec in ContextTable() for name in spec.statements[:1]]),
     ("constants", [f"`{name}`" for name in CONSTANTS])],
)  # fmt: skip
def test_nothing_is_left_out(what: str, names: list[str]) -> None:
    assert names
    assert [name for name in names if name not in TEXT] == []
