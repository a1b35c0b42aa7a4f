"""`weft graph`: the render graph of a patch."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType

import click

from weft.cli.arguments import ALLOW, FILE, compile_file
from weft.cli.console import output, show
from weft.graph.draw import to_dot, to_json, to_mermaid, to_text
from weft.graph.nodes import RenderGraph
from weft.permissions import Permissions


def _json(graph: RenderGraph) -> str:
    return json.dumps(to_json(graph), indent=2, ensure_ascii=False) + "\n"


_FORMATS: Mapping[str, Callable[[RenderGraph], str]] = MappingProxyType(
    {"text": to_text, "mermaid": to_mermaid, "dot": to_dot, "json": _json}
)


@click.command("graph")
@FILE
@click.option("--format", "form", type=click.Choice(list(_FORMATS)), default="text", show_default=True)
@click.option("--json", "form", flag_value="json", help="The same as --format json.")
@ALLOW
def command(file: str, form: str, permissions: Permissions) -> None:
    """Show the render graph of FILE: its subgraphs in the order in which they run, and what each strand reads."""
    build = compile_file(file, permissions=permissions)
    show(build.warnings)
    output(_FORMATS[form](build.graph), end="")
