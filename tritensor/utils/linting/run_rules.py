"""Rules on a call with a sample: parameters that take no part, the order of modules in the flow of tensors, numbers that the loss does not take."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tritensor.autograd import grad
from tritensor.autograd.modes import enable_grad
from tritensor.nn.container import Sequential
from tritensor.nn.inspection import preserve_state, watch_calls
from tritensor.nn.module import Module
from tritensor.tensor.core import Tensor
from tritensor.tensor.public_api.publish import public
from tritensor.utils.linting.report import Slip, is_kind
from tritensor.utils.linting.sequence_rules import check_bias, check_loss, loss_name
from tritensor.viz.calls import find_tensors


def check_sample(model: Module, inputs: tuple[Any, ...], loss: Any) -> Iterator[Slip]:
    """Run a model forward and backward on a sample; modes, buffers, gradients and random numbers are as before afterwards."""
    with preserve_state(model):
        flow = _Flow(model)
        with enable_grad(), watch_calls(model, flow.before, flow.after):
            outputs = find_tensors(model(*inputs))
        yield from flow.slips
        yield from _check_outputs(outputs, flow, loss)
        yield from _check_unused(model, outputs)
        model.eval()  # the second call: a dropout that still draws is F.dropout without training=
        with enable_grad():
            drops = _has_dropout(find_tensors(model(*inputs)))
    if drops:
        what = "it drops values in eval mode as well: F.dropout without training="
        yield Slip("dropout-in-eval", "", what, "give F.dropout(x, p, training=self.training), or use nn.Dropout")


class _Flow:
    """Record of a call: the module that made each tensor, and the one that took it; slips as they are seen."""

    def __init__(self, model: Module) -> None:
        self.names = {id(m): name for name, m in model.named_modules()}
        self.made: dict[int, tuple[str, Module]] = {}  # by tensor: the module that returned it last
        self.held: list[Any] = []  # the tensors stay alive, so that their ids stay their own
        self.slips: list[Slip] = []
        self._taken: dict[int, str] = {}  # by tensor: the module that took it first, and does not change it
        self._bad = False

    def before(self, module: Module, args: Any, kwargs: Any) -> None:
        given = find_tensors([args, kwargs])
        self.held += given
        path = self.names.get(id(module), "")
        simple = not list(module.children())  # containers hand tensors on
        for t in given:
            source = self.made.get(id(t))
            if source is not None and simple:
                self.slips += check_bias(*source, path, module)
            if getattr(module, "inplace", False) is True and id(t) in self._taken:
                self.slips.append(Slip(
                    "in-place-residual", path, f"{type(module).__name__}(inplace=True) writes over what {self._taken[id(t)] or 'the model'} was given as well",
                    "give inplace=False",
                ))  # fmt: skip
            keeps = not getattr(module, "inplace", False) and not is_kind(module, "Identity", "Dropout", "Flatten")
            if keeps and simple and not isinstance(module, Sequential):
                self._taken.setdefault(id(t), path)

    def after(self, module: Module, args: Any, result: Any) -> None:
        path = self.names.get(id(module), "")
        for t in find_tensors(result):
            self.held.append(t)
            self._taken.pop(id(t), None)  # what is given on as it came is the next one's to write over
            if not list(module.children()):
                self.made[id(t)] = (path, module)
                if t.is_floating_point() and not self._bad and not bool(public["isfinite"](t.detach()).all()):
                    self._bad = True  # one NaN makes all later ones: the first is the cause
                    what = "what it gives for the sample holds NaN or infinite values"
                    self.slips.append(Slip("not-finite", path, what, "look at its inputs and weights"))


# The layer that does the same as a function, by the node that the function leaves.
_LAYERS = {
    "SoftmaxBackward0": "Softmax", "LogSoftmaxBackward0": "LogSoftmax", "SigmoidBackward0": "Sigmoid", "LogSigmoidBackward0": "LogSigmoid",
    "ReluBackward0": "ReLU",
}  # fmt: skip


def _check_outputs(outputs: list[Tensor], flow: _Flow, loss: Any) -> Iterator[Slip]:
    """Compare the first output with what the loss takes."""
    if loss is None or not outputs:  # nothing to compare: a loss is optional, and so are tensors among what a model returns
        return
    for t in outputs[:1]:  # a loss takes the first output; others are often hidden states
        path, last = flow.made.get(id(t), ("", None))
        found = list(check_loss(path, last, loss))
        if not found and t.grad_fn is not None:  # a function in forward does what the layer would
            found = list(check_loss(path, last, loss, _LAYERS.get(t.grad_fn.name(), "")))
        yield from found
        if not t.is_floating_point():  # classes, say: no range that a loss would ask for
            continue
        low, high, name = float(t.detach().min()), float(t.detach().max()), loss_name(loss)
        if name == "BCELoss" and (low < 0 or high > 1):
            what = f"BCELoss takes probabilities, and outputs reach from {low:.3g} to {high:.3g}"
            yield Slip("not-probabilities", "", what, "use BCEWithLogitsLoss")
        if name == "NLLLoss" and high > 0:
            what = f"NLLLoss takes log-probabilities, and outputs reach to {high:.3g}"
            yield Slip("not-log-probabilities", "", what, "use CrossEntropyLoss")


def _check_unused(model: Module, outputs: list[Tensor]) -> Iterator[Slip]:
    named = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
    tensors = [t for t in outputs if t.requires_grad]
    if not tensors:
        if named:
            what = "its outputs have no graph: nothing is learned"
            yield Slip("no-graph", "", what, "look for detach(), .data, no_grad or numpy in forward")
        return
    # not backward(): the user's .grad stays as it is
    grads = grad(tensors, [p for _, p in named], [public["ones_like"](t) for t in tensors], allow_unused=True)
    for (name, _), g in zip(named, grads, strict=True):
        if g is None:
            yield Slip("unused", name, "it takes no part in the outputs", "call its module in forward, or leave it out")


def _has_dropout(outputs: list[Tensor]) -> bool:
    seen: set[int] = set()
    stack = [t.grad_fn for t in outputs if t.grad_fn is not None]
    held = list(stack)  # nodes stay alive, so that their ids stay their own
    while stack:
        fn = stack.pop()
        if id(fn) in seen:
            continue
        seen.add(id(fn))
        if "dropout" in str(getattr(getattr(fn, "op", None), "name", "")):  # a layer in eval mode leaves no node: only the function does
            return True
        more = [f for f, _ in fn.next_functions if f is not None]
        held += more
        stack += more
    return False
