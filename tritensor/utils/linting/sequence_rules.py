"""Rules on the order of layers: neighbours in a Sequential, layers and their norms, the last layer and the loss."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tritensor.nn.container import Sequential
from tritensor.nn.module import Module
from tritensor.utils.linting.report import Slip, child_path, is_kind


def _consecutive_children(module: Module) -> Iterator[tuple[str, Module, str, Module]]:
    """Children that run one after the other: neighbours in a Sequential, and conv1/bn1 of modules that call them so."""
    children = list(module.named_children())
    if isinstance(module, Sequential):
        for (a, first), (b, second) in zip(children, children[1:], strict=False):
            yield a, first, b, second
        return
    named = dict(children)
    for name, first in children:
        kind = re.fullmatch(r"(conv|fc|linear|lin)(\d*)", name)
        for word in ("bn", "norm", "batchnorm", "batch_norm") if kind else ():  # by the usual names: forward is not read
            other = f"{word}{kind[2]}"  # type: ignore[index]
            if other in named:
                yield name, first, other, named[other]


def check_bias_before_norm(path: str, module: Module) -> Iterator[Slip]:
    for a, first, b, second in _consecutive_children(module):
        yield from check_bias(child_path(path, a), first, child_path(path, b), second)


def check_bias(a: str, first: Module, b: str, second: Module) -> Iterator[Slip]:
    """A layer `first` with a bias, whose output goes to a norm `second`; a and b are their paths."""
    norm = is_kind(second, "BatchNorm", "SyncBatchNorm", "InstanceNorm")
    if norm and is_kind(first, "Linear", "Conv") and getattr(first, "bias", None) is not None:
        what = f"its bias is taken away again by the mean of {b} ({type(second).__name__})"
        yield Slip("bias-before-norm", a, what, "give bias=False")


# Layers that must not stand before a loss, by its class, and why; the class of a loss by its function in nn.functional.
_LOSSES = {
    "CrossEntropyLoss": (("Softmax", "LogSoftmax", "Sigmoid"), "CrossEntropyLoss takes the logits and does the log-softmax itself"),
    "BCEWithLogitsLoss": (("Sigmoid", "Softmax", "LogSigmoid"), "BCEWithLogitsLoss takes the logits and does the sigmoid itself"),
    "NLLLoss": (("Softmax", "Sigmoid"), "NLLLoss takes log-probabilities: LogSoftmax"),
}
_FUNCTIONS = {
    "cross_entropy": "CrossEntropyLoss", "binary_cross_entropy_with_logits": "BCEWithLogitsLoss", "nll_loss": "NLLLoss",
    "binary_cross_entropy": "BCELoss",
}  # fmt: skip


def loss_name(loss: Any) -> str:
    """The class of a loss, also where its function is given."""
    for c in type(loss).__mro__:
        if c.__name__.endswith("Loss"):
            return c.__name__
    return _FUNCTIONS.get(getattr(loss, "__name__", ""), "")


def check_loss(path: str, last: Any, loss: Any, kind: str = "") -> Iterator[Slip]:
    """A last layer that does not go with the loss; `kind` is the layer of the same effect where a function did it."""
    name, kind = loss_name(loss), kind or type(last).__name__
    if name in _LOSSES and kind in _LOSSES[name][0]:
        yield Slip("softmax-before-loss", path, f"{kind} before {name}: {_LOSSES[name][1]}", f"leave {kind} out")
    if name in ("CrossEntropyLoss", "BCEWithLogitsLoss") and kind in ("ReLU", "ReLU6"):
        yield Slip("relu-before-loss", path, f"{kind} before {name}: logits below 0 are lost, and their gradients", f"leave {kind} out")
    if name == "CrossEntropyLoss" and kind == "Linear" and last.out_features == 1:
        mend = "give as many out_features as classes, or use BCEWithLogitsLoss"
        yield Slip("one-class", path, "CrossEntropyLoss of one class is always 0", mend)


def check_neighbours(path: str, module: Module) -> Iterator[Slip]:
    if not isinstance(module, Sequential):
        return
    for a, first, b, second in _consecutive_children(module):
        here, there = child_path(path, a), child_path(path, b)
        yield from check_loss(here, first, second)
        if is_kind(first, "Dropout") and is_kind(second, "BatchNorm"):
            what = f"the variance that {there} learns with dropout is another without it (Li et al. 2018)"
            yield Slip("dropout-before-norm", here, what, "put the dropout behind the norm")
        if type(first).__name__ == type(second).__name__ == "Linear" and not _are_factors(first, second):
            what = f"nothing stands between it and {there}: two linear maps are one"
            yield Slip("no-activation", here, what, "put an activation between them")
        if type(first) is type(second) and type(first).__name__ in ("ReLU", "ReLU6", "Softmax", "LogSoftmax", "Flatten"):
            what = f"{type(second).__name__} right after {here}, another {type(first).__name__}"
            yield Slip("twice", there, what, "leave one of them out")
    yield from _check_widths(path, module)
    children = list(module.named_children())
    if children and getattr(children[0][1], "inplace", False) is True:
        name, first = children[0]
        kind = type(first).__name__
        what = f"{kind}(inplace=True) at the beginning writes over what the Sequential is given, which a residual (x + block(x)) reads"
        yield Slip("in-place-input", child_path(path, name), what, "give inplace=False")


def _are_factors(first: Any, second: Any) -> bool:
    """Whether two linear maps are the factors of a matrix of low rank, which is done on purpose."""
    return bool(first.out_features < min(first.in_features, second.out_features))


_THROUGH = (
    "ReLU", "LeakyReLU", "ELU", "SELU", "CELU", "GELU", "SiLU", "Mish", "Tanh", "Sigmoid", "Hard", "Softplus", "Dropout", "Identity", "PReLU", "RReLU",
)  # fmt: skip
_SPATIAL = ("MaxPool", "AvgPool", "Adaptive", "Conv")


def _check_widths(path: str, module: Sequential) -> Iterator[Slip]:
    """Sizes of neighbours that do not fit: channels, features, and pictures that go into a Linear layer unflattened."""
    width: int | None = None  # features or channels that come in
    source, spatial = "", False
    for name, layer in module.named_children():
        here = child_path(path, name)
        wanted = _input_size(layer)
        if spatial and type(layer).__name__ == "Linear":
            what = f"it is given what {source} made, whose last size is a picture's width"
            yield Slip("no-flatten", here, what, "put nn.Flatten() before it")
        elif width is not None and wanted is not None and wanted[1] != width:  # lazy layers have 0 and are not compared
            yield Slip("sizes", here, f"{wanted[0]}={wanted[1]}, and {source} gives {width}", f"give {wanted[0]}={width}")
        if (gives := _output_size(layer)) is not None:
            width, source, spatial = gives, here, is_kind(layer, "Conv")
        elif is_kind(layer, "BatchNorm", "InstanceNorm") or type(layer).__name__.startswith(_THROUGH):
            continue
        elif spatial and type(layer).__name__.startswith(_SPATIAL):
            source = here
        else:
            width, source, spatial = None, "", False


# Layers' names for the features or channels that they take, and for those that they give.
_WORDS = ({"Linear": "in_features", "Conv": "in_channels"}, {"Linear": "out_features", "Conv": "out_channels"})


def _layer_kind(layer: Any) -> str:
    """ "Conv" of every convolution, of other layers their class."""
    name = type(layer).__name__
    return "Conv" if name.startswith("Conv") else name


def _input_size(layer: Any) -> tuple[str, int] | None:
    """(the argument's name, the features or channels) that a layer takes; 0 is not known yet."""
    word = _WORDS[0].get(_layer_kind(layer)) or ("num_features" if is_kind(layer, "BatchNorm") else "")
    size = getattr(layer, word, 0)
    return (word, size) if size else None


def _output_size(layer: Any) -> int | None:
    return getattr(layer, _WORDS[1].get(_layer_kind(layer), ""), None) or None


def check_settings(path: str, module: Module) -> Iterator[Slip]:
    name = type(module).__name__
    if name in ("Softmax", "LogSoftmax", "Softmin") and getattr(module, "dim", 0) is None:
        what = f"{name} without dim guesses it from the number of dimensions"
        yield Slip("no-dim", path, what, "give dim=-1, or the dimension of the classes")
    if name in ("Softmax", "LogSoftmax") and getattr(module, "dim", None) == 0:
        yield Slip("softmax-over-batch", path, f"{name}(dim=0) sums to 1 over the batch, not over the classes", "give dim=-1, or dim=1")
    if name == "Flatten" and module.start_dim == 0:
        yield Slip("flatten-batch", path, "Flatten(start_dim=0) joins the samples of a batch", "give start_dim=1, the default")
    rate = getattr(module, "p", None)
    if is_kind(module, "Dropout") and isinstance(rate, float) and rate > 0.9:
        what = f"p={rate:g} leaves {1 - rate:.0%} of the values: p is the share that goes"
        yield Slip("much-dropout", path, what, f"give p={1 - rate:.2g}, if that was meant")


def _flatten_sequential(path: str, module: Module) -> list[tuple[str, Module]]:
    """The layers of a Sequential, of those in it as well, in order."""
    if not isinstance(module, Sequential):
        return [(path, module)]
    return [leaf for name, child in module.named_children() for leaf in _flatten_sequential(child_path(path, name), child)]


def check_end(model: Module, loss: Any) -> Iterator[Slip]:
    """The last layer, as far as Sequentials show which it is."""
    layers = _flatten_sequential("", model)
    if not layers:
        return
    path, last = layers[-1]
    if loss is not None:
        yield from check_loss(path, last, loss)
    if len(layers) > 1 and is_kind(last, "Dropout") and (loss is not None or is_kind(layers[-2][1], "Linear", "Conv")):
        what = f"{type(last).__name__} is the last layer: it zeroes outputs at random"
        yield Slip("dropout-at-the-end", path, what, "put it before the last layer")
