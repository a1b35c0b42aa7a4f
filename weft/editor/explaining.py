"""What an editor says about a name under the mouse, and about the arguments of a call that is being typed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from lsprotocol import types

from weft.editor.occurrences import Occurrence, Surroundings, Symbol, SymbolKind
from weft.editor.questions import InstanceFacts
from weft.editor.read_texts import ReadText
from weft.editor.topics import Topic, find
from weft.errors import Span
from weft.syntax.ast import Call, Name, SpindleDefinition
from weft.syntax.docs import SpindleDoc, doc_of
from weft.syntax.scanner import NAME, PRAGMA, Tokens

# The kinds of topics of what the language itself has.
_KINDS: Mapping[SymbolKind, tuple[str, ...]] = {
    "builtin": ("builtin",), "memory": ("memory",), "word": ("word for bundles",), "source": ("source",),
    "constant": ("constant",), "coordinate": ("coordinate", "setting", "input"), "setting": ("setting",),
    "statement": ("output statement",), "library": ("library",),
}  # fmt: skip

# The most lines of a definition that are shown.
_MOST_LINES = 8


def hover_at(reading: ReadText, offset: int, facts: Mapping[str, InstanceFacts]) -> types.Hover | None:
    """What is to be said about a place; None if there is nothing."""
    found = reading.occurrence(offset)
    if found is not None and (said := _about(reading, found, facts)):
        return _hover(said, reading, found.span)
    if (span := _word_at(reading, offset)) is None:
        return None
    topics = find(span.text)
    return _hover(topic_text(topics[0]), reading, span) if topics else None


def _hover(text: str, reading: ReadText, span: Span) -> types.Hover:
    return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text), reading.positions.of(span))


def _word_at(reading: ReadText, offset: int) -> Span | None:
    """The keyword, operator or pragma at a place."""
    tokens = reading.tokens
    for at, start in enumerate(tokens.starts if tokens else ()):
        assert tokens is not None
        is_there = start <= offset < tokens.ends[at]
        if is_there and (tokens.kinds[at] == PRAGMA or tokens.kinds[at] not in NAME + "0s(){},;:"):
            return tokens.span(at)
    return None


def _about(reading: ReadText, found: Occurrence, facts: Mapping[str, InstanceFacts]) -> str:
    symbol, names = found.symbol, reading.names
    match symbol.kind:
        case "strand":
            return _instance_text(reading, symbol.name, facts.get(symbol.name))
        case "output" if symbol.owner in names.instances:
            known = facts.get(symbol.owner)
            rate = known.outputs.get(symbol.name, "") if known else ""
            return _code(f"{symbol.owner}@{symbol.name}") + (f"\n\n{rate}" if rate else "")
        case "spindle" if symbol.name in names.spindles:
            return spindle_text(reading, names.spindles[symbol.name])
        case "parameter" | "local" if symbol.owner in names.spindles:
            doc = spindle_doc(reading, names.spindles[symbol.owner])
            head = next((each for each in doc.heads if re.match(rf"{symbol.name}\b", each)), symbol.name)
            said = doc.parameter_texts.get(symbol.name, "")
            what = symbol.kind if symbol.name not in doc.outputs else "output"
            return _code(head) + f"\n\n{what} of `{symbol.owner}`" + (f": {escaped(said)}" if said else "")
        case "variable":
            return _code(symbol.name) + "\n\nthe number of a step"
    topic = topic_of(symbol)
    return topic_text(topic) if topic is not None else ""


def topic_of(symbol: Symbol) -> Topic | None:
    """The entry of the help about what the language has under a name. For a label, it is that of the call."""
    name, kinds = symbol.name, _KINDS.get(symbol.kind, ())
    if symbol.kind == "label":
        name, kinds = symbol.owner, ("builtin", "memory", "word for bundles", "source", "output statement")
    elif symbol.kind in ("coordinate", "setting"):
        name = f"{symbol.owner}@{name}"
    return next((topic for topic in find(name) if topic.kind in kinds), None)


def _instance_text(reading: ReadText, name: str, facts: InstanceFacts | None) -> str:
    statement = reading.names.instances[name]
    lines = statement.span.text.splitlines()
    shown = lines[:_MOST_LINES] + ["…"] * (len(lines) > _MOST_LINES)
    parts = [_code("\n".join(shown))]
    if (doc := getattr(statement, "doc", None)) is not None:
        parts.append(escaped(doc))
    if facts is not None:
        parts += _facts(facts)
    return "\n\n".join(parts)


def _facts(facts: InstanceFacts) -> Iterator[str]:
    """The shape of an instance, how often its strands are computed, and for what."""
    names = [name for name in facts.outputs if not name.isdigit() and name != "val"]
    count = len(facts.outputs)
    shape = "one strand" if count == 1 else f"{count} strands"
    yield shape + (f": {', '.join(f'`{name}`' for name in names)}" if names else "")
    rates = list(dict.fromkeys(facts.outputs.values()))
    if len(rates) == 1 and rates[0]:
        yield rates[0]
    elif any(rates):
        yield "\n".join(f"- `{name}`: {rate}" for name, rate in facts.outputs.items())
    yield f"for {', '.join(facts.contexts)}" if facts.contexts else "nothing reads it"


# --- spindles and topics as text ---


def spindle_doc(reading: ReadText, spindle: SpindleDefinition) -> SpindleDoc:
    """The documentation of a spindle."""
    taken = zip(spindle.parameters, reading.names.ordinals.takes_bundles(spindle), strict=True)
    return doc_of(spindle, [parameter.name for parameter, is_taken in taken if is_taken])


def spindle_text(reading: ReadText, spindle: SpindleDefinition) -> str:
    """How a spindle is called, and its documentation."""
    return doc_text(spindle_doc(reading, spindle))


def doc_text(doc: SpindleDoc) -> str:
    """How a spindle is called, and its documentation."""
    parts = [_code(doc.signature)]
    parts += [escaped(doc.summary)] if doc.summary else []
    about = [f"- `{name}`: {escaped(text)}" for name, text in doc.parameter_texts.items() if text]
    about += [f"- gives {escaped(doc.returns)}"] if doc.returns else []
    parts += ["\n".join(about)] if about else []
    parts += [_code(doc.examples[0])] if doc.examples else []
    return "\n\n".join(parts)


@lru_cache(maxsize=256)
def topic_text(topic: Topic) -> str:
    """An entry of the help."""
    parts = [_code("\n".join(topic.shown)), f"*{topic.kind}*: {escaped(topic.meaning)}"]
    if topic.facts:
        parts.append("\n".join(f"- {escaped(heading)}: {escaped(text)}" for heading, text in topic.facts))
    parts += map(_code, topic.examples[:1])
    return "\n\n".join(parts)


def _code(text: str) -> str:
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{fence}weft\n{text}\n{fence}"


def escaped(text: str) -> str:
    """Plain text as Markdown. A patch may come from a stranger: nothing that it says becomes a link or a picture."""
    return re.sub(r"([\\`*_<>\[\]!#])", r"\\\1", text)


# --- the arguments of a call ---


def signature_at(reading: ReadText, offset: int) -> types.SignatureHelp | None:
    """The parameters of the call around a place, and which one is being typed; None outside of calls."""
    if (call := call_around(reading, offset)) is None:
        return None
    name, given, label = call
    signatures = [_signature(*each) for each in _written(reading, name, offset)]
    if not signatures:
        return None
    best = next((at for at, each in enumerate(signatures) if given < len(each.parameters or ())), len(signatures) - 1)
    parameters = signatures[best].parameters or ()
    active = min(given, max(0, len(parameters) - 1))
    if label is not None:
        heads = [_label_of(signatures[best], at) for at in range(len(parameters))]
        active = next((at for at, head in enumerate(heads) if re.match(rf"\W*{label}\b", head)), active)
    return types.SignatureHelp(signatures, active_signature=best, active_parameter=active)


def call_around(reading: ReadText, offset: int) -> tuple[str, int, str | None] | None:
    """The name of the call whose arguments a place is among, the number of arguments before it (what is piped in is
    one), and the label of the argument there. None outside of calls."""
    tokens = reading.tokens_around(offset)
    if tokens is None:
        return None
    opened: list[tuple[str, int, int, int]] = []
    for at, start in enumerate(tokens.starts):
        if start >= offset:
            break
        kind = tokens.kinds[at]
        if kind in "([":
            opened.append((kind, at, 0, at))
        elif kind in ")]" and opened and offset >= tokens.ends[at]:
            opened.pop()
        elif kind in "{};":
            opened.clear()
        elif kind == "," and opened:
            bracket, first, count, _ = opened[-1]
            opened[-1] = bracket, first, count + 1, at
    for bracket, first, count, last in reversed(opened):
        if bracket == "(" and first and tokens.kinds[first - 1] == NAME:
            before = tokens.kinds[first - 2] if first > 1 else ""
            if before == "@":
                return None
            return tokens.text(first - 1), count + (before == "|"), _label_after(tokens, last, offset)
    return None


def _label_after(tokens: Tokens, at: int, offset: int) -> str | None:
    """The label of an argument that begins after a token."""
    is_label = tokens.kinds.startswith(NAME + ":", at + 1) and tokens.starts[at + 1] < offset
    return tokens.text(at + 1) if is_label else None


def _written(reading: ReadText, name: str, offset: int) -> Iterator[tuple[str, str, Mapping[str, str]]]:
    """How a call of a name is written, in each of its forms; its meaning; and texts about its parameters."""
    around = reading.around(offset)
    reached = reached_by(reading, name, around)
    if isinstance(reached, SpindleDefinition):
        doc = spindle_doc(reading, reached)
        yield doc.signature, doc.summary, doc.parameter_texts
        return
    symbol = None if reached is None else reading.names.callable_named(name, reached)
    topic = topic_of(symbol or Symbol("statement", name))
    for shown in topic.shown if topic else ():
        yield shown, topic.meaning if topic else "", dict(topic.facts) if topic else {}


def reached_by(reading: ReadText, name: str, around: Surroundings) -> SpindleDefinition | str | None:
    """What a call of a name would reach, with any arguments."""
    span = Span(reading.source, 0, 0)
    return reading.names.called(Call(Name(name, span), (), span), around)


def _signature(shown: str, meaning: str, texts: Mapping[str, str]) -> types.SignatureInformation:
    parameters = []
    for place in _parameter_places(shown):
        words = re.findall(r"\w+", shown[slice(*place)])
        text = texts.get(words[0]) if words else None
        parameters.append(types.ParameterInformation(place, text))
    return types.SignatureInformation(shown, meaning or None, parameters)


def _label_of(signature: types.SignatureInformation, at: int) -> str:
    label = (signature.parameters or ())[at].label
    return label if isinstance(label, str) else signature.label[slice(*label)]


def _parameter_places(shown: str) -> Sequence[tuple[int, int]]:
    """The places of the parameters in `clamp(x, lo: 0, hi: 1)`."""
    found, depth, start = [], 0, 0
    for at, character in enumerate(shown):
        if character in "(<[":
            depth += 1
            start = at + 1 if depth == 1 and character == "(" else start
        elif character in ")>]" or (character == "," and depth == 1):
            if depth == 1 and shown[start:at].strip():
                found.append((start + (shown[start] == " "), at))
            if character == ",":
                start = at + 1
                continue
            depth -= 1
            if depth == 0:
                break
    return found
