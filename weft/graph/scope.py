"""Scopes: what names mean at a place, and how arguments meet parameters."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Protocol, TypeAlias

from weft.errors import Span, WeftError, did_you_mean, error
from weft.graph.domain import Coordinate
from weft.graph.nodes import Broadcast, FromCache, FromSource, Instance
from weft.graph.patterns import PatternCall, pattern_of
from weft.names import FilmFile, Letters, SoundFile, StrandRef
from weft.ops import WORDS
from weft.sources import FILM, SOUND, MediaKind, SourceSpec
from weft.syntax.ast import Argument, Call, Expression, For, Ident, Map, Remap, SpindleDefinition, Text, literal_number
from weft.syntax.foreign import hint_for

# --- matching arguments with parameters, for builtins, spindles and sources ---


class Parameterlike(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def default(self) -> float | str | Expression | None: ...


def signature(name: str, params: Sequence[Parameterlike], variadic: bool = False) -> str:
    """How a call is written: `clamp(x, lo: 0, hi: 1)`."""
    shown = [p.name if p.default is None else f"{p.name}: {_default_text(p.default)}" for p in params]
    return f"{name}({', '.join(shown + ['…'] * variadic)})"


def _default_text(default: float | str | Expression) -> str:
    if isinstance(default, str):
        return f'"{default}"'
    return f"{default:g}" if isinstance(default, int | float) else default.span.text


def match_arguments(
    name: str, params: Sequence[Parameterlike], args: Sequence[Argument], span: Span, variadic: bool = False
) -> list[Expression | None]:
    """The argument of each parameter, in order, and then the further arguments of a variadic callable; None where the
    default holds. Raises WeftError for arguments that do not fit."""
    if len(args) == len(params) and all(arg.label is None for arg in args):
        return [arg.value for arg in args]
    given: dict[str, Argument] = {}
    extra: list[Expression | None] = []
    for position, arg in enumerate(args):
        if arg.label is None and position >= len(params):
            if not variadic:
                many = f"{len(params)} argument{'s' * (len(params) != 1)}" if params else "no arguments"
                raise error("too-many-arguments", f"{name} takes {many}, and this is one more", arg.span,
                            signature(name, params, variadic))  # fmt: skip
            extra.append(arg.value)
            continue
        label = params[position].name if arg.label is None else arg.label
        if not any(p.name == label for p in params):
            hint = did_you_mean(label, [p.name for p in params]) or signature(name, params, variadic)
            raise error("unknown-argument", f'{name} has no argument "{label}"', arg.label_span or arg.span, hint)
        if label in given and arg.label is not None and given[label].label is not None:
            continue  # the parser has reported it
        if label in given:
            raise error("duplicate-argument", f'{name} is given "{label}" twice', arg.span,
                        signature(name, params, variadic))  # fmt: skip
        given[label] = arg
    missing = [p.name for p in params if p.default is None and p.name not in given]
    if missing:
        names = " and ".join(f'"{m}"' for m in missing)
        raise error("missing-argument", f"{name} also needs {names}", span, signature(name, params, variadic))
    return [given[p.name].value if p.name in given else None for p in params] + extra


def means_word(call: Call, spindle: SpindleDefinition) -> bool:
    """Whether a call means the word for bundles that is called like a spindle: a library's spindle gives way where the
    number of arguments is that of the word, and they have no labels."""
    word = WORDS.get(call.name)
    is_labelled = any(argument.label is not None for argument in call.args)
    return word is not None and spindle.span.source.library and word.fits(len(call.args)) and not is_labelled


# --- calls of sources: their outputs, axes and files ---


def source_shape(call: Call, spec: SourceSpec) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Outputs and axes of a source call; for `load` these depend on the kind of file, for `pattern` on the text."""
    if spec.is_computed:
        return called_pattern(call, spec).names, spec.axes
    if spec.is_live or not any(param.kind == "text" for param in spec.params):
        return spec.outputs, spec.axes
    path = source_text(call, spec)
    if not spec.media:
        return spec.outputs, spec.axes
    kind = media_kind(path.value, spec)
    if kind is None:
        endings = ", ".join(e for m in spec.media for e in m.endings)
        raise error("unknown-media", f'"{path.value}" does not end like a picture, film or sound', path.span,
                    f"known endings: {endings}")  # fmt: skip
    return kind.outputs, kind.axes


def called_pattern(call: Call, spec: SourceSpec) -> PatternCall:
    """The pattern of a call. Raises WeftError at the place of a mistake in it."""
    text = source_text(call, spec)
    values = match_arguments(spec.name, spec.params, call.args, call.span)
    numbers: dict[str, float] = {}
    for param, value in zip(spec.params, values, strict=True):
        if param.kind == "number":
            number = float(param.default or 0) if value is None else literal_number(value)
            if number is None:
                hint = "to change its speed, map the time: p@value(me@time ~ …)" if param.name == "per" else None
                raise error("needs-a-number", f'"{param.name}" has to be a plain number',
                            value.span if value else call.span, hint)  # fmt: skip
            if param.name == "per" and not 0.001 <= number <= 10_000:
                raise error("pattern-out-of-range", "a cycle takes 0.001 to 10,000 beats",
                            value.span if value else call.span)  # fmt: skip
            numbers[param.name] = number
    return pattern_of(text, Fraction(str(numbers["per"])), numbers["seed"])


def called_letters(call: Call, spec: SourceSpec) -> tuple[Letters, float]:
    """The letters of a call and their size, in heights of the picture. Raises WeftError for arguments that are not
    written out."""
    given = dict(zip(spec.params, match_arguments(spec.name, spec.params, call.args, call.span), strict=True))
    texts: dict[str, str] = {}
    size = 0.0
    for param, value in given.items():
        if param.kind == "number":
            known = float(param.default or 0) if value is None else literal_number(value)
            if known is None or not 0 < known <= MAX_EM:
                raise error("needs-a-number", f'"{param.name}" is a plain number above 0, up to {MAX_EM}',
                            value.span if value else call.span,
                            "a remap makes letters grow: t@v(me@x ~ …, me@y ~ …)")  # fmt: skip
            size = known
        elif isinstance(value, Text):
            texts[param.name] = media_path(value) if param.name == "font" else value.value
        elif value is None:
            texts[param.name] = str(param.default)
        else:
            raise error("needs-a-string", f'{spec.name} needs "{param.name}" as text in quotes', value.span,
                        f"for example {spec.example}")  # fmt: skip
    if texts["align"] not in ALIGNED:
        align = next(v for p, v in given.items() if p.name == "align")
        raise error("unknown-alignment", f'"{texts["align"]}" is no way to align', align.span if align else call.span,
                    "write " + " or ".join(f'"{each}"' for each in ALIGNED))  # fmt: skip
    return Letters(texts["text"], texts["font"] or None, texts["align"]), size


def constant_arguments(call: Call, spec: SourceSpec) -> tuple[str | float, ...]:
    """The arguments of a call, in the order of the parameters. Raises WeftError for one that is not constant."""
    args: list[str | float] = []
    values = match_arguments(spec.name, spec.params, call.args, call.span)
    for param, value in zip(spec.params, values, strict=True):
        number = None if value is None else literal_number(value)
        if value is None:
            args.append(param.default if param.default is not None else "")
        elif isinstance(value, Text) and "text" in param.kind:
            args.append(value.value)
        elif number is not None and "number" in param.kind:
            args.append(number)
        else:
            raise error("needs-a-constant", f'{spec.name} needs "{param.name}" as a plain {param.kind}', value.span,
                        f"for example {spec.example}")  # fmt: skip
    return tuple(args)


def called_sound(call: Call, spec: SourceSpec, rate: float) -> tuple[SoundFile, bool] | None:
    """The sound that a call loads, in samples at a rate, and whether it is repeated; None if it loads something else.
    Raises WeftError for arguments that are not written out."""
    path = source_text(call, spec)
    if media_kind(path.value, spec) is not SOUND:
        return None
    given = dict(zip(spec.params, match_arguments(spec.name, spec.params, call.args, call.span), strict=True))
    loop = next(value for param, value in given.items() if param.name == "loop")
    number = 0.0 if loop is None else literal_number(loop)
    if number is None:
        raise error("needs-a-number", '"loop" is 0 or 1, as a plain number', loop.span if loop else call.span,
                    "what repeats at times is a remap: k@l(me@time ~ me@time % 2)")  # fmt: skip
    return SoundFile(media_path(path), int(rate)), number != 0


def called_film(call: Call, spec: SourceSpec) -> FilmFile | None:
    """The film that a call loads; None if it loads something else. Raises WeftError for arguments that are not written
    out."""
    path = source_text(call, spec)
    if media_kind(path.value, spec) is not FILM:
        return None
    given = dict(zip(spec.params, match_arguments(spec.name, spec.params, call.args, call.span), strict=True))
    loop = next(value for param, value in given.items() if param.name == "loop")
    number = 1.0 if loop is None else literal_number(loop)
    if number is None:
        raise error("needs-a-number", '"loop" is 0 or 1, as a plain number', loop.span if loop else call.span,
                    "a remap of the time plays a film in any way: f@r(me@time ~ …)")  # fmt: skip
    return FilmFile(media_path(path), number != 0)


def called_analysis(call: Call, spec: SourceSpec) -> tuple[Expression, tuple[float, ...]]:
    """What an analysis hears, and its other arguments. Raises WeftError for those that do not fit."""
    values = match_arguments(spec.name, spec.params, call.args, call.span)
    strand = values[0]
    if strand is None or isinstance(strand, Text):
        raise error("needs-a-strand", f"{spec.name} analyses a sound", (strand or call).span,
                    f"for example {spec.example}")  # fmt: skip
    numbers: list[float] = []
    for param, value in list(zip(spec.params, values, strict=True))[1:]:
        number = param.default if value is None else literal_number(value)
        if not isinstance(number, int | float):
            raise error("needs-a-constant", f'{spec.name} needs "{param.name}" as a plain number', (value or call).span,
                        f"for example {spec.example}")  # fmt: skip
        if param.whole is not None and not (number == int(number) and param.whole[0] <= number <= param.whole[1]):
            least, most = param.whole
            raise error("argument-out-of-range", f'"{param.name}" is a whole number from {least} to {most}',
                        (value or call).span)  # fmt: skip
        numbers.append(float(number))
    return strand, tuple(numbers)


MAX_EM = 100
ALIGNED = ("left", "center", "right")


def bound_planes(spec: SourceSpec, names: Sequence[str], outputs: Sequence[Ident]) -> list[int]:
    """Which of a source's outputs `names` are bound: those of a pattern by name, any others by place."""
    if not spec.is_computed:
        return list(range(len(outputs)))
    for output in outputs:
        if output.name not in names:
            raise error("unknown-output", f'this pattern has no output "{output.name}"', output.span,
                        did_you_mean(output.name, names) or f"it has {', '.join(names)}")  # fmt: skip
    return [names.index(output.name) for output in outputs]


def media_kind(path: str, spec: SourceSpec) -> MediaKind | None:
    """The kind of file that a path names, by its ending."""
    ending = path.rpartition(".")[2].lower()
    return next((m for m in spec.media if ending in m.endings), None)


def media_path(text: Text) -> str:
    """The path of a media file that a text names. It is relative to the file of the text."""
    return os.path.join(os.path.dirname(text.span.source.name), text.value)


SIZES = ("w", "h")
"""What `load("a.png")::img<r, g, b, w, h>` calls the width and height in pixels. They are no members."""


def without_size(spec: SourceSpec, outputs: Sequence[Ident]) -> tuple[Sequence[Ident], tuple[str, ...]]:
    """The outputs to which a source is bound, and the names of its size, if those are bound at the end."""
    names = tuple(output.name for output in outputs)
    if spec.media and names[-2:] == SIZES and len(names) in (5, 6):  # after r g b, or r g b a
        return outputs[:-2], SIZES
    return outputs, ()


def sizes_of(call: Call, spec: SourceSpec, bound: tuple[str, ...]) -> dict[str, PictureSize]:
    """The width and height of a picture or film by the names that read them, or the length of a sound."""
    kind = media_kind(source_text(call, spec).value, spec) if spec.media else None
    if kind is SOUND:
        return {"seconds": PictureSize(call, 0)}
    if kind is None or "x" not in kind.axes:
        return {}
    return {name: PictureSize(call, k) for names in (("width", "height"), bound) for k, name in enumerate(names)}


def source_text(call: Call, spec: SourceSpec) -> Text:
    """The string that a source is called with. Raises WeftError if it is not a string literal."""
    values = match_arguments(spec.name, spec.params, call.args, call.span)
    for param, value in zip(spec.params, values, strict=True):
        if param.kind == "text" and value is not None:
            if isinstance(value, Text):
                return value
            raise error("needs-a-string", f'{spec.name} needs "{param.name}" as text in quotes', value.span,
                        hint_for(spec.name) or f"for example {spec.example}")  # fmt: skip
    raise TypeError(f"{spec.name} takes no string")


# --- scopes ---


class PoisonedError(Exception):
    """A strand cannot be evaluated, for a reason that has been reported elsewhere."""


class Bindings:
    """The locals of a body, or of one step of a loop inside the scope `outer`, in the order in which statements bind
    them. A scope sees the first of them, so a statement copies none."""

    __slots__ = ("_places", "_values", "outer")

    def __init__(self, outer: Scope | None = None, first: Mapping[str, Local] | None = None) -> None:
        self.outer = outer
        self._values: list[Local] = list((first or {}).values())
        self._places: dict[str, list[int]] = {name: [place] for place, name in enumerate(first or ())}
        """Where each name is bound, in ascending order."""

    def add(self, name: str, value: Local) -> None:
        self._places.setdefault(name, []).append(len(self._values))
        self._values.append(value)

    def get(self, name: str, seen: int, ahead: bool) -> Local | None:
        """The latest of the first `seen` locals of a name, then that of the outer scope. With `ahead`, a name that the
        body assigns only later has the value that it has at the end."""
        places = self._places.get(name)
        if places is not None:
            if places[0] < seen:
                last = places[-1] if places[-1] < seen else places[bisect_left(places, seen) - 1]
                return self._values[last]
            if ahead and self.outer is None:
                return self._values[places[-1]]
        outer = self.outer
        return None if outer is None else outer.bindings.get(name, outer.seen, ahead)

    @property
    def has_fixed(self) -> bool:
        """Whether any of them is a number of a step of a loop."""
        return any(isinstance(value, Fixed) for value in self._values)

    def names(self, seen: int) -> Iterator[str]:
        """The names of the locals of the outer scope, then those of the first `seen` locals."""
        if self.outer is not None:
            yield from self.outer.names()
        yield from (name for name, places in self._places.items() if places[0] < seen)


_NO_BINDINGS = Bindings()


@dataclass(slots=True, eq=False)
class SpindleBody:
    """The body of a spindle, for one call. `assigned` holds all names that it assigns; `end` is the scope after its
    last statement, None until that is reached; `for_memory` caches the scopes that look ahead to it."""

    assigned: frozenset[str]
    end: Scope | None = None
    for_memory: dict[Scope, Scope] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Scope:
    """The surroundings of an expression.

    `path` names the place for state: `trail@v`, `scene/blur#0`. The locals are the first `seen` of `bindings`; if it
    looks `ahead`, those that the body binds further down as well, as only state may. `level` is that of the innermost
    loop around it, -1 outside of loops. `chain` lists the spindles being called, the innermost last, and `body` belongs
    to that one. `broadcast` is the place among several for which the expression is evaluated. `copies` is the number of
    times that unrolled loops repeat it.
    """

    path: str
    bindings: Bindings = _NO_BINDINGS
    seen: int = 0
    level: int = -1
    varying: bool = False
    chain: tuple[SpindleDefinition, ...] = ()
    broadcast: Broadcast | None = None
    body: SpindleBody | None = None
    copies: int = 1
    ahead: bool = False
    whole: Scope | None = None
    """The scope of an expression over bundles, where this one is that of one of its members."""

    def get(self, name: str) -> Local | None:
        """The local of a name."""
        return self.bindings.get(name, self.seen, self.ahead)

    @property
    def has_fixed(self) -> bool:
        """Whether a local is a number of a step of a loop."""
        bindings: Bindings | None = self.bindings
        while bindings is not None:
            if bindings.has_fixed:
                return True
            bindings = bindings.outer.bindings if bindings.outer is not None else None
        return False

    def names(self) -> Iterator[str]:
        """The names of the locals; one that a step of a loop binds again comes twice."""
        return self.bindings.names(self.seen)

    def is_assigned_later(self, name: str) -> bool:
        """Whether the body assigns a name, but only further down."""
        is_assigned = self.body is not None and name in self.body.assigned
        return is_assigned and self.bindings.get(name, self.seen, False) is None

    def bind(self, name: str, value: Local) -> Scope:
        """The scope after a statement, with one more local, which shadows an earlier one of that name. A scope is bound
        in only once."""
        self.bindings.add(name, value)
        return Scope(
            self.path, self.bindings, self.seen + 1, self.level, self.varying, self.chain, self.broadcast, self.body,
            self.copies, self.ahead, self.whole,
        )  # fmt: skip

    def inner(self, locals: Mapping[str, Local]) -> Scope:
        """A scope inside this one, with these locals, which ends before this one goes on."""
        return replace(self, bindings=Bindings(self, locals), seen=len(locals), whole=None)

    def broadcast_over(self, broadcast: Broadcast | None) -> Scope:
        if broadcast is self.broadcast or broadcast == self.broadcast:
            return self
        return Scope(
            self.path, self.bindings, self.seen, self.level, self.varying, self.chain, broadcast, self.body,
            self.copies, self.ahead, self.whole,
        )  # fmt: skip

    def for_memory(self) -> Scope:
        """The scope of an expression that state evaluates at the end of a tick: names that the body assigns further
        down have their values at its end. Raises PoisonedError if the body never got there."""
        body = self.body
        if body is None:
            return self
        if body.end is None:
            if any(self.is_assigned_later(name) for name in body.assigned):
                raise PoisonedError
            return self
        whole = None if self.whole is None else self.whole.for_memory()
        ahead = replace(self, ahead=True, whole=whole)
        return body.for_memory.get(self) or body.for_memory.setdefault(self, ahead)


# --- what a local can be ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Closure:
    """A strand: an expression with the scope it was written in, and the name of the local that it was assigned to."""

    value: Expression
    scope: Scope
    name: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Fixed:
    """A number of one step of a loop: no remap moves it. `value` is a value of the domain."""

    value: Any


@dataclass(frozen=True, slots=True, eq=False)
class LoopResult:
    """The strand that a name stands for after an outermost loop that assigns it. `scope` is the one before the loop,
    which can run at any coordinates."""

    loop: For
    scope: Scope
    name: str
    index: int = 0
    """The member, if the name stands for a bundle."""


@dataclass(frozen=True, slots=True, eq=False)
class Opaque:
    """The argument of a spindle that is checked without being called: a strand about which nothing is known, or any
    number of them."""

    takes_bundle: bool = False


POSITIONS = ("xyzw", "rgba", "lr")
"""The letters that name the members of a bundle without names, by position."""


def is_swizzle(output: str) -> bool:
    """Whether `@output` may name several members of a bundle: `@rgb`, `@xxy`."""
    return 2 <= len(output) <= 4 and any(set(output) <= set(letters) for letters in POSITIONS)


@dataclass(frozen=True, slots=True, eq=False)
class StrandGroup:
    """Several strands under one name: an instance, the outputs of a call, a bundle (whose elements have no names).
    `axes` has the coordinates of its own, by the names after `@`: `c@k` by `k`."""

    names: tuple[str, ...]
    members: tuple[Member, ...]
    axes: Mapping[str, StrandRef] = field(default_factory=dict)
    positional: tuple[Coordinate, ...] = ("x", "y", "time")
    """The coordinates that a positional remap of it maps, in order."""
    sizes: Mapping[str, PictureSize] = field(default_factory=dict)
    """The width and height of a picture, by the names after `@`."""

    def __len__(self) -> int:
        return len(self.members)

    def place(self, name: str) -> int | None:
        """Where the member of a name stands. Members without names answer to the letters of `POSITIONS`."""
        if any(self.names):
            return self.names.index(name) if name in self.names else None
        places = (letters.index(name) for letters in POSITIONS if len(name) == 1 and name in letters)
        return next((place for place in places if place < len(self)), None)

    def swizzle(self, letters: str) -> StrandGroup | None:
        """The members that `@rgb` names; None if they do not all exist, or if an output has this very name."""
        places = [self.place(letter) for letter in letters]
        if letters in self.names or None in places:
            return None
        members = tuple(self.members[place] for place in places if place is not None)
        return replace(self, names=("",) * len(members), members=members)

    def take(self, count: int, names: Iterable[str]) -> StrandGroup:
        """The first `count` members under other names."""
        return replace(self, names=tuple(names), members=self.members[:count])


OPEN = StrandGroup((), ())
"""The strands of something about which nothing is known."""

Local: TypeAlias = Closure | Fixed | LoopResult | Opaque | StrandGroup


# --- what a member of a group can be ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class StrandMember:
    """An output of an instance of the patch."""

    ref: StrandRef


@dataclass(frozen=True, slots=True, eq=False)
class SourceMember:
    """An output of a source; `axis` is the name of the axis it brings along, if it has one."""

    call: Call
    name: str
    plane: int
    scope: Scope
    axis: StrandRef | None = None


@dataclass(frozen=True, slots=True, eq=False)
class PictureSize:
    """The width (`place` 0) or height (1) in pixels of the picture that a call loads."""

    call: Call
    place: int


@dataclass(frozen=True, slots=True, eq=False)
class CacheMember:
    """An output of a cache: plane `plane` of `planes`, remembered for the strand `now`."""

    call: Call
    scope: Scope
    plane: int
    planes: int
    axis: StrandRef
    now: Member


@dataclass(frozen=True, slots=True, eq=False)
class Remapped:
    """A member of a remapped group."""

    inner: Member
    maps: tuple[Map, ...]
    scope: Scope


@dataclass(frozen=True, slots=True, eq=False)
class PositionallyRemapped:
    """A member of a group remapped without `~`: the values of the coordinates `axes`, in order."""

    inner: Member
    axes: tuple[tuple[Coordinate, Expression], ...]
    span: Span
    scope: Scope


@dataclass(frozen=True, slots=True, eq=False)
class WordMember:
    """A member of what a word for bundles gives."""

    call: Call
    scope: Scope
    index: int


Member: TypeAlias = (
    StrandMember | SourceMember | CacheMember | WordMember | Remapped | PositionallyRemapped | Closure | Fixed
    | LoopResult | Opaque
)


# --- groups: the strands of an instance, a remap or a call ---


def instance_group(instance: Instance) -> StrandGroup:
    """The outputs of an instance, with its own axes."""
    members = tuple(StrandMember(StrandRef(instance.name, name)) for name in instance.outputs)
    names = tuple("" if name.isdigit() else name for name in instance.outputs)
    axes = {axis: StrandRef(instance.name, axis) for axis in instance.axes}
    first = next(iter(instance.outputs.values())).definition
    if isinstance(first, FromSource):
        coordinates = source_coordinates(source_shape(first.call, first.spec)[1], axes)
        return StrandGroup(names, members, axes, coordinates, sizes_of(first.call, first.spec, instance.sizes))
    if isinstance(first, FromCache):
        return StrandGroup(names, members, axes, tuple(axes.values()))
    return StrandGroup(names, members, axes)


def source_coordinates(axes: Iterable[str], own: Mapping[str, StrandRef]) -> tuple[Coordinate, ...]:
    """The coordinates that a positional remap of a source maps, of which some are its own."""
    return tuple(own.get(a, "time" if a == "abstime" else a) for a in axes)


def remapped(group: StrandGroup, wrapper: Remap | Call, scope: Scope) -> StrandGroup:
    """The strands of a group at other coordinates: those of a remap or positional remap written in `scope`."""
    if isinstance(wrapper, Remap):
        return replace(group, members=tuple(Remapped(m, wrapper.maps, scope) for m in group.members))
    axes = positional_axes(wrapper, group.positional)
    return replace(group, members=tuple(PositionallyRemapped(m, axes, wrapper.span, scope) for m in group.members))


def positional_axes(call: Call, axes: tuple[Coordinate, ...]) -> tuple[tuple[Coordinate, Expression], ...]:
    """The coordinate that each argument of a positional remap maps. Raises WeftError for too many or labelled ones."""
    for position, arg in enumerate(call.args):
        if arg.label is not None:
            raise error("label-in-remap", "a positional remap takes no labels", arg.label_span or arg.span,
                        f"write me@{arg.label} ~ …" if arg.label in ("x", "y", "time") else None)  # fmt: skip
        if position >= len(axes):
            shown = ", ".join(map(str, axes)) if axes else "no coordinates"
            raise error("too-many-arguments", f"this can be remapped over {shown}, and this is one more", arg.span,
                        "to call something, check its name; to remap a certain coordinate, write me@x ~ …")  # fmt: skip
    return tuple((axis, arg.value) for axis, arg in zip(axes, call.args, strict=False))


def as_member(local: Local | None) -> Member:
    """An output of a spindle. Raises PoisonedError if it was never assigned."""
    if local is None:
        raise PoisonedError
    if isinstance(local, StrandGroup):
        raise TypeError("an output of a spindle is a strand")
    return local


def as_local(members: Sequence[Member], shape: StrandGroup | None) -> Local:
    """A local of these members: a bundle of a shape, or the only one."""
    if shape is OPEN:
        return Opaque(takes_bundle=True)
    if shape is not None:
        return StrandGroup(shape.names, tuple(members))
    only = members[0]
    if not isinstance(only, Closure | Fixed | LoopResult | Opaque):
        raise TypeError("not a local")
    return only


def strands(group: StrandGroup) -> str:
    """A group as a message describes it."""
    if not any(group.names):
        return f"{len(group)} strands"
    return f"{len(group)} strands ({', '.join(name or '…' for name in group.names)})"


def pick_hint(span: Span, group: StrandGroup) -> str:
    """A hint about taking one strand of the group at a place."""
    name = span.text if span.text.isidentifier() else None
    if name and group.names[0]:
        return f"take one of them: {name}@{group.names[0]}"
    return "take one of them with [0], or combine them with sum(…) or length(…)"


def different_counts(first: Expression, one: StrandGroup, second: Expression, other: StrandGroup) -> WeftError:
    """The error for an expression over bundles that do not have as many members."""
    return error("count-mismatch", f"this is {strands(other)}, and the other bundle here is {strands(one)}",
                 second.span, "bundles in one expression need as many members; take one with [0], or use sum(…)",
                 [(first.span, f"{len(one)} here")])  # fmt: skip


def several_calls(spindle: SpindleDefinition, span: Span) -> WeftError:
    """The error for a call for each member of a bundle, of a spindle that has several outputs."""
    return error("several-strands", f"{spindle.name.name} has {len(spindle.outputs)} outputs, and only a spindle with "
                 "one can be called for each member of a bundle", span,
                 "name the outputs on the left, or take one member with [0]")  # fmt: skip
