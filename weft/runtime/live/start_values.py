"""Writing the values of parameters into the text of a patch, as their new start values. Everything else in the text
stays the same, byte for byte."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from weft.codes.rows import InternalError
from weft.errors import Report, Source
from weft.runtime.hands.parameters import ParameterSpec
from weft.runtime.program.files import FileState, read_text
from weft.syntax.ast import Parameter
from weft.syntax.parser import parse
from weft.syntax.scanner import decode

# The precision of a number in the text, as a share of its range. Finer steps can be neither seen nor heard.
_EXACT = 1 / 2000
_MOST_DECIMALS = 20


class NotWrittenError(InternalError):
    """Values cannot be written. The message is the reason, in words for the player."""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A text with new start values, and these values by the names that kernels read."""

    text: str
    starts: Mapping[str, float]


def short_number(value: float, low: float, high: float) -> str:
    """A number as a patch writes it, with as few decimals as place it exactly enough in its range."""
    for decimals in range(_MOST_DECIMALS):
        text = f"{value:.{decimals}f}"
        if abs(float(text) - value) <= (high - low) * _EXACT and low <= float(text) <= high:
            return "0" if float(text) == 0 else text
    return format(Decimal(repr(value)), "f")


def with_starts(source: Source, specs: Sequence[ParameterSpec], values: Mapping[str, float]) -> Rewritten:
    """A text in which parameters start at these values. Parameters that are missing from the values or from the text
    are left alone."""
    wanted = {spec.name: spec for spec in specs}
    starts: dict[str, float] = {}
    edits: list[tuple[int, int, str]] = []
    for statement in parse(source, Report()).statements:
        if not isinstance(statement, Parameter) or (spec := wanted.get(statement.name.name)) is None:
            continue
        if spec.kind == "button":
            continue
        now = [values.get(name, start) for name, start in zip(spec.inputs, spec.start, strict=True)]
        if spec.kind == "color":
            channels = [round(value * 255) for value in now]
            found = [channel / 255 for channel in channels]
            texts = ['"#' + "".join(f"{channel:02x}" for channel in channels) + '"']
        else:
            texts = [short_number(value, spec.low, spec.high) for value in now]
            found = [float(text) for text in texts]
        has_changed = [text != start for text, start in zip(found, statement.start, strict=True)]
        if spec.kind == "color":
            has_changed = [any(has_changed)]
        starts.update(zip(spec.inputs, found, strict=True))
        spots = zip(statement.places, texts, has_changed, strict=True)
        edits += [(place.start, place.end, text) for place, text, is_new in spots if is_new]
    text = source.text
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return Rewritten(text, starts)


def rewritten(
    playing: Mapping[Path, bytes], specs: Sequence[ParameterSpec], values: Mapping[str, float]
) -> tuple[dict[Path, bytes], dict[str, float]]:
    """The texts that change if the parameters start at these values, and all start values that were set. `playing` are
    the texts of the program that plays. Raises NotWrittenError if they are not what the files hold now."""
    is_set = {name for spec in specs for name, start in zip(spec.inputs, spec.start, strict=True)
              if values.get(name, start) != start}  # fmt: skip
    changed = [spec for spec in specs if spec.kind != "button" and is_set.intersection(spec.inputs)]
    if not changed:
        raise NotWrittenError("nothing to write: all parameters are as in the text")
    for path, data in playing.items():
        if read_text(path).data != data:
            raise NotWrittenError(f"nothing is written: {path.name} has changed, or what plays is not saved in it")
    texts: dict[Path, bytes] = {}
    starts: dict[str, float] = {}
    for file in dict.fromkeys(spec.path for spec in changed):
        path = Path(file)
        if path not in playing:
            raise NotWrittenError(f"nothing is written: {path.name} is no file of this patch")
        source = Source(file, decode(playing[path]))
        found = with_starts(source, [spec for spec in changed if spec.path == file], values)
        starts |= found.starts
        if found.text != source.text:
            texts[path] = found.text.encode()
    return texts, starts


def texts_of(path: Path, text: bytes, files: Mapping[Path, FileState]) -> dict[Path, bytes]:
    """The texts of a program by their paths: that of the patch, and those that it includes."""
    included = {each: state.data for each, state in files.items() if state.kind == "text" and state.data is not None}
    return {path: text, **included}


@contextmanager
def written_aside(texts: Mapping[Path, bytes]) -> Iterator[dict[Path, Path]]:
    """New versions of files, each written next to the file that it will replace, with the same permissions. For each
    new file, gives the file to be replaced, with links resolved. Files that were not moved by the end are deleted.
    Raises NotWrittenError."""
    asides: dict[Path, Path] = {}
    try:
        for path, data in texts.items():
            target = Path(os.path.realpath(path))
            try:
                mode = os.stat(target).st_mode & 0o7777
                descriptor, name = tempfile.mkstemp(prefix=f".{target.stem[:40]}-", suffix=".aside", dir=target.parent)
                asides[Path(name)] = target
                with open(descriptor, "wb") as file:
                    file.write(data)
                os.chmod(name, mode)
            except OSError as problem:
                raise NotWrittenError(f"{path.name} cannot be written: {problem.strerror}") from problem
        yield asides
    finally:
        for aside in asides:
            with suppress(FileNotFoundError):
                aside.unlink()
