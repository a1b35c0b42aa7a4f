"""The diagnostics about a program that compiles: found before it runs, in its trial, or while it runs.

`check`, `run`, `render` and `eval` find these problems by different means, and report them in the same words.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from weft.codegen.kernel import Kernel, Unit
from weft.codegen.values import with_bodies
from weft.contexts import ContextTable
from weft.errors import Diagnostic, Source, Span
from weft.graph.patch import Patch
from weft.ir.rates import Rate
from weft.names import StrandRef

NOT_A_NUMBER: Final = "not-a-number"
"""The code of the diagnostic about an output that is not a number anywhere."""

_WHERE_NOT: Final = "look for 0/0, or a root or logarithm of a negative number"

IN_PICTURE: Final = "pixel, so it would be black"
IN_SOUND: Final = "sample, so it would be silent"


def nothing_to_show(contexts: ContextTable, source: Source) -> Diagnostic:
    """The error about a patch without an output statement, at the end of its text."""
    words = "this patch has no output statement, so there is nothing to show or play"
    end = len(source.text.rstrip())
    hint = f"for example {next(iter(contexts)).example}"
    return Diagnostic.of("no-output", words, Span(source, end, end), hint)


def places_of(patch: Patch) -> dict[str, Span]:
    """The places of the output statements by their labels."""
    return {sink.label: sink.statement.head for sink in patch.sinks}


def as_warnings(problems: Iterable[Diagnostic]) -> list[Diagnostic]:
    """The errors as warnings, for places where nothing is refused because of them."""
    return [replace(problem, severity="warning") for problem in problems]


def not_numbers(labels: Iterable[str], places: Mapping[str, Span], where: str) -> tuple[Diagnostic, ...]:
    """The errors about outputs that are not numbers, given by their labels: one for each statement."""
    outputs: dict[str, list[str]] = {}
    for label in labels:
        statement, _, output = label.rpartition(".")
        outputs.setdefault(statement, []).append(output)
    found = []
    for statement, (*others, last) in outputs.items():
        words = f"{last} of {_name(statement)} is not a number at any {where}"
        if others:
            words = f"{', '.join(others)} and {last} of {_name(statement)} are not a number at any {where}"
            words = words.replace("so it", "so they")
        if statement:
            found.append(Diagnostic.of(NOT_A_NUMBER, words, places.get(statement), _WHERE_NOT))
    return tuple(found)


def _name(statement: str) -> str:
    """A statement without its target and its number, since its place is shown."""
    return statement.partition(":")[0].partition(".")[0]


def loop_stopped(kernel: str, places: Sequence[Span]) -> Diagnostic:
    """The warning about a loop of a kernel that reached its limit: one of those at these places."""
    words = "this loop stops at its limit of steps" if places else f"a loop in {kernel} stops at its limit of steps"
    first, *others = places or (None,)
    related = tuple((span, "or this one") for span in others if span is not None)
    return Diagnostic.of("loop-stopped", words, first, "the rest of its steps is left out: bring its end down", related)


def loop_of(units: Iterable[Unit], kernel: str) -> Diagnostic:
    """The warning about a loop of a kernel of these units."""
    found = next((unit for unit in units if any(each.name == kernel for each in unit.kernels)), None)
    return loop_stopped(kernel, found.loops if found is not None else ())


def not_numbers_for_a_while(label: str, share: float, time: float, what: str, places: Mapping[str, Span]) -> Diagnostic:
    """The warning about an output that is not a number at a share of `what` (samples, pixels), from `time` on."""
    statement, _, output = label.rpartition(".")
    where = f"at {_percent(share)} of the {what}, first at {_seconds(time)}"
    words = f"{output} of {_name(statement)} is not a number {where}"
    return Diagnostic("warning", NOT_A_NUMBER, words, places.get(statement), _WHERE_NOT)


def moves_in_jerks(place: Span | None, after: str) -> Diagnostic:
    """The warning that something moves in jerks after this many seconds, for lack of precision."""
    words = f"after {after} this moves in jerks: what is made of the time has too few digits left in a picture"
    hint = "use a time that begins again, as me@time % 600 does, or count turns with phasor(speed)"
    return Diagnostic.of("long-time", words, place, hint)


NOT_FINITE: Final = "not-finite"
"""The code of the diagnostic about memory that is not finite any more."""

_SHRINK: Final = "what it makes of its own past has to shrink: multiply that by less than 1"

_MOST_NAMES = 3


def memory_lost(keys: Sequence[str], since: float, place: Span | None, hint: str | None = None) -> Diagnostic:
    """The warning that slots, given by their keys, are not finite any more since a time of the performance."""
    names = names_of(keys)
    are, it = ("are", "what they remember") if len(names) > 1 else ("is", "what it remembers")
    words = f"{listed(names)} {are} not finite since {_seconds(since)}: {it} grows without end, or is no number"
    return Diagnostic.of(NOT_FINITE, words, place, hint or _SHRINK)


def names_of(keys: Iterable[str]) -> list[str]:
    """The strands to which slots belong, as they are usually written."""
    strands = dict.fromkeys(key.split("/")[1] for key in keys)
    return [StrandRef(*strand.rpartition("@")[::2]).short if "@" in strand else strand for strand in strands]


def listed(names: Sequence[str]) -> str:
    """Some names in words: the first ones, and the number of the others."""
    more = len(names) - _MOST_NAMES
    *others, last = [*names[:_MOST_NAMES], *([f"{more} more"] if more > 0 else [])]
    return f"{', '.join(others)} and {last}" if others else last


def _instance(key: str) -> str:
    return key.split("/")[1].partition("@")[0]


def place_in(patch: Patch, key: str) -> Span | None:
    """The place of the statement that a slot belongs to."""
    instance = patch.instances.get(_instance(key))
    return None if instance is None else instance.span


def place_of(source: Source, key: str) -> Span | None:
    """The place in a text of the statement that a slot belongs to, if the text has it."""
    return place_named(source, _instance(key))


def place_named(source: Source, name: str) -> Span | None:
    """The place in a text of the statement that gives a name its meaning, if the text has it."""
    name = re.escape(name)
    found = re.search(rf"(?m)(?:^|;|::)[ \t]*({name})\b", source.text)
    return None if found is None else Span(source, *found.span(1))


def infinite(label: str, time: float, has_grown: bool, places: Mapping[str, Span]) -> Diagnostic:
    """The warning about an output of a sound, or without a label about the sound, that is infinite from a time on.
    `has_grown` says whether it was far too loud before that."""
    statement, _, output = label.rpartition(".")
    what = f"{output} of {_name(statement)}" if label else "this sound"
    words = f"{what} is infinite, first at {_seconds(time)}, and silent where it is"
    hint = "look for a division by 0"
    if has_grown:
        words = f"{what} grows without end: it is infinite from {_seconds(time)} on, and silent"
        hint = _SHRINK
    return Diagnostic.of(NOT_FINITE, words, places.get(statement), hint)


# The steps that a loop is assumed to make.
_STEPS = 16


def costliest(units: Iterable[Unit], file: str) -> tuple[str, float] | None:
    """The statement of a file whose values take most operations at each pixel, and its share of all of them; None if
    nothing is computed there."""
    return next(iter(shares_of_costs(units, file).items()), None)


def shares_of_costs(units: Iterable[Unit], file: str) -> dict[str, float]:
    """The statements of a file with their shares of all operations at each pixel, the largest first. A value without a
    name, or in a spindle of another file, counts for the nearest named value that uses it."""
    costs: defaultdict[str, float] = defaultdict(float)
    for kernel in (each for unit in units for each in (*unit.kernel.stages, unit.kernel)):
        section, spent, share = kernel.section(Rate.ELEMENT), 0.0, 0.25**kernel.level
        for node in section.nodes if kernel.sweep == "grid" and kernel.tick != "element" else ():
            spent += share * (_STEPS * len(list(with_bodies([node]))) if node.op == "loop" else 1)
            note = section.notes.get(node)
            if note is not None and note.source == file:
                costs[note.name] += spent
                spent = 0.0
        costs[_kept_for(kernel)] += spent
    all_of_them = sum(costs.values())
    in_order = sorted(costs, key=costs.__getitem__, reverse=True)
    return {name: costs[name] / all_of_them for name in in_order if costs[name]}


def _kept_for(kernel: Kernel) -> str:
    """The statement whose outputs, or images, a kernel computes."""
    if kernel.outputs:
        return _name(kernel.outputs[0])
    return next((_instance(store.place.slot) for _, store in kernel.stores()), kernel.name)


def late(
    fps: float, aimed: float, costs: tuple[str, float] | None, size: tuple[int, int], place: Span | None
) -> Diagnostic:
    """The warning about frames that are late: this many a second instead of the `aimed` ones. For `costs` see
    `costliest`."""
    words = f"frames are late: {fps:.0f} a second instead of {aimed:.0f}{_most(costs)}"
    return Diagnostic.of("late", words, place, f"a smaller picture helps most: {_smaller(size)}")


def slow(
    seconds: float, aimed: float, where: str, costs: tuple[str, float] | None, size: tuple[int, int],
    place: Span | None,
) -> Diagnostic:  # fmt: skip
    """The warning that a frame takes about this many `seconds`, more than the rate `aimed` at allows. It says in words
    what draws the frame. For `costs` see `costliest`."""
    rate = f"{1 / seconds:.2g}" if seconds > 0.1 else f"{1 / seconds:.0f}"
    words = f"this would draw about {rate} frames a second instead of {aimed:.0f} on {where}{_most(costs)}"
    fewer = "then a smaller radius of a blur, fewer octaves of noise, fewer samples, or a lower me<fps>"
    hint = f"a smaller picture helps most: {_smaller(size)}; {fewer}"
    return Diagnostic.of("slow", words, place, hint)


def _most(costs: tuple[str, float] | None) -> str:
    return "" if costs is None else f"; {costs[0]} takes most of the work, {_percent(costs[1])} of its operations"


def _smaller(size: tuple[int, int]) -> str:
    return f"me<width> = {size[0] // 2} and me<height> = {size[1] // 2}, or --size"


def clipped(share: float, peak: float, time: float, place: Span | None) -> Diagnostic:
    """The warning about a sound that is too loud for a share of its samples, `time` being the first moment."""
    decibels = 20 * math.log10(peak)
    hint = f"it would fit if multiplied by {math.floor(100 / peak) / 100:g}"
    words = (
        f"this sound is too loud at {_percent(share)} of its samples, which are clipped: first at {_seconds(time)}, "
        f"and by {decibels:.1f} dB at most"
    )
    return Diagnostic.of("clipped", words, place, hint)


def silent(place: Span | None) -> Diagnostic:
    """The warning about a sound that is never heard."""
    return Diagnostic.of("silent", "this sound is silent from beginning to end", place)


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.995 else "99 %" if share < 1 else "100 %"


def _seconds(time: float) -> str:
    return f"{time:.3f}".rstrip("0").rstrip(".") + " s"
