"""Adam and its kin: steps scaled by running moments of the gradient."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tritensor.optim.formula_optimizer import FormulaOptimizer
from tritensor.optim.optimizer import refuse_together
from tritensor.optim.plan import Plan
from tritensor.tensor.core import Tensor


class _Moments(FormulaOptimizer):
    _not_below_zero = {"eps": "epsilon value"}  # noqa: RUF012

    def _check(self, defaults: dict[str, Any]) -> None:
        super()._check(defaults)
        self._check_betas(defaults)


class Adam(_Moments):
    """m = b1 m + (1 - b1) g, v = b2 v + (1 - b2) g^2, p -= lr (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps) (Kingma and Ba 2015).

    weight_decay is added to the gradient as weight_decay * p; decoupled_weight_decay=True shrinks p by lr * weight_decay instead (AdamW).
    amsgrad divides by the largest v so far (Reddi et al. 2018). `foreach` and `fused` are accepted and change nothing: a step is always one of
    all parameters. `capturable` neither: on a GPU the step counts are always kept there, as float32 tensors, and a step can be
    captured in a CUDA graph. lr may be a tensor of one value; in a graph, where numbers are frozen, it must be one on the GPU to be
    changed between replays. With differentiable=True a step can be differentiated.

    Raises:
        ValueError: a setting that makes no sense; no parameters; one that is no leaf or is given twice.
        CaptureError: a first step in the capture of a CUDA graph; take one before.
    """

    _decoupled = False
    _formulas = ("adam.ADAM", "adam.AMSGRAD")

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0,
        amsgrad: bool = False, *, foreach: bool | None = None, maximize: bool = False, capturable: bool = False, differentiable: bool = False,
        fused: bool | None = None, decoupled_weight_decay: bool = False,
    ) -> None:  # fmt: skip
        name = type(self).__name__
        if foreach and not capturable:
            for what, given in (("lr", lr), ("betas[0]", betas[0]), ("betas[1]", betas[-1])):
                if isinstance(given, Tensor):
                    raise ValueError(
                        f"{name}: {what} as a Tensor is not supported for capturable=False and foreach=True; leave foreach out"
                    )
        if len({isinstance(b, Tensor) for b in betas}) > 1:
            raise ValueError(f"{name}: betas must be either both floats or both Tensors, not {betas}")
        for i, b in enumerate(betas):
            if isinstance(b, Tensor) and b.numel() != 1:
                raise ValueError(f"{name}: Tensor betas[{i}] must be 1-element, not of shape {tuple(b.shape)}; give one number")
        refuse_together(name, foreach=foreach, fused=fused, differentiable=differentiable)
        betas = tuple([b.item() if isinstance(b, Tensor) else b for b in betas])  # type: ignore[assignment]
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad, "maximize": maximize, "foreach": foreach,
            "capturable": capturable, "differentiable": differentiable, "fused": fused, "decoupled_weight_decay": decoupled_weight_decay or self._decoupled,
        })  # fmt: skip

    _check_group = FormulaOptimizer._refuse_corrections

    def _plan(self, group: dict[str, Any]) -> Plan:
        formula = "adam.AMSGRAD" if group["amsgrad"] else "adam.ADAM"
        return Plan(formula, (group["lr"], *group["betas"], group["eps"]), **self._decay_settings(group, group["decoupled_weight_decay"]))


class AdamW(Adam):
    """Adam whose weight decay does not pass through the moments: p shrinks by lr * weight_decay first (Loshchilov and Hutter 2019).

    >>> layer = nn.Linear(2, 1)
    >>> optimizer = tt.optim.AdamW(layer.parameters(), lr=1e-3, weight_decay=0.01)
    >>> layer(tt.ones(4, 2)).sum().backward()
    >>> optimizer.step()
    >>> optimizer.zero_grad()
    >>> layer.weight.grad is None
    True
    """

    _decoupled = True

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 1e-2,
        amsgrad: bool = False, *, maximize: bool = False, foreach: bool | None = None, capturable: bool = False, differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize, capturable=capturable,
            differentiable=differentiable, fused=fused,
        )  # fmt: skip


class Adamax(_Moments):
    """m = b1 m + (1 - b1) g, u = max(b2 u, |g| + eps), p -= lr / (1 - b1^t) m / u (Kingma and Ba 2015, section 7).

    `foreach` and `capturable` are accepted and change nothing.

    Raises:
        ValueError: a setting that makes no sense; no parameters; one that is no leaf or is given twice.
    """

    _formulas = ("adamax.ADAMAX",)

    def __init__(
        self, params: Iterable[Any], lr: float = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0,
        foreach: bool | None = None, *, maximize: bool = False, differentiable: bool = False, capturable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable, "capturable": capturable,
        })  # fmt: skip

    def _check_group(self, settings: dict[str, Any]) -> None:
        self._refuse_corrections(settings, second=False)

    def _plan(self, group: dict[str, Any]) -> Plan:
        return Plan("adamax.ADAMAX", (group["lr"], *group["betas"], group["eps"]), **self._decay_settings(group))


class NAdam(_Moments):
    """Adam whose step looks ahead along the momentum, whose weight mu_t = b1 (1 - 0.96^(t momentum_decay) / 2) grows (Dozat 2016).

    decoupled_weight_decay=True shrinks p by lr * weight_decay instead of adding weight_decay * p to the gradient. `foreach` and `capturable`
    are accepted and change nothing.

    Raises:
        ValueError: a setting that makes no sense; no parameters; one that is no leaf or is given twice.
    """

    _formulas = ("nadam.NADAM",)
    _not_below_zero = {"eps": "epsilon value", "momentum_decay": "momentum_decay value"}  # noqa: RUF012

    def __init__(
        self, params: Iterable[Any], lr: float = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0,
        momentum_decay: float = 4e-3, decoupled_weight_decay: bool = False, *, foreach: bool | None = None, maximize: bool = False,
        capturable: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize, "foreach": foreach, "capturable": capturable,
            "differentiable": differentiable,
        })  # fmt: skip

    def _initial_value(self, name: str, p: Any, group: dict[str, Any]) -> float:
        return 1.0 if name == "mu_product" else 0.0

    def _plan(self, group: dict[str, Any]) -> Plan:
        settings = (group["lr"], *group["betas"], group["eps"], group["momentum_decay"])
        return Plan("nadam.NADAM", settings, **self._decay_settings(group, group["decoupled_weight_decay"]))


class RAdam(_Moments):
    """Adam that steps by its momentum alone for the first steps, and then by a rectified adaptive rate (Liu et al. 2020).

    decoupled_weight_decay=True shrinks p by lr * weight_decay instead of adding weight_decay * p to the gradient. `foreach` and `capturable`
    are accepted and change nothing.

    Raises:
        ValueError: a setting that makes no sense; no parameters; one that is no leaf or is given twice.
    """

    _formulas = ("radam.RADAM",)

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0,
        decoupled_weight_decay: bool = False, *, foreach: bool | None = None, maximize: bool = False, capturable: bool = False,
        differentiable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize, "foreach": foreach, "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay, "differentiable": differentiable,
        })  # fmt: skip

    def _plan(self, group: dict[str, Any]) -> Plan:
        return Plan(
            "radam.RADAM", (group["lr"], *group["betas"], group["eps"]), **self._decay_settings(group, group["decoupled_weight_decay"])
        )
