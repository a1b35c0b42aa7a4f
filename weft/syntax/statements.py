"""Builds statements of the syntax tree from matches of the grammar, and checks what each form demands by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from parsimonious.nodes import Node

from weft.errors import Diagnostic, Report, Span
from weft.syntax import hints
from weft.syntax.ast import Assignment, Binding, CallBinding, Expression, Ident, Number, OutputStatement, Setting, Unary
from weft.syntax.expressions import ExpressionBuilder
from weft.syntax.tokens import NUMBER, Tokens, shorten

MAX_COUNT: Final = 64


@dataclass(frozen=True, slots=True)
class SpindleHead:
    """`spindle name(parameters) :: <outputs> {`."""

    name: Ident
    parameters: tuple[Ident, ...]
    outputs: tuple[Ident, ...]
    doc: str | None


@dataclass(frozen=True, slots=True)
class LoopHead:
    """`for variable in (first to last) {`."""

    variable: Ident
    first: Expression
    last: Expression


def has_duplicates(names: Sequence[Ident], what: Literal["output", "parameter"], report: Report) -> bool:
    """Whether a name stands twice in a list; if so, that is reported."""
    seen: dict[str, Ident] = {}
    for name in names:
        if first := seen.get(name.name):
            related = ((first.span, "it stands here first"),)
            message = f"the {what} `{shorten(name.name)}` stands twice in this list"
            report.add([Diagnostic("error", f"duplicate-{what}", message, name.span, related=related)])
        seen.setdefault(name.name, name)
    return len(seen) < len(names)


class StatementBuilder:
    """Builds the statements of one text. Where a method gives None, it has reported an error."""

    def __init__(self, tokens: Tokens, report: Report) -> None:
        self._tokens = tokens
        self._report = report
        self._expressions = ExpressionBuilder(tokens, report)

    def binding(self, node: Node) -> Binding | None:
        """`name<outputs> = expression`, at the top level."""
        _, name, outputs, becomes, value, _ = node.children
        op = self._tokens.text(becomes.start)
        if self._tokens.kinds[node.start] == "O":
            place = self._tokens.span(node.start)
            self._report.error("misplaced-out", "`out` stands only in a spindle", place, "leave it out")
            return None
        if op != "=":
            message = f"`{op}` works only in a spindle; out here a name has one value"
            self._report.error("misplaced-assignment", message, self._tokens.span(becomes.start))
            return None
        idents = self._outputs(outputs.children[0]) if outputs.children else None
        expression = self._expressions.expression(value)
        return Binding(self._ident(name.start), idents, expression, self._span(node), self._doc(node))

    def assignment(self, node: Node) -> Assignment | None:
        """`name op expression`, in a spindle."""
        intro, name, outputs, becomes, value, _ = node.children
        if outputs.children:
            place = self._tokens.span(outputs.start, outputs.end - 1)
            hint = "a local may name a bundle: c = <1, 2, 3>, and then c[0]"
            self._report.error("outputs-in-spindle", "in a spindle, a name takes no output list", place, hint)
            return None
        op = self._tokens.text(becomes.start)
        word = self._tokens.text(node.start) if intro.children else None
        if word and op != "=":
            place = self._tokens.span(becomes.start)
            self._report.error("misplaced-assignment", f"`{word}` goes with `=`, not `{op}`", place)
            return None
        expression = self._expressions.expression(value)
        return Assignment(self._ident(name.start), op, expression, self._span(node), word == "out")

    def setting(self, node: Node) -> Setting | None:
        """`me<field> = number`."""
        *_, value, _ = node.children
        place = self._tokens.span(value.start, value.end - 1)
        number = _signed_literal(self._expressions.expression(value))
        if number is None:
            message = "a setting takes a plain number"
            self._report.error("setting-not-a-number", message, place, "such as me<bpm> = 120")
            return None
        return Setting(self._ident(node.start + 2), number, place, self._span(node))

    def call(self, node: Node) -> CallBinding | OutputStatement | None:
        """`f(x)::name<outputs>`, `f<3>(x)::name<…>`, a bound remap or access, or an output statement."""
        _, count, postfixes, bound, _ = node.children
        forms = [postfix.children[0] for postfix in postfixes.children]
        if bound.children:
            return self._call_binding(node, bound.children[0])
        if count.children:
            hint = f"such as {self._tokens.span(node.start, count.end - 1).text}(…)::name<a, b>"
            self._report.error("unbound-multi-call", "a multi-call is bound with `::`", self._span(node), hint)
            return None
        if len(forms) > 1 or forms[0].expr_name != "arguments":
            self._report_loose_chain(node, forms)
            return None
        head = self._tokens.span(node.start)
        return OutputStatement(head.text, self._expressions.output_arguments(forms[0]), self._span(node), head)

    def spindle(self, node: Node) -> SpindleHead:
        """The head of a spindle."""
        _, name, _, parameters, _, _, results, _ = node.children
        idents = self._names(parameters.start, parameters.end)
        has_duplicates(idents, "parameter", self._report)
        return SpindleHead(self._ident(name.start), idents, self._outputs(results), self._doc(node))

    def loop(self, node: Node) -> LoopHead:
        """The head of a loop."""
        _, variable, _, _, first, _, last, _, _ = node.children
        first_value, last_value = self._expressions.expression(first), self._expressions.expression(last)
        return LoopHead(self._ident(variable.start), first_value, last_value)

    # --- parts ---

    def _call_binding(self, node: Node, bound: Node) -> CallBinding | None:
        _, count, postfixes, _, _ = node.children
        _, name, output_list = bound.children
        outputs = self._outputs(output_list)
        if postfixes.children[-1].children[0].expr_name == "index":
            hint = f"write {self._tokens.text(name.start)}<{outputs[0].name}> = …"
            place = self._tokens.span(bound.start)
            self._report.error("misplaced-binding", "`::` binds a call or a remap, not an element", place, hint)
            return None
        number, count_span = None, None
        if count.children:
            count_span = self._tokens.span(count.start + 1, count.end - 2)
            number = self._count(count.start + 1, count_span, postfixes)
            if number is None:
                return None
        value = self._expressions.chain(node.start, postfixes.children)
        ident = self._ident(name.start)
        return CallBinding(value, ident, outputs, self._span(node), number, count_span, self._doc(node))

    def _count(self, first: int, place: Span, postfixes: Node) -> int | None:
        """The 3 of `f<3>(x)::name<a, b, c>`."""
        forms = [postfix.children[0].expr_name for postfix in postfixes.children]
        if forms != ["arguments"]:
            message = "a multi-call takes one list of arguments and nothing behind it"
            self._report.error("bad-multi-call", message, place)
            return None
        value = float(self._tokens.text(first)) if self._tokens.kinds[first] == NUMBER else 0.0
        if not (value.is_integer() and 1 <= value <= MAX_COUNT):
            message = f"the count of a multi-call is a whole number from 1 to {MAX_COUNT}"
            self._report.error("bad-count", message, place)
            return None
        return int(value)

    def _report_loose_chain(self, node: Node, forms: list[Node]) -> None:
        behind = next((f for f in forms[1:] if self._tokens.fresh[f.start]), None)
        if behind:
            bracket = self._tokens.text(behind.start)
            message = f"a line that starts with `{bracket}` continues the line above"
            self._report.error("continued-line", message, self._tokens.span(behind.start), hints.STATEMENT)
        else:
            self._report.error("not-a-statement", "this value is not used", self._span(node), hints.USE)

    def _outputs(self, node: Node) -> tuple[Ident, ...]:
        """The names of `<a, b>`, or of `a` alone."""
        is_list = self._tokens.kinds[node.start] == "<"
        names = self._names(node.start + 1, node.end - 1) if is_list else self._names(node.start, node.end)
        has_duplicates(names, "output", self._report)
        return names

    def _names(self, first: int, behind: int) -> tuple[Ident, ...]:
        """The names of a list with commas."""
        return tuple(self._ident(index) for index in range(first, behind, 2))

    def _ident(self, index: int) -> Ident:
        return Ident(self._tokens.text(index), self._tokens.span(index))

    def _span(self, node: Node) -> Span:
        return self._tokens.span(node.start, node.end - 1)

    def _doc(self, node: Node) -> str | None:
        return self._tokens.docs.get(self._tokens.starts[node.start])


def _signed_literal(value: Expression) -> float | None:
    if isinstance(value, Unary) and value.op == "-" and isinstance(value.operand, Number):
        return -value.operand.value
    return value.value if isinstance(value, Number) else None
