"""`weft render`: pictures and sound as files, offline and deterministic."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TypeVar

import click
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

from weft.backends.hardware import cores
from weft.backends.registry import Registry, load_registry
from weft.backends.select import Choice, choose, contexts_of, warnings_of
from weft.cli.console import Missing, replacing_file, say, show
from weft.cli.patch import FILE, SIZE, NumberRange, compile_file, setting_overrides
from weft.media.pictures import origin_of, save_picture
from weft.media.source import PictureError
from weft.runtime.offline import Offline, Pixels, Samples, frame_numbers, raw

T = TypeVar("T")

_UNSUPPORTED = frozenset({".mp4", ".webm", ".mov"})
_VISUAL, _AUDIO = "visual", "audio"
_SOUNDS = (".wav", ".flac")
# Finer than anyone can hear, and read by every program.
_SAMPLE_FORMAT = "PCM_24"
_NUMBER = re.compile(r"%(0\d+)?d")


@dataclass(frozen=True)
class _RenderSpan:
    """What to render: the moment `time`, or the frames in `start … end` seconds."""

    time: float | None
    start: float
    end: float


@click.command("render")
@FILE
@click.option("-o", "out", required=True, metavar="OUT",
              help="name.png, name-%04d.png for a sequence, name.wav, name.flac, or name.npy.")
@click.option("--time", type=NumberRange(0), metavar="S", help="The moment of a single frame; default: 0.")
@click.option("--from", "start", type=NumberRange(0), metavar="S", help="The first second; default: 0.")
@click.option("--to", "end", type=NumberRange(0), metavar="S", help="Where it ends.")
@click.option("--duration", type=NumberRange(0), metavar="S", help="How long it is, instead of --to.")
@click.option("--size", type=SIZE, metavar="WxH", help="Size of the picture, instead of the patch's.")
@click.option("--fps", type=NumberRange(0.1, 1000), help="Frames a second, instead of the patch's.")
@click.option("--rate", type=click.IntRange(1000, 768_000), help="Samples a second, instead of the patch's.")
@click.option("--context", type=click.Choice([_VISUAL, _AUDIO]),
              help="What name.npy holds if the patch has both; default: the picture.")
@click.option("--backend", metavar="NAME", help="What runs each context: visual=vm, or vector for all.")
@click.option("--overwrite", is_flag=True, help="Draw every frame of a sequence again, even if its file exists.")
@click.option("--threads", type=click.IntRange(1), metavar="N", help="Threads that draw; default: all cores.")
def command(
    file: str, out: str, time: float | None, start: float | None, end: float | None, duration: float | None,
    size: tuple[int, int] | None, fps: float | None, rate: int | None, context: str | None, backend: str | None,
    overwrite: bool, threads: int | None,
) -> None:
    """Write FILE's picture or sound to OUT. A sequence of pictures continues where it stopped: existing frames are not
    drawn again, unless the patch, its pictures or the settings have changed."""
    span = _span(time, start, end, duration)
    ending = _check_out(out, span, context)
    if overwrite and not _NUMBER.search(out):
        raise click.UsageError("--overwrite is for sequences: a single file is always written again")
    registry = load_registry()
    show(registry.problems)
    choices = _choices(registry, backend, unclamped=ending == ".npy")
    build = compile_file(file, contexts_of(registry, choices), setting_overrides(size, fps, rate))
    show(build.warnings)
    offline = Offline(build, choices, threads or cores(), clips=ending != ".npy")
    _report_changes(offline)
    frame_rate, sample_rate = build.patch.settings["fps"], build.patch.settings["rate"]
    if ending in _SOUNDS:
        _write_sound(offline, span, sample_rate, Path(out))
    elif ending == ".npy" and (context == _AUDIO or (context is None and offline.sounds and not offline.shows)):
        _write_samples(offline, span, sample_rate, Path(out))
    elif ending == ".npy":
        _write_array(offline, span, frame_rate, Path(out))
    elif span.time is not None:
        picture = offline.at(span.time)
        with _writing(Path(out)):
            save_picture(Path(out), picture, offline.fingerprint)
    else:
        _write_sequence(offline, span, frame_rate, out, overwrite)
    _report_changes(offline)
    show(offline.findings())


def _span(time: float | None, start: float | None, end: float | None, duration: float | None) -> _RenderSpan:
    if start is None and end is None and duration is None:
        return _RenderSpan(time or 0.0, 0.0, 0.0)
    if time is not None:
        raise click.UsageError("--time is for a single frame, without --from, --to and --duration")
    if (end is None) == (duration is None):
        raise click.UsageError("give either --to or --duration")
    begin = start or 0.0
    end = end if end is not None else begin + (duration or 0.0)
    if end <= begin:
        raise click.UsageError("there is nothing between --from and --to")
    return _RenderSpan(None, begin, end)


def _check_out(out: str, span: _RenderSpan, context: str | None) -> str:
    """The ending of OUT. Raises if nothing can be written there."""
    ending = Path(out).suffix.lower()
    numbered = len(_NUMBER.findall(out))
    if ending in _UNSUPPORTED:
        known = ", ".join(_SOUNDS)
        raise Missing(f"this version cannot write {ending} yet; it writes .png, sequences of .png, {known}, and .npy")
    if ending not in (".png", ".npy", *_SOUNDS):
        raise click.UsageError(f'"{out}" does not end in .png, {", ".join(_SOUNDS)} or .npy')
    if context is not None and ending != ".npy":
        raise click.UsageError(f"--context is only for .npy: {ending} says by itself what it holds")
    if ending in _SOUNDS and span.time is not None:
        raise click.UsageError("a sound needs --to or --duration")
    if numbered > 1 or (numbered and ending != ".png"):
        raise click.UsageError("OUT may have one number such as %04d, and only for .png")
    if ending == ".png" and bool(numbered) != (span.time is None):
        raise click.UsageError("a sequence needs both a number such as %04d in OUT, and --to or --duration")
    if not Path(out).parent.is_dir():
        raise Missing(f"there is no folder {Path(out).parent}")
    return ending


def _report_changes(offline: Offline) -> None:
    """Reports what runs elsewhere than intended."""
    for change in offline.changes():
        say(str(change))


def _choices(registry: Registry, backend: str | None, unclamped: bool) -> dict[str, Choice]:
    contexts = [spec.name for spec in registry.contexts]
    choices = choose(registry, contexts, backend, os.environ.get("WEFT_BACKEND"))
    for line in warnings_of(choices):
        say(line)
    if unclamped and "visual" in choices:
        visual = raw(choices["visual"])
        if visual is None:
            raise Missing(f"{choices['visual'].shown} gives no values for .npy, only pixels")
        choices["visual"] = visual
    return choices


def _write_sequence(offline: Offline, span: _RenderSpan, fps: float, out: str, overwrite: bool) -> None:
    """Writes the frames that are missing, or were drawn from something else. Their numbers count from time 0."""
    numbers = frame_numbers(span.start, span.end, fps)
    paths = {number: Path(_named(out, number)) for number in numbers}
    origin = offline.fingerprint
    kept = set() if overwrite else _kept(paths, origin)
    missing = {number: path for number, path in paths.items() if number not in kept}
    steps = offline.steps(missing)
    for number, picture in _progress(offline.play(steps), len(steps)):
        if number in missing:
            with _writing(missing[number]):
                save_picture(missing[number], picture, origin)


def _named(out: str, number: int) -> str:
    return _NUMBER.sub(lambda found: found[0] % number, out)


def _kept(paths: Mapping[int, Path], origin: str) -> set[int]:
    """The numbers of the existing frames of the same origin. Reports how many these are, and how many have another
    origin. Raises Missing for a file that weft has not drawn."""
    kept, stale = set(), 0
    for number, path in paths.items():
        if not path.exists():
            continue
        try:
            found = origin_of(path)
        except PictureError as failure:
            raise Missing(f"{path} is there already, and is not a picture: {failure.reason}") from failure
        if found is None:
            raise Missing(f"{path} is there already, and weft has not drawn it (--overwrite does, or change OUT)")
        if found == origin:
            kept.add(number)
        else:
            stale += 1
    if kept:
        say(f"{len(kept)} of {len(paths)} frames are there already and are kept")
    if stale:
        say(f"{stale} of {len(paths)} frames are drawn again: the patch, its pictures or the settings have changed")
    return kept


def _write_array(offline: Offline, span: _RenderSpan, fps: float, path: Path) -> None:
    """Writes raw values, [frames, height, width, channels], frame by frame: they may exceed the memory."""
    if span.time is not None:
        count = 1
        frames: Iterable[Pixels] = [offline.at(span.time)]
    else:
        wanted = frame_numbers(span.start, span.end, fps)
        steps = offline.steps(wanted)
        count = len(wanted)
        frames = (picture for number, picture in _progress(offline.play(steps), len(steps)) if number in wanted)
    with _writing(path), replacing_file(path) as temporary, open(temporary, "wb") as file:
        for at, picture in enumerate(frames):
            values = np.ascontiguousarray(picture, "<f4")
            if at == 0:
                header = {"descr": "<f4", "fortran_order": False, "shape": (count, *values.shape)}
                np.lib.format.write_array_header_1_0(file, header)
            file.write(values.tobytes())


def _write_sound(offline: Offline, span: _RenderSpan, rate: float, path: Path) -> None:
    """Writes what is heard, clipped to −1…1, in the format of the ending."""
    with _writing(path), replacing_file(path) as temporary:
        try:
            import soundfile  # optional
        except ImportError as problem:
            raise Missing("writing sound needs soundfile (pip install soundfile)") from problem
        blocks = _heard(offline, span, rate)
        first, kind = next(blocks), path.suffix.removeprefix(".").upper()
        try:
            with soundfile.SoundFile(temporary, "w", round(rate), first.shape[1], _SAMPLE_FORMAT, format=kind) as file:
                for block in chain([first], blocks):
                    file.write(block)
        except soundfile.SoundFileError as problem:
            raise Missing(f"the sound cannot be written: {problem}") from problem


def _write_samples(offline: Offline, span: _RenderSpan, rate: float, path: Path) -> None:
    """Writes raw samples, [samples, channels]."""
    if span.time is not None:
        raise click.UsageError("a sound needs --to or --duration")
    samples = np.concatenate(list(_heard(offline, span, rate)))
    with _writing(path), replacing_file(path) as temporary, open(temporary, "wb") as file:
        np.save(file, samples)


def _heard(offline: Offline, span: _RenderSpan, rate: float) -> Iterator[Samples]:
    """The sound of the span, with a progress bar."""
    count = round(span.end * rate) - round(span.start * rate)
    if count < 1:
        raise click.UsageError("there is no sample between --from and --to")
    blocks = offline.samples(span.start, span.end)
    first = next(blocks)  # raises if there is nothing to hear, before a bar appears
    yield from _progress(chain([first], blocks), -(-count // len(first)))


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Turns the reason why a file cannot be written into one line."""
    try:
        yield
    except OSError as problem:
        raise Missing(f"{path} cannot be written: {problem.strerror or problem}") from problem


def _progress(items: Iterable[T], total: int) -> Iterator[T]:
    """The items; on a terminal, with a bar that shows the time left."""
    if total < 2 or not sys.stderr.isatty():
        yield from items
        return
    with Progress(BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=Console(stderr=True)) as bar:
        yield from bar.track(items, total=total)
