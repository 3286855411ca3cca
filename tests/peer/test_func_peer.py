"""Whole programs of torch.func in torch and here: transforms and what they nest to, networks per sample, ensembles, writes, layouts, refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.autograd.forward_ad
import torch.func

import tritensor as tt
import tritensor.func
import tritensor.func.forward_ad
from tests.peer.func import memory as memory
from tests.peer.func import networks as networks
from tests.peer.func import transforms as transforms
from tests.peer.func.asking import PROGRAMS, asked

pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("ignore")]


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    want, got = asked(PROGRAMS[name], torch), asked(PROGRAMS[name], tt)
    assert len(got) == len(want)
    for i, (a, b) in enumerate(zip(got, want, strict=True)):
        if isinstance(b, np.ndarray):
            assert (type(a), np.shape(a), a.dtype) == (np.ndarray, b.shape, b.dtype), f"{name}[{i}]: {a!r}, torch {b!r}"
            np.testing.assert_allclose(a, b, 1e-8, 1e-9, err_msg=f"{name}[{i}]")
        else:
            assert a == b, f"{name}[{i}]"


# What raises there raises here, in the same class.
REFUSED: list[Callable[..., Any]] = [
    lambda T, F, x: F.grad(lambda y: y)(x(3)),
    lambda T, F, x: F.grad(lambda y: 3)(x(3)),
    lambda T, F, x: F.grad(lambda y: (y.sum(), 1))(x(3)),
    lambda T, F, x: F.grad(lambda y: y.sum(), has_aux=True)(x(3)),
    lambda T, F, x: F.grad(lambda y: y.sum(), argnums=1)(x(3)),
    lambda T, F, x: F.grad(lambda y: y.sum(), argnums=(0, 0))(x(3)),
    lambda T, F, x: F.grad(lambda y: y.sum(), argnums=())(x(3)),
    lambda T, F, x: F.vmap(lambda y: y, in_dims=2)(x(3)),
    lambda T, F, x: F.vmap(lambda y: y, in_dims="0")(x(3)),
    lambda T, F, x: F.vmap(lambda y: y, in_dims=(0, 0))(x(3)),
    lambda T, F, x: F.vmap(lambda y: y, in_dims=None)(x(3)),
    lambda T, F, x: F.vmap(lambda y: y)(3.0),
    lambda T, F, x: F.vmap(lambda y: y)(),
    lambda T, F, x: F.vmap(lambda a, b: a + b)(x(3), x(4)),
    lambda T, F, x: F.vmap(lambda y: 3)(x(3)),
    lambda T, F, x: F.vmap(lambda y: y, out_dims=(0, 0))(x(3)),
    lambda T, F, x: F.vmap(lambda y: y, out_dims=3)(x(3)),
    lambda T, F, x: F.vmap(lambda y: y.item())(x(3)),
    lambda T, F, x: F.vmap(lambda y: y if y > 0 else -y)(x(3)),
    lambda T, F, x: F.vmap(lambda y: y + T.rand(2))(x(3)),
    lambda T, F, x: F.vmap(lambda y: y, randomness="no")(x(3)),
    lambda T, F, x: F.vmap(lambda y: T.zeros(2).double().add_(y))(x(3, 2)),
    lambda T, F, x: F.vmap(lambda y: y.nonzero())(x(3, 2)),
    lambda T, F, x: F.vmap(lambda y: y[y > 0])(x(3, 2)),
    lambda T, F, x: F.vmap(lambda y: y, chunk_size=0)(x(3)),
    lambda T, F, x: F.jacrev(lambda y: y, chunk_size=-1)(x(3)),
    lambda T, F, x: F.jvp(lambda y: y, x(3), x(3)),
    lambda T, F, x: F.jvp(lambda y: y, (x(3),), (x(4),)),
    lambda T, F, x: F.jvp(lambda y: y, (x(3),), (x(3), x(3))),
    lambda T, F, x: F.jvp(lambda y: 3, (x(3),), (x(3),)),
    lambda T, F, x: F.jvp(lambda y: T.ones(2), (x(3),), (x(3),), strict=True),
    lambda T, F, x: F.vjp(lambda y: 3, x(3)),
    lambda T, F, x: F.vjp(lambda y: y, x(3))[1](x(4)),
    lambda T, F, x: F.vjp(lambda y: (y, y), x(3))[1](x(3)),
    lambda T, F, x: F.jacrev(lambda y: y)(T.complex(x(2), x(2))),
    lambda T, F, x: F.jacfwd(lambda y: T.complex(y, y))(x(2)),
    lambda T, F, x: F.rearrange(x(2, 3), "a b c -> c b a"),
    lambda T, F, x: F.rearrange(x(2, 3), "a b -> a"),
    lambda T, F, x: F.stack_module_state([]),
    lambda T, F, x: F.stack_module_state([T.nn.Linear(2, 2), T.nn.ReLU()]),
    lambda T, F, x: F.stack_module_state([T.nn.Linear(2, 2), T.nn.Linear(2, 2).eval()]),
    lambda T, F, x: F.functional_call(T.nn.Linear(2, 2), 3, (x(2),)),
    lambda T, F, x: F.functional_call(T.nn.Linear(2, 2), ({"weight": x(2, 2)}, {"weight": x(2, 2)}), (x(2),)),
    lambda T, F, x: F.functionalize(lambda y: y, remove="all")(x(2)),
    lambda T, F, x: T.autograd.forward_ad.make_dual(x(2), x(2)),
    lambda T, F, x: T.autograd.forward_ad.exit_dual_level(),
    lambda T, F, x: F.vmap(lambda y: T.autograd.Function.apply(y))(x(2)),
    lambda T, F, x: F.vmap(lambda y: y.view(T.int32))(T.ones(3).double()),
    lambda T, F, x: F.vmap(lambda y: y.view(T.int32), 1)(x(3, 2)),
    *[
        lambda T, F, x, write=write: F.vmap(lambda one, same: write(T, one, same), (0, None))(x(2, 3), x(3))
        for write in (
            lambda T, one, same: same.mul_(one),
            lambda T, one, same: same.copy_(one),
            lambda T, one, same: same.masked_fill_(one > 0, 1.0),
            lambda T, one, same: same.index_put_((T.tensor([0]),), one[:1]),
            lambda T, one, same: same.scatter_(0, T.tensor([0]), one[:1]),
            lambda T, one, same: T.nn.functional.batch_norm(one[None], same, same.abs(), training=True),
        )
    ],
]


@pytest.mark.parametrize("place", range(len(REFUSED)))
def test_refusals(place: int) -> None:
    """Whoever catches torch's error catches ours."""
    with pytest.raises(Exception) as theirs:
        asked(REFUSED[place], torch)
    with pytest.raises(theirs.type) as ours:
        asked(REFUSED[place], tt)
    assert "\n" not in str(ours.value)
