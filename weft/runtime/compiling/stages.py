"""From a text to kernels: all stages in order, the errors that they find, and the time that each takes.

`analyse` stops at the render graph and needs no code generator; `build` continues to kernels.
"""

from __future__ import annotations

import gc
import os
import re
import time
from bisect import bisect_right
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import NamedTuple, TypeAlias, TypeVar

from weft.cameras import camera_named, is_device
from weft.codegen.kernel import Unit
from weft.codegen.units import KeptUnit, compile_unit
from weft.codes.rows import InternalError
from weft.contexts import ContextSpec, ContextTable
from weft.errors import CLOSE_NAME, LONGEST_WORD, Diagnostic, Report, Source, Span, WeftError
from weft.graph.bindings import alike, collect
from weft.graph.budget import MOST_STEPS, TOO_LARGE, Budget
from weft.graph.build import KeptShapes, build_graph
from weft.graph.calls import called_letters, constant_arguments, media_kind, media_path, source_text
from weft.graph.components import reachable
from weft.graph.domain import SETTINGS, fitted
from weft.graph.elaborate import CYCLE
from weft.graph.false_friends import false_friends
from weft.graph.mentions import Means, Mentions, mentioned_in, name_of
from weft.graph.nodes import RenderGraph, Subgraph
from weft.graph.numbers import Numbers, StaleError
from weft.graph.patch import Patch
from weft.ir.expr import Lowered
from weft.media.sampled import header_of
from weft.names import LiveName, file_of, is_heard, outlet_of
from weft.permissions import DEFAULT_PERMISSIONS, Denial, Permissions, Reach
from weft.runtime.hands.parameters import ParameterSpec
from weft.runtime.program.compiled import CompiledProgram
from weft.sources import SOURCES, UNSEEN, MediaHeader, load_packages
from weft.syntax.ast import (
    Argument, Binding, Call, CallBinding, Expression, Number, OutputStatement, Program, SpindleDefinition, Statement,
    Text, walk_statement
)
from weft.syntax.edits import EditedText, holds
from weft.syntax.includes import load
from weft.syntax.parser import parse
from weft.syntax.scanner import read_text

T = TypeVar("T")
Probe = Callable[[str], "MediaHeader | str"]
"""Gives width and height of a picture file in pixels, or why it cannot be read."""


@dataclass(frozen=True)
class Analysis:
    """A program whose meaning is known. `files` are the texts and `media` the pictures that it names; `opened` are the
    places in the text at which pictures and sounds are opened, by name or by path; `warnings` are those found so far.
    Lowering continues to spend from the same `budget`."""

    patch: Patch
    graph: RenderGraph
    program: Program
    contexts: ContextTable
    files: tuple[str, ...]
    media: tuple[str, ...]
    opened: Mapping[str, Span]
    warnings: tuple[Diagnostic, ...]
    budget: Budget
    parse_ms: float
    graph_ms: float


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

    def __init__(self) -> None:
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
        self._meant: Mapping[str, Means] = {}
        """What each name means, for all names of which something is kept."""
        self._about: object = None
        """What the meaning of everything depends on."""
        self._shapes: KeptShapes | None = None
        self._units: dict[str, KeptUnit] = {}
        self.kept: frozenset[str] = frozenset()
        """The names that mean the same as in the build before."""
        self._resolved: frozenset[str] = frozenset()
        """The names whose own statements are the same, and in these every mentioned name refers to the same strands as
        before. The values of those strands may differ."""
        self._means: Mapping[str, Means] = {}
        self._unchanged: frozenset[str] = frozenset()
        self._changed: frozenset[str] = frozenset()
        self._collected: Patch | None = None
        self._patch: Patch | None = None
        """The patch of the last successful build, as it was collected."""
        self._spent = 0
        self._spent_alone = 0
        """The steps of the first build, which kept nothing."""
        self._builds = 0

    def become(self, other: KeptBuild) -> None:
        """Takes over everything that another build left, and drops its own."""
        vars(self).update(vars(other))

    @property
    def would_lose_much(self) -> bool:
        """Whether a build of this program, which is known to fail, would forget much that the next text needs."""
        return len(self._meant.keys() - self.kept) > _MOST_LOST

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
    ) -> Patch:
        """The names of a program (see `graph.names.collect`). A name that refers to the same strands has the same
        instance."""
        self._compare(program)
        last, own = self._patch, Report()
        if last is None:
            patch = collect(program, contexts, own, media, numbers=self._numbers)
        else:
            patch = self._collected_again(program, contexts, own, media, last)
            if (patch.settings, patch.media) != (last.settings, last.media):
                own = Report()
                patch = collect(program, contexts, own, media, numbers=self._numbers)
        report.add(self.located(own.diagnostics))
        self._collected = patch
        return patch

    def _collected_again(
        self, program: Program, contexts: ContextTable, report: Report, media: Mapping[str, MediaHeader | None],
        last: Patch,
    ) -> Patch:  # fmt: skip
        """The names of a program, most of which refer to the same strands as in the `last` patch. An edit affects what
        mentions a changed name, and spreads from there; it stops at every name that still refers to the same
        strands."""
        affected = self._unchanged - self.kept
        stale = self._mentions.reshaped(self._changed, affected)
        for _ in range(_MOST_ROUNDS):
            found = Report()
            known = {name: last.instances[name] for name in self._unchanged - stale if name in last.instances}
            patch = collect(program, contexts, found, media, known, last, self._numbers)
            differing = (name for name in stale if not alike(last.instances.get(name), patch.instances.get(name)))
            again = {each for name in differing for each in self._mentions[name]} & affected - stale
            if not again:
                break
            stale |= again
        else:
            stale, found = {*self._changed, *affected}, Report()
            known = {name: last.instances[name] for name in self.kept if name in last.instances}
            patch = collect(program, contexts, found, media, known, last, self._numbers)
        report.add(found)
        self._resolved = self._unchanged - stale
        return patch

    def _compare(self, program: Program) -> None:
        """Finds the names that mean the same as before."""
        before = self._meant
        self._means = means = self._mentions.update(program, before)
        self._unchanged = frozenset([name for name, now in means.items() if before.get(name) == now])
        self._changed = frozenset((before.keys() | means.keys()) - self._unchanged)
        affected = reachable(self._changed, self._mentions)
        self.kept = self._unchanged - affected
        self._resolved = self.kept

    def shapes(self, patch: Patch, program: Program, budget: Budget) -> KeptShapes:
        """What is known of the shapes of a patch. From here on, all that is kept belongs to this patch."""
        about = patch.settings, patch.media
        if about != self._about or self._shapes is None:
            self._shapes, self._about = KeptShapes.of(patch, budget, self._numbers), about
            self._units, self._meant = {}, {}
            self._compare(program)
        # If this build fails, only this is kept.
        self._meant = {name: self._meant[name] for name in self.kept}
        budget.spent = self._spent
        self._shapes.retain(patch, budget, self._changed, self._unchanged, self._resolved, self._mentions)
        return self._shapes

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
        told_alone = _TOLD_ALONE | (_ABOUT_SHAPES if len(mistakes) > 1 else frozenset())
        if self._builds > 1 and any(each.code in told_alone or self._quotes_tuned(each) for each in mistakes):
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

    def _placed(self, span: Span) -> Span | None:
        """The place in the current text of a place in a kept statement; None if the current text has no such place."""
        text = self._texts.get(span.source.name)
        if text is None or span.source.library:
            return span
        for statement, written in self._written.items():
            if statement is not written and holds(statement, span):
                place = _across(statement, written, span)
                return place and text.placed(place)
        return text.placed(span)

    def _quotes_tuned(self, found: Diagnostic) -> bool:
        """Whether a diagnostic may quote the earlier value of a number."""
        earlier = {word for each in self._numbers.values for word in (each.span.text, f"{each.value:g}")}
        fix = found.fix[1] if found.fix else ""
        words = " ".join([found.message, found.hint or "", fix, *(more for _, more in found.related)])
        return not earlier.isdisjoint(_WRITTEN_NUMBER.findall(words))

    def unit(self, patch: Patch, graph: RenderGraph, subgraph: Subgraph, spec: ContextSpec, budget: Budget) -> KeptUnit:
        """What is known of a subgraph."""
        known = self._units.get(subgraph.name)
        if known is None or known.context.spec is not spec:
            known = self._units[subgraph.name] = KeptUnit.of(spec, patch, self._numbers)
        known.lowering.retain(patch, graph, subgraph, budget, self.kept, self._resolved)
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

    def succeed(self, graph: RenderGraph, budget: Budget) -> None:
        """Keeps what was built."""
        self._meant, self._spent, self._patch = self._means, budget.spent, self._collected
        self._spent_alone = self._spent_alone or budget.spent
        self._outputs = [each for each in self._written if isinstance(each, OutputStatement)]
        self._read &= {each for means in self._means.values() for each in means if isinstance(each, Statement)} | {
            each.args for each in self._outputs
        }
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


# Errors that an incremental build only suspects, or reports at other places. Errors about shapes join them when there
# are several: the places of statements show which of them follow from others.
_TOLD_ALONE = frozenset({TOO_LARGE, CYCLE, "too-many-errors"})

# The rounds in which names that refer to other strands are looked for. After that, all names that may do so count.
_MOST_ROUNDS = 4

# This many steps take a tenth of a second.
_MOST_ANEW = 100_000

# After a correction, evaluating this many names again takes a few milliseconds.
_MOST_LOST = 12

# Numbers in messages, whether quoted from a text or formatted.
_WRITTEN_NUMBER = re.compile(r"\d*\.?\d+(?:[eE][+-]?\d+)?|\d+\.")


class UnplacedError(InternalError):
    """Only a build from scratch can find out what is wrong, and where."""


def analyse(
    source: Source, contexts: ContextTable, settings: Mapping[str, float] | None = None, probe: Probe | None = None,
    read: Callable[[str], str] = read_text, consume: str | None = None, room: tuple[int, int] | None = None,
    most_steps: int = MOST_STEPS, kept: KeptBuild | None = None, permissions: Permissions = DEFAULT_PERMISSIONS,
    stay: Container[str] = frozenset(),
) -> Analysis:
    """Reads a text and builds its render graph. `settings` override those of the patch; `probe` looks into picture
    files, which are not looked at without it; `permissions` say what may be opened besides what lies below the folder
    of the text; an output statement to `consume` (`display(a@v)`) replaces all output statements of the patch, except
    those whose words are in `stay`. A picture that is larger than `room` (width, height) is made smaller, with the same
    aspect. The whole compile may take `most_steps` (`graph/budget.py`). What is `kept` of an earlier build is not done
    again.

    Raises WeftError with all diagnostics if there is an error among them.
    """
    report = Report()
    started = time.perf_counter()
    load_packages()
    loaded = load(source, report, contexts.statements, read, kept.parse if kept else parse, permissions)
    parsed = time.perf_counter()
    program = loaded.program
    if consume is not None:
        others = (s for s in program.statements if not isinstance(s, OutputStatement) or s.name in stay)
        program = Program((*others, *parse(Source("(asked for)", consume), report, contexts.statements).statements))
    meaning = Report()
    of_media = Report()
    if kept is not None:
        program = kept.with_open_numbers(program)
        report = Report(kept.located(report.diagnostics))
    reach = permissions.reach(source.name)
    named = check_media(loaded.program, of_media, reach, probe, kept.opening if kept else None)
    media = {name: each.header for name, each in named.items()}
    patch = (kept.collect if kept else collect)(program, contexts, meaning, media)
    check_outlets(patch, of_media, reach)
    if kept is not None and report.errors and kept.would_lose_much:
        raise UnplacedError
    unbound = frozenset(meaning.errors)
    for name, value in (settings or {}).items():
        if not SETTINGS[name].accepts(value):
            meaning.tell("setting-out-of-range", f"{name} is {SETTINGS[name].range}, not {value:g}")
    if settings:
        patch = replace(patch, settings={**patch.settings, **settings})
    if room:
        patch = replace(patch, settings=fitted(patch.settings, room))
    budget = Budget(kept.most_steps(most_steps) if kept else most_steps)
    known = kept.shapes(patch, program, budget) if kept else None
    graph = build_graph(patch, contexts, meaning, budget, known)
    meaning.add(of_media)
    meaning.add(false_friends(loaded.program))
    if kept is not None:
        meaning = Report(kept.located(meaning.diagnostics))
    report.add(_without_follow_ups(meaning, report, unbound, loaded.program))
    report.raise_errors()
    files = tuple(dict.fromkeys(file for name in media if (file := file_of(name)) is not None))
    opened = {name: kept.now(each.place) if kept else each.place for name, each in named.items()}
    took = (parsed - started) * 1e3, (time.perf_counter() - parsed) * 1e3
    return Analysis(patch, graph, loaded.program, contexts, loaded.files, files, opened, tuple(report), budget, *took)


@contextmanager
def without_collection() -> Iterator[None]:
    """Suspends garbage collection: a compile makes many objects that live until it ends. They count as old then, and
    are not all searched for garbage at once."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.freeze()
            gc.unfreeze()
            gc.enable()


def each_subgraph(found: Analysis, make: Callable[[Subgraph], T]) -> tuple[list[T], tuple[Diagnostic, ...]]:
    """The results of `make` for the subgraphs, in their order, and all warnings. Raises WeftError with the errors of
    all subgraphs together."""
    report = Report(list(found.warnings))
    made: list[T] = []
    for subgraph in found.graph.subgraphs:
        try:
            made.append(make(subgraph))
        except WeftError as failure:
            report.add(failure.diagnostics)
            if found.budget.is_spent:
                break
    report.raise_errors()
    return made, tuple(report)


# The codes of errors about missing names.
_UNKNOWN = frozenset(
    {"unknown-strand", "unknown-call", "unknown-output", "call-without-arguments", "output-not-assigned"}
)

# The errors that may follow from a library or another text that could not be read.
_UNREAD: Mapping[str, frozenset[str]] = {
    "unknown-library": frozenset({"unknown-call"}),
    "include-unreadable": frozenset({"unknown-call", "unknown-strand", "call-without-arguments"}),
}

# Any name; and the one of which a member is picked.
_NAME = re.compile(r"[^\W\d]\w*")
_PICKED = re.compile(r"(\w+)(?:@|\[)\Z")

# The codes of errors about how many strands there are, and what they are called.
_ABOUT_SHAPES = frozenset(
    {"unknown-output", "index-out-of-range", "count-mismatch", "several-strands", "wrong-arguments", "nested-bundle"}
)


def _without_follow_ups(
    found: Report, syntax: Report, unbound: Collection[Diagnostic], program: Program
) -> list[Diagnostic]:
    """The findings that do not merely follow from others. A name seems to be missing after a syntax error, after
    another error in the statement that binds it (then it is `unbound`), or if a file or library cannot be read. The
    number of strands is unknown if they cannot be evaluated."""
    broken = {_line(d.span) for d in syntax.errors if d.span}
    lines = {(d.span.source, d.span.source.position(d.span.start)[0]) for d in unbound if d.span}
    lost = {(source, name) for source, line in lines for name in _BOUND.findall(source.line(line))}
    unread = {d.code for d in syntax.errors} & _UNREAD.keys()
    missing = frozenset[str]().union(*(_UNREAD[code] for code in unread))
    bound: dict[Source, frozenset[str]] = {}

    def follows(d: Diagnostic) -> bool:
        if d.span is None:
            return False
        if _line(d.span) in broken or (d.code in missing and not (d.hint or "").startswith(CLOSE_NAME)):
            return True
        if d.code not in _UNKNOWN:
            return False
        name = d.span.text.partition("@")[0].partition("(")[0].strip()
        if not broken:
            return (d.span.source, name) in lost and d not in unbound
        if d.span.source not in bound:
            bound[d.span.source] = frozenset(_BOUND.findall(d.span.source.text))
        return name in bound[d.span.source]

    return _without_unknown_shapes([d for d in found if not follows(d)], program)


def _without_unknown_shapes(found: list[Diagnostic], program: Program) -> list[Diagnostic]:
    """The findings, except those about the number or names of strands in a statement that mentions, directly or
    indirectly, a strand whose own statement is wrong."""
    doubtful = [d for d in found if d.code in _ABOUT_SHAPES and d.span]
    if not doubtful:
        return found
    statements = sorted((each.span.source.name, each.span.start, n) for n, each in enumerate(program.statements))

    def of(d: Diagnostic) -> Statement | None:
        """The statement in which something was found."""
        assert d.span is not None
        at = bisect_right(statements, (d.span.source.name, d.span.start, len(statements))) - 1
        statement = program.statements[statements[at][2]] if at >= 0 else None
        return statement if statement is not None and holds(statement, d.span) else None

    of_errors = (of(d) for d in found if d.severity == "error" and d.span)
    wrong = {each.name.name for each in of_errors if isinstance(each, Binding) and each.outputs is None}
    if not wrong:
        return found
    mentioned_by: dict[str, list[str]] = {}
    for each in program.statements:
        if isinstance(each, Binding) and each.outputs is None:
            for word in mentioned_in(each):
                mentioned_by.setdefault(word, []).append(each.name.name)
    unknown = reachable(wrong, mentioned_by)

    def follows(d: Diagnostic) -> bool:
        if d.span is None or (statement := of(d)) is None:
            return False
        picked = _PICKED.search(d.span.source.text, max(0, d.span.start - LONGEST_WORD), d.span.start)
        texts = [picked[1]] if picked else [d.span.text, *(span.text for span, _ in d.related)]
        names = {name for text in texts for name in _NAME.findall(text)}
        return not unknown.isdisjoint(names & mentioned_in(statement) - {name_of(statement)})

    dropped = {d for d in doubtful if follows(d)}
    left = [d for d in found if d not in dropped]
    return left if any(d.severity == "error" for d in left) else found


def _line(span: Span) -> tuple[str, int]:
    return span.source.name, span.source.position(span.start)[0]


# A name that seems to be bound: at the start of a statement, or after `::`.
_BOUND = re.compile(r"(?:(?:^|[{;])[ \t]*(?:[#\w]+[ \t]+)?|::\s*)(\w+)", re.MULTILINE)


class OpensMedia(dict[Statement, bool]):
    """Whether statements may open pictures or sounds, by the words in their texts."""

    def __missing__(self, statement: Statement) -> bool:
        text = statement.span.text
        return self.setdefault(statement, any(name in text for name in _opened()))


def _opened() -> list[str]:
    """The sources that are pictures for kernels."""
    return [name for name, spec in SOURCES.items() if spec.media or spec.is_drawn or spec.is_live]


class NamedMedia(NamedTuple):
    """A picture or sound that a text names: its header, None if it cannot be read, and the place in the text."""

    header: MediaHeader | None
    place: Span


def check_media(
    program: Program, report: Report, reach: Reach, probe: Probe | None = None, opening: OpensMedia | None = None
) -> dict[str, NamedMedia]:
    """The pictures and sounds that a program names. Those that are out of `reach`, or that cannot be read, are reported
    as errors. What is known of statements is in `opening`."""
    found: dict[str, NamedMedia] = {}
    opening = OpensMedia() if opening is None else opening
    opened = _opened()
    for statement in [each for each in program.statements if opening[each]]:
        for node in walk_statement(statement):
            if isinstance(node, Call) and node.name in opened and (named := _sampled(node)) is not None:
                name, place = named
                shown = f'"{place.value}"' if isinstance(place, Text) else place.span.text
                if (denial := _denial(name, reach)) is not None:
                    report.tell("not-allowed", f"{shown} is not opened: {denial.reason}", place.span, denial.hint)
                    found[name] = NamedMedia(None, place.span)
                    continue
                look = probe or (None if file_of(name) else header_of)
                known = look(name) if look else UNSEEN
                if isinstance(known, str):
                    report.tell("unreadable-source", f"{shown} cannot be read: {known}", place.span)
                else:
                    for remark in known.remarks:
                        report.tell(remark.code, remark.message, place.span, remark.hint)
                found[name] = NamedMedia(None if isinstance(known, str) else known, place.span)
    return found


def _denial(name: str, reach: Reach) -> Denial | None:
    """Why a patch may not open what has this name among pictures; None if it may."""
    camera = camera_named(name)
    if camera is not None and camera.kind == "stream":
        return reach.denial_of_stream()
    file = camera.place if camera is not None and camera.kind == "file" else file_of(name)
    return None if file is None else reach.denial_of_file(file)


def check_outlets(patch: Patch, report: Report, reach: Reach) -> None:
    """Reports outlets that are out of `reach`: pipes elsewhere, and what is no camera."""
    for sink in patch.sinks:
        kind, path = (sink.spec.sweeps_plane and sink.target and outlet_of(sink.target)) or ("", "")
        place = next((arg.value.span for arg in sink.statement.args if arg.label == "to"), sink.statement.span)
        if kind == "v4l2" and not is_device(path):
            words = "a loopback camera is at /dev/video0, /dev/video1 and so on"
            report.tell("unknown-camera", f'"{path}" is no camera', place, words)
        # Whichever text says it, its path is relative to the folder of the patch.
        denial = reach.denial_of_file(os.path.join(reach.own, path)) if kind == "pipe" else None
        if denial is not None:
            report.tell("not-allowed", f'"{path}" is not written to: {denial.reason}', place, denial.hint)


def _sampled(call: Call) -> tuple[str, Expression] | None:
    """The name among pictures of what a call opens, and its place in the text; None for calls with mistakes, which are
    reported elsewhere, and for what is neither picture nor sound."""
    spec = SOURCES[call.name]
    texts = [argument.value for argument in call.args if isinstance(argument.value, Text)]
    with suppress(WeftError):
        if spec.is_live:
            return LiveName(call.name, constant_arguments(call, spec)).name, texts[0] if texts else call
        if spec.media:
            text = source_text(call, spec)
            return (media_path(text), text) if media_kind(text.value, spec) is not None else None
        letters, _ = called_letters(call, spec)
        return letters.name, next((text for text in texts if letters.font == media_path(text)), texts[0])
    return None


@dataclass(frozen=True)
class Build(Analysis):
    """A compiled program. `units` are in an order in which they can run, and `lowered` is what each was compiled
    from."""

    units: tuple[Unit, ...]
    lowered: tuple[Lowered, ...]
    compile_ms: float

    @property
    def compiled(self) -> CompiledProgram:
        """All that is needed to play it."""
        sampled = (name for unit in self.units for kernel in unit.kernels for name in kernel.pictures)
        return CompiledProgram(
            self.units, self.patch.settings, tuple(map(ParameterSpec.of, self.patch.parameters)), self.contexts,
            (self.parse_ms, self.graph_ms, self.compile_ms), self.patch.fade, self.patch.quantize,
            heard=tuple(dict.fromkeys(name for name in sampled if is_heard(name))), glides=self.patch.glides,
        )  # fmt: skip


def build(
    source: Source, contexts: ContextTable, settings: Mapping[str, float] | None = None, optimise: bool = True,
    probe: Probe | None = None, read: Callable[[str], str] = read_text, consume: str | None = None,
    room: tuple[int, int] | None = None, most_steps: int = MOST_STEPS, kept: KeptBuild | None = None,
    permissions: Permissions = DEFAULT_PERMISSIONS, stay: Container[str] = frozenset(),
) -> Build:
    """Compiles a text; see `analyse` for the arguments. Without `optimise`, nothing is folded or hoisted.

    Raises WeftError with all diagnostics if there is an error among them.
    """

    def made(kept: KeptBuild | None) -> Build:
        found = analyse(source, contexts, settings, probe, read, consume, room, most_steps, kept, permissions, stay)
        return _build(found, contexts, optimise, kept)

    with without_collection():
        try:
            return made(kept)
        except StaleError:
            assert kept is not None
            kept.become(KeptBuild())
            return made(kept)
        except UnplacedError:
            assert kept is not None
            alone = KeptBuild()
            whole = made(alone)
            kept.become(alone)
            return whole


def _build(found: Analysis, contexts: ContextTable, optimise: bool, kept: KeptBuild | None) -> Build:
    """Compiles an analysed text; see `build`. Raises StaleError if what is kept cannot be used."""
    started = time.perf_counter()

    def made_unit(sub: Subgraph) -> tuple[Unit, Lowered]:
        known = kept.unit(found.patch, found.graph, sub, contexts[sub.context], found.budget) if kept else None
        is_new = known is None or not known.lowering.pool
        try:
            unit, lowered = compile_unit(found.patch, found.graph, sub, contexts, optimise, found.budget, known)
        except WeftError as failure:
            raise WeftError(*(kept.located(failure.diagnostics) if kept else failure.diagnostics)) from failure
        loops = kept.loops(unit, is_new) if kept and unit.loops else unit.loops
        if loops is None:
            assert kept is not None
            kept.forget_unit(sub.name)
            return made_unit(sub)
        in_order = sorted(loops, key=lambda span: (span.source.library, span.source.name, span.start))
        return replace(unit, loops=tuple(in_order)), lowered

    made, warnings = each_subgraph(found, made_unit)
    if kept:
        kept.succeed(found.graph, found.budget)
    compile_ms = (time.perf_counter() - started) * 1e3
    units, lowered = tuple(unit for unit, _ in made), tuple(lowered for _, lowered in made)
    known = {**vars(found), "warnings": warnings}
    return Build(**known, units=units, lowered=lowered, compile_ms=compile_ms)
