"""Doc comments: the `///` lines above a spindle, with `@param name text`, `@returns text` and `@example code`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from weft.syntax.ast import SpindleDefinition, SpindleParameter


@dataclass(frozen=True, slots=True)
class SpindleDoc:
    """A spindle as its doc comment describes it. `summary` is the text before the first tag. `parameter_texts` has the
    text of each parameter that has one. `heads` has each parameter as the spindle's head writes it, with its members
    and its default, and with `<…>` if the body uses it as a bundle. An example is code, of one or more lines. Parts
    that were not written are empty."""

    name: str
    parameters: tuple[str, ...]
    heads: tuple[str, ...]
    outputs: tuple[str, ...]
    summary: str
    parameter_texts: Mapping[str, str]
    returns: str
    examples: tuple[str, ...]

    @property
    def signature(self) -> str:
        """How the spindle is defined: `polar(p<x, y> = centre()) :: <r, theta>`."""
        outputs = self.outputs[0] if len(self.outputs) == 1 else f"<{', '.join(self.outputs)}>"
        return f"{self.name}({', '.join(self.heads)}) :: {outputs}"

    @property
    def headline(self) -> str:
        """The first sentence of the summary, without its full stop."""
        return first_sentence(self.summary)


def _head(parameter: SpindleParameter, is_taken_apart: bool) -> str:
    members = "<…>" if is_taken_apart else ""
    if parameter.members is not None:
        members = f"<{', '.join(member.name for member in parameter.members)}>"
    default = "" if parameter.default is None else f" = {parameter.default.span.text}"
    return f"{parameter.name}{members}{default}"


def doc_of(spindle: SpindleDefinition, taken_apart: Collection[str] = ()) -> SpindleDoc:
    """The parts of the doc comment of a spindle, whose body uses some of its parameters as bundles."""
    summary: list[str] = []
    parameters: dict[str, str] = {}
    returns: list[str] = []
    examples: list[str] = []
    for tag, lines in _sections(spindle.doc or ""):
        text = " ".join(line for line in lines if line)
        if tag == "@param":
            name, _, words = text.partition(" ")
            parameters[name] = words.strip()
        elif tag == "@returns":
            returns.append(text)
        elif tag == "@example":
            examples.append("\n".join(lines).strip("\n"))
        else:
            summary.append(text)
    return SpindleDoc(
        name=spindle.name.name,
        parameters=tuple(parameter.name for parameter in spindle.parameters),
        heads=tuple(_head(parameter, parameter.name in taken_apart) for parameter in spindle.parameters),
        outputs=tuple(ident.name for ident in spindle.outputs),
        summary=" ".join(summary),
        parameter_texts=parameters,
        returns=" ".join(returns),
        examples=tuple(examples),
    )


def opening_line(text: str) -> str:
    """The first comment line of a patch or library; empty if it does not begin with a comment."""
    first = text.lstrip("\ufeff\r\n\t ").split("\n", 1)[0]
    return first.lstrip("/").strip() if first.startswith("//") else ""


def first_sentence(text: str) -> str:
    """The text before the first full stop that is followed by a space or the end."""
    return text.split(". ", 1)[0].removesuffix(".")


def _sections(doc: str) -> Iterator[tuple[str, list[str]]]:
    """The tags, each with the lines up to the next; the lines before the first tag have the tag ""."""
    tag, lines = "", list[str]()
    for line in doc.split("\n"):
        word, _, rest = line.partition(" ")
        if word in ("@param", "@returns", "@example"):
            yield tag, lines
            tag, lines = word, [rest.strip()]
        else:
            lines.append(line)
    yield tag, lines
