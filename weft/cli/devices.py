"""`weft devices`: what this machine can run patches on."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from weft.backends.base import DeviceInfo
from weft.backends.memory import bytes_needed
from weft.backends.registry import Registry, load_registry
from weft.backends.select import Choice, choose, unavailable
from weft.cli.console import show
from weft.cli.patch import compile_file
from weft.codegen.unit import Unit
from weft.media.pictures import probe_picture
from weft.names import is_view
from weft.runtime.build import Build
from weft.runtime.sound.device import SoundDevice, inputs, outputs, problem

# Bytes of a pixel: on its way to the screen, and of a picture that a patch samples.
_SHOWN, _SAMPLED = 4, 16


@dataclass(frozen=True)
class _Plan:
    """What would run a context, None if nothing can, with the `problem`; for a patch, with its subgraphs and the bytes
    they need."""

    context: str
    choice: Choice | None
    problem: str | None = None
    subgraphs: tuple[str, ...] = ()
    memory: int | None = None

    def to_json(self) -> dict[str, Any]:
        choice = self.choice
        return {
            "context": self.context,
            "backend": choice and choice.backend.name,
            "executor": (choice and choice.executor) or None,
            "device": choice and choice.device.name,
            "reason": choice.reason if choice else self.problem or "no backend runs this context",
            "subgraphs": list(self.subgraphs),
            "memory": self.memory,
        }


@dataclass(frozen=True)
class _Sound:
    """The sound devices, or the problem that keeps sound away."""

    outputs: list[SoundDevice]
    inputs: list[SoundDevice]
    problem: str | None


@click.command("devices")
@click.argument("file", type=click.Path(), required=False)
@click.option("--json", "as_json", is_flag=True, help="The same as JSON on stdout.")
def command(file: str | None, as_json: bool) -> None:
    """List every backend with its devices, what would run each context (of FILE, if it is given), and what sounds."""
    registry = load_registry()
    show(registry.problems)
    build = compile_file(file, registry.contexts) if file is not None else None
    show(build.warnings if build is not None else ())
    plans = _plans(registry, build)
    devices = {name: backend.probe() for name, backend in registry.backends.items()}
    sound = _Sound(outputs(), inputs(), problem())
    if as_json:
        click.echo(json.dumps({**_json(registry, devices, plans), "sound": asdict(sound)}, indent=2))
    else:
        lines = [*_backend_lines(registry, devices), "", *_plan_lines(plans, file), "", *_sound_lines(sound)]
        click.echo("\n".join(lines))


def _plans(registry: Registry, build: Build | None) -> list[_Plan]:
    contexts = [spec.name for spec in registry.contexts]
    choices = choose(registry, contexts, None, os.environ.get("WEFT_BACKEND"))
    problems = {context: device.reason for context, device in unavailable(registry).items()}
    if build is None:
        return [_Plan(context, choices.get(context), problems.get(context)) for context in contexts]
    plans: list[_Plan] = []
    for context in contexts:
        units = [unit for unit in build.units if unit.subgraph.context == context]
        if units:
            names = tuple(unit.subgraph.name for unit in units)
            plans.append(_Plan(context, choices.get(context), problems.get(context), names, _memory(build, units)))
    return plans


def _memory(build: Build, units: list[Unit]) -> int:
    """Bytes for what the subgraphs remember, the picture they make, and the pictures they sample."""
    settings, spec = build.patch.settings, build.contexts[units[0].subgraph.context]
    shape = (int(settings["height"]), int(settings["width"])) if spec.sweeps_plane else (1, 1)
    state = sum(bytes_needed(unit.kernel, shape) for unit in units)
    shown = _SHOWN * math.prod(shape) * sum(bool(unit.subgraph.sinks) for unit in units)
    sampled = {path for unit in units for path in unit.kernel.pictures if not is_view(path)}
    return state + shown + sum(_SAMPLED * _pixels(path) for path in sampled)


def _pixels(path: str) -> int:
    info = probe_picture(Path(path))
    return info.width * info.height


def _json(registry: Registry, devices: Mapping[str, list[DeviceInfo]], plans: list[_Plan]) -> dict[str, Any]:
    backends = [
        {"name": name, "context": backend.context, "requires": list(backend.requires),
         "devices": [asdict(device) for device in devices[name]]}
        for name, backend in registry.backends.items()
    ]  # fmt: skip
    return {"backends": backends, "choices": [plan.to_json() for plan in plans]}


def _backend_lines(registry: Registry, devices: Mapping[str, list[DeviceInfo]]) -> Iterator[str]:
    for name, backend in registry.backends.items():
        context = "any context" if backend.context == "*" else backend.context
        yield f"{name} · {context}"
        for device in devices[name]:
            yield f"  {device.index}: {_device_text(device)}"


def _device_text(device: DeviceInfo) -> str:
    if not device.available:
        remedy = f" · {device.remedy}" if device.remedy else ""
        return f"{device.name} · not available: {device.reason}{remedy}"
    facts = [device.name, device.driver, device.compute, device.simd]
    facts.append(f"{device.cores} core{'s' * (device.cores != 1)}" if device.cores else None)
    if device.memory_total:
        facts.append(f"{_size(device.memory_free)} of {_size(device.memory_total)} free")
    return " · ".join(fact for fact in facts if fact)


def _plan_lines(plans: list[_Plan], file: str | None) -> Iterator[str]:
    yield f"{file} would run on" if file is not None else "A patch would run on"
    for plan in plans:
        if plan.choice is None:
            yield f"  {plan.context}: nothing; {plan.problem or 'no backend of this version runs it'}"
            continue
        memory = f", about {_size(plan.memory)}" if plan.memory is not None else ""
        executor = f" ({plan.choice.executor})" if plan.choice.executor else ""
        yield f"  {plan.context}: {plan.choice.backend.name}{executor}, {plan.choice.reason}{memory}"


def _sound_lines(sound: _Sound) -> Iterator[str]:
    yield "Sound"
    if sound.problem is not None:
        yield f"  not available: {sound.problem}"
        return
    for direction, devices in (("output", sound.outputs), ("input", sound.inputs)):
        for device in devices:
            facts = [f"{direction} {device.index}: {device.name}"]
            facts.append(f"{device.channels} channel{'s' * (device.channels != 1)}")
            facts.append(f"{device.rate:g} Hz")
            facts += ["default"] * device.is_default
            yield f"  {' · '.join(facts)}"
        if not devices:
            yield f"  no {direction}"


def _size(count: int) -> str:
    for unit, bytes_each in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= bytes_each:
            return f"{count / bytes_each:.1f} {unit}"
    return f"{count} B"
