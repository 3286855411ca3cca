"""torch's counterparts of the ops of the table: the same arguments, torch's own function. An op that is not here has no counterpart."""

from __future__ import annotations

from bench.gpu.peers import elementwise, networks, optimizers, tensors
from bench.gpu.peers.forms import Peer
from bench.gpu.peers.optimizers import forget_optimizers

PEERS: dict[str, Peer] = {**elementwise.PEERS, **tensors.PEERS, **networks.PEERS, **optimizers.PEERS}


def counterpart(name: str) -> Peer | None:
    """torch's function for an op as `(torch, *inputs, **attrs)`, or None."""
    return PEERS.get(name)


__all__ = ["PEERS", "Peer", "counterpart", "forget_optimizers"]
