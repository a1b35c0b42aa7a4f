"""What letters, sounds and analyses are at a place and time, made of what kernels can sample: pixels of a picture, and
stored samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from weft.errors import Span, error
from weft.graph.calls import called_analysis
from weft.graph.domain import Coordinates, Domain, Environment
from weft.graph.lookup import is_field
from weft.graph.resolve import Resolver
from weft.graph.scope import OPEN, Closure, HeardStrand, Scope, StrandMember
from weft.names import HEARD_ROWS, LETTERS_EM, LETTERS_REACH, HeardName, Letters, SoundFile, StrandRef, hop_length
from weft.sources import SOURCES, MediaHeader
from weft.syntax.ast import Access, Call, Name

V = TypeVar("V")

# Places in a sound are multiples of one sample by this: 2⁻²⁰ samples move a sine of 20 kHz by less than −120 dB.
_FINEST = 2.0**20


# The outputs of letters from here on are colours, of which this one is the last.
_COLOURS, _ALPHA = 2, 5


def letters_value(
    letters: Letters, size: float, known: MediaHeader, plane: int, env: Environment[V], domain: Domain[V],
    at: Coordinates[V], span: Span,
) -> V:  # fmt: skip
    """The distance to the outlines of letters, negative inside them, in heights of the picture (plane 1); or how much
    of a pixel they cover, if it has the size of one of this picture (plane 0); or their red, green, blue and alpha (2
    to 5), which are white where a font has no colours. `size` is the em in heights of the picture, `known` the header
    of the picture of distances."""
    op, const = domain.op, domain.const
    if plane >= _COLOURS and not known.has_colours:
        if plane < _ALPHA:
            return const(1.0)
        plane = 0
    half = const(0.5)
    # Places in the picture of distances, 0…1, and how far outside of it they are.
    across = op("mul", op("sub", at.x, half), op("mul", env.field("aspect", at), const(1 / size)))
    places = across, op("mul", op("sub", at.y, half), const(1 / size))
    sides = [count / LETTERS_EM for count in (known.width, known.height)]
    beyond = [
        op("max", op("sub", op("abs", place), const(side / 2)), const(0.0))
        for place, side in zip(places, sides, strict=True)
    ]
    u, v = (op("add", op("mul", p, const(1 / side)), half) for p, side in zip(places, sides, strict=True))
    if plane >= _COLOURS:
        return domain.picture(letters._replace(in_colour=True).name, plane - _COLOURS, u, v, span)
    stored = domain.picture(letters.name, 0, u, v, span)
    inside = op("mul", op("sub", stored, half), const(2 * LETTERS_REACH / LETTERS_EM))
    distance = op("mul", op("add", inside, op("hypot", *beyond)), const(size))
    if plane == 1:
        return distance
    covered = op("sub", half, op("mul", distance, env.field("height", at)))
    return op("min", op("max", covered, const(0.0)), const(1.0))


def sound_value(
    sound: SoundFile, repeats: bool, channel: int, domain: Domain[V], at: Coordinates[V], span: Span
) -> V:
    """A channel of a sound at a time: through the four samples around it, by a cubic that goes through the middle two
    with the slopes of their neighbours (E. Catmull, R. Rom, A class of local interpolating splines, 1974)."""
    op, const = domain.op, domain.const
    count = domain.uniform(sound.name)
    place = op("mul", at.abstime, const(float(sound.rate)))
    if repeats:
        place = op("mod", place, count)
    else:
        # What is far outside is as silent as what is near, and the time may be infinite, or no number.
        place = op("min", op("max", place, const(-2.0)), op("add", count, const(2.0)))
    # The time of a sample is rounded, and has to find that very sample.
    place = op("mul", op("floor", op("add", op("mul", place, const(_FINEST)), const(0.5))), const(1 / _FINEST))
    number = op("floor", place)
    way = op("sub", place, number)
    if repeats:
        number = op("select", op("lt", number, count), number, const(0.0))
        before = op("sub", op("select", op("lt", number, const(1.0)), count, number), const(1.0))
        numbers = [before, number]
        for _ in range(2):
            following = op("add", numbers[-1], const(1.0))
            numbers.append(op("select", op("lt", following, count), following, const(0.0)))
    else:
        numbers = [op("add", number, const(float(step))) if step else number for step in (-1, 0, 1, 2)]
    p, a, b, q = (domain.fetch(sound.name, channel, each, span) for each in numbers)
    half = const(0.5)
    first = op("mul", op("sub", b, p), half)
    third = op("add", op("mul", op("sub", q, p), half), op("mul", op("sub", a, b), const(1.5)))
    second = op("sub", op("sub", op("sub", b, a), first), third)
    return op("add", op("mul", op("add", op("mul", op("add", op("mul", third, way), second), way), first), way), a)


def analysis_value(
    call: Call, ref: StrandRef, plane: int, axis: V | None, env: Environment[V],
    picture: Callable[[str, int, V, V, Span], V], at: Coordinates[V],
) -> V:  # fmt: skip
    """An output of an analysis of the strand `ref`: a plane of a `picture` with a row for each hop, which is read
    between rows. What runs on is read at a row, and runs on from there."""
    spec = SOURCES[call.name]
    _, args = called_analysis(call, spec)
    name = HeardName(spec.name, args, str(ref)).name
    rate = env.settings["rate"]
    hop = hop_length(rate) / rate
    # Row n is complete, and holds, at the end of hop n.
    place = env.ops("mod", env.ops("sub", env.ops("mul", at.abstime, 1 / hop), 1), HEARD_ROWS)
    is_running = spec.outputs[plane] in spec.running
    row = env.ops("floor", place) if is_running else place
    # A row more at each end repeats that of the other end.
    y = env.ops("mul", env.ops("add", row, 1.5), 1 / (HEARD_ROWS + 2))
    x = env.algebra.const(0.5)
    if args:
        x = env.ops("mul", env.ops("add", 0.0 if axis is None else axis, 0.5), 1 / args[0])
    found = picture(name, plane, x, y, call.span)
    if not is_running:
        return found
    passed = env.ops("mul", env.ops("sub", place, row), hop)
    if "bpm" not in spec.outputs:
        return env.ops("add", found, passed)
    bpm = picture(name, spec.outputs.index("bpm"), x, y, call.span)
    return env.ops("fract", env.ops("add", found, env.ops("mul", env.ops("mul", passed, bpm), 1 / 60)))


def heard_strand(call: Call, scope: Scope, resolver: Resolver) -> tuple[StrandRef, HeardStrand]:
    """What an analysis hears, and its name. Several analyses of a strand of the patch hear the same; anything else is
    heard by one alone."""
    value, _ = called_analysis(call, SOURCES[call.name])
    if scope.level >= 0 or scope.copies > 1 or scope.has_fixed:
        raise error("analysis-in-loop", f"{call.name} cannot be in a loop", call.span,
                    "analyse the sound before the loop, and use the result in it")  # fmt: skip
    expression, place = value, scope
    while isinstance(expression, Name) and isinstance(found := place.get(expression.id), Closure):
        expression, place = found.value, found.scope
    read = expression.base if isinstance(expression, Access) else expression
    is_known = isinstance(expression, Access) and is_field(expression, place)
    group = None if is_known else resolver.group(read, place)
    if group is not None and group is not OPEN:
        at = group.place(expression.output) if isinstance(expression, Access) else 0 if len(group) == 1 else None
        member = None if at is None else group.members[at]
        if isinstance(member, StrandMember):
            ref = StrandRef(f"({member.ref.instance}.{member.ref.output})", "heard")
            return ref, HeardStrand(expression, place)
    ref = StrandRef(f"{scope.path.replace('@', '.')}/{call.name}#{resolver.ordinals.of(call)}", "heard")
    return ref, HeardStrand(value, scope.for_memory())
