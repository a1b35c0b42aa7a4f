"""Memory: the stateful builtins in terms of slots. Each keeps something of a tick, and reads what it kept earlier."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from weft.errors import Span, error
from weft.graph.calls import match_arguments
from weft.graph.domain import Coordinates, SlotKey, SlotRequest
from weft.graph.evaluation import Evaluator
from weft.graph.lookup import unnamed_cache
from weft.graph.loops import state_in_varying_loop
from weft.graph.recursion import Eventual, Task
from weft.graph.scope import CacheMember, Scope
from weft.names import StrandRef
from weft.ops import BUILTINS, STATE
from weft.syntax.ast import Call, Expression, Number

V = TypeVar("V")

# The steps of the budget for reading between two ticks.
_STEPS_OF_READING = 30

# Ten minutes of audio at 96 kHz: more is probably a wrong unit.
MAX_TICKS = 60_000_000

# At this level, the largest picture is one pixel.
DEEPEST = 14


def stateful_value(e: Evaluator[V], call: Call, scope: Scope, at: Coordinates[V]) -> Eventual[V]:
    """The value of a stateful call at coordinates."""
    args = [a for a in match_arguments(call.name, STATE[call.name].params, call.args, call.span) if a is not None]
    if scope.varying:
        raise state_in_varying_loop(call.span)
    key = SlotKey(scope.path, call.name, e.resolver.ordinals.of(call))
    slot = SlotRequest(key, 1, 1, call.span)
    match call.name:
        case "prev":
            return _previous(e, slot, lambda: e.value(args[0], scope.for_memory(), e.env.own), at)
        case "phasor" if len(args) > 1:
            return _restarted(e, replace(slot, planes=2), args[0], args[1], scope, at)
        case "integrate" | "phasor":
            return _previous(e, slot, lambda: _integrated(e, slot, args[0], scope.for_memory()), at)
        case "rises":
            return _risen(e, slot, args[0], scope, at)
        case "hold":
            return _held(e, replace(slot, planes=3), args[0], args[1], scope, at)
        case "delay":
            return _delayed(e, key, call, args, scope, at)
        case "image":
            return _image(e, replace(slot, depth=0), args, scope, at)
        case _:
            raise unnamed_cache(call)


def _previous(e: Evaluator[V], slot: SlotRequest, update: Callable[[], Eventual[V]], at: Coordinates[V]) -> V:
    e.remember(slot, [update])
    return e.domain.state(slot, 0, e.domain.const(1.0), at, slot.span)


def _integrated(e: Evaluator[V], slot: SlotRequest, arg: Expression, scope: Scope) -> Task[V]:
    speed: V = yield e.value(arg, scope, e.env.own)
    before = e.domain.state(slot, 0, e.domain.const(1.0), e.env.own, slot.span)
    after = e.domain.op("add", before, e.domain.op("mul", speed, e.domain.uniform("dt")))
    # A wrapped phase keeps its precision however long it runs; a sum must not wrap.
    return e.domain.op("fract", after) if slot.key.kind == "phasor" else after


def _held(
    e: Evaluator[V], slot: SlotRequest, held: Expression, trigger: Expression, scope: Scope, at: Coordinates[V]
) -> Task[V]:
    """Keeps a value, the trigger, and whether there was a tick before."""

    def chosen(where: Coordinates[V]) -> Task[V]:
        now: V = yield e.value(held, scope, where)
        triggered: V = yield e.value(trigger, scope, where)
        kept, before, started = (e.domain.state(slot, p, e.domain.const(1.0), where, slot.span) for p in range(3))
        changed = e.domain.op("differs", triggered, before)
        first = e.domain.op("eq", started, e.domain.const(0.0))
        return e.domain.op("select", e.domain.op("or", first, changed), now, kept, span=slot.span)

    own = e.env.own
    e.remember(slot, [partial(chosen, own), partial(e.value, trigger, scope, own), partial(e.domain.const, 1.0)])
    return chosen(at)


def _risen(e: Evaluator[V], slot: SlotRequest, trigger: Expression, scope: Scope, at: Coordinates[V]) -> Task[V]:
    """How often a trigger has risen since the tick before."""
    e.remember(slot, [partial(_trigger, e, trigger, scope, e.env.own)])
    return _growth(e, slot, 0, trigger, scope, at)


def _trigger(e: Evaluator[V], trigger: Expression, scope: Scope, at: Coordinates[V]) -> Task[V]:
    """What is kept of a trigger: whether it is on. Of a count, what is kept is one more than the count, since 0 means
    that none was seen yet."""
    value: V = yield e.value(trigger, scope, at)
    if e.domain.is_count(value, trigger.span):
        return e.domain.op("add", value, e.domain.const(1.0))
    return e.domain.op("gt", value, e.domain.const(0.0))


def _growth(
    e: Evaluator[V], slot: SlotRequest, plane: int, trigger: Expression, scope: Scope, at: Coordinates[V]
) -> Task[V]:
    """How often a trigger has risen since a plane of a slot kept it."""
    op, const = e.domain.op, e.domain.const
    value: V = yield e.value(trigger, scope, at)
    now: V = yield _trigger(e, trigger, scope, at)
    before = e.domain.state(slot, plane, const(1.0), at, slot.span)
    if not e.domain.is_count(value, trigger.span):
        return op("and", now, op("eq", before, const(0.0)))
    grown = op("max", op("sub", now, before), const(0.0))
    return op("select", op("gt", before, const(0.0)), grown, const(0.0), span=slot.span)


def _restarted(
    e: Evaluator[V], slot: SlotRequest, freq: Expression, reset: Expression, scope: Scope, at: Coordinates[V]
) -> Task[V]:
    """A phase that begins again whenever a trigger rises. The slot keeps the phase and the trigger."""

    def phase(where: Coordinates[V]) -> Task[V]:
        risen: V = yield _growth(e, slot, 1, reset, scope, where)
        before = e.domain.state(slot, 0, e.domain.const(1.0), where, slot.span)
        return e.domain.op("select", risen, e.domain.const(0.0), before, span=slot.span)

    def later() -> Task[V]:
        now: V = yield phase(e.env.own)
        speed: V = yield e.value(freq, scope.for_memory(), e.env.own)
        passed = e.domain.op("mul", speed, e.domain.uniform("dt"))
        return e.domain.op("fract", e.domain.op("add", now, passed))

    e.remember(slot, [later, partial(_trigger, e, reset, scope, e.env.own)])
    return phase(at)


def _delayed(
    e: Evaluator[V], key: SlotKey, call: Call, args: Sequence[Expression], scope: Scope, at: Coordinates[V]
) -> Task[V]:
    signal, ticks, most = args
    longest = yield _constant_ticks(e, most, scope, "max", least=0)
    slot = SlotRequest(key, max(math.ceil(longest), 1), 1, call.span)
    age: V = yield e.value(ticks, scope, at)
    constant = e.domain.nominal(age)
    now: V | None = None
    # Unknown ticks may turn out to be 1 or more where the spindle is called.
    aged = e.domain.is_unknown(age) or _at_least_one(e, ticks, scope) if constant is None else constant >= 1
    aged = aged and longest >= 1
    e.remember(slot, [lambda: e.value(signal, scope.for_memory() if aged else scope, e.env.own)])
    if not aged:
        # A delay of less than one tick reads the signal itself, so it cannot be part of a cycle.
        now = yield e.value(signal, scope, at)
    return _interpolated(e, slot, 0, age, longest, now, at)


def _image(
    e: Evaluator[V], image: SlotRequest, args: Sequence[Expression], scope: Scope, at: Coordinates[V]
) -> Task[V]:
    kept, *level = args
    if level:
        decides = "how large the image is"
        number: float = yield _constant(
            e, level[0], scope, "level", (0, DEEPEST), decides, "level-out-of-range", is_whole=True
        )
        image = replace(image, level=int(number))
    own = partial(e.value, kept, scope, e.env.own)
    if not e.has_image(image.key) and e.domain.may_keep(image):
        # Evaluated at once, so that cycles are found and each owner that asks for it has its references.
        yield own()
        e.keep_image(image, own)
    found = e.domain.image(image, at)
    if found is None:
        found = yield e.value(kept, scope, at)
    return found


def _at_least_one(e: Evaluator[V], ticks: Expression, scope: Scope) -> bool:
    """Whether the text shows that varying ticks are never below 1: `max(1, …)` or `clamp(…, 1, …)`."""
    if not isinstance(ticks, Call) or ticks.name not in ("max", "clamp"):
        return False
    if e.resolver.called(ticks, scope) != "builtin":
        return False
    spec = BUILTINS[ticks.name]
    args = match_arguments(ticks.name, spec.params, ticks.args, ticks.span, spec.variadic)
    bounds = args[1:2] if ticks.name == "clamp" else args
    return any(isinstance(bound, Number) and bound.value >= 1 for bound in bounds)


def cached_value(e: Evaluator[V], member: CacheMember, at: Coordinates[V]) -> Task[V]:
    """An output of a cache at coordinates, its own axis included."""
    call, scope = member.call, member.scope
    _, count = (a for a in match_arguments("cache", STATE["cache"].params, call.args, call.span) if a is not None)
    if scope.varying:
        raise state_in_varying_loop(call.span)
    depth = int((yield _constant_ticks(e, count, scope, "n", is_whole=True)))
    owner = member.axis.instance
    key = SlotKey(owner, "cache", e.resolver.ordinals.of(call))
    slot = SlotRequest(key, max(depth - 1, 1), member.planes, call.span)
    group = e.resolver.cache_group(call, scope, owner)
    members = [m.now for m in group.members if isinstance(m, CacheMember)]
    e.remember(slot, [partial(e.member, m, e.env.own, call.span) for m in members])
    now: V = yield e.member(member.now, at, call.span)
    age = e.axis(member.axis, at) or e.domain.const(0.0)
    return _interpolated(e, slot, member.plane, age, float(depth - 1), now, at)


def played_cache(
    e: Evaluator[V], ref: StrandRef, call: Call, scope: Scope, at: Coordinates[V], kept: int, span: Span
) -> Task[V]:
    """An output of a cache that another context plays, of which it keeps `kept` ticks: what it was `k` ticks earlier
    is what was played then."""
    own = StrandRef(ref.instance, "k")
    here = e.placed(replace(at, axes=tuple([each for each in at.axes if each[0] != own])))
    age = at.axis(own)
    if age is None:
        return _read_across(e, ref, here, span)
    _, count = (a for a in match_arguments("cache", STATE["cache"].params, call.args, call.span) if a is not None)
    depth: float = yield _constant_ticks(e, count, scope, "n", is_whole=True)
    if depth > kept // 2:  # the newest ones are still to be heard
        raise error("cannot-read-across", f"{ref.short} is played, and others can read {kept // 2:,} ticks along {own}",
                    span, f"cache(…, {kept // 2}) remembers as many")  # fmt: skip

    def played(ticks: V) -> V:
        op, const = e.domain.op, e.domain.const
        ago = op("div", op("min", ticks, const(depth - 1)), e.env.setting("rate"))
        then = here.moved({"abstime": op("sub", at.abstime, ago)})
        return _read_across(e, ref, e.placed(then), span)

    return _between_ticks(e, age, (0.0, depth - 1), played, span)


def _read_across(e: Evaluator[V], ref: StrandRef, at: Coordinates[V], span: Span) -> V:
    found = e.domain.external(ref, at, span)
    if found is None:
        raise TypeError(f"{ref} is not read across")
    return found


def _constant_ticks(
    e: Evaluator[V], node: Expression, scope: Scope, name: str, least: int = 1, is_whole: bool = False
) -> Task[float]:
    """A constant number of ticks; 1 where it is not known yet."""
    return _constant(e, node, scope, name, (least, MAX_TICKS), "how much is remembered", "ticks-out-of-range", is_whole)


def _constant(
    e: Evaluator[V], node: Expression, scope: Scope, name: str, limits: tuple[int, int], decides: str, code: str,
    is_whole: bool,
) -> Task[float]:  # fmt: skip
    """A constant number within limits, which `decides` something; 1 if it is not known yet. Raises WeftError with the
    code if it is outside the limits."""
    value: V = yield e.value(node, scope, e.env.own)
    number = e.domain.nominal(value)
    if e.domain.is_unknown(value):
        return 1.0
    if number is None:
        raise error("not-constant", f'"{name}" must be a constant: it decides {decides}', node.span)
    least, most = limits
    if not least <= number <= most or (is_whole and number != int(number)):
        kind = "a whole number " if is_whole else ""
        raise error(code, f'"{name}" must be {kind}between {least} and {most:,}', node.span)
    return number


def _interpolated(
    e: Evaluator[V], slot: SlotRequest, plane: int, age: V, most: float, now: V | None, at: Coordinates[V]
) -> V:
    """A plane as it was `age` ticks ago, interpolated linearly between ticks. `age` is clamped to 0…most if there is a
    current value, else to 1…most."""
    op, const, span = e.domain.op, e.domain.const, slot.span

    def tap(ticks: V) -> V:
        if now is not None and e.domain.constant(ticks) == 0:
            return now
        deep = op("min", op("max", ticks, const(1.0)), const(float(slot.depth)))
        old = e.domain.state(slot, plane, deep, at, span)
        return old if now is None else op("select", op("lt", ticks, const(1.0)), now, old, span=span)

    return _between_ticks(e, age, (0.0 if now is not None else 1.0, most), tap, span)


def _between_ticks(
    e: Evaluator[V], age: V, limits: tuple[float, float], tap: Callable[[V], V], span: Span
) -> V:
    """What was `age` ticks ago, clamped to the limits, and linear between ticks. `tap` reads whole ones."""
    e.budget.spend(_STEPS_OF_READING)
    op, const = e.domain.op, e.domain.const
    age = op("min", op("max", age, const(limits[0])), const(limits[1]))
    whole = op("floor", age)
    constant = e.domain.constant(age)
    if constant is not None and constant == int(constant):
        return tap(whole)
    return op("mix", tap(whole), tap(op("add", whole, const(1.0))), op("sub", age, whole), span=span)
