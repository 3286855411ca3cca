"""What an op does not compute it refuses by name, before anything runs: kinds of types that it has no meaning for, and inputs of two types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tests.harness.cases import samples
from tritensor.table import registry

FLOATS_ONLY = (
    "softmax", "log_softmax", "layer_norm", "cross_entropy", "mse_loss", "dropout", "linear", "conv2d", "conv2d_input", "conv2d_weight",
    "avg_pool2d", "avg_pool2d_spread", "sgd_step", "adam_step", "adam_count", "var",
)  # fmt: skip
PAIRS = ("where", "linear", "conv2d", "conv2d_input", "conv2d_weight", "sgd_step", "adam_step", "index_put")  # the others promote
both_devices = pytest.mark.parametrize("on", ["cpu", "cuda"])


def called(name: str, on: str, *kinds: tt.dtype) -> Any:
    """An op on its first sample that has a floating array for each of these types; further ones are of the first type."""
    op = registry[name]
    floating = [[i for i, x in enumerate(s.inputs) if isinstance(x, np.ndarray) and x.dtype == np.float64] for s in samples(op)]
    sample, where = next((s, at) for s, at in zip(samples(op), floating, strict=True) if len(at) >= len(kinds))
    given = [tt.tensor(x).to(on) if isinstance(x, np.ndarray) else x for x in sample.inputs]
    for k, i in enumerate(where):
        given[i] = given[i].to(kinds[k] if k < len(kinds) else kinds[0])
    return getattr(tt.ops, name)(*given, **sample.attrs)


@both_devices
@pytest.mark.parametrize("kind", [tt.int64, tt.bool, tt.float8_e5m2])
@pytest.mark.parametrize("name", FLOATS_ONLY)
def test_kinds(name: str, kind: tt.dtype, on: str) -> None:
    called(name, on, tt.float64)
    with pytest.raises(tt.DTypeError, match=rf"{name}: .*{kind.name}.*takes float"):
        called(name, on, kind)


@both_devices
@pytest.mark.parametrize("name", PAIRS)
def test_two_types(name: str, on: str) -> None:
    called(name, on, tt.float32, tt.float32)
    with pytest.raises(tt.DTypeError, match=rf"{name}: .*float32.*float64.*cast"):
        called(name, on, tt.float32, tt.float64)


@both_devices
@pytest.mark.parametrize("name", ["matmul", "max_pool2d", "cumsum"])
def test_types_without_arithmetic(name: str, on: str) -> None:
    with pytest.raises(tt.DTypeError, match=rf"{name}: .*float8_e4m3fn.*takes "):
        called(name, on, tt.float8_e4m3fn)


def test_wide_complex_numbers_are_chosen() -> None:
    z = tt.tensor([1 + 2j, 3 - 1j], dtype=tt.complex128)
    assert tt.where(tt.tensor([True, False]), z, 0.5).tolist() == [1 + 2j, 0.5]
    assert tt.where(tt.tensor([True, False]), 0.5, z).tolist() == [0.5, 3 - 1j]
