"""Slips that a call on a sample shows: what takes no part, what stands before what in the flow of tensors, numbers that the loss does not take."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tritensor.autograd import grad
from tritensor.autograd.modes import enable_grad
from tritensor.nn.container import Sequential
from tritensor.nn.inspection import state_kept, watched
from tritensor.nn.module import Module
from tritensor.tensor.core import Tensor
from tritensor.tensor.public_api.publish import public
from tritensor.utils.linting.report import Slip, is_kind
from tritensor.utils.linting.sequence_rules import before_loss, bias_taken_away, loss_name
from tritensor.viz.calls import tensors_in


def on_sample(model: Module, inputs: tuple[Any, ...], loss: Any) -> Iterator[Slip]:
    """Run a model forward and backward on a sample; modes, buffers, gradients and random numbers are as before afterwards."""
    with state_kept(model):
        flow = _Flow(model)
        with enable_grad(), watched(model, flow.before, flow.after):
            outputs = tensors_in(model(*inputs))
        yield from flow.slips()
        yield from _ends(outputs, flow, loss)
        yield from _unused(model, outputs)
        model.eval()
        with enable_grad():
            drops = _drops(tensors_in(model(*inputs)))
    if drops:
        yield Slip(
            "dropout-in-eval",
            "",
            "it drops values in eval mode as well: F.dropout without training=",
            "give F.dropout(x, p, training=self.training), or use nn.Dropout",
        )


class _Flow:
    """Which module made a tensor that another one took."""

    def __init__(self, model: Module) -> None:
        self.names = {id(m): name for name, m in model.named_modules()}
        self.made: dict[int, tuple[str, Module]] = {}  # by tensor: who gave it last
        self.held: list[Any] = []  # what a number stands for stays alive, and the number its own
        self._found: list[Slip] = []
        self._taken: dict[int, str] = {}  # by tensor: who took it first, and does not change it
        self._bad = False

    def before(self, module: Module, args: Any, kwargs: Any) -> None:
        given = tensors_in([args, kwargs])
        self.held += given
        path = self.names.get(id(module), "")
        simple = not list(module.children())
        for t in given:
            source = self.made.get(id(t))
            if source is not None and simple:
                self._found += bias_taken_away(*source, path, module)
            if getattr(module, "inplace", False) is True and id(t) in self._taken:
                self._found.append(Slip(
                    "in-place-residual", path, f"{type(module).__name__}(inplace=True) writes over what {self._taken[id(t)] or 'the model'} was given as well",
                    "give inplace=False",
                ))  # fmt: skip
            if (
                not isinstance(module, Sequential)
                and not getattr(module, "inplace", False)
                and simple
                and not is_kind(module, "Identity", "Dropout", "Flatten")
            ):
                self._taken.setdefault(id(t), path)

    def after(self, module: Module, args: Any, result: Any) -> None:
        path = self.names.get(id(module), "")
        for t in tensors_in(result):
            self.held.append(t)
            self._taken.pop(id(t), None)  # what is given on as it came is the next one's to write over
            if not list(module.children()):
                self.made[id(t)] = (path, module)
                if t.is_floating_point() and not self._bad and not bool(public["isfinite"](t.detach()).all()):
                    self._bad = True
                    self._found.append(
                        Slip(
                            "not-finite",
                            path,
                            "what it gives for the sample holds NaN or infinite values",
                            "look at its inputs and weights",
                        )
                    )

    def slips(self) -> list[Slip]:
        return self._found


# By the node that a function leaves the layer that does the same.
_LAYERS = {
    "SoftmaxBackward0": "Softmax", "LogSoftmaxBackward0": "LogSoftmax", "SigmoidBackward0": "Sigmoid", "LogSigmoidBackward0": "LogSigmoid",
    "ReluBackward0": "ReLU",
}  # fmt: skip


def _ends(outputs: list[Tensor], flow: _Flow, loss: Any) -> Iterator[Slip]:
    """The outputs beside what the loss takes."""
    if loss is None or not outputs:
        return
    for t in outputs[:1]:
        path, last = flow.made.get(id(t), ("", None))
        found = list(before_loss(path, last, loss))
        if not found and t.grad_fn is not None:  # a function in forward does what the layer would
            found = list(before_loss(path, last, loss, _LAYERS.get(t.grad_fn.name(), "")))
        yield from found
        if not t.is_floating_point():
            continue
        low, high, name = float(t.detach().min()), float(t.detach().max()), loss_name(loss)
        if name == "BCELoss" and (low < 0 or high > 1):
            yield Slip(
                "not-probabilities",
                "",
                f"BCELoss takes probabilities, and outputs reach from {low:.3g} to {high:.3g}",
                "use BCEWithLogitsLoss",
            )
        if name == "NLLLoss" and high > 0:
            yield Slip(
                "not-log-probabilities", "", f"NLLLoss takes log-probabilities, and outputs reach to {high:.3g}", "use CrossEntropyLoss"
            )


def _unused(model: Module, outputs: list[Tensor]) -> Iterator[Slip]:
    named = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
    tensors = [t for t in outputs if t.requires_grad]
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


def _drops(outputs: list[Tensor]) -> bool:
    """Whether a dropout stands in the graph."""
    seen: set[int] = set()
    stack = [t.grad_fn for t in outputs if t.grad_fn is not None]
    held = list(stack)
    while stack:
        fn = stack.pop()
        if id(fn) in seen:
            continue
        seen.add(id(fn))
        if "dropout" in str(getattr(getattr(fn, "op", None), "name", "")):
            return True
        more = [f for f, _ in fn.next_functions if f is not None]
        held += more
        stack += more
    return False
