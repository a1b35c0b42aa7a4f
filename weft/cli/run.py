"""`weft run`: a live performance, in a window, in the terminal, or without any picture."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
from collections.abc import Collection, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

import click

from weft.__main__ import Asked
from weft.backends.hardware import cores
from weft.backends.registry import load_registry
from weft.backends.select import warnings_of
from weft.child import Child
from weft.cli.arguments import (  # fmt: skip
    ALLOW, SAMPLES, SIZE, NumberRange, WholeRange, check_windows, check_written, comes_with_weft, setting_overrides,
    shipped_patches
)
from weft.cli.console import Missing, call, exit_code_of, mention, mention_all, no_folder, show
from weft.codes.rows import INTERRUPTED
from weft.contexts import AUDIO, COMPUTE, LIGHTS, MIDI, OSC_SEND, VISUAL
from weft.errors import WeftError, error, event_fields, visible
from weft.keys import TOOL_KEYS
from weft.outlets import outlet_of
from weft.performances import UnreachableError
from weft.permissions import Permissions, real_path
from weft.platform import system
from weft.runtime.compiling.compiler import Compiler
from weft.runtime.compiling.worker import LoadResult
from weft.runtime.films.encoding import missing_encoder
from weft.runtime.films.recording import LIVE_CODECS
from weft.runtime.films.stream_keys import StreamKeys, StreamKeysError
from weft.runtime.hands.inputs import Inputs, WallClock
from weft.runtime.hands.light_sender import FORMS, LightAddress, LightSender
from weft.runtime.hands.link import LinkPeer
from weft.runtime.hands.midi import MidiController, MidiSender
from weft.runtime.hands.osc import NoOscServer, OscAddress, OscReporter, OscSender, OscServer
from weft.runtime.hands.parameters import ValuesFile
from weft.runtime.live.events import LONG, EventLog, Reporter
from weft.runtime.live.session import Limits, Session
from weft.runtime.live.text_pipe import PIPE_NAME, TextPipe
from weft.runtime.live.transition import TransitionPolicy
from weft.runtime.program.files import SetList
from weft.runtime.program.program import Setup
from weft.runtime.screens.awake import kept_awake
from weft.runtime.screens.screen import Screen, WindowOptions
from weft.runtime.screens.text_view import CORNERS, Corner, TextStyle
from weft.runtime.screens.walls import Walls, read_mask
from weft.runtime.screens.warp import Warp, WarpError, warp_from_words
from weft.runtime.sound.device import chosen, look
from weft.runtime.sound.player import Sound
from weft.runtime.sound.renderer import SoundOptions
from weft.syntax.includes import meant_by
from weft.syntax.scanner import ENDING

if TYPE_CHECKING:
    from weft.runtime.screens.display import Display

T = TypeVar("T")

# Keys and commands that people know by other words.
_WORDS = {"escape": "Esc", "fullscreen": "full screen", "pageup": "PageUp", "pagedown": "PageDown"}

# For --fps: as many as the monitor shows.
_MONITOR: Final = "monitor"

_FOR_A_WINDOW = "--fullscreen, --monitor, --window and --warp"

# The most outputs of a sound device that a number may name.
_OUTPUTS = 1024

_NOTHING_SENT = "nothing to show yet: pipe in a text, or fix the last one"

# As the name of a file: what is piped in. For the first text, the start waits this many seconds.
_PIPED, _AT_ONCE = Path("-"), 0.3

# The patch that plays if no file is named.
FIRST_PATCH = "plasma.weft"

if TYPE_CHECKING:
    _OscAddressType = click.ParamType[OscAddress]
    _LightAddressType = click.ParamType[LightAddress]
    _ChannelsType = click.ParamType[tuple[int, ...]]
    _WindowType = click.ParamType[tuple[str, WindowOptions]]
    _WarpType = click.ParamType[tuple[str, Warp]]
else:
    # Not generic in every version of click that is allowed.
    _OscAddressType = _LightAddressType = _ChannelsType = _WindowType = _WarpType = click.ParamType


class _OscAddressParam(_OscAddressType):
    """`9000` or `HOST:9000`: a port, of this computer if no host is named."""

    name = "[HOST:]PORT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> OscAddress:
        found = value if isinstance(value, OscAddress) else OscAddress.parse(str(value))
        if found is None:
            self.fail(f"{value!r} is not a port; write 9000, or HOST:9000", param, ctx)
        return found


_OSC_ADDRESS = _OscAddressParam()


class _ChannelsParam(_ChannelsType):
    """`3,4,1,2`: outputs of a sound device, each once."""

    name = "N,N,…"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        if isinstance(value, tuple) or not value:
            return value or ()
        words = str(value).split(",")
        found = tuple(int(word) for word in words if re.fullmatch(r" *[0-9]{1,4} *", word))
        if len(found) < len(words) or len(set(found)) < len(found) or not all(0 < each <= _OUTPUTS for each in found):
            self.fail(f"{value!r} are not outputs of a sound device; write 3,4,1,2, each once, from 1", param, ctx)
        return found


class _LightAddressParam(_LightAddressType):
    """`sacn`, `sacn@192.168.1.2`, `sacn:HOST` or `artnet:HOST`: where lights go."""

    name = "PROTOCOL[:HOST]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> LightAddress:
        found = value if isinstance(value, LightAddress) else LightAddress.parse(str(value))
        if found is None:
            self.fail(f"{value!r} does not say where lights go; write {FORMS}", param, ctx)
        return found


class _WindowParam(_WindowType):
    """`beamer=1920x1080@1:full:source`: a name, and how the window of this name opens. The name of the first window is
    empty: `1280x720@1:full`."""

    name = "[NAME=]WxH@N:full:source"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, WindowOptions]:
        match = re.fullmatch(r"(?:(.+?)=)?((?(1)|(?=\d))[^=@:]+)?(?:@(\d+))?(:full)?(:source)?", str(value), re.DOTALL)
        if match is None or not any(match.groups()[1:]):
            words = "is not a window; write it like beamer=1920x1080@1:full, and leave out what need not be said"
            self.fail(f"{value!r} {words}", param, ctx)
        name, size, monitor, full, source = match[1] or "", *match.groups()[1:]
        options = WindowOptions(
            None if size is None else SIZE.convert(size, param, ctx), None if monitor is None else int(monitor),
            full is not None, source is not None,
        )  # fmt: skip
        return name, options


_WINDOW = _WindowParam()


class _FrameRateParam(NumberRange):
    """Frames a second, or `monitor` for as many as the monitor shows."""

    name = f"NUMBER|{_MONITOR}"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if value == _MONITOR else super().convert(value, param, ctx)

    @property
    def words(self) -> str:
        return f"{super().words}, nor {_MONITOR}"


_FRAME_RATE = _FrameRateParam(0.1, 1000)


class _WarpParam(_WarpType):
    """`beamer=turn:180,blend-right:0.2`: a name, and how the picture in the window of this name lies on the wall. The
    name of the first window may be left out."""

    name = "[NAME=]SETTING:VALUE,…"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, Warp]:
        name, _, words = str(value).rpartition("=")
        try:
            return name, warp_from_words(words, read_mask)
        except WarpError as problem:
            self.fail(str(problem), param, ctx)


@click.command("run")
@click.argument("files", metavar="[FILE]...", nargs=-1,
                type=click.Path(path_type=Path, readable=False, allow_dash=True))
@click.option("--watch-dir", type=click.Path(path_type=Path, exists=True, file_okay=False), metavar="DIR",
              help="Play the patches of a folder, one after another.")
@click.option("--backend", metavar="NAME", help="What runs each context: visual=vm, or vector for all.")
@click.option("--size", type=SIZE, metavar="WxH", help="Size of the picture, instead of the patch's.")
@click.option("--fps", type=_FRAME_RATE, metavar=_FRAME_RATE.name,
              help=f"Frames a second, instead of the patch's; {_MONITOR}: as many as it shows.")
@SAMPLES
@click.option("--fullscreen", is_flag=True, help="Fill the monitor.")
@click.option("--monitor", type=WholeRange(0), metavar="N", help="Which monitor, from 0.")
@click.option("--window", "windows", type=_WINDOW, metavar=_WINDOW.name, multiple=True,
              help='How the window of display(…, to: "NAME") opens; for each window once. Without NAME, how large the'
                   " first window is and stays.")
@click.option("--warp", "warps", type=_WarpParam(), metavar=_WarpParam.name, multiple=True,
              help="How the picture of a window lies on the wall: turn, flip, pin, brightness, black, blend-left …, "
              "gamma, mask. W pins it by hand, and what it does is kept beside the patch.")
@click.option("--show-source", is_flag=True, help="The text that plays is over the picture; V hides and shows it.")
@click.option("--source-corner", type=click.Choice(CORNERS), default=CORNERS[0], show_default=True,
              help="Where the text is over the picture.")
@click.option("--source-size", type=NumberRange(0.5, 4), default=1.0, show_default=True, metavar="N",
              help="How large it is: 1 is the size of messages.")
@click.option("--record-source", is_flag=True, help="The text is in recordings and screenshots, too.")
@click.option("--threads", type=WholeRange(1), metavar="N", help="Threads that draw; default: all cores.")
@click.option("--no-stand-in", is_flag=True,
              help="Where a graphics card draws, the processor does not draw a new picture until the card is ready.")
@click.option("--headless", is_flag=True, help="No window; everything else runs.")
@click.option("--terminal", is_flag=True, help="The picture in the terminal; the default if there is no display.")
@click.option("--duration", type=NumberRange(0), metavar="S", help="End after S seconds.")
@click.option("--frames", type=WholeRange(1), metavar="N", help="End after N frames.")
@click.option("--record", type=click.Path(path_type=Path, dir_okay=False), metavar="OUT",
              help="Record what is played to OUT: .mp4, .mkv, .mov or .webm; C ends and begins recordings.")
@click.option("--events", metavar="FILE", help="Write events, one JSON object a line; - is stdout.")
@click.option("--no-audio", is_flag=True, help="Play no sound.")
@click.option("--no-mic", is_flag=True, help="Open no microphone.")
@click.option("--midi-clock", is_flag=True, help="Follow the tempo of a MIDI device that sends a clock.")
@click.option("--no-midi", is_flag=True, help="Open no MIDI port.")
@click.option("--no-values", is_flag=True, help="Do not keep the values of parameters in a file next to the patch.")
@click.option("--audio-device", metavar="NAME", help="The sound device: its number, or a part of its name.")
@click.option("--channels", type=_ChannelsParam(), metavar="N,N,…", default="",
              help="The outputs of the sound device, from 1, to which left, right and so on go.")
@click.option("--buffer", type=WholeRange(32, 8192), default=512, show_default=True, metavar="FRAMES",
              help="Samples in one block of sound: fewer are heard sooner, more are safer.")
@click.option("--osc", type=_OSC_ADDRESS, metavar="[HOST:]PORT",
              help="Listen for OSC at PORT; HOST 0.0.0.0 is for other machines.")
@click.option("--osc-send", type=_OSC_ADDRESS, metavar="[HOST:]PORT", default="9001", show_default=True,
              envvar="WEFT_OSC", help="Where osc_send sends; WEFT_OSC says it too.")
@click.option("--lights", type=_LightAddressParam(), multiple=True, metavar="PROTOCOL[:HOST]",
              help=f"Where lights(…) goes: {FORMS}. May be repeated.")
@click.option("--stream-keys", type=click.Path(path_type=Path, readable=False), metavar="FILE",
              envvar="WEFT_STREAM_KEYS",
              help='The keys for servers that display(…, to: "rtmp://…") names: a file that only you can read, with an '
              "address and its key in each line. WEFT_STREAM_KEYS says it too.")
@click.option("--fade", type=NumberRange(0, 60), metavar="S", help="Seconds in which a save fades in; 0 is a cut.")
@click.option("--bpm", type=NumberRange(0.1, 10000), metavar="N",
              help="The tempo at the beginning, instead of the patch's; T taps another one.")
@click.option("--link", is_flag=True, help="Share tempo and beat with other programs, by Ableton Link.")
@click.option("--quantize", type=NumberRange(0, 1024), metavar="BEATS",
              help="A saved version starts at the next multiple of BEATS beats.")
@ALLOW
@click.pass_obj
def command(ahead: Child | None, /, **options: Any) -> int:
    """Play FILE, and continue with every save. Of several, PageDown and PageUp play the next and the previous one.
    Without FILE, play a patch that comes with weft. With - as FILE, play what is piped in, one text after another, with
    a line of --- between them."""
    return _RunOptions(**options).perform(ahead)


@dataclass(frozen=True)
class _RunOptions:
    """The options of one run."""

    files: tuple[Path, ...]
    watch_dir: Path | None
    backend: str | None
    size: tuple[int, int] | None
    fps: float | Literal["monitor"] | None
    samples: int | None
    fullscreen: bool
    monitor: int | None
    windows: tuple[tuple[str, WindowOptions], ...]
    warps: tuple[tuple[str, Warp], ...]
    show_source: bool
    source_corner: Corner
    source_size: float
    record_source: bool
    threads: int | None
    no_stand_in: bool
    headless: bool
    terminal: bool
    duration: float | None
    frames: int | None
    record: Path | None
    events: str | None
    no_audio: bool
    no_mic: bool
    midi_clock: bool
    no_midi: bool
    no_values: bool
    audio_device: str | None
    channels: tuple[int, ...]
    buffer: int
    osc: OscAddress | None
    osc_send: OscAddress
    lights: tuple[LightAddress, ...]
    stream_keys: Path | None
    fade: float | None
    bpm: float | None
    link: bool
    quantize: float | None
    permissions: Permissions

    def perform(self, ahead: Child | None) -> int:
        """Plays, and returns the exit code. `ahead` is a process that is ready to compile, if one was started."""
        self._check()
        self._find_audio_device()
        for problem in load_registry().problems:
            mention_all([problem])
        keys = self._keys_of_streams()
        pipe = TextPipe() if self._is_piped else None
        files = self.files if pipe is None else [PIPE_NAME]
        patches = SetList(files if self._are_own else [shipped_patches() / FIRST_PATCH], self.watch_dir)
        path = patches.current
        for each in self.files[1:]:
            if pipe is None and not os.path.lexists(each):
                hint = meant_by(str(each))
                mention(f"{each} is not there; it can be played once it is" + (f" ({hint})" if hint else ""))
        with _waiting_for("drivers, to find out what can draw and play here"):
            overrides = setting_overrides(self.size, self._frame_rate(), samples=self.samples)
            sizes = {name: window.size for name, window in self.windows if name and window.size is not None}
            setup = Setup(
                str(path), self.backend, os.environ.get("WEFT_BACKEND"), overrides, sizes=sizes,
                permissions=self.permissions, bridges=not self.no_stand_in,
            ).decided()  # fmt: skip
        for line in warnings_of(setup.choices or {}):
            mention(line)
        inputs = Inputs()

        def is_kept(path: Path) -> bool:
            return path != PIPE_NAME and not comes_with_weft(path)

        def keeper(path: Path) -> ValuesFile | None:
            keeps = not self.no_values and is_kept(path)
            return ValuesFile(path, inputs.parameters, midi=inputs.knobs) if keeps else None

        with closing(EventLog(self.events, warn=mention)) as events, ExitStack() as stack:
            reporter = Reporter(events, mention_all, mention)
            outside = OscReporter(reporter.mention, events.emit)
            sender = OscSender(self.osc_send, outside)
            lights = LightSender(self.lights, reporter.mention, reporter.restarted)
            inputs.connect(lights)
            inputs.lamps = lights.strips
            midi = None if self.no_midi else MidiSender(reporter.mention)
            session = Session(
                patches, Compiler.of(setup), reporter, inputs,
                Sound(setup, self._sound_options()),
                threads=self.threads or cores(), fits=self.size is None, limits=Limits(self.duration, self.frames),
                folder=lambda path: Path(real_path(".")) if comes_with_weft(path) else path.parent, record=self.record,
                text_over=self._text_style if self.record_source else None,
                policy=TransitionPolicy(self.fade, self.quantize), bpm=self.bpm,
                keeper=keeper, is_writable=is_kept, pipe=pipe, stream_keys=keys,
                senders={OSC_SEND.name: sender, LIGHTS.name: lights, **({} if midi is None else {MIDI.name: midi})},
            )  # fmt: skip
            if pipe is not None:
                session.nothing_yet = _NOTHING_SENT
            if self.link:
                session.link = LinkPeer(session.clock.tempo)
            if midi is not None:
                told, follows = reporter.mention, self.midi_clock
                inputs.connect(MidiController(session.clock, inputs.knobs, told, sender=midi, follows_clock=follows))
            inputs.connect(WallClock(session.clock))
            server = self._osc_server(session, outside)
            stack.callback(server.close)
            inputs.connect(server)
            # The port may have been any that is free.
            return replace(self, osc=server.address)._play(session, ahead, server)

    def _osc_server(self, session: Session, outside: OscReporter) -> OscServer | NoOscServer:
        if self.osc is None:
            return NoOscServer(outside)
        return OscServer(self.osc, session.inputs.parameters, session.request, outside)

    @property
    def _text_style(self) -> TextStyle:
        return TextStyle(self.source_corner, self.source_size)

    def _sound_options(self) -> SoundOptions:
        return SoundOptions(
            self.audio_device, frames=self.buffer, places=self.channels, is_silent=self.no_audio, is_deaf=self.no_mic
        )  # fmt: skip

    def _check(self) -> None:
        if self._is_piped and (len(self.files) > 1 or self.watch_dir is not None):
            raise click.UsageError("what is piped in plays alone, so other patches beside - mean nothing")
        for folder in filter(os.path.isdir, self.files):
            hint = f"to play the patches in it: {call('run', '--watch-dir', folder)}"
            raise Missing(f"{folder} cannot be read: it is a folder ({hint})")
        if self.headless and (self.terminal or self._for_a_window):
            raise click.UsageError(f"--headless shows nothing, so --terminal, {_FOR_A_WINDOW} mean nothing")
        if self.headless and self.show_source:
            raise click.UsageError("--headless shows nothing, so --show-source means nothing")
        if self.terminal and self._for_a_window:
            raise click.UsageError(f"--terminal opens no window, so {_FOR_A_WINDOW} mean nothing")
        for name, options in self.windows:
            if outlet_of(name) and (
                options.fullscreen or options.shows_text or options.monitor is not None
            ):
                raise click.UsageError(f"{visible(name)} is no window: it has a size, but no monitor and no text")
        for name in dict(self.warps):
            if outlet_of(name):
                raise click.UsageError(f"{visible(name)} is no window: it has no wall")
        if len(dict(self.windows)) < len(self.windows):
            raise click.UsageError("--window is given twice for one window")
        if self.midi_clock and (self.link or self.no_midi):
            raise click.UsageError("--midi-clock follows a device, so --link and --no-midi mean nothing")
        if self.record is not None:
            if self.record.suffix.lower() not in LIVE_CODECS:
                raise click.UsageError(f"--record writes {', '.join(LIVE_CODECS)}; weft render writes others")
            if not os.path.isdir(self.record.parent):
                raise Missing(no_folder(self.record.parent))
            if (missing := missing_encoder()) is not None:
                raise Missing(missing)
        if self.fps == _MONITOR and (self.headless or self.terminal):
            raise click.UsageError("--fps monitor needs a window; write a number")
        if self.terminal and self.events == "-":
            raise click.UsageError("--terminal draws on stdout, so --events needs a file")
        if self.events is not None and self.events != "-":
            check_written("--events", self.events, self.files)

    def _frame_rate(self) -> float | None:
        """Frames a second, if they are not those of the patch."""
        if self.fps != _MONITOR:
            return self.fps
        found = None
        with suppress(WeftError):  # without a display; it is told when the window is opened
            # This imports GLFW and OpenGL.
            from weft.runtime.screens.display import refresh_rate

            found = refresh_rate(self.monitor or 0)
        if found is None:
            mention("the monitor does not say how often it shows a picture; the frames are those of the patch")
        return found

    def _keys_of_streams(self) -> StreamKeys:
        path = self.stream_keys
        if path is None:
            return StreamKeys()
        try:
            keys, is_seen = StreamKeys.read(path), system.others_read(path)
        except OSError as problem:
            raise Missing(f"{path}, with the keys of streams, cannot be read: {problem.strerror}") from None
        except StreamKeysError as problem:
            raise click.UsageError(str(problem)) from None
        if is_seen:
            mention(f"other users can read the keys in {path}; chmod 600 {system.quoted(str(path))} forbids it")
        return keys

    def _find_audio_device(self) -> None:
        """Raises WeftError (`no-sound-device`) before anything plays, if no device has the given name."""
        if self.audio_device is not None and not self.no_audio:
            with _waiting_for("the sound server"):
                found = look()
            if found.problem is not None:
                raise error("no-sound-device", f"there is no sound: {found.problem}")
            chosen(found.outputs, self.audio_device)

    def _play(self, session: Session, ahead: Child | None, server: OscServer | NoOscServer) -> int:
        system.wait_precisely()
        with ExitStack() as stack:
            stack.callback(session.close)
            session.expect(ahead)
            display = self._display(session, stack)
            if session.pipe is not None:
                session.pipe.first(None if self._ends_by_itself else _AT_ONCE)
            first = session.begin(_room() if self.terminal else None)
            if any(d.code == "unreadable-file" for d in first.diagnostics):
                hint = None if self._is_piped or os.path.lexists(session.path) else _instead_of(session.path)
                show(replace(d, hint=d.hint or hint) for d in first.diagnostics)
                return exit_code_of(first.diagnostics)
            mention_all(first.diagnostics)
            if session.programs.running is not None and len(session.patches.patches) == 1:
                named = dict.fromkeys((*dict(self.windows), *dict(self.warps)))
                check_windows(filter(None, named), [target for target in session.targets if target])
            if session.programs.running is None and self._ends_by_itself:
                _emit_error(session, first)
                return exit_code_of(first.diagnostics)
            server.start()
            self._open_to_editors(session)
            with _interruptible(session):
                if self.headless:
                    self._announce(session, first, keys="")
                    session.run(Screen())
                elif self.terminal:
                    self._run_in_terminal(session, first)
                else:
                    self._run_in_window(session, first, display)
            return INTERRUPTED if session.stopping == "interrupted" else 0

    def _open_to_editors(self, session: Session) -> None:
        """Lets editors of the same user reach the performance."""
        try:
            session.remote.open()
        except UnreachableError as failure:
            mention(f"editors cannot reach this performance: {failure}")

    def _display(self, session: Session, stack: ExitStack) -> Display | None:
        """The display of the window. There is one if a device can draw it, or if a backend may draw with its graphics,
        which it does from now on. None if neither is so, or if no window can be opened, which is reported when it is
        opened."""
        device = session.loader.window_device()
        if self.headless or self.terminal or (device is None and not session.loader.draws):
            return None
        with suppress(WeftError):
            # This imports GLFW and OpenGL, so only if they are needed.
            from weft.runtime.screens.display import Display, GraphicsError
            from weft.runtime.screens.window import display_on

            if device is not None:
                try:
                    display = display_on(device)
                    stack.callback(display.close)
                    return display
                except GraphicsError as failure:
                    mention(f"pictures are copied to the window: {failure}")
            if session.loader.draws:
                with suppress(GraphicsError):
                    display = Display(apis=session.loader.drawing_apis)
                    stack.callback(display.close)
                    session.loader.draw_in(display.graphics())
                    return display
        return None

    def _run_in_window(self, session: Session, first: LoadResult, display: Display | None) -> None:
        windows = ExitStack()
        try:
            # This imports GLFW and OpenGL, so only for a window.
            from weft.runtime.screens.window import LEAST, Windows

            further = dict(self.windows)
            own = further.pop("", WindowOptions())
            # The first window may show a picture with a name.
            first_target = next(iter(session.targets), "")
            named = further.get(first_target, WindowOptions())
            warps = dict(self.warps)
            if first_target in warps:
                warps.setdefault("", warps[first_target])
            monitors = (self.monitor, own.monitor, named.monitor)
            patch = None if comes_with_weft(session.path) else session.path
            walls = Walls(patch, warps, session.reporter.mention)
            windows.callback(walls.close)
            def opened() -> Windows:
                return Windows(
                    session.title, *session.size, further=further, on_change=session.reporter.window,
                    fullscreen=self.fullscreen or own.fullscreen or named.fullscreen,
                    monitor=next((number for number in monitors if number is not None), None), size=own.size,
                    least=LEAST, inputs=session.inputs, on_command=session.command, display=display,
                    warn=session.reporter.warn, text_style=self._text_style,
                    shows_text=self.show_source or own.shows_text or named.shows_text, walls=walls,
                )  # fmt: skip

            shown = windows.enter_context(opened())
        except WeftError as failure:
            terminal_will_do = sys.stdout.isatty() and self.events != "-"
            if failure.diagnostics[0].code != "no-display" or not terminal_will_do or self._for_a_window:
                raise
            mention(f"{failure.diagnostics[0].message}; the terminal shows the picture instead")
            self._run_in_terminal(session, session.begin(_room()))
            return

        def again(failure: WeftError) -> Screen:
            nonlocal shown, display
            is_drawn = display is not None and display.device is not None
            if not is_drawn and (display is not None or not shown.display.is_gone):
                raise failure
            reason = "the X server had closed the windows" if shown.display.is_gone else failure.diagnostics[0].message
            windows.close()
            if display is not None:  # OpenGL draws the next ones
                display.close()
                display = None
            shown = windows.enter_context(opened())
            session.reporter.restarted("windows", f"{reason}; they are open again")
            return shown

        with windows, kept_awake():
            self._announce(session, first, _keys(session))
            session.run(shown, again)

    @property
    def _ends_by_itself(self) -> bool:
        """Whether it runs unattended: a script that waits for the end would not fix the patch."""
        return self.headless and (self.frames is not None or self.duration is not None)

    @property
    def _is_piped(self) -> bool:
        """Whether texts are piped in."""
        return _PIPED in self.files

    @property
    def _are_own(self) -> bool:
        """Whether the patches are the user's."""
        return bool(self.files) or self.watch_dir is not None

    @property
    def _for_a_window(self) -> bool:
        """Whether there are options that only a window can follow."""
        named = any(not outlet_of(name) for name, _ in self.windows)
        return self.fullscreen or self.monitor is not None or named or bool(self.warps)

    def _run_in_terminal(self, session: Session, first: LoadResult) -> None:
        from weft.runtime.screens.terminal import Terminal

        # There Ctrl-C is no key.
        keys = _keys(session, without=("fullscreen", "record") if "c" in session.patch_keys else ("fullscreen",))
        self._announce(session, first, keys=keys)
        # From now on messages appear below the picture, since other lines would break it.
        session.reporter.show = session.reporter.echo = _nothing
        with Terminal(session.inputs, session.command, self.show_source) as terminal, kept_awake():
            session.reporter.notices.note(keys if self._is_piped else f"edit {session.path} and save · {keys}")
            session.run(terminal)
        for line in session.recorded:
            mention(line)

    def _announce(self, session: Session, first: LoadResult, keys: str) -> None:
        """The first line of every run: the file to edit, the devices that run it, and the keys."""
        choices = session.loader.choices
        running = session.programs.running
        used = {unit.subgraph.context for unit in running.compiled.units} if running is not None else set()
        named = {VISUAL.name, AUDIO.name, COMPUTE.name, *used}
        shown = ", ".join(f"{name} {choice.shown}" for name, choice in choices.items() if name in named)
        several = f" ({session.patches.place})" if len(session.patches.patches) > 1 else ""
        file = f"playing {FIRST_PATCH}, which comes with weft"
        if self._is_piped:
            file = "texts are piped in"
        elif self._are_own:
            file = f"edit {session.path} and save{several}"
        mention(" · ".join(filter(None, (file, shown, self.osc and f"OSC at {self.osc}", keys))))
        if not self._are_own:
            copy = call("examples", Path(FIRST_PATCH).stem, "--copy", "mine.weft")
            mention(f"to make it yours: {copy}, then {call('run', 'mine.weft')}")
        session.reporter.events.emit(
            "started", backends={name: choice.shown for name, choice in choices.items()}, size=session.size,
            fps=session.settings.get("fps"), rate=session.settings.get("rate"), buffer=session.sound.options.frames,
            osc=self.osc and str(self.osc),
        )  # fmt: skip
        if session.programs.running is None:
            if first.diagnostics:
                _emit_error(session, first)
            mention(session.nothing_yet)


def _keys(session: Session, without: Collection[str] = ()) -> str:
    """The keys and what they do, for people. A key that the patch reads controls weft only together with Ctrl."""
    return ", ".join(
        "Ctrl+" * (key in session.patch_keys) + f"{_WORDS.get(key, key.capitalize())} {_WORDS.get(command, command)}"
        for key, command in TOOL_KEYS.items()
        if command not in without and (len(session.patches.patches) > 1 or command not in ("next", "previous"))
    )


def _instead_of(path: Path) -> str | None:
    """What may have been meant by the path of a file that is not there."""
    from weft.cli.examples import shipped  # only for what is missing

    with suppress(Missing):
        if (name := str(path).removesuffix(ENDING)) in shipped():
            return f"{call('examples', name)} plays the one that comes with weft"
    if (hint := meant_by(str(path))) is not None:
        return hint
    may_be_made = os.access(path.parent, os.W_OK | os.X_OK)
    return f"{call('new', path)} writes a patch to begin with" if may_be_made else None


def _emit_error(session: Session, first: LoadResult) -> None:
    session.reporter.events.emit("error", hash=first.saved.hash, **event_fields(first.diagnostics))


@contextmanager
def _waiting_for(what: str) -> Iterator[None]:
    """Reports what is being waited for, if it takes long."""
    timer = threading.Timer(LONG, mention, [f"waiting for {what}"])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _room() -> tuple[int, int] | None:
    """The space that the terminal has for a picture; None if there is no terminal."""
    from weft.runtime.screens.terminal import room_of

    try:
        # Not COLUMNS and LINES: the terminal may have been resized since they were set.
        return room_of(os.get_terminal_size(sys.stdout.fileno()))
    except (OSError, ValueError):
        return None


def _nothing(_: object) -> None:
    pass


@contextmanager
def _interruptible(session: Session) -> Iterator[None]:
    """Ends the session at the next frame on Ctrl-C or a request to terminate. GLFW's callbacks swallow exceptions, so
    KeyboardInterrupt could be lost. SIGINT is handled even if it was ignored at the start: shells ignore it for every
    job in the background, but one that is sent is meant."""

    def on_signal(number: int, _frame: FrameType | None) -> None:
        session.stop("interrupted" if number == signal.SIGINT else "terminated")
        for each in asked:
            each.note()
        # A second Ctrl-C does not wait for the frame.
        signal.signal(signal.SIGINT, asked[0] if asked else signal.default_int_handler)

    before = {number: signal.signal(number, on_signal) for number in system.ending_signals()}
    asked = [handler for handler in before.values() if isinstance(handler, Asked)]
    system.end_in_order(session=True)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
