"""Loops: unrolled where both ends are constants and the whole is short or has state, real loops elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from weft.errors import Span, error
from weft.graph.evaluation import Evaluation
from weft.graph.fields import Coordinates
from weft.graph.ordinals import STEP_SIZE
from weft.graph.resolve import assigned_value
from weft.graph.scope import Closure, Fixed, Scope
from weft.ops import ieee
from weft.syntax.ast import Assignment, Bundle, CallBinding, For, Name
from weft.trampoline import Task

V = TypeVar("V")

# More steps than this are an error where the count is known, and where a varying loop stops.
MAX_STEPS = 4096

# Up to here, unrolled code is not larger than a performer's own repetition would be, and it folds and hoists. The limit
# of the size is for loops within each other, and for long bodies: what they come to when all is written out.
UNROLLED_STEPS = 16
UNROLLED_SIZE = 4096

# What a step of a loop takes besides its statements, of the budget.
_STEPS_OF_A_STEP = 12


def run_loop(e: Evaluation[V], loop: For, scope: Scope, at: Coordinates[V]) -> Task[dict[str, V]]:
    """What a loop leaves in each name that it assigns."""
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
        raise error("state-in-varying-loop", "a loop whose ends vary cannot contain state", _ends(loop),
                    "give the loop constant ends, so that each step has a memory of its own")  # fmt: skip
    with e.budget.within(loop.span, "loop"):
        results = yield _real(e, loop, scope, at, (first, last), dict(zip(names, inits, strict=True)))
    return results


def _pays(e: Evaluation[V], loop: For, scope: Scope, steps: int) -> bool:
    """Whether a loop of so many steps is worth being written out."""
    size = scope.copies * steps * (STEP_SIZE + e.resolver.ordinals.size(loop.body))
    return steps <= UNROLLED_STEPS and (size <= UNROLLED_SIZE or steps <= 1)


def _constant_steps(e: Evaluation[V], loop: For, first: V, last: V) -> int | None:
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
    e: Evaluation[V], loop: For, scope: Scope, at: Coordinates[V], start: float, steps: int, carried: dict[str, V]
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
    e: Evaluation[V], loop: For, scope: Scope, at: Coordinates[V], ends: tuple[V, V], carried: dict[str, V]
) -> Task[dict[str, V]]:
    domain = e.domain
    values = [*ends, *carried.values(), *at.values()]
    level = 1 + max(scope.level, *(domain.loop_level(v) for v in values))
    # Ends of which nothing is known may turn out constant where the spindle is called.
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
                domain.call(result, name, local=True)
            return results


def _step_scope(scope: Scope, loop: For, index: V, carried: Mapping[str, V]) -> Scope:
    fixed = {name: Fixed(value) for name, value in (*carried.items(), (loop.variable.name, index))}
    return replace(scope, locals={**scope.locals, **fixed}, later=scope.later - fixed.keys())


def _fixed_values(scope: Scope, names: Mapping[str, V]) -> dict[str, V]:
    values: dict[str, V] = {}
    for name in names:
        local = scope.locals[name]
        if not isinstance(local, Fixed):
            raise TypeError(f"{name} is carried by a loop but is no number")
        values[name] = local.value
    return values


def _body(e: Evaluation[V], loop: For, scope: Scope, at: Coordinates[V]) -> Task[Scope]:
    """Runs one step's statements: inside a loop, what is assigned is a number at once."""
    for statement in loop.body:
        e.resolver.spend_on_binding(scope)
        match statement:
            case Assignment(name, "=", value, _) if isinstance(value, Bundle):
                scope = scope.bind(name.name, Closure(value, scope))
            case Assignment(name):
                result: V = yield e.value(assigned_value(statement), scope, at)
                e.domain.call(result, name.name, local=True)
                scope = scope.bind(name.name, Fixed(result))
            case CallBinding(name=name):
                scope = scope.bind(name.name, e.resolver.bound_call(statement, scope))
            case For():
                results: dict[str, V] = yield run_loop(e, statement, scope, at)
                for key, result in results.items():
                    scope = scope.bind(key, Fixed(result))
    return scope
