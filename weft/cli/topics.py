"""What `weft help` can tell of, collected from the tables of the language: nothing is described here a second time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from weft.contexts import AUDIO, COMPUTE, VISUAL, ContextSpec
from weft.graph.fields import ABOUT
from weft.graph.settings import SETTINGS
from weft.keys import ANY_KEY, KEYS, MOUSE
from weft.ops import CONSTANT_ROWS, OPS, OpSpec
from weft.ops.state import STATE
from weft.plugins import context_table
from weft.sources import LEFT_OUT, NOT_READABLE, SOURCES, SourceParam, SourceSpec
from weft.syntax.forms import FORMS

Facts = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Topic:
    """One thing to tell of. `name` is how lists show it, `words` are further names under which it is found, `shown` is
    how it is written; each of the `examples` is an expression or statements; `facts` are lines with a heading; `lacks`
    says what is missing of it in this version."""

    kind: str
    name: str
    shown: tuple[str, ...]
    meaning: str
    examples: tuple[str, ...]
    words: tuple[str, ...] = ()
    facts: Facts = ()
    lacks: str = ""


KINDS: Mapping[str, str] = MappingProxyType(
    {
        "output statement": "Output statements",
        "coordinate": "Coordinates, me@",
        "input": "Mouse and keys",
        "form": "Forms",
        "operator": "Operators",
        "builtin": "Builtins",
        "constant": "Constants",
        "memory": "Memory",
        "source": "Sources",
        "pragma": "Pragmas",
        "setting": "Settings, me@",
        "library": "Libraries",
        "library spindle": "Library spindles",
    }
)
"""The kinds of topics, in the order of the overview, each with the heading that it has there."""


def find(name: str) -> list[Topic]:
    """The topics of a name; none if there is no such name. What is in a table is found without reading a library."""
    return _named(name, _tabled()) or _named(name, _found_late())


def all_topics() -> list[Topic]:
    """Everything there is to tell of, kind by kind."""
    topics = [*_tabled(), *_found_late()]
    order = list(KINDS)
    return sorted(topics, key=lambda topic: order.index(topic.kind))


def all_names(topics: list[Topic]) -> list[str]:
    """Every name under which something is found, the usual ones first."""
    return list(dict.fromkeys([topic.name for topic in topics] + [word for topic in topics for word in topic.words]))


def _named(name: str, topics: Iterator[Topic]) -> list[Topic]:
    found = [topic for topic in topics if name == topic.name or name in topic.words]
    return [topic for topic in found if topic.name == name] or found


def _tabled() -> Iterator[Topic]:
    yield from map(_of_operation, (row for row in OPS.values() if row.kind != "internal"))
    for row in STATE.values():
        yield Topic("memory", row.name, (_call(row.name, row.params),), row.doc, (row.example,))
    for constant in CONSTANT_ROWS:
        facts = (("value", str(constant.value)),)
        yield Topic("constant", constant.name, (constant.name,), constant.doc, (constant.example,), facts=facts)
    for form in FORMS.values():
        yield Topic("form", form.name, (form.shown,), form.doc, (form.example,), form.words)
    yield from map(_of_source, SOURCES.values())
    yield from map(_of_context, (VISUAL, AUDIO, COMPUTE))
    yield from _inputs()
    yield from _fields()
    yield from _pragmas()


def _found_late() -> Iterator[Topic]:
    """What takes longer to find: contexts that packages bring along, and the libraries."""
    own = {VISUAL.name, AUDIO.name, COMPUTE.name}
    yield from (_of_context(spec) for spec in context_table() if spec.name not in own)
    yield from _libraries()


def _of_operation(row: OpSpec) -> Topic:
    if row.kind == "builtin":
        facts: Facts = (("also called", ", ".join(row.aliases)),) if row.aliases else ()
        return Topic("builtin", row.name, (row.signature,), row.doc, (row.example,), row.aliases, facts)
    first, *others = row.symbols
    calls = tuple(f"{alias}({', '.join(map(str, row.params))})" for alias in row.aliases)
    facts = (("also written", ", ".join(others)),) if others else ()
    return Topic(
        "operator", first, (row.signature, *calls), row.doc, (row.example,), (*others, *row.aliases), facts
    )  # fmt: skip


def _of_source(source: SourceSpec) -> Topic:
    facts = [("outputs", ", ".join(source.outputs))] if source.outputs else []
    facts += [("axes", ", ".join(source.axes))] if source.axes else []
    for media in source.media:
        outputs, axes = ", ".join(media.outputs), ", ".join(media.axes)
        lacking = "" if media.is_readable else f"; {NOT_READABLE}"
        facts.append((media.name, f"{' '.join(media.endings)}; outputs {outputs}; axes {axes}{lacking}"))
    lacks = "" if source.is_readable else f"it {NOT_READABLE}; {LEFT_OUT}, with a warning"
    shown = _call(source.name, [_source_param(param) for param in source.params])
    return Topic("source", source.name, (shown,), source.doc, (source.example,), facts=tuple(facts), lacks=lacks)


def _source_param(param: SourceParam) -> str:
    if param.default is not None:
        return f"{param.name}: {param.default:g}"
    return f'"{param.name}"' if param.kind == "text" else param.name


def _of_context(context: ContextSpec) -> Topic:
    name, *others = context.statements
    layouts = [", ".join(layout) for layout in context.layouts] or ["e, label: e, …"]
    facts = [("context", context.name)]
    facts += [("also called", ", ".join(others))] if others else []
    labels = [*dict.fromkeys(label for layout in context.layouts for label in layout), *(context.label_groups or ())]
    facts += [("labels", " ".join(f"{label}:" for label in labels))] if labels else []
    facts += [("target", f'{name}(…, to: "name")')] if context.targets else []
    facts += [("several", "are added")] if context.merge == "sum" else []
    shown = tuple(f"{name}({layout})" for layout in layouts)
    words = tuple(others) if context.name == name else (*others, context.name)
    lacks = f"this version opens one window: of several {name} statements, it shows one" if context.targets else ""
    return Topic("output statement", name, shown, context.doc, (context.example,), words, tuple(facts), lacks)


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
    from weft.syntax.pragmas import PRAGMAS  # the parser is behind it

    for name, row in PRAGMAS.items():
        yield Topic("pragma", f"#{name}", (row.shown,), row.doc, (row.example,), (name,), lacks=row.lacks)


def _libraries() -> Iterator[Topic]:
    from weft.errors import Source
    from weft.syntax.docs import opening_line, spindle_docs
    from weft.syntax.includes import libraries

    for library, text in libraries().items():
        spindles = [doc for doc in spindle_docs(Source(library, text)) if not doc.name.startswith("_")]
        use = f"#use {library}"
        contents = tuple((_call(doc.name, doc.parameters), doc.headline) for doc in spindles)
        examples = tuple(f"{use}\n{doc.examples[0]}" for doc in spindles[:1] if doc.examples)
        yield Topic("library", library, (use,), opening_line(text).removesuffix("."), examples, ("std",), contents)
        for doc in spindles:
            facts = [(name, doc.parameter_texts[name]) for name in doc.parameters if name in doc.parameter_texts]
            facts += [("gives", doc.returns)] if doc.returns else []
            facts += [("needs", use)]
            examples = tuple(f"{use}\n{example}" for example in doc.examples)
            name = f"{library}.{doc.name}"
            yield Topic(
                "library spindle", name, (doc.signature,), doc.summary, examples, (doc.name,), tuple(facts)
            )  # fmt: skip


def _call(name: str, params: object) -> str:
    assert isinstance(params, tuple | list)
    return f"{name}({', '.join(map(str, params))})"
