"""What `weft bench` has measured on this machine: the costs that a choice goes by where they are known, in a file of
the user's cache folder, by device and driver."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from weft.backends.base import DeviceInfo
from weft.backends.placement import COSTS, Costs

_NAMES = tuple(each.name for each in fields(Costs))


def costs_file() -> Path:
    """Where the file is, or would be."""
    home = Path.home()
    match sys.platform:
        case "darwin":
            folder = home / "Library" / "Caches"
        case "win32":
            folder = Path(os.environ.get("LOCALAPPDATA", home / "AppData" / "Local"))
        case _:
            folder = home / ".cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or folder) / "weft" / "costs.json"


@dataclass(frozen=True)
class KnownCosts:
    """The costs of devices that have been measured; `problem` says why there are none although there is a file."""

    costs: Mapping[str, Costs] = field(default_factory=dict)
    problem: str | None = None

    def of(self, backend: str, device: DeviceInfo) -> Costs:
        """Those of a device that a backend runs on; where it has not been measured, those that are believed."""
        return self.costs.get(_key(backend, device), COSTS)


def read_costs() -> KnownCosts:
    """What is in the file. Never raises: what cannot be read is as good as not there."""
    path = costs_file()
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return KnownCosts({key: _costs(given) for key, given in found.items()})
    except FileNotFoundError:
        return KnownCosts()
    except (OSError, ValueError, TypeError, AttributeError, KeyError) as failure:
        return KnownCosts({}, f"{path} is left aside: it cannot be understood ({failure}); weft bench writes it anew")


def write_costs(backend: str, device: DeviceInfo, costs: Costs) -> Path:
    """Adds those of a device to the file, or replaces them; gives its place. Raises OSError."""
    path = costs_file()
    known = {**read_costs().costs, _key(backend, device): costs}
    path.parent.mkdir(parents=True, exist_ok=True)
    made = path.with_suffix(f".{os.getpid()}")
    made.write_text(json.dumps({key: asdict(each) for key, each in known.items()}, indent=2) + "\n", encoding="utf-8")
    made.replace(path)
    return path


def _key(backend: str, device: DeviceInfo) -> str:
    return f"{backend} · {device.name} · {device.driver or ''}"


def _costs(given: Any) -> Costs:
    """Costs, of what a file says. Raises ValueError, TypeError or KeyError for what are none."""
    numbers = {name: float(given[name]) for name in _NAMES}
    wrong = next((name for name, number in numbers.items() if not (math.isfinite(number) and number > 0)), None)
    if wrong is not None:
        raise ValueError(f"{wrong} is {numbers[wrong]}")
    return Costs(**numbers)
