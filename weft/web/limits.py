"""What of a program a page in a browser cannot do, each at its place in the text."""

from __future__ import annotations

from collections.abc import Iterator

from weft.cameras import camera_named
from weft.contexts import AUDIO, COMPUTE, VISUAL
from weft.errors import Diagnostic, Span
from weft.graph.patch import SinkStatement
from weft.names import is_live, live_of, origin_of, shown
from weft.outlets import outlet_of
from weft.runtime.compiling.stages import Build
from weft.runtime.sound.mixer import channels_of
from weft.sources import FILM
from weft.syntax.ast import Call, walk_statement
from weft.web.description import Description
from weft.web.embedded import is_page_film

LOWEST_RATE, HIGHEST_RATE = 8000, 96000
"""The rates of sound that every browser plays, in samples a second."""

MOST_CHANNELS = 32
"""The channels that every browser plays."""

_PLAYED = frozenset((VISUAL.name, AUDIO.name, COMPUTE.name))


def limits(build: Build) -> list[Diagnostic]:
    """All of them, as warnings, or as an error if nothing would be seen or heard."""
    description = Description(build)
    program = description.program()
    found = [*told(build), *description.refused]
    if any(each["shown"] for each in (*program["subgraphs"], *program["sounds"])):
        return found
    return [*found, nothing_plays(build)]


def nothing_plays(build: Build) -> Diagnostic:
    """The error about a program of which a page would play nothing."""
    place = build.patch.sinks[0].statement.span if build.patch.sinks else None
    return Diagnostic.of("nothing-in-a-page", "a page would neither show nor play anything of this patch", place)


def told(build: Build) -> list[Diagnostic]:
    """What the text says that a page cannot do."""
    outputs = [each for sink in build.patch.sinks if (each := _output(sink)) is not None]
    return [*outputs, *_rate(build), *_channels(build), *_inputs(build), *_pictures(build)]


def _told(words: str, place: Span | None, hint: str | None = None) -> Diagnostic:
    return Diagnostic.of("not-in-a-page", words, place, hint)


def _output(sink: SinkStatement) -> Diagnostic | None:
    span, name = sink.statement.span, sink.spec.statements[0]
    if sink.spec.name not in _PLAYED:
        return _told(f"{name}(…) is left out of a page, which sends nothing to other programs and devices", span)
    outlet = outlet_of(sink.target or "") if sink.spec.sweeps_plane else None
    if outlet is not None:
        return _told(f"a page has no {outlet.spec.name}, so it shows this picture next to the others", span)
    return None


def _rate(build: Build) -> Iterator[Diagnostic]:
    rate = build.patch.settings["rate"]
    sound = next((sink for sink in build.patch.sinks if sink.spec.streams), None)
    if sound is not None and not LOWEST_RATE <= rate <= HIGHEST_RATE:
        words = f"not every browser plays a sound of {rate:g} samples a second"
        hint = f"me<rate> from {LOWEST_RATE} to {HIGHEST_RATE}"
        yield _told(words, sound.statement.span, hint)


def _channels(build: Build) -> Iterator[Diagnostic]:
    sound = next((sink for sink in build.patch.sinks if sink.spec.streams), None)
    count = channels_of(build.compiled)
    if sound is not None and count > MOST_CHANNELS:
        words = f"a page plays {MOST_CHANNELS} channels at most, so a sound of {count} is silent"
        yield _told(words, sound.statement.span)


def _inputs(build: Build) -> Iterator[Diagnostic]:
    for statement in build.program.statements:
        for node in walk_statement(statement):
            if isinstance(node, Call) and node.name == "osc":
                yield _told("a page receives no OSC, so this stays 0", node.span)


def _pictures(build: Build) -> Iterator[Diagnostic]:
    told = set[str]()
    for name in (name for unit in build.units for name in sorted(unit.pictures)):
        words = _stays_black(name)
        place = build.opened.get(name) or build.opened.get(origin_of(name) or "")
        if words is not None and words not in told:
            told.add(words)
            yield _told(words, place)


def _stays_black(name: str) -> str | None:
    """Why a page cannot show a picture that moves; None for one that it shows."""
    if not is_live(name):
        return None
    live = live_of(name)
    if live.source == FILM.name and not is_page_film(str(live.args[0])):
        return f"{shown(name)} stays black: a page plays films that browsers play, and no pictures in a row"
    camera = camera_named(name)
    if camera is None:
        source = live_of(name).source
        words = f"{shown(name)} stays black: {source} comes from a package, which a page has not"
        return None if source == FILM.name else words
    if camera.kind in ("desktop", "window"):
        return f"{shown(name)} stays black: a page does not see what a screen shows"
    if camera.kind != "device":
        return f"{shown(name)} stays black: a page shows the cameras of the browser only"
    return None
