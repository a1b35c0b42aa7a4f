"""From parse nodes to the syntax tree: expressions by precedence, and statements."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import dropwhile
from typing import Final, Literal, NamedTuple

from parsimonious.nodes import Node

from weft.errors import Report, Span
from weft.ops import BINARY, UNARY
from weft.syntax.ast import (
    Access, Argument, Assignment, Binary, Binding, Bundle, Call, CallBinding, Comprehension, Expression, For, Ident, If,
    Index, Map, Name, Number, OutAssignment, OutputStatement, Remap, Setting, SpindleDefinition, SpindleParameter, Text,
    Unary, literal_number
)
from weft.syntax.scanner import (
    COMPARISON_LEVEL, GLUED, IF_LEVEL, LONGEST_HINT, NUMBER, PIPE_LEVEL, REMAP_FORM, STATEMENT_FORM, TEXT, USE_FORM,
    Tokens, shorten, text_value
)

# --- operator precedence ---


class Operand(NamedTuple):
    """An expression and the text it covers, which is more than its own span if it is in parentheses."""

    value: Expression
    span: Span


class _PendingOperator(NamedTuple):
    """An operator that waits for its last operand."""

    symbol: str
    level: int
    first: int
    stop: int
    """Its tokens are `first … stop - 1`."""
    is_prefix: bool = False
    choice: tuple[Expression, Expression] | None = None
    """Condition and then-part of an `if`."""
    follows_comparison: bool = False
    chain: tuple[Span, Span] | None = None
    """The comparison that this one wrongly continues, and the operand between them."""


class PipeTarget(NamedTuple):
    """The right side of a `|>`: what it becomes with the expression on the left, and the text it covers."""

    value: Callable[[Expression], Expression]
    span: Span


class OperandRow:
    """Turns a row of operands and operators, fed from left to right, into a tree: two stacks and no recursion."""

    def __init__(self, tokens: Tokens, report: Report) -> None:
        self._tokens = tokens
        self._report = report
        self._operands: list[Operand] = []
        self._pending: list[_PendingOperator] = []

    def operand(self, operand: Operand) -> None:
        self._operands.append(operand)

    def sign(self, index: int) -> None:
        """A `-` or `not` before an operand. `-` may follow any operator (`2^-3`)."""
        symbol = self._tokens.text(index)
        level = UNARY[symbol].level
        if level < COMPARISON_LEVEL and self._pending and self._pending[-1].level > level:
            message = f"`{symbol}` cannot follow `{self._pending[-1].symbol}`, which binds tighter"
            hint = f"put it in parentheses: ({symbol} …)"
            self._report.tell("not-needs-parentheses", message, self._tokens.span(index), hint)
        self._pending.append(_PendingOperator(symbol, level, index, index + 1, is_prefix=True))

    def choice(self, condition: Expression, then: Expression, index: int) -> None:
        """An `if` up to its `else`; `index` is that of the word `if`."""
        self._pending.append(_PendingOperator("if", IF_LEVEL, index, index + 1, True, (condition, then)))

    def operator(self, first: int, stop: int) -> None:
        """A binary operator after an operand."""
        symbol = self._tokens.text(first) if stop == first + 1 else self._tokens.span(first, stop - 1).text
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
        self._pending.append(_PendingOperator(symbol, binary.level, first, stop, False, None, follows, chain))

    def pipe(self, index: int, target: PipeTarget) -> None:
        """A `|>` and its right side."""
        while self._pending and self._pending[-1].level >= PIPE_LEVEL:
            self._reduce()
        first = self._operands.pop()
        self._operands.append(Operand(target.value(first.value), first.span.to(target.span)))

    def finish(self) -> Operand:
        """The tree of the whole row."""
        while self._pending:
            self._reduce()
        return self._operands.pop()

    def _reduce(self) -> None:
        """Gives the innermost pending operator its last operand."""
        top = self._pending.pop()
        last = self._operands.pop()
        value: Expression
        if top.is_prefix:
            span = self._tokens.span(top.first).to(last.span)
            value = If(*top.choice, last.value, span) if top.choice else Unary(top.symbol, last.value, span)
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
        place = self._tokens.span(second.first, second.stop - 1)
        self._report.tell("chained-comparison", "comparisons do not chain", place, f"write {hint}")


# --- expressions; the recursion follows brackets and `if`s only ---

class _GivenArgument(NamedTuple):
    """One argument as it is written in the text: `value`, `label: value` or `value ~ mapped`."""

    label: Ident | None
    value: Operand
    mapped: Operand | None

    @property
    def span(self) -> Span:
        return (self.label or self.value).span.to((self.mapped or self.value).span)


class _ExpressionBuilder:
    """Builds the expressions of one item. Its tokens are numbered as in the match, from the start of the item."""

    def __init__(self, tokens: Tokens, report: Report) -> None:
        self._tokens = tokens
        self._report = report

    # --- rows of operands ---

    def _row(self, node: Node) -> Operand:
        """The expression of an `expr` match."""
        first, rest = node.children
        if not rest.children and (run := first.children[0]).expr_name.startswith("run"):
            return self._plain_row(run.start, run.end)
        row = OperandRow(self._tokens, self._report)
        self._piece(first, row)
        for step in (each.children[0] for each in rest.children):
            operator, piece = step.children
            if step.expr_name.startswith("pipe"):
                row.pipe(operator.start, self._piped(piece.children[0]))
            else:
                row.operator(operator.start, operator.end)
                self._piece(piece, row)
        return row.finish()

    def _piece(self, node: Node, row: OperandRow) -> None:
        piece = node.children[0]
        if piece.expr_name.startswith("run"):
            self._run(piece.start, piece.end, row)
        elif piece.expr_name in ("chain", "inner_chain"):
            row.operand(self._chain(piece))
        else:
            prefixes, tail = piece.children
            for prefix in (each.children[0] for each in prefixes.children):
                if prefix.expr_name == "signs":
                    self._signs(prefix.start, row)
                else:
                    _, condition, _, then, _ = prefix.children
                    row.choice(self._row(condition).value, self._row(then).value, prefix.start)
            self._piece(tail, row)

    def _signs(self, index: int, row: OperandRow) -> int:
        while self._tokens.kinds[index] in "-N":
            row.sign(index)
            index += 1
        return index

    def _plain_row(self, first: int, stop: int) -> Operand:
        """A row of operands without brackets, straight from the tokens."""
        if stop == first + 1 or (stop == first + 3 and self._tokens.kinds[first + 1] == "@"):
            return self._simple(first, stop)
        row = OperandRow(self._tokens, self._report)
        self._run(first, stop, row)
        return row.finish()

    def _run(self, index: int, stop: int, row: OperandRow) -> None:
        kinds = self._tokens.kinds
        while True:
            if kinds[index] in "-N":
                index = self._signs(index, row)
            end = index + 3 if kinds[index + 1] == "@" else index + 1
            row.operand(self._simple(index, end))
            if end == stop:
                return
            index = end
            while kinds[index] == GLUED:
                index += 1
            index += 1
            row.operator(end, index)

    def _simple(self, first: int, stop: int) -> Operand:
        """A number, a string, `name` or `name@output`."""
        kind, text, span = self._tokens.kinds[first], self._tokens.text(first), self._tokens.span(first)
        if kind == NUMBER:
            return Operand(Number(float(text), span), span)
        if kind == TEXT:
            return Operand(Text(text_value(text), span), span)
        name = Operand(Name(text, span), span)
        return name if stop == first + 1 else self._access(name, stop - 1)

    def _access(self, base: Operand, output: int) -> Operand:
        output_span = self._tokens.span(output)
        span = base.span.to(output_span)
        return Operand(Access(base.value, self._tokens.text(output), output_span, span), span)

    # --- chains and brackets ---

    def _chain(self, node: Node) -> Operand:
        base, postfixes = node.children
        while base.expr_name in ("base", "inner_base"):
            base = base.children[0]
        if base.expr_name == "group":
            inner = self._row(base.children[1])
            operand = Operand(inner.value, self._tokens.span(base.start, base.end - 1))
        elif base.expr_name in ("bundle", "tuple"):
            operand = self._bundle(base)
        else:
            operand = self._simple(base.start, base.end)
        return self._with_postfixes(operand, postfixes)

    def _with_postfixes(self, operand: Operand, postfixes: Node) -> Operand:
        for node in (postfix.children[0] for postfix in postfixes.children):
            if node.expr_name == "access":
                operand = self._access(operand, node.end - 1)
                continue
            span = operand.span.to(self._tokens.span(node.end - 1))
            if node.expr_name == "index":
                value: Expression = Index(operand.value, self._row(node.children[1]).value, span)
            else:
                value = self._call(operand.value, node, span)
            operand = Operand(value, span)
        return operand

    def _bundle(self, node: Node) -> Operand:
        form = node if node.expr_name == "tuple" else node.children[0]
        _, first, others, _ = form.children
        span = self._tokens.span(node.start, node.end - 1)
        if others.expr_name == "range":
            _, variable, _, _, low, _, high, _ = others.children
            item = self._row(first)
            self._refuse_nested([item])
            ends = self._row(low).value, self._row(high).value
            return Operand(Comprehension(item.value, self._ident(variable.start), *ends, span), span)
        items = [self._row(item) for item in _separated(first, others)]
        self._refuse_nested(items)
        return Operand(Bundle(tuple(item.value for item in items), span), span)

    def _refuse_nested(self, items: Iterable[Operand]) -> None:
        for item in items:
            if isinstance(item.value, Bundle | Comprehension):
                self._report.tell("nested-bundle", "a bundle cannot contain a bundle", item.span,
                                   "join(a, b) makes one bundle of several")  # fmt: skip

    def _piped(self, node: Node) -> PipeTarget:
        """The right side of `|>`: a call, with what follows it, or maps."""
        if node.expr_name == "mapping":
            _, first, others, close, postfixes = node.children
            given = [
                _GivenArgument(None, self._row(target), self._row(mapped.children[1]))
                for target, mapped in (each.children for each in _separated(first, others))
            ]
            maps, span = tuple(self._maps(given)), self._tokens.span(node.start, close.end - 1)
            start = partial(Remap, maps=maps, span=span)
            rest = self._tokens.span(node.start, node.end - 1)
            return PipeTarget(lambda piped: self._with_postfixes(Operand(start(piped), span), postfixes).value, rest)
        operand = self._simple(node.start, node.end) if node.expr_name == "literal" else self._chain(node)
        if not _first_call(operand.value):
            self._report.tell("pipe-needs-a-call", "`|>` hands its left side to a call", operand.span,
                               "write e |> f(), which is f(e)")  # fmt: skip
        return PipeTarget(partial(_with_first, operand.value), operand.span)

    # --- arguments ---

    def _call(self, callee: Expression, node: Node, span: Span) -> Call | Remap:
        given = list(self._given(node))
        if not any(argument.mapped for argument in given):
            arguments = self._arguments(given)
            self._check_order(given)
            return Call(callee, arguments, span)
        return Remap(callee, tuple(self._maps(given)), span)

    def _given(self, node: Node) -> Iterator[_GivenArgument]:
        kinds = self._tokens.kinds
        _, arguments, _ = node.children
        if not arguments.children:
            return
        for form in (argument.children[0] for argument in _separated(*arguments.children[0].children)):
            label = self._ident(form.start) if kinds[form.start + 1] == ":" else None
            if form.expr_name == "plain":
                first = form.start + 2 if label else form.start
                tilde = kinds.find("~", first, form.end)
                value = self._plain_row(first, form.end if tilde < 0 else tilde)
                mapped = None if tilde < 0 else self._plain_row(tilde + 1, form.end)
            else:
                _, expression, mapping = form.children
                value = self._row(expression)
                mapped = self._row(mapping.children[0].children[1]) if mapping.children else None
            yield _GivenArgument(label, value, mapped)

    def _arguments(self, given: list[_GivenArgument]) -> tuple[Argument, ...]:
        """The arguments of a call; a label that is given twice is reported."""
        labels: dict[str, Ident] = {}
        for label in (argument.label for argument in given if argument.label):
            if first := labels.get(label.name):
                message = f"`{shorten(label.name)}` is given twice"
                self._report.tell("duplicate-label", message, label.span, None, (first.span, "it is given here first"))
            labels.setdefault(label.name, label)
        return tuple(
            Argument(a.label.name if a.label else None, a.value.value, a.span, a.label.span if a.label else None)
            for a in given
        )

    def _check_order(self, given: list[_GivenArgument]) -> None:
        """Labels name parameters, so a positional argument cannot follow a labelled one."""
        for argument in dropwhile(lambda argument: argument.label is None, given):
            if argument.label is None:
                message = "an argument without a label cannot follow one that has a label"
                hint = "label it as well, or move it to the front"
                self._report.tell("unlabelled-argument", message, argument.span, hint)

    def _maps(self, given: list[_GivenArgument]) -> Iterator[Map]:
        for argument in given:
            label, (target, place), mapped = argument
            if mapped is None:
                message = "this has no `~`, but another argument of the same list has one"
                self._report.tell("mixed-maps", message, argument.span, "write all as maps (me@x ~ …), or none")
            elif label:
                self._report.tell("labelled-map", "a map takes no label", label.span, f"leave `{label.name}:` out")
            elif isinstance(target, Access) and isinstance(target.base, Name):
                yield Map(target, mapped.value, argument.span)
            elif isinstance(target, Name):
                yield Map(Access(Name("me", place), target.id, place, place), mapped.value, argument.span)
            else:
                message = "the left side of `~` is a coordinate, such as me@x"
                self._report.tell("bad-map-target", message, place)

    def _ident(self, index: int) -> Ident:
        return Ident(self._tokens.text(index), self._tokens.span(index))


def _first_call(target: Expression) -> Call | None:
    """The call at the start of a chain: `f(a)` of `f(a)@x(me@x ~ 0)[1]`."""
    while isinstance(target, Access | Index | Remap) or (isinstance(target, Call) and not target.name):
        target = target.callee if isinstance(target, Call) else target.base
    return target if isinstance(target, Call) else None


def _with_first(target: Expression, piped: Expression) -> Expression:
    """A chain whose first call takes one more argument, before all others."""
    match target:
        case Call(callee=Name(), args=args):
            return replace(target, args=(Argument(None, piped, piped.span), *args), is_piped=True)
        case Call(callee=callee):
            return replace(target, callee=_with_first(callee, piped))
        case Access(base=base) | Index(base=base) | Remap(base=base):
            return replace(target, base=_with_first(base, piped))
    return target


def _separated(first: Node, others: Node) -> Iterator[Node]:
    """The items of a list with commas."""
    yield first
    for _, item in (pair.children for pair in others.children):
        yield item


# --- statements, and the rules that each form has by itself ---

MAX_COUNT: Final = 64


_DUPLICATES: Final = {"output": "duplicate-output", "parameter": "duplicate-parameter"}


def has_duplicates(names: Sequence[Ident], what: Literal["output", "parameter"], report: Report) -> bool:
    """Whether a name occurs twice in a list; if so, that is reported."""
    seen: dict[str, Ident] = {}
    for name in names:
        if first := seen.get(name.name):
            message = f"the {what} `{shorten(name.name)}` appears twice in this list"
            report.tell(_DUPLICATES[what], message, name.span, None, (first.span, "the first one is here"))
        seen.setdefault(name.name, name)
    return len(seen) < len(names)


class StatementBuilder(_ExpressionBuilder):
    """Builds the statement of one item. A method that returns None has reported an error."""

    def binding(self, node: Node) -> Binding | None:
        """`name<outputs> = expression`, at the top level."""
        _, name, part, becomes, value, _ = node.children
        op = self._tokens.text(becomes.start)
        if self._tokens.kinds[0] == "O":
            self.report_misplaced_out()
            return None
        if op != "=":
            message = f"`{op}` works only in a spindle; out here a name has one value"
            self._report.tell("misplaced-assignment", message, self._tokens.span(becomes.start))
            return None
        form = part.children[0].children[0] if part.children else None
        if form is not None and form.expr_name == "access":
            hint = f"write {shorten(self._tokens.text(name.start))}<{shorten(self._tokens.text(form.end - 1))}> = …"
            place = self._tokens.span(name.start, form.end - 1)
            self._report.tell("cannot-set", "an output is bound in angle brackets", place, hint)
            return None
        idents = self._outputs(form) if form is not None else None
        expression = self._row(value).value
        return Binding(self._ident(name.start), idents, expression, self._span(node), self._doc)

    @property
    def place(self) -> Span:
        """The first token of the statement."""
        return self._tokens.span(0)

    def report_misplaced_out(self) -> None:
        self._report.tell("misplaced-out", "`out` is used only in a spindle", self.place, "leave it out")

    def out_assignment(self, node: Node, outputs: tuple[Ident, ...]) -> OutAssignment:
        """`out = expression`, in a spindle with these outputs."""
        return OutAssignment(outputs, self._row(node.children[1]).value, self._span(node))

    def assignment(self, node: Node) -> Assignment | None:
        """`name op expression` or `name@member op expression`, in a spindle."""
        intro, name, part, becomes, value, _ = node.children
        form = part.children[0].children[0] if part.children else None
        if form is not None and form.expr_name == "outputs":
            place = self._tokens.span(form.start, form.end - 1)
            hint = "a local may name a bundle: c = <1, 2, 3>, and then c[0]"
            self._report.tell("outputs-in-spindle", "in a spindle, a name takes no output list", place, hint)
            return None
        op = self._tokens.text(becomes.start)
        word = self._tokens.text(0) if intro.children else None
        if word and op != "=":
            place = self._tokens.span(becomes.start)
            self._report.tell("misplaced-assignment", f"`{word}` goes with `=`, not `{op}`", place)
            return None
        expression = self._row(value).value
        member = self._ident(form.end - 1) if form is not None else None
        return Assignment(self._ident(name.start), op, expression, self._span(node), word == "out", member)

    def setting(self, node: Node) -> Setting | None:
        """`me<field> = number`."""
        *_, value, _ = node.children
        place = self._tokens.span(value.start, value.end - 1)
        number = literal_number(self._row(value).value)
        if number is None:
            self._report.tell("setting-not-a-number", "a setting takes a plain number", place, "such as me<bpm> = 120")
            return None
        return Setting(self._ident(2), number, place, self._span(node))

    def call(self, node: Node) -> CallBinding | OutputStatement | None:
        """`f(x)::name<outputs>`, `f<3>(x)::name<…>`, a bound remap or access, or an output statement."""
        _, count, postfixes, bound, _ = node.children
        forms = [postfix.children[0] for postfix in postfixes.children]
        if bound.children:
            return self._call_binding(node, bound.children[0])
        if count.children:
            hint = f"such as {self._tokens.span(0, count.end - 1).text}(…)::name<a, b>"
            self._report.tell("unbound-multi-call", "several calls at once are bound with `::`", self._span(node), hint)
            return None
        if len(forms) > 1 or forms[0].expr_name != "arguments":
            self._report_loose_chain(node, forms)
            return None
        given = list(self._given(forms[0]))
        if mapped := next((argument for argument in given if argument.mapped), None):
            message = "an output statement takes no maps; map the strand instead"
            self._report.tell("misplaced-map", message, mapped.span, f"as in display({REMAP_FORM})")
        # Labels name the outputs, so they may be anywhere.
        head = self._tokens.span(0)
        return OutputStatement(head.text, self._arguments(given), self._span(node), head)

    def piped(self, node: Node, statements: Collection[str]) -> CallBinding | None:
        """`e |> f(x)::name<outputs>`."""
        _, value, bound, _ = node.children
        expression = self._row(value).value
        if not bound.children:
            call = _first_call(expression)
            if call is not None and call.name in statements:
                hint = f"write {call.name}({shorten(call.args[0].value.span.text)})"
                self._report.tell("piped-output", f"`{call.name}` is a statement and cannot be piped into",
                                   call.callee.span, hint)  # fmt: skip
            else:
                self._report.tell("not-a-statement", "this value is not used", self._span(node), USE_FORM)
            return None
        _, name, output_list = bound.children[0].children
        outputs = self._outputs(output_list)
        return CallBinding(expression, self._ident(name.start), outputs, self._span(node), doc=self._doc)

    def spindle(self, node: Node) -> SpindleDefinition:
        """The head of a spindle, as a spindle without a body."""
        _, name, _, given, _, _, results, _ = node.children
        parameters = tuple(map(self._parameter, _separated(*given.children[0].children))) if given.children else ()
        has_duplicates([parameter.ident for parameter in parameters], "parameter", self._report)
        self._check_defaults(parameters)
        outputs = self._outputs(results)
        return SpindleDefinition(self._ident(name.start), parameters, outputs, (), self._span(node), self._doc)

    def _parameter(self, node: Node) -> SpindleParameter:
        name, members, default = node.children
        return SpindleParameter(
            self._ident(name.start),
            self._outputs(members.children[0]) if members.children else None,
            self._row(default.children[0].children[1]).value if default.children else None,
        )

    def _check_defaults(self, parameters: Sequence[SpindleParameter]) -> None:
        """A call gives the first arguments by position, so parameters without a default come first."""
        for parameter in dropwhile(lambda each: each.default is None, parameters):
            if parameter.default is None:
                message = f"`{shorten(parameter.name)}` has no default, and stands after one that has"
                self._report.tell("default-before-parameter", message, parameter.ident.span,
                                   "move it to the front, or give it a default as well")  # fmt: skip

    def loop(self, node: Node) -> For:
        """The head of a loop, as a loop without a body."""
        _, variable, _, _, first, _, last, _, _ = node.children
        ends = self._row(first).value, self._row(last).value
        return For(self._ident(variable.start), *ends, (), self._span(node))

    # --- parts ---

    def _call_binding(self, node: Node, bound: Node) -> CallBinding | None:
        _, count, postfixes, _, _ = node.children
        _, name, output_list = bound.children
        outputs = self._outputs(output_list)
        if postfixes.children[-1].children[0].expr_name == "index":
            hint = f"write {self._tokens.text(name.start)}<{outputs[0].name}> = …"
            place = self._tokens.span(bound.start)
            self._report.tell("misplaced-binding", "`::` binds a call or a remap, not an element", place, hint)
            return None
        number, count_span = None, None
        if count.children:
            count_span = self._tokens.span(count.start + 1, count.end - 2)
            number = self._count(count.start + 1, count_span, postfixes)
            if number is None:
                return None
        value = self._with_postfixes(self._simple(0, 1), postfixes).value
        return CallBinding(value, self._ident(name.start), outputs, self._span(node), number, count_span, self._doc)

    def _count(self, first: int, place: Span, postfixes: Node) -> int | None:
        """The 3 of `f<3>(x)::name<a, b, c>`."""
        first_list, *others = postfixes.children
        if others or first_list.children[0].expr_name != "arguments":
            place = self._tokens.span((others or [first_list])[0].start, postfixes.end - 1)
            message = "several calls at once take one list of arguments, and nothing after it"
            self._report.tell("bad-multi-call", message, place, "name them all, and read them by their names")
            return None
        value = float(self._tokens.text(first)) if self._tokens.kinds[first] == NUMBER else 0.0
        if not (value.is_integer() and 1 <= value <= MAX_COUNT):
            self._report.tell("bad-count", f"the number of calls is a whole number from 1 to {MAX_COUNT}", place)
            return None
        return int(value)

    def _report_loose_chain(self, node: Node, forms: list[Node]) -> None:
        continuation = next((form.start for form in forms[1:] if self._tokens.fresh[form.start]), None)
        if continuation:
            message = f"a line that starts with `{self._tokens.text(continuation)}` continues the line above"
            self._report.tell("continued-line", message, self._tokens.span(continuation), STATEMENT_FORM)
        else:
            self._report.tell("not-a-statement", "this value is not used", self._span(node), USE_FORM)

    def _outputs(self, node: Node) -> tuple[Ident, ...]:
        """The names of `<a, b>`, or of `a` alone."""
        is_list = self._tokens.kinds[node.start] == "<"
        names = tuple(self._ident(index) for index in range(node.start + is_list, node.end - is_list, 2))
        has_duplicates(names, "output", self._report)
        return names

    def _span(self, node: Node) -> Span:
        return self._tokens.span(0, node.end - 1)

    @property
    def _doc(self) -> str | None:
        return self._tokens.docs.get(self._tokens.starts[0])
