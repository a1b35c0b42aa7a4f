"""All participants."""

from __future__ import annotations

from benchmarks.sound_peers import c_peer, faust_peer, numpy_peer, weft_peer
from benchmarks.sound_peers.peer import Peer

_MODULES = (weft_peer, faust_peer, c_peer, numpy_peer)

PEERS: dict[str, Peer] = {peer.name: peer for module in _MODULES for peer in module.PEERS}

# Who is measured against the others, and against whom above all.
OURS = tuple(peer.name for peer in weft_peer.PEERS)
RIVALS = tuple(peer.name for peer in faust_peer.PEERS)
