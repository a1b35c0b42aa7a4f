"""Builds expressions of the syntax tree from matches of the grammar. Recursion follows brackets and `if`s alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import dropwhile
from typing import Final, NamedTuple

from parsimonious.nodes import Node

from weft.errors import Diagnostic, Report, Span
from weft.syntax import hints
from weft.syntax.ast import Access, Argument, Bundle, Call, Expression, Index, Map, Name, Number, Remap, Text
from weft.syntax.precedence import Operand, Row
from weft.syntax.scanner import text_value
from weft.syntax.tokens import GLUED, NUMBER, TEXT, Tokens, shorten

# The coordinates that people name without their `me@`.
_COORDINATES: Final = ("x", "y", "time")


class _Given(NamedTuple):
    """One argument as it stands in the text: `value`, `label: value` or `value ~ mapped`."""

    value: Operand
    mapped: Operand | None
    label: str | None
    label_span: Span | None

    @property
    def span(self) -> Span:
        first = self.label_span or self.value.span
        return first.to((self.mapped or self.value).span)


class ExpressionBuilder:
    """Builds the expressions of one text."""

    def __init__(self, tokens: Tokens, report: Report) -> None:
        self._tokens = tokens
        self._report = report

    def expression(self, node: Node) -> Expression:
        """What an `expr` match says."""
        return self._row(node).value

    def chain(self, first: int, postfixes: Sequence[Node]) -> Expression:
        """A name, and what follows it: calls, accesses, remaps and indices."""
        return self._with_postfixes(self._reference(first, first + 1), postfixes).value

    def output_arguments(self, node: Node) -> tuple[Argument, ...]:
        """The arguments of an output statement. Labels name what is put out, so they may stand anywhere."""
        given = list(self._given(node))
        if mapped := next((g for g in given if g.mapped), None):
            message = "an output statement takes no maps; map the strand instead"
            self._error("misplaced-map", message, mapped.span, f"as in display({hints.REMAP})")
        self._check_labels(given)
        return _as_arguments(given)

    # --- rows of operands ---

    def _row(self, node: Node) -> Operand:
        row = Row(self._report)
        first, rest = node.children
        self._piece(first, row)
        for operator, piece in (pair.children for pair in rest.children):
            self._operator(operator.start, operator.end, row)
            self._piece(piece, row)
        return row.finish()

    def _piece(self, node: Node, row: Row) -> None:
        piece = node.children[0]
        if piece.expr_name.startswith("run"):
            self._run(piece.start, piece.end, row)
        elif piece.expr_name in ("chain", "inner_chain"):
            self._chain(piece, row)
        else:
            prefixes, tail = piece.children
            for prefix in prefixes.children:
                self._prefix(prefix.children[0], row)
            self._piece(tail, row)

    def _prefix(self, node: Node, row: Row) -> None:
        if node.expr_name == "signs":
            self._signs(node.start, row)
        else:
            _, condition, _, then, _ = node.children
            row.choice(self.expression(condition), self.expression(then), self._tokens.span(node.start))

    def _signs(self, index: int, row: Row) -> int:
        while self._tokens.kinds[index] in "-N":
            row.sign(self._tokens.text(index), self._tokens.span(index))
            index += 1
        return index

    def _operator(self, first: int, behind: int, row: Row) -> None:
        span = self._tokens.span(first, behind - 1)
        row.operator(self._tokens.text(first) if behind == first + 1 else span.text, span)

    def _run(self, index: int, behind: int, row: Row) -> None:
        """A row of operands without brackets, straight from the tokens."""
        kinds = self._tokens.kinds
        while True:
            index = self._signs(index, row)
            index = self._simple(index, row)
            if index == behind:
                return
            operator = index
            while kinds[index] == GLUED:
                index += 1
            index += 1
            self._operator(operator, index, row)

    def _simple(self, index: int, row: Row) -> int:
        kind = self._tokens.kinds[index]
        if kind in (NUMBER, TEXT):
            span = self._tokens.span(index)
            text = self._tokens.text(index)
            row.operand(Operand(Number(float(text), span) if kind == NUMBER else Text(text_value(text), span), span))
            return index + 1
        behind = index + 3 if self._tokens.kinds[index + 1] == "@" else index + 1
        row.operand(self._reference(index, behind))
        return behind

    def _reference(self, first: int, behind: int) -> Operand:
        """`name` or `name@output`."""
        name = Name(self._tokens.text(first), self._tokens.span(first))
        if behind == first + 1:
            return Operand(name, name.span)
        return self._access(Operand(name, name.span), behind - 1)

    def _access(self, base: Operand, output: int) -> Operand:
        output_span = self._tokens.span(output)
        span = base.span.to(output_span)
        return Operand(Access(base.value, self._tokens.text(output), output_span, span), span)

    # --- chains and brackets ---

    def _chain(self, node: Node, row: Row) -> None:
        base, postfixes = node.children
        while base.expr_name in ("base", "inner_base"):
            base = base.children[0]
        if base.expr_name == "group":
            inner = self._row(base.children[1])
            operand = Operand(inner.value, self._tokens.span(base.start, base.end - 1))
        elif base.expr_name == "bundle":
            operand = self._bundle(base)
        else:
            operand = self._reference(base.start, base.end)
        row.operand(self._with_postfixes(operand, postfixes.children))

    def _with_postfixes(self, operand: Operand, postfixes: Sequence[Node]) -> Operand:
        for postfix in postfixes:
            node = postfix.children[0]
            if node.expr_name == "access":
                operand = self._access(operand, node.end - 1)
                continue
            span = operand.span.to(self._tokens.span(node.end - 1))
            if node.expr_name == "index":
                value: Expression = Index(operand.value, self.expression(node.children[1]), span)
            else:
                value = self._call(operand.value, node, span)
            operand = Operand(value, span)
        return operand

    def _bundle(self, node: Node) -> Operand:
        _, first, others, _ = node.children[0].children
        items = [self._row(item) for item in _separated(first, others)]
        for item in items:
            if isinstance(item.value, Bundle):
                self._error("nested-bundle", "a bundle cannot stand in a bundle", item.span)
        span = self._tokens.span(node.start, node.end - 1)
        return Operand(Bundle(tuple(item.value for item in items), span), span)

    # --- arguments ---

    def _call(self, callee: Expression, node: Node, span: Span) -> Call | Remap:
        given = list(self._given(node))
        if not any(g.mapped for g in given):
            self._check_labels(given)
            self._check_order(given)
            return Call(callee, _as_arguments(given), span)
        return Remap(callee, tuple(self._maps(given)), span)

    def _given(self, node: Node) -> Iterator[_Given]:
        _, arguments, _ = node.children
        if not arguments.children:
            return
        first, others = arguments.children[0].children
        for argument in _separated(first, others):
            form = argument.children[0]
            yield self._plain_argument(form) if form.expr_name == "plain" else self._full_argument(form)

    def _plain_argument(self, node: Node) -> _Given:
        is_labelled = self._tokens.kinds[node.start + 1] == ":"
        first = node.start + 2 if is_labelled else node.start
        tilde = self._tokens.kinds.find("~", first, node.end)
        value = self._plain_row(first, node.end if tilde < 0 else tilde)
        mapped = None if tilde < 0 else self._plain_row(tilde + 1, node.end)
        return self._given_as(node.start if is_labelled else None, value, mapped)

    def _plain_row(self, first: int, behind: int) -> Operand:
        row = Row(self._report)
        self._run(first, behind, row)
        return row.finish()

    def _full_argument(self, node: Node) -> _Given:
        label, value, mapping = node.children
        mapped = self._row(mapping.children[0].children[1]) if mapping.children else None
        return self._given_as(node.start if label.children else None, self._row(value), mapped)

    def _given_as(self, label: int | None, value: Operand, mapped: Operand | None) -> _Given:
        if label is None:
            return _Given(value, mapped, None, None)
        return _Given(value, mapped, self._tokens.text(label), self._tokens.span(label))

    def _check_labels(self, given: list[_Given]) -> None:
        labels: dict[str, Span] = {}
        for argument in given:
            if argument.label is None or argument.label_span is None:
                continue
            if first := labels.get(argument.label):
                message = f"`{shorten(argument.label)}` is given twice"
                self._error("duplicate-label", message, argument.label_span, None, (first, "it is given here first"))
            labels.setdefault(argument.label, argument.label_span)

    def _check_order(self, given: list[_Given]) -> None:
        """Where labels are names of parameters, what stands behind one has no place of its own."""
        behind = dropwhile(lambda argument: argument.label is None, given)
        for argument in behind:
            if argument.label is None:
                message = "an argument without a label cannot follow one that has a label"
                hint = "label it as well, or move it to the front"
                self._error("unlabelled-argument", message, argument.span, hint)

    def _maps(self, given: list[_Given]) -> Iterator[Map]:
        for argument in given:
            if argument.mapped is None:
                message = "this has no `~`, but another argument of the same list has one"
                hint = "write all as maps (me@x ~ …), or none"
                self._error("mixed-maps", message, argument.span, hint)
            elif argument.label_span:
                self._error("labelled-map", "a map takes no label", argument.label_span)
            elif not (isinstance(argument.value.value, Access) and isinstance(argument.value.value.base, Name)):
                message = "on the left of `~` stands a coordinate, such as me@x"
                self._error("bad-map-target", message, argument.value.span, _target_hint(argument.value.value))
            else:
                yield Map(argument.value.value, argument.mapped.value, argument.span)

    def _error(self, code: str, message: str, span: Span, hint: str | None = None, *related: tuple[Span, str]) -> None:
        self._report.add([Diagnostic("error", code, message, span, hint, related)])


def _target_hint(target: Expression) -> str | None:
    return f"write me@{target.id}" if isinstance(target, Name) and target.id in _COORDINATES else None


def _as_arguments(given: list[_Given]) -> tuple[Argument, ...]:
    return tuple(Argument(g.label, g.value.value, g.span, g.label_span) for g in given)


def _separated(first: Node, others: Node) -> Iterator[Node]:
    """The items of a list with commas."""
    yield first
    for _, item in (pair.children for pair in others.children):
        yield item
