"""What one build leaves for the next, by name. So a save costs what its edit changes, however long the text is.

`syntax.edits` parses the lines around an edit. `graph.affected.Edit` says which names mean the same, and how far the
effect of a change spreads. `graph.kept_shapes`, `ir.lower` and `codegen.units` keep what belongs to those names.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass, replace
from typing import TypeAlias

from weft.codegen.kernel import Unit
from weft.codegen.units import KeptUnit
from weft.codes.rows import InternalError
from weft.contexts import ContextSpec, ContextTable
from weft.errors import Diagnostic, Report, Source, Span
from weft.graph.affected import Edit, Means, Mentions
from weft.graph.bindings import alike, collect
from weft.graph.budget import TOO_LARGE, Budget
from weft.graph.elaborate import CYCLE
from weft.graph.kept_shapes import KeptShapes
from weft.graph.nodes import RenderGraph, Subgraph
from weft.graph.numbers import Numbers
from weft.graph.patch import Patch
from weft.names import StrandRef
from weft.runtime.compiling.opened import OpensMedia
from weft.sources import MediaHeader
from weft.syntax.ast import (
    Argument, Binding, CallBinding, Number, OutputStatement, Program, SpindleDefinition, Statement
)
from weft.syntax.edits import EditedText, PlaceIndex

_Core: TypeAlias = "Statement | tuple[Argument, ...]"


def _core(statement: Statement) -> _Core:
    """What a statement says, wherever it is. For an output statement these are its arguments alone, since the statement
    becomes another object when it moves."""
    return statement.args if isinstance(statement, OutputStatement) else statement


def _in_place_of(statement: Statement, earlier: Statement) -> Statement:
    """The earlier statement, at the place where the new one is now."""
    if isinstance(statement, OutputStatement) and isinstance(earlier, OutputStatement):
        return replace(statement, args=earlier.args)
    return earlier


class KeptBuild:
    """What one build leaves for the next: statements, what they mean, and their expressions.

    A statement that an edit leaves alone stays the same object (`syntax.edits`). A name keeps its meaning if its own
    statements are the same objects as before, and if the same is true of every name that they mention, directly or
    indirectly.

    A kept statement has its place in an older text. `_placed` finds where that is in the current text, for diagnostics
    and loops.
    """

    def __init__(self, has_names: bool = False) -> None:
        """Units have names for listings only if it `has_names`."""
        self._has_names = has_names
        self._texts: dict[str, EditedText] = {}
        self.opening = OpensMedia()
        self._mentions = Mentions()
        self._numbers = Numbers()
        self._read: set[_Core] = set()
        """The statements whose numbers are open."""
        self._outputs: Sequence[OutputStatement] = ()
        """The output statements of the last successful build."""
        self._stands: dict[_Core, tuple[Statement, Mapping[Number, float]]] = {}
        """The statements that differ from an earlier one in open numbers only, each with that earlier one and the new
        values."""
        self._written: Mapping[Statement, Statement] = {}
        """For each statement of the program, the one in the current text that it replaces."""
        self._tuned = PlaceIndex(())
        """The statements of the program that differ from the ones that they replace."""
        self._meant: Mapping[str, Means] = {}
        """What each name means, for all names of which something is kept."""
        self._about: object = None
        """What the meaning of everything depends on."""
        self._shapes: KeptShapes | None = None
        self._units: dict[str, KeptUnit] = {}
        self._collected: Patch | None = None
        """The patch of the last text, before anything overrides its settings."""
        self._patch: Patch | None = None
        """The same of the last successful build."""
        self._spent = 0
        self._spent_alone = 0
        """The steps of the first build, which kept nothing."""
        self._builds = 0

    def become(self, other: KeptBuild) -> None:
        """Takes over everything that another build left, and drops its own."""
        vars(self).update(vars(other))

    @property
    def has_grown(self) -> bool:
        """Whether much is kept that no text needs any more: a build from scratch would keep far less."""
        return self._spent > self._spent_alone + max(_MOST_ANEW, _MOST_TIMES * self._spent_alone)

    def would_lose_much(self, edit: Edit, has_kernels: bool) -> bool:
        """Whether a build of this text, which is known to fail, would forget much that the next one needs. Unless
        it `has_kernels`, that is more than the names of this text: a build from scratch evaluates all of these."""
        return len(self._meant.keys() - edit.kept) > (_MOST_LOST if has_kernels else max(_MOST_LOST, len(edit.means)))

    def parse(self, source: Source, report: Report, statements: Collection[str]) -> Program:
        """The program of a text, with statements of the one before; see `EditedText.parse`."""
        return self._texts.setdefault(source.name, EditedText()).parse(source, report, statements)

    def most_steps(self, most: int) -> int:
        """The steps that a build may take when it uses what is kept. A build that needs more new steps than a build
        from scratch did may have to be refused. Only a build from scratch can decide that, so it begins at once."""
        return min(most, self._spent + max(_MOST_ANEW, self._spent_alone)) if self._builds > 1 else most

    def with_open_numbers(self, program: Program) -> Program:
        """The program, in which earlier statements replace those that differ from them in open numbers only. These
        numbers have their new values from here on. An output statement keeps its new place, and gets the earlier
        arguments."""
        self._builds += 1
        stands: dict[_Core, tuple[Statement, Mapping[Number, float]]] = {}
        values: dict[Number, float] = {}
        cores = [_core(each) for each in program.statements]
        used = {*cores, *(_core(self._stands[core][0]) for core in cores if core in self._stands)}
        statements = list[Statement]()
        for each, core in zip(program.statements, cores, strict=True):
            statement = each
            if core not in self._read:
                known = self._stands.get(core) or self._earlier(each, used)
                if known is None:
                    self._numbers.open_in(each)
                    self._read.add(core)
                else:
                    stands[core], (earlier, tuned) = known, known
                    statement = _in_place_of(each, earlier)
                    values |= tuned
                    used.add(_core(earlier))
            statements.append(statement)
        self._stands, self._numbers.values = stands, values
        self._written = dict(zip(statements, program.statements, strict=True))
        self._tuned = PlaceIndex([each for each, written in self._written.items() if each is not written])
        return Program(tuple(statements))

    def _earlier(
        self, statement: Statement, used: Container[_Core]
    ) -> tuple[Statement, Mapping[Number, float]] | None:
        """A statement of the text before that is not `used` yet and differs from this one in open numbers only, with
        the new values of these. It must be bound in the same file."""
        candidates: Iterable[object] = ()
        if isinstance(statement, (Binding, CallBinding, SpindleDefinition)):
            candidates = self._meant.get(statement.name.name, ())
        elif isinstance(statement, OutputStatement):
            candidates = [each for each in self._outputs if each.name == statement.name]
        file = statement.span.source.name
        for earlier in candidates:
            if isinstance(earlier, Statement) and earlier.span.source.name == file:
                is_free = _core(earlier) in self._read and _core(earlier) not in used
                values = self._numbers.tuned(earlier, statement) if is_free else None
                if values is not None:
                    return earlier, values
        return None

    def collect(
        self, program: Program, contexts: ContextTable, report: Report, media: Mapping[str, MediaHeader | None]
    ) -> tuple[Patch, Edit]:
        """The names of a program (see `graph.bindings.collect`), and what became of them since the last good build. A
        name that refers to the same strands has the same instance."""
        edit, last, own = Edit.between(self._meant, program, self._mentions), self._patch, Report()
        if last is None:
            patch = collect(program, contexts, own, media, numbers=self._numbers)
        else:
            patch, edit, own = self._collected_again(program, contexts, media, last, edit)
            if (patch.settings, patch.media) != (last.settings, last.media):
                own = Report()
                patch = collect(program, contexts, own, media, numbers=self._numbers)
        report.add(self.located(own.diagnostics))
        self._collected = patch
        return patch, edit

    def _collected_again(
        self, program: Program, contexts: ContextTable, media: Mapping[str, MediaHeader | None], last: Patch, edit: Edit
    ) -> tuple[Patch, Edit, Report]:
        """The names of a program, most of which refer to the same strands as in the `last` patch. An edit affects what
        mentions a changed name, and spreads from there; it stops at every name that still refers to the same
        strands."""

        def collected(stale: Set[str]) -> tuple[Patch, Report]:
            found = Report()
            known = {name: last.instances[name] for name in edit.unchanged - stale if name in last.instances}
            return collect(program, contexts, found, media, known, last, self._numbers), found

        made = list[tuple[Patch, Report]]()

        def differing(stale: Set[str], _new: Set[str]) -> list[str]:
            made.append(collected(stale))
            now, is_spindle = made[-1][0].instances, edit.mentioned_by.is_spindle
            # A spindle that mentions what differs may give other strands wherever it is called.
            return [name for name in stale if is_spindle(name) or not alike(last.instances.get(name), now.get(name))]

        stale = edit.spread(edit.reshaped(), differing)
        patch, found = made[-1] if stale is not None else collected(edit.stale)
        return patch, edit if stale is None else replace(edit, stale=frozenset(stale)), found

    def shapes(self, patch: Patch, program: Program, budget: Budget, edit: Edit) -> tuple[KeptShapes, Edit]:
        """What is known of the shapes of a patch, and the edit with which all that is kept becomes that of this
        patch."""
        about = patch.settings, patch.media
        if about != self._about or self._shapes is None:
            self._shapes, self._about = KeptShapes.of(patch, budget, self._numbers), about
            self._units = {}
            edit = Edit.between({}, program, self._mentions)
        # If this build fails, only this is kept.
        self._meant = {name: self._meant[name] for name in edit.kept}
        budget.spent = self._spent
        self._shapes.retain(patch, budget, edit)
        return self._shapes, edit

    def over(self) -> Mapping[StrandRef, frozenset[str]]:
        """What the strands of the last build depend on; see `KeptShapes.over`."""
        return self._shapes.over() if self._shapes is not None else {}

    def located(self, found: Sequence[Diagnostic]) -> list[Diagnostic]:
        """The diagnostics, with the places of kept statements replaced by those in the current text. Raises
        UnplacedError if only a build from scratch can find these places, or what is wrong."""

        def there(span: Span) -> Span:
            place = self._placed(span)
            if place is None:
                raise UnplacedError
            return place

        mistakes = [each for each in found if each.severity == "error"]
        # With what is kept, a build counts at least as many steps as one from scratch, and finds at least the same
        # reads. So it may report an error that one from scratch does not.
        if self._builds > 1 and any(each.code in _TOLD_ALONE or self._quotes_tuned(each) for each in mistakes):
            raise UnplacedError
        return [
            replace(
                each, span=each.span and there(each.span), fix=each.fix and (there(each.fix[0]), each.fix[1]),
                related=tuple([(there(span), words) for span, words in each.related]),
            ) for each in found
        ]  # fmt: skip

    def now(self, span: Span) -> Span:
        """The place in the current text of a place in a kept statement; if that is not known, the place itself."""
        return self._placed(span) or span

    def holder(self, span: Span) -> Statement | None:
        """The statement that holds a place of the current text; None if there is none."""
        text = self._texts.get(span.source.name)
        return None if text is None else text.holder(span)

    def _placed(self, span: Span) -> Span | None:
        """The place in the current text of a place in a kept statement; None if the current text has no such place."""
        text = self._texts.get(span.source.name)
        if text is None or span.source.library:
            return span
        if (tuned := self._tuned.at(span)) is None:
            return text.placed(span)
        place = _across(tuned, self._written[tuned], span)
        return place and text.placed(place)

    def _quotes_tuned(self, found: Diagnostic) -> bool:
        """Whether a diagnostic may quote the earlier value of a number."""
        earlier = {word for each in self._numbers.values for word in (each.span.text, f"{each.value:g}")}
        fix = found.fix[1] if found.fix else ""
        words = " ".join([found.message, found.hint or "", fix, *(more for _, more in found.related)])
        return not earlier.isdisjoint(_WRITTEN_NUMBER.findall(words))

    def unit(
        self, patch: Patch, graph: RenderGraph, subgraph: Subgraph, spec: ContextSpec, budget: Budget, edit: Edit
    ) -> KeptUnit:
        """What is known of a subgraph."""
        known = self._units.get(subgraph.name)
        if known is None or known.context.spec is not spec:
            known = self._units[subgraph.name] = KeptUnit.of(spec, patch, self._numbers, self._has_names)
        known.lowering.retain(patch, graph, subgraph, budget, edit)
        return known

    def forget_unit(self, name: str) -> None:
        """Has a subgraph compiled from scratch."""
        del self._units[name]

    def loops(self, unit: Unit, is_new: bool) -> Collection[Span] | None:
        """The places of the loops of a unit in the current text; None if they can be found only after the unit is
        compiled again, as it is if it `is_new`. Equal loops are one, which has the place where it was made first, and
        loops that were kept may have been made in another order."""
        if is_new:
            return [place for span in unit.loops if (place := self._placed(span)) is not None]
        known = self._units[unit.subgraph.name]
        assert known.made is not None
        made_for = _made_for(known)
        shown: dict[Span, set[Span]] = {span: set() for span in unit.loops}
        for node in known.made.written.nodes:
            if node.op == "loop" and node.span in shown:
                shown[node.span] |= made_for.get(node.key, set())
        places = [list(filter(None, map(self._placed, spans))) for spans in shown.values()]
        return {place for place, in places} if all(len(each) == 1 for each in places) else None

    def succeed(self, budget: Budget, edit: Edit) -> None:
        """Keeps what the text means."""
        self._meant, self._spent, self._patch = edit.means, budget.spent, self._collected
        self._spent_alone = self._spent_alone or budget.spent
        self._outputs = [each for each in self._written if isinstance(each, OutputStatement)]
        self._read &= {each for means in edit.means.values() for each in means if isinstance(each, Statement)} | {
            each.args for each in self._outputs
        }

    def keep_units(self, graph: RenderGraph) -> None:
        """Keeps the units of a graph, and drops all others."""
        names = {subgraph.name for subgraph in graph.subgraphs}
        self._units = {name: unit for name, unit in self._units.items() if name in names}


def _made_for(known: KeptUnit) -> dict[int, set[Span]]:
    """The places in the text for which the loops of a unit were made, by the keys of the loops. Open numbers do not
    change these keys."""
    found: dict[int, set[Span]] = {}
    for elaborator in known.lowering.elaborators.values():
        for result, span in elaborator.loops:
            found.setdefault(result.args[0].key, set()).add(span)
    return found


def _across(one: Statement, other: Statement, span: Span) -> Span | None:
    """The place in another statement that corresponds to a place in this one. The two differ in numbers only. None if
    the place does not begin and end with an expression."""
    pairs = list(zip(_spans(one), _spans(other), strict=True))
    starts = [theirs for mine, theirs in pairs if mine.source is span.source and mine.start == span.start]
    ends = [theirs for mine, theirs in pairs if mine.source is span.source and mine.end == span.end]
    return Span(starts[0].source, starts[0].start, ends[0].end) if starts and ends else None


def _spans(node: object) -> Iterator[Span]:
    """The places of all parts of a statement."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Span):
            yield node
        elif isinstance(node, tuple):
            waiting += node
        elif is_dataclass(node):
            waiting += [getattr(node, each.name) for each in fields(node)]


# Errors that an incremental build only suspects, or reports at other places.
_TOLD_ALONE = frozenset({TOO_LARGE, CYCLE, "too-many-errors"})

# This many steps take a tenth of a second.
_MOST_ANEW = 100_000

# What is kept may have taken this many times the steps of a build from scratch, and those.
_MOST_TIMES = 3

# After a correction, evaluating this many names again takes a few milliseconds.
_MOST_LOST = 12

# Numbers in messages, whether quoted from a text or formatted.
_WRITTEN_NUMBER = re.compile(r"\d*\.?\d+(?:[eE][+-]?\d+)?|\d+\.")


class UnplacedError(InternalError):
    """Only a build from scratch can find out what is wrong, and where."""
