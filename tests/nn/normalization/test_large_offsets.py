"""Normalisation and spread of data that vary little about a large number: a constant has no deviations, whichever road a shape takes."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tritensor.nn import functional as F

CONSTANTS = {tt.float32: (12345679.0, 3.3e8, 1e34, 0.1), tt.float64: (1e17 / 3, 0.1), tt.float16: (60000.0,), tt.bfloat16: (1e30,)}
SHAPES = ((1, 4, 100), (1, 4, 7), (37, 2, 11), (4, 6, 200), (64, 8), (300, 2, 3, 3), (2, 4, 1031))
ZERO = {
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "group_norm": lambda x: F.group_norm(x, 2),
    "one_group": lambda x: F.group_norm(x, 1),
    "instance_norm": lambda x: F.instance_norm(x.reshape(*x.shape[:2], -1) if x.ndim > 2 else x.reshape(1, *x.shape)),
    "layer_norm": lambda x: F.layer_norm(x, x.shape[-1:]),
    "layer_norm_of_all": lambda x: F.layer_norm(x, x.shape),
    "native_group_norm": lambda x: tt.native_group_norm(x, None, None, *x.shape[:2], x[0, 0].numel(), 2, 1e-5)[0],
    "native_batch_norm": lambda x: tt.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5)[0],
    "var": lambda x: x.var(-1),
    "var_of_rows": lambda x: x.var(0, correction=0),
    "std": lambda x: x.std(),
    "var_mean": lambda x: tt.var_mean(x)[0],
    "cov": lambda x: tt.cov(x.reshape(2, -1)),
}


def left(name: str, x: Any) -> float:
    y = ZERO[name](x)
    assert not y.isnan().any(), name
    return float(y.double().abs().max())


def walked() -> list[str]:
    """What a constant is not free of."""
    found = []
    for dtype, constants in CONSTANTS.items():
        for c in constants:
            for shape in SHAPES:
                x = tt.full(shape, c, dtype=dtype)
                found += [f"{name} of {c} {dtype} {shape}" for name in ZERO if left(name, x) != 0]
    return found


def test_a_constant_has_no_deviations() -> None:
    assert walked() == []


def test_nor_where_numpy_computes_alone() -> None:
    command = (
        "from tests.nn.normalization.test_large_offsets import walked; found = walked(); print(found[:4]); raise SystemExit(len(found) > 0)"
    )
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, env={**os.environ, "TRITENSOR_NATIVE": "0"})
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", sorted(ZERO))
def test_nor_in_kernels(name: str) -> None:
    for dtype, c in ((tt.float32, 12345679.0), (tt.float16, 60000.0)):
        for shape in ((2, 4, 103), (2, 2, 2200)):  # rows in registers and rows that are walked, both with a rim
            x = tt.full(shape, c, dtype=dtype, device="cuda")
            assert left(name, x) == 0, (dtype, shape)


@pytest.mark.parametrize("on", ["cpu", "cuda"])
@pytest.mark.parametrize("name", ["batch_norm", "group_norm", "one_group", "instance_norm", "layer_norm"])
def test_gradients_of_a_constant(name: str, on: str) -> None:
    """Nothing varies: of dx = r (g - mean g - h mean(g h)) the last term is 0, r is 1 / sqrt(eps); and the rule, differentiated once more, says so, too."""
    x = tt.full((2, 4, 103), 12345679.0, device=on, requires_grad=True)
    g = tt.arange(x.numel(), device=on).reshape(x.shape).float() % 7
    shared = {"batch_norm": ((0, 2), (2, 4, 103)), "group_norm": ((2,), (2, 2, 206)), "one_group": ((1, 2), (2, 4, 103))}
    dims, seen = shared.get(name, ((2,), (2, 4, 103)))
    up = g.cpu().numpy().astype(np.float64).reshape(seen)
    right = ((up - up.mean(dims, keepdims=True)) / np.sqrt(1e-5)).reshape(x.shape)
    (dx,) = tt.autograd.grad(ZERO[name](x), x, g, retain_graph=True)
    (again,) = tt.autograd.grad(ZERO[name](x), x, g, create_graph=True)
    for found in (dx, again.detach()):
        assert np.abs(found.cpu().numpy() - right).max() < 1e-5 * np.abs(right).max()


@pytest.mark.parametrize("name", ["batch_norm", "group_norm", "instance_norm", "layer_norm"])
@pytest.mark.parametrize("shape", [(1, 4, 100), (4, 6, 200), (2, 4, 1031)], ids=str)
def test_deviations_of_numbers_beside_a_large_one(name: str, shape: tuple[int, ...]) -> None:
    """x itself is known to half an ulp, 1/2 at 1e7: a result is right if some x so near has it."""
    x = 1e7 + np.random.default_rng(3).integers(-30, 31, shape)
    wide, narrow = (ZERO[name](tt.tensor(x, dtype=t)).numpy() for t in (tt.float64, tt.float32))
    spread = np.abs(x - x.mean()).mean()
    assert np.abs(wide - narrow).max() < 2 * 0.5 / spread * np.abs(wide).max()
