"""Ops without a kernel: on a GPU they run on the host, say so once, and refuse results that only the CPU holds."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import pytest

import tritensor as tt
from tritensor.ground.errors import HostCopyWarning
from tritensor.ops.table import host_fallback, ops, registry


@pytest.fixture
def twice() -> Iterator[str]:
    tt.op(
        "twice_on_host", lambda x: 2 * x, shape=lambda x: tt.Spec(x.shape, x.dtype), samples=lambda rng: [tt.Sample(rng.normal(size=3))], host=True,
        rule=lambda g: ops.twice_on_host(g),
    )  # fmt: skip
    yield "twice_on_host"
    dict.pop(registry, "twice_on_host")
    ops.__dict__.pop("twice_on_host", None)
    host_fallback._announced.discard("twice_on_host")


def test_it_runs_on_the_host_and_says_so_once(twice: str) -> None:
    x = tt.tensor([[1.0, 2.0], [3.0, 4.0]], device="cuda").t().requires_grad_()
    with pytest.warns(HostCopyWarning, match="^twice_on_host: runs on the CPU, and its tensors on cuda:0 are copied there and back"):
        y = getattr(ops, twice)(x)
    assert y.is_cuda
    assert y.tolist() == [[2.0, 6.0], [4.0, 8.0]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (g,) = tt.autograd.grad(y.sum(), x)
    assert g.tolist() == [[2.0, 2.0], [2.0, 2.0]]
    assert g.is_cuda


def test_on_the_cpu_nothing_is_said(twice: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert getattr(ops, twice)(tt.ones(2)).tolist() == [2.0, 2.0]


def test_complex_results_stay_on_the_cpu() -> None:
    x = tt.ones(2, device="cuda")
    with pytest.raises(tt.DeviceError, match=r"^complex: its result is complex64, which lives on the CPU only; call it on x.cpu\(\)"):
        tt.complex(x, x)


def test_a_host_op_has_no_kernel() -> None:
    with pytest.raises(tt.RegistrationError, match="host says that there is no kernel"):
        tt.op(
            "both_host_and_kernel", np.abs, inputs=("x",), shape=lambda x: tt.Spec(x.shape, x.dtype), samples=lambda rng: [tt.Sample(rng.normal(size=3))],
            host=True, forward=lambda x: x, differentiable=False,
        )  # fmt: skip
