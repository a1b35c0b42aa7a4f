"""The backends of this installation: weft's own, and those of other packages."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from weft.backends import hardware
from weft.backends.base import Backend
from weft.contexts import OWN_CONTEXTS, ContextTable, backend_points, load_backend
from weft.errors import Diagnostic
from weft.outlets import load_outlets
from weft.sources import load_packages

# Weft's own backends, in the order in which `weft devices` lists them: modules, with their backends and the contexts
# that these run. A module is imported when one of its backends is wanted, which registers them.
_OWN: tuple[tuple[str, Mapping[str, str]], ...] = (
    ("weft.backends.cpu", {"cpu_visual": "visual", "cpu_audio": "audio", "cpu_compute": "compute",
                           "cpu_osc_send": "osc_send", "cpu_midi": "midi"}),
    ("weft.backends.lights", {"cpu_lights": "lights"}),
    ("weft.backends.gl.backend", {"gl_visual": "visual", "gl_audio": "audio", "gl_compute": "compute"}),
    ("weft.backends.metal.backend", {"metal_visual": "visual", "metal_audio": "audio", "metal_compute": "compute"}),
    ("weft.backends.opencl.backend", {"opencl_visual": "visual", "opencl_audio": "audio", "opencl_compute": "compute"}),
    ("weft.backends.wgpu.backend", {"wgpu_visual": "visual", "wgpu_audio": "audio", "wgpu_compute": "compute"}),
    ("weft.backends.cuda.backend", {"cuda_visual": "visual", "cuda_audio": "audio", "cuda_compute": "compute"}),
    ("weft.backends.cuda.hip", {"hip_visual": "visual", "hip_audio": "audio", "hip_compute": "compute"}),
    ("weft.backends.cpu", {"null": "*"}),
)  # fmt: skip
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
    problems += [Diagnostic.of("source-not-loaded", words) for words in load_packages()]
    problems += [Diagnostic.of("outlet-not-loaded", words) for words in load_outlets()]
    others = {name: backend.context for name, backend in _registered.items() if name not in _MODULES}
    brought = [backend.spec for backend in _registered.values() if backend.spec is not None]
    contexts = ContextTable([*OWN_CONTEXTS, *brought])
    return Registry({**_CONTEXTS, **others}, contexts, tuple(problems), dict(_registered))
