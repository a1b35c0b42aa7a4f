"""What the comments in the libraries say about their spindles, for `weft help` and the page of the library."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from weft.errors import Report, Source
from weft.graph.bodies import Ordinals
from weft.syntax.ast import SpindleDefinition
from weft.syntax.docs import SpindleDoc, doc_of
from weft.syntax.includes import libraries, load


@cache
def library_docs() -> Mapping[str, tuple[SpindleDoc, ...]]:
    """The spindles of each library that ships with weft, without those that begin with `_`."""
    return MappingProxyType({library: spindle_docs(Source(library, text)) for library, text in libraries().items()})


def spindle_docs(text: Source) -> tuple[SpindleDoc, ...]:
    """The spindles that a text itself defines, in its order, without those that begin with `_` or are broken."""
    program = load(text, Report()).program
    spindles = {s.name.name: s for s in program.statements if isinstance(s, SpindleDefinition)}
    ordinals = Ordinals({}, spindles, ())
    found = []
    for name, spindle in spindles.items():
        # What it uses or includes is described there.
        if spindle.span.source is text and not name.startswith("_"):
            taken = zip(spindle.parameters, ordinals.takes_bundles(spindle), strict=True)
            found.append(doc_of(spindle, [parameter.name for parameter, is_taken in taken if is_taken]))
    return tuple(found)
