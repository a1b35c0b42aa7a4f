"""Random programs for hypothesis, as text: everything that the language has, in meaningful combinations.

All arithmetic in them has one right answer to the bit, so that two ways to compute a program can be compared exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

NUMBERS = ("0", "1", "0.5", "2", "3.25", "(-1.5)", "1e-3", "7")
COORDINATES = ("me@x", "me@y", "me@time", "me@px", "me@frame", "me@channel", "mouse@x", "me@beatphase")
OPERATORS = ("+", "-", "*", "/", "%", "<", ">=", "==", "and", "or")
UNARY = ("-{}", "not {}", "floor({})", "fract({})", "abs({})", "sign({})", "hash({})", "saturate({})",
         "clamp({}, lo: -1)")  # fmt: skip
BINARY = ("min({}, {})", "max({}, {}, 1)", "step({}, {})")
TERNARY = ("if {} then {} else {}", "select({}, {}, {})", "mix({}, {}, {})", "clamp({}, {}, {})")
FEEDBACK = ("prev({})", "integrate({})", "phasor({})", "delay({}, 2, 4)")
STATE = (*FEEDBACK, "hold({}, {})", "delay({}, {}, 3)")


@dataclass(frozen=True)
class Spindle:
    name: str
    params: int
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class Surroundings:
    """What an expression may mention. `strands` are single values, `groups` several at once."""

    strands: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    later: tuple[str, ...] = ()
    """Names that are bound further down, which only state may read."""
    spindles: tuple[Spindle, ...] = ()
    state: bool = True

    def also(self, *names: str) -> Surroundings:
        return replace(self, strands=(*self.strands, *names))


@dataclass
class Author:
    """Writes one program."""

    draw: Callable[[Any], Any]
    lines: list[str] = field(default_factory=list)

    def program(self) -> str:
        count = self.number(2, 5)
        names = [f"v{k}" for k in range(count)]
        around = Surroundings(later=tuple(f"{name}@v" for name in names))
        for k in range(self.number(0, 3)):
            around = replace(around, spindles=(*around.spindles, self.spindle(f"f{k}", around)))
        for k, name in enumerate(names):
            around = self.instance(name, k, around)
        shown = ", ".join(self.expression(around, 2) for _ in range(3))
        self.lines.append(f"display({shown})")
        return "\n".join(self.lines) + "\n"

    def instance(self, name: str, k: int, around: Surroundings) -> Surroundings:
        self.lines.append(f"{name}<v> = {self.expression(around, 3)}")
        around = around.also(self.pick((name, f"{name}@v")))
        if self.number(0, 2) == 0:
            pair = f"g{k}"
            single = [s for s in around.spindles if len(s.outputs) > 1]
            if single:
                self.lines.append(f"{self.call(self.pick(single), around, 2)}::{pair}<a, b>")
            else:
                self.lines.append(f"{pair}<a, b> = <({self.expression(around, 2)}), ({self.expression(around, 2)})>")
            if self.number(0, 1):
                self.lines.append(f"h{k}<a, b> = {pair} * {self.expression(around, 1)} + {pair}")
                pair = f"h{k}"
            around = replace(around.also(f"{pair}@a", f"{pair}@b"), groups=(*around.groups, pair))
        return around

    # --- spindles -------------------------------------------------------------------------------------------------

    def spindle(self, name: str, around: Surroundings) -> Spindle:
        made = Spindle(name, self.number(1, 3), self.pick((("o",), ("o", "p"))))
        params = [f"p{k}" for k in range(made.params)]
        names = [f"l{k}" for k in range(self.number(0, 2))]
        names += made.outputs
        inside = Surroundings(tuple(params), later=tuple(names), spindles=around.spindles)
        body: list[str] = []
        for k, assigned in enumerate(names):
            body.append(f"{'out ' * (assigned in made.outputs)}{assigned} = {self.expression(inside, 2)}")
            inside = replace(inside.also(assigned), later=tuple(names[k + 1 :]))
        body += [self.pick((self.loop, self.change))(inside) for _ in range(self.number(0, 2))]
        self.lines.append(f"spindle {name}({', '.join(params)}) :: <{', '.join(made.outputs)}> {{")
        self.lines += [f"  {line}" for line in body] + ["}"]
        return made

    def change(self, inside: Surroundings) -> str:
        return f"{self.pick(inside.strands)} {self.pick(('=', '+=', '-=', '*='))} {self.expression(inside, 2)}"

    def loop(self, inside: Surroundings, depth: int = 0) -> str:
        variable = "ij"[depth]
        kind = self.pick(("short", "long", "varying"))
        if kind == "varying":
            inside = replace(inside, state=False, spindles=())
            ends = f"{self.pick(('0', '1', '0.5'))} to clamp({self.expression(inside, 1)}, 0, 4)"
        else:
            ends = {"short": "1 to 3", "long": "0 to 18"}[kind]
            inside = inside if kind == "short" else replace(inside, state=False, spindles=())
        within = inside.also(variable)
        steps = [self.change_outside(within, variable) for _ in range(self.number(1, 2))]
        if depth == 0 and self.number(0, 3) == 0:
            steps.append(self.loop(within, 1))
        return f"for {variable} in ({ends}) {{ {'; '.join(steps)} }}"

    def change_outside(self, within: Surroundings, variable: str) -> str:
        """An assignment to anything but the variables of loops."""
        named = [name for name in within.strands if name not in ("i", "j")]
        return f"{self.pick(named)} {self.pick(('=', '+='))} {self.expression(within, 2)}"

    # --- expressions ----------------------------------------------------------------------------------------------

    def expression(self, around: Surroundings, depth: int) -> str:
        kinds = [self.leaf]
        if depth > 0:
            kinds += [self.leaf, self.operation, self.operation, self.remap, self.element]
            kinds += [self.spindle_call] * bool(around.spindles) + [self.memory] * around.state
        return str(self.pick(kinds)(around, depth))

    def leaf(self, around: Surroundings, depth: int) -> str:
        return str(self.pick(self.pick([p for p in (NUMBERS, COORDINATES, around.strands, around.strands) if p])))

    def operation(self, around: Surroundings, depth: int) -> str:
        form = self.pick(self.pick((UNARY, BINARY, TERNARY, ("{} {op} {}",) * 2)))
        return f"({self.filled(form, around, depth)})"

    def filled(self, form: str, around: Surroundings, depth: int) -> str:
        parts = [self.expression(around, depth - 1) for _ in range(form.count("{}"))]
        if "{op}" in form:
            return f"({parts[0]}) {self.pick(OPERATORS)} ({parts[1]})"
        return form.format(*(f"({part})" for part in parts))

    def remap(self, around: Surroundings, depth: int) -> str:
        base = self.pick((*around.strands, f"({self.expression(around, depth - 1)})"))
        if base in ("i", "j"):
            base = f"({base})"
        axes = self.pick((("me@x",), ("me@y",), ("me@x", "me@y"), ("me@px",), ("me@time",)))
        return f"{base}({', '.join(f'{axis} ~ {self.expression(around, depth - 1)}' for axis in axes)})"

    def element(self, around: Surroundings, depth: int) -> str:
        index = self.pick(("0", "1", f"fract({self.expression(around, depth - 1)}) * 2"))
        if around.groups and self.number(0, 1):
            return f"{self.pick(around.groups)}[{index}]"
        return f"(<({self.expression(around, depth - 1)}), ({self.expression(around, depth - 1)})>[{index}])"

    def spindle_call(self, around: Surroundings, depth: int) -> str:
        spindle = self.pick(around.spindles)
        output = self.pick(spindle.outputs)
        return f"{self.call(spindle, around, depth)}@{output}"

    def call(self, spindle: Spindle, around: Surroundings, depth: int) -> str:
        return f"{spindle.name}({', '.join(self.expression(around, depth - 1) for _ in range(spindle.params))})"

    def memory(self, around: Surroundings, depth: int) -> str:
        if around.later and self.number(0, 2) == 0:
            return self.feedback(around, depth)
        return self.filled(self.pick(STATE), around, depth)

    def feedback(self, around: Surroundings, depth: int) -> str:
        ahead = replace(around, strands=(*around.strands, *around.later), later=())
        return self.filled(self.pick(FEEDBACK), ahead, depth)

    # --- choices --------------------------------------------------------------------------------------------------

    def number(self, low: int, high: int) -> int:
        return int(self.draw(st.integers(low, high)))

    def pick(self, choices: Sequence[Any]) -> Any:
        return self.draw(st.sampled_from(list(choices)))


@st.composite
def feedback_texts(draw: Any) -> tuple[str, str]:
    """A spindle that looks ahead to its own output, and one that is handed what it is bound to instead."""
    author, around = Author(draw), Surroundings(("x",), later=("v",))
    value = f"{author.feedback(around, 3)} {author.pick(OPERATORS)} ({author.expression(around, 3)})"
    shown = "display(a, a + 1, a * me@y)\n"
    return (
        f"spindle f(x) :: v {{ v = {value} }}\na = f(me@x)\n{shown}",
        f"spindle f(v, x) :: o {{ o = {value} }}\na = f(a, me@x)\n{shown}",
    )


@st.composite
def program_texts(draw: Any) -> str:
    """A program with three strands to display."""
    return Author(draw).program()
