"""Writes the body of a function: values that are computed once, and statements, in their order.

Values refer to one another, and know nothing of locals. At the end, `body` decides which of them become a local: those
that are used more than once, or in another block, or after a statement that may change what they read. All others are
computed where they are used, and those that nothing uses are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

from weft.codegen.wasm.assembler import OPCODES, Immediate, WasmFunction, WasmInstruction, WasmType

_DEEPEST = 12
"""How deeply operands are nested at most: code is written and read by functions that call themselves."""

_OFTEN = 3
"""A constant of nine bytes that is used so often becomes a local, one of eighteen if it is used once less."""


@dataclass(slots=True, eq=False)
class WasmValue:
    """A number that a function computes once."""

    type: WasmType
    op: str
    args: tuple[WasmValue, ...] = ()
    immediate: Immediate = None
    name: str = ""
    """What it is, for people."""
    place: _CodePlace | None = None
    uses: int = 0
    used_at: _CodePlace | None = None
    """The place of the only use, if there is one."""
    code: WasmInstruction | None = None
    depth: int = 0
    is_pure: bool = True
    """Whether it may be computed later: neither memory nor variables are read."""
    local: str = ""
    """The local that holds it, if one does."""
    reads: tuple[WasmValue, ...] = ()
    """The values in locals that its code reads, if it is computed where it is used."""
    left: int = 0
    """How many uses of its local are still to be written."""


@dataclass(frozen=True, slots=True)
class _CodePlace:
    """Where an item stands: in which block, and after how many statements of it."""

    block: int
    statements: int


@dataclass(frozen=True, slots=True)
class Variable:
    """A local that changes."""

    name: str
    type: WasmType


@dataclass(slots=True, eq=False)
class _WasmStatement:
    op: str
    args: tuple[WasmValue, ...] = ()
    immediate: Immediate = None
    body: list[_Item] = field(default_factory=list)
    variables: tuple[Variable, ...] = ()
    """Those that get the values of the operands at once."""
    place: _CodePlace | None = None


_Item: TypeAlias = "WasmValue | _WasmStatement"

_Computation: TypeAlias = "tuple[str, tuple[WasmValue, ...], str, WasmType]"

_READS = frozenset({"local.get", "call"})


def _reads(op: str) -> bool:
    return op in _READS or ".load" in op


class FunctionBuilder:
    """Builds one function, front to back."""

    def __init__(self, name: str, params: Sequence[tuple[str, WasmType]] = (), exported: bool = False) -> None:
        self.name = name
        self.exported = exported
        self._params = tuple(params)
        self._names = {name for name, _ in params}
        self._locals: list[tuple[str, WasmType]] = []
        self._entry: list[_Item] = []
        self._items: list[_Item] = []
        self._root = self._items
        self._constants: dict[tuple[str, object], WasmValue] = {}
        self._known: dict[_Computation, WasmValue] = {}
        """What was computed in the block that is being written, except of memory and variables."""
        self._known_at_entry: dict[_Computation, WasmValue] = {}
        self._free: dict[WasmType, list[str]] = {}
        self._is_long = False
        self.called: set[str] = set()
        """The functions that it calls."""

    # Values.

    def put(self, op: str, *args: WasmValue, immediate: Immediate = None, kind: WasmType | None = None) -> WasmValue:
        """A value; `kind` is its type if the instruction does not say it."""
        made = WasmValue(kind or OPCODES[op].gives or args[0].type, op, args, immediate)
        if _reads(op):
            self._items.append(made)
            return made
        # What was computed in this block before is the same.
        known = self._known.setdefault((op, args, repr(immediate), made.type), made)
        if known is made:
            self._items.append(made)
        return known

    def param(self, name: str) -> WasmValue:
        """A parameter."""
        return self._constant("param", name, dict(self._params)[name])

    def i32(self, value: int) -> WasmValue:
        return self._constant("i32.const", value, "i32")

    def i64(self, value: int) -> WasmValue:
        return self._constant("i64.const", value, "i64")

    def f64(self, value: float) -> WasmValue:
        return self._constant("f64.const", value, "f64")

    def pair(self, low: float, high: float) -> WasmValue:
        return self._constant("v128.const", (low, high), "v128")

    def _constant(self, op: str, immediate: Immediate, kind: WasmType) -> WasmValue:
        key = op, repr(immediate)
        if key not in self._constants:
            made = self._constants[key] = WasmValue(kind, op, (), immediate)
            self._entry.append(made)
        return self._constants[key]

    def call(self, function: str, kind: WasmType, *args: WasmValue) -> WasmValue:
        """The result of a function."""
        self.called.add(function)
        return self.put("call", *args, immediate=function, kind=kind)

    def load(self, kind: WasmType, address: WasmValue, offset: int = 0) -> WasmValue:
        return self.put(f"{kind}.load", address, immediate=offset)

    @contextmanager
    def at_entry(self) -> Iterator[None]:
        """What is written in this context is computed before all else."""
        outside = self._items, self._known
        self._items, self._known = self._entry, self._known_at_entry
        try:
            yield
        finally:
            self._items, self._known = outside

    # Variables.

    def variable(self, kind: WasmType, start: WasmValue | None = None, name: str = "at") -> Variable:
        """A new variable, with its first value; 0 without one."""
        made = Variable(self._named(name), kind)
        self._locals.append((made.name, kind))
        if start is not None:
            self.set((made,), (start,))
        return made

    def get(self, variable: Variable) -> WasmValue:
        """What a variable is here."""
        return self.put("local.get", immediate=variable.name, kind=variable.type)

    def set(self, variables: Sequence[Variable], values: Sequence[WasmValue]) -> None:
        """Gives variables new values at once: each value may be made of old ones."""
        if variables:
            self._items.append(_WasmStatement("local.set", tuple(values), variables=tuple(variables)))

    # Statements.

    def do(self, op: str, *args: WasmValue, immediate: Immediate = None) -> None:
        self._items.append(_WasmStatement(op, args, immediate))

    def run(self, function: str, *args: WasmValue) -> None:
        """Calls a function that gives nothing."""
        self.called.add(function)
        self.do("call", *args, immediate=function)

    def store(self, value: WasmValue, address: WasmValue, offset: int = 0) -> None:
        self.do(f"{value.type}.store", address, value, immediate=offset)

    @contextmanager
    def within(self, op: str, label: str = "", *args: WasmValue) -> Iterator[str]:
        """A block, a loop or an `if`, around what is written in this context. Gives its label."""
        made = _WasmStatement(op, args, self._named(label) if label else None)
        self._items.append(made)
        outside = self._items, self._known
        self._items, self._known = made.body, {}
        try:
            yield str(made.immediate)
        finally:
            self._items, self._known = outside

    def _named(self, name: str) -> str:
        """A name for a local or a label that no other one has."""
        base = re.sub(r"[^A-Za-z0-9_.]", "_", name)
        found, number = base, 1
        while found in self._names:
            number += 1
            found = f"{base}.{number}" if len(self._names) < _MANY_NAMES else f"{base}.{len(self._names)}"
        self._names.add(found)
        return found

    # The end.

    def function(self, results: Sequence[WasmValue] = (), doc: str = "") -> WasmFunction:
        """The function, which gives these results."""
        items = [*self._entry, *self._root]
        if results:
            items.append(_WasmStatement("results", tuple(results)))
        blocks = _BlockNumbers()
        blocks.number(items)
        _count(items)
        self._is_long = blocks.items > _LONG
        body = tuple(self._written(items))
        gives = tuple(each.type for each in results)
        ordered = sorted(self._locals, key=lambda each: each[1])
        return WasmFunction(self.name, self._params, gives, tuple(ordered), body, self.exported, doc)

    def _written(self, items: Sequence[_Item]) -> Iterator[WasmInstruction]:
        for item in items:
            if isinstance(item, WasmValue):
                if item.uses:
                    yield from self._value(item)
                continue
            args = tuple(map(_code_of, item.args))
            self._release(_reads_of(item.args), item.place)
            if item.op == "results":
                yield from args
            elif item.op == "local.set":
                yield from self._settings(item, args)
            else:
                yield WasmInstruction(item.op, args, item.immediate, tuple(self._written(item.body)))

    def _settings(self, item: _WasmStatement, args: Sequence[WasmInstruction]) -> Iterator[WasmInstruction]:
        names = [variable.name for variable in item.variables]
        if len(names) == 1:
            yield WasmInstruction("local.set", tuple(args), names[0])
            return
        yield from args
        yield from (WasmInstruction("local.set", (), name) for name in reversed(names))

    def _value(self, value: WasmValue) -> Iterator[WasmInstruction]:
        """What is written where a value is computed: nothing, if it is computed where it is used."""
        op = "local.get" if value.op == "param" else value.op
        code = WasmInstruction(op, tuple([_code_of(arg) for arg in value.args]), value.immediate)
        if _is_given(value):
            value.code = code
            return
        value.is_pure = not _reads(value.op)
        for arg in value.args:
            value.depth = max(value.depth, arg.depth)
            value.is_pure = value.is_pure and arg.is_pure
        value.depth += 1
        if self._is_inline(value):
            value.code, value.reads = code, _reads_of(value.args)
            return
        self._release(_reads_of(value.args), value.place)
        value.local, value.left = self._local_for(value), value.uses
        yield WasmInstruction("local.set", (code,), value.local)
        value.code, value.depth, value.is_pure = WasmInstruction("local.get", (), value.local), 0, True

    def _local_for(self, value: WasmValue) -> str:
        """The local of a value: in a long function one that held another value."""
        free = self._free.get(value.type)
        if free:
            return free.pop()
        name = self._named(value.name or "v")
        self._locals.append((name, value.type))
        return name

    def _release(self, read: Sequence[WasmValue], place: _CodePlace | None) -> None:
        """Frees the locals of values that were read for the last time. Those from outside of a block stay: what is
        inside may run again."""
        for value in read:
            value.left -= 1
            is_last = not value.left and value.place is not None and place is not None
            if self._is_long and is_last and value.place.block == place.block:  # type: ignore[union-attr]
                self._free.setdefault(value.type, []).append(value.local)

    def _is_inline(self, value: WasmValue) -> bool:
        own, used = value.place, value.used_at
        if value.uses != 1 or own is None or used is None or own.block != used.block or value.depth > _DEEPEST:
            return False
        return value.is_pure or own == used


_MANY_NAMES = 64

_LONG = 1000
"""A function with more values than this shares locals among them: engines allow 50,000 locals. Shorter ones have a
local for each value, with its name."""


def _is_given(value: WasmValue) -> bool:
    """Whether a value is as cheap as a local: a parameter, or a constant that is short or not used often."""
    if value.op in ("param", "i32.const", "i64.const"):
        return True
    return value.op.endswith(".const") and value.uses < _OFTEN - (value.type == "v128")


def _code_of(value: WasmValue) -> WasmInstruction:
    if value.code is None:
        raise LookupError(f"{value.op} is used before it is computed")
    return value.code


def _reads_of(args: Sequence[WasmValue]) -> tuple[WasmValue, ...]:
    """The values in locals that the code of these values reads."""
    found: tuple[WasmValue, ...] = ()
    for arg in args:
        found += (arg,) if arg.local else arg.reads
    return found


class _BlockNumbers:
    """Gives each item its place."""

    def __init__(self) -> None:
        self._count = self.items = 0

    def number(self, items: Sequence[_Item]) -> None:
        self._count += 1
        self.items += len(items)
        block, statements = self._count, 0
        for item in items:
            item.place = _CodePlace(block, statements)
            if isinstance(item, _WasmStatement):
                statements += 1
                if item.body:
                    self.number(item.body)


def _count(items: Sequence[_Item]) -> None:
    """Counts the uses of values that are needed, from the last item to the first."""
    for item in reversed(items):
        if isinstance(item, _WasmStatement):
            _count(item.body)
        elif not item.uses:
            continue
        for arg in item.args:
            arg.uses += 1
            arg.used_at = item.place
