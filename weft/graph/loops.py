"""Loops: what is carried from step to step, and which loops are unrolled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias, TypeVar

from weft.errors import Span, WeftError, error
from weft.graph.bodies import STEP_SIZE
from weft.graph.domain import Coordinates
from weft.graph.evaluation import Evaluator
from weft.graph.lookup import assigned_value
from weft.graph.recursion import Task
from weft.graph.scope import OPEN, Fixed, Scope, StrandGroup, as_local
from weft.ops import ieee
from weft.syntax.ast import Assignment, CallBinding, For, Name

V = TypeVar("V")

# The steps of the budget for a step of a loop, in addition to its evaluation.
_STEPS_OF_A_STEP = 12

# A loop with more steps than this is an error if their number is known. If it varies, the loop stops there.
MAX_STEPS = 4096

# Up to these limits a loop is unrolled. Its code can then be folded and hoisted, and is no larger than code without a
# loop. The size counts all unrolled operations, so that nested loops and long bodies are limited too.
UNROLLED_STEPS = 16
UNROLLED_SIZE = 4096


# The values of each name that a loop assigns: one, or those of a bundle's members.
Carried: TypeAlias = dict[str, list[V]]


def run_loop(e: Evaluator[V], loop: For, scope: Scope, at: Coordinates[V]) -> Task[Carried[V]]:
    """The values of each name that a loop assigns, after the loop."""
    first: V = yield e.value(loop.first, scope, at)
    last: V = yield e.value(loop.last, scope, at)
    carried: Carried[V] = {}
    for name, shape in e.resolver.loop_shapes(loop, scope).items():
        local = scope.get(name)
        members = local.members if isinstance(local, StrandGroup) else (local,) * len(shape or "1")
        group = e.resolver.group(Name(name, loop.variable.span), scope) if local is not None else None
        members = group.members if group is not None and len(group) > 1 else members
        carried[name] = []
        for member in members:
            known = e.domain.const(0.0)
            if group is OPEN:
                known = e.domain.unknown()
            elif member is not None:
                known = yield e.member(member, at, loop.variable.span)
            carried[name].append(known)
    steps = _constant_steps(e, loop, first, last)
    body_size, has_state, _ = e.resolver.ordinals.facts(loop.body)
    size = scope.copies * (steps or 0) * (STEP_SIZE + body_size)
    pays = steps is not None and steps <= UNROLLED_STEPS and (size <= UNROLLED_SIZE or steps <= 1)
    with e.budget.within(loop.span, "loop"):
        if steps is not None and (has_state or pays):
            start = e.domain.nominal(first) or 0.0
            for k in range(steps):
                e.budget.spend(_STEPS_OF_A_STEP)
                step = replace(scope, path=f"{scope.path}[{k}]", copies=scope.copies * steps)
                carried = yield _step(e, loop, scope, step, at, e.domain.const(start + k), carried)
            return carried
        if has_state and not e.domain.is_unknown(first) and not e.domain.is_unknown(last):
            raise state_in_varying_loop(loop.ends)
        results: Carried[V] = yield _iterated(e, loop, scope, at, (first, last), carried)
        return results


def _constant_steps(e: Evaluator[V], loop: For, first: V, last: V) -> int | None:
    start, end = e.domain.nominal(first), e.domain.nominal(last)
    if start is None or end is None:
        return None
    steps = ieee.steps(start, end)
    if steps > MAX_STEPS:
        raise error("loop-too-long", f"this loop has {steps:,.0f} steps, and {MAX_STEPS:,} is the most",
                    loop.ends,
                    "strands are evaluated at every pixel: let the pixels be the loop")  # fmt: skip
    return int(steps)


def _iterated(
    e: Evaluator[V], loop: For, scope: Scope, at: Coordinates[V], ends: tuple[V, V], carried: Carried[V]
) -> Task[Carried[V]]:
    domain = e.domain
    flat = [value for values in carried.values() for value in values]
    values = [*ends, *flat, *at.values()]
    level = 1 + max(scope.level, *(domain.loop_level(v) for v in values))
    # Unknown ends may turn out to be constant where the spindle is called.
    varying = not any(domain.is_unknown(end) for end in ends)
    draft = domain.loop(level, *ends, flat, loop.ends)
    inside = replace(scope, level=level, varying=varying)

    def by_name(values: Sequence[V]) -> Carried[V]:
        remaining = iter(values)
        return {name: [next(remaining) for _ in members] for name, members in carried.items()}

    while True:
        e.budget.spend(_STEPS_OF_A_STEP)
        after: Carried[V] = yield _step(e, loop, scope, inside, at, draft.index, by_name(draft.carried))
        if draft.close([value for values in after.values() for value in values]):
            e.note_loop(draft.results, loop)
            results = by_name(draft.results)
            for name, members in results.items():
                for result in members:
                    domain.annotate(result, name, local=True)
            return results


def _step(
    e: Evaluator[V], loop: For, before: Scope, outside: Scope, at: Coordinates[V], index: V, carried: Carried[V]
) -> Task[Carried[V]]:
    """Runs the statements of one step, and gives the values that it carries to the next. Inside a loop, an assignment
    evaluates its value at once. `before` is the scope of the whole loop."""
    shapes = e.resolver.loop_shapes(loop, before)
    locals = {name: as_local(list(map(Fixed, values)), shapes[name]) for name, values in carried.items()}
    scope = outside.inner({**locals, loop.variable.name: Fixed(index)})
    fixed: list[Fixed]
    for statement in loop.body:
        e.resolver.spend_on_binding()
        match statement:
            case Assignment(name, member=target) if target is not None:
                bundle = e.resolver.with_member(statement, target, scope)
                if isinstance(bundle, StrandGroup):
                    fixed = []
                    for part in bundle.members:
                        fixed.append(Fixed((yield e.member(part, at, name.span))))
                    bundle = as_local(fixed, bundle)
                scope = scope.bind(name.name, bundle)
            case Assignment(name):
                value = assigned_value(statement)
                group = e.resolver.several(value, scope) if shapes[name.name] is not None else None
                fixed = []
                for member in group.members if group else (None,):
                    result: V = yield e.member(member, at, value.span) if member else e.value(value, scope, at)
                    e.domain.annotate(result, name.name, local=True)
                    fixed.append(Fixed(result))
                scope = scope.bind(name.name, as_local(fixed, group or e.resolver.open_shape(value, scope)))
            case CallBinding(name=name):
                scope = scope.bind(name.name, e.resolver.bound_call(statement, scope))
            case For():
                inner = e.resolver.loop_shapes(statement, scope)
                results: Carried[V] = yield run_loop(e, statement, scope, at)
                for key, after in results.items():
                    scope = scope.bind(key, as_local(list(map(Fixed, after)), inner[key]))
    last: Carried[V] = {}
    for key, values in carried.items():
        local = scope.get(key)
        members = local.members if isinstance(local, StrandGroup) else (local,) * len(values)
        last[key] = [member.value if isinstance(member, Fixed) else e.domain.unknown() for member in members]
    return last


def state_in_varying_loop(span: Span) -> WeftError:
    return error("state-in-varying-loop", "a loop whose ends vary cannot contain state", span,
                 "give the loop constant ends, so that each step has a memory of its own")  # fmt: skip
