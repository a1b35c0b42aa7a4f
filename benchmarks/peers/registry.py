"""All participants."""

from __future__ import annotations

from benchmarks.peers import (
    c_peer, cuda_peer, halide_peer, numba_peer, numexpr_peer, numpy_peer, opengl_peer, taichi_peer, weft_cuda_peer,
    weft_gl_peer, weft_peer
)
from benchmarks.peers.peer import Peer

_MODULES = (
    weft_peer, c_peer, halide_peer, numba_peer, weft_gl_peer, opengl_peer, weft_cuda_peer, cuda_peer, taichi_peer,
    numpy_peer, numexpr_peer
)  # fmt: skip

PEERS: dict[str, Peer] = {peer.name: peer for module in _MODULES for peer in module.PEERS}

# Who is measured against the others.
OURS = tuple(peer.name for peer in weft_peer.PEERS)
