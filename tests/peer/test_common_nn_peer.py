"""PyTorch's older list of modules and losses: outputs, gradients, states and prints of both libraries are the same."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch

import tritensor as tt
from tests.peer.modules.common_nn import Cases, flat

pytestmark = pytest.mark.peer
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    THEIRS = Cases(torch, torch.nn._reduction)
    OURS = Cases(tt, tt.nn._reduction)
PRECISE = 1e-9
ROUNDED = {
    "Hardsigmoid_no_batch_dim": 1e-7,  # its 1/6 is a float32 in PyTorch
    "CrossMapLRN2d": 1e-5,  # PyTorch's backward there fails PyTorch's own gradcheck by 5e-6; ours passes it at 1e-9
}
CHANCE = ("RReLU",)  # draws its slopes: shapes and types are compared


def put(x: torch.Tensor, into: Any) -> None:
    """PyTorch's numbers in place of ours: inputs that were computed, such as log_softmax's, are an ulp apart."""
    into.detach().copy_(tt.from_numpy(x.detach().numpy().copy()))


def weighed(outs: list[Any], library: Any) -> Any:
    """A scalar of several outputs whose gradient differs from element to element."""
    sums = [(y * library.from_numpy(np.cos(np.arange(y.numel())).reshape(tuple(y.shape))).to(y.dtype)).sum() for y in outs]
    total = sum(sums[1:], sums[0])
    return total.abs() if total.dtype.is_complex else total


def asked(cases: Cases, module: Any, args: list[Any], leaves: list[Any]) -> tuple[list[np.ndarray], list[np.ndarray | None]]:
    """(outputs, gradients of inputs and parameters) as arrays."""
    library = cases.source.real
    outs = flat(module(*args))
    parameters = [p for p in module.parameters() if p.requires_grad] if isinstance(module, library.nn.Module) else []
    followed = [y for y in outs if y.requires_grad]
    grads = library.autograd.grad(weighed(followed, library), [*leaves, *parameters], allow_unused=True) if followed else []
    return (
        [y.detach().numpy() for y in outs],
        [None if g is None else (g.to_dense() if getattr(g, "is_sparse", False) else g).numpy() for g in grads],
    )


def close(found: Any, expected: Any, bound: float) -> None:
    assert (found is None) == (expected is None)
    if found is not None:
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(found, expected, rtol=bound, atol=bound)


def test_both_lists_are_one() -> None:
    assert len(OURS.all) == len(THEIRS.all) >= 282
    assert [OURS.name(i) for i in range(len(OURS.all))] == [THEIRS.name(i) for i in range(len(THEIRS.all))]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("index", [pytest.param(i, id=THEIRS.name(i)) for i in range(len(THEIRS.all))])
def test_a_module_of_the_list(index: int) -> None:
    kind = THEIRS.all[index][0].get("default_dtype", torch.float32)
    torch.set_default_dtype(kind)
    tt.set_default_dtype(getattr(tt, str(kind).removeprefix("torch.")))
    try:
        module, args, leaves = THEIRS.built(index)
        ours, own, watched = OURS.built(index)
        for x, y in zip(flat(args), flat(own), strict=True):
            assert (tuple(x.shape), str(x.dtype)[6:]) == (tuple(y.shape), y.dtype.name)
            if x.dtype.is_floating_point and not x.dtype.is_complex:
                put(x, y)
            else:
                np.testing.assert_array_equal(x.detach().numpy(), y.detach().numpy())
        if isinstance(module, torch.nn.Module):
            state = module.state_dict()
            assert list(ours.state_dict()) == list(state)
            ours.load_state_dict({k: tt.from_numpy(v.numpy().copy()) for k, v in state.items()})
            assert repr(ours).replace("tritensor.", "torch.") == repr(module)
        outs, grads = asked(THEIRS, module, args, leaves)
        found, slopes = asked(OURS, ours, own, watched)
        if any(name in THEIRS.name(index) for name in CHANCE):
            assert [(y.shape, y.dtype) for y in [*found, *slopes]] == [(y.shape, y.dtype) for y in [*outs, *grads]]
            return
        bound = ROUNDED.get(THEIRS.name(index), PRECISE)
        precise = kind is torch.float64
        for y, z in zip(found, outs, strict=True):
            close(y, z, bound if precise else 3e-5)
        for g, h in zip(slopes, grads, strict=True):
            close(g, h, bound if precise else 3e-4)
    finally:
        torch.set_default_dtype(torch.float32)
        tt.set_default_dtype(tt.float32)
