"""`weft render`: pictures and sound as files, offline and deterministic."""

from __future__ import annotations

import io
import os
import re
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from math import floor
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

import click
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TimeRemainingColumn
from rich.text import Text

from weft.backends.hardware import cores
from weft.backends.native.executor import ExactExecutor
from weft.backends.registry import Registry, load_registry
from weft.backends.select import Choice, choose, contexts_of, warnings_of
from weft.cli.arguments import (
    ALLOW, CELLS, FILE, SAMPLES, SIZE, NumberRange, WholeRange, check_windows, compile_file, setting_overrides
)
from weft.cli.console import Missing, no_folder, replacing_file, say, show
from weft.codes.rows import ERRORS
from weft.contexts import AUDIO, VISUAL
from weft.disk import new_file
from weft.errors import installs
from weft.graph.domain import SETTINGS
from weft.media.pictures import MAX_PIXELS, origin_of, save_picture
from weft.media.source import PictureError
from weft.permissions import Permissions
from weft.platform import system
from weft.runtime.compiling.stages import Build
from weft.runtime.films.encoding import (
    CODECS, FORMATS, MAX_CHANNELS, EncodingError, FilmEncoder, FilmParts, SoundTrack, codec_of, film_spec,
    missing_encoder, y4m_frame, y4m_header
)
from weft.runtime.films.offline import REACH, Offline, Pixels, Samples, frame_numbers, raw
from weft.runtime.films.workers import (
    RenderJob, RenderPool, UnwrittenError, WorkerError, WorkerPool, film_tasks, picture_tasks, save_frame,
    with_checkpoints
)

if TYPE_CHECKING:
    from weft.runtime.films.cluster import ClusterPool

T = TypeVar("T")

_VISUAL, _AUDIO = VISUAL.name, AUDIO.name
_SOUNDS = (".wav", ".flac")
# The channels that the format can have.
_MOST_IN_FLAC = 8
# Finer than anyone can hear, and read by every program.
_SAMPLE_FORMAT, _SAMPLE_BYTES = "PCM_24", 3
# The most bytes of samples that a WAV file can count. A longer one is RF64, the same with larger numbers.
_MOST_OF_WAV = 2**32 - 2**16
_Y4M = "y4m"
_RAW = (_Y4M, "rgba")
# Without `--workers`, a film is drawn by at most this many processes, and only with this many seconds for each.
_MOST_WORKERS, _WORTH_A_WORKER = 8, 4.0
_NUMBER = re.compile(r"%(0\d+)?d")


@dataclass(frozen=True)
class _RenderSpan:
    """What to render: the moment `time`, or the frames in `start … end` seconds."""

    time: float | None
    start: float
    end: float


def _address(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    if value is not None and not re.fullmatch(r"(tcp|tls)://(\[[^]]+\]|[^:/]+):\d{1,5}", value):
        raise click.BadParameter(f"{value!r} is not an address such as tcp://127.0.0.1:8786")
    return value


@click.command("render")
@FILE
@click.option("-o", "out", required=True, metavar="OUT",
              help="name.png, name-%04d.png for a sequence, name.mp4 .webm .mov .mkv .gif .apng for a film, name.wav, "
                   "name.flac, name.npy, or - for frames to stdout.")
@click.option("--time", type=NumberRange(0), metavar="S", help="The moment of a single frame; default: 0.")
@click.option("--from", "start", type=NumberRange(0), metavar="S", help="The first second; default: 0.")
@click.option("--to", "end", type=NumberRange(0), metavar="S", help="Where it ends.")
@click.option("--duration", type=NumberRange(0), metavar="S", help="How long it is, instead of --to.")
@click.option("--size", type=SIZE, metavar="WxH", help="Size of the picture, instead of the patch's.")
@click.option("--fps", type=NumberRange(0.1, 1000), help="Frames a second, instead of the patch's.")
@click.option("--window", metavar="NAME", default="", help='The picture of display(…, to: "NAME"); default: the first.')
@click.option("--rate", type=WholeRange(1000, 768_000), help="Samples a second, instead of the patch's.")
@SAMPLES
@click.option("--oversample", type=WholeRange(1, 8), default=1, metavar="N",
              help="Compute sound at N times the rate, and filter what the file cannot hold; 1 to 8, default: 1.")
@click.option("--context", type=click.Choice([_VISUAL, _AUDIO]),
              help="What name.npy holds if the patch has both; default: the picture.")
@click.option("--codec", type=click.Choice([*CODECS]), help="What encodes a film; default: the first that suits OUT.")
@click.option("--quality", type=WholeRange(1, 63), metavar="N",
              help="Quality of a film: less is better, and larger. Default: 18 for h264, 20 for h265, 24 for vp9.")
@click.option("--format", "form", type=click.Choice(_RAW), help="What -o - writes: y4m or plain RGBA.")
@click.option("--sheet", type=CELLS, metavar="CxR",
              help="One picture with C columns and R rows of frames, from all over the time.")
@click.option("--loop", "closes", is_flag=True,
              help="Check that the frame after the last one is the first, and tell by how much it is not.")
@click.option("--backend", metavar="NAME", help="What runs each context: visual=vm, or vector for all.")
@click.option("--exact", is_flag=True,
              help="Draw and play by machine code that gives the same bytes on all processors; it is slower.")
@click.option("--overwrite", is_flag=True,
              help="Draw every frame of a sequence or a film again, even if it exists. Other files always are.")
@click.option("--threads", type=WholeRange(1), metavar="N", help="Threads that draw; default: all cores.")
@click.option("--workers", type=WholeRange(1, 256), metavar="N",
              help="Processes that draw a film or a sequence together, and share the threads; default: several for a "
                   "long film that the CPU draws, else 1.")
@click.option("--devices", metavar="NAMES", default="",
              help="Devices that draw a film or a sequence, such as gl:0,gl:1: a process for each, or the --workers in "
                   "turn.")
@click.option("--cluster", metavar="ADDRESS", callback=_address,
              help="The scheduler of a Dask cluster, tcp://HOST:PORT, whose workers draw a film or a sequence.")
@ALLOW
def command(
    file: str, out: str, time: float | None, start: float | None, end: float | None, duration: float | None,
    size: tuple[int, int] | None, fps: float | None, window: str, rate: int | None, samples: int | None,
    oversample: int, context: str | None, codec: str | None, quality: int | None, form: str | None,
    sheet: tuple[int, int] | None, closes: bool, backend: str | None, exact: bool, overwrite: bool, threads: int | None,
    workers: int | None, devices: str, cluster: str | None, permissions: Permissions,
) -> None:
    """Write FILE's picture or sound to OUT, or both to a film. A sequence of pictures, or a film that was interrupted,
    continues where it stopped: existing frames are not drawn again, unless the patch, its pictures or the settings have
    changed."""
    span = _span(time, start, end, duration)
    ending = _check_out(out, span, context, form, sheet)
    if closes and (span.time is not None or ending in (".npy", *_SOUNDS)):
        raise click.UsageError("--loop is for pictures over a time: a film, a sequence or a sheet")
    codec = _codec(ending, codec, quality, exact)
    named = "cluster" if cluster else "devices" if devices else "workers" if (workers or 1) > 1 else None
    if named and not (_NUMBER.search(out) or codec):
        raise click.UsageError(f"--{named} is for sequences and films")
    if cluster is not None:
        if workers is not None or devices:
            own = "devices" if devices else "workers"
            raise click.UsageError(f"--{own} are of this machine: leave them out with --cluster")
        # Names of media are relative to where the patch is, on all machines.
        file = os.path.relpath(file) if os.path.isabs(file) else file
    if exact:
        if backend is not None:
            raise click.UsageError("--exact is what --backend exact is: leave one of them out")
        backend = ExactExecutor.name
    registry = load_registry()
    show(registry.problems)
    backends = _backends_of(devices, workers, backend, registry)
    if backends:
        workers, backend = workers or len(backends), backends[0]
    choices = _choices(registry, backend, unclamped=ending == ".npy")
    overrides = setting_overrides(size, fps, rate, samples)
    contexts = contexts_of(registry, choices)
    build = _oversampled(partial(compile_file, file, contexts, permissions=permissions), overrides, oversample)
    show(build.warnings)
    check_windows([window] if window else [], [each.target for each in build.compiled.pictures if each.target])
    offline = Offline(build, choices, threads or cores(), ending != ".npy", window, oversample)
    for name in offline.cameras:
        say(f"watching {name}")
    offline.ahead = _Lead()
    _report_changes(offline)
    frame_rate, sample_rate = offline.fps, offline.rate
    is_samples = ending == ".npy" and (context == _AUDIO or (context is None and offline.sounds and not offline.shows))
    if oversample > 1 and not (ending in _SOUNDS or is_samples or (codec and offline.sounds)):
        raise click.UsageError("--oversample is for what is heard: a sound, or a film with sound")
    if workers is None:
        drawn_by_cpu = codec is not None and _VISUAL in choices and choices[_VISUAL].is_cpu
        workers = _workers(offline, span) if drawn_by_cpu else 1
    with ExitStack() as stack:
        pool: RenderPool | None = None
        if (cluster or workers > 1) and _can_be_divided(offline):
            per = threads or (1 if cluster else max(1, cores() // workers))
            environment = os.environ.get("WEFT_BACKEND")
            # What the units were compiled from stays here.
            sent = replace(build, lowered=())
            job = RenderJob(sent, backend, environment, per, window, oversample, offline.fingerprint)
            pool = _connected(cluster, job) if cluster else WorkerPool(job, workers, backends=backends)
            stack.callback(pool.close)
        if codec is not None:
            _write_film(offline, span, Path(out), codec, quality, overwrite, pool)
        elif form is not None:
            _write_raw(offline, span, form)
        elif ending in _SOUNDS:
            _write_sound(offline, span, sample_rate, Path(out))
        elif is_samples:
            _write_samples(offline, span, sample_rate, Path(out))
        elif ending == ".npy":
            _write_array(offline, span, frame_rate, Path(out))
        elif sheet is not None:
            _write_sheet(offline, span, sheet, Path(out))
        elif span.time is not None:
            picture = offline.at(span.time)
            with _writing(Path(out)):
                save_picture(Path(out), picture, offline.fingerprint)
        else:
            _write_sequence(offline, span, out, overwrite, pool)
        _report_changes(offline)
        for change in pool.changes if pool is not None else ():
            say(change)
        show(dict.fromkeys([*offline.findings(), *(pool.findings if pool is not None else ())]))
    if closes and not _is_closed(Offline(build, choices, threads or cores(), True, window, oversample), span):
        sys.exit(ERRORS)


def _oversampled(compiled: Callable[[Mapping[str, float]], Build], settings: Mapping[str, float], factor: int) -> Build:
    """FILE, `compiled` with settings, for this many times its samples a second."""
    build = compiled(settings)
    if factor == 1:
        return build
    rate, allowed = build.patch.settings["rate"] * factor, SETTINGS["rate"]
    if not allowed.accepts(rate):
        words = f"with --oversample {factor}, the sound has {rate:.0f} samples a second"
        raise click.UsageError(f"{words}, and its rate is {allowed.range}")
    return compiled({**settings, "rate": rate})


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


def _check_out(
    out: str, span: _RenderSpan, context: str | None, form: str | None, sheet: tuple[int, int] | None
) -> str:
    """The ending of OUT. Raises if nothing can be written there."""
    ending = Path(out).suffix.lower()
    numbered = len(_NUMBER.findall(out))
    if (out == "-") != (form is not None):
        raise click.UsageError("frames to stdout need both -o - and --format y4m or rgba")
    if out == "-":
        if sys.stdout.isatty():
            raise click.UsageError("-o - writes frames for another program, and stdout is a terminal")
        return ending
    if ending not in (".png", ".npy", *_SOUNDS, *FORMATS):
        raise click.UsageError(f'"{out}" does not end in .png, {", ".join([*FORMATS, *_SOUNDS])} or .npy')
    if context is not None and ending != ".npy":
        raise click.UsageError(f"--context is only for .npy: {ending} says by itself what it holds")
    if ending in _SOUNDS and span.time is not None:
        raise click.UsageError("a sound needs --to or --duration")
    if ending in FORMATS and span.time is not None:
        raise click.UsageError("a film needs --to or --duration")
    if numbered > 1 or (numbered and ending != ".png"):
        raise click.UsageError("OUT may have one number such as %04d, and only for .png")
    if sheet is not None and (ending != ".png" or numbered or span.time is not None):
        raise click.UsageError("a sheet is one .png, and needs --to or --duration")
    if ending == ".png" and sheet is None and bool(numbered) != (span.time is None):
        raise click.UsageError("a sequence needs both a number such as %04d in OUT, and --to or --duration")
    if not os.path.isdir(Path(out).parent):
        raise Missing(no_folder(Path(out).parent))
    if os.path.isdir(out):
        raise Missing(f"{out} is a folder")
    return ending


def _codec(ending: str, codec: str | None, quality: int | None, exact: bool) -> str | None:
    """The codec of a film; None if OUT is something else. Raises if it cannot be written."""
    if ending not in FORMATS:
        for name, value in ("--codec", codec), ("--quality", quality):
            if value is not None:
                raise click.UsageError(f"{name} is only for films: {', '.join(FORMATS)}")
        return None
    try:
        found = codec_of(ending, codec, quality)
    except EncodingError as problem:
        raise click.UsageError(str(problem)) from problem
    if exact and not CODECS[found].is_exact:
        others = ", ".join(name for name in FORMATS[ending].codecs if CODECS[name].is_exact)
        raise click.UsageError(f"{found} encodes in another way on another processor: --exact is for {others}")
    missing = missing_encoder()
    if missing is not None:
        raise Missing(missing)
    return found


def _report_changes(offline: Offline) -> None:
    """Reports what runs on another device than intended."""
    for change in offline.changes():
        say(str(change))


def _workers(offline: Offline, span: _RenderSpan) -> int:
    """The number of processes that draw a film if none was given: several if each has a few seconds to draw, since an
    encoder does not keep all cores busy."""
    if offline.undivided is not None:
        return 1
    return max(1, min(cores(), _MOST_WORKERS, int((span.end - span.start) / _WORTH_A_WORKER)))


def _can_be_divided(offline: Offline) -> bool:
    """Whether several processes can draw. Reports the reason if they cannot."""
    if offline.undivided is not None:
        say(f"one process draws: frames of this patch {offline.undivided}")
    return offline.undivided is None


def _connected(address: str, job: RenderJob) -> ClusterPool:
    """The workers of a cluster. Reports where their work can be watched."""
    try:
        from weft.runtime.films.cluster import ClusterPool
    except ImportError as problem:
        raise Missing(f"--cluster needs distributed ({installs('cluster')}): {problem}") from problem
    try:
        pool = ClusterPool(address, job)
    except WorkerError as problem:
        raise Missing(str(problem)) from problem
    drawing = "1 worker of {} draws" if pool.workers == 1 else f"{pool.workers} workers of {{}} draw"
    say(f"{drawing.format(address)}, as {pool.dashboard} shows")
    if len(pool.kinds) > 1:
        found = ", ".join(sorted(pool.kinds))
        is_exact = job.backend == ExactExecutor.name
        why = "these C libraries are used" if is_exact else "these processors draw, and it is not --exact"
        say(f"frames may differ in their last bits, since {why}: {found}")
    return pool


def _backends_of(devices: str, workers: int | None, backend: str | None, registry: Registry) -> list[str]:
    """The value of `--backend` in the process of each of these devices. Raises UsageError for devices that cannot work
    together, and WeftError for one that is missing."""
    names = [name.strip() for name in devices.split(",") if name.strip()]
    if not names:
        return []
    if backend is not None and (backend == ExactExecutor.name or _VISUAL in backend):
        raise click.UsageError("--devices says what draws: leave out --exact, and --backend for pictures")
    if workers is not None and workers < len(names):
        raise click.UsageError(f"--devices names {len(names)}, and --workers {workers} would leave some out")
    backends = [",".join(filter(None, [f"{_VISUAL}={name}", backend])) for name in names]
    found = [choose(registry, [_VISUAL], each)[_VISUAL] for each in backends]
    if len({(choice.backend, choice.executor) for choice in found}) > 1:
        raise click.UsageError("--devices are of one kind, such as gl:0,gl:1")
    cards = list(dict.fromkeys(choice.device.name for choice in found))
    if len(cards) > 1:
        say(f"frames may differ in their last bits, since these devices draw: {', '.join(cards)}")
    return backends


def _choices(registry: Registry, backend: str | None, unclamped: bool) -> dict[str, Choice]:
    contexts = [spec.name for spec in registry.contexts]
    choices = choose(registry, contexts, backend, os.environ.get("WEFT_BACKEND"), in_files=True)
    for line in warnings_of(choices):
        say(line)
    if unclamped and "visual" in choices:
        visual = raw(choices["visual"])
        if visual is None:
            raise Missing(f"{choices['visual'].shown} gives no values for .npy, only pixels")
        choices["visual"] = visual
    return choices


def _write_sequence(
    offline: Offline, span: _RenderSpan, out: str, overwrite: bool, pool: RenderPool | None
) -> None:
    """Writes the frames that are missing, or that have another origin. Their numbers count from time 0."""
    numbers = _frames_of_files(offline, span)
    paths = {number: Path(_named(out, number)) for number in numbers}
    origin = offline.fingerprint
    kept = set() if overwrite else _kept(paths, origin)
    missing = {number: path for number, path in paths.items() if number not in kept}
    try:
        if pool is not None:
            tasks = with_checkpoints(picture_tasks(missing, pool.count), offline)
            deque(_progress(pool.run(tasks), len(missing)), maxlen=0)
            return
        steps = offline.steps(missing)
        for number, picture in _progress(offline.play(steps), len(steps)):
            if number in missing:
                save_frame(missing, number, picture, origin)
    except WorkerError as problem:
        name = paths[problem.number] if isinstance(problem, UnwrittenError) else out
        raise Missing(f"{name} cannot be written: {problem}; the same command continues from there") from problem


def _write_sheet(offline: Offline, span: _RenderSpan, cells: tuple[int, int], path: Path) -> None:
    """Writes frames side by side, from left to right and then downwards. The first one begins the span, and all are
    equally far apart."""
    (columns, rows), (width, height) = cells, offline.size
    numbers, count = _some_frames(offline, span), columns * rows
    if len(numbers) < count:
        frames = f"{len(numbers)} frame{'s' * (len(numbers) > 1)}"
        raise click.UsageError(f"a sheet of {columns}x{rows} has {count} frames, and there are {frames}")
    if count * width * height > MAX_PIXELS:
        raise click.UsageError(f"a sheet has {MAX_PIXELS:,} pixels at most, and this would be "
                               f"{columns * width} × {rows * height} (--size makes its frames smaller)")  # fmt: skip
    cell_of = {numbers[at * len(numbers) // count]: at for at in range(count)}
    sheet = np.empty((rows, height, columns, width, 4), np.uint8)
    steps = offline.steps(cell_of)
    for number, picture in _progress(offline.play(steps), len(steps)):
        if number in cell_of:
            row, column = divmod(cell_of[number], columns)
            sheet[row, :, column] = picture
    with _writing(path):
        save_picture(path, sheet.reshape(rows * height, columns * width, 4), offline.fingerprint)


def _is_closed(offline: Offline, span: _RenderSpan) -> bool:
    """Whether the frame after the last one equals the first, so that the span can repeat. Reports the difference."""
    numbers = _some_frames(offline, span)
    ends = {numbers[0], numbers[-1] + 1}
    steps = offline.steps(ends)
    frames = _progress(offline.play(steps), len(steps))
    first, after = (picture[..., :3].astype(np.int16) for number, picture in frames if number in ends)
    apart = np.abs(after - first)
    if not apart.any():
        say("the loop is closed: the frame after the last one is the first")
        return True
    mean = float(np.sqrt(np.mean(np.square(apart, dtype=np.float64))))
    say(f"the loop is not closed: the frame after the last one differs from the first by up to {apart.max()} of 255, "
        f"by {mean:.2g} on average (root mean square), at {np.mean(apart.any(axis=-1)):.1%} of the pixels")  # fmt: skip
    return False


def _named(out: str, number: int) -> str:
    return _NUMBER.sub(lambda found: found[0] % number, out)


def _kept(paths: Mapping[int, Path], origin: str) -> set[int]:
    """The numbers of the existing frames of the same origin. Reports how many there are, and how many have another
    origin. Raises Missing for a file that weft has not drawn."""
    kept, stale = set(), 0
    for number, path in paths.items():
        if not os.path.exists(path):
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


def _write_film(
    offline: Offline, span: _RenderSpan, out: Path, codec: str, quality: int | None, overwrite: bool,
    pool: RenderPool | None,
) -> None:
    """Writes a film with its sound. Its segments are kept until all are there."""
    numbers = _frames_of_files(offline, span)
    ending = out.suffix.lower()
    try:
        spec = film_spec(ending, codec, quality, offline.size, offline.fps)
    except EncodingError as problem:
        raise click.UsageError(str(problem)) from problem
    sounds = offline.sounds and spec.sound_codec is not None
    if offline.sounds and not sounds:
        say(f"{ending} has no sound: that of the patch is left out")
    if sounds and offline.channels > MAX_CHANNELS:
        words = f"a film has {MAX_CHANNELS} channels of sound at most, and the patch {offline.channels}"
        raise Missing(f"{words} (-o {out.stem}.wav has them all)")
    parts = FilmParts(out, spec, numbers, offline.fingerprint)
    is_complete = False
    try:
        with _writing(out):
            stale = parts.open(overwrite=overwrite)
            missing = parts.missing
            if stale:
                say("the film is drawn again: the patch, its pictures or the settings have changed")
            if len(missing) < len(numbers):
                say(f"{len(numbers) - len(missing)} of {len(numbers)} frames are there already and are kept")
            track = SoundTrack(parts.sound, round(offline.rate), offline.channels) if sounds else None
            if pool is not None:
                tasks = with_checkpoints(film_tasks(spec, parts, numbers, track), offline)
                deque(_progress(pool.run(tasks), len(missing)), maxlen=0)
            # While workers draw, it has nothing to do, and its end would be noticed when all is drawn.
            with closing(FilmEncoder(spec)) as encoder:
                if pool is None:
                    _encode(offline, encoder, parts, numbers, track)
                with replacing_file(out) as temporary:
                    encoder.join(parts.segments.values(), track, temporary)
        is_complete = True
    except (EncodingError, WorkerError, Missing) as problem:
        words = str(problem) if isinstance(problem, Missing) else f"{out} cannot be written: {problem}"
        raise Missing(words + _going_on(parts, numbers)) from problem
    except KeyboardInterrupt:
        with suppress(OSError):  # the terminal may be gone
            say((_going_on(parts, numbers) or "no frame is kept").removeprefix("; "))
        raise
    finally:
        parts.close(keep=not is_complete)


def _going_on(parts: FilmParts, numbers: range) -> str:
    """The end of a message about a film that is not complete."""
    kept = len(numbers) - len(parts.missing)
    return f"; {kept} of {len(numbers)} frames are kept, and the same command continues from there" if kept else ""


def _encode(
    offline: Offline, encoder: FilmEncoder, parts: FilmParts, numbers: range, track: SoundTrack | None
) -> None:
    """Encodes the segments that are missing, and writes the sound."""
    missing = set(parts.missing)
    last = {parts.frames(first)[-1] for first in parts.segments}
    with ExitStack() as stack:
        if track is None:
            steps = offline.steps(missing)
            count, frames = len(steps), offline.play(steps)
        else:
            file = stack.enter_context(new_file(track.path))
            count, frames = offline.film(missing, numbers, lambda block: file.write(block.astype("<f4").tobytes()))
        for number, picture in _progress(frames, count):
            if number not in missing:
                continue
            if number in parts.segments:
                encoder.begin(parts.segments[number])
            encoder.add(picture)
            if number in last:
                encoder.end()


def _write_raw(offline: Offline, span: _RenderSpan, form: str) -> None:
    """Writes the pixels of frames to stdout."""
    numbers = _some_frames(offline, span)
    steps = offline.steps(numbers)
    stdout = sys.stdout.buffer
    # The program that reads may end whenever it has enough.
    with suppress(BrokenPipeError):
        if form == _Y4M:
            stdout.write(y4m_header(offline.size, offline.fps))
        for number, picture in _progress(offline.play(steps), len(steps)):
            if number in numbers:
                stdout.write(y4m_frame(picture) if form == _Y4M else np.ascontiguousarray(picture).tobytes())
        stdout.flush()


def _some_frames(offline: Offline, span: _RenderSpan) -> range:
    """The frames of the span. Raises if there are none."""
    if span.time is not None:
        number = floor(span.time * offline.fps)
        return range(number, number + 1)
    numbers = frame_numbers(span.start, span.end, offline.fps)
    if not numbers:
        raise click.UsageError("there is no frame between --from and --to")
    return numbers


def _frames_of_files(offline: Offline, span: _RenderSpan) -> range:
    """The same for frames whose files are kept track of."""
    numbers = _some_frames(offline, span)
    count = numbers.stop - numbers.start  # which may be too large for `len`
    if count > REACH:
        raise click.UsageError(f"these are {count:,} frames, and {REACH:,} is the most (--duration 60 is a minute)")
    return numbers


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
    """Writes the sound, clipped to −1…1, in the format of the ending."""
    with _writing(path), replacing_file(path) as temporary:
        try:
            import soundfile  # optional
        except ImportError as problem:
            raise Missing(f"writing sound needs soundfile ({installs('media')})") from problem
        blocks = _heard(offline, span, rate)
        first, kind = next(blocks), path.suffix.removeprefix(".").upper()
        if kind == "FLAC" and first.shape[1] > _MOST_IN_FLAC:
            words = f"a .flac has {_MOST_IN_FLAC} channels at most, and the patch {first.shape[1]}"
            raise Missing(f"{words} (-o {path.stem}.wav has them all)")
        if kind == "WAV" and _count(span, rate) * first.shape[1] * _SAMPLE_BYTES > _MOST_OF_WAV:
            kind = "RF64"
        with _ReportingFile(temporary, "wb+") as raw:
            try:
                form = round(rate), first.shape[1], _SAMPLE_FORMAT
                with _Interrupts() as interrupts, soundfile.SoundFile(raw, "w", *form, format=kind) as file:
                    for block in interrupts.admitted(chain([first], blocks)):
                        file.write(block)
                        raw.check()
            except (soundfile.SoundFileError, AssertionError) as problem:
                raw.check()
                raise Missing(f"{path} cannot be written: {problem}") from problem
            raw.check()


class _Interrupts:
    """What asks this process to end waits meanwhile, except while something is computed. In a function that a library
    of C calls, the exception would be lost, and a traceback be printed."""

    def __enter__(self) -> _Interrupts:
        self._has_come: int | None = None
        self._is_admitted = False
        handlers = {number: signal.getsignal(number) for number in system.ending_signals()}
        self._before = {number: handler for number, handler in handlers.items() if callable(handler)}
        for number in self._before:
            signal.signal(number, self._come)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._raise()

    def admitted(self, values: Iterable[T]) -> Iterator[T]:
        """The values, each of which is computed when it is asked for."""
        rest = iter(values)
        while True:
            self._is_admitted = True
            try:
                self._raise()
                value = next(rest)
            except StopIteration:
                return
            finally:
                self._is_admitted = False
            yield value

    def _come(self, number: int, _frame: FrameType | None) -> None:
        self._has_come = number
        if self._is_admitted:
            self._raise()

    def _raise(self) -> None:
        number, self._has_come = self._has_come, None
        if number is not None:
            self._before[number](number, None)


class _ReportingFile(io.FileIO):
    """The file of a sound. The library that writes it reports a failure without the reason."""

    _problem: OSError | None = None

    def write(self, data: Any) -> int:
        """Writes all of it, or notes the reason of a failure."""
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[super().write(rest) :]
        except OSError as problem:
            self._problem = problem
        return len(data) - len(rest)

    def check(self) -> None:
        """Raises OSError if writing has failed."""
        if self._problem is not None:
            raise self._problem


def _write_samples(offline: Offline, span: _RenderSpan, rate: float, path: Path) -> None:
    """Writes raw samples, [samples, channels]."""
    if span.time is not None:
        raise click.UsageError("a sound needs --to or --duration")
    samples = np.concatenate(list(_heard(offline, span, rate)))
    with _writing(path), replacing_file(path) as temporary, open(temporary, "wb") as file:
        np.save(file, samples)


def _heard(offline: Offline, span: _RenderSpan, rate: float) -> Iterator[Samples]:
    """The sound of the span, with a progress bar."""
    if _count(span, rate) < 1:
        raise click.UsageError("there is no sample between --from and --to")
    blocks = offline.samples(span.start, span.end)
    first = next(blocks)  # raises if there is nothing to hear, before a bar appears
    yield from _progress(chain([first], blocks), -(-_count(span, rate) // len(first)))


def _count(span: _RenderSpan, rate: float) -> int:
    """The number of samples in a span."""
    return round(span.end * rate) - round(span.start * rate)


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Turns the reason why a file cannot be written into one line."""
    try:
        yield
    except OSError as problem:
        raise Missing(f"{path} cannot be written: {problem.strerror or problem}") from problem


# The seconds after which a message says what is computed before the wanted time.
_LONG = 1.0


class _Lead:
    """Reports what is computed before the wanted time, if that takes long; on a terminal, with the share done."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._said = ""
        self._percent = -1

    def __call__(self, what: str, share: float) -> None:
        if self._said != what and time.monotonic() > self._began + _LONG:
            self._said = what
            say(f"{what} depends on what comes before, so that is computed first")
        percent = int(100 * share)
        if self._said and percent != self._percent and sys.stderr.isatty():
            self._percent = percent
            click.echo(f"\r{percent} %\r", nl=False, err=True)


def _progress(items: Iterable[T], total: int) -> Iterator[T]:
    """The items; on a terminal, with a bar that shows the time left."""
    if total < 2 or not sys.stderr.isatty():
        yield from items
        return
    columns = BarColumn(), MofNCompleteColumn(), _Speed(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True)) as bar:
        yield from bar.track(items, total=total)


class _Speed(ProgressColumn):
    """The number of items that are done in a second."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:.1f}/s")
