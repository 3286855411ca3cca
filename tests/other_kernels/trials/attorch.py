"""attorch: PyTorch's layers, each beside ours of the same name, in training, with its parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tritensor as tt
from tests.other_kernels.checkouts import ATTORCH
from tests.other_kernels.trial import Run, trial

nn = tt.nn


def beside(run: Run, name: str, *inputs: Any, tolerance: float = 1e-3, **settings: Any) -> None:
    """Their layer and ours with the same parameters: results, and gradients of inputs and parameters."""
    import attorch

    theirs, ours = getattr(attorch, name)(**settings), getattr(nn, name)(**settings)
    weights = [w.detach().cuda() for w in ours.parameters()]
    names = [n for n, _ in ours.named_parameters()]
    count = len(inputs)

    def call(module: Any) -> Callable[..., Any]:
        return lambda *all: tt.func.functional_call(module, dict(zip(names, all[count:], strict=True)), all[:count])

    run.same(call(theirs), call(ours), *inputs, *weights, tolerance=tolerance)


@trial(ATTORCH, "attorch/act_kernels.py", "ten activations, compiled into one kernel by name")
def activations(run: Run) -> None:
    for name in ("GELU", "SiLU", "Mish", "SELU", "Softplus", "Hardswish", "ELU", "LeakyReLU", "Softshrink", "LogSigmoid"):
        beside(run, name, run.randn(5, 60))


@trial(ATTORCH, "attorch/glu_kernels.py")
def glu(run: Run) -> None:
    beside(run, "GLU", run.randn(5, 60))


@trial(ATTORCH, "attorch/softmax_kernels.py")
def softmax(run: Run) -> None:
    for name in ("Softmax", "LogSoftmax", "Softmin"):
        beside(run, name, run.randn(7, 60), dim=-1)


@trial(ATTORCH, "attorch/layer_norm_kernels.py")
def layer_norm(run: Run) -> None:
    beside(run, "LayerNorm", run.randn(7, 60), normalized_shape=60)


@trial(ATTORCH, "attorch/rms_norm_kernels.py")
def rms_norm(run: Run) -> None:
    beside(run, "RMSNorm", run.randn(7, 60), normalized_shape=60)


@trial(ATTORCH, "attorch/batch_norm_kernels.py")
def batch_norm(run: Run) -> None:
    beside(run, "BatchNorm1d", run.randn(12, 20), num_features=20)
    beside(run, "BatchNorm2d", run.randn(4, 6, 5, 5), num_features=6)


@trial(ATTORCH, "attorch/linear_kernels.py", "the product with bias and activation")
def linear(run: Run) -> None:
    import attorch

    layer = attorch.Linear(32, 48, act_func="gelu").cuda()  # its weights are (in, out)

    def theirs(x: tt.Tensor, w: tt.Tensor, b: tt.Tensor) -> tt.Tensor:
        return tt.func.functional_call(layer, {"weight": w, "bias": b}, (x,))

    run.same(theirs, lambda x, w, b: nn.functional.gelu(x @ w + b), run.randn(20, 32), run.randn(32, 48), run.randn(48), tolerance=1e-3)


@trial(ATTORCH, "attorch/conv_kernels.py")
def convolution(run: Run) -> None:
    beside(run, "Conv2d", run.randn(2, 4, 9, 9), in_channels=4, out_channels=6, kernel_size=3, padding=1)


@trial(ATTORCH, "attorch/cross_entropy_loss_kernels.py")
def cross_entropy(run: Run) -> None:
    beside(run, "CrossEntropyLoss", run.randn(9, 30), run.randint(30, (9,)))


@trial(ATTORCH, "attorch/nll_loss_kernels.py")
def nll_loss(run: Run) -> None:
    beside(run, "NLLLoss", run.randn(9, 30).log_softmax(-1), run.randint(30, (9,)))


@trial(ATTORCH, "attorch/p_loss_kernels.py", "mean squares, absolute, Huber's and smooth absolute errors")
def p_losses(run: Run) -> None:
    for name in ("MSELoss", "L1Loss", "HuberLoss", "SmoothL1Loss"):
        beside(run, name, run.randn(9, 30), run.randn(9, 30))


@trial(ATTORCH, "attorch/dropout_kernels.py", "which elements are kept is its own choice")
def dropout(run: Run) -> None:
    import attorch

    x = run.randn(40, 60).requires_grad_()
    y = attorch.Dropout(p=0.4)(x)
    y.backward(tt.ones_like(y))
    kept = y.detach().cpu() != 0
    scale = kept.float() / 0.6
    run.close(y, x.detach().cpu() * scale)
    run.close(x.grad, scale)
    if run.numbers:
        assert 0.5 < float(kept.float().mean()) < 0.7
