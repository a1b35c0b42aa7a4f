"""Backends with devices that a test describes, in addition to those of weft."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

from weft.backends.base import Backend, DeviceInfo
from weft.backends.null import Null
from weft.backends.registry import Registry, load_registry
from weft.backends.select import FAMILIES

PACKAGE = Path(__file__).parent.parent / "plugins" / "card"
"""A package whose backend is a graphics card that fails after some frames."""

SOFTWARE = DeviceInfo(0, "a processor that draws", software=True)
HARDWARE = DeviceInfo(0, "a card")
BROKEN = DeviceInfo(0, "a broken card", False, "it smells of smoke", "open a window")


def card_of_package() -> type[Backend]:
    """That card, as the environment describes it, without installing its package."""
    spec = importlib.util.spec_from_file_location("weft_card", PACKAGE / "weft_card.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    backend: type[Backend] = module.Card
    return backend


def card(name: str, devices: Sequence[DeviceInfo], context: str = "visual", hardware: bool = True) -> type[Backend]:
    """A backend that draws nothing on these devices, and counts how often they are probed."""

    class Card(Null):
        probes = 0

        @classmethod
        def probe(cls) -> list[DeviceInfo]:
            cls.probes += 1
            return list(devices)

        @classmethod
        def may_have_hardware(cls) -> bool:
            return hardware

    Card.name, Card.context = name, context
    return Card


def registry_with(*cards: type[Backend]) -> Registry:
    """A registry of weft's backends for the CPU, and these."""
    own = load_registry()
    cpu = {name: context for name, context in own.names.items() if name.partition("_")[0] not in FAMILIES}
    brought = {backend.name: backend for backend in cards}
    names = {**cpu, **{name: backend.context for name, backend in brought.items()}}
    return Registry(names, own.contexts, brought=brought)
