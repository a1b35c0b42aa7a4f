"""What may be typed at a place: completion that knows where it is."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from functools import cache

from lsprotocol import types

from weft.contexts import ContextTable
from weft.editor.documents import Documents
from weft.editor.explaining import (
    call_around, doc_text, escaped, reached_by, spindle_doc, spindle_text, topic_of, topic_text
)
from weft.editor.occurrences import Surroundings, Symbol, SymbolKind
from weft.editor.questions import InstanceFacts
from weft.editor.read_texts import ReadText
from weft.editor.topics import library_docs, tabled_topics
from weft.graph.domain import ABOUT, SETTINGS
from weft.keys import KEYS, MOUSE
from weft.names import RESERVED
from weft.ops import BUILTINS, WORDS
from weft.permissions import Permissions
from weft.sources import SOURCES
from weft.syntax.ast import (
    Binding, Call, CallBinding, Comprehension, For, Parameter, SpindleDefinition, Use, walk_statement
)
from weft.syntax.includes import libraries, place_for_use, spindles_of
from weft.syntax.pragmas import PRAGMAS
from weft.syntax.scanner import ENDING, KEYWORDS

_WORD = re.compile(r"[A-Za-z0-9_]*\Z")
_PRAGMA = re.compile(r"[ \t]*#(\w*)\Z")
_USE = re.compile(r"[ \t]*#use[ \t]+([\w.]*)\Z")
_TEXT = re.compile(r'(?:[^"\\/]|\\.|/(?!/)|"(?:[^"\\]|\\.)*")*"((?:[^"\\]|\\.)*)\Z')
_SETTING = re.compile(r"[ \t]*me[ \t]*<[ \t]*(\w*)\Z")
_MEMBER = re.compile(r"([A-Za-z_]\w*|\))[ \t]*@(\w*)\Z")
_COMMENTED = re.compile(r'(?:[^"/]|/(?!/)|"(?:[^"\\]|\\.)*")*//')
_CALLED = re.compile(r"([A-Za-z_]\w*)[ \t]*\((?:[^()]|\([^()]*\))*\Z")

# The most characters of a line before a place that say where it is.
_LOOKS_BACK = 2000

# Endings of files that are read by an include, and of those that a source reads.
_PATCHES = (ENDING,)

_ITEM_KINDS: Mapping[SymbolKind, types.CompletionItemKind] = {
    "strand": types.CompletionItemKind.Variable, "output": types.CompletionItemKind.Field,
    "spindle": types.CompletionItemKind.Function, "local": types.CompletionItemKind.Variable,
    "parameter": types.CompletionItemKind.Variable, "variable": types.CompletionItemKind.Variable,
    "builtin": types.CompletionItemKind.Function, "memory": types.CompletionItemKind.Function,
    "word": types.CompletionItemKind.Function, "source": types.CompletionItemKind.Class,
    "constant": types.CompletionItemKind.Constant, "coordinate": types.CompletionItemKind.Field,
    "setting": types.CompletionItemKind.Property, "statement": types.CompletionItemKind.Event,
    "label": types.CompletionItemKind.Property, "library": types.CompletionItemKind.Module,
    "file": types.CompletionItemKind.File,
}  # fmt: skip

_KIND_OF_TOPIC: Mapping[str, SymbolKind] = {
    "builtin": "builtin", "word for bundles": "word", "constant": "constant", "memory": "memory", "source": "source",
    "output statement": "statement",
}  # fmt: skip

# The order of kinds: what the patch itself has comes first.
_RANKS: tuple[SymbolKind, ...] = ("label", "variable", "parameter", "local", "strand", "output", "spindle")


class Proposer:
    """Finds what may be typed."""

    def __init__(self, documents: Documents, contexts: ContextTable, permissions: Permissions) -> None:
        self._documents = documents
        self._contexts = contexts
        self._permissions = permissions

    def proposals(
        self, reading: ReadText, offset: int, facts: Mapping[str, InstanceFacts], shares_place: bool
    ) -> types.CompletionList:
        """What may be typed at a place, with the place that it takes: of each, or of all for editors that know this."""
        text = reading.source.text
        start = max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1
        line = text[max(start, offset - _LOOKS_BACK) : offset]
        if _COMMENTED.match(line) or _is_in_comment(reading, offset):
            return types.CompletionList(is_incomplete=False, items=[])
        begun, found = self._by_place(reading, offset, line, facts)
        place = reading.positions.range(offset - len(begun), offset)
        wanted = begun[:1].lower()
        fitting = [item for item in found if item.label.lower().startswith(wanted)]
        if shares_place:
            defaults = types.CompletionItemDefaults(edit_range=place)
            return types.CompletionList(is_incomplete=False, items=[*map(_written, fitting)], item_defaults=defaults)
        return types.CompletionList(is_incomplete=False, items=[_placed(item, place) for item in fitting])

    def _by_place(
        self, reading: ReadText, offset: int, line: str, facts: Mapping[str, InstanceFacts]
    ) -> tuple[str, Iterable[types.CompletionItem]]:
        """What is typed already, and all that may stand there."""
        if match := _USE.match(line):
            return match[1], [_item(Symbol("library", name)) for name in libraries()]
        if match := _PRAGMA.match(line):
            return match[1], [_pragma(name) for name in PRAGMAS]
        if match := _TEXT.match(line):
            return match[1].rpartition("/")[2], self._files(reading, line, match[1])
        if match := _SETTING.match(line):
            return match[1], [_item(Symbol("setting", name, "me")) for name in SETTINGS]
        if match := _MEMBER.search(line):
            return match[2], self._members(reading, offset, line, match[1], facts)
        match = _WORD.search(line)
        begun = match[0] if match else ""
        return begun, self._names(reading, offset, begun[:1].lower(), is_first=not line.removesuffix(begun).strip())

    # --- files ---

    def _files(self, reading: ReadText, line: str, begun: str) -> Iterator[types.CompletionItem]:
        """The files of a folder that may be read there, and its folders."""
        if re.match(r"[ \t]*#include\b", line):
            endings: tuple[str, ...] = _PATCHES
        else:
            called = re.search(r'(\w+)[ \t]*\([^()"]*"[^"]*\Z', line)
            spec = SOURCES.get(called[1]) if called else None
            endings = tuple(f".{each}" for media in (spec.media if spec else ()) for each in media.endings)
        folder = os.path.join(os.path.dirname(reading.source.name), os.path.dirname(begun))
        if not endings or self._permissions.reach(reading.source.name).denial_of_file(os.path.join(folder, "a")):
            return
        try:
            entries = sorted(os.scandir(folder or os.curdir), key=lambda each: each.name)
        except (OSError, ValueError):
            return
        for entry in entries:
            if entry.is_dir() and not entry.name.startswith("."):
                kind = types.CompletionItemKind.Folder
                yield types.CompletionItem(entry.name, kind=kind, insert_text=f"{entry.name}/")
            elif entry.name.lower().endswith(endings):
                yield types.CompletionItem(entry.name, kind=types.CompletionItemKind.File)

    # --- after @ ---

    def _members(
        self, reading: ReadText, offset: int, line: str, owner: str, facts: Mapping[str, InstanceFacts]
    ) -> Iterator[types.CompletionItem]:
        around = reading.around(offset)
        if owner in RESERVED and owner not in around.locals:
            fields: Iterable[str] = {"me": ABOUT, "mouse": MOUSE, "key": KEYS}[owner]
            yield from (_item(Symbol("coordinate", name, owner)) for name in fields)
            return
        if owner == ")":
            called = _CALLED.search(line[: line.rindex(")")])
            reached = reached_by(reading, called[1], around) if called else None
            outputs: Iterable[str] = ()
            if isinstance(reached, SpindleDefinition):
                outputs = [output.name for output in reached.outputs]
            elif called and reached == "source":
                outputs = SOURCES[called[1]].outputs
        else:
            outputs = _outputs_of(reading, owner, around, facts)
        yield from (_item(Symbol("output", name, owner)) for name in outputs)

    # --- names ---

    def _names(
        self, reading: ReadText, offset: int, wanted: str, is_first: bool
    ) -> Iterator[types.CompletionItem]:
        """What begins with a `wanted` letter, in lower case; everything if that is empty."""
        names, around = reading.names, reading.around(offset)
        seen = set[str]()

        def own(kind: SymbolKind, known: Iterable[str], owner: str = "") -> Iterator[types.CompletionItem]:
            for name in known:
                if name not in seen and not name.startswith("_"):
                    seen.add(name)
                    if name.lower().startswith(wanted):
                        yield _item(Symbol(kind, name, owner))

        yield from self._labels(reading, offset, around)
        yield from own("variable", _variables(reading, offset))
        for name, symbol in around.locals.items():
            yield from own(symbol.kind, [name], symbol.owner)
        if around.spindle is None or not around.spindle.span.source.library:
            yield from own("strand", names.instances)
        yield from own("spindle", names.spindles)
        for item in _language(wanted):
            if item.label not in seen and (is_first or item.kind != types.CompletionItemKind.Event):
                yield item
        yield from self._from_libraries(reading, seen, wanted)

    def _labels(self, reading: ReadText, offset: int, around: Surroundings) -> Iterator[types.CompletionItem]:
        """The labels of the arguments of a call."""
        if (call := call_around(reading, offset)) is None or call[2] is not None:
            return
        name = call[0]
        reached = reached_by(reading, name, around)
        context = self._contexts.of_statement(name)
        labels: Iterable[str] = ()
        if isinstance(reached, SpindleDefinition):
            labels = [parameter.name for parameter in reached.parameters]
        elif reached == "builtin":
            labels = [param.name for param in BUILTINS[name].params]
        elif reached == "source":
            labels = [each.name for each in SOURCES[name].params]
        elif context is not None:
            labels = [label for layout in context.layouts for label in layout]
            labels += [*(context.label_groups or ()), *context.optional, *(["to"] if context.targets else [])]
        for label in dict.fromkeys(labels):
            item = _item(Symbol("label", label, name))
            item.insert_text = f"{label}: "
            yield item

    def _from_libraries(
        self, reading: ReadText, seen: set[str], wanted: str
    ) -> Iterator[types.CompletionItem]:
        """The spindles of libraries that the text does not use yet; taking one adds the line that does."""
        used = {each.library for each in reading.own.statements if isinstance(each, Use)}
        at = place_for_use(reading.source)
        place = reading.positions.of(at)
        ending = "\r\n" if "\r\n" in reading.source.text else "\n"
        for library, name in _words_of_libraries(wanted):
            if library not in used and name not in seen:
                item = _item(Symbol("spindle", name, library))
                item.detail = f"#use {library}"
                item.sort_text = f"9{name}"
                item.additional_text_edits = [types.TextEdit(place, f"#use {library}{ending}")]
                yield item

    # --- what is said about a proposal ---

    def explained(self, item: types.CompletionItem, reading: ReadText | None) -> types.CompletionItem:
        """A proposal with its documentation."""
        data = item.data if isinstance(item.data, dict) else {}
        symbol = Symbol(data.get("kind", "file"), str(data.get("name", "")), str(data.get("owner", "")))
        text = ""
        if symbol.kind == "spindle" and symbol.owner in libraries():
            doc = next((each for each in library_docs(symbol.owner) if each.name == symbol.name), None)
            text = doc_text(doc) if doc else ""
        elif symbol.kind == "spindle" and reading is not None and symbol.name in reading.names.spindles:
            text = spindle_text(reading, reading.names.spindles[symbol.name])
        elif symbol.kind == "parameter" and reading is not None and symbol.owner in reading.names.spindles:
            doc = spindle_doc(reading, reading.names.spindles[symbol.owner])
            text = escaped(doc.parameter_texts.get(symbol.name, ""))
        elif (topic := topic_of(symbol)) is not None:
            text = topic_text(topic)
        if text:
            item.documentation = types.MarkupContent(types.MarkupKind.Markdown, text)
        return item


def _is_in_comment(reading: ReadText, offset: int) -> bool:
    """Whether a place is in a comment that may have several lines."""
    text = reading.source.text
    opened = text.rfind("/*", 0, offset)
    if opened < 0 or text.find("*/", opened + 2, offset) >= 0 or (tokens := reading.tokens_around(offset)) is None:
        return False
    return not any(start <= opened < end for start, end in zip(tokens.starts, tokens.ends, strict=True))


def _outputs_of(
    reading: ReadText, owner: str, around: Surroundings, facts: Mapping[str, InstanceFacts]
) -> Iterable[str]:
    """The outputs of an instance, of a local bundle, or of a source without a call."""
    if owner in around.locals:
        spindle = around.spindle
        parameters = spindle.parameters if spindle else ()
        members = next((each.members for each in parameters if each.name == owner), None)
        body = spindle.body if spindle else ()
        bound = [each for each in body if isinstance(each, CallBinding) and each.name.name == owner]
        found = [*(members or ()), *(output for each in bound for output in each.outputs)]
        return [each.name for each in found] or tuple("xyzrgb")
    statement = reading.names.instances.get(owner)
    if isinstance(statement, (Binding, CallBinding, Parameter)) and statement.outputs:
        return [output.name for output in statement.outputs]
    known = [name for name in (facts[owner].outputs if owner in facts else ()) if not name.isdigit() and name != "val"]
    if known:
        return known
    if isinstance(statement, Binding) and isinstance(statement.value, Call) and statement.value.name:
        reached = reading.names.called(statement.value, around)
        if isinstance(reached, SpindleDefinition):
            return [output.name for output in reached.outputs]
    if owner in SOURCES and SOURCES[owner].is_named:
        return SOURCES[owner].outputs
    return tuple("xyzrgb") if statement is not None else ()


def _variables(reading: ReadText, offset: int) -> Iterator[str]:
    """The variables of the loops and comprehensions around a place."""
    offset = reading.earlier_offset(offset)
    for statement in reading.own.statements:
        if statement.span.start <= offset <= statement.span.end:
            for node in walk_statement(statement):
                if isinstance(node, (For, Comprehension)) and node.span.start <= offset <= node.span.end:
                    yield node.variable.name


def _item(symbol: Symbol) -> types.CompletionItem:
    """A proposal; what is said about it is added when the editor asks."""
    rank = _RANKS.index(symbol.kind) if symbol.kind in _RANKS else len(_RANKS)
    return types.CompletionItem(
        symbol.name, kind=_ITEM_KINDS[symbol.kind], sort_text=f"{rank}{symbol.name}",
        data={"kind": symbol.kind, "name": symbol.name, "owner": symbol.owner},
    )  # fmt: skip


def _pragma(name: str) -> types.CompletionItem:
    spec = PRAGMAS[name]
    return types.CompletionItem(
        name, kind=types.CompletionItemKind.Keyword, detail=spec.shown, documentation=spec.doc
    )


@cache
def _language(wanted: str) -> tuple[types.CompletionItem, ...]:
    """What the language has, wherever one is, under names that begin so in lower case."""
    if wanted:
        return tuple([item for item in _language("") if item.label.lower().startswith(wanted)])
    found = []
    for topic in tabled_topics():
        kind = _KIND_OF_TOPIC.get(topic.kind)
        if kind is not None:
            for name in (topic.name, *(word for word in topic.words if word.isidentifier())):
                item = _item(Symbol(kind, name))
                item.detail = topic.shown[0]
                found.append(item)
    words = [word for word in (*KEYWORDS, *RESERVED) if word not in ("in", "to")]
    found += [types.CompletionItem(word, kind=types.CompletionItemKind.Keyword, sort_text=f"8{word}") for word in words]
    return tuple({item.label: item for item in found}.values())


@cache
def _words_of_libraries(wanted: str) -> tuple[tuple[str, str], ...]:
    """The libraries with those of their spindles that begin so in lower case, and that no word hides."""
    return tuple([
        (library, name) for library in libraries() for name in spindles_of(library)
        if name.lower().startswith(wanted) and name not in BUILTINS and name not in WORDS
    ])  # fmt: skip


def _written(item: types.CompletionItem) -> types.CompletionItem:
    """A proposal for the place that all have."""
    if item.insert_text is None:
        return item
    found = copy(item)
    found.text_edit_text, found.insert_text = item.insert_text, None
    return found


def _placed(item: types.CompletionItem, place: types.Range) -> types.CompletionItem:
    """A proposal for a place."""
    found = copy(item)
    found.text_edit, found.insert_text = types.TextEdit(place, item.insert_text or item.label), None
    return found
