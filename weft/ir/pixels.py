"""What a pixel shows: the mean of several samples of the patch, and of the pixels of a picture that is shrunk.

**Samples.** With `me<samples> = N`, what is displayed is evaluated at N × N places in each pixel, and their mean is
shown. Each place has a row and a column of its own among N², so that edges close to upright or level get N² steps.
(Cook, "Stochastic Sampling in Computer Graphics", 1986, calls this n-rooks; the order here is fixed, so that nothing
flickers.) What is remembered is evaluated once, in the middle of the pixel.

**Levels.** How far apart neighbouring pixels of the screen read a picture follows from the derivatives of its
coordinates. They are taken symbolically, since a coordinate is an expression. The distance gives a level: the picture
itself is level 0, and each further level has half its width and height (`weft.sources.PictureLevels`). Between levels,
values are mixed. (Williams, "Pyramidal Parametrics", SIGGRAPH 1983.) This is done where the derivatives are the same in
a whole row, column or frame, as in all that moves, turns or scales a picture. Elsewhere they would have to be computed
at every pixel, which costs more than the picture: it is read as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import log2

from weft.ir.census import Census, TrackedRewrites
from weft.ir.expr import Expr, ExprBuilder, LoopShape, LoopValue, Lowered, PicturePlane, rewrite, topological
from weft.ir.rates import PassContext, Rate, remainder_of
from weft.names import is_file, levels_of
from weft.ops import formula as f
from weft.ops.formula import Term
from weft.sources import PictureLevels

# Where a picture is read: its coordinates and its name.
_Reading = tuple[tuple[Expr, ...], str]


def _expr(term: Term) -> Expr:
    value = term.value
    assert isinstance(value, Expr)
    return value


# --- samples ---


def take_samples(lowered: Lowered, context: PassContext) -> Lowered:
    """Makes each output of a picture the mean of its samples: a loop over their numbers, around all other loops."""
    if context.samples == 1 or not context.spec.sweeps_plane or not lowered.outputs:
        return lowered
    sampling = _Sampling(context)
    shown = [sampling.at_sample(output.value) for output in lowered.outputs]
    means = iter(sampling.means([value for value in shown if value.free & 1]))
    values = [next(means) if value.free & 1 else value for value in shown]
    outputs = tuple(replace(output, value=made) for output, made in zip(lowered.outputs, values, strict=True))
    return replace(lowered, outputs=outputs)


class _Sampling:
    """One run of the pass. The loop over samples has level 0, and those in it move one up."""

    def __init__(self, context: PassContext) -> None:
        self._pool, self._count = context.pool, context.samples
        self._builder = ExprBuilder(context.pool)
        self._moved: dict[Expr, Expr] = {}
        count = self._count
        number = Term(self._builder, self._pool.make("loop_index", (), 0))
        row = f.floor(number / count)
        column = number - row * count
        # Places in a pixel, −½…½.
        offsets = (column + (row + 0.5) / count) / count - 0.5, (row + (count - 0.5 - column) / count) / count - 0.5
        self._places = {
            axis: _expr(Term(self._builder, self._pool.make("coord", (), axis)) + offset / self._uniform(size))
            for axis, size, offset in zip("xy", ("width", "height"), offsets, strict=True)
        }

    def _uniform(self, name: str) -> Term:
        return Term(self._builder, self._pool.make("uniform", (), name))

    def at_sample(self, value: Expr) -> Expr:
        """An expression at the place of a sample."""
        for node in topological([value], self._moved):
            if node not in self._moved:
                self._moved[node] = self._moved_node(node)
        return self._moved[value]

    def _moved_node(self, node: Expr) -> Expr:
        args = tuple(self._moved[arg] for arg in node.args)
        match node.op, node.attr:
            case "strand", _ if not node.free:
                return node  # fetched for the middles of all pixels at once
            case "coord", ("x" | "y") as axis:
                return self._places[axis]
            case _, LoopShape(level, carried):
                return self._pool.make(node.op, args, LoopShape(level + 1, carried), node.span)
            case _, LoopValue(level, k):
                return self._pool.make(node.op, args, LoopValue(level + 1, k), node.span)
            case "loop_index", int(level):
                return self._pool.make(node.op, args, level + 1, node.span)
        return self._pool.with_args(node, args)

    def means(self, values: Sequence[Expr]) -> Iterator[Expr]:
        """The means of values over all samples, each as it is shown: 0…1."""
        make, shape, last = self._pool.make, LoopShape(0, len(values)), float(self._count**2 - 1)
        nexts: list[Expr] = []
        for k, value in enumerate(values):
            sample = Term(self._builder, value)
            # NaN stays NaN.
            seen = f.select(f.lt(1.0, sample), 1.0, f.select(f.lt(sample, 0.0), 0.0, sample))
            nexts.append(_expr(Term(self._builder, make("loop_value", (), LoopValue(0, k))) + seen))
        const = self._builder.const
        loop = make("loop", (const(0.0), const(last), *[const(0.0)] * len(values), *nexts), shape)
        for k in range(len(values)):
            yield _expr(Term(self._builder, make("loop_out", (loop,), k)) * (1 / self._count**2))


# --- levels ---


def filter_shrunk(lowered: Lowered, context: PassContext) -> Lowered:
    """Reads pictures from files at the level at which their pixels are as large as those of the screen."""
    if not context.spec.sweeps_plane or "picture" not in context.pool.ops:
        return lowered
    known = context.known(lambda: TrackedRewrites(census=Census({"picture"}, _is_of_file)), "shrink", lowered.slots)
    known.follow(lowered)
    if not known.census.found:
        return lowered
    planes: dict[_Reading, set[int]] = {}
    for node in known.census.found:
        if isinstance(node.attr, PicturePlane):
            planes.setdefault((node.args, node.attr.picture), set()).add(node.attr.plane)
    shrinking = _Shrinking(lowered, context, {reading: sorted(found) for reading, found in planes.items()})
    known.compare(shrinking.facts(known.census.found))
    return rewrite(lowered, context.pool, ("picture",), shrinking.change, known=known)


def _is_of_file(node: Expr) -> bool:
    """Whether an expression reads a picture from a file."""
    return isinstance(node.attr, PicturePlane) and is_file(node.attr.picture)


class _Folding(ExprBuilder):
    """Makes expressions that are as simple as possible: factors and terms of 0 are dropped."""

    def op(self, name: str, /, *args: Expr) -> Expr:
        zero = self.const(0.0)
        if (name == "mul" and zero in args) or (name == "div" and args[0] is zero):
            return zero
        return self.folded(name, *args)


@dataclass
class _Shrinking:
    """One run of the pass. `planes` are those that are read at each place."""

    lowered: Lowered
    context: PassContext
    planes: Mapping[_Reading, Sequence[int]]
    _read: dict[_Reading, Expr | None] = field(default_factory=dict)
    """The loops over levels, by what they read."""

    def __post_init__(self) -> None:
        self.builder = _Folding(self.context.pool)
        several = self.context.samples > 1
        shown = topological([output.value for output in self.lowered.outputs]) if several else ()
        self._sampled = {node for node in shown if node.free & 1}
        """The expressions that differ from sample to sample, if there are several samples."""
        make = self.context.pool.make
        self._slopes = [
            Slopes(self.builder, axis, make("uniform", (), size), self._is_steady)
            for axis, size in (("x", "width"), ("y", "height"))
        ]

    def facts(self, nodes: Iterable[Expr]) -> Mapping[Expr, object]:
        """The facts that results for reads of pictures depend on, apart from the expressions themselves."""
        return {
            node: (tuple(self.planes[node.args, node.attr.picture]), self._differs(node.args))
            for node in nodes if isinstance(node.attr, PicturePlane)
        }  # fmt: skip

    def _differs(self, args: tuple[Expr, ...]) -> bool:
        """Whether a place differs from sample to sample."""
        return any(arg in self._sampled for arg in args)

    def change(self, node: Expr, args: tuple[Expr, ...]) -> Expr:
        """The value of a picture at a place; `args` are the replacements of its coordinates."""
        pool, place = self.context.pool, node.attr
        plain = pool.with_args(node, args)
        if not isinstance(place, PicturePlane):
            return plain
        reading = node.args, place.picture
        if reading not in self.planes:
            return plain
        if reading not in self._read:
            self.builder.at(node.span)
            self._read[reading] = self._levels(place.picture, args, self.planes[reading])
        loop = self._read[reading]
        if loop is None:
            return plain
        return pool.make("loop_out", (loop,), 1 + self.planes[reading].index(place.plane), node.span)

    def _levels(self, picture: str, args: tuple[Expr, ...], planes: Sequence[int]) -> Expr | None:
        """A loop over the levels that are read, none if the picture is not shrunk; None if it is never filtered. It
        carries 2 to the power of 1 − k for level k, and the values of the planes so far."""
        header = self.context.media.get(picture)
        levels = PictureLevels(header.width, header.height) if header else PictureLevels(1, 1)
        level = self._level(args, levels) if levels.count else None
        if level is None:
            return None
        pool, op = self.context.pool, self.builder.folded
        one = self.builder.const(1.0)
        first = op("max", op("floor", level), one)
        last = op("neg", op("floor", op("neg", level)))
        number = max((part.free.bit_length() for part in (*args, first, last)), default=0)
        shape = LoopShape(number, 1 + len(planes))
        k = Term(self.builder, pool.make("loop_index", (), number))
        carried = (pool.make("loop_value", (), LoopValue(number, at)) for at in range(shape.carried))
        scale, *values = (Term(self.builder, value) for value in carried)
        place = self._place(levels, args, k, scale)
        weight = f.max(f.min(Term(self.builder, level) - (k - 1), 1.0), 0.0)
        nexts = [_expr(scale * 0.5)]
        for plane, value in zip(planes, values, strict=True):
            found = Term(self.builder, pool.make("picture", place, PicturePlane(levels_of(picture), plane)))
            nexts.append(_expr(value + (found - value) * weight))
        starts = [op("exp2", op("sub", one, first))]
        starts += [pool.make("picture", args, PicturePlane(picture, plane)) for plane in planes]
        return pool.make("loop", (first, last, *starts, *nexts), shape, self.builder.span)

    def _place(self, levels: PictureLevels, args: tuple[Expr, ...], k: Term, scale: Term) -> tuple[Expr, Expr]:
        """The place on level k that corresponds to a place in the picture; `scale` is 2 to the power of 1 − k."""
        u, v = (f.max(f.min(Term(self.builder, arg), 1.0), 0.0) for arg in args)
        (across, down), whole = levels.together, float(levels.whole[1])
        x = (u * (levels.width / 2) * scale + 1.0) / float(across)
        above = whole + 1 - scale * whole + (k - 1) * 2.0
        y = (v * (levels.height / 2) * scale + above) / float(down)
        return _expr(x), _expr(y)

    def _level(self, args: tuple[Expr, ...], levels: PictureLevels) -> Expr | None:
        """The level whose pixels are as large as the steps, from 0 to the last one; None if that differs from pixel to
        pixel, or is not known."""
        squares: list[Term] = []
        for slopes in self._slopes:
            total = Term(self.builder, self.builder.const(0.0))
            for coordinate, pixels in zip(args, (levels.width, levels.height), strict=True):
                slope = slopes.of(coordinate)
                if slope is None:
                    return None
                step = Term(self.builder, slope) * float(pixels)
                total = total + step * step
            screen = Term(self.builder, slopes.size)
            squares.append(total / (screen * screen))
        level = f.log2(f.max(*squares)) * 0.5
        if self._differs(args):
            level = level - log2(self.context.samples)
        found = _expr(f.min(f.max(level, 0.0), float(levels.count)))  # a step that is NaN is none
        if found.free or self.context.rate_of(found, self.lowered) == Rate.ELEMENT:
            return None
        return found

    def _is_steady(self, value: Expr) -> bool:
        """Whether an expression is the same in a whole frame, and in all steps of loops."""
        return not value.free and self.context.rate_of(value, self.lowered) <= Rate.FRAME


@dataclass
class Slopes:
    """The derivatives of expressions with respect to one coordinate of the screen, which is `size` pixels long.
    `is_steady` says whether an expression is the same in a whole frame."""

    builder: _Folding
    axis: str
    size: Expr
    is_steady: Callable[[Expr], bool]
    _known: dict[Expr, Expr | None] = field(default_factory=dict)

    def of(self, value: Expr) -> Expr | None:
        """The derivative of an expression, where it has one; None if it is not known. Jumps are left out if they are
        rarer than pixels, or come at irregular distances. Between jumps, a remainder is as steep as its first operand,
        and a floor is level. A floor that jumps at every pixel, such as the number of the pixel, is as steep as its
        operand."""
        for node in topological([value], self._known):
            if node not in self._known:
                self._known[node] = self._found(node)
        return self._known[value]

    def _found(self, node: Expr) -> Expr | None:
        zero = self.builder.const(0.0)
        if node.op == "coord":
            return self.builder.const(1.0) if node.attr == self.axis else zero
        slopes = [self._known[arg] for arg in node.args]
        if node.op not in ("loop_value", "state", "loop") and all(slope is zero for slope in slopes):
            return zero
        if node.op == "floor" and (slopes[0] is None or not self.is_steady(slopes[0])):
            return zero
        known = [slope for slope in slopes if slope is not None]
        return self._composed(node, known) if len(known) == len(slopes) else None

    def _composed(self, node: Expr, slopes: Sequence[Expr]) -> Expr | None:
        """The derivative of an operation from those of its operands."""
        term = [Term(self.builder, arg) for arg in node.args]
        slope = [Term(self.builder, each) for each in slopes]
        made = Term(self.builder, node)
        match node.op:
            case "sub" if remainder_of(node) is not None:
                return slopes[0]
            case "add" | "sub" | "neg":
                return self.builder.folded(node.op, *slopes)
            case "mul":
                return _expr(slope[0] * term[1] + term[0] * slope[1])
            case "div":
                return _expr((slope[0] - made * slope[1]) / term[1])
            case "mod":
                return slopes[0]
            case "floor":
                step = f.abs(slope[0]) / Term(self.builder, self.size)
                return _expr(f.select(f.lt(step, 1.0), 0.0, slope[0]))
            case "abs":
                return _expr(f.select(f.lt(term[0], 0.0), -slope[0], slope[0]))
            case "min" | "max":
                first = f.lt(*term) if node.op == "min" else f.lt(term[1], term[0])
                return _expr(f.select(first, slope[0], slope[1]))
            case "select":
                return self.builder.folded("select", node.args[0], *slopes[1:])
            case "sin":
                return _expr(slope[0] * f.cos(term[0]))
            case "cos":
                return _expr(-slope[0] * f.sin(term[0]))
            case "exp":
                return _expr(slope[0] * made)
            case "sqrt":
                return _expr(slope[0] / (made * 2.0))
            case _:
                return None
