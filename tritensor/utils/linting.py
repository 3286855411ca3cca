"""lint: known slips in a model, each with the path of the module and how to mend it. Nothing runs unless inputs are given."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from tritensor.nn.container import Sequential
from tritensor.nn.module import Module
from tritensor.nn.parameter import Parameter
from tritensor.tensor.core import Tensor
from tritensor.tensor.publishing.publish import public


class Slip(NamedTuple):
    """What was found: the rule's name, the path of the module, what is the matter, and what to do."""

    rule: str
    path: str
    what: str
    mend: str

    def __str__(self) -> str:
        return f"{self.path or '(the model)'}: {self.what}; {self.mend} [{self.rule}]"


class Report(list[Slip]):
    """The slips of a model. Printing it gives a line for each."""

    def __str__(self) -> str:
        return "\n".join(map(str, self)) or "no slips found"


def lint(model: Module, *inputs: Any, loss: Any = None) -> Report:
    """Look a model over for known slips.

    Args:
        inputs: what a call of the model takes; with them it runs once, forward and backward, and parameters that take no part are told.
        loss: the loss that its output goes to, a module such as nn.CrossEntropyLoss().

    Raises:
        TypeError: for what is no module.
    """
    if not isinstance(model, Module):
        raise TypeError(f"lint: {type(model).__name__} is not a Module; give the model itself")
    found = Report()
    for path, module in model.named_modules():
        for rule in _RULES:
            found += rule(path, module)
    found += _end(model, loss)
    found += _shared(model)
    found += _values(model)
    if inputs:
        found += _unused(model, inputs)
    return found


def _is(module: Any, *beginnings: str) -> bool:
    """Whether a module's class, or one that it comes from, has a name that begins so."""
    return any(c.__name__.startswith(b) for c in type(module).__mro__ for b in beginnings)


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _pairs(module: Module) -> Iterator[tuple[str, Module, str, Module]]:
    """Children that run one after the other: neighbours in a Sequential, and conv1/bn1 of modules that call them so."""
    children = list(module.named_children())
    if isinstance(module, Sequential):
        for (a, first), (b, second) in zip(children, children[1:], strict=False):
            yield a, first, b, second
        return
    named = dict(children)
    for name, first in children:
        kind = re.fullmatch(r"(conv|fc|linear|lin)(\d*)", name)
        for word in ("bn", "norm", "batchnorm", "batch_norm") if kind else ():
            other = f"{word}{kind[2]}"  # type: ignore[index]
            if other in named:
                yield name, first, other, named[other]


def _bias_before_norm(path: str, module: Module) -> Iterator[Slip]:
    for a, first, b, second in _pairs(module):
        norm = _is(second, "BatchNorm", "SyncBatchNorm", "LazyBatchNorm", "InstanceNorm")
        if norm and _is(first, "Linear", "Conv", "LazyConv", "LazyLinear") and getattr(first, "bias", None) is not None:
            yield Slip(
                "bias-before-norm",
                _below(path, a),
                f"its bias is taken away again by the mean of {_below(path, b)} ({type(second).__name__})",
                "give bias=False",
            )


_LOSSES = {
    "CrossEntropyLoss": (("Softmax", "LogSoftmax", "Sigmoid"), "CrossEntropyLoss takes the logits and does the log-softmax itself"),
    "BCEWithLogitsLoss": (("Sigmoid", "Softmax"), "BCEWithLogitsLoss takes the logits and does the sigmoid itself"),
    "NLLLoss": (("Softmax", "Sigmoid"), "NLLLoss takes log-probabilities: LogSoftmax"),
}


def _before_loss(path: str, last: Any, loss: Any) -> Iterator[Slip]:
    for name, (kinds, why) in _LOSSES.items():
        if type(loss).__name__ == name and type(last).__name__ in kinds:
            yield Slip("softmax-before-loss", path, f"{type(last).__name__} before {name}: {why}", f"leave {type(last).__name__} out")


def _in_a_row(path: str, module: Module) -> Iterator[Slip]:
    if not isinstance(module, Sequential):
        return
    for a, first, b, second in _pairs(module):
        here, there = _below(path, a), _below(path, b)
        yield from _before_loss(here, first, second)
        if _is(first, "Dropout") and _is(second, "BatchNorm"):
            yield Slip(
                "dropout-before-norm",
                here,
                f"the variance that {there} learns with dropout is another without it (Li et al. 2018)",
                "put the dropout behind the norm",
            )
        if type(first).__name__ == type(second).__name__ == "Linear":
            yield Slip(
                "no-activation", here, f"nothing stands between it and {there}: two linear maps are one", "put an activation between them"
            )
        if type(first) is type(second) and type(first).__name__ in ("ReLU", "ReLU6", "Softmax", "LogSoftmax", "Flatten"):
            yield Slip(
                "twice", there, f"{type(second).__name__} right after {here}, another {type(first).__name__}", "leave one of them out"
            )
    children = list(module.named_children())
    if children and getattr(children[0][1], "inplace", False) is True:
        name, first = children[0]
        yield Slip(
            "in-place-input",
            _below(path, name),
            f"{type(first).__name__}(inplace=True) at the beginning writes over what the Sequential is given, which a residual (x + block(x)) reads",
            "give inplace=False",
        )


def _not_registered(path: str, module: Module) -> Iterator[Slip]:
    for name, value in vars(module).items():
        if name.startswith("_") and name in ("_parameters", "_buffers", "_modules", "_hooks", "_non_persistent_buffers_set"):
            continue
        held = list(value) if isinstance(value, list | tuple | set) else list(value.values()) if isinstance(value, dict) else []
        for kind, container in ((Module, "nn.ModuleDict" if isinstance(value, dict) else "nn.ModuleList"),
                                (Parameter, "nn.ParameterDict" if isinstance(value, dict) else "nn.ParameterList")):  # fmt: skip
            n = sum(isinstance(x, kind) for x in held)
            if n:
                yield Slip(
                    "not-registered",
                    _below(path, name),
                    f"a plain {type(value).__name__} of {n} {kind.__name__}(s), which parameters(), to() and state_dict() do not see",
                    f"use {container}",
                )
        if isinstance(value, Tensor) and not isinstance(value, Parameter):
            asks = value.requires_grad
            yield Slip(
                "plain-tensor",
                _below(path, name),
                "a tensor that requires grad and is no Parameter: no optimizer sees it"
                if asks
                else "a tensor that to() does not move and state_dict() does not keep",
                "make it an nn.Parameter" if asks else "use register_buffer",
            )


def _settings(path: str, module: Module) -> Iterator[Slip]:
    name = type(module).__name__
    if name in ("Softmax", "LogSoftmax", "Softmin") and getattr(module, "dim", 0) is None:
        yield Slip(
            "no-dim", path, f"{name} without dim guesses it from the number of dimensions", "give dim=-1, or the dimension of the classes"
        )
    rate = getattr(module, "p", None)
    if _is(module, "Dropout") and isinstance(rate, float) and rate > 0.9:
        yield Slip(
            "much-dropout",
            path,
            f"p={rate:g} leaves {1 - rate:.0%} of the values: p is the share that goes",
            f"give p={1 - rate:.2g}, if that was meant",
        )


_RULES: tuple[Callable[[str, Module], Iterator[Slip]], ...] = (_bias_before_norm, _in_a_row, _not_registered, _settings)


def _last(path: str, module: Module) -> tuple[str, Module]:
    """The module that gives a Sequential's output."""
    while isinstance(module, Sequential) and len(module):
        name, module = list(module.named_children())[-1]
        path = _below(path, name)
    return path, module


def _end(model: Module, loss: Any) -> Iterator[Slip]:
    path, last = _last("", model)
    if loss is not None:
        yield from _before_loss(path, last, loss)
    if last is not model and _is(last, "Dropout"):
        yield Slip(
            "dropout-at-the-end",
            path,
            f"{type(last).__name__} is the last layer: it zeroes outputs at random",
            "put it before the last layer",
        )


def _shared(model: Module) -> Iterator[Slip]:
    names: dict[int, list[str]] = {}
    for name, p in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(p), []).append(name)
    for found in names.values():
        if len(found) > 1:
            yield Slip(
                "shared",
                found[0],
                f"one parameter under {len(found)} names: {', '.join(found)}",
                "if it is not tied on purpose, make a module of its own for each place",
            )


def _values(model: Module) -> Iterator[Slip]:
    params = list(model.named_parameters())
    if params and not any(p.requires_grad for _, p in params):
        yield Slip("all-frozen", "", "none of its parameters requires grad: nothing is learned", "call requires_grad_() on those to learn")
    for name, p in params:
        values = p.detach()
        if not p.numel() or not bool(public["isfinite"](values).all()):
            if p.numel():
                yield Slip("not-finite", name, "it holds NaN or infinite values", "initialise it anew, or load a sound checkpoint")
        elif p.ndim > 1 and not bool((values != 0).any()):
            yield Slip(
                "all-zero", name, "all its weights are 0, so that its units stay alike", "initialise it, as with nn.init.kaiming_uniform_"
            )


def _unused(model: Module, inputs: tuple[Any, ...]) -> Iterator[Slip]:
    from tritensor.autograd import grad

    named = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
    tensors = [t for t in _flat(model(*inputs)) if t.requires_grad]
    if not tensors:
        if named:
            yield Slip(
                "no-graph", "", "its outputs have no graph: nothing is learned", "look for detach(), .data, no_grad or numpy in forward"
            )
        return
    grads = grad(tensors, [p for _, p in named], [public["ones_like"](t) for t in tensors], allow_unused=True)
    for (name, _), g in zip(named, grads, strict=True):
        if g is None:
            yield Slip("unused", name, "it takes no part in the outputs", "call its module in forward, or leave it out")


def _flat(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [t for v in value for t in _flat(v)] if isinstance(value, list | tuple) else []
