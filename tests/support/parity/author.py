"""Writes programs at random, as text: a program for each seed, the same one every time.

An expression is a `Piece`. It has the approximate interval of its values, so that its user can bring them to where they
matter (`Author.fitted`); its cost, so that programs stay small; and whether it remembers, since a map of the time must
not reach memory.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from tests.support.parity.pieces import (  # fmt: skip
    CONSTANTS, FIELDS, INPUTS, MAPPED, MAPS_OF_PLACES, MAPS_OF_TIME, PARAMETERS, PICTURE, PLACES, SETTINGS, SOUND,
    Piece, Spindle, Surroundings
)
from tests.support.parity.recipes import RESULTS, UNIT, WRITTEN, Interval, operand
from weft.ops import STATE, OpSpec

T = TypeVar("T")

EXPENSIVE = 60.0
"""Rows that cost more are written seldom, and one in a program at most."""


@dataclass
class Author:
    """Writes one program. `left` is what its remaining parts may cost, in additions."""

    rng: random.Random
    left: float = 45
    expensive: bool = True
    """Whether an expensive row may still be written."""
    lines: list[str] = field(default_factory=list)
    statements: Sequence[int] = (0, 1, 1, 2, 3)
    """How many statements it may have besides spindles and the output."""

    def program(self, outputs: Sequence[str], counts: Sequence[int]) -> str:
        """The text of a program that ends in one of these statements, with one of these numbers of values."""
        if self.chance(0.15):
            self.lines.append(self.pick(SETTINGS))
        around = self.templates(self.given())
        for k in range(self.pick(self.statements)):
            around = self.statement(k, around)
        made = [*around.strands]
        for spindle in around.spindles:
            call = self.call(spindle, around, 1)
            made += [replace(call, text=f"{call.text}@{output}") for output in spindle.outputs]
        self.rng.shuffle(made)
        shown = [self.fitted(piece, UNIT) for piece in self.results(around, made, self.pick(counts))]
        self.lines.append(f"{self.pick(outputs)}({', '.join(piece.text for piece in shown)})")
        return "\n".join(self.lines) + "\n"

    def templates(self, around: Surroundings) -> Surroundings:
        for k in range(self.pick((0, 0, 1, 1, 2))):
            around = replace(around, spindles=(*around.spindles, self.spindle(f"f{k}", around.spindles)))
        return around

    def results(self, around: Surroundings, made: list[Piece], count: int) -> list[Piece]:
        """What the program gives out; see `shown`."""
        return [self.shown(around, made) for _ in range(count)]

    # --- statements -----------------------------------------------------------------------------------------------

    def given(self) -> Surroundings:
        """Parameters, pictures and sounds."""
        strands: list[Piece] = []
        if self.chance(0.2):
            form, outputs = self.pick(PARAMETERS)
            self.lines.append(form.format("knob"))
            strands += [Piece(f"knob@{output}") for output in outputs]
        if self.chance(0.25):
            first, second = self.rng.sample("rgba", 2)
            if first == "a":
                self.lines.append(f'load("{SOUND}"{", loop: 1" if second == "r" else ""})::snd<l, r>')
                strands += [Piece(f"snd@{output}", Interval(-1, 1), cost=30) for output in "lr"]
            else:
                self.lines.append(f'load("{PICTURE}")::img<r, g, b, a>')
                strands += [Piece(f"img@{output}", cost=20) for output in (first, second)]
        return Surroundings(tuple(strands))

    def statement(self, k: int, around: Surroundings) -> Surroundings:
        write = self.pick((self.single, self.single, self.feedback, self.pair, self.instance, self.cached, self.copies))
        return write(k, around)

    def single(self, k: int, around: Surroundings) -> Surroundings:
        piece = self.expression(around, 3)
        form, name = self.pick((("v{}<v> = {}", "v{}@v"), ("v{} = {}", "v{}"), ("let v{}<v> = {}", "v{}@v")))
        self.lines.append(form.format(k, piece.text))
        return around.also(replace(piece, text=name.format(k)))

    def feedback(self, k: int, around: Surroundings) -> Surroundings:
        """A strand that is made of itself, and stays where it is."""
        piece = self.fitted(self.expression(around, 2), UNIT)
        me = f"t{k}@v"
        turn = self.pick((
            f"max({piece.text}, prev({me}) * 0.9)", f"mix({piece.text}, prev({me}), 0.75)",
            f"fract(prev({me}) + {piece.text} * 0.125)", f"({piece.text} + delay({me}, 2, 2) * 0.5)",
            f"sin(integrate({me}) + {piece.text})", f"mix({piece.text}, prev({me})(me@x ~ me@x * 0.9 + 0.05), 0.5)",
            f"mix({piece.text}, delay({me}, max(1, {piece.text} * 3), 3), 0.5)",
            f"phasor({piece.text} + {me})", f"(1 - prev({me})(me@x ~ 1 - me@x, me@y ~ {piece.text}))",
        ))  # fmt: skip
        self.lines.append(f"t{k}<v> = {turn}")
        return around.also(Piece(me, UNIT, piece.cost + 12, True))

    def pair(self, k: int, around: Surroundings) -> Surroundings:
        a, b = self.expression(around, 2), self.expression(around, 2)
        self.lines.append(f"g{k}<a, b> = <{a.text}, {b.text}>")
        both = Piece("", a.interval.joined(b.interval), a.cost + b.cost, a.remembers or b.remembers)
        name = f"g{k}"
        if self.chance(0.4):
            extra = self.fitted(self.expression(around, 1), UNIT)
            self.lines.append(f"h{k}<a, b> = {name} * {extra.text} + {name}")
            name, interval = f"h{k}", Interval(min(0, both.interval.low * 2), max(0, both.interval.high * 2))
            both = Piece("", interval, both.cost + extra.cost + 2, both.remembers or extra.remembers)
        found = around.also(replace(both, text=f"{name}@a"), replace(both, text=f"{name}@b"))
        return replace(found, groups=(*found.groups, (name, both)))

    def instance(self, k: int, around: Surroundings) -> Surroundings:
        """Several outputs from one call, or one from a remap."""
        several = [spindle for spindle in around.spindles if len(spindle.outputs) > 1]
        if not several:
            piece = self.remap(around, 2)
            if piece.text.startswith("("):  # no statement does
                self.lines.append(f"r{k} = {piece.text}")
                return around.also(replace(piece, text=f"r{k}"))
            self.lines.append(f"{piece.text}::r{k}<v>")
            return around.also(replace(piece, text=f"r{k}@v"))
        call = self.call(self.pick(several), around, 2)
        self.lines.append(f"{call.text}::c{k}<a, b>")
        return around.also(replace(call, text=f"c{k}@a"), replace(call, text=f"c{k}@b"))

    def cached(self, k: int, around: Surroundings) -> Surroundings:
        piece = self.fitted(self.expression(around, 2), UNIT)
        depth = self.pick((2, 4))
        self.lines += [f"w{k}<v> = {piece.text}", f"cache(w{k}, {depth})::k{k}<v>"]
        back = self.fitted(self.expression(around, 1), operand(STATE["cache"], 0))
        past = f"k{k}@v(k{k}@k ~ {back.text})"
        return around.also(Piece(past, UNIT, piece.cost + back.cost + 6, True))

    def copies(self, k: int, around: Surroundings) -> Surroundings:
        """Several calls of a spindle with one output."""
        one = [spindle for spindle in around.spindles if len(spindle.outputs) == 1 and spindle.cost < 20]
        if not one:
            return self.single(k, around)
        spindle = self.pick(one)
        args = [self.expression(around, 1) for _ in range(spindle.params)]
        args[0] = Piece(f"<{self.leaf(around).text}, {self.number(Interval(-2, 2)).text}>")
        self.lines.append(f"{spindle.name}<2>({', '.join(arg.text for arg in args)})::m{k}<a, b>")
        cost = 2 * spindle.cost + sum(arg.cost for arg in args)
        remembers = spindle.remembers or any(arg.remembers for arg in args)
        return around.also(*(Piece(f"m{k}@{o}", spindle.interval, cost, remembers) for o in "ab"))

    # --- spindles -------------------------------------------------------------------------------------------------

    def spindle(self, name: str, others: Sequence[Spindle]) -> Spindle:
        params = tuple(f"p{k}" for k in range(self.pick((1, 2, 2, 3))))
        outputs = self.pick((("o",), ("o", "p")))
        inside = Surroundings(tuple(Piece(p, Interval(-1, 1)) for p in params), spindles=tuple(others), template=True)
        body: list[str] = []
        local = self.expression(inside, 2)
        body.append(f"l = {local.text}")
        inside = inside.also(replace(local, text="l"))
        made: list[Piece] = []
        for output in outputs:
            piece = self.fitted(self.expression(inside, 2), Interval(-1, 2))
            body.append(f"out {output} = {piece.text}")
            made.append(piece)
        cost = local.cost + sum(piece.cost for piece in made)
        remembers = local.remembers or any(piece.remembers for piece in made)
        if self.chance(0.6):
            loop, added = self.loop(inside.also(*(Piece(o, Interval(-1, 2)) for o in outputs)), outputs)
            body.append(loop)
            cost, remembers = cost + added.cost, remembers or added.remembers
        elif self.chance(0.4):
            more = self.expression(inside, 1)
            body.append(f"{self.pick(outputs)} {self.pick(('+=', '-=', '*='))} {more.text}")
            cost, remembers = cost + more.cost, remembers or more.remembers
        head = f"spindle {name}({', '.join(params)}) :: {'o' if outputs == ('o',) else '<o, p>'} {{"
        self.lines += [head, *(f"  {line}" for line in body), "}"]
        interval = Interval(-1, 2)
        for piece in made:
            interval = interval.joined(piece.interval)
        return Spindle(name, len(params), outputs, interval, cost, remembers)

    def loop(self, inside: Surroundings, outputs: Sequence[str], variable: str = "i") -> tuple[str, Piece]:
        """A loop that brings an output towards what each step computes, and what its steps cost and remember."""
        steps, ends = self.pick(((3, "1 to 3"), (17, "0 to 16"), (4, None), (4, None)))
        bare = ends is None or steps > 16
        inside = replace(inside, bare=bare or inside.bare, spindles=() if bare else inside.spindles)
        if ends is None:
            last = self.fitted(self.operation(inside, 1), Interval(0, 4))
            ends = f"{self.pick(('0', '1', '0.5'))} to clamp({last.text}, 0, 4)"
        within = inside.also(Piece(variable, Interval(0, steps)))
        target = self.pick(outputs)
        piece = self.fitted(self.operation(within, 1), Interval(-1, 1))
        turn = self.pick((
            f"{target} += {piece.text}", f"{target} = {target} * 0.5 + {piece.text}",
            f"{target} += {piece.text} / ({variable} + 1)", f"{target} = min({target}, {piece.text} * {variable})",
        ))  # fmt: skip
        cost = steps * (piece.cost + 3)
        if variable == "i" and steps < 17 and self.chance(0.25):
            nested, added = self.loop(replace(within, bare=True, spindles=()), outputs, "j")
            turn, cost = f"{turn}; {nested}", cost + steps * added.cost
        return f"for {variable} in ({ends}) {{ {turn} }}", Piece("", cost=cost, remembers=piece.remembers)

    # --- expressions ----------------------------------------------------------------------------------------------

    def shown(self, around: Surroundings, made: list[Piece]) -> Piece:
        """Something that is worth displaying, if possible of what was `made` before, which is taken away from there."""
        self.left = max(self.left, 12)
        piece = self.operation(around, 3) if self.chance(0.6) else self.expression(around, 4)
        if not made and self.chance(0.5):
            return piece
        other = self.fitted(made.pop() if made else self.operation(around, 1), piece.interval)
        form = self.pick(("mix({}, {}, 0.5)", "({} * 0.6 + {} * 0.4)", "mix({}, {}, me@y)", "({} * me@x + {} * me@y)"))
        remembers = piece.remembers or other.remembers
        return Piece(form.format(piece.text, other.text), piece.interval, piece.cost + other.cost + 3, remembers)

    def expression(self, around: Surroundings, depth: int) -> Piece:
        if depth <= 0 or self.left <= 0 or self.chance(0.12):
            return self.leaf(around)
        if around.bare:
            return self.operation(around, depth)
        kinds: list[tuple[float, Callable[[Surroundings, int], Piece]]] = [
            (7, self.operation), (1, self.remap), (1.5, self.memory), (0.6, self.element), (0.5, self.condition)
        ]  # fmt: skip
        if around.spindles:
            kinds.append((4, self.spindle_call))
        (write,) = self.rng.choices([write for _, write in kinds], [weight for weight, _ in kinds])
        return write(around, depth)

    def leaf(self, around: Surroundings) -> Piece:
        kind = self.rng.random()
        if around.strands and kind < 0.45:
            affordable = [piece for piece in around.strands if piece.cost <= max(self.left, 20)]
            if affordable:
                piece = self.pick(affordable)
                self.left -= piece.cost * 0.3
                return piece
        if kind < 0.82:
            return self.pick(PLACES)
        if kind < 0.91:
            return self.pick(FIELDS)
        if kind < 0.94:
            return self.pick(INPUTS)
        return self.pick(CONSTANTS) if kind < 0.95 else self.number(Interval(-3, 3))

    def number(self, interval: Interval) -> Piece:
        """A number, which single precision holds exactly half of the time."""
        value = round(self.rng.uniform(*interval) * 4) / 4 if self.chance(0.5) else self.rng.uniform(*interval)
        text = f"{value:.4g}"
        return Piece(f"({text})" if text.startswith("-") else text, Interval(value, value))

    def operation(self, around: Surroundings, depth: int) -> Piece:
        """A row of the table, on operands where they matter."""
        rows = [row for row in WRITTEN.values() if row.cost <= EXPENSIVE or (self.expensive and not around.bare)]
        row = self.rng.choices(rows, [_weight(row) for row in rows])[0]
        self.left -= row.cost
        if row.cost > EXPENSIVE:
            self.expensive = False
        count = len(row.params) + (self.pick((0, 0, 1, 2)) if row.variadic else 0)
        required = sum(param.default is None for param in row.params)
        count = self.pick(range(required, count + 1)) if count > required and not row.variadic else count
        operands = [self.operand(row, k, around, depth) for k in range(count)]
        interval = RESULTS[row.name]
        if row.name in ("min", "max", "mix", "select"):
            interval = operands[-1].interval.joined(operands[-2].interval)
        cost = row.cost + sum(piece.cost for piece in operands)
        if row.name == "fbm":
            operands, cost = self.few_octaves(operands), cost / 3
        return Piece(self.written(row, operands), interval, cost, any(piece.remembers for piece in operands))

    def few_octaves(self, operands: list[Piece]) -> list[Piece]:
        """Eight octaves of noise, which varying ones need, would take as long as twenty programs."""
        if self.chance(0.05):
            return operands
        while len(operands) < 3:
            operands.append(Piece("0"))
        return [*operands[:3], Piece(self.pick(("1", "2", "1.5")))]

    def operand(self, row: OpSpec, k: int, around: Surroundings, depth: int) -> Piece:
        piece = self.expression(around, depth - 1)
        if row.type_of_operand(k) == "bool":
            return self.truth(piece)
        if self.chance(0.03):  # beyond what is worth trying: infinities and what is no number
            return piece
        fitted = self.fitted(piece, operand(row, k), row.usual.strict)
        return replace(fitted, text=f"floor({fitted.text})") if row.usual.whole else fitted

    def truth(self, piece: Piece) -> Piece:
        """True for some values and false for others; now and then the piece itself, which is true where it is not 0."""
        if self.chance(0.25):
            return piece
        middle = (piece.interval.low + piece.interval.high) / 2
        text = f"({piece.text} {self.pick(('<', '>=', '>>', '<='))} {middle:.3g})"
        return Piece(text, UNIT, piece.cost + 1, piece.remembers)

    def written(self, row: OpSpec, operands: Sequence[Piece]) -> str:
        texts = [piece.text for piece in operands]
        names = row.call_names
        if row.symbols and (not names or self.chance(0.8)):
            symbol = self.pick(row.symbols)
            if len(texts) == 1:
                return f"({symbol} {texts[0]})" if symbol.isalpha() else f"({symbol}{texts[0]})"
            return f"({texts[0]} {symbol} {texts[1]})"
        if not row.variadic and self.chance(0.15):  # labelled, from some operand on
            first = self.rng.randrange(len(texts))
            texts[first:] = [f"{row.params[k].name}: {texts[k]}" for k in range(first, len(texts))]
        return f"{self.pick(names)}({', '.join(texts)})"

    def condition(self, around: Surroundings, depth: int) -> Piece:
        c = self.truth(self.expression(around, depth - 1))
        a, b = self.expression(around, depth - 1), self.expression(around, depth - 1)
        self.left -= 1
        return Piece(f"(if {c.text} then {a.text} else {b.text})", a.interval.joined(b.interval),
                     1 + a.cost + b.cost + c.cost, a.remembers or b.remembers or c.remembers)  # fmt: skip

    def remap(self, around: Surroundings, depth: int) -> Piece:
        base = self.pick([p for p in around.strands if p.cost < 60] or [self.expression(around, depth - 1)])
        text = base.text if "(" not in base.text and "@" in base.text and "me@" not in base.text else f"({base.text})"
        axes = self.pick(MAPS_OF_PLACES if base.remembers or around.template or self.chance(0.7) else MAPS_OF_TIME)
        to = [self.fitted(self.expression(around, depth - 2), MAPPED.get(axis, UNIT)) for axis in axes]
        self.left -= base.cost
        maps = ", ".join(f"{axis} ~ {piece.text}" for axis, piece in zip(axes, to, strict=True))
        remembers = base.remembers or any(piece.remembers for piece in to)
        return Piece(f"{text}({maps})", base.interval, base.cost + sum(piece.cost for piece in to), remembers)

    def element(self, around: Surroundings, depth: int) -> Piece:
        index = self.fitted(self.expression(around, depth - 1), Interval(0, 1.9), strict=True)
        if index.interval.width == 0:
            index = Piece(self.pick(("0", "1")))
        if around.groups and self.chance(0.5):
            name, both = self.pick(around.groups)
            return replace(both, text=f"{name}[{index.text}]", remembers=both.remembers or index.remembers)
        a, b = self.expression(around, depth - 1), self.expression(around, depth - 1)
        return Piece(f"(<{a.text}, {b.text}>[{index.text}])", a.interval.joined(b.interval),
                     a.cost + b.cost + index.cost, a.remembers or b.remembers or index.remembers)  # fmt: skip

    def spindle_call(self, around: Surroundings, depth: int) -> Piece:
        spindle = self.pick(around.spindles)
        if spindle.cost > max(self.left, 60):
            return self.leaf(around)
        call = self.call(spindle, around, depth)
        return replace(call, text=f"{call.text}@{self.pick(spindle.outputs)}")

    def call(self, spindle: Spindle, around: Surroundings, depth: int) -> Piece:
        args = [self.expression(around, depth - 1) for _ in range(spindle.params)]
        self.left -= spindle.cost
        remembers = spindle.remembers or any(arg.remembers for arg in args)
        text = f"{spindle.name}({', '.join(arg.text for arg in args)})"
        return Piece(text, spindle.interval, spindle.cost + sum(arg.cost for arg in args), remembers)

    def memory(self, around: Surroundings, depth: int) -> Piece:
        name = self.pick([name for name in STATE if name != "cache"])
        spec = STATE[name]
        e = self.fitted(self.expression(around, depth - 1), operand(spec, 0))
        second = self.fitted(self.expression(around, depth - 2), operand(spec, 1))
        self.left -= 6
        if name == "image":
            return Piece(f"image({e.text}{self.pick(('', ', 1', ', 2', ', level: 5'))})", e.interval, e.cost + 6, True)
        text = {
            "delay": f"delay({e.text}, {self.pick((second.text, '2', '1.5'))}, 3)",
            "hold": f"hold({e.text}, {self.trigger(second)})",
        }.get(name, f"{name}({e.text})")
        interval = UNIT if name == "phasor" else e.interval.joined(Interval(0, 0))
        cost = e.cost + second.cost * (name in ("delay", "hold")) + 6
        return Piece(text, interval, cost, True)

    def trigger(self, piece: Piece) -> str:
        """What changes now and then, or nowhere, though it varies from place to place."""
        return self.pick((f"floor({piece.text})", "floor(me@time * 30)", "floor(mouse@x * 3)", "(me@x * 0.3 + me@y)"))

    def fitted(self, piece: Piece, wanted: Interval, strict: bool = False) -> Piece:
        """The piece, brought to about where its values are wanted."""
        there = piece.interval
        if wanted.contains(there) or (not strict and wanted.covers_much_of(there)):
            return piece
        if there.width == 0:
            return self.number(wanted)
        low, high = wanted
        text, interval = piece.text, there
        if self.chance(0.15):
            text, interval = f"fract({text})", UNIT
        scale = (high - low) / interval.width
        start = low - interval.low * scale
        text = f"({text} * {scale:.3g} {'+' if start >= 0 else '-'} {abs(start):.3g})"
        return Piece(text, wanted, piece.cost + 2, piece.remembers)

    # --- choices --------------------------------------------------------------------------------------------------

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def pick(self, choices: Sequence[T]) -> T:
        return choices[int(self.rng.random() * len(choices))]


@dataclass
class VoiceAuthor(Author):
    """Writes a sound. What it plays comes from loops and from memory: spindles with several outputs, of which some
    remember and others do not, and loops that change all of them in one step."""

    left: float = 8
    statements: Sequence[int] = (0, 0, 0, 0, 1, 1, 2)

    def templates(self, around: Surroundings) -> Surroundings:
        if self.chance(0.1):
            around = replace(around, spindles=(self.spindle("f0", ()),))
        for k in range(self.pick((1, 1, 1, 1, 2))):
            around = replace(around, spindles=(*around.spindles, self.voice(f"v{k}", around.spindles)))
        return around

    def results(self, around: Surroundings, made: list[Piece], count: int) -> list[Piece]:
        self.left = max(self.left, 3)
        voice = around.spindles[-1]
        call = self.call(voice, around, 1)
        names = [f"h@{output}" for output in voice.outputs]
        if self.chance(0.8):
            self.lines.append(f"{call.text}::h<{', '.join(voice.outputs)}>")
            heard = replace(call, text=f"({' + '.join(names)})" if self.chance(0.9) else self.pick(names))
        else:
            heard = replace(call, text=f"{call.text}@{self.pick(voice.outputs)}")
        if not heard.remembers or self.chance(0.5):
            heard = self.remembered(heard)
        others = super().results(around, made, count - 1)
        if self.chance(0.3):
            other = self.shown(around, made)
            form = self.pick(("({} + {} * 0.5)", "({} - {})", "({} * (1 + {}))"))
            heard = Piece(form.format(heard.text, other.text), heard.interval.joined(other.interval), remembers=True)
        return [heard, *others]

    def voice(self, name: str, others: Sequence[Spindle]) -> Spindle:
        """A spindle whose outputs go through loops. A memory may feed them, be one of them, or be fed by them."""
        params = tuple(f"p{k}" for k in range(self.pick((1, 2, 2))))
        outputs = self.pick((("o",), ("o", "p"), ("o", "p"), ("o", "p", "q")))
        around = Surroundings(tuple(Piece(p, Interval(-1, 1)) for p in params), spindles=tuple(others), template=True)
        body: list[str] = []
        remembers = False
        if self.chance(0.4):
            local = self.remembered(self.leaf(around)) if self.chance(0.7) else self.expression(around, 1)
            body.append(f"l = {local.text}")
            around, remembers = around.also(replace(local, text="l")), local.remembers
        for output in outputs:
            start = self.start(around, output, outputs)
            body.append(f"out {output} = {start.text}")
            around, remembers = around.also(Piece(output, Interval(-1, 2))), remembers or start.remembers
        for variable in self.pick(("i", "i", "i", "ik")):
            lines, has_memory = self.steps(around, outputs, variable, short=variable == "k" or self.chance(0.1))
            body.append(lines)
            remembers = remembers or has_memory
        if self.chance(0.4):
            target, fed = self.pick(outputs), self.remembered(Piece(self.pick(outputs), Interval(-1, 2)))
            body.append(f"{target} {self.pick(('=', '+=', '-='))} {fed.text}")
            remembers = True
        head = f"spindle {name}({', '.join(params)}) :: <{', '.join(outputs)}> {{"
        self.lines += [head, *(f"  {line}" for line in body), "}"]
        return Spindle(name, len(params), outputs, Interval(-2, 3), 20, remembers)

    def start(self, around: Surroundings, output: str, outputs: Sequence[str]) -> Piece:
        """What an output is before the loops: something of the parameters, or the outputs after them."""
        piece = self.expression(around, 1)
        later = outputs[outputs.index(output) :]
        kind = self.rng.random()
        if kind < 0.35:
            return piece
        if kind < 0.5:
            return self.remembered(piece)
        if kind < 0.6:
            return self.number(Interval(-1, 1))
        # A name that is assigned further down means its value after the last statement.
        text = self.pick((
            "prev({0})", "prev({0}) * 0.7", "{1} * 0.1 + prev({0}) * 0.5", "delay({0}, 2, 3) * 0.6", "integrate({0})",
            "phasor({0})", "delay({0}, max(1, {1} * 3), 3) * 0.5", "mix({1}, prev({0}), 0.3)",
        ))  # fmt: skip
        return Piece(text.format(self.pick(later), piece.text), remembers=True)

    def remembered(self, piece: Piece) -> Piece:
        """A memory that is fed by something."""
        text = self.pick((
            "prev({0})", "prev({0})", "delay({0}, 2, 3)", "delay({0}, 2.5, 3)", "delay(0.3, max(1, {0} * 3), 3)",
            "delay({0}, 3 * me@beatphase, 3)", "integrate({0})", "phasor({0})", "phasor({0} * 300)",
            "hold({0}, floor(me@time * 9e3))", "hold(me@time, floor({0} * 3))",
        ))  # fmt: skip
        return Piece(text.format(piece.text), piece.interval.joined(UNIT), piece.cost + 6, True)

    def steps(
        self,
        around: Surroundings,
        outputs: Sequence[str],
        variable: str,
        outer: str = "",
        written_out: bool = True,
        short: bool = True,
    ) -> tuple[str, bool]:
        """A loop that changes some of the outputs, and whether a step of it remembers; it may if this loop and those
        around it, whose variable is `outer`, are `written_out`. It is `short` if it may have few constant steps."""
        ends, constant = self.ends(around, outer, written_out, short)
        written_out = written_out and constant
        within = replace(around.also(Piece(variable, Interval(0, 4))), bare=True)
        lines: list[str] = []
        remembers = False
        targets = [*outputs, *("t" * self.chance(0.2))]
        for target in self.rng.sample(targets, self.pick(range(1, len(targets) + 1))):
            term = self.term(within)
            if written_out and self.chance(0.5):
                term = self.remembered(term) if self.chance(0.5) else self.expression(replace(within, bare=False), 1)
                remembers = remembers or term.remembers
            form = self.pick((
                "{0} += {1} * 0.1", "{0} += {1} * 0.1", "{0} = {0} * 0.5 + {1} * 0.25", "{0} -= 0.1", "{0} = {1}",
                "{0} = mix({0}, {2}, 0.25)", "{0} = min({0}, {1})", "{0} = (if {2} < {1} then {0} else 0.3)",
                "s = {0}; {0} = {2}; {2} = s",
            ))  # fmt: skip
            lines.append(form.format(target, term.text, self.pick(outputs)))
        if not outer and self.chance(0.3):
            nested, has_memory = self.steps(within, outputs, "j", variable, written_out)
            lines.insert(self.pick(range(len(lines) + 1)), nested)
            remembers = remembers or has_memory
        text = f"for {variable} in ({ends}) {{ {'; '.join(lines)} }}"
        # A name that is first assigned in a loop exists after it.
        return f"{text}; {self.pick(outputs)} += t * 0.1" if "t" in targets and " t " in text else text, remembers

    def ends(self, around: Surroundings, outer: str, written_out: bool, short: bool) -> tuple[str, bool]:
        """The ends of a loop, and whether they are constant and close to each other, so that its steps are written
        out. Memory may give the ends of a loop where the loops around it are `written_out`."""
        if short and self.chance(0.35):
            return self.pick(("1 to 2", "1 to 2", "0.5 to 3")), True
        kind = self.rng.random()
        if kind < 0.2:
            return self.pick(("1 to 17", "0 to 16", "0.5 to 18", "-8 to 9")), False
        if kind < 0.4:  # the same at all samples
            return self.pick(("1 to me@width / 9", "0 to me@channel * 3", "me@width / 37 to 3")), False
        if outer and kind < 0.6:
            return self.pick((f"0 to {outer}", f"{outer} to 2", f"1 to {outer} * 0.5 + 1")), False
        name = self.pick((around.strands[0], self.pick(around.strands))).text
        ends = (
            f"1 to min({name} * 4, 5)", f"0 to clamp({name} * 3, 0, 4)", "1 to me@y * 60", f"max({name}, -2) to 2",
            "fract(me@time * 99) to 3", "0 to mouse@x * 4", "0 to me@sample % 4",
        )  # fmt: skip
        fed = (
            f"0 to min(prev({name}) * 3, 4)", f"1 to 2 + fract(integrate({name}))",
            f"max(delay({name}, 2, 3), -2) to 2",
        )  # fmt: skip
        return self.pick((*ends, *fed) if written_out else ends), False

    def term(self, within: Surroundings) -> Piece:
        """What a step computes."""
        if self.chance(0.2):
            return self.fitted(self.operation(within, 1), Interval(-1, 1))
        a, b = self.pick(within.strands), self.pick((*within.strands, *PLACES, Piece("fract(me@time * 99)")))
        text = self.pick((
            "clamp({} * {}, -2, 2)", "sin({} + {})", "({} + {} * 0.5)", "fract({} * 1.5 + {})", "abs({} - {})",
            "max({}, {})", "{}", "cos({} * {} * 40)",
        ))  # fmt: skip
        return Piece(text.format(a.text, b.text), Interval(-1, 1), 4)


def _weight(row: OpSpec) -> float:
    """How often a row is written: less often what costs much, and what gives nothing but 1 and 0."""
    if row.cost > EXPENSIVE:
        return 0.1 if row.cost < 300 else 0.06
    return 0.4 if row.gives == "bool" else 1


def program(seed: int, attempt: int = 0) -> str:
    """Program number `seed`, which displays 1, 3 or 4 values. A few are refused, since an index or a map turns out to
    be out of place: these have further attempts."""
    author = Author(random.Random(f"{seed}.{attempt}"))
    return author.program(("display", "display", "render"), (1, 1, 3, 3, 4))


def sound(seed: int, attempt: int = 0) -> str:
    """Sound number `seed`, which plays 1 or 2 values."""
    return Author(random.Random(f"sound {seed}.{attempt}")).program(("play", "audio"), (1, 2))


def voice(seed: int, attempt: int = 0) -> str:
    """Sound number `seed` of those that come from loops and memory."""
    return VoiceAuthor(random.Random(f"voice {seed}.{attempt}")).program(("play", "audio"), (1, 1, 1, 1, 2))
