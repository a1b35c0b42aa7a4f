"""The backends that compute with HIP: those of CUDA, on cards of AMD."""

from __future__ import annotations

from typing import ClassVar

from weft.backends.card import Dialect
from weft.backends.compute.backend import family
from weft.backends.cuda.amd import Amd
from weft.backends.cuda.backend import CudaBackend
from weft.backends.cuda.cards import CardDevice
from weft.backends.cuda.driver import Maker
from weft.codegen.cuda import Hip


class HipDevice(CardDevice):
    """A card of AMD."""

    maker: ClassVar[Maker] = Amd()
    library: ClassVar[str] = Amd.library
    option: ClassVar[str] = "--dump-hip"


class HipBackend(CudaBackend):
    """Computes the subgraphs of a context."""

    requires: ClassVar[tuple[str, ...]] = ()
    library: ClassVar[str] = HipDevice.library
    dialect: ClassVar[Dialect] = Dialect(Hip.over_picture, Hip.over_points)
    device_class: ClassVar[type[CardDevice]] = HipDevice


HipVisual, HipCompute, HipAudio = family("hip", HipBackend)
