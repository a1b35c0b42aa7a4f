"""`weft run`: the performance."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import click

from weft.backends.hardware import cores
from weft.backends.registry import load_registry
from weft.backends.select import choose
from weft.cli.console import INTERRUPTED, Missing, exit_code_of, say, show
from weft.cli.options import SIZE, NumberRange
from weft.errors import Diagnostic, WeftError
from weft.runtime.events import EventLog
from weft.runtime.inputs import Inputs
from weft.runtime.program import Stage
from weft.runtime.session import Limits, NoScreen, Session
from weft.runtime.worker import Compiler, Options, Outcome


@click.command("run")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--backend", metavar="NAME", help="What runs each context: visual=vm, or vector for all.")
@click.option("--size", type=SIZE, metavar="WxH", help="Size of the picture, instead of the patch's.")
@click.option("--fps", type=NumberRange(0.1, 1000), help="Frames a second, instead of the patch's.")
@click.option("--fullscreen", is_flag=True, help="Fill the monitor.")
@click.option("--monitor", type=click.IntRange(0), metavar="N", help="Which monitor, from 0.")
@click.option("--threads", type=click.IntRange(1), metavar="N", help="Threads that draw; default: all cores.")
@click.option("--headless", is_flag=True, help="No window; everything else runs.")
@click.option("--duration", type=NumberRange(0), metavar="S", help="End after so many seconds.")
@click.option("--frames", type=click.IntRange(1), metavar="N", help="End after so many frames.")
@click.option("--events", metavar="FILE", help="Write events, one JSON object a line; - is stdout.")
@click.option("--no-audio", is_flag=True, help="No sound. This version plays none anyway.")
def command(**options: Any) -> int:
    """Play a patch, and play it on with every save."""
    return _run(options)


def _run(options: dict[str, Any]) -> int:
    registry = load_registry()
    for problem in registry.problems:
        show([problem])
    contexts = [spec.name for spec in registry.contexts]
    choices = choose(registry, contexts, options["backend"], os.environ.get("WEFT_BACKEND"))
    stage = Stage(choices)
    file: Path = options["file"]
    with EventLog(options["events"], warn=say) as events:
        session = Session(
            path=file,
            compiler=Compiler(str(file), Options(registry.contexts, _settings(options)), stage),
            stage=stage,
            events=events,
            inputs=Inputs(),
            tell=_tell,
            say=say,
            threads=options["threads"] or cores(),
            limits=Limits(options["duration"], options["frames"]),
        )
        return _perform(session, options)


def _settings(options: dict[str, Any]) -> dict[str, float]:
    settings: dict[str, float] = {}
    if options["size"]:
        settings["width"], settings["height"] = map(float, options["size"])
    if options["fps"]:
        settings["fps"] = options["fps"]
    return settings


def _perform(session: Session, options: dict[str, Any]) -> int:
    first = session.begin()
    show(first.diagnostics)
    if any(d.code == "unreadable-file" for d in first.diagnostics):
        return exit_code_of(first.diagnostics)
    if first.swap is None and _ends_by_itself(options):
        return exit_code_of(first.diagnostics)
    try:
        with _interruptible(session):
            _open_and_run(session, options, first)
    except WeftError as failure:
        raise Missing(failure.diagnostics[0].render()) from failure
    return INTERRUPTED if session.stopping == "interrupted" else 0


def _ends_by_itself(options: dict[str, Any]) -> bool:
    """Whether a script waits for the end, so that nobody is there to mend the patch."""
    return bool(options["headless"] and (options["frames"] or options["duration"]))


def _open_and_run(session: Session, options: dict[str, Any], first: Outcome) -> None:
    width, height = session.size
    if options["headless"]:
        _announce(session, first, window=False)
        session.run(NoScreen(), first)
        return
    # GLFW and OpenGL are imported with this module, and only where a window is wanted.
    from weft.runtime.window import Window

    with Window(
        f"{session.path.name} · weft",
        width,
        height,
        fullscreen=options["fullscreen"],
        monitor=options["monitor"],
        inputs=session.inputs,
        on_command=session.command,
    ) as window:
        _announce(session, first, window=True)
        session.run(window, first)


def _announce(session: Session, first: Outcome, window: bool) -> None:
    """The first line of every run: the file to edit, what runs it, and the keys."""
    choices = session.stage.choices
    shown = ", ".join(f"{name} {choice.shown}" for name, choice in choices.items())
    keys = " · F full screen, Space pause, R restart, S screenshot, Esc leave" if window else ""
    say(f"edit {session.path} and save · {shown}{keys}")
    settings = session.settings
    session.events.emit(
        "started",
        backends={name: choice.shown for name, choice in choices.items()},
        size=list(session.size),
        fps=settings.get("fps"),
        rate=settings.get("rate"),
        buffer=None,
    )
    if first.swap is None:
        session.events.emit("error", hash=first.saved.hash, diagnostics=[d.to_json() for d in first.diagnostics])
        say("nothing to show yet: mend the file and save it")


def _tell(diagnostics: list[Diagnostic]) -> None:
    if not diagnostics:
        say("no errors")
        return
    show(diagnostics)


@contextmanager
def _interruptible(session: Session) -> Iterator[None]:
    """Ends the session at the next frame on Ctrl-C or a request to terminate. GLFW's callbacks swallow exceptions, so
    KeyboardInterrupt could be lost."""

    def on_signal(number: int, _frame: FrameType | None) -> None:
        session.stop("interrupted" if number == signal.SIGINT else "terminated")

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
