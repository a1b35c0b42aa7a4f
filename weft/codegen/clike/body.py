"""Writes the values of a program as statements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from math import nan, pi
from types import MappingProxyType

from weft.codegen.clike.bounds import Bounds
from weft.codegen.clike.expressions import ExpressionText, applied, assignment, literal
from weft.codegen.clike.language import CodeLine, Language, ProgramParts
from weft.codegen.clike.literals import bits_text
from weft.codegen.clike.memory import name_rings, write_asked, write_picture, write_sample, write_state
from weft.codegen.clike.names import Identifiers, remark
from weft.codegen.clike.plan import VariablePlan
from weft.codegen.clike.read import ElementProgram
from weft.codegen.clike.steps import Steps
from weft.codegen.values import Node, Note, Scalar
from weft.ops import OPS
from weft.ops.spec import ValueType

# The waves that are counted in half turns, and those of the language.
WAVES: Mapping[str, str] = MappingProxyType({"sinpi": "sin", "cospi": "cos"})

TYPES: Mapping[ValueType, str] = MappingProxyType({"real": "float", "truth": "bool", "bits": "uint"})

# What a value is called that has no name, by what it is.
_HINTS: Mapping[str, str] = MappingProxyType({
    "sinpi": "sine", "cospi": "cosine", "sin": "sine", "cos": "cosine", "sqrt": "root", "mul": "product",
    "div": "ratio", "add": "sum", "sub": "difference", "select": "choice", "min": "least", "max": "most",
    "bits_of": "whole", "bits_xor": "mixed", "bits_mul": "mixed", "bits_add": "mixed", "bits_top": "hash",
    "picture": "colour", "state": "past", "sample": "past",
})  # fmt: skip


class ShaderWriter:
    """Writes one program. `parts` collects what the statements refer to."""

    def __init__(self, language: Language, parts: ProgramParts, program: ElementProgram, plan: VariablePlan) -> None:
        self.language = language
        self.parts = parts
        self.program = program
        self.plan = plan
        self.bounds = Bounds(parts.kernel, program)
        given = (text for name, _ in parts.kernel.coords for text in (f"me_{name}", f"all_{name}"))
        targets = (f"values_{at}" for at in range(1, len(parts.kernel.outputs)))
        own = ("frame", "main", "stopped", "met_limit", *given, *targets)
        self.names = Identifiers({*language.taken, *language.function_names, *own})
        self.rings = name_rings(self.names, parts.kernel, language.ring)
        self.depth = 0
        self.steps = Steps(self)
        self._variables: dict[Node, str] = {}
        self._shared: dict[object, str] = {}
        self._told: set[tuple[str, int]] = set()

    # Statements.

    def write(self, nodes: Iterable[Node]) -> None:
        """Writes those of these nodes that have a variable, and their loops."""
        for node in nodes:
            if node.op == "loop":
                self.steps.write_loop(node)
            elif node in self.plan.in_place:
                self._advance(node, self.plan.in_place[node])
            elif node in self.plan.kept:
                self.declare(node, self.name_of(node), self.made(node).text)

    def declare(self, node: Node, name: str, text: str) -> None:
        self.tell(node)
        self.line(f"{TYPES[node.kind]} {name} = {text};", node)
        self._variables[node] = name

    def _advance(self, node: Node, carried: Node) -> None:
        """Computes what follows a carried value into its variable."""
        self.tell(node)
        self.line(f"{assignment(self._variables[carried], self.made(node))};", node)
        self._variables[node] = self._variables[carried]

    def tell(self, node: Node) -> None:
        """Writes the line of the patch that a value comes from, unless it stands there already."""
        note = self.plan.owners.get(node)
        if note is None or not note.line or (note.source, note.line) in self._told:
            return
        self._told.add((note.source, note.line))
        self.line(f"// {note.line}: {remark(note.text)}", node)

    def line(self, text: str, node: Node | None = None) -> None:
        note = self.plan.owners.get(node) if node is not None else None
        place = f"{note.source}:{note.line}" if note is not None and note.line else ""
        self.parts.body.append(CodeLine(text, self.depth, place))

    # Names.

    def name_of(self, node: Node) -> str:
        """A new name for a value."""
        note = self.program.notes.get(node)
        return self.names.new(note.name if note is not None else self._part_name(node))

    def _part_name(self, node: Node) -> str:
        owner = self.plan.owners.get(node)
        hint = _HINTS.get(node.op, node.op)
        if node.op == "min" and any(arg.op == "max" for arg in node.args):
            hint = "clamped"
        return f"{owner.name}_{hint}" if owner is not None else hint

    def keep(self, node: Node, name: str) -> None:
        """From now on a value has this name."""
        self._variables[node] = name

    def owner(self, node: Node) -> Note | None:
        return self.plan.owners.get(node)

    # Expressions.

    def value(self, node: Node) -> ExpressionText:
        """A value where it is used: its name, or what it is made of."""
        if node in self._variables:
            return ExpressionText(self._variables[node])
        return self.made(node)

    def real(self, node: Node) -> str:
        return self.value(node).text

    def made(self, node: Node) -> ExpressionText:
        """What a value is made of."""
        row = OPS.get(node.op)
        if row is not None:
            return self._row(node)
        match node.op:
            case "const":
                return literal(self.language.real(node.attr))
            case "bits":
                return ExpressionText(bits_text(node.attr))
            case "scalar":
                return self._scalar(node)
            case "line":
                return ExpressionText(self._coordinate(node.attr.key))
            case "loop_out":
                return self.value(node.args[0].attr.carried[node.attr])
            case "state":
                return write_state(self, node)
            case "sample":
                return write_sample(self, node)
            case "picture":
                return write_picture(self, node)
            case "asked":
                return write_asked(self, node)
        raise TypeError(f"nothing is written for {node.op}")

    def _row(self, node: Node) -> ExpressionText:
        args = [self.value(arg) for arg in node.args]
        found = self._pattern(node, args)
        if found is not None:
            return found
        spelling = self.language.spelling(OPS[node.op])
        if node.op == "div" and node.args[1].op == "const" and node.args[1].attr == 0:
            # Some drivers draw nothing at all where they find a division by 0.
            spelling, args = "*", [args[0], literal(self.language.infinite(node.args[1].attr))]
        return self._called(spelling, args)

    def _pattern(self, node: Node, args: list[ExpressionText]) -> ExpressionText | None:
        """What is written otherwise than operation by operation."""
        if node.op in ("min", "max"):
            known = [arg.op == "const" and arg.attr == arg.attr for arg in node.args]
            zero_before = known[0] and not known[1] and node.args[0].attr == 0
            if any(known) and not zero_before:
                # The language's own, which gives its first operand where the second is NaN, or equal to it.
                return applied(self.language.word(node.op), args if known[0] else args[::-1])
        if node.op == "mod" and node.args[1].op == "const":
            if node.args[1].attr == 1:
                return self._called("fraction", args[:1])
            if node.args[1].attr == 0:
                return literal(self.language.real(nan))  # drivers may look at the division by 0 all the same
        if node.op in WAVES and self.bounds.size(node.args[0]) <= self.language.plain_waves:
            return applied(self.language.word(WAVES[node.op]), [applied("*", [literal(self.language.real(pi)), *args])])
        if node.op == "sub" and node.args[1].op == "floor" and node.args[1].args[0] is node.args[0]:
            whole = node.args[1]
            if self.language.has_fract and whole not in self._variables:
                return applied("fract", args[:1])
        if node.op == "mul" and any(_is_zero(arg) for arg in node.args):
            # Compilers take it that this is 0, and what is divided by it with it.
            factor = args[1] if _is_zero(node.args[0]) else args[0]
            return applied("*", [self._called("nothing_of", [factor]), factor])
        if node.op in ("sub", "div") and node.args[0] is node.args[1]:
            return self._called("nothing_of" if node.op == "sub" else "one_of", args[:1])
        ratio = node.args[0]
        if node.op == "floor" and ratio.op == "div" and ratio not in self._variables and self.language.whole_ratio:
            return self._called(self.language.whole_ratio, [self.value(arg) for arg in ratio.args])
        return None

    def _called(self, function: str, args: list[ExpressionText]) -> ExpressionText:
        self.call(function)
        return applied(self.language.word(function), args)

    def call(self, function: str) -> None:
        """Notes that a function is called."""
        if function in self.language.function_names:
            self.parts.helpers.add(function)

    def _scalar(self, node: Node) -> ExpressionText:
        scalar: Scalar = node.attr
        origin = ""
        match scalar:
            case Scalar("local", int(number)):
                note = self.program.given.get(number)
                name = origin = self.parts.kernel.locals[number].name
                if note is not None:
                    name = note.name
                elif name.endswith("…") or len(name) < 2:
                    owner = self.plan.owners.get(node)
                    name = owner.name if owner is not None else "given"
            case _:
                name = origin = str(scalar.key)
        text = self.parts.frame.read(scalar, name, scalar.kind, origin)
        return ExpressionText(f"{text} != 0u", 45, "!=") if scalar.kind == "truth" else ExpressionText(text)

    def _coordinate(self, key: str | int) -> str:
        name = str(key)
        if name not in self.parts.coords:
            self.parts.coords.append(name)
        return f"me_{name}"

    def shared(self, key: object, kind: str, name: str, text: str) -> str:
        """The name of something that several values are taken from; declared when it is first asked for."""
        if key not in self._shared:
            made = self.names.new(name)
            self.line(f"{kind} {made} = {text};")
            self._shared[key] = made
        return self._shared[key]

    @contextmanager
    def block(self) -> Iterator[None]:
        """What is written within it is indented, and not seen from outside."""
        outside, self._shared = self._shared, dict(self._shared)
        self.depth += 1
        yield
        self.depth -= 1
        self._shared = outside


def as_real(value: ExpressionText, node: Node) -> str:
    """A value as a real: a truth as 1 or 0."""
    return f"float({value.text})" if node.kind == "truth" else value.text


def _is_zero(node: Node) -> bool:
    return node.op == "const" and node.attr == 0
