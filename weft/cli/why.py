"""`weft why`: why a pixel or a sample has its value."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import click

from weft.cli.arguments import ALLOW, FILE, WholeRange
from weft.cli.console import output
from weft.cli.evaluate import QueryPlace, read_place
from weft.cli.help import width
from weft.contexts import CHANNELS, context_table
from weft.graph.patch import Patch
from weft.permissions import Permissions
from weft.runtime.inspect.explanation import PlaceAndTime, WhyQuestion, chosen_sink, explain
from weft.runtime.inspect.explanation_report import report_of
from weft.runtime.inspect.explanation_text import Role, Row, explanation_rows
from weft.runtime.inspect.strands import read_patch
from weft.syntax.includes import open_source


@click.command("why")
@FILE
@click.option("--at", "place", default="", metavar="NAME=V,…",
              help="The place and time: x=0.5,y=0.2,time=3 or px=640,py=90; of a sound time=3,channel=1. "
              "Parameters and the mouse, too.")
@click.option("--name", metavar="NAME", help="The output statement, by its word, window or line; or a strand.")
@click.option("--ticks", type=WholeRange(0), help="Compute memory from this many ticks before; default: from the "
              "start, or as far back as takes some seconds.")
@click.option("--depth", type=WholeRange(1), help="Levels of the tree; default: as many as fit on a screen.")
@click.option("--json", "as_json", is_flag=True, help="All values as JSON on stdout.")
@ALLOW
def command(
    file: str, place: str, name: str | None, ticks: int | None, depth: int | None, as_json: bool,
    permissions: Permissions,
) -> None:  # fmt: skip
    """Show what a pixel or a sample of FILE is computed from, and which numbers of the text act on it most."""
    source, contexts = open_source(file), context_table()
    patch = read_patch(source, contexts, permissions)
    found = read_place(place, patch)
    _check(found, patch, name)
    at = PlaceAndTime(found.x, found.y, found.channel, found.moment, found.given)
    explained = explain(WhyQuestion(source, contexts, at, name, ticks, permissions), patch)
    if as_json:
        output(json.dumps(report_of(explained)))
        return
    _print(explanation_rows(explained, width(), depth))


_STYLES: Mapping[Role, dict[str, Any]] = MappingProxyType(
    {"heading": {"bold": True}, "value": {"fg": "cyan"}, "dim": {"dim": True}, "strong": {"bold": True}, "plain": {}}
)


def _print(rows: Iterable[Row]) -> None:
    """Prints lines, with styles for a terminal. Their words are visible characters already."""
    text = "\n".join("".join(click.style(each, **_STYLES[role]) for role, each in row) for row in rows)
    click.echo(text, color=False if os.environ.get("NO_COLOR") else None)


def _check(at: QueryPlace, patch: Patch, name: str | None) -> None:
    """Raises UsageError for a place that the picture, or the sound, does not have."""
    if at.moment.abstime < 0 or not math.isfinite(at.moment.abstime):
        raise click.UsageError(f"--at: a performance begins at time=0, so there is nothing at {at.moment.abstime:g}")
    if name is not None and name.partition("@")[0].partition("[")[0] in patch.instances:
        return
    sink = chosen_sink(patch, name)
    if sink.spec.sweeps_plane:
        _check_pixel(at, patch)
        return
    if taken := {"x", "y", "px", "py"} & at.given:
        how = "x and y of a sound follow from its time" if sink.spec.raster else f"{sink.spec.name} has no place"
        raise click.UsageError(f"{how}: --at cannot give {', '.join(sorted(taken))}")
    if "channel" in at.given and sink.spec.raster and not 0 <= at.channel < len(CHANNELS):
        raise click.UsageError(f"--at: a sound has channels 0 to {len(CHANNELS) - 1}, 0 is left and 1 is right")


def _check_pixel(at: QueryPlace, patch: Patch) -> None:
    for axis, size in (("x", "width"), ("y", "height")):
        count, value = int(patch.settings[size]), at.x if axis == "x" else at.y
        if 0 <= value <= 1:
            continue
        if f"p{axis}" in at.given:
            raise click.UsageError(f"--at: the picture has p{axis}=0 to p{axis}={count - 1}, as me<{size}> is {count}")
        raise click.UsageError(f"--at: {axis}={value:g} is outside of the picture, which has {axis}=0 to {axis}=1")
