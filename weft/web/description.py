"""What a page knows of a program: its subgraphs, kernels and shaders, its inputs and parameters, as data for JSON."""

from __future__ import annotations

import base64
import json
from collections.abc import Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from weft.beats import Beats, reads_beats
from weft.codegen.clike.shader import (
    LaunchExtent, LevelExtent, PastCell, PastValue, Shader, Source, UnsuitableError, plain
)
from weft.codegen.essl import VERTEX, passes, surveying
from weft.codegen.kernel import Kernel, Unit
from weft.codegen.native.target import Head, PictureWord
from weft.codegen.values import Scalar
from weft.codegen.wasm.sweep import emit
from weft.contexts import COMPUTE, ContextSpec, channel_of, is_smoothed
from weft.errors import Diagnostic, Span
from weft.ir.rates import Rate
from weft.names import StrandRef, columns, heard_of, hop_length
from weft.runtime.compiling.stages import Build
from weft.runtime.program.findings import names_of, place_in, places_of
from weft.runtime.sound.mixer import channels_of
from weft.sources import SOURCES
from weft.web.launches import read_places

Json: TypeAlias = Any

# The sides of the picture in which a page looks for memory that is not finite.
_SURVEYED = 32

# What separates the functions of a shader.
_BETWEEN = "\n\n"


@dataclass
class Description:
    """A program as data, while it is gathered. Modules and shaders that are equal are in it once."""

    build: Build
    modules: list[Json] = field(default_factory=list)
    shaders: list[list[int]] = field(default_factory=list)
    """For each the numbers of its pieces, which empty lines separate."""
    refused: list[Diagnostic] = field(default_factory=list)
    """What a page cannot play, at its place."""
    pictures: dict[str, None] = field(default_factory=dict)
    """The names of the pictures and sounds that kernels sample."""
    _modules: dict[str, int] = field(default_factory=dict)
    _texts: dict[str, int] = field(default_factory=dict)
    _pieces: dict[str, int] = field(default_factory=dict)

    def program(self) -> Json:
        """The whole program."""
        compiled, build = self.build.compiled, self.build
        here, sounds = list[Json](), list[Json]()
        for unit in compiled.units:
            spec = compiled.contexts[unit.subgraph.context]
            try:
                made = self._subgraph(unit, spec)
            except UnsuitableError as reason:
                self._refuse(unit, f"{unit.subgraph.name} cannot be computed in a page: {reason}")
                continue
            if made is not None:
                (sounds if spec.streams else here).append(made)
        settings = {name: float(build.patch.settings[name]) for name in ("width", "height", "fps", "rate", "bpm")}
        return {
            "settings": settings,
            "inputs": {**compiled.starts, **Beats.steady(settings["bpm"]).inputs},
            "parameters": [_parameter(each) for each in compiled.parameters],
            "beats": reads_beats(compiled.uniforms),
            "uniforms": sorted(compiled.uniforms),
            "raw": sorted(compiled.raw),
            "channels": channels_of(compiled),
            "subgraphs": here,
            "sounds": sounds,
            "feeds": any("feeds" in each for each in sounds),
            "together": reads_each_other(build),
            "heard": [_heard(name, settings["rate"]) for name in compiled.heard],
            "views": list(compiled.views),
            "vertex": VERTEX,
            "survey": {"shader": surveying(_SURVEYED), "side": _SURVEYED},
            "remembered": self._remembered(),
            "loops": {unit.subgraph.name: " or ".join(map(self._line, unit.loops)) for unit in compiled.units},
            "pieces": list(self._pieces),
            "shaders": self.shaders,
            "modules": self.modules,
        }

    # Subgraphs.

    def _subgraph(self, unit: Unit, spec: ContextSpec) -> Json | None:
        """A subgraph; None for one whose context no page has. Raises UnsuitableError."""
        if not (spec.sweeps_plane or spec.streams or spec.name == COMPUTE.name):
            return None  # `weft.web.limits` tells of it
        subgraph = unit.subgraph
        made: dict[str, Json] = {
            "name": subgraph.name, "context": spec.name, "target": subgraph.target,
            "is": "picture" if spec.sweeps_plane else "sound" if spec.streams else "numbers",
            "shown": bool(subgraph.sinks), "labels": list(unit.kernel.outputs),
            "size": list(self.build.compiled.sizes.get(subgraph.target, ())),
            "slots": [_slot(slot) for slot in unit.kernel.slots],
            "films": None if unit.films is None else self._module(unit.films),
            "filmed": [] if unit.films is None else list(unit.films.outputs),
        }  # fmt: skip
        self.pictures |= dict.fromkeys(sorted(unit.pictures))
        if spec.sweeps_plane:
            shown = bool(subgraph.sinks)
            made["stages"] = [self._launch(stage, packed=False) for stage in unit.kernel.stages]
            made["stages"].append(self._launch(unit.kernel.alone, packed=shown))
        else:
            made["kernel"] = self._module(unit.kernel)
            made["channelled"] = [channel_of(label) for label in unit.kernel.outputs]
            made["sent"] = [is_smoothed(label) for label in unit.kernel.outputs]
            made["apart"] = any(name == "channel" for name, _ in unit.kernel.coords)
            made["controls"] = [name for name, _ in unit.kernel.coords if is_smoothed(name)]
        made["strands"] = {
            str(ref): self._exposed(ref, kernel, spec) for ref, kernel in unit.points.items()
        }  # fmt: skip
        if unit.feeds is not None:
            made["feeds"] = {"kernel": self._module(unit.feeds), "names": list(unit.feeds.outputs),
                             "slots": [_slot(slot) for slot in unit.feeds.slots]}
        return made

    def _exposed(self, ref: StrandRef, kernel: Kernel, spec: ContextSpec) -> Json:
        """A strand that others read, over some coordinates. If pictures are remembered for it, only the card can give
        it; else the CPU computes a few values, and the card many."""
        remembers = any(slot.image for slot in kernel.slots)
        over = [*spec.read_over, *ref.coordinates]
        made: dict[str, Json] = {"over": over, "kernel": None, "card": None}
        if spec.streams:
            return made
        if not remembers:
            made["kernel"] = self._module(kernel)
        if spec.sweeps_plane:
            made["card"] = self._launch(kernel, packed=False)
        return made

    def _launch(self, kernel: Kernel, packed: bool) -> Json:
        """The passes of a kernel on the card, its prologue, and what it reads of other subgraphs. Raises
        UnsuitableError."""
        drawn = passes(kernel, packed)
        return {
            "level": kernel.level,
            "points": kernel.sweep == "points",
            "prologue": self._module(kernel, whole=False),
            "reads": [
                {"key": read.key, "strand": str(read.site.read.strand), "over": list(read.over),
                 "constant": read.constant, "places": self._module(read.kernel)}
                for read in read_places(kernel)
            ],
            "passes": [self._pass(each) for each in drawn],
        }  # fmt: skip

    def _pass(self, shader: Shader) -> Json:
        return {
            "shader": self._text(plain(shader.text)),
            "numbers": [[uniform.kind, *_source(uniform.source, shader)] for uniform in shader.uniforms],
            "images": [list(_bound(each)) for each in shader.images],
            "histories": [list(_bound(each)) for each in shader.histories],
            "pictures": [list(_bound(each)) for each in shader.pictures],
            "reads": [list(_bound(each)) for each in shader.external_reads],
            "coords": list(shader.coords),
            "packed": shader.packed,
            "colours": shader.colour_targets,
            "stores": [[place.slot, place.plane] for place in shader.stores],
            "stops": shader.stops,
        }

    # What is reported.

    def _remembered(self) -> Json:
        """What slots that outlive a tick belong to, by their keys, in words: the strand, and its place in the text."""
        slots = (slot for unit in self.build.units for kernel in unit.kernels for slot in kernel.slots)
        keys = {slot.key for slot in slots if slot.outlives}
        patch = self.build.patch
        places = {key: place_in(patch, key) for key in sorted(keys)}
        return {
            key: {"name": names_of([key])[0], "place": "" if place is None else self._line(place)}
            for key, place in places.items()
        }

    def _line(self, span: Span) -> str:
        number, _ = span.source.position(span.start)
        is_main = span.source.name == self.build.files[0]
        return f"line {number}" if is_main else f"line {number} of {Path(span.source.name).name}"

    # Parts that may be shared.

    def _module(self, kernel: Kernel, whole: bool = True) -> int:
        """The number of the module of a kernel, or of its prologue alone."""
        made = emit(kernel, whole)
        sections = [each for each in kernel.sections if whole or each.rate <= Rate.FRAME]
        nodes = [node for section in sections for node in section.walk()]
        # What the host has to lend it: the code of a prologue reads few of the pictures and images of its kernel.
        sampled = {node.attr.picture: None for node in nodes if node.op in ("picture", "fetch")}
        images = {slot.key for slot in kernel.slots if slot.image}
        remembered = [node.attr.slot for node in nodes if node.op in ("state", "sample")]
        looked_at = dict.fromkeys(key for key in remembered if key in images)
        record = {
            **_layout(made.layout.to_json(), {*sampled}, images - looked_at.keys()),
            "samples": [*sampled], "looks": [*looked_at],
            "code": base64.b64encode(made.module.encoded()).decode(),
        }  # fmt: skip
        return self._modules.setdefault(json.dumps(record), self._added(record))

    def _added(self, record: Json) -> int:
        if json.dumps(record) not in self._modules:
            self.modules.append(record)
        return len(self.modules) - 1

    def _text(self, text: str) -> int:
        """The number of a shader, which is a list of pieces: most of its functions are those of others, too."""
        if text not in self._texts:
            self._texts[text] = len(self.shaders)
            pieces = text.split(_BETWEEN)
            self.shaders.append([self._pieces.setdefault(each, len(self._pieces)) for each in pieces])
        return self._texts[text]

    def _refuse(self, unit: Unit, words: str) -> None:
        places = places_of(self.build.patch)
        place = next((places[sink] for sink in unit.subgraph.sinks if sink in places), None)
        self.refused.append(Diagnostic.of("not-in-a-page", words, place))


def reads_each_other(build: Build) -> bool:
    """Whether the sound reads pictures or numbers, or these read it."""
    streams = [unit for unit in build.units if build.contexts[unit.subgraph.context].streams]
    compiled = build.compiled
    return any(unit.feeds or unit.subgraph.exposes for unit in streams) or bool(compiled.views or compiled.heard)


# What the host of a module needs to know of its block.
_LAYOUT = ("memory", "size", "sweep", "fixed")
_PLACES = {
    "numbers": ("name", "source", "offset", "constant"), "lines": ("name", "offset"),
    "locals": ("number", "type", "offset"), "strands": ("name",),
}  # fmt: skip


def _layout(layout: Json, sampled: Set[str], unread: Set[str]) -> Json:
    """A layout without what a page does not ask for: names for people, and places of what is not `sampled` or is an
    `unread` image."""
    places = {kind: [{key: each[key] for key in keys} for each in layout[kind]] for kind, keys in _PLACES.items()}
    rings = [each for each in layout["rings"] if each["key"] not in unread]
    return {
        **{key: layout[key] for key in _LAYOUT}, **places,
        "outputs": len(layout["outputs"]),
        "rings": [{key: each[key] for key in ("key", "offset", "head", "size")} for each in rings],
        "sampled": [{"name": each["name"], "offset": each["offset"]} for each in layout["sampled"]
                    if each["name"] in sampled],
    }  # fmt: skip


def _bound(bound: Any) -> tuple[str, str]:
    return bound.name, bound.key


def _heard(name: str, rate: float) -> Json:
    heard = heard_of(name)
    return {
        "name": name, "analysis": heard.analysis, "bands": columns(heard), "columns": columns(heard),
        "strand": heard.strand, "hop": hop_length(rate), "hops": SOURCES[heard.analysis].hops,
    }  # fmt: skip


def _slot(slot: Any) -> Json:
    return {"key": slot.key, "depth": slot.depth, "planes": slot.planes, "image": slot.image, "level": slot.level}


def _source(source: Source, shader: Shader) -> list[Json]:
    """Where a number of a shader comes from: the kind of the source, and what tells it from others of its kind."""
    match source:
        case Scalar("number", int(place)):
            return ["constant", shader.numbers[place]]
        case Scalar(given, key):
            return [given, key]
        case LaunchExtent():
            return [source.value]
        case LevelExtent(level, extent):
            return ["level", level, extent.value]
        case Head(slot):
            return ["head", slot]
        case PastCell(slot, k):
            return ["cell", slot, k]
        case PastValue(slot, plane, k):
            return ["past", slot, plane, k]
        case PictureWord(path, word):
            return ["picture", path, word]
    raise UnsuitableError(f"nothing in a page gives {source}")


def _parameter(spec: Any) -> Json:
    return {
        "kind": spec.kind, "name": spec.name, "label": spec.label, "inputs": list(spec.inputs),
        "start": list(spec.start), "low": spec.low, "high": spec.high, "options": list(spec.options),
    }  # fmt: skip
