"""Puts the items of a text together: what stands in which block, and what may not stand there."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from parsimonious.nodes import Node

from weft.errors import Report
from weft.syntax.ast import BodyStatement, For, OutputStatement, Program, SpindleDefinition, Statement
from weft.syntax.pragmas import read_pragma
from weft.syntax.statements import LoopHead, SpindleHead, StatementBuilder
from weft.syntax.tokens import Tokens


@dataclass
class _Block:
    """A spindle or loop that is open. One in the wrong place is read for its errors and then dropped."""

    head: SpindleHead | LoopHead
    start: int
    brace: int
    is_misplaced: bool
    body: list[BodyStatement] = field(default_factory=list)


class Assembly:
    """Takes the items of one text in their order and makes a program of them."""

    def __init__(self, tokens: Tokens, statements: Collection[str], report: Report) -> None:
        self._tokens = tokens
        self._names = statements
        self._report = report
        self._build = StatementBuilder(tokens, report)
        self._blocks: list[_Block] = []
        self._statements: list[Statement] = []

    def add(self, item: Node) -> None:
        """One match of a form of `item`."""
        if self._belongs_outside(item):
            self._leave_unclosed_blocks(item)
        if item.expr_name == "spindle":
            self._open_spindle(item)
        elif item.expr_name == "loop":
            self._open_loop(item)
        elif self._blocks:
            self._add_to_block(item, self._blocks[-1])
        else:
            self._add_to_program(item)

    def close(self, brace: int) -> None:
        """Ends the block that a } belongs to, and all in it; nothing if that is no block."""
        openings = [block.brace for block in self._blocks]
        opening = next((o for o in openings if self._tokens.partners.get(o) == brace), None)
        while opening is not None and self._blocks and self._blocks[-1].brace >= opening:
            self._end_block(brace)

    def _end_block(self, last: int) -> None:
        block = self._blocks.pop()
        span, body = self._tokens.span(block.start, last), tuple(block.body)
        if block.is_misplaced:
            return
        if isinstance(block.head, LoopHead):
            loop = For(block.head.variable, block.head.first, block.head.last, body, span)
            self._blocks[-1].body.append(loop)
        else:
            head = block.head
            spindle = SpindleDefinition(head.name, head.parameters, head.outputs, body, span, head.doc)
            self._statements.append(spindle)

    def finish(self, last: int) -> Program:
        """The program, with all blocks ended."""
        while self._blocks:
            self._end_block(last)
        return Program(tuple(self._statements))

    def _belongs_outside(self, item: Node) -> bool:
        """Whether an item cannot stand in a block."""
        if item.expr_name == "binding":
            outputs = item.children[2]
            return bool(outputs.children)
        if item.expr_name == "call":
            return self._tokens.text(item.start) in self._names
        return item.expr_name != "loop"

    def _add_to_program(self, item: Node) -> None:
        statement: Statement | None
        if item.expr_name == "binding":
            statement = self._build.binding(item)
        elif item.expr_name == "call":
            statement = self._build.call(item)
        elif item.expr_name == "setting":
            statement = self._build.setting(item)
        else:
            statement = read_pragma(self._tokens, item.start, item.end, self._report)
        if statement:
            self._statements.append(statement)

    def _add_to_block(self, item: Node, block: _Block) -> None:
        statement: BodyStatement | OutputStatement | None = None
        if item.expr_name == "binding":
            statement = self._build.assignment(item)
        elif item.expr_name == "call":
            statement = self._build.call(item)
        elif item.expr_name == "setting":
            place = self._tokens.span(item.start, item.start + 3)
            self._report.error("misplaced-setting", "a setting cannot stand in a spindle", place)
        else:
            place = self._tokens.span(item.start)
            self._report.error("misplaced-pragma", "a pragma cannot stand in a spindle", place)
        if isinstance(statement, OutputStatement):
            self._report_output(statement)
        elif statement:
            block.body.append(statement)

    def _report_output(self, statement: OutputStatement) -> None:
        if statement.name in self._names:
            message = f"`{statement.name}` cannot stand in a spindle"
            hint = "let the spindle give a value out, and put that out in the patch"
            self._report.error("misplaced-output", message, statement.head, hint)
        else:
            hint = f"give it a name: a = {statement.name}(…)"
            self._report.error("not-a-statement", "this value is not used", statement.span, hint)

    def _leave_unclosed_blocks(self, item: Node) -> None:
        """Ends blocks that have no `}`, which was reported, before something that cannot stand in them."""
        while self._blocks and self._blocks[0].brace not in self._tokens.partners:
            self._end_block(item.start - 1)

    def _open_spindle(self, item: Node) -> None:
        is_nested = bool(self._blocks)
        if is_nested:
            place = self._tokens.span(item.start)
            self._report.error("nested-spindle", "a spindle cannot stand in another spindle or in a loop", place)
        self._blocks.append(_Block(self._build.spindle(item), item.start, item.end - 1, is_nested))

    def _open_loop(self, item: Node) -> None:
        is_outside = not self._blocks
        if is_outside:
            place = self._tokens.span(item.start)
            self._report.error("misplaced-loop", "a loop stands only in a spindle", place)
        self._blocks.append(_Block(self._build.loop(item), item.start, item.end - 1, is_outside))
