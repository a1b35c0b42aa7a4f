"""`weft completion`, and the words that shells offer while a command is typed: commands, options, patches and names.

The shells ask through click's own mechanism, the variable _WEFT_COMPLETE.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

import click
from click.shell_completion import (
    BashComplete, CompletionItem, add_completion_class, get_completion_class, split_arg_string
)

VARIABLE = "_WEFT_COMPLETE"

# bash splits words at signs such as @ and =, and replaces only the last piece, which it calls $2.
_BASH = r"""
%(complete_func)s() {
    local response type value IFS=$'\n'
    response=$(env COMP_LINE="$COMP_LINE" COMP_POINT="$COMP_POINT" COMP_PIECE="$2" \
        %(complete_var)s=bash_complete "$1" 2>/dev/null)
    COMPREPLY=()
    while IFS=',' read -r type value; do
        if [[ $type == dir ]]; then
            compopt -o filenames -o plusdirs
        elif [[ $type == file ]]; then
            compopt -o filenames -o default
        elif [[ $type == plain ]]; then
            COMPREPLY+=("$value")
        fi
    done <<< "$response"
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""


class _Bash(BashComplete):
    """click's completion, corrected for words that bash splits, with folders after the files."""

    source_template = _BASH.lstrip()

    def get_completion_args(self) -> tuple[list[str], str]:
        line = os.environ["COMP_LINE"].encode()[: int(os.environ["COMP_POINT"])].decode(errors="ignore")
        words = split_arg_string(line)
        incomplete = "" if not line or line[-1].isspace() else words.pop()
        return words[1:], incomplete

    def format_completion(self, item: CompletionItem[str]) -> str:
        _, word = self.get_completion_args()
        # For --backend=ve, click completes only the ve.
        option, equals, value = word.partition("=") if word.startswith("-") and "=" in word else ("", "", word)
        piece = os.environ.get("COMP_PIECE", "")
        if piece == word:
            return f"{item.type},{option}{equals}{item.value}"
        kept = len(value) - len(piece) if value.endswith(piece) else 0
        return f"{item.type},{item.value[kept:]}"


_HOW = """\
bash: add this line to ~/.bashrc    eval "$(weft completion bash)"
zsh:  add this line to ~/.zshrc     eval "$(weft completion zsh)"
fish: type this once                weft completion fish > ~/.config/fish/completions/weft.fish
"""

SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", required=False, type=click.Choice(SHELLS))
@click.pass_context
def command(ctx: click.Context, shell: str | None) -> None:
    """Print the script with which SHELL completes commands, options and names; without SHELL, say how to use it."""
    if shell is None:
        click.echo(_HOW, nl=False)
        return
    prepare()
    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(ctx.find_root().command, {}, "weft", VARIABLE).source())


def prepare() -> None:
    """Makes click complete in weft's way."""
    add_completion_class(_Bash)


def completing(command: click.Command) -> click.Command:
    """The command, with completion for the values of its parameters."""
    completed = copy.copy(command)
    completed.params = [copy.copy(param) for param in command.params]
    for param in completed.params:
        if param.name in _VALUES:
            param.type = _Completed(_VALUES[param.name])
    return completed


class _Completed(click.types.UnprocessedParamType):
    """A type that accepts any value, and lists those that complete it."""

    def __init__(self, values: Callable[[str], Iterator[CompletionItem[str]]]) -> None:
        self._values = values

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
        return list(self._values(incomplete))


def _patches(incomplete: str) -> Iterator[CompletionItem[str]]:
    """The patches of the folder that is being typed; the shell is to offer folders too."""
    from weft.syntax.scanner import ENDING  # and with it all operators, which other words do not need

    folder, start = os.path.split(incomplete)
    try:
        names = sorted(os.listdir(os.path.expanduser(folder) or os.curdir))
    except OSError:
        names = []
    for name in names:
        if name.endswith(ENDING) and name.startswith(start) and (start or not name.startswith(".")):
            yield CompletionItem(os.path.join(folder, name))
    yield CompletionItem(incomplete, type="dir")


def _backends(incomplete: str) -> Iterator[CompletionItem[str]]:
    """`vector`, or the last of `visual=vm,compute=vector`."""
    from weft.backends.cpu import EXECUTORS
    from weft.backends.registry import load_registry

    begun, comma, last = incomplete.rpartition(",")
    context, equals, name = last.rpartition("=")
    for known in (*EXECUTORS, *load_registry().names):
        if known.startswith(name):
            yield CompletionItem(begun + comma + context + equals + known)


def _contexts(incomplete: str) -> Iterator[CompletionItem[str]]:
    from weft.contexts import context_table

    for spec in context_table():
        if spec.name.startswith(incomplete):
            yield CompletionItem(spec.name, help=spec.doc)


_VALUES: Mapping[str, Callable[[str], Iterator[CompletionItem[str]]]] = MappingProxyType(
    {
        **dict.fromkeys(("file", "files", "patches"), _patches),
        **dict.fromkeys(("backend", "backends"), _backends),
        "context": _contexts,
    }
)
"""The completion for a parameter of this name, in any command."""
