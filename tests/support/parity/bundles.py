"""Writes programs with bundles at random, each a second time without: there, every member is a strand of its own.

A `Value` has both: the text with bundles, and what each member is, written out. The members depend on who reads them: a
list of names on the left takes those of a bundle by their names, if it has all of them.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, reduce
from typing import Protocol, TypeVar

from weft.contexts import ContextTable
from weft.errors import Report, Source
from weft.graph.bindings import collect
from weft.syntax.parser import parse

T = TypeVar("T")

Names = tuple[str, ...]


class Choices(Protocol):
    """Where chance comes from."""

    def pick(self, choices: Sequence[T]) -> T: ...


class Dice:
    """Chance by a seed."""

    def __init__(self, seed: str) -> None:
        self._rng = random.Random(seed)

    def pick(self, choices: Sequence[T]) -> T:
        return choices[int(self._rng.random() * len(choices))]


@dataclass(frozen=True)
class Value:
    """An expression in a form that anything may follow: a name, a call, or something in brackets."""

    text: str
    count: int
    spread: Callable[[Names], tuple[str, ...]]
    """What the members are where these names are asked for, as many as there are members."""
    names: Names = ()
    """Empty: the members have none."""
    bound: str = ""
    """The text in front of `::`, if it is a call: no statement begins with a bracket."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "spread", cache(self.spread))

    @property
    def places(self) -> Names:
        """What tells the members apart: their names or their numbers."""
        return self.names or tuple(map(str, range(self.count)))

    @property
    def members(self) -> tuple[str, ...]:
        """Each member, written out."""
        return self.spread(self.places)

    def at(self, names: Names) -> tuple[str, ...]:
        """What each of these names gets; one strand serves all."""
        return self.members * len(names) if self.count == 1 else self.spread(names)


def atom(text: str, members: Sequence[str], names: Names = ()) -> Value:
    """A value whose members are the same for every reader."""

    def spread(wanted: Names) -> tuple[str, ...]:
        if names and set(wanted) <= set(names):
            return tuple(members[names.index(name)] for name in wanted)
        return tuple(members)

    return Value(text, len(members), spread, names)


def one(text: str, written: str | None = None) -> Value:
    return atom(text, (text if written is None else written,))


def made_of(form: str, *parts: Value) -> Value:
    """An operation on some values, member by member."""
    wide = [part for part in parts if part.count > 1]
    shape = next((part for part in wide if part.names), wide[0] if wide else parts[0])

    def spread(wanted: Names) -> tuple[str, ...]:
        operands = zip(*(part.at(wanted) for part in parts), strict=True)
        return tuple(form.format(*members) for members in operands)

    return Value(form.format(*(part.text for part in parts)), shape.count, spread, shape.names)


def joined(form: str, members: Iterable[str]) -> str:
    """Members combined from left to right."""
    return reduce(form.format, members)


POSITIONS = ("xyzw", "rgba", "lr")
NAMES: Mapping[int, Sequence[Names]] = {
    2: (("x", "y"), ("y", "x"), ("a", "b"), ("l", "r"), ("xy", "x")),
    3: (("r", "g", "b"), ("b", "r", "g"), ("u", "v", "w"), ("x", "y", "z")),
    4: (("r", "g", "b", "a"), ("x", "y", "z", "w")),
}
NUMBERS = ("0", "1", "0.5", "2", "3.25", "(-1.5)", "0.125")
COORDINATES = ("me@x", "me@y", "sin(me@time)", "(me@px * 0.1)", "mouse@x", "fract(me@time * 0.3)", "me@beatphase")
OPERATORS = ("({} + {})", "({} - {})", "({} * {})", "({} / (2 + abs({})))", "({} % 3 + {})", "({} < {})", "({} and {})")
UNARY = ("(-{})", "(not {})", "sin({})", "abs({})", "saturate({})", "floor({})", "clamp({}, lo: -1)", "sign({})")
BINARY = ("min({}, {})", "max({}, {}, 0.25)", "step({}, {})", "hypot({}, {})", "length({}, {})", "hash({}, {})")
TERNARY = ("(if {} then {} else {})", "select({}, {}, {})", "mix({}, {}, {})", "clamp({}, {}, {})")
MEMORY = ("prev({})", "integrate({})", "phasor({})", "delay({}, 2, 4)")
MEMORY_OF_TWO = ("hold({}, floor({}))", "delay({}, {}, 3)")
FEEDBACK = (
    "({e} + prev({o}) * 0.5)", "mix({e}, prev({o}), 0.75)", "max({e}, prev({o}) * 0.9)",
    "(prev({o})(me@x ~ me@x * 0.9 + 0.05) * 0.5 + {e})", "sin(integrate({o}) + {e})", "({e} + delay({o}, 2, 2) * 0.5)",
    "(prev({s}) * 0.5 + {e})", "phasor({o} + {e})",
)  # fmt: skip

# As many memories as a shader has images for.
_MOST_PLANES = 6


@dataclass(frozen=True)
class Parameter:
    """`kind` is `listed` for a list of names, `whole` for a bundle that the body takes apart, `one` for one strand,
    `only` for one strand where a bundle would be taken as a whole."""

    name: str
    kind: str
    shape: Value
    default: Value | None = None


@dataclass(frozen=True)
class Spindle:
    """A template. `written` are its outputs where it is written out, and `names` those of what it gives."""

    name: str
    parameters: tuple[Parameter, ...]
    written: Names
    names: Names
    several: bool
    planes: int


@dataclass(frozen=True)
class Surroundings:
    """What an expression may mention. `bare` is within a loop: no memory there, and no remaps."""

    values: tuple[Value, ...] = ()
    spindles: tuple[Spindle, ...] = ()
    bare: bool = False

    def also(self, *values: Value) -> Surroundings:
        return replace(self, values=(*self.values, *values))

    def without(self, name: str) -> Surroundings:
        return replace(self, values=tuple(value for value in self.values if value.text != name))


@dataclass
class BundleAuthor:
    """Writes one program: `lines` with bundles, and `plain` without."""

    choices: Choices
    lines: list[str] = field(default_factory=list)
    plain: list[str] = field(default_factory=list)
    planes: int = 0
    """The memories so far."""
    variables: int = 0

    def program(self, statements: Mapping[str, Sequence[int]]) -> tuple[str, str]:
        """Both texts. `statements` are the output statements to choose from, with numbers of members."""
        around = Surroundings()
        for k in range(self.pick((0, 1, 1, 2, 2))):
            around = replace(around, spindles=(*around.spindles, self.spindle(f"f{k}", around)))
        for k in range(self.pick((1, 2, 2, 3, 4))):
            around = self.statement(f"q{k}", around)
        self.output(around, statements)
        return "\n".join(self.lines) + "\n", "\n".join(self.plain) + "\n"

    def output(self, around: Surroundings, statements: Mapping[str, Sequence[int]]) -> None:
        name = self.pick(tuple(statements))
        count = self.pick(statements[name])
        shown = self.value(around, count, 2)
        if self.chance(3) and count > 1:
            parts = [self.value(around, 1, 1) for _ in range(count - 1)] + [made_of("({}[0] * 0.5)", one("0.5"))]
            parts = [*parts[:-1], self.value(around, 1, 2)]
            self.lines.append(f"{name}({', '.join(part.text for part in parts)})")
            self.plain.append(f"{name}({', '.join(part.members[0] for part in parts)})")
            return
        places = ("r", "g", "b", "a")[:count]
        members = shown.spread(places) if name == "display" and set(places) <= set(shown.names) else shown.members
        pipe = self.pick(("{} + me@x * 0.3", "{} * 0.75 - me@x * me@y", "{} * (me@x + 0.5)", "{} |> sin()"))
        self.lines.append(f"{name}({pipe.format(shown.text)})")
        self.plain.append(f"{name}({', '.join(pipe.format(member) for member in members)})")

    # --- statements -----------------------------------------------------------------------------------------------

    def statement(self, name: str, around: Surroundings) -> Surroundings:
        write = self.pick((self.named, self.named, self.listed, self.listed, self.feedback, self.bound, self.copies))
        return write(name, around)

    def named(self, name: str, around: Surroundings) -> Surroundings:
        value = self.value(around, self.pick((1, 2, 3, 4)), 3)
        return around.also(self.assigned(name, value, self.lines, self.plain))

    def assigned(self, name: str, value: Value, lines: list[str], plain: list[str], indent: str = "") -> Value:
        """What a name refers to after it is assigned for the first time."""
        lines.append(f"{indent}{name} = {value.text}")
        members = [name] if value.count == 1 else [f"{name}_{k}" for k in range(value.count)]
        plain += [f"{indent}{each} = {text}" for each, text in zip(members, value.members, strict=True)]
        return atom(name, members, value.names)

    def listed(self, name: str, around: Surroundings) -> Surroundings:
        """A list of names on the left."""
        count = self.pick((2, 3, 4))
        names = self.pick(NAMES[count])
        several = [spindle for spindle in around.spindles if spindle.several and len(spindle.names) == count]
        if several and self.chance(2):
            value = self.call(self.pick(several), around, 2, mapped=count)
        else:
            value = self.value(around, self.pick((count, count, 1)), 3)
        self.lines.append(f"{name}<{', '.join(names)}> = {value.text}")
        return around.also(self.named_members(name, names, value.at(names)))

    def named_members(self, name: str, names: Names, texts: Sequence[str]) -> Value:
        """An instance with these outputs."""
        members = [f"{name}_{k}" for k in range(len(names))]
        self.plain += [f"{each} = {text}" for each, text in zip(members, texts, strict=True)]
        return atom(name, members, names)

    def feedback(self, name: str, around: Surroundings) -> Surroundings:
        return around.also(self.fed_back(name, around, self.lines, self.plain))

    def fed_back(
        self, name: str, around: Surroundings, lines: list[str], plain: list[str], indent: str = ""
    ) -> Value:
        """A name that reads what it was a tick ago."""
        value = self.value(around, self.pick((1, 2, 3)), 2)
        if not self.remembers(2 * value.count):
            return self.assigned(name, value, lines, plain, indent)
        letters = self.letters(value.names, value.count)
        order = tuple(self.pick(range(value.count)) for _ in range(value.count))
        form = self.pick(FEEDBACK)
        if value.count == 1 or not letters:
            form = form.replace("{s}", "{o}")
        swizzled = "@" + "".join(letters[at] for at in order) if letters and value.count > 1 else ""
        lines.append(f"{indent}{name} = {form.format(o=name, e=value.text, s=name + swizzled)}")
        members = [name] if value.count == 1 else [f"{name}_{k}" for k in range(value.count)]
        for k, (member, text) in enumerate(zip(members, value.members, strict=True)):
            plain.append(f"{indent}{member} = {form.format(o=member, e=text, s=members[order[k]])}")
        return atom(name, members, value.names)

    def bound(self, name: str, around: Surroundings) -> Surroundings:
        """What `::` binds, by places."""
        calls = [spindle for spindle in around.spindles if len(spindle.names) > 1]
        maps = [value for value in around.values if value.count > 1]
        if calls and (not maps or self.chance(2)):
            value = self.call(self.pick(calls), around, 2)
        elif maps:
            value = made_of("{}(me@x ~ {})", self.pick(maps), self.value(around, 1, 1))
            value = replace(value, bound=value.text)
        else:
            return self.listed(name, around)
        if not value.bound:
            return around.also(self.assigned(name, value, self.lines, self.plain))
        names = self.pick(NAMES[value.count])[: self.pick(range(1, value.count + 1))]
        self.lines.append(f"{value.bound}::{name}<{', '.join(names)}>")
        return around.also(self.named_members(name, names, value.members[: len(names)]))

    def copies(self, name: str, around: Surroundings) -> Surroundings:
        """Several calls of a spindle at once."""
        fit = [s for s in around.spindles if len(s.names) == 1 and s.parameters[0].kind in ("one", "only")]
        if not fit:
            return self.named(name, around)
        count = self.pick((2, 3))
        names, spindle = self.pick(NAMES[count]), self.pick(fit)
        value = self.call(spindle, around, 1, mapped=count)
        if not value.bound.startswith(f"{spindle.name}("):
            return around.also(self.assigned(name, value, self.lines, self.plain))
        text = value.bound.replace("(", f"<{count}>(", 1)
        self.lines.append(f"{text}::{name}<{', '.join(names)}>")
        return around.also(self.named_members(name, names, value.at(names)))

    # --- spindles -------------------------------------------------------------------------------------------------

    def spindle(self, name: str, others: Surroundings) -> Spindle:
        before = self.planes
        parameters: list[Parameter] = []
        for k in range(self.pick((1, 2, 2, 3))):
            parameters.append(self.parameter(f"{name}p{k}", parameters))
        inside = Surroundings(tuple(p.shape for p in parameters), others.spindles)
        body: list[str] = []
        plain: list[str] = []
        # What takes a parameter apart, so that it takes a bundle.
        for k, parameter in enumerate(p for p in parameters if p.kind == "whole"):
            value = self.pick((self.element, self.word))(inside.also(*(parameter.shape,) * 9), 1)
            value = made_of("({} + {})", value, one(f"{parameter.name}[0]", parameter.shape.members[0]))
            inside = inside.also(self.assigned(f"{name}k{k}", value, body, plain, "  "))
        for k in range(self.pick((0, 1, 1, 2))):
            value = self.value(inside, self.pick((1, 2, 3)), 2)
            inside = inside.also(self.assigned(f"{name}l{k}", value, body, plain, "  "))
        if self.chance(3):
            inside = inside.also(self.fed_back(f"{name}m", inside, body, plain, "  "))
        for _ in range(self.pick((0, 1, 1, 2))):
            self.pick((self.change, self.change, self.loop))(inside, body, plain)
        several = self.chance(2)
        if several:
            names = self.pick(NAMES[self.pick((2, 3))])
            given = [self.value(inside, 1, 2) for _ in names]
            written = tuple(f"{name}_{each}" for each in names)
            if set(names) & {p.name for p in parameters}:
                written = names
            outputs = names
            if self.chance(3):
                whole = self.value(inside, len(names), 2)
                body.append(f"  out = {whole.text}")
                plain += [f"  out {each} = {text}" for each, text in zip(written, whole.at(names), strict=True)]
            else:
                body += [f"  out {each} = {value.text}" for each, value in zip(names, given, strict=True)]
                plain += [f"  out {each} = {value.members[0]}" for each, value in zip(written, given, strict=True)]
        else:
            value = self.value(inside, self.pick((1, 1, 2, 3)), 2)
            outputs, written = ("o",), tuple(f"o_{k}" for k in range(value.count))
            names = value.places
            body.append(f"  out o = {value.text}")
            plain += [f"  out {each} = {text}" for each, text in zip(written, value.members, strict=True)]
            if value.count > 1 and not value.names:
                names = ("",) * value.count
        self.lines.append(f"spindle {name}({', '.join(map(self.head, parameters))}) :: <{', '.join(outputs)}> {{")
        flat = [member for parameter in parameters for member in parameter.shape.members]
        self.plain.append(f"spindle {name}({', '.join(flat)}) :: <{', '.join(written)}> {{")
        self.lines += [*body, "}"]
        self.plain += [*plain, "}"]
        planes, self.planes = self.planes - before, before
        return Spindle(name, self.with_kinds(name, parameters), written, names, several, planes)

    def with_kinds(self, name: str, parameters: Sequence[Parameter]) -> tuple[Parameter, ...]:
        """The parameters of a spindle. Of those for one strand, some take a bundle, since the body takes them apart."""
        contexts, report = ContextTable(), Report()
        patch = collect(parse(Source("spindles.weft", "\n".join(self.lines)), report), contexts, report)
        takes = patch.ordinals.takes_bundles(patch.spindles[name])
        return tuple(
            replace(parameter, kind="only") if parameter.kind == "one" and taken else parameter
            for parameter, taken in zip(parameters, takes, strict=True)
        )

    def parameter(self, name: str, earlier: Sequence[Parameter]) -> Parameter:
        kind = self.pick(("listed", "whole", "one", "one"))
        count = 1 if kind == "one" else self.pick((2, 2, 3))
        names = self.pick(NAMES[count]) if kind == "listed" else ()
        members = [name] if count == 1 else [f"{name}_{k}" for k in range(count)]
        default = None
        if all(p.default for p in earlier[1:]) and earlier and (earlier[-1].default or self.chance(3)):
            # Only with parameters before it that have one, but for the first.
            default = self.value(Surroundings(tuple(p.shape for p in earlier)), count, 1)
        elif any(p.default for p in earlier):
            default = self.value(Surroundings(tuple(p.shape for p in earlier)), count, 1)
        if default is not None and kind == "whole" and default.names:
            default = self.literal(Surroundings(), count, 1)
        return Parameter(name, kind, atom(name, members, names), default)

    def head(self, parameter: Parameter) -> str:
        names = f"<{', '.join(parameter.shape.names)}>" if parameter.kind == "listed" else ""
        default = "" if parameter.default is None else f" = {parameter.default.text}"
        return f"{parameter.name}{names}{default}"

    def change(self, inside: Surroundings, body: list[str], plain: list[str], indent: str = "  ") -> None:
        """Assigns a local again: as a whole, or a member of it."""
        local = self.pick(inside.values)
        operator = self.pick(("=", "+=", "-=", "*="))
        letters = self.letters(local.names, local.count)
        if local.count > 1 and letters and self.chance(2):
            at = self.pick(range(local.count))
            value = self.value(inside, 1, 1)
            body.append(f"{indent}{local.text}@{letters[at]} {operator} {value.text}")
            plain.append(f"{indent}{local.members[at]} {operator} {value.members[0]}")
            return
        value = self.value(inside, local.count, 2)
        if value.names != local.names and (operator == "=" or not local.names):
            value = self.matching(inside, local)
        body.append(f"{indent}{local.text} {operator} {value.text}")
        texts = [f"({value_text})" for value_text in value.members]
        if operator != "=":
            texts = list(made_of(f"({{}} {operator[0]} {{}})", local, value).members)
        fresh = [f"t{self.fresh()}" for _ in texts]
        plain += [f"{indent}{each} = {text}" for each, text in zip(fresh, texts, strict=True)]
        plain += [f"{indent}{each} = {text}" for each, text in zip(local.members, fresh, strict=True)]

    def loop(self, inside: Surroundings, body: list[str], plain: list[str]) -> None:
        variable = f"i{self.fresh()}"
        ends = self.pick(("1 to 3", "0 to 17", "0.5 to clamp(me@x * 5, 0, 4)", "1 to 2"))
        within = replace(inside.also(one(variable)), bare=True, spindles=())
        lines: list[str] = []
        written: list[str] = []
        for _ in range(self.pick((1, 2))):
            self.change(replace(within, values=inside.values), lines, written, "    ")
            local = self.pick(inside.values)
            part = made_of("(sin({} * {}) * 0.5)", self.pick(inside.values[:1]), one(variable))
            if part.count == 1 or (part.count == local.count and (local.names or not part.names)):
                step = made_of("({} * 0.5 + {})", local, part)
                lines.append(f"    {local.text} = {step.text}")
                written += [f"    {each} = {text}" for each, text in zip(local.members, step.members, strict=True)]
        body += [f"  for {variable} in ({ends}) {{", *lines, "  }"]
        plain += [f"  for {variable} in ({ends}) {{", *written, "  }"]

    # --- expressions ----------------------------------------------------------------------------------------------

    def value(self, around: Surroundings, count: int, depth: int) -> Value:
        """A value with this many members."""
        fit = [value for value in around.values if value.count == count]
        if depth <= 0 or (fit and self.chance(4)):
            if fit and self.pick((True, True, False)):
                return self.pick(fit)
            return self.leaf(around) if count == 1 else self.literal(around, count, depth)
        kinds: list[Callable[[Surroundings, int, int], Value]] = [self.operation] * 3 + [self.conditional, self.index]
        kinds += [self.sequence]
        kinds += [self.ones] * 2 if count == 1 else [self.bundle] * 3 + [self.literal]
        if not around.bare:
            kinds += [self.remap, self.memory] + [self.mapped_call] * 2 * bool(around.spindles)
        return self.pick(kinds)(around, count, depth)

    def leaf(self, around: Surroundings) -> Value:
        return one(self.pick(self.pick((NUMBERS, COORDINATES, ("me@x", "me@y", "(me@x * me@y)", "(me@x - me@y)")))))

    def literal(self, around: Surroundings, count: int, depth: int) -> Value:
        items = [self.value(around, 1, depth - 1) for _ in range(count)]
        form = self.pick(("<{}>", "({})"))
        members = [item.members[0] for item in items]
        # Directly inside `<…>`, a `<` would be its end.
        texts = (f"({item.text})" if item.text.startswith("<") else item.text for item in items)
        return atom(form.format(", ".join(texts)), members)

    def operands(self, around: Surroundings, count: int, depth: int, number: int) -> list[Value]:
        """Operands of which at least one has this many members, and the others as many or one."""
        wide = self.pick(range(number))
        return [self.value(around, count if k == wide or self.chance(2) else 1, depth - 1) for k in range(number)]

    def operation(self, around: Surroundings, count: int, depth: int) -> Value:
        form = self.pick(self.pick((OPERATORS, OPERATORS, UNARY, BINARY)))
        return made_of(form, *self.operands(around, count, depth, form.count("{}")))

    def conditional(self, around: Surroundings, count: int, depth: int) -> Value:
        return made_of(self.pick(TERNARY), *self.operands(around, count, depth, 3))

    def remap(self, around: Surroundings, count: int, depth: int) -> Value:
        base, *to = self.operands(around, count, depth, self.pick((2, 3)))
        form = "{}(" + ", ".join(f"{axis} ~ {{}}" for axis in ("me@x", "me@y")[: len(to)]) + ")"
        if base.text.startswith("q") and base in around.values and self.chance(2):
            form = "{}(" + ", ".join("{}" for _ in to) + ")"
        else:
            form = form.replace("{}", "({})", 1)
        return made_of(form, base, *to)

    def memory(self, around: Surroundings, count: int, depth: int) -> Value:
        form = self.pick((*MEMORY, *MEMORY_OF_TWO))
        if not self.remembers(count * (3 if "hold" in form else 1)):
            return self.operation(around, count, depth)
        return made_of(form, *self.operands(around, count, depth, form.count("{}")))

    def index(self, around: Surroundings, count: int, depth: int) -> Value:
        """Members by an index that varies, or by several."""
        base = self.value(around, self.pick((2, 3)), depth - 1)
        # A constant may be out of range, what varies is not.
        forms = f"(fract({{}} + me@x) * {base.count - 0.1})", "(fract(me@x * 3) + {} * 0.01)"
        index = made_of(self.pick(forms), self.value(around, count, depth - 1))
        inner = ", ".join(base.members)
        return self.by_index(f"{base.text}[{{}}]", f"(<{inner}>[{{}}])", index)

    def sequence(self, around: Surroundings, count: int, depth: int) -> Value:
        base = self.value(around, self.pick((2, 3)), depth - 1)
        index = self.value(around, count, depth - 1)
        inner, n = ", ".join(base.members), base.count
        element = f"<{inner}>[({{0}} - {{0}} % 1) % {n}]"
        if self.chance(2):
            return self.by_index(f"seq({base.text}, {{0}})", f"({element})", index)
        after = f"<{inner}>[({{0}} - {{0}} % 1 + 1) % {n}]"
        written = f"({element} + ({{0}} % 1) * ({after} - {element}))"
        return self.by_index(f"smooth_seq({base.text}, {{0}})", written, index)

    def by_index(self, form: str, written: str, index: Value) -> Value:
        def spread(wanted: Names) -> tuple[str, ...]:
            return tuple(written.format(member) for member in index.at(wanted))

        return Value(form.format(index.text), index.count, spread, index.names)

    # --- one strand of a bundle

    def ones(self, around: Surroundings, count: int, depth: int) -> Value:
        return self.pick((self.word, self.word, self.element))(around, depth)

    def element(self, around: Surroundings, depth: int) -> Value:
        base = self.value(around, self.pick((2, 2, 3, 4)), depth - 1)
        at = self.pick(range(base.count))
        letters = self.letters(base.names, base.count)
        names = base.names or letters
        if names and self.chance(2):
            return one(f"{base.text}@{names[at]}", base.members[at])
        return one(f"{base.text}[{at}]", base.members[at])

    def word(self, around: Surroundings, depth: int) -> Value:
        b = self.value(around, self.pick((1, 2, 3)), depth - 1)
        name = self.pick(("sum", "product", "mean", "min", "max", "length", "count", "dot", "distance"))
        if name in ("dot", "distance"):
            other = self.value(around, self.pick((1, b.count)), depth - 1)
            wide = b if b.count > 1 else other
            pairs = list(zip(b.at(wide.places), other.at(wide.places), strict=True))
            written = joined("{} + {}", [f"{one} * {two}" for one, two in pairs])
            if name == "distance":
                written = f"length({', '.join(f'{two} - {one}' for one, two in pairs)})"
            return one(f"{name}({b.text}, {other.text})", f"({written})")
        written = {
            "sum": joined("({} + {})", b.members), "product": joined("({} * {})", b.members),
            "mean": f"({joined('({} + {})', b.members)} / {b.count})", "min": joined("min({}, {})", b.members),
            "max": joined("max({}, {})", b.members), "length": f"length({', '.join(b.members)})",
            "count": str(b.count),
        }[name]  # fmt: skip
        return one(f"{name}({b.text})", written)

    # --- bundles of bundles

    def bundle(self, around: Surroundings, count: int, depth: int) -> Value:
        kinds = [self.swizzle, self.comprehension, self.regrouped, self.unit]
        return self.pick(kinds)(around, count, depth)

    def swizzle(self, around: Surroundings, count: int, depth: int) -> Value:
        base = self.value(around, self.pick((2, 3, 4)), depth - 1)
        letters = self.letters(base.names, base.count)
        if not letters:
            return self.regrouped(around, count, depth)
        places = [self.pick(range(base.count)) for _ in range(count)]
        name = "".join(letters[place] for place in places)
        if name in base.names:
            return self.regrouped(around, count, depth)
        return atom(f"{base.text}@{name}", [base.members[place] for place in places])

    def letters(self, names: Names, count: int) -> Names:
        """The letters that name the members of a bundle in a swizzle; empty if there are none."""
        if not names:
            return tuple(self.pick([letters for letters in POSITIONS[:2] if count <= len(letters)])[:count])
        fits = any(set(names) <= set(letters) for letters in POSITIONS)
        return names if fits else ()

    def comprehension(self, around: Surroundings, count: int, depth: int) -> Value:
        variable, first = f"i{self.fresh()}", self.pick((0, 1, -1))
        item = self.value(around.also(*(one(variable),) * 3), 1, depth - 1)
        planes = self.planes
        members = [re.sub(rf"\b{variable}\b", f"({first + k})", item.members[0]) for k in range(count)]
        self.planes = planes
        start, end = str(first), str(first + count - 1)
        text = f"({item.text})" if item.text.startswith("<") else item.text
        return atom(f"<{text} for {variable} in ({start} to {end})>", members)

    def regrouped(self, around: Surroundings, count: int, depth: int) -> Value:
        if self.chance(2):
            base = self.value(around, count, depth - 1)
            return atom(f"reverse({base.text})", base.members[::-1])
        first = self.value(around, self.pick(range(1, count)), depth - 1)
        second = self.value(around, count - first.count, depth - 1)
        return atom(f"join({first.text}, {second.text})", first.members + second.members)

    def unit(self, around: Surroundings, count: int, depth: int) -> Value:
        base = self.value(around, count, depth - 1)
        if count == 3 and self.chance(2):
            other = self.value(around, count, depth - 1)
            a, b = base.members, other.at(base.places)
            pairs = ((1, 2), (2, 0), (0, 1))
            members = [f"({a[i]} * {b[j]} - {a[j]} * {b[i]})" for i, j in pairs]
            return atom(f"cross({base.text}, {other.text})", members, base.names)
        size = f"length({', '.join(base.members)})"
        members = [f"({member} / select({size} == 0, 1, {size}))" for member in base.members]
        return atom(f"unit({base.text})", members, base.names)

    # --- calls

    def mapped_call(self, around: Surroundings, count: int, depth: int) -> Value:
        """A call that gives this many members, perhaps one for each member of an argument."""
        fit = [s for s in around.spindles if len(s.names) == count]
        simple = [s for s in around.spindles if len(s.names) == 1 and any(p.kind == "one" for p in s.parameters)]
        if count > 1 and simple and (not fit or self.chance(2)):
            return self.call(self.pick(simple), around, depth, mapped=count)
        if not fit:
            return self.operation(around, count, depth)
        return self.call(self.pick(fit), around, depth)

    def call(self, spindle: Spindle, around: Surroundings, depth: int, mapped: int = 1) -> Value:
        """A call; `mapped` is the number of members that parameters may be given which take one strand."""
        ones = [k for k, p in enumerate(spindle.parameters) if p.kind == "one"]
        if not self.remembers(spindle.planes * mapped):
            return self.fallback(spindle, around, depth, mapped)
        wide = self.pick(ones) if mapped > 1 and ones else -1
        given: list[Value] = []
        count = len(spindle.parameters)
        last = count
        while last > 1 and spindle.parameters[last - 1].default is not None and last - 1 != wide and self.chance(2):
            last -= 1
        for k, parameter in enumerate(spindle.parameters[:last]):
            if parameter.kind == "one":
                given.append(self.value(around, mapped if k == wide else 1, depth - 1))
            elif parameter.kind == "only":
                given.append(self.value(around, 1, depth - 1))
            elif parameter.kind == "whole":
                given.append(self.matching(around, parameter.shape))
            else:
                wider = [v for v in around.values if v.count > parameter.shape.count]
                size = self.pick((1, parameter.shape.count, parameter.shape.count))
                given.append(self.pick(wider) if wider and self.chance(3) else self.value(around, size, depth - 1))
        return self.called(spindle, given, wide)

    def called(self, spindle: Spindle, given: Sequence[Value], wide: int) -> Value:
        several = [v for v, p in zip(given, spindle.parameters, strict=False) if p.kind == "one" and v.count > 1]
        shape = next((value for value in several if value.names), several[0] if several else None)
        texts = [value.text for value in given]
        if len(texts) > 1 and self.chance(3):
            texts[-1] = f"{spindle.parameters[len(texts) - 1].name}: {texts[-1]}"
        bound = text = f"{spindle.name}({', '.join(texts)})"
        if ":" not in texts[0] and self.chance(4):
            pipe = f"{texts[0]} |> {spindle.name}({', '.join(texts[1:])})"
            bound, text = "" if pipe[0] in "<(" else pipe, f"({pipe})"

        def written(wanted: Names | None, place: int) -> str:
            found: dict[str, str] = {}
            for k, parameter in enumerate(spindle.parameters):
                members = parameter.shape.members
                value = given[k] if k < len(given) else parameter.default
                assert value is not None
                if k >= len(given):
                    texts = self.fitted(value, parameter)
                    texts = tuple(re.sub(r"\w+", lambda m: found.get(m[0], m[0]), text) for text in texts)
                elif parameter.kind == "one" and wanted is not None:
                    texts = (value.at(wanted)[place],)
                else:
                    texts = self.fitted(value, parameter)
                found.update(zip(members, texts, strict=True))
            return f"{spindle.name}({', '.join(found.values())})"

        if spindle.several:
            def outputs(wanted: Names) -> tuple[str, ...]:
                order = wanted if set(wanted) <= set(spindle.names) else spindle.names[: len(wanted)]
                at = [spindle.written[spindle.names.index(name)] for name in order]
                return tuple(f"{written(wanted if shape else None, k)}@{each}" for k, each in enumerate(at))

            return Value(text, len(spindle.names), outputs, spindle.names, bound if shape is None else "")
        if shape is None:
            names = spindle.names if all(spindle.names) and len(spindle.names) > 1 else ()
            return replace(atom(text, [f"{written(None, 0)}@{each}" for each in spindle.written], names), bound=bound)

        def calls(wanted: Names) -> tuple[str, ...]:
            return tuple(written(wanted, k) for k in range(len(wanted)))

        return Value(text, shape.count, calls, shape.names, bound)

    def fitted(self, value: Value, parameter: Parameter) -> tuple[str, ...]:
        """What the members of a parameter are in a call."""
        names, count = parameter.shape.names, parameter.shape.count
        if value.count == 1:
            return value.members * count
        if names and set(names) <= set(value.names):
            return tuple(value.members[value.names.index(name)] for name in names)
        return value.members[:count]

    def fallback(self, spindle: Spindle, around: Surroundings, depth: int, mapped: int) -> Value:
        return self.value(replace(around, spindles=()), max(len(spindle.names), mapped), depth - 1)

    def matching(self, around: Surroundings, shape: Value) -> Value:
        """A value with as many members as another, and the same names."""
        fit = [value for value in around.values if (value.count, value.names) == (shape.count, shape.names)]
        if fit and (shape.names or self.chance(2)):
            other = self.value(replace(around, values=()), 1, 1)
            return made_of(self.pick(("{}", "({} + {})")), self.pick(fit), other)
        return self.literal(around, shape.count, 1)

    # --- choices --------------------------------------------------------------------------------------------------

    def remembers(self, planes: int) -> bool:
        """Whether so much may still be remembered; if so, it is."""
        if self.planes + planes > _MOST_PLANES:
            return False
        self.planes += planes
        return True

    def fresh(self) -> int:
        self.variables += 1
        return self.variables

    def chance(self, of: int) -> bool:
        """One time in this many."""
        return self.pick(range(of)) == of - 1

    def pick(self, choices: Sequence[T]) -> T:
        return self.choices.pick(choices)


PICTURES: Mapping[str, Sequence[int]] = {"display": (1, 3, 3, 4)}
SOUNDS: Mapping[str, Sequence[int]] = {"play": (1, 2, 2, 3), "audio": (1, 2)}


def bundled(seed: int, attempt: int = 0) -> tuple[str, str]:
    """Picture number `seed` with bundles, and the same written out."""
    return BundleAuthor(Dice(f"bundles {seed}.{attempt}")).program(PICTURES)


def bundled_sound(seed: int, attempt: int = 0) -> tuple[str, str]:
    """Sound number `seed` with bundles, and the same written out."""
    return BundleAuthor(Dice(f"sound of bundles {seed}.{attempt}")).program(SOUNDS)
