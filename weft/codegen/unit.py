"""One subgraph, compiled, as it is handed from process to process; `compilation` makes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from weft.codegen.base import Kernel
from weft.codegen.serialize import content_hash
from weft.errors import Span
from weft.graph.nodes import Subgraph
from weft.names import StrandRef


@dataclass(frozen=True)
class Unit:
    """One subgraph, compiled: the kernel over its context's sweep, and one for each strand that others read. Equal
    hashes mean that nothing has to be built again. `feeds` computes once a frame what a context that streams is given
    by others. `code` is what the backend that will run it has translated beforehand, if anything; `code_of` names
    it."""

    subgraph: Subgraph
    kernel: Kernel
    points: Mapping[StrandRef, Kernel]
    hash: str
    feeds: Kernel | None = None
    code: object = None
    code_of: str = ""
    loops: tuple[Span, ...] = ()
    """Where the loops stand that may be stopped by their limit of steps."""

    def coded_for(self, name: str) -> Unit:
        """The same without code that another backend than the one of this name has translated."""
        return self if self.code_of in ("", name) else replace(self, code=None, code_of="")

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """All of them."""
        return (self.kernel, *self.points.values(), *([self.feeds] if self.feeds is not None else ()))

    @property
    def feeding(self) -> Unit | None:
        """What computes the feeds, as a unit for the context that computes numbers."""
        if self.feeds is None:
            return None
        name = f"{self.subgraph.name}: feeds"
        subgraph = replace(
            self.subgraph, name=name, context=self.feeds.context, tied=(), sinks=(), exposes=(), depends_on=()
        )
        return Unit(subgraph, self.feeds, {}, content_hash(self.feeds))
