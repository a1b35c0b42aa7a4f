"""What people call the values of a kernel: names from the patch for listings, and the lines that they come from."""

from __future__ import annotations

from weft.codegen.placement import LEAVES
from weft.codegen.values import Note
from weft.ir.expr import Expr, Pool

# A longer name is cut; it only has to be recognised in a listing.
_LENGTH = 24


class Namer:
    """Names the expressions of a `pool`; by their numbers where there is none."""

    def __init__(self, pool: Pool | None) -> None:
        self._pool = pool
        self._results: dict[tuple[Expr, int], Expr] = {}
        """What stands for each value behind a loop that has a name."""
        if pool is not None:
            for node in pool.named():
                if node.op == "loop_out" and isinstance(node.attr, int):
                    self._results[node.args[0], node.attr] = node

    def title(self, node: Expr, out: int, several: bool) -> str:
        """The name of a local that holds an expression, or value `out` of the `several` of a loop: what the patch calls
        it, else its text, else its number."""
        name = self._name(node, out)
        if name is None:
            span = self._pool.span(node) if self._pool is not None else None
            text = " ".join(span.text.split()) if span else f"t{node.index}"
            name = text if len(text) <= _LENGTH else text[: _LENGTH - 1] + "…"
            if several:
                name += f".{out}"
        return name

    def note(self, node: Expr, out: int) -> Note | None:
        """The note on an expression, or on value `out` of a loop; None if the patch has no name for it."""
        name = self._name(node, out)
        if name is None or self._pool is None:
            return None
        span = self._pool.span(node)
        if span is None:
            return Note(name, "", 0, "")
        line, _ = span.source.position(span.start)
        return Note(name, span.source.name, line, span.source.line(line).strip())

    def _name(self, node: Expr, out: int) -> str | None:
        if self._pool is None or node.op in LEAVES:
            return None
        meant = self._results.get((node, out)) if node.op == "loop" else node
        return self._pool.name(meant) if meant is not None else None
