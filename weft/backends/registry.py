"""The backends of this installation: weft's own, and those of other packages."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from weft.backends import hardware
from weft.backends.base import Backend
from weft.contexts import OWN_CONTEXTS, ContextTable
from weft.errors import Diagnostic
from weft.outlets import load_outlets
from weft.packages import backend_points, load_backend
from weft.sources import load_sources

CARD_CONTEXTS = "visual", "audio", "compute"
"""The contexts for which each kind of graphics card has a backend."""


def _named(device: str, *contexts: str) -> Mapping[str, str]:
    """The backends of a device by their names, such as `gl_visual`, with the context of each."""
    return {f"{device}_{context}": context for context in contexts}


# Weft's own backends, in the order in which `weft devices` lists them: modules, with their backends and the contexts
# that these run. A module is imported when one of its backends is wanted, which registers them.
_OWN: tuple[tuple[str, Mapping[str, str]], ...] = (
    ("weft.backends.cpu", _named("cpu", "visual", "audio", "compute", "osc_send", "midi")),
    ("weft.backends.lights", _named("cpu", "lights")),
    ("weft.backends.gl.backend", {**_named("gl", *CARD_CONTEXTS), **_named("gles", "visual", "compute")}),
    ("weft.backends.metal.backend", _named("metal", *CARD_CONTEXTS)),
    ("weft.backends.opencl.backend", _named("opencl", *CARD_CONTEXTS)),
    ("weft.backends.wgpu.backend", _named("wgpu", *CARD_CONTEXTS)),
    ("weft.backends.cuda.backend", _named("cuda", *CARD_CONTEXTS)),
    ("weft.backends.cuda.hip", _named("hip", *CARD_CONTEXTS)),
    ("weft.backends.null", {"null": "*"}),
)
_CONTEXTS = {name: context for _, backends in _OWN for name, context in backends.items()}
_MODULES = {name: module for module, backends in _OWN for name in backends}

_registered: dict[str, type[Backend]] = {}


def register_backend(backend: type[Backend]) -> type[Backend]:
    """Adds a backend; used as a decorator. If a package has registered a backend under the name of one of weft's own,
    that of the package stays. Raises ValueError for any other name that is taken."""
    known = _registered.setdefault(backend.name, backend)
    is_own = backend.__module__ in _MODULES.values()
    if known is not backend and known.__qualname__ != backend.__qualname__ and not is_own:
        raise ValueError(f"there are two backends named {backend.name!r}")
    return backend


B = TypeVar("B", bound=Backend)


def members(name: str, base: type[B], kinds: Sequence[type[Backend]]) -> tuple[type[B], ...]:
    """The backends of a device, such as `opencl_visual`: one for each kind, which has a context and says what is
    computed; the base has none and says how. Registers them."""
    return tuple(_member(name, base, kind) for kind in kinds)


def _member(name: str, base: type[B], kind: type[Backend]) -> type[B]:
    own = {"name": f"{name}_{kind.context}", "__module__": base.__module__, "__doc__": kind.__doc__}
    called = base.__name__.removesuffix("Backend") + kind.context.title()
    made: type[B] = type(called, (kind, base), own)
    register_backend(made)
    return made


@dataclass(frozen=True)
class Registry:
    """The backends by name with the context of each, the contexts that they serve, and the problems with packages that
    could not be loaded. Weft's own backends are loaded on first use."""

    names: Mapping[str, str]
    contexts: ContextTable
    problems: tuple[Diagnostic, ...] = ()
    brought: Mapping[str, type[Backend]] = field(default_factory=dict)
    """The backends that are already loaded."""

    @property
    def backends(self) -> dict[str, type[Backend]]:
        """All of them, by name."""
        return {name: self.backend(name) for name in self.names}

    def backend(self, name: str) -> type[Backend]:
        """The backend with this name. Raises KeyError if there is none."""
        found = self._loaded(name)
        if found is None:
            if name not in self.names:
                raise KeyError(name)
            importlib.import_module(_MODULES[name])
        return found or _registered[name]

    def _loaded(self, name: str) -> type[Backend] | None:
        return self.brought.get(name) or _registered.get(name)

    def names_of(self, context: str) -> list[str]:
        """The names of those that can run a context, in their order."""
        return [name for name, own in self.names.items() if own in (context, "*")]

    def of_context(self, context: str) -> Iterator[type[Backend]]:
        """The backends that can run a context, in their order."""
        return map(self.backend, self.names_of(context))

    def may_have_hardware(self, name: str) -> bool:
        """Whether a graphics backend may have a card. Does not load the backend."""
        found = self._loaded(name)
        return hardware.may_have_card() if found is None else found.may_have_hardware()


def load_registry() -> Registry:
    """The registry of all backends that can be loaded. A package that fails to load gives a warning."""
    problems: list[Diagnostic] = []
    for point in backend_points():
        try:
            register_backend(load_backend(point))
        except Exception as failure:
            words = f"the backend {point.name} ({point.value}) could not be loaded: {failure}"
            problems.append(Diagnostic.of("backend-not-loaded", words))
    problems += [Diagnostic.of("source-not-loaded", words) for words in load_sources()]
    problems += [Diagnostic.of("outlet-not-loaded", words) for words in load_outlets()]
    others = {name: backend.context for name, backend in _registered.items() if name not in _MODULES}
    brought = [backend.spec for backend in _registered.values() if backend.spec is not None]
    contexts = ContextTable([*OWN_CONTEXTS, *brought])
    return Registry({**_CONTEXTS, **others}, contexts, tuple(problems), dict(_registered))
