"""Computes graphs of values with numpy, each value for many elements at once, in double precision."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from weft.backends.interpreter import Machine, RunningLoop
from weft.backends.launch import Launch
from weft.backends.sampling import Located, gather, locate
from weft.codegen.base import NEST_STEPS
from weft.codegen.values import Line, LoopBody, Node, Scalar
from weft.ir.expr import PicturePlane
from weft.ops import OPS
from weft.ops.spec import OpSpec, ValueType

TYPES: Mapping[ValueType, type[np.generic]] = {"real": np.float64, "truth": np.bool_, "bits": np.uint32}
"""What numpy calls the types of values."""

Array: TypeAlias = npt.NDArray[Any]


class OneByOneError(Exception):
    """Something of a kernel has to be computed one element at a time."""


NOTHING: Mapping[Node, Any] = MappingProxyType({})
"""No values."""


class Values(dict[Node, Any]):
    """What is computed so far: a number, or one for each element. Constants, and what the launch gives, are there when
    they are asked for."""

    def __init__(self, machine: Machine, lines: Mapping[str, Array], known: Mapping[Node, Any] = NOTHING) -> None:
        """`machine` has run what comes once in a launch; `lines` are the coordinates that change, by their names."""
        super().__init__(known)
        self.machine = machine
        self._lines = lines

    def __missing__(self, node: Node) -> Any:
        value = self[node] = self._given(node)
        return value

    def _given(self, node: Node) -> Any:
        match node.op, node.attr:
            case ("const" | "bits"), number:
                return _as(number, node.kind)
            case "scalar", Scalar("uniform", str(name)):
                return np.float64(self.machine.launch.uniforms[name])
            case "scalar", Scalar("coord", str(name)):
                return np.float64(self.machine.coords[name])
            case "scalar", Scalar("local", int(number)):
                return _as(self.machine.locals[number], node.kind)
            case "line", Line("coord", str(name)):
                return self._lines[name]
            case "loop_out", int(k):
                return self[node.args[0]][k]
        raise KeyError(f"{node.op} is used before it is computed")


def _as(number: float, kind: ValueType) -> Any:
    """A number as numpy has it. Bits are whole."""
    return TYPES[kind](int(number) if kind == "bits" else number)


Call: TypeAlias = Callable[[Values], Any]
"""What computes a node from the values before it."""


class Calls:
    """Some nodes, whose operands stand before their users, ready to be computed again and again."""

    def __init__(
        self,
        nodes: Iterable[Node],
        masked: Set[LoopBody] = frozenset(),
        reads: Callable[[Node], Call] | None = None,
    ) -> None:
        """`reads` gives what reads state, if anything can. Raises OneByOneError if nothing can, and for the `masked`
        loops, which elements leave at different steps."""
        self._calls = [(node, _call(node, masked, reads)) for node in nodes]

    def run(self, values: Values) -> None:
        """Adds their values to these. Whoever calls has numpy ignore what is not a number."""
        for node, call in self._calls:
            values[node] = call(values)


def _call(node: Node, masked: Set[LoopBody], reads: Callable[[Node], Call] | None) -> Call:
    args, attr = node.args, node.attr
    match node.op:
        case "state" if reads is not None:
            return reads(node)
        case "picture":
            return lambda values: _sampled(values.machine.launch, attr, *(values[arg] for arg in args))
        case "strand":
            return lambda values: np.asarray(
                values.machine.launch.strands[attr](*(values[arg] for arg in args)), np.float64
            )
        case "loop" if attr not in masked:
            return _loop(attr, args, masked, reads)
        case "loop_out":
            return lambda values: values[args[0]][attr]
    row = OPS.get(node.op)
    if row is None:
        raise OneByOneError(node.op)
    return _call_of_row(_function(row), args)


def _call_of_row(function: Callable[..., Any], args: Sequence[Node]) -> Call:
    match args:
        case [x]:
            return lambda values: function(values[x])
        case [a, b]:
            return lambda values: function(values[a], values[b])
    return lambda values: function(*[values[arg] for arg in args])


def _function(row: OpSpec) -> Callable[..., Any]:
    """A row of the table of operators and builtins as a function of numbers and arrays."""
    form = row.vector
    if form is None:
        raise TypeError(f"{row.name} has no vector form")
    if isinstance(form, str):
        ufunc: Callable[..., Any] = getattr(np, form)
        return ufunc
    fill, kind, temps = form, TYPES[row.gives], row.temps

    def function(*args: Any) -> Array:
        shape = np.broadcast(*args).shape
        out = np.empty(shape, kind)
        fill(np, out, *args, *(np.empty(shape) for _ in range(temps)))
        return out

    return function


def _loop(
    body: LoopBody, args: Sequence[Node], masked: Set[LoopBody], reads: Callable[[Node], Call] | None
) -> Call:
    """A loop that makes the same steps for all elements: gives what it carried in the end."""
    first, last, *starts = args
    calls = Calls(body.nodes, masked, reads)

    def run(values: Values) -> list[Any]:
        machine = values.machine
        if body.outermost:
            machine.steps_left = NEST_STEPS
        loop = RunningLoop(_number(values[first]), _number(values[last]), [values[start] for start in starts])
        while machine.make_step(loop):
            if body.index is not None:
                values[body.index] = np.float64(loop.index)
            values.update(zip(body.carried, loop.values, strict=True))
            calls.run(values)
            loop.values = [values[node] for node in body.following]
            loop.count += 1
        return loop.values

    return run


def _number(value: Any) -> float:
    """What is the same at all elements, as Python has it."""
    return float(np.asarray(value).reshape(-1)[0])


def _sampled(launch: Launch, place: PicturePlane, x: Any, y: Any) -> Array:
    """A channel of a picture at many places."""
    picture = launch.pictures[place.picture]
    height, width, channels = picture.shape
    shape = np.broadcast(x, y).shape
    columns, rows = _room(shape), _room(shape)
    locate(x, width, channels, place.plane, columns)
    locate(y, height, width * channels, 0, rows)
    out = np.empty(shape)
    flat = np.ascontiguousarray(picture).reshape(-1)
    gather(flat, columns, rows, out, (np.empty(shape, np.intp), np.empty(shape), np.empty(shape)))
    return out


def _room(shape: tuple[int, ...]) -> Located:
    return np.empty(shape, np.intp), np.empty(shape, np.intp), np.empty(shape), np.empty(shape)
