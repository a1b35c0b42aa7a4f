"""What a text opens and where it sends pictures: whether it may, and whether it can be read."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from weft.cameras import camera_named
from weft.errors import Report, Span, WeftError, did_you_mean
from weft.graph.calls import called_letters, constant_arguments, media_kind, media_path, source_text
from weft.graph.patch import Patch
from weft.media.sampled import header_of
from weft.names import LiveName, file_of
from weft.outlets import OUTLETS, OutletError, OutletPlace, outlet_of
from weft.permissions import Denial, Reach
from weft.sources import SOURCES, UNSEEN, MediaHeader
from weft.syntax.ast import Call, Expression, Program, Statement, Text, walk_statement

Probe = Callable[[str], "MediaHeader | str"]
"""Gives width and height of a picture file in pixels, or why it cannot be read."""


class OpensMedia(dict[Statement, bool]):
    """Whether statements may open pictures or sounds, by the words in their texts."""

    def __missing__(self, statement: Statement) -> bool:
        text = statement.span.text
        return self.setdefault(statement, any(name in text for name in _opened()))


def _opened() -> list[str]:
    """The sources that are pictures for kernels."""
    return [name for name, spec in SOURCES.items() if spec.media or spec.is_drawn or spec.is_live]


class NamedMedia(NamedTuple):
    """A picture or sound that a text names: its header, None if it cannot be read, and the place in the text."""

    header: MediaHeader | None
    place: Span


def check_media(
    program: Program, report: Report, reach: Reach, probe: Probe | None = None, opening: OpensMedia | None = None
) -> dict[str, NamedMedia]:
    """The pictures and sounds that a program names. Those that are out of `reach`, or that cannot be read, are reported
    as errors. What is known of statements is in `opening`."""
    found: dict[str, NamedMedia] = {}
    opening = OpensMedia() if opening is None else opening
    opened = _opened()
    for statement in [each for each in program.statements if opening[each]]:
        for node in walk_statement(statement):
            if isinstance(node, Call) and node.name in opened and (named := _sampled(node)) is not None:
                name, place = named
                shown = f'"{place.value}"' if isinstance(place, Text) else place.span.text
                if (denial := _denial(name, reach)) is not None:
                    report.tell("not-allowed", f"{shown} is not opened: {denial.reason}", place.span, denial.hint)
                    found[name] = NamedMedia(None, place.span)
                    continue
                look = probe or (None if file_of(name) else header_of)
                known = look(name) if look else UNSEEN
                if isinstance(known, str):
                    report.tell("unreadable-source", f"{shown} cannot be read: {known}", place.span)
                else:
                    for remark in known.remarks:
                        report.tell(remark.code, remark.message, place.span, remark.hint)
                found[name] = NamedMedia(None if isinstance(known, str) else known, place.span)
    return found


def _denial(name: str, reach: Reach) -> Denial | None:
    """Why a patch may not open what has this name among pictures; None if it may."""
    camera = camera_named(name)
    if camera is not None and camera.kind == "stream":
        return reach.denial_of_stream()
    file = camera.place if camera is not None and camera.kind == "file" else file_of(name)
    return None if file is None else reach.denial_of_file(file)


def check_outlets(patch: Patch, report: Report, reach: Reach) -> None:
    """Reports outlets that are out of `reach`, and those whose text names no place."""
    for sink in patch.sinks:
        outlet = outlet_of(sink.target or "") if sink.spec.sweeps_plane else None
        span = next((arg.value.span for arg in sink.statement.args if arg.label == "to"), sink.statement.span)
        if outlet is None:
            if sink.spec.sweeps_plane:
                _check_window(sink.target or "", report, span)
            continue
        try:
            place = outlet.place
            denial = _denial_of_outlet(place, reach)
        except OutletError as problem:
            report.tell(problem.code, problem.reason, span, problem.hint)
            continue
        if denial is not None:
            shown = place.shown or sink.target
            report.tell("not-allowed", f'"{shown}" is not written to: {denial.reason}', span, denial.hint)


def _check_window(name: str, report: Report, span: Span) -> None:
    """Reports the name of a window that is hardly meant as one."""
    word, colon, text = name.partition(":")
    meant = did_you_mean(word.lower(), OUTLETS)
    if text.startswith("//"):
        hint = meant or f"these are: {', '.join(OUTLETS)}"
        report.tell("outlet-address", f"{word}: is no kind of outlet", span, hint)
    elif colon and meant is not None:
        report.tell("outlet-or-window", f'"{name}" is the name of a window', span, meant)


def _denial_of_outlet(place: OutletPlace, reach: Reach) -> Denial | None:
    """Why a patch may not send pictures to a place; None if it may."""
    match place.reaches:
        case "file":
            # Whichever text says it, its path is relative to the folder of the patch.
            return reach.denial_of_file(os.path.join(reach.own, place.text))
        case "network":
            return reach.denial_of_stream()
    return None


def _sampled(call: Call) -> tuple[str, Expression] | None:
    """The name among pictures of what a call opens, and its place in the text; None for calls with mistakes, which are
    reported elsewhere, and for what is neither picture nor sound."""
    spec = SOURCES[call.name]
    texts = [argument.value for argument in call.args if isinstance(argument.value, Text)]
    with suppress(WeftError):
        if spec.is_live:
            return LiveName(call.name, constant_arguments(call, spec)).name, texts[0] if texts else call
        if spec.media:
            text = source_text(call, spec)
            return (media_path(text), text) if media_kind(text.value, spec) is not None else None
        letters, _ = called_letters(call, spec)
        return letters.name, next((text for text in texts if letters.font == media_path(text)), texts[0])
    return None
