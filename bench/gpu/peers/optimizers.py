"""torch's optimizers for the steps of ours, at rates and settings of their own: what a step costs does not depend on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.gpu.peers.forms import Peer

# torch's optimizers hold state, so a peer of a step makes one for its tensors at the first call and steps it from then on.
_optimizers: dict[int, Any] = {}


def _step(t: Any, p: Any, g: Any, make: Callable[[list[Any]], Any]) -> None:
    found = _optimizers.get(id(p))
    if found is None or found[0] is not p:
        p.grad = g
        found = _optimizers[id(p)] = p, make([p])
    found[1].step()


def _stepped(make: Callable[[Any, list[Any], bool], Any]) -> Peer:
    """The step of an optimizer with rates and settings of its own: its speed does not depend on them."""

    def step(t: Any, p: Any, g: Any, *states_and_numbers: Any, **attrs: Any) -> None:
        _step(t, p, g, lambda ps: make(t.optim, ps, p.device.type == "cuda"))

    return step


def _sgd(t: Any, p: Any, g: Any, numbers: Any, **attrs: Any) -> None:
    _step(t, p, g, lambda ps: t.optim.SGD(ps, lr=float(numbers[1]), fused=True))


def forget_optimizers() -> None:
    """Drop the optimizers of the steps that were timed, and their tensors."""
    _optimizers.clear()


PEERS: dict[str, Peer] = {
    "sgd_step": _sgd,
    "momentum_step": _stepped(lambda optim, ps, gpu: optim.SGD(ps, momentum=0.9, fused=True)),
    "adam_step": _stepped(lambda optim, ps, gpu: optim.Adam(ps, fused=True, capturable=gpu)),
    "amsgrad_step": _stepped(lambda optim, ps, gpu: optim.Adam(ps, amsgrad=True, fused=True, capturable=gpu)),
    "nadam_step": _stepped(lambda optim, ps, gpu: optim.NAdam(ps, capturable=gpu)),
    "radam_step": _stepped(lambda optim, ps, gpu: optim.RAdam(ps, capturable=gpu)),
    "adamax_step": _stepped(lambda optim, ps, gpu: optim.Adamax(ps, capturable=gpu)),
    "adagrad_step": _stepped(lambda optim, ps, gpu: optim.Adagrad(ps)),
    "adadelta_step": _stepped(lambda optim, ps, gpu: optim.Adadelta(ps, capturable=gpu)),
    "rmsprop_step": _stepped(lambda optim, ps, gpu: optim.RMSprop(ps, capturable=gpu)),
    "rprop_step": _stepped(lambda optim, ps, gpu: optim.Rprop(ps, capturable=gpu)),
    "asgd_step": _stepped(lambda optim, ps, gpu: optim.ASGD(ps, capturable=gpu)),
    "rmsprop_momentum_step": _stepped(lambda optim, ps, gpu: optim.RMSprop(ps, momentum=0.9, capturable=gpu)),
    "rmsprop_centered_step": _stepped(lambda optim, ps, gpu: optim.RMSprop(ps, centered=True, capturable=gpu)),
    "rmsprop_centered_momentum_step": _stepped(lambda optim, ps, gpu: optim.RMSprop(ps, momentum=0.9, centered=True, capturable=gpu)),
}
