"""`weft devices`: what this machine can run patches on."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

import click

from weft.backends.base import Backend, DeviceInfo
from weft.backends.registry import Registry, load_registry
from weft.backends.select import (
    Choice, Need, by_device, choose, contexts_of, size_text, total, unavailable, warnings_of
)
from weft.cli.arguments import ALLOW, compile_file
from weft.cli.console import output, say, show
from weft.contexts import VISUAL
from weft.permissions import Permissions
from weft.runtime.hands.midi_ports import MidiDevices, default_output, list_devices
from weft.runtime.program.compiled import CompiledProgram
from weft.runtime.program.program import ProgramLoader
from weft.runtime.sound.device import NO_DEVICE, SoundDevices, look
from weft.runtime.sound.mixer import channels_of

_Needs: TypeAlias = Mapping[tuple[str, str], tuple[Need, ...]]

# The number of the largest needs of memory that are listed.
_LISTED = 5


@dataclass(frozen=True)
class _Placed:
    """Where a subgraph of a patch would run, why, and the bytes that it needs there. In a performance, `until` runs it
    until the driver has made a program for it."""

    subgraph: str
    choice: Choice
    reason: str
    memory: int
    until: Choice | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "subgraph": self.subgraph,
            "backend": self.choice.backend.name,
            "executor": self.choice.executor or None,
            "device": self.choice.device.name,
            "reason": self.reason,
            "memory": self.memory,
            "until_ready": self.until and (self.until.executor or self.until.name),
        }


@dataclass(frozen=True)
class _ContextPlan:
    """What would run a context; None if nothing can, with the `problem`. For a patch, also its subgraphs."""

    context: str
    choice: Choice | None
    problem: str | None = None
    placed: tuple[_Placed, ...] | None = None

    @property
    def memory(self) -> int | None:
        """Bytes that the subgraphs need, if there is a patch."""
        return None if self.placed is None else sum(each.memory for each in self.placed)

    @property
    def reason(self) -> str:
        return self.choice.reason if self.choice else self.problem or "no backend of this version runs it"

    def to_json(self) -> dict[str, Any]:
        choice, placed = self.choice, self.placed or ()
        return {
            "context": self.context,
            "backend": choice and choice.backend.name,
            "executor": (choice and choice.executor) or None,
            "device": choice and choice.device.name,
            "reason": self.reason,
            "subgraphs": [each.subgraph for each in placed],
            "placed": [each.to_json() for each in placed],
            "memory": self.memory,
        }


@dataclass(frozen=True)
class _Room:
    """The needs of a patch in a device's memory, the largest first, and the bytes that are free there; 0: not known."""

    device: str
    needs: tuple[Need, ...]
    free: int

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "needed": total(self.needs)}


@click.command("devices")
@click.argument("file", type=click.Path(readable=False), required=False)
@click.option("--json", "as_json", is_flag=True, help="The same as JSON on stdout.")
@ALLOW
def command(file: str | None, as_json: bool, permissions: Permissions) -> None:
    """List every backend with its devices, what would run each context (of FILE, if given), sound devices and MIDI."""
    registry = load_registry()
    show(registry.problems)
    choices = choose(registry, [spec.name for spec in registry.contexts], None, os.environ.get("WEFT_BACKEND"))
    build = compile_file(file, contexts_of(registry, choices), permissions=permissions) if file is not None else None
    show(build.warnings if build is not None else ())
    for line in warnings_of(choices):
        say(line)
    loader = ProgramLoader(choices, missing=unavailable(registry, choices))
    compiled = build.compiled if build is not None else None
    needs = {} if compiled is None else loader.needs(compiled, compiled.size, channels_of(compiled))
    plans = list(_plans(registry, loader, compiled, needs))
    free = loader.room()
    rooms = [
        _Room(device, tuple(sorted(found, key=lambda need: (-need.bytes, need.what))), free.get(device, 0))
        for device, found in by_device(needs).items()
    ]
    devices = {name: backend.probe() for name, backend in registry.backends.items()}
    sound, midi = look(), list_devices()
    if as_json:
        backends = [
            {"name": name, "context": backend.context, "requires": list(backend.requires),
             "devices": [asdict(device) for device in devices[name]]}
            for name, backend in registry.backends.items()
        ]  # fmt: skip
        found = {"backends": backends, "choices": [plan.to_json() for plan in plans]}
        memory = [room.to_json() for room in rooms]
        output(json.dumps({**found, "memory": memory, "sound": asdict(sound), "midi": asdict(midi)}, indent=2))
    else:
        lines = [*_backend_lines(registry, devices), "", *_plan_lines(plans, file), *_room_lines(rooms)]
        output("\n".join([*lines, "", *_sound_lines(sound), "", *_midi_lines(midi)]))


def _plans(
    registry: Registry, loader: ProgramLoader, compiled: CompiledProgram | None, needs: _Needs
) -> Iterator[_ContextPlan]:
    """What would run each context; with a patch, only the contexts that it uses, with their subgraphs."""
    memory = {name: total(each) for (_, name), each in needs.items()}
    for spec in registry.contexts:
        subgraphs = None
        if compiled is not None:
            units = [unit for unit in compiled.units if unit.subgraph.context == spec.name]
            if not units:
                continue
            found = [(unit, loader.placed(unit, compiled)) for unit in units]
            subgraphs = tuple(
                _Placed(unit.subgraph.name, *where, memory[unit.subgraph.name], loader.bridge(unit, compiled))
                for unit, where in found
                if where is not None
            )
        problem = loader.missing[spec.name].reason if spec.name in loader.missing else None
        yield _ContextPlan(spec.name, loader.choices.get(spec.name), problem, subgraphs)


def _backend_lines(registry: Registry, devices: Mapping[str, list[DeviceInfo]]) -> Iterator[str]:
    for name, backend in registry.backends.items():
        context = "any context" if backend.context == "*" else backend.context
        yield f"{name} · {context}" + " · a window can show its pictures without a copy" * _is_shown(backend)
        for device in devices[name]:
            yield f"  {device.index}: {_device_text(device)}"


def _is_shown(backend: type[Backend]) -> bool:
    """Whether a window can be drawn by the device that computes its pictures."""
    draws = backend.draws or backend.window_device is not Backend.window_device
    return draws and backend.context == VISUAL.name


def _device_text(device: DeviceInfo) -> str:
    if not device.available:
        remedy = f" · {device.remedy}" if device.remedy else ""
        return f"{device.name} · not available: {device.reason}{remedy}"
    facts = [device.name, "in software" if device.software else None, device.driver, device.compute, device.simd]
    if device.cores:
        facts.append(f"{device.cores} core{'s' * (device.cores != 1)}")
    if device.memory_total:
        facts.append(f"{size_text(device.memory_free)} of {size_text(device.memory_total)} free")
    return " · ".join(filter(None, facts))


def _plan_lines(plans: list[_ContextPlan], file: str | None) -> Iterator[str]:
    yield f"{file} would run on" if file is not None else "A patch would run on"
    for plan in plans:
        if plan.choice is None:
            yield f"  {plan.context}: nothing; {plan.reason}"
            continue
        memory = f", about {size_text(plan.memory)}" if plan.memory is not None else ""
        yield f"  {plan.context}: {_runner_text(plan.choice)}, {plan.reason}{memory}"
        placed = plan.placed or ()
        if len(placed) > 1 or any(each.choice != plan.choice or each.until is not None for each in placed):
            for each in placed:
                why = f", {each.reason}" if each.choice != plan.choice else ""
                why += f", and {_runner_text(each.until)} until the driver is ready" if each.until is not None else ""
                yield f"    {each.subgraph}: {_runner_text(each.choice)}{why}, about {size_text(each.memory)}"


def _runner_text(choice: Choice) -> str:
    executor = f" ({choice.executor})" if choice.executor else ""
    device = f", device {choice.device.index}" if choice.device.index else ""
    return f"{choice.backend.name}{executor}{device}"


def _room_lines(rooms: list[_Room]) -> Iterator[str]:
    for room in rooms:
        needed = total(room.needs)
        there = f"{size_text(room.free)} are free" if room.free else "it is not known how much is free"
        too_much = ", which is too much" if room.free and needed > room.free else ""
        yield f"Memory on {room.device}: about {size_text(needed)}; {there}{too_much}"
        yield from (f"  {need.what}: {size_text(need.bytes)}" for need in room.needs[:_LISTED] if need.bytes)


def _sound_lines(sound: SoundDevices) -> Iterator[str]:
    yield "Sound"
    if sound.problem is not None:
        yield f"  not available: {sound.problem}"
        return
    for direction, devices in (("output", sound.outputs), ("input", sound.inputs)):
        for device in devices:
            channels = f"{device.channels} channel{'s' * (device.channels != 1)}"
            default = " · default" * device.is_default
            yield f"  {direction} {device.index}: {device.name} · {channels} · {device.rate:g} Hz{default}"
        if not devices:
            others = sound.inputs if direction == "output" else sound.outputs
            yield f"  no {direction}: {'no device has one' if others else NO_DEVICE}"


def _midi_lines(midi: MidiDevices) -> Iterator[str]:
    yield "MIDI"
    if midi.problem is not None:
        yield f"  not available: {midi.problem}"
        return
    yield from (f"  input: {name}" for name in midi.inputs or ("none",))
    default = default_output(midi.outputs)
    yield from (f"  output: {name}{' · default' * (name == default)}" for name in midi.outputs or ("none",))
