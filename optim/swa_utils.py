"""Averages of a model's parameters along the training: stochastic weight averaging (Izmailov et al. 2018), exponential means (Polyak's)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from typing import Any

from tritensor import nn
from tritensor.autograd.modes import no_grad
from tritensor.ground.device import device as Device
from tritensor.ground.errors import ShapeError
from tritensor.nn.layers.normalization.batchnorm import _BatchNorm
from tritensor.optim.lr_scheduler import LRScheduler
from tritensor.optim.lr_scheduler.base import expand_to_groups, refuse_other
from tritensor.optim.optimizer import Optimizer
from tritensor.optim.state import to_number
from tritensor.tensor.core import Tensor
from tritensor.tensor.public_api.publish import public


def _refuse_decay(name: str, decay: float) -> None:
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"{name}: Invalid decay value {decay} provided. Please provide a value in [0,1] range; it must be in it")


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[[Sequence[Tensor], Sequence[Tensor], Any], None]:
    """The function (averages, parameters, n) that moves averages to decay * average + (1 - decay) * parameter. Raises ValueError for a decay outside [0, 1]."""
    _refuse_decay("get_ema_multi_avg_fn", decay)

    @no_grad()
    def ema_update(averages: Sequence[Tensor], parameters: Sequence[Tensor], n: Any) -> None:
        for average, p in zip(averages, parameters, strict=True):
            if average.is_floating_point() or average.is_complex():
                average.lerp_(p, 1 - decay)
            else:
                average.copy_(average * decay + p * (1 - decay))

    return ema_update


def get_swa_multi_avg_fn() -> Callable[[Sequence[Tensor], Sequence[Tensor], Any], None]:
    """The function (averages, parameters, n) that makes means of n parameters means of n + 1."""

    @no_grad()
    def swa_update(averages: Sequence[Tensor], parameters: Sequence[Tensor], n: Any) -> None:
        weight = 1 / (to_number(n) + 1)
        for average, p in zip(averages, parameters, strict=True):
            if average.is_floating_point() or average.is_complex():
                average.lerp_(p, weight)
            else:
                average.copy_(average + (p - average) * weight)

    return swa_update


def get_ema_avg_fn(decay: float = 0.999) -> Callable[[Tensor, Tensor, Any], Tensor]:
    """The function (average, parameter, n) that gives decay * average + (1 - decay) * parameter. Raises ValueError for a decay outside [0, 1]."""
    _refuse_decay("get_ema_avg_fn", decay)

    @no_grad()
    def ema_update(average: Tensor, p: Tensor, n: Any) -> Tensor:
        return decay * average + (1 - decay) * p  # type: ignore[no-any-return]

    return ema_update


def get_swa_avg_fn() -> Callable[[Tensor, Tensor, Any], Tensor]:
    """The function (average, parameter, n) that gives the mean of n + 1 parameters, of which `average` is that of n."""

    @no_grad()
    def swa_update(average: Tensor, p: Tensor, n: Any) -> Tensor:
        return average + (p - average) / (n + 1)  # type: ignore[no-any-return]

    return swa_update


class AveragedModel(nn.Module):
    """A copy of a model, `module`, whose parameters are the means of the model's at each update_parameters(model); `n_averaged` counts them.

    Args:
        model: what is averaged.
        device: where the copy is kept; None: where the model is.
        avg_fn: (average, parameter, n_averaged) -> new average, a parameter at a time.
        multi_avg_fn: (averages, parameters, n_averaged), in place, for all of one type and device. Without either the plain mean.
        use_buffers: buffers (running statistics) are averaged, too; else they are the model's at the last update.

    Raises:
        AssertionError: both functions are given.
        ShapeError: update_parameters(model) with a model of other shapes.
    """

    n_averaged: Tensor

    def __init__(
        self, model: Any, device: Any = None, avg_fn: Callable[[Tensor, Tensor, Any], Tensor] | None = None,
        multi_avg_fn: Callable[[Sequence[Tensor], Sequence[Tensor], Any], None] | None = None, use_buffers: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        if not isinstance(model, nn.Module):
            raise TypeError(f"AveragedModel: model is {type(model).__name__}; give a Module")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", public["tensor"](0, device=Device("cpu") if device is None else device))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    @no_grad()
    def update_parameters(self, model: Any) -> None:
        """Take the model's parameters into the average; the first time they are copied."""
        averages, params = (
            [p.detach() for p in (itertools.chain(m.parameters(), m.buffers()) if self.use_buffers else m.parameters())]
            for m in (self.module, model)
        )
        if [tuple(p.shape) for p in averages] != [tuple(p.shape) for p in params]:
            raise ShapeError(
                f"AveragedModel.update_parameters: {type(model).__name__} has not the parameters of the model that is averaged; give that"
            )
        given = [p.to(q.device) for p, q in zip(params, averages, strict=True)]
        n = int(self.n_averaged.item())
        if n == 0:
            for q, p in zip(averages, given, strict=True):
                q.copy_(p)
        elif self.avg_fn is not None:
            for q, p in zip(averages, given, strict=True):
                q.copy_(self.avg_fn(q, p, self.n_averaged.to(q.device)))
        else:
            update = self.multi_avg_fn or get_swa_multi_avg_fn()
            alike: dict[Any, list[int]] = {}
            for i, q in enumerate(averages):
                # a function of many tensors takes those of one type and device at a time
                alike.setdefault((q.device, q.dtype), []).append(i)
            for (place, _), some in alike.items():
                update([averages[i] for i in some], [given[i] for i in some], self.n_averaged.to(place))
        if not self.use_buffers:
            for q, p in zip(self.module.buffers(), model.buffers(), strict=True):
                q.copy_(p.to(q.device))
        self.n_averaged += 1


@no_grad()
def update_bn(loader: Iterable[Any], model: Any, device: Any = None) -> None:
    """Compute the running statistics of a model's batch normalisations anew, as plain means over what the loader gives (of tuples and
    lists the first item), in training mode; the mode is then as it was."""
    momenta = {m: m.momentum for m in model.modules() if isinstance(m, _BatchNorm)}
    if not momenta:
        return
    was_training = model.training
    model.train()
    for norm in momenta:
        # what was there belongs to the parameters of training, not to their average
        norm.reset_running_stats()
        norm.momentum = None  # a plain mean
    try:
        for batch in loader:
            x = batch[0] if isinstance(batch, list | tuple) else batch
            model(x if device is None else x.to(device))
    finally:
        for norm, momentum in momenta.items():
            norm.momentum = momentum
        model.train(was_training)


class SWALR(LRScheduler):
    """From the rates as they are to swa_lr in anneal_epochs epochs, along half a cosine or a straight line, and then no further.

    Raises:
        ValueError: anneal_strategy is neither "cos" nor "linear", anneal_epochs no integer from 0 on, or a list of another length than the groups.
    """

    def __init__(
        self, optimizer: Optimizer, swa_lr: float | Sequence[float], anneal_epochs: int = 10, anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        refuse_other("SWALR", optimizer)
        for lr, group in zip(expand_to_groups("swa_lr", optimizer, swa_lr), optimizer.param_groups, strict=True):
            group["swa_lr"] = lr
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"SWALR: anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"SWALR: anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self._anneal_strategy, self.anneal_epochs = anneal_strategy, anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _anneal_share(self, step: int) -> float:
        """How much of swa_lr is in the rate after a step."""
        t = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return t if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * t)) / 2

    def get_lr(self) -> list[float]:
        self._warn_outside()
        step = self._step_count - 1
        # without epochs to anneal over the first step already ends at swa_lr
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._anneal_share(step - 1), self._anneal_share(step)
        rates = []
        for group in self.optimizer.param_groups:
            goal = group["swa_lr"]
            start = goal if before == 1 else (group["lr"] - before * goal) / (1 - before)  # what the rate before was made of
            rates.append(goal * now + start * (1 - now))
        return rates
