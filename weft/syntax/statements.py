"""From parse nodes to the syntax tree: expressions by precedence, and statements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import dropwhile
from typing import Final, Literal, NamedTuple

from parsimonious.nodes import Node

from weft.errors import Diagnostic, Report, Span
from weft.syntax.ast import (
    Access, Argument, Assignment, Binary, Binding, Bundle, Call, CallBinding, Expression, Ident, If, Index, Map, Name,
    Number, OutputStatement, Remap, Setting, Text, Unary, literal_number
)
from weft.syntax.scanner import (
    BINARY, COMPARISON_LEVEL, GLUED, IF_LEVEL, LONGEST_HINT, NUMBER, PREFIX, REMAP_FORM, STATEMENT_FORM, TEXT, USE_FORM,
    Tokens, shorten, text_value
)

# --- operator precedence ---


class Operand(NamedTuple):
    """An expression and the text it covers, which is more than its own span if it stands in parentheses."""

    value: Expression
    span: Span


class _PendingOperator(NamedTuple):
    """An operator that waits for its last operand."""

    symbol: str
    level: int
    span: Span
    is_prefix: bool = False
    choice: tuple[Expression, Expression] | None = None
    """Condition and then-part of an `if`."""
    follows_comparison: bool = False
    chain: tuple[Span, Span] | None = None
    """The comparison that this one wrongly continues, and the operand between them."""


class OperandRow:
    """Turns a row of operands and operators, fed from left to right, into a tree: two stacks and no recursion."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._operands: list[Operand] = []
        self._pending: list[_PendingOperator] = []

    def operand(self, operand: Operand) -> None:
        self._operands.append(operand)

    def sign(self, symbol: str, span: Span) -> None:
        """A `-` or `not` before an operand. `-` may follow any operator (`2^-3`)."""
        level = PREFIX[symbol].level
        if level < COMPARISON_LEVEL and self._pending and self._pending[-1].level > level:
            message = f"`{symbol}` cannot follow `{self._pending[-1].symbol}`, which binds tighter"
            self._report.error("not-needs-parentheses", message, span, f"put it in parentheses: ({symbol} …)")
        self._pending.append(_PendingOperator(symbol, level, span, is_prefix=True))

    def choice(self, condition: Expression, then: Expression, span: Span) -> None:
        """An `if` up to its `else`; `span` is that of the word `if`."""
        self._pending.append(_PendingOperator("if", IF_LEVEL, span, is_prefix=True, choice=(condition, then)))

    def operator(self, symbol: str, span: Span) -> None:
        """A binary operator after an operand."""
        binary = BINARY[symbol]
        loosest_to_reduce = binary.level + binary.right
        follows, chain = False, None
        while self._pending and self._pending[-1].level >= loosest_to_reduce:
            top = self._pending[-1]
            if top.level == binary.level == COMPARISON_LEVEL:
                follows = True
                if not top.follows_comparison:  # a longer chain is one mistake
                    middle = self._operands[-1].span
                    chain = self._operands[-2].span.to(middle), middle
            self._reduce()
        self._pending.append(_PendingOperator(symbol, binary.level, span, follows_comparison=follows, chain=chain))

    def finish(self) -> Operand:
        """The tree of the whole row."""
        while self._pending:
            self._reduce()
        return self._operands.pop()

    def _reduce(self) -> None:
        """Gives the innermost pending operator its last operand."""
        top = self._pending.pop()
        last = self._operands.pop()
        if top.is_prefix:
            span = top.span.to(last.span)
            value: Expression
            if top.choice:
                value = If(*top.choice, last.value, span)
            else:
                value = Unary(top.symbol, last.value, span)
        else:
            first = self._operands.pop()
            span = first.span.to(last.span)
            if top.chain:
                self._report_chain(top, *top.chain, last.span)
            value = Binary(top.symbol, first.value, last.value, span)
        self._operands.append(Operand(value, span))

    def _report_chain(self, second: _PendingOperator, first: Span, middle: Span, last: Span) -> None:
        hint = f"{first.text} and {middle.text} {second.symbol} {last.text}"
        if len(hint) > LONGEST_HINT or "\n" in hint:
            hint = "a < b and b < c"
        self._report.error("chained-comparison", "comparisons do not chain", second.span, f"write {hint}")


# --- expressions; the recursion follows brackets and `if`s only ---

# The coordinates that people often write without `me@`.
_COORDINATES: Final = ("x", "y", "time")


class _GivenArgument(NamedTuple):
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
        """The expression of an `expr` match."""
        return self._row(node).value

    def chain(self, first: int, postfixes: Sequence[Node]) -> Expression:
        """A name, and what follows it: calls, accesses, remaps and indices."""
        return self._with_postfixes(self._reference(first, first + 1), postfixes).value

    def output_arguments(self, node: Node) -> tuple[Argument, ...]:
        """The arguments of an output statement. Labels name the outputs, so they may stand anywhere."""
        given = list(self._given(node))
        if mapped := next((g for g in given if g.mapped), None):
            message = "an output statement takes no maps; map the strand instead"
            self._error("misplaced-map", message, mapped.span, f"as in display({REMAP_FORM})")
        self._check_labels(given)
        return _as_arguments(given)

    # --- rows of operands ---

    def _row(self, node: Node) -> Operand:
        row = OperandRow(self._report)
        first, rest = node.children
        self._piece(first, row)
        for operator, piece in (pair.children for pair in rest.children):
            self._operator(operator.start, operator.end, row)
            self._piece(piece, row)
        return row.finish()

    def _piece(self, node: Node, row: OperandRow) -> None:
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

    def _prefix(self, node: Node, row: OperandRow) -> None:
        if node.expr_name == "signs":
            self._signs(node.start, row)
        else:
            _, condition, _, then, _ = node.children
            row.choice(self.expression(condition), self.expression(then), self._tokens.span(node.start))

    def _signs(self, index: int, row: OperandRow) -> int:
        while self._tokens.kinds[index] in "-N":
            row.sign(self._tokens.text(index), self._tokens.span(index))
            index += 1
        return index

    def _operator(self, first: int, stop: int, row: OperandRow) -> None:
        span = self._tokens.span(first, stop - 1)
        row.operator(self._tokens.text(first) if stop == first + 1 else span.text, span)

    def _run(self, index: int, stop: int, row: OperandRow) -> None:
        """A row of operands without brackets, straight from the tokens."""
        kinds = self._tokens.kinds
        while True:
            index = self._signs(index, row)
            index = self._simple(index, row)
            if index == stop:
                return
            operator = index
            while kinds[index] == GLUED:
                index += 1
            index += 1
            self._operator(operator, index, row)

    def _simple(self, index: int, row: OperandRow) -> int:
        kind = self._tokens.kinds[index]
        if kind in (NUMBER, TEXT):
            span = self._tokens.span(index)
            text = self._tokens.text(index)
            row.operand(Operand(Number(float(text), span) if kind == NUMBER else Text(text_value(text), span), span))
            return index + 1
        stop = index + 3 if self._tokens.kinds[index + 1] == "@" else index + 1
        row.operand(self._reference(index, stop))
        return stop

    def _reference(self, first: int, stop: int) -> Operand:
        """`name` or `name@output`."""
        name = Name(self._tokens.text(first), self._tokens.span(first))
        if stop == first + 1:
            return Operand(name, name.span)
        return self._access(Operand(name, name.span), stop - 1)

    def _access(self, base: Operand, output: int) -> Operand:
        output_span = self._tokens.span(output)
        span = base.span.to(output_span)
        return Operand(Access(base.value, self._tokens.text(output), output_span, span), span)

    # --- chains and brackets ---

    def _chain(self, node: Node, row: OperandRow) -> None:
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
                self._error("nested-bundle", "a bundle cannot contain a bundle", item.span)
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

    def _given(self, node: Node) -> Iterator[_GivenArgument]:
        _, arguments, _ = node.children
        if not arguments.children:
            return
        first, others = arguments.children[0].children
        for argument in _separated(first, others):
            form = argument.children[0]
            yield self._plain_argument(form) if form.expr_name == "plain" else self._full_argument(form)

    def _plain_argument(self, node: Node) -> _GivenArgument:
        is_labelled = self._tokens.kinds[node.start + 1] == ":"
        first = node.start + 2 if is_labelled else node.start
        tilde = self._tokens.kinds.find("~", first, node.end)
        value = self._plain_row(first, node.end if tilde < 0 else tilde)
        mapped = None if tilde < 0 else self._plain_row(tilde + 1, node.end)
        return self._given_as(node.start if is_labelled else None, value, mapped)

    def _plain_row(self, first: int, stop: int) -> Operand:
        row = OperandRow(self._report)
        self._run(first, stop, row)
        return row.finish()

    def _full_argument(self, node: Node) -> _GivenArgument:
        label, value, mapping = node.children
        mapped = self._row(mapping.children[0].children[1]) if mapping.children else None
        return self._given_as(node.start if label.children else None, self._row(value), mapped)

    def _given_as(self, label: int | None, value: Operand, mapped: Operand | None) -> _GivenArgument:
        if label is None:
            return _GivenArgument(value, mapped, None, None)
        return _GivenArgument(value, mapped, self._tokens.text(label), self._tokens.span(label))

    def _check_labels(self, given: list[_GivenArgument]) -> None:
        labels: dict[str, Span] = {}
        for argument in given:
            if argument.label is None or argument.label_span is None:
                continue
            if first := labels.get(argument.label):
                message = f"`{shorten(argument.label)}` is given twice"
                self._error("duplicate-label", message, argument.label_span, None, (first, "it is given here first"))
            labels.setdefault(argument.label, argument.label_span)

    def _check_order(self, given: list[_GivenArgument]) -> None:
        """Labels name parameters, so a positional argument cannot follow a labelled one."""
        for argument in dropwhile(lambda argument: argument.label is None, given):
            if argument.label is None:
                message = "an argument without a label cannot follow one that has a label"
                hint = "label it as well, or move it to the front"
                self._error("unlabelled-argument", message, argument.span, hint)

    def _maps(self, given: list[_GivenArgument]) -> Iterator[Map]:
        for argument in given:
            if argument.mapped is None:
                message = "this has no `~`, but another argument of the same list has one"
                hint = "write all as maps (me@x ~ …), or none"
                self._error("mixed-maps", message, argument.span, hint)
            elif argument.label_span:
                self._error("labelled-map", "a map takes no label", argument.label_span)
            elif not (isinstance(argument.value.value, Access) and isinstance(argument.value.value.base, Name)):
                message = "the left side of `~` is a coordinate, such as me@x"
                target = argument.value.value
                suggestion = f"write me@{target.id}" if isinstance(target, Name) and target.id in _COORDINATES else None
                self._error("bad-map-target", message, argument.value.span, suggestion)
            else:
                yield Map(argument.value.value, argument.mapped.value, argument.span)

    def _error(self, code: str, message: str, span: Span, hint: str | None = None, *related: tuple[Span, str]) -> None:
        self._report.add([Diagnostic("error", code, message, span, hint, related)])


def _as_arguments(given: list[_GivenArgument]) -> tuple[Argument, ...]:
    return tuple(Argument(g.label, g.value.value, g.span, g.label_span) for g in given)


def _separated(first: Node, others: Node) -> Iterator[Node]:
    """The items of a list with commas."""
    yield first
    for _, item in (pair.children for pair in others.children):
        yield item


# --- statements, and the rules that each form has by itself ---

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
            related = ((first.span, "the first one is here"),)
            message = f"the {what} `{shorten(name.name)}` appears twice in this list"
            report.add([Diagnostic("error", f"duplicate-{what}", message, name.span, related=related)])
        seen.setdefault(name.name, name)
    return len(seen) < len(names)


class StatementBuilder:
    """Builds the statements of one text. A method that returns None has reported an error."""

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
            self._report.error("misplaced-out", "`out` is used only in a spindle", place, "leave it out")
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
        number = literal_number(self._expressions.expression(value))
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
            message = "a multi-call takes one list of arguments and nothing after it"
            self._report.error("bad-multi-call", message, place)
            return None
        value = float(self._tokens.text(first)) if self._tokens.kinds[first] == NUMBER else 0.0
        if not (value.is_integer() and 1 <= value <= MAX_COUNT):
            message = f"the count of a multi-call is a whole number from 1 to {MAX_COUNT}"
            self._report.error("bad-count", message, place)
            return None
        return int(value)

    def _report_loose_chain(self, node: Node, forms: list[Node]) -> None:
        continuation = next((f for f in forms[1:] if self._tokens.fresh[f.start]), None)
        if continuation:
            bracket = self._tokens.text(continuation.start)
            message = f"a line that starts with `{bracket}` continues the line above"
            self._report.error("continued-line", message, self._tokens.span(continuation.start), STATEMENT_FORM)
        else:
            self._report.error("not-a-statement", "this value is not used", self._span(node), USE_FORM)

    def _outputs(self, node: Node) -> tuple[Ident, ...]:
        """The names of `<a, b>`, or of `a` alone."""
        is_list = self._tokens.kinds[node.start] == "<"
        names = self._names(node.start + 1, node.end - 1) if is_list else self._names(node.start, node.end)
        has_duplicates(names, "output", self._report)
        return names

    def _names(self, first: int, stop: int) -> tuple[Ident, ...]:
        """The names of a list with commas."""
        return tuple(self._ident(index) for index in range(first, stop, 2))

    def _ident(self, index: int) -> Ident:
        return Ident(self._tokens.text(index), self._tokens.span(index))

    def _span(self, node: Node) -> Span:
        return self._tokens.span(node.start, node.end - 1)

    def _doc(self, node: Node) -> str | None:
        return self._tokens.docs.get(self._tokens.starts[node.start])
