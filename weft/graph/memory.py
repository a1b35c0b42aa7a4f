"""The evaluation of state and loops.

A slot advances at the coordinates of its own context. A remap does not reach into it: the coordinates at which it is
read say where it is sampled. The value that it keeps is evaluated after everything else in the tick, so in a spindle it
may mention names that are assigned further down (`Scope.for_memory`).

Loops are unrolled if both ends are constants and the whole is short or has state; other loops stay loops.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol, TypeVar

from weft.errors import Span, WeftError, error
from weft.graph.budget import Budget
from weft.graph.domain import Coordinates, Domain, Environment, SlotRequest
from weft.graph.resolve import STEP_SIZE, Resolver, assigned_value, unnamed_cache
from weft.graph.scope import CacheMember, Closure, Fixed, Member, Scope, match_arguments
from weft.ops import BUILTINS, ieee
from weft.ops.state import STATE
from weft.syntax.ast import Assignment, Bundle, Call, CallBinding, Expression, For, Name, Number
from weft.trampoline import Task

V = TypeVar("V")


class Elaborating(Protocol[V]):
    """What the parts of elaboration outside of `Elaborator` need of it."""

    @property
    def domain(self) -> Domain[V]: ...

    @property
    def env(self) -> Environment[V]: ...

    @property
    def budget(self) -> Budget: ...

    @property
    def resolver(self) -> Resolver: ...

    def value(self, node: Expression, scope: Scope, at: Coordinates[V]) -> Task[V]: ...

    def member(self, member: Member, at: Coordinates[V], span: Span) -> Task[V]: ...

    def remember(self, slot: SlotRequest, updates: Sequence[Callable[[], Task[V]]]) -> None: ...


# --- stateful builtins, in terms of slots: what each keeps of a tick, and what it reads of earlier ticks ---

# What a read between ticks takes of the budget.
_STEPS_OF_READING = 30

# Ten minutes of audio at 96 kHz: more is probably a wrong unit.
MAX_TICKS = 60_000_000


def remember(e: Elaborating[V], call: Call, scope: Scope, at: Coordinates[V]) -> Task[V]:
    """The value of a stateful call at coordinates."""
    name = call.name
    spec = STATE[name]
    args = match_arguments(name, spec.params, call.args, call.span)
    given = [a for a in args if a is not None]
    if scope.varying:
        raise _state_in_varying_loop(call.span)
    key = f"{scope.path}/{name}/{e.resolver.ordinals.of(call)}"
    match name:
        case "prev":
            result: V = yield _prev(e, key, call, given, scope, at)
        case "integrate" | "phasor":
            result = yield _integral(e, name, key, call, given, scope, at)
        case "hold":
            result = yield _hold(e, key, call, given, scope, at)
        case "delay":
            result = yield _delay(e, key, call, given, scope, at)
        case _:
            raise unnamed_cache(call)
    return result


def _state_in_varying_loop(span: Span) -> WeftError:
    return error("state-in-varying-loop", "a loop whose ends vary cannot contain state", span,
                 "give the loop constant ends, so that each step has a memory of its own")  # fmt: skip


def _one(e: Elaborating[V]) -> V:
    return e.domain.const(1.0)


def _prev(
    e: Elaborating[V], key: str, call: Call, args: Sequence[Expression], scope: Scope, at: Coordinates[V]
) -> Task[V]:
    slot = SlotRequest(key, "prev", 1, 1, call.span)
    e.remember(slot, [lambda: e.value(args[0], scope.for_memory(), e.env.own)])
    return e.domain.state(slot, 0, _one(e), at, call.span)
    yield


def _integral(
    e: Elaborating[V], name: str, key: str, call: Call, args: Sequence[Expression], scope: Scope, at: Coordinates[V]
) -> Task[V]:
    slot = SlotRequest(key, name, 1, 1, call.span)

    def step() -> Task[V]:
        speed: V = yield e.value(args[0], scope.for_memory(), e.env.own)
        before = e.domain.state(slot, 0, _one(e), e.env.own, call.span)
        after = e.domain.op("add", before, e.domain.op("mul", speed, e.domain.uniform("dt")))
        # A wrapped phase keeps its precision however long it runs; a sum must not wrap.
        return e.domain.op("fract", after) if name == "phasor" else after

    e.remember(slot, [step])
    return e.domain.state(slot, 0, _one(e), at, call.span)
    yield


def _hold(
    e: Elaborating[V], key: str, call: Call, args: Sequence[Expression], scope: Scope, at: Coordinates[V]
) -> Task[V]:
    slot = SlotRequest(key, "hold", 1, 3, call.span)

    def chosen(where: Coordinates[V]) -> Task[V]:
        now: V = yield e.value(args[0], scope, where)
        trigger: V = yield e.value(args[1], scope, where)
        held, before, started = (e.domain.state(slot, p, _one(e), where, call.span) for p in range(3))
        changed = e.domain.op("differs", trigger, before)
        first = e.domain.op("eq", started, e.domain.const(0.0))
        return e.domain.op("select", e.domain.op("or", first, changed), now, held, span=call.span)

    def always() -> Task[V]:
        return _one(e)
        yield

    e.remember(slot, [lambda: chosen(e.env.own), lambda: e.value(args[1], scope, e.env.own), always])
    result: V = yield chosen(at)
    return result


def _delay(
    e: Elaborating[V], key: str, call: Call, args: Sequence[Expression], scope: Scope, at: Coordinates[V]
) -> Task[V]:
    signal, ticks, most = args
    longest = yield _constant_ticks(e, most, scope, "max", least=0)
    slot = SlotRequest(key, "delay", max(math.ceil(longest), 1), 1, call.span)
    age: V = yield e.value(ticks, scope, at)
    constant = e.domain.constant(age)
    now: V | None = None
    # Unknown ticks may turn out to be 1 or more where the spindle is called.
    aged = e.domain.is_unknown(age) or _at_least_one(e, ticks, scope) if constant is None else constant >= 1
    aged = aged and longest >= 1
    e.remember(slot, [lambda: e.value(signal, scope.for_memory() if aged else scope, e.env.own)])
    if not aged:
        # Less than one tick ago is the signal itself, so this delay cannot be part of a cycle.
        now = yield e.value(signal, scope, at)
    return _interpolated(e, slot, 0, age, longest, now, at, call.span)


def _at_least_one(e: Elaborating[V], ticks: Expression, scope: Scope) -> bool:
    """Whether varying ticks are visibly never below 1: `max(1, …)` or `clamp(…, 1, …)`."""
    if not (isinstance(ticks, Call) and isinstance(ticks.callee, Name)) or e.resolver.is_remap(ticks, scope):
        return False
    name = ticks.callee.id
    if name not in ("max", "clamp") or e.resolver.callable_named(name, scope) != "builtin":
        return False
    spec = BUILTINS[name]
    args = match_arguments(name, spec.params, ticks.args, ticks.span, spec.variadic)
    bounds = args[1:2] if name == "clamp" else args
    return any(isinstance(bound, Number) and bound.value >= 1 for bound in bounds)


def cached(e: Elaborating[V], member: CacheMember, at: Coordinates[V]) -> Task[V]:
    """An output of a cache at coordinates, its own axis included."""
    call, scope = member.call, member.scope
    _, count = match_arguments("cache", STATE["cache"].params, call.args, call.span)
    if count is None:
        raise TypeError("cache without a count passed its signature")
    if scope.varying:
        raise _state_in_varying_loop(call.span)
    longest = yield _constant_ticks(e, count, scope, "n")
    depth = int(longest)
    owner = member.axis.rpartition("@")[0]
    key = f"{owner}/cache/{e.resolver.ordinals.of(call)}"
    slot = SlotRequest(key, "cache", max(depth - 1, 1), member.planes, call.span)
    shape = e.resolver.cache_group(call, scope, owner)
    members = [m.now for m in shape.members if isinstance(m, CacheMember)]
    e.remember(slot, [partial(e.member, m, e.env.own, call.span) for m in members])
    now: V = yield e.member(member.now, at, call.span)
    age = at.axis(member.axis) or e.domain.const(0.0)
    return _interpolated(e, slot, member.plane, age, float(depth - 1), now, at, call.span)


def _constant_ticks(e: Elaborating[V], node: Expression, scope: Scope, name: str, least: int = 1) -> Task[float]:
    value: V = yield e.value(node, scope, e.env.own)
    ticks = e.domain.constant(value)
    if e.domain.is_unknown(value):
        return 1.0
    if ticks is None:
        raise error("not-constant", f'"{name}" must be a constant: it decides how much is remembered', node.span)
    if not least <= ticks <= MAX_TICKS:
        raise error("ticks-out-of-range", f'"{name}" must be between {least} and {MAX_TICKS:,}', node.span)
    return ticks


def _interpolated(
    e: Elaborating[V], slot: SlotRequest, plane: int, age: V, most: float, now: V | None, at: Coordinates[V], span: Span
) -> V:
    """A plane as it was `age` ticks ago, interpolated linearly between ticks. `age` is clamped to 0…most, or to 1…most
    without a current value."""
    e.budget.spend(_STEPS_OF_READING)
    op, const = e.domain.op, e.domain.const
    age = op("min", op("max", age, const(0.0 if now is not None else 1.0)), const(most))
    whole = op("floor", age)
    constant = e.domain.constant(age)

    def tap(ticks: V) -> V:
        deep = op("min", op("max", ticks, const(1.0)), const(float(slot.depth)))
        old = e.domain.state(slot, plane, deep, at, span)
        return old if now is None else op("select", op("lt", ticks, const(1.0)), now, old, span=span)

    if constant is not None and constant == int(constant):
        return now if now is not None and constant == 0 else tap(whole)
    return op("mix", tap(whole), tap(op("add", whole, const(1.0))), op("sub", age, whole), span=span)


# --- loops ---

# More steps than this are an error if the number is known; a varying loop stops there.
MAX_STEPS = 4096

# Up to these limits a loop is unrolled: the code then folds and hoists, and is no larger than if it had been written
# out by hand. The size is that of all unrolled operations, for nested loops and long bodies.
UNROLLED_STEPS = 16
UNROLLED_SIZE = 4096

# What a step of a loop takes of the budget, besides its statements.
_STEPS_OF_A_STEP = 12


def run_loop(e: Elaborating[V], loop: For, scope: Scope, at: Coordinates[V]) -> Task[dict[str, V]]:
    """The value of each name that a loop assigns, after the loop."""
    names = e.resolver.ordinals.carried(loop.body)
    first: V = yield e.value(loop.first, scope, at)
    last: V = yield e.value(loop.last, scope, at)
    inits: list[V] = []
    for name in names:
        if name in scope.locals:
            inits.append((yield e.value(Name(name, loop.variable.span), scope, at)))
        else:
            inits.append(e.domain.const(0.0))
    steps = _constant_steps(e, loop, first, last)
    has_state = e.resolver.ordinals.has_state(loop.body)
    if steps is not None and (has_state or _pays(e, loop, scope, steps)):
        start = e.domain.constant(first) or 0.0
        with e.budget.within(loop.span, "loop"):
            results: dict[str, V] = yield _unrolled(
                e, loop, scope, at, start, steps, dict(zip(names, inits, strict=True))
            )
        return results
    if has_state and not e.domain.is_unknown(first) and not e.domain.is_unknown(last):
        raise _state_in_varying_loop(_ends(loop))
    with e.budget.within(loop.span, "loop"):
        results = yield _real(e, loop, scope, at, (first, last), dict(zip(names, inits, strict=True)))
    return results


def _pays(e: Elaborating[V], loop: For, scope: Scope, steps: int) -> bool:
    """Whether it pays to unroll a loop of `steps` steps."""
    size = scope.copies * steps * (STEP_SIZE + e.resolver.ordinals.size(loop.body))
    return steps <= UNROLLED_STEPS and (size <= UNROLLED_SIZE or steps <= 1)


def _constant_steps(e: Elaborating[V], loop: For, first: V, last: V) -> int | None:
    start, end = e.domain.constant(first), e.domain.constant(last)
    if start is None or end is None:
        return None
    steps = ieee.steps(start, end)
    if steps > MAX_STEPS:
        raise error("loop-too-long", f"this loop has {steps:,.0f} steps, and {MAX_STEPS:,} is the most", _ends(loop),
                    "strands are evaluated at every pixel: let the pixels be the loop")  # fmt: skip
    return int(steps)


def _ends(loop: For) -> Span:
    return loop.first.span.to(loop.last.span)


def _unrolled(
    e: Elaborating[V], loop: For, scope: Scope, at: Coordinates[V], start: float, steps: int, carried: dict[str, V]
) -> Task[dict[str, V]]:
    for k in range(steps):
        e.budget.spend(_STEPS_OF_A_STEP)
        index = e.domain.const(start + k)
        step = _step_scope(scope, loop, index, carried)
        inner = replace(step, path=f"{scope.path}[{k}]", copies=scope.copies * steps)
        after: Scope = yield _body(e, loop, inner, at)
        carried = _fixed_values(after, carried)
    return carried


def _real(
    e: Elaborating[V], loop: For, scope: Scope, at: Coordinates[V], ends: tuple[V, V], carried: dict[str, V]
) -> Task[dict[str, V]]:
    domain = e.domain
    values = [*ends, *carried.values(), *at.values()]
    level = 1 + max(scope.level, *(domain.loop_level(v) for v in values))
    # Unknown ends may turn out to be constant where the spindle is called.
    varying = not any(domain.is_unknown(end) for end in ends)
    building = domain.loop(level, *ends, list(carried.values()), _ends(loop))
    while True:
        e.budget.spend(_STEPS_OF_A_STEP)
        state = dict(zip(carried, building.carried, strict=True))
        inner = replace(_step_scope(scope, loop, building.index, state), level=level, varying=varying)
        after: Scope = yield _body(e, loop, inner, at)
        if building.close(list(_fixed_values(after, carried).values())):
            results = dict(zip(carried, building.results, strict=True))
            for name, result in results.items():
                domain.annotate(result, name, local=True)
            return results


def _step_scope(scope: Scope, loop: For, index: V, carried: Mapping[str, V]) -> Scope:
    fixed = {name: Fixed(value) for name, value in (*carried.items(), (loop.variable.name, index))}
    return replace(scope, locals={**scope.locals, **fixed}, later=scope.later - fixed.keys())


def _fixed_values(scope: Scope, names: Mapping[str, V]) -> dict[str, V]:
    values: dict[str, V] = {}
    for name in names:
        local = scope.locals[name]
        if not isinstance(local, Fixed):
            raise TypeError(f"{name} is carried by a loop but is not a number")
        values[name] = local.value
    return values


def _body(e: Elaborating[V], loop: For, scope: Scope, at: Coordinates[V]) -> Task[Scope]:
    """Runs the statements of one step. Inside a loop, an assignment evaluates its value at once."""
    for statement in loop.body:
        e.resolver.spend_on_binding(scope)
        match statement:
            case Assignment(name, "=", value, _) if isinstance(value, Bundle):
                scope = scope.bind(name.name, Closure(value, scope))
            case Assignment(name):
                result: V = yield e.value(assigned_value(statement), scope, at)
                e.domain.annotate(result, name.name, local=True)
                scope = scope.bind(name.name, Fixed(result))
            case CallBinding(name=name):
                scope = scope.bind(name.name, e.resolver.bound_call(statement, scope))
            case For():
                results: dict[str, V] = yield run_loop(e, statement, scope, at)
                for key, result in results.items():
                    scope = scope.bind(key, Fixed(result))
    return scope
