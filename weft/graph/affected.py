"""What an edit affects: which names of a text may refer to which, by the words in their statements, and how the effect
of a change spreads from name to name."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from weft.graph.components import reachable
from weft.syntax.ast import (
    Assignment, Binding, CallBinding, Comprehension, For, Parameter, Program, SpindleDefinition, Statement,
    literal_number, walk, walk_statement
)

# Any name or keyword in a text; those that may be strands of the patch, as what follows an `@` is not; and those that
# may be called there.
_WORD = re.compile(r"[^\W\d]\w*")
_STRAND = re.compile(r"(?<![\w@])\d*([^\W\d]\w*)")
# Only where a word begins and ends, for a long one would be searched again from each of its letters.
_CALLED = re.compile(r"(?<![\w@])\d*([^\W\d]\w*)\b(?=(?:\s|//.*)*[(<])")

Means = tuple[object, ...]
"""What a name means: its statements. A parameter is represented by its reach and its outputs, since nothing else of its
range counts."""


class _Words(NamedTuple):
    """The words in a statement: those that may be called, and those that may be strands of the patch. `counts` says
    whether a number from outside of the statement may decide how many strands there are."""

    called: frozenset[str]
    mentioned: frozenset[str]
    counts: bool


class Mentions(Mapping[str, Collection[str]]):
    """For each name, those that may refer to it, in a text and perhaps in those before it. Words are compared, so a
    mention in a comment counts as well."""

    def __init__(self) -> None:
        self._binds: dict[Statement, tuple[str, object]] = {}
        self._words: dict[Statement, _Words] = {}
        self._means: dict[str, Means] = {}
        self._before: Mapping[str, Means] = {}
        self._mentioned_by: dict[str, set[str]] = {}
        self._called_by: dict[str, set[str]] = {}
        self._counting: set[str] = set()

    def update(self, program: Program, before: Mapping[str, Means]) -> Mapping[str, Means]:
        """What the names of a program mean. `before` is what they meant in the last build."""
        last, self._means, self._before = self._means, self._bound(program), before
        for name, means in self._means.items():
            if (earlier := last.get(name, ())) != means:
                self._forget(name, earlier)
                self._note(name, means)
        for name in last.keys() - self._means.keys():
            self._forget(name, last[name])
        return self._means

    def is_spindle(self, name: str) -> bool:
        """Whether a name is that of a spindle, or was."""
        both = (self._means.get(name), self._before.get(name))
        return any(isinstance(means[0], SpindleDefinition) for means in both if means)

    def reshaped(self, changed: Collection[str], affected: Collection[str]) -> set[str]:
        """The names that the statements of the `changed` names alone may cause to refer to other strands, even where
        every other name refers to the same strands. These are the changed names, and some of the `affected` ones."""
        found, calling = set(changed), {name for name in changed if self.is_spindle(name)}
        if self._counting:
            counting = self._counting & {*affected, *changed}
            found |= counting
            calling |= {name for name in self._counting if self.is_spindle(name)}
        spindles = {name: [each for each in self[name] if self.is_spindle(each)] for name in calling}
        waiting = [each for found_by in spindles.values() for each in found_by]
        while waiting:
            name = waiting.pop()
            if name not in spindles:
                spindles[name] = [each for each in self[name] if self.is_spindle(each)]
                waiting += spindles[name]
        return found | {each for name in spindles for each in self[name] if each in affected}

    def __getitem__(self, name: str) -> Collection[str]:
        found = self._mentioned_by.get(name, _NOTHING)
        calling = self._called_by.get(name)
        return found | calling if calling and self.is_spindle(name) else found

    def __iter__(self) -> Iterator[str]:
        return iter({*self._mentioned_by, *self._called_by})

    def __len__(self) -> int:
        return len({*self._mentioned_by, *self._called_by})

    def _bound(self, program: Program) -> dict[str, Means]:
        found: dict[str, list[object]] = {}
        binds = self._binds
        for statement in program.statements:
            name, means = binds.get(statement) or binds.setdefault(statement, _binding(statement))
            if name:
                found.setdefault(name, []).append(means)
        return {name: tuple(means) for name, means in found.items()}

    def _note(self, name: str, means: Means) -> None:
        for statement in means:
            if isinstance(statement, _BINDING):
                words = self._words.get(statement) or self._words.setdefault(statement, _words(statement))
                for word in words.mentioned:
                    self._mentioned_by.setdefault(word, set()).add(name)
                for word in words.called - words.mentioned:
                    self._called_by.setdefault(word, set()).add(name)
                if words.counts:
                    self._counting.add(name)

    def _forget(self, name: str, means: Means) -> None:
        for statement in means:
            if isinstance(statement, _BINDING):
                for word in self._words[statement].mentioned:
                    self._mentioned_by[word].discard(name)
                for word in self._words[statement].called:
                    self._called_by.get(word, set()).discard(name)
        self._counting.discard(name)


@dataclass(frozen=True, eq=False)
class Edit:
    """What became of the names between the last good text and this one.

    The definitions of `changed` names differ, those of `unchanged` names do not. Of these, `stale` ones may refer to
    other strands than before; the changed ones are among them. `means` has what each name means now.
    """

    means: Mapping[str, Means]
    mentioned_by: Mentions
    changed: frozenset[str]
    unchanged: frozenset[str]
    stale: frozenset[str]

    @classmethod
    def between(cls, before: Mapping[str, Means], program: Program, mentions: Mentions) -> Edit:
        """The edit that led to a program. All names that it may affect count as stale."""
        means = mentions.update(program, before)
        unchanged = frozenset([name for name, now in means.items() if before.get(name) == now])
        changed: frozenset[str] = frozenset((before.keys() | means.keys()) - unchanged)
        stale = reachable(changed, mentions)
        return cls(means, mentions, changed, unchanged, frozenset(stale))

    @cached_property
    def kept(self) -> frozenset[str]:
        """The names that mean the same as before: all that they mention, directly or not, is unchanged."""
        affected = reachable(self.changed, self.mentioned_by)
        return self.unchanged - affected

    @cached_property
    def resolved(self) -> frozenset[str]:
        """The unchanged names in which every mentioned name refers to the same strands as before. The values of those
        strands may differ."""
        return self.unchanged - self.stale

    def reshaped(self) -> set[str]:
        """The names that may refer to other strands even where every other name refers to the same."""
        return self.mentioned_by.reshaped(self.changed, self.unchanged - self.kept)

    def spread(self, first: Iterable[str], differing: Callable[[Set[str], Set[str]], Iterable[str]]) -> set[str] | None:
        """The names that are affected if the `first` ones are. The effect spreads from a name to those that mention it,
        and stops at every name of which nothing differs.

        `differing` evaluates all affected names, of which the second argument has the new ones, and returns those that
        differ from what they were. None if this takes too many rounds: then every name that may be affected counts."""
        affected = set(first)
        new: Set[str] = set(affected)
        for _ in range(_MOST_ROUNDS):
            mentioning = {each for name in differing(affected, new) for each in self.mentioned_by.get(name, ())}
            new = mentioning - affected
            if not new:
                return affected
            affected |= new
        return None


# The rounds in which names that an edit affects are looked for.
_MOST_ROUNDS = 4

_NOTHING: frozenset[str] = frozenset()

# The statements that bind a name to something that is evaluated.
_BINDING = (Binding, CallBinding, SpindleDefinition)


def _binding(statement: Statement) -> tuple[str, object]:
    """The name that a statement binds, and what it means for it; no name for any other statement."""
    match statement:
        case Binding() | CallBinding() | SpindleDefinition():
            return statement.name.name, statement
        case Parameter(name=name, outputs=outputs):
            return name.name, (statement.reach, *(output.name for output in outputs))
    return "", None


def name_of(statement: Statement) -> str:
    """The name that a statement binds; empty if it binds none."""
    return _binding(statement)[0]


def mentioned_in(statement: Statement) -> frozenset[str]:
    """The words in a statement that may be strands of the patch."""
    return _words(statement).mentioned if isinstance(statement, _BINDING) else words_of(statement)


def words_of(statement: Statement) -> frozenset[str]:
    """All words in the text of a statement."""
    return frozenset(_WORD.findall(statement.span.text))


def _words(statement: Binding | CallBinding | SpindleDefinition) -> _Words:
    """The words in the text of a statement. Those that may be strands of the patch leave out a spindle's own names; a
    spindle of a library has none of them."""
    text = statement.span.text
    called, words = frozenset(_CALLED.findall(text)), frozenset(_STRAND.findall(text))
    mentioned = words
    if isinstance(statement, SpindleDefinition):
        mentioned = frozenset() if statement.span.source.library else words - _locals(statement)
        for parameter in () if statement.span.source.library else statement.parameters:
            if parameter.default is not None:  # it has its meaning from outside
                mentioned |= frozenset(_STRAND.findall(parameter.default.span.text))
    return _Words(called, mentioned, "for" in words and _counts(statement))


def _counts(statement: Statement) -> bool:
    """Whether a statement has a comprehension whose steps are not written out."""
    nodes = list(walk_statement(statement))
    for parameter in statement.parameters if isinstance(statement, SpindleDefinition) else ():
        nodes += [] if parameter.default is None else walk(parameter.default)
    comprehensions = (node for node in nodes if isinstance(node, Comprehension))
    return any(literal_number(end) is None for node in comprehensions for end in (node.first, node.last))


def _locals(spindle: SpindleDefinition) -> set[str]:
    """The names that a spindle defines itself, everywhere in its body."""
    found = {parameter.name for parameter in spindle.parameters} | {output.name for output in spindle.outputs}
    for node in walk_statement(spindle):
        if isinstance(node, (Assignment, CallBinding)):
            found.add(node.name.name)
        elif isinstance(node, For):
            found.add(node.variable.name)
    return found
