"""The command line. Commands are modules that are imported when they are called, so that a short one starts fast."""

from __future__ import annotations

import gc
import importlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

import click
from click.core import ParameterSource

from weft import __version__
from weft.__main__ import ASKING, Asked, Ended, interrupted
from weft.cli.console import Missing, call, exit_code_of, say, show
from weft.codes.rows import INTERNAL, INTERRUPTED, MISSING, InternalError
from weft.errors import WeftError, did_you_mean, fitting, is_out_of_memory, out_of_memory, visible
from weft.platform import system
from weft.runtime.compiling import SERVER

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class _Command(NamedTuple):
    """The module that holds a command, and its line in the list of commands."""

    module: str
    summary: str
    ahead: str | None = None
    """The child process to start before the module is imported, which takes a while; the context's object."""


COMMANDS: Mapping[str, _Command] = MappingProxyType(
    {
        "run": _Command("weft.cli.run", "Play a patch in a window, and update it with every save.", ahead=SERVER),
        "new": _Command("weft.cli.new", "Write a patch to begin with."),
        "examples": _Command("weft.cli.examples", "List the patches that come with weft, play one, or copy it."),
        "help": _Command("weft.cli.help", "Say what a name means, and show an example."),
        "check": _Command("weft.cli.check", "List all errors and warnings of a patch."),
        "send": _Command("weft.cli.send", "Have a performance that runs play a text, without saving it."),
        "fmt": _Command("weft.cli.fmt", "Write patches in one style, with the same meaning."),
        "lsp": _Command("weft.cli.lsp", "Serve an editor: mistakes as you type, completion, help, renaming."),
        "compile": _Command("weft.cli.compile", "Compile a patch, and show any stage of it."),
        "eval": _Command("weft.cli.evaluate", "Show the values of a strand."),
        "why": _Command("weft.cli.why", "Show what a pixel or a sample is computed from, and what acts on it most."),
        "render": _Command("weft.cli.render", "Write pictures to files, offline and deterministic."),
        "export": _Command("weft.cli.export", "Write a patch as a page that plays it in any browser."),
        "bench": _Command("weft.cli.bench", "Measure every backend on this machine."),
        "graph": _Command("weft.cli.graph", "Show the render graph of a patch."),
        "devices": _Command("weft.cli.devices", "List the backends, their devices, and what a patch would use."),
        "completion": _Command("weft.cli.completion", "Print a script that lets a shell complete names."),
    }
)


class _Requested(InternalError):  # noqa: N818 -- it is no mistake
    """A signal has asked for the end; its cause is `Ended`. After Ctrl-C, of which a terminal shows something, click
    begins a new line."""


class _LazyGroup(click.Group):
    """Takes its commands from the table, and imports only the one that is called."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except Ended as request:
            if request.code == INTERRUPTED:
                raise
            raise _Requested from request

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        if entry.ahead is not None and not ctx.resilient_parsing:
            from weft.child import Child  # only for a command that needs one

            with suppress(OSError):  # the command tries again when it needs the process
                root = ctx.find_root()
                root.obj = Child(entry.ahead)
                root.call_on_close(root.obj.end)
        command = importlib.import_module(entry.module).command
        gc.enable()  # which the beginning of the process has disabled
        assert isinstance(command, click.Command)
        # From now on, there is something to clean up.
        asked = Asked()
        handled = [number for number in ASKING if signal.getsignal(number) is interrupted]
        for number in handled:
            signal.signal(number, asked)
        if handled:
            system.end_in_order()
        if not ctx.resilient_parsing:
            return command
        from weft.cli.completion import completing  # only where a shell asks

        return completing(command)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            hint = f"to play it: {call('run', args[0])}" if os.path.isfile(args[0]) else None
            hint = hint or did_you_mean(args[0], COMMANDS) or f"commands: {', '.join(COMMANDS)}"
            ctx.fail(f'there is no command "{args[0]}" ({hint})')
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        from click.shell_completion import CompletionItem

        return [CompletionItem(n, help=entry.summary) for n, entry in COMMANDS.items() if n.startswith(incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # From the table: the help of the commands themselves would import every module.
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in COMMANDS.items()])


@click.group(cls=_LazyGroup, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="%(prog)s %(version)s")
@click.pass_context
def commands(ctx: click.Context) -> None:
    """Live coding of pictures and sound: every strand is a function of coordinates."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main(args: Sequence[str] | None = None) -> int:
    """Runs a command line (that of the process if none is given), and returns its exit code."""
    # What is written to streams that the shell has closed (`weft … >&-`) is discarded, and nothing is piped in.
    sys.stdin = sys.stdin or open(os.devnull)  # noqa: SIM115 -- up to the end of the process
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    system.prepare_streams()
    try:
        code = _run(args)
    except OSError as failure:
        request = _request(failure)
        if isinstance(failure, BrokenPipeError) and request is None:
            # The program that read stdout has ended (`weft … | head`), as it may.
            _discard(sys.stdout)
            return 0
        # Not even stderr can be written.
        _discard(sys.stdout, sys.stderr)
        return MISSING if request is None else request.code
    try:
        sys.stderr.flush()
    except OSError:  # what was to be mentioned there may have been left out
        _discard(sys.stderr)
    return code


def _run(args: Sequence[str] | None) -> int:
    """Runs a command line, reports its failure, and returns the exit code. Raises OSError if stderr cannot be
    written."""
    try:
        if "_WEFT_COMPLETE" in os.environ:
            from weft.cli.completion import prepare  # a shell asks what can be typed

            prepare()
        result = commands.main(args=args, prog_name="weft", standalone_mode=False)
        sys.stdout.flush()  # here, where a failure is still caught
        return result if isinstance(result, int) else 0
    except click.ClickException as failure:
        vars(failure)["message"] = visible(fitting(failure.message))
        if isinstance(failure, click.BadParameter):
            _name_variable(failure)
        failure.show()
        return failure.exit_code
    except (click.Abort, KeyboardInterrupt, _Requested) as failure:
        request = _request(failure)
        say("interrupted" if request is None else request.word)
        return INTERRUPTED if request is None else request.code
    except Missing as failure:
        say(fitting(str(failure)))
        return MISSING
    except WeftError as failure:
        show(failure.diagnostics)
        return exit_code_of(failure.diagnostics)
    except BrokenPipeError:
        raise
    except Exception as failure:
        if is_out_of_memory(failure):
            diagnostics = (out_of_memory("this could not be done", failure),)
            show(diagnostics)
            return exit_code_of(diagnostics)
        if isinstance(failure, OSError) and failure.filename is None:
            # The failure of a file has its name: this is a stream.
            _discard(sys.stdout)
            say(f"the output cannot be written: {failure.strerror}")
            return MISSING
        if os.environ.get("WEFT_DEBUG") == "1":
            raise
        say(f"internal error: {type(failure).__name__}: {failure}; please report it with what WEFT_DEBUG=1 adds")
        return INTERNAL


def _name_variable(failure: click.BadParameter) -> None:
    """Has the message name the environment variable that is wrong, and not an option that nobody typed."""
    option, context = failure.param, failure.ctx
    if option is None or option.name is None or context is None:
        return
    if context.get_parameter_source(option.name) is ParameterSource.ENVIRONMENT:
        failure.param_hint = f"'{option.envvar}'"


def _request(failure: BaseException) -> Ended | None:
    """What asked this process to end, if that is why it failed: a terminal that is gone cannot be written either."""
    cause: BaseException | None = failure
    while cause is not None and not isinstance(cause, Ended):
        cause = cause.__cause__ or cause.__context__
    return cause


def _discard(*streams: TextIO) -> None:
    """Discards what streams still hold: Python would fail on it at exit."""
    for stream in streams:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
