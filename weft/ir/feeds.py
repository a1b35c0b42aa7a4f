"""What a context that streams is given from outside. It runs apart from all others, at a pace of its own, and can ask
nobody: mouse, keys, parameters and strands are sent to it once a frame, and led smoothly from value to value. A strand
that it reads all over a picture is sent as a picture."""

from __future__ import annotations

from collections.abc import Mapping

from weft.contexts import is_led
from weft.errors import error
from weft.ir.expr import Expr, PicturePlane, Pool, StrandRef, topological
from weft.ir.program import Output
from weft.ir.rates import Rate
from weft.names import view_of


class Leading:
    """Replaces what comes from outside by coordinates, and collects what others have to evaluate for that."""

    def __init__(self, name: str, pool: Pool, rate: Mapping[Expr, Rate]) -> None:
        self._name = name
        self._pool = pool
        self._rate = rate
        self._labels: dict[Expr, str] = {}

    @property
    def feeds(self) -> tuple[Output, ...]:
        """What is evaluated by those who can, once a frame."""
        return tuple(Output(label, node) for node, label in self._labels.items())

    def led(self, node: Expr, args: tuple[Expr, ...]) -> Expr:
        """An expression, whose operands have become `args`, as it is computed in the stream."""
        match node.op, node.attr:
            case "uniform", str(name) if is_led(name):
                return self._coordinate(name, node)
            case "strand", StrandRef() as ref if _is_now(node):
                return self._coordinate(str(ref), node)
            case "strand", StrandRef() as ref:
                return self._fed(node, args, ref)
        return node if args == node.args else self._pool.make(node.op, args, node.attr, self._pool.span(node))

    def _fed(self, node: Expr, args: tuple[Expr, ...], ref: StrandRef) -> Expr:
        in_stream = any(self._rate[arg] > Rate.FRAME for arg in node.args)
        if in_stream or any((part.op, part.attr) == ("coord", "channel") for part in topological(node.args)):
            return self._seen(node, args, ref)
        # Where it is read does not depend on the stream, so the operands can stay as they were.
        label = self._labels.setdefault(node, f"{self._name}:{ref}/{len(self._labels)}")
        return self._coordinate(label, node)

    def _coordinate(self, name: str, node: Expr) -> Expr:
        return self._pool.make("coord", (), name, self._pool.span(node))

    def _seen(self, node: Expr, args: tuple[Expr, ...], ref: StrandRef) -> Expr:
        """A strand that is read at another place for every sample, or channel."""
        span = self._pool.span(node)
        if len(args) == 1:
            words = f"a map of the time cannot reach into {ref}, which only knows its own"
            raise error("map-reaches-state", words, span, "delay(…) and cache(…) read earlier ticks")
        return self._pool.make("picture", args, PicturePlane(view_of(ref), 0), span)


def _is_now(node: Expr) -> bool:
    """Whether a strand of the same stream is read at the very sample that is computed."""
    return [_own_time(arg) for arg in node.args] == [True]


def _own_time(node: Expr) -> bool:
    if node.op == "add":
        return {(arg.op, arg.attr) for arg in node.args} == {("coord", "abstime"), ("coord", "since")}
    return (node.op, node.attr) == ("coord", "abstime")
