"""weft: a live-coding tool in which every picture and sound is a function of coordinates.

Importing it imports nothing else: each function below imports what it needs when it is called.
"""

from __future__ import annotations

# As in `typing`, whose import would take longer than everything else here.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from weft.backends.base import Backend, DeviceInfo
    from weft.runtime.compiling.stages import Build

    B = TypeVar("B", bound="type[Backend]")

__version__ = "0.6.0"
__all__ = ["__version__", "best_backend", "compile", "devices", "register_backend"]


def compile(text: str, name: str = "(text)") -> Build:
    """A compiled patch. Paths in it are relative to the file `name`. Raises `weft.errors.WeftError`."""
    from weft.backends.registry import load_registry
    from weft.errors import Source
    from weft.runtime.compiling.stages import Request, build

    return build(Request(Source(name, text), load_registry().contexts))


def devices() -> dict[str, list[DeviceInfo]]:
    """Every backend by name, with the devices it could run on. Unavailable devices have a reason."""
    from weft.backends.registry import load_registry

    return {name: backend.probe() for name, backend in load_registry().backends.items()}


def best_backend(context: str) -> str | None:
    """The backend that would run a context on this machine, as `--backend` takes it; None if none can."""
    from weft.backends.registry import load_registry
    from weft.backends.select import choose

    choice = choose(load_registry(), [context]).get(context)
    return choice.shown if choice else None


def register_backend(backend: B) -> B:
    """Adds a backend, and its context if it has one, in this process; used as a decorator on its class. Raises
    ValueError if another one has its name."""
    from weft.backends.registry import register_backend as register

    register(backend)
    return backend
