"""The array API's namespace: its meaning where PyTorch means something else, what it says of itself and what it refuses."""

from __future__ import annotations

import inspect
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tests.array_api import suite
from tritensor import array_api as xp

DEVICES = ("cpu", "cuda")


def array(values: Any, dtype: str = "float32", device: str = "cpu") -> Any:
    return xp.asarray(values, dtype=getattr(xp, dtype), device=device)


# -- where it is found
def test_tensors_name_the_namespace() -> None:
    x = tt.ones(2)
    assert x.__array_namespace__() is xp
    assert x.__array_namespace__(api_version="2023.12") is xp
    assert xp.__array_api_version__ == "2024.12"
    with pytest.raises(ValueError, match="2030"):
        x.__array_namespace__(api_version="2030.12")
    assert x.to_device("cuda").device.type == "cuda"
    assert x.to_device(tt.device("cpu"), stream=None) is x


def test_importing_the_library_leaves_it_alone() -> None:
    code = "import sys, tritensor; assert 'tritensor.array_api' not in sys.modules; assert tritensor.array_api.e > 2; tritensor.ones(1).__array_namespace__()"
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, env=os.environ | {"PYTHONPATH": str(root)}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_every_name_is_documented_and_takes_arrays_by_place() -> None:
    rooms = [*(getattr(xp, n) for n in xp.__all__), *(getattr(xp.linalg, n) for n in xp.linalg.__all__)]
    functions = [f for f in [*rooms, *(getattr(xp.fft, n) for n in xp.fft.__all__)] if inspect.isfunction(f)]
    assert len(functions) > 150
    for f in functions:
        assert f.__doc__, f.__name__
        first = next(iter(inspect.signature(f).parameters.values()), None)
        if first is not None and first.name in ("x", "x1", "obj", "arrays"):
            assert first.kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL), f.__name__


# -- promotion
@pytest.mark.parametrize("device", DEVICES)
def test_arrays_without_dimensions_count_in_full(device: str) -> None:
    small, wide = array([1, 2], "int8", device), array(1000, "int64", device)
    assert (small + wide).dtype is tt.int8  # PyTorch's operator
    found = xp.add(small, wide)
    assert (found.dtype, found.tolist()) == (xp.int64, [1001, 1002])
    assert xp.less(small, wide).tolist() == [True, True]
    assert xp.where(xp.asarray(True, device=device), small, wide).dtype is xp.int64
    assert xp.multiply(array([1.0], "float32", device), array(2.0, "float64", device)).dtype is xp.float64
    assert xp.concat([small, array([1000], "int16", device)]).dtype is xp.int16


def test_numbers_take_the_arrays_type() -> None:
    assert xp.add(array([1, 2], "int8"), 1).dtype is xp.int8
    assert xp.subtract(1, array([1.5], "float64")).tolist() == [-0.5]
    assert xp.maximum(array(3, "int16"), 5).dtype is xp.int16
    assert xp.logical_and(xp.asarray([True, False]), True).tolist() == [True, False]
    assert xp.atan2(array([1.0]), 1.0).dtype is xp.float32
    with pytest.raises(OverflowError):
        xp.add(array([1], "int8"), 300)
    with pytest.raises(TypeError, match="none of the arguments is an array"):
        xp.add(1, 2)
    with pytest.raises(TypeError, match="uint64 and int64"):
        xp.add(array([1], "uint64"), array([1], "int64"))


def test_types() -> None:
    assert xp.result_type(xp.int8, array(1, "int32"), 7) is xp.int32
    assert xp.result_type(array([1], "float32"), 1j) is xp.complex64
    with pytest.raises(ValueError, match="numbers alone"):
        xp.result_type(1, 2)
    assert xp.can_cast(xp.int8, xp.int16)
    assert not xp.can_cast(xp.int16, xp.int8)
    assert not xp.can_cast(xp.uint64, xp.int64)
    assert xp.isdtype(xp.uint8, "unsigned integer")
    assert xp.isdtype(xp.complex64, ("real floating", "complex floating"))
    assert xp.isdtype(xp.bool, xp.bool)
    assert not xp.isdtype(xp.bool, "numeric")
    with pytest.raises(ValueError, match="kind is 'whole'"):
        xp.isdtype(xp.int8, "whole")
    assert xp.finfo(xp.complex128).dtype is xp.float64
    assert (xp.finfo(array(1.0)).bits, xp.finfo(xp.float32).eps) == (32, 2.0**-23)
    assert (xp.iinfo(xp.uint16).max, xp.iinfo(xp.int64).min, xp.iinfo(xp.int8).dtype) == (65535, -(2**63), xp.int8)
    with pytest.raises(TypeError, match="use finfo"):
        xp.iinfo(xp.float32)
    with pytest.raises(TypeError, match="take real"):
        xp.astype(array([1j], "complex64"), xp.float32)
    x = array([1.0])
    assert xp.astype(x, xp.float32, copy=False) is x
    assert xp.astype(x, xp.float32) is not x


# -- what it says of itself
def test_inspection() -> None:
    info = xp.__array_namespace_info__()
    assert info.capabilities()["data-dependent shapes"] is True
    assert info.default_device() in info.devices()
    assert info.default_dtypes()["integral"] is xp.int64
    assert info.default_dtypes()["complex floating"] is xp.complex64
    assert "complex floating" not in info.default_dtypes(device="cuda")
    assert list(info.dtypes(kind="bool")) == ["bool"]
    assert set(info.dtypes(kind=("signed integer", "complex floating"), device="cuda")) == {"int8", "int16", "int32", "int64"}
    assert len(info.dtypes()) == 13


# -- where the standard's functions mean something else than PyTorch's
@pytest.mark.parametrize("device", DEVICES)
def test_reductions(device: str) -> None:
    x = array([[1, 2], [3, 250]], "uint8", device)
    assert (xp.sum(x).dtype, int(xp.sum(x))) == (xp.uint64, 256)
    assert xp.prod(array([2, 3], "int8", device)).dtype is xp.int64
    assert (xp.sum(x, dtype=xp.uint8).dtype, int(xp.sum(x, dtype=xp.uint8))) == (xp.uint8, 0)
    assert xp.sum(array([2**63], "uint64", device)).dtype is xp.uint64
    assert xp.sum(x, axis=()).tolist() == x.tolist()
    assert xp.max(x, axis=(0, 1), keepdims=True).tolist() == [[250]]
    assert float(xp.var(array([1.0, 3.0], device=device))) == 1.0
    assert float(xp.std(array([1.0, 3.0], device=device), correction=1)) == pytest.approx(math.sqrt(2))
    assert xp.argmax(x, keepdims=True).tolist() == [[3]]
    assert xp.cumulative_sum(array([1, 2], "int8", device), include_initial=True).tolist() == [0, 1, 3]
    assert int(xp.count_nonzero(x)) == 4
    with pytest.raises(ValueError, match="name the axis"):
        xp.cumulative_prod(x)
    with pytest.raises(IndexError, match="axis 2"):
        xp.sum(x, axis=2)
    with pytest.raises(ValueError, match="twice"):
        xp.sum(x, axis=(0, -2))


@pytest.mark.parametrize("device", DEVICES)
def test_unique(device: str) -> None:
    x = array([[3.0, 1.0], [math.nan, 3.0], [1.0, math.nan]], device=device)
    found = xp.unique_all(x)
    assert found.values.tolist()[:2] == [1.0, 3.0]
    assert found.counts.tolist() == [2, 2, 1, 1]
    assert found.indices.tolist() == [1, 0, 2, 5]
    assert found.inverse_indices.shape == (3, 2)
    assert xp.unique_inverse(array([5, 5, 2], "int64", device)).inverse_indices.tolist() == [1, 1, 0]
    assert xp.unique_counts(array([5, 5, 2], "int64", device)).counts.tolist() == [1, 2]
    assert xp.unique_values(array([], "int32", device)).shape == (0,)
    assert xp.unique_all(array([], "int32", device)).indices.shape == (0,)


def test_unique_complex() -> None:
    z = array([1j, 1.0, 1j], "complex64")
    assert [f.tolist() for f in xp.unique_all(z)] == [[1j, 1], [0, 1], [0, 1, 0], [2, 1]]
    assert xp.unique_values(z).tolist() == [1j, 1]


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")  # which the library silences, and pytest wakes
@pytest.mark.parametrize("device", DEVICES)
def test_quotients(device: str) -> None:
    inf = math.inf
    a, b = array([inf, 5.0, -5.0, 7.0, inf], device=device), array([2.0, -inf, inf, 2.0, inf], device=device)
    assert str(xp.floor_divide(a, b).tolist()) == "[inf, -0.0, -0.0, 3.0, nan]"
    assert str(xp.floor_divide(7.0, array([2.0, inf], device=device)).tolist()) == "[3.0, 0.0]"
    assert str(xp.remainder(array([-0.0, 0.0, 5.0], device=device), array([2.0, -2.0, 3.0], device=device)).tolist()) == "[0.0, -0.0, 2.0]"
    assert xp.remainder(array([-5], "int8", device), 3).tolist() == [1]


def test_shapes() -> None:
    x = xp.reshape(xp.arange(6), (1, 2, 3))
    assert xp.permute_dims(x, (2, 0, 1)).shape == (3, 1, 2)
    assert xp.squeeze(x, 0).shape == (2, 3)
    with pytest.raises(ValueError, match="size 2"):
        xp.squeeze(x, 1)
    assert xp.concat([x, x], axis=None).shape == (12,)
    assert xp.repeat(x, 2).shape == (12,)
    assert xp.roll(x, (1, 1), axis=(2, 2)).tolist() == [[[1, 2, 0], [4, 5, 3]]]
    assert xp.tile(x, (2, 1, 1, 1)).shape == (2, 1, 2, 3)
    assert len(xp.unstack(x, axis=2)) == 3
    assert xp.flip(xp.arange(3)).tolist() == [2, 1, 0]
    assert [tuple(g.shape) for g in xp.meshgrid(xp.arange(2), xp.arange(3))] == [(3, 2), (3, 2)]
    with pytest.raises(ValueError, match="by a copy only"):
        xp.reshape(xp.permute_dims(x, (2, 1, 0)), (6,), copy=False)
    copied = xp.reshape(x, (6,), copy=True)
    copied[0] = 9
    assert x[0, 0, 0] == 0
    with pytest.raises(IndexError, match="axis 5"):
        xp.expand_dims(x, 5)
    with pytest.raises(ValueError, match="two axes"):
        xp.matrix_transpose(xp.arange(3))


def test_making() -> None:
    assert xp.arange(3, 1).shape == (0,)
    assert xp.arange(2.5).dtype is xp.float32
    assert xp.eye(2, 3, k=1).tolist() == [[0, 1, 0], [0, 0, 1]]
    assert xp.eye(2, k=-(2**70)).tolist() == [[0, 0], [0, 0]]
    assert xp.tril(xp.ones((2, 2)), k=2**70).tolist() == [[1, 1], [1, 1]]
    assert xp.triu(xp.ones((1, 2, 2)), k=1).tolist() == [[[0, 1], [0, 0]]]
    assert xp.linspace(0, 1, 4, endpoint=False).tolist() == [0.0, 0.25, 0.5, 0.75]
    assert xp.linspace(0, 1j, 3).tolist() == [0, 0.5j, 1j]
    assert xp.full(2, True).dtype is xp.bool
    assert xp.asarray(memoryview(b"\x01\x02")).dtype is xp.uint8
    assert xp.asarray([[xp.asarray(1), 2.5]]).tolist() == [[1.0, 2.5]]
    x = xp.zeros(2)
    assert xp.asarray(x, copy=False) is x
    assert xp.asarray(x, copy=True) is not x
    with pytest.raises(ValueError, match="copy"):
        xp.asarray(x, dtype=xp.int8, copy=False)
    shared = np.zeros(2)
    xp.from_dlpack(shared)[0] = 5
    assert shared[0] == 5


def test_picking() -> None:
    x = xp.asarray([[1, 2, 3], [4, 5, 6]])
    assert xp.take(x, xp.asarray([-1, 0]), axis=1).tolist() == [[3, 1], [6, 4]]
    assert xp.take_along_axis(x, xp.asarray([[-1], [0]])).tolist() == [[3], [4]]
    with pytest.raises(ValueError, match="name the axis"):
        xp.take(x, xp.asarray([0]))
    with pytest.raises(ValueError, match="no axes"):
        xp.nonzero(xp.asarray(1))
    assert xp.searchsorted(xp.asarray([1, 2, 2, 3]), xp.asarray([2.0, 4.0]), side="right").tolist() == [3, 4]
    assert xp.argsort(xp.asarray([1, 2, 1]), descending=True).tolist() == [1, 0, 2]
    assert xp.clip(array([1, 5], "int8"), 2, array(1000, "int64")).dtype is xp.int8
    assert xp.round(array([1.5 + 2.5j], "complex64")).tolist() == [2 + 2j]
    assert xp.diff(xp.asarray([1, 4]), prepend=xp.asarray([0]), append=xp.asarray([5.0])).tolist() == [1.0, 3.0, 1.0]


def test_linalg() -> None:
    a = array([[2.0, 1.0], [1.0, 3.0]], "float64")
    assert xp.linalg.solve(xp.stack([a, a]), array([3.0, 4.0])).shape == (2, 2)
    np.testing.assert_allclose(np.asarray(xp.linalg.solve(a, array([3.0, 4.0]))), [1.0, 1.0])
    assert xp.linalg.solve(xp.stack([a, a]), xp.stack([a, a])).shape == (2, 2, 2)
    assert xp.linalg.trace(array([[1, 0], [0, 200]], "uint8")).dtype is xp.uint64
    assert xp.linalg.cross(array([[1, 0, 0]] * 2, "int8"), array([0, 1, 0], "int16")).tolist() == [[0, 0, 1]] * 2
    assert complex(xp.vecdot(array([1j], "complex64"), array([1j], "complex64"))) == 1
    assert float(xp.linalg.vector_norm(array([[3.0], [4.0]]))) == 5.0
    assert xp.linalg.svd(a).U.shape == (2, 2)
    with pytest.raises(ValueError, match="counts from the end"):
        xp.vecdot(a, a, axis=0)
    with pytest.raises(ValueError, match="vectors"):
        xp.linalg.outer(a, a)


def test_every_expected_failure_has_a_reason() -> None:
    """The list of the suite's tests that fail on purpose: each group stands below the words that say why."""
    reason = ""
    for line in suite.XFAILS.read_text().splitlines():
        if line.startswith("#"):
            reason = line
        elif not line:
            reason = ""
        else:
            assert line.startswith("array_api_tests/"), line
            assert reason, f"no reason above {line}"


def test_scikit_learn_takes_tensors() -> None:
    pytest.importorskip("sklearn")
    root = Path(__file__).resolve().parents[2]
    env = {**os.environ, "SCIPY_ARRAY_API": "1", "PYTHONPATH": str(root)}
    done = subprocess.run([sys.executable, "-m", "tests.array_api.libraries", "sklearn"], cwd=root, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
