"""What docs/interfaces.md promises to scripts, read from its tables. Tests that run weft compare with it what weft
writes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "interfaces.md"


@cache
def section(title: str) -> str:
    """The text below a heading, up to the next one."""
    text = PAGE.read_text(encoding="utf-8")
    found = re.search(rf"^#+ {re.escape(title)}\n(.*?)(?=^#+ |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, title
    return found[1]


@cache
def table(title: str) -> tuple[tuple[str, ...], ...]:
    """The cells of the table below a heading, without its head."""
    lines = [line for line in section(title).splitlines() if line.startswith("|")][2:]
    return tuple(tuple(cell.strip() for cell in line.strip("|").split(" | ")) for line in lines)


def spelled(cell: str) -> list[str]:
    """What is in backticks."""
    return re.findall(r"`([^`]+)`", cell)


@cache
def events() -> Mapping[str, frozenset[str]]:
    """The fields of each event, besides its time and its kind."""
    return {spelled(name)[0]: frozenset(spelled(fields)) for name, _, fields in table("Events")}


@cache
def fields(title: str) -> frozenset[str]:
    """The fields of a command's JSON: `diagnostics[].code`."""
    return frozenset(name for row in table(title) for name in spelled(row[0]))


def paths(value: Any, at: str = "") -> Iterator[str]:
    """The fields that a JSON value has, as the page writes them."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield from paths(member, f"{at}.{name}" if at else name)
    elif isinstance(value, list) and any(isinstance(each, dict) for each in value):
        for each in value:
            yield from paths(each, f"{at}[]")
    else:
        yield at


def check_json(command: str, value: Any) -> None:
    """Demands that the page lists all fields that `weft COMMAND --json` has written."""
    promised = fields(f"weft {command} --json")
    containers = {name[: at.start()] for name in promised for at in re.finditer(r"\[\]|\.|$", name)}
    for member in value.get("members", ()):  # of `eval`: each is as if it were alone
        check_json(command, member)
    assert {name for name in paths(value) if not name.startswith("members[].")} <= promised | containers


def check_event(event: Mapping[str, Any]) -> None:
    """Demands that the page lists an event with all its fields."""
    assert event.keys() - {"t", "event"} <= events()[event["event"]], event
