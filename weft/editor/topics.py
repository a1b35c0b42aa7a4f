"""What every name of the language means, how it is written, and an example: what `weft help` says, and editors show.

The topics are collected from the tables of the language: nothing is described here a second time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from types import MappingProxyType

from weft.contexts import OWN_CONTEXTS, ContextSpec, context_table
from weft.errors import Report, Source
from weft.graph.domain import ABOUT, SETTINGS
from weft.keys import ANY_KEY, KEYS, MOUSE
from weft.names import HEARD_AHEAD, HEARD_ROWS, hop_length
from weft.ops import CONSTANT_ROWS, OPS, STATE, WORDS, OpSpec
from weft.outlets import OUTLETS, load_outlets
from weft.sources import SOURCES, SourceParam, SourceSpec, load_sources
from weft.syntax.ast import SpindleDefinition
from weft.syntax.docs import SpindleDoc, doc_of, opening_line
from weft.syntax.includes import libraries, load, spindles_of
from weft.syntax.parser import FORMS

Facts = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Topic:
    """One entry of the help. Lists show its `name`; `words` are other names by which it is found; `shown` is how it is
    written. Each of the `examples` is an expression or some statements; `facts` are lines with a heading."""

    kind: str
    name: str
    shown: tuple[str, ...]
    meaning: str
    examples: tuple[str, ...]
    words: tuple[str, ...] = ()
    facts: Facts = ()


KINDS: Mapping[str, str] = MappingProxyType(
    {
        "output statement": "Output statements",
        "coordinate": "Coordinates, me@",
        "input": "Mouse and keys",
        "form": "Forms",
        "operator": "Operators",
        "builtin": "Builtins",
        "word for bundles": "For bundles",
        "constant": "Constants",
        "memory": "Memory",
        "source": "Sources",
        "pragma": "Pragmas",
        "setting": "Settings, me@",
        "library": "Libraries",
        "library spindle": "Library spindles",
    }
)
"""The kinds of topics in the order of the overview, each with its heading there."""

# The word that finds all libraries.
_LIBRARIES = "std"


def find(name: str) -> list[Topic]:
    """The topics of a name, none if it is unknown. Only libraries that have it are read, if it is in no table."""
    for topics in (_tabled(), _added(), _shipped(partial(_has, name=name))):
        found = [topic for topic in topics if name == topic.name or name in topic.words]
        if found:
            return [topic for topic in found if topic.name == name] or found
    return []


def all_topics() -> list[Topic]:
    """All topics, kind by kind."""
    return sorted([*_tabled(), *_added(), *_shipped()], key=lambda topic: list(KINDS).index(topic.kind))


def all_names() -> list[str]:
    """Every name by which a topic is found, the usual ones first."""
    topics = [*_tabled(), *_added()]
    spindles = [(library, name) for library in libraries() for name in spindles_of(library)]
    usual = [*(topic.name for topic in topics), *libraries(), *(f"{library}.{name}" for library, name in spindles)]
    others = [*(word for topic in topics for word in topic.words), _LIBRARIES, *(name for _, name in spindles)]
    return list(dict.fromkeys(usual + others))


def topics(begins: str = "") -> Iterator[Topic]:
    """All topics, of those of libraries only the ones whose names may begin so."""
    yield from tabled_topics()
    yield from _shipped(partial(_offers, beginning=begins))


def tabled_topics() -> Iterator[Topic]:
    """All topics without those of libraries."""
    yield from _tabled()
    yield from _added()


def _tabled() -> Iterator[Topic]:
    load_sources()
    load_outlets()
    yield from map(_of_operation, (row for row in OPS.values() if row.kind != "internal"))
    for word in WORDS.values():
        shown = _call(word.name, (*word.params, *["…"] * word.variadic))
        yield Topic("word for bundles", word.name, (shown,), word.doc, (word.example,))
    for row in STATE.values():
        yield Topic("memory", row.name, (_call(row.name, row.params),), row.doc, (row.example,))
    for constant in CONSTANT_ROWS:
        facts = (("value", str(constant.value)),)
        yield Topic("constant", constant.name, (constant.name,), constant.doc, (constant.example,), facts=facts)
    for form in FORMS.values():
        yield Topic("form", form.name, (form.shown,), form.doc, (form.example,), form.words)
    yield from map(_of_source, SOURCES.values())
    yield from map(_of_context, OWN_CONTEXTS)
    yield from _inputs()
    yield from _fields()
    yield from _pragmas()


def _added() -> Iterator[Topic]:
    """The contexts that packages add, which takes longer to find."""
    own = {spec.name for spec in OWN_CONTEXTS}
    yield from (_of_context(spec) for spec in context_table() if spec.name not in own)


def _shipped(is_wanted: Callable[[str], bool] = lambda _: True) -> Iterator[Topic]:
    """The wanted libraries, by their names, and their spindles. Reading one takes longer than everything else here."""
    for library in filter(is_wanted, libraries()):
        yield from _of_library(library)


def _has(library: str, name: str) -> bool:
    """Whether a library is called so, or has a spindle of this name."""
    return name in (_LIBRARIES, library) or name.removeprefix(f"{library}.") in spindles_of(library)


def _offers(library: str, beginning: str) -> bool:
    """Whether the name of a library or of one of its spindles begins so."""
    return f"{library}.".startswith(beginning) or any(
        name.startswith(beginning) or f"{library}.{name}".startswith(beginning) for name in spindles_of(library)
    )


def _of_operation(row: OpSpec) -> Topic:
    if row.kind == "builtin":
        facts: Facts = (("also called", ", ".join(row.aliases)),) if row.aliases else ()
        return Topic("builtin", row.name, (row.signature,), row.doc, (row.example,), row.aliases, facts)
    first, *others = row.symbols
    shown = (row.signature, *(_call(alias, row.params) for alias in row.aliases))
    facts = (("also written", ", ".join(others)),) if others else ()
    return Topic("operator", first, shown, row.doc, (row.example,), (*others, *row.aliases), facts)


def _of_source(source: SourceSpec) -> Topic:
    facts = [("outputs", ", ".join(source.outputs))] if source.outputs else []
    facts += [("axes", ", ".join(source.axes))] if source.axes else []
    for media in source.media:
        outputs, axes = ", ".join(media.outputs), ", ".join(media.axes)
        facts.append((media.name, f"{' '.join(media.endings)}; outputs {outputs}; axes {axes}"))
    facts += source.facts
    if source.is_analysis:
        rate = SETTINGS["rate"].default
        delay, reach = source.hops / 2, HEARD_ROWS - HEARD_AHEAD
        seconds = hop_length(rate) / rate
        facts.append(("delay", f"{delay * seconds * 1000:.0f} ms; earlier times reach back {reach * seconds:.0f} s"))
    shown = _call(source.name, [_source_param(param) for param in source.params])
    return Topic("source", source.name, (shown,), source.doc, (source.example,), facts=tuple(facts))


def _source_param(param: SourceParam) -> str:
    if isinstance(param.default, str):
        return f'{param.name}: "{param.default}"'
    if param.default is not None:
        return f"{param.name}: {param.default:g}"
    return f'"{param.name}"' if param.kind == "text" else param.name


def _of_context(context: ContextSpec) -> Topic:
    name, *others = context.statements
    free = '"/address", e, …' if context.addressed else "e, label: e, …"
    layouts = [", ".join(layout) for layout in context.layouts] or [free]
    facts = [("context", context.name)]
    facts += [("also called", ", ".join(others))] if others else []
    labels = [*dict.fromkeys(label for layout in context.layouts for label in layout), *(context.label_groups or ())]
    facts += [("labels", " ".join(f"{label}:" for label in labels))] if labels else []
    facts += [("always", "with their labels, in any order")] if context.labelled else []
    facts += [("optional", " ".join(f"{label}:" for label in context.optional))] if context.optional else []
    targeted = f'{name}(…, to: "name")' + " has a window of its own" * context.sweeps_plane
    facts += [("target", targeted)] if context.targets else []
    facts += [("outlets", f'to: "{row.example}": {row.doc}') for row in OUTLETS.values() if context.sweeps_plane]
    facts += [("several", "are added")] if context.merge == "sum" else []
    if context.labelled:
        layouts = [", ".join(f"{label}: e" for label in layout) for layout in context.layouts]
    shown = tuple(f"{name}({layout})" for layout in layouts)
    words = tuple(others) if context.name == name else (*others, context.name)
    return Topic("output statement", name, shown, context.doc, (context.example,), words, tuple(facts))


def _fields() -> Iterator[Topic]:
    for name, about in ABOUT.items():
        setting = SETTINGS.get(name)
        if setting is None:
            yield Topic("coordinate", f"me@{name}", (f"me@{name}",), about.doc, (about.example,), (name,))
            continue
        shown = (f"me<{name}> = number", f"me@{name}")
        facts = (("default", f"{setting.default:g}"), ("range", setting.range))
        yield Topic("setting", f"me@{name}", shown, about.doc, (about.example,), (name, f"me<{name}>"), facts)


def _inputs() -> Iterator[Topic]:
    for name, row in MOUSE.items():
        yield Topic("input", f"mouse@{name}", (f"mouse@{name}",), row.doc, (row.example,), ("mouse",))
    keys = tuple(f"key@{name}" for name in KEYS)
    facts = (("names", " ".join(KEYS)),)
    yield Topic("input", "key", ("key@name",), ANY_KEY.doc, (ANY_KEY.example,), keys, facts)


def _pragmas() -> Iterator[Topic]:
    from weft.syntax.pragmas import PRAGMAS  # imports the parser

    for name, row in PRAGMAS.items():
        yield Topic("pragma", f"#{name}", (row.shown,), row.doc, (row.example,), (name,))


@cache
def library_docs(library: str) -> tuple[SpindleDoc, ...]:
    """The spindles of a library that ships with weft, without those that begin with `_`."""
    return spindle_docs(Source(library, libraries()[library]))


def spindle_docs(text: Source) -> tuple[SpindleDoc, ...]:
    """The spindles that a text itself defines, in its order, without those that begin with `_` or are broken."""
    from weft.graph.bodies import Ordinals  # imports much of the compiler

    program = load(text, Report()).program
    spindles = {s.name.name: s for s in program.statements if isinstance(s, SpindleDefinition)}
    ordinals = Ordinals((), spindles)
    found = []
    for name, spindle in spindles.items():
        # Spindles that it uses or includes are described where they are defined.
        if spindle.span.source is text and not name.startswith("_"):
            taken = zip(spindle.parameters, ordinals.takes_bundles(spindle), strict=True)
            found.append(doc_of(spindle, [parameter.name for parameter, is_taken in taken if is_taken]))
    return tuple(found)


@cache
def _of_library(library: str) -> list[Topic]:
    """A library, and after it its spindles."""
    use, spindles = f"#use {library}", library_docs(library)
    contents = tuple((_call(doc.name, doc.heads), doc.headline) for doc in spindles)
    examples = tuple(f"{use}\n{doc.examples[0]}" for doc in spindles[:1] if doc.examples)
    about = opening_line(libraries()[library]).removesuffix(".")
    found = [Topic("library", library, (use,), about, examples, (_LIBRARIES,), contents)]
    for doc in spindles:
        facts = [
            (name, doc.parameter_texts[name] + "; a bundle is taken as a whole" * ("<…>" in head))
            for name, head in zip(doc.parameters, doc.heads, strict=True) if name in doc.parameter_texts
        ]  # fmt: skip
        facts += [("gives", doc.returns)] if doc.returns else []
        facts += [("needs", use)]
        examples = tuple(f"{use}\n{example}" for example in doc.examples)
        shown, words = (doc.signature,), (doc.name,)
        name = f"{library}.{doc.name}"
        found.append(Topic("library spindle", name, shown, doc.summary, examples, words, tuple(facts)))
    return found


def _call(name: str, params: Iterable[object]) -> str:
    return f"{name}({', '.join(map(str, params))})"
