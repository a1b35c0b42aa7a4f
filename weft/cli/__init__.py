"""The command line. Commands are modules that are imported when they are called, so that a short one starts fast."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import click

from weft import __version__
from weft.cli.console import INTERNAL, INTERRUPTED, MISSING, Missing, exit_code_of, say, show
from weft.errors import WeftError, did_you_mean

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class _Entry(NamedTuple):
    """A command: the module whose `command` it is, and what the list of commands says about it."""

    module: str
    summary: str


COMMANDS: Mapping[str, _Entry] = MappingProxyType(
    {
        "run": _Entry("weft.cli.run", "Play a patch in a window, and play on with every save."),
        "new": _Entry("weft.cli.new", "Write a patch to begin with."),
        "examples": _Entry("weft.cli.examples", "List the patches that come with weft, play one, or copy it."),
        "help": _Entry("weft.cli.help", "Say what a name means, and show an example."),
        "check": _Entry("weft.cli.check", "List all errors and warnings of a patch."),
        "compile": _Entry("weft.cli.compile", "Compile a patch, and show any stage of it."),
        "eval": _Entry("weft.cli.evaluate", "Show the values of a strand."),
        "render": _Entry("weft.cli.render", "Write pictures to files, offline and deterministic."),
        "bench": _Entry("weft.cli.bench", "Measure every backend on this machine."),
        "graph": _Entry("weft.cli.graph", "Show the render graph of a patch."),
        "devices": _Entry("weft.cli.devices", "List the backends, their devices, and what a patch would use."),
        "completion": _Entry("weft.cli.completion", "Print what makes a shell complete weft's commands and names."),
    }
)


class _LazyGroup(click.Group):
    """Knows its commands by the table, and imports only the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        command = importlib.import_module(entry.module).command
        assert isinstance(command, click.Command)
        return _completing(command) if ctx.resilient_parsing else command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            hint = did_you_mean(args[0], COMMANDS) or f"commands: {', '.join(COMMANDS)}"
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


def _completing(command: click.Command) -> click.Command:
    from weft.cli.completion import completing  # only where a shell asks

    return completing(command)


@click.group(cls=_LazyGroup, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="%(prog)s %(version)s")
@click.pass_context
def commands(ctx: click.Context) -> None:
    """Live coding of pictures and sound: every strand is a function of coordinates."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main(args: Sequence[str] | None = None) -> int:
    """Runs a command line (that of the process if none is given), and gives its exit code."""
    try:
        return _run(args)
    except click.ClickException as failure:
        failure.show()
        return failure.exit_code
    except (click.Abort, KeyboardInterrupt):
        say("interrupted")
        return INTERRUPTED
    except Missing as failure:
        say(str(failure))
        return MISSING
    except WeftError as failure:
        show(failure.diagnostics)
        return exit_code_of(failure.diagnostics)
    except BrokenPipeError:
        return _reader_left()
    except Exception as failure:
        if os.environ.get("WEFT_DEBUG") == "1":
            raise
        say(f"internal error: {type(failure).__name__}: {failure}; please report it with what WEFT_DEBUG=1 adds")
        return INTERNAL


def _run(args: Sequence[str] | None) -> int:
    if "_WEFT_COMPLETE" in os.environ:
        from weft.cli.completion import prepare  # a shell asks what can be typed

        prepare()
    result = commands.main(args=args, prog_name="weft", standalone_mode=False)
    sys.stdout.flush()  # here, where what goes wrong is still caught
    return result if isinstance(result, int) else 0


def _reader_left() -> int:
    """The program that read stdout ended (`weft … | head`), as it may. Python must not flush into the pipe at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
