"""The process that explains pixels of a performance: a pixel is pointed at, and the answer is what `weft why` says."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection

from weft.backends.hardware import lower_priority
from weft.child import BEAT, Pulse
from weft.contexts import context_table
from weft.errors import Source, WeftError
from weft.permissions import Permissions
from weft.runtime.hands.clock import Moment
from weft.runtime.inspect.explanation import Explanation, PlaceAndTime, WhyQuestion, explain
from weft.runtime.inspect.explanation_text import Row, StyledWord, explanation_rows
from weft.runtime.inspect.strands import read_patch
from weft.syntax.scanner import decode

PIXEL_EXPLAINER = "weft.runtime.inspect.pixel_process:main"
"""What the process runs, as `module:function`."""

# The share of the lines of an answer that the tree takes; and lines that are neither of the tree nor numbers.
_SHARE = 0.6
_OTHERS = 8


@dataclass(frozen=True)
class PixelQuestion:
    """A pixel at a moment of a performance: the file and the text that play, the size of the picture (width, height),
    the window, by the name of its picture, the place there, 0…1, and the moment with all inputs. The answer has this
    many `columns`, and about as many `rows`."""

    file: str
    text: bytes
    size: tuple[int, int]
    window: str
    x: float
    y: float
    moment: Moment
    permissions: Permissions
    columns: int = 72
    rows: int = 40


@dataclass(frozen=True)
class PixelAnswer:
    """The lines about a pixel, and the place that they are about."""

    rows: tuple[Row, ...]
    x: float
    y: float


def answer_to(question: PixelQuestion) -> PixelAnswer:
    """What is to be said about a pixel, or why nothing can be said."""
    try:
        found = _explained(question)
    except WeftError as failure:
        return PixelAnswer(((StyledWord("dim", failure.diagnostics[0].message),),), question.x, question.y)
    left = max(6, question.rows - _OTHERS)
    tree = round(left * _SHARE)
    listed = explanation_rows(
        found, question.columns, most_lines=tree, most_listed=left - tree, more="weft why shows more"
    )  # fmt: skip
    rows = tuple(listed)
    return PixelAnswer(rows, found.place.x, found.place.y)


def _explained(question: PixelQuestion) -> Explanation:
    contexts, source = context_table(), Source(question.file, decode(question.text))
    patch = read_patch(source, contexts, question.permissions)
    pictures = [sink for sink in patch.sinks if sink.spec.sweeps_plane]
    label = next((sink.label for sink in pictures if (sink.target or "") == question.window), None)
    settings: Mapping[str, float] = dict(zip(("width", "height"), map(float, question.size), strict=True))
    # A pixel is pointed at, and shows what is computed in its middle.
    x, y = ((int(each * n) + 0.5) / n for each, n in zip((question.x, question.y), question.size, strict=True))
    place = PlaceAndTime(x, y, 0.0, question.moment)
    asked = WhyQuestion(source, contexts, place, label, permissions=question.permissions, settings=settings)
    return explain(asked, patch)


def main(descriptor: str, lifeline: str) -> None:
    """Serves the socket with this descriptor until the performance is over. For the `lifeline` see `Child`."""
    pulse = Pulse(int(lifeline))
    lower_priority()
    with suppress(EOFError, OSError), Connection(int(descriptor)) as performance:
        while True:
            while not performance.poll(BEAT):
                pulse.beat()
            question = performance.recv()
            try:
                answer = answer_to(question)
            except Exception as failure:
                words = f"this pixel cannot be explained: {type(failure).__name__}: {failure}"
                answer = PixelAnswer(((StyledWord("dim", words[: question.columns]),),), question.x, question.y)
            performance.send(answer)
